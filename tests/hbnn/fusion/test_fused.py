"""The fused likelihood says what SciPy, the graph and JAX say, and so does its gradient."""

from functools import lru_cache

import jax
import numba
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hbnn.fusion import _activations, _layers, _loglik, _rows, _simd
from hypothesis import given, settings
from hypothesis import strategies as st
from pytensor.link.jax.dispatch import jax_funcify
from scipy import special, stats


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


def find_logits(X, weights, biases, activation):
    """Logits of one group by the definition; complex where its arguments are."""
    h = X
    for k, w in enumerate(weights):
        z = h @ w + (biases[k] if biases else 0)
        h = np.tanh(z) if activation == "tanh" else np.where(z.real > 0, z, 0)
    return z[:, 0]


def add_up(X, y, counts, weights, biases, activation="tanh"):
    """The log likelihood by its definition, group after group, from SciPy."""
    total = 0.0
    for g, n in enumerate(counts):
        z = find_logits(X[g, :n].astype(float), [w[g] for w in weights], [b[g] for b in biases], activation)
        total += np.sum(np.where(y[g, :n] == 1, stats.logistic.logcdf(z), stats.logistic.logsf(z)))
    return total


def list_rows(case):
    """X, y and group, as rows, of each group in turns; those beyond the last point of a group belong to none."""
    X, y, counts = case[:3]
    inside = np.arange(y.shape[1]) < counts[:, None]
    group = np.where(inside, np.arange(len(X))[:, None], _rows.OUTSIDE)
    return X.swapaxes(0, 1).reshape(-1, X.shape[2]), y.T[inside.T], group.T.ravel()


def evaluate(case, activation="tanh", in_rows=True):
    """Value and gradients from the Op itself, without compiling a graph."""
    X, y, _, weights, biases = case
    op = _loglik.NetworkLogLik(len(weights), bool(biases), activation, str(X.dtype), in_rows)
    outputs, index = [[None] for _ in range(1 + len(weights) + len(biases))], []
    if in_rows:
        X, y, group = list_rows(case)
        index = _rows._sort_rows(group, np.array(len(weights[0])), np.array(len(X)))
    op.perform(None, [X, y, *index, *weights, *biases], outputs)
    return [value for (value,) in outputs]


def list_parameters(case):
    return [*case[3], *case[4]]


cases = st.builds(
    make_case,
    seed=st.integers(0, 10_000),
    n_groups=st.integers(1, 4),
    n_obs=st.sampled_from([1, 2, 7, 8, 9, 50, 64, 65, 130]),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple),
    scale=st.sampled_from([0.0, 0.01, 1.0, 10.0, 300.0]),
    has_bias=st.booleans(),
    ragged=st.booleans(),
)


# --- tanh


@pytest.mark.parametrize(("dtype", "least", "error"), [("float64", 1e-300, 3e-15), ("float32", 1e-30, 1e-6)])
def test_tanh_is_numpys_to_rounding(dtype, least, error):
    small = np.geomspace(least, 1, 1000)
    z = np.concatenate([np.linspace(-25, 25, 100_000), small, -small]).astype(dtype)
    apply = compile_function(dtype, 2)
    np.testing.assert_allclose(apply(z), np.tanh(z.astype(float)), rtol=error)
    extremes = np.array([np.inf, -np.inf, np.nan, 0.0, 1e30, -1e30, 710.0, -710.0], dtype)
    np.testing.assert_array_equal(apply(extremes), [1, -1, np.nan, 0, 1, -1, 1, -1])


@pytest.mark.parametrize("dtype", _layers.DTYPES)
def test_an_exponential_goes_to_nothing(dtype):
    q = -np.geomspace(20, 1e6, 1000).astype(dtype)
    np.testing.assert_array_equal(compile_function(dtype, 0)(q), -1)


def compile_function(dtype, which):
    """expm1(2 q) for q <= 0, or tanh, of `_activations.make_functions`, of an array."""
    function, lanes = _activations.make_functions(dtype)[which], _simd.LANES[dtype]
    load, store = _simd.load, _simd.store

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
@given(cases, st.sampled_from(["tanh", "relu"]))
def test_value_and_gradient_are_those_of_the_definition(case, activation):
    """The gradient along a random direction, without differences: the definition moved by an imaginary step."""
    activation = activation if case[4] else "tanh"  # a kernel of ReLU without biases would be compiled for this alone
    value, *gradient = evaluate(case, activation)
    assert value == pytest.approx(add_up(*case, activation), rel=1e-9, abs=1e-9)
    X, y, counts, weights, biases = case
    rng, step, expected = np.random.default_rng(1), 1e-30, 0.0
    along = [rng.normal(size=p.shape) for p in gradient]
    moved = [p + 1j * step * d for p, d in zip([*weights, *biases], along, strict=True)]
    for g, n in enumerate(counts):
        own = [p[g] for p in moved]
        z = find_logits(X[g, :n], own[: len(weights)], own[len(weights) :], activation)
        expected += np.sum((y[g, :n] - special.expit(z.real)) * z.imag / step)
    parts = [p * d for p, d in zip(gradient, along, strict=True)]
    size = sum(abs(part).sum() for part in parts)
    assert sum(part.sum() for part in parts) == pytest.approx(expected, abs=1e-9 * (1 + size))


def test_single_precision_is_good_to_four_digits():
    case = make_case(4, n_groups=18, n_obs=77, sizes=(2, 8, 8), has_bias=True, ragged=True)
    single = (case[0].astype("float32"), *case[1:3], *([p.astype("float32") for p in ps] for ps in case[3:]))
    found, expected = evaluate(single), evaluate(case)
    assert found[0] == pytest.approx(expected[0], rel=1e-4)
    for a, b in zip(found[1:], expected[1:], strict=True):
        assert a.dtype == "float32"
        np.testing.assert_allclose(a, b, atol=1e-4 * abs(b).max())


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


def test_a_weight_that_is_nan_makes_the_value_nan():
    case = make_case(0)
    case[3][0][0, 0, 0] = np.nan
    assert np.isnan(evaluate(case)[0])


def test_a_thousand_points_to_a_group_do_not_overflow_the_product():
    case = make_case(0, n_obs=5000, scale=0.0)
    assert evaluate(case)[0] == pytest.approx(-10_000 * np.log(2))


# --- in a graph


def build(case, activation="tanh", group=None):
    """The symbolic value, its inputs and its gradients; `group` is an input, too, where it is not given."""
    X, _, _, weights, biases = case
    symbols = [pt.tensor(f"p{k}", dtype=p.dtype, shape=(None,) * p.ndim) for k, p in enumerate([*weights, *biases])]
    points, n = [pt.matrix("X", dtype=X.dtype), pt.ivector("y"), pt.lvector("group")], len(weights)
    points, group = (points, points[2]) if group is None else (points[:2], group)
    value = _loglik.network_loglik(*points[:2], symbols[:n], biases=symbols[n:], group=group, activation=activation)
    return [*points, *symbols], [value, *pt.grad(value, symbols)]


@lru_cache
def compile_graph(mode, has_bias):
    """Value and gradients of networks of three layers, of any shape."""
    return pytensor.function(*build(make_case(0, has_bias=has_bias)), mode=mode)


@pytest.mark.parametrize("has_bias", [False, True])
def test_python_and_numba_give_the_same_bits(has_bias):
    case = make_case(5, n_groups=3, n_obs=70, has_bias=has_bias, ragged=True)
    values = [*list_rows(case), *list_parameters(case)]
    slow, quick = (compile_graph(mode, has_bias)(*values) for mode in ("FAST_COMPILE", "NUMBA"))
    for a, b in zip(slow, quick, strict=True):
        np.testing.assert_array_equal(a, b)


def test_numba_takes_arrays_in_any_order_in_memory():
    case = make_case(5)
    run = compile_graph("NUMBA", False)
    turned = [np.asfortranarray(value) for value in [*list_rows(case), *list_parameters(case)]]
    for a, b in zip(run(*turned), evaluate(case), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_jax_gives_the_same_numbers(activation):
    case = make_case(5, n_groups=3, has_bias=True, ragged=True)
    X, y, group = list_rows(case)
    inputs, outputs = build(case, activation, group)  # in JAX, groups must be known beforehand
    run = pytensor.function(inputs, outputs, mode="JAX")
    for a, b in zip(run(X, y, *list_parameters(case)), evaluate(case, activation), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_jax_can_differentiate_the_value_itself():
    case = make_case(5)
    X, y, group = list_rows(case)
    inputs, (value, *_) = build(case, group=group)
    graph = pytensor.graph.FunctionGraph(inputs, [value], clone=True)
    function = jax_funcify(graph)
    with jax.enable_x64(True):
        found = jax.grad(lambda *a: function(*a)[0], argnums=(2, 3, 4))(X, y, *list_parameters(case))
    for a, b in zip(found, evaluate(case)[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("module", [_loglik, _layers, _activations, _simd])
def test_another_source_is_compiled_again(module, monkeypatch, tmp_path):
    before = _loglik._dispatch_numba(_loglik.NetworkLogLik(1), None)[1]
    (tmp_path / "edited.py").write_text("# edited")
    monkeypatch.setattr(module, "__file__", str(tmp_path / "edited.py"))
    assert _loglik._dispatch_numba(_loglik.NetworkLogLik(1), None)[1] != before


def test_a_single_network_needs_no_group():
    X, y, _, weights, _ = make_case(3, n_groups=1)
    symbols = [pt.as_tensor(w[0]) for w in weights[:-1]] + [pt.as_tensor(weights[-1][0, :, 0])]
    value = _loglik.network_loglik(X[0], y[0], symbols).eval(mode="FAST_COMPILE")
    assert value == pytest.approx(add_up(*make_case(3, n_groups=1)), rel=1e-12)


def test_weights_in_double_precision_may_be_computed_in_single():
    case = make_case(3, has_bias=True)
    symbols = [pt.as_tensor(p).copy() for p in list_parameters(case)]
    value = _loglik.network_loglik(*case[:2], symbols[:3], biases=symbols[3:], dtype="float32")
    found = value.eval(mode="FAST_COMPILE"), pt.grad(value, symbols)[0].eval(mode="FAST_COMPILE")
    assert found[0] != evaluate(case)[0]
    assert found[0] == pytest.approx(evaluate(case)[0], rel=1e-5)
    np.testing.assert_allclose(found[1], evaluate(case)[1], rtol=1e-4)


# --- what is refused


def call(**changes):
    X, y, _, weights, _ = make_case(0)
    arguments = {"X": X, "y": y, "weights": weights} | changes
    return _loglik.network_loglik(**arguments)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"y": np.full((2, 7), 2)}, ValueError, "y holds labels other than 0 and 1"),
        ({"y": np.zeros((2, 7))}, TypeError, "y has type float64; wanted: integers"),
        ({"y": np.zeros(14, int)}, TypeError, "y has 1 axes; wanted: 2"),
        ({"weights": [np.zeros((2, 2, 3)), np.zeros(3)]}, TypeError, r"weights\[1\] has 1 axes; wanted: 3"),
        ({"biases": [np.zeros((2, 3))]}, ValueError, "1 biases for 3 layers"),
        ({"activation": "sine"}, ValueError, "activation='sine'; wanted: one of tanh, relu"),
        ({"activation": ("elu", -1.0)}, ValueError, "wanted: a parameter that is not negative"),
        ({"activation": ("tanh", "elu", "sin")}, ValueError, "3 activations for 2 hidden layers"),
        ({"dtype": "float16"}, ValueError, "dtype='float16'; wanted: one of float64, float32"),
        ({"weights": []}, ValueError, "n_layers=0; wanted: at least 1"),
    ],
)
def test_a_wrong_argument_is_named(changes, error, message):
    with pytest.raises(error, match=message):
        call(**changes)


WRONG = [
    ("y has another length", 1, lambda y: y[:4]),
    ("a row has a group that has no weights", 2, lambda group: group + 1),
    ("the index of groups has another length than X", 2, lambda group: group[:3]),
    ("labels other than 0 and 1", 1, lambda y: y + 1),
    ("labels other than 0 and 1", 1, lambda y: y - 1),
    (r"weights\[1\]", 4, lambda w: w[:, :2]),
    (r"weights\[0\]", 3, lambda w: w[..., :1, :]),
    ("outputs; wanted: 1", 5, lambda w: np.zeros((2, 4, 2))),
    (r"biases\[2\]", 8, lambda b: np.zeros((2, 2))),
]


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "NUMBA"])
def test_shapes_that_do_not_fit_are_refused_before_memory_is_read(mode):
    case, run = make_case(0, has_bias=True), compile_graph(mode, True)
    for message, k, spoil in WRONG:
        values = [*list_rows(case), *list_parameters(case)]
        values[k] = spoil(values[k])
        if "outputs" in message:
            values[8] = np.zeros((2, 2))
        with pytest.raises(ValueError, match=message):
            run(*values)


def test_a_label_with_another_bit_than_the_lowest_is_refused():
    for bit in range(1, 32):
        X, y, *others = make_case(0)
        y[1, 3] = np.uint32(2**bit).astype("int32")
        with pytest.raises(ValueError, match="labels other than 0 and 1"):
            evaluate((X, y, *others))


def test_other_derivatives_are_refused_and_not_zero():
    inputs, (value, gradient, *_) = build(make_case(0))
    with pytest.raises(NotImplementedError, match="the model before fuse"):
        pt.grad(gradient.sum(), inputs[3])
    with pytest.raises(pytensor.gradient.NullTypeGradError, match="points"):
        pt.grad(value, inputs[0])
