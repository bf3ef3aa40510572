"""Tempered starts: camps have their weights, the posterior stays what it is, and nothing is lost on Ctrl-C."""

import numpy as np
import nutpie
import pymc as pm
import pytest
from hbnn import fuse, sampling
from hbnn.tempering import sample_tempered, temper


def type_camps(y=4.0):
    """A mean that the data know up to its sign; by the prior +2 weighs e⁴ = 55 times what -2 does."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 1, 1)
        pm.Normal("y", mu**2, 1, observed=np.full(50, y))
    return model


@pytest.fixture(scope="module")
def camps():
    return sampling.compile_nuts(type_camps())


FEW = {"tune": 200, "powers": (0.003, 0.01, 0.03, 0.1, 0.3, 1), "rounds": 100}


def test_camps_have_their_weights_wherever_the_run_began(camps):
    for start in (-2.0, 2.0):
        run = temper(camps, seed=1, powers=FEW["powers"], rounds=4000, start=np.array([start]), falling=True)
        np.testing.assert_allclose(np.abs(run.points), 2, atol=0.4)
        assert (run.points < 0).mean() == pytest.approx(1 / (1 + np.exp(4)), abs=0.012)  # its error is about 0.004
        assert run.swapped.min() > 0.2
        assert len(np.unique(run.replica[:, -1])) == 6


def test_each_power_has_its_own_distribution():
    """N(0, 1) under a likelihood N(y | mu, 1) to the power p is N(py / (1 + p), 1 / (1 + p))."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("y", mu, 1, observed=3.0)
    run = temper(sampling.compile_nuts(model), seed=2, powers=(0.1, 0.5, 1), rounds=20_000, watch=[0])
    precision = 1 + run.powers
    np.testing.assert_allclose(run.watched[..., 0].mean(axis=0), 3 * run.powers / precision, atol=0.04)
    np.testing.assert_allclose(run.watched[..., 0].std(axis=0), precision**-0.5, rtol=0.03)
    logp = -0.5 * np.log(2 * np.pi) - 0.5 * (3 - run.watched[..., 0]) ** 2
    np.testing.assert_allclose(run.log_likelihood, logp, atol=1e-9)
    np.testing.assert_array_equal(run.points[:, 0], run.watched[:, -1, 0])


@pytest.mark.parametrize("is_potential", [False, True])
def test_the_posterior_is_that_of_the_model(is_potential):
    y = np.random.default_rng(1).normal(3, 1, size=20)
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        if is_potential:
            pm.Potential("y", pm.logp(pm.Normal.dist(mu, 1), y).sum())
        else:
            pm.Normal("y", mu, 1, observed=y)
    draws = sample_tempered(1000, tune=300, model=model, random_seed=2, rounds=50)["posterior"]["mu"].values
    precision = 1 / 4 + 20
    assert draws.mean() == pytest.approx(y.sum() / precision, abs=0.015)  # its Monte Carlo error is about 0.005
    assert draws.std() == pytest.approx(precision**-0.5, rel=0.08)


def test_the_power_is_data_of_one_compiled_model_and_1_until_it_is_told(camps):
    """At power 0 the prior is sampled."""
    prior = sampling.sample_nuts(camps.with_data(likelihood_power=0), seed=1, draws=1000, tune=300)["posterior"]["mu"]
    assert (float(prior.mean()), float(prior.std())) == pytest.approx((1, 1), abs=0.1)
    plain = pm.sample(50, tune=100, model=type_camps(), random_seed=3, **sampling.ONE_CORE)
    ours = sampling.sample_nuts(camps, seed=3, draws=50, tune=100)
    np.testing.assert_array_equal(plain["posterior"]["mu"], ours["posterior"]["mu"])


def test_draws_depend_on_the_seed_alone(camps):
    one, same, other = (
        sample_tempered(20, model=camps, random_seed=seed, cores=cores, chains=3, **FEW)["posterior"]["mu"].values
        for seed, cores in ((1, 1), (1, 2), (2, 1))
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()
    assert len(np.unique(one[:, -1])) == 3


def test_a_fused_network_is_sampled_until_the_verdict_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    with pm.Model() as model:
        w1, w2 = pm.Normal("w1", shape=(2, 3)), pm.Normal("w2", shape=3)
        pm.Bernoulli("y", logit_p=pm.math.tanh(X @ w1) @ w2, observed=(X[:, 0] > 0).astype(int))
    compiled = sampling.compile_nuts(fuse(model))
    tree = sampling.sample_until(
        lambda posterior: {"size": (posterior["w2"] ** 2).sum("w2_dim_0").values},
        500, tune=200, model=compiled, random_seed=1, rounds=50, sample=sample_tempered, **sampling.ONE_CORE,
    )  # fmt: skip
    assert tree.attrs["verdicts"][-1] is True
    assert tree["posterior"]["w1"].shape[:2] == (4 * len(tree.attrs["verdicts"]), 500)


@pytest.mark.parametrize("finished", [0, 2])
def test_ctrl_c_keeps_the_chains_that_are_finished(camps, finished, monkeypatch):
    runs, sample = [], nutpie.sample

    def interrupt(*args, **options):
        runs.append(options)
        if sum("blocking" in run for run in runs) > finished:  # the chains that are kept
            raise KeyboardInterrupt
        return sample(*args, **options)

    monkeypatch.setattr(nutpie, "sample", interrupt)
    if not finished:
        with pytest.raises(KeyboardInterrupt):
            sample_tempered(20, model=camps, random_seed=1, **FEW)
        return
    tree = sample_tempered(20, model=camps, random_seed=1, **FEW)
    assert np.isnan(tree["posterior"]["mu"]).all("draw").values.tolist() == [False, False, True, True]
    runs.clear()
    options = {"model": camps, "random_seed": 1, "sample": sample_tempered, **FEW}
    few, cut = "The verdict still fails", "of 4 chains, 2 finished before are kept"
    with pytest.warns(UserWarning, match=few), pytest.warns(UserWarning, match=cut):
        kept = sampling.sample_until(lambda posterior: {"mu": posterior["mu"].values}, 20, **options)
    assert kept["posterior"].sizes["chain"] == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"powers": (0.3, 0.1, 1)}, "rising numbers above 0"),
        ({"powers": (0, 1)}, "rising numbers"),
        ({"powers": (1,)}, "two or more"),
        ({"powers": (0.1, 0.9)}, "wanted: 1, which is the posterior"),
        ({"rounds": 0}, "rounds=0; wanted: at least 1"),
        ({"draws": 0}, "draws=0"),
        ({"random_seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_done_is_said(camps, options, said):
    with pytest.raises(ValueError, match=said):
        sample_tempered(**{"draws": 10, "model": camps, "random_seed": 1} | options)


def test_a_model_without_a_likelihood_is_refused():
    with pm.Model() as prior:
        pm.Normal("mu", 1, 1)
    with pytest.raises(ValueError, match="no likelihood that could be weakened"):
        sample_tempered(20, model=prior, random_seed=1)


def test_an_option_that_is_not_known_is_named(camps):
    with pytest.raises(TypeError, match="nuts_sampler; wanted"):
        sample_tempered(10, model=camps, random_seed=1, nuts_sampler="nutpie")
    with pytest.raises(TypeError, match="No model on context stack"):
        sample_tempered(10, random_seed=1)
