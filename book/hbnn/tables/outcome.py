"""A table with groups and any outcome: two classes, several, or a number. What is read, refused, and written.

`table` reads groups and features; here the outcome is added, and predictions of each kind are scored and become a
file.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import norm

from hbnn import scores
from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import join
from hbnn.tables import table
from hbnn.tables.table import FIGURES, NOTHING, TRUTH

KINDS = ("binary", "real", "classes")
MOST_CLASSES = 20
AMBIGUOUS = 10  # so many whole numbers may be names or amounts
REAL_FIGURES = ("mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance")


# --- reading


@dataclass(frozen=True)
class Rows(table.Rows):
    """`table.Rows` whose `labels` are an outcome of any kind.

    Attributes
    ----------
    labels : (row,), float64 in the table's unit for a "real" outcome, else int32, the place in `classes`; or None
    kind : "binary", "real" or "classes"; None without an outcome
    classes : tuple of str, in the order of the labels; empty for a "real" outcome
    """

    kind: str | None = None
    classes: tuple = ()

    def __str__(self):
        """What was read, in a sentence for each: rows and groups, the outcome and what it was taken for."""
        n, outcome = np.bincount(self.group, minlength=len(self.groups)), self.columns["label"]
        read = f"{len(self.values):,} rows in {len(self.groups)} groups of {self.columns['group']!r}"
        read += f" ({n.min():,} to {n.max():,} rows each), {len(self.features)} features"
        if self.kind is None:
            return f"{read}, no outcome."
        if self.kind == "real":
            y = self.labels
            return f"{read}.\n{outcome!r} is a number, from {y.min():.4g} to {y.max():.4g} (kind='real')."
        counts = np.bincount(self.labels, minlength=len(self.classes))
        found = join((f"{c!r} ({k:,} rows)" for c, k in zip(self.classes, counts, strict=True)), MOST_CLASSES)
        ends = f"; probabilities are of {self.classes[1]!r}" if self.kind == "binary" else ""
        return f"{read}.\n{outcome!r} has {len(self.classes)} classes, {found} (kind={self.kind!r}){ends}."


def read_outcome(source, *, group, features, outcome, kind=None, classes=None, ids=(), sep=",", decimal="."):
    """A table with one row for each observation and an outcome of any kind, found from its column or named.

    Two words, or 0 and 1, are two classes; 3 to 20 words are classes; numbers are real. A few whole numbers may be
    either, and are refused until `kind` says which.

    Parameters
    ----------
    source, group, features, ids, sep, decimal : as in `table.read_table`
    outcome : str, the column to predict; or None for rows to predict
    kind : "binary", "real" or "classes"; None finds it
    classes : list of the outcome's values, in the order wanted; the second of two is the one that is predicted. A few
        rows of a new group need not hold them all: pass ``kind=fit.kind, classes=fit.classes``

    Returns
    -------
    Rows

    Raises
    ------
    OSError
        When there is no such file.
    ValueError
        As `table.read_table`, and for an outcome that is missing, constant, of no clear kind or not of the one named:
        all that is wrong with the values at once, with the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from hbnn.tables import outcome
    >>> rng = np.random.default_rng(1)
    >>> frame = pd.DataFrame({"field": ["a", "b", "c"] * 20, "rain": rng.normal(50, 10, 60)})
    >>> frame["wheat"] = 0.1 * frame["rain"] + rng.normal(size=60)
    >>> rows = outcome.read_outcome(frame, group="field", features=["rain"], outcome="wheat")
    >>> rows.kind, rows.groups
    ('real', ('a', 'b', 'c'))
    >>> frame["crop"] = np.where(frame["wheat"] > 5, "good", "bad")
    >>> print(outcome.read_outcome(frame, group="field", features=["rain"], outcome="crop"))
    60 rows in 3 groups of 'field' (20 to 20 rows each), 1 features.
    'crop' has 2 classes, 'bad' (33 rows) and 'good' (27 rows) (kind='binary'); probabilities are of 'good'.
    """
    if kind not in (None, *KINDS):
        raise ValueError(f"kind={kind!r}; wanted: {', '.join(map(repr, KINDS))}, or None to find it from the column")
    classes = None if classes == () else classes  # of a fit to numbers
    if classes is not None:
        several = isinstance(classes, list | tuple) and len(set(map(str, classes))) == len(classes) >= 2
        if not several or outcome is None or kind == "real" or (kind == "binary" and len(classes) != 2):
            wanted = "a list of different values of the outcome, two for kind='binary', none for kind='real'"
            raise ValueError(f"classes={classes!r} with kind={kind!r}; wanted: {wanted}")
    is_frame, wrong, rows = isinstance(source, pd.DataFrame), [], None
    name, unit = ("the table", "row") if is_frame else (Path(source).name, "line")
    try:
        rows = table.read_table(source, group=group, features=features, label=None, ids=ids, sep=sep, decimal=decimal)
    except Refused as error:  # of the values, which the outcome's are joined to
        if outcome is None:
            raise
        wrong = error.complaints
    if outcome is None:
        return Rows(**vars(rows))
    frame = source.rename(columns=str) if is_frame else table._read_csv(Path(source), sep)
    table._check_columns(frame, [*features, group, outcome], name)
    column = frame[outcome]
    text = table._to_text(column)
    missing = (column.isna() | text.isin(NOTHING)).to_numpy()
    number, complaints = frame.index.to_numpy(), []
    if missing.any():
        wanted = "a value in each row; rows to predict go into a table of their own, read with outcome=None "
        wanted += f"(rivals.answer: predict=frame[frame[{outcome!r}].isna()], and the others as the first argument)"
        complaints.append(f"is missing{_locate(missing, number, unit)}; wanted: {wanted}")
    numbers = table._to_numbers(column, decimal)
    kind, names, problem = _find_kind(text, numbers, missing, kind, classes, decimal)
    if isinstance(problem, tuple):
        mask, what, wanted = problem
        problem = f"{what}{_locate(mask, number, unit)}; wanted: {wanted}"
    complaints += [problem] if problem else []
    wrong += [f"outcome {outcome!r} {complaint}" for complaint in complaints]
    if wrong:
        raise Refused(*wrong, where=name)
    labels = numbers if kind == "real" else pd.Index(names).get_indexer(_to_names(text, names)).astype("int32")
    given = vars(rows) | {"labels": labels, "columns": {"group": group, "label": outcome}}
    return Rows(**given, kind=kind, classes=names)


def _locate(mask, number, unit):
    """Say how many rows there are in a mask, and where the first of them stand."""
    n, s = int(mask.sum()), "s" if mask.sum() > 1 else ""
    return f" in {n:,} row{s} of {len(mask):,} ({unit}{s} {join(map(str, number[mask]), table.FEW)})"


def _to_names(text, names):
    """True as 1 and False as 0, unless the classes are called so."""
    return text.replace(TRUTH) if set(names) == {"0", "1"} else text


def _find_kind(text, numbers, missing, kind, classes, decimal):
    """Kind and names of the classes, and what is wrong: "", a phrase, or a (mask, what, wanted) of some rows."""
    seen = text[~missing]
    counts = seen.replace(TRUTH).value_counts() if set(seen) <= {*TRUTH, "0", "1"} else seen.value_counts()
    values = sorted(counts.index, key=table._sort_key)
    shown = join((f"{v!r} ({counts[v]:,} row{'s' * int(counts[v] > 1)})" for v in values), 6)
    is_text = np.isnan(numbers) & ~missing
    odd = 0 < seen[is_text[~missing]].nunique() <= len(values) / 2  # a column of numbers with some text in it
    whole = not is_text.any() and np.all(numbers[~missing] == np.round(numbers[~missing]))
    if not values:
        return kind, (), "holds no value"
    if len(values) == 1 and classes is None and kind != "real":
        wanted = "an outcome that varies, or all the values that it may have in classes"
        return kind, (), f"is {values[0]!r} in all rows that have one; wanted: {wanted}"
    if classes is not None:
        names = tuple(table._to_text(pd.Series(list(classes))).replace(TRUTH if set(values) <= {"0", "1"} else {}))
        alien = ~_to_names(text, names).isin(names).to_numpy() & ~missing
        problem = (alien, f"holds {shown}, other classes", f"one of {join(map(repr, names))}") if alien.any() else ""
        return "binary" if len(names) == 2 else "classes", names, problem
    if kind is None:
        if values == ["0", "1"] or (len(values) == 2 and is_text.any()):
            kind = "binary"
        elif is_text.any() and not (odd and len(values) > 2):
            kind = "classes"
        elif whole and len(values) <= AMBIGUOUS:
            two = "kind='binary'" if len(values) == 2 else "kind='classes'"
            return kind, (), f"holds {shown}; wanted: {two} if these are names, kind='real' if they are amounts"
        else:
            kind = "real"
    if kind == "real":
        if is_text.any():
            found = join(map(repr, seen[is_text[~missing]].unique()), table.FEW)
            wanted = "numbers, or kind='classes' for words"
            if text[is_text].str.fullmatch(r"-?\d*[.,][\d.,]*").any():
                wanted = f"{decimal!r} as the decimal point; or pass decimal={'.,'.strip(decimal)!r}"
            return kind, (), (is_text, f"holds text, {found},", wanted)
        huge = np.abs(numbers) > 1e150
        return kind, (), (huge, "is infinite or beyond 1e150", "finite numbers in another unit") if huge.any() else ""
    if kind == "binary" and len(values) > 2:
        return kind, (), f"holds {shown}; wanted: two classes, or kind='classes'"
    if len(values) > MOST_CLASSES:
        wanted = f"at most {MOST_CLASSES}; merge some, or kind='real' for numbers"
        some = join(map(repr, values), table.FEW)
        return kind, (), f"holds {len(values)} different values, {some}; wanted: {wanted}"
    return kind, tuple(values), ""


# --- folds and scores


def make_folds(rows, *, seed, n_folds=5):
    """Folds of rows, and of whole groups, (row,) int each: groups and classes are spread evenly over the first, and
    rows over the second."""
    check_seed(seed)
    check_count(n_folds, "n_folds", least=2)
    rng = np.random.default_rng(seed)
    classes = np.zeros(len(rows.group)) if rows.kind == "real" else rows.labels
    order = np.lexsort((rng.random(len(rows.group)), classes, rows.group))
    by_row = np.empty(len(order), dtype=int)
    by_row[order] = np.arange(len(order)) % n_folds
    sizes = np.bincount(rows.group, minlength=len(rows.groups))
    by_size = np.lexsort((rng.random(len(sizes)), -sizes))
    rank = np.empty(len(sizes), dtype=int)
    rank[by_size] = np.arange(len(sizes))
    return {"rows": by_row, "groups": (rank % min(n_folds, len(sizes)))[rows.group]}


@dataclass(frozen=True)
class Prediction:
    """Draws of what is predicted for each row.

    Attributes
    ----------
    draws : (draw, row) probabilities of the second of two classes; (draw, row, class); or (draw, row) means of a real
        outcome, in its unit
    noise : (draw, 1) or (draw, row) standard deviation of a real outcome about its mean, in its unit; None for classes
    effective : float, the effective number of posterior draws where they were weighted, else their number
    """

    draws: np.ndarray
    noise: np.ndarray | None
    effective: float


def log_density(prediction, rows):
    """Log density of each row's outcome under each draw, (draw, row), nats; of a real outcome per its unit.

    Parameters
    ----------
    prediction : Prediction of these rows
    rows : Rows with the outcome
    """
    y, draws = rows.labels, prediction.draws
    if rows.kind == "real":
        return norm.logpdf(y, draws, prediction.noise)
    p = np.take_along_axis(draws, y[None, :, None], axis=2)[..., 0] if rows.kind == "classes" else None
    return scores.log_likelihood(draws, y) if p is None else np.log(np.maximum(p, scores.FLOOR))


def score_rows(prediction, rows):
    """Log predictive density of each row, nats, the mean over draws being taken of the density: (row,).

    Examples
    --------
    Goes on from `read_outcome`. A forecast that says the same of each row:

    >>> forecast = outcome.Prediction(np.full((1, 60), 5.0), np.array([[1.5]]), effective=1.0)
    >>> density = outcome.score_rows(forecast, rows)
    >>> density.shape
    (60,)
    >>> bool(density.max() <= -np.log(1.5 * np.sqrt(2 * np.pi)))  # the density at the mean
    True
    """
    return logsumexp(log_density(prediction, rows), axis=0) - np.log(len(prediction.draws))


# --- predictions to a file


def list_figures(kind, classes):
    """Names of the columns that `tabulate` adds for a kind of outcome, tuple of str."""
    if kind == "real":
        return REAL_FIGURES
    return (*(f"p_{name}" for name in classes), "class", *FIGURES) if kind == "classes" else FIGURES


def check_names(rows, names):
    """Raise ValueError where ids, group or outcome of a table are called as one of the columns to be added."""
    if both := [name for name in (*rows.ids, *rows.columns.values()) if name in names]:
        raise ValueError(f"the table has a column {both[0]!r}, and so have the predictions; wanted: another name")


def tabulate(fit, rows, prediction, *, interval=0.9, extra=None):
    """What is predicted for each row, and how uncertain that is, as a DataFrame.

    Parameters
    ----------
    fit : Fit, or the Rows that a model learned from: what knows `kind` and `classes`
    rows : Rows, with an outcome or without
    prediction : Prediction of these rows; of a single draw, as of a rival that is no posterior, nothing can be said of
        ignorance, and what hangs on it is NaN (an empty field in the file)
    interval : float between 0 and 1
    extra : dict of name to (row,) or to one value for all, further columns

    Returns
    -------
    DataFrame
        The ids, group and outcome (where there is one), `extra`, and then: for two classes as
        `table.tabulate_predictions`; for several ``p_<class>`` each, the most probable "class", and the same figures of
        it; for a real outcome "mean" with "mean_low" and "mean_high", the interval of the mean, "low" and "high", that
        of the outcome itself, "noise" (the standard deviation about the mean) and "ignorance" (the standard deviation
        of the mean over draws), all in the outcome's unit. All intervals are equal-tailed.

    Raises
    ------
    ValueError
        For a prediction of other rows, an interval out of range, and a column with the name of a new one.

    Examples
    --------
    Goes on from `read_outcome`. Draws of the mean at each row, with a noise of 1:

    >>> draws = rng.normal(5, 0.1, size=(200, 60))
    >>> predicted = outcome.Prediction(draws, noise=np.ones((200, 1)), effective=200.0)
    >>> table = outcome.tabulate(rows, rows, predicted)
    >>> table.columns.tolist()
    ['row', 'field', 'wheat', 'mean', 'mean_low', 'mean_high', 'low', 'high', 'noise', 'ignorance']
    >>> table[["mean", "noise", "ignorance"]].mean().round(1).tolist()
    [5.0, 1.0, 0.1]
    """
    draws, n = prediction.draws, len(rows.values)
    if draws.shape[1] != n or not 0 < interval < 1:
        raise ValueError(f"draws of {draws.shape[1]} rows, interval={interval}; wanted: {n} rows, 0 < interval < 1")
    extra = extra or {}
    check_names(rows, (*extra, *list_figures(fit.kind, fit.classes)))
    ends = np.array([(1 - interval) / 2, (1 + interval) / 2])
    given = rows.ids | {rows.columns["group"]: np.array(rows.groups, dtype=object)[rows.group]}
    if rows.labels is not None:
        named = rows.labels if rows.kind == "real" else np.array(rows.classes, dtype=object)[rows.labels]
        given |= {rows.columns["label"]: named}
    unknown = ("ignorance", "mean_low", "mean_high")
    if fit.kind == "real":
        low, high = np.quantile(draws, ends, axis=0)
        outcome = [_find_quantile(draws, prediction.noise, end) for end in ends]
        noise = np.broadcast_to(np.sqrt(np.mean(prediction.noise**2, axis=0)), n)
        figures = [draws.mean(axis=0), low, high, *outcome, noise, draws.std(axis=0)]
    else:
        split, p, best = scores.split_uncertainty(draws), draws.mean(axis=0), []
        unknown = ("ignorance", "low", "high")
        if fit.kind == "classes":
            top = p.argmax(axis=1)
            best = [*p.T, np.array(fit.classes, dtype=object)[top]]
            draws = np.take_along_axis(draws, top[None, :, None], axis=2)[..., 0]
        figures = [*best, draws.mean(axis=0), *np.quantile(draws, ends, axis=0), split["noise"], split["ignorance"]]
    new = dict(zip(list_figures(fit.kind, fit.classes), figures, strict=True))
    new |= dict.fromkeys(unknown, np.nan) if len(draws) == 1 else {}
    return pd.DataFrame(given | extra | new)


def _find_quantile(draws, noise, share):
    """Quantile of an outcome that is normal about each draw's mean, by bisection: (row,), in the outcome's unit.

    Parameters
    ----------
    draws : (draw, row) means; noise : (draw, 1) or (draw, row) standard deviations; share : float between 0 and 1
    """
    each = draws + noise * ndtri(share)  # the quantile of the mixture lies between those of its parts
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(25):  # to 3e-8 of the first interval
        middle = (low + high) / 2
        below = ndtr((middle - draws) / noise).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def check_path(path):
    """The path, if predictions may be written there: ValueError where a file of something else is, OSError for a folder
    that does not exist."""
    path = Path(path)
    if not path.parent.is_dir() or path.is_dir():
        raise OSError(f"{path} is a folder, or in one that does not exist; wanted: a file in a folder that does")
    if path.exists():
        head = path.read_bytes().split(b"\n", 1)[0].rstrip()
        if not head.endswith((",".join(FIGURES).encode(), ",".join(REAL_FIGURES).encode())):
            raise ValueError(f"{path} is there already and holds no predictions; wanted: another name")
    return path


def write(path, fit, rows, prediction, *, interval=0.9, extra=None):
    """Write what `tabulate` returns into a CSV file, all or nothing; earlier predictions are replaced.

    Parameters, Returns and Raises as `tabulate` and `check_path`: your own table is never written over.

    Examples
    --------
    Goes on from `tabulate`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = outcome.write(Path(folder, "predictions.csv"), rows, rows, predicted)
    ...     again = pd.read_csv(Path(folder, "predictions.csv"))
    >>> again.columns.tolist() == written.columns.tolist()
    True
    """
    path = check_path(path)
    frame = tabulate(fit, rows, prediction, interval=interval, extra=extra)
    part = path.with_name(f".{path.name}.part")
    try:
        frame.to_csv(part, index=False)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return frame
