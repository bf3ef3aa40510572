"""Samplers and ADVI with a seed: more chains until the verdict holds, and models that are compiled once."""

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pymc as pm
import pytensor
import xarray as xr
from numpy.typing import ArrayLike
from pymc.variational import KLqp
from threadpoolctl import threadpool_limits

from hbnn import diagnostics
from hbnn._checks import check_data, check_seed
from hbnn._types import Array, Floats, Named

if TYPE_CHECKING:
    from nutpie.compile_pymc import CompiledPyMCModel

    ONE_CORE: dict[str, Any]

_APART = 1.1  # R-hat
_BACKENDS = ("numba", "c", "jax")
_STARTS = ("random", "zero", "fan-in")
_PROGRESS = "BNN_PROGRESS"  # the environment variable that switches progress off


def is_watched() -> bool:
    """Whether a progress bar would be seen: in a terminal or a live notebook, unless BNN_PROGRESS is "off"."""
    ipython = sys.modules.get("IPython")
    is_kernel = ipython is not None and hasattr(ipython.get_ipython(), "kernel")
    return os.environ.get(_PROGRESS) != "off" and (is_kernel or sys.stderr.isatty())


if not TYPE_CHECKING:

    def __getattr__(name):
        """`ONE_CORE`, for `pm.sample`: four chains, one after the other; made on access, as `is_watched` may change.
        PyMC's own convergence check is of raw weights, which are not identified.
        """
        if name != "ONE_CORE":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        watched = is_watched()
        return {"chains": 4, "cores": 1, "progressbar": watched, "quiet": True, "compute_convergence_checks": False}


# --- ADVI


@dataclass(frozen=True)
class Advi:
    """A fitted mean-field normal approximation.

    Attributes
    ----------
    approx : pm.variational.Approximation
    loss : array, shape (step,)
        The negative ELBO in nats, estimated at each step from its draws; with minibatches PyMC divides it by (points in
        the data set / points in a batch).
    model : pm.Model
        The one that it was fitted to.

    Examples
    --------
    Goes on from `fit_advi`.

    >>> advi.loss.shape  # one number for each step
    (2000,)
    >>> advi.draw(100, seed=2)["mu"].shape
    (100,)
    """

    approx: pm.variational.Approximation
    loss: Floats
    model: pm.Model

    def draw(self, n_draws: int, *, seed: int) -> dict[str, Array]:
        """Independent draws of the unknowns, (draw, …) each."""
        check_seed(seed)
        posterior = self.approx.sample(n_draws, random_seed=seed)["posterior"]
        return {rv.name: posterior[rv.name].values[0] for rv in self.model.free_RVs}


def fit_advi(
    model: pm.Model,
    n_steps: int,
    *,
    seed: int,
    start: Literal["random", "zero", "fan-in"] = "random",
    start_sd: float = 0.1,
    beta: float = 1.0,
    n_mc: int = 1,
    optimizer: Callable[..., Any] | float | None = None,
    backend: Literal["numba", "c", "jax"] = "numba",
    callbacks: Sequence[Callable[..., Any]] = (),
) -> Advi:
    """Mean-field ADVI from a narrow start, with PyMC's optimiser or with steps that shrink to nothing.

    By default a step is PyMC's own, one draw and windowed Adagrad, which often stops short of the best normals without
    a sign in its loss. With several draws a step and a falling rate the fit converges: on the book's flat network,
    4,000 steps with ``n_mc=16, optimizer=0.03``.

    Parameters
    ----------
    model : pm.Model
    n_steps : int
    seed : int
        For the start and for the draws of each step.
    start : {"random", "zero", "fan-in"}
        Standard normal means; all means 0, where a network without biases is stuck at a saddle; or, for wide layers,
        means of arrays with two axes or more normal with variance 1 / (first axis, the units below), and those of
        others, the biases, 0.
    start_sd : float
        Standard deviation of every weight before the first step. PyMC's own is log(2) = 0.69, from which a third of the
        fits of the book's flat network end in a nearly straight boundary.
    beta : float
        Weight of the KL divergence in the ELBO. Only 1 aims at the posterior.
    n_mc : int
        Draws for each step, PyMC's `obj_n_mc`.
    optimizer : callable or float, optional
        One of PyMC's, such as `pm.adam(learning_rate=0.002)`; or the rate at which Adam begins, and which falls to 0
        along half a cosine. Default: PyMC's windowed Adagrad.
    backend : {"numba", "c", "jax"}
        "c" needs a compiler.
    callbacks : sequence of callable
        Functions of (approx, losses, step), called after each step.

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

    References
    ----------
    Kucukelbir et al. (2017), Automatic Differentiation Variational Inference, JMLR 18.

    Examples
    --------
    Three numbers with noise 1, whose mean has the prior N(0, 1): its posterior is N(1.5, 0.5²).

    >>> import pymc as pm
    >>> from hbnn import sampling
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     y = pm.Normal("y", mu, 1, observed=[1.0, 2.0, 3.0])
    >>> advi = sampling.fit_advi(model, 2000, seed=1, optimizer=0.02)
    >>> draws = advi.draw(1000, seed=2)["mu"]
    >>> bool(abs(draws.mean() - 1.5) < 0.1), bool(abs(draws.std() - 0.5) < 0.1)
    (True, True)
    """
    check_seed(seed)
    if backend not in _BACKENDS:
        raise ValueError(f"backend={backend!r}; wanted: one of {', '.join(_BACKENDS)}")
    if start not in _STARTS:
        raise ValueError(f"start={start!r}; wanted: {', '.join(map(repr, _STARTS[:-1]))} or {_STARTS[-1]!r}")
    if not start_sd > 0:
        raise ValueError(f"start_sd={start_sd}; wanted: a standard deviation above 0")
    if not 0 <= beta < np.inf:
        raise ValueError(f"beta={beta}; wanted: a weight of at least 0; 1 is Bayes' rule")
    if n_steps < 1:
        raise ValueError(f"n_steps={n_steps}; wanted: at least 1")
    if n_mc < 1:
        raise ValueError(f"n_mc={n_mc}; wanted: at least 1 draw a step")
    start_seed, fit_seed = np.random.SeedSequence(seed).generate_state(2)
    rng = np.random.default_rng(start_seed)
    shapes = {name: value.shape for name, value in model.initial_point().items()}
    scale = {name: _scale_start(start, shape) for name, shape in shapes.items()}
    means = {name: scale[name] * rng.normal(size=shape) for name, shape in shapes.items()}
    sds = {name: np.full(int(np.prod(shape)), start_sd) for name, shape in shapes.items()}  # PyMC wants them flat
    normal = pm.MeanField(model=model, start=means, start_sigma=sds, random_seed=int(fit_seed))
    options: dict[str, Any] = {} if optimizer is None else {"obj_optimizer": optimizer}
    if isinstance(optimizer, int | float):
        options["obj_optimizer"], lower = _make_falling_adam(optimizer, n_steps)
        callbacks = [*callbacks, lower]
    with _quiet():
        approx = pm.fit(
            n_steps,
            method=KLqp(normal, beta=beta),
            model=model,
            backend=backend,
            callbacks=callbacks,
            progressbar=is_watched(),
            obj_n_mc=n_mc,
            **options,
        )
    loss = np.asarray(approx.hist)
    if len(loss) == 0:  # PyMC returns an interrupted fit without a word
        raise KeyboardInterrupt
    if len(loss) < n_steps:
        warnings.warn(f"Interrupted: {len(loss):,} of {n_steps:,} steps were taken.", stacklevel=2)
    return Advi(approx, loss, model)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyMC's closing line out of stored outputs; warnings still show."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


def _make_falling_adam(first: float, n_steps: int) -> tuple[Callable[..., Any], Callable[..., None]]:
    """Adam, and the callback that lowers its rate from `first` to 0 along half a cosine."""
    if not 0 < first < np.inf:
        raise ValueError(f"optimizer={first}; wanted: a rate above 0, or one of PyMC's optimisers")
    rate = pytensor.shared(np.asarray(first, pytensor.config.floatX))

    def lower(approx: Any, losses: Any, step: int) -> None:
        rate.set_value(np.asarray(first * (1 + np.cos(np.pi * step / n_steps)) / 2, pytensor.config.floatX))

    return pm.adam(learning_rate=rate), lower


def _scale_start(start: str, shape: tuple[int, ...]) -> float:
    """Standard deviation of the means that `fit_advi` starts from."""
    if start == "fan-in":
        return shape[0] ** -0.5 if len(shape) > 1 else 0.0
    return 1.0 if start == "random" else 0.0


# --- NUTS until the verdict holds

MOST_RUNS = 4


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a run, of which `tree` has the chains that are whole; None where none is.

    Examples
    --------
    >>> from hbnn import sampling
    >>> print(sampling.Interrupted().tree)
    None
    """

    def __init__(self, tree: xr.DataTree | None = None) -> None:
        super().__init__()
        self.tree = tree


def sample_until(
    identify: Callable[[xr.Dataset], Named],
    *args: Any,
    random_seed: int,
    most: int = MOST_RUNS,
    sample: Callable[..., xr.DataTree] = pm.sample,
    restart: Callable[..., xr.DataTree] | None = None,
    **options: Any,
) -> xr.DataTree:
    """Sample, ask for the verdict, and while it says no, sample more chains and keep them all.

    The first run is `sample` with `random_seed`, draw for draw. Each later one has a seed derived from it and a warm-up
    of its own, and its chains are put beside those that there are. More chains, rather than longer ones, also ask
    whether there is a place that the first ones did not find.

    Parameters
    ----------
    identify : callable
        Function of the posterior so far, a Dataset (chain, draw, …), to what is identified, as `diagnostics.verdict`
        takes it.
    *args, **options
        What `sample` takes.
    random_seed : int
    most : int
        Runs of `sample` in all.
    sample : callable
        `pm.sample`, or a function that takes and returns the same.
    restart : callable, optional
        Likewise, in place of `sample` where its chains are apart, or have so few effective draws that `most` runs would
        not do. Those are dropped, so that this one may draw longer chains.

    Returns
    -------
    DataTree
        All chains that were not dropped, and as attribute ``verdicts`` whether the verdict held after each run. There
        is a warning where it never did, and after Ctrl-C, when those runs are kept that were finished, of the first one
        its whole chains.

    Raises
    ------
    ValueError
        For `most` below 1; as `diagnostics.verdict` for what `identify` returns.
    KeyboardInterrupt
        When interrupted before the first chain was finished.

    References
    ----------
    Vehtari et al. (2021), Rank-Normalization, Folding, and Localization, Bayesian Analysis 16, for the limits; what
    stopping does to errors is on the book's page ``convergence``. Gelman and Rubin (1992), Inference from Iterative
    Simulation Using Multiple Sequences, Statistical Science 7, for an R-hat of 1.1.

    Examples
    --------
    >>> import pymc as pm
    >>> from hbnn import sampling
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     y = pm.Normal("y", mu, 1, observed=[1.0, 2.0, 3.0])
    >>> def identify(posterior):
    ...     return {"mu": posterior["mu"]}
    >>> tree = sampling.sample_until(identify, model=model, random_seed=1, **sampling.ONE_CORE)
    >>> tree.attrs["verdicts"]  # the first run was enough
    [True]
    >>> bool(abs(tree["posterior"]["mu"].mean() - 1.5) < 0.1)
    True
    """
    check_seed(random_seed)
    if most < 1:
        raise ValueError(f"most={most}; wanted: at least 1 run")
    later = np.random.SeedSequence(random_seed).generate_state(most)[1:].tolist()
    tree, verdicts = sample(*args, random_seed=random_seed, **options), []
    n_chains, whole = tree["posterior"].sizes["chain"], _keep_whole(tree)
    if whole is None:
        raise KeyboardInterrupt
    if (kept := whole["posterior"].sizes["chain"]) < n_chains:
        warnings.warn(f"Interrupted: of {n_chains} chains, {kept} finished before are kept.", stacklevel=2)
        tree, later = whole, []
    while True:
        found = diagnostics.verdict(identify(tree["posterior"].to_dataset()), tree)
        verdicts.append(found.converged)
        if found.converged:
            break
        if not later:
            warnings.warn(f"The verdict still fails after {len(verdicts)} runs. {found}", stacklevel=2)
            break
        try:
            hopeless = found.rhat > _APART or found.least_ess * most < diagnostics.ESS_LIMIT * len(verdicts)
            if anew := restart is not None and hopeless:
                sample, restart = restart, None
                what = f"R-hat {found.rhat:.2f}, {found.least_ess:,.0f} effective draws"
                warnings.warn(f"Chains are apart or slow, {what}: dropped, for others by `restart`", stacklevel=2)
            run = sample(*args, random_seed=later.pop(0), **options)
            longer = run["posterior"].sizes["draw"] - tree["posterior"].sizes["draw"]
            whole = _keep_whole(run)
            if whole is None or whole["posterior"].sizes["chain"] < n_chains or longer < 0:
                raise KeyboardInterrupt  # which `sample` kept to itself
        except (KeyboardInterrupt, ValueError) as error:  # a ValueError where Ctrl-C left no draws at all
            why = f" ({error})" if str(error) else ""
            kept = tree["posterior"].sizes["chain"]
            warnings.warn(f"Interrupted{why}: the {kept} chains before are kept.", stacklevel=2)
            break
        tree = run if longer or anew else join_chains(tree, run)  # longer: PyMC had cut the first run short
    tree.attrs["verdicts"] = verdicts
    return tree


def _keep_whole(run: xr.DataTree, n_draws: int | None = None) -> xr.DataTree | None:
    """The chains of which nothing is missing, or None: after Ctrl-C nutpie fills up with NaN, or cuts all short."""
    whole = ~np.isnan(diagnostics._read_statistic(run, "energy")).any(axis=1)
    whole &= n_draws is None or run["posterior"].sizes["draw"] == n_draws
    return run if whole.all() else run.isel(chain=whole) if whole.any() else None


def join_chains(tree: xr.DataTree, run: xr.DataTree) -> xr.DataTree:
    """Put the chains of two runs of one model, with different seeds, side by side.

    Parameters
    ----------
    tree, run : DataTree
        The chains of `run` are numbered on; what has no chains, such as the data, is that of `tree`.

    Returns
    -------
    DataTree

    Raises
    ------
    ValueError
        When the chains of one have another length than those of the other.

    Examples
    --------
    Goes on from `sample_until`.

    >>> more = pm.sample(model=model, random_seed=2, **sampling.ONE_CORE)
    >>> sampling.join_chains(tree, more)["posterior"]["mu"].shape
    (8, 1000)
    """
    sizes = [part["posterior"].sizes["draw"] for part in (tree, run)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"the chains have {sizes[0]:,} and {sizes[1]:,} draws; wanted: as many in both runs")
    n = tree["posterior"].sizes["chain"]
    joined = {}
    for name, group in tree.children.items():
        joined[name] = group.to_dataset()
        if "chain" in group.dims:
            other = run[name].to_dataset().assign_coords(chain=np.arange(n, n + run[name].sizes["chain"]))
            joined[name] = xr.concat([joined[name], other], dim="chain", combine_attrs="override")
    return xr.DataTree.from_dict(joined)


# --- NUTS with a model that is compiled once

POWER = "likelihood_power"  # data of each compiled model, see `tempering`


def compile_nuts(model: pm.Model) -> "CompiledPyMCModel":
    """Compile a model for nutpie once, and sample it with several data sets: ``.with_data(X=…, labels=…)``.

    Its data are those of the model, and ``likelihood_power``: observed variables and potentials count to that power, 1
    until something else is set (`tempering`).

    Parameters
    ----------
    model : pm.Model
        Its deterministic variables are kept unless their shapes follow the data: those of known shape are, and those
        whose dims are all coords that no data have.

    Returns
    -------
    CompiledPyMCModel

    Raises
    ------
    TypeError
        When `model` is no PyMC model.

    Examples
    --------
    >>> import pymc as pm
    >>> from hbnn import sampling
    >>> with pm.Model() as model:
    ...     seen = pm.Data("seen", [1.0, 2.0, 3.0])
    ...     mu = pm.Normal("mu")
    ...     y = pm.Normal("y", mu, 1, observed=seen)
    >>> compiled = sampling.compile_nuts(model)
    >>> other = compiled.with_data(seen=[7.0, 8.0, 9.0])
    >>> compiled.n_dim, other.n_dim  # unknowns
    (1, 1)
    """
    import nutpie

    if not isinstance(model, pm.Model):
        raise TypeError(f"model is a {type(model).__name__}; wanted: a pm.Model")
    dims = model.named_vars_to_dims
    moving = {dim for data in model.data_vars for dim in dims.get(data.name, ())}
    still = model.coords.keys() - moving
    fixed = [
        variable
        for variable in model.deterministics
        if None not in variable.type.shape or set(dims.get(variable.name) or [None]) <= still
    ]
    names = [variable.name for variable in (*model.free_RVs, *fixed)]
    return nutpie.compile_pymc_model(_weaken(model), var_names=names, freeze_model=False)


def _weaken(model: pm.Model) -> pm.Model:
    """The same model, its log likelihood and potentials times data named `POWER`, 1 until something else is set."""
    weak = object.__new__(type(model))
    vars(weak).update(vars(model))
    likelihood = [*model.observed_RVs, *model.potentials]
    if likelihood:
        power = pytensor.shared(np.asarray(1.0), name=POWER)
        weak.logp = lambda: model.logp(vars=model.free_RVs) + power * model.logp(vars=likelihood)
    return weak


@threadpool_limits.wrap(limits=1)
def sample_nuts(
    compiled: "CompiledPyMCModel",
    *,
    seed: int,
    chains: int = 4,
    draws: int = 1000,
    tune: int = 1000,
    target_accept: float = 0.8,
    cores: int = 1,
) -> xr.DataTree:
    """`nutpie.sample`, with the draws that `pm.sample` would give for the same seed; BLAS has one thread.

    Parameters
    ----------
    compiled : CompiledPyMCModel
        What `compile_nuts` returns.
    seed : int
    chains : int
    draws, tune : int
        Kept and discarded, in each chain.
    target_accept : float
    cores : int
        Chains that run at once; it changes no draw.

    Returns
    -------
    DataTree
        With ``posterior`` and ``sample_stats``, as nutpie has them.

    Raises
    ------
    TypeError
        For a `pm.Model`, which `pm.sample` takes.
    Interrupted
        After Ctrl-C, with the chains that are whole.

    References
    ----------
    Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15.

    Examples
    --------
    Goes on from `compile_nuts`. The posterior means are 1.5 and 6.

    >>> for network in (compiled, other):
    ...     tree = sampling.sample_nuts(network, seed=1)
    ...     print(bool(abs(tree["posterior"]["mu"].mean() - 1.5) < 0.1))
    True
    False
    """
    import nutpie

    check_seed(seed)
    if isinstance(compiled, pm.Model):
        raise TypeError("compiled is a pm.Model; wanted: what compile_nuts makes of it, or pm.sample(model=…)")
    run = nutpie.sample(
        compiled,
        draws=draws,
        tune=max(tune, 1),
        chains=chains,
        cores=cores,
        seed=derive_seed(seed),
        save_warmup=False,
        target_accept=target_accept,
        progress_bar=is_watched(),
        blocking=False,
    )
    try:
        return run.wait()
    except KeyboardInterrupt:
        kept = None
        with contextlib.suppress(ValueError, ArithmeticError, LookupError), warnings.catch_warnings(action="ignore"):
            kept = _keep_whole(run.abort(), draws)  # nothing where nutpie has no draws yet
        raise Interrupted(kept) from None


def derive_seed(seed: int) -> int:
    """The seed that `pm.sample` hands to nutpie.

    Parameters
    ----------
    seed : int

    Returns
    -------
    int

    Examples
    --------
    >>> from hbnn import sampling
    >>> sampling.derive_seed(1)
    16503759
    """
    return int(np.random.default_rng(seed).spawn(1)[0].integers(2**30))


def sample_groups(
    compiled: "CompiledPyMCModel",
    X: Sequence[ArrayLike] | Array,
    y: Sequence[ArrayLike] | Array,
    *,
    seed: int,
    **options: Any,
) -> list[xr.DataTree]:
    """NUTS for each group by itself, with a model that is compiled once.

    Parameters
    ----------
    compiled : CompiledPyMCModel
        What `compile_nuts` makes of a network of one group, with data named ``X`` and ``labels``.
    X : sequence of array_like, shape (obs, feature)
        For each group.
    y : sequence of array_like of 0 and 1, shape (obs,)
    seed : int
        Each group gets a seed derived from it.
    **options
        As in `sample_nuts`.

    Returns
    -------
    list of DataTree

    Raises
    ------
    ValueError
        For points and labels that do not fit together, of any group, before the first is sampled.

    Examples
    --------
    Three groups; to be quick, a line in place of a network:

    >>> import numpy as np
    >>> import pymc as pm
    >>> from hbnn import sampling
    >>> points = np.random.default_rng(1).normal(size=(3, 50, 2))
    >>> y = (points[..., 0] > 0).astype(int)
    >>> with pm.Model() as model:
    ...     X = pm.Data("X", points[0])
    ...     labels = pm.Data("labels", y[0])
    ...     w = pm.Normal("w", shape=2)
    ...     outcome = pm.Bernoulli("y", logit_p=X @ w, observed=labels)
    >>> compiled = sampling.compile_nuts(model)
    >>> trees = sampling.sample_groups(compiled, points, y, seed=1, chains=2)
    >>> len(trees), trees[0]["posterior"]["w"].shape
    (3, (2, 1000, 2))
    """
    check_seed(seed)
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} groups, y has {len(y)}; wanted: labels for each group")
    groups = [check_data(points, labels, name=f"y[{g}]") for g, (points, labels) in enumerate(zip(X, y, strict=True))]
    seeds = np.random.SeedSequence(seed).generate_state(len(X))
    return [
        sample_nuts(compiled.with_data(X=points, labels=labels), seed=int(group_seed), **options)
        for (points, labels), group_seed in zip(groups, seeds, strict=True)
    ]
