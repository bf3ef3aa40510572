"""What holds for all tests: nothing is timed, so that a loaded machine fails none of them; and the built site."""

import subprocess
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings
from tools.browser import launch_chromium, serve

ROOT = Path(__file__).parents[1]

settings.register_profile("book", deadline=None)
settings.load_profile("book")


@pytest.fixture(scope="session")
def site():
    """The folder of the built site; it is built first where it is older than its sources."""
    folder, stamp = ROOT / "_build" / "html", ROOT / "_build" / "html" / ".built"  # set by a build without warnings
    folder.parent.mkdir(exist_ok=True)
    sources = [ROOT / "_config.yml", ROOT / "_toc.yml", *(ROOT / "book").rglob("*.*")]
    newest = max(path.stat().st_mtime for path in sources if path.is_file() and path.suffix != ".pyc")
    with FileLock(folder.parent / "site.lock"):  # another worker may need it at the same time
        if not stamp.exists() or stamp.stat().st_mtime < newest:
            build = subprocess.run(["make", "site"], cwd=ROOT, capture_output=True, text=True, check=False)
            if build.returncode:
                pytest.fail("the site does not build without warnings:\n" + build.stdout[-2000:] + build.stderr[-4000:])
    return folder


@pytest.fixture(scope="session")
def address(site):
    """The address at which the site is served."""
    with serve(site) as url:
        yield url


@pytest.fixture(scope="session")
def chromium():
    """A running Chromium."""
    with launch_chromium() as browser:
        yield browser
