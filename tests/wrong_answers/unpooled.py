"""Wrong answers to the exercises of unpooled.md: each check has to refuse all of its own and say why."""

import numpy as np

WRONG = {
    "check_turned": [
        lambda: None,
        lambda: np.full(50, 0.005),  # all fifty changes, not the largest
        lambda: 0.0,  # not sampled again: the old draws, the old points
        lambda: -0.004,  # a difference with its sign
        lambda: 0.71,  # the new moments were not turned
        lambda: 0.0035,  # the mean of the fifty changes
        lambda: float("nan"),
    ],
    "check_halves": [
        lambda: None,
        lambda: 7.8,  # the mean over patients
        lambda: np.array([9.6, 8.3]),  # a patient is missing
        lambda: np.zeros(3),  # both fits from the same half
        lambda: np.array([0.096, 0.083, 0.057]),  # shares, not percent
        lambda: np.array([48.0, 51.0, 47.0]),  # labels of the other half
        lambda: np.array([5.2, 9.6, 8.7]),  # patients in reverse order
        lambda: np.array([4.3, 4.8, 2.6]),  # over the number of both halves
        lambda: np.cumsum([8.7, 9.6, 5.2]),  # summed up
        lambda: np.full(3, np.nan),
    ],
    "check_bend": [
        lambda: None,
        lambda: np.array([8.0, 8.5, 7.9]),  # no verdict beside it
        lambda: (np.array([8.0, 8.5, 7.9]), 1.3),  # chains that did not meet
        lambda: (np.array([0.080, 0.085, 0.079]), 1.011),  # shares, not percent
        lambda: (np.array([2.1, 2.9, 2.6]), 1.004),  # still 50 points
        lambda: (np.cumsum([8.7, 8.7, 6.5]) / 2, 1.015),  # summed up
        lambda: (np.array([3.6, 4.9, 4.1]), 1.004),  # still 50 points, and three patients that bend more than most
        lambda: (8.26, 1.011),  # a mean of which no error can be told
        lambda: (np.full(3, np.nan), 1.011),
    ],
}
