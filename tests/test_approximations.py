"""Laplace and Pathfinder where the answer is known, and the table's choices that were made on other data."""

import numpy as np
import pymc as pm
import pytest
from bookkit import data, models
from bookkit.report import read_data
from studies import _approximations, _replicate, cheaper_ways, one_choice, replication

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
        gaps.append(abs(linear - _approximations.prediction.predict_groups(posterior, moons.X_test)[0]).max())
    assert gaps[1] < gaps[0] / 50  # the error falls with the square
    # a saturated network, whose probabilities round to 0 and 1; its logits, which are linearised, do not
    draws = {name: values[None] for name, values in _approximations._constrain(model, 30 * np.ones((2, n))).items()}
    p = _approximations.prediction.predict_groups(draws, moons.X_test)[0]
    linear = _approximations.predict_linearised(model, 30 * np.ones(n), np.zeros((2, n)), moons.X_test)
    assert p.max() == 1
    np.testing.assert_allclose(linear, p, rtol=1e-12)


def test_the_decay_of_the_peers_is_the_best_on_the_tuning_data():
    rows = [row for row in read_data("cheaper_ways")["rows"] if row["part"] == "tuning"]
    for method, chosen in cheaper_ways.ALPHA.items():
        mean = {
            alpha: np.mean([row["lpd"] for row in rows if row["method"] == method and row["level"] == str(alpha)])
            for alpha in cheaper_ways.ALPHAS
        }
        assert max(mean, key=mean.get) == chosen
    assert {row["data_seed"] for row in rows}.isdisjoint(replication.DATA_SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "members"), [("deep ensemble", 3), ("one-hot MLP", 1), ("one-hot ensemble", 3),
                                                 ("learned angles", 3)])  # fmt: skip
def test_a_peer_learns_clear_moons_and_answers_at_any_points(monkeypatch, method, members):
    monkeypatch.setattr(_approximations, "N_MEMBERS", 3)
    moons = data.rotated_moons(seed=7, n_groups=3, n_train=40, n_test=60, noise=0.05)
    predict_at = cheaper_ways.PEERS[method](moons, 0.1, 1)
    p = predict_at(moons.X_test)
    assert p.shape == (1, members, 3, 60)
    assert ((p.mean(axis=(0, 1)) > 0.5) == moons.y_test).mean(axis=1).min() > 0.9  # each group by its own answer
    everywhere = predict_at(moons.X_test[1])
    assert everywhere.shape == p.shape
    np.testing.assert_allclose(everywhere[..., 1, :], p[..., 1, :], rtol=1e-9)


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
