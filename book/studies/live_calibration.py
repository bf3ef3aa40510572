"""Simulation-based calibration of the sampler on the live pages, as `calibration` does it for nutpie.

Draw networks from the prior, labels from the networks, and let the page's sampler draw from the posterior of those
labels, in Node. Then the truth's rank among the draws must be uniform, for every function of the unknowns that no
relabelling of hidden units changes: probabilities at three points, the log likelihood, and the group sds.

Source: as in `calibration`, Talts et al. (2018) and Modrák et al. (2023).
"""

import numpy as np
from scipy.special import expit

from studies._node import run_in_node
from studies.calibration import N_RANKS, POINTS, SHAPES, compute_logit, draw_truth

MEASURED = False
READS = (
    "_static/live/elementary.js", "_static/live/random.js", "_static/live/network.js", "_static/live/nuts.js",
    "_static/live/run.js",
)  # fmt: skip
N_SIMULATIONS = {"flat": 200, "hierarchical": 100}
CASES = [{"model": model, "seed": seed} for model, n in N_SIMULATIONS.items() for seed in range(1, n + 1)]
SETTINGS = {"draws": 500, "tune": 400, "targetAccept": 0.9}
SAMPLE = """
  const model = live.makeModel({ ...data.model, X: Float64Array.from(data.model.X) });
  const chain = live.makeChain({ model, seed: data.seed, chain: 0, ...data.settings }), draws = [];
  const points = Float64Array.from(data.points), p = new Float64Array(points.length / 2);
  const groups = new Int32Array(p.length);
  let divergences = 0;
  while (!chain.done) {
    const { theta, tuning, divergent } = chain.step();
    if (tuning) continue;
    model.predict(theta, points, p, groups);
    divergences += divergent;
    draws.push([...p, model.logLikelihood(theta), ...Object.values(model.describe(theta))]);
  }
  return { draws, divergences }"""


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 1.2 if case["model"] == "flat" else 3


def describe_model(model, X, y):
    """What the page would hand to its sampler for these data (dict)."""
    n_groups, n_obs, hidden = SHAPES[model]
    found = {"kind": model, "X": X.ravel().tolist(), "y": y.ravel().tolist(), "hidden": list(hidden)}
    if model == "hierarchical":
        found |= {"group": np.repeat(range(n_groups), n_obs).tolist(), "nGroups": n_groups}
    return found


def compute(model, seed):
    """The rank of the truth among 100 thinned draws, for each quantity, and the run's divergences."""
    truth, X, y = draw_truth(model, seed)
    logits = compute_logit(truth, X)
    true = {f"probability {k}": p for k, p in enumerate(expit(compute_logit(truth, POINTS[None])[0]))}
    true["log likelihood"] = -np.logaddexp(0, np.where(y == 1, -logits, logits)).sum()
    true |= {f"sd{k}": truth[f"sd{k}"] for k in (1, 2, 3) if model == "hierarchical"}
    run = run_in_node(
        SAMPLE, model=describe_model(model, X, y), seed=seed, settings=SETTINGS, points=POINTS.ravel().tolist()
    )
    draws = np.array(run["draws"], float)
    thinned = draws[:: len(draws) // N_RANKS][:N_RANKS]
    row = {f"rank of {name}": int((column < true[name]).sum()) for name, column in zip(true, thinned.T, strict=True)}
    row |= {f"rank of sd{k}": None for k in (1, 2, 3) if model == "flat"}
    return row | {"divergences": run["divergences"]}
