"""The pages of the two courses: plans that fit their time, questions with answers, numbers that cannot go stale."""

import json
import re
from pathlib import Path

import pytest
from book_teach import (
    A_LINE,
    A_PICTURE,
    CELL,
    count_minutes,
    count_words,
    list_costs,
    read_cell,
    read_prose,
    weigh_cell,
    weigh_sections,
    write_seconds,
)

BOOK = Path(__file__).parents[1] / "book"
TEACH = BOOK / "teach"
WEEKS = [f"week-{k}" for k in range(1, 7)]
HEADS = ["Objectives", "Before class", "Plan", "Board questions", "Misconceptions", "Checkpoints", "Homework",
         "If Binder is down"]  # fmt: skip
IN_A_WORKSHOP = [head for head in HEADS if head not in ("Before class", "Homework")]
CLAIMS = {f"{claim['chapter']}:{claim['id']}": claim for claim in json.loads((BOOK / "claims.json").read_text())}
CLOCK = re.compile(r"^(\d):(\d\d)(?:, (\d+) min)?$")


def split(text, mark):
    """The parts of a text below each heading of a level: {heading: text}."""
    parts = re.split(rf"^{mark} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def read_sessions():
    """Every session: {name: (minutes, its parts by heading)}."""
    found = {name: (90, split((TEACH / f"{name}.md").read_text(encoding="utf8"), "##")) for name in WEEKS}
    workshop = split((TEACH / "workshop.md").read_text(encoding="utf8"), "##")
    for title, text in workshop.items():
        if title.startswith("Session "):
            found[f"workshop-{title[8]}"] = 60, split(text, "###")
    return found


SESSIONS = read_sessions()
every_session = pytest.mark.parametrize("name", SESSIONS)


def list_rows(text):
    """The rows of the first table of a text, without its head: a list of lists of str."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def read_plan(name):
    """Start and length of each row of a plan, in minutes: a list of (int, int)."""
    clocks = [CLOCK.match(row[0]) for row in list_rows(SESSIONS[name][1]["Plan"])]
    return [(60 * int(clock[1]) + int(clock[2]), int(clock[3])) for clock in clocks]


def test_there_are_nine_sessions():
    assert list(SESSIONS) == [*WEEKS, "workshop-1", "workshop-2", "workshop-3"]


@every_session
def test_a_session_has_the_parts_of_every_session_in_order(name):
    assert list(SESSIONS[name][1]) == (HEADS if name in WEEKS else IN_A_WORKSHOP)


@every_session
def test_a_plan_leaves_no_gap_and_ends_on_time(name):
    plan = read_plan(name)
    assert [start for start, _ in plan] == [sum(length for _, length in plan[:i]) for i in range(len(plan))]
    assert sum(length for _, length in plan) == SESSIONS[name][0]


@every_session
def test_a_tenth_of_a_session_is_slack(name):
    text, rows = SESSIONS[name][1]["Plan"], list_rows(SESSIONS[name][1]["Plan"])
    gives_way = [i for i, row in enumerate(rows) if row[1].startswith(("In pairs", "Questions, slack"))]
    slack = sum(read_plan(name)[i][1] for i in gives_way)
    assert slack >= 0.1 * SESSIONS[name][0]
    if name in WEEKS:
        assert f"that is {slack} minutes of slack" in text


def list_slides(name):
    """The minute at which each slide of a deck starts, by the speaker notes."""
    folder = TEACH / "slides"
    deck = (folder / f"{name}.md").read_text(encoding="utf8")
    deck = re.sub(r"```\{include\} (\S+)\n```", lambda part: (folder / part[1]).read_text(encoding="utf8"), deck)
    minutes = [int(length) for length in re.findall(r"^:::\{notes\} (\d+)", deck, flags=re.MULTILINE)]
    return [sum(minutes[:i]) for i in range(len(minutes))]


@every_session
def test_each_row_of_a_plan_starts_with_a_slide(name):
    slides = list_slides(name)
    assert [start for start, _ in read_plan(name) if start not in slides] == []


@every_session
def test_what_to_do_without_binder_stands_at_minutes_of_the_plan(name):
    starts = [f"{start // 60}:{start % 60:02}" for start, _ in read_plan(name)]
    instead = [row[0] for row in list_rows(SESSIONS[name][1]["If Binder is down"])]
    assert len(instead) >= 3
    assert [clock for clock in instead if clock not in starts] == []


@every_session
def test_every_board_question_has_an_expected_and_a_wrong_answer(name):
    questions = re.split(r"^\d\. \*\*", SESSIONS[name][1]["Board questions"], flags=re.MULTILINE)[1:]
    assert 3 <= len(questions) <= 5
    for question in questions:
        assert question.count("*Expected:*") == 1
        assert question.count("*A wrong answer:*") == 1


@every_session
def test_every_question_that_a_plan_announces_is_there(name):
    parts = SESSIONS[name][1]
    named = re.findall(r"Board questions? ([\d and]+)", parts["Plan"])
    announced = {int(number) for words in named for number in words.split("and")}
    there = {int(n) for n in re.findall(r"^(\d)\. \*\*", parts["Board questions"], flags=re.MULTILINE)}
    assert announced <= there


@every_session
def test_every_session_has_three_to_five_misconceptions_and_objectives(name):
    parts = SESSIONS[name][1]
    assert 3 <= len(list_rows(parts["Misconceptions"])) <= 5
    assert 3 <= len(re.findall(r"^- ", parts["Objectives"], flags=re.MULTILINE)) <= 5


@every_session
def test_a_checkpoint_says_of_its_claim_what_the_claim_says(name):
    rows = list_rows(SESSIONS[name][1]["Checkpoints"])
    assert 3 <= len(rows) <= 7
    for _, value, verdict, lesson in rows:
        claim = CLAIMS[re.fullmatch(r"\{claim\}`(.+)`", value)[1]]
        assert verdict == ("holds" if claim["holds"] else "does not hold"), value
        assert lesson


@every_session
def test_a_checkpoint_that_fails_is_among_those_that_hold(name):
    verdicts = {row[2] for row in list_rows(SESSIONS[name][1]["Checkpoints"])}
    assert verdicts == {"holds", "does not hold"}


@pytest.mark.parametrize("name", [*WEEKS, "workshop", "index"])
def test_no_number_with_an_error_is_typed_by_hand(name):
    assert re.findall(r"\d[^|\n]{0,3}± ?\d", (TEACH / f"{name}.md").read_text(encoding="utf8")) == []


@pytest.mark.parametrize("name", WEEKS)
def test_a_week_can_be_read_at_a_glance(name):
    assert 900 <= len((TEACH / f"{name}.md").read_text(encoding="utf8").split()) <= 1600


# --- minutes to read, seconds to run

CHAPTER = """---
title: not read
---
# Title
two words
(sec-x-one)=
## One
three more words

```{code-cell} ipython3
one = "line"
```
## Exercises
- not counted to it
"""


def test_what_a_section_takes_is_its_words_and_lines():
    # "Title two words", "Exercises not counted to it"; "One three more words" and a line
    assert weigh_sections(CHAPTER) == {"": 3 + 5, "sec-x-one": 4 + A_LINE}


def test_minutes_of_sections_are_added_and_rounded_up(tmp_path):
    (tmp_path / "x.md").write_text(CHAPTER + "word " * 500)
    assert count_minutes(["sec-x-one"], tmp_path) == 1
    assert count_minutes(["x"], tmp_path) == 3


TEXT, CODE = "word " * 200 + "\n", "```{code-cell} ipython3\n" + "x = 1\n" * 10 + "```\n"
FIGURE = "```{code-cell} ipython3\n---\ntags: [hide-input]\nmystnb:\n  figure: {name: fig-x}\n---\nplot()\n```\n"
DRAWN = "```{figure} x.svg\n:alt: not read\n:name: fig-y\n\nnot read\n```\n"
WORDLESS = "| | |\n|---|---|\n\n"


@pytest.mark.parametrize("content", [TEXT, CODE, FIGURE, DRAWN, WORDLESS])
def test_a_minute_is_200_words_or_ten_lines_or_a_figure_or_a_table(tmp_path, content):
    (tmp_path / "x.md").write_text(f"(sec-x-a)=\n## \n{content}(sec-x-b)=\n## \n{content}{content}")
    assert [count_minutes(labels, tmp_path) for labels in (["sec-x-a"], ["sec-x-b"], ["x"])] == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "last", "words"),
    [
        ("", "x", 2 * A_LINE),
        (":tags: [hide-input]", "x", 0),
        (":tags: [remove-input]", "report.Table(a, b, c)", A_PICTURE),
        (":tags: [hide-input]", "az.summary(trace)[['mean', 'mcse_mean']]", A_PICTURE),
        (":tags: [hide-input, hide-output]", "report.Table(a, b, c)", 0),
        (":tags: [hide-cell]", "report.Table(a, b, c)", 0),
        ("", "report.Table(a, b, c)", 2 * A_LINE + A_PICTURE),
        ("", "table = report.Table(a, b, c)", 2 * A_LINE),
        (":tags: [hide-input]\n:mystnb: {figure: {name: fig-x}, code_prompt_show: Show}", "plt.show()", A_PICTURE),
        ("---\ntags: [hide-input]\nmystnb:\n  figure:\n    name: fig-x\n---", "plt.show()", A_PICTURE),
        ("", "%time x", 2 * A_LINE),
    ],
)
def test_a_folded_cell_counts_its_figure_or_table_and_not_its_lines(options, last, words):
    cell = CELL.search(f"```{{code-cell}} ipython3\n{options}{options and chr(10)}first = 1\n\n{last}\n```\n")
    assert weigh_cell(*read_cell(cell)) == words


NOT_READ = [
    ":::{admonition} Not this\n:class: dropdown prerequisites\nnot this\n:::\n",
    ":::{admonition} Not this\n:class: original dropdown\n\nnot this\n\n- not this\n:::\n",
    ":::{solution-start} ex-x\n:::\n\nnot this\n```{code-cell} ipython3\nnot_this = 1\n```\n\n:::{solution-end}\n:::\n",
    "+++\n",
]


@pytest.mark.parametrize("fold", NOT_READ)
def test_solutions_and_folded_boxes_are_not_read(fold):
    page = f"read this\n\n{fold}\n:::{{exercise}} And this\n:label: ex-x\nand this, too\n:::\n"
    assert weigh_sections(page) == {"": 7}


def test_a_question_is_read_and_its_folded_answers_are_not():
    answer = ":::{admonition} A. Not this\n:class: dropdown answer\n\nnot this\n:::\n"
    page = f"::::{{admonition}} Check yourself\n:class: selfcheck\n\nWhy so?\n\n{answer}\n{answer}::::\nafter it\n"
    assert count_words(read_prose(page)) == 6


def test_no_chapter_has_prose_that_looks_like_a_box():
    """What is stripped from a page is stripped whole: no fence, no option and no code is left in its prose."""
    for path in sorted(BOOK.glob("*.md")):
        prose = read_prose(path.read_text(encoding="utf8"))
        assert "{code-cell}" not in prose
        assert "dropdown" not in prose
        assert "solution-" not in prose


def test_an_unknown_section_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="no chapter and no section 'sec-moon'; wanted: such as moons"):
        count_minutes(["sec-moon"], tmp_path)


def test_the_cells_above_a_section_are_all_before_it(tmp_path):
    row = {"chapter": "x", "sections": {"start": 4.0, "sec-x-one": 1.5, "exercises": 2.0, "sec-x-two": 8.0}}
    (tmp_path / "t.json").write_text(json.dumps({"rows": [row]}))
    costs, above = list_costs(tmp_path / "t.json")
    assert costs == {"sec-x-one": 1.5, "sec-x-two": 8.0}
    assert above == {"sec-x-one": 4.0, "sec-x-two": 7.5}


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "under 1 CPU-s"), (7.6, "8 CPU-s")])
def test_seconds_are_whole(seconds, words):
    assert write_seconds(seconds) == words
