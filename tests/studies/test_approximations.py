"""Laplace and Pathfinder where the answer is known, and the table's choices that were made on other data."""

import numpy as np
import pymc as pm
import pytest
from bookkit import data, models
from bookkit.report import read_data
from scipy import linalg
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from studies import _approximations, _replicate, _rivals, cheaper_ways, one_choice, replication

Y = np.array([0.3, -1.2, 2.0])
SD = 0.5  # of an observation; the prior's is 1


def make_normal_model():
    """Three means with a conjugate prior: posterior N(0.8 y, 0.2), independent."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 1, shape=3)
        pm.Normal("y", mean, SD, observed=Y)
    return model


@pytest.mark.parametrize("fit", [_approximations.fit_laplace, _approximations.fit_pathfinder])
def test_a_normal_posterior_is_found_exactly(fit):
    draws, found = fit(make_normal_model(), 1)
    means = draws["mean"]
    assert means.shape == (_approximations.N_DRAWS, 3)
    np.testing.assert_allclose(means.mean(axis=0), 0.8 * Y, atol=5 * np.sqrt(0.2 / 1000))
    np.testing.assert_allclose(np.cov(means.T), 0.2 * np.eye(3), atol=0.05)
    np.testing.assert_array_equal(fit(make_normal_model(), 1)[0]["mean"], means)
    assert found.get("flat_directions", 0) == 0
    assert not found.get("khat", 0) > 0.7  # NaN where all weights are alike, as they should be here


def test_a_direction_in_which_the_density_rises_gets_the_width_of_the_prior():
    with pm.Model() as model:
        pm.Normal("a", 0, 0.1)
        pm.Flat("b")  # no curvature at all
    draws, found = _approximations.fit_laplace(model, 1)
    assert found["flat_directions"] == 1
    assert draws["a"].std() == pytest.approx(0.1, rel=0.1)
    assert draws["b"].std() == pytest.approx(1, rel=0.1)


def test_positive_variables_come_back_positive():
    with pm.Model() as model:
        pm.HalfNormal("sd", 2.0)
    draws, _ = _approximations.fit_laplace(model, 1)
    assert (draws["sd"] > 0).all()
    # the density of log(sd) is highest at sd = 2 and falls there with a curvature of 2
    assert np.log(draws["sd"]).mean() == pytest.approx(np.log(2), abs=5 / np.sqrt(2 * 1000))
    assert np.log(draws["sd"]).std() == pytest.approx(np.sqrt(0.5), rel=0.15)


def test_near_the_mode_the_linearised_network_is_the_network():
    moons = data.rotated_moons(seed=1, n_groups=2, n_train=6, n_test=4)
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(3,))
    rng = np.random.default_rng(0)
    n = sum(int(np.prod(np.shape(value))) for value in model.initial_point().values())
    mode, shifts = rng.normal(size=n), rng.normal(size=(5, n))
    gaps = []
    for size in (1e-2, 1e-3):
        linear = _approximations.predict_linearised(model, mode, size * shifts, moons.X_test)
        draws = _approximations._constrain(model, mode + size * shifts)
        posterior = {name: values[None] for name, values in draws.items()}
        gaps.append(
            abs(linear - _approximations.prediction.predict_groups(posterior, moons.X_test, activation="tanh")[0]).max()
        )
    assert gaps[1] < gaps[0] / 50  # the error falls with the square
    # a saturated network, whose probabilities round to 0 and 1; its logits, which are linearised, do not
    draws = {name: values[None] for name, values in _approximations._constrain(model, 30 * np.ones((2, n))).items()}
    p = _approximations.prediction.predict_groups(draws, moons.X_test, activation="tanh")[0]
    linear = _approximations.predict_linearised(model, 30 * np.ones(n), np.zeros((2, n)), moons.X_test)
    assert p.max() == 1
    np.testing.assert_allclose(linear, p, rtol=1e-12)


def test_what_was_tuned_is_the_best_on_the_tuning_data():
    rows = [row for row in read_data("cheaper_ways")["rows"] if row["part"] == "tuning"]
    for method, chosen in cheaper_ways.CHOSEN.items():
        mean = {
            level: np.mean([row["lpd"] for row in rows if (row["method"], row["level"]) == (method, level)])
            for level in cheaper_ways.list_levels(method)
        }
        assert max(mean, key=mean.get) == chosen
    assert {row["data_seed"] for row in rows}.isdisjoint(replication.DATA_SEEDS)


@pytest.fixture(scope="module")
def moons():
    return data.rotated_moons(seed=7, n_groups=3, n_train=40, n_test=60, noise=0.05)


PEERS = {"deep ensemble": 3, "one-hot MLP": 1, "one-hot ensemble": 3, "learned angles": 3}  # and their members
N_DRAWS = dict.fromkeys(cheaper_ways.NO_INTERVAL, 1) | {cheaper_ways.TRUNK: 3} | PEERS  # 200 of all others
LEVELS = {cheaper_ways.RESCALED: "1.4", cheaper_ways.TRUNK: "0.1, 6"} | dict.fromkeys(cheaper_ways.RATES, "0.1, 0.05")


@pytest.mark.parametrize("method", [*LEVELS, "one-hot, last-layer Laplace", *cheaper_ways.AS_THEY_ARE,
                                    *(pytest.param(name, marks=pytest.mark.slow) for name in PEERS)])  # fmt: skip
def test_a_rival_learns_clear_moons_and_answers_at_any_points(monkeypatch, moons, method):
    monkeypatch.setattr(_approximations, "N_MEMBERS", 3)
    predict_at, _ = cheaper_ways.fit_rival(method, LEVELS.get(method, "0.1"), moons, 1)
    p = predict_at(moons.X_test)
    assert p.shape == (1, N_DRAWS.get(method, 200), 3, 60)
    assert ((p.mean(axis=(0, 1)) > 0.5) == moons.y_test).mean(axis=1).min() > 0.85  # each group by its own answer
    everywhere = predict_at(moons.X_test[1])
    np.testing.assert_allclose(everywhere[..., 1, :], p[..., 1, :], rtol=1e-6)


def test_one_trunk_takes_groups_of_unlike_sizes(monkeypatch, moons):
    monkeypatch.setattr(_approximations, "N_MEMBERS", 3)
    few = {name: [getattr(moons, name)[g][:n] for g, n in enumerate((40, 5, 30))] for name in ("X_train", "y_train")}
    p = _rivals.fit_trunk(data.Moons(**(vars(moons) | few)), 0.1, 1, width=6)(moons.X_test)
    assert ((p.mean(axis=(0, 1)) > 0.5) == moons.y_test).mean(axis=1)[[0, 2]].min() > 0.85


def make_covariance(X, log_size, log_width):
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    return np.exp(log_size - squares / (2 * np.exp(log_width)))


def test_the_evidence_of_a_gaussian_process_is_scikit_learns_and_its_slope_is_right(moons):
    X, y = moons.X_train[0], moons.y_train[0].astype(float)
    made = GaussianProcessClassifier(ConstantKernel(5.0) * RBF(0.8), optimizer=None).fit(X, y)
    at = np.log([5.0, 0.8**2])
    evidence, *mode = _rivals.fit_mode(make_covariance(X, *at), y)
    assert evidence == pytest.approx(made.log_marginal_likelihood_value_, abs=1e-3)  # it stops a step earlier
    slope = _rivals.find_slope(make_covariance(X, *at), y, *mode)
    for step in 1e-4 * np.eye(2):
        high, low = (make_covariance(X, *(at + sign * step)) for sign in (1, -1))
        rise = (_rivals.fit_mode(high, y)[0] - _rivals.fit_mode(low, y)[0]) / 2e-4
        assert (slope * (high - low)).sum() / 2e-4 == pytest.approx(rise, rel=2e-3)  # as exact as the mode


def test_turning_the_first_layer_is_turning_the_points_back(moons):
    model = _rivals.type_angles(moons, n_hidden=3)
    rng = np.random.default_rng(0)
    draw = {name: rng.normal(size=np.shape(value)) for name, value in model.initial_point().items()}
    away = linalg.null_space(np.ones((1, 3)))
    angle = _approximations.point_lines(moons) + away @ draw["change"]
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    X = moons.X_train
    back = np.stack([c * X[..., 0] + s * X[..., 1], c * X[..., 1] - s * X[..., 0]], axis=-1)
    logit = np.tanh(np.tanh(back @ draw["w1"]) @ draw["w2"]) @ draw["w3"]
    loglik = -np.logaddexp(0, np.where(moons.y_train == 1, -logit, logit)).sum()
    assert model.compile_logp(vars=[model["y"]])(draw) == pytest.approx(loglik)


def test_narrow_angles_turn_the_same_points():
    wide, narrow = (one_choice.make_data(*choice, 301) for choice in (("default", "default"), ("angles", "60 degrees")))
    assert np.ptp(narrow.angle) < 60 < np.ptp(wide.angle)
    np.testing.assert_allclose((narrow.X_train**2).sum(axis=-1), (wide.X_train**2).sum(axis=-1))
    back = data.rotate(narrow.X_train[3], float(wide.angle[3] - narrow.angle[3]))
    np.testing.assert_allclose(back, wide.X_train[3], atol=1e-12)


def test_unbalanced_categories_have_a_thousand_points_in_all():
    moons = one_choice.make_data("balance", "5 to 200", 301)
    counts = [len(y) for y in moons.y_train]
    assert (min(counts), max(counts)) == (5, 200)
    assert len(counts) == 18
    assert sum(counts) == 1005
    assert moons.X_test.shape == (18, 50, 2)


def test_the_jackknife_of_a_mean_is_the_error_of_the_mean_of_blocks(monkeypatch):
    monkeypatch.setattr(_replicate.metrics, "score", lambda p, y: dict.fromkeys(("accuracy", "lpd", "brier"), p.mean()))
    draws = np.random.default_rng(0).normal(size=(100, 2, 3))
    blocks = draws.reshape(20, 5, 2, 3).mean(axis=(1, 2, 3))
    assert _replicate._jackknife(draws, np.zeros((2, 3)))["lpd"] == pytest.approx(blocks.std(ddof=1) / np.sqrt(20))
