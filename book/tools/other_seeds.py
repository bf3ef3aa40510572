"""Run chapters once with other seeds of their samplers, and say what differs by more than chance: before a release.

    python -m tools.other_seeds moons       default: every chapter, for hours

Data, splits and tables of studies stay what they are; so do fits by ADVI, which are the same on every machine.
"""

import argparse
import sys

import jupytext
import nbformat
from bookkit.repo import find_chapters
from nbclient import NotebookClient

from tools import chapters, outputs

SHIFT = """
import functools, inspect
import pymc as pm

def shift(owner, name, argument="seed"):
    function = getattr(owner, name)

    @functools.wraps(function)
    def shifted(*args, **kwargs):
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.arguments[argument] += 1_000_000
        return function(*bound.args, **bound.kwargs)

    setattr(owner, name, shifted)

shift(pm, "sample", "random_seed")  # first, for it is a default in hbnn.sampling
from hbnn import priors, sampling
from pymc.variational.opvi import Approximation
shift(sampling, "sample_nuts")
shift(sampling, "sample_groups")
shift(sampling.Advi, "draw")
shift(priors, "draw_new_category")
shift(Approximation, "sample", "random_seed")
"""


def compare(md):
    """Execute a chapter with other seeds: what differs from its notebook, as a list of complaints."""
    nb, stored = jupytext.read(md, fmt="md:myst"), nbformat.read(md.with_suffix(".ipynb"), as_version=4)
    nb.cells.insert(0, nbformat.v4.new_code_cell(SHIFT))
    client = NotebookClient(
        nb, kernel_name="python3", resources={"metadata": {"path": str(md.parent)}}, timeout=None, allow_errors=True
    )
    client.execute(env=chapters.kernel_environment() | {"BNN_CACHE": "off"})
    old, new = ([cell for cell in book.cells if cell.cell_type == "code"] for book in (stored, nb))
    complaints = [f"the seeds could not be shifted: {output}" for output in new[0].outputs]
    for number, (before, now) in enumerate(zip(old, new[1:], strict=True), 1):
        found = outputs.compare_outputs(before.outputs, chapters.join_streams(now.outputs))
        complaints += [f"code cell {number}, {complaint}" for complaint in found]
    return complaints


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="chapter", help="default: all")
    names, mds = parser.parse_args(arguments).names, {md.stem: md for md in find_chapters()}
    if unknown := set(names) - mds.keys():
        parser.error(f"no chapter {', '.join(sorted(unknown))}; there are: {', '.join(mds)}")
    failed = False
    for name in names or mds:
        complaints = compare(mds[name])
        failed |= bool(complaints)
        print(f"{name}: {len(complaints)} complaints", *complaints, sep="\n  ", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
