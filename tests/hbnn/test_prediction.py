"""Predictions of a typed model, against the same model typed with the new points; of weights, against its graph."""

import warnings

import cloudpickle
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr
from bookkit import data, models
from hbnn import fuse, predict, prediction
from scipy.special import expit

RNG = np.random.default_rng(7)
GROUP, NEW_GROUP = np.array([0, 0, 0, 1, 2, 2, 2, 2, 2]), np.array([2, 0, 1, 1])  # of unequal sizes
ROWS, NEW_ROWS = RNG.normal(size=(9, 2)), RNG.normal(size=(4, 2))
STACKS, NEW_STACKS = RNG.normal(size=(3, 5, 2)), RNG.normal(size=(3, 4, 2))


def vary(name, *shape, groups=3):
    """Weights of every group."""
    mu, sd = pm.Normal(f"{name}_mu", shape=shape), pm.HalfNormal(f"{name}_sd")
    return mu + sd * pm.Normal(f"{name}_z", shape=(groups, *shape))


def type_relu_with_biases(X, g, y):
    w1, b1 = pm.Normal("w1", shape=(2, 4)), pm.Normal("b1", shape=4)
    w2, b2 = pm.Normal("w2", shape=4), pm.Normal("b2")
    logit = pt.maximum(X @ w1 + b1, 0) @ w2 + b2
    return pm.Bernoulli("y", logit_p=logit, observed=y), pm.math.sigmoid(logit)


def type_stacked(X, g, y):
    h = pm.math.softplus(X @ vary("w1", 2, 4) + vary("b1", 4)[:, None])
    logit = (h @ vary("w2", 4)[..., None])[..., 0]
    return pm.Bernoulli("y", logit_p=logit, observed=y), pm.math.sigmoid(logit)


def type_rows(X, g, y):
    h = pm.math.tanh(pt.einsum("nf,nfh->nh", X, vary("w1", 2, 4)[g]) + vary("b1", 4)[g])
    p = pm.math.sigmoid((h * vary("w2", 4)[g]).sum(axis=1) + vary("b2")[g])
    return pm.Bernoulli("y", p, observed=y), p


def type_level(X, g, y):
    p = pm.math.invlogit(pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4))) @ pm.Normal("w2", shape=4) + vary("a")[g])
    return pm.Bernoulli("y", p, observed=y), p


def type_classes(X, g, y):
    h = pm.math.sin(X @ pm.Normal("w1", shape=(2, 4)))
    p = pm.math.softmax(h @ pm.Normal("w2", shape=(4, 3)), axis=-1)
    return pm.Categorical("y", p=p, observed=y), p


def type_several(X, g, y):
    h = pt.switch(X @ pm.Normal("w1", shape=(2, 4)) > 0, 1.0, 0.2) * (X @ pm.Normal("w3", shape=(2, 4)))
    mu = pm.math.tanh(h) @ pm.Normal("w2", shape=(4, 3)) + X @ pm.Normal("linear", shape=(2, 3))
    return pm.Normal("y", mu, pm.HalfNormal("sigma"), observed=np.stack([y] * 3, axis=-1)), mu


def type_counts(X, g, y):
    rate = pm.math.exp(pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4))) @ pm.Normal("w2", shape=4))
    return pm.NegativeBinomial("y", mu=rate, alpha=pm.Exponential("alpha", 1), observed=y), rate


def type_embedding(X, g, y):
    points = pt.concatenate([X, pm.Normal("place", shape=(3, 2))[g]], axis=1)
    mu = pm.math.tanh(points @ pm.Normal("w1", shape=(4, 4))) @ pm.Normal("w2", shape=4)
    return pm.Laplace("y", mu, pm.HalfNormal("b"), observed=y), mu


def type_residual(X, g, y):
    h = pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4)))
    h = h + pm.math.tanh(h @ pm.Normal("w2", shape=(4, 4)))
    mu = h @ pm.Normal("w3", shape=4)
    return pm.StudentT("y", 4, mu=mu, sigma=1, observed=y), mu


TYPED = {
    type_relu_with_biases: False, type_stacked: False, type_rows: True, type_level: True, type_classes: False,
    type_several: False, type_counts: False, type_embedding: True, type_residual: False,
}  # and whether rows have groups  # fmt: skip


def build(typing, X, g, as_data=False):
    y = np.zeros(X.shape[:-1], dtype=int)
    with pm.Model() as model:
        X, g = (pm.Data("X", X), pm.Data("g", g)) if as_data else (X, g)
        pm.Deterministic("mean", typing(X, g, y)[1])
    return model


def draw(model, seed=1):
    """Six draws of its unknowns."""
    rng, shapes = np.random.default_rng(seed), model.eval_rv_shapes()
    sizes = {rv.name: (2, 3, *shapes[rv.name]) for rv in model.free_RVs}
    dims = {name: ("chain", "draw", *(f"{name}_{k}" for k in range(len(size) - 2))) for name, size in sizes.items()}
    return xr.Dataset({name: (dims[name], abs(rng.normal(size=size))) for name, size in sizes.items()})


def compute(model, draws):
    """The mean as PyTensor computes it, one draw after the other."""
    at = [[draws.isel(chain=c, draw=d) for d in range(3)] for c in range(2)]
    known = {rv.name: rv for rv in model.free_RVs}
    found = [[{rv: one[name].values for name, rv in known.items()} for one in chain] for chain in at]
    mean = model["mean"]
    return np.array(
        [[mean.eval(values, mode="FAST_COMPILE", on_unused_input="ignore") for values in chain] for chain in found]
    )


@pytest.mark.parametrize(("typing", "has_groups"), TYPED.items())
def test_it_is_the_mean_of_the_model_typed_with_the_new_points(typing, has_groups):
    X, new = (STACKS, NEW_STACKS) if typing is type_stacked else (ROWS, NEW_ROWS)
    model = build(typing, X, GROUP)
    draws = draw(model)
    expected = compute(build(typing, new, NEW_GROUP), draws)
    found = predict(model, draws, new, groups=NEW_GROUP if has_groups else None)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    by_name = {"X": new} | ({"g": NEW_GROUP} if has_groups else {})
    np.testing.assert_array_equal(predict(build(typing, X, GROUP, True), draws, by_name), found)


def test_points_without_groups_are_the_same_for_each_and_draws_may_be_of_some_groups():
    model = build(type_stacked, STACKS, None)
    draws = draw(model)
    every = predict(model, draws, np.stack([NEW_ROWS] * 3))
    np.testing.assert_allclose(predict(model, draws, NEW_ROWS), every, rtol=1e-12)
    parts = {f"{name}_z_0": [2] for name in ("w1", "b1", "w2")}
    np.testing.assert_allclose(predict(model, draws.isel(parts), NEW_ROWS), every[:, :, [2]], rtol=1e-12)


@pytest.mark.parametrize("has_mask", [False, True])
def test_rows_of_groups_in_an_axis_are_sorted_into_it(has_mask):
    parts = [STACKS[0], STACKS[1][:2], STACKS[2]] if has_mask else STACKS
    model = models.hierarchical_bnn(parts, [[0] * len(X) for X in parts], n_hidden=(4,), bias=True)
    draws, order = draw(model), [7, 0, 3, 1, 8, 2]
    found = predict(model, draws, ROWS[order], groups=GROUP[order])
    for k, row in enumerate(order):
        every = predict(model, draws, ROWS[[row]])
        np.testing.assert_allclose(found[:, :, k], every[:, :, GROUP[row], 0], rtol=1e-12)


def test_blocks_of_draws_are_joined(monkeypatch):
    model = build(type_rows, ROWS, GROUP)
    draws = draw(model)
    whole = predict(model, draws)
    monkeypatch.setattr(prediction, "BLOCK", 4)
    np.testing.assert_array_equal(predict(model, draws), whole)
    np.testing.assert_allclose(whole, compute(model, draws), rtol=1e-12)


def type_latent(X, g, y):
    """Inputs that were measured with an error."""
    true = pm.Normal("true", pm.Normal("level", shape=2), 1, shape=X.shape)
    pm.Normal("measured", true, 0.1, observed=X)
    mu = pm.math.tanh(true @ pm.Normal("w1", shape=(2, 4))) @ pm.Normal("w2", shape=4)
    return pm.Normal("y", mu, 1, observed=y), mu


def test_inputs_that_are_unknown_have_draws_or_are_replaced():
    model = build(type_latent, ROWS, None)
    draws = draw(model)
    np.testing.assert_allclose(predict(model, draws, name="y"), compute(model, draws), rtol=1e-12)
    known = draws.drop_vars("true").assign(true=(("chain", "draw", "row", "f"), np.tile(NEW_ROWS, (2, 3, 1, 1))))
    expected = compute(build(type_latent, NEW_ROWS, None), known)
    np.testing.assert_allclose(predict(model, draws, NEW_ROWS, name="y"), expected, rtol=1e-12)


def test_a_fused_model_answers_as_the_typed_one_and_with_data_of_its_own():
    model = build(type_relu_with_biases, ROWS, None, True)
    fast, draws = cloudpickle.loads(cloudpickle.dumps(fuse(model, check=False))), draw(model)
    assert not fast.observed_RVs  # a potential
    expected = predict(model, draws, NEW_ROWS)
    np.testing.assert_array_equal(predict(fast, draws, NEW_ROWS), expected)
    pm.set_data({"X": NEW_ROWS}, model=fast)
    np.testing.assert_array_equal(predict(fast, draws), expected)
    assert predict(model, draws).shape == (2, 3, len(ROWS))


def test_a_model_of_minibatches_predicts_any_points():
    X, y = pm.Minibatch(ROWS, np.zeros(len(ROWS), dtype="int32"), batch_size=2)
    with pm.Model() as model:
        p = pm.math.sigmoid(pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4))) @ pm.Normal("w2", shape=4))
        pm.Bernoulli("y", p, observed=y, total_size=len(ROWS))
    w1, w2 = RNG.normal(size=(1, 1, 2, 4)), RNG.normal(size=(1, 1, 4))
    draws = xr.Dataset({"w1": (("chain", "draw", "a", "b"), w1), "w2": (("chain", "draw", "b"), w2)})
    np.testing.assert_allclose(predict(model, draws, NEW_ROWS), expit(np.tanh(NEW_ROWS @ w1) @ w2[0, 0]), rtol=1e-12)


def test_the_axes_have_the_names_of_the_model():
    with pm.Model(coords={"shop": ["north", "south"], "unit": range(4)}) as model:
        X = pm.Data("X", STACKS[:2], dims=("shop", "visit", "feature"))
        z = pm.Normal("w2", dims=("shop", "unit"))
        mu = (pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4))) @ z[..., None])[..., 0]
        pm.Normal("y", mu, 1, observed=np.zeros((2, 5)), dims=("shop", "visit"))
    draws = draw(model).rename(w2_0="shop").assign_coords(shop=["north", "south"])
    found = predict(model, draws, NEW_STACKS[:2])
    assert found.dims == ("chain", "draw", "shop", "visit")
    assert found.shop.values.tolist() == ["north", "south"]


# --- what cannot be determined


def type_two_arrays(X, g, y):
    w = pm.Normal("w1", shape=(2, 4)), pm.Normal("w2", shape=4)
    mu = pm.math.tanh(X @ w[0]) @ w[1] + pm.math.tanh(np.cos(X) @ pm.Normal("w3", shape=(2, 4))) @ w[1]
    return pm.Normal("y", mu, 1, observed=y), mu


def type_offset(X, g, y):
    rate = np.arange(1.0, len(X) + 1) * pm.math.exp(
        pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4))) @ pm.Normal("w2", shape=4)
    )
    return pm.Poisson("y", rate, observed=y), rate


def type_row_effects(X, g, y):
    effects = pm.Normal("effects", shape=9)
    mu = effects + pm.math.tanh(X @ pm.Normal("w1", shape=(2, 4))) @ pm.Normal("w2", shape=4)
    return pm.Normal("y", mu, 1, observed=y), mu


def type_no_network(X, g, y):
    return pm.Poisson("y", pm.Gamma("rate", 1, 1), observed=y), pt.zeros(3)


MASKED = np.ma.masked_less(NEW_ROWS, 0)
SAME = ROWS[::-1]  # as many as there are: nothing that numbers of rows could give away


@pytest.mark.parametrize(
    ("typing", "arguments", "message"),
    [
        (type_relu_with_biases, {"X": np.zeros((4, 3))}, r"X has shape \(4, 3\); wanted: \(obs, 2\)"),
        (type_stacked, {"X": np.zeros((4, 5, 2))}, r"wanted: X \(3, obs, 2\) or \(obs, 2\)"),
        (type_relu_with_biases, {"X": MASKED}, "X has [1-8] masked values"),
        (type_relu_with_biases, {"X": NEW_ROWS, "groups": NEW_GROUP}, "no weights are indexed by rows"),
        (type_rows, {"X": SAME}, "X came without groups; wanted: groups"),
        (type_rows, {"X": NEW_ROWS, "groups": GROUP}, r"int64 \(9,\); wanted: an integer for each row"),
        (type_rows, {"X": NEW_ROWS, "groups": NEW_GROUP + 1}, "index 3 is out of bounds"),
        (type_rows, {"X": NEW_ROWS, "groups": -NEW_GROUP}, "groups holds -2; wanted: numbers from 0 on"),
        (type_two_arrays, {"X": SAME}, "an array .* and an array .* could be the inputs; wanted: one array"),
        (type_offset, {"X": SAME}, r"an array \(9,\), with 9 rows"),
        (type_row_effects, {"X": SAME}, "effects, with 9 rows"),
        (type_no_network, {"X": SAME}, "no network leads to it"),
        (type_rows, {"X": {"Z": SAME}}, "X is of Z; wanted: pm.Data, of X, g"),
        (type_rows, {"X": {"X": SAME}}, "and g, with 9 rows"),
        (type_rows, {"X": SAME, "groups": GROUP, "name": "q"}, "name='q'; wanted: one of .*mean"),
        (type_latent, {}, "the model observes measured, y; wanted: name="),
    ],
)
def test_what_cannot_be_determined_is_said(typing, arguments, message):
    model = build(typing, STACKS if typing is type_stacked else ROWS, GROUP, isinstance(arguments.get("X"), dict))
    with pytest.raises(ValueError, match=message):
        predict(model, draw(model), **arguments)


def test_draws_that_lack_an_unknown_are_named():
    model = build(type_rows, ROWS, GROUP)
    with pytest.raises(ValueError, match="draws lack b2_mu; wanted"):
        predict(model, draw(model).drop_vars("b2_mu"))


def test_draws_that_were_made_with_other_data_are_noticed():
    with pm.Model() as model:
        shift = pm.Data("shift", np.zeros(4))
        w2 = pm.Deterministic("w2", shift + pm.Normal("z", shape=4))
        pm.Normal("y", pm.math.tanh(ROWS @ pm.Normal("w1", shape=(2, 4))) @ w2, 1, observed=np.zeros(9))
    draws = draw(model)
    draws["w2"] = 3 + draws["z"]
    with pytest.raises(ValueError, match="w2 is not what the model computes of these draws now"):
        predict(model, draws, NEW_ROWS)
    pm.set_data({"shift": np.full(4, 3.0)}, model=model)
    expected = np.tanh(NEW_ROWS @ draws["w1"].values) @ draws["w2"].values[..., None]
    np.testing.assert_allclose(predict(model, draws, NEW_ROWS), expected[..., 0], rtol=1e-12)


# --- plain weights

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
    np.testing.assert_allclose(prediction.predict_probability(weights, X, activation="tanh"), expected, rtol=1e-12)


def test_chains_are_joined_one_after_the_other():
    values = np.arange(24.0).reshape(2, 3, 4)
    posterior = xr.Dataset(dict.fromkeys(prediction.WEIGHTS, (("chain", "draw", "hidden_2"), values)))
    found = prediction.flatten_chains(posterior)
    assert set(found) == set(prediction.WEIGHTS)
    np.testing.assert_array_equal(found["w3"], np.concatenate(values))


LONG = [0, 99, 100, 199, 200, 249]  # draws on either side of two borders between blocks


def test_each_of_many_draws_is_predicted_as_if_it_were_alone():
    weights = draw_weights(250)
    found = prediction.predict_probability(weights, X, activation="tanh")
    for i in LONG:
        alone = prediction.predict_probability(
            {name: value[i : i + 1] for name, value in weights.items()}, X, activation="tanh"
        )
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
    np.testing.assert_allclose(prediction.predict_classes(weights, IMAGES, activation="tanh"), expected, rtol=1e-10)


def test_huge_weights_give_certainty_without_a_warning():
    with warnings.catch_warnings(action="error"):
        p = prediction.predict_probability(draw_weights(scale=1e4), X[:12], activation="tanh")
        classes = prediction.predict_classes(draw_digit_weights(scale=1e4), IMAGES, activation="tanh")
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
    found = prediction.predict_groups(weights, X, activation="tanh")
    for i in LONG:
        alone = prediction.predict_groups({name: w[:, i : i + 1] for name, w in weights.items()}, X, activation="tanh")
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
    found = prediction.predict_groups(weights, POINTS[part], activation="tanh")
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
        ("probability", {"w1": FLAT["w1"], "w3": FLAT["w3"]}, X, "w2 is lacking; wanted: weights of each layer"),
        ("probability", FLAT, X[0], r"X has shape \(2,\); wanted: .* or \(obs, 2\)"),
        ("probability", FLAT | {"w2": np.ones((1, 5, 4))}, X, r"w2 has shape .*; wanted: .*, to fit w1"),
        ("probability", FLAT, MASKED, "X has 20 masked values"),
        ("classes", FLAT | {"b2": np.ones((3, 4))}, IMAGES, "b1, b3 is lacking; wanted: .* biases of each or none"),
        ("classes", DIGITS, np.zeros((2, 784)), "784 pixels; wanted: 64"),
        ("classes", DIGITS, 16 * IMAGES, "X runs from 0 to 16"),
        ("classes", DIGITS | {"b2": np.ones((1, 4))}, IMAGES, r"b2 has shape \(1, 4\); wanted: \(3, 4\), to fit w2"),
        ("groups", make_weights(), np.zeros((7, 3)), r"wanted: \(3, obs, 2\) or \(obs, 2\)"),
        ("groups", make_weights(), MASKED, "X has 20 masked values"),
        ("groups", make_weights(b2=None), X, "b2 is lacking; wanted: .* biases of each or none"),
        ("groups", make_weights(w2=(2, 6, 1, 4)), X, r"\(2, 6, 1, 4\); wanted: \(2, 6, 3, 4\), to fit w1"),
        ("groups", make_weights(b1=(2, 6, 1, 4)), X, r"b1 has shape \(2, 6, 1, 4\)"),
        ("groups", make_weights(w1=(6, 3, 2, 4)), X, r"wanted: \(chain, draw, group, in, out\)"),
    ],
)
def test_weights_and_points_that_do_not_fit_are_named(function, weights, points, message):
    with pytest.raises(ValueError, match=message):
        getattr(prediction, f"predict_{function}")(weights, points, activation="tanh")


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
