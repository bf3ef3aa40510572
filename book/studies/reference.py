"""Reference draws of three posteriors, by two samplers that share no line of code, and a check of one by a third.

nutpie's NUTS walks through the PyMC models of ``hbnn/reference/data`` (their likelihoods fused, or read-outs integrated
by this book), BlackJAX's NUTS through log densities that are written anew below, in JAX. Ten chains each. A row holds,
for each functional, the mean, the sd and two quantiles of one chain with Monte Carlo errors, and the digest of the
thousand draws that are kept of it; the draws themselves lie beside the tasks until `python -m studies._reference_files`
has made the database's files of them.

Both are NUTS. So the flat network is asked by a third, too, that walks along no chain from where it began: sequential
Monte Carlo, twenty times. A row holds what one population of particles found, and no errors, which only the spread over
rows tells.
"""

import hashlib
import json
from functools import lru_cache

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats
from hbnn import diagnostics, fuse, sampling
from hbnn.fusion import readouts
from hbnn.reference import posteriors
from hbnn.reference.posteriors import CURVES, FLAT, HIERARCHICAL
from scipy import optimize

from studies import _tasks

MEASURED = False
N_CHAINS, N_KEPT, POPULATIONS, PARTICLES = 10, 1000, 20, 250
SAMPLERS, SMC = ("nutpie", "BlackJAX"), "tempered SMC"
MOVES, LAST, LEAPS, ACCEPTED = 8, 40, 16, 0.8  # of each particle at a temperature, and at the last one; steps of a move
# kept is every `thin`-th draw. Of nutpie's, so that all together have 10,000 effective draws of the slowest functional,
# and those that are kept nearly as many: from short runs with another seed, and for the flat network from a first run
# of ten chains, of whose kept draws (every sixth) that functional had 7,152. Of BlackJAX's, which are not published, as
# many as ten CPU-minutes allow
SETTINGS = {
    (FLAT, "nutpie"): {"thin": 10, "tune": 800, "target": 0.97},
    (CURVES, "nutpie"): {"thin": 4, "tune": 800, "target": 0.98},
    (HIERARCHICAL, "nutpie"): {"thin": 4, "tune": 600, "target": 0.9},
    (FLAT, "BlackJAX"): {"thin": 2, "tune": 800, "target": 0.9},
    (CURVES, "BlackJAX"): {"thin": 1, "tune": 800, "target": 0.95},
    (HIERARCHICAL, "BlackJAX"): {"thin": 1, "tune": 400, "target": 0.8},
}
SECONDS = {FLAT: (22, 15, 30), CURVES: (20, 27), HIERARCHICAL: (50, 55)}
FIRST = 12  # compiling
CASES = [
    {"posterior": name, "sampler": sampler, "seed": seed}
    for name in (FLAT, CURVES, HIERARCHICAL) for sampler in SAMPLERS for seed in range(1, N_CHAINS + 1)
] + [{"posterior": FLAT, "sampler": SMC, "seed": seed} for seed in range(1, POPULATIONS + 1)]  # fmt: skip
RECOMPUTED = [case for case in CASES if case["posterior"] != HIERARCHICAL and case["sampler"] == "nutpie"]
LEVELS = {"q05": 0.05, "q95": 0.95}


def block(case):
    """Every chain is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return SECONDS[case["posterior"]][(*SAMPLERS, SMC).index(case["sampler"])]


def compute(posterior, sampler, seed):
    """What one chain found: for each functional its moments, with errors; and the sampler's statistics."""
    if sampler == SMC:
        return compute_smc(posterior, seed)
    sample = {"nutpie": sample_nutpie, "BlackJAX": sample_blackjax}[sampler]
    draws, stats = sample(posterior, seed)
    asked = flatten(posteriors.load_posterior(posterior).compute(draws))[0]  # (draw, functional)
    thin = SETTINGS[posterior, sampler]["thin"]
    kept = asked[thin - 1 :: thin]
    keep(posterior, sampler, seed, kept)
    row = {"mean": asked.mean(axis=0), "mean_mcse": find_mcse(asked, "mean")}
    row |= {"sd": asked.std(axis=0, ddof=1), "sd_mcse": find_mcse(asked, "sd")}
    for name, level in LEVELS.items():
        row |= {name: np.quantile(asked, level, axis=0), f"{name}_mcse": find_mcse(asked, "quantile", prob=level)}
    row = {name: [float(f"{value:.8g}") for value in values] for name, values in row.items()}
    return row | stats | {"draws": digest_draws(posterior, kept)}


def flatten(found):
    """Functionals as one array (chain, draw, functional), in the order of `Posterior.names`."""
    return np.concatenate([value.reshape(*value.shape[:2], -1) for value in found.values()], axis=2)


def find_mcse(values, method, **options):
    """Monte Carlo standard error of each column of (draw, quantity)."""
    return array_stats.mcse(values.T[:, None], chain_axis=1, draw_axis=2, method=method, **options)


def keep(posterior, sampler, seed, draws):
    """Put draws where `write_draws` finds them."""
    path = find_path(posterior, sampler, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, draws)


def find_path(posterior, sampler, seed):
    """The file of one chain's draws, beside the tasks."""
    return _tasks.find_folder("reference") / "draws" / f"{posterior}.{sampler}.{seed}.npy"


def round_draws(posterior, draws):
    """A chain as the database has it: dict of functional to numbers of five digits."""
    names = posteriors.load_posterior(posterior).names
    return {
        name: [float(f"{value:.5g}") for value in column] for name, column in zip(names, draws.T, strict=True)
    }  # fmt: skip


def digest_draws(posterior, draws):
    """SHA-256 of a chain as the database has it (hexadecimal)."""
    return hashlib.sha256(json.dumps(round_draws(posterior, draws)).encode()).hexdigest()


# --- the first sampler: nutpie, on PyMC's models


@lru_cache
def compile_model(posterior):
    """For nutpie: the database's own program with its likelihood fused, or with read-outs integrated by this book."""
    return sampling.compile_nuts(build_curves() if posterior == CURVES else fuse(posteriors.build_posterior(posterior)))


def build_curves():
    """The curves' model as `growth_curves` types it; the database's program has one normal of 132 dimensions."""
    given = posteriors.load_posterior(CURVES).data
    n, x, x0 = int(given["H"]), given["x"], float(given["x0"])
    with pm.Model() as model:
        w, b = pm.Normal("w", 0, 1, shape=n), pm.Normal("b", 0, 1, shape=n)
        mu = pm.Normal("mu", 0, 1, shape=n + 1)
        tau_shape, tau_level = pm.HalfNormal("tau_shape", 1), pm.HalfNormal("tau_level", 1)
        sigma = pm.HalfNormal("sigma", 1)
        h = pm.math.tanh(x[:, None] * w + b) - pm.math.tanh(x0 * w + b)
        h = pm.math.concatenate([h, np.ones((len(x), 1))], axis=1)
        tau = pm.math.stack([tau_shape] * n + [tau_level])
        pm.Potential("y", readouts.integrate_readouts(h, given["y"], given["group"] - 1, mu, tau, sigma))
    return model


def sample_nutpie(posterior, seed):
    """One chain: unknowns (1, draw, …), and the sampler's statistics."""
    wanted = SETTINGS[posterior, "nutpie"]
    tree = sampling.sample_nuts(
        compile_model(posterior), seed=seed, chains=1, draws=N_KEPT * wanted["thin"], tune=wanted["tune"],
        target_accept=wanted["target"],
    )  # fmt: skip
    draws = {name: tree["posterior"][name].values for name in posteriors.load_posterior(posterior).unknowns}
    steps = tree["sample_stats"]["n_steps"].values
    stats = {"divergences": diagnostics.count_divergences(tree), "gradients_per_draw": float(steps.mean())}
    return draws, stats | {"bfmi": float(diagnostics.energy_bfmi(tree)[0])}


# --- the second sampler: BlackJAX, on densities written in JAX


@lru_cache
def make_density(posterior):
    """The log density up to a constant, as a JAX function of a dict; scales enter as their logarithms, "log_sd1"."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    data = posteriors.load_posterior(posterior).data
    given = {name: jnp.asarray(value) for name, value in data.items()}
    n_hidden, n_groups = int(data["H"]), int(data.get("G", 1))

    def bend(X, w1, w2, w3):  # points last, which XLA multiplies faster
        return w3 @ jnp.tanh(w2.T @ jnp.tanh(w1.T @ X.T))

    def score_labels(y, logit):
        return jax.nn.log_sigmoid((2 * y - 1) * logit).sum()

    def score_prior(position):
        normal = sum((value**2).sum() for name, value in position.items() if not name.startswith("log_")) / -2
        scales = [value for name, value in position.items() if name.startswith("log_")]
        return normal + sum(scale - jnp.exp(2 * scale) / 2 for scale in scales)

    def flat(p):
        return score_prior(p) + score_labels(given["y"], bend(given["X"], p["w1"], p["w2"], p["w3"]))

    def hierarchical(p):
        layers = [p[f"mu{k}"] + jnp.exp(p[f"log_sd{k}"]) * p[f"z{k}"] for k in (1, 2, 3)]
        return score_prior(p) + score_labels(given["y"], jax.vmap(bend)(given["X"], *layers))

    def curve(p):
        """Each patient in the space of its read-outs: determinants and inverses of matrices 5 x 5."""
        scales = {name: jnp.exp(p[f"log_{name}"]) for name in ("tau_shape", "tau_level", "sigma")}
        tau = jnp.append(jnp.repeat(scales["tau_shape"], n_hidden), scales["tau_level"])
        h = jnp.tanh(given["x"][:, None] * p["w"] + p["b"]) - jnp.tanh(given["x0"] * p["w"] + p["b"])
        h = jnp.column_stack([h, jnp.ones(len(h))])
        whose = jax.nn.one_hot(given["group"] - 1, n_groups)
        scaled, rest = h * tau / scales["sigma"], (given["y"] - h @ p["mu"]) / scales["sigma"]
        inner = jnp.einsum("ng,nu,nv->guv", whose, scaled, scaled) + jnp.eye(h.shape[1])
        cross = jnp.einsum("ng,nu,n->gu", whose, scaled, rest)
        root = jnp.linalg.cholesky(inner)
        solved = jax.scipy.linalg.solve_triangular(root, cross[..., None], lower=True)
        log_det = jnp.log(jnp.diagonal(root, axis1=1, axis2=2)).sum()
        return score_prior(p) - log_det - len(h) * p["log_sigma"] - ((rest**2).sum() - (solved**2).sum()) / 2

    return {FLAT: flat, HIERARCHICAL: hierarchical, CURVES: curve}[posterior]


def list_positions(posterior):
    """Names and shapes of what `make_density` takes."""
    positive = ("sd1", "sd2", "sd3", "tau_shape", "tau_level", "sigma")
    unknowns = posteriors.load_posterior(posterior).unknowns
    return {f"log_{name}" if name in positive else name: shape for name, shape in unknowns.items()}


@lru_cache
def compile_chain(posterior):
    """A compiled function of a key: start near 0 with scales near 1, adapt, draw."""
    import jax

    from studies._bench.peers import draw_normals, run_blackjax

    wanted = SETTINGS[posterior, "BlackJAX"]

    @jax.jit
    def run(key):
        start_key, chain_key = jax.random.split(key)
        start = jax.tree.map(lambda value: 0.5 * value, draw_normals(start_key, list_positions(posterior)))
        return run_blackjax(
            make_density(posterior), chain_key, start, draws=N_KEPT * wanted["thin"], tune=wanted["tune"],
            target_accept=wanted["target"],
        )  # fmt: skip

    return run


def sample_blackjax(posterior, seed):
    """As `sample_nutpie`."""
    import jax

    jax.config.update("jax_enable_x64", True)  # before the first key
    positions, diverging, steps, _ = compile_chain(posterior)(jax.random.key(seed))
    draws = {
        name.removeprefix("log_"): np.asarray(jax.numpy.exp(value) if name.startswith("log_") else value)[None]
        for name, value in positions.items()
    }
    stats = {"divergences": int(diverging.sum()), "gradients_per_draw": float(steps.mean()), "bfmi": None}
    return draws, stats


# --- the third: particles, from the prior to the posterior


def compute_smc(posterior, seed):
    """A row of sequential Monte Carlo; what a chain would have and particles have not is None."""
    draws, stages, gradients = sample_smc(posterior, seed)
    asked = flatten(posteriors.load_posterior(posterior).compute(draws))[0]
    row = {"mean": asked.mean(axis=0), "sd": asked.std(axis=0, ddof=1)}
    row |= {name: np.quantile(asked, level, axis=0) for name, level in LEVELS.items()}
    row = {name: [float(f"{value:.8g}") for value in values] for name, values in row.items()}
    return row | dict.fromkeys(("mean_mcse", "sd_mcse", *(f"{name}_mcse" for name in LEVELS))) | {
        "divergences": None, "gradients_per_draw": float(gradients), "bfmi": None, "stages": stages,
        "draws": digest_draws(posterior, asked),
    }  # fmt: skip


def sample_smc(posterior, seed, n=PARTICLES):
    """Particles that begin at draws from the prior, while the likelihood enters power by power.

    The next power is the one at which weights are worth half of the particles. These are drawn anew by their weights
    and moved by HMC, whose step follows the share of accepted moves. Only for posteriors without scales.

    Returns
    -------
    unknowns (1, particle, …), how many powers there were, and gradients for each particle
    """
    import jax
    from blackjax.smc.resampling import systematic

    start, unravel, loglik, move = compile_moves(posterior)
    keys = iter(jax.random.split(jax.random.key(seed), 1000))
    x = jax.random.normal(next(keys), (n, len(start)))
    power, size, stages, total = 0.0, 0.1, 0, 0
    while power < 1:
        values = np.asarray(loglik(x))
        step = find_step(values, 1 - power)
        weights = np.exp(step * (values - values.max()))
        x = x[systematic(next(keys), weights / weights.sum(), n)]
        power, stages = float(power + step), stages + 1
        for _ in range(MOVES if power < 1 else LAST):
            x, accepted = move(x, power, size, jax.random.split(next(keys), n))
            size, total = float(size * np.exp(0.3 * (accepted - ACCEPTED))), total + LEAPS
    return {name: np.asarray(value)[None] for name, value in jax.vmap(unravel)(x).items()}, stages, total


def find_step(values, most):
    """How much more of the log likelihood leaves weights that are worth half of their number, or `most`."""

    def miss(step):
        w = np.exp(step * (values - values.max()))
        return w.sum() ** 2 / (w**2).sum() / len(w) - 0.5

    return most if miss(most) > 0 else optimize.brentq(miss, 0, most, xtol=1e-9)


@lru_cache
def compile_moves(posterior):
    """A vector at 0, what makes unknowns of one, the log likelihood of many, and a move of many."""
    import blackjax
    import jax
    from jax.flatten_util import ravel_pytree

    jax.config.update("jax_enable_x64", True)
    density = make_density(posterior)
    start, unravel = ravel_pytree({name: np.zeros(shape) for name, shape in list_positions(posterior).items()})

    def loglik(x):
        return density(unravel(x)) + (x**2).sum() / 2

    def move(x, power, size, key):
        first, second = jax.random.split(key)
        own = size * jax.random.uniform(first, minval=0.8, maxval=1.2)
        hmc = blackjax.hmc(lambda x: power * loglik(x) - (x**2).sum() / 2, own, np.ones(len(start)), LEAPS)
        state, info = hmc.step(second, hmc.init(x))
        return state.position, info.acceptance_rate

    def move_all(x, power, size, keys):
        x, accepted = jax.vmap(move, (0, None, None, 0))(x, power, size, keys)
        return x, accepted.mean()

    return start, unravel, jax.jit(jax.vmap(loglik)), jax.jit(move_all)
