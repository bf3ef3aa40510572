"""Where does the learned shape get lost? New categories with a narrow network, and without a normal in between.

`new_categories` describes what eighteen categories taught by one normal distribution of the 180 weights of a 2-12-12-1
network. Here are two ways around that: the articles' network with five units and 40 weights; and the group posterior
predictive itself, as draws, which are weighted by the likelihood of the new points instead of being summarised. The
categories, sizes and test points are those of `new_categories`.
"""

from functools import lru_cache

import numpy as np
from bookkit import data, models
from hbnn import fuse, metrics, prediction, priors, sampling, symmetry

from studies import _fits
from studies.new_categories import KINDS, SIZES, draw_categories

MEASURED = False
CASES = [
    {"kind": kind, "category": c, "n": n, "seed": 1}
    for kind in ("alike", "mirrored")
    for c in range(KINDS[kind])
    for n in SIZES
]
FIVE = (5, 5)
# longer and more careful than the book's network needs: five units are hard to sample
FIVE_SETTINGS = {"n_hidden": FIVE, "sd_scale": (1.0, 1.0, 5.0), "draws": 3000, "tune": 1000, "target_accept": 0.95}
N_PER_DRAW = 30  # draws of a new category for each posterior draw: 180,000 in all
METHODS = ("5 units, N(0, 1)", "5 units, scale only", "5 units, informed jointly")
WEIGHTED = "12 units, weighted draws"
FIRST = 500  # CPU-seconds: two posteriors of eighteen categories


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


@lru_cache(maxsize=1)
def draw_twelve():
    """Weights of new categories from the book's posterior: the group posterior predictive, no normal in between."""
    posterior = _fits.fit_hierarchical(_fits.load_moons("legacy"))["posterior"]
    return priors.draw_new_category(posterior, seed=1, n_per_draw=N_PER_DRAW)


@lru_cache(maxsize=1)
def weigh_draws(kind, category):
    """Log likelihood of each training point under each draw: (draw, obs)."""
    one = draw_categories(kind).group(category)
    p = prediction.predict_probability(draw_twelve(), one.X_train)
    return np.log(np.where(one.y_train == 1, p, 1 - p))


def compute(kind, category, n, seed):
    """Test scores of each method, diagnostics of its run, and how many draws the weights leave."""
    one = draw_categories(kind).group(category)
    X, y = one.X_train[:n], one.y_train[:n]
    row = {f"source: {name}": fit_five()[1][name] for name in ("rhat", "ess", "divergences", "converged")}
    for method in METHODS:
        mean, cholesky = learn_priors()[method]
        compiled = compile_five().with_data(X=X, labels=y, mean=mean, cholesky=cholesky)
        tree = sampling.sample_nuts(compiled, seed=seed, **_fits.SHORT)
        p = prediction.predict_probability(prediction.flatten_chains(tree["posterior"]), one.X_test)
        row |= {f"{method}: {name}": value for name, value in metrics.score(p.mean(axis=0), one.y_test).items()}
        single = one_group(one, X, y)
        checked = _fits.check_groups([tree], single)
        row |= {f"{method}: {name}": checked[name] for name in ("rhat", "ess", "divergences", "converged")}
    p, left = predict_weighted(kind, category, n, one.X_test, seed)
    row |= {f"{WEIGHTED}: {name}": value for name, value in metrics.score(p, one.y_test).items()}
    return row | {f"{WEIGHTED}: effective draws": left}


def one_group(one, X, y):
    """A category with other training points, as a data set of one category."""
    return data.stack([data.Moons(X, y, one.X_test, one.y_test, one.angle, one.center, one.width)])


def predict_weighted(kind, category, n, X_test, seed, n_kept=2000):
    """Importance sampling: mean probability (obs,) of draws picked by weight, and how many draws the weights leave."""
    loglik = weigh_draws(kind, category)[:, :n].sum(axis=1)
    weight = np.exp(loglik - loglik.max())
    weight /= weight.sum()
    picked = np.random.default_rng([seed, category, n]).choice(len(weight), size=n_kept, p=weight)
    p = prediction.predict_probability({name: w[picked] for name, w in draw_twelve().items()}, X_test)
    return p.mean(axis=0), float(1 / np.sum(weight**2))
