"""The pages of the two courses: plans that fit their time, questions with answers, numbers that cannot go stale."""

import json
import re
from pathlib import Path

import pytest
from book_teach import count_minutes, list_costs, split_sections, write_seconds

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
this = "is not read"
```
## Exercises
not counted to it
"""


def test_words_are_counted_by_section_and_code_is_not():
    # "# Title two words" and "## Exercises not counted to it"; "(sec-x-one)= ## One three more words"
    assert split_sections(CHAPTER) == {"": 10, "sec-x-one": 6}


def test_minutes_of_sections_are_added_and_rounded_up(tmp_path):
    (tmp_path / "x.md").write_text(CHAPTER + "word " * 500)
    assert count_minutes(["sec-x-one"], tmp_path) == 1
    assert count_minutes(["x"], tmp_path) == 3


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
