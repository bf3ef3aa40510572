"""Scores of doubt: against counting, loops, SciPy, scikit-learn, and quantities whose errors are known."""

import numpy as np
import pytest
from hbnn import rejection
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


@DERANDOMIZED
@given(st.integers(0, 10_000))
def test_doubts_follow_their_definitions(seed):
    draws = draw_probabilities(seed)
    found = rejection.measure_doubt(draws)
    assert tuple(found) == rejection.DOUBTS
    for i in range(draws.shape[1]):
        mean = np.mean([draw[i] for draw in draws], axis=0)
        chosen = int(mean.argmax())
        assert found["sd"][i] == pytest.approx(np.std([draw[i, chosen] for draw in draws]), rel=1e-9)
        assert found["max"][i] == pytest.approx(sum(np.delete(mean, chosen)), rel=1e-9)
        assert found["entropy"][i] == pytest.approx(entropy(mean, base=2), rel=1e-9)
        # mutual information: how far, on average, a draw's distribution is from the mean of all
        divergence = np.mean([entropy(draw[i], mean, base=2) for draw in draws])
        assert found["ignorance"][i] == pytest.approx(divergence, abs=1e-12)


# --- the threshold


@DERANDOMIZED
@given(DOUBTS, st.integers(1, 99))
def test_a_threshold_accepts_at_least_the_share_and_no_lower_one_would_do(doubt, percent):
    threshold = rejection.choose_threshold(doubt, percent / 100)
    assert 100 * (doubt <= threshold).sum() >= percent * len(doubt)
    assert 100 * (doubt < threshold).sum() < percent * len(doubt)  # nor would the next lower doubt
    assert threshold in doubt


def test_a_threshold_accepts_no_more_than_the_share_where_no_doubts_are_equal():
    for n, share, accepted in [(400, 0.99, 396), (100, 0.07, 7)]:
        doubt = np.random.default_rng(0).permutation(n) / n
        assert (doubt <= rejection.choose_threshold(doubt, share)).sum() == accepted


# --- telling inside from outside


@DERANDOMIZED
@given(DOUBTS, DOUBTS)
def test_the_auroc_is_the_share_of_pairs_in_which_the_one_from_outside_raises_more_doubt(inside, outside):
    wins = [(b > a) + (b == a) / 2 for a in inside for b in outside]
    assert rejection.auroc(inside, outside) == pytest.approx(np.mean(wins), rel=1e-9)


# --- bootstrap


@pytest.fixture(scope="module")
def sample():
    return np.random.default_rng(1).normal(3, 2, size=200)


def test_the_error_of_a_mean_is_its_known_one(sample):
    low, high, error = rejection.bootstrap(np.mean, [sample], seed=0, n_boot=N_BOOT)
    known = sample.std() / np.sqrt(200)
    assert error == pytest.approx(known, rel=NOISE)
    # an end of the interval is a quantile of 2,000 means: its own error is 0.06 known ones, four of these
    assert low == pytest.approx(sample.mean() - 1.96 * known, abs=0.24 * known)
    assert high == pytest.approx(sample.mean() + 1.96 * known, abs=0.24 * known)
    narrow = rejection.bootstrap(np.mean, [sample], seed=0, n_boot=N_BOOT, level=0.5)
    assert narrow[1] - narrow[0] == pytest.approx(2 * 0.674 * known, rel=0.15)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.98])
def test_an_interval_leaves_as_many_statistics_below_it_as_above(sample, level):
    found = []
    low, high, _ = rejection.bootstrap(
        lambda a: found.append(a.mean()) or found[-1], [sample], seed=0, n_boot=1000, level=level
    )
    for outside in (np.less(found, low), np.greater(found, high)):
        assert outside.mean() == pytest.approx((1 - level) / 2, abs=0.001)


def test_the_error_is_the_standard_deviation_of_a_sample_of_statistics(sample):
    found = []
    error = rejection.bootstrap(lambda a: found.append(a.mean()) or found[-1], [sample], seed=0, n_boot=2)[2]
    assert error == pytest.approx(abs(found[0] - found[1]) / np.sqrt(2))


def test_duplicates_in_one_cluster_count_once_and_outside_of_it_as_independent(sample):
    few = sample[:50]
    many, cluster = np.repeat(few, 4), np.repeat(np.arange(50), 4)
    alone = rejection.bootstrap(np.mean, [few], seed=0, n_boot=N_BOOT)
    together = rejection.bootstrap(np.mean, [many], seed=3, n_boot=N_BOOT, clusters=[cluster])
    naive = rejection.bootstrap(np.mean, [many], seed=3, n_boot=N_BOOT)
    assert together[2] == pytest.approx(alone[2], rel=NOISE)
    np.testing.assert_allclose(together[:2], alone[:2], atol=0.34 * alone[2])  # two ends, each with 0.06: four sigmas
    assert naive[2] == pytest.approx(alone[2] / 2, rel=NOISE)  # 1 / sqrt(4)


def test_one_sample_may_be_clustered_and_another_not(sample):
    inside, outside = sample[:40], np.repeat(sample[40:60], 5)
    clusters = [None, np.repeat(np.arange(20), 5)]
    error = rejection.bootstrap(
        lambda a, b: b.mean() - a.mean(), [inside, outside], seed=0, n_boot=N_BOOT, clusters=clusters
    )[2]
    assert error == pytest.approx(np.sqrt(inside.var() / 40 + outside.var() / 20), rel=NOISE)


def test_one_seed_gives_the_same_bits_and_another_seed_others(sample):
    first, again, other = (
        rejection.bootstrap(lambda a: np.array([a.mean(), a.std()]), [sample], seed=seed, n_boot=50)
        for seed in (0, 0, 1)
    )
    assert [part.shape for part in first] == [(2,)] * 3  # a statistic may have several values
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()


# --- risk and coverage


@DERANDOMIZED
@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=20))
def test_risk_is_the_share_of_errors_among_the_accepted(images):
    doubt, correct = (np.array(values) for values in zip(*images, strict=True))
    coverage, risk = rejection.trace_risk(doubt, correct)
    accepted = []
    for n, (_, right) in enumerate(sorted(images, key=lambda image: image[0]), 1):  # equal doubts stay in their order
        accepted.append(right)
        assert coverage[n - 1] == pytest.approx(n / len(images))
        assert risk[n - 1] == pytest.approx(accepted.count(False) / n)


# --- temperature


@DERANDOMIZED
@given(st.integers(0, 10_000), st.floats(0.05, 20))
def test_warming_divides_the_logits_and_keeps_the_order_of_classes(seed, temperature):
    logit = np.random.default_rng(seed).normal(0, 2, size=(3, 4, 5))
    warmed = rejection.warm(softmax(logit, axis=-1), temperature)
    np.testing.assert_allclose(warmed, softmax(logit / temperature, axis=-1), atol=1e-12)
    # at 0.05 classes may become as improbable as a number can be, and so equal
    ordered = np.take_along_axis(warmed, logit.argsort(axis=-1), axis=-1)
    assert (np.diff(ordered, axis=-1) >= 0).all()


def simulate_labels(n, temperature, seed=0):
    """Logits of a classifier, and labels drawn from its probabilities at another temperature."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, size=(n, 5))
    cumulative = softmax(logit / temperature, axis=1).cumsum(axis=1)
    return logit, (rng.random((n, 1)) > cumulative[:, :-1]).sum(axis=1)


def lose(log_temperature, logit, y):
    return log_loss(y, softmax(logit / np.exp(log_temperature), axis=1), labels=range(5))


@pytest.mark.parametrize("temperature", [0.08, 0.5, 3.0, 12.0])  # it is sought from 0.05 to 20
def test_the_temperature_has_the_least_log_loss(temperature):
    logit, y = simulate_labels(300, temperature, seed=1)
    found = np.log(rejection.fit_temperature(softmax(logit, axis=1), y))
    expected = minimize_scalar(lose, bracket=(-1, 1), args=(logit, y), tol=1e-8).x  # Brent's, from scikit-learn's loss
    assert found == pytest.approx(expected, abs=1e-4)  # a minimum is flat: bits of the loss move it by 1e-6 or so
    losses = [lose(value, logit, y) for value in np.linspace(-2.9, 2.9, 30)]
    assert lose(found, logit, y) <= min(losses)


def test_certainty_survives_any_temperature_and_a_certain_miss_leaves_a_finite_one():
    for temperature in (0.01, 1, 20):
        np.testing.assert_array_equal(rejection.warm(np.eye(4), temperature).round(3), np.eye(4))
    p = np.vstack([np.eye(5), np.eye(5)[:1]])
    assert 1 < rejection.fit_temperature(p, np.array([0, 1, 2, 3, 4, 1])) < np.inf


# --- what is refused

P = np.full((3, 5), 0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection.measure_doubt(P), r"draws has shape \(3, 5\); wanted: \(draw, obs, class\)"),
        (lambda: rejection.measure_doubt(P[None, :0]), r"\(1, 0, 5\); wanted: .* none empty"),
        (lambda: rejection.measure_doubt(P[None] - 1), r"draws holds values outside \[0, 1\]"),
        (lambda: rejection.measure_doubt(P[None] * 2), "draws holds rows that do not add up to 1"),
        (lambda: rejection.measure_doubt(np.ma.masked_equal([P], 0.2)), "draws has 15 masked values; wanted"),
        (lambda: rejection.choose_threshold([]), r"doubt has shape \(0,\); wanted: \(obs,\)"),
        (lambda: rejection.choose_threshold([1, np.nan]), "doubt holds values that are NaN"),
        (lambda: rejection.choose_threshold([1], share=1), "share=1; wanted: between 0 and 1"),
        (lambda: rejection.auroc([1], [np.inf]), "outside holds values that are NaN or infinite"),
        (lambda: rejection.bootstrap(np.mean, [[1]], seed=None), "seed=None"),
        (lambda: rejection.bootstrap(np.mean, [[1]], seed=0, n_boot=1), "n_boot=1, level=0.95; wanted: at least 2"),
        (lambda: rejection.bootstrap(np.mean, [[1]], seed=0, level=1), "level=1; wanted: .* between 0 and 1"),
        (
            lambda: rejection.bootstrap(np.mean, [[1, 2]], seed=0, clusters=[[0, 0, 1]]),
            r"\(3,\); wanted: .* of 2 images",
        ),
        (lambda: rejection.bootstrap(np.mean, [[1, 2]], seed=0, clusters=[None] * 2), "2 entries for 1 samples"),
        (lambda: rejection.trace_risk([1, 2], [True]), r"correct has shape \(1,\); wanted: .* of 2"),
        (lambda: rejection.trace_risk([1, 2], [3, 0]), "correct holds int64; wanted: True or False"),
        (lambda: rejection.warm(P, 0), "temperature=0; wanted: above 0"),
        (lambda: rejection.fit_temperature(P * 2, [1, 2, 3]), "p holds rows that do not add up to 1"),
        (lambda: rejection.fit_temperature(np.ma.masked_equal(P, 0.2), [1, 2, 3]), "p has 15 masked values; wanted"),
        (lambda: rejection.fit_temperature(P, [1, 2]), r"y has shape \(2,\); wanted: .* of 3 images"),
        (lambda: rejection.fit_temperature(P, [1, 2, 5]), r"\[5\]; wanted: the numbers 0 to 4"),
    ],
)
def test_a_wrong_argument_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
