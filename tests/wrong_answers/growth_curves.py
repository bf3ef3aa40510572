"""Typical wrong answers to the exercises of chapter growth_curves: each must be refused by its check."""

import numpy as np

RATINGS = np.array(
    [
        [1.35, 0.89, 1.09, 1.14, 0.75, 0.76, 0.83, 0.87, 1.07],
        [-0.59, -0.27, -0.47, -0.75, -2.36, 0.26, 0.05, 0.23, 0.32],
    ]
)
PAIRS = [(a, b) for a in range(0, 20, 2) for b in range(a + 2, 20, 2)]


def plan(best=(10, 18), scale=1.0):
    """sds of all pairs of days: most for (0, 2), least for `best`."""
    sds = {pair: 0.3 - 0.005 * sum(pair) for pair in PAIRS}
    return {pair: scale * (0.1 if pair == best else sd) for pair, sd in sds.items()}


WRONG = {
    "check_days": [
        lambda: None,
        lambda: np.ones((4, 2)),
        # lower end over upper end
        lambda: 1 / np.array([4.2, 3.4, 2.1, 1.4]),
        # all weighings up to that day
        lambda: np.array([4.2, 3.2, 2.1, 2.3]),
        # widths in grams
        lambda: np.array([270.0, 300.0, 150.0, 60.0]),
        # of the scaled logarithm
        lambda: np.array([2.2, 2.0, 1.2, 0.6]),
        # the band of the mean, without noise and without the day 21
        lambda: np.array([4.2, 3.4, 2.1, 1.01]),
        # in percent
        lambda: np.array([422.0, 322.0, 231.0, 128.0]),
        # the ends of 95 %
        lambda: np.array([4.2, 3.2, 2.3, 1.28]) ** 1.19,
    ],
    "check_ratings": [
        lambda: (None, None),
        # one chick of too few weighings
        lambda: (np.ones(10), np.ones(10)),
        # not per weighing
        lambda: (np.full(9, 7.0), np.full(9, 1.0)),
        # densities, of which one is 0
        lambda: (np.full(9, 1.0), np.append(np.ones(8), -np.inf)),
        # nothing was passed as seen
        lambda: (np.full(9, 1.0), np.full(9, -1.2)),
        # one for all
        lambda: np.repeat(np.mean(RATINGS, axis=1), 9).reshape(2, 9),
        # the chicks in reverse order
        lambda: RATINGS[:, ::-1],
        # early and later exchanged
        lambda: RATINGS[::-1],
        # bits, not nats
        lambda: RATINGS / np.log(2),
        # the sum over draws, not their mean
        lambda: np.add(RATINGS, [[1.4], [0]]),
    ],
    "check_plan": [
        lambda: None,
        lambda: {(0, 18): 0.2},
        # variances
        lambda: plan(scale=0.1),
        # days not scaled
        lambda: dict.fromkeys(PAIRS, 0.2),
        # the widest for the narrowest
        lambda: {pair: -sd + 0.6 for pair, sd in plan().items()},
        # the best two without a late one
        lambda: plan(best=(4, 8)),
        # sds in percent
        lambda: plan(scale=57.5),
        # each an array, not its mean
        lambda: {pair: np.full(4, sd) for pair, sd in plan().items()},
    ],
}
