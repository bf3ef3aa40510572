"""Chains that start where parallel tempering finds the posterior to be.

Where data are many or clear, a network's posterior can have several camps, such as one in which only read-outs differ
between groups and one in which only first layers do. A chain keeps the one it fell into in its first steps. Under a
weakened likelihood camps join. So replicas run side by side, each under prior times likelihood to a power of its own,
and neighbours exchange where they are: what power 1 holds has come from all camps, each as often as it weighs.

A warm-up that raises the power in steps does not do: it can stay in the camp that is heavier at small powers.
"""

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import pymc as pm
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hbnn import diagnostics, sampling
from hbnn._checks import check_seed
from hbnn._types import Floats

if TYPE_CHECKING:
    from nutpie.compile_pymc import CompiledPyMCModel

POWERS = tuple(np.geomspace(0.05, 1, 14).round(3).tolist())
ROUNDS = 400
STEPS = 100  # of NUTS at each power, to adapt
_PART = 20  # rounds between two looks at the keyboard
_ACCEPT = 0.7  # share of the steps that adaptation aims at
_LONGEST = 64  # leapfrog steps, on average, of a step
_LOGGER = logging.getLogger("hbnn")


@dataclass(frozen=True)
class Tempered:
    """A run of parallel tempering.

    Attributes
    ----------
    powers : array, shape (power,), of the likelihood, rising
    points : array, shape (round, dim)
        What the last power held after each round, in the unconstrained space of the sampler.
    watched : array, shape (round, power, coordinate), the coordinates asked for, at each power
    log_likelihood : array, shape (round, power), in nats
    replica : array of int, shape (round, power), which replica each power held
    accepted, swapped : arrays, shape (power,) and (power - 1,), shares of the steps and of the exchanges tried
    n_gradients : int

    Examples
    --------
    Goes on from `temper`.

    >>> run.points.shape, run.log_likelihood.shape
    ((2000, 1), (2000, 4))
    """

    powers: Floats
    points: Floats
    watched: Floats
    log_likelihood: Floats
    replica: NDArray[np.int64]
    accepted: Floats
    swapped: Floats
    n_gradients: int

    def __str__(self) -> str:
        """In a line what was done."""
        n = len(np.unique(self.replica[:, -1]))
        return (
            f"{len(self.points)} rounds of swaps between {len(self.powers)} powers of the likelihood from "
            f"{self.powers[0]:g}: neighbours swapped in {self.swapped.min():.0%} to {self.swapped.max():.0%} of the "
            f"tries, and {n} replicas came to power {self.powers[-1]:g}; {self.n_gradients:,} gradients"
        )


@threadpool_limits.wrap(limits=1)
def temper(
    compiled: "CompiledPyMCModel",
    *,
    seed: int,
    powers: Sequence[float] = POWERS,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    start: Floats | None = None,
    falling: bool = False,
    watch: Sequence[int] = (),
) -> Tempered:
    """Parallel tempering along powers of the likelihood.

    NUTS adapts at each power, from where it ended at the one before. Then each replica takes a step of Hamiltonian
    Monte Carlo a round, and neighbours exchange what they hold, even and odd pairs in turns. In the first quarter of
    the rounds step sizes are adapted; these rounds are not among those returned.

    Parameters
    ----------
    compiled : CompiledPyMCModel
        What `sampling.compile_nuts` makes of a model with a likelihood.
    seed : int
    powers : floats above 0, rising to at most 1, two at least
    rounds : int, after adaptation
    steps : int, of NUTS at each power, to adapt
    start : array, shape (dim,), where the first power begins; by default where nutpie would
    falling : bool, begin at the last power rather than at the first
    watch : ints, coordinates of the unconstrained space to be returned at each power

    Returns
    -------
    Tempered

    Raises
    ------
    ValueError
        For powers that do not rise from above 0 to at most 1, and counts below 1.

    References
    ----------
    Geyer (1991), Markov Chain Monte Carlo Maximum Likelihood, Computing Science and Statistics 23.
    Syed et al. (2022), Non-Reversible Parallel Tempering: A Scalable Highly Parallel MCMC Scheme, JRSS B 84.

    Examples
    --------
    A mean that the data know up to its sign. By the prior -2 weighs a 55th of what +2 does.

    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import sampling, tempering
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 1, 1)
    ...     y = pm.Normal("y", mu**2, 1, observed=np.full(50, 4.0))
    >>> compiled = sampling.compile_nuts(model)
    >>> run = tempering.temper(compiled, seed=1, powers=(0.002, 0.02, 0.2, 1), rounds=2000)
    >>> bool(abs((run.points < 0).mean() - 1 / 55) < 0.02)
    True
    """
    check_seed(seed)
    _check_powers(powers)
    _check_counts(rounds=rounds, steps=steps)
    seeds = np.random.SeedSequence(seed).generate_state(len(powers) + 1)
    found, point, n_gradients = {}, start, 0
    for k in reversed(range(len(powers))) if falling else range(len(powers)):
        found[k], point, n = _adapt(compiled, powers[k], point, int(seeds[k]), steps)
        n_gradients += n
    ordered = (found[k] for k in range(len(powers)))
    points, scales, step_sizes, lengths = (np.array(part) for part in zip(*ordered, strict=True))
    data, owners = _read_data(compiled, [0.0, *powers])
    rng = np.random.default_rng(seeds[-1])
    at, holds, tried = np.array(powers, dtype=float), np.arange(len(powers)), []
    seen, n_burnt = np.array(watch, dtype=int), -(-rounds // 3)
    for first in range(0, n_burnt + rounds, _PART):
        n = min(_PART, n_burnt + rounds - first)
        adapts = first < n_burnt
        tried.append(
            _run(compiled.compiled_logp_func.ctypes, points, holds, data, at, step_sizes, scales, lengths,
                 n, first, adapts, seen, rng)
        )  # fmt: skip
        if first % 100 == 0:
            _LOGGER.info("%d of %d rounds of swaps", first + n, n_burnt + rounds)
    del owners
    parts = [np.concatenate(part) for part in zip(*tried, strict=True)]
    n_gradients += int(parts[-1].sum())
    cold, watched, logliks, replica, accepted, swapped = (part[-rounds:] for part in parts[:-1])
    shares = accepted.mean(axis=0), np.nanmean(swapped, axis=0)
    return Tempered(at, cold, watched, logliks, replica, *shares, n_gradients)


def _check_powers(powers: Sequence[float]) -> None:
    """Raise ValueError unless they rise from above 0 to at most 1."""
    if len(powers) < 2 or any(not a < b for a, b in zip([0.0, *powers[:-1]], powers, strict=True)) or powers[-1] > 1:
        raise ValueError(f"powers={tuple(powers)}; wanted: two or more rising numbers above 0, the last at most 1")


def _check_counts(**counts: int) -> None:
    """Raise ValueError for one below 1."""
    for name, n in counts.items():
        if n < 1:
            raise ValueError(f"{name}={n}; wanted: at least 1")


def _adapt(compiled: "CompiledPyMCModel", power: float, point: Floats | None, seed: int, steps: int) -> tuple:
    """NUTS at a power: ((its end (dim,), scales (dim,), step size, leapfrog steps), its end, its gradients)."""
    import nutpie

    weak = _start_at(compiled.with_data(**{sampling.POWER: power}), point)
    tree = nutpie.sample(
        weak, draws=10, tune=steps, chains=1, cores=1, seed=seed, target_accept=0.8, save_warmup=True,
        progress_bar=False, store_mass_matrix=True, store_unconstrained=True,
    )  # fmt: skip
    masses = tree["warmup_sample_stats"]["mass_matrix_inv"].values[0]
    masses = masses[np.isfinite(masses).all(axis=1)]  # NaN but where they change
    stats, burnt = tree["sample_stats"], tree["warmup_sample_stats"]
    end = np.array(diagnostics._read_statistic(tree, "unconstrained_draw")[0, -1], dtype=float)
    length = min(float(stats["n_steps"].mean()), _LONGEST)
    kept = end, np.sqrt(masses[-1]), float(stats["step_size"].values[0, -1]), length
    return kept, end, int(stats["n_steps"].sum() + burnt["n_steps"].sum())


def _start_at(compiled: "CompiledPyMCModel", point: Floats | None) -> "CompiledPyMCModel":
    """The model, its chains starting at a point (dim,); None: where nutpie would begin."""
    return compiled if point is None else dataclasses.replace(compiled, initial_point_func=lambda _: point)


def _read_data(compiled: "CompiledPyMCModel", powers: Sequence[float]) -> tuple[NDArray[np.uint8], list]:
    """A compiled model's data at each power as its density takes them, (power, byte), and what owns them.

    The bytes point to arrays that live as long as their owners do.
    """
    owners = [compiled.with_data(**{sampling.POWER: float(power)}) for power in powers]
    return np.stack([owner.user_data.reshape(1).view(np.uint8) for owner in owners]), owners


@numba.njit(error_model="numpy")
def _value(density, q, gradient, out, data):
    """Log density at q (dim,), and its gradient; -inf where it has none."""
    failed = density(q.size, q.ctypes, gradient.ctypes, out.ctypes, data.ctypes)
    return -np.inf if failed else out[0]


@numba.njit(error_model="numpy")
def _move(density, q, data, step, scale, n_leaps, rng):
    """One step of Hamiltonian Monte Carlo from q (dim,), which is changed where it is accepted: whether it was."""
    new, gradient, out = q.copy(), np.empty(q.size), np.empty(1)
    momentum = rng.standard_normal(q.size)  # in units of its sd, as q is in units of `scale`
    before = _value(density, new, gradient, out, data) - 0.5 * (momentum @ momentum)
    value = before
    for _ in range(n_leaps):
        momentum += 0.5 * step * scale * gradient
        new += step * scale * momentum
        value = _value(density, new, gradient, out, data)
        momentum += 0.5 * step * scale * gradient
    accepted = value - 0.5 * (momentum @ momentum) - before > np.log(rng.random())
    if accepted:
        q[:] = new
    return accepted


@numba.njit(error_model="numpy")
def _run(density, points, holds, data, powers, steps, scales, lengths, n_rounds, first, adapts, watch, rng):
    """Rounds of steps and swaps; `points`, `holds` and, while it adapts, `steps` are changed.

    Returns for each round the last power's point, the watched coordinates, log likelihoods and replica at each power,
    steps accepted, swaps (NaN where not tried), and the number of gradients.
    """
    n, dim = points.shape
    cold, seen = np.empty((n_rounds, dim)), np.empty((n_rounds, n, watch.size))
    logliks, replica = np.empty((n_rounds, n)), np.empty((n_rounds, n), dtype=np.int64)
    accepted, swapped = np.empty((n_rounds, n)), np.full((n_rounds, n - 1), np.nan)
    gradients, gradient, out = np.zeros(n_rounds), np.empty(dim), np.empty(1)
    for i in range(n_rounds):
        for k in range(n):
            q, n_leaps = points[holds[k]], 1 + int(rng.random() * 2 * lengths[k])
            step = steps[k] * (0.8 + 0.4 * rng.random())
            accepted[i, k] = _move(density, q, data[k + 1], step, scales[k], n_leaps, rng)
            if adapts:
                steps[k] *= np.exp(0.1 * (accepted[i, k] - _ACCEPT))
            prior = _value(density, q, gradient, out, data[0])
            logliks[i, k] = (_value(density, q, gradient, out, data[k + 1]) - prior) / powers[k]
            gradients[i] += n_leaps + 3
        for k in range((first + i) % 2, n - 1, 2):
            gain = (powers[k + 1] - powers[k]) * (logliks[i, k] - logliks[i, k + 1])
            swapped[i, k] = gain > np.log(rng.random())
            if swapped[i, k]:
                holds[k], holds[k + 1] = holds[k + 1], holds[k]
                logliks[i, k], logliks[i, k + 1] = logliks[i, k + 1], logliks[i, k]
        replica[i] = holds
        for k in range(n):
            seen[i, k] = points[holds[k]][watch]
        cold[i] = points[holds[n - 1]]
    return cold, seen, logliks, replica, accepted, swapped, gradients


@threadpool_limits.wrap(limits=1)
def sample_tempered(
    draws: int = 1000,
    *,
    random_seed: int,
    model: "pm.Model | CompiledPyMCModel | None" = None,
    tune: int = 1000,
    powers: Sequence[float] = POWERS,
    rounds: int = ROUNDS,
    chains: int = 4,
    cores: int = 1,
    target_accept: float = 0.8,
    **quiet: Any,
) -> xr.DataTree:
    """NUTS as by `pm.sample`, its chains starting where a run of parallel tempering was at power 1.

    The run is discarded, and from its places, taken at even distances, come the usual warm-up and draws. So the
    posterior is that of the model, and only where chains begin is chosen: in camps as often as they weigh, as far as
    replicas came round. Chains that share a run cannot contradict it; a second call with another seed can.

    Parameters
    ----------
    draws, tune : int, kept and discarded in each chain
    random_seed : int
    model : pm.Model, by default that of the context, typed or fused; or what `sampling.compile_nuts` makes of it
    powers : floats above 0, rising to 1. Observed variables and potentials are weakened
    rounds : int, of the run; adaptation takes a third as many more
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
        For powers that do not rise to 1, counts below 1, and a model without a likelihood.
    KeyboardInterrupt
        When interrupted before the first chain was finished.

    References
    ----------
    As `temper`.

    Examples
    --------
    A mean that the data know up to its sign. By the prior +2 weighs 55 times what -2 does.

    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import tempering
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu", 1, 1)
    ...     y = pm.Normal("y", mu**2, 1, observed=np.full(50, 4.0))
    >>> tree = tempering.sample_tempered(500, tune=300, model=model, random_seed=1, powers=(0.002, 0.02, 0.2, 1))
    >>> tree["posterior"]["mu"].mean("draw").values.round().tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    check_seed(random_seed)
    unknown = quiet.keys() - {"progressbar", "quiet", "compute_convergence_checks"}
    if unknown:
        raise TypeError(f"unknown: {', '.join(sorted(unknown))}; wanted: options of sample_tempered")
    _check_counts(draws=draws, chains=chains, cores=cores, rounds=rounds)
    _check_powers(powers)
    if powers[-1] != 1:
        raise ValueError(f"powers end at {powers[-1]}; wanted: 1, which is the posterior")
    if model is None or isinstance(model, pm.Model):
        model = sampling.compile_nuts(pm.modelcontext(model))
    if not any(data.name == sampling.POWER for data in getattr(model, "shared_var_keys", ())):
        raise ValueError(
            "the model has no likelihood that could be weakened; wanted: a pm.Model with an observed variable, or what "
            "sampling.compile_nuts makes of it"
        )
    run_seed, *seeds = np.random.SeedSequence(random_seed).generate_state(chains + 1).tolist()
    run = temper(model, seed=run_seed, powers=powers, rounds=rounds)
    _LOGGER.info("warm-up: %s", run)
    points = run.points[np.linspace(0, len(run.points) - 1, chains + 1).astype(int)[1:]]
    settings = {"draws": draws, "tune": max(tune, 1), "target_accept": target_accept}
    done: list[xr.DataTree] = []
    try:
        for first in range(0, chains, cores):
            batch = slice(first, first + cores)
            done += _sample_side_by_side(model, points[batch], seeds[batch], **settings)
            _LOGGER.info("%d of %d chains are done", len(done), chains)
    except KeyboardInterrupt:
        if not done:
            raise
    done += [_blank(done[0])] * (chains - len(done))
    tree = done[0]
    for other in done[1:]:
        tree = sampling.join_chains(tree, other)
    tree.attrs["warm_up"] = str(run)
    return tree


def _sample_side_by_side(
    compiled: "CompiledPyMCModel", points: Floats, seeds: Sequence[int], **settings: Any
) -> list[xr.DataTree]:
    """One chain from each point (chain, dim), all at once."""
    import nutpie

    started = []
    try:
        for point, seed in zip(points, seeds, strict=True):
            options = {"chains": 1, "cores": 1, "seed": seed, "blocking": False, "progress_bar": False} | settings
            started.append(nutpie.sample(_start_at(compiled, point), save_warmup=False, **options))
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
