"""The settings of `bnn.environment`: in force wherever this environment's Python starts."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from bnn import environment
from jupyter_client.manager import start_new_kernel

# a shell that knows none of our settings
BARE = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
SETTINGS = environment.SETTINGS | {"PYTENSOR_FLAGS": environment.PYTENSOR_FLAG}
REPORT = "import json, os; print(json.dumps(dict(os.environ)))"


def run_python(code, *options, env=BARE):
    done = subprocess.run([sys.executable, *options, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_a_plain_python_has_the_settings(tmp_path):
    found = json.loads(run_python(REPORT))
    assert {name: found.get(name) for name in SETTINGS} == SETTINGS


def test_what_the_user_set_wins():
    own = dict.fromkeys(environment.SETTINGS, "2") | {"PYTENSOR_FLAGS": "numba__fastmath=True"}
    found = json.loads(run_python(REPORT, env=BARE | own))
    assert {name: found[name] for name in own} == own


def test_the_users_other_pytensor_flags_stay():
    environ = {"PYTENSOR_FLAGS": "floatX=float32"}
    environment.apply(environ)
    assert environ["PYTENSOR_FLAGS"] == "floatX=float32,numba__fastmath=False"


def test_applying_twice_is_applying_once():
    environ = {}
    environment.apply(environ)
    once = dict(environ)
    environment.apply(environ)
    assert environ == once == SETTINGS


def test_a_jupyter_kernel_has_the_settings_and_pytensor_obeys(tmp_path):
    manager, client = start_new_kernel(kernel_name="python3", env=BARE | {"JUPYTER_RUNTIME_DIR": str(tmp_path)})
    try:
        printed = []
        code = REPORT + "\nimport bnn.data, pytensor, threadpoolctl\nprint(pytensor.config.numba__fastmath)\n"
        code += "print(json.dumps([pool['num_threads'] for pool in threadpoolctl.threadpool_info()]))"
        reply = client.execute_interactive(
            code, timeout=120, output_hook=lambda m: printed.append(m["content"].get("text", ""))
        )
        assert reply["content"]["status"] == "ok"
        found, fastmath, threads = "".join(printed).splitlines()
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert {name: json.loads(found).get(name) for name in SETTINGS} == SETTINGS
    assert fastmath == "False"
    assert set(json.loads(threads)) == {1}


def start_with_pth(book, site):
    """Install a copy of the module into `site`, start a Python that reads it; returns what that prints."""
    script = f"import site; site.addsitedir({str(site)!r})"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"{script}; {REPORT}"], env=BARE, capture_output=True, text=True, check=False
    )
    return done


@pytest.fixture
def copied(tmp_path):
    """A book elsewhere, with a blank and a quote in its path, installed into an empty site directory."""
    book, site = tmp_path / "the book's copy" / "book", tmp_path / "site"
    (book / "bnn").mkdir(parents=True)
    site.mkdir()
    for name in ("__init__.py", "environment.py"):
        shutil.copy(os.path.join(os.path.dirname(environment.__file__), name), book / "bnn")
    code = f"import sys; sys.path.insert(0, {str(book)!r}); from bnn.environment import install; "
    code += f"print(install({str(site)!r}))"
    installed = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=BARE)
    assert installed.stdout.strip() == str(site / "bnn_book.pth")
    return book, site


def test_installing_puts_the_settings_into_every_start(copied):
    done = start_with_pth(*copied)
    assert done.stderr == ""
    assert json.loads(done.stdout)["PYTENSOR_FLAGS"] == environment.PYTENSOR_FLAG


@pytest.mark.parametrize("lost", ["book", "bnn", "environment.py"])
def test_a_lost_book_does_not_disturb_the_start_of_python(copied, lost):
    book, _ = copied
    if lost == "environment.py":  # as where an older commit is checked out: caches stay
        for file in (book / "bnn").glob("*.py"):
            file.unlink()
    else:
        shutil.rmtree({"book": book, "bnn": book / "bnn"}[lost])
    done = start_with_pth(*copied)
    assert done.stderr == ""
    assert "PYTENSOR_FLAGS" not in json.loads(done.stdout)


def test_a_wrong_command_says_how_it_is_called():
    done = subprocess.run([sys.executable, environment.__file__], capture_output=True, text=True, check=False, env=BARE)
    assert (done.returncode, done.stderr.strip()) == (1, "usage: python book/bnn/environment.py --install")
