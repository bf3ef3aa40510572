"""A table with a group, features and an outcome: read, checked, and split.

What cannot be used is refused, with the column, the group and the rows; no row is dropped. A feature that is missing in
some rows is filled in, and the rows are marked. What looks odd and may be right is a note.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import guess, join
from hbnn._types import Array, Floats

if TYPE_CHECKING:
    from hbnn.tables._network import Fit

type Kind = Literal["binary", "real", "heavy", "classes", "counts", "share"]
type AskedKind = Kind | Literal["ordered"]
type Places = NDArray[np.intp]
type Mask = NDArray[np.bool_]
type Source = str | Path | pd.DataFrame
KINDS: tuple[AskedKind, ...] = ("binary", "real", "heavy", "classes", "ordered", "counts", "share")
NUMBERS = ("real", "heavy", "counts", "share")  # kinds without classes
WEIGHTED = ("real", "heavy", "share")
MOST_CLASSES = 20
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
FIGURES = ("probability", "low", "high", "noise", "ignorance")
REAL_FIGURES = ("mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance")


def name_figures(kind: Kind | None, classes: Sequence[str]) -> tuple[str, ...]:
    """Columns that predictions of a kind of outcome have, beside those that the table gives."""
    if kind in NUMBERS:
        return REAL_FIGURES
    return (*(f"p_{name}" for name in classes), "class", *FIGURES) if kind == "classes" else FIGURES


@dataclass(frozen=True)
class Table:
    """A table that was read and checked, row by row in its own order and its own units.

    Examples
    --------
    Goes on from `read_table`.

    >>> n, ones = rows.count()
    >>> n.tolist(), ones.tolist()  # rows of each group, and those of the second class
    ([20, 20], [12, 12])
    >>> rows.take(rows.y == 1).values.shape
    (24, 2)
    >>> rows.figures  # what predictions of it will have
    ('probability', 'low', 'high', 'noise', 'ignorance')
    """

    values: Floats  #: (row, feature), finite
    #: (row,), the outcome: float64 in its unit, int64 where it counts, or int32, the place in `classes`; or None
    y: Any
    group: Places  #: (row,), the place of each row's group in `groups`
    groups: tuple[str, ...]  #: sorted, as numbers where they are numbers
    features: tuple[str, ...]
    ids: dict[str, Array] = field(repr=False)  #: (row,) each: "line" of the file or "row", and what is carried
    columns: dict[str, str | None] = field(repr=False)  #: names of the columns "group", "outcome" and "second_group"
    kind: Kind | None = None
    classes: tuple[str, ...] = ()  #: the second of two is the one that is predicted; () for numbers
    ordered: bool = False  #: whether the classes are marks, from low to high
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)  #: of features that are words
    fills: dict[str, float] = field(default_factory=dict, repr=False)  #: of features that were missing: their mean
    notes: tuple[str, ...] = field(default=(), repr=False)  #: what looks odd, a sentence each
    share: tuple[float, float] | None = None  #: of what, 1 or 100, and the smallest part of it that is told from 0
    second_group: Places | None = None  #: (row,), as `group`, of a second grouping
    second_groups: tuple[str, ...] = ()
    weight: Floats | None = None  #: (row,), of how many measurements an outcome is the mean
    read_as: dict[str, str] = field(default_factory=dict, repr=False)  #: of features that are dates, times or cycles

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


# --- reading


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
    like: "Table | Fit | None" = None,
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
    source : a CSV file with names in its first line; or a DataFrame
    outcome : None for rows to predict
    second_group : the column of another grouping, within which the groups lie (patients within clinics) or which they
        cross (schools and years): its groups have a level of their own
    weight : the column that says of how many measurements an outcome is the mean, above 0: its noise has that part of
        the variance. For numbers that are no counts
    cycles : of features that come round, after how much: ``{"hour": 24, "date": 365.25}``. A number becomes its sine
        and cosine; a date keeps its days beside them
    classes : the outcome's values, in the order wanted; the second of two is the one that is predicted
    ids : columns to carry along to the predictions
    decimal : "." or ","; then "1.234" is 1234. Default ".", but a file of semicolons with "1.234" is refused until it
        is said which
    like : a table read before, or a fit, whose kind of outcome, classes and words of features these rows have, even
        where they are too few to show them; another word is refused, and a missing one where none was missing before

    Raises
    ------
    Refused
        With all that is wrong with the values at once, and the rows; ValueError for odd arguments.

    Examples
    --------
    Two clinics with twenty patients each:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from hbnn import tables
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"clinic": ["a", "b"] * 20, "age": rng.integers(20, 80, 40)})
    >>> frame["dose"] = rng.uniform(1, 5, 40).round(1)
    >>> frame["well"] = np.where(frame["dose"] > 3, "yes", "no")
    >>> rows = tables.read_table(frame, group="clinic", features=["age", "dose"], outcome="well")
    >>> print(rows)
    40 rows in 2 groups of 'clinic' (20 to 20 rows each), 2 features.
    'well' has 2 classes, 'no' (16 rows) and 'yes' (24 rows) (kind='binary'); probabilities are of 'yes'.
    Note: 'dose' alone gives 'well' away. Is it known before the outcome is?
    """
    cycles = dict(cycles or {})
    usable = [name for name, length in cycles.items() if isinstance(length, int | float) and 0 < length < 1e150]
    if odd := [name for name in cycles if name not in features or name not in usable]:
        raise ValueError(f"cycles={cycles!r}, {odd[0]!r}; wanted: features, and after how much they come round")
    if isinstance(features, str) or isinstance(ids, str) or len(features) == 0:
        raise ValueError(f"features={features!r}, ids={ids!r}; wanted: lists of column names, at least one feature")
    _check_kind(kind, classes, outcome)
    if like is not None and outcome is not None and kind is None and classes is None:
        kind, classes = "ordered" if like.ordered else like.kind, list(like.classes) or None
    ordered, kind = kind == "ordered", "classes" if kind == "ordered" else kind
    asked_kind = kind
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal={decimal!r}; wanted: '.' or ','")
    if isinstance(source, pd.DataFrame):
        frame, unit, name = source.rename(columns=str), "row", "the table"
    else:
        frame, unit, name = read_csv(Path(source), sep, encoding), "line", Path(source).name
    doubtful, decimal = decimal is None and unit == "line" and sep != ",", decimal or "."
    used = [*features, *(name for name in (group, second_group, weight, outcome) if name is not None)]
    check_columns(frame, [*used, *ids], name)
    text = frame[used].apply(_to_text)
    missing = frame[used].isna() | text.isin(NOTHING)
    number, complaints = frame.index.to_numpy(), []

    def locate(mask: Mask | pd.Series) -> str:
        where = join(map(str, number[mask]), FEW)
        return f" in {say_rows(mask.sum())} of {len(mask):,} ({unit}{'s' * int(mask.sum() > 1)} {where})"

    def complain(of: str, mask: Mask | pd.Series, what: str, wanted: str) -> None:
        if mask.any():
            complaints.append(f"{of} {what}{locate(mask)}; wanted: {wanted}")

    def doubt(column: str) -> Mask:  # a mark for thousands, or a decimal point?
        dotted = text[column].str.contains(".", regex=False) & ~missing[column]
        grouped = text[column].str.fullmatch(GROUPED)
        return (dotted & bool(doubtful and (grouped | ~dotted).all())).to_numpy()

    which = "decimal=',' where '1.234' is 1234, or decimal='.'"
    columns_of: dict[str, Floats] = {}
    levels: dict[str, tuple[str, ...]] = {}
    fills: dict[str, float] = {}
    how_read: dict[str, str] = {}
    notes: list[str] = []
    for feature in features:
        of, empty = f"feature {feature!r}", missing[feature].to_numpy()
        if like is None:
            lost = empty & (empty.mean() > 0.5)
            complain(of, lost, "is missing", "a value in at least half of the rows; or leave the feature out")
        else:
            unknown = feature not in like.fills and MISSING not in like.levels.get(feature, ())
            complain(of, empty & unknown, "is missing", "a value in all rows, as where it was learned from")
        complain(of, doubt(feature), f"holds {_show(text[feature][doubt(feature)])},", which)
        days, read_as = _to_days(text[feature].mask(missing[feature]))
        numbers = _to_numbers(frame[feature], decimal) if days is None else days
        wrong = np.isnan(numbers) & ~missing[feature]
        words = text[feature][~missing[feature]]
        if feature in cycles and _is_word(words, wrong[~missing[feature]]):
            complain(of, wrong, f"holds {_show(text[feature][wrong])}, and is in cycles,", "numbers, dates or times")
        if (like is not None and feature in like.levels) or _is_word(words, wrong[~missing[feature]]):
            known = like.levels.get(feature) if like is not None else None
            there = _list_levels(frame[feature], words)
            levels[feature] = known or (*there, *([MISSING] if empty.any() and MISSING not in there else []))
            told = text[feature].mask(missing[feature], MISSING)
            n, alien = len(levels[feature]), ~told.isin(levels[feature]) & ~missing[feature]
            many = alien | (n > MOST_LEVELS)
            wanted = f"one of {join(map(repr, levels[feature]), MOST_LEVELS)}, which were learned from"
            wanted = f"at most {MOST_LEVELS} words, of {n}; merge some, or leave it out" if n > MOST_LEVELS else wanted
            complain(of, many, f"holds {_show(text[feature][many])},", wanted)
            same = np.full(len(told), n == 1 and not alien.any())
            complain(of, same, f"is {_show(told)} in all rows,", "a feature that varies")
            columns_of |= {f"{feature}={w}": (told == w).to_numpy(float) for w in levels[feature][1:]}
            if empty.any():
                notes.append(
                    f"{feature!r} is missing in {say_rows(empty.sum())}; {MISSING!r} is a word of its own there."
                )
            continue
        found = frame[feature][wrong].astype(str)
        complain(of, wrong, *_say_text(found, "numbers, or words in all rows", decimal))
        complain(of, np.abs(numbers) > 1e150, "is infinite or beyond 1e150", "finite numbers in another unit")
        fill = like.fills.get(feature) if like is not None else None
        if like is None and empty.any() and not empty.all():
            fill = float(numbers[~empty].mean())
        numbers = numbers if fill is None else np.where(empty, fill, numbers)
        if read_as:
            notes.append(f"{feature!r} is read as {read_as}.")
        circle = f"on a circle of {cycles[feature]:g}" if feature in cycles else ""
        if how := ", ".join(filter(None, [read_as, circle])):
            how_read[feature] = how
        wanted = f"{like.read_as.get(feature, 'a number') if like else how}, as where it was learned from"
        differs = like is not None and like.read_as.get(feature) != how_read.get(feature)
        complain(of, ~empty & differs, f"is read as {how or 'a number'}", wanted)
        if feature not in cycles or (days is not None and read_as == DAYS):
            columns_of[feature] = numbers
        if feature in cycles:
            turn = 2 * np.pi * numbers / cycles[feature]
            columns_of |= {f"sin({feature})": np.sin(turn), f"cos({feature})": np.cos(turn)}
        if fill is not None:
            fills[feature] = fill
            columns_of[f"{feature}={MISSING}"] = empty.astype(float)
            if empty.any():
                filled = f"the mean, {fill:.4g}, is filled in, and '{feature}={MISSING}' marks these rows."
                notes.append(f"{feature!r} is missing in {say_rows(empty.sum())}; {filled}")
    values = np.column_stack([*columns_of.values()] or [np.empty((len(frame), 0))])
    for name_ in (group, *([second_group] if second_group else [])):
        wanted = "a name or number in each row, none called NA or None"
        complain(f"group {name_!r}", missing[name_], "is missing", wanted)
    weights = None if weight is None else _to_numbers(frame[weight], decimal)
    if weight is not None and weights is not None:
        complain(f"weight {weight!r}", doubt(weight), f"holds {_show(text[weight][doubt(weight)])},", which)
        unusable = ~(np.isfinite(weights) & (weights > 0))
        complain(f"weight {weight!r}", unusable, "is missing, or no number above 0", "a number of measurements")
    y: Any = None
    share: tuple[float, float] | None = None
    names: tuple[str, ...] = ()
    if outcome is not None:
        empty = missing[outcome].to_numpy()
        wanted = "a value in each row; rows to predict go into a table of their own: --predict FILE on the command "
        wanted += f"line, or answer(frame.dropna(subset={outcome!r}), predict=frame[frame[{outcome!r}].isna()], ...)"
        complain(f"outcome {outcome!r}", empty, "is missing", wanted)
        complain(f"outcome {outcome!r}", doubt(outcome), f"holds {_show(text[outcome][doubt(outcome)])},", which)
        if not empty.all():
            numbers = _to_numbers(frame[outcome], decimal)
            try:
                if getattr(frame[outcome].dtype, "ordered", False) and classes is None and kind not in NUMBERS:
                    there = _to_text(pd.Series(frame[outcome].cat.remove_unused_categories().cat.categories)).tolist()
                    if 2 <= len(there) <= MOST_CLASSES and (kind != "binary" or len(there) == 2):
                        classes, ordered = there, ordered or (asked_kind is None and len(there) > 2)
                kind, names = _find_kind(text[outcome], numbers, empty, kind, classes, decimal, locate)
                if ordered and classes is None and np.isnan(numbers[~empty]).any():
                    wanted = f"classes=[…] with {join(map(repr, names), MOST_CLASSES)} from low to high"
                    raise Refused(f"is words, whose order is not known; wanted: {wanted}")
                if weight is not None and kind not in WEIGHTED:
                    wanted = "repeated rows for classes, and for counts the logarithm of an exposure as a feature"
                    raise Refused(f"is of kind {kind!r}, of which no mean is taken by {weight!r}; wanted: {wanted}")
                if kind == "share":
                    share = _measure_share(numbers[~empty]) if like is None or like.share is None else like.share
                    if share is None:
                        raise Refused("is 0 or all in all rows; wanted: shares between 0 and all, or kind='binary'")
                    if (most := numbers[~empty].max()) > share[0]:
                        raise Refused(f"goes up to {most:g}; wanted: shares of {share[0]:g}, as before")
                y = _to_places(text[outcome], names) if names else numbers
            except Refused as error:
                complaints += [f"outcome {outcome!r} {complaint}" for complaint in error.complaints]
    if complaints:
        raise Refused(*complaints, where=name)
    groups, place = _number(text[group])
    second_groups, second = _number(text[second_group]) if second_group else ((), None)
    carried = {unit: number} | {column: frame[column].to_numpy() for column in ids}
    columns = {"group": group, "outcome": outcome} | ({"second_group": second_group} if second_group else {})
    notes += _look(values, tuple(columns_of), y, kind, groups, outcome)
    y = y.astype("int64") if y is not None and kind == "counts" else y
    found = y is not None and asked_kind is None and kind in NUMBERS
    if found and not _is_whole(y) and y.min() >= 0 and (y.max() <= 1 or y.max() == 100):
        top = 1 if y.max() <= 1 else 100
        notes.append(f"{outcome!r} is never below 0 or above {top}; pass kind='share' where it is a share.")
    if found and kind == "real" and y.min() > 0 and _is_skewed(y):
        notes.append(
            f"{outcome!r} is above 0 and skewed, so intervals may reach below 0. Its logarithm may be easier to learn: "
            "make it a column, and take exp of mean, low and high; the first is a median then."
        )
    elif found and kind == "real" and (n_far := np.sum(np.abs(y - np.median(y)) > FAR * measure_bulk(y))) > 1:
        notes.append(
            f"{say_rows(n_far)} have {outcome!r} far from all others. If these are right, kind='heavy' keeps them from "
            "pulling the rest."
        )
    if found and _is_whole(y):
        other = "'real' where it is an amount" if kind == "counts" else "'counts' where it counts something"
        notes.append(f"{outcome!r} is whole numbers, taken for kind={kind!r}; pass kind={other}.")
    kind = None if y is None else kind
    return Table(
        values, y, place, groups, tuple(columns_of), carried, columns, kind, names, ordered and kind == "classes",
        levels, fills, tuple(notes), share, second, second_groups, weights, how_read,
    )  # fmt: skip


def say_rows(n: int | np.integer) -> str:
    """Text such as "1 row" or "1,234 rows"."""
    return f"{n:,} row{'s' * int(n != 1)}"


def _number(text: pd.Series) -> tuple[tuple[str, ...], Places]:
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


def _look(
    values: Floats, features: tuple[str, ...], y: Any, kind: Kind | None, groups: tuple[str, ...], outcome: str | None
) -> tuple[str, ...]:
    """What looks odd in a table and may be right, a sentence each."""
    notes, alike = [], pd.Series(groups).groupby(pd.Series(groups).str.casefold()).agg(list)
    notes += [f"groups {join(map(repr, names))} may be one." for names in alike if len(names) > 1]
    columns = dict(zip(features, values.T, strict=True))
    for name, column in (columns | ({str(outcome): y} if kind in NUMBERS and y is not None else {})).items():
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
            notes.append(f"{name!r} alone gives {outcome!r} away. Is it known before the outcome is?")
    return tuple(notes)


def _check_kind(kind: AskedKind | None, classes: Sequence[Any] | None, outcome: str | None) -> None:
    """Raise ValueError for a kind that is none, and for classes that do not go with it."""
    if kind not in (None, *KINDS):
        raise ValueError(f"kind={kind!r}; wanted: {', '.join(map(repr, KINDS))}, or None to find it from the column")
    if classes is None:
        return
    several = isinstance(classes, list | tuple) and len(set(map(str, classes))) == len(classes) >= 2
    least = 3 if kind == "ordered" else 2
    several = several and len(classes) >= least
    if not several or outcome is None or kind in NUMBERS or (kind == "binary" and len(classes) != 2):
        wanted = "a list of different values, two for kind='binary', three or more for 'ordered', none for numbers or "
        wanted += "outcome=None"
        raise ValueError(f"classes={classes!r} with kind={kind!r}; wanted: {wanted}")


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


def _find_kind(
    text: pd.Series,
    numbers: Floats,
    missing: Mask,
    kind: Kind | None,
    classes: Sequence[Any] | None,
    decimal: str,
    locate: Callable[[Mask], str],
) -> tuple[Kind, tuple[str, ...]]:
    """Kind of an outcome and names of its classes; Refused with what is wrong."""
    seen, is_text = text[~missing], np.isnan(numbers) & ~missing
    truth = TRUTH if set(seen) <= {*TRUTH, "0", "1"} else {}
    counts = seen.replace(truth).value_counts()
    values = sorted(counts.index, key=_sort_key)
    shown = join((f"{v!r} ({say_rows(counts[v])})" for v in values), 6)
    if classes is not None:
        names = tuple(_to_text(pd.Series(list(classes))).replace(truth))
        alien = (_to_places(text, names) < 0) & ~missing
        if alien.any():
            raise Refused(f"holds {shown}, other classes{locate(alien)}; wanted: one of {join(map(repr, names))}")
        return "binary" if len(names) == 2 else "classes", names
    if len(values) == 1 and kind not in NUMBERS:
        wanted = "an outcome that varies, or all the values that it may have in classes"
        raise Refused(f"is {values[0]!r} in all rows that have one; wanted: {wanted}")
    commas = seen.str.fullmatch(r"-?\d+,\d+")
    if commas.any() and decimal == "." and (commas | ~is_text[~missing]).all():
        raise Refused(f"holds {shown}; wanted: decimal=',' where commas are decimal points")
    alike = pd.Series(values).groupby(pd.Series(values).str.casefold()).agg(list)
    if is_text.any() and (alike.map(len) > 1).any():
        same = join(map(repr, alike[alike.map(len) > 1].iloc[0]))
        raise Refused(f"holds {shown}; wanted: one spelling of {same}, or all of them in classes")
    if kind is None:
        odd = len(values) > 2 and seen[is_text[~missing]].nunique() <= len(values) / 2  # some text among numbers
        almost = odd and is_text.any() and np.isin(numbers[~missing & ~is_text], (0, 1)).all()
        if values == ["0", "1"] or (len(values) == 2 and is_text.any()) or almost:
            kind = "binary"
        elif is_text.any() and not odd:
            kind = "classes"
        elif not is_text.any() and _is_count(numbers[~missing]):
            kind = "counts"
        elif len(values) <= AMBIGUOUS and np.all(numbers[~missing] == np.round(numbers[~missing])):  # no text
            which = "'binary' for names" if len(values) == 2 else "'classes' for names, 'ordered' for marks"
            raise Refused(f"holds {shown}; wanted: kind={which}, 'real' for amounts, or 'counts'")
        else:
            kind = "real"
    if kind in NUMBERS:
        if is_text.any():
            what, wanted = _say_text(text[is_text], "numbers, or kind='classes' for words", decimal)
            raise Refused(f"{what}{locate(is_text)}; wanted: {wanted}")
        huge = np.abs(numbers) > 1e150
        if huge.any():
            raise Refused(f"is infinite or beyond 1e150{locate(huge)}; wanted: finite numbers in another unit")
        odd = ~missing & ~((numbers >= 0) & (numbers == np.round(numbers)) & (numbers < 2**53))
        outside = ~missing & ~((numbers >= 0) & (numbers <= 100))
        if kind == "share" and outside.any():
            raise Refused(
                f"holds {_show(text[outside])},{locate(outside)}; wanted: shares from 0 to 1, or from 0 to 100"
            )
        if kind == "heavy" and counts.iloc[0] > len(seen) / 2:
            wanted = "numbers that vary about their mean, or kind='real'"
            raise Refused(f"is {counts.index[0]!r} in more than half of the rows; wanted: {wanted}")
        if kind == "counts" and odd.any():
            raise Refused(f"holds {_show(text[odd])},{locate(odd)}; wanted: whole numbers from 0, or kind='real'")
        return kind, ()
    if kind == "binary" and len(values) > 2:
        rare = counts.index[-1]
        where = f"{rare!r}{locate((text.replace(truth) == rare) & ~missing)}"
        raise Refused(f"holds {shown}, {where}; wanted: two classes, or kind='classes'")
    if len(values) > MOST_CLASSES:
        wanted = f"at most {MOST_CLASSES}; merge some, or kind='real' for numbers"
        raise Refused(f"holds {len(values)} different values, {join(map(repr, values), FEW)}; wanted: {wanted}")
    return kind, tuple(values)


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


def measure_bulk(numbers: Floats) -> float:
    """The standard deviation that a normal with the same middle half has; where all of that is one value, their own."""
    return float(np.subtract(*np.quantile(numbers, (0.75, 0.25))) / 1.349 or numbers.std())


def _sort_key(name: str) -> tuple[int, float, str]:
    """Numbers by value, before text by letters."""
    try:
        number = float(name)
    except ValueError:
        number = np.nan
    return (0, number, name) if np.isfinite(number) else (1, 0.0, name)


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


# --- splitting


@dataclass(frozen=True)
class Split:
    """Rows for training and for testing, by group and scaled, as a network for groups takes them.

    Examples
    --------
    Goes on from `split_rows`.

    >>> split.groups, split.features
    (('a', 'b'), ('age', 'dose'))
    >>> split.scale([[0.0, 0.0]]).shape  # values in the table's units
    (1, 2)
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
    train_share, max_train : of each group
    min_rows : at least 4; what a group must have
    allow_one_class : let groups in whose rows are all of one class, for partial pooling alone

    Raises
    ------
    Refused
        For no outcome, one group, too few rows or one class in a group, a constant feature; ValueError for odd
        arguments.

    Examples
    --------
    Goes on from `read_table`.

    >>> split = tables.split_rows(rows, seed=1)
    >>> [len(y) for y in split.y_train], [len(y) for y in split.y_test]
    ([10, 10], [10, 10])
    >>> np.concatenate(split.X_train).std(axis=0).round(3)  # scaled by the training rows
    array([1., 1.])
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
    return Split(X_train, y_train, X_test, y_test, train, test, rows.groups, rows.features, center, width)


def require_groups(rows: Table) -> None:
    """Refuse rows without an outcome to learn from, or of a single group."""
    if rows.y is None or len(rows.groups) < 2:
        found = f"outcome={rows.columns['outcome']!r} and {len(rows.groups)} values of {rows.columns['group']!r}"
        raise Refused(f"{found}; wanted: rows read with an outcome to learn from, and two groups or more")


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


def make_folds(rows: Table, *, seed: int, n_folds: int = 5) -> dict[str, Places]:
    """Folds of "rows", to which groups and classes are spread evenly, and of whole "groups", to which rows are: the
    number of each row's fold, (row,) each.

    Examples
    --------
    Goes on from `read_table`.

    >>> folds = tables.make_folds(rows, seed=1, n_folds=2)
    >>> np.bincount(folds["rows"]).tolist(), set(folds["groups"][rows.group == 0].tolist())
    ([20, 20], {0})
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
