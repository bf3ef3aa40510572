"""Do four chains of the hierarchical network agree? Three data sets, 5, 8 and 12 hidden units.

Five units are the articles' choice. For each run: the diagnostics of what is identified, and what keeps chains apart.
Silencing a unit means to multiply its output by zero; its strength is by how much that moves the logits of the training
points (root mean square). Every 20th draw is tried.
"""

from functools import lru_cache

import numpy as np
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling

MEASURED = False
# the book's network and settings, chosen on rotated_moons(seed=101), 102 and 103; the others get more draws, so that
# every width takes about as long
N_HIDDEN, DRAWS, TUNE, TARGET = 12, 700, 600, 0.9
SETTINGS = {5: (1500, 1000), 8: (1500, 1000), N_HIDDEN: (DRAWS, TUNE)}
DATA_SETS = ("legacy", "1", "2")
CASES = [
    {"n_hidden": n_hidden, "data": name, "seed": seed}
    for n_hidden, seeds in {5: (1, 2), 8: (1,), N_HIDDEN: (1,)}.items()
    for name in DATA_SETS
    for seed in seeds
]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 60 if case["n_hidden"] == N_HIDDEN else 120


def load_moons(name):
    """The articles' data set, or one of ours by its seed."""
    return data.legacy_rotated_moons() if name == "legacy" else data.rotated_moons(seed=int(name))


@lru_cache
def compile_network(n_hidden):
    """Compiled once for each width; data sets are swapped."""
    moons = load_moons("legacy")
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(n_hidden, n_hidden))
    return sampling.compile_nuts(fuse(model))


def compute(n_hidden, data, seed):
    """Diagnostics of 1,800 probabilities on a grid, of the data's, of sds and log likelihood; and the chains' modes."""
    moons = load_moons(data)
    compiled = compile_network(n_hidden).with_data(X=moons.X_train, labels=moons.y_train)
    draws, tune = SETTINGS[n_hidden]
    tree = sampling.sample_nuts(compiled, seed=seed, draws=draws, tune=tune, target_accept=TARGET)
    found, loglik = check_run(tree, moons)
    strength = measure_strength(tree["posterior"], moons.X_train)
    thin = loglik[:, ::THIN]
    sds = {f"sd{k}_{c}": float(tree["posterior"][f"sd{k}"][c].mean()) for k in (1, 2, 3) for c in range(4)}
    return found | sds | {
        "gradients_per_draw": float(tree["sample_stats"]["n_steps"].mean()),
        **{f"loglik_{c}": float(loglik[c].mean()) for c in range(4)},
        **{f"weakest_{c}": float(strength[c].min(axis=1).mean()) for c in range(4)},
        "weakest_with_loglik": float(np.corrcoef(strength.min(axis=2).ravel(), thin.ravel())[0, 1]),
    }  # fmt: skip


def check_run(tree, moons):
    """Verdict on a run, and the log likelihood of its draws (chain, draw)."""
    posterior = tree["posterior"]
    p = prediction.predict_groups(posterior, moons.X_train, activation="tanh")
    loglik = np.log(np.where(moons.y_train == 1, p, 1 - p)).sum(axis=(2, 3))
    quantities = {
        "grid": prediction.predict_groups(posterior, GRID, activation="tanh"),
        "data": p,
        **{f"sd{k}": posterior[f"sd{k}"].values for k in (1, 2, 3)},
        "log likelihood": loglik,
    }
    found = diagnostics.verdict(quantities, tree)
    return {
        "rhat": found.rhat, "rhat_at": found.rhat_at, "ess": found.ess, "ess_at": found.ess_at,
        "ess_tail": found.ess_tail, "divergences": found.divergences, "move": found.move,
        "depth_share": found.depth_share, "converged": found.converged,
    }, loglik  # fmt: skip


GRID, THIN = data.grid(10), 20


def measure_strength(posterior, X):
    """Root mean square change of the logits when a hidden unit is silenced: (chain, draw, unit), both layers' units."""
    weights = prediction.combine_weights(posterior.isel(draw=slice(None, None, THIN)))
    w1, w2, w3 = (w.reshape(-1, *w.shape[2:]) for w in weights.values())
    h1 = np.tanh(X @ w1)
    h2 = np.tanh(h1 @ w2)
    whole = (h2 @ w3[..., None])[..., 0]
    changes = [h2[..., k] * w3[:, :, None, k] for k in range(w3.shape[-1])]
    for k in range(w2.shape[-2]):
        silent = np.tanh(h1 @ w2 - h1[..., k : k + 1] * w2[:, :, None, k])
        changes.append(whole - (silent @ w3[..., None])[..., 0])
    strength = np.stack([np.sqrt((c**2).mean(axis=(1, 2))) for c in changes], axis=-1)
    return strength.reshape(len(weights["w1"]), -1, strength.shape[-1])
