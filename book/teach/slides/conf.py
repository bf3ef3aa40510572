"""The decks' settings, reveal.js from MyST, with everything it loads beside it."""

import sys
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
BOOK = HERE.parents[1]
sys.path[:0] = [str(BOOK), str(BOOK / "_ext")]

from book_site import copy_mathjax  # noqa: E402, after the path to it

project = "Hierarchical Bayesian Neural Networks with PyMC"
author = "the hbnn-book authors"
language = "en"
extensions = ["myst_parser", "sphinx_revealjs", "book_pages", "book_slides"]
templates_path = ["_templates"]
myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "dollarmath", "smartquotes"]
config_of_the_book = yaml.safe_load((BOOK.parent / "_config.yml").read_text(encoding="utf8"))
html_theme_options = {"repository_url": config_of_the_book["repository"]["url"]}  # for the role {repository}
claims_base = "../book/"  # the decks lie beside the book's pages, in _build/html/slides
pygments_style = "a11y-high-contrast-light"

shared = config_of_the_book["sphinx"]["config"]
mathjax_path = shared["mathjax_path"]
mathjax3_config = shared["mathjax3_config"] | {"chtml": {"matchFontHeight": False}}  # hidden slides have no height

html_favicon = str(BOOK / "_static" / "favicon.svg")
revealjs_html_theme = "revealjs-simple"
revealjs_static_path = [str(HERE / "_static")]
revealjs_style_theme = "slides.css"
revealjs_css_files = ["phone.css", "colours.css", "pygments.css", "live/live.css", "live/stored.css"]
revealjs_use_section_ids = True
revealjs_script_plugins = [{"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"}]
revealjs_script_conf = {
    "width": 1920,  # so that a pixel of the style sheet is a pixel of a 1080p projector
    "height": 1080,
    "margin": 0,
    "display": "flex",
    "center": False,
    "hash": True,
    "transition": "none",
    "backgroundTransition": "none",
    "navigationMode": "linear",
    "slideNumber": "c/t",
    "pdfMaxPagesPerSlide": 1,
    "pdfSeparateFragments": False,  # a page for each slide, with all that it shows in the end
    "defaultTiming": 60,  # turns the speaker view's clock on; each slide's notes say its own seconds
}


def setup(app):
    """Put MathJax beside the decks."""
    app.connect("build-finished", copy_mathjax)
