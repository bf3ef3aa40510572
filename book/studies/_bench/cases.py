"""What `make bench` measures, one function a case. Each case runs in a process of its own, on one core."""

import math
import time
from functools import lru_cache, partial
from itertools import pairwise

import numba
import numpy as np
import pymc as pm
import pytensor
import xarray as xr
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling
from hbnn.fusion import _layers, _loglik, _simd
from threadpoolctl import threadpool_info

from studies._bench import advi, bound, flat, gradients, peers
from studies._bench.peers import time_cpu

GRID = data.grid(10)
N_HIDDEN, TARGET, DRAWS, TUNE = 12, 0.9, 700, 600  # the book's; chosen on rotated_moons(seed=101), 102 and 103


def load_moons(name):
    """The articles' 18 rotated moons, or ours by their seed."""
    return data.legacy_rotated_moons() if name == "legacy" else data.rotated_moons(seed=int(name))


# --- one gradient


def find_least(call, n_calls=500, repetitions=9):
    """CPU microseconds a call, the least of several repetitions."""
    best = np.inf
    for _ in range(repetitions):
        start = time.process_time()
        for _ in range(n_calls):
            call()
        best = min(best, (time.process_time() - start) / n_calls)
    return 1e6 * best


def make_gradient(likelihood, X, y, n_hidden, dtype="float64", mode="NUMBA"):
    """The whole log posterior and its gradient as one call, and the CPU seconds to compile it (cache as it is)."""
    if likelihood == "by hand":
        model = write_by_hand(X, y, n_hidden)
    else:
        model = models.hierarchical_bnn(X, y, n_hidden=n_hidden)
        model = fuse(model, dtype=dtype) if likelihood == "fused" else model
    return compile_gradient(model, mode)


def compile_gradient(model, mode="NUMBA"):
    """The log posterior of a model and its gradient as one call, and the CPU seconds to compile it."""

    def compile_model():
        gradient = model.logp_dlogp_function(ravel_inputs=True, mode=mode)
        gradient._pytensor_function.trust_input = True
        gradient(position)
        return gradient

    rng = np.random.default_rng(0)
    position = gradients.SPREAD * rng.normal(size=sum(v.size for v in model.initial_point().values()))
    gradient, seconds = time_cpu(compile_model)
    return partial(gradient, position), seconds


def write_by_hand(X, y, n_hidden):
    """The hierarchical model with the fused likelihood as a potential: what `fuse` is to be as fast as."""
    weights = []
    with pm.Model() as model:
        for k, shape in enumerate([*pairwise((X.shape[2], *n_hidden)), n_hidden[-1:]], 1):
            mu, sd = pm.Normal(f"mu{k}", 0, 1, shape=shape), pm.HalfNormal(f"sd{k}", 1.0)
            weights.append(mu + sd * pm.Normal(f"z{k}", 0, 1, shape=(len(X), *shape)))
        pm.Potential("loglik", _loglik.network_loglik(pm.Data("X", X), pm.Data("labels", y), weights))
    return model


def make_kernel_call(X, y, n_hidden, dtype="float64"):
    """The fused likelihood alone, without prior and PyTensor."""
    rng = np.random.default_rng(0)
    sizes = (X.shape[2], *n_hidden, 1)
    n_weights = sum(a * b for a, b in pairwise(sizes))
    theta = rng.normal(size=(len(X), n_weights)).astype(dtype)
    points, order, first = _layers.list_rows(X.astype(dtype))
    labels, plan = y.astype("int32").ravel(), np.zeros(len(sizes) - 1, int)
    arguments = (points, labels, order, first, order, theta, np.array(sizes), plan, np.empty_like(theta))
    call = partial(_loglik.make_kernel(("tanh",), dtype, False), *arguments)
    call()
    return call


ENGINES_OF_GRADIENTS = {
    "stock PyMC, C": partial(gradients.time_gradient_pymc, backend="c"),
    "stock PyMC, Numba": partial(gradients.time_gradient_pymc, backend="numba"),
    "stock PyMC, JAX": gradients.time_gradient_jaxified,
    "JAX, the article's layout": gradients.time_gradient_jax,
    "JAX, points last": partial(gradients.time_gradient_jax, layout="points_last"),
    "JAX, points last, float32": partial(gradients.time_gradient_jax, layout="points_last", dtype="float32"),
}


def time_gradients(n_hidden, n_calls):
    """Microseconds of one gradient by every way, on the articles' data, and the bound."""
    moons = load_moons("legacy")
    X, y, widths = moons.X_train, moons.y_train, (n_hidden, n_hidden)
    rows = []
    for name, measure in ENGINES_OF_GRADIENTS.items():
        found = measure(X, y, n_hidden=widths, seed=0, n_calls=n_calls)
        rows.append({"form": name, "us": found["microseconds"], "compile": found["compile_seconds"]})
    for dtype in ("float64", "float32"):
        call, seconds = make_gradient("fused", X, y, widths, dtype)
        rows.append({"form": f"ours, {dtype}", "us": find_least(call, n_calls), "compile": seconds})
        alone = find_least(make_kernel_call(X, y, widths, dtype), n_calls)
        rows.append({"form": f"our likelihood alone, {dtype}", "us": alone, "compile": None})
        operations = bound.count_operations(len(X), X.shape[1], (X.shape[2], *widths, 1), dtype)
        rows.append({"form": f"arithmetic bound, {dtype}", "us": 1e6 * operations / bound.measure_rate(dtype),
                     "compile": None})  # fmt: skip
    return {"rows": rows}


FORMS = {
    "typed in PyMC, C": ("graph", "CVM"),
    "typed in PyMC, Numba": ("graph", "NUMBA"),
    "typed, then fused": ("fused", "NUMBA"),
    "fused likelihood by hand": ("by hand", "NUMBA"),
}


def time_forms(n_hidden, n_calls, repetitions=9):
    """Microseconds of one gradient of one model in four forms, on the articles' data, taking turns in one process.

    And the settings in force, as the libraries say them.
    """
    moons, widths = load_moons("legacy"), (n_hidden, n_hidden)
    calls = {form: make_gradient(name, moons.X_train, moons.y_train, widths, mode=mode)
             for form, (name, mode) in FORMS.items()}  # fmt: skip
    turns = [{form: find_least(call, n_calls, 1) for form, (call, _) in calls.items()} for _ in range(repetitions)]
    blas = {info["architecture"] for info in threadpool_info() if info["internal_api"] == "openblas"}
    return {
        "rows": [{"form": form, "us": min(turn[form] for turn in turns), "compile": calls[form][1]} for form in FORMS],
        "fastmath": bool(pytensor.config.numba__fastmath),
        "blas": sorted(blas),
    }


OUTCOMES = ("Bernoulli", "Normal, noise learned", "Normal, noise an output", "Categorical, three classes")


def type_outcome(outcome, X, n_hidden):
    """The hierarchical model in plain PyMC, with an outcome of another kind and random data."""
    rng, n_out = np.random.default_rng(0), {OUTCOMES[2]: 2, OUTCOMES[3]: 3}.get(outcome, 1)
    weights, shape = [], X.shape[:2]
    with pm.Model() as model:
        for k, size in enumerate(pairwise((X.shape[2], *n_hidden, n_out)), 1):
            mu, sd = pm.Normal(f"mu{k}", 0, 1, shape=size), pm.HalfNormal(f"sd{k}", 1.0)
            weights.append(mu + sd * pm.Normal(f"z{k}", 0, 1, shape=(len(X), *size)))
        h = pm.math.tanh(pm.math.tanh(pm.Data("X", X) @ weights[0]) @ weights[1])
        out = h @ weights[2]
        if outcome == "Bernoulli":
            pm.Bernoulli("y", logit_p=out[..., 0], observed=rng.integers(0, 2, shape))
        elif n_out == 3:
            pm.Categorical("y", logit_p=out, observed=rng.integers(0, 3, shape))
        else:
            sigma = pm.math.exp(out[..., 1]) if n_out == 2 else pm.HalfNormal("sigma", 1.0)
            pm.Normal("y", out[..., 0], sigma, observed=rng.normal(size=shape))
    return model


def time_outcomes(n_hidden, n_calls, repetitions=9):
    """Microseconds of one gradient under each kind of outcome, typed and fused, taking turns in one process."""
    X, calls = load_moons("legacy").X_train, {}
    for outcome in OUTCOMES:
        typed = type_outcome(outcome, X, (n_hidden, n_hidden))
        for form, model in (("typed", typed), ("fused", fuse(typed))):
            calls[outcome, form] = compile_gradient(model)[0]
    turns = [{key: find_least(call, n_calls, 1) for key, call in calls.items()} for _ in range(repetitions)]
    return {"rows": [
        {"outcome": outcome, **{form: min(turn[outcome, form] for turn in turns) for form in ("typed", "fused")}}
        for outcome in OUTCOMES
    ]}  # fmt: skip


def time_size(n_groups, n_obs, n_hidden, with_peers):
    """How one gradient's cost grows: ours, the stock graph, JAX, and the bound."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n_groups, n_obs, 2)), rng.integers(0, 2, (n_groups, n_obs)).astype("int32")
    widths, n_calls = (n_hidden, n_hidden), max(5, 200_000 // (n_groups * n_obs))
    found = {"ours": find_least(make_gradient("fused", X, y, widths)[0], n_calls, 5)}
    operations = bound.count_operations(n_groups, n_obs, (2, *widths, 1))
    found["bound"] = 1e6 * operations / bound.measure_rate()
    if with_peers:
        found["stock"] = find_least(make_gradient("graph", X, y, widths)[0], n_calls, 5)
        timed = gradients.time_gradient_jax(
            X, y, n_hidden=widths, seed=0, layout="points_last", n_calls=n_calls, repetitions=5
        )
        found["jax"] = timed["microseconds"]
    return found


def time_parts(n_hidden):
    """Where the time of one gradient goes, stock and ours: microseconds of each part, in compiled loops."""
    moons = load_moons("legacy")
    X, y, widths = moons.X_train, moons.y_train, (n_hidden, n_hidden)
    shape = (X.shape[0], n_hidden, X.shape[1])
    stock, ours = (find_least(make_gradient(kind, X, y, widths)[0]) for kind in ("graph", "fused"))
    alone = find_least(make_kernel_call(X, y, widths))
    tanh, product = 2 * find_least(partial(scalar_tanh, *make_pair(shape))), find_least(make_products(X, n_hidden))
    rows = [
        {"form": "stock", "part": "tanh, one number at a time", "us": tanh},
        {"form": "stock", "part": "products of small matrices", "us": product},
        {"form": "stock", "part": "all the rest", "us": stock - tanh - product},
    ]
    rows += [{"form": "ours", "part": part, "us": us} for part, us in time_kernel_parts(X, n_hidden).items()]
    known = sum(row["us"] for row in rows if row["form"] == "ours")
    rows.append({"form": "ours", "part": "copies and loops", "us": max(alone - known, 0.0)})
    rows.append({"form": "ours", "part": "priors and PyTensor's calls", "us": ours - max(alone, known)})
    return {"rows": rows}


@numba.njit
def scalar_tanh(values, out):
    """tanh as the stock graph has it."""
    for i in range(values.size):
        out[i] = math.tanh(values[i])


def make_pair(shape):
    """Random numbers as many as there are hidden values in a layer, and room for their tanh."""
    values = np.random.default_rng(0).normal(size=int(np.prod(shape)))
    return values, np.empty_like(values)


def make_products(X, n_hidden):
    """The matrix products of forward and backward pass as one compiled call, through BLAS as in the stock graph."""
    rng = np.random.default_rng(0)
    n_groups, n_obs, n_feature = X.shape
    h, d = (np.tanh(rng.normal(size=(n_groups, n_obs, n_hidden))) for _ in range(2))
    w1, w2 = rng.normal(size=(n_groups, n_feature, n_hidden)), rng.normal(size=(n_groups, n_hidden, n_hidden))
    w3 = rng.normal(size=(n_groups, n_hidden, 1))

    @numba.njit
    def run(X, h, d, w1, w2, w3):
        total = 0.0
        for g in range(len(X)):
            out = h[g] @ w3[g]
            total += (X[g] @ w1[g])[0, 0] + (h[g] @ w2[g])[0, 0] + out[0, 0]
            total += (h[g].T @ out)[0, 0] + (out @ w3[g].T)[0, 0] + (h[g].T @ d[g])[0, 0]
            total += (d[g] @ w2[g].T)[0, 0] + (X[g].T @ d[g])[0, 0]
        return total

    run(X, h, d, w1, w2, w3)
    return partial(run, np.ascontiguousarray(X), h, d, w1, w2, w3)


def time_kernel_parts(X, n_hidden):
    """Microseconds of each part of the fused likelihood, for all groups; a compiled loop for each."""
    n_groups, n_obs, n_feature = X.shape
    h, rng, lanes = n_hidden, np.random.default_rng(0), _simd.LANES["float64"]
    m = -(-n_obs // lanes) * lanes
    (move_up, move_back), (move_out, _) = (_layers.make_layer(f, "float64", False) for f in ("tanh", "linear"))
    add_gradient = _layers.make_gradient("float64", False)
    second, third = n_feature * h, n_feature * h + h * h
    theta = rng.normal(size=(1, third + h))
    units, delta = (rng.normal(size=(4 * h, _layers.CHUNK)) for _ in range(2))
    gradient, points = np.zeros_like(theta), np.ones((3, _layers.CHUNK))
    parts = {
        "layers forward, tanh": [
            (move_up, (theta, 0, 0, n_feature, h, units, 0, h, h, m)),
            (move_up, (theta, 0, second, h, h, units, h, 2 * h, 2 * h, m)),
            (move_out, (theta, 0, third, h, 1, units, 2 * h, 3 * h, 0, m)),
        ],
        "likelihood and residuals": [(_loglik.make_output("float64"), (points, units, delta, 3 * h, m))],
        "layers back": [
            (move_back, (theta, 0, third, h, 1, units, delta, 2 * h, 3 * h, 2 * h, m)),
            (move_back, (theta, 0, second, h, h, units, delta, h, 2 * h, h, m)),
        ],
        "gradients of the weights": [
            (add_gradient, (gradient, 0, third, h, 1, units, delta, 2 * h, 3 * h, m)),
            (add_gradient, (gradient, 0, second, h, h, units, delta, h, 2 * h, m)),
            (add_gradient, (gradient, 0, 0, n_feature, h, units, delta, 0, h, m)),
        ],
    }
    return {name: n_groups * sum(time_loop(*call) for call in calls) for name, calls in parts.items()}


def time_loop(function, arguments, n=20_000):
    """Microseconds of one call among many in a compiled loop, the least of nine."""
    names = ", ".join(f"a{k}" for k in range(len(arguments)))
    space = {"function": function}
    exec(f"def run(n, {names}):\n    for _ in range(n):\n        function({names})", space)
    run = numba.njit(space["run"])
    run(1, *arguments)
    return find_least(partial(run, n, *arguments), 1) / n


# --- the hierarchical posterior


def sample_ours(X, y, *, seed, chains, draws, tune, n_hidden, target_accept=TARGET, dtype="float64"):
    """nutpie on the model with the fused likelihood; returns what the peers return."""
    model = fuse(models.hierarchical_bnn(X, y, n_hidden=n_hidden), dtype=dtype)
    compiled, compile_seconds = time_cpu(lambda: sampling.compile_nuts(model))
    run = partial(sampling.sample_nuts, compiled, seed=seed, target_accept=target_accept)
    tree, cpu_seconds = time_cpu(lambda: run(chains=chains, draws=draws, tune=tune))
    return {
        "posterior": {name: tree["posterior"][name].values for name in peers.NAMES},
        "diverging": tree["sample_stats"]["diverging"].values,
        "n_steps": tree["sample_stats"]["n_steps"].values,
        "n_gradients": None,
        "compile_seconds": compile_seconds,
        "cpu_seconds": cpu_seconds,
    }


SAMPLERS = {
    "ours": sample_ours,
    "stock PyMC, its default (nutpie, Numba)": partial(peers.sample_nutpie, backend="numba"),
    "stock PyMC, nutpie, JAX": partial(peers.sample_nutpie, backend="jax"),
    "stock PyMC, its own NUTS, C": partial(peers.sample_pymc, backend="c"),
    "NumPyro": peers.sample_numpyro,
    "BlackJAX, as in the article": peers.sample_blackjax,
}


def judge_run(found, moons):
    """R-hat and ESS of everything that is identified, and what they cost."""
    posterior = xr.Dataset({
        name: (("chain", "draw", *(f"{name}_{k}" for k in range(value.ndim - 2))), value)
        for name, value in found["posterior"].items()
    })  # fmt: skip
    p = prediction.predict_groups(posterior, moons.X_train)
    shape = p.shape[:2]
    quantities = [
        prediction.predict_groups(posterior, GRID).reshape(*shape, -1),
        p.reshape(*shape, -1),
        *(found["posterior"][f"sd{k}"].reshape(*shape, 1) for k in (1, 2, 3)),
        np.log(np.where(moons.y_train == 1, p, 1 - p)).sum(axis=(2, 3))[..., None],
    ]
    checked = diagnostics.diagnose(np.concatenate(quantities, axis=-1))
    rhat, ess = float(np.max(checked["rhat"])), float(np.min(checked["ess"]))
    return {
        "rhat": rhat,
        "ess": ess,
        "rhat_sd": float(np.max(checked["rhat"][-4:-1])),
        "divergences": int(found["diverging"].sum()),
        "gradients_per_draw": float(np.mean(found["n_steps"])),
        "draws": shape[1],
        "compile": found["compile_seconds"],
        "cpu": found["cpu_seconds"],
        "ess_per_second": ess / found["cpu_seconds"],
        "converged": bool(rhat < diagnostics.RHAT_LIMIT and ess > diagnostics.ESS_LIMIT),
    }


@lru_cache
def time_iteration(engine, data, n_hidden):
    """CPU seconds of one iteration of a chain, from a short trial; the first iterations are the dearest."""
    moons, n = load_moons(data), 60
    tried = SAMPLERS[engine](
        moons.X_train, moons.y_train, seed=0, chains=1, draws=n, tune=n, n_hidden=(n_hidden, n_hidden),
        target_accept=TARGET,
    )  # fmt: skip
    return tried["cpu_seconds"] / (2 * n)


def sample_engine(engine, data, seed, budget, n_hidden=N_HIDDEN):
    """Four chains, about as long as fits an equal budget of CPU seconds; a trial finds out how long that is."""
    moons = load_moons(data)
    iterations = budget / 4 / time_iteration(engine, data, n_hidden)
    tune = int(max(20, 0.45 * iterations))
    found = SAMPLERS[engine](
        moons.X_train, moons.y_train, seed=seed, chains=4, draws=int(1.2 * tune), tune=tune,
        n_hidden=(n_hidden, n_hidden), target_accept=TARGET,
    )  # fmt: skip
    return judge_run(found, moons) | {"tune": tune}


def sample_converged(data, seed, draws, tune, n_hidden=N_HIDDEN):
    """Our engine with the book's settings."""
    moons = load_moons(data)
    found = sample_ours(
        moons.X_train, moons.y_train, seed=seed, chains=4, draws=draws, tune=tune, n_hidden=(n_hidden, n_hidden)
    )
    return judge_run(found, moons) | {"tune": tune}


# --- eighteen flat networks


def judge_flat(posterior, X):
    """Worst R-hat and least ESS of the probabilities at the training points, over the categories given."""
    checked = []
    for g in range(len(X)):
        weights = {name: value[g].reshape(-1, *value.shape[3:]) for name, value in posterior.items()}
        n_chains, n_draws = next(iter(posterior.values())).shape[1:3]
        checked.append(
            diagnostics.diagnose(prediction.predict_probability(weights, X[g]).reshape(n_chains, n_draws, -1))
        )
    return {
        "rhat": float(max(c["rhat"].max() for c in checked)),
        "ess": float(min(c["ess"].min() for c in checked)),
    }


def swap_flat(X, y, *, seed, chains, draws, tune):
    """Compiled once, the data of one category after the other swapped in."""
    compiled, compile_seconds = time_cpu(lambda: sampling.compile_nuts(fuse(models.flat_bnn(X[0], y[0]))))

    def sample(g):
        swapped = compiled.with_data(X=X[g], labels=y[g])
        return sampling.sample_nuts(swapped, seed=seed + g, chains=chains, draws=draws, tune=tune)

    trees, cpu_seconds = time_cpu(lambda: [sample(g) for g in range(len(X))])
    names = ("w1", "w2", "w3")
    posterior = {name: np.stack([tree["posterior"][name].values for tree in trees]) for name in names}
    return {"posterior": posterior, "compile_seconds": compile_seconds, "cpu_seconds": cpu_seconds}


def batch_flat(X, y, *, seed, chains, draws, tune):
    """One model that holds all the networks, which share nothing: the fused likelihood with a group axis."""
    shapes = {"w1": (X.shape[2], 5), "w2": (5, 5), "w3": (5,)}
    with pm.Model() as model:
        weights = [pm.Normal(name, 0, 1, shape=(len(X), *shape)) for name, shape in shapes.items()]
        pm.Potential("loglik", _loglik.network_loglik(X, y, weights))
    compiled, compile_seconds = time_cpu(lambda: sampling.compile_nuts(model))
    run = partial(sampling.sample_nuts, compiled, seed=seed)
    tree, cpu_seconds = time_cpu(lambda: run(chains=chains, draws=draws, tune=tune))
    posterior = {name: np.moveaxis(tree["posterior"][name].values, 2, 0) for name in shapes}
    return {"posterior": posterior, "compile_seconds": compile_seconds, "cpu_seconds": cpu_seconds}


FLAT = {
    "a loop of fresh pm.sample": flat.flat_loop_pymc,
    "compiled once, data swapped": swap_flat,
    "one batched model": batch_flat,
    "JAX, vmap over BlackJAX": flat.flat_vmap_jax,
}


def fit_flat(way, n_groups, draws):
    """The flat networks of the first categories; seconds are scaled to all eighteen, compiling where it is repeated."""
    moons = load_moons("legacy")
    X, y = moons.X_train[:n_groups], moons.y_train[:n_groups]
    found = FLAT[way](X, y, seed=1, chains=4, draws=draws, tune=draws)
    scale = 18 / n_groups
    compile_scale = scale if "fresh" in way else 1
    return judge_flat(found["posterior"], X) | {
        "compile": compile_scale * found["compile_seconds"],
        "cpu": scale * found["cpu_seconds"],
        "measured_groups": n_groups,
    }


# --- ADVI


ADVI = {
    "pm.fit, C": partial(advi.advi_pymc, backend="c"),
    "pm.fit, Numba": partial(advi.advi_pymc, backend="numba"),
    "pm.fit, JAX": partial(advi.advi_pymc, backend="jax"),
    "pm.fit's steps in one JAX loop": advi.advi_pymc_scan,
    "hand-written JAX loop, Adam": advi.advi_scan,
}


def fit_advi(way, seed, n_steps):
    """ADVI on the flat network and 500 moons: seconds, and the ELBO that it ends with, by one common estimate."""
    moons = data.flat_moons(seed=0)
    found = ADVI[way](moons.X_train, moons.y_train, n_steps=n_steps, seed=seed)
    elbo = advi.estimate_elbo(found["mean"], found["sd"], moons.X_train, moons.y_train, seed=0)
    return {
        "elbo": elbo["elbo"], "elbo_error": elbo["mcse"], "compile": found["compile_seconds"],
        "cpu": found["cpu_seconds"], "us": 1e6 * found["cpu_seconds"] / n_steps,
    }  # fmt: skip


# --- prediction


PREDICTION = ["NumPy on the draws", "sample_posterior_predictive"]


def predict_points(way, n_draws, n_points):
    """Probabilities of one flat network at new points from draws of its weights: the first call, and the second."""
    moons = data.flat_moons(seed=0)
    rng = np.random.default_rng(0)
    model = models.flat_bnn(moons.X_train, moons.y_train)
    shapes = {name: value.shape for name, value in model.initial_point().items()}
    weights = {name: rng.normal(size=(n_draws, *shape)) for name, shape in shapes.items()}
    X = rng.normal(size=(n_points, 2))
    if way == PREDICTION[0]:
        call = partial(prediction.predict_probability, weights, X)
    else:
        posterior = xr.Dataset({
            name: (("chain", "draw", *(f"{name}_{k}" for k in range(value.ndim - 1))), value[None])
            for name, value in weights.items()
        })  # fmt: skip
        tree = xr.DataTree.from_dict({"posterior": posterior})

        def call():
            with model:
                pm.set_data({"X": X, "labels": np.zeros(n_points, "int32")})
                pm.sample_posterior_predictive(tree, var_names=["p"], random_seed=0, progressbar=False)

    _, first = time_cpu(call)
    _, again = time_cpu(call)
    return {"first": first, "again": again}
