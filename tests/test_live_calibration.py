"""The live sampler's calibration by simulation: the record is uniform, and a short run shows a wrong prior."""

import json

import lots
import numpy as np
import pytest
from bnn.report import DATA
from scipy import stats
from studies import live_calibration

SEEDS = range(1001, 1041)  # not those of the record
N_TESTS = 4 + 7  # quantities in the flat and the hierarchical network


def find_p_value(ranks):
    """Of a Kolmogorov-Smirnov test; ranks run from 0 to 100."""
    return stats.kstest((np.array(ranks) + 0.5) / (live_calibration.N_RANKS + 1), "uniform").pvalue


def simulate(monkeypatch, **options):
    """Ranks of the log likelihood in small networks; `options` of a model that is not the truth's."""
    monkeypatch.setattr("studies.calibration.SHAPES", shapes := {"flat": (1, 30, (3, 3))})
    monkeypatch.setattr(live_calibration, "SHAPES", shapes)
    monkeypatch.setattr(live_calibration, "SETTINGS", {"draws": 200, "tune": 200})
    honest = live_calibration.describe_model
    monkeypatch.setattr(live_calibration, "describe_model", lambda *given: honest(*given) | options)
    return [live_calibration.compute("flat", seed)["rank of log likelihood"] for seed in SEEDS]


def test_ranks_of_the_truth_are_uniform(monkeypatch):
    assert find_p_value(simulate(monkeypatch)) > 0.01


@lots.seldom("book/studies/live_calibration.py", "book/_static/live")
def test_a_wrong_prior_shows(monkeypatch):
    assert find_p_value(simulate(monkeypatch, sd=3)) < 0.01


@pytest.fixture(scope="module")
def rows():
    return json.loads((DATA / "live_calibration.json").read_text())["rows"]


@pytest.mark.parametrize("model", live_calibration.N_SIMULATIONS)
def test_the_record_is_uniform(rows, model):
    """An honest sampler fails once in a hundred records: the least p-value of all, by Bonferroni."""
    of_model = [row for row in rows if row["model"] == model]
    assert len(of_model) == live_calibration.N_SIMULATIONS[model]
    names = [name for name, rank in of_model[0].items() if name.startswith("rank of ") and rank is not None]
    assert len(names) == (4 if model == "flat" else 7)
    for name in names:
        assert find_p_value([row[name] for row in of_model]) > 0.01 / N_TESTS, name
