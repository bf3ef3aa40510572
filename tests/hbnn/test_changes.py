"""A reader changes one thing in the program of `hierarchical_nuts`: maps and verdict are of the changed network."""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from bookkit import data
from hbnn import diagnostics, fuse, metrics, predict
from scipy.special import expit

CHAINS, DRAWS, GRID = 4, 250, data.grid(3)
ACTIVATIONS = {
    "tanh": (pm.math.tanh, np.tanh),
    "relu": (lambda z: pm.math.maximum(0, z), lambda z: np.maximum(0, z)),
    "sigmoid": (pm.math.sigmoid, expit),
    "softplus": (pm.math.softplus, lambda z: np.logaddexp(0, z)),
}


def type_program(groups=3, points=6, units=(3, 3), activation="tanh", bias=False, sd=pm.HalfNormal, rows=False):
    """The model, the groups of its points if they are in rows, and labels."""
    rng = np.random.default_rng(5)
    X, g = rng.normal(size=(groups, points, 2)), np.repeat(np.arange(groups), points)
    if rows:
        keep = rng.permutation(np.flatnonzero(rng.random(g.size) < 0.8))
        X, g = X.reshape(-1, 2)[keep], g[keep]
    y, sizes = rng.integers(0, 2, X.shape[:-1]), (2, *units, 1)
    with pm.Model() as model:
        h = pm.Data("X", X)
        for k, shape in enumerate(pairwise(sizes), 1):
            w = pm.Normal(f"mu{k}", shape=shape) + sd(f"sd{k}", 1.0) * pm.Normal(f"z{k}", shape=(groups, *shape))
            z = pt.einsum("nf,nfh->nh", h, w[g]) if rows else h @ w
            if bias:
                b = pm.Normal(f"b{k}", shape=(groups, shape[1]))
                z = z + (b[g] if rows else b[:, None])
            h = ACTIVATIONS[activation][0](z)
        pm.Bernoulli("y", logit_p=z[..., 0], observed=y)
    return model, g if rows else None, y


def draw_prior(model, shift=0.0):
    """What a sampler gives that has converged, or one whose last chain is elsewhere."""
    rng, shapes = np.random.default_rng(1), model.eval_rv_shapes()
    values = {v.name: rng.normal(size=(CHAINS, DRAWS, *shapes[v.name])) for v in model.free_RVs}
    values = {name: np.abs(x) if name.startswith("sd") else x for name, x in values.items()}
    values["sd1"][-1] += shift
    axes = {name: ("chain", "draw", *(f"{name}_{k}" for k in range(x.ndim - 2))) for name, x in values.items()}
    stats = {"diverging": np.zeros((CHAINS, DRAWS), bool), "energy": rng.normal(size=(CHAINS, DRAWS))}
    stats |= {"depth": np.full((CHAINS, DRAWS), 3)}
    return xr.DataTree.from_dict({
        "posterior": xr.Dataset({name: (axes[name], x) for name, x in values.items()}),
        "sample_stats": xr.Dataset({name: (("chain", "draw"), x) for name, x in stats.items()}),
    })  # fmt: skip


def identify(model, posterior, g, y):
    """As the chapter does."""
    groups = {} if g is None else {"groups": np.zeros(len(GRID), int)}
    p = predict(model, posterior)
    loglik = metrics.log_likelihood(p, y)
    return {
        "grid": predict(model, posterior, GRID, **groups),
        "data": p,
        "group sds": np.stack([posterior[name] for name in posterior if name.startswith("sd")], axis=-1),
        "log likelihood": np.asarray(loglik).reshape(*loglik.shape[:2], -1).sum(axis=-1),
    }


def compute_map(posterior, activation):
    """The probabilities of each group on the grid, by NumPy."""
    h, n = GRID, sum(name.startswith("sd") for name in posterior)
    for k in range(1, n + 1):
        mu, sd, z = (posterior[f"{part}{k}"].values for part in ("mu", "sd", "z"))
        a = h @ (mu[:, :, None] + sd[:, :, None, None, None] * z)
        a = a + posterior[f"b{k}"].values[..., None, :] if f"b{k}" in posterior else a
        h = ACTIVATIONS[activation][1](a)
    return expit(a[..., 0])


CHANGES = {
    "none": {},
    "relu": {"activation": "relu"},
    "sigmoid": {"activation": "sigmoid"},
    "softplus": {"activation": "softplus"},
    "fewer units": {"units": (2, 2)},
    "other units": {"units": (2, 4)},
    "one layer": {"units": (3,)},
    "three layers": {"units": (3, 2, 3)},
    "biases": {"bias": True},
    "six groups, more points": {"groups": 6, "points": 9},
    "groups of unequal size, in rows": {"rows": True},
    "another prior of the group sds, ReLU with biases in rows": {
        "sd": pm.HalfCauchy, "activation": "relu", "bias": True, "rows": True},
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_maps_and_verdict_are_of_the_changed_network(change):
    model, g, y = type_program(**CHANGES[change])
    tree = draw_prior(model)
    asked = identify(fuse(model, check=False), tree["posterior"], g, y)
    expected = compute_map(tree["posterior"], CHANGES[change].get("activation", "tanh"))
    found = asked["grid"].values
    np.testing.assert_allclose(found, expected[:, :, 0] if g is not None else expected, rtol=1e-9)
    verdict = diagnostics.verdict(asked, tree)
    n_asked = sum(int(np.prod(np.shape(values)[2:])) for values in asked.values())
    assert verdict.n_quantities + len(verdict.constant) == n_asked  # at the centre p is 0.5 without biases
    assert verdict.converged, verdict.reasons
    apart = draw_prior(model, shift=10)
    verdict = diagnostics.verdict(identify(model, apart["posterior"], g, y), apart)
    assert "disagree" in verdict.reasons[0]


SAMPLERS = ("pymc", "nutpie", "numpyro")  # "blackjax" fails with any model: PyMC 6.4 hands on what BlackJAX gave up


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_runs_of_each_sampler_are_judged(sampler):
    model, g, y = type_program()
    options = {"chains": 2, "cores": 1, "progressbar": False, "random_seed": 1, "nuts_sampler": sampler}
    tree = pm.sample(20, tune=20, model=fuse(model, check=False), **options)
    verdict = diagnostics.verdict(identify(model, tree["posterior"], g, y), tree)
    assert verdict.n_chains == 2
    assert not verdict.converged  # forty draws are too few
    assert "effective" in verdict.reasons[0] or "disagree" in verdict.reasons[0]


@pytest.mark.parametrize("made", ["ADVI", "Metropolis"])
def test_draws_of_no_nuts_are_refused_by_name(made):
    model, g, y = type_program()
    tree = draw_prior(model)
    del tree["sample_stats"]
    if made == "Metropolis":
        accepted = (("chain", "draw"), np.ones((CHAINS, DRAWS), bool))
        tree["sample_stats"] = xr.DataTree(xr.Dataset({"accepted": accepted}))
    with pytest.raises(ValueError, match=r"no sample_stats\['diverging'\]; wanted: one from pm\.sample"):
        diagnostics.verdict(identify(model, tree["posterior"], g, y), tree)
