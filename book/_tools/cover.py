"""Copy the figure that sells the book out of its chapter, for the README and the front page."""

import base64
import sys

import nbformat
from chapters import BOOK

CHAPTER, FIGURE = "flat_advi", "fig-flat-advi-uncertainty"


def find_picture(notebook, figure):
    """The PNG, as bytes, of the cell whose figure has this name."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == figure:
            return base64.b64decode(cell.outputs[0].data["image/png"])
    raise SystemExit(f"{notebook.name} has no figure named {figure}")


def main():
    (BOOK / "_static" / "cover.png").write_bytes(find_picture(BOOK / f"{CHAPTER}.ipynb", FIGURE))


if __name__ == "__main__":
    sys.exit(main())
