"""Typical wrong answers to the exercises of book/group_sd.md, which their checks refuse."""

import numpy as np

BORROWED = {
    "w1 and w2": np.array([88.0, 88, 96, 80, 94, 96, 90, 86, 86, 84, 84, 82, 94, 90, 84, 94, 90, 86]),
    "w3": np.array([10.0, 18, 56, 24, 12, 12, 50, 12, 36, 32, 86, 42, 24, 62, 64, 28, 88, 74]),
}


def borrow(hidden, readout):
    """Accuracies of 18 categories around two means."""
    spread = np.linspace(-5, 5, 18)
    return {"w1 and w2": hidden + spread, "w3": readout + spread}


def make_banks(random, learned, n=20):
    spread = np.linspace(-1, 1, n)
    return {"drawn from the prior": list(random + spread), "group network": list(learned + spread)}


WRONG = {
    "check_order": [
        lambda: None,
        lambda: 0.648,  # no error
        lambda: (1.0, 0.0),  # posterior means compared
        lambda: (0.352, 0.013),  # the other way round
        lambda: (0.648, 0.0082),  # as if draws were independent
        lambda: (0.648, 0.48),  # sd of one draw
        lambda: (0.619, 0.0245),  # the error of half the draws, or a half for a root
        lambda: (0.72, 0.012),  # the sds' ratio
    ],
    "check_borrowed": [
        lambda: None,
        lambda: {"w1 and w2": 88.6, "w3": 40.8},  # means over categories
        lambda: borrow(83.8, 85.2),  # of the next draw: axis 0
        lambda: borrow(51.2, 44.8),  # of the next unit: axis 2
        lambda: borrow(40.6, 40.8),  # the read-out borrowed both times
        lambda: {"w1 and w2": np.full(18, 0.886), "w3": np.full(18, 0.408)},  # shares
        lambda: {"w1 and w2": np.full(18, 88.4), "w3": np.full(18, 40.6)},  # means over patients, for each
        lambda: {name: values[::-1] for name, values in BORROWED.items()},  # the patients in reverse order
        lambda: BORROWED | {"w3": np.roll(BORROWED["w3"], 1)},  # of the neighbour's neighbour
        lambda: BORROWED | {"w3": 100 - BORROWED["w3"]},  # those in error
    ],
    "check_banks": [
        lambda: None,
        lambda: {"drawn from the prior": 84.9, "group network": 88.3},  # one bank each
        lambda: make_banks(0.849, 0.883),  # shares
        lambda: make_banks(88.3, 84.9),  # swapped
        lambda: make_banks(50.1, 52.3),  # the group's read-out for every category
        lambda: make_banks(84.9, 88.3, n=2),
        lambda: make_banks(85.6, 86.7, n=68),  # no prior
        lambda: make_banks(83.0, 83.8, n=68),  # the prior with the wrong sign
        lambda: {"drawn from the prior": [84.87] * 68, "group network": [88.17] * 68},  # means, for each
    ],
}
