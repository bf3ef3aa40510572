"""What the theme and its extensions leave to be mended on this book's pages: self-contained, valid, accessible.

Code gets lines that wrap with a hanging indent, so that no box has to scroll and none is cut off. Live boxes get the
script that wakes them: in the source such a box is a figure like any other (``:figclass: live-moons``), a still picture
with its text and caption, which stands in JupyterLab, in print, and where there are no scripts.
"""

import html
import json
import re
import shutil
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from book_pages import make_role, measure_picture, spell_formula
from docutils import nodes
from PIL import Image
from pygments.formatters import HtmlFormatter
from sphinx_exercise.nodes import is_exercise_node, is_solution_node

NOT_FOUND = """<h1>Page not found</h1>
<p>There is no page at this address. Perhaps a chapter was renamed. <a href="{root}index.html">The way through</a> lists
them all; or search for a word of it.</p>
<p><button class="search-opens btn pst-js-only" type="button" aria-haspopup="dialog">Search</button></p>"""
MENDINGS = (
    ('<summary aria-label="Toggle hidden content">', "<summary>"),  # the label hid the visible "Show code cell source"
    ("<th></th>", "<td></td>"),  # the corner of a DataFrame heads nothing
    ('<th scope="col"></th>', "<td></td>"),  # nor does that of a table of ours
    ('<th class="head"><p></p></th>', '<td class="head"><p></p></td>'),  # nor that of a Markdown table
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),  # a list without list items
    (' role="doc-biblioentry"', ""),  # deprecated
)
ICON_FONT = r"<!-- So that users can add custom icons -->\s*<script [^>]*fontawesome\.js[^>]*></script>\s*"
TAG = re.compile(r"<[^>]+>")
WORD = re.compile(r"[\w-]+")
RULE = re.compile(r"(?<=[{}])(?P<selectors>[^{}@]+)(?P<body>\{[^{}]*\})")
PSEUDO = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)")  # what is in it need not be on the page
FORMULA = re.compile(r'<(span|div) class="math notranslate nohighlight"([^>]*)>(.*?)</\1>', flags=re.DOTALL)
BEFORE_MARK = re.compile(r'(<span class="math notranslate nohighlight"[^>]*>[^<]*</span>)([,.;:!?)]+)')
EQUATION_NUMBER = re.compile(r'<span class="eqno">.*?</span>', flags=re.DOTALL)
WIDE = 560  # CSS pixels, of a picture that a phone shows in part
LINE_HEIGHT = 2.7  # of a displayed formula, in ex; what is high adds to its line:
HIGH = {
    r"[td]?frac(?![a-z])": 2.3,
    r"(?:sum|prod|int)(?![a-z])": 2.3,
    r"(?:sum|prod)_\{[^{}]*\}\^": 4.0,
    "underbrace": 3.4,
}
LIVE = Path(__file__).resolve().parents[1] / "_static" / "live"


def wrap_line(line):
    """Put a line of highlighted code into a box of its own, which knows how far the line is indented.

    The line break stays outside: between boxes as wide as the page it shows as nothing, and whoever copies the code
    gets each line once.
    """
    text = line.rstrip("\n")
    shown = TAG.sub("", text)
    if not shown.strip():
        return line
    indent = len(shown) - len(shown.lstrip(" "))
    style = f' style="--indent: {indent}"' if indent else ""
    return f'<span class="line"{style}>{text}</span>{line[len(text) :]}'


class HangingFormatter(HtmlFormatter):
    """Pygments' own HTML, in which every line is an element that a style sheet can indent."""

    def wrap(self, source):
        """Wrap the lines, then what Pygments puts around them."""
        return super().wrap((is_code, wrap_line(line) if is_code else line) for is_code, line in source)


def hang_lines(app):
    """Let pages be highlighted with lines that hang."""
    if app.builder.format == "html":
        app.builder.highlighter.formatter = HangingFormatter


def find_scripts(pagename, doctree):
    """What wakes the live boxes of a page: scripts, and style sheets, as paths in ``_static`` (two lists).

    A figure with a class ``live-…`` is woken by ``start.js``; a list of questions is made a form; a chapter with a
    stored posterior names its script in ``live/<chapter>.json``. A page without a source has no doctree.
    """
    scripts, sheets = [], []
    if doctree is not None:
        if any(name.startswith("live-") for figure in doctree.findall(nodes.figure) for name in figure["classes"]):
            scripts, sheets = ["live/start.js"], ["live.css"]
        if any("test-sheet" in each["classes"] for each in doctree.findall(nodes.enumerated_list)):
            scripts.append("live/sheet.js")
    folder, _, name = pagename.rpartition("/")
    about = LIVE / f"{name}.json"
    if folder == "book" and about.exists():
        scripts.append(f"live/{json.loads(about.read_text(encoding='utf8'))['script']}")
        sheets.append("live/stored.css")
    return scripts, sheets


def ship_scripts(app, pagename, templatename, context, doctree):
    """Give a page the scripts and styles of its live boxes, and no other page."""
    scripts, sheets = find_scripts(pagename, doctree)
    for script in scripts:
        app.add_js_file(script, type="module")
    for sheet in sheets:
        app.add_css_file(sheet)


def drive_box(env, text):
    """Role {drives}: ``words <fig-name setting=value>`` as a link to a live box, which sets it so."""
    words, figure, setting, value = re.fullmatch(r"(.+) <([\w-]+) (\w+)=([\w.]+)>", text).groups()
    link = f'<a href="#{figure}" data-drives="{setting}" data-value="{value}">{words}</a>'
    return nodes.raw("", link, format="html")


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


def drop_unused(app, pagename, templatename, context, doctree):
    """Take off a page what it never uses: Thebe, which the theme declares twice, an error in itself; tabs; MathJax."""
    body, unused = context.get("body", ""), ["thebe", "sphinx-design", "design-tabs"]
    if 'class="highlight' not in body:
        unused += ["copybutton", "clipboard"]
    if 'class="math' not in body and "math notranslate" not in body:
        unused.append("mathjax")  # Sphinx leaves it on the front page
    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context[kind] if not any(word in describe_script(file) for word in unused)]


def describe_script(script):
    """Return what a script loads or says, in lower case."""
    return f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body')}".lower()


def mend_markup(app, pagename, templatename, context, doctree):
    """Mend, in the page's body, the markup of myst-nb, pandas and docutils that fails an accessibility check."""
    if "body" in context:
        for faulty, sound in MENDINGS:
            context["body"] = context["body"].replace(faulty, sound)


def keep_places(app, pagename, templatename, context, doctree):
    """Say how wide a formula in a sentence will be, or how high one between sentences: fit.css keeps its place.

    And no line begins with the comma behind a formula.
    """
    if "body" in context:
        body = FORMULA.sub(keep_place, context["body"])
        context["body"] = BEFORE_MARK.sub(r'<span class="unbroken">\1\2</span>', body)


def keep_place(formula):
    """A formula (match) that says its size in ex, the height of an x: about one for each character that is shown."""
    tag, attributes, text = formula.groups()
    tex = html.unescape(EQUATION_NUMBER.sub("", text))
    if tag == "span":
        size = len(re.sub(r"[_^]", "", spell_formula(tex)))
    else:
        lines = tex.split(r"\\")
        added = [[high for part, high in HIGH.items() if re.search(rf"\\{part}", line)] for line in lines]
        size = sum(LINE_HEIGHT + max(more, default=0) for more in added)
    return f'<{tag} class="math notranslate nohighlight" style="--ex: {size:.3g}"{attributes}>{text}</{tag}>'


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


def thin_styles(app, exception):
    """Drop from the theme's style sheets each rule for a class that no page and no script names: 50 of 97 KB."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    folders = [out / "_static" / name for name in (".", "scripts", "live", "search")]
    files = [*out.rglob("*.html"), *(script for folder in folders for script in folder.glob("*.js"))]
    words = {word for file in files for word in WORD.findall(file.read_text(encoding="utf8"))}
    for sheet in [*out.glob("_static/styles/*.css"), *out.glob("_static/mystnb.*.css")]:
        thin = RULE.sub(partial(keep_used, words), sheet.read_text(encoding="utf8"))
        sheet.write_text(re.sub(r"@media[^{}]*\{\s*\}", "", thin), encoding="utf8")


def keep_used(words, rule):
    """A rule (match) with those of its selectors whose classes are all among the words; empty without any."""
    selectors = re.split(r",(?![^(]*\))", rule["selectors"])
    needed = [re.findall(r"\.([\w-]+)", PSEUDO.sub("", selector)) for selector in selectors]
    used = [
        selector
        for selector, names in zip(selectors, needed, strict=True)
        if all(name in words or name.startswith("bs-") for name in names)  # Bootstrap puts these together
    ]
    return f"{','.join(used)}{rule['body']}" if used else ""


def shrink_pictures(app, exception):
    """Give the front page's pictures smaller forms, for phones: of half and three quarters of their width, and WebP."""
    if exception is not None or app.builder.format != "html":
        return
    page = Path(app.outdir, f"{app.config.root_doc}.html")
    text = page.read_text(encoding="utf8")

    def offer(match):
        whole, choices = page.parent / match["file"], []
        with Image.open(whole) as picture:
            for share in (0.5, 0.75, 1):
                size = [round(share * side) for side in picture.size]
                form = whole.with_name(f"{whole.stem}-{size[0]}.webp")
                picture.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(form, quality=85, method=6)
                choices.append(f"{match['file'].replace(whole.name, form.name)} {size[0]}w")
        return f'{match[0]} srcset="{", ".join(choices)}" sizes="(max-width: 600px) 95vw, 60rem"'

    if "srcset=" not in text:  # an older build's, where nothing has changed
        page.write_text(re.sub(r'<img [^>]*?src="(?P<file>[^":]+\.png)"', offer, text), encoding="utf8")


def add_size(folder, match):
    """The tag of a picture, with the size at which it is shown, and a mark where a phone lets it scroll (book.css)."""
    width, height = measure_picture(folder / match[1])
    wide = "data-wide " if width > WIDE else ""
    lazy = "" if "loading=" in match[0] else 'loading="lazy" '  # a picture far below is fetched when it is near
    return match[0].replace("<img ", f'<img {wide}width="{width}" height="{height}" {lazy}', 1)


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
    app.connect("builder-inited", hang_lines)
    app.connect("html-page-context", ship_scripts)
    app.add_role("drives", make_role(drive_box))
    app.connect("doctree-read", fold_solutions)
    app.connect("doctree-read", join_folds)
    app.connect("doctree-read", mark_answers)
    app.connect("html-page-context", drop_unused, priority=900)
    app.connect("html-page-context", mend_markup)
    app.connect("html-page-context", keep_places)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", mend_pages)
    app.connect("build-finished", shrink_pictures)
    app.connect("build-finished", thin_styles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
