"""python -m studies [NAME …]: run the named studies (default: those whose table is missing)."""

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from importlib.metadata import version
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
    rows = []
    for i, case in enumerate(study.CASES, 1):
        print(f"{name}: {i} of {len(study.CASES)}  {case}", flush=True)
        rows.append(case | study.compute(**case))
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


if __name__ == "__main__":
    wanted = sys.argv[1:] or [name for name in names() if not (DATA / f"{name}.json").exists()]
    if not wanted:
        print("every study has its table; name one to run it again")
    for wanted_name in wanted:
        run(wanted_name)
