"""From a table to predictions in a file: read, compare, fit, predict, write."""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hbnn._checks import check_seed
from hbnn._refused import Refused
from hbnn._text import join
from hbnn._types import Floats
from hbnn.tables._compare import OVER, Comparison, Watch, cross_validate, guess_run
from hbnn.tables._fit import (
    LINE,
    MANY_GROUPS,
    MANY_ROWS,
    MOST,
    NAMES,
    NETWORK,
    RIVALS,
    SAMPLED,
    Progress,
    Rival,
    check_network,
    check_rivals,
    compile_network,
    fit_network,
    is_many,
)
from hbnn.tables._predict import Fit, check_names, name_figures
from hbnn.tables._read import NUMBERS, Over, Source, Table, check_rows, part_rows, read_table, say_rows, to_frame
from hbnn.tables._write import Answer, check_paths, save_fit, write_predictions


def answer(
    source: Source,
    *,
    outcome: str,
    seed: int,
    predict: Source | None = None,
    out: str | Path = "predictions.csv",
    report: str | Path | None = None,
    save: str | Path | None = None,
    force: bool = False,
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    model: str | None = None,
    minutes: float | None = None,
    progress: Progress = print,
    **columns: Any,
) -> Answer:
    """From a table to predictions in a file: by the model that predicts best, in full, with its intervals.

    Rivals come first, in seconds, and the best of them writes the file. Then a hierarchical line, and then the network,
    are compared with them on the same rows, by short chains. Who takes the lead is sampled until what it predicts is
    exact enough, and its predictions take the place of those before. The advice is about rows of known groups, unless
    more than half of the rows to predict are of new ones. With more than 20,000 rows or 1,000 groups only rivals that
    take seconds are asked, unless `model` asks for the network. After Ctrl-C, or `minutes`, what is finished stays.

    Parameters
    ----------
    source, outcome, columns
        As in `read_table`: `group` and `features`, and what else it is told; but without `ids` all columns of the rows
        to predict are carried along, unless they are called as one that is added.
    seed : int
    predict : path or DataFrame, optional
        Rows to predict, of known groups or new ones; an outcome in it is not used. Default: those rows of `source`
        whose outcome is missing, or all where none is. Rows of a new group whose outcome is known belong into `source`,
        which makes it a known one.
    out, report, save : path
        Files of predictions, of a report as `Answer.write_report` has it, and of the fit, as `save_fit` has it. They
        are checked before anything is computed.
    force : bool
        Whether they may be written over files that this function did not write; never over `source` or `predict`.
    n_folds, rivals
        As in `compare_rivals`.
    model : str, optional
        Whose predictions are wanted, "network" or one of RIVALS; default: whoever is advised. With one that takes
        seconds, those that take longer are not asked.
    minutes : float, optional
        After which it ends, with what is finished.
    progress : callable
        Called with text of a line or more, at least every ten seconds.

    Raises
    ------
    Refused, ValueError, OSError
        As `read_table`, `write_predictions` and `compare_rivals`, all before anything is fitted.
    KeyboardInterrupt
        Where nothing was finished.

    Examples
    --------
    A whole run takes a minute or more; the chapter on your own file shows one. What cannot be used is refused before:

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> tables.answer(frame[["field", "rain"]], group="field", features=["rian"], outcome="rain", seed=1)
    Traceback (most recent call last):
        ...
    hbnn._refused.Refused: the table has no column 'rian'; there are 'field' and 'rain'. Did you mean 'rain'?
    """
    check_seed(seed)
    check_rivals(rivals)
    check_paths(out, report, save, {"the table": source, "predict": source if predict is None else predict}, force)
    if model not in (None, NETWORK, *rivals):
        raise ValueError(f"model={model!r}; wanted: {NETWORK!r}, one of rivals={tuple(rivals)}, or None")
    with progress if isinstance(progress, Watch) else Watch(progress, minutes) as watch:
        frames = [to_frame(source, columns.get("sep", ","), columns.get("encoding", "utf-8"))]
        if predict is None:
            frames = [part for part in part_rows(frames[0], outcome) if part is not None]
        else:
            frames.append(to_frame(predict, columns.get("sep", ","), columns.get("encoding", "utf-8")))
        rows = read_table(frames[0], outcome=outcome, **columns)
        watch(str(rows))
        later = {name: value for name, value in columns.items() if name not in ("kind", "classes")}
        asked = rows if len(frames) == 1 else read_table(frames[1], outcome=None, like=rows, **later)
        added = ("model", *name_figures(rows.kind, rows.classes))
        if "ids" not in columns:
            there, taken = list(frames[-1].columns), {*added, *asked.ids, *asked.columns.values()}
            taken |= {outcome} if predict is None else set()
            carried = [name for name in there if there.count(name) == 1 and name not in taken]
            asked = replace(asked, ids=asked.ids | {name: frames[-1][name].to_numpy() for name in carried})
        check_names(asked, added)
        check_rows(rows)
        run = _Run(rows, asked, model, seed, n_folds, {"out": out, "report": report, "save": save}, force, watch)
        if len(frames) > 1:
            run.describe(misses=predict is None)
        return run.finish(rivals)


@dataclass
class _Run:
    """Models that are asked one after the other; what is finished is in `done`, and in the files."""

    rows: Table
    asked: Table
    model: str | None
    seed: int
    n_folds: int
    paths: dict[str, str | Path | None]
    force: bool
    watch: Watch
    done: Answer | None = None
    written: tuple[str, ...] = ()  # beside the predictions
    advice: str = ""  # that was said last
    notes: list[str] = field(default_factory=list)  # on rows to predict
    is_latest: bool = False  # whether the last model that was asked predicts

    def __post_init__(self) -> None:
        groups, known = np.array(self.asked.groups), set(self.rows.groups)
        self.new_groups = [name for name in self.asked.groups if name not in known]
        self.is_new = np.isin(groups[self.asked.group], self.new_groups)
        self.aim: Over = "groups" if self.is_new.mean() > 0.5 else "rows"
        self.cores = os.process_cpu_count() or 1

    def describe(self, misses: bool) -> None:
        """Say what is to be predicted, whether it misses its outcome, and what lies outside of what was seen."""
        rows, asked, say = self.rows, self.asked, self.watch
        say(f"To predict: {asked}")
        if self.new_groups:
            say(f"New groups: {join(map(repr, self.new_groups), 5)}, {say_rows(self.is_new.sum())}.")
        if more := sorted({*asked.second_groups} - {*rows.second_groups}):
            say(
                f"New groups of {rows.columns['second_group']!r}: {join(map(repr, more), 5)}. No score is of such "
                "rows, and only the network and the hierarchical line make their intervals wider for them."
            )
        for name, seen, values in zip(rows.features, rows.values.T, asked.values.T, strict=True):
            if n := np.sum((values < seen.min()) | (values > seen.max())):
                outside = f"{say_rows(n)} to predict outside of that."
                self.notes.append(f"{name!r} was seen from {seen.min():.6g} to {seen.max():.6g}; {outside}")
            if n := self.count_beyond(seen, values):
                self.notes.append(
                    f"{name!r} is beyond what their own group has in {say_rows(n)} to predict. Scores are of rows "
                    "between others, and here intervals may be far too narrow. To see how far, leave such rows out of "
                    "the table, and predict those."
                )
        if misses:
            what = "Scores are of rows with an outcome. If others miss it for a reason, they may be unlike these."
            self.notes.append(what)
        for note in self.notes:
            say(f"Note: {note}")

    def count_beyond(self, seen: Floats, values: Floats) -> int:
        """Rows to predict with a feature outside of the range of their own group, if these are most of those of known
        groups, and more than chance would have it: of one more row of a group of n, 2 in n + 1."""
        by_group = pd.Series(seen).groupby(np.array(self.rows.groups)[self.rows.group])
        own = by_group.agg(["min", "max", "size"]).reindex(np.array(self.asked.groups)[self.asked.group])
        n = np.sum((values < own["min"]) | (values > own["max"]))
        least = max((~self.is_new).sum() / 2, 1.5 * np.sum(2 / (own["size"] + 1)))
        return int(n) if n > least else 0

    def plan(self, rivals: Sequence[str]) -> list[list[str]]:
        """Models to ask, those together that are asked at once, the quick ones first."""
        quick = [name for name in RIVALS if name in rivals and name not in (LINE, "trees")]
        is_slow = self.model is None or self.model in SAMPLED
        trees = [["trees"]] if "trees" in rivals and (is_slow or self.model == "trees") else []
        slow = [[name] for name in (LINE, NETWORK) if name in (*rivals, NETWORK) and is_slow]
        slow = slow[:1] if self.model == LINE else slow
        if is_many(len(self.rows.group), self.rows) and self.model not in SAMPLED:
            slow, self.n_folds = [], 2
            self.watch(
                f"More than {MANY_ROWS:,} rows or {MANY_GROUPS:,} groups: rivals are compared on all rows, in two "
                "folds; the network, which would take hours, is not asked. Ask it on some groups, picked at random; "
                "or wait for it with model='network'."
            )
        try:
            check_network(self.rows)
        except Refused as error:
            if self.model in SAMPLED:
                raise
            slow = []
            self.watch(f"The network is not asked: {error}.")
        return [quick] * bool(quick) + trees + slow or [["line"]]

    def finish(self, rivals: Sequence[str]) -> Answer:
        """Ask all models, and say what was found; interrupted, what is finished stays."""
        try:
            for models in (plan := self.plan(rivals)):
                self.ask(models, is_last=models is plan[-1])
                if self.watch.is_stopping:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            why = self.watch.why or "Interrupted"
            if self.done is None:
                raise KeyboardInterrupt(f"{why}: nothing was finished, and nothing is written.") from None
            also = f"; {join(self.written)} of it, too" if self.written else ""
            best = f"{self.paths['out']} has the predictions of {NAMES[self.done.model]}, advised so far"
            self.watch(f"{why}: {best}{also}.")
            self.done = replace(self.done, interrupted=True)
        self.watch.doing = ""
        assert self.done is not None  # no plan is without a model
        if not self.is_latest and not self.done.interrupted:
            self.watch(f"{self.paths['out']} has the predictions of {NAMES[self.done.model]}.")
        self.advise_others(self.done)
        return self.done

    def ask(self, models: list[str], is_last: bool) -> None:
        """Compare models with those before, and let the best of all predict."""
        rows, watch, compiled, self.is_latest, is_first = self.rows, self.watch, {}, False, self.done is None
        watch.step(f"compiling {NAMES[models[0]]}" if models[0] in SAMPLED else "comparing rivals")
        if models[0] in SAMPLED:
            watch(f"Next comes {NAMES[models[0]]}; to compile it may take a minute.")
            compiled = {models[0]: compile_network(rows, **SAMPLED[models[0]])}
        over: tuple[Over, ...] = OVER if self.new_groups else ("rows",)
        start = time.monotonic()
        found = cross_validate(rows, models, over=over, seed=self.seed, n_folds=self.n_folds, compiled=compiled,
                               cores=self.cores, watch=watch)  # fmt: skip
        each = (time.monotonic() - start) / (self.n_folds * len(over))
        found = found if self.done is None else self.done.comparison.join(found)
        advice = found.advise(self.aim)
        chosen = self.model if self.model is not None and self.model in found.lpd["rows"] else found.choose(self.aim)
        if is_last or advice != self.advice:
            watch(f"{advice}\n{found}")
        else:
            watch(f"{NAMES[models[0]]}: lpd {found.lpd['rows'][models[0]].mean():.3f} of new rows; the advice stays.")
        self.advice = advice
        if self.done is None:
            watch("(lpd: log score of rows that a model had not seen, nats per row; higher is better)")
        elif chosen == self.done.model:
            advice += self.doubt(chosen, self.done.fitted, found)
            self.done = replace(self.done, comparison=found, advice=advice)
        if self.done is None or chosen != self.done.model:
            watch.step(
                f"fitting {NAMES[chosen]} to all rows", guess_run(each, self.cores) if chosen in compiled else None
            )
            fitted = self.sample(compiled[chosen]) if chosen in compiled else Rival(chosen, rows, self.seed)
            if doubt := self.doubt(chosen, fitted, found):
                watch(doubt.strip())
            notes = (*self.notes, *self.note_new(fitted))
            if rows.kind in NUMBERS and (uneven := found.find_uneven(rows, self.aim, chosen)):
                notes = (*notes, uneven)
                watch(f"Note: {uneven}")
            self.write(Answer(rows, found, advice + doubt, chosen, found.lpd["rows"], fitted, self.seed, notes=notes))
            if is_first and not is_last:
                watch("Slower models follow; Ctrl-C ends it, and keeps this.")
        done = self.done
        if self.paths["report"] is not None and done is not None:
            self.put("report", lambda path: done.write_report(path, force=self.force))
            if str(self.paths["report"]) not in self.written:
                self.written = (*self.written, str(self.paths["report"]))
                watch(f"{self.paths['report']}: the report.")

    def sample(self, network: Any) -> Fit:
        """Chains of the network, until its predictions are exact; interrupted, those that are whole."""
        how: dict[str, Any] = {"asked": self.asked, "most": MOST, "cores": self.cores, "progress": self.watch}
        fit = fit_network(self.rows, seed=self.seed, network=network, **how)
        self.watch(str(fit.precision))
        return fit

    def doubt(self, model: str, fitted: Fit | Rival, found: Comparison) -> str:
        """A sentence for the advice where chains disagree on what is predicted, and the rival to use instead."""
        if not isinstance(fitted, Fit) or fitted.precision is None or fitted.precision.usable:
            return ""
        text = f" The chains of {NAMES[model]} do not agree, so that at the worst row its figures are known to within "
        text += f"{fitted.precision.share:.0%} of an outcome's sd only."
        scores = found.lpd[self.aim].mean().drop(list(SAMPLED), errors="ignore")
        best = scores.idxmax() if len(scores) else ""
        return text + f" Where that is not enough, use {NAMES[best]} (model={best!r})." if best else text

    def note_new(self, fitted: Fit | Rival) -> list[str]:
        """What intervals of new groups leave out where a rival has no spread of groups."""
        if isinstance(fitted, Fit) or not self.new_groups or self.rows.kind in ("real", "share"):
            return []
        note = f"For {say_rows(self.is_new.sum())} of new groups ignorance, and intervals of a mean or a probability, "
        note += (
            "are those of an average group: only the hierarchical line and the network say how far groups lie from it."
        )
        self.watch(f"Note: {note}")
        return [note]

    def write(self, found: Answer) -> None:
        """Predictions of another model than before, and its fit."""
        watch, extra = self.watch, {"model": found.model}
        watch.is_writing = self.done is None
        predicted = found.predict(self.asked)
        frame = self.put(
            "out", lambda path: write_predictions(path, self.asked, predicted, extra=extra, force=self.force)
        )
        self.done, self.written, self.is_latest = replace(found, predictions=frame), (), True
        watch(f"{self.paths['out']}: {say_rows(len(frame))} predicted by {NAMES[found.model]}.")
        if promise := found.comparison.say_promise(self.aim, found.model):
            watch(promise)
        if frame["ignorance"].isna().all():
            watch("Note: 'ignorance' and what hangs on it are empty, as this model is one fit and has no posterior.")
        if self.rows.kind == "real" and self.rows.y.min() >= 0:
            top = self.rows.y.max()
            below, above = (frame["low"] < 0).mean(), (frame["high"] > top).mean()
            if below > 0.01:
                watch(f"Note: {below:.0%} of the lower ends are below 0, where no outcome was.")
            if above > 0.01 and top in (1, 100):
                watch(f"Note: {above:.0%} of the upper ends are above {top:g}; kind='share' keeps them inside.")
        if self.paths["save"] is not None and (fit := found.fit) is not None:
            self.put("save", lambda path: save_fit(path, fit, force=self.force))
            watch(f"{self.paths['save']}: the fit, for load_fit.")
            self.written = (str(self.paths["save"]),)
        watch.is_writing = False

    def put(self, what: str, write: Callable[[Path], Any]) -> Any:
        """Write a file; where that cannot be done any more, into a folder for what is temporary."""
        path = Path(str(self.paths[what]))
        try:
            return write(path)
        except OSError as error:
            self.paths[what] = Path(tempfile.mkdtemp(prefix="hbnn-")) / path.name
            self.watch(f"{error}. It goes into {self.paths[what]} instead.")
            return write(Path(str(self.paths[what])))

    def advise_others(self, done: Answer) -> None:
        """Say who is advised for the rows that the advice is not about, and why there is no fit."""
        if self.paths["save"] is not None and done.fit is None:
            again = f"{NAMES[done.model]} is fitted again in seconds; the fit of the network: model='network'"
            self.watch(f"{self.paths['save']} is not written: {again}.")
        if self.model is not None or not 0 < self.is_new.sum() < len(self.is_new):
            return
        other: Over = "rows" if self.aim == "groups" else "groups"
        n, better = int(np.sum(self.is_new == (other == "groups"))), done.comparison.choose(other)
        said = "it is advised, too" if better == done.model else f"{NAMES[better]} is advised: ask for them apart"
        self.watch(f"For the {say_rows(n)} of {'known' if other == 'rows' else 'new'} groups {said}.")
