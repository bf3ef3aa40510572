"""Make what a release publishes for readers who do not want to sample (`bookkit.published`).

    python -m tools.release_posteriors FOLDER    sample, and write FOLDER/posteriors.json and its files

The draws come from the chapter's own cells, on the machine that runs this.
"""

import argparse
import os
from pathlib import Path

from bookkit import cache, published

from tools.stored import run_cells

CHAPTER, NAME = "hierarchical_nuts", "trace"  # who samples the posterior that nine chapters share, and what it calls it


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


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args(arguments).folder
    os.environ[cache.SWITCH] = "off"
    path = make(folder)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
