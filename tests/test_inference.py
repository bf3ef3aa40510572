"""ADVI and NUTS: the same seed gives the same bits, known answers are found, nothing is printed, nothing is lost."""

import sys
from types import SimpleNamespace

import nbformat
import numpy as np
import nutpie
import pymc as pm
import pytest
from bnn import data, diagnose, inference, models
from bnn.fuse import fuse
from scipy.stats import kstest, norm
from tools import chapters

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


def test_one_seed_gives_the_same_bits_twice_and_another_seed_others(network, fit):
    again, other = (inference.fit_advi(network, 50, seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(again.loss, fit.loss)
    np.testing.assert_array_equal(read_means(again), read_means(fit))
    assert len({*fit.loss, *other.loss}) == 100


def test_draws_of_all_weights_are_pymcs_in_its_order(fit):
    drawn = fit.approx.sample(30, random_seed=1)["posterior"]
    draws, other = (fit.draw(30, seed=seed) for seed in (1, 2))
    assert set(draws) == {"w1", "w2", "w3"}
    for name, value in draws.items():
        np.testing.assert_array_equal(value, drawn[name].values[0])
        assert not np.isin(value, other[name]).any()


@pytest.mark.parametrize(("start", "spread", "sd"), [("zero", (0, 0.01), 0.05), ("random", (0.5, 1.5), 1.5)])
def test_the_first_step_starts_from_the_means_and_the_sd_that_were_asked(network, start, spread, sd):
    fit = inference.fit_advi(network, 1, seed=3, start=start, start_sd=sd)
    assert spread[0] < read_means(fit).std() < spread[1]  # one step of the optimiser away
    np.testing.assert_allclose(fit.approx.std.eval(mode="FAST_COMPILE"), sd, atol=0.01)


def test_a_start_reaches_variables_that_are_transformed():
    with pm.Model() as model:
        sd = pm.HalfNormal("sd")
        pm.Normal("x", 0, sd, observed=OBSERVED)
    assert abs(read_means(inference.fit_advi(model, 1, seed=3, start="zero"))) < 0.01  # log(sd), not sd
    assert abs(read_means(inference.fit_advi(model, 1, seed=3))) > 0.01


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


@JAX
@pytest.mark.parametrize("beta", [0.1, 1000])
def test_a_weight_of_the_divergence_counts_the_prior_so_often(conjugate, beta):
    steps, keep = record(1000)
    optimizer = pm.adam(learning_rate=0.02)
    inference.fit_advi(conjugate, 1000, seed=1, beta=beta, optimizer=optimizer, callbacks=[keep], backend="jax")
    mean, sd = np.mean(steps, axis=0)
    # the best q is the posterior of observations that each count 1 / beta times
    assert mean == pytest.approx(OBSERVED.sum() / (beta + 10), abs=0.1)
    assert sd == pytest.approx(1 / np.sqrt(1 + 10 / beta), rel=0.15)


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


def test_advi_prints_nothing(network, capfd, caplog):
    caplog.set_level("INFO", logger="pymc")  # as PyMC sets it outside pytest
    inference.fit_advi(network, 20, seed=1).draw(5, seed=1)
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


# --- ADVI that is interrupted


def test_an_interrupted_fit_is_kept_as_far_as_it_came_with_a_warning(conjugate):
    def interrupt_fifth(approx, losses, step):
        if step == 5:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="4 of 20 steps"):
        fit = inference.fit_advi(conjugate, 20, seed=1, callbacks=[interrupt_fifth])
    assert len(fit.loss) == 4
    assert fit.draw(3, seed=1)["mu"].shape == (3,)


def test_a_fit_that_is_interrupted_in_its_first_step_leaves_nothing(conjugate, monkeypatch):
    monkeypatch.setattr(inference.pm, "fit", lambda *_, **__: SimpleNamespace(hist=np.array([])))
    with pytest.raises(KeyboardInterrupt):
        inference.fit_advi(conjugate, 20, seed=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backend": "torch"}, "'torch'; wanted: .* numba, c, jax"),
        ({"start": "one"}, "'one'; wanted: 'random', 'zero' or 'fan-in"),
        ({"start_sd": 0}, "start_sd=0; wanted: .* above 0"),
        ({"n_steps": 0}, "n_steps=0; wanted: at least 1"),
        ({"beta": -1}, "beta=-1; wanted: .* at least 0"),
        ({"beta": np.nan}, "beta=nan"),
        ({"seed": None}, "seed=None"),
    ],
)
def test_a_wrong_argument_of_a_fit_is_named(conjugate, changes, message):
    with pytest.raises(ValueError, match=message):
        inference.fit_advi(conjugate, **({"n_steps": 10, "seed": 0} | changes))


# --- NUTS until the verdict holds


def ask_mean(posterior):
    return {"mu": posterior["mu"].values}


SHORT = {"tune": 100, **inference.ONE_CORE}


def test_a_run_that_passes_is_pymcs_and_the_only_one(conjugate):
    tree = inference.sample_until(ask_mean, 500, model=conjugate, random_seed=3, **SHORT)
    wanted = pm.sample(500, model=conjugate, random_seed=3, **SHORT)
    np.testing.assert_array_equal(tree["posterior"]["mu"], wanted["posterior"]["mu"])
    assert tree.attrs["verdicts"] == [True]


def test_a_run_that_fails_gets_more_chains_until_it_passes(conjugate):
    tree = inference.sample_until(ask_mean, 130, model=conjugate, random_seed=1, **SHORT)
    verdicts = tree.attrs["verdicts"]
    assert verdicts == [False] * (len(verdicts) - 1) + [True]
    assert len(verdicts) > 1
    assert tree["posterior"].sizes["chain"] == tree["sample_stats"].sizes["chain"] == 4 * len(verdicts)
    assert tree["posterior"]["chain"].values.tolist() == list(range(4 * len(verdicts)))
    assert set(tree.children) == set(pm.sample(130, model=conjugate, random_seed=1, **SHORT).children)
    assert tree["observed_data"]["x"].dims == ("x_dim_0",)
    first = pm.sample(130, model=conjugate, random_seed=1, **SHORT)
    np.testing.assert_array_equal(tree["posterior"]["mu"][:4], first["posterior"]["mu"])
    chains = tree["posterior"]["mu"].values
    assert len(np.unique(chains[:, 0])) == len(chains)  # no seed is used twice
    assert diagnose.verdict(ask_mean(tree["posterior"].to_dataset()), tree).converged


def test_a_run_that_never_passes_is_kept_with_a_warning(conjugate):
    with pytest.warns(UserWarning, match="fails after 2 runs"):
        tree = inference.sample_until(ask_mean, 20, model=conjugate, random_seed=1, most=2, **SHORT)
    assert tree["posterior"].sizes["chain"] == 8
    assert tree.attrs["verdicts"] == [False, False]


def test_chains_of_unequal_lengths_are_not_joined(conjugate):
    runs = [pm.sample(n, model=conjugate, random_seed=1, **SHORT) for n in (20, 30)]
    with pytest.raises(ValueError, match="20 and 30 draws"):
        inference.join_chains(*runs)


def test_what_was_sampled_before_an_interrupt_is_kept(conjugate):
    calls = []

    def sample(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return pm.sample(*args, **options)

    with pytest.warns(UserWarning, match="4 chains"):
        tree = inference.sample_until(ask_mean, 20, model=conjugate, random_seed=1, sample=sample, **SHORT)
    assert tree["posterior"].sizes["chain"] == 4
    calls[:] = [1]
    with pytest.raises(KeyboardInterrupt):
        inference.sample_until(ask_mean, 20, model=conjugate, random_seed=1, sample=sample, **SHORT)


@pytest.mark.parametrize(("options", "message"), [({"most": 0}, "most=0; wanted"), ({"random_seed": None}, "seed")])
def test_until_refuses_what_it_cannot_do(conjugate, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        inference.sample_until(ask_mean, 20, model=conjugate, **{"random_seed": 1} | options)


# --- NUTS with a model that is compiled once

MOONS = data.rotated_moons(seed=0, n_groups=3, n_train=8, n_test=5)
ASKED = {"seed": 5, "chains": 2, "draws": 40, "tune": 40}


def make_hierarchy(X, y):
    return fuse(models.hierarchical_bnn(X, y, n_hidden=(3,)), check=False)


@pytest.fixture(scope="module")
def hierarchy():
    return make_hierarchy(MOONS.X_train, MOONS.y_train)


@pytest.fixture(scope="module")
def compiled(hierarchy):
    return inference.compile_nuts(hierarchy)


@pytest.fixture(scope="module")
def tree(compiled):
    return inference.sample_nuts(compiled, **ASKED)


def test_draws_are_those_of_pymcs_own_door(tree, hierarchy):
    options = inference.ONE_CORE | {name: ASKED[name] for name in ("chains", "draws", "tune")}
    expected = pm.sample(model=hierarchy, random_seed=ASKED["seed"], **options)
    assert set(tree["posterior"].data_vars) == {"mu1", "sd1", "z1", "mu2", "sd2", "z2"}
    for name, values in tree["posterior"].data_vars.items():
        assert values.identical(expected["posterior"][name])
    np.testing.assert_array_equal(tree["sample_stats"]["energy"], expected["sample_stats"]["energy"])


def test_one_seed_gives_the_same_draws_twice_and_silently(tree, compiled, capfd, caplog):
    compiled.with_data(X=-MOONS.X_train)  # leaves `compiled` as it was
    again = inference.sample_nuts(compiled, **ASKED)
    assert again["posterior"].to_dataset().equals(tree["posterior"].to_dataset())
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_other_data_of_another_length_give_the_draws_that_compiling_anew_gives(compiled):
    new = MOONS.X_test, MOONS.y_test
    assert new[0].shape[1] != MOONS.X_train.shape[1]
    found = inference.sample_nuts(compiled.with_data(X=new[0], labels=new[1]), **ASKED)
    expected = inference.sample_nuts(inference.compile_nuts(make_hierarchy(*new)), **ASKED)
    assert found["posterior"].to_dataset().equals(expected["posterior"].to_dataset())


def test_a_higher_target_means_smaller_steps(compiled):
    low, high = (
        inference.sample_nuts(compiled, seed=1, chains=1, draws=20, tune=200, target_accept=target)["sample_stats"]
        for target in (0.6, 0.99)
    )
    assert high["step_size"].mean() < low["step_size"].mean() / 2


def test_no_tuning_at_all_is_allowed(compiled):
    assert inference.sample_nuts(compiled, seed=1, chains=1, draws=20, tune=0)["posterior"]["sd1"].shape == (1, 20)


def test_what_cannot_be_sampled_is_refused(conjugate):
    with pytest.raises(ValueError, match=r"seed=None; wanted: an integer"):
        inference.sample_nuts(None, seed=None)
    with pytest.raises(TypeError, match="wanted: what compile_nuts"):
        inference.sample_nuts(conjugate, seed=0)
    with pytest.raises(TypeError, match="NoneType; wanted"):
        inference.compile_nuts(None)


def test_deterministic_variables_of_a_fixed_shape_are_kept():
    """A regression: "twice" has a fixed shape, "line" has one that follows the data."""
    with pm.Model(coords={"side": ["a", "b"]}) as model:
        x, y = pm.Data("x", np.ones(10), dims="point"), pm.Data("y", OBSERVED, dims="point")
        slope = pm.Normal("slope")
        pm.Deterministic("twice", pm.math.stack([slope, 2 * slope]), dims="side")
        pm.Normal("seen", pm.Deterministic("line", slope * x, dims="point"), 1, observed=y)
    line = inference.compile_nuts(model).with_data(x=np.ones(3), y=np.ones(3))
    posterior = inference.sample_nuts(line, **ASKED)["posterior"]
    assert set(posterior.data_vars) == {"slope", "twice"}
    assert list(posterior["side"].values) == ["a", "b"]
    np.testing.assert_array_equal(posterior["twice"], np.stack([posterior["slope"], 2 * posterior["slope"]], axis=-1))


def test_deterministic_variables_with_dims_of_their_own_are_kept(monkeypatch):
    """A slice of a variable with dims has a length that PyTensor does not know, and the model's coords do."""
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda model, *, var_names, **_: var_names)
    with pm.Model(coords={"feature": range(6), "late": range(2), "point": range(10)}) as model:
        x = pm.Data("x", np.ones(10), dims="point")
        slope = pm.Normal("slope", dims="feature")
        pm.Deterministic("tail", slope[4:], dims="late")
        pm.Deterministic("nameless", slope[4:])
        pm.Deterministic("line", slope[0] * x, dims="point")
        pm.Normal("y", slope.sum(), observed=OBSERVED)
    assert inference.compile_nuts(model) == ["slope", "tail"]


def make_informed():
    prior = {"mean": np.zeros(9), "cholesky": np.eye(9)}
    return models.informed_bnn(MOONS.X_train[0], MOONS.y_train[0], n_hidden=(3,), **prior)


@pytest.mark.parametrize(
    ("make", "kept"),
    [
        (make_informed, ["z", "w1", "w2"]),
        (lambda: models.flat_bnn(MOONS.X_train[0], MOONS.y_train[0]), ["w1", "w2", "w3"]),  # not p, of every point
    ],
    ids=["informed", "flat"],
)
def test_weights_are_kept_and_probabilities_of_points_are_not(monkeypatch, make, kept):
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda model, *, var_names, **_: var_names)
    for model in (make(), fuse(make(), check=False)):
        assert inference.compile_nuts(model) == kept


# --- one group after the other


@pytest.fixture
def sampled(monkeypatch):
    """What the sampler is told for each group; nothing is sampled."""
    calls = []
    monkeypatch.setattr(inference, "sample_nuts", lambda given, **asked: calls.append((given, asked)))
    return calls


ECHO = SimpleNamespace(with_data=lambda **given: given)  # in the place of a compiled model


def test_each_group_is_sampled_with_its_own_points_and_labels(sampled):
    X, y = ([part[: 8 - g] for g, part in enumerate(values)] for values in (MOONS.X_train, MOONS.y_train))
    trees = inference.sample_groups(ECHO, X, y, seed=1, draws=7)
    assert len(trees) == len(sampled) == 3
    for g, (given, asked) in enumerate(sampled):
        np.testing.assert_array_equal(given["X"], X[g])
        np.testing.assert_array_equal(given["labels"], y[g])
        assert asked["draws"] == 7


def test_each_group_has_a_seed_of_its_own(sampled):
    for seed in (1, 1, 2):
        inference.sample_groups(ECHO, MOONS.X_train, MOONS.y_train, seed=seed)
    first, again, other = np.reshape([asked["seed"] for _, asked in sampled], (3, 3))
    np.testing.assert_array_equal(first, again)
    assert len({*first, *other}) == 6


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (MOONS.X_train, MOONS.y_train[:2], "3 groups, y has 2"),
        (MOONS.X_train, np.full((3, 8), [[0], [1], [2]]), r"y\[2\] holds the labels \[2\]"),
    ],
)
def test_a_wrong_group_is_named_before_the_first_is_sampled(sampled, X, y, message):
    with pytest.raises(ValueError, match=message):
        inference.sample_groups(ECHO, X, y, seed=1)
    assert sampled == []


# --- progress


@pytest.mark.parametrize(
    ("setting", "terminal", "ipython", "watched"),
    [
        (None, True, None, True),
        (None, False, None, False),
        ("on", False, SimpleNamespace(kernel=None), True),  # a live notebook
        ("off", True, SimpleNamespace(kernel=None), False),
    ],
)
def test_a_terminal_and_a_notebook_are_watched_unless_switched_off(monkeypatch, setting, terminal, ipython, watched):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: ipython))
    monkeypatch.delenv("BNN_PROGRESS", raising=False)
    if setting:
        monkeypatch.setenv("BNN_PROGRESS", setting)
    assert inference.is_watched() is watched


@pytest.mark.parametrize("watched", [True, False])
def test_progress_is_decided_when_a_sampler_is_told(monkeypatch, watched):
    monkeypatch.setattr(inference, "is_watched", lambda: watched)
    assert inference.ONE_CORE["progressbar"] is watched


def test_chapters_and_their_tests_run_unwatched(tmp_path):
    source = "---\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n"
    (tmp_path / "a.md").write_text(
        source + "```{code-cell} ipython3\nimport os\nprint(os.environ['BNN_PROGRESS'])\n```\n"
    )
    written = nbformat.read(chapters.execute(tmp_path / "a.md"), as_version=4)
    assert written.cells[-1].outputs[0].text == "off\n"
    assert chapters.kernel_environment()["BNN_PROGRESS"] == "off"  # what kernels inherit that nbval starts
