"""python -m studies [NAME …]: run the named studies (default: those whose table is missing).

Rows are computed as tasks on Dask, on all cores of this machine; JOBS=1 takes one, SCHEDULER=tcp://… the workers of any
`dask scheduler`. A run that was stopped goes on where it was. Studies of what is measured run alone, row after row.
"""

import importlib
import json
import os
import pkgutil
import sys
from importlib.metadata import version

from bnn.report import DATA
from chapters import machine

import studies
from studies import _tasks
from studies._tasks import PACKAGES


def names():
    """All studies, by module name."""
    return sorted(m.name for m in pkgutil.iter_modules(studies.__path__) if not m.name.startswith("_"))


def load(name):
    """The module of a study."""
    if name not in names():
        raise SystemExit(f"there is no study {name!r}; there are: {', '.join(names())}")
    return importlib.import_module(f"studies.{name}")


def run(name, client=None):
    """Compute all rows of a study and write its table, all or nothing.

    Parameters
    ----------
    name : str
    client : distributed.Client, or None as in `_tasks.run_tasks`
    """
    study = load(name)
    if study.MEASURED:
        rows, machines = _measure(name, study), [machine()]
    else:
        blocks, estimate = _tasks.list_blocks(study), getattr(study, "estimate", None)
        hours = f", about {sum(map(estimate, study.CASES)) / 3600:.1f} CPU-hours in all" if estimate else ""
        print(f"{name}: {len(study.CASES)} rows in {len(blocks)} tasks{hours}", flush=True)
        rows, machines = _tasks.run_tasks(
            study.__name__, blocks, folder=_tasks.find_folder(name), estimate=estimate, client=client,
            show=_tasks.draw_bar,
        )  # fmt: skip
    several = dict.fromkeys(machine(), "several")
    table = {
        "study": name,
        "measured": study.MEASURED,
        "commit": _tasks.find_commit(),
        "machine": machines[0] if all(found == machines[0] for found in machines) else several,
        "python": sys.version.split()[0],
        "versions": {package: version(package) for package in PACKAGES},
        "digest": _tasks.digest_rows(rows),
        "rows": rows,
    }
    path = DATA / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(json.dumps(table, indent=1) + "\n")
    os.replace(part, path)
    print(f"wrote {path.name} with {len(rows)} rows, digest {table['digest'][:16]}")


def _measure(name, study):
    """Rows one after the other in this process, undisturbed."""
    rows = []
    for i, case in enumerate(study.CASES, 1):
        print(f"{name}: {i} of {len(study.CASES)}  {case}", flush=True)
        rows.append(case | study.compute(**case))
    return rows


if __name__ == "__main__":
    wanted = sys.argv[1:] or [name for name in names() if not (DATA / f"{name}.json").exists()]
    if not wanted:
        print("every study has its table; name one to run it again")
    for wanted_name in wanted:
        try:
            run(wanted_name)
        except RuntimeError as error:
            raise SystemExit(str(error)) from None
