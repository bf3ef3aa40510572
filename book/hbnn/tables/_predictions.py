"""Predictions for the rows of a table: draws, their scores, and what is written into a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, expit, logsumexp, ndtr, ndtri, stdtr, stdtrit
from scipy.stats import nbinom, norm, t

from hbnn import diagnostics, metrics
from hbnn import prediction as networks
from hbnn._refused import Refused
from hbnn._types import Floats
from hbnn.tables._splits import Split
from hbnn.tables._table import FIGURES, NUMBERS, REAL_FIGURES, Kind, Table, find_groups, name_figures


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
    #: (draw, 1) or (draw, row), sd of a number about its mean, in its unit; with `tails`, the scale of its Student t
    noise: Floats | None = None
    effective: float = np.nan  #: the number of posterior draws, the effective one where they were weighted
    classes: tuple[str, ...] = ()  #: of several, in the order of the last axis of `draws`; () for two, or a number
    counts: bool = False  #: whether the number is a count, negative binomial about its mean; else it is normal
    share: float = 0.0  #: 1 or 100, where the number is a share of it, whose logit `draws` and `noise` are about
    tails: Floats | None = None  #: (draw, 1) or (draw, row), degrees of freedom of a heavy-tailed number

    @property
    def kind(self) -> Kind:
        """Of the outcome."""
        if self.noise is not None:
            return "counts" if self.counts else "share" if self.share else "real" if self.tails is None else "heavy"
        return "classes" if self.draws.ndim == 3 else "binary"

    def to_unit(self) -> tuple[Floats, Floats | None]:
        """Means and noise in the outcome's unit, as (draw, row): of shares, over the normal noise of their logit."""
        if not self.share or self.noise is None:
            return self.draws, self.noise
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        each = [self.share * expit(self.draws + self.noise * node) for node in nodes]
        mean = np.tensordot(weights / weights.sum(), each, axes=1)
        square = np.tensordot(weights / weights.sum(), np.square(each), axes=1)
        return mean, np.sqrt(np.maximum(square - mean**2, 0))


# --- how exactly the draws say it


PRECISE = 0.1  # of an outcome's standard deviation: a mean that is so far off costs 0.005 nats of log score
INTERVAL = 0.9


@dataclass(frozen=True)
class Precision:
    """How exactly the draws of several chains say what is handed out at some rows.

    Examples
    --------
    Chains that agree, and one that is elsewhere, beside noise of 0.5:

    >>> import numpy as np
    >>> from hbnn import tables
    >>> draws, noise = np.random.default_rng(1).normal(0, 0.1, (4, 500, 3)), np.full((4, 500, 1), 0.5)
    >>> found = tables.measure_precision(draws, noise)
    >>> found.usable, bool(found.error.max() < 0.02)
    (True, True)
    >>> draws[0] += 1
    >>> tables.measure_precision(draws, noise).usable
    False
    """

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
        error, spread, ignorance = (
            np.format_float_positional(values[worst], 2, fractional=False, trim="-")
            for values in (self.error, self.spread, self.ignorance)
        )
        found = (
            f"Even at the worst row, means and interval ends are known to within {error}, where the outcome's sd is "
        )
        found += f"{spread} (ignorance alone: {ignorance}). "
        if self.usable:
            return f"{found}That is exact enough to use: {self.share:.0%} of it."
        return f"{found}That is not exact enough: {self.share:.0%} of it, where {PRECISE:.0%} is allowed."


def measure_precision(draws: Floats, noise: Floats | None = None) -> Precision:
    """Monte Carlo errors of the means of some rows, and of the ends of their intervals.

    Effective draws count disagreement between chains (Vehtari et al., 2021).

    Parameters
    ----------
    draws : array
        (chain, draw, row), real means or probabilities; or (chain, draw, row, class).
    noise : array, optional
        (chain, draw, 1) or (chain, draw, row), sd of a number about its mean.

    References
    ----------
    - Vehtari et al. (2021), Bayesian Analysis 16.

    Examples
    --------
    Probabilities of two rows, by four chains:

    >>> import numpy as np
    >>> from hbnn import tables
    >>> p = np.random.default_rng(2).beta(3, 3, (4, 500, 2))
    >>> tables.measure_precision(p).usable
    True
    """
    asked = draws if noise is not None or draws.ndim == 3 else draws.reshape(*draws.shape[:2], -1)
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
    spread = np.sqrt(np.maximum(width, 1e-12))
    if draws.ndim == 4:  # of each row, the class that is known least
        by_class = (error / spread).reshape(draws.shape[2:]).argmax(axis=1)[:, None]
        parts = (error, spread, ignorance)
        error, spread, ignorance = (
            np.take_along_axis(part.reshape(draws.shape[2:]), by_class, axis=1)[:, 0] for part in parts
        )
    return Precision(error, spread, ignorance)


def stacking_weights(lpd: Floats) -> Floats:
    """Weights (chain,) with which chains predict left-out rows best as a mixture, from log densities (chain, row).

    The stacking of Yao, Vehtari and Gelman (2022).

    References
    ----------
    - Yao, Vehtari and Gelman (2022), Stacking for Non-mixing Bayesian Computations, JMLR 23.
    """
    density, weights = np.exp(lpd - lpd.max(axis=0)), np.full(len(lpd), 1 / len(lpd))
    for _ in range(1000):  # expectation and maximisation: each step raises the mixture's score
        weights = np.mean(weights[:, None] * density / (weights @ density), axis=1)
    return weights


def leave_one_out_density(loglik: Floats) -> Floats:
    """Log predictive density of each row by draws that did not see it, (row,), from log densities (draw, row), by
    truncated importance sampling (Ionides, 2008).

    References
    ----------
    - Ionides (2008), Journal of Computational and Graphical Statistics 17.
    """
    ratio = np.exp(loglik.min(axis=0) - loglik)  # at most 1
    ratio = np.minimum(ratio, ratio.mean(axis=0) * np.sqrt(len(ratio)))
    return logsumexp(loglik, axis=0, b=ratio) - np.log(ratio.sum(axis=0))


# --- predictions of rows


def predict_rows(model: pm.Model, draws: xr.Dataset | xr.DataTree, split: Split, rows: Table) -> Floats:
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
    Refused
        For other features, or in another order, and an unknown group.
    ValueError
        As `hbnn.predict`.

    Examples
    --------
    Draws from the prior stand for a posterior:

    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> split = tables.split_rows(rows, seed=1)
    >>> X, y = np.concatenate(split.X_train), np.concatenate(split.y_train)
    >>> g = np.repeat(range(3), [len(labels) for labels in split.y_train])
    >>> with pm.Model() as model:
    ...     w1, w2 = pm.Normal("w1", shape=(3, 5)), pm.Normal("w2", shape=(3, 5))
    ...     logit = (pm.math.tanh(X * w1[g]) * w2[g]).sum(axis=1)
    ...     labels = pm.Bernoulli("y", logit_p=logit, observed=y)
    ...     tree = pm.sample_prior_predictive(25, random_seed=1)
    >>> tables.predict_rows(model, tree["prior"], split, rows).shape
    (1, 25, 60)
    """
    group = find_groups(rows, split.features, split.groups)
    return networks.predict(model, draws, split.scale(rows.values), groups=group).values


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
        far = (value - prediction.draws) / prediction.noise  # type: ignore[operator]
        return ndtr(far) if prediction.tails is None else stdtr(prediction.tails, far)
    n, p = _find_shape(prediction.draws, np.asarray(prediction.noise))
    return np.where(value < 0, 0.0, betainc(n, np.maximum(value, 0) + 1, p))


def log_density(prediction: Prediction, rows: Table) -> Floats:
    """Log density of each row's outcome under each draw, (draw, row), nats; of a real outcome per its unit, of a share
    per unit of its logit."""
    draws = prediction.draws
    if prediction.counts:
        return nbinom.logpmf(rows.y, *_find_shape(draws, np.asarray(prediction.noise)))
    if prediction.tails is not None:
        return t.logpdf(rows.target, prediction.tails, draws, prediction.noise)
    if prediction.noise is not None:
        return norm.logpdf(rows.target, draws, prediction.noise)
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
    >>> import numpy as np
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> draws = np.random.default_rng(1).uniform(size=(100, 60))
    >>> mean, density = draws.mean(axis=0), np.exp(tables.score_rows(draws, rows))
    >>> bool(np.allclose(density, np.where(rows.y == 1, mean, 1 - mean)))
    True
    """
    prediction = _to_prediction(prediction, rows)
    if prediction.kind != rows.kind:
        raise Refused(f"a prediction of kind {prediction.kind!r} for rows of kind {rows.kind!r}; wanted: one kind")
    return logsumexp(log_density(prediction, rows), axis=0) - np.log(len(prediction.draws))


def _to_prediction(prediction: Prediction | ArrayLike, rows: Table) -> Prediction:
    """Probabilities as a Prediction; ValueError for one of other rows."""
    if not isinstance(prediction, Prediction):
        p = np.atleast_1d(np.asarray(prediction, dtype=float))
        prediction = Prediction(p.reshape(-1, p.shape[-1]))
    if prediction.draws.shape[1] != len(rows.values):
        raise ValueError(f"a prediction of {prediction.draws.shape[1]} rows; wanted: {len(rows.values)}")
    return prediction


def tabulate_predictions(
    rows: Table,
    prediction: Prediction | ArrayLike,
    *,
    interval: float = 0.9,
    extra: Mapping[str, Any] | None = None,
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
        whole numbers), "noise" (its standard deviation about the mean; of a heavy-tailed one the scale) and "ignorance"
        (that of the mean over draws), all in its unit.

    Raises
    ------
    Refused
        For a column with the name of a new one.
    ValueError
        For a prediction of other rows and an odd interval.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> tables.tabulate_predictions(rows, np.random.default_rng(1).uniform(size=(100, 60))).columns.tolist()
    ['row', 'field', 'good', 'probability', 'low', 'high', 'noise', 'ignorance']
    """
    prediction = _to_prediction(prediction, rows)
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
        low, high = np.quantile(draws, ends, axis=0)
        outcome = [_find_quantile(prediction, end) for end in ends]
        noise = np.broadcast_to(np.sqrt(np.mean(own_noise**2, axis=0)), draws.shape[1])  # type: ignore[operator]
        figures = [draws.mean(axis=0), low, high, *outcome, noise, draws.std(axis=0)]
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
    far = far if prediction.tails is None else stdtrit(prediction.tails, share)
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


def check_names(rows: Table, names: tuple[str, ...]) -> None:
    """Refuse a table whose ids, group or outcome are called as one of the columns to be added."""
    if both := [name for name in (*rows.ids, *rows.columns.values()) if name in names]:
        raise Refused(f"the table has a column {both[0]!r}, and so have the predictions; wanted: another name")


def check_path(path: str | Path) -> Path:
    """The path, unless a file of something else is there (ValueError), or no folder (OSError)."""
    path = Path(path)
    if not path.parent.is_dir() or path.is_dir():
        raise OSError(f"{path} is a folder, or in one that does not exist; wanted: a file in a folder that does")
    if path.exists():
        head = path.read_bytes().split(b"\n", 1)[0].rstrip()
        if not head.endswith((",".join(FIGURES).encode(), ",".join(REAL_FIGURES).encode())):
            raise ValueError(f"{path} is there already and holds no predictions; wanted: another name")
    return path


def write_predictions(
    path: str | Path,
    rows: Table,
    prediction: Prediction | ArrayLike,
    *,
    interval: float = 0.9,
    extra: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Write what `tabulate_predictions` returns into a CSV file, all or nothing; earlier predictions are replaced.

    Figures are written with six digits. Parameters are those of `tabulate_predictions`.

    Raises
    ------
    ValueError
        Where a file of something else is there: your own table is never written over.
    OSError
        Without a folder.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = tables.write_predictions(Path(folder, "predictions.csv"), rows, np.full((2, 60), 0.4))
    ...     Path(folder, "predictions.csv").read_text().splitlines()[1]
    '0,a,yes,0.4,0.4,0.4,0.970951,0.0'
    """
    path, prediction = check_path(path), _to_prediction(prediction, rows)
    frame = tabulate_predictions(rows, prediction, interval=interval, extra=extra)
    part = path.with_name(f".{path.name}.part")
    figures = [name for name in name_figures(prediction.kind, prediction.classes) if frame[name].dtype.kind == "f"]
    try:
        frame.assign(**{name: frame[name].map("{:.6g}".format).astype(float) for name in figures}).to_csv(
            part, index=False
        )
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return frame
