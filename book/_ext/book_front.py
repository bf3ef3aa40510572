"""What leads into the book: the map of its chapters, a thumbnail and a sentence each; Binder; what a run costs."""

import base64
import html
import json
import re
from io import BytesIO
from pathlib import Path

import nbformat
import numpy as np
import yaml
from book_meta import place_card
from book_pages import BOOK, ROOT, RawTable, link_chapter, list_chapters, make_role, open_binder, read_title
from book_teach import count_minutes, number_chapters
from docutils import nodes
from PIL import Image, ImageDraw, ImageFont, ImageOps
from sphinx.util.docutils import SphinxDirective

CARD, EDGE = (1200, 630), 40  # pixels
THUMB = (320, 200)  # pixels, at most; shown at half of it, so that it is sharp
THUMB_OF = {"group_sd": "fig-group-sd-readouts", "own_file": "fig-own-file-new", "digits": "fig-digits-letter"}
CHART, CHART_PART = "when_to_use", "0 0 242 151"  # a page whose thumbnail is the first two questions of its chart
BLURB = 160  # characters of a chapter's promise, three lines or four
FAST = ("flat_advi", "hierarchical_nuts", "hierarchical_trust", "when_to_use", "workflow")  # who knows networks or PyMC


def read_promise(name):
    """What a chapter gives: the first sentences of its first paragraph, as many as a card has room for."""
    paragraph = (BOOK / f"{name}.md").read_text(encoding="utf8").split(f"\n# {read_title(name)}\n")[1].split("\n\n")[0]
    promise, *more = re.split(r"(?<=[.?!]) ", " ".join(read_plain(paragraph).split()).removeprefix("In this chapter "))
    while more and len(promise) + len(more[0]) < BLURB:
        promise += " " + more.pop(0)
    return promise[0].upper() + promise[1:]


def read_plain(text):
    """MyST text without its markup for links, roles, code and emphasis."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text.strip())
    text = re.sub(r"\{[\w:]+\}`([^<`]+?)(?: <[^>]*>)?`", r"\1", text)
    return re.sub(r"[*`]", "", text)


def find_figure(chapter, wanted=None):
    """The picture that stands for a chapter, a PNG as bytes: one of this name, that of its result, or its first."""
    cells = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
    cells = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))]
    if wanted is not None:
        (cell,) = [cell for cell in cells if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == wanted]
    else:
        cell = max(cells, key=lambda cell: "result" in cell.metadata.get("tags", []))
    return base64.b64decode(next(o["data"]["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})))


def crop_panel(picture):
    """One panel of a picture of several (PIL's, both): what no white stripe divides, of the largest the last."""
    ink = np.asarray(picture.convert("L")) < 250
    gap = max(ink.shape) // 160  # wider than a space between words
    before, box = None, [0, 0, *ink.shape]  # top, left, bottom, right
    while box != before:
        before = list(box)
        for axis in (0, 1):
            seen = np.flatnonzero(ink[box[0] : box[2], box[1] : box[3]].any(axis=1 - axis))
            parts = np.split(seen, np.flatnonzero(np.diff(seen) > gap) + 1)
            part = max(reversed(parts), key=lambda part: len(part) // (4 * gap))
            box[axis], box[axis + 2] = int(box[axis] + part[0]), int(box[axis] + part[-1] + 1)
    return picture.crop((box[1], box[0], box[3], box[2]))


def draw_thumbs(app, exception):
    """Write the thumbnail of every chapter that the map shows with one: ``_static/thumbs/<chapter>.webp``."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_static", "thumbs")
    folder.mkdir(exist_ok=True)
    for name in list_core():
        image = crop_panel(Image.open(BytesIO(find_figure(name, THUMB_OF.get(name)))).convert("RGB"))
        image.thumbnail(THUMB, Image.Resampling.LANCZOS)
        image.save(folder / f"{name}.webp", quality=80)
    chart = (BOOK / "_static" / f"{CHART}.svg").read_text(encoding="utf8")
    size = 'viewBox="{}" width="{}" height="{}"'.format
    part = re.sub(size('[^"]+', r"\d+", r"\d+"), size(CHART_PART, *THUMB), chart, count=1)
    (folder / f"{CHART}.svg").write_text(part, encoding="utf8")


def draw_cards(app, exception):
    """Write what a preview of a link shows of each page: its title over its chapter's picture, or the cover."""
    if exception is not None or app.builder.format != "html":
        return
    chapters = [name for _, names in list_chapters() for name in names]
    for page in app.env.found_docs:
        name = page.removeprefix("book/")
        picture = find_figure(name) if name in chapters else (BOOK / "_static" / "cover.png").read_bytes()
        path = Path(app.outdir, place_card(page))
        path.parent.mkdir(parents=True, exist_ok=True)
        draw_card(app.env.titles[page].astext(), app.config.project, picture).save(path, optimize=True)


def draw_card(title, book, picture):
    """A card of 1200 by 630 pixels, the size that previews ask for, in the font of the pages."""
    card = Image.new("RGB", CARD, "white")
    draw, width = ImageDraw.Draw(card), CARD[0] - 2 * EDGE
    lines = wrap_words(title, load_font(54, 650), width)
    draw.multiline_text((EDGE, 32), "\n".join(lines), "#222832", load_font(54, 650), spacing=8)
    draw.text((EDGE, CARD[1] - 66), book, "#48566b", load_font(28, 400))
    draw.rectangle((0, CARD[1] - 14, 0.72 * CARD[0], CARD[1]), "#0072b2")  # as on the covers
    draw.rectangle((0.72 * CARD[0], CARD[1] - 14, *CARD), "#d55e00")
    top = 52 + 70 * len(lines)
    image = Image.open(BytesIO(picture)).convert("RGB")
    room = width, CARD[1] - 82 - top
    image = ImageOps.contain(image, room, Image.Resampling.LANCZOS)
    card.paste(image, ((CARD[0] - image.width) // 2, top + (room[1] - image.height) // 2))
    return card.quantize(128)


def load_font(size, weight):
    """The pages' own font."""
    font = ImageFont.truetype(BOOK / "_static" / "fonts" / "source-sans-3.woff2", size)
    font.set_variation_by_axes([weight])
    return font


def wrap_words(text, font, width):
    """Lines of a text that are no wider than so many pixels."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        lines = [*lines[:-1], longer] if font.getlength(longer) <= width else [*lines, word]
    return lines


def list_core():
    """The chapters of all numbered parts but the last, which is the evidence."""
    return [name for _, names in list_chapters(numbered=True)[:-1] for name in names]


class ChapterMap(SphinxDirective):
    """Every numbered chapter and the minutes to read it, with a thumbnail and its promise; the evidence as a list."""

    def run(self):
        parts, numbers = [], number_chapters()
        toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))["parts"]
        numbered = [part for part in toc if "numbered" in part]
        for part in numbered:
            names = [Path(chapter["file"]).stem for chapter in part["chapters"]]
            cards = "".join(self.write_card(numbers[name], name, part is not numbered[-1]) for name in names)
            parts.append(f'<p class="part">{html.escape(part["caption"])}</p><ul class="chapter-map">{cards}</ul>')
        return [nodes.raw("", "".join(parts), format="html")]

    def write_card(self, number, name, is_core):
        """One chapter as an item of a list."""
        for suffix in (".md", ".ipynb"):
            self.env.note_dependency(str(BOOK / f"{name}{suffix}"))
        marks = f"{count_minutes([name])} min" + ", fast lane" * (name in FAST)
        link = f'{number}. {link_chapter(name)} <span class="minutes">{marks}</span>'
        if not is_core:
            return f"<li>{link}</li>"
        up = "../" * self.env.docname.count("/")
        width, height = (side // 2 for side in THUMB)
        source = f"{name}.{'svg' if name == CHART else 'webp'}"
        thumb = f'<img src="{up}_static/thumbs/{source}" alt="" width="{width}" height="{height}" loading="lazy">'
        return f"<li>{thumb}<div><p>{link}</p><p>{html.escape(read_promise(name))}</p></div></li>"


class RunCosts(RawTable):
    """What it takes to run each chapter, in CPU-seconds and memory, as the study `run_cost` measured it."""

    def run(self):
        path = BOOK / "data" / "run_cost.json"
        costs = {row["chapter"]: row for row in json.loads(path.read_text())["rows"]}
        rows, sources = [], [path]
        for caption, names in list_chapters():
            rows.append([html.escape(caption)])
            for name in names:
                cost = costs.get(name)
                measured = [f"{cost['cpu_seconds']} s", f"{cost['megabytes']:,} MB"] if cost else ["not measured"] * 2
                rows.append([link_chapter(name), *measured])
                sources.append(BOOK / f"{name}.md")
        return [self.show("CPU time and memory of each chapter", ["Chapter", "CPU time", "Memory"], rows, *sources)]


def open_in_binder(env, text):
    """Role {binder}: ``words <chapter>`` as a link that opens the chapter in Binder, as the button at its top does."""
    words, chapter = re.fullmatch(r"(.+) <(\w+)>", text).groups()
    address = open_binder(env.config.html_theme_options, f"book/{chapter}.ipynb")
    return nodes.reference("", words, refuri=address)


def setup(app):
    """Add the directives and the role."""
    app.add_role("binder", make_role(open_in_binder))
    app.add_directive("chapter-map", ChapterMap)
    app.add_directive("run-costs", RunCosts)
    app.connect("build-finished", draw_thumbs)
    app.connect("build-finished", draw_cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
