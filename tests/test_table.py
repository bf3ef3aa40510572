"""A reader's own table: what is read, what is refused and in which words, how it is split, and what is written."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from bnn import models, predict, score, table
from hypothesis import given, settings
from hypothesis import strategies as st

GOOD = {"group": "town", "features": ["age", "income"], "label": "moved"}


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
    return table.read_table(frame, **GOOD, ids=["name"])


@pytest.fixture
def write(tmp_path):
    """Write text into a file and give its path."""

    def write_text(text, name="people.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write_text


def refuses(source, message, **changes):
    """Reading `source` raises ValueError with these very words in it."""
    with pytest.raises(ValueError, match=re.escape(message)):
        table.read_table(source, **(GOOD | changes))


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


def test_a_csv_file_and_its_frame_hold_the_same(frame, tmp_path):
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    a, b = table.read_table(frame, **GOOD), table.read_table(path, **GOOD)
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.group, b.group)
    assert (a.groups, a.features) == (b.groups, b.features) == (("Aachen", "Bonn", "Ulm"), ("age", "income"))


def test_rows_keep_their_order_their_units_and_their_types(frame, rows):
    np.testing.assert_array_equal(rows.values, frame[["age", "income"]].to_numpy())
    np.testing.assert_array_equal(rows.labels, frame["moved"])
    assert [rows.groups[g] for g in rows.group] == frame["town"].tolist()
    assert rows.ids["name"].tolist() == frame["name"].tolist()
    assert (rows.values.dtype, rows.labels.dtype) == (np.float64, np.int32)


def test_rows_are_counted_by_group(rows):
    n, ones = rows.count()
    assert (n.tolist(), ones.tolist()) == ([20, 12, 30], [7, 4, 10])


def test_some_rows_are_a_table_of_the_same_groups(frame, rows):
    some = rows.take([40, 3])
    assert (some.groups, some.ids["row"].tolist(), some.group.tolist()) == (rows.groups, [40, 3], [1, 2])
    np.testing.assert_array_equal(some.values, frame.loc[[40, 3], ["age", "income"]])
    assert some.ids["name"].tolist() == ["person 40", "person 3"]
    assert some.labels.tolist() == frame.loc[[40, 3], "moved"].tolist()
    assert len(rows.take(rows.labels == 1).values) == 21


def test_reading_leaves_the_frame_as_it_was(frame):
    before = frame.copy()
    table.read_table(frame, **GOOD)
    pd.testing.assert_frame_equal(frame, before)


def test_lines_of_a_file_are_counted_as_an_editor_does(write):
    rows = table.read_table(write("town,age,income,moved\nUlm,30,1,0\n\nBonn,40,2,1\n\n"), **GOOD)
    assert rows.ids["line"].tolist() == [2, 4]


def test_a_name_and_a_column_may_be_called_na(write):
    path = write("town,age,income,moved,NA\nUlm,30,1,0,NA\nUlm,40,2,1,None\nUlm,41,2,1,007\n")
    assert table.read_table(path, **GOOD, ids=["NA"]).ids["NA"].tolist() == ["NA", "None", "007"]


def test_one_name_in_two_normal_forms_of_unicode_is_one_group(frame):
    frame["town"] = ["Caf\u00e9", "Cafe\u0301"] * 31
    assert table.read_table(frame, **GOOD).groups == ("Caf\u00e9",)


def test_a_byte_order_mark_and_spaces_around_names_do_not_matter(write):
    text = "town , age,income,moved\n Ulm,30,1,0\nUlm ,40,2,1\n"
    rows = table.read_table(write(text, encoding="utf-8-sig"), **GOOD)
    assert rows.groups == ("Ulm",)
    assert rows.values[:, 0].tolist() == [30, 40]


def test_semicolons_and_decimal_commas_can_be_asked_for(write):
    path = write("town;age;income;moved\nUlm;30;1,5;0\nBonn;40;2,25;1\n")
    rows = table.read_table(path, **GOOD, sep=";", decimal=",")
    assert rows.values[:, 1].tolist() == [1.5, 2.25]


def test_groups_that_are_numbers_are_sorted_as_numbers_and_named_without_a_point(frame):
    frame["town"] = np.tile([10.0, 2.0], 31)
    assert table.read_table(frame, **GOOD).groups == ("2", "10")


def test_leading_zeros_of_a_group_are_kept(write):
    rows = table.read_table(write("town,age,income,moved\n007,30,1,0\n7,40,2,1\n"), **GOOD)
    assert rows.groups == ("007", "7")


def test_columns_named_by_numbers_are_found():
    frame = pd.DataFrame({1: ["a", "b"], 2: [0.5, 1.5], 3: [0, 1]})
    rows = table.read_table(frame, group="1", features=["2"], label="3")
    assert rows.values.ravel().tolist() == [0.5, 1.5]


@pytest.mark.parametrize("labels", [[True, False] * 31, [1.0, 0.0] * 31, ["1", "0"] * 31, ["True", "False"] * 31])
def test_truth_values_and_numbers_are_labels(frame, labels):
    frame["moved"] = labels
    assert table.read_table(frame, **GOOD).labels.tolist() == [1, 0] * 31


def test_text_labels_are_mapped_when_the_classes_are_named(frame):
    frame["moved"] = np.where(frame["moved"] == 1, "yes", "no")
    rows = table.read_table(frame, **GOOD, classes=("no", "yes"))
    np.testing.assert_array_equal(rows.labels, make_frame()["moved"])
    turned = table.read_table(frame, **GOOD, classes=("yes", "no"))
    np.testing.assert_array_equal(turned.labels, 1 - rows.labels)


def test_classes_may_be_numbers(frame):
    frame["moved"] += 1
    np.testing.assert_array_equal(table.read_table(frame, **GOOD, classes=(1, 2)).labels, make_frame()["moved"])


def test_rows_to_predict_need_no_label(frame):
    rows = table.read_table(frame.drop(columns="moved"), **(GOOD | {"label": None}))
    assert rows.labels is None
    assert rows.count()[1] is None


# --- what is refused, in which words -------------------------------------------------------------------------


def test_a_missing_column_is_named_with_those_that_are_there_and_the_nearest(frame):
    message = "the table has no column 'incom'; there are 'town', 'age', 'income', 'moved' and 'name'. Did you mean"
    refuses(frame, f"{message} 'income'?", features=["age", "incom"])
    refuses(frame, "no column 'Town'", group="Town")
    refuses(frame, "no column 3; there are", group=3)


def test_a_file_with_another_separator_is_recognised(write):
    hint = "pass sep=';' or sep='\\t' where these separate columns, and decimal=',' where commas are decimal points"
    refuses(write("town;age;income;moved\nUlm;30;1;0\n"), f"there are 'town;age;income;moved'; {hint}")
    refuses(write("town;age;income;moved\nUlm;30;1,5;0\n"), hint)  # a comma in the second line, none in the first


def test_a_file_that_is_not_there_is_named(write):
    with pytest.raises(FileNotFoundError, match=r"peple\.csv"):
        table.read_table(write("town\n").with_name("peple.csv"), **GOOD)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "people.csv is no table: No columns to parse from file; wanted: a CSV file"),
        ("\ntown,age,income,moved\nUlm,30,1,0\n", "people.csv is no table"),
        ("town,age,income,moved\n", "people.csv has names and no rows"),
        ("town,age,,moved\nUlm,30,1,0\n", "people.csv has no column 'income'; there are 'town', 'age', ''"),
        ("town,age,income,moved\nUlm,30,1,0,5\n", "Expected 4 fields in line 2, saw 5"),
        ("town,age,age,income,moved\nUlm,30,31,1,0\n", "column 'age' is there or asked for twice"),
    ],
)
def test_a_file_that_is_no_table_is_refused(write, text, message):
    refuses(write(text), message)


def test_a_packed_file_is_read_as_well(tmp_path):
    path = tmp_path / "people.csv.gz"
    path.write_bytes(gzip.compress(b"town,age,income,moved\nUlm,30,1,0\n"))
    assert table.read_table(path, **GOOD).values.tolist() == [[30, 1]]


def test_columns_that_are_not_asked_for_may_be_anything(write):
    path = write("town,age,income,moved,,,note,note\nUlm,30,1,0,,,a,\n,,,,,,,\nBonn,40,2,1,,,,b\n")
    assert table.read_table(path, **GOOD).ids["line"].tolist() == [2, 4]


def test_a_file_in_another_encoding_is_refused(write):
    path = write("town,age,income,moved\nKöln,30,1,0\n", encoding="latin-1")
    refuses(path, "people.csv is no table: 'utf-8' codec can't decode")


def test_a_frame_without_rows_or_with_a_column_twice_is_refused(frame):
    refuses(frame.iloc[:0], "the table has names and no rows")
    refuses(frame.rename(columns={"name": "age"}), "column 'age' is there or asked for twice")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": ["age", "age"]}, "column 'age' is there or asked for twice"),
        ({"features": ["age", "town"]}, "column 'town' is there or asked for twice"),
        ({"features": ["age", "moved"]}, "column 'moved' is there or asked for twice"),
        ({"features": "age"}, "features='age', ids=(); wanted: lists of column names"),
        ({"features": []}, "wanted: lists of column names, at least one feature"),
        ({"ids": "name"}, "ids='name'; wanted: lists of column names"),
        ({"group": ["town"]}, "no column ['town']; there are"),
        ({"classes": "no"}, "classes='no'; wanted: a list of two values"),
        ({"classes": ("no", "no")}, "classes=('no', 'no'); wanted: a list of two values"),
        ({"classes": {"no": 0, "yes": 1}}, "classes={'no': 0, 'yes': 1}; wanted: a list of two values"),
        ({"decimal": ";"}, "decimal=';'; wanted: '.' or ','"),
        ({"classes": (0, 1), "label": None}, "classes=(0, 1); wanted: a list of two values of the label"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(frame, changes, message):
    refuses(frame, message, **changes)


def test_missing_values_are_counted_and_located(frame):
    frame["income"] = frame["income"].where(~frame.index.isin([4, 7, 9, 11, 40]))
    message = "feature 'income' is missing in 5 rows of 62 (rows 4, 7, 9 and 2 more); wanted: a number"
    refuses(frame, message)


def test_an_empty_field_of_a_file_is_located_by_its_line(write):
    path = write("town,age,income,moved\nUlm,30,1,0\nUlm,,2,1\n")
    refuses(path, "people.csv: feature 'age' is missing in 1 row of 2 (line 3)")


def test_a_missing_group_and_a_missing_label_are_refused(frame):
    refuses(frame.assign(town=frame["town"].where(frame.index != 5)), "group 'town' is missing in 1 row of 62 (row 5)")
    refuses(frame.assign(town=frame["town"].where(frame.index != 5)), "in each row, none called NA or None")
    without = frame.assign(moved=frame["moved"].where(frame.index != 5))
    refuses(without, "label 'moved' is missing in 1 row of 62 (row 5); wanted: a label in each row, or label=None")


def test_text_in_a_feature_is_shown_and_located(frame):
    frame["age"] = frame["age"].astype(object)
    frame.loc[[3, 8], "age"] = ["young", "old"]
    refuses(frame, "feature 'age' holds text, 'young' and 'old', in 2 rows of 62 (rows 3 and 8); wanted: numbers")


@pytest.mark.parametrize("number", ["1,5", "1,234", "-1,5", "1,234.5"])
def test_a_comma_is_not_taken_for_a_decimal_comma_or_a_mark_for_thousands(write, number):
    path = write(f'town,age,income,moved\nUlm,30,"{number}",0\n')
    message = "(line 2); wanted: '.' as the decimal point, no mark for thousands; or pass decimal=','"
    refuses(path, f"feature 'income' holds text, '{number}', in 1 row of 1 {message}")


@pytest.mark.parametrize("number", ["1.234", "1.000", "1.234,5", "-1.234"])
def test_with_a_decimal_comma_a_point_is_no_part_of_a_number(write, number):
    path = write(f"town;age;income;moved\nUlm;{number};1,5;0\nBonn;999;2;1\n")
    message = f"'age' holds text, '{number}', in 1 row of 2 (line 2); wanted: ',' as the decimal point, no mark for"
    refuses(path, message, sep=";", decimal=",")


@pytest.mark.parametrize("value", [np.inf, 1e308, -1e200])
def test_values_that_no_standard_deviation_can_hold_are_refused(frame, value):
    frame.loc[3, "income"] = value
    refuses(frame, "feature 'income' is infinite or beyond 1e150 in 1 row of 62 (row 3); wanted: finite numbers in an")


def test_text_labels_are_counted_with_a_way_to_map_them(frame):
    frame["moved"] = np.where(frame["moved"] == 1, "yes", "no")
    message = (
        "label 'moved' holds 'no' (41 rows) and 'yes' (21 rows); wanted: 0 and 1. classes=('no', 'yes') makes 'yes'"
    )
    refuses(frame, message)


def test_more_than_two_labels_are_refused(frame):
    frame.loc[0, "moved"] = 2
    refuses(frame, "'2' (1 row); wanted: two classes, '0' and '1', or others in classes")


def test_labels_outside_the_named_classes_are_refused(frame):
    frame["moved"] = np.where(frame["moved"] == 1, "yes", "no")
    message = "label 'moved' holds 'no' (41 rows) and 'yes' (21 rows); wanted: two classes, 'no' and 'Yes', or others"
    refuses(frame, message, classes=("no", "Yes"))


def test_rows_of_one_of_two_classes_can_be_read(frame):
    rows = table.read_table(frame.assign(moved="no"), **GOOD, classes=("yes", "no"))
    assert rows.labels.tolist() == [1] * 62


def test_rows_may_bear_one_number_more_than_once(frame):
    twice = pd.concat([frame, frame])
    assert table.read_table(twice, **GOOD).values.shape == (124, 2)
    twice["income"] = twice["income"].where(twice["name"] != "person 5")
    refuses(twice, "feature 'income' is missing in 2 rows of 124 (rows 5 and 5)")


def test_everything_that_is_wrong_with_the_values_is_said_at_once(frame):
    frame.loc[3, "income"] = np.nan
    frame.loc[4, "income"] = np.inf
    frame.loc[5, "moved"] = 7
    with pytest.raises(ValueError, match="3 things are wrong") as caught:
        table.read_table(frame, **GOOD)
    assert [line[:9] for line in str(caught.value).splitlines()[1:]] == ["- feature", "- feature", "- label '"]


@given(st.sets(st.integers(0, 61), min_size=1), st.sampled_from(["age", "income"]))
@settings(max_examples=30, deadline=None)
def test_any_missing_value_is_found(holes, column):
    frame = make_frame().astype({"age": float})
    frame.loc[sorted(holes), column] = np.nan
    with pytest.raises(ValueError, match=rf"'{column}' is missing in {len(holes)} row") as caught:
        table.read_table(frame, **GOOD)
    assert re.search(rf"rows? {min(holes)}\b", str(caught.value))


# --- splitting -----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.floats(0.05, 0.95), st.one_of(st.none(), st.integers(2, 40)))
@settings(max_examples=50, deadline=None)
def test_a_split_uses_every_row_once_within_its_group(seed, share, most):
    rows = table.read_table(make_frame(), **GOOD)
    split = table.split_rows(rows, seed=seed, train_share=share, max_train=most)
    everything = np.concatenate([*split.rows_train, *split.rows_test])
    assert sorted(everything) == list(range(62))
    for g, (train, test) in enumerate(zip(split.rows_train, split.rows_test, strict=True)):
        assert set(rows.group[train]) == set(rows.group[test]) == {g}
        assert set(rows.labels[train]) == {0, 1}
        assert most is None or len(train) <= most
    for X, y, where in zip(split.X_test, split.y_test, split.rows_test, strict=True):
        np.testing.assert_array_equal(y, rows.labels[where])
        np.testing.assert_allclose(X * split.width + split.center, rows.values[where])


def test_a_class_has_the_same_share_in_training_and_in_testing(rows):
    split = table.split_rows(rows, seed=0)
    assert [labels.sum() for labels in split.y_train] == [4, 2, 5]
    assert [len(labels) for labels in split.y_train] == [10, 6, 15]


def test_training_rows_have_mean_0_and_sd_1_whatever_the_test_rows_are(frame):
    split = table.split_rows(table.read_table(frame, **GOOD), seed=0)
    X = np.concatenate(split.X_train)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1, atol=1e-12)
    frame.loc[split.rows_test[0], "income"] *= 1000
    again = table.split_rows(table.read_table(frame, **GOOD), seed=0)
    np.testing.assert_array_equal(again.center, split.center)
    np.testing.assert_array_equal(again.width, split.width)


def test_one_seed_gives_one_split_and_another_gives_another(rows):
    a, b, c = (np.concatenate(table.split_rows(rows, seed=seed).rows_train) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_models_take_a_split_of_unequal_groups(rows):
    split = table.split_rows(rows, seed=0)
    model = models.hierarchical_bnn(split.X_train, split.y_train, n_hidden=(3, 3), bias=True)
    assert model["n_obs"].get_value().tolist() == [10, 6, 15]
    assert model["y"].eval(mode="FAST_COMPILE").shape == (10 + 6 + 15,)


def fails_to_split(rows, message, **options):
    with pytest.raises(ValueError, match=re.escape(message)):
        table.split_rows(rows, **({"seed": 0} | options))


def test_a_single_group_is_refused(frame):
    rows = table.read_table(frame.assign(town="Ulm"), **GOOD)
    fails_to_split(rows, "label='moved' and 1 values of 'town'; wanted: labels to learn from, and two groups or more")


def test_a_small_group_is_refused(frame):
    frame.loc[[1, 2], "town"] = "ulm"
    message = "too few rows, or one class, in group 'ulm' (2 rows, 0 of class 1); wanted: at least 10 in each"
    fails_to_split(table.read_table(frame, **GOOD), message)


def test_a_group_of_one_class_is_refused_unless_it_is_asked_for(frame):
    frame.loc[frame["town"] == "Bonn", "moved"] = 0
    rows = table.read_table(frame, **GOOD)
    message = "in group 'Bonn' (12 rows, 0 of class 1); wanted: at least 10 in each and both classes (or allow_one"
    fails_to_split(rows, message)
    split = table.split_rows(rows, seed=0, allow_one_class=True)
    assert [len(labels) for labels in split.y_train] == [10, 6, 15]
    assert split.y_train[1].sum() == 0


def test_all_groups_that_cannot_be_used_are_named_at_once(frame):
    frame.loc[frame["town"] == "Bonn", "moved"] = 1
    message = "group 'Aachen' (20 rows, 7 of class 1) and 'Bonn' (12 rows, 12 of class 1); wanted: at least 25"
    fails_to_split(table.read_table(frame, **GOOD), message, min_rows=25)
    fails_to_split(table.read_table(frame.assign(town=np.arange(62)), **GOOD), "and 42 more; wanted: at least 10")


def test_a_constant_feature_is_refused(frame):
    rows = table.read_table(frame.assign(age=3), **GOOD)
    fails_to_split(rows, "the same in all training rows: 'age'; wanted: features that vary")
    split = table.split_rows(table.read_table(frame, **GOOD), seed=0)
    varies_in_test = np.zeros(62)
    varies_in_test[split.rows_test[0]] = 1
    fails_to_split(table.read_table(frame.assign(age=varies_in_test), **GOOD), "the same in all training rows: 'age'")


def test_a_feature_that_hardly_differs_from_zero_is_refused(frame):
    rows = table.read_table(frame.assign(age=np.tile([1e-320, -1e-320], 31)), **GOOD)
    fails_to_split(rows, "the same in all training rows: 'age'")


def test_a_single_tiny_value_is_a_number_as_any_other(frame):
    frame.loc[3, "income"] = 1e-320
    split = table.split_rows(table.read_table(frame, **GOOD), seed=0)
    assert all(np.isfinite(X).all() for X in split.X_train)


def test_rows_without_labels_cannot_be_split(frame):
    rows = table.read_table(frame, **(GOOD | {"label": None}))
    fails_to_split(rows, "label=None and 3 values of 'town'; wanted: labels to learn from")


@pytest.mark.parametrize(
    "options", [{"seed": None}, {"train_share": 1.0}, {"train_share": 0}, {"max_train": 1}, {"min_rows": 3}]
)
def test_a_split_needs_sensible_arguments(rows, options):
    fails_to_split(rows, f"{next(iter(options))}=", **options)


# --- predicting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
def test_each_row_is_predicted_by_the_network_of_its_group(rows, bias):
    split, posterior = table.split_rows(rows, seed=0), make_posterior(bias=bias)
    p = table.predict_rows(posterior, split, rows)
    expected = predict.predict_groups(posterior, split.scale(rows.values))
    for row in (0, 35, 61):
        np.testing.assert_allclose(p[:, :, row], expected[:, :, rows.group[row], row])


def test_rows_are_predicted_with_the_activation_that_is_asked(rows):
    split, posterior = table.split_rows(rows, seed=0), make_posterior()
    p = table.predict_rows(posterior, split, rows, activation="relu")
    expected = predict.predict_groups(posterior, split.scale(rows.values), activation="relu")
    for row in (0, 35, 61):
        np.testing.assert_allclose(p[:, :, row], expected[:, :, rows.group[row], row])
    assert (p != table.predict_rows(posterior, split, rows)).any()


def test_a_new_table_with_some_of_the_groups_is_predicted_by_name(frame, rows):
    split, posterior = table.split_rows(rows, seed=0), make_posterior()
    some = frame[frame["town"] != "Bonn"].sample(frac=1, random_state=1).drop(columns="moved")
    new = table.read_table(some, **(GOOD | {"label": None}))
    whole = table.predict_rows(posterior, split, rows)
    np.testing.assert_allclose(table.predict_rows(posterior, split, new), whole[:, :, new.ids["row"]])


def test_an_unknown_group_and_other_features_cannot_be_predicted(frame, rows):
    split, posterior = table.split_rows(rows, seed=0), make_posterior()
    new = table.read_table(frame.replace({"town": {"Bonn": "Bon"}}), **GOOD)
    with pytest.raises(ValueError, match=r"group 'Bon' was not trained on; wanted: one of .*Did you mean 'Bonn'\?"):
        table.predict_rows(posterior, split, new)
    turned = table.read_table(frame, **(GOOD | {"features": ["income", "age"]}))
    with pytest.raises(ValueError, match=r"features \('income', 'age'\); wanted: \('age', 'income'\), in this order"):
        table.predict_rows(posterior, split, turned)
    with pytest.raises(ValueError, match="posterior has 2 groups; wanted: 3"):
        table.predict_rows(make_posterior(n_groups=2), split, rows)


@pytest.fixture
def draws(rows):
    return table.predict_rows(make_posterior(), table.split_rows(rows, seed=0), rows)


def test_predictions_have_a_mean_an_interval_and_two_kinds_of_uncertainty(rows, draws):
    found = table.tabulate_predictions(rows, draws, interval=0.8)
    flat = draws.reshape(-1, 62)
    np.testing.assert_allclose(found["probability"], flat.mean(axis=0))
    np.testing.assert_allclose(found["low"], np.quantile(flat, 0.1, axis=0))
    np.testing.assert_allclose(found["high"], np.quantile(flat, 0.9, axis=0))
    np.testing.assert_allclose(found["noise"], score.split_uncertainty(flat)["noise"])
    np.testing.assert_allclose(found["ignorance"], score.split_uncertainty(flat)["ignorance"])
    assert list(found)[:4] == ["row", "name", "town", "moved"]


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_intervals_hold_the_median_and_uncertainty_is_between_0_and_1_bit(seed):
    rows = table.read_table(make_frame(), **GOOD)
    draws = np.random.default_rng(seed).beta(0.5, 0.5, size=(2, 30, 62))
    found = table.tabulate_predictions(rows, draws)
    median = np.median(draws.reshape(-1, 62), axis=0)
    assert ((found["low"] <= median) & (median <= found["high"])).all()
    assert (found[["noise", "ignorance"]] >= 0).all(axis=None)
    assert (found["noise"] + found["ignorance"] <= 1 + 1e-12).all()


def test_predictions_are_written_and_can_be_read_again(rows, draws, tmp_path):
    path = tmp_path / "predictions.csv"
    found = table.write_predictions(path, rows, draws)
    pd.testing.assert_frame_equal(pd.read_csv(path), found, check_dtype=False)
    table.write_predictions(path, rows, draws / 2)
    assert pd.read_csv(path)["probability"].max() <= 0.5
    assert [p.name for p in tmp_path.iterdir()] == ["predictions.csv"]


def test_carried_columns_keep_all_their_digits(frame, tmp_path):
    frame["latitude"], frame["code"] = 59.91273456 + np.arange(62), [f"00{2**70 + i}" for i in range(62)]
    frame.to_csv(tmp_path / "people.csv", index=False)
    rows = table.read_table(tmp_path / "people.csv", **GOOD, ids=["latitude", "code"])
    path = tmp_path / "predictions.csv"
    table.write_predictions(path, rows, table.predict_rows(make_posterior(), table.split_rows(rows, seed=0), rows))
    written, given = (pd.read_csv(file, dtype=str)[["latitude", "code"]] for file in (path, tmp_path / "people.csv"))
    pd.testing.assert_frame_equal(written, given)


def test_a_failed_write_leaves_what_was_there(rows, draws, tmp_path, monkeypatch):
    path = tmp_path / "predictions.csv"
    table.write_predictions(path, rows, draws)
    before = path.read_bytes()

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_csv", fail)
    with pytest.raises(OSError, match="disk full"):
        table.write_predictions(path, rows, draws / 2)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["predictions.csv"]


def test_the_readers_own_table_is_never_written_over(frame, rows, draws, tmp_path):
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"people\.csv is there already and holds no predictions"):
        table.write_predictions(path, rows, draws)
    assert path.read_bytes() == before


def test_predictions_need_a_folder_and_a_name_in_it(rows, draws, tmp_path):
    with pytest.raises(OSError, match=r"non-existent directory.*missing"):
        table.write_predictions(tmp_path / "missing" / "p.csv", rows, draws)
    with pytest.raises(IsADirectoryError):
        table.write_predictions(tmp_path, rows, draws)


def test_predictions_that_do_not_fit_are_refused(frame, rows, draws):
    with pytest.raises(ValueError, match=r"draws has shape \(2, 5, 61\); wanted: \(chain, draw, 62\)"):
        table.tabulate_predictions(rows, draws[..., 1:])
    with pytest.raises(ValueError, match="Quantiles must be in the range"):
        table.tabulate_predictions(rows, draws, interval=90)
    with pytest.raises(ValueError, match="outside"):
        table.tabulate_predictions(rows, draws + 1)
    taken = table.read_table(frame.rename(columns={"name": "low"}), **GOOD, ids=["low"])
    with pytest.raises(ValueError, match=r"columns overlap.*'low'"):
        table.tabulate_predictions(taken, draws)
