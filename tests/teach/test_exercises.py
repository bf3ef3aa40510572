"""Exercises as code, and self-check questions: what every chapter offers, and that checks refuse what is wrong."""

import ast
import json
import re
import tomllib
from pathlib import Path

import jupytext
import pytest
from book_front import list_core
from book_pages import BOOK, list_chapters

TITLE = re.compile(r"^:::+\{exercise\} ([^\n]+)")
CHAPTERS = [name for _, names in list_chapters() for name in names]
CORE = list_core()  # who learns is on these pages; what was found, and what is looked up, stands on the others
ANSWERS = tomllib.loads((Path(__file__).parent / "exercises.toml").read_text(encoding="utf8"))
QUESTION = re.compile(r"^::::\{admonition\} Check yourself\n:class: selfcheck\n(.*?)^::::$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(
    r"^:::\{admonition\} (\S+) ([^\n]+)\n:class: dropdown answer\n\n(.*?)^:::$", flags=re.DOTALL | re.MULTILINE
)


def read(chapter):
    return (BOOK / f"{chapter}.md").read_text(encoding="utf8")


def list_exercises(chapter):
    """Each exercise of a chapter with what follows it, up to the end of its solution."""
    text = read(chapter)
    starts = [match.start() for match in re.finditer(r"^:::+\{exercise\} ", text, flags=re.MULTILINE)]
    return [text[start : text.index("{solution-end}", start)] for start in starts]


WITH_EXERCISES = [chapter for chapter in CHAPTERS if list_exercises(chapter)]


def read_cells(markdown):
    """The code cells in a piece of a chapter: list of (source, tags)."""
    found = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", markdown, flags=re.DOTALL | re.MULTILINE)
    header = "---\njupytext:\n  text_representation:\n    extension: .md\n    format_name: myst\n---\n\n"
    cells = "".join(f"```{{code-cell}} ipython3\n{cell}```\n\n" for cell in found)
    notebook = jupytext.reads(header + cells, fmt="md:myst")
    return [(cell.source, cell.metadata.get("tags", [])) for cell in notebook.cells if cell.cell_type == "code"]


def read_stub(exercise):
    """What a reader fills in: its source, and its two functions, the one to write and its check."""
    source = "\n\n\n".join(source for source, tags in read_cells(exercise) if "exercise" in tags)
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    (stub,) = [node for node in functions if not node.name.startswith("check_")]
    (check,) = [node for node in functions if node.name.startswith("check_")]
    return source, stub, check


def run_imports(chapter):
    """The names that a chapter's imports and its seed define: dict."""
    lines = []
    for source, _ in read_cells(read(chapter)):
        for node in ast.parse(source).body:
            is_seed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SEED"
            if isinstance(node, ast.Import | ast.ImportFrom) or is_seed:
                lines.append(ast.unparse(node))
    space = {}
    exec("\n".join(lines), space)
    return space


@pytest.mark.parametrize("chapter", WITH_EXERCISES)
def test_a_solution_writes_the_stubs_function_and_its_check_said_right(chapter):
    cells = json.loads((BOOK / f"{chapter}.ipynb").read_text(encoding="utf8"))["cells"]
    stored = {"".join(cell["source"]): json.dumps(cell.get("outputs")) for cell in cells}
    for text in list_exercises(chapter):
        _, stub, check = read_stub(text)
        sources = [source for source, _ in read_cells(text[text.index("{solution-start}") :])]
        tree = ast.parse("\n".join(sources))
        (written,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == stub.name]
        assert ast.unparse(written.args) == ast.unparse(stub.args)
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "id")}
        assert {stub.name, check.name} <= called
        assert any("right" in stored[source] for source in sources if f"{check.name}(" in source), check.name


@pytest.mark.parametrize("chapter", WITH_EXERCISES)
def test_a_check_takes_another_right_answer_and_refuses_wrong_ones(chapter):
    space = run_imports(chapter)
    exec(ANSWERS[chapter].get("given", ""), space)  # for the check, too: what the page has made by then
    given, asked = space.copy(), {}
    for text in list_exercises(chapter):
        source, stub, check = read_stub(text)
        exec(source, space)
        asked[check.name] = space[check.name]
        required = len(stub.args.args) - len(stub.args.defaults)
        with pytest.raises(NotImplementedError, match=re.escape(TITLE.search(text)[1])):  # it says what is to be done
            space[stub.name](*[None] * required, **dict.fromkeys(arg.arg for arg in stub.args.kwonlyargs))
    assert asked.keys() == ANSWERS[chapter].keys() - {"given"}
    for name, check in asked.items():
        answers = {"no return": "None"} | ANSWERS[chapter][name]
        if "right" in answers:
            assert check(eval(answers.pop("right"), given)) == "right", name
        assert len(answers) >= 4
        for title, wrong in answers.items():
            with pytest.raises(AssertionError) as refused:
                pytest.fail(f"{name}, {title}: {check(eval(wrong, given))}")
            assert len(str(refused.value)) >= 20, f"{name}, {title}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_question_has_one_right_answer_and_feedback_on_each_wrong_one(chapter):
    questions = QUESTION.findall(read(chapter))
    assert (chapter in CORE) <= len(questions) <= 5
    for question in questions:
        options = OPTION.findall(question)
        assert len(options) >= 3
        assert sum(feedback.startswith("Right:") for _, _, feedback in options) == 1
        assert all(feedback.startswith(("Right:", "Not this:")) for _, _, feedback in options)
