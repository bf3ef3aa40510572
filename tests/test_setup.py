"""The set-up finds a Python or says in one sentence what is missing. Nothing is installed: every Python is a fake."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BASH = shutil.which("bash")
TOOLS = ("awk", "cat", "cp", "dirname", "env", "mkdir", "rm", "sed", "touch")
SENTENCE = "this book needs Python 3.12 or newer with venv and pip"

# Answers like a Python of 3.13 that makes environments of itself, and keeps a log.
GOOD = """#!{bash}
echo "$0 $*" >> "{log}"
case "$*" in
    "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; cp "$0" "$3/bin/uv" ;;
    *"print(sys.version)"*) echo "3.13.0 fake" ;;
    --version) echo "Python 3.13.0" ;;
    *"pip install"*) [ ! -e "{log}.broken" ] ;;
esac
"""
OLD = '#!{bash}\necho "$0 $*" >> "{log}"\nexit 1\n'  # as where sys.version_info < (3, 12)


class Checkout:
    """A copy of the files that the set-up reads, and a PATH on which there is no Python."""

    def __init__(self, folder):
        self.folder, self.log = folder / "book of mine", folder / "log"
        for name in ("book/tools/setup.sh", "book/bnn/environment.py", "requirements.txt", ".python-version"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        self.tools, self.home = folder / "tools", folder / "home"
        self.tools.mkdir()
        self.home.mkdir()
        for tool in TOOLS:
            (self.tools / tool).symlink_to(shutil.which(tool))
        (self.tools / "bash").symlink_to(BASH)
        self.path = [self.tools]

    def put(self, place, script):
        """Write a fake Python and return its path."""
        path = self.folder.parent / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script.format(bash=BASH, log=self.log))
        path.chmod(0o755)
        return path

    def run(self, **variables):
        env = {"PATH": os.pathsep.join(map(str, self.path)), "HOME": str(self.home)}
        env |= {"PYENV_ROOT": str(self.home / "pyenv")} | variables
        script = self.folder / "book/tools/setup.sh"
        return subprocess.run([BASH, script], env=env, cwd="/", capture_output=True, text=True, check=False)

    @property
    def installed(self):
        return (self.folder / ".venv/.installed").exists()

    def made_with(self):
        """The Python that made the environment."""
        (line,) = (line for line in self.log.read_text().splitlines() if " -m venv " in line)
        return Path(line.split(" -m venv ")[0])


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def test_no_python_gives_one_clear_sentence(checkout):
    done = checkout.run()
    assert done.returncode != 0
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert SENTENCE in done.stderr
    assert not checkout.installed


def test_only_an_old_python_gives_the_same_sentence(checkout):
    checkout.path.append(checkout.put("old/python3", OLD).parent)
    done = checkout.run()
    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert SENTENCE in done.stderr


@pytest.mark.parametrize("script", [None, OLD])
def test_a_python_that_was_named_and_is_not_usable_is_refused_by_its_name(checkout, script):
    checkout.path.append(checkout.put("new/python3.13", GOOD).parent)
    path = checkout.put("bad/python", script) if script else Path("/no/such/python")
    done = checkout.run(PYTHON=str(path))
    assert done.returncode != 0
    assert done.stderr == f"PYTHON={path} is not a Python of 3.12 or newer with venv and pip.\n"
    assert not checkout.installed


def test_a_python_that_was_named_is_taken(checkout):
    checkout.path.append(checkout.put("new/python3.13", GOOD).parent)
    mine = checkout.put("my own/python", GOOD)
    assert checkout.run(PYTHON=str(mine)).returncode == 0
    assert checkout.made_with() == mine


@pytest.mark.parametrize("name", ["python3.13", "python3.12", "python3.14", "python3"])
def test_an_older_python3_first_on_the_path_is_passed_over(checkout, name):
    checkout.path.insert(0, checkout.put("old/python3", OLD).parent)
    good = checkout.put(f"new/{name}", GOOD)
    checkout.path.append(good.parent)
    done = checkout.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert checkout.made_with() == good
    assert checkout.installed


def test_a_plain_python3_that_is_new_enough_is_taken(checkout):
    good = checkout.put("new/python3", GOOD)
    checkout.path.append(good.parent)
    assert checkout.run().returncode == 0
    assert checkout.made_with() == good


@pytest.mark.parametrize("version", ["3.13.2", "3.12.7"])
def test_a_python_behind_pyenvs_shims_is_found(checkout, version):
    for shim in ("python3", "python3.13", "python3.12"):
        checkout.path.insert(0, checkout.put(f"shims/{shim}", OLD).parent)
    good = checkout.put(f"home/pyenv/versions/{version}/bin/python", GOOD)
    assert checkout.run().returncode == 0
    assert checkout.made_with() == good


def test_a_python_that_uv_manages_is_found(checkout):
    good = checkout.put("uv's/python3.13", GOOD)
    checkout.path.append(checkout.put("local/uv", f'#!{{bash}}\necho "{good}"\n').parent)
    assert checkout.run().returncode == 0
    assert checkout.made_with() == good


def test_a_good_environment_is_kept_and_half_an_environment_is_made_again(checkout):
    checkout.path.append(checkout.put("new/python3.13", GOOD).parent)
    assert checkout.run().returncode == 0
    mine = checkout.folder / ".venv/mine"
    mine.touch()
    assert checkout.run().returncode == 0
    assert mine.exists()
    (checkout.folder / ".venv/bin/python").unlink()
    assert checkout.run().returncode == 0
    assert not mine.exists()
    assert checkout.installed


def test_an_installation_that_fails_is_not_taken_for_done_and_the_next_run_repairs_it(checkout):
    checkout.path.append(checkout.put("new/python3.13", GOOD).parent)
    broken = Path(f"{checkout.log}.broken")
    broken.touch()
    assert checkout.run().returncode != 0
    assert not checkout.installed
    broken.unlink()
    assert checkout.run().returncode == 0
    assert checkout.installed


def test_the_settings_are_installed_last(checkout):
    checkout.path.append(checkout.put("new/python3.13", GOOD).parent)
    checkout.run()
    assert checkout.log.read_text().splitlines()[-1].endswith("book/bnn/environment.py --install")
