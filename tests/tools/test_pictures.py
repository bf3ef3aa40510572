"""What is made from chapters and boxes: the list, what lies in its folders, and how cells are run."""

import re

import nbformat
import pytest
from bookkit.repo import BOOK
from PIL import Image
from tools import pictures

BY_HAND = {"favicon.svg", "primer.svg", "when_to_use.svg", "handouts/blank.svg"}


def test_every_picture_and_every_number_of_the_site_is_in_the_list_or_drawn_by_hand():
    found = {str(path.relative_to(pictures.STATIC)) for path in pictures.STATIC.rglob("*.*")}
    listed = [path for name in pictures.MADE for path in pictures.list_files(name)]
    assert sorted(listed) == sorted(path for path in found - BY_HAND if not re.search(r"\.(css|js|txt|woff2)$", path))
    assert list(pictures.read_made()) == list(pictures.MADE)


@pytest.mark.parametrize("name", pictures.MADE)
def test_what_is_made_is_what_its_cells_or_scripts_make_now_and_its_page_shows_it(name):
    made = pictures.MADE[name]
    kept = pictures.read_made()[name]
    assert kept["stamp"] == pictures.stamp(name), f"run: python -m tools.pictures {name}"
    assert kept["files"] == pictures.digest_files(name), f"changed by hand, run: python -m tools.pictures {name}"
    text = (BOOK / f"{made.chapter}.md").read_text()
    if made.kind == "still":
        assert f"_static/live/{name}.png" in text
    if made.kind == "slider":
        assert f"{{frames}} {name}\n" in text
        slider = pictures.read_json(name)
        alts = {frame["alt"] for frame in slider["frames"]}
        assert len(alts) == len(slider["frames"]) > 4
        with Image.open(pictures.STATIC / "frames" / f"{name}.png") as sheet:  # for screens of double density
            assert sheet.size == (2 * slider["width"], 2 * slider["height"] * len(alts))


def test_a_change_of_cells_or_of_a_picture_makes_an_entry_stale(monkeypatch):
    before = {name: pictures.stamp(name) for name in ("flat_advi", "lonely", "moons")}
    first = nbformat.v4.new_code_cell("1")
    monkeypatch.setattr(pictures, "list_cells", lambda *_: [first])
    monkeypatch.setattr(pictures, "list_scripts", lambda *_: ["_static/live/tie.js"])
    now = {name: pictures.stamp(name) for name in before}
    monkeypatch.setattr(pictures, "read_figure", lambda *_: b"another")
    another = {name: pictures.stamp(name) for name in before}
    assert [before[name] != now[name] for name in before] == [True] * 3
    assert [now[name] != another[name] for name in before] == [True, True, False]


def test_the_scripts_of_a_box_are_all_that_it_reaches():
    scripts = pictures.list_scripts("moons")
    assert {f"_static/live/{name}.js" for name in ("moons", "pad", "sampler", "worker", "nuts", "random")} < set(
        scripts
    )
    assert "_static/live/tie.js" not in scripts
    assert "_static/live/moons.js" in pictures.list_scripts("tie")  # it takes its marks from there


def test_cells_are_run_with_the_change_that_is_asked_for_and_without_it_not_at_all(monkeypatch):
    cells = [nbformat.v4.new_code_cell(source) for source in ("a = 1 + b", "c = a")]
    monkeypatch.setattr(pictures, "list_cells", lambda *_: cells)
    assert pictures.run_cells("x", "c", {"a = 1": "a = 5"}, b=2)["c"] == 7
    with pytest.raises(SystemExit, match=r"x has no cell with \['a = 9'\]"):
        pictures.run_cells("x", "c", {"a = 9": "a = 5"}, b=2)
