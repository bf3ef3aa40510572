"""The faults that `studies.which_check` plants are those that it names, and nothing else changes; its draws are exact.

That checks stay silent without a fault, and how often, is a record, `book/data/which_check.json`: the page judges it.
"""

import arviz as az
import numpy as np
import pytest
from scipy import stats
from studies import which_check
from studies.which_check import N_GROUPS, N_ROWS, draw_outcomes, draw_rows, draw_truth

RNG = np.random.default_rng(1001)  # not a seed of the record
LEVEL = 0.001  # of a false alarm; the seeds are fixed


@pytest.fixture(scope="module")
def rows():
    x, g = draw_rows(RNG)
    return x, draw_outcomes(draw_truth(RNG), x, g, RNG), g


@pytest.fixture(scope="module")
def draws():
    """Stand-ins for posterior draws, (chain, draw, …)."""
    truths = [draw_truth(RNG) for _ in range(2 * 150)]
    return {name: np.stack([t[name] for t in truths]).reshape(2, 150, *np.shape(truths[0][name])) for name in truths[0]}


def test_truths_have_the_priors_that_the_model_is_told():
    truths = [draw_truth(np.random.default_rng(seed)) for seed in range(2000)]
    assert stats.kstest([t["sd"][0] for t in truths], "halfnorm").pvalue > LEVEL
    assert stats.kstest([np.log(t["noise"]) for t in truths], lambda v: stats.norm.cdf(v, -1, 0.3)).pvalue > LEVEL
    z = [(t["w"][3, 0] - t["mu"][0]) / t["sd"][0] for t in truths]
    assert stats.kstest(z, "norm").pvalue > LEVEL
    levels = [(t["w"][3, -1] - t["mu"][-1]) / t["sd"][1] for t in truths]
    assert stats.kstest(levels, "norm").pvalue > LEVEL


def test_outcomes_lie_about_the_network_of_their_group(rows):
    truth = draw_truth(RNG)
    x, g = np.full(20_000, 0.7), np.full(20_000, 4)
    y = draw_outcomes(truth, x, g, np.random.default_rng(1))
    h = np.tanh(0.7 * truth["w1"] + truth["b1"])
    assert y.mean() == pytest.approx(h @ truth["w"][4, :-1] + truth["w"][4, -1], abs=5 * truth["noise"] / 141)
    assert y.std() == pytest.approx(truth["noise"], rel=0.03)
    each = which_check.compute_loglik(truth, x, y, g)
    np.testing.assert_allclose(each, stats.norm.logpdf(y, h @ truth["w"][4, :-1] + truth["w"][4, -1], truth["noise"]))


@pytest.mark.parametrize("dose", which_check.DOSES["dropped"])
def test_the_last_rows_are_dropped(rows, dose):
    for kept, all_of_them in zip(which_check.plant_in_data(*rows, "dropped", dose), rows, strict=True):
        np.testing.assert_array_equal(kept, all_of_them[: len(all_of_them) - dose])


@pytest.mark.parametrize(("dose", "groups"), [(1, {5}), (6, set(range(6))), (72, set(range(6)))])
def test_so_many_rows_are_taken_for_the_next_group(rows, dose, groups):
    x, y, g = which_check.plant_in_data(*rows, "index in the data", dose)
    moved = np.flatnonzero(g != rows[2])
    assert (len(moved), set(rows[2][moved])) == (dose, groups)
    np.testing.assert_array_equal(g[moved], (rows[2][moved] + 1) % N_GROUPS)
    np.testing.assert_array_equal((x, y), rows[:2])


@pytest.mark.parametrize(("dose", "read"), [(1, [1, 1, 2, 3, 4, 5]), (6, [1, 2, 3, 4, 5, 0])])
def test_predictions_read_the_next_group(dose, read):
    assert which_check.read_groups("index in predictions", dose).tolist() == read
    assert which_check.read_groups("sorted", 0).tolist() == [0, 1, 2, 3, 4, 5]


def test_faults_in_draws_are_those_that_are_named(draws):
    plant = which_check.plant_in_draws
    repeated = plant(draws, "repeated", 5)["sd"]
    np.testing.assert_array_equal(repeated[:, 5:10], np.repeat(draws["sd"][:, 5:6], 5, axis=1))
    late = plant(draws, "out of step", 10)
    np.testing.assert_array_equal(late["w"][:, 10:], draws["w"][:, :-10])
    np.testing.assert_array_equal(late["w1"], draws["w1"])
    assert (np.diff(plant(draws, "sorted", 0)["w"], axis=1) >= 0).all()
    other = {name: values + 10 for name, values in draws.items()}
    astray, mixed = (plant(draws, fault, 0, other)["noise"] for fault in ("astray", "astray, mixed"))
    np.testing.assert_array_equal(astray, [draws["noise"][0], other["noise"][1]])
    np.testing.assert_array_equal(mixed.ravel(), astray.T.ravel())
    assert az.rhat(astray) > 1.5 > 1.05 > az.rhat(mixed)


def test_readouts_given_the_rest_have_the_mean_and_covariance_of_bayesian_regression(rows):
    truth, (x, y, g) = draw_truth(RNG), rows
    same = {name: np.broadcast_to(truth[name], (1, 20_000, *np.shape(truth[name]))) for name in truth}
    found = which_check.draw_readouts(same, x, y, g, np.random.default_rng(1))[0]
    for group in (0, 5):
        h = np.tanh(x[g == group, None] * truth["w1"] + truth["b1"])
        h = np.column_stack([h, np.ones(N_ROWS)])
        prior = np.diag(1 / truth["sd"][[0, 0, 1]] ** 2)
        cov = np.linalg.inv(h.T @ h / truth["noise"] ** 2 + prior)
        mean = cov @ (h.T @ y[g == group] / truth["noise"] ** 2 + prior @ truth["mu"])
        error = 5 * np.sqrt(np.diag(cov) / 20_000)
        assert (abs(found[:, group].mean(axis=0) - mean) < error).all()
        np.testing.assert_allclose(np.cov(found[:, group].T), cov, atol=0.05 * np.diag(cov).max())


def test_pit_values_notice_predictions_from_elsewhere(rows):
    x, g = rows[2] * 0.3 - 1, rows[2]
    truth = draw_truth(np.random.default_rng(3))
    y = draw_outcomes(truth, x, g, np.random.default_rng(4))
    jitter = np.random.default_rng(2)
    same = {name: truth[name] + 0.01 * jitter.normal(size=(2, 150, *np.shape(truth[name]))) for name in truth}
    sound = which_check.check_pit(same, (x, y, g), np.arange(6), np.random.default_rng(5))
    wrong = which_check.check_pit(same, (x, y, g), (np.arange(6) + 1) % 6, np.random.default_rng(5))
    assert min(sound) > 0.05 > max(wrong)


def test_a_wide_prior_is_less_felt_than_a_narrow_one(draws):
    narrow, wide = (which_check.check_sensitivity(draws, scale) for scale in (0.5, 4.0))
    assert narrow > which_check.SENSITIVE > wide
