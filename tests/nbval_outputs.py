"""Teach nbval to compare numbers by their errors, and to look at pictures.

nbval alone compares text letter by letter, leaves out pictures and metadata, passes a cell that was never
executed, and obeys tags that switch it off. This plugin (named in pyproject.toml, so that it is in force for
``pytest --nbval book/moons.ipynb`` too) replaces its comparison by that of `tools.outputs`.
"""

import os
from functools import cache
from pathlib import Path

from bookkit.repo import BOOK
from bookkit.versions import machine
from nbformat.v4 import new_notebook
from nbval import plugin
from tools import chapters, checks, outputs

run_cell = plugin.IPyNbCell.runtest


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
    inside = BOOK in collection_path.parents and collection_path.parent != BOOK
    return True if inside or collection_path.name.startswith("_") else None


def _run_cell(self):
    """Run a cell as nbval does, unless something would keep its outputs from being compared."""
    if evasions := checks.find_evasions(new_notebook(cells=[self.cell])):
        self.raise_cell_error("; ".join(evasions))
    if self.cell.source.strip() and self.cell.execution_count is None:
        self.raise_cell_error("This cell was never executed: run `make chapters`")
    run_cell(self)


def _compare_outputs(self, test, ref, skip_compare=None):
    """Compare fresh outputs (`test`) with the stored ones (`ref`); called by nbval for every cell."""
    written = self.parent.nb.metadata.get("bnn", {}).get("machine", {})
    odd = [name for name, value in machine().items() if written.get(name) != value]
    level = outputs.set_level(_count_estimates(Path(self.path).parent))
    complaints = outputs.compare_outputs(ref, test, level, strict=written == machine())
    mode = f"written under other settings: {', '.join(odd)}" if odd else "written under these settings"
    self.comparison_traceback = [f"cell {self.cell_num}, {complaint} [{mode}]" for complaint in complaints]
    return not complaints


@cache
def _count_estimates(folder):
    return outputs.count_estimates(sorted(folder.glob("*.ipynb")))
