"""The fused outputs of networks are those of NumPy, and their gradient that of JAX and of finite differences."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hbnn.fusion import _activations, _layers, _output, _rows, _simd
from hbnn.fusion._loglik import network_loglik
from hbnn.fusion._output import network_output
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special


def make_case(seed, n_groups=2, n_points=20, sizes=(2, 3, 4, 1), scale=1.0, has_bias=False, dtype="float64"):
    """Random points in rows, the group of each, and parameters; sizes are features, hidden units and outputs."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(n_points, sizes[0])), rng.integers(0, n_groups, n_points)
    pairs = list(pairwise(sizes))
    weights = [scale * rng.normal(size=(n_groups, *pair)) for pair in pairs]
    biases = [scale * rng.normal(size=(n_groups, n)) for _, n in pairs] if has_bias else []
    return X.astype(dtype), group, [w.astype(dtype) for w in weights], [b.astype(dtype) for b in biases]


def predict(X, group, weights, biases, activation="tanh"):
    """The outputs by their definition, in NumPy; complex where parameters are."""
    h = X
    for k, w in enumerate(weights):
        h = np.einsum("ni,nij->nj", h, w[group]) + (biases[k][group] if biases else 0)
        if k < len(weights) - 1:
            h = np.tanh(h) if activation == "tanh" else np.where(h.real > 0, h, 0)
    return h


@lru_cache
def build(n_layers, has_bias, activation="tanh", mode="FAST_COMPILE", dtype="float64", single=False):
    """Outputs and the gradients of their sum with given factors, compiled."""
    X, factors, group = pt.matrix("X", dtype=dtype), pt.matrix("f", dtype=dtype), pt.lvector("g")
    weights = [pt.tensor(f"w{k}", dtype=dtype, shape=(None,) * (2 if single else 3)) for k in range(n_layers)]
    biases = [pt.tensor(f"b{k}", dtype=dtype, shape=(None,) * (1 if single else 2)) for k in range(n_layers * has_bias)]
    index = None if single else group
    out = network_output(X, weights, biases=biases, group=index, activation=activation, dtype=dtype)
    outputs = [out, *pt.grad((factors * out).sum(), [*weights, *biases])]
    return pytensor.function([X, factors, group, *weights, *biases], outputs, mode=mode, on_unused_input="ignore")


def evaluate(case, activation="tanh", mode="FAST_COMPILE"):
    X, group, weights, biases = case
    run = build(len(weights), bool(biases), activation, mode, str(X.dtype))
    return run(X, make_factors(case), group, *weights, *biases)


def make_factors(case):
    rng = np.random.default_rng(9)
    return rng.normal(size=(len(case[0]), case[2][-1].shape[2])).astype(case[0].dtype)


cases = st.builds(
    make_case,
    seed=st.integers(0, 10_000),
    n_groups=st.integers(1, 4),
    n_points=st.sampled_from([0, 1, 7, 8, 9, 63, 64, 65, 130]),
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=5).map(tuple),
    scale=st.sampled_from([0.0, 0.01, 1.0, 10.0, 300.0]),
    has_bias=st.booleans(),
)


@settings(max_examples=80, deadline=None)
@given(cases, st.sampled_from(["tanh", "relu"]))
def test_outputs_and_gradient_are_those_of_the_definition(case, activation):
    """The gradient along a random direction, without differences: the definition moved by an imaginary step."""
    X, group, weights, biases = case
    activation = activation if biases else "tanh"  # a kernel of ReLU without biases would be compiled for this alone
    found, *gradient = evaluate(case, activation)
    size = 1e-12 * max(1.0, *(abs(w).max() for w in weights)) ** len(weights)
    np.testing.assert_allclose(found, predict(*case, activation), rtol=1e-10, atol=size)
    rng, step = np.random.default_rng(1), 1e-30
    along = [rng.normal(size=p.shape) for p in gradient]
    moved = [p + 1j * step * d for p, d in zip([*weights, *biases], along, strict=True)]
    slope = predict(X, group, moved[: len(weights)], moved[len(weights) :], activation).imag / step
    parts = [p * d for p, d in zip(gradient, along, strict=True)]
    size = sum(abs(part).sum() for part in parts)
    expected = (make_factors(case) * slope).sum()
    assert sum(part.sum() for part in parts) == pytest.approx(expected, abs=1e-9 * (1 + size))


@pytest.mark.parametrize("has_bias", [False, True])
def test_python_and_numba_give_the_same_bits(has_bias):
    case = make_case(5, n_groups=3, n_points=300, sizes=(2, 12, 12, 3), has_bias=has_bias)
    for a, b in zip(evaluate(case), evaluate(case, mode="NUMBA"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_jax_gives_the_same_numbers():
    case = make_case(5, n_groups=3, sizes=(2, 3, 4, 2), has_bias=True)
    X, group, weights, biases = case
    outputs = network_output(X, weights, biases=biases, group=group)
    found = pytensor.function([], outputs, mode="JAX")()
    np.testing.assert_allclose(found, predict(*case), rtol=1e-9)
    symbols = [pt.tensor3(f"w{k}") for k in range(3)]
    total = (make_factors(case) * network_output(X, symbols, biases=biases, group=group)).sum()
    found = pytensor.function(symbols, pt.grad(total, symbols), mode="JAX")(*weights)
    for a, b in zip(found, evaluate(case)[1:4], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_single_precision_is_good_to_four_digits():
    case = make_case(4, n_groups=18, n_points=900, sizes=(2, 8, 8, 2), has_bias=True)
    single = (case[0].astype("float32"), case[1], *([p.astype("float32") for p in ps] for ps in case[2:]))
    for found, expected in zip(evaluate(single, "relu"), evaluate(case, "relu"), strict=True):
        assert found.dtype == "float32"
        np.testing.assert_allclose(found, expected, atol=1e-4 * max(1, abs(expected).max()))


def test_a_single_network_needs_no_group():
    case = make_case(3, n_groups=1, has_bias=True)
    X, _, weights, biases = case
    run = build(3, True, single=True)
    found = run(X, make_factors(case), [0], *(w[0] for w in weights), *(b[0] for b in biases))
    for a, b in zip(found[1:], evaluate(case)[1:], strict=True):
        np.testing.assert_array_equal(a, b[0])


# --- activations and points


EVERY = (
    *(name for name in _activations.ACTIVATIONS if name not in _activations.PARAMETERS),
    ("leaky_relu", 0.1),
    ("elu", 1.5),
)
TYPED = {
    "tanh": pt.tanh,
    "relu": lambda z: pt.maximum(z, 0),
    "sigmoid": pt.sigmoid,
    "softplus": pt.softplus,
    "gelu": lambda z: z * (1 + pt.erf(z / np.sqrt(2).astype(z.dtype))) / 2,
    "gelu_tanh": lambda z: (
        z * pt.sigmoid(np.sqrt(8 / np.pi).astype(z.dtype) * (z + np.asarray(0.044715, z.dtype) * z**3))
    ),
    "silu": lambda z: z * pt.sigmoid(z),
    "sin": pt.sin,
    ("leaky_relu", 0.1): lambda z: pt.switch(z > 0, z, np.asarray(0.1, z.dtype) * z),
    ("elu", 1.5): lambda z: pt.switch(z > 0, z, np.float32(1.5) * pt.expm1(z)),
}


def compare_with_graph(activations, dtype="float64", has_bias=True, n_groups=3, mode="NUMBA", n_points=70):
    """Value and all gradients, those of the points too, of the fused network and of the same in PyTensor's graph."""
    sizes = (2, *(3 + k % 4 for k in range(len(activations))), 2)
    X, group, *parameters = make_case(8, n_groups, n_points, sizes, 0.8, has_bias, dtype)
    factors = make_factors((X, group, *parameters))
    X, *parameters = symbols = [pt.as_tensor(value).copy() for value in (X, *parameters[0], *parameters[1])]
    n, h = len(sizes) - 1, X
    for k in range(n):
        h = (h[:, :, None] * parameters[k][group]).sum(1) + (parameters[n + k][group] if has_bias else 0)
        h = TYPED[activations[k]](h) if k < n - 1 else h
    options = {"group": group, "activation": activations, "dtype": dtype, "differentiate_points": True}
    out = network_output(X, parameters[:n], biases=parameters[n:], **options)
    wanted, found = (
        pytensor.function([], [outputs, *pt.grad((factors * outputs).sum(), symbols)], mode=how)()
        for outputs, how in ((h, "FAST_COMPILE"), (out, mode))
    )
    return max(abs(a - b).max() / (1 + abs(b).max()) for a, b in zip(found, wanted, strict=True))


def test_every_activation_and_the_points_are_those_of_the_graph():
    assert compare_with_graph((*EVERY[4:], *EVERY[:4])) < 1e-12  # the first keeps its slope, and the last does not
    assert compare_with_graph(EVERY, mode="JAX") < 1e-12


def test_the_likelihood_has_every_activation():
    X, group, weights, biases = make_case(8, 3, 70, (2, *[4] * len(EVERY), 1), 0.8, True)
    y, symbols = group % 2, [pt.as_tensor(value).copy() for value in (*weights, *biases)]
    n, options = len(weights), {"group": group, "activation": EVERY}
    logit = network_output(X, symbols[:n], biases=symbols[n:], **options)[:, 0]
    loglik = network_loglik(X, y, symbols[:n], biases=symbols[n:], **options)
    wanted, found = (
        pytensor.function([], [total, *pt.grad(total, symbols)], mode="FAST_COMPILE")()
        for total in ((y * logit - pt.softplus(logit)).sum(), loglik)
    )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_activations_are_good_to_rounding():
    """Over a wide range, and their slopes, against SciPy."""
    half, root = np.sqrt(0.5), np.sqrt(8 / np.pi)
    z = np.concatenate([np.linspace(-36, 36, 10_000), np.geomspace(1e-20, 1, 240), -np.geomspace(1e-20, 1e3, 240)])
    p, density = special.expit(z), np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    u, slope = root * (z + 0.044715 * z**3), root * (1 + 3 * 0.044715 * z**2)
    below = np.minimum(z, 0)
    expected = [
        (np.tanh(z), 1 - np.tanh(z) ** 2),
        (np.maximum(z, 0), z > 0),
        (p, p * (1 - p)),
        (np.logaddexp(0, z), p),
        (z * special.erfc(-z * half) / 2, special.erfc(-z * half) / 2 + z * density),
        (z * special.expit(u), special.expit(u) * (1 + z * special.expit(-u) * slope)),
        (z * p, p * (1 + z * special.expit(-z))),
        (np.sin(z), np.cos(z)),
        (np.where(z > 0, z, 0.1 * z), np.where(z > 0, 1, 0.1)),
        (np.where(z > 0, z, 1.5 * np.expm1(below)), np.where(z > 0, 1, 1.5 * np.exp(below))),
    ]
    one = np.ones((1, 1))
    for activation, (value, slope) in zip(EVERY, expected, strict=True):
        move_up, move_back = _layers.make_layer(activation, "float64", False)
        h, delta = np.stack([z, z, z]), np.ones((2, len(z)))
        move_up(one, 0, 0, 1, 1, h, 0, 1, 2, len(z))
        move_back(one, 0, 0, 1, 1, h, delta, 0, 1, 1 + _activations.keeps_slope(activation), len(z))
        np.testing.assert_allclose(h[1], value, rtol=1e-14, atol=1e-15, err_msg=str(activation))
        np.testing.assert_allclose(delta[0], slope, rtol=1e-14, atol=1e-14, err_msg=str(activation))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([-4, -1, 0, 1, 2, 3, _rows.OUTSIDE]), max_size=20))
def test_rows_are_listed_group_by_group(groups):
    index = np.array(groups, "int64")
    order, first, place = _rows._sort_rows(index, np.array(4), np.array(len(index)))
    counts = index != _rows.OUTSIDE
    for g in range(4):
        np.testing.assert_array_equal(order[first[g] : first[g + 1]], np.flatnonzero(counts & (index % 4 == g)))
    np.testing.assert_array_equal(np.flatnonzero(counts)[place], order)


def test_rows_of_no_group_have_nothing_to_say():
    X, group, weights, _ = make_case(4)
    group[::3] = _rows.OUTSIDE
    x = pt.as_tensor(X).copy()
    out = network_output(x, weights, group=group, differentiate_points=True)
    out, slope = pytensor.function([], [out, pt.grad(out.sum(), x)], mode="FAST_COMPILE")()
    assert not np.any([out[::3], slope[::3].sum(1, keepdims=True)])
    np.testing.assert_allclose(out[1::3], predict(X[1::3], group[1::3], weights, []))


def test_groups_and_rows_give_the_same_bits():
    X, _, weights, biases = make_case(5, 3, 3 * 70, (2, 4, 2), has_bias=True)
    w, group = pt.as_tensor(weights[0]).copy(), np.repeat(np.arange(3), 70)
    found = []
    for points, index in ((X, group), (X.reshape(3, 70, 2), None)):
        out = network_output(points, [w, weights[1]], biases=biases, group=index).reshape((-1, 2))
        found.append(pytensor.function([], [out, pt.grad((out**2).sum(), w)], mode="NUMBA")())
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_points_that_are_no_unknowns_have_no_gradient():
    X, group, weights, _ = make_case(3)
    x = pt.as_tensor(X).copy()
    with pytest.raises(pytensor.gradient.NullTypeGradError, match="differentiate_points=True"):
        pt.grad(network_output(x, weights, group=group).sum(), x)


# --- what is refused


def test_weights_that_are_nan_are_not_hidden():
    case = make_case(2)
    case[2][0][:] = np.nan
    assert np.isnan(evaluate(case)[0]).all()


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": 1}, r"weights\[1\] has .*shape"),
        ({"biases": 2}, r"biases\[2\] has .*shape"),
        ({"group": 2}, "a row has a group that has no weights; wanted: 0 to the number of groups - 1"),
    ],
)
def test_what_does_not_fit_is_refused_at_run_time(mode, change, message):
    X, group, weights, biases = make_case(3, has_bias=True)
    for what, k in change.items():
        if what == "group":
            group = group + k
        else:
            {"weights": weights, "biases": biases}[what][k] = np.ones((2, 9, 9) if what == "weights" else (2, 9))
    with pytest.raises(ValueError, match=message):
        build(3, True, mode=mode)(X, np.ones((20, 1)), group, *weights, *biases)


def test_what_cannot_fit_is_refused_at_once():
    X, group, weights, biases = make_case(3, has_bias=True)
    with pytest.raises(ValueError, match="1 biases for 3 layers; wanted: one for each layer, or none"):
        network_output(X, weights, biases=biases[:1], group=group)
    with pytest.raises(TypeError, match="X has 3 axes; wanted: 2"):
        network_output(X[None], weights, group=group)
    with pytest.raises(TypeError, match=r"weights\[2\] has 2 axes; wanted: 3"):
        network_output(X, [*weights[:2], weights[2][..., 0]], group=group)
    with pytest.raises(ValueError, match="activation='swish'; wanted: one of tanh, relu"):
        network_output(X, weights, group=group, activation="swish")


def test_no_second_derivatives():
    X, group, weights, _ = make_case(3)
    w = pt.tensor3("w")
    total = network_output(X, [*weights[:2], w], group=group).sum()
    with pytest.raises(NotImplementedError, match="second derivatives of a fused network"):
        pt.grad(pt.grad(total, w).sum(), w)


@pytest.mark.parametrize("module", [_output, _layers, _activations, _simd])
def test_another_source_is_compiled_again(module, monkeypatch, tmp_path):
    def find_keys():
        op = _output.NetworkOutput(1), _output.NetworkGradient(1)
        return _output._dispatch_output(op[0], None)[1], _output._dispatch_gradient(op[1], None)[1]

    before = find_keys()
    (tmp_path / "edited.py").write_text("# edited")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "edited.py"))
    assert all(a != b for a, b in zip(find_keys(), before, strict=True))
