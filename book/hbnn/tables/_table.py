"""What a table is once it was read: its columns, what they were taken for, and questions that all modules ask of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Array, Floats

type Kind = Literal["binary", "real", "heavy", "classes", "counts", "share"]
type AskedKind = Kind | Literal["ordered"]
type Places = NDArray[np.intp]
KINDS: tuple[AskedKind, ...] = ("binary", "real", "heavy", "classes", "ordered", "counts", "share")
NUMBERS = ("real", "heavy", "counts", "share")  # kinds without classes
WEIGHTED = ("real", "heavy", "share")
MOST_CLASSES = 20
FIGURES = ("probability", "low", "high", "noise", "ignorance")
REAL_FIGURES = ("mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance")


def name_figures(kind: Kind | None, classes: Sequence[str]) -> tuple[str, ...]:
    """Columns that predictions of a kind of outcome have, beside those that the table gives."""
    if kind in NUMBERS:
        return REAL_FIGURES
    return (*(f"p_{name}" for name in classes), "class", *FIGURES) if kind == "classes" else FIGURES


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What the columns of a table were taken for: tables and fits have it, and rows that come later are read by it.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> tomorrow = tables.read_table(frame[:1], group="field", features=["rain"], outcome="wheat", like=rows)
    >>> isinstance(rows, tables.Schema), tomorrow.kind
    (True, 'real')
    """

    features: tuple[str, ...]
    groups: tuple[str, ...]  #: sorted, as numbers where they are numbers; of a fit, those with rows in it
    second_groups: tuple[str, ...] = ()
    kind: Kind | None = None  #: of the outcome
    classes: tuple[str, ...] = ()  #: the second of two is the one that is predicted; () for numbers
    ordered: bool = False  #: whether the classes are marks, from low to high
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)  #: of features that are words
    fills: dict[str, float] = field(default_factory=dict, repr=False)  #: of features that were missing: their mean
    share: tuple[float, float] | None = None  #: of what, 1 or 100, and the smallest part of it that is told from 0
    read_as: dict[str, str] = field(default_factory=dict, repr=False)  #: of features that are dates, times or cycles


@dataclass(frozen=True, kw_only=True)
class Table(Schema):
    """A table that was read and checked, row by row in its own order and its own units.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> n, ones = rows.count()
    >>> n.tolist(), ones.tolist()  # rows of each group, and those of the second class
    ([20, 20, 20], [10, 10, 9])
    >>> rows.take(rows.y == 1).values.shape
    (29, 1)
    >>> rows.figures  # what predictions of it will have
    ('probability', 'low', 'high', 'noise', 'ignorance')
    """

    values: Floats  #: (row, feature), finite
    #: (row,), the outcome: float64 in its unit, int64 where it counts, or int32, the place in `classes`; or None
    y: Any
    group: Places  #: (row,), the place of each row's group in `groups`
    ids: dict[str, Array] = field(repr=False)  #: (row,) each: "line" of the file or "row", and what is carried
    columns: dict[str, str | None] = field(repr=False)  #: names of the columns "group", "outcome" and "second_group"
    notes: tuple[str, ...] = field(default=(), repr=False)  #: what looks odd, a sentence each
    second_group: Places | None = None  #: (row,), as `group`, of a second grouping
    weight: Floats | None = None  #: (row,), of how many measurements an outcome is the mean

    def __str__(self) -> str:
        """What was read, in a sentence for each: rows and groups, the outcome and what it was taken for."""
        n, outcome = self.count()[0], self.columns["outcome"]
        read = f"{say_rows(len(self.values))} in {len(self.groups)} groups of {self.columns['group']!r}"
        read += f" ({n.min():,} to {n.max():,} rows each), "
        if self.second_group is not None:
            read += f"{len(self.second_groups)} of {self.columns['second_group']!r}, "
        read += f"{len(self.features)} features"
        if self.y is None:
            read += ", no outcome."
        elif self.kind in NUMBERS:
            what = "counts" if self.kind == "counts" else "is a number"
            what = f"is a share of {self.share[0]:g}" if self.share else what
            read += f".\n{outcome!r} {what}, from {self.y.min():.4g} to {self.y.max():.4g} (kind={self.kind!r})."
        else:
            counts = np.bincount(self.y, minlength=len(self.classes))
            found = join((f"{c!r} ({say_rows(k)})" for c, k in zip(self.classes, counts, strict=True)), MOST_CLASSES)
            ends = f"; probabilities are of {self.classes[1]!r}" if self.kind == "binary" else ""
            what, kind = ("ordered classes", "ordered") if self.ordered else ("classes", self.kind)
            read += f".\n{outcome!r} has {len(self.classes)} {what}, {found} (kind={kind!r}){ends}."
        return "\n".join([read, *(f"Note: {note}" for note in self.notes)])

    @property
    def figures(self) -> tuple[str, ...]:
        """Columns that predictions of this outcome have."""
        return name_figures(self.kind, self.classes)

    @property
    def target(self) -> Any:
        """What models learn, (row,): the outcome; of shares the logit, without the ends, as nothing is told from 0 or
        from all that is nearer than half of the smallest part that was seen."""
        if self.share is None or self.y is None:
            return self.y
        return logit(np.clip(self.y / self.share[0], self.share[1] / 2, 1 - self.share[1] / 2))

    def count(self) -> tuple[Places, Places | None]:
        """Rows of each group, (group,), and how many are of the second of two classes (None for other outcomes)."""
        n = np.bincount(self.group, minlength=len(self.groups))
        if self.y is None or self.kind != "binary":
            return n, None
        return n, np.bincount(self.group[self.y == 1], minlength=len(self.groups))

    def take(self, index: Array) -> "Table":
        """Rows by (obs,) places such as ``np.concatenate(split.rows_test)`` or a (row,) mask, of the same groups."""
        names = ("values", "group", "y", "second_group", "weight")
        own: dict[str, Any] = {name: each[index] for name in names if (each := getattr(self, name)) is not None}
        return replace(self, **own, ids={name: values[index] for name, values in self.ids.items()})


def find_groups(
    rows: Table, features: tuple[str, ...], groups: tuple[str, ...], *, new: bool = False, instead: str = ""
) -> Places:
    """Place of each row's group among those that were fitted, (row,); -1 for a new one, which else is refused, as are
    other features, or in another order."""
    if rows.features != features:
        raise Refused(f"the table has the features {rows.features}; wanted: {features}, in this order")
    place = pd.Index(groups).get_indexer(rows.groups)[rows.group]
    if (place < 0).any() and not new:
        name = rows.groups[rows.group[place < 0].min()]
        known = join(map(repr, groups)) + guess(name, groups)
        raise Refused(f"group {name!r} was not seen; wanted: one of {known}{instead}")
    return place


def require_groups(rows: Table) -> None:
    """Refuse rows without an outcome to learn from, or of a single group."""
    if rows.y is None or len(rows.groups) < 2:
        found = f"outcome={rows.columns['outcome']!r} and {len(rows.groups)} values of {rows.columns['group']!r}"
        raise Refused(f"{found}; wanted: rows read with an outcome to learn from, and two groups or more")


def say_rows(n: int | np.integer) -> str:
    """Text such as "1 row" or "1,234 rows"."""
    return f"{n:,} row{'s' * int(n != 1)}"


def measure_bulk(numbers: Floats) -> float:
    """The standard deviation that a normal with the same middle half has; where all of that is one value, their own."""
    return float(np.subtract(*np.quantile(numbers, (0.75, 0.25))) / 1.349 or numbers.std())
