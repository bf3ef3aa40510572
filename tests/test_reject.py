"""Scores of doubt: against counting, loops, SciPy, scikit-learn, and quantities whose errors are known."""

import numpy as np
import pytest
from bnn import reject
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.metrics import log_loss

DERANDOMIZED = settings(deadline=None, max_examples=50, derandomize=True)
DOUBTS = st.lists(st.integers(0, 9).map(lambda n: n / 8), min_size=1, max_size=30).map(np.array)  # few values: ties
N_BOOT = 2000
# relative error of a bootstrap's standard error is 1 / sqrt(2 n_boot), 1.6 %; differences of two of them, four sigmas
NOISE = 4 * np.sqrt(2) / np.sqrt(2 * N_BOOT)


def draw_probabilities(seed, shape=(6, 4, 5), scale=2.0):
    """(draw, obs, class) probabilities of networks that disagree."""
    return softmax(np.random.default_rng(seed).normal(0, scale, size=shape), axis=-1)


# --- doubt


def test_the_four_doubts_are_those_that_are_listed():
    doubts = reject.measure_doubt(draw_probabilities(0))
    assert tuple(doubts) == reject.DOUBTS
    assert all(doubt.shape == (4,) for doubt in doubts.values())


@DERANDOMIZED
@given(st.integers(0, 10_000))
def test_doubts_follow_their_definitions(seed):
    draws = draw_probabilities(seed)
    found = reject.measure_doubt(draws)
    for i in range(draws.shape[1]):
        mean = np.mean([draw[i] for draw in draws], axis=0)
        chosen = int(mean.argmax())
        assert found["sd"][i] == pytest.approx(np.std([draw[i, chosen] for draw in draws]), rel=1e-9)
        assert found["max"][i] == pytest.approx(sum(np.delete(mean, chosen)), rel=1e-9)
        assert found["entropy"][i] == pytest.approx(entropy(mean, base=2), rel=1e-9)
        # mutual information: how far, on average, a draw's distribution is from the mean of all
        divergence = np.mean([entropy(draw[i], mean, base=2) for draw in draws])
        assert found["ignorance"][i] == pytest.approx(divergence, abs=1e-12)


@DERANDOMIZED
@given(st.integers(0, 10_000), st.permutations(range(5)), st.permutations(range(6)))
def test_neither_the_order_of_classes_nor_that_of_draws_matters(seed, classes, order):
    draws = draw_probabilities(seed)
    found, other = reject.measure_doubt(draws), reject.measure_doubt(draws[order][:, :, classes])
    for name in reject.DOUBTS:
        np.testing.assert_allclose(other[name], found[name], atol=1e-12)


def test_a_single_network_has_neither_sd_nor_ignorance():
    doubts = reject.measure_doubt(draw_probabilities(0, (1, 50, 10)))
    assert (doubts["sd"].max(), doubts["ignorance"].max()) == (0, 0)
    assert min(doubts["max"].min(), doubts["entropy"].min()) > 0


def test_certain_networks_that_agree_leave_no_doubt():
    doubts = reject.measure_doubt(np.eye(10)[None].repeat(3, axis=0))
    assert {name: abs(doubt).max() for name, doubt in doubts.items()} == dict.fromkeys(reject.DOUBTS, 0)


def test_certain_networks_that_contradict_each_other_are_ignorant():
    doubts = reject.measure_doubt(np.eye(4)[:, None])  # each of four networks swears by another class
    assert {name: doubt[0] for name, doubt in doubts.items()} == pytest.approx(
        {"sd": np.sqrt(3) / 4, "max": 0.75, "entropy": 2, "ignorance": 2}
    )


# --- the threshold


@DERANDOMIZED
@given(DOUBTS, st.integers(1, 99))
def test_a_threshold_accepts_at_least_the_share_and_no_lower_one_would_do(doubt, percent):
    threshold = reject.choose_threshold(doubt, percent / 100)
    assert 100 * (doubt <= threshold).sum() >= percent * len(doubt)
    assert 100 * (doubt < threshold).sum() < percent * len(doubt)  # nor would the next lower doubt
    assert threshold in doubt


@pytest.mark.parametrize(("n", "share", "accepted"), [(400, 0.99, 396), (397, 0.99, 394), (100, 0.07, 7), (10, 0.5, 5)])
def test_a_threshold_accepts_no_more_than_the_share_where_no_doubts_are_equal(n, share, accepted):
    doubt = np.random.default_rng(0).permutation(n) / n
    assert (doubt <= reject.choose_threshold(doubt, share)).sum() == accepted


# --- telling inside from outside


@DERANDOMIZED
@given(DOUBTS, DOUBTS)
def test_the_auroc_is_the_share_of_pairs_in_which_the_one_from_outside_raises_more_doubt(inside, outside):
    wins = [(b > a) + (b == a) / 2 for a in inside for b in outside]
    assert reject.auroc(inside, outside) == pytest.approx(np.mean(wins), rel=1e-9)


@DERANDOMIZED
@given(DOUBTS, DOUBTS)
def test_exchanging_inside_and_outside_turns_the_auroc_round(inside, outside):
    assert reject.auroc(inside, outside) + reject.auroc(outside, inside) == pytest.approx(1)


@DERANDOMIZED
@given(DOUBTS, DOUBTS)
def test_only_the_order_of_doubts_matters(inside, outside):
    assert reject.auroc(np.exp(inside), np.exp(outside)) == pytest.approx(reject.auroc(inside, outside))


# --- bootstrap


@pytest.fixture(scope="module")
def sample():
    return np.random.default_rng(1).normal(3, 2, size=200)


def test_the_error_of_a_mean_is_its_known_one(sample):
    low, high, error = reject.bootstrap(np.mean, [sample], seed=0, n_boot=N_BOOT)
    known = sample.std() / np.sqrt(200)
    assert error == pytest.approx(known, rel=NOISE)
    # an end of the interval is a quantile of 2,000 means: its own error is 0.06 known ones, four of these
    assert low == pytest.approx(sample.mean() - 1.96 * known, abs=0.24 * known)
    assert high == pytest.approx(sample.mean() + 1.96 * known, abs=0.24 * known)


def test_the_error_is_the_standard_deviation_of_a_sample_of_statistics(sample):
    found = []
    error = reject.bootstrap(lambda a: found.append(a.mean()) or found[-1], [sample], seed=0, n_boot=2)[2]
    assert error == pytest.approx(abs(found[0] - found[1]) / np.sqrt(2))


def test_samples_are_drawn_independently_of_each_other(sample):
    other = np.random.default_rng(2).normal(1, 1, size=50)
    error = reject.bootstrap(lambda a, b: a.mean() - b.mean(), [sample, other], seed=0, n_boot=N_BOOT)[2]
    assert error == pytest.approx(np.sqrt(sample.var() / 200 + other.var() / 50), rel=NOISE)


def test_rows_of_one_sample_are_drawn_together(sample):
    pairs = np.column_stack([sample, sample])
    assert reject.bootstrap(lambda a: np.ptp(a.mean(axis=0)), [pairs], seed=0, n_boot=20)[2] == 0


def test_a_lower_level_has_a_narrower_interval(sample):
    wide, narrow = (reject.bootstrap(np.mean, [sample], seed=0, n_boot=N_BOOT, level=level) for level in (0.95, 0.5))
    # of a normal: 1.960 and 0.674 standard errors to either side
    assert (wide[1] - wide[0]) / (narrow[1] - narrow[0]) == pytest.approx(1.960 / 0.674, rel=0.15)


def test_duplicates_in_one_cluster_count_once_and_outside_of_it_as_independent(sample):
    few = sample[:50]
    many, cluster = np.repeat(few, 4), np.repeat(np.arange(50), 4)
    alone = reject.bootstrap(np.mean, [few], seed=0, n_boot=N_BOOT)
    together = reject.bootstrap(np.mean, [many], seed=3, n_boot=N_BOOT, clusters=[cluster])
    naive = reject.bootstrap(np.mean, [many], seed=3, n_boot=N_BOOT)
    assert together[2] == pytest.approx(alone[2], rel=NOISE)
    np.testing.assert_allclose(together[:2], alone[:2], atol=0.34 * alone[2])  # two ends, each with 0.06: four sigmas
    assert naive[2] == pytest.approx(alone[2] / 2, rel=NOISE)  # 1 / sqrt(4)


def test_names_and_order_of_clusters_do_not_matter(sample):
    cluster = np.arange(200) // 10
    names = np.array([f"{c:02}" for c in cluster])
    shuffle = np.random.default_rng(0).permutation(200)
    expected = reject.bootstrap(np.mean, [sample], seed=0, n_boot=20, clusters=[cluster])
    found = reject.bootstrap(np.mean, [sample[shuffle]], seed=0, n_boot=20, clusters=[names[shuffle]])
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_one_sample_may_be_clustered_and_another_not(sample):
    inside, outside = sample[:40], np.repeat(sample[40:60], 5)
    clusters = [None, np.repeat(np.arange(20), 5)]
    error = reject.bootstrap(
        lambda a, b: b.mean() - a.mean(), [inside, outside], seed=0, n_boot=N_BOOT, clusters=clusters
    )[2]
    assert error == pytest.approx(np.sqrt(inside.var() / 40 + outside.var() / 20), rel=NOISE)


def test_a_statistic_may_have_several_values(sample):
    both = reject.bootstrap(lambda a: np.array([a.mean(), a.std()]), [sample], seed=0, n_boot=50)
    mean = reject.bootstrap(np.mean, [sample], seed=0, n_boot=50)
    assert [part.shape for part in both] == [(2,)] * 3
    np.testing.assert_array_equal([part[0] for part in both], mean)


def test_one_seed_gives_the_same_bits_and_another_seed_others(sample):
    first, again, other = (reject.bootstrap(np.mean, [sample], seed=seed, n_boot=50) for seed in (0, 0, 1))
    assert first == again
    assert not np.isin(first, other).any()


# --- risk and coverage


@DERANDOMIZED
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=20))
def test_risk_is_the_share_of_errors_among_the_accepted(images):
    doubt, correct = (np.array(values) for values in zip(*images, strict=True))
    coverage, risk = reject.trace_risk(doubt, correct)
    accepted = []
    for n, (_, right) in enumerate(sorted(images, key=lambda image: image[0]), 1):  # equal doubts stay in their order
        accepted.append(right)
        assert coverage[n - 1] == pytest.approx(n / len(images))
        assert risk[n - 1] == pytest.approx(accepted.count(False) / n)


def test_a_doubt_that_knows_the_errors_has_no_risk_until_they_begin():
    correct = np.array([True] * 8 + [False] * 2)
    coverage, risk = reject.trace_risk(~correct, correct)
    assert risk[coverage <= 0.8].max() == 0
    assert risk[-1] == pytest.approx(0.2)


# --- temperature


@DERANDOMIZED
@given(st.integers(0, 10_000), st.floats(0.05, 20))
def test_warming_divides_the_logits_and_keeps_the_order_of_classes(seed, temperature):
    logit = np.random.default_rng(seed).normal(0, 2, size=(3, 4, 5))
    warmed = reject.warm(softmax(logit, axis=-1), temperature)
    np.testing.assert_allclose(warmed, softmax(logit / temperature, axis=-1), atol=1e-12)
    # at 0.05 classes may become as improbable as a number can be, and so equal
    ordered = np.take_along_axis(warmed, logit.argsort(axis=-1), axis=-1)
    assert (np.diff(ordered, axis=-1) >= 0).all()


def test_certainty_survives_any_temperature():
    for temperature in (0.01, 1, 20):
        warmed = reject.warm(np.eye(4), temperature)
        assert np.isfinite(warmed).all()
        np.testing.assert_allclose(warmed.sum(axis=1), 1)
        np.testing.assert_array_equal(warmed.argmax(axis=1), range(4))


def simulate_labels(n, temperature, seed=0):
    """Logits of a classifier, and labels drawn from its probabilities at another temperature."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, size=(n, 5))
    cumulative = softmax(logit / temperature, axis=1).cumsum(axis=1)
    return logit, (rng.random((n, 1)) > cumulative[:, :-1]).sum(axis=1)


def lose(log_temperature, logit, y):
    return log_loss(y, softmax(logit / np.exp(log_temperature), axis=1), labels=range(5))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_known_temperature_is_found_within_its_error(temperature):
    n = 5000
    logit, y = simulate_labels(n, temperature)
    found = reject.fit_temperature(softmax(logit, axis=1), y)
    # Fisher information of the logarithm of the temperature, per image: the variance of its score
    p = softmax(logit / temperature, axis=1)
    mean = (p * logit).sum(axis=1, keepdims=True)
    information = np.mean((p * (logit - mean) ** 2).sum(axis=1)) / temperature**2
    assert abs(np.log(found / temperature)) < 4 / np.sqrt(n * information)


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_the_temperature_has_the_least_log_loss(temperature):
    logit, y = simulate_labels(300, temperature, seed=1)
    found = np.log(reject.fit_temperature(softmax(logit, axis=1), y))
    expected = minimize_scalar(lose, bracket=(-1, 1), args=(logit, y), tol=1e-8).x  # Brent's, from scikit-learn's loss
    assert found == pytest.approx(expected, abs=1e-4)  # a minimum is flat: bits of the loss move it by 1e-6 or so
    losses = [lose(value, logit, y) for value in np.linspace(-2.9, 2.9, 30)]
    assert lose(found, logit, y) <= min(losses)


@pytest.mark.parametrize("n_right", [9, 999])
def test_the_temperature_makes_a_sure_classifier_as_sure_as_it_is_right(n_right):
    p = np.tile(softmax([20.0, 0.0]), (n_right + 1, 1))
    found = reject.fit_temperature(p, [0] * n_right + [1])
    assert found == pytest.approx(20 / np.log(n_right), rel=1e-4)  # odds of n_right to 1


def test_a_warmer_forecast_needs_less_warming():
    logit, y = simulate_labels(300, 2.0)
    cold, warmed = (reject.fit_temperature(softmax(logit / t, axis=1), y) for t in (1, 1.5))
    assert cold / warmed == pytest.approx(1.5, rel=1e-4)


def test_a_certain_miss_leaves_a_finite_temperature():
    p = np.vstack([np.eye(5), np.eye(5)[:1]])
    y = np.array([0, 1, 2, 3, 4, 1])
    assert 1 < reject.fit_temperature(p, y) < np.inf


# --- what is refused

P = np.full((3, 5), 0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reject.measure_doubt(P), r"draws has shape \(3, 5\); wanted: \(draw, obs, class\)"),
        (lambda: reject.measure_doubt(P[None, :0]), r"draws has shape \(1, 0, 5\); wanted: .* none empty"),
        (lambda: reject.measure_doubt(P[None] - 1), r"draws holds values outside \[0, 1\] or NaN"),
        (lambda: reject.measure_doubt(P[None] * np.nan), r"draws holds values outside \[0, 1\] or NaN"),
        (lambda: reject.choose_threshold([]), r"doubt has shape \(0,\); wanted: \(obs,\), at least one image"),
        (lambda: reject.choose_threshold(P), r"doubt has shape \(3, 5\); wanted: \(obs,\)"),
        (lambda: reject.choose_threshold([1, np.nan]), r"doubt holds values that are NaN or infinite; wanted: finite"),
        (lambda: reject.choose_threshold([1], share=1), r"share=1; wanted: between 0 and 1, both excluded"),
        (lambda: reject.choose_threshold([1], share=0), r"share=0; wanted: between 0 and 1"),
        (lambda: reject.auroc([], [1]), r"inside has shape \(0,\); wanted: \(obs,\), at least one image"),
        (lambda: reject.auroc([1], [np.inf]), r"outside holds values that are NaN or infinite; wanted: finite"),
        (lambda: reject.bootstrap(np.mean, [[1]], seed=None), r"seed=None; wanted: an integer"),
        (lambda: reject.bootstrap(np.mean, [[1]], seed=0, n_boot=1), r"n_boot=1, level=0.95; wanted: at least 2"),
        (lambda: reject.bootstrap(np.mean, [[1]], seed=0, level=1), r"level=1; wanted: .* a level between 0 and 1"),
        (
            lambda: reject.bootstrap(np.mean, [[1, 2]], seed=0, clusters=[[0, 0, 1]]),
            r"clusters holds shape \(3,\); wanted: one number for each of 2 images",
        ),
        (lambda: reject.trace_risk([1, 2], [True]), r"correct has shape \(1,\); wanted: one truth value for each of 2"),
        (lambda: reject.trace_risk([], []), r"doubt has shape \(0,\); wanted"),
        (lambda: reject.trace_risk([1, 2], [3, 0]), r"correct holds int64; wanted: True or False for each of 2"),
        (lambda: reject.trace_risk([1, 2], [1.0, np.nan]), r"correct holds float64; wanted: True or False"),
        (lambda: reject.measure_doubt(P[None] * 2), r"draws holds rows that do not add up to 1; wanted"),
        (lambda: reject.fit_temperature(P * np.nan, [1, 2, 3]), r"p holds values outside \[0, 1\] or NaN; wanted"),
        (lambda: reject.fit_temperature(P * 2, [1, 2, 3]), r"p holds rows that do not add up to 1; wanted"),
        (lambda: reject.warm(P, 0), r"temperature=0; wanted: above 0"),
        (lambda: reject.warm(P, np.nan), r"temperature=nan; wanted: above 0"),
        (lambda: reject.fit_temperature(P[0], [1]), r"p has shape \(5,\); wanted: \(obs, class\)"),
        (lambda: reject.fit_temperature(P, [1, 2]), r"y has shape \(2,\); wanted: one label for each of 3 images"),
        (lambda: reject.fit_temperature(P, [1, 2, 5]), r"y holds the labels \[5\]; wanted: the numbers 0 to 4"),
        (lambda: reject.fit_temperature(P[:0], []), r"p has shape \(0, 5\); wanted: \(obs, class\)"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
