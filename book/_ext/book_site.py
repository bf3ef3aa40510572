"""What the theme and its extensions leave to be mended on this book's pages: self-contained, valid, accessible."""

import re
import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from book_pages import measure_picture
from docutils import nodes
from sphinx_exercise.nodes import is_exercise_node, is_solution_node

NOT_FOUND = """<h1>Page not found</h1>
<p>There is no page at this address. Perhaps a chapter was renamed. <a href="{root}index.html">The way through</a> lists
them all; or search for a word of it.</p>
<p><pagefind-modal-trigger class="pst-js-only" placeholder="Search" hide-shortcut></pagefind-modal-trigger></p>"""
MENDINGS = (
    ('<summary aria-label="Toggle hidden content">', "<summary>"),  # the label hid the visible "Show code cell source"
    ("<th></th>", "<td></td>"),  # the corner of a DataFrame heads nothing
    ('<th scope="col"></th>', "<td></td>"),  # nor does that of a table of ours
    ('<th class="head"><p></p></th>', '<td class="head"><p></p></td>'),  # nor that of a Markdown table
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),  # a list without list items
    (' role="doc-biblioentry"', ""),  # deprecated
)
ICON_FONT = r"<!-- So that users can add custom icons -->\s*<script [^>]*fontawesome\.js[^>]*></script>\s*"


def fold_solutions(app, doctree):
    """Fold every solution, and make unique the ids that sphinx-exercise repeats on every exercise of a page.

    The class "dropdown" is added here rather than in the chapters: JupyterLab would fold the mere opening line.
    """
    for node in doctree.findall(lambda n: is_exercise_node(n) or is_solution_node(n)):
        if is_solution_node(node):
            node["classes"].append("dropdown")
        for section in node.findall(nodes.section):
            section["ids"] = [
                re.sub("^(exercise|solution)-content$", f"{node['label']}-content", i) for i in section["ids"]
            ]


def join_folds(app, doctree):
    """Fold a cell whose code and output are both folded into one box: myst-nb makes two, of the same name."""
    for node in doctree.findall(nodes.container):
        if node.get("hide_mode") == "input+output":
            node["hide_mode"] = "all"


def mark_answers(app, doctree):
    """Tell the right answer to a question from the others by a class; its text begins with "Right:"."""
    for answer in doctree.findall(lambda node: isinstance(node, nodes.admonition) and "answer" in node["classes"]):
        is_right = any(p.astext().startswith("Right:") for p in answer.findall(nodes.paragraph))
        answer["classes"].append("right" if is_right else "wrong")


def drop_thebe(app, pagename, templatename, context, doctree):
    """Take off the page what it never uses: Thebe, which the theme declares twice, an error in itself, and tabs."""
    unused = ("thebe", "sphinx-design", "design-tabs")  # no page has cards or tabs
    if 'class="highlight' not in context.get("body", ""):
        unused += ("copybutton", "clipboard")  # nothing to copy
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context[kind] if not any(word in describe_script(file) for word in unused)]


def drop_mathjax(app, pagename, templatename, context, doctree):
    """Take MathJax off a page without mathematics: Sphinx leaves it on the front page."""
    if 'class="math' not in context.get("body", "") and "math notranslate" not in context.get("body", ""):
        context["script_files"] = [s for s in context["script_files"] if "mathjax" not in describe_script(s)]


def describe_script(script):
    """Return what a script loads or says, in lower case."""
    return f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body')}".lower()


def mend_markup(app, pagename, templatename, context, doctree):
    """Mend, in the page's body, the markup of myst-nb, pandas and docutils that fails an accessibility check."""
    if "body" in context:
        for faulty, sound in MENDINGS:
            context["body"] = context["body"].replace(faulty, sound)


def mend_pages(app, exception):
    """Give every picture of every page its width and height, so that nothing moves while a page loads.

    Take off Font Awesome, over half of every first load: the theme's templates name it, and icons.css replaces it.
    """
    if exception is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf8")
        mended = re.sub(r'<img (?![^>]*\bwidth=)[^>]*?src="([^":]+\.png)"[^>]*?>', partial(add_size, page.parent), text)
        mended = mended.replace('loading="lazy" ', "", 1)  # the first picture is in the first screen
        mended = re.sub(ICON_FONT, "", mended)
        mended = mended.replace('data-theme="auto"', 'data-theme="light"', 1)  # colours where no script chooses them
        if mended != text:
            page.write_text(mended, encoding="utf8")
    static = Path(app.outdir, "_static")
    shutil.rmtree(static / "vendor" / "fontawesome", ignore_errors=True)
    for file in static.glob("scripts/fontawesome.js*"):
        file.unlink()


def add_size(folder, match):
    """The tag of a picture, with the size at which it is shown."""
    width, height = measure_picture(folder / match[1])
    lazy = "" if "loading=" in match[0] else 'loading="lazy" '  # a picture far below is fetched when it is near
    return match[0].replace("<img ", f'<img width="{width}" height="{height}" {lazy}', 1)


def copy_mathjax(app, exception):
    """Copy MathJax out of the package ``sphinx-mathjax-offline``: the parts that pages load, 2 of its 24 MB.

    The package cannot be listed as an extension: its folder's name, with hyphens, is no Python identifier, and it
    would copy all of itself.
    """
    if exception is not None or app.builder.format != "html":
        return
    (package,) = find_spec("sphinx-mathjax-offline").submodule_search_locations
    source = Path(package, "static", "mathjax")
    target = Path(app.outdir, "_static", "mathjax")
    for name in ("startup", "core", "input/tex", "output/chtml", "a11y/assistive-mml"):
        file = target / f"{name}.js"
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / f"{name}.js", file)
    for folder in ("output/chtml/fonts", "input/tex/extensions"):
        shutil.copytree(source / folder, target / folder, dirs_exist_ok=True)


def derive_addresses(app, config):
    """Where the site will be, from the one setting that a fork changes: repository_url, a GitHub address."""
    owner, name = config.html_theme_options["repository_url"].rstrip("/").split("/")[-2:]
    config.html_baseurl = config.html_baseurl or f"https://{owner}.github.io/{name}/"
    config.ogp_site_url = config.html_baseurl
    config.notfound_urls_prefix = f"/{name}/"
    config.notfound_context = {"title": "Page not found", "body": NOT_FOUND.format(root=f"/{name}/")}


def setup(app):
    """Connect the repairs to Sphinx."""
    app.connect("config-inited", derive_addresses, priority=100)
    app.connect("doctree-read", fold_solutions)
    app.connect("doctree-read", join_folds)
    app.connect("doctree-read", mark_answers)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", drop_mathjax, priority=900)
    app.connect("html-page-context", mend_markup)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", mend_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
