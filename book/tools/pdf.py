"""Print the whole site into one PDF, solutions unfolded: ``_build/html/book.pdf``. Needs the site and a Chromium."""

import html
import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, NullObject, TextStringObject

from tools.browser import find_chromium, launch_chromium, open_page, serve

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
TITLE = "Hierarchical Bayesian Neural Networks with PyMC"
# boxes and solutions are opened; folded code stays folded, and print.css leaves it out
PREPARE = """() => {
  const published = document.querySelector("link[rel=canonical]").href;
  document.documentElement.classList.add("with-answers");
  document.querySelectorAll("button.toggle-button-hidden").forEach((button) => button.click());
  document.querySelectorAll("main details:not(.hide)").forEach((details) => { details.open = true; });
  document.querySelectorAll("img[loading=lazy]").forEach((image) => { image.loading = "eager"; });
  document.querySelectorAll("a[href]").forEach((link) => {  // a printed link leads to the site, not to this server
    if (!link.getAttribute("href").startsWith("#")) link.href = new URL(link.getAttribute("href"), published).href;
  });
  return Promise.all([...document.images].map((image) => image.decode().catch(() => null))).then(() => published);
}"""
# on top of print.css: what only the book as a whole knows
RUNNING = """@page {{ size: A4; @top-left {{ color: #555; content: {title}; font: 9pt sans-serif; }} }}
@page :first {{ @top-left {{ content: none; }} }}
html {{ counter-reset: page {before}; }}
.bd-footer-content {{ display: none; }}"""
CONTENTS = """<!doctype html><html lang="en"><title>Contents</title><style>
@page {{ size: A4; margin: 20mm 18mm; @bottom-center {{ content: counter(page, lower-roman); font: 9pt sans-serif; }} }}
body {{ font: 10.5pt/1.5 sans-serif; margin: 0; }} h1 {{ font-size: 24pt; line-height: 1.2; }}
h2 {{ break-after: avoid; font-size: 12pt; margin: 1em 0 0.2em; }} a {{ color: inherit; text-decoration: none; }}
p.entry {{ display: flex; gap: 0.5em; margin: 0; }}
p.entry span {{ border-bottom: 1px dotted #999; flex: 1; margin-bottom: 0.4em; }}
</style><h1>{title}</h1><p>{origin}</p>
<p>Code that is folded on the pages, such as that of the figures, is left out here; it is in the notebooks.</p>
{entries}</html>"""


@dataclass
class Chapter:
    """A page of the site as it was printed."""

    caption: str  # of its part; None for the front page
    title: str
    address: str  # where it is published
    printed: PdfReader
    before: int  # pages of the book before it


def list_pages():
    """(title of the part or None, path of the page below the site), in the order of the table of contents."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    pages = [(None, toc["root"])]
    for part in toc["parts"]:
        entries = [entry for chapter in part["chapters"] for entry in (chapter, *chapter.get("sections", []))]
        pages += [(part["caption"], entry["file"]) for entry in entries]
    return [(caption, str(Path(file).with_suffix(".html"))) for caption, file in pages]


def print_page(page, caption, before):
    """Print a page that is open in a tab, its pages numbered from `before` + 1."""
    address = page.evaluate(PREPARE)
    title = page.title().split(" — ")[0]
    page.add_style_tag(content=RUNNING.format(title=json.dumps(title, ensure_ascii=False), before=before))
    return Chapter(caption, title, address, print_tab(page), before)


def print_tab(page):
    """Print a tab on the paper that its style sheets ask for."""
    return PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True, print_background=True)))


def write_contents(chapters, origin):
    """The contents as HTML: every page of the site, below its part, with the number of its first page in print."""
    lines, last = [], None
    for chapter in chapters:
        if chapter.caption not in (None, last):
            lines.append(f"<h2>{html.escape(chapter.caption)}</h2>")
        last = chapter.caption
        entry = f'<a href="{chapter.address}">{html.escape(chapter.title)}</a><span></span>{chapter.before + 1}'
        lines.append(f'<p class="entry">{entry}</p>')
    return CONTENTS.format(title=TITLE, origin=html.escape(origin), entries="\n".join(lines))


def list_links(pages):
    """The links of some pages."""
    annotations = [annotation.get_object() for page in pages for annotation in page.get("/Annots", [])]
    return [annotation for annotation in annotations if annotation.get("/Subtype") == "/Link"]


def find_places(chapter):
    """Where the addresses of a page are in its print: {address: (page, height)}. Links within it become addresses, too.

    Names such as ``exercises`` are those of many pages, and in one file only one of them would be found.
    """
    places = {chapter.address: (0, None)}
    for name, place in chapter.printed.named_destinations.items():
        page = chapter.printed.get_destination_page_number(place)
        places[f"{chapter.address}#{name.lstrip('/')}"] = (page, place.top)
    for link in list_links(chapter.printed.pages):
        if "/Dest" in link:
            address = f"{chapter.address}#{str(link.pop('/Dest')).lstrip('/')}"
            link[NameObject("/A")] = DictionaryObject({
                NameObject("/S"): NameObject("/URI"), NameObject("/URI"): TextStringObject(address),
            })  # fmt: skip
    chapter.printed.root_object.pop("/Dests", None)
    return places


def lead_inside(writer, places):
    """Let links to what is printed in this file lead there: {address: (page, height)}."""
    for link in list_links(writer.pages):
        place = places.get(link.get("/A", {}).get("/URI"))
        if place:
            number, top = place
            height = NullObject() if top is None else FloatObject(top)
            target = [writer.pages[number].indirect_reference, NameObject("/XYZ"), NullObject(), height, NullObject()]
            del link["/A"]
            link[NameObject("/Dest")] = ArrayObject(target)


def join(contents, chapters):
    """Bind the contents and the chapters: an outline by parts, links that lead within the book, pages' own numbers."""
    writer, parts, places = PdfWriter(), {}, {}
    writer.append(contents, import_outline=False)
    front = len(writer.pages)
    for chapter in chapters:
        first = len(writer.pages)
        places |= {address: (first + page, top) for address, (page, top) in find_places(chapter).items()}
        writer.append(chapter.printed, import_outline=False)
        if chapter.caption and chapter.caption not in parts:
            parts[chapter.caption] = writer.add_outline_item(title=chapter.caption, page_number=first)
        writer.add_outline_item(title=chapter.title, page_number=first, parent=parts.get(chapter.caption))
    lead_inside(writer, places)
    writer.set_page_label(0, front - 1, style=PageLabelStyle.LOWERCASE_ROMAN)
    writer.set_page_label(front, len(writer.pages) - 1, style=PageLabelStyle.DECIMAL)
    writer.compress_identical_objects()
    writer.add_metadata({"/Title": TITLE, "/Lang": "en"})
    return writer


def main():
    if not (HTML / ".built").exists():
        sys.exit("there is no site to print; `make site` builds it")
    if find_chromium() is None:
        sys.exit("no Chromium found: set CHROMIUM, or run `make browser`")
    chapters, before, origin = [], 0, ""
    with serve(HTML) as address, launch_chromium() as chromium:
        for caption, name in list_pages():
            with open_page(chromium, address + name) as (page, _):
                origin = origin or page.locator(".page-footer p").inner_text()
                chapters.append(print_page(page, caption, before))
            pages = len(chapters[-1].printed.pages)
            before += pages
            print(f"{name}: {pages} pages")
        with open_page(chromium, "about:blank") as (page, _):
            page.set_content(write_contents(chapters, origin))
            contents = print_tab(page)
    part = HTML / "book.pdf.part"
    join(contents, chapters).write(part)
    part.replace(HTML / "book.pdf")
    print(f"{before} pages in {HTML / 'book.pdf'}, {(HTML / 'book.pdf').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
