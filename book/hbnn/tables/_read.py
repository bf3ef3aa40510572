"""A table with groups, features and an outcome: read and checked, and cut into rows for training and testing.

What cannot be used is refused, with the column and the rows, all at once; no row is dropped. A feature that is missing
in some rows is filled in, and the rows are marked. What looks odd and may be right is a note.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Array, Floats

type Kind = Literal["binary", "real", "classes", "counts", "share"]
type AskedKind = Kind | Literal["ordered"]
type Places = NDArray[np.intp]
type Mask = NDArray[np.bool_]
type Source = str | Path | pd.DataFrame
type Over = Literal["rows", "groups"]
KINDS: tuple[AskedKind, ...] = ("binary", "real", "classes", "ordered", "counts", "share")
NUMBERS = ("real", "counts", "share")  # kinds without classes
MOST_CLASSES = 20  # also levels of a feature of words
AMBIGUOUS = 10  # so many whole numbers may be names or amounts
SMALL = 50  # counts have a middle below
FEW = 3  # rows or values that a message names
LEAST_SPLIT = 10  # rows of a group that is split
LEAK = 0.999  # correlation with the outcome
FAR = 6  # standard deviations of a normal with the same middle half
NOTHING = ("", "NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
TRUTH = {"True": "1", "true": "1", "TRUE": "1", "False": "0", "false": "0", "FALSE": "0"}
READ = "hbnn: read from"  # in the attributes of a frame: what its index counts, and the name of its file
MISSING = "missing"  # the word of a feature that is not there
GROUPED = r"-?[1-9]\d{0,2}(\.\d{3})+"  # 1.234: a mark for thousands, or three decimals?
THOUSANDS = r"-?[1-9]\d{0,2}(,\d{3})+"
GERMAN = r"^(\d{1,2})\.(\d{1,2})\.(\d{4})(?= |$)"
CALENDAR = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?"
ZONE = r"\d:\d{2}.*(?:Z|[+-]\d{2}:?\d{2})$"
CLOCK = r"([01]?\d|2[0-4])((:[0-5]\d){1,2}|(\.[0-5]\d){2})"  # 18:30, or 18.30.00
DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?|\d{1,2}[.:]\d{2}([.:]\d{2})?|-?\d+ days.*"  # one that is not read
MONTH = r"(?i)(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[-./ ]?\d{2,4}|\d{4}[-/]\d{1,2}"
ENDED, LASTED = r"(?i)(status|event|dead|died|death|cens.*)", r"(?i)(fu)?time|days|follow.*|surv.*"
SEPARATOR = "pass sep=';' or sep='\\t' where these separate columns, and decimal=',' where commas are decimal points"


# --- what a table is once it was read


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What the columns of a table were taken for: tables and fits have it, and rows that come later are read by it."""

    features: tuple[str, ...]
    groups: tuple[str, ...]  #: sorted, as numbers where they are numbers; of a fit, those with rows in it
    second_groups: tuple[str, ...] = ()
    kind: Kind | None = None  #: of the outcome
    classes: tuple[str, ...] = ()  #: the second of two is the one that is predicted; () for numbers
    ordered: bool = False  #: whether the classes are marks, from low to high
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)  #: of features that are words
    fills: dict[str, float] = field(default_factory=dict, repr=False)  #: of features that were missing: their mean
    share: tuple[float, float] | None = None  #: of what, 1 or 100, and the smallest part of it that is told from 0
    read_as: dict[str, str] = field(default_factory=dict, repr=False)  #: of features that are dates or times


@dataclass(frozen=True, kw_only=True)
class Table(Schema):
    """A table that was read and checked, row by row in its own order and its own units.

    Examples
    --------
    Goes on from `read_table`.

    >>> rows.count().tolist()  # rows of each group
    [20, 20, 20]
    >>> rows.take(rows.y == 1).values.shape
    (29, 1)
    """

    values: Floats  #: (row, feature), finite
    #: (row,), the outcome: float64 in its unit, int64 where it counts, or int32, the place in `classes`; or None
    y: Any
    group: Places  #: (row,), the place of each row's group in `groups`
    ids: dict[str, Array] = field(repr=False)  #: (row,) each: "line" of the file or "row", and what is carried
    columns: dict[str, str | None] = field(repr=False)  #: names of the columns "group", "outcome" and "second_group"
    notes: tuple[str, ...] = field(default=(), repr=False)  #: what looks odd, a sentence each
    second_group: Places | None = None  #: (row,), as `group`, of a second grouping

    def __str__(self) -> str:
        """What was read, in a sentence for each: rows and groups, the outcome and what it was taken for."""
        n, outcome = self.count(), self.columns["outcome"]
        read = f"{say_rows(len(self.values))} in {len(self.groups)} groups of {self.columns['group']!r}"
        read += f" ({n.min():,} to {n.max():,} rows each), "
        if self.second_group is not None:
            read += f"{len(self.second_groups)} of {self.columns['second_group']!r}, "
        read += f"{len(self.features)} feature{'s' * (len(self.features) != 1)}"
        read += f" (words in {join(map(repr, self.levels))})" * bool(self.levels)
        if self.y is None:
            read += ", no outcome."
        elif self.kind in NUMBERS:
            what = f"is a share of {self.share[0]:g}" if self.share else "is a number"
            what = "counts" if self.kind == "counts" else what
            read += f".\n{outcome!r} {what}, from {self.y.min():.4g} to {self.y.max():.4g} (kind={self.kind!r})."
        else:
            counts = np.bincount(self.y, minlength=len(self.classes))
            found = join((f"{c!r} ({say_rows(k)})" for c, k in zip(self.classes, counts, strict=True)), MOST_CLASSES)
            ends = f"; probabilities are of {self.classes[1]!r}" if self.kind == "binary" else ""
            what, kind = ("ordered classes", "ordered") if self.ordered else ("classes", self.kind)
            read += f".\n{outcome!r} has {len(self.classes)} {what}, {found} (kind={kind!r}){ends}."
        return "\n".join([read, *(f"Note: {note}" for note in self.notes)])

    @property
    def target(self) -> Any:
        """What models learn, (row,): the outcome; of shares the logit, without the ends, as nothing is told from 0 or
        from all that is nearer than half of the smallest part that was seen."""
        if self.share is None or self.y is None:
            return self.y
        p = np.clip(self.y / self.share[0], self.share[1] / 2, 1 - self.share[1] / 2)
        return np.log(p / (1 - p))

    def count(self) -> Places:
        """Rows of each group, (group,)."""
        return np.bincount(self.group, minlength=len(self.groups))

    def take(self, index: Array) -> "Table":
        """Rows by (obs,) places such as ``np.concatenate(split.rows_test)`` or a (row,) mask, of the same groups."""
        names = ("values", "group", "y", "second_group")
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


def check_rows(rows: Table) -> None:
    """Refuse rows from which no model can learn."""
    if rows.y is None or len(rows.groups) < 2:
        found = f"outcome={rows.columns['outcome']!r} and {len(rows.groups)} values of {rows.columns['group']!r}"
        raise Refused(f"{found}; wanted: rows read with an outcome to learn from, and two groups or more")
    if rows.second_group is not None and len(rows.second_groups) < 2:
        raise Refused(f"all rows are of one group of {rows.columns['second_group']!r}; wanted: two, or without it")
    if np.ptp(rows.y) == 0:
        raise Refused(f"{rows.columns['outcome']!r} is the same in all rows; wanted: an outcome that varies")
    if same := [repr(name) for name, x in zip(rows.features, rows.values.T, strict=True) if np.ptp(x) == 0]:
        raise Refused(f"the same in all rows: {join(same)}; wanted: features that vary")


def say_rows(n: int | np.integer) -> str:
    """Text such as "1 row" or "1,234 rows"."""
    return f"{n:,} row{'s' * int(n != 1)}"


# --- reading


def read_table(
    source: Source,
    *,
    group: str | Sequence[str],
    features: Sequence[str],
    outcome: str | None,
    second_group: str | None = None,
    kind: AskedKind | None = None,
    classes: Sequence[Any] | None = None,
    ids: Sequence[str] = (),
    sep: str = ",",
    decimal: str | None = None,
    encoding: str = "utf-8",
    like: Schema | None = None,
) -> Table:
    """A table with one row for each observation: checked, and nothing dropped.

    What becomes of words, gaps, dates and kinds of outcome, the reference says on its page on tables.

    Parameters
    ----------
    source : path or DataFrame
        A CSV file with names in its first line, or a frame.
    group : str or list of str
        The column that says which group a row is of, or several that say so together.
    features : list of str
        The columns to predict from.
    outcome : str or None
        The column to predict; None for rows to predict.
    second_group : str, optional
        The column of another grouping, within which the groups lie (patients within clinics) or which they cross
        (schools and years): its groups have a level of their own.
    kind : {"binary", "real", "classes", "ordered", "counts", "share"}, optional
        Of the outcome; default: found from its column, or refused where it may be several.
    classes : list, optional
        The outcome's values, in the order wanted; the second of two is the one that is predicted.
    ids : list of str
        Columns to carry along to the predictions, features or others.
    sep, encoding : str
    decimal : {".", ","}, optional
        With a comma "1.234" is 1234. Default ".", but a file of semicolons with "1.234" is refused until it is said
        which.
    like : Schema, optional
        A table read before, or a fit, whose kind of outcome, classes and words of features these rows have, even where
        they are too few to show them; another word is refused, and a missing one where none was missing before.

    Raises
    ------
    Refused
        With all that is wrong with the values at once, and the rows.
    ValueError
        For odd arguments.

    Examples
    --------
    Three fields with twenty harvests each:

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="good")
    >>> print(rows)
    60 rows in 3 groups of 'field' (20 to 20 rows each), 1 feature.
    'good' has 2 classes, 'no' (31 rows) and 'yes' (29 rows) (kind='binary'); probabilities are of 'yes'.
    """
    if isinstance(features, str) or isinstance(ids, str) or len(features) == 0:
        raise ValueError(f"features={features!r}, ids={ids!r}; wanted: lists of column names, at least one feature")
    if kind not in (None, *KINDS) or decimal not in (None, ".", ","):
        wanted = f"{', '.join(map(repr, KINDS))}, or None to find it from the column; decimal '.' or ','"
        raise ValueError(f"kind={kind!r}, decimal={decimal!r}; wanted: {wanted}")
    if classes is not None:
        least = 3 if kind == "ordered" else 2
        several = isinstance(classes, list | tuple) and len(set(map(str, classes))) == len(classes) >= least
        if not several or outcome is None or kind in NUMBERS or (kind == "binary" and len(classes) != 2):
            wanted = "a list of different values, two for kind='binary', three or more for 'ordered', none for numbers"
            raise ValueError(f"classes={classes!r} with kind={kind!r}; wanted: {wanted} or outcome=None")
    frame = to_frame(source, sep, encoding)
    unit, name = frame.attrs.get(READ, ("row", "the table"))
    of = [group] if isinstance(group, str) or not isinstance(group, Sequence) else list(group)
    check_columns(frame, [*features, *of, *filter(None, (second_group, outcome))], name, ids)
    if len(of) > 1:
        parts = frame[of].apply(_to_text)
        lost = (frame[of].isna() | parts.isin(NOTHING)).any(axis=1)
        frame = frame.assign(**{", ".join(of): parts.agg(", ".join, axis=1).mask(lost)})
    columns = {"group": ", ".join(map(str, of)), "outcome": outcome, "second_group": second_group}
    doubtful = decimal is None and unit == "line" and sep != ","
    return _Reader(frame, list(features), columns, unit, decimal or ".", doubtful, like).read(kind, classes, ids, name)


@dataclass
class _Reader:
    """A frame that is being read, column by column: what is wrong is gathered, and said at once."""

    frame: pd.DataFrame
    features: list[str]
    columns: dict[str, str | None]
    unit: str  # "line" of a file, or "row"
    decimal: str
    doubtful: bool  # whether "1.234" may be 1234
    like: Schema | None

    def __post_init__(self) -> None:
        used = [*self.features, *filter(None, self.columns.values())]
        self.text = self.frame[used].apply(_to_text)
        self.missing = self.frame[used].isna() | self.text.isin(NOTHING)
        self.values: dict[str, Floats] = {}
        self.levels: dict[str, tuple[str, ...]] = {}
        self.fills: dict[str, float] = {}
        self.read_as: dict[str, str] = {}
        self.notes: list[str] = []
        self.complaints: list[str] = []

    def read(self, kind: AskedKind | None, classes: Sequence[Any] | None, ids: Sequence[str], name: str) -> Table:
        """The table; Refused with all that is wrong."""
        frame, columns, outcome = self.frame, self.columns, self.columns["outcome"]
        for feature in self.features:
            self.read_feature(feature)
        for of in filter(None, (columns["group"], columns["second_group"])):
            wanted = "a name or number in each row, none called NA or None"
            self.complain(f"group {of!r}", self.missing[of], "is missing", wanted)
        told: dict[str, Any] = {"y": None} if outcome is None else self.read_outcome(outcome, kind, classes)
        if self.complaints:
            raise Refused(*self.complaints, where=name)
        groups, group = _number_groups(self.text[columns["group"]])
        second = columns["second_group"]
        seconds, second_group = _number_groups(self.text[second]) if second else ((), None)
        rows = Table(
            values=np.column_stack([*self.values.values()]), features=tuple(self.values), group=group, groups=groups,
            second_group=second_group, second_groups=seconds, columns=columns, levels=self.levels, fills=self.fills,
            ids={self.unit: frame.index.to_numpy()} | {name: frame[name].to_numpy() for name in ids},
            read_as=self.read_as, **told,
        )  # fmt: skip
        notes = [*self.notes, *_note_values(rows, self.locate)]
        if rows.y is not None:
            found = kind is None and self.like is None and classes is None
            notes += [*_note_groups(rows, self.text), *_note_number(rows, found, self.locate)]
        return replace(rows, notes=tuple(notes))

    def locate(self, mask: Mask | pd.Series) -> str:
        """Where something is, in how many rows of how many."""
        where = join(map(str, self.frame.index.to_numpy()[mask]), FEW)
        return f" in {say_rows(mask.sum())} of {len(mask):,} ({self.unit}{'s' * int(mask.sum() > 1)} {where})"

    def complain(self, of: str, mask: Mask | pd.Series, what: str, wanted: str) -> None:
        """Note what is wrong in some rows, if there are any."""
        if mask.any():
            self.complaints.append(f"{of} {what}{self.locate(mask)}; wanted: {wanted}")

    def complain_of_points(self, of: str, column: str) -> None:
        """A point in all numbers that have one may be a mark for thousands, or a decimal point."""
        text = self.text[column]
        dotted = text.str.contains(".", regex=False) & ~self.missing[column]
        mask = (dotted & bool(self.doubtful and (text.str.fullmatch(GROUPED) | ~dotted).all())).to_numpy()
        self.complain(of, mask, f"holds {_show(text[mask])},", "decimal=',' where '1.234' is 1234, or decimal='.'")

    def read_feature(self, feature: str) -> None:
        """Read a feature as words, or as numbers, dates and times."""
        of, like, text, empty = f"feature {feature!r}", self.like, self.text[feature], self.missing[feature].to_numpy()
        if like is None:
            wanted = "a value in at least half of the rows; or leave the feature out (--leave-out on the command line)"
            self.complain(of, empty & (empty.mean() > 0.5), "is missing", wanted)
        elif feature not in like.fills and MISSING not in like.levels.get(feature, ()):
            self.complain(of, empty, "is missing", "a value in all rows, as where it was learned from")
        self.complain_of_points(of, feature)
        days, read_as = _to_days(text.mask(empty))
        numbers = _to_numbers(self.frame[feature], self.decimal) if days is None else days
        wrong = np.isnan(numbers) & ~empty
        spelled = text[~empty].str.fullmatch(rf"-?[\d.,]*%?|{DATE}").any()  # numbers or dates in another spelling
        if (like is not None and feature in like.levels) or (2 * wrong.sum() > (~empty).sum() and not spelled):
            self.read_words(feature, text, empty)
            return
        found = self.frame[feature][wrong].astype(str)
        self.complain(of, wrong, *_say_text(found, "numbers, or words in all rows", self.decimal))
        self.complain(of, np.abs(numbers) > 1e150, "is infinite or beyond 1e150", "finite numbers in another unit")
        fill = like.fills.get(feature) if like is not None else None
        if like is None and empty.any() and not empty.all():
            fill = float(numbers[~empty].mean())
        if read_as:
            self.notes.append(f"{feature!r} is read as {read_as}.")
            self.read_as[feature] = read_as
        if like is not None and (before := like.read_as.get(feature, "")) != read_as:
            wanted = f"{before or 'a number'}, as where it was learned from"
            self.complain(of, ~empty, f"is read as {read_as or 'a number'}", wanted)
        self.values[feature] = numbers if fill is None else np.where(empty, fill, numbers)
        if fill is not None:
            self.fills[feature] = fill
            self.values[f"{feature}={MISSING}"] = empty.astype(float)
            if empty.any():
                filled = f"the mean, {fill:.4g}, is filled in, and '{feature}={MISSING}' marks these rows."
                self.notes.append(f"{feature!r} is missing in {say_rows(empty.sum())}; {filled}")

    def read_words(self, feature: str, text: pd.Series, empty: Mask) -> None:
        """A column of 0 and 1 for each word but the first."""
        of, there = f"feature {feature!r}", sorted(text[~empty].unique(), key=_sort_key)
        known = self.like.levels.get(feature) if self.like is not None else None
        levels = known or (*there, *([MISSING] if empty.any() and MISSING not in there else []))
        told = text.mask(empty, MISSING)
        alien = ~told.isin(levels) & ~empty
        if len(levels) > MOST_CLASSES:
            wanted = f"at most {MOST_CLASSES} words, of {len(levels)}; merge some, or leave it out"
            self.complain(of, ~empty, f"holds {_show(text)},", wanted)
        wanted = f"one of {join(map(repr, levels), MOST_CLASSES)}, which were learned from"
        self.complain(of, alien, f"holds {_show(text[alien])},", wanted)
        same = np.full(len(told), len(levels) == 1 and not alien.any())
        self.complain(of, same, f"is {_show(told)} in all rows,", "a feature that varies")
        self.levels[feature] = levels
        self.values |= {f"{feature}={word}": (told == word).to_numpy(float) for word in levels[1:]}
        self.notes += [f"words {join(map(repr, alike))} of {feature!r} may be one." for alike in _find_alike(levels)]
        once = [word for word, n in text[~empty].value_counts().items() if n == 1]
        if self.like is None and 0 < 2 * len(once) < len(there):
            self.notes.append(f"{feature!r} is {join(map(repr, once), FEW)} in one row: a slip?")
        if len(there) > 1 and pd.Series(there).str.fullmatch(MONTH).all():
            what = f"is words such as {there[0]!r}, in no order; as dates, such as 2024-01-01, they are numbers."
            self.notes.append(f"{feature!r} {what}")
        if empty.any():
            what = f"is missing in {say_rows(empty.sum())}; {MISSING!r} is a word of its own there."
            self.notes.append(f"{feature!r} {what}")

    def read_outcome(self, column: str, kind: AskedKind | None, classes: Sequence[Any] | None) -> dict[str, Any]:
        """The outcome and what it was taken for, or nothing where it cannot be used, which is a complaint."""
        empty, of, like = self.missing[column].to_numpy(), f"outcome {column!r}", self.like
        wanted = "a value in each row (answer, and the command, predict rows without one if nothing else is asked for)"
        self.complain(of, empty, "is missing", wanted)
        self.complain_of_points(of, column)
        if like is not None and kind is None and classes is None:
            kind, classes = "ordered" if like.ordered else like.kind, like.classes or None
        try:
            return {} if empty.all() else _Outcome(self, column, empty).read(kind, classes)
        except Refused as error:
            self.complaints += [f"{of} {complaint}" for complaint in error.complaints]
            return {}


class _Outcome:
    """A column that may be an outcome of one kind or another; what it cannot be is Refused."""

    def __init__(self, reader: _Reader, column: str, empty: Mask) -> None:
        self.text, self.missing, self.reader = reader.text[column], empty, reader
        self.numbers = _to_numbers(reader.frame[column], reader.decimal)
        self.seen, self.is_text = self.text[~empty], np.isnan(self.numbers) & ~empty
        self.truth = TRUTH if set(self.seen) <= {*TRUTH, "0", "1"} else {}
        self.counts = self.seen.replace(self.truth).value_counts()
        self.values = sorted(self.counts.index, key=_sort_key)
        self.shown = join((f"{value!r} ({say_rows(self.counts[value])})" for value in self.values), 6)

    def read(self, asked: AskedKind | None, classes: Sequence[Any] | None) -> dict[str, Any]:
        """Its values, and what they are taken for."""
        ordered, names, share = asked == "ordered", tuple(self.values), None
        if classes is not None:
            names = tuple(_to_text(pd.Series(list(classes))).replace(self.truth))
            alien = ~self.text.replace(self.truth).isin(names) & ~self.missing
            if alien.any():
                where = self.reader.locate(alien)
                raise Refused(f"holds {self.shown}, other classes{where}; wanted: one of {join(map(repr, names))}")
            kind: Kind = "binary" if len(names) == 2 else "classes"
        else:
            if len(names) == 1 and asked not in NUMBERS:
                wanted = "an outcome that varies, or all the values that it may have in classes"
                raise Refused(f"is {names[0]!r} in all rows that have one; wanted: {wanted}")
            if self.is_text.any() and (alike := _find_alike(names)):
                wanted = f"one spelling of {join(map(repr, alike[0]))}, or all of them in classes"
                raise Refused(f"holds {self.shown}; wanted: {wanted}")
            kind = "classes" if asked == "ordered" else asked or self.guess_kind()
            if kind in NUMBERS:
                share = self.check_numbers(kind)
            else:
                self.check_classes(kind)
            if ordered and self.is_text.any():
                wanted = f"classes=[…] with {join(map(repr, names), MOST_CLASSES)} from low to high"
                raise Refused(f"is words, whose order is not known; wanted: {wanted}")
        y: Array = self.numbers.astype("int64") if kind == "counts" else self.numbers
        if kind not in NUMBERS:  # True is 1 and False is 0 where the classes are called so
            text = self.text.replace(TRUTH) if set(names) == {"0", "1"} else self.text
            y = pd.Index(names).get_indexer(text).astype("int32")
        names = () if kind in NUMBERS else names
        return {"y": y, "kind": kind, "classes": names, "ordered": ordered and kind == "classes", "share": share}

    def guess_kind(self) -> Kind:
        """The kind that the values speak for; a few whole numbers are asked about."""
        values, numbers, words = self.values, self.numbers[~self.missing], self.seen[self.is_text[~self.missing]]
        if values == ["0", "1"]:
            return "binary"
        if len(words):
            odd = len(values) > 2 and words.nunique() <= len(values) / 2  # some among numbers, which are refused
            spelled = words.str.fullmatch(rf"-?[\d.,]+%?|{DATE}").all()
            return "real" if odd or spelled else "binary" if len(values) == 2 else "classes"
        if _is_count(numbers):
            return "counts"
        if len(values) <= AMBIGUOUS and np.all(numbers == np.round(numbers)):
            which = "'binary' for names" if len(values) == 2 else "'classes' for names, 'ordered' for marks"
            raise Refused(f"holds {self.shown}; wanted: kind={which}, 'real' for amounts, or 'counts'")
        return "real"

    def check_numbers(self, kind: Kind) -> tuple[float, float] | None:
        """Refuse text among numbers, and numbers that are none of this kind; of shares, what they are shares of, 1 or
        100, and their smallest distance from an end."""
        numbers, there, locate = self.numbers, ~self.missing, self.reader.locate
        if self.is_text.any():
            wanted = "numbers, or kind='classes' for words"
            what, wanted = _say_text(self.text[self.is_text], wanted, self.reader.decimal)
            raise Refused(f"{what}{locate(self.is_text)}; wanted: {wanted}")
        if (huge := np.abs(numbers) > 1e150).any():
            raise Refused(f"is infinite or beyond 1e150{locate(huge)}; wanted: finite numbers in another unit")
        before = self.reader.like.share if self.reader.like is not None else None
        top = before[0] if before else 1.0 if numbers[there].max() <= 1 else 100.0
        wrong, wanted = np.zeros(len(there), dtype=bool), f"shares from 0 to {top:g}"
        if kind == "share":
            wrong = there & ~((numbers >= 0) & (numbers <= top))
        if kind == "counts":
            whole = (numbers >= 0) & (numbers == np.round(numbers)) & (numbers < 2**53)
            wrong, wanted = there & ~whole, "whole numbers from 0, or kind='real'"
        if wrong.any():
            raise Refused(f"holds {_show(self.text[wrong])},{locate(wrong)}; wanted: {wanted}")
        if kind != "share" or before:
            return before
        inside = numbers[there & (numbers > 0) & (numbers < top)] / top
        if len(inside) == 0:
            raise Refused("is 0 or all in all rows; wanted: shares between 0 and all, or kind='binary'")
        return top, float(min(inside.min(), 1 - inside.max()))

    def check_classes(self, kind: Kind) -> None:
        """Refuse more classes than two, or than can be told apart."""
        if kind == "binary" and len(self.values) > 2:
            rare = self.counts.index[-1]
            where = self.reader.locate((self.text.replace(self.truth) == rare) & ~self.missing)
            raise Refused(f"holds {self.shown}, {rare!r}{where}; wanted: two classes, or kind='classes'")
        if len(self.values) > MOST_CLASSES:
            wanted = f"at most {MOST_CLASSES}; merge some, or kind='real' for numbers"
            found = join(map(repr, self.values), FEW)
            raise Refused(f"holds {len(self.values)} different values, {found}; wanted: {wanted}")


# --- what looks odd and may be right, a sentence each


def _find_alike(names: Sequence[str]) -> list[list[str]]:
    """Names that differ in capitals alone."""
    alike = pd.Series(list(names), dtype=str).groupby(pd.Series(list(names), dtype=str).str.casefold()).agg(list)
    return [same for same in alike if len(same) > 1]


def _note_values(rows: Table, locate: Any) -> Iterator[str]:
    """Groups that may be one, values far from all others, features that give the outcome away."""
    yield from (f"groups {join(map(repr, same))} may be one." for same in _find_alike(rows.groups))
    outcome, y, number = str(rows.columns["outcome"]), rows.y, rows.kind in NUMBERS
    columns = dict(zip(rows.features, rows.values.T, strict=True))
    for name, column in (columns | ({outcome: y} if number and y is not None else {})).items():
        found, counts = np.unique(column, return_counts=True)
        often, n = found[counts.argmax()], counts.max()
        rest = column[column != often]
        many = n >= max(5, 0.01 * len(column)) and len(np.unique(rest)) >= 10
        if many and max(often - rest.max(), rest.min() - often) > np.ptp(rest) / 2:
            what = f"is {often:g} in {say_rows(n)}, far from all others ({rest.min():.4g} to {rest.max():.4g})."
            yield f"{name!r} {what} If it means missing, leave these rows out."
        if len(found) == len(column) >= 10 and np.all(np.diff(column) > 0) and np.all(column == np.round(column)):
            yield f"{name!r} rises from row to row: a number of the row?"
        off = np.abs(column - np.median(column))
        last = off.argmax()
        if len(found) >= 10 and off[last] > 3 * np.ptp(np.delete(column, last)):
            yield f"{name!r} is {column[last]:g}{locate(np.arange(len(column)) == last)}, far from all others: a slip?"
    for name, column in columns.items() if y is not None and rows.kind != "classes" else ():
        a, b = (column, y) if number else (column[y == 0], column[y == 1])
        if number:
            leaks = np.ptp(a) > 0 and np.ptp(b) > 0 and abs(np.corrcoef(a, b)[0, 1]) > LEAK
        else:
            leaks = min(len(a), len(b)) > 0 and (a.max() < b.min() or b.max() < a.min())
        if leaks:
            yield f"{name!r} alone gives {outcome!r} away. Is it known before the outcome is?"


def _note_groups(rows: Table, text: pd.DataFrame) -> Iterator[str]:
    """Groups that are none, what is constant within them, rows that are there twice, and what only seems an outcome."""
    (name, outcome), n = (rows.columns[of] for of in ("group", "outcome")), rows.count()
    measured = pd.Series(rows.groups).str.fullmatch(rf"-?\d*\.\d+(e-?\d+)?|{CALENDAR}")
    if len(rows.groups) > AMBIGUOUS and measured.mean() > 0.5:
        yield f"{name!r} has {len(rows.groups)} values such as {rows.groups[0]!r}: a measurement, and no group?"
    elif (n == 1).mean() > 0.5:
        yield f"{say_rows((n == 1).sum())} are alone in their group of {name!r}: nothing can be learned of these."
    by_group = pd.DataFrame(np.column_stack([rows.values, rows.target])).groupby(rows.group)
    is_fixed = (by_group.max() == by_group.min()).all().to_numpy()
    fixed = [feature for feature, is_it in zip(rows.features, is_fixed, strict=False) if is_it]
    if fixed and (n > 1).mean() > 0.5:
        what = f"{join(map(repr, fixed), FEW)} {'is' if len(fixed) == 1 else 'are'}"
        yield f"{what} the same in all rows of a group, so only how the {len(n)} groups differ tells what that does."
    if (n > 1).any() and is_fixed[-1]:
        what = f"{outcome!r} is the same in all rows of a group, so new rows of a known group are no question;"
        yield f"{what} ask about new groups."
    doubled = text.duplicated(keep=False)
    if doubled.all() or (rows.kind in NUMBERS and len(np.unique(rows.y)) > len(rows.y) / 4 and doubled.any()):
        both = "copies stand on both sides of a fold, and flatter all scores."
        yield f"{say_rows(doubled.sum())} of {len(doubled):,} are there more than once; {both}"
    lasted = pd.Series(rows.features)[pd.Series(rows.features).str.fullmatch(LASTED)].tolist()
    if rows.kind == "binary" and lasted and pd.Series([str(outcome)]).str.fullmatch(ENDED).all():
        what = f"if {outcome!r} says whether {lasted[0]!r} had ended, the two are one outcome:"
        yield f"{what} take a model of survival times."


def _note_number(rows: Table, found: bool, locate: Any) -> Iterator[str]:
    """Of a number: values far out; and where its kind was found and not said, what else it may be."""
    y, kind, name = rows.y, rows.kind, rows.columns["outcome"]
    if kind not in NUMBERS:
        return
    skewed, whole = y.min() > 0 and _is_skewed(y), bool(np.all((y >= 0) & (y == np.round(y))))
    far = np.abs(y - np.median(y)) > FAR * (np.subtract(*np.quantile(y, (0.75, 0.25))) / 1.349 or y.std())
    if kind == "real" and not skewed and 1 < far.sum() <= 0.05 * len(y):
        yield f"{name!r} is far from all others{locate(far)}. They pull means, and widen all intervals."
    if found and not whole and y.min() >= 0 and (y.max() <= 1 or y.max() == 100):
        top = 1 if y.max() <= 1 else 100
        yield f"{name!r} is never below 0 or above {top}; pass kind='share' where it is a share, or a mark of so much."
    if found and kind == "real" and skewed:
        what = f"{name!r} is above 0 and skewed, so intervals may reach below 0. Its logarithm may be easier to learn:"
        yield f"{what} make it a column, and take exp of mean, low and high; the first is a median then."
    if found and whole:
        other = "'real' where it is an amount" if kind == "counts" else "'counts' where it counts something"
        yield f"{name!r} is whole numbers, taken for kind={kind!r}; pass kind={other}."


# --- files and columns


def read_csv(path: Path, sep: str, encoding: str) -> pd.DataFrame:
    """A CSV file as text, indexed by line; blank lines are left out, but counted."""
    try:  # no header: pandas would give a second column of one name another name, and take a first one for an index
        lines = pd.read_csv(path, sep=sep, header=None, dtype=str, keep_default_na=False, na_values="",
                            skip_blank_lines=False, encoding=encoding, engine="c")  # fmt: skip
    except OSError as error:
        raise type(error)(f"{path} cannot be read ({error.strerror or error}); wanted: a CSV file") from None
    except Exception as error:  # of pandas, of the encoding, or of what it was compressed by
        wanted = f"a CSV file with names in its first line, and no more fields in any other; {SEPARATOR}. Or another "
        wanted += f"encoding than {encoding!r} (Excel's own is often 'cp1252' or 'utf-16'); or read it with pandas "
        wanted += "(read_excel, read_parquet) and pass the frame"
        raise Refused(f"{path.name} is no table; wanted: {wanted}. pandas says: {str(error).strip()}") from None
    lines.index += 1
    lines = lines.loc[:, ~(lines.iloc[0].isna() & lines.isna().all())]  # columns of marks alone
    read = lines.iloc[1:].dropna(how="all").set_axis(lines.iloc[0].fillna("").str.strip().tolist(), axis=1)
    read.attrs[READ] = ("line", path.name)
    return read


def to_frame(source: Source, sep: str = ",", encoding: str = "utf-8") -> pd.DataFrame:
    """The frame that a source is, or has."""
    return source.rename(columns=str) if isinstance(source, pd.DataFrame) else read_csv(Path(source), sep, encoding)


def part_rows(frame: pd.DataFrame, outcome: str) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Rows with an outcome, and those without, or None where all have one, or none."""
    if list(frame.columns).count(outcome) != 1:
        return frame, None  # which is refused
    empty = frame[outcome].isna() | _to_text(frame[outcome]).isin(NOTHING)
    return (frame, None) if empty.all() or not empty.any() else (frame[~empty], frame[empty])


def check_columns(frame: pd.DataFrame, columns: list[str], name: str, ids: Sequence[str] = ()) -> None:
    """Refuse columns that are not there, with those that are, two of one name, and a table without rows."""
    there = list(frame.columns)
    if lost := [column for column in dict.fromkeys([*columns, *ids]) if column not in there]:
        joined = len(there) == 1 or any(mark in str(there[0]) for mark in ";\t|")
        hint = f"; {SEPARATOR}" if joined else guess(str(lost[0]), there)
        if set(str(lost[0]).split(",")) <= set(there):
            hint = ". Write a space between names, and no comma"
        raise Refused(f"{name} has no column {join(map(repr, lost))}; there are {join(map(repr, there))}{hint}")
    for column in [*columns, *ids]:
        if there.count(column) > 1:
            raise Refused(f"{name} has two columns {column!r}; wanted: all names different")
        if columns.count(column) > 1:
            wanted = "each as one of features, group and outcome"
            raise Refused(f"column {column!r} is asked for twice; wanted: {wanted}")
    if frame.empty:
        raise Refused(f"{name} has names and no rows; wanted: a row for each observation")


def _number_groups(text: pd.Series) -> tuple[tuple[str, ...], Places]:
    """Names of groups, sorted, and the place of each row's among them, (row,)."""
    names = tuple(sorted(text.unique(), key=_sort_key))
    return names, pd.Index(names).get_indexer(text)


def _show(found: pd.Series) -> str:
    """A few of the values that are meant."""
    return join(map(repr, found.astype(str).unique()), FEW)


def _to_numbers(column: pd.Series, decimal: str) -> Floats:
    """A column as numbers, (row,), with NaN for what is missing and for text; 88.7% is 88.7, and 9,994.15 a number."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    text = column.astype(str).str.strip().replace(TRUTH)
    percent = text.str.endswith("%")
    if percent.any() and (percent | text.isin(NOTHING)).all():
        text = text.str.removesuffix("%").str.rstrip()
    if decimal == ",":  # 1.234,5 is 1234.5, and 1.23 is text
        grouped = text.str.fullmatch(rf"{GROUPED}(,\d+)?")
        text = text.where(~grouped, text.str.replace(".", "")).str.translate(str.maketrans(".,", ",."))
    elif text.str.fullmatch(rf"{THOUSANDS}\.\d+").any():
        text = text.where(~text.str.fullmatch(rf"{THOUSANDS}(\.\d+)?"), text.str.replace(",", ""))
    return pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)


def _to_days(text: pd.Series) -> tuple[Floats | None, str]:
    """Dates as days, times of day as hours, (row,), NaN where there is none, and what they are; None for all else."""
    seen = text.dropna()
    if len(seen) and seen.str.fullmatch(CLOCK).all():
        parts = text.str.split("[:.]", expand=True, regex=True).astype(float).fillna({2: 0})
        return (parts @ (1 / 60.0 ** np.arange(parts.shape[1]))).to_numpy(dtype=float), "hours"
    text = text.str.replace(GERMAN, lambda m: f"{m[3]}-{m[2]:0>2}-{m[1]:0>2}", regex=True)
    seen = text.dropna()
    if not len(seen) or not seen.str.fullmatch(CALENDAR).all():
        return None, ""
    dates = pd.to_datetime(text, errors="coerce", format="ISO8601", utc=True).dt.tz_localize(None)
    days = (dates.to_numpy(dtype="datetime64[us]") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    return days, "days since 1970" + " (in UTC)" * bool(seen.str.contains(ZONE).any())


def _to_text(column: pd.Series) -> pd.Series:
    """A column as text without spaces around it, with accents in one form and 2.0 as "2"."""
    return column.astype(str).str.strip().str.normalize("NFC").str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)


def _say_text(found: pd.Series, wanted: str, decimal: str) -> tuple[str, str]:
    """What is wrong with text among numbers, and what is wanted: of "1,5", another decimal point."""
    if found.str.fullmatch(rf"\s*({DATE})\s*").any():
        wanted = "dates such as 2024-12-31 in all rows, times such as 23:59, or numbers"
    elif found.str.contains("%").any():
        wanted = "a % sign behind all of them, or behind none"
    elif found.str.fullmatch(r"\s*-?\d*[.,][\d.,]*\s*").any():
        wanted = f"{decimal!r} as the decimal point, no mark for thousands; or pass decimal={'.,'.strip(decimal)!r}"
    return f"holds text, {_show(found)},", wanted


def _is_count(numbers: Floats) -> bool:
    """Whether numbers count something, most likely: whole, of five values or more, small, small ones oftener than large
    ones, and so near zero that a normal distribution's 90 % interval would reach below it."""
    whole = np.all((numbers >= 0) & (numbers == np.round(numbers)))
    few = np.min(numbers) < FEW and np.median(numbers) < SMALL  # a price is neither
    return bool(whole and len(np.unique(numbers)) >= 5 and few and _is_skewed(numbers))


def _is_skewed(numbers: Floats) -> bool:
    """Whether small ones are oftener than large ones, and a normal's 90 % interval would reach below zero."""
    off = numbers - numbers.mean()
    return bool(numbers.mean() < 1.645 * off.std() and np.mean(off**3) > 0.5 * off.std() ** 3)


def _sort_key(name: str) -> tuple[int, float, str]:
    """Numbers by value, before text by letters."""
    try:
        number = float(name)
    except ValueError:
        number = np.nan
    return (0, number, name) if np.isfinite(number) else (1, 0.0, name)


def example_frame() -> pd.DataFrame:
    """Sixty invented harvests of wheat in three fields: columns "field", "rain", "wheat", and whether that is "good".

    Examples
    --------
    >>> from hbnn import tables
    >>> tables.example_frame().groupby("field")["wheat"].count().to_dict()
    {'a': 20, 'b': 20, 'c': 20}
    """
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"field": ["a", "b", "c"] * 20, "rain": rng.normal(50, 10, 60)})
    frame["wheat"] = 0.1 * frame["rain"] + 0.3 * rng.normal(size=60)
    return frame.assign(good=np.where(frame["wheat"] > 5, "yes", "no"))


# --- rows for training and testing


@dataclass(frozen=True)
class Split:
    """Rows for training and for testing, by group and scaled, as a network for groups takes them."""

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


def split_rows(rows: Table, *, seed: int, max_train: int | None = None) -> Split:
    """Halve a table within its groups, and scale it by its training rows.

    In every group the classes are split in the same proportion, so that a small group has all in training. Centre and
    width are those of the training rows of all groups: what sets one group apart from another stays in the numbers.

    Parameters
    ----------
    rows : Table
    seed : int
    max_train : int, optional
        Rows of each group, at most.

    Raises
    ------
    Refused
        For no outcome, one group, fewer than 10 rows or one class in a group, a constant feature.

    Examples
    --------
    Goes on from `read_table`.

    >>> split = tables.split_rows(rows, seed=1)
    >>> [len(y) for y in split.y_train], [len(y) for y in split.y_test]
    ([10, 10, 10], [10, 10, 10])
    >>> split.scale([[50.0]]).shape  # values in the table's units
    (1, 1)
    """
    check_seed(seed)
    if max_train is not None:
        check_count(max_train, "max_train", least=2)
    if rows.y is None or len(rows.groups) < 2:
        check_rows(rows)
    own = [np.flatnonzero(rows.group == g) for g in range(len(rows.groups))]
    classes, unusable = np.zeros(len(rows.group)) if rows.kind in NUMBERS else rows.y, []
    for name, index in zip(rows.groups, own, strict=True):
        if len(index) < LEAST_SPLIT or (rows.kind not in NUMBERS and np.ptp(classes[index]) == 0):
            ones = f", {rows.y[index].sum():,} of class 1" if rows.kind == "binary" else ""
            unusable.append(f"{name!r} ({say_rows(len(index))}{ones})")
    if unusable:
        wanted = f"at least {LEAST_SPLIT} in each and both classes; merge or leave groups out"
        raise Refused(f"too few rows, or one class, in group {join(unusable)}; wanted: {wanted}")
    train, test = [], []
    for index, child in zip(own, np.random.SeedSequence(seed).spawn(len(own)), strict=True):
        n_train = min(round(len(index) / 2), max_train or len(index))
        picked = _pick(classes[index], n_train, np.random.default_rng(child))
        train.append(index[picked])
        test.append(index[~picked])
    seen = rows.values[np.concatenate(train)]
    center, width = seen.mean(axis=0), seen.std(axis=0)
    if same := np.array(rows.features)[(np.ptp(seen, axis=0) == 0) | (width == 0)].tolist():
        raise Refused(f"the same in all training rows: {join(map(repr, same))}; wanted: features that vary")
    X = (rows.values - center) / width
    return Split(
        X_train=[X[index] for index in train], y_train=[rows.y[index] for index in train],
        X_test=[X[index] for index in test], y_test=[rows.y[index] for index in test],
        rows_train=train, rows_test=test, groups=rows.groups, features=rows.features, center=center, width=width,
    )  # fmt: skip


def _pick(classes: Array, n_train: int, rng: np.random.Generator) -> Mask:
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


def make_folds(rows: Table, *, seed: int, n_folds: int = 5) -> dict[Over, Places]:
    """The number of each row's fold, (row,) each: over "rows", to which groups and classes are spread evenly, and over
    "groups", to which whole groups are.

    Examples
    --------
    Goes on from `read_table`.

    >>> folds = tables.make_folds(rows, seed=1, n_folds=3)
    >>> {over: [int((fold == k).sum()) for k in range(3)] for over, fold in folds.items()}
    {'rows': [20, 20, 20], 'groups': [20, 20, 20]}
    """
    check_seed(seed)
    check_count(n_folds, "n_folds", least=2)
    rng = np.random.default_rng(seed)
    classes = np.zeros(len(rows.group)) if rows.kind in NUMBERS else rows.y
    order = np.lexsort((rng.random(len(rows.group)), classes, rows.group))
    by_row = np.empty(len(order), dtype=int)
    by_row[order] = np.arange(len(order)) % n_folds
    sizes = rows.count()
    rank = np.empty(len(sizes), dtype=int)
    rank[np.lexsort((rng.random(len(sizes)), -sizes))] = np.arange(len(sizes))
    return {"rows": by_row, "groups": (rank % min(n_folds, len(sizes)))[rows.group]}
