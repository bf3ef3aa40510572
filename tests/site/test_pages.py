"""What single pages and their parts do: the search, the front page, sliders, code that wraps; and what makes them."""

from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from book_meta import summarise
from book_search import prepare
from bs4 import BeautifulSoup
from docutils.core import publish_doctree
from tools import pictures
from tools.browser import find_axe_violations, open_context, open_page, open_tab

ROOT = Path(__file__).parents[2]

BOOK = ROOT / "book"

# --- the search

QUERIES = {  # a page that is among the first three, by a section
    "epistemic": "flat_advi.html#noise-and-ignorance",
    "R-hat": "glossary.html#term-R-hat",
    "MCMC": "glossary.html#term-MCMC",
    "partial pooling": "glossary.html#term-multilevel-model",
    "fit_advi": "api.html#where-each-name-is",
    "GPU": "engines.html#when-does-a-gpu-pay",
    "dropout": "replication.html#who-is-in-the-table-and-what-each-was-given",
    "missing data": "own_data.html#from-a-table-to-a-split",
    "how long does it take": "running.html#run-it-yourself",
    "predict new group": "own_file.html#a-hive-that-nobody-has-weighed",
    "homework solutions": "teach/assignments.html#a-course-folder",
    "hierarchical model": "hierarchical_nuts.html#the-whole-program",
    "memory": "running.html#what-a-chapter-costs",
    "lme4": "when_to_use.html#what-else",
    "variational inference": "primer.html#advi-fit-a-normal-to-the-hill",
    "pytorch shrinkage": "flat_advi.html#the-network-in-pymc",  # on no page are both
}
SEARCH = """async ([root, query]) => {
    const { createInstance } = await import(root + "_static/search/pagefind.js");
    const { results } = await createInstance().search(query);
    const pages = await Promise.all(results.slice(0, 3).map(result => result.data()));
    return pages.flatMap(page => page.sub_results).map(({ url, excerpt }) => [url, excerpt]);
}"""
FIELD, RESULT = "pagefind-modal input", "pagefind-modal .pf-results a"


def test_a_query_leads_to_the_section_that_explains_it(site, address, chromium):
    complaints = []
    with open_page(chromium, f"{address}book/cite.html") as (page, log):
        for query, section in QUERIES.items():
            found = {url.lstrip("/"): excerpt for url, excerpt in page.evaluate(SEARCH, [address, query])}
            if f"book/{section}" not in found:
                complaints.append(f"{query}: {', '.join(found)}")
            for url in map(urlsplit, found):
                if f'id="{unquote(url.fragment)}"' not in (site / url.path).read_text(encoding="utf8"):
                    complaints.append(f"{query}: there is no {url.geturl()}")
        assert complaints == []
        assert [url for url in log.requests if not url.startswith((address, "data:", "blob:"))] == []
        assert log.complaints == []


def test_the_keyboard_opens_the_search_and_a_result(address, chromium):
    with open_page(chromium, f"{address}book/cite.html") as (page, log):
        page.keyboard.press("Control+k")
        page.locator(FIELD).wait_for()
        page.keyboard.press("Escape")
        page.locator(FIELD).wait_for(state="hidden")
        page.keyboard.press("Control+k")
        page.wait_for_function("document.activeElement.matches('input[type=search]')")
        page.keyboard.type("shrinkage")
        page.locator(RESULT).first.wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/book/glossary.html*")
        page.goto(f"{address}search.html?q=shrinkage")  # a query in an address
        page.locator('main .pf-results a[href*="hierarchical_nuts"]').first.wait_for()
        assert page.locator("main input").input_value() == "shrinkage"
        assert log.complaints == []


@pytest.mark.parametrize(
    ("width", "theme", "button"),
    [(390, "dark", ".article-header-buttons .search-button"), (1440, "light", ".brand .search-opens")],
)
def test_the_search_fits_and_axe_finds_nothing(address, chromium, width, theme, button):
    with open_page(chromium, f"{address}book/cite.html", width=width, theme=theme) as (page, _):
        page.locator(button).click()
        page.locator(FIELD).fill("R-hat")
        page.locator(RESULT).first.wait_for()
        box = page.locator("pagefind-modal dialog").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert find_axe_violations(page) == []


def test_headings_terms_and_names_carry_the_ids_that_results_lead_to_and_formulas_become_text():
    page = prepare(
        '<article class="a"><section id="noise">\n<span id="sec-page-noise"></span><h2>Noise</h2><p>An <em>error</em>, '
        r'<span class="math notranslate nohighlight">\(\mathrm{N}(0, \sigma) &lt; 1\)</span></p></section>'
        '<dt id="term-x">x</dt><dt class="sig sig-object py" id="hbnn.f">f</dt></article>',
        2,
    )
    assert '<article data-pagefind-body data-pagefind-weight="2" class="a">' in page
    assert '<h2 id="noise" data-pagefind-weight="8">Noise</h2>' in page
    assert '<em data-pagefind-weight="6">error,</em> N(0, σ) &lt; 1</p>' in page
    assert '<h3 id="term-x" data-pagefind-weight="8">x</h3><h3 id="hbnn.f" data-pagefind-weight="8">f</h3>' in page


# --- descriptions


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("One sentence. Another.", "One sentence. Another."),
        (f"A promise. {'Long' * 80}.", "A promise."),
        (".. note:: In a box.\n\nIn the page.", "In the page."),
    ],
)
def test_a_description_is_a_page_s_first_sentences(text, summary):
    assert summarise(publish_doctree(f"One\n===\n\n{text}\n\nTwo\n===\n\nMore.")) == summary


def test_a_link_says_on_hover_what_stands_at_its_term_or_section(site):
    page = BeautifulSoup((site / "book" / "group_sd.html").read_text(encoding="utf8"), "html.parser")
    said = {link["href"]: link.get("title", "") for link in page.select("article a.reference.internal[href]")}
    assert said["glossary.html#term-camp"].startswith("A part of the posterior that a chain does not leave.")
    assert said["hierarchical_nuts.html#sec-hierarchical-nuts-model"].startswith("The whole program. ")


# --- what the bar and the pictures offer


def test_one_switch_opens_all_code_and_is_remembered(address, chromium):
    closed = "[...document.querySelectorAll('details.hide')].filter((fold) => !fold.open).length"
    with open_context(chromium) as context:
        with open_tab(context, f"{address}book/moons.html") as (page, _):
            assert page.evaluate(closed) > 3
            page.get_by_role("button", name="Code: show all of it").press("Enter")
            assert page.evaluate(closed) == 0
        with open_tab(context, f"{address}book/unpooled.html") as (page, _):
            assert page.evaluate(closed) == 0
            page.get_by_role("button", name="Code: show all of it").click()
            assert page.evaluate(closed) > 3
        with open_tab(context, f"{address}book/primer.html") as (page, _):
            assert page.locator(".folds-switch").filter(visible=True).count() == 0


def test_a_link_into_a_fold_opens_it(address, chromium):
    in_view = """(id) => {
        const element = document.getElementById(id), { top, bottom } = element.getBoundingClientRect();
        return element.checkVisibility() && bottom >= 0 && top < innerHeight;
    }"""
    with open_page(chromium, f"{address}book/moons.html") as (page, log):
        hidden = page.evaluate("""() => [...document.querySelectorAll("[id^=claim-], .toggle-hidden [id]")].filter(
            (e) => !e.matches("button") && !e.checkVisibility()).map((e) => e.id)""")
        for anchor in (hidden[0], hidden[-1]):
            page.evaluate("(anchor) => { location.hash = anchor; }", anchor)
            page.wait_for_function(in_view, arg=anchor)
        assert log.complaints == []


def test_a_picture_grows_and_says_what_it_shows(address, chromium):
    with open_page(chromium, f"{address}book/unpooled.html", width=390) as (page, log):
        figure = page.locator("#fig-unpooled-six")
        box, picture, button = map(figure.locator, (".growing", "img", "button.enlarge"))
        assert box.bounding_box()["width"] <= 390
        assert button.get_attribute("aria-label").startswith("Enlarge Fig. ")
        button.press("Enter")
        large = page.locator("dialog.enlarged img")
        assert large.get_attribute("alt") == picture.get_attribute("alt")
        assert large.bounding_box()["width"] > 2 * box.bounding_box()["width"]
        page.keyboard.press("Escape")
        assert not large.is_visible()
        assert log.complaints == []


def test_on_a_phone_each_claim_is_a_card_with_a_verdict_in_words_and_a_sign(address, chromium):
    with open_page(chromium, f"{address}book/claims_register.html", width=390) as (page, _):
        row = page.locator("article table.bnn tbody tr").first
        cells = [cell.bounding_box() for cell in row.locator("th, td").all()]
        assert all(below["y"] >= above["y"] + above["height"] - 1 for above, below in pairwise(cells))
        assert all(cell["x"] + cell["width"] <= 390 for cell in cells)
        labels = row.locator("td").evaluate_all("cells => cells.map(e => getComputedStyle(e, '::before').content)")
        assert labels == ['"Value"', '"Criterion"', '"Set"', '"Whose"', '"Verdict"']
        for verdict, words, sign in (("yes", "holds", "✓"), ("no", "does not hold", "✗")):
            look = page.locator(f"td.verdict.{verdict}").first.evaluate(
                "e => [e.textContent, getComputedStyle(e, '::after').content[1]]"
            )
            assert look == [words, sign]


# --- pictures that move

SLIDERS = [name for name, made in pictures.MADE.items() if made.kind == "slider"]


@pytest.mark.parametrize("name", SLIDERS)
def test_the_arrow_keys_move_a_slider(address, chromium, name):
    with open_page(chromium, f"{address}book/{pictures.MADE[name].chapter}.html") as (page, log):
        box = page.locator(".frames", has=page.locator(f"#frames-{name}"))
        box.locator("input").focus()
        page.keyboard.press("Home")
        slider = pictures.read_json(name)
        for k, frame in enumerate(slider["frames"]):
            assert box.locator("img").get_attribute("alt") == frame["alt"]
            assert box.locator("img").get_attribute("src").endswith(f"/{name}-{k}.png")
            size = box.locator("img").evaluate(
                "async (e) => { await e.decode(); return [e.naturalWidth, e.naturalHeight]; }"
            )
            assert size == [2 * slider["width"], 2 * slider["height"]]
            assert box.locator("output").inner_text() == frame["value"]
            assert box.locator("input").get_attribute("aria-valuetext") == frame["value"]
            page.keyboard.press("ArrowRight")
        assert log.complaints == []


# --- code whose lines wrap


def copy(page, button):
    """Press a button that copies, and return what it copied."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button.click()
    page.wait_for_function("navigator.clipboard.readText()")
    return page.evaluate("navigator.clipboard.readText()")


def test_code_that_wraps_is_copied_as_it_was_written_and_hangs(address, chromium):
    start = "def vary(name, *dims):"
    wrapped = 'pm.Normal("y", (h * w2).sum(axis=1) + b2, pm.HalfNormal("noise", 1), observed=y)'
    cells = nbformat.read(BOOK / "own_file.ipynb", as_version=4).cells
    source = next(cell.source for cell in cells if cell.cell_type == "code" and f"\n{start}" in f"\n{cell.source}")
    assert "\n\n\n" in source  # lines without a character, too
    with open_page(chromium, f"{address}book/own_file.html", width=390) as (page, _):
        box = page.locator("div.cell_input", has_text=start).first
        box.hover()
        assert copy(page, box.locator("button.copybtn")) == source
        selected = box.locator("pre").evaluate("e => (getSelection().selectAllChildren(e), getSelection().toString())")
        assert selected.rstrip("\n") == source
        line = box.locator(".line", has_text=wrapped)
        assert line.evaluate("e => parseFloat(getComputedStyle(e).textIndent)") < -5


def test_an_example_is_copied_without_its_prompts_and_output(address, chromium):
    with open_page(chromium, f"{address}book/api_sampling.html") as (page, _):
        button = page.locator('dl:has(> dt[id="hbnn.sampling.derive_seed"]) button.copybtn')
        assert copy(page, button) == "from hbnn import sampling\nsampling.derive_seed(1)"
