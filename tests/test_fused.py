"""The fused likelihood says what SciPy, the graph and JAX say, and so does its gradient."""

from functools import lru_cache

import jax
import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from bnn import fused, layers, simd
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats


def make_case(seed, n_groups=2, n_obs=7, sizes=(2, 3, 4), scale=1.0, has_bias=False, dtype="float64", ragged=False):
    """Random points, labels and parameters; sizes are features and hidden units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_groups, n_obs, sizes[0]))
    y = rng.integers(0, 2, (n_groups, n_obs)).astype("int32")
    counts = rng.integers(0, n_obs + 1, n_groups) if ragged else np.full(n_groups, n_obs)
    counts[rng.integers(n_groups)] = n_obs  # of the longest group every point counts
    outputs = [*sizes[1:], 1]
    weights = [scale * rng.normal(size=(n_groups, *pair)) for pair in zip(sizes, outputs, strict=True)]
    biases = [scale * rng.normal(size=(n_groups, n)) for n in outputs] if has_bias else []
    return X.astype(dtype), y, counts, [w.astype(dtype) for w in weights], [b.astype(dtype) for b in biases]


def add_up(X, y, counts, weights, biases, activation="tanh"):
    """The log likelihood by its definition, group after group, from SciPy."""
    total = 0.0
    for g in range(len(X)):
        h = X[g, : counts[g]].astype(float)
        for k, w in enumerate(weights):
            z = h @ w[g] + (biases[k][g] if biases else 0)
            h = np.tanh(z) if activation == "tanh" else np.maximum(z, 0)
        z, labels = z[:, 0], y[g, : counts[g]]
        total += np.sum(np.where(labels == 1, stats.logistic.logcdf(z), stats.logistic.logsf(z)))
    return total


def evaluate(case, activation="tanh"):
    """Value and gradients from the Op itself, without compiling a graph."""
    X, y, counts, weights, biases = case
    op = fused.NetworkLogLik(len(weights), bool(biases), activation, str(X.dtype))
    outputs = [[None] for _ in range(1 + len(weights) + len(biases))]
    op.perform(None, [X, y, counts, *weights, *biases], outputs)
    return [value for (value,) in outputs]


def convert(case, dtype):
    return (case[0].astype(dtype), *case[1:3], *([p.astype(dtype) for p in ps] for ps in case[3:]))


def list_parameters(case):
    return [*case[3], *case[4]]


def replace_parameters(case, values):
    n = len(case[3])
    return (*case[:3], list(values[:n]), list(values[n:]))


sizes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
biased = st.fixed_dictionaries({
    "seed": st.integers(0, 10_000),
    "n_groups": st.integers(1, 4),
    "n_obs": st.sampled_from([1, 2, 7, 8, 9, 50, 64, 65, 130]),
    "sizes": sizes,
    "scale": st.sampled_from([0.0, 0.01, 1.0, 10.0, 300.0]),
    "has_bias": st.just(True),
    "ragged": st.booleans(),
})  # fmt: skip
cases = st.builds(lambda some, has_bias: make_case(**some | {"has_bias": has_bias}), biased, st.booleans())


# --- tanh


def test_tanh_is_numpys_to_rounding():
    apply = compile_tanh("float64")
    z = np.concatenate([np.linspace(-25, 25, 100_000), np.geomspace(1e-300, 1, 1000), -np.geomspace(1e-300, 1, 1000)])
    np.testing.assert_allclose(apply(z), np.tanh(z), rtol=3e-15)


def test_tanh_in_single_precision_is_good_to_single_precision():
    z = np.linspace(-25, 25, 100_000, dtype="float32")
    np.testing.assert_allclose(compile_tanh("float32")(z), np.tanh(z.astype(float)), rtol=1e-6)


def test_tanh_of_the_unthinkable():
    found = compile_tanh("float64")(np.array([np.inf, -np.inf, np.nan, 0.0, 1e300, -1e300, 710.0, -710.0]))
    np.testing.assert_array_equal(found, [1, -1, np.nan, 0, 1, -1, 1, -1])


@pytest.mark.parametrize("dtype", layers.DTYPES)
def test_an_exponential_goes_to_nothing(dtype):
    q = -np.geomspace(20, 1e6, 1000).astype(dtype)
    np.testing.assert_array_equal(compile_function(dtype, 0)(q), -1)


def compile_tanh(dtype):
    return compile_function(dtype, 1)


def compile_function(dtype, which):
    """expm1(2 q) for q <= 0, or tanh, of `layers.make_functions`, of an array."""
    function, lanes = layers.make_functions(dtype)[which], simd.LANES[dtype]
    load, store = simd.load, simd.store

    @numba.njit
    def run(z, out):
        for k in range(0, z.shape[1], lanes):
            store(out, 0, k, function(load(z, 0, k)))

    def apply(z):
        padded = np.zeros((1, -(-len(z) // lanes) * lanes), dtype)
        padded[0, : len(z)] = z
        out = np.empty_like(padded)
        run(padded, out)
        return out[0, : len(z)]

    return apply


# --- the value and the gradient


@settings(max_examples=150, deadline=None)
@given(cases, st.sampled_from(layers.ACTIVATIONS))
def test_the_value_is_scipys(case, activation):
    assert evaluate(case, activation)[0] == pytest.approx(add_up(*case, activation), rel=1e-9, abs=1e-9)


@settings(max_examples=10, deadline=None)  # JAX compiles every operation again for each shape
@given(cases, st.sampled_from(layers.ACTIVATIONS))
def test_the_gradient_is_that_of_jax(case, activation):
    X, y, counts, weights, biases = case

    def loglik(parameters):
        h = X
        for k in range(len(weights)):
            h = h @ parameters[k]
            h = h + parameters[len(weights) + k][:, None] if biases else h
            if k < len(weights) - 1:
                h = jax.numpy.tanh(h) if activation == "tanh" else jax.nn.relu(h)
        z = h[..., 0]
        inside = np.arange(y.shape[1]) < counts[:, None]
        return jax.numpy.where(inside, y * z - jax.numpy.logaddexp(0, z), 0).sum()

    with jax.enable_x64(True):
        expected = jax.grad(loglik)([jax.numpy.asarray(p) for p in list_parameters(case)])
    for found, wanted in zip(evaluate(case, activation)[1:], expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(biased, st.sampled_from(layers.ACTIVATIONS))
def test_single_precision_is_good_to_four_digits(some, activation):
    single = convert(make_case(**some), "float32")
    found, expected = evaluate(single, activation), evaluate(convert(single, "float64"), activation)
    assert found[0] == pytest.approx(expected[0], rel=1e-4, abs=1e-4 * max(1, abs(expected[0])))
    assert all(value.dtype == "float32" for value in found[1:])


@pytest.mark.parametrize("activation", layers.ACTIVATIONS)
def test_the_gradient_in_single_precision_is_good_to_four_digits(activation):
    case = make_case(4, n_groups=18, n_obs=50, sizes=(2, 8, 8), has_bias=True)
    single = convert(case, "float32")
    for found, expected in zip(evaluate(single, activation)[1:], evaluate(case, activation)[1:], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4 * abs(expected).max())


@pytest.mark.parametrize("has_bias", [False, True])
def test_the_gradient_is_that_of_finite_differences(has_bias):
    case = make_case(1, n_obs=40, has_bias=has_bias)
    shapes = [p.shape for p in list_parameters(case)]

    def unpack(flat):
        parts = np.split(flat, np.cumsum([np.prod(s) for s in shapes])[:-1])
        return replace_parameters(case, [part.reshape(s) for part, s in zip(parts, shapes, strict=True)])

    flat = np.concatenate([p.ravel() for p in list_parameters(case)])
    numeric = optimize.approx_fprime(flat, lambda f: float(evaluate(unpack(f))[0]), 1e-6)
    analytic = np.concatenate([g.ravel() for g in evaluate(case)[1:]])
    np.testing.assert_allclose(analytic, numeric, atol=1e-4)


# --- what must not matter


@settings(max_examples=30, deadline=None)
@given(cases, st.randoms(use_true_random=False))
def test_permuting_hidden_units_and_flipping_their_signs_changes_nothing(case, random):
    weights, biases = list(case[3]), list(case[4])
    if len(weights) < 2:
        return
    n = weights[0].shape[2]
    order, sign = random.sample(range(n), n), np.array([random.choice([-1.0, 1.0]) for _ in range(n)])
    weights[0], weights[1] = (weights[0] * sign)[..., order], (weights[1] * sign[:, None])[:, order]
    if biases:
        biases[0] = (biases[0] * sign)[:, order]
    relabelled = evaluate((*case[:3], weights, biases))[0]
    assert relabelled == pytest.approx(evaluate(case)[0], rel=1e-9, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(cases, st.randoms(use_true_random=False))
def test_the_order_of_the_groups_does_not_matter(case, random):
    order = random.sample(range(len(case[0])), len(case[0]))
    turned = (*(value[order] for value in case[:3]), *([p[order] for p in ps] for ps in case[3:]))
    found, expected = evaluate(turned), evaluate(case)
    assert found[0] == pytest.approx(expected[0], rel=1e-12, abs=1e-12)
    for a, b in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_array_equal(a, b[order])


@settings(max_examples=30, deadline=None)
@given(cases)
def test_what_stands_beyond_the_last_point_of_a_group_does_not_matter(case):
    X, y, counts, *parameters = case
    beyond = np.arange(y.shape[1]) >= counts[:, None]
    other = (np.where(beyond[..., None], 1e6, X), np.where(beyond, 1 - y, y), counts, *parameters)
    for found, expected in zip(evaluate(other), evaluate(case), strict=True):
        np.testing.assert_array_equal(found, expected)


# --- extremes


@pytest.mark.parametrize("logit", [-1e3, 1e3])
def test_extreme_logits_keep_value_and_gradient_finite(logit):
    X, y, counts = np.array([[[50.0]]]), np.array([[1]], "int32"), np.array([1])
    value, *gradient = evaluate((X, y, counts, [np.array([[[1.0]]]), np.array([[[50.0]]]), np.array([[[logit]]])], []))
    assert value == pytest.approx(min(logit, 0.0), abs=1e-9)
    assert all(np.isfinite(g).all() for g in gradient)


def test_zero_weights_give_a_coin():
    assert evaluate(make_case(0, scale=0.0))[0] == pytest.approx(-14 * np.log(2))


def test_one_point_in_one_group_is_enough():
    case = make_case(0, n_groups=1, n_obs=1)
    assert evaluate(case)[0] == pytest.approx(add_up(*case), rel=1e-12)


def test_a_weight_that_is_nan_makes_the_value_nan():
    case = make_case(0)
    case[3][0][0, 0, 0] = np.nan
    assert np.isnan(evaluate(case)[0])


def test_a_thousand_points_to_a_group_do_not_overflow_the_product():
    case = make_case(0, n_obs=5000, scale=0.0)
    assert evaluate(case)[0] == pytest.approx(-10_000 * np.log(2))


# --- in a graph


def build(case, activation="tanh"):
    """The symbolic value, its inputs and its gradients."""
    X, _, _, weights, biases = case
    symbols = [pt.tensor(f"p{k}", dtype=p.dtype, shape=(None,) * p.ndim) for k, p in enumerate([*weights, *biases])]
    points = [pt.tensor3("X", dtype=X.dtype), pt.imatrix("y"), pt.lvector("n")]
    n = len(weights)
    value = fused.network_loglik(*points[:2], symbols[:n], biases=symbols[n:], n_obs=points[2], activation=activation)
    return [*points, *symbols], [value, *pt.grad(value, symbols)]


@lru_cache
def compile_graph(mode, has_bias):
    """Value and gradients of networks of three layers, of any shape."""
    return pytensor.function(*build(make_case(0, has_bias=has_bias)), mode=mode)


@pytest.mark.parametrize("has_bias", [False, True])
def test_python_and_numba_give_the_same_bits(has_bias):
    case = make_case(5, n_groups=3, n_obs=70, has_bias=has_bias, ragged=True)
    values = [*case[:3], *list_parameters(case)]
    slow, quick = (compile_graph(mode, has_bias)(*values) for mode in ("FAST_COMPILE", "NUMBA"))
    for a, b in zip(slow, quick, strict=True):
        np.testing.assert_array_equal(a, b)


def test_numba_takes_arrays_in_any_order_in_memory():
    case = make_case(5)
    run = compile_graph("NUMBA", False)
    turned = [np.asfortranarray(value) for value in [*case[:3], *list_parameters(case)]]
    for a, b in zip(run(*turned), evaluate(case), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("activation", layers.ACTIVATIONS)
def test_jax_gives_the_same_numbers(activation):
    case = make_case(5, n_groups=3, has_bias=True, ragged=True)
    inputs, outputs = build(case, activation)
    run = pytensor.function(inputs, outputs, mode="JAX")
    for a, b in zip(run(*case[:3], *list_parameters(case)), evaluate(case, activation), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert np.isnan(run(*case[:2], case[2] - 1, *list_parameters(case))[0])  # points left out: refused elsewhere


def test_jax_can_differentiate_the_value_itself():
    case = make_case(5)
    inputs, (value, *gradients) = build(case)
    from pytensor.link.jax.dispatch import jax_funcify

    graph = pytensor.graph.FunctionGraph(inputs, [value], clone=True)
    function = jax_funcify(graph)
    with jax.enable_x64(True):
        found = jax.grad(lambda *a: function(*a)[0], argnums=(3, 4, 5))(*case[:3], *list_parameters(case))
    for a, b in zip(found, evaluate(case)[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert len(gradients) == 3


@pytest.mark.parametrize("module", [fused, layers, simd])
def test_another_source_is_compiled_again(module, monkeypatch, tmp_path):
    before = fused._dispatch_numba(fused.NetworkLogLik(1), None)[1]
    (tmp_path / "edited.py").write_text("# edited")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "edited.py"))
    assert fused._dispatch_numba(fused.NetworkLogLik(1), None)[1] != before


def test_a_single_network_needs_no_group():
    X, y, _, weights, _ = make_case(3, n_groups=1)
    symbols = [pt.as_tensor(w[0]) for w in weights[:-1]] + [pt.as_tensor(weights[-1][0, :, 0])]
    value = fused.network_loglik(X[0], y[0], symbols).eval(mode="FAST_COMPILE")
    assert value == pytest.approx(add_up(*make_case(3, n_groups=1)), rel=1e-12)


def test_weights_in_double_precision_may_be_computed_in_single():
    case = make_case(3)
    symbols = [pt.as_tensor(w).copy() for w in case[3]]
    value = fused.network_loglik(*case[:2], symbols, dtype="float32")
    found = value.eval(mode="FAST_COMPILE"), pt.grad(value, symbols)[0].eval(mode="FAST_COMPILE")
    assert found[0] != evaluate(case)[0]
    assert found[0] == pytest.approx(evaluate(case)[0], rel=1e-5)
    np.testing.assert_allclose(found[1], evaluate(case)[1], rtol=1e-4)


# --- what is refused


def call(**changes):
    X, y, counts, weights, _ = make_case(0)
    arguments = {"X": X, "y": y, "weights": weights, "n_obs": counts} | changes
    return fused.network_loglik(**arguments)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y": np.full((2, 7), 2)}, ValueError, "y holds labels other than 0 and 1"),
        ({"y": np.zeros((2, 7))}, TypeError, "y has type float64; wanted: integers"),
        ({"n_obs": np.array([7.0, 7.0])}, TypeError, "n_obs has type float64; wanted: integers"),
        ({"weights": [np.zeros((2, 2, 3)), np.zeros(3)]}, TypeError, r"weights\[1\] has 1 axes; wanted: 3"),
        ({"biases": [np.zeros((2, 3))]}, ValueError, "1 biases for 3 layers"),
        ({"activation": "sine"}, ValueError, "activation='sine'; wanted: one of tanh, relu"),
        ({"dtype": "float16"}, ValueError, "dtype='float16'; wanted: one of float64, float32"),
        ({"weights": []}, ValueError, "n_layers=0; wanted: at least 1"),
    ],
)
def test_a_wrong_argument_is_named(changes, error, message):
    with pytest.raises(error, match=message):
        call(**changes)


WRONG = [
    ("y has", lambda c: (c[0], c[1][:, :4], *c[2:])),
    ("n_obs has", lambda c: (*c[:2], c[2][:1], *c[3:])),
    ("n_obs is out of range", lambda c: (*c[:2], c[2] + 1, *c[3:])),
    ("n_obs leaves the last points of every group out", lambda c: (*c[:2], c[2] - 1, *c[3:])),
    ("labels other than 0 and 1", lambda c: (c[0], c[1] + 1, *c[2:])),
    ("labels other than 0 and 1", lambda c: (c[0], c[1] - 1, *c[2:])),
    (r"weights\[1\]", lambda c: (*c[:3], [c[3][0], c[3][1][:, :2], c[3][2]], c[4])),
    (r"weights\[0\]", lambda c: (*c[:3], [c[3][0][:1], *c[3][1:]], c[4])),
    (r"outputs; wanted: 1", lambda c: (*c[:3], [*c[3][:2], np.zeros((2, 4, 2))], [*c[4][:2], np.zeros((2, 2))])),
    (r"biases\[2\]", lambda c: (*c[:4], [*c[4][:2], np.zeros((2, 2))])),
]


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_shapes_that_do_not_fit_are_refused_before_memory_is_read(mode):
    case, run = make_case(0, has_bias=True), compile_graph(mode, True)
    for message, spoil in WRONG:
        wrong = spoil(case)
        with pytest.raises(ValueError, match=message):
            run(*wrong[:3], *list_parameters(wrong))


@pytest.mark.parametrize("bit", range(1, 32))
def test_a_label_with_another_bit_than_the_lowest_is_refused(bit):
    X, y, *others = make_case(0)
    y[1, 3] = np.uint32(2**bit).astype("int32")
    with pytest.raises(ValueError, match="labels other than 0 and 1"):
        evaluate((X, y, *others))


def test_second_derivatives_are_refused_by_name():
    inputs, (_, gradient, *_) = build(make_case(0))
    with pytest.raises(NotImplementedError, match="the model before fuse"):
        pt.grad(gradient.sum(), inputs[3])


def test_a_gradient_with_respect_to_the_points_is_refused_and_not_zero():
    inputs, (value, *_) = build(make_case(0))
    with pytest.raises(pytensor.gradient.NullTypeGradError, match="points"):
        pt.grad(value, inputs[0])
