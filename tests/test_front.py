"""What leads into the book: its first screen, the map of chapters, costs and Binder; and what the bar above offers."""

import json
from pathlib import Path

import pytest
from book_front import read_plain, read_promise
from book_pages import BOOK
from book_teach import count_minutes
from test_site import NOTEBOOKS, address, chromium, parse, site
from tools.browser import open_context, open_page, open_tab

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests
CHAPTERS = [Path(name).stem for name in NOTEBOOKS]


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (390, 844)])
@pytest.mark.parametrize(
    "what", [".hero img", "strong", "a:has-text('Start reading')", "a:has-text('Run in Binder')", "p:has-text('MIT')"]
)
def test_the_first_screen_says_it_all(address, chromium, width, height, what):
    with open_page(chromium, f"{address}book/index.html", width=width) as (page, _):
        page.set_viewport_size({"width": width, "height": height})
        box = page.locator(f".hero {what.removeprefix('.hero ')}").first.bounding_box()
        assert box["y"] > 0
        assert box["y"] + box["height"] <= height


def test_the_map_lists_every_chapter_with_its_promise_and_minutes(site):
    shown = {Path(item.a["href"]).stem: item for item in parse(site, "book/index.html").select(".chapter-map li")}
    assert list(shown) == CHAPTERS
    for chapter, item in shown.items():
        assert item.select("p")[1].get_text() == f"{read_promise(chapter)} {count_minutes([chapter])} min"


def test_every_chapter_before_the_evidence_has_a_thumbnail(site):
    items = parse(site, "book/index.html").select(".chapter-map li")
    thumbs = [Path(item.img["src"]) for item in items if item.img]
    assert [thumb.stem for thumb in thumbs] == CHAPTERS[: CHAPTERS.index("yardsticks")]
    assert all(0 < (site / "book" / thumb).stat().st_size < 20_000 for thumb in thumbs)


@pytest.mark.parametrize(
    ("markup", "plain"),
    [
        ("see [one network](flat_advi.ipynb), by *ADVI*", "see one network, by ADVI"),
        ("a {term}`control <controls>` and `total_size`", "a control and total_size"),
    ],
)
def test_a_promise_has_no_markup(markup, plain):
    assert read_plain(markup) == plain


def test_the_costs_of_every_chapter_are_on_the_page_for_those_who_run_it(site):
    table = json.loads((BOOK / "data" / "run_cost.json").read_text())["rows"]
    costs = {row["chapter"]: [f"{row['cpu_seconds']} s", f"{row['megabytes']:,} MB"] for row in table}
    rows = parse(site, "book/running.html").select("table.bnn tbody tr:not(.part)")
    shown = {Path(row.a["href"]).stem: [cell.get_text() for cell in row.select("td")] for row in rows}
    assert list(shown) == CHAPTERS
    assert {chapter: shown[chapter] for chapter in costs} == costs


@pytest.mark.parametrize("page", ["book/index.html", "book/running.html"])
def test_the_button_opens_binder_as_the_chapter_s_own_does(site, page):
    (mine,) = {link["href"] for link in parse(site, page).select("article a[href*=mybinder]") if "v2" in link["href"]}
    assert mine in {link["href"] for link in parse(site, "book/moons.html").select("a[href*=mybinder]")}


# --- what the bar and the pictures offer


def test_one_switch_opens_all_code_and_is_remembered(address, chromium):
    closed = "[...document.querySelectorAll('details.hide')].filter((fold) => !fold.open).length"
    with open_context(chromium) as context:
        with open_tab(context, f"{address}book/moons.html") as (page, _):
            assert page.evaluate(closed) > 3
            page.get_by_role("button", name="Show all code").press("Enter")
            assert page.evaluate(closed) == 0
        with open_tab(context, f"{address}book/unpooled.html") as (page, log):
            assert page.evaluate(closed) == 0
            switch = page.get_by_role("button", name="Show all code")
            assert switch.get_attribute("aria-pressed") == "true"
            switch.click()
            assert page.evaluate(closed) > 3
            assert log.complaints == []


def test_a_page_without_folded_code_has_no_switch(address, chromium):
    with open_page(chromium, f"{address}book/primer.html") as (page, _):
        assert page.locator(".folds-switch").count() == 0


@pytest.mark.parametrize("by", ["click", "keyboard"])
def test_a_picture_grows_and_says_what_it_shows(address, chromium, by):
    with open_page(chromium, f"{address}book/moons.html", width=390) as (page, log):
        picture, button = page.locator("figure img").first, page.locator("button.enlarge").first
        small, alt = picture.bounding_box()["width"], picture.get_attribute("alt")
        if by == "click":
            picture.click()
        else:
            assert button.get_attribute("aria-label").startswith("Enlarge Fig. 1.1")
            button.press("Enter")
        large = page.locator("dialog.enlarged img")
        assert large.get_attribute("alt") == alt
        assert large.bounding_box()["width"] > 2 * small
        page.keyboard.press("Escape")
        assert not large.is_visible()
        assert log.complaints == []


@pytest.mark.parametrize(("name", "figure"), [("index", "fig-index-tied"), ("unpooled", "fig-unpooled-surfaces")])
def test_a_phone_shows_six_of_eighteen_panels_and_a_tap_all(address, chromium, name, figure):
    with open_page(chromium, f"{address}book/{name}.html", width=390) as (page, log):
        box, picture = page.locator(f"#{figure} .growing"), page.locator(f"#{figure} img")
        assert box.bounding_box()["width"] <= 390
        assert picture.bounding_box()["width"] > 2 * box.bounding_box()["width"]
        page.get_by_role("button", name="Enlarge").and_(page.locator(f"#{figure} button")).click()
        large = page.locator("dialog.enlarged img")
        assert large.bounding_box()["width"] > 2 * box.bounding_box()["width"]
        assert log.complaints == []
