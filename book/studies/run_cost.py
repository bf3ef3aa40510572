"""What each chapter asks of a machine: CPU-seconds, in all and of each section, and memory, on one core.

A fresh process, a warm compile cache (each chapter has been executed on this machine before), and no posterior cached.
A section is what stands below a label such as ``(sec-moons-data)=`` or below a heading without one; the cells above
the first are "start", and hold the imports.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bookkit.repo import BOOK, find_chapters

MEASURED = True
CASES = [{"chapter": path.stem} for path in find_chapters()]

# runs the cells one after the other as a script: no kernel, no second process
RUN = r"""
import json, re, resource, sys, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import jupytext
import pymc
from bookkit import kernel
from IPython.core.interactiveshell import InteractiveShell

kernel.settle(pymc)  # as in a notebook

def use():
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]

def spend():
    return sum(u.ru_utime + u.ru_stime for u in use())

shell, section, sections = InteractiveShell.instance(), "start", {}
for cell in jupytext.read(sys.argv[1]).cells:
    if cell.cell_type == "markdown":
        for label, heading in re.findall(r"^\((sec-[\w-]+)\)=\n#+ .*$|^## (.+)$", cell.source, flags=re.MULTILINE):
            section = label or heading.lower()
    elif cell.cell_type == "code":
        before = spend()
        shell.run_cell(cell.source, silent=True).raise_error()
        plt.close("all")
        sections[section] = sections.get(section, 0.0) + spend() - before
print("COST", json.dumps({
    "cpu_seconds": round(spend()),
    "megabytes": round(max(u.ru_maxrss for u in use()) / 1024),
    "sections": {name: round(value, 1) for name, value in sections.items()},
}))
"""


def measure(path, folder=BOOK):
    """Run the cells of a notebook on one core, in a process of its own.

    Parameters
    ----------
    path : Path, of a md
    folder : Path or None, where it runs; None for an empty one

    Returns
    -------
    dict
        cpu_seconds (int), megabytes (int, the peak of resident memory), sections (dict of name to CPU-seconds).

    Raises
    ------
    RuntimeError
        Where a cell does not run, with the end of its output.
    """
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch, "run.py")
        program.write_text(RUN)
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
    """What `measure` returns for a chapter."""
    return measure(BOOK / f"{chapter}.md")
