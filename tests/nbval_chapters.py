"""Teach nbval to compare numbers by their errors, and pictures, and to choose chapters.

nbval alone compares text letter by letter, leaves out pictures and metadata, passes a cell that was never
executed, and obeys tags that switch it off. This plugin (named in pyproject.toml, so that it is in force for
``pytest --nbval book/moons.ipynb`` too) replaces its comparison by that of `tools.outputs`. With ``--chapters=chosen``
it takes only chapters that have changed and a few that stand for the rest, and says at the end which and why.
"""

import os
from functools import cache

import nbformat
from bookkit.repo import BOOK, ask_git
from bookkit.versions import machine
from nbval import plugin
from tools import chapters, checks, outputs

# NUTS on a fused network, ADVI on images, a page of tables: together 73 CPU-seconds (book/data/run_cost.json)
FIXED = ("engines", "digits", "one_choice")
run_cell = plugin.IPyNbCell.runtest


def pytest_addoption(parser):
    parser.addoption("--chapters", choices=("all", "chosen"), default="all", help="chapters that are run again")


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


def pytest_ignore_collect(collection_path, config):
    """Take the chapters, ``book/*.ipynb``, and no other notebook of the book."""
    if collection_path.suffix != ".ipynb":
        return None
    inside = BOOK in collection_path.parents
    left = inside and (collection_path.parent != BOOK or (_is_choosing(config) and not choose()[collection_path.stem]))
    return True if left or collection_path.name.startswith("_") else None


def pytest_terminal_summary(terminalreporter, config):
    if _is_choosing(config):
        run = [f"{name} ({why})" for name, why in choose().items() if why]
        left = len(choose()) - len(run)
        terminalreporter.section("chapters")
        terminalreporter.write_line(f"run again: {', '.join(run)}; left to `make test-all`: {left} others")


def _is_choosing(config):
    return config.getoption("nbval", False) and config.getoption("chapters") == "chosen"


def _run_cell(self):
    """Run a cell as nbval does, unless something would keep its outputs from being compared."""
    if evasions := checks.find_evasions(self.cell):
        self.raise_cell_error("; ".join(evasions))
    if self.cell.source.strip() and self.cell.execution_count is None:
        self.raise_cell_error("This cell was never executed: run `make chapters`")
    run_cell(self)


def _compare_outputs(self, test, ref, skip_compare=None):
    """Compare fresh outputs (`test`) with the stored ones (`ref`); called by nbval for every cell."""
    written = self.parent.nb.metadata.get("bnn", {}).get("machine", {})
    odd = [name for name, value in machine().items() if written.get(name) != value]
    complaints = outputs.compare_outputs(ref, test, strict=written == machine())
    mode = f"written under other settings: {', '.join(odd)}" if odd else "written under these settings"
    self.comparison_traceback = [f"cell {self.cell_num}, {complaint} [{mode}]" for complaint in complaints]
    return not complaints


# --- which are run again


@cache
def choose():
    """Why each chapter is run again: dict of name to str, "" where it is not."""
    found = {}
    for path in sorted(BOOK.glob("*.ipynb")):
        reason = find_change(nbformat.read(path, as_version=4), read_base(path))
        found[path.stem] = reason or ("stands for others" if path.stem in FIXED else "")
    return found


def find_change(nb, base=None):
    """What a notebook depends on that is not as it was when it was written, or what it says that is not as on main (its
    `base`, None where the file is the same): str, "" for nothing."""
    present, written = chapters.stamp(nb), nb.metadata.get("bnn", {}).get("stamp", {})
    for name, what in {"code": "its code or tables", "lock": "lock", "numbers": "hbnn.NUMBERS"}.items():
        if written.get(name) != present[name]:
            return f"{what} changed"
    return "code or outputs are not those of main" if base and list_code(nb) != list_code(base) else ""


def list_code(nb):
    """Source and outputs of a notebook's code cells."""
    return [(cell.source, cell.outputs) for cell in nb.cells if cell.cell_type == "code"]


def read_base(path):
    """A notebook as it was where this branch left main, empty where it is new; None where it is the same file."""
    base = ask_git("merge-base", "HEAD", "origin/main") or ask_git("merge-base", "HEAD", "main")
    name = f"book/{path.name}"
    if not base or name not in list_changed(base):
        return None
    old = ask_git("show", f"{base}:{name}")
    return nbformat.reads(old, as_version=4) if old else nbformat.v4.new_notebook()


@cache
def list_changed(base):
    """The notebooks that are not as they were in a commit: list of str, paths in the repository."""
    return ask_git("diff", "--name-only", base, "--", "book/*.ipynb").splitlines()
