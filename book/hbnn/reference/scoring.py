"""Score the draws of any sampler against reference posteriors: is the sampler right, or only fast?

    python -m hbnn.reference FILE                      an ArviZ netCDF file, or a CSV with columns chain, draw, p[1], …
    python -m hbnn.reference FILE --posterior NAME     where names and shapes fit several
    python -m hbnn.reference --list                    the posteriors, and what is asked of each

The file holds functionals by their names, or the unknowns as the model names them; functionals are then computed.

Each functional is put on the scale on which the reference is standard normal: a draw becomes the normal quantile of its
rank among the reference's draws. There the mean of right draws is 0, which is the *bias* in posterior sds, and their
standard deviation is 1, the *spread*; where stored draws are alike to the last digit, both are counted from what the
reference itself has there. Neither minds how skewed a probability near 0 or 1 is.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import norm

from hbnn import diagnostics
from hbnn._text import join
from hbnn._types import Floats, Named
from hbnn.reference import posteriors
from hbnn.reference.posteriors import NAMES

_DIGITS = 5  # of the stored draws
_ALARM = 0.01  # chance that a right sampler is called wrong, over all functionals together
_POWER = 0.9  # chance with which a bias of `DrawScore.visible` would have been seen
LEAST_LENGTH = 250  # draws of a chain: in shorter ones, autocorrelations are not seen, and errors come out too small
WRONG, FEW, RIGHT = "wrong", "too few", "right"


@dataclass(frozen=True, eq=False)
class Reference:
    """Draws that are taken for the truth.

    Attributes
    ----------
    names : list of str
        Of the functionals.
    draws : array, shape (draw, functional)
        Each column sorted.
    ess : array, shape (functional,)
        Effective draws, the least of bulk, spread and tails, and never more than there are draws.
    """

    names: list[str]
    draws: Floats
    ess: Floats


@dataclass(frozen=True)
class DrawScore:
    """How draws differ from the reference; `str()` is what the command prints.

    Attributes
    ----------
    posterior : str
        Its name.
    names : list of str
        Of the functionals.
    n_chains, n_draws : int
        Chains, and draws of all of them together.
    bias, bias_error : array, shape (functional,)
        Units of posterior sd; the error is of both sides.
    spread, spread_error : array, shape (functional,)
        The draws' sd over the reference's, on the same scale.
    rhat, ess, ess_spread, ess_tail : array, shape (functional,)
        R-hat, which judges nothing, and the effective draws of bulk, spread and tails, at most `n_draws`; of the draws
        alone.
    limit : float
        `distance` above which a functional is too far away, in errors; it grows with the count of functionals.

    Examples
    --------
    Goes on from `score_draws`.

    >>> bool(found.distance.max() > found.limit)  # in errors
    True
    >>> found.to_frame().shape == (len(found.names), 9)
    True
    """

    posterior: str
    names: list[str]
    n_chains: int
    n_draws: int
    bias: Floats
    bias_error: Floats
    spread: Floats
    spread_error: Floats
    rhat: Floats
    ess: Floats
    ess_spread: Floats
    ess_tail: Floats
    limit: float

    @property
    def distance(self) -> Floats:
        """By how many errors each functional is off, in bias or in spread, whichever is worse: (functional,)."""
        return np.maximum(abs(self.bias) / self.bias_error, abs(self.spread - 1) / self.spread_error)

    @property
    def visible(self) -> float:
        """The least bias (posterior sds) that would have been seen in every functional with probability 0.9."""
        return float((self.limit + norm.ppf(_POWER)) * self.bias_error.max())

    @property
    def verdict(self) -> str:
        """One of three words: "too few" draws to judge, "wrong", or "right" as far as can be seen."""
        if self.lacking:
            return FEW
        return WRONG if self.distance.max() > self.limit else RIGHT

    @property
    def lacking(self) -> tuple[str, ...]:
        """Why these draws are too few, in words; empty where they can be judged.

        Wanted: chains of at least 250 draws, and more than 400 effective draws in bulk, spread and tails. Exact draws
        in 64 chains of 7 had a least ESS of about 1,000 and were called wrong in half of the runs.
        """
        length, found = self.n_draws // self.n_chains, []
        if length < LEAST_LENGTH:
            found.append(f"chains of {length} draws (wanted: at least {LEAST_LENGTH})")
        for kind, ess in (("", self.ess), (" in the spread", self.ess_spread), (" in the tails", self.ess_tail)):
            if not ess.min() > diagnostics.ESS_LIMIT:
                found.append(f"{ess.min():,.0f} effective draws{kind} (wanted: more than {diagnostics.ESS_LIMIT})")
        return tuple(found)

    def to_frame(self) -> pd.DataFrame:
        """A row for each functional."""
        columns = ("bias", "bias_error", "spread", "spread_error", "rhat", "ess", "ess_spread", "ess_tail", "distance")
        return pd.DataFrame({name: getattr(self, name) for name in columns}, index=self.names)

    def __str__(self) -> str:
        ess = np.min([self.ess, self.ess_spread, self.ess_tail], axis=0)
        worst, slow = int(self.distance.argmax()), int(ess.argmin())
        lines = [
            f"{self.posterior}: {self.n_chains} chains, {self.n_draws:,} draws, {len(self.names)} functionals",
            f"farthest: {self.names[worst]}, bias {self.bias[worst]:+.3f} ± {self.bias_error[worst]:.3f} posterior sd, "
            f"spread {self.spread[worst]:.3f} ± {self.spread_error[worst]:.3f}; {self.distance[worst]:.1f} errors "
            f"(limit {self.limit:.2f})",
            f"least ESS: {ess[slow]:,.0f} ({self.names[slow]}); greatest R-hat: {self.rhat.max():.3f}",
        ]
        return "\n".join([*lines, self.say()])

    def say(self) -> str:
        """The verdict in a sentence."""
        if self.verdict == FEW:
            return f"TOO FEW draws to judge: {', '.join(self.lacking)}."
        far = int((self.distance > self.limit).sum())
        if self.verdict == WRONG:
            what = "1 functional is" if far == 1 else f"{far} functionals are"
            return f"WRONG: {what} farther from the reference than errors allow."
        return f"RIGHT, as far as can be seen: a bias of {self.visible:.2f} posterior sd would have shown."


# --- the reference


@lru_cache
def load_reference(name: str) -> Reference:
    """Load the reference draws of a posterior.

    Parameters
    ----------
    name : str
        ValueError for a name that does not exist.

    Returns
    -------
    Reference

    Examples
    --------
    >>> from hbnn.reference import scoring
    >>> found = scoring.load_reference("flat_moons-flat_bnn")
    >>> found.draws.shape, len(found.names)
    ((10000, 41), 41)
    """
    names = posteriors.load_posterior(name).names
    chains = posteriors.read_chains(name)
    return make_reference(names, np.array([[chain[column] for column in names] for chain in chains]).swapaxes(1, 2))


def make_reference(names: list[str], draws: Floats) -> Reference:
    """A reference of draws (chain, draw, functional)."""
    found = diagnostics.diagnose(draws)
    ordered = np.sort(draws.reshape(-1, len(names)), axis=0)
    return Reference(names, ordered, np.minimum(_list_ess(found).min(axis=0), len(ordered)))


def _list_ess(found: dict[str, Floats]) -> Floats:
    """Effective draws of bulk, spread and tails, of what `diagnose` found: (3, functional)."""
    return np.array([found[name] for name in ("ess", "ess_spread", "ess_tail")])


def round_digits(values: ArrayLike) -> Floats:
    """Round to as many digits as the database keeps: probabilities that round to 1 there are then equal."""
    values = np.asarray(values, float)
    power = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.where(values == 0, 1, abs(values)))))
    return np.round(values * power) / power


def to_normal(values: ArrayLike, reference: Reference) -> Floats:
    """Draws (…, functional) as normal quantiles of their ranks among the reference's draws.

    Beyond the reference's extremes, quantiles are those of half a draw more. What is equal to `_DIGITS` digits shares
    its rank, the middle one.
    """
    n = len(reference.draws)
    values, draws = round_digits(values), round_digits(reference.draws)
    found = np.empty(values.shape)
    for k, column in enumerate(draws.T):
        low, high = (np.searchsorted(column, values[..., k], side=side) for side in ("left", "right"))
        found[..., k] = ndtri(((low + high) / 2 + 0.5) / (n + 1))
    return found


@lru_cache(maxsize=8)
def _measure_own(reference: Reference) -> tuple[Floats, Floats, Floats]:
    """Mean, sd and kurtosis of the reference's draws on its scale, (functional,) each: 0, 1 and 3, but for ties."""
    own = to_normal(reference.draws, reference)
    mean, sd = own.mean(axis=0), own.std(axis=0)
    sd = np.where(sd > 0, sd, 1)
    return mean, sd, (((own - mean) / sd) ** 4).mean(axis=0)


# --- the score


def score_draws(
    draws: Named | xr.DataTree, name: str | None = None, *, reference: Reference | None = None
) -> DrawScore:
    """Score draws against a reference posterior.

    Parameters
    ----------
    draws : mapping of arrays, shape (chain, draw, …), or DataTree with a group "posterior"
        The functionals of ``load_posterior(name).functionals``, or the model's unknowns. Draws known to be independent
        may be cut into chains at will.
    name : str, optional
        The posterior; None finds it from names and shapes.
    reference : Reference, optional
        In place of the stored one, for tests of the scorer itself.

    Returns
    -------
    DrawScore

    Raises
    ------
    ValueError
        For an unknown posterior, functionals or unknowns that are missing or of another shape, fewer than two chains of
        four draws, NaN or infinity.

    Examples
    --------
    Draws from the prior are not from the posterior, and the score says so:

    >>> import numpy as np
    >>> from hbnn.reference import posteriors, scoring
    >>> rng, posterior = np.random.default_rng(1), posteriors.load_posterior("flat_moons-flat_bnn")
    >>> unknowns = posterior.unknowns.items()
    >>> draws = {name: rng.normal(size=(4, 500, *shape)) for name, shape in unknowns}
    >>> found = scoring.score_draws(draws, "flat_moons-flat_bnn")
    >>> found.verdict
    'wrong'
    """
    draws = read_draws(draws)
    name = find_posterior(draws) if name is None else name
    posterior = posteriors.load_posterior(name)
    values = to_functionals(draws, posterior)
    if values.shape[0] < 2:
        raise ValueError(
            "one chain cannot tell whether it has been everywhere; wanted: at least 2 chains, better 4, from different "
            "starts (independent draws may be cut into 4 chains)"
        )
    if (bad := ~np.isfinite(values).all(axis=(0, 1))).any():
        raise ValueError(f"{_names(np.array(posterior.names)[bad])}: NaN or infinite; wanted: finite numbers")
    reference = load_reference(name) if reference is None else reference
    return compare_draws(values, reference, name)


def compare_draws(values: Floats, reference: Reference, name: str = "") -> DrawScore:
    """`score_draws` for an array (chain, draw, functional)."""
    found = diagnostics.diagnose(values)
    mean, sd, kurtosis = _measure_own(reference)
    scores = (to_normal(values, reference) - mean) / sd
    bias = scores.mean(axis=(0, 1))
    squares = (scores - bias) ** 2
    varies = squares.max(axis=(0, 1)) > 0
    bias_mcse, square_mcse = (np.where(varies, diagnostics.diagnose(v)["mcse"], 0) for v in (scores, squares))
    spread = np.sqrt(squares.mean(axis=(0, 1)))
    # the reference's own errors: of a mean of independent draws, and of their sd
    bias_error = np.sqrt(bias_mcse**2 + 1 / reference.ess)
    spread_error = np.sqrt((square_mcse / np.maximum(2 * spread, 1e-9)) ** 2 + (kurtosis - 1) / (4 * reference.ess))
    n_chains, n_draws, _ = values.shape
    ess, ess_spread, ess_tail = np.minimum(_list_ess(found), n_chains * n_draws)
    limit = float(norm.isf(_ALARM / 2 / (2 * len(bias))))
    return DrawScore(
        name,
        reference.names,
        n_chains,
        n_chains * n_draws,
        bias,
        bias_error,
        spread,
        spread_error,
        found["rhat"],
        ess,
        ess_spread,
        ess_tail,
        limit,
    )


# --- reading draws and files


def read_draws(source: Named | xr.DataTree | str | Path) -> dict[str, Floats]:
    """Read draws by their names.

    Parameters
    ----------
    source : mapping of arrays, Dataset, DataTree, str or Path
        What `score_draws` takes, or a netCDF or CSV file. A CSV has a row for each draw, a column ``chain``, perhaps
        one called ``draw``, and one for each number: ``p[1]``, ``w1[2,3]``, counted from 1, or ``p.1`` as in CmdStan.

    Returns
    -------
    dict of arrays, shape (chain, draw, …)

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from hbnn.reference import scoring
    >>> columns = {"chain": [1, 1, 2, 2], "p[1]": [0.2, 0.3, 0.4, 0.5], "p[2]": [0.5, 0.6, 0.7, 0.8]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "draws.csv")
    ...     pd.DataFrame(columns).to_csv(file, index=False)
    ...     draws = scoring.read_draws(file)
    >>> draws["p"].shape, draws["p"][1, 0].tolist()
    ((2, 2, 2), [0.4, 0.7])
    """
    found: Any = _read_file(Path(source)) if isinstance(source, str | Path) else source
    if isinstance(found, xr.DataTree):
        if "posterior" not in found.children:
            raise ValueError(f"groups {_names(found.children)}; wanted: a group called posterior, as ArviZ writes it")
        found = found["posterior"].to_dataset()
    if isinstance(found, xr.Dataset):
        if lacking := {"chain", "draw"} - set(found.sizes):
            raise ValueError(f"no dimension {_names(sorted(lacking))}; wanted: chain and draw, as ArviZ has them")
        found = {
            name: value.transpose("chain", "draw", ...).values
            for name, value in found.data_vars.items()
            if {"chain", "draw"} <= set(value.dims)
        }
    arrays = {str(name): np.asarray(value, dtype=float) for name, value in found.items()}
    for name, value in arrays.items():
        if value.ndim < 2:
            raise ValueError(f"{name} has shape {value.shape}; wanted: (chain, draw, …)")
    return arrays


def _read_file(path: Path) -> xr.DataTree | dict[str, Floats]:
    """A netCDF file as a DataTree, or a CSV as a dict; ValueError for what is neither."""
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    if path.suffix in (".nc", ".h5", ".hdf5", ".netcdf"):
        return xr.open_datatree(path).load()
    if path.suffix != ".csv":
        raise ValueError(f"{path.name}: wanted: a netCDF file (.nc) or a CSV (.csv)")
    frame = pd.read_csv(path, comment="#")
    if "chain" not in frame:
        raise ValueError(
            f"{path.name} has columns {_names(frame.columns)}; wanted: one called chain, a row for each draw"
        )
    sizes = frame.groupby("chain").size()
    if sizes.nunique() > 1:
        raise ValueError(f"{path.name}: chains of {_names(sorted(set(sizes)))} draws; wanted: chains of one length")
    if text := [name for name, kind in frame.dtypes.items() if kind.kind not in "iuf"]:
        raise ValueError(f"{path.name}: {_names(text)} hold other things than numbers")
    frame = frame.sort_values(["chain", "draw"] if "draw" in frame else "chain", kind="stable")
    names = [name for name in frame if name not in ("chain", "draw")]
    return _stack_columns({name: frame[name].to_numpy(float).reshape(len(sizes), -1) for name in names})


def _stack_columns(columns: dict[str, Floats]) -> dict[str, Floats]:
    """Columns p[1], p[2], … (or p.1, …), each (chain, draw), as arrays (chain, draw, …)."""
    parts: dict[str, dict[tuple[int, ...], Floats]] = {}
    for column, values in columns.items():
        name = re.sub(r"[\[.]\d+(?:[,.]\d+)*\]?$", "", column)
        index = re.findall(r"\d+", column[len(name) :])
        parts.setdefault(name, {})[tuple(int(i) - 1 for i in index)] = values
    found = {}
    for name, cells in parts.items():
        shape = tuple(np.max([*cells], axis=0) + 1) if len({len(index) for index in cells}) == 1 else ()
        if set(cells) != set(np.ndindex(*shape)):
            raise ValueError(
                f"{name}: {len(cells)} columns do not fill an array; wanted: each of {name}[1], {name}[2], …"
            )
        stacked = np.stack([cells[index] for index in np.ndindex(*shape)], axis=-1)
        found[name] = stacked.reshape(*stacked.shape[:-1], *shape)
    return found


def to_functionals(draws: Named | xr.DataTree, posterior: posteriors.Posterior) -> Floats:
    """One array (chain, draw, functional), from functionals where all are there, else from the unknowns.

    ValueError for what is missing or of another shape.
    """
    draws = read_draws(draws)
    there = [name for name in posterior.functionals if name in draws]
    own = [name for name in posterior.functionals if name not in posterior.unknowns and name in draws]
    if len(there) < len(posterior.functionals) and not own:
        draws, there = posterior.compute(draws), list(posterior.functionals)
    if lacking := [name for name in posterior.functionals if name not in there]:
        raise ValueError(
            f"{posterior.name}: {_names(lacking)} missing; wanted: {_names(posterior.functionals, 9)}, or all "
            f"unknowns: {_names(posterior.unknowns, 9)}"
        )
    lead = draws[there[0]].shape[:2]
    wrong = [
        f"{name} has shape {draws[name].shape}; wanted: {(*lead, *shape)}"
        for name, shape in posterior.functionals.items()
        if draws[name].shape != (*lead, *shape)
    ]
    if wrong:
        raise ValueError(f"{posterior.name}: {'; '.join(wrong)}")
    return np.concatenate([draws[name].reshape(*lead, -1) for name in posterior.functionals], axis=2)


def find_posterior(draws: dict[str, Floats]) -> str:
    """The one posterior whose functionals or unknowns these are; ValueError where it is none or several."""
    fits = []
    for name in NAMES:
        posterior = posteriors.load_posterior(name)
        for wanted in (posterior.functionals, posterior.unknowns):
            if all(key in draws and draws[key].shape[2:] == shape for key, shape in wanted.items()):
                fits.append(name)
    if len(set(fits)) != 1:
        asked = "; ".join(f"{name}: {_names(posteriors.load_posterior(name).functionals, 9)}" for name in NAMES)
        raise ValueError(
            f"these draws of {_names(draws, 9)} fit no posterior alone; wanted: its name, or all of {asked}"
        )
    return fits[0]


def _names(names: Iterable[object], limit: int = 5) -> str:
    return join(map(str, names), limit)


def main(arguments: Sequence[str] | None = None) -> int:
    """What the module's first lines say. Exit status: 0 right, 1 wrong, 2 too few draws or not to be read."""
    parser = argparse.ArgumentParser(prog="python -m hbnn.reference", description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", metavar="FILE", help="netCDF (.nc) or CSV (.csv) with your draws")
    parser.add_argument("--posterior", metavar="NAME", help="one of those that --list shows")
    parser.add_argument("--list", action="store_true", help="show the posteriors, and what is asked of each")
    parser.add_argument("--all", action="store_true", help="show a row for each functional")
    asked = parser.parse_args(arguments)
    if asked.list or not asked.file:
        for name in NAMES:
            posterior = posteriors.load_posterior(name)
            for words, shapes in (("functionals", posterior.functionals), ("unknowns", posterior.unknowns)):
                print(f"{name}, {words}:", ", ".join(f"{key}{list(s) if s else ''}" for key, s in shapes.items()))
        return 0 if asked.list else 2
    try:
        found = score_draws(read_draws(asked.file), asked.posterior)
    except ValueError as error:
        print(f"{asked.file}: {error}", file=sys.stderr)
        return 2
    if asked.all:
        print(found.to_frame().round(3).to_string())
    print(found)
    return {RIGHT: 0, WRONG: 1, FEW: 2}[found.verdict]
