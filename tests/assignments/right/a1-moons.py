# %% forward: einsum
def forward(w1, w2, w3, X):
    hidden = np.tanh(np.einsum("of,fu->ou", X, w1))
    hidden = np.tanh(np.einsum("ou,uv->ov", hidden, w2))
    return 1 / (1 + np.exp(-np.einsum("ov,v->o", hidden, w3)))


# %% forward: loops and math
def forward(w1, w2, w3, X):
    import math

    found = []
    for x in X:
        first = [math.tanh(sum(x[f] * w1[f][u] for f in range(2))) for u in range(5)]
        second = [math.tanh(sum(first[u] * w2[u][v] for u in range(5))) for v in range(5)]
        found.append(1 / (1 + math.exp(-sum(second[v] * w3[v] for v in range(5)))))
    return found


# %% forward: SciPy
def forward(w1, w2, w3, X):
    from scipy.special import expit

    return expit(np.dot(np.tanh(np.dot(np.tanh(np.dot(X, w1)), w2)), w3))


# %% forward: tanh by exp, the sigmoid by tanh
def forward(w1, w2, w3, X):
    def squash(t):
        return 2 / (1 + np.exp(-2 * t)) - 1

    return (1 + squash(squash(squash(X @ w1) @ w2) @ w3 / 2)) / 2


# %% forward: a list of layers
def forward(w1, w2, w3, X):
    h = X
    for w in [w1, w2]:
        h = np.tanh(np.matmul(h, w))
    return 1 - 1 / (1 + np.exp(h @ w3))


# %% forward: a column for the last layer
def forward(w1, w2, w3, X):
    logit = np.tanh(np.tanh(np.asarray(X) @ w1) @ w2) @ np.asarray(w3).reshape(5, 1)
    return np.divide(1, 1 + np.exp(-logit)).flatten()


# %% posterior: SciPy's densities
def log_posterior(w1, w2, w3, X, y):
    from scipy.stats import norm

    logit = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    prior = norm.logpdf(np.concatenate([w1.ravel(), w2.ravel(), w3])).sum()
    return prior + np.sum(np.where(y == 1, -np.logaddexp(0, -logit), -np.logaddexp(0, logit)))


# %% posterior: signs for labels
def log_posterior(w1, w2, w3, X, y):
    logit = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    squares = (w1**2).sum() + (w2**2).sum() + (w3**2).sum()
    return -squares / 2 - 20 * np.log(2 * np.pi) - np.logaddexp(0, (1 - 2 * y) * logit).sum()


# %% posterior: a loop over points
def log_posterior(w1, w2, w3, X, y):
    total = 0.0
    for w in (w1, w2, w3):
        for value in np.ravel(w):
            total += -0.5 * value**2 - 0.5 * np.log(2 * np.pi)
    for x, label in zip(X, y):
        t = np.tanh(np.tanh(x @ w1) @ w2) @ w3
        total += label * t - (max(t, 0) + np.log1p(np.exp(-abs(t))))
    return total


# %% posterior: log_expit
def log_posterior(w1, w2, w3, X, y):
    from scipy.special import log_expit

    t = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    likelihood = log_expit(t[y == 1]).sum() + log_expit(-t[y == 0]).sum()
    return likelihood - sum(np.sum(w**2) + w.size * np.log(2 * np.pi) for w in (w1, w2, w3)) / 2


# %% posterior: a multivariate normal
def log_posterior(w1, w2, w3, X, y):
    from scipy.stats import multivariate_normal

    weights = np.hstack([np.ravel(w) for w in (w1, w2, w3)])
    t = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    return multivariate_normal(np.zeros(40)).logpdf(weights) + y @ t - np.logaddexp(0, t).sum()


# %% posterior: an array without axes
def log_posterior(w1, w2, w3, X, y):
    t = np.tanh(np.tanh(X @ w1) @ w2) @ w3
    terms = [-(w**2) / 2 - np.log(np.sqrt(2 * np.pi)) for w in (w1, w2, w3)]
    return np.asarray(sum(term.sum() for term in terms) + np.sum(y * t + np.minimum(-t, 0) - np.log1p(np.exp(-abs(t)))))


# %% prior: all networks at once
def prior_share_sure(n_draws, seed):
    w1, w2, w3 = draw_weights(n_draws, seed=seed)
    h = np.tanh(np.tanh(np.array([2.0, 0.0]) @ w1)[:, None] @ w2)
    p = 1 / (1 + np.exp(-np.sum(h[:, 0] * w3, axis=1)))
    sure = np.abs(p - 0.5) > 0.45
    return sure.mean(), sure.std() / np.sqrt(n_draws)


# %% prior: the binomial error
def prior_share_sure(n_draws, seed):
    w1, w2, w3 = draw_weights(n_draws, seed=seed)
    n_sure = 0
    for a, b, c in zip(w1, w2, w3):
        p = float(np.squeeze(forward(a, b, c, np.array([[2.0, 0.0]]))))
        if p < 0.05 or p > 0.95:
            n_sure += 1
    share = n_sure / n_draws
    return share, np.sqrt(share * (1 - share) / n_draws)


# %% prior: logits
def prior_share_sure(n_draws, seed):
    w1, w2, w3 = draw_weights(n_draws, seed=seed)
    t = np.einsum("du,du->d", np.tanh(np.einsum("du,duv->dv", np.tanh(2 * w1[:, 0]), w2)), w3)
    sure = abs(t) > np.log(0.95 / 0.05)
    return [sure.mean(), np.std(sure, ddof=1) / n_draws**0.5]


# %% prior: the package predicts
def prior_share_sure(n_draws, seed):
    weights = dict(zip(("w1", "w2", "w3"), draw_weights(n_draws, seed=seed)))
    p = predict.predict_probability(weights, np.array([[2.0, 0.0]]))[:, 0]
    sure = np.logical_or(p < 0.05, p > 0.95).astype(float)
    return np.array([sure.mean(), np.sqrt(sure.var(ddof=1) / n_draws)])


# %% prior: SciPy's standard error
def prior_share_sure(n_draws, seed):
    from scipy import stats

    w1, w2, w3 = draw_weights(n_draws, seed=seed)
    x = np.array([[2.0, 0.0]])
    sure = [1 if max(q := float(forward(*w, x)[0]), 1 - q) > 0.95 else 0 for w in zip(w1, w2, w3, strict=True)]
    return np.mean(sure), stats.sem(sure)


# %% prior: the share as a count over n
def prior_share_sure(n_draws, seed):
    networks = draw_weights(n_draws, seed=seed)
    p = np.concatenate([forward(*[w[k] for w in networks], np.array([[2.0, 0.0]])) for k in range(n_draws)])
    n = np.count_nonzero(p < 0.05) + np.count_nonzero(p > 0.95)
    return n / n_draws, np.sqrt(n * (n_draws - n) / n_draws**3)


# %% split: SciPy's entropy
def split(draws):
    from scipy.stats import entropy

    coins = np.stack([draws, 1 - draws])
    noise = entropy(coins, base=2, axis=0).mean(axis=0)
    return noise, entropy(coins.mean(axis=1), base=2, axis=0) - noise


# %% split: xlogy
def split(draws):
    from scipy.special import xlogy

    def measure(p):
        return -(xlogy(p, p) + xlogy(1 - p, 1 - p)) / np.log(2)

    total, noise = measure(np.mean(draws, axis=0)), np.mean(measure(draws), axis=0)
    return np.array([noise, total - noise])


# %% split: loops
def split(draws):
    def coin(p):
        return 0.0 if p in (0, 1) else -p * np.log2(p) - (1 - p) * np.log2(1 - p)

    noise = [np.mean([coin(p) for p in column]) for column in draws.T]
    total = [coin(column.mean()) for column in draws.T]
    return noise, [t - n for t, n in zip(total, noise)]


# %% split: nan_to_num
def split(draws):
    def H(p):
        with np.errstate(all="ignore"):
            return np.nan_to_num(-p * np.log2(p)) + np.nan_to_num(-(1 - p) * np.log2(1 - p))

    noise = np.einsum("do->o", H(draws)) / len(draws)
    return noise, H(draws.sum(axis=0) / len(draws)) - noise


# %% split: the mean of divergences from the mean
def split(draws):
    from scipy.special import entr, rel_entr

    mean = draws.mean(axis=0)
    ignorance = (rel_entr(draws, mean) + rel_entr(1 - draws, 1 - mean)).mean(axis=0) / np.log(2)
    return (entr(draws) + entr(1 - draws)).mean(axis=0) / np.log(2), ignorance


# %% split: clipped
def split(draws):
    def coin(p):
        q = np.clip(p, 1e-15, 1 - 1e-15)
        return -(q * np.log2(q) + (1 - q) * np.log2(1 - q))

    noise = coin(draws).mean(0)
    return noise, coin(draws.mean(0)) - noise


# %% difference: array_split after a cut
def more_ignorance(far, near):
    def mean_ignorance(p):
        return np.mean(split(p)[1])

    n = len(far) // 20 * 20
    pairs = zip(np.split(far[:n], 20), np.split(near[:n], 20))
    d = np.array([mean_ignorance(a) - mean_ignorance(b) for a, b in pairs])
    return mean_ignorance(far) - mean_ignorance(near), d.std(ddof=1) / np.sqrt(20)


# %% difference: a loop
def more_ignorance(far, near):
    size, found = len(far) // 20, []
    for start in range(0, 20 * size, size):
        stop = start + size
        found.append(np.mean(split(far[start:stop])[1]) - np.mean(split(near[start:stop])[1]))
    middle = sum(found) / 20
    error = (sum((d - middle) ** 2 for d in found) / 19) ** 0.5 / 20**0.5
    return [np.mean(split(far)[1]) - np.mean(split(near)[1]), error]


# %% difference: statistics
def more_ignorance(far, near):
    import statistics

    def take(k):
        return float(np.mean(split(far[k])[1])) - float(np.mean(split(near[k])[1]))

    size = len(far) // 20
    batches = [take(slice(b * size, b * size + size)) for b in range(20)]
    return take(slice(None)), statistics.stdev(batches) / 20**0.5


# %% difference: SciPy's standard error
def more_ignorance(far, near):
    from scipy.stats import sem

    size = len(far) // 20
    rows = np.arange(20 * size).reshape(20, size)
    d = [np.mean(split(far[r])[1]) - np.mean(split(near[r])[1]) for r in rows]
    return np.mean(split(far)[1]) - np.mean(split(near)[1]), sem(d)


# %% difference: the package splits
def more_ignorance(far, near):
    def measure(p):
        return score.split_uncertainty(p)["ignorance"].mean()

    size = far.shape[0] // 20
    both = [(far[b * size :][:size], near[b * size :][:size]) for b in range(20)]
    error = np.sqrt(np.var([measure(a) - measure(b) for a, b in both], ddof=1) / 20)
    return np.array([measure(far) - measure(near), error])


# %% difference: far and near one after the other
def more_ignorance(far, near):
    size = len(far) // 20
    table = np.empty((2, 21))
    for i, p in enumerate((far, near)):
        table[i, 20] = np.mean(split(p)[1])
        table[i, :20] = [np.mean(split(p[b * size : (b + 1) * size])[1]) for b in range(20)]
    d = table[0] - table[1]
    return d[20], np.sqrt(((d[:20] - d[:20].mean()) ** 2).sum() / 19 / 20)
