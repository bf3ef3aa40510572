"""Simulation-based calibration, a short one: model, likelihood, sampler and prediction fit together, and would show it.

The long one is a record, `book/data/calibration.json`, which the chapter on hierarchical networks reads and judges.
"""

import numpy as np
import pytest
from bookkit import models
from hbnn import fuse, sampling
from scipy import stats
from studies import calibration

SEEDS = range(1001, 1031)  # not those of the record
LEVEL = 0.01
SETTINGS = {"chains": 2, "draws": 200, "tune": 250, "target_accept": 0.8}


def find_p_value(monkeypatch, **options):
    """Of a Kolmogorov-Smirnov test of the log likelihood's ranks; `options` of a model that is not the truth's."""
    monkeypatch.setattr(calibration, "SHAPES", {"flat": (1, 30, (3, 3))})
    monkeypatch.setattr(calibration, "SETTINGS", SETTINGS)
    _, X, y = calibration.draw_truth("flat", 1)
    model = models.flat_bnn(X[0], y[0], n_hidden=(3, 3), **options)
    compiled = sampling.compile_nuts(fuse(model))
    monkeypatch.setattr(calibration, "compile_model", lambda name: compiled)
    ranks = np.array([calibration.compute("flat", seed)["rank of log likelihood"] for seed in SEEDS])
    return stats.kstest((ranks + 0.5) / (calibration.N_RANKS + 1), "uniform").pvalue


def test_the_truth_comes_from_the_prior():
    truths = [calibration.draw_truth("hierarchical", seed)[0] for seed in range(1001, 1201)]
    z = {k: np.stack([(truth[f"w{k}"] - truth[f"mu{k}"]) / truth[f"sd{k}"] for truth in truths]) for k in (1, 2, 3)}
    draws = {f"z{k}": values for k, values in z.items()}
    draws |= {f"mu{k}": np.stack([truth[f"mu{k}"] for truth in truths]) for k in (1, 2, 3)}
    draws |= {"w": np.stack([calibration.draw_truth("flat", seed)[0]["w1"] for seed in range(1001, 1201)])}
    draws |= {"sd": np.array([truth[f"sd{k}"] for truth in truths for k in (1, 2, 3)])}
    for name, values in draws.items():  # of a normal the mean square has an error of sqrt(2 / n)
        assert np.mean(values**2) == pytest.approx(1, abs=4 * np.sqrt(2 / values.size)), name
    assert draws["sd"].min() > 0


def test_ranks_of_the_truth_are_uniform(monkeypatch):
    assert find_p_value(monkeypatch) > LEVEL  # 0.56


@pytest.mark.slow
def test_a_wrong_prior_shows(monkeypatch):
    assert find_p_value(monkeypatch, prior_sd=3.0) < LEVEL  # 0.002
