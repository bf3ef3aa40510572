"""Say what is wrong with chapters as they are stored; nothing is run. `make chapters` and `make test` ask the same.

    python -m tools.checks moons      default: every chapter

Each check returns a list of complaints.
"""

import ast
import re
import sys
from functools import wraps

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
EVASIVE_COMMENTS = re.compile(r"^\s*#+\s*(NBVAL_SKIP|NBVAL_RAISES_EXCEPTION)\s*$", re.MULTILINE)
IGNORING_COMMENTS = re.compile(r"^\s*#+\s*(NBVAL_IGNORE_OUTPUT|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$", re.MULTILINE)
REASON = re.compile(r"^\s*# output ignored: \S+", re.MULTILINE)

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


def _number(cells):
    """Pair cells with names for a reader."""
    return [(f"code cell {i} (`{cell.source.strip().splitlines()[0][:60]}`)", cell) for i, cell in enumerate(cells, 1)]


# --- the pair ----------------------------------------------------------------------------------------------


def find_differences(nb, md):
    """Find where the ipynb says something else than the md (both NotebookNode)."""
    try:
        compare_notebooks(nb, md, fmt="md:myst")
    except NotebookDifference as difference:
        return [f"md and ipynb are out of step, run `make chapters`: {difference}"]
    return []


def find_unexecuted(nb):
    """Find code cells that were not run once each, in order, in a fresh kernel."""
    return [
        f"{name} has execution count {cell.execution_count}, not {expected}"
        for expected, (name, cell) in enumerate(_number(list_code(nb)), 1)
        if cell.execution_count != expected
    ]


def find_stale(nb):
    """Find out whether the code, or a table that it reads, was changed after it was run."""
    fresh = nb.metadata.get("bnn", {}).get("stamp", {}).get("code") == chapters.stamp(nb)["code"]
    return [] if fresh else ["the code or a table that it reads is not what was run: `make chapters` runs it"]


# --- form --------------------------------------------------------------------------------------------------


def find_undescribed(nb):
    """Find pictures without alt text, caption or name in their cell's metadata."""
    complaints = []
    for name, cell in _number(list_code(nb)):
        pictures = sum(any(mime.startswith("image/") for mime in o.get("data", {})) for o in cell.outputs)
        mystnb = cell.metadata.get("mystnb", {})
        texts = {
            "alt text": mystnb.get("image", {}).get("alt"),
            "caption": mystnb.get("figure", {}).get("caption"),
            "name": mystnb.get("figure", {}).get("name"),
        }
        if pictures:
            complaints += [f"{name}: the picture has no {what}" for what, text in texts.items() if not text]
        if pictures > 1:
            complaints.append(f"{name} shows {pictures} pictures under one caption: give each its own cell")
    return complaints


def find_long(nb):
    """Find code cells that nobody reads to their end."""
    lengths = [(name, len(cell.source.splitlines())) for name, cell in _number(list_code(nb))]
    return [f"{name} has {n} lines, at most {MAX_LINES}: cut it in two" for name, n in lengths if n > MAX_LINES]


def find_stderr(nb):
    """Find lines on stderr that are not warnings about divergences."""
    return [
        f"{name} wrote to stderr: {line}"
        for name, cell in _number(list_code(nb))
        for output in cell.outputs
        if output.output_type == "stream" and output.name == "stderr"
        for line in output.text.splitlines()
        if line.strip() and "divergence" not in line.lower()
    ]


def find_oversize(path):
    """Find out whether a file is too large to be read on a page."""
    size = path.stat().st_size
    return [f"{path.name} has {size / 1e6:.1f} MB, at most {MAX_BYTES / 1e6:.1f}"] if size > MAX_BYTES else []


def _of_outputs(check):
    """A check of a cell's outputs as one of a notebook, under the same name."""

    @wraps(check)
    def check_cells(nb):
        return [f"{name}: {complaint}" for name, cell in _number(list_code(nb)) for complaint in check(cell.outputs)]

    return check_cells


find_malformed, find_disagreeing, find_blank = map(
    _of_outputs, (outputs.find_malformed, outputs.find_disagreeing, outputs.find_blank)
)


def find_evasions(nb):
    """Find code cells whose outputs would not be compared, without a reason that is written down."""
    complaints = []
    for name, cell in _number(list_code(nb)):
        tags = set(cell.metadata.get("tags", []))
        evasive = sorted(EVASIVE_TAGS & tags) + EVASIVE_COMMENTS.findall(cell.source)
        complaints += [f"{name}: `{tag}` is not allowed" for tag in evasive]
        ignored = "nbval-ignore-output" in tags or IGNORING_COMMENTS.search(cell.source)
        if ignored and not REASON.search(cell.source):
            complaints.append(f"{name} ignores its output and does not say `# output ignored: <reason>`")
    return complaints


# --- seeds and clocks --------------------------------------------------------------------------------------


def find_unseeded(nb):
    """Find calls in a notebook that draw at random without a seed; whatever `**` passes is trusted."""
    complaints = []
    for name, cell in _number(list_code(nb)):
        tree = ast.parse(TransformerManager().transform_cell(cell.source))  # IPython's magics become calls
        for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
            full, function = ast.unparse(call.func), getattr(call.func, "attr", getattr(call.func, "id", None))
            seeds = [keyword.value for keyword in call.keywords if keyword.arg in {None, *SEED_NAMES}]
            seeds += call.args[:1] if function in GENERATORS else []
            seeded = any(not (isinstance(seed, ast.Constant) and seed.value is None) for seed in seeds)
            one_state = full == f"np.random.{function}" and function not in GENERATORS | {"Generator"}
            if one_state or (not seeded and {full, function} & (DRAWS | GENERATORS)):
                complaints.append(f"{name}: `{full}` draws without a seed")
    return complaints


def find_clocks(nb):
    """Find code that looks at a clock or at memory, or draws from the one state that Python has for all."""
    return [
        f"{name} uses `{clock.strip()}`: read measured numbers from a data file, and draw with NumPy"
        for name, cell in _number(list_code(nb))
        for clock in CLOCK.findall(cell.source)
    ]


CHECKS = [
    find_unexecuted, find_stale, find_undescribed, find_long, find_stderr, find_blank, find_malformed, find_disagreeing,
    find_evasions, find_unseeded, find_clocks,
]  # fmt: skip


def check(md):
    """Everything that is wrong with a chapter (Path of its md) and the notebook beside it: a list of complaints."""
    ipynb = md.with_suffix(".ipynb")
    nb = nbformat.read(ipynb, as_version=4)
    complaints = find_differences(nb, jupytext.read(md, fmt="md:myst")) + find_oversize(ipynb)
    return complaints + [complaint for check in CHECKS for complaint in check(nb)]


def main(names):
    """Print what is wrong with the chapters of these names (default: all). Returns the exit status."""
    found = {md.stem: check(md) for md in find_chapters() if not names or md.stem in names}
    for name, complaints in found.items():
        print(f"{name}: {len(complaints) or 'no'} complaints", *complaints, sep="\n  ")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
