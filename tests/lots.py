"""Which of many cases that are alike `make test` runs: some by lot, others at each commit; `make test-all` runs all."""

import hashlib

import numpy as np
import pytest
from digests import find_head


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
