"""A network typed in plain PyMC, in any of the ways that people type one, gets the fused likelihood, or is refused."""

import re
import warnings
from pathlib import Path

import cloudpickle
import jax
import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytensor.tensor as pt
import pytest
import xarray as xr
from hbnn import fuse, tables
from hbnn._refused import Refused
from hbnn.fusion import _activations
from hbnn.fusion._loglik import NetworkLogLik, network_loglik
from hbnn.fusion._output import NetworkOutput
from hbnn.fusion._read import is_made_by
from hbnn.fusion._recognise import read_activation
from hbnn.fusion._rows import OUTSIDE
from pymc.model.fgraph import fgraph_from_model
from pymc.model.transform.optimization import freeze_dims_and_data
from pytensor.compile.mode import Mode
from pytensor.graph.traversal import ancestors

G, N, F, H, K = 3, 5, 2, 4, 6  # groups, points, features, units of the first and the second layer
tanh, sigmoid = pm.math.tanh, pm.math.sigmoid
rng = np.random.default_rng(0)
X1, Y1 = rng.normal(size=(N, F)), np.array([0, 1, 1, 0, 1])
Z1 = np.array([0.3, -1.2, 0.8, 2.0, -0.4])  # a continuous outcome
XG, YG = rng.normal(size=(G, N, F)), rng.integers(0, 2, (G, N))
group = rng.permutation(np.repeat(np.arange(G), [4, 7, 3]))  # rows in any order, groups of unequal size
XR, YR = rng.normal(size=(len(group), F)), rng.integers(0, 2, len(group))
mask = np.arange(N) < np.array([[5], [2], [4]])


def normal(name, *shape):
    return pm.Normal(name, 0, 1, shape=shape)


def add_weights(*groups, last=(K,)):
    """Weights of two hidden layers and a read-out, not centred where there are groups."""
    weights = []
    for k, shape in enumerate([(F, H), (H, K), last], 1):
        w = normal(f"w{k}", *groups, *shape)
        weights.append(normal(f"mu{k}", *shape) + pm.HalfNormal(f"sd{k}", 1) * w if groups else w)
    return weights


def observe(logit, y=Y1, **kwargs):
    return pm.Bernoulli("y", logit_p=logit, observed=y, **kwargs)


def relu(kind):
    def build():
        w1, w2, w3 = add_weights()
        observe(kind(kind(X1 @ w1) @ w2) @ w3)

    return build


def one(kind, last=(K,)):
    """One network, typed as `kind` of points and weights."""
    return lambda: observe(kind(X1, *add_weights(last=last)))


def many(kind, last=(K,), y=YG):
    return lambda: observe(kind(XG, *add_weights(G, last=last)), y)


def rows(kind, last=(K,)):
    return lambda: observe(kind(XR, *add_weights(G, last=last), pt.as_tensor(group)), YR)


def biased(*groups):
    w1, w2, w3 = add_weights(*groups)
    return w1, w2, w3, normal("b1", *groups, H), normal("b2", *groups, K), normal("b3", *groups)


def all_biases():
    w1, w2, w3, b1, b2, b3 = biased()
    observe(tanh(tanh(X1 @ w1 + b1) @ w2 + b2) @ w3 + b3)


def some_biases():
    w1, w2, w3, b1, _, _ = biased()
    observe(tanh(tanh(X1 @ w1 + b1) @ w2) @ w3)


def two_biases():
    w1, w2, w3, b1, _, b3 = biased()
    observe(b3 + (tanh(tanh(X1 @ w1 + b1 + normal("c1", H)) @ w2) @ w3 + normal("c3")))


def group_biases():
    w1, w2, w3, b1, b2, b3 = biased(G)
    h = tanh(tanh(XG @ w1 + b1[:, None, :]) @ w2 + b2[:, None])
    observe((h @ w3[..., None])[..., 0] + b3[:, None], YG)


def shared_biases():
    w1, w2, w3 = add_weights(G)
    m, L, z = normal("m", H), np.eye(H), normal("z", H)
    h = tanh(tanh(XG @ w1 + (m + L @ z)) @ w2)
    observe((h * w3[:, None]).sum(-1) + normal("b"), YG)


def row_biases():
    w1, w2, w3, b1, b2, b3 = biased(G)
    h = tanh(pt.einsum("of,ofh->oh", XR, w1[group]) + b1[group])
    h = tanh(pt.einsum("oh,ohk->ok", h, w2[group]) + b2[group])
    observe((h * w3[group]).sum(-1) + b3[group], YR)


def from_sigmoid(kind):
    def build():
        w1, w2, w3 = add_weights()
        pm.Bernoulli("y", kind(tanh(tanh(X1 @ w1) @ w2) @ w3), observed=Y1)

    return build


def with_deterministics():
    w1, w2, w3 = add_weights()
    h = pm.Deterministic("h", tanh(tanh(X1 @ w1) @ w2))
    logit = pm.Deterministic("logit", h @ w3)
    pm.Bernoulli("y", pm.Deterministic("p", sigmoid(logit)), observed=Y1)


def padded(kind):
    def build():
        w1, w2, w3 = add_weights(G)
        kind((tanh(tanh(XG @ w1) @ w2) @ w3[..., None])[..., 0])

    return build


def with_dims():
    """Lengths that are known only when the model runs: weights of named dimensions."""
    coords = {"feature": range(F), "h1": range(H), "h2": range(K), "out": range(1)}
    for name, values in coords.items():
        pm.modelcontext(None).add_coord(name, values)
    w1 = pm.Normal("w1", dims=("feature", "h1"))
    w2 = pm.Normal("w2", dims=("h1", "h2"))
    observe((tanh(tanh(X1 @ w1) @ w2) @ pm.Normal("w3", dims=("h2", "out"))).flatten())


def cut_weights():
    flat = normal("flat", F * H + H)
    observe(tanh(X1 @ flat[: F * H].reshape((F, H))) @ flat[F * H :])


def two_outcomes():
    w1, w2, w3 = add_weights()
    observe(tanh(tanh(X1 @ w1) @ w2) @ w3)
    pm.Bernoulli("other", logit_p=tanh(X1 @ w1) @ normal("v", H), observed=1 - Y1)


def deep():
    h = X1
    for k, (n_in, n_out) in enumerate([(F, 3), (3, 4), (4, 2), (2, 5)]):
        h = tanh(h @ normal(f"w{k}", n_in, n_out))
    observe(h @ normal("last", 5))


def moved(X, w1, w2, w3):
    """Factors and signs anywhere: weights and biases take them."""
    h = tanh((normal("b1", H) - X @ w1 * normal("a1", H)) / np.sqrt(F))
    return -(2 * tanh((0.5 * h * normal("keep", H)) @ w2) @ w3 - normal("b3")) / pm.HalfNormal("T", 1)


def one_feature(kind):
    """A network of a single feature, its product typed as `kind`."""

    def build():
        x = pm.Data("x", X1[:, 0])
        observe(tanh(kind(x, normal("w1", H)) + normal("b1", H)) @ normal("w2", H))

    return build


def one_feature_by_row():
    observe((tanh(XR[:, 0, None] * normal("w1", G, H)[group]) * normal("w2", G, H)[group]).sum(-1), YR)


OTHER = np.array([0, 1, 3, 2, -4, -3, -1, -2, 0, 1, 3, 2, 0, 1])  # another grouping of the rows


def index_first(X, w1, w2, w3, g):
    """The index inside of what is computed from weights."""
    w1 = normal("m1", F, H) + pm.HalfNormal("s1", 1, shape=(F, H)) * (w1 / 2)[g]
    h = tanh((X[:, :, None] * w1).sum(1) + (normal("mb", H) - normal("zb", G, H)[g]))
    return (tanh((h[:, :, None] * w2[g]).sum(1)) * pt.exp(w3[g])).sum(-1)


def crossed(X, w1, w2, w3, g):
    """Two groupings: a sum of weights, a table of both, and each in a layer of its own."""
    w1 = w1[g] + normal("u1", 4, F, H)[OTHER]
    w2 = normal("u2", G, 4, H, K)[g, OTHER]
    h = tanh(pt.einsum("oh,ohk->ok", tanh(pt.einsum("of,ofh->oh", X, w1)), w2))
    return (h * normal("u3", 4, K)[OTHER]).sum(-1)


def nested(X, w1, w2, w3, g):
    """Groups of groups."""
    w1 = (w1 + normal("u1", 2, F, H)[np.array([0, 1, 1])])[g]
    h = tanh(pt.einsum("oh,hk->ok", tanh(pt.einsum("of,ofh->oh", X, w1)), w2[0]))
    return h @ w3[1] + normal("c", G)[g]


def mixed():
    h = tanh(X1 @ normal("w1", F, H))
    h = pt.maximum(h @ normal("w2", H, H), 0) * normal("keep", H)
    observe(pt.switch(h @ (w := normal("w3", H, H)) > 0, h @ w, 0.2 * (h @ w)) @ normal("w4", H))


def network(X=X1, n_in=F):
    return tanh(X @ normal("w1", n_in, H)) @ normal("w2", H)


def three_axes(*groups):
    X = np.zeros((2, G, N, F)) + np.arange(F)
    h = tanh(X @ normal("w1", *groups, F, H)) @ normal("w2", *groups, H, 1)
    observe(h[..., 0], np.ones((2, G, N), int))


FUSES = {
    "three axes": lambda: three_axes(G),
    "three axes, two of weights": lambda: three_axes(2, G),
    "factors and signs": one(moved),
    "one feature, *": one_feature(lambda x, w: x[:, None] * w),
    "one feature, @": one_feature(lambda x, w: x[:, None] @ w[None, :]),
    "one feature, outer": one_feature(pt.outer),
    "one feature, by row": one_feature_by_row,
    "rows, index first": rows(index_first),
    "rows, crossed": rows(crossed),
    "rows, nested": rows(nested),
    "mixed activations": mixed,
    "@": one(lambda X, w1, w2, w3: tanh(tanh(X @ w1) @ w2) @ w3),
    "dot": one(lambda X, w1, w2, w3: pt.dot(pt.tanh(pt.dot(pt.tanh(pt.dot(X, w1)), w2)), w3)),
    "pm.math.dot": one(lambda X, w1, w2, w3: pm.math.dot(tanh(pm.math.dot(tanh(pm.math.dot(X, w1)), w2)), w3)),
    "tensordot": one(lambda X, w1, w2, w3: pt.tensordot(tanh(tanh(pt.tensordot(X, w1, 1)) @ w2), w3, 1)),
    "einsum": one(lambda X, w1, w2, w3: tanh(pt.einsum("oh,hk->ok", tanh(pt.einsum("of,fh->oh", X, w1)), w2)) @ w3),
    "matvec": one(lambda X, w1, w2, w3: pt.matvec(tanh(pt.matmul(tanh(X @ w1), w2)), w3)),
    "transposed": one(lambda X, w1, w2, w3: w3 @ tanh(w2.T @ tanh(w1.T @ X.T))),
    "column [:, 0]": one(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3)[:, 0], (K, 1)),
    "column squeezed": one(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3).squeeze(), (K, 1)),
    "column flattened": one(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3).flatten(), (K, 1)),
    "column kept": lambda: observe(tanh(X1 @ normal("w1", F, H)) @ normal("w2", H, 1), Y1[:, None]),
    "one of several columns": one(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3)[:, 1], (K, 3)),
    "sum of products": one(lambda X, w1, w2, w3: (tanh(tanh((X[:, :, None] * w1).sum(1)) @ w2) * w3).sum(-1)),
    "many layers": deep,
    "no hidden layer": lambda: observe(X1 @ normal("w", F) + normal("b")),
    "points and units of one": lambda: observe(tanh(X1[:1] @ normal("w1", F, 1)) @ normal("w2", 1), Y1[:1]),
    "all biases": all_biases,
    "some biases": some_biases,
    "two biases": two_biases,
    "relu maximum": relu(lambda z: pt.maximum(z, 0)),
    "relu maximum, number first": relu(lambda z: pm.math.maximum(0.0, z)),
    "relu switch": relu(lambda z: pt.switch(z > 0, z, 0)),
    "relu where less": relu(lambda z: pt.where(pt.lt(0, z), z, 0.0)),
    "relu product": relu(lambda z: z * (z > 0)),
    "relu clip": relu(lambda z: pt.clip(z, 0, np.inf)),
    "p sigmoid": from_sigmoid(sigmoid),
    "p invlogit": from_sigmoid(pm.math.invlogit),
    "p by hand": from_sigmoid(lambda z: 1 / (1 + pt.exp(-z))),
    "deterministics": with_deterministics,
    "dims": with_dims,
    "weights cut from a vector": cut_weights,
    "two outcomes": two_outcomes,
    "groups": many(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3[..., None])[..., 0]),
    "groups, column": many(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3).squeeze(-1), (K, 1)),
    "groups, sum": many(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) * w3[:, None, :]).sum(-1)),
    "groups, einsum": many(
        lambda X, w1, w2, w3: pt.einsum("goh,gh->go", tanh(tanh(pt.einsum("gof,gfh->goh", X, w1)) @ w2), w3)
    ),
    "groups, flattened": many(
        lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3[..., None]).flatten(), y=YG.flatten()
    ),
    "groups last": many(lambda X, w1, w2, w3: (tanh(tanh(X @ w1) @ w2) @ w3[..., None])[..., 0].T, y=YG.T),
    "groups of the same points": lambda: observe(
        (tanh(X1 @ normal("w1", G, F, H)) * normal("w2", G, H)[:, None]).sum(-1), YG
    ),
    "groups with one network": lambda: observe(tanh(pt.dot(XG, normal("w1", F, H))) @ normal("w2", H), YG),
    "groups that share layers": lambda: observe(
        (tanh(XG @ normal("w1", G, F, H)) @ normal("w2", H, 1))[..., 0] + normal("b", G)[:, None], YG
    ),
    "group biases": group_biases,
    "shared biases": shared_biases,
    "padded, logit[mask]": padded(lambda logit: observe(logit[mask], YG[mask])),
    "padded, logit[nonzero]": padded(lambda logit: observe(logit[pt.as_tensor(mask).nonzero()], YG[mask])),
    "padded, p[mask]": padded(lambda logit: pm.Bernoulli("y", sigmoid(logit)[mask], observed=YG[mask])),
    "one network, some points": lambda: observe(
        (tanh(X1 @ normal("w1", F, H)) @ normal("w2", H))[mask[2]], Y1[mask[2]]
    ),
    "rows, einsum": rows(
        lambda X, w1, w2, w3, g: pt.einsum(
            "oh,oh->o", tanh(pt.einsum("oh,ohk->ok", tanh(pt.einsum("of,ofh->oh", X, w1[g])), w2[g])), w3[g]
        )
    ),
    "rows, @": rows(lambda X, w1, w2, w3, g: (tanh(tanh(X[:, None, :] @ w1[g]) @ w2[g]) @ w3[g][..., None])[:, 0, 0]),
    "rows, sum": rows(
        lambda X, w1, w2, w3, g: (
            tanh((tanh((X[:, :, None] * w1[g]).sum(1))[:, :, None] * w2[g]).sum(axis=1)) * w3[g]
        ).sum(1)
    ),
    "rows, biases": row_biases,
    "rows, groups without points": lambda: observe(
        (tanh(pt.einsum("of,ofh->oh", XR, normal("w1", 9, F, H)[group])) * normal("w2", H)).sum(-1), YR
    ),
}


ACTIVATIONS = {
    "tanh": ("tanh", [pt.tanh, lambda z: 1.7 * pt.tanh(z), lambda z: 2 * pt.sigmoid(2 * z) - 1]),
    "relu": (
        "relu",
        [
            lambda z: pt.maximum(z, 0),
            lambda z: pm.math.maximum(0.0, z),
            lambda z: pt.switch(z > 0, z, 0),
            lambda z: pt.where(pt.lt(0, z), z, pt.zeros_like(z)),
            lambda z: z * (z > 0),
            lambda z: pt.clip(z, 0, np.inf),
            lambda z: (z + abs(z)) / 2,
        ],
    ),
    "sigmoid": ("sigmoid", [pm.math.invlogit, lambda z: 1 / (1 + pt.exp(-z)), lambda z: (1 + pt.tanh(z / 2)) / 2]),
    "softplus": (
        "softplus",
        [
            pm.math.log1pexp,
            lambda z: pt.log(1 + pt.exp(z)),
            lambda z: pt.log1p(pt.exp(z)),
            lambda z: pt.logaddexp(0, z),
        ],
    ),
    "leaky relu": (
        ("leaky_relu", 0.01),
        [
            lambda z: pt.switch(z > 0, z, z * 0.01),
            lambda z: pt.maximum(0.01 * z, z),
            lambda z: pt.maximum(z, 0) + 0.01 * pt.minimum(z, 0),
        ],
    ),
    "elu": (("elu", 1.0), [lambda z: pt.switch(z > 0, z, pt.exp(z) - 1), lambda z: pt.where(z < 0, pt.expm1(z), z)]),
    "selu": (("elu", 1.67), [lambda z: 1.05 * pt.switch(z > 0, z, 1.67 * (pt.exp(z) - 1))]),
    "gelu": (
        "gelu",
        [
            lambda z: 0.5 * z * (1 + pt.erf(z / np.sqrt(2))),
            lambda z: z * 0.5 * pt.erfc(-z / np.sqrt(2)),
        ],
    ),
    "gelu, tanh": ("gelu_tanh", [lambda z: z * (1 + pt.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) / 2]),
    "silu": ("silu", [lambda z: z * pt.sigmoid(z), lambda z: z / (1 + pt.exp(-z))]),
    "sin": ("sin", [pt.sin]),
    "none": (
        None,
        [
            lambda z: pt.clip(z, 0, 6),
            lambda z: pt.clip(z, 0, 1e9),
            lambda z: pt.maximum(z, 1e-9),
            lambda z: z**2,
            pt.sinh,
            pt.erf,
            lambda z: z * pt.tanh(pt.softplus(z)),
            lambda z: z / (1 + abs(z)),
            lambda z: pt.tanh(z) + 1e-6 * z,
            lambda z: pt.maximum(z, 0) * pt.arange(4),
        ],
    ),
}


def fuse_plainly(model):
    """The fused model with stock expressions for kernels: whether it was read rightly is seen without compiling one."""
    calls = []
    functions = {name: typed[0] for name, typed in ACTIVATIONS.values() if isinstance(name, str)}

    def activate(kind, z):
        if isinstance(kind, tuple):
            return pt.switch(z > 0, z, kind[1] * (z if kind[0] == "leaky_relu" else pt.expm1(pt.minimum(z, 0))))
        return functions[kind](z)

    def network_output(X, weights, *, biases=(), group=None, activation="tanh", dtype="float64", **options):
        calls.append(activation)
        is_one = isinstance(activation, str) or isinstance(activation[1], float)
        index = None if group is None else pt.switch(pt.eq(group, OUTSIDE), 0, group)
        for k, w in enumerate(weights):
            X = X @ w if group is None else (X[:, :, None] * w[index]).sum(1)
            if biases:
                b = biases[k] if X.ndim == 2 else biases[k][:, None]
                X = X + (b if group is None else b[index])
            if k + 1 < len(weights):
                X = activate(activation if is_one else activation[k], X)
        return X

    def network_loglik(X, y, weights, **options):
        logit = network_output(X, weights, **options)[..., 0]
        if options["group"] is not None:
            logit = logit[pt.neq(options["group"], OUTSIDE).nonzero()]
        return (y * logit - pt.softplus(logit)).sum()

    with pytest.MonkeyPatch.context() as patch:
        for function in (network_output, network_loglik):
            patch.setattr(f"hbnn.fusion._arrange.{function.__name__}", function)
        fast = fuse(model, check=False)
    assert calls
    return fast


def leave(cases, quick):
    """All but the quick cases are left to `make test-all`: each compiles two models."""
    assert set(quick) <= set(cases)
    return [pytest.param(case, marks=[] if case in quick else [pytest.mark.slow]) for case in cases]


def make(build):
    with pm.Model() as model:
        build()
    return model


def count_kernels(*variables, kind=NetworkLogLik):
    return len({v.owner for v in ancestors(variables) if v.owner is not None and isinstance(v.owner.op, kind)})


def compare(model, fast, rtol=1e-8):
    """Log density and gradient at a random point."""
    rng = np.random.default_rng(1)
    point = {name: v + 0.5 * rng.normal(size=np.shape(v)) for name, v in model.initial_point(0).items()}
    for found, expected in zip(*(evaluate(m, point) for m in (fast, model)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-9)


def evaluate(model, point):
    gradient = model.dlogp(vars=[model[name] for name in sorted(rv.name for rv in model.free_RVs)])
    as_typed = Mode(linker="py", optimizer=None)  # nothing is rewritten, so nothing takes time
    return model.compile_fn([model.logp(), gradient], inputs=model.value_vars, mode=as_typed)(point)


@pytest.mark.parametrize("name", FUSES)
def test_a_network_is_recognised_however_it_is_typed(name):
    model = make(FUSES[name])
    fast = fuse(model, check=False)
    assert [p.name for p in fast.potentials] == [rv.name for rv in model.observed_RVs]
    assert all(count_kernels(p) > 0 for p in fast.potentials)
    assert not fast.observed_RVs
    assert [rv.name for rv in fast.free_RVs] == [rv.name for rv in model.free_RVs]
    compare(model, fuse_plainly(model))


def test_the_example_of_pymc_fuses_as_it_stands():
    """`bayesian_neural_network_ADVI` of pymc-examples, with its initial values, its data and its total size."""
    init = np.random.default_rng(9)
    coords = {"hidden_layer_1": np.arange(H), "hidden_layer_2": np.arange(H), "train_cols": np.arange(F)}
    with pm.Model(coords=coords | {"obs_id": np.arange(N)}) as model:
        ann_input = pm.Data("ann_input", X1, dims=("obs_id", "train_cols"))
        ann_output = pm.Data("ann_output", Y1.astype(float), dims="obs_id")
        weights_in_1 = pm.Normal(
            "w_in_1", 0, sigma=1, initval=init.normal(size=(F, H)), dims=("train_cols", "hidden_layer_1")
        )
        weights_1_2 = pm.Normal(
            "w_1_2", 0, sigma=1, initval=init.normal(size=(H, H)), dims=("hidden_layer_1", "hidden_layer_2")
        )
        weights_2_out = pm.Normal("w_2_out", 0, sigma=1, initval=init.normal(size=H), dims="hidden_layer_2")
        act_1 = pm.math.tanh(pm.math.dot(ann_input, weights_in_1))
        act_2 = pm.math.tanh(pm.math.dot(act_1, weights_1_2))
        act_out = pm.math.sigmoid(pm.math.dot(act_2, weights_2_out))
        pm.Bernoulli("out", act_out, observed=ann_output, total_size=3 * N, dims="obs_id")
    fast = fuse(model)
    compare(model, fast)
    for name, value in model.initial_point().items():
        np.testing.assert_array_equal(fast.initial_point()[name], value)
        assert model.rvs_to_initial_values[model[name]] is not None


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_known_by_its_values(name):
    wanted, typed = ACTIVATIONS[name]
    for k, kind in enumerate(typed):
        z = pt.matrix("z", shape=(None, 4))
        found = read_activation(kind(z))
        assert (found and found[:2]) == (wanted and (wanted, z)), k


# --- other outcomes than 0 and 1


def sd(name="sigma", *shape):
    return pm.HalfNormal(name, 1, shape=shape)


def deep_net(X, w1, w2, w3):
    return tanh(tanh(X @ w1) @ w2) @ w3


def each_net(w3=()):
    """One network for each group, its last axis taken where there is one output: (group, obs), or with outputs."""
    w = add_weights(G, last=(K, *(w3 or (1,))))
    out = deep_net(XG, *w)
    return out if w3 else out[..., 0]


def row_net(*outputs):
    w1, w2, w3 = (w[group] for w in add_weights(G, last=(K, *outputs)))
    h = tanh(pt.einsum("oh,ohk->ok", tanh(pt.einsum("of,ofh->oh", XR, w1)), w2))
    return pt.einsum("ok,okc->oc", h, w3) if outputs else (h * w3).sum(-1)


def two_outputs():
    out = row_net(2) + normal("b", G, 2)[group]
    pm.Normal("y", out[:, 0], pt.exp(out[:, 1]), observed=XR[:, 0])


def two_nets():
    noise = tanh(X1 @ normal("v1", F, H)) @ normal("v2", H)
    pm.Normal("y", deep_net(X1, *add_weights()), pt.exp(noise), observed=Z1)


def shared_points():
    out = deep_net(X1, *add_weights(G, last=(K, 1)))[..., 0]
    pm.Poisson("y", pt.exp(out), observed=YG)


def with_line():
    out = deep_net(X1, *add_weights()) + X1 @ normal("slope", F)
    pm.Normal("y", 3 + 2 * out, sd(), observed=Z1)


def read_outs():
    """A layer that all groups share, and read-outs of their own: one network with an output for each group."""
    pm.Normal("y", (tanh(X1 @ normal("w1", F, H)) @ normal("w2", H, G)).T, 1, observed=XG[..., 0])


def outputs_first():
    """The same, typed with units in rows and points in columns."""
    pm.Normal("y", normal("w2", H, G).T @ tanh(X1 @ normal("w1", F, H)).T, 1, observed=XG[..., 0])


def with_biases():
    w1, w2, w3, b1, b2, b3 = biased(G)
    h = tanh(tanh(XG @ w1 + b1[:, None]) @ w2 + b2[:, None])
    pm.Normal("y", (h @ w3[..., None])[..., 0] + b3[:, None], sd("sigma", G)[:, None], observed=XG[..., 1])


def residual_output():
    """Units, and what is added to them by a network of them."""
    h = tanh(X1 @ normal("w1", F, H))
    pm.Normal("y", h + tanh(h @ normal("w2", H, K)) @ normal("w3", K, H), 1, observed=np.zeros((N, H)))


def both_kinds():
    observe(network())
    pm.Normal("height", normal("mean"), 1, observed=X1)


def several_outcomes():
    out = deep_net(X1, *add_weights(last=(K, 2)))
    pm.Normal("y", out[:, 0], 1, observed=Z1)
    pm.Poisson("n", pt.exp(out[:, 1]), observed=Y1)


def labels(kind):
    """0 and 1 of a network and of something beside it: the network is fused, the labels stay."""
    return lambda: observe(kind(network()))


def chance(kind):
    return lambda: pm.Bernoulli("y", kind(network()), observed=Y1)


def heads():
    """Outcomes of one network with read-outs of their own: its hidden layers are computed once."""
    h = tanh(pt.maximum(0, X1 @ normal("w1", F, H) + normal("b1", H)) @ normal("w2", H, K))
    pm.Normal("y", h @ normal("v1", K) + normal("b3"), pt.exp(h @ normal("v2", K)), observed=Z1)
    pm.Poisson("n", pt.exp(normal("v3", 3, K) @ h.T), observed=np.tile(Y1, (3, 1)))


def residual():
    h = tanh(X1 @ normal("w1", F, H) + normal("b1", H))
    observe((h + tanh(h @ normal("w2", H, H))) @ normal("w3", H))


def multiples():
    """Units times a number below two networks, and as the points of both."""
    h = pt.maximum(0, 1.7 * tanh(X1 @ normal("w1", F, H)) @ normal("w2", H, H))
    observe((h + tanh(h @ normal("w3", H, H))) @ normal("w4", H))


def multiples_of_points():
    observe(tanh(1.7 * tanh(X1 * normal("a", F)) @ normal("w1", F, H)) @ normal("w2", H))


def joined():
    """Embeddings and inputs with noise beside features, and the first layer handed on to the last."""
    x = pm.Normal("x", X1[:, 0], 0.1)
    points = pt.concatenate([normal("E", G, 3)[pm.Data("g", group[:N])], x[:, None], X1], axis=1)
    h = tanh(points @ normal("w1", 4 + F, H))
    observe(pt.concatenate([h, sigmoid(h @ normal("w2", H, K))], axis=1) @ normal("w3", H + K))


def on_top():
    """A network of a network, of its weights too, and an unknown that is normal about it."""
    w1 = (tanh(np.eye(F) @ normal("a", F, 3)) @ normal("b", 3, 2 * H)).reshape((F, 2, H))[:, 0]
    f = tanh(X1 @ w1) @ normal("w2", H, 2)
    theta = pm.Normal("theta", tanh((f / (1 + f**2)) @ normal("w3", 2, K)) @ normal("w4", K), 1)
    pm.Normal("y", pt.exp(theta), 1, observed=Z1)


def mixture():
    both = [pm.Normal.dist(network(), 1), pm.StudentT.dist(nu=3, mu=deep_net(X1, *add_weights_of("v")), sigma=1)]
    pm.Mixture("y", w=[0.3, 0.7], comp_dists=both, observed=Z1)


def add_weights_of(name):
    return normal(f"{name}1", F, H), normal(f"{name}2", H, K), normal(f"{name}3", K)


def gate():
    a, b = X1 @ normal("w1", F, H), X1 @ normal("w2", F, H)
    observe((tanh(a) * sigmoid(b)) @ normal("w3", H))


def steps():
    """A network as the slope of a path, with levels of groups."""
    w1, w2, level = normal("w1", F, H), normal("w2", H, F), normal("b", G, F)[group[:N]]
    x = pt.as_tensor(X1)
    for _ in range(16):
        x = x + 0.1 * (tanh(x @ w1) @ w2 + level - x)
    pm.Normal("y", x, 1, observed=X1)


def rows_of_groups():
    """Groups in an axis of their own, then in rows."""
    h = tanh(pm.Data("X", XG.reshape(-1, F)).reshape((G, N, F)) @ normal("w1", G, F, H)).reshape((G * N, H))
    pm.Normal("y", h @ normal("w2", H), 1, observed=XG[..., 0].flatten())


def normalised():
    z = X1 @ normal("w1", F, H)
    h = tanh((z - z.mean(-1, keepdims=True)) * normal("gain", H) + normal("shift", H))
    observe(tanh(h @ normal("w2", H, H)) @ normal("w3", H))


def own_points():
    """Points of each group by read-outs of each point."""
    observe((tanh(XG @ normal("w1", G, F, H)) * normal("w2", G, N, H)).sum(-1), YG)


def picked():
    logit = (tanh(XR @ normal("w1", G, F, H)) @ normal("w2", G, H, 1))[..., 0]
    observe(logit[group, np.arange(len(group))], YR)


def from_outcome():
    y = observe(network())
    pm.Deterministic("errors", y - Y1)


def only_potential():
    pm.Potential("extra", (pt.as_tensor(Y1) * network()).sum())


CLASSES = rng.integers(0, 3, (G, N))
OUTCOMES = {  # what is typed, how many networks are found
    "labels, offset": (labels(lambda z: z + pt.as_tensor(X1[:, 0])), 1),
    "labels, a line": (labels(lambda z: z + X1 @ normal("w3", F)), 1),
    "labels, intercepts": (
        labels(lambda z: z + normal("mu") + pm.HalfNormal("s", 1) * normal("z", G)[group[:N]]),
        1,
    ),
    "labels, squared": (labels(lambda z: z**2), 1),
    "labels, clipped": (chance(lambda z: pt.clip(sigmoid(z), 0.01, 0.99)), 1),
    "labels, probit": (chance(pm.math.invprobit), 1),
    "labels, complement": (chance(lambda z: 1 - sigmoid(z)), 1),
    "labels, some wrong": (chance(lambda z: 0.05 + 0.9 * sigmoid(z)), 1),
    "labels, several": (
        lambda: observe(tanh(X1 @ normal("w1", F, H)) @ normal("w2", H, 3), CLASSES[0][:, None] == [0, 1, 2]),
        1,
    ),
    "labels, two networks": (
        lambda: observe(network() + tanh(X1 @ normal("v1", F, H)) @ normal("v2", H)),
        2,
    ),
    "labels, picked": (picked, 1),
    "labels, used again": (from_outcome, 1),
    "potential": (only_potential, 1),
    "heads": (heads, 1),
    "residual": (residual, 2),
    "multiples": (multiples, 2),
    "multiples of points": (
        lambda: observe(tanh(2 * tanh(X1 * normal("a", F)) @ normal("v", F, H)) @ normal("w", H)),
        1,
    ),
    "gate": (gate, 2),
    "joined": (joined, 2),
    "on top of each other": (on_top, 3),
    "mixture": (mixture, 2),
    "rows of groups": (rows_of_groups, 1),
    "steps": (steps, 16),
    "normalised": (normalised, 1),
    "read-outs of each point": (own_points, 1),
    "latent points": (lambda: observe(network(normal("X", N, F))), 1),
    "normal": (lambda: pm.Normal("y", deep_net(X1, *add_weights()), 1, observed=Z1), 1),
    "normal, noise of each group": (lambda: pm.Normal("y", each_net(), sd("s", G)[:, None], observed=XG[..., 0]), 1),
    "normal, biases": (with_biases, 1),
    "normal, rows": (lambda: pm.Normal("y", row_net(), sd(), observed=XR[:, 0]), 1),
    "normal, noise is an output": (two_outputs, 1),
    "normal, noise is a network": (two_nets, 2),
    "normal, relu": (
        lambda: pm.Normal("y", pt.maximum(X1 @ normal("w1", F, H), 0) @ normal("w2", H), 1, observed=Z1),
        1,
    ),
    "normal, points of all groups": (shared_points, 1),
    "normal, a line beside it": (with_line, 1),
    "normal, read-outs alone": (read_outs, 1),
    "normal, outputs first": (outputs_first, 1),
    "student, masked": (lambda: pm.StudentT("y", nu=4, mu=each_net()[mask], sigma=1, observed=XG[..., 0][mask]), 1),
    "binomial": (lambda: pm.Binomial("y", 3, sigmoid(network()), observed=Y1), 1),
    "negative binomial": (lambda: pm.NegativeBinomial("y", mu=pt.exp(network()), alpha=2, observed=Y1), 1),
    "classes": (lambda: pm.Categorical("y", logit_p=deep_net(X1, *add_weights(last=(K, 3))), observed=CLASSES[0]), 1),
    "classes of groups": (
        lambda: pm.Categorical("y", p=pm.math.softmax(each_net((3,)), axis=-1), observed=CLASSES),
        1,
    ),
    "classes, rows": (lambda: pm.Categorical("y", logit_p=row_net(3), observed=np.arange(len(group)) % 3), 1),
    "several outcomes": (several_outcomes, 1),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_network_in_any_other_place_is_fused_and_what_is_above_stays(name):
    build, n_networks = OUTCOMES[name]
    model = make(build)
    fast = fuse(model, check=False)
    assert count_kernels(*fast.basic_RVs, *fast.potentials, kind=NetworkOutput) == n_networks
    assert [rv.name for rv in fast.observed_RVs] == [rv.name for rv in model.observed_RVs]
    compare(model, fuse_plainly(model))


def two_heads():
    """Biases of one of the read-outs only."""
    h = tanh(X1 @ normal("w1", F, H))
    pm.Normal("y", h @ normal("v1", H) + normal("b"), pt.exp(h @ normal("v2", H)), observed=Z1)


SUMS = {  # what is typed, whether its sum is inside of the network
    "a mean": (lambda: pm.Normal("y", normal("b") + network(), 1, observed=Z1), True),
    "a mean less the network": (lambda: pm.Normal("y", normal("b") - network() - normal("c"), 1, observed=Z1), True),
    "levels of the groups": (lambda: pm.Normal("y", row_net() + normal("b", G)[group], 1, observed=XR[:, 0]), True),
    "levels of some outputs": (two_outputs, True),
    "one head of two": (two_heads, True),
    "levels of other groups": (lambda: pm.Normal("y", row_net() + normal("b", 4)[OTHER], 1, observed=XR[:, 0]), False),
    "levels alone": (lambda: pm.Normal("y", normal("b", G)[group[:N]] + network(), 1, observed=Z1), False),
    "values of the points": (lambda: pm.Normal("y", network() + normal("b", N), 1, observed=Z1), False),
    "a residual connection": (residual_output, False),
}


@pytest.mark.parametrize("name", SUMS)
def test_biases_of_the_last_layer_are_inside_of_the_network_and_nothing_else_is(name):
    build, is_inside = SUMS[name]
    model = make(build)
    fast = fuse(model, check=False)
    (op,) = {v.owner.op for v in ancestors(fast.basic_RVs) if is_made_by(v, NetworkOutput)}
    assert op.has_bias == is_inside
    compare(model, fuse_plainly(model))


@pytest.mark.parametrize("kind", ["real", "binary", "classes"])
@pytest.mark.parametrize("vary", ["all", "readout"])
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_models_of_tables_are_fused_with_their_levels(kind, vary, size):
    n = 45
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "group": rng.permutation(list("xyz") * 15)})
    outcome = {"real": rng.normal(size=n), "binary": [0, 1, 1] * 15, "classes": list("klm") * 15}[kind]
    columns = {"group": "group", "features": ["a", "b"][:size], "outcome": "outcome", "kind": kind}
    table = tables.read_table(frame.assign(outcome=outcome), **columns)
    model = tables.build_network(table, vary=vary, n_units=size)
    fast = fuse(model, check=False)
    ends = ancestors([*fast.basic_RVs, *fast.potentials])
    (op,) = {v.owner.op for v in ends if is_made_by(v, NetworkOutput | NetworkLogLik)}
    assert op.has_bias
    compare(model, fuse_plainly(model))


def test_the_reference_names_every_activation_and_only_outcomes_that_are_tried_here():
    said = (
        (Path(__file__).parents[3] / "book" / "api_fuse.md")
        .read_text(encoding="utf-8")
        .partition("### What `fuse` takes")[2]
    )
    names = re.search("Activations: (.*), by name", said)[1]
    assert set(re.split(", | and ", names)) == set(_activations.ACTIVATIONS)
    outcomes = re.findall(r"`pm\.(\w+)`", said.partition("Not taken")[0])
    tried = {type(rv.owner.op) for build, _ in OUTCOMES.values() for rv in make(build).observed_RVs}
    assert {name for name in outcomes if type(getattr(pm, name).rv_op) not in tried} == set()
    assert len(outcomes) > 6


QUICK = (
    "@", "groups that share layers", "padded, logit[mask]", "rows, biases", "mixed activations",
    "normal, rows", "classes of groups", "heads", "joined",
)  # fmt: skip


@pytest.mark.parametrize("name", leave(FUSES | OUTCOMES, QUICK))
def test_kernels_have_the_density_and_gradient_that_were_typed(name):
    model = make(FUSES[name] if name in FUSES else OUTCOMES[name][0])
    compare(model, fuse(model, check=name in ("rows, biases", "classes of groups", "joined")))


def test_an_outcome_without_a_network_stays_beside_one_with():
    fast = fuse(make(both_kinds), check=False)
    assert [rv.name for rv in fast.observed_RVs] == ["height"]
    assert count_kernels(fast.potentials[0]) == 1
    compare(make(both_kinds), fast)


def test_an_output_that_differs_is_an_error_with_its_difference(monkeypatch):
    from hbnn.fusion._output import network_output

    monkeypatch.setattr(
        "hbnn.fusion._arrange.network_output", lambda *args, **kwargs: 1.01 * network_output(*args, **kwargs)
    )
    with pytest.raises(RuntimeError, match=r"Dot of w3, w2, w1 and the fused one differ in their value"):
        fuse(make(OUTCOMES["normal"][0]))


@pytest.mark.slow
def test_likelihood_and_predictions_of_another_outcome_need_no_other_model():
    model = make(OUTCOMES["normal, rows"][0])
    fast = fuse(model, check=False)
    prior = pm.sample_prior_predictive(3, model=model, random_seed=1)["prior"].to_dataset()
    idata = xr.DataTree.from_dict({"posterior": prior})
    found, expected = (
        pm.compute_log_likelihood(idata, model=m, progressbar=False, extend_inferencedata=False)["y"]
        for m in (fast, model)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    options = {"random_seed": 2, "progressbar": False, "compile_kwargs": {"mode": "FAST_COMPILE"}}
    found, expected = (pm.sample_posterior_predictive(idata, model=m, **options) for m in (fast, model))
    found, expected = (tree["posterior_predictive"]["y"].values for tree in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


# --- what is refused


def hidden(kind):
    return lambda: observe(kind(X1 @ normal("w1", F, H)) @ normal("w2", H))


def missing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        observe(network(), np.ma.masked_array(Y1, [0, 0, 1, 0, 0]))


def minibatch():
    X, y = pm.Minibatch(X1, Y1.astype("int32"), batch_size=2)
    observe(network(X), y, total_size=N)


def random_groups():
    g = pm.Categorical("g", p=np.ones(G) / G, shape=len(group))
    observe(tanh(pt.einsum("of,ofh->oh", XR, normal("w1", G, F, H)[g])) @ normal("w2", H), YR)


def many_combinations():
    w = normal("w1", 99, F, H)[group] + normal("u1", 99, F, H)[OTHER]
    observe(tanh(pt.einsum("of,ofh->oh", XR, w)) @ normal("w2", H), YR)


def measured_first():
    """Another observed variable is typed before the outcome."""
    pm.Normal("x", normal("mean", F), 1, observed=X1)
    hidden(lambda z: pm.math.softmax(z, axis=-1))()


def recurrent():
    """A LSTM of ten steps: each one is used four times in the next."""
    w, u = [normal(name, 4, n, H) for name, n in (("w", F), ("u", H))]
    h = c = pt.zeros((G, H))
    for t in range(10):
        gates = [XG[:, t % N] @ w[k] + h @ u[k] for k in range(4)]
        c = sigmoid(gates[0]) * c + sigmoid(gates[1]) * tanh(gates[2])
        h = sigmoid(gates[3]) * tanh(c)
    observe(h @ normal("v", H), YG[:, 0])


def named_axes():
    for name, n in (("obs", N), ("feature", F), ("hidden", H)):
        pm.modelcontext(None).add_coord(name, range(n))
    X, y = pmd.Data("X", X1, dims=("obs", "feature")), pmd.Data("labels", Z1, dims="obs")
    h = pmd.math.tanh(X.dot(pmd.Normal("w1", dims=("feature", "hidden")), dim="feature"))
    pmd.Normal("y", h.dot(pmd.Normal("w2", dims="hidden"), dim="hidden"), 1, observed=y)


LAYER = "stands where a hidden layer should be; wanted: an activation"
REFUSED = {
    "relu of a threshold": (hidden(lambda z: pt.maximum(z, 1)), "y: Maximum of w1 " + LAYER),
    "relu of the negative": (hidden(lambda z: z * (z < 0)), LAYER),
    "switch on the negative": (hidden(lambda z: pt.switch(z <= 0, z, 0)), LAYER),
    "no activation": (hidden(lambda z: z), LAYER),
    "softmax layer": (hidden(lambda z: pm.math.softmax(z, axis=-1)), "Softmax of w1 " + LAYER),
    "random groups": (random_groups, "the groups of the points are random; wanted: pm.Data"),
    "many combinations": (many_combinations, "more than twice as many combinations of groups as points"),
    "recurrent": (recurrent, LAYER),
    "wide": (
        lambda: observe(pt.maximum(X1 @ normal("w1", F, 500), 0) @ normal("w2", 500)),
        "with ReLU layers of 500 features or units the model is as fast as it is",
    ),
    "few points": (
        lambda: observe(
            pt.maximum(pt.einsum("of,ofh->oh", XR, normal("w1", 7, F, 16)[group]), 0) @ normal("w2", 16), YR
        ),
        "y: with ReLU layers of 16 features or units on 2 points a group the model is as fast as it is",
    ),
    "missing": (missing, "y has missing values; wanted: observed without masked"),
    "minibatch": (
        minibatch,
        r"y is observed on a pm.Minibatch, .* wanted: .*fuse\(.*remove_minibatched_nodes\(model\)\)",
    ),
    "named axes": (named_axes, "w1 is a variable of pymc.dims; wanted: the same model of pm.Normal"),
    "measured first": (measured_first, "y: Softmax of .*" + LAYER),
    "normal, a line": (
        lambda: pm.Normal("y", X1 @ normal("w", F), 1, observed=Z1),
        r"y: no network leads to it; wanted: pt.tanh\(X @ w1\) @ w2",
    ),
    "normal, nothing": (lambda: pm.Normal("y", normal("b"), 1, observed=Z1), "y: no network leads to it"),
    "normal, missing": (
        lambda: pm.Normal("y", network(), 1, observed=np.ma.masked_array(Z1, [0, 0, 1, 0, 0])),
        "y has missing values; wanted: observed without masked",
    ),
    "nothing observed": (lambda: pm.Potential("y", normal("w")), "the model has no observed variable; wanted: pm.B"),
    "a single label": (lambda: observe(normal("b"), 1), "y has 0 axes"),
    "one chance for all": (
        lambda: pm.Bernoulli("y", normal("b"), observed=Y1),
        "its probability is b; wanted: logit_p=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_recognised_is_refused_by_name(name):
    build, message = REFUSED[name]
    model = make(build)
    with pytest.raises(Refused, match=message) as error:
        fuse(model)
    assert error.value.complaints == [str(error.value)]
    with pytest.warns(UserWarning, match=message) as caught:
        assert fuse(model, strict=False) is model
    assert str(error.value) in [str(w.message) for w in caught]


@pytest.mark.parametrize("strict", [True, False])
def test_what_is_no_model_is_refused(strict):
    with pytest.raises(TypeError, match=r"model is a list; wanted: a pm\.Model"):
        fuse([], strict=strict)


@pytest.mark.parametrize("wrap", [np.asarray, lambda y: pm.Data("labels", y)], ids=["constant", "data"])
def test_labels_other_than_0_and_1_are_refused(wrap):
    model = make(lambda: observe(network(), wrap(2 * Y1)))
    with pytest.raises(Refused, match="y holds labels other than 0 and 1; wanted: 0 and 1"):
        fuse(model)


def test_a_mistake_in_here_is_no_refusal(monkeypatch):
    def fail(*_, **__):
        raise ValueError("a mistake")

    monkeypatch.setattr("hbnn.fusion._arrange.network_loglik", fail)
    with pytest.raises(ValueError, match="a mistake"):
        fuse(make(FUSES["@"]), strict=False)


def test_points_that_cannot_be_compared_are_refused():
    with pm.Model() as model:
        observe(np.full((N, F), 1e300) @ normal("w", F))
    with pytest.raises(Refused, match="not finite at any weights; wanted: finite points"):
        fuse(model)


def test_a_likelihood_that_differs_is_an_error_with_its_difference(monkeypatch):
    def tilted(*args, **kwargs):
        return 1.001 * network_loglik(*args, **kwargs)

    monkeypatch.setattr("hbnn.fusion._arrange.network_loglik", tilted)
    model = make(FUSES["@"])
    with pytest.raises(RuntimeError, match=r"log likelihood of y and the fused one differ in their value, by 1\.0e-03"):
        fuse(model)
    assert count_kernels(fuse(model, check=False).potentials[0])


# --- what stays


def make_rows():
    """Groups in rows, with names for everything."""
    coords = {
        "group": list("abc"),
        "feature": ["left", "right"],
        "hidden": range(H),
        "row": np.arange(len(group)) + 100,
    }
    with pm.Model(coords=coords) as model:
        X, y = pm.Data("X", XR, dims=("row", "feature")), pm.Data("labels", YR, dims="row")
        g = pm.Data("g", group, dims="row")
        w1 = pm.Normal("w1", dims=("group", "feature", "hidden"))
        w2 = pm.Normal("w2", dims="hidden")
        h = pm.Deterministic("h", tanh(pt.einsum("of,ofh->oh", X, w1[g])), dims=("row", "hidden"))
        p = pm.Deterministic("p", sigmoid(h @ w2), dims="row")
        pm.Potential("extra", -(w2**2).sum())
        pm.Bernoulli("y", p, observed=y, dims="row")
    return model


def test_names_dims_coords_and_data_stay_and_the_original_is_not_changed():
    model = make_rows()
    before = list(model.named_vars), list(model.observed_RVs), list(model.potentials), str(model)
    fast = fuse(model, check=False)
    assert (list(model.named_vars), list(model.observed_RVs), list(model.potentials), str(model)) == before
    assert set(fast.named_vars) == set(model.named_vars)
    assert fast.coords == model.coords
    assert {k: tuple(v) for k, v in fast.named_vars_to_dims.items()} == {
        k: tuple(v) for k, v in model.named_vars_to_dims.items() if k != "y"
    }
    assert [v.name for v in fast.deterministics] == ["h", "p"]
    assert sorted(v.name for v in fast.data_vars) == ["X", "g", "labels"]
    assert not set(fast.named_vars.values()) & set(model.named_vars.values())


def test_a_model_has_its_initial_values_while_it_is_copied_too(monkeypatch):
    def copy(bare):
        assert model.rvs_to_initial_values[model["w"]] is not None
        return fgraph_from_model(bare)

    monkeypatch.setattr("hbnn.fusion._fuse.fgraph_from_model", copy)
    with pm.Model() as model:
        observe(X1 @ pm.Normal("w", shape=F, initval=np.ones(F)))
    assert fuse(model, check=False).initial_point()["w"].tolist() == [1, 1]


def test_deterministics_are_those_of_the_model():
    model = make_rows()
    fast = fuse(model, check=False)
    point = {name: rng.normal(size=v.shape) for name, v in model.initial_point().items()}
    found, expected = (
        m.compile_fn([m["h"], m["p"]], inputs=m.free_RVs, mode="FAST_COMPILE")(point) for m in (fast, model)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b)
    assert not any(count_kernels(variable) for variable in fast.deterministics)


@pytest.mark.parametrize("mode", ["FAST_COMPILE", pytest.param("NUMBA", marks=pytest.mark.slow)])
def test_data_can_be_exchanged(mode):
    model = make_rows()
    fast = fuse(model, check=False)
    functions = [m.compile_logp(mode=mode) for m in (fast, model)]
    point = {name: rng.normal(size=v.shape) for name, v in model.initial_point().items()}
    first = functions[0](point)
    n = 9
    new = {"X": rng.normal(size=(n, F)), "labels": rng.integers(0, 2, n), "g": rng.integers(0, 2, n)}
    pm.set_data(new, model=fast, coords={"row": range(n)})
    assert functions[1](point) == pytest.approx(first)  # the data are its own
    pm.set_data(new, model=model, coords={"row": range(n)})
    assert functions[0](point) == pytest.approx(functions[1](point), rel=1e-9)
    assert functions[0](point) != pytest.approx(first)


def test_single_precision_is_that_of_the_likelihood_alone():
    model = make_rows()
    exact, single = (fuse(model, check=False, dtype=dtype) for dtype in ("float64", "float32"))
    point = {name: rng.normal(size=v.shape) for name, v in model.initial_point().items()}
    expected, found = (
        m.compile_fn([m.logp(vars=[m["y"]]), m.dlogp()], inputs=m.value_vars, mode="FAST_COMPILE")(point)
        for m in (exact, single)
    )
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        assert (a != b).any()
    assert {str(v.dtype) for v in (*found, *single.value_vars)} == {"float64"}


@pytest.mark.slow
def test_single_precision_is_compared_when_it_is_made():
    assert count_kernels(fuse(make_rows(), dtype="float32").potentials[-1])


def test_an_unknown_type_of_numbers_is_named():
    with pytest.raises(ValueError, match="dtype='float16'; wanted: one of float64, float32, or None"):
        fuse(make_rows(), dtype="float16")


GOES_ON = {
    "copied": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
    "frozen": freeze_dims_and_data,
    "done": lambda model: pm.do(model, {"w2": np.ones(H)}),
    "observed": lambda model: pm.observe(model, {"w2": np.ones(H)}),
}


@pytest.mark.parametrize("name", leave(GOES_ON, ["done"]))
def test_a_fused_model_goes_where_a_model_goes(name):
    model = make_rows()
    fast = fuse(model, check=False)
    assert fuse(fast) is fast
    compare(GOES_ON[name](model), GOES_ON[name](fast))


@pytest.mark.slow
def test_a_fused_model_can_be_sampled():
    model = make_rows()
    with fuse(model, check=False):
        idata = pm.sample(
            draws=5,
            tune=5,
            chains=1,
            cores=1,
            nuts_sampler="pymc",
            progressbar=False,
            random_seed=0,
            compute_convergence_checks=False,
        )
        fit = pm.fit(5, progressbar=False, random_seed=0)
    assert idata.posterior["p"].dims == ("chain", "draw", "row")
    pm.compute_log_likelihood(idata, model=model, progressbar=False)
    assert idata.log_likelihood["y"].shape == (1, 5, len(group))
    assert np.isfinite(fit.hist).all()


@pytest.mark.slow
def test_nutpie_compiles_it_and_exchanges_data():
    nutpie = pytest.importorskip("nutpie")
    compiled = nutpie.compile_pymc_model(fuse(make_rows(), check=False))
    compiled = compiled.with_data(X=-XR, labels=1 - YR, g=group[::-1].copy())
    draws = nutpie.sample(compiled, draws=5, tune=5, chains=1, seed=0, progress_bar=False)
    h, w1 = draws.posterior["h"].values[0, -1], draws.posterior["w1"].values[0, -1]
    np.testing.assert_allclose(h, np.tanh(np.einsum("of,ofh->oh", -XR, w1[group[::-1]])), rtol=1e-9)


@pytest.mark.parametrize(
    "name", leave(["group biases", "rows, @", "padded, logit[mask]", "dims and data"], ["padded, logit[mask]"])
)
def test_jax_takes_it(name):
    from pymc.sampling.jax import get_jaxified_logp

    model = make_rows() if name == "dims and data" else make(FUSES[name])
    fast = fuse(model, check=False)
    point = {k: rng.normal(size=v.shape) for k, v in model.initial_point().items()}
    with jax.enable_x64(True):
        found = get_jaxified_logp(fast)([point[v.name] for v in fast.value_vars])
    assert float(found) == pytest.approx(float(model.compile_logp(mode="FAST_COMPILE")(point)), rel=1e-9)


# --- any network


TYPED = [kind for name, kinds in ACTIVATIONS.values() if name for kind in kinds]


def build_any(kind, sizes, activations, extras, points, outcome):
    """A network of which anything may be otherwise."""
    n, n_groups = 7, 3
    rng = np.random.default_rng(0)
    g, other = rng.integers(-3, 3, n), rng.integers(0, 2, n)
    shape = (n_groups, n) if kind == "axis" else (n,)

    def multiply(h, name, n_out):
        n_in = h.type.shape[-1]
        if kind == "one":
            return h @ normal(name, n_in, n_out)
        w = normal(name, n_groups, n_in, n_out)
        if kind == "axis":
            return h @ w
        w = normal(f"m_{name}", n_in, n_out) + pm.HalfNormal(f"s_{name}", 1) * w[g]
        w = w + normal(f"u_{name}", 2, n_in, n_out)[other] if kind == "crossed" else w
        return (h[:, :, None] * w).sum(1)

    X = rng.normal(size=(*shape, sizes[0]))
    h = X = normal("X", *shape, sizes[0]) if points == "unknown" else pt.as_tensor(X)
    if points == "joined":
        unknown = normal("E", n_groups, 2)[rng.integers(0, n_groups, shape)]
        h = pt.concatenate([unknown, X], axis=-1)
    for k, (n_out, activation, extra) in enumerate(zip(sizes[1:], activations, extras, strict=False)):
        z = multiply(h, f"w{k}", n_out)
        z = {"bias": z + normal(f"b{k}", n_out), "factor": normal(f"f{k}", n_out) - z * 0.7}.get(extra, z)
        z = z + normal(f"c{k}", n_groups, n_out)[g] if extra == "group bias" and kind != "axis" else z
        below, h = h, activation(z)
        h = h + below if extra == "residual" and below.type.shape == h.type.shape else h
        h = pt.concatenate([h, below], axis=-1) if extra == "residual" and below.type.shape != h.type.shape else h
        h = normal(f"k{k}", n_out) * h / 2 if extra == "dropout" else h
    out = multiply(h, "last", 2)
    y = rng.normal(size=shape)
    if outcome == "two":
        pm.Normal("y", out[..., 0], pt.exp(out[..., 1]), observed=y)
    elif outcome == "line":
        pm.StudentT("y", nu=4, mu=-out[..., 0] + 0.1 * X.sum(-1), sigma=1, observed=y)
    elif outcome == "labels":
        observe(out[..., 1] * 0.5 + normal("b"), (y > 0).astype(int))
    else:
        mask = y > -0.5
        pm.Bernoulli("y", sigmoid(out[..., 0])[mask], observed=(y[mask] > 0).astype(int))


SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 100))]


@pytest.mark.parametrize("seed", SEEDS)
def test_any_network_is_read_rightly(seed):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["one", "axis", "rows", "crossed"])
    sizes = rng.integers(1, 4, rng.integers(2, 5)).tolist()
    activations = [TYPED[k] for k in rng.integers(0, len(TYPED), 3)]
    extras = rng.choice(["", "bias", "group bias", "factor", "residual", "dropout"], 3).tolist()
    points, outcome = rng.choice(["data", "unknown", "joined"]), rng.choice(["two", "line", "labels", "mask"])
    model = make(lambda: build_any(kind, sizes, activations, extras, points, outcome))
    refused = ""
    try:
        compare(model, fuse_plainly(model))
    except Refused as error:
        refused = str(error)
    # below a residual connection, units of a ReLU layer alone are left as they are
    below = "residual" in extras[: len(sizes) - 1]
    assert not refused or (below and re.search("(Add|Join|DimShuffle) of", refused) and LAYER in refused)
