"""Rivals of the network: what they learn, from which rows, and what they do not know."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hbnn import tables
from hbnn.tables import _fit
from made import make_table, make_tenants, read_tenants
from studies.advice import read_known
from threadpoolctl import threadpool_info, threadpool_limits

FAST = ("line", "quadratic")
KINDS = ("moved", "rent", "by")


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch):
    monkeypatch.setattr(_fit, "TREES", {"max_iter": (20,)})


def split(n, part=4):
    """Places of rows for training and, every fourth, for testing."""
    return np.flatnonzero(np.arange(n) % part > 0), np.arange(0, n, part)


def score_lines(rows, group):
    """Log scores of a line and of a quadratic for a group that was left out."""
    train, test = np.flatnonzero(rows.group != group), np.flatnonzero(rows.group == group)
    found = [tables.fit_rival(name, rows, train, test, seed=0, new_groups=True) for name in FAST]
    return [tables.score_rows(each, rows.take(test)).mean() for each in found]


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("line", "rent"), ("quadratic", "by"), ("smooth", "moved"), ("smooth", "rent"), *(("trees", of) for of in KINDS)],
)
def test_rivals_predict_every_kind_and_groups_that_they_never_saw(monkeypatch, name, outcome):
    rows = read_tenants(make_tenants(), outcome)
    train, test = np.flatnonzero(rows.group > 0), np.flatnonzero(rows.group == 0)
    found = tables.fit_rival(name, rows, train, test, seed=0, new_groups=True)
    assert np.isfinite(tables.score_rows(found, rows.take(test))).all()
    monkeypatch.setattr(_fit, "MOST_CATEGORIES", 2)  # means of groups for trees
    again = _fit.Rival(name, rows.take(train), 0).predict(rows.take(np.arange(60)))
    assert again.draws.shape[:2] == (1 if name == "trees" else 200, 60)
    assert np.isfinite(tables.score_rows(again, rows)).all()


@pytest.mark.parametrize(("dispersion", "low", "high"), [(0, 0, 0.2), (0.8, 0.6, 1.1)])
def test_rivals_of_counts_learn_means_and_how_far_counts_vary_about_them(dispersion, low, high):
    rng = np.random.default_rng(4)
    rate = rng.gamma(dispersion**-2, dispersion**2, 400) if dispersion else 1.0
    mean = np.exp(1 + rng.normal(0, 0.4, 10))[np.repeat(np.arange(10), 40)]
    rows, (train, test) = make_table(lambda g, _: rng.poisson(mean * rate), n_groups=10, n_rows=40), split(400)
    for name in (*FAST, "smooth", "trees"):
        found = tables.fit_rival(name, rows, train, test, seed=0)
        again = np.sqrt((found.noise**2 - found.draws) / found.draws**2)
        assert low < again[0, 0] < high
        assert name != "line" or abs(np.log(found.draws.mean(axis=0) / mean[test])).mean() < 0.25
    none = tables.fit_rival("line", replace(rows, y=np.where(np.arange(400) % 4 > 0, 0, 1)), train, test, seed=0)
    assert np.isfinite(tables.score_rows(none, rows.take(test))).all()


def test_rivals_are_fitted_by_one_thread(monkeypatch):
    """Where cores are busy, threads of such small fits wait for each other, for minutes."""
    seen, real = set(), _fit._Learner.fit

    def fit(*asked):
        seen.update(pool["num_threads"] for pool in threadpool_info())
        return real(*asked)

    monkeypatch.setattr(_fit._Learner, "fit", fit)
    with threadpool_limits(2):
        tables.fit_rival("line", read_known("none", 0), *split(300), seed=0)
    assert seen == {1}


def test_rivals_know_second_groups():
    rng, second = np.random.default_rng(4), np.arange(200) % 6
    level = np.array([9, 1, -9, 4, -4, 0.0])[second]
    rows = make_table(lambda g, _: level + rng.normal(size=len(g)), n_groups=10)
    rows = replace(rows, second_group=second, second_groups=tuple("abcdef"))
    train, test = np.flatnonzero(rows.group > 0), np.flatnonzero(rows.group == 0)
    for name in (*FAST, "smooth", "trees"):
        mean = tables.fit_rival(name, rows, train, test, seed=0, new_groups=True).draws[0]
        assert np.abs(mean - level[test]).mean() < 2.5, name


@pytest.mark.parametrize("kind", ["real", "binary", "classes", "counts"])
def test_a_line_knows_how_far_its_means_are_unknown(kind):
    """Draws of coefficients spread as fits to tables drawn again do; of a new group, the level is unknown, too."""
    made = {
        "real": lambda g, r: r.normal(size=g.size),
        "binary": lambda g, r: np.where(10 * r.random(g.size) < 1 + 2 * g, "a", "b"),
    }
    made |= {"classes": lambda g, r: r.choice(list("abc"), g.size), "counts": lambda g, r: r.poisson(np.exp(g / 2))}
    draws = [_fit.Rival("line", make_table(made[kind], 5, 40, seed=k), 1).predict for k in range(20)]
    asked = make_table(made[kind], 5, 40, seed=0).take(np.arange(0, 200, 40))
    found = [predict(asked).draws for predict in draws]
    told = np.mean([each.std(axis=0) for each in found], axis=0)
    seen = np.std([each.mean(axis=0) for each in found], axis=0)
    assert 0.7 < told.mean() / seen.mean() < 1.6
    level = np.random.default_rng(5).normal(0, 3, 30)
    rows = make_table(lambda g, r: level[g] + r.normal(size=g.size), 30, 8)
    both = _fit.Rival("line", rows, 1).predict(
        replace(rows.take([0, 1, 2]), group=np.array([0, 1, 1]), groups=("0", "new"))
    )
    assert both.draws[:, 0].std() < 1 < 2.3 < both.draws[:, 1].std() < 3.9
    assert abs(np.corrcoef(both.draws[:, 1], both.draws[:, 2])[0, 1]) > 0.9


def test_a_smooth_finds_the_curve_of_each_group_knows_how_well_and_keeps_to_lines():
    """Groups whose curves differ, and then groups whose levels do; a seventh of the rows is left out."""
    rng, g = np.random.default_rng(6), np.repeat(np.arange(20), 21)
    frame = pd.DataFrame({"g": g, "x": rng.uniform(-2, 2, g.size), "few": rng.integers(2, size=g.size)})
    shift, level = rng.uniform(-1, 1, (2, 20))
    curves = np.sin(2 * frame["x"] + shift[g]) + level[g]
    lines = 0.5 * frame["x"] + 0.3 * frame["few"] + level[g]
    (train, test), scores = split(g.size, 7), []
    for mean in (curves, lines):
        frame["y"] = mean + 0.2 * rng.normal(size=g.size)
        rows = tables.read_table(frame, group="g", features=["x", "few"], outcome="y")
        found = {name: tables.fit_rival(name, rows, train, test, seed=0) for name in ("line", "smooth")}
        missed = (found["smooth"].draws.mean(axis=0) - mean[test]) / found["smooth"].draws.std(axis=0)
        assert 0.6 < np.sqrt(np.mean(missed**2)) < 1.5
        assert 0.15 < found["smooth"].noise.mean() < 0.25
        lpd = {name: tables.score_rows(each, rows.take(test)).mean() for name, each in found.items()}
        scores.append(lpd["smooth"] - lpd["line"])
    assert scores[0] > 0.7
    assert scores[1] > -0.05
    many = _fit.Rival("smooth", rows, 0).predict(replace(rows.take(test), groups=("new", *rows.groups[1:])))
    assert many.draws[:, rows.group[test] == 0].std(axis=0).mean() > 2 * many.draws.std(axis=0).mean()


@pytest.mark.parametrize("most", [250, 5])
def test_no_rival_learns_from_the_rows_that_it_predicts(monkeypatch, most):
    """A leak, planted: with the other test rows moved, and all their outcomes, nothing may change."""
    monkeypatch.setattr(_fit, "TREES", {"max_iter": (5, 10)})
    monkeypatch.setattr(_fit, "MOST_CATEGORIES", most)
    rows, train, test = read_known("none", 0), np.arange(0, 300, 2), np.arange(1, 300, 2)
    labels, values = rows.y.copy(), rows.values.copy()
    labels[test] += 100
    values[test[1:]] += 10
    for name in (*FAST, "smooth", "trees"):
        both = (rows, replace(rows, y=labels, values=values))
        a, b = (tables.fit_rival(name, each, train, test, seed=0) for each in both)
        np.testing.assert_array_equal(a.draws[:, 0], b.draws[:, 0])
        np.testing.assert_array_equal(a.noise, b.noise)


def test_a_class_of_one_group_alone_can_be_left_out_with_it_and_of_two_groups_one():
    """With the errors of inner folds without a class for scores, the strongest penalty would win in the last table."""
    rows = make_table(lambda g, rng: np.where(g == 2, "yes", "no"), n_groups=6)
    assert score_lines(rows, 2) == pytest.approx([np.log(1 / 1001)] * 2)
    assert min(score_lines(rows, 0)) > np.log(0.5)
    assert min(score_lines(make_table(lambda g, rng: rng.normal(size=g.size), n_groups=2), 0)) > -2
    rows = make_table(lambda g, rng: np.where(g == 3, "c", np.where(rng.random(g.size) < 0.5, "a", "b")), 12)
    assert score_lines(replace(rows, values=rows.values + 3 * np.eye(3)[rows.y][:, :2]), 0)[0] > np.log(0.8)


def test_more_groups_than_trees_can_tell_apart_are_told_apart_by_their_means(monkeypatch):
    monkeypatch.setattr(_fit, "TREES", {"max_iter": (60,)})
    rows = make_table(lambda g, rng: np.random.default_rng(1).normal(0, 5, 300)[g] + rng.normal(size=g.size), 300, 6)
    error = tables.fit_rival("trees", rows, np.arange(1, 1800), np.arange(1), seed=0).noise
    assert error < 2.5  # levels differ by 5, noise is 1: by number the error would stay near 5
