"""Plant faults that a tired colleague would make, one at a time, and say which test notices.

    python -m tools.faults                    all of `tests/faults.toml`: about 40 minutes on two cores
    python -m tools.faults metrics priors     those in whose file or description one of these words is
    python -m tools.faults --sample 100 --seed 1    some of them by chance

Each is planted in a copy of the tree, where its tests run until one fails; at the end the tests that failed run without
it. There are as many workers as processors this may use (one after `taskset -c 0`). The exit status is 1 where a fault
survives or no longer fits its source, or a test fails without it.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[2]
PYTEST = ("-qx", "-p", "no:cacheprovider", "--tb=no", "--hypothesis-seed=0")
PATIENCE = 900  # seconds: a fault may make a test loop, which counts as noticed


@dataclass(frozen=True)
class Fault:
    """One change of one source.

    Attributes
    ----------
    file : str, its path in the repository
    what : str, what goes wrong, in one sentence
    old, new : str, the text that is there exactly once, and what takes its place
    tests : tuple of str, what pytest is given
    """

    file: str
    what: str
    old: str
    new: str
    tests: tuple

    def plant(self, text):
        """The source with the fault in it; ValueError where the text to be changed is not there once."""
        if text.count(self.old) != 1:
            raise ValueError(f"does not fit: its text is there {text.count(self.old)} times; wanted: once")
        return text.replace(self.old, self.new)


def read_faults():
    """All faults: list of Fault. By default a module is tested by the file that bears its name."""
    found = []
    for file, faults in tomllib.loads((ROOT / "tests" / "faults.toml").read_text(encoding="utf-8")).items():
        own = sorted((ROOT / "tests").rglob(f"test_{Path(file).stem}.py"))
        tests = tuple(faults.pop("tests", [str(path.relative_to(ROOT)) for path in own]))
        found += [Fault(file, what, *texts, tests) for what, texts in faults.items()]
    return found


def copy_tree(folder):
    """A copy of the tree with what is not committed, in which tests run by themselves. Returns its folder."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    names = [name for name in names if name and (ROOT / name).is_file()]
    subprocess.run(["tar", "-c", "--null", "-T", "-", "-f", f"{folder}.tar"], cwd=ROOT, check=True,
                   input="\0".join(names), text=True)  # fmt: skip
    folder.mkdir()
    subprocess.run(["tar", "-x", "-f", f"{folder}.tar", "-C", folder], check=True)
    return folder


def run_tests(folder, tests):
    """What failed first (str), "a hang", or "" where everything passed; ValueError where there are no such tests."""
    environ = os.environ | {
        "PYTHONPATH": os.pathsep.join(str(folder / path) for path in ("book", "book/_ext", "tests")),
        "PYTHONDONTWRITEBYTECODE": "1",  # two versions of a file in one second and of one size would share theirs
        "HOME": str(folder.parent),  # with compiled models of its own
    }
    command = [sys.executable, "-m", "pytest", *PYTEST, *tests]
    try:
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return "a hang"
    if done.returncode in (4, 5):
        raise ValueError(f"has no tests: {' '.join(tests)}")
    failed = re.search("^(?:FAILED|ERROR) (.+?)(?: - |$)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest's status {done.returncode}" if done.returncode else ""


def judge(folder, fault):
    """Plant a fault in a copy and take it out again: what noticed, "" where nothing did."""
    path = folder / fault.file
    before = path.read_text(encoding="utf-8")
    try:
        path.write_text(fault.plant(before), encoding="utf-8")
        return run_tests(folder, fault.tests)
    finally:
        path.write_text(before, encoding="utf-8")


def main(arguments=None):
    """What the module's first lines say. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", default=[], help="of the files or descriptions wanted (default: all)")
    parser.add_argument("--sample", type=int, metavar="N", help="plant N of them, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write what noticed each fault there")
    asked = parser.parse_args(arguments)
    faults = [f for f in read_faults() if any(w in f"{f.file} {f.what}" for w in asked.words or [""])]
    if not faults:
        parser.error(f"no fault has {' or '.join(asked.words)} in its file or description")
    if asked.sample:
        faults = random.Random(asked.seed).sample(faults, min(asked.sample, len(faults)))
    n_workers = os.process_cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="faults-") as folder, ThreadPoolExecutor(n_workers) as pool:
        copies = Queue()
        for k in range(n_workers):
            copies.put(copy_tree(Path(folder, str(k))))

        def work(do, *given):
            copy = copies.get()
            try:
                return do(copy, *given)
            except ValueError as error:
                return f"FAULT {error}"
            finally:
                copies.put(copy)

        noticed, again = {}, set()  # tests that noticed are to pass without a fault
        for fault, by in zip(faults, pool.map(lambda fault: work(judge, fault), faults), strict=True):
            noticed[name := f"{fault.file}: {fault.what}"] = by
            print(f"{len(noticed)} of {len(faults)}: {name}: {by or 'SURVIVES'}", flush=True)
            if by and not by.startswith("FAULT"):
                again.add((by,) if "::" in by else fault.tests)
        broken = [f"WITHOUT A FAULT {by} fails" for by in pool.map(lambda tests: work(run_tests, tests), again) if by]
    survivors = [name for name, by in noticed.items() if not by or by.startswith("FAULT")]
    print(f"{len(noticed) - len(survivors)} of {len(noticed)} noticed", *survivors, *broken, sep="\n  ")
    if asked.json:
        asked.json.write_text(json.dumps(noticed, indent=1) + "\n")
    return int(bool(survivors or broken))


if __name__ == "__main__":
    sys.exit(main())
