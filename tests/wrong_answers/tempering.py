"""Typical wrong answers to the exercise of chapter tempering: each must be refused by its check."""

from bnn import report

KEYS = ("accuracy", "lpd")


def choose(score):
    """An answer to the exercise in which this score of the study's rows chooses."""
    fits = {}
    for row in report.read_data("digits")["rows"]:
        if row["method"] == "mean field" and (row["start_sd"], row["prior_sd"], row["n_steps"]) == (0.03, 1.0, 20_000):
            fits.setdefault(row["beta"], []).append(row)
    picked = [max(rows, key=lambda row: row[score]) for rows in zip(fits[1.0], fits[0.1], fits[0.001], strict=True)]
    gain = {key: [row[key] - plain[key] for row, plain in zip(picked, fits[1.0], strict=True)] for key in KEYS}
    return {"beta": [row["beta"] for row in picked]} | gain


WRONG = {
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
