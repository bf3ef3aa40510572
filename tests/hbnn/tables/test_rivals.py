"""Rivals of the network: what they learn, from which rows, and what they do not know."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hbnn import Refused, tables
from hbnn.tables import _compare, _model, _predict_rival, _rivals
from made import make_fit, make_rows, make_table, make_tenants, read_known, read_tenants
from sklearn.exceptions import ConvergenceWarning

FAST = ("line", "quadratic")


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (20,)})


def split(n, part=4):
    """Places of rows for training and, every fourth, for testing."""
    return np.flatnonzero(np.arange(n) % part > 0), np.arange(0, n, part)


def score_rivals(rows, test, names=FAST, **options):
    where = np.arange(len(rows.group))
    train, test = where[~np.isin(where, test)], np.asarray(test)
    found = [tables.fit_rival(name, rows, train, test, seed=0, **options) for name in names]
    return [tables.score_rows(each, rows.take(test)).mean() for each in found]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("line", "rent"), ("quadratic", "by"), ("trees", "moved"), ("trees", "rent"), ("trees", "by")],
)
def test_rivals_predict_every_kind_and_groups_that_they_never_saw(monkeypatch, name, outcome):
    frame = make_tenants().assign(n=np.resize([1, 9], 60))
    rows = read_tenants(frame, outcome, weight="n" if outcome == "rent" else None)
    train, test = np.flatnonzero(rows.group > 0), np.flatnonzero(rows.group == 0)
    found = tables.fit_rival(name, rows, train, test, seed=0, new_groups=True)
    assert np.isfinite(tables.score_rows(found, rows.take(test))).all()
    monkeypatch.setattr(_rivals, "MOST_CATEGORIES", 2)  # means of groups for trees
    again = tables.fit_rival(name, rows, train, test, seed=0, refits=2)
    assert again.draws.shape[:2] == (2, len(test))


@pytest.mark.parametrize(("dispersion", "low", "high"), [(0, 0, 0.2), (0.8, 0.6, 1.1)])
def test_rivals_of_counts_learn_means_and_how_far_counts_vary_about_them(dispersion, low, high):
    rng = np.random.default_rng(4)
    rate = rng.gamma(dispersion**-2, dispersion**2, 400) if dispersion else 1.0
    mean = np.exp(1 + rng.normal(0, 0.4, 10))[np.repeat(np.arange(10), 40)]
    rows, (train, test) = make_table(lambda g, _: rng.poisson(mean * rate), n_groups=10, n_rows=40), split(400)
    for name in (*FAST, "trees"):
        found = tables.fit_rival(name, rows, train, test, seed=0, refits=3)
        again = np.sqrt((found.noise**2 - found.draws) / found.draws**2)
        assert low < again[0, 0] < high
        assert name != "line" or abs(np.log(found.draws.mean(axis=0) / mean[test])).mean() < 0.25
    none = tables.fit_rival("line", replace(rows, y=np.where(np.arange(400) % 4 > 0, 0, 1)), train, test, seed=0)
    assert np.isfinite(tables.score_rows(none, rows.take(test))).all()


def test_rivals_of_heavy_tails_are_not_pulled_and_learn_the_tails(monkeypatch):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (60,)})
    rng, level = np.random.default_rng(5), np.repeat(np.random.default_rng(6).normal(0, 9, 10), 60)
    rows, (train, test) = make_table(lambda g, _: rng.standard_t(1.5, len(g)), n_groups=10, n_rows=60), split(600)
    mean = 500 + level + 5 * rows.values[:, 0]
    rows = replace(rows, kind="heavy", y=mean + rows.y)
    for name, far in (("line", 0.5), ("quadratic", 0.5), ("trees", 2)):
        found = tables.fit_rival(name, rows, train, test, seed=0, refits=3)
        assert np.abs(found.draws.mean(axis=0) - mean[test]).mean() < far
        assert name == "trees" or (1 < found.tails[0, 0] < 2.2 and 0.7 < found.noise[0, 0] < 1.4)
    normal = tables.fit_rival("line", replace(rows, kind="real"), train, test, seed=0)
    assert np.abs(normal.draws[0] - mean[test]).mean() > 0.5


def test_rivals_know_second_groups():
    rng, second = np.random.default_rng(4), np.arange(200) % 6
    level = np.array([9, 1, -9, 4, -4, 0.0])[second]
    rows = make_table(lambda g, _: level + rng.normal(size=len(g)), n_groups=10)
    rows = replace(rows, second_group=second, second_groups=tuple("abcdef"))
    train, test = np.flatnonzero(rows.group > 0), np.flatnonzero(rows.group == 0)
    for name in (*FAST, "trees"):
        mean = tables.fit_rival(name, rows, train, test, seed=0, new_groups=True).draws[0]
        assert np.abs(mean - level[test]).mean() < 2.5, name


def test_a_row_is_weighed_by_the_measurements_that_it_is_the_mean_of():
    """A few means of a hundred measurements each beside single ones that are far off."""
    rng, n, frame = np.random.default_rng(5), np.resize([1, 1, 1, 1, 100], 60), make_tenants()
    frame = frame.assign(n=n, y=5.0 * frame["income"] + rng.normal(0, 30, 60) / np.sqrt(n))
    rows = read_tenants(frame, "y", weight="n", features=["income"])
    train, test = np.arange(40), np.arange(40, 60)
    plain, weighed = (tables.fit_rival("line", r, train, test, seed=0) for r in (replace(rows, weight=None), rows))
    off = [np.abs(p.draws[0] - 5.0 * frame["income"][test]).mean() for p in (plain, weighed)]
    assert off[1] < off[0] / 2
    one, many = weighed.noise[0, n[test] == 1][0], weighed.noise[0, n[test] == 100][0]
    assert 20 < one < 45
    assert 3 < many < 10  # and what the line does not know


@pytest.mark.parametrize("kind", ["real", "heavy"])
def test_what_a_new_group_shares_does_not_shrink_with_a_weight(kind):
    """Levels with an sd of one beside noise of one measurement, or of a hundred."""
    rng, g, weight = np.random.default_rng(7), np.repeat(np.arange(60), 8), np.resize([1.0, 100.0], 480)
    draw = rng.standard_t(3, 480) if kind == "heavy" else rng.normal(size=480)
    y = rng.normal(size=60)[g] + 3.0 + draw / np.sqrt(weight)
    frame = pd.DataFrame({"g": g, "a": rng.normal(size=480), "w": weight, "y": y})
    columns = {"group": "g", "features": ["a"], "outcome": "y", "kind": kind, "weight": "w"}
    rows, asked = tables.read_table(frame[g < 40], **columns), tables.read_table(frame[g >= 40], **columns)
    found = _compare.cross_validate(rows, ["line"], _compare.Plan(over=("rows", "groups"), seed=1, n_folds=3))
    told = tables.tabulate_predictions(asked, _predict_rival.predict_rival("line", rows, asked, 1, found))
    inside = told["y"].between(told["low"], told["high"]).groupby(asked.weight).mean()
    assert inside.between(0.8, 0.98).all(), inside
    with pytest.raises(Refused, match="the table has no weight"):
        _predict_rival.predict_rival("line", rows, replace(asked, weight=None), 1, found)


def test_what_rows_of_a_group_share_is_told_from_what_they_do_not():
    rng, group = np.random.default_rng(0), np.repeat(np.arange(200), np.resize([3, 10], 200))
    missed = rng.normal(0, 2, 200)[group] + rng.normal(size=len(group))
    assert abs(_predict_rival._correlate_within(missed, group) - 0.8) < 0.05
    assert _predict_rival._correlate_within(rng.normal(size=len(group)), group) < 0.05


@pytest.mark.parametrize("kind", ["real", "binary", "classes"])
def test_a_rival_knows_how_far_its_means_are_unknown(kind):
    """A line's bootstrap has the spread that its formula gives; probabilities add up."""
    made = {"real": lambda g, r: r.normal(size=g.size), "binary": lambda g, r: r.choice(list("aabbb"), g.size)}
    rows = make_table(made.get(kind, lambda g, r: r.choice(list("abc"), g.size)), n_groups=5, n_rows=40, seed=3)
    where = np.arange(len(rows.group))
    found = tables.fit_rival("line", rows, where, where[:9], seed=1, refits=60)
    once = tables.fit_rival("line", rows, where, where[:9], seed=1)
    np.testing.assert_allclose(found.draws.mean(axis=0), once.draws[0], atol=1e-3)
    if kind == "real":
        assert 0.5 < (found.draws.std(axis=0) / (1 / np.sqrt(40))).mean() < 1.6
    elif kind == "classes":
        np.testing.assert_allclose(found.draws.sum(axis=2), 1)


class Loud(_rivals.LogisticRegression):
    """A model that warns of itself."""

    warning = ConvergenceWarning

    def fit(self, X, y):
        warnings.warn("not as it should be", self.warning, stacklevel=1)
        return super().fit(X, y)


def test_only_warnings_that_are_meant_are_silenced(monkeypatch):
    monkeypatch.setattr(_rivals, "LogisticRegression", Loud)
    rows = read_tenants(make_tenants().assign(by=[*np.resize(["bus", "car", "foot"], 59), "tram"]), "by")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a class in one row, and a solver that needs more steps
        tables.fit_rival("line", rows, np.arange(60), np.arange(5), seed=0)
    monkeypatch.setattr(Loud, "warning", RuntimeWarning)
    with pytest.warns(RuntimeWarning, match="not as it should be"):
        tables.fit_rival("line", rows, np.arange(60), np.arange(5), seed=0)


@pytest.mark.parametrize("most", [250, 5])
def test_no_rival_learns_from_the_rows_that_it_predicts(monkeypatch, most):
    """A leak, planted: with the other test rows moved, and all their outcomes, nothing may change."""
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (5, 10)})
    monkeypatch.setattr(_rivals, "MOST_CATEGORIES", most)
    rows, train, test = read_known("none", 0), np.arange(0, 300, 2), np.arange(1, 300, 2)
    labels, values = rows.y.copy(), rows.values.copy()
    labels[test] += 100
    values[test[1:]] += 10
    for name in (*FAST, "trees"):
        both = (rows, replace(rows, y=labels, values=values))
        a, b = (tables.fit_rival(name, each, train, test, seed=0) for each in both)
        np.testing.assert_array_equal(a.draws[:, 0], b.draws[:, 0])
        np.testing.assert_array_equal(a.noise, b.noise)


def test_a_class_of_one_group_alone_can_be_left_out_with_it_and_of_two_groups_one():
    rows = make_table(lambda g, rng: np.where(g == 2, "yes", "no"), n_groups=6)
    assert score_rivals(rows, np.flatnonzero(rows.group == 2), new_groups=True) == pytest.approx([np.log(1 / 1001)] * 2)
    assert min(score_rivals(rows, np.flatnonzero(rows.group == 0), new_groups=True)) > np.log(0.5)
    rows = make_table(lambda g, rng: rng.normal(size=g.size), n_groups=2)
    assert min(score_rivals(rows, np.flatnonzero(rows.group == 0), new_groups=True)) > -2


def test_settings_are_tuned_where_a_class_is_missing_in_an_inner_fold():
    """With the errors of such folds taken for scores, the strongest penalty would win, whatever the data say."""
    rows = make_table(lambda g, rng: np.where(g == 3, "c", np.where(rng.random(g.size) < 0.5, "a", "b")), 12)
    bent = replace(rows, values=rows.values + 3 * np.eye(3)[rows.y][:, :2])
    assert score_rivals(bent, np.flatnonzero(rows.group == 0), ("line",), new_groups=True)[0] > np.log(0.8)


@pytest.mark.parametrize("constant", [0.1, 0.0])
def test_a_feature_that_is_constant_in_training_does_not_run_away(constant):
    rows = make_table(lambda g, rng: rng.normal(size=g.size), n_groups=6)
    values = np.column_stack([rows.values[:, 0], np.full(120, constant)])
    values[7, 1] = 1.0
    assert score_rivals(replace(rows, values=values), [7], (*FAST, "trees"))[0] > -5
    center, width = _model.measure_columns(np.delete(values, 7, axis=0))
    assert (center[1], width[1]) == (constant, 1.0)


def test_more_groups_than_trees_can_tell_apart_are_told_apart_by_their_means(monkeypatch):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (60,)})
    rows = make_table(lambda g, rng: np.random.default_rng(1).normal(0, 5, 300)[g] + rng.normal(size=g.size), 300, 6)
    error = tables.fit_rival("trees", rows, np.arange(1, 1800), np.arange(1), seed=0).noise
    assert error < 2.5  # levels differ by 5, noise is 1: by number the error would stay near 5


def test_a_group_on_both_sides_of_a_fold_is_noticed_and_an_unknown_rival_is_refused(monkeypatch):
    fake = make_fit("real")
    rows = make_rows(fake, group=None)
    monkeypatch.setattr(_rivals._network, "fit_network", lambda *a, **k: fake)
    with pytest.raises(RuntimeError, match="both sides"):
        _rivals.predict_fold(rows, np.arange(8), rows, seed=0, new_groups=True)
    with pytest.raises(ValueError, match="rivals='line'; wanted: some of 'line'"):
        tables.compare_rivals(rows, seed=0, rivals="line")
    with pytest.raises(ValueError, match="wanted: some of 'line'"):
        tables.fit_rival("forest", rows, np.arange(4), np.arange(4, 8), seed=0)
