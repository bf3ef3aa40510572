"""Rows of a study as tasks on Dask: on this machine's cores, or on any scheduler.

A task is a block of a study's cases. Its rows come back to this process, which keeps them in one file, written whole
or not at all, under a name that stands for the cases and the code. A run that was killed goes on from these files, and
two runs at once only repeat each other's work. A worker that dies is replaced and its task given to another: that is
Dask's part.
"""

import hashlib
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

import psutil
from tools.chapters import REQUIREMENTS, machine
from tools.digests import OURS, digest_dependencies, read_source

PACKAGES = ("pymc", "pytensor", "numba", "numpy", "scikit-learn", "jax", "nutpie")
FOLDER, SCHEDULER, JOBS = "BNN_TASKS", "SCHEDULER", "JOBS"  # environment variables
APART = ("bnn.claims", "bnn.drawing", "bnn.plots", "bnn.report")  # no row depends on them
PATIENCE = "10s"  # for an answer of a scheduler elsewhere
AWAY = "1h"  # for workers that died to come back: Dask's 15 s are too short for a machine under load
LOOK, LONELY = 5, 180  # seconds: how often we look for workers while nothing comes, and how long we wait without any
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


def list_dependencies(module):
    """SHA-256 of the code, tables and locked versions that a study's rows depend on (`digests`), and their files."""
    path = Path(importlib.util.find_spec(module).origin)
    return digest_dependencies(path, apart=(*APART, f"{path.stem}.json"))


def digest_code(module):
    """The first part of `list_dependencies`."""
    return list_dependencies(module)[0]


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
    """The commit of this checkout, with a + where sources were changed since; "" where there is no git."""
    sources = ("book", ":(exclude)book/data", ":(exclude)book/*.ipynb", ":(exclude)book/claims.json")
    commit = ask_git("rev-parse", "--short", "HEAD")
    return commit + ("+" if commit and ask_git("status", "--porcelain", "--", *sources) else "")


def ask_git(*arguments):
    """What git says of this checkout, "" where it fails or is not there."""
    command = ["git", "-C", str(REQUIREMENTS.parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


_loaded = {}  # file of a module: the digest of its source when this process had it first


def _note_loaded(since=None):
    """Note the sources of our modules that are loaded; one that is younger than `since` (seconds) is none of them."""
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name.partition(".")[0] in OURS and path and path not in _loaded and os.path.exists(path):
            young = since is not None and os.path.getmtime(path) > since
            _loaded[path] = "" if young else read_source(Path(path)).digest


def _refuse_stale(files):
    """RuntimeError where a file's source is not the one that this process has loaded."""
    names = {path.name for path in files}
    modules = [str(getattr(module, "__file__", None)) for module in list(sys.modules.values())]
    loaded = {str(Path(file).resolve()) for file in modules if os.path.basename(file) in names}
    for path in files:
        now = read_source(path).digest
        if str(path) in loaded and _loaded.setdefault(str(path), now) != now:
            raise RuntimeError(f"this worker loaded {path.name} before it was changed; wanted: start it again")


# `bnn.environment` was loaded as the process began; a second's grace for the clock
_note_loaded(since=psutil.Process().create_time() + 1)


def compute_block(module, cases, code, commit):
    """What a worker does: the rows of a task, each with its commit and versions.

    Raises
    ------
    RuntimeError
        When the worker has other code than the process that asks, on its disk or loaded.
    """
    found, files = list_dependencies(module)
    if found != code:
        raise RuntimeError(
            f"this worker has other code or other pinned packages than the process that asked for {module}; wanted: "
            "the same commit and the same requirements.txt on both, and workers started after the last change"
        )
    files = [path for path in files if path.suffix == ".py"]
    _refuse_stale(files)
    for path in files:
        _loaded[str(path)] = read_source(path).digest  # what is imported below, now or by a row
    study = importlib.import_module(module)
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    stamp = {"commit": commit, "versions": versions}
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
        try:
            with _connect(client) as connected:
                for i, result in _compute(connected, module, blocks, waiting, paths, code, commit, costs, show):
                    if isinstance(result, Exception):
                        failed[i] = result
                    else:
                        write_task(paths[i], result)
                        done[i] = result
        except _NoWorkersError as error:
            kept = f"{len(done)} of {len(blocks)} tasks are kept in {folder}"
            raise RuntimeError(f"{error}; {kept}, the same command goes on from there") from None
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
    dask.config.set({"distributed.worker.daemon": True, "distributed.deploy.lost-worker-timeout": AWAY})
    count = getattr(os, "process_cpu_count", os.cpu_count)  # Python 3.12 has only the second
    n_workers = int(os.environ.get(JOBS) or count())
    return Client(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs="ERROR",
        set_as_default=False,
    )  # fmt: skip


class _NoWorkersError(Exception):
    """Nobody is left to compute; the message says who is missing."""


def _compute(client, module, blocks, waiting, paths, code, commit, costs, show):
    """Yield (task, rows or exception) as they come; a task that another run has done meanwhile is not handed out."""
    n_workers = max(len(client.scheduler_info(n_workers=-1)["workers"]), 1)
    queue, numbers = list(waiting), {}
    start, total, spent, n = time.monotonic(), sum(costs[i] for i in waiting), 0.0, 0
    while queue or numbers:
        while queue and len(numbers) < AHEAD * n_workers:
            i = queue.pop(0)
            if (found := read_task(paths[i])) is None:
                numbers[client.submit(compute_block, module, blocks[i], code, commit, pure=False)] = i
                continue
            spent += costs[i]
            yield i, found
        for future in _wait(client, sorted(numbers, key=numbers.get)) if numbers else ():
            i, error = numbers.pop(future), future.exception()
            yield i, error if error is not None else future.result()
            spent += costs[i]
            n += 1
            if show is not None:
                elapsed = time.monotonic() - start
                show(n, len(waiting), elapsed, elapsed * (total - spent) / spent if spent else None)


def _wait(client, futures):
    """Those of `futures` that are done, at least one, in their order.

    Raises
    ------
    _NoWorkersError
        When the scheduler is gone, or has had no worker for LONELY seconds.
    """
    from distributed import CancelledError, wait

    alone = None
    while True:
        try:
            with client.as_current():
                done = wait(futures, timeout=LOOK, return_when="FIRST_COMPLETED").done
            return [future for future in futures if future in done]
        except CancelledError:
            raise _NoWorkersError("the scheduler is gone") from None
        except TimeoutError:  # a long task, or nobody who does it
            if client.nthreads():
                alone = None
            elif alone is None:
                alone = time.monotonic()
                print(f"waiting for workers, for up to {LONELY} s", file=sys.stderr, flush=True)
            elif time.monotonic() - alone > LONELY:
                raise _NoWorkersError(f"no worker has come in {LONELY} s") from None


def draw_bar(done, total, elapsed, left, *, width=30, file=sys.stderr):
    """One line of progress, rewritten in a terminal; a line for each twentieth elsewhere."""
    filled = round(width * done / total)
    minutes = "" if left is None else f", about {left / 60:.0f} min to go"
    line = f"[{'#' * filled}{'.' * (width - filled)}] {done} of {total} tasks, {elapsed / 60:.0f} min{minutes}"
    if file.isatty():
        print(f"\r{line}  ", end="\n" if done == total else "", file=file, flush=True)
    elif done == total or done * 20 // total > (done - 1) * 20 // total:
        print(line, file=file, flush=True)
