"""Figures for slides: while a chapter is executed, each figure that a deck shows is drawn once more, for a projector.

A slide says which figure of which chapter it wants, in what shape, and which of its panels (`list_wanted`). When the
kernel that executes the chapter shows that figure on the page, `watch` draws the same figure again (`redraw`): as large
as the slide has room, two pixels to each of its own, no letter below `LEAST` points, at most six panels. So a slide's
figure is made by the chapter's own cell, in the same run, and each says which picture of the page it belongs to.
"""

import base64
import functools
import hashlib
import json
import os
import re
import shutil
import traceback
from io import BytesIO
from pathlib import Path

SLIDES = Path(__file__).resolve().parents[1] / "teach" / "slides"
FIGURES = SLIDES / "figures"
VARIABLE = "BNN_SLIDE_FIGURES"  # in a kernel: what to draw, and where to put it
AREAS = {"wide": (1740, 780), "tall": (1040, 860), "low": (1740, 520)}  # pixels that a slide of 1920 x 1080 has for it
PIXELS, DENSITY = 3, 2  # of the slide to a point; of the picture to a pixel of the slide
LEAST, MOST_PANELS = 8, 6  # points of the smallest letter; panels
DIRECTIVE = re.compile(r"^```\{chapter-figure\} (\w+) (\S+)\n((?::.*\n)*)", flags=re.MULTILINE)
OPTION = re.compile(r"^:(shape|panels):(.*)$", flags=re.MULTILINE)


def list_wanted(chapter, folder=SLIDES):
    """What the decks want of a chapter: {name of a figure: {"shape": str, "panels": list of int}}."""
    wanted = {}
    for path in sorted(Path(folder).rglob("*.md")):
        for name, figure, options in DIRECTIVE.findall(path.read_text(encoding="utf8")):
            if name == chapter:
                wanted[figure] = read_options(dict(OPTION.findall(options)))
    return wanted


def read_options(options):
    """The shape and the panels of a directive's options (dict of str), as `redraw` takes them."""
    shape = options.get("shape", "wide").strip()
    if shape not in AREAS:
        raise ValueError(f"shape {shape!r}; wanted: one of {', '.join(AREAS)}")
    return {"shape": shape, "panels": [int(panel) for panel in options.get("panels", "").split()]}


def read_origin(path):
    """What a slide's picture says of itself: the digest of the page's picture, what was asked, its smallest letter.

    Returns
    -------
    dict with "page" (str), "asked" (dict) and "least" (float, in pixels of a slide), or None without such a picture
    """
    from PIL import Image

    if not Path(path).exists():
        return None
    with Image.open(path) as picture:
        said = picture.text
    return {"page": said["page"], "asked": json.loads(said["asked"]), "least": float(said["least"])}


def digest(data):
    """SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def find_cells(nb):
    """The cells of a notebook that show a figure: {name of the figure: cell}."""
    cells = {cell["metadata"].get("mystnb", {}).get("figure", {}).get("name"): cell for cell in nb["cells"]}
    return {name: cell for name, cell in cells.items() if name}


def find_picture(cell):
    """The first PNG (bytes) that a cell shows; None before it was executed."""
    pictures = [output["data"]["image/png"] for output in cell["outputs"] if "image/png" in output.get("data", {})]
    return base64.b64decode(pictures[0]) if pictures else None


def find_drawn(name, on_page, asked, folder=FIGURES):
    """A slide's picture (bytes), if it was drawn for this picture of the page and as the slide asks; else None."""
    path = Path(folder, f"{name}.png")
    origin = read_origin(path)
    drawn = origin is not None and (origin["page"], origin["asked"]) == (digest(on_page), asked)
    return path.read_bytes() if drawn else None


def list_stale(nb, wanted, folder=FIGURES):
    """Names of the wanted figures that are not there, or were drawn for another picture or in another way."""
    cells = find_cells(nb)
    on_page = {name: find_picture(cells[name]) if name in cells else None for name in wanted}
    return [name for name, asked in wanted.items()
            if on_page[name] is None or find_drawn(name, on_page[name], asked, folder) is None]  # fmt: skip


def ask(nb, wanted, folder):
    """The environment of a kernel that shall draw the wanted figures of a notebook into a folder (dict)."""
    cells = find_cells(nb)
    sources = {digest(cells[name]["source"].encode()): [name, options] for name, options in wanted.items()}
    return {VARIABLE: json.dumps({"folder": str(folder), "cells": sources})} if sources else {}


def take(folder, target=FIGURES):
    """Move what a kernel has drawn to where the decks look for it; a ValueError says what could not be drawn."""
    errors = [f"{path.stem}: {path.read_text(encoding='utf-8')}" for path in sorted(Path(folder).glob("*.error"))]
    if errors:
        raise ValueError("\n".join(errors))
    Path(target).mkdir(exist_ok=True)
    for path in sorted(Path(folder).glob("*.png")):
        shutil.move(path, Path(target, path.name))


# --- in the kernel


def watch(shell):
    """Draw figures again when a cell shows one that the environment asks for; call it once, as a kernel starts."""
    asked = json.loads(os.environ[VARIABLE])
    waiting = {}

    def begin(info):
        waiting["now"] = asked["cells"].get(digest((info.raw_cell or "").encode()))

    def draw_twice(figure, draw):
        shown, wanted = draw(figure), waiting.pop("now", None)
        if wanted:
            name, options = wanted
            path = Path(asked["folder"], f"{name}.png")
            try:
                path.write_bytes(redraw(figure, digest(shown[0]), **options))
            except Exception:  # the page has its picture; `take` says what was wrong with the other
                path.with_suffix(".error").write_text(traceback.format_exc(), encoding="utf-8")
        return shown

    shell.events.register("pre_run_cell", begin)
    formatter = shell.display_formatter.formatters["image/png"]
    set_printer = formatter.for_type

    def set_printer_twice(kind, draw=None):
        """What the first cell calls by `plots.use_style`: from then on a figure is drawn once more."""
        if draw is not None and kind.__name__ == "Figure":
            return set_printer(kind, functools.partial(draw_twice, draw=draw))
        return set_printer(kind, draw)

    formatter.for_type = set_printer_twice


def redraw(figure, page, *, shape, panels):
    """A figure for a slide; the figure itself is changed, too.

    Parameters
    ----------
    figure : matplotlib Figure
    page : str, the digest of its picture on the page
    shape : str, a key of `AREAS`
    panels : list of int, which axes to keep, colour bars not counted; empty for all

    Returns
    -------
    bytes, a PNG whose texts are what `read_origin` reads

    Raises
    ------
    ValueError
        When more than six panels are left, or one is asked for that is not there.
    """
    import numpy as np
    from bnn.plots import _reduce_colors
    from matplotlib.text import Text
    from PIL import Image, PngImagePlugin

    keep_panels(figure, panels)
    figure.set_size_inches([side / (72 * PIXELS) for side in AREAS[shape]])
    raise_letters(figure)
    whole, small = BytesIO(), BytesIO()
    figure.savefig(whole, format="png", dpi=72 * PIXELS * DENSITY, bbox_inches="tight", pad_inches=0.02)
    drawn = [
        ax for ax in list_panels(figure) if ax.axison and (len(ax.get_xticks()) or ax.spines["left"].get_visible())
    ]
    if len(drawn) > MOST_PANELS:
        raise ValueError(f"{len(drawn)} panels; wanted: at most {MOST_PANELS}, chosen by :panels:")
    letters = [text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    told = PngImagePlugin.PngInfo()
    told.add_text("page", page)
    told.add_text("asked", json.dumps({"shape": shape, "panels": panels}))
    told.add_text("least", f"{PIXELS * min(letters):.1f}" if letters else "inf")
    picture = _reduce_colors(np.asarray(Image.open(whole).convert("RGB")))
    picture.save(small, "png", optimize=True, dpi=(72 * PIXELS * DENSITY,) * 2, pnginfo=told)
    return small.getvalue()


def list_panels(figure):
    """The axes of a figure that are no colour bars."""
    return [ax for ax in figure.axes if not hasattr(ax, "_colorbar")]


def keep_panels(figure, panels):
    """Leave of a figure's panels those named, in rows of three; their colour bar is drawn anew."""
    every = list_panels(figure)
    missing = [panel for panel in panels if panel >= len(every)]
    if missing:
        raise ValueError(f"panels {missing}; the figure has {len(every)}, counted from 0")
    if not panels:
        return
    bars = [ax._colorbar for ax in figure.axes if hasattr(ax, "_colorbar")]
    bars = [(bar.mappable, bar.ax.get_ylabel(), bar.remove()) for bar in bars]
    kept = [every[panel] for panel in panels]
    for ax in set(every) - set(kept):
        ax.remove()
    n_columns = min(3, len(kept))
    grid = figure.add_gridspec(-(-len(kept) // n_columns), n_columns)
    for k, ax in enumerate(kept):
        ax.set_subplotspec(grid[k // n_columns, k % n_columns])
        ax.tick_params(labelleft=k % n_columns == 0, labelbottom=k >= len(kept) - n_columns)
    for mappable, label, _ in bars:
        figure.colorbar(mappable, ax=kept, aspect=30, pad=0.01).set_label(label)


def raise_letters(figure):
    """Make every letter at least `LEAST` points high."""
    from matplotlib.text import Text

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            sizes = [label.get_fontsize() for label in axis.get_ticklabels()]
            if sizes and min(sizes) < LEAST:
                axis.set_tick_params(labelsize=LEAST)
    for text in figure.findobj(Text):
        text.set_fontsize(max(text.get_fontsize(), LEAST))
