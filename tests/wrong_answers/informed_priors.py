"""Typical wrong answers to the exercises of book/informed_priors.md, which their checks refuse."""

import numpy as np

CHAINS = np.array([0.8, 0.9, 1.1, 1.2])
METHODS, KINDS, SIZES = ("draws", "narrow normal"), {"alike": 16, "mirrored": 8, "straight": 8}, (5, 10, 20)


def make_ratios(methods=METHODS, sizes=SIZES, shift=0.0, sign=1):
    """Log evidence ratios near those of the chapter, with something wrong."""
    sizes_of = {(method, kind, n): KINDS[kind] for method in methods for kind in KINDS for n in sizes}
    return {case: sign * (0.05 * case[2] + shift + np.linspace(-1, 1, size)) for case, size in sizes_of.items()}


WRONG = {
    "check_widened": [
        lambda: None,
        lambda: np.array([9.9, 4.0, 0.9]),  # means over chains
        lambda: np.outer([0.099, 0.040, 0.0091], CHAINS),  # shares
        lambda: np.outer([17.0, 17.1, 17.4], CHAINS),  # divided
        lambda: np.outer([15.0, 14.9, 14.8], CHAINS),  # layer 3 widened instead
        lambda: np.outer([12.2, 9.9, 6.7], CHAINS),  # the variance multiplied
        lambda: np.outer([12.6, 8.8, 3.3], CHAINS),  # layer 1 only
    ],
    "check_kept": [
        lambda: None,
        lambda: np.array([0.0068, -0.0004]),  # means over categories
        lambda: np.zeros((2, 16)),  # all draws kept
        lambda: -0.35 + np.linspace(-0.1, 0.1, 32).reshape(2, 16),  # not subtracted
        lambda: np.full((2, 16), np.nan),
    ],
    "check_evidence": [
        lambda: None,
        lambda: {"draws": 1.0, "narrow normal": 1.3},
        lambda: make_ratios(sizes=(20,)),  # one size
        lambda: make_ratios(methods=("draws",)),
        lambda: make_ratios(shift=-9.2),  # the sum of likelihoods for N(0, 1), not their mean
        lambda: make_ratios(shift=17.0),  # the mean of log likelihoods for N(0, 1)
        lambda: make_ratios(sign=-1),  # N(0, 1) minus the learned prior
    ],
}
