"""The whole way from a file to ``predictions.csv``: read, compare, advise, predict."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hbnn._checks import check_seed
from hbnn._text import join
from hbnn.tables import _network, _rivals
from hbnn.tables._compare import OVER, Over, Plan, cross_validate
from hbnn.tables._model import build_network
from hbnn.tables._network import Compiled, Fit, Progress, Sampler
from hbnn.tables._predictions import check_names, check_path, write_predictions
from hbnn.tables._read import Source, read_table
from hbnn.tables._report import Answer
from hbnn.tables._rivals import LINE, MOST, NAMES, NETWORK, RIVALS, RUN, SAMPLED
from hbnn.tables._table import AskedKind, Table, say_rows


def answer(
    source: Source,
    *,
    group: str,
    features: Sequence[str],
    outcome: str,
    seed: int,
    second_group: str | None = None,
    weight: str | None = None,
    cycles: Mapping[str, float] | None = None,
    predict: Source | None = None,
    out: str | Path = "predictions.csv",
    kind: AskedKind | None = None,
    classes: Sequence[Any] | None = None,
    ids: Sequence[str] = (),
    sep: str = ",",
    decimal: str | None = None,
    encoding: str = "utf-8",
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    model: str | None = None,
    most: int = MOST,
    sampler: Sampler = None,
    cores: int | None = None,
    report: str | Path | None = None,
    progress: Progress = print,
    **options: Any,
) -> Answer:
    """From a table to predictions in a file: by the model that predicts best, in full, with its intervals.

    Rivals come first, in seconds, and the best of them writes the file. Then a hierarchical line, and then the network,
    are compared with them on the same rows, by short chains. Who takes the lead is sampled until what it predicts is
    exact enough (`Precision`), and its predictions take the place of those before. Each step says what it found;
    interrupted (Ctrl-C), what is finished stays. The advice is about rows of known groups, unless more than half of the
    rows to predict are of new ones. How good predictions are, the scores say, of rows that a model has not seen, and
    not the file. With more than 20,000 rows or 1,000 groups only rivals that take seconds are asked, unless `model`
    asks for the network.

    Parameters
    ----------
    source, group, features, outcome, second_group, weight, cycles, kind, classes, ids, sep, decimal, encoding
        As in `read_table`.
    seed : int
    predict : path or DataFrame, optional
        Rows to predict, of known groups or new ones; an outcome in it is not used. Default: `source`. Rows of a new
        group whose outcome is known belong into `source`, which makes it a known one.
    out : path
        The file of predictions, as `write_predictions` writes it.
    n_folds, rivals
        As in `compare_rivals`.
    model : str, optional
        Whose predictions are wanted, "network" or one of RIVALS; default: whoever is advised.
    most : int
        Runs of four chains, at most.
    sampler : dict, optional
        What to change in four chains of 500 draws.
    cores : int, optional
        That chains may use at once; default all. The answer is the same on any number.
    report : path, optional
        A file for `Answer.write_report`, written whenever predictions are.
    progress : callable
        Called after each step with text of a line or more.
    options
        As in `build_network`.

    Raises
    ------
    Refused, ValueError, OSError
        As `read_table`, `write_predictions`, `build_network` and `compare_rivals`, all before anything is fitted.

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
    columns: dict[str, Any] = {"group": group, "features": features, "ids": ids}
    columns |= {"second_group": second_group, "weight": weight, "cycles": cycles}
    columns |= {"sep": sep, "decimal": decimal, "encoding": encoding}
    rows = read_table(source, outcome=outcome, kind=kind, classes=classes, **columns)
    progress(str(rows))
    asked = rows if predict is None else read_table(predict, outcome=None, like=rows, **columns)
    question = _Question(rows, asked, model)
    if predict is not None:
        for line in question.describe():
            progress(line)
    files = _Files(out, report)
    files.check(asked, rows.figures)
    if question.is_large:
        rivals, n_folds = tuple(name for name in rivals if name != LINE) or ("line",), 2
        progress(
            f"More than {_rivals.MANY_ROWS:,} rows or {_rivals.MANY_GROUPS:,} groups: rivals are compared on all rows, "
            "in two folds; the network, which would take hours, is not asked. Ask it on some groups, picked at random: "
            f"frame[frame[{group!r}].isin(some)]; or wait for it with model='network'."
        )
    _rivals.check_rivals(rivals)
    if model not in (None, NETWORK, *rivals):
        raise ValueError(f"model={model!r}; wanted: {NETWORK!r}, one of rivals={tuple(rivals)}, or None")
    settings = _network.merge_sampler(RUN | dict(sampler or {}))
    build_network(rows, **options)  # which refuses what cannot be fitted to
    over: tuple[Over, ...] = OVER if question.new_groups else ("rows",)
    plan = Plan(over=over, seed=seed, n_folds=n_folds, cores=cores or os.process_cpu_count() or 1)
    return _Run(
        question=question, plan=plan, rivals=rivals, options=options, sampler=settings, most=most, files=files,
        progress=progress,
    ).finish()  # fmt: skip


@dataclass(frozen=True)
class _Question:
    """Which rows are to be predicted from which, and by whom."""

    rows: Table
    asked: Table
    model: str | None

    @property
    def new_groups(self) -> list[str]:
        """Groups to predict that were not seen."""
        return [name for name in self.asked.groups if name not in self.rows.groups]

    @property
    def is_new(self) -> Any:
        """Whether each row to predict is of such a group, (row,)."""
        return np.isin(np.array(self.asked.groups)[self.asked.group], self.new_groups)

    @property
    def aim(self) -> Over:
        """What the advice is about."""
        return "groups" if self.is_new.mean() > 0.5 else "rows"

    @property
    def is_large(self) -> bool:
        """Whether rivals alone are asked."""
        sizes = len(self.rows.group), len(self.rows.groups), len(self.rows.second_groups)
        return _rivals.is_many(*sizes) and self.model not in SAMPLED

    def describe(self) -> list[str]:
        """The rows to predict: their groups, and features that lie outside of what was seen, a line each."""
        rows, asked, said = self.rows, self.asked, [f"To predict: {self.asked}"]
        if self.new_groups:
            said.append(f"New groups: {join(map(repr, self.new_groups), 5)}, {say_rows(self.is_new.sum())}.")
        if more := sorted({*asked.second_groups} - {*rows.second_groups}):
            said.append(
                f"New groups of {rows.columns['second_group']!r}: {join(map(repr, more), 5)}. No score is of such "
                "rows, and only the network and the hierarchical line make their intervals wider for them."
            )
        low, high = rows.values.min(axis=0), rows.values.max(axis=0)
        for name, least, most, values in zip(rows.features, low, high, asked.values.T, strict=True):
            if n := int(np.sum((values < least) | (values > most))):
                outside = f"{say_rows(n)} to predict outside of that."
                said.append(f"Note: {name!r} was seen from {least:.6g} to {most:.6g}; {outside}")
        return said


@dataclass(frozen=True)
class _Files:
    """Where predictions and a report are written."""

    out: str | Path
    report: str | Path | None

    def check(self, asked: Table, figures: tuple[str, ...]) -> None:
        """Raise an error for files that cannot be written."""
        check_path(self.out)
        report = self.report
        if report is not None and (not Path(report).parent.is_dir() or find_spec("matplotlib") is None):
            raise OSError(f"report={str(report)!r}; wanted: a file in a folder that exists, and matplotlib installed")
        check_names(asked, ("model", *figures))


@dataclass
class _Run:
    """Models that are asked one after the other; what is finished is in `done`, and in the files."""

    question: _Question
    plan: Plan
    rivals: Sequence[str]
    options: dict[str, Any]  # of the network
    sampler: dict[str, Any]
    most: int
    files: _Files
    progress: Progress
    done: Answer | None = None
    reported: Answer | None = None

    def finish(self) -> Answer:
        """Ask all models, and say what was found; interrupted, what is finished stays."""
        quick = [name for name in RIVALS if name in self.rivals and name != LINE]
        slow = [name for name in self.rivals if name == LINE], [] if self.question.is_large else [NETWORK]
        try:
            for models in filter(None, (quick, *slow)):
                self.ask(models)
        except KeyboardInterrupt:
            if self.done is None:
                raise
            best = f"{NAMES[self.done.model]}, the best of what was compared"
            self.progress(f"Interrupted: {self.files.out} has the predictions of {best}.")
        assert self.done is not None  # there is a rival
        if self.files.report is not None:
            if self.done is not self.reported:  # other models were compared since
                self.done.write_report(self.files.report)
            self.progress(f"{self.files.report}: the report.")
        self.advise_others(self.done)
        return self.done

    def ask(self, models: list[str]) -> None:
        """Compare models with those before, and let the best of all predict."""
        own, rows, model = SAMPLED | {NETWORK: self.options}, self.question.rows, self.question.model
        if models[0] in own:
            self.progress(f"Next comes {NAMES[models[0]]}; to compile it may take a minute.")
        compiled = {name: _network.compile_network(rows, **own[name]) for name in models if name in own}
        found, first = cross_validate(rows, models, self.plan, compiled, self.progress), self.done is None
        found = found if self.done is None else self.done.comparison.join(found)
        advice = found.advise(self.question.aim)
        chosen = model if model is not None and model in found.lpd["rows"] else found.choose(self.question.aim)
        self.progress(f"{advice}\n{found}")
        if first:
            self.progress("(lpd: log score of rows that a model had not seen, nats per row; higher is better)")
        if self.done is not None and chosen == self.done.model:
            self.done = replace(self.done, comparison=found, advice=advice)
            return
        fit = self.sample(compiled[chosen]) if chosen in compiled else None
        answer = Answer(
            rows=rows, comparison=found, advice=advice, model=chosen, predictions=pd.DataFrame(), fit=fit,
            seed=self.plan.seed,
        )  # fmt: skip
        predicted = answer.predict(self.question.asked)
        frame = write_predictions(self.files.out, self.question.asked, predicted, extra={"model": chosen})
        self.progress(f"{self.files.out}: {say_rows(len(frame))} predicted by {NAMES[chosen]}.")
        self.done = self.reported = replace(answer, predictions=frame)
        if self.files.report is not None:
            self.done.write_report(self.files.report)

    def sample(self, network: Compiled) -> Fit:
        """Chains of the network, until its predictions are exact."""
        fit = _network.fit_network(
            self.question.rows, seed=self.plan.seed, network=network, sampler=self.sampler, judged=False,
            asked=self.question.asked, most=self.most, cores=self.plan.cores, progress=self.progress,
        )  # fmt: skip
        self.progress(_describe_precision(fit))
        return fit

    def advise_others(self, done: Answer) -> None:
        """Say who is advised for the rows that the advice is not about."""
        is_new, aim = self.question.is_new, self.question.aim
        if self.question.model is not None or not 0 < is_new.sum() < len(is_new):
            return
        other: Over = "rows" if aim == "groups" else "groups"
        n, better = int(np.sum(is_new == (other == "groups"))), done.comparison.choose(other)
        said = "it is advised, too" if better == done.model else f"{NAMES[better]} is advised: ask for them apart"
        self.progress(f"For the {say_rows(n)} of {'known' if other == 'rows' else 'new'} groups {said}.")


def _describe_precision(fit: Fit) -> str:
    """How exact the network's predictions are, and what was done where its chains disagree."""
    text = str(fit.precision)
    if fit.chain_weights is None:
        return text
    used = np.sort(fit.chain_weights)[::-1]
    n = int(np.searchsorted(np.cumsum(used), 0.95) + 1)
    return (
        f"{text} The {len(used)} chains sit in different places, so they are weighted by how well, mixed, they predict "
        f"rows that are left out ({n} of them have 95 % of the weight); their disagreement is in the intervals."
    )
