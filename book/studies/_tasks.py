"""Rows of a study as tasks on Dask: on this machine's cores, or on any scheduler.

A task is a block of a study's cases. Its rows come back to this process, which keeps them in one file, written whole
or not at all, under a name that stands for the cases and the code. A run that was killed goes on from these files, and
two runs at once only repeat each other's work. A worker that dies is replaced and its task given to another: that is
Dask's part.
"""

import ast
import importlib
import importlib.util
import json
import os
import re
import sys
import time
import warnings
from functools import lru_cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from bookkit.repo import digest, find_commit, write_atomically
from bookkit.versions import machine, stamp

PACKAGES = ("pymc", "pytensor", "numba", "numpy", "scikit-learn", "jax", "nutpie")
FOLDER, SCHEDULER, JOBS = "BNN_TASKS", "SCHEDULER", "JOBS"  # environment variables
PATIENCE = "10s"  # for an answer of a scheduler elsewhere
AWAY = "1h"  # for workers that died to come back: Dask's 15 s are too short for a machine under load
LONELY = 180  # seconds that we wait for a first worker


def find_folder(name):
    """Where the files of a study's tasks are: $BNN_TASKS, else beside the stored posteriors."""
    if wanted := os.environ.get(FOLDER):
        return Path(wanted) / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hbnn" / "tasks" / name


def list_blocks(study):
    """The cases of a study, task by task: those with one `block`, else with one first value, belong together."""
    block = getattr(study, "block", lambda case: next(iter(case.values())))
    return [list(cases) for _, cases in groupby(study.CASES, key=block)]


def read_source(module):
    """The text of a study, and what it says that it `READS` beside its tables: str, list of paths in ``book/``."""
    source = Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8")
    stated = re.search(r"^READS = (\(.*?\))", source, flags=re.MULTILINE | re.DOTALL)
    return source, list(ast.literal_eval(stated[1])) if stated else []


def describe_code(module):
    """What the rows of a study are computed under (dict): `bookkit.versions.stamp` of its module and what it reads."""
    return stamp(*read_source(module))


def digest_code(module):
    """SHA-256 of `describe_code`."""
    return digest(describe_code(module))


def name_file(folder, cases, code):
    """The file of a task (Path)."""
    return folder / f"{digest([code, cases])[:24]}.json"


def read_task(path):
    """Rows and origin as `compute_block` gave them, or None where there is no whole file."""
    try:
        done = json.loads(path.read_text())
        return done if digest(done["rows"]) == done["digest"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def describe_origin(packages=PACKAGES):
    """Where a table that is written now comes from (dict): commit, machine, versions of Python and of packages."""
    return {
        "commit": find_commit(),
        "machine": machine(),
        "python": sys.version.split()[0],
        "versions": {package: version(package) for package in packages},
    }


@lru_cache
def _digest_loaded(module):
    """The code of a study when this process was first asked for it, and so the code that it has loaded."""
    return digest_code(module)


def compute_block(module, cases, code, commit):
    """What a worker does: the rows of a task, each with its commit and versions.

    Raises
    ------
    RuntimeError
        When the worker has other code than the process that asks.
    """
    if _digest_loaded(module) != code:
        raise RuntimeError(
            f"this worker has other code or other pinned packages than the process that asked for {module}; wanted: "
            "the same commit and the same requirements.txt on both, and workers started after the last change"
        )
    study = importlib.import_module(module)
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    stamp = {"commit": commit, "versions": versions}
    rows = [case | study.compute(**case) | stamp for case in cases]
    return {"rows": rows, "machine": machine(), "digest": digest(rows)}


# --- the run


def run_tasks(module, blocks, *, folder, estimate=None, client=None, show=None):
    """All rows of a study, in the order of its cases.

    Parameters
    ----------
    module : str, the study's module, such as "studies.replication"; workers import it
    blocks : list of lists of cases, one for each task
    folder : Path, of the tasks' files
    estimate : function of a case, its CPU-seconds, for the time that is left; None: all alike
    client : distributed.Client; None: of $SCHEDULER, else of a cluster of $JOBS (default: all) processes here
    show : function of (done, total, seconds so far, seconds left or None)

    Returns
    -------
    rows, machines : list of dict, list of dict

    Raises
    ------
    RuntimeError
        When tasks failed, with the first reasons. The others are done and kept.
    """
    code = digest_code(module)
    paths = [name_file(folder, cases, code) for cases in blocks]
    costs = [sum(map(estimate or (lambda case: 1.0), cases)) for cases in blocks]
    done = {i: found for i, path in enumerate(paths) if (found := read_task(path))}
    waiting = [i for i in range(len(blocks)) if i not in done]
    failed, start, spent = {}, time.monotonic(), 0.0
    for n, (i, result) in enumerate(_compute(client, module, blocks, waiting, code), 1):
        if isinstance(result, Exception):
            failed[i] = result
        else:
            write_atomically(paths[i], json.dumps(result))
            done[i] = result
        spent += costs[i]
        if show is not None:
            elapsed, rest = time.monotonic() - start, max(sum(costs[i] for i in waiting) - spent, 0.0)
            show(n, len(waiting), elapsed, elapsed * rest / spent if spent else None)
    if failed:
        first = "\n".join(f"  {blocks[i][0]}: {type(error).__name__}: {error}" for i, error in list(failed.items())[:5])
        raise RuntimeError(f"{len(failed)} of {len(blocks)} tasks failed; the others are kept in {folder}:\n{first}")
    found = [done[i] for i in range(len(blocks))]
    return [row for task in found for row in task["rows"]], [task["machine"] for task in found]


def _compute(client, module, blocks, waiting, code):
    """Yield (task, rows or exception) as they come."""
    from distributed import as_completed

    if not waiting:
        return
    with _connect(client) as connected:
        commit = find_commit()
        futures = {connected.submit(compute_block, module, blocks[i], code, commit, pure=False): i for i in waiting}
        with connected.as_current():  # no client is the default one
            done = as_completed(futures)
        for future in done:
            if future.cancelled():
                wanted = "the same command, which goes on with the tasks that are kept"
                raise RuntimeError(f"the scheduler is gone; wanted: {wanted}")
            yield futures[future], future.exception() or future.result()


def _connect(client):
    """A client whose cluster ends with it, unless it was given."""
    from contextlib import nullcontext

    import dask
    from distributed import Client

    if client is not None:
        return nullcontext(client)
    if address := os.environ.get(SCHEDULER):
        try:
            client = Client(address, timeout=PATIENCE, set_as_default=False)
            client.wait_for_workers(1, timeout=LONELY)
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "Mismatched versions")
                client.get_versions(check=True)
        except (OSError, ValueError, UserWarning) as error:
            wanted = "tcp://host:port of a running `dask scheduler` with workers that have this environment"
            raise SystemExit(f"{SCHEDULER}={address}: {error}; wanted: {wanted}") from None
        return client
    dask.config.set({"distributed.worker.daemon": True, "distributed.deploy.lost-worker-timeout": AWAY})
    count = getattr(os, "process_cpu_count", os.cpu_count)  # Python 3.12 has only the second
    n_workers = int(os.environ.get(JOBS) or count())
    return Client(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs="ERROR",
        set_as_default=False,
    )  # fmt: skip


def draw_bar(done, total, elapsed, left, *, width=30, file=sys.stderr):
    """One line of progress, rewritten in a terminal; a line for each twentieth elsewhere."""
    filled = round(width * done / total)
    minutes = "" if left is None else f", about {left / 60:.0f} min to go"
    line = f"[{'#' * filled}{'.' * (width - filled)}] {done} of {total} tasks, {elapsed / 60:.0f} min{minutes}"
    if file.isatty():
        print(f"\r{line}  ", end="\n" if done == total else "", file=file, flush=True)
    elif done == total or done * 20 // total > (done - 1) * 20 // total:
        print(line, file=file, flush=True)
