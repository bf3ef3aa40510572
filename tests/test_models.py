"""The models: their densities against SciPy, their symmetries, their data; and that fusing them changes no number."""

import jax
import numpy as np
import pymc as pm
import pytensor
import pytest
from bnn import data, models
from bnn.fuse import fuse
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.scipy.stats import norm as jax_norm
from scipy.special import expit, log_softmax
from scipy.stats import bernoulli, halfcauchy, halfnorm, multivariate_normal, norm
from scipy.stats import t as student_t

N = 20
MOONS = data.flat_moons(seed=0, n_obs=2 * N)
X, Y = MOONS.X_train, MOONS.y_train


def draw_weights(seed, n_hidden=(5, 5), scale=1.0):
    """Weights of one network, from the prior."""
    rng = np.random.default_rng(seed)
    shapes = {"w1": (2, n_hidden[0]), "w2": n_hidden, "w3": n_hidden[1:]}
    return {name: rng.normal(0, scale, size=shape) for name, shape in shapes.items()}


def compute_probability(weights, points, activate=np.tanh):
    """P(y = 1), from the definition of the network."""
    h1 = activate(np.einsum("of,fh->oh", points, weights["w1"]))
    h2 = activate(np.einsum("oh,hk->ok", h1, weights["w2"]))
    return expit(np.einsum("ok,k->o", h2, weights["w3"]))


def compute_logp(weights, points, labels, prior_sd=1.0, factor=1.0):
    """Log density of weights and labels, by SciPy."""
    prior = sum(norm.logpdf(w, 0, prior_sd).sum() for w in weights.values())
    return prior + factor * bernoulli.logpmf(labels, compute_probability(weights, points)).sum()


def compile_logp(model):
    # FAST_COMPILE: these functions are called a few times only
    return model.compile_logp(mode="FAST_COMPILE")


def predict(model, weights):
    """Class probabilities in the model's own graph."""
    return model["p"].eval({model[name]: value for name, value in weights.items()}, mode="FAST_COMPILE")


@pytest.fixture(scope="module")
def model():
    return models.flat_bnn(X, Y)


@pytest.fixture(scope="module")
def logp(model):
    return compile_logp(model)


# --- density


@pytest.mark.parametrize("seed", range(5))
def test_the_density_is_that_of_scipy(logp, seed):
    weights = draw_weights(seed)
    assert logp(weights) == pytest.approx(compute_logp(weights, X, Y), rel=1e-10)


def test_widths_and_prior_are_as_asked():
    weights = draw_weights(0, n_hidden=(3, 4))
    model = models.flat_bnn(X, Y, n_hidden=(3, 4), prior_sd=2.5)
    # PyTensor takes the logarithm of the constant 2.5 in single precision
    assert compile_logp(model)(weights) == pytest.approx(compute_logp(weights, X, Y, prior_sd=2.5), rel=1e-7)


def test_the_likelihood_is_scaled_to_the_whole_data_set():
    weights = draw_weights(0)
    found = compile_logp(models.flat_bnn(X, Y, total_size=50 * N))(weights)
    assert found == pytest.approx(compute_logp(weights, X, Y, factor=50), rel=1e-10)


def test_a_certain_miss_has_a_finite_density(model):
    weights = draw_weights(0)
    weights["w3"] = np.full(5, 300.0)
    assert np.isfinite(model.compile_logp()(weights))  # as samplers compile it: log and sigmoid are one function


def test_variables_have_names_and_named_dimensions(model):
    assert {rv.name for rv in model.free_RVs} == {"w1", "w2", "w3"}
    assert model.named_vars_to_dims["w2"] == ("hidden_1", "hidden_2")
    assert {name: len(values) for name, values in model.coords.items() if values} == {
        "feature": 2,
        "hidden_1": 5,
        "hidden_2": 5,
    }


# --- symmetry

ORDERS, SIGNS = st.permutations(range(5)), st.lists(st.sampled_from([-1.0, 1.0]), min_size=5, max_size=5)


@settings(deadline=None)
@given(seed=st.integers(0, 99), order_1=ORDERS, order_2=ORDERS, sign_1=SIGNS, sign_2=SIGNS)
def test_relabelling_hidden_units_does_not_change_the_density(logp, seed, order_1, order_2, sign_1, sign_2):
    weights = draw_weights(seed)
    sign_1, sign_2 = np.array(sign_1), np.array(sign_2)
    relabelled = {
        "w1": (weights["w1"] * sign_1)[:, order_1],
        "w2": (sign_1[:, None] * weights["w2"] * sign_2)[np.ix_(order_1, order_2)],
        "w3": (weights["w3"] * sign_2)[order_2],
    }
    assert logp(relabelled) == pytest.approx(logp(weights), rel=1e-10)


def test_another_network_has_another_density(logp):
    weights = draw_weights(0)
    turned = weights | {"w3": -weights["w3"]}  # a flip in one layer only is no symmetry
    assert abs(logp(turned) - logp(weights)) > 0.1


def test_points_opposite_the_centre_have_opposite_classes():
    weights = draw_weights(3)
    ahead, behind = (predict(models.flat_bnn(points, Y), weights) for points in (X, -X))
    np.testing.assert_allclose(behind, 1 - ahead, atol=1e-12)


# --- data


def test_set_data_moves_the_network_to_other_points():
    model, points, weights = models.flat_bnn(X, Y), data.grid(7), draw_weights(1)
    with model:
        pm.set_data({"X": points})
        weighted = pm.do(model, weights)
        labels = pm.draw(weighted["y"], random_seed=0, mode="FAST_COMPILE")
    np.testing.assert_allclose(predict(model, weights), compute_probability(weights, points), rtol=1e-12)
    assert labels.shape == (49,)
    assert np.isin(labels, (0, 1)).all()


@pytest.mark.parametrize("convert", [list, np.ndarray.tolist, lambda a: a.astype("float32")])
def test_points_may_come_as_anything_that_becomes_an_array(convert):
    weights = draw_weights(0)
    np.testing.assert_allclose(
        predict(models.flat_bnn(convert(X), Y), weights), compute_probability(weights, X), rtol=1e-6
    )


def test_a_minibatch_estimates_the_density_of_all_points():
    batch_X, batch_y = pm.Minibatch(X, Y, batch_size=5)
    model = models.flat_bnn(batch_X, batch_y, total_size=N)
    function = model.compile_fn(model.logp(), random_seed=1, mode="FAST_COMPILE")
    weights = draw_weights(2)
    found = np.array([function(weights) for _ in range(400)])
    expected = compute_logp(weights, X, Y)
    assert found.std() > 0
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found))


def test_a_minibatch_keeps_points_and_labels_together():
    points = np.column_stack([np.arange(N), np.arange(N)]).astype(float)
    batch = pm.Minibatch(points, (np.arange(N) % 2).astype("int32"), batch_size=5)
    model = models.flat_bnn(*batch, total_size=N)
    rows, labels = pytensor.function([], list(batch), mode="FAST_COMPILE")()
    assert (rows[:, 0] % 2 == labels).all()
    assert model["y"].type.shape in [(5,), (None,)]


# --- what is refused

BATCH = pm.Minibatch(np.zeros((2, 10, 2)), batch_size=1)
LABELS = pm.Minibatch(np.zeros(10, dtype="int64"), batch_size=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: models.flat_bnn(np.where(X > 0, np.nan, X), Y), r"X holds \d+ values that are NaN"),
        (lambda: models.flat_bnn(X, Y + 1), r"y holds the labels \[2\]; wanted"),
        (lambda: models.flat_bnn(X, Y.astype(str)), r"y holds the labels \['.'.*\]; wanted"),
        (lambda: models.flat_bnn(X, Y[:-1]), r"y has shape \(19,\); wanted: one label for each point of X, \(20,\)"),
        (lambda: models.flat_bnn(X[:0], Y[:0]), r"X has shape \(0, 2\): an empty group"),
        (lambda: models.flat_bnn(X[None], Y[None]), r"X has 3 dimensions; wanted: \(obs, feature\)"),
        (lambda: models.flat_bnn(BATCH, LABELS), r"y has type int64; wanted: int32 in a minibatch"),
        (lambda: models.flat_bnn(BATCH, Y), r"X has 3 dimensions; wanted: \(obs, feature\)"),
        (lambda: models.flat_bnn(X, Y, n_hidden=5), r"n_hidden=5; wanted: two numbers of units"),
        (lambda: models.flat_bnn(X, Y, n_hidden=(5,)), r"n_hidden=\(5,\); wanted: two numbers of units"),
        (lambda: models.flat_bnn(X, Y, n_hidden=(5, 0)), r"n_hidden=\(5, 0\); wanted: .* each at least 1"),
        (lambda: models.flat_bnn(X, Y, n_hidden=(5, 2.5)), r"n_hidden=\(5, 2.5\); wanted: two numbers of units"),
        (lambda: models.flat_bnn(X, Y, prior_sd=0), r"prior_sd=0; wanted: a standard deviation above 0"),
        (lambda: models.flat_bnn(X, Y, prior_sd=-1), r"prior_sd=-1; wanted: a standard deviation above 0"),
        (lambda: models.flat_bnn(X, Y, prior_sd=np.nan), r"prior_sd=nan; wanted: a standard deviation above 0"),
        (lambda: models.flat_bnn(X, Y, prior_sd="1"), r"prior_sd='1'; wanted: a standard deviation above 0"),
        (lambda: models.flat_bnn(X, Y, total_size=-3), r"total_size=-3; wanted: the points of the whole data set, at"),
        (lambda: models.flat_bnn(X, Y, total_size=0), r"total_size=0; wanted: the points of the whole data set, at"),
        (lambda: models.flat_bnn(X, Y, total_size=2.5), r"total_size=2.5; wanted: the points of the whole data set"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- ten classes

RNG = np.random.default_rng(0)
IMAGES, CLASSES = RNG.integers(0, 17, size=(N, 16)) / 16, RNG.permutation(np.arange(N) % 10).astype("int32")


def draw_digit_weights(seed, n_hidden=(5, 4)):
    """Weights and biases of a network for images of 16 pixels, from the prior."""
    rng = np.random.default_rng(seed)
    sizes = [16, *n_hidden, 10]
    shapes = {f"w{k}": (sizes[k - 1], sizes[k]) for k in (1, 2, 3)} | {f"b{k}": (sizes[k],) for k in (1, 2, 3)}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def compute_digit_logp(weights, images, labels, prior_sd=1.0, factor=1.0):
    """Log density of weights and classes, image by image, by SciPy."""
    total = sum(norm.logpdf(w, 0, prior_sd).sum() for w in weights.values())
    for image, label in zip(images, labels, strict=True):
        h1 = np.tanh(np.einsum("p,ph->h", image, weights["w1"]) + weights["b1"])
        h2 = np.tanh(np.einsum("h,hk->k", h1, weights["w2"]) + weights["b2"])
        total += factor * log_softmax(np.einsum("k,kc->c", h2, weights["w3"]) + weights["b3"])[label]
    return total


@pytest.mark.parametrize("seed", range(3))
def test_the_density_of_classes_is_that_of_scipy(seed):
    weights = draw_digit_weights(seed)
    model = models.digit_bnn(IMAGES, CLASSES, n_hidden=(5, 4))
    assert compile_logp(model)(weights) == pytest.approx(compute_digit_logp(weights, IMAGES, CLASSES), rel=1e-10)


def test_widths_and_prior_of_ten_classes_are_as_asked():
    weights = draw_digit_weights(0, n_hidden=(2, 3))
    model = models.digit_bnn(IMAGES, CLASSES, n_hidden=(2, 3), prior_sd=2.5)
    # PyTensor takes the logarithm of the constant 2.5 in single precision
    expected = compute_digit_logp(weights, IMAGES, CLASSES, prior_sd=2.5)
    assert compile_logp(model)(weights) == pytest.approx(expected, rel=1e-7)


def test_a_network_for_ten_classes_has_named_variables_and_dimensions():
    model = models.digit_bnn(IMAGES, CLASSES)
    assert {rv.name for rv in model.free_RVs} == {"w1", "b1", "w2", "b2", "w3", "b3"}
    assert model.named_vars_to_dims["w3"] == ("hidden_2", "class")
    assert model.named_vars_to_dims["b1"] == ("hidden_1",)
    assert {name: len(values) for name, values in model.coords.items() if values} == {
        "pixel": 16, "hidden_1": 64, "hidden_2": 64, "class": 10,
    }  # fmt: skip


def test_square_images_are_those_of_flat_ones():
    weights = draw_digit_weights(1)
    flat, square = (
        compile_logp(models.digit_bnn(X, CLASSES, n_hidden=(5, 4)))(weights)
        for X in (IMAGES, IMAGES.reshape(N, 4, 4).tolist())
    )
    assert square == flat


@settings(deadline=None, max_examples=20, derandomize=True)
@given(order=st.permutations(range(10)))
def test_relabelling_classes_with_their_weights_does_not_change_the_density(digit_logp, order):
    function, labels = digit_logp
    weights = draw_digit_weights(2)
    labels.set_value(CLASSES)
    expected = function(weights)
    labels.set_value(np.argsort(order)[CLASSES].astype("int32"))
    relabelled = weights | {"w3": weights["w3"][:, order], "b3": weights["b3"][order]}
    assert function(relabelled) == pytest.approx(expected, rel=1e-10)


@pytest.fixture(scope="module")
def digit_logp():
    """The density for a batch that can be exchanged, as a function of the weights, and the batch's labels."""
    X, y = pytensor.shared(IMAGES, shape=(N, 16)), pytensor.shared(CLASSES, shape=(N,))
    model = models.digit_bnn(X * 1.0, y * np.int32(1), n_hidden=(5, 4), total_size=N)
    return compile_logp(model), y


def test_batches_of_a_partition_give_the_density_of_all_images_on_average():
    weights = draw_digit_weights(3)
    found = [
        compile_logp(models.digit_bnn(IMAGES[part], CLASSES[part], n_hidden=(5, 4), total_size=N))(weights)
        for part in np.random.default_rng(1).permutation(N).reshape(4, 5)
    ]
    assert np.std(found) > 0
    assert np.mean(found) == pytest.approx(compute_digit_logp(weights, IMAGES, CLASSES), rel=1e-10)


def test_a_minibatch_of_images_estimates_the_density_of_all():
    batch = pm.Minibatch(IMAGES, CLASSES, batch_size=5)
    model = models.digit_bnn(*batch, n_hidden=(5, 4), total_size=N)
    function = model.compile_fn(model.logp(), random_seed=1, mode="FAST_COMPILE")
    weights = draw_digit_weights(2)
    found = np.array([function(weights) for _ in range(400)])
    assert found.std() > 0
    assert abs(found.mean() - compute_digit_logp(weights, IMAGES, CLASSES)) < 4 * found.std() / np.sqrt(len(found))


def make_batch(X=IMAGES, y=CLASSES):
    return pm.Minibatch(X, y, batch_size=5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: models.digit_bnn(IMAGES, CLASSES + 1), r"y holds the labels \[10\]; wanted: the numbers 0 to 9"),
        (lambda: models.digit_bnn(IMAGES, CLASSES.astype(str)), r"y holds the labels \['.*'\]; wanted"),
        (lambda: models.digit_bnn(IMAGES, CLASSES[1:]), r"y has shape \(19,\); wanted: one label for each of 20 im"),
        (lambda: models.digit_bnn(16 * IMAGES, CLASSES), r"X runs from 0 to 16; wanted: 0 \(paper\) to 1 \(ink\)"),
        (lambda: models.digit_bnn(IMAGES * np.nan, CLASSES), r"X holds 320 values that are NaN; wanted"),
        (lambda: models.digit_bnn(IMAGES[:0], CLASSES[:0]), r"X is an empty batch, shape \(0, 16\)"),
        (lambda: models.digit_bnn(IMAGES[:, :0], CLASSES), r"X has shape \(20, 0\); wanted: .* at least one pixel"),
        (lambda: models.digit_bnn(IMAGES[0], CLASSES), r"X has shape \(16,\); wanted: \(obs, pixel\)"),
        (lambda: models.digit_bnn([[0.0], [0.0, 1.0]], [0, 1]), r"X is no array of images: .*; wanted: numbers"),
        (lambda: models.digit_bnn(IMAGES, CLASSES, n_hidden=5), r"n_hidden=5; wanted: two numbers of units"),
        (lambda: models.digit_bnn(IMAGES, CLASSES, n_hidden=(5, 0)), r"n_hidden=\(5, 0\); wanted: .* each at least 1"),
        (lambda: models.digit_bnn(IMAGES, CLASSES, n_hidden=(5, 2.5)), r"n_hidden=\(5, 2.5\); wanted: two numbers"),
        (lambda: models.digit_bnn(IMAGES, CLASSES, prior_sd=0), r"prior_sd=0; wanted: a standard deviation above 0"),
        (lambda: models.digit_bnn(IMAGES, CLASSES, prior_sd=np.nan), r"prior_sd=nan; wanted: a standard deviation"),
        (lambda: models.digit_bnn(IMAGES, CLASSES, total_size=-3), r"total_size=-3; wanted: the points of the whole"),
        (lambda: models.digit_bnn(*make_batch()), r"total_size=None with a minibatch; wanted: the number of images"),
        (
            lambda: models.digit_bnn(*make_batch(y=CLASSES.astype("int64")), total_size=N),
            r"y has type int64; wanted: int32 in a minibatch",
        ),
        (
            lambda: models.digit_bnn(make_batch()[0], CLASSES.tolist(), total_size=N),
            r"y has type <class 'list'>; wanted: int32 in a minibatch",
        ),
        (
            lambda: models.digit_bnn(*make_batch(IMAGES.reshape(N, 4, 4)), total_size=N),
            r"X has 3 dimensions; wanted: \(obs, pixel\) in a minibatch",
        ),
    ],
)
def test_a_wrong_argument_of_ten_classes_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the hierarchical network


GROUPED = data.rotated_moons(seed=0, n_groups=3, n_train=8)


def draw_hierarchical(seed, n_groups=3, n_hidden=(3, 4)):
    """Parameters of a hierarchical network, from the prior."""
    rng = np.random.default_rng(seed)
    shapes = [(2, n_hidden[0]), n_hidden, n_hidden[1:]]
    point = {}
    for k, shape in enumerate(shapes, 1):
        point |= {f"mu{k}": rng.normal(size=shape), f"sd{k}": abs(rng.normal())}
        point |= {f"z{k}": rng.normal(size=(n_groups, *shape))}
    return point


def compute_hierarchical_logp(point, X, y, scales=(1, 1, 1)):
    """Log density of parameters (log sd instead of sd) and labels, category by category, by SciPy."""
    total = 0.0
    for k, scale in enumerate(scales, 1):
        sd = point[f"sd{k}"]
        total += norm.logpdf(point[f"mu{k}"]).sum() + norm.logpdf(point[f"z{k}"]).sum()
        total += halfnorm.logpdf(sd, scale=scale) + np.log(sd)  # the sampler walks in log sd
    for g, (points, labels) in enumerate(zip(X, y, strict=True)):
        weights = {f"w{k}": point[f"mu{k}"] + point[f"sd{k}"] * point[f"z{k}"][g] for k in (1, 2, 3)}
        total += bernoulli.logpmf(labels, compute_probability(weights, points)).sum()
    return total


def transform(point):
    return {(f"{name}_log__" if name.startswith("sd") else name): np.log(value) if name.startswith("sd") else value
            for name, value in point.items()}  # fmt: skip


@pytest.mark.parametrize("scales", [(1, 1, 1), (1, 2, 5)])
def test_the_hierarchical_density_is_that_of_scipy(scales):
    X, y = GROUPED.X_train, GROUPED.y_train
    model = models.hierarchical_bnn(X, y, n_hidden=(3, 4), sd_scale=scales)
    point = draw_hierarchical(0)
    assert compile_logp(model)(transform(point)) == pytest.approx(
        compute_hierarchical_logp(point, X, y, scales), rel=1e-7
    )


def cut_groups(*n_obs):
    """The first so many points of each group, and their labels."""
    return (
        [points[:n] for points, n in zip(GROUPED.X_train, n_obs, strict=True)],
        [labels[:n] for labels, n in zip(GROUPED.y_train, n_obs, strict=True)],
    )


@pytest.fixture(scope="module")
def unequal():
    """A model of groups of 8, 1 and 5 points."""
    return models.hierarchical_bnn(*cut_groups(8, 1, 5), n_hidden=(3, 4))


def test_groups_of_unequal_length_count_each_point_once(unequal):
    point = draw_hierarchical(1)
    expected = compute_hierarchical_logp(point, *cut_groups(8, 1, 5))
    assert compile_logp(unequal)(transform(point)) == pytest.approx(expected, rel=1e-9)


def test_groups_of_equal_length_need_no_numbers_of_points(unequal):
    equal = models.hierarchical_bnn(*cut_groups(5, 5, 5), n_hidden=(3, 4))
    assert [variable.name for variable in equal.data_vars] == ["X", "labels"]
    assert [variable.name for variable in unequal.data_vars] == ["X", "labels", "n_obs"]


@pytest.mark.parametrize("n_obs", [(2, 8, 3), (3, 3, 3)])
def test_the_numbers_of_points_can_be_exchanged(n_obs):
    model, point = models.hierarchical_bnn(*cut_groups(8, 1, 5), n_hidden=(3, 4)), draw_hierarchical(1)
    with model:
        pm.set_data({"X": GROUPED.X_train, "labels": GROUPED.y_train, "n_obs": list(n_obs)})
    expected = compute_hierarchical_logp(point, *cut_groups(*n_obs))
    assert compile_logp(model)(transform(point)) == pytest.approx(expected, rel=1e-9)


def test_labels_of_unequal_groups_are_one_row_of_the_points_that_count(unequal):
    drawn = pm.draw(unequal["y"], 20, random_seed=0, mode="FAST_COMPILE")
    assert drawn.shape == (20, 8 + 1 + 5)
    assert set(np.unique(drawn)) == {0, 1}


def compute_log_prior(model, name):
    """Log prior density of one variable at ones, all else left out."""
    return model.compile_logp(vars=[model[name]], mode="FAST_COMPILE")(
        {key: np.ones_like(value) for key, value in model.initial_point().items()}
    )


@pytest.mark.parametrize("name", ["bias_mu2", "bias_z2"])
def test_means_and_offsets_of_biases_are_standard_normal(name):
    model = models.hierarchical_bnn(GROUPED.X_train, GROUPED.y_train, n_hidden=(3, 4), bias=True)
    size = {"bias_mu2": 4, "bias_z2": 3 * 4}[name]
    assert compute_log_prior(model, name) == pytest.approx(size * norm.logpdf(1), rel=1e-9)


@pytest.mark.parametrize("sd_per", ["layer", "connection"])
def test_the_hierarchical_density_and_its_gradient_are_those_of_jax(sd_per):
    """Written in JAX from the formulas of the page, with nothing of ours or of PyMC's."""
    X, y = GROUPED.X_train, GROUPED.y_train
    model = models.hierarchical_bnn(X, y, n_hidden=(3, 4), sd_scale=2.0, sd_per=sd_per)
    rng = np.random.default_rng(3)
    point = {name: rng.normal(size=np.shape(value)) for name, value in model.initial_point().items()}

    def logp(point):
        total, h = 0.0, jax.numpy.asarray(X)
        for k in (1, 2, 3):
            mu, log_sd, z = point[f"mu{k}"], point[f"sd{k}_log__"], point[f"z{k}"]
            sd = jax.numpy.exp(log_sd)
            total += jax_norm.logpdf(mu).sum() + jax_norm.logpdf(z).sum()
            total += (jax.numpy.log(2.0) + jax_norm.logpdf(sd, scale=2.0) + log_sd).sum()
            w = mu + sd * z
            h = jax.numpy.einsum("gof,gfh->goh", h, w) if k < 3 else jax.numpy.einsum("goh,gh->go", h, w)
            h = jax.numpy.tanh(h) if k < 3 else h
        return total + jax.scipy.stats.bernoulli.logpmf(y, jax.nn.sigmoid(h)).sum()

    with jax.enable_x64(True):
        value, slopes = jax.value_and_grad(logp)({name: jax.numpy.asarray(v) for name, v in point.items()})
    assert compile_logp(model)(point) == pytest.approx(float(value), rel=1e-6)
    found = model.compile_dlogp(mode="FAST_COMPILE")(point)
    expected = np.concatenate([np.ravel(slopes[value.name]) for value in model.value_vars])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_one_sd_for_each_connection_has_a_layers_shape():
    model = models.hierarchical_bnn(GROUPED.X_train, GROUPED.y_train, n_hidden=(3, 4), sd_per="connection")
    assert model.named_vars_to_dims["sd2"] == ("hidden_1", "hidden_2")
    assert model["sd3"].eval(mode="FAST_COMPILE").shape == (4,)


# --- unpooled networks


SDS = (0.5, 1.5, 2.0)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_unpooled_density_is_that_of_scipy(activation):
    activate = {"tanh": np.tanh, "relu": lambda z: np.where(z > 0, z, 0)}[activation]
    model = models.unpooled_bnn(X, Y, n_hidden=(3, 4), prior_sd=SDS, activation=activation)
    weights = draw_weights(0, n_hidden=(3, 4))
    expected = sum(norm.logpdf(weights[f"w{k}"], 0, sd).sum() for k, sd in enumerate(SDS, 1))
    expected += bernoulli.logpmf(Y, compute_probability(weights, X, activate)).sum()
    assert compile_logp(model)(weights) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("name", "size", "sd"), [("b1", 3, 0.5), ("b2", 4, 1.5), ("b3", 1, 2.0)])
def test_the_biases_of_an_unpooled_network_have_the_prior_of_their_layer(name, size, sd):
    model = models.unpooled_bnn(X, Y, n_hidden=(3, 4), prior_sd=SDS, bias=True)
    assert compute_log_prior(model, name) == pytest.approx(size * norm.logpdf(1, 0, sd), rel=1e-9)


def test_the_scales_of_an_unpooled_network_can_be_exchanged():
    model = models.unpooled_bnn(X, Y, n_hidden=(3, 4))
    point = {name: np.ones_like(value) for name, value in model.initial_point().items()}
    before = compile_logp(model)(point)
    with model:
        pm.set_data({"prior_sd": [2.0, 2.0, 2.0]})
    n_weights = sum(value.size for value in point.values())
    moved = norm.logpdf(1, 0, 2) - norm.logpdf(1, 0, 1)
    assert compile_logp(model)(point) - before == pytest.approx(n_weights * moved, rel=1e-9)


def test_the_articles_network_has_763_parameters():
    moons = data.legacy_rotated_moons()
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(5, 5))
    assert sum(value.size for value in model.initial_point().values()) == 763


def test_the_hierarchical_graph_can_be_simulated_from():
    with models.hierarchical_bnn(GROUPED.X_train, GROUPED.y_train, n_hidden=(3, 4)):
        drawn = pm.sample_prior_predictive(20, random_seed=0, compile_kwargs={"mode": "FAST_COMPILE"})
    assert drawn["prior_predictive"]["y"].shape == (1, 20, 3, 8)
    assert set(np.unique(drawn["prior_predictive"]["y"])) == {0, 1}


def test_group_sds_may_have_a_half_cauchy_prior():
    arguments = {"X": GROUPED.X_train, "y": GROUPED.y_train, "n_hidden": (3, 4), "sd_scale": 2.0}
    normal, cauchy = (models.hierarchical_bnn(**arguments, sd_prior=name) for name in models.SD_PRIORS)
    point = normal.initial_point(random_seed=0) | {"sd2_log__": np.log(3.0)}
    found = compile_logp(cauchy)(point) - compile_logp(normal)(point)
    sds = np.array([np.exp(point[f"sd{k}_log__"]) for k in (1, 2, 3)])
    expected = (halfcauchy(scale=2).logpdf(sds) - halfnorm(scale=2).logpdf(sds)).sum()
    assert found == pytest.approx(expected, rel=1e-8)


def test_groups_are_filled_up_with_points_that_do_not_count():
    X, y, n_obs = models.stack_groups([np.ones((3, 2)), np.ones((1, 2))], [[0, 1, 1], [1]])
    np.testing.assert_array_equal(n_obs, [3, 1])
    np.testing.assert_array_equal(X[1], [[1, 1], [0, 0], [0, 0]])
    np.testing.assert_array_equal(y, [[0, 1, 1], [1, 0, 0]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": GROUPED.X_train[0]}, r"X has shape \(8, 2\); wanted: \(group, obs, feature\)"),
        ({"y": GROUPED.y_train[:2]}, "X has 3 groups, y has 2; wanted: labels for each group"),
        ({"X": [], "y": []}, "X has no groups"),
        ({"X": [np.ones((2, 2)), np.ones((2, 3))], "y": [[0, 1], [0, 1]]}, r"groups have \[2, 3\] features"),
        ({"X": [np.ones((2, 2)), np.ones((0, 2))], "y": [[0, 1], []]}, "an empty group"),
        ({"y": GROUPED.y_train + 1}, r"y\[0\] holds the labels"),
        ({"n_hidden": (3, 0)}, r"n_hidden=\(3, 0\); wanted: numbers of units"),
        ({"n_hidden": 5}, "n_hidden=5; wanted: numbers of units"),
        ({"sd_scale": (1, 2)}, r"sd_scale=\(1, 2\); wanted: a scale above 0, or 3"),
        ({"sd_scale": 0}, "sd_scale=0; wanted: a scale above 0"),
        ({"sd_scale": "1"}, "sd_scale='1'; wanted: a scale above 0"),
        ({"sd_prior": "gamma"}, "sd_prior='gamma'; wanted: one of halfnormal, halfcauchy"),
        ({"sd_per": "unit"}, "sd_per='unit', bias=False; wanted: 'layer', or 'connection' without biases"),
        ({"sd_per": "connection", "bias": True}, "sd_per='connection', bias=True; wanted"),
        ({"activation": "sine"}, "activation='sine'; wanted: one of tanh, relu"),
    ],
)
def test_a_wrong_argument_of_the_hierarchical_network_is_named(changes, message):
    arguments = {"X": GROUPED.X_train, "y": GROUPED.y_train, "n_hidden": (3, 4)} | changes
    with pytest.raises(ValueError, match=message):
        models.hierarchical_bnn(**arguments)


@pytest.mark.parametrize("prior_sd", [0, (1, 2), (1, 1, -1)])
def test_a_wrong_scale_of_an_unpooled_network_is_named(prior_sd):
    with pytest.raises(ValueError, match=r"prior_sd=.*; wanted: a scale above 0, or 3, one for each layer"):
        models.unpooled_bnn(X, Y, n_hidden=(3, 4), prior_sd=prior_sd)


def test_an_unpooled_network_is_that_of_one_category():
    with pytest.raises(ValueError, match=r"X has 3 dimensions; wanted: \(obs, feature\), one category"):
        models.unpooled_bnn(GROUPED.X_train, GROUPED.y_train)


# --- the informed network


def test_the_informed_density_is_that_of_a_multivariate_normal():
    rng = np.random.default_rng(0)
    mean, factor = rng.normal(size=22), np.tril(rng.normal(size=(22, 22)), -1) + np.diag(1 + rng.random(22))
    model = models.informed_bnn(X, Y, mean=mean, cholesky=factor, n_hidden=(3, 4))
    z = rng.normal(size=22)
    w = mean + factor @ z
    weights = {"w1": w[:6].reshape(2, 3), "w2": w[6:18].reshape(3, 4), "w3": w[18:]}
    # a change of variables from w to z multiplies the density by the factor's determinant
    prior = multivariate_normal(mean, factor @ factor.T).logpdf(w) + np.log(np.diag(factor)).sum()
    expected = prior + bernoulli.logpmf(Y, compute_probability(weights, X)).sum()
    assert compile_logp(model)({"z": z}) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(model["w2"].eval({model["z"]: z}, mode="FAST_COMPILE"), weights["w2"])


@pytest.mark.parametrize("nu", [3, 8.5])
def test_the_student_prior_has_the_same_covariance_and_heavier_tails(nu):
    rng = np.random.default_rng(0)
    mean, factor, z = rng.normal(size=22), np.eye(22) + np.tril(rng.normal(size=(22, 22)), -1), rng.normal(size=22)
    model = models.informed_bnn(X, Y, mean=mean, cholesky=factor, nu=nu, n_hidden=(3, 4))
    flat = mean + factor @ z
    weights = {"w1": flat[:6].reshape(2, 3), "w2": flat[6:18].reshape(3, 4), "w3": flat[18:]}
    prior = student_t(nu, scale=np.sqrt((nu - 2) / nu))
    expected = prior.logpdf(z).sum() + bernoulli.logpmf(Y, compute_probability(weights, X)).sum()
    assert compile_logp(model)({"z": z}) == pytest.approx(expected, rel=1e-6)
    assert prior.std() == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nu": 2}, "nu=2; wanted: above 2"),
        ({"mean": np.zeros(3)}, r"mean has shape \(3,\); wanted: \(22,\)"),
        ({"cholesky": np.eye(3)}, r"cholesky has shape \(3, 3\); wanted: \(22, 22\)"),
        ({"cholesky": np.ones((22, 22))}, "cholesky is not lower triangular"),
        ({"cholesky": np.zeros((22, 22))}, "cholesky is not lower triangular with a positive diagonal"),
        ({"mean": np.full(22, np.nan)}, "holds NaN or infinite numbers"),
        ({"mean": np.ma.masked_equal(np.zeros(22), 0)}, "mean or cholesky holds masked values; wanted: numbers"),
        ({"X": GROUPED.X_train, "y": GROUPED.y_train}, r"X has 3 dimensions; wanted: \(obs, feature\)"),
    ],
)
def test_a_wrong_argument_of_the_informed_network_is_named(changes, message):
    arguments = {"X": X, "y": Y, "mean": np.zeros(22), "cholesky": np.eye(22), "n_hidden": (3, 4)} | changes
    with pytest.raises(ValueError, match=message):
        models.informed_bnn(**arguments)


# --- fused


def build(kind, **options):
    """A model of two hidden layers by the name of its function, with random numbers for what a prior needs."""
    if kind in ("flat_bnn", "unpooled_bnn"):
        return getattr(models, kind)(X, Y, n_hidden=(3, 4), **options)
    if kind == "informed_bnn":
        rng = np.random.default_rng(0)
        prior = {"mean": rng.normal(size=22), "cholesky": np.eye(22) + np.tril(rng.normal(size=(22, 22)), -1)}
        return models.informed_bnn(X, Y, n_hidden=(3, 4), **prior, **options)
    X_groups, y_groups = cut_groups(*options.pop("n_obs", (8, 8, 8)))
    return models.hierarchical_bnn(X_groups, y_groups, **({"n_hidden": (3, 4)} | options))


@pytest.mark.parametrize(
    ("kind", "options"),
    [  # tanh without biases and ReLU with them: each other kind would compile for ten seconds
        ("flat_bnn", {}),
        ("flat_bnn", {"prior_sd": 2.0, "total_size": 3 * N}),
        ("unpooled_bnn", {"prior_sd": SDS}),
        ("unpooled_bnn", {"activation": "relu", "bias": True}),
        ("hierarchical_bnn", {"sd_scale": (1, 2, 5)}),
        ("hierarchical_bnn", {"sd_per": "connection"}),
        ("hierarchical_bnn", {"sd_prior": "halfcauchy", "bias": True, "activation": "relu", "n_hidden": (4,)}),
        ("hierarchical_bnn", {"n_obs": (8, 1, 5)}),
        ("hierarchical_bnn", {"n_obs": (1, 8, 5), "bias": True, "activation": "relu"}),
        ("informed_bnn", {}),
        ("informed_bnn", {"nu": 5}),
    ],
    ids=str,
)
def test_fusing_changes_neither_density_nor_gradient(kind, options):
    model, rng = build(kind, **options), np.random.default_rng(1)
    found, expected = (
        m.compile_fn([m.logp(), m.dlogp()], inputs=m.value_vars, mode="FAST_COMPILE")
        for m in (fuse(model, check=False), model)
    )
    for _ in range(3):
        point = {name: rng.normal(size=value.shape) for name, value in model.initial_point().items()}
        for a, b in zip(found(point), expected(point), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
