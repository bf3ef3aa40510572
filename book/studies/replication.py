"""Do the book's claims hold up? Twenty data sets, one choice at a time, and cheaper ways to the posterior.

Three parts, one row for each fit of a data set by a method:

- "data sets": twenty data sets that no other page shows, five methods;
- "approximations": the hierarchical network on the same data sets by other ways than NUTS, and two peers; "tuning" is
  how the peers got their weight decay, on other data;
- "choices": one thing changed at a time, on the first five of the data sets.
"""

import time
from functools import lru_cache
from itertools import product

import numpy as np
import pymc as pm
from bnn import data, diagnose, inference, models, predict, score
from bnn.fuse import fuse

from studies import _approximations, _fits

MEASURED = False
DATA_SEEDS = tuple(range(301, 321))
CHOICE_SEEDS = DATA_SEEDS[:5]
TUNING_SEEDS = (101, 102, 103)
SAMPLER = {
    "data sets": ({"draws": 1000, "tune": 600}, {"draws": 500, "tune": 300}),  # hierarchical, one category
    "choices": ({"draws": 650, "tune": 350}, {"draws": 400, "tune": 300}),
}
DTYPE = {
    "data sets": "float64",
    "choices": "float32",
}  # of the likelihood; level "default" shows that it changes nothing
ALPHAS = (0.01, 0.1, 0.3, 1, 3, 10)
ALPHA = {"deep ensemble": 0.3, "one-hot MLP": 3}  # the best mean lpd on the tuning data, rows of part "tuning"

POSTERIORS = ("unpooled, N(0, 1)", "control, learned scales", "hierarchical", "informed per layer", "informed jointly")
APPROXIMATIONS = {
    "mean-field ADVI": _approximations.fit_mean_field,
    "full-rank ADVI, 5 units": _approximations.fit_full_rank,
    "Pathfinder": _approximations.fit_pathfinder,
    "Laplace": _approximations.fit_laplace,
    "Laplace, linearised": _approximations.fit_laplace,
}
PEERS = {"deep ensemble": _approximations.predict_ensemble, "one-hot MLP": _approximations.predict_one_hot}
# level: (what changes in the data, in both networks, in the hierarchical network alone)
CHOICES = {
    "default": {"default": ({}, {"n_hidden": _fits.N_HIDDEN}, {})},
    "categories": {str(n): ({"n_groups": n}, {}, {}) for n in (3, 6, 50)},
    "points": {str(n): ({"n_train": n}, {}, {}) for n in (10, 25, 200)},
    "balance": {"5 to 200": ({"unbalanced": True}, {}, {})},
    "noise": {str(noise): ({"noise": noise}, {}, {}) for noise in (0.1, 0.2, 0.5)},
    "network": {
        name: ({}, {"n_hidden": n_hidden}, {})
        for name, n_hidden in {
            "1 x 5": (5,),
            "2 x 3": (3, 3),
            "2 x 5": (5, 5),
            "2 x 8": (8, 8),
            "2 x 16": (16, 16),
            "3 x 8": (8, 8, 8),
        }.items()
    },
    "biases": {"on": ({}, {"bias": True}, {})},
    "activation": {"ReLU": ({}, {"activation": "relu"}, {})},
    "angles": {f"{degrees} degrees": ({"degrees": degrees}, {}, {}) for degrees in (60,)},
    "sd prior": {
        "HalfNormal(2.5)": ({}, {}, {"sd_scale": 2.5}),
        "HalfNormal(5)": ({}, {}, {"sd_scale": 5.0}),
        "HalfCauchy(1)": ({}, {}, {"sd_prior": "halfcauchy"}),
    },
    "sds": {"one per connection": ({}, {}, {"sd_per": "connection"})},
}
HEAVY = ("50", "200", "one per connection")
BOTH = ("unpooled, N(0, 1)", "hierarchical")


def _list_cases():
    def case(part, choice, level, method, data_seed):
        names = ("part", "choice", "level", "method", "data_seed", "seed")
        return dict(zip(names, (part, choice, level, method, data_seed, 1), strict=True))

    for data_seed in DATA_SEEDS:
        yield from (case("data sets", "", "", method, data_seed) for method in POSTERIORS)
    for method in PEERS:
        for seed in TUNING_SEEDS:
            yield from (case("tuning", "alpha", str(alpha), method, seed) for alpha in ALPHAS)
    for data_seed in DATA_SEEDS:
        yield from (case("approximations", "", "", method, data_seed) for method in (*APPROXIMATIONS, *PEERS))
    for heavy, data_seed in product((False, True), CHOICE_SEEDS):  # those that take minutes come last
        for choice, level in ((choice, level) for choice, levels in CHOICES.items() for level in levels):
            in_data, shared, _ = CHOICES[choice][level]
            methods = BOTH if in_data or shared else BOTH[1:]  # a prior of sds does not touch the unpooled network
            if heavy == (level in HEAVY):
                yield from (case("choices", choice, level, method, data_seed) for method in methods)


CASES = list(_list_cases())
RECOMPUTED = [case for case in CASES if not case["method"].startswith("informed")]  # they need another posterior first


def block(case):
    """What one task computes: rows that need the same posterior belong together."""
    method = case["method"]
    if method.startswith(("hierarchical", "informed")):
        method = "hierarchical"
    if case["part"] == "tuning":
        return case["part"], method
    return tuple((case | {"method": method}).values())


def estimate(case):
    """CPU-seconds that a row takes on the machine of the tables, roughly: for the progress bar and the tests."""
    part, method, level = case["part"], case["method"], case["level"]
    if part == "tuning":
        return 2
    if part == "approximations":
        costs = {"mean-field ADVI": 12, "full-rank ADVI, 5 units": 35, "Pathfinder": 30, "deep ensemble": 1}
        return costs.get(method, 10 if "Laplace" in method else 1)
    if part == "data sets":
        return {"hierarchical": 80, "unpooled, N(0, 1)": 22, "control, learned scales": 37}.get(method, 55)
    more = {"50": 3, "200": 3, "one per connection": 3, "2 x 16": 1.5, "3 x 8": 1.5, "3": 0.3, "6": 0.4}.get(level, 1)
    return more * (40 if method == "hierarchical" else 13)


# --- data


def make_data(level="", choice="", data_seed=1):
    """The data of a level: training points as lists (group,) of arrays, test points as arrays."""
    options = dict(CHOICES.get(choice, {}).get(level, ({},))[0])
    degrees, unbalanced = options.pop("degrees", None), options.pop("unbalanced", False)
    if not unbalanced:
        moons = data.rotated_moons(seed=data_seed, **options)
        return moons if degrees is None else _narrow(moons, degrees)
    return _make_unbalanced(data_seed)


def _narrow(moons, degrees):
    """The same points, turned so that the angles fill `degrees` instead of the full circle."""
    angle = moons.angle * degrees / 360
    turned = {}
    for name in ("X_train", "X_test"):
        groups = zip(getattr(moons, name), angle - moons.angle, strict=True)
        turned[name] = np.stack([data.rotate(X, float(turn)) for X, turn in groups])
    return data.Moons(**(vars(moons) | turned | {"angle": angle}))


def _make_unbalanced(data_seed, n_groups=18, fewest=5, most=200):
    """Categories of 5 to 200 points, evenly spaced in the logarithm; about a thousand in all."""
    counts = np.geomspace(fewest, most, n_groups).round().astype(int)
    seeds = np.random.SeedSequence(data_seed).generate_state(n_groups)
    groups = [
        data.rotated_moons(seed=int(s), n_groups=1, n_train=int(n)).group(0) for s, n in zip(seeds, counts, strict=True)
    ]
    fixed = {name: np.stack([getattr(g, name) for g in groups]) for name in ("X_test", "y_test", "center", "width")}
    lists = {name: [getattr(g, name) for g in groups] for name in ("X_train", "y_train")}
    return data.Moons(**fixed, **lists, angle=np.array([g.angle for g in groups]))


# --- a row

COLUMNS = """
    failed reason train_accuracy accuracy accuracy_se accuracy_mcse accuracy_groups lpd lpd_se lpd_mcse lpd_groups
    brier brier_se brier_mcse brier_groups ece bins rhat ess ess_tail divergences move passed converged gradients
    sd1 sd2 sd3 sd4 sd_spread1 sd_spread2 sd_spread3 sd_spread4 p_last_largest loss khat flat_directions cpu_seconds
"""
EMPTY = dict.fromkeys(COLUMNS.split())
UNCOMPARED = ("cpu_seconds",)


def compute(part, choice, level, method, data_seed, seed):
    """Scores with their errors, calibration, diagnostics, group sds and CPU-seconds of one fit; None where it has none.

    `accuracy` is in %, `lpd` in nats per point. `_se` is the standard error over categories, `_mcse` the Monte Carlo
    error. `ece` is the expected calibration error in points, and `bins` has for each tenth of probability the number of
    test points, the sum of their probabilities, and how many are of class 1. `gradients` counts them for each draw.
    `cpu_seconds` is all that the fit takes, compiling included; an informed row's has the alignment in it where it is
    the first to need it, but not the hierarchical run, whose draws it shares.
    """
    moons = make_data(level if part == "choices" else "", choice, data_seed)
    start = time.process_time()
    row = dict(EMPTY)
    try:
        if method in PEERS:
            alpha = float(level) if part == "tuning" else ALPHA[method]
            p_train, p_test = PEERS[method](moons, alpha, seed)
            found = {}
        elif method in APPROXIMATIONS:
            p_train, p_test, found = _approximate(method, moons, seed)
        else:
            p_train, p_test, found = _sample(part, choice, level, method, data_seed, seed, moons)
    except FloatingPointError as error:
        return row | {"failed": True, "reason": str(error)[:200], "cpu_seconds": round(time.process_time() - start, 1)}
    row |= {"failed": False, "cpu_seconds": round(time.process_time() - start, 1)} | found
    y, p = np.concatenate(list(moons.y_train)), np.concatenate(list(p_train))
    row["train_accuracy"] = score.score(p, y)["accuracy"]
    return row | _score(p_test, moons.y_test)


def _score(p, y):
    """Scores of mean probabilities (group, obs), or of draws (draw, group, obs) with a Monte Carlo error."""
    draws, p = (p, p.mean(axis=0)) if p.ndim == 3 else (None, p)
    row = {}
    for name, values in score.score_groups(p, y).items():
        row |= {name: float(values.mean()), f"{name}_se": float(values.std(ddof=1) / np.sqrt(len(values)))}
        row |= {f"{name}_groups": [round(float(value), 5) for value in values]}
    if draws is not None:
        row |= {f"{name}_mcse": value for name, value in _jackknife(draws, y).items()}
    index = np.minimum((p * 10).astype(int), 9)
    row["bins"] = [[int((index == b).sum()), round(float(p[index == b].sum()), 4), int(y[index == b].sum())]
                   for b in range(10)]  # fmt: skip
    row["ece"] = 100 * sum(abs(total - ones) for _, total, ones in row["bins"]) / y.size
    return row


def _jackknife(draws, y, n_blocks=20):
    """Monte Carlo error of the scores of the mean probability: leave out one block of neighbouring draws at a time.

    Source: Künsch (1989), The Jackknife and the Bootstrap for General Stationary Observations, Annals of Statistics 17.
    """
    blocks = np.stack([block.mean(axis=0) for block in np.array_split(draws, n_blocks)])
    left = (blocks.sum(axis=0) - blocks) / (n_blocks - 1)
    scores = [score.score(p.ravel(), np.ravel(y)) for p in left]
    return {
        name: float(np.sqrt((n_blocks - 1) * np.var([found[name] for found in scores])))
        for name in ("accuracy", "lpd", "brier")
    }


# --- NUTS


def _sample(part, choice, level, method, data_seed, seed, moons):
    """Train probabilities, draws of test probabilities, and what a row says of the run."""
    if method == "hierarchical":
        return _sample_hierarchical(part, choice, level, data_seed, seed, moons)
    _, shared, _ = CHOICES.get(choice, {}).get(level, ({}, {}, {}))
    if method.startswith("informed"):
        mean, cholesky = _learn(part, choice, level, data_seed, seed)[method]
        compiled = _fits.compile_informed().with_data(mean=mean, cholesky=cholesky)
    else:
        scales = _fits.read_scales() if method.startswith("control") else None
        compiled = _fits.compile_unpooled(dtype=DTYPE[part], **shared)
        compiled = compiled if scales is None else compiled.with_data(prior_sd=scales)
    settings = SAMPLER[part][1]
    options = {"target_accept": _fits.TARGET, **settings}
    trees = inference.sample_groups(compiled, list(moons.X_train), list(moons.y_train), seed=seed, **options)
    weights, activation = predict.join_groups(trees), shared.get("activation", "tanh")
    p_train, quantities = _list_quantities(weights, moons, activation)
    verdicts = [
        diagnose.verdict({name: values[..., g, :] if values.ndim == 4 else values[..., g]
                          for name, values in quantities.items()}, tree)
        for g, tree in enumerate(trees)
    ]  # fmt: skip
    gradients = np.mean([tree["sample_stats"]["n_steps"].mean() for tree in trees])
    p_test = predict.predict_groups(weights, moons.X_test, activation=activation)
    return p_train, _join_chains(p_test), _fits.summarise(verdicts) | {"gradients": float(gradients)}


@lru_cache(maxsize=1)
def _run_hierarchical(part, choice, level, data_seed, seed):
    moons = make_data(level, choice, data_seed)
    _, shared, own = CHOICES.get(choice, {}).get(level, ({}, {}, {}))
    options = {"n_hidden": _fits.N_HIDDEN} | shared | own
    model = models.hierarchical_bnn(list(moons.X_train), list(moons.y_train), **options)
    settings = {"target_accept": _fits.TARGET, **SAMPLER[part][0], **inference.ONE_CORE}
    return pm.sample(model=fuse(model, dtype=DTYPE[part]), random_seed=seed, **settings)


def _sample_hierarchical(part, choice, level, data_seed, seed, moons):
    tree = _run_hierarchical(part, choice, level, data_seed, seed)
    activation = CHOICES.get(choice, {}).get(level, ({}, {}, {}))[1].get("activation", "tanh")
    posterior = tree["posterior"]
    weights = predict.combine_weights(posterior)
    p_train, quantities = _list_quantities(weights, moons, activation)
    quantities["log likelihood"] = quantities["log likelihood"].sum(axis=-1)
    sds = {name: posterior[name].values for name in posterior if name.startswith("sd")}
    found = _fits.summarise([diagnose.verdict(quantities | sds, tree)])
    found["passed"] *= len(moons.y_test)
    found["gradients"] = float(tree["sample_stats"]["n_steps"].mean())
    sizes = [np.sqrt((sd**2).reshape(*sd.shape[:2], -1).mean(axis=-1)) for sd in sds.values()]
    found |= _describe_sds(sizes)
    return p_train, _join_chains(predict.predict_groups(weights, moons.X_test, activation=activation)), found


def _describe_sds(sds):
    """Mean and spread of each layer's group sd, and how often the last layer's is the largest."""
    found = {f"sd{k}": float(sd.mean()) for k, sd in enumerate(sds, 1)}
    found |= {f"sd_spread{k}": float(sd.std()) for k, sd in enumerate(sds, 1)}
    return found | {"p_last_largest": float((sds[-1] > np.max(sds[:-1], axis=0)).mean())}


@lru_cache(maxsize=1)
def _learn(part, choice, level, data_seed, seed):
    return _fits.learn_priors(_run_hierarchical(part, choice, level, data_seed, seed)["posterior"])


def _list_quantities(weights, moons, activation):
    """Mean train probabilities of each group, and what is identified: (chain, draw, group, …) arrays."""
    X, y, n_obs = models.stack_groups(list(moons.X_train), list(moons.y_train))
    p = predict.predict_groups(weights, X, activation=activation)
    grid = predict.predict_groups(weights, _fits.GRID, activation=activation)
    counts = np.arange(y.shape[1]) < n_obs[:, None]
    loglik = np.where(counts, np.log(np.where(y == 1, p, 1 - p)), 0).sum(axis=-1)
    mean = p.mean(axis=(0, 1))
    p = np.where(counts, p, p[..., :1])  # what fills up short groups is nothing to judge
    return [mean[g, :n] for g, n in enumerate(n_obs)], {"grid": grid, "data": p, "log likelihood": loglik}


def _join_chains(p):
    return p.reshape(-1, *p.shape[2:])


# --- other ways


def _approximate(method, moons, seed):
    """Train probabilities, draws of test probabilities, and what a row says of the fit."""
    n_hidden = (5, 5) if "5 units" in method else _fits.N_HIDDEN
    model = fuse(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=n_hidden))
    draws, found = APPROXIMATIONS[method](model, seed)
    linear = {name: found.pop(name) for name in ("mode", "shifts") if name in found}
    if not all(np.isfinite(values).all() for values in draws.values()):
        raise FloatingPointError("draws are not finite")
    found |= _describe_sds([draws[f"sd{k}"] for k in (1, 2, 3)])
    if method.endswith("linearised"):
        p = [_approximations.predict_linearised(model, X=X, **linear) for X in (moons.X_train, moons.X_test)]
    else:
        posterior = {name: values[None] for name, values in draws.items()}
        p = [predict.predict_groups(posterior, X)[0] for X in (moons.X_train, moons.X_test)]
    return p[0].mean(axis=0), p[1], found
