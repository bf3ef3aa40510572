"""PyTensor's C, Numba and JAX backends on the same fit: seconds to compile, microseconds a step, and the same loss?

Each fit has a process of its own. Compiling is measured from an empty cache ("cold") and from a full one ("warm").
The C backend needs a compiler; where there is none its rows say so.
"""

import json
import os
import subprocess
import sys
import tempfile

import pytensor

MEASURED = True
DEPENDS = ("bookkit.data", "hbnn.sampling", "bookkit.models")  # of the program below
CASES = [{"batch": batch, "backend": backend} for batch in ("50", "all") for backend in ("c", "numba", "jax")]

FIT = """
import json, resource, sys, time
import numpy as np, pymc as pm
from bookkit import data, models
from hbnn import sampling

batch, backend, n_steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
moons = data.flat_moons(seed=0)
if batch == "all":
    model = models.flat_bnn(moons.X_train, moons.y_train)
else:
    model = models.flat_bnn(*pm.Minibatch(moons.X_train, moons.y_train, batch_size=int(batch)), total_size=500)

def cpu():
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage)

ticks, first = {}, []
def watch(approx, losses, step):
    if step == 1:
        first.append(cpu())  # compiled, and the first step taken
    if step % 200 == 0:
        ticks[step] = time.process_time()

start = cpu()
found = sampling.fit_advi(model, n_steps, seed=1, backend=backend, callbacks=[watch])
blocks = list(ticks)
each = [(ticks[b] - ticks[a]) / (b - a) for a, b in zip(blocks, blocks[1:])]
print("COST", json.dumps({
    "compile": first[0] - start,
    "us": 1e6 * min(each, default=0),
    "loss": float(found.loss[-1000:].mean()),
    "loss_error": float(found.loss[-1000:].std() / np.sqrt(len(found.loss[-1000:]))),
}))
"""


def compute(batch, backend):
    """CPU seconds to compile, cold and warm; CPU microseconds a step (fastest block); last 1,000 losses."""
    if backend == "c" and not pytensor.config.cxx:
        return {"skipped": "no C compiler on this machine"}
    with tempfile.TemporaryDirectory() as folder:
        cold = _run(batch, backend, 1, folder) if batch == "50" else {"compile": None}
        warm = _run(batch, backend, 4000, folder if batch == "50" else None)
    return {
        "compile_cold": cold["compile"] and round(cold["compile"], 1),
        "compile_warm": round(warm["compile"], 1),
        "us": round(warm["us"], -1),
        "loss": warm["loss"],
        "loss_error": warm["loss_error"],
    }


def _run(batch, backend, n_steps, cache):
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    if cache:
        flags = ",".join(filter(None, [flags, f"base_compiledir={cache}"]))
    command = [sys.executable, "-c", FIT, batch, backend, str(n_steps)]
    environ = {**os.environ, "PYTENSOR_FLAGS": flags}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if "COST " not in done.stdout:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    return json.loads(done.stdout.split("COST ")[1])
