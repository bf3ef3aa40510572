"""Which of many cases that are alike `make test` runs: some by lot, others at each commit; `make test-all` runs all."""

import hashlib
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tools.digests import find_head

ROOT = Path(__file__).parents[1]
TURNS = 3  # a test that is run seldom has its turn at one of so many commits


def shuffle(cases, commit=None):
    """Cases in the order in which the lot takes them.

    Parameters
    ----------
    cases : iterable of str
    commit : str, decides the lot; None: the one that is checked out

    Returns
    -------
    list of str
    """
    cases = list(cases)
    seed = hashlib.sha256("\n".join([commit or find_head(), *cases]).encode()).digest()
    return np.random.default_rng(int.from_bytes(seed[:8], "little")).permutation(cases).tolist()


def draw(cases, n, *, always=()):
    """Mark as slow, and so leave to `make test-all`, all cases but `n` drawn by lot and those in `always`.

    Parameters
    ----------
    cases : iterable of str
    n : int
    always : collection of str

    Returns
    -------
    list of pytest.param
    """
    cases = list(cases)
    chosen = {*always, *shuffle([case for case in cases if case not in always])[:n]}
    return [pytest.param(case, marks=[] if case in chosen else [pytest.mark.slow]) for case in cases]


def seldom(*files):
    """Mark a test that takes long as slow, but at one of `TURNS` commits by lot and where one of `files` has changed.

    Parameters
    ----------
    files : str, what the test is about: paths in the repository. Changed are those that are not as in the commit before
        the one that is checked out; where there is none, all

    Returns
    -------
    decorator of a test
    """

    def mark(test):
        name = f"{test.__module__}.{test.__qualname__}"
        changed = has_changed(files)
        turn = int(hashlib.sha256(f"{find_head()}\n{name}".encode()).hexdigest(), 16) % TURNS == 0
        return test if turn or changed else pytest.mark.slow(test)

    return mark


@cache
def has_changed(files):
    """Whether one of some files (tuple of paths) is not as it was in the commit before (bool)."""
    if missing := [name for name in files if not (ROOT / name).exists()]:
        raise ValueError(f"there is no {missing[0]}; wanted: paths in the repository")
    command = ["git", "-C", ROOT, "diff", "--quiet", "HEAD~1", "--", *files]
    return bool(files) and subprocess.run(command, capture_output=True, check=False).returncode != 0
