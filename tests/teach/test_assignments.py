"""Every assignment is graded as in a course: its solution, an empty release, right and wrong answers.

nbgrader itself takes ten seconds for a submission, so `make test` has it grade one and runs the cells of others here.
Two assignments run in half a second; those that sample or train, and other data sets, are left to `make test-all`.
"""

import ast
import html
import json
import re

import graded
import nbformat
import pytest
from book_hub import describe
from tools import assignments, checks

# nbgrader's own way with its database
pytestmark = pytest.mark.filterwarnings("ignore:Object of type:sqlalchemy.exc.SAWarning")
NAMES = assignments.list_names()
QUICK = ("a2-samplers", "a3-pooling")


def mark(names, quick):
    """Assignments as cases: those that are not quick are left to the night."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in quick)) for name in names]


RUN = mark(NAMES, QUICK)
HIDDEN_REGION = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END", flags=re.DOTALL)
SECRET = re.compile(r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END", flags=re.DOTALL)
HIDDEN = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "MARK SCHEME")


class Course:
    """One assignment in a course folder of its own, with its gradebook."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.source = assignments.read_source(name)
        self.api = assignments.make_course(folder, [name])

    def grade(self, student, answers):
        """Submit the release with `answers` in place of its stubs; points by grade_id, and errors, (name, message)."""
        notebook = nbformat.read(self.folder / "release" / self.name / f"{self.name}.ipynb", as_version=4)
        for cell in notebook.cells:
            if cell.id in answers:
                cell.source = answers[cell.id]
        folder = self.folder / "submitted" / student / self.name
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{self.name}.ipynb")
        result = self.api.autograde(self.name, student)
        assert result["success"], result["log"]
        graded = nbformat.read(self.folder / "autograded" / student / self.name / f"{self.name}.ipynb", as_version=4)
        outputs = [output for cell in graded.cells for output in cell.get("outputs", [])]
        errors = [(output.ename, output.evalue) for output in outputs if output.output_type == "error"]
        with self.api.gradebook as gradebook:
            grades = gradebook.find_submission_notebook(self.name, self.name, student).grades
            return {g.name: g.auto_score for g in grades if g.auto_score is not None}, errors

    def read_feedback(self, student):
        """The text of the page that the student gets back."""
        result = self.api.generate_feedback(self.name, student)
        assert result["success"], result["log"]
        page = self.folder / "feedback" / student / self.name / f"{self.name}.html"
        return html.unescape(re.sub("<[^>]+>", "", page.read_text(encoding="utf8")))


@pytest.fixture(scope="module", autouse=True)
def few_draws(tmp_path_factory):
    """Short chains, and one posterior for all submissions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BNN_GRADING_DRAWS", "500")
        patch.setenv("BNN_CACHE", str(tmp_path_factory.mktemp("posteriors")))
        yield


@pytest.fixture(scope="module", params=mark(NAMES, ["a3-pooling"]))
def course(request, few_draws, tmp_path_factory):
    return Course(request.param, tmp_path_factory.mktemp(request.param) / "course")


def list_solutions(notebook):
    """The source of every cell that a student writes: dict of grade_id to text."""
    return {cell.id: cell.source for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("solution")}


def list_points(notebook, kind):
    """Points of the tests ("code") or of the open questions ("markdown"): dict of grade_id to points."""
    graded = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade") and c.cell_type == kind]
    return {cell.id: cell.metadata["nbgrader"]["points"] for cell in graded}


def read_release(name):
    return nbformat.read(assignments.RELEASE / name / f"{name}.ipynb", as_version=4)


def list_answers(name, case):
    """What is handed in, dict of grade_id to text: the "solution", the "empty" release, or such as "wrong-0"."""
    if case == "empty":
        return list_solutions(read_release(name))
    solutions = list_solutions(assignments.read_source(name))
    if case.startswith("wrong"):
        wrong = graded.read_typical(name)[int(case[-1])]
        assert wrong["part"] in solutions
        solutions[wrong["part"]] = wrong["answer"]
    return solutions


def grade_here(name, answers, data_set=None):
    """Points of the tests and errors as `Course.grade` finds them, by running the cells from the first other one on."""
    _, before, errors = graded.run_solution(name, data_set)
    cells = graded.list_code(name, data_set)
    sources = [answers.get(cell.id, cell.source) for cell in cells]
    first = next((i for i, cell in enumerate(cells) if sources[i] != cell.source), len(cells))
    if first < len(cells):
        space = dict(before[first])
        errors = errors[:first] + [graded.run_cell(source, space) for source in sources[first:]]
    worth = [cell.metadata["nbgrader"].get("points") for cell in cells]
    points = {cell.id: 0 if error else w for cell, error, w in zip(cells, errors, worth, strict=True) if w is not None}
    return points, [error for error in errors if error]


# --- graded


@pytest.mark.parametrize("name", RUN)
def test_the_solution_gets_every_point_and_the_empty_release_none(name):
    full = list_points(assignments.read_source(name), "code")
    assert grade_here(name, list_answers(name, "solution")) == (full, [])
    points, errors = grade_here(name, list_answers(name, "empty"))
    assert points == dict.fromkeys(full, 0)
    assert errors[0][0] == "NotImplementedError"
    assert "put your code in place of this line" in errors[0][1]


@pytest.mark.parametrize("name", RUN)
def test_a_typical_wrong_answer_gets_partial_marks_and_a_helpful_message(name):
    full = sum(list_points(assignments.read_source(name), "code").values())
    for k, wrong in enumerate(graded.read_typical(name)):
        points, errors = grade_here(name, list_answers(name, f"wrong-{k}"))
        assert sum(points.values()) == wrong["points"], errors
        assert 0 < wrong["points"] < full
        assert [message for _, message in errors if wrong["message"] in message], errors


@pytest.mark.parametrize("case", mark(["wrong-0", "solution", "empty", "wrong-1", "wrong-2"], ["wrong-0"]))
def test_nbgrader_grades_as_the_cells_run_here_and_hands_the_message_back(course, case):
    answers = list_answers(course.name, case)
    points, errors = course.grade(case, answers)
    unanswered = dict.fromkeys(list_points(course.source, "markdown"), 0) if case == "empty" else {}
    here, same_errors = grade_here(course.name, answers)
    assert (points, errors) == (here | unanswered, same_errors)
    feedback, told = course.read_feedback(case), {"empty": "put your code in place", "solution": ""}
    assert (told[case] if case in told else graded.read_typical(course.name)[int(case[-1])]["message"]) in feedback
    shown = "\n".join(cell.source for cell in read_release(course.name).cells)  # a line may stand in both
    for cell in course.source.cells:
        for region in HIDDEN_REGION.findall(cell.source):
            hidden = [line for line in region.splitlines() if len(line) > 40 and line not in shown]
            assert not [line for line in hidden if line in feedback]


# --- every part by itself: wrong answers lose marks, right ones do not


CASES = [(name, number) for name in NAMES for number in graded.DATA_SETS]
CASES = [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] not in QUICK or case[1] > 1)) for case in CASES]


@pytest.mark.parametrize(("name", "data_set"), CASES)
def test_wrong_answers_lose_marks_and_only_what_is_right_all_the_same_does_not(name, data_set):
    for part in graded.list_parts(name):
        wrong = graded.make_wrong(name, part)
        assert len(wrong) >= 15
        kept = [title for title, text in wrong.items() if not any(graded.judge(name, part, text, data_set).values())]
        assert sorted(kept) == sorted(graded.read_equivalent(name, part)), part


@pytest.mark.parametrize(("name", "data_set"), CASES)
def test_right_answers_lose_nothing_however_they_are_written(name, data_set):
    told = "print('step 1'), __import__('warnings').warn('slow'), print('50 %', file=__import__('sys').stderr)"
    for part in graded.list_parts(name):
        right = graded.read_right(name, part)
        assert right
        right["the solution"] = graded.read_answer(name, part)
        right["a list"] = "from graded import turn_into_lists\n" + graded.wrap(name, part, "turn_into_lists(found)")
        right["a print, a warning and a progress bar"] = graded.wrap(name, part, f"[found, {told}][0]")
        lost = {title: graded.judge(name, part, text, data_set) for title, text in right.items()}
        assert not {title: errors for title, errors in lost.items() if any(errors.values())}, part


@pytest.mark.parametrize("name", RUN)
def test_what_is_no_answer_at_all_is_told_so_in_a_sentence(name):
    for part in graded.list_parts(name):
        for odd in ("None", "globals().get('wanted')", "'one'", "[[1], [2, 3]]", "found.does_not_exist", "print", "{}"):
            errors = [error for error in graded.judge(name, part, graded.wrap(name, part, odd)).values() if error]
            assert errors
            for kind, message in errors:
                said = (kind, len(message) >= 20) == ("AssertionError", True) or "does_not_exist" in message
                assert said, (part, odd, kind, message)


@pytest.mark.parametrize("name", RUN)
def test_a_mistake_in_one_part_costs_nothing_in_the_others(name):
    source = assignments.read_source(name)
    full, stubs = list_points(source, "code"), list_solutions(read_release(name))
    for part, tests in graded.list_parts(name).items():
        wrong = next(iter(graded.make_wrong(name, part).values()))
        for answer in (stubs[part], wrong):
            points, _ = grade_here(name, list_answers(name, "solution") | {part: answer})
            lost = {test for test in full if points[test] < full[test]}
            assert lost, f"{part} is wrong, and nothing loses points"
            assert lost <= set(tests), f"{part} is wrong, and {lost} lose points"


@pytest.mark.parametrize("name", RUN)
def test_a_helper_may_have_any_name_that_a_locked_cell_uses(name):
    for part in graded.list_parts(name):
        answer = graded.rename(name, part)
        assert answer.count("def ") > 30
        errors = graded.judge(name, part, answer)
        assert not any(errors.values()), (part, errors)


LEANING = {
    "a split of all batches at once": {
        "split": """
def split(draws):
    p = np.clip(draws, 1e-300, 1 - 1e-16)
    noise = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)).mean(axis=-2)
    mean = draws.mean(axis=-2)
    return noise, -(mean * np.log2(mean) + (1 - mean) * np.log2(1 - mean)) - noise
""",
        "difference": """
def more_ignorance(far, near):
    n = len(far) // 20
    batches = [split(p[: 20 * n].reshape(20, n, -1))[1].mean(axis=1) for p in (far, near)]
    whole = split(far)[1].mean() - split(near)[1].mean()
    return whole, np.subtract(*batches).std(ddof=1) / np.sqrt(20)
""",
    },
    "names of the notebook for scratch": {
        "prior": "X, y, moons, draw_weights_of = np.array([[2.0, 0.0]]), 1, None, draw_weights\n" + "{prior}",
        "combine": "estimate, sd, rng = 1, 2, 3\n" + "{combine}",
        "rhat": "chains, DATA_SET = None, 9\n" + "{rhat}",
    },
}


@pytest.mark.parametrize("name", RUN)
def test_right_answers_that_lean_on_each_other_or_use_the_notebooks_names_lose_nothing(name):
    full, solutions = list_points(assignments.read_source(name), "code"), list_answers(name, "solution")
    for title, cells in LEANING.items():
        own = {part: text.replace(f"{{{part}}}", solutions[part]) for part, text in cells.items() if part in solutions}
        assert grade_here(name, solutions | own) == (full, []), title


@pytest.mark.parametrize("name", RUN)
def test_one_line_that_makes_every_check_pass_does_not(name):
    parts = graded.list_parts(name)
    for line in (
        "expect_equal = expect_numbers = expect_within = expect_parts = lambda found, *_, **__: found",
        "expect_equal.__code__ = (lambda found, wanted, hint: None).__code__",
        "import teach.grading; teach.grading.expect_numbers = teach.grading.expect_equal = lambda *_: None",
    ):
        answers = {part: graded.wrap(name, part, "None") for part in parts}
        first = next(iter(answers))
        points, _ = grade_here(name, answers | {first: f"{line}\n{answers[first]}"})
        assert not any(points[test] for tests in parts.values() for test in tests), line


# --- the release


def test_the_committed_releases_are_in_step_with_their_sources(tmp_path):
    assignments.make_releases(tmp_path)
    committed, wanted = (
        {path.name: path.read_bytes() for path in folder.glob("*/*")} for folder in (assignments.RELEASE, tmp_path)
    )
    assert sorted(committed) == [f"{name}.ipynb" for name in NAMES]
    assert [name for name in wanted if committed[name] != wanted[name]] == [], "run: make assignments"


def test_a_release_holds_stubs_with_signature_and_docstring_but_no_solution_no_hidden_test_and_no_output():
    for name in NAMES:
        source, notebook = assignments.read_source(name), read_release(name)
        text = json.dumps(notebook, ensure_ascii=False)
        assert not [word for word in HIDDEN if word in text], name
        assert not [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")], name
        kept = {cell.id: cell.source for cell in notebook.cells}
        for cell in source.cells:
            assert not [region for region in SECRET.findall(cell.source) if region.strip() in kept[cell.id]]
        for grade_id, text in list_solutions(source).items():
            if "def " in text:
                wanted, found = (ast.parse(t).body[-1] for t in (text, kept[grade_id]))
                assert (found.name, ast.unparse(found.args)) == (wanted.name, ast.unparse(wanted.args))
                assert ast.get_docstring(found) == ast.get_docstring(wanted)
                assert "raise NotImplementedError(" in kept[grade_id]
            else:
                assert kept[grade_id] == "YOUR ANSWER HERE"


# --- the source


def test_an_assignment_has_twenty_points_as_its_page_says_a_rubric_for_what_is_read_and_seeds_every_draw():
    page = (assignments.ASSIGNMENTS.parent / "assignments.md").read_text(encoding="utf8")
    for name in NAMES:
        source = assignments.read_source(name)
        tests, questions = (list_points(source, kind) for kind in ("code", "markdown"))
        assert sum(tests.values()) + sum(questions.values()) == 20
        assert questions
        stated = re.findall(r"\((\d+) points", "\n".join(c.source for c in source.cells if c.cell_type == "markdown"))
        assert sum(map(int, stated)) == 20  # the headings say what nbgrader counts
        ids = [cell.metadata["nbgrader"]["grade_id"] for cell in source.cells if "nbgrader" in cell.metadata]
        assert len(set(ids)) == len(ids)
        assert not [c.id for c in source.cells if c.cell_type == "code" and "nbgrader" not in c.metadata]
        assert not [found for cell in checks.list_code(source) for found in checks.find_unseeded(cell)]
        text = (assignments.SOURCE / f"{name}.md").read_text(encoding="utf8")
        assert describe(text)[2:] == (sum(tests.values()), sum(questions.values()))
        parts = re.findall(rf"^### {name[:2]}, part .*?(?=^##|^\()", page, flags=re.DOTALL | re.MULTILINE)
        levels = [list(map(int, re.findall(r"^\| (\d) \|", part, flags=re.MULTILINE))) for part in parts]
        assert levels == [list(range(n + 1)) for n in questions.values()]


# --- the tool


def test_an_unknown_assignment_is_refused_by_name_and_another_data_set_without_a_course_folder(capsys):
    assert assignments.main(["a7-magic"]) == 1
    assert "no assignment 'a7-magic'; wanted: one of a1-moons, a2-samplers" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        assignments.main(["--data-set", "3"])
    assert "--data-set needs --course" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("DATA_SET = 1 ", "NUMBER = 1 ", "needs exactly one line `DATA_SET = 1`; it has 0"),
        ("    ### END SOLUTION\n", "", "could not release a3-pooling"),
    ],
)
def test_a_faulty_source_is_refused_in_our_words_or_nbgraders(tmp_path, old, new, said):
    text = (assignments.SOURCE / "a3-pooling.md").read_text(encoding="utf8")
    (tmp_path / "a3-pooling.md").write_text(text.replace(old, new, 1), encoding="utf8")
    with pytest.raises(assignments.AssignmentError, match=said):
        assignments.make_course(tmp_path / "course", source=tmp_path)


def test_a_course_folder_takes_other_data_and_keeps_the_lecturers_settings(tmp_path):
    mine = tmp_path / assignments.CONFIG
    mine.write_text("c = get_config()\nc.CourseDirectory.course_id = 'mine'\n", encoding="utf8")
    assert assignments.main(["a3-pooling", "--course", str(tmp_path), "--data-set", "3"]) == 0
    assert "DATA_SET = 3 " in (tmp_path / "release" / "a3-pooling" / "a3-pooling.ipynb").read_text(encoding="utf8")
    assert "'mine'" in mine.read_text(encoding="utf8")
