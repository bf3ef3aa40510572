"""Run chapters from top to bottom as a Binder pod would: one CPU, 2 GB, cold compile caches, no posterior, no network.

    python -m tools.binder_check              every chapter
    python -m tools.binder_check moons        one of them
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
import threading
import time
from pathlib import Path

import psutil
from bookkit.repo import BOOK, find_chapters

LIMIT_MB, AIM_MB, AIM_SECONDS = 2048, 1536, 600  # a pod's memory; ours, and ours in CPU-seconds, cold
RUN = """
import resource, sys
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("COST", round(used.ru_utime + used.ru_stime))
"""


class Watch:
    """The most memory that a process and its children hold, in MB; kills them above `LIMIT_MB`."""

    def __init__(self, process):
        self.peak, self._process = 0, process
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while self._process.poll() is None:
            time.sleep(0.05)
            try:
                first = psutil.Process(self._process.pid)
                family = [first, *first.children(recursive=True)]
                used = sum(member.memory_full_info().pss for member in family) / 2**20  # what they share counts once
            except psutil.Error:
                continue
            self.peak = max(self.peak, round(used))
            if used > LIMIT_MB:
                for member in family:
                    member.kill()

    def stop(self):
        """Wait for the end of the watch, which is that of the process."""
        self._thread.join()


def has_namespaces():
    """Whether a network namespace can be made."""
    return shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0


def check(chapter, python=sys.executable):
    """Run one chapter by the packages of `python`, an interpreter; returns its row (dict).

    Raises
    ------
    RuntimeError
        Where the chapter fails, with the end of its output.
    """
    offline = has_namespaces()
    with tempfile.TemporaryDirectory() as home:
        copy = Path(home, "repository", "book")
        hidden = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "_build")
        shutil.copytree(BOOK, copy, ignore=hidden)
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "PYTENSOR_FLAGS") if name in os.environ}
        python = os.path.abspath(python)  # not resolved: a link into an environment is that environment
        environ = keep | {"HOME": home, "PYTHONPATH": str(copy), "BNN_PROGRESS": "off", "TMPDIR": home,
                          "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        script = Path(home, "run.py")
        script.write_text(RUN)
        command = [python, script, copy / f"{chapter}.ipynb"]
        # the loopback, which a kernel talks over, is down in a new namespace
        if offline:
            command = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", *command]
        cpu = min(os.sched_getaffinity(0))
        process = subprocess.Popen(
            ["taskset", "-c", str(cpu), *command], cwd=copy, env=environ, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        watch = Watch(process)
        output, _ = process.communicate()
        watch.stop()
    cost = [line.split()[1] for line in output.splitlines() if line.startswith("COST ")]
    if process.returncode or not cost:
        raise RuntimeError(f"{chapter} does not run in a pod (peak {watch.peak} MB of {LIMIT_MB}):\n{output[-3000:]}")
    network = "off" if offline else "on"
    return {"chapter": chapter, "cpu_seconds": int(cost[0]), "megabytes": watch.peak, "network": network}


def main(arguments=None):
    """Print what each chapter costs. Returns the exit status: 1 where one fails or costs more than it may."""
    parser = argparse.ArgumentParser(prog="python -m tools.binder_check", description=__doc__.splitlines()[0])
    chapters = [path.stem for path in find_chapters()]
    parser.add_argument("names", nargs="*", metavar="chapter", help="default: every chapter")
    parser.add_argument("--python", default=sys.executable, help="an interpreter, whose packages are taken")
    asked, failed = parser.parse_args(arguments), False
    if unknown := set(asked.names) - set(chapters):
        parser.error(f"there is no chapter {', '.join(sorted(unknown))}; there are: {', '.join(chapters)}")
    if shutil.which(asked.python) is None:
        parser.error(f"--python wants an interpreter, came: {asked.python}")
    for name in asked.names or chapters:
        try:
            row = check(name, asked.python)
        except RuntimeError as error:
            failed = True
            print(error, flush=True)
            continue
        above = row["cpu_seconds"] > AIM_SECONDS or row["megabytes"] > AIM_MB
        failed |= above
        print(f"{name}: {row['cpu_seconds']} CPU-s, {row['megabytes']} MB, network {row['network']}"
              f"{', ABOVE OUR LIMITS' if above else ''}", flush=True)  # fmt: skip
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
