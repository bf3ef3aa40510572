"""One hierarchical posterior by five engines, by both likelihoods and in single precision: do they agree?

The articles' data, the book's network. Compared are identified numbers: probabilities at six points of six categories,
the group sds, the log likelihood of the training points. Each mean has its Monte Carlo standard error.
"""

import numpy as np
import pymc as pm
import xarray as xr
from bookkit import data, models
from hbnn import diagnostics, fuse, prediction, sampling
from hbnn.sampling import derive_seed

from studies.nuts_width import DRAWS, N_HIDDEN, TARGET, TUNE, check_run

MEASURED = False
WAYS = {
    "nutpie, fused": ("nutpie", "fused", "float64"),
    "nutpie, fused, float32": ("nutpie", "fused", "float32"),
    "nutpie, graph": ("nutpie", "graph", "float64"),
    "PyMC, fused": ("pymc", "fused", "float64"),
    "NumPyro, fused (as JAX)": ("numpyro", "fused", "float64"),
    "BlackJAX, fused (as JAX)": ("blackjax", "fused", "float64"),
}
CASES = [{"way": way, "seed": 1} for way in WAYS]
RECOMPUTED = CASES[:2]  # the others take minutes
POINTS = ((0, 14), (2, 44), (5, 55), (9, 27), (12, 72), (17, 90))  # category, point of a grid of 10 x 10


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 60 if case["way"].startswith("nutpie, fused") else 300


def compute(way, seed):
    """Mean and Monte Carlo error of each quantity; R-hat and ESS of all that is identified."""
    engine, likelihood, dtype = WAYS[way]
    moons = data.legacy_rotated_moons()
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(N_HIDDEN, N_HIDDEN))
    model = fuse(model, dtype=dtype) if likelihood == "fused" else model
    settings = {"draws": DRAWS, "tune": TUNE, "target_accept": TARGET}
    if engine == "blackjax":
        tree = _sample_blackjax(model, seed, **settings)
    else:
        jax = {"nuts": {"chain_method": "sequential"}} if engine == "numpyro" else {}
        tree = pm.sample(model=model, random_seed=seed, nuts_sampler=engine, **settings, **sampling.ONE_CORE, **jax)
    found, loglik = check_run(tree, moons)
    grid = prediction.predict_groups(tree["posterior"], data.grid(10), activation="tanh")
    values = {f"p_{g}_{n}": grid[:, :, g, n] for g, n in POINTS}
    values |= {f"sd{k}": tree["posterior"][f"sd{k}"].values for k in (1, 2, 3)} | {"loglik": loglik}
    checked = diagnostics.diagnose(np.stack(list(values.values()), axis=-1))
    means = {name: float(value.mean()) for name, value in values.items()}
    errors = {f"{name}_mcse": float(mcse) for name, mcse in zip(values, checked["mcse"], strict=True)}
    return found | means | errors | {"gradients_per_draw": float(tree["sample_stats"]["n_steps"].mean())}


def _sample_blackjax(model, seed, draws, tune, target_accept, chains=4):
    """BlackJAX by itself, chain after chain: PyMC 6.4 hands BlackJAX 1.7 an argument that it no longer has."""
    import blackjax
    import jax
    from blackjax.adaptation.base import get_filter_adapt_info_fn
    from pymc.initial_point import make_initial_point_fn
    from pymc.sampling.jax import get_jaxified_graph, get_jaxified_logp

    logp, names, seed = get_jaxified_logp(model), ("diverging", "n_steps", "energy"), derive_seed(seed)
    adapt = blackjax.window_adaptation(
        blackjax.nuts, logp, target_acceptance_rate=target_accept, adaptation_info_fn=get_filter_adapt_info_fn()
    )

    @jax.jit
    def run_chain(key, start):
        tune_key, draw_key = jax.random.split(key)
        (state, tuned), _ = adapt.run(tune_key, start, num_steps=tune)
        step = blackjax.nuts(logp, **tuned).step

        def draw(state, key):
            state, info = step(key, state)
            return state, (state.position, (info.is_divergent, info.num_integration_steps, info.energy))

        return jax.lax.scan(draw, state, jax.random.split(draw_key, draws))[1]

    point = make_initial_point_fn(model=model, jitter_rvs=set(model.free_RVs), return_transformed=True)
    points = [point(int(s)) for s in np.random.default_rng(seed).integers(2**30, size=chains)]
    starts = [[jax.numpy.asarray(point[variable.name]) for variable in model.value_vars] for point in points]
    expand = jax.jit(jax.vmap(get_jaxified_graph(model.value_vars, model.replace_rvs_by_values(model.free_RVs))))
    found = [run_chain(*one) for one in zip(jax.random.split(jax.random.PRNGKey(seed), chains), starts, strict=True)]
    values = zip(*(expand(*positions) for positions, _ in found), strict=True)
    posterior = {rv.name: np.stack(chains) for rv, chains in zip(model.free_RVs, values, strict=True)}
    stats = {name: np.stack([stats[k] for _, stats in found]) for k, name in enumerate(names)}
    return xr.DataTree.from_dict({
        group: xr.Dataset({
            name: (("chain", "draw", *(f"{name}_{k}" for k in range(array.ndim - 2))), array)
            for name, array in arrays.items()
        })
        for group, arrays in {"posterior": posterior, "sample_stats": stats}.items()
    })  # fmt: skip
