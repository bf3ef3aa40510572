"""Typical wrong answers to the exercises of book/weight_correlations.md, which their checks refuse."""

import numpy as np


def turn(what):
    """Maps before and after a wrong turn of unit 2 of five: (10, 10) each."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(400, 1))
    w = rng.normal(size=(400, 10)) + 0.5 * common + np.tile([2.0, 1.0], 5)  # unit and feature
    turned = w.copy()
    if what == "every draw":
        turned[:, 4:6] *= -1
    elif what == "one weight":
        turned[1::2, 4] *= -1
    elif what == "all units":
        turned[1::2] *= -1
    return np.corrcoef(w.T), np.corrcoef(turned.T)


def make_values(ties, names):
    spread = np.array([-0.2, -0.1, 0.1, 0.2])
    return {n: {"ties": t + spread, "names": m + spread} for n, t, m in zip((5, 12), ties, names, strict=True)}


WRONG = {
    "check_names": [
        lambda: None,
        lambda: {5: 0.060, 12: 1.0},  # shares
        lambda: {5: 181, 12: 1700},  # counts
        lambda: {5: 1.9, 12: 100.0},  # orders without signs
        lambda: {5: 0.8, 12: 80.3},  # signs without orders
        lambda: {5: 0.3, 12: 1.4},  # single numbers: np.unique without axis=0
    ],
    "check_signs": [
        lambda: None,
        lambda: turn("nothing"),  # w1 changed in place, so that before is after
        lambda: turn("every draw"),
        lambda: turn("one weight"),
        lambda: turn("all units"),
        lambda: turn("nothing")[0],  # one map
    ],
    "check_values": [
        lambda: None,
        lambda: {5: 5.87, 12: -5.01},
        lambda: make_values((4400, -2100), (22_700, 21_200)),  # sums over draws
        lambda: make_values((5.9, -5.0), (-30.3, -50.0)),  # relabelled minus aligned
        lambda: make_values((6.6, 9.9), (30.4, 49.9)),  # the chains of the fit are scored
        lambda: make_values((-5.9, -5.0), (30.3, 50.0)),  # diagonal minus full in the small network
    ],
}
