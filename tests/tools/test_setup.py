"""The set-up finds a Python or says in one sentence what is missing. Nothing is installed: every Python is a fake."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bookkit.repo import ROOT

TOOLS = ("awk", "bash", "cat", "cp", "dirname", "mkdir", "rm", "touch")
WANTED = "Python 3.12 or newer with venv and pip"
# Answers like a Python that makes environments of itself, and keeps a log. It cannot install where the log is "broken".
GOOD = """#!{bash}
echo "$0 $*" >> "{home}/log"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/uv" ;;
    *"print(sys.version)"*) echo "3.13.0 fake" ;;
    *"pip install"*) [ ! -e "{home}/broken" ] ;;
esac
"""
OLD = "#!{bash}\nexit 1\n"  # as where sys.version_info < (3, 12)
PYENV, UV = ".pyenv/versions/3.12.7/bin/python", ".local/share/uv/python/cpython-3.13-linux/bin/python"


@pytest.fixture
def home(tmp_path):
    """A home with a checkout that has what the set-up reads, and with the tools that it calls."""
    for name in ("book/tools/setup.sh", "requirements.txt", ".python-version"):
        (tmp_path / "my book" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "my book" / name)
    (tmp_path / "tools").mkdir()
    for tool in TOOLS:
        (tmp_path / "tools" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def put(home, place, script=GOOD):
    """Write a fake Python, and return its path."""
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script.format(bash=shutil.which("bash"), home=home))
    path.chmod(0o755)
    return path


def set_up(home, **variables):
    """Run the set-up, where first old Pythons are on the PATH and then new ones: (status, stderr, who made .venv)."""
    env = {"PATH": os.pathsep.join(f"{home}/{name}" for name in ("old", "new", "tools")), "HOME": str(home)} | variables
    done = subprocess.run(
        ["bash", home / "my book/book/tools/setup.sh"], env=env, cwd="/", capture_output=True, text=True
    )
    assert (home / "my book/.venv/.installed").exists() == (done.returncode == 0)
    log = (home / "log").read_text() if (home / "log").exists() else ""
    return (
        done.returncode,
        done.stderr,
        [Path(line.split(" -m ")[0]) for line in log.splitlines() if " -m venv " in line],
    )


def test_no_python_or_only_an_old_one_gives_one_clear_sentence(home):
    for _ in ("no Python", "an old one"):
        status, said, makers = set_up(home)
        assert (status, said.count("\n"), makers) == (1, 1, [])
        assert said.startswith(f"This book needs {WANTED}; ")
        put(home, "old/python3", OLD)


def test_a_python_that_was_named_is_taken_or_refused_by_its_name(home):
    put(home, "new/python3.13")
    for path in (put(home, "bad/python", OLD), "/no/such/python"):
        assert set_up(home, PYTHON=str(path)) == (1, f"PYTHON={path} is not a {WANTED}.\n", [])
    mine = put(home, "my own/python")
    assert set_up(home, PYTHON=str(mine)) == (0, "", [mine])


@pytest.mark.parametrize("place", ["new/python3.12", "new/python3", PYENV, UV])
def test_an_older_python3_first_on_the_path_is_passed_over(home, place):
    put(home, "old/python3", OLD)
    assert set_up(home)[0] == 1
    good = put(home, place)
    assert set_up(home) == (0, "", [good])
    assert (home / "log").read_text().endswith("book/bookkit/environment.py --install\n")


def test_a_good_environment_is_kept_and_half_an_environment_is_made_again(home):
    put(home, "new/python3.13")
    (home / "broken").touch()
    assert set_up(home)[0] != 0  # an installation that fails is not taken for done
    (home / "broken").unlink()
    assert [(status, len(makers)) for status, _, makers in (set_up(home), set_up(home))] == [(0, 1), (0, 1)]
    (home / "my book/.venv/bin/python").unlink()
    status, _, makers = set_up(home)
    assert (status, len(makers)) == (0, 2)
