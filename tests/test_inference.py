"""ADVI and NUTS: the same seed gives the same bits, known answers are found, and nothing is printed."""

import numpy as np
import pymc as pm
import pytest
from bnn import data, inference, models

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


def test_there_is_one_loss_for_each_step(fit):
    assert fit.loss.shape == (50,)
    assert np.isfinite(fit.loss).all()


def test_a_random_start_is_standard_normal_and_a_zero_start_is_zero(network):
    zero, random = (read_means(inference.fit_advi(network, 1, seed=3, start=start)) for start in ("zero", "random"))
    assert abs(zero).max() < 0.01  # one step of the optimiser
    assert 0.5 < random.std() < 1.5


@pytest.mark.parametrize("start_sd", [0.05, 1.5])
def test_the_first_step_starts_from_the_sd_that_was_asked(network, start_sd):
    fit = inference.fit_advi(network, 1, seed=3, start_sd=start_sd)
    np.testing.assert_allclose(fit.approx.std.eval(mode="FAST_COMPILE"), start_sd, atol=0.01)


def test_a_start_reaches_variables_that_are_transformed():
    with pm.Model() as model:
        sd = pm.HalfNormal("sd")
        pm.Normal("x", 0, sd, observed=OBSERVED)
    assert abs(read_means(inference.fit_advi(model, 1, seed=3, start="zero"))) < 0.01  # log(sd), not sd
    assert abs(read_means(inference.fit_advi(model, 1, seed=3))) > 0.01


def test_advi_finds_a_posterior_that_is_normal(conjugate):
    fit = inference.fit_advi(conjugate, 20_000, seed=1)
    draws = fit.draw(4000, seed=1)["mu"]
    assert draws.mean() == pytest.approx(POSTERIOR_MEAN, abs=0.03)
    assert draws.std() == pytest.approx(POSTERIOR_SD, rel=0.1)
    # the family holds the posterior, so the best loss is the negative log evidence
    covariance = np.eye(10) + 1
    evidence = -0.5 * (
        OBSERVED @ np.linalg.solve(covariance, OBSERVED) + np.linalg.slogdet(covariance)[1] + 10 * np.log(2 * np.pi)
    )
    tail = fit.loss[-5000:]
    assert tail.mean() == pytest.approx(-evidence, abs=0.02)


# --- NUTS


@pytest.mark.parametrize("engine", inference.ENGINES)
def test_nuts_finds_a_known_posterior_twice_in_the_same_way_and_silently(conjugate, engine, capfd, caplog):
    first, second = (
        inference.sample_nuts(conjugate, seed=1, engine=engine, chains=2, draws=500, tune=300) for _ in range(2)
    )
    draws = first["posterior"]["mu"]
    assert draws.shape == (2, 500)
    error = POSTERIOR_SD / np.sqrt(200)  # at least 200 effective draws of 1,000
    assert draws.values.mean() == pytest.approx(POSTERIOR_MEAN, abs=4 * error)
    assert draws.values.std() == pytest.approx(POSTERIOR_SD, rel=0.2)
    np.testing.assert_array_equal(draws, second["posterior"]["mu"])
    assert not np.isin(draws[0], draws[1]).any()  # each chain has its own numbers
    assert int(first["sample_stats"]["diverging"].sum()) == 0
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


def test_advi_prints_nothing(network, capfd, caplog):
    inference.fit_advi(network, 20, seed=1).draw(5, seed=1)
    assert capfd.readouterr() == ("", "")
    assert caplog.text == ""


# --- what is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: inference.fit_advi(m, 10, seed=0, backend="torch"), r"backend='torch'; wanted: .* numba, c, jax"),
        (lambda m: inference.fit_advi(m, 10, seed=0, start="one"), r"start='one'; wanted: 'random' or 'zero'"),
        (lambda m: inference.fit_advi(m, 10, seed=0, start_sd=0), r"start_sd=0; wanted: a standard deviation above 0"),
        (lambda m: inference.fit_advi(m, 0, seed=0), r"n_steps=0; wanted: at least 1"),
        (lambda m: inference.sample_nuts(m, seed=0, engine="stan"), r"engine='stan'; wanted: .* nutpie, pymc"),
        (lambda m: inference.sample_nuts(m, seed=0, target_accept=1), r"target_accept=1; wanted: between 0 and 1"),
        (lambda m: inference.sample_nuts(m, seed=0, chains=0), r"chains=0; wanted: at least 1"),
        (lambda m: inference.sample_nuts(m, seed=0, draws=0), r"draws=0; wanted: at least 1"),
        (lambda m: inference.sample_nuts(m, seed=0, tune=-1), r"tune=-1; wanted: at least 0"),
    ],
)
def test_a_wrong_argument_is_named(conjugate, call, message):
    with pytest.raises(ValueError, match=message):
        call(conjugate)
