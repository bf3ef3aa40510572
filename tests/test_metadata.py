"""What pages say of themselves: to link previews, search engines and feed readers, and at their foot to a reader."""

import json
import subprocess
from datetime import datetime
from io import BytesIO
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree

import pytest
import yaml
from book_meta import BOOK, HEAVIEST, ROOT, draw_card, find_commit, list_names, summarise
from docutils import nodes
from docutils.core import publish_doctree
from PIL import Image
from test_site import PAGES, every_page, parse, site

__all__ = ["site"]
TITLE = "Hierarchical Bayesian Neural Networks with PyMC"
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))
SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
REPOSITORY = SETTINGS["repository"]["url"]
OWNER, NAME = REPOSITORY.split("/")[-2:]
BASE = f"https://{OWNER}.github.io/{NAME}/"
CHAPTERS = [f"book/{name}.html" for name in list_names()]
ATOM = {"atom": "http://www.w3.org/2005/Atom"}
every_chapter = pytest.mark.parametrize("name", CHAPTERS)
every_page_and_the_root = pytest.mark.parametrize("name", [*PAGES, "index.html"])


def read_meta(site, name, key):
    """The content of the one meta element of a page with this name or property."""
    (element,) = parse(site, name).select(f'meta[name="{key}"], meta[property="{key}"]')
    return element["content"]


def read_data(site, name):
    """The JSON-LD of a page: a list, empty for none."""
    return [json.loads(script.string) for script in parse(site, name).select('script[type="application/ld+json"]')]


# --- link previews


@every_page_and_the_root
def test_a_page_has_a_title_and_the_name_of_the_site(site, name):
    assert parse(site, name).title.get_text(strip=True)
    assert read_meta(site, name, "og:title")
    assert read_meta(site, name, "og:site_name") == TITLE


@every_page_and_the_root
def test_a_page_is_described_in_whole_sentences(site, name):
    description = read_meta(site, name, "description")
    assert description == read_meta(site, name, "og:description")
    assert 20 < len(description) < 400
    assert description.endswith((".", "?"))
    assert "\\" not in description  # TeX


def test_no_two_pages_have_the_same_description(site):
    said = [read_meta(site, name, "description") for name in PAGES]
    assert len(set(said)) == len(said)


@every_page_and_the_root
def test_the_preview_picture_of_a_page_is_there_and_has_the_size_that_is_asked_for(site, name):
    address = read_meta(site, name, "og:image")
    assert address.startswith(BASE)
    path = site / address.removeprefix(BASE)
    assert Image.open(path).size == (1200, 630)
    assert (read_meta(site, name, "og:image:width"), read_meta(site, name, "og:image:height")) == ("1200", "630")
    assert path.stat().st_size <= HEAVIEST
    assert len(read_meta(site, name, "og:image:alt")) > 10
    assert read_meta(site, name, "twitter:card") == "summary_large_image"


def test_every_chapter_has_a_picture_of_its_own(site):
    pictures = {(site / read_meta(site, name, "og:image").removeprefix(BASE)).read_bytes() for name in CHAPTERS}
    assert len(pictures) == len(CHAPTERS)


def test_a_card_is_the_same_each_time_it_is_drawn():
    figure = (BOOK / "_static" / "cover.png").read_bytes()
    assert draw_card("A title", "a place", figure) == draw_card("A title", "a place", figure)


@pytest.mark.parametrize("size", [(300, 900), (900, 300)])
def test_a_card_shows_its_figure_whole(size):
    with BytesIO() as buffer:
        Image.new("RGB", size, "#00ff00").save(buffer, "PNG")
        card = Image.open(BytesIO(draw_card("A title of a few words", "1 · A book", buffer.getvalue())))
    below_the_band = card.crop((0, 20, *card.size)).convert("HSV").getchannel("S")  # words are grey
    left, top, right, bottom = below_the_band.point(lambda saturation: 255 * (saturation > 128)).getbbox()
    assert (right - left) / (bottom - top) == pytest.approx(size[0] / size[1], rel=0.02)


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("One sentence. Another.", "One sentence. Another."),
        ("Somebody claims something. This page has the evidence. And more.", "This page has the evidence. And more."),
        (f"A promise. {'Long' * 80}.", "A promise."),
        ("What is it? It is this.", "What is it? It is this."),
    ],
)
def test_a_description_begins_where_a_page_says_what_it_gives_and_ends_with_a_sentence(text, summary):
    assert summarise(publish_doctree(f"One\n===\n\n{text}\n\nTwo\n===\n\nMore.")) == summary


def test_a_description_is_not_taken_from_a_box():
    box = ".. note:: In a box."
    page = publish_doctree(f"First\n=====\n\n{box}\n\nIn the page.\n\nSecond\n======\n\nMore.")
    assert next(page.findall(nodes.paragraph)).astext() == "In a box."
    assert summarise(page) == "In the page."


# --- search engines


def test_the_front_page_says_what_book_this_is(site):
    (book,) = read_data(site, "book/index.html")
    assert book["@type"] == "Book"
    assert (book["name"], book["version"]) == (CITATION["title"], CITATION["version"])
    assert [author["name"] for author in book["author"]] == [author["name"] for author in CITATION["authors"]]
    assert book["datePublished"].startswith(str(CITATION["preferred-citation"]["year"]))
    assert book["inLanguage"] == "en"
    assert book["license"].startswith("https://creativecommons.org/licenses/by/4.0")
    assert [part["url"] for part in book["hasPart"]] == [BASE + name for name in CHAPTERS]


@every_chapter
def test_a_chapter_says_which_part_of_the_book_it_is(site, name):
    (chapter,) = read_data(site, name)
    assert "LearningResource" in chapter["@type"]
    assert chapter["url"] == BASE + name
    assert chapter["position"] == CHAPTERS.index(name) + 1
    assert chapter["isPartOf"]["url"] == BASE + "book/index.html"


def test_the_sitemap_lists_every_page_and_every_deck_and_nothing_else(site):
    places = [place.text for place in ElementTree.parse(site / "sitemap.xml").iter() if place.tag.endswith("loc")]
    decks = [f"slides/{deck.stem}.html" for deck in (BOOK / "teach" / "slides").glob("*.md")]
    assert decks
    assert sorted(places) == sorted(BASE + name for name in [*PAGES, *decks])
    assert [place for place in places if not (site / place.removeprefix(BASE)).is_file()] == []


def test_the_address_of_the_site_leads_to_the_front_page(site):
    root = parse(site, "index.html")
    assert root.html["lang"] == "en"
    assert root.title.get_text() == TITLE
    assert root.select_one('meta[http-equiv="refresh"]')["content"] == "0; url=book/index.html"
    assert root.select_one("link[rel=canonical]")["href"] == BASE + "book/index.html"
    assert root.select_one("main a")["href"] == "book/index.html"  # where a browser does not follow by itself


# --- the feed


@pytest.fixture(scope="module")
def feed(site):
    """The root element of the feed."""
    return ElementTree.parse(site / "feed.xml").getroot()


@pytest.mark.parametrize("name", [*PAGES, "index.html", "search.html", "404.html"])
def test_every_page_names_the_feed(site, name):
    (link,) = parse(site, name).select('link[rel=alternate][type="application/atom+xml"]')
    assert link["href"] == f"{BASE}feed.xml"


def test_the_feed_has_what_atom_asks_for(feed):
    assert feed.tag == "{http://www.w3.org/2005/Atom}feed"
    for element in (feed, *feed.findall("atom:entry", ATOM)):
        assert all(element.findtext(f"atom:{tag}", namespaces=ATOM) for tag in ("title", "id", "updated"))
    ids = [entry.findtext("atom:id", namespaces=ATOM) for entry in feed.findall("atom:entry", ATOM)]
    assert len(set(ids)) == len(ids) > 0


def test_the_feed_is_as_new_as_its_newest_entry(feed):
    days = [
        datetime.fromisoformat(entry.findtext("atom:updated", namespaces=ATOM))
        for entry in feed.findall("atom:entry", ATOM)
    ]
    assert datetime.fromisoformat(feed.findtext("atom:updated", namespaces=ATOM)) == max(days)


def test_an_entry_of_the_feed_leads_to_its_section(site, feed):
    for entry in feed.findall("atom:entry", ATOM):
        page, _, anchor = entry.find("atom:link", ATOM).attrib["href"].removeprefix(BASE).partition("#")
        heading = parse(site, page).find(id=anchor).find_next(["h2"]).get_text()
        assert entry.findtext("atom:title", namespaces=ATOM).lower() in heading.lower()


# --- the foot of a page


def list_foot(site, name):
    """The links at the foot of a page: {text: address}."""
    return {link.get_text(): link["href"] for link in parse(site, name).select(".page-footer a")}


@every_page
def test_the_foot_names_the_licences_the_version_and_how_to_cite(site, name):
    foot, links = parse(site, name).select_one(".page-footer").get_text(), list_foot(site, name)
    assert f"Version {CITATION['version']}" in foot
    assert links["CC BY 4.0"].startswith("https://creativecommons.org/licenses/by/4.0")
    assert links["MIT"].startswith(REPOSITORY)
    assert "cite.html" in links["How to cite"] or name == "book/cite.html"


@every_page
def test_the_foot_leads_to_the_source_of_its_own_page(site, name):
    path = list_foot(site, name)["Edit this page"].removeprefix(f"{REPOSITORY}/edit/main/")
    assert Path(path).with_suffix(".html") == Path(name)
    assert (ROOT / path).is_file()
    assert path.endswith(".md")  # a notebook is made from it


@every_page
def test_the_report_of_an_error_names_the_page(site, name):
    address = urlsplit(list_foot(site, name)["Report an error"])
    assert address.geturl().startswith(f"{REPOSITORY}/issues/new?")
    report = parse_qs(address.query)
    (title,), (body,) = report["title"], report["body"]
    assert title.removesuffix(": ") == parse(site, name).select_one("article h1").get_text().removesuffix("#")
    assert BASE + name in unquote(body)


def test_a_commit_is_named_with_its_day(tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run(
        [*git, "commit", "-q", "--allow-empty", "-m", "one", "--date", "2020-01-02T03:04:05Z"],
        check=True,
        env={"GIT_COMMITTER_DATE": "2020-01-02T03:04:05Z"},
    )
    commit, day = find_commit(tmp_path)
    assert len(commit) == 40
    assert day == "2020-01-02"
    (tmp_path / "archive").mkdir()
    assert find_commit(tmp_path / "archive") is None  # unpacked within a repository that is not its own


def test_a_tree_without_git_names_no_commit(tmp_path):
    assert find_commit(tmp_path) is None
