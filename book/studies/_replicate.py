"""What `replication`, `one_choice` and `cheaper_ways` share: fits of many categories by NUTS, what a row says of a fit.

Columns of a row: `accuracy` is in %, `lpd` in nats per point, `_se` is the standard error over categories, `_mcse` the
Monte Carlo error. `ece` is the expected calibration error in points, and `bins` has for each tenth of probability the
number of test points, the sum of their probabilities, and how many are of class 1. `gradients` counts them for each
draw; `runs` of four chains were drawn until the verdict held.
"""

import warnings

import numpy as np
from bookkit import models
from hbnn import diagnostics, metrics, prediction, sample_tempered, sampling

from studies import _fits

COLUMNS = """
    failed reason train_accuracy accuracy accuracy_se accuracy_mcse accuracy_groups lpd lpd_se lpd_mcse lpd_groups
    brier brier_se brier_mcse brier_groups ece bins rhat ess ess_tail divergences move passed converged runs gradients
    sd1 sd2 sd3 sd4 sd_spread1 sd_spread2 sd_spread3 sd_spread4 p_last_largest cpu_seconds
"""
EMPTY = dict.fromkeys(COLUMNS.split())


def score_fit(p_train, p_test, moons):
    """Scores of mean probabilities (group, obs), or of draws (draw, group, obs) with a Monte Carlo error."""
    y = np.concatenate(list(moons.y_train))
    row = {"train_accuracy": metrics.score(np.concatenate(list(p_train)), y)["accuracy"]}
    draws, p = (p_test, p_test.mean(axis=0)) if p_test.ndim == 3 else (None, p_test)
    for name, values in metrics.score_groups(p, moons.y_test).items():
        row |= {name: float(values.mean()), f"{name}_se": float(values.std(ddof=1) / np.sqrt(len(values)))}
        row |= {f"{name}_groups": [round(float(value), 5) for value in values]}
    if draws is not None:
        row |= {f"{name}_mcse": value for name, value in _jackknife(draws, moons.y_test).items()}
    index = np.minimum((p * 10).astype(int), 9)
    row["bins"] = [
        [int((index == b).sum()), round(float(p[index == b].sum()), 4), int(moons.y_test[index == b].sum())]
        for b in range(10)
    ]
    row["ece"] = 100 * sum(abs(total - ones) for _, total, ones in row["bins"]) / moons.y_test.size
    return row


def _jackknife(draws, y, n_blocks=20):
    """Monte Carlo error of the scores of the mean probability: leave out one block of neighbouring draws at a time.

    Source: Künsch (1989), The Jackknife and the Bootstrap for General Stationary Observations, Annals of Statistics 17.
    """
    blocks = np.stack([block.mean(axis=0) for block in np.array_split(draws, n_blocks)])
    left = (blocks.sum(axis=0) - blocks) / (n_blocks - 1)
    scores = [metrics.score(p.ravel(), np.ravel(y)) for p in left]
    return {
        name: float(np.sqrt((n_blocks - 1) * np.var([found[name] for found in scores])))
        for name in ("accuracy", "lpd", "brier")
    }


def sample_unpooled(compiled, moons, seed, activation="tanh", **settings):
    """Train probabilities, draws of test probabilities, what a row says of the run, and a function that predicts."""
    trees = sampling.sample_groups(
        compiled, list(moons.X_train), list(moons.y_train), seed=seed, target_accept=_fits.TARGET, **settings
    )
    weights = prediction.join_groups(trees)
    p_train, quantities = _list_quantities(weights, moons, activation)
    verdicts = [
        diagnostics.verdict({name: values[..., g, :] if values.ndim == 4 else values[..., g]
                          for name, values in quantities.items()}, tree)
        for g, tree in enumerate(trees)
    ]  # fmt: skip
    gradients = np.mean([tree["sample_stats"]["n_steps"].mean() for tree in trees])
    return p_train, *_predict(weights, moons, activation, _fits.summarise(verdicts) | {"gradients": float(gradients)})


def sample_hierarchical(model, moons, seed, activation="tanh", most=sampling.MOST_RUNS, is_tempered=False, **settings):
    """Draws of a hierarchical network (DataTree), until the verdict holds or `most` times four chains are drawn.

    Where chains are apart or slow, tempered ones, four times as long, take their place, if that is asked for.
    """
    compiled = sampling.compile_nuts(model)

    def sample(random_seed):
        return sampling.sample_nuts(compiled, seed=random_seed, target_accept=_fits.TARGET, **settings)

    def temper(random_seed):
        longer = settings | {"draws": 4 * settings["draws"]}
        return sample_tempered(model=compiled, random_seed=random_seed, target_accept=_fits.TARGET, **longer)

    def identify(posterior):
        return _identify(posterior, prediction.combine_weights(posterior), moons, activation)[1]

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The verdict still fails")  # column "converged" says it
        warnings.filterwarnings("ignore", message="Chains are apart or slow")
        restart = temper if is_tempered else None
        return sampling.sample_until(identify, random_seed=seed, most=most, sample=sample, restart=restart)


def describe_hierarchical(tree, moons, activation="tanh"):
    """As `sample_unpooled`, of draws that are there."""
    posterior = tree["posterior"].to_dataset()
    weights = prediction.combine_weights(posterior)
    p_train, quantities = _identify(posterior, weights, moons, activation)
    found = _fits.summarise([diagnostics.verdict(quantities, tree)])
    found["passed"] *= len(moons.y_test)
    found["runs"] = len(tree.attrs["verdicts"])
    found["gradients"] = float(tree["sample_stats"]["n_steps"].mean())
    sds = [values for name, values in quantities.items() if name.startswith("sd")]
    found |= describe_sds([np.sqrt((sd**2).reshape(*sd.shape[:2], -1).mean(axis=-1)) for sd in sds])
    return p_train, *_predict(weights, moons, activation, found)


def describe_sds(sds):
    """Mean and spread of each layer's group sd, and how often the last layer's is the largest."""
    found = {f"sd{k}": float(sd.mean()) for k, sd in enumerate(sds, 1)}
    found |= {f"sd_spread{k}": float(sd.std()) for k, sd in enumerate(sds, 1)}
    return found | {"p_last_largest": float((sds[-1] > np.max(sds[:-1], axis=0)).mean())}


def _identify(posterior, weights, moons, activation):
    """Mean train probabilities of each group, and what the verdict of a hierarchical network asks."""
    p_train, quantities = _list_quantities(weights, moons, activation)
    quantities["log likelihood"] = quantities["log likelihood"].sum(axis=-1)
    return p_train, quantities | {name: posterior[name].values for name in posterior if name.startswith("sd")}


def _list_quantities(weights, moons, activation):
    """Mean train probabilities of each group, and what is identified: (chain, draw, group, …) arrays."""
    X, y, n_obs = models.stack_groups(list(moons.X_train), list(moons.y_train))
    p = prediction.predict_groups(weights, X, activation=activation)
    grid = prediction.predict_groups(weights, _fits.GRID, activation=activation)
    counts = np.arange(y.shape[1]) < n_obs[:, None]
    loglik = np.where(counts, np.log(np.where(y == 1, p, 1 - p)), 0).sum(axis=-1)
    mean = p.mean(axis=(0, 1))
    p = np.where(counts, p, p[..., :1])  # what fills up short groups is nothing to judge
    return [mean[g, :n] for g, n in enumerate(n_obs)], {"grid": grid, "data": p, "log likelihood": loglik}


def _predict(weights, moons, activation, found):
    """Draws of test probabilities, `found` as it came, and the function that predicts."""

    def predict_at(X):
        return prediction.predict_groups(weights, X, activation=activation)

    p = predict_at(moons.X_test)
    return p.reshape(-1, *p.shape[2:]), found, predict_at
