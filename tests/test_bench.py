"""The peers compute the book's model: their densities and posteriors agree with references that are not theirs."""

import inspect
import platform

import numpy as np
import numpyro
import pytest
from bookkit import data, models, report
from hbnn.diagnostics import diagnose
from scipy.special import expit, log_expit
from scipy.stats import norm
from studies._bench import __main__ as harness
from studies._bench import advi, bound, cases, flat, peers

N_HIDDEN = (2, 3)
TASKS = data.rotated_moons(seed=1, n_groups=2, n_train=6)
X, Y = TASKS.X_train, TASKS.y_train
SHAPES = peers.list_shapes(*X.shape[::2], N_HIDDEN)
RUN = {"seed": 1, "chains": 2, "draws": 600, "tune": 300, "n_hidden": N_HIDDEN}
SAMPLERS = {
    "blackjax": lambda **run: peers.sample_blackjax(X, Y, **run),
    "numpyro": lambda **run: peers.sample_numpyro(X, Y, **run),
    "pymc": lambda **run: peers.sample_pymc(X, Y, **run),
    "nutpie": lambda **run: peers.sample_nutpie(X, Y, backend="jax", **run),  # Numba takes seconds to compile
}


def draw_position(seed, dtype="float64"):
    rng = np.random.default_rng(seed)
    return {name: np.asarray(rng.normal(size=shape), dtype) for name, shape in SHAPES.items()}


# --- the density


@pytest.fixture(scope="module")
def logp_book():
    """The log density of the book's model, by PyMC, as a function of a position."""
    model = models.hierarchical_bnn(X, Y, n_hidden=N_HIDDEN)
    compiled = model.compile_logp(mode="FAST_COMPILE")
    return lambda position: float(
        compiled({name: position[f"log_{name[:3]}" if "log" in name else name] for name in model.initial_point()})
    )


@pytest.mark.parametrize("layout", peers.LAYOUTS)
def test_the_density_is_that_of_the_book_s_model(layout, logp_book):
    position = draw_position(1)
    double, single = (peers.logdensity_jax(X, Y, N_HIDDEN, layout=layout, dtype=f"float{n}") for n in (64, 32))
    np.testing.assert_allclose(float(double(position)), logp_book(position), rtol=0, atol=1e-9)
    found = single(draw_position(1, "float32"))
    assert found.dtype == np.float32
    np.testing.assert_allclose(float(found), logp_book(position), rtol=1e-6)


def test_the_plain_models_in_pymc_and_numpyro_are_the_book_s_model(logp_book):
    model, position = peers.model_pymc(X, Y, N_HIDDEN), draw_position(0)
    named = {name: position[f"log_{name[:3]}" if "log" in name else name] for name in model.initial_point()}
    logp = model.compile_logp(mode="FAST_COMPILE")(named)
    named = {name.removeprefix("log_"): value for name, value in position.items()}
    energy = numpyro.infer.util.potential_energy(peers.model_numpyro(X, Y, N_HIDDEN), (), {}, named)
    np.testing.assert_allclose([float(logp), -float(energy)], logp_book(position), rtol=0, atol=1e-9)


# --- the samplers


def compute_quantities(posterior):
    """What is identified: class probabilities at three points for each category, the sds, the log likelihood."""
    mu, sd, z = ([posterior[f"{kind}{layer}"] for layer in (1, 2, 3)] for kind in ("mu", "sd", "z"))
    expand = [s.reshape(*s.shape, *[1] * (o.ndim - s.ndim)) for s, o in zip(sd, z, strict=True)]
    w1, w2, w3 = (m[..., None, :, :] if m.ndim == s.ndim + 2 else m[..., None, :] for m, s in zip(mu, sd, strict=True))
    w1, w2, w3 = w1 + expand[0] * z[0], w2 + expand[1] * z[1], w3 + expand[2] * z[2]

    def logit(points):
        h2 = np.tanh(np.tanh(points @ w1) @ w2)
        return (h2 @ w3[..., None])[..., 0]

    p = expit(logit(np.array([[1.0, 0.5], [-0.3, 1.2], [0.8, -1.0]])))
    loglik = log_expit((2 * Y - 1) * logit(X)).sum(axis=(-1, -2))
    return np.concatenate([p.reshape(*p.shape[:-2], -1), np.stack([*sd, loglik], axis=-1)], axis=-1)


@pytest.fixture(scope="module")
def reference():
    """Posterior means of those quantities without any Markov chain: prior draws, weighted by their likelihood."""
    rng = np.random.default_rng(0)
    prior = {name.removeprefix("log_"): rng.normal(size=(200_000, *shape)) for name, shape in SHAPES.items()}
    prior |= {name: abs(value) for name, value in prior.items() if name.startswith("sd")}
    values = compute_quantities(prior)
    return average(values, np.exp(values[:, -1]))


def average(values, likelihood):
    """Posterior mean of some values of prior draws, and its error."""
    weight = likelihood / likelihood.sum()
    mean = weight @ values
    return mean, np.sqrt(weight**2 @ (values - mean) ** 2)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "nutpie" else pytest.mark.slow) for name in SAMPLERS]
)
def test_a_sampler_finds_the_posterior_and_counts_its_gradients(name, reference):
    run, (mean, error) = SAMPLERS[name](**RUN), reference
    values = compute_quantities(run["posterior"])
    z = (values.mean(axis=(0, 1)) - mean) / np.hypot(error, diagnose(values)["mcse"])
    assert abs(z).max() < 4
    assert not np.isin(*run["posterior"]["mu1"]).any()  # chains differ
    assert run["n_steps"].min() >= 1
    assert run["n_gradients"] >= run["n_steps"].sum() + 2 * RUN["tune"]  # at least one for each draw of the warm-up


# --- flat networks


def draw_weights(seed):
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape) for name, shape in flat.list_flat_shapes(2, N_HIDDEN).items()}


def test_the_flat_density_is_that_of_the_book_s_flat_model():
    book, plain = models.flat_bnn(X[0], Y[0], n_hidden=N_HIDDEN), flat.model_flat(X[0], Y[0], N_HIDDEN)
    weights = draw_weights(0)
    ours = float(flat.logdensity_flat(weights, X[0].T, 2 * Y[0] - 1))
    np.testing.assert_allclose(ours, float(book.compile_logp(mode="FAST_COMPILE")(weights)), rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours, float(plain.compile_logp(mode="FAST_COMPILE")(weights)), rtol=0, atol=1e-9)


def predict_flat(weights, points):
    h2 = np.tanh(np.tanh(points @ weights["w1"]) @ weights["w2"])
    return expit(h2 @ weights["w3"][..., None])[..., 0]


@pytest.mark.slow
def test_networks_sampled_together_find_each_its_own_posterior():
    together = flat.flat_vmap_jax(X, Y, seed=1, chains=2, draws=600, tune=300, n_hidden=N_HIDDEN)
    assert together["diverging"].shape == together["n_steps"].shape == (2, 2, 600)
    assert together["n_gradients"] >= together["n_steps"].sum() + 2 * 2 * 300
    rng, points = np.random.default_rng(0), np.array([[1.0, 0.5], [-0.3, 1.2]])
    prior = {name: rng.normal(size=(200_000, *shape)) for name, shape in flat.list_flat_shapes(2, N_HIDDEN).items()}
    for g in (0, 1):
        mean, error = average(predict_flat(prior, points), np.prod(abs(1 - Y[g] - predict_flat(prior, X[g])), axis=-1))
        found = predict_flat({name: draws[g] for name, draws in together["posterior"].items()}, points)
        assert (abs(found.mean(axis=(0, 1)) - mean) < 4 * np.hypot(error, diagnose(found)["mcse"])).all()


# --- ADVI


def test_pymc_s_steps_in_one_loop_are_those_of_pm_fit():
    fit = {"n_steps": 300, "seed": 1, "n_hidden": N_HIDDEN}
    by_python, by_scan = advi.advi_pymc(X[0], Y[0], backend="jax", **fit), advi.advi_pymc_scan(X[0], Y[0], **fit)
    np.testing.assert_allclose(by_scan["loss"], by_python["loss"], rtol=1e-12)
    for part in ("mean", "sd"):
        for name in flat.WEIGHTS:
            np.testing.assert_allclose(by_scan[part][name], by_python[part][name], rtol=1e-9)


def test_a_fit_to_points_that_say_nothing_ends_at_the_prior():
    found = advi.advi_scan(0 * X[0], Y[0], n_steps=20_000, seed=1, n_hidden=N_HIDDEN, learning_rate=0.001)
    elbo = advi.estimate_elbo(found["mean"], found["sd"], 0 * X[0], Y[0], seed=1)["elbo"]
    np.testing.assert_allclose(elbo, 6 * np.log(0.5), rtol=0, atol=0.02)


def test_the_elbo_where_points_say_nothing_is_known_and_so_is_that_of_a_narrow_normal():
    mean, sd = draw_weights(0), {name: 0.1 + abs(value) for name, value in draw_weights(1).items()}
    found = advi.estimate_elbo(mean, sd, 0 * X[0], Y[0], seed=1, n_draws=10)
    node, weight = np.polynomial.hermite_e.hermegauss(20)  # the divergence from the prior, by quadrature
    divergence = sum(
        (weight / weight.sum()) @ (norm.logpdf(m + s * node, m, s) - norm.logpdf(m + s * node))
        for name in mean
        for m, s in zip(mean[name].ravel(), sd[name].ravel(), strict=True)
    )
    np.testing.assert_allclose(found["elbo"], 6 * np.log(0.5) - divergence, rtol=1e-12)
    assert found["mcse"] < 1e-12
    logp = float(models.flat_bnn(X[0], Y[0], n_hidden=N_HIDDEN).compile_logp(mode="FAST_COMPILE")(mean))
    narrow = advi.estimate_elbo(mean, {name: np.full_like(m, 1e-6) for name, m in mean.items()}, X[0], Y[0], seed=1)
    entropy = sum(value.size for value in mean.values()) * norm.entropy(scale=1e-6)
    np.testing.assert_allclose(narrow["elbo"], logp + entropy, rtol=0, atol=1e-6)


# --- the harness and its table


def test_the_bound_counts_what_a_hand_counts():
    # one point, 2-3-1: 9 weights, each once forward and once for its gradient; 3 errors sent back; 3 tanh
    by_hand = 2 * 9 + 3 + 3 * (bound.TANH + bound.SLOPE) + bound.OUTPUT
    assert bound.count_operations(1, 8, (2, 3, 1)) == by_hand
    assert bound.count_operations(5, 16, (2, 3, 1), "float32") == 5 * by_hand


@pytest.mark.parametrize("quick", [True, False])
def test_every_case_names_a_function_and_its_arguments(quick):
    for groups in harness.list_cases(quick).values():
        for function, arguments in groups:
            signature = inspect.signature(getattr(cases, function))
            for case in arguments:
                signature.bind(**case)


def test_the_table_in_the_book_is_the_record_of_a_whole_run():
    table, wanted = report.read_data("bench"), harness.list_cases(quick=False)
    assert table["digest"] == harness.digest_table(table) != harness.digest_table(table | {"minutes": 1.0})
    assert table["quick"] is False
    for section, groups in wanted.items():
        asked = [case for _, arguments in groups for case in arguments]
        found = table[section]
        assert [{key: row[key] for key in case} for case, row in zip(asked, found, strict=True)] == asked
        assert [row["failed"] for row in found if "failed" in row] == []


@pytest.mark.slow
def test_stock_pymc_as_a_user_has_it_runs_without_the_book_s_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_COMPILED", str(tmp_path))
    case = {"n_hidden": 2, "n_calls": 1, "repetitions": 1}
    (ours,), (users,) = (harness.run_group("time_forms", [case], False, s) for s in harness.SETTINGS.values())
    assert (ours["fastmath"], users["fastmath"]) == (False, True)
    assert set(map(str.lower, ours["blas"])) == {"sandybridge"} or platform.machine() not in ("x86_64", "AMD64")
    assert list(tmp_path.iterdir())  # compiled apart


@pytest.mark.slow
@pytest.mark.parametrize("form", ["fused", "by hand"])
def test_the_forms_of_the_headline_are_one_density(form):
    call, _ = cases.make_gradient(form, X, Y, N_HIDDEN)
    typed, _ = cases.make_gradient("graph", X, Y, N_HIDDEN)
    for found, expected in zip(call(), typed(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
