"""A hierarchical network for a table with groups and any outcome: typed in PyMC, fitted, and asked for predictions.

Groups that were fitted are predicted by their own networks; one that was never seen, with no labelled rows or a few, by
networks drawn from what the groups have in common. `outcome` reads the table, `rivals` judges the network.
"""

import time
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pymc as pm
from scipy.special import expit, softmax

from hbnn import diagnostics, sampling
from hbnn._checks import check_count, check_seed
from hbnn._text import guess, join
from hbnn.fusion import fuse
from hbnn.prediction import BLOCK
from hbnn.tables.outcome import Prediction, log_density

WEIGHTS = ("w1", "b1", "w2", "b2")
LEAST_ROWS = 10  # of each class
KEPT = 1000  # draws
EFFECTIVE = 50  # draws, below which a reweighted answer is refused
SAMPLER = {"chains": 4, "draws": 2000, "tune": 1000, "target_accept": 0.95}
PILOT = {"chains": 1, "draws": 100, "tune": 300, "target_accept": 0.95}


# --- the model


def build(rows, *, n_units=None, vary=None):
    """A network with one hidden layer of tanh units for each group of a table.

    Features, and a real outcome, are standardised over all rows. Weights are mu + sd z.

    Parameters
    ----------
    rows : Rows with an outcome
    n_units : int, hidden units; default 6 for a real outcome and for several classes, 10 for two
    vary : "all" or "readout", the layers that differ between groups; default "all" for two classes, else "readout": if
        hidden weights of each group's own are asked of numbers or several classes, chains rarely agree

    Returns
    -------
    pm.Model with dims group, obs, feature, hidden (and class), data X, g and seen

    Raises
    ------
    ValueError
        For rows without an outcome, one group, a constant feature, odd arguments.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from hbnn.tables import grouped, outcome
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"field": ["a", "b", "c"] * 20, "rain": rng.normal(50, 10, 60)})
    >>> frame["wheat"] = 0.1 * frame["rain"] + 0.3 * rng.normal(size=60)
    >>> rows = outcome.read_outcome(frame, group="field", features=["rain"], outcome="wheat")
    >>> model = grouped.build(rows, n_units=2)
    >>> sorted(model.coords)
    ['feature', 'group', 'hidden', 'obs']
    >>> [variable.name for variable in model.data_vars]
    ['X', 'g', 'seen']
    """
    _check_rows(rows)
    n_units = (10 if rows.kind == "binary" else 6) if n_units is None else n_units
    check_count(n_units, "n_units")
    vary = ("all" if rows.kind == "binary" else "readout") if vary is None else vary
    if vary not in ("all", "readout"):
        raise ValueError(f"vary={vary!r}; wanted: 'all' or 'readout'")
    X, y = _standardise(rows)[:2]
    coords = {"group": rows.groups, "feature": rows.features, "hidden": range(n_units)}
    output = ("class",) if rows.kind == "classes" else ()

    def share(name, *dims):  # one for all groups
        return pm.Normal(name, 0, 1, dims=dims)

    def differ(name, *dims):  # for every group: a common mean, a group sd, offsets
        mu = pm.Normal(f"{name}_mu", 0, 1, dims=dims)
        sd = pm.HalfNormal(f"{name}_sd", 1)
        z = pm.Normal(f"{name}_z", 0, 1, dims=("group", *dims))
        return pm.Deterministic(name, mu + sd * z, dims=("group", *dims))

    with pm.Model(coords=coords | ({"class": rows.classes} if output else {})) as model:
        X, g = pm.Data("X", X, dims=("obs", "feature")), pm.Data("g", rows.group, dims="obs")
        seen = pm.Data("seen", y, dims="obs")
        if vary == "all":
            z1 = (X[:, :, None] * differ("w1", "feature", "hidden")[g]).sum(axis=1)
            h = pm.math.tanh(z1 + differ("b1", "hidden")[g])
        else:
            h = pm.math.tanh(X @ share("w1", "feature", "hidden") + share("b1", "hidden"))
        w2 = differ("w2", "hidden", *output)[g]
        out = ((h[:, :, None] if output else h) * w2).sum(axis=1) + differ("b2", *output)[g]
        if rows.kind == "binary":
            pm.Bernoulli("y", logit_p=out, observed=seen, dims="obs")
        elif rows.kind == "classes":
            pm.Categorical("y", logit_p=out, observed=seen, dims="obs")
        else:
            pm.Normal("y", out, pm.HalfNormal("noise", 1), observed=seen, dims="obs")
    return model


def _check_rows(rows):
    """Raise ValueError for rows that no network can be fitted to."""
    if rows.labels is None or getattr(rows, "kind", None) is None or len(rows.groups) < 2:
        found = f"outcome={rows.columns['label']!r} and {len(rows.groups)} values of {rows.columns['group']!r}"
        raise ValueError(f"{found}; wanted: rows of read_outcome with an outcome, and two groups or more")
    if rows.kind != "real":
        counts = np.bincount(rows.labels, minlength=len(rows.classes))
        pairs = [(name, n) for name, n in zip(rows.classes, counts, strict=True) if n < LEAST_ROWS]
        few = [f"{name!r} ({n} row{'s' * int(n != 1)})" for name, n in pairs]
        if few:
            wanted = f"at least {LEAST_ROWS} rows of each; merge classes, or leave some out"
            raise ValueError(f"too few rows of {rows.columns['label']!r} {join(few)}; wanted: {wanted}")
    elif np.ptp(rows.labels) == 0:
        raise ValueError(f"{rows.columns['label']!r} is the same in all rows; wanted: an outcome that varies")
    same = [name for name, spread in zip(rows.features, np.ptp(rows.values, axis=0), strict=True) if spread == 0]
    if same:
        raise ValueError(f"the same in all rows: {join(map(repr, same))}; wanted: features that vary")


def measure(values):
    """Mean and standard deviation of (obs, feature) values, (feature,) each; of a constant, in a fold, itself and 1."""
    varies = np.ptp(values, axis=0) > 0
    return np.where(varies, values.mean(axis=0), values[0]), np.where(varies, values.std(axis=0), 1.0)


def _standardise(rows):
    """X, y, and what they were standardised by: centre and width of the features, level and spread of the outcome."""
    center, width = measure(rows.values)
    level, spread = (rows.labels.mean(), rows.labels.std() or 1.0) if rows.kind == "real" else (0.0, 1.0)
    y = (rows.labels - level) / spread if rows.kind == "real" else rows.labels
    return (rows.values - center) / width, y, center, width, float(level), float(spread)


# --- the fit


@dataclass(frozen=True)
class Cost:
    """What sampling will take: `seconds` on one core and `bytes`, and the compiled `network` that `fit` can use.

    The bytes are those of the draws, of their copies and of predictions of as many rows: they come on top of what
    Python and the compiled network hold, some 600 MB.
    """

    seconds: float
    bytes: float
    network: object = field(repr=False)

    def __str__(self):
        return f"{say_time(self.seconds)} on one core, {max(self.bytes / 1e6, 1):,.0f} MB for draws"


def say_time(seconds):
    """Text such as "about 1 minute": seconds up to 45, minutes up to 90, then hours."""
    for unit, size, most in (("second", 1, 45), ("minute", 60, 90), ("hour", 3600, np.inf)):
        n = max(round(seconds / size), 1)
        if n <= most:
            return f"about {n:,} {unit}{'s' * (n > 1)}"


@dataclass(frozen=True)
class Fit:
    """A fitted network.

    Attributes
    ----------
    draws : dict of name to (draw, …): w1, b1, w2 and b2, with a group axis after draw where there are ``…_mu`` and
        ``…_sd``; for a real outcome the ``noise``, on the standardised scale
    groups, features, classes : tuples of str; groups are those with rows in the fit
    kind, columns : as in Rows
    center, width : (feature,), in the table's units; level, spread : float, of a real outcome, in its unit
    verdict : diagnostics.Verdict on probabilities or means at the rows, group sds and the log likelihood; or None
    """

    draws: dict = field(repr=False)
    groups: tuple
    features: tuple
    classes: tuple
    kind: str
    columns: dict
    center: np.ndarray
    width: np.ndarray
    level: float
    spread: float
    verdict: object


def compile_network(rows, **options):
    """The network of `build`, compiled: for `fit` to any of these rows."""
    return sampling.compile_nuts(fuse(build(rows, **options)))


def merge_sampler(sampler):
    """SAMPLER with the changes of a dict; ValueError for names that are no settings, and chains too few or short to be
    compared."""
    odd = set(sampler or {}) - set(SAMPLER)
    merged = SAMPLER | (sampler or {})
    if odd or merged["chains"] < 2 or merged["draws"] < 4:
        wanted = f"some of {', '.join(SAMPLER)}; at least 2 chains of 4 draws, which can be compared"
        raise ValueError(f"sampler={sampler!r}; wanted: {wanted}")
    return merged


def estimate(rows, *, sampler=None, seed=0, **options):
    """Time and memory of a fit, from a pilot of a thirtieth of its length; compiling, some 20 s, is not counted.

    Parameters
    ----------
    rows, options : as in `build`
    sampler : dict, what to change in SAMPLER
    seed : int

    Returns
    -------
    Cost. The time may be off by a factor of two, as trajectories grow or shrink after the pilot.

    Raises
    ------
    ValueError
        As `build`, and for an odd sampler.

    Examples
    --------
    Goes on from `build`. What a fit will take, before it is paid; the network is compiled then.

    >>> cost = grouped.estimate(rows, n_units=2, seed=1)
    >>> cost.seconds > 0, cost.bytes > 0
    (True, True)
    """
    wanted = merge_sampler(sampler)
    compiled = compile_network(rows, **options)
    start = time.perf_counter()
    tree = sampling.sample_nuts(compiled, seed=seed, **PILOT)
    seconds = time.perf_counter() - start
    share = wanted["chains"] * (wanted["draws"] + wanted["tune"]) / (PILOT["draws"] + PILOT["tune"])
    numbers = sum(v[0, 0].size for v in tree["posterior"].values())
    n_out = len(rows.classes) if rows.kind == "classes" else 1
    held = wanted["chains"] * wanted["draws"] * 8 * (3 * numbers + 4 * n_out * min(len(rows.values), 200))
    return Cost(share * seconds, held + 5 * 8 * KEPT * len(rows.values) * n_out, compiled)


def fit(rows, *, seed, network=None, index=None, sampler=None, judged=True, **options):
    """Sample the network of `build` with NUTS.

    Parameters
    ----------
    rows : Rows with an outcome
    seed : int
    network : the `network` of a `Cost`, compiled before for these rows, with options of its own; default: compile it
        now
    index : (obs,) places of the rows to learn from; default: all
    sampler : dict, what to change in SAMPLER
    judged : bool, whether to ask for convergence
    options : as in `build`

    Returns
    -------
    Fit, with at most 1,000 draws

    Raises
    ------
    ValueError
        As `build`; for an odd sampler, and options beside a network.

    Source: Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15; the verdict as `diagnostics.verdict`.

    Examples
    --------
    Goes on from `estimate`. A short run; without `sampler` it is long enough to be judged.

    >>> found = grouped.fit(
    ...     rows, seed=1, network=cost.network, sampler={"chains": 2, "draws": 200, "tune": 300}
    ... )
    >>> found.groups, found.kind, found.draws["w2"].shape
    (('a', 'b', 'c'), 'real', (400, 3, 2))
    >>> found.verdict.converged, found.verdict.n_draws  # too few draws to be judged
    (False, 400)
    """
    check_seed(seed)
    _check_rows(rows)
    if network is not None and options:
        raise ValueError(f"options {', '.join(options)} and a compiled network; wanted: one of them")
    sampler = merge_sampler(sampler)
    network = compile_network(rows, **options) if network is None else network
    used = rows if index is None else rows.take(index)
    X, y, *scale = _standardise(used)
    tree = sampling.sample_nuts(network.with_data(X=X, seen=y, g=used.group), seed=seed, **sampler)
    there = np.unique(used.group)
    posterior = {name: values.values for name, values in tree["posterior"].items()}
    for name in [name for name in WEIGHTS if f"{name}_z" in posterior]:
        z = posterior.pop(f"{name}_z")[:, :, there]
        sd = posterior[f"{name}_sd"].reshape(*z.shape[:2], *[1] * (z.ndim - 2))
        posterior[name] = posterior[f"{name}_mu"][:, :, None] + sd * z
    flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in posterior.items() if not k.endswith("__")}
    groups = tuple(rows.groups[g] for g in there)
    parts = (groups, rows.features, rows.classes, rows.kind, rows.columns, *scale)
    verdict = _judge(Fit(flat, *parts, None), used, posterior, tree) if judged else None
    step = -(-len(flat["w2"]) // KEPT)
    return Fit({name: values[::step].copy() for name, values in flat.items()}, *parts, verdict)


def _judge(found, rows, posterior, tree):
    """The book's verdict, on up to 200 rows spread over the table."""
    some = np.unique(np.linspace(0, len(rows.values) - 1, 200).astype(int))
    rows = rows.take(some)
    predicted, shape = predict(found, rows), posterior["w2"].shape[:2]
    draws = predicted.draws[..., 1:] if found.kind == "classes" else predicted.draws
    asked = {"data": draws.reshape(*shape, -1), "log likelihood": log_density(predicted, rows).sum(1).reshape(shape)}
    asked |= {name: values for name, values in posterior.items() if name.endswith("_sd") or name == "noise"}
    return diagnostics.verdict(asked, tree)


# --- predictions


def predict(fit, rows, *, seed=None):
    """What the networks of a fit say of each row.

    Parameters
    ----------
    fit : Fit
    rows : Rows with the features of the fit; an outcome is not used
    seed : int, to draw the networks of groups that were never seen from their prior, one for each draw; None refuses
        such groups

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        For other features, or in another order, and an unknown group without a seed.

    Examples
    --------
    Goes on from `fit`.

    >>> predicted = grouped.predict(found, rows)
    >>> predicted.draws.shape  # draws of the mean at each row
    (400, 60)
    >>> bool(np.corrcoef(predicted.draws.mean(axis=0), frame["wheat"])[0, 1] > 0.8)
    True
    >>> strange = frame.assign(field="d")
    >>> new = outcome.read_outcome(strange, group="field", features=["rain"], outcome=None)
    >>> grouped.predict(found, new)
    Traceback (most recent call last):
        ...
    ValueError: group 'd' was not seen; wanted: one of 'a', 'b' and 'c'; or a seed, to draw it from its prior
    """
    _check_features(fit, rows)
    place = pd.Index(fit.groups).get_indexer(rows.groups)
    unknown = [g for g in np.unique(rows.group) if place[g] < 0]
    if unknown and seed is None:
        new = rows.groups[unknown[0]]
        known = join(map(repr, fit.groups)) + guess(new, fit.groups)
        raise ValueError(f"group {new!r} was not seen; wanted: one of {known}; or a seed, to draw it from its prior")
    if seed is not None:
        check_seed(seed)
    X, rng, draws = (rows.values - fit.center) / fit.width, np.random.default_rng(seed), None
    for g in np.unique(rows.group):
        where = np.flatnonzero(rows.group == g)
        weights = _draw_weights(fit, len(fit.draws["w2"]), 1, rng) if place[g] < 0 else _pick_weights(fit, place[g])
        own = _to_mean(fit, _run(weights, X[where]))
        draws = np.empty((len(own), len(X), *own.shape[2:])) if draws is None else draws
        draws[:, where] = own
    return Prediction(draws, _take_noise(fit, slice(None)), float(len(draws)))


def predict_new_group(fit, rows, known=None, *, seed, n_offsets=20):
    """What is to be expected in a group that was never seen, with no labelled rows of its own, or a few.

    Given each draw of means and group sds, the group's offsets have a known prior. With labelled rows, the draws are
    weighted by the likelihood of these rows, and offsets are drawn given the rows: exactly where only the read-out of
    a real outcome differs between groups, else both at once by self-normalised importance sampling.

    Parameters
    ----------
    fit : Fit
    rows : Rows of one group, to predict
    known : Rows of the same group with the outcome; None for none
    seed : int
    n_offsets : int, networks tried for each draw where there are labelled rows

    Returns
    -------
    Prediction

    Raises
    ------
    ValueError
        For other features, several groups, one that is in the fit, another outcome, and labelled rows that leave fewer
        than 50 effective draws: they say too much for what was drawn without them.

    Source: Owen (2013), Monte Carlo Theory, Methods and Examples, chapter 9; Bishop (2006), Pattern Recognition and
    Machine Learning, section 3.3, for the exact draws.

    Examples
    --------
    Goes on from `predict`. With three rows of the new field known, less is left open:

    >>> known = outcome.read_outcome(
    ...     strange[:3], group="field", features=["rain"], outcome="wheat", kind="real"
    ... )
    >>> before = grouped.predict_new_group(found, new, seed=1)
    >>> after = grouped.predict_new_group(found, new, known, seed=1)
    >>> bool(after.draws.std(axis=0).mean() < before.draws.std(axis=0).mean())
    True
    """
    check_seed(seed)
    check_count(n_offsets, "n_offsets")
    names = {part.groups[g] for part in (rows, known) if part is not None for g in np.unique(part.group)}
    if len(names) != 1 or (names & set(fit.groups)):
        wanted = "rows of one group, which is not in the fit (predict takes those that are)"
        raise ValueError(f"the rows are of group {join(map(repr, sorted(names)))}; wanted: {wanted}")
    if known is None:
        return predict(fit, rows, seed=seed)
    _check_features(fit, rows)
    _check_features(fit, known)
    if known.labels is None or known.kind != fit.kind or known.classes != fit.classes:
        found = f"an outcome of kind {known.kind!r} with classes {known.classes}"
        raise ValueError(f"known has {found}; wanted: {fit.kind!r} with {fit.classes}, as in the fit")
    rng, n_draws = np.random.default_rng(seed), len(fit.draws["w2"])
    X, X_known = ((part.values - fit.center) / fit.width for part in (rows, known))
    exact = fit.kind == "real" and "w1_mu" not in fit.draws
    if exact:
        weights, logw = _condition(fit, X_known, (known.labels - fit.level) / fit.spread, rng)
        each = np.arange(n_draws)
    else:
        weights = _draw_weights(fit, n_draws, n_offsets, rng)
        each = np.repeat(np.arange(n_draws), n_offsets)
        tried = Prediction(_to_mean(fit, _run(weights, X_known)), _take_noise(fit, each), 0.0)
        logw = log_density(tried, known).sum(axis=1)
    share = softmax(logw)
    effective = 1 / np.sum(np.bincount(each, share) ** 2)  # of posterior draws: offsets of one share all but theirs
    if effective < EFFECTIVE:
        n = len(known.values)
        raise ValueError(
            f"the {n} labelled rows of {names.pop()!r} leave {effective:.0f} effective draws; wanted: at least "
            f"{EFFECTIVE}. Give fewer labelled rows, more n_offsets, or fit again with these rows added to the table"
        )
    places = (rng.random() + np.arange(n_draws)) / n_draws
    picked = np.minimum(np.searchsorted(np.cumsum(share), places), len(share) - 1)
    draws = _to_mean(fit, _run({name: values[picked] for name, values in weights.items()}, X))
    return Prediction(draws, _take_noise(fit, each[picked]), float(effective))


def _check_features(fit, rows):
    if rows.features != fit.features:
        raise ValueError(f"the table has the features {rows.features}; wanted: {fit.features}, in this order")


def _pick_weights(fit, g):
    """Weights of one group of the fit, (draw, …) each."""
    return {n: fit.draws[n][:, g] if f"{n}_mu" in fit.draws else fit.draws[n] for n in WEIGHTS}


def _take_noise(fit, each):
    """Noise of some draws in the outcome's unit, (draw, 1); None for classes."""
    return fit.draws["noise"][each, None] * fit.spread if fit.kind == "real" else None


def _draw_weights(fit, n_draws, n_offsets, rng):
    """Weights of a new group, (draw * offset, …) each: mu + sd z with z from its prior."""
    weights = {}
    for name in WEIGHTS:
        varies = f"{name}_mu" in fit.draws
        mean = np.repeat(fit.draws[f"{name}_mu" if varies else name][:n_draws], n_offsets, axis=0)
        if varies:
            sd = np.repeat(fit.draws[f"{name}_sd"][:n_draws], n_offsets)
            mean = mean + sd.reshape(-1, *[1] * (mean.ndim - 1)) * rng.normal(size=mean.shape)
        weights[name] = mean
    return weights


def _condition(fit, X, y, rng):
    """A new group's weights given rows of its own, one for each draw, and the log likelihood of the rows, (draw,).

    Where the hidden layer is shared, the outcome is linear in the read-out, whose prior is normal.
    """
    draws, prior = fit.draws, _draw_weights(fit, len(fit.draws["w2"]), 1, rng)
    h = _hide(prior, X)
    h = np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)  # (draw, obs, hidden + 1)
    mu = np.column_stack([draws["w2_mu"], draws["b2_mu"]])
    sd = np.column_stack([np.repeat(draws["w2_sd"][:, None], h.shape[2] - 1, axis=1), draws["b2_sd"]])
    noise = draws["noise"][:, None]
    off = (y - (h @ mu[:, :, None])[..., 0]) / noise
    scaled = h * sd[:, None] / noise[:, None]  # the read-out is mu + sd z, and z standard normal
    root = np.linalg.cholesky(scaled.swapaxes(1, 2) @ scaled + np.eye(h.shape[2]))  # of the precision of z
    along = np.linalg.solve(root, scaled.swapaxes(1, 2) @ off[..., None])
    z = np.linalg.solve(root.swapaxes(1, 2), along + rng.normal(size=along.shape))[..., 0]
    loglik = 0.5 * ((along**2).sum((1, 2)) - (off**2).sum(1)) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
    loglik -= len(X) * np.log(noise[:, 0] * np.sqrt(2 * np.pi))
    beta = mu + sd * z
    return prior | {"w2": beta[:, :-1], "b2": beta[:, -1]}, loglik


def _hide(weights, X):
    """Hidden units, (draw, obs, hidden)."""
    return np.tanh(X @ weights["w1"] + weights["b1"][:, None])


def _run(weights, X):
    """Outputs of the networks, (draw, obs) or (draw, obs, class)."""
    w2, parts = weights["w2"], []
    for start in range(0, len(w2), BLOCK):  # the hidden units of all draws at once may fill the memory
        block = {name: values[start : start + BLOCK] for name, values in weights.items()}
        out = _hide(block, X) @ (block["w2"] if w2.ndim == 3 else block["w2"][..., None])
        parts.append((out if w2.ndim == 3 else out[..., 0]) + block["b2"][:, None])
    return np.concatenate(parts)


def _to_mean(fit, out):
    """Outputs as probabilities, or as means in the outcome's unit."""
    if fit.kind == "real":
        return fit.level + fit.spread * out
    return expit(out) if fit.kind == "binary" else softmax(out, axis=-1)
