"""Plant faults one at a time, and say which test notices.

    python tests/faults                         all of them: over an hour on two cores
    python tests/faults --only fused priors     those in whose name one of these stands
    python tests/faults --list

Faults in sources are planted in copies of the tree, in a temporary folder with a home and compile caches of its own;
the tests of the module run there, the quick ones first, until one fails. Notebooks and tables with a fault are compared
with the honest ones, as under the settings that wrote them (strict) and under others (tolerant). The exit status is 1
where fewer than 95 % of the faults in sources are caught, or one in a notebook or a table is not, or a fault is stale,
or a test fails where nothing is planted.
"""

import argparse
import contextlib
import json
import os
import queue
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from faults import notebooks, plugin, read_sources, tables

ROOT = Path(__file__).resolve().parents[2]
PATHS = ("book", "book/_ext", "tests")
WANTED = 0.95  # share of the faults in sources
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "-p", "faults.plugin", "--tb=line", "--hypothesis-seed=0")
# a run hangs after so many times the CPU-seconds that it takes without a fault, and so many more; or so many in all
SLOWER, CPU_SECONDS, WALL_SECONDS = 4, 60, 3600


@dataclass(frozen=True)
class Verdict:
    """What became of a fault: `by` is the test that noticed, "" where none did; `trouble`, why nothing can be said."""

    kind: str
    name: str
    by: str
    seconds: float
    trouble: str = ""

    def __str__(self):
        end = self.trouble or (f"caught by {self.by}" if self.by else "NOT CAUGHT")
        return f"{self.kind:9} {self.name}: {end} ({self.seconds:.0f} s)"


class Copy:
    """A copy of the tree, uncommitted changes included, in which tests run by themselves."""

    def __init__(self, folder, home, seconds):
        self.folder = Path(folder).resolve()
        self.report = self.folder / ".report.json"
        command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "CHROMIUM")
        self.environ = {name: os.environ[name] for name in kept if name in os.environ} | {
            "HOME": str(home),
            "PYTHONPATH": os.pathsep.join(str(self.folder / path) for path in PATHS),  # before what a .pth file adds
            # two versions of a file in one second and of one size would share their bytecode
            "PYTHONDONTWRITEBYTECODE": "1",
            plugin.ORIGINAL: str(ROOT), plugin.SECONDS: str(seconds), plugin.REPORT: str(self.report),
        }  # fmt: skip
        self.server = self.process = None

    def start(self):
        """Start the server, from which the tests are forked."""
        self.server = subprocess.Popen(
            [sys.executable, "-m", "faults.server"], cwd=self.folder, env=self.environ, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, tests, limit=WALL_SECONDS):
        """Run tests for `limit` CPU-seconds at most: (what failed first or "", trouble or "", CPU-seconds)."""
        if self.server is None or self.server.poll() is not None:
            self.start()
        self.report.unlink(missing_ok=True)
        shutil.rmtree(self.folder / ".hypothesis", ignore_errors=True)  # examples that other faults have left
        said = self.folder / ".said"
        self.server.stdin.write(json.dumps([[*PYTEST, *tests], str(said), round(limit)]).encode() + b"\n")
        self.process = int(self.server.stdout.readline())
        hangs = not select.select([self.server.stdout], [], [], WALL_SECONDS)[0]
        self.stop()
        line = self.server.stdout.readline()
        if not line:
            return "", "the server was killed", 0
        status, seconds = map(float, line.split())
        found = json.loads(self.report.read_text()) if self.report.exists() else {"failed": [], "foreign": []}
        if hangs or status == -signal.SIGXCPU:
            return "a hang", "", seconds
        if status < 0:
            return f"a crash with signal {-status:.0f}", "", seconds
        if found["foreign"]:
            return "", f"read from the tree without the fault: {found['foreign'][0]}", seconds
        if status not in (0, 1, 2) or bool(status) != bool(found["failed"]) or not self.report.exists():
            return "", f"pytest ended with {status:.0f}: {said.read_text()[-300:]}", seconds
        return "".join(found["failed"][:1]), "", seconds

    def stop(self):
        """End the tests, and whatever they have started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            self.process = None

    def judge(self, fault, limit):
        """Plant a fault, run its tests, take it out again: Verdict."""
        path, seconds = self.folder / fault.file, 0
        before = path.read_bytes()
        try:
            path.write_text(fault.plant(before.decode()), encoding="utf-8")
            by, trouble, seconds = self.run(fault.tests, limit)
        except ValueError as error:
            by, trouble = "", str(error)
        finally:
            path.write_bytes(before)
        return Verdict("source", fault.name, by, seconds, trouble)


def share_out(jobs, copies, work):
    """`work(copy, job)` for each job, each copy one at a time; yields what comes, as it comes."""
    waiting, done = queue.Queue(), queue.Queue()
    for job in jobs:
        waiting.put(job)

    def loop(copy):
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done.put(work(copy, job))
            except Exception as error:
                done.put(error)

    for copy in copies:
        threading.Thread(target=loop, args=(copy,), daemon=True).start()
    for _ in jobs:
        result = done.get()
        if isinstance(result, Exception):
            raise result
        yield result


def judge_sources(faults, folder, workers, say):
    """Plant faults in copies below `folder`: a list of Verdicts."""
    home, seconds = folder / "home", folder / "seconds.json"
    home.mkdir()
    seconds.write_text("{}")
    copies = [Copy(folder / str(i), home, seconds) for i in range(max(1, min(workers, len(faults))))]
    try:
        return _judge(faults, copies, seconds, say)
    finally:
        for copy in copies:
            copy.stop()
            if copy.server is not None:
                copy.server.kill()
                copy.server.wait()


def _judge(faults, copies, seconds, say):
    clean, took, known = {}, {}, {}

    def try_clean(copy, tests):
        failed, trouble, cost = copy.run(tests)
        each = json.loads(copy.report.read_text())["seconds"] if copy.report.exists() else {}
        return tests, trouble or (failed and f"{failed} fails where nothing is planted"), cost, each

    for tests, trouble, cost, each in share_out({fault.tests for fault in faults}, copies, try_clean):
        clean[tests], took[tests] = trouble, cost
        known |= each
        say(f"nothing   {' '.join(tests)}: {trouble or 'passes'} ({cost:.0f} s)")
    seconds.write_text(json.dumps(known))

    def work(copy, fault):
        if clean[fault.tests]:
            return Verdict("source", fault.name, "", 0, clean[fault.tests])
        return copy.judge(fault, CPU_SECONDS + SLOWER * took[fault.tests])

    found = []
    for verdict in share_out(faults, copies, work):
        say(verdict)
        found.append(verdict)
    return found


def judge_stored(kind, judge_all, faults, say):
    """A list of Verdicts on what is stored: as the settings that wrote it judge, then as others do."""
    found = []
    for mode in ("strict", "tolerant"):
        start = time.process_time()
        for fault, who, trouble in judge_all(faults, mode == "strict"):
            found.append(Verdict(kind, f"{fault.name} ({mode})", who, time.process_time() - start, trouble))
            say(found[-1])
            start = time.process_time()
    return found


def summarise(verdicts):
    """Lines of totals, and whether enough is caught."""
    lines, enough = [], True
    for kind in dict.fromkeys(verdict.kind for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.kind == kind]
        caught = sum(bool(verdict.by) for verdict in own)
        lines.append(f"caught {caught} of {len(own)} {kind} faults ({caught / len(own):.0%})")
        enough &= caught >= (WANTED if kind == "source" else 1) * len(own)
    troubled = [verdict for verdict in verdicts if verdict.trouble]
    lines += [f"nothing can be said of {verdict.kind} {verdict.name}: {verdict.trouble}" for verdict in troubled]
    lines += [f"not caught: {v.kind} {v.name}" for v in verdicts if not v.by and not v.trouble]
    return lines, enough and not troubled


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python tests/faults", description="Plant faults, and see which test notices."
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="faults in whose kind or name one stands"
    )
    parser.add_argument("--list", action="store_true", help="the names of the faults, and nothing else")
    parser.add_argument("--json", metavar="FILE", help="write the verdicts there, too")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="copies of the tree (default: 2)")
    asked = parser.parse_args(arguments)

    def choose(kind, faults):
        return [fault for fault in faults if any(text in f"{kind} {fault.name}" for text in asked.only)]

    def say(words):
        print(words, flush=True)

    sources = choose("source", read_sources())
    stored = {
        "notebook": (notebooks.judge_all, choose("notebook", notebooks.TAMPERINGS)),
        "table": (tables.judge_all, choose("table", tables.FALSIFICATIONS)),
    }
    chosen = {"source": sources} | {kind: faults for kind, (_, faults) in stored.items()}
    if not any(chosen.values()):
        parser.error(f"no fault has {' or '.join(asked.only)} in its name; --list shows all")
    if asked.list:
        say("\n".join(f"{kind:9} {fault.name}" for kind, faults in chosen.items() for fault in faults))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends, too
    verdicts = []
    for kind, (judge_all, faults) in stored.items():
        verdicts += judge_stored(kind, judge_all, faults, say)
    with tempfile.TemporaryDirectory(prefix="bnn-faults-") as folder:
        verdicts += judge_sources(sources, Path(folder), asked.j, say) if sources else []
    lines, enough = summarise(verdicts)
    print("\n".join(["", *lines]))
    if asked.json:
        Path(asked.json).write_text(json.dumps([asdict(verdict) for verdict in verdicts], indent=1) + "\n")
    return 0 if enough else 1
