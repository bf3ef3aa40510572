"""Nothing is cut off: code, tables and formulas at the widths of a screen, a laptop and a phone."""

from pathlib import Path

import lots
import nbformat
import pytest
from book_lines import wrap_line
from test_core_pages import CORE, MAX_COLUMNS
from test_site import PAGES, ROOT, address, chromium, expect_none, site, window
from tools.browser import open_page, open_tab, unfold

__all__ = ["address", "chromium", "site", "window"]  # fixtures of the site's tests

WIDTHS = (1440, 1366, 390)  # pixels
ALWAYS = [f"book/{name}.html" for name in ("hierarchical_nuts", "replication", "claims_register")]
DRAWN = lots.draw(PAGES, 5, always=ALWAYS)
NAME = """e => (e.querySelector("caption") ?? e).textContent.trim().slice(0, 60)"""
SHOWN = "e => e.checkVisibility() && e.clientWidth"
# of each width: code that scrolls, lines of code that wrap though they are short, tables that scroll, those that lose
# their first column, numbers that touch their formula, pictures that are stretched
MEASURE = f"""columns => {{
    const name = {NAME}, list = (selector) => [...document.querySelectorAll("main " + selector)].filter({SHOWN});
    const scrolls = e => e.scrollWidth > e.clientWidth + 1;
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const wraps = e => e.getBoundingClientRect().height > 1.5 * parseFloat(getComputedStyle(e).lineHeight);
    const boxOf = e => {{
        while (e && !["auto", "scroll"].includes(getComputedStyle(e).overflowX)) e = e.parentElement;
        return e;
    }};
    const losesLabels = table => {{
        const box = boxOf(table);
        box.scrollLeft = box.scrollWidth;
        const labels = [...table.querySelectorAll("tr > :first-child:not([colspan])")].filter({SHOWN});
        const lost = labels.some(e => e.getBoundingClientRect().left < box.getBoundingClientRect().left - 1);
        box.scrollLeft = 0;
        return lost;
    }};
    const seen = e => {{
        const [all, box] = [e, e.closest("mjx-container")].map(part => part.getBoundingClientRect());
        return {{ top: all.top, bottom: all.bottom, left: Math.max(all.left, box.left),
                  right: Math.min(all.right, box.right) }};
    }};
    const isStretched = e => {{  // what is not loaded yet has the size that it says
        const [wide, high] = e.naturalWidth ? [e.naturalWidth, e.naturalHeight]
            : ["width", "height"].map(side => +e.getAttribute(side));
        const fills = getComputedStyle(e).objectFit === "fill";
        return fills && Math.abs(e.clientWidth * high / (e.clientHeight * wide) - 1) > 0.03;
    }};
    const tables = list("table").filter(table => scrolls(boxOf(table)));
    return {{
        code: list("pre").filter(scrolls).map(name),
        wrapped: list("pre .line").filter(e => e.textContent.length <= columns && wraps(e)).map(name),
        tables: tables.map(name),
        unlabelled: tables.filter(losesLabels).map(name),
        numbers: list("div.math > .eqno").filter(number => [...number.parentElement.querySelectorAll("mjx-math")].some(
            formula => meet(seen(formula), number.getBoundingClientRect()))).map(name),
        stretched: list("img[width][height]").filter(isStretched).map(e => e.alt.slice(0, 60)),
        page: document.documentElement.scrollWidth,
    }};
}}"""


def measure(page, width):
    """What is cut off on a page at a width in pixels: lists of names, and the width that the page takes."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate(MEASURE, MAX_COLUMNS)


@pytest.fixture(scope="module", params=DRAWN)
def measured(request, window, address):
    """A page's name and, by width, what is cut off on it."""
    with open_tab(window, address + request.param) as (page, _):
        unfold(page)
        return Path(request.param).stem, {width: measure(page, width) for width in WIDTHS}


def test_no_code_scrolls(measured):
    expect_none([f"{width}: {name}" for width, found in measured[1].items() for name in found["code"]])


def test_lines_of_88_characters_fit_a_laptop(measured):
    expect_none([f"{width}: {name}" for width in (1440, 1366) for name in measured[1][width]["wrapped"]])


def test_no_page_scrolls_sideways(measured):
    assert [width for width, found in measured[1].items() if found["page"] > width] == []


def test_no_table_of_a_core_page_scrolls_on_a_laptop(measured):
    name, found = measured
    if name in CORE:
        expect_none([f"{width}: {table}" for width in (1440, 1366) for table in found[width]["tables"]])


def test_the_first_column_of_a_table_that_scrolls_stays(measured):
    expect_none([f"{width}: {name}" for width, found in measured[1].items() for name in found["unlabelled"]])


def test_no_picture_is_stretched(measured):
    expect_none([f"{width}: {name}" for width, found in measured[1].items() for name in found["stretched"]])


def test_no_formula_meets_its_number(measured):
    expect_none([f"{width}: {name}" for width, found in measured[1].items() for name in found["numbers"]])


FAULTY = """<!doctype html><body style="margin: 0; width: 300px"><main>
    <img width="80" height="20" style="max-width: 40px; width: 80px; height: 20px" alt="a picture">
    <pre style="overflow: auto">{line}</pre>
    <pre style="white-space: pre-wrap"><span class="line" style="display: block; line-height: 20px">{words}</span></pre>
    <div style="overflow: auto"><table><tr><th>label<td><pre>{line}</pre></table></div>
    <div class="math" style="position: relative"><span class="eqno" style="position: absolute">(1)</span>
    <mjx-container style="display: block"><mjx-math style="display: block">y = x</mjx-math></mjx-container></div>"""


def test_what_is_cut_off_is_found(window):
    with open_tab(window, "about:blank") as (page, _):
        page.set_content(FAULTY.format(line="x" * 200, words="word " * 17))
        found = measure(page, 390)
    assert {part: len(found[part]) for part in found if part != "page"} == {
        "code": 1, "wrapped": 1, "tables": 1, "unlabelled": 1, "numbers": 1, "stretched": 1
    }  # fmt: skip


# --- lines that hang


def test_a_line_gets_a_box_of_its_own_that_knows_its_indent_and_the_line_break_stays_outside():
    assert wrap_line('    <span class="n">x</span>\n') == (
        '<span class="line" style="--indent: 4">    <span class="n">x</span></span>\n'
    )
    assert wrap_line("x\n") == '<span class="line">x</span>\n'
    assert wrap_line("\n") == "\n"


def read_source(name, start):
    """The source of a notebook's cell that has a line which starts with these characters."""
    cells = nbformat.read(ROOT / f"{name}.ipynb", as_version=4).cells
    return next(c.source for c in cells if c.cell_type == "code" and f"\n{start}" in f"\n{c.source}")


@pytest.fixture(scope="module")
def cell(chromium, address):
    """A cell of which lines wrap on a phone, as the page shows it, and its source."""
    start = "def summarise(each, key):"
    with open_page(chromium, f"{address}book/replication.html", width=390) as (page, _):
        yield page.locator("div.cell_input", has_text=start).first, read_source("book/replication", start)


def test_the_copy_button_copies_the_source(cell):
    box, source = cell
    assert "\n\n\n" in source  # lines without a character, too
    box.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    box.hover()
    box.locator("button.copybtn").click()
    box.page.wait_for_function("() => navigator.clipboard.readText()")
    assert box.page.evaluate("navigator.clipboard.readText()") == source


def test_a_selection_copies_the_source(cell):
    box, source = cell
    selected = box.locator("pre").evaluate("e => (getSelection().selectAllChildren(e), getSelection().toString())")
    assert selected.rstrip("\n") == source


def test_a_wrapped_line_hangs_behind_its_own_indent(cell):
    box, _ = cell
    wrapped = "told = compiled.with_data(d=d, within=within, scale=SCALES[key])"
    lefts = box.locator(".line", has_text=wrapped).evaluate("""e => {
        const range = document.createRange(), texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), lefts = {};
        while (texts.nextNode()) [...texts.currentNode.data].forEach((character, k) => {
            range.setStart(texts.currentNode, k);
            range.setEnd(texts.currentNode, k + 1);
            const { left, top } = range.getBoundingClientRect();
            if (character.trim()) lefts[top] = Math.min(left, lefts[top] ?? Infinity);
        });
        return Object.entries(lefts).sort((a, b) => a[0] - b[0]).map(([top, left]) => left);
    }""")
    assert len(lefts) > 1
    assert all(left > lefts[0] + 5 for left in lefts[1:])
