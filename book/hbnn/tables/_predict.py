"""What a fitted network says of rows: of groups that it was fitted to, and of groups that were never seen.

Groups that were fitted are predicted by their own networks; one that was never seen, with no labelled rows or a few, by
networks drawn from what the groups have in common.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, expit, logit, logsumexp, ndtr, ndtri, softmax
from scipy.stats import nbinom, norm

from hbnn import diagnostics, metrics
from hbnn._checks import check_seed
from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Array, Floats
from hbnn.tables._read import NUMBERS, Kind, Places, Schema, Split, Table, find_groups

if TYPE_CHECKING:
    import pymc as pm

type Weights = dict[str, Floats]
WEIGHTS = ("w1", "b1", "w2", "b2")
BLOCK = 100  # draws at once
OFFSETS = 20  # networks tried for each draw where rows of a new group are known
EFFECTIVE = 50  # draws, below which a reweighted answer is refused
PRECISE = 0.1  # of an outcome's standard deviation: a mean that is so far off costs 0.005 nats of log score
INTERVAL = 0.9
FIGURES = ("probability", "low", "high", "noise", "ignorance")
REAL_FIGURES = ("mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance")


# --- what is handed on: a fit, and a prediction


@dataclass(frozen=True)
class Scales:
    """What features and outcome of a table are standardised by, in its units."""

    center: Floats  #: (feature,)
    width: Floats
    level: float  #: mean of a real outcome, in its unit, of logits of shares, or log of that of counts
    spread: float  #: its standard deviation

    @classmethod
    def measure(cls, rows: Table) -> "Scales":
        """Those of a table with an outcome."""
        y, level, spread = rows.target, 0.0, 1.0
        if rows.kind in ("real", "share"):
            level, spread = y.mean(), y.std() or 1.0
        elif rows.kind == "counts":
            level = np.log(max(rows.y.mean(), 1 / len(rows.y)))
        return cls(*measure_columns(rows.values), float(level), float(spread))

    def scale_features(self, rows: Table) -> Floats:
        """Standardised features, (row, feature)."""
        return (rows.values - self.center) / self.width

    def scale_outcome(self, rows: Table) -> Array:
        """The standardised outcome, (row,); counts and classes as they are."""
        return (rows.target - self.level) / self.spread if rows.kind in ("real", "share") else rows.target


def measure_columns(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of (obs, feature) values, (feature,) each; of a constant, in a fold, itself and 1."""
    varies = np.ptp(values, axis=0) > 0
    return np.where(varies, values.mean(axis=0), values[0]), np.where(varies, values.std(axis=0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Fit(Schema):
    """A fitted network."""

    draws: Weights = field(repr=False)  #: (draw, …), or (draw, group, …) where there is a ``…_sd``; standardised
    scales: Scales  #: `center` and `width` of the features, `level` and `spread` of the outcome, in the table's units
    precision: "Precision | None" = None  #: of predictions of the rows that were asked for


@dataclass(frozen=True)
class Prediction:
    """Draws of what is predicted for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import tables
    >>> tables.Prediction(np.full((1, 3), 0.5)).kind, tables.Prediction(np.zeros((1, 3)), noise=np.ones((1, 1))).kind
    ('binary', 'real')
    """

    draws: Floats  #: (draw, row), probabilities of the second of two classes or means; (draw, row, class)
    noise: Floats | None = None  #: (draw, 1) or (draw, row), sd of a number about its mean, in its unit
    classes: tuple[str, ...] = ()  #: of several, in the order of the last axis of `draws`; () for two, or a number
    counts: bool = False  #: whether the number is a count, negative binomial about its mean; else it is normal
    share: float = 0.0  #: 1 or 100, where the number is a share of it, whose logit `draws` and `noise` are about

    @property
    def kind(self) -> Kind:
        """Of the outcome."""
        if self.noise is not None:
            return "counts" if self.counts else "share" if self.share else "real"
        return "classes" if self.draws.ndim == 3 else "binary"

    def to_unit(self) -> tuple[Floats, Floats | None]:
        """Means and noise in the outcome's unit, as (draw, row): of shares, over the normal noise of their logit."""
        if not self.share or self.noise is None:
            return self.draws, self.noise
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        each = [self.share * expit(self.draws + self.noise * node) for node in nodes]
        mean, square = (np.tensordot(weights / weights.sum(), part, axes=1) for part in (each, np.square(each)))
        return mean, np.sqrt(np.maximum(square - mean**2, 0))


@dataclass(frozen=True)
class Precision:
    """How exactly the draws of several chains say what is handed out at some rows."""

    #: (row,), the largest Monte Carlo standard error of the mean and of the ends of the 90 % intervals of the mean and
    #: of the outcome: in its unit, or of a probability
    error: Floats
    spread: Floats  #: (row,), standard deviation of an outcome, noise and ignorance together
    ignorance: Floats  #: (row,), of the mean, or of a probability, over draws

    @property
    def share(self) -> float:
        """The error of the worst row as a share of its outcome's standard deviation."""
        return float(np.max(self.error / self.spread))

    @property
    def usable(self) -> bool:
        """Whether no error is larger than a tenth of the outcome's standard deviation."""
        return self.share <= PRECISE

    def __str__(self) -> str:
        """The errors beside the outcome's spread, in a sentence or two."""
        worst = int(np.argmax(self.error / self.spread))
        parts = (self.error, self.spread, self.ignorance)
        error, spread, ignorance = (np.format_float_positional(x[worst], 2, fractional=False, trim="-") for x in parts)
        found = f"Another run would move means and interval ends by about {error} at the worst row, where an outcome's "
        found += f"sd is {spread} (ignorance alone: {ignorance}). "
        if self.usable:
            return f"{found}That is exact enough to use: {self.share:.0%} of it."
        n, many = np.sum(self.error > PRECISE * self.spread), len(self.error)
        wanted = f"where {PRECISE:.0%} is allowed; it is too much at {n:,} of {many:,} rows"
        return f"{found}That is not exact enough: {self.share:.0%} of it, {wanted}."


def measure_precision(draws: Floats, noise: Floats | None = None) -> Precision:
    """Monte Carlo errors of the means of some rows, and of the ends of their intervals, from draws (chain, draw, row)
    or (chain, draw, row, class), and the sd of a number about its mean, (chain, draw, 1) or (chain, draw, row).

    Effective draws count disagreement between chains (Vehtari et al., 2021, Bayesian Analysis 16).
    """
    asked = draws.reshape(*draws.shape[:2], -1)
    flat, error = asked.reshape(-1, asked.shape[2]), diagnostics.diagnose(asked)["mcse"]
    if noise is not None:  # the ends of an outcome's interval move with the noise, too
        far = ndtri((1 + INTERVAL) / 2) * noise
        error = np.maximum.reduce([error, *(diagnostics.diagnose(asked + side * far)["mcse"] for side in (-1, 1))])
    ordered = np.sort(flat, axis=0)
    for share in ((1 - INTERVAL) / 2, (1 + INTERVAL) / 2):
        below = (asked <= np.quantile(flat, share, axis=0)).astype(float)
        off = diagnostics.diagnose(below)["mcse"]  # of the share below, and so of the quantile
        places = np.clip(np.array([share - off, share + off]) * len(flat), 0, len(flat) - 1).astype(int)
        error = np.maximum(error, np.ptp(np.take_along_axis(ordered, places, axis=0), axis=0) / 2)
    mean, ignorance = flat.mean(axis=0), flat.std(axis=0)
    width = mean * (1 - mean) if noise is None else ignorance**2 + np.mean(noise**2, axis=(0, 1))
    parts = [error, np.sqrt(np.maximum(width, 1e-12)), ignorance]
    if draws.ndim == 4:  # of each row, the class that is known least
        by_class = (parts[0] / parts[1]).reshape(draws.shape[2:]).argmax(axis=1)[:, None]
        parts = [np.take_along_axis(part.reshape(draws.shape[2:]), by_class, axis=1)[:, 0] for part in parts]
    return Precision(*parts)


# --- by the networks of a fit


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
    Goes on from `fit_network`.

    >>> tables.predict(fit, rows).draws.shape  # draws of the mean at each row
    (400, 60)
    >>> new = tables.read_table(frame.assign(field="d"), group="field", features=["rain"], outcome=None)
    >>> tables.predict(fit, new, seed=1).draws.shape
    (400, 60)
    """
    if seed is not None:
        check_seed(seed)
    instead = "; or a seed, to draw it from its prior"
    place = find_groups(rows, fit.features, fit.groups, new=seed is not None, instead=instead)
    X, rng, n_draws = fit.scales.scale_features(rows), np.random.default_rng(seed), len(fit.draws["w2"])
    draws = np.empty((n_draws, len(X), *fit.draws["b2_mu"].shape[1:]))
    for g in np.unique(rows.group):
        where = np.flatnonzero(rows.group == g)
        known = place[where[0]]
        weights = _draw_new_weights(fit, 1, rng) if known < 0 else _take_group_weights(fit, known)
        draws[:, where] = _compute_outputs(weights, X[where])
    apart = None if seed is None else np.random.default_rng([seed, 1])  # no group's draws hang on second groups
    draws += _add_second_groups(fit, [rows], apart)[0]
    return _make_prediction(fit, draws, slice(None))


def predict_new_group(fit: Fit, rows: Table, known: Table | None = None, *, seed: int) -> Prediction:
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
    Goes on from `fit_network`. With three rows of a new field known, less is left open:

    >>> new = tables.read_table(frame.assign(field="d"), group="field", features=["rain"], outcome="wheat")
    >>> both = [tables.predict_new_group(fit, new, known, seed=1) for known in (None, new.take(slice(3)))]
    >>> before, after = (predicted.draws.std(axis=0).mean() for predicted in both)
    >>> bool(after < before)
    True
    """
    check_seed(seed)
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
    if fit.kind in ("real", "share") and "w1_mu" not in fit.draws and "w2_mu" in fit.draws:
        shift, known_shift = _add_second_groups(fit, [rows, known], rng)
        target = fit.scales.scale_outcome(known) - known_shift
        weights, logw = _condition_readout(fit, X_known, target, rng)
        each = np.arange(n_draws)
    else:
        weights = _draw_new_weights(fit, OFFSETS, rng)
        shift, known_shift = _add_second_groups(fit, [rows, known], rng, OFFSETS)
        each = np.repeat(np.arange(n_draws), OFFSETS)
        tried = _make_prediction(fit, _compute_outputs(weights, X_known) + known_shift, each)
        logw = log_density(tried, known).sum(axis=1)
    share = softmax(logw)
    effective = 1 / np.sum(np.bincount(each, share) ** 2)  # of posterior draws: offsets of one share all but theirs
    if effective < EFFECTIVE:
        raise Refused(
            f"the {len(known.values)} labelled rows of {names.pop()!r} leave {effective:.0f} effective draws; wanted: "
            f"at least {EFFECTIVE}. Give fewer labelled rows, or fit again with these rows added"
        )
    places = (rng.random() + np.arange(n_draws)) / n_draws
    picked = np.minimum(np.searchsorted(np.cumsum(share), places), len(share) - 1)
    shift = shift[picked] if np.ndim(shift) else shift
    out = _compute_outputs({name: values[picked] for name, values in weights.items()}, X) + shift
    return _make_prediction(fit, out, each[picked])


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
            mean = mean + match_axes(sd, mean) * rng.normal(size=mean.shape)
        weights[name] = mean
    return weights


def _add_second_groups(fit: Fit, parts: list[Table], rng: np.random.Generator | None, n_offsets: int = 1) -> list[Any]:
    """What second groups add to the outputs of some tables, (draw * offset, row, …) each, or 0 without such groups; one
    that was never seen is drawn from its prior, the same for all tables, or refused without a generator."""
    if "c" not in fit.draws:
        return [0.0] * len(parts)
    if any(part.second_group is None for part in parts):
        raise Refused("the table has no second group; wanted: one, as in the fit")
    new = sorted({part.second_groups[s] for part in parts for s in part.second_group} - set(fit.second_groups))  # type: ignore[union-attr]
    if new and rng is None:
        known = join(map(repr, fit.second_groups)) + guess(new[0], fit.second_groups)
        wanted = f"one of {known}; or a seed, to draw it from its prior"
        raise Refused(f"second group {new[0]!r} was not seen; wanted: {wanted}")
    c, sd = (np.repeat(fit.draws[name], n_offsets, axis=0) for name in ("c", "c_sd"))
    if rng is not None and new:
        z = rng.normal(size=(len(c), len(new), *c.shape[2:]))
        c = np.concatenate([c, match_axes(sd, z) * z], axis=1)
    names = pd.Index([*fit.second_groups, *new])
    return [c[:, names.get_indexer(part.second_groups)[part.second_group]] for part in parts]


def _condition_readout(fit: Fit, X: Floats, y: Floats, rng: np.random.Generator) -> tuple[Weights, Floats]:
    """A new group's weights given rows of its own, one for each draw, and the log likelihood of the rows, (draw,).

    Where the hidden layer is shared, the outcome is linear in the read-out, whose prior is normal.
    """
    draws, prior = fit.draws, _draw_new_weights(fit, 1, rng)
    h = _compute_hidden(prior, X)
    h = np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)  # (draw, obs, hidden + 1)
    mu = np.column_stack([draws["w2_mu"], draws["b2_mu"]])
    w2_sd = np.broadcast_to(match_axes(draws["w2_sd"], draws["w2_mu"]), draws["w2_mu"].shape)
    sd = np.column_stack([w2_sd, draws["b2_sd"]])
    noise = draws["noise"][:, None]
    off = (y - (h @ mu[:, :, None])[..., 0]) / noise  # y: (obs,), or (draw, obs) less what second groups add
    scaled = h * sd[:, None] / noise[:, :, None]  # the read-out is mu + sd z, and z standard normal
    root = np.linalg.cholesky(scaled.swapaxes(1, 2) @ scaled + np.eye(h.shape[2]))  # of the precision of z
    along = np.linalg.solve(root, scaled.swapaxes(1, 2) @ off[..., None])
    z = np.linalg.solve(root.swapaxes(1, 2), along + rng.normal(size=along.shape))[..., 0]
    loglik = 0.5 * ((along**2).sum((1, 2)) - (off**2).sum(1)) - np.log(np.diagonal(root, axis1=1, axis2=2)).sum(1)
    loglik -= len(X) * np.log(noise * np.sqrt(2 * np.pi))[:, 0]
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


def match_axes(sd: Floats, mu: Floats) -> Floats:
    """Group sds with as many axes as the means: one for all of them, or one for each."""
    return sd.reshape(*sd.shape, *[1] * (mu.ndim - sd.ndim))


def _make_prediction(fit: Fit, out: Floats, each: Places | slice) -> Prediction:
    """The Prediction that outputs of some draws make: probabilities, or means and noise in the outcome's unit."""
    if fit.kind not in NUMBERS:
        if fit.ordered:
            cut = logit(np.cumsum(fit.draws["start"][each], axis=1)[:, None, :-1])
            p = np.diff(expit(cut - out[..., None]), axis=-1, prepend=0.0, append=1.0)
        else:
            p = expit(out) if fit.kind == "binary" else softmax(out, axis=-1)
        return Prediction(p, None, fit.classes)
    noise = fit.draws["noise"][each, None] * fit.scales.spread
    if fit.kind == "counts":
        mean = np.exp(fit.scales.level + out)
        return Prediction(mean, count_sd(mean, noise), counts=True)
    share = fit.share[0] if fit.share else 0.0
    return Prediction(fit.scales.level + fit.scales.spread * out, noise, share=share)


def predict_rows(model: "pm.Model", draws: xr.Dataset | xr.DataTree, split: Split, rows: Table) -> Floats:
    """The mean outcome of each row by the network of its group, in a model of your own that saw a split.

    Parameters
    ----------
    model : pm.Model
        Typed or fused, as in `hbnn.predict`; its groups are those of the split, in an axis or in rows.
    draws : Dataset or DataTree
        Of its free variables, (chain, draw, …).
    split : Split
    rows : Table
        The same table or another one with the same features; an outcome is not used.

    Returns
    -------
    array
        (chain, draw, row).

    Raises
    ------
    Refused, ValueError
        For other features, or in another order, and an unknown group; and as `hbnn.predict`.

    Examples
    --------
    Goes on from `split_rows`. Draws from the prior stand for a posterior:

    >>> import numpy as np
    >>> import pymc as pm
    >>> X, y = np.concatenate(split.X_train), np.concatenate(split.y_train)
    >>> g = np.repeat(range(3), 10)
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", shape=(3, 5)), pm.Normal("w2", shape=(3, 5))
    ...     labels = pm.Bernoulli("y", logit_p=(pm.math.tanh(X * w1[g]) * w2[g]).sum(axis=1), observed=y)
    ...     tree = pm.sample_prior_predictive(25, random_seed=1)
    >>> tables.predict_rows(model, tree["prior"], split, rows).shape
    (1, 25, 60)
    """
    from hbnn import prediction as networks

    group = find_groups(rows, split.features, split.groups)
    return networks.predict(model, draws, split.scale(rows.values), groups=group).values


# --- scores and figures


def count_sd(mean: Floats, dispersion: Floats | float) -> Floats:
    """Standard deviation of counts whose rates vary by a share of their mean: none is a Poisson."""
    return np.sqrt(mean + (dispersion * mean) ** 2)


def _find_shape(mean: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """n and p of SciPy's negative binomial; below a dispersion of 0.001 it is as good as a Poisson."""
    n = 1 / np.maximum((noise**2 - mean) / mean**2, 1e-6)
    return n, n / (n + mean)


def find_below(prediction: Prediction, value: Floats) -> Floats:
    """Probability under each draw, (draw, row), of a number not above the value, (row,)."""
    if not prediction.counts:
        return ndtr((value - prediction.draws) / prediction.noise)  # type: ignore[operator]
    n, p = _find_shape(prediction.draws, np.asarray(prediction.noise))
    return np.where(value < 0, 0.0, betainc(n, np.maximum(value, 0) + 1, p))


def log_density(prediction: Prediction, rows: Table) -> Floats:
    """Log density of each row's outcome under each draw, (draw, row), nats; of a real outcome, or a share, per its
    unit."""
    draws = prediction.draws
    if prediction.counts:
        return nbinom.logpmf(rows.y, *_find_shape(draws, np.asarray(prediction.noise)))
    if prediction.noise is not None:
        found = norm.logpdf(rows.target, draws, prediction.noise)
        return found - np.log(rows.share[0] * expit(rows.target) * expit(-rows.target)) if rows.share else found
    if prediction.kind == "binary":
        return metrics.log_likelihood(draws, rows.y)
    return np.log(np.maximum(np.take_along_axis(draws, rows.y[None, :, None], axis=2)[..., 0], metrics.FLOOR))


def score_rows(prediction: Prediction | ArrayLike, rows: Table) -> Floats:
    """Log predictive density of each row, (row,), nats: the mean over draws is taken of the density.

    Parameters
    ----------
    prediction : Prediction or array
        Of these rows; or (…, row) probabilities of the second of two classes.
    rows : Table

    Examples
    --------
    Goes on from `read_table`.

    >>> import numpy as np
    >>> sorted(set(np.exp(tables.score_rows(np.full((2, 60), 0.4), rows)).round(2).tolist()))
    [0.4, 0.6]
    """
    prediction = to_prediction(prediction, rows)
    if prediction.kind != rows.kind:
        raise Refused(f"a prediction of kind {prediction.kind!r} for rows of kind {rows.kind!r}; wanted: one kind")
    return logsumexp(log_density(prediction, rows), axis=0) - np.log(len(prediction.draws))


def to_prediction(prediction: Prediction | ArrayLike, rows: Table) -> Prediction:
    """Probabilities as a Prediction; ValueError for one of other rows."""
    if not isinstance(prediction, Prediction):
        p = np.atleast_1d(np.asarray(prediction, dtype=float))
        prediction = Prediction(p.reshape(-1, p.shape[-1]))
    if prediction.draws.shape[1] != len(rows.values):
        raise ValueError(f"a prediction of {prediction.draws.shape[1]} rows; wanted: {len(rows.values)}")
    return prediction


def name_figures(kind: Kind | None, classes: Sequence[str]) -> tuple[str, ...]:
    """Columns that predictions of a kind of outcome have, beside those that the table gives."""
    if kind in NUMBERS:
        return REAL_FIGURES
    return (*(f"p_{name}" for name in classes), "class", *FIGURES) if kind == "classes" else FIGURES


def check_names(rows: Table, names: tuple[str, ...]) -> None:
    """Refuse a table whose ids, group or outcome are called as one of the columns to be added."""
    if both := [name for name in (*rows.ids, *rows.columns.values()) if name in names]:
        raise Refused(f"the table has a column {both[0]!r}, and so have the predictions; wanted: another name")


def tabulate_predictions(
    rows: Table, prediction: Prediction | ArrayLike, *, interval: float = 0.9, extra: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """What is predicted for each row, and how uncertain that is.

    Parameters
    ----------
    rows : Table
    prediction : Prediction or array
        As in `score_rows`; of a single draw, as of a rival that is no posterior, nothing can be said of ignorance, and
        what hangs on it is NaN (an empty field in the file).
    interval : float
        Share between "low" and "high"; all intervals are equal-tailed.
    extra : dict, optional
        Further columns, (row,) or one value for all.

    Returns
    -------
    DataFrame
        The ids, groups and outcome (where there is one), `extra`, and then for two classes "probability" of the second,
        "low" and "high" (quantiles over draws), "noise" and "ignorance" (bits, as in `metrics.split_uncertainty`); for
        several ``p_<class>`` each, the most probable "class", and the same figures of it; for a number "mean" with
        "mean_low" and "mean_high", the interval of the mean, "low" and "high", that of the outcome itself (of counts
        whole numbers), "noise" (its standard deviation about the mean) and "ignorance" (that of the mean over draws),
        all in its unit.

    Raises
    ------
    Refused, ValueError
        For a column with the name of a new one; for a prediction of other rows and an odd interval.

    Examples
    --------
    Goes on from `read_table`.

    >>> import numpy as np
    >>> tables.tabulate_predictions(rows, np.random.default_rng(1).uniform(size=(100, 60))).columns.tolist()
    ['row', 'field', 'good', 'probability', 'low', 'high', 'noise', 'ignorance']
    """
    prediction = to_prediction(prediction, rows)
    draws, kind, extra = prediction.draws, prediction.kind, dict(extra or {})
    if not 0 < interval < 1:
        raise ValueError(f"interval={interval}; wanted: 0 < interval < 1")
    names = name_figures(kind, prediction.classes)
    check_names(rows, (*extra, *names))
    ends = np.array([(1 - interval) / 2, (1 + interval) / 2])
    given = rows.ids | {rows.columns["group"]: np.array(rows.groups, dtype=object)[rows.group]}
    if rows.second_group is not None:
        given |= {rows.columns["second_group"]: np.array(rows.second_groups, dtype=object)[rows.second_group]}
    if rows.y is not None:
        has_names = rows.kind not in NUMBERS and rows.classes != ("0", "1")
        given |= {rows.columns["outcome"]: np.array(rows.classes, dtype=object)[rows.y] if has_names else rows.y}
    if prediction.noise is not None:
        unknown = ("ignorance", "mean_low", "mean_high")
        draws, own_noise = prediction.to_unit()
        outcome = [_find_quantile(prediction, end) for end in ends]
        noise = np.broadcast_to(np.sqrt(np.mean(own_noise**2, axis=0)), draws.shape[1])  # type: ignore[operator]
        figures = [draws.mean(axis=0), *np.quantile(draws, ends, axis=0), *outcome, noise, draws.std(axis=0)]
    else:
        unknown = ("ignorance", "low", "high")
        split, p, best = metrics.split_uncertainty(draws), draws.mean(axis=0), []
        if kind == "classes":
            top = p.argmax(axis=1)
            best = [*p.T, np.array(prediction.classes, dtype=object)[top]]
            draws = np.take_along_axis(draws, top[None, :, None], axis=2)[..., 0]
        figures = [*best, draws.mean(axis=0), *np.quantile(draws, ends, axis=0), split["noise"], split["ignorance"]]
    new = dict(zip(names, figures, strict=True))
    new |= dict.fromkeys(unknown, np.nan) if len(draws) == 1 else {}
    return pd.DataFrame(given | extra | new)


def _find_quantile(prediction: Prediction, share: float) -> NDArray[Any]:
    """Quantile of an outcome over all draws, by bisection: (row,), in its unit; of counts, the first that will do."""
    draws, noise, counts = prediction.draws, np.asarray(prediction.noise), prediction.counts
    far = np.sqrt(share / (1 - share)) if counts else ndtri(share)  # Cantelli: a count's quantile lies below this
    each = draws + noise * far  # the quantile of the mixture lies between those of its parts
    low, high = (np.full(draws.shape[1], -1.0), np.ceil(each.max(axis=0))) if counts else (each.min(0), each.max(0))
    for _ in range(60 if counts else 25):  # to 3e-8 of the first interval; of counts, until one is left
        middle = np.floor((low + high) / 2) if counts else (low + high) / 2
        below = find_below(prediction, middle).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
        if counts and (high - low <= 1).all():
            return high.astype(int)
    found = (low + high) / 2
    return prediction.share * expit(found) if prediction.share else found
