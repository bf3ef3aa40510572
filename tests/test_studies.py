"""The tables that chapters read: complete, of known origin, and computed again, one row of each."""

import hashlib
import json
import sys
import types
from collections import Counter

import numpy as np
import pytest
from bnn.report import DATA
from chapters import machine
from distributed import Client
from studies.__main__ import load, names, run
from studies._tasks import PACKAGES, digest_rows

PATHS = {name: DATA / f"{name}.json" for name in names() if (DATA / f"{name}.json").exists()}
COMPARED = [name for name in PATHS if not load(name).MEASURED]
STAMP = {"commit", "versions"}  # of a row, where it comes from
SECONDS = 60  # CPU-seconds for rows of one study that are computed again
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


@every_table
def test_a_table_that_was_edited_by_hand_is_noticed(name):
    table = read(name)
    assert table["digest"] == digest_rows(table["rows"]), f"`make studies STUDY={name}` writes the table anew"


def choose(name):
    """Rows of a table to compute again, by the digest of the file, so that a changed table is tried elsewhere.

    A study that can tell what its rows cost gives as many as fit into SECONDS, others one; a study whose rows take
    minutes names those that take less, as RECOMPUTED.
    """
    rows, study = read(name)["rows"], load(name)
    wanted = {get_case(case, study) for case in getattr(study, "RECOMPUTED", study.CASES)}
    rows = [row for row in rows if get_case(row, study) in wanted]
    seed = int(hashlib.sha256(PATHS[name].read_bytes()).hexdigest(), 16)
    if not hasattr(study, "estimate"):
        return [rows[seed % len(rows)]]
    chosen, left = [], SECONDS
    for i in np.random.default_rng(seed).permutation(len(rows)):
        if study.estimate(rows[i]) <= left:
            chosen.append(rows[i])
            left -= study.estimate(rows[i])
    return chosen


def list_alike(row, rows, study):
    """The rows of a table that differ from `row` in seeds alone."""
    fixed = [key for key in study.CASES[0] if "seed" not in key]
    return [other for other in rows if all(other[key] == row[key] for key in fixed)]


def compare_row(row, fresh, table, study):
    """Complaints about a row that was computed again: equal on one machine, else within errors.

    Elsewhere a number with a Monte Carlo error may be five of them off, if the chains converged both times; others as
    far as rows of their kind are from each other.
    """
    complaints = []
    alike = list_alike(row, table["rows"], study)
    for key, value in fresh.items():
        if key in getattr(study, "UNCOMPARED", ()):
            continue
        if table["machine"] == machine():
            exact = not isinstance(value, float)
            agrees = value == row[key] if exact else value == pytest.approx(row[key], rel=1e-9, abs=1e-12, nan_ok=True)
        elif isinstance(value, list):
            continue  # their sums are compared
        elif not isinstance(value, int | float) or row[key] is None:
            agrees = value == row[key]
        elif row.get(f"{key}_mcse") is not None and row["converged"] and fresh["converged"]:
            errors = row[f"{key}_mcse"], fresh[f"{key}_mcse"]
            one_point = 1e-3 * abs(row[key])  # one of 900 may change sides where no draw in the table let it
            agrees = abs(value - row[key]) <= 5 * np.hypot(*errors) + one_point
        else:
            values = np.array([other[key] for other in alike if other[key] is not None], dtype=float)
            sd = 1.4826 * np.median(abs(values - np.median(values)))
            agrees = abs(value - row[key]) <= 6 * sd + 1e-6 * abs(row[key])
        if not agrees:
            complaints.append(f"{key}: {value}, in the table {row[key]}")
    return complaints


@pytest.mark.parametrize("name", COMPARED)
def test_rows_computed_again_agree(name):
    study, table = load(name), read(name)
    complaints = []
    for row in choose(name):
        assert study.CASES[0].keys() <= row.keys(), f"`make studies STUDY={name}` writes the table anew"
        if table["machine"] != machine() and len(list_alike(row, table["rows"], study)) < 5:
            continue  # another machine made this table, and it has too few rows of a kind to know how far seeds differ
        fresh = study.compute(**{key: row[key] for key in study.CASES[0]})
        assert set(row) - STAMP == set(study.CASES[0]) | set(fresh)
        complaints += [f"{get_case(row, study)}: {words}" for words in compare_row(row, fresh, table, study)]
    assert complaints == []


def test_the_sample_of_a_long_study_fits_its_time_and_follows_the_digest(monkeypatch, tmp_path):
    study, seen = load("replication"), []
    for indent in (1, 2):  # the same rows in another file, of another digest
        (tmp_path / "replication.json").write_text(json.dumps({"rows": study.CASES}, indent=indent))
        monkeypatch.setitem(PATHS, "replication", tmp_path / "replication.json")
        rows = choose("replication")
        assert 0.5 * SECONDS < sum(map(study.estimate, rows)) <= SECONDS
        seen.append([get_case(row, study) for row in rows])
    assert seen[0] != seen[1]


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


def test_elsewhere_a_row_with_a_monte_carlo_error_may_move_as_far_as_that(toy):
    for row in toy["rows"]:
        row |= {"score_mcse": 0.1, "converged": True}
    toy["machine"], row = {}, toy["rows"][3]
    fresh = {"score_mcse": 0.1, "converged": True}
    assert compare_row(row, fresh | {"score": row["score"] + 0.5}, toy, Toy) == []
    assert compare_row(row, fresh | {"score": row["score"] + 1}, toy, Toy) != []


def test_elsewhere_a_row_may_move_as_far_as_rows_of_its_kind_do(toy):
    toy["machine"] = {}
    row = toy["rows"][3]
    assert compare_row(row, {"score": row["score"] + 1}, toy, Toy) == []
    assert compare_row(row, {"score": row["score"] + 20}, toy, Toy) != []  # not as far as the noisier ones


@pytest.fixture(scope="module")
def client():
    """One worker in a thread of this process, which knows the study below."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@pytest.fixture
def written(monkeypatch, tmp_path):
    """`run` with a study of one line, on tables and tasks in a folder of its own; yields the folder of tables."""
    module = types.ModuleType("toy_of_test_studies")
    module.MEASURED, module.CASES, module.compute = Toy.MEASURED, Toy.CASES, Toy.compute
    monkeypatch.setattr("studies.__main__.DATA", tmp_path)
    monkeypatch.setattr("studies.__main__.load", lambda name: module)
    monkeypatch.setattr("studies._tasks.digest_code", lambda name: "code")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("BNN_TASKS", str(tmp_path / "tasks"))
    return tmp_path


def test_a_study_writes_every_case_with_its_origin(written, client, capsys):
    run("toy", client)
    table = json.loads((written / "toy.json").read_text())
    assert (table["study"], table["measured"], table["machine"]) == ("toy", False, machine())
    assert table["digest"] == digest_rows(table["rows"])
    rows = [{key: value for key, value in row.items() if key not in STAMP} for row in table["rows"]]
    assert rows == [case | Toy.compute(**case) for case in Toy.CASES]
    assert all(set(row) >= STAMP for row in table["rows"])
    assert sorted(path.name for path in written.iterdir()) == ["tasks", "toy.json"]


def test_a_study_that_fails_leaves_its_old_table(written, client, monkeypatch, capsys):
    toy_of_test_studies = sys.modules["toy_of_test_studies"]
    monkeypatch.setattr(toy_of_test_studies, "compute", lambda seed, noise: {"score": 1 / (5 - seed)})
    (written / "toy.json").write_text("old")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run("toy", client)
    assert (written / "toy.json").read_text() == "old"


def test_what_is_measured_runs_alone_in_this_process(written, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["toy_of_test_studies"], "MEASURED", True)
    run("toy")  # without a client, and no cluster is started
    table = json.loads((written / "toy.json").read_text())
    assert table["rows"] == [case | Toy.compute(**case) for case in Toy.CASES]
    assert not (written / "tasks").exists()


def test_an_unknown_study_is_refused_and_the_known_ones_are_named():
    with pytest.raises(SystemExit, match=r"there is no study 'nope'; there are: .*flat_advi_seeds"):
        load("nope")


@pytest.mark.parametrize("name", names())
def test_every_study_says_what_it_is(name):
    study = load(name)
    assert study.__doc__
    assert isinstance(study.MEASURED, bool)
    assert all(case.keys() == study.CASES[0].keys() for case in study.CASES)
