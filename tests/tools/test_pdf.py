"""Two pages of the site on paper, as `make pdf` binds them: numbered, filled, solutions open, no dead bars."""

import io
import json
import re
import unicodedata
from pathlib import Path

import pytest
from pypdf import PdfReader
from tools import pdf
from tools.browser import open_page

ROOT = Path(__file__).parents[2]

NAMES = ["hierarchical_nuts", "unpooled"]  # each links to sections of the other
MARGIN = 57  # points at the top and the bottom of a page, for its running head and its number
BAR = "Show how this figure is drawn"


@pytest.fixture(scope="module")
def chapters(address, chromium):
    """The two pages, printed one after the other."""
    printed, before = [], 0
    for name in NAMES:
        with open_page(chromium, f"{address}book/{name}.html") as (page, _):
            assert BAR in page.content()
            printed.append(pdf.print_page(page, "A part", before))
        before += len(printed[-1].printed.pages)
    return printed


@pytest.fixture(scope="module")
def book(chromium, chapters):
    """Both and their contents, as one file."""
    with open_page(chromium, "about:blank") as (page, _):
        page.set_content(pdf.write_contents(chapters, "Version 1"))
        contents = pdf.print_tab(page)
    buffer = io.BytesIO()
    pdf.join(contents, chapters).write(buffer)
    return PdfReader(buffer)


def read(page):
    """The text of a printed page, without ligatures, and without white space, which depends on where lines break."""
    return "".join(unicodedata.normalize("NFKC", page.extract_text()).split())


def find_lowest_text(page):
    """How much of the room between its margins a page has used, from 0 to 1."""
    heights = []

    def note(text, cm, tm, font, size):
        if text.strip():
            heights.append(cm[1] * tm[4] + cm[3] * tm[5] + cm[5])

    page.extract_text(visitor_text=note)
    top = float(page.mediabox.height) - MARGIN
    return (top - min(height for height in heights if height > MARGIN)) / (top - MARGIN)


def test_every_page_has_its_number_and_its_chapters_title_and_is_at_least_half_full(book, chapters):
    assert book.page_labels[0] == "i"
    for chapter in chapters:
        pages = book.pages[chapter.before + 1 :][: len(chapter.printed.pages)]
        for number, page in enumerate(pages, chapter.before + 1):
            lines = [line.strip() for line in page.extract_text().splitlines()]
            assert str(number) in lines
            assert book.page_labels[page.page_number] == str(number)
            assert chapter.title in lines
        used = [find_lowest_text(page) for page in chapter.printed.pages[:-1]]
        assert min(used) > 0.5, f"page {used.index(min(used)) + 1} of {chapter.title} is half empty"


def test_solutions_and_folded_tables_are_printed_and_folded_code_and_its_bars_are_not(chapters):
    claims = json.loads((ROOT / "book" / "claims.json").read_text(encoding="utf8"))
    for name, chapter in zip(NAMES, chapters, strict=True):
        text = "".join(read(page) for page in chapter.printed.pages)
        source = (ROOT / "book" / f"{name}.md").read_text(encoding="utf8")
        assert text.count("Solution") >= source.count("{solution-start}") > 0
        assert "plots.use_style()" in source
        assert "plots.use_style()" not in text
        assert "".join(BAR.split()) not in text
        mine = [claim["claim"] for claim in claims if claim["chapter"] == name]
        assert mine
        assert [claim for claim in mine if re.sub(r"\s", "", claim) not in text] == []


def test_the_contents_and_the_outline_lead_to_each_chapter(book, chapters):
    listed = [line.strip() for line in book.pages[0].extract_text().splitlines()]
    (part, entries) = book.outline
    assert part.title == "A part"
    targets = [link["/Dest"][0].get_object() for link in pdf.list_links(book.pages[:1])]
    for chapter, entry, target in zip(chapters, entries, targets, strict=True):
        first = chapter.before + 1  # after one page of contents
        assert entry.title == chapter.title
        assert book.get_destination_page_number(entry) == first
        assert target == book.pages[first].get_object()
        assert any(line.startswith(chapter.title) and line.endswith(str(first)) for line in listed)


def test_a_link_to_another_chapter_stays_in_the_file_and_one_within_a_chapter_on_its_pages(book, chapters):
    first, second = chapters
    pages = [page.indirect_reference.idnum for page in book.pages]
    leads = [
        (page.page_number, pages.index(link["/Dest"][0].idnum))
        for page in book.pages[1:]
        for link in pdf.list_links([page])
        if "/Dest" in link
    ]
    begins = second.before + 1
    assert {(False, True), (True, False)} <= {(source >= begins, target >= begins) for source, target in leads}
    outside = [link["/A"]["/URI"] for link in pdf.list_links(book.pages) if "/A" in link]
    assert not {first.address, second.address} & set(outside)
    assert not [address for address in outside if "127.0.0.1" in address]
