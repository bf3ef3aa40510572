"""Rows for training and testing: every row once, classes and groups spread, and scales of the training rows alone."""

import re

import numpy as np
import pytest
from bookkit import models
from hbnn import tables
from hypothesis import given, settings
from hypothesis import strategies as st
from made import make_people, make_tenants, read_known


def read(frame, features=("age", "income"), outcome="moved"):
    return tables.read_table(frame, group="town", features=list(features), outcome=outcome)


@pytest.fixture
def frame():
    return make_people()


@pytest.fixture
def rows(frame):
    return read(frame)


def refuses(rows, *words, **options):
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        tables.split_rows(rows, **({"seed": 0} | options))
    assert all(word in str(caught.value) for word in words[1:]), caught.value


@given(st.integers(0, 10**6), st.one_of(st.none(), st.integers(2, 40)))
@settings(max_examples=20)
def test_a_split_uses_every_row_once_within_its_group_and_hangs_on_its_seed(seed, most):
    rows = read(make_people())
    split, again = (tables.split_rows(rows, seed=seed, max_train=most) for _ in range(2))
    assert sorted(np.concatenate([*split.rows_train, *split.rows_test])) == list(range(62))
    for g, (train, test) in enumerate(zip(split.rows_train, split.rows_test, strict=True)):
        assert set(rows.group[train]) == set(rows.group[test]) == {g}
        assert set(rows.y[train]) == {0, 1}
        assert most is None or len(train) <= most
        assert train.tolist() == again.rows_train[g].tolist()
    for X, y, where in zip(split.X_test, split.y_test, split.rows_test, strict=True):
        np.testing.assert_array_equal(y, rows.y[where])
        np.testing.assert_allclose(X * split.width + split.center, rows.values[where])


def test_a_class_has_the_same_share_in_training_and_models_take_the_unequal_groups(rows):
    split, other = (tables.split_rows(rows, seed=seed) for seed in (0, 1))
    assert np.concatenate(split.rows_train).tolist() != np.concatenate(other.rows_train).tolist()
    assert [labels.sum() for labels in split.y_train] == [4, 2, 5]
    model = models.hierarchical_bnn(split.X_train, split.y_train, n_hidden=(3, 3), bias=True)
    assert model["n_obs"].get_value().tolist() == [10, 6, 15]


def test_training_rows_have_mean_0_and_sd_1_whatever_the_test_rows_are(frame):
    frame.loc[3, "income"] = 1e-320  # a number as any other
    split = tables.split_rows(read(frame), seed=0)
    X = np.concatenate(split.X_train)
    np.testing.assert_allclose([X.mean(axis=0), X.std(axis=0)], [[0, 0], [1, 1]], atol=1e-12)
    frame.loc[split.rows_test[0], "income"] *= 1000
    again = tables.split_rows(read(frame), seed=0)
    np.testing.assert_array_equal([again.center, again.width], [split.center, split.width])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"town": "Ulm"}, ["1 values of 'town'", "two groups or more"]),
        ({"town": ["ulm"] * 2 + ["Ulm"] * 60}, ["in group 'ulm' (2 rows, 1 of class 1)", "at least 10"]),
        ({"town": np.arange(62)}, ["and 42 more", "at least 10"]),
        ({"age": np.tile([1e-320, -1e-320], 31)}, ["the same in all training rows: 'age'"]),
    ],
)
def test_tables_that_no_model_can_learn_from_are_refused(frame, changes, words):
    refuses(read(frame.assign(**changes)), *words)


def test_folds_hold_every_row_once_leave_out_whole_groups_and_spread_classes():
    known = read_known("none", 0)
    folds = tables.make_folds(known, seed=0)
    assert np.bincount(folds["rows"]).tolist() == [60] * 5
    for g in range(20):
        assert len(set(folds["groups"][known.group == g])) == 1
        assert set(folds["rows"][known.group == g]) == set(range(5))
    rows = read(make_tenants().assign(moved=np.resize([0, 0, 0, 0, 1], 60)))
    fold = tables.make_folds(rows, seed=3, n_folds=3)["rows"]
    assert np.bincount(fold[rows.y == 1]).tolist() == [4, 4, 4]
    assert np.bincount(fold).tolist() == [20, 20, 20]
