"""Three typical wrong answers to assignment 5."""

WRONG = [
    {
        "title": "the Cholesky factor on the wrong side",
        "cells": {
            "draw": """
def draw_normal(mean, cholesky, n_draws, *, seed):
    return mean + np.random.default_rng(seed).normal(size=(n_draws, len(mean))) @ cholesky
"""
        },
        "points": 12,
        "message": "rows of z times L transposed",
    },
    {
        "title": "likelihoods are multiplied",
        "cells": {
            "weigh": """
def weigh(p, y):
    likelihood = np.prod(np.where(y == 1, p, 1 - p), axis=1)
    weights = likelihood / likelihood.sum()
    return weights, 1 / np.sum(weights**2)
"""
        },
        "points": 13,
        "message": "With 4,000 labels likelihoods underflow: sum logs",
    },
    {
        "title": "the error of the mean for a further data set",
        "cells": {
            "next": """
def predict_next(differences):
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return differences.mean(), error, error
"""
        },
        "points": 13,
        "message": "The next one: its own variance plus that of the mean",
    },
]
