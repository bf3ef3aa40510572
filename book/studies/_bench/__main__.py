"""python -m studies._bench [--quick | --settings]: our engine and its peers side by side.

It writes book/data/bench.json. Everything runs on one core, one case after the other. Times are CPU seconds, compiling
apart.

``--quick`` does a little of everything in three minutes and writes _build/bench_quick.json instead.
``--settings`` measures stock PyMC alone, in two minutes, in turn with this book's settings and as a user has it, who
sets nothing (one thread all the same), and writes book/data/bench_settings.json.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

from bookkit.repo import DATA, ROOT, digest, write_atomically

from studies._tasks import PACKAGES, describe_origin

ENVIRONMENT = {
    "BNN_PROGRESS": "off",
    "OMP_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
LIMIT = 1200  # seconds a group of cases may take
# Python's `-c` for a group that runs as if there were no book: its settings are in force before this line, and NumPy,
# PyTensor and Numba read theirs after it. Compiled code is kept apart, since PyTensor's cache may not know the flags.
AS_A_USER = """
import os, runpy
from bookkit.environment import SETTINGS
for name in set(SETTINGS) - {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"}:
    os.environ.pop(name, None)
os.environ["PYTENSOR_FLAGS"] = "base_compiledir=" + os.environ["BENCH_COMPILED"]
runpy.run_module("studies._bench", run_name="__main__")
"""
SETTINGS = {"the book's": ("-m", "studies._bench"), "a user's": ("-c", AS_A_USER)}


def list_cases(quick):
    """What is run: section name to groups of cases (function of `studies._bench.cases`, list of arguments).

    A group shares a process, and so what it has imported and compiled.
    """
    cases = importlib.import_module("studies._bench.cases")
    sizes = [(g, 50, 12) for g in (18, 60, 200, 1000)] + [(18, n, 12) for n in (200, 1000, 5000)]
    sizes += [(18, 50, h) for h in (5, 8, 20, 50)]
    engines, seeds, data_sets, widths, ways = (
        list(cases.SAMPLERS),
        [1, 2, 3],
        ("legacy", "1", "2"),
        (5, 8, 12),
        cases.FLAT,
    )
    if quick:
        engines, seeds, data_sets, widths = ["ours", "NumPyro"], [1], ("legacy",), (12,)
        sizes, ways = [(18, 50, 12), (200, 50, 12)], ["compiled once, data swapped", "one batched model"]
    budget, steps, draws, tune = (5, 2000, 100, 150) if quick else (40, 30_000, cases.DRAWS, cases.TUNE)
    return {
        "gradients": [("time_gradients", [{"n_hidden": h, "n_calls": 100 if quick else 500}]) for h in widths],
        "profile": [("time_parts", [{"n_hidden": h}]) for h in widths],
        "growth": [(
            "time_size",
            [{"n_groups": g, "n_obs": n, "n_hidden": h, "with_peers": not quick} for g, n, h in sizes],
        )],
        "samplers": [
            ("sample_engine", [{"engine": e, "data": "legacy", "seed": s, "budget": budget} for s in seeds])
            for e in engines
        ],
        "converged": [
            ("sample_converged", [{"data": d, "seed": s, "draws": draws, "tune": tune} for s in seeds[:1] * quick
                                  or range(1, 6)])
            for d in data_sets
        ],
        "flat": [
            ("fit_flat", [{"way": way, "n_groups": 3 if quick or "fresh" in way else 18, "draws": 500 - 400 * quick}])
            for way in ways
        ],
        "advi": [
            ("fit_advi", [{"way": way, "seed": s, "n_steps": steps} for s in seeds])
            for way in list(cases.ADVI)[-1 if quick else 0:]
        ],
        "prediction": [
            ("predict_points", [{"way": way, "n_draws": 500, "n_points": 500}])
            for way in cases.PREDICTION[: 1 if quick else 2]
        ],
    }  # fmt: skip


def run_group(function, arguments, here, start=SETTINGS["the book's"]):
    """The rows of one group of cases: in this process, or in one of its own on the first core."""
    if here:
        return [run_case(function, case) for case in arguments]
    command = [sys.executable, *start, "--group", function, json.dumps(arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return [case | {"failed": f"its group took more than {LIMIT} s"} for case in arguments]
    found = re.findall(r"^RESULT (.*)$", done.stdout, flags=re.MULTILINE)
    lost = {"failed": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    return [json.loads(row) for row in found] + [case | lost for case in arguments[len(found) :]]


def run_case(function, case):
    """One row: what was given, and what was found or what went wrong in one line."""
    try:
        return case | getattr(importlib.import_module("studies._bench.cases"), function)(**case)
    except Exception as error:
        return case | {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}


def digest_table(table):
    """SHA-256 of all that a table says, but for the digest itself and what was noted beside it later."""
    return digest({key: value for key, value in table.items() if key not in ("digest", "digest_note")})


def write_table(path, started, **content):
    """Write a table with its origin and its digest; complain of failed cases when it is written."""
    table = {
        "measured": True,
        "minutes": round((time.monotonic() - started) / 60, 1),
        "cores": 1,
        **describe_origin((*PACKAGES, "numpyro", "blackjax")),
        **content,
    }
    write_atomically(path, json.dumps(table | {"digest": digest_table(table)}, indent=1) + "\n")
    print(f"wrote {path} after {table['minutes']} minutes")
    failed = [row for rows in content.values() if isinstance(rows, list) for row in rows if "failed" in row]
    if failed:
        raise SystemExit(f"{len(failed)} cases failed")


def run(quick):
    """All cases; the table is written when the last one is done."""
    started, sections = time.monotonic(), {}
    for section, groups in list_cases(quick).items():
        sections[section] = []
        for function, arguments in groups:
            for row in run_group(function, arguments, here=quick):
                sections[section].append(row)
                print(f"{(time.monotonic() - started) / 60:5.1f} min  {section}  {shorten(row)}", flush=True)
    path = ROOT / "_build" / "bench_quick.json" if quick else DATA / "bench.json"
    write_table(path, started, study="bench", quick=quick, **sections)


def run_settings(repetitions=3):
    """The model typed, fused and by hand, with this book's settings and as a user has it, in turn: load meets all."""
    started, rows = time.monotonic(), []
    arguments = [{"n_hidden": 12, "n_calls": 500}]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["BENCH_COMPILED"] = folder
        for _ in range(repetitions):
            for settings, start in SETTINGS.items():
                rows += [{"settings": settings} | row for row in run_group("time_forms", arguments, False, start)]
                print(*map(shorten, rows[-len(arguments) :]), sep="\n", flush=True)
    outcomes = [row for _ in range(repetitions) for row in run_group("time_outcomes", arguments, False)]
    print(*outcomes, sep="\n", flush=True)
    write_table(DATA / "bench_settings.json", started, study="bench_settings", rows=rows, outcomes=outcomes)


def shorten(row):
    """A row in one line, numbers in three digits."""
    if "rows" in row:  # of `time_gradients` and `time_parts`
        parts = (f"{r['form']} {r.get('part', '')}: {r['us']:.3g} us" for r in row["rows"])
        return f"{row.get('settings', '')} n_hidden {row['n_hidden']}, {', '.join(parts)}"
    return ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


if __name__ == "__main__":
    os.environ.update(ENVIRONMENT)  # before anything imports JAX
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    if sys.argv[1:2] == ["--group"]:
        for wanted in json.loads(sys.argv[3]):
            print("RESULT", json.dumps(run_case(sys.argv[2], wanted)), flush=True)
    elif "--settings" in sys.argv:
        run_settings()
    else:
        run(quick="--quick" in sys.argv)
