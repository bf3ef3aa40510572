"""What readers copy of a chapter, its visible cells before the exercises, is a program that runs without the book."""

import ast
import subprocess
from functools import cache

import jupytext
import pytest
from bookkit.repo import BOOK, ROOT
from tools.checks import list_code

CHAPTERS = ("flat_advi", "unpooled", "hierarchical_nuts", "hierarchical_trust", "group_sd", "weight_correlations",
            "informed_priors", "own_data")  # fmt: skip
BARE = ROOT / "_build" / "bare"
PACKAGES = ("pymc", "arviz", "numpy", "scikit-learn", "matplotlib", str(BOOK))  # the last is hbnn


@cache
def read_program(chapter):
    """The visible code of a chapter up to its exercises (str)."""
    nb = jupytext.read(BOOK / f"{chapter}.md")
    end = next(i for i, cell in enumerate(nb.cells) if cell.source.startswith("## Exercises"))
    hidden = {"hide-input", "remove-input", "hide-cell", "remove-cell"}
    cells = [
        cell for cell in list_code(nb) if cell in nb.cells[:end] and not hidden & set(cell.metadata.get("tags", ()))
    ]
    return "\n\n".join(cell.source for cell in cells)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_what_readers_see_needs_nothing_of_the_book(chapter):
    nodes = list(ast.walk(ast.parse(read_program(chapter))))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in found} & {"bookkit", "studies", "teach"} == set()


@pytest.fixture(scope="module")
def python():
    """An interpreter with what the pages ask for, at the lock's versions, and the library from this checkout."""
    uv = [ROOT / ".venv/bin/uv", "--quiet"]
    subprocess.run([*uv, "venv", "--clear", "--python", ROOT / ".venv/bin/python", BARE], check=True)
    pins = ["--python", BARE / "bin/python", "--constraints", ROOT / "requirements.txt", "--no-verify-hashes"]
    subprocess.run([*uv, "pip", "install", *pins, *PACKAGES], check=True)
    return BARE / "bin" / "python"


@pytest.mark.slow
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_it_runs_where_the_book_is_not(chapter, python, tmp_path):
    program = tmp_path / f"{chapter}.py"
    program.write_text(read_program(chapter))
    bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "MPLBACKEND": "agg"}
    done = subprocess.run([python, program], cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
