"""From a hierarchical posterior to a prior: the moments are right, and the networks that it gives work on any data."""

import numpy as np
import pytest
import xarray as xr
from bookkit import data, models
from hbnn import fuse, prediction, priors, sampling, symmetry

N_HIDDEN = (3, 4)
SHAPES = {"1": (2, 3), "2": (3, 4), "3": (4,)}


def make_posterior(n_chains=2, n_draws=400, *, seed=0, spread=0.05, per_connection=False):
    """A posterior around one network, with group sds 0.1, 0.2, 0.3."""
    rng = np.random.default_rng(seed)
    variables = {}
    for k, shape in SHAPES.items():
        dims = [f"d{k}{i}" for i in range(len(shape))]
        mu = rng.normal(size=shape) + spread * rng.normal(size=(n_chains, n_draws, *shape))
        sd = np.full((n_chains, n_draws, *(shape if per_connection else ())), int(k) / 10)
        variables[f"mu{k}"] = (("chain", "draw", *dims), mu)
        variables[f"sd{k}"] = (("chain", "draw", *(dims if per_connection else ())), sd)
        variables[f"z{k}"] = (("chain", "draw", "group", *dims), rng.normal(size=(n_chains, n_draws, 5, *shape)))
    return xr.Dataset(variables)


@pytest.mark.parametrize("per_connection", [False, True])
def test_a_new_category_varies_by_posterior_and_group_sd(per_connection):
    posterior = make_posterior(per_connection=per_connection)
    weights = priors.draw_new_category(posterior, seed=1, n_per_draw=20)
    assert {name: w.shape for name, w in weights.items()} == {f"w{k}": (16_000, *s) for k, s in SHAPES.items()}
    for k in SHAPES:
        sd = np.hypot(0.05, int(k) / 10)
        assert weights[f"w{k}"].std(axis=0) == pytest.approx(sd, rel=0.03)
        means = posterior[f"mu{k}"].values.mean(axis=(0, 1))
        np.testing.assert_allclose(weights[f"w{k}"].mean(axis=0), means, atol=6 * sd / np.sqrt(800))


def test_draws_keep_the_order_of_the_posterior():
    posterior = make_posterior(spread=1.0).assign(sd1=lambda d: 0 * d["sd1"])
    weights = priors.draw_new_category(posterior, seed=1)
    np.testing.assert_array_equal(weights["w1"], posterior["mu1"].values.reshape(-1, 2, 3))


def test_new_categories_of_a_draw_share_its_mean_and_sd_and_nothing_else():
    posterior = make_posterior(1, 3, spread=0.0)
    mean, sd = np.array([0, 100, 200]), np.array([0, 1, 0])
    posterior = posterior.assign(mu3=lambda d: 0 * d["mu3"] + mean[:, None], sd3=(("chain", "draw"), sd[None]))
    w = priors.draw_new_category(posterior, seed=1, n_per_draw=2)["w3"]
    np.testing.assert_array_equal(w[[0, 1, 4, 5]], np.repeat([0, 200], 2)[:, None] * np.ones(4))
    assert len(np.unique(w[2:4])) == 8
    np.testing.assert_allclose(w[2:4], 100, atol=5)


def test_aligning_a_posterior_undoes_relabelling():
    posterior = make_posterior()
    means = {f"w{k}": posterior[f"mu{k}"].values.reshape(800, *s) for k, s in SHAPES.items()}
    moved = symmetry.relabel(symmetry.draw_labelling(800, N_HIDDEN, seed=3), means)
    relabelled = posterior.assign(
        {f"mu{k}": (posterior[f"mu{k}"].dims, moved[f"w{k}"].reshape(2, 400, *s)) for k, s in SHAPES.items()}
    )
    aligned = symmetry.relabel(priors.align_posterior(relabelled, seed=1), moved)
    for name, w in aligned.items():
        np.testing.assert_allclose(w.std(axis=0).mean(), means[name].std(axis=0).mean(), rtol=1e-9)


@pytest.mark.parametrize("joint", [True, False])
def test_the_normal_has_the_draws_moments(joint):
    rng = np.random.default_rng(0)
    common = rng.normal(size=(5000, 1))
    weights = {f"w{k}": rng.normal(size=(5000, *s)) + common.reshape(-1, *[1] * len(s)) for k, s in SHAPES.items()}
    mean, cholesky = priors.fit_normal(weights, joint=joint)
    flat = priors.flatten(weights)
    np.testing.assert_allclose(mean, flat.mean(axis=0))
    covariance = cholesky @ cholesky.T
    np.testing.assert_allclose(np.diag(covariance), flat.var(axis=0, ddof=1), rtol=1e-5)
    assert covariance[0, 1] == pytest.approx(np.cov(flat.T)[0, 1], rel=1e-4)  # one layer
    assert covariance[0, -1] == pytest.approx(np.cov(flat.T)[0, -1] if joint else 0, rel=1e-4)  # two layers


def test_a_scale_prior_has_its_scale_in_each_layer():
    mean, cholesky = priors.scale_prior((1.0, 2.0, 3.0), 2, N_HIDDEN)
    assert not mean.any()
    np.testing.assert_array_equal(np.diag(cholesky), [1] * 6 + [2] * 12 + [3] * 4)
    np.testing.assert_array_equal(cholesky, np.diag(np.diag(cholesky)))


def test_scales_are_measured_by_layer():
    weights = {"w1": np.full((3, 2, 2), 2.0), "w2": np.array([[3.0, -4.0]])}
    np.testing.assert_allclose(priors.measure_scales(weights), [2, np.sqrt(12.5)])


# --- sampled under such a prior, or one by one


SETTINGS = {"chains": 2, "draws": 100, "tune": 200, "target_accept": 0.9}
RNG = np.random.default_rng(1)
CASES = {
    **{f"{n} points": (RNG.normal(size=(n, 2)), RNG.integers(0, 2, n)) for n in (1, 5, 50)},
    "one class": (abs(RNG.normal(size=(6, 2))), np.ones(6, int)),  # on one side, as the network is odd
    "one point with both labels": (np.ones((4, 2)), np.array([0, 1, 0, 1])),
    "the origin": (np.zeros((3, 2)), np.array([0, 1, 1])),
}


@pytest.mark.slow
def test_a_network_can_be_fitted_to_any_few_points():
    one = data.rotated_moons(seed=5, n_groups=2, n_train=10).group(0)
    mean, cholesky = priors.scale_prior((1.0, 1.0, 2.0), 2, N_HIDDEN)
    model = fuse(models.informed_bnn(one.X_train, one.y_train, mean=mean, cholesky=cholesky, n_hidden=N_HIDDEN))
    compiled = sampling.compile_nuts(model)
    for case, (X, y) in CASES.items():
        tree = sampling.sample_nuts(compiled.with_data(X=X, labels=y), seed=1, **SETTINGS)
        weights = prediction.flatten_chains(tree["posterior"])
        assert np.isfinite(prediction.predict_probability(weights, data.grid(5), activation="tanh")).all(), case
        assert not tree["sample_stats"]["diverging"].any(), case
        if case == "one class":
            p = prediction.predict_probability(weights, X, activation="tanh").mean(axis=0)
            assert ((p > 0.5) & (p < 0.999)).all()


@pytest.mark.slow
def test_categories_are_sampled_and_predicted_one_by_one():
    moons = data.rotated_moons(seed=5, n_groups=2, n_train=10)
    compiled = sampling.compile_nuts(fuse(models.unpooled_bnn(moons.X_train[0], moons.y_train[0], n_hidden=N_HIDDEN)))
    trees = sampling.sample_groups(compiled, moons.X_train[[0, 0, 1]], moons.y_train[[0, 0, 1]], seed=1, **SETTINGS)
    weights = prediction.join_groups(trees)
    assert (weights["w1"][:, :, 0] != weights["w1"][:, :, 1]).any()
    p = prediction.predict_groups(weights, moons.X_test[[0, 0, 1]], activation="tanh")
    one = {name: w[:, :, 2].reshape(-1, *w.shape[3:]) for name, w in weights.items()}
    expected = prediction.predict_probability(one, moons.X_test[1], activation="tanh")
    np.testing.assert_allclose(p[:, :, 2].reshape(200, -1), expected, rtol=1e-12)


# --- what is refused

WEIGHTS = priors.draw_new_category(make_posterior(n_draws=5), seed=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: priors.draw_new_category(make_posterior(), seed=None), "seed=None"),
        (lambda: priors.draw_new_category(make_posterior(), seed=1, n_per_draw=1.5), "n_per_draw=1.5"),
        (lambda: priors.draw_new_category(np.ones((2, 3)), seed=1), "ndarray; wanted: mu1, sd1"),
        (lambda: priors.draw_new_category(xr.Dataset({"w1": 1}), seed=1), "holds w1; wanted: mu1, sd1"),
        (lambda: priors.fit_normal({"w1": np.full((9, 2), np.nan)}), "NaN or infinite"),
        (lambda: priors.fit_normal(WEIGHTS), "10 draws of 22 weights; wanted: more"),
        (lambda: priors.scale_prior((1, 1), 2, N_HIDDEN), r"\(1, 1\); wanted: 3 standard deviations above 0"),
        (lambda: priors.scale_prior((1, 0, 1), 2, N_HIDDEN), r"\(1, 0, 1\); wanted: 3"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
