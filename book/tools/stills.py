"""Make the still pictures of the live boxes, from the boxes themselves: ``book/_static/live/<name>.png``.

    python -m tools.stills            all, from the built site (needs a Chromium)

A still is what a reader sees who touches nothing and waits for the verdict; it stands where there are no scripts, in
print and in JupyterLab. Draws depend on the seed alone, so it is the same picture on every machine, but for its edges.
"""

import sys

import numpy as np
from bookkit import plots
from bookkit.repo import BOOK
from PIL import Image

from tools.browser import launch_chromium, serve

BOXES = {
    "moons": ("flat_advi", ".live-sliders, .live-more", ".live-draws > div", 4, "1fr 1.1fr"),
    "tie": ("hierarchical_nuts", ".tie-slider", ".tie-others", 3, "1fr 1.2fr"),
}  # the chapter; what in its box is a button; what has how many columns, and how wide both sides are to be as high
SITE = BOOK.parent / "_build" / "html"
WIDTH, PATIENCE = 1440, 300_000  # CSS pixels; ms


def take_still(chromium, address, name):
    """Write the picture of one box, once its chains agree, without its buttons."""
    page_name, hidden, grid, columns, sides = BOXES[name]
    context = chromium.new_context(viewport={"width": WIDTH, "height": 1200}, device_scale_factor=2)
    page = context.new_page()
    page.goto(f"{address}book/{page_name}.html")
    page.locator(f"figure.live-{name}").scroll_into_view_if_needed()
    page.locator(f"figure.live-{name} .live-box").scroll_into_view_if_needed()
    page.wait_for_selector(".live-box[data-state=agree]", timeout=PATIENCE)
    page.add_style_tag(
        content=f":is({hidden}, .live-verdict, .live-readout) {{ display: none !important; }}"
        f"{grid} {{ grid-template-columns: repeat({columns}, minmax(0, 1fr)) !important; }}"
        f".live-stage {{ grid-template-columns: {sides} !important; }}"
    )
    page.wait_for_timeout(1000)  # maps are painted at their new size
    path = BOOK / "_static" / "live" / f"{name}.png"
    page.locator(".live-stage").screenshot(path=path)
    context.close()
    shrink(path)
    print(f"{path}: {path.stat().st_size:,} bytes")


def shrink(path, dpi=(220, 220)):
    """Keep the 256 colours that `plots` would, a third of the bytes; a still has two pixels to the CSS pixel."""
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    plots._reduce_colors(pixels).save(path, optimize=True, dpi=dpi)


def main():
    with serve(SITE) as address, launch_chromium() as chromium:
        for name in BOXES:
            take_still(chromium, address, name)


if __name__ == "__main__":
    sys.exit(main())
