"""The decks: what they show is what the chapters hold, and a lecturer can stand before a class with them.

axe-core takes half a second for a slide of a whole deck, so it runs on each deck in print view, where every slide is
visible at once, and on screen, with its controls, on the first slide, one in the middle and the last.
"""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import lots
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from pypdf import PdfReader
from test_site import ROOT, chromium, expect_none, site
from tools.browser import find_axe_violations, open_context, open_tab, serve

sys.path.append(str(ROOT / "book" / "_ext"))  # as Sphinx does for the build


import book_slides
from book_pages import list_terms
from tools import slide_figures

__all__ = ["chromium", "site"]  # fixtures of the site's tests
SOURCE = ROOT / "book" / "teach" / "slides"
DECKS = {path.stem: 60 if path.stem.startswith("workshop") else 90 for path in sorted(SOURCE.glob("w*.md"))}
every_deck = pytest.mark.parametrize("name", DECKS)
some_decks = pytest.mark.parametrize("name", lots.draw(DECKS, 4))
LEAST_TEXT, LEAST_CODE, LEAST_LABEL = 32, 24, 20  # pixels at 1080p
LEAST_SCALE = 0.9  # how much larger than in the chapter is a figure that was not yet drawn for its slide
COURSES = {"workshop": [name for name in DECKS if name.startswith("workshop")],
           "six weeks": [name for name in DECKS if name.startswith("week")]}  # fmt: skip
EVERYDAY = {"claim", "evidence", "study", "temperature"}  # words of the glossary that slides use as everybody does


def build(source, target, *options):
    """Build decks from scratch, warnings as errors; returns the finished process."""
    command = [sys.executable, "-m", "sphinx", "-b", "revealjs", "-W", "-n", "-q", "-E", *options, source, target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def folder(site):
    """The folder of the decks, which are built with the site."""
    return site / "slides"


def read_slides(folder, name):
    """The slides of a deck: the innermost sections."""
    page = BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf8"), "html.parser")
    return page.select(".slides section section")


def read_minutes(slide):
    """The minutes that a slide's notes begin with."""
    return int(re.fullmatch(r"(\d+) min", slide.select_one("aside.notes p").get_text(strip=True))[1])


def list_visible_words(slide):
    """The words of a slide but for its notes, small print, code, tables and mathematics."""
    copy = BeautifulSoup(str(slide), "html.parser")
    for hidden in copy.select("aside, .small, .code, table, .math, .live"):
        hidden.decompose()
    return copy.get_text(" ").split()


# --- what a deck holds


def test_there_is_a_deck_for_each_session():
    assert list(DECKS) == [*(f"week-{n}" for n in range(1, 7)), *(f"workshop-{n}" for n in range(1, 4))]


@every_deck
def test_a_deck_has_twelve_to_twenty_one_slides(folder, name):
    assert 12 <= len(read_slides(folder, name)) <= 21


@every_deck
def test_the_minutes_in_the_notes_fill_the_session(folder, name):
    assert sum(map(read_minutes, read_slides(folder, name))) == DECKS[name]


@every_deck
def test_the_speaker_views_clock_has_the_minutes_of_the_notes(folder, name):
    slides = read_slides(folder, name)
    assert [int(slide["data-timing"]) for slide in slides] == [60 * read_minutes(slide) for slide in slides]


@every_deck
def test_five_to_ten_minutes_are_left_for_questions(folder, name):
    (questions,) = [slide for slide in read_slides(folder, name) if "your questions" in slide.get_text()]
    assert 5 <= read_minutes(questions) <= 10


@every_deck
def test_every_slide_has_notes_that_say_something(folder, name):
    assert min(len(slide.select_one("aside.notes").get_text().split()) for slide in read_slides(folder, name)) >= 15


@every_deck
def test_a_slide_has_a_title_and_at_most_forty_words(folder, name):
    complaints = []
    for number, slide in enumerate(read_slides(folder, name), 1):
        words = list_visible_words(slide)
        if slide.find(["h1", "h2"]) is None or len(words) > 40:
            complaints.append(f"slide {number}: {len(words)} words: {' '.join(words)[:80]}")
    expect_none(complaints)


@every_deck
def test_no_claim_is_quoted_as_it_is_printed(folder, name):
    claims = json.loads((ROOT / "book" / "claims.json").read_text(encoding="utf8"))
    values = {claim["value"] for claim in claims}
    links = [link for slide in read_slides(folder, name) for link in slide.select("a[href*='#claim-']")]
    said = [link.get_text() for link in links if link.find_parent("aside") is None]
    expect_none([words for words in said if words in values and re.search("[±=~:;(]", words)])


def find_untaught(slides):
    """Words of the glossary that a course's slides say before one teaches them: lines of text.

    `slides`: of the whole course, in order; what the room hears counts, too.
    """
    words = [word for word in list_terms() if word not in EVERYDAY]
    cases = {word: 0 if word[1:2].isupper() else re.IGNORECASE for word in words}  # "ESS" is not the end of "less"
    patterns = {word: re.compile(rf"\b{re.escape(word)}(?:s|es)?\b", flags=cases[word]) for word in words}
    known, found = set(), []
    for slide in slides:
        known |= set(slide.get("data-teaches", "").split("; "))
        copy = BeautifulSoup(str(slide), "html.parser")
        for apart in copy.select("code, .code, .math, .live, .small, a[href*='../book/']"):
            apart.decompose()
        text = copy.get_text(" ")
        found += [f"{word}: {copy.h2 and copy.h2.get_text()}" for word, pattern in patterns.items()
                  if word not in known and pattern.search(text)]  # fmt: skip
    return found


@pytest.mark.parametrize("course", COURSES)
def test_no_word_of_the_glossary_is_used_before_its_slide(folder, course):
    expect_none(find_untaught([slide for name in COURSES[course] for slide in read_slides(folder, name)]))


def test_a_word_that_is_not_taught_is_found():
    page = "<section><h2>A title</h2>R-hat is 2.</section><section data-teaches='R-hat; ESS'>R-hat, ESS</section>"
    assert find_untaught(BeautifulSoup(page, "html.parser").select("section")) == ["R-hat: A title"]


def test_what_slides_teach_is_in_the_glossary(folder):
    slides = [slide for name in DECKS for slide in read_slides(folder, name)]
    taught = {word for slide in slides for word in slide.get("data-teaches", "").split("; ") if word}
    assert taught - set(list_terms()) == set()


def list_figures():
    """Every figure that a deck shows: (chapter, name)."""
    sources = "\n".join(path.read_text(encoding="utf8") for path in sorted(SOURCE.rglob("*.md")))
    return [(chapter, name) for chapter, name, _ in slide_figures.DIRECTIVE.findall(sources)]


@every_deck
def test_every_picture_comes_out_of_a_chapter_and_says_what_it_shows(folder, name):
    of_figure = {figure: chapter for chapter, figure in list_figures()}
    images = [image for slide in read_slides(folder, name) for image in slide.select("figure:not([id]) > img")]
    assert images
    for image in images:
        figure = Path(image["src"]).stem
        on_page, alt = book_slides.find_figure(of_figure[figure], figure)
        asked = slide_figures.list_wanted(of_figure[figure])[figure]
        shown = (folder / image["src"]).read_bytes()
        assert shown == (slide_figures.find_drawn(figure, on_page, asked) or on_page)
        assert asked["panels"] or image["alt"] == alt


@pytest.mark.parametrize("chapter", sorted({chapter for chapter, _ in list_figures()}))
def test_a_chapters_figures_were_drawn_for_the_slides(chapter):
    nb = json.loads((ROOT / "book" / f"{chapter}.ipynb").read_text(encoding="utf8"))
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"])
    assert not slide_figures.list_stale(nb, slide_figures.list_wanted(chapter)), "`chapters.py NAME` draws them"


def test_a_picture_of_an_older_page_or_of_another_shape_is_not_shown(monkeypatch):
    path = min(slide_figures.FIGURES.glob("*.png"))
    origin = slide_figures.read_origin(path)
    asked = origin["asked"]
    assert slide_figures.find_drawn(path.stem, b"another page", asked) is None
    monkeypatch.setattr(slide_figures, "digest", lambda page: page.decode())
    assert slide_figures.find_drawn(path.stem, origin["page"].encode(), asked) == path.read_bytes()
    assert slide_figures.find_drawn(path.stem, origin["page"].encode(), asked | {"panels": [17]}) is None
    assert slide_figures.find_drawn("fig-nobody", b"", asked) is None


def test_no_picture_is_kept_that_no_slide_shows():
    assert {path.stem for path in slide_figures.FIGURES.glob("*.png")} <= {name for _, name in list_figures()}


@pytest.mark.parametrize("path", sorted(slide_figures.FIGURES.glob("*.png")), ids=lambda path: path.stem)
def test_a_figure_has_two_pixels_for_each_of_the_slides_and_legible_letters(path):
    width, height = book_slides.measure_picture(path)
    origin = slide_figures.read_origin(path)
    room = slide_figures.AREAS[origin["asked"]["shape"]]
    with Image.open(path) as picture:
        assert picture.size >= (2 * width, 2 * height)
    assert max(width / room[0], height / room[1]) > 0.9
    assert origin["least"] >= LEAST_LABEL


@every_deck
def test_the_last_slide_says_what_comes_next_and_how_to_cite(folder, name):
    last = read_slides(folder, name)[-1].get_text(" ")
    assert all(words in last for words in ("Three lines", "Next:", "CC BY 4.0", "MIT", "Cite:"))


def test_every_shared_slide_is_shown_in_some_deck():
    decks = "".join(path.read_text(encoding="utf8") for path in SOURCE.glob("*.md"))
    included = set(re.findall(r"\{include\} parts/(\S+)", decks))
    assert included == {path.name for path in (SOURCE / "parts").iterdir()}


# --- what cannot be shown is an error that says what can

REFUSED = {
    "a figure that is not there": ("```{chapter-figure} moons fig-nothing\n```", "fig-moons-tasks"),
    "a chapter that is not there": ("```{chapter-figure} muons fig-moons-tasks\n```", "flat_advi"),
    "code that is not there": ("```{chapter-code} yardsticks def nothing\n```", "def arc(y, t):"),
    "too many lines": ("```{chapter-code} names_checked build\n```", "at most 16"),
    "a line that is not there": ("```{chapter-code} yardsticks spaced\n:from: nothing\n```", "def spaced(n):"),
    "a table that is not there": ("```{chapter-table} yardsticks Nothing\n```", "The data sets of this book"),
    "a column that is not there": ("```{chapter-table} yardsticks Flat moons:\n:columns: nothing\n```", "Accuracy (%)"),
    "a link to no chapter": ("{chapter}`muons`", "flat_advi"),
    "a number that a claim has not": ("{number}`{3:.1f} <yardsticks:limit-arcs>`", "with the numbers [97.1, 91.46]"),
    "a number of no claim": ("{number}`{:.1f} <yardsticks:nothing>`", "yardsticks:limit-arcs"),
    "a live box that is not there": ("```{live-box} nothing\n```", "'moons', 'tie', 'digits'"),
    "a row to show later that is not there": (
        "```{chapter-table} yardsticks Three kinds\n:later: nothing\n```",
        "logistic, per category",
    ),
    "notes without minutes": (":::{notes}\nSay.\n:::", "1 argument(s) required"),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """What a build of faulty decks says, by deck."""
    source = tmp_path_factory.mktemp("faulty")
    settings = f"import sys\nsys.path.insert(0, {str(SOURCE)!r})\nfrom conf import *\ntemplates_path = []\ndel setup\n"
    (source / "conf.py").write_text(settings, encoding="utf8")
    for name, (content, _) in {"index": ("", ""), **REFUSED}.items():
        (source / f"{name}.md").write_text(f"# A deck\n\n{content}\n", encoding="utf8")
    said = build(source, source / "built", "--keep-going").stderr.splitlines()
    return {name: [line for line in said if Path(line.partition(".md:")[0]).name == name] for name in REFUSED}


@pytest.mark.parametrize("what", REFUSED)
def test_a_deck_is_refused_with_what_there_is(refusals, what):
    (error,) = [line for line in refusals[what] if "ERROR" in line]
    assert REFUSED[what][1] in error


def test_long_lines_of_code_are_refused():
    with pytest.raises(ValueError, match="a line of 150 letters; wanted: at most 117"):
        book_slides.fit_code("x" * 150)


def test_many_lines_of_code_are_refused():
    with pytest.raises(ValueError, match="17 lines of code; wanted: at most 16"):
        book_slides.fit_code("x\n" * 17)


def test_a_cut_of_code_goes_from_one_line_to_the_first_behind_it_that_holds_the_other():
    source = "end = 0\nif end:\n    start = 1  # fmt: skip\n    end = 2\n    end = 3"
    assert book_slides.cut_code(source, "start", "end") == "start = 1\nend = 2"


def test_code_is_as_large_as_its_longest_line_allows():
    assert book_slides.fit_code("x") == 34
    assert LEAST_CODE <= book_slides.fit_code("x" * 110) < 34


def test_long_tables_are_refused():
    with pytest.raises(ValueError, match="9 rows of 2 columns; wanted: at most 8 of 6"):
        book_slides.choose([["a", "b"], *([str(n), ""] for n in range(9))])


def test_rows_and_columns_come_in_the_order_asked_for():
    table = [["", "a", "b"], ["x", "1", "2"], ["y", "3", "4"]]
    assert book_slides.choose(table, rows=["y", "x"], columns=["b"]) == [["", "b"], ["y", "4"], ["x", "2"]]


def test_a_claims_numbers_are_rounded_and_its_errors_left_out():
    value = "1.250 ± 0.042 (n=9) times the steps to 1,500 nats, p = 1e-06"
    assert book_slides.round_claim(value, "{:.1f} times, {1:,.0f} nats".replace("{:", "{0:")) == "1.2 times, 1,500 nats"


# --- in a browser

GO = """async (looks) => {  // to every slide in turn; what each of `looks` (functions by name) finds there
  const found = {}, slides = Reveal.getSlides();
  for (const [i, slide] of slides.entries()) {
    const { h, v } = Reveal.getIndices(slide);
    Reveal.slide(h, v);
    while (Reveal.availableFragments().next) Reveal.nextFragment();
    await new Promise((done) => requestAnimationFrame(done));
    for (const [name, look] of Object.entries(looks))
      (found[name] ??= []).push(...(0, eval)(look)(slide).map((what) => `slide ${i + 1}: ${what}`));
  }
  return found;
}"""
MISSING = "(slide) => [...slide.querySelectorAll('img')].filter((i) => !i.naturalWidth).map((i) => i.src)"
OUTSIDE = """(slide) => [
  slide, ...slide.querySelectorAll(":not(aside, aside *, mjx-assistive-mml *, .visually-hidden"
    + ", .live-keys, .live-advi, .live-spoken, [data-do=share])")
].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.left < -1 || box.top < -1 || box.right > 1921 || box.bottom > 1045  // the deck's name stands below
    && e !== slide || e.scrollWidth > e.clientWidth + 1 && e.matches(".code, section");
}).map((e) => e.outerHTML.slice(0, 100))"""
SMALL = f"""(slide) => {{
  const found = [], texts = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {{
    const e = texts.currentNode.parentElement, code = e.closest(".code") !== null;
    const unseen = "aside, .math, mjx-container, .live-spoken, .live-keys, .visually-hidden";
    if (!texts.currentNode.data.trim() || e.closest(unseen)
      || !e.checkVisibility({{ visibilityProperty: true }})) continue;
    const size = parseFloat(getComputedStyle(e).fontSize) * Reveal.getScale();
    if (size < (e.closest(".live") ? {LEAST_LABEL} : code || e.matches("code") ? {LEAST_CODE} : {LEAST_TEXT}))
      found.push(`${{size}} px: ${{texts.currentNode.data}}`);
  }}
  return found;
}}"""
SHRUNK = f"""(slide) => [...slide.querySelectorAll("figure:not([id]) > img")].filter((image) =>
  Math.min(image.clientWidth / image.getAttribute("width"), image.clientHeight / image.getAttribute("height"))
    < (image.getAttribute("width") > 900 ? {LEAST_LABEL} / 24 : {LEAST_SCALE})
).map((image) => `${{image.src}} at ${{image.clientHeight / image.getAttribute("height")}} of its size`)"""


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


@pytest.fixture(scope="module", params=lots.draw(["index", *DECKS], 3))
def deck(request, address, window):
    """A deck on a 1080p screen, the log of its tab, and what was seen on a way through all slides."""
    with open_tab(window, f"{address}{request.param}.html") as (page, log):
        page.set_viewport_size({"width": 1920, "height": 1080})
        page.wait_for_function("Reveal.isReady() && Reveal.getScale() === 1")
        yield page, log, page.evaluate(GO, {"missing": MISSING, "outside": OUTSIDE, "small": SMALL, "shrunk": SHRUNK})


def test_a_deck_loads_in_peace_and_from_its_own_host(deck, address):
    _, log, seen = deck
    expect_none(seen["missing"])
    expect_none(log.complaints)
    expect_none([url for url in log.requests if not url.startswith((address, "data:", "blob:"))])


def test_every_slide_fits_the_screen(deck):
    expect_none(deck[2]["outside"])


def test_letters_can_be_read_from_the_back_row(deck):
    expect_none(deck[2]["small"])


def test_figures_are_large(deck):
    expect_none(deck[2]["shrunk"])


def test_axe_finds_nothing_on_screen(deck):
    page, *_ = deck
    for share in (0, 0.5, 1):
        page.evaluate("(share) => Reveal.slide(Math.round(share * (Reveal.getTotalSlides() - 1)))", share)
        expect_none(find_axe_violations(page))


def test_the_right_arrow_goes_through_all_slides_and_the_left_one_back(deck):
    page, *_ = deck
    page.evaluate("Reveal.slide(0)")
    total = page.evaluate("Reveal.getTotalSlides()")
    steps = page.evaluate("Reveal.getSlides().map((s) => new Set([...s.querySelectorAll('.fragment')]).size)")
    shown = []
    for _ in range(total + sum(steps)):
        shown.append(page.evaluate("Reveal.getSlidePastCount()"))
        page.keyboard.press("ArrowRight")
    assert shown == [number for number, waiting in enumerate(steps) for _ in range(1 + waiting)]
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("Reveal.getSlidePastCount()") == max(total - 1 - (steps[-1] == 0), 0)


def test_a_key_shows_the_answer_and_none_shows_before(folder, address, window):
    with open_tab(window, f"{address}workshop-1.html") as (page, _):
        page.wait_for_function("Reveal.isReady()")
        slide = "Reveal.getSlides().find((slide) => slide.querySelector('figure.uncover'))"
        page.evaluate(f"() => {{ const {{ h, v }} = Reveal.getIndices({slide}); Reveal.slide(h, v, -1); }}")
        picture = page.locator("section.present figure.uncover img")
        assert picture.evaluate("(image) => getComputedStyle(image).clipPath").startswith("inset(")
        page.keyboard.press("ArrowRight")
        assert picture.evaluate("(image) => getComputedStyle(image).clipPath") == "none"


def go_to_box(page, name):
    """Go to the slide of a live box."""
    page.wait_for_function("Reveal.isReady()")
    slide = f"Reveal.getSlides().find((slide) => slide.querySelector('{name}'))"
    page.evaluate(f"() => {{ const {{ h, v }} = Reveal.getIndices({slide}); Reveal.slide(h, v); }}")


@pytest.mark.parametrize(("name", "figure", "box"), [
    ("workshop-1", ".live-moons", ".live-box"), ("workshop-2", ".live-tie", ".live-box"),
    ("workshop-3", "#fig-digits-drawn", ".pad")])  # fmt: skip
def test_a_live_box_works_on_its_slide_and_keeps_the_arrows_to_itself(address, window, name, figure, box):
    with open_tab(window, f"{address}{name}.html") as (page, log):
        go_to_box(page, figure)
        found = page.locator(f"section.present {box}")
        found.wait_for(timeout=120_000)
        canvas = found.locator("canvas[tabindex]").first
        canvas.focus()
        before = page.evaluate("Reveal.getSlidePastCount()")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("Reveal.getSlidePastCount()") == before
        page.keyboard.press("PageDown")
        assert page.evaluate("Reveal.getSlidePastCount()") == before + 1
        expect_none(log.complaints)


def test_the_speakers_own_windows_run_no_live_box(address, window):
    with open_tab(window, f"{address}workshop-1.html?receiver") as (page, _):
        go_to_box(page, ".live-moons")
        page.wait_for_timeout(500)
        assert page.locator(".live-box").count() == 0


def test_the_language_and_the_title_are_said(deck):
    page, *_ = deck
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.title().endswith("— slides — Hierarchical Bayesian Neural Networks with PyMC")


@some_decks
def test_print_view_has_a_page_for_each_slide_and_axe_finds_nothing_on_any(folder, address, window, name):
    with open_tab(window, f"{address}{name}.html?print-pdf") as (page, log):
        page.wait_for_selector("html.reveal-print .pdf-page")
        assert page.locator(".pdf-page").count() == len(read_slides(folder, name))
        expect_none(find_axe_violations(page))
        expect_none(log.complaints)


def test_a_printed_deck_has_as_many_pages_as_slides(folder, address, window):
    with open_tab(window, f"{address}workshop-1.html?print-pdf") as (page, _):
        page.wait_for_selector("html.reveal-print .pdf-page")
        printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))
    assert len(printed.pages) == len(read_slides(folder, "workshop-1"))
    assert {tuple(map(float, sheet.mediabox)) for sheet in printed.pages} == {(0, 0, 1440, 810)}  # 1920 x 1080 pixels


def test_s_opens_the_speaker_view_with_the_notes_and_asks_no_other_host(folder, address, window):
    with open_tab(window, f"{address}workshop-1.html") as (page, log):
        page.context.on("request", lambda request: log.requests.append(request.url))
        page.keyboard.press("ArrowRight")
        with page.expect_popup() as popup:
            page.keyboard.press("s")
        notes = popup.value.locator(".speaker-controls-notes .value")
        notes.get_by_text("4 min").wait_for(timeout=15_000)
        said = read_slides(folder, "workshop-1")[1].select_one("aside.notes").get_text(" ").split()
        assert notes.inner_text().split() == said
        expect_none([url for url in log.requests if not url.startswith((address, "data:", "blob:", "about:"))])
