"""Did the chains agree? Asked of what is identified (probabilities), never of raw weights.

A network's weights can be relabelled (hidden units permuted, signs flipped) without changing a single
prediction, so two perfect chains may sit in different labelings. Predictions do not know about labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from hbnn._text import join
from hbnn._types import Array, Floats, Named

ESS_LIMIT = 400  # draws
_KINDS = {"ess": "", "ess_spread": "spread", "ess_tail": "tails"}  # of effective draws
_DISAGREE = 10  # effective draws for each chain: with fewer, the chains are in different places
_BFMI_LIMIT = 0.3
_DIVERGENT_LIMIT = 0.001  # share of draws
_DEPTH_NOTE = 0.01  # share of draws at the greatest depth from which the verdict mentions it
_TAILS = (0.05, 0.95)
_MAX_DEPTH = 10  # of a tree, in every engine
BLOCK = 64  # quantities: few enough to stay in the processor's cache


# --- quantities


def diagnose(values: ArrayLike) -> dict[str, Floats]:
    """Rank-normalised R-hat, ESS of bulk, spread and tails, and MCSE of the mean, for each quantity.

    The numbers are ArviZ's, which takes quantities one at a time; here many go at once.

    Parameters
    ----------
    values : array_like, shape (chain, draw, quantity)
        Identified quantities, e.g. class probabilities on a grid.

    Returns
    -------
    dict of arrays, shape (quantity,)
        "rhat"; "ess", "ess_spread" and "ess_tail" (draws; the spread is the distance from the median, the tails are the
        lower and upper 5 %); and "mcse" (units of `values`). For a constant, R-hat is NaN, each ESS is the number of
        draws, and the MCSE is 0.

    Raises
    ------
    ValueError
        For a wrong shape, fewer than 2 chains of 4 draws, no quantity, NaN or infinity.

    References
    ----------
    Vehtari et al. (2021), Rank-Normalization, Folding, and Localization, Bayesian Analysis 16.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import diagnostics
    >>> values = np.random.default_rng(1).normal(size=(4, 1000, 3))
    >>> found = diagnostics.diagnose(values)
    >>> sorted(found), found["rhat"].shape
    (['ess', 'ess_spread', 'ess_tail', 'mcse', 'rhat'], (3,))
    >>> bool(found["rhat"].max() < 1.01), bool(found["ess"].min() > 3000)
    (True, True)
    >>> values[0] += 2  # a chain that is somewhere else
    >>> bool(diagnostics.diagnose(values)["rhat"].min() > 1.1)
    True
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 3:
        raise ValueError(f"values has shape {values.shape}; wanted: (chain, draw, quantity)")
    if values.shape[0] < 2 or values.shape[1] < 4:
        n_chains, n_draws, _ = values.shape
        raise ValueError(f"values has {n_chains} chains of {n_draws} draws; wanted: at least 2 chains of 4 draws")
    if values.shape[2] == 0:
        raise ValueError(f"values has shape {values.shape}; wanted: at least one quantity")
    if not np.isfinite(values).all():
        raise ValueError("values holds NaN or infinite numbers; wanted: finite numbers")
    starts = range(0, values.shape[2], BLOCK)
    blocks = [_diagnose_block(np.moveaxis(values[:, :, i : i + BLOCK], 2, 0)) for i in starts]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _diagnose_block(values: Floats) -> dict[str, Floats]:
    """`diagnose` for (quantity, chain, draw)."""
    halves = _halve(values)
    ranked = _rank_normalise(halves)
    folded = _rank_normalise(np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True)))
    with np.errstate(divide="ignore", invalid="ignore"):  # constant quantities
        rhat, rhat_folded = _compute_rhat(ranked), _compute_rhat(folded)
        sd = values.std(axis=(1, 2), ddof=1)
        low, high = np.quantile(values, _TAILS, axis=(1, 2))[..., None, None]
        return {
            "rhat": np.where(rhat_folded > rhat, rhat_folded, rhat),  # the folded one of +-1 is NaN
            "ess": _compute_ess(ranked),
            "ess_spread": _compute_ess(folded),
            "ess_tail": np.minimum(_compute_ess(_halve(values <= low)), _compute_ess(_halve(values <= high))),
            "mcse": sd / np.sqrt(_compute_ess(halves)),
        }


def _halve(values: Array) -> Array:
    """The first and the last half of each chain as chains of their own: (quantity, 2 chain, draw // 2)."""
    half = values.shape[2] // 2
    return np.ascontiguousarray(np.concatenate([values[:, :, :half], values[:, :, -half:]], axis=1))


def _rank_normalise(values: Array) -> Floats:
    """Normal scores of the ranks over all chains of a quantity (Vehtari et al. 2021, equation 14)."""
    flat = values.reshape(len(values), -1)
    n = flat.shape[1]
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    place = np.broadcast_to(np.arange(n), flat.shape)
    differs = np.diff(ordered, axis=1) > 0
    first, last = np.zeros(flat.shape, int), np.full(flat.shape, n - 1)
    first[:, 1:], last[:, :-1] = np.where(differs, place[:, 1:], 0), np.where(differs, place[:, :-1], n - 1)
    first = np.maximum.accumulate(first, axis=1)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    # equal values share the mean of their ranks, a multiple of one half: look the scores up
    scores = ndtri((np.arange(2, 2 * n + 1) / 2 - 3 / 8) / (n + 1 / 4))
    ranked = np.empty(flat.shape)
    np.put_along_axis(ranked, order, scores[first + last], axis=1)
    return ranked.reshape(values.shape)


def _compute_rhat(values: Floats) -> Floats:
    """R-hat of (quantity, chain, draw): (quantity,)."""
    n_draws = values.shape[2]
    between = n_draws * values.mean(axis=2).var(axis=1, ddof=1)
    within = values.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt((between / within + n_draws - 1) / n_draws)


def _compute_ess(values: Array) -> Floats:
    """Effective sample size of (quantity, chain, draw): (quantity,).

    Autocorrelations are added up in pairs until a pair's sum is negative, and the sums are not let grow: Geyer's
    initial monotone sequence, with the truncation that Stan and ArviZ share.
    """
    values = values.astype(float)
    n_quantities, n_chains, n_draws = values.shape
    n_all = n_chains * n_draws
    rho = _estimate_autocorrelation(values)
    pairs = rho[:, 0 : n_draws - n_draws % 2 : 2] + rho[:, 1::2]
    last = max((n_draws - 3) // 2, 0)
    ended = pairs[:, : last + 1] <= 0
    end = np.where(ended.any(axis=1), ended.argmax(axis=1), last)
    each = np.arange(n_quantities)
    falling = np.minimum.accumulate(pairs[:, : last + 1], axis=1)
    summed = np.where(np.arange(last + 1) < end[:, None], falling, 0).sum(axis=1)
    even = rho[each, 2 * end]
    even = np.where((pairs[each, end] >= 0) | (even > 0), even, 0)
    ess = n_all / np.maximum(-1 + 2 * summed + even, 1 / np.log10(n_all))
    ess[np.isnan(rho[:, 1])] = np.nan
    constant = values.max(axis=(1, 2)) - values.min(axis=(1, 2)) < np.finfo(float).resolution
    return np.where(constant, n_all, ess)


def _estimate_autocorrelation(values: Floats) -> Floats:
    """Autocorrelation at each lag, over all chains of a quantity and around their common mean: (quantity, draw)."""
    n_chains, n_draws = values.shape[1:]
    means = values.mean(axis=2)
    n_fft = next_fast_len(2 * n_draws, real=True)
    spectrum = rfft(values - means[..., None], n_fft, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    covariance = irfft(power, n_fft, axis=1)[:, :n_draws] / n_draws
    within = covariance[:, :1] * n_draws / (n_draws - 1)
    total = covariance[:, :1] + (means.var(axis=1, ddof=1)[:, None] if n_chains > 1 else 0)
    rho = 1 - (within - covariance) / total
    rho[:, 0] = 1
    return rho


def judge(values: ArrayLike, n_divergent: int) -> dict[str, float]:
    """R-hat, ESS and divergences of a NUTS run in a dict; `verdict` says the same in words, with names.

    Parameters
    ----------
    values : array_like, shape (chain, draw, quantity)
    n_divergent : int

    Returns
    -------
    dict
        "max R-hat", "min ESS" (of bulk, spread and tails), "divergences" and "converged" (bool: the ESS is above 400;
        R-hat is shown, and divergences are judged where they are located).

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import diagnostics
    >>> found = diagnostics.judge(np.random.default_rng(1).normal(size=(4, 1000, 3)), n_divergent=0)
    >>> found["converged"], found["divergences"]
    (True, 0)
    """
    found = diagnose(values)
    ess = float(min(found[name].min() for name in _KINDS))
    return {
        "max R-hat": float(found["rhat"].max()),
        "min ESS": ess,
        "divergences": int(n_divergent),
        "converged": ess > ESS_LIMIT,
    }


# --- the sampler


def count_divergences(tree: xr.DataTree) -> int:
    """Count divergent draws after tuning, of all chains.

    Parameters
    ----------
    tree : DataTree
        A run of `pm.sample`.

    Returns
    -------
    int

    Examples
    --------
    A result as `pm.sample` gives it, made by hand; two of its draws diverged.

    >>> import numpy as np
    >>> import xarray as xr
    >>> from hbnn import diagnostics
    >>> rng = np.random.default_rng(1)
    >>> p, energy = rng.normal(size=(2, 4, 1000))
    >>> diverging = np.zeros((4, 1000), dtype=bool)
    >>> diverging[0, :2] = True
    >>> stats = {"diverging": diverging, "energy": energy, "depth": np.full((4, 1000), 3)}
    >>> stats = xr.Dataset({name: (("chain", "draw"), value) for name, value in stats.items()})
    >>> tree = xr.DataTree.from_dict({"sample_stats": stats})
    >>> diagnostics.count_divergences(tree)
    2
    """
    return int(_read_statistic(tree, "diverging").sum())


def energy_bfmi(tree: xr.DataTree) -> Floats:
    """Energy Bayesian fraction of missing information; below 0.3 a chain hardly moves between energies.

    Parameters
    ----------
    tree : DataTree
        A run of `pm.sample`.

    Returns
    -------
    array, shape (chain,)
        NaN for a chain whose energy never changed.

    References
    ----------
    Betancourt (2016), Diagnosing Suboptimal Cotangent Disintegrations in Hamiltonian Monte Carlo.

    Examples
    --------
    Goes on from `count_divergences`.

    >>> bfmi = diagnostics.energy_bfmi(tree)
    >>> bfmi.shape, bool((bfmi > 0.3).all())
    ((4,), True)
    """
    from arviz_stats.base.array import array_stats  # half of the time of an import of this module

    energy = _read_statistic(tree, "energy").astype(float)
    if energy.shape[1] < 4:
        raise ValueError(f"the chains have {energy.shape[1]} draws; wanted: at least 4")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(array_stats.bfmi(energy, chain_axis=0, draw_axis=1))


def tree_depth(tree: xr.DataTree) -> float:
    """Share of draws whose tree grew to the greatest depth, 10: they were cut short, which costs time.

    Parameters
    ----------
    tree : DataTree
        A run of `pm.sample`.

    Returns
    -------
    float

    Examples
    --------
    Goes on from `count_divergences`.

    >>> diagnostics.tree_depth(tree)  # no tree was cut short
    0.0
    """
    if "sample_stats" in tree.children and "depth" in tree["sample_stats"]:
        depth = _read_statistic(tree, "depth")
    else:  # complete doublings, as nutpie counts: the other engines add the one that was broken off
        depth = np.floor(np.log2(_read_statistic(tree, "n_steps") + 1))
    return float(np.mean(depth >= _MAX_DEPTH))


def _read_statistic(tree: xr.DataTree, name: str) -> Array:
    """A (chain, draw) array of ``sample_stats``."""
    if "sample_stats" not in tree.children or name not in tree["sample_stats"]:
        raise ValueError(f"the result has no sample_stats[{name!r}]; wanted: one from pm.sample")
    return np.asarray(tree["sample_stats"][name])


def explain_divergences(values: ArrayLike, diverging: ArrayLike, mcse: Floats | None = None) -> dict[str, float]:
    """Judge whether divergent draws can be tolerated.

    They are explained when they are fewer than 0.1 % of the draws, and leaving them out moves the mean of no quantity
    by more than its Monte Carlo error. Look at where they are besides: `locate_divergences`.

    Parameters
    ----------
    values : array_like, shape (chain, draw, quantity)
        Identified quantities.
    diverging : array_like of bool, shape (chain, draw)
    mcse : array, shape (quantity,), optional
        From `diagnose`, where that was called already.

    Returns
    -------
    dict
        "n", "share" (of all draws), "move" (the largest, in units of MCSE; inf if all draws diverged) and "explained"
        (bool).

    Raises
    ------
    ValueError
        For a mask of another shape; and as `diagnose`, which is asked only where some draws diverged and some did not.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import diagnostics
    >>> values = np.random.default_rng(1).normal(size=(4, 1000, 3))
    >>> diverging = np.zeros((4, 1000), dtype=bool)
    >>> diverging[0, :2] = True
    >>> found = diagnostics.explain_divergences(values, diverging)
    >>> found["n"], found["share"], found["explained"]
    (2, 0.0005, True)
    >>> diverging[0, :20] = True
    >>> diagnostics.explain_divergences(values, diverging)["explained"]  # too many
    False
    """
    values, diverging = np.asarray(values, dtype=float), _check_mask(diverging, np.shape(values)[:2])
    n = int(diverging.sum())
    move = 0.0
    if n == diverging.size:
        move = np.inf
    elif n > 0:
        mcse = diagnose(values)["mcse"] if mcse is None else mcse
        moves = np.abs(values[~diverging].mean(axis=0) - values.mean(axis=(0, 1)))
        move = float((moves[mcse > 0] / mcse[mcse > 0]).max(initial=0))  # a constant does not move
    share = n / diverging.size
    return {"n": n, "share": share, "move": move, "explained": n == 0 or (share < _DIVERGENT_LIMIT and move <= 1)}


def _check_mask(diverging: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    diverging = np.asarray(diverging)
    if diverging.shape != tuple(shape) or diverging.dtype != bool:
        raise ValueError(f"diverging is {diverging.dtype} {diverging.shape}; wanted: bool {tuple(shape)} (chain, draw)")
    return diverging


def locate_divergences(x: ArrayLike, y: ArrayLike, diverging: ArrayLike) -> dict[str, Array]:
    """What a plot of the divergent draws among all draws needs.

    Parameters
    ----------
    x, y : array_like, shape (chain, draw)
        Two quantities; the log of a group sd and an offset it scales show a funnel.
    diverging : array_like of bool, shape (chain, draw)

    Returns
    -------
    dict of arrays, shape (chain * draw,)
        "x", "y" and "diverging", divergent draws last, so that they are drawn on top.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import diagnostics
    >>> rng = np.random.default_rng(1)
    >>> x, y = rng.normal(size=(4, 100)), rng.normal(size=(4, 100))
    >>> found = diagnostics.locate_divergences(x, y, diverging=x < -2.5)
    >>> found["x"].shape
    (400,)
    >>> bool(found["diverging"][-1]), bool((found["x"][found["diverging"]] < -2.5).all())
    (True, True)
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 2 or x.shape != y.shape:
        raise ValueError(f"x and y have shapes {x.shape} and {y.shape}; wanted: (chain, draw), the same for both")
    mask = _check_mask(diverging, x.shape).ravel()
    order = np.argsort(mask, kind="stable")
    return {"x": x.ravel()[order], "y": y.ravel()[order], "diverging": mask[order]}


# --- the verdict


@dataclass(frozen=True)
class Verdict:
    """Whether a run's draws may be used, with the figures behind it; `str()` is one line for a reader.

    Attributes
    ----------
    n_chains, n_draws : int
        Chains, and draws of all of them together.
    n_quantities : int
        Quantities that vary.
    rhat, rhat_at : float, str
        The greatest R-hat and the quantity that has it; NaN and "" where nothing can be said.
    ess, ess_at, ess_spread, ess_spread_at, ess_tail, ess_tail_at : float, str
        The least ESS (draws) of bulk, spread and tails and the quantities that have them.
    divergences : int
        Divergent draws after tuning.
    move, explained : float, bool
        As in `explain_divergences`.
    depth_share : float
        Share of draws at the greatest depth.
    bfmi : float
        The least E-BFMI of a chain.
    constant : tuple of str
        Quantities that are one constant and were not judged.
    reasons, advice : tuple of str
        What is wrong, empty where the chains converged, and what helps, in words.

    Examples
    --------
    Goes on from `verdict`.

    >>> found.n_chains, found.n_draws, found.divergences, found.explained
    (4, 4000, 2, True)
    >>> found.reasons
    ()
    """

    n_chains: int
    n_draws: int
    n_quantities: int
    rhat: float
    rhat_at: str
    ess: float
    ess_at: str
    ess_spread: float
    ess_spread_at: str
    ess_tail: float
    ess_tail_at: str
    divergences: int
    move: float
    explained: bool
    depth_share: float
    bfmi: float
    constant: tuple[str, ...]
    reasons: tuple[str, ...]
    advice: tuple[str, ...]

    @property
    def least_ess(self) -> float:
        """The least ESS of any kind."""
        return min(self.ess, self.ess_spread, self.ess_tail)

    @property
    def converged(self) -> bool:
        """Whether the draws may be used."""
        return not self.reasons

    def __str__(self) -> str:
        if self.reasons:
            return f"Do not use these draws: {'; '.join(self.reasons)}. What helps: {'; '.join(self.advice)}."
        kind = min(_KINDS, key=lambda name: getattr(self, name))
        where = getattr(self, f"{kind}_at") + (f", {_KINDS[kind]}" if _KINDS[kind] else "")
        chains = _NUMBER_WORDS.get(self.n_chains, f"{self.n_chains}")
        line = f"The {chains} chains agree: R-hat at most {self.rhat:.3f} ({self.rhat_at}), "
        line += f"at least {self.least_ess:,.0f} effective draws ({where}); "
        line += f"{_say_number(self.divergences)} in {self.n_draws:,} draws{', explained' if self.divergences else ''}"
        if self.depth_share >= _DEPTH_NOTE:
            line += f"; {self.depth_share:.0%} of the draws were cut short at the greatest tree depth"
        if self.constant:
            line += f"; constant and not judged: {join(self.constant, limit=3)}"
        return f"{line}."


_NUMBER_WORDS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight"}


def _say_number(n: int) -> str:
    return {0: "no divergences", 1: "1 divergence"}.get(n, f"{n:,} divergences")


def verdict(quantities: Named, tree: xr.DataTree) -> Verdict:
    """Judge whether the draws of a NUTS run may be used.

    They may when every quantity has more than 400 effective draws, in bulk, spread and tails (Vehtari et al. 2021),
    divergences are explained (`explain_divergences`), and every chain has an E-BFMI of at least 0.3.

    R-hat is shown and has no limit: this ESS counts the disagreement between chains, and one of four that is a whole
    posterior sd off, or has half the spread of the others, leaves about thirty effective draws. One that is a fifth of
    an sd off can still pass, with a bias of about twice the reported Monte Carlo error.

    Parameters
    ----------
    quantities : mapping of arrays, shape (chain, draw, …)
        Identified quantities by their names: group sds, probabilities, the log likelihood.
    tree : DataTree
        The run of `pm.sample` that they come from.

    Returns
    -------
    Verdict

    Raises
    ------
    ValueError
        For no quantities, other chains or draws than in `tree`, NaN or infinity.

    Examples
    --------
    Goes on from `count_divergences`.

    >>> found = diagnostics.verdict({"p": p}, tree)
    >>> found.converged
    True
    >>> apart = diagnostics.verdict({"p": p + np.array([[0], [0], [0], [5]])}, tree)
    >>> apart.converged
    False
    >>> apart.reasons[0][:19]
    'the chains disagree'
    """
    diverging = _read_statistic(tree, "diverging").astype(bool)
    names, values = _stack_quantities(quantities, diverging.shape)
    n_chains, n_draws = diverging.shape
    if n_chains < 2 or n_draws < 4:
        chains = "1 chain" if n_chains == 1 else f"{n_chains} chains"
        return Verdict(
            n_chains,
            diverging.size,
            n_quantities=len(names),
            rhat=np.nan,
            rhat_at="",
            ess=np.nan,
            ess_at="",
            ess_spread=np.nan,
            ess_spread_at="",
            ess_tail=np.nan,
            ess_tail_at="",
            move=np.nan,
            explained=False,
            bfmi=np.nan,
            constant=(),
            reasons=(f"{chains} of {n_draws} draws cannot be compared",),
            advice=("at least 2 chains, better 4, of 1,000 draws",),
            divergences=count_divergences(tree),
            depth_share=tree_depth(tree),
        )
    found = diagnose(values)
    varies = ~np.isnan(found["rhat"])
    explained = explain_divergences(values, diverging, found["mcse"])
    figures: dict[str, Any] = {
        "divergences": count_divergences(tree),
        "depth_share": tree_depth(tree),
        "move": explained["move"],
        "explained": explained["explained"],
        "bfmi": float(np.min(energy_bfmi(tree))),
    }
    for name, pick in {"rhat": np.argmax, **dict.fromkeys(_KINDS, np.argmin)}.items():
        at = np.flatnonzero(varies)[pick(found[name][varies])] if varies.any() else None
        figures |= {name: np.nan if at is None else float(found[name][at])}
        figures |= {f"{name}_at": "" if at is None else names[at]}
    constant = tuple(name for name, it_varies in zip(names, varies, strict=True) if not it_varies)
    n_quantities = int(varies.sum())
    reasons, advice = _find_reasons(figures, n_chains, diverging.size)
    return Verdict(n_chains, diverging.size, n_quantities, **figures, constant=constant, reasons=reasons, advice=advice)


def _stack_quantities(quantities: Named, shape: tuple[int, ...]) -> tuple[list[str], Floats]:
    """Names and one (chain, draw, quantity) array of all quantities; ValueError for what does not fit `shape`."""
    if not quantities:
        raise ValueError("no quantities; wanted: a dict of name to (chain, draw, …) array")
    names, columns = [], []
    for name, values in quantities.items():
        values = np.asarray(values, dtype=float)
        if values.shape[:2] != shape:
            raise ValueError(f"{name} has shape {values.shape}; wanted: {shape} first, the chains and draws of the run")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} holds NaN or infinite numbers; wanted: finite numbers")
        names += [f"{name}{list(index)}" if index else name for index in np.ndindex(values.shape[2:])]
        columns.append(values.reshape(*shape, -1))
    if not names:
        raise ValueError("the quantities are empty; wanted: at least one number for each draw")
    return names, np.concatenate(columns, axis=2)


def _find_reasons(figures: dict[str, Any], n_chains: int, n_draws: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is wrong with a run and what helps, as two tuples of phrases."""
    rhat, bfmi = figures["rhat"], figures["bfmi"]
    reasons: list[str] = []
    advice: list[str] = []
    if np.isnan(rhat):
        return ("every quantity is constant, so that nothing can be judged",), ("quantities that vary",)
    few = [name for name in _KINDS if not figures[name] > ESS_LIMIT]
    wanted = f"more than {ESS_LIMIT}"
    disagree = any(not figures[name] >= _DISAGREE * n_chains for name in few)
    for name in sorted(few, key=lambda name: figures[name]) if disagree else few:
        kind = f" in the {_KINDS[name]}" if _KINDS[name] else ""
        found = f"only {figures[name]:,.0f} effective draws{kind} for {figures[f'{name}_at']}"
        if disagree and not reasons:
            shown = f"{rhat:.2f}" if rhat < 100 else "above 100"
            place = "" if figures["rhat_at"] == figures[f"{name}_at"] else f" for {figures['rhat_at']}"
            reasons.append(f"the chains disagree: {found}, R-hat {shown}{place} (wanted: {wanted} effective draws)")
        else:
            reasons.append(f"{found} (wanted: {wanted})")
    if disagree:
        advice.append("longer tuning and more draws, wider hidden layers, or a look at where each chain sits")
    elif few:
        least = min(figures[name] for name in few)
        advice.append(f"about {np.ceil(1.2 * ESS_LIMIT / least * n_draws / 100) * 100:,.0f} draws in all")
    if not figures["explained"]:
        move = "" if np.isinf(figures["move"]) else f", which move a quantity by up to {figures['move']:.1f} MCSE"
        reasons.append(f"{_say_number(figures['divergences'])} in {n_draws:,} draws{move}")
        advice.append("target_accept nearer to 1 (0.9, 0.95), and a plot of where the divergent draws are")
    if not bfmi >= _BFMI_LIMIT:
        reasons.append(f"E-BFMI is {bfmi:.2f} (wanted: at least {_BFMI_LIMIT}), the energy is hardly explored")
        advice.append("longer tuning, or another form of the model's scales (centred, non-centred)")
    return tuple(reasons), tuple(advice)
