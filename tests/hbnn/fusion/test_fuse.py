"""A network typed in plain PyMC, in any of the ways that people type one, gets the fused likelihood, or is refused."""

import re
import time
from pathlib import Path

import arviz_stats
import cloudpickle
import jax
import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmd
import pytensor
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


def observe(logit, y=Y1, **kwargs):
    return pm.Bernoulli("y", logit_p=logit, observed=y, **kwargs)


def sd(name="sigma", *shape):
    return pm.HalfNormal(name, 1, shape=shape)


SHAPES = {
    "w1": (F, H), "w2": (H, K), "w3": (K,), "column": (K, 1), "pair": (K, 2), "columns": (K, 3), "v": (H,), "u": (H, H),
    "b1": (H,), "b2": (K,), "b3": (),
}  # fmt: skip
PARTS = {
    "net": "tanh(X1 @ w1) @ v",
    "deep": "tanh(tanh(X1 @ w1) @ w2) @ w3",
    "each": "(tanh(tanh(XG @ W1) @ W2) @ COLUMN)[..., 0]",
    "row_units": "tanh(pt.einsum('oh,ohk->ok', tanh(pt.einsum('of,ofh->oh', XR, W1[g])), W2[g]))",
    "row_net": "(row_units * W3[g]).sum(-1)",
    "g": "pt.as_tensor(group)",
    "x": "pm.Data('x', X1[:, 0])",
}


class Names(dict):
    """What a typing names is made where it is named first: `w1` is normal, `W1` for each group, not centred."""

    def __missing__(self, name):
        if name in PARTS:
            self[name] = eval(PARTS[name], globals(), self)
        elif name.isupper() and name.lower() in SHAPES:
            shape = SHAPES[name.lower()]
            z = normal(name, G, *shape)
            self[name] = normal(f"mu_{name}", *shape) + sd(f"sd_{name}") * z
        else:
            self[name] = normal(name, *SHAPES[name])
        return self[name]


def make(typed):
    """A model of what is typed: a text, or a function where it takes a loop."""
    with pm.Model() as model:
        typed() if callable(typed) else exec(typed, globals(), Names())
    return model


def with_dims():
    """Lengths that are known only when the model runs: weights of named dimensions."""
    coords = {"feature": range(F), "h1": range(H), "h2": range(K), "out": range(1)}
    for name, values in coords.items():
        pm.modelcontext(None).add_coord(name, values)
    w1 = pm.Normal("w1", dims=("feature", "h1"))
    w2 = pm.Normal("w2", dims=("h1", "h2"))
    observe((tanh(tanh(X1 @ w1) @ w2) @ pm.Normal("w3", dims=("h2", "out"))).flatten())


def many_layers():
    h = X1
    for k, (n_in, n_out) in enumerate([(F, 3), (3, 4), (4, 2), (2, 5)]):
        h = tanh(h @ normal(f"w{k}", n_in, n_out))
    observe(h @ normal("last", 5))


OTHER = np.array([0, 1, 3, 2, -4, -3, -1, -2, 0, 1, 3, 2, 0, 1])  # another grouping of the rows
X3, Y3 = np.zeros((2, G, N, F)) + np.arange(F), np.ones((2, G, N), int)
FUSES = {
    "three axes": "observe((tanh(X3 @ normal('w', G, F, H)) @ normal('r', G, H, 1))[..., 0], Y3)",
    "three axes, two of weights": "observe((tanh(X3 @ normal('w', 2, G, F, H)) @ normal('r', 2, G, H, 1))[..., 0], Y3)",
    "factors and signs": """
h = tanh((b1 - X1 @ w1 * normal('a1', H)) / np.sqrt(F))
observe(-(2 * tanh((0.5 * h * normal('keep', H)) @ w2) @ w3 - b3) / sd('T'))""",
    "one feature, *": "observe(tanh(x[:, None] * normal('a', H) + b1) @ v)",
    "one feature, @": "observe(tanh(x[:, None] @ normal('a', H)[None, :] + b1) @ v)",
    "one feature, outer": "observe(tanh(pt.outer(x, normal('a', H)) + b1) @ v)",
    "one feature, by row": "observe((tanh(XR[:, 0, None] * normal('a', G, H)[group]) * V[group]).sum(-1), YR)",
    "rows, index first": """
w = normal('m', F, H) + sd('s', F, H) * (W1 / 2)[g]
h = tanh((XR[:, :, None] * w).sum(1) + (normal('mb', H) - normal('zb', G, H)[g]))
observe((tanh((h[:, :, None] * W2[g]).sum(1)) * pt.exp(W3[g])).sum(-1), YR)""",
    "rows, crossed": """
w = W1[g] + normal('u1', 4, F, H)[OTHER]  # a sum of weights, a table of both groupings, and one in a layer of its own
h = tanh(pt.einsum('oh,ohk->ok', tanh(pt.einsum('of,ofh->oh', XR, w)), normal('u2', G, 4, H, K)[g, OTHER]))
observe((h * normal('u3', 4, K)[OTHER]).sum(-1), YR)""",
    "rows, nested": """
w = (W1 + normal('u1', 2, F, H)[np.array([0, 1, 1])])[g]
h = tanh(pt.einsum('oh,hk->ok', tanh(pt.einsum('of,ofh->oh', XR, w)), W2[0]))
observe(h @ W3[1] + normal('c', G)[g], YR)""",
    "mixed activations": """
h = pt.maximum(tanh(X1 @ w1) @ normal('w', H, H), 0) * normal('keep', H)
observe(pt.switch(h @ u > 0, h @ u, 0.2 * (h @ u)) @ v)""",
    "@": "observe(deep)",
    "dot": "observe(pt.dot(pt.tanh(pt.dot(pt.tanh(pt.dot(X1, w1)), w2)), w3))",
    "tensordot": "observe(pt.tensordot(tanh(tanh(pt.tensordot(X1, w1, 1)) @ w2), w3, 1))",
    "einsum": "observe(tanh(pt.einsum('oh,hk->ok', tanh(pt.einsum('of,fh->oh', X1, w1)), w2)) @ w3)",
    "matvec": "observe(pt.matvec(tanh(pt.matmul(tanh(X1 @ w1), w2)), w3))",
    "transposed": "observe(w3 @ tanh(w2.T @ tanh(w1.T @ X1.T)))",
    "column [:, 0]": "observe((tanh(tanh(X1 @ w1) @ w2) @ column)[:, 0])",
    "column squeezed": "observe((tanh(tanh(X1 @ w1) @ w2) @ column).squeeze())",
    "column flattened": "observe((tanh(tanh(X1 @ w1) @ w2) @ column).flatten())",
    "column kept": "observe(tanh(tanh(X1 @ w1) @ w2) @ column, Y1[:, None])",
    "one of several columns": "observe((tanh(tanh(X1 @ w1) @ w2) @ columns)[:, 1])",
    "sum of products": "observe((tanh(tanh((X1[:, :, None] * w1).sum(1)) @ w2) * w3).sum(-1))",
    "many layers": many_layers,
    "no hidden layer": "observe(X1 @ normal('w', F) + normal('b'))",
    "points and units of one": "observe(tanh(X1[:1] @ normal('w', F, 1)) @ normal('r', 1), Y1[:1])",
    "all biases": "observe(tanh(tanh(X1 @ w1 + b1) @ w2 + b2) @ w3 + b3)",
    "some biases": "observe(tanh(tanh(X1 @ w1 + b1) @ w2) @ w3)",
    "two biases": "observe(b3 + (tanh(tanh(X1 @ w1 + b1 + normal('c1', H)) @ w2) @ w3 + normal('c3')))",
    "relu": "observe(pt.maximum(pt.maximum(X1 @ w1, 0) @ w2, 0) @ w3)",
    "p sigmoid": "pm.Bernoulli('y', sigmoid(deep), observed=Y1)",
    "p by hand": "pm.Bernoulli('y', 1 / (1 + pt.exp(-deep)), observed=Y1)",
    "deterministics": """
logit = pm.Deterministic('logit', pm.Deterministic('h', tanh(tanh(X1 @ w1) @ w2)) @ w3)
pm.Bernoulli('y', pm.Deterministic('p', sigmoid(logit)), observed=Y1)""",
    "dims": with_dims,
    "weights cut from a vector": """
flat = normal('flat', F * H + H)
observe(tanh(X1 @ flat[: F * H].reshape((F, H))) @ flat[F * H :])""",
    "two outcomes": "observe(deep); pm.Bernoulli('other', logit_p=tanh(X1 @ w1) @ v, observed=1 - Y1)",
    "groups": "observe((tanh(tanh(XG @ W1) @ W2) @ W3[..., None])[..., 0], YG)",
    "groups, column": "observe((tanh(tanh(XG @ W1) @ W2) @ COLUMN).squeeze(-1), YG)",
    "groups, sum": "observe((tanh(tanh(XG @ W1) @ W2) * W3[:, None, :]).sum(-1), YG)",
    "groups, einsum": "observe(pt.einsum('goh,gh->go', tanh(tanh(pt.einsum('gof,gfh->goh', XG, W1)) @ W2), W3), YG)",
    "groups, flattened": "observe((tanh(tanh(XG @ W1) @ W2) @ W3[..., None]).flatten(), YG.flatten())",
    "groups last": "observe(each.T, YG.T)",
    "groups of the same points": "observe((tanh(X1 @ normal('w', G, F, H)) * V[:, None]).sum(-1), YG)",
    "groups with one network": "observe(tanh(pt.dot(XG, w1)) @ v, YG)",
    "groups that share layers": "observe((tanh(XG @ W1) @ normal('r', H, 1))[..., 0] + normal('b', G)[:, None], YG)",
    "group biases": """
h = tanh(tanh(XG @ W1 + B1[:, None, :]) @ W2 + B2[:, None])
observe((h @ W3[..., None])[..., 0] + B3[:, None], YG)""",
    "shared biases": """
h = tanh(tanh(XG @ W1 + (b1 + np.eye(H) @ normal('z', H))) @ W2)
observe((h * W3[:, None]).sum(-1) + b3, YG)""",
    "padded, logit[mask]": "observe(each[mask], YG[mask])",
    "padded, logit[nonzero]": "observe(each[pt.as_tensor(mask).nonzero()], YG[mask])",
    "padded, p[mask]": "pm.Bernoulli('y', sigmoid(each)[mask], observed=YG[mask])",
    "one network, some points": "observe(net[mask[2]], Y1[mask[2]])",
    "rows, einsum": "observe(pt.einsum('oh,oh->o', row_units, W3[g]), YR)",
    "rows, @": "observe((tanh(tanh(XR[:, None, :] @ W1[g]) @ W2[g]) @ W3[g][..., None])[:, 0, 0], YR)",
    "rows, sum": """
h = tanh((XR[:, :, None] * W1[g]).sum(1))
observe((tanh((h[:, :, None] * W2[g]).sum(axis=1)) * W3[g]).sum(1), YR)""",
    "rows, biases": """
h = tanh(pt.einsum('of,ofh->oh', XR, W1[group]) + B1[group])
h = tanh(pt.einsum('oh,ohk->ok', h, W2[group]) + B2[group])
observe((h * W3[group]).sum(-1) + B3[group], YR)""",
    "rows, groups without points": """
observe((tanh(pt.einsum('of,ofh->oh', XR, normal('w', 9, F, H)[group])) * v).sum(-1), YR)""",
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
    """`bayesian_neural_network_ADVI` of pymc-examples, with its initial values, data and total size; without checks."""
    init = np.random.default_rng(9)
    coords = {"hidden_layer_1": np.arange(H), "hidden_layer_2": np.arange(H), "train_cols": np.arange(F)}
    with pm.Model(coords=coords | {"obs_id": np.arange(N)}, check_bounds=False) as model:
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
    assert not fast.check_bounds
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


CLASSES = rng.integers(0, 3, (G, N))
OUTCOMES = {  # what is typed, how many networks are found
    "labels, offset": ("observe(net + pt.as_tensor(X1[:, 0]))", 1),
    "labels, a line": ("observe(net + X1 @ normal('slope', F))", 1),
    "labels, intercepts": ("observe(net + normal('mu') + sd('s') * normal('z', G)[group[:N]])", 1),
    "labels, squared": ("observe(net ** 2)", 1),
    "labels, clipped": ("pm.Bernoulli('y', pt.clip(sigmoid(net), 0.01, 0.99), observed=Y1)", 1),
    "labels, probit": ("pm.Bernoulli('y', pm.math.invprobit(net), observed=Y1)", 1),
    "labels, complement": ("pm.Bernoulli('y', 1 - sigmoid(net), observed=Y1)", 1),
    "labels, some wrong": ("pm.Bernoulli('y', 0.05 + 0.9 * sigmoid(net), observed=Y1)", 1),
    "labels, several": ("observe(tanh(X1 @ w1) @ normal('r', H, 3), CLASSES[0][:, None] == [0, 1, 2])", 1),
    "labels, two networks": ("observe(net + tanh(X1 @ normal('v1', F, H)) @ normal('v2', H))", 2),
    "labels, picked": ("observe((tanh(XR @ W1) @ normal('r', G, H, 1))[..., 0][group, np.arange(len(group))], YR)", 1),
    "labels, used again": ("pm.Deterministic('errors', observe(net) - Y1)", 1),
    "potential": ("pm.Potential('extra', (pt.as_tensor(Y1) * net).sum())", 1),
    # outcomes of one network with read-outs of their own: its hidden layers are computed once
    "heads": ("""
h = tanh(pt.maximum(0, X1 @ w1 + b1) @ w2)
pm.Normal('y', h @ w3 + b3, pt.exp(h @ normal('v2', K)), observed=Z1)
pm.Poisson('n', pt.exp(normal('v3', 3, K) @ h.T), observed=np.tile(Y1, (3, 1)))""", 1),
    "heads, labels": ("""
h = tanh(tanh(X1 @ w1) @ w2)
observe(h @ w3)
pm.Bernoulli('other', sigmoid(h @ normal('v2', K) + b3)[mask[2]], observed=1 - Y1[mask[2]])
pm.Normal('z', h @ normal('v3', K), 1, observed=Z1)
pm.Poisson('n', pt.exp(h @ normal('v4', K)), observed=Y1)""", 1),
    "a gap in a covariate": ("""
x = pm.Normal('x', 0, 1, observed=np.array([0.1, np.nan, 0.2, 0.3, -0.4]))
pm.Normal('y', tanh(pt.stack([x, pt.as_tensor(X1[:, 1])], axis=1) @ w1) @ v, 1, observed=Z1)""", 1),
    "a gap in an outcome": ("pm.Normal('y', net, 1, observed=np.ma.masked_array(Z1, [0, 0, 1, 0, 0]))", 1),
    "a gap in labels": ("observe(net, np.ma.masked_array(Y1, [0, 0, 1, 0, 0]))", 1),
    "an ensemble": ("""
h = tanh(pt.einsum('nf,efh->enh', X1, normal('w', G, F, H)) + normal('b', G, H)[:, None])
pm.Normal('y', pt.einsum('enh,eh->en', h, normal('r', G, H)).mean(0), 1, observed=Z1)""", 1),
    "an ensemble, points first": ("""
h = tanh(pt.einsum('nf,efh->neh', X1, normal('w', G, F, H)))
pm.Normal('y', pt.einsum('neh,eh->ne', h, normal('r', G, H)), 1, observed=XG[..., 0].T)""", 1),
    "columns of merged weights": ("""
out = (tanh(X1 @ w1) @ normal('r', H, 2, 3).reshape((H, 6))).reshape((N, 2, 3))
pm.Normal('y', out, 1, observed=np.ones((N, 2, 3)))""", 1),
    "minibatch, labels": ("""
X, y = pm.Minibatch(X1, Y1.astype('int32'), batch_size=2)
observe(tanh(X @ w1) @ v, y, total_size=N)""", 1),
    "minibatch, rows": ("""
X, y, g = pm.Minibatch(XR, XR[:, 0], group, batch_size=4)
h = tanh(pt.einsum('of,ofh->oh', X, W1[g]))
pm.Normal('y', (h * V[g]).sum(-1), 1, observed=y, total_size=len(group))""", 1),
    "residual": ("h = tanh(X1 @ w1 + b1); observe((h + tanh(h @ u)) @ v)", 2),
    # units times a number below two networks, and as the points of both
    "multiples": ("""
h = pt.maximum(0, 1.7 * tanh(X1 @ w1) @ normal('w', H, H))
observe((h + tanh(h @ u)) @ v)""", 2),
    "multiples of points": ("observe(tanh(2 * tanh(X1 * normal('a', F)) @ w1) @ v)", 1),
    "gate": ("observe((tanh(X1 @ w1) * sigmoid(X1 @ normal('w', F, H))) @ v)", 2),
    # embeddings and inputs with noise beside features, and the first layer handed on to the last
    "joined": ("""
noisy = pm.Normal('noisy', X1[:, 0], 0.1)
points = pt.concatenate([normal('E', G, 3)[pm.Data('place', group[:N])], noisy[:, None], X1], axis=1)
h = tanh(points @ normal('w', 4 + F, H))
observe(pt.concatenate([h, sigmoid(h @ w2)], axis=1) @ normal('r', H + K))""", 2),
    # a network of a network, of its weights too, and an unknown that is normal about it
    "on top of each other": ("""
w = (tanh(np.eye(F) @ normal('a', F, 3)) @ normal('b', 3, 2 * H)).reshape((F, 2, H))[:, 0]
f = tanh(X1 @ w) @ normal('r', H, 2)
theta = pm.Normal('theta', tanh((f / (1 + f**2)) @ normal('s', 2, K)) @ w3, 1)
pm.Normal('y', pt.exp(theta), 1, observed=Z1)""", 3),
    "mixture": ("""
other = tanh(tanh(X1 @ normal('v1', F, H)) @ normal('v2', H, K)) @ normal('v3', K)
both = [pm.Normal.dist(net, 1), pm.StudentT.dist(nu=3, mu=other, sigma=1)]
pm.Mixture('y', w=[0.3, 0.7], comp_dists=both, observed=Z1)""", 2),
    "rows of groups": ("""
h = tanh(pm.Data('X', XG.reshape(-1, F)).reshape((G, N, F)) @ W1).reshape((G * N, H))
pm.Normal('y', h @ v, 1, observed=XG[..., 0].flatten())""", 1),
    # a network as the slope of a path, with levels of groups
    "steps": ("""
path, slope, level = pt.as_tensor(X1), normal('slope', H, F), normal('b', G, F)[group[:N]]
for _ in range(16):
    path = path + 0.1 * (tanh(path @ w1) @ slope + level - path)
pm.Normal('y', path, 1, observed=X1)""", 16),
    "normalised": ("""
z = X1 @ w1
h = tanh((z - z.mean(-1, keepdims=True)) * normal('gain', H) + b1)
observe(tanh(h @ u) @ v)""", 1),
    "read-outs of each point": ("observe((tanh(XG @ W1) * normal('r', G, N, H)).sum(-1), YG)", 1),
    "latent points": ("observe(tanh(normal('X', N, F) @ w1) @ v)", 1),
    "normal": ("pm.Normal('y', deep, 1, observed=Z1)", 1),
    "normal, noise of each group": ("pm.Normal('y', each, sd('s', G)[:, None], observed=XG[..., 0])", 1),
    "normal, biases": ("""
h = tanh(tanh(XG @ W1 + B1[:, None]) @ W2 + B2[:, None])
pm.Normal('y', (h @ COLUMN)[..., 0] + B3[:, None], sd('sigma', G)[:, None], observed=XG[..., 1])""", 1),
    "normal, rows": ("pm.Normal('y', row_net, sd(), observed=XR[:, 0])", 1),
    "normal, noise is an output": ("""
out = pt.einsum('ok,okc->oc', row_units, PAIR[g]) + normal('b', G, 2)[g]
pm.Normal('y', out[:, 0], pt.exp(out[:, 1]), observed=XR[:, 0])""", 1),
    "normal, noise is a network": ("pm.Normal('y', deep, pt.exp(tanh(X1 @ normal('s', F, H)) @ v), observed=Z1)", 2),
    "normal, relu": ("pm.Normal('y', pt.maximum(X1 @ w1, 0) @ v, 1, observed=Z1)", 1),
    "normal, points of all groups": ("""
pm.Poisson('y', pt.exp((tanh(tanh(X1 @ W1) @ W2) @ COLUMN)[..., 0]), observed=YG)""", 1),
    "normal, a line beside it": ("pm.Normal('y', 3 + 2 * (deep + X1 @ normal('slope', F)), sd(), observed=Z1)", 1),
    # a layer that all groups share, and read-outs of their own: one network with an output for each group
    "normal, read-outs alone": ("pm.Normal('y', (tanh(X1 @ w1) @ normal('r', H, G)).T, 1, observed=XG[..., 0])", 1),
    "normal, outputs first": ("pm.Normal('y', normal('r', H, G).T @ tanh(X1 @ w1).T, 1, observed=XG[..., 0])", 1),
    "student, masked": ("pm.StudentT('y', nu=4, mu=each[mask], sigma=1, observed=XG[..., 0][mask])", 1),
    "binomial": ("pm.Binomial('y', 3, sigmoid(net), observed=Y1)", 1),
    "negative binomial": ("pm.NegativeBinomial('y', mu=pt.exp(net), alpha=2, observed=Y1)", 1),
    "classes": ("pm.Categorical('y', logit_p=tanh(tanh(X1 @ w1) @ w2) @ columns, observed=CLASSES[0])", 1),
    "classes of groups": ("""
pm.Categorical('y', p=pm.math.softmax(tanh(tanh(XG @ W1) @ W2) @ COLUMNS, axis=-1), observed=CLASSES)""", 1),
    "classes, rows": ("""
pm.Categorical('y', logit_p=pt.einsum('ok,okc->oc', row_units, COLUMNS[g]), observed=np.arange(len(group)) % 3)""", 1),
    "embeddings laid flat": ("""
words = normal('E', G, 3)[np.stack([group[:N], group[-N:]], axis=1)].reshape((N, 6))
pm.Normal('y', tanh(words @ normal('w', 6, H)) @ v, 1, observed=Z1)""", 1),
    "several outcomes": ("""
out = tanh(tanh(X1 @ w1) @ w2) @ pair
pm.Normal('y', out[:, 0], 1, observed=Z1)
pm.Poisson('n', pt.exp(out[:, 1]), observed=Y1)""", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_network_in_any_other_place_is_fused_and_what_is_above_stays(name):
    build, n_networks = OUTCOMES[name]
    model = make(build)
    fast = fuse(model, check=False)
    assert count_kernels(*fast.basic_RVs, *fast.potentials, kind=NetworkOutput) == n_networks
    assert [rv.name for rv in fast.observed_RVs] == [rv.name for rv in model.observed_RVs]
    compare(model, fuse_plainly(model))


SUMS = {  # what is typed, whether its sum is inside of the network
    "a mean": ("pm.Normal('y', b3 + net, 1, observed=Z1)", True),
    "a mean less the network": ("pm.Normal('y', b3 - net - normal('c'), 1, observed=Z1)", True),
    "levels of the groups": ("pm.Normal('y', row_net + normal('b', G)[group], 1, observed=XR[:, 0])", True),
    "levels of some outputs": (OUTCOMES["normal, noise is an output"][0], True),
    "one head of two": (
        "h = tanh(X1 @ w1); pm.Normal('y', h @ v + b3, pt.exp(h @ normal('r', H)), observed=Z1)", True),
    "levels of other groups": ("pm.Normal('y', row_net + normal('b', 4)[OTHER], 1, observed=XR[:, 0])", False),
    "levels alone": ("pm.Normal('y', normal('b', G)[group[:N]] + net, 1, observed=Z1)", False),
    "values of the points": ("pm.Normal('y', net + normal('b', N), 1, observed=Z1)", False),
    "a residual connection": (
        "h = tanh(X1 @ w1); pm.Normal('y', h + tanh(h @ w2) @ normal('r', K, H), 1, observed=np.zeros((N, H)))", False),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_biases_of_the_last_layer_are_inside_of_the_network_and_nothing_else_is(name):
    build, is_inside = SUMS[name]
    model = make(build)
    fast = fuse(model, check=False)
    (op,) = {v.owner.op for v in ancestors(fast.basic_RVs) if is_made_by(v, NetworkOutput)}
    assert op.has_bias == is_inside
    compare(model, fuse_plainly(model))


@pytest.mark.parametrize("kind", ["real", "binary", "classes"])
@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_the_models_of_tables_are_fused_with_their_levels(kind, size):
    n = 45
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "group": rng.permutation(list("xyz") * 15)})
    outcome = {"real": rng.normal(size=n), "binary": [0, 1, 1] * 15, "classes": list("klm") * 15}[kind]
    columns = {"group": "group", "features": ["a", "b"][:size], "outcome": "outcome", "kind": kind}
    table = tables.read_table(frame.assign(outcome=outcome), **columns)
    model = tables.build_network(table, n_units=size)
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
    model = make("observe(net); pm.Normal('height', normal('mean'), 1, observed=X1)")
    fast = fuse(model, check=False)
    assert [rv.name for rv in fast.observed_RVs] == ["height"]
    assert count_kernels(fast.potentials[0]) == 1
    compare(model, fast)


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


def recurrent():
    """A LSTM of ten steps: each one is used four times in the next."""
    w, u = [normal(name, 4, n, H) for name, n in (("w", F), ("u", H))]
    h = c = pt.zeros((G, H))
    for t in range(10):
        gates = [XG[:, t % N] @ w[k] + h @ u[k] for k in range(4)]
        c = sigmoid(gates[0]) * c + sigmoid(gates[1]) * tanh(gates[2])
        h = sigmoid(gates[3]) * tanh(c)
    observe(h @ normal("v", H), YG[:, 0])


def scanned():
    options = {"sequences": [normal("W", 3, F, F)], "outputs_info": [pt.as_tensor(X1)], "return_updates": False}
    layers = pytensor.scan(lambda w, h: tanh(h @ w), **options)
    pm.Normal("y", layers[-1] @ normal("r", F), 1, observed=Z1)


def named_axes():
    for name, n in (("obs", N), ("feature", F), ("hidden", H)):
        pm.modelcontext(None).add_coord(name, range(n))
    X, y = pmd.Data("X", X1, dims=("obs", "feature")), pmd.Data("labels", Z1, dims="obs")
    h = pmd.math.tanh(X.dot(pmd.Normal("w1", dims=("feature", "hidden")), dim="feature"))
    pmd.Normal("y", h.dot(pmd.Normal("w2", dims="hidden"), dim="hidden"), 1, observed=y)


LAYER = "stands where a hidden layer should be; wanted: an activation"
REFUSED = {
    "relu of a threshold": ("observe(pt.maximum(X1 @ w1, 1) @ v)", "y: Maximum of w1 " + LAYER),
    "relu of the negative": ("z = X1 @ w1; observe((z * (z < 0)) @ v)", LAYER),
    "switch on the negative": ("z = X1 @ w1; observe(pt.switch(z <= 0, z, 0) @ v)", LAYER),
    "no activation": ("observe((X1 @ w1) @ v)", LAYER),
    "softmax layer": ("observe(pm.math.softmax(X1 @ w1, axis=-1) @ v)", "Softmax of w1 " + LAYER),
    "random groups": (
        """
drawn = pm.Categorical('drawn', p=np.ones(G) / G, shape=len(group))
observe(tanh(pt.einsum('of,ofh->oh', XR, normal('w', G, F, H)[drawn])) @ v, YR)""",
        "the groups of the points are random; wanted: pm.Data",
    ),
    "many combinations": (
        """
w = normal('w', 99, F, H)[group] + normal('a', 99, F, H)[OTHER]
observe(tanh(pt.einsum('of,ofh->oh', XR, w)) @ v, YR)""",
        "more than twice as many combinations of groups as points",
    ),
    "recurrent": (recurrent, LAYER),
    "wide": (
        "observe(pt.maximum(X1 @ normal('w', F, 500), 0) @ normal('r', 500))",
        "with ReLU layers of 500 features or units the model is as fast as it is",
    ),
    "few points": (
        "observe(pt.maximum(pt.einsum('of,ofh->oh', XR, normal('w', 7, F, 16)[group]), 0) @ normal('r', 16), YR)",
        "y: with ReLU layers of 16 features or units on 2 points a group the model is as fast as it is",
    ),
    "named axes": (named_axes, "w1 is a variable of pymc.dims; wanted: the same model of pm.Normal"),
    "measured first": (
        "pm.Normal('x', normal('mean', F), 1, observed=X1); observe(pm.math.softmax(X1 @ w1, axis=-1) @ v)",
        "y: Softmax of .*" + LAYER,
    ),
    "normal, a line": (
        "pm.Normal('y', X1 @ normal('w', F), 1, observed=Z1)",
        r"y: no network leads to it; wanted: pt.tanh\(X @ w1\) @ w2",
    ),
    "normal, nothing": ("pm.Normal('y', normal('b'), 1, observed=Z1)", "y: no network leads to it"),
    "scan over layers": (scanned, "Subtensor of W.* stands where .*, and a Python loop over layers in place of scan"),
    "a sum without an axis": (
        "pm.Normal('y', (tanh(X1 @ w1) * v).sum(), 1, observed=Z1)",
        r"y: no network leads to it; .*, and a sum with an axis, \(h \* w\)\.sum\(axis=-1\)",
    ),
    "nothing observed": ("pm.Potential('y', normal('w'))", "the model has no observed variable; wanted: pm.B"),
    "a single label": ("observe(normal('b'), 1)", "y has 0 axes"),
    "one chance for all": ("pm.Bernoulli('y', normal('b'), observed=Y1)", "its probability is b; wanted: logit_p="),
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
    model = make(lambda: observe(tanh(X1 @ normal("w1", F, H)) @ normal("w2", H), wrap(2 * Y1)))
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


def test_it_says_what_is_fused_and_what_stays_as_typed(caplog):
    caplog.set_level("INFO", "hbnn")
    model = make("""
observe(each, YG); pm.Normal('height', normal('mean'), 1, observed=X1)
pm.Normal('z', pt.maximum(X1 @ w1, 0) @ v, 1, observed=Z1)""")
    fast = fuse(model, check=False)
    assert str(fast.fusion).splitlines() == [
        "y: 3 networks and the likelihood, of 2 features, 4 tanh units, 6 tanh units, 1 output; 3 to 5 times faster",
        "z: network Dot of v, w1, of 2 features, 4 relu units, 1 output; 1 to 1.4 times faster",
        "as typed: height",
    ]
    assert caplog.messages == [str(fast.fusion)]


def test_a_long_compilation_says_so_to_whoever_watches_and_a_short_one_does_not(monkeypatch, caplog):
    monkeypatch.setattr("hbnn.fusion._fuse._compare_values_and_gradients", lambda *_: time.sleep(0.1))
    for soon, watched, said in ((0.0, True, 1), (1.0, True, 0), (0.0, False, 0)):
        monkeypatch.setattr("hbnn.fusion._fuse.SOON", soon)
        monkeypatch.setattr("hbnn.fusion._fuse.is_watched", lambda watched=watched: watched)
        caplog.clear()
        fuse(make(FUSES["@"]))
        assert len(caplog.messages) == said


STRANGERS = {
    "deterministic": lambda model, fast: pm.Deterministic("new", (model["w2"] ** 2).sum()),
    "of a deterministic": lambda model, fast: pm.Deterministic("new", model["p"].sum()),
    "potential": lambda model, fast: pm.Potential("new", -(model["w2"] ** 2).sum() + fast["w2"].sum()),
    "bare, in a potential": lambda model, fast: pm.Potential("new", model["w2"]),
    "unknown": lambda model, fast: pm.Normal("new", model["w2"].sum()),
    "outcome": lambda model, fast: pm.Normal("new", model["w2"], observed=np.zeros(H)),
    "data": lambda model, fast: pm.Deterministic("new", model["X"] @ fast["w1"][0]),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_variables_of_the_original_are_refused_by_name_and_leave_no_trace(name):
    model = make_rows()
    fast = fuse(model, check=False)
    point, names = fast.initial_point(), list(fast.named_vars)
    with fast, pytest.raises(Refused, match=r'new is computed from (w2|p|X) of another .* fast\["(w2|p|X)"\]'):
        STRANGERS[name](model, fast)
    assert fast.initial_point().keys() == point.keys()
    assert list(fast.named_vars) == names
    listed = [*fast.basic_RVs, *fast.deterministics, *fast.potentials, *fast.rvs_to_values]
    assert "new" not in [v.name for v in listed]
    assert [model[name].name for name in model.named_vars] == list(model.named_vars)
    with fast:
        STRANGERS[name](fast, fast)
        pm.Deterministic("again", fast["new"] + pm.Normal.dist(fast["w2"].sum()))


def test_predictive_draws_of_a_fused_likelihood_are_told_to_take_the_model_as_typed():
    fast = fuse(make_rows(), check=False)
    with pytest.warns(UserWarning, match=r"potential of y, .* pm\.sample_prior_predictive\(\.\.\., model=model\)"):
        pm.sample_prior_predictive(1, model=fast, compile_kwargs={"mode": "FAST_COMPILE"})


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


def sample(sampler, model, **options):
    options = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False} | options
    return pm.sample(model=model, nuts_sampler=sampler, random_seed=0, **options)


def find_loo(model, tree):
    pm.compute_log_likelihood(tree, model=model, progressbar=False)
    return arviz_stats.loo(tree).elpd


FUSED_WAYS = {  # what the README says that a fused model takes
    'pm.sample(nuts_sampler="pymc")': lambda model: sample("pymc", model)["posterior"]["w2"],
    'pm.sample(nuts_sampler="nutpie")': lambda model: sample("nutpie", model)["posterior"]["w2"],
    'pm.sample(nuts_sampler="numpyro")': lambda model: sample("numpyro", model)["posterior"]["w2"],
    "pm.sample(cores=2)": lambda model: sample("pymc", model, chains=2, cores=2)["posterior"]["w2"],
    "pm.fit": lambda model: pm.fit(5, model=model, progressbar=False, random_seed=0).hist,
    "pm.find_MAP": lambda model: pm.find_MAP(model=model, maxeval=5, progressbar=False)["w2"],
    "cloudpickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)).initial_point()["w2"],
}
TYPED_WAYS = {  # and what takes the typed one, with the draws of the fused
    "pm.compute_log_likelihood": lambda model, tree: find_loo(model, tree),
    "az.loo": lambda model, tree: find_loo(model, tree),
    "pm.sample_posterior_predictive": lambda model, tree: pm.sample_posterior_predictive(
        tree, model=model, progressbar=False
    )["posterior_predictive"]["y"],
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_each_way_of_the_readme_takes_the_model_that_it_says():
    readme = (Path(__file__).parents[3] / "book" / "hbnn" / "README.md").read_text(encoding="utf-8")
    said = readme.partition("## Which model goes where")[2].partition("\n## ")[0]
    fused, typed = (re.search(rf"\| {which} +\|(.*)\|", said)[1] for which in ("fused", "typed"))
    assert set(re.findall("`(.+?)`", fused)) == set(FUSED_WAYS)
    assert set(re.findall("`(.+?)`", typed)) == set(TYPED_WAYS)
    model = make_rows()
    fast = fuse(model, check=False)
    for way in FUSED_WAYS.values():
        assert np.isfinite(way(fast)).all()
    tree = sample("pymc", fast, draws=50)  # of fewer the loo has no tail
    for way in TYPED_WAYS.values():
        assert np.isfinite(way(model, tree)).all()


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
