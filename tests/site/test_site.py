"""All pages of the site: each test walks them and collects what is wrong, first in the files, then in a browser."""

import base64
import io
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, unquote, urldefrag, urljoin, urlsplit
from xml.etree import ElementTree

import nbformat
import pytest
import yaml
from book_tables import tidy_table
from bookkit.claims import MIME, find_verdicts
from bs4 import BeautifulSoup
from PIL import Image
from pypdf import PdfReader
from tools.browser import find_colour_violations, find_form_violations, open_context, open_tab, unfold

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
REPOSITORY = SETTINGS["repository"]["url"]
OWNER, NAME = REPOSITORY.split("/")[-2:]
BASE = f"https://{OWNER}.github.io/{NAME}/"


def list_documents(toc):
    """Return the files that a table of contents names, the root first."""
    if isinstance(toc, list):
        return [name for entry in toc for name in list_documents(entry)]
    if not isinstance(toc, dict):
        return []
    named = [toc[key] for key in ("root", "file") if key in toc]
    return named + [name for value in toc.values() for name in list_documents(value)]


DOCUMENTS = list_documents(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8")))
NOTEBOOKS = [name for name in DOCUMENTS if name.endswith(".ipynb")]
CHAPTERS = [Path(name).stem for name in NOTEBOOKS]
PAGES = [str(Path(name).with_suffix(".html")) for name in DOCUMENTS]


@cache
def parse(site, name):
    """Parse a page; all tests read one copy, so none may change it."""
    return BeautifulSoup((site / name).read_text(encoding="utf8"), "html.parser")


def expect_none(complaints):
    """Fail with one complaint a line."""
    assert not complaints, "\n" + "\n".join(map(str, complaints))


# --- links, pictures, ids


@cache
def count_ids(site, name):
    """How often a page gives each id: Counter."""
    return Counter(element["id"] for element in parse(site, name).select("[id]"))


def leads_somewhere(site, name, link):
    """Tell whether a relative link finds its file and, in a page, its anchor."""
    path, anchor = urldefrag(link)
    target = unquote(urlsplit(urljoin(name, path)).path) if path else name
    if not (site / target).is_file():
        return False
    return not (anchor and target.endswith(".html")) or unquote(anchor) in count_ids(site, target)


def test_no_link_within_the_site_is_broken_and_no_id_given_twice(site):
    complaints = []
    for name in [*PAGES, "index.html", "search.html", "genindex.html"]:
        for element in parse(site, name).select("a[href], link[href], img[src], script[src]"):
            link = element.get("href") or element.get("src") or ""
            if not urlsplit(link).scheme and not leads_somewhere(site, name, link):
                complaints.append(f"{name}: {link}")
    complaints += [f"{name}: {i} twice" for name in PAGES for i, times in count_ids(site, name).items() if times > 1]
    expect_none(complaints)


def test_every_picture_has_alt_text_a_caption_and_a_size(site):
    complaints = []
    for name in PAGES:
        for image in parse(site, name).select("article img"):
            source, alt = image["src"], image.get("alt", "").strip()
            caption = image.find_parent("figure") and image.find_parent("figure").find("figcaption")
            if source.endswith(".png") and not (image.get("width") and image.get("height")):
                complaints.append(f"{name}: {source}: no size")
            # a thumbnail repeats the link beside it, and a box on a handout is named in its line
            if image.find_parent(class_="chapter-map") or name == "book/teach/handouts.html":
                continue
            if not alt or Path(source).name in alt:  # Sphinx puts the file's own name there
                complaints.append(f"{name}: {source}: no alt text")
            if not (caption and caption.get_text(strip=True)):
                complaints.append(f"{name}: {source}: no caption")
    expect_none(complaints)


# --- what a page says of itself


def read_meta(site, name, key):
    """The content of the one meta element of a page with this name or property; an empty text without it."""
    found = parse(site, name).select(f'meta[name="{key}"], meta[property="{key}"]')
    return found[0]["content"] if len(found) == 1 else ""


def test_every_page_has_a_title_a_description_and_a_card(site):
    complaints, told = [], {}
    for name in [*PAGES, "index.html"]:
        description, card = (read_meta(site, name, key) for key in ("description", "og:image"))
        picture = site / card.removeprefix(BASE)
        wanted = {
            "a title": parse(site, name).title.get_text(strip=True) and read_meta(site, name, "og:title"),
            "its address": read_meta(site, name, "og:url") in (BASE + name, f"{BASE}book/index.html"),
            "a description in whole sentences": 20 < len(description) < 400 and re.search(r"[.?]$", description),
            "no TeX in its description": "\\" not in description,
            "a description of its own": name == "index.html" or description not in told,
            "a picture as its card": card.startswith(BASE) and picture.is_file() and Image.open(picture).width > 1000,
        }
        told[description] = name
        complaints += [f"{name} has not {what}" for what, holds in wanted.items() if not holds]
    expect_none(complaints)


def test_the_foot_of_a_page_names_licences_and_version_and_leads_to_its_source(site):
    complaints = []
    for name in PAGES:
        foot = parse(site, name).select_one(".page-footer")
        links = {link.get_text(): link["href"] for link in foot.select("a")}
        source = links["Edit this page"].removeprefix(f"{REPOSITORY}/edit/main/")
        report = parse_qs(urlsplit(links["Report an error"]).query)
        wanted = {
            "the version": f"Version {CITATION['version']}" in foot.get_text(),
            "the licences": links["CC BY 4.0"].startswith("https://creative") and links["MIT"].startswith(REPOSITORY),
            "its own source, in Markdown": (ROOT / source).is_file() and source == f"{Path(name).with_suffix('.md')}",
            "a report that names it": BASE + name in report["body"][0] and report["title"][0],
        }
        complaints += [f"{name} has not {what}" for what, holds in wanted.items() if not holds]
    expect_none(complaints)


def test_the_front_page_says_what_book_this_is_and_the_site_s_address_leads_to_it(site):
    (script,) = parse(site, "book/index.html").select('script[type="application/ld+json"]')
    book, root = json.loads(script.string), parse(site, "index.html")
    assert (book["@type"], book["name"], book["version"]) == ("Book", CITATION["title"], CITATION["version"])
    assert root.select_one('meta[http-equiv="refresh"]')["content"] == "0; url=book/index.html"
    assert root.select_one("link[rel=canonical]")["href"] == BASE + "book/index.html"
    assert root.select_one("main a")["href"] == "book/index.html"  # where a browser does not follow by itself


def test_the_sitemap_lists_every_page_and_every_deck_and_nothing_else(site):
    places = [place.text for place in ElementTree.parse(site / "sitemap.xml").iter() if place.tag.endswith("loc")]
    decks = [f"slides/{deck.stem}.html" for deck in (BOOK / "teach" / "slides").glob("*.md")]
    assert decks
    assert sorted(places) == sorted(BASE + name for name in [*PAGES, *decks])
    expect_none([place for place in places if not (site / place.removeprefix(BASE)).is_file()])


def test_a_page_that_is_not_there_offers_the_search_and_finds_its_files_from_any_depth(site):
    page = parse(site, "404.html")
    assert page.select("article .search-opens")
    links = [e.get("href") or e.get("src") for e in page.select("link[rel=stylesheet], script[src], article a")]
    expect_none([link for link in links if not link.startswith((f"/{NAME}/", "#"))])


# --- what is in the notebooks


@cache
def list_shown_outputs(name):
    """Return the stored outputs of a notebook that a page has to show."""
    hidden = {"remove-output", "remove-cell"}
    notebook = nbformat.read(ROOT / name, as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code" and not hidden & set(c.metadata.get("tags", []))]
    return [output for cell in cells for output in cell.outputs]


def read_words(output):
    """Return the words of a stored output as a page shows them; none for a picture."""
    if output.output_type == "stream":
        return output.text.split()
    data = output.get("data", {})
    if "image/png" in data or "text/markdown" in data or "text/latex" in data:
        return []
    if "text/html" in data:
        html = data["text/html"]
        html = tidy_table(html) if html.startswith('<table class="bnn">') else html  # tests/site/test_tables.py
        return BeautifulSoup(html, "html.parser").get_text(" ").split()
    return data.get("text/plain", "").split()


def test_pictures_and_printed_text_are_those_stored_in_the_notebooks(site):
    complaints = []
    for name in NOTEBOOKS:
        path, outputs = Path(name).with_suffix(".html"), list_shown_outputs(name)
        page = parse(site, str(path))
        stored = [base64.b64decode(o.data["image/png"]) for o in outputs if "image/png" in o.get("data", {})]
        shown = [(site / path.parent / image["src"]).read_bytes() for image in page.select("article .cell_output img")]
        if shown != stored:
            complaints.append(f"{name}: its {len(stored)} pictures are not the {len(shown)} of its page")
        text = " ".join(" ".join(e.get_text(" ") for e in page.select("article .cell_output")).split())
        text = text.replace("\N{MINUS SIGN}", "-")
        words = [" ".join(read_words(output)).replace("\N{MINUS SIGN}", "-") for output in outputs]
        complaints += [f"{name}: {said[:300]}" for said in words if said not in text]
    expect_none(complaints)


def test_run_opens_each_notebook_in_binder_and_colab(site):
    complaints = []
    for name in NOTEBOOKS:
        page = parse(site, str(Path(name).with_suffix(".html")))
        (binder,) = page.select('a[href^="https://mybinder.org/v2/gh/"]')
        (colab,) = page.select('a[href^="https://colab.research.google.com/"]')
        image, _, query = binder["href"].partition("?")
        (asked,) = parse_qs(query)["urlpath"]
        pull = {key: value for key, (value,) in parse_qs(asked.removeprefix("git-pull?")).items()}
        wanted = {"repo": REPOSITORY, "branch": "main", "targetpath": NAME, "urlpath": f"lab/tree/{NAME}/{name}"}
        if not image.endswith("/environment") or pull != wanted:  # the branch that changes only with the packages
            complaints.append(f"{name}: {binder['href']}")
        if colab["href"] != f"https://colab.research.google.com/github/{OWNER}/{NAME}/blob/colab/{name}":
            complaints.append(f"{name}: {colab['href']}")
    expect_none(complaints)
    pages = [parse(site, str(Path(name).with_suffix(".html"))) for name in NOTEBOOKS]
    opened = {link["href"] for page in pages for link in page.select("a[href*=mybinder]")}
    for name in ("book/index.html", "book/running.html"):
        assert opened & {link["href"] for link in parse(site, name).select("article a[href*=mybinder]")}, name


def test_each_claim_in_the_register_leads_to_its_own_row(site):
    complaints, register = [], parse(site, "book/claims_register.html")
    for chapter in CHAPTERS:
        cells = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        claims = [claim for output in outputs for claim in output.get("data", {}).get(MIME, [])]
        links = register.select(f'th a[href^="{chapter}.html#claim-"]')
        links = {link.get_text(): link for link in links}
        if sorted(links) != sorted(claim["claim"] for claim in claims):
            complaints.append(f"{chapter}: {len(links)} claims of its {len(claims)}, or others")
        for link, claim in [(links[claim["claim"]], claim) for claim in claims if claim["claim"] in links]:
            row = parse(site, f"book/{chapter}.html").find("tr", id=link["href"].partition("#")[2])
            if row is None or not {claim["claim"], claim["value"]} <= {
                cell.get_text().replace("\N{MINUS SIGN}", "-") for cell in row.select("th, td")
            }:
                complaints.append(f"{chapter}: {claim['claim']}")
    expect_none(complaints)
    claims = json.loads((BOOK / "claims.json").read_text())
    verdicts = find_verdicts(claims)
    held, falls, failed = (verdicts.count(verdict) for verdict in ("holds", "falls", "does not hold"))
    assert f"{len(claims)} claims: {held} hold, {falls} fall, {failed} do not hold." in register.get_text(" ")


def test_the_reference_shows_each_module_and_an_example_of_each_name(site):
    names = [path.stem for path in sorted(BOOK.glob("api_*.md"))]
    modules = [m for name in names for m in re.findall(r"automodule:: (\S+)", (BOOK / f"{name}.md").read_text())]
    shown = [dt for name in names for dt in parse(site, f"book/{name}.html").select("dl.py > dt[id]")]
    signatures = [dt for dt in shown if not dt.find_parent("dd")]
    assert {dt["id"].rpartition(".")[0] for dt in signatures} == set(modules)
    assert {dt["id"] for dt in signatures} <= set(count_ids(site, "book/api.html"))  # where each was in one page
    expect_none([dt["id"] for dt in signatures if not dt.parent.select(":scope > dd > div.doctest pre")])


def test_the_index_leads_to_the_chapters_that_use_a_word(site):
    links = {link["href"] for link in parse(site, "genindex.html").select("a")}
    assert {"book/glossary.html#term-ESS", "book/engines.html#index-ess", "book/moons.html#index-lpd"} <= links


EXAM = "book/teach/exam.md"  # its questions invent numbers, and those of its answers are computed in test_kit


def test_a_number_with_an_error_on_a_plain_page_is_that_of_a_chapter():
    told = []
    for name in NOTEBOOKS:
        for cell in nbformat.read(ROOT / name, as_version=4).cells:
            told.append(cell.source if cell.cell_type == "markdown" else "")
            told += [o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in cell.get("outputs", [])]
    outputs, example = "\n".join(told), "`[^`]*`"  # how numbers are written, not what was found
    complaints = []
    for name in DOCUMENTS:
        if name.endswith(".md") and name != EXAM:
            text = re.sub(example, "", (ROOT / name).read_text(encoding="utf8"))
            quoted = set(re.findall(r"-?\d[\d,.]* ± \d[\d.]*\d", text))
            complaints += [f"{name}: {number}" for number in quoted if number not in outputs]
    expect_none(complaints)


# --- in a browser: one walk over all pages at three widths, and axe on one page of each kind

WIDTH = "document.documentElement.scrollWidth"
WIDTHS = (1440, 768, 390)  # pixels
COLUMNS = 88  # of a line of code, which fit a wide page
# what is wrong with a page as it stands: pictures that did not load, icons without a drawing, formulas with an error
AMISS = """() => {
    const list = (selector, test) => [...document.querySelectorAll(selector)].filter(test);
    const isPlain = (icon) => {
        const drawn = getComputedStyle(icon, icon.tagName === "I" ? "::before" : "::after");
        return drawn.content !== "none" && !drawn.maskImage.startsWith("url(");
    };
    const formulas = document.querySelectorAll("article .math").length;
    return [
        ...list("img", i => i.complete && !i.naturalWidth).map(i => `not loaded: ${i.src}`),
        ...list("i[class*='fa-'], .admonition-title", isPlain).map(i => `no icon: ${i.outerHTML.slice(0, 150)}`),
        ...list("mjx-merror", () => true).map(e => `formula: ${e.textContent}`),
        ...(formulas && !document.querySelector("mjx-container") ? ["formulas are not set"] : []),
        ...(!formulas && window.MathJax ? ["MathJax is loaded for nothing"] : []),
        ...list("div.cell_input div.highlight", e => !e.querySelector("button.copybtn")).map(() => "no copy button"),
    ];
}"""
# what is cut off: code that scrolls, short lines of code that wrap, elements beyond the page, tables that lose their
# first column when they scroll, numbers that touch their formula, pictures that are stretched
CUT_OFF = """columns => {
    const shown = e => e.checkVisibility() && e.clientWidth;
    const list = (selector) => [...document.querySelectorAll("main " + selector)].filter(shown);
    const scrolls = e => e.scrollWidth > e.clientWidth + 1;
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const wraps = e => e.getBoundingClientRect().height > 1.5 * parseFloat(getComputedStyle(e).lineHeight);
    const boxOf = e => {
        while (e && !["auto", "scroll"].includes(getComputedStyle(e).overflowX)) e = e.parentElement;
        return e;
    };
    const losesLabels = table => {
        const box = boxOf(table);
        box.scrollLeft = box.scrollWidth;
        const labels = [...table.querySelectorAll("tr > :first-child:not([colspan])")].filter(shown);
        const lost = labels.some(e => e.getBoundingClientRect().left < box.getBoundingClientRect().left - 1);
        box.scrollLeft = 0;
        return lost;
    };
    const seen = e => {
        const [all, box] = [e, e.closest("mjx-container")].map(part => part.getBoundingClientRect());
        return { top: all.top, bottom: all.bottom, left: Math.max(all.left, box.left),
                 right: Math.min(all.right, box.right) };
    };
    const meetsFormula = number => [...number.parentElement.querySelectorAll("mjx-math")].some(
        formula => meet(seen(formula), number.getBoundingClientRect()));
    const isStretched = e => {  // what is not loaded yet has the size that it says
        const [wide, high] = e.naturalWidth ? [e.naturalWidth, e.naturalHeight]
            : ["width", "height"].map(side => +e.getAttribute(side));
        const fills = getComputedStyle(e).objectFit === "fill";
        return fills && Math.abs(e.clientWidth * high / (e.clientHeight * wide) - 1) > 0.03;
    };
    const isBeyond = e => e.getBoundingClientRect().right > innerWidth + 1
        && getComputedStyle(e.parentElement).overflow === "visible";  // not cut or scrolled in a box of its own
    const found = {
        "code scrolls": list("pre").filter(scrolls),
        "a short line wraps": innerWidth < 1200 ? [] :
            list("pre .line").filter(e => e.textContent.length <= columns && wraps(e)),
        "beyond the page": list("article :is(p, figure, img, h1, h2, h3)").filter(isBeyond),
        "loses its first column": list("table").filter(e => scrolls(boxOf(e)) && losesLabels(e)),
        "number on its formula": list("div.math > .eqno").filter(meetsFormula),
        "stretched": list("img[width][height]").filter(isStretched),
        "the page scrolls sideways": document.documentElement.scrollWidth > innerWidth ? [document.body] : [],
    };
    return Object.entries(found).flatMap(([what, elements]) => elements.map(
        e => `${what}: ${(e.alt || (e.querySelector("caption") ?? e).textContent).trim().slice(0, 60)}`));
}"""
FOLDED = {"at first": False, "after Enter": True, "aria-expanded": "true", "after Space": False}


def find_cut_off(page, width):
    """What is cut off on a page at a width in pixels: a list of lines."""
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return [f"{width}: {line}" for line in page.evaluate(CUT_OFF, COLUMNS)]


def try_by_keyboard(page, solution):
    """Open a folded solution and close it again; returns what was seen of it, such as `FOLDED`."""
    button, content = solution.locator("button.toggle-button").first, solution.locator("> section")
    seen = {"at first": content.is_visible()}
    button.focus()
    page.keyboard.press("Enter")
    seen |= {"after Enter": content.is_visible(), "aria-expanded": button.get_attribute("aria-expanded")}
    page.keyboard.press("Space")
    return seen | {"after Space": content.is_visible()}


@pytest.fixture(scope="module")
def walk(address, chromium):
    """What a walk over all pages found, by its kind: dict of lists of complaints."""
    found = {"elsewhere": [], "amiss": [], "cut off": [], "console": [], "solutions": []}
    with open_context(chromium, width=WIDTHS[0]) as context:
        for name in [*PAGES, "search.html"]:
            with open_tab(context, address + name) as (page, log):
                mine = {"amiss": page.evaluate(AMISS)}
                outside = [url for url in log.requests if not url.startswith((address, "data:", "blob:"))]
                folds = page.locator("div.solution").all()
                source = ROOT / Path(name).with_suffix(".md")
                wanted = source.exists() and "{solution-start}" in source.read_text(encoding="utf8")
                tried = [try_by_keyboard(page, fold) for fold in folds[:1]]
                mine["solutions"] = ["none folded"] if wanted and tried != [FOLDED] else []
                unfold(page)
                mine["cut off"] = [line for width in WIDTHS for line in find_cut_off(page, width)]
                mine |= {"elsewhere": outside, "console": log.complaints}
            for kind, complaints in mine.items():
                found[kind] += [f"{name}: {complaint}" for complaint in complaints]
    return found


@pytest.mark.parametrize("kind", ["elsewhere", "amiss", "cut off", "console", "solutions"])
def test_in_a_browser_nothing_comes_from_elsewhere_or_is_amiss_cut_off_or_closed(walk, kind):
    expect_none(walk[kind])


# a chapter, one of the evidence, front, tables, reference, definitions, a session, a form, plain words, search
KINDS = [
    "book/flat_advi.html", "book/replication.html", "book/index.html", "book/claims_register.html",
    "book/api_sampling.html", "book/glossary.html", "book/teach/week-3.html", "book/teach/entry_test.html",
    "book/cite.html", "search.html",
]  # fmt: skip


def test_exam_and_entry_test_are_printed_without_answers_and_the_exam_with_them_where_its_address_asks(
    address, chromium
):
    printed = {}
    with open_context(chromium) as context:
        for name in ("exam.html", "exam.html?answers", "exam.html?take=1,30", "entry_test.html"):
            with open_tab(context, f"{address}book/teach/{name}") as (page, _):
                pages = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
                printed[name] = " ".join(" ".join(page.extract_text() for page in pages).split())
    assert {name: text.count("Answer and marks") for name, text in printed.items()} == {
        "exam.html": 0,
        "exam.html?answers": 60,  # two banks
        "exam.html?take=1,30": 0,
        "entry_test.html": 0,
    }
    assert "five of six pairs" in printed["exam.html?answers"]
    assert "five of six pairs" not in printed["exam.html"]
    assert "30. Many machines" in printed["exam.html"]
    assert "2. Many machines" in printed["exam.html?take=1,30"]
    assert "29. " not in printed["exam.html?take=1,30"]
    assert ["Name:" in printed[name] for name in ("exam.html", "exam.html?take=1,30")] == [False, True]
    assert "What a wrong answer tells" not in printed["entry_test.html"]


def test_a_page_that_is_dark_is_printed_in_light_colours(address, chromium):
    with open_context(chromium, theme="dark") as context, open_tab(context, f"{address}book/moons.html") as (page, _):
        page.evaluate(
            "addEventListener('beforeprint', () => { window.printed = document.documentElement.dataset.theme; })"
        )
        page.pdf()
        assert page.evaluate("[window.printed, document.documentElement.dataset.theme]") == ["light", "dark"]


def test_axe_finds_nothing_on_a_page_of_each_kind(address, chromium):
    complaints = []
    with open_context(chromium) as context:
        for name in KINDS:
            with open_tab(context, address + name) as (page, _):
                unfold(page)
                found = find_form_violations(page)
                for theme in ("light", "dark"):
                    page.emulate_media(color_scheme=theme)
                    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
                    found += [f"{theme}: {line}" for line in find_colour_violations(page)]
                complaints += [f"{name}: {line}" for line in found]
    expect_none(complaints)
