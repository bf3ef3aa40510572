"""The data: flat two moons, rotated moons, and the truth about both.

Everywhere in this package ``X`` has the shape (obs, feature) or (group, obs, feature), ``y`` the shape
(obs,) or (group, obs) with labels 0 and 1, and ``group`` counts the categories, the rotated tasks.
"""

from dataclasses import dataclass

import numpy as np
from hbnn._checks import check_count, check_data, check_seed
from sklearn.datasets import make_moons

EXTENT = 3.0  # grids cover [-EXTENT, EXTENT] in both scaled features


@dataclass(frozen=True)
class Moons:
    """A data set, split into train and test.

    Attributes
    ----------
    X_train, X_test : float64, (obs, feature) or (group, obs, feature)
    y_train, y_test : int32, (obs,) or (group, obs), 0 or 1
    angle : float or (group,), degrees by which the moons are rotated clockwise
    center, width : (feature,) or (group, feature); what was subtracted, and what it was divided by

    Examples
    --------
    >>> from bookkit import data
    >>> moons = data.rotated_moons(seed=1, n_groups=3, n_train=20, n_test=10)
    >>> moons.n_groups, moons.X_train.shape, moons.y_train.shape
    (3, (3, 20, 2), (3, 20))
    >>> moons.group(0).X_train.shape  # one category by itself
    (20, 2)
    >>> moons.pooled().X_train.shape  # all of them, the category forgotten
    (60, 2)
    >>> moons.with_category().X_train.shape  # the category as three columns of 0 and 1
    (60, 5)
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    angle: np.ndarray | float
    center: np.ndarray
    width: np.ndarray

    @property
    def n_groups(self):
        """Number of categories; 1 for a flat data set."""
        return len(self.X_train) if self.X_train.ndim == 3 else 1

    def group(self, g):
        """Category `g` as a flat data set of its own."""
        self._need_groups()
        return Moons(*(np.asarray(value)[g] for value in vars(self).values()))

    def pooled(self):
        """All categories as one flat data set, the category forgotten."""
        self._need_groups()
        join = {name: np.concatenate(getattr(self, name)) for name in ("X_train", "y_train", "X_test", "y_test")}
        return Moons(**join, angle=self.angle, center=self.center, width=self.width)

    def with_category(self):
        """All categories as one flat data set, with the category as 0/1 columns beside the features."""
        flat = self.pooled()
        columns = {}
        for name in ("X_train", "X_test"):
            n_groups, n_obs, _ = getattr(self, name).shape
            one_hot = np.repeat(np.eye(n_groups), n_obs, axis=0)
            columns[name] = np.column_stack([getattr(flat, name), one_hot])
        return Moons(columns["X_train"], flat.y_train, columns["X_test"], flat.y_test,
                     self.angle, self.center, self.width)  # fmt: skip

    def _need_groups(self):
        if self.X_train.ndim != 3:
            raise ValueError(f"X_train has shape {self.X_train.shape}, one category; wanted: (group, obs, feature)")


def rotate(X, degrees):
    """Rotate points of shape (..., 2) clockwise, as the articles do.

    ``X @ R`` with its two sums written out: the order in which a matrix product adds is its library's affair, and the
    moons would have other last bits on another processor.

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import data
    >>> data.rotate(np.array([[0.0, 1.0]]), 90).round(3)
    array([[1., 0.]])
    """
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    x, y = np.moveaxis(np.asarray(X), -1, 0)
    return np.stack([x * c + y * s, y * c - x * s], axis=-1)


def _split(X, y, train, test, *, scaling, angle=0.0):
    """Scale, rotate and split one category. `train` and `test` are index arrays or slices."""
    if scaling not in ("train", "all", "none"):
        raise ValueError(f"scaling={scaling!r}; wanted: 'train', 'all' (as the articles do) or 'none'")
    seen = {"train": X[train], "all": X, "none": np.array([[-1.0, -1.0], [1.0, 1.0]])}[scaling]
    if len(X[train]) == 0 or len(X[test]) == 0:
        raise ValueError(f"{len(X[train])} training and {len(X[test])} test points; wanted: at least one of each")
    center, width = seen.mean(axis=0), seen.std(axis=0)
    if not width.all():
        raise ValueError(f"scaling={scaling!r} on {len(seen)} points without spread; wanted: at least two that differ")
    X = rotate((X - center) / width, angle)
    X, y = check_data(X, y)
    return Moons(X[train], y[train], X[test], y[test], angle, center, width)


def flat_moons(*, seed, n_obs=1000, noise=0.2, train_share=0.5, scaling="train"):
    """Two moons, shuffled, a share for training.

    Parameters
    ----------
    seed : int; ``seed=0`` draws the points of Wiecki's article (which did not seed its split)
    n_obs : int, both moons together
    noise : float, standard deviation of the points around their arc, in units of the arc's radius
    train_share : float between 0 and 1
    scaling : "train" learns centre and width on the training points, "all" on all points (as the articles
        do: a mild leak), "none" leaves the points as they are

    Returns
    -------
    Moons

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import data
    >>> moons = data.flat_moons(seed=0)
    >>> moons.X_train.shape, moons.X_test.shape
    ((500, 2), (500, 2))
    >>> np.bincount(moons.y_train)  # points of each class
    array([257, 243])
    >>> moons.X_train.std(axis=0).round(3)  # scaled by the training points
    array([1., 1.])
    """
    check_seed(seed)
    if not 0 < train_share < 1:
        raise ValueError(f"train_share={train_share}; wanted: between 0 and 1, both excluded")
    X, y = make_moons(n_samples=n_obs, noise=noise, random_state=seed)
    n_train = round(n_obs * train_share)
    return _split(X, y, slice(0, n_train), slice(n_train, None), scaling=scaling)


def rotated_moons(*, seed, n_groups=18, n_train=50, n_test=50, noise=0.3, scaling="train"):
    """Rotated moons: one binary task per category, all alike but for an angle.

    Parameters
    ----------
    seed : int; every seed is another data set
    n_groups, n_train, n_test : int
    noise : float, as in `flat_moons`
    scaling : as in `flat_moons`, by category

    Returns
    -------
    Moons
        With angles drawn uniformly from the full circle.

    Examples
    --------
    >>> from bookkit import data
    >>> moons = data.rotated_moons(seed=1)
    >>> moons.X_train.shape, moons.X_test.shape
    ((18, 50, 2), (18, 50, 2))
    >>> moons.angle[:3].round(1)  # degrees
    array([145.3, 334.8,  95.5])
    """
    check_seed(seed)
    for name, value in {"n_groups": n_groups, "n_train": n_train, "n_test": n_test}.items():
        check_count(value, name)
    tasks = []
    for child in np.random.SeedSequence(seed).spawn(n_groups):
        points, angle = child.generate_state(2)
        X, y = make_moons(n_samples=n_train + n_test, noise=noise, random_state=int(points))
        angle = np.random.default_rng(angle).uniform(0, 360)
        tasks.append(_split(X, y, slice(0, n_train), slice(n_train, None), scaling=scaling, angle=angle))
    return stack(tasks)


def legacy_rotated_moons(*, scaling="all"):
    """The articles' 18 rotated moons, to rounding: NumPy's old generator with seed 31, scaled before the split.

    Parameters
    ----------
    scaling : "all" is what the articles do; "train" and "none" keep the very same points and angles

    Source: T. Wiecki, "Hierarchical Bayesian Neural Networks with Informative Priors" (2018).

    Examples
    --------
    >>> from bookkit import data
    >>> moons = data.legacy_rotated_moons()
    >>> moons.X_train.shape
    (18, 50, 2)
    >>> moons.angle[:3].round(1)  # degrees
    array([184.6,  57.8, 127.8])
    """
    old = np.random.RandomState(31)
    tasks = []
    for _ in range(18):
        X, y = make_moons(n_samples=100, noise=0.3, random_state=old)
        angle = old.randn() * 90.0
        tasks.append(_split(X, y, slice(0, 50), slice(50, None), scaling=scaling, angle=angle))
    return stack(tasks)


def stack(tasks):
    """Flat data sets of one shape as one grouped data set.

    Examples
    --------
    >>> from bookkit import data
    >>> tasks = [data.flat_moons(seed=seed, n_obs=20) for seed in (1, 2, 3)]
    >>> data.stack(tasks).X_train.shape
    (3, 10, 2)
    """
    return Moons(*(np.stack(values) for values in zip(*(vars(task).values() for task in tasks), strict=True)))


def _log_densities(X, noise, n_arc):
    """Log density of class 0 and class 1 at unscaled, unrotated points; does not underflow far from the moons."""
    if not noise > 0:
        raise ValueError(f"noise={noise}; wanted: above 0")
    if n_arc is None:
        node, weight = np.polynomial.legendre.leggauss(400)
        t, weight = np.pi / 2 * (node + 1), weight / 2
    else:
        check_count(n_arc, "n_arc")
        t, weight = np.linspace(0, np.pi, n_arc), np.full(n_arc, 1 / n_arc)
    arcs = np.array([[np.cos(t), np.sin(t)], [1 - np.cos(t), 0.5 - np.sin(t)]])
    out = np.empty((2, *np.shape(X)[:-1]))
    for c, arc in enumerate(arcs):
        nearest = np.full(out[c].shape, np.inf)
        for a, b in arc.T:
            nearest = np.minimum(nearest, (X[..., 0] - a) ** 2 + (X[..., 1] - b) ** 2)
        blurred = np.zeros(out[c].shape)
        for w, a, b in zip(weight, *arc, strict=True):
            blurred += w * np.exp((nearest - (X[..., 0] - a) ** 2 - (X[..., 1] - b) ** 2) / (2 * noise**2))
        out[c] = np.log(blurred) - nearest / (2 * noise**2)
    return out - np.log(2 * np.pi * noise**2)


def class_densities(X, noise, n_arc=None):
    """Density of each class at unscaled, unrotated points.

    Each moon is a half circle of radius 1, blurred by a normal distribution, so its density is an integral over
    the half circle; Gauss-Legendre quadrature does it. `make_moons` takes evenly spaced angles, tips included, which
    for few points is not quite the same: `n_arc` gives their number.

    Parameters
    ----------
    X : (..., 2)
    noise : float > 0
    n_arc : int, points of `make_moons` to a moon (50 for the 18 categories); default the integral, their limit

    Returns
    -------
    (2, ...) array
        Density of class 0 and of class 1.

    Examples
    --------
    Of two points, the first on the arc of class 0, the second on that of class 1:

    >>> import numpy as np
    >>> from bookkit import data
    >>> data.class_densities(np.array([[0.0, 1.0], [1.0, -0.5]]), noise=0.2).round(2)
    array([[0.64, 0.  ],
           [0.  , 0.64]])
    """
    return np.exp(_log_densities(X, noise, n_arc))


def bayes_scores(noise, n_arc=None, n_grid=400):
    """What the best possible classifier reaches, who knows the two densities.

    Parameters
    ----------
    noise : float > 0, as in `flat_moons`
    n_arc : as in `class_densities`
    n_grid : int, points per axis of the integration grid

    Returns
    -------
    dict
        "accuracy" (a share), "lpd" (nats per point) and "brier". Rotating or scaling a category changes none.

    Raises
    ------
    ValueError
        For a grid whose points lie farther apart than the noise, which would miss the densities.

    Examples
    --------
    >>> from bookkit import data
    >>> best = data.bayes_scores(noise=0.3)
    >>> {name: round(value, 3) for name, value in best.items()}
    {'accuracy': 0.915, 'lpd': -0.21, 'brier': 0.063}
    """
    check_count(n_grid, "n_grid", least=2)
    x0 = np.linspace(-1 - 6 * noise, 2 + 6 * noise, n_grid)
    x1 = np.linspace(-0.5 - 6 * noise, 1 + 6 * noise, n_grid)
    if 0 < noise < x0[1] - x0[0]:
        step = f"n_grid={n_grid} puts points {x0[1] - x0[0]:.2g} apart"
        raise ValueError(f"{step}; wanted: at most the noise, {noise}")
    X = np.stack(np.meshgrid(x0, x1), axis=-1)
    joint = class_densities(X, noise, n_arc) / 2
    total = joint.sum(axis=0)
    p = joint[1] / np.maximum(total, 1e-300)
    cell = (x0[1] - x0[0]) * (x1[1] - x1[0])

    def mean(value):
        return float((value * total).sum() * cell)

    entropy = -(p * np.log(np.maximum(p, 1e-300)) + (1 - p) * np.log(np.maximum(1 - p, 1e-300)))
    return {"accuracy": mean(np.maximum(p, 1 - p)), "lpd": -mean(entropy), "brier": mean(p * (1 - p))}


def bayes_probability(X, data, noise, g=None, n_arc=None):
    """P(y = 1) at scaled, rotated points, from the truth.

    Parameters
    ----------
    X : (obs, 2), in the coordinates of `data`
    data : Moons
    noise : float > 0
    g : category, where `data` has several
    n_arc : as in `class_densities`

    Returns
    -------
    (obs,) array

    Examples
    --------
    >>> from bookkit import data
    >>> moons = data.flat_moons(seed=0, noise=0.2)
    >>> p = data.bayes_probability(moons.X_test, moons, noise=0.2)
    >>> p.shape
    (500,)
    >>> round(100 * float(((p > 0.5) == moons.y_test).mean()), 1)  # % right
    96.8
    """
    task = data if g is None else data.group(g)
    if np.ndim(task.angle) > 0:
        raise ValueError(f"g={g} and data has {len(task.angle)} categories; wanted: one of them")
    raw = rotate(X, -task.angle) * task.width + task.center
    log0, log1 = _log_densities(raw, noise, n_arc)
    return 1 / (1 + np.exp(np.clip(log0 - log1, -700, 700)))


def grid(n=60, extent=EXTENT):
    """A square grid of n x n points, first feature running fastest. Shape (n * n, 2).

    Examples
    --------
    >>> from bookkit import data
    >>> data.grid(2, extent=1.0)
    array([[-1., -1.],
           [ 1., -1.],
           [-1.,  1.],
           [ 1.,  1.]])
    """
    axis = np.linspace(-extent, extent, n)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def circle(radius, n=72):
    """Points on a circle around the centre, `radius` in scaled units. Shape (n, 2).

    Examples
    --------
    >>> import numpy as np
    >>> from bookkit import data
    >>> points = data.circle(2.0, n=4)
    >>> np.linalg.norm(points, axis=1)
    array([2., 2., 2., 2.])
    """
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])
