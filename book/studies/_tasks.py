"""Rows of a study as tasks on Dask: on this machine's cores, or on any scheduler.

A task is a block of a study's cases. Its rows come back to this process, which keeps them in one file, written whole
or not at all, under a name that stands for the cases and the code. A run that was killed goes on from these files, and
two runs at once only repeat each other's work. A worker that dies is replaced and its task given to another: that is
Dask's part.
"""

import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import bnn
from chapters import REQUIREMENTS, machine

PACKAGES = ("pymc", "pytensor", "numba", "numpy", "scikit-learn", "jax", "nutpie")
FOLDER, SCHEDULER, JOBS = "BNN_TASKS", "SCHEDULER", "JOBS"  # environment variables
APART = ("claims", "drawing", "plots", "report")  # modules of `bnn` that no row depends on
PATIENCE = "10s"  # for an answer of a scheduler elsewhere
AHEAD = 2  # tasks handed out for each worker, so that none waits for this process


def find_folder(name):
    """Where the files of a study's tasks are: $BNN_TASKS, else beside the stored posteriors."""
    if wanted := os.environ.get(FOLDER):
        return Path(wanted) / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bnn" / "tasks" / name


def list_blocks(study):
    """The cases of a study, task by task: those with one `block`, else with one first value, belong together."""
    block = getattr(study, "block", lambda case: next(iter(case.values())))
    return [list(cases) for _, cases in groupby(study.CASES, key=block)]


def digest_code(module):
    """SHA-256 of the source that the rows of a study depend on, and of the pinned packages, as hexadecimal text."""
    study = Path(importlib.import_module(module).__file__)
    package = Path(bnn.__file__).parent
    files = [path for path in sorted(package.glob("*.py")) if path.stem not in APART]
    files += [*sorted(study.parent.glob("_*.py")), study, REQUIREMENTS]
    digest = hashlib.sha256()
    for path in files:
        if path.name not in ("__init__.py", "__main__.py", "_tasks.py"):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def digest_rows(rows):
    """SHA-256 of rows, whatever the order of their keys and the spaces between them, as hexadecimal text."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def name_file(folder, cases, code):
    """The file of a task (Path)."""
    return folder / f"{hashlib.sha256(json.dumps([code, cases]).encode()).hexdigest()[:24]}.json"


def read_task(path):
    """Rows and origin as `compute_block` gave them, or None where there is no whole file."""
    try:
        done = json.loads(path.read_text())
        return done if digest_rows(done["rows"]) == done["digest"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_task(path, done):
    """Write a task's rows, all or nothing; another run may be doing the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as part:
        part.write(json.dumps(done))
    os.replace(part.name, path)


def find_commit():
    """The commit of this checkout, with a + where files were changed since; "" where there is no git."""
    ask = ["git", "-C", str(REQUIREMENTS.parent)]
    commit = subprocess.run([*ask, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*ask, "status", "--porcelain", "--", "book"], capture_output=True, text=True, check=False)
    return commit.stdout.strip() + ("+" if changed.stdout.strip() else "")


def compute_block(module, cases, code, commit):
    """What a worker does: the rows of a task, each with its commit and versions.

    Raises
    ------
    RuntimeError
        When the worker has other code than the process that asks.
    """
    if digest_code(module) != code:
        raise RuntimeError(
            f"this worker has other code or other pinned packages than the process that asked for {module}; wanted: "
            "the same commit and the same requirements.txt on both, and workers started after the last change"
        )
    study = importlib.import_module(module)
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    stamp = {"commit": commit, "versions": versions}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a row should tell is in its columns
        rows = [case | study.compute(**case) | stamp for case in cases]
    return {"rows": rows, "machine": machine(), "digest": digest_rows(rows)}


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
    code, commit = digest_code(module), find_commit()
    paths = [name_file(folder, cases, code) for cases in blocks]
    costs = [sum(map(estimate or (lambda case: 1.0), cases)) for cases in blocks]
    done = {i: found for i, path in enumerate(paths) if (found := read_task(path))}
    waiting = [i for i in range(len(blocks)) if i not in done]
    failed = {}
    if waiting:
        with _connect(client) as connected:
            for i, result in _compute(connected, module, blocks, waiting, paths, code, commit, costs, show):
                if isinstance(result, Exception):
                    failed[i] = result
                else:
                    write_task(paths[i], result)
                    done[i] = result
    if failed:
        first = "\n".join(f"  {blocks[i][0]}: {type(error).__name__}: {error}" for i, error in list(failed.items())[:5])
        raise RuntimeError(f"{len(failed)} of {len(blocks)} tasks failed; the others are kept in {folder}:\n{first}")
    found = [done[i] for i in range(len(blocks))]
    return [row for task in found for row in task["rows"]], [task["machine"] for task in found]


def _connect(client):
    """A client whose cluster ends with it, unless it was given."""
    from contextlib import nullcontext

    import dask
    from distributed import Client

    if client is not None:
        return nullcontext(client)
    if address := os.environ.get(SCHEDULER):
        try:
            return Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            wanted = "tcp://host:port of a running `dask scheduler`"
            raise SystemExit(f"{SCHEDULER}={address}: {error}; wanted: {wanted}") from None
    dask.config.set({"distributed.worker.daemon": True})
    count = getattr(os, "process_cpu_count", os.cpu_count)  # Python 3.12 has only the second
    n_workers = int(os.environ.get(JOBS) or count())
    return Client(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs="ERROR",
        set_as_default=False,
    )  # fmt: skip


def _compute(client, module, blocks, waiting, paths, code, commit, costs, show):
    """Yield (task, rows or exception) as they come; a task that another run has done meanwhile is not handed out."""
    from distributed import as_completed

    n_workers = max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
    queue, numbers = list(waiting), {}
    start, total, spent = time.monotonic(), sum(costs[i] for i in waiting), 0.0

    def hand_out():
        while queue:
            i = queue.pop(0)
            if (found := read_task(paths[i])) is not None:
                return i, found, None
            future = client.submit(compute_block, module, blocks[i], code, commit, pure=False)
            numbers[future] = i
            return i, None, future
        return None

    completed = as_completed(loop=client.loop)

    def fill():
        while completed.count() < AHEAD * n_workers and (given := hand_out()):
            i, found, future = given
            if future is None:
                yield i, found
            else:
                completed.add(future)

    for i, found in fill():
        spent += costs[i]
        yield i, found
    for n, future in enumerate(completed, 1):
        i = numbers.pop(future)
        error = future.exception()
        yield i, error if error is not None else future.result()
        spent += costs[i]
        if show is not None:
            elapsed = time.monotonic() - start
            show(n, len(waiting), elapsed, elapsed * (total - spent) / spent if spent else None)
        for j, found in fill():
            spent += costs[j]
            yield j, found


def draw_bar(done, total, elapsed, left, *, width=30, file=sys.stderr):
    """One line of progress, rewritten in a terminal; a line for each twentieth elsewhere."""
    filled = round(width * done / total)
    minutes = "" if left is None else f", about {left / 60:.0f} min to go"
    line = f"[{'#' * filled}{'.' * (width - filled)}] {done} of {total} tasks, {elapsed / 60:.0f} min{minutes}"
    if file.isatty():
        print(f"\r{line}  ", end="\n" if done == total else "", file=file, flush=True)
    elif done == total or done * 20 // total > (done - 1) * 20 // total:
        print(line, file=file, flush=True)
