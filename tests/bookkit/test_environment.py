"""The settings of `bookkit.environment`: in force wherever this environment's Python starts."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytensor
import pytest
from bookkit import data, environment
from bookkit.repo import BOOK
from nbclient import NotebookClient

# a shell that knows none of our settings
BARE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
SETTINGS = environment.SETTINGS | {"PYTENSOR_FLAGS": environment.PYTENSOR_FLAG}
REPORT = "import json, os; print(json.dumps(dict(os.environ)))"


def run_python(code, env=BARE, python=sys.executable):
    done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


# what a shell may have set for other work: threads, kernels, compilers, styles
HOSTILE = dict.fromkeys(environment.SETTINGS, "2") | {
    "OPENBLAS_CORETYPE": "Nehalem", "OPENBLAS_L2_SIZE": "512", "GOTO_NUM_THREADS": "2", "MKL_NUM_THREADS": "2",
    "NUMBA_OPT": "0", "NUMBA_CPU_NAME": "nehalem", "PYTENSOR_FLAGS": "numba__fastmath=True,floatX=float32,linker=py",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2", "JAX_ENABLE_X64": "0",
    "MPLBACKEND": "svg", "LC_ALL": "tr_TR.ISO-8859-9", "LANG": "C", "TZ": "Pacific/Kiritimati", "COLUMNS": "20",
    "PYTHONHASHSEED": "7", "PYTHONWARNINGS": "ignore",
}  # fmt: skip


def test_a_variable_from_outside_is_overruled():
    found = json.loads(run_python(REPORT, env=BARE | HOSTILE))
    assert {name: found.get(name) for name in SETTINGS} == SETTINGS
    assert not [name for name in found if name.startswith(environment.SWEPT) and name not in SETTINGS]


def test_compiled_code_stays_where_the_user_keeps_it():
    environ = {"PYTENSOR_FLAGS": "floatX=float32,base_compiledir=/tmp/x"}
    environment.apply(environ)
    assert environ["PYTENSOR_FLAGS"] == f"base_compiledir=/tmp/x,{environment.PYTENSOR_FLAG}"


def test_a_jupyter_kernel_has_the_settings_and_pytensor_obeys(tmp_path):
    code = f"{REPORT}; import bookkit.data, pytensor, threadpoolctl; print(pytensor.config.numba__fastmath, "
    code += "{pool['num_threads'] for pool in threadpoolctl.threadpool_info()})"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    places = {"JUPYTER_RUNTIME_DIR": str(tmp_path), "IPYTHONDIR": str(tmp_path)}
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute(env=BARE | places)
    found, obeyed = "".join(output.text for output in notebook.cells[0].outputs).splitlines()
    assert {name: json.loads(found).get(name) for name in SETTINGS} == SETTINGS
    assert obeyed == "False {1}"


# a chapter in small: a matrix product in a graph, NUTS, a table and a picture
CHAPTER = """---
kernelspec:
  name: python3
  display_name: Python 3
---

```{code-cell} ipython3
import matplotlib.pyplot as plt
import pandas as pd
import pymc as pm
from bookkit import data, models
from hbnn import fuse, sampling

moons = data.legacy_rotated_moons().group(0)
model = models.flat_bnn(moons.X_train, moons.y_train)
two = sampling.ONE_CORE | {"chains": 2}
posterior = pm.sample(30, tune=30, model=fuse(model), random_seed=1, **two)["posterior"]
print(posterior["w1"].values.sum().hex(), sorted({"a", "b", "c"}))
pd.DataFrame(posterior["w2"].values[0, 0])
```

```{code-cell} ipython3
plt.plot(posterior["w3"].values[0])
plt.show()
```
"""


@pytest.mark.slow  # a minute; that a kernel has the settings is asked above
def test_a_hostile_environment_and_an_empty_one_give_the_same_bytes(tmp_path):
    compiled = f"base_compiledir={pytensor.config.base_compiledir}"  # it takes a minute to fill
    written = []
    for name, environ in (("empty", BARE), ("hostile", HOSTILE | BARE)):
        folder = tmp_path / name
        folder.mkdir()
        chapter = folder / "chapter.md"
        chapter.write_text(CHAPTER)
        flags = ",".join([environ.get("PYTENSOR_FLAGS", ""), compiled])
        code = f"import pathlib; from tools import chapters; chapters.execute(pathlib.Path({str(chapter)!r}))"
        environ = environ | {"PYTENSOR_FLAGS": flags, "PYTHONPATH": str(BOOK)}
        subprocess.run([sys.executable, "-c", code], env=environ, check=True)
        written.append((folder / "chapter.ipynb").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("name", "value", "differs"),
    [
        ("OPENBLAS_CORETYPE", "Prescott", {"blas", "matrices"}),
        ("PYTENSOR_FLAGS", "numba__fastmath=True,floatX=float32", {"numba", "pytensor"}),
    ],
)
def test_what_is_read_back_is_what_the_libraries_do(name, value, differs):
    """Here a variable is changed behind the book's back, before anything is imported."""
    code = f"import os, json; os.environ.update({ {name: value} }); from bookkit import environment; "
    found = json.loads(run_python(code + "print(json.dumps(environment.read_back()))"))
    honest = environment.read_back()
    assert {key for key in honest if found[key] != honest[key]} == differs


def test_the_moons_are_the_same_bytes_under_another_matrix_library():
    """A matrix product would turn them otherwise in the last bits, and a sampler makes other draws of that."""
    moons = "(data.legacy_rotated_moons(), data.rotated_moons(seed=1))"
    ask = f"[environment.read_back()['matrices'], *(m.X_train.tobytes().hex() for m in {moons})]"
    code = "import os, json; os.environ['OPENBLAS_CORETYPE'] = 'Haswell'; from bookkit import data, environment; "
    other = json.loads(run_python(f"{code}print(json.dumps({ask}))"))
    here = eval(ask, {"data": data, "environment": environment})
    assert [a == b for a, b in zip(here, other, strict=True)] == [False, True, True]


@pytest.fixture
def copied(tmp_path):
    """A book elsewhere, with a blank and a quote in its path, installed into an empty environment; what starts that."""
    book, python = tmp_path / "the book's copy" / "book", tmp_path / "env" / "bin" / "python"
    (book / "bookkit").mkdir(parents=True)
    for name in ("__init__.py", "environment.py"):
        shutil.copy(Path(environment.__file__).with_name(name), book / "bookkit")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    subprocess.run([python, book / "bookkit" / "environment.py", "--install"], env=BARE, check=True)
    return book, lambda: json.loads(run_python(REPORT, python=python))


def test_installing_puts_the_settings_into_every_start_and_a_lost_book_disturbs_none(copied):
    book, start = copied
    assert start()["PYTENSOR_FLAGS"] == environment.PYTENSOR_FLAG
    for file in (book / "bookkit").glob("*.py"):  # as where an older commit is checked out: caches stay
        file.unlink()
    assert "PYTENSOR_FLAGS" not in start()
    shutil.rmtree(book)
    assert "PYTENSOR_FLAGS" not in start()
