"""Predictions of a rival that was advised, in full: with what it does not know of a mean, and intervals that hold."""

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import hmean, norm

from hbnn._refused import Refused
from hbnn._types import Floats
from hbnn.tables import _rivals
from hbnn.tables._compare import Comparison, Over
from hbnn.tables._model import noise_ratio
from hbnn.tables._predictions import INTERVAL, Prediction
from hbnn.tables._table import NUMBERS, Places, Table, find_groups

REFITS = {"line": 200, "quadratic": 200, "trees": 40}  # to rows drawn again: what a rival does not know of a mean
MANY_REFITS = 20


def predict_rival(name: str, rows: Table, asked: Table, seed: int, found: Comparison) -> Prediction:
    """A rival fitted to all rows; for rows of new groups, with settings that were tuned for such.

    Nine tenths of the rows that it had not seen lie in an interval as wide as those of a real outcome are here (split
    conformal prediction (Vovk, Gammerman and Shafer, 2005), with the normal's shape). In a new group, what the rows of
    one share of it is ignorance of their mean.

    References
    ----------
    - Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World.
    """
    both, n = _append_rows(rows, asked), len(rows.group)
    place = both.group[n:]
    is_new, number = place >= len(rows.groups), rows.kind in NUMBERS
    n_draws = REFITS[name]
    if _rivals.is_many(n, len(rows.groups), len(rows.second_groups)):
        n_draws = min(n_draws, MANY_REFITS)
    draws = np.empty((n_draws, len(place), *([len(rows.classes)] if rows.kind == "classes" else [])))
    noise = np.empty((1 if rows.kind == "real" else n_draws, len(place))) if number else None
    tails = np.empty((1, len(place))) if rows.kind == "heavy" else None
    for new in np.unique(is_new):
        where = np.flatnonzero(is_new == new)
        part = _rivals.fit_rival(name, both, np.arange(n), n + where, seed=seed, new_groups=bool(new), refits=n_draws)
        draws[:, where] = part.draws
        if noise is not None and rows.kind != "real":
            noise[:, where] = part.noise
        elif noise is not None:
            over: Over = "groups" if new and "groups" in found.loss else "rows"
            ratio = np.ones(len(where)) if both.weight is None else _compare_weights(rows, both.weight[n + where])
            noise[:, where], level = _measure_misses(name, rows, found, over, ratio, bool(new))
            levels = np.random.default_rng(seed).normal(0, level, (n_draws, len(both.groups)))
            draws[:, where] += levels[:, place[where]]
        if tails is not None and part.tails is not None:
            tails[:, where] = part.tails[:1]
    if noise is None:
        return Prediction(draws, None, float(n_draws), rows.classes)
    return Prediction(
        draws, np.broadcast_to(noise, draws.shape), float(n_draws), counts=rows.kind == "counts",
        share=_rivals.find_whole(rows), tails=tails,
    )  # fmt: skip


def _append_rows(rows: Table, asked: Table) -> Table:
    """The rows to learn from, and behind them those to predict, whose outcomes are made up and not used."""
    find_groups(asked, rows.features, rows.groups, new=True)
    for what in ("second_group", "weight"):
        if getattr(rows, what) is not None and getattr(asked, what) is None:
            raise Refused(f"the table has no {what}; wanted: one, as where it was learned from")
    groups = tuple(dict.fromkeys([*rows.groups, *asked.groups]))
    place = pd.Index(groups).get_indexer(asked.groups)[asked.group]
    both = replace(
        rows, values=np.concatenate([rows.values, asked.values]), group=np.concatenate([rows.group, place]),
        groups=groups, y=np.concatenate([rows.y, np.resize(rows.y, len(place))]), ids={},
    )  # fmt: skip
    if rows.second_group is not None:
        seconds = tuple(dict.fromkeys([*rows.second_groups, *asked.second_groups]))
        theirs = pd.Index(seconds).get_indexer(asked.second_groups)[asked.second_group]
        both = replace(both, second_group=np.concatenate([rows.second_group, theirs]), second_groups=seconds)
    if rows.weight is not None and asked.weight is not None:
        both = replace(both, weight=np.concatenate([rows.weight, asked.weight]))
    return both


def _compare_weights(rows: Table, weight: Floats) -> Floats:
    """Of a row's noise to that of a row of mean weight among those to learn from, (row,)."""
    return noise_ratio(weight, float(hmean(rows.weight)))


def _measure_misses(
    name: str, rows: Table, found: Comparison, over: Over, ratio: Floats, new: bool
) -> tuple[Floats, float]:
    """The sd of a real outcome about its mean at some ratios, (row,), and of the level of a new group, as a rival
    missed rows that it had not seen."""
    square, n = found.loss[over][name].to_numpy(), len(rows.group)
    missed = np.sign(found.levels[over][name].to_numpy() - 0.5) * np.sqrt(square)
    own, shrinks, seen = float(np.mean(square)), 0.0, np.ones(n)
    if rows.weight is not None:
        seen = _compare_weights(rows, rows.weight)
        own, shrinks, _ = _rivals.fit_scales(missed, seen, False)
    far = np.quantile(square / (own + shrinks * seen**2), min(INTERVAL * (1 + 1 / n), 1))
    far = np.sqrt(far) / norm.ppf((1 + INTERVAL) / 2)
    shared = min(_correlate_within(missed, rows.group) * (own + shrinks), own) if new else 0.0
    return far * np.sqrt(own - shared + shrinks * ratio**2), far * np.sqrt(shared)


def _correlate_within(missed: Floats, group: Places) -> float:
    """The intraclass correlation of misses, the share of their variance that rows of one group have in common, by an
    analysis of variance."""
    n, of = np.bincount(group), np.bincount(group, missed)
    n_groups = int(np.count_nonzero(n))
    within = float(np.sum((missed - (of / np.maximum(n, 1))[group]) ** 2)) / max(len(group) - n_groups, 1)
    size = (len(group) - np.sum(n**2) / len(group)) / (n_groups - 1)
    square = np.sum(of[n > 0] ** 2 / n[n > 0]) - of.sum() ** 2 / len(group)
    between = max(float(square / (n_groups - 1) - within) / size, 0.0)
    return min(between / (between + within), 0.99) if between else 0.0
