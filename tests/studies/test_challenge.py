"""The challenge: gradients are counted, a prefix is what its budget paid, and wrong or short runs are called so."""

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pymc as pm
import pytest
from hbnn.reference import scoring
from hbnn.reference.posteriors import CURVES, FLAT
from jax.flatten_util import ravel_pytree
from studies import _entrants, challenge, reference_scores
from studies._entrants import BLOCK, Budget, Chain

SIZE, CALLS = 7, [0]


def note(_):
    CALLS[0] += 1


def count_calls(function, *arguments):
    """What a function returns, and how many gradients of the Gaussian it took."""
    jax.effects_barrier()
    CALLS[0] = 0
    found = jax.block_until_ready(jax.jit(function)(*arguments))
    jax.effects_barrier()
    return found, CALLS[0]


@pytest.fixture
def gaussian(monkeypatch):
    """A Gaussian in place of every posterior, which counts how often its slope is computed."""
    jax.config.update("jax_enable_x64", True)

    @jax.custom_vjp
    def logp(x):
        return -(x**2).sum() / 2

    def forward(x):
        jax.debug.callback(note, x[0])
        return logp(x), x

    logp.defvjp(forward, lambda x, g: (-g * x,))
    monkeypatch.setattr(_entrants, "make_flat", lambda posterior: (logp, SIZE))
    monkeypatch.setattr(_entrants, "list_positions", lambda posterior: {"a": (SIZE - 1,), "log_b": ()})


# --- gradients


@pytest.mark.parametrize(
    ("make", "n_chains"),
    [("make_nuts", 1), ("make_mclmc", 1), ("make_mams", 1)]
    + [pytest.param(*costly, marks=pytest.mark.slow) for costly in (("make_numpyro", 1), ("make_meads", 64))],
)
def test_every_gradient_of_a_walk_is_counted_and_no_other(gaussian, make, n_chains):
    options = {} if make in ("make_mclmc", "make_mams") else {"tune": 60}
    prepare, warm, walk = getattr(_entrants, make)(FLAT, Budget(10_000, 1), **options)
    key = jax.random.key(1)
    prepared = prepare(key)
    (carry, warmup), calls = count_calls(warm, key, prepared)
    assert warmup <= calls <= warmup + max(100, 3 * n_chains)  # and some, for the start and its first step size
    (_, (positions, counts)), calls = count_calls(walk, carry, key)
    assert counts.sum() == calls
    assert positions.shape == ((BLOCK, SIZE) if n_chains == 1 else (BLOCK, n_chains, SIZE))


def test_pymc_takes_a_gradient_for_each_leaf_and_one_to_start_with(monkeypatch):
    from pymc.step_methods.hmc.integration import CpuLeapfrogIntegrator as Integrator

    with pm.Model() as model:
        pm.Normal("a", shape=SIZE)
    counted = []
    for name in ("compute_state", "step"):
        there = getattr(Integrator, name)
        monkeypatch.setattr(Integrator, name, lambda *a, there=there, **b: counted.append(1) or there(*a, **b))
    monkeypatch.setattr(_entrants, "build", lambda posterior: model)
    monkeypatch.setattr(_entrants, "ask", lambda posterior, found: found["a"])
    chains = _entrants.sample_pymc(FLAT, 1, Budget(4000, 10), tune=50)
    spent = sum(chain.gradients[-1] for chain in chains)
    assert len(chains) == 4
    assert all(chain.gradients[-1] >= 1000 * _entrants.MARGIN for chain in chains)
    assert spent < len(counted) < spent + 4 * 2100  # and what compiles: two trees before each chain


@pytest.mark.slow
def test_nutpies_density_counts_its_calls_and_is_that_of_jax_up_to_a_constant():
    compiled = _entrants.compile_model(CURVES)
    counted = _entrants._count_calls(compiled.compiled_logp_func.address, compiled.user_data.ctypes.data)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t, *[ctypes.c_void_p] * 4)(counted.address)
    logp, size = _entrants.make_flat(CURVES)
    calls, value, slopes = np.zeros(1, np.int64), np.zeros(1), np.zeros(size)
    gaps = []
    for x in 0.3 * np.random.default_rng(1).normal(size=(3, size)):
        assert call(size, x.ctypes.data, slopes.ctypes.data, value.ctypes.data, calls.ctypes.data) == 0
        unknowns = {name: part[0] for name, part in _entrants.read_model(CURVES, x[None]).items()}
        there = ravel_pytree(unknowns)[0]
        gaps.append(value[0] - float(logp(there)))
        found = _entrants.read_flat(CURVES, np.asarray(there)[None])
        assert {name: part[0].tolist() for name, part in found.items()} == {k: v.tolist() for k, v in unknowns.items()}
    assert calls[0] == 3
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-9)


@pytest.mark.parametrize(
    ("spent", "is_over"),
    [((1149, 2.1), False), ((1151, 2.1), True), ((1, 6.1), True), ((1149, 5.9), False)],
)
def test_a_run_goes_on_until_its_gradients_are_spent_or_the_cap_is(spent, is_over):
    assert Budget(1000, 6).is_spent(*spent) is is_over
    assert Budget(4000, 24).share(4).is_spent(*spent) is is_over


# --- prefixes


def make_chain(n, warmup, each, value=0.0):
    return Chain(np.full((n, 2), value), warmup + each * np.arange(1, n + 1.0), warmup)


def test_chains_are_cut_to_the_shortest_and_their_costs_added():
    run = challenge.join([make_chain(10, 100, 5, 1.0), make_chain(7, 40, 11, 2.0)])
    assert run.values.shape == (2, 7, 2)
    assert run.values[:, -1, 0].tolist() == [1.0, 2.0]
    np.testing.assert_allclose(run.gradients, 140 + 16 * np.arange(1, 8))


def test_a_prefix_is_as_many_draws_as_its_budget_pays_and_a_run_that_stopped_short_is_capped():
    run = challenge.join([make_chain(10, 100, 5), make_chain(7, 40, 11)])
    assert [run.cut(budget) for budget in (139, 155, 156, 203.9, 204, 1e9)] == [0, 0, 1, 3, 4, 7]
    run = challenge.join([make_chain(10, 100, 5)])
    assert [challenge.is_capped(run, n) for n in (150, 157, 159)] == [False, False, True]
    assert challenge.is_capped(challenge.join([make_chain(0, 100, 5)]), 10) is True


# --- scores and verdicts


def make_run(draws):
    return challenge.Run(draws, 100.0 * np.arange(1, draws.shape[1] + 1))


def name(score, entrant="PyMC", **row):
    """The verdict of a row with one budget, of twice the needs, of which these are the numbers."""
    row = {"posterior": FLAT, "entrant": entrant, "warmup": 1e5, "capped": False} | row
    return challenge.name_verdict(row | {key: [None, None, value] for key, value in score.items()}, 2)


@pytest.fixture
def draws():
    rows = reference_scores.load_rows(FLAT)
    return rows[np.random.default_rng(3).integers(len(rows), size=(4, 800))]


def test_right_draws_are_right_and_few_of_them_too_few(draws):
    truth, run = scoring.load_reference(FLAT), make_run(draws)
    assert name(challenge.judge(run, 800, truth)) == challenge.RIGHT
    few = challenge.judge(run, 60, truth)
    assert (name(few), few["draws"], few["spent"]) == (challenge.FEW, 60, 6000.0)
    assert few["ess"] < 400
    nothing = challenge.judge(run, 3, truth)
    assert name(nothing) == challenge.STILL
    assert name(nothing, capped=True) == challenge.LATE
    assert name(nothing, capped=True, warmup=1.5e6) == challenge.STILL


def test_a_bias_of_half_a_posterior_sd_is_wrong_and_reported_as_it_is(draws):
    truth = scoring.load_reference(FLAT)
    k = truth.names.index("log_lik")
    draws[..., k] -= 0.5 * truth.draws[:, k].std()
    found = challenge.judge(make_run(draws), 800, truth)
    assert (name(found), found["at"]) == (challenge.WRONG, "log_lik")
    assert found["log_lik_bias"] == pytest.approx(-0.5, abs=0.06)


def test_a_verdict_is_the_scorers(draws):
    truth = scoring.load_reference(FLAT)
    for chains, n in ((4, 99), (4, 800), (64, 7)):
        some = np.tile(draws, (chains // 4, 1, 1))
        score = challenge.judge(make_run(some), n, truth)
        verdict = scoring.compare_draws(some[:, :n], truth).verdict
        assert name(score, "BlackJAX, MEADS" if chains > 4 else "PyMC").startswith(verdict)


def test_what_is_behind_the_prefix_is_not_seen_and_what_is_not_finite_called_so(draws):
    truth = scoring.load_reference(FLAT)
    draws[:, 500:] += 5
    assert name(challenge.judge(make_run(draws), 500, truth)) == challenge.RIGHT
    draws[2, 100] = np.nan
    assert name(challenge.judge(make_run(draws), 500, truth)) == challenge.BROKEN


# --- a row


def test_a_row_scores_each_budget(monkeypatch, draws):
    gradients, cpu = challenge.NEED[FLAT]
    share = np.arange(1, 801) / 800

    def sample(posterior, seed, budget):
        assert budget == Budget(2 * gradients, 10 * cpu)
        return [Chain(draws[k], share * gradients / 2, 7.0) for k in range(4)]

    monkeypatch.setitem(_entrants.SAMPLE, "nutpie", sample)
    row = challenge.compute(FLAT, "nutpie", 1)
    assert row["draws"] == [200, 400, 800]  # half, once and twice the gradients of a need
    assert row["warmup"] == 28
    assert row["capped"] is False
    assert challenge.name_verdict({"posterior": FLAT, "entrant": "nutpie"} | row, -1) == challenge.RIGHT


def test_each_budget_of_laps_is_a_run_of_its_own(monkeypatch, draws):
    asked = []

    def sample(posterior, seed, budget):
        asked.append(budget.gradients)
        return [Chain(draws[k], np.full(800, budget.gradients / 4), budget.gradients / 8) for k in range(4)]

    monkeypatch.setitem(_entrants.SAMPLE, "BlackJAX, LAPS", sample)
    row = challenge.compute(FLAT, "BlackJAX, LAPS", 1)
    assert sorted(asked) == [360_000, 720_000, 1_440_000]
    assert row["spent"] == sorted(asked)
    assert row["draws"] == [800] * 3


@pytest.mark.slow
def test_laps_takes_the_gradients_that_it_says_and_finds_a_gaussian(gaussian, monkeypatch):
    monkeypatch.setattr(_entrants, "ask", lambda posterior, found: np.column_stack([found["a"], found["log_b"]]))
    jax.effects_barrier()
    CALLS[0] = 0
    chains = _entrants.sample_laps(FLAT, 1, Budget(_entrants.CROWD * 200, 100))
    jax.effects_barrier()
    spent = sum(chain.gradients[0] for chain in chains)
    assert spent == _entrants.CROWD * 190  # 100 without a correction, and three draws of 15 steps of two
    assert spent <= CALLS[0] <= spent + 3 * _entrants.CROWD  # and some, for the start
    values = np.concatenate([chain.values for chain in chains])
    assert values.shape == (_entrants.CROWD, SIZE)
    np.testing.assert_allclose(values.std(axis=0), 1, atol=0.12)


def test_a_start_has_scales_of_one(gaussian):
    start = _entrants.read_flat(FLAT, np.asarray(_entrants.draw_start(FLAT, jax.random.key(1)))[None])
    assert start["log_b"].tolist() == [0.0]
    assert jnp.std(start["a"]) > 0.3
