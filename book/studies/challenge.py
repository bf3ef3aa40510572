"""Samplers on three posteriors whose answers are known: what a run is worth when it has spent so many gradients.

Each row is one run, scored by `hbnn.reference` when it has spent half, once and twice as many gradients as nutpie's
defaults need; warm-up counts. What is scored is what the run had then: from each chain, as many draws as all chains
together could pay. Which settings the samplers have, and whose they are, stands in `_entrants`. A row holds numbers;
`name_verdict` makes a verdict of them.

**What nutpie needs** is what its defaults took until bulk and tail ESS were above 400 and R-hat below a limit of then,
in the slowest of three runs with seeds 11, 12 and 13, asked after every hundredth draw. A run that has cost ten times
those CPU-seconds is capped.

There are five runs of each sampler on each posterior.

No setting was chosen by a score. What was known before: nutpie's three samplers had been seen on some of these
posteriors (`reference_scores`, and its defaults for the budgets); and after a trial on the flat network with seed 9,
which is none of the study's, MAMS lost a third round of tuning, which took more than the whole budget, and tunes for as
many draws as its budget buys. The warm-ups of 400 steps, LAPS, and MEADS's many draws (it kept too few of them to be
judged) came after all other rows. LAPS is not stopped by the clock, but on the hierarchical network only half a unit
was tried, as one unit would have cost more than ten times nutpie's CPU-seconds.
"""

from dataclasses import dataclass

import numpy as np
from hbnn import diagnostics
from hbnn.reference import scoring
from hbnn.reference.posteriors import CURVES, FLAT, HIERARCHICAL

from studies._entrants import MEMBERS, SAMPLE, Budget

MEASURED = False
NEED = {FLAT: (720_000, 5.2), CURVES: (360_000, 5.6), HIERARCHICAL: (500_000, 27.0)}  # gradients, CPU-seconds
BUDGETS, CAP = (0.5, 1, 2), 10  # times what nutpie needs, in gradients and in CPU-seconds
SEEDS = (1, 2, 3, 4, 5)
UNADJUSTED = ("nutpie, MCLMC", "BlackJAX, MCLMC", "MILE")
CASES = [
    {"posterior": posterior, "entrant": entrant, "seed": seed}
    for posterior in NEED for seed in SEEDS for entrant in SAMPLE
]  # fmt: skip
# cheap ones; WALNUTS, one of the others, needs a package that is not in the lock
STEADY = ("nutpie", "nutpie, low rank", "nutpie, MCLMC")
RECOMPUTED = [case for case in CASES if case["posterior"] != HIERARCHICAL and case["entrant"] in STEADY]
FIRST = 15  # compiling
FEW, FAR, WRONG, RIGHT = scoring.FEW, "too few and far off", scoring.WRONG, scoring.RIGHT
STILL, LATE, BROKEN = "still tuning", "out of time", "not finite"  # verdicts where there is nothing to judge
NUMBERS = (
    "draws", "spent", "bias", "bias_error", "distance", "far", "ess", "rhat", "log_lik_bias", "log_lik_error",
)  # fmt: skip
UNCOMPARED = ("capped",)


@dataclass(frozen=True, eq=False)
class Run:
    """Chains side by side, cut to the length of the shortest.

    Attributes
    ----------
    values : (chain, draw, functional)
    gradients : (draw,), what all chains together had spent until each has this draw, warm-up included
    """

    values: np.ndarray
    gradients: np.ndarray

    def cut(self, budget):
        """How many draws of each chain a budget of gradients pays (int)."""
        return int(np.searchsorted(self.gradients, budget, side="right"))


NOTHING = Run(np.empty((4, 0, 0)), np.empty(0))


def join(chains):
    """Chains (`_entrants.Chain`) as a `Run`."""
    n = min(len(chain.values) for chain in chains)
    return Run(
        np.stack([chain.values[:n] for chain in chains]),
        np.sum([chain.gradients[:n] for chain in chains], axis=0),
    )


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly, and never so few for those that are not `STEADY` that a check might draw one."""
    seconds = 3 * NEED[case["posterior"]][1]
    return seconds if case["entrant"] in STEADY else max(2 * seconds, 61)


def compute(posterior, entrant, seed):
    """What one run was worth when it had spent so many gradients."""
    gradients, cpu = NEED[posterior]
    truth = scoring.load_reference(posterior)

    def run(most):
        return SAMPLE[entrant](posterior, seed, Budget(most * gradients, CAP * cpu))

    if entrant == "BlackJAX, LAPS":  # what it does depends on its budget
        tried = [run(most) for most in (BUDGETS[:1] if posterior == HIERARCHICAL else BUDGETS)]
        runs = [join(chains) for chains in tried] + [NOTHING] * (len(BUDGETS) - len(tried))
    else:
        tried = [run(BUDGETS[-1])]
        runs = [join(tried[0])] * len(BUDGETS)
    last = tried[-1]
    row = {"warmup": sum(chain.warmup for chain in last), "capped": is_capped(runs[-1], BUDGETS[-1] * gradients)}
    found = zip(runs, BUDGETS, strict=True)
    scores = [judge(run, run.cut(most * gradients), truth) for run, most in found]
    return row | {name: [score[name] for score in scores] for name in scores[0]}


def is_capped(run, budget):
    """Whether CPU-seconds ran out before a budget of gradients was spent, by a twentieth or more."""
    return bool(not len(run.gradients) or run.gradients[-1] < 0.95 * budget)


def judge(run, n, truth):
    """The score of the first `n` draws of each chain: a functional's name and `NUMBERS`, None where there is none."""
    nothing = {"at": None} | dict.fromkeys(NUMBERS)
    if n < 4:
        return nothing
    values = run.values[:, :n]
    spent = {"draws": n, "spent": float(run.gradients[n - 1])}
    if not np.isfinite(values).all():
        return nothing | spent
    found = scoring.compare_draws(values, truth)
    worst, last = int(abs(found.bias).argmax()), found.names.index("log_lik")
    numbers = {
        "bias": abs(found.bias[worst]), "bias_error": found.bias_error[worst], "distance": found.distance.max(),
        "far": (found.distance > found.limit).sum(), "ess": min(found.ess.min(), found.ess_tail.min()),
        "rhat": np.nanmax(found.rhat) if np.isfinite(found.rhat).any() else np.inf,
        "log_lik_bias": found.bias[last], "log_lik_error": found.bias_error[last],
    }  # fmt: skip
    return {"at": found.names[worst]} | spent | {name: float(f"{value:.5g}") for name, value in numbers.items()}


def name_verdict(row, k):
    """The verdict of a run at its `k`-th budget, by the scorer's rule, from the numbers of its row.

    Draws that are too few to be judged and farther from the reference than chance allows have a word of their own. A
    warm-up that the clock cut off is out of time, one that the budget cut off still tuning.
    """
    if row["draws"][k] is None:
        budget = BUDGETS[k] * NEED[row["posterior"]][0]
        return LATE if row["capped"] and row["warmup"] < budget else STILL
    if row["ess"][k] is None:
        return BROKEN
    n_chains = MEMBERS if row["entrant"] == "BlackJAX, MEADS" else 4
    effective = min(row["ess"][k], n_chains * row["draws"][k])
    if row["draws"][k] < scoring.LEAST_LENGTH or not effective > diagnostics.ESS_LIMIT:
        return FAR if row["far"][k] else FEW
    return WRONG if row["far"][k] else RIGHT
