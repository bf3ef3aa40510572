"""A network typed in plain PyMC, in any of the ways that people type one, gets the fused likelihood, or is refused."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from bnn import models
from bnn.fuse import StackRows, fuse
from bnn.fused import NetworkLogLik
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.graph.traversal import ancestors

G, N, F, H, K = 3, 5, 2, 4, 6  # groups, points, features, units of the first and the second layer
tanh, sigmoid = pm.math.tanh, pm.math.sigmoid
rng = np.random.default_rng(0)
X1, Y1 = rng.normal(size=(N, F)), np.array([0, 1, 1, 0, 1])
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


FUSES = {
    "@": one(lambda X, w1, w2, w3: tanh(tanh(X @ w1) @ w2) @ w3),
    "dot": one(lambda X, w1, w2, w3: pt.dot(pt.tanh(pt.dot(pt.tanh(pt.dot(X, w1)), w2)), w3)),
    "pm.math.dot": one(lambda X, w1, w2, w3: pm.math.dot(tanh(pm.math.dot(tanh(pm.math.dot(X, w1)), w2)), w3)),
    "tensordot": one(lambda X, w1, w2, w3: pt.tensordot(tanh(tanh(pt.tensordot(X, w1, 1)) @ w2), w3, 1)),
    "einsum": one(lambda X, w1, w2, w3: tanh(pt.einsum("oh,hk->ok", tanh(pt.einsum("of,fh", X, w1)), w2)) @ w3),
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
    "relu maximum": relu(lambda z: pt.maximum(z, 0)),
    "relu maximum, number first": relu(lambda z: pm.math.maximum(0.0, z)),
    "relu switch": relu(lambda z: pt.switch(z > 0, z, 0)),
    "relu where": relu(lambda z: pt.where(0 <= z, z, 0.0)),
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
    "rows, @": rows(
        lambda X, w1, w2, w3, g: (tanh(tanh(X[:, None, :] @ w1[g]) @ w2[g]) @ w3[g][..., None])[:, 0, 0]
    ),
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


def make(build):
    with pm.Model() as model:
        build()
    return model


def count_kernels(variable):
    return sum(v.owner is not None and isinstance(v.owner.op, NetworkLogLik) for v in ancestors([variable]))


def compare(model, fast, rtol=1e-8):
    """Log density and gradient at a random point."""
    rng = np.random.default_rng(1)
    point = {name: v + 0.5 * rng.normal(size=np.shape(v)) for name, v in model.initial_point(0).items()}
    for found, expected in zip(*(evaluate(m, point) for m in (fast, model)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-9)


def evaluate(model, point):
    gradient = model.dlogp(vars=[model[name] for name in sorted(rv.name for rv in model.free_RVs)])
    return model.compile_fn([model.logp(), gradient], inputs=model.value_vars, mode="FAST_COMPILE")(point)


@pytest.mark.parametrize("name", FUSES)
def test_a_network_is_recognised_however_it_is_typed(name):
    model = make(FUSES[name])
    fast = fuse(model, check=False)
    assert [p.name for p in fast.potentials] == [rv.name for rv in model.observed_RVs]
    assert all(count_kernels(p) > 0 for p in fast.potentials)
    assert not fast.observed_RVs
    assert [rv.name for rv in fast.free_RVs] == [rv.name for rv in model.free_RVs]
    compare(model, fast)
