"""A table with a group, features and an outcome: read and checked.

What cannot be used is refused, with the column, the group and the rows; no row is dropped. A feature that is missing in
some rows is filled in, and the rows are marked. What looks odd and may be right is a note.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Array, Floats
from hbnn.tables._table import (
    KINDS,
    MOST_CLASSES,
    NUMBERS,
    WEIGHTED,
    AskedKind,
    Kind,
    Places,
    Schema,
    Table,
    measure_bulk,
    say_rows,
)

type Mask = NDArray[np.bool_]
type Source = str | Path | pd.DataFrame
AMBIGUOUS = 10  # so many whole numbers may be names or amounts
FEW = 3  # rows or values that a message names
NOTHING = ("", "NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
TRUTH = {"True": "1", "true": "1", "TRUE": "1", "False": "0", "false": "0", "FALSE": "0"}
LEAK = 0.999  # correlation with the outcome
MOST_LEVELS = 20  # of a feature of words
FAR = 6  # standard deviations of a normal with the same middle half
DAYS = "days since 1970"
MISSING = "missing"  # the word of a feature that is not there
GROUPED = r"-?[1-9]\d{0,2}(\.\d{3})+"  # 1.234: a mark for thousands, or three decimals?
CALENDAR = r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?"  # what is read; all other spellings are asked about
GERMAN = r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?: (\d{1,2})(:\d{2}(?::\d{2})?))?"
CLOCK = r"([01]?\d|2[0-4]):[0-5]\d(:[0-5]\d)?"
DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T].*)?|\d{1,2}[.:]\d{2}([.:]\d{2})?|-?\d+ days.*"
SEPARATOR = "pass sep=';' or sep='\\t' where these separate columns, and decimal=',' where commas are decimal points"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of a table's columns, by what they are for."""

    features: Sequence[str]
    group: str
    outcome: str | None
    second_group: str | None
    weight: str | None
    ids: Sequence[str]
    cycles: Mapping[str, float]

    def __post_init__(self) -> None:
        cycles, features, ids = dict(self.cycles), self.features, self.ids
        usable = [name for name, length in cycles.items() if isinstance(length, int | float) and 0 < length < 1e150]
        if odd := [name for name in cycles if name not in features or name not in usable]:
            raise ValueError(f"cycles={cycles!r}, {odd[0]!r}; wanted: features, and after how much they come round")
        if isinstance(features, str) or isinstance(ids, str) or len(features) == 0:
            raise ValueError(f"features={features!r}, ids={ids!r}; wanted: lists of column names, at least one feature")

    @property
    def used(self) -> list[str]:
        """All but those that are only carried along."""
        one = (self.group, self.second_group, self.weight, self.outcome)
        return [*self.features, *(name for name in one if name is not None)]


@dataclass(frozen=True)
class AskedOutcome:
    """What an outcome is to be taken for: by its reader, or by an earlier table; nothing where it is to be found."""

    kind: Kind | None
    classes: Sequence[Any] | None
    ordered: bool

    @classmethod
    def check(
        cls, kind: AskedKind | None, classes: Sequence[Any] | None, outcome: str | None, like: Schema | None
    ) -> "AskedOutcome":
        """ValueError for a kind that is none, and for classes that do not go with it."""
        if kind not in (None, *KINDS):
            raise ValueError(
                f"kind={kind!r}; wanted: {', '.join(map(repr, KINDS))}, or None to find it from the column"
            )
        if classes is not None:
            several = isinstance(classes, list | tuple) and len(set(map(str, classes))) == len(classes) >= 2
            several = several and len(classes) >= (3 if kind == "ordered" else 2)
            if not several or outcome is None or kind in NUMBERS or (kind == "binary" and len(classes) != 2):
                wanted = "a list of different values, two for kind='binary', three or more for 'ordered', none for "
                wanted += "numbers or outcome=None"
                raise ValueError(f"classes={classes!r} with kind={kind!r}; wanted: {wanted}")
        if like is not None and outcome is not None and kind is None and classes is None:
            kind, classes = "ordered" if like.ordered else like.kind, list(like.classes) or None
        return cls("classes" if kind == "ordered" else kind, classes, kind == "ordered")


@dataclass(frozen=True)
class Outcome:
    """An outcome as it was read; nothing where there is none."""

    y: Any = None
    kind: Kind | None = None
    classes: tuple[str, ...] = ()
    ordered: bool = False
    share: tuple[float, float] | None = None


def read_table(
    source: Source,
    *,
    group: str,
    features: Sequence[str],
    outcome: str | None,
    second_group: str | None = None,
    weight: str | None = None,
    cycles: Mapping[str, float] | None = None,
    kind: AskedKind | None = None,
    classes: Sequence[Any] | None = None,
    ids: Sequence[str] = (),
    sep: str = ",",
    decimal: str | None = None,
    encoding: str = "utf-8",
    like: Schema | None = None,
) -> Table:
    """A table with one row for each observation: checked, and nothing dropped.

    A feature of words becomes a column of 0 and 1 for each word but the first, named ``feature=word``. Where a feature
    is missing in up to half of the rows, that is a word of its own, "missing"; of numbers, the mean of the others is
    filled in, and a column ``feature=missing`` of 0 and 1 marks the rows, so that what they share can be learned. Dates
    such as 2024-12-31 or 31.12.2024, with a time or without, become days since 1970, and times of day hours. The
    kind of the outcome is found from its column. Two words, 0 and 1, or True and False are two classes; 3 to 20 words
    are classes; numbers are real, or counts where they are whole, none is below zero, most are small, and a normal's
    90 % interval would reach below zero. A few whole numbers may be any of these, and are refused until `kind` says
    which. Shares, of 1 or of 100, are numbers, too, and with ``kind="share"`` what is predicted stays between the ends:
    models learn their logit. With ``kind="heavy"`` numbers have Student's t about their mean, so that a few far out do
    not pull the others. Classes with an order, such as marks from 1 to 5, are asked for with ``kind="ordered"``, or by
    an ordered category of pandas.

    Parameters
    ----------
    source : path or DataFrame
        A CSV file with names in its first line, or a frame.
    group : str
        The column that says which group a row is of.
    features : list of str
        The columns to predict from.
    outcome : str or None
        The column to predict; None for rows to predict.
    second_group : str, optional
        The column of another grouping, within which the groups lie (patients within clinics) or which they cross
        (schools and years): its groups have a level of their own.
    weight : str, optional
        The column that says of how many measurements an outcome is the mean, above 0: its noise has that part of the
        variance. For numbers that are no counts.
    cycles : dict of str to float, optional
        Of features that come round, after how much: ``{"hour": 24, "date": 365.25}``. A number becomes its sine and
        cosine; a date keeps its days beside them.
    kind : str, optional
        Of the outcome, as above.
    classes : list, optional
        The outcome's values, in the order wanted; the second of two is the one that is predicted.
    ids : list of str
        Columns to carry along to the predictions.
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
    60 rows in 3 groups of 'field' (20 to 20 rows each), 1 features.
    'good' has 2 classes, 'no' (31 rows) and 'yes' (29 rows) (kind='binary'); probabilities are of 'yes'.
    """
    columns = Columns(
        features=features, group=group, outcome=outcome, second_group=second_group, weight=weight, ids=ids,
        cycles=cycles or {},
    )  # fmt: skip
    asked = AskedOutcome.check(kind, classes, outcome, like)
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r}; wanted: '.' or ','")
    if isinstance(source, pd.DataFrame):
        frame, unit, name = source.rename(columns=str), "row", "the table"
    else:
        frame, unit, name = read_csv(Path(source), sep, encoding), "line", Path(source).name
    check_columns(frame, [*columns.used, *ids], name)
    doubtful = decimal is None and unit == "line" and sep != ","
    return _Reader(frame, columns, unit, decimal or ".", doubtful, like).read(asked, name)


@dataclass
class _Reader:
    """A frame that is being read, column by column: what is wrong is gathered, and said at once."""

    frame: pd.DataFrame
    columns: Columns
    unit: str  # "line" of a file, or "row"
    decimal: str
    doubtful: bool  # whether "1.234" may be 1234
    like: Schema | None
    values: dict[str, Floats] = field(default_factory=dict)
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fills: dict[str, float] = field(default_factory=dict)
    read_as: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        frame = self.frame[self.columns.used]
        self.text = frame.apply(_to_text)
        self.missing = frame.isna() | self.text.isin(NOTHING)

    def read(self, asked: AskedOutcome, name: str) -> Table:
        """The table; Refused with all that is wrong."""
        columns, frame = self.columns, self.frame
        for feature in columns.features:
            self.read_feature(feature)
        values = np.column_stack([*self.values.values()] or [np.empty((len(frame), 0))])
        for of in filter(None, (columns.group, columns.second_group)):
            wanted = "a name or number in each row, none called NA or None"
            self.complain(f"group {of!r}", self.missing[of], "is missing", wanted)
        weight = None if columns.weight is None else self.read_weight(columns.weight)
        outcome = Outcome() if columns.outcome is None else self.read_outcome(columns.outcome, asked)
        if self.complaints:
            raise Refused(*self.complaints, where=name)
        groups, group = _number_groups(self.text[columns.group])
        seconds, second = _number_groups(self.text[columns.second_group]) if columns.second_group else ((), None)
        features = tuple(self.values)
        self.notes += _list_oddities(values, features, outcome, groups, columns.outcome)
        if outcome.y is not None and asked.kind is None and outcome.kind in NUMBERS:
            self.notes += _doubt_kind(outcome, str(columns.outcome))
        y = outcome.y.astype("int64") if outcome.kind == "counts" else outcome.y
        used = {"group": columns.group, "outcome": columns.outcome}
        used |= {"second_group": columns.second_group} if columns.second_group else {}
        return Table(
            values=values, y=y, group=group, groups=groups, second_group=second, second_groups=seconds, weight=weight,
            features=features, columns=used, notes=tuple(self.notes),
            ids={self.unit: frame.index.to_numpy()} | {name: frame[name].to_numpy() for name in columns.ids},
            kind=outcome.kind, classes=outcome.classes, ordered=outcome.ordered and outcome.kind == "classes",
            share=outcome.share, levels=self.levels, fills=self.fills, read_as=self.read_as,
        )  # fmt: skip

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
        doubtful = self.doubtful and (text.str.fullmatch(GROUPED) | ~dotted).all()
        mask = (dotted & bool(doubtful)).to_numpy()
        wanted = "decimal=',' where '1.234' is 1234, or decimal='.'"
        self.complain(of, mask, f"holds {_show(text[mask])},", wanted)

    def read_feature(self, feature: str) -> None:
        """Read a feature as words, or as numbers, dates and times."""
        of, like, text, empty = f"feature {feature!r}", self.like, self.text[feature], self.missing[feature].to_numpy()
        if like is None:
            lost = empty & (empty.mean() > 0.5)
            self.complain(of, lost, "is missing", "a value in at least half of the rows; or leave the feature out")
        else:
            unknown = feature not in like.fills and MISSING not in like.levels.get(feature, ())
            self.complain(of, empty & unknown, "is missing", "a value in all rows, as where it was learned from")
        self.complain_of_points(of, feature)
        days, read_as = _to_days(text.mask(empty))
        numbers = _to_numbers(self.frame[feature], self.decimal) if days is None else days
        wrong = np.isnan(numbers) & ~empty
        is_words = _is_word(text[~empty], wrong[~empty])
        if feature in self.columns.cycles and is_words:
            wanted = "numbers, dates or times"
            self.complain(of, wrong, f"holds {_show(text[wrong])}, and is in cycles,", wanted)
        if is_words or (like is not None and feature in like.levels):
            self.read_words(feature, empty)
            return
        found = self.frame[feature][wrong].astype(str)
        self.complain(of, wrong, *_say_text(found, "numbers, or words in all rows", self.decimal))
        self.complain(of, np.abs(numbers) > 1e150, "is infinite or beyond 1e150", "finite numbers in another unit")
        self.read_numbers(feature, numbers, empty, read_as)

    def read_words(self, feature: str, empty: Mask) -> None:
        """A column of 0 and 1 for each word but the first."""
        of, text = f"feature {feature!r}", self.text[feature]
        there = _list_levels(self.frame[feature], text[~empty])
        known = self.like.levels.get(feature) if self.like is not None else None
        levels = known or (*there, *([MISSING] if empty.any() and MISSING not in there else []))
        told = text.mask(empty, MISSING)
        alien = ~told.isin(levels) & ~empty
        many = alien | (len(levels) > MOST_LEVELS)
        wanted = f"one of {join(map(repr, levels), MOST_LEVELS)}, which were learned from"
        if len(levels) > MOST_LEVELS:
            wanted = f"at most {MOST_LEVELS} words, of {len(levels)}; merge some, or leave it out"
        self.complain(of, many, f"holds {_show(text[many])},", wanted)
        same = np.full(len(told), len(levels) == 1 and not alien.any())
        self.complain(of, same, f"is {_show(told)} in all rows,", "a feature that varies")
        self.levels[feature] = levels
        self.values |= {f"{feature}={word}": (told == word).to_numpy(float) for word in levels[1:]}
        if empty.any():
            what = f"is missing in {say_rows(empty.sum())}; {MISSING!r} is a word of its own there."
            self.notes.append(f"{feature!r} {what}")

    def read_numbers(self, feature: str, numbers: Floats, empty: Mask, read_as: str) -> None:
        """A column of numbers, on a circle where they come round, and one that marks those that are filled in."""
        like, cycles = self.like, self.columns.cycles
        fill = like.fills.get(feature) if like is not None else None
        if like is None and empty.any() and not empty.all():
            fill = float(numbers[~empty].mean())
        numbers = numbers if fill is None else np.where(empty, fill, numbers)
        if read_as:
            self.notes.append(f"{feature!r} is read as {read_as}.")
        circle = f"on a circle of {cycles[feature]:g}" if feature in cycles else ""
        if how := ", ".join(filter(None, [read_as, circle])):
            self.read_as[feature] = how
        if like is not None and like.read_as.get(feature) != self.read_as.get(feature):
            wanted = f"{like.read_as.get(feature, 'a number')}, as where it was learned from"
            self.complain(f"feature {feature!r}", ~empty, f"is read as {how or 'a number'}", wanted)
        if feature not in cycles or read_as == DAYS:
            self.values[feature] = numbers
        if feature in cycles:
            turn = 2 * np.pi * numbers / cycles[feature]
            self.values |= {f"sin({feature})": np.sin(turn), f"cos({feature})": np.cos(turn)}
        if fill is not None:
            self.fills[feature] = fill
            self.values[f"{feature}={MISSING}"] = empty.astype(float)
            if empty.any():
                filled = f"the mean, {fill:.4g}, is filled in, and '{feature}={MISSING}' marks these rows."
                self.notes.append(f"{feature!r} is missing in {say_rows(empty.sum())}; {filled}")

    def read_weight(self, column: str) -> Floats:
        """Of how many measurements each outcome is the mean, (row,)."""
        weights, of = _to_numbers(self.frame[column], self.decimal), f"weight {column!r}"
        self.complain_of_points(of, column)
        unusable = ~(np.isfinite(weights) & (weights > 0))
        self.complain(of, unusable, "is missing, or no number above 0", "a number of measurements")
        return weights

    def read_outcome(self, column: str, asked: AskedOutcome) -> Outcome:
        """The outcome, or nothing where it cannot be used, which is a complaint."""
        empty, of = self.missing[column].to_numpy(), f"outcome {column!r}"
        wanted = "a value in each row; rows to predict go into a table of their own: --predict FILE on the command "
        wanted += f"line, or answer(frame.dropna(subset={column!r}), predict=frame[frame[{column!r}].isna()], ...)"
        self.complain(of, empty, "is missing", wanted)
        self.complain_of_points(of, column)
        if empty.all():
            return Outcome()
        numbers = _to_numbers(self.frame[column], self.decimal)
        candidate = _Candidate(self.text[column], numbers, empty, self.decimal, self.locate)
        try:
            return self.classify(candidate, _ask_category(self.frame[column], asked))
        except Refused as error:
            self.complaints += [f"{of} {complaint}" for complaint in error.complaints]
            return Outcome()

    def classify(self, candidate: "_Candidate", asked: AskedOutcome) -> Outcome:
        """What an outcome is taken for; Refused where that cannot be."""
        kind, classes = candidate.find_kind(asked)
        numbers, weight = candidate.numbers, self.columns.weight
        if asked.ordered and asked.classes is None and candidate.is_text.any():
            wanted = f"classes=[…] with {join(map(repr, classes), MOST_CLASSES)} from low to high"
            raise Refused(f"is words, whose order is not known; wanted: {wanted}")
        if weight is not None and kind not in WEIGHTED:
            wanted = "repeated rows for classes, and for counts the logarithm of an exposure as a feature"
            raise Refused(f"is of kind {kind!r}, of which no mean is taken by {weight!r}; wanted: {wanted}")
        share = None
        if kind == "share":
            seen = numbers[~candidate.missing]
            share = _measure_share(seen) if self.like is None or self.like.share is None else self.like.share
            if share is None:
                raise Refused("is 0 or all in all rows; wanted: shares between 0 and all, or kind='binary'")
            if (most := seen.max()) > share[0]:
                raise Refused(f"goes up to {most:g}; wanted: shares of {share[0]:g}, as before")
        return Outcome(_to_places(candidate.text, classes) if classes else numbers, kind, classes, asked.ordered, share)


def _ask_category(column: pd.Series, asked: AskedOutcome) -> AskedOutcome:
    """What is asked of an outcome, with the classes of an ordered category of pandas."""
    if not getattr(column.dtype, "ordered", False) or asked.classes is not None or asked.kind in NUMBERS:
        return asked
    there = _to_text(pd.Series(column.cat.remove_unused_categories().cat.categories)).tolist()
    if not 2 <= len(there) <= MOST_CLASSES or (asked.kind == "binary" and len(there) != 2):
        return asked
    return AskedOutcome(asked.kind, there, asked.ordered or (asked.kind is None and len(there) > 2))


@dataclass
class _Candidate:
    """A column that may be an outcome of one kind or another."""

    text: pd.Series
    numbers: Floats
    missing: Mask
    decimal: str
    locate: Callable[[Mask], str]

    def __post_init__(self) -> None:
        self.seen, self.is_text = self.text[~self.missing], np.isnan(self.numbers) & ~self.missing
        self.truth = TRUTH if set(self.seen) <= {*TRUTH, "0", "1"} else {}
        self.counts = self.seen.replace(self.truth).value_counts()
        self.values = sorted(self.counts.index, key=_sort_key)

    @cached_property
    def shown(self) -> str:
        """The values, and how often they are there."""
        return join((f"{value!r} ({say_rows(self.counts[value])})" for value in self.values), 6)

    def find_kind(self, asked: AskedOutcome) -> tuple[Kind, tuple[str, ...]]:
        """The kind, and names of classes; Refused with what is wrong."""
        if asked.classes is not None:
            return self.match(asked.classes)
        if len(self.values) == 1 and asked.kind not in NUMBERS:
            wanted = "an outcome that varies, or all the values that it may have in classes"
            raise Refused(f"is {self.values[0]!r} in all rows that have one; wanted: {wanted}")
        commas, values = self.seen.str.fullmatch(r"-?\d+,\d+"), pd.Series(self.values)
        if commas.any() and self.decimal == "." and (commas | ~self.is_text[~self.missing]).all():
            raise Refused(f"holds {self.shown}; wanted: decimal=',' where commas are decimal points")
        alike = values.groupby(values.str.casefold()).agg(list)
        if self.is_text.any() and (alike.map(len) > 1).any():
            same = join(map(repr, alike[alike.map(len) > 1].iloc[0]))
            raise Refused(f"holds {self.shown}; wanted: one spelling of {same}, or all of them in classes")
        kind = self.guess_kind() if asked.kind is None else asked.kind
        if kind in NUMBERS:
            self.check_numbers(kind)
            return kind, ()
        self.check_classes(kind)
        return kind, tuple(self.values)

    def match(self, classes: Sequence[Any]) -> tuple[Kind, tuple[str, ...]]:
        """Two classes or several, by their names."""
        names = tuple(_to_text(pd.Series(list(classes))).replace(self.truth))
        alien = (_to_places(self.text, names) < 0) & ~self.missing
        if alien.any():
            wanted = f"one of {join(map(repr, names))}"
            raise Refused(f"holds {self.shown}, other classes{self.locate(alien)}; wanted: {wanted}")
        return "binary" if len(names) == 2 else "classes", names

    def guess_kind(self) -> Kind:
        """The kind that the values speak for; a few whole numbers are asked about."""
        values, is_text, numbers = self.values, self.is_text, self.numbers[~self.missing]
        odd = len(values) > 2 and self.seen[is_text[~self.missing]].nunique() <= len(values) / 2  # some among numbers
        almost = odd and is_text.any() and np.isin(self.numbers[~self.missing & ~is_text], (0, 1)).all()
        if values == ["0", "1"] or (len(values) == 2 and is_text.any()) or almost:
            return "binary"
        if is_text.any():
            return "real" if odd else "classes"  # of which the first is refused
        if _is_count(numbers):
            return "counts"
        if len(values) <= AMBIGUOUS and np.all(numbers == np.round(numbers)):
            which = "'binary' for names" if len(values) == 2 else "'classes' for names, 'ordered' for marks"
            raise Refused(f"holds {self.shown}; wanted: kind={which}, 'real' for amounts, or 'counts'")
        return "real"

    def check_numbers(self, kind: Kind) -> None:
        """Refuse text among numbers, and numbers that are none of this kind."""
        numbers, there = self.numbers, ~self.missing
        if self.is_text.any():
            wanted = "numbers, or kind='classes' for words"
            what, wanted = _say_text(self.text[self.is_text], wanted, self.decimal)
            raise Refused(f"{what}{self.locate(self.is_text)}; wanted: {wanted}")
        if (huge := np.abs(numbers) > 1e150).any():
            raise Refused(f"is infinite or beyond 1e150{self.locate(huge)}; wanted: finite numbers in another unit")
        if kind == "heavy" and self.counts.iloc[0] > len(self.seen) / 2:
            wanted = "numbers that vary about their mean, or kind='real'"
            raise Refused(f"is {self.counts.index[0]!r} in more than half of the rows; wanted: {wanted}")
        wrong, wanted = np.zeros(len(there), dtype=bool), ""
        if kind == "share":
            wrong, wanted = there & ~((numbers >= 0) & (numbers <= 100)), "shares from 0 to 1, or from 0 to 100"
        if kind == "counts":
            whole = (numbers >= 0) & (numbers == np.round(numbers)) & (numbers < 2**53)
            wrong, wanted = there & ~whole, "whole numbers from 0, or kind='real'"
        if wrong.any():
            raise Refused(f"holds {_show(self.text[wrong])},{self.locate(wrong)}; wanted: {wanted}")

    def check_classes(self, kind: Kind) -> None:
        """Refuse more classes than two, or than can be told apart."""
        values, counts = self.values, self.counts
        if kind == "binary" and len(values) > 2:
            rare = counts.index[-1]
            where = f"{rare!r}{self.locate((self.text.replace(self.truth) == rare) & ~self.missing)}"
            raise Refused(f"holds {self.shown}, {where}; wanted: two classes, or kind='classes'")
        if len(values) > MOST_CLASSES:
            wanted = f"at most {MOST_CLASSES}; merge some, or kind='real' for numbers"
            raise Refused(f"holds {len(values)} different values, {join(map(repr, values), FEW)}; wanted: {wanted}")


def _number_groups(text: pd.Series) -> tuple[tuple[str, ...], Places]:
    """Names of groups, sorted, and the place of each row's among them, (row,)."""
    names = tuple(sorted(text.unique(), key=_sort_key))
    return names, pd.Index(names).get_indexer(text)


def _is_word(words: pd.Series, is_text: Mask) -> bool:
    """Whether a feature is words: no numbers among which there is text, no dates, no numbers in another spelling."""
    spelled = words.str.fullmatch(rf"-?[\d.,]*|{DATE}").any()
    return bool(is_text.mean() > 0.5 and not spelled) if len(words) else False


def _list_levels(column: pd.Series, words: pd.Series) -> tuple[str, ...]:
    """The words of a feature, in the order of a pandas category, else sorted."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        there = set(words)
        return tuple(name for name in _to_text(pd.Series(column.cat.categories)) if name in there)
    return tuple(sorted(words.unique(), key=_sort_key))


def _show(found: pd.Series) -> str:
    """A few of the values that are meant."""
    return join(map(repr, found.astype(str).unique()), FEW)


def _list_oddities(
    values: Floats, features: tuple[str, ...], outcome: Outcome, groups: tuple[str, ...], name_of_outcome: str | None
) -> list[str]:
    """What looks odd in a table and may be right, a sentence each."""
    y, kind = outcome.y, outcome.kind
    notes, alike = [], pd.Series(groups).groupby(pd.Series(groups).str.casefold()).agg(list)
    notes += [f"groups {join(map(repr, names))} may be one." for names in alike if len(names) > 1]
    columns = dict(zip(features, values.T, strict=True))
    for name, column in (columns | ({str(name_of_outcome): y} if kind in NUMBERS and y is not None else {})).items():
        found, counts = np.unique(column, return_counts=True)
        often = found[counts.argmax()]
        rest = column[column != often]
        if counts.max() < max(5, 0.01 * len(column)) or len(np.unique(rest)) < 10:
            continue
        away = max(often - rest.max(), rest.min() - often)
        if away > np.ptp(rest) / 2:
            notes.append(
                f"{name!r} is {often:g} in {say_rows(counts.max())}, far from all others ({rest.min():.4g} to "
                f"{rest.max():.4g}). If it means missing, leave these rows out."
            )
    for name, column in columns.items() if y is not None and kind != "classes" else ():
        a, b = (column, y) if kind in NUMBERS else (column[y == 0], column[y == 1])
        if kind in NUMBERS:
            leaks = np.ptp(a) > 0 and np.ptp(b) > 0 and abs(np.corrcoef(a, b)[0, 1]) > LEAK
        else:
            leaks = min(len(a), len(b)) > 0 and (a.max() < b.min() or b.max() < a.min())
        if leaks:
            notes.append(f"{name!r} alone gives {name_of_outcome!r} away. Is it known before the outcome is?")
    return notes


def _doubt_kind(outcome: Outcome, name: str) -> list[str]:
    """Of a number whose kind was found and not said: what else it may be, a sentence each."""
    y, kind, notes = outcome.y, outcome.kind, []
    if not _is_whole(y) and y.min() >= 0 and (y.max() <= 1 or y.max() == 100):
        top = 1 if y.max() <= 1 else 100
        notes.append(f"{name!r} is never below 0 or above {top}; pass kind='share' where it is a share.")
    if kind == "real" and y.min() > 0 and _is_skewed(y):
        notes.append(
            f"{name!r} is above 0 and skewed, so intervals may reach below 0. Its logarithm may be easier to learn: "
            "make it a column, and take exp of mean, low and high; the first is a median then."
        )
    elif kind == "real" and (n_far := np.sum(np.abs(y - np.median(y)) > FAR * measure_bulk(y))) > 1:
        notes.append(
            f"{say_rows(n_far)} have {name!r} far from all others. If these are right, kind='heavy' keeps them from "
            "pulling the rest."
        )
    if _is_whole(y):
        other = "'real' where it is an amount" if kind == "counts" else "'counts' where it counts something"
        notes.append(f"{name!r} is whole numbers, taken for kind={kind!r}; pass kind={other}.")
    return notes


def read_csv(path: Path, sep: str, encoding: str) -> pd.DataFrame:
    """A CSV file as text, indexed by line; blank lines are left out, but counted."""
    try:  # no header: pandas would give a second column of one name another name, and take a first one for an index
        lines = pd.read_csv(path, sep=sep, header=None, dtype=str, keep_default_na=False, na_values="",
                            skip_blank_lines=False, encoding=encoding)  # fmt: skip
    except ValueError as error:  # of pandas, or of the encoding
        wanted = "a CSV file with names in its first line, and no more fields in any other, in "
        wanted += f"encoding={encoding!r} (Excel's own is often 'cp1252' or 'utf-16'); {SEPARATOR}. Or read it with "
        wanted += "pandas (read_excel, read_parquet) and pass the frame"
        raise Refused(f"{path.name} is no table: {str(error).strip()}; wanted: {wanted}") from None
    lines.index += 1
    lines = lines.loc[:, ~(lines.iloc[0].isna() & lines.isna().all())]  # columns of marks alone
    return lines.iloc[1:].dropna(how="all").set_axis(lines.iloc[0].fillna("").str.strip().tolist(), axis=1)


def check_columns(frame: pd.DataFrame, columns: list[str], name: str) -> None:
    """Refuse columns that are not there, with those that are, two of one name, and a table without rows."""
    there = list(frame.columns)
    for column in columns:
        if column not in there:
            joined = len(there) == 1 or any(mark in str(there[0]) for mark in ";\t|")
            hint = f"; {SEPARATOR}" if joined else guess(str(column), there)
            raise Refused(f"{name} has no column {column!r}; there are {join(map(repr, there))}{hint}")
        if columns.count(column) > 1 or there.count(column) > 1:
            raise Refused(f"column {column!r} is there or asked for twice; wanted: all columns different")
    if frame.empty:
        raise Refused(f"{name} has names and no rows; wanted: a row for each observation")


def _to_numbers(column: pd.Series, decimal: str) -> Floats:
    """A column as numbers, (row,), with NaN for what is missing and for text."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    text = column.astype(str).str.strip().replace(TRUTH)
    if decimal == ",":  # 1.234,5 is 1234.5, and 1.23 is text
        grouped = text.str.fullmatch(rf"{GROUPED}(,\d+)?")
        text = text.where(~grouped, text.str.replace(".", "")).str.translate(str.maketrans(".,", ",."))
    return pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)


def _to_days(text: pd.Series) -> tuple[Floats | None, str]:
    """Dates as days, times of day as hours, (row,), NaN where there is none, and what they are; None for all else."""
    seen = text.dropna()
    if len(seen) and seen.str.fullmatch(CLOCK).all():
        parts = text.str.split(":", expand=True).astype(float).fillna({2: 0})
        return (parts @ (1 / 60.0 ** np.arange(parts.shape[1]))).to_numpy(dtype=float), "hours"
    if len(seen) and seen.str.fullmatch(GERMAN).all():
        day = text.str.extract(f"^{GERMAN}$").fillna({3: "0", 4: ":00"})
        text = day[2] + "-" + day[1].str.zfill(2) + "-" + day[0].str.zfill(2) + " " + day[3].str.zfill(2) + day[4]
    elif not len(seen) or not seen.str.fullmatch(CALENDAR).all():
        return None, ""
    dates = pd.to_datetime(text, errors="coerce", format="ISO8601").to_numpy(dtype="datetime64[us]")
    return (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D"), DAYS


def _to_text(column: pd.Series) -> pd.Series:
    """A column as text without spaces around it, with accents in one form and 2.0 as "2"."""
    return column.astype(str).str.strip().str.normalize("NFC").str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)


def _to_places(text: pd.Series, names: Sequence[str]) -> NDArray[np.int32]:
    """Place of each value among the classes, -1 for none; True is 1 and False is 0 where the classes are called so."""
    return pd.Index(names).get_indexer(text.replace(TRUTH) if set(names) == {"0", "1"} else text).astype("int32")


def _say_text(found: pd.Series, wanted: str, decimal: str) -> tuple[str, str]:
    """What is wrong with text among numbers, and what is wanted: of "1,5", another decimal point."""
    if found.str.fullmatch(rf"\s*({DATE})\s*").any():
        wanted = "dates such as 2024-12-31 in all rows, times such as 23:59, or numbers"
    elif found.str.fullmatch(r"\s*-?\d*[.,][\d.,]*\s*").any():
        wanted = f"{decimal!r} as the decimal point, no mark for thousands; or pass decimal={'.,'.strip(decimal)!r}"
    return f"holds text, {join(map(repr, found.unique()), FEW)},", wanted


def _is_whole(numbers: Array) -> bool:
    """Whether all are whole, and none is below zero."""
    return bool(np.all((numbers >= 0) & (numbers == np.round(numbers))))


def _measure_share(numbers: Floats) -> tuple[float, float] | None:
    """Of what numbers are shares, 1 or 100, and their smallest distance from an end; None where all lie there."""
    top = 1.0 if numbers.max() <= 1 else 100.0
    inside = numbers[(numbers > 0) & (numbers < top)] / top
    return (top, float(min(inside.min(), 1 - inside.max()))) if len(inside) else None


def _is_count(numbers: Floats) -> bool:
    """Whether numbers count something, most likely: whole, of five values or more, small ones oftener than large ones,
    and so near zero that a normal distribution's 90 % interval would reach below it."""
    return _is_whole(numbers) and len(np.unique(numbers)) >= 5 and _is_skewed(numbers)


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
