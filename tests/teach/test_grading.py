"""What a student reads: a right answer passes, a wrong one is told what is wrong, and nothing ends in another error."""

import numpy as np
import pytest
from scipy import stats
from teach.grading import expect_choice, expect_equal, expect_numbers, expect_parts, expect_within, keep


@pytest.mark.parametrize("found", [[1, 2], (1.0, 2.0), np.array([1, 2]), np.array([1, 2 + 1e-9])])
def test_equal_up_to_rounding_passes_and_becomes_an_array_whatever_it_came_as(found):
    expect_equal(found, [1, 2], "Add them")
    numbers = expect_numbers(found, (2,), "Two numbers")
    assert (type(numbers), numbers.shape, numbers.dtype) == (np.ndarray, (2,), float)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([1, 5], r"Yours is 5 at index \(1,\); wanted: 2$"),
        ([1, 2.00002], "Yours is 2.00002 at"),  # no rounding
        (None, "Yours is None: is there a return"),
        ([1, 2, 3], r"Yours has shape \(3,\); wanted: \(2,\)"),
        ([[1], [2, 3]], "wanted: numbers of shape"),
        ("one", "Yours is 'one'; wanted: numbers"),
        ([1, np.nan], r"Yours is nan at index \(1,\)"),
        ([np.inf, 2], "Yours is inf at index"),
    ],
)
def test_what_is_unequal_or_no_array_of_numbers_is_told_with_its_place_and_the_hint(found, said):
    with pytest.raises(AssertionError, match=rf"^Add them\. .*{said}"):
        expect_equal(found, [1, 2], "Add them")
    with pytest.raises(AssertionError, match=r"^Two\? Yours"):  # a hint that asks has no full stop after it
        expect_equal(found, [1, 2], "Two?")


def test_four_errors_are_allowed_and_five_are_not():
    expect_within(1.39, 1, 0.1, "The mean")
    with pytest.raises(AssertionError, match=r"The mean\. Yours is 1\.5; wanted: 1 ± 0\.1, within 4 errors"):
        expect_within(1.5, 1, 0.1, "The mean")
    with pytest.raises(AssertionError, match="Yours is nan"):
        expect_within(np.nan, 1, 0.1, "The mean")
    with pytest.raises(ValueError, match="wanted: a standard error above 0"):  # the test's own mistake
        expect_within(1, 1, 0, "The mean")


def test_right_answers_fail_as_seldom_as_four_errors_say():
    rng = np.random.default_rng(1)
    found = rng.normal(size=(2000, 50))
    for row in found:
        expect_within(row.mean(), 0, row.std(ddof=1) / np.sqrt(50), "The mean")


def run(space, source):
    """Run a cell in a notebook, as if its functions were the notebook's."""
    exec(source, space)


@pytest.fixture
def space():
    """A notebook with data, a locked function, and a student's answer."""
    space = {"__name__": "__main__", "np": np, "norm": stats.norm, "X": np.zeros(2)}
    run(space, "def double(x, *, by=2):\n    return by * np.add(x, X[0])")
    keep(space)
    run(space, "def answer(x):\n    x += 1\n    return helper(x)\nhelper = lambda x: x[0]")
    return space


def test_a_locked_cell_sees_what_was_given_and_the_answers_that_it_asks_for(space):
    space |= {"X": 5, "double": None, "np": None, "len": None, "own": 3, "expect_equal": None}
    run(space, "@__locked__\ndef test(answer):\n    expect_equal([len(X), double(4), answer(X)], [2, 8, 1], 'Wrong')")
    with pytest.raises(NameError, match="own"):
        run(space, "@__locked__\ndef test(): own")
    with pytest.raises(AssertionError, match=r"There is no function another\. Run the cell that defines it"):
        run(space, "@__locked__\ndef test(another): pass")


def test_a_locked_cell_leaves_a_students_names_and_data_alone(space):
    space |= {"test": "own", "X": "scratch"}
    before = dict(space)
    run(space, "@__locked__\ndef test(answer):\n    X[0] = answer(X)\n    helper = 3")
    assert space == before
    run(space, "@__locked__\ndef test(answer):\n    expect_equal(X, [0, 0], 'X')\n    return {'y': answer(X), 'X': X}")
    assert (space["y"], space["test"]) == (1, "own")
    run(space, "@__locked__\ndef test(): expect_equal(y, 1, 'y')")


@pytest.mark.parametrize(
    "cheat",
    [
        "np.abs = np.zeros_like",
        "np.sum = 3",
        "__builtins__['abs'] = len",
        "norm.pdf = np.zeros_like",
        "np.max = np.min",
        "import types, functools; functools.update_wrapper(np, types.SimpleNamespace(abs=len), ['abs'], [])",
    ],
)
def test_what_an_answer_did_to_modules_is_undone_before_and_after_a_call(space, cheat):
    check = "np.abs(-3), np.sum([1, 2]), abs(-1), norm.pdf(0), np.max([1, 2])"
    run(space, f"{cheat}\ndef answer():\n    {cheat}\n    raise ValueError")
    run(space, f"@__locked__\ndef test(answer):\n    expect_equal([{check}], [3, 3, 1, 0.3989422804, 2], 'before')")
    call = "try: answer()\n    except ValueError: pass\n"
    run(
        space,
        f"@__locked__\ndef test(answer):\n    {call}    expect_equal([{check}], [3, 3, 1, 0.3989422804, 2], 'after')",
    )


@pytest.mark.parametrize(("own", "passes"), [("x", True), ("2 * x", True), ("3 * x", False)])
def test_a_part_passes_with_the_students_own_function_or_with_the_right_one(space, own, passes):
    space["__right__"] = "def earlier(x):\n    return x + X[0]"
    run(space, f"def earlier(x): return {own}\ndef answer(x): return [earlier(x), {own.replace('x', '1')}]")
    student, test = space["earlier"], "found = answer(5)\n    assert found[0] < 8 and found[1] < 3, f'{found} is wrong'"
    if passes:
        run(space, f"@__locked__\ndef test(answer):\n    {test}")
    else:
        with pytest.raises(AssertionError, match=r"\[np.float64\(5.0\), 3\] is wrong"):
            run(space, f"@__locked__\ndef test(answer):\n    {test}")
    assert space["earlier"] is student


@pytest.mark.parametrize("found", [None, 2.0, "ab", np.ones(3), (1, 2, 3), np.array(2.0), {}])
def test_two_things_may_differ_in_shape_and_what_is_not_two_things_is_told_so(found):
    for two in ((np.ones(3), 2.0), [np.ones(3), 2.0]):
        mean, ess = expect_parts(two, 2, "The mean and the ESS")
        assert (mean.shape, ess) == ((3,), 2.0)
    with pytest.raises(AssertionError, match=r"^The mean and the ESS\. Yours is .*; wanted: 2 things$"):
        expect_parts(found, 2, "The mean and the ESS")


@pytest.mark.parametrize("found", ["e", "", "ab", 1, None, ["a"]])
def test_the_right_letter_passes_and_another_or_none_is_told_what_to_do(found):
    for right in ("a", " A "):
        expect_choice(right, "ac094fb", "Count the heads")
    with pytest.raises(AssertionError, match=r"^Not 'b'\. Count the heads\.$"):
        expect_choice("b", "ac094fb", "Count the heads")
    with pytest.raises(AssertionError, match="wanted: a letter in quotes, such as 'a'"):
        expect_choice(found, "ac094fb", "Count the heads")
