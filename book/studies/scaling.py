"""One category to a task: seconds with one, two and four workers, and what starting them and an empty task cost.

Workers are processes of this machine. Those of the row with an empty compile cache have compiled nothing before.
"""

import hashlib
import time
from functools import lru_cache
from tempfile import TemporaryDirectory

import numpy as np
import pymc as pm
from bookkit import data, models
from bookkit.cache import cached
from hbnn import diagnostics, fuse, prediction, priors, sampling, symmetry

from studies import _fits

MEASURED = True
CASES = [
    {"compile_cache": "warm", "workers": 1},
    {"compile_cache": "warm", "workers": 2},
    {"compile_cache": "warm", "workers": 4},
    {"compile_cache": "empty", "workers": 1},
]
N_REPEATS = 3
N_CATEGORIES = 12
N_EMPTY = 300
DATA_SEED = 502


def fit_category(X, y, X_new, mean, sd, seed):
    """What a worker does for one category: sample, judge, predict; a dict of kilobytes, not of draws.

    Parameters
    ----------
    X : (obs, feature), y : (obs,), the category's points
    X_new : (place, feature), where to predict
    mean, sd : (weight,), the prior of its weights, independent normals
    seed : int, the category's own

    Returns
    -------
    dict with ``p``, P(class 1) at X_new (place,); ``verdict``, a `diagnostics.Verdict`; ``digest`` of the draws, str
    """
    compiled = _fits.compile_informed()  # by the first task of a process; later ones find it
    told = compiled.with_data(X=X, labels=y, mean=mean, cholesky=np.diag(sd))
    tree = sampling.sample_nuts(told, seed=seed, **_fits.SHORT)
    weights = prediction.flatten_chains(tree["posterior"])
    asked = prediction.predict_probability(weights, np.concatenate([X, _fits.GRID]), activation="tanh")
    asked = asked.reshape(tree["posterior"].sizes["chain"], -1, asked.shape[1])
    log_likelihood = _fits.log_likelihood(asked[..., : len(y)], y)
    return {
        "p": prediction.predict_probability(weights, X_new, activation="tanh").mean(axis=0),
        "verdict": diagnostics.verdict({"data and grid": asked, "log likelihood": log_likelihood}, tree),
        "digest": hashlib.sha256(priors.flatten(weights).tobytes()).hexdigest(),
    }


def learn_narrow_normal(posterior, seed=1):
    """The prior "narrow normal" of chapter informed_priors: aligned centre of the group means, and group sds.

    Parameters
    ----------
    posterior : Dataset of `models.hierarchical_bnn` without biases
    seed : int, for the alignment

    Returns
    -------
    mean, sd : (weight,)
    """
    labelling = priors.align_posterior(posterior, seed=seed)
    means, sds, k = {}, [], 1
    while f"mu{k}" in posterior:
        means[f"w{k}"] = np.concatenate(posterior[f"mu{k}"].values)
        size = means[f"w{k}"][0].size
        sds.append(np.full(size, np.sqrt(np.mean(posterior[f"sd{k}"].values ** 2))))
        k += 1
    return priors.flatten(symmetry.relabel(labelling, means)).mean(axis=0), np.concatenate(sds)


@lru_cache(maxsize=1)
def list_tasks():
    """Arguments of `fit_category` for each category."""
    old = _fits.load_moons("legacy")
    model = models.hierarchical_bnn(old.X_train, old.y_train, n_hidden=_fits.N_HIDDEN)
    settings = {"draws": 850, "tune": 600, "target_accept": _fits.TARGET, **sampling.ONE_CORE}
    posterior = cached(pm.sample)(model=fuse(model), random_seed=1, **settings)["posterior"]
    mean, sd = learn_narrow_normal(posterior)
    new = data.rotated_moons(seed=DATA_SEED, n_groups=N_CATEGORIES, n_train=20, n_test=200)
    seeds = np.random.SeedSequence(DATA_SEED).generate_state(N_CATEGORIES)
    columns = zip(new.X_train, new.y_train, new.X_test, seeds, strict=True)
    return [(X, y, X_new, mean, sd, int(seed)) for X, y, X_new, seed in columns]


def time_task(task):
    """CPU-seconds of one fit, all threads of the worker."""
    start = time.process_time()
    fit_category(*task)
    return time.process_time() - start


def do_nothing(i):
    """An empty task."""
    return i


def compute(compile_cache, workers):
    """Wall seconds of starting, of the first task and of all categories, CPU-seconds of each, ms of an empty task.

    Lists have one value for each repeat, but `first_seconds` one for each worker, all of them at once.
    """
    tasks = list_tasks()
    with TemporaryDirectory() as folder:
        env = {}
        if compile_cache == "empty":
            env = {"PYTENSOR_FLAGS": f"base_compiledir={folder},numba__fastmath=False", "NUMBA_CACHE_DIR": folder}
            with _start(workers, env) as client:
                return {"first_seconds": _time_first(client, tasks[0])}
        starts = []
        for _ in range(N_REPEATS - 1):
            with _start(workers, env, starts):
                pass
        with _start(workers, env, starts) as client:
            row = {"start_seconds": starts, "first_seconds": _time_first(client, tasks[0]), "wall_seconds": [],
                   "cpu_seconds": [], "empty_ms": [], "round_trip_ms": []}  # fmt: skip
            for _ in range(N_REPEATS):
                wall, cpu = _measure(lambda: client.gather(client.map(time_task, tasks, pure=False)))
                row["wall_seconds"].append(round(wall, 2))
                row["cpu_seconds"].append(round(float(np.mean(cpu)), 3))
                wall, _ = _measure(lambda: client.gather(client.map(do_nothing, range(N_EMPTY), pure=False)))
                row["empty_ms"].append(round(1000 * wall / N_EMPTY, 3))
                wall, _ = _measure(lambda: [client.submit(do_nothing, i, pure=False).result() for i in range(50)])
                row["round_trip_ms"].append(round(1000 * wall / 50, 2))
    return row | {"categories": len(tasks)}


def _measure(work):
    """Wall seconds of a function without arguments, and what it returns."""
    start = time.perf_counter()
    found = work()
    return time.perf_counter() - start, found


def _start(workers, env, starts=None):
    """A client of a new cluster of processes, one thread each; its seconds are added to `starts`."""
    import dask
    from distributed import Client

    def start():
        client = Client(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs="ERROR",
            set_as_default=False, env=env,
        )  # fmt: skip
        client.wait_for_workers(workers)
        return client

    dask.config.set({"distributed.worker.daemon": True})
    seconds, client = _measure(start)
    if starts is not None:
        starts.append(round(seconds, 2))
    return client


def _time_first(client, task):
    """Wall seconds until each worker has done its first task, importing and compiling included."""
    from distributed import as_completed

    start = time.perf_counter()
    addresses = list(client.scheduler_info(n_workers=-1)["workers"])
    futures = [client.submit(time_task, task, workers=[address], pure=False) for address in addresses]
    seconds = []
    for future in as_completed(futures, loop=client.loop):
        future.result()
        seconds.append(round(time.perf_counter() - start, 2))
    return seconds
