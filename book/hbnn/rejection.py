"""When a classifier should say "I don't know": scores of doubt, thresholds, and how well they tell images apart.

A doubt is a number for each image, larger where the classifier is less sure: an array of shape (obs,).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from hbnn._checks import check_classes, check_probabilities, check_seed
from hbnn._types import Array, Floats
from hbnn.metrics import TINY, class_entropy, split_uncertainty

DOUBTS = ("sd", "max", "entropy", "ignorance")


def measure_doubt(draws: ArrayLike) -> dict[str, Floats]:
    """Four scores of doubt from class probabilities.

    Parameters
    ----------
    draws : array_like, shape (draw, obs, class)
        Probabilities, draw by draw; a single network is one draw.

    Returns
    -------
    dict of arrays, shape (obs,)
        "sd" (standard deviation over draws of the predicted class's probability, the article's), "max" (1 minus the
        predicted class's mean probability), "entropy" (of the mean probabilities, in bits) and "ignorance" (mutual
        information of label and weights, in bits). "sd" and "ignorance" are zero for a single network.

    References
    ----------
    Depeweg et al. (2018), Decomposition of Uncertainty in Bayesian Deep Learning, ICML.
    Hendrycks and Gimpel (2017), A Baseline for Detecting Misclassified and Out-of-Distribution Examples, for "max".

    Examples
    --------
    >>> from hbnn import rejection
    >>> draws = [[[0.9, 0.1], [0.9, 0.1]], [[0.9, 0.1], [0.1, 0.9]]]  # draws, images, classes
    >>> doubt = rejection.measure_doubt(draws)
    >>> {name: values.round(2).tolist() for name, values in doubt.items()}
    {'sd': [0.0, 0.4], 'max': [0.1, 0.5], 'entropy': [0.47, 1.0], 'ignorance': [0.0, 0.53]}
    """
    draws = np.asanyarray(draws, dtype=float)  # a mask stays, to be refused
    if draws.ndim != 3:
        raise ValueError(f"draws has shape {draws.shape}; wanted: (draw, obs, class)")
    ignorance = split_uncertainty(draws)["ignorance"]
    mean = draws.mean(axis=0)
    chosen = mean.argmax(axis=1)[None, :, None]
    sd = np.take_along_axis(draws, chosen, axis=2)[..., 0].std(axis=0)
    return {"sd": sd, "max": 1 - mean.max(axis=1), "entropy": class_entropy(mean), "ignorance": ignorance}


def choose_threshold(doubt: ArrayLike, share: float = 0.99) -> float:
    """The least doubt above which at most 1 - `share` of these images lie: `share` of them are accepted.

    Parameters
    ----------
    doubt : array_like, shape (obs,)
        Of a validation set: on the images that a threshold is chosen by, its share is no finding.
    share : float
        Between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import rejection
    >>> rejection.choose_threshold(np.arange(100), share=0.9)
    89.0
    """
    doubt = _check_doubt(doubt, "doubt")
    if not 0 < share < 1:
        raise ValueError(f"share={share}; wanted: between 0 and 1, both excluded")
    accepted = np.arange(1, len(doubt) + 1) / len(doubt)
    return float(np.sort(doubt)[np.searchsorted(accepted, share)])


def auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    """Probability that an image from outside raises more doubt than one from inside; ties count one half.

    Parameters
    ----------
    inside, outside : array_like, shape (obs,)
        Doubts; their numbers may differ.

    Returns
    -------
    float
        0.5 where doubt does not tell them apart, 1 where every image from outside raises more.

    Raises
    ------
    ImportError
        Without scikit-learn.

    References
    ----------
    Fawcett (2006), An Introduction to ROC Analysis, Pattern Recognition Letters 27.

    Examples
    --------
    >>> from hbnn import rejection
    >>> rejection.auroc(inside=[0.1, 0.2, 0.3], outside=[0.8, 0.9])
    1.0
    >>> rejection.auroc(inside=[0.1, 0.2], outside=[0.1, 0.2])
    0.5
    """
    try:
        from sklearn.metrics import roc_auc_score
    except ImportError as e:
        raise ImportError('the area is scikit-learn\'s: pip install "hbnn[tables]"') from e
    inside, outside = _check_doubt(inside, "inside"), _check_doubt(outside, "outside")
    label = np.repeat([0, 1], [len(inside), len(outside)])
    return float(roc_auc_score(label, np.concatenate([inside, outside])))


def bootstrap(
    statistic: Callable[..., Any],
    samples: Sequence[ArrayLike],
    *,
    seed: int,
    clusters: Sequence[ArrayLike | None] | None = None,
    n_boot: int = 500,
    level: float = 0.95,
) -> tuple[Any, Any, Any]:
    """Percentile interval and standard error of a statistic, by drawing images, or clusters of them, with replacement.

    Each sample is drawn on its own. What belongs together, such as probabilities and labels, goes into one array.

    Parameters
    ----------
    statistic : callable
        Function of as many arrays as there are samples, to a float or an array of floats.
    samples : sequence of array_like, shape (obs, …)
    seed : int
    clusters : sequence of None or array_like, shape (obs,)
        One for each sample: images of one cluster are drawn together.
    n_boot : int
        Bootstrap samples.
    level : float
        Of the interval.

    Returns
    -------
    low, high, error : as the statistic

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap.
    Davison and Hinkley (1997), Bootstrap Methods and their Application, section 3.8, for drawing clusters.

    Examples
    --------
    The standard error of a mean of 100 numbers with a standard deviation of 1 is 0.1:

    >>> import numpy as np
    >>> from hbnn import rejection
    >>> values = np.random.default_rng(1).normal(size=100)
    >>> low, high, error = rejection.bootstrap(np.mean, [values], seed=1)
    >>> bool(low < values.mean() < high), bool(abs(error - 0.1) < 0.03)
    (True, True)
    """
    check_seed(seed)
    if n_boot < 2 or not 0 < level < 1:
        raise ValueError(f"n_boot={n_boot}, level={level}; wanted: at least 2, and a level between 0 and 1")
    arrays = [np.asarray(sample) for sample in samples]
    clusters = [None] * len(arrays) if clusters is None else clusters
    if len(clusters) != len(arrays):
        raise ValueError(
            f"clusters has {len(clusters)} entries for {len(arrays)} samples; wanted: one for each, or None"
        )
    groups = [_list_members(sample, cluster) for sample, cluster in zip(arrays, clusters, strict=True)]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_boot):
        drawn = [np.concatenate([g[i] for i in rng.integers(len(g), size=len(g))]) for g in groups]
        found.append(statistic(*(sample[index] for sample, index in zip(arrays, drawn, strict=True))))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high, np.std(found, axis=0, ddof=1)


def _list_members(sample: Array, cluster: ArrayLike | None) -> Sequence[Array] | Array:
    """The indices of each cluster's images."""
    if cluster is None:
        return np.arange(len(sample))[:, None]
    cluster = np.asarray(cluster)
    if cluster.shape != (len(sample),):
        raise ValueError(f"clusters holds shape {cluster.shape}; wanted: one number for each of {len(sample)} images")
    return [np.flatnonzero(cluster == c) for c in np.unique(cluster)]


def trace_risk(doubt: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Coverage and risk where the least doubtful image is accepted, the two least doubtful ones, …

    Parameters
    ----------
    doubt : array_like, shape (obs,)
    correct : array_like of bool, shape (obs,)
        Whether an image's prediction is right.

    Returns
    -------
    coverage, risk : array, shape (obs,)
        The share of images that are accepted, and the error rate among them.

    References
    ----------
    Geifman and El-Yaniv (2017), Selective Classification for Deep Neural Networks, NeurIPS.

    Examples
    --------
    >>> from hbnn import rejection
    >>> coverage, risk = rejection.trace_risk([0.1, 0.9, 0.2, 0.4], [True, False, True, True])
    >>> coverage, risk
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0.  , 0.  , 0.  , 0.25]))
    """
    doubt, correct = _check_doubt(doubt, "doubt"), np.asarray(correct)
    if correct.shape != doubt.shape:
        raise ValueError(f"correct has shape {correct.shape}; wanted: one truth value for each of {len(doubt)} doubts")
    if correct.dtype != bool:
        raise ValueError(f"correct holds {correct.dtype}; wanted: True or False for each of {len(doubt)} doubts")
    order = np.argsort(doubt, kind="stable")
    n = np.arange(1, len(doubt) + 1)
    return n / len(doubt), np.cumsum(~correct[order]) / n


def warm(p: ArrayLike, temperature: float) -> Floats:
    """Class probabilities at another temperature, their order unchanged.

    Parameters
    ----------
    p : array_like, shape (…, class)
    temperature : float
        Above 1 makes them less sure, below 1 surer.

    Returns
    -------
    array, shape (…, class)

    Examples
    --------
    >>> from hbnn import rejection
    >>> rejection.warm([0.8, 0.2], 2.0).round(3)
    array([0.667, 0.333])
    >>> rejection.warm([0.8, 0.2], 0.5).round(3)
    array([0.941, 0.059])
    """
    if not temperature > 0:
        raise ValueError(f"temperature={temperature}; wanted: above 0")
    return softmax(np.log(np.maximum(p, TINY)) / temperature, axis=-1)


def fit_temperature(p: ArrayLike, y: ArrayLike) -> float:
    """The temperature at which class probabilities give labels the highest mean log density.

    Parameters
    ----------
    p : array_like, shape (obs, class)
        Of a validation set, as its labels.
    y : array_like of int, shape (obs,)

    Returns
    -------
    float
        Between 0.05 and 20, exp(-3) and exp(3).

    References
    ----------
    Guo et al. (2017), On Calibration of Modern Neural Networks, ICML.

    Examples
    --------
    A classifier that says 0.9 and is right three times of four is too sure:

    >>> import numpy as np
    >>> from hbnn import rejection
    >>> p, y = np.array([[0.9, 0.1]] * 4), [0, 0, 0, 1]
    >>> temperature = rejection.fit_temperature(p, y)
    >>> round(temperature, 2)
    2.0
    >>> rejection.warm(p[0], temperature).round(2)
    array([0.75, 0.25])
    """
    p = np.asanyarray(p, dtype=float)  # a mask stays, to be refused
    if p.ndim != 2 or p.size == 0:
        raise ValueError(f"p has shape {p.shape}; wanted: (obs, class), at least one image")
    p = check_probabilities(p, "p", of_classes=True)
    y = check_classes(y, len(p), n_classes=p.shape[1])

    def lose(log_temperature: float) -> float:
        return -np.mean(np.log(np.maximum(warm(p, np.exp(log_temperature))[np.arange(len(y)), y], TINY)))

    return float(np.exp(minimize_scalar(lose, bounds=(-3, 3), method="bounded", options={"xatol": 1e-6}).x))


def _check_doubt(doubt: ArrayLike, name: str) -> Floats:
    doubt = np.asarray(doubt, dtype=float)
    if doubt.ndim != 1 or doubt.size == 0:
        raise ValueError(f"{name} has shape {doubt.shape}; wanted: (obs,), at least one image")
    if not np.isfinite(doubt).all():
        raise ValueError(f"{name} holds values that are NaN or infinite; wanted: finite numbers")
    return doubt
