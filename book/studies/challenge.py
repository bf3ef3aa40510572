"""Eleven samplers on three posteriors whose answers are known, at equal numbers of gradients and at equal CPU.

Each row is one run, scored by `hbnn.reference` when it has spent a half, once and twice as many gradients as nutpie's
defaults need, and once, twice and three times as many CPU-seconds of one core; warm-up counts, compiling does not. What
is scored is what the run had then: from each chain, as many draws as all chains together could pay. Which settings the
samplers have, and whose they are, stands in `_entrants`.

**What nutpie needs** is what its defaults took to pass the book's verdict (more than 400 effective draws, in bulk and
tails; R-hat was asked as well when these rows were made) in the slowest of three runs with seeds 11, 12 and 13, asked
after every hundredth draw. A run that has cost ten times those CPU-seconds is capped.

There are five runs of each sampler on the flat network and on the curves, and three on the hierarchical network, which
costs most. Five were planned there, too; they were made three before any was run.

**Criteria, set before the study was run.** A run *passes* when `hbnn.reference` calls it right.
1. nutpie's defaults pass at the full budget of gradients in at least 4 of 5 runs, and in at least 2 of 3.
2. Of the 104 runs with an accept step (NUTS of all four, low rank, MAMS, MEADS, WALNUTS), at most four are called wrong
   at the full budget of gradients: 1 % are false alarms, and more than four would come by chance once in 200 studies.
3. Each sampler without one (MCLMC of both, MILE) fails on some posterior: at the full budget of gradients at most 2 of
   its 5 runs pass there, or at most 1 of 3.
4. With once nutpie's gradients no entrant passes more of its 13 runs than nutpie's defaults.
5. On the flat network, with three times nutpie's CPU-seconds, the entrant whose median least ESS is largest is called
   wrong in most of its runs: whoever is judged by effective draws for each second would choose it.

What was known then: nutpie's three samplers had been seen on some of these posteriors (`reference_scores`, and its
defaults for the budgets); and after a trial on the flat network with seed 9, which is none of the study's, the budgets
of CPU-seconds were widened, since gradients in JAX cost two to four times nutpie's, and MAMS lost a third round of
tuning, which took more than the whole budget, and tunes for as many draws as its budget buys. The cap was six until the
first three rows of the study, all of nutpie's, showed that a gradient took twice as long as when its needs were
measured: the machine was busy with other work. Six would have stopped what runs in JAX before it had its gradients.
Those rows were computed again.
"""

from dataclasses import dataclass

import numpy as np
from hbnn.reference import scoring
from hbnn.reference.posteriors import CURVES, FLAT, HIERARCHICAL

from studies._entrants import SAMPLE, Budget

MEASURED = False
NEED = {FLAT: (720_000, 5.2), CURVES: (360_000, 5.6), HIERARCHICAL: (500_000, 27.0)}  # gradients, CPU-seconds
GRADIENTS, SECONDS, CAP = (0.5, 1, 2), (1, 2, 3), 10  # times what nutpie needs
SEEDS = {FLAT: (1, 2, 3, 4, 5), CURVES: (1, 2, 3, 4, 5), HIERARCHICAL: (1, 2, 3)}
UNADJUSTED = ("nutpie, MCLMC", "BlackJAX, MCLMC", "MILE")
CASES = [
    {"posterior": posterior, "entrant": entrant, "seed": seed}
    for posterior in NEED for seed in SEEDS[posterior] for entrant in SAMPLE
]  # fmt: skip
# of these the gradients run out before the seconds do, so what is scored is the same on a slower machine; WALNUTS, one
# of the others, needs a package that is not in the lock
STEADY = ("nutpie", "nutpie, low rank", "nutpie, MCLMC")
RECOMPUTED = [case for case in CASES if case["posterior"] != HIERARCHICAL and case["entrant"] in STEADY]
FIRST = 15  # compiling
STILL, BROKEN = "still tuning", "not finite"  # verdicts before there is anything to judge
NUMBERS = (
    "draws", "spent", "seconds", "bias", "bias_error", "distance", "far", "ess", "rhat", "visible", "log_lik_bias",
    "log_lik_error",
)  # fmt: skip
UNCOMPARED = (
    "capped", "warmup_seconds", "seconds", "cpu_verdict", "cpu_at", *(f"cpu_{name}" for name in NUMBERS)
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Run:
    """Chains side by side, cut to the length of the shortest.

    Attributes
    ----------
    values : (chain, draw, functional)
    gradients, seconds : (draw,), what all chains together had spent until each has this draw, warm-up included
    """

    values: np.ndarray
    gradients: np.ndarray
    seconds: np.ndarray

    def cut(self, clock, budget):
        """How many draws of each chain a budget pays (int); `clock` is "gradients" or "seconds"."""
        return int(np.searchsorted(getattr(self, clock), budget, side="right"))


def join(chains):
    """Chains (`_entrants.Chain`) as a `Run`."""
    n = min(len(chain.values) for chain in chains)
    return Run(
        np.stack([chain.values[:n] for chain in chains]),
        np.sum([chain.gradients[:n] for chain in chains], axis=0),
        np.sum([chain.cpu[:n] for chain in chains], axis=0),
    )


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly, and never so few for those that are not `STEADY` that a check might draw one."""
    seconds = SECONDS[-1] * NEED[case["posterior"]][1]
    return 1.3 * seconds if case["entrant"] in STEADY else max(1.8 * seconds, 61)


def compute(posterior, entrant, seed):
    """What one run was worth when it had spent so many gradients, and so many CPU-seconds."""
    gradients, cpu = NEED[posterior]
    budget = Budget(GRADIENTS[-1] * gradients, SECONDS[-1] * cpu, CAP * cpu)
    chains = SAMPLE[entrant](posterior, seed, budget)
    run, truth = join(chains), scoring.load_reference(posterior)
    row = {"warmup": sum(chain.warmup for chain in chains), "capped": is_capped(run, budget)}
    row |= {"warmup_seconds": float(f"{run.seconds[0]:.4g}") if len(run.seconds) else None}
    for prefix, clock, unit, times in (("", "gradients", gradients, GRADIENTS), ("cpu_", "seconds", cpu, SECONDS)):
        scores = [judge(run, run.cut(clock, k * unit), truth) for k in times]
        row |= {f"{prefix}{name}": [score[name] for score in scores] for name in scores[0]}
    return row


def is_capped(run, budget):
    """Whether CPU-seconds ran out before the full budget of gradients was spent, by a twentieth or more."""
    return bool(not len(run.gradients) or run.gradients[-1] < 0.95 * budget.gradients)


def judge(run, n, truth):
    """The score of the first `n` draws of each chain: a dict of a verdict, a name and `NUMBERS`, None where none is."""
    nothing = {"verdict": STILL, "at": None} | dict.fromkeys(NUMBERS)
    if n < 4:
        return nothing
    values = run.values[:, :n]
    spent = {"draws": n, "spent": float(run.gradients[n - 1]), "seconds": float(f"{run.seconds[n - 1]:.4g}")}
    if not np.isfinite(values).all():
        return nothing | {"verdict": BROKEN} | spent
    found = scoring.compare_draws(values, truth)
    worst, last = int(abs(found.bias).argmax()), found.names.index("log_lik")
    numbers = {
        "bias": abs(found.bias[worst]), "bias_error": found.bias_error[worst], "distance": found.distance.max(),
        "far": (found.distance > found.limit).sum(), "ess": min(found.ess.min(), found.ess_tail.min()),
        "rhat": np.nanmax(found.rhat) if np.isfinite(found.rhat).any() else np.inf, "visible": found.visible,
        "log_lik_bias": found.bias[last], "log_lik_error": found.bias_error[last],
    }  # fmt: skip
    numbers = {name: float(f"{value:.5g}") for name, value in numbers.items()}
    return {"verdict": found.verdict, "at": found.names[worst]} | spent | numbers
