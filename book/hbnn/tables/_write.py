"""What is written: predictions, a fit, a report; beside its place and then moved, and never over a file of something
else."""

import html
import io
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike

from hbnn._refused import Refused
from hbnn.tables._compare import Comparison
from hbnn.tables._fit import NAMES, Rival
from hbnn.tables._predict import (
    FIGURES,
    INTERVAL,
    REAL_FIGURES,
    Fit,
    Prediction,
    Scales,
    name_figures,
    predict,
    tabulate_predictions,
    to_prediction,
)
from hbnn.tables._read import NUMBERS, Schema, Source, Table, say_rows

FORMAT = "hbnn.tables.Fit 1"
MADE_BY = '<meta name="generator" content="hbnn.tables">'
_parts: set[Path] = set()  # files that are being written


def is_ours(path: Path) -> bool:
    """Whether a file is one that this module wrote: predictions, a fit or a report."""
    with path.open("rb") as opened:
        head = opened.read(100_000)
    ends = (",".join(FIGURES).encode(), ",".join(REAL_FIGURES).encode())
    return head.split(b"\n", 1)[0].rstrip().endswith(ends) or MADE_BY.encode() in head or FORMAT.encode() in head


def check_path(
    path: str | Path, what: str, others: Mapping[str, str | Path] | None = None, force: bool = False
) -> Path:
    """The path; OSError where it cannot be written, is one of the others, or holds something else."""
    path = Path(path).resolve()
    named = f"{what}={str(path)!r}"
    if (path.exists() and not path.is_file()) or not path.parent.is_dir():  # a pipe would never end, a device is kept
        raise OSError(f"{named} is no file, or in a folder that does not exist; wanted: a file in one that does")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise OSError(f"{named} cannot be written; wanted: a file, in a folder, that may be")
    for name, other in (others or {}).items():
        other = Path(other)
        if path == other.resolve() or (path.exists() and other.exists() and path.samefile(other)):
            raise FileExistsError(f"{named} is {name}, too; wanted: another name")
    if path.exists() and not force and not is_ours(path):
        wanted = "another name, or force=True to write over it"
        raise FileExistsError(f"{named} is there already, and this tool did not write it; wanted: {wanted}")
    return path


def check_paths(
    out: str | Path, report: str | Path | None, save: str | Path | None, sources: Mapping[str, Source], force: bool
) -> None:
    """Raise an error for files that cannot be written, or should not be, before anything is computed."""
    others = {name: path for name, path in sources.items() if isinstance(path, str | Path)}
    for what, path in (("out", out), ("report", report), ("save", save)):
        if path is not None:
            check_path(path, what, others, force)
            others[what] = path
    if report is not None and find_spec("matplotlib") is None:
        raise OSError(f"report={str(report)!r} needs matplotlib; wanted: it installed, or no report")


def write_beside(path: str | Path, write: Callable[[Path], object], *, what: str = "out", force: bool = False) -> None:
    """Write a file beside its place, and move it there whole; where another one came in between, it is refused."""
    path = check_path(path, what, force=force)
    part = path.with_name(f".hbnn-{os.getpid()}-{time.time_ns()}.part")  # the name may be as long as names may be
    _parts.add(part)
    try:
        write(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
        _parts.discard(part)


def drop_parts() -> None:
    """Remove files that are half written."""
    for part in list(_parts):
        part.unlink(missing_ok=True)


def write_predictions(
    path: str | Path,
    rows: Table,
    prediction: Prediction | ArrayLike,
    *,
    extra: Mapping[str, Any] | None = None,
    force: bool = False,
) -> pd.DataFrame:
    """Write what `tabulate_predictions` returns into a CSV file, all or nothing; earlier predictions are replaced.

    Figures are written with six digits. With `force` a file of something else is written over.

    Raises
    ------
    OSError
        Without a folder, and where a file of something else is there: your own table is never written over.

    Examples
    --------
    Goes on from `read_table`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = tables.write_predictions(Path(folder, "predictions.csv"), rows, np.full((2, 60), 0.4))
    ...     Path(folder, "predictions.csv").read_text().splitlines()[1]
    '0,a,yes,0.4,0.4,0.4,0.970951,0.0'
    """
    prediction = to_prediction(prediction, rows)
    frame = tabulate_predictions(rows, prediction, extra=extra)
    figures = [name for name in name_figures(prediction.kind, prediction.classes) if frame[name].dtype.kind == "f"]
    short = frame.assign(**{name: frame[name].map("{:.6g}".format).astype(float) for name in figures})
    write_beside(path, lambda part: short.to_csv(part, index=False), force=force)
    return frame


def save_fit(path: str | Path, fit: Fit, *, force: bool = False) -> None:
    """Write a fit into a netCDF file, all or nothing: `load_fit` reads it, tomorrow or on another machine.

    Nothing is pickled: what predictions need beside the draws is JSON in it. A fit that is there is replaced.

    Parameters
    ----------
    path : path
    fit : Fit
    force : bool
        Whether to write over a file of something else.

    Raises
    ------
    OSError
        For no such folder, and where a file of something else is there.

    Examples
    --------
    Goes on from `fit_network`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tables.save_fit(Path(folder, "wheat.nc"), fit)
    ...     kept = tables.load_fit(Path(folder, "wheat.nc"))
    >>> bool((tables.predict(kept, rows).draws == tables.predict(fit, rows).draws).all())
    True
    """
    scales, texts = fit.scales, {part.name: getattr(fit, part.name) for part in fields(Schema)}
    data = xr.Dataset({name: (f"{name}_axis", getattr(scales, name)) for name in ("center", "width")})
    for name, values in fit.draws.items():  # no array shares another axis than that of draws, as lengths differ
        data[name] = (["draw", *(f"{name}_axis_{k}" for k in range(1, values.ndim))], values)
    told = json.dumps(texts | {"level": scales.level, "spread": scales.spread})
    data = data.assign_attrs(format=FORMAT, fit=told)
    write_beside(path, lambda part: data.to_netcdf(part, engine="scipy"), what="save", force=force)


def load_fit(path: str | Path) -> Fit:
    """A fit as `save_fit` wrote it: to predict rows with, read with ``read_table(…, like=fit)``, or a new group.

    Raises
    ------
    Refused, FileNotFoundError
        For a file of something else, or none.

    Examples
    --------
    Goes on from `save_fit`.

    >>> kept.groups, kept.kind
    (('a', 'b', 'c'), 'real')
    """
    try:
        with xr.open_dataset(path, engine="scipy") as opened:
            data = opened.load()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is not there; wanted: what save_fit wrote") from None
    except (TypeError, ValueError) as error:
        raise Refused(f"{path} is no netCDF file ({error}); wanted: what save_fit wrote") from None
    if data.attrs.get("format") != FORMAT:
        raise Refused(f"{path} has format {data.attrs.get('format')!r}; wanted: {FORMAT!r}, as save_fit writes it")
    arrays = {str(name): values.values for name, values in data.items()}
    told: dict[str, Any] = json.loads(data.attrs["fit"])
    texts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items()}
    texts["levels"] = {name: tuple(words) for name, words in told["levels"].items()}
    texts["ordered"] = "start" in arrays
    scales = Scales(arrays.pop("center"), arrays.pop("width"), texts.pop("level"), texts.pop("spread"))
    return Fit(draws=arrays, scales=scales, **texts)


# --- the answer, and its report


@dataclass(frozen=True, repr=False)
class Answer:
    """What `answer` found: the rows, the scores, the advice, and predictions as they stand in the file."""

    rows: Table
    comparison: Comparison
    advice: str
    model: str  #: whose predictions they are
    predictions: pd.DataFrame
    fitted: Fit | Rival  #: to all rows
    seed: int
    interrupted: bool = False  #: whether more was meant to be compared
    notes: tuple[str, ...] = ()  #: on the rows that were asked for, a sentence each

    @property
    def fit(self) -> Fit | None:
        """Where the network or the hierarchical line predicts: for `predict_new_group` and `save_fit`."""
        return self.fitted if isinstance(self.fitted, Fit) else None

    def predict(self, asked: Table) -> Prediction:
        """Predictions of further rows by the same model."""
        fit = self.fitted
        return predict(fit, asked, seed=self.seed) if isinstance(fit, Fit) else fit.predict(asked)

    def write_report(self, path: str | Path, *, force: bool = False) -> None:
        """Write a report that one looks at, one HTML file that loads nothing: who predicts and why, calibration, six
        groups, and the data. Needs matplotlib."""
        page = _compose_page(self)
        write_beside(path, lambda part: part.write_text(page, encoding="utf8"), what="report", force=force)


STYLE = """:root{color-scheme:light dark;--own:#1B7837;--rest:#777}
body{font:17px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem}
@media(prefers-color-scheme:dark){:root{--own:#6cc389;--rest:#999}}
figure{margin:1rem 0}svg{width:100%;max-width:32rem;height:auto}h1,h2{line-height:1.2}
table{border-collapse:collapse;font-size:.85em;display:block;overflow-x:auto}
td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #8886}"""
OWN, REST, INK = "#1b7837", "#777777", "#010203"  # in a drawing; the page has other colours in the dark
DEFINED = """<em>lpd</em> is the log score of rows that a model had not seen, in nats per row: higher is better, and 0.1
more is a tenth more probability for each. <em>New rows</em> are of groups whose other rows it had seen; <em>new
groups</em> were left out whole. After ± stands one standard error. <em>Noise</em> is how far an outcome lies about its
mean, <em>ignorance</em> how far the mean is unknown, both as standard deviations (of classes, in bits)."""


def _compose_page(answer: Answer) -> str:
    """The report as HTML."""
    rows, found = answer.rows, answer.comparison
    about = re.sub(r" \(kind='\w+'\)|, taken for kind='\w+'|; pass kind=[^.]*", "", str(rows))
    order = [answer.model, *(other for other in found.to_frame().index if other != answer.model)]
    first = answer.predictions.head(6)
    figures = {column: "{:.4g}".format for column in first if first[column].dtype.kind == "f"}
    told = [found.say_promise(over, answer.model) for over in found.lpd]
    title = html.escape(str(rows.columns["outcome"]))
    parts = [
        f"<h1>{title} by {html.escape(str(rows.columns['group']))}</h1>",
        f"<p><strong>{html.escape(re.sub(r" \(model='[^']*'\)", '', answer.advice))}</strong></p>",
        "<h2>Who predicts</h2>",
        _draw(_draw_gains, answer, 0.8 + 0.42 * len(order), "Scores on rows that no model had seen, less the best"),
        found.to_frame().loc[order].rename(NAMES).to_html(border=0),
        f"<p>{DEFINED}</p>",
        "<h2>The first of its predictions</h2>",
        first.to_html(border=0, index=False, na_rep="", formatters=figures),
        "<h2>Can it be believed?</h2>",
        *(f"<p>{html.escape(line)}</p>" for line in [*told, *answer.notes]),
        _draw(_draw_calibration, answer, 2.6, "What was promised against what came, on rows that it had not seen"),
        "<h2>Six groups</h2>",
        _draw(
            _draw_groups,
            answer,
            4.6,
            "Predictions for six groups, other features at the group's median, with 90 % intervals, and their rows",
        ),
        "<h2>The data</h2>",
        *(f"<p>{html.escape(line)}</p>" for line in about.split("\n")),
        f"<p>Features: {html.escape(', '.join(rows.features))}.</p>",
    ]
    head = f"<!doctype html><html lang='en'><meta charset='utf-8'>{MADE_BY}"
    head += "<meta name='viewport' content='width=device-width'>"
    return f"{head}<title>{title}</title><style>{STYLE}</style>{''.join(parts)}</html>"


def _draw(draw: Any, answer: Answer, height: float, says: str) -> str:
    """A drawing in the page, in the page's own colours, and what it shows in words."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure  # no window, no pyplot

    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    look: dict[Any, Any] = dict.fromkeys(inked, INK) | {"axes.spines.top": False, "axes.spines.right": False}
    with rc_context(look | {"svg.fonttype": "none", "svg.hashsalt": says, "font.size": 11, "axes.facecolor": "none"}):
        figure, kept = Figure(figsize=(4.8, height), layout="constrained"), io.StringIO()
        draw(figure, answer)
        figure.savefig(kept, format="svg", transparent=True, metadata={"Date": None})
    drawn = kept.getvalue()
    drawn = drawn[drawn.index("<svg") :].replace("<svg", f"<svg role='img' aria-label='{says}'", 1)
    for old, new in ((OWN, "var(--own)"), (REST, "var(--rest)"), (INK, "currentColor")):
        drawn = drawn.replace(old, new)
    return f"<figure>{drawn}<figcaption>{says}.</figcaption></figure>"


def _draw_gains(figure: Any, answer: Answer) -> None:
    found = answer.comparison
    mean = found.lpd["rows"].mean().sort_values()
    best = mean.index[-1]
    order = [*(name for name in mean.index if name != answer.model), answer.model]  # the one that predicts on top
    ax = figure.subplots()
    for k, name in enumerate(order):
        behind, error = found.gain(name, best) if name != best else (0.0, 0.0)
        ax.errorbar(behind, k, xerr=2 * error, fmt="o", color=OWN if name == answer.model else REST, capsize=3)
    ax.set_yticks(range(len(order)), [NAMES[name].replace(" with ", "\nwith ") for name in order])
    ax.set(xlabel="nats per row\n(bars: two standard errors)", ylim=(-0.6, len(order) - 0.4))
    ax.axvline(0, color=REST, linewidth=0.8)


def _draw_calibration(figure: Any, answer: Answer) -> None:
    ax, rows = figure.subplots(), answer.rows
    level = answer.comparison.levels["rows"][answer.model].to_numpy()
    if rows.kind in NUMBERS:
        ax.hist(level, bins=np.linspace(0, 1, 11), color=OWN, alpha=0.6)
        n, sd = len(level) / 10, np.sqrt(len(level) * 0.09)
        ax.axhspan(n - 2 * sd, n + 2 * sd, color=REST, alpha=0.2)
        ax.set(xlabel="share of the prediction below\nthe outcome (flat is right)", ylabel="rows")
        return
    found: Any = answer.comparison.calibrate(name=answer.model)
    ax.plot([0, 1], [0, 1], color=REST, linewidth=0.8)
    ax.plot(found["p"], found["share"], "o", color=OWN)
    ax.set(xlabel="probability as said", ylabel="how often it came", xlim=(0, 1), ylim=(0, 1))


def _draw_groups(figure: Any, answer: Answer) -> None:
    """Six groups from the one with most rows down, along the feature that moves predictions most where groups have it;
    side by side where no feature varies within them."""
    rows, sizes, is_drawn = answer.rows, answer.rows.count(), answer.rows.kind != "classes"
    some = np.argsort(-sizes, kind="stable")[np.unique(np.linspace(0, len(sizes) - 1, 6).astype(int))]
    spans = np.array([np.ptp(rows.values[rows.group == g], axis=0) > 0 for g in some])
    along = [j for j in np.flatnonzero(spans.mean(axis=0) >= 0.5).tolist() if len(np.unique(rows.values[:, j])) > 2]
    middle, outcome = "mean" if rows.kind in NUMBERS else "probability", str(rows.columns["outcome"])
    if not along:
        line, ax = _predict_along(answer, None, some, 1)[0], figure.subplots()
        for k, g in enumerate(some):
            own = rows.y[rows.group == g]
            if is_drawn:
                ax.plot(np.linspace(k - 0.2, k + 0.2, len(own)), own, ".", color=INK, markersize=4)
        error = [line[middle] - line["low"], line["high"] - line[middle]]
        ax.errorbar(range(len(some)), line[middle], error, fmt="o", color=OWN, capsize=4)
        ax.set_xticks(range(len(some)), [rows.groups[g] for g in some], rotation=30)
        ax.set(xlabel=str(rows.columns["group"]), ylabel=outcome)
        return
    moved = [np.ptp(_predict_along(answer, j, some, 5)[0][middle].to_numpy().reshape(-1, 5), axis=1) for j in along]
    j = along[int(np.argmax(np.mean(moved, axis=1)))]
    frame, x = _predict_along(answer, j, some, 25)
    for k, (g, ax) in enumerate(zip(some, figure.subplots(3, 2, sharey=True).flat, strict=False)):
        own, line, at = rows.group == g, frame[25 * k : 25 * k + 25], x[25 * k : 25 * k + 25]
        ax.fill_between(at, line["low"], line["high"], color=OWN, alpha=0.25, linewidth=0)
        ax.plot(at, line[middle], color=OWN)
        if is_drawn:
            ax.plot(rows.values[own, j], rows.y[own], ".", color=INK, markersize=4)
        ax.set_title(f"{rows.groups[g]} ({say_rows(sizes[g])})", fontsize=10)
    for ax in figure.axes[len(some) :]:
        ax.set_visible(False)
    figure.supxlabel(rows.features[j], fontsize=11)
    figure.supylabel(outcome, fontsize=11)


def _predict_along(answer: Answer, j: int | None, groups: Any, n: int) -> tuple[pd.DataFrame, Any]:
    """Predictions along a feature, n in each of some groups from its least to its largest value there, others at the
    group's medians (none: the medians alone), and the feature's values."""
    rows, values = answer.rows, []
    for g in groups:
        own = rows.values[rows.group == g]
        values.append(np.repeat(np.median(own, axis=0)[None], n, axis=0))
        if j is not None:
            values[-1][:, j] = np.linspace(own[:, j].min(), own[:, j].max(), n)
    asked: Table = replace(rows, values=np.concatenate(values), group=np.repeat(groups, n), y=None, kind=None, ids={})
    if rows.second_group is not None:  # where most rows of the group are
        often = [np.bincount(rows.second_group[rows.group == g]).argmax() for g in groups]
        asked = replace(asked, second_group=np.repeat(often, n))
    frame = tabulate_predictions(asked, answer.predict(asked), interval=INTERVAL)
    return frame, asked.values[:, j or 0]
