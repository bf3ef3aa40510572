"""Three typical wrong answers to assignment 3."""

WRONG = [
    {
        "title": "weighted by the variances instead of the precisions",
        "cells": {
            "shrink": """
def shrink(x, s, mu, tau):
    return (x * s**2 + mu * tau**2) / (s**2 + tau**2), 1 / np.sqrt(1 / s**2 + 1 / tau**2)
"""
        },
        "points": 12,
        "message": "A huge tau ties nothing: the clinic's own estimate stays",
    },
    {
        "title": "the mean of the logs for the log of the mean",
        "cells": {
            "lpd": """
def lpd_clinics(p, y):
    return np.log(np.where(y == 1, p, 1 - p)).mean(axis=(0, 2))
"""
        },
        "points": 12,
        "message": "Mean over draws first (0.4 and 0.9)",
    },
    {
        "title": "two errors combined as if the clinics were others",
        "cells": {
            "paired": """
def compare(lpd, other):
    n = len(lpd)
    return lpd.mean() - other.mean(), np.hypot(lpd.std(ddof=1), other.std(ddof=1)) / np.sqrt(n)
"""
        },
        "points": 12,
        "message": "Two differences of 1: mean 1, and no scatter",
    },
]
