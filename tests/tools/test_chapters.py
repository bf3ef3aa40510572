"""What must hold for every chapter before it is run again, and which are; nbval then runs it."""

import re

import nbformat
import nbval_chapters
import pytest
from bookkit import report
from bookkit.repo import BOOK, find_chapters
from nbformat.v4 import new_code_cell, new_notebook, new_output
from tools import chapters, checks, outputs

CHAPTERS = find_chapters()


@pytest.fixture(scope="module")
def notebooks():
    """The stored notebooks: dict of the md's path to NotebookNode."""
    return {md: nbformat.read(md.with_suffix(".ipynb"), as_version=4) for md in CHAPTERS}


def test_each_chapter_is_an_md_and_an_ipynb():
    notebooks = {path.stem for path in BOOK.glob("*.ipynb") if not path.name.startswith("_")}
    assert notebooks == {path.stem for path in CHAPTERS}, "an ipynb is written only by executing its md"


@pytest.mark.parametrize("md", CHAPTERS, ids=lambda md: md.stem)
def test_nothing_is_wrong_with_a_chapter_as_it_is_stored(md):
    complaints = checks.check(md)
    assert not complaints, "\n" + "\n".join(complaints)


def change_numbers(text):
    """Copies of a text with one number changed: an estimate by thirty errors, or the first digit of an exact one."""
    estimates = [token for token in outputs.TOKEN.finditer(text) if token["value"] and float(token["error"]) > 0]
    for token in estimates:
        value = float(token["value"].replace(",", "").replace("−", "-")) + 30 * float(token["error"])
        yield text[: token.start("value")] + f"{value:.4f}" + text[token.end("value") :]
    digit = re.search(r"(?<![\w.,])\d", outputs.TOKEN.sub(lambda token: "#" * len(token[0]), text))
    if digit:
        yield text[: digit.start()] + str((int(digit[0]) + 1) % 10) + text[digit.end() :]


@pytest.mark.parametrize("md", CHAPTERS, ids=lambda md: md.stem)
def test_a_changed_number_is_caught_on_every_page(notebooks, md):
    changed = 0
    for output in [output for cell in notebooks[md].cells for output in cell.get("outputs", [])]:
        text = output["text"] if "text" in output else output.get("data", {}).get("text/plain", "")
        if text.startswith(("<Figure", "array")) or "ess_bulk" in text or "chains agree" in text:
            continue  # a picture; a summary or verdict, whose own tests are in test_outputs.py
        for other in change_numbers(text):
            changed += 1
            assert outputs.compare_text(text, other), other
    assert changed


# --- which are run again


@pytest.fixture
def nb():
    """A notebook that has just been executed."""
    nb = new_notebook(cells=[new_code_cell("import hbnn")])
    nb.metadata.bnn = {"stamp": chapters.stamp(nb)}
    return nb


@pytest.mark.parametrize(("entry", "what"), [("code", "code"), ("lock", "lock"), ("numbers", "NUMBERS")])
def test_a_chapter_that_was_written_with_something_else_or_is_new_has_changed(nb, entry, what):
    assert nbval_chapters.find_change(nb) == nbval_chapters.find_change(nb, new_notebook(cells=nb.cells)) == ""
    assert "of main" in nbval_chapters.find_change(nb, new_notebook())
    nb.metadata.bnn.stamp[entry] = "another"
    assert what in nbval_chapters.find_change(nb)


def test_outputs_that_were_edited_by_hand_send_a_chapter_back(nb):
    other = nbformat.from_dict(nb)
    other.cells[0].outputs = [new_output("stream", name="stdout", text="rows 1001")]
    assert "outputs are not those of main" in nbval_chapters.find_change(other, nb)


def test_a_notebook_is_compared_with_what_it_was_on_main(monkeypatch):
    said = {"merge-base": "abc", "diff": "book/moons.ipynb\nbook/new.ipynb", "show": ""}
    monkeypatch.setattr(nbval_chapters, "ask_git", lambda *words: said[words[0]])
    assert nbval_chapters.read_base(BOOK / "digits.ipynb") is None
    assert nbval_chapters.read_base(BOOK / "new.ipynb") == new_notebook()
    said["show"] = nbformat.writes(new_notebook(metadata={"bnn": {"stamp": "x"}}))
    assert nbval_chapters.read_base(BOOK / "moons.ipynb").metadata.bnn.stamp == "x"
    said["merge-base"] = ""
    assert nbval_chapters.read_base(BOOK / "moons.ipynb") is None


def test_a_few_cheap_chapters_always_stand_for_the_rest():
    costs = {row["chapter"]: row["cpu_seconds"] for row in report.read_data("run_cost")["rows"]}
    assert sum(costs[name] for name in nbval_chapters.FIXED) < 90
    assert all(nbval_chapters.choose()[name] for name in nbval_chapters.FIXED)
