"""A hierarchical network for a table with groups and any outcome: typed in PyMC, fitted, and asked for predictions.

Groups that were fitted are predicted by their own networks; one that was never seen, with no labelled rows or a few, by
networks drawn from what the groups have in common.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from scipy.special import expit, logit, ndtri, softmax, stdtrit
from scipy.stats import hmean

from hbnn import diagnostics, sampling
from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Array, Floats
from hbnn.fusion import fuse
from hbnn.prediction import BLOCK
from hbnn.tables._predictions import (
    INTERVAL,
    PRECISE,
    Precision,
    Prediction,
    disperse,
    leave_out,
    log_density,
    measure_precision,
    weigh_chains,
)
from hbnn.tables._read import NUMBERS, Kind, Places, Table, find_groups, measure_bulk, require_groups

if TYPE_CHECKING:
    from nutpie.compile_pymc import CompiledPyMCModel

type Compiled = CompiledPyMCModel
type Sampler = Mapping[str, Any] | None  # chains, draws, tune, target_accept
type Weights = dict[str, Floats]
WEIGHTS = ("w1", "b1", "w2", "b2")
LEAST_ROWS = 10  # of each class
MOST_SLOPES = 6  # features of a line with a slope for each group
KEPT = 1000  # draws
EFFECTIVE = 50  # draws, below which a reweighted answer is refused
SAMPLER: dict[str, Any] = {"chains": 4, "draws": 2000, "tune": 1000, "target_accept": 0.95}


# --- the model


def build_network(
    rows: Table, *, n_units: int | None = None, vary: Literal["all", "readout"] | None = None
) -> pm.Model:
    """A network with one hidden layer of tanh units for each group of a table; or a hierarchical line, without one.

    Features, and a real outcome, are standardised over all rows. Weights are mu + sd z. A second group adds a level,
    "c", normal about 0. Counts are negative binomial: the output is the log of their mean, from that of all rows, and
    rates vary by a share of themselves, "noise", with a half-normal prior of sd 1. Zero, where that prior is highest,
    is the Poisson, so more is learned only where rows ask for it (a reasonable prior on 1/alpha would be far from it);
    and one, where rates vary as an exponential does, is about the most that is met with. Heavy-tailed numbers have a
    Student t, and are standardised by their median and middle half. Of ordered classes the output is one number, and
    classes are what lies between cutpoints on its line; where the output is 0, their probabilities are uniform on the
    simplex a priori.

    Source: Simpson et al. (2017), Penalising Model Component Complexity, Statistical Science 32, for that prior;
    Juárez and Steel (2010), Journal of Business and Economic Statistics 28, for that of a t's degrees of freedom;
    McCullagh (1980), Regression Models for Ordinal Data, JRSS B 42, for cutpoints; Westfall (2017), arXiv 1702.01201,
    for the priors of a line, which Bambi has: sds of 2.5.

    Parameters
    ----------
    n_units : hidden units; default 6 for numbers and for several classes, 10 for two. With 0, each group has a line: a
        level, and slopes unless there are several classes or more than 6 features; each with a group sd of its own
    vary : the layers that differ between groups; default "all" for two classes, else "readout": if hidden weights of
        each group's own are asked of numbers or several classes, chains rarely agree

    Returns
    -------
    pm.Model with dims group, obs, feature, hidden (class, second_group), data X, g and seen (s; level, of log counts;
    ratio, of a weighted row's noise)

    Raises
    ------
    Refused
        For no outcome, one group, a constant feature or outcome, a class of few rows; ValueError for odd arguments.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from hbnn import tables
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"field": ["a", "b", "c"] * 20, "rain": rng.normal(50, 10, 60)})
    >>> frame["wheat"] = 0.1 * frame["rain"] + 0.3 * rng.normal(size=60)
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> sorted(tables.build_network(rows, n_units=2).coords)
    ['feature', 'group', 'hidden', 'obs']
    """
    _check_rows(rows)
    n_units = (10 if rows.kind == "binary" else 6) if n_units is None else n_units
    check_count(n_units, "n_units", least=0)
    vary = ("all" if rows.kind == "binary" else "readout") if vary is None else vary
    if vary not in ("all", "readout"):
        raise ValueError(f"vary={vary!r}; wanted: 'all' or 'readout'")
    X, y, (_, _, level, _) = _standardise(rows)
    coords = {"group": rows.groups, "feature": rows.features} | ({"hidden": range(n_units)} if n_units else {})
    coords |= {"second_group": rows.second_groups} if rows.second_group is not None else {}
    below, wide = ("hidden", 1) if n_units else ("feature", 2.5)
    output = ("class",) if rows.kind == "classes" and not rows.ordered else ()

    def share(name: str, *dims: str) -> Any:  # one for all groups
        return pm.Normal(name, 0, wide, dims=dims)

    def differ(name: str, *dims: str) -> Any:  # for every group: a common mean, a group sd, offsets
        mu = 0 if name == "b2" and rows.ordered else pm.Normal(f"{name}_mu", 0, wide, dims=dims)  # else in the cuts
        sd = pm.HalfNormal(f"{name}_sd", wide, dims=() if n_units else dims)
        z = pm.Normal(f"{name}_z", 0, 1, dims=("group", *dims))
        return pm.Deterministic(name, mu + sd * z, dims=("group", *dims))

    with pm.Model(coords=coords | ({"class": rows.classes} if rows.kind == "classes" else {})) as model:
        X, g = pm.Data("X", X, dims=("obs", "feature")), pm.Data("g", rows.group, dims="obs")
        seen = pm.Data("seen", y, dims="obs")
        if not n_units:
            h = X
        elif vary == "all":
            z1 = (X[:, :, None] * differ("w1", "feature", "hidden")[g]).sum(axis=1)
            h = pm.math.tanh(z1 + differ("b1", "hidden")[g])
        else:
            h = pm.math.tanh(X @ share("w1", "feature", "hidden") + share("b1", "hidden"))
        if n_units or (len(rows.features) <= MOST_SLOPES and not output):
            out = ((h[:, :, None] if output else h) * differ("w2", below, *output)[g]).sum(axis=1)
        else:
            out = h @ share("w2", below, *output)
        out = out + differ("b2", *output)[g]
        if rows.second_group is not None:
            c = pm.HalfNormal("c_sd", wide) * pm.Normal("c_z", 0, 1, dims=("second_group", *output))
            out = out + c[pm.Data("s", rows.second_group, dims="obs")]
        if rows.kind == "binary":
            pm.Bernoulli("y", logit_p=out, observed=seen, dims="obs")
        elif rows.ordered:
            cut = pm.math.logit(pm.Dirichlet("start", np.ones(len(rows.classes)), dims="class").cumsum()[:-1])
            pm.OrderedLogistic("y", eta=out, cutpoints=cut, compute_p=False, observed=seen, dims="obs")
        elif rows.kind == "classes":
            pm.Categorical("y", logit_p=out, observed=seen, dims="obs")
        elif rows.kind == "counts":
            mu = pm.math.exp(pm.Data("level", level) + out)
            pm.NegativeBinomial("y", mu=mu, alpha=pm.HalfNormal("noise", 1) ** -2, observed=seen, dims="obs")
        else:
            noise = pm.HalfNormal("noise", 1)
            if rows.weight is not None:
                noise = noise * pm.Data("ratio", find_ratio(rows.weight), dims="obs")
            if rows.kind == "heavy":
                pm.StudentT("y", nu=pm.Gamma("tails", 2, 0.1), mu=out, sigma=noise, observed=seen, dims="obs")
            else:
                pm.Normal("y", out, noise, observed=seen, dims="obs")
    return model


def _check_rows(rows: Table) -> None:
    """Refuse rows that no network can be fitted to."""
    require_groups(rows)
    if rows.second_group is not None and len(rows.second_groups) < 2:
        raise Refused(
            f"all rows are of one group of {rows.columns['second_group']!r}; wanted: two or more, or without it"
        )
    if rows.kind not in NUMBERS:
        counts = np.bincount(rows.y, minlength=len(rows.classes))
        pairs = [(name, n) for name, n in zip(rows.classes, counts, strict=True) if n < LEAST_ROWS]
        few = [f"{name!r} ({n} row{'s' * int(n != 1)})" for name, n in pairs]
        if few:
            wanted = f"at least {LEAST_ROWS} rows of each; merge classes, or leave some out"
            raise Refused(f"too few rows of {rows.columns['outcome']!r} {join(few)}; wanted: {wanted}")
    elif np.ptp(rows.y) == 0:
        raise Refused(f"{rows.columns['outcome']!r} is the same in all rows; wanted: an outcome that varies")
    elif rows.kind == "counts" and np.count_nonzero(rows.y) < LEAST_ROWS:
        raise Refused(f"{rows.columns['outcome']!r} is above 0 in fewer than {LEAST_ROWS} rows; wanted: more rows")
    same = [name for name, spread in zip(rows.features, np.ptp(rows.values, axis=0), strict=True) if spread == 0]
    if same:
        raise Refused(f"the same in all rows: {join(map(repr, same))}; wanted: features that vary")


def measure_columns(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of (obs, feature) values, (feature,) each; of a constant, in a fold, itself and 1."""
    varies = np.ptp(values, axis=0) > 0
    return np.where(varies, values.mean(axis=0), values[0]), np.where(varies, values.std(axis=0), 1.0)


def find_ratio(weight: Floats, mean: float | None = None) -> Floats:
    """Of a row's noise to that of a row of mean weight, (row,), the harmonic mean unless another one is given."""
    return np.sqrt((hmean(weight) if mean is None else mean) / weight)


def _standardise(rows: Table) -> tuple[Floats, Array, tuple[Floats, Floats, float, float]]:
    """X, y, and what they were standardised by: centre and width of the features, level and spread of the outcome."""
    center, width = measure_columns(rows.values)
    normal, y = rows.kind in ("real", "share", "heavy"), rows.target
    level, spread = (y.mean(), y.std() or 1.0) if normal else (0.0, 1.0)
    if rows.kind == "heavy":
        level, spread = np.median(y), measure_bulk(y) or 1.0
    if rows.kind == "counts":
        level = np.log(max(rows.y.mean(), 1 / len(rows.y)))
    y = (y - level) / spread if normal else y
    return (rows.values - center) / width, y, (center, width, float(level), float(spread))


# --- the fit


def say_time(seconds: float) -> str:
    """Text such as "about 1 minute": seconds up to 45, minutes up to 90, then hours."""
    unit, size = ("second", 1) if seconds < 45.5 else ("minute", 60) if seconds < 5430 else ("hour", 3600)
    n = max(round(seconds / size), 1)
    return f"about {n:,} {unit}{'s' * (n > 1)}"


@dataclass(frozen=True)
class Fit:
    """A fitted network."""

    draws: Weights = field(repr=False)  #: (draw, …), or (draw, group, …) where there is a ``…_sd``; standardised
    groups: tuple[str, ...]  #: with rows in the fit
    features: tuple[str, ...]
    classes: tuple[str, ...]
    kind: Kind | None
    center: Floats  #: (feature,), in the table's units
    width: Floats
    level: float  #: mean (heavy: median) of a real outcome, in its unit, of logits of shares, or log of that of counts
    spread: float  #: its standard deviation (heavy: that of a normal with its middle half)
    verdict: diagnostics.Verdict | None  #: on predictions of the rows, group sds and the log likelihood
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)  #: of features that are words, as in `Table`
    fills: dict[str, float] = field(default_factory=dict)  #: of features that were missing, as in `Table`
    share: tuple[float, float] | None = None  #: as in `Table`
    second_groups: tuple[str, ...] = ()
    weight: float | None = None  #: that of a row whose noise is "noise"
    read_as: dict[str, str] = field(default_factory=dict)  #: as in `Table`
    precision: Precision | None = None  #: of predictions of the rows that were asked for
    chain_weights: Floats | None = None  #: (chain,), where chains that disagree were stacked; else all count the same

    @property
    def ordered(self) -> bool:
        """Whether the classes are marks, from low to high."""
        return "start" in self.draws


def compile_network(rows: Table, **options: Any) -> Compiled:
    """The network of `build_network`, compiled: for `fit_network` to any of these rows.

    Examples
    --------
    Goes on from `build_network`.

    >>> network = tables.compile_network(rows, n_units=2)
    >>> int(network.n_dim)  # unknowns
    19
    """
    model = build_network(rows, **options)
    return sampling.compile_nuts(fuse(model, check=False) if "hidden" in model.coords else model)


def merge_sampler(sampler: Sampler) -> dict[str, Any]:
    """SAMPLER with some changes; ValueError for no settings, and chains too few or short to be compared."""
    odd = set(sampler or {}) - set(SAMPLER)
    merged = SAMPLER | dict(sampler or {})
    if odd or merged["chains"] < 2 or merged["draws"] < 4:
        wanted = f"some of {', '.join(SAMPLER)}; at least 2 chains of 4 draws, which can be compared"
        raise ValueError(f"sampler={sampler!r}; wanted: {wanted}")
    return merged


def fit_network(
    rows: Table,
    *,
    seed: int,
    network: Compiled | None = None,
    index: Places | None = None,
    sampler: Sampler = None,
    judged: bool = True,
    asked: Table | None = None,
    most: int = 1,
    cores: int = 1,
    tell: bool = False,
    **options: Any,
) -> Fit:
    """Sample the network of `build_network` with NUTS, and keep at most 1,000 draws. Refuses what `build_network` does.

    With `asked`, more chains are run, and none is thrown away, until the predictions of these rows are exact enough
    (`Precision.usable`). Where they still are not after `most` runs, chains sit in different places: they are weighted
    by how well they, as a mixture, predict rows that are left out, and their disagreement is part of what is predicted.

    Parameters
    ----------
    network : compiled before for these rows, with options of its own; default: compile it now
    index : (obs,) places of the rows to learn from; default: all
    sampler : what to change in the settings chains, draws, tune and target_accept
    judged : whether to ask for convergence
    asked : rows to be predicted, of known groups or new ones; the precision is measured at up to 200 of them
    most : runs of `sampler`, at most
    cores : as in `sampling.sample_nuts`
    tell : whether to print, after each run, how exact the predictions are, and how long the next one takes

    Source: Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15; the verdict as `diagnostics.verdict`; the weights
    as `weigh_chains`.

    Examples
    --------
    Goes on from `compile_network`. A short run; without `sampler` it is long enough to be judged.

    >>> short = {"chains": 2, "draws": 200, "tune": 300}
    >>> fit = tables.fit_network(rows, seed=1, network=network, sampler=short)
    >>> fit.groups, fit.kind, fit.draws["w2"].shape
    (('a', 'b', 'c'), 'real', (400, 3, 2))
    >>> fit.verdict.converged, fit.verdict.n_draws  # too few draws to be judged
    (False, 400)
    """
    check_seed(seed)
    _check_rows(rows)
    settings = merge_sampler(sampler)
    network = choose_network(rows, network, options)
    used = rows if index is None else rows.take(index)
    X, y, scale = _standardise(used)
    more: dict[str, Any] = {"level": scale[2]} if rows.kind == "counts" else {}
    more |= {"s": used.second_group} if rows.second_group is not None else {}
    weight = None if used.weight is None else float(hmean(used.weight))
    more |= {} if used.weight is None else {"ratio": find_ratio(used.weight)}
    data = network.with_data(X=X, seen=y, g=used.group, **more)
    there = np.unique(used.group)
    groups = tuple(rows.groups[g] for g in there)
    later = np.random.SeedSequence(seed).generate_state(most)[1:].tolist()
    start, precision, weights = time.perf_counter(), None, None
    tree = sampling.sample_nuts(data, seed=seed, cores=cores, **settings)
    while True:
        posterior = _read_weights(tree, there)
        flat = {k: v.reshape(-1, *v.shape[2:]) for k, v in posterior.items()}
        fit = Fit(
            flat, groups, rows.features, rows.classes, rows.kind, *scale, None, rows.levels, rows.fills, rows.share,
            rows.second_groups, weight, rows.read_as,
        )  # fmt: skip
        n_chains = len(posterior["w2"])
        if asked is None:
            break
        precision = _measure(fit, asked, n_chains, seed)
        if precision.usable or not later:
            break
        if tell:
            each = (time.perf_counter() - start) / (most - len(later))
            found = f"known to {precision.share:.0%} of an outcome's sd, where {PRECISE:.0%} is wanted"
            longer = (
                f"{settings['chains']} more take {say_time(each)}, at most {len(later)} time{'s' * (len(later) > 1)}"
            )
            print(f"  {n_chains} chains: {found}; {longer}", flush=True)
        tree = sampling.join_chains(tree, sampling.sample_nuts(data, seed=later.pop(0), cores=cores, **settings))
    verdict = _judge(fit, used, posterior, tree) if judged else None
    n = len(flat["w2"])
    kept = np.arange(0, n, -(-n // KEPT))
    if precision is not None and not precision.usable:
        weights = _weigh(fit, used, n_chains)
        ends, length = np.round(np.cumsum(weights) * KEPT).astype(int), n // n_chains
        shares = np.diff(ends, prepend=0)
        kept = np.concatenate([c * length + np.arange(k) * length // max(k, 1) for c, k in enumerate(shares)])
    draws = {name: values[kept].copy() for name, values in flat.items()}
    return replace(fit, draws=draws, verdict=verdict, precision=precision, chain_weights=weights)


def _read_weights(tree: xr.DataTree, there: Places) -> Weights:
    """Weights of all networks, (chain, draw, …), of the groups that are there."""
    posterior = {str(name): values.values for name, values in tree["posterior"].to_dataset().items()}
    for name in [name for name in WEIGHTS if f"{name}_z" in posterior]:
        z = posterior.pop(f"{name}_z")[:, :, there]
        mu = posterior.setdefault(f"{name}_mu", np.zeros(z[:, :, 0].shape))
        posterior[name] = mu[:, :, None] + _widen(posterior[f"{name}_sd"], mu)[:, :, None] * z
    if "c_z" in posterior:
        z = posterior.pop("c_z")
        posterior["c"] = _widen(posterior["c_sd"], z) * z
    return {name: values for name, values in posterior.items() if not name.endswith("__")}


def _widen(sd: Floats, mu: Floats) -> Floats:
    """Group sds with as many axes as the means: one for all of them, or one for each."""
    return sd.reshape(*sd.shape, *[1] * (mu.ndim - sd.ndim))


def _spread(rows: Table, most: int) -> Table:
    """At most so many rows, from all over the table."""
    return rows.take(np.unique(np.linspace(0, len(rows.values) - 1, most).astype(int)))


def _measure(fit: Fit, asked: Table, n_chains: int, seed: int) -> Precision:
    """The precision of predictions of up to 200 rows, of known groups and of new ones."""
    predicted = predict(fit, _spread(asked, 200), seed=seed)
    means, noise = predicted.to_unit()
    draws = means.reshape(n_chains, -1, *means.shape[1:])
    if predicted.tails is not None and noise is not None:  # the sd of a normal whose interval is as wide
        noise = noise * stdtrit(predicted.tails, (1 + INTERVAL) / 2) / ndtri((1 + INTERVAL) / 2)
    return measure_precision(draws, None if noise is None else noise.reshape(n_chains, -1, noise.shape[1]))


def _weigh(fit: Fit, rows: Table, n_chains: int) -> Floats:
    """Weights of chains, (chain,), from up to 1,000 of the rows that they have seen, each left out in turn."""
    rows, lpd = _spread(rows, 1000), []
    for part in range(n_chains):
        own = {name: np.split(values, n_chains)[part] for name, values in fit.draws.items()}
        lpd.append(leave_out(log_density(predict(replace(fit, draws=own), rows), rows)))
    return weigh_chains(np.array(lpd))


def choose_network(rows: Table, network: Compiled | None, options: dict[str, Any]) -> Compiled:
    """The compiled network, or one that is compiled now; ValueError for both a network and options."""
    if network is not None and options:
        raise ValueError(f"options {', '.join(options)} and a compiled network; wanted: one of them")
    return compile_network(rows, **options) if network is None else network


def _judge(fit: Fit, rows: Table, posterior: Weights, tree: xr.DataTree) -> diagnostics.Verdict:
    """The verdict on up to 200 rows spread over the table."""
    rows = _spread(rows, 200)
    predicted, shape = predict(fit, rows), posterior["w2"].shape[:2]
    draws = predicted.draws[..., 1:] if fit.kind == "classes" else predicted.draws
    asked = {"data": draws.reshape(*shape, -1), "log likelihood": log_density(predicted, rows).sum(1).reshape(shape)}
    asked |= {name: values for name, values in posterior.items() if name.endswith("_sd") or name in ("noise", "tails")}
    return diagnostics.verdict(asked, tree)


# --- predictions


def predict(fit: Fit, rows: Table, *, seed: int | None = None) -> Prediction:
    """What the networks of a fit say of each row.

    Parameters
    ----------
    rows : with the features of the fit; an outcome is not used
    seed : to draw the networks of groups that were never seen from their prior, one for each draw; None refuses such
        groups

    Raises
    ------
    Refused
        For other features, or in another order, and an unknown group without a seed.

    Examples
    --------
    Goes on from `fit_network`.

    >>> tables.predict(fit, rows).draws.shape  # draws of the mean at each row
    (400, 60)
    >>> strange = frame.assign(field="d")
    >>> new = tables.read_table(strange, group="field", features=["rain"], outcome=None)
    >>> tables.predict(fit, new, seed=1).draws.shape
    (400, 60)
    """
    if seed is not None:
        check_seed(seed)
    place = find_groups(
        rows, fit.features, fit.groups, new=seed is not None, instead="; or a seed, to draw it from its prior"
    )
    X, rng, n_draws = (rows.values - fit.center) / fit.width, np.random.default_rng(seed), len(fit.draws["w2"])
    draws = np.empty((n_draws, len(X), *fit.draws["b2_mu"].shape[1:]))
    for g in np.unique(rows.group):
        where = np.flatnonzero(rows.group == g)
        known = place[where[0]]
        weights = _draw_weights(fit, 1, rng) if known < 0 else _pick_weights(fit, known)
        draws[:, where] = _run(weights, X[where])
    apart = None if seed is None else np.random.default_rng([seed, 1])  # no group's draws hang on second groups
    draws += _draw_shifts(fit, [rows], apart)[0]
    return _give(fit, rows, draws, slice(None), float(len(draws)))


def predict_new_group(
    fit: Fit, rows: Table, known: Table | None = None, *, seed: int, n_offsets: int = 20
) -> Prediction:
    """What is to be expected in a group that was never seen, with no labelled rows of its own, or a few.

    Given each draw of means and group sds, the group's offsets have a known prior. With labelled rows, the draws are
    weighted by the likelihood of these rows, and offsets are drawn given the rows: exactly where only the read-out of a
    real outcome differs between groups, else both at once by self-normalised importance sampling.

    Parameters
    ----------
    rows, known : of one group, to predict, and with the outcome
    n_offsets : networks tried for each draw where there are labelled rows

    Raises
    ------
    Refused
        For other features, several groups, one that is in the fit, another outcome, and labelled rows that leave fewer
        than 50 effective draws: they say too much for what was drawn without them.

    Source: Owen (2013), Monte Carlo Theory, Methods and Examples, chapter 9; Bishop (2006), Pattern Recognition and
    Machine Learning, section 3.3, for the exact draws.

    Examples
    --------
    Goes on from `predict`. With three rows of the new field known, less is left open:

    >>> columns = {"group": "field", "features": ["rain"], "outcome": "wheat", "kind": "real"}
    >>> known = tables.read_table(strange[:3], **columns)
    >>> both = [tables.predict_new_group(fit, new, part, seed=1) for part in (None, known)]
    >>> before, after = (predicted.draws.std(axis=0).mean() for predicted in both)
    >>> bool(after < before)
    True
    """
    check_seed(seed)
    check_count(n_offsets, "n_offsets")
    names = {part.groups[g] for part in (rows, known) if part is not None for g in np.unique(part.group)}
    if len(names) != 1 or (names & set(fit.groups)):
        wanted = "rows of one group, which is not in the fit (predict takes those that are)"
        raise Refused(f"the rows are of group {join(map(repr, sorted(names)))}; wanted: {wanted}")
    if known is None:
        return predict(fit, rows, seed=seed)
    for part in (rows, known):
        find_groups(part, fit.features, fit.groups, new=True)
    if known.y is None or known.kind != fit.kind or known.classes != fit.classes:
        found = f"an outcome of kind {known.kind!r} with classes {known.classes}"
        raise Refused(f"known has {found}; wanted: {fit.kind!r} with {fit.classes}, as in the fit")
    rng, n_draws = np.random.default_rng(seed), len(fit.draws["w2"])
    X, X_known = ((part.values - fit.center) / fit.width for part in (rows, known))
    known = replace(known, share=fit.share)
    exact = fit.kind in ("real", "share") and "w1_mu" not in fit.draws and "w2_mu" in fit.draws
    if exact:
        shift, known_shift = _draw_shifts(fit, [rows, known], rng)
        target = (known.target - fit.level) / fit.spread - known_shift
        weights, logw = _condition(fit, X_known, target, rng, _ask_ratio(fit, known))
        each = np.arange(n_draws)
    else:
        weights = _draw_weights(fit, n_offsets, rng)
        shift, known_shift = _draw_shifts(fit, [rows, known], rng, n_offsets)
        each = np.repeat(np.arange(n_draws), n_offsets)
        tried = _give(fit, known, _run(weights, X_known) + known_shift, each, np.nan)
        logw = log_density(tried, known).sum(axis=1)
    share = softmax(logw)
    effective = 1 / np.sum(np.bincount(each, share) ** 2)  # of posterior draws: offsets of one share all but theirs
    if effective < EFFECTIVE:
        n = len(known.values)
        raise Refused(
            f"the {n} labelled rows of {names.pop()!r} leave {effective:.0f} effective draws; wanted: at least "
            f"{EFFECTIVE}. Give fewer labelled rows, more n_offsets, or fit again with these rows added to the table"
        )
    places = (rng.random() + np.arange(n_draws)) / n_draws
    picked = np.minimum(np.searchsorted(np.cumsum(share), places), len(share) - 1)
    shift = shift[picked] if np.ndim(shift) else shift
    out = _run({name: values[picked] for name, values in weights.items()}, X) + shift
    return _give(fit, rows, out, each[picked], effective)


def _pick_weights(fit: Fit, g: int) -> Weights:
    """Weights of one group of the fit, (draw, …) each."""
    own = [name for name in WEIGHTS if name in fit.draws]
    return {name: fit.draws[name][:, g] if f"{name}_mu" in fit.draws else fit.draws[name] for name in own}


def _draw_weights(fit: Fit, n_offsets: int, rng: np.random.Generator) -> Weights:
    """Weights of a new group, (draw * offset, …) each: mu + sd z with z from its prior."""
    weights = {}
    for name in [name for name in WEIGHTS if name in fit.draws]:
        varies = f"{name}_mu" in fit.draws
        mean = np.repeat(fit.draws[f"{name}_mu" if varies else name], n_offsets, axis=0)
        if varies:
            sd = np.repeat(fit.draws[f"{name}_sd"], n_offsets, axis=0)
            mean = mean + _widen(sd, mean) * rng.normal(size=mean.shape)
        weights[name] = mean
    return weights


def _draw_shifts(fit: Fit, parts: list[Table], rng: np.random.Generator | None, n_offsets: int = 1) -> list[Any]:
    """What second groups add to the outputs of some tables, (draw * offset, row, …) each, or 0 without such groups; one
    that was never seen is drawn from its prior, the same for all tables, or refused without a generator."""
    if "c" not in fit.draws:
        return [0.0] * len(parts)
    there: set[str] = set()
    for part in parts:
        if part.second_group is None:
            raise Refused("the table has no second group; wanted: one, as in the fit")
        there |= {part.second_groups[s] for s in np.unique(part.second_group)}
    new = sorted(there - set(fit.second_groups))
    if new and rng is None:
        known = join(map(repr, fit.second_groups)) + guess(new[0], fit.second_groups)
        raise Refused(
            f"second group {new[0]!r} was not seen; wanted: one of {known}; or a seed, to draw it from its prior"
        )
    c, sd = (np.repeat(fit.draws[name], n_offsets, axis=0) for name in ("c", "c_sd"))
    if rng is not None and new:
        z = rng.normal(size=(len(c), len(new), *c.shape[2:]))
        c = np.concatenate([c, _widen(sd, z) * z], axis=1)
    names = pd.Index([*fit.second_groups, *new])
    return [c[:, names.get_indexer(part.second_groups)[part.second_group]] for part in parts]


def _ask_ratio(fit: Fit, rows: Table) -> Floats | float:
    """`find_ratio` of rows, (row,), beside those of the fit; 1 where nothing is weighted."""
    if fit.weight is None:
        return 1.0
    if rows.weight is None:
        raise Refused("the table has no weights; wanted: a column of them, as in the fit")
    return find_ratio(rows.weight, fit.weight)


def _condition(
    fit: Fit, X: Floats, y: Floats, rng: np.random.Generator, ratio: Floats | float = 1.0
) -> tuple[Weights, Floats]:
    """A new group's weights given rows of its own, one for each draw, and the log likelihood of the rows, (draw,).

    Where the hidden layer is shared, the outcome is linear in the read-out, whose prior is normal.
    """
    draws, prior = fit.draws, _draw_weights(fit, 1, rng)
    h = _hide(prior, X)
    h = np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)  # (draw, obs, hidden + 1)
    mu = np.column_stack([draws["w2_mu"], draws["b2_mu"]])
    w2_sd = np.broadcast_to(_widen(draws["w2_sd"], draws["w2_mu"]), draws["w2_mu"].shape)
    sd = np.column_stack([w2_sd, draws["b2_sd"]])
    noise = draws["noise"][:, None] * np.broadcast_to(ratio, len(X))  # (draw, obs)
    off = (y - (h @ mu[:, :, None])[..., 0]) / noise  # y: (obs,), or (draw, obs) less what second groups add
    scaled = h * sd[:, None] / noise[:, :, None]  # the read-out is mu + sd z, and z standard normal
    root = np.linalg.cholesky(scaled.swapaxes(1, 2) @ scaled + np.eye(h.shape[2]))  # of the precision of z
    along = np.linalg.solve(root, scaled.swapaxes(1, 2) @ off[..., None])
    z = np.linalg.solve(root.swapaxes(1, 2), along + rng.normal(size=along.shape))[..., 0]
    loglik = 0.5 * ((along**2).sum((1, 2)) - (off**2).sum(1)) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
    loglik -= np.log(noise * np.sqrt(2 * np.pi)).sum(axis=1)
    beta = mu + sd * z
    return prior | {"w2": beta[:, :-1], "b2": beta[:, -1]}, loglik


def _hide(weights: Weights, X: Floats) -> Floats:
    """Hidden units, (draw, obs, hidden); of a line, which has none, the features."""
    if "w1" not in weights:
        return np.broadcast_to(X, (len(weights["w2"]), *X.shape))
    return np.tanh(X @ weights["w1"] + weights["b1"][:, None])


def _run(weights: Weights, X: Floats) -> Floats:
    """Outputs of the networks, (draw, obs) or (draw, obs, class)."""
    w2, parts = weights["w2"], []
    for start in range(0, len(w2), BLOCK):  # the hidden units of all draws at once may fill the memory
        block = {name: values[start : start + BLOCK] for name, values in weights.items()}
        out = _hide(block, X) @ (block["w2"] if w2.ndim == 3 else block["w2"][..., None])
        parts.append((out if w2.ndim == 3 else out[..., 0]) + block["b2"][:, None])
    return np.concatenate(parts)


def _give(fit: Fit, rows: Table, out: Floats, each: Places | slice, effective: float) -> Prediction:
    """The Prediction that outputs of some draws make: probabilities, or means and noise in the outcome's unit."""
    effective = float(effective)
    if fit.kind not in NUMBERS:
        if fit.ordered:
            cut = logit(np.cumsum(fit.draws["start"][each], axis=1)[:, None, :-1])
            p = np.diff(expit(cut - out[..., None]), axis=-1, prepend=0.0, append=1.0)
        else:
            p = expit(out) if fit.kind == "binary" else softmax(out, axis=-1)
        return Prediction(p, None, effective, fit.classes)
    noise = fit.draws["noise"][each, None] * fit.spread * _ask_ratio(fit, rows)
    if fit.kind != "counts":
        share, tails = fit.share[0] if fit.share else 0.0, fit.draws.get("tails")
        tails = None if tails is None else tails[each, None]
        return Prediction(fit.level + fit.spread * out, noise, effective, share=share, tails=tails)
    mean = np.exp(fit.level + out)
    return Prediction(mean, disperse(mean, noise), effective, counts=True)
