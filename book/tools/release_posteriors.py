"""Make what a release publishes for readers who do not want to sample (`bnn.published`), and see what rounding moves.

    python -m tools.release_posteriors FOLDER              sample, and write FOLDER/posteriors.json and its files
    python -m tools.release_posteriors FOLDER --compare    then run chapters with these draws and with their own

The draws come from the chapter's own cells, on the machine that runs this. `--compare` executes each chapter twice and
fails where a printed number moves by more than its two errors combined, or where words do. Where a chapter only
averages draws, numbers move by hundredths of that. Where it matches hidden units, or samples with a prior made of
draws, rounding leads to another match and to other draws, and numbers move as those of another run may.
"""

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path

import jupytext
from bnn import cache, published
from nbclient import NotebookClient

from tools import chapters
from tools.stored import run_cells

sys.path.append(str(chapters.BOOK.parent / "tests"))
import outputs

CHAPTER, NAME = "hierarchical_nuts", "trace"  # who samples the posterior that nine chapters share, and what it calls it
READERS = ("hierarchical_nuts", "group_sd", "weight_correlations", "informed_priors")  # the core pages among the nine


def make(folder):
    """Sample as the chapter does, and publish into a folder; returns the file's Path."""
    runs, find = [], published.find
    published.find = runs.append  # as if nothing were published; what is asked for is what others will ask for
    try:
        page = run_cells(CHAPTER, "cached(pm.sample)")
    finally:
        published.find = find
    if len(runs) != 1:
        raise SystemExit(f"{CHAPTER} asked for {len(runs)} posteriors; wanted: 1, and none in $BNN_CACHE")
    return published.publish(page[NAME], runs[0], folder, CHAPTER)


def execute(name, **environment):
    """A chapter's notebook, executed with some more environment variables."""
    md = chapters.BOOK / f"{name}.md"
    nb = jupytext.read(md, fmt="md:myst")
    client = NotebookClient(nb, kernel_name="python3", resources={"metadata": {"path": str(md.parent)}}, timeout=None)
    client.execute(env=chapters.kernel_environment() | environment)
    return nb


def list_moves(before, after):
    """What published draws change in a chapter.

    Parameters
    ----------
    before, after : NotebookNode

    Returns
    -------
    list of float, list of str
        Of each number with an error, by how much it moved beyond what rounding in print may do, in the errors of both,
        combined; and texts whose words, verdicts or numbers without an error differ.
    """
    moves, words = [], []
    cells = [[cell for cell in nb.cells if cell.cell_type == "code"] for nb in (before, after)]
    for old, new in zip(*cells, strict=True):
        texts = [
            [text for output in cell.outputs if output.get("name") != "stderr" for text in outputs.list_counted(output)]
            for cell in (old, new)
        ]
        for a, b in zip(*texts, strict=True):
            one, other = outputs.read_text(a), outputs.read_text(b)
            if one.skeleton != other.skeleton:
                words.append(f"{a!r} became {b!r}")
                continue
            pairs = zip(one.estimates, other.estimates, strict=True)
            moves += [outputs._measure_move(x, y) / math.hypot(x.error, y.error) for x, y in pairs if x.error]
    return moves, words


def compare(folder, names=READERS):
    """Run chapters with their own draws and with the published ones; returns whether all is within errors."""
    fine = True
    with tempfile.TemporaryDirectory() as own:
        for name in names:
            before = execute(name, BNN_CACHE=own, BNN_POSTERIORS="off")
            after = execute(name, BNN_CACHE="off", BNN_POSTERIORS=str(Path(folder).resolve()))
            moves, words = list_moves(before, after)
            largest = max(moves, default=0)
            print(
                f"{name}: {len(moves)} numbers, the largest move is {largest:.2f} combined errors",
                *words,
                sep="\n  ",
                flush=True,
            )
            fine &= largest <= 1 and not words
    return fine


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compare", action="store_true")
    given = parser.parse_args(arguments)
    os.environ[cache.SWITCH] = "off"
    path = make(given.folder)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 0 if not given.compare or compare(given.folder) else 1


if __name__ == "__main__":
    sys.exit(main())
