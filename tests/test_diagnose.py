"""The diagnostics, against ArviZ on an xarray data set, and the verdict on chains that are good or stuck."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from bnn import diagnose


@pytest.fixture
def good():
    """Four chains that agree: (chain, draw, quantity)."""
    return np.random.default_rng(0).normal(size=(4, 500, 3))


@pytest.fixture
def slow():
    """Four chains that agree and move slowly."""
    steps = np.random.default_rng(0).normal(size=(4, 500, 3))
    for i in range(1, 500):
        steps[:, i] += 0.95 * steps[:, i - 1]
    return steps


@pytest.mark.parametrize("kind", ["good", "slow"])
def test_the_figures_are_those_of_arviz(kind, request):
    values = request.getfixturevalue(kind)
    tree = xr.DataTree.from_dict(
        {"posterior": xr.Dataset({"x": (("chain", "draw", "quantity"), values)}, {"chain": range(4)})}
    )
    found = diagnose.diagnose(values)
    for name, function in {"rhat": az.rhat, "ess": az.ess, "mcse": az.mcse}.items():
        np.testing.assert_allclose(found[name], function(tree)["x"].values.ravel(), rtol=1e-10)


def test_the_mcse_is_the_spread_of_means_over_repeated_chains():
    values = np.random.default_rng(1).normal(size=(4, 250, 200))  # each quantity is a repetition
    assert diagnose.diagnose(values)["mcse"].mean() == pytest.approx(values.mean(axis=(0, 1)).std(ddof=1), rel=0.2)


def test_good_chains_converged(good):
    found = diagnose.judge(good, 0)
    assert found["converged"] is True
    assert (found["max R-hat"], found["min bulk ESS"]) == (
        diagnose.diagnose(good)["rhat"].max(),
        diagnose.diagnose(good)["ess"].min(),
    )


def test_one_chain_elsewhere_is_not_converged(good):
    good[3, :, 1] += 2
    assert diagnose.judge(good, 0)["converged"] is False


def test_one_chain_that_is_too_wide_is_not_converged(good):
    good[3, :, 1] *= 3  # the same mean: seen by the folded R-hat only
    assert diagnose.judge(good, 0)["converged"] is False


def test_chains_that_are_each_stuck_at_one_value_are_not_converged():
    values = np.repeat(np.arange(4.0)[:, None, None], 500, axis=1)
    assert diagnose.judge(values, 0)["converged"] is False


def test_too_few_effective_draws_are_not_converged(good):
    assert diagnose.judge(good[:, :60], 0)["converged"] is False


def test_slow_chains_are_not_converged(slow):
    assert diagnose.judge(slow, 0)["converged"] is False


def test_divergences_are_counted_beside_the_verdict(good):
    found = diagnose.judge(good, np.int64(7))
    assert (found["divergences"], found["converged"]) == (7, True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((4, 100)), r"values has shape \(4, 100\); wanted: \(chain, draw, quantity\)"),
        (np.zeros((1, 100, 2)), r"values has 1 chains of 100 draws; wanted: at least 2 chains"),
        (np.zeros((4, 3, 2)), r"values has 4 chains of 3 draws; wanted: at least 2 chains of 4 draws"),
        (np.zeros((4, 100, 0)), r"values has shape \(4, 100, 0\); wanted: at least one quantity"),
        (np.full((4, 100, 2), np.nan), r"values holds NaN or infinite numbers; wanted: finite"),
    ],
)
def test_wrong_values_are_named(values, message):
    with pytest.raises(ValueError, match=message):
        diagnose.diagnose(values)
