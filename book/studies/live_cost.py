"""What each section of a chapter costs to run live: CPU-seconds on one core, in the order of the page.

As in `run_cost`, the compile cache is warm and no posterior is cached. A section is what stands below a label such as
``(sec-moons-data)=`` or below a heading without one; the cells above the first are "start", and hold the imports.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from chapters import BOOK, find_chapters

MEASURED = True
CASES = [{"chapter": path.stem} for path in find_chapters()]

# runs the cells one after the other as a script: no kernel, no second process
RUN = r"""
import json, re, resource, sys, matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import jupytext
from IPython.core.interactiveshell import InteractiveShell
from bnn import report

def spend():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)

report.show_cost = lambda chapter: None  # the page of a chapter that is new has no cost to show yet
shell, section, seconds = InteractiveShell.instance(), "start", {}
for cell in jupytext.read(sys.argv[1]).cells:
    if cell.cell_type == "markdown":
        for label, heading in re.findall(r"^\((sec-[\w-]+)\)=\n#+ .*$|^## (.+)$", cell.source, flags=re.MULTILINE):
            section = label or heading.lower()
    else:
        before = spend()
        shell.run_cell(cell.source, silent=True).raise_error()
        plt.close("all")
        seconds[section] = seconds.get(section, 0.0) + spend() - before
print("COST", json.dumps({name: round(value, 1) for name, value in seconds.items()}))
"""


def compute(chapter):
    """CPU-seconds of each section: {"seconds": {section: float}}."""
    path = BOOK / f"{chapter}.md"
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "run.py")
        script.write_text(RUN)
        pinned = ["taskset", "-c", "0"] if hasattr(os, "sched_setaffinity") else []
        done = subprocess.run(
            [*pinned, sys.executable, script, path],
            cwd=BOOK,
            env=os.environ | {"BNN_CACHE": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"^COST (.*)$", done.stdout, flags=re.MULTILINE)
    if done.returncode or not found:
        raise RuntimeError(f"{path} does not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {"seconds": json.loads(found[1])}
