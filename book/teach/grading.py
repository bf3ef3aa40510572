"""What the tests of the assignments say: equal up to rounding, or within four errors, or what is wrong instead.

Locked cells have their code in functions with the decorator `locked`, which a notebook calls ``__locked__``: they meet
what the first cells gave, and nothing of a student's but the answers that are their parameters. In grading a hidden
first line of each test takes the decorator from a fresh copy of this file (tools.assignments).
"""

import builtins
import copy
import os
import sys
import warnings
import zlib
from types import FunctionType, ModuleType

import numpy as np

N_ERRORS = 4  # a right answer fails by chance in 1 of 16,000 comparisons


def begin(draws):
    """Send to the page what would go to stderr, which nbgrader takes for a failure: warnings, progress bars.

    Parameters
    ----------
    draws : int, of the notebook's long cells

    Returns
    -------
    int, the draws, or BNN_GRADING_DRAWS where the environment has it

    Examples
    --------
    >>> import warnings
    >>> from contextlib import redirect_stderr
    >>> from teach import grading
    >>> with redirect_stderr(None), warnings.catch_warnings():
    ...     grading.begin(1000)
    1000
    """
    warnings.simplefilter("ignore")
    sys.stderr = sys.stdout
    return int(os.environ.get("BNN_GRADING_DRAWS", draws))


def keep(space):
    """Remember what a notebook holds before the first answer, and what is in its modules and in Python's own.

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
    given = {name: _copy(value) for name, value in space.items() if name[0] != "_" and name not in ("In", "Out")}
    things = [v for v in given.values() if hasattr(v, "__dict__") and not isinstance(v, FunctionType | type)]
    modules = [builtins, *(thing for thing in things if isinstance(thing, ModuleType))]
    things += [v for module in modules for v in (module, *vars(module).values()) if isinstance(v, ModuleType)]
    space["__held__"] = [_hold(thing) for thing in {id(thing): thing for thing in things}.values()]
    space["__given__"], space["__locked__"] = given, locked


def locked(function):
    """Run a locked cell's function, as a decorator does, in a namespace of its own.

    Its parameters are a student's answers. An answer runs in its notebook, on copies of what it is given, and what it
    does to modules or to Python's own functions is undone when it returns. Where an answer fails and the notebook has
    right versions of earlier parts under ``__right__``, it is tried once more with these.

    Parameters
    ----------
    function : function that returns None, or a dict of what the notebook is given from now on

    Returns
    -------
    what the notebook had under the function's name

    Examples
    --------
    >>> from teach import grading
    >>> space = {"X": 5}
    >>> grading.keep(space)
    >>> exec("X, double = None, lambda x: 2 * x", space)  # a student's
    >>> exec("@__locked__\\ndef test(double): print(double(X))", space)
    10
    """
    space, right = function.__globals__, {}
    try:
        made = _run(function, space)
    except Exception:
        if not space.get("__right__"):
            raise
        own = _open(space)
        exec(space["__right__"], own, right)
        own |= right
        before = {name: space.get(name) for name in right}
        space |= right
        try:
            made = _run(function, space)
        finally:
            space |= before
    if made:
        space["__given__"] = space["__given__"] | _copy(made)
        space |= made
    return space.get(function.__name__)


def _run(function, space):
    _put_back(space["__held__"])
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    answers = [_guard(space.get(name), name, space["__held__"]) for name in names]
    return FunctionType(function.__code__, _open(space), function.__name__)(*answers)


def _open(space):
    """A new namespace: what was given, the checks of this file, and Python's own."""
    own = {name: _copy(value) for name, value in space["__given__"].items()}
    own |= {name: check for name, check in globals().items() if name.startswith("expect_")}
    for name, value in own.items():
        if isinstance(value, FunctionType) and value.__module__ == "__main__":  # a locked cell's
            own[name] = FunctionType(value.__code__, own, name, value.__defaults__, value.__closure__)
            own[name].__kwdefaults__ = value.__kwdefaults__
    own["__builtins__"] = vars(builtins).copy()
    return own


def _guard(answer, name, held):
    """A student's function as a test calls it; its attribute `given` is what the last call left of its arguments."""
    if not callable(answer):
        raise AssertionError(f"There is no function {name}. Run the cell that defines it")

    def call(*given, **named):
        call.given = _copy(list(given))
        try:
            return answer(*call.given, **_copy(named))
        finally:
            _put_back(held)

    return call


def _hold(thing):
    """A module or an object, what stays as it is in it, and the names that would hide what is behind it."""
    behind = builtins if isinstance(thing, ModuleType) else type(thing)
    fixed = {name: v for name, v in vars(thing).items() if callable(v) or isinstance(v, float | ModuleType)}
    return thing, fixed, {name for name in dir(behind) if callable(getattr(behind, name, None))} - vars(thing).keys()


def _put_back(held):
    for thing, fixed, free in held:
        for name in vars(thing).keys() & free:
            delattr(thing, name)
        vars(thing).update(fixed)


def _copy(value):
    return copy.deepcopy(value) if isinstance(value, np.ndarray | list | dict) else value


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


def expect_seeded(draw):
    """Pass where the seed, and nothing else, decides what is drawn.

    Parameters
    ----------
    draw : callable of a seed, which returns numbers that were drawn

    Raises
    ------
    AssertionError
        Where seed 1 gives other numbers the second time, or seed 2 the same.

    Examples
    --------
    >>> import numpy as np
    >>> from teach import grading
    >>> grading.expect_seeded(lambda seed: np.random.default_rng(seed).normal(size=3))
    >>> grading.expect_seeded(lambda seed: np.random.default_rng().normal(size=3))
    Traceback (most recent call last):
        ...
    AssertionError: Seed 1 gives other numbers the second time: does the seed reach the generator?
    """
    first, again, other = map(draw, (1, 1, 2))
    for wrong, said in (
        (not np.array_equal(first, again), "Seed 1 gives other numbers the second time"),
        (np.array_equal(first, other), "Seeds 1 and 2 give the same numbers"),
    ):
        if wrong:
            raise AssertionError(f"{said}: does the seed reach the generator?")


def expect_choice(found, key, hint):
    """Pass where `found` is the right letter.

    Parameters
    ----------
    found : what a student's function returned
    key : str, ``format(zlib.crc32(f"{hint} {letter}".encode()), "x")``, so that a glance at a test gives nothing away
    hint : str, what to think of

    Raises
    ------
    AssertionError
        With the hint, for another letter; for what is no letter, with what is wanted.

    Examples
    --------
    >>> from teach import grading
    >>> grading.expect_choice("a", "ac094fb", "Count the heads")
    >>> grading.expect_choice("b", "ac094fb", "Count the heads")
    Traceback (most recent call last):
        ...
    AssertionError: Not 'b'. Count the heads.
    """
    letter = found.strip().lower() if isinstance(found, str) else ""
    if len(letter) != 1 or letter not in "abcd":
        raise AssertionError(f"Yours is {found!r:.80}; wanted: a letter in quotes, such as 'a'")
    if format(zlib.crc32(f"{hint} {letter}".encode()), "x") != key:
        raise AssertionError(f"Not {letter!r}. {_end(hint)}")


def _end(hint):
    """A hint as a sentence."""
    return hint if hint.endswith("?") else f"{hint}."
