"""The library alone, as `pip install` brings it: its names, what it needs, its quick start."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import hbnn
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "book" / "hbnn"
ABOUT = tomllib.loads((ROOT / "book" / "pyproject.toml").read_text())
README = (FOLDER / "README.md").read_text()
SOURCES = {path: ast.parse(path.read_text()) for path in FOLDER.rglob("*.py") if "data" not in path.parts}


def test_the_names_of_its_readme_are_those_at_the_top_and_each_is_there():
    told = re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)
    assert sorted(told) == hbnn.__all__
    assert all(callable(getattr(hbnn, name)) for name in told)
    with pytest.raises(AttributeError, match="fuze"):
        _ = hbnn.fuze


def test_what_it_imports_is_among_its_dependencies():
    extras = ABOUT["project"]["optional-dependencies"].values()
    asked = {Requirement(line).name for line in sum(extras, ABOUT["project"]["dependencies"])}
    owners = importlib.metadata.packages_distributions()
    missing = set()
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            tops = {name.partition(".")[0] for name in names} - {"hbnn", *sys.stdlib_module_names}
            missing |= {top for top in tops if not {owner.lower() for owner in owners.get(top, [])} & asked}
    # PyMC brings PyTensor, Numba brings llvmlite; JAX is used where it is there
    assert missing <= {"pytensor", "llvmlite", "jax"}


def test_its_version_is_the_book_s():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert Version(hbnn.__version__) == Version(citation["version"])
    assert ABOUT["project"]["urls"]["Repository"] == citation["repository-code"]


@pytest.fixture
def run_alone(tmp_path):
    """Run a program where the library lies beside its dependencies, and nothing else of ours: its stdout and stderr."""
    assert ABOUT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["hbnn"]}
    kept = subprocess.run(["git", "ls-files", "book/hbnn"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in kept.split():  # what the wheel holds: hatchling leaves out what git ignores
        path = tmp_path / "site" / Path(name).relative_to("book")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, path)
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    path = f"{tmp_path / 'site'}:{packages}"
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OMP_NUM_THREADS": "2", "PYTHONPATH": path}

    def run(code):  # -S: the book's own settings come with the environment's .pth files
        done = subprocess.run([sys.executable, "-S", "-c", code], env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    return run


def test_its_import_is_silent_quick_and_changes_nothing(run_alone):
    said, complaints = run_alone(
        "import os, sys; before = dict(os.environ), set(sys.modules); import hbnn; print(dict(os.environ) == before[0],"
        "*{name.partition('.')[0] for name in set(sys.modules) - before[1]} - set(sys.stdlib_module_names))"
    )
    assert (sorted(said.split()), complaints) == (["True", "hbnn", "lazy_loader"], "")


def test_installed_it_is_small_and_finds_its_posteriors(run_alone, tmp_path):
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in (tmp_path / "site").rglob("*.*"):
            wheel.write(path)
    assert (tmp_path / "wheel.zip").stat().st_size < 400_000
    said, _ = run_alone(
        "import hbnn; print(hbnn.load_posterior('flat_moons-flat_bnn').data['X'].shape, hbnn.score_draws.__module__)"
    )
    assert said == "(500, 2) hbnn.reference.scoring\n"


CORE = "fuse, check_model, sample_nuts, verdict, predict, score, align"


def test_each_layer_can_be_imported_alone_and_a_missing_extra_is_named(run_alone):
    """Where the other layers and their packages cannot be had."""
    block = "import sys; sys.modules |= dict.fromkeys({}); "
    run_alone(
        block.format(["hbnn.tables", "hbnn.estimators", "hbnn.reference", "sklearn", "pooch"])
        + f"from hbnn import priors, {CORE}; assert 'matplotlib' not in sys.modules"
    )
    run_alone(block.format(["hbnn.reference", "pooch"]) + "import hbnn; hbnn.read_table, hbnn.HierarchicalRegressor")
    run_alone(block.format(["hbnn.tables", "hbnn.estimators", "sklearn"]) + "import hbnn; hbnn.score_draws")
    ask = "try: {}\nexcept ImportError as e: print(e)\n"
    said, _ = run_alone(
        "import sys; sys.modules |= dict.fromkeys(['sklearn', 'pooch'])\nimport hbnn\n"
        "from hbnn import rejection\nfrom hbnn.reference import posteriors\n"
        + "".join(
            ask.format(asked)
            for asked in (
                "hbnn.read_table",
                "hbnn.HierarchicalClassifier",
                "rejection.auroc([1], [2])",
                "posteriors.fetch_draws()",
            )
        )
    )
    assert re.findall(r'pip install "(.*)"', said) == ["hbnn[tables]"] * 3 + ["hbnn[reference]"]


@pytest.mark.slow
def test_its_quick_start_runs_as_it_stands(run_alone):
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    said, _ = run_alone(code)
    assert "The four chains agree" in said
    assert float(re.search(r"'accuracy': ([\d.]+)", said)[1]) > 90
