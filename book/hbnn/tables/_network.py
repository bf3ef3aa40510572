"""A network that was fitted: its draws, more chains until they say enough, and predictions.

Groups that were fitted are predicted by their own networks; one that was never seen, with no labelled rows or a few, by
networks drawn from what the groups have in common.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import expit, logit, ndtri, softmax, stdtrit
from scipy.stats import hmean

from hbnn import diagnostics, sampling
from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Floats
from hbnn.fusion import fuse
from hbnn.prediction import BLOCK
from hbnn.tables._model import Scales, build_network, check_rows, noise_ratio
from hbnn.tables._predictions import (
    INTERVAL,
    PRECISE,
    Precision,
    Prediction,
    count_sd,
    leave_one_out_density,
    log_density,
    measure_precision,
    stacking_weights,
)
from hbnn.tables._table import NUMBERS, Places, Schema, Table, find_groups

if TYPE_CHECKING:
    from nutpie.compile_pymc import CompiledPyMCModel

type Compiled = CompiledPyMCModel
type Sampler = Mapping[str, Any] | None  # chains, draws, tune, target_accept
type Progress = Callable[[str], object]  # takes a line that says how far a function is
type Weights = dict[str, Floats]
WEIGHTS = ("w1", "b1", "w2", "b2")
KEPT = 1000  # draws
EFFECTIVE = 50  # draws, below which a reweighted answer is refused
SAMPLER: dict[str, Any] = {"chains": 4, "draws": 2000, "tune": 1000, "target_accept": 0.95}


@dataclass(frozen=True, kw_only=True)
class Fit(Schema):
    """A fitted network."""

    draws: Weights = field(repr=False)  #: (draw, …), or (draw, group, …) where there is a ``…_sd``; standardised
    scales: Scales  #: `center` and `width` of the features, `level` and `spread` of the outcome, in the table's units
    verdict: diagnostics.Verdict | None = None  #: on predictions of the rows, group sds and the log likelihood
    weight: float | None = None  #: that of a row whose noise is "noise"
    precision: Precision | None = None  #: of predictions of the rows that were asked for
    chain_weights: Floats | None = None  #: (chain,), where chains that disagree were stacked; else all count the same


def say_time(seconds: float) -> str:
    """Text such as "about 1 minute": seconds up to 45, minutes up to 90, then hours."""
    unit, size = ("second", 1) if seconds < 45.5 else ("minute", 60) if seconds < 5430 else ("hour", 3600)
    n = max(round(seconds / size), 1)
    return f"about {n:,} {unit}{'s' * (n > 1)}"


def compile_network(rows: Table, **options: Any) -> Compiled:
    """The network of `build_network`, compiled: for `fit_network` to any of these rows.

    Parameters
    ----------
    rows : Table
    options
        As in `build_network`.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
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


def choose_network(rows: Table, network: Compiled | None, options: dict[str, Any]) -> Compiled:
    """The compiled network, or one that is compiled now; ValueError for both a network and options."""
    if network is not None and options:
        raise ValueError(f"options {', '.join(options)} and a compiled network; wanted: one of them")
    return compile_network(rows, **options) if network is None else network


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
    progress: Progress | None = None,
    **options: Any,
) -> Fit:
    """Sample the network of `build_network` with NUTS (Hoffman and Gelman, 2014), and keep at most 1,000 draws.

    With `asked`, more chains are run, and none is thrown away, until the predictions of these rows are exact enough
    (`Precision.usable`). Where they still are not after `most` runs, chains sit in different places: they are stacked
    (Yao, Vehtari and Gelman, 2022), weighted by how well they, as a mixture, predict rows that are left out, and their
    disagreement is part of what is predicted.

    Parameters
    ----------
    rows : Table
    seed : int
    network : CompiledPyMCModel, optional
        Compiled before for these rows, with options of its own; default: compile it now.
    index : array, optional
        (obs,) places of the rows to learn from; default: all.
    sampler : dict, optional
        What to change in the settings chains, draws, tune and target_accept.
    judged : bool
        Whether to ask for convergence, as `diagnostics.verdict` does.
    asked : Table, optional
        Rows to be predicted, of known groups or new ones; the precision is measured at up to 200 of them.
    most : int
        Runs of `sampler`, at most.
    cores : int
        As in `sampling.sample_nuts`.
    progress : callable, optional
        Called after each run with a line of text: how exact the predictions are, and how long the next run takes.
    options
        As in `build_network`, and refused as there.

    References
    ----------
    - Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15.
    - Yao, Vehtari and Gelman (2022), Stacking for Non-mixing Bayesian Computations, JMLR 23.

    Examples
    --------
    A short run; without `sampler` it is long enough to be judged.

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> short = {"chains": 2, "draws": 200, "tune": 300}
    >>> fit = tables.fit_network(rows, seed=1, n_units=2, sampler=short)
    >>> fit.groups, fit.kind, fit.draws["w2"].shape
    (('a', 'b', 'c'), 'real', (400, 3, 2))
    >>> fit.verdict.converged, fit.verdict.n_draws  # too few draws to be judged
    (False, 400)
    """
    check_seed(seed)
    check_rows(rows)
    settings = {"cores": cores} | merge_sampler(sampler)
    network = choose_network(rows, network, options)
    used = rows if index is None else rows.take(index)
    scales, there = Scales.measure(used), np.unique(used.group)
    schema = {part.name: getattr(rows, part.name) for part in fields(Schema)}
    schema["groups"] = tuple(rows.groups[g] for g in there)
    weight = None if used.weight is None else float(hmean(used.weight))
    data = network.with_data(**_list_data(used, scales))
    later = np.random.SeedSequence(seed).generate_state(most)[1:].tolist()
    start = time.perf_counter()
    tree = sampling.sample_nuts(data, seed=seed, **settings)
    while True:
        posterior = _read_weights(tree, there)
        flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in posterior.items()}
        fit, n_chains = Fit(draws=flat, scales=scales, weight=weight, **schema), len(posterior["w2"])
        if asked is None:
            break
        fit = replace(fit, precision=(precision := _measure_fit(fit, asked, n_chains, seed)))
        if precision.usable or not later:
            break
        if progress is not None:
            each = say_time((time.perf_counter() - start) / (most - len(later)))
            longer = f"{settings['chains']} more take {each}, at most {len(later)} time{'s' * (len(later) > 1)}"
            found = f"known to {precision.share:.0%} of an outcome's sd, where {PRECISE:.0%} is wanted"
            progress(f"  {n_chains} chains: {found}; {longer}")
        tree = sampling.join_chains(tree, sampling.sample_nuts(data, seed=later.pop(0), **settings))
    verdict = _judge_chains(fit, used, posterior, tree) if judged else None
    return _thin_draws(replace(fit, verdict=verdict), used, n_chains)


def _list_data(rows: Table, scales: Scales) -> dict[str, Any]:
    """The data of a compiled network that learns from these rows."""
    data: dict[str, Any] = {"X": scales.scale_features(rows), "seen": scales.scale_outcome(rows), "g": rows.group}
    data |= {"level": scales.level} if rows.kind == "counts" else {}
    data |= {"s": rows.second_group} if rows.second_group is not None else {}
    return data | ({} if rows.weight is None else {"ratio": noise_ratio(rows.weight)})


def _thin_draws(fit: Fit, rows: Table, n_chains: int) -> Fit:
    """The fit with at most KEPT of its draws, of chains as their weights say where they do not say enough together."""
    n, weights = len(fit.draws["w2"]), None
    kept = np.arange(0, n, -(-n // KEPT))
    if fit.precision is not None and not fit.precision.usable:
        weights = _stack_chains(fit, rows, n_chains)
        ends, length = np.round(np.cumsum(weights) * KEPT).astype(int), n // n_chains
        shares = np.diff(ends, prepend=0)
        kept = np.concatenate([c * length + np.arange(k) * length // max(k, 1) for c, k in enumerate(shares)])
    draws = {name: values[kept].copy() for name, values in fit.draws.items()}
    return replace(fit, draws=draws, chain_weights=weights)


def _read_weights(tree: xr.DataTree, there: Places) -> Weights:
    """Weights of all networks, (chain, draw, …), of the groups that are there."""
    posterior = {str(name): values.values for name, values in tree["posterior"].to_dataset().items()}
    for name in [name for name in WEIGHTS if f"{name}_z" in posterior]:
        z = posterior.pop(f"{name}_z")[:, :, there]
        mu = posterior.setdefault(f"{name}_mu", np.zeros(z[:, :, 0].shape))
        posterior[name] = mu[:, :, None] + _match_axes(posterior[f"{name}_sd"], mu)[:, :, None] * z
    if "c_z" in posterior:
        z = posterior.pop("c_z")
        posterior["c"] = _match_axes(posterior["c_sd"], z) * z
    return {name: values for name, values in posterior.items() if not name.endswith("__")}


def _match_axes(sd: Floats, mu: Floats) -> Floats:
    """Group sds with as many axes as the means: one for all of them, or one for each."""
    return sd.reshape(*sd.shape, *[1] * (mu.ndim - sd.ndim))


def _pick_rows(rows: Table, most: int) -> Table:
    """At most so many rows, from all over the table."""
    return rows.take(np.unique(np.linspace(0, len(rows.values) - 1, most).astype(int)))


def _measure_fit(fit: Fit, asked: Table, n_chains: int, seed: int) -> Precision:
    """The precision of predictions of up to 200 rows, of known groups and of new ones."""
    predicted = predict(fit, _pick_rows(asked, 200), seed=seed)
    means, noise = predicted.to_unit()
    draws = means.reshape(n_chains, -1, *means.shape[1:])
    if predicted.tails is not None and noise is not None:  # the sd of a normal whose interval is as wide
        noise = noise * stdtrit(predicted.tails, (1 + INTERVAL) / 2) / ndtri((1 + INTERVAL) / 2)
    return measure_precision(draws, None if noise is None else noise.reshape(n_chains, -1, noise.shape[1]))


def _stack_chains(fit: Fit, rows: Table, n_chains: int) -> Floats:
    """Weights of chains, (chain,), from up to 1,000 of the rows that they have seen, each left out in turn."""
    rows, lpd = _pick_rows(rows, 1000), []
    for part in range(n_chains):
        own = {name: np.split(values, n_chains)[part] for name, values in fit.draws.items()}
        lpd.append(leave_one_out_density(log_density(predict(replace(fit, draws=own), rows), rows)))
    return stacking_weights(np.array(lpd))


def _judge_chains(fit: Fit, rows: Table, posterior: Weights, tree: xr.DataTree) -> diagnostics.Verdict:
    """The verdict on up to 200 rows spread over the table."""
    rows = _pick_rows(rows, 200)
    predicted, shape = predict(fit, rows), posterior["w2"].shape[:2]
    draws = predicted.draws[..., 1:] if fit.kind == "classes" else predicted.draws
    asked = {"data": draws.reshape(*shape, -1), "log likelihood": log_density(predicted, rows).sum(1).reshape(shape)}
    asked |= {name: values for name, values in posterior.items() if name.endswith("_sd") or name in ("noise", "tails")}
    return diagnostics.verdict(asked, tree)


def predict(fit: Fit, rows: Table, *, seed: int | None = None) -> Prediction:
    """What the networks of a fit say of each row.

    Parameters
    ----------
    rows : Table
        With the features of the fit; an outcome is not used.
    seed : int, optional
        To draw the networks of groups that were never seen from their prior, one for each draw; None refuses such
        groups.

    Raises
    ------
    Refused
        For other features, or in another order, and an unknown group without a seed.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> fit = tables.fit_network(rows, seed=1, n_units=0, sampler={"chains": 2, "draws": 200, "tune": 300})
    >>> tables.predict(fit, rows).draws.shape  # draws of the mean at each row
    (400, 60)
    >>> new = tables.read_table(frame.assign(field="d"), group="field", features=["rain"], outcome=None)
    >>> tables.predict(fit, new, seed=1).draws.shape
    (400, 60)
    """
    if seed is not None:
        check_seed(seed)
    place = find_groups(
        rows, fit.features, fit.groups, new=seed is not None, instead="; or a seed, to draw it from its prior"
    )
    X, rng, n_draws = fit.scales.scale_features(rows), np.random.default_rng(seed), len(fit.draws["w2"])
    draws = np.empty((n_draws, len(X), *fit.draws["b2_mu"].shape[1:]))
    for g in np.unique(rows.group):
        where = np.flatnonzero(rows.group == g)
        known = place[where[0]]
        weights = _draw_new_weights(fit, 1, rng) if known < 0 else _take_group_weights(fit, known)
        draws[:, where] = _compute_outputs(weights, X[where])
    apart = None if seed is None else np.random.default_rng([seed, 1])  # no group's draws hang on second groups
    draws += _add_second_groups(fit, [rows], apart)[0]
    return _make_prediction(fit, rows, draws, slice(None), float(len(draws)))


def predict_new_group(
    fit: Fit, rows: Table, known: Table | None = None, *, seed: int, n_offsets: int = 20
) -> Prediction:
    """What is to be expected in a group that was never seen, with no labelled rows of its own, or a few.

    Given each draw of means and group sds, the group's offsets have a known prior. With labelled rows, the draws are
    weighted by the likelihood of these rows, and offsets are drawn given the rows: exactly (Bishop, 2006) where only
    the read-out of a real outcome differs between groups, else both at once by self-normalised importance sampling
    (Owen, 2013).

    Parameters
    ----------
    rows : Table
        Of one group, to predict.
    known : Table, optional
        Of the same group, with the outcome.
    seed : int
    n_offsets : int
        Networks tried for each draw where there are labelled rows.

    Raises
    ------
    Refused
        For other features, several groups, one that is in the fit, another outcome, and labelled rows that leave fewer
        than 50 effective draws: they say too much for what was drawn without them.

    References
    ----------
    - Bishop (2006), Pattern Recognition and Machine Learning, section 3.3.
    - Owen (2013), Monte Carlo Theory, Methods and Examples, chapter 9.

    Examples
    --------
    With three rows of a new field known, less is left open:

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> fit = tables.fit_network(rows, seed=1, n_units=0, sampler={"chains": 2, "draws": 200, "tune": 300})
    >>> new = tables.read_table(frame.assign(field="d"), group="field", features=["rain"], outcome="wheat")
    >>> both = [tables.predict_new_group(fit, new, known, seed=1) for known in (None, new.take(slice(3)))]
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
    X, X_known = (fit.scales.scale_features(part) for part in (rows, known))
    known = replace(known, share=fit.share)
    exact = fit.kind in ("real", "share") and "w1_mu" not in fit.draws and "w2_mu" in fit.draws
    if exact:
        shift, known_shift = _add_second_groups(fit, [rows, known], rng)
        target = fit.scales.scale_outcome(known) - known_shift
        weights, logw = _condition_readout(fit, X_known, target, rng, _compare_noise(fit, known))
        each = np.arange(n_draws)
    else:
        weights = _draw_new_weights(fit, n_offsets, rng)
        shift, known_shift = _add_second_groups(fit, [rows, known], rng, n_offsets)
        each = np.repeat(np.arange(n_draws), n_offsets)
        tried = _make_prediction(fit, known, _compute_outputs(weights, X_known) + known_shift, each, np.nan)
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
    out = _compute_outputs({name: values[picked] for name, values in weights.items()}, X) + shift
    return _make_prediction(fit, rows, out, each[picked], effective)


def _take_group_weights(fit: Fit, g: int) -> Weights:
    """Weights of one group of the fit, (draw, …) each."""
    own = [name for name in WEIGHTS if name in fit.draws]
    return {name: fit.draws[name][:, g] if f"{name}_mu" in fit.draws else fit.draws[name] for name in own}


def _draw_new_weights(fit: Fit, n_offsets: int, rng: np.random.Generator) -> Weights:
    """Weights of a new group, (draw * offset, …) each: mu + sd z with z from its prior."""
    weights = {}
    for name in [name for name in WEIGHTS if name in fit.draws]:
        varies = f"{name}_mu" in fit.draws
        mean = np.repeat(fit.draws[f"{name}_mu" if varies else name], n_offsets, axis=0)
        if varies:
            sd = np.repeat(fit.draws[f"{name}_sd"], n_offsets, axis=0)
            mean = mean + _match_axes(sd, mean) * rng.normal(size=mean.shape)
        weights[name] = mean
    return weights


def _add_second_groups(fit: Fit, parts: list[Table], rng: np.random.Generator | None, n_offsets: int = 1) -> list[Any]:
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
        c = np.concatenate([c, _match_axes(sd, z) * z], axis=1)
    names = pd.Index([*fit.second_groups, *new])
    return [c[:, names.get_indexer(part.second_groups)[part.second_group]] for part in parts]


def _compare_noise(fit: Fit, rows: Table) -> Floats | float:
    """`noise_ratio` of rows, (row,), beside those of the fit; 1 where nothing is weighted."""
    if fit.weight is None:
        return 1.0
    if rows.weight is None:
        raise Refused("the table has no weights; wanted: a column of them, as in the fit")
    return noise_ratio(rows.weight, fit.weight)


def _condition_readout(
    fit: Fit, X: Floats, y: Floats, rng: np.random.Generator, ratio: Floats | float = 1.0
) -> tuple[Weights, Floats]:
    """A new group's weights given rows of its own, one for each draw, and the log likelihood of the rows, (draw,).

    Where the hidden layer is shared, the outcome is linear in the read-out, whose prior is normal.
    """
    draws, prior = fit.draws, _draw_new_weights(fit, 1, rng)
    h = _compute_hidden(prior, X)
    h = np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)  # (draw, obs, hidden + 1)
    mu = np.column_stack([draws["w2_mu"], draws["b2_mu"]])
    w2_sd = np.broadcast_to(_match_axes(draws["w2_sd"], draws["w2_mu"]), draws["w2_mu"].shape)
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


def _compute_hidden(weights: Weights, X: Floats) -> Floats:
    """Hidden units, (draw, obs, hidden); of a line, which has none, the features."""
    if "w1" not in weights:
        return np.broadcast_to(X, (len(weights["w2"]), *X.shape))
    return np.tanh(X @ weights["w1"] + weights["b1"][:, None])


def _compute_outputs(weights: Weights, X: Floats) -> Floats:
    """Outputs of the networks, (draw, obs) or (draw, obs, class)."""
    w2, parts = weights["w2"], []
    for start in range(0, len(w2), BLOCK):  # the hidden units of all draws at once may fill the memory
        block = {name: values[start : start + BLOCK] for name, values in weights.items()}
        out = _compute_hidden(block, X) @ (block["w2"] if w2.ndim == 3 else block["w2"][..., None])
        parts.append((out if w2.ndim == 3 else out[..., 0]) + block["b2"][:, None])
    return np.concatenate(parts)


def _make_prediction(fit: Fit, rows: Table, out: Floats, each: Places | slice, effective: float) -> Prediction:
    """The Prediction that outputs of some draws make: probabilities, or means and noise in the outcome's unit."""
    effective = float(effective)
    if fit.kind not in NUMBERS:
        if fit.ordered:
            cut = logit(np.cumsum(fit.draws["start"][each], axis=1)[:, None, :-1])
            p = np.diff(expit(cut - out[..., None]), axis=-1, prepend=0.0, append=1.0)
        else:
            p = expit(out) if fit.kind == "binary" else softmax(out, axis=-1)
        return Prediction(p, None, effective, fit.classes)
    noise = fit.draws["noise"][each, None] * fit.scales.spread * _compare_noise(fit, rows)
    if fit.kind != "counts":
        share, tails = fit.share[0] if fit.share else 0.0, fit.draws.get("tails")
        tails = None if tails is None else tails[each, None]
        return Prediction(fit.scales.level + fit.scales.spread * out, noise, effective, share=share, tails=tails)
    mean = np.exp(fit.scales.level + out)
    return Prediction(mean, count_sd(mean, noise), effective, counts=True)
