"""Choose the chapters that `make test` runs again: those that have changed, and some by lot.

``pytest --nbval --chapters=chosen`` leaves out a chapter whose code, packages, tables and lock are those with which its
notebook was written, unless the lot falls on it: another chapter at each commit. At the end it says which and why.
Without the option every chapter runs.
"""

from functools import cache

import lots
import nbformat
from bnn import report
from tools import chapters
from tools.digests import find_head

SECONDS = 60  # CPU-seconds for chapters drawn by lot, as `make studies STUDY=run_cost` measured them


def pytest_addoption(parser):
    parser.addoption("--chapters", choices=("all", "chosen"), default="all", help="chapters that are run again")


def pytest_ignore_collect(collection_path, config):
    if collection_path.parent == chapters.BOOK and collection_path.suffix == ".ipynb" and _is_choosing(config):
        return None if choose()[collection_path.stem][0] else True
    return None


def pytest_terminal_summary(terminalreporter, config):
    if not _is_choosing(config):
        return
    terminalreporter.section("chapters")
    for verdict in (True, False):
        for why in dict.fromkeys(why for runs, why in choose().values() if runs is verdict):
            names = ", ".join(name for name, found in choose().items() if found == (verdict, why))
            terminalreporter.write_line(f"{'run again' if verdict else 'not run again'}, {why}: {names}")


def _is_choosing(config):
    return config.getoption("nbval", False) and config.getoption("chapters") == "chosen"


@cache
def choose():
    """Decide for each notebook: dict of name to (whether it is run again, why)."""
    found, same = {}, []
    for path in sorted(chapters.BOOK.glob("*.ipynb")):
        if reason := find_reason(nbformat.read(path, as_version=4)):
            found[path.stem] = (True, reason)
        else:
            same.append(path.stem)
    drawn = draw(same, find_head(), SECONDS)
    found |= dict.fromkeys(drawn, (True, "drawn by lot at this commit"))
    return found | {name: (False, "same code, packages, tables and lock") for name in same if name not in drawn}


def find_reason(nb):
    """Say why a notebook must be run again (str), or None where a run would repeat what it holds."""
    written = nb.metadata.get("bnn", {})
    if written.get("source") != chapters.digest_code(nb):
        return "the code in it has changed"
    if written.get("depends") != chapters.digest_all(nb):
        return "packages, tables or the lock have changed"
    return None


def draw(names, commit, seconds):
    """Draw chapters by lot until their CPU-seconds are used up, one at least.

    Parameters
    ----------
    names : list of str
    commit : str, decides the lot
    seconds : float

    Returns
    -------
    list of str
    """
    costs = {row["chapter"]: row["cpu_seconds"] for row in report.read_data("run_cost")["rows"]}
    drawn = []
    for name in lots.shuffle(names, commit):
        cost = costs.get(name, seconds)
        if not drawn or cost <= seconds:
            drawn.append(name)
            seconds -= cost
    return drawn
