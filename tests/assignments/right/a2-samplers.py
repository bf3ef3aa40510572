# %% rhat: loops
def split_rhat(chains):
    import statistics

    n, halves = len(chains[0]) // 2, []
    for run in chains:
        halves += [list(run[:n]), list(run[len(run) - n :])]
    between = n * statistics.variance([float(np.mean(h)) for h in halves])
    within = np.mean([statistics.variance(map(float, h)) for h in halves])
    return ((n - 1) / n + between / (n * within)) ** 0.5


# %% rhat: ArviZ
def split_rhat(chains):
    return array_stats.rhat(chains, chain_axis=0, draw_axis=1, method="split")


# %% rhat: a middle draw deleted
def split_rhat(chains):
    m, length = chains.shape
    even = np.delete(chains, length // 2, axis=1) if length % 2 else chains
    halves = even.reshape(2 * m, -1)
    n = halves.shape[1]
    W, B = np.var(halves, axis=1, ddof=1).mean(), n * np.var(halves.mean(1), ddof=1)
    return float(np.sqrt((n - 1) / n + B / W / n))


# %% rhat: einsum
def split_rhat(chains):
    n = chains.shape[1] // 2
    h = np.vstack((chains[:, :n], chains[:, -n:]))
    d = h - h.mean(axis=1, keepdims=True)
    W = np.einsum("cd,cd->", d, d) / (n - 1) / len(h)
    g = h.mean(axis=1) - h.mean()
    return np.sqrt(((n - 1) * W + n * (g @ g) / (len(h) - 1)) / (n * W))


# %% rhat: var plus
def split_rhat(chains):
    n = chains.shape[1] // 2
    halves = np.array([part for run in chains for part in (run[:n], run[::-1][:n])])
    within = halves.var(axis=1, ddof=1).mean()
    plus = within * (n - 1) / n + halves.mean(axis=1).var(ddof=1)
    return np.sqrt(plus / within)


# %% rhat: ddof by hand
def split_rhat(chains):
    m, n = 2 * chains.shape[0], chains.shape[1] // 2
    halves = np.concatenate((chains[:, :n], chains[:, chains.shape[1] - n :]), axis=0)
    W = halves.var(axis=1).mean() * n / (n - 1)
    B = n * halves.mean(axis=1).var() * m / (m - 1)
    return np.array(((n - 1) * W + B) / (n * W)) ** 0.5


# %% mcse: loops
def mcse_and_ess(chains, size):
    means = []
    for run in chains:
        for k in range(0, len(run) - size + 1, size):
            means.append(np.mean(run[k : k + size]))
    mcse = np.std(means, ddof=1) / len(means) ** 0.5
    return mcse, np.var(chains) / mcse**2


# %% mcse: split
def mcse_and_ess(chains, size):
    n = chains.shape[1] // size
    means = np.concatenate([np.split(run[: n * size], n) for run in chains]).mean(axis=1)
    mcse = np.sqrt(means.var(ddof=1) / len(means))
    return np.array([mcse, np.var(chains, ddof=1) / mcse**2])


# %% mcse: SciPy's standard error
def mcse_and_ess(chains, size):
    from scipy.stats import sem

    n = chains.shape[1] // size
    mcse = sem(chains[:, : n * size].reshape(-1, size).mean(axis=1))
    return [mcse, (chains.std() / mcse) ** 2]


# %% mcse: cumulative sums
def mcse_and_ess(chains, size):
    ends = np.cumsum(np.pad(chains, ((0, 0), (1, 0))), axis=1)[:, ::size]
    means = np.diff(ends, axis=1) / size
    mcse = means.std(ddof=1) / np.sqrt(means.size)
    return float(mcse), float(chains.var(ddof=1) / mcse**2)


# %% mcse: einsum
def mcse_and_ess(chains, size):
    c, d = chains.shape
    b = d // size
    means = np.einsum("cbs->cb", chains[:, : b * size].reshape(c, b, size)) / size
    spread = means - means.mean()
    mcse = np.sqrt((spread**2).sum() / (c * b - 1) / (c * b))
    return mcse, chains.var() / mcse**2


# %% mcse: reduceat
def mcse_and_ess(chains, size):
    n = chains.shape[1] // size * size
    means = np.add.reduceat(chains[:, :n], np.arange(0, n, size), axis=1) / size
    mcse = means.ravel().std(ddof=1) * means.size**-0.5
    return mcse, chains.ravel().var(ddof=1) / mcse / mcse


# %% judge: words in another order
def judge(run):
    told = diagnose.diagnose(np.expand_dims(run, -1))
    rhat, bulk, tail = (float(told[name][0]) for name in ("rhat", "ess", "ess_tail"))
    if rhat < 1.01 and bulk > 400 and tail > 400:
        return "use"
    return "too few" if rhat < 1.01 else "disagree"


# %% judge: several ifs
def judge(run):
    told = diagnose.diagnose(run.reshape(*run.shape, 1))
    if told["rhat"].item() >= 1.01:
        return "disagree"
    if told["ess"].item() <= 400:
        return "too few"
    if told["ess_tail"].item() <= 400:
        return "too few"
    return "use"


# %% judge: ArviZ
def judge(run):
    def ask(function, **how):
        return float(function(run, chain_axis=0, draw_axis=1, **how))

    if not ask(array_stats.rhat, method="rank") < 1.01:
        return "disagree"
    bulk, tail = ask(array_stats.ess, method="bulk"), ask(array_stats.ess, method="tail", prob=(0.05, 0.95))
    return ["too few", "use"][bulk > 400 and tail > 400]


# %% judge: two quantities, the second is thrown away
def judge(run):
    told = diagnose.diagnose(np.stack([run, run**3], axis=2))
    if told["rhat"][0] >= 1.01:
        return "disagree"
    return "use" if all(told[name][0] > 400 for name in ("ess", "ess_tail")) else "too few"


# %% judge: match
def judge(run):
    told = {name: values[0] for name, values in diagnose.diagnose(run[:, :, np.newaxis]).items()}
    match bool(told["rhat"] < 1.01), bool(min(told["ess"], told["ess_tail"]) > 400):
        case True, True:
            return "use"
        case True, False:
            return "too few"
    return "disagree"


# %% judge: a string of NumPy's
def judge(run):
    told = diagnose.diagnose(np.asarray(run)[..., None])
    few = np.minimum(told["ess"], told["ess_tail"]) <= 400
    return np.where(told["rhat"] >= 1.01, "disagree", np.where(few, "too few", "use"))[0]


# %% elbo: all draws at once
def log_normal(x, mean, sd):
    return -((x - mean) ** 2) / (2 * sd**2) - np.log(sd) - np.log(2 * np.pi) / 2


def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng = np.random.default_rng(seed)
    theta = rng.normal(m, s, size=n_draws)
    B = len(y) if batch is None else batch
    picked = rng.permuted(np.tile(np.arange(len(y)), (n_draws, 1)), axis=1)[:, :B]
    likelihood = log_normal(y[picked], theta[:, None], 1).sum(axis=1) * len(y) / B
    return likelihood + log_normal(theta, 0, 1) - log_normal(theta, m, s)


# %% elbo: SciPy, a list
def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    from scipy.stats import norm

    rng, found = np.random.default_rng(seed), []
    for _ in range(n_draws):
        theta = norm.rvs(m, s, random_state=rng)
        part = y if batch is None else rng.permutation(y)[:batch]
        scale = len(y) / len(part)
        found.append(scale * norm.logpdf(part, theta).sum() + norm.logpdf(theta) - norm.logpdf(theta, m, s))
    return found


# %% elbo: m + s z
def log_normal(x, mean, sd):
    return -((x - mean) ** 2) / (2 * sd**2) - np.log(sd) - np.log(2 * np.pi) / 2


def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng = np.random.default_rng(seed)
    found = []
    for z in rng.standard_normal(n_draws):
        theta = m + s * z
        points = y if batch is None else y[rng.choice(len(y), batch, replace=False)]
        likelihood = sum(log_normal(point, theta, 1) for point in points) * (len(y) / len(points))
        found.append(likelihood + log_normal(theta, 0, 1) - log_normal(theta, m, s))
    return np.array(found)


# %% elbo: another seed, and shuffle=False
def log_normal(x, mean, sd):
    return -((x - mean) ** 2) / (2 * sd**2) - np.log(sd) - np.log(2 * np.pi) / 2


def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng = np.random.default_rng([seed, 7])
    batch = len(y) if batch is None else batch
    found = np.zeros(n_draws)
    for k in range(n_draws):
        points = rng.choice(y, size=batch, replace=False, shuffle=False)
        theta = rng.normal(loc=m, scale=s)
        found[k] += np.mean(log_normal(points, theta, 1)) * len(y)
        found[k] += log_normal(theta, 0, 1)
        found[k] -= log_normal(theta, m, s)
    return found


# %% elbo: constants that cancel are left out
def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng, found = np.random.default_rng(seed), []
    for _ in range(n_draws):
        theta = rng.normal(m, s)
        points = y if batch is None else rng.choice(y, batch, False)
        likelihood = -((points - theta) ** 2).mean() * len(y) / 2 - len(y) * np.log(2 * np.pi) / 2
        found.append(likelihood - theta**2 / 2 + ((theta - m) / s) ** 2 / 2 + np.log(s))
    return tuple(found)


# %% elbo: a sampler of points of its own
def log_normal(x, mean, sd):
    return -((x - mean) ** 2) / (2 * sd**2) - np.log(sd) - np.log(2 * np.pi) / 2


def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng = np.random.default_rng(seed)

    def estimate():
        theta, points = rng.normal(m, s), y
        if batch is not None:
            points = y[np.argsort(rng.random(len(y)))[:batch]]
        parts = [log_normal(points, theta, 1).sum() * y.size / points.size, log_normal(theta, 0, 1)]
        return sum(parts) - log_normal(theta, m, s)

    return np.fromiter((estimate() for _ in range(n_draws)), float)


# %% narrow: a loop over parameters
def mean_field_ratio(covariance):
    precision = np.linalg.inv(covariance)
    return [1 / np.sqrt(precision[k][k] * covariance[k][k]) for k in range(len(covariance))]


# %% narrow: solve
def mean_field_ratio(covariance):
    precision = np.linalg.solve(covariance, np.eye(len(covariance)))
    return np.sqrt(1 / precision.diagonal()) / np.sqrt(covariance.diagonal())


# %% narrow: conditional variances
def mean_field_ratio(covariance):
    covariance, found = np.asarray(covariance, dtype=float), []
    for k in range(len(covariance)):
        rest = np.delete(np.arange(len(covariance)), k)
        if len(rest):
            inner = covariance[np.ix_(rest, rest)]
            left = covariance[k, k] - covariance[k, rest] @ np.linalg.solve(inner, covariance[rest, k])
        found.append(np.sqrt(left / covariance[k, k]))
    return np.array(found)


# %% narrow: Cholesky
def mean_field_ratio(covariance):
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    return 1 / np.sqrt((inverse**2).sum(axis=0) * np.diag(covariance))


# %% narrow: correlations
def mean_field_ratio(covariance):
    sd = np.sqrt(np.diag(covariance))
    return np.diag(np.linalg.inv(covariance / np.outer(sd, sd))) ** -0.5


# %% narrow: eigenvalues
def mean_field_ratio(covariance):
    values, vectors = np.linalg.eigh(covariance)
    precision = np.einsum("ik,k,ik->i", vectors, 1 / values, vectors)
    return (precision * np.einsum("ii->i", np.asarray(covariance))) ** -0.5
