"""A reader's own table: what is read, what is refused and in which words, and what of it tomorrow's rows keep."""

import re

import numpy as np
import pandas as pd
import pytest
from hbnn import tables
from made import make_people

GOOD = {"group": "town", "features": ["age", "income"], "outcome": "moved"}
NAMES = "town,age,income,moved\n"
YES = ["yes", "no"] * 31


@pytest.fixture
def frame():
    return make_people()


@pytest.fixture
def write(tmp_path):
    """Write text into a file and give its path."""

    def write_text(text, encoding="utf-8"):
        (tmp_path / "people.csv").write_bytes(text.encode(encoding))
        return tmp_path / "people.csv"

    return write_text


def read(frame, **changes):
    return tables.read_table(frame, **(GOOD | changes))


def read_y(frame, values, **changes):
    """The frame with these values, again and again, as outcome "y"."""
    return read(frame.assign(y=np.resize(np.array(values, dtype=object), len(frame))), **({"outcome": "y"} | changes))


def refuses(source, *words, **changes):
    """Reading `source` raises ValueError with these words in it."""
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        read(source, **changes)
    assert all(word in str(caught.value) for word in words[1:]), caught.value
    return caught.value


# --- what is read


def test_a_file_and_its_frame_hold_the_same_in_the_same_order(frame, tmp_path):
    frame["NA"] = [f"00{2**70 + i}" for i in range(61)] + ["None"]  # carried, with all its digits
    frame.to_csv(tmp_path / "people.csv", index=False)
    before = frame.copy()
    for rows in (read(source, ids=["name", "NA"]) for source in (frame, tmp_path / "people.csv")):
        np.testing.assert_array_equal(rows.values, frame[["age", "income"]].to_numpy())
        np.testing.assert_array_equal(rows.y, frame["moved"])
        assert (rows.groups, rows.features) == (("Aachen", "Bonn", "Ulm"), ("age", "income"))
        assert [rows.groups[g] for g in rows.group] == frame["town"].tolist()
        assert all(rows.ids[name].tolist() == frame[name].tolist() for name in ("name", "NA"))
        assert (rows.values.dtype, rows.y.dtype) == (np.float64, np.int32)
    pd.testing.assert_frame_equal(frame, before)
    assert read(frame, ids=["age"]).ids["age"].tolist() == frame["age"].tolist()  # a feature, too
    some = read(frame, ids=["name"]).take([40, 3])
    assert (some.groups, some.ids["row"].tolist(), some.group.tolist()) == (rows.groups, [40, 3], [1, 2])
    assert (some.ids["name"].tolist(), some.y.tolist()) == (["person 40", "person 3"], [0, 1])
    np.testing.assert_array_equal(some.values, frame.loc[[40, 3], ["age", "income"]])


@pytest.mark.parametrize(
    ("text", "options", "values"),
    [
        (NAMES.replace(",", " , ") + " Ulm,30,1.5,0\nUlm ,40,2,1\n", {"encoding": "utf-8-sig"}, [[30, 1.5], [40, 2]]),
        ("town;age;income;moved\nUlm;1.234;1.234,5;0\nBonn;980;2;1\n", {"sep": ";", "decimal": ","},
         [[1234, 1234.5], [980, 2]]),
        ("town;age;income;moved\nUlm;1.234;1;0\nBonn;980;2;1\n", {"sep": ";", "decimal": "."}, [[1.234, 1], [980, 2]]),
        (NAMES + "Köln,30,1,0\nBonn,20,2,1\n", {"encoding": "latin-1"}, [[30, 1], [20, 2]]),
        ("town,age,income,moved,,,note,note\nUlm,30,1,0,,,a,\n,,,,,,,\n\nBonn,40,2,1,,,,b\n\n", {}, [[30, 1], [40, 2]]),
    ],
)  # fmt: skip
def test_what_spreadsheets_write_is_read(write, text, options, values):
    """Marks of a byte order, decimal commas, marks for thousands, empty columns; lines are those of an editor."""
    rows = read(write(text, options.get("encoding", "utf-8")), **options)
    np.testing.assert_array_equal(rows.values, values)
    assert rows.ids["line"].tolist() == ([2, 5] if "note" in text else [2, 3])


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
    assert read(frame.assign(town=towns * 31)).groups == groups


# --- the kind of an outcome


@pytest.mark.parametrize(
    ("values", "asked", "kind", "classes", "first"),
    [
        ([1.0, 0.0], {}, "binary", ("0", "1"), [1, 0]),
        (["True", "0"], {}, "binary", ("0", "1"), [1, 0]),
        (["yes", "no"], {}, "binary", ("no", "yes"), [1, 0]),
        (["yes", "no"], {"classes": ["yes", "no"]}, "binary", ("yes", "no"), [0, 1]),
        (["yes"], {"classes": ("no", "yes")}, "binary", ("no", "yes"), [1, 1]),
        (["bus", "car", "foot"], {}, "classes", ("bus", "car", "foot"), [0, 1, 2]),
        ([1, 2, 3], {"kind": "classes"}, "classes", ("1", "2", "3"), [0, 1, 2]),
        ([1, 2, 3], {"kind": "counts"}, "counts", (), [1, 2, 3]),
        ([1.5, 2.25, 3.0], {}, "real", (), [1.5, 2.25, 3]),
        ([0, 0, 0, 1, 1, 2, 3, 7], {}, "counts", (), [0, 0, 0, 1]),
    ],
)
def test_the_kind_is_found_from_the_column_unless_it_or_classes_are_named(frame, values, asked, kind, classes, first):
    rows = read_y(frame, values, **asked)
    assert (rows.kind, rows.classes, rows.y.tolist()[: len(first)]) == (kind, classes, first)
    assert f"kind={kind!r}" in str(rows)
    assert (rows.y.dtype == "int64") == (kind == "counts")
    none = read(frame, outcome=None)
    assert (none.y, none.kind, none.classes) == (None, None, ())


def test_marks_have_an_order_and_tomorrow_has_it_too(frame):
    marks = frame.assign(moved=["low", "high", "mid"] * 20 + ["low", "mid"])
    refuses(marks, "wanted: classes=[…] with 'high', 'low' and 'mid' from low to high", kind="ordered")
    rows = read(marks, kind="ordered", classes=["low", "mid", "high"])
    few = read(marks[:2], like=rows)
    assert (few.kind, few.classes, few.ordered, few.y.tolist()) == ("classes", ("low", "mid", "high"), True, [0, 2])
    assert read_y(frame, [10, 9, 1, 3, 9, 10], kind="ordered").classes == ("1", "3", "9", "10")


# --- what is refused, in which words


@pytest.mark.parametrize(
    ("text", "words", "options"),
    [
        ("", ["people.csv is no table", "a CSV file"], {}),
        (NAMES, ["people.csv has names and no rows"], {}),
        ("town;age;income;moved\nUlm;30;1,5;0\n", ["pass sep=';' or", "decimal=','"], {}),  # a comma in the second line
        (NAMES + 'Ulm,30,"1,5",0\n', ["'income' holds text, '1,5'", "line 2", "decimal=','"], {}),
        ("town;age;income;moved\nUlm;1.234;1;0\nBonn;980;2;1\n",
         ["'age' holds '1.234', in 1 row", "decimal=',' where '1.234' is 1234, or decimal='.'"], {"sep": ";"}),
        (NAMES + "Ulm,30,1,0\n,20,2,1\n", ["group 'town' is missing in 1 row of 2 (line 3)", "none called NA"], {}),
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_is_refused(write, text, words, options):
    refuses(write(text), *words, **options)


MANY = "(rows 2, 5, 8 and 17 more)"
BUSES = ["bus", "car", "foot"] * 20 + ["bus", "car"]


@pytest.mark.parametrize(
    ("column", "values", "words", "changes"),
    [
        ("income", [np.nan] * 32 + [1.0] * 30, "'income' is missing in 32 rows of 62 (rows 0, 1, 2 and 29 more)", {}),
        ("age", ["young", "old"] + [1] * 60, "'age' holds text, 'young' and 'old', in 2 rows of 62 (rows 0 and 1)", {}),
        ("age", ["03/01/2024"] * 62, "dates such as 2024-12-31", {}),
        ("age", [f"p{k}" for k in range(62)], "at most 20 words, of 62", {}),
        ("income", [np.inf] + [1.0] * 61, "'income' is infinite or beyond 1e150 in 1 row of 62 (row 0)", {}),
        ("moved", [np.nan] + [1.0] * 61, "predict rows without one", {}),
        ("moved", [1, 2, 3] * 20 + [1, 2], "wanted: kind='classes' for names, 'ordered' for marks", {}),
        ("moved", ["high", *np.linspace(1, 2, 61)], "holds text, 'high', in 1 row of 62 (row 0); wanted: numbers", {}),
        ("moved", ["yes", "no", "Yes", "no"] * 15 + YES[:2], "one spelling of 'Yes' and 'yes'", {}),
        ("moved", YES, "other classes in 31 rows of 62 (rows 0, 2, 4 and 28 more); wanted: one of 'no' and 'Yes'",
         {"classes": ("no", "Yes")}),
        ("moved", BUSES, f"in 20 rows of 62 {MANY}; wanted: two classes, or", {"kind": "binary"}),
        ("moved", [3, 1.5, -2] * 20 + [3, 3], "'1.5' and '-2', in 40 rows of 62", {"kind": "counts"}),
        ("moved", [0.5, 101, 3] * 20 + [3, 3], "'101', in 20 rows of 62", {"kind": "share"}),
        ("moved", [0, 1] * 31, "wanted: shares between 0 and all", {"kind": "share"}),
        ("moved", ["88.7%", *np.linspace(1, 2, 61)], "a % sign behind all of them", {}),
    ],
)  # fmt: skip
def test_values_that_cannot_be_used_are_counted_and_located(frame, column, values, words, changes):
    refuses(frame.assign(**{column: values}), words, **changes)


def test_everything_that_is_wrong_is_said_at_once_with_rows_or_lines(frame, tmp_path):
    twice = pd.concat([frame, frame])  # rows may bear one number more than once
    twice["income"] = twice["income"].where(twice["name"] != "person 5", np.inf)
    twice["moved"] = twice["moved"].where(twice["name"] != "person 7", np.nan)
    infinite = "- feature 'income' is infinite or beyond 1e150 in 2 rows of 124 (rows 5 and 5)"
    empty = "- outcome 'moved' is missing in 2 rows of 124"
    error = refuses(twice, "the table: 2 things are wrong", infinite, empty)
    assert [f"- {complaint}" for complaint in error.complaints] == str(error).splitlines()[1:]
    twice.to_csv(tmp_path / "a.csv", index=False)
    refuses(tmp_path / "a.csv", "a.csv: 2 things are wrong", "1e150 in 2 rows of 124 (lines 7 and 69)", empty)


# --- words, gaps and dates, today and tomorrow


def test_words_are_columns_and_tomorrow_has_the_same(frame):
    words = frame.assign(pet=pd.Categorical(["cat", "dog", "ape", "dog"] * 15 + ["cat", "ape"]))
    rows = read(words, features=["age", "pet"])
    assert (rows.features, rows.levels) == (("age", "pet=cat", "pet=dog"), {"pet": ("ape", "cat", "dog")})
    later = read(words[1:2], features=["age", "pet"], outcome=None, like=rows)
    np.testing.assert_array_equal(later.values[0, 1:], [0, 1])
    eel = words.assign(pet=words["pet"].astype(str).where(words.index > 0, "eel"))
    refuses(eel, "'pet' holds 'eel', in 1 row of 62", "one of 'ape', 'cat'", features=["age", "pet"], like=rows)
    assert read(eel, features=["age", "pet"]).notes == ("'pet' is 'eel' in one row: a slip?",)
    refuses(frame, "features='age'", "lists of column names", features="age")
    refuses(frame, "no column 'incom'; there are", "Did you mean 'income'?", features=["age", "incom"])
    refuses(frame, "no column 'a' and 'age,income'; there are", features=["a", "age,income"])
    refuses(frame, "no column 'AGE'; there are", "Did you mean 'age'?", features=["AGE"])
    refuses(frame, "no column 'age,income'; there are", "Write a space", features=["age,income"])
    refuses(frame, "column 'town' is asked for twice", outcome="town")
    refuses(frame, "classes=(0, 1) with kind='real'", "none for numbers", classes=(0, 1), kind="real")


def test_a_feature_that_is_missing_is_filled_in_and_marked_and_tomorrow_in_the_same_way(frame, write):
    gaps = frame.assign(pet=["cat", "dog", None, "dog"] * 15 + ["cat", "dog"])
    gaps["income"] = gaps["income"].where(gaps.index % 4 > 0)
    features, mean = {"features": ["age", "income", "pet"]}, gaps["income"].mean()
    rows = read(gaps, **features)
    assert rows.features == ("age", "income", "income=missing", "pet=dog", "pet=missing")
    np.testing.assert_allclose(rows.values[:4, 1], [mean, *frame["income"][1:4]])
    np.testing.assert_array_equal(rows.values[:4, 2:], [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]])
    assert [f"'income' is missing in 16 rows; the mean, {mean:.4g}" in rows.notes[0], len(rows.notes)] == [True, 2]
    later = read(write("town,age,income,pet\nUlm,30,,\nBonn,40,5,dog\n"), **features, outcome=None, like=rows)
    np.testing.assert_allclose(later.values, [[30, mean, 1, 0, 1], [40, 5, 0, 1, 0]])
    lost = gaps.assign(age=[None, *range(61)])
    refuses(lost, "'age' is missing in 1 row", "wanted: a value in all rows, as where", **features, like=rows)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1970-01-02", "1970-01-01 12:00", ""], [1, 0.5, 0.75]),
        (["2.1.1970", "01.01.1970 12:00", ""], [1, 0.5, 0.75]),
        (pd.to_datetime(["1970-01-02 00:00", "1970-01-01 12:00", None]), [1, 0.5, 0.75]),
        (["18:30", "0:15:36", ""], [18.5, 0.26, 9.38]),
        (["18.30.00", "0.15.36", ""], [18.5, 0.26, 9.38]),
        (["1970-01-02T01:00:00+01:00", "1970-01-01T12:00:00Z", ""], [1, 0.5, 0.75]),
    ],
)
def test_dates_are_days_and_times_are_hours(frame, texts, numbers):
    rows = read(frame[:60].assign(when=list(texts) * 20), features=["when"])
    np.testing.assert_allclose(rows.values[:3, 0], numbers)
    assert rows.features == ("when", "when=missing")
    assert "'when' is read as" in str(rows)


def test_tomorrow_has_dates_where_there_were_dates(frame):
    early = frame.assign(when=["0001-01-01", "9999-12-31"] * 31)
    rows = read(early, features=["when"])
    np.testing.assert_allclose(rows.values[:2, 0], [-719162, 2932896])
    asked = {"features": ["when"], "outcome": None, "like": rows}
    assert read(early[:1], **asked).values[0, 0] == -719162
    refuses(frame.assign(when=10), "is read as a number", "wanted: days since 1970, as", **asked)


# --- notes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: {"income": f["income"].where(f.index % 6 > 0, -200_000)}, "'income' is -200000 in 11 rows, far"),
        (lambda f: {"town": f["town"].replace("Ulm", "ulm").where(f.index > 9, "Ulm")}, "'Ulm' and 'ulm' may be one"),
        (lambda f: {"age": 24.0 - f["y"]}, "'age' alone gives 'y' away"),
        (lambda f: {"income": f["income"].where(f.index != 7, 1e6)}, "'income' is 1e+06 in 1 row of 62 (row 7), far"),
        (
            lambda f: {"y": f["y"] + 900 * np.sign(f.index - 9) * (f.index % 31 == 3)},
            "'y' is far from all others in 2 rows",
        ),
        (lambda f: {"y": np.exp(f["y"] / 5)}, "Its logarithm"),
        (lambda f: {"y": np.resize([0, 0.2, 0.5, 0.9, 1], 62)}, "kind='share'"),
        (lambda f: {"y": np.arange(62) * 300 + 326}, "taken for kind='real'; pass kind='counts'"),  # a price, say
        (lambda f: f.loc[f.index // 2 * 2].reset_index(drop=True), "62 rows of 62 are there more than once"),
        (lambda f: {"town": f["name"]}, "62 rows are alone in their group of 'town'"),
        (lambda f: {"town": f["income"] + 0.001}, "a measurement, and no group?"),
        (lambda f: {"age": f["town"].map(len)}, "'age' is the same in all rows of a group"),
        (lambda f: {"y": f["town"].map(len) + 0.5}, "'y' is the same in all rows of a group"),
        (lambda f: {"age": np.resize(["A", "a", "b"], 62)}, "words 'A' and 'a' of 'age' may be one"),
        (lambda f: {"age": np.resize(["Jan-24", "Feb-24"], 62)}, "in no order; as dates"),
    ],
)
def test_what_looks_odd_and_may_be_right_is_a_note(frame, change, said):
    frame = frame.assign(y=np.random.default_rng(1).normal(50, 5, 62))
    quiet = read(frame, outcome="y")
    assert quiet.notes == ()
    assert said in " ".join(read(frame.assign(**change(frame)), outcome="y").notes)


def test_numbers_of_other_spellings_and_groups_of_two_columns_are_read(frame):
    spelled = frame.assign(age=[f"{a}.5%" for a in frame["age"]], income=[f"{9 + k},994.15" for k in range(62)])
    np.testing.assert_allclose(
        read(spelled).values[:2], [[frame["age"][0] + 0.5, 9994.15], [frame["age"][1] + 0.5, 10994.15]]
    )
    rows = read(frame.assign(year=np.resize([1, 2], 62)), group=["town", "year"])
    assert (rows.groups[0], len(rows.groups), rows.columns["group"]) == ("Aachen, 1", 6, "town, year")
