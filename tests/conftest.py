"""What all tests share: nothing is timed, so that a loaded machine fails none; the built site, and a browser."""

import subprocess
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings
from tools.browser import launch_chromium, serve

settings.register_profile("book", deadline=None, derandomize=True)  # the same examples everywhere
settings.load_profile("book")

ROOT = Path(__file__).parents[1]
HTML = ROOT / "_build" / "html"


def is_up_to_date():
    """Tell whether the last build without warnings, which alone sets the stamp, is younger than every source."""
    stamp, hidden = HTML / ".built", {"__pycache__", ".ipynb_checkpoints"}
    in_book = (path for path in (ROOT / "book").rglob("*") if path.is_file() and not hidden & set(path.parts))
    sources = [ROOT / "_config.yml", ROOT / "_toc.yml", *in_book]
    return stamp.exists() and stamp.stat().st_mtime > max(path.stat().st_mtime for path in sources)


@pytest.fixture(scope="session")
def site():
    """The folder of the built site."""
    HTML.parent.mkdir(exist_ok=True)
    with FileLock(HTML.parent / "site.lock"):  # another worker may need it at the same time
        if not is_up_to_date():
            build = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True, check=False)
            if build.returncode:
                pytest.fail("the site does not build without warnings:\n" + build.stdout[-2000:] + build.stderr[-4000:])
    return HTML


@pytest.fixture(scope="module")
def address(site):
    """The address at which the site is served."""
    with serve(site) as url:
        yield url


@pytest.fixture(scope="module")
def chromium():
    """A running Chromium."""
    with launch_chromium() as browser:
        yield browser
