"""From draws to probabilities: NumPy against the graph of the PyMC model."""

import warnings

import numpy as np
import pytest
import xarray as xr
from bnn import data, models, predict

X = data.grid(5)


def draw_weights(n_draws=3, scale=1.0):
    rng = np.random.default_rng(0)
    shapes = {"w1": (2, 5), "w2": (5, 4), "w3": (4,)}
    return {name: rng.normal(0, scale, size=(n_draws, *shape)) for name, shape in shapes.items()}


def test_probabilities_are_those_of_the_pymc_model():
    weights = draw_weights()
    model = models.flat_bnn(X, np.zeros(len(X)), n_hidden=(5, 4))
    expected = [
        model["p"].eval({model[name]: value[i] for name, value in weights.items()}, mode="FAST_COMPILE")
        for i in range(3)
    ]
    np.testing.assert_allclose(predict.predict_probability(weights, X), expected, rtol=1e-12)


def test_each_draw_has_its_row_and_each_point_its_column():
    weights = draw_weights()
    found = predict.predict_probability(weights, X)
    assert found.shape == (3, 25)
    second = predict.predict_probability({name: value[1:2] for name, value in weights.items()}, X[7:8])
    assert found[1, 7] == pytest.approx(second[0, 0], rel=1e-12)


def test_points_opposite_the_centre_have_opposite_classes():
    weights = draw_weights()
    ahead, behind = (predict.predict_probability(weights, points) for points in (X, -X))
    np.testing.assert_allclose(behind, 1 - ahead, atol=1e-15)


def test_huge_weights_give_certainty_without_a_warning():
    with warnings.catch_warnings(action="error"):
        found = predict.predict_probability(draw_weights(scale=1e4), X[:12])
    assert np.isin(found.round(12), (0, 1)).all()


def test_chains_are_joined_one_after_the_other():
    values = np.arange(24.0).reshape(2, 3, 4)
    posterior = xr.Dataset(dict.fromkeys(predict.WEIGHTS, (("chain", "draw", "hidden_2"), values)))
    found = predict.flatten_chains(posterior)
    assert set(found) == set(predict.WEIGHTS)
    np.testing.assert_array_equal(found["w3"], np.concatenate(values))


def without(name):
    return {key: value for key, value in draw_weights().items() if key != name}


@pytest.mark.parametrize(
    ("weights", "points", "message"),
    [
        (without("w2"), X, r"weights lacks w2; wanted: w1, w2, w3"),
        (draw_weights(), X[0], r"X has shape \(2,\); wanted: \(obs, 2\)"),
        (draw_weights(), np.ones((4, 3)), r"X has shape \(4, 3\); wanted: \(obs, 2\)"),
        ({k: v[0] for k, v in draw_weights().items()}, X, r"weights has shapes \(2, 5\).*; wanted: \(draw, feature"),
    ],
)
def test_a_wrong_argument_is_named(weights, points, message):
    with pytest.raises(ValueError, match=message):
        predict.predict_probability(weights, points)
