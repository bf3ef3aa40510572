"""What 500 predictions with 500 draws cost, three ways: a first call that compiles, then the calls after it.

Each way runs in a process of its own with an empty compile cache, so that the first call pays for its compilation.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import pymc as pm
import pytensor
import pytensor.tensor as pt
from bookkit import data, models
from hbnn import prediction, sampling

MEASURED = True
REPEATS = 9
CASES = [{"way": way} for way in ("sample_posterior_predictive", "compiled sample_node", "NumPy on the draws")]


def compute(way):
    """Seconds of the first call (which compiles) and the median CPU milliseconds of the calls after it."""
    with tempfile.TemporaryDirectory() as cold:
        flags = ",".join([os.environ["PYTENSOR_FLAGS"], f"base_compiledir={cold}"])
        command = [sys.executable, "-m", "studies.prediction_cost", way]
        done = subprocess.run(
            command, env=os.environ | {"PYTENSOR_FLAGS": flags}, capture_output=True, text=True, check=True
        )
    return json.loads(done.stdout.splitlines()[-1])


def measure(way):
    """What `compute` returns, measured in this process."""
    moons = data.flat_moons(seed=0)
    model = models.flat_bnn(moons.X_train, moons.y_train)
    fit = sampling.fit_advi(model, 2000, seed=1)
    call = prepare(way, model, fit, moons.X_test)
    start = time.perf_counter()
    call()
    first = time.perf_counter() - start
    spent = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return {"first_seconds": round(first, 2), "milliseconds": round(1000 * statistics.median(spent), 1)}


def prepare(way, model, fit, X):
    """A function without arguments that predicts at X."""
    if way == "NumPy on the draws":
        weights = fit.draw(500, seed=1)
        return lambda: prediction.predict_probability(weights, X).mean(axis=0)
    if way == "compiled sample_node":
        x = pt.matrix("x")
        # the compilation belongs to the first call, as it does for sample_posterior_predictive
        compiled = []

        def call():
            if not compiled:
                node = fit.approx.sample_node(model["p"], size=500, more_replacements={model["X"]: x})
                compiled.append(pytensor.function([x], node))
            return compiled[0](X).mean(axis=0)

        return call
    posterior = fit.approx.sample(500, random_seed=1)
    with model:
        pm.set_data({"X": X})

    def call():
        with model:
            found = pm.sample_posterior_predictive(posterior, var_names=["y"], random_seed=1, progressbar=False)
        return found["posterior_predictive"]["y"].mean(("chain", "draw"))

    return call


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
