"""What pages are made of besides chapters: the map, the register of claims, sliders, addresses, quoted numbers."""

import json
import re
from functools import cache
from pathlib import Path

import lots
import nbformat
import pytest
import yaml
from bnn.claims import MIME
from book_pages import MADE_FROM, find_moved, name_page
from studies._tasks import digest_rows
from test_site import (
    DOCUMENTS,
    NOTEBOOKS,
    PAGES,
    ROOT,
    address,
    chromium,
    count_ids,
    every_page,
    leads_somewhere,
    parse,
    site,
)
from tools import frames
from tools.binder_check import LIMIT_MB, check, has_namespaces, main
from tools.browser import open_context, open_page

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests
BOOK = ROOT / "book"
CHAPTERS = [Path(name).stem for name in NOTEBOOKS]
PLAIN = [name for name in DOCUMENTS if name.endswith(".md")]
SLIDERS = {"group_sd": "index", "new_category": "informed_priors"}  # and a page that shows it


def read_claims(chapter):
    """The claims stored in a chapter's outputs."""
    cells = nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return [claim for output in outputs for claim in output.get("data", {}).get(MIME, [])]


# --- the register of claims


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_each_claim_in_the_register_leads_to_its_own_row(site, chapter):
    links = parse(site, "book/claims_register.html").select(f'a[href^="{chapter}.html#claim-"]')
    page = parse(site, f"book/{chapter}.html")
    claims = read_claims(chapter)
    assert [link.get_text() for link in links] == [claim["claim"] for claim in claims]
    for link, claim in zip(links, claims, strict=True):
        row = page.find(id=link["href"].partition("#")[2])
        assert row.name == "tr"
        words = row.get_text(" ")
        assert claim["claim"] in words
        assert claim["value"] in words


def test_the_register_counts_what_does_not_hold(site):
    claims = json.loads((BOOK / "claims.json").read_text())
    failed = sum(not claim["holds"] for claim in claims)
    text = parse(site, "book/claims_register.html").get_text(" ")
    assert f"{len(claims)} claims, {len(claims) - failed} hold, {failed} do not." in text


# --- what runs measured


def test_the_record_of_pods_names_chapters():
    """A record of what they cost, not a test that they run: `make binder-check` runs them, and adds what is missing."""
    table = json.loads((BOOK / "data" / "binder_cost.json").read_text())
    assert table["digest"] == digest_rows(table["rows"])
    recorded = [row["chapter"] for row in table["rows"]]
    assert len(recorded) == len(set(recorded))
    assert set(recorded) <= set(CHAPTERS)


# --- old addresses


def test_a_label_names_the_page_with_the_longest_name_in_it():
    pages = ["moons", "group", "group_sd"]
    labels = ["sec-moons-data", "fig-group-sd-x", "eq-group-one", "sec-moons", "sec-moonshot-x", "page-teach-week-1"]
    assert [name_page(label, pages) for label in labels] == ["moons", "group_sd", "group", "moons", None, None]


def test_what_moved_is_found_by_its_name_and_claims_by_the_page_that_took_the_evidence():
    anchors = {
        "sec-old-kept": ("old", "sec-old-kept"),
        "sec-old-gone": ("proof", "sec-old-gone"),
        "fig-old-gone": ("third", "fig-old-gone"),
        "eq-old-gone": ("proof", "equation-eq-old-gone"),
        "sec-proof-own": ("proof", "sec-proof-own"),
    }
    made = [("old", "kept"), ("proof", "kept"), ("proof", "gone"), ("third", "own")]
    claims = [{"chapter": chapter, "id": claim} for chapter, claim in made]
    assert find_moved(anchors, claims, ["old", "proof", "third"], {"old": ("proof",)}) == {
        "old": {
            "sec-old-gone": "proof.html#sec-old-gone",
            "fig-old-gone": "third.html#fig-old-gone",
            "equation-eq-old-gone": "proof.html#equation-eq-old-gone",
            "claim-gone": "proof.html#claim-gone",
        }
    }


def read_moved(site, name):
    """What a page says of the ids that it has no more: {id: address}; nothing where it has no such script."""
    script = parse(site, f"book/{name}.html").select_one('script[src*="_static/moved/"]')
    text = (site / "_static" / "moved" / f"{name}.js").read_text() if script else "window.moved = {};\n"
    return json.loads(text.removeprefix("window.moved = ").removesuffix(";\n"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_an_old_address_leads_to_what_moved_and_to_nothing_that_stayed(site, name):
    moved = read_moved(site, name)
    assert [to for to in moved.values() if not leads_somewhere(site, f"book/{name}.html", to)] == []
    assert set(moved) & set(count_ids(site, f"book/{name}.html")) == set()


def list_examples(site, name):
    """Of each kind of id that moved from a page the last one: sections, figures, formulas, claims."""
    return list({anchor.partition("-")[0]: (anchor, to) for anchor, to in read_moved(site, name).items()}.values())


IN_VIEW = """(id) => {
    const element = document.getElementById(id), { top, bottom } = element.getBoundingClientRect();
    return element.checkVisibility() && bottom >= 0 && top < innerHeight;
}"""


def follow(site, chromium, base, name):
    """Open in a browser an example of each kind of id that moved from a page, and wait until its element is in view."""
    examples = list_examples(site, name)
    assert examples
    with open_context(chromium) as context:
        page = context.new_page()
        for anchor, to in examples:
            page.goto(f"{base}{name}.html#{anchor}", wait_until="commit")
            page.wait_for_url(base + to)
            page.wait_for_function(IN_VIEW, arg=anchor)


@pytest.mark.parametrize("name", lots.draw(MADE_FROM, 4))
def test_a_browser_follows_an_old_address_to_its_element(site, address, chromium, name):
    follow(site, chromium, f"{address}book/", name)


def test_a_browser_follows_an_old_address_in_a_folder_too(site, chromium):
    follow(site, chromium, f"{(site / 'book').as_uri()}/", "moons")


def test_an_address_that_leads_nowhere_stays_where_it_is(address, chromium):
    for anchor in ("sec-moons-nowhere", "constructor", "%E0"):
        with open_page(chromium, f"{address}book/moons.html#{anchor}") as (page, log):
            assert page.url.endswith(f"moons.html#{anchor}")
            assert log.complaints == []


def test_without_javascript_an_old_address_shows_the_page_that_it_names(site, address, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}book/moons.html#{list_examples(site, 'moons')[0][0]}")
    assert page.locator("article h1").is_visible()
    context.close()


def test_a_link_into_a_fold_opens_it(address, site, chromium):
    with open_page(chromium, f"{address}book/moons.html") as (page, log):
        hidden = page.evaluate("""() => [...document.querySelectorAll("[id^=claim-], .toggle-hidden [id]")].filter(
            (e) => !e.matches("button") && !e.checkVisibility()).map((e) => e.id)""")
        assert hidden
        for anchor in hidden[:1] + hidden[-1:]:
            page.evaluate("(anchor) => { location.hash = anchor; }", anchor)
            page.wait_for_function(IN_VIEW, arg=anchor)
        assert log.complaints == []


# --- pictures that move


@pytest.mark.parametrize("name", SLIDERS)
def test_a_slider_has_every_picture_and_says_what_each_shows(name):
    slider = json.loads((BOOK / "_static" / "frames" / f"{name}.json").read_text())
    assert len(slider["frames"]) > 4
    assert len({frame["alt"] for frame in slider["frames"]}) == len(slider["frames"])
    for frame in slider["frames"]:
        header = (BOOK / "_static" / "frames" / frame["file"]).read_bytes()[:24]
        pixels = int.from_bytes(header[16:20]), int.from_bytes(header[20:24])
        assert pixels == (2 * frame["width"], 2 * frame["height"])  # for screens of double density


@pytest.mark.parametrize("name", SLIDERS)
def test_no_text_and_no_picture_of_a_slider_was_changed_since_it_was_made(name):
    """What they say comes out of fits that take minutes (`make frames`), so it is not computed here."""
    slider = json.loads((BOOK / "_static" / "frames" / f"{name}.json").read_text())
    assert slider["digest"] == frames.digest(slider)


def test_the_digest_of_a_slider_tells_another_digit():
    slider = {"label": "x", "frames": [{"file": "group_sd-0.png", "alt": "91 percent"}]}
    other = {"label": "x", "frames": [{"file": "group_sd-0.png", "alt": "97 percent"}]}
    assert frames.digest(slider) != frames.digest(other)


@pytest.mark.parametrize("name", SLIDERS)
def test_the_arrow_keys_move_a_slider(address, chromium, name):
    shown = json.loads((BOOK / "_static" / "frames" / f"{name}.json").read_text())["frames"]
    with open_page(chromium, f"{address}book/{SLIDERS[name]}.html") as (page, log):
        box = page.locator(".frames", has=page.locator(f"#frames-{name}"))
        box.locator("input").focus()
        page.keyboard.press("Home")
        for frame in shown:
            assert box.locator("img").get_attribute("alt") == frame["alt"]
            assert box.locator("img").get_attribute("src").endswith(frame["file"])
            assert box.locator("output").inner_text() == frame["value"]
            assert box.locator("input").get_attribute("aria-valuetext") == frame["value"]
            page.keyboard.press("ArrowRight")
        assert log.complaints == []


def test_without_javascript_a_slider_is_a_picture_and_no_control(address, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + "book/index.html")
    assert page.locator(".frames img").count() == 1
    assert page.locator(".frames img").first.is_visible()
    assert not page.locator(".frames-control").first.is_visible()
    context.close()


# --- what a page says of itself


@every_page
def test_every_picture_has_a_width_and_a_height(site, name):
    unsized = [image["src"] for image in parse(site, name).select("article img") if image["src"].endswith(".png")
               and not (image.get("width") and image.get("height"))]  # fmt: skip
    assert unsized == []


@every_page
def test_every_page_has_a_card_to_be_shared_with(site, name):
    head = parse(site, name).head
    base = f"https://{'.github.io/'.join(read_repository())}/"
    assert head.find("meta", property="og:title")["content"]
    assert head.find("meta", property="og:url")["content"] == base + name
    assert head.find("meta", property="og:image")["content"].startswith(base)


def read_repository():
    """Owner and name of the repository, as _config.yml has them."""
    url = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    return url.rstrip("/").split("/")[-2:]


def test_the_sitemap_lists_every_page(site):
    addresses = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text())
    base = f"https://{'.github.io/'.join(read_repository())}/"
    assert {base + name for name in PAGES} <= set(addresses)


def test_a_page_that_is_not_there_offers_the_search(site):
    page = parse(site, "404.html")
    form = page.find("form", attrs={"aria-label": "Search this book"})
    assert form["action"].endswith("search.html")
    assert form.find("input", attrs={"name": "q"})
    # it is served at any depth, so its addresses start at the root of the site
    assert all(link["href"].startswith(("/", "http", "#")) for link in page.select("link[rel=stylesheet]"))


def test_the_repository_is_named_in_one_setting():
    owner, name = read_repository()
    pattern = re.compile(f"{re.escape(owner)}[/.](github.io/)?{re.escape(name)}")
    pages = [path for path in BOOK.glob("*.md") if path.name != "cite.md"]  # a fork still cites this book
    sources = [*pages, *(BOOK / "_ext").rglob("*.py"), *(BOOK / "_static").glob("*.*s"), ROOT / "_toc.yml"]
    sources += (BOOK / "bnn").glob("*.py")
    named = [path.name for path in sources if pattern.search(path.read_text(encoding="utf8"))]
    assert named == []
    assert len(pattern.findall((ROOT / "_config.yml").read_text())) == 1


# --- numbers that a plain page quotes


@cache
def read_outputs():
    """All text that the notebooks print, and what is in their Markdown."""
    words = []
    for chapter in CHAPTERS:
        for cell in nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells:
            words.append(cell.source if cell.cell_type == "markdown" else "")
            for output in cell.get("outputs", []):
                words.append(output.get("text", "") + output.get("data", {}).get("text/plain", ""))
    return "\n".join(words)


EXAM = "book/teach/exam.md"  # its questions invent numbers, and those of its answers are computed in test_kit


@pytest.mark.parametrize("name", [name for name in PLAIN if name != EXAM])
def test_a_number_with_an_error_on_a_plain_page_is_that_of_a_chapter(name):
    example = "`[^`]*`"  # how numbers are written, not what was found
    text = re.sub(example, "", (ROOT / name).read_text(encoding="utf8"))
    quoted = set(re.findall(r"-?\d[\d,.]* ± \d[\d.]*\d", text))
    outputs = read_outputs()
    assert [number for number in quoted if number not in outputs] == []


# --- Binder


@pytest.fixture
def pod(tmp_path, monkeypatch):
    """Write a notebook of one cell, and run it as Binder would."""
    from tools import binder_check

    def run(source):
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        nb.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        (tmp_path / "bnn").mkdir(exist_ok=True)
        nbformat.write(nb, tmp_path / "x.ipynb")
        monkeypatch.setattr(binder_check, "BOOK", tmp_path)
        return check("x")

    return run


ONE_CPU = """
import os
assert len(os.sched_getaffinity(0)) == 1
assert not os.path.exists(os.path.expanduser("~/.pytensor"))
"""
NO_NETWORK = """
import socket
try:
    socket.create_connection(("192.0.2.1", 53), 2)
except OSError as error:
    assert "unreachable" in str(error), error  # an address that is refused or times out has a way to it
"""


def test_a_pod_has_one_cpu_and_cold_caches(pod):
    row = pod(ONE_CPU)
    assert row["chapter"] == "x"
    assert 0 < row["megabytes"] < LIMIT_MB


@pytest.mark.skipif(not has_namespaces(), reason="no network namespace can be made here")
def test_a_pod_has_no_network(pod):
    assert pod(NO_NETWORK)["network"] == "off"


def test_a_chapter_that_takes_more_memory_than_a_pod_has_fails(pod):
    with pytest.raises(RuntimeError, match="x does not run in a pod"):
        pod("import numpy as np, time\nkept = np.ones(3 * 2**27)\ntime.sleep(5)")  # 3 GB


def test_a_row_of_a_pod_takes_the_place_of_its_own_and_no_other(tmp_path, monkeypatch):
    from tools import binder_check

    monkeypatch.setattr(binder_check, "DATA", tmp_path)
    for name, seconds in (("b", 1), ("a", 2), ("gone", 3), ("b", 4)):
        binder_check.write_row({"chapter": name, "seconds": seconds}, ["a", "b", "gone"])
    binder_check.write_row({"chapter": "a", "seconds": 5}, ["a", "b"])
    rows = json.loads((tmp_path / "binder_cost.json").read_text())["rows"]
    assert [(row["chapter"], row["seconds"]) for row in rows] == [("a", 5), ("b", 4)]


def test_an_unknown_chapter_is_refused_by_name():
    with pytest.raises(SystemExit, match=r"there is no chapter moon; there are: .*moons"):
        main(["moon"])


def test_the_index_leads_to_the_chapters_that_use_a_word(site):
    links = {link["href"] for link in parse(site, "genindex.html").select("a")}
    assert {"book/glossary.html#term-ESS", "book/engines.html#index-ess", "book/moons.html#index-lpd"} <= links
    assert parse(site, "book/engines.html").select_one("p#index-ess, p span#index-ess") is not None
