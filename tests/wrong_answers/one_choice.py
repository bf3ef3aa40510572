"""Typical wrong answers to the exercises of chapter one_choice: each must be refused by its check."""

import numpy as np
from bnn import report
from scipy import stats

SEPARATE = "unpooled, N(0, 1)"


def find_p(key="accuracy"):
    """p of the two-sided t test of each changed level's gain, smallest first."""
    scores = {}
    for row in report.read_data("one_choice")["rows"]:
        scores.setdefault((row["choice"], row["level"]), {})[row["method"], row["data_seed"]] = row[key]
    p, default = {}, scores.pop(("default", "default"))
    for where, own in scores.items():
        seeds = [seed for method, seed in own if method == "hierarchical"]
        gains = [own["hierarchical", s] - (default | own)[SEPARATE, s] for s in seeds]
        p[where] = stats.ttest_1samp(np.array(gains), 0).pvalue
    return dict(sorted(p.items(), key=lambda item: item[1]))


P = find_p()
RIGHT = [where for k, where in enumerate(P) if list(P.values())[k] <= 0.05 / (len(P) - k)]

WRONG = {
    "check_kept": [
        lambda: None,
        lambda: [],
        # each judged alone
        lambda: [where for where in P if P[where] < 0.05],
        # Bonferroni's limit for all
        lambda: [where for where in P if P[where] < 0.05 / len(P)],
        # Benjamini and Hochberg's limits
        lambda: [where for k, where in enumerate(P, 1) if P[where] < 0.05 * k / len(P)],
        # the largest p first
        lambda: RIGHT[::-1],
        # the levels that fall
        lambda: [where for where in P if where not in RIGHT],
        # the gains in lpd
        lambda: [where for where in find_p("lpd") if find_p("lpd")[where] < 0.05 / 23],
        # texts in place of levels
        lambda: [" ".join(where) for where in RIGHT],
        # the default among them
        lambda: [("default", "as in this book"), *RIGHT],
        # one left out
        lambda: RIGHT[:-1],
        # one twice
        lambda: [*RIGHT, RIGHT[0]],
    ],
}
