"""What a result was computed under, in three things that a person can read: its own code, the packages that compute,
and `hbnn.NUMBERS`, which a person raises when the library or this kit comes to compute other numbers.

No import is followed: a library that is only written otherwise leaves every result fresh. When somebody forgot to raise
the number, `make test-all` tells, which computes chapters and rows of tables again.
"""

import re
from functools import lru_cache

import hbnn

from bookkit import environment
from bookkit.repo import BOOK, DATA, REQUIREMENTS, digest, read_rows

# of the lock, what moves numbers; `machine` tells the rest of a machine
LOCKED = (
    "arviz", "arviz-base", "arviz-stats", "blackjax", "jax", "jaxlib", "llvmlite", "numba", "numpy", "numpyro",
    "nutpie", "optax", "pandas", "pymc", "pytensor", "scikit-learn", "scipy", "xarray",
)  # fmt: skip
OURS = re.compile(r"^\s*(?:from|import) (?:hbnn|bookkit|studies|teach)\b", re.MULTILINE)
DRAWN_BY = ("contourpy", "matplotlib", "pillow", "seaborn")  # of the lock, what draws


def stamp(source, reads=()):
    """What a result is computed under (dict): "code", "lock" and "numbers", which is None of a source that imports
    nothing of ours. Equal stamps, and it need not be computed again.

    Parameters
    ----------
    source : str
        Its own code. The tables that it asks for by ``read_data("name")`` count with it: their rows, not their origin.
    reads : sequence of str
        What else it reads, as paths in ``book/``: tables (.json), scripts, or modules that go with it.
    """
    tables = {name: read_rows(DATA / f"{name}.json") for name in sorted(set(re.findall(r'read_data\("(\w+)"', source)))}
    tables |= {name: read_rows(BOOK / name) for name in sorted(reads) if name.endswith(".json")}
    files = {name: (BOOK / name).read_text(encoding="utf-8") for name in sorted(reads) if not name.endswith(".json")}
    numbers = hbnn.NUMBERS if OURS.search("\n".join([source, *files.values()])) else None
    return {"code": digest([source, tables, files]), "lock": digest(read_versions())[:16], "numbers": numbers}


def read_versions(packages=LOCKED, lock=None):
    """Package and version (sorted list of tuples) of the named packages in a lock's text; default: the book's."""
    text = (REQUIREMENTS.read_text(encoding="utf-8") if REQUIREMENTS.exists() else "") if lock is None else lock
    found = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", text, flags=re.MULTILINE)
    return sorted({(name, version) for name, version in found if name in packages})


@lru_cache
def machine():
    """Describe what decides the last bits of a result: the settings that libraries say are in force, and of the lock
    the packages that compute and draw (dict). Where two machines agree, they may be expected to compute the same bytes.
    """
    return environment.read_back() | {"requirements": digest(read_versions((*LOCKED, *DRAWN_BY)))[:16]}
