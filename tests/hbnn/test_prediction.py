"""From draws to probabilities: NumPy against the graph of the PyMC model."""

import warnings

import numpy as np
import pytest
import xarray as xr
from bookkit import data, models
from hbnn import prediction
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
    np.testing.assert_allclose(prediction.predict_probability(weights, X), expected, rtol=1e-12)


def test_chains_are_joined_one_after_the_other():
    values = np.arange(24.0).reshape(2, 3, 4)
    posterior = xr.Dataset(dict.fromkeys(prediction.WEIGHTS, (("chain", "draw", "hidden_2"), values)))
    found = prediction.flatten_chains(posterior)
    assert set(found) == set(prediction.WEIGHTS)
    np.testing.assert_array_equal(found["w3"], np.concatenate(values))


LONG = [0, 99, 100, 199, 200, 249]  # draws on either side of two borders between blocks


def test_each_of_many_draws_is_predicted_as_if_it_were_alone():
    weights = draw_weights(250)
    found = prediction.predict_probability(weights, X)
    for i in LONG:
        alone = prediction.predict_probability({name: value[i : i + 1] for name, value in weights.items()}, X)
        np.testing.assert_allclose(found[i], alone[0], rtol=1e-12)


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
    np.testing.assert_allclose(prediction.predict_classes(weights, IMAGES), expected, rtol=1e-10)


def test_huge_weights_give_certainty_without_a_warning():
    with warnings.catch_warnings(action="error"):
        p = prediction.predict_probability(draw_weights(scale=1e4), X[:12])
        classes = prediction.predict_classes(draw_digit_weights(scale=1e4), IMAGES)
    assert np.isin(p.round(12), (0, 1)).all()
    np.testing.assert_allclose(classes.max(axis=-1), 1)


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
    found = prediction.predict_groups(posterior, points, activation=activation)
    activate = np.tanh if activation == "tanh" else lambda z: np.maximum(z, 0)
    assert found.shape == (2, 6, 3, 7)
    for c, i, g in [(0, 0, 0), (1, 5, 2), (0, 3, 1)]:
        draw = posterior.isel(chain=c, draw=i)
        w1, w2, w3 = ((draw[f"mu{k}"] + draw[f"sd{k}"] * draw[f"z{k}"][g]).values for k in (1, 2, 3))
        np.testing.assert_allclose(found[c, i, g], expit(activate(activate(points[g] @ w1) @ w2) @ w3), rtol=1e-12)


def test_each_of_many_draws_of_categories_is_predicted_as_if_it_were_alone():
    rng = np.random.default_rng(2)
    shapes = {"w1": (2, 2, 3), "b1": (2, 3), "w2": (2, 3), "b2": (2,)}
    weights = {name: rng.normal(size=(1, 250, *shape)) for name, shape in shapes.items()}
    found = prediction.predict_groups(weights, X)
    for i in LONG:
        alone = prediction.predict_groups({name: w[:, i : i + 1] for name, w in weights.items()}, X)
        np.testing.assert_allclose(found[:, i], alone[:, 0], rtol=1e-12)


def eval_probability(model, values):
    """P(y = 1) of each point in the model's own graph."""
    p = model["y"].owner.inputs[-1]  # of the Bernoulli variable
    return p.eval({model[name]: value for name, value in values.items()}, mode="FAST_COMPILE")


def draw_values(model):
    """A positive number for every free variable."""
    rng = np.random.default_rng(3)
    return {rv.name: abs(rng.normal(size=tuple(rv.shape.eval(mode="FAST_COMPILE")))) for rv in model.free_RVs}


POINTS, LABELS = np.random.default_rng(3).normal(size=(3, 7, 2)), np.tile([0, 1, 0, 1, 0, 1, 0], (3, 1))


@pytest.mark.parametrize("kind", ["hierarchical_bnn", "unpooled_bnn"])
def test_networks_with_biases_are_those_of_the_model(kind):
    part, axes = (slice(None), (0, 1)) if kind == "hierarchical_bnn" else (0, (0, 1, 2))
    model = getattr(models, kind)(POINTS[part], LABELS[part], n_hidden=(4, 5), bias=True)
    values = draw_values(model)
    weights = {name: np.expand_dims(value, axes) for name, value in values.items()}
    found = prediction.predict_groups(weights, POINTS[part])
    np.testing.assert_allclose(np.squeeze(found, axes), eval_probability(model, values), rtol=1e-10)


def make_trees(n_groups=3):
    """What `sample_groups` gives: a posterior for each category, of two layers with biases."""
    rng = np.random.default_rng(5)
    dims = {"w1": ("in", "out"), "w2": ("out",), "b1": ("out",), "b2": ()}
    sizes = {"chain": 1, "draw": 4, "in": 2, "out": 3}
    trees = []
    for _ in range(n_groups):
        axes = {name: ("chain", "draw", *own) for name, own in dims.items()}
        posterior = {name: (own, rng.normal(size=[sizes[axis] for axis in own])) for name, own in axes.items()}
        trees.append(xr.DataTree.from_dict({"posterior": xr.Dataset(posterior)}))
    return trees


def test_categories_are_joined_in_their_order():
    trees = make_trees()
    weights = prediction.join_groups(trees)
    assert set(weights) == {"w1", "w2", "b1", "b2"}
    for g, tree in enumerate(trees):
        for name, values in weights.items():
            np.testing.assert_array_equal(values[:, :, g], tree["posterior"][name])


# --- what is refused


def make_weights(**changes):
    shapes = {"w1": (2, 6, 3, 2, 4), "b1": (2, 6, 3, 4), "w2": (2, 6, 3, 4), "b2": (2, 6, 3)} | changes
    return {name: np.ones(shape) for name, shape in shapes.items() if shape}


def cut_draws(tree):
    return xr.DataTree.from_dict({"posterior": tree["posterior"].to_dataset().isel(draw=slice(2))})


FLAT, DIGITS, TREES = draw_weights(), draw_digit_weights(), make_trees()
NO_W = xr.DataTree.from_dict({"posterior": make_posterior()})
MASKED = np.ma.masked_less(X, 0)


@pytest.mark.parametrize(
    ("function", "weights", "points", "message"),
    [
        ("probability", {"w1": FLAT["w1"], "w3": FLAT["w3"]}, X, "weights lacks w2; wanted: w1, w2, w3"),
        ("probability", FLAT, X[0], r"X has shape \(2,\); wanted: \(obs, 2\)"),
        ("probability", FLAT | {"w1": FLAT["w1"][0]}, X, r"\(2, 5\); wanted: \(draw, in, out\)"),
        ("probability", FLAT | {"w2": np.ones((1, 5, 4))}, X, r"\(1, 5, 4\); wanted: \(3, 5, 4\), to fit w1"),
        ("probability", FLAT | {"w3": np.ones((3, 5))}, X, r"\(3, 5\); wanted: \(3, 4\), to fit w2"),
        ("probability", FLAT, MASKED, "X has 20 masked values"),
        ("classes", FLAT, IMAGES, "weights lacks b1, b2, b3; wanted: w1, b1"),
        ("classes", DIGITS, np.zeros((2, 784)), "784 pixels; wanted: 64"),
        ("classes", DIGITS, 16 * IMAGES, "X runs from 0 to 16"),
        ("classes", DIGITS | {"b2": np.ones((1, 4))}, IMAGES, r"b2 has shape \(1, 4\); wanted: \(3, 4\), to fit w2"),
        ("groups", make_weights(), np.zeros((7, 3)), r"wanted: \(3, obs, 2\) or \(obs, 2\)"),
        ("groups", make_weights(), MASKED, "X has 20 masked values"),
        ("groups", make_weights(b2=None), X, "lacks b2; wanted: .* biases of each or none"),
        ("groups", make_weights(w2=(2, 6, 1, 4)), X, r"\(2, 6, 1, 4\); wanted: \(2, 6, 3, 4\), to fit w1"),
        ("groups", make_weights(b1=(2, 6, 1, 4)), X, r"b1 has shape \(2, 6, 1, 4\)"),
        ("groups", make_weights(w1=(6, 3, 2, 4)), X, r"wanted: \(chain, draw, group, in, out\)"),
    ],
)
def test_weights_and_points_that_do_not_fit_are_named(function, weights, points, message):
    with pytest.raises(ValueError, match=message):
        getattr(prediction, f"predict_{function}")(weights, points)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: prediction.predict_groups(make_posterior(), X, activation="gelu"),
            "'gelu'; wanted: one of tanh, relu",
        ),
        (lambda: prediction.join_groups([]), "trees is empty; wanted: .*sample_groups"),
        (lambda: prediction.join_groups([NO_W]), "no w1; wanted: .*sample_groups"),
        (lambda: prediction.join_groups([TREES[0], cut_draws(TREES[1])]), r"trees\[1\] has w1 of shape \(1, 2, 2, 3\)"),
        (lambda: prediction.join_groups([TREES[0], NO_W]), r"trees\[1\] has w1 of shape no"),
        (lambda: prediction.combine_weights(make_posterior()[["sd1"]]), "holds sd1; wanted: mu1, sd1, z1"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
