"""Read-outs of the groups sampled, or integrated out: what a posterior costs either way, on four tables of curves.

The network of `growth_curves`, fitted to all individuals but the first fold of `curve_rivals`. Compiled first; CPU
time is that of sampling alone. Effective sizes are of what both ways share and identify: the mean curve, how far
individuals lie apart, the noise.
"""

import time

import numpy as np
import pymc as pm
from hbnn import diagnostics, fuse, sampling

from studies import curve_networks
from studies.curve_networks import N_HIDDEN
from studies.curve_rivals import DATA, leave_out

MEASURED = True
WAYS = ("sampled, plain PyMC", "sampled, fused", "integrated")
CASES = [{"data": name, "way": way} for name in DATA for way in WAYS]
SEED = 1
REPEATS = 300  # of a gradient


def build(known, way):
    """The network, with the read-outs of the groups as unknowns (non-centred) or integrated out."""
    if way == "integrated":
        return curve_networks.build(known)
    x, y, _, _ = known.standardise()
    x, y, group = x[known.train, None], y[known.train], known.train_group()
    n_groups = int(group.max()) + 1
    with pm.Model() as model:
        w, b = pm.Normal("w", 0, 1, shape=(1, N_HIDDEN)), pm.Normal("b", 0, 1, shape=N_HIDDEN)
        mu = pm.Normal("mu", 0, 1, shape=N_HIDDEN + 1)
        tau_shape, tau_level = pm.HalfNormal("tau_shape", 1), pm.HalfNormal("tau_level", 1)
        sigma = pm.HalfNormal("sigma", 1)
        w2 = mu[:N_HIDDEN] + tau_shape * pm.Normal("z", 0, 1, shape=(n_groups, N_HIDDEN))
        level = mu[N_HIDDEN] + tau_level * pm.Normal("z_level", 0, 1, shape=n_groups)
        b2 = level - (w2 * pm.math.tanh(x.min() * w[0] + b)).sum(axis=1)  # shapes are 0 where curves begin
        pm.Normal("y", (pm.math.tanh(x @ w + b) * w2[group]).sum(axis=1) + b2[group], sigma, observed=y)
    return fuse(model) if way == "sampled, fused" else model


def time_gradient(model):
    """Microseconds of one log density with its gradient, compiled by Numba."""
    call = model.logp_dlogp_function(mode="NUMBA", ravel_inputs=True)
    call.set_extra_values({})
    start = np.concatenate([np.ravel(value) for value in model.initial_point().values()])
    call(start)
    begin = time.process_time()
    for _ in range(REPEATS):
        call(start)
    return 1e6 * (time.process_time() - begin) / REPEATS


def compute(data, way):
    """Cost, and what it buys: CPU-seconds, gradients a draw, microseconds a gradient, R-hat, effective sizes."""
    known = leave_out(data, 1, 0)
    model = build(known, way)
    compiled = sampling.compile_nuts(model)
    begin = time.process_time()
    tree = sampling.sample_nuts(compiled, seed=SEED, **curve_networks.SAMPLER)
    seconds = time.process_time() - begin
    x = known.standardise()[0][known.train]
    p = {name: values.values for name, values in tree["posterior"].data_vars.items()}
    chains = p["sigma"].shape
    p = {name: values.reshape(-1, *values.shape[2:]) for name, values in p.items()} | {
        "w": p["w"].reshape(-1, N_HIDDEN)
    }
    units = curve_networks.find_units(p, np.quantile(x, np.linspace(0, 1, 15)), x.min(), False)
    apart = np.sqrt(np.einsum("dru,du->dr", units**2, curve_networks.find_taus(p) ** 2))
    asked = {"curve": np.einsum("dru,du->dr", units, p["mu"]), "apart": apart, "noise": p["sigma"]}
    asked = {name: values.reshape(*chains, *values.shape[1:]) for name, values in asked.items()}
    verdict = diagnostics.verdict(asked, tree)
    least = min(verdict.ess, verdict.ess_tail)
    return {
        "unknowns": int(sum(value.size for value in model.initial_point().values())),
        "cpu_seconds": round(seconds, 2),
        "gradients": round(float(tree["sample_stats"]["n_steps"].mean()), 1),
        "microseconds": round(time_gradient(model), 1),
        "rhat": round(float(verdict.rhat), 4),
        "ess": round(float(least)),
        "ess_per_second": round(float(least) / seconds, 2),
        "passed": bool(verdict.converged),
    }
