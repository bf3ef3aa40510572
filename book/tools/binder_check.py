"""Run chapters from top to bottom as a Binder pod would: one CPU, 2 GB, cold compile caches, no posterior, no network.

    python -m tools.binder_check moons              one chapter, or several; without a name all
    python -m tools.binder_check --python _build/reader/bin/python moons
                                                    with the packages of another environment: `make binder-check`

Linux. The CPU is one of ours by affinity. The memory of the processes is added up twenty times a second, and a chapter
that exceeds 2 GB is killed. The network is taken away where that may be done; elsewhere its line says so.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from bookkit.repo import BOOK, find_chapters

LIMIT_MB, AIM_MB, AIM_SECONDS = 2048, 1536, 600  # a pod's memory; ours, and ours in CPU-seconds, cold
RUN = """
import resource, sys
import nbformat
from nbclient import NotebookClient
NotebookClient(nbformat.read(sys.argv[1], as_version=4), timeout=1200, kernel_name="python3").execute()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("COST", round(used.ru_utime + used.ru_stime))
"""
# the loopback, which a kernel talks over, is down in a new namespace
OFFLINE = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]


def can_go_offline():
    """Whether a network namespace can be made."""
    return shutil.which("unshare") and subprocess.run([*OFFLINE, "true"], capture_output=True).returncode == 0


def look(process):
    """A process with its children (list), and the memory that they hold, in MB: what they share counts once."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        return family, round(sum(member.memory_full_info().pss for member in family) / 2**20)
    except psutil.Error:  # one of them has just ended
        return [], 0


def check(chapter, python=sys.executable):
    """Run one chapter by the packages of `python`, an interpreter; returns its row (dict).

    Raises
    ------
    RuntimeError
        Where the chapter fails, with the end of its output.
    """
    offline, peak = can_go_offline(), 0
    with tempfile.TemporaryDirectory() as home, open(Path(home, "output"), "w+", encoding="utf-8") as output:
        copy = Path(home, "repository", "book")
        shutil.copytree(BOOK, copy, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        # the interpreter's path is not resolved: a link into an environment is that environment
        command = [os.path.abspath(python), "-c", RUN, copy / f"{chapter}.ipynb"]
        environ = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "PYTHONPATH": copy, "BNN_PROGRESS": "off"}
        process = subprocess.Popen(
            ["taskset", "-c", str(min(os.sched_getaffinity(0))), *(OFFLINE if offline else []), *command],
            cwd=copy, env=environ, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        while process.poll() is None:
            family, used = look(process)
            peak = max(peak, used)
            for member in family if used > LIMIT_MB else ():
                member.kill()
            time.sleep(0.05)
        output.seek(0)
        said = output.read()
    if process.returncode:
        raise RuntimeError(f"{chapter} does not run in a pod (peak {peak} MB of {LIMIT_MB}):\n{said[-3000:]}")
    return {"chapter": chapter, "cpu_seconds": int(said.split()[-1]), "megabytes": peak, "offline": offline}


def main(arguments=None):
    """Print what each chapter costs. Returns the exit status: 1 where one fails or costs more than it may."""
    parser = argparse.ArgumentParser(prog="python -m tools.binder_check", description=__doc__.splitlines()[0])
    chapters = [path.stem for path in find_chapters()]
    parser.add_argument("names", nargs="*", metavar="chapter", help="default: every chapter")
    parser.add_argument("--python", default=sys.executable, help="an interpreter, whose packages are taken")
    asked, failed = parser.parse_args(arguments), False
    if unknown := set(asked.names) - set(chapters):
        parser.error(f"there is no chapter {', '.join(sorted(unknown))}; there are: {', '.join(chapters)}")
    for name in asked.names or chapters:
        try:
            row = check(name, asked.python)
        except RuntimeError as error:
            failed = True
            print(error, flush=True)
            continue
        above = row["cpu_seconds"] > AIM_SECONDS or row["megabytes"] > AIM_MB
        failed |= above
        network = "no network" if row["offline"] else "the network was there"
        print(f"{name}: {row['cpu_seconds']} CPU-s, {row['megabytes']} MB, {network}"
              f"{', ABOVE OUR LIMITS' if above else ''}", flush=True)  # fmt: skip
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
