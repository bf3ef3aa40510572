"""What is installed without the book: the names that it promises, in modules that need nothing else of ours."""

import ast
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from tools.digests import read_source
from tools.reader import read_lock

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
ABOUT = tomllib.loads((BOOK / "pyproject.toml").read_text())
WHEEL = ABOUT["tool"]["hatch"]["build"]["targets"]["wheel"]
MODULES = {path.removesuffix(".py").replace("/", ".") for path in WHEEL["only-include"]}
# a name that goes, or a parameter that changes, breaks what others have written: first say so in a release
README = (BOOK / ABOUT["project"]["readme"]).read_text()
PUBLIC = dict(re.findall(r"^\| `([\w.]+)(\([^`]*\))` \|", README, flags=re.MULTILINE))


def test_a_public_name_is_there_with_its_parameters():
    assert len(PUBLIC) > 10
    found = {}
    for name in PUBLIC:
        module, _, attribute = name.partition(".")
        function = getattr(importlib.import_module(f"bnn.{module}"), attribute)
        found[name] = str(inspect.signature(inspect.unwrap(function)))
    assert found == PUBLIC


def test_what_its_modules_import_is_with_them_or_among_the_dependencies():
    asked = {Requirement(line).name for line in ABOUT["project"]["dependencies"]}
    missing, owners = {}, packages_distributions()
    for module in sorted(MODULES):
        imports = read_source(BOOK / f"{module.replace('.', '/')}.py").imports
        names = {f"{base}.{name}".rstrip(".") for base, inner, level in imports if not level for name in ("", *inner)}
        ours = {name for name in names if name.startswith("bnn.") and (BOOK / f"{name.replace('.', '/')}.py").exists()}
        tops = {name.partition(".")[0] for name in names} - {"bnn", *sys.stdlib_module_names}
        others = {top for top in tops if not set(owners.get(top, [])) & asked}
        missing[module] = ours - MODULES | others
    # PyMC brings PyTensor, Numba brings llvmlite; JAX is used where it is there
    assert {name for names in missing.values() for name in names} == {"pytensor", "llvmlite", "jax"}
    assert asked <= read_lock((ROOT / "requirements.txt").read_text()).keys()


def test_its_version_is_the_book_s():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert Version(ABOUT["project"]["version"]) == Version(citation["version"])
    assert ABOUT["project"]["urls"]["Repository"] == citation["repository-code"]


def lay_out(folder):
    """What a wheel would hold, as files below `folder`."""
    for path in WHEEL["only-include"]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BOOK / path, folder / path)
    for path, place in WHEEL["force-include"].items():
        (shutil.copytree if (BOOK / path).is_dir() else shutil.copy)(BOOK / path, folder / place)


def test_installed_it_finds_its_posteriors_and_leaves_settings_alone(tmp_path):
    lay_out(tmp_path)
    code = (
        f"import os, sys; before = dict(os.environ); sys.path.insert(0, {str(tmp_path)!r}); import bnn; "
        "assert dict(os.environ) == before; assert 'bookkit.environment' not in sys.modules; "
        "from bnn import fuse, diagnose, posteriors, reference, symmetry, table; "
        "assert posteriors.__file__.startswith(sys.path[0]); print(posteriors.load_posterior(posteriors.FLAT).data['X'].shape)"
    )
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "2"}
    # -S and the path by hand: the book's own settings come with the environment's .pth files
    path = {"PYTHONPATH": str(next(p for p in sys.path if p.endswith("site-packages")))}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=clean | path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wanted = importlib.import_module("hbnn.reference.posteriors").load("flat_moons-flat_bnn")
    assert ast.literal_eval(done.stdout) == wanted.data["X"].shape
