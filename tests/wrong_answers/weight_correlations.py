"""Typical wrong answers to the exercises of book/weight_correlations.md, which their checks refuse."""

import numpy as np


def turn(what):
    """Maps before and after a wrong turn of unit 2 of twelve: (24, 24) each."""
    rng = np.random.default_rng(1)
    common = rng.normal(size=(400, 1))
    w = rng.normal(size=(400, 24)) + 0.5 * common + np.tile([2.0, 1.0], 12)  # unit and feature
    turned = w.copy()
    if what == "every draw":
        turned[:, 4:6] *= -1
    elif what == "one weight":
        turned[1::2, 4] *= -1
    elif what == "all units":
        turned[1::2] *= -1
    return np.corrcoef(w.T), np.corrcoef(turned.T)


def make_percent(every, three):
    return {"all units": every, "steep units": three}


def make_values(ties, names):
    spread = np.array([-0.2, -0.1, 0.1, 0.2])
    return {"ties": ties + spread, "names": names + spread}


WRONG = {
    "check_names": [
        lambda: None,
        lambda: make_percent(1.0, 0.424),  # shares
        lambda: make_percent(1700, 721),  # counts
        lambda: make_percent(70.9, 0.5),  # signs without orders
        lambda: make_percent(1.4, 1.4),  # single numbers: np.unique without axis=0
        lambda: make_percent(100.0, 0.2),  # three rows, signed[steep]
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
        lambda: {"ties": -5.45, "names": 49.5},  # one number each
        lambda: make_values(-2300.0, 21_000.0),  # sums over draws
        lambda: make_values(-5.0, -50.0),  # renamed minus aligned
        lambda: make_values(9.9, 49.9),  # the chains of the fit are scored
    ],
}
