"""A class's answers: what is read and refused, what the model says of classes whose truth is known, and the form."""

import json
import re
import subprocess
from pathlib import Path

import jupytext
import lots
import numpy as np
import pytest
from bnn import inference, learned
from pypdf import PdfReader
from studies import class_gains
from test_site import ROOT, address, chromium, site
from tools.browser import find_axe_violations, open_page
from tools.node import find_node

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests
HEAD = ",".join(learned.COLUMNS)
RIGHT, OPEN = ",".join(learned.KEY), ",".join("x" * 10)
SHEET = ROOT / "book" / "_static" / "live" / "sheet.js"
TEST = (ROOT / "book" / "teach" / "entry_test.md").read_text(encoding="utf8")


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


def test_a_single_wrong_letter_costs_its_own_question(write):
    wrong = list(learned.KEY)
    wrong[6] = "a" if wrong[6] != "a" else "b"
    right = learned.read_answers(write(*TWO[:3], f"cd34,after,{','.join(wrong)}")).right[3]
    assert np.flatnonzero(right == 0).tolist() == [6]


@pytest.mark.parametrize("change", [str.upper, lambda text: text.replace(",", ";"), lambda text: "\ufeff" + text])
def test_capitals_semicolons_and_a_mark_of_order_change_nothing(write, change):
    path = write(*TWO)
    wanted = learned.read_answers(path).right.tolist()
    path.write_text(change(path.read_text()), encoding="utf8")
    assert learned.read_answers(path).right.tolist() == wanted


def test_who_came_once_is_kept_and_counted(write):
    answers = learned.read_answers(write(*TWO, f"ef56,before,{RIGHT}", f"gh78,after,{OPEN}"))
    assert answers.count() == {"both": 2, "before only": 1, "after only": 1}
    assert len(answers.right) == 6


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


def test_a_cell_in_quotes_may_hold_a_comma_and_line_numbers_stay_those_of_the_file(write):
    rows = [line.replace("ab12", '"Ada, L."') for line in TWO]
    assert "Ada, L." in learned.read_answers(write(*rows)).students
    path = write(*rows)
    path.write_text(path.read_text().replace("\ncd34", "\n\ncd34", 1).replace("cd34,after", "cd34,never"))
    with pytest.raises(ValueError, match="line 6: when is 'never'"):
        learned.read_answers(path)


def test_three_wrong_lines_are_told_and_the_others_counted(write):
    with pytest.raises(ValueError, match=r"line 2: .*; line 3: .*; line 4: .*; and 2 more lines$"):
        learned.read_answers(write(*["ab12,never," + RIGHT] * 5))


def test_an_empty_file_is_no_table(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(ValueError, match=r"the first line is 'nothing'; wanted: student,when,q1"):
        learned.read_answers(tmp_path / "empty.csv")


def test_a_file_that_was_written_is_read_again(tmp_path):
    invented, _ = learned.simulate(30, seed=3)
    learned.write_answers(invented, tmp_path / "class.csv", seed=3)
    again = learned.read_answers(tmp_path / "class.csv")
    for name in ("right", "student", "after"):
        assert getattr(again, name).tolist() == getattr(invented, name).tolist()


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
    draw = {name: rng.normal(size=(1, 1, n)) for name, n in
            (("loading", 10), ("difficulty", 10), ("gain", 10), ("start", 7), ("move", 7))}  # fmt: skip
    posterior = {name: type("Values", (), {"values": value})() for name, value in draw.items()}
    found = learned.find_gains(posterior, answers)[0, 0]
    for k, name in enumerate(learned.OBJECTIVES):
        differences = []
        for i in [i for i, (objective, _) in enumerate(learned.ITEMS) if objective == name]:
            for s in range(7):
                lam, b, g, start, move = (
                    draw[n][0, 0, j] for n, j in
                    (("loading", i), ("difficulty", i), ("gain", i), ("start", s), ("move", s))
                )  # fmt: skip
                before = 1 / (1 + np.exp(b - lam * start))
                differences.append(1 / (1 + np.exp(b - g - lam * (start + move))) - before)
        assert found[k] == pytest.approx(100 * np.mean(differences))


def test_each_objective_has_two_questions():
    assert np.bincount(learned.OBJECTIVE_OF).tolist() == [2] * len(learned.OBJECTIVES)


def test_a_simulated_class_has_the_gains_that_its_truth_states():
    """Many students: shares of right answers come near the truth, within four binomial errors."""
    answers, truth = learned.simulate(4000, seed=5, absent=0.0)
    found = [100 * learned.average_objectives(answers.right[answers.after == t].mean(axis=0)) for t in (0, 1)]
    assert np.all(abs(found[1] - found[0] - truth["gain"]) < 4 * 100 * np.sqrt(2 * 0.25 / 8000))


def test_a_question_of_loading_zero_is_answered_alike_by_strong_and_weak():
    answers, truth = learned.simulate(4000, seed=6, flat=(2,))
    assert truth["loading"][2] == 0
    first = answers.right[answers.after == 0]
    rest = np.delete(first, 2, axis=1).sum(axis=1)
    corr = [np.corrcoef(first[:, i], rest if i == 2 else first.sum(axis=1) - first[:, i])[0, 1] for i in (2, 3)]
    assert abs(corr[0]) < 4 / np.sqrt(4000) < corr[1]


def test_a_seed_makes_one_class_and_another_seed_another(tmp_path):
    first, again, other = (learned.simulate(30, seed=seed)[0].right.tolist() for seed in (4, 4, 5))
    assert first == again != other
    for name in ("a", "b"):
        learned.write_answers(learned.simulate(30, seed=4)[0], tmp_path / name, seed=9)
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()


@lots.seldom("book/bnn/learned.py", "tests/test_learned.py")
def test_draws_come_again_with_their_seed():
    answers, _ = learned.simulate(10, seed=4)
    draws = [learned.sample(answers, seed=seed, draws=20, tune=20)["posterior"]["aim"].values for seed in (1, 1, 2)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_one_in_ten_stays_away():
    answers, _ = learned.simulate(4000, seed=7)
    away = answers.count()["before only"]
    assert abs(away - 400) < 4 * np.sqrt(360)


@pytest.fixture(scope="module")
def large():
    """A class so large that the truth is nearly known, and draws."""
    answers, truth = learned.simulate(250, seed=11, gains=(0.0, 0.5, 1.0, 1.5, 2.0), flat=(4,), guess=0.0)
    return answers, truth, learned.sample(answers, seed=11, draws=400, tune=400)


def test_the_model_finds_what_a_large_class_gained(large):
    answers, truth, tree = large
    gains = learned.find_gains(tree["posterior"].to_dataset(), answers)
    assert np.all(abs(gains.mean(axis=(0, 1)) - truth["gain"]) < 4 * gains.std(axis=(0, 1)))
    assert gains.std(axis=(0, 1)).max() < 4


def test_the_model_names_the_question_that_tells_nothing_and_no_other(large):
    _, _, tree = large
    assert np.flatnonzero(learned.find_flat(tree["posterior"].to_dataset()) > learned.SURE).tolist() == [4]


def test_the_model_is_nearer_to_loadings_than_a_guess_that_all_are_alike(large):
    _, truth, tree = large
    found = tree["posterior"]["loading"].values.mean(axis=(0, 1))
    assert np.abs(found - truth["loading"]).mean() < 0.5 * np.abs(truth["loading"].mean() - truth["loading"]).mean()


def test_chains_are_judged_by_gains_loadings_and_difficulties(large):
    answers, _, tree = large
    asked = learned.judge(tree, answers)
    assert asked.n_quantities == 5 + 10 + 10
    broken = tree.copy(deep=True)
    broken["posterior"]["gain"].values[0] += 2
    assert not learned.judge(broken, answers).converged


def test_the_model_that_the_page_types_is_that_of_the_module(monkeypatch):
    cells = [cell.source for cell in jupytext.read(ROOT / "book" / "class_gains.md").cells]
    (vary,) = [cell for cell in cells if cell.startswith("def vary")]
    (model,) = [cell for cell in cells if cell.startswith("with pm.Model(coords=coords) as model")]
    answers, _ = learned.simulate(12, seed=2)
    import pymc as pm

    monkeypatch.setattr(learned, "read_answers", lambda file: answers)
    space = {"pm": pm, "np": np, "learned": learned, "inference": inference, "file": None, "SEED": 1}
    exec(vary, space)
    exec(model.partition("    trace = pm.sample(")[0], space)
    typed, ours = space["model"], learned.build(answers)
    densities = [each.compile_logp(mode="FAST_COMPILE") for each in (typed, ours)]
    rng = np.random.default_rng(3)
    point = {name: 0.5 * rng.normal(size=value.shape) for name, value in ours.initial_point().items()}
    assert float(densities[0](point)) == pytest.approx(float(densities[1](point)), rel=1e-12)


@lots.seldom("book/bnn/learned.py", "tests/test_learned.py")
def test_the_script_says_the_gains_and_a_fault_in_a_sentence(write, capsys):
    invented, _ = learned.simulate(12, seed=8)
    path = write()
    learned.write_answers(invented, path, seed=8)
    assert learned.main([str(path), "--seed", "8"]) in (0, 2)
    said = capsys.readouterr().out
    assert all(name in said for name in learned.OBJECTIVES)
    assert "12 students" in said
    path.write_text("nonsense\n")
    assert learned.main([str(path)]) == 1
    assert "wanted: student,when,q1" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_said_in_a_sentence(tmp_path, capsys):
    assert learned.main([str(tmp_path / "none.csv")]) == 1
    assert "none.csv" in capsys.readouterr().err


def test_the_study_s_classes_are_those_that_are_simulated(monkeypatch):
    """Its truth and its counting are those of the class with the case's seed and two questions that tell nothing."""
    answers, truth = learned.simulate(10, seed=104, flat=np.random.default_rng([104, 10]).choice(10, 2, replace=False))
    monkeypatch.setattr(class_gains, "SETTINGS", {"draws": 60, "tune": 60})
    row = class_gains.compute(10, 104)
    assert row["truth"] == truth["gain"].tolist()
    assert row["raw"] == learned.find_raw_gains(answers)[0].tolist()
    assert np.all(np.array(row["low"]) < row["mean"])
    assert np.all(np.array(row["mean"]) < row["high"])


# --- the test itself, and its form


def read_questions():
    """The questions of the page: list of (text, list of options)."""
    parts = re.split(r"^\d+\. ", TEST[TEST.index("{.test-sheet}") :], flags=re.MULTILINE)[1:]
    return [(part.splitlines()[0], re.findall(r"^ +\d\. (.+)$", part, flags=re.MULTILINE)) for part in parts]


def test_there_are_ten_questions_with_four_different_answers_each():
    questions = read_questions()
    assert len(questions) == len(learned.ITEMS) == 10
    assert all(len(set(options)) == 4 for _, options in questions)


def test_the_key_in_the_kit_is_the_key_of_the_script():
    kit = (ROOT / "book" / "teach" / "kit.md").read_text(encoding="utf8")
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([a-d]) \| (.+) \|$", kit, flags=re.MULTILINE)
    assert [(objective, right) for _, objective, right, _ in rows] == list(learned.ITEMS)
    for _, _, right, telling in rows:
        told = set("".join(re.findall(r"(?:^|\. |, )([a-d](?:, [a-d])*):", telling)).replace(", ", ""))
        assert told == set("abcd") - {right}


def test_no_answer_stands_out_by_being_right():
    """The right answer is neither always the longest nor always at one place."""
    places = [ord(right) - ord("a") for _, right in learned.ITEMS]
    assert max(np.bincount(places, minlength=4)) <= 4
    longest = [np.argmax([len(option) for option in options]) == place
               for (_, options), place in zip(read_questions(), places, strict=True)]  # fmt: skip
    assert sum(longest) <= 6


@pytest.mark.parametrize(
    ("student", "when", "answers", "wanted"),
    [
        ("AB12", "before", ["a", "", "d"], {"line": "AB12,before,a,x,d"}),
        (" Zoë1 ", "after", ["x"], {"line": "Zoë1,after,x"}),
        ("A,B", "before", ["a"], {"missing": "Write your code"}),
        ("", "before", ["a"], {"missing": "Write your code"}),
        ("AB12", "", ["a"], {"missing": "Choose before or after"}),
    ],
)
def test_the_form_writes_a_line_or_says_what_is_missing(student, when, answers, wanted):
    program = f"import {{ writeLine }} from {json.dumps(SHEET.as_uri())}; " + (
        f"console.log(JSON.stringify(writeLine({json.dumps(student)}, {json.dumps(when)}, {json.dumps(answers)})));"
    )
    done = subprocess.run(
        [find_node(), "--input-type=module", "-e", program], capture_output=True, text=True, check=True
    )
    (key, words), (found, said) = *wanted.items(), *json.loads(done.stdout).items()
    assert key == found
    assert said == words if key == "line" else said.startswith(words)


@pytest.fixture
def form(address, chromium):
    """The page of the test, as a form, and the log of its tab."""
    with open_page(chromium, f"{address}book/teach/entry_test.html") as (page, log):
        page.locator("form.test-form").wait_for()
        yield page, log


def fill_in(page):
    """Answer by keyboard alone: the code, before, and the right answers to all but the last two questions."""
    page.locator("input[name=student]").focus()
    page.keyboard.type("AB12")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # before
    for _, right in learned.ITEMS[:-2]:
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        for _ in range(ord(right) - ord("a")):
            page.keyboard.press("ArrowDown")


def test_the_form_is_filled_in_by_keyboard_and_gives_a_line_that_the_script_reads(form, tmp_path):
    page, log = form
    fill_in(page)
    line = page.locator("#test-line").input_value()
    assert line == ",".join(["AB12", "before", *learned.KEY[:-2], "x", "x"])
    path = tmp_path / "class.csv"
    path.write_text("\n".join([HEAD, line, line.replace("before", "after"), *TWO[2:]]))
    assert learned.read_answers(path).right[0].sum() == 8
    assert log.complaints == []


def test_the_form_keeps_nothing_and_sends_nothing(form):
    page, log = form
    before = len(log.requests)
    fill_in(page)
    page.get_by_role("button", name="Copy the line").click()
    page.wait_for_function("/Copied|Ctrl/.test(document.querySelector('.test-result output').textContent)")
    assert log.requests[before:] == []
    places = "[Object.values(localStorage), Object.values(sessionStorage), document.cookie]"
    kept = page.evaluate(f"JSON.stringify({places})")
    assert "AB12" not in kept
    page.reload()
    page.locator("form.test-form").wait_for()
    assert page.locator("input[name=student]").input_value() == ""
    assert page.locator("form.test-form input:checked").count() == 0


def test_axe_finds_nothing_in_a_form_that_is_filled_in(form):
    page, _ = form
    fill_in(page)
    assert find_axe_violations(page) == []


def test_the_test_is_one_sheet_of_paper(form, tmp_path):
    page, _ = form
    page.pdf(path=tmp_path / "test.pdf", prefer_css_page_size=True, format="A4")
    pages = PdfReader(tmp_path / "test.pdf").pages
    text = [" ".join(sheet.extract_text().split()) for sheet in pages]
    assert "A hierarchical model predicts better" in text[0]
    assert "A group standard deviation above zero" in text[0]
    assert len(text) == 1
    assert re.search(r"b\. ?That is open", text[0])  # a lecturer types letters


def test_without_scripts_the_questions_are_there_to_read(site):
    html = (Path(site) / "book" / "teach" / "entry_test.html").read_text(encoding="utf8")
    assert all(question[:30] in html for question, _ in read_questions())
