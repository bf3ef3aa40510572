"""Run chapters from top to bottom as a Binder pod would: one CPU, 2 GB, cold compile caches, no posterior, no network.

    _build/reader/bin/python -m tools.binder_check moons    with a reader's packages: `make binder-check CHAPTER=moons`
    _build/reader/bin/python -m tools.binder_check          all chapters

Linux. The CPU is one of ours by affinity. The memory of the processes is added up twenty times a second, and a chapter
that exceeds 2 GB is killed. The network is taken away where that may be done; elsewhere its line says so.
"""

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
print("\\n", round(used.ru_utime + used.ru_stime))
"""
# the loopback, which a kernel talks over, is down in a new namespace
OFFLINE = ["unshare", "-rn", "sh", "-c", 'ip link set lo up; exec "$@"', "sh"]


def can_go_offline():
    """Whether a network namespace can be made."""
    return bool(shutil.which("unshare")) and not subprocess.run([*OFFLINE, "true"], capture_output=True).returncode


def look(process):
    """A process with its children (list), and the memory that they hold, in MB: what they share counts once."""
    try:
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        return family, round(sum(member.memory_full_info().pss for member in family) / 2**20)
    except psutil.Error:  # one of them has just ended
        return [], 0


def check(chapter):
    """Run one chapter by this interpreter's packages. Whether a pod can (bool), and what it costs or why not (str)."""
    offline, peak = can_go_offline(), 0
    with tempfile.TemporaryDirectory() as home, open(Path(home, "output"), "w+", encoding="utf-8") as output:
        copy = Path(home, "repository", "book")
        shutil.copytree(BOOK, copy, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        environ = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "PYTHONPATH": copy, "BNN_PROGRESS": "off"}
        pod = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *(OFFLINE if offline else [])]
        command = [*pod, sys.executable, "-c", RUN, f"{chapter}.ipynb"]
        process = subprocess.Popen(command, cwd=copy, env=environ, stdout=output, stderr=subprocess.STDOUT)
        while process.poll() is None:
            family, used = look(process)
            peak = max(peak, used)
            for member in family if used > LIMIT_MB else ():
                member.kill()
            time.sleep(0.05)
        output.seek(0)
        said = output.read()
    if process.returncode:
        return False, f"{chapter} does not run in a pod (peak {peak} MB of {LIMIT_MB}):\n{said[-3000:]}"
    seconds = int(said.split()[-1])
    good = seconds <= AIM_SECONDS and peak <= AIM_MB
    network = "no network" if offline else "the network was there"
    return good, f"{chapter}: {seconds} CPU-s, {peak} MB, {network}{'' if good else ', ABOVE OUR LIMITS'}"


def main(names):
    """Print what each chapter costs. Returns the exit status: 1 where one fails or costs more than it may."""
    failed = False
    for name in names or [path.stem for path in find_chapters()]:
        good, line = check(name)
        failed |= not good
        print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
