"""The diagnostics, against ArviZ, and the verdict on chains that are good, stuck, short, divergent or slow."""

import re

import arviz as az
import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from hbnn import diagnostics
from scipy import signal


@pytest.fixture
def good():
    """Four chains that agree: (chain, draw, quantity)."""
    return np.random.default_rng(0).normal(size=(4, 500, 3))


@pytest.fixture
def long():
    """As many draws as the book's runs have, of chains that agree."""
    return np.random.default_rng(0).normal(size=(4, 1500, 3))


def make_chains(kind, shape=(4, 500, 3)):
    values = np.random.default_rng(0).normal(size=shape)
    place = np.arange(float(shape[0]))[:, None, None]
    return {
        "good": values,
        "slow": signal.lfilter([1], [1, -0.95], values, axis=1),
        "random walks": np.cumsum(values, axis=1),
        "alternating": values + 3 * (-1.0) ** np.arange(shape[1])[:, None],
        "with ties": np.round(values),
        "apart": values + place,
        "stuck": np.broadcast_to(place, shape),
        "constant": np.ones(shape),
        "one elsewhere": values + 2 * (place == shape[0] - 1),
        "one too wide": values * (1 + 2 * (place == shape[0] - 1)),  # seen by the folded R-hat only
        "short": values[:, :60],
    }[kind]


KINDS = ["good", "slow", "random walks", "alternating", "with ties", "apart", "stuck", "constant"]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # ArviZ divides by the variance of constants
@pytest.mark.parametrize("kind", KINDS)
def test_the_figures_are_those_of_arviz(kind):
    for shape in [(4, 300, 20), (3, 101, 5), (2, 9, 20), (2, 8, 20), (2, 5, 20), (2, 4, 20)]:
        values = make_chains(kind, shape)
        found, columns = diagnostics.diagnose(values), np.moveaxis(values, 2, 0)
        wanted = {
            "rhat": [array_stats.rhat(c) for c in columns],
            "ess": [array_stats.ess(c) for c in columns],
            "ess_spread": [array_stats.ess(c, method="folded") for c in columns],
            "ess_tail": [array_stats.ess(c, method="tail", prob=(0.05, 0.95)) for c in columns],
            "mcse": [array_stats.mcse(c) for c in columns],
        }
        for name, figures in wanted.items():
            np.testing.assert_allclose(found[name], figures, rtol=1e-9, err_msg=f"{name} of {shape}")


def test_a_block_of_quantities_is_judged_as_each_alone():
    values = make_chains("apart", (2, 50, 2 * diagnostics.BLOCK + 1))
    together = diagnostics.diagnose(values)
    for i in (0, diagnostics.BLOCK, 2 * diagnostics.BLOCK):
        alone = diagnostics.diagnose(values[:, :, i : i + 1])
        assert {name: figure[i] for name, figure in together.items()} == {name: f[0] for name, f in alone.items()}


def test_the_mcse_is_the_spread_of_means_over_repeated_chains():
    values = np.random.default_rng(1).normal(size=(4, 250, 200))  # each quantity is a repetition
    assert diagnostics.diagnose(values)["mcse"].mean() == pytest.approx(values.mean(axis=(0, 1)).std(ddof=1), rel=0.2)


def test_good_chains_converged_and_divergences_are_counted_beside(good):
    found, figures = diagnostics.judge(good, np.int64(7)), diagnostics.diagnose(good)
    assert found == {
        "max R-hat": figures["rhat"].max(),
        "min ESS": min(figures[name].min() for name in ("ess", "ess_spread", "ess_tail")),
        "divergences": 7,
        "converged": True,
    }


@pytest.mark.parametrize("kind", ["one elsewhere", "one too wide", "stuck", "short", "slow"])
def test_other_chains_are_not_converged(kind):
    assert diagnostics.judge(make_chains(kind), 0)["converged"] is False


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
        diagnostics.diagnose(values)


# --- the sampler


def make_tree(shape=(4, 500), divergent=(), depth=5, energy=None):
    """A run's statistics: `divergent` are (chain, draw) pairs, `depth` is a number or an array."""
    diverging = np.zeros(shape, bool)
    for place in divergent:
        diverging[place] = True
    energy = np.random.default_rng(9).normal(size=shape) if energy is None else energy
    columns = {"diverging": diverging, "depth": np.broadcast_to(depth, shape), "energy": energy}
    stats = xr.Dataset({name: (("chain", "draw"), values) for name, values in columns.items()})
    return xr.DataTree.from_dict({"sample_stats": stats})


def test_divergences_are_counted_over_all_chains():
    assert diagnostics.count_divergences(make_tree(divergent=[(0, 3), (2, 3), (2, 4)])) == 3


def test_the_depth_is_judged_by_the_limit_of_every_engine():
    depth = np.tile(np.arange(1, 11), (4, 50))  # each depth from 1 to 10 in a tenth of the draws
    assert diagnostics.tree_depth(make_tree(depth=depth)) == pytest.approx(0.1)
    steps = {"n_steps": (("chain", "draw"), 2**depth - 1)}  # another engine than nutpie says how many there were
    other = xr.DataTree.from_dict({"sample_stats": xr.Dataset(steps)})
    assert diagnostics.tree_depth(other) == pytest.approx(0.1)


def test_the_bfmi_of_independent_energies_is_two_and_that_of_a_slow_walk_is_small():
    # the mean square of a step, over the variance: 2 (1 - r) where neighbours correlate by r
    steps = np.random.default_rng(0).normal(size=(2, 20_000))
    slow = steps.copy()
    for i in range(1, 20_000):
        slow[:, i] = 0.9 * slow[:, i - 1] + steps[:, i]
    np.testing.assert_allclose(diagnostics.energy_bfmi(make_tree((2, 20_000), energy=steps)), 2, rtol=0.05)
    np.testing.assert_allclose(diagnostics.energy_bfmi(make_tree((2, 20_000), energy=slow)), 0.2, rtol=0.1)


def test_the_bfmi_is_that_of_arviz():
    tree = make_tree()
    np.testing.assert_allclose(diagnostics.energy_bfmi(tree), az.bfmi(tree)["energy"].values, rtol=1e-12)


# --- divergences


def make_mask(n, shape=(4, 500)):
    mask = np.zeros(shape, bool)
    mask.ravel()[:n] = True
    return mask


@pytest.mark.parametrize(("n", "explained"), [(0, True), (1, True), (3, False), (2000, False)])
def test_only_rare_divergences_in_ordinary_places_are_explained(good, n, explained):
    good[:, :, 1] = 3  # a constant does not move
    found = diagnostics.explain_divergences(good, make_mask(n))
    assert (found["n"], found["share"], found["explained"]) == (n, n / 2000, explained)
    assert found["move"] < 1 if n < 2000 else found["move"] == np.inf
    assert n or found["move"] == 0


def test_the_move_is_that_of_the_mean_in_units_of_its_error(good):
    mask = make_mask(5)
    flat, left = good.reshape(-1, 3), good.reshape(-1, 3)[5:]
    expected = np.abs((left.mean(axis=0) - flat.mean(axis=0)) / diagnostics.diagnose(good)["mcse"]).max()
    assert diagnostics.explain_divergences(good, mask)["move"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [2, 5])
def test_rare_divergences_that_move_a_quantity_are_not_explained(long, k):
    mask = make_mask(0, (4, 1500))
    for place in ((0, 10), (1, 700), (2, 300), (3, 900), (0, 1200))[:k]:
        mask[place] = True
    long[mask, 2] = 1000  # k equal outliers are all of the mean and of the sd: sqrt(k) standard errors
    found = diagnostics.explain_divergences(long, mask)
    assert found["share"] < 0.001
    assert found["move"] == pytest.approx(np.sqrt(k), rel=0.1)
    assert found["explained"] is False


def test_located_divergences_come_last_with_their_own_values(good):
    mask = make_mask(0)
    mask[1, 7] = mask[3, 2] = True
    found = diagnostics.locate_divergences(good[:, :, 0], good[:, :, 1], mask)
    assert list(found["diverging"]) == [False] * 1998 + [True] * 2
    assert list(found["x"][-2:]) == [good[1, 7, 0], good[3, 2, 0]]
    assert list(found["y"][-2:]) == [good[1, 7, 1], good[3, 2, 1]]
    assert sorted(found["x"]) == sorted(good[:, :, 0].ravel())


# --- the verdict


def ask(values, **quantities):
    """The verdict on chains, of which statistics may be given."""
    statistics = {name: quantities.pop(name) for name in ("divergent", "depth", "energy") if name in quantities}
    named = {"sd3": values[:, :, 0], "p": values[:, :, 1:]} | quantities
    return diagnostics.verdict(named, make_tree(values.shape[:2], **statistics))


def test_good_chains_are_used_and_the_sentence_says_so(long):
    found = ask(long)
    figures = diagnostics.diagnose(long)
    names = ["sd3", "p[0]", "p[1]"]
    assert found.converged is True
    assert (found.rhat, found.rhat_at) == (figures["rhat"].max(), names[figures["rhat"].argmax()])
    assert (found.ess, found.ess_at) == (figures["ess"].min(), names[figures["ess"].argmin()])
    assert (found.ess_spread, found.ess_spread_at) == (
        figures["ess_spread"].min(),
        names[figures["ess_spread"].argmin()],
    )
    assert (found.ess_tail, found.ess_tail_at) == (figures["ess_tail"].min(), names[figures["ess_tail"].argmin()])
    places = {
        found.ess: found.ess_at,
        found.ess_spread: f"{found.ess_spread_at}, spread",
        found.ess_tail: f"{found.ess_tail_at}, tails",
    }
    assert str(found) == (
        f"The four chains agree: R-hat at most {found.rhat:.3f} ({found.rhat_at}), "
        f"at least {min(places):,.0f} effective draws ({places[min(places)]}); no divergences in 6,000 draws."
    )


def test_a_few_divergences_in_ordinary_places_are_explained(long):
    found = ask(long, divergent=[(0, 3), (1, 5)])
    assert found.converged is True
    assert str(found).endswith("; 2 divergences in 6,000 draws, explained.")


def test_a_stuck_chain_is_named_with_its_quantity(long):
    long[3, :, 2] += 2
    found = ask(long)
    assert found.converged is False
    assert found.rhat_at == "p[1]"
    assert str(found).startswith(
        f"Do not use these draws: the chains disagree: only {found.ess:,.0f} effective draws for p[1], "
        f"R-hat {found.rhat:.2f} (wanted: more than 400 effective draws)"
    )
    assert "What helps: longer tuning" in str(found)
    assert "draws in all" not in str(found)  # more of the same would not do
    assert "\n" not in str(found)


def test_of_chains_that_disagree_the_least_figure_is_said_first(long):
    long[3, :, 2] = 1 + 2 * long[3, :, 2]
    found = ask(long)
    assert found.ess_spread < found.ess_tail < 40 < found.ess  # fewer than ten for each chain
    first = f"the chains disagree: only {found.ess_spread:,.0f} effective draws in the spread for p[1], R-hat"
    assert str(found).startswith(f"Do not use these draws: {first}")


def test_r_hat_decides_nothing():
    values = np.random.default_rng(0).normal(size=(30, 500))
    values[::2] += 0.6  # so many chains are worth 400 draws together, though half of them are elsewhere
    found = diagnostics.verdict({"a": values}, make_tree((30, 500)))
    assert found.rhat > 1.03
    assert min(found.ess, found.ess_tail) > 400
    assert found.converged is True
    assert str(found).startswith(f"The 30 chains agree: R-hat at most {found.rhat:.3f} (a), at least")


@pytest.mark.parametrize(
    ("shift", "scale", "passes", "rhat"), [(0.2, 1, True, 1.02), (1, 1, False, None), (0, 0.5, False, None)]
)
def test_what_passes_though_a_chain_is_elsewhere(shift, scale, passes, rhat):
    """Four chains of autocorrelation 0.8 that are worth 1,500 draws; one is shifted, or has half the others' spread."""
    noise = np.random.default_rng(1).normal(size=(4, 3375, 40)) * 0.6
    noise[:, 0] /= 0.6
    values = signal.lfilter([1], [1, -0.8], noise, axis=1)
    values[0] = shift + scale * values[0]
    found = diagnostics.diagnose(values)
    assert all((found[name] > 400).all() for name in ("ess", "ess_spread", "ess_tail")) == passes
    assert not passes or found["rhat"].max() < rhat
    if shift == 0.2:
        assert 1.5 < (shift / 4 / found["mcse"]).mean() < 2.3


@pytest.mark.parametrize("divergent", [[], [(0, 3)]])
def test_the_figures_are_computed_once(long, divergent, monkeypatch):
    calls, once = [], diagnostics.diagnose
    monkeypatch.setattr(diagnostics, "diagnose", lambda values: calls.append(1) or once(values))
    ask(long, divergent=divergent)
    assert len(calls) == 1


def test_chains_each_stuck_at_one_value_disagree(long):
    long[:, :, 0] = np.arange(4)[:, None]
    found = ask(long)
    assert (found.converged, found.rhat > 1e9, found.rhat_at, found.constant) == (False, True, "sd3", ())
    assert re.search(r"the chains disagree: only \d effective draws.* for sd3, R-hat above 100 \(wanted", str(found))


def test_too_few_draws_are_told_how_many_are_wanted():
    short = np.random.default_rng(0).normal(size=(4, 60, 3))
    found = ask(short)
    assert found.converged is False
    assert f"only {found.ess:,.0f} effective draws for {found.ess_at} (wanted: more than 400)" in str(found)
    assert f"only {found.ess_tail:,.0f} effective draws in the tails for {found.ess_tail_at}" in str(found)


def test_the_advised_number_of_draws_is_enough():
    rng = np.random.default_rng(0)
    found = diagnostics.verdict({"a": rng.normal(size=(4, 60))}, make_tree((4, 60)))
    advised = int(found.advice[-1].split()[1].replace(",", ""))
    more = rng.normal(size=(4, advised // 4))
    assert diagnostics.verdict({"a": more}, make_tree(more.shape)).converged is True


def test_many_divergences_forbid_the_draws(long):
    found = ask(long, divergent=[(0, i) for i in range(30)])
    assert (found.converged, found.divergences, found.explained) == (False, 30, False)
    assert "30 divergences in 6,000 draws, which move a quantity by up to" in str(found)
    assert "target_accept nearer to 1" in str(found)


def test_one_chain_that_hardly_explores_the_energy_forbids_the_draws(long):
    energy = np.random.default_rng(9).normal(size=(4, 1500))
    energy[2] = np.cumsum(energy[2])
    found = ask(long, energy=energy)
    assert found.bfmi == diagnostics.energy_bfmi(make_tree((4, 1500), energy=energy))[2]
    assert found.converged is False
    assert f"E-BFMI is {found.bfmi:.2f} (wanted: at least 0.3)" in str(found)


def test_draws_at_the_greatest_depth_are_mentioned_and_forgiven(long):
    depth = np.full((4, 1500), 5)
    depth[:, :300] = 10
    found = ask(long, depth=depth)
    assert found.converged is True
    assert str(found).endswith("; 20% of the draws were cut short at the greatest tree depth.")


def test_constant_quantities_are_named_and_not_judged(long):
    found = ask(long, w=np.ones((4, 1500, 5)))
    assert found.constant == ("w[0]", "w[1]", "w[2]", "w[3]", "w[4]")
    assert found.converged is True
    assert str(found).endswith("; constant and not judged: w[0], w[1], w[2] and 2 more.")


def test_nothing_but_constants_cannot_be_judged():
    found = diagnostics.verdict({"w": np.ones((4, 1500))}, make_tree((4, 1500)))
    assert found.converged is False
    assert str(found).startswith("Do not use these draws: every quantity is constant")


def test_a_single_chain_cannot_be_judged(long):
    found = ask(long[:1])
    assert found.converged is False
    assert str(found) == (
        "Do not use these draws: 1 chain of 1500 draws cannot be compared. "
        "What helps: at least 2 chains, better 4, of 1,000 draws."
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: diagnostics.verdict({}, make_tree()),
            r"no quantities; wanted: a dict of name to \(chain, draw, …\) array",
        ),
        (
            lambda: diagnostics.verdict({"a": np.zeros((4, 9))}, make_tree()),
            r"a has shape \(4, 9\); wanted: \(4, 500\)",
        ),
        (lambda: diagnostics.verdict({"a": np.full((4, 500), np.nan)}, make_tree()), r"a holds NaN .*; wanted: finite"),
        (
            lambda: diagnostics.verdict({"a": np.zeros((4, 500, 0))}, make_tree()),
            r"the quantities are empty; wanted: at",
        ),
        (
            lambda: diagnostics.count_divergences(xr.DataTree()),
            r"no sample_stats\['diverging'\]; wanted: one from pm.s",
        ),
        (lambda: diagnostics.tree_depth(xr.DataTree()), r"no sample_stats\['n_steps'\]; wanted: one from pm.s"),
        (lambda: diagnostics.energy_bfmi(make_tree((4, 3))), r"the chains have 3 draws; wanted: at least 4"),
        (
            lambda: diagnostics.explain_divergences(np.zeros((4, 500, 1)), make_mask(0, (4, 5))),
            r"diverging is bool \(4, 5\); wanted: bool \(4, 500\)",
        ),
        (
            lambda: diagnostics.locate_divergences(np.zeros((4, 5)), np.zeros((4, 6)), make_mask(0, (4, 5))),
            r"x and y have shapes \(4, 5\) and \(4, 6\); wanted: \(chain, draw\)",
        ),
    ],
)
def test_what_a_verdict_cannot_use_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
