"""What a student reads: a right answer passes, a wrong one is told what is wrong, and nothing ends in another error."""

import numpy as np
import pytest
from teach.grading import expect_equal, expect_numbers, expect_parts, expect_within, keep, restore, with_either


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


def test_a_test_gets_its_data_and_checks_back_and_leaves_other_names_alone():
    space = {"X": np.zeros(2), "y": 1}
    keep(space)
    space["X"][0] = 5
    space |= {"y": "scratch", "own": 3, "expect_equal": None}
    restore(space, ["X", "own"])
    assert space["X"].tolist() == [0, 0]
    assert (space["y"], space["own"]) == ("scratch", 3)
    assert space["expect_equal"].__name__ == "expect_equal"


def test_what_an_answer_did_to_a_module_or_to_a_builtin_is_undone():
    space = {"np": np, "pm": len}
    keep(space)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "abs", np.zeros_like)
        expect_equal(1, 2, "nothing is seen")
        space |= {"np": None, "sum": 0, "max": np.max}
        keep(space)  # a later locked cell
        restore(space, ["np", "sum", "max"])
        assert (space["np"], space["max"]) == (np, np.max)
        assert "sum" not in space
        with pytest.raises(AssertionError):
            expect_equal(1, 2, "seen")


@pytest.mark.parametrize(("own", "passes"), [(1, True), (2, True), (3, False)])
def test_a_part_passes_with_the_students_own_function_or_with_the_right_one(own, passes):
    space = {"f": lambda: own}

    def check():
        assert space["f"]() == 1 or own == 2, f"{space['f']()}"
        assert own < 3, f"f is {space['f']()} and the part is wrong"

    run = with_either(check, space, f=lambda: 1)
    if passes:
        run()
    else:
        with pytest.raises(AssertionError, match="f is 1 and the part is wrong"):
            run()


@pytest.mark.parametrize("found", [None, 2.0, "ab", np.ones(3), (1, 2, 3), np.array(2.0), {}])
def test_two_things_may_differ_in_shape_and_what_is_not_two_things_is_told_so(found):
    for two in ((np.ones(3), 2.0), [np.ones(3), 2.0]):
        mean, ess = expect_parts(two, 2, "The mean and the ESS")
        assert (mean.shape, ess) == ((3,), 2.0)
    with pytest.raises(AssertionError, match=r"^The mean and the ESS\. Yours is .*; wanted: 2 things$"):
        expect_parts(found, 2, "The mean and the ESS")
