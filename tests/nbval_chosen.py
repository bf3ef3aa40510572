"""Choose the chapters that `make test` runs again: those that have changed, and a few that stand for the rest.

``pytest --nbval --chapters=chosen`` leaves the other chapters to `make test-all`, and says at the end which ran and
why. Without the option every chapter runs.
"""

from functools import cache

import nbformat
from bookkit.repo import BOOK, ask_git
from tools import chapters

# NUTS on a fused network, ADVI on images, a page of tables: together 73 CPU-seconds (book/data/run_cost.json)
FIXED = ("engines", "digits", "one_choice")


def pytest_addoption(parser):
    parser.addoption("--chapters", choices=("all", "chosen"), default="all", help="chapters that are run again")


def pytest_ignore_collect(collection_path, config):
    if collection_path.parent == BOOK and collection_path.suffix == ".ipynb" and _is_choosing(config):
        return None if choose()[collection_path.stem] else True
    return None


def pytest_terminal_summary(terminalreporter, config):
    if _is_choosing(config):
        run = [f"{name} ({why})" for name, why in choose().items() if why]
        left = len(choose()) - len(run)
        terminalreporter.section("chapters")
        terminalreporter.write_line(f"run again: {', '.join(run)}; left to `make test-all`: {left} others")


def _is_choosing(config):
    return config.getoption("nbval", False) and config.getoption("chapters") == "chosen"


@cache
def choose():
    """Why each chapter is run again: dict of name to str, "" where it is not."""
    found = {}
    for path in sorted(BOOK.glob("*.ipynb")):
        nb = nbformat.read(path, as_version=4)
        reason = find_change(nb, [nb, *read_base(path)])
        found[path.stem] = reason or ("stands for others" if path.stem in FIXED else "")
    return found


def find_change(nb, written):
    """What a notebook depends on that is not as some notebooks say they were written with: str, "" for nothing."""
    present = chapters.stamp(nb)
    for name, what in {"code": "its code or tables", "lock": "lock", "numbers": "hbnn.NUMBERS"}.items():
        if any(old.metadata.get("bnn", {}).get("stamp", {}).get(name) != present[name] for old in written):
            return f"{what} changed"
    return ""


def read_base(path):
    """A notebook as it was where this branch left main, if it was another file: list of none or one."""
    base = ask_git("merge-base", "HEAD", "origin/main") or ask_git("merge-base", "HEAD", "main")
    name = f"book/{path.name}"
    if not base or name not in list_changed(base):
        return []
    old = ask_git("show", f"{base}:{name}")
    return [nbformat.reads(old, as_version=4) if old else nbformat.v4.new_notebook()]


@cache
def list_changed(base):
    """The notebooks that are not as they were in a commit: list of str, paths in the repository."""
    return ask_git("diff", "--name-only", base, "--", "book/*.ipynb").splitlines()
