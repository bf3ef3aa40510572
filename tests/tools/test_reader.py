"""What a reader installs: a part of the lock that is closed, small, and enough for every chapter; how it gets there."""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import distribution, packages_distributions

import nbformat
import pytest
from bookkit import environment
from bookkit.repo import BOOK, ROOT, find_chapters
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import branches, reader

BINDER = ROOT / ".binder"
LOCK = reader.read_lock((ROOT / "requirements.txt").read_text())
PINNED = reader.read_lock(reader.READER.read_text())
OWNERS = packages_distributions()
HERE = {name for name in PINNED if "; " not in PINNED[name][0].splitlines()[0]}  # not of other systems
BELOW = [path for name in ("hbnn", "bookkit") for path in (BOOK / name).rglob("*.py") if "data" not in path.parts]
# imported where it is asked for; a chapter that asks would fail in `make binder-check`
LAZY = {
    "jax": "PyTensor's third backend; every chapter samples by Numba",
    "bambi": "a rival in studies, whose tables chapters read",
    "gpboost": "the same",
    "scoringrules": "the same",
    "blackjax": "studies of other engines",
    "numpyro": "the same",
    "optax": "the same",
    "walnutpie": "the same",
    "playwright": "the same, of the one in the pages",
}


def test_every_pin_is_the_locks_with_its_hashes():
    assert [name for name in PINNED if PINNED[name] != LOCK[name]] == []
    assert len(PINNED) < len(LOCK)


def test_it_is_what_make_lock_writes():
    roots = reader.read_roots((ROOT / "requirements.in").read_text())
    assert PINNED.keys() == reader.close(LOCK, roots)
    assert reader.READER.read_text().startswith(reader.HEAD)


def test_what_a_package_of_it_needs_is_in_it():
    """Asked of the packages themselves, not of the lock's comments."""
    asked = [(name, Requirement(line)) for name in HERE for line in distribution(name).requires or []]
    asked = [(name, r) for name, r in asked if not r.marker or r.marker.evaluate({"extra": ""})]
    needed = {(name, canonicalize_name(r.name)) for name, r in asked}
    assert len(needed) > len(HERE)
    assert [(name, other) for name, other in sorted(needed) if other not in PINNED] == []


@cache
def list_imports(code):
    """Top-level names of the packages that a piece of Python (its text) imports from others: set of str."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return (
        {name.partition(".")[0] for name in names}
        - sys.stdlib_module_names
        - {"hbnn", "bookkit", "teach", "studies", "tools"}
    )


def test_what_chapters_import_is_in_it():
    for path in find_chapters():
        cells = nbformat.read(path.with_suffix(".ipynb"), as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        code = re.sub(r"^[ \t]*[%!].*$", "", code, flags=re.MULTILINE)
        own = list_imports(code)
        found = own.union(*(list_imports(file.read_text(encoding="utf8")) for file in BELOW))
        missing = {name for name in found if not {canonicalize_name(d) for d in OWNERS.get(name, [])} & PINNED.keys()}
        assert missing - LAZY.keys() == set(), path.name
        assert own & LAZY.keys() == set(), path.name


def test_what_cannot_be_taken_out_is_said():
    with pytest.raises(ValueError, match=r"not in requirements\.txt: nonesuch"):
        reader.close({"numpy": ("", set())}, reader.read_roots("\n# --- to run (reader)\nnonesuch>=1\n"))


# --- Binder


def test_binder_builds_with_the_python_that_is_tested():
    assert (BINDER / "runtime.txt").read_text().strip() == f"python-{(ROOT / '.python-version').read_text().strip()}"


def test_a_pod_starts_what_it_is_told_to_and_asks_for_the_releases_posteriors():
    ask = ["python3", "-c", "import os, sys; print(os.environ['BNN_POSTERIORS'], sys.argv[1:])", "a b", "*"]
    done = subprocess.run([BINDER / "start", *ask], capture_output=True, text=True, check=True)
    assert done.stdout == "release ['a b', '*']\n"


def test_in_a_pod_the_settings_are_in_force_once_the_book_is_there(tmp_path):
    python, home = tmp_path / "env" / "bin" / "python", tmp_path / "home"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    home.mkdir()
    clean = {"HOME": str(home), "PATH": f"{python.parent}:/usr/bin:/bin"}
    subprocess.run([BINDER / "postBuild"], cwd=home, env=clean, check=True)
    ask = "import json, os, sys; print(json.dumps(['bookkit' in sys.modules, os.environ.get('PYTENSOR_FLAGS')]))"

    def start():
        done = subprocess.run([python, "-c", ask], env=clean, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return json.loads(done.stdout)

    assert start() == [False, None]
    (home / branches.FOLDER).mkdir()
    (home / branches.FOLDER / "book").symlink_to(BOOK)
    assert start() == [True, environment.PYTENSOR_FLAG]


# --- the branches that buttons open


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A small repository with a folder for Binder and a notebook, the checkout; and a bare one to push to."""
    home, remote = tmp_path / "home", tmp_path / "remote.git"
    for path in (".binder/requirements.txt", ".binder/postBuild", "book/x.md"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(path)
    (home / ".binder/postBuild").chmod(0o755)
    cell = {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "outputs": [], "source": "1"}
    notebook = {"cells": [cell], "metadata": {"μ": 1}, "nbformat": 4, "nbformat_minor": 5}
    (home / "book/x.ipynb").write_text(json.dumps(notebook), encoding="utf8")
    monkeypatch.setattr(branches, "ROOT", home)
    for name in [name for name in environment.os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    branches.git("init", "-q", "--bare", str(remote))
    branches.git("init", "-q")
    commit()
    return home, str(remote)


def commit():
    """Commit all there is in the checkout."""
    branches.git("add", "-A")
    branches.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a change")


def show(remote, what):
    return branches.git("--git-dir", remote, *what)


def test_a_change_of_text_builds_no_image_and_a_change_of_packages_does(repository):
    home, remote = repository
    branches.main(remote, "https://example.org/book")
    image = show(remote, ["rev-parse", "environment"])
    assert show(remote, ["ls-tree", "-r", "--format=%(objectmode) %(path)", "environment"]).splitlines() == [
        "100755 postBuild", "100644 requirements.txt"
    ]  # fmt: skip
    (home / "book/x.md").write_text("other words")
    commit()
    branches.main(remote, "https://example.org/book")
    assert show(remote, ["rev-parse", "environment"]) == image
    (home / ".binder/requirements.txt").write_text("numpy==3")
    commit()
    branches.main(remote, "https://example.org/book")
    assert show(remote, ["rev-parse", "environment"]) != image


def test_colabs_copies_have_one_cell_more_which_names_the_commit(repository):
    home, remote = repository
    branches.main(remote, "https://example.org/book")
    assert show(remote, ["ls-tree", "-r", "--name-only", "colab"]) == "book/x.ipynb"
    copy = json.loads(show(remote, ["show", "colab:book/x.ipynb"]))
    first, *rest = copy.pop("cells")
    original = json.loads((home / "book/x.ipynb").read_text(encoding="utf8"))
    assert rest == original.pop("cells")
    assert copy == original
    assert f"git fetch -q --depth 1 https://example.org/book {branches.git('rev-parse', 'HEAD')}" in first["source"]
    exec(first["source"], {})  # elsewhere than on Colab it does nothing


def test_colab_is_not_given_what_its_kernel_runs_on(capsys):
    reader.main(["--colab"])
    given = reader.read_lock(capsys.readouterr().out)
    assert {"pymc", "nutpie", "numpy", "statsmodels", "ipycanvas"} <= given.keys()
    assert given.keys() & {"ipykernel", "ipython", "tornado", "traitlets", "ipywidgets", "jupyterlab"} == set()
    assert given.items() <= PINNED.items()


def test_the_devcontainer_installs_the_readers_environment():
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    made = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    assert made["image"].endswith(f":{(ROOT / '.python-version').read_text().strip()}")
    assert ".binder/requirements.txt" in made["onCreateCommand"]
    assert made["onCreateCommand"].endswith("&& python book/bookkit/environment.py --install")
