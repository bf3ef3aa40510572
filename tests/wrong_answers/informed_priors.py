"""Typical wrong answers to the exercises of book/informed_priors.md, which their checks refuse."""

import numpy as np

ERRORS = np.array([0.5, 0.3, 0.2])
KINDS, SIZES = {"alike": 16, "mirrored": 8, "straight": 8}, (5, 10, 20)


RATIOS = {
    "alike": [0.6, 2.4, 3.0, 0.5, 0.7, -0.8, 2.3, 2.0, 2.2, 1.9, 0.3, 1.9, 2.1, 2.4, -1.8, 0.4],
    "mirrored": [-2.0, 0.4, 1.1, -0.7, -3.0, -2.6, 0.3, 1.7],
    "straight": [-2.4, -3.5, 0.0, 0.8, -0.9, 0.6, 0.2, 0.0],
}
ALL = np.array(
    [-0.40, -0.30, -0.38, -0.38, -0.44, -0.35, -0.25, -0.30, -0.33, -0.30, -0.38, -0.34, -0.39, -0.28, -0.48, -0.31]
)


def keep(scores):
    """lpd of the sixteen with all draws, and with few: (3, 16)."""
    return scores + 0.01 * np.random.default_rng(1).normal(size=(3, 16))


def compare(change):
    """Log evidence ratios as on the page, changed: those of 5 and 10 points are smaller."""
    return {(kind, n): change(n / 20 * np.array(values)) for kind, values in RATIOS.items() for n in SIZES}


def make_shares(*share):
    """Percentages with their Monte Carlo errors: (factor, 2)."""
    return np.stack([share, ERRORS], axis=1)


def make_ratios(kinds=KINDS, sizes=SIZES, shift=0.0, sign=1):
    """Log evidence ratios near those of the chapter, with something wrong."""
    cases = [(kind, n) for kind in kinds for n in sizes]
    return {(kind, n): sign * (0.05 * n + shift + np.linspace(-1, 1, KINDS[kind])) for kind, n in cases}


WRONG = {
    "check_widened": [
        lambda: None,
        lambda: np.array([9.9, 4.0, 0.9]),  # no errors
        lambda: make_shares(0.099, 0.040, 0.0091),  # shares
        lambda: make_shares(17.0, 17.1, 17.4),  # divided
        lambda: make_shares(15.0, 14.9, 14.8),  # layer 3 widened instead
        lambda: make_shares(12.2, 9.9, 6.7),  # the variance multiplied
        lambda: make_shares(12.6, 8.8, 3.3),  # layer 1 only
        lambda: make_shares(9.6, 4.2, 1.2)[:, [0, 0]],  # the share for its error
        lambda: make_shares(9.6, 4.2, 1.2) * [1, 100],  # the error in a hundredth of a percent
        lambda: make_shares(4.8, 2.1, 0.6),  # of twice as many
    ],
    "check_kept": [
        lambda: None,
        lambda: np.array([-0.349, -0.342, -0.349]),  # means over newcomers
        lambda: np.tile(ALL, (3, 1)),  # all draws kept
        lambda: keep(0 * ALL),  # subtracted
        lambda: np.full((3, 16), np.nan),
        lambda: keep(ALL)[1:],  # without the one of all draws
        lambda: keep(ALL[::-1]),  # the newcomers in reverse order
        lambda: np.stack([keep(ALL)[0], np.roll(ALL, 1), ALL[::-1]]),  # of other newcomers each time
        lambda: keep(np.full(16, ALL.mean())),  # their mean for each
        lambda: keep(np.exp(ALL)),  # probabilities
        lambda: keep(2 * ALL),
        lambda: np.random.default_rng(1).uniform(-0.48, -0.25, size=(3, 16)),
    ],
    "check_evidence": [
        lambda: None,
        lambda: {"learned": 1.0},
        lambda: make_ratios(sizes=(20,)),  # one size
        lambda: make_ratios(kinds=("alike",)),
        lambda: make_ratios(shift=-9.2),  # the sum of likelihoods for N(0, 1), not their mean
        lambda: make_ratios(shift=17.0),  # the mean of log likelihoods for N(0, 1)
        lambda: make_ratios(sign=-1),  # N(0, 1) minus the learned prior
        lambda: make_ratios(),  # not those of these newcomers
        lambda: compare(lambda values: 2 * values),
        lambda: compare(lambda values: values / np.log(10)),
        lambda: compare(lambda values: values[::-1]),  # the newcomers in reverse order
        lambda: compare(lambda values: np.full(len(values), values.mean())),  # means, for each
    ],
}
