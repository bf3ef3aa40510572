"""What a reader installs: a part of the lock that is enough for every chapter; how Binder and Colab come by it."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions

import nbformat
import pytest
from bookkit import environment
from bookkit.repo import BOOK, ROOT, find_chapters
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools import binder_check, branches

BINDER = ROOT / ".binder"
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]


def read_lock(path):
    """The packages of a lock: dict of name to its pin and its hashes."""
    text = re.sub(r"^ *#.*\n", "", path.read_text(), flags=re.MULTILINE)
    blocks = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    return {block.partition("==")[0]: re.sub(r"[\\\s]+", " ", block) for block in blocks}


LOCK, READER = read_lock(ROOT / "requirements.txt"), read_lock(BINDER / "requirements.txt")


def test_what_is_asked_for_is_locked_and_a_reader_has_the_same_pins_and_hashes():
    for group, pins in (("all", LOCK), ("reader", READER), ("chapters", READER)):
        asked = [Requirement(line) for line in GROUPS[group] if isinstance(line, str)]
        assert {canonicalize_name(one.name) for one in asked} - pins.keys() == set(), f"{group}: run `make lock`"
    assert READER.items() < LOCK.items()


def list_imports(nodes):
    """Top-level names of the packages that statements import, which are neither ours nor Python's own."""
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return (
        {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"hbnn", "bookkit", "teach", "studies"}
    )


def test_what_chapters_import_is_in_it():
    """Their cells, and our modules when they are loaded: what a function imports is a rival or a backend to ask for."""
    found = set()
    for path in find_chapters():
        cells = nbformat.read(path.with_suffix(".ipynb"), as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        found |= list_imports(ast.walk(ast.parse(re.sub(r"^[ \t]*[%!].*$", "", code, flags=re.MULTILINE))))
    for path in [path for name in ("hbnn", "bookkit") for path in (BOOK / name).rglob("*.py")]:
        found |= list_imports(ast.parse(path.read_text(encoding="utf8")).body)
    owners = packages_distributions()
    assert {name for name in found if not {canonicalize_name(d) for d in owners.get(name, [])} & READER.keys()} == set()


# --- Binder


def test_binder_and_the_devcontainer_have_the_python_that_is_tested():
    python = (ROOT / ".python-version").read_text().strip()
    assert (BINDER / "runtime.txt").read_text().strip() == f"python-{python}"
    assert f'devcontainers/python:{python}",' in (ROOT / ".devcontainer" / "devcontainer.json").read_text()


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


POD = """
import os, socket
assert len(os.sched_getaffinity(0)) == 1
assert not os.path.exists(os.path.expanduser("~/.pytensor"))
try:
    socket.create_connection(("192.0.2.1", 53), 2)
except OSError as error:
    assert "unreachable" in str(error) or ONLINE  # an address that is refused or times out has a way to it
""".replace("ONLINE", str(not binder_check.can_go_offline()))
THREE_GB = "import numpy as np, time; kept = np.ones(3 * 2**27); time.sleep(5)"
SAID = [
    (POD, True, r"x: \d+ CPU-s, \d+ MB, "),
    (THREE_GB, False, "x does not run in a pod"),
    ("1 / 0", False, "x does"),
]


@pytest.mark.parametrize(("code", "good", "said"), SAID)
def test_a_pod_has_one_cpu_cold_caches_no_network_and_2_gb(code, good, said, tmp_path, monkeypatch):
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), tmp_path / "x.ipynb")
    monkeypatch.setattr(binder_check, "BOOK", tmp_path)
    found, line = binder_check.check("x")
    assert (found, bool(re.match(said, line))) == (good, True), line


# --- the branches that buttons open


@pytest.fixture
def remote(tmp_path, monkeypatch):
    """A bare repository to push to; a small one with a folder for Binder and a notebook is the checkout."""
    home, remote = tmp_path / "home", tmp_path / "remote.git"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")], metadata={"μ": 1})
    files = {".binder/requirements.txt": "numpy==2", "book/x.md": "words", "book/x.ipynb": json.dumps(notebook)}
    monkeypatch.setattr(branches, "ROOT", home)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    home.mkdir()
    branches.git("init", "-q", "--bare", str(remote))
    branches.git("init", "-q")
    for name, text in files.items():
        write(name, text)
    return str(remote)


def write(name, text):
    """Write a file of the checkout, and commit it."""
    (branches.ROOT / name).parent.mkdir(exist_ok=True)
    (branches.ROOT / name).write_text(text, encoding="utf8")
    branches.git("add", "-A")
    branches.git(*branches.WHO, "commit", "-q", "-m", "a change")


def test_a_change_of_text_builds_no_image_and_a_change_of_packages_does(remote):
    images = []
    for name, text in (("book/x.md", "a"), ("book/x.md", "other words"), (".binder/requirements.txt", "numpy==3")):
        write(name, text)
        branches.main(remote, "https://example.org/book")
        images.append(branches.git("--git-dir", remote, "rev-parse", "environment"))
    assert (images[0] == images[1], images[1] == images[2]) == (True, False)
    assert branches.git("--git-dir", remote, "show", "environment:requirements.txt") == "numpy==3"


def test_colabs_copies_have_one_cell_more_which_names_the_commit(remote):
    branches.main(remote, "https://example.org/book")
    assert branches.git("--git-dir", remote, "ls-tree", "-r", "--name-only", "colab") == "book/x.ipynb"
    copy = json.loads(branches.git("--git-dir", remote, "show", "colab:book/x.ipynb"))
    first = copy["cells"].pop(0)
    assert copy == json.loads((branches.ROOT / "book/x.ipynb").read_text(encoding="utf8"))
    assert f"git fetch -q --depth 1 https://example.org/book {branches.git('rev-parse', 'HEAD')}" in first["source"]
    exec(first["source"], {})  # elsewhere than on Colab it does nothing


def test_colab_is_given_what_chapters_need_and_not_what_its_kernel_runs_on(tmp_path):
    take = re.search(r"awk .*", branches.CELL.format(folder="", repository="", commit=""))[0]
    subprocess.run(["bash", "-c", f"cd {BINDER} && {take.replace('pins.txt', str(tmp_path / 'pins.txt'))}"], check=True)
    given = read_lock(tmp_path / "pins.txt")
    assert list(given) == (BINDER / "colab.txt").read_text().split()
    assert given.items() < READER.items()
    asked = {canonicalize_name(Requirement(line).name) for line in GROUPS["chapters"]}
    assert asked | {"llvmlite", "matplotlib"} <= given.keys()
    assert given.keys() & {"ipykernel", "ipython", "tornado", "traitlets", "ipywidgets", "jupyterlab"} == set()
