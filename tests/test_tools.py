"""What `make chapters` gathers: the register of claims and the pictures of the front page."""

import json

import nbformat
import pytest
from bnn.claims import MIME, Claims
from chapters import BOOK
from claims import gather
from cover import PICTURES, find_picture

NOTEBOOK = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}


def write_chapter(folder, *, with_claims):
    """A chapter with one cell, whose output holds two claims."""
    claims = Claims("x")
    claims.add("a", "A holds.", value="1", criterion="is 1", holds=True)
    claims.add("b", "B does not.", value="2", criterion="is 1", holds=False)
    bundle = claims._repr_mimebundle_() if with_claims else {"text/plain": "none"}
    output = nbformat.v4.new_output("display_data", data=bundle)
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("claims", outputs=[output])], metadata=NOTEBOOK
    )
    nbformat.write(notebook, folder / "x.ipynb")
    (folder / "x.md").write_text("---\nkernelspec:\n  name: python3\n---\n")


def test_claims_are_gathered_with_their_chapter(tmp_path):
    write_chapter(tmp_path, with_claims=True)
    found = gather(tmp_path)
    assert [(c["chapter"], c["id"], c["holds"]) for c in found] == [("x", "a", True), ("x", "b", False)]


def test_a_chapter_that_was_never_executed_is_named(tmp_path):
    write_chapter(tmp_path, with_claims=True)
    (tmp_path / "x.ipynb").unlink()
    with pytest.raises(SystemExit, match="make chapters CHAPTER=x"):
        gather(tmp_path)


def test_every_chapter_ends_with_claims():
    notebooks = sorted(BOOK.glob("[!_]*.ipynb"))
    assert notebooks
    without = [n.stem for n in notebooks if MIME not in n.read_text(encoding="utf8")]
    assert not without


def test_the_register_is_up_to_date():
    assert json.loads((BOOK / "claims.json").read_text(encoding="utf8")) == gather(), "run: make claims"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_front_page_is_the_figure_in_its_chapter(name):
    chapter, figure = PICTURES[name]
    picture = find_picture(BOOK / f"{chapter}.ipynb", figure)
    assert (BOOK / "_static" / name).read_bytes() == picture, f"run: make chapters CHAPTER={chapter}"
