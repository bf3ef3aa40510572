"""Does a normal keep the learned shape where the network is narrow? The articles' five units, and 40 weights.

`new_categories` describes what eighteen categories taught by one normal distribution of the 180 weights of a 2-12-12-1
network. The categories, sizes and test points are those.
"""

from functools import lru_cache

from bookkit import models
from hbnn import fuse, metrics, prediction, priors, sampling, symmetry

from studies import _fits
from studies.new_categories import KINDS, SIZES, draw_categories, replace_training

MEASURED = False
CASES = [{"kind": "alike", "category": c, "n": n, "seed": 1} for c in range(KINDS["alike"]) for n in SIZES]
FIVE = (5, 5)
# longer and more careful than the book's network needs: five units are hard to sample
FIVE_SETTINGS = {"n_hidden": FIVE, "sd_scale": (1.0, 1.0, 5.0), "draws": 3000, "tune": 1000, "target_accept": 0.95}
METHODS = ("5 units, N(0, 1)", "5 units, scale only", "5 units, informed jointly")
FIRST = 450  # CPU-seconds: the posterior of eighteen categories


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 8


@lru_cache(maxsize=1)
def fit_five():
    """The five-unit hierarchical posterior on the articles' data, with its verdict."""
    moons = _fits.load_moons("legacy")
    tree = _fits.fit_hierarchical(moons, **FIVE_SETTINGS)
    return tree, _fits.check_hierarchical(tree, moons)


@lru_cache(maxsize=1)
def learn_priors():
    """Priors of the five-unit network by method: dict of name to (mean, cholesky)."""
    posterior = fit_five()[0]["posterior"]
    aligned = symmetry.relabel(priors.align_posterior(posterior, seed=1), priors.draw_new_category(posterior, seed=1))
    return {
        METHODS[0]: priors.scale_prior((1.0, 1.0, 1.0), 2, FIVE),
        METHODS[1]: priors.scale_prior(priors.measure_scales(aligned), 2, FIVE),
        METHODS[2]: priors.fit_normal(aligned),
    }


@lru_cache(maxsize=1)
def compile_five():
    """The five-unit network of one category, compiled once."""
    one, (mean, cholesky) = _fits.load_moons("legacy").group(0), priors.scale_prior((1.0, 1.0, 1.0), 2, FIVE)
    model = models.informed_bnn(one.X_train, one.y_train, mean=mean, cholesky=cholesky, n_hidden=FIVE)
    return sampling.compile_nuts(fuse(model))


def compute(kind, category, n, seed):
    """Test scores of each method, and diagnostics of its run."""
    one = draw_categories(kind).group(category)
    X, y = one.X_train[:n], one.y_train[:n]
    row = {f"source: {name}": fit_five()[1][name] for name in ("rhat", "ess", "divergences", "converged")}
    for method in METHODS:
        mean, cholesky = learn_priors()[method]
        compiled = compile_five().with_data(X=X, labels=y, mean=mean, cholesky=cholesky)
        tree = sampling.sample_nuts(compiled, seed=seed, **_fits.SHORT)
        p = prediction.predict_probability(prediction.flatten_chains(tree["posterior"]), one.X_test, activation="tanh")
        row |= {f"{method}: {name}": value for name, value in metrics.score(p.mean(axis=0), one.y_test).items()}
        checked = _fits.check_groups([tree], replace_training(one, X, y))
        row |= {f"{method}: {name}": checked[name] for name in ("rhat", "ess", "divergences", "converged")}
    return row
