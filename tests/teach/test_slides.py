"""The decks: what they show is what the chapters hold, nothing is cut off, and a lecturer's keys work."""

import base64
import json
import subprocess
import sys
from pathlib import Path

import book_slides
import pytest
from bs4 import BeautifulSoup
from tools.browser import find_axe_violations, open_context, open_page, open_tab, serve

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "book" / "teach" / "slides"

DECKS = [path.stem for path in sorted(SOURCE.glob("w*.md"))]
VISITED = [pytest.param(name, marks=[] if name in ("week-3", "workshop-1") else pytest.mark.slow)
           for name in ("index", *DECKS)]  # fmt: skip


@pytest.fixture(scope="module")
def folder(site):
    """The folder of the decks, which are built with the site."""
    return site / "slides"


def read_slides(folder, name):
    """The slides of a deck: the innermost sections."""
    page = BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf8"), "html.parser")
    return page.select(".slides section section")


def list_cells():
    """The code cells of all chapters."""
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        yield from (cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code")


# --- what a deck holds


def test_every_figure_is_a_chapters_picture_with_its_alt_text(folder):
    figures = {}
    for cell in list_cells():
        if "figure" in (about := cell["metadata"].get("mystnb", {})):
            shown = [output["data"]["image/png"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
            figures[about["figure"]["name"]] = (shown and base64.b64decode(shown[0]), about["image"]["alt"])
    images = [image for name in DECKS for image in BeautifulSoup((folder / f"{name}.html").read_text(), "html.parser")
              .select("section figure:not([id]) > img")]  # fmt: skip
    assert len(images) > 50
    for image in images:
        assert ((folder / image["src"]).read_bytes(), image["alt"]) == figures[Path(image["src"]).stem]


def test_a_cut_of_code_goes_from_one_line_to_another_and_its_letters_are_as_large_as_the_longest_line_allows():
    assert [book_slides.fit_code("x" * length) for length in (1, 100, 200)] == [34, 28, 24]
    source = "end = 0\nif end:\n    start = 1  # fmt: skip\n    end = 2\n    end = 3"
    assert book_slides.cut_code(source, "start", "end") == "start = 1\nend = 2"


def test_numbers_are_rounded_and_a_claims_errors_left_out():
    value = "1.250 ± 0.042 (n=9) times the steps to 1,500 nats, p = 1e-06"
    assert book_slides.round_cell("0.2993 ± 0.0068 (n=9)") == "0.299 ± 0.007"
    assert book_slides.round_cell("14259 ± 1715") == "14,000 ± 2,000"
    assert book_slides.round_claim(value, "{0:.1f} times, {1:,.0f} nats") == "1.2 times, 1,500 nats"


REFUSED = {  # what cannot be shown, and what its error names: what there is
    "```{chapter-figure} moons fig-nothing\n```": "fig-moons-tasks",
    "```{chapter-figure} muons fig-moons-tasks\n```": "flat_advi",
    "```{chapter-code} replication def nothing\n```": "def score_neighbours(seed, scaling):",
    "```{chapter-code} replication score_neighbours\n:from: nothing\n```": "def score_neighbours(seed, scaling):",
    "```{chapter-table} replication Nothing\n```": "Three kinds of error",
    "```{chapter-table} replication Three kinds\n:columns: nothing\n```": "sd over data sets",
    "```{live-box} nothing\n```": "'moons', 'tie', 'digits'",
    "{chapter}`muons`": "flat_advi",
    "{number}`{3:.1f} <replication:scale-most-lpd>`": "with the numbers [55.5, 50.1]",
    "{number}`{:.1f} <replication:nothing>`": "replication:covers",
}


def test_what_is_asked_for_is_shown_or_is_an_error_that_says_what_there_is(tmp_path):
    table = [["", "a", "b"], ["x", "1", "2"], ["y", "3", "4"]]
    assert book_slides.choose(table, rows=["y", "x"], columns=["b"]) == [["", "b"], ["y", "4"], ["x", "2"]]
    settings = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\nfrom conf import *\ntemplates_path = []\ndel setup\n"
    (tmp_path / "conf.py").write_text(settings)
    (tmp_path / "index.md").write_text("\n\n".join(["# A deck", *REFUSED]) + "\n")
    command = [sys.executable, "-m", "sphinx", "-b", "revealjs", "-q", tmp_path, tmp_path / "built"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    errors = [line for line in said.splitlines() if "ERROR" in line]
    assert len(errors) == len(REFUSED)
    for error, wanted in zip(errors, REFUSED.values(), strict=True):
        assert wanted in error


# --- in a browser, on a 1080p screen

LOOK = """async () => {  // at every slide in turn, all its parts shown: pictures that miss, and what is cut off
  const found = [];
  for (const [i, slide] of Reveal.getSlides().entries()) {
    const { h, v } = Reveal.getIndices(slide);
    Reveal.slide(h, v);
    while (Reveal.availableFragments().next) Reveal.nextFragment();
    await new Promise((done) => requestAnimationFrame(done));
    const missing = [...slide.querySelectorAll("img")].filter((image) => !image.naturalWidth);
    const seen = slide.querySelectorAll(":not(aside, aside *, mjx-assistive-mml *, .visually-hidden, .live-keys"
      + ", .live-advi, .live-spoken, [data-do=share])");
    const outside = [slide, ...seen].filter((e) => e.checkVisibility()).filter((e) => {  // not of a closed fold
      const box = e.getBoundingClientRect();
      return box.left < -1 || box.top < -1 || box.right > 1921 || box.bottom > 1045  // the deck's name stands below
        && e !== slide || e.scrollWidth > e.clientWidth + 1 && e.matches(".code, section");
    });
    found.push(...[...missing, ...outside].map((e) => `slide ${i + 1}: ${e.outerHTML.slice(0, 100)}`));
  }
  return found;
}"""


@pytest.fixture(scope="module")
def address(folder):
    """The address at which the decks are served."""
    with serve(folder) as url:
        yield url


@pytest.fixture(scope="module")
def window(chromium):
    """One window for all decks: what they share is fetched and compiled once."""
    with open_context(chromium, width=1920) as context:
        yield context


def go_to(page, selector, fragment=0):
    """Go to the slide that holds what a selector names."""
    page.wait_for_function("Reveal.isReady()")
    slide = f"Reveal.getSlides().find((slide) => slide.querySelector('{selector}'))"
    page.evaluate(f"() => {{ const {{ h, v }} = Reveal.getIndices({slide}); Reveal.slide(h, v, {fragment}); }}")


@pytest.mark.parametrize("name", VISITED)
def test_every_slide_of_a_deck_fits_the_screen_and_axe_finds_nothing(address, window, name):
    with open_tab(window, f"{address}{name}.html") as (page, log):
        page.set_viewport_size({"width": 1920, "height": 1080})
        page.wait_for_function("Reveal.isReady() && Reveal.getScale() === 1")
        assert page.evaluate(LOOK) == []
        for share in (0, 0.5, 1):  # it takes half a second a slide
            page.evaluate("(share) => Reveal.slide(Math.round(share * (Reveal.getTotalSlides() - 1)))", share)
            assert find_axe_violations(page) == []
        assert log.complaints == []
        assert [url for url in log.requests if not url.startswith((address, "data:", "blob:"))] == []


def test_on_a_phone_a_deck_is_a_page_that_scrolls_with_all_its_parts(address, chromium):
    with open_page(chromium, f"{address}workshop-1.html", width=390) as (page, log):
        page.locator("#fig-live-moons").scroll_into_view_if_needed()
        page.locator(".live-box").wait_for(timeout=120_000)
        assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
        unseen = """[...document.querySelectorAll("section section :is(h1, h2, p, li, img, .code)")]
            .filter((e) => !e.closest("aside, .live"))
            .filter((e) => !e.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
            .map((e) => e.outerHTML)"""
        assert page.evaluate(unseen) == []
        assert find_axe_violations(page) == []
        assert log.complaints == []


def test_print_view_has_a_page_for_each_slide_and_axe_finds_nothing_on_any(folder, address, window):
    with open_tab(window, f"{address}workshop-2.html?print-pdf") as (page, log):
        page.wait_for_selector("html.reveal-print .pdf-page")
        assert page.locator(".pdf-page").count() == len(read_slides(folder, "workshop-2"))
        assert find_axe_violations(page) == []
        assert log.complaints == []


def test_the_right_arrow_shows_an_answer_and_then_the_next_slide(address, window):
    with open_tab(window, f"{address}workshop-1.html") as (page, _):
        go_to(page, "figure.uncover", fragment=-1)
        before = page.evaluate("Reveal.getSlidePastCount()")
        picture = page.locator("section.present figure.uncover img")
        assert picture.evaluate("(image) => getComputedStyle(image).clipPath").startswith("inset(")
        page.keyboard.press("ArrowRight")
        assert picture.evaluate("(image) => getComputedStyle(image).clipPath") == "none"
        page.evaluate("() => { while (Reveal.availableFragments().next) Reveal.nextFragment(); }")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.getSlidePastCount()") == before + 1


def test_a_live_box_works_on_its_slide_and_keeps_the_arrows_to_itself(address, window):
    with open_tab(window, f"{address}workshop-1.html") as (page, log):
        go_to(page, ".live-moons")
        box = page.locator("section.present .live-box")
        box.wait_for(timeout=120_000)
        box.locator("canvas[tabindex]").first.focus()
        before = page.evaluate("Reveal.getSlidePastCount()")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.getSlidePastCount()") == before
        page.keyboard.press("PageDown")
        assert page.evaluate("Reveal.getSlidePastCount()") == before + 1
        assert log.complaints == []


def test_s_opens_the_speaker_view_with_the_notes_and_without_live_boxes(folder, address, window):
    with open_tab(window, f"{address}workshop-1.html") as (page, _):
        page.keyboard.press("ArrowRight")
        with page.expect_popup() as popup:
            page.keyboard.press("s")
        notes = popup.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("4 min").wait_for(timeout=15_000)
        said = read_slides(folder, "workshop-1")[1].select_one("aside.notes").get_text(" ").split()
        assert notes.inner_text().split() == said
    with open_tab(window, f"{address}workshop-1.html?receiver") as (page, _):  # the deck in the view runs no live box
        go_to(page, ".live-moons")
        page.wait_for_timeout(500)
        assert page.locator(".live-box").count() == 0
