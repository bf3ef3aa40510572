"""Your own data: from a table with a group, features and a label to what the models take, and predictions to a file.

What cannot be used is refused, with the column, the group and the rows; no row is dropped and no value is filled in.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from hbnn import prediction, scores
from hbnn._checks import check_seed
from hbnn._refused import Refused
from hbnn._text import guess, join

FEW = 3  # rows or values that a message names
NOTHING = ("", "NA", "N/A", "n/a", "#NA", "#N/A", "<NA>", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "None")
TRUTH = {"True": "1", "true": "1", "TRUE": "1", "False": "0", "false": "0", "FALSE": "0"}
SEPARATOR = "pass sep=';' or sep='\\t' where these separate columns, and decimal=',' where commas are decimal points"
FIGURES = ("probability", "low", "high", "noise", "ignorance")


@dataclass(frozen=True)
class Rows:
    """A table that was read and checked, row by row in its own order and its own units.

    Attributes
    ----------
    values : float64, (row, feature), finite
    labels : int32, (row,), 0 or 1; None where the table was read without a label
    group : int, (row,), the place of each row's group in `groups`
    groups, features : tuples of str; groups are sorted, as numbers where they are numbers
    ids : dict of str to (row,), the "line" in the file or the "row" (index) of the DataFrame, and what is carried along
    columns : dict with the names of the columns "group" and "label"

    Examples
    --------
    Goes on from `read_table`.

    >>> n, ones = rows.count()
    >>> n.tolist(), ones.tolist()  # rows of each group, and those of class 1
    ([20, 20], [12, 12])
    >>> rows.take(rows.labels == 1).values.shape
    (24, 2)
    """

    values: np.ndarray
    labels: np.ndarray | None
    group: np.ndarray
    groups: tuple
    features: tuple
    ids: dict = field(repr=False)
    columns: dict = field(repr=False)

    def count(self):
        """Rows of each group, (group,), and how many of them are of class 1 (None without labels)."""
        n = np.bincount(self.group, minlength=len(self.groups))
        ones = None if self.labels is None else np.bincount(self.group[self.labels == 1], minlength=len(self.groups))
        return n, ones

    def take(self, index):
        """Rows by (obs,) places such as ``np.concatenate(split.rows_test)`` or a (row,) mask, of the same groups."""
        labels = None if self.labels is None else self.labels[index]
        ids = {name: values[index] for name, values in self.ids.items()}
        return replace(self, values=self.values[index], labels=labels, group=self.group[index], ids=ids)


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

    Examples
    --------
    Goes on from `split_rows`.

    >>> split.groups, split.features
    (('a', 'b'), ('age', 'dose'))
    >>> split.scale([[0.0, 0.0]]).shape  # values in the table's units
    (1, 2)
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

    def scale(self, values):
        """Values in the table's units, (…, feature), on the scale of the training rows."""
        return (np.asarray(values, dtype=float) - self.center) / self.width


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
    sep, decimal : str, what separates the columns of a file, and its decimal point, "." or "," (then "." is refused)

    Returns
    -------
    Rows

    Raises
    ------
    OSError
        When there is no such file.
    ValueError
        When the file is no table or has no rows, a column is not there or named twice; for missing values, text or
        infinity in a feature, and labels that are not two classes: all that is wrong with them at once, with the rows.

    Examples
    --------
    Two clinics with twenty patients each:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from hbnn.tables import table
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"clinic": ["a", "b"] * 20, "age": rng.integers(20, 80, 40)})
    >>> frame["dose"] = rng.uniform(1, 5, 40).round(1)
    >>> frame["well"] = np.where(frame["dose"] > 3, "yes", "no")
    >>> rows = table.read_table(
    ...     frame, group="clinic", features=["age", "dose"], label="well", classes=["no", "yes"]
    ... )
    >>> rows.values.shape, rows.groups
    ((40, 2), ('a', 'b'))
    >>> table.read_table(frame, group="clinic", features=["dose"], label="wel")
    Traceback (most recent call last):
        ...
    ValueError: the table has no column 'wel'; there are 'clinic', 'age', 'dose' and 'well'. Did you mean 'well'?
    """
    if isinstance(features, str) or isinstance(ids, str) or len(features) == 0:
        raise ValueError(f"features={features!r}, ids={ids!r}; wanted: lists of column names, at least one feature")
    two = isinstance(classes, list | tuple) and len(set(map(str, classes))) == 2 == len(classes) and label is not None
    if classes is not None and not two:
        raise ValueError(f"classes={classes!r}; wanted: a list of two values of the label, class 0 and class 1")
    if decimal not in (".", ","):
        raise ValueError(f"decimal={decimal!r}; wanted: '.' or ','")
    if isinstance(source, pd.DataFrame):
        frame, unit, name = source.rename(columns=str), "row", "the table"
    else:
        frame, unit, name = _read_csv(Path(source), sep), "line", Path(source).name
    used = [*features, group, *([] if label is None else [label])]
    _check_columns(frame, [*used, *ids], name)
    number, labels, complaints = frame.index.to_numpy(), None, []
    text = frame[used].apply(_to_text)
    missing = frame[used].isna() | text.isin(NOTHING)

    def complain(of, mask, what, wanted):
        if mask.any():
            n, s, where = int(mask.sum()), "s" if mask.sum() > 1 else "", join(map(str, number[mask]), FEW)
            complaints.append(f"{of} {what} in {n:,} row{s} of {len(frame):,} ({unit}{s} {where}); wanted: {wanted}")

    values = np.empty((len(frame), len(features)))
    for j, feature in enumerate(features):
        of, wanted = f"feature {feature!r}", "numbers; a category becomes a column of 0 and 1 each"
        complain(of, missing[feature], "is missing", "a number; leave these rows out or fill them in, and say so")
        values[:, j] = _to_numbers(frame[feature], decimal)
        wrong = np.isnan(values[:, j]) & ~missing[feature]
        found = frame[feature][wrong].astype(str)
        if found.str.fullmatch(r"\s*-?\d*[.,][\d.,]*\s*").any():
            wanted = f"{decimal!r} as the decimal point, no mark for thousands; or pass decimal={'.,'.strip(decimal)!r}"
        complain(of, wrong, f"holds text, {join(map(repr, found.unique()), FEW)},", wanted)
        complain(of, np.abs(values[:, j]) > 1e150, "is infinite or beyond 1e150", "finite numbers in another unit")
    complain(f"group {group!r}", missing[group], "is missing", "a name or number in each row, none called NA or None")
    if label is not None:
        complain(f"label {label!r}", missing[label], "is missing", "a label in each row, or label=None for all rows")
        labels, wrong = _to_labels(text[label], missing[label], classes)
        complaints += [f"label {label!r} {wrong}"] if wrong else []
    if complaints:
        raise Refused(*complaints, where=name)
    groups = tuple(sorted(text[group].unique(), key=_sort_key))
    place = pd.Index(groups).get_indexer(text[group])
    carried = {unit: number} | {column: frame[column].to_numpy() for column in ids}
    return Rows(values, labels, place, groups, tuple(features), carried, {"group": group, "label": label})


def _read_csv(path, sep):
    """A CSV file as text, indexed by line; blank lines are left out, but counted."""
    try:  # no header: pandas would give a second column of one name another name, and take a first one for an index
        lines = pd.read_csv(path, sep=sep, header=None, dtype=str, keep_default_na=False, na_values="",
                            skip_blank_lines=False)  # fmt: skip
    except ValueError as error:  # of pandas, or of the encoding
        wanted = f"a CSV file in UTF-8 with names in its first line, and no more fields in any other; {SEPARATOR}"
        raise ValueError(f"{path.name} is no table: {str(error).strip()}; wanted: {wanted}") from None
    lines.index += 1
    return lines.iloc[1:].dropna(how="all").set_axis(lines.iloc[0].fillna("").str.strip().tolist(), axis=1)


def _check_columns(frame, columns, name):
    """Raise ValueError for columns that are not there, with those that are, for two of one name, and without rows."""
    there = list(frame.columns)
    for column in columns:
        if column not in there:
            hint = f"; {SEPARATOR}" if len(there) == 1 else guess(str(column), there)
            raise ValueError(f"{name} has no column {column!r}; there are {join(map(repr, there))}{hint}")
        if columns.count(column) > 1 or there.count(column) > 1:
            raise ValueError(f"column {column!r} is there or asked for twice; wanted: all columns different")
    if frame.empty:
        raise ValueError(f"{name} has names and no rows; wanted: a row for each observation")


def _to_numbers(column, decimal):
    """A column as float64, (row,), with NaN for what is missing and for text."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float, na_value=np.nan)
    text = column.astype(str).str.strip().replace(TRUTH)
    if decimal == ",":
        text = text.str.translate(str.maketrans(".,", ",."))  # 1.234 is text then
    return pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)


def _to_text(column):
    """A column as text without spaces around it, with accents in one form and 2.0 as "2"."""
    return column.astype(str).str.strip().str.normalize("NFC").str.replace(r"^(-?\d+)\.0+$", r"\1", regex=True)


def _to_labels(names, missing, classes):
    """Labels as int32, (row,), and what is wrong with those that are not missing ("" for nothing)."""
    named = ["0", "1"] if classes is None else _to_text(pd.Series(classes)).tolist()
    names = names.replace(TRUTH) if classes is None else names
    held = names[~missing].value_counts()
    if held.index.isin(named).all():
        return (names == named[1]).astype("int32").to_numpy(), ""
    wanted = f"two classes, {named[0]!r} and {named[1]!r}, or others in classes"
    if classes is None and len(held) == 2:
        wanted = "0 and 1. classes=({0!r}, {1!r}) makes {1!r} class 1".format(*sorted(held.index))
    found = join(f"{value!r} ({n:,} row{'s' * (n > 1)})" for value, n in held.to_dict().items())
    return None, f"holds {found}; wanted: {wanted}"


def _sort_key(name):
    """Numbers by value, before text by letters."""
    try:
        number = float(name)
    except ValueError:
        number = np.nan
    return (0, number, name) if np.isfinite(number) else (1, 0.0, name)


def split_rows(rows, *, seed, train_share=0.5, max_train=None, min_rows=10, allow_one_class=False):
    """Split a table within its groups, and scale it by its training rows.

    In every group the classes are split in the same proportion, so that a small group has both in training. Centre and
    width are those of the training rows of all groups: what sets one group apart from another stays in the numbers.

    Parameters
    ----------
    rows : Rows with labels
    seed : int
    train_share : float between 0 and 1, of each group
    max_train : int, training rows of a group at most; the rest is for testing. Default: no limit
    min_rows : int, at least 4; what a group must have
    allow_one_class : bool, let groups in whose rows are all of one class, for partial pooling alone

    Returns
    -------
    Split

    Raises
    ------
    ValueError
        For rows without labels, one group, groups with too few rows or one class, a constant feature, odd arguments.

    Examples
    --------
    Goes on from `read_table`.

    >>> split = table.split_rows(rows, seed=1)
    >>> [len(y) for y in split.y_train], [len(y) for y in split.y_test]
    ([10, 10], [10, 10])
    >>> np.concatenate(split.X_train).std(axis=0).round(3)  # scaled by the training rows
    array([1., 1.])
    """
    check_seed(seed)
    if not 0 < train_share < 1 or (max_train is not None and max_train < 2) or min_rows < 4:
        wanted = "0 < train_share < 1, max_train of at least 2 or None, min_rows of at least 4"
        raise ValueError(f"train_share={train_share}, max_train={max_train}, min_rows={min_rows}; wanted: {wanted}")
    if rows.labels is None or len(rows.groups) < 2:
        found = f"label={rows.columns['label']!r} and {len(rows.groups)} values of {rows.columns['group']!r}"
        raise ValueError(f"{found}; wanted: labels to learn from, and two groups or more (for one: models.flat_bnn)")
    unusable = [f"{name!r} ({n:,} rows, {ones:,} of class 1)"
                for name, n, ones in zip(rows.groups, *rows.count(), strict=True)
                if n < min_rows or (ones in (0, n) and not allow_one_class)]  # fmt: skip
    if unusable:
        wanted = f"at least {min_rows} in each and both classes (or allow_one_class=True); merge or leave groups out"
        raise ValueError(f"too few rows, or one class, in group {join(unusable)}; wanted: {wanted}")
    train, test = [], []
    for g, child in enumerate(np.random.SeedSequence(seed).spawn(len(rows.groups))):
        own = np.flatnonzero(rows.group == g)
        n_train = min(max(round(train_share * len(own)), 2), len(own) - 1, max_train or len(own))
        picked = _pick(rows.labels[own], n_train, np.random.default_rng(child))
        train.append(own[picked])
        test.append(own[~picked])
    seen = rows.values[np.concatenate(train)]
    center, width = seen.mean(axis=0), seen.std(axis=0)
    same = np.array(rows.features)[(np.ptp(seen, axis=0) == 0) | (width == 0)].tolist()
    if same:
        raise ValueError(f"the same in all training rows: {join(map(repr, same))}; wanted: features that vary")
    X = (rows.values - center) / width
    parts = [[values[index] for index in part] for part in (train, test) for values in (X, rows.labels)]
    return Split(*parts, train, test, rows.groups, rows.features, center, width)


def _pick(labels, n_train, rng):
    """A mask of `n_train` rows for training, with both classes among them where both are there."""
    ones, zeros = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    n_ones = round(n_train * len(ones) / len(labels))
    if len(ones) and len(zeros):
        n_ones = min(max(n_ones, 1), n_train - 1)
    n_ones = min(max(n_ones, n_train - len(zeros)), len(ones))
    picked = [*rng.permutation(ones)[:n_ones], *rng.permutation(zeros)[: n_train - n_ones]]
    return np.isin(np.arange(len(labels)), picked)


def predict_rows(posterior, split, rows, *, activation="tanh"):
    """P(y = 1) of each row of a table, by the network of its group, draw by draw.

    Parameters
    ----------
    posterior, activation : as in `prediction.predict_groups`, of a model that was fitted to `split`
    split : Split, with the groups and the scale that the model learned
    rows : Rows, the same table or another one with the same features; labels are not used

    Returns
    -------
    (chain, draw, row) array of probabilities, in the order of `rows`

    Raises
    ------
    ValueError
        For other features, or in another order, an unknown group, and a posterior of another number of groups.

    Examples
    --------
    Goes on from `split_rows`. Draws of weights of the right shapes stand for a posterior:

    >>> weights = {"w1": rng.normal(size=(4, 25, 2, 2, 5)), "w2": rng.normal(size=(4, 25, 2, 5))}
    >>> draws = table.predict_rows(weights, split, rows)
    >>> draws.shape  # chains, draws, rows
    (4, 25, 40)
    """
    if rows.features != split.features:
        raise ValueError(f"the table has the features {rows.features}; wanted: {split.features}, in this order")
    group = pd.Index(split.groups).get_indexer(rows.groups)[rows.group]  # of each row, among those that were learned
    if (group < 0).any():
        new = rows.groups[rows.group[group < 0][0]]
        known = join(map(repr, split.groups)) + guess(new, split.groups)
        raise ValueError(f"group {new!r} was not trained on; wanted: one of {known}")
    weights = dict(posterior if "w1" in posterior else prediction.combine_weights(posterior))
    n_chains, n_draws, n_groups = weights["w1"].shape[:3]
    if n_groups != len(split.groups):
        raise ValueError(f"posterior has {n_groups} groups; wanted: {len(split.groups)}, as in the split")
    p = np.empty((n_chains, n_draws, len(rows.values)))
    for g in range(n_groups):
        where = np.flatnonzero(group == g)
        own = {name: values[:, :, [g]] for name, values in weights.items()}
        p[:, :, where] = prediction.predict_groups(own, split.scale(rows.values[where]), activation=activation)[:, :, 0]
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
        The ids, group and label (where there is one) of each row, "probability" (the mean over draws), "low" and "high"
        (quantiles over draws), "noise" and "ignorance" (bits, as in `scores.split_uncertainty`).

    Raises
    ------
    ValueError
        For draws of other rows, no probabilities, an interval out of range, and a column with the name of a new one.

    Examples
    --------
    Goes on from `predict_rows`.

    >>> frame = table.tabulate_predictions(rows, draws, interval=0.9)
    >>> frame.columns.tolist()
    ['row', 'clinic', 'well', 'probability', 'low', 'high', 'noise', 'ignorance']
    >>> bool((frame["low"] <= frame["high"]).all())
    True
    """
    draws = np.asarray(draws, dtype=float)
    if draws.ndim not in (2, 3) or draws.shape[-1] != len(rows.values):
        raise ValueError(f"draws has shape {draws.shape}; wanted: (chain, draw, {len(rows.values)}), a column a row")
    flat = draws.reshape(-1, draws.shape[-1])
    uncertainty = scores.split_uncertainty(flat)
    low, high = np.quantile(flat, [(1 - interval) / 2, (1 + interval) / 2], axis=0)
    figures = [flat.mean(axis=0), low, high, uncertainty["noise"], uncertainty["ignorance"]]
    given = rows.ids | {rows.columns["group"]: np.array(rows.groups, dtype=object)[rows.group]}
    given |= {} if rows.labels is None else {rows.columns["label"]: rows.labels}
    return pd.DataFrame(given).join(pd.DataFrame(dict(zip(FIGURES, figures, strict=True))))


def write_predictions(path, rows, draws, *, interval=0.9):
    """Write what `tabulate_predictions` returns into a CSV file, all or nothing; earlier predictions are replaced.

    Parameters
    ----------
    path : str or Path; its folder must exist
    rows, draws, interval : as in `tabulate_predictions`

    Returns
    -------
    DataFrame, as `tabulate_predictions`

    Raises
    ------
    OSError
        When the folder does not exist, or the path is a folder.
    ValueError
        As `tabulate_predictions`, and where a file of something else is there: your own table is never written over.

    Examples
    --------
    Goes on from `predict_rows`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = table.write_predictions(Path(folder, "predictions.csv"), rows, draws)
    ...     again = pd.read_csv(Path(folder, "predictions.csv"))
    >>> again.shape == written.shape == (40, 8)
    True
    """
    path = Path(path)
    if path.exists() and not path.read_bytes().split(b"\n", 1)[0].rstrip().endswith(",".join(FIGURES).encode()):
        raise ValueError(f"{path} is there already and holds no predictions; wanted: another name")
    frame = tabulate_predictions(rows, draws, interval=interval)
    part = path.with_name(f".{path.name}.part")
    try:
        frame.to_csv(part, index=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return frame
