"""What must hold for every chapter before it is run again; nbval then runs it."""

import checks
import jupytext
import nbformat
import pytest
from tools import chapters

CHAPTERS = chapters.find_chapters()


@pytest.fixture(params=CHAPTERS, ids=[path.stem for path in CHAPTERS], scope="module")
def md(request):
    """The path of a chapter's md file."""
    return request.param


@pytest.fixture(scope="module")
def nb(md):
    """The stored notebook of a chapter."""
    path = md.with_suffix(".ipynb")
    assert path.exists(), f"{path.name} is missing: run `make chapters`"
    return nbformat.read(path, as_version=4)


def expect_none(complaints):
    assert not complaints, "\n" + "\n".join(complaints)


def test_md_and_ipynb_are_in_step(md, nb):
    expect_none(checks.find_differences(nb, jupytext.read(md, fmt="md:myst")))


def test_every_cell_was_executed_once_and_in_order(nb):
    expect_none(checks.find_unexecuted(nb))


def test_the_code_is_what_was_run(nb):
    expect_none(checks.find_stale(nb))


def test_outputs_and_their_origin_are_as_they_were_written(nb):
    expect_none(checks.find_unsealed(nb))


def test_no_cell_is_long(nb):
    expect_none(checks.find_long(nb))


def test_every_picture_has_alt_text_and_caption(nb):
    expect_none(checks.find_undescribed(nb))


def test_no_picture_is_blank(nb):
    expect_none(checks.find_blank(nb))


def test_no_cell_failed(nb):
    expect_none(checks.find_errors(nb))


def test_stderr_holds_only_warnings_about_divergences(nb):
    expect_none(checks.find_stderr(nb))


def test_the_notebook_is_small(md):
    expect_none(checks.find_oversize(md.with_suffix(".ipynb")))


def test_every_draw_is_seeded(nb):
    expect_none(checks.find_unseeded(nb))


def test_no_cell_looks_at_a_clock(nb):
    expect_none(checks.find_clocks(nb))


def test_every_number_can_be_compared(nb):
    expect_none(checks.find_malformed(nb))


def test_all_copies_of_a_number_agree(nb):
    expect_none(checks.find_disagreeing(nb))


def test_every_error_has_enough_digits(nb):
    expect_none(checks.find_coarse(nb))


def test_an_ignored_output_says_why(nb):
    expect_none(checks.find_evasions(nb.cells))


def test_every_notebook_has_its_md():
    notebooks = {path.stem for path in chapters.BOOK.glob("*.ipynb") if not path.name.startswith("_")}
    assert notebooks <= {path.stem for path in CHAPTERS}, "an ipynb is written only by executing its md"
