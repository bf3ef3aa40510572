"""Chains that start under a weakened likelihood, which is raised in steps.

Where data are many or clear, a network's posterior can have several camps, such as one in which only read-outs differ
between groups and one in which only first layers do. A chain keeps the one it fell into in its first steps. Under a
weak likelihood camps are close, chains walk between them, and more of them come to one camp as the likelihood grows.
How many depends on the steps: the more the data say, the lower the first power and the more powers it takes.
"""

import dataclasses
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray

from hbnn import diagnostics, sampling
from hbnn._checks import check_seed
from hbnn._types import Floats

if TYPE_CHECKING:
    from nutpie.compile_pymc import CompiledPyMCModel

POWERS = (0.03, 0.1, 0.3)
STEPS = 200  # at each power
_STAGE_ACCEPT = 0.8  # while the likelihood is weak, nothing is kept and steps may be long
_LOGGER = logging.getLogger("hbnn")


def sample_annealed(
    draws: int = 1000,
    *,
    random_seed: int,
    model: "pm.Model | CompiledPyMCModel | None" = None,
    tune: int = 1000,
    powers: Sequence[float] = POWERS,
    steps: int = STEPS,
    chains: int = 4,
    cores: int = 1,
    target_accept: float = 0.8,
    **quiet: Any,
) -> xr.DataTree:
    """NUTS as by `pm.sample`, after a warm-up under a weakened likelihood that is raised in steps.

    Each chain takes `steps` steps of NUTS under prior times likelihood to the first power, goes on from where it is
    under the next, and so on; these draws are discarded. Then come the usual warm-up and draws. So the posterior is
    that of the model, and only where chains begin is chosen. It is no proof that the camp they end in is the heaviest:
    where camps part abruptly, as in a first-order transition, a chain can follow the one that was heavier before.

    Parameters
    ----------
    draws, tune : int, kept and discarded in each chain, at power 1
    random_seed : int
    model : pm.Model, by default that of the context, typed or fused; or what `sampling.compile_nuts` makes of it
    powers : floats above 0 and below 1, rising; empty for none. Observed variables and potentials are weakened
    steps : int, of NUTS at each power
    chains : int
    cores : int, chains that run at once; it changes no draw
    target_accept : float, as in `pm.sample`
    quiet : ``progressbar``, ``quiet`` and ``compute_convergence_checks`` of `pm.sample` are taken and left

    Returns
    -------
    xarray.DataTree
        ``posterior`` and ``sample_stats``; its attribute ``warm_up`` says in a line what was done. After Ctrl-C the
        chains that were not finished are NaN.

    Raises
    ------
    TypeError
        Where there is neither a model nor a context, and for an option that is not known.
    ValueError
        For powers that do not rise between 0 and 1, counts below 1, and a model without a likelihood.
    KeyboardInterrupt
        When interrupted before the first chain was finished.

    References
    ----------
    Neal (2001), Annealed Importance Sampling, Statistics and Computing 11.
    Del Moral, Doucet and Jasra (2006), Sequential Monte Carlo Samplers, JRSS B 68.

    Examples
    --------
    A mean that the data know up to its sign. Which sign a chain has is chance; that two camps are there is seen.

    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import annealing
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 1, 1)
    ...     y = pm.Normal("y", mu**2, 1, observed=np.full(50, 4.0))
    >>> tree = annealing.sample_annealed(500, tune=300, model=model, random_seed=1, powers=(0.01, 0.03, 0.1, 0.3))
    >>> tree["posterior"]["mu"].mean("draw").values.round().tolist()  # 50 to 1 by the prior
    [2.0, 2.0, 2.0, 2.0]
    """
    check_seed(random_seed)
    unknown = quiet.keys() - {"progressbar", "quiet", "compute_convergence_checks"}
    if unknown:
        raise TypeError(f"unknown: {', '.join(sorted(unknown))}; wanted: options of sample_annealed")
    ladder = [float(power) for power in powers]
    if any(not a < b for a, b in zip([0.0, *ladder], [*ladder, 1.0], strict=True)):
        raise ValueError(f"powers={tuple(powers)}; wanted: rising numbers above 0 and below 1")
    for name, n in (("draws", draws), ("steps", steps), ("chains", chains), ("cores", cores)):
        if n < 1:
            raise ValueError(f"{name}={n}; wanted: at least 1")
    if model is None or isinstance(model, pm.Model):
        model = sampling.compile_nuts(pm.modelcontext(model))
    if ladder and not any(data.name == sampling.POWER for data in getattr(model, "shared_var_keys", ())):
        raise ValueError(
            "the model has no likelihood that could be weakened; wanted: a pm.Model with an observed variable, or what "
            "sampling.compile_nuts makes of it; powers=() goes without"
        )
    seeds = np.random.SeedSequence(random_seed).generate_state(chains * (len(ladder) + 1)).reshape(chains, -1)
    done: list[xr.DataTree] = []
    n_weak = 0
    try:
        for first in range(0, chains, cores):
            batch, n = _sample_batch(model, seeds[first : first + cores], ladder, steps, draws, tune, target_accept)
            done += batch
            n_weak += n
            _LOGGER.info("%d of %d chains are done", len(done), chains)
    except KeyboardInterrupt:
        if not done:
            raise
    done += [_blank(done[0])] * (chains - len(done))
    tree = done[0]
    for other in done[1:]:
        tree = sampling.join_chains(tree, other)
    said = "no weakened likelihood"
    if ladder:
        at = ", ".join(map(str, ladder))
        said = f"{steps} steps of each chain at likelihood powers {at}: {n_weak / len(done):,.0f} gradients a chain"
    tree.attrs["warm_up"] = said
    _LOGGER.info("warm-up: %s", said)
    return tree


def _sample_batch(
    compiled: "CompiledPyMCModel",
    seeds: NDArray[np.unsignedinteger],
    ladder: list[float],
    steps: int,
    draws: int,
    tune: int,
    target_accept: float,
) -> tuple[list[xr.DataTree], int]:
    """Chains that run side by side, one for each row of `seeds`, and their gradients under a weakened likelihood."""
    points: list[Floats | None] = [None] * len(seeds)
    n_weak = 0
    for stage, power in enumerate(ladder):
        weak = compiled.with_data(**{sampling.POWER: power})
        settings = {"draws": 1, "tune": steps, "target_accept": _STAGE_ACCEPT}
        trees = _run(weak, points, seeds[:, stage], save_warmup=True, store_unconstrained=True, **settings)
        points = [diagnostics._read_statistic(tree, "unconstrained_draw")[0, -1] for tree in trees]
        n_weak += sum(
            int(tree[group]["n_steps"].sum()) for tree in trees for group in ("warmup_sample_stats", "sample_stats")
        )
    settings = {"draws": draws, "tune": max(tune, 1), "target_accept": target_accept}
    return _run(compiled, points, seeds[:, -1], save_warmup=False, **settings), n_weak


def _run(
    compiled: "CompiledPyMCModel", points: Sequence[Floats | None], seeds: NDArray[np.unsignedinteger], **settings: Any
) -> list[xr.DataTree]:
    """One chain from each point (None: where nutpie would begin), all at once."""
    import nutpie

    started = []
    try:
        for point, seed in zip(points, seeds.tolist(), strict=True):
            there = compiled
            if point is not None:
                there = dataclasses.replace(compiled, initial_point_func=lambda _, point=point: point)
            options = {"chains": 1, "cores": 1, "seed": seed, "blocking": False, "progress_bar": False} | settings
            started.append(nutpie.sample(there, **options))
        return [sampler.wait() for sampler in started]
    except KeyboardInterrupt:
        for sampler in started:
            sampler.cancel()
        raise


def _blank(tree: xr.DataTree) -> xr.DataTree:
    """A chain that was not drawn, as nutpie fills up what Ctrl-C cut off: NaN, and False in masks."""
    groups = {name: group.to_dataset() for name, group in tree.children.items()}
    for name, group in groups.items():
        groups[name] = xr.full_like(
            group, np.nan, dtype={n: v.dtype if v.dtype.kind in "bOU" else float for n, v in group.items()}
        )
    return xr.DataTree.from_dict(groups)
