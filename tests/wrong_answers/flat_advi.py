"""Wrong answers to the exercises of flat_advi.md: each check has to refuse all of its own and say why."""

import numpy as np
from bnn import data, report, score

WIDE = [row for row in report.read_data("flat_advi_seeds")["rows"] if row["start_sd"] != 0.1]
MOONS = data.flat_moons(seed=0)


def choose(key, n_tried, sign=1, n_repeats=2000):
    """Accuracies of fits chosen by some key of theirs; the exercise wants the lowest loss among five."""
    rng = np.random.default_rng(1)
    tried = [rng.choice(20, size=n_tried, replace=False) for _ in range(n_repeats)]
    return np.array([min((WIDE[i] for i in five), key=lambda f: sign * f[key])["accuracy"] for five in tried])


def rate(sure, n=20_000):
    """Rates of n networks: 0.2 % of them are right at 95 % of the points, all are equally sure."""
    right = np.where(np.arange(n) < 0.002 * n, 0.95, 0.7)
    return np.array([right, np.full(n, sure)])


def answer_truth():
    """The true probabilities at the test points and opposite them; an answer that looks like a good one."""
    return np.array([data.bayes_probability(sign * MOONS.X_test, MOONS, 0.2) for sign in (1, -1)])


def flip_sign():
    """An odd network: the ones were appended before the sign was turned."""
    p = np.clip(answer_truth()[0], 1e-6, 1 - 1e-6)
    assert score.score(p, MOONS.y_test)["lpd"] > -0.2, "this answer is to be wrong in one thing only"
    return np.array([p, 1 - p])


WRONG = {
    "check_best": [
        lambda: None,
        lambda: 94.2,  # a mean, without what its error could be computed from
        lambda: choose("accuracy", 5, sign=-1),  # chosen by the test accuracy
        lambda: choose("loss", 5, sign=-1),  # the highest loss
        lambda: choose("loss", 1),  # one fit
        lambda: choose("loss", 5) / 100,  # shares, not percent
        lambda: choose("loss", 5, n_repeats=200),
    ],
    "check_prior": [
        lambda: None,
        lambda: rate(0.87)[0],  # the share right alone
        lambda: np.array([1 - rate(0.87)[0], rate(0.87)[1]]),  # one orientation
        lambda: 100 * rate(0.87),  # percent, not shares
        lambda: rate(0.74),  # not doubled
        lambda: rate(0.81),  # the variance doubled
        lambda: rate(0.8625),  # the last two layers alone
    ],
    "check_biased": [
        lambda: None,
        lambda: np.full(500, 0.5),  # one row
        lambda: np.array([answer_truth()[0]] * 2),  # the points were not turned
        flip_sign,
        lambda: np.array([np.full(500, 0.4), np.full(500, 0.5)]),  # not fitted
    ],
}
