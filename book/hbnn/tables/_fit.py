"""Models of a table, fitted: the hierarchical network and line, by NUTS, and their rivals from scikit-learn.

Rivals are lines, quadratics, smooth curves and boosted trees, tuned within their training rows. A group is a column of
0 and 1 each, or a category. What is a line in its columns has a normal posterior about its fit, as its formula or
Laplace has it; trees have none.
"""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, solve_triangular
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array, hstack, issparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer, TargetEncoder
from threadpoolctl import threadpool_limits

from hbnn import metrics
from hbnn._checks import check_count, check_seed
from hbnn._refused import Refused
from hbnn._text import join
from hbnn._types import Array, Floats
from hbnn.tables._predict import (
    PRECISE,
    WEIGHTS,
    Fit,
    Prediction,
    Scales,
    Weights,
    count_sd,
    log_density,
    match_axes,
    measure_columns,
    measure_precision,
    predict,
)
from hbnn.tables._read import NUMBERS, Places, Schema, Table, check_rows, find_groups, say_rows

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr
    from nutpie.compile_pymc import CompiledPyMCModel

type Compiled = CompiledPyMCModel
type Sampler = Mapping[str, Any] | None  # chains, draws, tune, target_accept
type Progress = Callable[[str], object]  # takes a line that says how far a function is
NETWORK, LINE = "network", "hierarchical line"
RIVALS = {  # the simplest first
    "line": "a line with a level for each group",
    LINE: "a hierarchical line",
    "quadratic": "a quadratic with a level for each group",
    "smooth": "smooth curves by group",
    "trees": "boosted trees",
}
NAMES = RIVALS | {NETWORK: "the hierarchical network"}
SAMPLED: dict[str, dict[str, Any]] = {LINE: {"n_units": 0}, NETWORK: {}}  # by NUTS; options of `build_network`
RUN: dict[str, Any] = {"chains": 4, "draws": 500, "tune": 500, "target_accept": 0.95}
SHORT_SAMPLER: dict[str, Any] = {"chains": 2, "draws": 300, "tune": 400, "target_accept": 0.9}  # in each fold
MOST = 3  # runs of it
KEPT = 1000  # draws
LEAST_ROWS = 10  # of each class, for a network
MOST_SLOPES = 6  # features of a line with a slope for each group
MOST_CATEGORIES = 250  # that boosted trees can tell apart
MOST_PRODUCTS = 100  # features whose products a quadratic has; of more, squares alone
MOST_WEIGHTS = 2000  # whose covariance is computed
DRAWS = 200  # of coefficients of a rival
INNER = 5  # folds within the training rows
MANY_ROWS, MANY_GROUPS = 20_000, 1_000  # beyond, rivals alone, with two folds and two inner folds
RARE = "The least populated class in y has only"  # scikit-learn's warning where there are fewer rows than folds
STRENGTHS = np.array([0.01, 0.1, 1.0, 10.0])
KNOTS = 5  # of a smooth curve, at quantiles
BENDS = 2.0  # sd of the curve that all groups share, where a slope's is 1
OWN = ((0.0, 0.0), (1.0, 0.0), (1.0, 0.6))  # the same of slopes and curves of each group, of which one is chosen
TREES: dict[str, Any] = {"max_iter": (30, 100), "max_leaf_nodes": (4, 15), "learning_rate": (0.03, 0.1)}
UNSEEN = 1e-3  # probability of a class that was not among the training rows, before all are made to add up to one


# --- the network, typed in PyMC


def build_network(rows: Table, *, n_units: int | None = None) -> "pm.Model":
    """A network with one hidden layer of tanh units for each group of a table; or a hierarchical line, without one.

    Features, and a real outcome, are standardised over all rows. Weights are mu + sd z: of all layers for two classes,
    else of the read-out alone, as chains rarely agree where hidden weights of each group's own are asked of numbers or
    several classes. A second group adds a level, "c", normal about 0. Counts are negative binomial: the output is the
    log of their mean, from that of all rows, and rates vary by a share of themselves, "noise", whose half-normal prior
    is highest at the Poisson (Simpson et al., 2017). Of ordered classes the output is one number, and classes are what
    lies between cutpoints on its line (McCullagh, 1980), a priori uniform on the simplex where it is 0. Slopes of a
    line have priors of sd 2.5 (Westfall, 2017), as Bambi has.

    Parameters
    ----------
    rows : Table
    n_units : int, optional
        Hidden units; default 6 for numbers and for several classes, 10 for two. With 0, each group has a line: a level,
        and slopes unless there are several classes or more than 6 features; each with a group sd of its own.

    Returns
    -------
    pm.Model
        With dims group, obs, feature, hidden (class, second_group), data X, g and seen (s; level, of log counts).

    Raises
    ------
    Refused, ValueError
        For no outcome, one group, a constant feature or outcome, a class of few rows; and for odd arguments.

    References
    ----------
    - Simpson et al. (2017), Penalising Model Component Complexity, Statistical Science 32.
    - McCullagh (1980), Regression Models for Ordinal Data, JRSS B 42.
    - Westfall (2017), arXiv 1702.01201.

    Examples
    --------
    Goes on from `read_table`.

    >>> sorted(tables.build_network(rows, n_units=2).coords)
    ['feature', 'group', 'hidden', 'obs']
    """
    import pymc as pm

    check_network(rows)
    n_units = (10 if rows.kind == "binary" else 6) if n_units is None else n_units
    check_count(n_units, "n_units", least=0)
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
        elif rows.kind == "binary":
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
            pm.Normal("y", out, pm.HalfNormal("noise", 1), observed=seen, dims="obs")
    return model


def check_network(rows: Table) -> None:
    """Refuse rows that no network can be fitted to, though a rival may be."""
    check_rows(rows)
    name = rows.columns["outcome"]
    if rows.kind not in NUMBERS and not rows.ordered:
        counts = np.bincount(rows.y, minlength=len(rows.classes))
        pairs = zip(rows.classes, counts, strict=True)
        if few := [f"{each!r} ({say_rows(n)})" for each, n in pairs if n < LEAST_ROWS]:
            wanted = f"at least {LEAST_ROWS} rows of each; merge classes, or leave some out"
            raise Refused(f"too few rows of {name!r} {join(few)}; wanted: {wanted}")
    elif rows.kind == "counts" and np.count_nonzero(rows.y) < LEAST_ROWS:
        raise Refused(f"{name!r} is above 0 in fewer than {LEAST_ROWS} rows; wanted: more rows")


def say_time(seconds: float) -> str:
    """Text such as "about 1 minute": seconds up to 45, minutes up to 90, then hours."""
    unit, size = ("second", 1) if seconds < 45.5 else ("minute", 60) if seconds < 5430 else ("hour", 3600)
    n = max(round(seconds / size), 1)
    return f"about {n:,} {unit}{'s' * (n > 1)}"


def compile_network(rows: Table, **options: Any) -> "Compiled":
    """The network of `build_network`, with its options, compiled: for `fit_network` to any of these rows.

    Examples
    --------
    Goes on from `read_table`.

    >>> int(tables.compile_network(rows, n_units=2).n_dim)  # unknowns
    32
    """
    from hbnn import sampling
    from hbnn.fusion import fuse

    model = build_network(rows, **options)
    return sampling.compile_nuts(fuse(model, check=False) if "hidden" in model.coords else model)


def fit_network(
    rows: Table,
    *,
    seed: int,
    network: "Compiled | None" = None,
    index: Places | None = None,
    sampler: Sampler = None,
    asked: Table | None = None,
    most: int = 1,
    cores: int = 1,
    progress: Progress | None = None,
) -> Fit:
    """Sample a network with NUTS (Hoffman and Gelman, 2014), and keep at most 1,000 draws.

    With `asked`, more chains are run, and none is thrown away, until the predictions of these rows are exact enough
    (`Precision.usable`), or for `most` runs: where they still are not, chains sit in different places, and all count
    the same. After Ctrl-C the chains that are whole are used, if there are two.

    Parameters
    ----------
    rows : Table
    seed : int
    network : CompiledPyMCModel, optional
        What `compile_network` makes of these rows; default: that of its defaults.
    index : array, optional
        (obs,) places of the rows to learn from; default: all.
    sampler : dict, optional
        What to change in 4 chains of 500 draws: chains, draws, tune and target_accept.
    asked : Table, optional
        Rows to be predicted, of known groups or new ones; at up to 200 of them the precision is measured, which says
        whether the chains agree.
    most : int
        Runs of `sampler`, at most.
    cores : int
        As in `sampling.sample_nuts`.
    progress : callable, optional
        Called after each run with a line of text: how exact the predictions are, and how long all that may come takes.

    References
    ----------
    - Hoffman and Gelman (2014), The No-U-Turn Sampler, JMLR 15.

    Examples
    --------
    A short run of a hierarchical line:

    >>> from hbnn import tables
    >>> frame = tables.example_frame()
    >>> rows = tables.read_table(frame, group="field", features=["rain"], outcome="wheat")
    >>> line = tables.compile_network(rows, n_units=0)
    >>> short = {"chains": 2, "draws": 200, "tune": 300}
    >>> fit = tables.fit_network(rows, seed=1, network=line, sampler=short, asked=rows)
    >>> fit.groups, fit.kind, fit.draws["w2"].shape, fit.precision.share < 0.2
    (('a', 'b', 'c'), 'real', (400, 3, 1), True)
    """
    from hbnn import sampling

    check_seed(seed)
    check_network(rows)
    settings = RUN | dict(sampler or {})
    if len(settings) > len(RUN) or settings["chains"] < 2 or settings["draws"] < 4:
        wanted = f"some of {', '.join(RUN)}; at least 2 chains of 4 draws, which can be compared"
        raise ValueError(f"sampler={sampler!r}; wanted: {wanted}")
    network = compile_network(rows) if network is None else network
    used = rows if index is None else rows.take(index)
    scales, there = Scales.measure(used), np.unique(used.group)
    schema = {part.name: getattr(rows, part.name) for part in fields(Schema)}
    schema["groups"] = tuple(rows.groups[g] for g in there)
    data: dict[str, Any] = {"X": scales.scale_features(used), "seen": scales.scale_outcome(used), "g": used.group}
    data |= {"level": scales.level} if rows.kind == "counts" else {}
    data |= {"s": used.second_group} if rows.second_group is not None else {}
    ready, start = network.with_data(**data), time.perf_counter()
    tree: Any = None
    seeds = [seed, *np.random.SeedSequence(seed).generate_state(most)[1:].tolist()]
    for k, own in enumerate(seeds, start=1):
        run: xr.DataTree | None
        try:
            run, cut = sampling.sample_nuts(ready, seed=own, cores=cores, **settings), False
        except sampling.Interrupted as stopped:
            if asked is None:
                raise
            run, cut = stopped.tree, True
        tree = run if tree is None else tree if run is None else sampling.join_chains(tree, run)
        if tree is None or (cut and tree["posterior"].sizes["chain"] < 2):
            raise KeyboardInterrupt
        posterior = _read_weights(tree, there)
        flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in posterior.items()}
        fit, n_chains = Fit(draws=flat, scales=scales, **schema), len(posterior["w2"])
        if asked is None:
            break
        some = np.unique(np.linspace(0, len(asked.values) - 1, 200).astype(int))
        predicted = predict(fit, asked.take(some), seed=seed)
        parts: Any = (x if x is None else x.reshape(n_chains, -1, *x.shape[1:]) for x in predicted.to_unit())
        fit = replace(fit, precision=(precision := measure_precision(*parts)))
        if precision.usable or cut:
            break
        if progress is not None and (left := most - k):
            more = say_time((time.perf_counter() - start) / k * left)
            found = f"known to {precision.share:.1%} of an outcome's sd, where {PRECISE:.0%} is wanted"
            runs = f"one more run takes {more}" if left == 1 else f"up to {left} more runs take {more}"
            progress(f"  {n_chains} chains: {found}; {runs}")
    if cut:
        (progress or warnings.warn)(f"Interrupted: the {n_chains} chains that are whole are used.")
    kept = slice(None, None, -(-len(flat["w2"]) // KEPT))
    return replace(fit, draws={name: values[kept].copy() for name, values in flat.items()})


def _read_weights(tree: "xr.DataTree", there: Places) -> Weights:
    """Weights of all networks, (chain, draw, …), of the groups that are there."""
    posterior = {str(name): values.values for name, values in tree["posterior"].to_dataset().items()}
    for name in [name for name in WEIGHTS if f"{name}_z" in posterior]:
        z = posterior.pop(f"{name}_z")[:, :, there]
        mu = posterior.setdefault(f"{name}_mu", np.zeros(z[:, :, 0].shape))
        posterior[name] = mu[:, :, None] + match_axes(posterior[f"{name}_sd"], mu)[:, :, None] * z
    if "c_z" in posterior:
        z = posterior.pop("c_z")
        posterior["c"] = match_axes(posterior["c_sd"], z) * z
    return {name: values for name, values in posterior.items() if not name.endswith("__")}


# --- rivals


def check_rivals(rivals: Sequence[str]) -> None:
    """Raise ValueError for a rival that is none."""
    if isinstance(rivals, str) or not rivals or not set(rivals) <= set(RIVALS):
        raise ValueError(f"rivals={rivals!r}; wanted: some of {', '.join(map(repr, RIVALS))}")


def is_many(n_rows: int, rows: Table) -> bool:
    """Whether a network would take hours, and columns of groups more memory than there is."""
    return n_rows > MANY_ROWS or max(len(rows.groups), len(rows.second_groups)) > MANY_GROUPS


def fit_rival(
    name: str, rows: Table, train: Places, test: Places, *, seed: int, new_groups: bool = False
) -> Prediction:
    """Predictions of a rival for rows that it has not seen, of one draw; of a smooth, in known groups, of 200.

    The rivals are scikit-learn's (Pedregosa et al., 2011), but for the hierarchical line, which is that of
    `build_network` with no units, of 600 draws. The smooth is a mixed model with smooths (Wood, 2017): a line and a
    cubic spline of each feature for all rows, and for each group a level, slopes and curves of its own about these, all
    normal, with variances that cross-validation chooses. All settings are tuned by cross-validation within the training
    rows, over rows or, with `new_groups`, over groups. A group is a column of 0 and 1 each; for trees a category, or,
    where there are more than they can tell apart, the mean outcome of the group in other training rows
    (`TargetEncoder`, fitted anew in each inner fold). Means of counts are fitted as a Poisson's, and how far counts
    vary about them is fitted to left-out rows, by a negative binomial.

    Parameters
    ----------
    name : str
        One of RIVALS; ValueError for others.
    rows : Table
    train, test : array
        (obs,) places of rows.
    seed : int
    new_groups : bool
        Whether the test rows are of groups that are not among the training rows.

    References
    ----------
    - Pedregosa et al. (2011), JMLR 12.
    - Wood (2017), Generalized Additive Models, 2nd edition.

    Examples
    --------
    Goes on from `read_table`.

    >>> import numpy as np
    >>> forecast = tables.fit_rival("line", rows, np.arange(40), np.arange(40, 60), seed=1)
    >>> forecast.draws.shape  # one line is one draw
    (1, 20)
    """
    check_seed(seed)
    check_rivals((name,))
    if name == LINE:
        network = compile_network(rows, **SAMPLED[LINE])
        return predict_fold(rows, train, rows.take(test), seed=seed, network=network)
    learner, rng = _Learner(name, rows, train, seed, new_groups), np.random.default_rng(seed)
    return learner.predict(rows.take(test), *((rng, DRAWS) if name == "smooth" and not new_groups else ()))


def predict_fold(
    rows: Table, train: Places, held: Table, *, seed: int, network: "Compiled", sampler: Sampler = None, cores: int = 1
) -> Prediction:
    """Of held-out rows: by the networks or lines of their groups, or by ones drawn for groups that were left out."""
    short = SHORT_SAMPLER | dict(sampler or {})
    known = fit_network(rows, seed=seed, network=network, index=train, sampler=short, cores=cores)
    return predict(known, held, seed=seed)


@dataclass(frozen=True)
class Rival:
    """A rival fitted to all rows of a table, and, where new groups are asked for, a second time for these, with
    settings that were tuned on groups left out whole. What rows of a new group share is ignorance of its mean."""

    name: str
    rows: Table
    seed: int

    @cached_property
    def known(self) -> "_Learner":
        """For groups of the table."""
        return _Learner(self.name, self.rows, np.arange(len(self.rows.group)), self.seed)

    @cached_property
    def new(self) -> "_Learner":
        """For others."""
        return _Learner(self.name, self.rows, np.arange(len(self.rows.group)), self.seed, new_groups=True)

    def predict(self, asked: Table) -> Prediction:
        """Predictions of rows, by draws of the coefficients; of trees, and of very many coefficients, by one fit."""
        is_new = find_groups(asked, self.rows.features, self.rows.groups, new=True) < 0
        rng, n = np.random.default_rng(self.seed), 20 if is_many(len(self.rows.group), self.rows) else DRAWS
        parts = []
        for new in np.unique(is_new):
            learner, held = self.new if new else self.known, asked.take(is_new == new)
            part = learner.predict(held, rng, n)
            if new and len(part.draws) > 1 and self.rows.kind in ("real", "share"):
                own = min(self.known.sd, learner.noise)
                level = rng.normal(0, np.sqrt(learner.noise**2 - own**2), (len(part.draws), len(asked.groups)))
                part = replace(part, draws=part.draws + level[:, held.group], noise=np.full((len(level), 1), own))
            parts.append(part)
        most, order = max(len(part.draws) for part in parts), np.argsort(np.argsort(is_new, kind="stable"))

        def put_together(name: str) -> Floats:  # of too many coefficients there is one draw alone
            each = [np.broadcast_to(getattr(part, name), part.draws.shape) for part in parts]
            return np.concatenate([np.resize(x, (most, *x.shape[1:])) for x in each], axis=1)[:, order]

        return replace(part, draws=put_together("draws"), noise=None if part.noise is None else put_together("noise"))


def _fit_spline(x: Floats) -> Callable[[Floats], Floats]:
    """A function from a feature to what a cubic spline of it has beside a line, (row, column), of sd 1 in all, or
    nothing of a feature of two values."""
    knots = np.unique(np.quantile(x, np.linspace(0, 1, KNOTS)))
    if len(knots) < 3:
        return lambda x: np.empty((len(x), 0))
    spline = SplineTransformer(knots=knots[:, None], extrapolation="linear", include_bias=False).fit(x[:, None])
    line = LinearRegression().fit(x[:, None], spline.transform(x[:, None]))

    def bend(x: Floats) -> Floats:
        return spline.transform(x[:, None]) - line.predict(x[:, None])

    size = np.sqrt(np.mean(bend(x) ** 2, axis=0).sum())
    return lambda x: bend(x) / size


class _Learner:
    """A rival tuned and fitted to some rows, which it sees as columns of features and of groups, scaled by them."""

    @threadpool_limits.wrap(limits=1)  # threads of such small fits wait for each other: on busy cores, for minutes
    def __init__(self, name: str, rows: Table, train: Places, seed: int, new_groups: bool = False) -> None:
        self.name, self.rows, self.train, self.many = name, rows, train, is_many(len(train), rows)
        self.scales = [measure_columns(rows.values[train])]  # of features, and of their squares and products
        self.splines = [_fit_spline(x) for x in self.bend(rows)[train].T] if name == "smooth" else []
        if name == "quadratic":
            self.scales.append(measure_columns(self.bend(rows)[train]))
        y, kind = rows.target, rows.kind
        self.own = OWN[0]
        self.X = self.encode(rows)
        self.model: Any = None  # where there is nothing to tell apart
        self.noise = 0.0  # sd about the mean of rows that were left out; of counts, what the rate varies by
        apart = None if kind in NUMBERS else y[train]
        if kind == "counts" and not y[train].all():
            apart = (y[train] > 0).astype(int)  # of zeros alone nothing can be learned
        if apart is not None and np.ptp(apart) == 0:
            return
        folds = _split_inner(rows.group[train], apart, new_groups, seed, 2 if self.many else INNER)
        model, grid = self.choose(seed)
        score = "neg_mean_squared_error" if kind in ("real", "share") else self.score
        tried = []
        for own in OWN if name == "smooth" and not self.many else OWN[:1]:
            self.own = own
            self.X = self.encode(rows)
            tried.append((own, self.X, self.fit(GridSearchCV(model, grid, cv=folds, scoring=score), train)))
        self.own, self.X, search = max(tried, key=lambda one: one[2].best_score_)
        self.model = search.best_estimator_
        if kind == "counts":
            told = [self.mean(self.fit(clone(self.model), train[a]), self.X[train[b]]) for a, b in folds]
            self.noise = _fit_dispersion(np.concatenate(told), rows.take(train[np.concatenate([b for _, b in folds])]))
        elif kind in NUMBERS:
            self.noise = float(np.sqrt(max(-search.best_score_, 1e-12 * y[train].var(), 1e-300)))

    def bend(self, rows: Table) -> Floats:
        """Features, and their squares and products, (row, column)."""
        X = (rows.values - self.scales[0][0]) / self.scales[0][1]
        if self.name == "quadratic" and X.shape[1] > MOST_PRODUCTS:
            return np.column_stack([X, X**2])
        return PolynomialFeatures(2, include_bias=False).fit_transform(X) if self.name == "quadratic" else X

    def list_groupings(self, rows: Table) -> list[tuple[Places, int]]:
        """Place of each row's group among those that are known, -1 for another one, and how many these are; and of its
        second group."""
        known = self.rows
        if known.second_groups and rows.second_group is None:
            raise Refused("the table has no second group; wanted: one, as where it was learned from")
        found = [(rows.group, rows.groups, known.groups)]
        if rows.second_group is not None:
            found.append((rows.second_group, rows.second_groups, known.second_groups))
        return [(pd.Index(names).get_indexer(there)[place], len(names)) for place, there, names in found]

    def encode(self, rows: Table) -> Any:
        """Columns of some rows; a group that was not seen is in no column, or in a category of its own."""
        center, width = self.scales[-1] if self.name == "quadratic" else (0.0, 1.0)
        X, groupings = (self.bend(rows) - center) / width, self.list_groupings(rows)
        if self.name == "trees":
            return np.column_stack([X, *(np.where(at < 0, n, at) for at, n in groupings)])
        parts = []
        for at, n in groupings:
            there = np.flatnonzero(at >= 0)
            parts.append(csr_array((np.ones(len(there)), (there, at[there])), (len(at), n)))
        if self.name == "smooth":  # a level, slopes and curves of each group, as of all
            curves = np.column_stack([bend(x) for bend, x in zip(self.splines, X.T, strict=True)])
            every, which = np.column_stack([X, curves]), np.repeat([0, 1], [X.shape[1], curves.shape[1]])
            own = np.array(self.own)[which]
            parts += [parts[0].multiply(column[:, None]) for column in (every * own).T[own > 0]]
            return csr_array(hstack([every * np.array([1.0, BENDS])[which], *parts]))
        return csr_array(hstack([X, *parts])) if self.many else np.column_stack([X, *(p.toarray() for p in parts)])

    def choose(self, seed: int) -> tuple[BaseEstimator, dict[str, Any]]:
        """A model of scikit-learn, and the settings to choose from; a further rival has its line here and in RIVALS."""
        kind, number = self.rows.kind, self.rows.kind in NUMBERS
        if self.name != "trees":
            if kind == "counts":
                return PoissonRegressor(max_iter=1000), {"alpha": 1 / STRENGTHS / len(self.train)}
            if number:
                return Ridge(tol=1e-6 if self.name == "smooth" else 1e-4), {"alpha": 1 / STRENGTHS}
            return LogisticRegression(max_iter=1000), {"C": STRENGTHS}
        sizes = [len(np.unique(at[self.train])) for at, _ in self.list_groupings(self.rows)]
        few, last = max(sizes) <= MOST_CATEGORIES, list(range(self.X.shape[1]))[-len(sizes) :]
        options: dict[str, Any] = {"min_samples_leaf": 5, "categorical_features": last if few else None}
        options |= {"random_state": seed} | ({"loss": "poisson"} if kind == "counts" else {})
        model = (HistGradientBoostingRegressor if number else HistGradientBoostingClassifier)(**options)
        if few:
            return model, TREES
        folds = (KFold if number else StratifiedKFold)(INNER, shuffle=True, random_state=seed)
        encoder = TargetEncoder(cv=folds, target_type="continuous" if number else "auto")
        encoded = make_column_transformer((encoder, last), remainder="passthrough")
        return make_pipeline(encoded, model), {f"{type(model).__name__.lower()}__{k}": v for k, v in TREES.items()}

    def fit(self, model: BaseEstimator, where: Places) -> Any:
        """A model fitted to some rows."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a solver that needs more steps at one of the settings
            warnings.filterwarnings("ignore", RARE)  # in the folds of `TargetEncoder`
            return model.fit(self.X[where], self.rows.target[where])

    def mean(self, model: BaseEstimator, X: Any) -> Floats:
        """Means (row,), or probabilities (row, class); a fold may be without one of the classes."""
        if self.rows.kind == "counts":
            return self.clip(model.predict(X))
        if self.rows.kind in NUMBERS:
            return model.predict(X)
        return self.complete(model.predict_proba(X), model.classes_)

    def clip(self, mean: Floats) -> Floats:
        """Means of counts: a square may run away where the mean is its exponential."""
        return np.clip(mean, 1e-6, 100 * self.rows.y[self.train].max())

    def complete(self, p: Floats, seen: Array) -> Floats:
        """Probabilities (…, class seen) as those of all classes, none below `metrics.FLOOR`."""
        full = np.full((*p.shape[:-1], len(self.rows.classes)), UNSEEN)
        full[..., seen] = p
        return np.maximum(full / full.sum(axis=-1, keepdims=True), metrics.FLOOR)

    def score(self, model: BaseEstimator, X: Any, y: Array) -> float:
        """What settings of counts and classes are chosen by."""
        found = self.mean(model, X)
        if self.rows.kind == "counts":
            return -mean_poisson_deviance(y, found)
        return float(np.log(found[np.arange(len(y)), y]).mean())

    def predict(self, rows: Table, rng: np.random.Generator | None = None, n_draws: int = 1) -> Prediction:
        """Predictions of rows: of one draw, the fit, or with a generator of draws of the coefficients."""
        kind, n, model = self.rows.kind, len(rows.group), self.model
        X = self.encode(rows)
        out = None if rng is None or model is None or self.name == "trees" else self.draw(X, rng, n_draws)
        if kind not in NUMBERS:
            if model is None:
                p = self.complete(np.ones((1, n, 1)), self.rows.y[self.train][:1])
            elif out is None:
                p = self.mean(model, X)[None]
            else:
                p = softmax(out, axis=-1) if out.ndim == 3 else np.stack([1 - expit(out), expit(out)], axis=-1)
                p = self.complete(p, model.classes_)
            return Prediction(p[..., 1] if kind == "binary" else p, None, self.rows.classes)
        if kind == "counts":
            mean = self.clip(np.exp(np.minimum(out, 700))) if out is not None else None
            if mean is None:  # of zeros alone, as if half of one had been counted
                mean = np.full((1, n), 0.5 / len(self.train)) if model is None else self.mean(model, X)[None]
            return Prediction(mean, count_sd(mean, 1.0 if model is None else self.noise), counts=True)
        draws, noise = (model.predict(X)[None], self.noise) if out is None else (out, self.sd)
        share = self.rows.share[0] if self.rows.share else 0.0
        return Prediction(draws, np.full((len(draws), 1), noise), share=share)

    @cached_property
    def sd(self) -> float:
        """Of a real outcome about its mean: as rows that were left out have it, or from residuals where there are so
        many coefficients that left-out rows show what is not known of these, too (Wood, 2017, section 6.1)."""
        if self.name != "smooth" or self.X.shape[1] >= MOST_WEIGHTS:
            return self.noise
        X, y = self.X[self.train], self.rows.target[self.train]
        mean = X.mean(axis=0)
        size = np.linalg.eigvalsh((X.T @ X).toarray() - len(y) * np.outer(mean, mean))
        left = len(y) - 1 - np.sum(size / (size + self.model.alpha))
        return float(np.sqrt(np.sum((y - self.model.predict(X)) ** 2) / max(left, 1.0)))

    @cached_property
    def posterior(self) -> tuple[Floats, Floats] | None:
        """Coefficients (class, column), the intercept last, and the root of their precision: of a ridge as its formula
        has it, else Laplace's, normal about the fit (Tierney and Kadane, 1986); None of too many of them."""
        model, seen, kind = self.model, _add_one(self.X[self.train]), self.rows.kind
        beta = np.column_stack([np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)])
        if beta.size > MOST_WEIGHTS:
            return None
        out = seen @ beta.T
        if kind == "counts":
            mean = np.exp(np.minimum(out[:, 0], 700))
            weight = (mean / (1 + self.noise**2 * mean))[:, None, None]
            penalty = model.alpha * len(out)
        elif kind in NUMBERS:
            weight, penalty = np.full((len(out), 1, 1), self.sd**-2), model.alpha / self.sd**2
        else:
            p = softmax(out, axis=1) if len(beta) > 1 else expit(out)
            weight, penalty = np.eye(len(beta)) * p[:, None] - p[:, :, None] * p[:, None], 1 / model.C
        if issparse(seen):
            each = [[(seen.T @ seen.multiply(w[:, None])).toarray() for w in by.T] for by in weight.transpose(1, 0, 2)]
            precision = np.block(each)
        else:
            precision = np.einsum("nkl,ni,nj->kilj", weight, seen, seen, optimize=True).reshape(beta.size, beta.size)
        own = np.tile(np.append(np.full(seen.shape[1] - 1, penalty), 1e-6), len(beta))  # the intercept is free
        return beta, cho_factor(precision + np.diag(own), lower=False)[0]

    def draw(self, X: Any, rng: np.random.Generator, n_draws: int) -> Floats | None:
        """Outputs (draw, row) or (draw, row, class) of coefficients drawn from their posterior; None without one."""
        if self.posterior is None:
            return None
        beta, root = self.posterior
        z = solve_triangular(root, rng.normal(size=(beta.size, n_draws)), lower=False)
        drawn, X = beta + z.T.reshape(n_draws, *beta.shape), _add_one(X)
        found = np.moveaxis((X @ drawn.transpose(2, 0, 1).reshape(X.shape[1], -1)).reshape(-1, *drawn.shape[:2]), 0, 1)
        return found if len(beta) > 1 else found[..., 0]


def _add_one(X: Any) -> Any:
    """Columns with one of ones behind them, for the intercept."""
    ones = np.ones((X.shape[0], 1))
    return csr_array(hstack([X, ones])) if issparse(X) else np.column_stack([X, ones])


def _fit_dispersion(mean: Floats, rows: Table) -> float:
    """The most likely dispersion of counts about the means of rows that were left out."""

    def miss(log: float) -> float:
        return -log_density(Prediction(mean[None], count_sd(mean[None], np.exp(log)), counts=True), rows).sum()

    return float(np.exp(minimize_scalar(miss, bounds=(np.log(1e-3), np.log(10.0)), method="bounded").x))


def _split_inner(
    group: Places, y: Array | None, new_groups: bool, seed: int, n_inner: int
) -> list[tuple[Places, Places]]:
    """Inner folds of the training rows, a list of (train, test), each with two classes or more to learn from."""
    n_groups = len(np.unique(group))
    by_group = new_groups and n_groups > 1
    kinds = (GroupKFold, StratifiedGroupKFold) if by_group else (KFold, StratifiedKFold)
    n_folds = min(n_inner, n_groups if by_group else len(group))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", RARE)
        folds = kinds[y is not None](n_folds, shuffle=True, random_state=seed)
        folds = list(folds.split(group, y, groups=group if by_group else None))
    folds = [(a, b) for a, b in folds if len(b) and (y is None or len(np.unique(y[a])) > 1)]
    return folds or _split_inner(group, y, False, seed, n_inner)
