"""Teach nbval to compare numbers by their errors, and to look at pictures.

nbval alone compares text letter by letter, leaves out pictures and metadata, passes a cell that was never
executed, and obeys tags that switch it off. This plugin (named in pyproject.toml, so that it is in force for
``pytest --nbval book/moons.ipynb`` too) replaces its comparison by `outputs.compare_outputs`.
"""

import os
from functools import cache
from pathlib import Path

import chapters
import checks
import nbformat
import outputs
from nbval import plugin

run_cell = plugin.IPyNbCell.runtest


def pytest_configure(config):
    # the kernel of this interpreter, not one that a user installed under the same name
    config.option.nbval_current_env = True
    os.environ.update(chapters.ENVIRONMENT)  # kernels inherit it
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


def _compare_outputs(self, test, ref, skip_compare=None):
    """Compare fresh outputs (`test`) with the stored ones (`ref`); called by nbval for every cell."""
    strict = self.parent.nb.metadata.get("bnn", {}).get("machine") == chapters.machine()
    level = outputs.set_level(_count_estimates(Path(self.path).parent))
    complaints = outputs.compare_outputs(ref, test, level, strict)
    mode = "this machine wrote the notebook" if strict else "another machine wrote the notebook"
    self.comparison_traceback = [f"cell {self.cell_num}, {complaint} [{mode}]" for complaint in complaints]
    return not complaints


@cache
def _count_estimates(folder):
    """Count the estimates of all notebooks in a folder: they share the risk of a false alarm."""
    notebooks = [nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))]
    cells = [cell for nb in notebooks for cell in nb.cells if cell.cell_type == "code"]
    return sum(len(outputs.list_estimates(cell.outputs)) for cell in cells)
