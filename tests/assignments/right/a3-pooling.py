# %% combine: einsum
def combine(mu, sd, z):
    return mu[:, np.newaxis] + np.einsum("d,dgfu->dgfu", sd, z)


# %% combine: loops
def combine(mu, sd, z):
    found = np.empty_like(z)
    for d in range(len(z)):
        for g in range(z.shape[1]):
            found[d, g] = mu[d] + sd[d] * z[d, g]
    return found


# %% combine: reshape
def combine(mu, sd, z):
    n = len(sd)
    return np.repeat(mu[:, None], z.shape[1], axis=1) + sd.reshape(n, 1, 1, 1) * z


# %% combine: a list over draws
def combine(mu, sd, z):
    return [m + s * offsets for m, s, offsets in zip(mu, sd, z)]


# %% combine: the axes moved
def combine(mu, sd, z):
    return np.moveaxis(np.moveaxis(z, 0, -1) * sd + np.moveaxis(mu, 0, -1), -1, 0)


# %% combine: xarray
def combine(mu, sd, z):
    import xarray as xr

    mu = xr.DataArray(mu, dims=("draw", "feature", "unit"))
    z = xr.DataArray(z, dims=("draw", "group", "feature", "unit"))
    return (mu + xr.DataArray(sd, dims="draw") * z).transpose("draw", "group", "feature", "unit").values


# %% shrink: a weight between 0 and 1
def shrink(x, s, mu, tau):
    own = tau**2 / (tau**2 + s**2)
    return own * x + (1 - own) * mu, np.sqrt(own) * s


# %% shrink: gain
def shrink(x, s, mu, tau):
    gain = 1 / (1 + (s / tau) ** 2)
    return mu + gain * (x - mu), tau * np.sqrt(1 - gain) if np.ndim(gain) else s * gain**0.5


# %% shrink: np.average
def shrink(x, s, mu, tau):
    weights = [1 / s**2, 1 / tau**2]
    return np.average([x, mu], weights=weights, axis=0), sum(weights) ** -0.5


# %% shrink: a tuple of floats
def shrink(x, s, mu, tau):
    a, b = s**-2, tau**-2
    return [(a * x + b * mu) / (a + b), 1 / (a + b) ** 0.5]


# %% shrink: sums of squares
def shrink(x, s, mu, tau):
    total = np.hypot(s, tau)
    return (x * tau**2 + mu * s**2) / total**2, s * tau / total


# %% shrink: an array
def shrink(x, s, mu, tau):
    variance = np.reciprocal(np.square(1 / s) + np.square(1 / tau))
    return np.array([variance * (x / s**2 + mu / tau**2), np.sqrt(variance)])


# %% marginal: SciPy
def log_marginal(x, s, mu, tau):
    return norm.logpdf(x, mu, np.sqrt(tau**2 + s**2)).sum()


# %% marginal: a loop
def log_marginal(x, s, mu, tau):
    import math

    total = 0.0
    for a, b in zip(x, s):
        v = tau**2 + b**2
        total -= (a - mu) ** 2 / (2 * v) + math.log(math.sqrt(2 * math.pi * v))
    return total


# %% marginal: a multivariate normal
def log_marginal(x, s, mu, tau):
    from scipy.stats import multivariate_normal

    return multivariate_normal(np.full(len(x), mu), np.diag(s**2 + tau**2)).logpdf(x)


# %% marginal: logs of sds
def log_marginal(x, s, mu, tau):
    scale = np.hypot(s, tau)
    z = (x - mu) / scale
    return -0.5 * (z @ z) - np.log(scale).sum() - len(x) * 0.5 * np.log(2 * np.pi)


# %% marginal: the log of a product
def log_marginal(x, s, mu, tau):
    variance = tau * tau + s * s
    return np.log(np.exp(-((x - mu) ** 2) / variance / 2) / np.sqrt(2 * np.pi * variance)).sum()


# %% marginal: einsum
def log_marginal(x, s, mu, tau):
    v = tau**2 + s**2
    return np.einsum("g,g,g->", x - mu, x - mu, -0.5 / v) - 0.5 * np.einsum("g->", np.log(2 * np.pi * v))


# %% grid: SciPy's log densities
def grid_posterior(x, s, mus, taus):
    log_density = np.zeros((len(mus), len(taus)))
    for i, mu in enumerate(mus):
        for j, tau in enumerate(taus):
            log_density[i, j] = log_marginal(x, s, mu, tau) + norm.logpdf(mu) + np.log(2) + norm.logpdf(tau)
    log_density -= log_density.max()
    return np.exp(log_density) / np.exp(log_density).sum()


# %% grid: broadcasting
def grid_posterior(x, s, mus, taus):
    variance = taus[:, None] ** 2 + s**2
    terms = -((x - mus[:, None, None]) ** 2) / variance / 2 - np.log(variance) / 2
    found = terms.sum(axis=2) - mus[:, None] ** 2 / 2 - taus**2 / 2
    found = np.exp(found - found.max())
    return found / found.sum()


# %% grid: softmax
def grid_posterior(x, s, mus, taus):
    from scipy.special import softmax

    return softmax([[log_marginal(x, s, m, t) - (m * m + t * t) / 2 for t in taus] for m in mus])


# %% grid: logsumexp
def grid_posterior(x, s, mus, taus):
    from scipy.special import logsumexp

    table = np.array([[log_marginal(x, s, m, t) for t in taus] for m in mus])
    table = table + norm.logpdf(mus)[:, None] + norm.logpdf(taus)[None]
    return np.exp(table - logsumexp(table))


# %% grid: halfnorm
def grid_posterior(x, s, mus, taus):
    from scipy.stats import halfnorm

    table = np.array([[log_marginal(x, s, m, t) for m in mus] for t in taus]).T
    table += np.add.outer(norm(0, 1).logpdf(mus), halfnorm(scale=1).logpdf(taus))
    weights = np.exp(table - np.max(table))
    return (weights / np.sum(weights)).tolist()


# %% grid: a dict first
def grid_posterior(x, s, mus, taus):
    table = {(i, j): log_marginal(x, s, m, t) for i, m in enumerate(mus) for j, t in enumerate(taus)}
    table = {(i, j): v - 0.5 * (mus[i] ** 2 + taus[j] ** 2) for (i, j), v in table.items()}
    top = max(table.values())
    found = np.zeros((len(mus), len(taus)))
    for place, value in table.items():
        found[place] = np.exp(value - top)
    return found / found.sum()


# %% lpd: loops
def lpd_clinics(p, y):
    found = []
    for g in range(y.shape[0]):
        logs = []
        for o in range(y.shape[1]):
            mean = p[:, g, o].mean()
            logs.append(np.log(mean if y[g, o] == 1 else 1 - mean))
        found.append(sum(logs) / len(logs))
    return found


# %% lpd: SciPy's Bernoulli
def lpd_clinics(p, y):
    from scipy.stats import bernoulli

    return bernoulli.logpmf(y, np.mean(p, axis=0)).mean(axis=1)


# %% lpd: xlogy
def lpd_clinics(p, y):
    from scipy.special import xlog1py, xlogy

    mean = p.mean(0)
    return (xlogy(y, mean) + xlog1py(1 - y, -mean)).mean(axis=-1)


# %% lpd: the probability of each label in each draw
def lpd_clinics(p, y):
    return np.log(np.where(y == 1, p, 1 - p).mean(axis=0)).mean(axis=1)


# %% lpd: logsumexp over draws
def lpd_clinics(p, y):
    from scipy.special import logsumexp

    return np.mean(logsumexp(np.log(np.abs(1 - y - p)), axis=0) - np.log(len(p)), axis=1)


# %% lpd: the package
def lpd_clinics(p, y):
    return score.score_groups(np.einsum("dgo->go", p) / len(p), y)["lpd"]


# %% paired: SciPy's standard error
def compare(lpd, other):
    from scipy.stats import sem

    return np.mean(lpd - other), sem(lpd - other)


# %% paired: statistics
def compare(lpd, other):
    import statistics

    d = [float(a) - float(b) for a, b in zip(lpd, other)]
    return statistics.mean(d), statistics.stdev(d) / len(d) ** 0.5


# %% paired: by covariance
def compare(lpd, other):
    c = np.cov(lpd, other)
    variance = max(c[0, 0] + c[1, 1] - 2 * c[0, 1], 0)
    return lpd.mean() - other.mean(), np.sqrt(variance / len(lpd))


# %% paired: a t test
def compare(lpd, other):
    d = np.subtract(lpd, other)
    return [d.mean(), np.sqrt(d.var(ddof=1) / d.size)]


# %% paired: sums of squares
def compare(lpd, other):
    n, d = len(lpd), np.asarray(lpd) - np.asarray(other)
    square = ((d - d.mean()) ** 2).sum()
    return np.array([d.sum() / n, np.sqrt(square / (n * (n - 1)))])


# %% paired: pandas
def compare(lpd, other):
    import pandas as pd

    d = pd.Series(lpd) - pd.Series(other)
    return d.mean(), d.sem()
