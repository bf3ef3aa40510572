"""The wrong answers that are made from right ones: each differs in one place, has a name of its own, and is Python."""

import ast

import numpy as np
import pytest
from book_pages import BOOK
from exercised import EXPLAINED, list_changes
from mutants import list_mutants

SOURCE = '''
def measure(x, n=2):
    """The error of a mean."""
    return x.mean(), x.std(ddof=1) / np.sqrt(len(x))
'''


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("x.std(ddof=1) → x.std()", "x.std() / np.sqrt(len(x))"),
        ("np.sqrt(len(x)) → len(x)", "x.std(ddof=1) / len(x)"),
        ("x.std(ddof=1) / np.sqrt(len(x)) → x.std(ddof=1)", "return (x.mean(), x.std(ddof=1))"),
        ("1 → 0", "x.std(ddof=0)"),
        ("result 1 of 2 with the wrong sign", "-np.asarray(x.mean())"),
    ],
)
def test_a_tired_students_changes_are_among_them(title, text):
    assert text in list_mutants(SOURCE)[title]


def test_no_two_are_the_same_and_none_is_the_answer_itself():
    texts = [ast.unparse(ast.parse(SOURCE)), *list_mutants(SOURCE).values()]
    assert len(set(texts)) == len(texts)
    assert len(texts) > 20


def test_the_docstring_stays():
    assert all("The error of a mean." in text for text in list_mutants(SOURCE).values())


def test_changed_results_are_no_longer_the_result():
    right = {"a": np.arange(3.0), "b": np.arange(3.0) + 1}
    changed = list_changes(right)
    assert len(changed) > 20
    for value in changed.values():
        same = isinstance(value, dict) and value.keys() == right.keys()
        assert not same or any(not np.array_equal(value[key], right[key]) for key in right)


@pytest.mark.parametrize("exercise", EXPLAINED)
def test_what_is_explained_is_asked_by_a_chapter_and_has_a_reason(exercise):
    chapter, check = exercise.split(".")
    assert f"def {check}(" in (BOOK / f"{chapter}.md").read_text(encoding="utf8")
    assert all(EXPLAINED[exercise].values())
