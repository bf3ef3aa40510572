"""Typical wrong answers to the exercises of chapter replication: each must be refused by its check."""

import numpy as np

rng = np.random.default_rng(1)
MU = 0.074 + 0.003 * rng.normal(size=(4, 50))
TAU = 0.0068 * np.abs(rng.normal(size=(4, 50)))


def vary(**changed):
    """An answer to the third exercise that would do, but for what is changed in one of its variants."""
    names = ("priors ten times as wide", "each its own error", "the first ten alone")
    good = {name: {"mu": MU + 1e-4 * i, "tau": TAU, "converged": True} for i, name in enumerate(names, 1)}
    good["the first ten alone"] |= changed
    return {"as above": {"mu": MU, "tau": TAU, "converged": True}} | good


WRONG = {
    "check_designs": [
        lambda: None,
        lambda: np.zeros((2, 3)),
        # the errors of two methods added, where their squares should be
        lambda: {"accuracy": (0.1955, 0.46, 111.0), "lpd": (0.0027, 0.0099, 269.0)},
        # standard deviations in place of standard errors
        lambda: {"accuracy": (0.874, 1.458, 56.0), "lpd": (0.0121, 0.0313, 133.0)},
        # the ratio of the errors, not squared
        lambda: {"accuracy": (0.1955, 0.3259, 33.0), "lpd": (0.0027, 0.0070, 52.0)},
        # paired and unpaired exchanged
        # one sd of the two, and a variance
        lambda: {"accuracy": (0.1955, 0.29, 44.0), "lpd": (0.0027, 0.0065, 116.0)},
        # paired and unpaired exchanged
        lambda: {"accuracy": (0.3259, 0.1955, 7.2), "lpd": (0.0070, 0.0027, 3.0)},
        # the difference of the two errors in place of the error of the difference
        lambda: {"accuracy": (0.0038, 0.3259, 147_000), "lpd": (0.0027, 0.0070, 134.0)},
        # texts for the table
        lambda: {"accuracy": ("0.1955", "0.3259", "56"), "lpd": ("0.0027", "0.0070", "133")},
    ],
    "check_seen": [
        lambda: None,
        lambda: np.ones(4),
        # percent
        lambda: np.array([[100.0, 100, 100, 100], [87, 99, 100, 100], [71, 81, 99.6, 100]]),
        # the loss, looked for on the side of a gain
        lambda: np.array([[1, 1, 1, 1.0], [0.87, 0.99, 1, 1], [0, 0, 0, 0]]),
        # above zero, in place of two errors above zero
        lambda: np.array([[1, 1, 1, 1.0], [1, 1, 1, 1], [1, 1, 1, 1]]),
        # the standard deviation in place of the standard error
        lambda: np.array([[0.95, 0.96, 0.98, 1], [0.69, 0.72, 0.75, 0.9], [0.5, 0.4, 0.3, 0.1]]),
        # columns in another order than the sizes
        lambda: np.array([[1, 1, 1, 1.0], [0.87, 1, 0.99, 1], [0.71, 1, 0.81, 1]]),
        # the sd with ddof=0
        lambda: np.array([[1, 1, 1, 1.0], [0.95, 0.99, 1, 1], [0.85, 0.89, 1, 1]]),
        # sizes of 3, 4, 6 and 11
        lambda: np.array([[1, 1, 1, 1.0], [0.93, 1, 1, 1], [0.81, 0.93, 1, 1]]),
    ],
    "check_variants": [
        lambda: None,
        lambda: {"as above": {"mu": MU, "tau": TAU, "converged": True}},
        # means in place of draws
        lambda: vary(mu=0.0738, tau=0.0057),
        # no verdict
        lambda: vary(converged=None),
        # one chain four times, and its mean for all draws
        lambda: vary(mu=np.repeat(MU[:1], len(MU), axis=0)),
        lambda: vary(tau=np.full(TAU.shape, TAU.mean())),
        # twice the spread between data sets
        lambda: vary() | {"as above": {"mu": MU, "tau": 2 * TAU, "converged": True}},
        # the logarithm of tau
        lambda: vary(tau=np.log(TAU)),
        # separate minus hierarchical
        lambda: vary(mu=-MU),
        # points of accuracy in place of nats
        lambda: vary(mu=40 * MU),
        # nothing was changed
        lambda: vary(mu=MU),
        # standard deviations in place of standard errors
        lambda: vary(mu=0.074 + 4.5 * (MU - 0.074), tau=4.5 * TAU),
        # variances
        lambda: vary(tau=TAU**2),
        # one chain's mean for all draws
        lambda: vary(mu=np.full_like(MU, 0.0738)),
    ],
}

ALSO_RIGHT = {"check_variants": [vary, lambda: vary(mu=list(MU + 2e-4), tau=1.5 * TAU)]}
