"""The rendered site, as a reader meets it in a browser. Builds it first where it is older than its sources."""

import base64
import gzip
import subprocess
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, unquote, urldefrag, urljoin, urlsplit

import lots
import nbformat
import pytest
import yaml
from book_tables import tidy_table
from bs4 import BeautifulSoup
from filelock import FileLock
from test_examples import PUBLIC
from tools.browser import (
    find_colour_violations,
    find_form_violations,
    launch_chromium,
    open_context,
    open_page,
    open_tab,
    serve,
    unfold,
)

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build" / "html"
REPOSITORY = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))["repository"]["url"]
STAMP = HTML / ".built"  # set by a build without warnings, and by nothing else
BUILD = ["make", "site"]


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
PAGES = [str(Path(name).with_suffix(".html")) for name in DOCUMENTS]
every_page = pytest.mark.parametrize("name", PAGES)
every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)


def list_sources():
    """Return every file that the pages are made of."""
    in_book = (path for path in (ROOT / "book").rglob("*") if path.is_file())
    hidden = ("__pycache__", ".ipynb_checkpoints")
    return [ROOT / "_config.yml", ROOT / "_toc.yml"] + [p for p in in_book if not set(hidden) & set(p.parts)]


def is_up_to_date():
    """Tell whether the last good build is younger than every source."""
    return STAMP.exists() and STAMP.stat().st_mtime > max(path.stat().st_mtime for path in list_sources())


@pytest.fixture(scope="module")
def site():
    """The folder of the built site."""
    HTML.parent.mkdir(exist_ok=True)
    with FileLock(HTML.parent / "site.lock"):  # another worker may need it at the same time
        if not is_up_to_date():
            build = subprocess.run(BUILD, cwd=ROOT, capture_output=True, text=True, check=False)
            if build.returncode:
                pytest.fail("the site does not build without warnings:\n" + build.stdout[-2000:] + build.stderr[-4000:])
    return HTML


@pytest.fixture(scope="module")
def address(site):
    """The address at which the site is served."""
    with serve(site) as url:
        yield url


@pytest.fixture(scope="module")
def chromium():
    """A running Chromium."""
    with launch_chromium() as browser:
        yield browser


@cache
def parse(site, name):
    """Parse a page; all tests read one copy, so none may change it."""
    return BeautifulSoup((site / name).read_text(encoding="utf8"), "html.parser")


def expect_none(complaints):
    """Fail with one complaint a line."""
    assert not complaints, "\n" + "\n".join(complaints)


# --- without a browser


def find_broken_links(site, name):
    """Return the links of a page that lead to a missing file or anchor of the site."""
    broken = []
    for element in parse(site, name).select("a[href], link[href], img[src], script[src]"):
        link = element.get("href") or element.get("src") or ""
        if not urlsplit(link).scheme and not leads_somewhere(site, name, link):
            broken.append(f"{name}: {link}")
    return broken


def leads_somewhere(site, name, link):
    """Tell whether a relative link finds its file and, in a page, its anchor."""
    path, anchor = urldefrag(link)
    target = unquote(urlsplit(urljoin(name, path)).path) if path else name
    if not (site / target).is_file():
        return False
    return not (anchor and target.endswith(".html")) or unquote(anchor) in count_ids(site, target)


@cache
def count_ids(site, name):
    """How often a page gives each id: Counter."""
    return Counter(element["id"] for element in parse(site, name).select("[id]"))


@pytest.mark.parametrize("name", [*PAGES, "index.html", "search.html", "genindex.html"])
def test_no_internal_link_or_anchor_is_broken(site, name):
    expect_none(find_broken_links(site, name))


@every_page
def test_no_id_is_given_twice(site, name):
    expect_none(sorted(i for i, times in count_ids(site, name).items() if times > 1))


@every_page
def test_every_figure_has_alt_text_and_a_caption(site, name):
    complaints = []
    for image in parse(site, name).select(
        "article img:not(.chapter-map img)"
    ):  # a thumbnail repeats the link beside it
        source, alt = image.get("src", ""), image.get("alt", "").strip()
        # without an alt text Sphinx puts the file's own name there
        if not alt or Path(source).name in alt:
            complaints.append(f"{source}: no alt text")
        caption = image.find_parent("figure") and image.find_parent("figure").find("figcaption")
        if not (caption and caption.get_text(strip=True)):
            complaints.append(f"{source}: no caption")
    expect_none(complaints)


@every_page
def test_a_cell_has_no_two_folds_of_one_name(site, name):
    for cell in parse(site, name).select("div.cell"):
        folds = [" ".join(summary.get_text().split()) for summary in cell.select("summary")]
        assert len(set(folds)) == len(folds), folds[0]


@cache
def list_shown_outputs(name):
    """Return the stored outputs of a notebook that a page has to show."""
    hidden = {"remove-output", "remove-cell"}
    notebook = nbformat.read(ROOT / name, as_version=4)
    cells = [c for c in notebook.cells if c.cell_type == "code" and not hidden & set(c.metadata.get("tags", []))]
    return [output for cell in cells for output in cell.outputs]


@every_notebook
def test_the_pictures_are_those_stored_in_the_notebook(site, name):
    outputs = list_shown_outputs(name)
    stored = [base64.b64decode(o.data["image/png"]) for o in outputs if "image/png" in o.get("data", {})]
    page = Path(name).with_suffix(".html")
    shown = [(site / page.parent / i["src"]).read_bytes() for i in parse(site, page).select("article .cell_output img")]
    assert len(shown) == len(stored)
    assert shown == stored


def read_words(output):
    """Return the words of a stored output as a page shows them; none for a picture."""
    if output.output_type == "stream":
        return output.text.split()
    data = output.get("data", {})
    if "image/png" in data or "text/markdown" in data or "text/latex" in data:
        return []
    if "text/html" in data:
        html = data["text/html"]
        html = tidy_table(html) if html.startswith('<table class="bnn">') else html  # tests/test_tables.py
        return BeautifulSoup(html, "html.parser").get_text(" ").split()
    return data.get("text/plain", "").split()


@every_notebook
def test_the_printed_text_is_that_stored_in_the_notebook(site, name):
    stored = [read_words(output) for output in list_shown_outputs(name)]
    page = parse(site, Path(name).with_suffix(".html"))
    shown = " ".join(" ".join(e.get_text(" ") for e in page.select("article .cell_output")).split())
    expect_none([" ".join(words)[:300] for words in stored if " ".join(words) not in shown])


@every_notebook
def test_the_rocket_opens_the_notebook_of_its_page_in_jupyterlab(site, name):
    (link,) = parse(site, Path(name).with_suffix(".html")).select('a[href^="https://mybinder.org/v2/gh/"]')
    image, _, query = link["href"].partition("?")
    assert image.endswith("/environment")  # the branch that changes only with the packages
    (asked,) = parse_qs(query)["urlpath"]
    assert asked.startswith("git-pull?")
    pull = {key: value for key, (value,) in parse_qs(asked.partition("?")[2]).items()}
    assert pull == {
        "repo": REPOSITORY, "branch": "main", "targetpath": "hbnn-book", "urlpath": f"lab/tree/hbnn-book/{name}"
    }  # fmt: skip


@every_notebook
def test_colab_opens_the_copy_that_brings_what_colab_lacks(site, name):
    (link,) = parse(site, Path(name).with_suffix(".html")).select('a[href^="https://colab.research.google.com/"]')
    owner = "/".join(REPOSITORY.split("/")[-2:])
    assert link["href"] == f"https://colab.research.google.com/github/{owner}/blob/colab/{name}"


@every_page
def test_mathematics_is_loaded_where_there_is_some(site, name):
    page = parse(site, name)
    loaded = any("mathjax/" in script.get("src", "") for script in page.select("script"))
    assert loaded == bool(page.select("article .math"))


def test_the_reference_shows_each_public_name_with_its_example(site):
    signatures = [dt for dt in parse(site, "book/api.html").select("dl.py > dt[id]") if dt["id"].count(".") == 2]
    assert sorted(dt["id"] for dt in signatures) == sorted(PUBLIC)
    expect_none([dt["id"] for dt in signatures if not dt.parent.select(":scope > dd > div.doctest pre")])


# --- in a browser: one visit to each page finds all that the tests after it ask


@dataclass
class Visit:
    """What one visit to a page found. Lists hold complaints, one line each, but for `requests` and `solutions`."""

    name: str
    requests: list  # addresses that loading the page asked for
    broken: list  # pictures that did not load
    plain_icons: list  # icons of the theme that have no drawing
    solutions: list  # of each fold: what `try_by_keyboard` saw
    form: list  # what axe-core says with all folds open, colours apart
    colours: dict  # what it says of colours, by theme
    phone: int  # width of the page, in pixels, where 390 are to be had
    too_wide: list  # elements beyond those 390, where nothing clips them on purpose
    complaints: list  # of the console, from first to last


BROKEN = "[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)"
PLAIN_ICONS = """[...document.querySelectorAll("i[class*='fa-'], .admonition-title")].filter((icon) => {
    const drawn = getComputedStyle(icon, icon.tagName === "I" ? "::before" : "::after");
    return drawn.content !== "none" && !drawn.maskImage.startsWith("url(");
}).map((icon) => icon.outerHTML.slice(0, 150))"""
TOO_WIDE = """[...document.querySelectorAll("main article :is(p, figure, img, h1, h2, h3)")].filter(
    e => e.getBoundingClientRect().right > 391 && getComputedStyle(e.parentElement).overflow !== "hidden"
).map(e => e.outerHTML.slice(0, 150))"""
WIDTH = "document.documentElement.scrollWidth"
FOLDED = {"at first": False, "after Enter": True, "aria-expanded": "true", "after Space": False}


def try_by_keyboard(page, solution):
    """Open a folded solution and close it again; returns what was seen of it, such as `FOLDED`."""
    button, content = solution.locator("button.toggle-button").first, solution.locator("> section")
    seen = {"at first": content.is_visible()}
    button.focus()
    page.keyboard.press("Enter")
    seen |= {"after Enter": content.is_visible(), "aria-expanded": button.get_attribute("aria-expanded")}
    page.keyboard.press("Space")
    return seen | {"after Space": content.is_visible()}


def look_at(context, address, name):
    """Visit a page: as it loads, by keyboard, unfolded in both themes, and as narrow as a phone."""
    with open_tab(context, address + name) as (page, log):
        page.emulate_media(color_scheme="light")
        found = {
            "requests": list(log.requests),
            "broken": page.evaluate(BROKEN),
            "plain_icons": page.evaluate(PLAIN_ICONS),
        }
        found["solutions"] = [try_by_keyboard(page, fold) for fold in page.locator("div.solution").all()]
        unfold(page)
        page.set_viewport_size({"width": 390, "height": 900})
        found |= {"phone": page.evaluate(WIDTH), "too_wide": page.evaluate(TOO_WIDE)}
        page.set_viewport_size({"width": 1280, "height": 900})
        found |= {"form": find_form_violations(page), "colours": {}}
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
            found["colours"][theme] = find_colour_violations(page)
        return Visit(name, complaints=log.complaints, **found)


@pytest.fixture(scope="module")
def window(chromium):
    """One window for all visits: what pages share is fetched and compiled once."""
    with open_context(chromium) as context:
        yield context


@pytest.fixture(scope="module", params=lots.draw([*PAGES, "search.html"], 9, always=PAGES[:1]))
def visit(request, window, address):
    """A visit to each page in turn."""
    return look_at(window, address, request.param)


@cache
def weigh(path):
    """Kilobytes that a server which compresses would send for a file; 0 for what is no file."""
    return len(gzip.compress(path.read_bytes())) / 1000 if path.is_file() else 0


def test_a_page_asks_no_other_host(visit, address):
    expect_none([url for url in visit.requests if not url.startswith((address, "data:", "blob:"))])


def test_a_page_is_light(visit, site, address):
    files = {unquote(urlsplit(url).path).lstrip("/") for url in visit.requests if url.startswith(address)}
    assert sum(weigh(site / name) for name in files) <= 1000, "kB transferred, compressed"


def test_every_icon_of_the_theme_is_drawn_by_the_book(visit):
    expect_none(visit.plain_icons)


def test_every_picture_loads(visit):
    expect_none(visit.broken)


def test_the_console_stays_silent(visit):
    expect_none(visit.complaints)


def test_axe_finds_nothing(visit):
    expect_none(visit.form)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_colour_amiss(visit, theme):
    expect_none(visit.colours[theme])


def test_a_phone_does_not_scroll_sideways(visit):
    assert visit.phone <= 390
    expect_none(visit.too_wide)


def test_a_solution_is_folded_and_opens_by_keyboard(visit):
    source = ROOT / Path(visit.name).with_suffix(".md")
    wanted = source.exists() and "{solution-start}" in source.read_text(encoding="utf8")
    assert visit.solutions or not wanted, "no solution on this page"
    assert [seen for seen in visit.solutions if seen != FOLDED] == []


def test_axe_sees_the_longest_text_of_each_kind(window):
    page_of_kinds = """<!doctype html><style>.pale, tr:nth-child(even) { color: #ddd }</style><main>
        <p><span class=pale>a</span><span class=pale>word</span><span class=pale>b</span> in black
        <p style="color: #ddd">styled<p style="display: none; color: #ddd">hidden
        <table><tr><td>odd<tr><td>even<tr><td>odd again<tr><td>even again</table>"""
    with open_tab(window, "about:blank") as (page, _):
        page.set_content(page_of_kinds)
        seen, all_seen = (find_colour_violations(page, everywhere) for everywhere in (False, True))
    assert [line.rpartition("color-contrast: ")[2] for line in seen] == [
        '<span class="pale">word</span>', '<p style="color: #ddd">styled</p>', "<td>even again</td>"
    ]  # fmt: skip
    assert len(all_seen) == 4  # "even" as well; axe-core leaves single letters out


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_way_back_to_the_top_can_be_read(address, chromium, theme):
    """On a phone it appears when one scrolls up again."""
    with open_page(chromium, address + PAGES[0], width=390, theme=theme) as (page, _):
        button = page.locator("#pst-back-to-top")
        for step in [2000, -200] * 10:  # the theme looks where the page is now and then
            if not button.is_visible():
                page.evaluate("(top) => window.scrollBy({ top, behavior: 'instant' })", step)
                page.wait_for_timeout(200)
        assert button.is_visible()
        expect_none(find_colour_violations(page))


def list_fresh_visits():
    """One page of each theme in `make test`, all in `make test-all`."""
    return [
        pytest.param(name, theme, marks=[pytest.mark.slow] if name != PAGES[0] else [])
        for name in [*PAGES, "search.html"]
        for theme in ("light", "dark")
    ]


@pytest.mark.parametrize(("name", "theme"), list_fresh_visits())
def test_a_page_loads_on_a_phone_in_peace_and_every_piece_of_text_can_be_read(address, chromium, name, theme):
    """Visits change theme and width of a page that is there, and look at one text of each kind."""
    with open_page(chromium, address + name, width=390, theme=theme) as (page, log):
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        unfold(page)
        assert page.evaluate(WIDTH) <= 390
        expect_none(page.evaluate(TOO_WIDE))
        expect_none(find_colour_violations(page, everywhere=True))
        expect_none(log.complaints)


def test_the_keyboard_opens_the_menu_on_a_phone_and_closes_it(address, chromium):
    with open_page(chromium, address + "book/index.html", width=390) as (page, _):
        menu = page.locator(".bd-sidebar-primary, #pst-primary-sidebar-modal").filter(has_text="Two moons")
        assert menu.filter(visible=True).count() == 0
        page.locator("button.primary-toggle").first.focus()
        page.keyboard.press("Enter")
        menu.filter(visible=True).first.wait_for(timeout=5_000)
        page.keyboard.press("Escape")
        page.wait_for_timeout(500)
        assert menu.filter(visible=True).count() == 0


def test_an_example_is_copied_without_its_prompts_and_output(address, chromium):
    with open_context(chromium) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        with open_tab(context, f"{address}book/api.html") as (page, _):
            page.locator('dl:has(> dt[id="bnn.inference.derive_seed"]) button.copybtn').click()
            page.wait_for_function("navigator.clipboard.readText()")
            copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.split("\n") == ["from bnn import inference", "inference.derive_seed(1)"]
