"""Checks of arguments that many functions share: each raises ValueError with what came and what is wanted."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbnn._types import Array, Floats


def check_data(X: ArrayLike, y: ArrayLike, *, name: str = "y") -> tuple[Floats, NDArray[np.int32]]:
    """Check features and labels, and return them as float64 and int32 arrays.

    Parameters
    ----------
    X : array_like of float, shape (obs, feature) or (group, obs, feature)
    y : array_like of 0 and 1, shape (obs,) or (group, obs)
    name : str
        What to call `y` in a message.

    Examples
    --------
    >>> from hbnn import _checks
    >>> X, y = _checks.check_data([[0.0, 1.0], [2.0, 3.0]], [0, 1])
    >>> X.dtype, y.dtype
    (dtype('float64'), dtype('int32'))
    >>> _checks.check_data([[0.0, 1.0], [2.0, 3.0]], [1, 2])
    Traceback (most recent call last):
        ...
    ValueError: y holds the labels [2]; wanted: the numbers 0 and 1 only
    """
    X, y = _to_array(X, "X", dtype=float), _to_array(y, name)
    if X.ndim not in (2, 3):
        raise ValueError(f"X has shape {X.shape}; wanted: (obs, feature) or (group, obs, feature)")
    if y.shape != X.shape[:-1]:
        raise ValueError(f"{name} has shape {y.shape}; wanted: one label for each point of X, {X.shape[:-1]}")
    if X.size == 0:
        raise ValueError(f"X has shape {X.shape}: an empty group; wanted: at least one point in each")
    if not np.isfinite(X).all():
        raise ValueError(f"X holds {np.sum(~np.isfinite(X))} values that are NaN or infinite; wanted: finite numbers")
    if y.dtype.kind not in "biuf" or not np.isin(y, (0, 1)).all():
        strange = [label for label in dict.fromkeys(y.ravel().tolist()) if label not in (0, 1)][:5]
        raise ValueError(f"{name} holds the labels {strange or y.dtype}; wanted: the numbers 0 and 1 only")
    return X, y.astype("int32")  # int8 labels fail under pm.Minibatch


def check_seed(seed: int) -> None:
    """Raise ValueError unless `seed` is an integer of at least 0: None would draw something else each time."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed={seed!r}; wanted: an integer of at least 0, so that every draw can be made again")


def check_count(value: int, name: str, least: int = 1) -> None:
    """Raise ValueError unless `value` is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r}; wanted: a whole number of at least {least}")


def refuse_masked(values: ArrayLike, name: str) -> None:
    """Raise ValueError for a masked array with anything masked: NumPy would drop the mask without a word."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has {np.ma.count_masked(values)} masked values; wanted: none, so drop or fill them")


def _to_array(values: ArrayLike, name: str, dtype: type | None = None) -> Array:
    refuse_masked(values, name)
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no array: {error}; wanted: numbers, all groups of one size") from None


def check_images(X: ArrayLike, n_pixels: int | None, *, name: str = "X") -> Floats:
    """Check images (obs, pixel) or (obs, rows, columns) with values from 0 to 1, and return them as (obs, pixel).

    Parameters
    ----------
    X : array_like of float, shape (obs, pixel) or (obs, rows, columns)
    n_pixels : int or None
        Pixels of one image; None for any number.
    name : str
        What to call `X` in a message.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn import _checks
    >>> _checks.check_images(np.full((2, 8, 8), 0.5), 64).shape
    (2, 64)
    >>> _checks.check_images(np.zeros((0, 64)), 64)
    Traceback (most recent call last):
        ...
    ValueError: X is an empty batch, shape (0, 64); wanted: at least one image
    """
    refuse_masked(X, name)
    try:
        X = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no array of images: {error}; wanted: numbers, (obs, pixel)") from None
    if X.ndim == 3:
        X = X.reshape(len(X), X.shape[1] * X.shape[2])
    if X.ndim != 2:
        raise ValueError(f"{name} has shape {X.shape}; wanted: (obs, pixel); a single image is {name}[None]")
    if len(X) == 0:
        raise ValueError(f"{name} is an empty batch, shape {X.shape}; wanted: at least one image")
    if X.shape[1] == 0:
        raise ValueError(f"{name} has shape {X.shape}; wanted: (obs, pixel), at least one pixel")
    if n_pixels is not None and X.shape[1] != n_pixels:
        side = round(n_pixels**0.5)
        square = f", {side} x {side}" if side**2 == n_pixels else ""
        raise ValueError(f"{name} has images of {X.shape[1]} pixels; wanted: {n_pixels}{square}")
    if np.isnan(X).any():
        raise ValueError(f"{name} holds {np.isnan(X).sum()} values that are NaN; wanted: numbers from 0 to 1")
    if X.min() < 0 or X.max() > 1:
        raise ValueError(
            f"{name} runs from {X.min():g} to {X.max():g}; wanted: 0 (paper) to 1 (ink), so divide grey levels by 16 "
            "(scikit-learn's digits) or 255 (MNIST)"
        )
    return X


def check_classes(y: ArrayLike, n_obs: int, *, n_classes: int = 10, name: str = "y") -> NDArray[np.int32]:
    """Check class labels 0, 1, …, n_classes - 1, one for each of `n_obs` images, and return them as an int32 array.

    Examples
    --------
    >>> from hbnn import _checks
    >>> _checks.check_classes([3, 1], 2)
    array([3, 1], dtype=int32)
    >>> _checks.check_classes([3, 10], 2)
    Traceback (most recent call last):
        ...
    ValueError: y holds the labels [10]; wanted: the numbers 0 to 9
    """
    refuse_masked(y, name)
    y = np.asarray(y)
    if y.shape != (n_obs,):
        raise ValueError(f"{name} has shape {y.shape}; wanted: one label for each of {n_obs} images")
    known = y.dtype.kind in "iuf" and np.isin(y, np.arange(n_classes)).all()
    if not known:
        strange = [label for label in dict.fromkeys(y.tolist()) if label not in set(range(n_classes))][:5]
        raise ValueError(f"{name} holds the labels {strange or y.dtype}; wanted: the numbers 0 to {n_classes - 1}")
    return y.astype("int32")


def check_probabilities(p: ArrayLike, name: str, *, of_classes: bool = False) -> Floats:
    refuse_masked(p, name)
    p = np.asarray(p, dtype=float)
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"{name} holds values outside [0, 1] or NaN; wanted: probabilities")
    if of_classes and p.size > 0 and np.abs(p.sum(axis=-1) - 1).max() > 1e-6:
        raise ValueError(f"{name} holds rows that do not add up to 1; wanted: probabilities of all classes")
    return p
