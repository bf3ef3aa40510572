"""Teach nbval to compare numbers by their errors, and to look at pictures.

nbval alone compares text letter by letter, leaves out pictures and metadata, passes a cell that was never
executed, and obeys tags that switch it off. This plugin (named in pyproject.toml, so that it is in force for
``pytest --nbval book/moons.ipynb`` too) replaces its comparison by `outputs.compare_outputs`. At the end of a chapter,
and of the book, it asks whether many numbers moved at once.
"""

import json
import os
from functools import cache
from pathlib import Path

import checks
import nbformat
import outputs
import pytest
from nbval import plugin
from tools import chapters

RECORD = json.loads(Path(__file__).with_name("honest_runs.json").read_text(encoding="utf-8"))

run_cell = plugin.IPyNbCell.runtest
all_moves = []  # of all chapters that this run of pytest compares, whichever process executes them


def pytest_configure(config):
    # the kernel of this interpreter, not one that a user installed under the same name
    config.option.nbval_current_env = True
    if config.option.nbval:  # kernels inherit it; a run of unit tests keeps what it was given
        environ = chapters.kernel_environment()
        os.environ.clear()
        os.environ.update(environ)
    plugin.IPyNbCell.runtest = _run_cell
    plugin.IPyNbCell.compare_outputs = _compare_outputs
    # nbval joins streams across the displays between them, and so loses their order
    plugin.coalesce_streams = chapters.join_streams


def pytest_ignore_collect(collection_path):
    """Take the chapters, ``book/*.ipynb``, and no other notebook of the book."""
    if collection_path.suffix != ".ipynb":
        return None
    inside = chapters.BOOK in collection_path.parents and collection_path.parent != chapters.BOOK
    return True if inside or collection_path.name.startswith("_") else None


def _run_cell(self):
    """Run a cell as nbval does, unless something would keep its outputs from being compared."""
    evasions = checks.find_evasions([self.cell])
    if evasions:
        self.raise_cell_error("; ".join(evasions))
    if self.cell.source.strip() and self.cell.execution_count is None:
        self.raise_cell_error("This cell was never executed: run `make chapters`")
    run_cell(self)
    if self.cell is [cell for cell in self.parent.nb.cells if cell.cell_type == "code"][-1]:
        drift = outputs.find_drift(getattr(self.parent, "moves", []), _find_record(self).get("drift"))
        if drift:
            self.raise_cell_error(f"The chapter as a whole: {drift[0]}")


def _find_record(cell):
    """What is known of honest runs of the chapter that a cell belongs to."""
    return RECORD["chapters"].get(Path(cell.path).stem, outputs.NOTHING)


def pytest_runtest_logreport(report):
    all_moves.extend(move for name, moves in report.user_properties if name == "moves" for move in moves)


def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):  # a worker of xdist has seen its own chapters only
        drift = outputs.find_drift(all_moves, RECORD["book"]["drift"])
        if drift:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            print(f"\nThe book as a whole: {drift[0]}")


def _compare_outputs(self, test, ref, skip_compare=None):
    """Compare fresh outputs (`test`) with the stored ones (`ref`); called by nbval for every cell."""
    written = self.parent.nb.metadata.get("bnn", {}).get("machine", {})
    strict = written == chapters.machine()
    level = outputs.set_level(_count_estimates(Path(self.path).parent))
    record, figure = _find_record(self), self.cell.metadata.get("mystnb", {}).get("figure", {}).get("name")
    complaints = outputs.compare_outputs(ref, test, level, strict, record, figure)
    moves = outputs.list_moves(ref, test, record)
    self.parent.moves = [*getattr(self.parent, "moves", []), *moves]
    self.user_properties.append(("moves", moves))
    odd = [name for name, value in chapters.machine().items() if written.get(name) != value]
    mode = f"written under other settings: {', '.join(odd)}" if odd else "written under these settings"
    self.comparison_traceback = [f"cell {self.cell_num}, {complaint} [{mode}]" for complaint in complaints]
    return not complaints


@cache
def _count_estimates(folder):
    """Count the estimates of all notebooks in a folder: they share the risk of a false alarm."""
    notebooks = [nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))]
    cells = [cell for nb in notebooks for cell in nb.cells if cell.cell_type == "code"]
    return sum(len(outputs.list_estimates(cell.outputs)) for cell in cells)
