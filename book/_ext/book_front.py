"""What leads into the book: the map of its chapters, a thumbnail and a sentence each; Binder; what a run costs."""

import base64
import html
import json
import re
from io import BytesIO
from pathlib import Path

import nbformat
from book_pages import BOOK, RawTable, link_chapter, list_chapters, make_role, open_binder, read_title
from book_teach import count_minutes, number_chapters
from docutils import nodes
from PIL import Image
from sphinx.util.docutils import SphinxDirective

THUMB = (320, 200)  # pixels, at most; shown at half of it, so that it is sharp


def read_promise(name):
    """What a chapter gives, from its first paragraph."""
    paragraph = (BOOK / f"{name}.md").read_text(encoding="utf8").split(f"\n# {read_title(name)}\n")[1].split("\n\n")[0]
    promise = " ".join(read_plain(paragraph).split()).removeprefix("In this chapter ")
    return promise[0].upper() + promise[1:]


def read_plain(text):
    """MyST text without its markup for links, roles, code and emphasis."""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text.strip())
    text = re.sub(r"\{[\w:]+\}`([^<`]+?)(?: <[^>]*>)?`", r"\1", text)
    return re.sub(r"[*`]", "", text)


def find_figure(chapter):
    """The picture that stands for a chapter, a PNG as bytes: that of its result, else its first."""
    cells = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
    cells = [cell for cell in cells if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))]
    cell = max(cells, key=lambda cell: "result" in cell.metadata.get("tags", []))
    return base64.b64decode(next(o["data"]["image/png"] for o in cell.outputs if "image/png" in o.get("data", {})))


def draw_thumbs(app, exception):
    """Write the thumbnail of every chapter that the map shows with one: ``_static/thumbs/<chapter>.webp``."""
    if exception is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, "_static", "thumbs")
    folder.mkdir(exist_ok=True)
    for name in list_core():
        image = Image.open(BytesIO(find_figure(name))).convert("RGB")
        image.thumbnail(THUMB, Image.Resampling.LANCZOS)
        image.save(folder / f"{name}.webp", quality=80)


def list_core():
    """The chapters of all numbered parts but the last, which is the evidence."""
    return [name for _, names in list_chapters(numbered=True)[:-1] for name in names]


class ChapterMap(SphinxDirective):
    """Every numbered chapter and the minutes to read it, with a thumbnail and its promise; the evidence as a list."""

    def run(self):
        core, parts, numbers = list_core(), [], number_chapters()
        for caption, names in list_chapters(numbered=True):
            cards = "".join(self.write_card(numbers[name], name, is_core=name in core) for name in names)
            parts.append(f'<p class="part">{html.escape(caption)}</p><ul class="chapter-map">{cards}</ul>')
        return [nodes.raw("", "".join(parts), format="html")]

    def write_card(self, number, name, *, is_core):
        """One chapter as an item of a list."""
        for suffix in (".md", ".ipynb"):
            self.env.note_dependency(str(BOOK / f"{name}{suffix}"))
        link = f'{number}. {link_chapter(name)} <span class="minutes">{count_minutes([name])} min</span>'
        if not is_core:
            return f"<li>{link}</li>"
        up = "../" * self.env.docname.count("/")
        width, height = (side // 2 for side in THUMB)
        thumb = f'<img src="{up}_static/thumbs/{name}.webp" alt="" width="{width}" height="{height}" loading="lazy">'
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
    return {"parallel_read_safe": True, "parallel_write_safe": True}
