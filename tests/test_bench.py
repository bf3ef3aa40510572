"""The peers compute the book's model: their densities and posteriors agree with references that are not theirs."""

import inspect
import json
import platform

import jax.numpy as jnp
import lots
import numpy as np
import numpyro
import pytensor
import pytest
from bench import __main__ as harness
from bench import advi, bound, cases, flat, gradients, peers
from bnn import data, models, report
from bnn.diagnose import diagnose
from scipy.special import expit, log_expit
from scipy.stats import kstest, norm

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
every_sampler = pytest.mark.parametrize("name", lots.draw(SAMPLERS, 1, always=["nutpie"]))


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
@pytest.mark.parametrize("seed", range(5))
def test_the_density_is_that_of_the_book_s_model(layout, seed, logp_book):
    logdensity = peers.logdensity_jax(X, Y, N_HIDDEN, layout=layout)
    position = draw_position(seed)
    np.testing.assert_allclose(float(logdensity(position)), logp_book(position), rtol=0, atol=1e-9)


def test_the_plain_pymc_model_is_the_book_s_model(logp_book):
    model, position = peers.model_pymc(X, Y, N_HIDDEN), draw_position(0)
    named = {name: position[f"log_{name[:3]}" if "log" in name else name] for name in model.initial_point()}
    np.testing.assert_allclose(
        float(model.compile_logp(mode="FAST_COMPILE")(named)), logp_book(position), rtol=0, atol=1e-9
    )


def test_the_numpyro_program_is_the_book_s_model(logp_book):
    position = draw_position(0)
    named = {name.removeprefix("log_"): value for name, value in position.items()}
    energy = numpyro.infer.util.potential_energy(peers.model_numpyro(X, Y, N_HIDDEN), (), {}, named)
    np.testing.assert_allclose(-float(energy), logp_book(position), rtol=0, atol=1e-9)


@pytest.mark.parametrize("layout", peers.LAYOUTS)
def test_single_precision_stays_single_and_is_right_to_its_digits(layout, logp_book):
    single = peers.logdensity_jax(X, Y, N_HIDDEN, layout=layout, dtype="float32")(draw_position(0, "float32"))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(float(single), logp_book(draw_position(0)), rtol=1e-6)


def test_a_position_of_other_shapes_is_refused():
    logdensity = peers.logdensity_jax(X, Y, (3, 2))
    with pytest.raises(ValueError, match="position has shapes"):
        logdensity(draw_position(0))


# --- the samplers


@pytest.fixture(scope="module")
def runs():
    """Each sampler's run, made when it is first asked for."""
    made = {}
    return lambda name: made[name] if name in made else made.setdefault(name, SAMPLERS[name](**RUN))


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
    weight = np.exp(values[:, -1])
    weight /= weight.sum()
    mean = weight @ values
    return mean, np.sqrt(weight**2 @ (values - mean) ** 2)


@every_sampler
def test_a_sampler_finds_the_posterior(name, runs, reference):
    values = compute_quantities(runs(name)["posterior"])
    mean, error = reference
    z = (values.mean(axis=(0, 1)) - mean) / np.hypot(error, diagnose(values)["mcse"])
    assert abs(z).max() < 4


@every_sampler
def test_a_sampler_returns_named_arrays_by_chain_and_draw(name, runs):
    posterior = runs(name)["posterior"]
    wanted = {name.removeprefix("log_"): (2, 600, *shape) for name, shape in SHAPES.items()}
    assert {name: value.shape for name, value in posterior.items()} == wanted
    assert all(value.dtype == np.float64 and np.isfinite(value).all() for value in posterior.values())


@every_sampler
def test_a_sampler_counts_its_gradients_and_its_cpu_seconds(name, runs):
    run = runs(name)
    assert run["diverging"].shape == run["n_steps"].shape == (2, 600)
    assert run["diverging"].dtype == bool
    assert run["n_steps"].min() >= 1
    assert run["n_gradients"] >= run["n_steps"].sum() + 2 * RUN["tune"]  # at least one for each draw of the warm-up
    assert run["compile_seconds"] > 0
    assert run["cpu_seconds"] > 0


@every_sampler
def test_chains_differ(name, runs):
    first, second = runs(name)["posterior"]["mu1"]
    assert not np.isin(first, second).any()


@lots.seldom("book/bench", "tests/test_bench.py")
def test_one_seed_gives_the_same_bits_twice_and_another_gives_others():
    small = RUN | {"chains": 1, "draws": 5, "tune": 5}
    first, again, other = (SAMPLERS["pymc"](**small | {"seed": seed})["posterior"]["mu1"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(again, first)
    assert not np.isin(other, first).any()


@every_sampler
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"draws": 0}, "draws=0; wanted: at least 1"),
        ({"chains": 0}, "chains=0; wanted: at least 1"),
        ({"tune": 0}, "tune=0; wanted: at least 1"),
        ({"seed": None}, "seed=None; wanted: an integer"),
        ({"target_accept": 1.0}, "target_accept=1.0; wanted: between 0 and 1"),
        ({"n_hidden": (5,)}, r"n_hidden=\(5,\); wanted: two numbers"),
    ],
)
def test_a_run_that_cannot_be_is_refused(name, setting, message):
    with pytest.raises(ValueError, match=message):
        SAMPLERS[name](**RUN | setting)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: peers.sample_pymc(X, Y, backend="jax", **RUN), "backend='jax'; wanted: 'c' or 'numba'"),
        (lambda: peers.sample_nutpie(X, Y, backend="c", **RUN), "backend='c'; wanted: 'numba' or 'jax'"),
        (lambda: peers.logdensity_jax(X, Y, N_HIDDEN, layout="rows"), "layout='rows'; wanted: one of article"),
        (lambda: peers.logdensity_jax(X, Y, N_HIDDEN, dtype="int32"), "dtype='int32'; wanted: 'float64' or"),
        (lambda: peers.model_pymc(X[0], Y[0], N_HIDDEN), r"X has shape \(6, 2\); wanted: \(group, obs, feature\)"),
        (lambda: flat.model_flat(X, Y, N_HIDDEN), r"X has shape \(2, 6, 2\); wanted: \(obs, feature\)"),
    ],
)
def test_what_no_peer_can_do_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- one gradient


@pytest.mark.parametrize(
    "time_gradient",
    [
        lambda **n: gradients.time_gradient_pymc(X, Y, backend="c", **n),
        lambda **n: gradients.time_gradient_pymc(X, Y, backend="jax", **n),
        lambda **n: gradients.time_gradient_jaxified(X, Y, **n),
        lambda **n: gradients.time_gradient_jax(X, Y, **n),
        lambda **n: gradients.time_gradient_jax(X, Y, layout="points_last", dtype="float32", **n),
    ],
)
def test_a_gradient_has_a_price_in_microseconds(time_gradient):
    cost = time_gradient(n_hidden=N_HIDDEN, seed=0, n_calls=500, repetitions=2)
    assert sorted(cost) == ["compile_seconds", "microseconds"]
    assert all(np.isfinite(value) and value > 0 for value in cost.values())


@pytest.mark.parametrize("name", ["n_calls", "repetitions"])
def test_a_price_needs_at_least_one_gradient(name):
    with pytest.raises(ValueError, match=f"{name}=0; wanted: at least 1"):
        gradients.time_gradient_jax(X, Y, n_hidden=N_HIDDEN, seed=0, **{name: 0})


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


@pytest.fixture(scope="module")
def together():
    return flat.flat_vmap_jax(X, Y, seed=1, chains=2, draws=600, tune=300, n_hidden=N_HIDDEN)


def predict_flat(weights, points):
    h2 = np.tanh(np.tanh(points @ weights["w1"]) @ weights["w2"])
    return expit(h2 @ weights["w3"][..., None])[..., 0]


@pytest.mark.parametrize("g", [0, 1])
def test_networks_sampled_together_find_each_its_own_posterior(g, together):
    rng = np.random.default_rng(0)
    prior = {name: rng.normal(size=(200_000, *shape)) for name, shape in flat.list_flat_shapes(2, N_HIDDEN).items()}
    weight = np.prod(abs(1 - Y[g] - predict_flat(prior, X[g])), axis=-1)
    weight /= weight.sum()
    points = np.array([[1.0, 0.5], [-0.3, 1.2]])
    values = predict_flat(prior, points)
    mean = weight @ values
    error = np.sqrt(weight**2 @ (values - mean) ** 2)
    found = predict_flat({name: draws[g] for name, draws in together["posterior"].items()}, points)
    assert (abs(found.mean(axis=(0, 1)) - mean) < 4 * np.hypot(error, diagnose(found)["mcse"])).all()


def test_networks_sampled_together_have_a_leading_group_axis(together):
    shapes = {name: value.shape for name, value in together["posterior"].items()}
    assert shapes == {"w1": (2, 2, 600, 2, 2), "w2": (2, 2, 600, 2, 3), "w3": (2, 2, 600, 3)}
    assert together["diverging"].shape == together["n_steps"].shape == (2, 2, 600)
    assert together["n_gradients"] >= together["n_steps"].sum() + 2 * 2 * 300


def test_networks_sampled_one_by_one_have_the_same_form(together):
    with pytensor.config.change_flags(mode="JAX"):  # Numba, the default, takes seconds to compile
        alone = flat.flat_loop_pymc(X[:1], Y[:1], seed=1, chains=2, draws=20, tune=30, n_hidden=N_HIDDEN)
    assert sorted(alone) == sorted(together)
    assert {n: v.shape for n, v in alone["posterior"].items()} == {
        "w1": (1, 2, 20, 2, 2), "w2": (1, 2, 20, 2, 3), "w3": (1, 2, 20, 3),
    }  # fmt: skip
    assert all(np.isfinite(value).all() for value in alone["posterior"].values())
    assert alone["diverging"].shape == alone["n_steps"].shape == (1, 2, 20)
    assert alone["n_gradients"] >= alone["n_steps"].sum() + 2 * 30


def test_chains_of_one_category_join_in_order(together):
    joined = flat.join_chains(together["posterior"], 1)
    np.testing.assert_array_equal(joined["w2"][600:], together["posterior"]["w2"][1, 1])


# --- ADVI


def test_pymc_s_steps_in_one_loop_are_those_of_pm_fit():
    fit = {"n_steps": 300, "seed": 1, "n_hidden": N_HIDDEN}
    by_python, by_scan = advi.advi_pymc(X[0], Y[0], backend="jax", **fit), advi.advi_pymc_scan(X[0], Y[0], **fit)
    np.testing.assert_allclose(by_scan["loss"], by_python["loss"], rtol=1e-12)
    for part in ("mean", "sd"):
        for name in flat.WEIGHTS:
            np.testing.assert_allclose(by_scan[part][name], by_python[part][name], rtol=1e-9)


@lots.seldom("book/bench", "tests/test_bench.py")
@pytest.mark.parametrize(
    "fit", [advi.advi_scan, advi.advi_pymc_scan, lambda *a, **k: advi.advi_pymc(*a, backend="c", **k)]
)
def test_a_fit_returns_a_loss_for_each_step_and_a_normal_for_each_weight(fit):
    found = fit(X[0], Y[0], n_steps=50, seed=1, n_hidden=N_HIDDEN)
    shapes = flat.list_flat_shapes(2, N_HIDDEN)
    assert found["loss"].shape == (50,)
    assert np.isfinite(found["loss"]).all()
    assert {n: v.shape for n, v in found["mean"].items()} == {n: v.shape for n, v in found["sd"].items()} == shapes
    assert all((value > 0).all() for value in found["sd"].values())
    assert found["compile_seconds"] > 0
    assert found["cpu_seconds"] > 0


def test_the_loss_is_an_estimate_of_the_negative_elbo():
    still = advi.advi_scan(X[0], Y[0], n_steps=4000, seed=1, n_hidden=N_HIDDEN, start_sd=0.7, learning_rate=1e-12)
    elbo = advi.estimate_elbo(still["mean"], still["sd"], X[0], Y[0], seed=2)
    z = (still["loss"].mean() + elbo["elbo"]) / np.hypot(still["loss"].std() / np.sqrt(4000), elbo["mcse"])
    assert abs(z) < 4


def test_a_fit_to_points_that_say_nothing_ends_at_the_prior():
    found = advi.advi_scan(0 * X[0], Y[0], n_steps=20_000, seed=1, n_hidden=N_HIDDEN, learning_rate=0.001)
    elbo = advi.estimate_elbo(found["mean"], found["sd"], 0 * X[0], Y[0], seed=1)["elbo"]
    np.testing.assert_allclose(elbo, 6 * np.log(0.5), rtol=0, atol=0.02)


def test_the_elbo_where_points_say_nothing_is_known():
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


def test_the_elbo_of_a_narrow_normal_is_its_log_density_and_entropy():
    mean, sd = draw_weights(0), {name: np.full_like(value, 1e-6) for name, value in draw_weights(0).items()}
    logp = float(models.flat_bnn(X[0], Y[0], n_hidden=N_HIDDEN).compile_logp(mode="FAST_COMPILE")(mean))
    n_weights = sum(value.size for value in mean.values())
    entropy = n_weights * norm.entropy(scale=1e-6)
    found = advi.estimate_elbo(mean, sd, X[0], Y[0], seed=1)
    np.testing.assert_allclose(found["elbo"], logp + entropy, rtol=0, atol=1e-6)


def test_the_elbo_s_error_is_the_spread_of_its_estimates():
    mean, sd = draw_weights(0), {name: np.ones_like(value) for name, value in draw_weights(0).items()}
    found = [advi.estimate_elbo(mean, sd, X[0], Y[0], seed=seed, n_draws=200) for seed in range(100)]
    center = np.mean([one["elbo"] for one in found])
    z = [(one["elbo"] - center) / one["mcse"] for one in found]
    assert kstest(z, "norm").pvalue > 0.01


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_draws": 1}, "n_draws=1; wanted: at least 2"),
        ({"seed": -1}, "seed=-1; wanted: an integer"),
        ({"mean": {"w1": np.zeros((2, 2))}}, "mean holds w1; wanted: w1, w2, w3"),
        ({"mean": draw_weights(0) | {"w2": np.zeros((3, 2))}}, "mean has shapes"),
        ({"sd": {name: 0 * value for name, value in draw_weights(0).items()}}, "sd holds values that are not above 0"),
    ],
)
def test_an_elbo_that_cannot_be_is_refused(change, message):
    good = {"mean": draw_weights(0), "sd": {name: abs(value) for name, value in draw_weights(0).items()}, "seed": 1}
    with pytest.raises(ValueError, match=message):
        advi.estimate_elbo(X=X[0], y=Y[0], **good | change)


@pytest.mark.parametrize("fit", [advi.advi_scan, advi.advi_pymc_scan])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_steps": 0}, "n_steps=0; wanted: at least 1"),
        ({"start_sd": 0}, "start_sd=0; wanted: above 0"),
        ({"seed": None}, "seed=None"),
    ],
)
def test_a_fit_that_cannot_be_is_refused(fit, setting, message):
    with pytest.raises(ValueError, match=message):
        fit(X[0], Y[0], **{"n_steps": 5, "seed": 1} | setting)


# --- the harness and its table


def test_the_bound_counts_what_a_hand_counts():
    # one point, 2-3-1: 9 weights, each once forward and once for its gradient; 3 errors sent back; 3 tanh
    by_hand = 2 * 9 + 3 + 3 * (bound.TANH + bound.SLOPE) + bound.OUTPUT
    assert bound.count_operations(1, 8, (2, 3, 1)) == by_hand
    assert bound.count_operations(5, 16, (2, 3, 1), "float32") == 5 * by_hand


def test_a_core_does_at_least_a_million_and_at_most_a_trillion_operations():
    assert 1e6 < bound.measure_rate(n_repetitions=2) < 1e12


def test_a_case_that_fails_is_a_row_that_says_why():
    row = harness.run_case("fit_flat", {"way": "by hand", "n_groups": 1, "draws": 1})
    assert row == {"way": "by hand", "n_groups": 1, "draws": 1, "failed": "KeyError: 'by hand'"}


def test_a_case_gives_what_was_asked_beside_what_was_found():
    row = harness.run_case("predict_points", {"way": "NumPy on the draws", "n_draws": 20, "n_points": 3})
    assert set(row) == {"way", "n_draws", "n_points", "first", "again"}


@pytest.mark.parametrize("quick", [True, False])
def test_every_case_names_a_function_and_its_arguments(quick):
    for groups in harness.list_cases(quick).values():
        for function, arguments in groups:
            signature = inspect.signature(getattr(cases, function))
            for case in arguments:
                signature.bind(**case)


def test_no_number_of_the_table_in_the_book_was_changed_since_it_was_written():
    table = report.read_data("bench")
    assert table["digest"] == harness.digest(table)


def test_a_table_s_digest_tells_every_change(tmp_path, capsys):
    harness.write_table(tmp_path / "x.json", 0.0, study="x", rows=[{"us": 1.5}])
    table = json.loads((tmp_path / "x.json").read_text())
    assert table["digest"] == harness.digest(table)
    assert harness.digest(table | {"rows": [{"us": 1.6}]}) != table["digest"]
    assert harness.digest(table | {"minutes": 1.0}) != table["digest"]
    assert harness.digest(table | {"commit": "1234567"}) != table["digest"]


def test_the_table_in_the_book_is_the_record_of_a_whole_run():
    """The cases are those of `list_cases` now; what they cost that day is not tested here, nor anywhere."""
    table, wanted = report.read_data("bench"), harness.list_cases(quick=False)
    assert table["quick"] is False
    assert {"processor", "requirements"} <= set(table["machine"])
    assert {"pymc", "nutpie", "numpyro", "blackjax", "jax", "numba"} <= set(table["versions"])
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


@lots.seldom("book/bench", "tests/test_bench.py")
@pytest.mark.parametrize("form", ["fused", "by hand"])
def test_the_forms_of_the_headline_are_one_density(form):
    call, _ = cases.make_gradient(form, X, Y, N_HIDDEN)
    typed, _ = cases.make_gradient("graph", X, Y, N_HIDDEN)
    for found, expected in zip(call(), typed(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
