"""The index of the search: Pagefind is given the prose of every page, and answers in the reader's browser.

Pagefind could read the built pages. Here it is given less, from the same documents: headings with the ids that links
lead to (in the pages, the section around a heading carries the id), words of the glossary and names of the package as
headings of their own, and paragraphs. Code, its output and solutions stay out: they would fill the snippets.
"""

import html
import re
import shutil
import subprocess
import sys
from pathlib import Path

from book_pages import MADE_FROM
from docutils import nodes
from docutils.utils.math import tex2unichar
from sphinx import addnodes
from sphinx_exercise.nodes import is_solution_node

FOLDER = "pagefind"
LOADED = ("pagefind.js", "pagefind-entry.json", "pagefind.en_*", "wasm.en.*", "fragment", "index")
SYMBOLS = {
    name: symbol
    for table in ("mathalpha", "mathbin", "mathop", "mathord", "mathrel")
    for name, symbol in getattr(tex2unichar, table).items()
} | {"exp": "exp", "log": "log", "max": "max", "min": "min", "sqrt": "√", "tanh": "tanh"}


def keep_outline(app, pagename, templatename, context, doctree):
    """Keep what the index needs of a page while it is written: a build writes only those that changed."""
    if doctree is not None and app.builder.format == "html":
        path = Path(find_outlines(app), app.builder.get_target_uri(pagename))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(outline(doctree, weigh(pagename)), encoding="utf8")


def find_outlines(app):
    """The folder in which the outlines lie as the pages do: Path."""
    return Path(app.doctreedir, "search")


def write_index(app, exception):
    """Index all pages of a built site."""
    if exception is not None or app.builder.format != "html":
        return
    outlines = find_outlines(app)
    pages = {outlines / app.builder.get_target_uri(name) for name in app.env.found_docs}
    for gone in set(outlines.rglob("*.html")) - pages:
        gone.unlink()
    run_pagefind(outlines, Path(app.outdir, FOLDER))


def run_pagefind(pages, folder):
    """Index the pages in one folder into another, with the binary that the package brings along."""
    shutil.rmtree(folder, ignore_errors=True)
    settings = ["--force-language", "en", "--keep-index-url", "--quiet"]
    subprocess.run([sys.executable, "-m", "pagefind", "--site", pages, "--output-path", folder, *settings], check=True)
    keep_loaded(folder)


def keep_loaded(folder):
    """Delete what Pagefind ships and no page of ours loads: its own user interfaces."""
    kept = {path for pattern in LOADED for path in folder.glob(pattern)}
    for path in set(folder.iterdir()) - kept:
        path.unlink()


def weigh(name):
    """What a word counts on a page: most where it is explained, least where a course passes by it."""
    folder, _, page = name.rpartition("/")
    return {"glossary": 3, "primer": 2}.get(page, 2 if page in MADE_FROM else 0.5 if folder == "book/teach" else 1)


def outline(doctree, weight):
    """A page as Pagefind is to see it: HTML of headings and paragraphs, nothing else."""
    lines = "".join(write_lines(doctree, weight))
    return f'<html lang="en"><body data-pagefind-body data-pagefind-weight="{weight}">{lines}</body></html>'


def write_lines(node, weight, level=1):
    """The HTML of the headings and paragraphs in a node, one after the other: iterator of str."""
    if is_solution_node(node) or "prerequisites" in node.get("classes", []):  # the latter: the box "Before you start"
        return
    if isinstance(node, nodes.paragraph) and node.astext().startswith("Goes on from "):  # of an example: no answer
        return
    names, target = find_names(node)
    if names:
        yield write_heading(level, names, target, weight)
        level = 2
    if isinstance(node, nodes.paragraph | nodes.caption | nodes.title):
        yield f"<p>{close_up(write_words(node, weight))}</p>"
    else:
        for child in node.children:
            if isinstance(child, nodes.Element) and child not in names:
                yield from write_lines(child, weight, level)


def find_names(node):
    """What a node is called and where it is linked to, if a result may lead to it: list of nodes, node with the id."""
    if isinstance(node, nodes.section):
        return [child for child in node.children if isinstance(child, nodes.title)], node
    if isinstance(node, nodes.definition_list_item) and "glossary" in node.parent.get("classes", []):
        terms = [child for child in node.children if isinstance(child, nodes.term)]
        return terms, terms[0]
    if isinstance(node, addnodes.desc_signature) and node["ids"]:
        return list(node.findall(addnodes.desc_name)), node
    return [], None


def write_heading(level, names, target, weight):
    """A heading that a result leads to: by its label, which outlives its words, where it has one."""
    words, ids = html.escape(", ".join(name.astext() for name in names)), target["ids"]
    anchor = next((name for name in ids if name.startswith("sec-")), ids[0])
    return f'<h{level} id="{html.escape(anchor)}" data-pagefind-weight="{4 * weight}">{words}</h{level}>'


def write_words(node, weight):
    """Words of a paragraph. They count more where the book introduces them: in italics, or linked to the glossary."""
    if isinstance(node, nodes.Text):
        return html.escape(node.astext())
    if isinstance(node, nodes.math):
        return html.escape(spell_formula(node.astext()))
    if isinstance(node, nodes.emphasis) or "std-term" in node.get("classes", []):
        return f'<em data-pagefind-weight="{3 * weight}">{html.escape(node.astext())}</em>'
    return "".join(write_words(child, weight) for child in node.children)


def close_up(words):
    """Draw brackets and commas into the words that they touch, as Pagefind ends a word where a weight ends."""
    return re.sub(r"</em>([^\s<]+)", r"\1</em>", re.sub(r"([^\s>]+)(<em [^>]+>)", r"\2\1", words))


def spell_formula(tex):
    """A formula within a sentence, as plain text: σ and N(0, 1), not \\sigma and \\mathrm{N}(0, 1)."""
    return re.sub(r"\\([a-zA-Z]+)|\\.|[{}$]", lambda match: SYMBOLS.get(match[1], ""), tex)


def setup(app):
    """Outline each page as it is written, and index them all in the end."""
    app.connect("html-page-context", keep_outline)
    app.connect("build-finished", write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
