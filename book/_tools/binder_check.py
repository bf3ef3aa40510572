"""Run chapters from top to bottom as a Binder pod would: one CPU, 2 GB, cold compile caches, no posterior, no network.

    python book/_tools/binder_check.py              every chapter, and write book/data/binder_cost.json
    python book/_tools/binder_check.py moons        one of them, nothing written

Linux. The CPU is one of ours by affinity. The 2 GB are a hard limit where this process may make a memory control group
(root, cgroup 1 or 2); elsewhere the memory of the processes is added up twenty times a second, and a chapter that
exceeds it is killed. The network is taken away where a network namespace may be made; elsewhere the table says so.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

import psutil
from bnn.report import DATA
from chapters import BOOK, find_chapters, machine
from studies._tasks import PACKAGES, digest_rows, find_commit

LIMIT_MB, AIM_MB, AIM_SECONDS = 2048, 1536, 600  # a pod's memory; ours, and ours in CPU-seconds, cold
CGROUPS = (
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.failcnt"),
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak", None),
)
RUN = """
import os, resource, sys
from pathlib import Path
if sys.argv[2]:
    Path(sys.argv[2], "cgroup.procs").write_text(str(os.getpid()))
import nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=1200, kernel_name="python3").execute()
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print("COST", round(used.ru_utime + used.ru_stime))
"""


class MemoryGroup:
    """A memory control group of `LIMIT_MB`, where one can be made; `path` is None where it cannot."""

    def __init__(self):
        self.path = None
        for root, limit, peak, _ in CGROUPS:
            path = root / f"bnn-{os.getpid()}-{time.monotonic_ns()}"
            try:
                path.mkdir()
                (path / limit).write_text(str(LIMIT_MB * 2**20))
            except OSError:
                if path.exists():
                    path.rmdir()
                continue
            self.path, self._peak = path, path / peak
            return

    def read_peak(self):
        """Peak in MB, page cache included as a pod's would be."""
        return round(int(self._peak.read_text()) / 2**20)

    def remove(self):
        """Take the group away once its processes have ended."""
        for _ in range(100):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)


class Watch:
    """The largest sum of the resident memory of a process and its children, in MB; kills them above `LIMIT_MB`."""

    def __init__(self, process):
        self.peak, self._process, self._over = 0, psutil.Process(process.pid), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self):
        while not self._over.wait(0.05):
            try:
                family = [self._process, *self._process.children(recursive=True)]
                used = sum(member.memory_info().rss for member in family) / 2**20
            except psutil.Error:
                continue
            self.peak = max(self.peak, round(used))
            if used > LIMIT_MB:
                for member in family:
                    member.kill()

    def stop(self):
        """End the watch."""
        self._over.set()
        self._thread.join()


def has_namespaces():
    """Whether a network namespace can be made."""
    return shutil.which("unshare") and subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0


def check(chapter):
    """CPU-seconds, peak memory and what was enforced, for one chapter: a dict; raises RuntimeError where it fails."""
    group = MemoryGroup()
    offline = has_namespaces()
    with tempfile.TemporaryDirectory() as home:
        copy = Path(home, "repository", "book")
        hidden = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "_build")
        shutil.copytree(BOOK, copy, ignore=hidden)
        keep = {name: os.environ[name] for name in ("PATH", "LANG", "PYTENSOR_FLAGS") if name in os.environ}
        environ = keep | {"HOME": home, "PYTHONPATH": str(copy), "BNN_PROGRESS": "off", "TMPDIR": home,
                          "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        script = Path(home, "run.py")
        script.write_text(RUN)
        command = [sys.executable, script, copy / f"{chapter}.ipynb", group.path or ""]
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
    peak = group.read_peak() if group.path else watch.peak
    if group.path:
        group.remove()
    cost = [line.split()[1] for line in output.splitlines() if line.startswith("COST ")]
    if process.returncode or not cost:
        raise RuntimeError(f"{chapter} does not run in a pod (peak {peak} MB of {LIMIT_MB}):\n{output[-3000:]}")
    return {
        "chapter": chapter, "cpu_seconds": int(cost[0]), "megabytes": watch.peak, "megabytes_with_cache": peak,
        "limit": "control group" if group.path else "watched", "network": "off" if offline else "on",
    }  # fmt: skip


def main(names):
    chapters = [path.stem for path in find_chapters()]
    if unknown := [name for name in names if name not in chapters]:
        sys.exit(f"there is no chapter {', '.join(unknown)}; there are: {', '.join(chapters)}")
    rows, failed = [], []
    for chapter in names or chapters:
        try:
            row = check(chapter)
        except RuntimeError as error:
            failed.append(chapter)
            print(error, flush=True)
            continue
        rows.append(row)
        within = row["cpu_seconds"] <= AIM_SECONDS and row["megabytes"] <= AIM_MB
        print(f"{chapter}: {row['cpu_seconds']} CPU-s, {row['megabytes']} MB{'' if within else ', ABOVE OUR LIMITS'} "
              f"({row['limit']}, network {row['network']})", flush=True)  # fmt: skip
        if not within:
            failed.append(chapter)
    if failed:
        sys.exit(f"not as a pod allows: {', '.join(failed)}")
    if not names:
        table = {
            "study": "binder_cost", "measured": True, "commit": find_commit(), "machine": machine(),
            "python": sys.version.split()[0], "versions": {package: version(package) for package in PACKAGES},
            "digest": digest_rows(rows), "rows": rows,
        }  # fmt: skip
        part = DATA / "binder_cost.part"
        part.write_text(json.dumps(table, indent=1) + "\n")
        os.replace(part, DATA / "binder_cost.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
