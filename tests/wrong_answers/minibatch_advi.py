"""Wrong answers to the exercises of minibatch_advi.md: each check has to refuse all of its own and say why."""

import numpy as np
from bnn import data, report

STUDY = report.read_data("minibatch_seeds")["rows"]
SIZE = {"25": 25, "50": 50, "200": 200, "all": 500}


def rescale(factor):
    """Printed losses of the study times factor(size of a batch): dict of batch to (seed,) array."""
    printed = {b: [r["printed"] for r in STUDY if r["batch"] == b and r["start_sd"] == 0.1] for b in SIZE}
    return {batch: np.array(values) * factor(SIZE[batch]) for batch, values in printed.items()}


WRONG = {
    "check_rescaled": [
        lambda: None,
        lambda: rescale(lambda size: 500 / size)["25"],  # one batch only
        lambda: rescale(lambda size: 1),  # as printed
        lambda: rescale(lambda size: size),  # times B
        lambda: rescale(lambda size: size / 500),  # divided once more
        lambda: {batch: values.mean() for batch, values in rescale(lambda size: 500 / size).items()},  # means
        lambda: {batch: np.full(10, v.mean()) for batch, v in rescale(lambda size: 500 / size).items()},  # means
        lambda: {batch: v[::-1] for batch, v in rescale(lambda size: 500 / size).items()},  # the seeds in reverse order
        lambda: {
            **rescale(lambda size: 500 / size),
            "25": rescale(lambda size: 250 / size)["25"],
        },  # one factor is wrong
    ],
    "check_widths": [
        lambda: None,
        lambda: np.array([3.5, 0.03]),  # 500 over 5000
        lambda: np.array([1.0, 0.0]),  # the same fit twice
        lambda: np.array([0.1, 0.03]),  # a tenth, not its root
        lambda: np.array([0.3, -0.03]),  # 500 minus 5000
    ],
    "check_better": [
        lambda: None,
        lambda: np.full(500, 0.5),  # other points
        lambda: np.full(10_000, 0.5),  # never fitted
        lambda: np.where(
            data.flat_moons(seed=0, n_obs=210_000, train_share=20 / 21).y_test == 1, 0.999, 0.001
        ),  # leaked
        lambda: np.full(10_000, np.nan),
    ],
}
