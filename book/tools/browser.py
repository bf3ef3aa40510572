"""What the site tests need around a page: a server, a Chromium, a tab that keeps a log, and axe-core."""

import os
import shutil
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",  # containers and CI run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 300_000  # ms for a page, on a machine that has other things to do
COLOUR_RULES = ["color-contrast", "link-in-text-block"]  # what another theme can break
AXE_OPTIONS = {
    "preload": False,  # axe would fetch style sheets anew, from wrong addresses, and log errors that are its own
    "resultTypes": ["violations"],  # to describe what passes takes longer than many a rule
}
FORM = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    "rules": {rule: {"enabled": False} for rule in COLOUR_RULES}
    | {"label-content-name-mismatch": {"enabled": True}},  # still "experimental", and the theme had one
}
# Of each kind of text the longest piece (axe-core does not judge single letters), and whatever can be filled in. A kind
# is what style sheets can tell apart: tag, class and style from the piece up, odd and even rows.
KINDS = """() => {
    const kinds = new Map(), texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const element = texts.currentNode.parentElement, length = texts.currentNode.data.trim().length;
        if (!length || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
        let kind = "";
        for (let e = element; e; e = e.parentElement)
            kind += [e.tagName, e.getAttribute("class"), e.getAttribute("style"), e.matches("tr:nth-child(odd)"), "<"];
        if (length > (kinds.get(kind)?.length ?? 0)) kinds.set(kind, { element, length });
    }
    return [...document.querySelectorAll("input, button, select"), ...[...kinds.values()].map((kind) => kind.element)];
}"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a line on stderr for each."""

    def log_message(self, format, *args):
        """Say nothing."""


@contextmanager
def serve(folder, handler=QuietHandler):
    """Serve a folder on a free port of this machine; yields the address, with a slash at its end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def find_chromium():
    """Return the path of a Chromium: ``$CHROMIUM``, else the first of the usual names; None where there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


@contextmanager
def launch_chromium():
    """Start a headless Chromium; without one, skip by name, or fail where ``REQUIRE_BROWSER=1`` demands it."""
    path = find_chromium()
    if path is None:
        miss = pytest.fail if os.environ.get("REQUIRE_BROWSER") == "1" else pytest.skip
        miss("no Chromium found: set CHROMIUM, or run `make browser`")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@dataclass
class Log:
    """What a tab complained of and asked for."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def open_context(chromium, *, width=1280, theme="light"):
    """Yield a window with a cache and a memory of its own, of this width in pixels and with this theme."""
    context = chromium.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@contextmanager
def open_tab(context, url):
    """Open a page in a tab and wait until it is set, mathematics included; yields the tab and its log."""
    log = Log()
    page = context.new_page()
    kinds = ("warning", "error")
    page.on("console", lambda m: log.complaints.append(f"{m.type}: {m.text}") if m.type in kinds else None)
    page.on("pageerror", lambda error: log.complaints.append(f"uncaught: {error}"))
    page.on("request", lambda request: log.requests.append(request.url))
    page.goto(url)
    page.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready; }")
    yield page, log
    page.close()


@contextmanager
def open_page(chromium, url, *, width=1280, theme="light"):
    """Open a page in a window of its own; yields the tab and its log."""
    with open_context(chromium, width=width, theme=theme) as context, open_tab(context, url) as opened:
        yield opened


def unfold(page):
    """Open every fold of a page, so that what is in it is checked as well."""
    page.evaluate("""() => {
        document.querySelectorAll("button.toggle-button-hidden").forEach((button) => button.click());
        document.querySelectorAll("main details").forEach((details) => { details.open = true; });
        return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }""")


def find_axe_violations(page):
    """What axe-core says of a page: a list of lines."""
    return find_form_violations(page) + find_colour_violations(page)


def find_form_violations(page):
    """What axe-core says of a page, colours apart: a list of lines."""
    return _run_axe(page, "document", FORM)


def find_colour_violations(page):
    """What axe-core says of the colours of one piece of text of each kind: a list of lines.

    It takes 6 ms for a piece, of which a page has thousands, and some hundred kinds.
    """
    return _run_axe(page, f"{{ include: ({KINDS})() }}", {"runOnly": COLOUR_RULES})


def _run_axe(page, where, options):
    page.evaluate(Axe().axe_script)
    found = page.evaluate(f"(options) => axe.run({where}, options)", AXE_OPTIONS | options)["violations"]
    return [f"{v['impact']}: {v['id']}: {node['html'][:150]}" for v in found for node in v["nodes"]]
