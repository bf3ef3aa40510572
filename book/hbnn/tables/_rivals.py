"""Rivals of the network, from scikit-learn: lines, quadratics and boosted trees, tuned within their training rows.

A group is a column of 0 and 1 each, or a category. The hierarchical line, too, is fitted here, by NUTS.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
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
from hbnn._types import Array, Floats
from hbnn.tables import _network
from hbnn.tables._model import measure_columns, noise_ratio
from hbnn.tables._network import Compiled, Sampler
from hbnn.tables._predictions import Prediction, count_sd, log_density
from hbnn.tables._table import NUMBERS, Kind, Places, Table, measure_bulk

NETWORK, LINE = "network", "hierarchical line"
RIVALS = {  # the simplest first
    "line": "a line, with a level for each group",
    LINE: "a hierarchical line",
    "quadratic": "a quadratic, with a level for each group",
    "trees": "boosted trees",
}
NAMES = RIVALS | {NETWORK: "the hierarchical network"}
SAMPLED: dict[str, dict[str, Any]] = {LINE: {"n_units": 0}, NETWORK: {}}  # by NUTS; options of `build_network`
SHORT_SAMPLER: dict[str, Any] = {"chains": 2, "draws": 300, "tune": 400, "target_accept": 0.9}  # in each fold
RUN: dict[str, Any] = {"chains": 4, "draws": 500, "tune": 500, "target_accept": 0.95}  # of a network that is handed out
MOST = 3  # runs of it
MOST_CATEGORIES = 250  # that boosted trees can tell apart
INNER = 5  # folds within the training rows
MANY_ROWS, MANY_GROUPS = 20_000, 1_000  # beyond, rivals alone, with two folds, two inner folds and few refits
RARE = "The least populated class in y has only"  # scikit-learn's warning where there are fewer rows than folds
STRENGTHS = np.array([0.01, 0.1, 1.0, 10.0])
TREES: dict[str, Any] = {"max_iter": (30, 100), "max_leaf_nodes": (4, 15), "learning_rate": (0.03, 0.1)}
UNSEEN = 1e-3  # probability of a class that was not among the training rows, before all are made to add up to one


def fit_rival(
    name: str, rows: Table, train: Places, test: Places, *, seed: int, new_groups: bool = False, refits: int = 0
) -> Prediction:
    """Predictions of a rival for rows that it has not seen: of one draw, or one for each refit.

    The rivals are scikit-learn's (Pedregosa et al., 2011), but for the hierarchical line, which is that of
    `build_network` with no units, of 600 draws. All settings are tuned by cross-validation within the training rows,
    over rows or, with `new_groups`, over groups. A group is a column of 0 and 1 each; for trees a category, or, where
    there are more than they can tell apart, the mean outcome of the group in other training rows (`TargetEncoder`,
    fitted anew in each inner fold). Means of counts are fitted as a Poisson's, and how far counts vary about them is
    fitted to left-out rows, by a negative binomial. Of heavy-tailed numbers lines minimise Huber's loss, trees absolute
    errors, and Student's t is fitted to left-out rows.

    Parameters
    ----------
    name : str
        One of RIVALS; ValueError for others.
    rows : Table
    train, test : array
        (obs,) places of rows.
    seed : int
    new_groups : bool
        Whether the test rows are of groups that are not among the training rows.
    refits : int
        Fits to rows drawn anew within each group, with replacement, at the settings that were chosen: their spread
        about the one fit says how far a mean is unknown (the bootstrap).

    References
    ----------
    - Pedregosa et al. (2011), JMLR 12.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> forecast = tables.fit_rival("line", rows, np.arange(40), np.arange(40, 60), seed=1)
    >>> forecast.draws.shape  # one line is one draw
    (1, 20)
    >>> bool(abs(forecast.noise[0, 0] - 0.3) < 0.1)
    True
    """
    check_seed(seed)
    check_rivals((name,))
    y, counts = rows.target, rows.kind == "counts"
    if counts and not y[train].any():  # as if half of one had been counted
        mean = np.full((1, len(test)), 0.5 / len(train))
        return Prediction(mean, count_sd(mean, 1.0), 1.0, counts=True)
    if rows.kind not in NUMBERS and len(np.unique(y[train])) == 1:  # nothing to tell apart
        return _predict_classes(rows, np.ones((1, len(test), 1)), y[train][:1])
    if name == LINE:
        return predict_fold(rows, train, rows.take(test), seed=seed, new_groups=new_groups, **SAMPLED[LINE])
    many = is_many(len(train), len(rows.groups), len(rows.second_groups))
    apart = None if rows.kind in NUMBERS else y[train]
    if counts and not y[train].all():
        apart = (y[train] > 0).astype(int)  # of zeros alone nothing can be learned
    folds = _split_inner(rows.group[train], apart, new_groups, seed, 2 if many else INNER)
    learner = _Learner.prepare(name, rows, train, many)
    search = learner.fit(learner.search(*_choose_model(name, rows, train, seed), folds), train)
    if rows.kind not in NUMBERS and not refits:
        return _predict_classes(rows, search.predict_proba(learner.X[test])[None], search.classes_)
    best = search.best_estimator_
    draws = learner.predict(best, learner.X[test])[None]
    if refits:
        drawn = _bootstrap_rows(rows, train, seed, refits)
        again = np.array([learner.predict(learner.fit(clone(best), some), learner.X[test]) for some in drawn])
        off = draws[0] / again.mean(axis=0) if counts else draws[0] - again.mean(axis=0)
        draws = again * off if counts else again + off  # about the fit to the rows as they are
    if rows.kind not in NUMBERS:
        p = np.clip(draws, metrics.FLOOR, 1 - metrics.FLOOR)
        return _predict_classes(rows, p / p.sum(axis=-1, keepdims=True), np.arange(len(rows.classes)))
    if counts or rows.kind == "heavy" or rows.weight is not None:
        return _add_noise(learner, best, draws, folds, test)
    noise = np.sqrt(max(-search.best_score_, 1e-12 * y[train].var(), 1e-300))
    return Prediction(draws, np.full((len(draws), 1), noise), float(len(draws)), share=find_whole(rows))


def _add_noise(
    learner: "_Learner", best: BaseEstimator, draws: Floats, folds: list[tuple[Places, Places]], test: Places
) -> Prediction:
    """The Prediction that means of test rows make, with the noise about means of rows that were left out."""
    rows, train, X = learner.rows, learner.train, learner.X
    told = [learner.predict(learner.fit(clone(best), train[a]), X[train[b]]) for a, b in folds]
    left = train[np.concatenate([b for _, b in folds])]
    mean, those, heavy, n = np.concatenate(told), rows.take(left), rows.kind == "heavy", len(draws)
    if rows.kind == "counts":
        return Prediction(draws, count_sd(draws, _fit_dispersion(mean, those)), float(n), counts=True)
    own, shrinks, nu = fit_scales(those.target - mean, learner.ratio[left], heavy)
    noise = np.broadcast_to(np.sqrt(own + shrinks * learner.ratio[test] ** 2), draws.shape)
    return Prediction(draws, noise, float(n), share=find_whole(rows), tails=np.full((n, 1), nu) if heavy else None)


@dataclass(frozen=True)
class _Learner:
    """Rows as a rival sees them: columns of features and of groups, scaled by the rows that it learns from."""

    rows: Table
    train: Places
    X: Any  # (row, column), dense or sparse
    ratio: Floats  # (row,), of a row's noise to that of one of mean weight

    @classmethod
    def prepare(cls, name: str, rows: Table, train: Places, many: bool) -> "_Learner":
        """The columns of a rival."""
        ratio, n = np.ones(len(rows.group)), len(rows.group)
        if rows.weight is not None:
            ratio = noise_ratio(rows.weight, float(hmean(rows.weight[train])))
        center, width = measure_columns(rows.values[train])
        X = (rows.values - center) / width
        places = [(place, len(names)) for place, names in _list_groupings(rows)]
        if name == "trees":
            return cls(rows, train, np.column_stack([X, *(place for place, _ in places)]), ratio)
        if name == "quadratic":
            bent = PolynomialFeatures(2, include_bias=False).fit_transform(X)
            center, width = measure_columns(bent[train])
            X = (bent - center) / width
        levels = hstack([csr_array((np.ones(n), (np.arange(n), place)), (n, k)) for place, k in places])
        X = csr_array(hstack([X, levels])) if many else np.column_stack([X, levels.toarray()])
        return cls(rows, train, X, ratio)

    def search(self, model: BaseEstimator, grid: dict[str, Any], folds: list[tuple[Places, Places]]) -> GridSearchCV:
        """A search of settings by folds of the training rows."""
        square = "neg_mean_squared_error"
        known = {"heavy": "neg_mean_absolute_error", "real": square, "share": square}
        return GridSearchCV(model, grid, cv=folds, scoring=known.get(str(self.rows.kind), self.score))

    def fit(self, model: BaseEstimator, where: Places) -> Any:
        """A model fitted to some rows."""
        inner = getattr(model, "estimator", model)  # of a search
        last = f"{inner.steps[-1][0]}__" if isinstance(inner, Pipeline) else ""
        weights = {} if self.rows.weight is None else {f"{last}sample_weight": self.ratio[where] ** -2}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a solver that needs more steps at one of the settings
            warnings.filterwarnings("ignore", RARE)  # in the folds of `TargetEncoder`
            return model.fit(self.X[where], self.rows.target[where], **weights)

    def predict(self, model: BaseEstimator, X: Floats) -> Floats:
        """Means (row,), or probabilities (row, class); a fold may be without one of the classes."""
        if self.rows.kind == "counts":  # a square may run away where the mean is its exponential
            return np.clip(model.predict(X), 1e-6, 100 * self.rows.y[self.train].max())
        if self.rows.kind in NUMBERS:
            return model.predict(X)
        return _complete_classes(model.predict_proba(X), model.classes_, len(self.rows.classes))

    def score(self, model: BaseEstimator, X: Floats, y: Array) -> float:
        """What settings of counts and classes are chosen by."""
        found = self.predict(model, X)
        if self.rows.kind == "counts":
            return -mean_poisson_deviance(y, found)
        return float(np.log(found[np.arange(len(y)), y]).mean())


def _list_groupings(rows: Table) -> list[tuple[Places, tuple[str, ...]]]:
    """Places and names of groups, and of second groups where there are any."""
    second = [] if rows.second_group is None else [(rows.second_group, rows.second_groups)]
    return [(rows.group, rows.groups), *second]


def _choose_model(name: str, rows: Table, train: Places, seed: int) -> tuple[BaseEstimator, dict[str, Any]]:
    """A model of scikit-learn, and the settings to choose from."""
    if name == "trees":
        sizes = [len(np.unique(place[train])) for place, _ in _list_groupings(rows)]
        return _make_trees(len(rows.features), sizes, rows.kind, seed)
    if rows.kind == "heavy":
        huber = TransformedTargetRegressor(HuberRegressor(max_iter=1000), transformer=RobustScaler())
        return huber, {"regressor__alpha": 1 / STRENGTHS}
    if rows.kind == "counts":
        return PoissonRegressor(max_iter=1000), {"alpha": 1 / STRENGTHS / len(train)}
    if rows.kind in NUMBERS:
        return Ridge(), {"alpha": 1 / STRENGTHS}
    return LogisticRegression(max_iter=1000), {"C": STRENGTHS}


def _fit_dispersion(mean: Floats, rows: Table) -> float:
    """The most likely dispersion of counts about the means of rows that were left out."""

    def miss(log: float) -> float:
        return -log_density(Prediction(mean[None], count_sd(mean[None], np.exp(log)), counts=True), rows).sum()

    return float(np.exp(minimize_scalar(miss, bounds=(np.log(1e-3), np.log(10.0)), method="bounded").x))


def fit_scales(missed: Floats, ratio: Floats, heavy: bool) -> tuple[float, float, float]:
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


def find_whole(rows: Table) -> float:
    """What an outcome is a share of; 0 for others."""
    return rows.share[0] if rows.share else 0.0


def is_many(n_rows: int, *n_groups: int) -> bool:
    """Whether a network would take hours, and columns of groups more memory than there is."""
    return n_rows > MANY_ROWS or max(n_groups) > MANY_GROUPS


def _bootstrap_rows(rows: Table, train: Places, seed: int, n: int) -> Iterator[Places]:
    """Training rows drawn again n times, with replacement, as many of each group; with two classes or more in them."""
    y, g = rows.target, rows.group
    for child in np.random.SeedSequence(seed).spawn(n):
        rng, some = np.random.default_rng(child), train[:0]
        while not len(some) or (y.dtype.kind != "f" and len(np.unique(y[some])) < 2):
            order = train[np.lexsort((rng.random(len(train)), g[train]))]
            first = np.searchsorted(g[order], g[order])
            size = np.bincount(g[order], minlength=g.max() + 1)[g[order]]
            some = order[first + (rng.random(len(order)) * size).astype(int)]
        yield some


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


def _split_inner(
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
    return folds or _split_inner(group, y, False, seed, n_inner)


def _complete_classes(p: Floats, seen: NDArray[np.integer], n_classes: int) -> Floats:
    """Probabilities (…, class seen) as those of all classes, none below `metrics.FLOOR`."""
    full = np.full((*p.shape[:-1], n_classes), UNSEEN)
    full[..., seen] = p
    return np.maximum(full / full.sum(axis=-1, keepdims=True), metrics.FLOOR)


def _predict_classes(rows: Table, p: Floats, seen: NDArray[np.integer]) -> Prediction:
    """The Prediction that probabilities (draw, row, class seen) make."""
    full = _complete_classes(p, seen, len(rows.classes))
    return Prediction(full[..., 1] if rows.kind == "binary" else full, None, float(len(p)), rows.classes)


def check_rivals(rivals: Sequence[str]) -> None:
    """Raise ValueError for a rival that is none."""
    if isinstance(rivals, str) or not rivals or not set(rivals) <= set(RIVALS):
        raise ValueError(f"rivals={rivals!r}; wanted: some of {', '.join(map(repr, RIVALS))}")


def predict_fold(
    rows: Table,
    train: Places,
    held: Table,
    *,
    seed: int,
    new_groups: bool,
    network: Compiled | None = None,
    sampler: Sampler = None,
    cores: int = 1,
    **options: Any,
) -> Prediction:
    """Of held-out rows: by the networks or lines of their groups, or by ones drawn for groups that were left out."""
    short = SHORT_SAMPLER | dict(sampler or {})
    known = _network.fit_network(
        rows, seed=seed, network=network, index=train, sampler=short, judged=False, cores=cores, **options
    )
    if new_groups and {rows.groups[g] for g in np.unique(held.group)} & set(known.groups):
        raise RuntimeError("a group stands on both sides of a fold; this is a mistake in hbnn.tables: report it")
    return _network.predict(known, held, seed=seed)
