"""Typical wrong answers to the exercises of book/informed_priors.md, which their checks refuse."""

import numpy as np

ERRORS = np.array([0.5, 0.3, 0.2])
KINDS, SIZES = {"alike": 16, "mirrored": 8, "straight": 8}, (5, 10, 20)


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
    ],
    "check_kept": [
        lambda: None,
        lambda: np.array([0.0068, -0.0004]),  # means over newcomers
        lambda: np.zeros((2, 16)),  # all draws kept
        lambda: -0.35 + np.linspace(-0.1, 0.1, 32).reshape(2, 16),  # not subtracted
        lambda: np.full((2, 16), np.nan),
    ],
    "check_evidence": [
        lambda: None,
        lambda: {"learned": 1.0},
        lambda: make_ratios(sizes=(20,)),  # one size
        lambda: make_ratios(kinds=("alike",)),
        lambda: make_ratios(shift=-9.2),  # the sum of likelihoods for N(0, 1), not their mean
        lambda: make_ratios(shift=17.0),  # the mean of log likelihoods for N(0, 1)
        lambda: make_ratios(sign=-1),  # N(0, 1) minus the learned prior
    ],
}
