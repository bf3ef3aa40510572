"""The hierarchical network for a table with groups and any outcome, typed in PyMC, and the units that it works in."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pymc as pm
from scipy.stats import hmean

from hbnn._checks import check_count
from hbnn._refused import Refused
from hbnn._text import join
from hbnn._types import Array, Floats
from hbnn.tables._table import NUMBERS, WEIGHTED, Table, measure_bulk, require_groups

LEAST_ROWS = 10  # of each class
MOST_SLOPES = 6  # features of a line with a slope for each group


@dataclass(frozen=True)
class Scales:
    """What features and outcome of a table are standardised by, in its units."""

    center: Floats  #: (feature,)
    width: Floats
    level: float  #: mean (heavy: median) of a real outcome, in its unit, of logits of shares, or log of that of counts
    spread: float  #: its standard deviation (heavy: that of a normal with its middle half)

    @classmethod
    def measure(cls, rows: Table) -> "Scales":
        """Those of a table with an outcome."""
        y, level, spread = rows.target, 0.0, 1.0
        if rows.kind == "heavy":
            level, spread = np.median(y), measure_bulk(y) or 1.0
        elif rows.kind in WEIGHTED:
            level, spread = y.mean(), y.std() or 1.0
        elif rows.kind == "counts":
            level = np.log(max(rows.y.mean(), 1 / len(rows.y)))
        return cls(*measure_columns(rows.values), float(level), float(spread))

    def scale_features(self, rows: Table) -> Floats:
        """Standardised features, (row, feature)."""
        return (rows.values - self.center) / self.width

    def scale_outcome(self, rows: Table) -> Array:
        """The standardised outcome, (row,); counts and classes as they are."""
        return (rows.target - self.level) / self.spread if rows.kind in WEIGHTED else rows.target


def measure_columns(values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of (obs, feature) values, (feature,) each; of a constant, in a fold, itself and 1."""
    varies = np.ptp(values, axis=0) > 0
    return np.where(varies, values.mean(axis=0), values[0]), np.where(varies, values.std(axis=0), 1.0)


def noise_ratio(weight: Floats, mean: float | None = None) -> Floats:
    """Of a row's noise to that of a row of mean weight, (row,), the harmonic mean unless another one is given."""
    return np.sqrt((hmean(weight) if mean is None else mean) / weight)


def build_network(
    rows: Table, *, n_units: int | None = None, vary: Literal["all", "readout"] | None = None
) -> pm.Model:
    """A network with one hidden layer of tanh units for each group of a table; or a hierarchical line, without one.

    Features, and a real outcome, are standardised over all rows. Weights are mu + sd z. A second group adds a level,
    "c", normal about 0. Counts are negative binomial: the output is the log of their mean, from that of all rows, and
    rates vary by a share of themselves, "noise", with a half-normal prior of sd 1. Zero, where that prior is highest,
    is the Poisson, so more is learned only where rows ask for it (Simpson et al., 2017) (a reasonable prior on 1/alpha
    would be far from it); and one, where rates vary as an exponential does, is about the most that is met with.
    Heavy-tailed numbers have a Student t (Juárez and Steel, 2010), and are standardised by their median and middle
    half. Of ordered classes the output is one number, and classes are what lies between cutpoints on its line
    (McCullagh, 1980); where the output is 0, their probabilities are uniform on the simplex a priori. Slopes of a line
    have priors of sd 2.5 (Westfall, 2017), as Bambi has.

    Parameters
    ----------
    rows : Table
    n_units : int, optional
        Hidden units; default 6 for numbers and for several classes, 10 for two. With 0, each group has a line: a level,
        and slopes unless there are several classes or more than 6 features; each with a group sd of its own.
    vary : {"all", "readout"}, optional
        The layers that differ between groups; default "all" for two classes, else "readout": if hidden weights of each
        group's own are asked of numbers or several classes, chains rarely agree.

    Returns
    -------
    pm.Model
        With dims group, obs, feature, hidden (class, second_group), data X, g and seen (s; level, of log counts; ratio,
        of a weighted row's noise).

    Raises
    ------
    Refused
        For no outcome, one group, a constant feature or outcome, a class of few rows.
    ValueError
        For odd arguments.

    References
    ----------
    - Simpson et al. (2017), Penalising Model Component Complexity, Statistical Science 32.
    - Juárez and Steel (2010), Journal of Business and Economic Statistics 28, for the degrees of freedom.
    - McCullagh (1980), Regression Models for Ordinal Data, JRSS B 42.
    - Westfall (2017), arXiv 1702.01201.

    Examples
    --------
    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> sorted(tables.build_network(rows, n_units=2).coords)
    ['feature', 'group', 'hidden', 'obs']
    """
    check_rows(rows)
    n_units = (10 if rows.kind == "binary" else 6) if n_units is None else n_units
    check_count(n_units, "n_units", least=0)
    vary = ("all" if rows.kind == "binary" else "readout") if vary is None else vary
    if vary not in ("all", "readout"):
        raise ValueError(f"vary={vary!r}; wanted: 'all' or 'readout'")
    scales = Scales.measure(rows)
    coords = {"group": rows.groups, "feature": rows.features} | ({"hidden": range(n_units)} if n_units else {})
    coords |= {"second_group": rows.second_groups} if rows.second_group is not None else {}
    below, wide = ("hidden", 1) if n_units else ("feature", 2.5)
    output = ("class",) if rows.kind == "classes" and not rows.ordered else ()

    def share(name: str, *dims: str) -> Any:  # one for all groups
        return pm.Normal(name, 0, wide, dims=dims)

    def differ(name: str, *dims: str) -> Any:  # for every group: a common mean, a group sd, offsets
        mu = 0 if name == "b2" and rows.ordered else pm.Normal(f"{name}_mu", 0, wide, dims=dims)  # else in the cuts
        sd = pm.HalfNormal(f"{name}_sd", wide, dims=() if n_units else dims)
        z = pm.Normal(f"{name}_z", 0, 1, dims=("group", *dims))
        return pm.Deterministic(name, mu + sd * z, dims=("group", *dims))

    with pm.Model(coords=coords | ({"class": rows.classes} if rows.kind == "classes" else {})) as model:
        X = pm.Data("X", scales.scale_features(rows), dims=("obs", "feature"))
        g, seen = pm.Data("g", rows.group, dims="obs"), pm.Data("seen", scales.scale_outcome(rows), dims="obs")
        if not n_units:
            h = X
        elif vary == "all":
            z1 = (X[:, :, None] * differ("w1", "feature", "hidden")[g]).sum(axis=1)
            h = pm.math.tanh(z1 + differ("b1", "hidden")[g])
        else:
            h = pm.math.tanh(X @ share("w1", "feature", "hidden") + share("b1", "hidden"))
        if n_units or (len(rows.features) <= MOST_SLOPES and not output):
            out = ((h[:, :, None] if output else h) * differ("w2", below, *output)[g]).sum(axis=1)
        else:
            out = h @ share("w2", below, *output)
        out = out + differ("b2", *output)[g]
        if rows.second_group is not None:
            c = pm.HalfNormal("c_sd", wide) * pm.Normal("c_z", 0, 1, dims=("second_group", *output))
            out = out + c[pm.Data("s", rows.second_group, dims="obs")]
        if rows.kind == "binary":
            pm.Bernoulli("y", logit_p=out, observed=seen, dims="obs")
        elif rows.ordered:
            cut = pm.math.logit(pm.Dirichlet("start", np.ones(len(rows.classes)), dims="class").cumsum()[:-1])
            pm.OrderedLogistic("y", eta=out, cutpoints=cut, compute_p=False, observed=seen, dims="obs")
        elif rows.kind == "classes":
            pm.Categorical("y", logit_p=out, observed=seen, dims="obs")
        elif rows.kind == "counts":
            mu = pm.math.exp(pm.Data("level", scales.level) + out)
            pm.NegativeBinomial("y", mu=mu, alpha=pm.HalfNormal("noise", 1) ** -2, observed=seen, dims="obs")
        else:
            noise = pm.HalfNormal("noise", 1)
            if rows.weight is not None:
                noise = noise * pm.Data("ratio", noise_ratio(rows.weight), dims="obs")
            if rows.kind == "heavy":
                pm.StudentT("y", nu=pm.Gamma("tails", 2, 0.1), mu=out, sigma=noise, observed=seen, dims="obs")
            else:
                pm.Normal("y", out, noise, observed=seen, dims="obs")
    return model


def check_rows(rows: Table) -> None:
    """Refuse rows that no network can be fitted to."""
    require_groups(rows)
    if rows.second_group is not None and len(rows.second_groups) < 2:
        raise Refused(
            f"all rows are of one group of {rows.columns['second_group']!r}; wanted: two or more, or without it"
        )
    if rows.kind not in NUMBERS:
        counts = np.bincount(rows.y, minlength=len(rows.classes))
        pairs = [(name, n) for name, n in zip(rows.classes, counts, strict=True) if n < LEAST_ROWS]
        few = [f"{name!r} ({n} row{'s' * int(n != 1)})" for name, n in pairs]
        if few:
            wanted = f"at least {LEAST_ROWS} rows of each; merge classes, or leave some out"
            raise Refused(f"too few rows of {rows.columns['outcome']!r} {join(few)}; wanted: {wanted}")
    elif np.ptp(rows.y) == 0:
        raise Refused(f"{rows.columns['outcome']!r} is the same in all rows; wanted: an outcome that varies")
    elif rows.kind == "counts" and np.count_nonzero(rows.y) < LEAST_ROWS:
        raise Refused(f"{rows.columns['outcome']!r} is above 0 in fewer than {LEAST_ROWS} rows; wanted: more rows")
    same = [name for name, spread in zip(rows.features, np.ptp(rows.values, axis=0), strict=True) if spread == 0]
    if same:
        raise Refused(f"the same in all rows: {join(map(repr, same))}; wanted: features that vary")
