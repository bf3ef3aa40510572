"""Live boxes: a page with a figure of the class ``live-…`` gets the script that wakes it, and its style.

In the source such a box is a figure like any other (``:figclass: live-moons``): a still picture, its text and its
caption. So it stands in JupyterLab, in print, and where there are no scripts; ``start.js`` builds the box in its place.
"""

from docutils import nodes

MARK = "live-"
SHEET = "test-sheet"  # the class of a list of questions that a script turns into a form


def has_live_box(doctree):
    """Whether a page has a figure that a script may wake; None is a page without a source, such as the search."""
    figures = doctree.findall(nodes.figure) if doctree is not None else ()
    return any(name.startswith(MARK) for figure in figures for name in figure["classes"])


def has_sheet(doctree):
    """Whether a page has a list of questions with answers to choose from."""
    lists = doctree.findall(nodes.enumerated_list) if doctree is not None else ()
    return any(SHEET in each["classes"] for each in lists)


def ship_live(app, pagename, templatename, context, doctree):
    """Give a page with a live box, or a sheet of questions, its script and its style, and no other page."""
    if has_live_box(doctree):
        app.add_js_file("live/start.js", type="module")
        app.add_css_file("live.css")
    if has_sheet(doctree):
        app.add_js_file("live/sheet.js", type="module")


def setup(app):
    """Connect to Sphinx."""
    app.connect("html-page-context", ship_live)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
