"""Make what a release publishes for readers who do not want to sample (`bookkit.published`).

    python -m tools.release_posteriors FOLDER    sample, and write FOLDER/posteriors.json and its files

The draws come from the chapter's own cells, on the machine that runs this.
"""

import argparse
import os
import tempfile
from pathlib import Path

from bookkit import cache, published

from tools.pictures import run_cells

CHAPTER = "hierarchical_nuts"  # who samples the posterior that nine chapters share


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args(arguments)
    os.environ.pop(published.SWITCH, None)
    with tempfile.TemporaryDirectory() as kept:
        os.environ[cache.SWITCH] = kept
        run_cells(CHAPTER, "trace = pm.sample(")
        trees = [cache.read(path, path.stem) for path in Path(kept).glob("*.nc")]
    if not trees:
        raise SystemExit(f"{CHAPTER} has kept no posterior; wanted: a run that went to its end")
    for path in published.publish(trees, asked.folder, CHAPTER):
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
