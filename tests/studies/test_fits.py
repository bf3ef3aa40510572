"""What studies keep of a fit: log likelihoods, scores with the error over categories, leave-one-out, learned priors."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr
from bookkit import data
from hbnn import metrics, priors
from scipy.stats import bernoulli
from studies import _fits, every_run, stopping


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
    each = [metrics.score(*pair) for pair in zip(p_test, moons.y_test, strict=True)]
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


def test_intervals_around_the_truth_hold_it_and_those_beside_it_do_not():
    moons = data.rotated_moons(seed=7, n_groups=3, n_train=8, n_test=6)
    shift = np.array([0.0, 0.0465, -0.0465])[:, None]  # the interval is the middle 0.09 of 0.1; 95 % of it hold 0.0465

    def predict_at(X):
        truth = _fits.find_truth(moons, X)
        return np.stack([truth + shift + d for d in np.linspace(-0.05, 0.05, 21)])[None]

    found = _fits.measure_coverage(predict_at, moons)
    for name in ("train", "test", "ring1", "ring4"):
        assert found[f"cover_{name}"] == pytest.approx(100 / 3), name
    assert found["cover_test_se"] == pytest.approx(100 / 3)  # of 100, 0 and 0
    truth = _fits.find_truth(moons, _fits.GRID)
    too_sure = 100 * np.mean([(truth[1] > 0.5).mean(), (truth[2] <= 0.5).mean(), 0])
    assert found["too_sure"] == pytest.approx(too_sure, abs=1e-6)


def test_the_truth_of_a_group_is_that_of_its_own_angle():
    moons = data.rotated_moons(seed=7, n_groups=3, n_train=8, n_test=6)
    wanted = data.bayes_probability(moons.X_test[2], moons, 0.3, 2, n_arc=50)
    np.testing.assert_array_equal(_fits.find_truth(moons, moons.X_test)[2], wanted)


@pytest.mark.parametrize("chain", [0, 2])
def test_a_chain_in_a_place_of_its_own_is_found_and_only_that(rng, chain):
    sds = {f"sd{k}": (("chain", "draw"), np.exp(rng.normal(size=(4, 500)))) for k in (1, 2, 3)}
    assert every_run.find_foreign(xr.Dataset(sds)) == []
    sds["sd2"][1][chain] *= np.exp(5)
    assert every_run.find_foreign(xr.Dataset(sds)) == [chain]


def test_each_look_sees_all_runs_so_far_and_compares_with_the_long_run(rng, monkeypatch):
    """Independent draws of a normal, in place of a network: z has an sd of 1 then, and the ESS grows with the runs."""

    def sample(compiled, *, seed, draws, **options):
        x = np.random.default_rng(seed).normal(size=(4, draws, 30))
        posterior = xr.Dataset({"x": (("chain", "draw", "k"), x)}, coords={"chain": range(4)})
        stats = {"diverging": np.zeros((4, draws), bool), "energy": x[..., 0], "n_steps": np.ones((4, draws), int)}
        stats = xr.Dataset({name: (("chain", "draw"), v) for name, v in stats.items()}, coords={"chain": range(4)})
        return xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats})

    monkeypatch.setattr(stopping.sampling, "sample_nuts", sample)
    monkeypatch.setattr(stopping, "compile_network", lambda: (None, None))
    monkeypatch.setattr(stopping, "find_means", lambda: (np.zeros(30), np.zeros(30)))
    monkeypatch.setattr(stopping, "list_quantities", lambda posterior: {"x": posterior["x"].values})
    rows = [stopping.compute(seed) for seed in range(1, 21)]
    assert np.mean([row["rms_z"] for row in rows]) == pytest.approx(1, abs=0.08)
    assert np.mean([row["covered"] for row in rows]) == pytest.approx(0.95, abs=0.03)
    ess = np.mean([row["ess"] for row in rows], axis=0)
    np.testing.assert_allclose(ess / ess[0], [1, 2, 3, 4], rtol=0.3)
