"""What several studies and the chapters of part 2 share: the data sets by name, the fits, and what is kept of each."""

import warnings
from functools import lru_cache

import arviz as az
import numpy as np
import pymc as pm
from bookkit import data, models, report
from bookkit.cache import cached
from hbnn import diagnostics, fuse, metrics, prediction, priors, sampling, symmetry
from hbnn.sampling import compile_nuts

N_HIDDEN = (12, 12)
TARGET = 0.9
LONG = {"draws": 1500, "tune": 800, "target_accept": TARGET}  # the hierarchical network; passes on 8 of 9 data sets
SHORT = {"draws": 500, "tune": 500, "target_accept": TARGET}  # the network of one category
GRID = data.grid(10)


def load_moons(name):
    """The articles' data set, or one of ours by its seed."""
    return data.legacy_rotated_moons() if name == "legacy" else data.rotated_moons(seed=int(name))


def log_likelihood(p, y):
    """Log likelihood of all points, draw by draw: (chain, draw) from probabilities (chain, draw, …, obs)."""
    return metrics.log_likelihood(p, y).sum(axis=tuple(range(2, p.ndim)))


def fit_hierarchical(moons, seed=1, **options):
    """The hierarchical network's posterior, from the cache where it is there."""
    settings = LONG | {name: options.pop(name) for name in list(options) if name in LONG}
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, **{"n_hidden": N_HIDDEN} | options)
    return cached(pm.sample)(model=fuse(model), random_seed=seed, **settings, **sampling.ONE_CORE)


def list_quantities(tree, moons, weights=None):
    """What is identified: probabilities on a grid and at the data, group sds, log likelihood."""
    posterior = tree["posterior"]
    p = prediction.predict_groups(posterior if weights is None else weights, moons.X_train, activation="tanh")
    grid = prediction.predict_groups(posterior if weights is None else weights, GRID, activation="tanh")
    sds = {name: posterior[name].values for name in posterior if name.startswith("sd")}
    return {"grid": grid, "data": p, **sds, "log likelihood": log_likelihood(p, moons.y_train)}


def check_hierarchical(tree, moons):
    """Verdict on a hierarchical run, as numbers of a row."""
    found = summarise([diagnostics.verdict(list_quantities(tree, moons), tree)])
    return {name: value for name, value in found.items() if name != "passed"}


def check_groups(trees, moons):
    """Verdicts on categories that were sampled one by one: the worst figures, and how many pass."""
    found = []
    for g, tree in enumerate(trees):
        weights = prediction.join_groups([tree])
        one = {"X": moons.X_train[g : g + 1], "y": moons.y_train[g : g + 1]}
        p = prediction.predict_groups(weights, one["X"], activation="tanh")
        grid = prediction.predict_groups(weights, GRID, activation="tanh")
        quantities = {"grid": grid, "data": p, "log likelihood": log_likelihood(p, one["y"])}
        found.append(diagnostics.verdict(quantities, tree))
    return summarise(found)


def summarise(verdicts):
    """The worst figures of several runs, and how many pass."""
    return {
        "rhat": float(max(v.rhat for v in verdicts)), "ess": float(min(v.ess for v in verdicts)),
        "ess_tail": float(min(v.ess_tail for v in verdicts)),
        "divergences": sum(v.divergences for v in verdicts), "move": float(max(v.move for v in verdicts)),
        "passed": sum(v.converged for v in verdicts), "converged": all(v.converged for v in verdicts),
    }  # fmt: skip


def score_probabilities(p_train, p_test, moons):
    """Scores of mean probabilities (group, obs), with the standard error over categories, and the scores of each."""
    found = {"train_accuracy": metrics.score(p_train, moons.y_train)["accuracy"]}
    for name, values in metrics.score_groups(p_test, moons.y_test).items():
        found[name] = float(values.mean())
        found[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
        found[f"{name}_groups"] = [round(float(value), 6) for value in values]
    return found


RINGS = (0, 1.2, 2, 3, np.inf)  # distances from the centre; nearly all points are below 2.5


def find_truth(moons, X, noise=0.3):
    """The true P(y = 1) of each group at its points X, (group, obs, 2), or at points for all: (group, obs)."""
    each = [X if X.ndim == 2 else X[g] for g in range(len(moons.X_train))]
    return np.stack([data.bayes_probability(points, moons, noise, g, n_arc=50) for g, points in enumerate(each)])


def measure_coverage(predict_at, moons, noise=0.3):
    """How often the central 90 % interval of P(y = 1) holds the truth (%), and its standard error over groups.

    `predict_at` makes of points (group, obs, 2), or (obs, 2) for all groups, probabilities (chain, draw, group, obs).
    Asked at the training and test points, and on a grid between distances `RINGS` from the centre (ring 1 to 4);
    `too_sure` is how often the interval misses the truth because that is nearer to one half, on the whole grid.
    """
    found = {}

    def ask(X, parts):
        low, high = np.quantile(predict_at(X), (0.05, 0.95), axis=(0, 1))
        truth = find_truth(moons, X, noise)
        holds = 100.0 * ((low <= truth) & (truth <= high))
        for part, where in parts.items():
            each = holds[:, where].mean(axis=1)
            found[f"cover_{part}"] = float(each.mean())
            found[f"cover_{part}_se"] = float(each.std(ddof=1) / np.sqrt(len(each)))
        return np.where(truth > 0.5, low > truth, high < truth)

    ask(moons.X_train, {"train": slice(None)})
    ask(moons.X_test, {"test": slice(None)})
    ring = np.digitize(np.hypot(*GRID.T), RINGS)
    sure = ask(GRID, {f"ring{k}": ring == k for k in range(1, len(RINGS))})
    return found | {"too_sure": float(100 * sure.mean())}


def leave_one_out(loglik):
    """PSIS-LOO from log likelihoods (chain, draw, group, obs): elpd (nats), its error, p_loo, and the bad Pareto k.

    Source: Vehtari, Gelman and Gabry (2017), Practical Bayesian Model Evaluation, Statistics and Computing 27.
    """
    tree = az.from_dict({"posterior": {"loglik": loglik.sum(axis=(2, 3))}, "log_likelihood": {"y": loglik}})
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Estimated shape parameter")  # counted in "pareto_bad"
        found = az.loo(tree, pointwise=True)
    bad = int((np.asarray(found.pareto_k) > found.good_k).sum())
    return {"elpd_loo": float(found.elpd), "elpd_loo_se": float(found.se), "p_loo": float(found.p), "pareto_bad": bad}


@lru_cache
def read_scales():
    """The prior scales of each layer that were learned on other data sets (study `prior_scales`): (layer,)."""
    rows = report.read_data("prior_scales")["rows"]
    return tuple(float(np.sqrt(np.mean([row[f"scale{k}"] ** 2 for row in rows]))) for k in (1, 2, 3))


def fan_in_scales(n_feature=2, n_hidden=N_HIDDEN):
    """1 / sqrt(units that come in), for each layer."""
    return tuple(float(1 / np.sqrt(n)) for n in (n_feature, *n_hidden))


@lru_cache
def compile_unpooled(n_hidden=N_HIDDEN, dtype=None, **options):
    """The network of one category with zero-mean priors, compiled once; `options` of `models.unpooled_bnn`."""
    one = load_moons("legacy").group(0)
    return compile_nuts(fuse(models.unpooled_bnn(one.X_train, one.y_train, n_hidden=n_hidden, **options), dtype=dtype))


@lru_cache
def compile_informed():
    """The network of one category with a multivariate prior on its weights, compiled once."""
    one = load_moons("legacy").group(0)
    mean, cholesky = priors.scale_prior((1.0, 1.0, 1.0), 2, N_HIDDEN)
    model = models.informed_bnn(one.X_train, one.y_train, mean=mean, cholesky=cholesky, n_hidden=N_HIDDEN)
    return compile_nuts(fuse(model))


def learn_priors(posterior, seed=1):
    """Priors for a new category from a hierarchical posterior: dict of name to (mean, cholesky)."""
    labelling = priors.align_posterior(posterior, seed=seed)
    raw = priors.draw_new_category(posterior, seed=seed)
    aligned = symmetry.relabel(labelling, raw)
    chain = len(raw["w1"]) // posterior.sizes["chain"]
    one_chain = {name: w[:chain] for name, w in raw.items()}
    return {
        "informed per layer": priors.fit_normal(aligned, joint=False),
        "informed jointly": priors.fit_normal(aligned),
        "informed, one raw chain": priors.fit_normal(one_chain, joint=False),
    }
