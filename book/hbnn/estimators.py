"""The network of a table as scikit-learn has its models: for cross-validation, searches of settings and pipelines."""

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as e:
    raise ImportError('estimators need scikit-learn: pip install "hbnn[tables]"') from e

from hbnn._types import Array, Floats
from hbnn.tables._fit import MOST, Compiled, Sampler, compile_network, fit_network
from hbnn.tables._predict import Prediction, predict, score_rows, tabulate_predictions
from hbnn.tables._read import NUMBERS, AskedKind, Table, read_table

_compiled: "dict[tuple[Any, ...], Compiled]" = {}  # the folds of a search differ in their rows alone


def _compile_cached(rows: Table, n_units: int | None) -> "Compiled":
    """The network for a table of this shape, compiled once."""
    shape = tuple(map(len, (rows.groups, rows.second_groups, rows.features, rows.classes)))
    key = (*shape, rows.kind, rows.ordered, n_units)
    if key not in _compiled:
        if len(_compiled) == 8:
            _compiled.clear()
        _compiled[key] = compile_network(rows, n_units=n_units)
    return _compiled[key]


class _Network(BaseEstimator):
    """What both have in common; the group is a column of X, so that folds need no second argument."""

    classes_: Array

    def __init__(
        self,
        group: int | str = 0,
        *,
        second_group: int | str | None = None,
        kind: AskedKind | None = None,
        n_units: int | None = None,
        sampler: Sampler = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.group, self.second_group, self.kind, self.n_units = group, second_group, kind, n_units
        self.sampler, self.random_state = sampler, random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from rows; warns where the chains do not say what is predicted of them exactly enough."""
        rows = self._read(X, y, new=True)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        network = _compile_cached(rows, self.n_units)
        self.fit_ = fit_network(rows, seed=self.seed_, network=network, sampler=self.sampler, asked=rows, most=MOST)
        if self.fit_.precision is not None and not self.fit_.precision.usable:
            warnings.warn(str(self.fit_.precision), ConvergenceWarning, stacklevel=2)
        return self

    def score_lpd(self, X: ArrayLike, y: ArrayLike) -> float:
        """Mean log predictive density of rows, nats: ``scoring=HierarchicalRegressor.score_lpd`` in a search."""
        rows, predicted = self._predict_rows(X, y)
        return float(score_rows(predicted, rows).mean())

    def _read(self, X: ArrayLike, y: ArrayLike | None = None, *, new: bool) -> Table:
        """The table that X and y are, with the features and words of the fit unless they are new."""
        least: dict[str, Any] = {"ensure_min_samples": 2, "ensure_min_features": 2} if new else {}
        number = {} if y is None or is_classifier(self) else {"y_numeric": True}
        checked = validate_data(
            self, X, y if new or y is not None else "no_validation", reset=new, dtype=None,
            ensure_all_finite="allow-nan", **least, **number,
        )  # fmt: skip
        values, y = (checked, None) if y is None else checked
        names = list(getattr(self, "feature_names_in_", [f"x{k}" for k in range(self.n_features_in_)]))
        group, second = (g if g is None or isinstance(g, str) else names[g] for g in (self.group, self.second_group))
        frame, classes = pd.DataFrame(values, columns=names).infer_objects(), None
        if not is_classifier(self) and self.kind not in (None, *NUMBERS):
            raise ValueError(f"kind={self.kind!r}; wanted: {', '.join(map(repr, NUMBERS))}, or None")
        if self.kind == "ordered" and y is not None and np.asarray(y).dtype.kind not in "iuf":
            raise ValueError("kind='ordered' and classes that are words; wanted: numbers, from low to high")
        kind = None if y is None else self.kind or (None if is_classifier(self) else "real")
        outcome = None if y is None else "y" + "_" * names.count("y")
        if y is not None and is_classifier(self):
            check_classification_targets(y)
            self.classes_ = np.unique(y) if new else self.classes_
            y, classes = pd.Index(self.classes_).get_indexer(y), [str(k) for k in range(len(self.classes_))]
        return read_table(
            frame if y is None else frame.assign(**{str(outcome): y}), group=str(group), second_group=second,
            outcome=outcome, classes=classes, features=[name for name in names if name not in (group, second)],
            kind=kind, like=None if new else self.fit_,
        )  # fmt: skip

    def _predict_rows(self, X: ArrayLike, y: ArrayLike | None = None) -> tuple[Table, Prediction]:
        """Rows and what is predicted of them, all new groups by the same draws: no row hangs on the others."""
        check_is_fitted(self)
        rows, columns = self._read(X, y, new=False), {"group": "group", "second_group": "second_group", "outcome": None}

        def number(there: tuple[str, ...], place: Array | None, known: tuple[str, ...]) -> Any:
            """Places among groups that are known, and behind them ""; as no group is called."""
            at = None if place is None else pd.Index(known).get_indexer(there)[place]
            return at if at is None else np.where(at < 0, len(known), at)

        fit, asked = self.fit_, replace(rows, columns=columns)
        asked = replace(
            asked, group=number(rows.groups, rows.group, fit.groups), groups=(*fit.groups, ""),
            second_group=number(rows.second_groups, rows.second_group, fit.second_groups),
            second_groups=(*fit.second_groups, ""),
        )  # fmt: skip
        return asked, predict(fit, asked, seed=self.seed_)


class HierarchicalRegressor(RegressorMixin, _Network):
    """The hierarchical network of `tables.build_network` for a number, as a regressor of scikit-learn.

    Rows of groups that were fitted are predicted by their own networks, others by networks drawn from what the groups
    have in common. ``score`` is R², as scikit-learn has it. Where rows are sorted by group, folds that are not shuffled
    leave whole groups out; to do so on purpose, pass a `GroupKFold` and ``groups=X["field"]`` to `cross_val_score`.
    Rows cannot be weighted. `tables.answer` compares rivals, and advises.

    Parameters
    ----------
    group : str or int
        Name, or place, of the column of X that says which group a row is of; all others are features, of numbers or
        words, as in `tables.read_table`.
    second_group : str or int, optional
        Of another grouping, as there.
    kind : {"real", "counts", "share"}, optional
        None says "real", too.
    n_units : int, optional
        As in `tables.build_network`.
    sampler : dict, optional
        What to change in 4 chains of 500 draws.
    random_state : int or RandomState, optional
        As scikit-learn has it.

    Attributes
    ----------
    fit_ : Fit
        What `tables.fit_network` returns, for `tables.predict_new_group` and `tables.save_fit`.

    Examples
    --------
    Few and short chains, to be quick:

    >>> from hbnn import HierarchicalRegressor, tables
    >>> from sklearn.model_selection import cross_val_score
    >>> frame = tables.example_frame()
    >>> X, y = frame[["field", "rain"]], frame["wheat"]
    >>> short = {"chains": 2, "draws": 200, "tune": 300}
    >>> model = HierarchicalRegressor("field", n_units=2, sampler=short, random_state=1)
    >>> bool(cross_val_score(model, X, y, cv=2).mean() > 0.8)  # R²
    True
    >>> low, high = model.fit(X, y).predict_interval(X, level=0.9).T
    >>> bool(0.8 < ((low < y) & (y < high)).mean())
    True
    """

    def predict(self, X: ArrayLike) -> Floats:
        """The mean of each row, (row,)."""
        return self._predict_rows(X)[1].to_unit()[0].mean(axis=0)

    def predict_interval(self, X: ArrayLike, level: float = 0.9) -> Floats:
        """The interval of each outcome, equal-tailed: its low and high end, (row, 2)."""
        return tabulate_predictions(*self._predict_rows(X), interval=level)[["low", "high"]].to_numpy(dtype=float)


class HierarchicalClassifier(ClassifierMixin, _Network):
    """The same for two classes or more, with 10 rows of each; parameters as there; None finds the `kind`, and "ordered"
    is for three numbers or more that are marks, from low to high.

    Examples
    --------
    >>> from hbnn import HierarchicalClassifier, tables
    >>> frame = tables.example_frame()
    >>> X, y = frame[["field", "rain"]], frame["good"]
    >>> model = HierarchicalClassifier("field", n_units=2, sampler={"draws": 100, "tune": 200}, random_state=1)
    >>> model.fit(X, y).predict_proba(X).shape, model.classes_.tolist()
    ((60, 2), ['no', 'yes'])
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    def predict_proba(self, X: ArrayLike) -> Floats:
        """The probability of each class, (row, class), in the order of ``classes_``."""
        p = self._predict_rows(X)[1].draws.mean(axis=0)
        return np.column_stack([1 - p, p]) if p.ndim == 1 else p

    def predict(self, X: ArrayLike) -> Array:
        """The most probable class of each row, (row,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
