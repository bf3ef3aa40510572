"""Three typical wrong answers to assignment 6."""

WRONG = [
    {
        "title": "ties are forgotten",
        "cells": {
            "auroc": """
def auroc(inside, outside):
    return np.mean(outside[:, None] > inside)
"""
        },
        "points": 12,
        "message": "a tie counts one half",
    },
    {
        "title": "a quantile between images",
        "cells": {
            "threshold": """
def choose_threshold(doubt, share):
    return np.quantile(doubt, share)
"""
        },
        "points": 12,
        "message": "which is 80 %, so no interpolation",
    },
    {
        "title": "the plain quantile for the conformal limit",
        "cells": {
            "conformal": """
def conformal_limit(scores, level):
    return np.quantile(scores, level)
"""
        },
        "points": 11,
        "message": "the plain quantile's is below: n + 1, not n",
    },
]
