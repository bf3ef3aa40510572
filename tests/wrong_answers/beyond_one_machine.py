"""Typical wrong answers to the exercises of chapter beyond_one_machine: each must be refused by its check."""

import heapq

import numpy as np
from bnn import report

A, B = "a" * 64, "b" * 64
rng = np.random.default_rng(1)
CASES = [(16, "as they come"), (16, "longest first"), (100, "as they come"), (100, "longest first")]


def job(*percent):
    """Ratios of twenty jobs for each case, this many percent above perfect sharing."""
    return {case: 1 + p / 100 * rng.uniform(0.9, 1.1, size=20) for case, p in zip(CASES, percent, strict=True)}


def batch(divide):
    """An answer to the second exercise, from a function of the seconds of an empty task and those of a fit."""
    rows = report.read_data("scaling")["rows"]
    row = next(row for row in rows if (row["workers"], row["compile_cache"]) == (1, "warm"))
    fits = {"2 ms": 0.002, "as here": np.mean(row["wall_seconds"]) / row["categories"]}
    return {name: divide(np.mean(row["empty_ms"]) / 1000, seconds) for name, seconds in fits.items()}


WRONG = {
    "check_orders": [
        lambda: None,
        lambda: [A, B],
        # the seed still belongs to the category
        lambda: {(0, 1): {0: A, 1: B}, (1, 0): {0: A, 1: B}},
        # one seed for both tasks, so that the order changes nothing
        lambda: {(0, 1): {0: A, 1: "c" * 64}, (1, 0): {0: "d" * 64, 1: "c" * 64}},
        # probabilities in place of the digest
        lambda: {(0, 1): {0: np.ones(3), 1: np.ones(3)}, (1, 0): {0: np.ones(3), 1: np.ones(3)}},
        # the seed belongs to the category, and the keys are places in the order
        lambda: {(0, 1): {0: A, 1: B}, (1, 0): {0: B, 1: A}},
        # words in place of the digest
        lambda: {(0, 1): {0: "x" * 64, 1: "y" * 64}, (1, 0): {0: "z" * 64, 1: "w" * 64}},
        # the same category twice
        lambda: {(0, 1): {0: A, 1: A}, (1, 0): {0: B, 1: B}},
    ],
    "check_batches": [
        lambda: None,
        lambda: 170,
        # milliseconds taken for seconds
        lambda: batch(lambda empty, fit: int(np.ceil(1000 * empty / (0.01 * fit)))),
        # 1 % forgotten
        lambda: batch(lambda empty, fit: int(np.ceil(empty / fit))),
        # not rounded
        lambda: batch(lambda empty, fit: empty / (0.01 * fit)),
        # rounded down
        lambda: batch(lambda empty, fit: int(empty / (0.01 * fit))),
        # one too many
        lambda: batch(lambda empty, fit: int(np.ceil(empty / (0.01 * fit))) + 1),
    ],
    "check_job": [
        lambda: None,
        lambda: np.ones((4, 50)),
        # one number for each case, without an error
        lambda: dict.fromkeys(CASES, 1.02),
        # one job, fifty times
        lambda: {case: np.full(50, 1.02) for case in CASES},
        # divided by what the work takes on average, not by this job's own
        lambda: {case: 1 + 0.05 * rng.normal(size=50) for case in CASES},
        # in percent
        lambda: {case: 100 * ratios for case, ratios in job(2, 0.2, 23, 2).items()},
        # twice as long
        lambda: {case: 2 * ratios for case, ratios in job(2, 0.2, 23, 2).items()},
        # the k-th fit to the k-th worker, whoever is free
        lambda: job(12, 5, 47, 34),
        # workers exchanged
        lambda: job(23, 2, 2, 0.2),
        # longest first in both orders, and in none
        lambda: job(0.2, 0.2, 2, 2),
        lambda: job(2, 2, 23, 23),
        # the jobs summed up
        lambda: {case: np.cumsum(ratios) for case, ratios in job(2, 0.2, 23, 2).items()},
        # shortest first
        lambda: job(2, 6, 23, 30),
    ],
}


def simulate(draw):
    """Ratios of twenty jobs for each case, the seconds of their fits by another distribution."""
    found = {case: [] for case in CASES}
    for _ in range(20):
        seconds = draw(size=1000)
        for (workers, order), ratios in found.items():
            free = [0.0] * workers
            for s in sorted(seconds, reverse=True) if order == "longest first" else seconds:
                heapq.heappush(free, heapq.heappop(free) + s)
            ratios.append(max(free) * workers / sum(seconds))
    return found


ALSO_RIGHT = {
    "check_job": [
        lambda: simulate(rng.exponential),
        lambda: simulate(lambda size: rng.gamma(3, size=size)),
        lambda: simulate(lambda size: rng.lognormal(sigma=1, size=size)),
        lambda: simulate(lambda size: rng.lognormal(sigma=0.25, size=size)),
        lambda: simulate(lambda size: rng.uniform(1, 4, size=size)),
    ],
}
