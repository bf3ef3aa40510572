"""Three typical wrong answers to assignment 2."""

WRONG = [
    {
        "title": "the error of independent draws for draws that remember",
        "cells": {
            "mcse": """
def mcse_and_ess(chains, size):
    mcse = chains.std(ddof=1) / np.sqrt(chains.size)
    return mcse, chains.var(ddof=1) / mcse**2
"""
        },
        "points": 13,
        "message": "Four batch means: their sd over sqrt(4)",
    },
    {
        "title": "split R-hat alone decides",
        "cells": {
            "judge": """
def judge(run):
    return "use" if split_rhat(run) < 1.01 else "too few"
"""
        },
        "points": 12,
        "message": "ask for the ESS",
    },
    {
        "title": "total_size is forgotten",
        "cells": {
            "elbo": """
def log_normal(x, mean, sd):
    return -((x - mean) ** 2) / (2 * sd**2) - np.log(sd) - np.log(2 * np.pi) / 2


def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_draws):
        theta = rng.normal(m, s)
        points = y if batch is None else rng.choice(y, size=batch, replace=False)
        found.append(log_normal(points, theta, 1).sum() + log_normal(theta, 0, 1) - log_normal(theta, m, s))
    return np.array(found)
"""
        },
        "points": 14,
        "message": "their sum counts N / B = 2 times (total_size)",
    },
]
