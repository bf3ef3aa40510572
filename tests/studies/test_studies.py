"""The tables that chapters read: complete, of known origin, checked under the present code, and computed again in part.

`make test` computes a row of each study in LIGHT again, and `make test-all` HEAVY CPU-seconds of every study. Under the
settings that made a table, or found it equal, any number that was changed by more than 1e-9 is seen in a row that is
computed again; under others, what lies further away than `_checks` grants.
"""

import contextlib
import json
import sys
import types

import numpy as np
import pytest
from bookkit.repo import digest
from bookkit.versions import machine, read_versions
from distributed import Client
from studies import __main__ as command
from studies import _checks, _tasks
from studies.__main__ import check, list_in_order, load, main, names, read, run
from studies._tasks import PACKAGES

TABLES = {name: table for name in names() if (table := read(name))}
COMPARED = [name for name in TABLES if not load(name).MEASURED]
STAMP = _checks.STAMP
LIGHT = ("calibration", "cheaper_ways", "curve_rivals", "flat_advi_seeds")
HEAVY = 60  # CPU-seconds


def test_tables_were_made_or_checked_under_the_present_code_and_lock():
    states = {name: _checks.find_state(name, load(name), TABLES.get(name)) for name in names()}
    wrong = {name: why for name, (state, why) in states.items() if state != "fine"}
    assert wrong == {}, "`make studies` says what is to be done, and does it"


def test_tables_say_where_they_come_from():
    for name, table in TABLES.items():
        assert (table["study"], table["measured"]) == (name, load(name).MEASURED)
        assert table["machine"]
        assert table["commit"]
        assert set(table["versions"]) == set(PACKAGES)


def test_scores_are_the_mean_of_their_categories():
    for name in COMPARED:
        rows = TABLES[name]["rows"]
        for column in [column for column in rows[0] if f"{column}_groups" in rows[0]]:
            means = [(row[column], np.mean(row[f"{column}_groups"])) for row in rows if row[column] is not None]
            assert all(score == pytest.approx(mean, abs=1e-5) for score, mean in means), f"{name}, {column}"


# --- rows that are computed again


def list_candidates(name):
    study = load(name)
    return getattr(study, "RECOMPUTED", study.CASES)


def find_complaints(name, case):
    """What is wrong with a row of a table, computed again."""
    study, table = load(name), TABLES[name]
    (row,) = [row for row in table["rows"] if _checks.get_case(row, study) == case]
    exact = _checks.is_exact(table, machine())
    different, unknown = _checks.compare_row(row, study.compute(**case), table, study, exact=exact)
    return different + [f"cannot be compared: {words}" for words in unknown]


@pytest.mark.parametrize("name", LIGHT)
def test_a_row_computed_again_agrees(name):
    case = min(list_candidates(name), key=lambda case: _checks.get_cost(case, load(name)))
    assert find_complaints(name, case) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_rows_of_every_study_computed_again_agree(name):
    cases = _checks.draw_cases(load(name), list_candidates(name), HEAVY, 0, at_least=1)
    assert {str(case): found for case in cases if (found := find_complaints(name, case))} == {}


def test_a_sample_has_as_many_kinds_as_fit_and_the_cheapest_rows_where_none_does():
    study = load("replication")
    cases = _checks.draw_cases(study, study.CASES, HEAVY, 1)
    assert sum(map(study.estimate, cases)) <= HEAVY
    kinds = [_checks.get_kind(case, study) for case in cases]
    assert len(kinds) == len(set(kinds)) > 0
    costs = [study.estimate(case) for case in _checks.draw_cases(study, study.CASES, 0, 1, at_least=2)]
    assert costs == sorted(map(study.estimate, study.CASES))[:2]


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
    return {"rows": [case | Toy.compute(**case) for case in Toy.CASES]}


def compare(row, fresh, table, exact=False):
    """What differs, and what is unknown, of a row."""
    return _checks.compare_row(row, fresh, table, Toy, exact=exact)


def test_under_the_settings_of_a_table_a_row_must_be_equal(toy):
    row = toy["rows"][3]
    found = [compare(row, {"score": row["score"] * (1 + much)}, toy, exact=True)[0] for much in (1e-12, 1e-6)]
    assert [len(different) for different in found] == [0, 1]


def test_elsewhere_a_row_may_move_as_far_as_its_monte_carlo_error_where_its_chains_agree(toy):
    for error, converged, verdicts in ((0.1, True, [[], 1]), (1e-6, True, [1, 1]), (1e-6, False, [[], []])):
        for row in toy["rows"]:
            row |= {"score_mcse": error, "converged": converged}
        row = toy["rows"][3]
        found = [compare(row, row | {"score": row["score"] + move}, toy) for move in (0.5, 1)]
        assert [different and len(different) for different, _ in found] == verdicts


def test_elsewhere_a_row_may_move_as_far_as_rows_of_its_kind_do(toy):
    row = toy["rows"][3]
    assert compare(row, {"score": row["score"] + 1}, toy) == ([], [])
    assert compare(row, {"score": row["score"] + 30}, toy)[0] != []  # not as far as the noisier ones


def test_a_kind_of_few_rows_borrows_from_the_others():
    table = {"rows": [{"seed": s, "noise": n, "score": n * (1 + 0.01 * s)} for n in (1, 10, 100) for s in (1, 2, 3)]}
    row = table["rows"][0]
    assert compare(row, {"score": 1.05}, table) == ([], [])
    assert compare(row, {"score": 1.5}, table)[0] != []


def test_where_nobody_knows_how_far_seeds_differ_a_row_cannot_be_compared_unless_a_stamp_says():
    table = {"rows": [{"seed": 1, "noise": n, "score": n} for n in range(20)]}
    assert compare(table["rows"][3], {"score": 3.1}, table) == ([], ["score: 3.1, in the table 3"])
    assert compare(table["rows"][3], {"score": 3}, table) == ([], [])  # equal is equal
    table["checked"] = {"spread": {"score": [0.01, 8, False]}}
    assert compare(table["rows"][3], {"score": 3.1}, table) == ([], [])
    assert compare(table["rows"][3], {"score": 3.6}, table)[0] != []


def test_whether_chains_agreed_may_change_where_it_falls_both_ways_in_a_table():
    rows = [{"seed": 1, "noise": n, "a: converged": n % 2 == 0, "exact": True} for n in range(20)]
    table = {"rows": rows, "checked": {"spread": {"a: converged": [0.0, 8, False], "exact": [0.0, 8, False]}}}
    assert compare(rows[0], {"a: converged": False, "exact": True}, table) == ([], [])
    assert compare(rows[0], {"a: converged": True, "exact": False}, table)[0] != []
    rows[:] = [row | {"a: converged": True} for row in rows]
    assert compare(rows[0], {"a: converged": False, "exact": True}, table)[0] != []


def test_one_point_may_change_sides_where_it_does_for_no_seed():
    rows = [{"seed": s, "noise": 1, "train_accuracy": 100 * 770 / 900} for s in range(6)]
    assert compare(rows[0], {"train_accuracy": 100 * 769 / 900}, {"rows": rows}) == ([], [])
    assert compare(rows[0], {"train_accuracy": 100 * 768 / 900}, {"rows": rows})[0] != []


def test_numbers_of_a_list_words_and_columns_are_compared_and_words_may_move_as_seeds_do():
    rows = [{"seed": s, "noise": 1, "at": "sd1", "worst": f"sd{s}", "two": [1 + 0.01 * s, 2.0]} for s in range(6)]
    fresh = {"at": "sd1", "worst": "sd9", "two": [1.05, 2.0]}
    assert compare(rows[0], fresh, {"rows": rows}) == ([], [])
    for change in ({"at": "sd2"}, {"two": [2.05, 1.0]}, {"new": 1.0}):
        assert compare(rows[0], fresh | change, {"rows": rows})[0] != []
    assert compare(rows[0], {"at": "sd1"}, {"rows": rows})[0] != []


def test_the_lock_as_a_whole_does_not_make_other_settings_but_its_versions_do():
    versions = dict(read_versions(PACKAGES))
    table = {"machine": {"kernel": "a", "requirements": "b"}, "versions": versions}
    assert _checks.is_exact(table, {"kernel": "a", "requirements": "c"})
    assert not _checks.is_exact(table, {"kernel": "b", "requirements": "b"})
    assert not _checks.is_exact(table | {"versions": versions | {"numpy": "1.0"}}, {"kernel": "a", "requirements": "b"})
    equal = {"versions": versions, "checked": {"agreement": "equal bytes", "identity": table["machine"]}}
    assert _checks.is_exact(equal | {"machine": {"kernel": "b"}}, table["machine"])
    assert not _checks.is_exact(equal | {"machine": {"kernel": "several"}}, table["machine"])


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
    module.estimate, module.block = lambda case: 0.1, lambda case: case["noise"]  # a check computes all rows again
    monkeypatch.setattr("studies.__main__.DATA", tmp_path)
    monkeypatch.setattr("studies.__main__.load", lambda name: module)
    monkeypatch.setattr("studies.__main__.names", lambda: ["toy"])
    monkeypatch.setattr("studies._tasks.read_source", lambda name: ("from bookkit import data", []))
    monkeypatch.setattr("studies.__main__.list_in_order", lambda: ["toy"])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("BNN_TASKS", str(tmp_path / "tasks"))
    return tmp_path


def test_a_study_writes_every_case_with_its_origin(written, client, capsys):
    run("toy", client)
    table = json.loads((written / "toy.json").read_text())
    assert (table["study"], table["measured"], table["machine"]) == ("toy", False, machine())
    assert table["digest"] == digest(table["rows"])
    rows = [{key: value for key, value in row.items() if key not in STAMP} for row in table["rows"]]
    assert rows == [case | Toy.compute(**case) for case in Toy.CASES]
    assert all(set(row) >= STAMP for row in table["rows"])
    assert sorted(path.name for path in written.iterdir()) == ["tasks", "toy.json"]
    assert _checks.find_state("toy", command.load("toy"), table) == ("fine", f"16 rows, made, at {table['commit']}")


@pytest.fixture
def table(written, client, capsys):
    """A table of the toy study, as an older code made it."""
    run("toy", client)
    path = written / "toy.json"
    table = json.loads(path.read_text())
    table["checked"]["code"] = "older"
    path.write_text(json.dumps(table))
    return table


def falsify(path, table, change):
    """Write a table whose rows were changed by hand, its digest made anew."""
    change(table["rows"])
    table["digest"] = digest(table["rows"])
    path.write_text(json.dumps(table))


def test_a_table_of_older_code_is_checked_and_stamped(written, client, table, capsys):
    assert _checks.find_state("toy", command.load("toy"), table)[0] == "check"
    assert check("toy", client)
    stamped = json.loads((written / "toy.json").read_text())
    assert stamped["rows"] == table["rows"]
    assert stamped["checked"].items() >= _tasks.describe_code("toy").items()
    assert stamped["checked"]["agreement"] == "equal bytes"
    assert stamped["checked"]["identity"] == machine()
    assert stamped["checked"]["rows"] >= 2
    assert _checks.find_state("toy", command.load("toy"), stamped)[0] == "fine"


def test_a_study_that_computes_five_per_cent_more_gets_no_stamp_elsewhere_either(
    written, client, table, monkeypatch, capsys
):
    # numbers of about 100, which seeds move by little
    falsify(written / "toy.json", table, lambda rows: [row.update(score=100 + row["score"] / 100) for row in rows])
    table["checked"].pop("spread")
    (written / "toy.json").write_text(json.dumps(table))
    monkeypatch.setattr(_checks, "is_exact", lambda *_: False)
    shift = lambda seed, noise: {"score": 1.05 * (100 + Toy.compute(seed, noise)["score"] / 100)}  # noqa: E731
    monkeypatch.setattr(sys.modules["toy_of_test_studies"], "compute", shift)
    assert not check("toy", client)
    assert json.loads((written / "toy.json").read_text())["checked"]["code"] == "older"


def test_falsified_numbers_get_no_stamp_though_their_digest_fits_and_are_run_again(
    written, client, table, monkeypatch, capsys
):
    falsify(written / "toy.json", table, lambda rows: rows[5].update(score=rows[4]["score"]))
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    assert main([]) == 0
    assert "does not agree, 1 numbers" in capsys.readouterr().out
    rows = json.loads((written / "toy.json").read_text())["rows"]
    assert [row["score"] for row in rows] == [Toy.compute(**case)["score"] for case in Toy.CASES]


@pytest.mark.parametrize("asked", [{"noise": [10]}, {"noise": [10], "seed": [2]}, {"seed": [1, 2]}], ids=str)
def test_some_rows_are_run_again_the_others_kept_and_their_stamp_is_of_no_code(
    written, client, table, monkeypatch, capsys, asked
):
    falsify(written / "toy.json", table, lambda rows: [row.update(score=3.0) for row in rows])
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    words = [word for key, values in asked.items() for value in values for word in ("--only", f"{key}={value}")]
    assert main(["toy", *words]) == 0
    found = json.loads((written / "toy.json").read_text())
    again = [all(case[key] in values for key, values in asked.items()) for case in Toy.CASES]
    wanted = [Toy.compute(**case)["score"] if new else 3.0 for case, new in zip(Toy.CASES, again, strict=True)]
    assert [row["score"] for row in found["rows"]] == wanted
    assert found["checked"] == {key: value for key, value in table["checked"].items() if key != "code"}
    assert _checks.find_state("toy", command.load("toy"), found)[0] == "check"


def test_new_rows_are_added_in_parts(written, client, table, monkeypatch):
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    path = written / "toy.json"
    path.write_text(json.dumps(table | {"rows": [row for row in table["rows"] if row["noise"] == 1]}))
    assert main(["toy", "--only", "noise=10", "--only", "seed=1"]) == 0
    found = json.loads(path.read_text())
    assert _checks.find_state("toy", command.load("toy"), found)[0] == "run"
    assert main(["toy", "--only", "noise=10"]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [(row["noise"], row["seed"]) for row in rows] == [(case["noise"], case["seed"]) for case in Toy.CASES]


def test_a_row_of_what_is_measured_is_added_on_the_machine_of_the_others_only(written, client, table, monkeypatch):
    monkeypatch.setattr(sys.modules["toy_of_test_studies"], "MEASURED", True)
    path = written / "toy.json"
    part = table | {"machine": command.machine(), "rows": [row for row in table["rows"] if row["noise"] == 1]}
    path.write_text(json.dumps(part))
    assert main(["toy", "--only", "noise=10"]) == 0
    rows = json.loads(path.read_text())["rows"]
    assert [row["score"] for row in rows] == [Toy.compute(**case)["score"] for case in Toy.CASES]
    path.write_text(json.dumps(part | {"machine": {"processor": "another"}}))
    with pytest.raises(SystemExit, match="cannot be run by themselves"):
        main(["toy", "--only", "noise=10"])


def test_rows_that_no_study_has_are_refused_and_a_list_of_tables_changes_nothing(written, client, table, capsys):
    before = (written / "toy.json").read_text()
    with pytest.raises(SystemExit, match=r"toy has no case with noise=2; there are: noise: 1, 10"):
        main(["toy", "--only", "noise=2"])
    assert main(["--list"]) == 0
    assert "toy: check, not checked since its code or a table that it reads changed" in capsys.readouterr().out
    assert (written / "toy.json").read_text() == before


def test_a_table_that_is_no_more_the_studys_is_run_again(written, table):
    other = [*table["rows"][:-1], table["rows"][0]]
    for change, why in (
        ({"digest": "0"}, "edited by hand"),
        ({"rows": []}, "edited by hand"),
        ({"rows": other, "digest": digest(other)}, "not the cases"),
    ):
        state, reason = _checks.find_state("toy", command.load("toy"), table | change)
        assert (state, why in reason) == ("run", True)


def test_a_study_that_fails_leaves_its_old_table(written, client, monkeypatch, capsys):
    study = sys.modules["toy_of_test_studies"]
    monkeypatch.setattr(study, "compute", lambda seed, noise: {"score": 1 / (5 - seed)})
    (written / "toy.json").write_text("old")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run("toy", client)
    assert (written / "toy.json").read_text() == "old"


def test_what_is_measured_runs_alone_in_this_process(written, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules["toy_of_test_studies"], "MEASURED", True)
    run("toy")  # without a client, and no cluster is started
    table = json.loads((written / "toy.json").read_text())
    assert table["rows"] == [case | Toy.compute(**case) for case in Toy.CASES]
    assert "checked" not in table
    assert not (written / "tasks").exists()


def test_a_table_that_others_read_is_settled_before_them():
    order = list_in_order()
    assert sorted(order) == names()
    assert order.index("prior_scales") < order.index("data_sets")
