"""Say what is wrong with chapters as they are stored; nothing is run. `make chapters` and `make test` ask the same.

    python -m tools.checks moons      default: every chapter

Each check returns a list of complaints, of a notebook or of one cell.
"""

import ast
import re
import sys

import jupytext
import nbformat
from bookkit.repo import find_chapters
from IPython.core.inputtransformer2 import TransformerManager
from jupytext.compare import NotebookDifference, compare_notebooks

from tools import chapters, outputs

MAX_BYTES = 1_500_000
MAX_LINES = 25  # of a code cell, without its options
# tags with which nbval, or a reader of the page, would not see an output or an error
EVASIVE_TAGS = {"nbval-skip", "nbval-raises-exception", "raises-exception", "skip-execution"}
EVASIVE = re.compile(r"^\s*#+\s*(NBVAL_SKIP|NBVAL_RAISES_EXCEPTION)\s*$", re.MULTILINE)
IGNORING = re.compile(r"^\s*#+\s*(NBVAL_IGNORE_OUTPUT|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$", re.MULTILINE)

# what draws at random, in PyMC, nutpie, scikit-learn, SciPy and NumPy, and what a seed is called there
SEED_NAMES = {"random_seed", "random_state", "seed", "rng"}
DRAWS = {
    "sample", "pm.fit", "pm.compile", "sample_prior_predictive", "sample_posterior_predictive", "sample_smc", "draw",
    "rvs", "ADVI", "FullRankADVI", "SVGD", "train_test_split", "make_moons", "make_blobs", "make_circles",
    "make_classification", "make_regression", "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier",
    "MLPClassifier", "MLPRegressor", "GradientBoostingClassifier", "KMeans", "TSNE", "ShuffleSplit",
    "StratifiedShuffleSplit", "RepeatedKFold", "RandomizedSearchCV", "permutation_importance", "resample", "shuffle",
    "bootstrap", "permutation_test", "monte_carlo_test", "differential_evolution", "dual_annealing", "basinhopping",
}  # fmt: skip
GENERATORS = {
    "default_rng",
    "RandomState",
    "SeedSequence",
    "PCG64",
    "Philox",
    "Random",
}  # their first argument is a seed
# a number that a clock gives differs at each run, so it must come from a data file; `random` has one state for all
CLOCK = re.compile(
    r"^\s*(?:import|from) (?:time|timeit|datetime|psutil|resource|tracemalloc|cProfile|memory_profiler|random)\b"
    r"|^\s*(?:\w+\s*=\s*)?%{1,2}(?:time|timeit|prun|memit|mprun)\b"
    r"|\b(?:perf_counter|perf_counter_ns|process_time|process_time_ns|monotonic|getrusage)\b",
    re.MULTILINE,
)


def list_code(nb):
    """List the code cells of a notebook that are not empty."""
    return [cell for cell in nb.cells if cell.cell_type == "code" and cell.source.strip()]


# --- a notebook --------------------------------------------------------------------------------------------


def find_differences(nb, md):
    """Find where the ipynb says something else than the md (both NotebookNode)."""
    try:
        compare_notebooks(nb, md, fmt="md:myst")
    except NotebookDifference as difference:
        return [f"md and ipynb are out of step, run `make chapters`: {difference}"]
    return []


def find_stale(nb):
    """Find out whether the code, or a table that it reads, was changed after it was run."""
    fresh = nb.metadata.get("bnn", {}).get("stamp", {}).get("code") == chapters.stamp(nb)["code"]
    return [] if fresh else ["the code or a table that it reads is not what was run: `make chapters` runs it"]


# --- a code cell -------------------------------------------------------------------------------------------


def find_undescribed(cell):
    """Find pictures without alt text, caption or name in the cell's metadata."""
    pictures = sum(any(mime.startswith("image/") for mime in o.get("data", {})) for o in cell.outputs)
    if pictures > 1:
        return [f"{pictures} pictures under one caption: give each its own cell"]
    wanted = [("alt text", "image", "alt"), ("caption", "figure", "caption"), ("name", "figure", "name")]
    mystnb = cell.metadata.get("mystnb", {})
    return [
        f"the picture has no {what}" for what, part, key in wanted if pictures and not mystnb.get(part, {}).get(key)
    ]


def find_long(cell):
    """Find out whether nobody reads a cell to its end."""
    n = len(cell.source.splitlines())
    return [f"{n} lines, at most {MAX_LINES}: cut it in two"] if n > MAX_LINES else []


def find_stderr(cell):
    """Find lines on stderr that are not warnings about divergences."""
    texts = [output.text for output in cell.outputs if output.get("name") == "stderr"]
    lines = [line for line in "\n".join(texts).splitlines() if line.strip() and "divergence" not in line.lower()]
    return [f"wrote to stderr: {line}" for line in lines]


def find_evasions(cell):
    """Find what keeps outputs from being compared, without a reason that is written down."""
    tags = set(cell.metadata.get("tags", []))
    found = [f"`{evasion}` is not allowed" for evasion in sorted(EVASIVE_TAGS & tags) + EVASIVE.findall(cell.source)]
    if ("nbval-ignore-output" in tags or IGNORING.search(cell.source)) and not cell.metadata.get("ignored_because"):
        found.append("ignores its output, and its metadata do not say `ignored_because: <reason>`")
    return found


def find_unseeded(cell):
    """Find calls that draw at random without a seed; whatever `**` passes is trusted."""
    found = []
    tree = ast.parse(TransformerManager().transform_cell(cell.source))  # IPython's magics become calls
    for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
        full, name = ast.unparse(call.func), getattr(call.func, "attr", getattr(call.func, "id", None))
        seeds = [keyword.value for keyword in call.keywords if keyword.arg in {None, *SEED_NAMES}]
        seeds += call.args[:1] if name in GENERATORS else []
        seeded = any(not (isinstance(seed, ast.Constant) and seed.value is None) for seed in seeds)
        one_state = full == f"np.random.{name}" and name not in GENERATORS | {"Generator"}
        if one_state or (not seeded and {full, name} & (DRAWS | GENERATORS)):
            found.append(f"`{full}` draws without a seed")
    return found


def find_clocks(cell):
    """Find code that looks at a clock or at memory, or draws from the one state that Python has for all."""
    found = CLOCK.findall(cell.source)
    return [f"`{clock.strip()}`: read measured numbers from a data file, and draw with NumPy" for clock in found]


CELL_CHECKS = (find_undescribed, find_long, find_stderr, find_evasions, find_unseeded, find_clocks)
OUTPUT_CHECKS = (outputs.find_malformed, outputs.find_disagreeing, outputs.find_blank)


def check_notebook(nb):
    """Everything that is wrong with a notebook by itself: a list of complaints."""
    complaints = find_stale(nb)
    for number, cell in enumerate(list_code(nb), 1):
        found = [complaint for check in CELL_CHECKS for complaint in check(cell)]
        found += [complaint for check in OUTPUT_CHECKS for complaint in check(cell.outputs)]
        if cell.execution_count != number:
            found.append(f"has execution count {cell.execution_count}, not {number}: run it once, in order")
        complaints += [f"code cell {number} (`{cell.source.strip().splitlines()[0][:60]}`): {c}" for c in found]
    return complaints


def check(md):
    """Everything that is wrong with a chapter (Path of its md) and the notebook beside it: a list of complaints."""
    ipynb = md.with_suffix(".ipynb")
    nb, size = nbformat.read(ipynb, as_version=4), ipynb.stat().st_size
    large = [f"{ipynb.name} has {size / 1e6:.1f} MB, at most {MAX_BYTES / 1e6:.1f}"] if size > MAX_BYTES else []
    return find_differences(nb, jupytext.read(md, fmt="md:myst")) + large + check_notebook(nb)


def main(names):
    """Print what is wrong with the chapters of these names (default: all). Returns the exit status."""
    found = {md.stem: check(md) for md in find_chapters() if not names or md.stem in names}
    for name, complaints in found.items():
        print(f"{name}: {len(complaints) or 'no'} complaints", *complaints, sep="\n  ")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
