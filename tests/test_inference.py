"""ADVI and NUTS: the same seed gives the same bits, known answers are found, nothing is printed, nothing is lost."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import warnings
from types import SimpleNamespace

import chapters
import lots
import nbformat
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from bnn import data, inference, models
from nbclient import NotebookClient
from scipy.special import expit
from scipy.stats import kstest, norm

OBSERVED = np.array([0.3, 2.1, 1.4, 0.9, 1.8, 2.6, 1.1, 0.2, 1.9, 1.7])
# a standard normal prior on the mean of normal observations of sd 1
POSTERIOR_MEAN, POSTERIOR_SD = OBSERVED.sum() / 11, 1 / np.sqrt(11)


@pytest.fixture(scope="module")
def conjugate():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("x", mu, 1, observed=OBSERVED)
    return model


@pytest.fixture(scope="module")
def network():
    moons = data.flat_moons(seed=0, n_obs=40)
    return models.flat_bnn(moons.X_train, moons.y_train)


@pytest.fixture(scope="module")
def fit(network):
    return inference.fit_advi(network, 50, seed=1)


def read_means(fit):
    return fit.approx.mean.eval(mode="FAST_COMPILE")


# --- ADVI


def test_one_seed_gives_the_same_bits_twice(network, fit):
    again = inference.fit_advi(network, 50, seed=1)
    np.testing.assert_array_equal(again.loss, fit.loss)
    np.testing.assert_array_equal(read_means(again), read_means(fit))


def test_another_seed_gives_another_fit(network, fit):
    assert not np.isin(inference.fit_advi(network, 50, seed=2).loss, fit.loss).any()


def test_draws_have_the_shapes_of_the_weights_and_their_own_seed(fit):
    draws, again, other = (fit.draw(30, seed=seed) for seed in (1, 1, 2))
    assert {name: value.shape for name, value in draws.items()} == {"w1": (30, 2, 5), "w2": (30, 5, 5), "w3": (30, 5)}
    for name, value in draws.items():
        np.testing.assert_array_equal(value, again[name])
        assert not np.isin(value, other[name]).any()


def test_draws_of_all_weights_are_pymcs_in_its_order(fit):
    drawn = fit.approx.sample(30, random_seed=1)["posterior"]
    for name, value in fit.draw(30, seed=1).items():
        np.testing.assert_array_equal(value, drawn[name].values[0])


def test_there_is_one_loss_for_each_step(fit):
    assert fit.loss.shape == (50,)
    assert np.isfinite(fit.loss).all()


@pytest.fixture(scope="module")
def started(network):
    """Means and sds after one step from two starts: dict of (2, weight) arrays."""
    asked = {"zero": 0.05, "random": 1.5}
    fits = {start: inference.fit_advi(network, 1, seed=3, start=start, start_sd=sd) for start, sd in asked.items()}
    return {start: (read_means(fit), fit.approx.std.eval(mode="FAST_COMPILE")) for start, fit in fits.items()}


def test_a_random_start_is_standard_normal_and_a_zero_start_is_zero(started):
    assert abs(started["zero"][0]).max() < 0.01  # one step of the optimiser
    assert 0.5 < started["random"][0].std() < 1.5


def test_the_first_step_starts_from_the_sd_that_was_asked(started):
    np.testing.assert_allclose(started["zero"][1], 0.05, atol=0.01)
    np.testing.assert_allclose(started["random"][1], 1.5, atol=0.01)


def test_a_start_reaches_variables_that_are_transformed():
    with pm.Model() as model:
        sd = pm.HalfNormal("sd")
        pm.Normal("x", 0, sd, observed=OBSERVED)
    assert abs(read_means(inference.fit_advi(model, 1, seed=3, start="zero"))) < 0.01  # log(sd), not sd
    assert abs(read_means(inference.fit_advi(model, 1, seed=3))) > 0.01


def test_advi_finds_a_posterior_that_is_normal(conjugate):
    fit = inference.fit_advi(conjugate, 4000, seed=1, optimizer=pm.adam(learning_rate=0.005))
    draws = fit.draw(4000, seed=1)["mu"]
    assert draws.mean() == pytest.approx(POSTERIOR_MEAN, abs=0.03)
    assert draws.std() == pytest.approx(POSTERIOR_SD, rel=0.1)
    # the family holds the posterior, so the best loss is the negative log evidence
    covariance = np.eye(10) + 1
    evidence = -0.5 * (
        OBSERVED @ np.linalg.solve(covariance, OBSERVED) + np.linalg.slogdet(covariance)[1] + 10 * np.log(2 * np.pi)
    )
    tail = fit.loss[-2000:]
    assert tail.mean() == pytest.approx(-evidence, abs=0.02)


# --- ADVI with another start, another weight of the prior, another optimiser


JAX = pytest.mark.filterwarnings("ignore:The RandomType SharedVariables")  # each fit has its own copy of them


@pytest.fixture(scope="module")
def wide():
    """A linear layer with biases, on one image: (units below, units above) and (units above)."""
    with pm.Model() as model:
        w, b = pm.Normal("w", shape=(100, 200)), pm.Normal("b", shape=200)
        pm.Normal("x", np.full(100, 0.1) @ w + b, 1, observed=np.zeros(200))
    return model


@JAX
def test_by_default_advi_is_that_of_pymc(wide):
    start_seed, fit_seed = np.random.SeedSequence(4).generate_state(2)
    rng = np.random.default_rng(start_seed)
    means = {"w": rng.normal(size=(100, 200)), "b": rng.normal(size=200)}
    sds = {"w": np.full(100 * 200, 0.1), "b": np.full(200, 0.1)}
    expected = pm.fit(
        20, method="advi", model=wide, start=means, start_sigma=sds, random_seed=int(fit_seed), backend="jax",
        progressbar=False,
    )  # fmt: skip
    fit = inference.fit_advi(wide, 20, seed=4, beta=1, backend="jax")
    np.testing.assert_array_equal(fit.loss, expected.hist)
    for part in ("mu", "rho"):
        found, known = (approx.groups[0].params_dict[part].get_value() for approx in (fit.approx, expected))
        np.testing.assert_array_equal(found, known)


@JAX
def test_a_fan_in_start_has_smaller_weights_in_wider_layers_and_no_biases(wide):
    w, b = np.split(read_means(inference.fit_advi(wide, 1, seed=3, start="fan-in", backend="jax")), [100 * 200])
    step = 0.001  # of the optimiser, which the first gradient scales to its learning rate
    assert abs(b).max() < 2 * step
    assert w.std() == pytest.approx(0.1, rel=4 / np.sqrt(2 * w.size) + step / 0.1)  # 1 / sqrt(100 units below)
    assert abs(w.mean()) < 4 * 0.1 / np.sqrt(w.size) + step
    assert kstest(w / 0.1, "norm").pvalue > 1e-3


def record(n_steps):
    """A list, and a callback that appends mean and sd of each of the last 500 steps to it."""
    found = []

    def keep(approx, losses, step):
        if step >= n_steps - 500:
            mu, rho = (approx.groups[0].params_dict[name].get_value() for name in ("mu", "rho"))
            found.append((mu[0], np.log1p(np.exp(rho[0]))))

    return found, keep


@pytest.fixture(scope="module")
def tempered(conjugate):
    """Mean and sd of q by the weight of the KL divergence."""
    n_steps, found = 1000, {}
    for beta in (0, 0.1, 1000):
        steps, keep = record(n_steps)
        optimizer = pm.adam(learning_rate=0.02)
        inference.fit_advi(conjugate, n_steps, seed=1, beta=beta, optimizer=optimizer, callbacks=[keep], backend="jax")
        found[beta] = np.mean(steps, axis=0)
    return found


@JAX
@pytest.mark.parametrize("beta", [0.1, 1000])
def test_a_weight_of_the_divergence_counts_the_prior_so_often(tempered, beta):
    mean, sd = tempered[beta]
    # the best q is the posterior of observations that each count 1 / beta times
    assert mean == pytest.approx(OBSERVED.sum() / (beta + 10), abs=0.1)
    assert sd == pytest.approx(1 / np.sqrt(1 + 10 / beta), rel=0.15)


@JAX
def test_without_the_divergence_q_shrinks_on_the_best_fit(tempered):
    mean, sd = tempered[0]
    assert mean == pytest.approx(OBSERVED.mean(), abs=0.05)
    assert sd < tempered[0.1][1] / 2 < POSTERIOR_SD / 4


@JAX
def test_a_heavy_divergence_pulls_q_to_the_prior(tempered):
    divergence = {beta: (m**2 + sd**2 - 1 - 2 * np.log(sd)) / 2 for beta, (m, sd) in tempered.items()}
    assert list(divergence.values()) == sorted(divergence.values(), reverse=True)
    assert divergence[1000] < 0.01  # the exact optimum has 0.0001, the posterior 1.56


@JAX
def test_without_the_divergence_the_loss_is_the_negative_log_likelihood(conjugate):
    start = {"seed": 1, "start": "zero", "start_sd": 1e-6, "backend": "jax"}
    loglik = norm.logpdf(OBSERVED).sum()
    misfit = inference.fit_advi(conjugate, 1, beta=0, **start).loss[0]
    assert misfit == pytest.approx(-loglik, abs=1e-3)  # the draw is within 5e-6 of zero, the slope there is 14
    # what beta counts: log q - log p at the draw, the same draw in both
    losses = [inference.fit_advi(conjugate, 1, beta=beta, **start).loss[0] - misfit for beta in (1, 3)]
    assert losses[1] == pytest.approx(3 * losses[0], rel=1e-9)
    z = np.sqrt(2 * (-np.log(1e-6) - losses[0]))  # log q - log p = -log(sd) - z^2 / 2 + (sd z)^2 / 2
    assert 0 <= z < 5


@JAX
def test_another_optimizer_takes_other_steps_from_the_same_start(conjugate):
    slow, fast = (
        inference.fit_advi(conjugate, 5, seed=1, optimizer=pm.sgd(learning_rate=rate), backend="jax")
        for rate in (1e-9, 1e-2)
    )
    assert slow.loss[0] == fast.loss[0]
    assert abs(slow.loss[1] - fast.loss[1]) > 1e-6


# --- NUTS


def test_advi_prints_nothing(network, capfd, caplog):
    inference.fit_advi(network, 20, seed=1).draw(5, seed=1)
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


# --- every engine through one door


def make_grouped(X, labels):
    """Logistic regressions with named dimensions ("group" has labels, "obs" has none) and a mean that is known."""
    with pm.Model(coords={"group": ["a", "b", "c"], "feature": range(2)}) as model:
        x = pm.Data("X", X, dims=("group", "obs", "feature"))
        y = pm.Data("labels", labels.astype("int32"), dims=("group", "obs"))
        pm.Data("unused", np.zeros(3), dims="group")
        mu = pm.Normal("mu", dims="feature")
        sd = pm.HalfNormal("sd", 1)
        z = pm.Normal("z", dims=("group", "feature"))
        p = pm.Deterministic("p", pm.math.sigmoid((x * (mu + sd * z)[:, None]).sum(-1)), dims=("group", "obs"))
        pm.Deterministic("twice", 2 * sd)
        pm.Bernoulli("y", p, observed=y, dims=("group", "obs"))
        pm.Normal("x", pm.Normal("known"), 1, observed=OBSERVED)
    return model


def make_data(n_obs, seed=1):
    rng = np.random.default_rng(seed)
    return {"X": rng.normal(size=(3, n_obs, 2)), "labels": rng.integers(2, size=(3, n_obs))}


@pytest.fixture(scope="module")
def grouped():
    return make_grouped(**make_data(20, seed=0))


@pytest.fixture(scope="module")
def compiled(grouped):
    return inference.compile_nuts(grouped)


def compute_p(posterior, X):
    weights = posterior["mu"].values[:, :, None] + posterior["sd"].values[..., None, None] * posterior["z"].values
    return expit(np.einsum("gnf,cdgf->cdgn", X, weights))


ASKED = {"seed": 5, "chains": 2, "draws": 300, "tune": 200}


@pytest.fixture(scope="module", params=lots.draw(inference.ENGINES, 1, always=["nutpie"]))
def run(request, grouped):
    return inference.sample_nuts(grouped, engine=request.param, **ASKED)


def test_nuts_finds_a_known_posterior(run):
    draws = run["posterior"]["known"].values
    error = POSTERIOR_SD / np.sqrt(150)  # at least 150 effective draws of 600
    assert draws.mean() == pytest.approx(POSTERIOR_MEAN, abs=4 * error)
    assert draws.std() == pytest.approx(POSTERIOR_SD, rel=0.2)
    assert not np.isin(draws[0], draws[1]).any()  # each chain has its own numbers


def test_nuts_finds_the_same_twice_and_silently(run, grouped, compiled, capfd, caplog):
    engine = run.attrs["engine"]
    again = inference.sample_nuts(compiled if engine == "nutpie" else grouped, engine=engine, **ASKED)
    assert again["posterior"].identical(run["posterior"])
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_a_posterior_has_the_dimensions_and_labels_of_the_model(run):
    posterior = run["posterior"]
    assert {name: values.dims[2:] for name, values in posterior.data_vars.items()} == {
        "mu": ("feature",), "sd": (), "z": ("group", "feature"), "known": (), "p": ("group", "obs"), "twice": (),
    }  # fmt: skip
    assert dict(posterior.sizes) == {"chain": 2, "draw": 300, "feature": 2, "group": 3, "obs": 20}
    assert list(posterior["group"].values) == ["a", "b", "c"]
    assert list(posterior["chain"].values) == [0, 1]
    assert {values.dtype for values in posterior.data_vars.values()} == {np.dtype("float64")}


def test_a_deterministic_variable_is_that_of_each_draw(run, grouped):
    expected = compute_p(run["posterior"], grouped["X"].get_value())
    np.testing.assert_allclose(run["posterior"]["p"], expected, rtol=1e-12)
    np.testing.assert_allclose(run["posterior"]["twice"], 2 * run["posterior"]["sd"], rtol=1e-15)


def test_the_statistics_have_one_set_of_names_and_types(run):
    assert {name: values.dtype.kind for name, values in run["sample_stats"].data_vars.items()} == {
        "diverging": "b", "depth": "i", "n_steps": "i", "energy": "f", "step_size": "f", "logp": "f",
        "mean_tree_accept": "f",
    }  # fmt: skip


def test_the_log_density_is_that_of_the_draw(run, grouped):
    logp = grouped.compile_logp(mode="FAST_COMPILE")
    draw = {name: run["posterior"][name].values[1, 7] for name in ("mu", "sd", "z", "known")}
    point = {"mu": draw["mu"], "z": draw["z"], "known": draw["known"], "sd_log__": np.log(draw["sd"])}
    assert run["sample_stats"]["logp"].values[1, 7] == pytest.approx(logp(point), rel=1e-10)


def test_the_steps_of_a_draw_fit_the_depth_of_its_tree(run):
    stats = run["sample_stats"]
    assert (stats["n_steps"] >= 2 ** stats["depth"] - 1).all()  # complete doublings
    assert (stats["n_steps"] < 2 ** (stats["depth"] + 1)).all()  # and one that was broken off


def test_a_full_tree_of_three_doublings_has_seven_steps():
    np.testing.assert_array_equal(inference._count_doublings(np.array([1, 2, 3, 6, 7, 1023])), [1, 1, 2, 2, 3, 10])


def test_the_energy_is_minus_the_log_density_plus_a_kinetic_energy(run):
    stats = run["sample_stats"]
    kinetic = (stats["energy"] + stats["logp"]).values  # half a chi-square, one degree for each of 10 dimensions
    error = np.sqrt(10 / 2 * (10 / 2 + 3) / 600) * np.sqrt(2)  # of a variance of 5, from 600 Gamma(5) draws
    assert kinetic.var(axis=1).mean() == pytest.approx(10 / 2, abs=4 * error)  # its mean holds nutpie's constant


def test_a_result_says_how_it_was_made(run):
    attributes = dict(run.attrs)
    seconds = {name: attributes.pop(name) for name in list(attributes) if name.endswith("_seconds")}
    engine = attributes.pop("engine")
    versions = {name: attributes.pop(name) for name in list(attributes) if name.endswith("_version")}
    assert attributes == {
        "created_by": "bnn", **ASKED, "target_accept": 0.8, "max_depth": 10, "interrupted": 0,
    }  # fmt: skip
    assert {"pymc", "pytensor", engine} <= {name.removesuffix("_version") for name in versions}
    assert versions["pymc_version"] == pm.__version__
    assert min(seconds.values()) > 0
    assert set(seconds) >= {"wall_seconds", "cpu_seconds"}
    assert ("compile_seconds" in seconds) == (engine != "numpyro")


def test_no_group_carries_a_clock(run):
    assert [node.attrs for node in run.children.values()] == [{}, {}]


def test_cpu_seconds_are_those_of_this_process_and_its_children(monkeypatch):
    times = SimpleNamespace(user=1.0, system=2.0, children_user=4.0, children_system=8.0)
    monkeypatch.setattr(inference.os, "times", lambda: times)
    assert inference._Clock._read()[1] == 15


def test_a_higher_target_means_smaller_steps(compiled):
    low, high = (
        inference.sample_nuts(compiled, seed=1, chains=1, draws=20, tune=200, target_accept=target)["sample_stats"]
        for target in (0.6, 0.99)
    )
    assert high["step_size"].mean() < low["step_size"].mean() / 2


def test_each_category_has_a_seed_of_its_own(monkeypatch):
    moons = data.rotated_moons(seed=0, n_groups=3, n_train=8)
    model = models.flat_bnn(moons.X_train[0], moons.y_train[0])
    held = {variable.name: variable.get_value() for variable in model.data_vars}
    nothing = SimpleNamespace(with_data=lambda **_: None)
    compiled = inference.CompiledNuts(model, "numba", held, 0.0, nothing, {"compiled data": set()})
    monkeypatch.setattr(inference, "sample_nuts", lambda *_, seed: seed)
    assert len(set(inference.sample_groups(compiled, moons.X_train, moons.y_train, seed=1))) == 3


def test_no_tuning_at_all_is_allowed(compiled):
    assert inference.sample_nuts(compiled, seed=1, chains=1, draws=20, tune=0)["posterior"]["sd"].shape == (1, 20)


# --- compiled once


def test_a_compiled_model_samples_other_data_as_a_fresh_model_does_through_pymcs_own_door(compiled):
    found = inference.sample_nuts(compiled.with_data(**make_data(7)), seed=2, chains=2, draws=40, tune=40)
    expected = pm.sample(
        model=make_grouped(**make_data(7)), random_seed=2, chains=2, draws=40, tune=40, cores=1, nuts_sampler="nutpie",
        progressbar=False, quiet=True, compute_convergence_checks=False,
    )  # fmt: skip
    for name in ("mu", "sd", "z", "known"):
        np.testing.assert_array_equal(found["posterior"][name], expected["posterior"][name])


@pytest.mark.parametrize("n_obs", [20, 7, 31])
def test_dimensions_and_deterministic_variables_follow_the_data(compiled, n_obs):
    new = make_data(n_obs)
    found = inference.sample_nuts(compiled.with_data(**new), seed=2, chains=2, draws=20, tune=20)["posterior"]
    assert list(found["obs"].values) == list(range(n_obs))
    np.testing.assert_allclose(found["p"], compute_p(found, new["X"]), rtol=1e-12)


def test_a_model_compiled_with_jax_takes_other_data_too(grouped):
    new = make_data(7)
    compiled = inference.compile_nuts(grouped, backend="jax").with_data(**new)
    found = inference.sample_nuts(compiled, seed=2, chains=1, draws=30, tune=30)["posterior"]
    np.testing.assert_allclose(found["p"], compute_p(found, new["X"]), rtol=1e-12)


def test_other_data_leave_the_compiled_model_as_it_was(compiled):
    before = inference.sample_nuts(compiled, seed=2, chains=1, draws=30, tune=30)
    compiled.with_data(**make_data(7))
    after = inference.sample_nuts(compiled, seed=2, chains=1, draws=30, tune=30)
    assert after["posterior"].identical(before["posterior"])


def test_a_compiled_model_costs_no_second_compilation(compiled):
    assert compiled.compile_seconds > 0
    assert inference.sample_nuts(compiled, seed=2, chains=1, draws=5, tune=5).attrs["compile_seconds"] == 0


def test_an_axis_with_labels_gets_numbers_when_its_length_changes():
    with pm.Model(coords={"point": ["u", "v"]}) as model:
        x = pm.Data("x", np.zeros(2), dims="point")
        pm.Deterministic("shifted", pm.Normal("a") + x, dims="point")
    compiled = inference.compile_nuts(model)
    same, longer = (
        inference.sample_nuts(compiled.with_data(x=np.arange(n)), seed=1, chains=1, draws=5, tune=20)["posterior"]
        for n in (2, 3)
    )
    assert list(same["point"].values) == ["u", "v"]
    assert list(longer["point"].values) == [0, 1, 2]
    np.testing.assert_allclose(longer["shifted"] - longer["a"], np.tile(np.arange(3.0), (1, 5, 1)), atol=1e-12)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": 1}, r"no data named 'Z'; wanted: X, labels, unused"),
        ({"X": np.zeros((20, 2))}, r"X has 2 axes; wanted: 3 \(group, obs, feature\)"),
        ({"X": np.zeros((3, 9, 2))}, r"labels has 20 along 'obs', X has 9; wanted: one length, both given together"),
        ({"X": np.zeros((2, 20, 2))}, r"X has 2 along 'group'; wanted: 3, the model has variables of it"),
        ({"labels": np.full((3, 20), 0.5)}, r"labels holds 0.5; wanted: int32"),
        ({"X": np.full((3, 20, 2), np.nan)}, r"X holds NaN or infinite numbers; wanted: finite numbers"),
        ({"X": "points"}, r"X is no array: .*; wanted: float64"),
        ({"X": np.ma.masked_less(np.zeros((3, 20, 2)), 1)}, r"X holds masked values; wanted: float64 without"),
    ],
)
def test_data_that_do_not_fit_are_named(compiled, arrays, message):
    with pytest.raises(ValueError, match=message):
        compiled.with_data(**arrays)


def test_data_without_named_axes_keep_their_shape():
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("a"), 1, observed=pm.Data("x", np.zeros(3)))
    compiled = inference.CompiledNuts(model, "numba", {"x": np.zeros(3)}, 0.0, None)
    with pytest.raises(ValueError, match=r"x has shape \(4,\); wanted: \(3,\), because its axes have no names"):
        compiled.with_data(x=np.zeros(4))


# --- interrupted


@pytest.fixture
def handle():
    """What Ctrl-C does, until the end of the test: a function of the handler."""
    before = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def slow():
    """A simple posterior whose density takes its time, so that there is something to interrupt."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Deterministic("twice", 2 * x)
        pm.Normal("y", x.sum(), 1000, observed=np.zeros(20_000))
    return model


@pytest.fixture
def interrupt(handle, monkeypatch):
    """Send this process one Ctrl-C, as soon as so many draws are done, tuning included."""
    handle(signal.default_int_handler)  # a job that a shell put in the background ignores Ctrl-C

    def start(wanted):
        describe, sent = inference._describe, []

        def look(engine, done, *others):
            if done >= wanted and not sent:
                sent.append(done)
                os.kill(os.getpid(), signal.SIGINT)
            return describe(engine, done, *others)

        monkeypatch.setattr(inference, "_describe", look)

    return start


@pytest.mark.parametrize(("engine", "n_draws"), [("nutpie", 8_000), ("pymc", 200)])
def test_an_interruption_keeps_the_finished_draws(slow, interrupt, engine, n_draws):
    interrupt(50 + n_draws + 50 + 20)  # in the second chain
    with pytest.warns(UserWarning, match="Interrupted") as said:
        tree = inference.sample_nuts(slow, seed=1, engine=engine, chains=4, draws=n_draws, tune=50)
    x, steps = tree["posterior"]["x"].values, tree["sample_stats"]["n_steps"]
    n_chains, length = x.shape[:2]
    assert 1 <= n_chains < 4  # how soon the signal is heard is up to the machine
    assert 0 < length <= n_draws
    assert n_chains * length < 4 * n_draws
    assert (tree.attrs["interrupted"], tree.attrs["draws"]) == (1, n_draws)
    sentence = f"Interrupted: {length:,} of {n_draws:,} draws of {n_chains} of 4 chains are kept."
    assert sentence in [str(warning.message) for warning in said]
    np.testing.assert_array_equal(tree["posterior"]["twice"], 2 * x)
    assert np.isfinite(x).all()
    assert (np.ptp(x, axis=1) > 0).all()
    assert steps.shape == (n_chains, length)
    assert (steps > 0).all()


@pytest.mark.parametrize("engine", ["nutpie", "pymc"])
def test_an_interruption_in_tuning_leaves_nothing_to_keep(slow, interrupt, engine):
    interrupt(1)
    with pytest.raises(KeyboardInterrupt):
        inference.sample_nuts(slow, seed=1, engine=engine, chains=4, draws=1000, tune=100_000)


def test_an_interruption_that_jax_loses_is_raised_at_the_end(handle):
    handle(signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), inference._insist_on_interrupts():  # noqa: PT012
        with contextlib.suppress(KeyboardInterrupt):  # as Python does in JAX
            signal.raise_signal(signal.SIGINT)
        survived = True
    assert survived


def test_an_interruption_that_is_ignored_stays_so(handle):
    handle(signal.SIG_IGN)  # as in a job that a shell put in the background
    with inference._insist_on_interrupts():
        signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


@pytest.fixture(scope="module")
def stopped(conjugate):
    """A fit that is interrupted at its fifth step, and the warnings."""

    def interrupt_fifth(approx, losses, step):
        if step == 5:
            raise KeyboardInterrupt

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return inference.fit_advi(conjugate, 20, seed=1, callbacks=[interrupt_fifth]), said


def test_an_interrupted_fit_is_kept_as_far_as_it_came(stopped):
    assert len(stopped[0].loss) == 4
    assert stopped[0].draw(3, seed=1)["mu"].shape == (3,)


def test_an_interrupted_fit_says_so(stopped):
    assert [str(warning.message) for warning in stopped[1]] == ["Interrupted: 4 of 20 steps were taken."]


def test_a_fit_that_is_interrupted_in_its_first_step_leaves_nothing(conjugate, monkeypatch):
    monkeypatch.setattr(inference.pm, "fit", lambda *_, **__: SimpleNamespace(hist=np.array([])))
    with pytest.raises(KeyboardInterrupt):
        inference.fit_advi(conjugate, 20, seed=1)


@pytest.mark.parametrize(
    ("lengths", "chains", "length"),
    [
        ([100, 100, 100], [0, 1, 2], 100),
        ([100, 100, 30], [0, 1], 100),
        ([100, 60, 0], [0, 1], 60),
        ([100, 49, 0], [0], 100),
        ([100, 50, 0], [0, 1], 50),  # as many draws, and two chains can be compared
        ([30, 100, 90], [1, 2], 90),
        ([0, 0], [0, 1], 0),
    ],
)
def test_the_kept_block_is_the_largest(lengths, chains, length):
    kept, found = inference._choose_block(np.array(lengths))
    assert (list(kept), found) == (chains, length)


# --- progress


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setenv("BNN_PROGRESS", "on")


@pytest.fixture(scope="module")
def shown(compiled, network):
    """Draws and a fit whose progress was asked for, and what was written to stdout and stderr."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        tree = inference.sample_nuts(compiled, seed=5, chains=2, draws=30, tune=30, progress=True)
        fit = inference.fit_advi(network, 50, seed=1, progress=True)
    return tree, fit, out.getvalue(), err.getvalue()


def test_asked_for_progress_is_shown_on_stderr_and_wiped(shown):
    *_, out, err = shown
    assert out == ""
    assert "nutpie: compiling" in err
    assert "ADVI: compiling" in err
    assert err.endswith("\r\x1b[K")


def test_progress_changes_no_number(shown, tree, fit):
    assert shown[0]["posterior"].identical(tree["posterior"])
    np.testing.assert_array_equal(shown[1].loss, fit.loss)


def test_nobody_watches_a_pipe(compiled, capfd, watched):
    inference.sample_nuts(compiled, seed=1, chains=1, draws=20, tune=20)
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("setting", "shown"), [("on", True), ("off", False)])
def test_a_terminal_is_watched_unless_the_environment_says_off(monkeypatch, setting, shown):
    import pty

    terminal, end = pty.openpty()
    monkeypatch.setenv("BNN_PROGRESS", setting)
    with open(end, "w") as screen, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        with inference._Progress() as bar:
            bar.show("half way")
        screen.write(".")  # so that there is something to read
        screen.flush()
        written = ""
        while not written.endswith("."):  # a terminal hands out what it has so far
            written += os.read(terminal, 1000).decode()
    os.close(terminal)
    assert written == ("\r\x1b[Khalf way\r\x1b[K." if shown else ".")


CELLS = (
    """import os
import pymc as pm
from bnn import inference
with pm.Model() as model:
    pm.Normal("y", pm.Normal("a"), 1, observed=[0.5])""",
    "tree = inference.sample_nuts(model, seed=1, chains=1, draws=20, tune=20)",
    "fit = inference.fit_advi(model, 20, seed=1)",
    "os.environ['BNN_PROGRESS'] = 'off'",
)


def test_a_notebook_stores_no_progress():
    sources = [*CELLS, *CELLS[1:3]]
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(nb, kernel_name="python3").execute(env=os.environ | {"BNN_PROGRESS": "on"})
    stored = [[output.get("data") for output in cell.outputs] for cell in nb.cells]
    assert stored == [[], [{}], [{}], [], [], []]  # without data a front end draws nothing, not even an empty line
    assert "widgets" not in nb.metadata
    nbformat.validate(nb)


def test_chapters_and_their_tests_run_unwatched(tmp_path):
    source = "---\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n"
    (tmp_path / "a.md").write_text(
        source + "```{code-cell} ipython3\nimport os\nprint(os.environ['BNN_PROGRESS'])\n```\n"
    )
    written = nbformat.read(chapters.execute(tmp_path / "a.md"), as_version=4)
    assert written.cells[-1].outputs[0].text == "off\n"
    assert chapters.kernel_environment()["BNN_PROGRESS"] == "off"  # what kernels inherit that nbval starts


# --- saved and loaded


@pytest.fixture(scope="module")
def tree(compiled):
    return inference.sample_nuts(compiled, seed=5, chains=2, draws=30, tune=30)


@pytest.fixture
def saved(tree, tmp_path):
    inference.save(tree, tmp_path / "run.nc")
    return tmp_path / "run.nc"


def test_what_is_loaded_is_what_was_saved(tree, saved, grouped):
    loaded = inference.load(saved, model=grouped)
    assert loaded.identical(tree)
    for node in tree.subtree:
        assert loaded[node.path].attrs == node.attrs
        for name, variable in node.variables.items():
            assert loaded[node.path].variables[name].dtype == variable.dtype
    assert {name: type(value) for name, value in loaded.attrs.items()} == {
        name: type(value) for name, value in tree.attrs.items()
    }


def test_other_groups_and_lists_come_back_too(tree, tmp_path):
    more = tree.copy()
    more["observed_data"] = xr.DataTree(xr.Dataset({"y": ("obs", np.array([1, 0], "int8"))}, attrs={"who": ["a", "b"]}))
    more["observed_data/deep"] = xr.DataTree(xr.Dataset({"missing": ("k", [np.nan, 1.0])}))
    inference.save(more, tmp_path / "run.nc")
    loaded = inference.load(tmp_path / "run.nc")
    assert loaded.identical(more)
    assert loaded["observed_data"].attrs == {"who": ["a", "b"]}


def test_a_file_can_be_replaced_while_its_result_is_in_use(tree, saved):
    loaded = inference.load(saved)
    inference.save(loaded, saved)
    assert inference.load(saved).identical(tree)
    assert [path.name for path in saved.parent.iterdir()] == ["run.nc"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(tree, saved, monkeypatch, error):
    def fail(*_):
        raise error

    before = saved.read_bytes()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(error):
        inference.save(tree, saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["run.nc"]


FULL = """
import os, resource, sys
import numpy as np, xarray as xr
from bnn import inference

tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("draw", np.arange(20_000.0))})})
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # a disk that is full after 50 kB
try:
    inference.save(tree, sys.argv[1])
except OSError as error:
    print(type(error).__name__, os.listdir())
"""


@pytest.mark.skipif(os.name != "posix", reason="needs limits on the size of a file")
def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(tmp_path):
    done = subprocess.run([sys.executable, "-c", FULL, "run.nc"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "OSError []\n")


@pytest.mark.parametrize("value", [None, True, {"a": 1}, [1, None]])
def test_an_attribute_that_netcdf_cannot_hold_is_named(tree, tmp_path, value):
    odd = tree.copy()
    odd.attrs["odd"] = value
    with pytest.raises(ValueError, match=r"attribute odd=.* cannot be saved; wanted: numbers or text"):
        inference.save(odd, tmp_path / "run.nc")
    assert list(tmp_path.iterdir()) == []


def test_what_would_come_back_otherwise_is_not_saved(tree, tmp_path):
    odd = tree.copy()
    odd.attrs["odd"] = ["one"]  # a list of one comes back as a string
    with pytest.raises(ValueError, match=r"would not come back as it is; wanted: numbers and text"):
        inference.save(odd, tmp_path / "run.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tree, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no folder .*away; wanted: one that exists"):
        inference.save(tree, tmp_path / "away" / "run.nc")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*run.nc; wanted: one that bnn.inference.save wrote"):
        inference.load(tmp_path / "run.nc")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x89HDF"])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "run.nc").write_bytes(content)
    with pytest.raises(ValueError, match=r"is no NetCDF file; wanted"):
        inference.load(tmp_path / "run.nc")


@pytest.mark.parametrize("share", [0.05, 0.5, 0.99])
def test_a_truncated_file_is_refused(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(ValueError, match=r"is cut off or damaged \(.*\); sample again"):
        inference.load(saved)


def test_a_changed_number_is_noticed(tree, saved):
    content = saved.read_bytes()
    number = tree["posterior"]["mu"].values[1, 3, 0].tobytes()
    assert content.count(number) == 1
    saved.write_bytes(content.replace(number, np.float64(0.5).tobytes()))
    with pytest.raises(ValueError, match=r"is damaged: its contents do not match their digest; sample again"):
        inference.load(saved)


def test_a_changed_attribute_is_noticed(tree, saved):
    content = saved.read_bytes()
    assert content.count(b"nutpie") > 0
    saved.write_bytes(content.replace(b"nutpie", b"nutpig"))
    with pytest.raises(ValueError, match=r"damaged"):
        inference.load(saved)


def test_the_digest_of_a_file_knows_the_names_of_its_axes():
    square, turned = (
        xr.DataTree.from_dict({"posterior": xr.Dataset({"x": (dims, np.eye(2))})}) for dims in (("a", "b"), ("b", "a"))
    )
    assert inference._digest_tree(square) != inference._digest_tree(turned)


def test_a_file_that_somebody_else_wrote_is_refused(tree, tmp_path):
    tree.to_netcdf(tmp_path / "run.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"was not written by bnn; wanted: one that bnn.inference.save wrote"):
        inference.load(tmp_path / "run.nc")


def make_other(**shapes):
    with pm.Model() as model:
        for name, shape in shapes.items():
            pm.Normal(name, shape=shape)
    return model


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (
            {"mu": 2, "sd": (), "known": (), "z": (4, 2), "p": (3, 20), "twice": ()},
            r"z has shape \(3, 2\), in the model \(4, 2\)",
        ),
        ({"mu": 2, "sd": (), "known": (), "z": (3, 2), "p": (3, 20), "twice": (), "w": 1}, r"w is missing"),
        ({"mu": 2, "sd": (), "known": (), "z": (3, 2), "p": (3, 20)}, r"twice is not in the model"),
    ],
)
def test_draws_of_another_model_are_refused(saved, shapes, message):
    with pytest.raises(
        ValueError, match=rf"holds draws of another model: {message}; wanted: the model it was drawn from"
    ):
        inference.load(saved, model=make_other(**shapes))


# --- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: inference.fit_advi(m, 10, seed=0, backend="torch"), r"backend='torch'; wanted: .* numba, c, jax"),
        (lambda m: inference.fit_advi(m, 10, seed=0, start="one"), r"start='one'; wanted: 'random', 'zero' or 'fan-in"),
        (lambda m: inference.fit_advi(m, 10, seed=0, start_sd=0), r"start_sd=0; wanted: a standard deviation above 0"),
        (lambda m: inference.fit_advi(m, 0, seed=0), r"n_steps=0; wanted: at least 1"),
        (lambda m: inference.fit_advi(m, 10, seed=0, beta=-1), r"beta=-1; wanted: a weight of at least 0; 1 is Bayes'"),
        (lambda m: inference.fit_advi(m, 10, seed=0, beta=np.inf), r"beta=inf; wanted: a weight of at least 0"),
        (lambda m: inference.fit_advi(m, 10, seed=0, beta=np.nan), r"beta=nan; wanted: a weight of at least 0"),
        (
            lambda m: inference.sample_nuts(m, seed=0, engine="stan"),
            r"engine='stan'; wanted: .* nutpie, pymc, numpyro, bl",
        ),
        (lambda m: inference.sample_nuts(None, seed=0), r"model is a NoneType; wanted: a pm.Model"),
        (lambda m: inference.compile_nuts(None), r"model is a NoneType; wanted: a pm.Model"),
        (lambda m: inference.compile_nuts(m, backend="c"), r"backend='c'; wanted: one of numba, jax"),
        (lambda m: inference.sample_nuts(m, seed=0, target_accept=1), r"target_accept=1; wanted: between 0 and 1"),
        (lambda m: inference.sample_nuts(m, seed=0, chains=0), r"chains=0; wanted: at least 1"),
        (lambda m: inference.sample_nuts(m, seed=0, draws=0), r"draws=0; wanted: at least 1"),
        (lambda m: inference.sample_nuts(m, seed=0, tune=-1), r"tune=-1; wanted: at least 0"),
    ],
)
def test_a_wrong_argument_is_named(conjugate, call, message):
    with pytest.raises(ValueError, match=message):
        call(conjugate)


def test_a_model_compiled_for_nutpie_is_for_nutpie_only(compiled):
    with pytest.raises(ValueError, match=r"engine='pymc' with a model compiled for nutpie; wanted: the pm.Model, or"):
        inference.sample_nuts(compiled, seed=0, engine="pymc")
