"""Wrong answers to the exercises of unpooled.md: each check has to refuse all of its own and say why."""

import numpy as np
from bnn import data

Y = data.legacy_rotated_moons().y_test[2]


def turn(change=0.012):
    """Fifty probabilities with patient 2's lpd, before and after: one of them changes."""
    before = np.where(Y == 1, np.exp(-0.307), 1 - np.exp(-0.307))
    return np.array([before, before - change * np.eye(50)[0]])


WRONG = {
    "check_turned": [
        lambda: None,
        lambda: 0.014,  # the largest change alone
        lambda: np.full(50, 0.005),  # the changes
        lambda: turn(0),  # not sampled again
        lambda: 100 * turn(),  # percent
        lambda: 2 * turn(),
        lambda: turn() / 2,
        lambda: turn().T,
        lambda: 1 - turn(),  # of the other class
        lambda: turn()[:, ::-1],  # in another order
        lambda: np.array([turn()[0], 1 - turn()[1]]),  # the new moments were not turned
        lambda: turn(0.06),  # not the same posterior
        lambda: turn() * np.nan,
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
        lambda: np.full(3, 7.8),  # the mean, three times
        lambda: np.array([11.7, 10.4, 6.9]),  # differences of probabilities
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
        lambda: (np.array([6.5, 8.7, 8.7]), 1.015),  # patients in reverse order
        lambda: (np.array([10.0, 9.6, 9.1]), 1.015),  # 400 points
        lambda: (np.full(3, 8.0), 1.015),  # the mean, three times
    ],
}
