"""A class's answers: what is read and refused, what the model says of classes whose truth is known, and the form."""

import re
from pathlib import Path
from types import SimpleNamespace

import jupytext
import numpy as np
import pymc as pm
import pytest
from scipy.special import expit
from teach import learned
from tools.browser import find_axe_violations, open_page

ROOT = Path(__file__).parents[2]
HEAD = ",".join(learned.COLUMNS)
RIGHT, OPEN = ",".join(learned.KEY), ",".join("x" * 10)


@pytest.fixture
def write(tmp_path):
    """Write a file of these lines below the heads, and return its path."""

    def write_lines(*lines, head=HEAD):
        path = tmp_path / "class.csv"
        path.write_text("\n".join([head, *lines]) + "\n", encoding="utf8")
        return path

    return write_lines


# --- what is read, and refused

TWO = [f"ab12,before,{OPEN}", f"ab12,after,{RIGHT}", f"cd34,before,{OPEN}", f"cd34,after,{RIGHT}"]


def test_a_sheet_is_scored_by_the_key(write):
    answers = learned.read_answers(write(*TWO))
    assert answers.students == ("ab12", "cd34")
    assert answers.right.sum(axis=1).tolist() == [0, 10, 0, 10]
    assert answers.after.tolist() == [0, 1, 0, 1]
    assert answers.count() == {"both": 2, "before only": 0, "after only": 0}


FAULTS = {
    "line 3: when is 'befor'; wanted: before or after": lambda t: t.replace("after", "befor", 1),
    "line 2: q1 is 'e'; wanted: a, b, c, d, or x": lambda t: t.replace(",x", ",e", 1),
    "line 2: 11 columns; wanted: 12": lambda t: t.replace(",x", "", 1),
    "line 5: 'cd34' after stands in line 4 already": lambda t: t.replace("cd34,before", "cd34,after"),
    "line 4: no student; wanted: the code": lambda t: t.replace("cd34,before", ",before"),
    "the first line is 'student,": lambda t: t.replace("q10", "q11"),
    "wanted: rows of both sittings": lambda t: "".join(line for line in t.splitlines(True) if ",after" not in line),
    "fewer than two students sat both tests": lambda t: t.replace("cd34,after", "xx99,after"),
}


@pytest.mark.parametrize("words", FAULTS)
def test_what_is_wrong_with_a_file_is_said_with_its_line_and_what_would_be_right(write, words):
    path = write(*TWO)
    path.write_text(FAULTS[words](path.read_text()))
    with pytest.raises(ValueError, match=re.escape(words)):
        learned.read_answers(path)


def test_capitals_and_the_encoding_of_a_spreadsheet_make_no_difference(write):
    path = write(
        "AB12,Before," + OPEN.upper(), f"ab12,after,{RIGHT.upper()}", f"Zoë1,before,{OPEN}", f"ZOË1,after,{RIGHT}"
    )
    path.write_text(path.read_text(encoding="utf8"), encoding="latin-1")
    answers = learned.read_answers(path)
    assert answers.students == ("ab12", "zoë1")
    assert answers.right.sum(axis=1).tolist() == [0, 10, 0, 10]


def test_a_key_that_is_not_that_of_the_sheet_is_seen_in_the_table_of_questions(write):
    turned = [*learned.KEY]
    turned[4] = "d"
    lines = [f"{student},{when},{given}" for student in ("ab12", "cd34") for when, given in
             (("before", OPEN), ("after", ",".join(turned)))]  # fmt: skip
    table = learned.list_questions(learned.read_answers(write(*lines)))
    assert [k for k, line in enumerate(table) if "is the key" in line] == [4]
    assert "q5   pooling       b right:   0 % before,   0 % after; after most often: d (100 %)" in table[4]


# --- what is computed


def test_counting_is_the_mean_of_paired_differences(write):
    gained = ",".join(k if o == "doubt" else "x" for (o, k) in learned.ITEMS)
    lines = [*TWO[:2], f"cd34,before,{OPEN}", f"cd34,after,{gained}", f"ef56,before,{RIGHT}"]
    mean, error = learned.find_raw_gains(learned.read_answers(write(*lines)))
    assert mean.tolist() == [50, 50, 100, 50, 50]
    assert error.tolist() == [50, 50, 0, 50, 50]


def test_gains_are_shares_of_right_answers():
    """Against a loop over students and questions, one draw."""
    rng = np.random.default_rng(0)
    answers, _ = learned.simulate(7, seed=0)
    sizes = {"loading": 10, "difficulty": 10, "gain": 10, "start": 7, "move": 7}
    draw = {name: rng.normal(size=n) for name, n in sizes.items()}
    posterior = {name: SimpleNamespace(values=value[None, None]) for name, value in draw.items()}
    for name, found in zip(learned.OBJECTIVES, learned.find_gains(posterior, answers)[0, 0], strict=True):
        differences = []
        for i in [i for i, (objective, _) in enumerate(learned.ITEMS) if objective == name]:
            lam, b, g = (draw[key][i] for key in ("loading", "difficulty", "gain"))
            for start, move in zip(draw["start"], draw["move"], strict=True):
                differences.append(expit(g - b + lam * (start + move)) - expit(lam * start - b))
        assert found == pytest.approx(100 * np.mean(differences))


def test_a_simulated_class_has_the_gains_that_its_truth_states():
    """Many students: shares of right answers come near the truth, within four binomial errors."""
    answers, truth = learned.simulate(4000, seed=5, absent=0.0)
    found = [100 * learned.average_objectives(answers.right[answers.after == t].mean(axis=0)) for t in (0, 1)]
    assert np.all(abs(found[1] - found[0] - truth["gain"]) < 4 * 100 * np.sqrt(2 * 0.25 / 8000))


def test_a_seed_makes_one_class_whose_file_is_read_again(tmp_path):
    first, again, other = (learned.simulate(30, seed=seed)[0] for seed in (4, 4, 5))
    assert first.right.tolist() == again.right.tolist() != other.right.tolist()
    learned.write_answers(first, tmp_path / "a", seed=9)
    read = learned.read_answers(tmp_path / "a")
    for name in ("right", "student", "after"):
        assert getattr(read, name).tolist() == getattr(first, name).tolist()


@pytest.mark.slow  # a class of 250 is sampled
def test_the_model_finds_what_a_large_class_gained_and_the_question_that_tells_nothing():
    answers, truth = learned.simulate(250, seed=11, gains=(0.0, 0.5, 1.0, 1.5, 2.0), flat=(4,), guess=0.0)
    tree = learned.sample(answers, seed=11, draws=400, tune=400)
    gains = learned.find_gains(tree["posterior"].to_dataset(), answers)
    assert np.all(abs(gains.mean(axis=(0, 1)) - truth["gain"]) < 4 * gains.std(axis=(0, 1)))
    assert gains.std(axis=(0, 1)).max() < 4
    assert np.flatnonzero(learned.find_flat(tree["posterior"].to_dataset()) > learned.SURE).tolist() == [4]


def test_the_model_that_the_page_types_is_that_of_the_module(monkeypatch):
    cells = [cell.source for cell in jupytext.read(ROOT / "book" / "class_gains.md").cells]
    (vary,) = [cell for cell in cells if cell.startswith("def vary")]
    (model,) = [cell for cell in cells if cell.startswith("with pm.Model(coords=coords) as model")]
    answers, _ = learned.simulate(12, seed=2)
    monkeypatch.setattr(learned, "read_answers", lambda file: answers)
    space = {"pm": pm, "np": np, "learned": learned, "file": None, "SEED": 1}
    exec(vary, space)
    exec(model.partition("    trace = pm.sample(")[0], space)
    typed, ours = space["model"], learned.build(answers)
    densities = [each.compile_logp(mode="FAST_COMPILE") for each in (typed, ours)]
    rng = np.random.default_rng(3)
    point = {name: 0.5 * rng.normal(size=value.shape) for name, value in ours.initial_point().items()}
    assert float(densities[0](point)) == pytest.approx(float(densities[1](point)), rel=1e-12)


# --- the test itself, and its form


def test_the_printed_key_is_the_key_of_the_script():
    page = (ROOT / "book" / "teach" / "assignments.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([a-d]) \| (.+) \|$", page, flags=re.MULTILINE)
    assert [(objective, right) for _, objective, right, _ in rows] == list(learned.ITEMS)
    for _, _, right, telling in rows:
        told = set("".join(re.findall(r"(?:^|\. |, )([a-d](?:, [a-d])*):", telling)).replace(", ", ""))
        assert told == set("abcd") - {right}


def test_the_form_is_filled_in_by_keyboard_keeps_and_sends_nothing_and_gives_a_line_that_is_read(
    address, chromium, write
):
    with open_page(chromium, f"{address}book/teach/entry_test.html") as (page, log):
        page.locator("form.test-form").wait_for()
        before = len(log.requests)
        student, said = page.locator("input[name=student]"), page.locator(".test-result output")
        for code, missing in (("A,B", "Write your code"), ("", "Write your code"), ("AB12", "Choose before or after")):
            student.fill(code)
            assert said.inner_text().startswith(missing)
        student.press("Tab")
        page.keyboard.press("Space")  # before
        for _, right in learned.ITEMS[:-2]:
            page.keyboard.press("Tab")
            page.keyboard.press("Space")
            for _ in range(ord(right) - ord("a")):
                page.keyboard.press("ArrowDown")
        line = page.locator("#test-line").input_value()
        assert line == ",".join(["AB12", "before", *learned.KEY[:-2], "x", "x"])
        assert find_axe_violations(page) == []
        places = "[Object.values(localStorage), Object.values(sessionStorage), document.cookie]"
        assert "AB12" not in page.evaluate(f"JSON.stringify({places})")
        assert log.requests[before:] == []
        assert log.complaints == []
    assert learned.read_answers(write(line, line.replace("before", "after"), *TWO[2:])).right[0].sum() == 8
