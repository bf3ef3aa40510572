"""What each chapter asks of a reader: minutes to read, CPU-seconds and memory to run, in a fresh kernel on one core.

The compile cache is warm (each chapter has been executed on this machine before), and no posterior is cached.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import jupytext
from chapters import BOOK, find_chapters

MEASURED = True
CASES = [{"chapter": path.stem} for path in find_chapters()]
WORDS_PER_MINUTE = 200

# runs the cells one after the other as a script: no kernel, no second process
RUN = """
import json, resource, sys, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import jupytext
from IPython.core.interactiveshell import InteractiveShell
from bnn import report

report.show_cost = lambda chapter: None  # it shows what is only being measured here
shell = InteractiveShell.instance()
for cell in jupytext.read(sys.argv[1]).cells:
    if cell.cell_type == "code":
        shell.run_cell(cell.source, silent=True).raise_error()
        plt.close("all")
used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
seconds = sum(u.ru_utime + u.ru_stime for u in used)
print("COST", json.dumps({"cpu_seconds": round(seconds), "megabytes": round(max(u.ru_maxrss for u in used) / 1024)}))
"""


def measure(path, script=RUN, folder=BOOK):
    """Run the cells of `path` by `script` on one core, in a process of its own. Returns what it prints after COST.

    Raises RuntimeError with the end of its output where a cell does not run.
    """
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "run.py")
        program.write_text(script)
        pinned = ["taskset", "-c", "0"] if hasattr(os, "sched_setaffinity") else []
        done = subprocess.run(
            [*pinned, sys.executable, program, path],
            cwd=folder or scratch,
            env=os.environ | {"BNN_CACHE": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"^COST (.*)$", done.stdout, flags=re.MULTILINE)
    if done.returncode or not found:
        raise RuntimeError(f"{path} does not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(found[1])


def compute(chapter):
    """Minutes of prose at 200 words a minute, CPU-seconds, and the peak of resident memory in MB."""
    path = BOOK / f"{chapter}.md"
    words = sum(len(cell.source.split()) for cell in jupytext.read(path).cells if cell.cell_type == "markdown")
    return {"minutes": round(words / WORDS_PER_MINUTE)} | measure(path)
