"""Typical wrong answers to the exercises of book/hierarchical_nuts.md, which their checks refuse."""

import numpy as np


def make_scores(accuracy, lpd):
    return [{"accuracy": float(a), "lpd": float(b)} for a, b in zip(accuracy, lpd, strict=True)]


def share(y, invented):
    """Share of draws with more ones than a patient's labels have, ties one half."""
    ones, theirs = y.sum(axis=1), invented.sum(axis=3)
    return ((theirs > ones) + 0.5 * (theirs == ones)).mean(axis=(0, 1))


def rate(shares):
    return shares, int(np.sum((shares < 0.05) | (shares > 0.95)))


def give(compare):
    """A function such as the exercise asks for, from one that returns (share, extreme)."""
    return lambda y, invented: dict(zip(("share", "extreme"), compare(y, invented), strict=True))


WRONG = {
    "check_chains": [
        lambda: None,
        lambda: make_scores([88.4], [-0.305]),  # all chains as one
        lambda: make_scores([0.883, 0.884, 0.884, 0.886], [-0.304, -0.305, -0.304, -0.304]),  # shares, not percent
        lambda: make_scores([86.7, 86.6, 86.3, 86.6], [-0.385, -0.389, -0.396, -0.388]),  # mean score of single draws
        lambda: make_scores([94.0, 82.0, 90.0, 86.0], [-0.21, -0.33, -0.29, -0.32]),  # categories, not chains
        lambda: [88.3, 88.4, 88.4, 88.6],  # no lpd
        lambda: make_scores([88.4] * 4, [-0.305] * 4),  # one chain, four times
    ],
    "check_ties": [
        lambda: None,
        lambda: np.array([1.0, 0.9, 0.77, 0.53, 0.51]),  # shares, not percent
        lambda: np.array([50.2, 49.6, 50.9, 50.3, 49.8]),  # a mu for each patient
        lambda: np.array([51.1, 52.7, 76.9, 90.0, 100.0]),  # sigmas from large to small
        lambda: np.array([100.0, 100.0, 100.0, 100.0, 100.0]),  # one z for both
        lambda: np.array([100.0, 95.0, 82.0, 69.0, 52.0]),  # the last layer only
        lambda: 71.0,  # one sigma
    ],
    "check_labels": [
        lambda: None,
        lambda: {"share": np.linspace(0, 1, 18), "extreme": 2},  # what the function returns
        lambda: give(lambda y, invented: (0.5, 0)),  # over all categories at once
        lambda: give(lambda y, invented: (np.full(18, 0.5), 0)),  # a statistic that does not look at the labels
        lambda: give(lambda y, invented: (20 + y.sum(axis=1) / 50, 0)),  # counts, not shares of draws
        lambda: give(lambda y, invented: (share(y, invented), int(np.sum(share(y, invented) < 0.05)))),  # one tail only
        lambda: give(lambda y, invented: (share(y, invented), "none")),
        lambda: give(lambda y, invented: rate(np.random.default_rng(1).random(18))),  # random numbers
        lambda: give(lambda y, invented: rate(share(y[::-1], invented))),  # another patient's labels
        lambda: give(lambda y, invented: rate(np.full(18, np.mean(invented.sum(axis=3) > y.sum(axis=1))))),
    ],
}
