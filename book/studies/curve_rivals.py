"""Curves of individuals that a model has not seen: what others would have used in place of a hierarchical network.

Individuals are left out whole, a fifth at a time. Of each the first 0, 1, 3 and 5 measurements along the curve are then
known, and a density is predicted for each of the rest: of the logarithm for what grows, of the measurement itself for
medicines. Scores are in the data's units, a mean over an individual's points; lists hold the fold's individuals in the
order of `individuals k`, positions in the file's order; who has no point left is not in them. Of the covariates only
the formulas of the fields know any, as they always do.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from bookkit import curves
from hbnn import diagnostics, sampling
from hbnn.fusion import readouts
from scipy.special import logsumexp, ndtri

MEASURED = False
DATA = ("chicks", "soybean", "dialysers", "theophylline")
KNOWN = (0, 1, 3, 5)  # measurements of somebody new
N_FOLDS = 5
LOG = ("chicks", "soybean")
SECONDS = {
    "quadratic": (30, 20, 60, 30), "linear": (12, 8, 9, 9), "pooled": (5, 4, 3, 3),
    "alone": (2, 2, 1, 1), "boosted": (1, 1, 1, 1), "formula": (45, 18, 12, 8), "smooths": (1, 1, 1, 1),
}  # fmt: skip
CASES = [
    {"data": name, "method": method, "split": split, "fold": fold, "seed": 1}
    for split in (1, 2) for name in DATA for method in SECONDS for fold in range(N_FOLDS)
]  # fmt: skip
SAMPLER = {"draws": 500, "tune": 600, "target_accept": 0.9}
RIVAL_SAMPLER = SAMPLER | {"draws": 1000}  # theirs mix less well
N_PREDICT = 1000  # draws of the posterior that predict
N_FORMULA, PER_DRAW = 300, 400  # draws of the posterior, and individuals from the population of each
MANY = 30  # individuals, from which on the formulas' parameters may be correlated
N_QUANTILES = 4000  # of a predictive density, for its CRPS and its intervals
ROUNDS = 500  # of boosting, at most
TREES = {"learning_rate": 0.05, "max_depth": 3, "min_data_in_leaf": 10, "verbose": -1, "num_threads": 1}
SCORES = ("n", "lpd", "crps", "se", "inside 50", "inside 90", "width 50", "width 90")
DIAGNOSTICS = ("rhat", "ess", "ess_tail", "divergences")


def block(case):
    """Every row is a task of its own."""
    return tuple(case.values())


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return SECONDS[case["method"]][DATA.index(case["data"])]


# --- curves, and who is left out


@dataclass(frozen=True)
class Curves:
    """One data set, a fold of whose individuals is left out.

    Attributes
    ----------
    x, y, more : (row,), in the file's order, y on the scale that is predicted
    group : (row,), the individual's position in the file
    out : (individual,), who is left out, ascending
    train : (row,), bool
    """

    x: np.ndarray
    y: np.ndarray
    more: np.ndarray
    group: np.ndarray
    out: np.ndarray
    train: np.ndarray

    def rows(self, one):
        """The rows of an individual, along the curve."""
        return np.flatnonzero(self.group == one)

    def standardise(self):
        """x and y of all rows by mean and sd of the training rows; that mean and that sd of y."""
        x, y = self.x[self.train], self.y[self.train]
        return (self.x - x.mean()) / x.std(), (self.y - y.mean()) / y.std(), y.mean(), y.std()

    def train_group(self):
        """Whose the training rows are, counted from 0."""
        return pd.factorize(self.group[self.train])[0]


def leave_out(name, split, fold):
    """A data set without a fold of its individuals: `Curves`."""
    source, frame = curves.SOURCES[name], curves.load_curves(name)
    group = pd.factorize(frame[source.group])[0]
    out = np.sort(np.random.default_rng(split).permutation(group.max() + 1)[fold::N_FOLDS])
    y = frame[source.y].to_numpy(float)
    x, more, train = frame[source.x].to_numpy(float), frame[source.more].to_numpy(), ~np.isin(group, out)
    return Curves(x, np.log(y) if name in LOG else y, more, group, out, train)


def pick_draws(posterior, count):
    """So many draws of an xarray Dataset, evenly from all chains, by name: arrays (draw, …)."""
    stacked = posterior.stack(draws=("chain", "draw")).transpose("draws", ...)
    chosen = np.linspace(0, stacked.sizes["draws"], count, endpoint=False).astype(int)
    return {name: values.values[chosen] for name, values in stacked.data_vars.items()}


def judge(quantities, tree):
    """R-hat, effective sizes and divergences of a run."""
    found = diagnostics.verdict(quantities, tree)
    return {name: float(getattr(found, name)) for name in DIAGNOSTICS[:-1]} | {"divergences": int(found.divergences)}


# --- the methods: each returns diagnostics, and a function of (individual, k) to log weights (draw,), means and sds
# (draw, row) of that individual's measurements after the first k


def fit_bambi(known, seed, terms):
    """A polynomial whose coefficients differ between individuals, by Bambi with its default priors."""
    import bambi

    x, y, mean, sd = known.standardise()
    x, train = x.copy(), known.train
    square = x**2
    line = np.polynomial.Polynomial.fit(x[train], square[train], 1)
    square = square - line(x)  # what x says is not said twice
    columns = {"x": x, "x2": square / square[train].std()}
    frame = pd.DataFrame(
        columns | {"y": y, "individual": known.group.astype(str)}
    )[known.train]  # fmt: skip
    names = " + ".join(["1", *terms])
    model = bambi.Model(f"y ~ {names} + ({names} | individual)", frame)
    tree = model.fit(random_seed=seed, **RIVAL_SAMPLER, **sampling.ONE_CORE)
    common = ["Intercept", *terms]
    sds = [f"{name}|individual_sigma" for name in ("1", *terms)]
    shared = tree["posterior"].to_dataset()[[*common, *sds, "sigma"]]
    found = judge({name: shared[name].values for name in shared.data_vars}, tree)
    p = pick_draws(shared, N_PREDICT)
    mus, spreads = np.column_stack([p[name] for name in common]), np.column_stack([p[name] for name in sds])
    units = np.column_stack([np.ones(len(x)), *(columns[name] for name in terms)])

    def predict(one, k):
        at = known.rows(one)
        each = np.broadcast_to(units[at], (len(mus), len(at), len(common)))
        log_weight, m, s = readouts.predict_group(each[:, :k], y[at][:k], each[:, k:], mus, spreads, p["sigma"])
        return log_weight, mean + sd * m, sd * s

    return found, predict


def fit_quadratic(known, seed):
    """`fit_bambi` with a level, a slope and a curvature."""
    return fit_bambi(known, seed, ("x", "x2"))


def fit_linear(known, seed):
    """`fit_bambi` with a level and a slope."""
    return fit_bambi(known, seed, ("x",))


def fit_pooled(known, seed):
    """One Gaussian process for everybody."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x = known.standardise()[0][:, None]
    kernel = ConstantKernel(1, (1e-2, 1e3)) * RBF(1, (0.05, 20)) + WhiteKernel(0.1, (1e-5, 10))
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=3, random_state=seed)
    process.fit(x[known.train], known.y[known.train])

    def predict(one, k):
        m, s = process.predict(x[known.rows(one)[k:]], return_std=True)
        return np.zeros(1), m[None], s[None]

    return {}, predict


def fit_alone(known, seed):
    """A Gaussian process for each individual's first points alone; scales of x and y are those of the others.

    The bounds keep the marginal likelihood of three points from an amplitude, a length or a noise of nearly 0: sds from
    1 to 10 for the curve, which differs at least as much as what was measured on others, and from 0.03 to 1 for the
    noise, both in sds of y; lengths from 0.3 to 5 sds of x.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    x, y, mean, sd = known.standardise()

    def predict(one, k):
        if k < 3:
            return None
        at = known.rows(one)
        kernel = ConstantKernel(2, (1, 100)) * RBF(1, (0.3, 5)) + WhiteKernel(0.01, (0.001, 1))
        process = GaussianProcessRegressor(kernel, n_restarts_optimizer=5, random_state=seed)
        level = y[at][:k].mean()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a bound that is reached is there to be reached
            process.fit(x[at][:k, None], y[at][:k] - level)
        m, s = process.predict(x[at][k:, None], return_std=True)
        return np.zeros(1), mean + sd * (level + m[None]), sd * s[None]

    return {}, predict


def fit_boosted(known, seed):
    """Boosted trees for the mean, with a level and a slope of each individual as random effects, by GPBoost.

    The trees start from a straight line for all. Without it the slopes, whose mean is 0, take the common trend for a
    difference between individuals, and the trees hardly learn it.
    """
    import gpboost

    x, y, mean, sd = known.standardise()
    points, group = x[known.train], known.train_group()
    line = np.polynomial.Polynomial.fit(points, y[known.train], 1)
    outcome = y[known.train] - line(points)
    effects = lambda: gpboost.GPModel(  # noqa: E731
        group_data=group, group_rand_coef_data=points, ind_effect_group_rand_coef=[1], num_parallel_threads=1
    )
    data = lambda: gpboost.Dataset(points[:, None], outcome)  # noqa: E731
    options = TREES | {"seed": seed}
    part = np.random.default_rng(seed).permutation(group.max() + 1) % 4  # of whole individuals
    folds = [(np.flatnonzero(part[group] != i), np.flatnonzero(part[group] == i)) for i in range(4)]
    tried = gpboost.cv(
        options, data(), gp_model=effects(), num_boost_round=ROUNDS, early_stopping_rounds=30, folds=folds,
        metric="test_neg_log_likelihood",
    )  # fmt: skip
    n_rounds = 1 + int(np.argmin(next(values for name, values in tried.items() if name.endswith("-mean"))))
    random = effects()
    trees = gpboost.train(options, data(), gp_model=random, num_boost_round=n_rounds)
    variances = np.ravel(random.get_cov_pars(format_pandas=False))  # noise, level, slope
    sigma, sds = np.sqrt(variances[:1]), np.sqrt(variances[None, 1:])
    shape = line(x) + trees.predict(x[:, None], ignore_gp_model=True)

    def predict(one, k):
        at = known.rows(one)
        each = np.column_stack([np.ones(len(at)), x[at]])[None]
        rest = y[at][:k] - shape[at][:k]
        log_weight, m, s = readouts.predict_group(each[:, :k], rest, each[:, k:], np.zeros((1, 2)), sds, sigma)
        return log_weight, mean + sd * (m + shape[at][k:]), sd * s

    return {"rounds": n_rounds}, predict


def fit_smooths(known, seed):
    """A mixed model with smooths: a spline for all, a level, a slope and a smooth of each individual, by GPBoost.

    The spline is cubic, with five knots at quantiles, and goes on as a line; each individual's smooth is a Gaussian
    process. GPBoost maximises the likelihood over noise, three variances and a length. The spline's own error, which
    it leaves out, is added: its coefficients have a flat prior.

    Source: Wood (2017), Generalized Additive Models, 2nd ed., chapters 6 and 7; Sigrist (2022), JMLR 23.
    """
    import gpboost
    from sklearn.preprocessing import SplineTransformer

    x, y, mean, sd = known.standardise()
    points, outcome, group = x[known.train], y[known.train], known.train_group()
    spline = SplineTransformer(5, knots="quantile", extrapolation="linear").fit(points[:, None])
    model = gpboost.GPModel(
        cluster_ids=group, group_data=group, group_rand_coef_data=points, ind_effect_group_rand_coef=[1],
        gp_coords=points[:, None], cov_function="gaussian", num_parallel_threads=1,
    )  # fmt: skip
    basis = spline.transform(points[:, None])
    model.fit(outcome, X=basis)
    noise, level, slope, amplitude, length = np.ravel(model.get_cov_pars(format_pandas=False))

    def relate(x):
        apart = (x[:, None] - x) / length
        return level + slope * np.outer(x, x) + amplitude * np.exp(-(apart**2))

    precision = np.zeros((basis.shape[1],) * 2)
    for rows in (group == one for one in np.unique(group)):
        own = basis[rows]
        precision += own.T @ np.linalg.solve(relate(points[rows]) + noise * np.eye(len(own)), own)
    coefficients, error = np.ravel(model.get_coef(format_pandas=False)), np.linalg.pinv(precision)

    def predict(one, k):
        at = known.rows(one)
        own = spline.transform(x[at, None])
        curve, cov = own @ coefficients, relate(x[at]) + own @ error @ own.T
        gain = np.linalg.solve(cov[:k, :k] + noise * np.eye(k), cov[:k, k:]).T
        m = curve[k:] + gain @ (y[at] - curve)[:k]
        variance = np.diag(cov)[k:] - np.einsum("ij,ji->i", gain, cov[:k, k:]) + noise
        return np.zeros(1), mean + sd * m[None], sd * np.sqrt(variance)[None]

    return {}, predict


# --- what the fields know


def grow(xp, p, x, more):
    """Logarithm of logistic growth. p: log final size, x at half of it, log scale of x."""
    z = (p[1] - x) / xp.exp(p[2])
    return p[0] - xp.maximum(z, 0) - xp.log1p(xp.exp(-xp.abs(z)))  # never overflows


def absorb(xp, p, x, more):
    """A drug's concentration in one compartment that it is absorbed into from another. p: log ka, log ke, log CL."""
    ka, ke = xp.exp(p[0]), xp.exp(p[1])
    return more * xp.exp(p[0] + p[1] - p[2]) / (ka - ke) * (xp.exp(-ke * x) - xp.exp(-ka * x))


def filtrate(xp, p, x, more):
    """Ultrafiltration that levels off. p: its limit, log of how soon, pressure where it begins; more: blood flow."""
    return p[0] * (1 - xp.exp(-xp.exp(p[1]) * (x - p[2])))


# Of each parameter: mean and sd of the prior of its population mean, scale of the half-normal prior of its sd between
# individuals; then the scale of the half-normal prior of the noise. What blood flow 300 adds to 200: mean and sd, None
# where nothing. None of this is from the data that are predicted.
FORMULAS = {
    # Growth of chickens, e.g. Knížetová et al. (1985, 1991) and the book of Parks (1982): hatched at 35 to 45 g, adult
    # at 1 to 4 kg, fastest growth in weeks 4 to 9, less where the diet is poor; a relative growth rate, which is
    # 1 / scale early on, of 5 to 15 % a day.
    "chicks": (grow, ((np.log(1000), 0.8, 0.5), (35, 15, 7), (np.log(10), 0.4, 0.3)), 0.3, None),
    # Soybean's leaves, e.g. Fehr and Caviness (1977) for the stages, Hanway and Weber (1971) for dry matter: most leaf
    # weight around stage R5 at 75 to 90 days, with 10 to 30 g a plant, half of it around flowering at 45 to 65 days;
    # seedlings grow by about 10 % a day.
    "soybean": (grow, ((np.log(20), 0.5, 0.5), (55, 10, 7), (np.log(9), 0.3, 0.3)), 0.3, None),
    # Membranes of high flux: the pressure against filtration is that of blood proteins, about 25 mmHg = 0.25 dmHg; the
    # rate levels off at 200 to 300 mmHg, as a layer of protein forms; its limit is a share of the blood flow (20 to
    # 40 %), higher for more blood: 300 should give up to half as much again as 200. An ultrafiltration coefficient of
    # 20 to 60 mL/h/mmHg, the slope at the start, in the units of the file's numbers is limit * exp(lrc). E.g. Colton et
    # al. (1975), and makers' data sheets of the 1980s.
    "dialysers": (filtrate, ((45, 20, 10), (0, 0.7, 0.3), (0.25, 0.1, 0.1)), 5, ((20, 15), (0, 0.5), None)),
    # Theophylline by mouth, e.g. Ogilvie (1978), Hendeles and Weinberger (1983): half-life 6 to 10 h in adults, 0.45 to
    # 0.5 L/kg, clearance 0.04 L/h/kg, half as much again from one person to the next; absorbed from plain tablets
    # within 1 to 2 h, which differs a lot.
    "theophylline": (absorb, ((np.log(1.5), 0.7, 1), (np.log(0.085), 0.3, 0.5), (np.log(0.04), 0.3, 0.5)), 2, None),
}  # fmt: skip


def fit_formula(known, seed, name):
    """The field's formula, an individual's parameters normal around the population's, correlated if they are many."""
    curve, priors, noise, gains = FORMULAS[name]
    gains = gains or [None] * len(priors)
    x, group, n_groups = known.x[known.train], known.train_group(), len(np.unique(known.group[known.train]))
    more = known.more if name in ("dialysers", "theophylline") else np.zeros(len(known.x))
    fast = (more == 300).astype(float)
    means, mean_sds, scales = zip(*priors, strict=True)
    size = len(priors)
    with pm.Model() as model:
        mu = pm.Normal("mu", np.array(means), np.array(mean_sds), shape=size)
        spread = pm.HalfNormal("spread", np.array(scales), shape=size)
        root = pt.eye(size)
        if n_groups >= MANY:  # rows of length 1: the Cholesky root of a matrix of correlations
            below = np.tril_indices(size, -1)
            root = pt.set_subtensor(root[below], pm.Normal("below", 0, 0.5, shape=len(below[0])))
            root = root / pt.sqrt((root**2).sum(axis=1, keepdims=True))
        root = spread[:, None] * root
        root = pm.Deterministic("L", root)
        z = pm.Normal("z", 0, 1, shape=(size, n_groups))
        sigma = pm.HalfNormal("sigma", noise)
        p = mu[:, None] + (root @ z)[:, group]
        p = [p[i] for i in range(size)]
        for i, prior in enumerate(gains):
            if prior:
                p[i] = p[i] + pm.Normal(f"gain{i}", *prior) * fast[known.train]
        pm.Normal("y", curve(pt, p, x, more[known.train]), sigma, observed=known.y[known.train])
    tree = pm.sample(model=model, random_seed=seed, **RIVAL_SAMPLER, **sampling.ONE_CORE)
    added = [f"gain{i}" for i, prior in enumerate(gains) if prior]
    shared = tree["posterior"].to_dataset()[["mu", "L", "sigma", *added]]
    found = judge({name: shared[name].values for name in shared.data_vars}, tree)
    draws = pick_draws(shared, N_FORMULA)
    sigma = np.repeat(draws["sigma"], PER_DRAW)

    def predict(one, k):
        at = known.rows(one)
        z = np.random.default_rng([seed, one]).normal(size=(N_FORMULA, size, PER_DRAW))
        mu = draws["mu"].copy()
        for name in added:
            mu[:, int(name[-1])] += draws[name] * fast[at[0]]
        p = mu[..., None] + draws["L"] @ z
        f = curve(np, p.swapaxes(0, 1).reshape(size, -1, 1), known.x[at], more[at])
        rest = (known.y[at][:k] - f[:, :k]) / sigma[:, None]
        return -0.5 * (rest**2).sum(axis=1) - k * np.log(sigma), f[:, k:], np.repeat(sigma[:, None], len(at) - k, 1)

    return found, predict


# --- scores


def score(y, log_weight, mean, sd):
    """Scores of an individual's points (dict of name to float), and what number of equal weights the draws are worth.

    Source: Gneiting and Raftery (2007), JASA 102, for the scores. CRPS and intervals are those of quantiles of normal
    and weight together, drawn evenly: a lattice of the golden ratio.
    """
    import scoringrules

    log_weight = log_weight - logsumexp(log_weight)
    weight = np.exp(log_weight)
    lpd = logsumexp(log_weight[:, None] - 0.5 * ((y - mean) / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi)), axis=0)
    steps = np.arange(N_QUANTILES)
    which = np.minimum(np.searchsorted(weight.cumsum(), (steps + 0.5) / N_QUANTILES), len(weight) - 1)
    normal = ndtri(((steps + 0.5) * (np.sqrt(5) - 1) / 2) % 1)
    drawn = np.sort(mean[which] + sd[which] * normal[:, None], axis=0)
    low90, low50, high50, high90 = np.quantile(drawn, (0.05, 0.25, 0.75, 0.95), axis=0)
    found = {
        "lpd": lpd.mean(),
        "crps": scoringrules.crps_ensemble(y, drawn.T, sorted_ensemble=True).mean(),
        "se": ((weight @ mean - y) ** 2).mean(),
        "inside 50": ((y >= low50) & (y <= high50)).mean(),
        "inside 90": ((y >= low90) & (y <= high90)).mean(),
        "width 50": (high50 - low50).mean(),
        "width 90": (high90 - low90).mean(),
    }
    return {"n": len(y)} | {name: cut(value) for name, value in found.items()}, float(1 / np.sum(weight**2))


def cut(value):
    """Six digits of a number, for the file."""
    return float(f"{value:.6g}")


METHODS = {
    "quadratic": fit_quadratic, "linear": fit_linear, "pooled": fit_pooled, "alone": fit_alone,
    "boosted": fit_boosted, "smooths": fit_smooths,
}  # fmt: skip


def compute(data, method, split, fold, seed):
    """Scores of each individual left out by how many of its points are known, and diagnostics of the fit."""
    known = leave_out(data, split, fold)
    found, predict = fit_formula(known, seed, data) if method == "formula" else METHODS[method](known, seed)
    return dict.fromkeys((*DIAGNOSTICS, "rounds")) | found | score_all(known, predict)


def score_all(known, predict):
    """Scores of each individual that was left out, by how many of its points are known: part of a row."""
    row = {}
    for k in KNOWN:
        those = [int(one) for one in known.out if len(known.rows(one)) > k]
        predicted = [predict(one, k) for one in those]
        row |= {f"individuals {k}": those} | dict.fromkeys(f"{name} {k}" for name in (*SCORES, "effective"))
        if predicted[0] is None:
            continue
        scored = [score(known.y[known.rows(one)[k:]], *values) for one, values in zip(those, predicted, strict=True)]
        row |= {f"{name} {k}": [scores[name] for scores, _ in scored] for name in SCORES}
        if len(predicted[0][0]) > 1 and k:
            row[f"effective {k}"] = min(effective for _, effective in scored)
    return row
