# %% auroc: loops
def auroc(inside, outside):
    won = 0.0
    for a in outside:
        for b in inside:
            won += 1.0 if a > b else 0.5 if a == b else 0.0
    return won / (len(inside) * len(outside))


# %% auroc: Mann and Whitney
def auroc(inside, outside):
    from scipy.stats import mannwhitneyu

    return mannwhitneyu(outside, inside).statistic / (len(inside) * len(outside))


# %% auroc: scikit-learn
def auroc(inside, outside):
    from sklearn.metrics import roc_auc_score

    truth = np.r_[np.zeros(len(inside)), np.ones(len(outside))]
    return roc_auc_score(truth, np.r_[inside, outside])


# %% auroc: ranks
def auroc(inside, outside):
    from scipy.stats import rankdata

    n, m = len(outside), len(inside)
    ranks = rankdata(np.concatenate([outside, inside]))[:n]
    return (ranks.sum() - n * (n + 1) / 2) / (n * m)


# %% auroc: signs
def auroc(inside, outside):
    return (np.sign(np.subtract.outer(outside, inside)).mean() + 1) / 2


# %% auroc: searchsorted
def auroc(inside, outside):
    known = np.sort(inside)
    below = np.searchsorted(known, outside, side="left") + np.searchsorted(known, outside, side="right")
    return below.mean() / 2 / len(known)


# %% threshold: np.quantile's other method
def choose_threshold(doubt, share):
    return np.quantile(doubt, share, method="inverted_cdf")


# %% threshold: a loop
def choose_threshold(doubt, share):
    for value in sorted(doubt):
        if np.mean(doubt <= value) >= share:
            return value


# %% threshold: the least that is good enough
def choose_threshold(doubt, share):
    return min(value for value in doubt if sum(doubt <= value) >= share * len(doubt) - 1e-9)


# %% threshold: partition
def choose_threshold(doubt, share):
    k = int(np.ceil(share * len(doubt) - 1e-9)) - 1
    return float(np.partition(doubt, k)[k])


# %% threshold: cumulated
def choose_threshold(doubt, share):
    ordered = np.sort(doubt)
    return ordered[np.argmax(np.arange(1, len(ordered) + 1) / len(ordered) >= share)]


# %% threshold: the package
def choose_threshold(doubt, share):
    return reject.choose_threshold(doubt, share)


# %% threshold: ceil alone
def choose_threshold(doubt, share):
    import math

    return sorted(doubt)[math.ceil(share * len(doubt)) - 1]


# %% refusal: a loop
def refuse(doubt, threshold):
    found = {}
    for name, values in doubt.items():
        n = len(values)
        r = sum(1 for value in values if value > threshold) / n
        found[name] = (100 * r, 100 * (r * (1 - r) / n) ** 0.5)
    return found


# %% refusal: the sd of zeros and ones
def refuse(doubt, threshold):
    found = {}
    for name, values in doubt.items():
        refused = 100.0 * (values > threshold)
        found[name] = [refused.mean(), refused.std() / np.sqrt(len(refused))]
    return found


# %% refusal: SciPy's binomial
def refuse(doubt, threshold):
    from scipy.stats import binom

    found = {}
    for name, values in doubt.items():
        n, k = len(values), np.count_nonzero(values > threshold)
        found[name] = np.array([100 * k / n, 100 * binom.std(n, k / n) / n])
    return found


# %% refusal: accepted, subtracted
def refuse(doubt, threshold):
    kept = {name: np.mean(np.asarray(values) <= threshold) for name, values in doubt.items()}
    return {name: (100 - 100 * a, 100 * np.sqrt(a * (1 - a) / len(doubt[name]))) for name, a in kept.items()}


# %% refusal: zip
def refuse(doubt, threshold):
    n = np.array([len(values) for values in doubt.values()])
    r = np.array([np.sum(values > threshold) for values in doubt.values()]) / n
    return dict(zip(doubt, zip(100 * r, 100 * np.sqrt(r - r**2) / np.sqrt(n))))


# %% refusal: counts
def refuse(doubt, threshold):
    def rate(values):
        k, n = int((values > threshold).sum()), values.size
        return k / n * 100, 100 * np.sqrt(k * (n - k) / n**3)

    return {name: rate(np.array(values)) for name, values in doubt.items()}


# %% conformal: a loop
def conformal_limit(scores, level):
    k, ordered = 0, sorted(scores)
    while k < (len(scores) + 1) * level - 1e-9:
        k += 1
    return float("inf") if k > len(scores) else ordered[k - 1]


# %% conformal: infinity is a score
def conformal_limit(scores, level):
    k = int(np.ceil((len(scores) + 1) * level - 1e-9))
    return np.sort(np.append(scores, np.inf))[k - 1]


# %% conformal: np.quantile with a level of its own
def conformal_limit(scores, level):
    n = len(scores)
    k = np.ceil(np.round((n + 1) * level, 9))
    return np.inf if k > n else np.quantile(scores, (k - 0.5) / n, method="inverted_cdf")


# %% conformal: partition
def conformal_limit(scores, level):
    import math

    k = math.ceil((len(scores) + 1) * level - 1e-9)
    if k > len(scores):
        return math.inf
    return np.partition(scores, k - 1)[k - 1]


# %% conformal: heapq
def conformal_limit(scores, level):
    import heapq

    k = int(np.ceil(round((len(scores) + 1) * level, 6)))
    return np.inf if k > len(scores) else heapq.nsmallest(k, scores)[-1]


# %% conformal: fractions
def conformal_limit(scores, level):
    import math
    from fractions import Fraction

    k = math.ceil((len(scores) + 1) * Fraction(str(level)))
    return sorted(scores)[k - 1] if k <= len(scores) else np.inf


# %% conformal: ceil alone
def conformal_limit(scores, level):
    k = int(np.ceil((len(scores) + 1) * level))
    return np.inf if k > len(scores) else np.sort(scores)[k - 1]


# %% sets: loops
def predict_sets(p, limit):
    return [[1 - value <= limit for value in row] for row in p]


# %% sets: the other side
def predict_sets(p, limit):
    return p >= 1 - limit


# %% sets: zeros and ones
def predict_sets(p, limit):
    return np.where(1 - p > limit, 0, 1)


# %% sets: np.less_equal
def predict_sets(p, limit):
    return np.less_equal(np.subtract(1, p), limit)


# %% sets: filled in
def predict_sets(p, limit):
    found = np.zeros(np.shape(p), dtype=bool)
    for k in range(p.shape[1]):
        found[:, k] = 1.0 - p[:, k] <= limit
    return found


# %% sets: not above
def predict_sets(p, limit):
    return ~((1 - np.asarray(p)) > limit)
