"""The live boxes in Firefox: drawn on by mouse, by finger and by keyboard, sampled, judged, and brought back by a link.

Chromium is asked for more, in `test_live_pages.py`. Without a Firefox all of this is skipped, and says so.
"""

import re

import pytest
from marionette import PLACES, SHOW, TEXT, firefox
from test_live_pages import AGREE, BARE, START
from tools.browser import serve
from tools.chapters import BOOK

__all__ = ["firefox"]  # a fixture
PAD = {"moons": "[data-view=pad]", "tie": "[data-group='5']"}
STATE = "document.querySelector('.live-box').dataset.state"
BUTTON = "[...document.querySelectorAll('.live-box button')].find((b) => b.textContent.trim() === arguments[0]).click()"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The address of pages with a box each, and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "_static").symlink_to(BOOK / "_static")
    for kind in PAD:
        (folder / f"{kind}.html").write_text(BARE.replace("KIND", kind), encoding="utf-8")
    with serve(folder) as address:
        yield address


def open_box(firefox, address, kind, end=""):
    """A box in sight, by way of another page: an address that differs in its end alone is not loaded again."""
    firefox.open("about:blank")
    firefox.open(f"{address}{kind}.html{end}")
    firefox.wait("(document.querySelector('figure').scrollIntoView(), document.querySelector('.live-box'))")
    firefox.evaluate(SHOW, PAD[kind])


def find_place(firefox, kind, x, y):
    """Where a place of the plane is in the window, in pixels."""
    ((left, top, wide, high),) = firefox.evaluate(PLACES, PAD[kind])
    return left + wide * (x + 3) / 6, top + high * (3 - y) / 6


def read_points(firefox, kind="moons"):
    """What is drawn: list of (x, y, class), as the address says it."""
    code = """import("/_static/live/points.js").then((m) =>
      m.readPoints(document.querySelector(".live-box").dataset.drawing.split(".").at(-1)))"""
    return [(round(p["x"], 1), round(p["y"], 1), p["label"]) for p in firefox.evaluate(code)]


@pytest.mark.parametrize("by", ["mouse", "touch"])
def test_a_pointer_puts_moves_and_removes_points(firefox, pages, by):
    open_box(firefox, pages, "moons", START)
    firefox.evaluate(BUTTON, "Clear")
    firefox.stroke([find_place(firefox, "moons", 1, 2)], by)
    assert read_points(firefox) == [(1, 2, 1)]
    firefox.evaluate(BUTTON, "calm")
    firefox.stroke([find_place(firefox, "moons", -2, -1)], by)
    assert read_points(firefox) == [(1, 2, 1), (-2, -1, 0)]
    firefox.stroke([find_place(firefox, "moons", *place) for place in ((1, 2), (1.5, 1), (2, 0.5))], by)
    assert read_points(firefox) == [(2, 0.5, 1), (-2, -1, 0)]
    firefox.stroke([find_place(firefox, "moons", 2, 0.5)], by)
    assert read_points(firefox) == [(-2, -1, 0)]


def test_the_keyboard_puts_points_and_is_spoken_to(firefox, pages):
    open_box(firefox, pages, "moons", START)
    firefox.evaluate(BUTTON, "Clear")
    firefox.evaluate("document.querySelector(arguments[0]).focus()", PAD["moons"])
    firefox.press("ArrowRight ArrowUp ArrowUp Enter")
    assert read_points(firefox) == [(0.5, 1, 1)]
    assert firefox.evaluate(TEXT, ".live-spoken").startswith("Put attack. column 8, row 9: attack here, ")
    firefox.press("Delete")
    assert read_points(firefox) == []


def test_a_link_is_sampled_and_judged_and_says_the_same_again(firefox, pages):
    said = []
    for _ in range(2):
        open_box(firefox, pages, "moons", START)
        firefox.wait(f"{STATE} !== 'running' && {STATE} !== undefined")
        said.append([firefox.evaluate(TEXT, ".live-status"), firefox.evaluate(
            "document.querySelector('[data-view=ignorance]').getAttribute('aria-label')")])  # fmt: skip
    assert AGREE.match(said[0][0])
    assert re.fullmatch(r"Map of ignorance, 0\.\d\d bit on average", said[0][1])
    assert said[0] == said[1]


def test_advi_answers(firefox, pages):
    open_box(firefox, pages, "moons", START)
    firefox.evaluate(BUTTON, "What would ADVI say?")
    firefox.wait("/ELBO/.test(document.querySelector('.live-advi').textContent)")


@pytest.mark.parametrize("by", ["mouse", "touch", "keyboard"])
def test_a_category_of_ones_own_is_drawn_in_and_tied(firefox, pages, by):
    open_box(firefox, pages, "tie")
    firefox.evaluate(BUTTON, "None")
    assert read_points(firefox) == []
    if by == "keyboard":
        firefox.evaluate("document.querySelector(arguments[0]).focus()", PAD["tie"])
        firefox.press("ArrowRight ArrowUp ArrowUp Enter")
    else:
        firefox.stroke([find_place(firefox, "tie", 0.5, 1)], by)
    assert read_points(firefox) == [(0.5, 1, 1)]
    slider = ".live-box input[type=range]"
    before = firefox.evaluate("document.querySelector(arguments[0]).getAttribute('aria-valuetext')", slider)
    firefox.evaluate("document.querySelector(arguments[0]).focus()", slider)
    firefox.press("ArrowLeft")
    after = firefox.evaluate("document.querySelector(arguments[0]).getAttribute('aria-valuetext')", slider)
    assert after != before
