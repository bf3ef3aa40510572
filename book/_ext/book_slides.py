"""Slides: a deck shows figures, code and tables out of the chapters' executed notebooks, and keeps no copy of any."""

import base64
import html
import json
import re
import textwrap
from io import BytesIO
from pathlib import Path
from typing import ClassVar

from book_pages import BOOK, list_chapters, measure_picture, read_title
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.parsers.rst import directives
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.util.docutils import SphinxDirective
from sphinx_revealjs.nodes import revealjs_section

MAX_LINES, MAX_ROWS, MAX_COLUMNS = 16, 8, 6  # what can be read from the back row
CODE_WIDTH, CODE_SIZES = 1700, (24, 34)  # pixels of a slide of 1920: for a line of code, and for its letters
ADVANCE = 0.603  # width of a monospaced letter, in its size


# --- what the notebooks hold; each function raises a LookupError that says what there is


def pick(name, existing, what):
    """Return `existing[name]`, or say what exists."""
    if name not in existing:
        raise LookupError(f"no {what} {name!r}; there are: {', '.join(map(repr, existing)) or 'none'}")
    return existing[name]


def find_notebook(chapter):
    """Path of a chapter's notebook."""
    return pick(chapter, {name: BOOK / f"{name}.ipynb" for _, names in list_chapters() for name in names}, "chapter")


def list_code_cells(chapter):
    """The code cells of a chapter, their source as one string."""
    cells = json.loads(find_notebook(chapter).read_text(encoding="utf8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == "code"]


def find_figure(chapter, name):
    """The PNG (bytes) and the alt text of a chapter's figure."""
    cells = {
        cell["metadata"]["mystnb"]["figure"]["name"]: cell
        for cell in list_code_cells(chapter)
        if "figure" in cell["metadata"].get("mystnb", {})
    }
    cell = pick(name, cells, f"figure in {chapter}")
    pictures = [output["data"]["image/png"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
    return base64.b64decode(pictures[0]), cell["metadata"]["mystnb"]["image"]["alt"]


def find_code(chapter, words):
    """The source of the one cell of a chapter that begins with `words`, or defines the function of that name."""
    sources = [cell["source"] for cell in list_code_cells(chapter)]
    found = [s for s in sources if s.startswith(words) or re.search(rf"^def {re.escape(words)}\(", s, re.MULTILINE)]
    if len(found) != 1:
        starts = [source.splitlines()[0] for source in sources if source]
        raise LookupError(f"{len(found)} cells of {chapter} begin with {words!r}; wanted: one of {starts}")
    return found[0]


def find_table(chapter, caption):
    """The caption and the rows, columns' names first, of a chapter's printed table; `caption` may be its beginning."""
    outputs = [output for cell in list_code_cells(chapter) for output in cell["outputs"] if "data" in output]
    tables = [
        BeautifulSoup("".join(output["data"]["text/html"]), "html.parser")
        for output in outputs
        if "text/html" in output["data"]
    ]
    captioned = {table.caption.get_text(): table for table in tables if table.caption}
    begin_so = [name for name in captioned if name.startswith(caption)]
    whole = begin_so[0] if len(begin_so) == 1 else caption
    rows = pick(whole, captioned, f"table in {chapter}").find_all("tr")
    return whole, [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in rows]


def cut_code(source, start=None, end=None):
    """The lines from the first that holds `start` to the first after it that holds `end`, without their indent."""
    lines = [re.sub(r"\s*# fmt: skip$", "", line) for line in source.splitlines()]
    first = find_line(lines, start) if start else 0
    last = first + find_line(lines[first:], end) if end else len(lines) - 1
    return textwrap.dedent("\n".join(lines[first : last + 1]))


def find_line(lines, words):
    """The number of the first line that holds `words`."""
    numbers = [i for i, line in enumerate(lines) if words in line]
    if not numbers:
        raise LookupError(f"no line holds {words!r}; the lines are: {lines}")
    return numbers[0]


def fit_code(source):
    """The size of letters, in pixels, at which code fills a slide's width; a ValueError where it cannot be read."""
    lines = source.splitlines()
    if len(lines) > MAX_LINES:
        raise ValueError(f"{len(lines)} lines of code; wanted: at most {MAX_LINES} on a slide, cut by :from: and :to:")
    longest = max(map(len, lines))
    smallest, largest = CODE_SIZES
    size = int(CODE_WIDTH / ADVANCE / longest)
    if size < smallest:
        raise ValueError(f"a line of {longest} letters; wanted: at most {int(CODE_WIDTH / ADVANCE / smallest)}")
    return min(size, largest)


def choose(table, rows=None, columns=None):
    """Some rows and columns of a table, by the names in its first column and its first row, in the order asked for."""
    head, body = table[0], {row[0]: row for row in table[1:]}
    chosen = [pick(name, body, "row") for name in rows] if rows else list(body.values())
    places = {name: i for i, name in enumerate(head)}
    kept = [0, *(pick(name, places, "column") for name in columns)] if columns else list(range(len(head)))
    if len(chosen) > MAX_ROWS or len(kept) > MAX_COLUMNS:
        size = f"{len(chosen)} rows of {len(kept)} columns"
        raise ValueError(f"{size}; wanted: at most {MAX_ROWS} of {MAX_COLUMNS} on a slide, by :rows: and :columns:")
    return [[row[i] for i in kept] for row in (head, *chosen)]


# --- directives


class FromChapter(SphinxDirective):
    """A directive that shows something of a chapter; what cannot be found or read is an error of the deck."""

    required_arguments = 2
    final_argument_whitespace = True

    def run(self):
        try:
            return self.show(*self.arguments)
        except (LookupError, ValueError) as error:
            raise self.error(f"{self.name}: {error.args[0]}") from error

    def depend(self, path):
        """Make this deck again when a file changes."""
        self.env.note_dependency(str(path))


class ChapterFigure(FromChapter):
    """``{chapter-figure} controls fig-unpooled-slopes``: the stored picture with its alt text; content is a caption.

    ``:pattern:`` is for a picture whose shapes count: its letters may be too small to read, so the slide says them.
    ``:six:`` is for one of three rows of six panels: the slide shows six of them, and a link all.
    """

    has_content = True
    option_spec: ClassVar = {"pattern": directives.flag, "six": directives.flag}

    def show(self, chapter, name):
        self.depend(find_notebook(chapter))
        picture, alt = find_figure(chapter, name)
        folder = Path(self.env.app.outdir, "_images")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.png").write_bytes(picture)
        width, height = measure_picture(BytesIO(picture))
        shape = "tall" if width < 1.4 * height else "wide"  # a tall one stands beside the text, a wide one below it
        shape = " ".join([shape, *self.options])
        image = f'<img src="_images/{name}.png" alt="{html.escape(alt)}" width="{width}" height="{height}">'
        if "six" in self.options:
            whole = f'<a href="_images/{name}.png" data-preview-image="_images/{name}.png">All eighteen</a>'
            image = f'<div class="window">{image}</div>{whole}'
        parts = [nodes.raw("", f'<figure class="{shape}">{image}', format="html")]
        if self.content:
            caption = nodes.container()
            self.state.nested_parse(self.content, self.content_offset, caption)
            parts += [nodes.raw("", "<figcaption>", format="html"), *caption.children[0].children]
            parts += [nodes.raw("", "</figcaption>", format="html")]
        return [*parts, nodes.raw("", "</figure>", format="html")]


class ChapterCode(FromChapter):
    """``{chapter-code} moons def density``: the cell that begins so, cut by :from: and :to:."""

    option_spec: ClassVar = {"from": directives.unchanged_required, "to": directives.unchanged_required}

    def show(self, chapter, words):
        self.depend(find_notebook(chapter))
        source = cut_code(find_code(chapter, words), self.options.get("from"), self.options.get("to"))
        shown = highlight(source, PythonLexer(), HtmlFormatter())
        return [
            nodes.raw("", f'<div class="code" style="font-size: {fit_code(source)}px">{shown}</div>', format="html")
        ]


class ChapterTable(FromChapter):
    """``{chapter-table} moons The caption``: a printed table, or the :rows: and :columns: named, a ; between two."""

    option_spec: ClassVar = {"rows": directives.unchanged_required, "columns": directives.unchanged_required}

    def show(self, chapter, caption):
        self.depend(find_notebook(chapter))
        wanted = {key: [name.strip() for name in value.split(";")] for key, value in self.options.items()}
        caption, table = find_table(chapter, caption)
        head, *body = choose(table, **wanted)
        # the corner of a table without a name heads nothing
        columns = "".join(f'<th scope="col">{html.escape(name)}</th>' if name else "<td></td>" for name in head)
        rows = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in body
        )
        start = f"<table><caption>{html.escape(caption)}</caption>"
        return [nodes.raw("", f"{start}<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>", format="html")]


class speaker_notes(nodes.General, nodes.Element):
    """What the lecturer sees: the minutes of a slide, and what to say, run and expect."""


class Notes(SphinxDirective):
    """``{notes} 4``: the minutes of a slide, for the speaker view's clock, and the lecturer's notes."""

    required_arguments = 1
    has_content = True

    def run(self):
        self.assert_has_content()
        minutes = directives.positive_int(self.arguments[0])
        notes = speaker_notes(minutes=minutes)
        self.state.nested_parse(self.content, self.content_offset, notes)
        return [revealjs_section("", **{"data-timing": 60 * minutes}), notes]


def open_notes(translator, node):
    """Write the start of the notes: reveal.js shows this element in its speaker view alone."""
    translator.body.append(f'<aside class="notes"><p><strong>{node["minutes"]} min</strong></p>\n')


def close_notes(translator, node):
    """Write the end of the notes."""
    translator.body.append("</aside>\n")


def link_to_chapter(name, rawtext, text, lineno, inliner, options=None, content=None):
    """Role {chapter}: a chapter's title, as a link to its page; the decks lie in a folder beside the book's."""
    try:
        find_notebook(text)
    except LookupError as error:
        return [], [inliner.reporter.error(error.args[0], line=lineno)]
    return [nodes.reference(rawtext, read_title(text), refuri=f"../book/{text}.html")], []


def setup(app):
    """Add the directives and the role."""
    app.add_node(speaker_notes, revealjs=(open_notes, close_notes))
    app.add_directive("chapter-figure", ChapterFigure)
    app.add_directive("chapter-code", ChapterCode)
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("notes", Notes)
    app.add_role("chapter", link_to_chapter)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
