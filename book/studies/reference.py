"""Reference draws of five posteriors, each by two samplers that share no line of code, or three.

nutpie's NUTS walks through the PyMC models of ``hbnn/reference/data`` (their likelihoods fused, or read-outs integrated
by this book), BlackJAX's NUTS through log densities that are written anew below, in JAX. Ten chains each. A row holds,
for each functional, the mean, the sd and two quantiles of one chain with Monte Carlo errors, and the digest of the
thousand draws that are kept of it; the draws themselves lie beside the tasks until `python -m studies._reference_files`
has made the database's files of them.

Both are NUTS. So the flat network is asked by a third, too, that walks along no chain from where it began: sequential
Monte Carlo, twenty times. A row holds what one population of particles found, and no errors, which only the spread over
rows tells. The flowers are asked by nutpie and by SMC; the two bumps, whose modes part the chains, by SMC and by
importance sampling: draws from the prior of `w` and `b`, weighted, with the read-outs `v` and `c` integrated, twenty
times. Populations that miss a mode differ there, and a mean over them weighs each by its evidence, which is kept. Of
these two posteriors a row says, too, what its draws predict of the rows held back.
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
from hbnn.reference.posteriors import BUMPS, CURVES, FLAT, HIERARCHICAL, IRIS
from scipy import optimize

from studies import _tasks

MEASURED = False
N_CHAINS, POPULATIONS = 10, 20
PARTICLES = {FLAT: 250, BUMPS: 2000, IRIS: 500}
KEPT = {FLAT: 1000, CURVES: 1000, HIERARCHICAL: 1000, BUMPS: 100, IRIS: 200}  # draws of a chain, or of a part
SAMPLERS, SMC, IMPORTANCE = ("nutpie", "BlackJAX"), "tempered SMC", "importance"
TRIALS, BATCH = 2_000_000, 50_000  # draws from the prior in a part, and at once
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
    (IRIS, "nutpie"): {"thin": 10, "tune": 800, "target": 0.95},
    (BUMPS, IMPORTANCE): {"thin": 32},
}
SECONDS = {
    (FLAT, "nutpie"): 22, (CURVES, "nutpie"): 20, (HIERARCHICAL, "nutpie"): 50, (IRIS, "nutpie"): 4,
    (FLAT, "BlackJAX"): 15, (CURVES, "BlackJAX"): 27, (HIERARCHICAL, "BlackJAX"): 55,
    (FLAT, SMC): 30, (BUMPS, SMC): 4, (IRIS, SMC): 3, (BUMPS, IMPORTANCE): 5,
}  # fmt: skip
FIRST = 12  # compiling
ASKED = [(name, sampler, N_CHAINS) for name in (FLAT, CURVES, HIERARCHICAL) for sampler in SAMPLERS]
ASKED += [(FLAT, SMC, POPULATIONS), (BUMPS, IMPORTANCE, POPULATIONS), (BUMPS, SMC, POPULATIONS)]
ASKED += [(IRIS, "nutpie", N_CHAINS), (IRIS, SMC, POPULATIONS)]
CASES = [
    {"posterior": name, "sampler": sampler, "seed": seed}
    for name, sampler, n in ASKED for seed in range(1, n + 1)
]  # fmt: skip
RECOMPUTED = [case for case in CASES if case["posterior"] != HIERARCHICAL and case["sampler"] == "nutpie"]
LEVELS = {"q05": 0.05, "q95": 0.95}


def block(case):
    """Every chain is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return SECONDS[case["posterior"], case["sampler"]]


def compute(posterior, sampler, seed):
    """What one chain found: for each functional its moments, with errors; and the sampler's statistics."""
    sample = {"nutpie": sample_nutpie, "BlackJAX": sample_blackjax, SMC: sample_smc, IMPORTANCE: sample_importance}
    draws, stats = sample[sampler](posterior, seed)
    asked = flatten(posteriors.load_posterior(posterior).compute(draws))[0]  # (draw, functional)
    thin = SETTINGS.get((posterior, sampler), {"thin": 1})["thin"]
    kept = asked[thin - 1 :: thin]
    keep(posterior, sampler, seed, kept)
    row = {"mean": asked.mean(axis=0), "sd": asked.std(axis=0, ddof=1)}
    row |= {name: np.quantile(asked, level, axis=0) for name, level in LEVELS.items()}
    names = [f"{name}_mcse" for name in row]
    if sampler in SAMPLERS:  # the others are no chains
        row |= {"mean_mcse": find_mcse(asked, "mean"), "sd_mcse": find_mcse(asked, "sd")}
        row |= {f"{name}_mcse": find_mcse(asked, "quantile", prob=level) for name, level in LEVELS.items()}
    row = {name: [float(f"{value:.8g}") for value in values] for name, values in row.items()}
    if posterior in (BUMPS, IRIS):
        row |= posteriors.score_test(posterior, draws)
    return dict.fromkeys(names) | row | stats | {"draws": digest_draws(posterior, kept)}


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
        compile_model(posterior), seed=seed, chains=1, draws=KEPT[posterior] * wanted["thin"], tune=wanted["tune"],
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

    def bumps(p):
        f = jnp.maximum(0, given["x"][:, None] * p["w"] + p["b"]) @ p["v"] + p["c"]
        return score_prior(p) - (((given["y"] - f) / given["sigma"]) ** 2).sum() / 2

    def iris(p):
        logits = jnp.tanh(given["X"] @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
        return score_prior(p) + (jax.nn.log_softmax(logits) * jax.nn.one_hot(given["y"] - 1, 3)).sum()

    return {FLAT: flat, HIERARCHICAL: hierarchical, CURVES: curve, BUMPS: bumps, IRIS: iris}[posterior]


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
            make_density(posterior), chain_key, start, draws=KEPT[posterior] * wanted["thin"], tune=wanted["tune"],
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


def sample_smc(posterior, seed, n=None):
    """Particles that begin at draws from the prior, while the likelihood enters power by power.

    The next power is the one at which weights are worth half of the particles. These are drawn anew by their weights
    and moved by HMC, whose step follows the share of accepted moves. Only for posteriors without scales.

    Returns
    -------
    unknowns (1, particle, …), and statistics: how many powers there were, and gradients for each particle
    """
    import jax
    from blackjax.smc.resampling import systematic

    n = n or PARTICLES[posterior]
    start, unravel, loglik, move = compile_moves(posterior)
    keys = iter(jax.random.split(jax.random.key(seed), 1000))
    x = jax.random.normal(next(keys), (n, len(start)))
    power, size, stages, total, evidence = 0.0, 0.1, 0, 0, 0.0
    while power < 1:
        values = np.asarray(loglik(x))
        step = find_step(values, 1 - power)
        weights = np.exp(step * (values - values.max()))
        evidence += float(np.log(weights.mean()) + step * values.max())
        x = x[systematic(next(keys), weights / weights.sum(), n)]
        power, stages = float(power + step), stages + 1
        for _ in range(MOVES if power < 1 else LAST):
            x, accepted = move(x, power, size, jax.random.split(next(keys), n))
            size, total = float(size * np.exp(0.3 * (accepted - ACCEPTED))), total + LEAPS
    draws = {name: np.asarray(value)[None] for name, value in jax.vmap(unravel)(x).items()}
    stats = {"divergences": None, "gradients_per_draw": float(total), "bfmi": None, "stages": stages}
    return draws, stats | ({"log_evidence": float(f"{evidence:.8g}")} if posterior == BUMPS else {})


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


# --- the fourth: weighted draws from the prior


def sample_importance(posterior, seed):
    """Draws of `BUMPS` without any chain: `w` and `b` from the prior, weighted by the density of the outcomes.

    Given `w` and `b` the network is linear in `v` and `c`, which are integrated and, in the end, drawn.

    Returns
    -------
    unknowns (1, draw, …), and statistics: how many draws the weights are worth
    """
    data, rng = posteriors.load_posterior(posterior).data, np.random.default_rng(seed)
    n, n_hidden = KEPT[posterior] * SETTINGS[posterior, IMPORTANCE]["thin"], int(data["H"])
    parts = [weigh(data, rng.normal(size=(2, BATCH, n_hidden))) for _ in range(TRIALS // BATCH)]
    log_weights, hidden = (np.concatenate(each, axis=-1 - k) for k, each in enumerate(zip(*parts, strict=True)))
    weights = np.exp(log_weights - log_weights.max())
    chosen = hidden[:, rng.choice(len(weights), size=n, p=weights / weights.sum())]
    root, solved = find_readouts(data, chosen)
    outer = np.linalg.solve(root.mT, (solved + rng.normal(size=solved.shape))[..., None])[..., 0]
    draws = {"w": chosen[0], "b": chosen[1], "v": outer[:, :n_hidden], "c": outer[:, n_hidden]}
    stats = {"divergences": None, "gradients_per_draw": 0.0, "bfmi": None}
    return {name: value[None] for name, value in draws.items()}, stats | {
        "effective": float(weights.sum() ** 2 / (weights**2).sum())
    }


def weigh(data, hidden):
    """Log densities of the outcomes up to a constant, (draw,), read-outs integrated, and `hidden` as it was."""
    root, solved = find_readouts(data, hidden)
    log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    return (solved**2).sum(axis=1) / 2 - log_det, hidden


def find_readouts(data, hidden):
    """The root of the read-outs' precision (draw, unit, unit), and what it maps their mean to (draw, unit)."""
    w, b = hidden[..., None, :]
    h = np.maximum(0, data["x"][:, None] * w + b)
    h = np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2) / data["sigma"]
    root = np.linalg.cholesky(h.mT @ h + np.eye(h.shape[2]))
    return root, np.linalg.solve(root, (h.mT @ (data["y"] / data["sigma"]))[..., None])[..., 0]
