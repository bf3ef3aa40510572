"""Is the network worth it? Four rivals, cross-validation over rows and over whole groups, and advice in a sentence.

`answer` is the whole way from a file to ``predictions.csv``. A model is left in the cold for rows, and for groups, that
it has not seen; differences are taken row by row, and their errors over groups.
"""

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, TargetEncoder

from hbnn import metrics
from hbnn._checks import check_seed
from hbnn._text import join, plus_minus
from hbnn._types import Array, Floats
from hbnn.tables import _network
from hbnn.tables._network import Compiled, Cost, Fit, Sampler, say_time
from hbnn.tables._predictions import Prediction, check_names, check_path, score_rows, write_predictions
from hbnn.tables._read import Kind, Places, Source, Table, make_folds, read_table

type Over = Literal["rows", "groups"]
NETWORK = "network"
RIVALS = {  # the simplest first
    "line": "a line, with a level for each group",
    "hierarchical line": "a hierarchical line (Bambi)",
    "quadratic": "squares and products, with a level for each group",
    "trees": "boosted trees",
}
NAMES = RIVALS | {NETWORK: "the hierarchical network"}
CLEARLY, WORSE = 2.8, 2.0  # standard errors: by which the network must lead, and a simple rival must not be behind
FEW_GROUPS = 8  # below, errors are taken over rows
MOST_CATEGORIES = 250  # that boosted trees can tell apart
MOST_SLOPES = 6  # features with a slope for each group
INNER = 5
RARE = "The least populated class in y has only"  # scikit-learn's warning where there are fewer rows than folds
OVER: tuple[Over, ...] = ("rows", "groups")
STRENGTHS = np.array([0.01, 0.1, 1.0, 10.0])
TREES: dict[str, Any] = {"max_iter": (30, 100), "max_leaf_nodes": (4, 15), "learning_rate": (0.03, 0.1)}
SHORT_SAMPLER: dict[str, Any] = {"chains": 2, "draws": 300, "tune": 400, "target_accept": 0.9}  # in each fold
RIVAL_SECONDS = {"line": 0.5, "hierarchical line": 22, "quadratic": 1, "trees": 6}  # in a fold; Bambi compiles
UNSEEN = 1e-3  # probability of a class that was not among the training rows, before all are made to add up to one
UNJUDGED = (
    "The network cannot be judged: its chains do not agree, and with others its scores may be different. To judge it, "
    "sample for longer, sampler={'draws': …, 'tune': …} with more of both, or give it fewer n_units; `fit.verdict` "
    "says where the chains disagree."
)
BAMBI = {"chains": 2, "draws": 400, "tune": 400}


# --- rivals


def fit_rival(
    name: str, rows: Table, train: Places, test: Places, *, seed: int, new_groups: bool = False
) -> Prediction:
    """Predictions of a rival for rows that it has not seen: of one draw, but for Bambi, whose chains are not judged.

    All settings are tuned by cross-validation within the training rows, over rows or, with `new_groups`, over groups.
    The group is a column of 0 and 1 each; for trees a category, or, where there are more than they can tell apart, the
    mean outcome of the group in other training rows (`TargetEncoder`, fitted anew in each inner fold).

    Parameters
    ----------
    name : one of RIVALS; ValueError for others
    train, test : (obs,) places of rows
    new_groups : whether the test rows are of groups that are not among the training rows

    Source: Pedregosa et al. (2011), JMLR 12; Capretto et al. (2022), Bambi, Journal of Statistical Software 103.

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
    real, y, g = rows.kind == "real", rows.y, rows.group
    if not real and len(np.unique(y[train])) == 1:  # nothing to tell apart
        return _give_classes(rows, np.ones((1, len(test), 1)), y[train][:1])
    center, width = _network.measure_columns(rows.values[train])
    X = (rows.values - center) / width
    if name == "hierarchical line":
        return _fit_bambi(rows, X, train, test, seed)
    if name == "trees":
        model, grid = _make_trees(X.shape[1], len(np.unique(g[train])), real, seed)
        X = np.column_stack([X, g])
    else:
        if name == "quadratic":
            bent = PolynomialFeatures(2, include_bias=False).fit_transform(X)
            center, width = _network.measure_columns(bent[train])
            X = (bent - center) / width
        X = np.column_stack([X, np.eye(len(rows.groups))[g]])
        model = Ridge() if real else LogisticRegression(max_iter=1000)
        grid = {"alpha": 1 / STRENGTHS} if real else {"C": STRENGTHS}

    def measure(model: BaseEstimator, X: Floats, y: Array) -> float:  # a fold may be without one of the classes
        p = _fill_classes(model.predict_proba(X), model.classes_, len(rows.classes))
        return float(np.log(p[np.arange(len(y)), y]).mean())

    folds = _split_again(g[train], None if real else y[train], new_groups, seed)
    search = GridSearchCV(model, grid, cv=folds, scoring="neg_mean_squared_error" if real else measure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a solver that needs more steps at one of the settings
        warnings.filterwarnings("ignore", RARE)  # in the folds of `TargetEncoder`
        search.fit(X[train], y[train])
    if real:
        noise = np.sqrt(max(-search.best_score_, 1e-12 * y[train].var(), 1e-300))
        return Prediction(search.predict(X[test])[None], np.full((1, 1), noise), 1.0)
    return _give_classes(rows, search.predict_proba(X[test])[None], search.classes_)


def _make_trees(n_features: int, n_groups: int, real: bool, seed: int) -> tuple[BaseEstimator, dict[str, Any]]:
    """Boosted trees of features and, in the last column, the group; and the settings to choose from."""
    few = n_groups <= MOST_CATEGORIES
    options = {"min_samples_leaf": 5, "categorical_features": [n_features] if few else None, "random_state": seed}
    model = (HistGradientBoostingRegressor if real else HistGradientBoostingClassifier)(**options)
    if few:
        return model, TREES
    folds = (KFold if real else StratifiedKFold)(INNER, shuffle=True, random_state=seed)
    encoded = make_column_transformer((TargetEncoder(cv=folds), [n_features]), remainder="passthrough")
    return make_pipeline(encoded, model), {f"{type(model).__name__.lower()}__{k}": v for k, v in TREES.items()}


def _split_again(group: Places, y: Array | None, new_groups: bool, seed: int) -> list[tuple[Places, Places]]:
    """Inner folds of the training rows, a list of (train, test), each with two classes or more to learn from."""
    n_groups = len(np.unique(group))
    by_group = new_groups and n_groups > 1
    kinds = (GroupKFold, StratifiedGroupKFold) if by_group else (KFold, StratifiedKFold)
    n_folds = min(INNER, n_groups if by_group else len(group))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", RARE)
        folds = kinds[y is not None](n_folds, shuffle=True, random_state=seed)
        folds = list(folds.split(group, y, groups=group if by_group else None))
    folds = [(a, b) for a, b in folds if len(b) and (y is None or len(np.unique(y[a])) > 1)]
    return folds or _split_again(group, y, False, seed)


def _fill_classes(p: Floats, seen: NDArray[np.integer], n_classes: int) -> Floats:
    """Probabilities (…, class seen) as those of all classes, none below `metrics.FLOOR`."""
    full = np.full((*p.shape[:-1], n_classes), UNSEEN)
    full[..., seen] = p
    return np.maximum(full / full.sum(axis=-1, keepdims=True), metrics.FLOOR)


def _give_classes(rows: Table, p: Floats, seen: NDArray[np.integer]) -> Prediction:
    """The Prediction that probabilities (draw, row, class seen) make."""
    full = _fill_classes(p, seen, len(rows.classes))
    return Prediction(full[..., 1] if rows.kind == "binary" else full, None, float(len(p)), rows.classes)


def _fit_bambi(rows: Table, X: Floats, train: Places, test: Places, seed: int) -> Prediction:
    """A line and a level for each group, and slopes of each group's own where there are few features.

    A group that was not fitted is, in each draw, one of those that were, taken at random: this is Bambi's way.
    """
    import bambi  # takes seconds, and most need no Bambi

    names = [f"x{k}" for k in np.flatnonzero(np.ptp(X[train], axis=0) > 0)]  # a constant has no slope
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    frame["g"] = np.array([f"g{k:06d}" for k in range(len(rows.groups))])[rows.group]
    real, several = rows.kind == "real", rows.kind == "classes"
    frame["y"] = np.array([f"c{k:03d}" for k in range(len(rows.classes))])[rows.y] if several else rows.y
    slopes = [] if several or len(names) > MOST_SLOPES else names
    formula = f"y ~ {' + '.join(['1', *names])} + ({' + '.join(['1', *slopes])} | g)"
    family = "gaussian" if real else "categorical" if several else "bernoulli"
    options = {"cores": 1, "progressbar": False, "target_accept": 0.9, "compute_convergence_checks": False}
    loggers = {logging.getLogger(name): logging.getLogger(name).level for name in ("pymc", "bambi")}
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "'sample_new_groups' is deprecated")  # and wanted for other versions
            model = bambi.Model(formula, frame.iloc[train], family=family)
            tree = model.fit(random_seed=seed, **options, **BAMBI)
            new = frame.iloc[test].drop(columns="y")
            tree = model.predict(tree, data=new, inplace=False, sample_new_groups=True, random_seed=seed)
    finally:
        for logger, level in loggers.items():
            logger.setLevel(level)
    posterior = tree["posterior"]
    draws = posterior["mu" if real else "p"].values
    draws = draws.reshape(-1, *draws.shape[2:])
    if several:
        return _give_classes(rows, draws, np.unique(rows.y[train]))
    return Prediction(draws, posterior["sigma"].values.reshape(-1, 1) if real else None, float(len(draws)))


# --- cross-validation


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each model scores on rows, and on groups, that it has not seen: dicts of "rows" and "groups".

    Examples
    --------
    Goes on from `compare_rivals`. Where the network's chains did not agree:

    >>> comparison.choose(), comparison.advise(converged=False)[:28]
    ('line', 'The network cannot be judged')
    """

    lpd: dict[Over, pd.DataFrame]  #: (row, model), log predictive densities, nats
    loss: dict[Over, pd.DataFrame]  #: (row, model), 1 for a class that was missed, or the squared error of a number
    group: Places
    kind: Kind | None
    levels: dict[Over, Floats]  #: (row,), the network's probability of what is below a number, or of the second of two
    #: classes, or of the most probable one

    def gain(self, name: str, other: str, over: Over = "rows") -> tuple[float, float]:
        """How much higher the lpd of `name` is than that of `other`, nats per row, and its standard error.

        The error is over groups, as rows of one group share what was learned of it; over rows where there are fewer
        than 8 groups. Source: Cameron and Miller (2015), Journal of Human Resources 50.
        """
        each = (self.lpd[over][name] - self.lpd[over][other]).to_numpy()
        by = self.group if self.by == "groups" else np.arange(len(each))
        sums, n = np.bincount(by, each - each.mean()), len(np.unique(by))
        return float(each.mean()), float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / len(each))

    @property
    def by(self) -> Over:
        """What errors are taken over."""
        return "groups" if len(np.unique(self.group)) >= FEW_GROUPS else "rows"

    def to_frame(self) -> pd.DataFrame:
        """Scores, a line for each model, the best on rows first, with gains of the network."""
        second = "RMSE" if self.kind == "real" else "accuracy (%)"
        lines = {}
        for name in self.lpd["rows"]:
            line = {}
            for over in self.lpd:
                text = f"new {over}"
                loss = self.loss[over][name].mean()
                line[f"lpd, {text}"] = self.lpd[over][name].mean()
                line[f"{second}, {text}"] = np.sqrt(loss) if self.kind == "real" else 100 * (1 - loss)
                if name != NETWORK:
                    line[f"network's gain, {text}"] = plus_minus(*self.gain(NETWORK, name, over))
            lines[name] = line
        frame = pd.DataFrame.from_dict(lines, orient="index").fillna("")
        return frame.sort_values("lpd, new rows", ascending=False).round(3)

    def __str__(self) -> str:
        """The scores on rows, and below them on groups: it fits a page."""
        frame = self.to_frame()
        return "\n".join(frame.filter(like=f"new {over}").to_string() for over in self.lpd)

    def calibrate(self, over: Over = "rows") -> dict[str, float] | dict[str, Array]:
        """How often the network is right: for a real outcome, shares of outcomes in its 50 and 90 % intervals, a dict;
        else `metrics.calibrate` of its probabilities, of the second of two classes, or of the most probable one."""
        p = self.levels[over]
        if self.kind == "real":
            return {f"{share:.0%}": float(np.mean(np.abs(p - 0.5) < share / 2)) for share in (0.5, 0.9)}
        missed = self.loss[over][NETWORK].to_numpy() == 1
        came = ~missed if self.kind == "classes" else (p > 0.5) != missed
        return metrics.calibrate(p, came.astype(int), n_bins=5)

    def choose(self, converged: bool = True) -> str:
        """The model to use: the network if its chains agree and it leads the best rival by more than 2.8 standard
        errors on new rows, else the simplest rival that is not behind the best by more than 2."""
        mean = self.lpd["rows"].mean()
        best = mean.drop(NETWORK).idxmax()
        gain, error = self.gain(NETWORK, best)
        if converged and gain > CLEARLY * error:
            return NETWORK
        for name in (name for name in RIVALS if name in mean):
            behind, error = self.gain(best, name)
            if name == best or behind <= WORSE * error:
                return name
        raise AssertionError("the best rival is not behind itself")

    def advise(self, converged: bool = True) -> str:
        """Which model to use, and why, in a sentence or two; a network whose chains do not agree is not judged."""
        chosen, best = self.choose(converged), self.lpd["rows"].mean().drop(NETWORK).idxmax()
        simpler = f"{NAMES[chosen]} is simpler, and behind it by {plus_minus(*self.gain(best, chosen))}"
        if not converged:
            beside = "" if chosen == best else f"; the best is {NAMES[best]}, but {simpler}, which is not clear"
            return f"{UNJUDGED} Until then, use {NAMES[chosen]}, of the rivals{beside}."
        lead, error = self.gain(NETWORK, best)
        few = f" (fewer than {FEW_GROUPS} groups)" if self.by == "rows" else ""
        side = "ahead of" if lead > 0 else "behind"
        text = f"Use {NAMES[chosen]}: on new rows the network is {side} the best rival, {NAMES[best]}, by "
        text += f"{plus_minus(abs(lead), error)} nats per row (standard error over {self.by}{few}), "
        if chosen == NETWORK:
            return f"{text}which is clear."
        text += "which is not clear" if lead > 0 else "so it has earned no place here"
        if chosen == best:
            return f"{text}, and no simpler rival keeps up." if chosen != "line" else f"{text}."
        return f"{text}; and {simpler}, which is not clear either."


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
    folds = make_folds(rows, seed=seed, n_folds=n_folds)
    network = _network.choose_network(rows, network, options)
    models = [*(name for name in RIVALS if name in rivals), NETWORK]
    found: dict[str, dict[Over, Any]] = {name: {} for name in ("lpd", "loss", "levels")}
    for part in over:
        fold, new, n = folds[part], part == "groups", len(rows.group)
        lpd, loss = (pd.DataFrame(np.nan, index=range(n), columns=models) for _ in range(2))
        level = np.empty(n)
        for k in range(fold.max() + 1):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            held = rows.take(test)
            for name in models:
                if name == NETWORK:
                    predicted = _predict_network(rows, train, held, network, seed, sampler, new)
                    level[test] = _find_level(predicted, held)
                else:
                    predicted = fit_rival(name, rows, train, test, seed=seed, new_groups=new)
                lpd.loc[test, name] = score_rows(predicted, held)
                loss.loc[test, name] = _find_loss(predicted, held)
        for name, values in zip(found, (lpd, loss, level), strict=True):
            found[name][part] = values
    return Comparison(found["lpd"], found["loss"], rows.group, rows.kind, found["levels"])


def _check_rivals(rivals: Sequence[str]) -> None:
    """Raise ValueError for a rival that is none."""
    if isinstance(rivals, str) or not rivals or not set(rivals) <= set(RIVALS):
        raise ValueError(f"rivals={rivals!r}; wanted: some of {', '.join(map(repr, RIVALS))}")


def _predict_network(
    rows: Table, train: Places, held: Table, network: Compiled, seed: int, sampler: Sampler, new_groups: bool
) -> Prediction:
    """Of held-out rows: by the networks of their groups, or by networks drawn for groups that were left out."""
    short = SHORT_SAMPLER | dict(sampler or {})
    known = _network.fit_network(rows, seed=seed, network=network, index=train, sampler=short, judged=False)
    if new_groups and {rows.groups[g] for g in np.unique(held.group)} & set(known.groups):
        raise RuntimeError("a group stands on both sides of a fold; this is a mistake in hbnn.tables: report it")
    return _network.predict(known, held, seed=seed)


def _find_loss(predicted: Prediction, rows: Table) -> Floats:
    """Squared error, or 1 for a class that was missed, (row,)."""
    mean = predicted.draws.mean(axis=0)
    if rows.kind == "real":
        return (mean - rows.y) ** 2
    guess = mean > 0.5 if rows.kind == "binary" else mean.argmax(axis=1)
    return (guess != rows.y).astype(float)


def _find_level(predicted: Prediction, rows: Table) -> Floats:
    """What `Comparison.levels` says of each row, (row,)."""
    if rows.kind == "real":
        return norm.cdf(rows.y, predicted.draws, predicted.noise).mean(axis=0)
    mean = predicted.draws.mean(axis=0)
    return mean if rows.kind == "binary" else mean.max(axis=1)


# --- the one block


@dataclass(frozen=True, repr=False)
class Answer:
    """What `answer` found: the rows, the fit to all of them, and predictions as they stand in the file."""

    rows: Table
    fit: Fit
    comparison: Comparison
    advice: str
    predictions: pd.DataFrame


def answer(
    source: Source,
    *,
    group: str,
    features: Sequence[str],
    outcome: str,
    seed: int,
    predict: Source | None = None,
    out: str | Path = "predictions.csv",
    kind: Kind | None = None,
    classes: Sequence[Any] | None = None,
    ids: Sequence[str] = (),
    sep: str = ",",
    decimal: str = ".",
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    sampler: Sampler = None,
    unconverged: bool = False,
    **options: Any,
) -> Answer:
    """From a table to predictions in a file, with what they cost, whether the chains agree, and which model to use.

    Prints what was read, the cost before it is spent, the verdict, all scores and the advice. Predictions are those of
    the network, fitted to all rows, and where another model is advised, a column "advised" has its predictions. Where
    the chains do not agree, nothing of the network is written: all predictions are then of the rival that is advised.
    The column "model" says whose they are. Rows of `source` were learned from: how good predictions of new rows are,
    the scores say, not the file.

    Parameters
    ----------
    source, group, features, outcome, kind, classes, ids, sep, decimal : as in `read_table`
    predict : rows to predict, of known groups or new ones; an outcome in it is not used. Default: `source`. Rows of a
        new group whose outcome is known belong into `source`, which makes it a known one
    n_folds, rivals : as in `compare_rivals`
    sampler, options : as in `estimate_cost`
    unconverged : whether to write the network's predictions even where its chains do not agree

    Raises
    ------
    Refused, ValueError, OSError
        As `read_table`, `write_predictions`, `estimate_cost` and `compare_rivals`, all before anything is sampled.

    Examples
    --------
    A whole run takes minutes; the chapter on your own file shows one. What cannot be used is refused before:

    >>> import pandas as pd
    >>> from hbnn import tables
    >>> frame = pd.DataFrame({"field": ["a", "b"] * 10, "rain": range(20), "wheat": range(20)})
    >>> tables.answer(frame, group="field", features=["rian"], outcome="wheat", seed=1)
    Traceback (most recent call last):
        ...
    hbnn._refused.Refused: the table has no column 'rian'; there are 'field', 'rain' and 'wheat'. Did you mean 'rain'?
    """
    check_seed(seed)
    columns: dict[str, Any] = {"group": group, "features": features, "ids": ids, "sep": sep, "decimal": decimal}
    rows = read_table(source, outcome=outcome, kind=kind, classes=classes, **columns)
    print(rows)
    asked = rows if predict is None else read_table(predict, outcome=None, **columns)
    if predict is not None:
        new = [name for name in asked.groups if name not in rows.groups]
        print(f"To predict: {asked}" + (f" New groups: {join(map(repr, new), 5)}." if new else ""))
    check_path(out)
    check_names(asked, ("model", "advised", *rows.figures))
    _check_rivals(rivals)
    folds = sum(int(fold.max()) + 1 for fold in make_folds(rows, seed=seed, n_folds=n_folds).values())
    cost = _network.estimate_cost(rows, sampler=sampler, seed=seed, **options)
    print(f"The fit takes {cost}; {_say_rest(cost, _network.merge_sampler(sampler), folds, rivals)}.")
    fit = _network.fit_network(rows, seed=seed, network=cost.network, sampler=sampler)
    print(fit.verdict)
    comparison = compare_rivals(rows, seed=seed, n_folds=n_folds, rivals=rivals, network=cost.network)
    converged = fit.verdict is not None and fit.verdict.converged
    advice, chosen = comparison.advise(converged), comparison.choose(converged)
    print(comparison, advice, sep="\n")
    rival = None if chosen == NETWORK else _predict_rival(chosen, rows, asked, seed)
    extra: dict[str, Any] = {"model": NETWORK}
    if rival is None or converged or unconverged:
        predicted = _network.predict(fit, asked, seed=seed)
    else:
        predicted, extra = rival, {"model": chosen}
    if rival is not None and predicted is not rival:
        mean = rival.draws.mean(axis=0)
        best = np.array(rows.classes, dtype=object)[mean.argmax(axis=1)] if rows.kind == "classes" else mean
        extra |= {"advised": best}
    frame = write_predictions(out, asked, predicted, extra=extra)
    print(f"{out}: {len(frame):,} rows by {NAMES[extra['model']]}, {', '.join(frame.columns)}.")
    return Answer(rows, fit, comparison, advice, frame)


def _say_rest(cost: Cost, sampler: Mapping[str, float], folds: int, rivals: Sequence[str]) -> str:
    """Time for cross-validation, in words."""
    steps, full = (each["chains"] * (each["draws"] + each["tune"]) for each in (SHORT_SAMPLER, sampler))
    seconds = {name: folds * RIVAL_SECONDS[name] for name in rivals}
    text = f"{folds} short ones for the comparison {say_time(folds * steps / full * cost.seconds)}, and the rivals "
    text += say_time(sum(seconds.values()))
    if (bambi := "hierarchical line") in seconds:
        others = tuple(name for name in rivals if name != bambi) or ("line",)
        text += f", of which Bambi, which compiles in each fold, {say_time(seconds[bambi])}"
        text += f"; rivals={others} leaves it out"
    return text


def _predict_rival(name: str, rows: Table, asked: Table, seed: int) -> Prediction:
    """A rival fitted to all rows; for rows of new groups, with settings that were tuned for such."""
    names = (*rows.groups, *(group for group in asked.groups if group not in rows.groups))
    place = pd.Index(names).get_indexer(asked.groups)[asked.group]
    n = len(rows.group)
    both = replace(
        rows, values=np.concatenate([rows.values, asked.values]), group=np.concatenate([rows.group, place]),
        groups=names, y=np.concatenate([rows.y, np.resize(rows.y, len(place))]), ids={},
    )  # fmt: skip
    is_new = place >= len(rows.groups)
    if name == "hierarchical line":  # one posterior for both
        return fit_rival(name, both, np.arange(n), n + np.arange(len(place)), seed=seed)
    draws = np.empty((1, len(place), *([len(rows.classes)] if rows.kind == "classes" else [])))
    noise = np.empty((1, len(place))) if rows.kind == "real" else None
    for new in np.unique(is_new):
        where = np.flatnonzero(is_new == new)
        part = fit_rival(name, both, np.arange(n), n + where, seed=seed, new_groups=bool(new))
        draws[:, where] = part.draws
        if noise is not None:
            noise[:, where] = part.noise
    return Prediction(draws, noise, 1.0, rows.classes)
