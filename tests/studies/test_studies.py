"""The tables that chapters read: complete, of known origin, checked under the present code, and computed again in part.

`make test` computes a row of each study in LIGHT again, and `make test-all` two rows of every study, other ones at
another commit.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from bookkit.repo import digest
from bookkit.versions import machine, read_versions
from distributed import Client, LocalCluster
from studies import __main__ as command
from studies import _checks, _tasks

TABLES = {name: table for name in command.names() if (table := command.read(name))}
COMPARED = [name for name in TABLES if not command.load(name).MEASURED]
LIGHT = ("calibration", "cheaper_ways", "curve_rivals", "flat_advi_seeds")


def test_tables_were_made_or_checked_under_the_present_code_and_lock():
    states = {name: _checks.find_state(command.load(name), TABLES.get(name)) for name in command.names()}
    wrong = {name: why for name, (state, why) in states.items() if state != "fine"}
    assert wrong == {}, "`make studies` says what is to be done, and does it"


def test_a_comment_in_hbnn_leaves_tables_fresh_and_a_number_raised_asks_for_those_that_use_ours(monkeypatch):
    def list_changed():
        return {name for name in COMPARED if _tasks.describe_code(command.load(name)) != before[name]}

    before = {name: _tasks.describe_code(command.load(name)) for name in COMPARED}
    read_text = Path.read_text
    for place, changed in (("hbnn", set()), ("calibration.py", {"calibration"})):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_text", lambda p, **how: read_text(p, **how) + "\n# a word" * (place in p.parts))  # noqa: B023
            assert list_changed() == changed
    monkeypatch.setattr("hbnn.NUMBERS", 1000)
    assert list_changed() == {name for name in COMPARED if before[name]["numbers"] is not None} != set()
    state, why = _checks.find_state(command.load("calibration"), TABLES["calibration"])
    assert (state, "hbnn.NUMBERS" in why) == ("check", True)


def test_tables_say_where_they_come_from_and_scores_are_the_mean_of_their_categories():
    for name, table in TABLES.items():
        assert (table["study"], table["measured"]) == (name, command.load(name).MEASURED)
        assert (bool(table["machine"] and table["commit"]), set(table["versions"])) == (True, set(_tasks.PACKAGES))
        rows = table["rows"]
        for column in [column for column in rows[0] if f"{column}_groups" in rows[0]]:
            means = [(row[column], np.mean(row[f"{column}_groups"])) for row in rows if row[column] is not None]
            assert all(score == pytest.approx(mean, abs=1e-5) for score, mean in means), f"{name}, {column}"


@pytest.mark.parametrize("name", LIGHT)
def test_a_row_computed_again_agrees(name):
    assert command.check(name, n_rows=1, seconds=0, seed=0)[0] == []  # the same row at each commit


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_rows_of_every_study_computed_again_agree(name):
    assert command.check(name)[0] == []


def test_a_sample_is_of_several_kinds_and_of_the_cheapest_rows_where_none_is_cheap_and_each_seed_has_its_own():
    study = command.load("replication")
    drawn = [_checks.draw_cases(study, 2, 60, seed) for seed in range(5)]
    assert all(max(map(study.estimate, cases)) <= 60 for cases in drawn)
    assert all(len({_checks.name_case(case, study, "seed") for case in cases}) == 2 for cases in drawn)
    assert len({str(cases) for cases in drawn}) > 1
    costs = [study.estimate(case) for case in _checks.draw_cases(study, 2, 0, 1)]
    assert costs == sorted(map(study.estimate, study.CASES))[:2]


def test_a_table_that_others_read_is_settled_before_them():
    order = command.list_in_order()
    assert sorted(order) == command.names()
    assert order.index("prior_scales") < order.index("data_sets")


# --- how far a row may lie from its like, on a study that costs nothing

TOY = '''
import os, signal
from pathlib import Path
import numpy as np
import xarray as xr
from bookkit import cache

HERE = Path(__file__).parent
MEASURED = False
CASES = [{"seed": seed, "noise": noise} for noise in (1, 10) for seed in range(1, 9)]
UNCOMPARED = ("process",)
TREE = xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("draw", np.arange(3.0))})})
TREE.attrs["run"] = "a run"


def estimate(case):
    return 0.1


def block(case):
    return case["noise"]


def score(seed, noise):
    return noise * float(np.random.default_rng(seed).normal())


def compute(seed, noise):
    """A row; every call leaves a trace. A file "fatal" kills one process, "broken" is an error, "saves" a posterior."""
    with open(HERE / "calls.txt", "a") as file:
        print(noise, seed, file=file)
    if (HERE / "fatal").exists():
        (HERE / "fatal").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if (HERE / "broken").exists() and noise == 10:
        raise ValueError("this row cannot be computed")
    if (HERE / "saves").exists():
        cache.write(TREE, HERE / "run.nc")
        assert cache.read(HERE / "run.nc", "a run").identical(TREE)
    return {"score": score(seed, noise), "process": os.getpid()}
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The only study, in a folder that worker processes import from, too; its table and its tasks lie there."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("SCHEDULER", raising=False)
    monkeypatch.setenv("JOBS", "1")
    monkeypatch.setenv("BNN_TASKS", str(tmp_path / "tasks"))
    sys.modules.pop("toy", None)
    _tasks._digest_loaded.cache_clear()  # a process of its own for each test
    import toy

    monkeypatch.setattr(command, "DATA", tmp_path)
    monkeypatch.setattr(command, "load", lambda name: toy)
    monkeypatch.setattr(command, "list_in_order", lambda: ["toy"])
    yield toy
    sys.modules.pop("toy", None)


def list_scores(toy):
    """The right table's, without a trace."""
    return [toy.score(**case) for case in toy.CASES]


@pytest.fixture
def rows(toy):
    return [case | {"score": toy.score(**case)} for case in toy.CASES]


def compare(toy, table, row, *changes, exact=False):
    """Of each change of a row whether it is told from the table's: "no", "yes", or "unknown"."""
    found = []
    for change in changes:
        fresh = {key: value for key, value in row.items() if key not in toy.CASES[0]} | change
        words = _checks.compare_row(row, fresh, table, toy, exact=exact)
        found.append("unknown" if "cannot be compared" in str(words) else "yes" if words else "no")
    return found


def test_under_the_settings_of_a_table_a_row_must_be_equal_and_elsewhere_near_as_rows_of_its_kind_are(toy, rows):
    row, moves = rows[3], [{"score": rows[3]["score"] + move} for move in (1e-12, 1e-6, 1, 30)]
    assert compare(toy, {"rows": rows}, row, *moves, exact=True) == ["no", "yes", "yes", "yes"]
    assert compare(toy, {"rows": rows}, row, *moves) == ["no", "no", "no", "yes"]  # not as far as the noisier ones


def test_elsewhere_a_row_may_move_as_far_as_its_monte_carlo_error_where_its_chains_agree(toy, rows):
    for error, converged, seen in ((0.1, True, 1), (1e-6, True, 2), (1e-6, False, 0)):
        told = [row | {"score_mcse": error, "converged": converged} for row in rows]
        found = compare(toy, {"rows": told}, told[3], *({"score": told[3]["score"] + move} for move in (0.5, 1)))
        assert found.count("yes") == seen


def test_a_kind_of_few_rows_borrows_from_the_others_or_from_a_stamp_or_cannot_be_compared(toy):
    few = {"rows": [{"seed": s, "noise": n, "score": n * (1 + 0.01 * s)} for n in (1, 10, 100) for s in (1, 2, 3)]}
    assert compare(toy, few, few["rows"][0], {"score": 1.05}, {"score": 1.5}) == ["no", "yes"]
    alone = {"rows": [{"seed": 1, "noise": n, "score": n} for n in range(20)]}
    moves = [{"score": score} for score in (3, 3.1, 3.6)]
    assert compare(toy, alone, alone["rows"][3], *moves) == ["no", "unknown", "unknown"]  # equal is equal
    alone["checked"] = {"spread": {"score": [0.01, 8, False]}}
    assert compare(toy, alone, alone["rows"][3], *moves) == ["no", "no", "yes"]


def test_points_words_lists_verdicts_and_columns_are_compared_each_in_its_way(toy):
    rows = [{"seed": s, "noise": 1, "train_accuracy": 100 * 770 / 900, "at": "sd1", "worst": f"sd{s}", "fine": True,
             "two": [1 + 0.01 * s, 2.0], "a: converged": True} for s in range(6)]  # fmt: skip
    fine = [{"train_accuracy": 100 * 769 / 900}, {"worst": "sd9"}, {"two": [1.05, 2.0]}]  # one point may change sides
    wrong = [{"train_accuracy": 100 * 768 / 900}, {"at": "sd2"}, {"two": [2.05, 1.0]}, {"new": 1.0}, {"fine": False},
             {"a: converged": False}]  # fmt: skip
    assert compare(toy, {"rows": rows}, rows[0], *fine, *wrong) == ["no"] * 3 + ["yes"] * 6
    rows.append(rows[0] | {"noise": 2, "a: converged": False})  # near the limit, whether chains agree is luck
    assert compare(toy, {"rows": rows}, rows[0], {"a: converged": False}, {"fine": False}) == ["no", "yes"]


def test_the_lock_as_a_whole_does_not_make_other_settings_but_its_versions_do():
    versions, here = dict(read_versions(_tasks.PACKAGES)), {"kernel": "a", "requirements": "b"}
    table = {"machine": here, "versions": versions}
    equal = {"versions": versions, "checked": {"agreement": "equal bytes", "identity": here}}
    for found, there, exact in (
        (table, here | {"requirements": "c"}, True),
        (table, here | {"kernel": "b"}, False),
        (table | {"versions": versions | {"numpy": "1.0"}}, here, False),
        (equal | {"machine": {"kernel": "b"}}, here, True),
        (equal | {"machine": {"kernel": "several"}}, here, False),
    ):
        assert _checks.is_exact(found, there) is exact


# --- a table is made, checked, and made anew in part


@pytest.fixture(scope="module")
def client():
    """One worker, in a thread of this process."""
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0", set_as_default=False
    ) as client:
        yield client


@pytest.fixture
def made(toy, client, monkeypatch):
    """The folder with a table of the study, made by this code; commands go to the client."""
    connect = _tasks.connect
    monkeypatch.setattr(_tasks, "connect", lambda _: connect(client))
    assert command.main(["toy"]) == 0
    return toy.HERE


def read(folder):
    return json.loads((folder / "toy.json").read_text())


def falsify(folder, change, **origin):
    """Write a table whose rows were changed by hand, its digest made anew."""
    table = read(folder)
    for row in table["rows"]:
        change(row)
    (folder / "toy.json").write_text(json.dumps(table | origin | {"digest": digest(table["rows"])}))


def list_kept(folder, column):
    return [row[column] for row in read(folder)["rows"]]


def count_calls(folder):
    return len((folder / "calls.txt").read_text().splitlines())


def test_a_study_writes_every_case_in_order_with_its_origin(toy, made):
    table = read(made)
    assert (table["study"], table["measured"], table["machine"]) == ("toy", False, machine())
    assert [(row["seed"], row["noise"]) for row in table["rows"]] == [tuple(case.values()) for case in toy.CASES]
    assert list_kept(made, "score") == list_scores(toy)
    assert all(row["versions"].startswith("pymc ") and isinstance(row["commit"], str) for row in table["rows"])
    assert len(list((made / "tasks" / "toy").iterdir())) == 2  # a task for each block
    assert _checks.find_state(toy, table) == ("fine", f"16 rows, made, at {table['commit']}")
    twice = [*table["rows"][:-1], table["rows"][0]]
    for found, why in (
        (None, "no table"),
        (table | {"digest": "0"}, "edited by hand"),
        (table | {"rows": twice, "digest": digest(twice)}, "not the cases"),
    ):
        state, reason = _checks.find_state(toy, found)
        assert (state, why in reason) == ("run", True)


def test_a_table_of_a_study_that_changed_is_listed_checked_and_stamped(toy, made, capsys):
    before = read(made)
    (made / "toy.py").write_text(TOY + "# a word\n")
    assert command.main(["--list"]) == 0
    assert "toy: check, not checked since its code or a table that it reads changed" in capsys.readouterr().out
    assert read(made) == before
    assert command.main(["--check"]) == 0
    after = read(made)
    assert after["rows"] == before["rows"]
    wanted = _tasks.describe_code(toy) | {"agreement": "equal bytes", "identity": machine(), "rows": 2}
    assert after["checked"].items() >= wanted.items()
    assert _checks.find_state(toy, after)[0] == "fine"


def test_falsified_numbers_get_no_stamp_though_their_digest_fits_and_are_run_again(toy, made, capsys):
    falsify(made, lambda row: row.update(score=row["score"] + 1), checked={})
    assert command.main([]) == 0
    assert "does not agree, 2 numbers" in capsys.readouterr().out
    assert list_kept(made, "score") == list_scores(toy)


@pytest.mark.parametrize("asked", [{"noise": [10]}, {"noise": [10], "seed": [2]}, {"seed": [1, 2]}], ids=str)
def test_some_rows_are_run_again_the_others_kept_and_their_stamp_is_of_no_code(toy, made, asked):
    checked = read(made)["checked"]
    falsify(made, lambda row: row.update(score=3.0, process="old"))
    words = [word for key, values in asked.items() for value in values for word in ("--only", f"{key}={value}")]
    assert command.main(["toy", *words]) == 0
    again = [all(case[key] in values for key, values in asked.items()) for case in toy.CASES]
    assert list_kept(made, "score") == [s if new else 3.0 for s, new in zip(list_scores(toy), again, strict=True)]
    assert set(list_kept(made, "process")) == {"old"}  # side by side, of one machine
    assert read(made)["checked"] == {key: value for key, value in checked.items() if key != "code"}
    assert _checks.find_state(toy, read(made))[0] == "check"


def test_new_rows_are_added_in_parts_and_rows_that_no_study_has_are_refused(toy, made):
    table = read(made)
    (made / "toy.json").write_text(json.dumps(table | {"rows": table["rows"][:8]}))
    for words, n_rows in ((["--only", "noise=10", "--only", "seed=1"], 9), (["--only", "noise=10"], 16)):
        assert command.main(["toy", *words]) == 0
        assert list_kept(made, "score") == list_scores(toy)[:n_rows]
    with pytest.raises(SystemExit, match=r"toy has no case with .*'2'.*; there are: {'noise': \['1', '10'\]}"):
        command.main(["toy", "--only", "noise=2"])


def test_what_is_measured_runs_alone_in_this_process_and_in_part_on_the_same_machine_only(toy, monkeypatch):
    monkeypatch.setattr(toy, "MEASURED", True)
    monkeypatch.setattr(_tasks, "connect", lambda _: pytest.fail("a cluster was started"))
    command.run("toy")
    assert list_kept(toy.HERE, "score") == list_scores(toy)
    assert (set(list_kept(toy.HERE, "process")), "checked" in read(toy.HERE)) == ({os.getpid()}, False)
    falsify(toy.HERE, lambda row: row.update(process="old"))
    command.run("toy", {"noise": ["10"]})
    assert list_kept(toy.HERE, "process") == ["old"] * 8 + [os.getpid()] * 8
    falsify(toy.HERE, lambda row: None, machine={"processor": "another"})
    with pytest.raises(SystemExit, match="cannot be run by themselves"):
        command.run("toy", {"noise": ["10"]})


# --- tasks on Dask


def run_tasks(toy, client=None):
    """How many calls the scores of all cases took, which are right."""
    rows, _ = _tasks.run_tasks(toy, toy.CASES, toy.HERE / "tasks" / "toy", client)
    assert [row["score"] for row in rows] == list_scores(toy)
    return count_calls(toy.HERE)


def test_a_run_that_failed_leaves_the_old_table_names_what_failed_and_goes_on(toy, client):
    (toy.HERE / "toy.json").write_text("{}")
    (toy.HERE / "broken").touch()
    with pytest.raises(RuntimeError, match=r"1 of 2 tasks failed; (?s:.*)'noise': 10.*ValueError: this row cannot be"):
        command.run("toy", client=client)
    assert (read(toy.HERE), count_calls(toy.HERE)) == ({}, 9)
    (toy.HERE / "broken").unlink()
    assert [run_tasks(toy, client) for _ in range(2)] == [9 + 8, 9 + 8]


@pytest.mark.parametrize("damage", [lambda _: b"\xff", lambda whole: whole.replace(b'"score": ', b'"score": 1')])
def test_a_file_that_was_damaged_or_edited_is_computed_again(toy, made, client, damage):
    (path,) = (path for path in (made / "tasks" / "toy").iterdir() if '"noise": 1,' in path.read_text())  # the first
    path.write_bytes(damage(path.read_bytes()))
    assert run_tasks(toy, client) == 16 + 8


@pytest.mark.parametrize("change", ["code", "packages"])
def test_a_worker_that_has_other_code_or_packages_or_loaded_it_before_it_changed_refuses(toy, monkeypatch, change):
    code = _tasks.digest_code(toy)
    _tasks.compute_block("toy", toy.CASES[:1], code, "")
    if change == "code":
        (toy.HERE / "toy.py").write_text(TOY.replace("noise * float", "2 * noise * float"))
        code = _tasks.digest_code(toy)
    else:
        _tasks._digest_loaded.cache_clear()
        monkeypatch.setattr(_tasks, "version", lambda package: "0.1")
    with pytest.raises(RuntimeError, match=r"other code or other packages.*after the last change"):
        _tasks.compute_block("toy", toy.CASES[:1], code, "")
    assert count_calls(toy.HERE) == 1


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_task_done_again_and_may_store_a_posterior(toy):
    (toy.HERE / "fatal").touch()
    (toy.HERE / "saves").touch()
    assert run_tasks(toy) == 1 + 16
    assert (toy.HERE / "run.nc").exists()


def test_a_scheduler_elsewhere_is_used_and_when_it_is_killed_the_run_goes_on(toy, client, monkeypatch):
    with LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=":0", protocol="tcp") as c:
        write = _tasks.write_atomically
        with monkeypatch.context() as patch:
            patch.setenv("SCHEDULER", c.scheduler_address)
            patch.setattr(_tasks, "write_atomically", lambda *file: (write(*file), c.close()))
            with pytest.raises(RuntimeError, match="the same command goes on"):
                run_tasks(toy)
    assert len(list((toy.HERE / "tasks" / "toy").glob("*.json"))) == 1
    calls = count_calls(toy.HERE)
    assert run_tasks(toy, client) == calls + 8
