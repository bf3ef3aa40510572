"""Your own data: from a table with a group, features and a label to what the models take, and predictions to a file.

A table is a CSV file or a pandas DataFrame with one row for each observation. Everything here refuses what it cannot
use, and says which column, which group and which rows; no row is dropped and no value is filled in.
"""

import csv
import difflib
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from bnn import predict, score
from bnn.data import check_seed

FEW = 3  # rows that a message names
MANY = 10  # groups that a message names
HUGE = 1e150  # the square of a greater value, or of 1 / it, is no number any more
# what stands for nothing in a file, except in columns that are carried along
NOTHING = ("NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
BLOCK = 1000  # rows whose draws are summarised at once
FIGURES = ("probability", "low", "high", "noise", "ignorance")


@dataclass(frozen=True)
class Rows:
    """A table that was read and checked, row by row in its own order and its own units.

    Attributes
    ----------
    values : float64, (row, feature), finite
    labels : int32, (row,), 0 or 1; None where the table was read without a label
    group : int, (row,), the place of each row's group in `groups`
    groups : tuple of str, names of the groups, sorted; as numbers where all of them are numbers
    features : tuple of str, names of the features
    number : (row,), the line in the file (1 is the line of names), or the index of the DataFrame
    ids : dict of str to (row,), columns that are carried along to the predictions
    columns : dict with the names of the columns "group" and "label", and what "number" is called: "line" or "row"
    """

    values: np.ndarray
    labels: np.ndarray | None
    group: np.ndarray
    groups: tuple
    features: tuple
    number: np.ndarray
    ids: dict = field(repr=False)
    columns: dict = field(repr=False)

    def count(self):
        """Rows of each group, (group,), and how many of them are of class 1 (None without labels)."""
        n = np.bincount(self.group, minlength=len(self.groups))
        ones = None if self.labels is None else np.bincount(self.group[self.labels == 1], minlength=len(self.groups))
        return n, ones

    def take(self, index):
        """Some of the rows, such as ``np.concatenate(split.rows_test)``, as a table of the same groups.

        Parameters
        ----------
        index : (obs,) int array of places, or (row,) array of bool
        """
        labels = None if self.labels is None else self.labels[index]
        ids = {name: values[index] for name, values in self.ids.items()}
        return replace(self, values=self.values[index], labels=labels, group=self.group[index],
                       number=self.number[index], ids=ids)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """Rows for training and for testing, by group and scaled, as `models.hierarchical_bnn` takes them.

    Attributes
    ----------
    X_train, X_test : lists, one (obs, feature) array a group: (value - center) / width
    y_train, y_test : lists, one (obs,) int32 array a group
    rows_train, rows_test : lists, one (obs,) int array a group: where these rows stand in the table
    groups, features : tuples of str
    center, width : (feature,), mean and standard deviation of all training rows, in the table's units
    """

    X_train: list
    y_train: list
    X_test: list
    y_test: list
    rows_train: list
    rows_test: list
    groups: tuple
    features: tuple
    center: np.ndarray
    width: np.ndarray

    def place(self, rows):
        """Where the rows of each of these groups stand in another table: a list of (obs,) int arrays.

        Raises
        ------
        ValueError
            For other features, or the same in another order, and for a group that was not trained on.
        """
        if rows.features != self.features:
            raise ValueError(
                f"the table has the features {_list(rows.features)}; wanted: {_list(self.features)}, in this order"
            )
        present = [name for g, name in enumerate(rows.groups) if (rows.group == g).any()]
        for name in present:
            if name not in self.groups:
                raise ValueError(
                    f"group {name!r} was not trained on; wanted: one of {_list(self.groups)}{_guess(name, self.groups)}"
                )
        place = {name: g for g, name in enumerate(rows.groups)}
        return [np.flatnonzero(rows.group == place.get(name, -1)) for name in self.groups]

    def scale(self, values):
        """Values in the table's units, (…, feature), on the scale of the training rows."""
        return (np.asarray(values, dtype=float) - self.center) / self.width


# --- reading


def read_table(source, *, group, features, label, classes=None, ids=(), sep=",", decimal="."):
    """A table with one row for each observation: checked, nothing dropped, nothing filled in.

    Parameters
    ----------
    source : path of a CSV file in UTF-8 with names in its first line; or a DataFrame
    group : str, the column that says which group a row belongs to; numbers or text
    features : list of str, columns of numbers
    label : str, a column of 0 and 1 (or True and False); or None for rows to predict, whose label is not known
    classes : two values, where the labels are something else: the first stands for class 0, the second for class 1
    ids : list of str, columns to carry along to the predictions, such as a name or a number
    sep : str, what separates the columns of a file
    decimal : "." or ",", the decimal point of a file; the other one is no part of a number then

    Returns
    -------
    Rows

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file cannot be read as a table, has no rows or two columns of one name; when a column is missing, or
        given twice; for missing values, for text, infinity or numbers beyond 1e150 in a feature, and for labels other
        than 0 and 1, or other than `classes`. Everything that is wrong with the values is said at once, with the rows.
    """
    if decimal not in (".", ","):
        raise ValueError(f"decimal={decimal!r}; wanted: '.' or ','")
    columns = _check_columns(group, features, label, ids)
    classes = _check_classes(classes, label)
    frame, unit, name = _read_frame(source, sep, ids)
    _find_columns(frame, columns, name, sep)
    number, complaints = frame.index.to_numpy(), []

    def complain(of, mask, what, wanted):
        if mask.any():
            rows = "1 row" if mask.sum() == 1 else f"{mask.sum():,} rows"
            where = _where(number[mask], unit)
            complaints.append(f"{of} {what} in {rows} of {len(frame):,} ({where}); wanted: {wanted}")

    values = np.empty((len(frame), len(features)))
    for j, feature in enumerate(features):
        values[:, j], missing, text = _to_numbers(frame[feature], decimal)
        of = f"feature {feature!r}"
        complain(of, missing, "is missing", "a number; leave these rows out or fill them in, and say so")
        found = frame[feature][text].astype(str)
        hint = _hint_at_commas(found.str.strip(), decimal) or "; a category becomes a column of 0 and 1 each"
        complain(of, text, f"holds text, {_list(dict.fromkeys(found), FEW)},", f"numbers{hint}")
        size = np.abs(values[:, j])
        complain(of, np.isinf(size), "is infinite", "finite numbers")
        beyond = np.isfinite(size) & (size > HUGE)
        complain(of, beyond, f"is beyond {HUGE}", "another unit, or is it a code for a missing value?")
    names, missing = _to_names(frame[group])
    complain(f"group {group!r}", missing, "is missing", "a name or a number in each row, and none called NA or None")
    labels = None
    if label is not None:
        labels, missing, complaint = _to_labels(frame[label], label, classes)
        wanted = "a label in each row; read rows to be predicted apart, with label=None"
        complain(f"label {label!r}", missing, "is missing", wanted)
        complaints += [complaint] if complaint else []
    if complaints:
        start = f"{name}: " if name else ""
        several = f"{len(complaints)} things are wrong" if len(complaints) > 1 else ""
        raise ValueError(start + ("\n- ".join([several, *complaints]) if several else complaints[0]))
    groups = tuple(sorted(set(names), key=_sort_key))
    place = {name: g for g, name in enumerate(groups)}
    carried = {column: frame[column].to_numpy() for column in ids}
    return Rows(values, labels, np.array([place[name] for name in names]), groups, tuple(features), number, carried,
                {"group": group, "label": label, "number": unit})  # fmt: skip


def _check_columns(group, features, label, ids):
    """Raise what `read_table` documents about its arguments; else return the names of all columns."""
    for name, value in {"features": features, "ids": ids}.items():
        if not isinstance(value, list | tuple) or not all(isinstance(column, str) for column in value):
            raise ValueError(f"{name}={value!r}; wanted: a list of column names, such as ['age', 'income']")
    if len(features) == 0:
        raise ValueError("features is empty; wanted: at least one column of numbers")
    for name, value in {"group": group, "label": label}.items():
        if not isinstance(value, str) and not (name == "label" and value is None):
            raise ValueError(f"{name}={value!r}; wanted: the name of one column")
    columns = [group, *features, *([] if label is None else [label]), *ids]
    twice = [column for column in dict.fromkeys(columns) if columns.count(column) > 1]
    if twice:
        raise ValueError(f"column {twice[0]!r} is given twice; wanted: group, features, label and ids all different")
    return columns


def _check_classes(classes, label):
    if classes is None:
        return None
    if label is None:
        raise ValueError(f"classes={classes!r} without a label; wanted: the label's column as well")
    in_order = isinstance(classes, list | tuple | np.ndarray)
    if not in_order or len(classes) != 2 or str(classes[0]) == str(classes[1]):
        wanted = "two different values, in order, that of class 0 and that of class 1"
        raise ValueError(f"classes={classes!r}; wanted: {wanted}")
    return tuple(str(value).strip() for value in classes)


def _read_frame(source, sep, ids):
    """The table as a DataFrame that is indexed by line or row, what such a number is called, and the file's name."""
    if isinstance(source, pd.DataFrame):
        if source.empty:
            raise ValueError(f"the table has shape {source.shape}; wanted: at least one row and the columns named here")
        frame, unit, name = source.set_axis([str(column) for column in source.columns], axis=1), "row", ""
    elif isinstance(source, str | Path):
        frame, unit, name = _read_csv(Path(source), sep, ids), "line", Path(source).name
    else:
        raise ValueError(f"source is a {type(source).__name__}; wanted: the path of a CSV file, or a DataFrame")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise ValueError(f"{name or 'the table'} has two columns {twice[0]!r}; wanted: each name once")
    return frame, unit, name


def _read_csv(path, sep, ids):
    """A CSV file as text, indexed by the line where a row begins; blank lines are left out, but counted."""
    if not isinstance(sep, str) or len(sep) != 1:
        raise ValueError(f"sep={sep!r}; wanted: one character, such as ',', ';' or '\\t'")
    if not path.is_file():
        there = sorted(p.name for p in path.parent.glob("*") if p.is_file()) if path.parent.is_dir() else []
        raise FileNotFoundError(f"no file {path}; wanted: a CSV file{_guess(path.name, there)}")
    try:
        lines = pd.read_csv(path, sep=sep, header=None, dtype=str, skip_blank_lines=False, encoding="utf-8-sig",
                            compression=None, keep_default_na=False, na_values=[""])  # fmt: skip
    except pd.errors.EmptyDataError:
        raise ValueError(
            f"{path.name} is empty, or its first line is; wanted: a line of names, then one line for each row"
        ) from None
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        with open(path, encoding="utf-8-sig", newline="") as file, suppress(csv.Error):
            guess, records = _guess_separator(file.readline(), sep), csv.reader(file, delimiter=sep)
            file.seek(0)
            width = len(next(records))
            for record in records:  # pandas counts records, which are not lines where a field in quotes has several
                if len(record) > width:
                    reason = f"Expected {width} fields in line {records.line_num}, saw {len(record)}"
                    break
        raise ValueError(
            f"{path.name} is no table: {reason}; wanted: as many fields in each line as in the first{guess}"
        ) from None
    except UnicodeDecodeError:
        raise ValueError(
            f"{path.name} is not text in UTF-8; wanted: a CSV file, unpacked and saved as 'CSV UTF-8'"
        ) from None
    breaks = sum(column.str.count("\r\n|\r|\n").fillna(0) for _, column in lines.items()).to_numpy(dtype=int)
    lines.index += 1 + np.cumsum(breaks) - breaks
    lines = lines.dropna(how="all")
    if len(lines) == 0 or lines.index[0] != 1 or lines.iloc[0].isna().any():
        raise ValueError(f"{path.name} has columns without a name; wanted: all names in the first line")
    if len(lines) == 1:
        raise ValueError(f"{path.name} has names and no rows; wanted: one line for each row")
    names = [str(column).strip() for column in lines.iloc[0]]
    rows = lines.iloc[1:].set_axis(names, axis=1)
    return rows.mask(rows.isin(NOTHING) & [name not in ids for name in names])


def _find_columns(frame, columns, name, sep):
    """Raise ValueError for columns that are not there, with those that are."""
    there = list(frame.columns)
    missing = [column for column in columns if column not in there]
    if not missing:
        return
    guess = "".join(_guess(column, there) for column in missing)
    if len(there) == 1:
        guess = _guess_separator(there[0], sep) or guess
    noun = "column" if len(missing) == 1 else "columns"
    raise ValueError(f"{name or 'the table'} has no {noun} {_list(missing)}; there are {_list(there, 20)}{guess}")


def _guess_separator(line, sep):
    """The end of a message about a first line without `sep`: what may separate instead, or "" where nothing does."""
    other = next((mark for mark in ";\t|," if mark != sep and mark in line and sep not in line), None)
    if other is None:
        return ""
    comma = ", and decimal=',' where the comma is the decimal point" if other == ";" else ""
    return f". Are the columns separated by {other!r}? Then pass sep={other!r}{comma}"


def _to_numbers(column, decimal="."):
    """A column as float64, with masks of what is missing and of what is text; both are NaN."""
    missing = column.isna().to_numpy()
    if pd.api.types.is_bool_dtype(column.dtype) or column.dtype.kind in "iuf":
        return column.to_numpy(dtype=float, na_value=np.nan), missing, np.zeros(len(column), bool)
    text = column.astype(str).str.strip()
    missing = missing | (text == "").to_numpy()
    lower = text[~missing].str.lower()
    if lower.isin(("true", "false")).all():
        numbers = text.str.lower().map({"true": 1.0, "false": 0.0}).to_numpy(dtype=float)
    else:
        plain = text if decimal == "." else text.str.translate(str.maketrans(".,", ",."))  # 1.234 is text then
        numbers = pd.to_numeric(plain, errors="coerce").to_numpy(dtype=float)
    numbers = np.where(missing, np.nan, numbers)
    return numbers, missing, np.isnan(numbers) & ~missing


def _hint_at_commas(found, decimal):
    """What to do about commas and points in numbers that were read as text, or "" where that is not what is wrong."""
    if decimal == ",":
        marked = found.str.fullmatch(r"-?[\d.]+(,\d*)?").any()
        return " with a decimal comma and no mark for thousands" if marked else ""
    if found.str.fullmatch(r"-?\d{1,3}(,\d{3})+").any():
        return "; leave the comma out where it marks thousands, or pass decimal=',' where it is the decimal point"
    if found.str.fullmatch(r"-?\d*,\d+").any():
        return ", or decimal=',' where the comma is the decimal point"
    return ""


def _to_names(column):
    """A column as text, 2.0 as "2", accents in one form, and a mask of what is missing."""
    text = column.astype(str).str.strip().str.normalize("NFC").str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)
    return text.to_numpy(dtype=object), column.isna().to_numpy() | (text == "").to_numpy()


def _to_labels(column, label, classes):
    """Labels as int32, a mask of what is missing, and a complaint about all others ("" for none)."""
    names, missing = _to_names(column)
    numbers = _to_numbers(column)[0]
    held = pd.Series(names[~missing]).value_counts()
    if classes is None:
        if np.isin(numbers[~missing], (0, 1)).all():
            return np.where(numbers == 1, 1, 0).astype("int32"), missing, ""
        hint = "two classes; these models tell two apart"
        if len(held) == 2:
            a, b = sorted(held.index, key=_sort_key)
            hint = f"0 and 1. classes=({a!r}, {b!r}) makes {b!r} class 1"
        return None, missing, f"label {label!r} holds {_count_values(held)}; wanted: {hint}"
    named = tuple(_to_names(pd.Series([value]))[0][0] for value in classes)
    strange = held[~held.index.isin(named)]
    unused = [value for value in named if value not in held.index]
    if len(strange):
        return None, missing, f"label {label!r} holds {_count_values(strange)}; wanted: {_list(named)}, as in classes"
    if unused:
        return None, missing, f"label {label!r} never holds {unused[0]!r}; wanted: both of classes={named}"
    return (names == named[1]).astype("int32"), missing, ""


# --- splitting


def split_rows(rows, *, seed, train_share=0.5, max_train=None, min_rows=10, allow_one_class=False):
    """Split a table within its groups, and scale it by its training rows.

    In every group the classes are split in the same proportion, as far as whole rows go, so that a small group has
    both in training. Centre and width are those of the training rows of all groups together: what sets one group apart
    from another stays in the numbers.

    Parameters
    ----------
    rows : Rows with labels
    seed : int
    train_share : float between 0 and 1, of each group
    max_train : int, training rows of a group at most; the rest is for testing. Default: no limit
    min_rows : int, at least 4; what a group must have
    allow_one_class : bool, let groups in whose rows are all of one class. Partial pooling can deal with them; a fit of
        such a group alone cannot

    Returns
    -------
    Split

    Raises
    ------
    ValueError
        For rows without labels, one group only, groups with too few rows, groups with one class, features that are the
        same in all training rows or differ by less than numbers can hold, and arguments out of range.
    """
    check_seed(seed)
    if not 0 < train_share < 1:
        raise ValueError(f"train_share={train_share}; wanted: between 0 and 1, both excluded")
    if max_train is not None and max_train < 2:
        raise ValueError(f"max_train={max_train}; wanted: at least 2, one of each class, or None")
    if min_rows < 4:
        raise ValueError(f"min_rows={min_rows}; wanted: at least 4")
    _check_groups(rows, min_rows, allow_one_class)
    train, test = [], []
    for g, child in enumerate(np.random.SeedSequence(seed).spawn(len(rows.groups))):
        own = np.flatnonzero(rows.group == g)
        n_train = min(max(round(train_share * len(own)), 2), len(own) - 1, max_train or len(own))
        picked = _pick(rows.labels[own], n_train, np.random.default_rng(child))
        train.append(own[picked])
        test.append(own[~picked])
    seen = rows.values[np.concatenate(train)]
    for name, constant, everywhere in zip(rows.features, np.ptp(seen, axis=0) == 0, np.ptp(rows.values, axis=0) == 0,
                                          strict=True):  # fmt: skip
        if constant:
            where = "in all rows" if everywhere else f"in all {len(seen):,} training rows"
            raise ValueError(f"feature {name!r} is the same {where}; wanted: one that varies, or leave it out")
    center, width = seen.mean(axis=0), seen.std(axis=0)
    for name, sd in zip(rows.features, width, strict=True):
        if sd < 1 / HUGE:
            raise ValueError(f"feature {name!r} has a standard deviation below {1 / HUGE:.0e}; wanted: another unit")
    X = (rows.values - center) / width
    parts = [[values[index] for index in part] for part in (train, test) for values in (X, rows.labels)]
    return Split(*parts, train, test, rows.groups, rows.features, center, width)


def _check_groups(rows, min_rows, allow_one_class):
    """Raise what `split_rows` documents about groups."""
    if rows.labels is None:
        raise ValueError("the table was read with label=None; wanted: labels to learn from")
    if len(rows.groups) < 2:
        raise ValueError(
            f"group {rows.columns['group']!r} is {rows.groups[0]!r} in every row; wanted: at least two groups, or "
            "models.flat_bnn for a single one"
        )
    n, ones = rows.count()
    few, single = n < min_rows, ((ones == 0) | (ones == n)) & (not allow_one_class)
    refused, complaints = np.flatnonzero(few | single), []
    for g in refused[:MANY]:
        name, size = rows.groups[g], int(n[g])
        where = _where(rows.number[rows.group == g], rows.columns["number"])
        if few[g]:
            guess = _guess(name, [other for other, m in zip(rows.groups, n, strict=True) if m >= min_rows])
            complaints.append(
                f"group {name!r} has {size} row{'s' * (size > 1)} ({where}); wanted: at least {min_rows}, so merge it "
                f"with a like one or leave it out{guess}"
            )
        else:
            complaints.append(
                f"group {name!r} has {size} rows, all of class {int(ones[g] > 0)}; wanted: both classes, or "
                "allow_one_class=True for a hierarchical network alone"
            )
    if len(refused):
        several = f"{len(refused):,} groups cannot be used\n- " if len(refused) > 1 else ""
        more = [f"{len(refused) - MANY:,} more"] if len(refused) > MANY else []
        raise ValueError(several + "\n- ".join([*complaints, *more]))


def _pick(labels, n_train, rng):
    """A mask of `n_train` rows for training, with both classes among them where both are there."""
    ones, zeros = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    n_ones = round(n_train * len(ones) / len(labels))
    if len(ones) and len(zeros):
        n_ones = min(max(n_ones, 1), n_train - 1)
    n_ones = min(max(n_ones, n_train - len(zeros)), len(ones))
    picked = np.zeros(len(labels), bool)
    picked[rng.permutation(ones)[:n_ones]] = True
    picked[rng.permutation(zeros)[: n_train - n_ones]] = True
    return picked


# --- predicting


def predict_rows(posterior, split, rows, *, activation="tanh"):
    """P(y = 1) of each row of a table, by the network of its group, draw by draw.

    Parameters
    ----------
    posterior : as in `predict.predict_groups`, of a model that was fitted to `split`
    split : Split, with the groups and the scale that the model learned
    rows : Rows, the same table or another one with the same features; labels are not used
    activation : as in `predict.predict_groups`

    Returns
    -------
    (chain, draw, row) array of probabilities, in the order of `rows`

    Raises
    ------
    ValueError
        As `Split.place`, and for a posterior of another number of groups.
    """
    weights = posterior if "w1" in posterior else predict.combine_weights(posterior)
    weights = {name: np.asarray(weights[name]) for name in weights}
    n_chains, n_draws, n_groups = weights["w1"].shape[:3]
    if n_groups != len(split.groups):
        raise ValueError(f"posterior has {n_groups} groups; wanted: {len(split.groups)}, as in the split")
    p = np.empty((n_chains, n_draws, len(rows.values)))
    for g, where in enumerate(split.place(rows)):
        own = {name: values[:, :, [g]] for name, values in weights.items()}
        for part in np.array_split(where, len(where) // BLOCK + 1):
            points = split.scale(rows.values[part])[None]
            p[:, :, part] = predict.predict_groups(own, points, activation=activation)[:, :, 0]
    return p


def tabulate_predictions(rows, draws, *, interval=0.9):
    """What is predicted for each row, and how uncertain that is, as a DataFrame.

    Parameters
    ----------
    rows : Rows
    draws : (chain, draw, row) or (draw, row) probabilities, from `predict_rows`
    interval : float between 0 and 1, the share of the draws between "low" and "high"

    Returns
    -------
    DataFrame
        One row for each row of `rows`, with its line or row, its ids, group and label (where there is one), and
        "probability" (the mean over draws), "low" and "high" (quantiles of the probability over draws), "noise" and
        "ignorance" (bits, as in `score.split_uncertainty`).

    Raises
    ------
    ValueError
        For draws of another number of rows, values that are no probabilities, an interval out of range, and a column of
        the table that has the name of a new one.
    """
    draws = np.asarray(draws, dtype=float)
    if draws.ndim not in (2, 3) or draws.shape[-1] != len(rows.values) or draws.size == 0:
        raise ValueError(f"draws has shape {draws.shape}; wanted: (chain, draw, {len(rows.values)}), a column a row")
    if not 0 < interval < 1:
        raise ValueError(f"interval={interval}; wanted: between 0 and 1, both excluded")
    given = {rows.columns["number"]: rows.number} | rows.ids
    given |= {rows.columns["group"]: np.array(rows.groups, dtype=object)[rows.group]}
    given |= {} if rows.labels is None else {rows.columns["label"]: rows.labels}
    taken = [name for name in FIGURES if name in given]
    if len(given) < 2 + len(rows.ids) + (rows.labels is not None):
        taken = [rows.columns["number"], *taken]
    if taken:
        raise ValueError(f"the table has a column {taken[0]!r} already; wanted: another name for it in the table")
    flat, parts = draws.reshape(-1, draws.shape[-1]), []
    for start in range(0, flat.shape[1], BLOCK):  # all rows at once would need several copies of the draws
        block = flat[:, start : start + BLOCK]
        uncertainty = score.split_uncertainty(block)
        low, high = np.quantile(block, [(1 - interval) / 2, (1 + interval) / 2], axis=0)
        parts.append([block.mean(axis=0), low, high, uncertainty["noise"], uncertainty["ignorance"]])
    return pd.DataFrame(given | dict(zip(FIGURES, np.concatenate(parts, axis=1), strict=True)))


def write_predictions(path, rows, draws, *, interval=0.9):
    """Write what `tabulate_predictions` returns into a CSV file, all of it or nothing.

    Earlier predictions under that name stay until the whole table is written.

    Parameters
    ----------
    path : str or Path; its folder must exist
    rows, draws, interval : as in `tabulate_predictions`

    Returns
    -------
    DataFrame, as `tabulate_predictions`

    Raises
    ------
    FileNotFoundError
        When the folder does not exist.
    ValueError
        As `tabulate_predictions`, and for a path that is a folder, or a file of something else: your own table is never
        written over.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {path.parent}; wanted: one that exists, to write {path.name} in")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; wanted: the name of a file")
    if path.exists() and not _is_ours(path):
        raise ValueError(f"{path} is there already and holds no predictions; wanted: another name, nothing is replaced")
    frame = tabulate_predictions(rows, draws, interval=interval)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            rounded = frame.assign(**{name: frame[name].map("{:.6g}".format) for name in FIGURES})
            rounded.to_csv(file, index=False)  # carried columns as they came: an id such as 20230517.0 has eight digits
            file.flush()
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    finally:
        Path(part).unlink(missing_ok=True)
    return frame


def _is_ours(path):
    """Whether a file is a table of predictions, by its first line."""
    with open(path, "rb") as file:
        return file.readline().rstrip().endswith(",".join(FIGURES).encode())


# --- words of messages


def _where(numbers, unit):
    """Say where rows are: "line 5", "lines 5 and 9", "lines 5, 9, 20 and 4 more"."""
    shown = [str(number) for number in numbers[:FEW]]
    more = [f"{len(numbers) - FEW:,} more"] if len(numbers) > FEW else []
    return f"{unit}{'s' * (len(numbers) > 1)} {_join([*shown, *more])}"


def _count_values(counts):
    """Say which values there are and how often: "'no' (4,313 rows) and 'yes' (2,053 rows)"."""
    shown = [f"{value!r} ({n:,} row{'s' * (n > 1)})" for value, n in counts.iloc[:FEW].items()]
    more = [f"{len(counts) - FEW} more values"] if len(counts) > FEW else []
    return _join([*shown, *more])


def _list(names, limit=6):
    names = list(names)
    more = [f"{len(names) - limit} more"] if len(names) > limit else []
    return _join([*(repr(str(name)) for name in names[:limit]), *more])


def _join(words):
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _guess(name, names):
    """Ask for the nearest spelling, where one is near."""
    lower = {}
    for other in names:
        lower.setdefault(other.lower(), other)
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f". Did you mean {lower[near[0]]!r}?" if near else ""


def _sort_key(name):
    """Numbers by value, before text by letters."""
    try:
        number = float(name)
    except ValueError:
        number = np.nan
    return (0, number, name) if np.isfinite(number) else (1, 0.0, name)
