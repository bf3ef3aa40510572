"""What each section of a chapter costs to run live: CPU-seconds on one core, in the order of the page.

As in `run_cost`, the compile cache is warm and no posterior is cached. A section is what stands below a label such as
``(sec-moons-data)=`` or below a heading without one; the cells above the first are "start", and hold the imports.
"""

from chapters import BOOK, find_chapters

from studies.run_cost import measure

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
    return {"seconds": measure(BOOK / f"{chapter}.md", RUN)}
