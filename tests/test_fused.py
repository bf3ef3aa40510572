"""The fused likelihood says what the graph says, to nine digits, and so does its gradient."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from bnn import data, fused, models
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats


def make_case(seed, n_obs, n_feature, n1, n2, scale):
    """Random points, labels and weights."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n_obs, n_feature)), rng.integers(0, 2, n_obs).astype(float)
    return X, y, *(scale * rng.normal(size=shape) for shape in ((n_feature, n1), (n1, n2), (n2,)))


def add_up(X, y, w1, w2, w3):
    """The log likelihood, from SciPy."""
    logit = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    return np.sum(np.where(y == 1, stats.logistic.logcdf(logit), stats.logistic.logsf(logit)))


cases = st.builds(
    make_case,
    seed=st.integers(0, 10_000),
    n_obs=st.integers(1, 70),
    n_feature=st.integers(1, 4),
    n1=st.integers(1, 9),
    n2=st.integers(1, 9),
    scale=st.sampled_from([0.0, 0.01, 1.0, 10.0, 300.0]),
)


@settings(max_examples=150, deadline=None)
@given(cases)
def test_value_is_scipys(case):
    value = fused.loglik_and_gradient(*case)[0]
    assert value == pytest.approx(add_up(*case), rel=1e-9, abs=1e-9)


def test_value_and_gradient_are_those_of_the_graph():
    moons = data.flat_moons(seed=3)
    stock, quick = (models.flat_bnn(moons.X_train, moons.y_train, likelihood=kind) for kind in ("graph", "fused"))
    value_stock, value_quick = stock.compile_logp(), quick.compile_logp()
    slope_stock, slope_quick = stock.compile_dlogp(), quick.compile_dlogp()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        point = {name: 2 * rng.normal(size=w.shape) for name, w in stock.initial_point().items()}
        assert value_quick(point) == pytest.approx(value_stock(point), rel=1e-9)
        np.testing.assert_allclose(slope_quick(point), slope_stock(point), rtol=1e-9, atol=1e-9)


def test_gradient_is_that_of_finite_differences():
    X, y, *weights = make_case(1, 40, 2, 3, 4, 1.0)
    shapes = [w.shape for w in weights]

    def unpack(flat):
        parts = np.split(flat, np.cumsum([np.prod(s) for s in shapes])[:-1])
        return [part.reshape(s) for part, s in zip(parts, shapes, strict=True)]

    flat = np.concatenate([w.ravel() for w in weights])
    numeric = optimize.approx_fprime(flat, lambda f: fused.loglik_and_gradient(X, y, *unpack(f))[0], 1e-6)
    analytic = np.concatenate([g.ravel() for g in fused.loglik_and_gradient(X, y, *weights)[1:]])
    np.testing.assert_allclose(analytic, numeric, atol=1e-4)


@settings(max_examples=30, deadline=None)
@given(cases, st.randoms(use_true_random=False))
def test_permuting_hidden_units_and_flipping_their_signs_changes_nothing(case, random):
    X, y, w1, w2, w3 = case
    order = random.sample(range(w1.shape[1]), w1.shape[1])
    sign = np.array([random.choice([-1.0, 1.0]) for _ in order])
    relabelled = fused.loglik_and_gradient(X, y, np.ascontiguousarray((w1 * sign)[:, order]),
                                           np.ascontiguousarray((w2 * sign[:, None])[order]), w3)  # fmt: skip
    assert relabelled[0] == pytest.approx(fused.loglik_and_gradient(*case)[0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("logit", [-1e3, 1e3])
def test_extreme_logits_keep_value_and_gradient_finite(logit):
    X, y = np.array([[50.0]]), np.array([1.0])
    value, *gradient = fused.loglik_and_gradient(X, y, np.array([[1.0]]), np.array([[50.0]]), np.array([logit]))
    assert value == pytest.approx(min(logit, 0.0), abs=1e-9)
    assert all(np.isfinite(g).all() for g in gradient)


def test_zero_weights_give_a_coin():
    X, y, *weights = make_case(0, 7, 2, 5, 5, 0.0)
    assert fused.loglik_and_gradient(X, y, *weights)[0] == pytest.approx(-7 * np.log(2))


def test_python_and_numba_give_the_same_bits():
    case = make_case(5, 50, 2, 5, 5, 1.0)
    inputs = [pt.tensor(name, shape=(None,) * np.ndim(v)) for name, v in zip(fused.FlatLogLik.NAMES, case, strict=True)]
    op = fused.FlatLogLik()
    slow = pytensor.function(inputs, op(*inputs), mode="FAST_COMPILE")(*case)
    quick = pytensor.function(inputs, op(*inputs), mode="NUMBA")(*case)
    for a, b in zip(slow, quick, strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_input_of_the_wrong_shape_is_named():
    X, y, w1, w2, w3 = make_case(0, 5, 2, 3, 3, 1.0)
    with pytest.raises(TypeError, match="w3 has 2 axes; wanted: 1"):
        fused.flat_loglik(X, y, w1, w2, w3[None])


def test_shapes_that_do_not_fit_are_refused_before_memory_is_read():
    X, y, w1, w2, w3 = make_case(0, 5, 2, 3, 3, 1.0)
    with pytest.raises(ValueError, match="y and X"):
        fused.loglik_and_gradient(X, y[:4], w1, w2, w3)
    with pytest.raises(ValueError, match="w1, w2, w3 do not fit"):
        fused.loglik_and_gradient(X, y, w1, w2[:2], w3)


def test_the_fused_model_refuses_a_minibatch():
    moons = data.flat_moons(seed=3)
    batch = pm.Minibatch(moons.X_train, moons.y_train, batch_size=10)
    with pytest.raises(ValueError, match="minibatch"):
        models.flat_bnn(*batch, total_size=500, likelihood="fused")


def test_an_unknown_likelihood_is_named():
    moons = data.flat_moons(seed=3)
    with pytest.raises(ValueError, match="likelihood='fast'; wanted: 'graph' or 'fused'"):
        models.flat_bnn(moons.X_train, moons.y_train, likelihood="fast")
