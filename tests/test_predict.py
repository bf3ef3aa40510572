"""From draws to probabilities: NumPy against the graph of the PyMC model."""

import warnings

import numpy as np
import pytest
import xarray as xr
from bnn import data, inference, models, predict
from scipy.special import expit

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


LONG = [0, 99, 100, 199, 200, 249]  # draws on either side of two borders between blocks


def test_each_of_many_draws_is_predicted_as_if_it_were_alone():
    weights = draw_weights(250)
    found = predict.predict_probability(weights, X)
    for i in LONG:
        alone = predict.predict_probability({name: value[i : i + 1] for name, value in weights.items()}, X)
        np.testing.assert_allclose(found[i], alone[0], rtol=1e-12)


def without(name):
    return {key: value for key, value in draw_weights().items() if key != name}


@pytest.mark.parametrize(
    ("weights", "points", "message"),
    [
        (without("w2"), X, r"weights lacks w2; wanted: w1, w2, w3"),
        (draw_weights(), X[0], r"X has shape \(2,\); wanted: \(obs, 2\)"),
        (draw_weights(), np.ones((4, 3)), r"X has shape \(4, 3\); wanted: \(obs, 2\)"),
        ({k: v[0] for k, v in draw_weights().items()}, X, r"w1 has shape \(2, 5\); wanted: \(draw, in, out\)"),
        (draw_weights() | {"w2": np.ones((1, 5, 4))}, X, r"w2 has shape \(1, 5, 4\); wanted: \(3, 5, 4\), to fit w1"),
        (draw_weights() | {"w3": np.ones((3, 5))}, X, r"w3 has shape \(3, 5\); wanted: \(3, 4\), to fit w2"),
        (draw_weights(), np.ma.masked_less(X, 0), r"X holds masked values; wanted: points without"),
    ],
)
def test_a_wrong_argument_is_named(weights, points, message):
    with pytest.raises(ValueError, match=message):
        predict.predict_probability(weights, points)


# --- ten classes

IMAGES = np.random.default_rng(1).integers(0, 17, size=(7, 64)) / 16


def draw_digit_weights(n_draws=3, scale=1.0):
    rng = np.random.default_rng(0)
    shapes = {"w1": (64, 5), "b1": (5,), "w2": (5, 4), "b2": (4,), "w3": (4, 10), "b3": (10,)}
    return {name: rng.normal(0, scale, size=(n_draws, *shape)) for name, shape in shapes.items()}


def test_class_probabilities_are_those_of_the_pymc_model():
    weights = draw_digit_weights()
    model = models.digit_bnn(IMAGES, np.zeros(7, dtype=int), n_hidden=(5, 4))
    p = model["y"].owner.inputs[-1]  # of the Categorical variable
    expected = [
        p.eval({model[name]: value[i] for name, value in weights.items()}, mode="FAST_COMPILE") for i in range(3)
    ]
    np.testing.assert_allclose(predict.predict_classes(weights, IMAGES), expected, rtol=1e-10)


def test_class_probabilities_add_up_to_one():
    np.testing.assert_allclose(predict.predict_classes(draw_digit_weights(), IMAGES).sum(axis=-1), 1, rtol=1e-12)


def test_each_draw_has_its_rows_and_each_image_its_own():
    weights = draw_digit_weights()
    found = predict.predict_classes(weights, IMAGES)
    assert found.shape == (3, 7, 10)
    second = predict.predict_classes({name: value[1:2] for name, value in weights.items()}, IMAGES[4:5])
    np.testing.assert_allclose(found[1, 4], second[0, 0], rtol=1e-12)


def test_square_images_are_predicted_as_flat_ones():
    weights = draw_digit_weights()
    np.testing.assert_array_equal(
        predict.predict_classes(weights, IMAGES.reshape(7, 8, 8)), predict.predict_classes(weights, IMAGES)
    )


def test_huge_weights_choose_a_class_without_a_warning():
    with warnings.catch_warnings(action="error"):
        found = predict.predict_classes(draw_digit_weights(scale=1e4), IMAGES)
    np.testing.assert_allclose(found.max(axis=-1), 1)


@pytest.mark.parametrize(
    ("lacking", "X", "message"),
    [
        (("b2",), IMAGES, r"weights lacks b2; wanted: w1, b1, w2, b2, w3, b3"),
        (("w1", "b3"), IMAGES, r"weights lacks w1, b3; wanted"),
        ((), IMAGES[0], r"X has shape \(64,\); wanted: \(obs, pixel\); a single image is X\[None\]"),
        ((), IMAGES[:0], r"X is an empty batch"),
        ((), np.zeros((2, 784)), r"X has images of 784 pixels; wanted: 64, 8 x 8"),
        ((), 16 * IMAGES, r"X runs from 0 to 16; wanted: 0 \(paper\) to 1 \(ink\)"),
    ],
)
def test_images_or_weights_that_do_not_fit_are_named(lacking, X, message):
    weights = {name: value for name, value in draw_digit_weights().items() if name not in lacking}
    with pytest.raises(ValueError, match=message):
        predict.predict_classes(weights, X)


def test_the_biases_of_another_draw_are_refused():
    weights = draw_digit_weights() | {"b2": np.ones((1, 4))}
    with pytest.raises(ValueError, match=r"b2 has shape \(1, 4\); wanted: \(3, 4\), to fit w2"):
        predict.predict_classes(weights, IMAGES)


# --- a hierarchical posterior


def make_posterior(n_groups=3, n_hidden=(4, 5), seed=0):
    """A posterior as `hierarchical_bnn` names it: two chains of six draws."""
    rng = np.random.default_rng(seed)
    variables = {}
    for k, shape in enumerate([(2, n_hidden[0]), n_hidden, n_hidden[1:]], 1):
        dims = tuple(f"d{k}_{i}" for i in range(len(shape)))
        variables[f"mu{k}"] = (("chain", "draw", *dims), rng.normal(size=(2, 6, *shape)))
        variables[f"sd{k}"] = (("chain", "draw"), abs(rng.normal(size=(2, 6))))
        variables[f"z{k}"] = (("chain", "draw", "group", *dims), rng.normal(size=(2, 6, n_groups, *shape)))
    return xr.Dataset(variables)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_each_category_is_predicted_by_its_own_network(activation):
    posterior, points = make_posterior(), np.random.default_rng(1).normal(size=(3, 7, 2))
    found = predict.predict_groups(posterior, points, activation=activation)
    activate = np.tanh if activation == "tanh" else lambda z: np.maximum(z, 0)
    assert found.shape == (2, 6, 3, 7)
    for c, i, g in [(0, 0, 0), (1, 5, 2), (0, 3, 1)]:
        draw = posterior.isel(chain=c, draw=i)
        w1, w2, w3 = ((draw[f"mu{k}"] + draw[f"sd{k}"] * draw[f"z{k}"][g]).values for k in (1, 2, 3))
        np.testing.assert_allclose(found[c, i, g], expit(activate(activate(points[g] @ w1) @ w2) @ w3), rtol=1e-12)


def test_one_grid_serves_all_categories():
    posterior, grid = make_posterior(), np.random.default_rng(1).normal(size=(7, 2))
    found = predict.predict_groups(posterior, grid)
    np.testing.assert_array_equal(found, predict.predict_groups(posterior, np.stack([grid] * 3)))


def test_each_of_many_draws_of_categories_is_predicted_as_if_it_were_alone():
    rng = np.random.default_rng(2)
    shapes = {"w1": (2, 2, 3), "b1": (2, 3), "w2": (2, 3), "b2": (2,)}
    weights = {name: rng.normal(size=(1, 250, *shape)) for name, shape in shapes.items()}
    found = predict.predict_groups(weights, X)
    for i in LONG:
        alone = predict.predict_groups({name: w[:, i : i + 1] for name, w in weights.items()}, X)
        np.testing.assert_allclose(found[:, i], alone[:, 0], rtol=1e-12)


@pytest.mark.parametrize("shape", [(7, 3), (2, 7, 2), (2,), (3, 7, 1)])
def test_points_that_fit_no_category_are_refused(shape):
    with pytest.raises(ValueError, match=r"wanted: \(3, obs, 2\) or \(obs, 2\)"):
        predict.predict_groups(make_posterior(), np.zeros(shape))


def eval_probability(model, values):
    """P(y = 1) of each point in the model's own graph."""
    p = model["y"].owner.inputs[-1]  # of the Bernoulli variable
    return p.eval({model[name]: value for name, value in values.items()}, mode="FAST_COMPILE")


def draw_values(model):
    """A positive number for every free variable."""
    rng = np.random.default_rng(3)
    return {rv.name: abs(rng.normal(size=tuple(rv.shape.eval(mode="FAST_COMPILE")))) for rv in model.free_RVs}


POINTS, LABELS = np.random.default_rng(3).normal(size=(3, 7, 2)), np.tile([0, 1, 0, 1, 0, 1, 0], (3, 1))


def test_networks_with_biases_are_those_of_the_model():
    model = models.hierarchical_bnn(POINTS, LABELS, n_hidden=(4, 5), bias=True)
    values = draw_values(model)
    posterior = {name: value[None, None] for name, value in values.items()}
    found = predict.predict_groups(posterior, POINTS)[0, 0]
    np.testing.assert_allclose(found, eval_probability(model, values), rtol=1e-10)


def test_a_network_of_one_category_with_biases_is_that_of_the_model():
    model = models.unpooled_bnn(POINTS[0], LABELS[0], n_hidden=(4, 5), bias=True)
    values = draw_values(model)
    weights = {name: value[None, None, None] for name, value in values.items()}
    found = predict.predict_groups(weights, POINTS[0])[0, 0, 0]
    np.testing.assert_allclose(found, eval_probability(model, values), rtol=1e-10)


@pytest.fixture(scope="module")
def sampled():
    """Networks of two categories with biases and relu units, sampled one by one; and their points."""
    points, labels = POINTS[:2, :6], LABELS[:2, :6]
    model = models.unpooled_bnn(points[0], labels[0], n_hidden=(3,), bias=True, activation="relu")
    return inference.sample_groups(
        inference.compile_nuts(model), points, labels, seed=1, draws=4, tune=4, chains=2
    ), points  # fmt: skip


def test_biases_of_categories_sampled_one_by_one_are_joined(sampled):
    trees, points = sampled
    weights = predict.join_groups(trees)
    assert {name: w.shape for name, w in weights.items()} == {
        "w1": (2, 4, 2, 2, 3), "w2": (2, 4, 2, 3), "b1": (2, 4, 2, 3), "b2": (2, 4, 2),
    }  # fmt: skip
    p = predict.predict_groups(weights, points, activation="relu")
    assert p.shape == (2, 4, 2, 6)
    without = {name: w for name, w in weights.items() if name.startswith("w")}
    assert abs(p - predict.predict_groups(without, points, activation="relu")).max() > 0.01


def make_trees(n_groups=3):
    """What `sample_groups` gives: a posterior for each category, of two layers."""
    rng = np.random.default_rng(5)
    return [
        xr.DataTree.from_dict({"posterior": xr.Dataset(
            {"w1": (("chain", "draw", "in", "out"), rng.normal(size=(1, 4, 2, 3))),
             "w2": (("chain", "draw", "out"), rng.normal(size=(1, 4, 3)))})})
        for _ in range(n_groups)
    ]  # fmt: skip


def test_categories_of_other_shapes_are_named():
    trees = make_trees()
    posterior = trees[1]["posterior"].to_dataset()
    trees[1] = xr.DataTree.from_dict({"posterior": posterior.isel(draw=slice(2))})
    with pytest.raises(ValueError, match=r"trees\[1\] has w1 of shape \(1, 2, 2, 3\); wanted: \(1, 4, 2, 3\), as"):
        predict.join_groups(trees)
    trees[1] = xr.DataTree.from_dict({"posterior": posterior.drop_vars("w2")})
    with pytest.raises(ValueError, match=r"trees\[1\] has w2 of shape no; wanted"):
        predict.join_groups(trees)


def test_categories_are_joined_in_their_order():
    trees = make_trees()
    for g, tree in enumerate(trees):
        for name, values in predict.join_groups(trees).items():
            np.testing.assert_array_equal(values[:, :, g], tree["posterior"][name])


@pytest.mark.parametrize("activation", ["gelu", None])
def test_an_unknown_activation_is_named(activation):
    with pytest.raises(ValueError, match=rf"activation={activation!r}; wanted: one of tanh, relu"):
        predict.predict_groups(make_posterior(), X, activation=activation)


def make_weights(**changes):
    shapes = {"w1": (2, 6, 3, 2, 4), "b1": (2, 6, 3, 4), "w2": (2, 6, 3, 4), "b2": (2, 6, 3)} | changes
    return {name: np.ones(shape) for name, shape in shapes.items() if shape}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"b2": None}, r"posterior lacks b2; wanted: weights of each layer, and biases of each or none"),
        ({"w2": (2, 6, 1, 4)}, r"w2 has shape \(2, 6, 1, 4\); wanted: \(2, 6, 3, 4\), to fit w1"),
        ({"b1": (2, 6, 1, 4)}, r"b1 has shape \(2, 6, 1, 4\); wanted: \(2, 6, 3, 4\), to fit w1"),
        ({"w1": (6, 3, 2, 4)}, r"w1 has shape \(6, 3, 2, 4\); wanted: \(chain, draw, group, in, out\)"),
        ({"w2": None, "w3": (2, 6, 3, 4)}, r"posterior lacks w2; wanted: weights of each layer"),
    ],
)
def test_layers_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        predict.predict_groups(make_weights(**changes), X)


def test_masked_points_are_refused():
    with pytest.raises(ValueError, match="X holds masked values; wanted: points without"):
        predict.predict_groups(make_weights(), np.ma.masked_less(X, 0))


def test_no_categories_to_join_are_refused():
    with pytest.raises(ValueError, match=r"trees is empty; wanted: results of inference.sample_groups"):
        predict.join_groups([])


def test_posteriors_without_weights_to_join_are_refused():
    with pytest.raises(ValueError, match=r"the posteriors hold no w1; wanted: results of inference.sample_groups"):
        predict.join_groups([xr.DataTree.from_dict({"posterior": make_posterior()})])


def test_a_posterior_that_is_not_hierarchical_is_refused():
    with pytest.raises(ValueError, match="posterior holds sd1; wanted: mu1, sd1, z1"):
        predict.combine_weights(make_posterior()[["sd1"]])
