"""What `answer` found, and a report of it that one looks at: one HTML file that loads nothing."""

import base64
import html
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import hmean

from hbnn.tables import _network
from hbnn.tables._compare import Comparison
from hbnn.tables._network import Fit
from hbnn.tables._predict_rival import predict_rival
from hbnn.tables._predictions import INTERVAL, Prediction, tabulate_predictions
from hbnn.tables._rivals import NAMES
from hbnn.tables._table import NUMBERS, Table, say_rows

STYLE = """body{font:17px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}
img{max-width:100%}table{border-collapse:collapse;font-size:.85em;display:block;overflow-x:auto}
td,th{padding:.2em .6em;text-align:right;border-bottom:1px solid #ccc}pre{white-space:pre-wrap;font:inherit}"""
GREEN, GREY = "#1B7837", "#777777"
DEFINED = """<em>lpd</em> is the log score of rows that a model had not seen, in nats per row: higher is better, and 0.1
more is a tenth more probability for each. <em>New rows</em> are of groups whose other rows it had seen; <em>new
groups</em> were left out whole. After ± stands one standard error. <em>Noise</em> is how far an outcome lies about its
mean, <em>ignorance</em> how far the mean is unknown, both as standard deviations (of classes, in bits)."""


@dataclass(frozen=True, repr=False)
class Answer:
    """What `answer` found: the rows, the scores, the advice, and predictions as they stand in the file."""

    rows: Table
    comparison: Comparison
    advice: str
    model: str  #: whose predictions they are
    predictions: pd.DataFrame
    fit: Fit | None  #: to all rows, where the network or the hierarchical line predicts
    seed: int

    def predict(self, asked: Table) -> Prediction:
        """Predictions of further rows by the same model; a rival is fitted again, in seconds."""
        if self.fit is not None:
            return _network.predict(self.fit, asked, seed=self.seed)
        return predict_rival(self.model, self.rows, asked, self.seed, self.comparison)

    def write_report(self, path: str | Path) -> None:
        """Write a report that one looks at, one HTML file that loads nothing: the data, who was compared, who is
        advised, calibration, six groups, and where to measure next. Needs matplotlib."""
        Path(path).write_text(_compose_page(self), encoding="utf8")


def _compose_page(answer: Answer) -> str:
    """The report as HTML."""
    rows, found = answer.rows, answer.comparison
    parts = [
        f"<h1>{_text(rows.columns['outcome'])} by {_text(rows.columns['group'])}</h1>",
        f"<pre>{_text(rows)}\nFeatures: {_text(', '.join(rows.features))}.</pre>",
        "<h2>Who predicts</h2>",
        f"<p><strong>{_text(answer.advice)}</strong></p>",
        _draw(_draw_gains, answer, "Scores of all models on rows that they had not seen, the best first"),
        found.to_frame().to_html(border=0),
        f"<p>{DEFINED}</p>",
        "<h2>The first of its predictions</h2>",
        _round(answer.predictions.head(6)).to_html(border=0, index=False, na_rep=""),
        "<h2>Can its intervals be believed?</h2>",
        *(f"<p>{_text(_say_calibration(answer, part))}</p>" for part in found.lpd),
        _draw(_draw_calibration, answer, "What was promised against what came, on rows that the model had not seen"),
        "<h2>Six groups</h2>",
        _draw(_draw_groups, answer, "Predictions along one feature, the others at the group's medians, with its rows"),
        "<h2>What to measure next</h2>",
        f"<p>{_text(_say_next(answer))}</p>",
    ]
    page = "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    return f"{page}<title>{_text(rows.columns['outcome'])}</title><style>{STYLE}</style>{''.join(parts)}</html>"


def _text(value: Any) -> str:
    return html.escape(str(value))


def _draw(draw: Any, answer: Answer, says: str) -> str:
    """A picture in the page, and what it shows in words."""
    from matplotlib.figure import Figure  # no window, no pyplot

    figure, kept = Figure(figsize=(7.2, 3.2), layout="constrained"), io.BytesIO()
    draw(figure, answer)
    figure.savefig(kept, format="png", dpi=160)
    data = base64.b64encode(kept.getvalue()).decode()
    image = f"<img alt='{_text(says)}' src='data:image/png;base64,{data}'>"
    return f"<figure>{image}<figcaption>{_text(says)}.</figcaption></figure>"


def _draw_gains(figure: Any, answer: Answer) -> None:
    found = answer.comparison
    mean = found.lpd["rows"].mean().sort_values()
    ax, best = figure.subplots(), mean.index[-1]
    for k, name in enumerate(mean.index):
        behind, error = found.gain(name, best) if name != best else (0.0, 0.0)
        color = GREEN if name == answer.model else GREY
        ax.errorbar(behind, k, xerr=2 * error, fmt="o", color=color, capsize=3)
    ax.set_yticks(range(len(mean)), [NAMES[name] for name in mean.index])
    ax.set(xlabel=f"log score less the best (nats per row)\nbars: two standard errors over {found.by}")
    ax.axvline(0, color=GREY, linewidth=0.8)


def _say_calibration(answer: Answer, over: Any) -> str:
    """How often intervals held, with an error over groups, and whether that is what was promised."""
    found, rows = answer.comparison, f"outcomes of new {over}" if over == "groups" else "outcomes of new rows"
    if answer.rows.kind not in NUMBERS:
        return f"Points on the line: {NAMES[answer.model]} is as often right as it says." if over == "rows" else ""
    said = []
    for share in (50, 90):
        inside, error = (100 * value for value in found.count_inside(share / 100, over, answer.model))
        off = inside - share
        verdict = "as promised" if abs(off) <= 2 * error else "too wide" if off > 0 else "too narrow"
        said.append(f"{inside:.0f} ± {error:.0f} % in the {share} % interval ({verdict})")
    return f"Of the {rows} lie {' and '.join(said)}. The model is {NAMES[answer.model]}."


def _draw_calibration(figure: Any, answer: Answer) -> None:
    ax, rows = figure.subplots(), answer.rows
    level = answer.comparison.levels["rows"][answer.model].to_numpy()
    if rows.kind in NUMBERS:
        ax.hist(level, bins=np.linspace(0, 1, 11), color=GREEN, alpha=0.6)
        n, sd = len(level) / 10, np.sqrt(len(level) * 0.09)
        ax.axhspan(n - 2 * sd, n + 2 * sd, color=GREY, alpha=0.2)
        ax.set(xlabel="share of the prediction below the outcome (flat is right)", ylabel="rows")
        return
    found: Any = answer.comparison.calibrate(name=answer.model)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    ax.plot(found["p"], found["share"], "o", color=GREEN)
    ax.set(xlabel="probability as said", ylabel="how often it came", xlim=(0, 1), ylim=(0, 1))


def _draw_groups(figure: Any, answer: Answer) -> None:
    """Six groups from the one with most rows down, along the feature that moves predictions most, where each has it."""
    rows, axes = answer.rows, figure.subplots(2, 3).ravel()
    sizes = rows.count()[0]
    some = np.argsort(-sizes, kind="stable")[np.unique(np.linspace(0, len(sizes) - 1, 6).astype(int))]
    bends = [j for j in range(len(rows.features)) if len(np.unique(rows.values[:, j])) > 2] or [0]
    j, frame = max(((j, _predict_along(answer, j, some)) for j in bends), key=lambda found: _reach(found[1]))
    middle = "mean" if rows.kind in NUMBERS else "probability"
    for ax, g in zip(axes, some, strict=False):
        own, line = rows.group == g, frame[frame["g"] == g]
        ax.fill_between(line["x"], line["low"], line["high"], color=GREEN, alpha=0.2, linewidth=0)
        ax.plot(line["x"], line[middle], color=GREEN)
        if rows.kind != "classes":
            ax.plot(rows.values[own, j], rows.y[own], ".", color="#222222", markersize=4)
        ax.set_title(f"{rows.groups[g]} ({say_rows(sizes[g])})", fontsize=9)
    figure.supxlabel(rows.features[j], fontsize=9)
    figure.supylabel(str(rows.columns["outcome"]), fontsize=9)


def _predict_along(answer: Answer, j: int, groups: Any) -> pd.DataFrame:
    """Predictions of some groups along one feature, from its least to its largest value there, others at medians."""
    rows, n = answer.rows, 25
    own = [rows.values[rows.group == g] for g in groups]
    values = np.repeat([np.median(each, axis=0) for each in own], n, axis=0)
    values[:, j] = np.concatenate([np.linspace(each[:, j].min(), each[:, j].max(), n) for each in own])
    group = np.repeat(groups, n)
    asked: Table = replace(rows, values=values, group=group, y=None, kind=None, ids={}, notes=())
    if rows.second_group is not None:  # where most rows of the group are
        often = [np.bincount(rows.second_group[rows.group == g]).argmax() for g in groups]
        asked = replace(asked, second_group=np.repeat(often, n))
    if rows.weight is not None:
        asked = replace(asked, weight=np.full(len(group), hmean(rows.weight)))
    frame = tabulate_predictions(asked, answer.predict(asked), interval=INTERVAL)
    return frame.assign(g=group, x=values[:, j])


def _reach(frame: pd.DataFrame) -> float:
    """How far predictions move along a feature."""
    name = "mean" if "mean" in frame else "probability"
    return float(frame.groupby("g")[name].agg(np.ptp).mean())


def _say_next(answer: Answer) -> str:
    frame, group = answer.predictions, str(answer.rows.columns["group"])
    if frame["ignorance"].isna().all():
        return f"{NAMES[answer.model]} cannot say where it is ignorant."
    mean = frame.groupby(group)["ignorance"].mean().sort_values(ascending=False)
    named = ", ".join(map(repr, mean.index[:5].astype(str)))
    unit = "" if answer.rows.kind in NUMBERS else " bits"
    first, middle = (_shorten(value) + unit for value in (mean.iloc[0], mean.median()))
    text = f"Rows of groups {named} would teach most: there ignorance is largest, {first} in the first, "
    text += f"{middle} in the middle one"
    return f"{text}." if answer.fit is not None else f"{text} (from fits to rows drawn again)."


def _shorten(value: float) -> str:
    """Two digits of a number, without an exponent."""
    return np.format_float_positional(value, 2, fractional=False, trim="-")


def _round(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers with three digits, as text."""
    floats = [name for name in frame if frame[name].dtype.kind == "f"]
    return frame.assign(**{name: frame[name].map(lambda v: "" if np.isnan(v) else f"{v:.3g}") for name in floats})
