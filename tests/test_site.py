"""The rendered site, as a reader meets it in a browser. Builds it first where it is older than its sources."""

import base64
import gzip
import subprocess
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import nbformat
import pytest
import yaml
from browser import find_axe_violations, launch_chromium, open_page, serve, unfold
from bs4 import BeautifulSoup
from filelock import FileLock

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build" / "html"
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


def parse(site, name):
    """Parse a page."""
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
    return not (anchor and target.endswith(".html")) or has_anchor(site, target, unquote(anchor))


def has_anchor(site, name, anchor):
    """Tell whether a page has an element with this id."""
    return parse(site, name).find(id=anchor) is not None


@pytest.mark.parametrize("name", [*PAGES, "index.html", "search.html", "genindex.html"])
def test_no_internal_link_or_anchor_is_broken(site, name):
    expect_none(find_broken_links(site, name))


@every_page
def test_no_id_is_given_twice(site, name):
    ids = [element["id"] for element in parse(site, name).select("[id]")]
    expect_none(sorted({i for i in ids if ids.count(i) > 1}))


@every_page
def test_every_figure_has_alt_text_and_a_caption(site, name):
    complaints = []
    for image in parse(site, name).select("article img"):
        source, alt = image.get("src", ""), image.get("alt", "").strip()
        # without an alt text Sphinx puts the file's own name there
        if not alt or Path(source).name in alt:
            complaints.append(f"{source}: no alt text")
        caption = image.find_parent("figure") and image.find_parent("figure").find("figcaption")
        if not (caption and caption.get_text(strip=True)):
            complaints.append(f"{source}: no caption")
    expect_none(complaints)


def list_shown_outputs(notebook):
    """Return the stored outputs that a page has to show."""
    hidden = {"remove-output", "remove-cell"}
    cells = [c for c in notebook.cells if c.cell_type == "code" and not hidden & set(c.metadata.get("tags", []))]
    return [output for cell in cells for output in cell.outputs]


@every_notebook
def test_the_pictures_are_those_stored_in_the_notebook(site, name):
    outputs = list_shown_outputs(nbformat.read(ROOT / name, as_version=4))
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
        return BeautifulSoup(data["text/html"], "html.parser").get_text(" ").split()
    return data.get("text/plain", "").split()


@every_notebook
def test_the_printed_text_is_that_stored_in_the_notebook(site, name):
    stored = [read_words(output) for output in list_shown_outputs(nbformat.read(ROOT / name, as_version=4))]
    page = parse(site, Path(name).with_suffix(".html"))
    shown = " ".join(" ".join(e.get_text(" ") for e in page.select("article .cell_output")).split())
    expect_none([" ".join(words)[:300] for words in stored if " ".join(words) not in shown])


@every_notebook
def test_the_rocket_opens_the_notebook_of_its_page_in_jupyterlab(site, name):
    (link,) = parse(site, Path(name).with_suffix(".html")).select('a[href^="https://mybinder.org/v2/gh/"]')
    assert link["href"].endswith(f"?urlpath=lab/tree/{name}")


@every_page
def test_mathematics_is_loaded_where_there_is_some(site, name):
    page = parse(site, name)
    loaded = any("mathjax/" in script.get("src", "") for script in page.select("script"))
    assert loaded == bool(page.select("article .math"))


# --- in a browser


def weigh(site, address, urls):
    """Return the kilobytes that a server which compresses would send for these addresses."""
    names = {unquote(urlsplit(url).path).lstrip("/") for url in urls if url.startswith(address)}
    return sum(len(gzip.compress((site / n).read_bytes())) for n in names if (site / n).is_file()) / 1000


@pytest.mark.parametrize("name", [*PAGES, "search.html"])
def test_a_page_loads_in_peace_and_from_its_own_host(site, address, chromium, name):
    with open_page(chromium, address + name) as (page, log):
        broken = page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
        assert weigh(site, address, log.requests) <= 1500, "kB transferred, compressed"
        expect_none(log.complaints)
        expect_none([url for url in log.requests if not url.startswith((address, "data:", "blob:"))])
        expect_none(broken)


def test_search_finds_posterior(address, chromium):
    with open_page(chromium, address + "search.html?q=posterior") as (page, log):
        page.wait_for_selector("#search-results ul.search li", timeout=10_000)
        assert page.locator("#search-results ul.search li a").count() > 0
        expect_none(log.complaints)


def test_the_keyboard_reaches_the_search_and_finds(address, chromium):
    with open_page(chromium, address + "book/index.html") as (page, log):
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('button.search-button-field')"):
                break
        page.keyboard.press("Enter")
        page.wait_for_function("document.activeElement.matches('input[type=search]')", timeout=5_000)
        page.keyboard.type("posterior")
        page.keyboard.press("Enter")
        page.wait_for_selector("#search-results ul.search li", timeout=10_000)
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


@every_page
def test_a_phone_does_not_scroll_sideways(address, chromium, name):
    with open_page(chromium, address + name, width=390) as (page, _):
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        too_wide = (
            "e => [...e.querySelectorAll('p, figure, img, h1, h2, h3')].filter("
            "c => c.getBoundingClientRect().right > 391).map(c => c.outerHTML.slice(0, 150))"
        )
        expect_none(page.locator("main article").evaluate(too_wide))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", [*PAGES, "search.html"])
def test_axe_finds_nothing(address, chromium, name, theme):
    with open_page(chromium, address + name, theme=theme) as (page, _):
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        unfold(page)
        violations = find_axe_violations(page)
        expect_none([text for _, text in violations])


@every_notebook
def test_a_solution_is_folded_and_opens_by_keyboard(address, chromium, name):
    with open_page(chromium, address + str(Path(name).with_suffix(".html"))) as (page, _):
        solutions = page.locator("div.solution").all()
        assert solutions, "no solution on this page"
        for solution in solutions:
            button, content = solution.locator("button.toggle-button").first, solution.locator("> section")
            assert not content.is_visible()
            button.focus()
            page.keyboard.press("Enter")
            assert content.is_visible()
            assert button.get_attribute("aria-expanded") == "true"
            page.keyboard.press("Space")
            assert not content.is_visible()
