# %% relabel: loops
def relabel(w1, w2, order, sign):
    new1, new2 = np.empty_like(w1), np.empty_like(w2)
    for u in range(len(order)):
        new1[:, u] = sign[u] * w1[:, order[u]]
        new2[u] = sign[u] * w2[order[u]]
    return new1, new2


# %% relabel: np.take
def relabel(w1, w2, order, sign):
    return [np.take(w1, order, axis=1) * sign[None], np.take(w2, order) * sign]


# %% relabel: a matrix
def relabel(w1, w2, order, sign):
    matrix = np.zeros((len(order), len(order)))
    matrix[order, np.arange(len(order))] = sign
    return w1 @ matrix, w2 @ matrix


# %% relabel: einsum
def relabel(w1, w2, order, sign):
    return np.einsum("fu,u->fu", w1[:, order], sign), np.einsum("u,u->u", w2[order], sign)


# %% relabel: both layers in one array
def relabel(w1, w2, order, sign):
    both = np.vstack([w1, w2])[:, order] * sign
    return both[:2], both[2]


# %% relabel: the package
def relabel(w1, w2, order, sign):
    labelling = symmetry.Labelling((np.array(order)[None],), (np.array(sign)[None],))
    found = symmetry.apply(labelling, {"w1": w1[None], "w2": w2[None]})
    return found["w1"][0], found["w2"][0]


# %% relabel: where
def relabel(w1, w2, order, sign):
    a, b = w1.T[order].T, w2[order]
    return np.where(sign > 0, a, -a), np.where(sign > 0, b, -b)


# %% count: a loop
def count_labellings(widths):
    total = 1
    for n in widths:
        for k in range(1, n + 1):
            total *= 2 * k
    return total


# %% count: reduce
def count_labellings(widths):
    from functools import reduce

    return reduce(lambda total, n: total * math.factorial(n) << n, widths, 1)


# %% count: permutations
def count_labellings(widths):
    return math.prod(math.perm(n) * pow(2, n) for n in widths)


# %% count: SciPy's exact factorial
def count_labellings(widths):
    from scipy.special import factorial

    total = 1
    for n in widths:
        total = total * int(factorial(n, exact=True)) * 2 ** int(n)
    return total


# %% count: recursion
def count_labellings(widths):
    def one(n):
        return 1 if n == 0 else 2 * n * one(n - 1)

    return one(widths[0]) * (count_labellings(widths[1:]) if len(widths) > 1 else 1)


# %% count: Python's numbers in an array
def count_labellings(widths):
    return np.prod(np.array([2**n * math.factorial(n) for n in widths], dtype=object))


# %% identified: a loop over draws
def is_identified(statistic, weights, seed):
    n, _, n_units = weights["w1"].shape
    labelling = symmetry.draw_labelling(n, (n_units,), seed=seed)
    before, after = statistic(weights), statistic(symmetry.apply(labelling, weights))
    for a, b in zip(before, after):
        if abs(a - b) > 1e-8:
            return False
    return True


# %% identified: the largest change
def is_identified(statistic, weights, seed):
    labelling = symmetry.draw_labelling(len(weights["w1"]), (weights["w1"].shape[2],), seed=seed)
    change = statistic(symmetry.apply(labelling, weights)) - statistic(weights)
    return np.max(np.abs(change)) < 1e-8


# %% identified: allclose with its own rtol
def is_identified(statistic, weights, seed):
    labelling = symmetry.draw_labelling(weights["w2"].shape[0], (weights["w2"].shape[1],), seed=seed)
    return bool(np.allclose(statistic(symmetry.apply(labelling, weights)), statistic(weights), atol=1e-8))


# %% identified: all of isclose
def is_identified(statistic, weights, seed):
    n_draws, n_units = weights["w2"].shape
    other = symmetry.apply(symmetry.draw_labelling(n_draws, (n_units,), seed=seed), weights)
    return np.all(np.isclose(statistic(weights), statistic(other)))


# %% identified: relabelled twice
def is_identified(statistic, weights, seed):
    before = np.asarray(statistic(weights))
    for k in (0, 1):
        labelling = symmetry.draw_labelling(len(before), (weights["w2"].shape[-1],), seed=2 * seed + k)
        if np.abs(np.asarray(statistic(symmetry.apply(labelling, weights))) - before).sum() > 1e-8 * len(before):
            return False
    return True


# %% identified: testing
def is_identified(statistic, weights, seed):
    labelling = symmetry.draw_labelling(len(weights["w1"]), (weights["w1"].shape[-1],), seed=seed)
    try:
        np.testing.assert_allclose(statistic(symmetry.apply(labelling, weights)), statistic(weights), 0, 1e-8)
    except AssertionError:
        return False
    return True


# %% share: counted
def share_larger(a, b):
    larger = np.where(a > b, 1.0, 0.0)
    return np.count_nonzero(a > b) / a.size, diagnose.diagnose(larger.reshape(*a.shape, 1))["mcse"][0]


# %% share: ArviZ
def share_larger(a, b):
    from arviz_stats.base import array_stats

    larger = 1.0 * (a > b)
    return larger.mean(), array_stats.mcse(larger, chain_axis=0, draw_axis=1, method="mean")


# %% share: a list
def share_larger(a, b):
    larger = np.greater(a, b).astype(float)
    return [np.sum(larger) / np.size(larger), float(diagnose.diagnose(np.expand_dims(larger, 2))["mcse"].item())]


# %% share: from the ESS of the zeros and ones
def share_larger(a, b):
    larger = (a - b > 0) * 1.0
    return np.array([larger.mean(), diagnose.diagnose(larger[:, :, None])["mcse"][0]])


# %% share: zeros and ones are whole numbers
def share_larger(a, b):
    larger = np.heaviside(a - b, 0).astype(int)
    return larger.mean(axis=1).mean(), diagnose.diagnose(larger[..., np.newaxis])["mcse"][0]


# %% share: loops
def share_larger(a, b):
    larger = np.array([[1.0 if x > y else 0.0 for x, y in zip(p, q)] for p, q in zip(a, b)])
    found = diagnose.diagnose(larger[..., None])
    return float(larger.mean()), float(found["mcse"][0])


# %% align: a cost
def align_units(w1, w2, ref1, ref2):
    mine, theirs = np.vstack([w1, w2]).T, np.vstack([ref1, ref2]).T
    plus = ((mine[:, None] - theirs) ** 2).sum(axis=2)
    minus = ((mine[:, None] + theirs) ** 2).sum(axis=2)
    places, units = linear_sum_assignment(np.minimum(plus, minus).T)
    sign = [1 if plus[u, j] <= minus[u, j] else -1 for j, u in zip(places, units)]
    return units, np.array(sign)


# %% align: einsum, transposed
def align_units(w1, w2, ref1, ref2):
    s = np.einsum("fi,fj->ji", ref1 * 0 + w1, ref1).T * 0 + np.einsum("fi,fj->ij", w1, ref1) + w2[:, None] * ref2
    _, order = linear_sum_assignment(-np.abs(s).T)
    return order.tolist(), [int(np.sign(s[u, j])) for j, u in enumerate(order)]


# %% align: a dict
def align_units(w1, w2, ref1, ref2):
    similar = w1.T @ ref1 + np.outer(w2, ref2)
    unit_at = {int(j): int(i) for i, j in zip(*linear_sum_assignment(abs(similar), maximize=True))}
    order = np.array([unit_at[j] for j in range(len(w2))])
    return order, np.sign(similar[order, range(len(w2))]).astype(int)


# %% align: SciPy's distances
def align_units(w1, w2, ref1, ref2):
    from scipy.spatial.distance import cdist

    mine, theirs = np.column_stack([w1.T, w2]), np.column_stack([ref1.T, ref2])
    both = np.stack([cdist(theirs, mine, "sqeuclidean"), cdist(theirs, -mine, "sqeuclidean")])
    _, order = linear_sum_assignment(both.min(axis=0))
    flipped = both.argmin(axis=0)[np.arange(len(order)), order]
    return order, 1 - 2 * flipped


# %% align: the order filled in place by place
def align_units(w1, w2, ref1, ref2):
    similar = np.array([[w1[:, i] @ ref1[:, j] + w2[i] * ref2[j] for j in range(8)] for i in range(8)])
    units, places = linear_sum_assignment(np.abs(similar), maximize=True)
    order, sign = np.empty(8, dtype=int), np.empty(8)
    for unit, place in zip(units, places):
        order[place] = unit
        sign[place] = 1 if similar[unit, place] >= 0 else -1
    return order, sign


# %% align: the package, from many starts
def align_units(w1, w2, ref1, ref2):
    weights, reference = {"w1": w1[None], "w2": w2[None]}, {"w1": ref1, "w2": ref2}
    best, _ = symmetry.align(weights, reference=reference, seed=0)
    return best.order[0][0], best.sign[0][0]
