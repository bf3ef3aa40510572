"""Which layer takes the differences between groups: each layer's camp of the posterior, weighed by parallel tempering.

A camp is where its layer's group sd is the largest. Each setting is tempered twice, once begun in the read-outs' camp
at power 1 and once in the first layer's, from where NUTS goes down to the smallest power and adapts. `shares` has for
each power how often each layer's sd was the largest, `medians` the middle of each sd, `log_likelihood` its mean. An
arrival is a replica at power 1 that has been at the smallest power since it was there last; `arrivals` has their number
and how many of them came in each camp. `share` is that of each camp at power 1, with its Monte Carlo error from ten
batches of rounds.

With 200 points a group, eight chains of NUTS by themselves show where they fall: rows "alone". Rows "up" and "down" are
of one chain of NUTS that is followed along the powers without swaps, from PyMC's start at the smallest and from either
camp at power 1: `medians` has the middle of each sd on its way.
"""

import dataclasses
import time

import numpy as np
from bookkit import models
from hbnn import diagnostics, fuse, metrics, prediction, sampling, tempering

from studies import _fits, one_choice

MEASURED = False
SETTINGS = (
    ("default", "default", 301), ("biases", "on", 304), ("categories", "6", 301), ("noise", "0.1", 302),
    ("noise", "0.2", 301), ("network", "2 x 8", 303), ("sd prior", "HalfCauchy(1)", 303), ("points", "200", 301),
)  # fmt: skip
BEGUN = {"read-outs": (0.03, 0.04, 2.0), "first layer": (0.45, 0.02, 0.03)}  # group sds of the layers
ALONE = ("points", "200", 301)
FOLLOWED = (("points", "200", 301), ("biases", "on", 304))
WAYS = {"up": None, **{f"down, {name}": name for name in BEGUN}}
ROUNDS = 1200
UNCOMPARED = ("cpu_seconds",)


def _list_cases():
    names = "choice", "level", "data_seed", "begun", "seed"
    cases = [(*setting, begun, 1) for setting in SETTINGS for begun in BEGUN]
    cases += [(*ALONE, "alone", seed) for seed in (1, 2)] + [(*where, way, 1) for where in FOLLOWED for way in WAYS]
    return [dict(zip(names, case, strict=True)) for case in cases]


CASES = _list_cases()


def block(case):
    """What one task computes: one row."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds that a row takes, roughly."""
    return 600 if case["level"] == "200" else 200


def make_model(choice, level, data_seed):
    """The data of a level of `one_choice` (Moons), its hierarchical network as fused, and its activation."""
    moons, (_, shared, own) = one_choice.make_data(choice, level, data_seed), one_choice.CHOICES[choice][level]
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, **{"n_hidden": _fits.N_HIDDEN} | shared | own)
    return moons, fuse(model, dtype=one_choice.DTYPE)


def find_sds(model):
    """Where the logarithms of the group sds are among the coordinates that a sampler moves (list of int)."""
    found, first = {}, 0
    for variable in model.value_vars:
        found[variable.name] = first
        first += np.size(model.initial_point()[variable.name])
    return [found[f"sd{k}_log__"] for k in (1, 2, 3)]


def begin_in(model, sds, seed):
    """A point (dim,) with these group sds, everything else as PyMC's jitter has it: within 1 of its start."""
    point = np.concatenate([np.ravel(model.initial_point()[variable.name]) for variable in model.value_vars])
    point = point + np.random.default_rng(seed).uniform(-1, 1, size=point.size)
    point[find_sds(model)] = np.log(sds)
    return point


def compute(choice, level, data_seed, begun, seed):
    """A row of a setting, tempered from one of its camps, or of four chains alone."""
    moons, model = make_model(choice, level, data_seed)
    start = time.process_time()
    compiled = sampling.compile_nuts(model)
    if begun == "alone":
        tree = sampling.sample_nuts(compiled, seed=seed, draws=300, tune=300, target_accept=_fits.TARGET)
        row = describe_chains(tree, moons)
    elif begun in WAYS:
        row = {"powers": list(tempering.POWERS), "medians": follow(compiled, model, begun, seed)}
    else:
        run = tempering.temper(
            compiled, seed=seed, rounds=ROUNDS, start=begin_in(model, BEGUN[begun], seed), falling=True,
            watch=find_sds(model),
        )  # fmt: skip
        row = describe_run(run)
    return row | {"cpu_seconds": round(time.process_time() - start, 1)}


def follow(compiled, model, way, seed):
    """Middle of each group sd at each power, [[sd1, sd2, sd3], …], of a chain that goes on where it ended before."""
    import nutpie

    is_up = WAYS[way] is None
    point = None if is_up else begin_in(model, BEGUN[WAYS[way]], seed)
    found = {}
    for k, power in enumerate(tempering.POWERS if is_up else tempering.POWERS[::-1]):
        weak = compiled.with_data(**{sampling.POWER: power})
        if point is not None:
            weak = dataclasses.replace(weak, initial_point_func=lambda _, point=point: point)
        tree = nutpie.sample(
            weak, draws=150, tune=150, chains=1, cores=1, seed=100 * seed + k, store_unconstrained=True,
            progress_bar=False,
        )  # fmt: skip
        points = tree["sample_stats"]["unconstrained_draw"].values[0]
        found[power] = [_round(sd) for sd in np.exp(np.median(points[:, find_sds(model)], axis=0))]
        point = points[-1]
    return [found[power] for power in tempering.POWERS]


def describe_chains(tree, moons):
    """Group sds, log likelihood in nats, its sd, and lpd in nats per test point, chain by chain."""
    posterior = tree["posterior"].to_dataset()
    p = prediction.predict_groups(posterior, moons.X_train, activation="tanh")
    loglik = metrics.log_likelihood(p, moons.y_train).sum(axis=(2, 3))
    p_test = prediction.predict_groups(posterior, moons.X_test, activation="tanh").mean(axis=1)
    return {
        "sds": [[_round(posterior[f"sd{k}"][c].mean()) for k in (1, 2, 3)] for c in range(len(loglik))],
        "log_likelihood": [[_round(values.mean()), _round(values.std())] for values in loglik],
        "lpd": [_round(metrics.score(p.ravel(), moons.y_test.ravel())["lpd"]) for p in p_test],
        "rhat": _round(diagnostics.verdict({name: posterior[name].values for name in ("sd1", "sd3")}, tree).rhat),
    }


def describe_run(run):
    """What a row says of a tempered run."""
    camp = run.watched.argmax(axis=2)  # (round, power)
    shares = np.stack([(camp == k).mean(axis=0) for k in range(3)], axis=1)
    batches = np.stack([[(part == k).mean() for k in range(3)] for part in np.array_split(camp[:, -1], 10)])
    arrived = [k for round_ in find_arrivals(run.replica) for k in [camp[round_, -1]]]
    return {
        "powers": run.powers.tolist(),
        "shares": [[_round(share) for share in row] for row in shares],
        "medians": [[_round(sd) for sd in row] for row in np.exp(np.median(run.watched, axis=0))],
        "log_likelihood": [_round(value) for value in run.log_likelihood.mean(axis=0)],
        "share": [_round(value) for value in shares[-1]],
        "share_mcse": [_round(value) for value in batches.std(axis=0, ddof=1) / np.sqrt(len(batches))],
        "arrivals": [len(arrived), *(arrived.count(k) for k in range(3))],
        "swapped": [_round(value) for value in run.swapped],
        "gradients": run.n_gradients,
    }


def find_arrivals(replica):
    """Rounds in which a replica came to the last power that had been at the first since it was there (list of int).

    Parameters
    ----------
    replica : array of int, shape (round, power)
    """
    from_below, found = set(), []
    for i, holds in enumerate(replica):
        from_below.add(int(holds[0]))
        if int(holds[-1]) in from_below:
            from_below.discard(int(holds[-1]))
            found.append(i)
    return found


def _round(value):
    return float(f"{float(value):.4g}")
