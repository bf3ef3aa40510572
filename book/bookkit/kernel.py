"""PyMC in a kernel of this book's environment: what holds on every page, so that no cell need say it.

A cell that readers see is a program that runs anywhere. In our kernel `pm.sample` makes four chains, one after the
other (`hbnn.sampling.ONE_CORE`), and keeps the draws of a large model (`bookkit.cache`); nothing draws a progress bar
that nobody would see. What a cell says itself comes first. `bookkit.environment` arranges this where a notebook's
kernel starts, and nowhere else; a program that runs cells itself asks for it with ``mock.patch.multiple(pm, **WAYS)``.
"""

import functools
import logging
from numbers import Integral

import pymc as pm

from bookkit import cache

LARGE = 2000  # unknowns of a model whose draws are kept; fewer are sampled in seconds
KEPT = {"model", "random_seed", "tune", "chains", "cores", "target_accept", *cache.UNSEEN}  # of calls that say no more


@functools.wraps(pm.sample)
def sample(draws=1000, **options):
    from hbnn import sampling  # here, since a default of its functions is `pm.sample`, ours by now

    options = sampling.ONE_CORE | options
    model = options["model"] = pm.modelcontext(options.get("model"))
    simple = options.keys() <= KEPT and isinstance(options.get("random_seed"), Integral)
    large = simple and sum(value.size for value in model.initial_point().values()) > LARGE
    plain = sample.__wrapped__
    return (cache.cached(plain) if large else plain)(draws, **options)


def _draw_no_bar(function):
    @functools.wraps(function)
    def called(*args, **options):
        from hbnn import sampling

        return function(*args, **({"progressbar": sampling.is_watched()} | options))

    return called


WAYS = {name: _draw_no_bar(getattr(pm, name)) for name in ("fit", "sample_posterior_predictive")} | {"sample": sample}


def settle(pymc):
    """Give `pymc`, the module, our ways; its log tells warnings, and not what it has finished. Returns nothing."""
    vars(pymc).update(WAYS)
    logging.getLogger("pymc").setLevel(logging.WARNING)
