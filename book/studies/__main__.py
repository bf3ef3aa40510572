"""python -m studies [NAME …]: run the named studies (default: those whose table is missing).

JOBS=2 in the environment computes rows in two processes. The table is the same, except for what is measured: seconds.
"""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from bnn.report import DATA
from chapters import machine

import studies

PACKAGES = ("pymc", "pytensor", "numba", "numpy", "scikit-learn", "jax", "nutpie")


def names():
    """All studies, by module name."""
    return sorted(m.name for m in pkgutil.iter_modules(studies.__path__) if not m.name.startswith("_"))


def load(name):
    """The module of a study."""
    if name not in names():
        raise SystemExit(f"there is no study {name!r}; there are: {', '.join(names())}")
    return importlib.import_module(f"studies.{name}")


def run(name):
    """Compute all rows of a study and write its table, all or nothing."""
    study = load(name)
    jobs = int(os.environ.get("JOBS", "1"))
    if jobs > 1 and not study.MEASURED:
        # neighbours share data and posteriors, so a process takes all cases with one first value
        blocks = [list(block) for _, block in groupby(study.CASES, key=lambda case: next(iter(case.values())))]
        with ProcessPoolExecutor(jobs) as pool:
            rows = [row for block in pool.map(_compute_block, [name] * len(blocks), blocks) for row in block]
    else:
        rows = _compute_block(name, study.CASES)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    table = {
        "study": name,
        "measured": study.MEASURED,
        "commit": commit.stdout.strip(),
        "machine": machine(),
        "python": sys.version.split()[0],
        "versions": {package: version(package) for package in PACKAGES},
        "rows": rows,
    }
    path = DATA / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(table, indent=1) + "\n")
    os.replace(part, path)
    print(f"wrote {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


def _compute_block(name, cases):
    """Rows of a study, one after the other."""
    rows = []
    for i, case in enumerate(cases, 1):
        print(f"{name}: {i} of {len(cases)}  {case}", flush=True)
        rows.append(case | load(name).compute(**case))
    return rows


if __name__ == "__main__":
    wanted = sys.argv[1:] or [name for name in names() if not (DATA / f"{name}.json").exists()]
    if not wanted:
        print("every study has its table; name one to run it again")
    for wanted_name in wanted:
        run(wanted_name)
