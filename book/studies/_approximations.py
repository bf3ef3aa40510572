"""Cheaper ways to the hierarchical network's posterior, and the peers that have no posterior.

Each Bayesian way returns draws of the free variables, dict of name to (draw, …); each peer a function of points,
(group, obs, 2) or (obs, 2) for all groups, that returns its members' probabilities, (1, member, group, obs).
"""

import numpy as np
import pymc as pm
from hbnn import prediction, sampling
from hbnn._checks import check_data
from scipy import optimize
from scipy.special import expit, logsumexp
from sklearn.neural_network import MLPClassifier

N_DRAWS = 1000
ADVI = {"n_steps": 4000, "n_mc": 16, "optimizer": 0.03}  # mean field, several draws a step; Adam's rate falls to 0
N_STARTS = 5  # of mean field
N_STEPS_FULL = 10_000  # full rank, five units: 292,000 numbers to learn. Twelve units have 5.9 million, at 0.2 s a step
N_PATHS, MAX_ITER = 4, 300  # Pathfinder
N_MEMBERS = 20  # of an ensemble: enough for an interval that holds nine tenths of them
FLOOR = 1e-6  # of an eigenvalue of the negative Hessian


def fit_mean_field(model, seed):
    """The fit with the lowest loss of several starts, by the rule of page `approximations`."""
    seeds = np.random.SeedSequence(seed).generate_state(N_STARTS).tolist()
    best = min((sampling.fit_advi(model, seed=each, **ADVI) for each in seeds), key=measure_loss)
    return best.draw(N_DRAWS, seed=seed), {"loss": measure_loss(best)}


def measure_loss(fit):
    """The mean loss of the last thousand steps, in nats."""
    return float(fit.loss[-1000:].mean())


def fit_full_rank(model, seed, n_steps=N_STEPS_FULL, n_last=100):
    """PyMC's full-rank ADVI from random means: the start's covariance is its own, the identity.

    `loss` is the mean of the last `n_last` steps. FloatingPointError, PyMC's word for NaN, is the caller's to catch.
    """
    rng = np.random.default_rng(seed)
    point = {name: rng.normal(size=np.shape(value)) for name, value in model.initial_point().items()}
    approx = pm.fit(n_steps, method="fullrank_advi", model=model, start=point, random_seed=seed, progressbar=False)
    posterior = approx.sample(N_DRAWS, random_seed=seed)["posterior"]
    draws = {rv.name: posterior[rv.name].values[0] for rv in model.free_RVs}
    return draws, {"loss": float(np.mean(approx.hist[-n_last:]))}


def fit_laplace(model, seed):
    """A normal at the highest mode that four starts find, in the unconstrained variables.

    The Hessian is a difference of gradients. Where the density does not fall (an eigenvalue that is not positive), the
    normal is given the prior's width of about 1, and the row says how many such directions there are.

    Source: MacKay (1992), A Practical Bayesian Framework for Backpropagation Networks, Neural Computation 4.
    """
    value_and_gradient, start = _compile_gradient(model)
    rng = np.random.default_rng(seed)
    found = [
        optimize.minimize(
            lambda x: tuple(-part for part in value_and_gradient(x)),
            start + rng.normal(size=start.size),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 20_000},
        )
        for _ in range(N_PATHS)
    ]
    best = min(found, key=lambda result: result.fun)
    step, hessian = 1e-4, np.empty((start.size, start.size))
    for i in range(start.size):
        shift = np.zeros(start.size)
        shift[i] = step
        hessian[i] = (value_and_gradient(best.x - shift)[1] - value_and_gradient(best.x + shift)[1]) / (2 * step)
    values, vectors = np.linalg.eigh((hessian + hessian.T) / 2)
    flat = values <= FLOOR
    sd = 1 / np.sqrt(np.where(flat, 1, values))
    shifts = (rng.normal(size=(N_DRAWS, start.size)) * sd) @ vectors.T
    found = {"loss": float(best.fun), "flat_directions": int(flat.sum())}
    return _constrain(model, best.x + shifts), found | {"mode": best.x, "shifts": shifts}


def predict_linearised(model, mode, shifts, X):
    """Probabilities (draw, group, obs) when the logit is taken as linear in the weights around the mode.

    Source: Immer, Korzepa and Bauer (2021), Improving Predictions of Bayesian Neural Nets via Local Linearization.
    """

    def logit(points):  # not from probabilities, which round to 1 beyond 37
        draws = {name: values[None] for name, values in _constrain(model, points).items()}
        weights = prediction.combine_weights(draws)
        found = []
        for *inner, last in zip(*(weights[f"w{k}"][0] for k in range(1, len(weights) + 1)), strict=True):
            h = X
            for w in inner:
                h = np.tanh(h @ w)
            found.append((h @ last[..., None])[..., 0])
        return np.stack(found)

    step = 1e-4
    slope = (logit(mode + step * shifts) - logit(mode - step * shifts)) / (2 * step)
    return expit(logit(mode[None]) + slope)


def fit_pathfinder(model, seed):
    """Multi-path Pathfinder with BlackJAX: four paths, draws resampled by Pareto-smoothed importance weights.

    Source: Zhang, Carpenter, Gelman and Vehtari (2022), Pathfinder, JMLR 23.
    """
    import jax
    from arviz_stats.base import array_stats
    from blackjax.vi import pathfinder
    from pymc.sampling.jax import get_jaxified_logp

    logp = get_jaxified_logp(model)
    shapes = [np.shape(model.initial_point()[v.name]) for v in model.value_vars]
    rng, keys = np.random.default_rng(seed), jax.random.split(jax.random.PRNGKey(seed), 2 * N_PATHS)
    approximate = jax.jit(
        lambda key, x: pathfinder.approximate(key, logp, x, num_samples=20, maxiter=MAX_ITER, ftol=1e-9)[0]
    )
    sample = jax.jit(lambda key, state: pathfinder.sample(key, state, N_DRAWS))
    points, weights = [], []
    for i in range(N_PATHS):
        state = approximate(keys[2 * i], [rng.normal(size=shape) for shape in shapes])
        drawn, logq = sample(keys[2 * i + 1], state)
        weights.append(np.asarray(jax.vmap(logp)(drawn)) - np.asarray(logq))
        points.append(np.concatenate([np.asarray(part).reshape(N_DRAWS, -1) for part in drawn], axis=1))
    points, weights = np.concatenate(points), np.concatenate(weights)
    if not np.isfinite(weights).any():
        raise FloatingPointError("no draw of any path has a finite weight")
    smooth, khat = array_stats.psislw(np.where(np.isfinite(weights), weights, weights[np.isfinite(weights)].min()))
    chosen = rng.choice(len(points), size=N_DRAWS, p=np.exp(smooth - logsumexp(smooth)))
    return _constrain(model, points[chosen]), {"khat": float(khat), "loss": float(-weights.max())}


def _compile_gradient(model):
    """Log density and gradient of the unconstrained variables as one vector, and a point to start from."""
    function = model.logp_dlogp_function(ravel_inputs=True, mode="NUMBA")
    function.set_extra_values({})
    start = np.concatenate([np.ravel(model.initial_point()[v.name]) for v in model.value_vars])

    def value_and_gradient(x):
        value, gradient = function(x)
        return float(value), np.array(gradient)

    return value_and_gradient, start


def _constrain(model, flat):
    """Draws of the unconstrained variables side by side, as draws of the free variables."""
    draws, at = {}, 0
    for rv, value in zip(model.free_RVs, model.value_vars, strict=True):
        shape = np.shape(model.initial_point()[value.name])
        size = int(np.prod(shape))
        part = flat[:, at : at + size].reshape(len(flat), *shape)
        draws[rv.name] = np.exp(part) if value.name.endswith("_log__") else part
        at += size
    return draws


def fit_ensemble(moons, alpha, seed):
    """An ensemble of plain networks for each category by itself.

    Source: Lakshminarayanan, Pritzel and Blundell (2017), Simple and Scalable Predictive Uncertainty Estimation.
    """
    n_groups = len(moons.X_train)
    seeds = 1000 * seed + np.arange(N_MEMBERS * n_groups).reshape(n_groups, N_MEMBERS)
    groups = [
        [_fit_mlp(X, y, alpha, seed=int(s)) for s in some]
        for X, y, some in zip(moons.X_train, moons.y_train, seeds, strict=True)
    ]

    def predict_at(X):
        each = _share(X, n_groups)
        p = [[m.predict_proba(X)[:, 1] for m in members] for X, members in zip(each, groups, strict=True)]
        return np.swapaxes(p, 0, 1)[None]

    return predict_at


def fit_one_hot(moons, alpha, seed, n_members=1):
    """Plain networks for all categories, which they see as 0/1 columns."""
    flat, n_groups = moons.with_category(), len(moons.X_train)
    members = [_fit_mlp(flat.X_train, flat.y_train, alpha, seed=1000 * seed + k) for k in range(n_members)]

    def predict_at(X):
        each = _share(X, n_groups)
        columns = np.repeat(np.eye(n_groups), each.shape[1], axis=0)
        rows = np.column_stack([each.reshape(-1, 2), columns])
        return np.stack([m.predict_proba(rows)[:, 1].reshape(each.shape[:2]) for m in members])[None]

    return predict_at


def fit_one_hot_ensemble(moons, alpha, seed):
    """An ensemble of `fit_one_hot`."""
    return fit_one_hot(moons, alpha, seed, N_MEMBERS)


def fit_angles(moons, alpha, seed):
    """An ensemble of networks that all categories share, each category's points turned by an angle that is learned.

    It is told what the moons are made of, as no other method here is. 2-12-12-1 with tanh and biases, `alpha` as
    scikit-learn's weight decay; angles start where a line from one class's mean to the other's points.
    """
    X, y = check_data(moons.X_train, moons.y_train)
    lines = point_lines(moons)
    with pm.Model() as model:
        network = {"angle": pm.Flat("angle", shape=len(X))}
        for k, shape in enumerate(((2, 12), (12, 12), (12, 1)), 1):
            # the decay of the whole sum of losses, as scikit-learn
            network[f"w{k}"] = pm.Normal(f"w{k}", 0, alpha**-0.5, shape=shape)
            network[f"b{k}"] = pm.Flat(f"b{k}", shape=shape[1])
        pm.Bernoulli("y", logit_p=_run_angles(X, network, pm.math), observed=y)
    value_and_gradient, _ = _compile_gradient(model)
    members = []
    for k in range(N_MEMBERS):
        rng = np.random.default_rng([seed, k])
        start = {
            name: lines if name == "angle"
            else rng.normal(0, value.shape[0] ** -0.5, value.shape) if name[0] == "w" else np.zeros(value.shape)
            for name, value in model.initial_point().items()
        }  # fmt: skip
        x = np.concatenate([np.ravel(start[v.name]) for v in model.value_vars])
        found = optimize.minimize(
            lambda x: tuple(-part for part in value_and_gradient(x)), x, jac=True, method="L-BFGS-B",
            options={"maxiter": 2000},
        )  # fmt: skip
        members.append({name: values[0] for name, values in _constrain(model, found.x[None]).items()})

    def predict_at(X):
        each = _share(X, len(lines))
        return np.stack([expit(_run_angles(each, network, np)) for network in members])[None]

    return predict_at


def point_lines(moons):
    """Angles of the lines from the mean of one class to that of the other: (group,)."""
    pairs = zip(moons.X_train, moons.y_train, strict=True)
    return np.array([np.arctan2(*(X[y == 1].mean(0) - X[y == 0].mean(0))[::-1]) for X, y in pairs])


def _run_angles(X, network, library):
    """Logits (group, obs) of points (group, obs, 2) turned by each group's angle; `library` is np, or pm.math."""
    c, s = library.cos(network["angle"])[:, None], library.sin(network["angle"])[:, None]
    h = library.stack([c * X[..., 0] + s * X[..., 1], c * X[..., 1] - s * X[..., 0]], axis=-1)
    for k in (1, 2, 3):
        h = (h if k == 1 else library.tanh(h)) @ network[f"w{k}"] + network[f"b{k}"]
    return h[..., 0]


def _share(X, n_groups):
    """Points of each group, (group, obs, 2): given so, or the same for all."""
    X = np.asarray(X)
    return np.broadcast_to(X, (n_groups, *X.shape)) if X.ndim == 2 else X


def _fit_mlp(X, y, alpha, seed):
    """2-12-12-1 with tanh, as the Bayesian networks; `alpha` is scikit-learn's weight decay."""
    X, y = check_data(X, y)
    network = MLPClassifier((12, 12), activation="tanh", solver="lbfgs", alpha=alpha, max_iter=2000, random_state=seed)
    return network.fit(X, y)
