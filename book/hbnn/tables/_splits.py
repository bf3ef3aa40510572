"""Rows for training and testing: split within groups, and folds of rows and of whole groups."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import join
from hbnn._types import Array, Floats
from hbnn.tables._table import NUMBERS, Places, Table, require_groups, say_rows


@dataclass(frozen=True)
class Split:
    """Rows for training and for testing, by group and scaled, as a network for groups takes them.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> split = tables.split_rows(rows, seed=1)
    >>> split.groups, split.features
    (('a', 'b', 'c'), ('rain',))
    >>> split.scale([[50.0]]).shape  # values in the table's units
    (1, 1)
    """

    X_train: list[Floats]  #: (obs, feature) of each group: (value - center) / width
    y_train: list[Array]  #: (obs,) of each group, as in `Table`
    X_test: list[Floats]
    y_test: list[Array]
    rows_train: list[Places]  #: (obs,) of each group: where these rows stand in the table
    rows_test: list[Places]
    groups: tuple[str, ...]
    features: tuple[str, ...]
    center: Floats  #: (feature,), mean of all training rows, in the table's units
    width: Floats  #: (feature,), their standard deviation

    def scale(self, values: ArrayLike) -> Floats:
        """Values in the table's units, (…, feature), on the scale of the training rows."""
        return (np.asarray(values, dtype=float) - self.center) / self.width


def split_rows(
    rows: Table,
    *,
    seed: int,
    train_share: float = 0.5,
    max_train: int | None = None,
    min_rows: int = 10,
    allow_one_class: bool = False,
) -> Split:
    """Split a table within its groups, and scale it by its training rows.

    In every group the classes are split in the same proportion, so that a small group has all in training. Centre and
    width are those of the training rows of all groups: what sets one group apart from another stays in the numbers.

    Parameters
    ----------
    rows : Table
    seed : int
    train_share : float
        Of each group.
    max_train : int, optional
        Rows of each group, at most.
    min_rows : int
        What a group must have, at least 4.
    allow_one_class : bool
        Let groups in whose rows are all of one class, for partial pooling alone.

    Raises
    ------
    Refused
        For no outcome, one group, too few rows or one class in a group, a constant feature.
    ValueError
        For odd arguments.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> split = tables.split_rows(rows, seed=1)
    >>> [len(y) for y in split.y_train], [len(y) for y in split.y_test]
    ([10, 10, 10], [10, 10, 10])
    """
    check_seed(seed)
    if not 0 < train_share < 1 or (max_train is not None and max_train < 2) or min_rows < 4:
        wanted = "0 < train_share < 1, max_train of at least 2 or None, min_rows of at least 4"
        raise ValueError(f"train_share={train_share}, max_train={max_train}, min_rows={min_rows}; wanted: {wanted}")
    require_groups(rows)
    own = [np.flatnonzero(rows.group == g) for g in range(len(rows.groups))]
    classes = np.zeros(len(rows.group)) if rows.kind in NUMBERS else rows.y
    unusable = []
    for name, index in zip(rows.groups, own, strict=True):
        alone = rows.kind not in NUMBERS and len(np.unique(classes[index])) < 2 and not allow_one_class
        if len(index) < min_rows or alone:
            ones = f", {rows.y[index].sum():,} of class 1" if rows.kind == "binary" else ""
            unusable.append(f"{name!r} ({say_rows(len(index))}{ones})")
    if unusable:
        wanted = f"at least {min_rows} in each and both classes (or allow_one_class=True); merge or leave groups out"
        raise Refused(f"too few rows, or one class, in group {join(unusable)}; wanted: {wanted}")
    train, test = [], []
    for index, child in zip(own, np.random.SeedSequence(seed).spawn(len(own)), strict=True):
        n_train = min(max(round(train_share * len(index)), 2), len(index) - 1, max_train or len(index))
        picked = _pick(classes[index], n_train, np.random.default_rng(child))
        train.append(index[picked])
        test.append(index[~picked])
    seen = rows.values[np.concatenate(train)]
    center, width = seen.mean(axis=0), seen.std(axis=0)
    same = np.array(rows.features)[(np.ptp(seen, axis=0) == 0) | (width == 0)].tolist()
    if same:
        raise Refused(f"the same in all training rows: {join(map(repr, same))}; wanted: features that vary")
    X = (rows.values - center) / width
    (X_train, y_train), (X_test, y_test) = (
        ([X[index] for index in part], [rows.y[index] for index in part]) for part in (train, test)
    )
    return Split(
        X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test, rows_train=train, rows_test=test,
        groups=rows.groups, features=rows.features, center=center, width=width,
    )  # fmt: skip


def _pick(classes: Array, n_train: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A mask of rows for training, (obs,): each class in its proportion and at least once, the last one first."""
    picked = np.zeros(len(classes), dtype=bool)
    left, n_left = n_train, len(classes)
    for n_later, name in reversed(list(enumerate(np.unique(classes)))):
        own = np.flatnonzero(classes == name)
        n = round(left * len(own) / n_left)
        n = min(max(n, 1), max(left - n_later, 0))
        n_left -= len(own)
        n = min(max(n, left - n_left), len(own))
        picked[rng.permutation(own)[:n]] = True
        left -= n
    return picked


def make_folds(rows: Table, *, seed: int, n_folds: int = 5) -> dict[str, Places]:
    """The number of each row's fold, over rows and over whole groups.

    Returns
    -------
    dict
        "rows", to which groups and classes are spread evenly, and "groups", to which whole groups are, (row,) each.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> folds = tables.make_folds(rows, seed=1, n_folds=3)
    >>> {over: [int((fold == k).sum()) for k in range(3)] for over, fold in folds.items()}
    {'rows': [20, 20, 20], 'groups': [20, 20, 20]}
    >>> len(set(folds["groups"][rows.group == 0]))
    1
    """
    check_seed(seed)
    check_count(n_folds, "n_folds", least=2)
    rng = np.random.default_rng(seed)
    classes = np.zeros(len(rows.group)) if rows.kind in NUMBERS else rows.y
    order = np.lexsort((rng.random(len(rows.group)), classes, rows.group))
    by_row = np.empty(len(order), dtype=int)
    by_row[order] = np.arange(len(order)) % n_folds
    sizes = rows.count()[0]
    by_size = np.lexsort((rng.random(len(sizes)), -sizes))
    rank = np.empty(len(sizes), dtype=int)
    rank[by_size] = np.arange(len(sizes))
    return {"rows": by_row, "groups": (rank % min(n_folds, len(sizes)))[rows.group]}
