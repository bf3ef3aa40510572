"""The network as a regressor and a classifier of scikit-learn: its checks, and that it says what the functions say."""

import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hbnn import HierarchicalClassifier, HierarchicalRegressor, Refused, estimators, tables
from hbnn.tables import _fit, _predict, _read
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

N_DRAWS = 20


def fit_lines(rows, *, seed, **_):
    """In place of NUTS, for which a network would be compiled in each check: a line, with a level for each group."""
    _fit.check_network(rows)
    scales = _predict.Scales.measure(rows)
    X, y = scales.scale_features(rows), scales.scale_outcome(rows)
    if rows.classes:
        y = 6.0 * (np.eye(len(rows.classes))[rows.y] if rows.kind == "classes" else rows.y) - 3
    w1, rng, n = 0.1 * np.eye(X.shape[1]), np.random.default_rng(seed), N_DRAWS
    H = np.column_stack([np.tanh(X @ w1), np.eye(len(rows.groups))[rows.group]])
    best = np.linalg.solve(H.T @ H + 1e-3 * np.eye(H.shape[1]), H.T @ y)
    w2, b2 = best[: len(w1)], best[len(w1) :]
    draws = {"w1": np.tile(w1, (n, 1, 1)), "b1": np.zeros((n, len(w1))), "noise": np.full(n, 0.1)}
    for name, mean, each in (("w2", w2, np.tile(w2, (len(b2), *[1] * w2.ndim))), ("b2", b2.mean(axis=0), b2)):
        draws |= {f"{name}_mu": np.tile(mean, (n, *[1] * np.ndim(mean))), f"{name}_sd": np.ones(n)}
        draws[name] = each + 0.01 * rng.normal(size=(n, *each.shape))
    if rows.second_group is not None:
        draws |= {"c": rng.normal(size=(n, len(rows.second_groups))), "c_sd": np.ones(n)}
    schema = {part.name: getattr(rows, part.name) for part in fields(_read.Schema)} | {"ordered": False}
    return _predict.Fit(draws=draws, scales=scales, **schema)


@pytest.fixture
def asked(monkeypatch):
    """Arguments of each fit, a list of dicts, where lines are fitted in place of networks."""
    found = []

    def fit(rows, **arguments):
        found.append({"rows": rows} | arguments)
        return fit_lines(rows, **arguments)

    monkeypatch.setattr(estimators, "_compile_cached", lambda rows, n_units: n_units)
    monkeypatch.setattr(estimators, "fit_network", fit)
    monkeypatch.setattr(_fit, "LEAST_ROWS", 1)  # of a class: the checks have small data
    return found


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    data = {"town": np.resize(["Ulm", "Bonn", "Kiel"], 60), "age": rng.integers(18, 90, 60), "y": rng.normal(size=60)}
    return pd.DataFrame(data | {"job": np.resize(["cook", "nurse"], 60), "rent": rng.normal(800, 100, 60)})


MISSING = "the checks put NaN into the column of groups, and a row of no group is refused"


@parametrize_with_checks(
    [HierarchicalRegressor(), HierarchicalClassifier()],
    expected_failed_checks=lambda model: {"check_estimators_pickle": MISSING},
    xfail_strict=True,
)
def test_it_keeps_to_what_scikit_learn_asks_of_its_models(asked, estimator, check):
    check(estimator)


COLUMNS = {"group": "town", "features": ["age", "job"]}


def test_it_predicts_what_the_functions_predict(asked, frame):
    X, model = frame[["age", "town", "job"]], HierarchicalRegressor("town", random_state=3)
    rows = tables.read_table(frame, outcome="rent", **COLUMNS)
    model.fit(X, frame["rent"])
    expected = tables.predict(fit_lines(rows, seed=model.seed_), rows)
    figures = tables.tabulate_predictions(rows, expected, interval=0.5)
    np.testing.assert_array_equal(model.predict(X), expected.draws.mean(axis=0))
    np.testing.assert_allclose(model.predict_interval(X, level=0.5), figures[["low", "high"]])
    assert model.score_lpd(X, frame["rent"]) == pytest.approx(tables.score_rows(expected, rows).mean())


@pytest.mark.parametrize(("kind", "name"), [("counts", "age"), ("share", "age"), ("real", "y")])
def test_a_number_of_each_kind_is_predicted_in_its_unit(asked, frame, kind, name):
    X, y = frame[["town", "rent", "job"]], frame[name]
    model = HierarchicalRegressor("town", kind=kind, random_state=0).fit(X, y)
    low, high = model.predict_interval(X).T
    assert (low <= high).all()
    assert kind == "real" or (low >= 0).all()
    assert model.fit_.kind == asked[0]["rows"].kind == kind


def test_marks_are_numbers_and_a_regressor_takes_none(asked, frame):
    X = frame[["town", "age"]]
    model = HierarchicalClassifier(kind="ordered").fit(X, np.resize([3, 10, 7], 60))
    assert asked[0]["rows"].ordered
    assert model.classes_.tolist() == [3, 7, 10]
    with pytest.raises(ValueError, match="words; wanted: numbers, from low to high"):
        HierarchicalClassifier(kind="ordered").fit(X, np.resize(["low", "mid", "high"], 60))
    with pytest.raises(ValueError, match="kind='ordered'; wanted: 'real'"):
        HierarchicalRegressor(kind="ordered").fit(X, np.resize([3, 10, 7], 60))


def test_a_row_of_a_new_group_is_predicted_the_same_beside_any_others(asked, frame):
    X = frame[["town", "age"]]
    model = HierarchicalRegressor("town", random_state=0).fit(X, frame["rent"])
    new = X.assign(town=np.resize(["Rom", "Ulm", "Nizza"], len(X)))
    np.testing.assert_array_equal(model.predict_interval(new[3:7]), model.predict_interval(new)[3:7])
    width = np.ptp(model.predict_interval(new), axis=1)
    assert width[::3].min() > width[1::3].max()  # Ulm is known
    both = HierarchicalRegressor("town", second_group="job", random_state=0)
    both.fit(frame[["town", "age", "job"]], frame["rent"])
    assert (both.fit_.features, both.fit_.second_groups) == (("age",), ("cook", "nurse"))
    new = new.assign(job=np.resize(["cook", "baker"], len(X)))
    np.testing.assert_array_equal(both.predict_interval(new[3:7]), both.predict_interval(new)[3:7])
    known = new[new["town"] == "Ulm"][:2]
    np.testing.assert_array_equal(both.predict_interval(known), both.predict_interval(new)[new.index.isin(known.index)])


def test_searches_and_folds_of_whole_groups_take_it(asked, frame):
    X, y = frame[["town", "age", "rent"]], frame["y"]
    model = HierarchicalRegressor("town", random_state=0)
    assert cross_val_predict(model, X, y, cv=3).shape == y.shape
    folds = cross_val_score(model, X, y, cv=GroupKFold(3), groups=X["town"], scoring=HierarchicalRegressor.score_lpd)
    assert np.isfinite(folds).all()
    assert [len(fit["rows"].groups) for fit in asked] == [3, 3, 3, 2, 2, 2]
    search = GridSearchCV(model, {"n_units": [2, 3]}, cv=2).fit(X, y)
    assert {fit["network"] for fit in asked[-5:]} == {2, 3} == {search.best_params_["n_units"], 2, 3}


def test_the_page_on_your_own_file_shows_code_that_runs(asked, frame):
    page = (Path(__file__).parents[2] / "book" / "own_file.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?HierarchicalRegressor.*?)```", page, flags=re.DOTALL)
    hives = frame.rename(columns={"town": "hive", "age": "day", "rent": "sun", "y": "gain"})
    exec(code, names := {"hives": hives, "SEED": 1})
    assert len(names["scores"]) == 3
    assert (names["low"] < names["high"]).all()
    assert [len(fit["rows"].groups) for fit in asked] == [3, 3, 3, 3]  # all hives are in all folds


def test_chains_that_say_too_little_are_warned_of(asked, frame, monkeypatch):
    poor = _predict.Precision(np.array([1.0]), np.array([2.0]), np.array([1.0]))
    monkeypatch.setattr(
        estimators, "fit_network", lambda rows, **given: replace(fit_lines(rows, **given), precision=poor)
    )
    with pytest.warns(ConvergenceWarning, match="not exact enough"):
        HierarchicalRegressor("town").fit(frame[["town", "age"]], frame["rent"])


def test_a_column_that_is_not_there_is_named(asked, frame):
    with pytest.raises(Refused, match="no column 'city'"):
        HierarchicalRegressor("city").fit(frame[["town", "age"]], frame["rent"])
