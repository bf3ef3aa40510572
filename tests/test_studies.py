"""The tables that chapters read: complete, of known origin, and computed again, one row of each."""

import hashlib
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from bnn.report import DATA
from chapters import machine
from studies.__main__ import PACKAGES, load, names, run

PATHS = {name: DATA / f"{name}.json" for name in names() if (DATA / f"{name}.json").exists()}
COMPARED = [name for name in PATHS if not load(name).MEASURED]
every_table = pytest.mark.parametrize("name", PATHS)


def read(name):
    return json.loads(PATHS[name].read_text())


def get_case(row, study):
    """The part of a row that was given, as one text."""
    return json.dumps({key: row.get(key) for key in study.CASES[0]}, sort_keys=True)


@every_table
def test_a_table_has_every_case_once(name):
    study = load(name)
    cases = [json.dumps(case, sort_keys=True) for case in study.CASES]
    found = [get_case(row, study) for row in read(name)["rows"]]
    assert Counter(found) == Counter(cases), f"`make studies STUDY={name}` writes the table anew"


@every_table
def test_a_table_says_where_it_comes_from(name):
    table = read(name)
    assert table["study"] == name
    assert table["measured"] is load(name).MEASURED
    assert set(table["machine"]) == set(machine())
    assert set(table["versions"]) == set(PACKAGES)
    assert table["python"].startswith("3.")
    assert isinstance(table["commit"], str)


def choose(name):
    """One row of a table, by the digest of the file, so that a changed table is tried elsewhere.

    A study whose rows take minutes names those that take less, as RECOMPUTED.
    """
    rows, study = read(name)["rows"], load(name)
    wanted = [get_case(case, study) for case in getattr(study, "RECOMPUTED", study.CASES)]
    rows = [row for row in rows if get_case(row, study) in wanted]
    return rows[int(hashlib.sha256(PATHS[name].read_bytes()).hexdigest(), 16) % len(rows)]


def list_alike(row, rows, study):
    """The rows of a table that differ from `row` in seeds alone."""
    fixed = [key for key in study.CASES[0] if "seed" not in key]
    return [other for other in rows if all(other[key] == row[key] for key in fixed)]


def compare_row(row, fresh, table, study):
    """Complaints about a row that was computed again: equal on one machine, else as far off as a seed may be."""
    complaints = []
    alike = list_alike(row, table["rows"], study)
    for key, value in fresh.items():
        if not isinstance(value, int | float):
            agrees = value == row[key]
        elif table["machine"] == machine():
            agrees = value == pytest.approx(row[key], rel=1e-9, abs=1e-12, nan_ok=True)
        else:
            values = np.array([other[key] for other in alike], dtype=float)
            sd = 1.4826 * np.median(abs(values - np.median(values)))
            agrees = abs(value - row[key]) <= 6 * sd + 1e-6 * abs(row[key])
        if not agrees:
            complaints.append(f"{key}: {value}, in the table {row[key]}")
    return complaints


@pytest.mark.parametrize("name", COMPARED)
def test_a_row_computed_again_agrees(name):
    study, table, row = load(name), read(name), choose(name)
    assert study.CASES[0].keys() <= row.keys(), f"`make studies STUDY={name}` writes the table anew"
    if table["machine"] != machine() and len(list_alike(row, table["rows"], study)) < 5:
        pytest.skip("another machine made this table, and it has too few rows of a kind to know how far seeds differ")
    fresh = study.compute(**{key: row[key] for key in study.CASES[0]})
    assert set(row) == set(study.CASES[0]) | set(fresh)
    assert compare_row(row, fresh, table, study) == []


# --- the net itself, on a study that costs nothing


class Toy:
    """A study of one line."""

    MEASURED = False
    CASES = [{"seed": seed, "noise": noise} for noise in (1, 10) for seed in range(1, 9)]  # noqa: RUF012

    @staticmethod
    def compute(seed, noise):
        return {"score": noise * float(np.random.default_rng(seed).normal())}


@pytest.fixture
def toy():
    return {"machine": machine(), "rows": [case | Toy.compute(**case) for case in Toy.CASES]}


def test_on_this_machine_a_row_must_be_equal(toy):
    row = toy["rows"][3]
    assert compare_row(row, {"score": row["score"]}, toy, Toy) == []
    assert compare_row(row, {"score": row["score"] * (1 + 1e-6)}, toy, Toy) != []


def test_elsewhere_a_row_may_move_as_far_as_rows_of_its_kind_do(toy):
    toy["machine"] = {}
    row = toy["rows"][3]
    assert compare_row(row, {"score": row["score"] + 1}, toy, Toy) == []
    assert compare_row(row, {"score": row["score"] + 20}, toy, Toy) != []  # not as far as the noisier ones


def test_a_study_writes_every_case_with_its_origin(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("studies.__main__.DATA", tmp_path)
    monkeypatch.setattr("studies.__main__.load", lambda name: Toy)
    run("toy")
    table = json.loads((tmp_path / "toy.json").read_text())
    assert (table["study"], table["measured"], table["machine"]) == ("toy", False, machine())
    assert table["rows"] == [case | Toy.compute(**case) for case in Toy.CASES]
    assert [path.name for path in tmp_path.iterdir()] == ["toy.json"]


def test_two_processes_write_the_same_rows(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("studies.__main__.DATA", tmp_path)
    monkeypatch.setattr("studies.__main__.load", lambda name: Toy)
    monkeypatch.setattr("studies.__main__.ProcessPoolExecutor", ThreadPoolExecutor)  # a process would not know Toy
    monkeypatch.setenv("JOBS", "2")
    run("toy")
    assert json.loads((tmp_path / "toy.json").read_text())["rows"] == [case | Toy.compute(**case) for case in Toy.CASES]


def test_a_study_that_fails_leaves_its_old_table(monkeypatch, tmp_path, capsys):
    class Broken(Toy):
        @staticmethod
        def compute(seed, noise):
            return {"score": 1 / (5 - seed)}

    monkeypatch.setattr("studies.__main__.DATA", tmp_path)
    monkeypatch.setattr("studies.__main__.load", lambda name: Broken)
    (tmp_path / "toy.json").write_text("old")
    with pytest.raises(ZeroDivisionError):
        run("toy")
    assert (tmp_path / "toy.json").read_text() == "old"


def test_an_unknown_study_is_refused_and_the_known_ones_are_named():
    with pytest.raises(SystemExit, match=r"there is no study 'nope'; there are: .*flat_advi_seeds"):
        load("nope")


@pytest.mark.parametrize("name", names())
def test_every_study_says_what_it_is(name):
    study = load(name)
    assert study.__doc__
    assert isinstance(study.MEASURED, bool)
    assert all(case.keys() == study.CASES[0].keys() for case in study.CASES)
