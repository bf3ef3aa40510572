"""Rows of a study as tasks on Dask: on this machine's cores, or on any scheduler.

A task is a block of a study's cases. Its rows come back to this process, which keeps them in one file, written whole
or not at all, under a name that stands for the cases and the code. A run that was killed goes on from these files. A
worker that dies is replaced and its task given to another: that is Dask's part.
"""

import importlib
import json
import os
import sys
from contextlib import nullcontext
from functools import lru_cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from bookkit.repo import digest, find_commit, write_atomically
from bookkit.versions import machine, stamp

PACKAGES = ("pymc", "pytensor", "numba", "numpy", "scikit-learn", "jax", "nutpie")
FOLDER, SCHEDULER, JOBS = "BNN_TASKS", "SCHEDULER", "JOBS"  # environment variables
AWAY = "1h"  # for workers that died to come back: Dask's 15 s are too short for a machine under load
LONELY = 180  # seconds that we wait for a first worker


def find_folder(name):
    """Where the files of a study's tasks are: $BNN_TASKS, else beside the stored posteriors."""
    if wanted := os.environ.get(FOLDER):
        return Path(wanted) / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hbnn" / "tasks" / name


def describe_code(study):
    """What a study's rows are computed under (dict): `bookkit.versions.stamp` of its text now, and what it `READS`."""
    return stamp(Path(study.__file__).read_text(encoding="utf-8"), getattr(study, "READS", ()))


def read_packages():
    """The packages that compute, and their versions here (dict)."""
    return {package: version(package) for package in PACKAGES}


def describe_origin():
    """Where a table that is written now comes from (dict): commit, machine, versions of Python and of packages."""
    python = sys.version.split()[0]
    return {"commit": find_commit(), "machine": machine(), "python": python, "versions": read_packages()}


def digest_code(study):
    """SHA-256 of what two processes must have in common to compute the same rows."""
    return digest([describe_code(study), read_packages()])


@lru_cache
def _digest_loaded(study):
    """The code of a study when this process was first asked for it, and so the code that it has loaded."""
    return digest_code(study)


def compute_block(name, cases, code, commit):
    """What a worker does: the rows of a task, each with its commit and versions, and the worker's machine (dict).

    Raises
    ------
    RuntimeError
        When the worker has other code than the process that asks.
    """
    study = importlib.import_module(name)
    if _digest_loaded(study) != code:
        raise RuntimeError(
            f"this worker has other code or other packages than the process that asked for {name}; wanted: "
            "the same commit and the same requirements.txt on both, and workers started after the last change"
        )
    versions = ", ".join(f"{package} {found}" for package, found in read_packages().items())
    rows = [case | study.compute(**case) | {"commit": commit, "versions": versions} for case in cases]
    return {"rows": rows, "machine": machine(), "digest": digest(rows)}


def read_task(path):
    """Rows and origin as `compute_block` gave them, or None where there is no whole file."""
    try:
        done = json.loads(path.read_text(encoding="utf-8"))
        return done if digest(done["rows"]) == done["digest"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def run_tasks(study, cases, folder, client=None):
    """Rows of a study, in the order of its cases.

    Parameters
    ----------
    study : module; workers import it. Neighbouring cases with one ``study.block(case)`` are one task
    cases : list of dict, some of ``study.CASES``
    folder : Path, of the tasks' files
    client : distributed.Client; None: of $SCHEDULER, else of a cluster of $JOBS (default: all) processes here

    Returns
    -------
    rows, machines : list of dict, list of dict

    Raises
    ------
    RuntimeError
        When tasks failed, with the first reasons. The others are done and kept.
    """
    from distributed import as_completed
    from rich.progress import track

    name, code, commit = study.__name__, digest_code(study), find_commit()
    block = getattr(study, "block", lambda case: next(iter(case.values())))
    blocks = [list(alike) for _, alike in groupby(cases, key=block)]
    paths = [folder / f"{digest([code, block])[:24]}.json" for block in blocks]
    done, failed = {i: found for i, path in enumerate(paths) if (found := read_task(path))}, []
    waiting = [i for i in range(len(blocks)) if i not in done]
    with connect(client) if waiting else nullcontext() as connected:
        tasks = {connected.submit(compute_block, name, blocks[i], code, commit, pure=False): i for i in waiting}
        one_by_one = as_completed(tasks, loop=connected.loop) if tasks else ()  # no client is the default one
        for task in track(one_by_one, name, total=len(tasks)):
            i = tasks[task]
            try:
                done[i] = task.result()
                write_atomically(paths[i], json.dumps(done[i]))
            except Exception as error:  # whatever a study, a worker or a scheduler that has gone raises
                failed.append(f"  {blocks[i][0]}: {type(error).__name__}: {error}")
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(blocks)} tasks failed; the others are kept in {folder}, and the same command goes "
            "on with them:\n" + "\n".join(failed[:5])
        )
    found = [done[i] for i in range(len(blocks))]
    return [row for task in found for row in task["rows"]], [task["machine"] for task in found]


def connect(client=None):
    """A client whose cluster ends with it, unless it was given."""
    import dask
    from distributed import Client

    if client is not None:
        return nullcontext(client)
    if address := os.environ.get(SCHEDULER):
        client = Client(address, set_as_default=False)
        client.wait_for_workers(1, timeout=LONELY)
        return client
    dask.config.set({"distributed.deploy.lost-worker-timeout": AWAY})
    return Client(
        n_workers=int(os.environ.get(JOBS) or 0) or None, threads_per_worker=1, dashboard_address=":0", memory_limit=0,
        silence_logs="ERROR", set_as_default=False,
    )  # fmt: skip
