"""Which check notices which mistake? Faults of known size, planted in the analysis of data whose truth is known.

A small hierarchical network for numbers: six groups, twelve rows each, two hidden units that all groups share, and
read-outs of their own, which are integrated out while sampling (`hbnn.fusion.readouts`). The priors keep the units
apart, so chains have nothing to disagree about, and what a check says is due to the fault. Truth and data are drawn
from the right priors, by code that shares nothing with the model; the fault sits in the analysis:

- "prior": the scale of the group sds' prior is `dose` times the right one;
- "dropped": the last `dose` rows, which are in random order, do not reach the model;
- "index in the data": `dose` rows are taken for the next group's: the first of the last group (which is counted from
  the start again), the first of each group, or all rows;
- "index in predictions": the read-outs of the next group are taken for those of the first `dose` groups;
- "repeated": thinning keeps each draw `dose` times in a row, in place of so many draws;
- "out of step": read-outs are taken from `dose` draws earlier than all the rest;
- "sorted": each number's draws are sorted, in each chain;
- "astray": the second chain is of other data; "astray, mixed": and the axes of chains and draws were exchanged.

A row is `N` fits. Where truths are drawn from the prior, as in prior SBC, each fit is also asked by the checks that
need a single fit, and the row counts how many of them complain. Where truths are draws of one data set's posterior, as
in posterior SBC, each refit has these data and as many rows again that were simulated from such a truth; base fit and
refits have the same fault, being the same program.

Sources: Talts et al. (2018), arXiv:1804.06788, for prior SBC; Modrák et al. (2023), Bayesian Analysis, for the log
likelihood among the quantities; Säilynoja et al. (2025), arXiv:2502.03279, algorithm of posterior SBC; Kallioinen et
al. (2024), Statistics and Computing 34, for power-scaling; for LOO-PIT values and the test that they are uniform,
ArviZ, as in its `plot_loo_pit`.
"""

from functools import lru_cache

import arviz as az
import numpy as np
import pymc as pm
from arviz_stats.base import array_stats
from hbnn import sampling
from hbnn.fusion.readouts import integrate_readouts
from scipy import stats

MEASURED = False
N = 50  # fits in a row
N_GROUPS, N_ROWS, N_UNITS = 6, 12, 2
SETTINGS = {"chains": 2, "draws": 300, "tune": 200, "target_accept": 0.9}
THIN = 2
SHIFT, WIDTH = np.array([-1.5, 1.5]), 0.5  # of the hidden units' biases, and the prior sd of hidden weights
QUANTITIES = ("sd of weights", "sd of levels", "noise", "prediction", "log likelihood")
RHAT, ESS = 1.05, 50  # limits for 300 draws: 100 of 100 sound fits passed, with seed 901
SENSITIVE = 0.05  # the published limit of power-scaling's diagnostic
LEVEL = 0.05
CHECKS = ("verdict", "sensitivity", "LOO-PIT", "coverage")  # that need a single fit
DOSES = {
    "none": (0,), "index in predictions": (1, 6), "repeated": (5, 25), "out of step": (1,), "sorted": (0,),
    "astray": (0,), "astray, mixed": (0,), "prior": (0.5, 0.9, 1.1, 2, 4), "dropped": (1, 5, 20),
    "index in the data": (1, 6, 72),
}  # fmt: skip
IN_POSTERIOR = {"none": (0,), "sorted": (0,), "prior": (0.5,), "index in the data": (72,)}
IN_FIT = ("prior", "dropped", "index in the data")


def _list_cases(truths, doses, seeds, of_none=()):
    """Cases whose fits are the same stand together."""
    each = [(fault, dose) for fault in doses for dose in doses[fault]]
    shared, own = ([pair for pair in each if (pair[0] in IN_FIT) is kind] for kind in (False, True))
    order = [(pair, seed) for seed in seeds for pair in shared] + [(("none", 0), seed) for seed in of_none]
    order += [(pair, seed) for pair in own for seed in seeds]
    return [{"truths": truths, "fault": fault, "dose": dose, "seed": seed} for (fault, dose), seed in order]


CASES = _list_cases("prior", DOSES, range(1, 3), range(3, 5)) + _list_cases("posterior", IN_POSTERIOR, range(1, 5))
FIRST = 12  # CPU-seconds to compile


def block(case):
    """Rows that can share their fits."""
    if case["fault"] in IN_FIT or case["truths"] == "posterior":
        return str(case)
    return str((case["truths"], case["seed"]))


def estimate(case):
    """CPU-seconds of a row, roughly, its fits being made for it alone."""
    return 11 if case["truths"] == "prior" else 14


# --- truth and data, by code that the model does not share


def draw_truth(rng):
    """What there is to know of one network and its groups: dict of name to array."""
    truth = {
        "w1": 1.5 + WIDTH * rng.normal(size=N_UNITS), "b1": SHIFT + WIDTH * rng.normal(size=N_UNITS),
        "mu": rng.normal(size=N_UNITS + 1), "sd": abs(rng.normal(size=2)), "noise": np.exp(0.3 * rng.normal() - 1),
    }  # fmt: skip
    z = rng.normal(size=(N_GROUPS, N_UNITS + 1))
    return truth | {"w": truth["mu"] + truth["sd"][[*[0] * N_UNITS, 1]] * z}


def draw_rows(rng):
    """Points (row,) and groups (row,), in random order."""
    order = rng.permutation(N_GROUPS * N_ROWS)
    return rng.uniform(-2, 2, size=len(order)), np.repeat(np.arange(N_GROUPS), N_ROWS)[order]


def draw_outcomes(truth, x, g, rng):
    """Outcomes (row,) of a network at points of groups."""
    return compute_mean(truth, x, g) + truth["noise"] * rng.normal(size=len(x))


def compute_mean(draws, x, g):
    """Means (…, row) of networks, one or many along leading axes, at points (row,) of groups (row,)."""
    h = np.tanh(x[:, None] * draws["w1"][..., None, :] + draws["b1"][..., None, :])
    w = draws["w"][..., g, :]
    return (h * w[..., :-1]).sum(axis=-1) + w[..., -1]


def compute_loglik(draws, x, y, g):
    """Log likelihood (…, row) of outcomes under networks."""
    return stats.norm.logpdf(y, compute_mean(draws, x, g), draws["noise"][..., None])


# --- the model, and its draws


@lru_cache
def compile_model():
    """The network, compiled once; points, outcomes, groups and the prior's scale are swapped."""
    x, g = draw_rows(np.random.default_rng(0))
    with pm.Model() as model:
        x, y, g = pm.Data("x", x), pm.Data("seen", np.sin(x)), pm.Data("g", g)
        scale = pm.Data("scale", 1.0)
        w1 = pm.Normal("w1", 1.5, WIDTH, shape=N_UNITS)
        b1 = pm.Normal("b1", SHIFT, WIDTH, shape=N_UNITS)
        mu = pm.Normal("mu", 0, 1, shape=N_UNITS + 1)
        sd = pm.HalfNormal("sd", scale, shape=2)
        noise = pm.LogNormal("noise", -1, 0.3)
        h = pm.math.tanh(x[:, None] * w1 + b1)
        units = pm.math.concatenate([h, pm.math.ones_like(x)[:, None]], axis=1)
        pm.Potential("y", integrate_readouts(units, y, g, mu, sd[[*[0] * N_UNITS, 1]], noise))
    return sampling.compile_nuts(model)


def fit(x, y, g, fault, dose, seed):
    """Draws (chain, draw, …) of all that a truth has, thinned, with a fault; and the rows that the model was given."""
    x, y, g = plant_in_data(x, y, g, fault, dose)
    scale = float(dose) if fault == "prior" else 1.0
    tree = sampling.sample_nuts(compile_model().with_data(x=x, seen=y, g=g, scale=scale), seed=seed, **SETTINGS)
    draws = {name: tree["posterior"][name].values[:, ::THIN] for name in ("w1", "b1", "mu", "sd", "noise")}
    draws["w"] = draw_readouts(draws, x, y, g, np.random.default_rng([seed, 1]))
    return draws, (x, y, g)


def draw_readouts(draws, x, y, g, rng):
    """Read-outs of each group given all the rest, exactly, (chain, draw, group, unit + 1).

    Source: Bishop (2006), Pattern Recognition and Machine Learning, section 3.3.
    """
    sd, noise = draws["sd"][..., [*[0] * N_UNITS, 1]], draws["noise"][..., None, None]
    h = np.tanh(x[:, None] * draws["w1"][..., None, :] + draws["b1"][..., None, :])
    h = np.concatenate([h, np.ones((*h.shape[:-1], 1))], axis=-1)
    rest = (y - (h * draws["mu"][..., None, :]).sum(axis=-1))[..., None] / noise
    scaled = h * sd[..., None, :] / noise
    w = []
    for group in range(N_GROUPS):
        own = scaled[..., g == group, :].swapaxes(-1, -2)
        root = np.linalg.cholesky(own @ own.swapaxes(-1, -2) + np.eye(N_UNITS + 1))  # of the precision of z
        along = np.linalg.solve(root, own @ rest[..., g == group, :])
        z = np.linalg.solve(root.swapaxes(-1, -2), along + rng.normal(size=along.shape))[..., 0]
        w.append(draws["mu"] + sd * z)
    return np.stack(w, axis=-2)


# --- the faults


def plant_in_data(x, y, g, fault, dose):
    """The rows that reach the model."""
    if fault == "dropped":
        return x[:-dose], y[:-dose], g[:-dose]
    if fault == "index in the data":
        is_last, is_first = g == N_GROUPS - 1, np.isin(np.arange(len(g)), np.unique(g, return_index=True)[1])
        wrong = {1: is_first & is_last, N_GROUPS: is_first, N_GROUPS * N_ROWS: True}[dose]
        g = np.where(wrong, (g + 1) % N_GROUPS, g)
    return x, y, g


def plant_in_draws(draws, fault, dose, other=None):
    """The draws that are handed on, (chain, draw, …) each; `other` is a fit to other data."""
    n = draws["sd"].shape[1]
    if fault == "repeated":
        return {name: values[:, np.arange(n) // dose * dose] for name, values in draws.items()}
    if fault == "out of step":
        return draws | {"w": np.roll(draws["w"], dose, axis=1)}
    if fault == "sorted":
        return {name: np.sort(values, axis=1) for name, values in draws.items()}
    if fault.startswith("astray"):
        draws = {name: np.stack([values[0], other[name][1]]) for name, values in draws.items()}
    if fault == "astray, mixed":
        draws = {name: values.swapaxes(0, 1).reshape(values.shape) for name, values in draws.items()}
    return draws


def read_groups(fault, dose):
    """Which group's read-outs a prediction for each group takes, (group,)."""
    g = np.arange(N_GROUPS)
    return np.where(g < dose, (g + 1) % N_GROUPS, g) if fault == "index in predictions" else g


# --- the checks


def list_quantities(draws, x, y, g, read):
    """What is ranked and judged, (…) each."""
    asked = compute_mean(draws, np.ones(1), read[:1])[..., 0]  # group 0 at x = 1
    loglik = compute_loglik(draws, x, y, read[g]).sum(axis=-1)
    return dict(zip(QUANTITIES, (draws["sd"][..., 0], draws["sd"][..., 1], draws["noise"], asked, loglik), strict=True))


def check_convergence(quantities):
    """Largest R-hat and smallest bulk ESS."""
    values = np.stack(list(quantities.values()))
    return float(array_stats.rhat(values).max()), float(array_stats.ess(values).min())


def check_sensitivity(draws, scale):
    """Power-scaling sensitivity of the group sds to their prior, the larger of two."""
    log_prior = stats.halfnorm.logpdf(draws["sd"], scale=scale)
    posterior = {"sd": draws["sd"]}
    tree = az.from_dict({"posterior": posterior, "log_prior": {"sd": log_prior}})
    return float(az.psense(tree, group="prior")["sd"].max())


def check_pit(draws, rows, read, rng):
    """p-values that LOO-PIT values are uniform, and that intervals cover as they should, as in ArviZ's plots."""
    x, y, g = rows
    mean = compute_mean(draws, x, read[g])
    predicted = mean + draws["noise"][..., None] * rng.normal(size=mean.shape)
    tree = az.from_dict({
        "posterior": {"noise": draws["noise"]}, "posterior_predictive": {"y": predicted}, "observed_data": {"y": y},
        "log_likelihood": {"y": compute_loglik(draws, x, y, g)},
    })  # fmt: skip
    with np.errstate(invalid="ignore"):  # draws that cannot have made the data
        pit = az.loo_pit(tree, pareto_pit=True)["y"].values
    return tuple(float(array_stats.uniformity_test(u)[0]) for u in (pit, 2 * abs(pit - 0.5)))


# --- rows


@lru_cache(maxsize=1)
def fit_to_prior(fault, dose, seed):
    """Truths from the prior, their data, and fits with a fault of data or prior: (truth, rows, draws, rows given)."""
    found = []
    for own in np.random.default_rng(seed).integers(2**31, size=N):
        rng = np.random.default_rng(own)
        truth, (x, g) = draw_truth(rng), draw_rows(rng)
        y = draw_outcomes(truth, x, g, rng)
        found.append((truth, (x, y, g), *fit(x, y, g, fault, dose, int(own))))
    return found


def fit_to_posterior(fault, dose, seed):
    """Truths from one posterior, its data with as many rows of the truth's, and fits: (truth, rows, draws, rows given).

    Source: Säilynoja et al. (2025), arXiv:2502.03279.
    """
    rng = np.random.default_rng([seed, 1])
    x, g = draw_rows(rng)
    y = draw_outcomes(draw_truth(rng), x, g, rng)
    seeds = rng.integers(2**31, size=N + 1)
    draws = plant_in_draws(fit(x, y, g, fault, dose, int(seeds[N]))[0], fault, dose)
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in draws.items()}
    both_x, both_g, found = np.tile(x, 2), np.tile(g, 2), []
    for own, place in zip(seeds, np.linspace(0, len(flat["sd"]) - 1, N).astype(int), strict=False):
        truth = {name: values[place] for name, values in flat.items()}
        both = both_x, np.concatenate([y, draw_outcomes(truth, x, g, np.random.default_rng(own))]), both_g
        found.append((truth, both, *fit(*both, fault, dose, int(own))))
    return found


def compute(truths, fault, dose, seed):
    """The truth's ranks among the draws of each fit, and how many fits each check complains about."""
    in_fit = (fault, dose) if fault in IN_FIT or truths == "posterior" else ("none", 0)
    sims = (fit_to_prior if truths == "prior" else fit_to_posterior)(*in_fit, seed)
    read, rng = read_groups(fault, dose), np.random.default_rng([seed, 7])
    row = {f"rank of {name}": [] for name in QUANTITIES} | dict.fromkeys(CHECKS, 0 if truths == "prior" else None)
    others = [draws for _, _, draws, _ in sims[1:] + sims[:1]]
    for (truth, (x, y, g), draws, given), other in zip(sims, others, strict=True):
        draws = plant_in_draws(draws, fault, dose, other)
        asked = list_quantities(draws, x, y, g, read)
        true = list_quantities(truth, x, y, g, np.arange(N_GROUPS))
        for name in QUANTITIES:
            row[f"rank of {name}"].append(int((asked[name] < true[name]).sum()))
        if truths == "prior":
            rhat, ess = check_convergence(asked)
            sensitivity = check_sensitivity(draws, dose if fault == "prior" else 1.0)
            pit, coverage = check_pit(draws, given, read, rng)
            found = rhat > RHAT or ess < ESS, sensitivity >= SENSITIVE, pit < LEVEL, coverage < LEVEL
            for name, alarm in zip(CHECKS, found, strict=True):
                row[name] += int(alarm)
    return row
