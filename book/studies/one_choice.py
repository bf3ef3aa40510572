"""One choice of the hierarchical network, of its data or of its prior changed at a time, on five data sets.

A hierarchical network is sampled until its verdict holds: four chains, then four more. At levels in GO_ON it goes on as
in chapter 4: where the first chains are apart or slow, four others begin where parallel tempering has been, four times
as long, and then as many more. At some of the others a run takes a quarter of an hour. Said before the results: at
least 112 of 120 fits pass, the median under 60 CPU-seconds.

Where a level changes the data, the strongest rivals of study `cheaper_ways` that are not told what moons are made of
are fitted, too. Each is tuned at each level, on three other data sets of that level; the hierarchical network is not.
"""

import time
from functools import lru_cache
from itertools import product

import numpy as np
from bookkit import data, models
from hbnn import fuse, metrics

from studies import _fits, _replicate, _rivals

MEASURED = False
DATA_SEEDS = tuple(range(301, 306))  # the first five of study `replication`
SAMPLER = {"draws": 650, "tune": 350, "most": 2}  # the hierarchical network, four chains at a time, eight at most
LONGER = {"most": 4, "is_tempered": True}  # what about ten CPU-minutes pay for
GO_ON = (  # the others have eight chains at most
    "3", "6", "10", "25", "200", "0.1", "0.2", "0.5", "1 x 5", "2 x 3", "2 x 5", "2 x 8", "3 x 8", "on", "ReLU",
    "HalfNormal(5)", "HalfCauchy(1)",
)  # fmt: skip
SAMPLER_ONE = {"draws": 400, "tune": 300}  # the network of one category
DTYPE = "float32"  # of the likelihood; level "default" shows that it changes nothing

# level: (what changes in the data, in both networks, in the hierarchical network alone)
CHOICES = {
    "default": {"default": ({}, {"n_hidden": _fits.N_HIDDEN}, {})},
    "categories": {str(n): ({"n_groups": n}, {}, {}) for n in (3, 6, 50)},
    "points": {str(n): ({"n_train": n}, {}, {}) for n in (10, 25, 200)},
    "balance": {"5 to 200": ({"unbalanced": True}, {}, {})},
    "noise": {str(noise): ({"noise": noise}, {}, {}) for noise in (0.1, 0.2, 0.5)},
    "network": {
        name: ({}, {"n_hidden": n_hidden}, {})
        for name, n_hidden in {
            "1 x 5": (5,),
            "2 x 3": (3, 3),
            "2 x 5": (5, 5),
            "2 x 8": (8, 8),
            "2 x 16": (16, 16),
            "3 x 8": (8, 8, 8),
        }.items()
    },
    "biases": {"on": ({}, {"bias": True}, {})},
    "activation": {"ReLU": ({}, {"activation": "relu"}, {})},
    "angles": {"60 degrees": ({"degrees": 60}, {}, {})},
    "sd prior": {
        "HalfNormal(2.5)": ({}, {}, {"sd_scale": 2.5}),
        "HalfNormal(5)": ({}, {}, {"sd_scale": 5.0}),
        "HalfCauchy(1)": ({}, {}, {"sd_prior": "halfcauchy"}),
    },
    "sds": {"one per connection": ({}, {}, {"sd_per": "connection"})},
}
HEAVY = ("50", "200", "one per connection")
BOTH = ("unpooled, N(0, 1)", "hierarchical")
RIVALS = {  # what is tried on the tuning data: scales of logits, weight decays
    "Gaussian process each, rescaled": (1, 1.15, 1.3, 1.45, 1.6, 1.75, 2, 2.5),
    "one trunk, a head each": (0.3, 1, 3),
}
TUNING_SEEDS = (101, 102, 103)


def _list_cases():
    for heavy, data_seed in product((False, True), DATA_SEEDS):  # those that take minutes come last
        for choice, level in ((choice, level) for choice, levels in CHOICES.items() for level in levels):
            in_data, shared, _ = CHOICES[choice][level]
            methods = BOTH if in_data or shared else BOTH[1:]  # a prior of sds does not touch the unpooled network
            if heavy == (level in HEAVY):
                for method in methods:
                    yield {"choice": choice, "level": level, "method": method, "data_seed": data_seed, "seed": 1}
    for choice, levels in CHOICES.items():
        for level, (in_data, *_) in levels.items():
            rivals = [method for method in RIVALS if in_data or choice == "default"]
            if choice == "balance":  # where a category has points of one class, and no process
                rivals.remove("Gaussian process each, rescaled")
            for method, data_seed in product(rivals, DATA_SEEDS):
                yield {"choice": choice, "level": level, "method": method, "data_seed": data_seed, "seed": 1}


CASES = list(_list_cases())
EMPTY = _replicate.EMPTY | {"tuned": None}
UNCOMPARED = ("cpu_seconds",)


def block(case):
    """What one task computes: one row, or those of a rival at a level."""
    return tuple(case.values())[: 3 if case["method"] in RIVALS else None]


def estimate(case):
    """CPU-seconds that a row takes on the machine of the tables, roughly: for the progress bar and the tests."""
    if case["method"] in RIVALS:
        return 2 if "process" in case["method"] else 25
    more = {"50": 3, "200": 3, "one per connection": 3, "2 x 16": 1.5, "3 x 8": 1.5, "3": 0.3, "6": 0.4}
    return more.get(case["level"], 1) * (40 if case["method"] == "hierarchical" else 13)


def make_data(choice, level, data_seed):
    """The data of a level (Moons); those of unlike sizes have lists (group,) of arrays for training points."""
    options = dict(CHOICES[choice][level][0])
    degrees, unbalanced = options.pop("degrees", None), options.pop("unbalanced", False)
    if unbalanced:
        return _make_unbalanced(data_seed)
    moons = data.rotated_moons(seed=data_seed, **options)
    return moons if degrees is None else _narrow(moons, degrees)


def _narrow(moons, degrees):
    """The same points, turned so that the angles fill `degrees` instead of the full circle."""
    angle = moons.angle * degrees / 360
    turned = {}
    for name in ("X_train", "X_test"):
        groups = zip(getattr(moons, name), angle - moons.angle, strict=True)
        turned[name] = np.stack([data.rotate(X, float(turn)) for X, turn in groups])
    return data.Moons(**(vars(moons) | turned | {"angle": angle}))


def _make_unbalanced(data_seed, n_groups=18, fewest=5, most=200):
    """Categories of 5 to 200 points, evenly spaced in the logarithm; about a thousand in all."""
    counts = np.geomspace(fewest, most, n_groups).round().astype(int)
    seeds = np.random.SeedSequence(data_seed).generate_state(n_groups)
    groups = [
        data.rotated_moons(seed=int(s), n_groups=1, n_train=int(n)).group(0) for s, n in zip(seeds, counts, strict=True)
    ]
    fixed = {name: np.stack([getattr(g, name) for g in groups]) for name in ("X_test", "y_test", "center", "width")}
    lists = {name: [getattr(g, name) for g in groups] for name in ("X_train", "y_train")}
    return data.Moons(**fixed, **lists, angle=np.array([g.angle for g in groups]))


def compute(choice, level, method, data_seed, seed):
    """Scores with their errors, calibration, diagnostics, group sds and CPU-seconds of one fit; see `_replicate`."""
    moons, (_, shared, own) = make_data(choice, level, data_seed), CHOICES[choice][level]
    activation, start = shared.get("activation", "tanh"), time.process_time()
    if method in RIVALS:
        tuned = tune_rival(method, choice, level)
        start = time.process_time()
        predict_at = fit_rival(method, moons, tuned, seed)
        p_train = [predict_at(X).mean(axis=(0, 1))[g] for g, X in enumerate(moons.X_train)]
        row = EMPTY | {"failed": False, "cpu_seconds": round(time.process_time() - start, 1), "tuned": tuned}
        return row | _replicate.score_fit(p_train, predict_at(moons.X_test).mean(axis=(0, 1)), moons)
    if method == "hierarchical":
        options = {"n_hidden": _fits.N_HIDDEN} | shared | own
        model = fuse(models.hierarchical_bnn(list(moons.X_train), list(moons.y_train), **options), dtype=DTYPE)
        longer = LONGER if level in GO_ON else {}
        tree = _replicate.sample_hierarchical(model, moons, seed, activation, **SAMPLER | longer)
        p_train, p_test, found, _ = _replicate.describe_hierarchical(tree, moons, activation)
    else:
        compiled = _fits.compile_unpooled(dtype=DTYPE, **shared)
        p_train, p_test, found, _ = _replicate.sample_unpooled(compiled, moons, seed, activation, **SAMPLER_ONE)
    row = EMPTY | {"failed": False, "cpu_seconds": round(time.process_time() - start, 1)} | found
    return row | _replicate.score_fit(p_train, p_test, moons)


def fit_rival(method, moons, tuned, seed):
    """A function of points that gives probabilities, as in `_rivals`."""
    if "process" in method:
        return _rivals.fit_rescaled_process(moons, tuned)
    return _rivals.fit_trunk(moons, tuned, seed)


@lru_cache
def tune_rival(method, choice, level):
    """The scale or the weight decay with the highest mean lpd on the tuning data of a level."""

    def score(tuned):
        each = [make_data(choice, level, data_seed) for data_seed in TUNING_SEEDS]
        p = [fit_rival(method, moons, tuned, 1)(moons.X_test).mean(axis=(0, 1)) for moons in each]
        pairs = zip(p, (moons.y_test for moons in each), strict=True)
        return np.mean([metrics.score_groups(*pair)["lpd"] for pair in pairs])

    return max(RIVALS[method], key=score)
