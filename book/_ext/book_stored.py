"""Pages that answer from a stored posterior: the script that asks it, and its style, on these pages and on no other."""

import json
from pathlib import Path

LIVE = Path(__file__).resolve().parents[1] / "_static" / "live"


def find_script(pagename):
    """The script of a page, from what `stored.py` wrote for its chapter; None where nothing is stored."""
    folder, _, name = pagename.rpartition("/")
    path = LIVE / f"{name}.json"
    if folder != "book" or not path.exists():
        return None
    return json.loads(path.read_text(encoding="utf8")).get("script")


def ship_script(app, pagename, templatename, context, doctree):
    """Give a page with a stored posterior its script, as a module, and the style sheet."""
    script = find_script(pagename)
    if script:
        app.add_css_file("live/stored.css")
        app.add_js_file(f"live/{script}", type="module")


def setup(app):
    """Connect to Sphinx."""
    app.connect("html-page-context", ship_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
