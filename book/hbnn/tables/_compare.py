"""Is the network worth it? Cross-validation over rows and over whole groups, and advice in a sentence.

A model is left in the cold for rows, and for groups, that it has not seen; differences are taken row by row, and their
errors over groups.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from hbnn import metrics
from hbnn._text import plus_minus
from hbnn._types import Array, Floats
from hbnn.tables import _network, _rivals
from hbnn.tables._network import Compiled, Progress, Sampler
from hbnn.tables._predictions import Prediction, find_below, score_rows
from hbnn.tables._rivals import LINE, NAMES, NETWORK, RIVALS, SAMPLED
from hbnn.tables._splits import make_folds
from hbnn.tables._table import NUMBERS, Kind, Places, Table

type Over = Literal["rows", "groups"]
OVER: tuple[Over, ...] = ("rows", "groups")
CLEARLY, WORSE = 2.8, 2.0  # standard errors: by which the network must lead, and a simple rival must not be behind
CLOSE = 0.1  # nats per row: a simple rival that is further behind is not taken, however unsure that is
FEW_GROUPS = 8  # below, errors are taken over rows
LONGER = 5  # times as long as a fold, roughly, a run takes


@dataclass(frozen=True, repr=False)
class Comparison:
    """What each model scores on rows, and on groups, that it has not seen: dicts of "rows" and "groups".

    Examples
    --------
    Two models whose scores hardly differ:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from hbnn import tables
    >>> score = np.sin(np.arange(90))
    >>> lpd = {"rows": pd.DataFrame({"line": score, "network": score[::-1]})}
    >>> found = tables.Comparison(lpd, lpd, group=np.arange(90) % 9, kind="binary", levels={})
    >>> found.choose(), found.advise()[:39]
    ('line', 'Use a line, with a level for each group')
    """

    lpd: dict[Over, pd.DataFrame]  #: (row, model), log predictive densities, nats
    #: (row, model), 1 for a class that was missed, or the squared error of a number, of a heavy-tailed one the absolute
    loss: dict[Over, pd.DataFrame]
    group: Places
    kind: Kind | None
    levels: dict[Over, pd.DataFrame]  #: (row, model), the probability of what is below a number, or of the second of
    #: two classes, or of the most probable one; of counts at random between what is below and what is not above
    #: (Czado, Gneiting and Held, 2009, Biometrics 65)
    groups: tuple[str, ...] = ()  #: names

    def join(self, other: "Comparison") -> "Comparison":
        """This comparison, with the models of another one of the same rows and folds beside its own."""
        joined: dict[str, dict[Over, pd.DataFrame]] = {
            name: {over: pd.concat([own[over], getattr(other, name)[over]], axis=1) for over in own}
            for name, own in (("lpd", self.lpd), ("loss", self.loss), ("levels", self.levels))
        }
        return replace(self, **joined)  # type: ignore[arg-type]

    def gain(self, name: str, other: str, over: Over = "rows") -> tuple[float, float]:
        """How much higher the lpd of `name` is than that of `other`, nats per row, and its standard error.

        The error is over groups, as rows of one group share what was learned of it (Cameron and Miller, 2015); over
        rows where there are fewer than 8 groups.

        References
        ----------
        - Cameron and Miller (2015), Journal of Human Resources 50.
        """
        return self._average((self.lpd[over][name] - self.lpd[over][other]).to_numpy())

    def count_inside(self, share: float = 0.9, over: Over = "rows", name: str = NETWORK) -> tuple[float, float]:
        """The share of outcomes, numbers, in the intervals that promise `share`, and its standard error as of
        `gain`."""
        if self.kind not in NUMBERS:
            raise ValueError(f"an outcome of kind {self.kind!r} has no interval; wanted: a number, or calibrate()")
        return self._average((np.abs(self.levels[over][name] - 0.5) < share / 2).to_numpy(float))

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
        second = "mean error" if self.kind == "heavy" else "RMSE" if self.kind in NUMBERS else "accuracy (%)"
        lines = {}
        for name in self.lpd["rows"]:
            line = {}
            for over in self.lpd:
                text = f"new {over}"
                loss = self.loss[over][name].mean()
                line[f"lpd, {text}"] = self.lpd[over][name].mean()
                line[f"{second}, {text}"] = (
                    loss if self.kind == "heavy" else np.sqrt(loss) if self.kind in NUMBERS else 100 * (1 - loss)
                )
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
        p = self.levels[over][name].to_numpy()
        missed = self.loss[over][name].to_numpy() == 1
        came = ~missed if self.kind == "classes" else (p > 0.5) != missed
        return metrics.calibrate(p, came.astype(int), n_bins=5)

    def gain_without(self, name: str, other: str, over: Over = "rows") -> tuple[str, float, float]:
        """The group that moves the gain most, and the gain and its standard error without it."""
        each = (self.lpd[over][name] - self.lpd[over][other]).to_numpy()
        odd = int(np.argmax(np.abs(np.bincount(self.group, each - each.mean()))))
        rest = self.group != odd
        lpd = {over: self.lpd[over][rest]}
        gain, error = replace(self, lpd=lpd, group=self.group[rest]).gain(name, other, over)
        return self.groups[odd] if self.groups else str(odd), gain, error

    def choose(self, over: Over = "rows") -> str:
        """The model to use: the network if it leads the best rival by more than 2.8 standard errors, else the simplest
        rival that is not behind the best by more than 2, nor by more than 0.1 nats per row."""
        mean = self.lpd[over].mean()
        best = mean.drop(NETWORK, errors="ignore").idxmax()
        if NETWORK in mean:
            gain, error = self.gain(NETWORK, best, over)
            if gain > CLEARLY * error:
                return NETWORK
        for name in (name for name in RIVALS if name in mean):
            behind, error = self.gain(best, name, over)
            if name == best or behind <= min(WORSE * error, CLOSE):
                return name
        raise AssertionError("the best rival is not behind itself")

    def advise(self, over: Over = "rows") -> str:
        """Which model to use, and why, in a sentence or two."""
        mean = self.lpd[over].mean()
        chosen, best = self.choose(over), mean.drop(NETWORK, errors="ignore").idxmax()
        behind, error = self.gain(best, chosen, over)
        size = plus_minus(behind, error)
        simpler = f"{NAMES[best]} is ahead of {NAMES[chosen]} by {size}, which is not clear"
        simpler = simpler if chosen not in (best, NETWORK) else ""
        what = "rows of known groups" if over == "rows" else "groups that were left out whole"
        few = f", as there are fewer than {FEW_GROUPS} groups" if self.by == "rows" else ""
        unit, over_what = "nats per row", f"standard error over {self.by}{few}"
        if NETWORK not in mean:
            simpler = f"; {simpler} ({unit}, {over_what})" if simpler else ""
            return f"Of the rivals, use {NAMES[chosen]} for {what}{simpler}."
        lead, error = self.gain(NETWORK, best, over)
        text = f"Use {NAMES[chosen]} for {what}: there the network is "
        if abs(lead) <= WORSE * error:
            alike = "about as good as" if WORSE * error <= CLOSE else "not to be told from"
            text += f"{alike} the best rival, {NAMES[best]} ({plus_minus(lead, error)} {unit}, {over_what})"
        else:
            side = "ahead of" if lead > 0 else "behind"
            text += f"{side} the best rival, {NAMES[best]}, by {plus_minus(abs(lead), error)} {unit} ({over_what})"
        if WORSE * error < lead and chosen != NETWORK:
            text += ", which is not clear"
        if len(np.unique(self.group)) > 2:
            odd, rest, its_error = self.gain_without(NETWORK, best, over)
            if (abs(lead) > WORSE * error) != (abs(rest) > WORSE * its_error):
                text += f"; one group decides: without {odd!r} the network's lead is {plus_minus(rest, its_error)}"
        return f"{text}; {simpler}." if simpler else f"{text}."


def compare_rivals(
    rows: Table,
    *,
    seed: int,
    n_folds: int = 5,
    rivals: Sequence[str] = tuple(RIVALS),
    over: Sequence[Over] = OVER,
    network: Compiled | None = None,
    sampler: Sampler = None,
    **options: Any,
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
    sampler : dict, optional
        What to change in SHORT_SAMPLER.
    network, options
        As in `fit_network`, and refused as there.

    Examples
    --------
    The truth is a line; two folds and one rival, to be quick:

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> comparison = tables.compare_rivals(
    ...     rows, seed=1, n_units=2, n_folds=2, rivals=("line",), over=("rows",), sampler={"draws": 100, "tune": 200}
    ... )
    >>> sorted(comparison.lpd["rows"])
    ['line', 'network']
    >>> gain, error = comparison.gain("network", "line")
    """
    if "rows" not in over or not set(over) <= set(OVER):
        raise ValueError(f"over={over!r}; wanted: {OVER} or ('rows',)")
    _rivals.check_rivals(rivals)
    compiled = {NETWORK: _network.choose_network(rows, network, options)}
    models = [*(name for name in RIVALS if name in rivals), NETWORK]
    return cross_validate(rows, models, Plan(over=over, seed=seed, n_folds=n_folds, sampler=sampler), compiled)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How models are cross-validated."""

    over: Sequence[Over]
    seed: int
    n_folds: int
    sampler: Sampler = None  # of the network
    cores: int = 1


def cross_validate(
    rows: Table,
    models: Sequence[str],
    plan: Plan,
    compiled: dict[str, Compiled] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Cross-validate some models; those that are compiled by their networks."""
    compiled = dict(compiled or {})
    if LINE in models and LINE not in compiled:
        compiled[LINE] = _network.compile_network(rows, **SAMPLED[LINE])
    folds, lpd, loss, levels = make_folds(rows, seed=plan.seed, n_folds=plan.n_folds), {}, {}, {}
    for part in plan.over:
        fold, new = folds[part], part == "groups"
        scores = [pd.DataFrame(np.nan, index=range(len(fold)), columns=list(models)) for _ in range(3)]
        lpd[part], loss[part], levels[part] = scores
        for name in models:
            for k in range(fold.max() + 1):
                start = time.perf_counter()
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                held = rows.take(test)
                if name in compiled:
                    predicted = _rivals.predict_fold(
                        rows, train, held, seed=plan.seed, new_groups=new, network=compiled[name], cores=plan.cores,
                        sampler=plan.sampler if name == NETWORK else None,
                    )  # fmt: skip
                else:
                    predicted = _rivals.fit_rival(name, rows, train, test, seed=plan.seed, new_groups=new)
                found = score_rows(predicted, held), _find_losses(predicted, held), _find_levels(predicted, held)
                for frame, values in zip(scores, found, strict=True):
                    frame.loc[test, name] = values
                if k == 0 and progress is not None:
                    each = time.perf_counter() - start
                    left = f"{_network.say_time(each * fold.max())} to go"
                    if name in compiled and part == plan.over[-1]:
                        left += f"; if it leads, {_network.say_time(LONGER * each)} more"
                    progress(f"  {NAMES[name]}, new {part}: {left}")
    return Comparison(lpd, loss, rows.group, rows.kind, levels, rows.groups)


def _find_losses(predicted: Prediction, rows: Table) -> Floats:
    """Squared error (of a heavy-tailed number the absolute one), or 1 for a class that was missed, (row,)."""
    mean = predicted.to_unit()[0].mean(axis=0)
    if rows.kind == "heavy":
        return np.abs(mean - rows.y)
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
