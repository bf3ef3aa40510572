"""What a page says of itself: to link previews, search engines and feed readers, and at its foot to its reader."""

import base64
import html
import json
import re
import subprocess
from functools import cache
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode
from xml.etree import ElementTree

import matplotlib
import nbformat
import yaml
from book_pages import BOOK, ROOT, list_chapters, read_title
from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image, ImageDraw, ImageFont

CHANGES = "book/teach/changelog"  # its dated sections are the feed's entries
DATED = re.compile(r"(\d{4}-\d\d-\d\d), \w+: (.+)")
LICENCE = "https://creativecommons.org/licenses/by/4.0/"
GIVES = re.compile(r"\bthis page\b", flags=re.IGNORECASE)  # as the pages of evidence say it
LONGEST = 240  # characters of a description, where a sentence ends by then
CARD = (1200, 630)  # pixels: what link previews ask for
MARGIN = 48
INK, MUTED, CLASSES = "#222222", "#555555", ("#0072B2", "#D55E00")  # the last: bnn.plots.CLASS_COLORS
HEAVIEST = 60_000  # bytes of a card
ROOT_PAGE = """<!DOCTYPE html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="0; url={front}">
<title>{title}</title>
{head}
</head>
<body><main><h1>{title}</h1><p>{description}</p><p><a href="{front}">Open the book</a></p></main></body>
</html>
"""


# --- what is known of the book and of a page


@cache
def read_citation():
    """What CITATION.cff says: the book's title, authors, version and year."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))


def find_doi():
    """The DOI of the book as CITATION.cff has it; None before there is one."""
    citation = read_citation()
    return citation["preferred-citation"].get("doi") or citation.get("doi")


@cache
def find_commit(root=ROOT):
    """The commit that a checkout is at, and its day; None for a tree without git, such as an unpacked archive."""
    command = ["git", "-C", str(root), "log", "-1", "--format=%H %cs", "HEAD"]
    try:
        top = subprocess.run([*command[:3], "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=True)
        if Path(top.stdout.strip()) != Path(root).resolve():  # an archive unpacked within another repository
            return None
        return tuple(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    except (OSError, subprocess.CalledProcessError):
        return None


def summarise(doctree):
    """The sentence of a page's first paragraph that says what it gives, else its first, and those after it that fit."""
    paragraphs = doctree.findall(lambda node: isinstance(node, nodes.paragraph) and is_prose(node))
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(next(paragraphs).astext().split()))
    first = next((k for k, sentence in enumerate(sentences) if GIVES.search(sentence)), 0)
    summary = sentences[first]
    for sentence in sentences[first + 1 :]:
        if len(f"{summary} {sentence}") > LONGEST or "\\" in sentence:  # TeX
            break
        summary += f" {sentence}"
    return summary


def is_prose(paragraph):
    """Whether a paragraph stands in the page itself, and not in a box, a caption or a list."""
    return isinstance(paragraph.parent, nodes.section | nodes.container) and bool(paragraph.astext().strip())


@cache
def find_figure(chapter):
    """The picture that stands for a chapter, a PNG as bytes, and its alt text: that of its result, else its first."""
    cells = [
        cell
        for cell in nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    ]
    if not cells:
        return None
    cell = max(cells, key=lambda cell: "result" in cell.metadata.get("tags", []))
    picture = next(o["data"]["image/png"] for o in cell.outputs if "image/png" in o.get("data", {}))
    return base64.b64decode(picture), cell.metadata["mystnb"]["image"]["alt"]


def list_names():
    """The chapters, without the parts that they are in."""
    return [name for _, names in list_chapters() for name in names]


# --- in the head of a page


def describe_page(app, pagename, templatename, context, doctree):
    """Give a page its description, its preview picture, its JSON-LD, the feed's address and the words of its foot.

    sphinxext.opengraph writes the tags; it takes what `meta` has in place of what it would say itself.
    """
    base = app.config.html_baseurl
    feed = f'<link rel="alternate" type="application/atom+xml" title="Changes" href="{base}feed.xml" />\n'
    context["metatags"] = context.get("metatags", "") + feed
    heading = BeautifulSoup(context.get("title", pagename), "html.parser").get_text()
    context["about"] = describe_origin(app, pagename, heading)
    if doctree is None:
        return
    chapter = pagename.removeprefix("book/")
    figure = find_figure(chapter) if chapter in list_names() else None
    title, description = app.env.titles[pagename].astext(), summarise(doctree)
    card, alt = (f"og/{chapter}.jpg", f"{title}. {figure[1]}") if figure else ("og/book.jpg", app.config.project)
    width, height = CARD
    context["meta"] = (context["meta"] or {}) | {
        "og:description": html.escape(description),
        "og:image": f"{base}{card}",
        "og:image:alt": html.escape(alt),
        "og:image:width": str(width),
        "og:image:height": str(height),
    }
    data = {"description": description, "url": f"{base}{pagename}.html", "image": f"{base}{card}"}
    if pagename == app.config.root_doc:
        data = describe_book(app, data)
    elif chapter in list_names():
        data = describe_chapter(app, chapter, data)
    else:
        data = None
    context["metatags"] += f'<meta name="description" content="{html.escape(description)}" />\n'
    if data:
        written = json.dumps({"@context": "https://schema.org"} | data, ensure_ascii=False).replace("</", "<\\/")
        context["metatags"] += f'<script type="application/ld+json">{written}</script>\n'


def describe_book(app, data):
    """The book as schema.org has it, for search engines."""
    citation = read_citation()
    doi = find_doi()
    return data | {
        "@type": "Book",
        "name": citation["title"],
        "author": [describe_author(author) for author in citation["authors"]],
        "license": LICENCE,
        "inLanguage": app.config.language,
        "version": str(citation["version"]),
        "datePublished": str(citation.get("date-released") or citation["preferred-citation"]["year"]),
        "hasPart": [describe_place(app, name) for name in list_names()],
    } | ({"sameAs": f"https://doi.org/{doi}"} if doi else {})  # fmt: skip


def describe_author(author):
    """An author of CITATION.cff: a person has a family name, a group of people only a name."""
    if "family-names" in author:
        return {"@type": "Person", "name": f"{author['given-names']} {author['family-names']}"}
    return {"@type": "Organization", "name": author["name"]}


def describe_place(app, chapter):
    """Where a chapter stands in the book."""
    address = f"{app.config.html_baseurl}book/{chapter}.html"
    return {
        "@type": "Chapter",
        "name": read_title(chapter),
        "position": list_names().index(chapter) + 1,
        "url": address,
    }


def describe_chapter(app, chapter, data):
    """A chapter as schema.org has it."""
    front = f"{app.config.html_baseurl}{app.config.root_doc}.html"
    return data | describe_place(app, chapter) | {
        "@type": ["Chapter", "LearningResource"],
        "license": LICENCE,
        "inLanguage": app.config.language,
        "isPartOf": {"@type": "Book", "name": read_citation()["title"], "url": front},
    }  # fmt: skip


def describe_origin(app, pagename, title):
    """What the foot of a page tells: the book's version, the commit, and where to mend this page."""
    theme = app.config.html_theme_options
    repository, branch = theme["repository_url"].rstrip("/"), theme["repository_branch"]
    found, doi = find_commit(), find_doi()
    origin = {"version": read_citation()["version"], "licence": LICENCE, "doi": doi}
    origin |= {"repository": repository, "branch": branch}
    body = f"Page: {app.config.html_baseurl}{pagename}.html\n"
    if found:
        commit, day = found
        origin |= {"commit": commit, "day": day}
        body += f"Commit: {commit[:7]}\n"
    origin["report"] = f"{repository}/issues/new?{urlencode({'title': f'{title}: ', 'body': body})}"
    if pagename in app.env.found_docs:
        source = Path(app.env.doc2path(pagename, base=False)).with_suffix(".md")  # a notebook is made from its Markdown
        origin["edit"] = f"{repository}/edit/{branch}/{source.as_posix()}"
    return origin


# --- files beside the pages


def write_extras(app, exception):
    """Write the root page, the feed and the preview pictures."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    write_root_page(app, folder)
    write_feed(app, folder / "feed.xml")
    (folder / "og").mkdir(exist_ok=True)
    title = app.config.project
    cover = (BOOK / "_static" / "cover.png").read_bytes()
    (folder / "og" / "book.jpg").write_bytes(draw_card(title, f"by {app.config.author}", cover))
    for number, name in enumerate(list_names(), 1):
        figure = find_figure(name)
        if figure:
            card = draw_card(app.env.titles[f"book/{name}"].astext(), f"{number} · {title}", figure[0])
            (folder / "og" / f"{name}.jpg").write_bytes(card)


def write_root_page(app, folder):
    """Write the page at the site's own address: it leads on to the front page, and says in a preview what that says."""
    front = f"{app.config.root_doc}.html"
    page = BeautifulSoup((folder / front).read_text(encoding="utf8"), "html.parser")
    said = page.head.select(
        'meta[property^="og:"], meta[name="description"], meta[name^="twitter:"], link[rel=canonical], '
        'link[rel=alternate], script[type="application/ld+json"]'
    )
    description = page.head.select_one('meta[name="description"]')["content"]
    text = ROOT_PAGE.format(
        language=app.config.language,
        front=front,
        head="\n".join(map(str, said)),
        title=html.escape(app.config.project),
        description=html.escape(description),
    )
    (folder / "index.html").write_text(text, encoding="utf8")


def write_feed(app, path):
    """Write the dated sections of the page of changes as an Atom feed; a section without a date waits for one."""
    base, page = app.config.html_baseurl, f"{app.config.html_baseurl}{CHANGES}.html"
    entries = []
    for section in app.env.get_doctree(CHANGES).findall(nodes.section):
        dated = DATED.fullmatch(section[0].astext())
        if dated:
            day, title = dated.groups()
            text = "\n\n".join(block.astext() for block in section[1:])
            entries.append((f"{day}T00:00:00Z", title, f"{page}#{section['ids'][-1]}", text))
    feed = ElementTree.Element("feed", xmlns="http://www.w3.org/2005/Atom")
    append(feed, "title", f"{app.config.project}: changes")
    append(feed, "id", f"{base}feed.xml")
    append(feed, "updated", max(day for day, *_ in entries))
    append(feed, "link", rel="self", href=f"{base}feed.xml")
    append(feed, "link", rel="alternate", href=page)
    append(append(feed, "author"), "name", app.config.author)
    for day, title, address, text in entries:
        entry = append(feed, "entry")
        append(entry, "title", title[0].upper() + title[1:])
        append(entry, "id", address)
        append(entry, "link", href=address)
        append(entry, "updated", day)
        append(entry, "summary", text)
    ElementTree.indent(feed)
    ElementTree.ElementTree(feed).write(path, encoding="utf-8", xml_declaration=True)


def append(parent, tag, text=None, **attributes):
    """Append an element to another, and return it."""
    element = ElementTree.SubElement(parent, tag, attributes)
    element.text = text
    return element


def list_decks(app):
    """Enter the slides, a site of their own beside the pages, into the sitemap."""
    for deck in sorted((BOOK / "teach" / "slides").glob("*.md")):
        app.sitemap_links.put((f"slides/{deck.stem}.html", None))


# --- preview pictures


def load_font(size, *, bold=False):
    """DejaVu Sans, which comes with Matplotlib: the card is the same on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(matplotlib.get_data_path(), "fonts", "ttf", name)
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


def wrap(text, font, width):
    """Break a text into lines of at most `width` pixels."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) > width and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def draw_card(title, place, picture):
    """A preview picture, a JPEG as bytes: a title, below it what it is part of, and a figure (a PNG as bytes).

    A wide figure stands below the words, any other beside them.
    """
    figure = Image.open(BytesIO(picture)).convert("RGB")
    width, height = CARD
    wide = figure.width > 1.5 * figure.height
    card = Image.new("RGB", CARD, "white")
    draw = ImageDraw.Draw(card)
    for k, colour in enumerate(CLASSES):
        draw.rectangle((k * width // 2, 0, (k + 1) * width // 2, 11), fill=colour)
    room = width - 2 * MARGIN if wide else 440
    font = load_font(52 if wide else 50, bold=True)
    words = wrap(title, font, room)
    draw.multiline_text((MARGIN, 40), words, fill=INK, font=font, spacing=10)
    small = load_font(24)
    below = draw.multiline_textbbox((MARGIN, 40), words, font=font, spacing=10)[3] + 16
    said = wrap(place, small, room)
    draw.multiline_text((MARGIN, below), said, fill=MUTED, font=small, spacing=6)
    if wide:
        top = draw.multiline_textbbox((MARGIN, below), said or " ", font=small, spacing=6)[3] + 20
        box = (MARGIN, top, width - MARGIN, height - 24)
    else:
        box = (MARGIN + room + 32, 40, width - MARGIN, height - 24)
    paste_within(card, figure, box)
    return compress(card)


def paste_within(card, figure, box):
    """Paste a figure, as large as it fits, into the middle of a box (left, top, right, bottom)."""
    left, top, right, bottom = box
    scale = min((right - left) / figure.width, (bottom - top) / figure.height)
    size = round(figure.width * scale), round(figure.height * scale)
    corner = left + (right - left - size[0]) // 2, top + (bottom - top - size[1]) // 2
    card.paste(figure.resize(size, Image.Resampling.LANCZOS), corner)


def compress(card):
    """A JPEG of the quality that fits into `HEAVIEST` bytes: a palette of PNG would band the surfaces."""
    for quality in range(90, 40, -5):
        buffer = BytesIO()
        card.save(buffer, "JPEG", quality=quality, optimize=True, progressive=True)
        if buffer.tell() <= HEAVIEST:
            break
    return buffer.getvalue()


def setup(app):
    """Connect to Sphinx: before sphinxext.opengraph writes its tags, and before a bare root page is written."""
    app.connect("builder-inited", list_decks, priority=600)  # once sphinx-sitemap has its list
    app.connect("html-page-context", describe_page, priority=400)
    app.connect("build-finished", write_extras, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
