"""Typical wrong answers to the exercises of chapter digits: each must be refused by its check."""

import numpy as np
from bnn import report

GOOD = [(3, 0.65, 0.06, "answers"), (9, 1.67, 0.06, "answers"), (4, 2.17, 0.06, "I don't know")]
FOUR = np.array([6.0, 2, 6, 12])
ERROR = np.array([6.9, 7.5, 4.4, 6.9])
KEYS = ("accuracy", "lpd")
LETTERS = np.array([13, 31, 21, 47]) / 1.2


def refuse(printed=FOUR, letters=LETTERS):
    """Shares refused, with an interval of two errors inside of 0 and 100."""
    return {
        name: (value, np.clip(value - 2 * ERROR, 0, None), np.clip(value + 2 * ERROR, None, 100), ERROR)
        for name, value in (("printed digits, other fonts", printed), ("letters, other fonts", letters))
    }


def choose(score):
    """An answer to the third exercise in which this score of the study's rows chooses."""
    fits = {}
    for row in report.read_data("digits")["rows"]:
        if row["method"] == "mean field" and (row["start_sd"], row["prior_sd"], row["n_steps"]) == (0.03, 1.0, 20_000):
            fits.setdefault(row["beta"], []).append(row)
    picked = [max(rows, key=lambda row: row[score]) for rows in zip(fits[1.0], fits[0.1], fits[0.001], strict=True)]
    gain = {key: [row[key] - plain[key] for row, plain in zip(picked, fits[1.0], strict=True)] for key in KEYS}
    return {"beta": [row["beta"] for row in picked]} | gain


WRONG = {
    "check_answers": [
        lambda: None,
        lambda: [],
        lambda: np.zeros((3, 4)),
        # the comparison the wrong way round
        lambda: [(*a[:3], "answers" if a[3] != "answers" else "I don't know") for a in GOOD],
        # no error
        lambda: [(*a[:2], 0.0, a[3]) for a in GOOD],
        # probabilities in place of the best guess
        lambda: [(0.85, *a[1:]) for a in GOOD],
        # the entropies of all draws, summed
        lambda: [(a[0], 200 * a[1], *a[2:]) for a in GOOD],
    ],
    "check_refused": [
        lambda: None,
        lambda: FOUR,
        # values without errors
        lambda: {name: found[0] for name, found in refuse().items()},
        # shares in place of percent
        lambda: refuse(printed=FOUR / 100, letters=LETTERS / 100),
        # judged on all ten fonts
        lambda: refuse(printed=np.array([5.0, 4, 5, 8])),
        # judged on the fonts that chose
        lambda: refuse(printed=np.full(4, 4.0)),
        # 5 % answered in place of 95 %
        lambda: refuse(printed=np.array([94.0, 96, 94, 92])),
    ],
    "check_beta": [
        lambda: None,
        lambda: 0.1,
        # the mean over seeds
        lambda: {"beta": 0.1, "accuracy": 1.6, "lpd": 0.18},
        # chosen by the test images
        lambda: choose("accuracy"),
        lambda: choose("lpd"),
        # scores in place of gains
        lambda: choose("lpd_validation") | {"accuracy": [97.0, 98.0, 97.5, 97.3, 98.3]},
        lambda: choose("lpd_validation") | {"lpd": [-0.0984, -0.0909, -0.0991, -0.1013, -0.0795]},
    ],
}
