"""Do the intervals of `class_gains` hold the truth? Simulated classes of three sizes, thirty of each.

And sixty of thirty students whose gains are fixed (GAINS) and not drawn from one normal, as the model has it.

In every class two questions, chosen by lot, do not tell students apart, one student in ten misses the second sitting,
and who does not know guesses right one time in ten, of which the model knows nothing.
"""

from functools import lru_cache

import numpy as np
from hbnn import sampling
from teach import learned

MEASURED = False
SIZES = (10, 20, 40)
SEEDS = tuple(range(101, 131))
N_FIXED, FIXED_SEEDS = 30, tuple(range(201, 261))
GAINS = ([0.3, 1.5, 2.0, 0.0, 0.8], [0, 0, 0, 0, 2.0], [1.0, 1.0, 1.0, 1.0, 0.0])  # logits, in turn
CASES = [{"n": n, "seed": seed} for n in SIZES for seed in SEEDS]
CASES += [{"n": N_FIXED, "seed": seed} for seed in FIXED_SEEDS]
N_FLAT = 2
FIRST = 10  # CPU-seconds: everything is compiled
SETTINGS = {"draws": 800, "tune": 400, "target_accept": learned.SAMPLER["target_accept"]}


def block(case):
    """Six classes of one size are a task."""
    return case["n"], (case["seed"] - 101) // 6


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 1 + case["n"] / 15


@lru_cache
def compile_class(n):
    """The model for classes of one size, compiled once."""
    return sampling.compile_nuts(learned.build(learned.simulate(n, seed=0)[0]))


def compute(n, seed):
    """The truth of a class, what the model and what counting say of it, questions that were named, and a verdict."""
    flat = np.random.default_rng([seed, n]).choice(len(learned.ITEMS), N_FLAT, replace=False)
    gains = GAINS[seed % len(GAINS)] if n == N_FIXED else None
    answers, truth = learned.simulate(n, seed=seed, flat=flat, gains=gains)
    tree = sampling.sample_nuts(compile_class(n).with_data(**learned.give(answers)), seed=seed, **SETTINGS)
    posterior = tree["posterior"].to_dataset()
    gains = learned.find_gains(posterior, answers)
    raw, raw_error = learned.find_raw_gains(answers)
    low, high = np.quantile(gains, learned.INTERVAL, axis=(0, 1))
    named = learned.find_flat(posterior) > learned.SURE
    verdict = learned.judge(tree, answers)
    return {
        "truth": truth["gain"].tolist(),
        "mean": gains.mean(axis=(0, 1)).tolist(),
        "sd": gains.std(axis=(0, 1)).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "raw": raw.tolist(),
        "raw_error": raw_error.tolist(),
        "flat_named": int(named[flat].sum()),
        "others_named": int(named.sum() - named[flat].sum()),
        "passed": bool(verdict.converged),
    }
