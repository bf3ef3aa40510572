"""python -m studies._bench [--quick] [TABLE]: what gradients and posteriors cost, with `fuse` and with its rivals.

It writes book/data/bench.json in 25 minutes, book/data/typings.json in 25 more and book/data/cores.json in ten, or the
one that is named, compiling apart. ``--quick`` does a little of everything in five minutes, fewer when it has been run
before, and writes _build/bench_quick.json and the like instead.

Everything runs with the settings of a user, who sets nothing, and not with this book's, which fix the order of sums and
hold processors back to what all of them have. Only the number of threads is set, to one, and the process stays on one
core, but for the cases of `cores` that ask for two: they go where they like.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from importlib.metadata import version

from bookkit.environment import SETTINGS
from bookkit.repo import DATA, ROOT, digest, write_atomically

from studies._tasks import PACKAGES, describe_origin

LIMIT = 900  # seconds a group of cases may take
TOGETHER = 3  # typings in a process
KEPT = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "JAX_PLATFORMS")
XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
# The book's settings are in force before this line; NumPy, PyTensor, Numba and JAX read theirs after it.
AS_A_USER = f"""
import os, sys
for name in {sorted(set(SETTINGS) - set(KEPT))}:
    os.environ.pop(name, None)
os.environ |= {{"XLA_FLAGS": sys.argv[3], "BNN_PROGRESS": "off", "PYTENSOR_FLAGS": "base_compiledir=" + sys.argv[1]}}
from studies._bench import __main__ as bench
bench.run_cases(sys.argv[2])
"""


def list_cases(quick):
    """What is run: table to section to groups of cases, each a list of (module.function, arguments).

    A group shares a process, and so what it has imported and compiled.
    """
    sizes = [(groups, points) for groups in (18, 200) for points in (20, 50, 500)]
    nets = {(5, "tanh"): sizes, (12, "tanh"): [*sizes, (1000, 50)], (32, "tanh"): sizes}
    nets |= {(12, "relu"): sizes[1:2], (32, "relu"): sizes[2:3]}
    engines = list(importlib.import_module("studies._bench.samplers").SETTINGS)
    seeds, turns = (1, 2), {"rounds": 25, "seconds": 3}
    typed = list(importlib.import_module("studies._bench.typings").TYPINGS)
    if quick:
        nets, engines, seeds, turns = {(12, "tanh"): sizes[1:2]}, engines[::3], (1,), {"rounds": 5, "seconds": 1}
        typed = typed[::10]
    bench = {
        "gradients": [
            [("gradients.time_gradients", {"n_hidden": n, "activation": name, "sizes": sizes, **turns})]
            for (n, name), sizes in nets.items()
        ],
        "rows": [] if quick else [[("gradients.time_rows", turns)]],
        "samplers": [
            [("samplers.sample", {"engine": engine, "seed": seed, "quick": quick}) for seed in seeds]
            for engine in engines
        ],
    }
    cores = importlib.import_module("studies._bench.cores")
    placed = {
        "forms": [[("cores.time_form", {"form": form, "n_cores": n, **turns})] for form in cores.FORMS for n in (1, 2)],
        "chains": [] if quick else [
            [("cores.time_chains", {"engine": engine, "n_chains": chains, "n_cores": n})]
            for engine in cores.ENGINES for chains in (1, 4) for n in (1, 2)
        ],
    }  # fmt: skip
    cases = [("typings.time_typing", {"typing": name, **turns}) for name in typed]
    typings = {"typings": [cases[k : k + TOGETHER] for k in range(0, len(cases), TOGETHER)]}
    return {"bench": bench, "typings": typings, "cores": placed}


def run_group(group, folder):
    """The rows of one group of cases, from a process of its own; `folder` keeps what PyTensor compiles."""
    _, case = group[0]
    free = case.get("n_cores", 1) > 1
    flags = f"--xla_force_host_platform_device_count={case['n_chains']}" if free and "n_chains" in case else ""
    command = [sys.executable, "-c", AS_A_USER, str(folder), json.dumps(group), flags if free else XLA]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        output, error = done.stdout, done.stderr
    except subprocess.TimeoutExpired as stopped:
        output, error = (stopped.stdout or b"").decode(), f"its group took more than {LIMIT} s"
    found = [json.loads(row) for row in re.findall(r"^RESULT (.*)$", output, flags=re.MULTILINE)]
    lost = {"failed": (error.strip().splitlines() or ["no output"])[-1][:200]}
    return found + [case | lost for _, case in group[len(found) :]]


def run_cases(group):
    """Run a group of cases, given as JSON, in this process, on its first cores: a line of output for each row."""
    cases = json.loads(group)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: cases[0][1].get("n_cores", 1)])
    for name, case in cases:
        module, function = name.split(".")
        try:
            row = getattr(importlib.import_module(f"studies._bench.{module}"), function)(**case)
        except Exception as error:
            row = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print("RESULT", json.dumps(case | row), flush=True)


def digest_table(table):
    """SHA-256 of all that a table says, but for the digest itself."""
    return digest({key: value for key, value in table.items() if key != "digest"})


def run(name, quick):
    """All cases of a table, which is written when the last one is done."""
    started, sections = time.monotonic(), {}
    kept = nullcontext(ROOT / "_build" / "bench_compiled") if quick else tempfile.TemporaryDirectory()
    with kept as folder:
        for section, groups in list_cases(quick)[name].items():
            sections[section] = [row for group in groups for row in show(run_group(group, folder), section, started)]
    table = {
        "study": name,
        "quick": quick,
        "measured": True,
        "minutes": round((time.monotonic() - started) / 60, 1),
        **({} if name == "cores" else {"cores": 1}),
        **describe_origin(),
        "versions": {package: version(package) for package in (*PACKAGES, "numpyro", "blackjax")},
        **sections,
    }
    path = ROOT / "_build" / f"{name}_quick.json" if quick else DATA / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    write_atomically(path, json.dumps(table | {"digest": digest_table(table)}, indent=1) + "\n")
    print(f"wrote {path} after {table['minutes']} minutes")
    if failed := [row for rows in sections.values() for row in rows if "failed" in row]:
        raise SystemExit(f"{len(failed)} cases failed")


def show(found, section, started):
    """Print rows, a line each, numbers in three digits, and return them."""
    for row in found:
        row = {key: value for key, value in row.items() if key not in ("models", "rows", "compile")} | {
            f"{m['n_groups']} x {m['n_obs']}" if "n_groups" in m else "us": [
                f"{p['form']} {p['us']:.4g}" for p in m["rows"] if "us" in p
            ]
            for m in row.get("models", [row] if "rows" in row else [])
        }
        text = ", ".join(
            f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
        )
        print(f"{(time.monotonic() - started) / 60:5.1f} min  {section}  {text}", flush=True)
    return found


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if not name.startswith("-")]
    for name in names or list_cases(quick=True):
        run(name, quick="--quick" in sys.argv)
