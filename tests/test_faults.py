"""The tool that plants faults: its list fits the sources, and it tells what is caught from what is not."""

import shutil
import subprocess
from pathlib import Path

import pytest
from faults import Fault, plant, read_sources
from faults.notebooks import TAMPERINGS, Chapter
from tools.node import find_node

ROOT = Path(__file__).resolve().parents[1]
SOURCES = read_sources()
MODULES = [
    path.relative_to(ROOT).as_posix()
    for pattern in ("book/bnn/*.py", "book/tools/*.py", "book/_ext/*.py", "book/_static/live/*.js")
    for path in sorted(ROOT.glob(pattern))
    if path.name != "__init__.py"
]


@pytest.mark.parametrize("fault", SOURCES, ids=lambda fault: fault.name)
def test_a_fault_fits_its_source_and_leaves_code_that_can_be_read(fault, tmp_path):
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    planted = fault.plant(text)
    if fault.file.endswith(".py"):
        compile(planted, fault.file, "exec")
    else:
        (tmp_path / "planted.mjs").write_text(planted, encoding="utf-8")
        subprocess.run([find_node(), "--check", tmp_path / "planted.mjs"], check=True)
    assert planted != text
    assert (ROOT / fault.tests[0]).exists()


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_a_fault(module):
    assert module in {fault.file for fault in SOURCES}


@pytest.fixture(scope="module")
def honest():
    """A chapter as another machine wrote it."""
    return Chapter("yardsticks", strict=False)


def test_nobody_complains_of_an_honest_notebook(honest):
    assert honest.judge(honest.read()) is None


def test_a_complaint_names_the_cell(honest):
    tampering = next(t for t in TAMPERINGS if t.what == "an exact number moves by its last digit")
    who, words = honest.judge(honest.make(tampering))
    assert who.startswith("nbval, cell ")
    assert "13.5 % right" in words


@pytest.mark.parametrize("tampering", TAMPERINGS, ids=lambda tampering: tampering.name)
def test_there_is_something_to_tamper_with(tampering):
    chapter = Chapter(tampering.chapter, strict=True)
    assert chapter.make(tampering) != chapter.honest


# --- the tool, on a tree of one function

TOY = "def double(x):\n    while x > 100:\n        x -= 1\n    return 2 * x\n"
TEST = "from toy import double\n\n\ndef test_two():\n    assert double(2) == 4\n"
BROKEN = "def test_broken():\n    assert False\n"
TOLD = ("tests/test_toy.py",)
PLANTED = [
    Fault("toy.py", "caught", "2 * x", "3 * x", TOLD),
    Fault("toy.py", "survives", "x > 100", "x > 99", TOLD),
    Fault("toy.py", "stale", "5 * x", "6 * x", TOLD),
    Fault("toy.py", "hangs", "while x > 100:\n        x -= 1", "while x > 0:\n        x += 1", TOLD),
    Fault("toy.py", "no syntax", "return", "retrun", TOLD),
    Fault("toy.py", "unknown", "2 * x", "3 * x", ("tests/test_broken.py",)),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """What the tool says of `PLANTED`, by name."""
    tree, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("copies")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "tests" / "faults", tree / "tests" / "faults", ignore=ignored)
    server = tree / "tests" / "faults" / "server.py"
    server.write_text(
        server.read_text().replace("PACKAGES = (", "PACKAGES = ('hypothesis', 'nbval.plugin')\nOTHERS = (")
    )
    (tree / "toy.py").write_text(TOY)
    (tree / "tests" / "test_toy.py").write_text(TEST)
    (tree / "tests" / "test_broken.py").write_text(BROKEN)
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plant, "ROOT", tree)
        patch.setattr(plant, "PATHS", (".", "tests"))
        patch.setattr(plant, "CPU_SECONDS", 10)
        patch.setattr(plant, "SLOWER", 0)
        found = plant.judge_sources(PLANTED, folder, 1, lambda words: None)
    assert (folder / "0" / "toy.py").read_text() == TOY  # nothing is left behind
    return {verdict.name.removeprefix("toy.py: "): verdict for verdict in found}


@pytest.mark.parametrize(
    ("name", "by", "trouble"),
    [
        ("caught", "tests/test_toy.py::test_two", ""),
        ("survives", "", ""),
        ("stale", "", "stale, its old text is there 0 times; wanted: once"),
        ("hangs", "a hang", ""),
        ("no syntax", "tests/test_toy.py", ""),
        ("unknown", "", "tests/test_broken.py::test_broken fails where nothing is planted"),
    ],
)
def test_the_tool_says_what_became_of_a_fault(verdicts, name, by, trouble):
    assert (verdicts[name].by, verdicts[name].trouble) == (by, trouble)


def make_verdicts(kind, caught, missed):
    return [plant.Verdict(kind, "a", "test", 1)] * caught + [plant.Verdict(kind, "b", "", 1)] * missed


@pytest.mark.parametrize(
    ("verdicts", "enough"),
    [
        (make_verdicts("source", 19, 1), True),
        (make_verdicts("source", 18, 2), False),
        (make_verdicts("source", 19, 1) + make_verdicts("notebook", 99, 1), False),
        (make_verdicts("table", 99, 1), False),
        ([*make_verdicts("source", 99, 0), plant.Verdict("source", "c", "", 1, "stale")], False),
    ],
)
def test_one_in_twenty_sources_may_be_missed_and_nothing_else(verdicts, enough):
    assert plant.summarise(verdicts)[1] is enough
