"""Typical wrong answers to the exercises of book/hierarchical_nuts.md, which their checks refuse."""

import numpy as np


def make_scores(accuracy, lpd):
    return [{"accuracy": float(a), "lpd": float(b)} for a, b in zip(accuracy, lpd, strict=True)]


def make_noticed(shares):
    """Studies of which the given shares notice: bool (3, 2, 1000)."""
    return np.arange(1000) < 1000 * np.array(shares)[..., None]


WRONG = {
    "check_chains": [
        lambda: None,
        lambda: make_scores([88.4], [-0.305]),  # all chains as one
        lambda: make_scores([0.883, 0.884, 0.884, 0.886], [-0.304, -0.305, -0.304, -0.304]),  # shares, not percent
        lambda: make_scores([86.7, 86.6, 86.3, 86.6], [-0.385, -0.389, -0.396, -0.388]),  # mean score of single draws
        lambda: make_scores([94.0, 82.0, 90.0, 86.0], [-0.21, -0.33, -0.29, -0.32]),  # categories, not chains
        lambda: [88.3, 88.4, 88.4, 88.6],  # no lpd
    ],
    "check_studies": [
        lambda: None,
        lambda: np.array([[0.058, 0.05], [0.066, 0.113], [0.673, 0.98]]),  # shares
        lambda: make_noticed([[0.67, 0.98], [0.07, 0.11], [0.06, 0.05]]),  # sds from small to large
        lambda: make_noticed([[0.06, 0.002], [0.1, 0.01], [0.7, 0.46]]),  # the band of 100 simulations for both
        lambda: make_noticed([[0.06, 0.05], [0.06, 0.05], [0.06, 0.05]]),  # s forgotten
        lambda: make_noticed([[0.023, 0.024], [0.05, 0.05], [0.41, 0.78]]),  # max without abs
    ],
    "check_labels": [
        lambda: None,
        lambda: {"share": 0.5, "extreme": 0},  # over all categories at once
        lambda: {"share": np.full(18, 0.5), "extreme": 0},  # a statistic that does not look at the labels
        lambda: {"share": np.linspace(20, 30, 18), "extreme": 0},  # counts, not shares of draws
        lambda: {"share": np.linspace(0, 1, 18), "extreme": 1},  # one tail only
        lambda: {"share": np.linspace(0, 1, 18), "extreme": "none"},
    ],
}
