"""The engine of the live pages (book/_static/live): right, the same everywhere, and honest when it does not converge.

The code runs in the Node that Playwright carries, and where a browser could differ in Chromium as well. References are
Python's mathematics, JAX's random numbers, PyMC's densities, nutpie's draws, and ArviZ's and the book's diagnostics.
"""

import math
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from bnn import data, diagnose, inference, models, predict
from bnn.fuse import fuse
from browser import launch_chromium, open_page, serve
from jax.extend.random import threefry_2x32
from node import LIVE, find_node, run_in_node, run_in_page
from pytensor.compile.mode import Mode
from scipy import stats

PATIENT = data.flat_moons(seed=1)
X, Y = PATIENT.X_train[:40], PATIENT.y_train[:40]
GRID = data.grid(10)


@pytest.fixture(scope="module")
def tab():
    """A tab of Chromium's and the address of the modules."""
    with (
        serve(LIVE.parent) as base,
        launch_chromium() as chromium,
        open_page(chromium, f"{base}favicon.svg") as (page, log),
    ):
        yield page, f"{base}live/"
        assert not log.complaints
        assert all(url.startswith((base, "data:")) for url in log.requests)


# --- arithmetic and random numbers


@pytest.mark.parametrize(
    ("name", "low", "high"), [("exp", -745, 709), ("log", 1e-300, 1e300), ("log1p", -0.99, 2), ("tanh", -21, 21)]
)
def test_elementary_functions_are_right_to_the_last_bits(name, low, high):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(low, high, 5000), rng.uniform(max(low, -1), 1, 5000), 10 ** rng.uniform(-9, 0, 999)])
    x = np.abs(x) if name == "log" else x
    found = np.array(run_in_node(f"return data.x.map(live.{name})", x=x.tolist()), float)
    exact = np.array([getattr(math, name)(value) for value in x])
    assert (np.abs(found - exact) <= np.spacing(np.abs(exact))).mean() > 0.99
    assert (np.abs(found - exact) <= 2 * np.spacing(np.abs(exact))).all()


def test_elementary_functions_know_their_ends():
    found = run_in_node("""
      const { exp, log, tanh, softplus, logistic } = live;
      return [exp(NaN), exp(710), exp(-746), exp(Infinity), exp(-Infinity), exp(-744.5), log(0), log(-1), log(Infinity),
              log(5e-324), tanh(NaN), tanh(Infinity), tanh(-30), softplus(800), softplus(-800), logistic(-800)]""")
    wanted = [math.nan, math.inf, 0, math.inf, 0, math.exp(-744.5), -math.inf, math.nan, math.inf, math.log(5e-324)]
    wanted += [math.nan, 1, -1, 800, 0, 0]
    np.testing.assert_allclose(np.array(found, float), wanted, rtol=1e-15)


def test_the_generator_is_threefry():
    seeds, n = [(0, 0), (1, 2), (2**32 - 1, 12345)], 50
    found = run_in_node(
        """return data.seeds.map(([seed, stream]) => Array.from({ length: data.n }, (_, i) => {
          const words = Int32Array.of(i, 0); live.threefry(words, seed | 0, stream | 0);
          return [...new Uint32Array(words.buffer)]; }))""",
        seeds=seeds, n=n,
    )  # fmt: skip
    counts = np.concatenate([np.arange(n), np.zeros(n)]).astype(np.uint32)
    for (seed, stream), words in zip(seeds, found, strict=True):
        wanted = np.asarray(threefry_2x32(np.array([seed, stream], np.uint32), counts))
        assert np.array_equal(np.array(words).T.ravel(), wanted)
    assert found[0][0] == [0x6B200159, 0x99BA4EFE]  # the known answer of its authors


def test_random_numbers_have_their_distributions_and_streams_differ():
    found = run_in_node("""
      const draw = (seed, stream, kind) => { const random = live.makeRandom(seed, stream);
        return Array.from({ length: 4000 }, () => random[kind]()); };
      return [draw(1, 0, "uniform"), draw(1, 1, "uniform"), draw(2, 0, "uniform"), draw(1, 0, "normal")]""")
    one, other_stream, other_seed, normal = np.array(found)
    assert stats.kstest(one, "uniform").pvalue > 1e-3
    assert stats.kstest(normal, "norm").pvalue > 1e-3
    assert stats.kstest(np.abs(np.diff(normal)), stats.halfnorm(scale=2**0.5).cdf).pvalue > 1e-3
    for other in (other_stream, other_seed):
        assert not np.intersect1d(one, other).size
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / len(one) ** 0.5


# --- densities


def type_tied(X, y, group, n_groups, n_hidden, tie):
    """Networks of groups whose weights have a correlation that is given."""
    sizes = [2, *n_hidden]
    shapes = [(2, n_hidden[0]), tuple(n_hidden), (sizes[-1],)]
    with pm.Model() as model:
        w = []
        for k, shape in enumerate(shapes, 1):
            mu = pm.Normal(f"mu{k}", shape=shape) if tie > 0 else 0
            w.append(np.sqrt(tie) * mu + np.sqrt(1 - tie) * pm.Normal(f"z{k}", shape=(n_groups, *shape)))
        h = pt.tanh((X[:, :, None] * w[0][group]).sum(1))
        h = pt.tanh((h[:, :, None] * w[1][group]).sum(1))
        pm.Bernoulli("y", logit_p=(h * w[2][group]).sum(1), observed=y)
    return model


def list_densities():
    """Name to (model in PyMC, its maker and options in JavaScript)."""
    rng = np.random.default_rng(3)
    group = np.array([0, 1, 2] * 10 + [0, 0, 1])
    points, labels = X[: len(group)], Y[: len(group)]
    flat = {"X": points.tolist(), "y": labels.tolist()}
    grouped = flat | {"group": group.tolist(), "nGroups": 3, "hidden": [3, 4]}
    each = [points[group == g] for g in range(3)], [labels[group == g] for g in range(3)]
    order = rng.permutation(len(group))  # the page need not sort its points
    mixed = grouped | {name: [grouped[name][i] for i in order] for name in ("X", "y", "group")}
    # with logits, as the chapter types it
    one = partial(models.unpooled_bnn, n_hidden=(5, 5))
    with_one = np.column_stack([points, np.ones(len(points))])
    return {
        "flat": (one(points, labels), "makeFlat", flat),
        "flat, 3 and 4 units, narrow": (
            one(points, labels, n_hidden=(3, 4), prior_sd=0.5), "makeFlat",
            flat | {"hidden": [3, 4], "sd": 0.5},
        ),
        "flat, biases": (one(with_one, labels), "makeFlat", flat | {"biases": True}),
        "flat, one class": (
            one(points, 0 * labels), "makeFlat", flat | {"y": [0] * len(labels)},
        ),
        "learned": (models.hierarchical_bnn(*each, n_hidden=(3, 4)), "makeHierarchical", mixed),
        "learned, narrow": (
            models.hierarchical_bnn(*each, n_hidden=(3, 4), sd_scale=0.3), "makeHierarchical",
            grouped | {"sdScale": 0.3},
        ),
        "pooled": (
            one(points, labels, n_hidden=(3, 4)), "makeHierarchical", grouped | {"ties": "pooled"},
        ),
        "none": (
            type_tied(points, labels, group, 3, (3, 4), 0), "makeHierarchical", mixed | {"ties": "none"},
        ),
        "tied by 0.7": (
            type_tied(points, labels, group, 3, (3, 4), 0.7), "makeHierarchical", mixed | {"ties": 0.7},
        ),
    }  # fmt: skip


DENSITIES = list_densities()
RUN = Mode(linker="py", optimizer="fast_run")  # all rewrites, which keep logs of probabilities from -inf; no compiler
MAKE = "const model = live[data.make]({ ...data.options, X: Float64Array.from(data.options.X.flat()) });"
EVALUATE = f"""{MAKE}
  return data.thetas.map((theta) => {{
    const gradient = new Float64Array(model.size).fill(NaN);
    return [model.logDensity(Float64Array.from(theta), gradient), gradient];
  }})"""


@pytest.mark.parametrize("name", DENSITIES)
def test_log_density_and_gradient_are_pymcs(name):
    model, make, options = DENSITIES[name]
    with model:
        point = model.initial_point()
        joint = model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode=RUN)
    size = sum(value.size for value in point.values())
    thetas = np.random.default_rng(1).normal(size=(100, size)) * np.repeat([0.3, 1, 3], [20, 60, 20])[:, None]
    found = run_in_node(EVALUATE, make=make, options=options, thetas=thetas.tolist())
    for theta, (logp, gradient) in zip(thetas, found, strict=True):
        values, at = {}, 0
        for key, value in point.items():
            values[key] = theta[at : at + value.size].reshape(value.shape)
            at += value.size
        wanted, slope = joint(values)
        assert logp == pytest.approx(float(wanted), rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9)


def test_without_points_there_is_the_prior():
    thetas = np.random.default_rng(1).normal(size=(5, 40))
    options = {"X": [], "y": []}
    for logp, gradient in run_in_node(EVALUATE, make="makeFlat", options=options, thetas=thetas.tolist()):
        theta = -np.array(gradient)
        assert logp == pytest.approx(stats.norm.logpdf(theta).sum(), rel=1e-12)
        assert (np.abs(thetas - theta).max(axis=1) == 0).any()


def test_predictions_are_the_networks_own_and_the_log_likelihood_that_of_the_labels():
    rng = np.random.default_rng(2)
    _, _, options = DENSITIES["learned"]
    theta, groups = rng.normal(size=4 * (6 + 12 + 4) + 3), rng.integers(3, size=len(GRID))
    code = f"""{MAKE}
      const out = new Float64Array(data.groups.length), theta = Float64Array.from(data.theta);
      model.predict(theta, Float64Array.from(data.points.flat()), out, Int32Array.from(data.groups));
      return [out, model.describe(theta), model.logLikelihood(theta), model.names]"""
    found, described, loglik, names = run_in_node(
        code, make="makeHierarchical", options=options, theta=theta.tolist(), points=GRID.tolist(),
        groups=groups.tolist(),
    )  # fmt: skip
    weights, at = {}, 0
    for k, shape in enumerate([(2, 3), (3, 4), (4,)], 1):
        n = int(np.prod(shape))
        mu, sd, z = np.split(theta[at : at + 4 * n + 1], [n, n + 1])
        assert described[f"sd{k}"] == pytest.approx(np.exp(sd[0]))
        assert names[at + n] == f"log sd{k}"
        weights[f"w{k}"] = mu.reshape(shape) + np.exp(sd) * z.reshape(3, *shape)
        at += 4 * n + 1
    weights = {name: value[None, None] for name, value in weights.items()}
    wanted = predict.predict_groups(weights, GRID)[0, 0]
    np.testing.assert_allclose(found, wanted[groups, np.arange(len(GRID))], rtol=1e-12)
    p = predict.predict_groups(weights, np.array(options["X"]))[0, 0][options["group"], np.arange(len(options["y"]))]
    assert loglik == pytest.approx(np.log(np.where(options["y"], p, 1 - p)).sum())
