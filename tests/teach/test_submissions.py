"""What a lecturer is told of what was handed in: each trouble in a sentence, and nothing of an honest notebook."""

import shutil

import nbformat
import pytest
from tools import assignments, submissions

NAME = "a3-pooling"


@pytest.fixture
def course(tmp_path):
    """A course folder with one release and one honest submission, half done."""
    release = tmp_path / "release" / NAME / f"{NAME}.ipynb"
    release.parent.mkdir(parents=True)
    shutil.copy(assignments.RELEASE / NAME / release.name, release)
    hand_in(tmp_path, "ada", shrink="def shrink(x, s, mu, tau):\n    # open question: os, sys?\n    return x, s\n")
    return tmp_path


def hand_in(course, student, *, name=f"{NAME}.ipynb", change=lambda notebook: None, **answers):
    notebook = nbformat.read(course / "release" / NAME / f"{NAME}.ipynb", as_version=4)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    change(notebook)
    folder = course / "submitted" / student / NAME
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / name)


def drop(*ids):
    return lambda notebook: notebook.update(cells=[cell for cell in notebook.cells if cell.id not in ids])


def strip(notebook):
    for cell in notebook.cells:
        cell.metadata = {}


def move(notebook):
    notebook.cells.append(notebook.cells.pop(2))


def tag(notebook):
    next(cell for cell in notebook.cells if cell.id == "combine-test").metadata["tags"] = ["skip-execution"]


def test_an_honest_notebook_is_not_spoken_of(course, capsys):
    assert submissions.main([str(course)]) == 0
    assert "Nothing to report" in capsys.readouterr().out


@pytest.mark.parametrize("name", assignments.list_names())
def test_the_solutions_are_not_spoken_of(name):
    cells = assignments.read_source(name).cells
    release = nbformat.read(assignments.RELEASE / name / f"{name}.ipynb", as_version=4)
    submitted = nbformat.v4.new_notebook(cells=cells)
    assert submissions.find_faults(submitted, release) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"name": f"{NAME} (1).ipynb"}, f"'{NAME} (1).ipynb' is not called {NAME}.ipynb, and is not graded"),
        ({"change": strip}, "no cell has nbgrader's metadata"),
        ({"change": drop("grid-test")}, "cells are missing: grid-test"),
        ({"change": move}, "in another order"),
        ({"combine": "expect_equal = lambda *_: None"}, "'combine': it speaks of expect_equal"),
        ({"combine": "f.__code__ = g.__code__"}, "it speaks of __code__"),
        ({"combine": "exec(open('../../../source/x').read())"}, "it speaks of exec, open"),
        ({"combine": "from teach import grading"}, "it speaks of grading"),
        ({"combine": "for np.abs in [np.zeros_like]:\n    pass"}, "it speaks of np.abs = …"),
        ({"combine": "from operator import neg as abs"}, "it speaks of abs = …"),
        ({"combine": "update_wrapper(np, F, assigned=('abs',))"}, "it speaks of update_wrapper"),
        ({"combine": "del norm.pdf"}, "it speaks of norm.pdf = …"),
        ({"combine": "from sys import modules"}, "it speaks of from sys"),
        ({"combine": "class Odd(str):\n    __eq__ = print"}, "it speaks of __eq__"),
        ({"combine": "!sqlite3 ../../../gradebook.db"}, "it speaks of !"),
        ({"change": tag}, "cells have tags, unlike the release: combine-test"),
    ],
)
def test_a_trouble_is_told_with_the_students_name(course, how, said):
    hand_in(course, "bob", **how)
    lines = submissions.list_lines(course, NAME)
    assert [line for line in lines if line.startswith("bob: ") and said in line], lines
    assert not [line for line in lines if line.startswith("ada")]


def test_a_loop_without_an_end_and_a_notebook_that_was_not_graded_are_told_after_grading(course):
    hand_in(course, "bob")
    graded = nbformat.read(course / "submitted" / "ada" / NAME / f"{NAME}.ipynb", as_version=4)
    (cell,) = [cell for cell in graded.cells if cell.id == "shrink-test"]
    cell.outputs = [nbformat.v4.new_output("error", ename="CellTimeoutError", evalue="", traceback=[])]
    folder = course / "autograded" / "ada" / NAME
    folder.mkdir(parents=True)
    nbformat.write(graded, folder / f"{NAME}.ipynb")
    assert submissions.list_lines(course, NAME) == [
        "ada: shrink-test ran into the time limit and counts 0: a loop without an end?",
        "bob: is not graded: look at what nbgrader autograde said, and run it again.",
    ]
