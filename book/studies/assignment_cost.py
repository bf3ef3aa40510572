"""What the solution of each assignment asks of a machine: CPU-seconds and memory, in a fresh kernel on one core.

As in `run_cost`, the compile cache is warm and no posterior is cached.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from assignments import SOURCE, list_names

from studies.run_cost import RUN

MEASURED = True
CASES = [{"assignment": name} for name in list_names()]


def compute(assignment):
    """CPU-seconds, and the peak of resident memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "run.py")
        script.write_text(RUN)
        pinned = ["taskset", "-c", "0"] if hasattr(os, "sched_setaffinity") else []
        done = subprocess.run(
            [*pinned, sys.executable, script, SOURCE / f"{assignment}.md"],
            cwd=folder,
            env=os.environ | {"BNN_CACHE": "off"},
            capture_output=True,
            text=True,
            check=False,
        )
    found = re.search(r"^COST (.*)$", done.stdout, flags=re.MULTILINE)
    if done.returncode or not found:
        raise RuntimeError(f"{assignment} does not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(found[1])
