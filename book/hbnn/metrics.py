"""How good are the probabilities? Accuracy, log predictive density, Brier score, calibration, uncertainty split."""

import numpy as np
from numpy.typing import ArrayLike

from hbnn._checks import check_classes, check_count, check_probabilities, check_seed, refuse_masked
from hbnn._types import Array, Floats

TINY = 1e-300  # keeps 0 log 0 finite
FLOOR = 2.0**-53  # a label's least probability, 36.7 nats: 1 - p cannot tell a smaller one from 0


def _check_labelled(p: ArrayLike, y: ArrayLike) -> tuple[Floats, Array]:
    p, y = check_probabilities(p, "p"), _check_labels(y)
    if p.shape != y.shape:
        raise ValueError(f"p has shape {p.shape} and y {y.shape}; wanted: one probability for each label")
    if p.size == 0:
        raise ValueError("p and y are empty; wanted: at least one point")
    return p, y


def _check_labels(y: ArrayLike) -> Array:
    refuse_masked(y, "y")
    y = np.asarray(y)
    if not np.isin(y, (0, 1)).all():
        raise ValueError("y holds labels other than 0 and 1; wanted: 0 and 1 only")
    return y


def log_likelihood(p: ArrayLike, y: ArrayLike) -> Floats:
    """Log of the probability that each label was given.

    Parameters
    ----------
    p : array_like, shape (…, obs)
        Probabilities of class 1.
    y : array_like of 0 and 1, shape (obs,)
        Or any shape that broadcasts with that of `p`.

    Returns
    -------
    array
        Nats, nowhere below -36.7: a probability that rounds to 1 leaves 1 - p = 0 for all logits above 37.

    Examples
    --------
    >>> from hbnn import metrics
    >>> metrics.log_likelihood([0.9, 0.5], [1, 0]).round(3)
    array([-0.105, -0.693])
    """
    p = check_probabilities(p, "p")
    return np.log(np.maximum(np.where(_check_labels(y) == 1, p, 1 - p), FLOOR))


def _score_each(p: ArrayLike, y: ArrayLike) -> dict[str, Floats]:
    """Scores of each label."""
    p, y = _check_labelled(p, y)
    return {"accuracy": 100.0 * ((p > 0.5) == y), "lpd": log_likelihood(p, y), "brier": (p - y) ** 2}


def score(p: ArrayLike, y: ArrayLike) -> dict[str, float]:
    """Score probabilities of class 1 against labels.

    Parameters
    ----------
    p : array_like, shape (obs,)
    y : array_like of 0 and 1, shape (obs,)

    Returns
    -------
    dict of float
        "accuracy" in %, a tie being a vote for class 0, "lpd" (mean log predictive density, nats per point; higher is
        better; a certain miss costs 36.7) and "brier" (mean squared error of the probability; lower is better).

    References
    ----------
    Gneiting and Raftery (2007), Strictly Proper Scoring Rules, JASA 102.

    Examples
    --------
    >>> from hbnn import metrics
    >>> found = metrics.score([0.9, 0.2, 0.6], [1, 0, 0])
    >>> {name: round(value, 3) for name, value in found.items()}
    {'accuracy': 66.667, 'lpd': -0.415, 'brier': 0.137}
    """
    return {name: float(np.mean(value)) for name, value in _score_each(p, y).items()}


def score_error(p: ArrayLike, y: ArrayLike) -> dict[str, float]:
    """Standard error of each score in `score`, in its units, from the finite number of test points.

    Parameters
    ----------
    p : array_like, shape (obs,)
    y : array_like of 0 and 1, shape (obs,)

    Returns
    -------
    dict of float

    Examples
    --------
    >>> from hbnn import metrics
    >>> found = metrics.score_error([0.9, 0.2, 0.6], [1, 0, 0])
    >>> {name: round(value, 3) for name, value in found.items()}
    {'accuracy': 33.333, 'lpd': 0.253, 'brier': 0.112}
    """
    each = _score_each(p, y)
    if np.size(y) < 2:
        raise ValueError(f"y holds {np.size(y)} label; wanted: at least 2 for an error")
    return {name: float(np.std(value, ddof=1) / np.sqrt(np.size(y))) for name, value in each.items()}


def score_classes(p: ArrayLike, y: ArrayLike) -> dict[str, tuple[float, float]]:
    """Score class probabilities against labels.

    Parameters
    ----------
    p : array_like, shape (obs, class)
    y : array_like of int, shape (obs,)

    Returns
    -------
    dict of (float, float)
        For "accuracy" (%), "lpd" (nats per image) and "brier" (squared error summed over classes) the value and its
        standard error from the finite number of images.

    References
    ----------
    As `score`; Brier (1950), Verification of Forecasts Expressed in Terms of Probability, Monthly Weather Review 78.

    Examples
    --------
    >>> from hbnn import metrics
    >>> found = metrics.score_classes([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [0, 1])
    >>> round(found["lpd"][0], 3), round(found["lpd"][1], 3)  # value, standard error
    (-0.78, 0.424)
    """
    p, y = np.asanyarray(p, dtype=float), np.asanyarray(y)  # masks stay, to be refused
    if p.ndim != 2 or y.shape != p.shape[:1] or len(y) < 2:
        raise ValueError(f"p has shape {p.shape} and y {y.shape}; wanted: (obs, class) and (obs,), at least 2 images")
    p = check_probabilities(p, "p", of_classes=True)
    y = check_classes(y, len(p), n_classes=p.shape[1])
    each = {
        "accuracy": 100.0 * (p.argmax(axis=1) == y),
        "lpd": np.log(np.maximum(p[np.arange(len(y)), y], FLOOR)),
        "brier": np.sum((p - np.eye(p.shape[1])[y]) ** 2, axis=1),
    }
    return {name: (float(v.mean()), float(v.std(ddof=1) / np.sqrt(len(v)))) for name, v in each.items()}


def score_groups(p: ArrayLike, y: ArrayLike) -> dict[str, Floats]:
    """Score every group, as `score`.

    Parameters
    ----------
    p : array_like, shape (group, obs)
    y : array_like of 0 and 1, shape (group, obs)

    Returns
    -------
    dict of arrays, shape (group,)

    Examples
    --------
    >>> from hbnn import metrics
    >>> metrics.score_groups([[0.9, 0.2], [0.6, 0.7]], [[1, 0], [0, 1]])["accuracy"]
    array([100.,  50.])
    """
    p, y = _check_labelled(p, y)
    if p.ndim != 2:
        raise ValueError(f"p has shape {p.shape}; wanted: (group, obs)")
    each = [score(a, b) for a, b in zip(p, y, strict=True)]
    return {name: np.array([found[name] for found in each]) for name in each[0]}


def compare_scores(p: ArrayLike, other: ArrayLike, y: ArrayLike) -> dict[str, tuple[float, float]]:
    """How much better are the probabilities `p` than `other`, group by group?

    Both meet the same test points, so the difference of each group's score is what counts, and its standard error
    takes groups, not points, as independent: points of one group share one training set.

    Parameters
    ----------
    p, other : array_like, shape (group, obs)
    y : array_like of 0 and 1, shape (group, obs)

    Returns
    -------
    dict of (float, float)
        For each score the difference and its standard error, in the score's units; a positive accuracy or lpd and a
        negative brier speak for `p`.

    Raises
    ------
    ValueError
        As `score`, and for fewer than 2 groups.

    References
    ----------
    The cluster-robust standard error of a mean, Cameron and Miller (2015), Journal of Human Resources 50.

    Examples
    --------
    >>> from hbnn import metrics
    >>> y = [[1, 0], [0, 1], [1, 1]]
    >>> p, other = [[0.9, 0.2], [0.3, 0.8], [0.7, 0.9]], [[0.5, 0.5]] * 3
    >>> difference, error = metrics.compare_scores(p, other, y)["lpd"]
    >>> round(difference, 3), round(error, 3)
    (0.465, 0.036)
    """
    mine, theirs = score_groups(p, y), score_groups(other, y)
    if len(mine["lpd"]) < 2:
        raise ValueError(f"p has {len(mine['lpd'])} group; wanted: at least 2 for an error")
    found = {}
    for name in mine:
        difference = mine[name] - theirs[name]
        found[name] = float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
    return found


def monte_carlo_error(
    draws: ArrayLike, y: ArrayLike, *, seed: int, n_boot: int = 200, block: int = 1
) -> dict[str, float]:
    """Monte Carlo error of each score of the posterior mean probability, from the finite number of draws.

    A bootstrap over blocks of draws: what would the scores have been with other draws from the same posterior? Of the
    accuracy it is at least half the weight of one label.

    Parameters
    ----------
    draws : array_like, shape (draw, obs)
        Probabilities.
    y : array_like of 0 and 1, shape (obs,)
    seed : int
    n_boot : int
        Bootstrap samples.
    block : int
        Consecutive draws that are kept together; 1 for independent draws, longer than the autocorrelation for a Markov
        chain.

    Returns
    -------
    dict of float

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import metrics
    >>> rng = np.random.default_rng(1)
    >>> draws, y = rng.uniform(0.4, 0.9, size=(1000, 50)), np.ones(50)
    >>> few, many = (metrics.monte_carlo_error(draws[:n], y, seed=1)["lpd"] for n in (10, 1000))
    >>> few > many > 0
    True
    """
    check_seed(seed)
    check_count(block, "block")
    check_count(n_boot, "n_boot", least=2)
    draws = check_probabilities(draws, "draws")
    if draws.ndim != 2 or len(draws) < 2 * block:
        raise ValueError(f"draws has shape {draws.shape}; wanted: (draw, obs) with at least {2 * block} draws")
    n_blocks = len(draws) // block
    means = draws[: n_blocks * block].reshape(n_blocks, block, -1).mean(axis=1)
    picked = np.random.default_rng(seed).multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=n_boot)
    found = [score(np.clip(p, 0, 1), y) for p in picked @ means / n_blocks]  # rounding may exceed 1
    error = {name: float(np.std([f[name] for f in found], ddof=1)) for name in found[0]}
    # accuracy moves in steps: where no bootstrap sample turned a label, one label may still be next to turn
    error["accuracy"] = max(error["accuracy"], 50 / draws.shape[1])
    return error


def calibrate(p: ArrayLike, y: ArrayLike, n_bins: int = 10) -> dict[str, Array]:
    """Mean probability and share of class 1, in bins of equal width.

    Parameters
    ----------
    p : array_like, shape (obs,)
    y : array_like of 0 and 1, shape (obs,)
    n_bins : int

    Returns
    -------
    dict of arrays, shape (bin,)
        "p" (mean predicted), "share" (observed), "error" (standard error of the share if `p` is right) and "n"
        (points); empty bins are left out. A probability between two bins is in the upper one.

    Examples
    --------
    >>> from hbnn import metrics
    >>> found = metrics.calibrate([0.1, 0.1, 0.1, 0.1, 0.8, 0.8], [0, 0, 0, 1, 1, 1], n_bins=2)
    >>> found["p"], found["share"], found["n"]
    (array([0.1, 0.8]), array([0.25, 1.  ]), array([4, 2]))
    """
    p, y = _check_labelled(p, y)
    check_count(n_bins, "n_bins")
    index = np.minimum((p * n_bins).astype(int), n_bins - 1)
    bins = [index == b for b in range(n_bins) if (index == b).any()]
    n = np.array([b.sum() for b in bins])
    mean = np.array([p[b].mean() for b in bins])
    error = np.sqrt(np.array([np.sum(p[b] * (1 - p[b])) for b in bins])) / n
    return {"p": mean, "share": np.array([y[b].mean() for b in bins]), "error": error, "n": n}


def entropy(p: ArrayLike) -> Floats:
    """Entropy of a coin with probability `p`, in bits: 0 when certain, 1 at p = 0.5.

    Parameters
    ----------
    p : array_like

    Returns
    -------
    array, of the shape of `p`

    Examples
    --------
    >>> from hbnn import metrics
    >>> metrics.entropy([0.5, 0.9]).round(3)
    array([1.   , 0.469])
    """
    p = check_probabilities(p, "p")
    return -(p * np.log2(np.maximum(p, TINY)) + (1 - p) * np.log2(np.maximum(1 - p, TINY)))


def class_entropy(p: ArrayLike) -> Floats:
    """Entropy of class probabilities, in bits: 0 when certain, log2(10) = 3.32 for ten equal classes.

    Parameters
    ----------
    p : array_like, shape (…, class)

    Returns
    -------
    array, shape (…)

    Examples
    --------
    >>> from hbnn import metrics
    >>> metrics.class_entropy([[0.25] * 4, [0.5, 0.5, 0.0, 0.0]])
    array([2., 1.])
    """
    p = check_probabilities(p, "p", of_classes=True)
    return -np.sum(p * np.log2(np.maximum(p, TINY)), axis=-1)


def split_uncertainty(draws: ArrayLike) -> dict[str, Floats]:
    """Split the uncertainty about a label into noise (aleatoric) and ignorance (epistemic).

    Parameters
    ----------
    draws : array_like, shape (draw, obs) or (draw, obs, class)
        Probabilities of class 1, or of all classes.

    Returns
    -------
    dict of arrays, shape (obs,)
        "total" (entropy of the mean probability), "noise" (mean entropy of each draw: what the networks themselves hold
        to be chance) and "ignorance" (their difference, the mutual information of label and weights), in bits.

    References
    ----------
    Depeweg et al. (2018), Decomposition of Uncertainty in Bayesian Deep Learning, ICML.

    Examples
    --------
    Two networks that are sure and disagree, and two that agree that it is a toss of a coin:

    >>> import numpy as np
    >>> from hbnn import metrics
    >>> found = metrics.split_uncertainty(np.array([[0.99, 0.5], [0.01, 0.5]]))
    >>> found["noise"].round(2), found["ignorance"].round(2)
    (array([0.08, 1.  ]), array([0.92, 0.  ]))
    """
    draws = np.asanyarray(draws, dtype=float)  # a mask stays, to be refused
    if draws.ndim not in (2, 3) or draws.size == 0:
        raise ValueError(f"draws has shape {draws.shape}; wanted: (draw, obs) or (draw, obs, class), none empty")
    draws = check_probabilities(draws, "draws", of_classes=draws.ndim == 3)
    measure = entropy if draws.ndim == 2 else class_entropy
    total, noise = measure(draws.mean(axis=0)), measure(draws).mean(axis=0)
    noise = np.minimum(noise, total)  # Jensen's inequality, which rounding may miss by a bit
    return {"total": total, "noise": noise, "ignorance": total - noise}
