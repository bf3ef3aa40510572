"""Typical wrong answers to the exercise of chapter own_file: each must be refused by its check."""

import numpy as np

COUNTS = (0, 1, 3, 6)
SHARES = np.array(
    [100, 100, 93, 100, 100, 89, 86, 87, 89, 80, 93, 91, 70, 100, 90, 82, 92, 83, 100, 100, 93, 100, 93, 92, 79]
)


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
        # all six rows passed on, whatever the count
        lambda: give((687.0, 518.0, 518.0, 518.0)),
        # the last in place of the difference: high alone
        lambda: give((1400.0, 1360.0, 1300.0, 1280.0)),
        # no number for one of them
        lambda: give((687.0, 630.0, None, 518.0)),
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
        # the hives in another order
        lambda: SHARES[::-1],
        lambda: np.roll(SHARES, 1),
        # those below 0.95, one end alone
        lambda: np.minimum(SHARES + 7, 100),
        # random shares
        lambda: np.random.default_rng(1).uniform(70, 100, size=25),
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
        # the numbers of the days before
        lambda: dict(zip((5, 20, 32, 45, 58), (129.8, 128.6, 132.4, 133.9, 130.1), strict=True)),
        # sums over the season
        lambda: dict(zip((5, 20, 32, 45, 58), (7717.0, 7943.0, 8032.0, 7805.0, 7788.0), strict=True)),
        lambda: dict(zip((5, 20, 32, 45, 58), (128.6, 132.4, None, 130.1, 129.8), strict=True)),
    ],
}
