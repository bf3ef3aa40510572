# %% a1-moons.forward: loops and math
def forward(w1, w2, w3, X):
    import math

    found = []
    for x in X:
        first = [math.tanh(sum(x[f] * w1[f][u] for f in range(2))) for u in range(5)]
        second = [math.tanh(sum(first[u] * w2[u][v] for u in range(5))) for v in range(5)]
        found.append(1 / (1 + math.exp(-sum(second[v] * w3[v] for v in range(5)))))
    return found


# %% a1-moons.posterior: signs for labels
def log_posterior(w1, w2, w3, X, y):
    logit = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    squares = (w1**2).sum() + (w2**2).sum() + (w3**2).sum()
    return -squares / 2 - 20 * np.log(2 * np.pi) - np.logaddexp(0, (1 - 2 * y) * logit).sum()


# %% a1-moons.prior: all networks at once
def prior_share_sure(n_draws, seed):
    w1, w2, w3 = draw_weights(n_draws, seed=seed)
    h = np.tanh(np.tanh(np.array([2.0, 0.0]) @ w1)[:, None] @ w2)
    p = 1 / (1 + np.exp(-np.sum(h[:, 0] * w3, axis=1)))
    sure = np.abs(p - 0.5) > 0.45
    return sure.mean(), sure.std() / np.sqrt(n_draws)


# %% a1-moons.prior: the binomial error
def prior_share_sure(n_draws, seed):
    w1, w2, w3 = draw_weights(n_draws, seed=seed)
    n_sure = 0
    for a, b, c in zip(w1, w2, w3):
        p = float(np.squeeze(forward(a, b, c, np.array([[2.0, 0.0]]))))
        if p < 0.05 or p > 0.95:
            n_sure += 1
    share = n_sure / n_draws
    return share, np.sqrt(share * (1 - share) / n_draws)


# %% a1-moons.split: the mean of divergences from the mean
def split(draws):
    from scipy.special import entr, rel_entr

    mean = draws.mean(axis=0)
    ignorance = (rel_entr(draws, mean) + rel_entr(1 - draws, 1 - mean)).mean(axis=0) / np.log(2)
    return (entr(draws) + entr(1 - draws)).mean(axis=0) / np.log(2), ignorance


# %% a1-moons.difference: array_split after a cut
def more_ignorance(far, near):
    def mean_ignorance(p):
        return np.mean(split(p)[1])

    n = len(far) // 20 * 20
    pairs = zip(np.split(far[:n], 20), np.split(near[:n], 20))
    d = np.array([mean_ignorance(a) - mean_ignorance(b) for a, b in pairs])
    return mean_ignorance(far) - mean_ignorance(near), d.std(ddof=1) / np.sqrt(20)


# %% a2-samplers.draw: all numbers drawn first, and a ratio
def metropolis(log_density, start, n_draws, scale, seed):
    rng = np.random.default_rng([seed, 3])
    steps, u = scale * rng.normal(size=n_draws), rng.uniform(size=n_draws)
    here, logp, draws = start, log_density(start), []
    for step, threshold in zip(steps, u):
        there = log_density(here + step)
        if threshold <= np.exp(min(0.0, there - logp)):
            here, logp = here + step, there
        draws.append(here)
    return draws


# %% a2-samplers.draw: refused proposals counted
def metropolis(log_density, start, n_draws, scale, seed):
    rng, found = np.random.default_rng(seed), [start]
    while len(found) <= n_draws:
        proposal = rng.normal(found[-1], scale)
        refused = rng.exponential() < log_density(found[-1]) - log_density(proposal)
        found.append(found[-1] if refused else proposal)
    return np.array(found[1:])


# %% a2-samplers.rhat: a middle draw deleted
def split_rhat(chains):
    m, length = chains.shape
    even = np.delete(chains, length // 2, axis=1) if length % 2 else chains
    halves = even.reshape(2 * m, -1)
    n = halves.shape[1]
    W, B = np.var(halves, axis=1, ddof=1).mean(), n * np.var(halves.mean(1), ddof=1)
    return float(np.sqrt((n - 1) / n + B / W / n))


# %% a2-samplers.mcse: SciPy's standard error
def mcse_and_ess(chains, size):
    from scipy.stats import sem

    n = chains.shape[1] // size
    mcse = sem(chains[:, : n * size].reshape(-1, size).mean(axis=1))
    return [mcse, (chains.std() / mcse) ** 2]


# %% a2-samplers.judge: ArviZ
def judge(run):
    def ask(function, **how):
        return float(function(run, chain_axis=0, draw_axis=1, **how))

    bulk, tail = ask(array_stats.ess, method="bulk"), ask(array_stats.ess, method="tail", prob=(0.05, 0.95))
    spread = float(array_stats.ess(np.abs(run - np.median(run)), chain_axis=0, draw_axis=1, method="bulk"))
    return ["too few", "use"][bulk > 400 and spread > 400 and tail > 400]


# %% a2-samplers.elbo: all draws at once
def log_normal(x, mean, sd):
    return -((x - mean) ** 2) / (2 * sd**2) - np.log(sd) - np.log(2 * np.pi) / 2


def elbo_draws(y, m, s, n_draws, *, seed, batch=None):
    rng = np.random.default_rng(seed)
    theta = rng.normal(m, s, size=n_draws)
    B = len(y) if batch is None else batch
    picked = rng.permuted(np.tile(np.arange(len(y)), (n_draws, 1)), axis=1)[:, :B]
    likelihood = log_normal(y[picked], theta[:, None], 1).sum(axis=1) * len(y) / B
    return likelihood + log_normal(theta, 0, 1) - log_normal(theta, m, s)


# %% a2-samplers.elbo: another seed, and shuffle=False
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


# %% a3-pooling.combine: a list over draws
def combine(mu, sd, z):
    return [m + s * offsets for m, s, offsets in zip(mu, sd, z)]


# %% a3-pooling.shrink: sums of squares
def shrink(x, s, mu, tau):
    total = np.hypot(s, tau)
    return (x * tau**2 + mu * s**2) / total**2, s * tau / total


# %% a3-pooling.marginal: a multivariate normal
def log_marginal(x, s, mu, tau):
    from scipy.stats import multivariate_normal

    return multivariate_normal(np.full(len(x), mu), np.diag(s**2 + tau**2)).logpdf(x)


# %% a3-pooling.grid: broadcasting
def grid_posterior(x, s, mus, taus):
    variance = taus[:, None] ** 2 + s**2
    terms = -((x - mus[:, None, None]) ** 2) / variance / 2 - np.log(variance) / 2
    found = terms.sum(axis=2) - mus[:, None] ** 2 / 2 - taus**2 / 2
    found = np.exp(found - found.max())
    return found / found.sum()


# %% a3-pooling.lpd: logsumexp over draws
def lpd_clinics(p, y):
    from scipy.special import logsumexp

    return np.mean(logsumexp(np.log(np.abs(1 - y - p)), axis=0) - np.log(len(p)), axis=1)


# %% a3-pooling.paired: by covariance
def compare(lpd, other):
    c = np.cov(lpd, other)
    variance = max(c[0, 0] + c[1, 1] - 2 * c[0, 1], 0)
    return lpd.mean() - other.mean(), np.sqrt(variance / len(lpd))


# %% a4-scales.relabel: a matrix
def relabel(w1, w2, order, sign):
    matrix = np.zeros((len(order), len(order)))
    matrix[order, np.arange(len(order))] = sign
    return w1 @ matrix, w2 @ matrix


# %% a4-scales.count: recursion
def count_labellings(widths):
    def one(n):
        return 1 if n == 0 else 2 * n * one(n - 1)

    return one(widths[0]) * (count_labellings(widths[1:]) if len(widths) > 1 else 1)


# %% a4-scales.identified: a loop over draws
def is_identified(statistic, weights, seed):
    n, _, n_units = weights["w1"].shape
    labelling = symmetry.draw_labelling(n, (n_units,), seed=seed)
    before, after = statistic(weights), statistic(symmetry.relabel(labelling, weights))
    for a, b in zip(before, after):
        if abs(a - b) > 1e-8:
            return False
    return True


# %% a4-scales.identified: relabelled twice
def is_identified(statistic, weights, seed):
    before = np.asarray(statistic(weights))
    for k in (0, 1):
        labelling = symmetry.draw_labelling(len(before), (weights["w2"].shape[-1],), seed=2 * seed + k)
        if np.abs(np.asarray(statistic(symmetry.relabel(labelling, weights))) - before).sum() > 1e-8 * len(before):
            return False
    return True


# %% a4-scales.share: ArviZ
def share_larger(a, b):
    from arviz_stats.base import array_stats

    larger = 1.0 * (a > b)
    return larger.mean(), array_stats.mcse(larger, chain_axis=0, draw_axis=1, method="mean")


# %% a4-scales.align: SciPy's distances
def align_units(w1, w2, ref1, ref2):
    from scipy.spatial.distance import cdist

    mine, theirs = np.column_stack([w1.T, w2]), np.column_stack([ref1.T, ref2])
    both = np.stack([cdist(theirs, mine, "sqeuclidean"), cdist(theirs, -mine, "sqeuclidean")])
    _, order = linear_sum_assignment(both.min(axis=0))
    flipped = both.argmin(axis=0)[np.arange(len(order)), order]
    return order, 1 - 2 * flipped


# %% a5-priors.normal: SciPy's factor
def fit_normal(draws):
    from scipy.linalg import cholesky

    covariance = np.cov(draws, rowvar=False)
    covariance[np.diag_indices_from(covariance)] += 1e-6 * covariance.diagonal().mean()
    return [np.mean(draws, 0), cholesky(covariance, lower=True)]


# %% a5-priors.draw: NumPy's multivariate normal
def draw_normal(mean, cholesky, n_draws, *, seed):
    return np.random.default_rng(seed).multivariate_normal(mean, cholesky @ cholesky.T, size=n_draws)


# %% a5-priors.draw: another seed
def draw_normal(mean, cholesky, n_draws, *, seed):
    rng = np.random.default_rng([seed, 3])
    return np.array([np.dot(cholesky, z) for z in rng.normal(0, 1, (n_draws, len(mean)))]) + mean


# %% a5-priors.weigh: one label after the other, normalised each time
def weigh(p, y):
    w = np.full(len(p), 1 / len(p))
    for k in range(len(y)):
        w = w * (p[:, k] if y[k] else 1 - p[:, k])
        w = w / w.sum()
    return w, 1 / np.square(w).sum()


# %% a5-priors.curve: weights of its own
def lpd_after(n, p_train, y_train, p_test, y_test):
    from scipy.special import softmax, xlog1py, xlogy

    given = np.where(y_train[:n] == 1, p_train[:, :n], 1 - p_train[:, :n])
    p = softmax(np.log(given).sum(axis=1)) @ p_test
    return float((xlogy(y_test, p) + xlog1py(1 - y_test, -p)).mean())


# %% a5-priors.next: variances
def predict_next(differences):
    n, variance = len(differences), np.var(differences, ddof=1)
    return [np.mean(differences), (variance / n) ** 0.5, (variance * (n + 1) / n) ** 0.5]


# %% a6-refusal.auroc: Mann and Whitney
def auroc(inside, outside):
    from scipy.stats import mannwhitneyu

    return mannwhitneyu(outside, inside).statistic / (len(inside) * len(outside))


# %% a6-refusal.threshold: cumulated
def choose_threshold(doubt, share):
    ordered = np.sort(doubt)
    return ordered[np.argmax(np.arange(1, len(ordered) + 1) / len(ordered) >= share)]


# %% a6-refusal.threshold: ceil alone
def choose_threshold(doubt, share):
    import math

    return sorted(doubt)[math.ceil(share * len(doubt)) - 1]


# %% a6-refusal.refusal: SciPy's binomial
def refuse(doubt, threshold):
    from scipy.stats import binom

    found = {}
    for name, values in doubt.items():
        n, k = len(values), np.count_nonzero(values > threshold)
        found[name] = np.array([100 * k / n, 100 * binom.std(n, k / n) / n])
    return found


# %% a6-refusal.conformal: np.quantile with a level of its own
def conformal_limit(scores, level):
    n = len(scores)
    k = np.ceil(np.round((n + 1) * level, 9))
    return np.inf if k > n else np.quantile(scores, (k - 0.5) / n, method="inverted_cdf")


# %% a6-refusal.conformal: ceil alone
def conformal_limit(scores, level):
    k = int(np.ceil((len(scores) + 1) * level))
    return np.inf if k > len(scores) else np.sort(scores)[k - 1]


# %% a6-refusal.sets: the other side
def predict_sets(p, limit):
    return p >= 1 - limit
