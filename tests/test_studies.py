"""The tables that chapters read: complete, of known origin, checked under the present code, and computed again in part.

Which rows `make test` computes is drawn by the commit that is checked out: about LIGHT CPU-seconds, of two rows of each
study that is drawn. `make test-all` computes HEAVY CPU-seconds of every study. Under the settings that made a table, or
found it equal, any number that was changed by more than 1e-9 is seen in a row that is computed again: k false rows
among n are missed with probability C(n - k, m) / C(n, m) when m are, and a table that is all false never, once one of
its rows is drawn. Under other settings, so is what lies further away than `_checks` grants.
"""

import contextlib
import json
import re
import sys
import types
from collections import Counter

import numpy as np
import pytest
from bnn.report import DATA
from distributed import Client
from studies import __main__ as command
from studies import _checks, _tasks
from studies.__main__ import check, list_in_order, load, main, names, run
from studies._tasks import PACKAGES, digest_rows
from tools.chapters import machine
from tools.digests import find_head, read_versions

PATHS = {name: DATA / f"{name}.json" for name in names() if (DATA / f"{name}.json").exists()}
COMPARED = [name for name in PATHS if not load(name).MEASURED]
STAMP = _checks.STAMP
LIGHT, ONE, HEAVY = 20, 15, 60  # CPU-seconds: rows of `make test`, one of them; rows of one study in `make test-all`
every_table = pytest.mark.parametrize("name", PATHS)


def read(name):
    return json.loads(PATHS[name].read_text())


# tables that `make studies` has still to check or to run, and why it has not; an entry that is no longer true fails
UNCHECKED = {}
every_study = [pytest.param(n, marks=pytest.mark.xfail(n in UNCHECKED, reason=UNCHECKED.get(n, ""))) for n in names()]


@pytest.mark.parametrize("name", every_study)
def test_a_table_was_made_or_checked_under_the_present_code_and_lock(name):
    state, why = _checks.find_state(name, load(name), command.read(name))
    assert state == "fine", f"{name}: {why}; `make studies` says what is to be done, and does it"


@every_table
def test_a_table_has_every_case_once(name):
    study = load(name)
    cases = [json.dumps(case, sort_keys=True) for case in study.CASES]
    found = [json.dumps(_checks.get_case(row, study), sort_keys=True) for row in read(name)["rows"]]
    assert Counter(found) == Counter(cases), f"`make studies STUDY={name}` writes the table anew"


@every_table
def test_a_table_says_where_it_comes_from(name):
    table = read(name)
    assert table["study"] == name
    assert table["measured"] is load(name).MEASURED
    assert table["machine"]
    assert set(table["versions"]) == set(PACKAGES)
    assert table["python"].startswith("3.")


@every_table
def test_a_table_that_was_edited_by_hand_is_noticed(name):
    table = read(name)
    assert table["digest"] == digest_rows(table["rows"]), f"`make studies STUDY={name}` writes the table anew"


@every_table
def test_the_commits_that_a_table_names_are_in_the_history(name):
    table = read(name)
    named = {table["commit"], *(row.get("commit", table["commit"]) for row in table["rows"])}
    named |= {table["checked"]["commit"]} if "checked" in table else set()
    assert [commit for commit in named if not _checks.knows_commit(commit)] == []


@pytest.fixture(scope="module")
def locks():
    """Package and version, all of each lock that this repository ever had."""
    commits = _tasks.ask_git("log", "--format=%h", "--", "requirements.txt").split()
    texts = [_tasks.ask_git("show", f"{commit}:requirements.txt") for commit in commits]
    return [set(read_versions(text, PACKAGES)) for text in [*texts, _tasks.REQUIREMENTS.read_text()]]


@every_table
def test_the_versions_that_a_table_names_are_those_of_one_lock(name, locks):
    if _tasks.ask_git("rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("the history of requirements.txt is not here")
    table = read(name)
    named = {tuple(table["versions"].items())}
    named |= {tuple(re.findall(r"([\w-]+) ([^\s,]+)", row["versions"])) for row in table["rows"] if "versions" in row}
    assert [versions for versions in named if not any(set(versions) <= lock for lock in locks)] == []


@pytest.mark.parametrize("name", COMPARED)
def test_scores_are_the_mean_of_their_categories(name):
    rows = read(name)["rows"]
    for column in [column for column in rows[0] if f"{column}_groups" in rows[0]]:
        wrong = [row for row in rows if row[column] is not None
                 and row[column] != pytest.approx(np.mean(row[f"{column}_groups"]), abs=1e-5)]  # fmt: skip
        assert wrong == []


# --- rows that are computed again


def list_candidates(name):
    study = load(name)
    return getattr(study, "RECOMPUTED", study.CASES)


def draw_light(head):
    """Name and case of what `make test` computes at a commit: studies in a drawn order, two rows of each."""
    chosen, left = [], LIGHT
    rng = np.random.default_rng(_checks.seed_by(head))
    for name in rng.permutation([name for name in COMPARED if name not in UNCHECKED]).tolist():
        study = load(name)
        cheap = [case for case in list_candidates(name) if _checks.get_cost(case, study) <= ONE]
        for case in _checks.draw_cases(study, cheap, min(left, 2 * ONE), _checks.seed_by(head, name))[:2]:
            chosen.append((name, case))
            left -= _checks.get_cost(case, study)
        left -= getattr(study, "FIRST", 0) * any(drawn == name for drawn, _ in chosen)
    return chosen


def find_complaints(name, case):
    """What is wrong with a row of a table, computed again."""
    study, table = load(name), read(name)
    (row,) = [row for row in table["rows"] if _checks.get_case(row, study) == case]
    exact = _checks.is_exact(table, machine())
    different, unknown = _checks.compare_row(row, study.compute(**case), table, study, exact=exact)
    return different + [f"cannot be compared: {words}" for words in unknown]


LIGHT_ROWS = draw_light(find_head())


NAMES = [f"{name}-{'-'.join(map(str, case.values()))}" for name, case in LIGHT_ROWS]


@pytest.mark.parametrize(("name", "case"), LIGHT_ROWS, ids=NAMES)
def test_a_row_computed_again_agrees(name, case):
    assert find_complaints(name, case) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARED)
def test_rows_of_every_study_computed_again_agree(name):
    seed = _checks.seed_by(find_head(), name, "all")
    cases = _checks.draw_cases(load(name), list_candidates(name), HEAVY, seed, at_least=1)
    assert {str(case): found for case in cases if (found := find_complaints(name, case))} == {}


def test_what_is_drawn_fits_its_time_and_another_commit_draws_others():
    drawn = [draw_light(head) for head in "abcdefgh"]
    for rows in drawn:
        assert 0 < sum(_checks.get_cost(case, load(name)) for name, case in rows) <= LIGHT
    assert drawn[0] == draw_light("a")
    assert len({json.dumps(rows) for rows in drawn}) == len(drawn)


def test_a_sample_has_as_many_kinds_as_fit():
    study = load("replication")
    cases = _checks.draw_cases(study, list_candidates("replication"), HEAVY, 1)
    assert sum(map(study.estimate, cases)) <= HEAVY
    kinds = [_checks.get_kind(case, study) for case in cases]
    assert len(kinds) == len(set(kinds))


def test_a_sample_has_the_cheapest_rows_where_none_fits():
    study = load("sd_prior")
    cases = _checks.draw_cases(study, study.CASES, 1, 1, at_least=2)
    assert list(map(study.estimate, cases)) == [100, 100]


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


def compare(row, fresh, table, exact=False, study=Toy):
    """What differs, and what is unknown, of a row."""
    return _checks.compare_row(row, fresh, table, study, exact=exact)


def test_under_the_settings_of_a_table_a_row_must_be_equal(toy):
    row = toy["rows"][3]
    assert compare(row, {"score": row["score"] * (1 + 1e-12)}, toy, exact=True) == ([], [])
    different, _ = compare(row, {"score": row["score"] * (1 + 1e-6)}, toy, exact=True)
    assert len(different) == 1


def test_elsewhere_a_row_with_a_monte_carlo_error_may_move_as_far_as_that(toy):
    for row in toy["rows"]:
        row |= {"score_mcse": 0.1, "converged": True}
    row = toy["rows"][3]
    fresh = {"score_mcse": 0.1, "converged": True}
    assert compare(row, fresh | {"score": row["score"] + 0.5}, toy) == ([], [])
    assert compare(row, fresh | {"score": row["score"] + 1}, toy)[0] != []


def test_the_monte_carlo_error_of_chains_that_disagree_counts_for_nothing(toy):
    for row in toy["rows"]:
        row |= {"score_mcse": 1e-6, "converged": False}
    row = toy["rows"][3]
    assert compare(row, {"score": row["score"] + 0.5, "score_mcse": 1e-6, "converged": False}, toy) == ([], [])


def test_elsewhere_a_row_may_move_as_far_as_rows_of_its_kind_do(toy):
    row = toy["rows"][3]
    assert compare(row, {"score": row["score"] + 1}, toy) == ([], [])
    assert compare(row, {"score": row["score"] + 30}, toy)[0] != []  # not as far as the noisier ones


def test_a_kind_of_few_rows_borrows_from_the_others():
    table = {"rows": [{"seed": s, "noise": n, "score": n * (1 + 0.01 * s)} for n in (1, 10, 100) for s in (1, 2, 3)]}
    row = table["rows"][0]
    assert compare(row, {"score": 1.05}, table) == ([], [])
    assert compare(row, {"score": 1.5}, table)[0] != []


def test_where_nobody_knows_how_far_seeds_differ_a_row_cannot_be_compared():
    table = {"rows": [{"seed": 1, "noise": n, "score": n} for n in range(20)]}
    assert compare(table["rows"][3], {"score": 3.1}, table) == ([], ["score: 3.1, in the table 3"])
    assert compare(table["rows"][3], {"score": 3}, table) == ([], [])  # equal is equal


def test_what_a_stamp_says_of_seeds_is_used():
    table = {"rows": [{"seed": 1, "noise": n, "score": n} for n in range(20)]}
    table["checked"] = {"spread": {"score": [0.01, 8, False]}}
    assert compare(table["rows"][3], {"score": 3.1}, table) == ([], [])
    assert compare(table["rows"][3], {"score": 3.6}, table)[0] != []


def test_one_point_may_change_sides_where_it_does_for_no_seed():
    rows = [{"seed": s, "noise": 1, "train_accuracy": 100 * 770 / 900} for s in range(6)]
    assert compare(rows[0], {"train_accuracy": 100 * 769 / 900}, {"rows": rows}) == ([], [])
    assert compare(rows[0], {"train_accuracy": 100 * 768 / 900}, {"rows": rows})[0] != []


def test_every_number_of_a_list_is_compared():
    table = {"rows": [{"seed": s, "noise": 1, "score": [1 + 0.01 * s, 2 + 0.01 * s]} for s in range(8)]}
    assert compare(table["rows"][0], {"score": [1.05, 2.05]}, table) == ([], [])
    assert compare(table["rows"][0], {"score": [2.05, 1.05]}, table)[0] != []


def test_words_must_be_equal_unless_seeds_change_them():
    rows = [{"seed": s, "noise": 1, "at": "sd1", "worst": f"sd{s}"} for s in range(6)]
    assert compare(rows[0], {"at": "sd1", "worst": "sd9"}, {"rows": rows}) == ([], [])
    assert compare(rows[0], {"at": "sd2", "worst": "sd0"}, {"rows": rows})[0] != []


def test_a_column_more_or_less_is_seen(toy):
    assert compare(toy["rows"][0], {}, toy)[0] != []
    assert compare(toy["rows"][0], {"score": 1.0, "new": 1.0}, toy)[0] != []


def test_the_lock_as_a_whole_does_not_make_other_settings_but_its_versions_do():
    versions = dict(read_versions(_tasks.REQUIREMENTS.read_text(), PACKAGES))
    table = {"machine": {"kernel": "a", "requirements": "b"}, "versions": versions}
    assert _checks.is_exact(table, {"kernel": "a", "requirements": "c"})
    assert not _checks.is_exact(table, {"kernel": "b", "requirements": "b"})
    assert not _checks.is_exact(table | {"versions": versions | {"numpy": "1.0"}}, {"kernel": "a", "requirements": "b"})


def test_a_commit_that_is_not_in_the_history_is_refused():
    assert not _checks.knows_commit("")
    if _tasks.ask_git("rev-parse", "--is-shallow-repository") == "false":
        assert _checks.knows_commit(_tasks.ask_git("rev-parse", "--short", "HEAD") + "+")
        assert not _checks.knows_commit("0123456")


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
    monkeypatch.setattr("studies._tasks.list_dependencies", lambda name: ("code", []))
    monkeypatch.setattr("studies.__main__.list_in_order", lambda: ["toy"])
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
    assert _checks.find_state("toy", command.load("toy"), table) == ("fine", f"16 rows, made, at {table['commit']}")


@pytest.fixture
def table(written, client, capsys):
    """A table of the toy study, as an older code made it."""
    run("toy", client)
    path = written / "toy.json"
    table = json.loads(path.read_text())
    table["commit"] = table["checked"]["commit"] = _tasks.find_commit().removesuffix("+")
    table["checked"]["code"] = "older"
    path.write_text(json.dumps(table))
    return table


def falsify(path, table, change):
    """Write a table whose rows were changed by hand, its digest made anew."""
    change(table["rows"])
    table["digest"] = digest_rows(table["rows"])
    path.write_text(json.dumps(table))


def test_a_table_of_older_code_is_checked_and_stamped(written, client, table, capsys):
    assert _checks.find_state("toy", command.load("toy"), table)[0] == "check"
    assert check("toy", client)
    stamped = json.loads((written / "toy.json").read_text())
    assert stamped["rows"] == table["rows"]
    assert (stamped["checked"]["code"], stamped["checked"]["agreement"]) == ("code", "equal bytes")
    assert stamped["checked"]["identity"] == machine()
    assert stamped["checked"]["rows"] >= 2
    assert _checks.find_state("toy", command.load("toy"), stamped)[0] == "fine"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_study_that_computes_five_per_cent_more_gets_no_stamp(written, client, table, monkeypatch, capsys, elsewhere):
    def shift(seed, noise):
        return {"score": 100 + 1.05 * (100 + Toy.compute(seed, noise)["score"]) - 100}

    if elsewhere:  # numbers of about 100, which seeds move by little
        falsify(written / "toy.json", table, lambda rows: [row.update(score=100 + row["score"] / 100) for row in rows])
        monkeypatch.setattr(_checks, "is_exact", lambda *_: False)
        shift = lambda seed, noise: {"score": 1.05 * (100 + Toy.compute(seed, noise)["score"] / 100)}  # noqa: E731
    table["checked"].pop("spread")
    (written / "toy.json").write_text(json.dumps(table))
    monkeypatch.setattr(sys.modules["toy_of_test_studies"], "compute", shift)
    assert not check("toy", client)
    assert json.loads((written / "toy.json").read_text())["checked"]["code"] == "older"


def test_numbers_that_were_falsified_get_no_stamp_though_their_digest_fits(written, client, table, capsys):
    falsify(written / "toy.json", table, lambda rows: rows[5].update(score=rows[4]["score"]))
    assert not check("toy", client)
    assert "does not agree, 1 numbers" in capsys.readouterr().out


def test_what_does_not_agree_is_run_again_in_full(written, client, table, monkeypatch, capsys):
    falsify(written / "toy.json", table, lambda rows: rows[5].update(score=3.0))
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    assert main([]) == 0
    rows = json.loads((written / "toy.json").read_text())["rows"]
    assert [row["score"] for row in rows] == [Toy.compute(**case)["score"] for case in Toy.CASES]


def test_some_rows_of_a_table_are_run_again_and_the_others_kept(written, client, table, monkeypatch, capsys):
    falsify(written / "toy.json", table, lambda rows: [row.update(score=3.0) for row in rows])
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    assert main(["toy", "--only", "noise=10"]) == 0
    found = json.loads((written / "toy.json").read_text())
    wanted = [Toy.compute(**case)["score"] if case["noise"] == 10 else 3.0 for case in Toy.CASES]
    assert [row["score"] for row in found["rows"]] == wanted
    assert found["digest"] == digest_rows(found["rows"])
    assert _checks.find_state("toy", command.load("toy"), found)[0] == "check"


def test_a_row_run_again_leaves_the_others_stamp_but_not_its_code(written, client, table, monkeypatch):
    path = written / "toy.json"
    path.write_text(json.dumps(table | {"commit": "abc+", "checked": {"commit": "abc", "code": "old", "rows": 3}}))
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    assert main(["toy", "--only", "noise=10", "--only", "seed=2"]) == 0
    assert json.loads(path.read_text())["checked"] == {"commit": "abc", "rows": 3}


def test_of_several_conditions_all_must_hold(written, client, table, monkeypatch):
    falsify(written / "toy.json", table, lambda rows: [row.update(score=3.0) for row in rows])
    monkeypatch.setattr(_tasks, "_connect", lambda _: contextlib.nullcontext(client))
    assert main(["toy", "--only", "noise=10", "--only", "seed=2"]) == 0
    rows = json.loads((written / "toy.json").read_text())["rows"]
    assert [(row["noise"], row["seed"]) for row in rows if row["score"] != 3.0] == [(10, 2)]


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


def test_rows_that_no_study_has_are_refused_and_nothing_is_written(written, client, table, capsys):
    before = (written / "toy.json").read_text()
    with pytest.raises(SystemExit, match=r"toy has no case with noise=2; there are: noise: 1, 10"):
        main(["toy", "--only", "noise=2"])
    with pytest.raises(SystemExit):
        main(["--only", "noise=2"])
    assert (written / "toy.json").read_text() == before


def test_a_list_of_tables_changes_nothing(written, client, table, capsys):
    before = (written / "toy.json").read_text()
    assert main(["--list"]) == 0
    assert "toy: check, the code or the lock is another one since" in capsys.readouterr().out
    assert (written / "toy.json").read_text() == before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"commit": ""}, "names no commit"),
        ({"digest": "0"}, "edited by hand"),
        ({"checked": {}, "commit": "+"}, "names no commit"),
        ({"rows": []}, "edited by hand"),
    ],
)
def test_a_table_of_unknown_origin_is_run_again(written, table, change, why):
    state, reason = _checks.find_state("toy", command.load("toy"), table | change)
    assert state == "run"
    assert why in reason


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
    assert "checked" not in table
    assert not (written / "tasks").exists()


def test_a_table_that_others_read_is_settled_before_them():
    order = list_in_order()
    assert sorted(order) == names()
    assert order.index("prior_scales") < order.index("data_sets")


def test_an_unknown_study_is_refused_and_the_known_ones_are_named():
    with pytest.raises(SystemExit, match=r"there is no study 'nope'; there are: .*flat_advi_seeds"):
        load("nope")


@pytest.mark.parametrize("name", names())
def test_every_study_says_what_it_is(name):
    study = load(name)
    assert study.__doc__
    assert isinstance(study.MEASURED, bool)
    assert all(case.keys() == study.CASES[0].keys() for case in study.CASES)
