"""For pytest while faults are planted: quick tests first, nothing from the tree that was copied, a report as JSON."""

import json
import os
import sys
from pathlib import Path

import pytest

REPORT, SECONDS, ORIGINAL = "FAULTS_REPORT", "FAULTS_SECONDS", "FAULTS_ORIGINAL"  # environment variables
seconds, failed = {}, []


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    known = json.loads(Path(os.environ[SECONDS]).read_text())
    items.sort(key=lambda item: known.get(item.nodeid, 0))


def pytest_collectreport(report):
    if report.failed:
        failed.append(report.nodeid)


def pytest_runtest_logreport(report):
    seconds[report.nodeid] = seconds.get(report.nodeid, 0) + report.duration
    if report.failed:
        failed.append(report.nodeid)


def pytest_sessionfinish(session):
    """A module that was read from the tree without the fault would make every test pass."""
    original, copy = Path(os.environ[ORIGINAL]), Path.cwd()
    files = [Path(file).resolve() for m in list(sys.modules.values()) if (file := getattr(m, "__file__", None))]
    foreign = [str(f) for f in files if f.is_relative_to(original) and not f.is_relative_to(original / ".venv")]
    found = {"failed": failed, "seconds": seconds, "foreign": [] if original == copy else foreign}
    Path(os.environ[REPORT]).write_text(json.dumps(found))
