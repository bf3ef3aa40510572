"""The models: their densities against SciPy, and their data."""

import numpy as np
import pymc as pm
import pytest
from bookkit import data, models
from scipy.special import expit, log_softmax
from scipy.stats import bernoulli, halfcauchy, halfnorm, multivariate_normal, norm

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


# --- density


@pytest.mark.parametrize(("n_hidden", "prior_sd", "factor"), [((5, 5), 1.0, 1), ((3, 4), 2.5, 1), ((5, 5), 1.0, 50)])
def test_the_density_is_that_of_scipy(n_hidden, prior_sd, factor):
    weights = draw_weights(0, n_hidden)
    total_size = None if factor == 1 else factor * N
    model = models.flat_bnn(X, Y, n_hidden=n_hidden, prior_sd=prior_sd, total_size=total_size)
    # PyTensor takes the logarithm of the constant 2.5 in single precision
    assert compile_logp(model)(weights) == pytest.approx(compute_logp(weights, X, Y, prior_sd, factor), rel=1e-7)


def test_a_certain_miss_has_a_finite_density():
    weights = draw_weights(0)
    weights["w3"] = np.full(5, 300.0)
    assert np.isfinite(
        models.flat_bnn(X, Y).compile_logp()(weights)
    )  # as samplers compile it: log and sigmoid are one function


# --- data


def test_set_data_moves_the_network_to_other_points():
    model, points, weights = models.flat_bnn(X, Y), data.grid(7), draw_weights(1)
    with model:
        pm.set_data({"X": points})
        labels = pm.draw(pm.do(model, weights)["y"], random_seed=0, mode="FAST_COMPILE")
    p = model["p"].eval({model[name]: value for name, value in weights.items()}, mode="FAST_COMPILE")
    np.testing.assert_allclose(p, compute_probability(weights, points), rtol=1e-12)
    assert labels.shape == (49,)


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


@pytest.mark.parametrize(("n_hidden", "prior_sd", "factor"), [((5, 4), 1.0, 1), ((2, 3), 2.5, 3)])
def test_the_density_of_classes_is_that_of_scipy(n_hidden, prior_sd, factor):
    weights = draw_digit_weights(0, n_hidden)
    model = models.digit_bnn(IMAGES, CLASSES, n_hidden=n_hidden, prior_sd=prior_sd, total_size=factor * N)
    expected = compute_digit_logp(weights, IMAGES, CLASSES, prior_sd, factor)
    assert compile_logp(model)(weights) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("kind", ["flat", "digits"])
def test_a_minibatch_estimates_the_density_of_all_points(kind):
    if kind == "flat":
        weights, expected = draw_weights(2), compute_logp(draw_weights(2), X, Y)
        model = models.flat_bnn(*pm.Minibatch(X, Y, batch_size=5), total_size=N)
    else:
        weights, expected = draw_digit_weights(2), compute_digit_logp(draw_digit_weights(2), IMAGES, CLASSES)
        model = models.digit_bnn(*pm.Minibatch(IMAGES, CLASSES, batch_size=5), n_hidden=(5, 4), total_size=N)
    function = model.compile_fn(model.logp(), random_seed=1, mode="FAST_COMPILE")
    found = np.array([function(weights) for _ in range(400)])
    assert found.std() > 0
    assert abs(found.mean() - expected) < 4 * found.std() / np.sqrt(len(found))


# --- the hierarchical network


GROUPED = data.rotated_moons(seed=0, n_groups=3, n_train=8)


def draw_hierarchical(seed, sd_per, n_groups=3, n_hidden=(3, 4)):
    """Parameters of a hierarchical network, from the prior."""
    rng = np.random.default_rng(seed)
    shapes = [(2, n_hidden[0]), n_hidden, n_hidden[1:]]
    point = {}
    for k, shape in enumerate(shapes, 1):
        sd = abs(rng.normal(size=shape if sd_per == "connection" else ()))
        point |= {f"mu{k}": rng.normal(size=shape), f"sd{k}": sd}
        point |= {f"z{k}": rng.normal(size=(n_groups, *shape))}
    return point


def compute_hierarchical_logp(point, X, y, scales=(1, 1, 1)):
    """Log density of parameters (log sd instead of sd) and labels, category by category, by SciPy."""
    total = 0.0
    for k, scale in enumerate(scales, 1):
        sd = point[f"sd{k}"]
        total += norm.logpdf(point[f"mu{k}"]).sum() + norm.logpdf(point[f"z{k}"]).sum()
        total += np.sum(halfnorm.logpdf(sd, scale=scale) + np.log(sd))  # the sampler walks in log sd
    for g, (points, labels) in enumerate(zip(X, y, strict=True)):
        weights = {f"w{k}": point[f"mu{k}"] + point[f"sd{k}"] * point[f"z{k}"][g] for k in (1, 2, 3)}
        total += bernoulli.logpmf(labels, compute_probability(weights, points)).sum()
    return total


def transform(point):
    return {(f"{name}_log__" if name.startswith("sd") else name): np.log(value) if name.startswith("sd") else value
            for name, value in point.items()}  # fmt: skip


def cut_groups(*n_obs):
    """The first so many points of each group, and their labels."""
    return (
        [points[:n] for points, n in zip(GROUPED.X_train, n_obs, strict=True)],
        [labels[:n] for labels, n in zip(GROUPED.y_train, n_obs, strict=True)],
    )


@pytest.mark.parametrize("sd_per", ["layer", "connection"])
def test_groups_of_unequal_length_count_each_point_once_and_can_be_exchanged(sd_per):
    old, new, scales = (8, 1, 5), (2, 8, 3), (1, 2, 5)
    model = models.hierarchical_bnn(*cut_groups(*old), n_hidden=(3, 4), sd_scale=scales, sd_per=sd_per)
    point = draw_hierarchical(1, sd_per)
    logp, at = compile_logp(model), transform(point)
    assert logp(at) == pytest.approx(compute_hierarchical_logp(point, *cut_groups(*old), scales), rel=1e-7)
    with model:
        pm.set_data({"X": GROUPED.X_train, "labels": GROUPED.y_train, "n_obs": list(new)})
    assert logp(at) == pytest.approx(compute_hierarchical_logp(point, *cut_groups(*new), scales), rel=1e-7)


def compute_log_prior(model, name):
    """Log prior density of one variable at ones, all else left out."""
    return model.compile_logp(vars=[model[name]], mode="FAST_COMPILE")(
        {key: np.ones_like(value) for key, value in model.initial_point().items()}
    )


def test_means_and_offsets_of_biases_are_standard_normal():
    model = models.hierarchical_bnn(GROUPED.X_train, GROUPED.y_train, n_hidden=(3, 4), bias=True)
    for name, size in {"bias_mu2": 4, "bias_z2": 3 * 4}.items():
        assert compute_log_prior(model, name) == pytest.approx(size * norm.logpdf(1), rel=1e-9)


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


def test_the_biases_of_an_unpooled_network_have_the_prior_of_their_layer():
    model = models.unpooled_bnn(X, Y, n_hidden=(3, 4), prior_sd=SDS, bias=True)
    for name, size, sd in [("b1", 3, 0.5), ("b2", 4, 1.5), ("b3", 1, 2.0)]:
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


def test_group_sds_may_have_a_half_cauchy_prior():
    arguments = {"X": GROUPED.X_train, "y": GROUPED.y_train, "n_hidden": (3, 4), "sd_scale": 2.0}
    normal, cauchy = (models.hierarchical_bnn(**arguments, sd_prior=name) for name in models.SD_PRIORS)
    point = normal.initial_point(random_seed=0) | {"sd2_log__": np.log(3.0)}
    found = compile_logp(cauchy)(point) - compile_logp(normal)(point)
    sds = np.array([np.exp(point[f"sd{k}_log__"]) for k in (1, 2, 3)])
    expected = (halfcauchy(scale=2).logpdf(sds) - halfnorm(scale=2).logpdf(sds)).sum()
    assert found == pytest.approx(expected, rel=1e-8)


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
    assert compile_logp(model)({"z": z}) == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(model["w2"].eval({model["z"]: z}, mode="FAST_COMPILE"), weights["w2"])


# --- what is refused

THREE_AXES = pm.Minibatch(np.zeros((2, 10, 2)), batch_size=1)
BATCH = pm.Minibatch(IMAGES, CLASSES, batch_size=5)
LONG = pm.Minibatch(CLASSES.astype("int64"), batch_size=5)
FINE = {
    "flat_bnn": {"X": X, "y": Y},
    "digit_bnn": {"X": IMAGES, "y": CLASSES},
    "unpooled_bnn": {"X": X, "y": Y, "n_hidden": (3, 4)},
    "hierarchical_bnn": {"X": GROUPED.X_train, "y": GROUPED.y_train, "n_hidden": (3, 4)},
    "informed_bnn": {"X": X, "y": Y, "n_hidden": (3, 4), "mean": np.zeros(22), "cholesky": np.eye(22)},
}


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        ("flat_bnn", {"y": Y + 1}, r"y holds the labels \[2\]"),
        ("flat_bnn", {"X": THREE_AXES}, "X has 3 dimensions"),
        ("flat_bnn", {"n_hidden": 5}, "n_hidden=5; wanted: two"),
        ("flat_bnn", {"prior_sd": 0}, "prior_sd=0; wanted: .* above 0"),
        ("flat_bnn", {"total_size": 0}, "total_size=0; wanted: .* at least 1"),
        ("digit_bnn", {"X": 16 * IMAGES}, "X runs from 0 to 16"),
        ("digit_bnn", {"X": BATCH[0], "y": BATCH[1]}, "total_size=None with a minibatch"),
        ("digit_bnn", {"X": BATCH[0], "y": LONG, "total_size": N}, "int64; wanted: int32"),
        ("digit_bnn", {"X": BATCH[0], "y": CLASSES.tolist(), "total_size": N}, "'list'>; wanted: int32"),
        ("unpooled_bnn", {"prior_sd": (1, 1, -1)}, r"prior_sd=\(1, 1, -1\); wanted: .* above 0, or 3"),
        ("hierarchical_bnn", {"X": GROUPED.X_train[0]}, r"\(8, 2\); wanted: \(group, obs, feature\)"),
        ("hierarchical_bnn", {"y": GROUPED.y_train[:2]}, "3 groups, y has 2"),
        ("hierarchical_bnn", {"X": [X[:2], np.ones((2, 3))], "y": [[0, 1]] * 2}, r"\[2, 3\] features"),
        ("hierarchical_bnn", {"X": [X[:2], X[:0]], "y": [[0, 1], []]}, "empty group"),
        ("hierarchical_bnn", {"y": GROUPED.y_train + 1}, r"y\[0\] holds the labels"),
        ("hierarchical_bnn", {"sd_scale": (1, 2)}, r"sd_scale=\(1, 2\); wanted: .* or 3"),
        ("hierarchical_bnn", {"sd_prior": "gamma"}, "'gamma'; wanted: one of halfnormal, halfcauchy"),
        ("hierarchical_bnn", {"sd_per": "unit"}, "'unit', bias=False; wanted: 'layer', or 'connection'"),
        ("hierarchical_bnn", {"activation": "sine"}, "'sine'; wanted: one of tanh, relu"),
        ("informed_bnn", {"mean": np.zeros(3)}, r"\(3,\); wanted: \(22,\)"),
        ("informed_bnn", {"cholesky": np.eye(3)}, r"\(3, 3\); wanted: \(22, 22\)"),
        ("informed_bnn", {"cholesky": np.ones((22, 22))}, "not lower triangular"),
        ("informed_bnn", {"cholesky": np.zeros((22, 22))}, "positive diagonal"),
        ("informed_bnn", {"mean": np.ma.masked_equal(np.zeros(22), 0)}, "masked"),
    ],
)
def test_a_wrong_argument_is_named(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        getattr(models, kind)(**(FINE[kind] | changes))
