"""Numbers as the book prints them: four kinds, told apart in the output itself.

- exact: ``1000``; equal on every machine
- Monte Carlo: ``95.2 ± 0.3``, the error being a Monte Carlo standard error, or ``95.2 ± 0.3 (n=20)``, over 20 seeds or
  data sets: the standard error of their mean or, beside a single fit, their standard deviation, as the heading says;
  another machine agrees within the two runs' errors
- diagnostic: ``~1532 (above 400: yes)``; the verdict is equal, the figure may move
- measured: ``31 s (measured)``; read from a file that `make studies` or `make bench` wrote
"""

import html
import json
from pathlib import Path

import numpy as np
from hbnn._text import plus_minus

DATA = Path(__file__).resolve().parents[1] / "data"


def monte_carlo(value, error, n=None):
    """Text of a Monte Carlo number, its error rounded to two digits and its value to the same place.

    Parameters
    ----------
    value, error : float; `error` >= 0
    n : int, number of seeds where `error` is their standard deviation

    Examples
    --------
    >>> from bookkit import report
    >>> report.monte_carlo(95.2039, 0.3114)
    '95.20 ± 0.31'
    >>> report.monte_carlo(95.2039, 0.3114, n=20)
    '95.20 ± 0.31 (n=20)'
    """
    if n is not None and n < 2:
        raise ValueError(f"n={n}; wanted: at least 2 seeds, or None where the error is not a spread over seeds")
    return plus_minus(value, error) + (f" (n={n})" if n else "")


def spread(values):
    """Text of the mean over seeds and its standard error: ``mean ± sd / sqrt(n) (n=…)``.

    Examples
    --------
    >>> from bookkit import report
    >>> report.spread([1.0, 2.0, 3.0, 4.0])
    '2.50 ± 0.65 (n=4)'
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values has shape {values.shape}; wanted: (seed,) with at least 2 seeds")
    return monte_carlo(values.mean(), values.std(ddof=1) / np.sqrt(len(values)), len(values))


def diagnostic(value, criterion, holds, digits=3):
    """Text of a diagnostic number with its verdict, e.g. ``~1532 (above 400: yes)``.

    Examples
    --------
    >>> from bookkit import report
    >>> report.diagnostic(1532.4, "above 400", holds=True, digits=0)
    '~1532 (above 400: yes)'
    """
    if not criterion or set(criterion) & set("():\n"):
        raise ValueError(f"criterion={criterion!r}; wanted: words without brackets, colon or line break")
    return f"~{value:.{digits}f} ({criterion}: {'yes' if holds else 'no'})"


def measured(value, unit):
    """Text of a measured number, e.g. ``31 s (measured)``. Its value comes from `read_data`, never from a clock.

    Examples
    --------
    >>> from bookkit import report
    >>> report.measured(31, "s")
    '31 s (measured)'
    """
    return f"{value} {unit} (measured)"


def read_data(name):
    """What `make studies` or `make bench` wrote to ``book/data/<name>.json``: a dict with its origin.

    Examples
    --------
    >>> from bookkit import report
    >>> report.read_data("run_cost")["study"]
    'run_cost'
    """
    path = DATA / f"{name}.json"
    if not path.exists():
        command = "make bench" if name in ("bench", "typings", "cores") else "make studies"
        raise FileNotFoundError(f"book/data/{name}.json is missing; `{command}` writes it")
    return json.loads(path.read_text())


class Table:
    """A small table that reads well on the page, in JupyterLab and as text.

    Parameters
    ----------
    columns : list of str, the first one heads the rows
    rows : list of lists of str or int, each as long as `columns`
    caption : str

    Examples
    --------
    >>> from bookkit.report import Table
    >>> rows = [["NUTS", "96.2 ± 0.4"], ["ADVI", "95.8 ± 0.4"]]
    >>> Table(["Method", "Accuracy (%)"], rows, "Two fits")
    Two fits
    Method  Accuracy (%)
    NUTS    96.2 ± 0.4
    ADVI    95.8 ± 0.4
    """

    def __init__(self, columns, rows, caption):
        columns, rows = list(columns), [list(row) for row in rows]
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"row {row} has {len(row)} cells; wanted: {len(columns)}, as there are columns")
        self.columns = [str(c) for c in columns]
        self.rows = [[str(cell) for cell in row] for row in rows]
        self.caption = caption

    def __repr__(self):
        lines = [self.columns, *self.rows]
        width = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)).rstrip() for line in lines]
        return "\n".join([self.caption, *text])

    def _repr_html_(self):
        head = "".join(f'<th scope="col">{html.escape(c)}</th>' for c in self.columns)
        body = "".join(
            f'<tr><th scope="row">{html.escape(row[0])}</th>' + "".join(map(self._cell, row[1:])) + "</tr>"
            for row in self.rows
        )
        return (
            f'<table class="bnn"><caption>{html.escape(self.caption)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    @staticmethod
    def _cell(text):
        prose = "" if any(c.isdigit() for c in text) and len(text) < 40 else ' class="text"'
        return f"<td{prose}>{html.escape(text)}</td>"
