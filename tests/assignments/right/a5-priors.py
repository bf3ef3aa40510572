# %% normal: the covariance by hand
def fit_normal(draws):
    mean = draws.mean(axis=0)
    centred = draws - mean
    covariance = centred.T @ centred / (len(draws) - 1)
    ridge = 1e-6 * np.trace(covariance) / len(mean)
    return mean, np.linalg.cholesky(covariance + ridge * np.identity(len(mean)))


# %% normal: SciPy's factor
def fit_normal(draws):
    from scipy.linalg import cholesky

    covariance = np.cov(draws, rowvar=False)
    covariance[np.diag_indices_from(covariance)] += 1e-6 * covariance.diagonal().mean()
    return [np.mean(draws, 0), cholesky(covariance, lower=True)]


# %% normal: einsum
def fit_normal(draws):
    n, k = draws.shape
    m = np.einsum("dw->w", draws) / n
    c = np.einsum("dw,dv->wv", draws - m, draws - m) / (n - 1)
    return m, np.linalg.cholesky(c + np.diag([1e-6 * np.einsum("ww->", c) / k] * k))


# %% normal: lists
def fit_normal(draws):
    covariance = np.cov(np.transpose(draws))
    small = 1e-6 * np.mean(np.diagonal(covariance))
    factor = np.linalg.cholesky(covariance + small * np.eye(draws.shape[1]))
    return draws.mean(axis=0).tolist(), factor.tolist()


# %% normal: the upper factor, turned
def fit_normal(draws):
    from scipy.linalg import cholesky

    variances = draws.var(axis=0, ddof=1)
    covariance = np.cov(draws.T) + 1e-6 * variances.mean() * np.eye(len(variances))
    return draws.sum(axis=0) / len(draws), cholesky(covariance).T


# %% normal: a loop for the factor
def fit_normal(draws):
    c = np.cov(draws.T)
    c = c + np.eye(len(c)) * np.diag(c).sum() / len(c) / 1e6
    L = np.zeros_like(c)
    for i in range(len(c)):
        for j in range(i + 1):
            rest = c[i, j] - L[i, :j] @ L[j, :j]
            L[i, j] = np.sqrt(rest) if i == j else rest / L[j, j]
    return np.average(draws, axis=0), L


# %% draw: a loop
def draw_normal(mean, cholesky, n_draws, *, seed):
    rng = np.random.default_rng(seed)
    return [mean + cholesky @ rng.normal(size=len(mean)) for _ in range(n_draws)]


# %% draw: NumPy's multivariate normal
def draw_normal(mean, cholesky, n_draws, *, seed):
    return np.random.default_rng(seed).multivariate_normal(mean, cholesky @ cholesky.T, size=n_draws)


# %% draw: SciPy
def draw_normal(mean, cholesky, n_draws, *, seed):
    from scipy.stats import multivariate_normal

    rng = np.random.default_rng(seed)
    return multivariate_normal(mean, cholesky @ cholesky.T).rvs(n_draws, random_state=rng)


# %% draw: einsum
def draw_normal(mean, cholesky, n_draws, *, seed):
    z = np.random.default_rng(seed).standard_normal((n_draws, len(mean)))
    return np.einsum("wv,dv->dw", cholesky, z) + mean[None]


# %% draw: columns first
def draw_normal(mean, cholesky, n_draws, *, seed):
    z = np.random.default_rng(seed).normal(size=(len(mean), n_draws))
    return (cholesky @ z + np.reshape(mean, (-1, 1))).T


# %% draw: another seed
def draw_normal(mean, cholesky, n_draws, *, seed):
    rng = np.random.default_rng([seed, 3])
    return np.array([np.dot(cholesky, z) for z in rng.normal(0, 1, (n_draws, len(mean)))]) + mean


# %% weigh: softmax
def weigh(p, y):
    from scipy.special import softmax

    weights = softmax(np.log(np.where(y == 1, p, 1 - p)).sum(axis=1))
    return weights, 1 / (weights @ weights)


# %% weigh: logsumexp
def weigh(p, y):
    from scipy.special import logsumexp

    loglik = y @ np.log(p).T + (1 - y) @ np.log1p(-p).T
    weights = np.exp(loglik - logsumexp(loglik))
    return [weights, 1 / sum(weights**2)]


# %% weigh: a loop over labels
def weigh(p, y):
    loglik = np.zeros(len(p))
    for k, label in enumerate(y):
        loglik += np.log(p[:, k]) if label == 1 else np.log(1 - p[:, k])
    weights = np.exp(loglik - np.max(loglik))
    weights = weights / np.sum(weights)
    return weights, np.sum(weights) ** 2 / np.sum(weights**2)


# %% weigh: SciPy's Bernoulli
def weigh(p, y):
    from scipy.stats import bernoulli

    loglik = bernoulli.logpmf(y, p).sum(axis=1)
    w = np.exp(loglik - loglik.max())
    return w / w.sum(), w.sum() ** 2 / (w @ w)


# %% weigh: einsum and lists
def weigh(p, y):
    logs = np.log(np.abs(1 - np.asarray(y) - p))
    loglik = np.einsum("do->d", logs)
    w = np.exp(loglik - loglik.max())
    w = w / np.einsum("d->", w)
    return w.tolist(), float(1 / np.einsum("d,d->", w, w))


# %% weigh: one label after the other, normalised each time
def weigh(p, y):
    w = np.full(len(p), 1 / len(p))
    for k in range(len(y)):
        w = w * (p[:, k] if y[k] else 1 - p[:, k])
        w = w / w.sum()
    return w, 1 / np.square(w).sum()


# %% curve: np.average
def lpd_after(n, p_train, y_train, p_test, y_test):
    weights, _ = weigh(p_train[:, :n], y_train[:n])
    p = np.average(p_test, axis=0, weights=weights)
    return np.mean(np.log(np.where(y_test == 1, p, 1 - p)))


# %% curve: the package scores
def lpd_after(n, p_train, y_train, p_test, y_test):
    weights = weigh(p_train[:, :n], y_train[:n])[0]
    return score.score(np.einsum("d,do->o", weights, p_test), y_test)["lpd"]


# %% curve: loops
def lpd_after(n, p_train, y_train, p_test, y_test):
    weights, _ = weigh(p_train[:, 0:n], y_train[0:n])
    total = 0.0
    for k in range(len(y_test)):
        p = sum(w * q for w, q in zip(weights, p_test[:, k]))
        total += np.log(p if y_test[k] == 1 else 1 - p)
    return total / len(y_test)


# %% curve: the probability of each label
def lpd_after(n, p_train, y_train, p_test, y_test):
    weights = np.asarray(weigh(p_train[:, :n], y_train[:n])[0])
    given = np.where(y_test == 1, p_test, 1 - p_test)
    return np.log(weights @ given).mean()


# %% curve: weights of its own
def lpd_after(n, p_train, y_train, p_test, y_test):
    from scipy.special import softmax, xlog1py, xlogy

    given = np.where(y_train[:n] == 1, p_train[:, :n], 1 - p_train[:, :n])
    p = softmax(np.log(given).sum(axis=1)) @ p_test
    return float((xlogy(y_test, p) + xlog1py(1 - y_test, -p)).mean())


# %% curve: SciPy's Bernoulli
def lpd_after(n, p_train, y_train, p_test, y_test):
    from scipy.stats import bernoulli

    weights, _ = weigh(np.delete(p_train, np.s_[n:], axis=1), y_train[:n])
    return bernoulli(np.dot(np.transpose(p_test), weights)).logpmf(y_test).sum() / len(y_test)


# %% next: SciPy's standard error
def predict_next(differences):
    from scipy.stats import sem

    error = sem(differences)
    return differences.mean(), error, np.hypot(np.std(differences, ddof=1), error)


# %% next: variances
def predict_next(differences):
    n, variance = len(differences), np.var(differences, ddof=1)
    return [np.mean(differences), (variance / n) ** 0.5, (variance * (n + 1) / n) ** 0.5]


# %% next: statistics
def predict_next(differences):
    import statistics

    d = [float(x) for x in differences]
    mean, sd, n = statistics.fmean(d), statistics.stdev(d), len(d)
    return mean, sd / n**0.5, (sd**2 + sd**2 / n) ** 0.5


# %% next: a loop
def predict_next(differences):
    n, mean, total = len(differences), sum(differences) / len(differences), 0.0
    for d in differences:
        total += (d - mean) ** 2
    variance = total / (n - 1)
    return np.array([mean, np.sqrt(variance / n), np.sqrt(variance + variance / n)])


# %% next: pandas
def predict_next(differences):
    import pandas as pd

    d = pd.Series(differences)
    return d.mean(), d.sem(), d.sem() * np.sqrt(len(d) + 1)


# %% next: a dictionary of values
def predict_next(differences):
    n = np.size(differences)
    spread = np.sqrt(np.sum((differences - np.mean(differences)) ** 2) / (n - 1))
    return tuple({"mean": np.mean(differences), "error": spread / n**0.5, "sd": spread * (1 + 1 / n) ** 0.5}.values())
