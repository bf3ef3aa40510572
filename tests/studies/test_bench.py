"""The rivals compute the book's model: their densities and posteriors agree with references that are not theirs."""

import importlib
import inspect
import json

import numba
import numpy as np
import pytest
from bookkit import data, models, report
from hbnn.diagnostics import diagnose
from scipy.special import expit, log_expit
from studies._bench import __main__ as harness
from studies._bench import bound, gradients, libmvec, peers

N_HIDDEN = (2, 3)
TASKS = data.rotated_moons(seed=1, n_groups=2, n_train=6)
X, Y = TASKS.X_train, TASKS.y_train
SHAPES = peers.list_shapes(*X.shape[::2], N_HIDDEN)
RUN = {"seed": 1, "chains": 2, "draws": 600, "tune": 300, "target_accept": 0.8}
SAMPLERS = {
    "blackjax": lambda: peers.sample_blackjax(X, Y, N_HIDDEN, **RUN),
    "numpyro": lambda: peers.sample_numpyro(X, Y, N_HIDDEN, **RUN),
    "nutpie": lambda: peers.sample_nutpie(  # Numba takes seconds to compile
        models.hierarchical_bnn(X, Y, n_hidden=N_HIDDEN), backend="jax", gradient_backend="jax", **RUN
    ),
}


@pytest.mark.parametrize("layout", peers.LAYOUTS)
@pytest.mark.parametrize("activation", peers.ACTIVATIONS)
def test_the_density_in_jax_is_that_of_the_book_s_model(activation, layout):
    rng = np.random.default_rng(1)
    position = {name: np.asarray(rng.normal(size=shape)) for name, shape in SHAPES.items()}
    model = models.hierarchical_bnn(X, Y, n_hidden=N_HIDDEN, activation=activation)
    named = {name: position[f"log_{name[:3]}" if "log" in name else name] for name in model.initial_point()}
    found = float(peers.logdensity_jax(X, Y, N_HIDDEN, activation, layout)(position))
    np.testing.assert_allclose(found, float(model.compile_logp(mode="FAST_COMPILE")(named)), rtol=0, atol=1e-9)


# --- the samplers


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


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "nutpie" else pytest.mark.slow) for name in SAMPLERS]
)
def test_a_sampler_finds_the_posterior_and_counts_the_gradients_of_its_warm_up(name, reference):
    run, (mean, error) = SAMPLERS[name](), reference
    values = compute_quantities(run["posterior"])
    z = (values.mean(axis=(0, 1)) - mean) / np.hypot(error, diagnose(values)["mcse"])
    assert abs(z).max() < 4
    assert not np.isin(*run["posterior"]["mu1"]).any()  # chains differ
    assert run["n_steps"].min() >= 1
    assert run["n_warmup"] >= 2 * RUN["tune"]


# --- libmvec


@pytest.mark.skipif(libmvec.find_reason() is not None, reason=str(libmvec.find_reason()))
@pytest.mark.parametrize("function", [np.tanh, np.exp, np.log, np.log1p, np.expm1])
def test_numba_calls_the_vector_functions_inside_the_patch_alone_and_gets_the_same_values(function):
    def fill(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    x, found = np.linspace(0.01, 5, 1001), {}
    with libmvec.vectorised():
        found["inside"] = numba.njit(fill)
        found["inside"](x, inside := np.empty_like(x))
    found["outside"] = numba.njit(fill)
    found["outside"](x, outside := np.empty_like(x))
    called = {name: libmvec.PREFIX in "".join(run.inspect_asm().values()) for name, run in found.items()}
    assert called == {"inside": True, "outside": False}
    np.testing.assert_allclose(inside, outside, rtol=1e-15)


# --- the harness and its table


def test_the_bound_counts_what_a_hand_counts():
    # one point, 2-3-1: 9 weights, each once forward and once for its gradient; 3 errors sent back; 3 tanh
    by_hand = 2 * 9 + 3 + 3 * (bound.TANH + bound.SLOPE) + bound.OUTPUT
    assert bound.count_operations(1, 8, (2, 3, 1)) == by_hand
    assert bound.count_operations(5, 16, (2, 3, 1), "float32") == 5 * by_hand


def list_all(quick):
    return {name: {section: [case for group in groups for case in group] for section, groups in table.items()}
            for name, table in harness.list_cases(quick).items()}  # fmt: skip


@pytest.mark.parametrize("quick", [True, False])
def test_every_case_names_a_function_and_its_arguments(quick):
    tables = list_all(quick).values()
    for name, case in [case for table in tables for cases in table.values() for case in cases]:
        module, function = name.split(".")
        inspect.signature(getattr(importlib.import_module(f"studies._bench.{module}"), function)).bind(**case)


@pytest.mark.parametrize("name", list_all(quick=False))
def test_the_table_in_the_book_is_the_record_of_a_whole_run(name):
    table = report.read_data(name)
    assert table["digest"] == harness.digest_table(table) != harness.digest_table(table | {"minutes": 1.0})
    assert table["quick"] is False
    for section, cases in list_all(quick=False)[name].items():
        found = zip(cases, table[section], strict=True)
        assert [{key: row[key] for key in case} for (_, case), row in found] == json.loads(
            json.dumps([c for _, c in cases])
        )
        assert [row["failed"] for row in table[section] if "failed" in row] == []


@pytest.mark.slow
def test_a_group_runs_every_form_with_the_settings_of_a_user(tmp_path):
    case = {"n_hidden": 2, "activation": "tanh", "sizes": [(2, 5), (3, 4)], "rounds": 1, "seconds": 0}
    (row,) = harness.run_group([("gradients.time_gradients", case)], tmp_path)
    for size, found in zip(case["sizes"], row["models"], strict=True):
        assert (found["n_groups"], found["n_obs"]) == size
        assert {*gradients.MODES, gradients.IN_A_LOOP, *gradients.BY_HAND} <= {part["form"] for part in found["rows"]}
    assert list(tmp_path.iterdir())  # compiled apart
