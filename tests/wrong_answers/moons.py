"""Wrong answers to the exercises of moons.md: each check has to refuse all of its own and say why."""

import numpy as np
from bnn import data

LEGACY = data.legacy_rotated_moons()
TRUTH = np.array([826, 819, 825, 830, 812]) / 9  # labels of 900 that the truth names, in percent
LAG = np.array([17, 7, 9, 17, 1]) / 9  # and how many fewer the vote


WRONG = {
    "check_limits": [
        lambda: None,
        lambda: np.array([0.9994, 0.9710, 0.9146, 0.8630, 0.8233]),  # shares, not percent
        lambda: np.array([99.94, 97.07, 91.01, 85.9, 82.0]),  # 50 angles in place of the whole arc
        lambda: np.array([82.33, 86.30, 91.46, 97.10, 99.94]),  # most noise first
        lambda: np.zeros((3, 2)),
        lambda: np.array([99.94, 97.10, 91.46, 60.0, 51.0]),  # no limit where the question asks
        lambda: [99.94, 97.10, 91.46, 86.30],  # one noise is missing
    ],
    "check_lag": [
        lambda: None,
        lambda: np.zeros(5),
        lambda: np.array([0.012, 0.011, 0.010, 0.013, 0.009]),  # shares, not points
        lambda: np.array([-1.2, -1.0, -0.4, -2.1, -1.3]),  # the classifier minus the truth
        lambda: np.array([36.1, 34.9, 38.2, 35.0, 33.3]),  # nothing was turned before pooling
        lambda: np.array([4.1, 3.9, 5.2, 3.0, 4.3]),  # one fit per group
        lambda: np.array([1.2, 1.0, 2.1, 1.3]),  # a data set is missing
        lambda: LAG[::-1],  # shuffled pairs
        lambda: TRUTH.mean() - (TRUTH - LAG),  # unpaired: the mean of the truth
        lambda: np.roll(TRUTH, 1) - (TRUTH - LAG),  # the truth of another data set
        lambda: np.full(5, LAG.mean()),  # one for all
        lambda: 1.1 * LAG,
    ],
    "check_with_shape": [
        lambda: None,
        lambda: np.full((18, 50), 0.5),  # not joined
        lambda: np.full(900, 0.5),  # angles that are not weighed by anything
        lambda: LEGACY.y_test.ravel().astype(float),  # the answers themselves
        lambda: data.bayes_probability(LEGACY.X_test.reshape(-1, 2), LEGACY, 0.3, 0),  # one angle for all categories
        lambda: np.full(900, np.nan),
    ],
}
