"""The set-up finds a Python or says in one sentence what is missing. Nothing is installed: every Python is a fake."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bookkit.repo import ROOT

TOOLS = ("awk", "bash", "cat", "cp", "dirname", "mkdir", "rm", "touch")
FILES = ("book/tools/setup.sh", "requirements.txt", ".python-version")
WANTED = "Python 3.12 or newer with venv and pip"

# Answers like a Python that makes environments of itself, and keeps a log. It cannot install where the log is "broken".
GOOD = """#!{bash}
echo "$0 $*" >> "{log}"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/uv" ;;
    *"print(sys.version)"*) echo "3.13.0 fake" ;;
    *"pip install"*) [ ! -e "{log}.broken" ] ;;
esac
"""
OLD = "#!{bash}\nexit 1\n"  # as where sys.version_info < (3, 12)


class Checkout:
    """A copy of the files that the set-up reads, and a PATH on which there is no Python but those of `put`."""

    def __init__(self, home):
        self.home, self.folder, self.log = home, home / "book of mine", home / "log"
        self.path, self.stamp = [home / "tools"], self.folder / ".venv/.installed"
        for name in FILES:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.path[0].mkdir()
        for tool in TOOLS:
            (self.path[0] / tool).symlink_to(shutil.which(tool))

    def put(self, place, script=GOOD, on_path=True):
        """Write a fake Python, before all others on the PATH, and return its path."""
        path = self.home / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script.format(bash=shutil.which("bash"), log=self.log))
        path.chmod(0o755)
        if on_path:
            self.path.insert(0, path.parent)
        return path

    def run(self, **variables):
        env = {"PATH": os.pathsep.join(map(str, self.path)), "HOME": str(self.home)} | variables
        return subprocess.run(["bash", self.folder / FILES[0]], env=env, cwd="/", capture_output=True, text=True)

    def list_makers(self):
        """The Pythons that made an environment."""
        return [Path(line.split(" -m venv ")[0]) for line in self.log.read_text().splitlines() if " -m venv " in line]


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_no_python_or_only_an_old_one_gives_one_clear_sentence(checkout):
    for what in ("no Python", "an old one"):
        done = checkout.run()
        assert (done.returncode, done.stdout) == (1, ""), what
        assert done.stderr.startswith(f"This book needs {WANTED}; ")
        assert done.stderr.count("\n") == 1
        assert not checkout.stamp.exists()
        checkout.put("old/python3", OLD)


def test_a_python_that_was_named_is_taken_or_refused_by_its_name(checkout):
    checkout.put("new/python3.13")
    for path in (checkout.put("bad/python", OLD, on_path=False), Path("/no/such/python")):
        done = checkout.run(PYTHON=str(path))
        assert (done.returncode, done.stderr) == (1, f"PYTHON={path} is not a {WANTED}.\n")
    mine = checkout.put("my own/python", on_path=False)
    assert checkout.run(PYTHON=str(mine)).returncode == 0
    assert checkout.list_makers() == [mine]


PYENV, UV = ".pyenv/versions/3.12.7/bin/python", ".local/share/uv/python/cpython-3.13-linux/bin/python"


@pytest.mark.parametrize("place", ["new/python3.12", "new/python3", PYENV, UV])
def test_an_older_python3_first_on_the_path_is_passed_over(checkout, place):
    good = checkout.put(place, on_path=place.startswith("new"))
    checkout.put("old/python3", OLD)
    done = checkout.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert checkout.list_makers() == [good]
    assert checkout.stamp.exists()
    assert checkout.log.read_text().endswith("book/bookkit/environment.py --install\n")


def test_a_good_environment_is_kept_and_half_an_environment_is_made_again(checkout):
    checkout.put("new/python3.13")
    broken = Path(f"{checkout.log}.broken")
    broken.touch()
    assert checkout.run().returncode != 0
    assert not checkout.stamp.exists()  # an installation that fails is not taken for done
    broken.unlink()
    assert [checkout.run().returncode for _ in "ab"] == [0, 0]
    assert len(checkout.list_makers()) == 1
    (checkout.folder / ".venv/bin/python").unlink()
    assert checkout.run().returncode == 0
    assert len(checkout.list_makers()) == 2
