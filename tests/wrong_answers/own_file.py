"""Typical wrong answers to the exercise of chapter own_file: each must be refused by its check."""

import numpy as np

COUNTS = (0, 1, 3, 6)


def give(widths):
    """A width for each count of known rows."""
    return dict(zip(COUNTS, widths, strict=True))


WRONG = {
    "check_width": [
        lambda: None,
        # one width, of the last count
        lambda: {6: 520.0},
        # a list without its counts
        lambda: [690.0, 640.0, 560.0, 500.0],
        # a width for each day, no mean over them
        lambda: give(np.full((4, 60), 600.0)),
        # low minus high
        lambda: give((-690.0, -640.0, -560.0, -500.0)),
        # on the standardised scale
        lambda: give((2.3, 2.1, 1.9, 1.7)),
        # the interval of the mean, not of a weighing
        lambda: give((520.0, 430.0, 340.0, 260.0)),
        # the known rows not passed on
        lambda: give((690.0, 690.0, 690.0, 690.0)),
    ],
    "check_shares": [
        lambda: None,
        lambda: np.linspace(80, 100, 26),
        # shares of one
        lambda: np.linspace(0.8, 1, 25),
        # one share for all
        lambda: np.full(25, 90.0),
        # those outside
        lambda: np.linspace(0, 20, 25),
        # of the 50 % interval
        lambda: np.linspace(30, 70, 25),
    ],
    "check_plan": [
        lambda: None,
        lambda: dict.fromkeys((5, 32, 58), 90.0),
        # before any weighing
        lambda: dict.fromkeys((5, 20, 32, 45, 58), 90.0),
        # of the scaled outcome
        lambda: {5: 0.4, 20: 0.3, 32: 0.2, 45: 0.3, 58: 0.4},
        # for every day of the season
        lambda: {day: np.full(60, 90.0 - day / 10) for day in (5, 20, 32, 45, 58)},
    ],
}
