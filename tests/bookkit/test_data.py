"""The data of the book: the articles' points, the truth about them, and what is refused."""

import numpy as np
import pytest
from bookkit import data
from hbnn import _checks
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.preprocessing import scale

ARRAYS = ("X_train", "y_train", "X_test", "y_test", "angle", "center", "width")


def all_points(moons):
    """Training points, then test points, with their labels."""
    return np.concatenate([moons.X_train, moons.X_test], axis=-2), np.concatenate(
        [moons.y_train, moons.y_test], axis=-1
    )


def same(a, b):
    """Whether two data sets have the same bits."""
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ARRAYS)


# --- the articles' data --------------------------------------------------------------------------------------


@pytest.fixture
def articles_data():
    """Points and labels as in Wiecki (2018), computed by the recipe printed there."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(31)  # noqa: NPY002
    Xs, Ys = [], []
    for _ in range(18):
        X, Y = make_moons(noise=0.3, n_samples=100)
        X = scale(X)
        theta = np.radians(np.random.randn() * 90.0)  # noqa: NPY002
        c, s = np.cos(theta), np.sin(theta)
        Xs.append(X.dot(np.array([[c, -s], [s, c]])))
        Ys.append(Y)
    np.random.set_state(state)  # noqa: NPY002
    return np.stack(Xs), np.stack(Ys)


def test_the_legacy_data_are_those_of_the_article(articles_data):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    X, y = all_points(data.legacy_rotated_moons())
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    np.testing.assert_allclose(X, articles_data[0], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(y, articles_data[1])


def test_the_flat_legacy_points_are_those_of_the_article():
    X, y = make_moons(noise=0.2, random_state=0, n_samples=1000)
    found_X, found_y = all_points(data.flat_moons(seed=0, scaling="all"))
    np.testing.assert_allclose(found_X, scale(X), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found_y, y)


def test_other_scalings_keep_the_legacy_points_and_angles():
    everything, train = data.legacy_rotated_moons(), data.legacy_rotated_moons(scaling="train")
    np.testing.assert_array_equal(everything.angle, train.angle)
    np.testing.assert_array_equal(everything.y_test, train.y_test)
    for g in range(18):
        raw = [data.rotate(d.X_test[g], -d.angle[g]) * d.width[g] + d.center[g] for d in (everything, train)]
        np.testing.assert_allclose(*raw, atol=1e-12)


# --- drawing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [data.flat_moons, data.rotated_moons])
def test_one_seed_gives_the_same_bits_twice_and_another_seed_other_points(make):
    assert same(make(seed=3), make(seed=3))
    assert not np.isin(make(seed=3).X_train, make(seed=4).X_train).any()


def test_groups_are_different_data_and_more_of_them_leave_the_first_ones_as_they_are():
    few, many = data.rotated_moons(seed=0, n_groups=3), data.rotated_moons(seed=0, n_groups=5)
    assert all(same(few.group(g), many.group(g)) for g in range(3))
    points, _ = all_points(data.rotated_moons(seed=0, scaling="none"))
    assert len(np.unique(points)) == points.size


def test_angles_cover_the_circle():
    angle = data.rotated_moons(seed=0, n_groups=400, n_train=2, n_test=1).angle
    counts = np.histogram(angle, bins=4, range=(0, 360))[0]
    assert counts.sum() == 400
    assert ((counts - 100) ** 2 / 100).sum() < 16.3  # chi-square with 3 degrees of freedom: 1 in 1,000


def test_training_points_have_mean_0_and_sd_1():
    for moons in (data.flat_moons(seed=1), data.rotated_moons(seed=1, n_groups=1).group(0)):
        unrotated = data.rotate(moons.X_train, -moons.angle)
        np.testing.assert_allclose(unrotated.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(unrotated.std(axis=0), 1, atol=1e-12)


def test_scaling_on_train_does_not_look_at_the_test_points():
    moons = data.flat_moons(seed=1)
    assert abs(moons.X_test.mean(axis=0)).min() > 1e-3
    raw, _ = make_moons(n_samples=1000, noise=0.2, random_state=1)
    np.testing.assert_allclose(moons.center, raw[:500].mean(axis=0))
    np.testing.assert_array_equal(all_points(data.flat_moons(seed=1, scaling="none"))[0], raw)


def test_pooling_keeps_every_point_in_the_order_of_the_categories():
    moons = data.rotated_moons(seed=0, n_groups=3)
    np.testing.assert_array_equal(moons.pooled().X_train[50:100], moons.X_train[1])
    np.testing.assert_array_equal(moons.pooled().y_test[100:], moons.y_test[2])
    X = moons.with_category().X_train
    np.testing.assert_array_equal(X[:, :2], moons.pooled().X_train)
    np.testing.assert_array_equal(X[:, 2:], np.repeat(np.eye(3), 50, axis=0))


# --- the truth -----------------------------------------------------------------------------------------------


def arc_densities(points, noise, n=2001):
    """Both densities by the trapezoidal rule over `n` places of each half circle: (class, obs)."""
    t = np.linspace(0, np.pi, n)
    weight = np.full(n, 1 / (n - 1))
    weight[[0, -1]] /= 2
    found = []
    for arc in (np.stack([np.cos(t), np.sin(t)]), np.stack([1 - np.cos(t), 0.5 - np.sin(t)])):
        # |x - a|^2 = |x|^2 - 2 x a + |a|^2
        square = (points**2).sum(axis=1)[:, None] - 2 * points @ arc + (arc**2).sum(axis=0)
        found.append(np.exp(-square / (2 * noise**2)) @ weight / (2 * np.pi * noise**2))
    return np.array(found)


def test_class_densities_are_the_integrals_over_the_arcs_or_mixtures_of_normals():
    points, t = np.random.default_rng(0).uniform((-1.5, -1), (2.5, 1.5), size=(8, 2)), np.linspace(0, np.pi, 50)
    exact = arc_densities(points, 0.2, n=200_001)
    np.testing.assert_allclose(data.class_densities(points, 0.2), exact, rtol=1e-8, atol=1e-10)
    for found, arc in zip(
        data.class_densities(points, 0.3, n_arc=50),
        ([np.cos(t), np.sin(t)], [1 - np.cos(t), 0.5 - np.sin(t)]),
        strict=True,
    ):
        expected = [np.mean([stats.multivariate_normal.pdf(x, a, 0.09) for a in np.transpose(arc)]) for x in points]
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_bayes_scores_are_integrals_over_the_plane():
    """By the midpoint rule, which is exact to many digits where the density is smooth and ends within the box."""
    step, noise = 0.05, 0.3
    x, y = np.arange(-2.8, 3.8, step), np.arange(-2.3, 2.8, step)
    rows = [arc_densities(np.column_stack([x, np.full(len(x), b)]), noise) / 2 for b in y]
    zero, one = np.concatenate(rows, axis=1)
    total, p = zero + one, one / (zero + one)
    scores = data.bayes_scores(noise, n_grid=200)
    assert total.sum() * step**2 == pytest.approx(1, abs=1e-6)
    assert scores["brier"] == pytest.approx((p * (1 - p) * total).sum() * step**2, rel=1e-4)
    assert scores["lpd"] == pytest.approx((zero * np.log(1 - p) + one * np.log(p)).sum() * step**2, rel=1e-4)
    assert scores["accuracy"] == pytest.approx((np.maximum(p, 1 - p) * total).sum() * step**2, rel=1e-4)


def test_the_true_probability_turns_with_its_category(articles_data):
    old = np.random.RandomState(31)
    moons = data.legacy_rotated_moons()
    for g in range(3):
        raw, _ = make_moons(noise=0.3, n_samples=100, random_state=old)
        old.randn()
        zero, one = arc_densities(raw[50:], 0.3)
        found = data.bayes_probability(moons.X_test[g], moons, 0.3, g)
        np.testing.assert_allclose(found, one / (zero + one), atol=1e-5)


# --- what is refused -----------------------------------------------------------------------------------------

X, Y = [[0.0, 1.0], [2.0, 3.0]], [0, 1]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0, np.nan], [2, 3]], Y, "X holds 1 values that are NaN"),
        ([[[0.0, 1.0]], [[0.0, 1.0], [2.0, 3.0]]], Y, "X is no array.*one size"),
        ([0.0, 1.0], Y, r"X has shape \(2,\); wanted: \(obs, feature\)"),
        (np.empty((3, 0, 2)), np.empty((3, 0)), r"\(3, 0, 2\): an empty group"),
        (X, [0, 1, 1], r"z has shape \(3,\); wanted: .*\(2,\)"),
        (X, [0, 2], r"z holds the labels \[2\]; wanted: the numbers 0 and 1"),
        (X, np.array([0, None]), r"z holds the labels \[None\]"),
        (np.ma.array(X, mask=[[0, 1], [0, 0]]), Y, "X has 1 masked"),
        (X, np.ma.array(Y, mask=[1, 1]), "z has 2 masked"),
    ],
)
def test_wrong_data_are_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        _checks.check_data(X, y, name="z")


@pytest.mark.parametrize("labels", [[0, 1], [0.0, 1.0], [False, True], np.array([0, 1], dtype="int8")])
def test_labels_of_any_number_type_become_int32(labels):
    X_checked, y = _checks.check_data(X, labels)
    assert (X_checked.dtype, y.dtype, y.tolist()) == (np.float64, np.int32, [0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data.flat_moons(seed=0, scaling="test"), "'test'; wanted: 'train', 'all'"),
        (lambda: data.flat_moons(seed=0, train_share=1), "train_share=1; wanted: between 0 and 1"),
        (lambda: data.flat_moons(seed=0, n_obs=10, train_share=0.99), "10 training and 0 test"),
        (lambda: data.rotated_moons(seed=0, n_groups=0), "n_groups=0; wanted: .* at least 1"),
        (lambda: data.rotated_moons(seed=0, n_train=1), "1 points without spread"),
        (lambda: data.class_densities(np.zeros((1, 2)), 0), "noise=0; wanted: above 0"),
        (lambda: data.bayes_scores(0.001), "0.0075 apart; wanted: at most the noise, 0.001"),
        (lambda: data.bayes_scores(0.3, n_grid=1), "n_grid=1; wanted: .* at least 2"),
        (lambda: data.flat_moons(seed=0).group(0), r"\(500, 2\), one category"),
        (lambda: data.bayes_probability(np.zeros((1, 2)), data.legacy_rotated_moons(), 0.3), "g=None .*18 categories"),
        *((lambda seed=seed: _checks.check_seed(seed), f"seed={seed!r}") for seed in (None, True, -1, 1.5, "1")),
        (lambda: data.flat_moons(seed=None), "seed=None"),
        (lambda: data.rotated_moons(seed=None), "seed=None"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
