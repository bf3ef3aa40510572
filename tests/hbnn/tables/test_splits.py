"""Rows for training and testing: every row once, classes and groups spread, and scales of the training rows alone."""

import re

import numpy as np
import pytest
from hbnn import tables
from made import make_people, make_tenants
from studies.advice import read_known


def read(frame):
    return tables.read_table(frame, group="town", features=["age", "income"], outcome="moved")


@pytest.mark.parametrize("most", [None, 2, 9])
def test_a_split_uses_every_row_once_within_its_group_and_is_scaled_by_its_training_rows(most):
    frame = make_people()
    rows = read(frame)
    split, again, other = (tables.split_rows(rows, seed=seed, max_train=most) for seed in (0, 0, 1))
    assert sorted(np.concatenate([*split.rows_train, *split.rows_test])) == list(range(62))
    for g, (train, test) in enumerate(zip(split.rows_train, split.rows_test, strict=True)):
        assert set(rows.group[train]) == set(rows.group[test]) == {g}
        assert set(rows.y[train]) == {0, 1}
        assert most is None or len(train) <= most
        assert train.tolist() == again.rows_train[g].tolist()
    assert np.concatenate(split.rows_train).tolist() != np.concatenate(other.rows_train).tolist()
    if most is None:  # a third of each group has moved
        assert [int(labels.sum()) for labels in split.y_train] == [4, 2, 5]
    X = np.concatenate(split.X_train)
    np.testing.assert_allclose([X.mean(axis=0), X.std(axis=0)], [[0, 0], [1, 1]], atol=1e-12)
    for X, y, where in zip(split.X_test, split.y_test, split.rows_test, strict=True):
        np.testing.assert_array_equal(y, rows.y[where])
        np.testing.assert_allclose(X * split.width + split.center, rows.values[where])
    frame.loc[split.rows_test[0], "income"] *= 1000  # no scale comes from these
    again = tables.split_rows(read(frame), seed=0, max_train=most)
    np.testing.assert_array_equal([again.center, again.width], [split.center, split.width])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"town": "Ulm"}, "two groups or more"),
        ({"town": ["ulm"] * 2 + ["Ulm"] * 60}, "in group 'ulm' (2 rows, 1 of class 1); wanted: at least 10"),
        ({"age": np.tile([1e-320, -1e-320], 31)}, "the same in all training rows: 'age'"),
    ],
)
def test_tables_that_cannot_be_split_are_refused(changes, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        tables.split_rows(read(make_people().assign(**changes)), seed=0)


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
