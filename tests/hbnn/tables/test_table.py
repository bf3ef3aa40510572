"""A reader's own table: what is read, what is refused and in which words, how it is split, and what is written."""

import gzip
import re
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from bookkit import models
from hbnn import Refused, metrics, prediction, tables
from hypothesis import given, settings
from hypothesis import strategies as st

GOOD = {"group": "town", "features": ["age", "income"], "outcome": "moved"}


def make_frame(sizes=(30, 12, 20), seed=0):
    """A table of three towns, classes in turn."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    return pd.DataFrame({
        "town": np.repeat(["Ulm", "Bonn", "Aachen"][: len(sizes)], sizes),
        "age": rng.integers(18, 90, n),
        "income": rng.normal(30, 5, n).round(2),
        "moved": np.concatenate([np.arange(size) % 3 == 0 for size in sizes]).astype(int),
        "name": [f"person {i}" for i in range(n)],
    })  # fmt: skip


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def rows(frame):
    return tables.read_table(frame, **GOOD, ids=["name"])


@pytest.fixture
def write(tmp_path):
    """Write text into a file and give its path."""

    def write_text(text, name="people.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write_text


def refuses(source, *words, **changes):
    """Reading `source` raises ValueError with these words in it."""
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        tables.read_table(source, **(GOOD | changes))
    assert all(word in str(caught.value) for word in words[1:]), caught.value


def make_posterior(n_groups=3, n_features=2, bias=False, seed=0):
    """Draws of a hierarchical network with two layers of three units, as if from two chains."""
    rng = np.random.default_rng(seed)
    shapes = [(n_features, 3), (3, 3), (3,)]
    posterior = {}
    for k, shape in enumerate(shapes, 1):
        posterior[f"sd{k}"] = abs(rng.normal(size=(2, 5)))
        posterior[f"mu{k}"] = rng.normal(size=(2, 5, *shape))
        posterior[f"z{k}"] = rng.normal(size=(2, 5, n_groups, *shape))
        if bias:
            posterior[f"bias_mu{k}"] = rng.normal(size=(2, 5, *shape[1:]))
            posterior[f"bias_z{k}"] = rng.normal(size=(2, 5, n_groups, *shape[1:]))
    return posterior


# --- what is read --------------------------------------------------------------------------------------------


def test_a_file_and_its_frame_hold_the_same_in_the_same_order(frame, tmp_path):
    frame.to_csv(tmp_path / "people.csv", index=False)
    before = frame.copy()
    for rows in (tables.read_table(source, **GOOD, ids=["name"]) for source in (frame, tmp_path / "people.csv")):
        np.testing.assert_array_equal(rows.values, frame[["age", "income"]].to_numpy())
        np.testing.assert_array_equal(rows.y, frame["moved"])
        assert (rows.groups, rows.features) == (("Aachen", "Bonn", "Ulm"), ("age", "income"))
        assert [rows.groups[g] for g in rows.group] == frame["town"].tolist()
        assert rows.ids["name"].tolist() == frame["name"].tolist()
        assert (rows.values.dtype, rows.y.dtype) == (np.float64, np.int32)
    pd.testing.assert_frame_equal(frame, before)


def test_some_rows_are_a_table_of_the_same_groups(frame, rows):
    n, ones = rows.count()
    assert (n.tolist(), ones.tolist()) == ([20, 12, 30], [7, 4, 10])
    some = rows.take([40, 3])
    assert (some.groups, some.ids["row"].tolist(), some.group.tolist()) == (rows.groups, [40, 3], [1, 2])
    np.testing.assert_array_equal(some.values, frame.loc[[40, 3], ["age", "income"]])
    assert some.ids["name"].tolist() == ["person 40", "person 3"]
    assert some.y.tolist() == frame.loc[[40, 3], "moved"].tolist()


def test_lines_of_a_file_are_counted_as_an_editor_does_and_other_columns_may_be_anything(write):
    path = write("town,age,income,moved,,,note,note\nUlm,30,1,0,,,a,\n,,,,,,,\n\nBonn,40,2,1,,,,b\n\n")
    assert tables.read_table(path, **GOOD).ids["line"].tolist() == [2, 5]


@pytest.mark.parametrize(
    ("towns", "groups"),
    [
        (["Caf\u00e9", "Cafe\u0301"], ("Caf\u00e9",)),  # two normal forms of Unicode
        ([" Ulm", "Ulm "], ("Ulm",)),
        ([10.0, 2.0], ("2", "10")),
        (["007", "7"], ("007", "7")),
    ],
)
def test_groups_are_named_as_a_person_would_tell_them_apart(frame, towns, groups):
    assert tables.read_table(frame.assign(town=towns * 31), **GOOD).groups == groups


def test_what_spreadsheets_write_is_read(write, tmp_path):
    marked = write("town , age,income,moved\n Ulm,30,1.5,0\nUlm ,40,2,1\n", encoding="utf-8-sig")
    np.testing.assert_array_equal(tables.read_table(marked, **GOOD).values, [[30, 1.5], [40, 2]])
    german = write("town;age;income;moved\nUlm;30;1,5;0\nBonn;40;2,25;1\n")
    rows = tables.read_table(german, **GOOD, sep=";", decimal=",")
    assert rows.values[:, 1].tolist() == [1.5, 2.25]
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(b"town,age,income,moved\nUlm,30,1,0\n"))
    assert tables.read_table(tmp_path / "people.csv.gz", **GOOD, classes=(0, 1)).values.tolist() == [[30, 1]]


def test_carried_columns_keep_all_their_digits_and_may_be_called_na(frame, write):
    frame = frame.assign(NA=[f"00{2**70 + i}" for i in range(61)] + ["None"])
    rows = tables.read_table(write(frame.to_csv(index=False)), **GOOD, ids=["NA"])
    assert rows.ids["NA"].tolist() == frame["NA"].tolist()


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([1.0, 0.0], None),
        (["True", "0"], None),
        (["yes", "no"], ("no", "yes")),
        ([2, 1], (1, 2)),
        (["yes", "yes"], ("no", "yes")),
    ],
)
def test_the_second_class_is_1(frame, labels, classes):
    found = tables.read_table(frame.assign(moved=labels * 31), **GOOD, classes=classes).y
    assert found.tolist() == [1, int(labels[0] == labels[1])] * 31


TWO_TOWNS = "town,age,income,moved\nKöln,30,1,0\nBonn,20,2,1\n"


# --- what is refused, in which words -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["people.csv is no table", "a CSV file"]),
        ("town,age,income,moved\nUlm,30,1,0,5\n", ["line 2"]),
        ("town,age,income,moved\n", ["people.csv has names and no rows"]),
        ("town,age,,moved\nUlm,30,1,0\n", ["no column 'income'; there are 'town', 'age', ''"]),
        ("town;age;income;moved\nUlm;30;1;0\n", ["'town;age;income;moved'; pass sep=';' or"]),
        ("town;age;income;moved\nUlm;30;1,5;0\n", ["pass sep=';' or", "decimal=','"]),  # a comma in the second line
    ],
)
def test_a_file_that_is_no_table_is_refused(write, text, words):
    refuses(write(text), *words)


def test_a_file_in_another_encoding_and_one_that_is_not_there_are_named(write):
    path = write("town,age,income,moved\nKöln,30,1,0\n", encoding="latin-1")
    refuses(path, "people.csv is no table: 'utf-8' codec", "encoding='utf-8'")
    assert tables.read_table(write(TWO_TOWNS, encoding="latin-1"), **GOOD, encoding="latin-1").groups[0] == "Bonn"
    with pytest.raises(FileNotFoundError, match=r"peple\.csv"):
        tables.read_table(path.with_name("peple.csv"), **GOOD)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": ["age", "incom"]}, ["no column 'incom'; there are 'town', 'age'", "Did you mean 'income'?"]),
        ({"group": 3}, ["no column 3"]),
        ({"features": ["age", "town"]}, ["column 'town' is there or asked for twice"]),
        ({"features": "age"}, ["features='age'", "lists of column names"]),
        ({"features": []}, ["at least one feature"]),
        ({"ids": "name"}, ["ids='name'"]),
        ({"classes": "no"}, ["classes='no'", "different values"]),
        ({"classes": {"no": 0, "yes": 1}}, ["classes={'no': 0, 'yes': 1}"]),
        ({"classes": (0, 1), "outcome": None}, ["classes=(0, 1)", "outcome=None"]),
        ({"decimal": ";"}, ["decimal=';'", "'.' or ','"]),
    ],
)
def test_arguments_that_make_no_sense_are_refused(frame, changes, words):
    refuses(frame, *words, **changes)


YES = ["yes", "no"] * 31
MISSING = [np.nan] + [1.0] * 61


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("income", [np.nan] * 32 + [1.0] * 30, ["'income' is missing in 32 rows of 62 (rows 0, 1, 2 and 29 more)"]),
        ("town", MISSING, ["group 'town' is missing in 1 row of 62 (row 0)", "none called NA"]),
        ("moved", MISSING, ["outcome 'moved' is missing in 1 row of 62 (row 0)", "--predict FILE"]),
        ("age", ["young", "old"] + [1] * 60, ["'age' holds text, 'young' and 'old', in 2 rows of 62 (rows 0 and 1)"]),
        ("income", [np.inf] + [1.0] * 61, ["'income' is infinite or beyond 1e150 in 1 row of 62 (row 0)"]),
        ("moved", [2, *[0, 1] * 30, 0], ["'0' (31 rows), '1' (30 rows) and '2' (1 row); wanted: kind='classes'"]),
    ],
)
def test_values_that_cannot_be_used_are_counted_and_located(frame, column, values, words):
    refuses(frame.assign(**{column: values}), *words)


@pytest.mark.parametrize("number", ["1,5", "1,234.5"])
def test_a_comma_is_not_taken_for_a_decimal_comma_or_a_mark_for_thousands(write, number):
    path = write(f'town,age,income,moved\nUlm,30,"{number}",0\n')
    refuses(path, f"'income' holds text, '{number}'", "line 2", "'.' as the decimal point", "decimal=','")


def test_marks_for_thousands_are_read_where_commas_are_decimal_points_and_else_asked_about(write):
    path = write("town;age;income;moved\nUlm;1.234;1.234,5;0\nBonn;980;2;1\n")
    rows = tables.read_table(path, **GOOD, sep=";", decimal=",")
    np.testing.assert_array_equal(rows.values, [[1234, 1234.5], [980, 2]])
    path = write("town;age;income;moved\nUlm;1.234;1;0\nBonn;980;2;1\n")
    refuses(path, "'age' holds '1.234', in 1 row", "decimal=',' where '1.234' is 1234, or decimal='.'", sep=";")
    assert tables.read_table(path, **GOOD, sep=";", decimal=".").values[0, 0] == 1.234
    refuses(write("town;age;income;moved\nUlm;1.23;1,5;0\n"), "'age' holds text, '1.23'", sep=";", decimal=",")


def test_german_marks_and_two_spellings_of_a_class_are_no_classes(frame):
    refuses(frame.assign(moved=["1,0", "1,3"] * 31), "decimal=',' where commas are decimal points")
    refuses(frame.assign(moved=["yes", "no", "Yes", "no"] * 15 + YES[:2]), "one spelling of 'Yes' and 'yes'")


def test_words_are_columns_and_tomorrow_has_the_same(frame):
    words = frame.assign(pet=pd.Categorical(["cat", "dog", "ape", "dog"] * 15 + ["cat", "ape"]))
    columns = GOOD | {"features": ["age", "pet"]}
    rows = tables.read_table(words, **columns)
    assert rows.features == ("age", "pet=cat", "pet=dog")
    assert rows.levels == {"pet": ("ape", "cat", "dog")}
    later = tables.read_table(words[1:2], **(columns | {"outcome": None}), like=rows)
    np.testing.assert_array_equal(later.values[0, 1:], [0, 1])
    with pytest.raises(ValueError, match=r"'pet' holds 'eel', in 1 row of 62 .*one of 'ape', 'cat'"):
        tables.read_table(
            words.assign(pet=words["pet"].astype(str).where(words.index > 0, "eel")), **columns, like=rows
        )
    refuses(frame.assign(pet=[f"p{k}" for k in range(62)]), "at most 20 words, of 62", **{"features": ["pet"]})
    refuses(frame.assign(day=["01/03/2024"] * 62), "dates such as 2024-12-31", **{"features": ["day"]})
    refuses(frame.assign(month="2024-01"), "is '2024-01' in all rows", features=["month"])


def test_a_feature_that_is_missing_is_filled_in_and_marked_and_tomorrow_in_the_same_way(frame, write):
    gaps = frame.assign(pet=["cat", "dog", None, "dog"] * 15 + ["cat", "dog"])
    gaps["income"] = gaps["income"].where(gaps.index % 4 > 0)
    columns = GOOD | {"features": ["age", "income", "pet"]}
    rows = tables.read_table(gaps, **columns)
    assert rows.features == ("age", "income", "income=missing", "pet=dog", "pet=missing")
    mean = gaps["income"].mean()
    np.testing.assert_allclose(rows.values[:4, 1], [mean, *frame["income"][1:4]])
    np.testing.assert_array_equal(rows.values[:4, 2:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
    assert [f"'income' is missing in 16 rows; the mean, {mean:.4g}" in rows.notes[0], len(rows.notes)] == [True, 2]
    later = write("town,age,income,pet\nUlm,30,,\nBonn,40,5,dog\n")
    read = tables.read_table(later, **(columns | {"outcome": None}), like=rows)
    np.testing.assert_allclose(read.values, [[30, mean, 1, 0, 1], [40, 5, 0, 1, 0]])
    with pytest.raises(ValueError, match=r"'age' is missing in 1 row .*wanted: a value in all rows, as where"):
        tables.read_table(gaps.assign(age=[None, *range(61)]), **columns, like=rows)


def test_an_ordered_category_keeps_its_order(frame):
    marks = pd.Categorical(["low", "high", "mid"] * 20 + ["low", "mid"], ["low", "mid", "high"], ordered=True)
    rows = tables.read_table(frame.assign(moved=marks), **GOOD)
    assert (rows.classes, rows.ordered) == (("low", "mid", "high"), True)
    plain = frame.assign(moved=marks.astype(str))
    with pytest.raises(ValueError, match=r"wanted: classes=\[…\] with 'high', 'low' and 'mid' from low to high"):
        tables.read_table(plain, **GOOD, kind="ordered")
    again = tables.read_table(plain, **GOOD, kind="ordered", classes=["low", "mid", "high"])
    np.testing.assert_array_equal(again.y, rows.y)
    numbers = tables.read_table(frame.assign(moved=[10, 9, 1, 3, 9, 10] * 10 + [1, 3]), **GOOD, kind="ordered")
    assert (numbers.classes, numbers.kind) == (("1", "3", "9", "10"), "classes")
    few = tables.read_table(plain[:2], **GOOD, like=rows)
    assert (few.kind, few.classes, few.ordered, few.y.tolist()) == (rows.kind, rows.classes, True, [0, 2])
    refuses(frame.assign(moved=marks), "wanted: two classes", kind="binary")
    assert not tables.read_table(frame.assign(moved=marks), **GOOD, kind="classes").ordered


def test_what_looks_odd_is_a_note(frame):
    gone = frame.assign(income=frame["income"].where(frame.index % 6 > 0, -200_000))
    rows = tables.read_table(gone.assign(town=gone["town"].replace("Ulm", "ulm").where(gone.index > 9, "Ulm")), **GOOD)
    assert [note[:20] for note in rows.notes] == ["groups 'Ulm' and 'ul", "'income' is -200000 "]
    leak = frame.assign(age=24.0 - frame["income"])
    (note,) = tables.read_table(leak, **(GOOD | {"features": ["age"], "outcome": "income", "kind": "real"})).notes
    assert note.startswith("'age' alone gives 'income' away")


def test_everything_that_is_wrong_with_the_values_is_said_at_once(frame):
    twice = pd.concat([frame, frame])  # rows may bear one number more than once
    twice["income"] = twice["income"].where(twice["name"] != "person 5", np.inf)
    twice["moved"] = twice["moved"].where(twice["name"] != "person 7", 7)
    refuses(
        twice,
        "2 things are wrong",
        "- feature 'income' is infinite or beyond 1e150 in 2 rows of 124 (rows 5 and 5)",
        "- outcome",
    )
    refuses(frame.assign(moved=YES), "'no' (31 rows)", "'no' and 'Yes'", classes=("no", "Yes"))


# --- splitting -----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.one_of(st.none(), st.integers(2, 40)))
@settings(max_examples=50, deadline=None)
def test_a_split_uses_every_row_once_within_its_group(seed, share, most):
    rows = tables.read_table(make_frame(), **GOOD)
    split = tables.split_rows(rows, seed=seed, train_share=share, max_train=most)
    everything = np.concatenate([*split.rows_train, *split.rows_test])
    assert sorted(everything) == list(range(62))
    for g, (train, test) in enumerate(zip(split.rows_train, split.rows_test, strict=True)):
        assert set(rows.group[train]) == set(rows.group[test]) == {g}
        assert set(rows.y[train]) == {0, 1}
        assert most is None or len(train) <= most
    for X, y, where in zip(split.X_test, split.y_test, split.rows_test, strict=True):
        np.testing.assert_array_equal(y, rows.y[where])
        np.testing.assert_allclose(X * split.width + split.center, rows.values[where])


def test_a_class_has_the_same_share_in_training_and_models_take_the_unequal_groups(rows):
    split = tables.split_rows(rows, seed=0)
    assert [labels.sum() for labels in split.y_train] == [4, 2, 5]
    model = models.hierarchical_bnn(split.X_train, split.y_train, n_hidden=(3, 3), bias=True)
    assert model["n_obs"].get_value().tolist() == [10, 6, 15]


@pytest.mark.parametrize(("outcome", "classes"), [("by", {0, 1, 2}), ("income", None)])
def test_an_outcome_of_any_kind_is_split_and_a_rare_class_is_in_training(frame, outcome, classes):
    frame["by"] = np.where(np.arange(62) % 12 == 0, "tram", np.resize(["bus", "car"], 62))
    rows = tables.read_table(frame, group="town", features=["age"], outcome=outcome)
    split = tables.split_rows(rows, seed=0, train_share=0.3)
    assert [len(y) for y in split.y_train] == [6, 4, 9]
    for y, where in zip(split.y_train, split.rows_train, strict=True):
        np.testing.assert_array_equal(y, rows.y[where])
        assert classes is None or set(y) == classes


def test_training_rows_have_mean_0_and_sd_1_whatever_the_test_rows_are(frame):
    frame.loc[3, "income"] = 1e-320  # a number as any other
    split = tables.split_rows(tables.read_table(frame, **GOOD), seed=0)
    X = np.concatenate(split.X_train)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=1e-12)
    frame.loc[split.rows_test[0], "income"] *= 1000
    again = tables.split_rows(tables.read_table(frame, **GOOD), seed=0)
    np.testing.assert_array_equal(again.center, split.center)
    np.testing.assert_array_equal(again.width, split.width)


def test_one_seed_gives_one_split_and_another_gives_another(rows):
    a, b, c = (np.concatenate(tables.split_rows(rows, seed=seed).rows_train) for seed in (1, 1, 2))
    assert a.tolist() == b.tolist() != c.tolist()


def test_a_group_of_one_class_can_be_asked_for(frame):
    rows = tables.read_table(frame.assign(moved=frame["moved"].where(frame["town"] != "Bonn", 0)), **GOOD)
    fails_to_split(rows, "in group 'Bonn' (12 rows, 0 of class 1)", "allow_one_class=True")
    split = tables.split_rows(rows, seed=0, allow_one_class=True)
    assert [labels.sum() for labels in split.y_train] == [4, 0, 5]


def fails_to_split(rows, *words, **options):
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        tables.split_rows(rows, **({"seed": 0} | options))
    assert all(word in str(caught.value) for word in words[1:]), caught.value


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
    fails_to_split(tables.read_table(frame.assign(**changes), **GOOD), *words)


def test_a_feature_that_varies_in_test_rows_alone_and_a_table_without_labels_are_refused(frame, rows):
    varies = np.isin(np.arange(62), tables.split_rows(rows, seed=0).rows_test[0])
    fails_to_split(tables.read_table(frame.assign(age=varies), **GOOD), "the same in all training rows: 'age'")
    fails_to_split(tables.read_table(frame, **(GOOD | {"outcome": None})), "outcome=None", "wanted: rows read with")


@pytest.mark.parametrize(
    "options", [{"seed": None}, {"train_share": 1.0}, {"train_share": 0}, {"max_train": 1}, {"min_rows": 3}]
)
def test_a_split_needs_sensible_arguments(rows, options):
    fails_to_split(rows, f"{next(iter(options))}=", **options)


# --- predicting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bias", "activation"), [(False, "tanh"), (True, "relu")])
def test_each_row_is_predicted_by_the_network_of_its_group(rows, bias, activation):
    split, posterior = tables.split_rows(rows, seed=0), make_posterior(bias=bias)
    p = tables.predict_rows(posterior, split, rows, activation=activation)
    expected = prediction.predict_groups(posterior, split.scale(rows.values), activation=activation)
    for row in (0, 35, 61):
        np.testing.assert_allclose(p[:, :, row], expected[:, :, rows.group[row], row])


def test_a_new_table_with_some_of_the_groups_is_predicted_by_name(frame, rows):
    split, posterior = tables.split_rows(rows, seed=0), make_posterior()
    some = frame[frame["town"] != "Bonn"].sample(frac=1, random_state=1).drop(columns="moved")
    new = tables.read_table(some, **(GOOD | {"outcome": None}))
    whole = tables.predict_rows(posterior, split, rows)
    np.testing.assert_allclose(tables.predict_rows(posterior, split, new), whole[:, :, new.ids["row"]])


def test_an_unknown_group_and_other_features_cannot_be_predicted(frame, rows):
    split, posterior = tables.split_rows(rows, seed=0), make_posterior()
    new = tables.read_table(frame.replace({"town": {"Bonn": "Bon"}}), **GOOD)
    with pytest.raises(ValueError, match=r"group 'Bon' .*Did you mean 'Bonn'\?"):
        tables.predict_rows(posterior, split, new)
    turned = tables.read_table(frame, **(GOOD | {"features": ["income", "age"]}))
    with pytest.raises(ValueError, match=r"\('income', 'age'\); wanted: \('age', 'income'\)"):
        tables.predict_rows(posterior, split, turned)
    with pytest.raises(ValueError, match="2 groups; wanted: 3"):
        tables.predict_rows(make_posterior(n_groups=2), split, rows)


@pytest.fixture
def draws(rows):
    return tables.predict_rows(make_posterior(), tables.split_rows(rows, seed=0), rows)


def test_predictions_have_a_mean_an_interval_and_two_kinds_of_uncertainty(rows, draws):
    found = tables.tabulate_predictions(rows, draws, interval=0.8)
    flat = draws.reshape(-1, 62)
    np.testing.assert_allclose(found["probability"], flat.mean(axis=0))
    np.testing.assert_allclose(found["low"], np.quantile(flat, 0.1, axis=0))
    np.testing.assert_allclose(found["high"], np.quantile(flat, 0.9, axis=0))
    np.testing.assert_allclose(found["noise"], metrics.split_uncertainty(flat)["noise"])
    np.testing.assert_allclose(found["ignorance"], metrics.split_uncertainty(flat)["ignorance"])
    assert list(found)[:4] == ["row", "name", "town", "moved"]


def test_predictions_are_written_whole_over_predictions_and_never_over_a_table(rows, draws, tmp_path, monkeypatch):
    path = tmp_path / "predictions.csv"
    found = tables.write_predictions(path, rows, draws)
    pd.testing.assert_frame_equal(pd.read_csv(path), found, check_dtype=False)
    tables.write_predictions(path, rows, draws / 2)
    assert pd.read_csv(path)["probability"].max() <= 0.5
    before = path.read_bytes()
    monkeypatch.setattr(pd.DataFrame, "to_csv", Mock(side_effect=OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        tables.write_predictions(path, rows, draws)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["predictions.csv"]
    path.write_text("town,age\nUlm,3\n")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"predictions\.csv is there already"):
        tables.write_predictions(path, rows, draws)
    assert path.read_bytes() == before
    with pytest.raises(OSError, match="folder"):
        tables.write_predictions(tmp_path / "no" / "p.csv", rows, draws)


def test_predictions_that_do_not_fit_are_refused(frame, rows, draws):
    with pytest.raises(ValueError, match="61 rows; wanted: 62"):
        tables.tabulate_predictions(rows, draws[..., 1:])
    with pytest.raises(ValueError, match="interval=90; wanted: 0 < interval < 1"):
        tables.tabulate_predictions(rows, draws, interval=90)
    with pytest.raises(ValueError, match="outside"):
        tables.tabulate_predictions(rows, draws + 1)
    taken = tables.read_table(frame.rename(columns={"name": "low"}), **GOOD, ids=["low"])
    with pytest.raises(ValueError, match="'low'"):
        tables.tabulate_predictions(taken, draws)


@pytest.mark.parametrize(("spread", "said"), [(1.0, True), (0.2, False)])
def test_a_skewed_amount_is_advised_its_logarithm(frame, spread, said):
    wage = np.exp(np.random.default_rng(1).normal(0, spread, len(frame)))
    rows = tables.read_table(frame.assign(wage=wage), **(GOOD | {"outcome": "wage", "kind": None, "classes": None}))
    assert any("Its logarithm" in note for note in rows.notes) == said


def test_numbers_far_out_are_told_of_a_kind_that_bears_them(frame):
    size = np.random.default_rng(1).normal(50, 3, len(frame))
    for far, said in ((0, False), (900, True)):
        size[[3, 7]] += far, -far
        rows = tables.read_table(frame.assign(size=size), **(GOOD | {"outcome": "size", "kind": None, "classes": None}))
        assert any("2 rows have 'size' far" in note for note in rows.notes) == said


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1970-01-02", "1970-01-01 12:00", ""], [1, 0.5, 0.75]),
        (["2.1.1970", "01.01.1970 12:00", ""], [1, 0.5, 0.75]),
        (pd.to_datetime(["1970-01-02 00:00", "1970-01-01 12:00", None]), [1, 0.5, 0.75]),
        (["18:30", "0:15:36", ""], [18.5, 0.26, 9.38]),
    ],
)
def test_dates_are_days_and_times_are_hours(frame, texts, numbers):
    rows = tables.read_table(frame[:60].assign(when=list(texts) * 20), **(GOOD | {"features": ["when"]}))
    np.testing.assert_allclose(rows.values[:3, 0], numbers)
    assert rows.features == ("when", "when=missing")
    assert "'when' is read as" in str(rows)


@pytest.mark.parametrize(
    "texts",
    [
        ["12.31.2024", "01.02.2024"],
        ["03/01/2024 10:00", "04/01/2024 10:00"],
        ["2024-01-01 00:00:00+01:00", "2024-01-02 00:00:00+01:00"],
        ["25:99", "10:00"],
        ["1 days 01:00:00", "0 days 02:00:00"],
    ],
)
def test_dates_that_may_be_others_are_asked_about(frame, texts):
    refuses(frame.assign(when=texts * 31), "holds text", features=["when"])


def test_tomorrow_has_dates_where_there_were_dates(frame):
    early = frame.assign(when=["0001-01-01", "9999-12-31"] * 31)
    rows = tables.read_table(early, **(GOOD | {"features": ["when"]}))
    np.testing.assert_allclose(rows.values[:2, 0], [-719162, 2932896])
    asked = {"group": "town", "features": ["when"], "outcome": None, "like": rows}
    assert tables.read_table(early[:1], **asked).values[0, 0] == -719162
    refuses(frame.assign(when=10), "is read as a number", "wanted: days since 1970, as", **asked)
    with pytest.raises(ValueError, match="on a circle of 7"):
        tables.read_table(early, **(asked | {"cycles": {"when": 7}}))


def test_what_comes_round_is_on_a_circle(frame):
    when = pd.date_range("2024-01-01", periods=62, freq="36h")
    late = frame.assign(hour=np.arange(62) % 25, when=when)
    asked = GOOD | {"features": ["hour", "when"], "cycles": {"hour": 24, "when": 365.25}}
    rows = tables.read_table(late, **asked)
    assert rows.features == ("sin(hour)", "cos(hour)", "when", "sin(when)", "cos(when)")
    np.testing.assert_allclose(rows.values[0, :2], rows.values[24, :2], atol=1e-12)
    np.testing.assert_allclose(np.hypot(rows.values[:, 3], rows.values[:, 4]), 1)
    for cycles, words in (({"day": 7}, "'day'; wanted: features"), ({"hour": "24"}, "after how much")):
        with pytest.raises(ValueError, match=words):
            tables.read_table(late, **(asked | {"cycles": cycles}))
    with pytest.raises(Refused, match=r"holds 'person 0'.* and is in cycles"):
        tables.read_table(late, **(asked | {"features": ["name"], "cycles": {"name": 7}}))
