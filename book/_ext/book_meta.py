"""What a page says of itself: to link previews and search engines, and at its foot to its reader."""

import html
import json
import posixpath
import re
import subprocess
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

import yaml
from book_pages import BOOK, ROOT, SYMBOLS, list_chapters, spell_formula
from book_teach import count_minutes
from bs4 import BeautifulSoup
from docutils import nodes

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
LINK = re.compile(r'<a class="reference internal" href="(?P<page>[^"#:]*?)(?:\.html)?#(?P<anchor>[^"]+)"')
LONGEST = 240  # characters of a description, where a sentence ends by then
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


@cache
def read_citation():
    """What CITATION.cff says: the book's title, authors, version and year."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))


def find_doi():
    """The DOI of the book as CITATION.cff has it; None before there is one."""
    citation = read_citation()
    return citation["preferred-citation"].get("doi") or citation.get("doi")


@cache
def find_commit():
    """The commit that the checkout is at, and its day; None for a tree without git, such as an unpacked archive."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%H %cs"]
    try:
        return tuple(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    except (OSError, subprocess.CalledProcessError):
        return None


@cache
def place_pages():
    """The caption of the part that each page of _toc.yml is in: {name of a page: str}."""
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))["parts"]
    entries = [(part["caption"], [c, *c.get("sections", [])]) for part in parts for c in part["chapters"]]
    return {entry["file"].rpartition(".")[0]: caption for caption, found in entries for entry in found}


def place_card(page):
    """Where the card of a page lies in the site."""
    return f"_images/cards/{page.replace('/', '_')}.png"


def summarise(doctree):
    """The first sentence of a page's first paragraph, and those after it that fit."""
    return cut_text(next(doctree.findall(lambda node: isinstance(node, nodes.paragraph) and is_prose(node))).astext())


def cut_text(text):
    """The first sentence of a text, and those after it that fit."""
    summary, *others = re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(text.split()))
    for sentence in others:
        if len(f"{summary} {sentence}") > LONGEST or "\\" in sentence:  # TeX
            break
        summary += f" {sentence}"
    return summary


def is_prose(paragraph):
    """Whether a paragraph stands in the page itself, and not in a box, a caption or a list."""
    return isinstance(paragraph.parent, nodes.section | nodes.container) and bool(paragraph.astext().strip())


def describe_page(app, pagename, templatename, context, doctree):
    """Give a page its description, the releases' feed and the words of its foot, and the front page its JSON-LD.

    sphinxext.opengraph writes the tags of previews; it takes what `meta` has of its own. book_front draws the cards.
    """
    feed = f"{name_repository(app)}/releases.atom"
    link = f'<link rel="alternate" type="application/atom+xml" title="Releases" href="{feed}" />\n'
    context["metatags"] = context.get("metatags", "") + link
    heading = BeautifulSoup(context.get("title", pagename), "html.parser").get_text()
    context["about"] = describe_origin(app, pagename, heading) | {"places": place_pages()}
    name = pagename.removeprefix("book/")
    if name in [name for _, names in list_chapters(numbered=True) for name in names]:
        context["about"]["minutes"] = count_minutes([name])
    if doctree is None:
        return
    description = summarise(doctree)
    escaped = html.escape(description)
    card = f"{app.config.html_baseurl}{place_card(pagename)}"
    context["meta"] = (context["meta"] or {}) | {"og:description": escaped, "og:image": card, "og:image:alt": escaped}
    context["metatags"] += '<meta name="twitter:card" content="summary_large_image" />\n'
    context["metatags"] += f'<meta name="description" content="{escaped}" />\n'
    if pagename == app.config.root_doc:
        data = json.dumps(describe_book(app, description), ensure_ascii=False).replace("</", "<\\/")
        context["metatags"] += f'<script type="application/ld+json">{data}</script>\n'


def preview_links(app, pagename, templatename, context, doctree):
    """Let a link to a term or a section say on hover what stands there, as one to a reference does."""

    def show(match):
        page = (
            posixpath.normpath(posixpath.join(posixpath.dirname(pagename), match["page"]))
            if match["page"]
            else pagename
        )
        said = read_previews(app.env, page).get(match["anchor"]) if page in app.env.found_docs else None
        return f'{match[0]} title="{html.escape(said)}"' if said else match[0]

    if "body" in context:
        context["body"] = LINK.sub(show, context["body"])


@cache
def read_previews(env, page):
    """What stands at the anchors of a page: the definition of each term, the first sentences of each section."""
    doctree, previews = env.get_doctree(page), {}
    for term in doctree.findall(nodes.term):
        item = term.parent
        previews |= dict.fromkeys(term["ids"], cut_text(read_plain(item[-1])))
    for section in doctree.findall(nodes.section):
        first = next((each for each in section.children if isinstance(each, nodes.paragraph)), None)
        if first is not None and "\\" not in (said := cut_text(read_plain(first))):
            previews |= dict.fromkeys(section["ids"], f"{section[0].astext()}. {said}".replace("?.", "?"))
    return previews


def read_plain(node):
    """The text of a node, its formulas as plain text where they consist of symbols and names."""
    node = node.deepcopy()
    for formula in list(node.findall(nodes.math)):
        tex = formula.astext().replace(r"\{", "(").replace(r"\}", ")")
        if {*re.findall(r"\\([a-zA-Z]+)", tex)} <= {*SYMBOLS, "mathrm"}:
            formula.replace_self(nodes.Text(spell_formula(tex)))
    return node.astext()


def name_repository(app):
    """The address of the repository, without a slash at its end."""
    return app.config.html_theme_options["repository_url"].rstrip("/")


def describe_book(app, description):
    """The book as schema.org has it, for search engines."""
    citation, doi = read_citation(), find_doi()
    return {
        "@context": "https://schema.org",
        "@type": "Book",
        "name": citation["title"],
        "description": description,
        "url": f"{app.config.html_baseurl}{app.config.root_doc}.html",
        "author": [{"@type": "Organization", "name": author["name"]} for author in citation["authors"]],
        "license": LICENCE,
        "inLanguage": app.config.language,
        "version": str(citation["version"]),
        "datePublished": str(citation.get("date-released") or citation["preferred-citation"]["year"]),
    } | ({"sameAs": f"https://doi.org/{doi}"} if doi else {})


def describe_origin(app, pagename, title):
    """What the foot of a page tells: the book's version, the commit, and where to mend this page."""
    repository, branch = name_repository(app), app.config.html_theme_options["repository_branch"]
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


def write_root_page(app, exception):
    """Write the page at the site's own address: it leads on to the front page, and says in a preview what that says."""
    if exception is not None or app.builder.format != "html":
        return
    folder, front = Path(app.outdir), f"{app.config.root_doc}.html"
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


def list_decks(app):
    """Enter the slides, a site of their own beside the pages, into the sitemap."""
    for deck in sorted((BOOK / "teach" / "slides").glob("*.md")):
        app.sitemap_links.put((f"slides/{deck.stem}.html", None))


def setup(app):
    """Connect to Sphinx: before sphinxext.opengraph writes its tags, and before a bare root page is written."""
    app.connect("builder-inited", list_decks, priority=600)  # once sphinx-sitemap has its list
    app.connect("html-page-context", describe_page, priority=400)
    app.connect("html-page-context", preview_links)
    app.connect("build-finished", write_root_page, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
