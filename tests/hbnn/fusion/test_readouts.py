"""Read-outs integrated out: the log likelihood is that of multivariate normals, its gradient that of finite differences
and of JAX, and what is predicted for a group is what a posterior with that group would say."""

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from hbnn.fusion.readouts import integrate_readouts, predict_group
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, norm

NAMES = ("units", "y", "mu", "sd", "sigma")


def make_case(seed, n_groups=3, n_rows=14, size=3):
    """Random units, outcomes and parameters; every group has a row."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.append(np.arange(n_groups), rng.integers(0, n_groups, n_rows - n_groups)))
    units, y = rng.normal(size=(n_rows, size)), rng.normal(size=n_rows)
    return {"units": units, "y": y, "group": group, "mu": rng.normal(size=size), "sd": rng.uniform(0.2, 2, size),
            "sigma": rng.uniform(0.1, 1)}  # fmt: skip


def sum_by_definition(case):
    """The log likelihood as SciPy has it: one multivariate normal for each group."""
    total = 0.0
    for g in np.unique(case["group"]):
        H, y = case["units"][case["group"] == g], case["y"][case["group"] == g]
        cov = H * case["sd"] ** 2 @ H.T + case["sigma"] ** 2 * np.eye(len(y))
        total += multivariate_normal(H @ case["mu"], cov).logpdf(y)
    return total


@lru_cache
def build(mode):
    units, y, group, mu, sd, sigma = pt.dmatrix(), pt.dvector(), pt.lvector(), pt.dvector(), pt.dvector(), pt.dscalar()
    loglik = integrate_readouts(units, y, group, mu, sd, sigma)
    gradient = pt.grad(loglik, [units, y, mu, sd, sigma])
    return pytensor.function([units, y, group, mu, sd, sigma], [loglik, *gradient], mode=mode)


def evaluate(case, mode="FAST_COMPILE"):
    return build(mode)(*(case[name] for name in ("units", "y", "group", "mu", "sd", "sigma")))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(5, 20), st.integers(1, 7))
def test_the_log_likelihood_is_that_of_multivariate_normals(seed, n_groups, n_rows, size):
    case = make_case(seed, n_groups, n_rows, size)
    np.testing.assert_allclose(evaluate(case)[0], sum_by_definition(case), rtol=1e-9, atol=1e-9)


def test_the_gradient_is_that_of_jax():
    case = make_case(2, n_groups=4, n_rows=30, size=6)

    def loglik(units, y, mu, sd, sigma):
        same = jnp.asarray(case["group"][:, None] == case["group"])  # rows of other groups do not covary
        cov = same * ((units * sd**2) @ units.T) + sigma**2 * jnp.eye(len(units))
        return jax.scipy.stats.multivariate_normal.logpdf(y, units @ mu, cov)

    with jax.enable_x64(True):
        expected = jax.grad(loglik, argnums=(0, 1, 2, 3, 4))(*(jnp.asarray(case[name]) for name in NAMES))
    for found, wanted in zip(evaluate(case)[1:], expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_numba_and_python_give_the_same_bits():
    case = make_case(3, n_rows=40, size=5)
    for ours, theirs in zip(evaluate(case, "NUMBA"), evaluate(case), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_noise_may_differ_from_row_to_row():
    case, noise = make_case(12), np.random.default_rng(0).uniform(0.2, 1, 14)
    total = 0.0
    for g in np.unique(case["group"]):
        own = case["group"] == g
        H = case["units"][own]
        cov = H * case["sd"] ** 2 @ H.T + np.diag(noise[own] ** 2)
        total += multivariate_normal(H @ case["mu"], cov).logpdf(case["y"][own])
    sigma = pt.dvector()
    loglik = integrate_readouts(*(case[name] for name in ("units", "y", "group", "mu", "sd")), sigma)
    found, slope = pytensor.function([sigma], [loglik, pt.grad(loglik, sigma)], mode="FAST_COMPILE")(noise)
    np.testing.assert_allclose(found, total, rtol=1e-9)
    value = pytensor.function([sigma], loglik, mode="FAST_COMPILE")
    steps = 1e-6 * np.eye(14)
    expected = [(value(noise + step) - value(noise - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
@pytest.mark.parametrize(("change", "words"), [
    ({"y": np.zeros(3)}, "one outcome for each row"), ({"mu": np.zeros(2)}, "one for each unit"),
    ({"sd": np.ones(5)}, "one for each unit"), ({"group": np.zeros(3, int)}, "one group for each row"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(mode, change, words):
    with pytest.raises(ValueError, match=words):
        evaluate(make_case(6) | change, mode)


def test_inputs_with_other_axes_are_refused_by_name():
    case = make_case(7)
    for name, value in (("units", case["y"]), ("sigma", case["units"]), ("group", case["units"])):
        with pytest.raises(TypeError, match=f"{name} has"):
            integrate_readouts(**(case | {name: value}))


def test_a_model_gives_the_posterior_of_the_one_with_readouts_sampled():
    """One parameter, on a grid: integrating the read-outs numerically gives the same density of sd."""
    case = make_case(8, n_groups=2, n_rows=6, size=1)
    with pm.Model() as model:
        sd = pm.HalfNormal("sd", 1)
        loglik = integrate_readouts(case["units"], case["y"], case["group"], case["mu"], sd[None], case["sigma"])
        pm.Potential("y", loglik)
    logp, w = model.compile_logp(jacobian=False), np.linspace(-12, 12, 20_001)
    for value in (0.3, 0.9, 1.7):
        expected = np.log(2) + norm.logpdf(value)
        for g in (0, 1):
            own = case["group"] == g
            outcome = norm.logpdf(case["y"][own], w[:, None] * case["units"][own, 0], case["sigma"]).sum(axis=1)
            density = np.exp(outcome + norm.logpdf(w, case["mu"][0], value))
            expected += np.log(np.trapezoid(density, w))
        np.testing.assert_allclose(logp({"sd_log__": np.log(value)}), expected, rtol=1e-7)


# --- a group that has just come in


def draw_shared(seed, n_draws=4, size=3):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n_draws, size)), rng.uniform(0.2, 2, (n_draws, size)), rng.uniform(0.1, 1, n_draws)
    return rng, shared


@pytest.mark.parametrize("has_own_noise", [False, True])
@pytest.mark.parametrize("n_seen", [0, 1, 8])
def test_what_is_predicted_is_the_joint_normal_conditioned(n_seen, has_own_noise):
    rng, (mu, sd, sigma) = draw_shared(2)
    units, y = rng.normal(size=(4, n_seen + 5, 3)), rng.normal(size=n_seen)
    noise = rng.uniform(0.1, 1, (4, n_seen + 5)) if has_own_noise else np.tile(sigma[:, None], n_seen + 5)
    given = (mu, sd, noise[:, n_seen:]) if has_own_noise else (mu, sd, sigma)
    seen = {"sigma_seen": noise[:, :n_seen]} if has_own_noise else {}
    log_weight, mean, spread = predict_group(units[:, :n_seen], y, units[:, n_seen:], *given, **seen)
    for d in range(4):
        center, cov = units[d] @ mu[d], units[d] * sd[d] ** 2 @ units[d].T + np.diag(noise[d] ** 2)
        a, b, c = cov[:n_seen, :n_seen], cov[n_seen:, :n_seen], cov[n_seen:, n_seen:]
        expected = center[n_seen:] + b @ np.linalg.solve(a, y - center[:n_seen])
        np.testing.assert_allclose(mean[d], expected, rtol=1e-8)
        np.testing.assert_allclose(spread[d] ** 2, np.diag(c - b @ np.linalg.solve(a, b.T)), rtol=1e-8)
        weight = multivariate_normal(center[:n_seen], a).logpdf(y) if n_seen else 0
        np.testing.assert_allclose(log_weight[d], weight, rtol=1e-8)


def test_arrays_of_other_shapes_are_refused_by_name():
    rng, (mu, sd, sigma) = draw_shared(3)
    units, y = rng.normal(size=(4, 2, 3)), np.zeros(2)
    good = {"units_seen": units, "y_seen": y, "units": units, "mu": mu, "sd": sd, "sigma": sigma}
    wrong = {
        "y_seen": y[:, None],
        "mu": mu[0],
        "units_seen": units[:, :1],
        "units": units[:3],
        "sd": sd[:, :2],
        "sigma": sigma[:2],
        "sigma_seen": sigma,
    }
    for name, value in wrong.items():
        with pytest.raises(ValueError, match=f"^{name} has shape"):
            predict_group(**(good | ({"sigma": np.ones((4, 2))} if name == "sigma_seen" else {}) | {name: value}))
