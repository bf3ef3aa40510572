"""Three typical wrong answers to assignment 1."""

WRONG = [
    {
        "title": "the likelihood is a mean over points",
        "cells": {
            "posterior": """
def log_posterior(w1, w2, w3, X, y):
    log_prior = sum(np.sum(-(w**2) / 2 - np.log(2 * np.pi) / 2) for w in (w1, w2, w3))
    logit = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    return log_prior + np.mean(y * logit - np.logaddexp(0, logit))
"""
        },
        "points": 12,
        "message": "a sum over points, no mean",
    },
    {
        "title": "the log of a probability that underflows",
        "cells": {
            "posterior": """
def log_posterior(w1, w2, w3, X, y):
    log_prior = sum(np.sum(-(w**2) / 2 - np.log(2 * np.pi) / 2) for w in (w1, w2, w3))
    p = forward(w1, w2, w3, X)
    return log_prior + np.sum(np.log(np.where(y == 1, p, 1 - p)))
"""
        },
        "points": 14,
        "message": "log(p) underflows, so write it with the logit",
    },
    {
        "title": "the sd of the batches for the error of their mean",
        "cells": {
            "difference": """
def more_ignorance(far, near):
    size = len(far) // 20
    starts = range(0, 20 * size, size)
    batches = [split(far[k : k + size])[1].mean() - split(near[k : k + size])[1].mean() for k in starts]
    return split(far)[1].mean() - split(near)[1].mean(), np.std(batches, ddof=1)
"""
        },
        "points": 13,
        "message": "sd (ddof=1) of the differences, over sqrt(20)",
    },
]
