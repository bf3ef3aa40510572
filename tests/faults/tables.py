"""Faults in the tables of studies: numbers falsified, origins forged; and how they are judged.

A falsified table is asked what every table is asked (tests/test_studies.py), and its rows are compared with the honest
ones, which stand for rows computed again: under the settings that made the table (strict), and under others.
"""

from copy import deepcopy
from dataclasses import dataclass

import test_studies
from studies import _checks, _tasks
from tools.chapters import machine
from tools.digests import read_versions
from tools.repo import REQUIREMENTS, ask_git, digest

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
    Falsification(forge(commit=""), "it names no commit"),
    Falsification(forge(measured=True), "it says that it was measured"),
    Falsification(forge_stamp, "it was checked under other code"),
]


def make_honest(strict):
    """The study's table as if it had just been made, here or under other settings."""
    table = deepcopy(test_studies.TABLES[STUDY])
    study, commit = test_studies.load(STUDY), ask_git("rev-parse", "--short", "HEAD")
    rows = [{key: value for key, value in row.items() if key not in _checks.STAMP} for row in table["rows"]]
    table |= {
        "commit": commit, "rows": rows, "digest": digest(rows),
        "versions": dict(read_versions(REQUIREMENTS.read_text(), tuple(table["versions"]))),
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
    if _checks.find_state(STUDY, study, table)[0] != "fine":
        return "test_studies.py::test_tables_were_made_or_checked_under_the_present_code_and_lock"
    kept, test_studies.TABLES = test_studies.TABLES, {STUDY: table}
    try:
        test_studies.test_tables_say_where_they_come_from()
    except AssertionError:
        return "test_studies.py::test_tables_say_where_they_come_from"
    finally:
        test_studies.TABLES = kept
    exact = _checks.is_exact(table, machine())
    for row, true in zip(table["rows"], honest["rows"], strict=True):
        fresh = {key: value for key, value in true.items() if key not in study.CASES[0]}
        if any(_checks.compare_row(row, fresh, table, study, exact=exact)):
            return "a row that is computed again"
    return ""


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
            table["digest"] = digest(table["rows"])
        yield falsification, judge(table, honest), ""
