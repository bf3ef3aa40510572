"""Is the network worth it? Cross-validation over rows and over whole groups, and advice in a sentence.

A model is left in the cold for rows, and for groups, that it has not seen; differences are taken row by row, and their
errors over groups.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from hbnn import metrics
from hbnn._text import plus_minus
from hbnn._types import Array, Floats
from hbnn.tables._fit import (
    LINE,
    MOST,
    NAMES,
    NETWORK,
    RIVALS,
    SAMPLED,
    Compiled,
    Progress,
    Sampler,
    check_rivals,
    compile_network,
    fit_rival,
    predict_fold,
    say_time,
)
from hbnn.tables._predict import Prediction, find_below, score_rows
from hbnn.tables._read import NUMBERS, Kind, Over, Places, Table, make_folds

OVER: tuple[Over, ...] = ("rows", "groups")
CLEARLY, WORSE = 2.8, 2.0  # standard errors: by which the network must lead, and a simple rival must not be behind
UNEVEN, UNEVEN_SHARE = 4.0, 0.05  # standard errors, and a difference of shares, that are said
LEAST_PART = 20  # rows whose share inside of intervals is compared
CLOSE = 0.1  # nats per row: a simple rival that is further behind is not taken, however unsure that is
FEW_GROUPS = 8  # below, errors are taken over rows
LONGER = 5  # times as long as a fold, roughly, a run of four chains takes, on one core or two
QUIET = 8.0  # seconds without a line


class Watch:
    """What a long call says, never silent for long, and what ends it: Ctrl-C, or a time that is over.

    The first interrupt ends what is being computed, also where a compiler swallows it, or what was found is being
    written: then at the next step. A second one calls `at_once`; without it, it is Python's own.
    """

    def __init__(self, progress: Progress, minutes: float | None = None, at_once: Any = None) -> None:
        if minutes is not None and not minutes > 0:
            raise ValueError(f"minutes={minutes!r}; wanted: a number above 0, or None")
        self.progress, self.minutes, self.at_once, self.lock = progress, minutes, at_once, threading.RLock()
        self.born = self.said = self.begun = time.monotonic()
        self.doing, self.why = "", ""
        self.left: float | None = None
        self.is_stopping, self.is_writing, self.ended = False, False, threading.Event()

    def __enter__(self) -> Self:
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self.interrupt)
            self.hook, sys.unraisablehook = sys.unraisablehook, self.forget
        threading.Thread(target=self.tick, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        if self.main:
            signal.signal(signal.SIGINT, self.before)
            sys.unraisablehook = self.hook

    def forget(self, lost: Any) -> None:
        """Say nothing of an interrupt that was swallowed: it comes again at the next step."""
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            self.hook(lost)

    def __call__(self, text: str) -> None:
        """Say a line or more."""
        with self.lock:
            self.said = time.monotonic()
            self.progress(text)

    def step(self, doing: str, left: float | None = None) -> None:
        """Go on to something that takes so many seconds, about, unless it was interrupted."""
        self.doing, self.begun, self.left = doing, time.monotonic(), left
        if self.is_stopping:
            raise KeyboardInterrupt

    def tick(self) -> None:
        """Say what is being done whenever nothing was said for long, and interrupt, as a person would, in time."""
        while not self.ended.wait(1.0):
            now = time.monotonic()
            if self.main and self.minutes is not None and now - self.born > 60 * self.minutes and not self.is_stopping:
                self.why = f"The {self.minutes:g} minutes are over"
                os.kill(os.getpid(), signal.SIGINT)
            if self.doing and now - self.said > QUIET:
                since = now - self.begun
                left = f"{say_time(self.left - since)} to go" if self.left and self.left > since else f"{since:.0f} s"
                with suppress(Exception):  # a notebook's output that is closed
                    self(f"  … {self.doing}: {left}")

    def interrupt(self, *_: object) -> None:
        """What a SIGINT does."""
        waits = self.is_writing and not self.is_stopping
        if self.is_stopping and self.at_once is not None:
            self.at_once()
        if not self.is_stopping:
            self.is_stopping, self.why = True, self.why or "Interrupted"
            with suppress(RuntimeError):  # in the middle of another line
                self(f"{self.why}: what is finished stays; Ctrl-C ends at once.")
        if not waits:
            raise KeyboardInterrupt


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each model scores on rows, and on groups, that it has not seen: dicts of "rows" and "groups".

    Examples
    --------
    Goes on from `compare_rivals`.

    >>> gain, error = comparison.gain("network", "line")
    >>> comparison.choose(), comparison.advise()[:38]
    ('line', 'Use a line with a level for each group')
    """

    lpd: dict[Over, pd.DataFrame]  #: (row, model), log predictive densities, nats
    loss: dict[Over, pd.DataFrame]  #: (row, model), 1 for a class that was missed, or the squared error of a number
    group: Places
    kind: Kind | None
    levels: dict[Over, pd.DataFrame]  #: (row, model), the probability of what is below a number, or of the second of
    #: two classes, or of the most probable one; of counts at random between what is below and what is not above
    #: (Czado, Gneiting and Held, 2009, Biometrics 65)
    groups: tuple[str, ...] = ()  #: names
    mean: dict[Over, pd.DataFrame] = field(default_factory=dict)  #: (row, model), of numbers, as they were predicted

    def join(self, other: "Comparison") -> "Comparison":
        """This comparison, with the models of another one of the same rows and folds beside its own."""
        joined: dict[str, dict[Over, pd.DataFrame]] = {
            name: {over: pd.concat([own[over], getattr(other, name)[over]], axis=1) for over in own}
            for name in ("lpd", "loss", "levels", "mean")
            if (own := getattr(self, name))
        }
        return replace(self, **joined)  # type: ignore[arg-type]

    def gain(self, name: str, other: str, over: Over = "rows") -> tuple[float, float]:
        """How much higher the lpd of `name` is than that of `other`, nats per row, and its standard error: over groups,
        as rows of one group share what was learned of it (Cameron and Miller, 2015, Journal of Human Resources 50);
        over rows where there are fewer than 8 groups."""
        return self._average((self.lpd[over][name] - self.lpd[over][other]).to_numpy())

    def count_inside(self, share: float = 0.9, over: Over = "rows", name: str = NETWORK) -> tuple[float, float]:
        """The share of outcomes, numbers, in the intervals that promise `share`, and its standard error."""
        if self.kind not in NUMBERS:
            raise ValueError(f"an outcome of kind {self.kind!r} has no interval; wanted: a number, or calibrate()")
        return self._average((np.abs(self.levels[over][name] - 0.5) < share / 2).to_numpy(float))

    def say_promise(self, over: Over, name: str) -> str:
        """How often intervals held, or what was said with so much probability came, and whether that was promised."""
        said = []
        if self.kind not in NUMBERS:
            p, came = self._list_came(over, name)
            for k in range(5):
                part = np.minimum((5 * p).astype(int), 4) == k
                if (n := part.sum()) >= LEAST_PART:
                    off = part * (came - p)
                    error = np.sqrt(np.sum(np.bincount(self.group, off - part * off.sum() / n) ** 2))
                    text = f"{n:,} had a probability of {p[part].mean():.0%}, and {came[part].mean():.0%} came"
                    is_off = abs(off.sum()) > max(CLEARLY * error, UNEVEN_SHARE * n)
                    said.append(text + " (not as promised)" * bool(is_off))
            return f"Of new {over}, {'; '.join(said)}." if said else ""
        for share in (50, 90):
            inside, error = (100 * value for value in self.count_inside(share / 100, over, name))
            verdict = "too wide" if inside > share else "too narrow"
            verdict = "as promised" if abs(inside - share) <= 2 * error else verdict
            said.append(f"{plus_minus(inside, error)} % in the {share} % interval ({verdict})")
        return f"Of the outcomes of new {over} lie {' and '.join(said)}."

    def find_uneven(self, rows: Table, over: Over, name: str) -> str:
        """Where 90 % intervals hold clearly more, or less, than elsewhere, in a sentence or "": in a third, tenth
        or twentieth at an end of a feature, or of what is predicted, and in a group."""
        inside = (np.abs(self.levels[over][name].to_numpy() - 0.5) < 0.45).astype(float)
        columns = {repr(feature): x for feature, x in zip(rows.features, rows.values.T, strict=True)}
        ends: dict[str, Array] = {}
        groups: dict[str, Array] = {}
        said: list[str] = []
        for what, x in (columns | {"a prediction": self.mean[over][name].to_numpy()}).items():
            for low, high in np.quantile(x, ((1 / 3, 2 / 3), (0.1, 0.9), (0.05, 0.95))):
                ends |= {f"{what} up to {low:.4g}": x <= low, f"{what} from {high:.4g}": x >= high}
        if over == "rows":
            n = rows.count()
            odd = np.argmax(np.abs(np.bincount(rows.group, inside - inside.mean())) * (n >= LEAST_PART) / np.sqrt(n))
            groups[f"{rows.columns['group']!r} {rows.groups[odd]!r}"] = rows.group == odd
        for parts in (ends, groups):
            clearest, text = UNEVEN, ""
            for what, part in parts.items():
                n = np.array([part.sum(), (~part).sum()])
                if n.min() < LEAST_PART:
                    continue
                here, rest = inside[part].mean(), inside[~part].mean()
                off = np.where(part, (inside - here) / n[0], (rest - inside) / n[1])
                alike = np.sum(np.bincount(rows.group, off) ** 2) / max(np.sum(off**2), 1e-12)  # rows of one group
                error = np.sqrt(inside.var() * np.sum(1 / n) * max(alike, 1.0))
                if abs(here - rest) > max(UNEVEN_SHARE, clearest * error):
                    clearest, text = abs(here - rest) / error, f"{here:.0%} of rows with {what}, {rest:.0%} of others"
            said += [text] * bool(text)
        if not said:
            return ""
        return f"90 % intervals hold {'; '.join(said)}. One noise serves all rows, and what a curve misses is in it."

    def _average(self, each: Floats) -> tuple[float, float]:
        """The mean over rows, and its standard error over `by`."""
        by = self.group if self.by == "groups" else np.arange(len(each))
        sums, n = np.bincount(by, each - each.mean()), len(np.unique(by))
        return float(each.mean()), float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / len(each))

    @property
    def by(self) -> Over:
        """What errors are taken over."""
        return "groups" if len(np.unique(self.group)) >= FEW_GROUPS else "rows"

    def to_frame(self) -> pd.DataFrame:
        """Scores, a line for each model, the best on rows first, with gains of the network."""
        second = "RMSE" if self.kind in NUMBERS else "accuracy (%)"
        lines = {}
        for name in self.lpd["rows"]:
            line = {}
            for over in self.lpd:
                text = f"new {over}"
                loss = self.loss[over][name].mean()
                line[f"lpd, {text}"] = self.lpd[over][name].mean()
                line[f"{second}, {text}"] = np.sqrt(loss) if self.kind in NUMBERS else 100 * (1 - loss)
                if name != NETWORK and NETWORK in self.lpd[over]:
                    line[f"network's gain, {text}"] = plus_minus(*self.gain(NETWORK, name, over))
            lines[name] = line
        frame = pd.DataFrame.from_dict(lines, orient="index").fillna("")
        return frame.sort_values("lpd, new rows", ascending=False).round(3)

    def __str__(self) -> str:
        """The scores on rows, and below them on groups: it fits a page."""
        frame = self.to_frame()
        return "\n".join(frame.filter(like=f"new {over}").to_string() for over in self.lpd)

    def calibrate(self, over: Over = "rows", name: str = NETWORK) -> dict[str, float] | dict[str, Array]:
        """How often a model is right: for a number, shares of outcomes in its 50 and 90 % intervals, a dict; else
        `metrics.calibrate` of its probabilities, of the second of two classes, or of the most probable one."""
        if self.kind in NUMBERS:
            return {f"{share:.0%}": self.count_inside(share, over, name)[0] for share in (0.5, 0.9)}
        p, came = self._list_came(over, name)
        return metrics.calibrate(p, came.astype(int), n_bins=5)

    def _list_came(self, over: Over, name: str) -> tuple[Floats, Array]:
        """Probabilities, of the second of two classes or of the most probable one, and whether it came, (row,) each."""
        p, missed = self.levels[over][name].to_numpy(), self.loss[over][name].to_numpy() == 1
        return p, ~missed if self.kind == "classes" else (p > 0.5) != missed

    def gain_without(self, name: str, other: str, over: Over = "rows") -> tuple[str, float, float]:
        """The group that moves the gain most, and the gain and its standard error without it."""
        each = (self.lpd[over][name] - self.lpd[over][other]).to_numpy()
        odd = int(np.argmax(np.abs(np.bincount(self.group, each - each.mean()))))
        rest = self.group != odd
        lpd = {over: self.lpd[over][rest]}
        gain, error = replace(self, lpd=lpd, group=self.group[rest]).gain(name, other, over)
        return self.groups[odd] if self.groups else str(odd), gain, error

    def find_best(self, over: Over) -> str:
        """The rival with the highest score."""
        return self.lpd[over].mean().drop(NETWORK, errors="ignore").idxmax()

    def choose(self, over: Over = "rows") -> str:
        """The model to use: the network if it leads the best rival by more than 2.8 standard errors, else the simplest
        rival that is not behind the best by more than 2, nor by more than 0.1 nats per row."""
        models, best = set(self.lpd[over]), self.find_best(over)
        if NETWORK in models:
            gain, error = self.gain(NETWORK, best, over)
            if gain > CLEARLY * error:
                return NETWORK
        for name in (name for name in RIVALS if name in models):
            behind, error = self.gain(best, name, over)
            if name == best or behind <= min(WORSE * error, CLOSE):
                return name
        raise AssertionError("the best rival is not behind itself")

    def advise(self, over: Over = "rows") -> str:
        """Which model to use, and why, in a sentence or two."""
        chosen, best, simpler = self.choose(over), self.find_best(over), ""
        if chosen not in (best, NETWORK):
            size = plus_minus(*self.gain(best, chosen, over))
            simpler = f"; {NAMES[chosen]} is behind {NAMES[best]} by {size}, which is not clear"
        what = "rows of known groups" if over == "rows" else "groups that were left out whole"
        few = f", as there are fewer than {FEW_GROUPS} groups" if self.by == "rows" else ""
        unit, over_what = "nats per row", f"standard error over {self.by}{few}"
        if NETWORK not in self.lpd[over]:
            return f"Of the rivals, use {NAMES[chosen]} for {what}{simpler and f'{simpler} ({unit}, {over_what})'}."
        lead, error = self.gain(NETWORK, best, over)
        text = f"Use {NAMES[chosen]} for {what}: there the network is "
        if abs(lead) <= WORSE * error:
            alike = "about as good as" if WORSE * error <= CLOSE else "not to be told from"
            text += f"{alike} the best rival, {NAMES[best]} ({plus_minus(lead, error)} {unit}, {over_what})"
        else:
            side = "ahead of" if lead > 0 else "behind"
            text += f"{side} the best rival, {NAMES[best]}, by {plus_minus(abs(lead), error)} {unit} ({over_what})"
        if WORSE * error < lead and chosen != NETWORK:
            text += ", but not clearly"
        if len(np.unique(self.group)) > 2:
            odd, rest, its_error = self.gain_without(NETWORK, best, over)
            if (abs(lead) > WORSE * error) != (abs(rest) > WORSE * its_error) and abs(rest - lead) > its_error:
                text += f"; one group decides: without {odd!r} the network's lead is {plus_minus(rest, its_error)}"
        return f"{text}{simpler}."


def compare_rivals(
    rows: Table,
    *,
    seed: int,
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    over: Sequence[Over] = OVER,
    network: "Compiled | None" = None,
    sampler: Sampler = None,
) -> Comparison:
    """Cross-validate the network and its rivals, over rows and over whole groups.

    Parameters
    ----------
    rows : Table
    seed : int
    n_folds : int
        Of rows, and of groups at most.
    rivals : list of str
        Names of RIVALS.
    over : list of str
        "rows", of known groups, which advice is made from, and "groups", whole ones.
    network : CompiledPyMCModel, optional
        As in `fit_network`.
    sampler : dict, optional
        What to change in SHORT_SAMPLER.

    Examples
    --------
    The truth is a line; two folds and one rival, to be quick:

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> quick = {"over": ("rows",), "n_folds": 2, "sampler": {"draws": 100, "tune": 200}}
    >>> comparison = tables.compare_rivals(rows, seed=1, rivals=("line",), **quick)
    >>> sorted(comparison.lpd["rows"])
    ['line', 'network']
    """
    if "rows" not in over or not set(over) <= set(OVER):
        raise ValueError(f"over={over!r}; wanted: {OVER} or ('rows',)")
    check_rivals(rivals)
    compiled = {NETWORK: compile_network(rows) if network is None else network}
    if LINE in rivals:
        compiled[LINE] = compile_network(rows, **SAMPLED[LINE])
    models = [*(name for name in RIVALS if name in rivals), NETWORK]
    return cross_validate(rows, models, over=over, seed=seed, n_folds=n_folds, compiled=compiled, sampler=sampler)


def cross_validate(
    rows: Table, models: Sequence[str], *, over: Sequence[Over], seed: int, n_folds: int,
    compiled: "dict[str, Compiled]", sampler: Sampler = None, cores: int = 1, watch: Watch | None = None,
) -> Comparison:  # fmt: skip
    """Cross-validate some models; those that are compiled by their networks, with a `sampler` for the network."""
    folds, watch = make_folds(rows, seed=seed, n_folds=n_folds), watch or Watch(lambda _: None)
    lpd, loss, levels, mean = (
        {part: pd.DataFrame(np.nan, index=range(len(rows.group)), columns=list(models)) for part in over}
        for _ in range(4)
    )
    fits = [(part, k) for part in over for k in range(int(folds[part].max()) + 1)]
    for name in models:
        start = time.perf_counter()
        for done, (part, k) in enumerate(fits):
            each = (time.perf_counter() - start) / done if done else None
            left = None if each is None else each * (len(fits) - done)
            watch.step(f"{NAMES[name]}, fit {done + 1} of {len(fits)}, without some {part}", left)
            if each is not None and left is not None and done == 1 and (left > 3 or name in compiled):
                watch(f"  {NAMES[name]}: {_say_left(left, each, name in compiled, cores)}")
            train, test = np.flatnonzero(folds[part] != k), np.flatnonzero(folds[part] == k)
            held, how = rows.take(test), {"sampler": sampler} if name == NETWORK else {}
            if name in compiled:
                predicted = predict_fold(rows, train, held, seed=seed, network=compiled[name], cores=cores, **how)
            else:
                predicted = fit_rival(name, rows, train, test, seed=seed, new_groups=part == "groups")
            lpd[part].loc[test, name] = score_rows(predicted, held)
            loss[part].loc[test, name] = _find_losses(predicted, held)
            levels[part].loc[test, name] = _find_levels(predicted, held)
            if rows.kind in NUMBERS:
                mean[part].loc[test, name] = predicted.to_unit()[0].mean(axis=0)
    return Comparison(lpd, loss, rows.group, rows.kind, levels, rows.groups, mean if rows.kind in NUMBERS else {})


def guess_run(each: float, cores: int) -> float:
    """Seconds of a run of four chains, where a fold's two took so long."""
    return LONGER * each * min(2, cores) / min(4, cores)


def _say_left(left: float, each: float, sampled: bool, cores: int) -> str:
    """How long a comparison takes, and all that may come behind it: a run of four chains, and two more."""
    run = guess_run(each, cores)
    more = f"; if it leads, {say_time(run)} more, up to {say_time(MOST * run).removeprefix('about ')} where chains part"
    return f"{say_time(left)} to go" + more * sampled


def _find_losses(predicted: Prediction, rows: Table) -> Floats:
    """Squared error, or 1 for a class that was missed, (row,)."""
    mean = predicted.to_unit()[0].mean(axis=0)
    if rows.kind in NUMBERS:
        return (mean - rows.y) ** 2
    guess = mean > 0.5 if rows.kind == "binary" else mean.argmax(axis=1)
    return (guess != rows.y).astype(float)


def _find_levels(predicted: Prediction, rows: Table) -> Floats:
    """What `Comparison.levels` says of each row, (row,)."""
    if rows.kind in NUMBERS:
        level = find_below(predicted, rows.target).mean(axis=0)
        if rows.kind == "counts":  # between what is below a count and what is not above it, so that right is even
            below = find_below(predicted, rows.y - 1).mean(axis=0)
            level = below + np.random.default_rng(0).random(len(level)) * (level - below)
        return level
    mean = predicted.draws.mean(axis=0)
    return mean if rows.kind == "binary" else mean.max(axis=1)
