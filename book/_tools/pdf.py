"""Print the whole site into one PDF, solutions unfolded: ``_build/html/book.pdf``. Needs the site and a Chromium."""

import io
import sys
from pathlib import Path

import yaml
from browser import find_chromium, launch_chromium, open_page, serve, unfold
from pypdf import PdfWriter

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
PREPARE = """() => {
  const published = document.querySelector("link[rel=canonical]").href;
  document.querySelectorAll("img[loading=lazy]").forEach((image) => { image.loading = "eager"; });
  document.querySelectorAll("a[href]").forEach((link) => {  // a printed link leads to the site, not to this server
    if (!link.getAttribute("href").startsWith("#")) link.href = new URL(link.getAttribute("href"), published).href;
  });
  return Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
}"""


def list_pages():
    """(title of the part or None, path of the page below the site), in the order of the table of contents."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    pages = [(None, toc["root"])]
    for part in toc["parts"]:
        pages += [(part["caption"], chapter["file"]) for chapter in part["chapters"]]
    return [(caption, str(Path(file).with_suffix(".html"))) for caption, file in pages]


def main():
    if not (HTML / ".built").exists():
        sys.exit("there is no site to print; `make site` builds it")
    if find_chromium() is None:
        sys.exit("no Chromium found: set CHROMIUM, or run `make browser`")
    writer, parts = PdfWriter(), {}
    with serve(HTML) as address, launch_chromium() as chromium:
        for caption, name in list_pages():
            with open_page(chromium, address + name) as (page, _):
                unfold(page)
                page.evaluate(PREPARE)
                title = page.title().split(" — ")[0]
                printed = page.pdf(format="A4", print_background=True, margin=dict.fromkeys(("top", "bottom"), "15mm"))
            first = len(writer.pages)
            writer.append(io.BytesIO(printed), import_outline=False)
            if caption and caption not in parts:
                parts[caption] = writer.add_outline_item(caption, first)
            writer.add_outline_item(title, first, parent=parts.get(caption))
            print(f"{name}: {len(writer.pages) - first} pages")
    writer.compress_identical_objects()
    writer.add_metadata({"/Title": "Hierarchical Bayesian Neural Networks with PyMC", "/Lang": "en"})
    part = HTML / "book.pdf.part"
    writer.write(part)
    part.replace(HTML / "book.pdf")
    print(f"{len(writer.pages)} pages in {HTML / 'book.pdf'}, {(HTML / 'book.pdf').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    sys.exit(main())
