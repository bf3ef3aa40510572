"""Faults in the tables of studies: numbers falsified, origins forged; and how they are judged.

A falsified table is asked what every table is asked (tests/test_studies.py), and its rows are compared with the honest
ones, which stand for rows computed again: under the settings that made the table (strict), and under others.
"""

import inspect
import json
import tempfile
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import test_studies
from studies import _checks, _tasks
from tools.chapters import machine
from tools.digests import read_versions

STUDY = "flat_advi_seeds"


@dataclass(frozen=True)
class Falsification:
    """`falsify` changes the table in place; `what` says how. The digest of its rows is made anew, or not."""

    falsify: callable
    what: str
    digest: bool = True

    @property
    def name(self):
        return f"data/{STUDY}.json: {self.what}"


def change_rows(change):
    """`change` gives columns of a row new values."""

    def falsify(table):
        for row in table["rows"]:
            row |= change(row)

    return falsify


def forge(**entries):
    return lambda table: table.update(entries)


def remove_row(table):
    del table["rows"][7]


def double_row(table):
    table["rows"][7] = dict(table["rows"][8])


def rename_case(table):
    table["rows"][7]["seed"] = 99


def forge_row(table):
    table["rows"][7]["commit"] = "0123abc"


def forge_version(table):
    table["versions"]["numpy"] = "9.9.9"


def forge_stamp(table):
    table["checked"]["code"] = "0" * 64


FALSIFICATIONS = [
    Falsification(change_rows(lambda row: {"lpd": row["lpd"] + 0.001}), "a column moves a little", digest=False),
    Falsification(change_rows(lambda row: {"lpd": row["lpd"] + 1.5}), "a column moves, the digest made anew"),
    Falsification(
        change_rows(lambda row: {"accuracy": row["lpd"], "lpd": row["accuracy"]}), "two columns change places"
    ),
    Falsification(change_rows(lambda row: {"brier": str(row["brier"])}), "numbers become text"),
    Falsification(change_rows(lambda row: {"ignorance_far": None}), "a column is emptied"),
    Falsification(change_rows(lambda row: {"gain": 1.0}), "a column is added"),
    Falsification(remove_row, "a row is taken out"),
    Falsification(double_row, "a row is there twice"),
    Falsification(rename_case, "a row says that it has another seed"),
    Falsification(forge(commit="0123abc"), "it names a commit that never was"),
    Falsification(forge(commit=""), "it names no commit"),
    Falsification(forge(measured=True), "it says that it was measured"),
    Falsification(forge_row, "a row names a commit that never was"),
    Falsification(forge_version, "it names a version that no lock ever had"),
    Falsification(forge_stamp, "it was checked under other code"),
]


def make_honest(strict):
    """The study's table as if it had just been made, here or under other settings."""
    table = json.loads(test_studies.PATHS[STUDY].read_text())
    study, commit = test_studies.load(STUDY), _tasks.ask_git("rev-parse", "--short", "HEAD")
    rows = [{key: value for key, value in row.items() if key not in _checks.STAMP} for row in table["rows"]]
    table |= {
        "commit": commit, "rows": rows, "digest": _tasks.digest_rows(rows),
        "versions": dict(read_versions(_tasks.REQUIREMENTS.read_text(), tuple(table["versions"]))),
        "machine": machine() if strict else dict.fromkeys(machine(), "another"),
        "checked": {
            "code": _tasks.digest_code(study.__name__), "commit": commit, "rows": len(rows), "agreement": "made",
            "spread": _checks.measure_spread(rows, study), "identity": {},
        },
    }  # fmt: skip
    return table


def judge(table, honest):
    """Who complains first about a table, or ""."""
    study = test_studies.load(STUDY)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{STUDY}.json")
        path.write_text(json.dumps(table))
        if _checks.find_state(STUDY, study, table)[0] != "fine":
            return "test_studies.py::test_a_table_was_made_or_checked_under_the_present_code_and_lock"
        kept, test_studies.PATHS[STUDY] = test_studies.PATHS[STUDY], path
        try:
            for name, test in vars(test_studies).items():
                wanted = inspect.signature(test).parameters.keys() if name.startswith("test_") else ()
                # the one reads the book's own table: asked above; others compute, or are about the study
                apart = "was_made" in name or "every_study" in name
                if wanted and wanted <= {"name", "locks"} and not apart:
                    fixtures = {"name": STUDY, "locks": _read_locks()}
                    try:
                        test(**{key: fixtures[key] for key in wanted})
                    except AssertionError:
                        return f"test_studies.py::{name}"
        finally:
            test_studies.PATHS[STUDY] = kept
    exact = _checks.is_exact(table, machine())
    for row, true in zip(table["rows"], honest["rows"], strict=True):
        fresh = {key: value for key, value in true.items() if key not in study.CASES[0]}
        if any(_checks.compare_row(row, fresh, table, study, exact=exact)):
            return "a row that is computed again"
    return ""


def _read_locks():
    return inspect.unwrap(test_studies.locks)()


def judge_all(falsifications, strict):
    """Each falsification with who complains first, or "", and why nothing can be said of it, or ""."""
    honest = make_honest(strict)
    complaint = judge(honest, honest)
    for falsification in falsifications:
        if complaint:
            yield falsification, "", f"{complaint} complains of the honest table"
            continue
        table = deepcopy(honest)
        falsification.falsify(table)
        if falsification.digest:
            table["digest"] = _tasks.digest_rows(table["rows"])
        yield falsification, judge(table, honest), ""
