"""Three typical wrong answers to assignment 4."""

WRONG = [
    {
        "title": "the signs go to the first layer alone",
        "cells": {
            "relabel": """
def relabel(w1, w2, order, sign):
    return w1[:, order] * sign, w2[order]
"""
        },
        "points": 12,
        "message": "What the network says must not change: order and sign on both w1 and w2",
    },
    {
        "title": "the error of independent draws",
        "cells": {
            "share": """
def share_larger(a, b):
    share = np.mean(a > b)
    return share, np.sqrt(share * (1 - share) / a.size)
"""
        },
        "points": 12,
        "message": "draws that remember count less than independent ones",
    },
    {
        "title": "units are assigned without their signs",
        "cells": {
            "align": """
def align_units(w1, w2, ref1, ref2):
    similar = w1.T @ ref1 + np.outer(w2, ref2)
    units, places = linear_sum_assignment(similar, maximize=True)
    return units[np.argsort(places)], np.ones(len(units), dtype=int)
"""
        },
        "points": 13,
        "message": "by |s| of both layers, then take the sign of s",
    },
]
