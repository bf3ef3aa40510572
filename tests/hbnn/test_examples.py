"""The examples of the reference: each public name has one, it runs, and it shows what its docstring says.

Public are the names on the pages `book/api_*.md`: those that a directive there names, else all of a module that have a
docstring, without those that it imports (unless the directive asks for them) and those that the directive excludes.
"""

import doctest
import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import hbnn
import matplotlib
import matplotlib.pyplot as plt
import pytest

BOOK = Path(__file__).parents[2] / "book"
DIRECTIVE = re.compile(r"automodule:: (\S+)\n((?: +:[\w-]+:.*\n)*)")


def list_public(page):
    """The names that a page of automodule directives shows, as "hbnn.module.name": list of str."""
    public = []
    for module, lines in DIRECTIVE.findall(page):
        options = {option: re.findall(r"\w+", names) for option, names in re.findall(r":([\w-]+):(.*)", lines)}
        things = {name: getattr(importlib.import_module(module), name) for name in dir(importlib.import_module(module))}
        there = {name for name, thing in things.items() if callable(thing) and thing.__doc__ and name[0] != "_"}
        if not options["members"] and "imported-members" not in options:
            there = {name for name in there if getattr(things[name], "__module__", None) == module}
        shown = options["members"] or sorted(there)
        assert set(shown) <= there, f"{module} has no {set(shown) - there}, or they have no docstring"
        public += [f"{module}.{name}" for name in shown if name not in options.get("exclude-members", [])]
    return public


PUBLIC = list_public("".join(page.read_text(encoding="utf8") for page in sorted(BOOK.glob("api_*.md"))))
FIRST = {name.rpartition(".")[0]: name for name in reversed(PUBLIC)}.values()  # of each module; `make test` runs these
CASES = [pytest.param(name, marks=[] if name in FIRST else pytest.mark.slow) for name in PUBLIC]


def read_doc(name):
    module, _, attribute = name.rpartition(".")
    return inspect.getdoc(getattr(importlib.import_module(module), attribute))


def find_before(name, doc):
    """The name whose example must be played before this one: "Goes on from `fit`." or `model.fit`; None for none."""
    said = re.search(r"Goes on from `(?:(\w+)\.)?(\w+)`", doc)
    module = name.rpartition(".")[0]
    return said and f"{f'{module.rpartition(".")[0]}.{said[1]}' if said[1] else module}.{said[2]}"


@cache
def play(name):
    """What is wrong with the example of a name ("" for nothing), and the variables that it leaves (dict)."""
    doc = read_doc(name)
    before = find_before(name, doc)
    return run(name, doc, play(before)[1] if before else {})


def run(name, doc, variables):
    test = doctest.DocTestParser().get_doctest(doc, variables, name, None, 0)
    said = []
    if not any(example.want for example in test.examples):
        said.append(f"{name} has no example that shows something; wanted: lines with >>> in its docstring\n")
    if loose := [example.source for example in test.examples if example.options]:
        said.append(f"{name}: {loose} with options; wanted: output that is the same everywhere\n")
    doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
    return "".join(said), test.globs


@pytest.fixture(autouse=True)
def _leave_no_figures():
    with matplotlib.rc_context():
        yield
    plt.close("all")


@pytest.mark.parametrize("name", CASES)
def test_its_example_shows_what_it_says(name):
    complaint, _ = play(name)
    assert not complaint, complaint


def test_the_names_of_hbnn_are_among_them():
    assert set(hbnn.__all__) <= {name.rpartition(".")[2] for name in PUBLIC if name.startswith("hbnn.")}


# --- that these tests see what is wrong


@pytest.mark.parametrize(
    ("doc", "said"),
    [
        ("What it does.", "no example"),
        (">>> 1 + 1\n3", "Expected"),
        (">>> 1 + 1  # doctest: +SKIP\n3", "options"),
        (">>> 1 + 1\n...", "Expected"),
        (">>> one + 1\n2", ""),
    ],
)
def test_an_example_that_is_wrong_or_missing_is_found(doc, said):
    complaint, _ = run("bookkit.data.grid", doc, {"one": 1})
    assert said in complaint
    assert bool(said) == bool(complaint)
