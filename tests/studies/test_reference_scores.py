"""The book's samplers, scored by the references: right ones pass, a wrong one is caught. And the scorer's own trial."""

import numpy as np
import pymc as pm
import pytest
from hbnn import sampling
from hbnn.reference import posteriors, scoring
from hbnn.reference.posteriors import CURVES, FLAT
from studies import reference_scores


@pytest.mark.slow
def test_advi_is_caught():
    fit = sampling.fit_advi(reference_scores.build(FLAT), 15_000, seed=1)
    draws = {name: value.reshape(4, 500, *value.shape[1:]) for name, value in fit.draw(2000, seed=1).items()}
    assert scoring.score_draws(draws, FLAT).verdict == scoring.WRONG


def test_the_references_own_draws_pass_and_logits_a_tenth_too_large_are_caught():
    chains = posteriors.read_chains(FLAT)
    p = np.array([[chain[f"p[{k}]"] for chain in chains[:4]] for k in range(1, 41)]).transpose(1, 2, 0)
    log_lik = np.array([chain["log_lik"] for chain in chains[:4]])
    assert scoring.score_draws({"p": p, "log_lik": log_lik}, FLAT).verdict == scoring.RIGHT
    steeper = 1 / (1 + ((1 - p) / p) ** 1.1)
    found = scoring.score_draws({"p": steeper, "log_lik": log_lik}, FLAT)
    assert found.verdict == scoring.WRONG


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "posterior"), [("nutpie", FLAT), ("nutpie", CURVES), ("PyMC", CURVES), ("in the page", FLAT)]
)
def test_a_whole_run_passes(what, posterior):
    found = scoring.score_draws(reference_scores.DRAW[what](posterior, 11), posterior)
    assert found.verdict == scoring.RIGHT, str(found)


@pytest.mark.slow
def test_numpyro_passes():
    settings = reference_scores.SETTINGS[CURVES] | sampling.ONE_CORE | {"nuts": {"chain_method": "sequential"}}
    tree = pm.sample(model=posteriors.build_posterior(CURVES), nuts_sampler="numpyro", random_seed=12, **settings)
    assert scoring.score_draws(reference_scores.pick(CURVES, tree), CURVES).verdict == scoring.RIGHT


# --- the scorer's trial


@pytest.fixture
def rows(monkeypatch):
    """In place of the stored draws: forty-one normals, each with its own unit."""
    values = np.random.default_rng(0).normal(size=(3000, 41)) * np.geomspace(0.01, 100, 41)
    stored = scoring.Reference(posteriors.load_posterior(FLAT).names, values, np.full(41, 3000.0))
    monkeypatch.setattr(reference_scores, "load_rows", lambda name: values)
    monkeypatch.setattr(scoring, "load_reference", lambda name: stored)
    monkeypatch.setattr(reference_scores, "N_REPEATS", 15)


def test_a_shift_is_counted_in_sds_and_only_the_shifted_is_seen(rows):
    none, small, large = (reference_scores.score_the_scorer(FLAT, shift, 1) for shift in (0.0, 0.03, 0.25))
    assert none["alarms"] <= 1
    assert none["seen"] == 0
    assert small["seen"] <= 4
    assert large["seen"] == large["alarms"] == large["repeats"] == 15
