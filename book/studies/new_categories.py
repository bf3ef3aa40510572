"""A new category with 5, 10, 20 or 50 points: what is a prior worth that was learned on eighteen others?

The priors come from the hierarchical network on the articles' data. The new categories have other points and angles;
they are measured in the units of the eighteen old ones (their mean centre and width), so that nothing of a new category
is known but its first points. Test scores are on 1,000 points. Two kinds of categories are not like the old ones: moons
seen in a mirror, and two blobs that a straight line separates.
"""

from functools import lru_cache

import numpy as np
from bookkit import data
from hbnn import metrics, prediction, priors, sampling

from studies import _fits

MEASURED = False
SIZES = (5, 10, 20, 50)
KINDS = {"alike": 16, "mirrored": 8, "straight": 8}  # categories of each kind
CASES = [
    {"kind": kind, "category": c, "n": n, "seed": 1}
    for kind, n_categories in KINDS.items()
    for c in range(n_categories)
    for n in SIZES
]
METHODS = (
    "N(0, 1)", "control, 1/sqrt(fan-in)", "control, learned scales", "informed per layer", "informed jointly",
)  # fmt: skip
N_TEST = 1000
DATA_SEED = 2001
FIRST = 150  # CPU-seconds: the priors come from a posterior of eighteen categories


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 12


@lru_cache
def draw_categories(kind):
    """New categories in the old ones' units: `Moons` with 50 training points each."""
    old = _fits.load_moons("legacy")
    center, width = old.center.mean(axis=0), old.width.mean(axis=0)
    moons = data.rotated_moons(seed=DATA_SEED, n_groups=KINDS[kind], n_test=N_TEST, scaling="none")
    rng = np.random.default_rng([DATA_SEED, 7])
    parts = {}
    for part in ("train", "test"):
        X, y = getattr(moons, f"X_{part}"), getattr(moons, f"y_{part}")
        raw = np.stack([data.rotate(points, -angle) for points, angle in zip(X, moons.angle, strict=True)])
        if kind == "straight":  # around the moons' centres of mass, with their noise in both directions
            raw = np.where(y[..., None] == 1, [1.0, -0.14], [0.0, 0.64]) + rng.normal(0, 0.45, size=raw.shape)
        scaled = (raw - center) / width
        if kind == "mirrored":
            scaled = scaled * [-1, 1]
        parts[f"X_{part}"] = np.stack([data.rotate(p, angle) for p, angle in zip(scaled, moons.angle, strict=True)])
    return data.Moons(parts["X_train"], moons.y_train, parts["X_test"], moons.y_test, moons.angle,
                      np.tile(center, (len(moons.angle), 1)), np.tile(width, (len(moons.angle), 1)))  # fmt: skip


@lru_cache(maxsize=1)
def learn_priors():
    """The priors by method: dict of name to (mean, cholesky)."""
    learned = _fits.learn_priors(_fits.fit_hierarchical(_fits.load_moons("legacy"))["posterior"])
    scales = {
        "N(0, 1)": (1.0, 1.0, 1.0),
        "control, 1/sqrt(fan-in)": _fits.fan_in_scales(),
        "control, learned scales": _fits.read_scales(),
    }
    found = {name: priors.scale_prior(values, 2, _fits.N_HIDDEN) for name, values in scales.items()}
    return found | {name: learned[name] for name in ("informed per layer", "informed jointly")}


def predict_new(method, X, y, X_test, seed):
    """P(class 1) at test points (draw, obs), and the run."""
    mean, cholesky = learn_priors()[method]
    compiled = _fits.compile_informed().with_data(X=X, labels=y, mean=mean, cholesky=cholesky)
    tree = sampling.sample_nuts(compiled, seed=seed, **_fits.SHORT)
    return prediction.predict_probability(prediction.flatten_chains(tree["posterior"]), X_test, activation="tanh"), tree


def replace_training(one, X, y):
    """A category with other training points, as a data set of one category."""
    return data.stack([data.Moons(X, y, one.X_test, one.y_test, one.angle, one.center, one.width)])


def compute(kind, category, n, seed):
    """Test scores of each method, and whether its run passed the verdict."""
    one = draw_categories(kind).group(category)
    X, y = one.X_train[:n], one.y_train[:n]
    row = {"n_class_1": int(y.sum())}
    for method in METHODS:
        p, tree = predict_new(method, X, y, one.X_test, seed)
        row |= {f"{method}: {name}": value for name, value in metrics.score(p.mean(axis=0), one.y_test).items()}
        checked = _fits.check_groups([tree], replace_training(one, X, y))
        row |= {f"{method}: {name}": checked[name] for name in ("rhat", "ess", "divergences", "converged")}
    return row
