"""The scores, against scikit-learn, and the Monte Carlo error, against simulations that are truly repeated."""

import itertools

import numpy as np
import pytest
from hbnn import metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from scipy.stats import entropy as scipy_entropy
from scipy.stats import sem
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

DRAWS = arrays(float, (7, 3), elements=st.floats(0, 1))


@pytest.fixture
def forecasts():
    """Probabilities, and labels for which they are right."""
    rng = np.random.default_rng(0)
    p = rng.uniform(size=2000)
    return p, (rng.uniform(size=2000) < p).astype(int)


def test_scores_are_those_of_scikit_learn(forecasts):
    p, y = forecasts
    found = metrics.score(p, y)
    assert found["accuracy"] == pytest.approx(100 * accuracy_score(y, p > 0.5), rel=1e-12)
    assert found["lpd"] == pytest.approx(-log_loss(y, p), rel=1e-12)
    assert found["brier"] == pytest.approx(brier_score_loss(y, p), rel=1e-12)


@given(arrays(float, 9, elements=st.floats(0.01, 0.49) | st.floats(0.51, 0.99)))
def test_exchanging_the_classes_changes_no_score(p):
    y = np.arange(9) % 2
    assert metrics.score(1 - p, 1 - y) == pytest.approx(metrics.score(p, y), rel=1e-9)


def test_scores_do_not_depend_on_the_shape(forecasts):
    p, y = forecasts
    grouped = p.reshape(10, 200), y.reshape(10, 200)
    assert metrics.score(*grouped) == pytest.approx(metrics.score(p, y), rel=1e-12)
    assert metrics.score_error(*grouped) == pytest.approx(metrics.score_error(p, y), rel=1e-12)


def test_a_probability_costs_its_logarithm_and_a_certain_miss_what_rounding_leaves_of_it():
    """Beyond a logit of 37 a probability rounds to 1, and nothing tells 40 nats from 700."""
    logit = np.append(np.linspace(-25, 25, 61), [40, 800])
    expected = np.append(-np.logaddexp(0, logit[:-2]), [-53 * np.log(2)] * 2)
    for sign, label in ((1, 0), (-1, 1)):  # whichever class was missed; rounded to 1e-16 is one of 1e-11
        found = metrics.log_likelihood(expit(sign * logit), np.full(63, label))
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_tie_is_a_vote_for_class_0():
    assert [metrics.score([0.5], [label])["accuracy"] for label in (0, 1)] == [100, 0]


# --- several classes


@pytest.fixture
def class_forecasts():
    """Probabilities of four classes, and labels for which they are right."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=2000)
    return p, (rng.random((2000, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def test_scores_of_classes_are_those_of_scikit_learn_and_brier(class_forecasts):
    p, y = class_forecasts
    found = metrics.score_classes(p, y)
    assert found["accuracy"][0] == pytest.approx(100 * accuracy_score(y, p.argmax(axis=1)), rel=1e-12)
    assert found["lpd"][0] == pytest.approx(-log_loss(y, p), rel=1e-12)
    squares = [sum((q[k] - (label == k)) ** 2 for k in range(4)) for q, label in zip(p, y, strict=True)]
    assert found["brier"] == pytest.approx((np.mean(squares), sem(squares)), rel=1e-9)


def test_two_classes_are_scored_as_one_probability(class_forecasts):
    p = class_forecasts[0][:, 0]
    y = (np.random.default_rng(1).random(2000) < p).astype(int)
    found, expected = metrics.score_classes(np.column_stack([1 - p, p]), y), metrics.score(p, y)
    error = metrics.score_error(p, y)
    for name, factor in {"accuracy": 1, "lpd": 1, "brier": 2}.items():  # Brier's counts both classes
        assert found[name] == pytest.approx((factor * expected[name], factor * error[name]), rel=1e-9)


@pytest.mark.parametrize("n_classes", [0, 4])
def test_the_error_of_a_score_is_its_spread_over_data_sets(n_classes):
    """Of probabilities of one class (0), or of several."""
    rng = np.random.default_rng(2)
    if n_classes:
        p = rng.dirichlet(np.ones(n_classes), size=(1000, 100))
        y = (rng.random((1000, 100, 1)) > p.cumsum(axis=2)[:, :, :-1]).sum(axis=2)
        found = [metrics.score_classes(a, b) for a, b in zip(p, y, strict=True)]
    else:
        p = rng.uniform(size=(1000, 100))
        y = (rng.uniform(size=p.shape) < p).astype(int)
        pairs = ((metrics.score(a, b), metrics.score_error(a, b)) for a, b in zip(p, y, strict=True))
        found = [{name: (value[name], error[name]) for name in value} for value, error in pairs]
    for name in ("accuracy", "lpd", "brier"):
        # a spread over 1,000 has an error of 2 %, the mean of their own errors less
        expected = np.std([f[name][0] for f in found], ddof=1)
        assert np.mean([f[name][1] for f in found]) == pytest.approx(expected, rel=0.1), name


@settings(derandomize=True)
@given(st.permutations(range(4)))
def test_another_order_of_classes_changes_no_score(order):
    p = np.random.default_rng(3).dirichlet(np.ones(4), size=20)
    y = np.arange(20) % 4
    found = metrics.score_classes(p[:, order], np.argsort(order)[y])
    for name, expected in metrics.score_classes(p, y).items():
        assert found[name] == pytest.approx(expected, rel=1e-9)


def test_a_certain_miss_of_a_class_costs_much_and_is_finite():
    found = metrics.score_classes(np.eye(3)[[0, 1]], np.array([0, 2]))
    assert found["lpd"][0] == pytest.approx(-53 * np.log(2) / 2)  # the mean of nothing and of a certain miss
    assert (found["accuracy"][0], found["brier"][0]) == (50, 1)


# --- Monte Carlo error


def test_groups_are_scored_one_by_one():
    rng = np.random.default_rng(0)
    p, y = rng.random((4, 9)), rng.integers(0, 2, (4, 9))
    found = metrics.score_groups(p, y)
    for g in range(4):
        assert {name: values[g] for name, values in found.items()} == metrics.score(p[g], y[g])


def test_a_comparison_is_the_mean_difference_over_categories_with_its_spread():
    rng = np.random.default_rng(0)
    p, other, y = rng.random((6, 9)), rng.random((6, 9)), rng.integers(0, 2, (6, 9))
    each = [metrics.score(a, c)["brier"] - metrics.score(b, c)["brier"] for a, b, c in zip(p, other, y, strict=True)]
    assert metrics.compare_scores(p, other, y)["brier"] == pytest.approx((np.mean(each), sem(each)))
    assert metrics.compare_scores(p, p, y) == dict.fromkeys(("accuracy", "lpd", "brier"), (0, 0))
    forth, back = metrics.compare_scores(p, other, y), metrics.compare_scores(other, p, y)
    assert forth["lpd"][0] == pytest.approx(-back["lpd"][0])
    assert metrics.compare_scores(p[:2], other[:2], y[:2])["brier"] == pytest.approx((np.mean(each[:2]), sem(each[:2])))


def test_the_error_of_a_comparison_sees_that_points_of_a_category_share_their_fate():
    """Categories differ as wholes: taking the points as independent would understate the error several times."""
    rng = np.random.default_rng(1)
    differences, errors = [], []
    for _ in range(200):
        good = rng.random((18, 1)) < 0.5  # in half of the categories the first forecast is better, at every point
        y = rng.integers(0, 2, (18, 50))
        p, other = (np.where(y == 1, q, 1 - q) for q in (np.where(good, 0.8, 0.6), np.where(good, 0.6, 0.8)))
        found = metrics.compare_scores(p, other, y)["lpd"]
        differences.append(found[0]), errors.append(found[1])
    assert np.mean(errors) == pytest.approx(np.std(differences), rel=0.15)


def simulate_draws(rng, n_draws, persistence=0.0):
    """Draws of 50 probabilities, each a Markov chain through the draws: (draw, obs)."""
    noise = rng.normal(size=(n_draws, 50)) * np.sqrt(1 - persistence**2)
    noise[0] = rng.normal(size=50)
    for i in range(1, n_draws):
        noise[i] += persistence * noise[i - 1]
    return 1 / (1 + np.exp(-(np.linspace(-2, 2, 50) + noise)))


@pytest.mark.parametrize(("persistence", "block"), [(0.0, 1), (0.8, 40)])
def test_the_monte_carlo_error_is_the_spread_over_repeated_simulations(persistence, block):
    rng = np.random.default_rng(2)
    y = np.arange(50) % 2
    simulations = [simulate_draws(rng, 1000, persistence) for _ in range(200)]
    scores = [metrics.score(draws.mean(axis=0), y) for draws in simulations]
    errors = [metrics.monte_carlo_error(draws, y, seed=3, block=block) for draws in simulations[:20]]
    for name in ("lpd", "brier"):
        expected = np.std([s[name] for s in scores], ddof=1)
        assert np.mean([e[name] for e in errors]) == pytest.approx(expected, rel=0.2), name


def test_the_monte_carlo_error_is_that_of_all_ways_to_draw_the_blocks():
    a, b, y = 0.2, 0.9, np.array([1, 1, 0])
    draws = np.repeat([[a] * 3, [b] * 3], 5, axis=0)
    means = [(i + j) / 2 for i in (a, b) for j in (a, b)]  # two blocks, drawn twice
    found = metrics.monte_carlo_error(draws, y, seed=3, n_boot=4000, block=5)
    for name in ("lpd", "brier"):  # a standard deviation of 4,000 has an error of about 1 %
        expected = np.std([metrics.score(np.full(3, p), y)[name] for p in means])
        assert found[name] == pytest.approx(expected, rel=0.05), name


def test_one_seed_gives_the_same_error_twice():
    draws = simulate_draws(np.random.default_rng(2), 100)
    y = np.arange(50) % 2
    assert metrics.monte_carlo_error(draws, y, seed=3) == metrics.monte_carlo_error(draws, y, seed=3, block=1)
    assert metrics.monte_carlo_error(draws, y, seed=3) != metrics.monte_carlo_error(draws, y, seed=4)


def test_draws_that_are_all_alike_have_no_error_but_half_a_label_of_accuracy():
    found = metrics.monte_carlo_error(np.full((10, 4), 0.3), np.array([0, 1, 0, 1]), seed=0)
    assert found == pytest.approx({"accuracy": 100 / 4 / 2, "lpd": 0, "brier": 0}, abs=1e-12)


def test_an_accuracy_that_moves_with_the_draws_has_the_spread_over_repeated_simulations():
    rng = np.random.default_rng(4)
    y = np.arange(50) % 2
    # one step of this accuracy is 2 %, so few draws are taken: several labels turn
    simulations = [simulate_draws(rng, 12) for _ in range(300)]
    expected = np.std([metrics.score(draws.mean(axis=0), y)["accuracy"] for draws in simulations], ddof=1)
    found = np.mean([metrics.monte_carlo_error(draws, y, seed=3)["accuracy"] for draws in simulations[:60]])
    assert found == pytest.approx(expected, rel=0.25)


# --- calibration


def test_calibration_is_that_of_scikit_learn(forecasts):
    p, y = forecasts
    share, mean = calibration_curve(y, p, n_bins=10)
    found = metrics.calibrate(p, y)
    np.testing.assert_allclose(found["share"], share)
    np.testing.assert_allclose(found["p"], mean)


def test_a_probability_between_two_bins_is_in_the_upper_one():
    found = metrics.calibrate([0.25, 0.5, 0.75, 1.0], [0, 0, 1, 1], n_bins=2)
    assert (found["n"].tolist(), found["share"].tolist()) == ([1, 3], [0, 2 / 3])


@given(arrays(float, 30, elements=st.floats(0, 1)), st.integers(1, 20))
def test_calibration_counts_every_point_once(p, n_bins):
    found = metrics.calibrate(p, np.arange(30) % 2, n_bins)
    assert found["n"].sum() == 30
    assert (found["n"] * found["share"]).sum() == pytest.approx(15)
    assert found["n"].min() >= 1


@pytest.mark.parametrize("n_bins", [1, 2])
def test_the_error_of_a_share_is_its_sd_over_all_labels(n_bins):
    """Probabilities of one bin may lie far apart."""
    p = np.array([0.05, 0.1, 0.4, 0.6, 0.97])
    every = np.array(list(itertools.product([0, 1], repeat=len(p))))
    weight = np.where(every == 1, p, 1 - p).prod(axis=1)
    found = [metrics.calibrate(p, y, n_bins) for y in every]
    share = np.array([one["share"] for one in found])
    variance = weight @ (share - weight @ share) ** 2
    np.testing.assert_allclose(found[0]["error"], np.sqrt(variance), rtol=1e-9)


# --- uncertainty


@given(arrays(float, 5, elements=st.floats(0, 1)))
def test_the_entropy_is_that_of_scipy(p):
    np.testing.assert_allclose(metrics.entropy(p), scipy_entropy([p, 1 - p], base=2, axis=0), atol=1e-12)


@given(DRAWS)
def test_noise_and_ignorance_add_up_to_the_total_which_is_one_bit_at_most(draws):
    found = metrics.split_uncertainty(draws)
    assert min(value.min() for value in found.values()) >= 0
    assert (found["total"] <= 1).all()
    np.testing.assert_allclose(found["noise"] + found["ignorance"], found["total"], atol=1e-12)


@given(DRAWS)
def test_exchanging_the_classes_changes_no_uncertainty(draws):
    found, other = metrics.split_uncertainty(draws), metrics.split_uncertainty(1 - draws)
    for name in found:
        np.testing.assert_allclose(found[name], other[name], atol=1e-9)


@pytest.mark.parametrize(("draws", "noise", "ignorance"), [([0.5] * 4, 1, 0), ([0, 1], 0, 1)])
def test_draws_that_agree_leave_noise_and_certain_ones_that_contradict_each_other_ignorance(draws, noise, ignorance):
    found = metrics.split_uncertainty(np.array(draws, float)[:, None])
    assert (found["noise"], found["ignorance"]) == (noise, ignorance)


# --- uncertainty about several classes

CLASS_DRAWS = arrays(float, (4, 3, 5), elements=st.floats(0, 1)).map(
    lambda draws: (draws + 1e-9) / (draws + 1e-9).sum(axis=-1, keepdims=True)
)


@given(CLASS_DRAWS)
def test_the_entropy_of_classes_is_that_of_scipy(draws):
    np.testing.assert_allclose(metrics.class_entropy(draws), scipy_entropy(draws, base=2, axis=-1), atol=1e-12)


def test_the_entropy_of_classes_runs_from_nothing_to_that_of_equal_ones():
    assert metrics.class_entropy(np.eye(10)).tolist() == [0] * 10
    assert metrics.class_entropy(np.full(10, 0.1)) == pytest.approx(np.log2(10))


@settings(derandomize=True)
@given(CLASS_DRAWS)
def test_ignorance_about_classes_is_how_far_draws_are_from_their_mean(draws):
    found = metrics.split_uncertainty(draws)
    mean = draws.mean(axis=0)
    divergence = np.mean([scipy_entropy(draw, mean, base=2, axis=-1) for draw in draws], axis=0)
    np.testing.assert_allclose(found["ignorance"], divergence, atol=1e-9)
    np.testing.assert_allclose(found["total"], scipy_entropy(mean, base=2, axis=-1), atol=1e-12)
    np.testing.assert_allclose(found["noise"] + found["ignorance"], found["total"], atol=1e-12)
    assert min(value.min() for value in found.values()) >= 0
    assert found["total"].max() <= np.log2(5) + 1e-12


@settings(derandomize=True)
@given(DRAWS)
def test_two_classes_are_split_as_one_probability(draws):
    both = metrics.split_uncertainty(np.stack([draws, 1 - draws], axis=-1))
    for name, expected in metrics.split_uncertainty(draws).items():
        np.testing.assert_allclose(both[name], expected, atol=1e-12)


@settings(derandomize=True)
@given(CLASS_DRAWS, st.permutations(range(5)))
def test_another_order_of_classes_changes_no_uncertainty(draws, order):
    found, other = metrics.split_uncertainty(draws), metrics.split_uncertainty(draws[:, :, order])
    for name in found:
        np.testing.assert_allclose(other[name], found[name], atol=1e-12)


# --- what is refused

P = np.full((2, 4), 0.25)
MASKED = np.ma.array([1], mask=[True])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.score([0.5], [0, 1]), r"p has shape \(1,\) and y \(2,\); wanted: one probability for each"),
        (lambda: metrics.score([], []), r"p and y are empty; wanted: at least one point"),
        (lambda: metrics.score([1.5], [1]), r"p holds values outside \[0, 1\] or NaN; wanted: probabilities"),
        (lambda: metrics.score([0.5], [2]), r"y holds labels other than 0 and 1; wanted: 0 and 1"),
        (lambda: metrics.score_error([0.5], [1]), r"y holds 1 label; wanted: at least 2"),
        (lambda: metrics.score(np.ma.array([0.5], mask=[True]), [1]), r"p has 1 masked values; wanted: none"),
        (lambda: metrics.score([0.5], MASKED), r"y has 1 masked values; wanted: none"),
        (lambda: metrics.log_likelihood([0.5], [2]), r"y holds labels other than 0 and 1; wanted: 0 and 1"),
        (lambda: metrics.log_likelihood([0.5], MASKED), r"y has 1 masked values; wanted: none"),
        (lambda: metrics.compare_scores([[0.5]], [[0.5]], [[1]]), r"p has 1 group; wanted: at least 2"),
        (lambda: metrics.log_likelihood([np.nan], [1]), r"p holds values outside \[0, 1\] or NaN; wanted"),
        (lambda: metrics.calibrate([0.5], [1], 0), r"n_bins=0; wanted: a whole number of at least 1"),
        (lambda: metrics.monte_carlo_error([0.5], [1], seed=0), r"draws has shape \(1,\); wanted: \(draw, obs\)"),
        (lambda: metrics.monte_carlo_error([[0.5]] * 3, [1], seed=0, block=2), r"with at least 4 draws"),
        (lambda: metrics.monte_carlo_error([[0.5]] * 3, [1], seed=0, block=0), r"block=0; wanted: .* at least 1"),
        (lambda: metrics.monte_carlo_error([[0.5]] * 3, [1], seed=0, n_boot=1), r"n_boot=1; wanted: .* at least 2"),
        (lambda: metrics.monte_carlo_error([[1.5]] * 3, [1], seed=0), r"draws holds values outside \[0, 1\] or NaN"),
        (lambda: metrics.entropy(2), r"p holds values outside \[0, 1\] or NaN; wanted: probabilities"),
        (lambda: metrics.class_entropy([0.5, 0.2]), r"p holds rows that do not add up to 1; wanted: probabilities of"),
        (lambda: metrics.split_uncertainty([0.5]), r"draws has shape \(1,\); wanted: \(draw, obs\)"),
        (
            lambda: metrics.split_uncertainty(np.zeros((2, 3, 4, 5))),
            r"draws has shape \(2, 3, 4, 5\); wanted: .* class",
        ),
        (lambda: metrics.split_uncertainty(np.zeros((2, 0, 4))), r"draws has shape \(2, 0, 4\); wanted: .* none empty"),
        (
            lambda: metrics.split_uncertainty(np.full((2, 3, 4), 0.3)),
            r"draws holds rows that do not add up to 1; wanted",
        ),
        (lambda: metrics.score_classes([0.5, 0.5], [0, 1]), r"p has shape \(2,\) and y \(2,\); wanted: \(obs, class\)"),
        (lambda: metrics.score_classes(P[:1], [0]), r"p has shape \(1, 4\) and y \(1,\); wanted: .* at least 2 images"),
        (lambda: metrics.score_classes(P + 0.01, [0, 1]), r"p holds rows that do not add up to 1; wanted: probab"),
        (lambda: metrics.score_classes([[1.5, -0.5]] * 2, [0, 1]), r"p holds values outside \[0, 1\] or NaN"),
        (lambda: metrics.split_uncertainty(np.ma.masked_equal([P], 0.25)), r"draws has 8 masked values; wanted"),
        (lambda: metrics.score_classes(np.ma.masked_equal(P, 0.25), [0, 1]), r"p has 8 masked values; wanted"),
        (lambda: metrics.score_classes(P, np.ma.masked_equal([0, 1], 1)), r"y has 1 masked values; wanted"),
        (lambda: metrics.score_classes(P, [0, 4]), r"y holds the labels \[4\]; wanted: the numbers 0 to 3"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
