"""What the tests of the assignments say: equal up to rounding, or within four errors, or what is wrong instead.

In grading a hidden first line of each test imports this module afresh and calls `restore` (tools.assignments).
"""

import builtins
from types import ModuleType

import numpy as np

N_ERRORS = 4  # a right answer fails by chance in 1 of 16,000 comparisons


def keep(space):
    """Remember what a locked cell gave to a notebook, whatever an answer calls its own variables later.

    Functions and modules stay as the first call had them, and so does what is in those modules and in Python's own.

    Parameters
    ----------
    space : dict, the notebook's globals()

    Examples
    --------
    >>> from teach import grading
    >>> space = {"X": [1, 2]}
    >>> grading.keep(space)
    >>> space["__given__"]
    {'X': [1, 2]}
    """
    given = {name: _copy(value) for name, value in space.items() if not name.startswith("_")}
    first = space.get("__given__", {})
    fixed = {name: value for name, value in first.items() if callable(value) or isinstance(value, ModuleType)}
    space["__given__"] = first | given | fixed
    modules = [builtins, *(value for value in given.values() if isinstance(value, ModuleType))]
    space.setdefault("__modules__", [(module, _public(module)) for module in modules])


def restore(space, names):
    """Put back what `keep` remembers under these names and in modules, and this module's own checks.

    Parameters
    ----------
    space : dict, the notebook's globals()
    names : list of str, what the test asks for

    Examples
    --------
    >>> from teach import grading
    >>> space = {"X": [1, 2]}
    >>> grading.keep(space)
    >>> space["X"] = "a student's own"
    >>> grading.restore(space, ["X"])
    >>> space["X"]
    [1, 2]
    """
    for module, public in space.get("__modules__", []):
        vars(module).update(public)  # np.abs = … in an answer
    given = space.get("__given__", {})
    space |= {name: _copy(given[name]) for name in names if name in given}
    space |= {name: check for name, check in globals().items() if name.startswith(("expect_", "with_"))}
    for name in names:
        if hasattr(builtins, name) and not callable(space.get(name, len)):
            del space[name]  # an answer's sum = 0; its own function by such a name may be what it needs


def _public(module):
    return {name: value for name, value in vars(module).items() if not name.startswith("_")}


def _copy(value):
    return value.copy() if isinstance(value, np.ndarray) else value


def with_either(check, space, **right):
    """The test `check`, passed with the student's own functions of earlier parts or with right ones in their place.

    Parameters
    ----------
    check : function without parameters
    space : dict, the notebook's globals()
    **right : functions, by the names that the student's have

    Returns
    -------
    function without parameters. What it raises comes from the second try.

    Examples
    --------
    A student's `double` that is wrong costs nothing in the next part:

    >>> from teach import grading
    >>> space = {"double": lambda x: x + 2}
    >>> def check():
    ...     assert space["double"](5) == 10
    >>> grading.with_either(check, space, double=lambda x: 2 * x)()
    >>> space["double"](5)
    10
    """

    def run():
        try:
            check()
        except Exception:
            space.update(right)
            check()

    return run


def expect_equal(found, wanted, hint):
    """Pass where `found` has the shape and, up to rounding, the values of `wanted`.

    Parameters
    ----------
    found : what a student's function returned, of any type
    wanted : number or array
    hint : str, what to look at

    Raises
    ------
    AssertionError
        With the hint, what came and what is wanted.

    Examples
    --------
    >>> from teach import grading
    >>> grading.expect_equal([1.0, 2.0], [1.0, 2.0], "the means")
    >>> grading.expect_equal([1.0, 2.5], [1.0, 2.0], "Look at the means")
    Traceback (most recent call last):
        ...
    AssertionError: Look at the means. Yours is 2.5 at index (1,); wanted: 2
    """
    found, wanted = expect_numbers(found, np.shape(wanted), hint), np.asarray(wanted, dtype=float)
    off = np.abs(found - wanted)
    if not (np.isfinite(found).all() and (off <= 1e-6 * np.maximum(1, np.abs(wanted))).all()):
        at = int(np.argmax(np.where(np.isfinite(off), off, np.inf)))
        place = f" at index {tuple(int(i) for i in np.unravel_index(at, wanted.shape))}" if wanted.ndim else ""
        raise AssertionError(f"{_end(hint)} Yours is {found.flat[at]:.6g}{place}; wanted: {wanted.flat[at]:.6g}")


def expect_within(found, wanted, error, hint):
    """Pass where the number `found` is within four errors of `wanted`.

    Parameters
    ----------
    found : what a student's function returned
    wanted : float
    error : float > 0, the Monte Carlo standard error of found - wanted, with what both drew
    hint : str, what to look at

    Raises
    ------
    AssertionError
        As `expect_equal`.
    ValueError
        For an error that is not above 0: nothing could be within it.

    Examples
    --------
    >>> from teach import grading
    >>> grading.expect_within(0.53, 0.5, error=0.01, hint="Look at the mean")
    >>> grading.expect_within(0.63, 0.5, error=0.01, hint="Look at the mean")
    Traceback (most recent call last):
        ...
    AssertionError: Look at the mean. Yours is 0.63; wanted: 0.5 ± 0.01, within 4 errors
    """
    if not error > 0:
        raise ValueError(f"error={error}; wanted: a standard error above 0")
    found = float(expect_numbers(found, (), hint))
    if not abs(found - wanted) <= N_ERRORS * error:
        near = f"{wanted:.4g} ± {error:.2g}, within {N_ERRORS} errors"
        raise AssertionError(f"{_end(hint)} Yours is {found:.4g}; wanted: {near}")


def expect_numbers(found, shape, hint):
    """What a student's function returned as an array of floats, whether it was an array, a list or a tuple.

    Parameters
    ----------
    found : of any type
    shape : tuple of int
    hint : str, what was to be returned

    Returns
    -------
    float array of that shape

    Raises
    ------
    AssertionError
        With the hint and what came instead, for what is no numbers, or numbers of another shape.

    Examples
    --------
    >>> from teach import grading
    >>> grading.expect_numbers([1, 2], (2,), "Two means")
    array([1., 2.])
    >>> grading.expect_numbers(None, (2,), "Two means")
    Traceback (most recent call last):
        ...
    AssertionError: Two means. Yours is None: is there a return?
    """
    if found is None:
        raise AssertionError(f"{_end(hint)} Yours is None: is there a return?")
    try:
        numbers = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        raise AssertionError(f"{_end(hint)} Yours is {found!r:.80}; wanted: numbers of shape {shape}") from None
    if numbers.shape != shape:
        raise AssertionError(f"{_end(hint)} Yours has shape {numbers.shape}; wanted: {shape}")
    return numbers


def expect_parts(found, n, hint):
    """What a student's function returned, where that is `n` things of their own shapes.

    Parameters
    ----------
    found : of any type
    n : int
    hint : str, what was to be returned

    Returns
    -------
    list of the n things

    Raises
    ------
    AssertionError
        With the hint and what came instead, for anything but a tuple, list or array of that length.

    Examples
    --------
    >>> from teach import grading
    >>> grading.expect_parts(("a", [1, 2]), 2, "A name and its numbers")
    ['a', [1, 2]]
    >>> grading.expect_parts("a", 2, "A name and its numbers")
    Traceback (most recent call last):
        ...
    AssertionError: A name and its numbers. Yours is 'a'; wanted: 2 things
    """
    a_row = isinstance(found, tuple | list) or (isinstance(found, np.ndarray) and found.ndim > 0)
    if not (a_row and len(found) == n):
        raise AssertionError(f"{_end(hint)} Yours is {found!r:.80}; wanted: {n} things")
    return list(found)


def _end(hint):
    """A hint as a sentence."""
    return hint if hint.endswith("?") else f"{hint}."
