"""Simulation-based calibration: stored ranks are uniform, a short version runs here, and a wrong model would show."""

import numpy as np
import pytest
from bnn import inference, models
from bnn.report import read_data
from scipy import stats
from studies import calibration

ROWS = read_data("calibration")["rows"]
ASKED = [
    (model, name)
    for model in calibration.SHAPES
    for name, value in next(row for row in ROWS if row["model"] == model).items()
    if name.startswith("rank of") and value is not None
]


def find_p_value(ranks):
    """Of a Kolmogorov-Smirnov test of ranks 0 … 100 against the uniform."""
    return stats.kstest((np.array(ranks) + 0.5) / (calibration.N_RANKS + 1), "uniform").pvalue


@pytest.mark.parametrize(("model", "name"), ASKED)
def test_the_stored_ranks_are_uniform(model, name):
    ranks = [row[name] for row in ROWS if row["model"] == model]
    assert len(ranks) == calibration.N_SIMULATIONS[model]
    assert find_p_value(ranks) > 0.01 / len(ASKED)


N_SHORT = 40
SEEDS = range(1001, 1001 + N_SHORT)  # not those of the table


def simulate(name):
    return [calibration.compute("flat", seed)[f"rank of {name}"] for seed in SEEDS]


def test_a_short_version_is_uniform():
    assert find_p_value(simulate("log likelihood")) > 0.001


def test_a_wrong_prior_shows(monkeypatch):
    _, X, y = calibration.draw_truth("flat", 1)
    wrong = inference.compile_nuts(models.flat_bnn(X[0], y[0], prior_sd=3.0, likelihood="fused"))
    monkeypatch.setattr(calibration, "compile_model", lambda model: wrong)
    assert find_p_value(simulate("log likelihood")) < 0.001
