"""The engine of the live pages (book/_static/live): right, reproducible, and honest when it does not converge.

The code runs in the Node that Playwright carries, and its workers in Chromium. References are Python's mathematics,
JAX's random numbers, PyMC's densities, nutpie's draws, and the diagnostics of ArviZ and the book.
"""

import math
import re
from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling
from jax.extend.random import threefry_2x32
from pytensor.compile.mode import Mode
from scipy import stats
from studies._node import LIVE, MODULES, run_in_node, run_in_page
from tools.browser import launch_chromium, open_page, serve

PATIENT = data.flat_moons(seed=1)
X, Y = PATIENT.X_train[:40], PATIENT.y_train[:40]
GRID = data.grid(10)


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    """A tab with nothing in it, and the address of the modules."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "live").symlink_to(LIVE)
    (folder / "index.html").write_text('<!doctype html><title>live</title><link rel="icon" href="data:,">')
    with serve(folder) as base, launch_chromium() as chromium, open_page(chromium, base) as (page, log):
        yield page, f"{base}live/"
        assert not log.complaints


# --- arithmetic and random numbers


def test_elementary_functions_are_right_to_the_last_bits():
    rng = np.random.default_rng(1)
    ends = {"exp": (-745, 709), "log": (1e-300, 1e300), "log1p": (-0.99, 2), "tanh": (-21, 21)}
    near = {name: rng.uniform(max(low, -1), 1, 5000) for name, (low, _) in ends.items()}
    x = {
        name: np.concatenate([rng.uniform(low, high, 5000), near[name], 10 ** rng.uniform(-9, 0, 999)])
        for name, (low, high) in ends.items()
    }
    x["log"] = np.abs(x["log"])
    code = "return Object.fromEntries(Object.entries(data).map(([name, x]) => [name, x.map(live[name])]))"
    found = run_in_node(code, **{name: values.tolist() for name, values in x.items()})
    for name, values in x.items():
        exact = np.array([getattr(math, name)(value) for value in values])
        steps = np.abs(np.array(found[name], float) - exact) / np.spacing(np.abs(exact))
        assert (steps <= 1).mean() > 0.97, name
        assert steps.max() <= 2, name


def test_elementary_functions_know_their_ends():
    found = run_in_node("""
      const { exp, log, tanh, softplus, logistic } = live;
      return [exp(NaN), exp(710), exp(-746), exp(-744.5), log(0), log(-1), log(5e-324), tanh(-30), softplus(800),
              softplus(-800), logistic(-800)]""")
    wanted = [math.nan, math.inf, 0, math.exp(-744.5), -math.inf, math.nan, math.log(5e-324), -1, 800, 0, 0]
    np.testing.assert_allclose(np.array(found, float), wanted, rtol=1e-15)


def test_a_run_calls_only_what_every_browser_rounds_alike():
    exact = {"abs", "ceil", "floor", "max", "min", "round", "sqrt", "trunc", "LN2", "LN10"}
    for name in MODULES:
        code = re.sub(r"/\*[\s\S]*?\*/|//.*", "", (LIVE / f"{name}.js").read_text())
        assert set(re.findall(r"Math\.(\w+)", code)) - exact <= ({"log10"} if name == "diagnose" else set()), name


def test_the_generator_is_threefry():
    seeds, n = [(0, 0), (1, 2), (2**32 - 1, 12345)], 50
    code = """return data.seeds.map(([seed, stream]) => Array.from({ length: data.n }, (_, i) => {
      const words = Int32Array.of(i, 0); live.threefry(words, seed | 0, stream | 0);
      return [...new Uint32Array(words.buffer)]; }))"""
    found = run_in_node(code, seeds=seeds, n=n)
    counts = np.concatenate([np.arange(n), np.zeros(n)]).astype(np.uint32)
    for (seed, stream), words in zip(seeds, found, strict=True):
        wanted = np.asarray(threefry_2x32(np.array([seed, stream], np.uint32), counts))
        assert np.array_equal(np.array(words).T.ravel(), wanted)


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


def type_shallow(X, y, n_hidden, prior_sd):
    """A network of one hidden layer."""
    with pm.Model() as model:
        w1 = pm.Normal("w1", 0, prior_sd, shape=(X.shape[1], n_hidden))
        w2 = pm.Normal("w2", 0, prior_sd, shape=n_hidden)
        pm.Bernoulli("y", logit_p=(pt.tanh((X[:, :, None] * w1).sum(1)) * w2).sum(1), observed=y)
    return model


def list_densities():
    """Name to (function that types it in PyMC, its maker and options in JavaScript)."""
    rng = np.random.default_rng(3)
    group = np.array([0, 1, 2] * 10 + [0, 0, 1])
    points, labels = X[: len(group)], Y[: len(group)]
    flat = {"X": points.tolist(), "y": labels.tolist()}
    grouped = flat | {"group": group.tolist(), "nGroups": 3, "hidden": [3, 4]}
    order = rng.permutation(len(group))  # the page need not sort its points
    mixed = grouped | {name: [grouped[name][i] for i in order] for name in ("X", "y", "group")}
    with_one = np.column_stack([points, np.ones(len(points))])
    each = [points[group == g] for g in range(3)], [labels[group == g] for g in range(3)]
    one, tied = models.unpooled_bnn, partial(type_tied, points, labels, group, 3, (3, 4))
    learned = partial(models.hierarchical_bnn, *each, n_hidden=(3, 4), sd_scale=0.3)
    zeros = partial(one, points, 0 * labels, n_hidden=(3, 4), prior_sd=0.5)
    shallow = partial(type_shallow, points, labels, 5, np.float64(4))  # a float is one of 32 bits
    return {
        "one layer": (shallow, "makeFlat", flat | {"hidden": [5], "sd": 4}),
        "one layer with biases": (
            partial(type_shallow, with_one, labels, 4, 1),
            "makeFlat",
            flat | {"hidden": [4], "biases": True},
        ),
        "biases": (partial(one, with_one, labels, n_hidden=(5, 5)), "makeFlat", flat | {"biases": True}),
        "one class": (zeros, "makeFlat", flat | {"y": [0] * len(labels), "hidden": [3, 4], "sd": 0.5}),
        "learned": (learned, "makeHierarchical", mixed | {"sdScale": 0.3}),
        "none": (partial(tied, 0), "makeHierarchical", mixed | {"ties": "none"}),
        "tied by 0.7": (partial(tied, 0.7), "makeHierarchical", mixed | {"ties": 0.7}),
    }


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
    type_model, make, options = DENSITIES[name]
    with type_model() as model:
        point = model.initial_point()
        joint = model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode=RUN)
    size = sum(value.size for value in point.values())
    thetas = np.random.default_rng(1).normal(size=(50, size)) * np.repeat([0.3, 1, 3], [10, 30, 10])[:, None]
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
    found = run_in_node(EVALUATE, make="makeFlat", options={"X": [], "y": []}, thetas=thetas.tolist())
    for (logp, gradient), theta in zip(found, thetas, strict=True):
        assert logp == pytest.approx(stats.norm.logpdf(theta).sum(), rel=1e-12)
        assert gradient == pytest.approx(-theta)


def test_pooled_groups_are_one_network():
    thetas = np.random.default_rng(1).normal(size=(5, 22)).tolist()
    _, _, options = DENSITIES["learned"]
    one = {"X": options["X"], "y": options["y"], "hidden": options["hidden"]}
    wanted = run_in_node(EVALUATE, make="makeFlat", options=one, thetas=thetas)
    for ties in ("pooled", 1):
        asked = options | {"ties": ties}
        assert run_in_node(EVALUATE, make="makeHierarchical", options=asked, thetas=thetas) == wanted


def test_predictions_are_the_networks_own_and_the_log_likelihood_that_of_the_labels():
    rng = np.random.default_rng(2)
    _, make, options = DENSITIES["learned"]
    theta, groups = rng.normal(size=4 * (6 + 12 + 4) + 3), rng.integers(3, size=len(GRID))
    code = f"""{MAKE}
      const out = new Float64Array(data.groups.length), theta = Float64Array.from(data.theta);
      model.predict(theta, Float64Array.from(data.points.flat()), out, Int32Array.from(data.groups));
      return [out, model.describe(theta), model.logLikelihood(theta), model.names]"""
    asked = {"theta": theta.tolist(), "points": GRID.tolist(), "groups": groups.tolist()}
    found, described, loglik, names = run_in_node(code, make=make, options=options, **asked)
    weights, at = {}, 0
    for k, shape in enumerate([(2, 3), (3, 4), (4,)], 1):
        n = int(np.prod(shape))
        mu, sd, z = np.split(theta[at : at + 4 * n + 1], [n, n + 1])
        assert described[f"sd{k}"] == pytest.approx(np.exp(sd[0]))
        assert names[at + n] == f"log sd{k}"
        weights[f"w{k}"] = (mu.reshape(shape) + np.exp(sd) * z.reshape(3, *shape))[None, None]
        at += 4 * n + 1
    wanted = prediction.predict_groups(weights, GRID, activation="tanh")[0, 0]
    np.testing.assert_allclose(found, wanted[groups, np.arange(len(GRID))], rtol=1e-12)
    p = prediction.predict_groups(weights, np.array(options["X"]), activation="tanh")[0, 0][
        options["group"], np.arange(len(options["y"]))
    ]
    assert loglik == pytest.approx(np.log(np.where(options["y"], p, 1 - p)).sum())


# --- the sampler

GROUPS = data.rotated_moons(seed=1, n_groups=3, n_train=12)
FLAT = {"kind": "flat", "X": X.tolist(), "y": Y.tolist()}
HIERARCHICAL = {
    "kind": "hierarchical",
    "X": GROUPS.X_train.reshape(-1, 2).tolist(),
    "y": GROUPS.y_train.ravel().tolist(),
    "group": np.repeat(range(3), 12).tolist(),
    "nGroups": 3,
    "hidden": [3, 3],
}
RUNS = {
    "flat": (FLAT, {"tune": 400, "draws": 1000}),
    "hierarchical": (HIERARCHICAL, {"tune": 400, "draws": 500, "targetAccept": 0.9}),
}
MODEL = "const model = live.makeModel({ ...data.model, X: Float64Array.from(data.model.X.flat()) });"
# for each seed: (draw, point), probabilities on the grid, in a hierarchical model in the last group
SAMPLE = f"""{MODEL}
  const points = Float64Array.from(data.points.flat()), groups = new Int32Array(data.points.length).fill(2);
  return data.seeds.map((seed) => {{
    const chain = live.makeChain({{ model, seed, chain: 0, ...data.settings }}), kept = [];
    while (!chain.done) {{
      const {{ theta, tuning }} = chain.step(), p = new Float64Array(groups.length);
      model.predict(theta, points, p, groups);
      if (!tuning) kept.push(p);
    }}
    return kept;
  }})"""
TOY = """
  const sds = data.sds, size = sds.length;  // independent normals
  const toy = { size, start(random, theta) { for (let i = 0; i < size; i++) theta[i] = sds[i] * random.normal(); },
    logDensity(theta, gradient) {
      let logp = 0;
      for (let i = 0; i < size; i++) {
        logp -= 0.5 * (theta[i] / sds[i]) ** 2;
        gradient[i] = -theta[i] / sds[i] ** 2;
      }
      return logp;
    } };"""


def draw_reference(model, name):
    """nutpie's probabilities (chain, draw, point) of the run of this name."""
    settings = {"draws": 3000, "tune": 600, "target_accept": 0.9, "seed": 1}
    posterior = sampling.sample_nuts(sampling.compile_nuts(fuse(model)), **settings)["posterior"]
    if name == "flat":
        posterior = {key: posterior[key].values[:, :, None] for key in ("w1", "w2", "w3")}
    return prediction.predict_groups(posterior, GRID, activation="tanh")[:, :, -1]


def summarise(draws):
    """Means and sds (2, point) of (chain, draw, point), and their Monte Carlo errors."""
    columns = np.moveaxis(draws, 2, 0)
    errors = [[array_stats.mcse(c, method=kind) for c in columns] for kind in ("mean", "sd")]
    return np.stack([draws.mean((0, 1)), draws.std((0, 1), ddof=1)]), np.array(errors)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_draws_are_nutpies(name):
    """Ten seeds, means and sds of 100 probabilities, in units of their Monte Carlo errors.

    The sum over seeds has a z-score at each point, of which an honest sampler has one above 4.5 in 1,500 tests such as
    this one (200 times 7e-6, at most). Single seeds' scores have a spread of 1: of 2,000 that are correlated, like some
    60 that are not, so that the spread lies between 0.7 and 1.35 but for one test in 1,000.
    """
    model, settings = RUNS[name]
    grouped = partial(models.hierarchical_bnn, GROUPS.X_train, GROUPS.y_train, n_hidden=(3, 3))
    typed = models.unpooled_bnn(X, Y, n_hidden=(5, 5)) if name == "flat" else grouped()
    wanted, error = summarise(draw_reference(typed, name))
    drawn = run_in_node(SAMPLE, model=model, settings=settings, points=GRID.tolist(), seeds=list(range(1, 11)))
    found, errors = (np.array(part) for part in zip(*[summarise(np.array([run])) for run in drawn], strict=True))
    total = (found - wanted).sum(0) / np.sqrt((errors**2).sum(0) + (len(drawn) * error) ** 2)
    assert np.abs(total).max() < 4.5
    each = (found - wanted) / np.sqrt(errors**2 + error**2)
    assert 0.7 < np.sqrt((each**2).mean()) < 1.35


SAMPLE_TOY = f"""{TOY}
  return data.seeds.map((seed) => {{
    const chain = live.makeChain({{ model: toy, seed, chain: 0, ...data.settings }}), kept = [];
    while (!chain.done) {{
      const {{ theta, tuning, depth, energy, divergent, acceptance }} = chain.step();
      if (!tuning) kept.push([...theta, depth, energy, divergent, acceptance]);
    }}
    return kept;
  }})"""


def sample_toy(sds, n_seeds, **settings):
    """Draws in units of their sds (number, chain, draw), and their depths, energies, divergences and acceptances."""
    drawn = run_in_node(SAMPLE_TOY, sds=sds, seeds=list(range(n_seeds)), settings=settings)
    drawn = np.moveaxis(np.array(drawn, float), 2, 0)
    return drawn[:-4] / np.reshape(sds, (-1, 1, 1)), *drawn[-4:]


def test_moments_of_normals_of_unlike_scales_are_right_and_the_mass_matrix_learns_the_scales():
    draws, depths, energy, divergent, _ = sample_toy([0.01, 0.3, 1, 10, 100], 8, tune=1000, draws=4000)
    for power, moment in ((1, 0), (2, 1), (4, 3)):
        z = [(x.mean() - moment) / array_stats.mcse(x, method="mean") for x in draws**power]
        assert np.abs(z).max() < 4, f"moment {power}"
    assert 1.5 < depths.mean() < 2.6  # trajectories are long enough, and end in time
    assert abs(energy.mean() - len(draws)) < 4 * array_stats.mcse(energy, method="mean")  # 1/2 a place and a momentum
    assert not divergent.any()


@pytest.mark.parametrize(("size", "target"), [(5, 0.95), (1, 0.99)])
def test_with_short_steps_normals_are_right_and_acceptance_is_what_was_asked(size, target):
    """Short steps make deep trees, whose pieces turn by themselves; in one dimension that matters most."""
    draws, *_, acceptance = sample_toy([1] * size, 4, tune=500, draws=2000, targetAccept=target)
    z = [((x**2).mean() - 1) / array_stats.mcse(x**2, method="mean") for x in draws]
    assert np.abs(z).max() < 4
    assert acceptance.mean() == pytest.approx(target, abs=0.01)


def test_a_trajectory_that_does_not_turn_ends_at_the_greatest_depth_and_a_cliff_is_a_divergence():
    code = """
      const model = { size: 1, start(random, theta) { theta[0] = 0.1; }, logDensity: data.cliff
        ? (theta, gradient) => { gradient[0] = 0; return Math.abs(theta[0]) > 0.5 ? -1e6 : 0; }
        : (theta, gradient) => { gradient[0] = 0; return 0; } };
      const chain = live.makeChain({ model, seed: 1, chain: 0, tune: 0, draws: 20, maxDepth: 5 });
      return Array.from({ length: 20 }, () => { const { depth, divergent, theta } = chain.step();
        return [depth, divergent, theta[0]]; })"""
    assert all(depth == 5 and not divergent for depth, divergent, _ in run_in_node(code, cliff=False))
    assert all(divergent and abs(theta) <= 0.5 for _, divergent, theta in run_in_node(code, cliff=True))


def test_a_seed_gives_the_same_draws_and_another_seed_or_chain_others():
    code = f"""{MODEL}
      const draw = (seed, number) => {{
        const chain = live.makeChain({{ model, seed, chain: number, tune: 20, draws: 20 }}), kept = [];
        while (!chain.done) kept.push(chain.step().theta.slice());
        return kept; }};
      return [draw(1, 0), draw(1, 0), draw(2, 0), draw(1, 1)]"""
    first, again, *others = np.array(run_in_node(code, model=FLAT))
    assert np.array_equal(first, again)
    assert not np.intersect1d(first, others).size


# --- diagnostics


def list_arrays():
    """Name to (chain, draw): all that a run may end in."""
    rng = np.random.default_rng(4)
    return {
        "independent": rng.normal(size=(4, 1000)),
        "trend": rng.normal(size=(2, 100)) + np.linspace(0, 9, 100),
        "walk": np.cumsum(rng.normal(size=(4, 500)), axis=1),
        "unlike spreads": rng.normal(size=(4, 300)) * np.array([1, 1, 1, 3])[:, None],
        "alternating": 0.1 * rng.normal(size=(4, 101)) + (-1.0) ** np.arange(101),
        "ties": rng.integers(3, size=(3, 77)).astype(float),
        "constant": np.full((4, 50), 0.5),
        "constant chains": np.repeat([[0.0], [1.0]], 20, axis=1),
        "heavy tails": rng.standard_cauchy(size=(4, 400)),
        "one chain": rng.normal(size=(1, 100)),
        "not a number": np.where(np.arange(100) == 7, np.nan, rng.normal(size=(2, 100))),
        **{f"{n} draws": rng.normal(size=(4, n)) for n in (3, 4, 5, 6, 7, 8, 9)},
    }


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_diagnostics_are_arvizs():
    arrays = list_arrays()
    code = """return Object.fromEntries(Object.entries(data).map(([name, chains]) => {
      const draws = chains.map((chain) => Float64Array.from(chain, (x) => x ?? NaN));
      return [name, [live.rhat(draws), live.essBulk(draws), live.essSpread(draws), live.essTail(draws),
        live.mcse(draws)]]; }))"""
    found = run_in_node(code, **{name: np.where(np.isnan(x), None, x).tolist() for name, x in arrays.items()})
    for name, draws in arrays.items():
        wanted = [
            array_stats.rhat(draws, method="rank") if len(draws) > 1 else np.nan,
            array_stats.ess(draws, method="bulk"),
            array_stats.ess(draws, method="folded"),
            array_stats.ess(draws, method="tail", prob=(0.05, 0.95)),
            array_stats.mcse(draws, method="mean"),
        ]
        np.testing.assert_allclose(np.array(found[name], float), np.array(wanted, float), rtol=1e-6, err_msg=name)


RUNS_JUDGED = {  # what is wrong with a run, and the reasons that its verdict gives
    "nothing": [],
    "two chains elsewhere": ["ess", "essTail"],
    "a narrow chain": ["essSpread"],
    "two divergences": [],
    "many divergences": ["divergences"],
    "divergences that pull": ["divergences"],
    "all diverged": ["divergences"],
    "energy": ["bfmi"],
    "constant": ["constant"],
    "one chain": ["chains"],
}


def make_run(name):
    """Quantities, divergent draws and energies, as some run leaves them."""
    rng = np.random.default_rng(5)
    (p, loglik), sure = rng.normal(size=(2, 4, 600)), np.ones((4, 600))
    divergent, energy = np.zeros((4, 600), bool), rng.normal(size=(4, 600))
    if name == "two chains elsewhere":
        p[:2] += 3
    elif name == "a narrow chain":
        p[0] *= 0.5
    elif name == "energy":
        energy[2] = np.cumsum(energy[2])
    elif name == "divergences that pull":
        divergent[1, 5], p[1, 5] = True, 1e4
    elif "diverge" in name:
        few = {"two divergences": np.s_[0, :2], "many divergences": np.s_[:, ::100], "all diverged": np.s_[:]}
        divergent[few[name]] = True
    quantities = {"sure": sure} if name == "constant" else {"p": p, "log likelihood": loglik, "sure": sure}
    if name == "one chain":
        quantities, divergent, energy = {"p": p[:1]}, divergent[:1], energy[:1]
    return quantities, divergent, energy


def to_snake(name):
    """A name of Python's: "essTail" is "ess_tail"."""
    return re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_the_verdict_is_the_books():
    code = """const arrays = (chains) => chains.map((chain) => Float64Array.from(chain));
      return data.runs.map(({ quantities, divergent, energy }) => live.verdict({ divergent, energy: arrays(energy),
        quantities: Object.fromEntries(Object.entries(quantities).map(([k, v]) => [k, arrays(v)])) }))"""
    runs, dims = [make_run(name) for name in RUNS_JUDGED], ("chain", "draw")
    given = [
        {"quantities": {key: value.tolist() for key, value in q.items()}, "divergent": d.tolist(), "energy": e.tolist()}
        for q, d, e in runs
    ]
    for (name, reasons), found, (quantities, divergent, energy) in zip(
        RUNS_JUDGED.items(), run_in_node(code, runs=given), runs, strict=True
    ):
        told = {"diverging": (dims, divergent), "energy": (dims, energy), "depth": (dims, np.zeros(energy.shape, int))}
        wanted = diagnostics.verdict(quantities, xr.DataTree.from_dict({"sample_stats": xr.Dataset(told)}))
        assert (found["converged"], found["reasons"]) == (wanted.converged, reasons), name
        for key in ("rhat", "ess", "essSpread", "essTail", "move", "bfmi", "divergences"):
            value = getattr(wanted, to_snake(key))
            assert float(found[key]) == pytest.approx(value, rel=1e-6, nan_ok=True), (name, key)
        for key in ("rhatAt", "essAt", "essSpreadAt", "essTailAt", "explained"):
            assert found[key] == getattr(wanted, to_snake(key)), (name, key)
        assert tuple(found["constant"]) == wanted.constant, name


# --- ADVI


def compute_loss(joint, mean, rho, z):
    """The negative ELBO at one draw and its slopes, by PyMC's density."""
    sd = np.log1p(np.exp(rho))
    logp, slope = joint(mean + sd * z)
    loss = stats.norm.logpdf(z).sum() - np.log(sd).sum() - logp
    return loss, np.concatenate([-slope, (-slope * z - 1 / sd) / (1 + np.exp(-rho))])


def test_steps_of_advi_are_those_of_adam_on_pymcs_density():
    typed = models.unpooled_bnn(X, Y, n_hidden=(5, 5))
    compiled = typed.compile_fn([typed.logp(), typed.dlogp()], inputs=typed.value_vars, mode=RUN)
    joint = lambda w: compiled({"w1": w[:10].reshape(2, 5), "w2": w[10:35].reshape(5, 5), "w3": w[35:]})  # noqa: E731
    n_steps, each = 6, 16
    code = f"""{MODEL}
      const fit = live.makeFit({{ model, seed: 3, steps: 10 }});
      const losses = Array.from({{ length: {n_steps} }}, fit.step), random = live.makeRandom(3, 1000);
      return [losses, [...fit.mean, ...fit.rho], Array.from({{ length: data.n }}, random.normal)]"""
    losses, found, z = run_in_node(code, model=FLAT, n=(n_steps * each + 1) * 40)
    z = np.array(z).reshape(-1, 40)
    theta = np.concatenate([z[0], np.full(40, np.log(np.expm1(0.1)))])  # the start: random means, sds of 0.1
    first, second = np.zeros((2, 80))
    for step, draws in enumerate(z[1:].reshape(n_steps, each, 40)):
        told = [compute_loss(joint, theta[:40], theta[40:], one) for one in draws]
        assert losses[step] == pytest.approx(np.mean([loss for loss, _ in told]), rel=1e-8)
        slope = np.mean([slope for _, slope in told], axis=0)
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = 0.1 * (1 - step / 10) ** 2 * (1 + 2 * step / 10)  # it falls to zero
        move = first / (1 - 0.9 ** (step + 1)) / (np.sqrt(second / (1 - 0.999 ** (step + 1))) + 1e-8)
        theta = theta - rate * move
    np.testing.assert_allclose(found, theta, rtol=1e-8)


def test_advi_finds_a_normal_and_says_that_it_has_arrived():
    code = f"""{TOY}
      const fit = live.fitAdvi({{ model: toy, seed: 1, steps: 1000, starts: 3 }});
      const random = live.makeRandom(1, 1), theta = new Float64Array(size);
      const draws = Array.from({{ length: 2000 }}, () => (fit.draw(random, theta), theta.slice()));
      return {{ ...fit, draws }}"""
    sds = np.array([0.3, 1, 2])
    fit = run_in_node(code, sds=sds.tolist())
    np.testing.assert_allclose(fit["sd"], sds, rtol=0.05)
    assert (np.abs(fit["mean"]) < 0.1 * sds).all()
    assert fit["best"] == np.argmax(fit["starts"])
    assert len(set(fit["starts"])) == 3  # from three places: were they one, the best of three would be worth no more
    evidence = np.log(sds * np.sqrt(2 * np.pi)).sum()  # which the ELBO reaches, as q can be the posterior
    assert fit["elbo"] == pytest.approx(evidence, abs=0.02)
    assert (fit["stopped"], fit["alike"]) == (True, True)
    np.testing.assert_allclose(np.std(fit["draws"], axis=0), fit["sd"], rtol=0.1)


def test_advi_that_is_cut_short_says_that_it_still_climbs():
    fit = run_in_node(f"{TOY} return live.fitAdvi({{ model: toy, seed: 1, steps: 20 }})", sds=[3.0] * 3)
    assert fit["gain"] > 10 * fit["gainError"]
    assert not fit["stopped"]


# --- what the page sees


def test_a_picture_is_the_mean_over_draws_of_all_chains_once_one_has_done_with_tuning():
    code = f"""{MODEL}
      const job = {{ points: Float64Array.from(data.points), settings: {{ draws: 30 }} }}, kept = [];
      const reports = [0, 1, 2].map((number) => {{
        const tally = live.makeTally(job, model, number);
        const chain = live.makeChain({{ model, seed: 1, chain: number, tune: 30, draws: 30 }});
        for (let i = 0; i < (number === 2 ? 30 : 50); i++) {{
          const draw = chain.step(), p = new Float64Array(100);
          model.predict(draw.theta, job.points, p);
          tally.add(draw);
          if (!draw.tuning) kept.push(p);
        }}
        return tally.report(chain);
      }});
      return [live.combine(reports), live.combine(reports.toReversed()), live.combine([reports[2]]), kept]"""
    picture, other_order, early, draws = run_in_node(code, model=FLAT, points=GRID.ravel().tolist())
    p = np.array(draws)
    entropy = lambda p: -(p * np.log2(p) + (1 - p) * np.log2(1 - p))  # noqa: E731
    assert picture["count"] == len(p) == 40
    np.testing.assert_allclose(picture["mean"], p.mean(0), rtol=1e-6)
    np.testing.assert_allclose(picture["noise"], entropy(p).mean(0), rtol=1e-5)
    np.testing.assert_allclose(picture["ignorance"], entropy(p.mean(0)) - entropy(p).mean(0), atol=1e-6)
    assert picture == other_order
    assert 10 < early["count"] < 20  # while it tunes, about the last twenty draws
    chosen = np.array(run_in_node("return live.chooseJudged(1600)"))  # what is judged, of a grid of 40 columns
    assert len(chosen) == len(set(chosen)) == 100
    for counts in (np.bincount(chosen % 40, minlength=40), np.bincount(chosen // 40, minlength=40)):
        assert 1 <= counts.min() <= counts.max() <= 5


JOB = """const model = { ...data.model, X: Float64Array.from(data.model.X.flat()) };
  const job = { model, points: Float64Array.from(data.points.flat()), settings: data.settings };"""
SAMPLE_IN_WORKERS = f"""{JOB}
  Object.defineProperty(navigator, "hardwareConcurrency", {{ value: data.workers, configurable: true }});
  let updates = 0, paused = false, whilePaused = 0, isDone = false;
  const done = await new Promise((resolve, onError) => {{
    const onDone = (done) => {{ isDone = true; resolve(done); }};
    const run = live.sample(job, {{ onDone, onError, onProgress() {{
      updates += 1;
      if (paused) whilePaused += 1;
      if (!data.pause || updates > 1) return;
      run.pause();
      setTimeout(() => {{ paused = true; }}, 1000);  // what was on its way has come
      setTimeout(() => {{ whilePaused += isDone; paused = false; run.resume(); }}, 1500);
    }} }});
  }});
  return {{ ...done, updates, whilePaused }}"""


def test_neither_workers_nor_pauses_change_a_run(tab):
    page, base = tab
    asked = {"model": FLAT, "points": GRID.tolist(), "settings": {"seed": 7, "chains": 3, "tune": 150, "draws": 150}}
    one = run_in_page(page, SAMPLE_IN_WORKERS, base, workers=1, pause=False, **asked)
    three = run_in_page(page, SAMPLE_IN_WORKERS, base, workers=3, pause=True, **asked)
    assert one["updates"] > 1
    assert three["whilePaused"] == 0
    for key in ("mean", "noise", "ignorance", "count", "gradients", "chains"):
        assert one[key] == three[key], key
    differ = {key for key in one["verdict"] if one["verdict"][key] != three["verdict"][key]}
    assert differ <= {"seconds"}
    assert one["count"] == 450
    assert "ess" in one["verdict"]["reasons"]  # of 450 draws there are too few effective ones, and it says so


def test_a_run_that_was_stopped_says_nothing_more_and_is_not_taken_for_the_next_one(tab):
    page, base = tab
    code = f"""{JOB}
      const heard = [], sizes = [], other = {{ ...job, points: job.points.slice(0, 14) }};
      const hear = (i) => ({{ onProgress: () => heard.push(i), onDone: () => heard.push(i) }});
      for (let i = 0; i < 3; i++) live.sample(other, hear(i)).stop();
      const onProgress = ({{ latest }}) => sizes.push(...latest.map((p) => p.length));
      const done = await new Promise((onDone, onError) => live.sample(job, {{ onProgress, onDone, onError }}));
      return [heard, sizes, done.count]"""
    asked = {"model": FLAT, "points": GRID.tolist(), "settings": {"seed": 7, "chains": 2, "tune": 50, "draws": 50}}
    heard, sizes, count = run_in_page(page, code, base, **asked)
    assert (heard, set(sizes), count) == ([], {100}, 100)


def test_advi_in_a_worker_is_the_fit_itself(tab):
    page, base = tab
    code = f"{JOB} return await new Promise((onDone, onError) => live.advise(job, {{ onDone, onError }}))"
    settings = {"seed": 2, "steps": 60, "starts": 2, "draws": 200}
    advice = run_in_page(page, code, base, model=FLAT, points=GRID.tolist(), settings=settings)
    fit = run_in_node(f"{MODEL} return live.fitAdvi({{ model, ...data.settings }})", model=FLAT, settings=settings)
    assert advice["fit"] == fit
    assert advice["count"] == 200


def test_a_mistake_is_told(tab):
    page, base = tab
    code = """return await new Promise((onError) => live.sample({ model: { kind: "deep" }, settings: { seed: 1 },
      points: new Float64Array(2) }, { onError }))"""
    assert 'wanted: "flat" or "hierarchical"' in run_in_page(page, code, base)
