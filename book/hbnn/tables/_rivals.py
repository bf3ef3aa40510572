"""Is the network worth it? Four rivals, cross-validation over rows and over whole groups, and advice in a sentence.

`answer` is the whole way from a file to ``predictions.csv``. A model is left in the cold for rows, and for groups, that
it has not seen; differences are taken row by row, and their errors over groups.
"""

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array, hstack
from scipy.stats import hmean, norm
from scipy.stats import t as student
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import HuberRegressor, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, RobustScaler, TargetEncoder

from hbnn import metrics
from hbnn._checks import check_seed
from hbnn._refused import Refused
from hbnn._text import join, plus_minus
from hbnn._types import Array, Floats
from hbnn.tables import _network
from hbnn.tables._network import Compiled, Fit, Sampler
from hbnn.tables._predictions import (
    INTERVAL,
    Prediction,
    check_names,
    check_path,
    disperse,
    find_below,
    log_density,
    score_rows,
    write_predictions,
)  # fmt: skip
from hbnn.tables._read import (
    NUMBERS,
    AskedKind,
    Kind,
    Places,
    Source,
    Table,
    find_groups,
    make_folds,
    measure_bulk,
    read_table,
    say_rows,
)

type Over = Literal["rows", "groups"]
NETWORK = "network"
RIVALS = {  # the simplest first
    "line": "a line, with a level for each group",
    "hierarchical line": "a hierarchical line",
    "quadratic": "a quadratic, with a level for each group",
    "trees": "boosted trees",
}
NAMES = RIVALS | {NETWORK: "the hierarchical network"}
CLEARLY, WORSE = 2.8, 2.0  # standard errors: by which the network must lead, and a simple rival must not be behind
CLOSE = 0.1  # nats per row: a simple rival that is further behind is not taken, however unsure that is
FEW_GROUPS = 8  # below, errors are taken over rows
MOST_CATEGORIES = 250  # that boosted trees can tell apart
INNER = 5
MANY_ROWS, MANY_GROUPS = 20_000, 1_000  # beyond, rivals alone, with two folds, two inner folds and few refits
MANY_REFITS = 20
RARE = "The least populated class in y has only"  # scikit-learn's warning where there are fewer rows than folds
OVER: tuple[Over, ...] = ("rows", "groups")
STRENGTHS = np.array([0.01, 0.1, 1.0, 10.0])
TREES: dict[str, Any] = {"max_iter": (30, 100), "max_leaf_nodes": (4, 15), "learning_rate": (0.03, 0.1)}
SHORT_SAMPLER: dict[str, Any] = {"chains": 2, "draws": 300, "tune": 400, "target_accept": 0.9}  # in each fold
RUN: dict[str, Any] = {"chains": 4, "draws": 500, "tune": 500, "target_accept": 0.95}  # of a network that is handed out
MOST = 3  # runs of it
LONGER = 5  # times as long as a fold, roughly, a run takes
REFITS = {"line": 200, "quadratic": 200, "trees": 40}  # to rows drawn again: what a rival does not know of a mean
LINE = "hierarchical line"
SAMPLED: dict[str, dict[str, Any]] = {LINE: {"n_units": 0}, NETWORK: {}}  # by NUTS; options of `build_network`
UNSEEN = 1e-3  # probability of a class that was not among the training rows, before all are made to add up to one


# --- rivals


def fit_rival(
    name: str, rows: Table, train: Places, test: Places, *, seed: int, new_groups: bool = False, refits: int = 0
) -> Prediction:
    """Predictions of a rival for rows that it has not seen: of one draw, or one for each refit; the hierarchical
    line is that of `build_network` with no units, of 600 draws.

    All settings are tuned by cross-validation within the training rows, over rows or, with `new_groups`, over groups.
    A group is a column of 0 and 1 each; for trees a category, or, where there are more than they can tell apart, the
    mean outcome of the group in other training rows (`TargetEncoder`, fitted anew in each inner fold). Means of counts
    are fitted as a Poisson's, and how far counts vary about them is fitted to left-out rows, by a negative binomial.
    Of heavy-tailed numbers lines minimise Huber's loss, trees absolute errors, and Student's t is fitted to left-out
    rows.

    Parameters
    ----------
    name : one of RIVALS; ValueError for others
    train, test : (obs,) places of rows
    new_groups : whether the test rows are of groups that are not among the training rows
    refits : fits to rows drawn anew within each group, with replacement, at the settings that were chosen: their spread
        about the one fit says how far a mean is unknown (the bootstrap)

    Source: Pedregosa et al. (2011), JMLR 12.

    Examples
    --------
    Goes on from `build_network`.

    >>> train, test = np.arange(40), np.arange(40, 60)
    >>> forecast = tables.fit_rival("line", rows, train, test, seed=1)
    >>> forecast.draws.shape  # one line is one draw
    (1, 20)
    >>> bool(abs(forecast.noise[0, 0] - 0.3) < 0.1)
    True
    """
    check_seed(seed)
    _check_rivals((name,))
    number, counts, heavy = rows.kind in NUMBERS, rows.kind == "counts", rows.kind == "heavy"
    y, g, ratio = rows.target, rows.group, np.ones(len(rows.group))
    if rows.weight is not None:
        ratio = _network.find_ratio(rows.weight, float(hmean(rows.weight[train])))
    if counts and not y[train].any():  # as if half of one had been counted
        mean = np.full((1, len(test)), 0.5 / len(train))
        return Prediction(mean, disperse(mean, 1.0), 1.0, counts=True)
    if not number and len(np.unique(y[train])) == 1:  # nothing to tell apart
        return _give_classes(rows, np.ones((1, len(test), 1)), y[train][:1])
    if name == LINE:
        return _predict_fold(rows, train, rows.take(test), None, seed, None, new_groups, **SAMPLED[LINE])
    many = is_many(len(train), len(rows.groups), len(rows.second_groups))
    center, width = _network.measure_columns(rows.values[train])
    X = (rows.values - center) / width
    places = [(g, len(rows.groups))]
    places += [] if rows.second_group is None else [(rows.second_group, len(rows.second_groups))]
    if name == "trees":
        sizes = [len(np.unique(place[train])) for place, _ in places]
        model, grid = _make_trees(X.shape[1], sizes, rows.kind, seed)
        X = np.column_stack([X, *(place for place, _ in places)])
    else:
        if name == "quadratic":
            bent = PolynomialFeatures(2, include_bias=False).fit_transform(X)
            center, width = _network.measure_columns(bent[train])
            X = (bent - center) / width
        levels = hstack([csr_array((np.ones(len(g)), (np.arange(len(g)), p)), (len(g), n)) for p, n in places])
        X = csr_array(hstack([X, levels])) if many else np.column_stack([X, levels.toarray()])
        model = (PoissonRegressor if counts else LogisticRegression)(max_iter=1000)
        grid = {"alpha": 1 / STRENGTHS / len(train)} if counts else {"C": STRENGTHS}
        if heavy:
            model = TransformedTargetRegressor(HuberRegressor(max_iter=1000), transformer=RobustScaler())
            grid = {"regressor__alpha": 1 / STRENGTHS}
        elif number and not counts:
            model, grid = Ridge(), {"alpha": 1 / STRENGTHS}

    def tell(model: BaseEstimator, X: Floats) -> Floats:  # a fold may be without one of the classes
        if counts:  # a square may run away where the mean is its exponential
            return np.clip(model.predict(X), 1e-6, 100 * y[train].max())
        return model.predict(X) if number else _fill_classes(model.predict_proba(X), model.classes_, n_classes)

    def measure(model: BaseEstimator, X: Floats, y: Array) -> float:
        found = tell(model, X)
        return -mean_poisson_deviance(y, found) if counts else float(np.log(found[np.arange(len(y)), y]).mean())

    def fit(model: BaseEstimator, where: Places) -> BaseEstimator:
        inner = getattr(model, "estimator", model)  # of a search
        last = f"{inner.steps[-1][0]}__" if isinstance(inner, Pipeline) else ""
        weights = {} if rows.weight is None else {f"{last}sample_weight": ratio[where] ** -2}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a solver that needs more steps at one of the settings
            warnings.filterwarnings("ignore", RARE)  # in the folds of `TargetEncoder`
            return model.fit(X[where], y[where], **weights)

    n_classes, apart = len(rows.classes), None if number else y[train]
    if counts and not y[train].all():
        apart = (y[train] > 0).astype(int)  # of zeros alone nothing can be learned
    folds = _split_again(g[train], apart, new_groups, seed, 2 if many else INNER)
    scoring = "neg_mean_squared_error" if number and not counts else measure
    search = GridSearchCV(model, grid, cv=folds, scoring="neg_mean_absolute_error" if heavy else scoring)
    fit(search, train)
    found = tell(search.best_estimator_, X[test])
    draws = found[None]
    if refits:
        drawn = (_draw_again(y, g, train, rng) for rng in _spawn(seed, refits))
        again = [tell(fit(clone(search.best_estimator_), some), X[test]) for some in drawn]
        off = found / np.mean(again, axis=0) if counts else found - np.mean(again, axis=0)
        draws = np.array(again) * off if counts else np.array(again) + off  # about the fit to the rows as they are
    if counts or heavy or rows.weight is not None:
        told = [tell(fit(clone(search.best_estimator_), train[a]), X[train[b]]) for a, b in folds]
        left = train[np.concatenate([b for _, b in folds])]
        mean, those = np.concatenate(told), rows.take(left)
        if counts:
            noise = disperse(draws, _find_dispersion(mean, those))
            return Prediction(draws, noise, float(len(draws)), counts=True)
        noise, nu = _find_noise(those.target - mean, ratio[left], ratio[test], heavy)
        noise, tails = np.broadcast_to(noise, draws.shape), np.full((len(draws), 1), nu) if heavy else None
        return Prediction(draws, noise, float(len(draws)), share=_find_top(rows), tails=tails)
    if number:
        noise = np.sqrt(max(-search.best_score_, 1e-12 * y[train].var(), 1e-300))
        return Prediction(draws, np.full((len(draws), 1), noise), float(len(draws)), share=_find_top(rows))
    if not refits:
        return _give_classes(rows, search.predict_proba(X[test])[None], search.classes_)
    p = np.clip(draws, metrics.FLOOR, 1 - metrics.FLOOR)
    return _give_classes(rows, p / p.sum(axis=-1, keepdims=True), np.arange(n_classes))


def _find_dispersion(mean: Floats, rows: Table) -> float:
    """The most likely dispersion of counts about the means of rows that were left out."""

    def miss(log: float) -> float:
        return -log_density(Prediction(mean[None], disperse(mean[None], np.exp(log)), counts=True), rows).sum()

    return float(np.exp(minimize_scalar(miss, bounds=(np.log(1e-3), np.log(10.0)), method="bounded").x))


def _find_noise(missed: Floats, ratio: Floats, at: Floats, heavy: bool) -> tuple[Floats, float]:
    """The most likely scale of misses at some ratios, (row,), and degrees of freedom."""
    own, shrinks, nu = _fit_scales(missed, ratio, heavy)
    return np.sqrt(own + shrinks * at**2), nu


def _fit_scales(missed: Floats, ratio: Floats, heavy: bool) -> tuple[float, float, float]:
    """The squared scale of misses, what stays whatever the weight of a row and what shrinks with it, and degrees of
    freedom. A thousandth of their bulk is the least scale that is told from none."""
    bulk = measure_bulk(missed) or 1.0
    off, both = missed / bulk, bool(np.ptp(ratio) > 0)

    def read(log: Floats) -> tuple[float, float, float]:
        own, shrinks, nu = np.exp(np.clip(log, -30, 30))
        return own + 1e-6, shrinks * both, nu

    def miss(log: Floats) -> float:
        own, shrinks, nu = read(log)
        scale = np.sqrt(own + shrinks * ratio**2)
        return -float((student.logpdf(off, nu, scale=scale) if heavy else norm.logpdf(off, scale=scale)).sum())

    found = minimize(miss, [0.0, 0.0, 1.5], method="Nelder-Mead", options={"maxiter": 2000})
    own, shrinks, nu = read(found.x)
    return own * bulk**2, shrinks * bulk**2, nu


def _find_top(rows: Table) -> float:
    """What an outcome is a share of; 0 for others."""
    return rows.share[0] if rows.share else 0.0


def is_many(n_rows: int, *n_groups: int) -> bool:
    """Whether a network would take hours, and columns of groups more memory than there is."""
    return n_rows > MANY_ROWS or max(n_groups) > MANY_GROUPS


def _spawn(seed: int, n: int) -> list[np.random.Generator]:
    """Generators of random numbers, one for each of n refits."""
    return [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(n)]


def _draw_again(y: Array, g: Places, train: Places, rng: np.random.Generator) -> Places:
    """Training rows drawn again, with replacement, as many of each group; with two classes or more in them."""
    while True:
        order = train[np.lexsort((rng.random(len(train)), g[train]))]
        first = np.searchsorted(g[order], g[order])
        size = np.bincount(g[order], minlength=g.max() + 1)[g[order]]
        some = order[first + (rng.random(len(order)) * size).astype(int)]
        if y.dtype.kind == "f" or len(np.unique(y[some])) > 1:
            return some


def _make_trees(
    n_features: int, n_groups: list[int], kind: Kind | None, seed: int
) -> tuple[BaseEstimator, dict[str, Any]]:
    """Boosted trees of features and, in the last columns, the groups; and the settings to choose from."""
    few, number = max(n_groups) <= MOST_CATEGORIES, kind in NUMBERS
    last = [n_features + k for k in range(len(n_groups))]
    options = {"min_samples_leaf": 5, "categorical_features": last if few else None, "random_state": seed}
    loss = {"counts": "poisson", "heavy": "absolute_error"}.get(str(kind))
    options |= {"loss": loss} if loss else {}  # type: ignore[dict-item]
    model = (HistGradientBoostingRegressor if number else HistGradientBoostingClassifier)(**options)
    if few:
        return model, TREES
    folds = (KFold if number else StratifiedKFold)(INNER, shuffle=True, random_state=seed)
    encoder = TargetEncoder(cv=folds, target_type="continuous" if number else "auto")
    encoded = make_column_transformer((encoder, last), remainder="passthrough")
    return make_pipeline(encoded, model), {f"{type(model).__name__.lower()}__{k}": v for k, v in TREES.items()}


def _split_again(
    group: Places, y: Array | None, new_groups: bool, seed: int, n_inner: int = INNER
) -> list[tuple[Places, Places]]:
    """Inner folds of the training rows, a list of (train, test), each with two classes or more to learn from."""
    n_groups = len(np.unique(group))
    by_group = new_groups and n_groups > 1
    kinds = (GroupKFold, StratifiedGroupKFold) if by_group else (KFold, StratifiedKFold)
    n_folds = min(n_inner, n_groups if by_group else len(group))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", RARE)
        folds = kinds[y is not None](n_folds, shuffle=True, random_state=seed)
        folds = list(folds.split(group, y, groups=group if by_group else None))
    folds = [(a, b) for a, b in folds if len(b) and (y is None or len(np.unique(y[a])) > 1)]
    return folds or _split_again(group, y, False, seed, n_inner)


def _fill_classes(p: Floats, seen: NDArray[np.integer], n_classes: int) -> Floats:
    """Probabilities (…, class seen) as those of all classes, none below `metrics.FLOOR`."""
    full = np.full((*p.shape[:-1], n_classes), UNSEEN)
    full[..., seen] = p
    return np.maximum(full / full.sum(axis=-1, keepdims=True), metrics.FLOOR)


def _give_classes(rows: Table, p: Floats, seen: NDArray[np.integer]) -> Prediction:
    """The Prediction that probabilities (draw, row, class seen) make."""
    full = _fill_classes(p, seen, len(rows.classes))
    return Prediction(full[..., 1] if rows.kind == "binary" else full, None, float(len(p)), rows.classes)


# --- cross-validation


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each model scores on rows, and on groups, that it has not seen: dicts of "rows" and "groups".

    Examples
    --------
    Goes on from `compare_rivals`.

    >>> comparison.choose(), comparison.advise()[:39]
    ('line', 'Use a line, with a level for each group')
    """

    lpd: dict[Over, pd.DataFrame]  #: (row, model), log predictive densities, nats
    #: (row, model), 1 for a class that was missed, or the squared error of a number, of a heavy-tailed one the absolute
    loss: dict[Over, pd.DataFrame]
    group: Places
    kind: Kind | None
    levels: dict[Over, pd.DataFrame]  #: (row, model), the probability of what is below a number, or of the second of
    #: two classes, or of the most probable one; of counts at random between what is below and what is not above
    #: (Czado, Gneiting and Held, 2009, Biometrics 65)
    groups: tuple[str, ...] = ()  #: names

    def gain(self, name: str, other: str, over: Over = "rows") -> tuple[float, float]:
        """How much higher the lpd of `name` is than that of `other`, nats per row, and its standard error.

        The error is over groups, as rows of one group share what was learned of it; over rows where there are fewer
        than 8 groups. Source: Cameron and Miller (2015), Journal of Human Resources 50.
        """
        return self._average((self.lpd[over][name] - self.lpd[over][other]).to_numpy())

    def count_inside(self, share: float = 0.9, over: Over = "rows", name: str = NETWORK) -> tuple[float, float]:
        """The share of outcomes, numbers, in the intervals that promise `share`, and its standard error as of `gain`.

        Examples
        --------
        Goes on from `compare_rivals`.

        >>> inside, error = comparison.count_inside(0.9)
        >>> bool(0.8 < inside < 1 and 0 < error < 0.1)
        True
        """
        if self.kind not in NUMBERS:
            raise ValueError(f"an outcome of kind {self.kind!r} has no interval; wanted: a number, or calibrate()")
        return self._average((np.abs(self.levels[over][name] - 0.5) < share / 2).to_numpy(float))

    def _average(self, each: Floats) -> tuple[float, float]:
        """The mean over rows, and its standard error over `by`."""
        by = self.group if self.by == "groups" else np.arange(len(each))
        sums, n = np.bincount(by, each - each.mean()), len(np.unique(by))
        return float(each.mean()), float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / len(each))

    @property
    def by(self) -> Over:
        """What errors are taken over."""
        return "groups" if len(np.unique(self.group)) >= FEW_GROUPS else "rows"

    def to_frame(self) -> pd.DataFrame:
        """Scores, a line for each model, the best on rows first, with gains of the network."""
        second = "mean error" if self.kind == "heavy" else "RMSE" if self.kind in NUMBERS else "accuracy (%)"
        lines = {}
        for name in self.lpd["rows"]:
            line = {}
            for over in self.lpd:
                text = f"new {over}"
                loss = self.loss[over][name].mean()
                line[f"lpd, {text}"] = self.lpd[over][name].mean()
                line[f"{second}, {text}"] = (
                    loss if self.kind == "heavy" else np.sqrt(loss) if self.kind in NUMBERS else 100 * (1 - loss)
                )
                if name != NETWORK and NETWORK in self.lpd[over]:
                    line[f"network's gain, {text}"] = plus_minus(*self.gain(NETWORK, name, over))
            lines[name] = line
        frame = pd.DataFrame.from_dict(lines, orient="index").fillna("")
        return frame.sort_values("lpd, new rows", ascending=False).round(3)

    def __str__(self) -> str:
        """The scores on rows, and below them on groups: it fits a page."""
        frame = self.to_frame()
        return "\n".join(frame.filter(like=f"new {over}").to_string() for over in self.lpd)

    def calibrate(self, over: Over = "rows", name: str = NETWORK) -> dict[str, float] | dict[str, Array]:
        """How often a model is right: for a number, shares of outcomes in its 50 and 90 % intervals, a dict; else
        `metrics.calibrate` of its probabilities, of the second of two classes, or of the most probable one."""
        if self.kind in NUMBERS:
            return {f"{share:.0%}": self.count_inside(share, over, name)[0] for share in (0.5, 0.9)}
        p = self.levels[over][name].to_numpy()
        missed = self.loss[over][name].to_numpy() == 1
        came = ~missed if self.kind == "classes" else (p > 0.5) != missed
        return metrics.calibrate(p, came.astype(int), n_bins=5)

    def gain_without(self, name: str, other: str, over: Over = "rows") -> tuple[str, float, float]:
        """The group that moves the gain most, and the gain and its standard error without it."""
        each = (self.lpd[over][name] - self.lpd[over][other]).to_numpy()
        odd = int(np.argmax(np.abs(np.bincount(self.group, each - each.mean()))))
        rest = self.group != odd
        lpd = {over: self.lpd[over][rest]}
        gain, error = replace(self, lpd=lpd, group=self.group[rest]).gain(name, other, over)
        return self.groups[odd] if self.groups else str(odd), gain, error

    def choose(self, over: Over = "rows") -> str:
        """The model to use: the network if it leads the best rival by more than 2.8 standard errors, else the simplest
        rival that is not behind the best by more than 2, nor by more than 0.1 nats per row."""
        mean = self.lpd[over].mean()
        best = mean.drop(NETWORK, errors="ignore").idxmax()
        if NETWORK in mean:
            gain, error = self.gain(NETWORK, best, over)
            if gain > CLEARLY * error:
                return NETWORK
        for name in (name for name in RIVALS if name in mean):
            behind, error = self.gain(best, name, over)
            if name == best or behind <= min(WORSE * error, CLOSE):
                return name
        raise AssertionError("the best rival is not behind itself")

    def advise(self, over: Over = "rows") -> str:
        """Which model to use, and why, in a sentence or two."""
        mean = self.lpd[over].mean()
        chosen, best = self.choose(over), mean.drop(NETWORK, errors="ignore").idxmax()
        behind, error = self.gain(best, chosen, over)
        size = plus_minus(behind, error)
        simpler = f"{NAMES[best]} is ahead of {NAMES[chosen]} by {size}, which is not clear"
        simpler = simpler if chosen not in (best, NETWORK) else ""
        what = "rows of known groups" if over == "rows" else "groups that were left out whole"
        few = f", as there are fewer than {FEW_GROUPS} groups" if self.by == "rows" else ""
        unit, over_what = "nats per row", f"standard error over {self.by}{few}"
        if NETWORK not in mean:
            simpler = f"; {simpler} ({unit}, {over_what})" if simpler else ""
            return f"Of the rivals, use {NAMES[chosen]} for {what}{simpler}."
        lead, error = self.gain(NETWORK, best, over)
        text = f"Use {NAMES[chosen]} for {what}: there the network is "
        if abs(lead) <= WORSE * error:
            alike = "about as good as" if WORSE * error <= CLOSE else "not to be told from"
            text += f"{alike} the best rival, {NAMES[best]} ({plus_minus(lead, error)} {unit}, {over_what})"
        else:
            side = "ahead of" if lead > 0 else "behind"
            text += f"{side} the best rival, {NAMES[best]}, by {plus_minus(abs(lead), error)} {unit} ({over_what})"
        if WORSE * error < lead and chosen != NETWORK:
            text += ", which is not clear"
        if len(np.unique(self.group)) > 2:
            odd, rest, its_error = self.gain_without(NETWORK, best, over)
            if (abs(lead) > WORSE * error) != (abs(rest) > WORSE * its_error):
                text += f"; one group decides: without {odd!r} the network's lead is {plus_minus(rest, its_error)}"
        return f"{text}; {simpler}." if simpler else f"{text}."


def compare_rivals(
    rows: Table,
    *,
    seed: int,
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    over: Sequence[Over] = OVER,
    network: Compiled | None = None,
    sampler: Sampler = None,
    **options: Any,
) -> Comparison:
    """Cross-validate the network and its rivals, over rows and over whole groups. Refuses what `build_network` does.

    Parameters
    ----------
    rivals : names of RIVALS
    over : "rows", of known groups, which advice is made from, and "groups", whole ones
    network, options : as in `fit_network`
    sampler : what to change in SHORT_SAMPLER

    Examples
    --------
    Goes on from `compile_network`. The truth is a line; two folds and one rival, to be quick:

    >>> comparison = tables.compare_rivals(
    ...     rows, seed=1, network=network, n_folds=2, rivals=("line",), over=("rows",),
    ...     sampler={"draws": 100, "tune": 200},
    ... )
    >>> sorted(comparison.lpd["rows"])
    ['line', 'network']
    >>> gain, error = comparison.gain("network", "line")
    """
    if "rows" not in over or not set(over) <= set(OVER):
        raise ValueError(f"over={over!r}; wanted: {OVER} or ('rows',)")
    _check_rivals(rivals)
    compiled = {NETWORK: _network.choose_network(rows, network, options)}
    models = [*(name for name in RIVALS if name in rivals), NETWORK]
    return _compare(rows, models, over, seed, n_folds, compiled, sampler)


def _compare(
    rows: Table, models: Sequence[str], over: Sequence[Over], seed: int, n_folds: int,
    compiled: dict[str, Compiled] | None = None, sampler: Sampler = None, cores: int = 1,
    before: Comparison | None = None, tell: bool = False,
) -> Comparison:  # fmt: skip
    """Cross-validate some models, and put them beside those that were before."""
    compiled = dict(compiled or {})
    if LINE in models and LINE not in compiled:
        compiled[LINE] = _network.compile_network(rows, **SAMPLED[LINE])
    folds, lpd, loss, levels = make_folds(rows, seed=seed, n_folds=n_folds), {}, {}, {}
    for part in over:
        fold, new = folds[part], part == "groups"
        frames = [pd.DataFrame(np.nan, index=range(len(fold)), columns=list(models)) for _ in range(3)]
        for name in models:
            for k in range(fold.max() + 1):
                start = time.perf_counter()
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                held = rows.take(test)
                if name in compiled:
                    own = sampler if name == NETWORK else None
                    predicted = _predict_fold(rows, train, held, compiled[name], seed, own, new, cores)
                else:
                    predicted = fit_rival(name, rows, train, test, seed=seed, new_groups=new)
                frames[0].loc[test, name] = score_rows(predicted, held)
                frames[1].loc[test, name] = _find_loss(predicted, held)
                frames[2].loc[test, name] = _find_level(predicted, held)
                if k == 0 and tell:
                    each = time.perf_counter() - start
                    left = f"{_network.say_time(each * fold.max())} to go"
                    if name in compiled and part == over[-1]:
                        left += f"; if it leads, {_network.say_time(LONGER * each)} more"
                    print(f"  {NAMES[name]}, new {part}: {left}", flush=True)
        if before is not None:
            old = (before.lpd[part], before.loss[part], before.levels[part])
            frames = [pd.concat(both, axis=1) for both in zip(old, frames, strict=True)]
        lpd[part], loss[part], levels[part] = frames
    return Comparison(lpd, loss, rows.group, rows.kind, levels, rows.groups)


def _check_rivals(rivals: Sequence[str]) -> None:
    """Raise ValueError for a rival that is none."""
    if isinstance(rivals, str) or not rivals or not set(rivals) <= set(RIVALS):
        raise ValueError(f"rivals={rivals!r}; wanted: some of {', '.join(map(repr, RIVALS))}")


def _predict_fold(
    rows: Table, train: Places, held: Table, network: Compiled | None, seed: int, sampler: Sampler, new_groups: bool,
    cores: int = 1, **options: Any,
) -> Prediction:  # fmt: skip
    """Of held-out rows: by the networks or lines of their groups, or by ones drawn for groups that were left out."""
    short = SHORT_SAMPLER | dict(sampler or {})
    known = _network.fit_network(rows, seed=seed, network=network, index=train, sampler=short, judged=False,
                                 cores=cores, **options)  # fmt: skip
    if new_groups and {rows.groups[g] for g in np.unique(held.group)} & set(known.groups):
        raise RuntimeError("a group stands on both sides of a fold; this is a mistake in hbnn.tables: report it")
    return _network.predict(known, held, seed=seed)


def _find_loss(predicted: Prediction, rows: Table) -> Floats:
    """Squared error (of a heavy-tailed number the absolute one), or 1 for a class that was missed, (row,)."""
    mean = predicted.to_unit()[0].mean(axis=0)
    if rows.kind == "heavy":
        return np.abs(mean - rows.y)
    if rows.kind in NUMBERS:
        return (mean - rows.y) ** 2
    guess = mean > 0.5 if rows.kind == "binary" else mean.argmax(axis=1)
    return (guess != rows.y).astype(float)


def _find_level(predicted: Prediction, rows: Table) -> Floats:
    """What `Comparison.levels` says of each row, (row,)."""
    if rows.kind in NUMBERS:
        level = find_below(predicted, rows.target).mean(axis=0)
        if rows.kind == "counts":  # between what is below a count and what is not above it, so that right is even
            below = find_below(predicted, rows.y - 1).mean(axis=0)
            level = below + np.random.default_rng(0).random(len(level)) * (level - below)
        return level
    mean = predicted.draws.mean(axis=0)
    return mean if rows.kind == "binary" else mean.max(axis=1)


# --- the one block


@dataclass(frozen=True, repr=False)
class Answer:
    """What `answer` found: the rows, the scores, the advice, and predictions as they stand in the file."""

    rows: Table
    comparison: Comparison
    advice: str
    model: str  #: whose predictions they are
    predictions: pd.DataFrame
    fit: Fit | None  #: to all rows, where the network or the hierarchical line predicts
    seed: int

    def predict(self, asked: Table) -> Prediction:
        """Predictions of further rows by the same model; a rival is fitted again, in seconds."""
        if self.fit is not None:
            return _network.predict(self.fit, asked, seed=self.seed)
        return _predict_rival(self.model, self.rows, asked, self.seed, self.comparison)

    def write_report(self, path: str | Path) -> None:
        """Write a report that one looks at, one HTML file that loads nothing: the data, who was compared, who is
        advised, calibration, six groups, and where to measure next. Needs matplotlib."""
        from hbnn.tables import _report  # which stands on this module

        _report.write_report(path, self)


def answer(
    source: Source,
    *,
    group: str,
    features: Sequence[str],
    outcome: str,
    seed: int,
    second_group: str | None = None,
    weight: str | None = None,
    cycles: Mapping[str, float] | None = None,
    predict: Source | None = None,
    out: str | Path = "predictions.csv",
    kind: AskedKind | None = None,
    classes: Sequence[Any] | None = None,
    ids: Sequence[str] = (),
    sep: str = ",",
    decimal: str | None = None,
    encoding: str = "utf-8",
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    model: str | None = None,
    most: int = MOST,
    sampler: Sampler = None,
    cores: int | None = None,
    report: str | Path | None = None,
    **options: Any,
) -> Answer:
    """From a table to predictions in a file: by the model that predicts best, in full, with its intervals.

    Rivals come first, in seconds, and the best of them writes the file. Then a hierarchical line, and then the network,
    are compared with them on the same rows, by short chains. Who takes the lead is sampled until what it predicts is
    exact enough (`Precision`), and its predictions take the place of those before. Each step prints what it found;
    interrupted (Ctrl-C), what is finished stays. The advice is about rows of known groups, unless more than half of the
    rows to predict are of new ones. How good predictions are, the scores say, of rows that a model has not seen, and
    not the file. With more than 20,000 rows or 1,000 groups only rivals that take seconds are asked, unless `model`
    asks for the network.

    Parameters
    ----------
    source, group, features, outcome, second_group, weight, cycles, kind, classes, ids, sep, decimal, encoding : as in
        `read_table`
    predict : rows to predict, of known groups or new ones; an outcome in it is not used. Default: `source`. Rows of a
        new group whose outcome is known belong into `source`, which makes it a known one
    n_folds, rivals : as in `compare_rivals`
    model : whose predictions are wanted, "network" or one of RIVALS; default: whoever is advised
    most, sampler : runs of four chains, at most, and what to change in RUN
    cores : that chains may use at once; default all. The answer is the same on any number
    report : a file for `Answer.write_report`, written whenever predictions are
    options : as in `build_network`

    Raises
    ------
    Refused, ValueError, OSError
        As `read_table`, `write_predictions`, `build_network` and `compare_rivals`, all before anything is fitted.

    Examples
    --------
    A whole run takes a minute or more; the chapter on your own file shows one. What cannot be used is refused before:

    >>> import pandas as pd
    >>> from hbnn import tables
    >>> frame = pd.DataFrame({"field": ["a", "b"] * 10, "rain": range(20), "wheat": range(20)})
    >>> tables.answer(frame, group="field", features=["rian"], outcome="wheat", seed=1)
    Traceback (most recent call last):
        ...
    hbnn._refused.Refused: the table has no column 'rian'; there are 'field', 'rain' and 'wheat'. Did you mean 'rain'?
    """
    check_seed(seed)
    columns: dict[str, Any] = {"group": group, "features": features, "ids": ids}
    columns |= {"second_group": second_group, "weight": weight, "cycles": cycles}
    columns |= {"sep": sep, "decimal": decimal, "encoding": encoding}
    rows = read_table(source, outcome=outcome, kind=kind, classes=classes, **columns)
    print(rows)
    asked = rows if predict is None else read_table(predict, outcome=None, like=rows, **columns)
    new = [name for name in asked.groups if name not in rows.groups]
    is_new = np.isin(np.array(asked.groups)[asked.group], new)
    if predict is not None:
        print(f"To predict: {asked}")
        if new:
            print(f"New groups: {join(map(repr, new), 5)}, {say_rows(is_new.sum())}.")
        if more := sorted({*asked.second_groups} - {*rows.second_groups}):
            print(
                f"New groups of {second_group!r}: {join(map(repr, more), 5)}. No score is of such rows, and only the "
                "network and the hierarchical line make their intervals wider for them."
            )
        for said in _say_far(rows, asked):
            print(said)
    check_path(out)
    if report is not None and (not Path(report).parent.is_dir() or find_spec("matplotlib") is None):
        raise OSError(f"report={str(report)!r}; wanted: a file in a folder that exists, and matplotlib installed")
    check_names(asked, ("model", *rows.figures))
    large = is_many(len(rows.group), len(rows.groups), len(rows.second_groups)) and model not in SAMPLED
    if large:
        rivals, n_folds = tuple(name for name in rivals if name != LINE) or ("line",), 2
        print(
            f"More than {MANY_ROWS:,} rows or {MANY_GROUPS:,} groups: rivals are compared on all rows, in two folds; "
            "the network, which would take hours, is not asked. Ask it on some groups, picked at random: "
            f"frame[frame[{group!r}].isin(some)]; or wait for it with model='network'."
        )
    _check_rivals(rivals)
    if model not in (None, NETWORK, *rivals):
        raise ValueError(f"model={model!r}; wanted: {NETWORK!r}, one of rivals={tuple(rivals)}, or None")
    settings = _network.merge_sampler(RUN | dict(sampler or {}))
    _network.build_network(rows, **options)  # which refuses what cannot be fitted to
    over: tuple[Over, ...] = OVER if new else ("rows",)
    aim: Over = "groups" if is_new.mean() > 0.5 else "rows"
    cores = cores or os.process_cpu_count() or 1
    own = SAMPLED | {NETWORK: options}
    done: Answer | None = None
    reported = done
    quick = [name for name in RIVALS if name in rivals and name != LINE]
    try:
        for models in (quick, [name for name in rivals if name == LINE], [] if large else [NETWORK]):
            if not models:
                continue
            if models[0] in own:
                print(f"Next comes {NAMES[models[0]]}; to compile it may take a minute.", flush=True)
            compiled = {name: _network.compile_network(rows, **own[name]) for name in models if name in own}
            before = done.comparison if done else None
            found = _compare(rows, models, over, seed, n_folds, compiled, None, cores, before, True)
            advice = found.advise(aim)
            chosen = model if model is not None and model in found.lpd["rows"] else found.choose(aim)
            print(advice, found, sep="\n", flush=True)
            if done is None:
                print("(lpd: log score of rows that a model had not seen, nats per row; higher is better)")
            if done is not None and chosen == done.model:
                done = replace(done, comparison=found, advice=advice)
            else:
                fit = None
                if chosen in compiled:
                    fit = _network.fit_network(
                        rows, seed=seed, network=compiled[chosen], sampler=settings, judged=False, asked=asked,
                        most=most, cores=cores, tell=True,
                    )  # fmt: skip
                    print(_say_fit(fit), flush=True)
                    predicted = _network.predict(fit, asked, seed=seed)
                else:
                    predicted = _predict_rival(chosen, rows, asked, seed, found)
                frame = write_predictions(out, asked, predicted, extra={"model": chosen})
                print(f"{out}: {say_rows(len(frame))} predicted by {NAMES[chosen]}.", flush=True)
                done = reported = Answer(rows, found, advice, chosen, frame, fit, seed)
                if report is not None:
                    done.write_report(report)
    except KeyboardInterrupt:
        if done is None:
            raise
        print(f"Interrupted: {out} has the predictions of {NAMES[done.model]}, the best of what was compared.")
    assert done is not None  # there is a rival
    if report is not None:
        if done is not reported:  # other models were compared since
            done.write_report(report)
        print(f"{report}: the report.")
    other: Over = "rows" if aim == "groups" else "groups"
    if model is None and 0 < is_new.sum() < len(is_new):
        n, better = int(np.sum(is_new == (other == "groups"))), done.comparison.choose(other)
        said = "it is advised, too" if better == done.model else f"{NAMES[better]} is advised: ask for them apart"
        print(f"For the {say_rows(n)} of {'known' if other == 'rows' else 'new'} groups {said}.")
    return done


def _find_shared(missed: pd.Series, group: Places) -> float:
    """The share of the variance of misses that rows of one group have in common (analysis of variance)."""
    n, of = np.bincount(group), np.bincount(group, missed)
    within = np.sum((missed - (of / np.maximum(n, 1))[group]) ** 2) / max(len(group) - np.count_nonzero(n), 1)
    size = (len(group) - np.sum(n**2) / len(group)) / (np.count_nonzero(n) - 1)
    between = np.sum(of[n > 0] ** 2 / n[n > 0]) - of.sum() ** 2 / len(group)
    between = max((between / (np.count_nonzero(n) - 1) - within) / size, 0.0)
    return min(float(between / (between + within)), 0.99) if between else 0.0


def _say_far(rows: Table, asked: Table) -> list[str]:
    """Features that lie outside of what was seen, a line each."""
    low, high, said = rows.values.min(axis=0), rows.values.max(axis=0), []
    for j, name in enumerate(rows.features):
        n = int(np.sum((asked.values[:, j] < low[j]) | (asked.values[:, j] > high[j])))
        if n:
            said.append(
                f"Note: {name!r} was seen from {low[j]:.6g} to {high[j]:.6g}; {say_rows(n)} to predict outside of that."
            )
    return said


def _say_fit(fit: Fit) -> str:
    """How exact the network's predictions are, and what was done where its chains disagree."""
    text = str(fit.precision)
    if fit.chain_weights is None:
        return text
    used = np.sort(fit.chain_weights)[::-1]
    n = int(np.searchsorted(np.cumsum(used), 0.95) + 1)
    return (
        f"{text} The {len(used)} chains sit in different places, so they are weighted by how well, mixed, they predict "
        f"rows that are left out ({n} of them have 95 % of the weight); their disagreement is in the intervals."
    )


def _predict_rival(name: str, rows: Table, asked: Table, seed: int, found: Comparison) -> Prediction:
    """A rival fitted to all rows; for rows of new groups, with settings that were tuned for such.

    Nine tenths of the rows that it had not seen lie in an interval as wide as those of a real outcome are here (split
    conformal prediction, with the normal's shape). In a new group, what the rows of one share of it is ignorance of
    their mean. Source: Vovk, Gammerman and Shafer (2005).
    """
    find_groups(asked, rows.features, rows.groups, new=True)
    for what in ("second_group", "weight"):
        if getattr(rows, what) is not None and getattr(asked, what) is None:
            raise Refused(f"the table has no {what}; wanted: one, as where it was learned from")
    names = (*rows.groups, *(group for group in asked.groups if group not in rows.groups))
    place = pd.Index(names).get_indexer(asked.groups)[asked.group]
    n = len(rows.group)
    both = replace(
        rows, values=np.concatenate([rows.values, asked.values]), group=np.concatenate([rows.group, place]),
        groups=names, y=np.concatenate([rows.y, np.resize(rows.y, len(place))]), ids={},
    )  # fmt: skip
    if rows.second_group is not None:
        seconds = tuple(dict.fromkeys([*rows.second_groups, *asked.second_groups]))
        theirs = pd.Index(seconds).get_indexer(asked.second_groups)[asked.second_group]
        both = replace(both, second_group=np.concatenate([rows.second_group, theirs]), second_groups=seconds)
    ratio, ratio_seen = np.ones(len(place)), np.ones(n)
    if rows.weight is not None and asked.weight is not None:
        both = replace(both, weight=np.concatenate([rows.weight, asked.weight]))
        ratio_seen, ratio = (_network.find_ratio(w, float(hmean(rows.weight))) for w in (rows.weight, asked.weight))
    is_new = place >= len(rows.groups)
    many = is_many(n, len(rows.groups), len(rows.second_groups))
    n_draws = min(REFITS[name], MANY_REFITS) if many else REFITS[name]
    draws = np.empty((n_draws, len(place), *([len(rows.classes)] if rows.kind == "classes" else [])))
    noise = np.empty((1 if rows.kind == "real" else n_draws, len(place))) if rows.kind in NUMBERS else None
    tails = np.empty((1, len(place))) if rows.kind == "heavy" else None
    for new in np.unique(is_new):
        where = np.flatnonzero(is_new == new)
        part = fit_rival(name, both, np.arange(n), n + where, seed=seed, new_groups=bool(new), refits=n_draws)
        draws[:, where] = part.draws
        if rows.kind != "real" and noise is not None:
            noise[:, where] = part.noise
            if tails is not None and part.tails is not None:
                tails[:, where] = part.tails[:1]
        elif noise is not None:
            over: Over = "groups" if new and "groups" in found.loss else "rows"
            square = found.loss[over][name].to_numpy()
            missed = np.sign(found.levels[over][name].to_numpy() - 0.5) * np.sqrt(square)
            own, shrinks = float(np.mean(square)), 0.0
            if rows.weight is not None:
                own, shrinks, _ = _fit_scales(missed, ratio_seen, False)
            far = np.quantile(square / (own + shrinks * ratio_seen**2), min(INTERVAL * (1 + 1 / n), 1))
            far = np.sqrt(far) / norm.ppf((1 + INTERVAL) / 2)
            shared = min(_find_shared(missed, rows.group) * (own + shrinks), own) if new else 0.0
            noise[:, where] = far * np.sqrt(own - shared + shrinks * ratio[where] ** 2)
            levels = np.random.default_rng(seed).normal(0, far * np.sqrt(shared), (n_draws, len(names)))
            draws[:, where] += levels[:, place[where]]
    if noise is not None:
        noise = np.broadcast_to(noise, draws.shape)
        counts = rows.kind == "counts"
        return Prediction(draws, noise, float(n_draws), counts=counts, share=_find_top(rows), tails=tails)
    return Prediction(draws, None, float(n_draws), rows.classes)
