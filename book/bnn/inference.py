"""Fit a model: ADVI and NUTS, always seeded; save and load the draws."""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

import dask
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pymc.variational import KLqp
from pytensor.graph.replace import clone_replace, vectorize_graph

from bnn.data import check_seed

BACKENDS = ("numba", "c", "jax")
ENGINES = ("nutpie", "pymc", "numpyro", "blackjax")
STARTS = ("random", "zero", "fan-in")
NUTS_BACKENDS = ("numba", "jax")
MAX_DEPTH = 10  # of a tree, in every engine: at most 2**10 - 1 steps for a draw
PROGRESS = "BNN_PROGRESS"  # the environment variable that switches progress off

# what each engine calls the statistics that nutpie has under these names
STATISTICS = {
    "diverging": ("diverging", bool),
    "depth": (None, "int64"),  # see _count_doublings
    "n_steps": ("n_steps", "int64"),
    "energy": ("energy", "float64"),
    "step_size": ("step_size", "float64"),
    "logp": ("lp", "float64"),
    "mean_tree_accept": ("acceptance_rate", "float64"),
}
PACKAGES = {
    "nutpie": ("pymc", "pytensor", "nutpie"),
    "pymc": ("pymc", "pytensor"),
    "numpyro": ("pymc", "pytensor", "jax", "numpyro"),
    "blackjax": ("pymc", "pytensor", "jax", "blackjax"),
}
DIGEST = "bnn_digest"  # the attribute that marks a file of ours


# --- progress


class _Progress:
    """One line about work under way, for whoever watches: in a terminal or a live notebook, gone at the end.

    Used as a context manager. `show` may be called from any thread, as often as you like.
    """

    def __init__(self, wanted=None):
        self._wanted = is_watched() if wanted is None else bool(wanted)
        self._lock = threading.Lock()
        self._last, self._handle = -np.inf, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._lock:
            self._wanted = False  # an engine's thread may still call
            if self._handle is not None:
                # a front end draws nothing for an output without data, not even an empty line
                self._handle.display({}, raw=True, update=True)
            elif self._last > -np.inf:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    def show(self, text, at_once=False):
        """Replace the line by `text`, at most five times a second unless `at_once`."""
        with self._lock:
            if not self._wanted or (not at_once and time.monotonic() - self._last < 0.2):
                return
            self._last = time.monotonic()
            if _is_kernel():
                self._display(text)
            else:
                width = shutil.get_terminal_size().columns - 1
                sys.stderr.write(f"\r\x1b[K{text[:width]}")
                sys.stderr.flush()

    def _display(self, text):
        from IPython.display import DisplayHandle

        shown = self._handle is not None
        self._handle = self._handle or DisplayHandle()
        self._handle.display({"text/plain": text}, raw=True, update=shown)


def _is_kernel():
    """Whether this process is a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def is_watched():
    return os.environ.get(PROGRESS) != "off" and (_is_kernel() or sys.stderr.isatty())


# --- ADVI


@dataclass(frozen=True)
class Advi:
    """A fitted mean-field normal approximation.

    Attributes
    ----------
    approx : PyMC's approximation
    loss : (step,) array, the negative ELBO in nats, estimated at each step from one draw; with minibatches PyMC
        divides it by (points in the data set / points in a batch)
    model : the `pm.Model` it was fitted to
    """

    approx: pm.variational.Approximation
    loss: np.ndarray
    model: pm.Model

    def draw(self, n_draws, *, seed):
        """Independent draws of the weights: dict of name to array (draw, …)."""
        check_seed(seed)
        posterior = self.approx.sample(n_draws, random_seed=seed)["posterior"]
        return {rv.name: posterior[rv.name].values[0] for rv in self.model.free_RVs}


@contextlib.contextmanager
def _quiet():
    """Keep PyMC's progress lines, which carry timings, out of stored outputs; warnings still show."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def fit_advi(
    model, n_steps, *, seed, start="random", start_sd=0.1, beta=1.0, optimizer=None, backend="numba", callbacks=(),
    progress=None,
):  # fmt: skip
    """Mean-field ADVI with PyMC's optimiser (one draw a step, windowed Adagrad) from a narrow start.

    Parameters
    ----------
    model : pm.Model
    n_steps : int, optimisation steps
    seed : int, for the start and for the draws of each step
    start : "random", standard normal means; "zero", all means 0, where a network without biases is stuck at a saddle;
        or "fan-in", for wide layers: means of arrays with two axes or more normal with variance 1 / (first axis, the
        units below), those of others, the biases, 0
    start_sd : float > 0, standard deviation of every weight before the first step. PyMC's own is log(2) = 0.69,
        from which a third of the fits of this book's flat network end in a nearly straight boundary
    beta : float >= 0, weight of the KL divergence in the ELBO. Only 1 aims at the posterior
    optimizer : one of PyMC's, such as `pm.adam(learning_rate=0.002)`; default its windowed Adagrad
    backend : "numba", "c" (needs a compiler) or "jax"
    callbacks : functions of (approx, losses, step), called after each step
    progress : as in `sample_nuts`

    Returns
    -------
    Advi
        After Ctrl-C, or a callback's StopIteration, as far as it came, with a warning that says so.

    Raises
    ------
    ValueError
        For an argument out of range.
    KeyboardInterrupt
        When interrupted before the first step was finished.

    Source: Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18.
    """
    check_seed(seed)
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}; wanted: one of {', '.join(BACKENDS)}")
    if start not in STARTS:
        raise ValueError(f"start={start!r}; wanted: {', '.join(map(repr, STARTS[:-1]))} or {STARTS[-1]!r}")
    if not start_sd > 0:
        raise ValueError(f"start_sd={start_sd}; wanted: a standard deviation above 0")
    if not 0 <= beta < np.inf:
        raise ValueError(f"beta={beta}; wanted: a weight of at least 0; 1 is Bayes' rule")
    if n_steps < 1:
        raise ValueError(f"n_steps={n_steps}; wanted: at least 1")
    start_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    rng = np.random.default_rng(start_seed)
    shapes = {name: value.shape for name, value in model.initial_point().items()}
    scale = {name: _scale_start(start, shape) for name, shape in shapes.items()}
    means = {name: scale[name] * rng.normal(size=shape) for name, shape in shapes.items()}
    sds = {name: np.full(int(np.prod(shape)), start_sd) for name, shape in shapes.items()}  # PyMC wants them flat
    with _quiet(), _Progress(progress) as bar:
        bar.show("ADVI: compiling", at_once=True)

        def report(approx, losses, step):
            bar.show(f"ADVI: step {step:,} of {n_steps:,}, loss {np.mean(losses[-100:]):.1f} nats")

        normal = pm.MeanField(model=model, start=means, start_sigma=sds, random_seed=int(fit_seed))
        options = {} if optimizer is None else {"obj_optimizer": optimizer}
        approx = pm.fit(
            n_steps, method=KLqp(normal, beta=beta), model=model, backend=backend, callbacks=[*callbacks, report],
            progressbar=False, **options,
        )  # fmt: skip
    loss = np.asarray(approx.hist)
    if len(loss) == 0:  # PyMC returns an interrupted fit without a word
        raise KeyboardInterrupt
    if len(loss) < n_steps:
        warnings.warn(f"Interrupted: {len(loss):,} of {n_steps:,} steps were taken.", stacklevel=2)
    return Advi(approx, loss, model)


def _scale_start(start, shape):
    """Standard deviation of the means that `fit_advi` starts from."""
    if start == "fan-in":
        return shape[0] ** -0.5 if len(shape) > 1 else 0.0
    return 1.0 if start == "random" else 0.0


# --- NUTS


@dataclass(frozen=True)
class CompiledNuts:
    """A model compiled for nutpie, which takes other data without being compiled again. Made by `compile_nuts`.

    Attributes
    ----------
    model : the `pm.Model` that was compiled
    backend : "numba" or "jax"
    data : dict of name to array, the data that `sample_nuts` will condition on
    compile_seconds : float, wall time that compiling took
    """

    model: pm.Model
    backend: str
    data: dict = field(repr=False)
    compile_seconds: float = field(repr=False)
    _nutpie: object = field(repr=False)
    _cache: dict = field(repr=False, default_factory=dict)  # shared by all copies of one compiled model

    def with_data(self, **arrays):
        """The same compiled model with other data; nothing is compiled.

        Parameters
        ----------
        arrays : the model's `pm.Data` by name, such as ``X`` and ``labels``. What is not named stays. The length of
            an axis may change where no free variable has it and all data that share it agree.

        Returns
        -------
        CompiledNuts

        Raises
        ------
        ValueError
            For an unknown name, a wrong number of axes, a length that the model cannot take, masked values, NaN or
            infinity, values that the data's type cannot hold, and points of another number without their ``n_obs``.
        """
        data = self.data | {name: self._check(name, values) for name, values in arrays.items()}
        lengths = _measure_dims(self.model, data)
        if hasattr(self.model, "activation") and "n_obs" in data and data["n_obs"].max() != lengths["obs"]:
            longest, length = data["n_obs"].max(), lengths["obs"]
            raise ValueError(
                f"n_obs is at most {longest}, X has {length} along 'obs'; wanted: the longest group as long as X, all "
                "given together"
            )
        known = self._cache["compiled data"]  # data that the posterior does not depend on were dropped in compiling
        used = {name: values for name, values in data.items() if name in known}
        return replace(self, data=data, _nutpie=self._nutpie.with_data(**used))

    def _check(self, name, values):
        """`values` as an array of the data's type, or the ValueError that `with_data` documents."""
        if name not in self.data:
            raise ValueError(f"no data named {name!r}; wanted: {', '.join(self.data) or 'a model with pm.Data'}")
        old, dims = self.data[name], self.model.named_vars_to_dims.get(name, ())
        if np.ma.is_masked(values):
            raise ValueError(f"{name} holds masked values; wanted: {old.dtype} without")
        try:
            values = np.asarray(values)
            new = values.astype(old.dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} is no array: {error}; wanted: {old.dtype}") from None
        if new.ndim != old.ndim:
            named = f" ({', '.join(map(str, dims))})" if dims else ""
            raise ValueError(f"{name} has {new.ndim} axes; wanted: {old.ndim}{named}")
        if not np.isfinite(new).all():
            raise ValueError(f"{name} holds NaN or infinite numbers; wanted: finite numbers")
        if np.issubdtype(old.dtype, np.integer) and (new != values).any():
            raise ValueError(f"{name} holds {values[new != values].flat[0]}; wanted: {old.dtype}")
        if not dims and new.shape != old.shape:
            raise ValueError(f"{name} has shape {new.shape}; wanted: {old.shape}, because its axes have no names")
        return new


def _measure_dims(model, data):
    """The length of every named dimension of the data, as dict of str to int; ValueError where they disagree."""
    free = {dim for rv in model.free_RVs for dim in model.named_vars_to_dims.get(rv.name, ())}
    found = {}
    for name, values in data.items():
        for dim, length in zip(model.named_vars_to_dims.get(name, ()), values.shape, strict=False):
            if dim in free and length != (fixed := int(model.dim_lengths[dim].eval())):
                raise ValueError(f"{name} has {length} along {dim!r}; wanted: {fixed}, the model has variables of it")
            other, before = found.setdefault(dim, (name, length))
            if length != before:
                raise ValueError(
                    f"{name} has {length} along {dim!r}, {other} has {before}; wanted: one length, both given together"
                )
    return {dim: length for dim, (_, length) in found.items()}


def compile_nuts(model, backend="numba"):
    """Compile a model for nutpie once, to sample it with several data sets or seeds.

    Parameters
    ----------
    model : pm.Model. Its data are copied: `pm.set_data` on it changes nothing later
    backend : "numba" or "jax"

    Returns
    -------
    CompiledNuts

    Raises
    ------
    ValueError
        For an unknown backend, or no `pm.Model`.
    """
    import nutpie

    if backend not in NUTS_BACKENDS:
        raise ValueError(f"backend={backend!r}; wanted: one of {', '.join(NUTS_BACKENDS)}")
    if not isinstance(model, pm.Model):
        raise ValueError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    start = time.perf_counter()
    # Deterministic variables are computed after sampling: nutpie would fix their shapes, which may follow the data.
    names = [rv.name for rv in model.free_RVs]
    compiled = nutpie.compile_pymc_model(model, backend=backend, var_names=names, freeze_model=False)
    data = {variable.name: np.array(variable.get_value()) for variable in model.data_vars}
    return CompiledNuts(
        model, backend, data, time.perf_counter() - start, compiled, {"compiled data": _list_data(compiled)}
    )


def _list_data(compiled):
    """Names of the data that a model compiled by nutpie reads; its two backends keep them in different places."""
    variables = getattr(compiled, "shared_var_keys", None)
    return set(compiled._shared_data) if variables is None else {variable.name for variable in variables}


def sample_nuts(
    model, *, seed, engine="nutpie", chains=4, draws=1000, tune=1000, target_accept=0.8, progress=None
):  # fmt: skip
    """NUTS, chain after chain on one core.

    Ctrl-C, or a notebook's stop button, keeps the draws so far with nutpie and PyMC, and warns of it: the largest block
    of chains of one length. With NumPyro and BlackJAX it stops everything.

    Parameters
    ----------
    model : pm.Model; or what `compile_nuts` made of it, for nutpie
    seed : int
    engine : "nutpie", "pymc", "numpyro" or "blackjax"
    chains, draws, tune : int, `draws` kept and `tune` discarded in each chain
    target_accept : float between 0 and 1
    progress : bool, show a line about it; None: in a terminal and in a live notebook, unless the environment variable
        BNN_PROGRESS is "off". It is gone at the end

    Returns
    -------
    DataTree
        With ``posterior`` (chain, draw, …), whose attribute ``activation`` is that of a grouped network of `models`,
        for `predict`; and ``sample_stats``, which has the same names for each engine:
        ``diverging``, ``depth`` (complete doublings of the tree), ``n_steps`` (gradients), ``energy`` (nutpie adds a
        constant), ``step_size``, ``logp`` (of the transformed variables) and ``mean_tree_accept``.
        Attributes: ``engine``, ``seed``, ``chains``, ``draws``, ``tune`` and ``target_accept`` as asked; ``max_depth``;
        ``interrupted`` (0 or 1); versions, such as ``pymc_version``; ``created_by``; and for sampling
        ``wall_seconds`` and ``cpu_seconds`` (this process and its children). With NumPyro these include compiling; the
        other engines have ``compile_seconds`` (wall) for it, 0 for a compiled model.

    Raises
    ------
    ValueError
        For an argument out of range, and a compiled model with another engine than nutpie.
    KeyboardInterrupt
        When interrupted before there was a draw to keep.

    Source: Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15.
    """
    check_seed(seed)
    if engine not in ENGINES:
        raise ValueError(f"engine={engine!r}; wanted: one of {', '.join(ENGINES)}")
    if isinstance(model, CompiledNuts) and engine != "nutpie":
        raise ValueError(
            f"engine={engine!r} with a model compiled for nutpie; wanted: the pm.Model, or engine='nutpie'"
        )
    if not isinstance(model, CompiledNuts | pm.Model):
        raise ValueError(f"model is a {type(model).__name__}; wanted: a pm.Model, or what compile_nuts made of it")
    if not 0 < target_accept < 1:
        raise ValueError(f"target_accept={target_accept}; wanted: between 0 and 1, both excluded")
    if tune < 0:
        raise ValueError(f"tune={tune}; wanted: at least 0")
    for name, value in {"chains": chains, "draws": draws}.items():
        if value < 1:
            raise ValueError(f"{name}={value}; wanted: at least 1")
    run = {"nutpie": _run_nutpie, "pymc": _run_pymc, "numpyro": _run_numpyro, "blackjax": _run_blackjax}[engine]
    asked = {"seed": int(seed), "chains": int(chains), "draws": int(draws), "tune": int(tune)}
    asked |= {"target_accept": float(target_accept)}
    with _quiet(), _Progress(progress) as bar:
        bar.show(f"{engine}: compiling", at_once=True)
        found = run(model, bar=bar, **asked)
    interrupted = found.posterior.sizes["chain"] * found.posterior.sizes["draw"] < chains * draws
    if interrupted:
        kept = found.posterior.sizes
        warnings.warn(
            f"Interrupted: {kept['draw']:,} of {draws:,} draws of {kept['chain']} of {chains} chains are kept.",
            stacklevel=2,
        )
    attributes = {"created_by": "bnn", "engine": engine, **asked, "max_depth": MAX_DEPTH}
    attributes |= {"interrupted": int(interrupted), **found.clock}
    attributes |= {f"{package}_version": version(package) for package in PACKAGES[engine]}
    tree = xr.DataTree.from_dict({"posterior": found.posterior, "sample_stats": found.stats})
    tree.attrs = attributes
    return tree


def sample_groups(model, X, y, *, seed, **options):
    """NUTS for each category by itself, with a model that is compiled once.

    Parameters
    ----------
    model : a `models.unpooled_bnn`, `models.informed_bnn` or `models.flat_bnn` of one category, or what
        `compile_nuts` made of it
    X : (group, obs, feature) array, or a list of (obs, feature) arrays
    y : (group, obs) array of 0 and 1, or a list of (obs,) arrays
    seed : int; each category gets a seed derived from it
    options : as in `sample_nuts`

    Returns
    -------
    list of DataTree, one for each category
    """
    check_seed(seed)
    compiled = model if isinstance(model, CompiledNuts) else compile_nuts(model)
    grouped = compiled.data["X"].ndim == 3
    if grouped and compiled.data["X"].shape[0] != 1:
        raise ValueError(f"model has {compiled.data['X'].shape[0]} groups; wanted: one, sampled for each category")
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} groups, y has {len(y)}; wanted: labels for each group")
    trees = []
    seeds = np.random.SeedSequence(seed).generate_state(len(X))
    for points, labels, group_seed in zip(X, y, seeds, strict=True):
        arrays = {"X": points, "labels": labels}
        if grouped:
            arrays = {"X": points[None], "labels": labels[None], "n_obs": [len(labels)]}
        trees.append(sample_nuts(compiled.with_data(**arrays), seed=int(group_seed), **options))
    return trees


@dataclass(frozen=True)
class _Run:
    """What an engine found: two data sets, and seconds by name."""

    posterior: xr.Dataset
    stats: xr.Dataset
    clock: dict


class _Clock:
    """Wall and CPU time since it was made, compiling apart from sampling where somebody says `compiled`."""

    def __init__(self):
        self._times = [self._read()]
        self._ends = None

    @staticmethod
    def _read():
        own = os.times()
        return time.perf_counter(), own.user + own.system + own.children_user + own.children_system

    def compiled(self):
        """Compiling is over. Only the first call counts."""
        if len(self._times) == 1:
            self._times.append(self._read())

    def stop(self):
        """Sampling is over: seconds by name."""
        if self._ends is None:
            self._ends = self._read()
        start, end = self._times[-1], self._ends
        seconds = {"wall_seconds": end[0] - start[0], "cpu_seconds": end[1] - start[1]}
        if len(self._times) == 2:
            seconds["compile_seconds"] = self._times[1][0] - self._times[0][0]
        return seconds


def _run_nutpie(model, *, seed, chains, draws, tune, target_accept, bar):
    import nutpie

    clock = _Clock()
    compiled = model if isinstance(model, CompiledNuts) else compile_nuts(model)
    if compiled is not model:
        clock.compiled()

    def report(states):
        done = sum(state.finished_draws for state in states)
        divergences = sum(state.divergences for state in states)
        bar.show(_describe("nutpie", done, chains, draws, tune, divergences))

    tree = nutpie.sample(
        compiled._nutpie, draws=draws, tune=max(tune, 1), chains=chains, cores=1, seed=_derive_seed(seed),
        target_accept=target_accept, maxdepth=MAX_DEPTH, progress_bar=False, progress_callback=report,
    )  # fmt: skip
    seconds = {"compile_seconds": 0.0} | clock.stop()
    # nutpie fills what an interrupted chain lacks with NaN
    lengths = np.isfinite(tree["sample_stats"]["energy"].values).sum(axis=1)
    names = [rv.name for rv in compiled.model.free_RVs]
    return _assemble(
        compiled.model,
        {name: tree["posterior"][name].values for name in names},
        {name: tree["sample_stats"][name].values for name in STATISTICS},
        lengths,
        seconds,
        compiled=compiled,
    )


def _derive_seed(seed):
    """The seed that `pm.sample` would hand to an engine, so that both ways in give the same draws."""
    return int(np.random.default_rng(seed).spawn(1)[0].integers(2**30))


def _run_pymc(model, *, seed, chains, draws, tune, target_accept, bar):
    clock, seen, divergences = _Clock(), {}, 0

    def report(trace, draw):
        nonlocal divergences
        clock.compiled()
        # PyMC goes on with the next chain when one is interrupted
        if any(seen.get(chain, 0) < draws + tune for chain in range(draw.chain)):
            raise KeyboardInterrupt
        seen[draw.chain] = seen.get(draw.chain, 0) + 1
        divergences += not draw.tuning and any(stats.get("diverging", False) for stats in draw.stats)
        bar.show(_describe("pymc", sum(seen.values()), chains, draws, tune, divergences))

    try:
        tree = _sample_with_pymc(model, "pymc", seed, chains, draws, tune, target_accept, callback=report)
    except ValueError as error:
        if "Not enough samples" in str(error):  # no chain got through its tuning
            raise KeyboardInterrupt from None
        raise
    return _read_tree(model, tree, clock.stop())


def _run_numpyro(model, *, seed, chains, draws, tune, target_accept, bar):
    bar.show(f"numpyro: compiling, then {chains} chains of {tune:,} + {draws:,} draws", at_once=True)
    clock = _Clock()
    options = {"nuts": {"chain_method": "sequential"}}
    with _insist_on_interrupts():
        tree = _sample_with_pymc(model, "numpyro", seed, chains, draws, tune, target_accept, **options)
    tree["sample_stats"]["lp"] *= -1  # PyMC passes on NumPyro's potential energy under this name
    return _read_tree(model, tree, clock.stop())


def _sample_with_pymc(model, engine, seed, chains, draws, tune, target_accept, **options):
    return pm.sample(
        draws=draws, tune=tune, chains=chains, cores=1, random_seed=seed, model=model, nuts_sampler=engine,
        target_accept=target_accept, progressbar=False, quiet=True, compute_convergence_checks=False, **options,
    )  # fmt: skip


def _read_tree(model, tree, seconds):
    """The result of `pm.sample`, in our shape."""
    names = [rv.name for rv in [*model.free_RVs, *model.deterministics]]
    draws = {name: tree["posterior"][name].values for name in names}
    stats = {name: tree["sample_stats"][theirs].values for name, (theirs, _) in STATISTICS.items() if theirs}
    stats["depth"] = _count_doublings(stats["n_steps"])
    n_chains, n_draws = tree["posterior"].sizes["chain"], tree["posterior"].sizes["draw"]
    return _assemble(model, draws, stats, np.full(n_chains, n_draws), seconds, chains=tree["posterior"]["chain"].values)


def _run_blackjax(model, *, seed, chains, draws, tune, target_accept, bar):
    """BlackJAX by itself: PyMC 6.4 hands BlackJAX 1.7 an argument that it no longer has."""
    import jax
    from pymc.initial_point import make_initial_point_fn
    from pymc.sampling.jax import get_jaxified_graph

    clock, seed = _Clock(), _derive_seed(seed)
    point = make_initial_point_fn(model=model, jitter_rvs=set(model.free_RVs), return_transformed=True)
    points = [point(int(s)) for s in np.random.default_rng(seed).integers(2**30, size=chains)]
    starts = [[jax.numpy.asarray(point[variable.name]) for variable in model.value_vars] for point in points]
    keys = jax.random.split(jax.random.PRNGKey(seed), chains)
    run_chain = _make_blackjax_chain(model, draws, tune, target_accept)
    variables = [*model.free_RVs, *model.deterministics]
    values, stats = [], []
    with _insist_on_interrupts():
        run_chain = jax.jit(run_chain).lower(keys[0], starts[0]).compile()
        expand = get_jaxified_graph(model.value_vars, model.replace_rvs_by_values(variables))
        expand = jax.jit(jax.vmap(expand))
        clock.compiled()
        for chain in range(chains):
            bar.show(f"blackjax: chain {chain + 1} of {chains}, {tune:,} + {draws:,} draws", at_once=True)
            positions, found = run_chain(keys[chain], starts[chain])
            values.append([np.asarray(value) for value in expand(*positions)])
            stats.append({name: np.asarray(value) for name, value in found.items()})
    seconds = clock.stop()
    values = {rv.name: np.stack(of_chains) for rv, of_chains in zip(variables, zip(*values, strict=True), strict=True)}
    stats = {name: np.stack([found[name] for found in stats]) for name in stats[0]}
    stats["depth"] = _count_doublings(stats["n_steps"])
    return _assemble(model, values, stats, [draws] * chains, seconds)


def _make_blackjax_chain(model, draws, tune, target_accept):
    """A function of (key, start) that JAX can compile: one tuned chain, its draws and their statistics."""
    import blackjax
    import jax
    from blackjax.adaptation.base import get_filter_adapt_info_fn
    from pymc.sampling.jax import get_jaxified_logp

    logp = get_jaxified_logp(model)
    adapt = blackjax.window_adaptation(
        blackjax.nuts, logp, target_acceptance_rate=target_accept, adaptation_info_fn=get_filter_adapt_info_fn()
    )

    def run_chain(key, start):
        tune_key, draw_key = jax.random.split(key)
        (state, tuned), _ = adapt.run(tune_key, start, num_steps=max(tune, 1))
        step = blackjax.nuts(logp, **tuned).step

        def draw(state, key):
            state, info = step(key, state)
            stats = {
                "diverging": info.is_divergent,
                "n_steps": info.num_integration_steps,
                "energy": info.energy,
                "step_size": tuned["step_size"],
                "logp": state.logdensity,
                "mean_tree_accept": info.acceptance_rate,
            }
            return state, (state.position, stats)

        return jax.lax.scan(draw, state, jax.random.split(draw_key, draws))[1]

    return run_chain


def _count_doublings(n_steps):
    """How often a tree was doubled, as nutpie counts: the other engines add the doubling that was broken off."""
    return np.floor(np.log2(n_steps + 1))


@contextlib.contextmanager
def _insist_on_interrupts():
    """Raise KeyboardInterrupt at the end if it was lost: Python drops it where JAX collects garbage."""
    handle, lost = signal.getsignal(signal.SIGINT), []
    if not callable(handle) or threading.current_thread() is not threading.main_thread():
        yield  # signals are ignored, as in a shell's background, or go elsewhere
        return

    def note(*signalled):
        lost.append(True)
        handle(*signalled)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handle)
    if lost:
        raise KeyboardInterrupt


def _describe(engine, done, chains, draws, tune, divergences):
    """The progress line: `done` counts the draws of all chains, tuning included."""
    chain = min(done // (tune + draws), chains - 1)
    within = done - chain * (tune + draws)
    stage = "tuning" if within <= tune else "sampling"
    share = done / (chains * (tune + draws))
    return f"{engine}: {share:4.0%}, chain {chain + 1} of {chains} {stage}, {divergences} divergences"


def _assemble(model, draws, stats, lengths, seconds, *, compiled=None, chains=None):
    """The block of finished draws as data sets with the model's dimensions.

    Parameters
    ----------
    draws, stats : dict of name to (chain, draw, …) array
    lengths : (chain,) finished draws of each chain
    seconds : dict, the clock's
    compiled : CompiledNuts, where deterministic variables are still to be computed
    chains : (chain,) numbers of the chains, if not 0, 1, …

    Raises
    ------
    KeyboardInterrupt
        When no chain has a finished draw: only an interruption does that.
    """
    kept, length = _choose_block(np.asarray(lengths))
    if length == 0:
        raise KeyboardInterrupt
    draws = {name: values[kept, :length] for name, values in draws.items()}
    stats = {name: stats[name][kept, :length].astype(kind) for name, (_, kind) in STATISTICS.items()}
    sizes = {}
    if compiled is not None:
        draws |= _compute_deterministics(compiled, draws)
        sizes = _measure_dims(model, compiled.data)
    frame = {"chain": kept if chains is None else np.asarray(chains)[kept], "draw": np.arange(length)}
    stats = xr.Dataset({name: (("chain", "draw"), values) for name, values in stats.items()}, frame)
    named, coords = {}, {}
    for name, values in draws.items():
        dims = model.named_vars_to_dims.get(name) or [f"{name}_dim_{i}" for i in range(values.ndim - 2)]
        dims = [dim if dim is not None else f"{name}_dim_{i}" for i, dim in enumerate(dims)]
        named[name] = (("chain", "draw", *dims), values)
        for dim, size in zip(dims, values.shape[2:], strict=True):
            coords[dim] = _label(model, dim, size, sizes.get(dim, size))
    activation = getattr(model, "activation", None)  # of a network made by `models`
    attributes = {} if activation is None else {"activation": activation}
    return _Run(xr.Dataset(named, frame | coords, attributes), stats, seconds)


def _label(model, dim, size, size_of_data):
    """The coordinates of a dimension: the model's, unless it has none or the data have grown or shrunk."""
    labels = model.coords.get(dim)
    if labels is None or len(labels) != size or size_of_data != size:
        return np.arange(size)
    return np.array(labels)


def _choose_block(lengths):
    """The chains, and how many draws of each, that hold the most draws; of equals, the most chains.

    Parameters
    ----------
    lengths : (chain,) array of ints

    Returns
    -------
    (kept,) array of chain numbers in ascending order, int
    """
    order = np.argsort(-lengths, kind="stable")
    sizes = lengths[order] * np.arange(1, len(lengths) + 1)
    n_chains = len(sizes) - np.argmax(sizes[::-1])
    return np.sort(order[:n_chains]), int(lengths[order[n_chains - 1]])


def _compute_deterministics(compiled, draws):
    """The deterministic variables of a compiled model for its data: dict of name to (chain, draw, …) array."""
    model = compiled.model
    if not model.deterministics:
        return {}
    if "expand" not in compiled._cache:
        compiled._cache["expand"] = _compile_deterministics(model)
    shape = next(iter(draws.values())).shape[:2]
    flat = [draws[rv.name].reshape(-1, *draws[rv.name].shape[2:]) for rv in model.free_RVs]
    found = compiled._cache["expand"](*flat, *compiled.data.values())
    values = {}
    for variable, value in zip(model.deterministics, found, strict=True):
        if value.ndim == variable.ndim:  # it does not depend on the draws
            value = np.broadcast_to(value, (len(flat[0]), *value.shape))
        values[variable.name] = value.reshape(*shape, *value.shape[1:])
    return values


def _compile_deterministics(model):
    """A function of the free variables (draw, …) and the data that gives the deterministic variables."""
    batches = {rv: pt.tensor(rv.name, dtype=rv.dtype, shape=(None, *rv.type.shape)) for rv in model.free_RVs}
    data = {variable: pt.tensor(dtype=variable.dtype, shape=(None,) * variable.ndim) for variable in model.data_vars}
    observed = {rv: model.rvs_to_values[rv] for rv in model.observed_RVs}
    outputs = vectorize_graph(list(model.deterministics), batches | observed)
    outputs = clone_replace(outputs, data)  # afterwards, because observed values may be data themselves
    # all draws go through at once, so NumPy is fast, and compiling would take longer than this ever does
    mode = pytensor.compile.mode.Mode(linker="py", optimizer="fast_compile")
    return pytensor.function([*batches.values(), *data.values()], outputs, mode=mode, on_unused_input="ignore")


# --- save and load


def save(tree, path):
    """Write a result into a NetCDF file, all of it or nothing: what stood there before stays until the end.

    Parameters
    ----------
    tree : DataTree, such as `sample_nuts` returns
    path : str or Path; its folder must exist

    Raises
    ------
    ValueError
        For something that NetCDF cannot hold exactly, such as an attribute None.
    FileNotFoundError
        When the folder does not exist.
    OSError
        When the disk is full.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no folder {path.parent}; wanted: one that exists, to save {path.name} in")
    digest = _digest_tree(tree)
    marked = tree.copy()
    marked.attrs = tree.attrs | {DIGEST: digest}
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        try:
            # not straight into the file: on a full disk HDF5 takes the whole process down with it
            # (nor with a lock of Dask's, which a worker would ask for, and which knows files only)
            with dask.config.set(scheduler="synchronous"):
                content = marked.to_netcdf(engine="h5netcdf")
            Path(part).write_bytes(content)
            exact = _digest_tree(_read(part)) == digest
        except (TypeError, ValueError) as error:
            raise ValueError(f"the result cannot be saved: {error}; wanted: numbers and text") from error
        if not exact:
            raise ValueError(
                "the result would not come back as it is; wanted: numbers and text, in arrays and attributes"
            )
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(part, 0o644)
        os.replace(part, path)
    finally:
        Path(part).unlink(missing_ok=True)


def load(path, *, model=None):
    """Read what `save` wrote.

    Parameters
    ----------
    path : str or Path
    model : pm.Model that the draws should come from; names and shapes of its variables are compared

    Returns
    -------
    DataTree
        In memory; the file is closed.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When the file is not NetCDF, damaged, not written by `save`, or holds draws of another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}; wanted: one that bnn.inference.save wrote")
    with open(path, "rb") as file:
        if file.read(8) != b"\x89HDF\r\n\x1a\n":
            raise ValueError(f"{path} is no NetCDF file; wanted: one that bnn.inference.save wrote")
    again = "sample again, or fetch the file again"
    try:
        tree = _read(path)
    except Exception as error:  # whatever h5py, h5netcdf and xarray raise for a damaged file
        raise ValueError(f"{path} is cut off or damaged ({type(error).__name__}); {again}") from error
    if DIGEST not in tree.attrs:
        raise ValueError(f"{path} was not written by bnn; wanted: one that bnn.inference.save wrote")
    digest = tree.attrs.pop(DIGEST)
    if _digest_tree(tree) != digest:
        raise ValueError(f"{path} is damaged: its contents do not match their digest; {again}")
    if model is not None:
        _check_model(path, tree, model)
    return tree


def _read(path):
    """A NetCDF file as a DataTree in memory, with attributes and text as Python has them."""
    with xr.open_datatree(path, engine="h5netcdf", decode_times=False) as file:
        tree = file.load().copy()
    for node in tree.subtree:
        node.attrs = {name: _simplify(value) for name, value in node.attrs.items()}
        for variable in node.variables.values():
            variable.attrs = {name: _simplify(value) for name, value in variable.attrs.items()}
            variable.encoding = {}
        _restore_text(node)
    return tree


def _restore_text(node):
    """Give coordinates of text NumPy's type for it, which NetCDF does not have."""
    data = node.to_dataset(inherit=False)
    text = {name: coord.astype(str) for name, coord in data.coords.items() if coord.dtype == object}
    if text:
        node.dataset = data.assign_coords(text)


def _simplify(value):
    """An attribute as a plain number, string or list."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _digest_tree(tree):
    """sha256 over names, dimensions, types, values and attributes of all groups, in hexadecimal."""
    digest = hashlib.sha256()

    def add(*things):
        digest.update(json.dumps(things).encode())

    for node in sorted(tree.subtree, key=lambda node: node.path):
        data = node.to_dataset(inherit=False)
        add("group", node.path, _list_attributes(node.attrs))
        for name, variable in sorted(data.variables.items()):
            values = np.ascontiguousarray(variable.values)
            add(name, variable.dims, values.shape, name in data.coords, _list_attributes(variable.attrs))
            if values.dtype.kind in "OUT":
                add("text", values.tolist())
            else:
                add(values.dtype.str)
                digest.update(values.tobytes())
    return digest.hexdigest()


def _list_attributes(attributes):
    """Attributes in the order of their names; ValueError for one that is neither number nor text nor a list of them."""
    listed = []
    for name, value in sorted(attributes.items()):
        if name == DIGEST:
            continue
        value = _simplify(value)
        parts = value if isinstance(value, list | tuple) else [value]
        if any(isinstance(part, bool) or not isinstance(part, int | float | str) for part in parts):
            raise ValueError(f"attribute {name}={value!r} cannot be saved; wanted: numbers or text (0 or 1 for a bool)")
        listed.append((name, value))
    return listed


def _check_model(path, tree, model):
    """Raise ValueError unless the posterior in `tree` has the variables of `model`, in their shapes."""
    held = {name: values.shape[2:] for name, values in tree["posterior"].data_vars.items()}
    shapes = model.eval_rv_shapes()
    free = {rv.name: tuple(int(n) for n in shapes[rv.name]) for rv in model.free_RVs}
    known = {*free, *(variable.name for variable in model.deterministics)}
    complaints = [f"{name} is missing" for name in free if name not in held]
    complaints += [f"{name} is not in the model" for name in held if name not in known]
    complaints += [
        f"{name} has shape {held[name]}, in the model {shape}"
        for name, shape in free.items()
        if name in held and held[name] != shape
    ]
    if complaints:
        raise ValueError(
            f"{path} holds draws of another model: {'; '.join(complaints)}; wanted: the model it was drawn from"
        )
