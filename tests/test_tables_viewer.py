"""The tables of the book, looked into: chosen, filtered, sorted, and shared by their address."""

import json

import pytest
from book_pages import write_cell
from test_site import ROOT, address, chromium, parse, site, window
from tools.browser import open_context, open_tab

__all__ = ["address", "chromium", "site", "window"]  # fixtures of the site's tests

PAGE = "book/cite.html"
SHOWN = ".table-viewer tbody tr"
NAME = "reference_scores"  # few rows, text and numbers
ROWS = json.loads((ROOT / "book" / "data" / f"{NAME}.json").read_text(encoding="utf8"))["rows"]


@pytest.fixture
def page(address, window):
    """The list of tables in a tab."""
    with open_tab(window, address + PAGE) as (page, log):
        yield page
        assert log.complaints == []


def choose(page, table=NAME):
    page.get_by_role("combobox", name="Look into a table").select_option(table)
    page.locator(SHOWN).first.wait_for()


def read_column(page, name):
    """The cells of a column as they are shown, from top to bottom."""
    heads = page.locator(".table-viewer thead th").all_inner_texts()
    place = [head.strip(" ↑↓") for head in heads].index(name) + 1
    return page.locator(f"{SHOWN} > td:nth-child({place})").all_inner_texts()


def test_every_table_with_rows_can_be_chosen_and_none_is_shown_at_first(page):
    options = page.locator("select[name=table] option")
    tables = sorted((ROOT / "book" / "data").glob("*.json"))
    wanted = [path.stem for path in tables if json.loads(path.read_text(encoding="utf8")).get("rows")]
    assert options.evaluate_all("all => all.map(each => each.value)") == ["", *wanted]
    assert page.locator(SHOWN).count() == 0
    assert not page.locator(".table-viewer").is_visible()


def test_a_table_shows_all_its_rows_and_says_how_many(page):
    choose(page)
    assert page.get_by_role("status").inner_text() == f"{len(ROWS)} of {len(ROWS)} rows"
    assert read_column(page, "what") == [row["what"] for row in ROWS]


def test_a_value_filters_and_the_address_shows_the_same_to_others(page, address, window):
    choose(page)
    posterior = ROWS[-1]["posterior"]
    wanted = [row["what"] for row in ROWS if row["posterior"] == posterior]
    page.get_by_role("combobox", name="posterior").select_option(posterior)
    assert page.get_by_role("status").inner_text() == f"{len(wanted)} of {len(ROWS)} rows"
    assert read_column(page, "what") == wanted
    with open_tab(window, page.url) as (shared, _):
        shared.locator(SHOWN).first.wait_for()
        assert read_column(shared, "what") == wanted
        assert shared.get_by_role("combobox", name="posterior").input_value() == posterior


def test_a_column_sorts_and_sorts_in_reverse(page):
    choose(page)
    up, down = (sorted((row["seed"] for row in ROWS), reverse=reverse) for reverse in (False, True))
    page.get_by_role("button", name="seed").click()
    assert read_column(page, "seed") == [str(value) for value in up]
    page.get_by_role("button", name="seed").click()
    assert read_column(page, "seed") == [str(value) for value in down]
    assert page.locator("th[aria-sort=descending]").inner_text().strip(" ↓") == "seed"


def test_another_table_forgets_the_filters_of_the_one_before(page):
    choose(page)
    page.get_by_role("combobox", name="posterior").select_option(ROWS[0]["posterior"])
    choose(page, "bench_settings")
    assert page.url.endswith(f"{PAGE}?table=bench_settings")


@pytest.mark.parametrize("query", ["?table=nonsense", "?table=", "?sampler=nutpie"])
def test_an_address_that_names_no_table_shows_none(address, window, query):
    with open_tab(window, address + PAGE + query) as (page, log):
        assert page.get_by_role("combobox", name="Look into a table").input_value() == ""
        assert page.locator(SHOWN).count() == 0
        assert log.complaints == []


def test_a_long_table_is_cut_and_says_so(page):
    choose(page, "cheaper_ways")
    assert page.locator(SHOWN).count() == 200
    assert page.get_by_role("status").inner_text().endswith("rows, the first 200 shown")


def test_on_a_phone_the_rows_scroll_in_their_box(address, chromium):
    with open_context(chromium, width=390) as context, open_tab(context, f"{address}{PAGE}?table={NAME}") as (page, _):
        page.locator(SHOWN).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = page.locator(".table-viewer")
        assert box.evaluate("e => e.scrollWidth > e.clientWidth")


def test_a_page_that_names_rows_links_to_them(site):
    assert parse(site, "book/sampler_challenge.html").select('a[href$="cite.html?table=challenge#the-tables"]')


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([1.23456789, None], "1.2346, –"), (["a", "b"], "a, b"), (list(range(5)), "5 values"), ([[1, 2]], "1 values"),
        ({"a": 1, "b": 2}, "2 values"), (True, True), (None, None), ("text", "text"), (0.5, 0.5),
    ],
)  # fmt: skip
def test_what_a_cell_holds(value, written):
    assert write_cell(value) == written
