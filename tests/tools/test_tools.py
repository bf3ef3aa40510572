"""What `make chapters` gathers, the register of claims; and parts of other tools."""

import json
import re
import subprocess
import sys
from functools import partial

import nbformat
import pytest
from book_pages import ABOUT, FIRST
from book_site import add_size
from bookkit.claims import MIME, Claims
from bookkit.repo import BOOK, find_chapters
from PIL import Image
from tools import faults, other_seeds, pdf
from tools.chapters import kernel_environment
from tools.claims import gather


def test_claims_are_gathered_with_their_chapter_and_one_that_was_never_executed_is_named(tmp_path):
    claims = Claims("x")
    claims.add("a", "A holds.", value="1", criterion="is 1", holds=True)
    claims.add("b", "B does not.", value="2", criterion="is 1", holds=False)
    output = nbformat.v4.new_output("display_data", data=claims._repr_mimebundle_())
    cells, kernel = [nbformat.v4.new_code_cell("claims", outputs=[output])], {"name": "python3", "display_name": "3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "x.ipynb")
    (tmp_path / "x.md").write_text("---\nkernelspec:\n  name: python3\n---\n")
    assert [(c["chapter"], c["id"], c["holds"]) for c in gather(tmp_path)] == [("x", "a", True), ("x", "b", False)]
    (tmp_path / "x.ipynb").unlink()
    with pytest.raises(SystemExit, match="make chapters CHAPTER=x"):
        gather(tmp_path)


def test_a_kernel_takes_the_packages_of_its_own_checkout(tmp_path, monkeypatch):
    """An environment that two checkouts share names one of them in its .pth file."""
    (tmp_path / "bookkit").mkdir()
    (tmp_path / "bookkit" / "__init__.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, "-c", "import bookkit; print(bookkit.__file__)"]
    found = subprocess.run(command, env=kernel_environment(), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(BOOK / "bookkit" / "__init__.py")


def test_every_chapter_ends_with_claims_and_the_register_is_up_to_date():
    without = [path.stem for path in BOOK.glob("[!_]*.ipynb") if MIME not in path.read_text(encoding="utf8")]
    assert without == []
    assert json.loads((BOOK / "claims.json").read_text(encoding="utf8")) == gather(), "run: python -m tools.claims"


def test_the_register_names_no_claim_and_no_chapter_that_is_gone():
    known = {f"{claim['chapter']}:{claim['id']}" for claim in json.loads((BOOK / "claims.json").read_text())}
    assert (len(FIRST), set(FIRST) - known) == (10, set())
    assert {name for names in ABOUT.values() for name in names} - {path.stem for path in BOOK.glob("*.ipynb")} == set()


# --- small parts of tools whose whole takes minutes


def test_other_seeds_finds_all_whose_seeds_it_shifts():
    code = other_seeds.SHIFT + "print(all(hasattr(f, '__wrapped__') for f in (pm.sample, sampling.sample_nuts)))"
    found = subprocess.run([sys.executable, "-c", code], env=kernel_environment(), capture_output=True, text=True)
    assert (found.stdout, found.returncode) == ("True\n", 0), found.stderr


def test_the_pdf_has_the_front_page_and_then_every_page_of_the_contents():
    pages = pdf.list_pages()
    assert pages[0] == (None, "book/index.html")
    listed = [str(path.with_suffix(".html").relative_to(BOOK.parent)) for path in find_chapters()]
    assert set(listed) <= {page for _, page in pages[1:]}
    assert len(set(pages)) == len(pages)


@pytest.mark.parametrize(("size", "dpi"), [((30, 20), 110), ((60, 40), 220)])
def test_a_picture_on_a_page_has_the_size_that_its_file_states(tmp_path, size, dpi):
    Image.new("RGB", size).save(tmp_path / "wide.png", dpi=(dpi, dpi))
    sized = re.sub('<img src="([^"]+)">', partial(add_size, tmp_path), '<img src="wide.png">')
    assert sized == '<img width="30" height="20" loading="lazy" src="wide.png">'


def test_a_fault_is_planted_where_its_text_is_there_once_and_taken_out_again(tmp_path, monkeypatch):
    fault = faults.Fault("toy.py", "it adds", "a * b", "a + b", ("tests/test_toy.py",))
    (tmp_path / "toy.py").write_text("def multiply(a, b):\n    return a * b\n")
    seen = []
    monkeypatch.setattr(faults, "run_tests", lambda folder, *_: seen.append((folder / "toy.py").read_text()))
    faults.judge(tmp_path, fault)
    assert "a + b" in seen[0]
    assert "a * b" in (tmp_path / "toy.py").read_text()
    (tmp_path / "toy.py").write_text("a * b, a * b")
    with pytest.raises(ValueError, match="its text is there 2 times; wanted: once"):
        faults.judge(tmp_path, fault)


def test_every_fault_fits_its_source():
    plants = [(fault, (faults.ROOT / fault.file).read_text(encoding="utf-8")) for fault in faults.read_faults()]
    odd = [f"{f.file}: {f.what}: {text.count(f.old)} times" for f, text in plants if text.count(f.old) != 1]
    assert odd == [], "the text that a fault changes is to be in its source once"
    assert [f.tests for f, _ in plants if not f.tests] == []
