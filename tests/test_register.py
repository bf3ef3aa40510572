"""The register of claims: filtered by page and verdict, shared by its address, and the row that a link names."""

import json
from itertools import pairwise

import pytest
from test_site import ROOT, address, chromium, parse, site, window
from tools.browser import open_context, open_tab

__all__ = ["address", "chromium", "site", "window"]  # fixtures of the site's tests

REGISTER = "book/claims_register.html"
CLAIMS = json.loads((ROOT / "book" / "claims.json").read_text(encoding="utf8"))
FAILED = next(claim for claim in CLAIMS if not claim["holds"])
CHAPTER = FAILED["chapter"]
SHOWN = "article table.bnn tbody tr:visible"


def count(chapter=None, holds=None):
    """How many claims a chapter, or all, has of this verdict."""
    return sum(
        claim["chapter"] == (chapter or claim["chapter"]) and holds in (None, claim["holds"]) for claim in CLAIMS
    )


@pytest.fixture
def register(address, window):
    """The register in a tab."""
    with open_tab(window, address + REGISTER) as (page, log):
        yield page
        assert log.complaints == []


def test_at_first_all_claims_are_shown(register):
    assert register.locator(SHOWN).count() == len(CLAIMS)
    assert register.get_by_role("status").inner_text() == f"{len(CLAIMS)} of {len(CLAIMS)} claims shown"


def test_a_page_and_a_verdict_filter_and_the_count_is_told(register):
    register.get_by_role("combobox", name="Verdict").select_option(label="does not hold")
    assert register.locator(SHOWN).count() == count(holds=False)
    register.get_by_role("combobox", name="Page").select_option(CHAPTER)
    wanted = count(CHAPTER, False)
    assert register.locator(SHOWN).count() == wanted
    assert register.get_by_role("status").inner_text() == f"{wanted} of {len(CLAIMS)} claims shown"
    assert register.locator("article table.bnn:visible").count() == 1  # no heading without a row


def test_the_address_keeps_the_filter(register, address, window):
    register.get_by_role("combobox", name="Page").select_option(CHAPTER)
    register.get_by_role("combobox", name="Verdict").select_option("no")
    assert register.url == f"{address}{REGISTER}?chapter={CHAPTER}&verdict=no"
    with open_tab(window, register.url) as (shared, _):
        assert shared.locator(SHOWN).count() == count(CHAPTER, False)
        assert shared.get_by_role("combobox", name="Page").input_value() == CHAPTER
        shared.get_by_role("combobox", name="Page").select_option("all")
        shared.get_by_role("combobox", name="Verdict").select_option("all")
        assert shared.url == address + REGISTER


@pytest.mark.parametrize("query", ["?chapter=nonsense", "?verdict=maybe&chapter="])
def test_an_address_that_names_nothing_shows_all(address, window, query):
    with open_tab(window, address + REGISTER + query) as (page, _):
        assert page.locator(SHOWN).count() == len(CLAIMS)


def test_without_javascript_it_is_a_plain_table(address, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + REGISTER)
    assert page.locator(SHOWN).count() == len(CLAIMS)
    assert page.locator("article select").count() == 0
    context.close()


def test_each_verdict_is_a_word_a_sign_and_a_colour(register):
    looks = {
        verdict: register.locator(f"td.verdict.{verdict}").first.evaluate(
            "e => [e.textContent, getComputedStyle(e, '::after').content[1], getComputedStyle(e).color]"
        )
        for verdict in ("yes", "no")
    }
    assert [look[:2] for look in looks.values()] == [["holds", "✓"], ["does not hold", "✗"]]
    assert looks["yes"][2] != looks["no"][2]


def test_only_the_register_loads_the_filter(site):
    assert parse(site, REGISTER).select('script[src*="register.js"]')
    assert not parse(site, "book/moons.html").select('script[src*="register.js"]')


# --- the row that a link names

LOOK = "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).borderInlineStartWidth]"


def test_the_row_that_a_link_names_is_marked_by_ground_and_bar(register):
    link = register.locator(f'a[href="{CHAPTER}.html#claim-{FAILED["id"]}"]')
    link.click()
    row = register.locator(f"#claim-{FAILED['id']}")
    row.wait_for(state="visible")
    (ground, bar), (other_ground, other_bar) = (
        register.locator(selector).first.evaluate(LOOK)
        for selector in (f"#claim-{FAILED['id']} > th", "tr[id^='claim-']:not(:target) > th")
    )
    assert ground != other_ground
    assert (bar, other_bar) == ("5px", "0px")
    assert register.evaluate("([...document.querySelectorAll('tr:target')].length)") == 1


def test_on_a_phone_each_claim_is_a_card(address, chromium):
    with open_context(chromium, width=390) as context, open_tab(context, address + REGISTER) as (page, _):
        row = page.locator(SHOWN).first
        cells = [cell.bounding_box() for cell in row.locator("th, td").all()]
        assert all(below["y"] >= above["y"] + above["height"] - 1 for above, below in pairwise(cells))
        assert all(cell["x"] + cell["width"] <= 390 for cell in cells)
        labels = row.locator("td").evaluate_all("cells => cells.map(e => getComputedStyle(e, '::before').content)")
        assert labels == ['"Value"', '"Criterion"', '"Verdict"', '"Together"']
        page.get_by_role("combobox", name="Verdict").select_option("no")
        assert page.locator(SHOWN).count() == count(holds=False)
