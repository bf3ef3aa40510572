"""Wrong answers to the exercises of minibatch_checked.md: each check has to refuse all of its own and say why."""

import numpy as np
from bnn import data, report

STUDY = report.read_data("minibatch_seeds")["rows"]


def measure(batch):
    """Misfit, KL and accuracy of the study's first fit on some batch."""
    row = next(row for row in STUDY if row["batch"] == batch)
    return np.array([row["fit"], row["divergence"], row["accuracy"]])


WRONG = {
    "check_tempered": [
        lambda: None,
        lambda: measure("all"),  # no total_size, so that each point counts once
        lambda: measure("50"),  # batches with their total_size
        lambda: measure("forgotten") / [1, 1, 100],  # a share for the accuracy
        lambda: measure("forgotten")[:2],
    ],
    "check_many": [
        lambda: None,
        lambda: np.full(500, 0.5),  # the test points of the chapter
        lambda: np.full(5000, 0.5),  # never fitted
        lambda: np.where(data.flat_moons(seed=0, n_obs=25_000, train_share=0.8).y_test == 1, 0.999, 0.001),  # leaked
        lambda: np.full(5000, np.nan),
    ],
}
