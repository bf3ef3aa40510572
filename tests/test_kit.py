"""The lecturer's kit is honest: every objective is in the map, every number in an answer is computed, links lead on."""

import re
from pathlib import Path

import pytest
from book_hub import CLASSES, MACHINES, choose_machines, count_students
from book_pages import BOOK, list_chapters
from book_teach import find_slide
from exam_answers import COMPUTED
from test_courses import SESSIONS, TEACH, list_rows, read_plan

OBJECTIVES = (TEACH / "objectives.md").read_text(encoding="utf8")
EXAM = (TEACH / "exam.md").read_text(encoding="utf8")
KIT = (TEACH / "kit.md").read_text(encoding="utf8")
HANDOUTS = (TEACH / "handouts.md").read_text(encoding="utf8")
FOR_LECTURERS = {"class_gains"}
CHAPTERS = [name for _, names in list_chapters() for name in names if name not in FOR_LECTURERS]
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*")
SMALL = {"0", "1", "2"}  # as in "adds up to 1"
KINDS = {"a": range(1, 8), "E": range(1, 31), "T": range(1, 11)}


def read_objectives(chapter):
    """What a chapter's box promises: list of str, without their last comma or point."""
    text = (BOOK / f"{chapter}.md").read_text(encoding="utf8")
    box = re.search(r"^You will learn to\n((?:- .+\n)+)", text, flags=re.MULTILINE)
    return [line[2:].rstrip(",.") for line in box[1].splitlines()] if box else []


def read_map():
    """The map: {chapter: rows of its table, a list of lists of str}."""
    parts = re.split(r"^\[The chapter\]\(\.\./(\w+)\.ipynb\)", OBJECTIVES, flags=re.MULTILINE)
    return {name: list_rows(text.partition("\n## ")[0]) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def read_exam():
    """The questions: list of (chapters, question, answer, marks)."""
    found = []
    for part in re.split(r"^\(exam-\d+\)=\n## \d+\. ", EXAM, flags=re.MULTILINE)[1:]:
        chapters = re.findall(r"\]\(\.\./(\w+)\.", part.split("points\n")[0])
        question, _, rest = part.split("points\n", 1)[1].partition(":::{admonition}")
        answer = rest.split("dropdown\n\n")[1].split("\n\n- ")[0]
        found.append((chapters, question, answer, re.findall(r"^- (\d+): (.+)$", rest, flags=re.MULTILINE)))
    return found


QUESTIONS = read_exam()


# --- objectives


def test_every_objective_of_every_chapter_is_in_the_map_in_its_own_words():
    wanted = {name: objectives for name in CHAPTERS if (objectives := read_objectives(name))}
    assert {name: [row[0] for row in rows] for name, rows in read_map().items()} == wanted


def test_chapters_without_objectives_are_listed_and_no_others():
    listed = re.findall(r"\]\(\.\./(\w+)\.ipynb\)", OBJECTIVES.split("without a list of objectives")[1])
    assert sorted(listed) == sorted(name for name in CHAPTERS if not read_objectives(name))


def test_every_objective_is_assessed_by_something_that_exists():
    for name, rows in read_map().items():
        for objective, _, _, assessed in rows:
            codes = re.findall(r"\[(a|E|T)(\d+)(?:\.(\d))?\]", assessed)
            assert codes, f"{name}: {objective}"
            for kind, number, part in codes:
                if kind == "a":
                    source = next((TEACH / "assignments" / "source").glob(f"a{number}-*.md")).read_text(encoding="utf8")
                    assert f"## Part {part}:" in source, f"a{number}.{part}"
                else:
                    assert int(number) in KINDS[kind]
                if kind == "E":
                    assert f"[E{number}](exam-{number})" in assessed


def test_an_exercise_in_the_map_is_one_of_its_chapter():
    for name, rows in read_map().items():
        own = re.findall(r"^:label: (ex-\S+)$", (BOOK / f"{name}.md").read_text(encoding="utf8"), flags=re.MULTILINE)
        assert set(re.findall(r"\{ref\}`(ex-[\w-]+)`", " ".join(row[2] for row in rows))) <= set(own), name


def test_every_slide_in_the_map_is_shown_in_some_deck():
    named = set(re.findall(r"\{slide\}`([\w-]+)`", OBJECTIVES))
    assert len(named) > 40
    for name in sorted(named):
        title, deck = find_slide(name)
        assert title
        assert (TEACH / "slides" / f"{deck}.md").exists()


def make_slides(folder):
    """Two shared slides, one of which a deck shows."""
    (folder / "parts").mkdir()
    (folder / "parts" / "moons-limit.md").write_text("## Nobody is right\n")
    (folder / "parts" / "moons-errors.md").write_text("## Errors\n")
    for deck in ("workshop-1", "week-1"):
        (folder / f"{deck}.md").write_text("```{include} parts/moons-limit.md\n```\n")


def test_a_slide_is_found_in_a_weeks_deck_first(tmp_path):
    make_slides(tmp_path)
    assert find_slide("moons-limit", tmp_path) == ("Nobody is right", "week-1")


@pytest.mark.parametrize(("name", "words"), [("moons-limits", "there are: moons-errors, moons-limit"),
                                             ("moons-errors", "no deck shows the slide 'moons-errors'")])  # fmt: skip
def test_a_slide_that_nobody_shows_is_refused(tmp_path, name, words):
    make_slides(tmp_path)
    with pytest.raises(ValueError, match=words):
        find_slide(name, tmp_path)


# --- the exam


def test_there_are_thirty_questions_over_all_chapters():
    assert len(QUESTIONS) == 30
    asked = {chapter for chapters, *_ in QUESTIONS for chapter in chapters}
    assert set(CHAPTERS) <= asked


@pytest.mark.parametrize("number", range(1, 31))
def test_the_marks_of_a_question_add_up_to_six(number):
    assert sum(int(points) for points, _ in QUESTIONS[number - 1][3]) == 6


@pytest.mark.parametrize("number", range(1, 31))
def test_every_number_in_an_answer_is_computed_or_given(number):
    _, question, answer, _ = QUESTIONS[number - 1]
    bold = [NUMBER.findall(text)[0] for text in re.findall(r"\*\*([^*]+)\*\*", answer)]
    computed = COMPUTED.get(number, [])
    assert sorted(set(bold)) == sorted(set(computed))
    plain = re.sub(r"\$[^$]*\$|\*\*[^*]+\*\*|\([a-e]\)", "", answer)
    assert set(NUMBER.findall(plain)) <= set(NUMBER.findall(question)) | set(computed) | SMALL


def test_answers_that_are_computed_are_those_of_questions_with_numbers():
    with_numbers = {n for n, (_, _, answer, _) in enumerate(QUESTIONS, 1) if re.search(r"\*\*-?\d", answer)}
    assert set(COMPUTED) == with_numbers
    assert len(with_numbers) >= 25


def test_an_exam_that_is_proposed_is_made_of_questions_on_its_chapters():
    for _, what in list_rows(EXAM):
        numbers = [int(n) for n in re.findall(r"\d+", what)]
        assert 1 <= min(numbers) <= max(numbers) <= 30


# --- plans, what to cut, handouts


@pytest.mark.parametrize("name", ["workshop-1", "workshop-2", "workshop-3"])
def test_an_hour_holds_three_ideas(name):
    rows = list_rows(SESSIONS[name][1]["Plan"])
    ideas = [row for row in rows if re.match(r"\*\*.+\*\*", row[1])]
    assert len(ideas) == 3
    spent = sum(length for (_, length), row in zip(read_plan(name), rows, strict=True) if row in ideas)
    assert 35 <= spent <= 45
    assert "**To read instead:**" in SESSIONS[name][1]["Plan"]


@pytest.mark.parametrize("name", ["workshop-1", "workshop-2", "workshop-3"])
def test_an_idea_of_a_plan_stands_on_the_handout_in_the_same_words(name):
    ideas = re.findall(r"\| \*\*(.+?)\*\*", SESSIONS[name][1]["Plan"])
    handout = HANDOUTS.split(f"(handout-{name})=")[1].split("(handout-")[0]
    assert all(f"**{idea}**" in handout for idea in ideas)


def test_what_to_cut_stands_at_minutes_of_the_plans_and_saves_about_ten():
    rows = list_rows(KIT.split("(sec-teach-kit-late)=")[1])
    assert len(rows) == len(SESSIONS)
    for row in rows:
        name = re.search(r"(Workshop|Week) (\d)", row[0])
        plan = dict(read_plan(f"{name[1].lower()}-{name[2]}"))
        clocks = [60 * int(h) + int(m) for h, m in re.findall(r"(\d):(\d\d)", row[1])]
        assert clocks
        assert set(clocks) <= set(plan)
        saved = int(row[2].split()[0])
        assert 9 <= saved <= sum(plan[clock] for clock in clocks)


def test_there_is_a_handout_for_each_session_short_enough_for_a_sheet():
    parts = re.split(r"^\(handout-([\w-]+)\)=$", HANDOUTS, flags=re.MULTILINE)[1:]
    sheets = dict(zip(parts[::2], parts[1::2], strict=True))
    assert sorted(sheets) == sorted(SESSIONS)
    for name, text in sheets.items():
        assert len(text.split()) <= 330, name
        assert "**Remember.**" in text
        assert "{.blanks}" in text or "| |" in text, name


def test_a_class_fits_into_its_machines():
    for students in (*CLASSES, 7, 63, 64, 500):
        n, _, gigabytes = choose_machines(students)
        assert n * count_students(gigabytes) >= students
    assert choose_machines(7) == (1, *MACHINES[0])
    assert choose_machines(8) == (1, *MACHINES[1])
    assert choose_machines(500)[0] == 4


@pytest.mark.parametrize("name", ["kit", "entry_test", "objectives", "handouts", "exam"])
def test_every_link_of_the_kit_leads_to_a_file_or_a_label(name):
    text = (TEACH / f"{name}.md").read_text(encoding="utf8")
    labels = set()
    for path in [*BOOK.glob("*.md"), *TEACH.glob("*.md")]:
        page = path.read_text(encoding="utf8")
        labels |= set(re.findall(r"^\(([\w-]+)\)=$", page, flags=re.MULTILINE))
        labels |= set(re.findall(r"^:label: (\S+)$", page, flags=re.MULTILINE))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path = Path(target.partition("#")[0])
        assert target in labels or target.startswith("http") or (TEACH / path).exists(), target
    for target in re.findall(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`", text):
        assert target in labels or target.startswith("page-"), target
