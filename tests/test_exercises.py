"""Exercises as code, and self-check questions: what every chapter offers, and that checks refuse what is wrong."""

import ast
import importlib
import re

import jupytext
import pytest
from book_pages import BOOK, EXERCISE, TOPICS, list_chapters

EVIDENCE = dict(list_chapters())[
    "The evidence"
]  # what was found stands there; who learns from it is on the other pages
CHAPTERS = [name for _, names in list_chapters() for name in names]
QUESTION = re.compile(r"^::::\{admonition\} Check yourself\n:class: selfcheck\n(.*?)^::::$", re.DOTALL | re.MULTILINE)
OPTION = re.compile(
    r"^:::\{admonition\} (\S+) ([^\n]+)\n:class: dropdown answer\n\n(.*?)^:::$", flags=re.DOTALL | re.MULTILINE
)
HINT = re.compile(
    r"^:::\{admonition\} (First|Second) hint\n:class: dropdown hint\n(.+?)^:::$", flags=re.DOTALL | re.MULTILINE
)


def read(chapter):
    return (BOOK / f"{chapter}.md").read_text(encoding="utf8")


def list_exercises(chapter):
    """Each exercise of a chapter with what follows it, up to the end of its solution."""
    text = read(chapter)
    starts = [match.start() for match in re.finditer(r"^:::+\{exercise\} ", text, flags=re.MULTILINE)]
    return [text[start : text.index("{solution-end}", start)] for start in starts]


EXERCISES = [(chapter, n) for chapter in CHAPTERS for n in range(len(list_exercises(chapter)))]


def read_cells(markdown):
    """The code cells in a piece of a chapter: list of (source, tags)."""
    found = re.findall(r"^```\{code-cell\} ipython3\n(.*?)^```$", markdown, flags=re.DOTALL | re.MULTILINE)
    header = "---\njupytext:\n  text_representation:\n    extension: .md\n    format_name: myst\n---\n\n"
    cells = "".join(f"```{{code-cell}} ipython3\n{cell}```\n\n" for cell in found)
    notebook = jupytext.reads(header + cells, fmt="md:myst")
    return [(cell.source, cell.metadata.get("tags", [])) for cell in notebook.cells if cell.cell_type == "code"]


def find_stub(chapter, n):
    """The cell of an exercise that a reader fills in, and its two functions: the one to write and its check."""
    source = "\n\n\n".join(source for source, tags in read_cells(list_exercises(chapter)[n]) if "exercise" in tags)
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    (stub,) = [node for node in functions if not node.name.startswith("check_")]
    (check,) = [node for node in functions if node.name.startswith("check_")]
    return source, stub, check


@pytest.fixture(scope="module")
def imports():
    """Per chapter, the names that its imports and the seed define."""
    known = {}

    def run(chapter):
        if chapter not in known:
            lines = []
            for source, _ in read_cells(read(chapter)):
                for node in ast.parse(source).body:
                    is_seed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SEED"
                    if isinstance(node, ast.Import | ast.ImportFrom) or is_seed:
                        lines.append(ast.unparse(node))
            known[chapter] = {}
            exec("\n".join(lines), known[chapter])
        return dict(known[chapter])

    return run


@pytest.mark.parametrize(("chapter", "n"), EXERCISES)
def test_an_exercise_has_a_level_a_topic_and_two_hints(chapter, n):
    text = list_exercises(chapter)[n]
    exercise = EXERCISE.search(text)
    assert exercise is not None, f"no line 'Level 1 of 3 · Topic: data' in {text[:60]}"
    assert exercise["topic"] in TOPICS
    assert [name for name, _ in HINT.findall(text)] == ["First", "Second"]


@pytest.mark.parametrize("chapter", [name for name in CHAPTERS if name not in EVIDENCE])
def test_three_exercises_go_from_easy_to_open_ended(chapter):
    levels = [int(EXERCISE.search(text)["level"]) for text in list_exercises(chapter)]
    assert levels == [1, 2, 3]


@pytest.mark.parametrize("chapter", EVIDENCE)
def test_exercises_among_the_evidence_go_from_easy_to_open_ended(chapter):
    levels = [int(EXERCISE.search(text)["level"]) for text in list_exercises(chapter)]
    assert levels == sorted(levels)


@pytest.mark.parametrize(("chapter", "n"), EXERCISES)
def test_a_stub_says_what_to_do_first(chapter, n, imports):
    source, stub, _ = find_stub(chapter, n)
    title = EXERCISE.search(list_exercises(chapter)[n])["title"]
    space = imports(chapter)
    exec(source, space)
    assert space[stub.name].__doc__
    required = len(stub.args.args) - len(stub.args.defaults)
    keywords = {arg.arg: None for arg in stub.args.kwonlyargs}
    with pytest.raises(NotImplementedError) as caught:
        space[stub.name](*[None] * required, **keywords)
    assert str(caught.value).startswith(title)
    assert len(str(caught.value)) > len(title) + 25


@pytest.mark.parametrize(("chapter", "n"), EXERCISES)
def test_a_solution_writes_the_stubs_function_and_asks_its_check(chapter, n):
    """That the check says "right" is in the chapter's stored output, which nbval compares."""
    _, stub, check = find_stub(chapter, n)
    text = list_exercises(chapter)[n]
    solution = "\n".join(source for source, _ in read_cells(text[text.index("{solution-start}") :]))
    tree = ast.parse(solution)
    (written,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == stub.name]
    assert ast.unparse(written.args) == ast.unparse(stub.args)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert {stub.name, check.name} <= called


@pytest.mark.parametrize(("chapter", "n"), EXERCISES)
def test_a_check_refuses_typical_wrong_answers_in_words_that_help(chapter, n, imports):
    source, _, check = find_stub(chapter, n)
    space = imports(chapter)
    exec(source, space)
    wrong = importlib.import_module(f"wrong_answers.{chapter}").WRONG[check.name]
    assert len(wrong) >= 3
    for make in wrong:
        with pytest.raises(AssertionError) as caught:
            space[check.name](make())
        assert len(str(caught.value)) >= 20


ALSO_RIGHT = {chapter: getattr(importlib.import_module(f"wrong_answers.{chapter}"), "ALSO_RIGHT", {})
              for chapter, _ in EXERCISES}  # fmt: skip


def test_right_answers_belong_to_a_check_of_their_chapter():
    names = {(chapter, find_stub(chapter, n)[2].name) for chapter, n in EXERCISES}
    assert {(chapter, name) for chapter, answers in ALSO_RIGHT.items() for name in answers} <= names


@pytest.mark.parametrize(("chapter", "n"), [(c, n) for c, n in EXERCISES if find_stub(c, n)[2].name in ALSO_RIGHT[c]])
def test_a_check_takes_right_answers_that_are_written_differently(chapter, n, imports):
    source, _, check = find_stub(chapter, n)
    space = imports(chapter)
    exec(source, space)
    for make in ALSO_RIGHT[chapter][check.name]:
        assert space[check.name](make()) == "right"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_question_has_one_right_answer_and_feedback_on_each_wrong_one(chapter):
    questions = QUESTION.findall(read(chapter))
    assert (chapter not in EVIDENCE) <= len(questions) <= 5
    for question in questions:
        options = OPTION.findall(question)
        assert [letter for letter, _, _ in options] == ["A.", "B.", "C.", "D."][: len(options)]
        assert len(options) >= 3
        assert sum(feedback.startswith("Right:") for _, _, feedback in options) == 1
        assert all(feedback.startswith(("Right:", "Not this:")) and len(feedback) > 40 for _, _, feedback in options)


@pytest.mark.parametrize(("part", "chapters"), list_chapters())
def test_the_right_letter_is_not_always_the_same(part, chapters):
    right = [
        letter
        for chapter in chapters
        for question in QUESTION.findall(read(chapter))
        for letter, _, feedback in OPTION.findall(question)
        if feedback.startswith("Right:")
    ]
    assert len(set(right)) > 1
    assert all(right.count(letter) <= 0.6 * len(right) for letter in right), f"{part}: {right}"


def test_the_list_finds_every_exercise():
    for chapter in CHAPTERS:
        labels = re.findall(r"^:label: (ex-\S+)$", read(chapter), flags=re.MULTILINE)
        assert [found["label"] for found in EXERCISE.finditer(read(chapter))] == labels
