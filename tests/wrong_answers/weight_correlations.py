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


def count(join, times=100, axis=0):
    """A function such as the exercise asks for, that joins unit and sign in its own way."""

    def count_names(labelling, steep):
        named = join(labelling.order[0], labelling.sign[0])
        kinds = (named, named[:, steep])
        return make_percent(*(times * len(np.unique(columns, axis=axis)) / len(named) for columns in kinds))

    return count_names


def make_values(ties, names):
    spread = np.array([-0.2, -0.1, 0.1, 0.2])
    return {"ties": ties + spread, "names": names + spread}


WRONG = {
    "check_names": [
        lambda: None,
        lambda: make_percent(100.0, 42.4),  # what the function returns
        lambda: count(lambda order, sign: sign * (order + 1), times=1),  # shares
        lambda: count(lambda order, sign: sign * (order + 1), times=200),  # counts
        lambda: count(lambda order, sign: sign * (order + 1), times=99),
        lambda: count(lambda order, sign: sign),  # signs without orders
        lambda: count(lambda order, sign: order),  # orders without signs
        lambda: count(lambda order, sign: sign * order),  # from 0, which has no sign
        lambda: count(lambda order, sign: sign + order),  # two names with one number
        lambda: count(lambda order, sign: sign * (order + 1), axis=None),  # single numbers
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
        lambda: make_values(-10.9, 49.5),  # divided by half the draws
        lambda: make_values(-5.45, 0.5),  # over 100
        lambda: {"ties": np.full(4, -5.45), "names": np.full(4, 49.5)},  # one mean, four times
        lambda: {"ties": np.cumsum([-6.1, -5.4, -5.6, -4.7]), "names": np.array([48.7, 49.3, 49.8, 50.1])},  # sums
    ],
}
