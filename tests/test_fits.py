"""What studies keep of a fit: log likelihoods, scores with the error over categories, leave-one-out, learned priors."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from bnn import data, priors, score
from scipy.stats import bernoulli
from studies import _fits


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def test_the_log_likelihood_is_that_of_all_points_of_all_categories(rng):
    p, y = rng.uniform(0.01, 0.99, (2, 3, 4, 5)), rng.integers(0, 2, (4, 5))
    np.testing.assert_allclose(_fits.log_likelihood(p, y), bernoulli(p).logpmf(y).sum(axis=(2, 3)))


def test_the_error_of_a_score_takes_categories_as_independent(rng):
    moons = SimpleNamespace(y_train=rng.integers(0, 2, (6, 9)), y_test=rng.integers(0, 2, (6, 9)))
    p_train, p_test = rng.uniform(size=(2, 6, 9))
    found = _fits.score_probabilities(p_train, p_test, moons)
    each = [score.score(*pair) for pair in zip(p_test, moons.y_test, strict=True)]
    for name in ("accuracy", "lpd", "brier"):
        values = [one[name] for one in each]
        assert found[name] == pytest.approx(np.mean(values))
        assert found[f"{name}_se"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(6))


def test_points_whose_pareto_k_is_above_the_limit_are_counted(rng, monkeypatch):
    found = SimpleNamespace(pareto_k=np.array([0.3, 0.69, 0.71, 0.9, 1.2]), good_k=0.7, elpd=-3, se=1, p=2)
    monkeypatch.setattr(_fits.az, "loo", lambda tree, pointwise: found)
    loglik = -rng.uniform(size=(4, 10, 1, 5))
    assert _fits.leave_one_out(loglik) == {"elpd_loo": -3, "elpd_loo_se": 1, "p_loo": 2, "pareto_bad": 3}


def test_one_raw_chain_is_the_first_of_the_chains(rng, monkeypatch):
    shapes = {"mu1": (2, 3), "mu2": (3,)}
    posterior = xr.Dataset({
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(len(shape)))), rng.normal(size=(2, 7, *shape)))
        for name, shape in shapes.items()
    } | {name: (("chain", "draw"), np.abs(rng.normal(size=(2, 7)))) for name in ("sd1", "sd2")})  # fmt: skip
    monkeypatch.setattr(priors, "fit_normal", lambda weights, joint=True: (weights, joint))
    found = _fits.learn_priors(posterior, seed=3)
    raw = priors.draw_new_category(posterior, seed=3)
    weights, joint = found["informed, one raw chain"]
    assert not joint
    for name in raw:
        np.testing.assert_array_equal(weights[name], raw[name][:7])


def test_a_seed_names_a_data_set_and_legacy_that_of_the_articles():
    np.testing.assert_array_equal(_fits.load_moons("legacy").X_test, data.legacy_rotated_moons().X_test)
    np.testing.assert_array_equal(_fits.load_moons("7").X_test, data.rotated_moons(seed=7).X_test)
