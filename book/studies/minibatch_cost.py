"""What a step of ADVI costs in time and memory with a thousand to a million rows, in batches of 50 and all at once.

Every row has a process of its own, so that one leaves no memory behind for the next.
"""

import json
import subprocess
import sys

import pytensor

MEASURED = True
CASES = [{"batch": batch, "rows": rows} for batch in ("50", "all") for rows in (1_000, 10_000, 100_000, 1_000_000)]
BACKEND = "c" if pytensor.config.cxx else "numba"

STEPS = """
import json, re, sys, time
from pathlib import Path
import pymc as pm
from bookkit import data, models
from hbnn import sampling

batch, backend, rows, n_steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
moons = data.flat_moons(seed=0, n_obs=2 * rows)
X, y = moons.X_train, moons.y_train
del moons
if batch == "all":
    model = models.flat_bnn(X, y)
else:
    model = models.flat_bnn(*pm.Minibatch(X, y, batch_size=int(batch)), total_size=rows)

def memory(field):
    return int(re.search(field + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

ticks, kept = [], {}
def watch(approx, losses, step):
    if step == 2:  # compiled, and the first steps taken
        kept["before"] = memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    if step >= 2 and step % max(1, n_steps // 20) == 0:
        ticks.append((step, time.process_time()))

sampling.fit_advi(model, n_steps, seed=1, backend=backend, callbacks=[watch])
each = [1e6 * (b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(ticks, ticks[1:])]
print("COST", json.dumps({
    "us": min(each),
    "data_mb": (X.nbytes + y.nbytes) / 1e6,
    "steps_mb": memory("VmHWM") - kept["before"],
    "process_mb": memory("VmHWM"),
}))
"""


def compute(batch, rows):
    """CPU microseconds a step (fastest block), MB of the data, MB that the steps took on top, MB of the process."""
    n_steps = 4000 if batch == "50" else max(12, min(2000, 2_000_000 // rows))
    command = [sys.executable, "-c", STEPS, batch, BACKEND, str(rows), str(n_steps)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "COST " not in done.stdout:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    found = json.loads(done.stdout.split("COST ")[1])
    megabytes = {name: round(found[name]) for name in ("steps_mb", "process_mb")}
    return {"backend": BACKEND, "us": round(found["us"], -1), "data_mb": round(found["data_mb"], 2)} | megabytes
