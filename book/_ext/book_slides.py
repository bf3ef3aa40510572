"""Slides: a deck shows figures, code and tables out of the chapters' executed notebooks, and keeps no copy of any."""

import base64
import html
import json
import math
import re
import shutil
import textwrap
from io import BytesIO
from pathlib import Path
from typing import ClassVar

from book_pages import BOOK, find_claim, list_chapters, make_role, measure_picture, pick, read_title
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.parsers.rst import directives
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.util.docutils import SphinxDirective
from sphinx_revealjs.nodes import revealjs_section

CODE_WIDTH, CODE_SIZES = 1700, (24, 34)  # pixels of a slide of 1920: for a line of code, and for its letters
ADVANCE = 0.603  # width of a monospaced letter, in its size
LIVE = {  # live boxes: the chapter of each, and its script in book/_static/live
    "moons": ("flat_advi", "start.js"),
    "tie": ("hierarchical_nuts", "start.js"),
    "digits": ("digits", "digit_pad.js"),
}


# --- what the notebooks hold; each function raises a LookupError that says what there is


def find_notebook(chapter):
    """Path of a chapter's notebook."""
    return pick(chapter, {name: BOOK / f"{name}.ipynb" for _, names in list_chapters() for name in names}, "chapter")


def list_code_cells(chapter):
    """The code cells of a chapter, their source as one string."""
    cells = json.loads(find_notebook(chapter).read_text(encoding="utf8"))["cells"]
    return [cell | {"source": "".join(cell["source"])} for cell in cells if cell["cell_type"] == "code"]


def find_figure(chapter, name):
    """The PNG (bytes) and the alt text of a chapter's figure."""
    about = [(cell, cell["metadata"].get("mystnb", {})) for cell in list_code_cells(chapter)]
    cells = {mystnb["figure"]["name"]: cell for cell, mystnb in about if "figure" in mystnb}
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
    htmls = ["".join(output["data"]["text/html"]) for output in outputs if "text/html" in output["data"]]
    tables = [BeautifulSoup(text, "html.parser") for text in htmls]
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
    """The size of letters, in pixels, at which code fills a slide's width; a line that is still too long is broken."""
    smallest, largest = CODE_SIZES
    return max(smallest, min(int(CODE_WIDTH / ADVANCE / max(map(len, source.splitlines()))), largest))


def choose(table, rows=None, columns=None):
    """Some rows and columns of a table, by the names in its first column and its first row, in the order asked for."""
    head, body = table[0], {row[0]: row for row in table[1:]}
    chosen = [pick(name, body, "row") for name in rows] if rows else list(body.values())
    places = {name: i for i, name in enumerate(head)}
    kept = [0, *(pick(name, places, "column") for name in columns)] if columns else list(range(len(head)))
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
    """``{chapter-figure} replication fig-unpooled-slopes``: a figure with its alt text.

    ``:tall:`` puts it beside the text. ``:reveal:`` waits for a key; ``:uncover: 52`` at first shows the left 52 %.
    """

    option_spec: ClassVar = {"tall": directives.flag, "reveal": directives.flag, "uncover": directives.percentage}

    def show(self, chapter, name):
        self.depend(find_notebook(chapter))
        image = write_image(self.env.app, name, *find_figure(chapter, name))
        classes, style = ["tall"] if "tall" in self.options else [], ""
        if "reveal" in self.options:
            classes += ["fragment"]
        elif "uncover" in self.options:
            classes += ["fragment", "custom", "uncover"]
            style = f' style="--hidden: {100 - float(self.options["uncover"])}%"'
        return [nodes.raw("", f'<figure class="{" ".join(classes)}"{style}>{image}</figure>', format="html")]


def write_image(app, name, picture, alt):
    """Put a PNG (bytes) beside the decks; returns its element."""
    folder = Path(app.outdir, "_images")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.png").write_bytes(picture)
    width, height = measure_picture(BytesIO(picture))
    return f'<img src="_images/{name}.png" alt="{html.escape(alt)}" width="{width}" height="{height}">'


class LiveBox(FromChapter):
    """``{live-box} moons``: a live demonstration of a chapter, at work on the slide; a picture where nothing runs."""

    required_arguments = 1

    def show(self, name):
        chapter, script = pick(name, LIVE, "live box")
        if name == "digits":  # its script looks for the figure of its page
            picture, alt = find_figure(chapter, "fig-digits-drawn")
            start = '<div class="cell"><figure id="fig-digits-drawn">'
        else:
            path = BOOK / "_static" / "live" / f"{name}.png"
            picture, start = path.read_bytes(), f'<div class="cell"><figure id="fig-live-{name}" class="live-{name}">'
            text = (BOOK / f"{chapter}.md").read_text(encoding="utf8")
            alt = re.search(rf"figure\}} _static/live/{name}\.png\n(?::.*\n)*?:alt: (.+)\n", text)[1]
            self.depend(BOOK / f"{chapter}.md")
        image = write_image(self.env.app, f"live-{name}", picture, alt)
        # a speaker's view shows the deck twice more, and no box is to work there
        wake = f'if (!location.search.includes("receiver")) import("./_static/live/{script}");'
        script = f'<script type="module">{wake}</script>'
        whole = f'<div class="bd-content live" data-prevent-swipe>{start}{image}</figure></div></div>{script}'
        return [nodes.raw("", whole, format="html")]


class Steps(SphinxDirective):
    """``{steps}``: each item, row or paragraph in it waits for a key of its own."""

    has_content = True

    def run(self):
        self.assert_has_content()
        box = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, box)
        for piece in box.children:
            if isinstance(piece, nodes.table):
                waiting = next(piece.findall(nodes.tbody)).children
            elif isinstance(piece, nodes.bullet_list | nodes.enumerated_list):
                waiting = piece.children
            else:
                waiting = [piece]
            for each in waiting:
                each["classes"].append("fragment")
        return box.children


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
    """``{chapter-table} moons The caption``: a printed table, or the :rows: and :columns: named, a ; between two.

    ``:reveal:`` waits for a key.
    """

    option_spec: ClassVar = dict.fromkeys(("rows", "columns"), directives.unchanged_required)
    option_spec["reveal"] = directives.flag

    def show(self, chapter, caption):
        self.depend(find_notebook(chapter))
        wanted = {key: [name.strip() for name in value.split(";")] for key, value in self.options.items() if value}
        caption, table = find_table(chapter, caption)
        head, *body = [[round_cell(cell) for cell in row] for row in choose(table, **wanted)]
        # the corner of a table without a name heads nothing
        columns = "".join(f'<th scope="col">{html.escape(name)}</th>' if name else "<td></td>" for name in head)
        rows = "".join(
            f'<tr><th scope="row">{html.escape(name)}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in body
        )
        start = f"<table{' class=fragment' * ('reveal' in self.options)}><caption>{html.escape(caption)}</caption>"
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


def link_to_chapter(env, text):
    """Role {chapter}: a chapter's title, as a link to its page; the decks lie in a folder beside the book's."""
    find_notebook(text)
    return nodes.reference("", read_title(text), refuri=f"../book/{text}.html")


NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
WITH_ERROR = re.compile(r"(?P<value>-?\d[\d,]*\.?\d*) ± (?P<error>\d[\d,]*\.?\d*)(?: \(n=\d+\))?")


def round_cell(text):
    """A table's cell for a projector: an error has one digit, and its value ends where the error does."""

    def shorten(match):
        value, error = (float(match[name].replace(",", "")) for name in ("value", "error"))
        digits = -math.floor(math.log10(error)) if error else 0
        value, error = (round(number, digits) for number in (value, error))
        return f"{value:,.{max(0, digits)}f} ± {error:,.{max(0, digits)}f}"

    return WITH_ERROR.sub(shorten, text)


def round_claim(value, words):
    """The numbers of a claim's value, errors and sizes apart, put into words with places such as ``{:.1f}``."""
    numbers = [float(number.replace(",", "")) for number in NUMBER.findall(re.sub(r"± [\d.]+|\(n=\d+\)", "", value))]
    try:
        return words.format(*numbers)
    except (IndexError, ValueError, KeyError) as error:
        raise ValueError(f"{words!r} with the numbers {numbers} of {value!r}: {error}") from None


def link_number(env, text):
    """Role {number}: ``{:.1f} % <chapter:id>`` as a claim's number, rounded as one says it, linked to its row."""
    words, _, claim = text.rstrip(">").rpartition("<")
    value, address = find_claim(env, claim)
    return nodes.reference("", round_claim(value, words.strip()), refuri=address, reftitle=value)


def copy_live(app, error):
    """Put the live demonstrations beside the decks, so that a copy of the folder is all of it."""
    if error is None:
        target = Path(app.outdir, "_static", "live")
        shutil.copytree(BOOK / "_static" / "live", target, dirs_exist_ok=True)
        shutil.copy(BOOK / "_static" / "live.css", target)


def setup(app):
    """Add the directives and the roles."""
    app.add_node(speaker_notes, revealjs=(open_notes, close_notes))
    app.add_directive("chapter-figure", ChapterFigure)
    app.add_directive("chapter-code", ChapterCode)
    app.add_directive("chapter-table", ChapterTable)
    app.add_directive("live-box", LiveBox)
    app.add_directive("steps", Steps)
    app.add_directive("notes", Notes)
    app.add_role("chapter", make_role(link_to_chapter))
    app.add_role("number", make_role(link_number))
    app.connect("build-finished", copy_live)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
