"""The search: the field's words lead to the sections that explain them, in its dialog, on its page, and from files."""

from urllib.parse import unquote, urlsplit

import pytest
from book_search import outline, run_pagefind, spell_formula
from docutils import nodes
from docutils.utils import new_document
from sphinx_exercise.nodes import solution_node
from test_site import WIDTH, address, chromium, count_ids, expect_none, site, weigh
from tools.browser import find_axe_violations, open_page

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests

FROM = "book/cite.html"  # a page on which none of these words stands
SECTIONS = {
    "aleatoric": "flat_advi.html#sec-flat-advi-uncertainty",
    "epistemic": "flat_advi.html#sec-flat-advi-uncertainty",
    "R-hat": "glossary.html#term-R-hat",
    "rhat": "glossary.html#term-R-hat",
    "shrinkage": "hierarchical_nuts.html#sec-hierarchical-nuts-pooling",
    "MCMC": "glossary.html#term-NUTS",
    "Hamiltonian": "glossary.html#term-NUTS",
    "multilevel": "glossary.html#term-pooling",
    "partial pooling": "hierarchical_nuts.html#sec-hierarchical-nuts-pooling",
    "credible interval": "moons.html#sec-moons-summary",
    "transfer learning": "informed_priors.html#sec-informed-priors-question",
    "few-shot": "informed_priors.html#sec-informed-priors-question",
    "fit_advi": "api.html#bnn.inference.fit_advi",
}
DIALOG, FIELD = "#pst-search-dialog", "#pst-search-dialog input"
DONE = """box => {
    const said = box.querySelector("[role=status]").innerText;
    const query = box.parentElement.querySelector("input").value.trim();
    return said.startsWith("The index") || said.startsWith("Nothing") && said.includes(`“${query}”`)
        || said.startsWith(`“${query}”`) && box.querySelector(".search-found > li");
}"""
FOUND = """box => [...box.querySelectorAll(".search-found > li")].map(page => ({
    links: [...page.querySelectorAll("a")].map(a => a.href),
    marked: [...page.querySelectorAll("mark")].map(mark => mark.innerText),
    snippets: [...page.querySelectorAll("p")].map(p => p.innerText),
}))"""


def wait_for_answer(page, box=f"{DIALOG} .search-box"):
    """The box below a field of the search, once it shows what was found for all that stands in the field."""
    element = page.locator(box).first.element_handle()
    page.wait_for_function(DONE, arg=element, timeout=10_000)
    return element


@pytest.fixture
def dialog(address, chromium):
    """A page on which the keyboard has just opened the search, and its log."""
    with open_page(chromium, address + FROM) as (page, log):
        log.requests.clear()
        page.keyboard.press("Control+k")
        yield page, log


# --- what is found


@pytest.mark.parametrize(("query", "section"), SECTIONS.items())
def test_a_word_leads_to_its_section_with_a_snippet_that_shows_it(site, address, dialog, query, section):
    page, log = dialog
    page.keyboard.type(query)
    first_pages = wait_for_answer(page).evaluate(FOUND)[:3]
    (found,) = [entry for entry in first_pages if f"{address}book/{section}" in entry["links"]]
    assert found["marked"]
    assert all(len(snippet.split()) > 5 for snippet in found["snippets"])
    expect_none(log.complaints)
    expect_none([url for url in log.requests if not url.startswith(address)])


@pytest.mark.parametrize("query", ["posterior", "prior", "network"])
def test_results_lead_to_places_that_exist(site, address, dialog, query):
    page, _ = dialog
    page.keyboard.type(query)
    links = [link.removeprefix(address) for entry in wait_for_answer(page).evaluate(FOUND) for link in entry["links"]]
    parts = [urlsplit(link) for link in links]
    assert len(parts) >= 8
    expect_none([part.geturl() for part in parts if unquote(part.fragment) not in count_ids(site, part.path)])


@pytest.mark.parametrize("query", ["xyzzy", "prior xyzzy"])
def test_what_is_not_in_the_book_is_not_found_and_the_glossary_is_offered(address, dialog, query):
    page, _ = dialog
    page.keyboard.type(query)
    wait_for_answer(page)
    assert page.locator(f"{DIALOG} .search-found > li").count() == 0
    status = page.locator(f"{DIALOG} [role=status]")
    assert status.inner_text().startswith(f"Nothing found for “{query}”.")
    assert status.locator("a").first.get_attribute("href") == f"{address}book/glossary.html"


def test_a_second_query_takes_the_place_of_the_first(dialog):
    page, _ = dialog
    page.keyboard.type("shrinkage")
    wait_for_answer(page)
    page.locator(FIELD).fill("")
    assert page.locator(f"{DIALOG} .search-found > li").count() == 0
    page.keyboard.type("Hamiltonian")
    marked = {mark for entry in wait_for_answer(page).evaluate(FOUND) for mark in entry["marked"]}
    assert marked == {"Hamiltonian"}


def test_how_much_was_found_is_announced(dialog):
    page, _ = dialog
    page.keyboard.type("shrinkage")
    wait_for_answer(page)
    status, results = page.locator(f"{DIALOG} [role=status]"), page.locator(f"{DIALOG} .search-found > li")
    assert status.inner_text() == f"“shrinkage” is found on {results.count()} pages."


# --- by keyboard alone


def test_the_keyboard_reaches_the_search_and_opens_a_section(address, chromium):
    with open_page(chromium, address + FROM) as (page, log):
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('button.search-button-field')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.matches('input[type=search]')", timeout=5_000)
        page.keyboard.type("shrinkage")
        wait_for_answer(page)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}book/{SECTIONS['shrinkage']}")
        expect_none(log.complaints)


def test_a_result_on_the_same_page_closes_the_dialog(address, chromium):
    with open_page(chromium, address + "book/glossary.html") as (page, _):
        page.keyboard.press("Control+k")
        page.keyboard.type("shrinkage")
        wait_for_answer(page)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/glossary.html#term-shrinkage")
        page.locator(DIALOG).wait_for(state="hidden")


@pytest.mark.parametrize("presses", [0, 1])
def test_escape_closes_the_dialog_from_its_field_and_from_a_result(dialog, presses):
    page, _ = dialog
    page.keyboard.type("shrinkage")
    wait_for_answer(page)
    for _ in range(presses):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    page.locator(DIALOG).wait_for(state="hidden")


def test_more_pages_are_shown_on_demand_and_the_focus_moves_to_them(dialog):
    page, _ = dialog
    page.keyboard.type("posterior")
    wait_for_answer(page)
    results = page.locator(f"{DIALOG} .search-found > li")
    assert results.count() == 8
    page.locator(f"{DIALOG} button").press("Enter")
    page.wait_for_function("document.querySelectorAll('.search-found > li').length === 16")
    assert results.nth(8).locator("a:focus").count() == 1
    assert page.locator(DIALOG).is_visible()


# --- everywhere


def test_a_query_in_an_address_is_answered(address, chromium):
    with open_page(chromium, address + "search.html?q=shrinkage") as (page, log):
        found = wait_for_answer(page, ".bd-search-container .search-box").evaluate(FOUND)
        assert f"{address}book/{SECTIONS['shrinkage']}" in found[1]["links"]
        assert page.locator(".bd-search-container input").input_value() == "shrinkage"
        expect_none(log.complaints)


def test_enter_leads_to_an_address_to_share(address, dialog):
    page, _ = dialog
    page.keyboard.type("shrinkage")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{address}search.html?q=shrinkage")


def test_from_files_the_dialog_says_why_it_finds_nothing_and_enter_leads_to_the_other_search(site, chromium):
    with open_page(chromium, (site / FROM).as_uri()) as (page, log):
        page.keyboard.press("Control+k")
        page.keyboard.type("shrinkage")
        wait_for_answer(page)
        assert "opened as a file" in page.locator(f"{DIALOG} [role=status]").inner_text()
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results ul.search li a", timeout=10_000)
        links = page.eval_on_selector_all("#search-results ul.search li a", "links => links.map(a => a.href)")
        assert any("hierarchical_nuts.html" in link for link in links)
        expect_none(log.complaints)


def test_a_page_loads_nothing_of_the_search_before_it_is_asked(address, chromium):
    with open_page(chromium, address + FROM) as (_, log):
        files = ("pagefind/", "searchindex.js", "searchtools.js", "language_data.js")
        expect_none([url for url in log.requests if any(file in url for file in files)])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_axe_finds_nothing_in_the_dialog_and_it_fits(address, chromium, width, theme):
    with open_page(chromium, address + FROM, width=width, theme=theme) as (page, _):
        page.keyboard.press("Control+k")
        page.keyboard.type("R-hat")
        wait_for_answer(page)
        expect_none(find_axe_violations(page))
        assert page.evaluate(WIDTH) <= width
        assert page.locator(f"{DIALOG} .search-box").evaluate("box => box.scrollWidth <= box.clientWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_the_page_of_results(address, chromium, theme):
    with open_page(chromium, address + "search.html?q=R-hat", theme=theme) as (page, _):
        wait_for_answer(page, ".bd-search-container .search-box")
        expect_none(find_axe_violations(page))


def test_a_search_is_light(site, address, dialog):
    page, log = dialog
    page.keyboard.type("aleatoric")
    wait_for_answer(page)
    files = {urlsplit(url).path.lstrip("/") for url in log.requests}
    assert 50 < sum(weigh(site / file) for file in files) < 250, "kB transferred, compressed"


# --- what Pagefind is given


def write_document(*children):
    """A page with one section, headed "Noise"."""
    section = nodes.section("", nodes.title("", "Noise"), *children, ids=["noise", "sec-page-noise"])
    document = new_document("")
    document.append(section)
    return document


def test_a_heading_carries_the_label_of_its_section():
    assert '<h1 id="sec-page-noise" data-pagefind-weight="8">Noise</h1>' in outline(write_document(), 2)


def test_prose_is_indexed_and_code_and_solutions_are_not():
    cell = nodes.container("", nodes.literal_block("", "print(1)"), nodes.caption("", "What is seen"))
    solution = solution_node("", nodes.paragraph("", "The answer"))
    page = outline(write_document(nodes.paragraph("", "1 < 2"), cell, solution), 1)
    assert "<p>1 &lt; 2</p>" in page
    assert "<p>What is seen</p>" in page
    assert "print" not in page
    assert "answer" not in page


def test_a_word_that_is_introduced_counts_more_and_keeps_its_punctuation():
    word = nodes.emphasis("", "noise")
    page = outline(write_document(nodes.paragraph("", "", nodes.Text("It is ("), word, nodes.Text("), as we say."))), 1)
    assert 'It is <em data-pagefind-weight="3">(noise),</em> as we say.' in page


def test_formulas_become_plain_text():
    assert spell_formula(r"\mathrm{N}(0, 1)") == "N(0, 1)"
    assert spell_formula(r"w_g = \mu + \sigma z_g") == "w_g = μ + σ z_g"


def test_the_index_is_the_same_every_time_and_holds_only_what_pages_load(tmp_path):
    pages, indexes = tmp_path / "pages", []
    pages.mkdir()
    for name, words in {"a": "one", "b": "two"}.items():
        (pages / f"{name}.html").write_text(outline(write_document(nodes.paragraph("", words)), 1), encoding="utf8")
    for folder in (tmp_path / "first", tmp_path / "second"):
        run_pagefind(pages, folder)
        indexes.append({str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    assert indexes[0] == indexes[1]
    assert {"pagefind.js", "pagefind-entry.json", "wasm.en.pagefind"} <= set(indexes[0])
    assert not any("ui" in name or "highlight" in name for name in indexes[0])
