"""Samplers scored by `hbnn.reference`, and the scorer by itself: how often it calls the right wrong, and what it sees.

A row whose `what` is "shift 0.2" draws a reference anew from the stored draws, and draws of a sampler that is right but
for one functional, another one each time, which is shifted so far; with "shift 0.0" all are right. In a row "grid
CHAINSxDRAWS rho R" all are right, too: a chain stays where it is with probability R, and else goes to another draw, so
that R is the autocorrelation of everything. The other rows are samplers, each with four chains, or with independent
draws. Each was run with one setting, and no other was tried.
"""

from functools import lru_cache

import numpy as np
import pymc as pm
from hbnn import fuse, sampling
from hbnn.reference import posteriors, scoring
from hbnn.reference.posteriors import CURVES, FLAT, HIERARCHICAL

from studies._node import run_in_node
from studies.reference import build_curves

MEASURED = False
READS = (
    "data/reference.json",  # its draws are stored, and this table changes with them
    "_static/live/elementary.js", "_static/live/random.js", "_static/live/network.js", "_static/live/nuts.js",
    "_static/live/run.js",
)  # fmt: skip
N_REPEATS, DRAWS, SHIFTS = 40, (4, 1000), (0.0, 0.1, 0.2)
GRID = [  # chains, draws of each, autocorrelation
    (64, 7, 0.0), (64, 100, 0.0), (4, 1000, 0.0), (4, 1000, 0.6), (4, 4000, 0.9), (16, 250, 0.0), (16, 500, 0.6),
    (64, 250, 0.0), (64, 250, 0.6),
]  # fmt: skip
N_GRID = 100
SETTINGS = {
    FLAT: {"draws": 1500, "tune": 700, "target_accept": 0.95},
    CURVES: {"draws": 700, "tune": 700, "target_accept": 0.95},
    HIERARCHICAL: {"draws": 700, "tune": 600, "target_accept": 0.9},
}
ENTRANTS = {
    "nutpie": (FLAT, CURVES, HIERARCHICAL), "PyMC": (FLAT, CURVES), "in the page": (FLAT,),
    "ADVI": (FLAT, CURVES, HIERARCHICAL), "nutpie, MCLMC": (FLAT, HIERARCHICAL),
}  # fmt: skip
SECONDS = {"nutpie": 25, "PyMC": 90, "in the page": 180, "ADVI": 30, "nutpie, MCLMC": 40}
CASES = [
    {"posterior": name, "what": f"shift {shift}", "seed": seed}
    for name in (FLAT, HIERARCHICAL, CURVES) for shift in SHIFTS for seed in (1, 2, 3)
] + [
    {"posterior": FLAT, "what": f"grid {m}x{n} rho {rho}", "seed": 1} for m, n, rho in GRID
] + [
    {"posterior": name, "what": entrant, "seed": seed}
    for entrant, names in ENTRANTS.items() for name in names for seed in ((1, 2, 3) if entrant == "nutpie" else (1,))
]  # fmt: skip
RECOMPUTED = [case for case in CASES if case["what"].startswith(("shift", "grid")) or case["what"] == "ADVI"]
SAMPLE = """
  const model = live.makeModel({ ...data.model, X: Float64Array.from(data.model.X) });
  const points = Float64Array.from(data.points), p = new Float64Array(points.length / 2);
  return [0, 1, 2, 3].map((number) => {
    const chain = live.makeChain({ model, seed: data.seed, chain: number, ...data.settings }), draws = [];
    while (!chain.done) {
      const { theta, tuning } = chain.step();
      if (tuning) continue;
      model.predict(theta, points, p);
      draws.push([...p, model.logLikelihood(theta)]);
    }
    return draws;
  });"""


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    more = 2 if case["posterior"] == HIERARCHICAL else 1
    if case["what"].startswith("grid "):
        m, n, _ = read_grid(case["what"])
        return 2 + N_GRID * m * n / 8_000
    return 15 if case["what"].startswith("shift") else more * SECONDS[case["what"]]


def compute(posterior, what, seed):
    """How often the scorer is wrong, or how it scores a sampler."""
    nothing = dict.fromkeys(
        ("alarms", "judged", "seen", "repeats", "verdict", "far", "distance", "at", "bias", "bias_error", "spread",
         "spread_error", "ess", "rhat", "visible", "log_lik_bias", "log_lik_error")
    )  # fmt: skip
    if what.startswith("shift "):
        return nothing | score_the_scorer(posterior, float(what.removeprefix("shift ")), seed)
    if what.startswith("grid "):
        return nothing | score_the_right(posterior, *read_grid(what), seed)
    found = scoring.score_draws(DRAW[what](posterior, seed), posterior)
    worst, last = int(found.distance.argmax()), found.names.index("log_lik")
    return nothing | {
        "verdict": found.verdict, "far": int((found.distance > found.limit).sum()),
        "distance": float(found.distance[worst]), "at": found.names[worst],
        "bias": float(found.bias[worst]), "bias_error": float(found.bias_error[worst]),
        "spread": float(found.spread[worst]), "spread_error": float(found.spread_error[worst]),
        "ess": float(min(found.ess.min(), found.ess_tail.min())), "rhat": float(found.rhat.max()),
        "visible": found.visible,
        "log_lik_bias": float(found.bias[last]), "log_lik_error": float(found.bias_error[last]),
    }  # fmt: skip


def score_the_scorer(posterior, shift, seed):
    """Verdicts on draws from the reference itself, one functional of which is shifted by so many posterior sds."""
    rng, rows = np.random.default_rng(seed), load_rows(posterior)
    n, size = rows.shape
    alarms = seen = 0
    for _ in range(N_REPEATS):
        own = draw_reference(posterior, rng)
        draws, k = rows[rng.integers(n, size=DRAWS)], rng.integers(size)
        draws[..., k] += shift * rows[:, k].std()
        found = scoring.compare_draws(draws, own)
        alarms += found.verdict == scoring.WRONG
        seen += bool(found.distance[k] > found.limit)
    return {"alarms": alarms, "seen": seen, "repeats": N_REPEATS}


def read_grid(what):
    """Chains, draws of each and their autocorrelation, from the name of a row."""
    shape, rho = what.removeprefix("grid ").split(" rho ")
    return *map(int, shape.split("x")), float(rho)


def score_the_right(posterior, n_chains, n_draws, rho, seed):
    """Verdicts on chains from the reference itself, which stay where they are with probability `rho`."""
    rng, rows = np.random.default_rng([seed, n_chains, n_draws, int(10 * rho)]), load_rows(posterior)
    alarms = judged = far = 0
    for _ in range(N_GRID):
        own = draw_reference(posterior, rng)
        place = rng.integers(len(rows), size=(n_chains, n_draws))
        stays = rng.random((n_chains, n_draws)) < rho
        stays[:, 0] = False
        since = np.maximum.accumulate(np.where(stays, 0, np.arange(n_draws)), axis=1)
        found = scoring.compare_draws(rows[np.take_along_axis(place, since, axis=1)], own)
        alarms += found.verdict == scoring.WRONG
        judged += found.verdict != scoring.FEW
        far += bool(found.distance.max() > found.limit)
    return {"alarms": alarms, "judged": judged, "far": int(far), "repeats": N_GRID}


def draw_reference(posterior, rng):
    """A reference of its own, as many independent draws from the stored ones as there are."""
    names, rows = scoring.load_reference(posterior).names, load_rows(posterior)
    n, size = rows.shape
    return scoring.Reference(names, np.sort(rows[rng.integers(n, size=n)], axis=0), np.full(size, float(n)))


@lru_cache
def load_rows(posterior):
    """The stored draws, all functionals of a draw together: (draw, functional)."""
    chains = posteriors.read_chains(posterior)
    return np.concatenate([np.column_stack(list(chain.values())) for chain in chains])


# --- samplers


@lru_cache
def build(posterior):
    """The model in the form that is fast."""
    return build_curves() if posterior == CURVES else fuse(posteriors.build_posterior(posterior))


def pick(posterior, tree):
    """The unknowns of a tree: dict of arrays (chain, draw, …)."""
    return {name: tree["posterior"][name].values for name in posteriors.load_posterior(posterior).unknowns}


def draw_nutpie(posterior, seed):
    """NUTS by nutpie, with other seeds than the reference's."""
    tree = sampling.sample_nuts(sampling.compile_nuts(build(posterior)), seed=100 + seed, **SETTINGS[posterior])
    return pick(posterior, tree)


def draw_pymc(posterior, seed):
    """NUTS by PyMC itself."""
    wanted = SETTINGS[posterior] | sampling.ONE_CORE
    tree = pm.sample(model=build(posterior), random_seed=seed, nuts_sampler="pymc", **wanted)
    return pick(posterior, tree)


def draw_mclmc(posterior, seed):
    """nutpie's microcanonical sampler as it comes: no accept step, and so a bias that its step size decides."""
    import nutpie

    wanted = {"draws": SETTINGS[posterior]["draws"], "tune": SETTINGS[posterior]["tune"]}
    tree = nutpie.sample(
        sampling.compile_nuts(build(posterior)), sampler="mclmc", chains=4, cores=1, progress_bar=False,
        save_warmup=False, seed=sampling.derive_seed(seed), **wanted,
    )  # fmt: skip
    return pick(posterior, tree)


def draw_advi(posterior, seed):
    """Four thousand independent draws from a mean-field normal, the best of three starts, cut into four chains."""
    fits = [sampling.fit_advi(build(posterior), 30_000, seed=3 * seed + k) for k in range(3)]
    best = min(fits, key=lambda fit: fit.loss[-1000:].mean())
    draws = best.draw(4000, seed=seed)
    return {name: value.reshape(4, 1000, *value.shape[1:]) for name, value in draws.items()}


def draw_page(posterior, seed):
    """The sampler of the live boxes, in Node."""
    given, wanted = posteriors.load_posterior(posterior).data, SETTINGS[posterior]
    model = {"kind": "flat", "X": given["X"].ravel().tolist(), "y": given["y"].tolist(), "hidden": [5, 5]}
    settings = {"draws": wanted["draws"], "tune": wanted["tune"], "targetAccept": wanted["target_accept"]}
    chains = run_in_node(SAMPLE, model=model, seed=seed, settings=settings, points=given["X_new"].ravel().tolist())
    draws = np.array(chains, float)
    return {"p": draws[..., :-1], "log_lik": draws[..., -1]}


DRAW = {
    "nutpie": draw_nutpie, "PyMC": draw_pymc, "in the page": draw_page, "ADVI": draw_advi, "nutpie, MCLMC": draw_mclmc,
}  # fmt: skip
