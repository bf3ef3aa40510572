"""Rivals of the hierarchical network on eighteen categories, beside those of `_approximations`.

Each takes a data set and returns a function of points, (group, obs, 2) or (obs, 2) for all groups, that gives draws of
P(y = 1), (chain, draw, group, obs). A method with one probability and no interval gives one draw.
"""

from functools import lru_cache, partial

import numpy as np
import pymc as pm
from bookkit import models
from hbnn import diagnostics, fuse, prediction, sampling
from scipy import linalg, optimize, special
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.neighbors import KNeighborsClassifier

from studies import _approximations, _fits, _replicate

FLOOR = 1 / 52  # of a probability, where a method can be certain: Laplace's rule for fifty labels of one class
N_DRAWS = 200
QUANTILES = special.ndtri((np.arange(N_DRAWS) + 0.5) / N_DRAWS)  # of a normal logit
NUTS = {"draws": 350, "tune": 350, "target_accept": 0.9}  # chosen on data sets 101 to 103, as is the next
CUBIC_NUTS = {"draws": 1000, "tune": 600, "target_accept": 0.9}
LAST_SD = 2.4  # of the last layer's weights, as in the hierarchical posterior of the articles' data: (1 + 2.2²)^(1/2)


# --- each category by itself


def fit_neighbours(moons):
    """Seven neighbours of each category, the near ones counting more, as on the page ``replication``."""
    made = _fit_each(moons, KNeighborsClassifier(7, weights="distance"))

    def predict_at(X):
        each = zip(made, _approximations._share(X, len(made)), strict=True)
        return np.clip([one.predict_proba(points)[:, 1] for one, points in each], FLOOR, 1 - FLOOR)[None, None]

    return predict_at


def fit_process(moons):
    """A Gaussian process of each category with a kernel that is fixed, as on the page ``replication``."""
    made = _fit_each(moons, GaussianProcessClassifier(ConstantKernel(64.0) * RBF(1.2), optimizer=None))

    def predict_at(X):
        each = zip(made, _approximations._share(X, len(made)), strict=True)
        mean, variance = np.swapaxes([one.latent_mean_and_variance(points) for one, points in each], 0, 1)
        return special.expit(mean + np.sqrt(variance) * QUANTILES[:, None, None])[None]

    return predict_at


def fit_rescaled_process(moons, scale):
    """`fit_process`, which is too timid, with the logits of its mean probabilities times a number: no intervals.

    Source: Guo, Pleiss, Sun and Weinberger (2017), On Calibration of Modern Neural Networks, ICML.
    """
    predict_timidly = fit_process(moons)

    def predict_at(X):
        return special.expit(scale * special.logit(predict_timidly(X).mean(axis=(0, 1), keepdims=True)))

    return predict_at


def _fit_each(moons, made):
    return [clone(made).fit(X, y) for X, y in zip(moons.X_train, moons.y_train, strict=True)]


# --- a multilevel logistic regression on cubic terms


def list_cubic_terms(X):
    """The ten products of two features up to the third degree: (…, 10) for (…, 2)."""
    return np.stack([X[..., 0] ** i * X[..., 1] ** j for i in range(4) for j in range(4 - i)], axis=-1)


def type_cubic(moons):
    """A logistic regression for each category; each of ten coefficients has a mean and a sd over categories."""
    with pm.Model() as model:
        terms, labels = pm.Data("terms", list_cubic_terms(moons.X_train)), pm.Data("labels", moons.y_train)
        mu, sd = pm.Normal("mu", 0, 1.5, shape=10), pm.HalfNormal("sd", 3, shape=10)
        z = pm.Normal("z", shape=(len(moons.X_train), 10))
        logit = (terms * (mu + sd * z)[:, None]).sum(axis=-1)
        pm.Bernoulli("y", logit_p=logit, observed=labels, shape=logit.shape)
    return model


@lru_cache
def _compile_cubic():
    """Compiled once; data sets are swapped."""
    return sampling.compile_nuts(type_cubic(_fits.load_moons("legacy")))


def sample_cubic(moons, seed):
    """NUTS draws of `type_cubic`, at most twice four chains, terms divided by their sd: a function that predicts, and
    what a row says of the run.
    """
    terms = list_cubic_terms(moons.X_train)
    size = np.r_[1, terms.reshape(-1, 10)[:, 1:].std(axis=0)]
    compiled = _compile_cubic().with_data(terms=terms / size, labels=moons.y_train)

    def predict_at(X, posterior):
        terms = list_cubic_terms(_approximations._share(X, len(moons.X_train))) / size
        mu, sd, z = (posterior[name].values for name in ("mu", "sd", "z"))
        return special.expit(np.einsum("gnk,cdgk->cdgn", terms, mu[:, :, None] + sd[:, :, None] * z))

    def identify(posterior):
        found = {name: posterior[name] for name in ("mu", "sd")}
        return found | {"grid": predict_at(_fits.GRID, posterior), "data": predict_at(moons.X_train, posterior)}

    posterior, found = _sample_until(identify, compiled, seed, CUBIC_NUTS)
    return partial(predict_at, posterior=posterior), found


def _sample_until(identify, compiled, seed, sampler):
    """A posterior of at most twice four chains, and what a row says of the run."""

    def sample(random_seed):
        return sampling.sample_nuts(compiled, seed=random_seed, **sampler)

    with _replicate.warnings.catch_warnings():
        _replicate.warnings.filterwarnings("ignore", message="The verdict still fails")  # column "converged" says it
        tree = sampling.sample_until(identify, random_seed=seed, most=2, sample=sample)
    posterior = tree["posterior"].to_dataset()
    found = _fits.summarise([diagnostics.verdict(identify(posterior), tree)]) | {"runs": len(tree.attrs["verdicts"])}
    return posterior, found | {"gradients": float(tree["sample_stats"]["n_steps"].mean())}


# --- Gaussian processes over (point, category), by Laplace's approximation


def fit_mode(K, y):
    """Laplace's approximation of a Gaussian process classifier: log evidence, and what predictions need.

    Source: Rasmussen and Williams (2006), Gaussian Processes for Machine Learning, algorithm 3.1, with damped steps.
    """
    a, f, best = np.zeros(len(y)), np.zeros(len(y)), -np.inf
    while True:
        p = special.expit(f)
        root = np.sqrt(p * (1 - p))
        L = linalg.cholesky(np.eye(len(y)) + root[:, None] * K * root, lower=True)
        b = root**2 * f + y - p
        aim = b - root * linalg.cho_solve((L, True), root * (K @ b))
        for size in 0.5 ** np.arange(10):
            tried = a + size * (aim - a)
            f_tried = K @ tried
            value = y @ f_tried - np.logaddexp(0, f_tried).sum() - tried @ f_tried / 2
            if value > best:
                break
        if value < best + 1e-7 * len(y):
            return best - np.log(np.diag(L)).sum(), f, root, L
        a, f, best = tried, f_tried, value


def find_slope(K, y, f, root, L):
    """Matrix S for which the log evidence changes by sum(S * dK) when the covariance changes by dK.

    Source: Rasmussen and Williams (2006), algorithm 5.1.
    """
    p = special.expit(f)
    R = root[:, None] * linalg.cho_solve((L, True), np.diag(root))
    variance = np.diag(K) - np.einsum("ij,ji->i", K, R @ K)
    third = -variance * p * (1 - p) * (1 - 2 * p) / 2
    u, a = third - R @ (K @ third), y - p
    return (np.outer(a + u, a) + np.outer(a, u) - R) / 2


def fit_shared_process(moons, rank=None, max_steps=60):
    """One Gaussian process for the logits of all categories, its covariance chosen by the evidence.

    With a rank it is a coregionalisation: a smooth kernel of two points times a matrix of two categories, W W' + k I
    with W (group, rank). Without one it is told what the moons are made of: one smooth function for all, and an angle
    by which each category's points are turned.
    """
    angles = rank is None
    n_groups, n_obs, _ = moons.X_train.shape
    X, y, group = moons.X_train.reshape(-1, 2), moons.y_train.ravel().astype(float), np.repeat(range(n_groups), n_obs)

    def turn(X, angle):
        c, s = np.cos(angle), np.sin(angle)
        return np.stack([c * X[:, 0] + s * X[:, 1], c * X[:, 1] - s * X[:, 0]], axis=-1)

    def find_covariance(at, X1, g1, X2, g2):
        """Covariance, and of what it is made: the smooth kernel, squared distances, turned points or W."""
        size, width, rest = np.exp(at[0]), np.exp(at[1]), at[2:]
        if angles:
            part, other = turn(X1, rest[g1]), turn(X2, rest[g2])
        else:
            part, other = X1, X2
        squares = ((part[:, None] - other) ** 2).sum(axis=-1)
        smooth = np.exp(-squares / (2 * width))
        if angles:
            return size * smooth, smooth, squares, part
        W = rest.reshape(n_groups, rank)
        return (W @ W.T + size * np.eye(n_groups))[g1][:, g2] * smooth, smooth, squares, W

    def find_loss(at):
        K, smooth, squares, part = find_covariance(at, X, group, X, group)
        evidence, *mode = fit_mode(K + 1e-6 * np.eye(len(K)), y)
        slope = find_slope(K + 1e-6 * np.eye(len(K)), y, *mode)
        width = (slope * K * squares).sum() / (2 * np.exp(at[1]))
        if angles:
            pull = slope * K / np.exp(at[1])
            ahead = np.stack([part[:, 1], -part[:, 0]], axis=-1)  # where a point moves as its angle grows
            moved = ((pull @ part - pull.sum(axis=1)[:, None] * part) * ahead).sum(axis=1)
            return -evidence, -np.r_[(slope * K).sum(), width, 2 * np.bincount(group, moved)]
        B = (slope * smooth).reshape(n_groups, n_obs, n_groups, n_obs).sum(axis=(1, 3))
        return -evidence, -np.r_[np.trace(B) * np.exp(at[0]), width, ((B + B.T) @ part).ravel()]

    start = _approximations.point_lines(moons) if angles else _find_main_functions(moons, rank).ravel()
    start = np.r_[np.log([25.0 if angles else 1.0, 1.2**2]), start]
    at = optimize.minimize(find_loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_steps}).x
    K = find_covariance(at, X, group, X, group)[0]
    _, f, root, L = fit_mode(K + 1e-6 * np.eye(len(K)), y)
    own = np.exp(at[0]) + (0 if angles else (at[2:].reshape(n_groups, rank) ** 2).sum(axis=1))

    def predict_at(points):
        each = _approximations._share(points, n_groups)
        g = np.repeat(range(n_groups), each.shape[1])
        K_new = find_covariance(at, each.reshape(-1, 2), g, X, group)[0]
        reach = linalg.solve_triangular(L, root[:, None] * K_new.T, lower=True)
        sd = np.sqrt(np.maximum(np.broadcast_to(own, n_groups)[g] - (reach**2).sum(axis=0), 0))
        p = special.expit(K_new @ (y - special.expit(f)) + sd * QUANTILES[:, None])
        return p.reshape(1, N_DRAWS, *each.shape[:2])

    return predict_at


def _find_main_functions(moons, rank):
    """The first principal components of the processes that see one category each: W (group, rank) to start from."""
    each = fit_process(moons)(moons.X_train.reshape(-1, 2))[0]
    logit = special.logit(np.clip(each.mean(axis=0), FLOOR, 1 - FLOOR))
    left, size, _ = np.linalg.svd(logit / np.sqrt(logit.shape[1]), full_matrices=False)
    return left[:, :rank] * size[:rank]


# --- one trunk, a head for each category


def fit_trunk(moons, alpha, seed, width=12, rate=0.01, n_steps=800, held=5):
    """An ensemble of networks whose hidden layers are one for all categories, with a read-out for each.

    2-width-width with tanh and biases, `alpha` as scikit-learn's weight decay. Each member leaves out a fifth of each
    category's points, drawn by itself, and keeps the weights of that step of Adam at which it predicted them best.

    Source: Caruana (1997), Multitask Learning, Machine Learning 28.
    """
    X, y, n_obs = models.stack_groups(list(moons.X_train), list(moons.y_train))
    rng, n_groups = np.random.default_rng(seed), len(X)
    shape = (_approximations.N_MEMBERS, n_groups, X.shape[1])
    there = np.arange(X.shape[1]) < n_obs[:, None]
    place = np.where(there, rng.random(shape), np.inf).argsort(axis=-1).argsort(axis=-1)
    is_held = place < n_obs[:, None] // held
    sizes = {"w1": (2, width), "b1": (width,), "w2": (width, width), "b2": (width,),
             "w3": (n_groups, width), "b3": (n_groups,)}  # fmt: skip
    start = {}
    for name, size in sizes.items():
        sd = {"w1": 2**-0.5, "w2": width**-0.5, "w3": width**-0.5}.get(name, 0.0)
        start[name] = rng.normal(0, sd, (shape[0], *size))
    members = _compile_trunk(n_steps)(start, X, y, there & ~is_held, is_held, alpha, rate)
    members = {name: np.asarray(values, dtype=float) for name, values in members.items()}

    def predict_at(X):
        return special.expit(_run_trunk(members, _approximations._share(X, n_groups)))[None]

    return predict_at


@lru_cache
def _compile_trunk(n_steps):
    """A function that trains all members of an ensemble at once, and returns the weights that each did best with."""
    import jax
    import jax.numpy as jnp
    import optax

    def train(start, X, y, seen, held, alpha, rate):
        optimiser = optax.adam(rate)
        start = {name: value.astype("float32") for name, value in start.items()}

        def find_losses(weights):
            misfit = optax.sigmoid_binary_cross_entropy(_run_trunk(weights, X, jnp.tanh), y)
            decay = sum((weights[name] ** 2).sum() for name in ("w1", "w2", "w3"))
            return (misfit * seen).sum() + alpha / 2 * decay, (misfit * held).sum(axis=(1, 2))

        def step(state, _):
            weights, memory, best, least = state
            (_, missed), slope = jax.value_and_grad(find_losses, has_aux=True)(weights)
            better = missed < least
            best = {k: jnp.where(better.reshape(-1, *[1] * (w.ndim - 1)), w, best[k]) for k, w in weights.items()}
            change, memory = optimiser.update(slope, memory)
            return (optax.apply_updates(weights, change), memory, best, jnp.minimum(missed, least)), None

        least = jnp.full(len(start["b3"]), jnp.inf)
        (_, _, best, _), _ = jax.lax.scan(step, (start, optimiser.init(start), start, least), None, n_steps)
        return best

    return jax.jit(train)


def _run_trunk(weights, X, tanh=np.tanh):
    """Logits (member, group, obs) of points (group, obs, 2)."""
    h = X.reshape(1, -1, 2)
    for k in ("1", "2"):
        h = tanh(h @ weights[f"w{k}"] + weights[f"b{k}"][:, None])
    h = h.reshape(len(h), *X.shape[:2], -1)
    return (h @ weights["w3"][..., None])[..., 0] + weights["b3"][..., None]


# --- one network, an angle for each category, sampled


def type_angles(moons, n_hidden=12):
    """One network 2-12-12-1 for all, whose first layer is turned by an angle for each category.

    Weights are N(0, 1), the last layer's as wide as `LAST_SD`. To turn all angles and the first layer changes nothing,
    so angles are measured from lines through the class means, and the 18 changes add up to zero. Any 17 are flat.
    """
    n_groups = len(moons.X_train)
    away = linalg.null_space(np.ones((1, n_groups)))
    with pm.Model() as model:
        X, labels = pm.Data("X", moons.X_train), pm.Data("labels", moons.y_train)
        lines = pm.Data("lines", _approximations.point_lines(moons))
        change = pm.Flat("change", shape=n_groups - 1)
        angle = lines + away @ change
        w1 = pm.Normal("w1", shape=(2, n_hidden))
        w2 = pm.Normal("w2", shape=(n_hidden, n_hidden))
        w3 = pm.Normal("w3", 0, LAST_SD, shape=n_hidden)
        c, s = pm.math.cos(angle)[:, None], pm.math.sin(angle)[:, None]
        turned = pm.math.stack([c * w1[0] - s * w1[1], s * w1[0] + c * w1[1]], axis=1)  # (group, feature, hidden)
        logit = pm.math.tanh(pm.math.tanh(X @ turned) @ w2) @ w3
        pm.Bernoulli("y", logit_p=logit, observed=labels, shape=logit.shape)
    return model


@lru_cache
def _compile_angles():
    """Compiled once; data sets are swapped."""
    return sampling.compile_nuts(fuse(type_angles(_fits.load_moons("legacy")), dtype="float32"))


def sample_angles(moons, seed):
    """NUTS draws of `type_angles`, at most twice four chains, in single precision: a function that predicts, and what a
    row says of the run.
    """
    lines, away = _approximations.point_lines(moons), linalg.null_space(np.ones((1, len(moons.X_train))))
    compiled = _compile_angles().with_data(X=moons.X_train, labels=moons.y_train, lines=lines)

    def list_weights(posterior):
        angle = lines + posterior["change"].values @ away.T
        c, s = np.cos(angle)[..., None], np.sin(angle)[..., None]
        first, second = np.moveaxis(posterior["w1"].values, 2, 0)[:, :, :, None]
        w1 = np.stack([c * first - s * second, s * first + c * second], axis=3)
        every = {k: np.repeat(posterior[k].values[:, :, None], w1.shape[2], axis=2) for k in ("w2", "w3")}
        return {"w1": w1} | every

    def identify(posterior):
        _, found = _replicate._list_quantities(list_weights(posterior), moons, "tanh")
        found["log likelihood"] = found["log likelihood"].sum(axis=-1)
        return found

    posterior, found = _sample_until(identify, compiled, seed, NUTS)
    return partial(prediction.predict_groups, list_weights(posterior), activation="tanh"), found


# --- cheap posteriors of one plain network for all, which sees the category as 0/1 columns


def fit_last_layer(moons, alpha, seed):
    """The one-hot network of `_approximations`, with a normal for its last layer: Laplace's.

    Source: Daxberger et al. (2021), Laplace Redux, NeurIPS.
    """
    flat = moons.with_category()
    network = _approximations._fit_mlp(flat.X_train, flat.y_train, alpha, seed=1000 * seed)

    def find_features(rows):
        for w, b in zip(network.coefs_[:-1], network.intercepts_[:-1], strict=True):
            rows = np.tanh(rows @ w + b)
        return np.column_stack([rows, np.ones(len(rows))])

    features, last = find_features(flat.X_train), np.r_[network.coefs_[-1][:, 0], network.intercepts_[-1]]
    p = special.expit(features @ last)
    decay = np.diag(np.r_[np.full(len(last) - 1, alpha), 1e-3])  # scikit-learn's has none on the bias
    covariance = np.linalg.inv((features * (p * (1 - p))[:, None]).T @ features + decay)

    def predict_at(X):
        rows, shape = _add_columns(X, len(moons.X_train))
        found = find_features(rows)
        sd = np.sqrt(np.einsum("ij,jk,ik->i", found, covariance, found))
        return special.expit(found @ last + sd * QUANTILES[:, None]).reshape(1, N_DRAWS, *shape)

    return predict_at


def fit_dropout(moons, alpha, seed, rate=0.1, n_epochs=400):
    """The one-hot network, trained by Adam and used with hidden units left out at random.

    Source: Gal and Ghahramani (2016), Dropout as a Bayesian Approximation, ICML.
    """
    weights, _ = _train(moons, alpha, seed, "adam", 0.01, n_epochs, rate=rate)
    rng = np.random.default_rng(seed)
    masks = [(rng.random((N_DRAWS, 1, 12)) > rate) / (1 - rate) for _ in range(2)]
    return _predict_one_hot([w[None] for w in weights], masks, len(moons.X_train))


def fit_swag(moons, alpha, seed, rate=0.1, n_epochs=400, n_kept=100, rank=20):
    """The one-hot network: a normal around the path of plain SGD with a constant rate, after Adam's training.

    Source: Maddox et al. (2019), A Simple Baseline for Bayesian Uncertainty in Deep Learning, NeurIPS.
    """
    weights, _ = _train(moons, alpha, seed, "adam", 0.01, n_epochs)
    _, path = _train(moons, alpha, seed + 1, "sgd", rate, n_kept, start=weights)
    rng, drawn = np.random.default_rng(seed), []
    common = rng.normal(size=(N_DRAWS, rank))  # one number for each direction, over all layers
    for kept in path:
        mean = kept.mean(axis=0)
        apart = (kept[-rank:] - mean).reshape(rank, -1)
        low = (common @ apart / np.sqrt(rank - 1)).reshape(N_DRAWS, *mean.shape)
        drawn.append(mean + (low + kept.std(axis=0) * rng.normal(size=low.shape)) / np.sqrt(2))
    return _predict_one_hot(drawn, [1, 1], len(moons.X_train))


def _train(moons, alpha, seed, optimizer, speed, n_epochs, start=None, rate=0.0):
    """Weights and biases of the one-hot network after minibatch training, and after each epoch, (epoch, …)."""
    import jax
    import jax.numpy as jnp

    flat, rng = moons.with_category(), np.random.default_rng(seed)
    shapes = [(flat.X_train.shape[1], 12), (12,), (12, 12), (12,), (12, 1), (1,)]
    if start is None:
        start = [rng.normal(0, s[0] ** -0.5, s) if len(s) == 2 else np.zeros(s) for s in shapes]
    start = [jnp.asarray(w, dtype=jnp.float32) for w in start]
    keys = jax.random.split(jax.random.PRNGKey(seed), n_epochs)
    found = _compile_training(optimizer)(start, keys, flat.X_train, flat.y_train, alpha, rate, speed)
    weights, path = ([np.asarray(w, dtype=float) for w in part] for part in found)
    if not all(np.isfinite(w).all() for w in weights):
        raise FloatingPointError("weights are not finite")
    return weights, path


@lru_cache
def _compile_training(optimizer, n_batch=50):
    """A function that trains by an optimiser of optax, "adam" or "sgd"; as scikit-learn, biases have no decay."""
    import jax
    import jax.numpy as jnp
    import optax

    def train(start, keys, X, y, alpha, rate, speed):
        made = getattr(optax, optimizer)(speed)

        def find_loss(weights, rows, key):
            keep = jax.random.bernoulli(key, 1 - rate, (2, n_batch, 12)) / (1 - rate)
            logit = _run_one_hot(weights, X[rows], keep, jnp.tanh)
            decay = sum((w**2).sum() for w in weights[::2]) * alpha / (2 * len(X))
            return optax.sigmoid_binary_cross_entropy(logit, y[rows]).mean() + decay

        def step(state, batch):
            weights, memory = state
            change, memory = made.update(jax.grad(find_loss)(weights, *batch), memory)
            return (optax.apply_updates(weights, change), memory), None

        def run_epoch(state, key):
            order, *keys = jax.random.split(key, 1 + len(X) // n_batch)
            rows = jax.random.permutation(order, len(X))[: len(keys) * n_batch].reshape(-1, n_batch)
            state, _ = jax.lax.scan(step, state, (rows, jnp.stack(keys)))
            return state, state[0]

        (weights, _), path = jax.lax.scan(run_epoch, (start, made.init(start)), keys)
        return weights, path

    return jax.jit(train)


def _run_one_hot(weights, h, keep, tanh=np.tanh):
    """Logits of rows: (row,), or (draw, row) where weights or masks have draws in front."""
    for w, b, mask in zip(weights[:4:2], weights[1:4:2], keep, strict=True):
        h = tanh(h @ w + b[..., None, :]) * mask
    return (h @ weights[4])[..., 0] + weights[5]


def _predict_one_hot(weights, masks, n_groups):
    """A function of points; weights (draw, …) each."""

    def predict_at(X):
        rows, shape = _add_columns(X, n_groups)
        return special.expit(_run_one_hot(weights, rows, masks)).reshape(1, -1, *shape)

    return predict_at


def _add_columns(X, n_groups):
    """Points of all groups as rows with 0/1 columns of their group, and the shape (group, obs)."""
    each = _approximations._share(X, n_groups)
    columns = np.repeat(np.eye(n_groups), each.shape[1], axis=0)
    return np.column_stack([each.reshape(-1, 2), columns]), each.shape[:2]
