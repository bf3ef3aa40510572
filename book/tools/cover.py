"""Copy the figures that sell the book out of their chapters, for the README and the front page."""

import base64
import sys

import nbformat
from bookkit.repo import BOOK

PICTURES = {
    "cover.png": ("flat_advi", "fig-flat-advi-uncertainty"),
    "lonely.png": ("unpooled", "fig-unpooled-surfaces"),
    "tied.png": ("hierarchical_nuts", "fig-hierarchical-nuts-surfaces"),
}


def find_picture(notebook, figure):
    """The PNG, as bytes, of the cell whose figure has this name."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == figure:
            return base64.b64decode(cell.outputs[0].data["image/png"])
    raise SystemExit(f"{notebook.name} has no figure named {figure}")


def main():
    for name, (chapter, figure) in PICTURES.items():
        (BOOK / "_static" / name).write_bytes(find_picture(BOOK / f"{chapter}.ipynb", figure))


if __name__ == "__main__":
    sys.exit(main())
