"""ADVI and NUTS: the same seed gives the same bits, known answers are found, nothing is printed, nothing is lost."""

import signal
import sys
import threading
from types import SimpleNamespace

import numpy as np
import nutpie
import pymc as pm
import pytensor
import pytest
import xarray as xr
from bookkit import data, models
from hbnn import diagnostics, fuse, sampling
from scipy.stats import kstest, norm
from tools import chapters

OBSERVED = np.array([0.3, 2.1, 1.4, 0.9, 1.8, 2.6, 1.1, 0.2, 1.9, 1.7])


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
    return sampling.fit_advi(network, 50, seed=1)


def read_means(fit):
    return fit.approx.mean.eval(mode="FAST_COMPILE")


# --- ADVI


def test_one_seed_gives_the_same_bits_twice_and_another_seed_others(network, fit):
    again, other = (sampling.fit_advi(network, 50, seed=seed) for seed in (1, 2))
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
    fit = sampling.fit_advi(network, 1, seed=3, start=start, start_sd=sd)
    assert spread[0] < read_means(fit).std() < spread[1]  # one step of the optimiser away
    np.testing.assert_allclose(fit.approx.std.eval(mode="FAST_COMPILE"), sd, atol=0.01)


def test_a_start_reaches_variables_that_are_transformed():
    with pm.Model() as model:
        sd = pm.HalfNormal("sd")
        pm.Normal("x", 0, sd, observed=OBSERVED)
    assert abs(read_means(sampling.fit_advi(model, 1, seed=3, start="zero"))) < 0.01  # log(sd), not sd


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
    fit = sampling.fit_advi(wide, 20, seed=4, beta=1, backend="jax")
    np.testing.assert_array_equal(fit.loss, expected.hist)
    for part in ("mu", "rho"):
        found, known = (approx.groups[0].params_dict[part].get_value() for approx in (fit.approx, expected))
        np.testing.assert_array_equal(found, known)


def test_a_rate_is_adams_and_falls_to_nothing_with_as_many_draws_a_step_as_were_asked(conjugate):
    rates = []
    rate = pytensor.shared(0.05)

    def lower(approx, losses, step):
        rates.append(float(rate.get_value()))
        rate.set_value(0.05 * (1 + np.cos(np.pi * step / 30)) / 2)

    start_seed, fit_seed = np.random.SeedSequence(4).generate_state(2)
    start = {"mu": np.random.default_rng(start_seed).normal()}
    expected = pm.fit(
        30, model=conjugate, start=start, start_sigma={"mu": np.array([0.1])}, random_seed=int(fit_seed),
        obj_n_mc=5, obj_optimizer=pm.adam(learning_rate=rate), callbacks=[lower], progressbar=False,
    )  # fmt: skip
    fit = sampling.fit_advi(conjugate, 30, seed=4, n_mc=5, optimizer=0.05)
    np.testing.assert_array_equal(fit.loss, expected.hist)
    np.testing.assert_array_equal(read_means(fit), expected.mean.eval(mode="FAST_COMPILE"))
    assert rates == sorted(rates, reverse=True)
    assert rate.get_value() < 1e-12


def test_with_shrinking_steps_a_fit_arrives_at_a_posterior_that_is_known(conjugate):
    fit = sampling.fit_advi(conjugate, 2000, seed=1, n_mc=4, optimizer=0.05)
    n = len(OBSERVED)
    assert read_means(fit)[0] == pytest.approx(OBSERVED.sum() / (n + 1), abs=0.01)
    assert fit.approx.std.eval(mode="FAST_COMPILE")[0] == pytest.approx((n + 1) ** -0.5, rel=0.03)


@JAX
def test_a_fan_in_start_has_smaller_weights_in_wider_layers_and_no_biases(wide):
    w, b = np.split(read_means(sampling.fit_advi(wide, 1, seed=3, start="fan-in", backend="jax")), [100 * 200])
    step = 0.001  # of the optimiser, which the first gradient scales to its learning rate
    assert abs(b).max() < 2 * step
    assert w.std() == pytest.approx(0.1, rel=4 / np.sqrt(2 * w.size) + step / 0.1)  # 1 / sqrt(100 units below)
    assert abs(w.mean()) < 4 * 0.1 / np.sqrt(w.size) + step
    assert kstest(w / 0.1, "norm").pvalue > 1e-3


@JAX
def test_without_the_divergence_the_loss_is_the_negative_log_likelihood(conjugate):
    start = {"seed": 1, "start": "zero", "start_sd": 1e-6, "backend": "jax"}
    loglik = norm.logpdf(OBSERVED).sum()
    misfit = sampling.fit_advi(conjugate, 1, beta=0, **start).loss[0]
    assert misfit == pytest.approx(-loglik, abs=1e-3)  # the draw is within 5e-6 of zero, the slope there is 14
    # what beta counts: log q - log p at the draw, the same draw in both
    losses = [sampling.fit_advi(conjugate, 1, beta=beta, **start).loss[0] - misfit for beta in (1, 3)]
    assert losses[1] == pytest.approx(3 * losses[0], rel=1e-9)
    z = np.sqrt(2 * (-np.log(1e-6) - losses[0]))  # log q - log p = -log(sd) - z^2 / 2 + (sd z)^2 / 2
    assert 0 <= z < 5


# --- ADVI that is interrupted


def test_an_interrupted_fit_is_kept_as_far_as_it_came_with_a_warning(conjugate, monkeypatch):
    def interrupt_fifth(approx, losses, step):
        if step == 5:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="4 of 20 steps"):
        fit = sampling.fit_advi(conjugate, 20, seed=1, callbacks=[interrupt_fifth])
    assert len(fit.loss) == 4
    assert fit.draw(3, seed=1)["mu"].shape == (3,)
    monkeypatch.setattr(sampling.pm, "fit", lambda *_, **__: SimpleNamespace(hist=np.array([])))  # in its first step
    with pytest.raises(KeyboardInterrupt):
        sampling.fit_advi(conjugate, 20, seed=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backend": "torch"}, "'torch'; wanted: .* numba, c, jax"),
        ({"start": "one"}, "'one'; wanted: 'random', 'zero' or 'fan-in"),
        ({"start_sd": 0}, "start_sd=0; wanted: .* above 0"),
        ({"n_steps": 0}, "n_steps=0; wanted: at least 1"),
        ({"n_mc": 0}, "n_mc=0; wanted: at least 1"),
        ({"optimizer": 0.0}, "optimizer=0.0; wanted: a rate above 0"),
        ({"beta": -1}, "beta=-1; wanted: .* at least 0"),
        ({"beta": np.nan}, "beta=nan"),
        ({"seed": None}, "seed=None"),
    ],
)
def test_a_wrong_argument_of_a_fit_is_named(conjugate, changes, message):
    with pytest.raises(ValueError, match=message):
        sampling.fit_advi(conjugate, **({"n_steps": 10, "seed": 0} | changes))


# --- NUTS until the verdict holds


def ask_mean(posterior):
    return {"mu": posterior["mu"].values}


SHORT = {"tune": 100, **sampling.ONE_CORE}


def test_a_run_that_passes_is_the_only_one(conjugate):
    tree = sampling.sample_until(ask_mean, 500, model=conjugate, random_seed=3, **SHORT)
    assert tree["posterior"].sizes["chain"] == 4
    assert tree.attrs["verdicts"] == [True]


def test_a_run_that_fails_gets_more_chains_until_it_passes(conjugate):
    tree = sampling.sample_until(ask_mean, 130, model=conjugate, random_seed=1, **SHORT)
    verdicts = tree.attrs["verdicts"]
    assert verdicts == [False] * (len(verdicts) - 1) + [True]
    assert len(verdicts) > 1
    assert tree["posterior"].sizes["chain"] == tree["sample_stats"].sizes["chain"] == 4 * len(verdicts)
    assert tree["posterior"]["chain"].values.tolist() == list(range(4 * len(verdicts)))
    first = pm.sample(130, model=conjugate, random_seed=1, **SHORT)
    assert set(tree.children) == set(first.children)
    assert tree["observed_data"]["x"].dims == ("x_dim_0",)
    np.testing.assert_array_equal(tree["posterior"]["mu"][:4], first["posterior"]["mu"])
    chains = tree["posterior"]["mu"].values
    assert len(np.unique(chains[:, 0])) == len(chains)  # no seed is used twice
    assert diagnostics.verdict(ask_mean(tree["posterior"].to_dataset()), tree).converged


def test_a_run_that_never_passes_is_kept_with_a_warning(conjugate):
    with pytest.warns(UserWarning, match="fails after 2 runs"):
        tree = sampling.sample_until(ask_mean, 20, model=conjugate, random_seed=1, most=2, **SHORT)
    assert tree["posterior"].sizes["chain"] == 8
    assert tree.attrs["verdicts"] == [False, False]


def test_chains_that_are_apart_are_dropped_and_others_started():
    with pm.Model() as camps:
        mu = pm.Normal("mu", 0.5, 1)
        pm.Normal("y", mu**2, 1, observed=np.full(50, 4.0))
    restarted = []

    def restart(*args, **options):
        restarted.append(options["random_seed"])
        return pm.sample(*args, initvals={"mu": 2.0}, **options)

    with pytest.warns(UserWarning, match="apart or slow, R-hat"):
        tree = sampling.sample_until(ask_mean, 500, model=camps, random_seed=1, restart=restart, **SHORT)
    assert (tree["posterior"]["mu"] > 0).all()  # of the first four some are below
    assert tree.attrs["verdicts"][0] is False
    assert len(restarted) == len(tree.attrs["verdicts"]) - 1 == tree["posterior"].sizes["chain"] / 4


def test_chains_too_short_for_all_runs_together_give_way_to_longer_ones(conjugate):
    def restart(draws, **options):
        return pm.sample(20 * draws, **options)

    with pytest.warns(UserWarning, match="apart or slow, R-hat"):
        tree = sampling.sample_until(ask_mean, 20, model=conjugate, random_seed=1, most=2, restart=restart, **SHORT)
    assert tree["posterior"]["mu"].shape == (4, 400)
    assert tree.attrs["verdicts"] == [False, True]


def test_chains_of_unequal_lengths_are_not_joined():
    runs = [xr.DataTree.from_dict({"posterior": xr.Dataset({"mu": (("chain", "draw"), np.zeros((4, n)))})})
            for n in (20, 30)]  # fmt: skip
    with pytest.raises(ValueError, match="20 and 30 draws"):
        sampling.join_chains(*runs)


def test_what_was_sampled_before_an_interrupt_is_kept(conjugate):
    first = pm.sample(20, model=conjugate, random_seed=1, **SHORT)
    results = iter([first])

    def sample(*_, **__):
        for result in results:
            return result
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="4 chains"):
        tree = sampling.sample_until(ask_mean, 20, model=conjugate, random_seed=1, sample=sample, **SHORT)
    assert tree["posterior"].sizes["chain"] == 4
    with pytest.raises(KeyboardInterrupt):
        sampling.sample_until(ask_mean, 20, model=conjugate, random_seed=1, sample=sample, **SHORT)


def cut(run, *, chains=4, draws=20, missing=()):
    """What Ctrl-C leaves of a run: nutpie puts NaN for what is `missing`, PyMC drops chains or draws."""
    run = run.isel(chain=slice(chains), draw=slice(draws)).copy(deep=True)
    for chain in missing:
        run["posterior"]["mu"][chain, 10:] = run["sample_stats"]["energy"][chain, 10:] = np.nan
    return run


def give(runs):
    """A sampler that returns one after the other, or raises it."""
    runs = iter(runs)

    def sample(*_, **__):
        run = next(runs)
        if isinstance(run, Exception):
            raise run
        return run

    return sample


@pytest.mark.parametrize(
    "left",
    [{"missing": [2, 3]}, {"chains": 3}, {"draws": 15}, ValueError("no draws")],
    ids=["nan", "few", "short", "none"],
)
def test_a_run_whose_interrupt_was_swallowed_leaves_what_there_was_before(conjugate, left):
    whole = pm.sample(20, model=conjugate, random_seed=1, **SHORT)
    run = cut(whole, **left) if isinstance(left, dict) else left
    with pytest.warns(UserWarning, match="Interrupted.* 4 chains before are kept"):
        tree = sampling.sample_until(ask_mean, random_seed=1, sample=give([whole, run]))
    np.testing.assert_array_equal(tree["posterior"]["mu"], whole["posterior"]["mu"])


def test_of_a_first_run_that_was_interrupted_the_whole_chains_are_kept(conjugate):
    whole = pm.sample(20, model=conjugate, random_seed=1, **SHORT)
    with (
        pytest.warns(UserWarning, match="of 4 chains, 2 finished"),
        pytest.warns(UserWarning, match="fails after 1 runs"),
    ):
        tree = sampling.sample_until(ask_mean, random_seed=1, sample=give([cut(whole, missing=[1, 3])]))
    np.testing.assert_array_equal(tree["posterior"]["mu"], whole["posterior"]["mu"][[0, 2]])
    with pytest.raises(KeyboardInterrupt):
        sampling.sample_until(ask_mean, random_seed=1, sample=give([cut(whole, missing=range(4))]))
    with pytest.warns(UserWarning, match="fails after 2 runs"):  # PyMC's short chains are not mixed with whole ones
        tree = sampling.sample_until(ask_mean, random_seed=1, most=2, sample=give([cut(whole, draws=15), whole]))
    assert tree["posterior"].sizes["draw"] == 20


@pytest.mark.parametrize(("options", "message"), [({"most": 0}, "most=0; wanted"), ({"random_seed": None}, "seed")])
def test_until_refuses_what_it_cannot_do(conjugate, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sampling.sample_until(ask_mean, 20, model=conjugate, **{"random_seed": 1} | options)


# --- NUTS with a model that is compiled once

MOONS = data.rotated_moons(seed=0, n_groups=3, n_train=8, n_test=5)
ASKED = {"seed": 5, "chains": 2, "draws": 40, "tune": 40}


@pytest.fixture(scope="module")
def compiled(conjugate):
    return sampling.compile_nuts(conjugate)


def test_draws_are_those_of_pymcs_own_door_again_and_silently(compiled, conjugate, capfd, caplog):
    options = sampling.ONE_CORE | {name: ASKED[name] for name in ("chains", "draws", "tune")}
    expected = pm.sample(model=conjugate, random_seed=ASKED["seed"], **options)
    capfd.readouterr()
    caplog.clear()
    for _ in range(2):
        tree = sampling.sample_nuts(compiled, **ASKED)
        assert tree["posterior"]["mu"].identical(expected["posterior"]["mu"])
        np.testing.assert_array_equal(tree["sample_stats"]["energy"], expected["sample_stats"]["energy"])
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


@pytest.mark.slow
def test_other_data_of_another_length_give_the_draws_that_compiling_anew_gives():
    old, new = (
        sampling.compile_nuts(fuse(models.hierarchical_bnn(*data, n_hidden=(3,)), check=False))
        for data in ((MOONS.X_train, MOONS.y_train), (MOONS.X_test, MOONS.y_test))
    )
    old.with_data(X=-MOONS.X_train)  # leaves it as it was
    found = sampling.sample_nuts(old.with_data(X=MOONS.X_test, labels=MOONS.y_test), **ASKED)
    assert found["posterior"].to_dataset().equals(sampling.sample_nuts(new, **ASKED)["posterior"].to_dataset())


def test_a_higher_target_means_smaller_steps(compiled):
    low, high = (
        sampling.sample_nuts(compiled, seed=1, chains=1, draws=20, tune=200, target_accept=target)["sample_stats"]
        for target in (0.6, 0.99)
    )
    assert high["step_size"].mean() < low["step_size"].mean() / 2


def test_interrupted_by_a_real_signal_chains_that_are_whole_are_kept(compiled):
    """Chains one after the other, of which the first or a later one is stopped."""
    for delay in (0.2, 1.0):
        threading.Timer(delay, signal.raise_signal, [signal.SIGINT]).start()
        with pytest.raises(sampling.Interrupted) as caught:
            sampling.sample_nuts(compiled, seed=1, chains=100, draws=20_000, tune=50)
        if (tree := caught.value.tree) is not None:
            assert not np.isnan(tree["posterior"]["mu"]).any()
            assert tree["posterior"].sizes["draw"] == 20_000
            assert tree["posterior"].sizes["chain"] < 100


def test_what_cannot_be_sampled_is_refused(conjugate):
    with pytest.raises(ValueError, match=r"seed=None; wanted: an integer"):
        sampling.sample_nuts(None, seed=None)
    with pytest.raises(TypeError, match="wanted: what compile_nuts"):
        sampling.sample_nuts(conjugate, seed=0)
    with pytest.raises(TypeError, match="NoneType; wanted"):
        sampling.compile_nuts(None)


def test_deterministic_variables_that_do_not_follow_the_data_are_kept(monkeypatch):
    """A slice of a variable with dims has a length that PyTensor does not know, and the model's coords do."""
    monkeypatch.setattr(nutpie, "compile_pymc_model", lambda model, *, var_names, **_: var_names)
    with pm.Model(coords={"feature": range(6), "late": range(2), "point": range(10)}) as model:
        x = pm.Data("x", np.ones(10), dims="point")
        slope = pm.Normal("slope", dims="feature")
        pm.Deterministic("tail", slope[4:], dims="late")
        pm.Deterministic("twice", pm.math.stack([slope[0], 2 * slope[0]]), dims="late")
        pm.Deterministic("nameless", slope[4:])
        pm.Deterministic("line", slope[0] * x, dims="point")
        pm.Normal("y", slope.sum(), observed=OBSERVED)
    assert sampling.compile_nuts(model) == ["slope", "tail", "twice"]


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
        assert sampling.compile_nuts(model) == kept


# --- one group after the other


@pytest.fixture
def sampled(monkeypatch):
    """What the sampler is told for each group; nothing is sampled."""
    calls = []
    monkeypatch.setattr(sampling, "sample_nuts", lambda given, **asked: calls.append((given, asked)))
    return calls


ECHO = SimpleNamespace(with_data=lambda **given: given)  # in the place of a compiled model


def test_each_group_is_sampled_with_its_own_points_and_labels(sampled):
    X, y = ([part[: 8 - g] for g, part in enumerate(values)] for values in (MOONS.X_train, MOONS.y_train))
    trees = sampling.sample_groups(ECHO, X, y, seed=1, draws=7)
    assert len(trees) == len(sampled) == 3
    for g, (given, asked) in enumerate(sampled):
        np.testing.assert_array_equal(given["X"], X[g])
        np.testing.assert_array_equal(given["labels"], y[g])
        assert asked["draws"] == 7


def test_each_group_has_a_seed_of_its_own(sampled):
    for seed in (1, 1, 2):
        sampling.sample_groups(ECHO, MOONS.X_train, MOONS.y_train, seed=seed)
    first, again, other = np.reshape([asked["seed"] for _, asked in sampled], (3, 3))
    np.testing.assert_array_equal(first, again)
    assert len({*first, *other}) == 6


def test_a_wrong_group_is_named_before_the_first_is_sampled(sampled):
    with pytest.raises(ValueError, match="3 groups, y has 2"):
        sampling.sample_groups(ECHO, MOONS.X_train, MOONS.y_train[:2], seed=1)
    with pytest.raises(ValueError, match=r"y\[2\] holds the labels \[2\]"):
        sampling.sample_groups(ECHO, MOONS.X_train, np.full((3, 8), [[0], [1], [2]]), seed=1)
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
    assert sampling.is_watched() is watched
    assert sampling.ONE_CORE["progressbar"] is watched


def test_kernels_of_chapters_and_of_nbval_are_unwatched():
    assert chapters.kernel_environment()["BNN_PROGRESS"] == "off"
