"""Five other teachers: does the narrow normal help newcomers again, where nothing was chosen on these data?

The narrow normal of `weighted_newcomers` was tried after the joint normal of the articles' eighteen had failed, on the
newcomers that had shown it. Here each of five new data sets of eighteen categories teaches its own narrow normal, and
has its own newcomers: twelve, of which six are like the eighteen and six are separated by a straight line. Both
priors are sampled by NUTS.

What is claimed was written down and committed before the first row was computed: with 5, 10, 20 and 50 points the mean
gain in lpd of the alike over N(0, 1) is above 0, and with 5 points that of the straight ones below 0, each by a
one-sided t test over the five teachers, p below 0.025, and by Holm's rule among these five. Every teacher counts,
whether its fit passes the verdict or not.
"""

from functools import lru_cache

import numpy as np
from bookkit import data
from hbnn import metrics, prediction, priors, sampling

from studies import _fits
from studies.new_categories import N_TEST, SIZES, replace_training
from studies.weighted_newcomers import learn_narrow

MEASURED = False
TEACHERS = (5101, 5102, 5103, 5104, 5105)
NEWCOMERS = 1000  # added to a teacher's seed: that of its newcomers
N_CATEGORIES = 6  # of each kind
METHODS = ("N(0, 1)", "narrow normal")
CASES = [
    {"teacher": teacher, "kind": kind, "category": c, "n": n, "method": method, "seed": 1}
    for teacher in TEACHERS
    for kind, sizes in {"alike": SIZES, "straight": SIZES[:1]}.items()
    for c in range(N_CATEGORIES)
    for n in sizes
    for method in METHODS
]
RECOMPUTED = [case for case in CASES if case["method"] == METHODS[0]]  # the other needs a teacher's posterior first
SETTINGS = {"draws": 1400, "tune": 300}
FIRST = 100  # CPU-seconds: a teacher's posterior


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 3 + METHODS.index(case["method"])


@lru_cache(maxsize=2)
def draw_newcomers(teacher, kind):
    """A teacher's newcomers in the units of its eighteen: `Moons` with 50 training points each."""
    old, seed = data.rotated_moons(seed=teacher), teacher + NEWCOMERS
    center, width = old.center.mean(axis=0), old.width.mean(axis=0)
    moons = data.rotated_moons(seed=seed, n_groups=N_CATEGORIES, n_test=N_TEST, scaling="none")
    rng, parts = np.random.default_rng([seed, 7]), {}
    for part in ("train", "test"):
        X, y = getattr(moons, f"X_{part}"), getattr(moons, f"y_{part}")
        raw = np.stack([data.rotate(points, -angle) for points, angle in zip(X, moons.angle, strict=True)])
        if kind == "straight":  # the blobs of `new_categories`
            raw = np.where(y[..., None] == 1, [1.0, -0.14], [0.0, 0.64]) + rng.normal(0, 0.45, size=raw.shape)
        scaled = (raw - center) / width
        parts[part] = np.stack([data.rotate(p, angle) for p, angle in zip(scaled, moons.angle, strict=True)])
    units = (np.tile(values, (N_CATEGORIES, 1)) for values in (center, width))
    return data.Moons(parts["train"], moons.y_train, parts["test"], moons.y_test, moons.angle, *units)


@lru_cache(maxsize=1)
def teach(teacher):
    """A teacher's narrow normal as (mean, cholesky), and the verdict on its fit as numbers."""
    moons = data.rotated_moons(seed=teacher)
    tree = _fits.fit_hierarchical(moons, **SETTINGS)
    mean, sd = learn_narrow(tree["posterior"])
    return (mean, np.diag(sd)), _fits.check_hierarchical(tree, moons)


def compute(teacher, kind, category, n, method, seed):
    """Test scores of one newcomer under one prior, the verdict on its run, and on that of its teacher."""
    one = draw_newcomers(teacher, kind).group(category)
    X, y = one.X_train[:n], one.y_train[:n]
    source = dict.fromkeys(("source_rhat", "source_ess", "source_converged"))
    if method == METHODS[0]:
        mean, cholesky = priors.scale_prior((1.0, 1.0, 1.0), 2, _fits.N_HIDDEN)
    else:
        (mean, cholesky), checked = teach(teacher)
        source = {name: checked[name.removeprefix("source_")] for name in source}
    compiled = _fits.compile_informed().with_data(X=X, labels=y, mean=mean, cholesky=cholesky)
    tree = sampling.sample_nuts(compiled, seed=seed, **_fits.SHORT)
    p = prediction.predict_probability(prediction.flatten_chains(tree["posterior"]), one.X_test, activation="tanh")
    checked = _fits.check_groups([tree], replace_training(one, X, y))
    found = {name: checked[name] for name in ("rhat", "ess", "ess_tail", "divergences", "converged")}
    return metrics.score(p.mean(axis=0), one.y_test) | found | source
