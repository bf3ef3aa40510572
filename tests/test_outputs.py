"""Proves that the net catches what it should, and lets through what it should."""

import base64
import inspect
import io
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import arviz as az
import calibrate_outputs
import checks
import jupytext
import matplotlib.pyplot as plt
import nbformat
import nbval_outputs
import numpy as np
import outputs
import pytest
import summaries
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image, ImageDraw
from scipy import special
from tools import chapters

ROOT = Path(__file__).resolve().parents[1]
LEVEL = outputs.set_level(1000)  # a book with a thousand estimates

CHAPTER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A chapter

```{code-cell} ipython3
print("accuracy 0.971 ± 0.012 (n=20)")
```

```{code-cell} ipython3
print("rows 1000")
```

```{code-cell} ipython3
print("R-hat ~1.004 (below 1.01: yes)")
```

```{code-cell} ipython3
from IPython.display import display

claim = {"id": "moons", "claim": "It learns", "value": "0.971 ± 0.012", "criterion": "above 0.9", "holds": True}
display({"application/vnd.bnn.claims+json": [claim], "text/plain": "1 claim"}, raw=True)
```

```{code-cell} ipython3
print("The loss falls.")
```

```{code-cell} ipython3
display("first")
display("second")
```

```{code-cell} ipython3
---
mystnb:
  image:
    alt: A line that rises from 1 to 3.
  figure:
    caption: A line.
    name: fig-line
---
import matplotlib.pyplot as plt

plt.plot([1, 2, 3])
plt.show()
```

```{code-cell} ipython3
print("the end")
```
"""
NUMBER, EXACT, DIAGNOSTIC, CLAIM, SENTENCE, TWO, FIGURE, END = range(8)


# --- through nbval -----------------------------------------------------------------------------------------


def print_instead(cell, text):
    cell.outputs[0].text = text + "\n"


def change_claim(cell, **changes):
    cell.outputs[0].data["application/vnd.bnn.claims+json"][0].update(changes)


def remove_output(cell):
    del cell.outputs[1]


def forget_execution(cell):
    cell.execution_count, cell.outputs = None, []


def skip_validation(cell):
    cell.metadata["tags"] = ["nbval-skip"]


def paint(cell, draw):
    """Replace the picture of a cell by what `draw` returns for it."""
    data = cell.outputs[0].data
    file = io.BytesIO()
    draw(Image.open(io.BytesIO(base64.b64decode(data["image/png"])))).save(file, "png")
    data["image/png"] = base64.b64encode(file.getvalue()).decode()


def put_red_rectangle(image):
    ImageDraw.Draw(image).rectangle([100, 100, 140, 140], fill="red")
    return image


def blank(image):
    return Image.new("RGBA", image.size, "white")


def halve(image):
    return image.resize((image.width // 2, image.height // 2))


def mirror(image):
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


# per notebook, what is done to the stored side of which cell, and what nbval must say of it (None: nothing)
HERE = {
    NUMBER: (lambda c: print_instead(c, "accuracy 0.983 ± 0.012 (n=20)"), "0.71 combined errors"),
    EXACT: (lambda c: print_instead(c, "rows 1001"), "stored: rows 1001"),
    DIAGNOSTIC: (lambda c: print_instead(c, "R-hat ~1.005 (below 1.01: yes)"), "stored: R-hat ~1.005"),
    CLAIM: (lambda c: change_claim(c, holds=False), "[moons].holds: stored `False`, came `True`"),
    SENTENCE: (lambda c: print_instead(c, "The loss rises."), "stored: The loss rises."),
    TWO: (remove_output, "other outputs"),
    FIGURE: (lambda c: paint(c, put_red_rectangle), "the picture differs in"),
    END: (forget_execution, "never executed"),
}
ELSEWHERE = {
    NUMBER: (lambda c: print_instead(c, "accuracy 0.851 ± 0.012 (n=20)"), "7.1 combined errors"),
    EXACT: (lambda c: print_instead(c, "rows 1001"), "stored: rows 1001"),
    DIAGNOSTIC: (lambda c: print_instead(c, "R-hat ~1.004 (below 1.01: no)"), "(below 1.01: no)"),
    CLAIM: (lambda c: change_claim(c, holds=False), "[moons].holds: stored `False`, came `True`"),
    SENTENCE: (lambda c: print_instead(c, "The loss rises."), "stored: The loss rises."),
    TWO: (remove_output, "other outputs"),
    FIGURE: (lambda c: paint(c, blank), "the stored picture is blank"),
    END: (skip_validation, "`nbval-skip` is not allowed"),
}
ELSEWHERE_TOO = {
    NUMBER: (lambda c: print_instead(c, "accuracy 0.983 ± 0.011 (n=20)"), None),  # one error
    DIAGNOSTIC: (lambda c: print_instead(c, "R-hat ~1.006 (below 1.01: yes)"), None),
    CLAIM: (lambda c: change_claim(c, value="0.960 ± 0.013"), None),
    SENTENCE: (lambda c: print_instead(c, "R-hat ~1.004"), "write `~1.004 (below 1.01: yes)`"),
    TWO: (lambda c: c.outputs.reverse(), "stored: 'second'"),
    FIGURE: (lambda c: paint(c, halve), "another size"),
}
ELSEWHERE_PICTURES = {FIGURE: (lambda c: paint(c, mirror), "the picture came mirrored")}
TAMPERED = {
    "untouched": {},
    "here": HERE,
    "elsewhere": ELSEWHERE,
    "elsewhere_too": ELSEWHERE_TOO,
    "elsewhere_pictures": ELSEWHERE_PICTURES,
}


@pytest.fixture(scope="module")
def chapter(tmp_path_factory):
    """The ipynb of a chapter, executed."""
    md = tmp_path_factory.mktemp("book") / "chapter.md"
    md.write_text(CHAPTER, encoding="utf-8")
    return chapters.execute(md)


@pytest.fixture
def nb(chapter):
    """A fresh copy of the executed chapter, to be tampered with."""
    return nbformat.read(chapter, as_version=4)


@pytest.fixture(scope="module")
def verdicts(chapter, tmp_path_factory):
    """What nbval says of every tampered copy: a dict from (notebook, cell) to its complaint, or None."""
    folder = tmp_path_factory.mktemp("tampered")
    for name, tampering in TAMPERED.items():
        nb = nbformat.read(chapter, as_version=4)
        if name.startswith("elsewhere"):
            nb.metadata.bnn.machine.processor = "another"
        code = checks.list_code(nb)
        for number, (tamper, _) in tampering.items():
            tamper(code[number])
        nbformat.write(nb, folder / f"{name}.ipynb")
    return run_nbval(folder)


def run_nbval(folder):
    """Run nbval over a folder, as the book's own configuration has it."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    command += ["-p", "no:cacheprovider", "--nbval", "--color=no", f"--junitxml={report}", str(folder)]
    # what surrounds this run of pytest is not for that one
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    run = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert report.exists(), run.stdout + run.stderr
    found = {}
    for case in ET.parse(report).iter("testcase"):
        failure = case.find("failure")
        name = Path(case.get("classname")).name.removesuffix(".ipynb")
        found[name, int(case.get("name").removeprefix("Cell "))] = None if failure is None else failure.text
    return found


@pytest.mark.parametrize("cell", range(8))
def test_an_untouched_notebook_passes(verdicts, cell):
    assert verdicts["untouched", cell] is None


@pytest.mark.parametrize(("name", "cell"), [(name, cell) for name, tampering in TAMPERED.items() for cell in tampering])
def test_nbval_says_what_was_tampered_with(verdicts, name, cell):
    expected = TAMPERED[name][cell][1]
    if expected is None:
        assert verdicts[name, cell] is None
    else:
        assert expected in (verdicts[name, cell] or "")


def test_only_the_tampered_cells_fail(verdicts):
    failed = {key for key, complaint in verdicts.items() if complaint is not None}
    assert failed == {(n, c) for n, tampering in TAMPERED.items() for c, (_, say) in tampering.items() if say}


# --- executing ---------------------------------------------------------------------------------------------


def test_a_second_execution_writes_the_same_bytes(chapter):
    before = chapter.read_bytes()
    chapters.execute(chapter.with_suffix(".md"))
    assert chapter.read_bytes() == before


def test_a_failing_cell_leaves_the_notebook_and_is_named(tmp_path, capsys):
    md = tmp_path / "broken.md"
    md.write_text(CHAPTER.replace('print("rows 1000")', "1 / 0"), encoding="utf-8")
    md.with_suffix(".ipynb").write_text("the old one")
    assert chapters.main(["broken"], book=tmp_path) == 1
    assert md.with_suffix(".ipynb").read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.ipynb", "broken.md"]
    said = capsys.readouterr().err
    assert "code cell 2" in said
    assert "ZeroDivisionError" in said


def test_an_unknown_chapter_is_refused(tmp_path, capsys):
    assert chapters.main(["nowhere"], book=tmp_path) == 2
    assert "No chapter nowhere" in capsys.readouterr().err


def test_a_page_without_a_kernel_is_no_chapter(tmp_path):
    (tmp_path / "index.md").write_text("# Index\n")
    (tmp_path / "chapter.md").write_text(CHAPTER)
    (tmp_path / "kernel.md").write_text("---\nkernelspec:\n  name: python3\n---\n\n# A kernel alone\n")
    assert [path.name for path in chapters.find_chapters(tmp_path)] == ["chapter.md", "kernel.md"]


def test_the_order_of_cells_is_code():
    cells = [new_code_cell(source) for source in ("x = 1", "x = 2")]
    first, other = (new_notebook(cells=some) for some in (cells, cells[::-1]))
    assert chapters.digest_code(first) != chapters.digest_code(other)


def test_printed_chunks_are_joined_within_displays():
    def stream(name, text):
        return new_output("stream", name=name, text=text)

    chunks = [stream("stdout", "a"), stream("stderr", "x"), stream("stdout", "b"), new_output("display_data")]
    joined = chapters.join_streams([*chunks, stream("stdout", "c")])
    assert [(o.output_type, o.get("text")) for o in joined] == [
        ("stream", "ab"),
        ("stream", "x"),
        ("display_data", None),
        ("stream", "c"),
    ]
    assert chunks[0].text == "a"


def test_an_output_of_another_kind_is_another_output():
    stdout, stderr = ([new_output("stream", name=name, text="1")] for name in ("stdout", "stderr"))
    assert "stored: stream stdout\n    came:   stream stderr" in outputs.compare_outputs(stdout, stderr, LEVEL)[0]


# --- checks of the stored side -----------------------------------------------------------------------------

CHECKS = [
    checks.find_unexecuted,
    checks.find_stale,
    checks.find_long,
    checks.find_undescribed,
    checks.find_blank,
    checks.find_errors,
    checks.find_stderr,
    checks.find_unseeded,
    checks.find_clocks,
    checks.find_malformed,
    checks.find_coarse,
    checks.find_disagreeing,
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_good_chapter_passes_every_check(nb, check):
    assert check(nb) == []


def test_a_good_pair_is_in_step(nb):
    assert checks.find_differences(nb, jupytext.reads(CHAPTER, fmt="md:myst")) == []


@pytest.mark.parametrize(
    ("before", "after"), [("# A chapter", "# Another"), ("rows 1000", "rows 2000"), ("A line.", "A dot.")]
)
def test_a_pair_out_of_step_is_caught(nb, before, after):
    assert checks.find_differences(nb, jupytext.reads(CHAPTER.replace(before, after), fmt="md:myst"))


def test_code_edited_and_not_run_is_caught(nb):
    checks.list_code(nb)[EXACT].source = 'print("rows 1000 ")'
    assert checks.find_stale(nb)


def test_a_cell_that_was_not_executed_is_caught(nb):
    forget_execution(checks.list_code(nb)[EXACT])
    assert checks.find_unexecuted(nb)


def test_cells_executed_out_of_order_are_caught(nb):
    code = checks.list_code(nb)
    code[0].execution_count, code[1].execution_count = 2, 1
    assert checks.find_unexecuted(nb)


def test_a_cell_of_26_lines_is_caught(nb):
    checks.list_code(nb)[EXACT].source = "x = 1\n" * 25 + "x"
    assert checks.find_long(nb)


@pytest.mark.parametrize(("part", "key"), [("image", "alt"), ("figure", "caption"), ("figure", "name")])
def test_an_undescribed_picture_is_caught(nb, part, key):
    del checks.list_code(nb)[FIGURE].metadata.mystnb[part][key]
    assert checks.find_undescribed(nb)


def test_a_stored_blank_picture_is_caught(nb):
    paint(checks.list_code(nb)[FIGURE], blank)
    assert checks.find_blank(nb)


def test_a_stored_error_is_caught(nb):
    checks.list_code(nb)[EXACT].outputs = [new_output("error", ename="ValueError", evalue="no", traceback=[])]
    assert checks.find_errors(nb)


@pytest.mark.parametrize(("text", "caught"), [("FutureWarning: x", True), ("There were 3 divergences", False)])
def test_stderr_is_for_divergences_only(nb, text, caught):
    checks.list_code(nb)[EXACT].outputs = [new_output("stream", name="stderr", text=text)]
    assert bool(checks.find_stderr(nb)) == caught


def test_a_large_notebook_is_caught(tmp_path):
    path = tmp_path / "large.ipynb"
    path.write_bytes(b"x" * 1_500_001)
    assert checks.find_oversize(path)


@pytest.mark.parametrize(
    ("text", "caught"),
    [("0.97 ± 0.01", True), ("0.970 ± 0.012", False), ("0.97 ± 0.012", True), ("97 ± 0", False), ("9.1 ± 0.7", False)],
)
def test_an_error_with_too_few_digits_is_caught(text, caught):
    assert bool(outputs.find_coarse([new_output("stream", text=text)])) == caught


@pytest.mark.parametrize(
    ("tags", "comment", "caught"),
    [
        (["nbval-ignore-output"], "", True),
        (["nbval-ignore-output"], "# output ignored:", True),
        (["nbval-ignore-output"], "# output ignored: lists the versions installed here", False),
        ([], "# NBVAL_IGNORE_OUTPUT", True),
        ([], "# NBVAL_SKIP", True),
        (["raises-exception"], "", True),
        (["hide-input"], "# a comment", False),
    ],
)
def test_an_output_is_ignored_only_with_a_reason(tags, comment, caught):
    cell = new_code_cell(f"{comment}\nx = 1", metadata={"tags": tags})
    assert bool(checks.find_evasions([cell])) == caught


# a line, and whether it draws without a seed
DRAWS = """
np.random.normal()                                      yes
np.random.seed(1)                                       yes
np.random.default_rng()                                 yes
np.random.default_rng(None)                             yes
np.random.default_rng(1)                                no
np.random.Generator(np.random.PCG64(1))                 no
np.random.RandomState(31)                               no
rng.normal()                                            no
random.random()                                         yes
pm.sample(100)                                          yes
pm.sample(100, random_seed=None)                        yes
pm.sample(100, random_seed=seed)                        no
pm.sample(100, **options)                               no
pm.fit(100, method="advi")                              yes
pm.fit(100, method="advi", random_seed=1)               no
pm.ADVI()                                               yes
pm.sample_prior_predictive()                            yes
pm.sample_posterior_predictive(trace)                   yes
pm.sample_posterior_predictive(trace, random_seed=1)    no
pm.draw(x)                                              yes
pm.Minibatch(x, batch_size=50)                          no
approx.sample(100)                                      yes
approx.sample(draws=100)                                yes
approx.sample(100, random_seed=1)                       no
make_moons(100)                                         yes
make_moons(100, random_state=1)                         no
train_test_split(x)                                     yes
RandomForestClassifier()                                yes
MLPClassifier(random_state=1)                           no
LogisticRegression()                                    no
own.draw_tasks(18)                                      yes
own.draw_tasks(18, 3)                                   no
own.draw_tasks(18, seed=3)                              no
plot_draws(18)                                          yes
plot_draws(18, seed=3)                                  no
own.scale(x)                                            no
stats.permutation_test((x, y), mean)                    yes
stats.permutation_test((x, y), mean, rng=1)             no
stats.norm.rvs(100)                                     yes
stats.norm(0, 1).rvs(100)                               yes
stats.norm.rvs(100, random_state=1)                     no
pm.Normal.dist(0, 1).rvs(100)                           yes
"""
IMPORTS = """import random
import numpy as np
import pymc as pm
from scipy import stats
from sklearn.datasets import make_moons
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from bnn import data as own
from bnn.plots import plot_draws"""


@pytest.mark.parametrize(("line", "caught"), [line.rsplit(maxsplit=1) for line in DRAWS.strip().splitlines()])
def test_an_unseeded_draw_is_caught(line, caught):
    functions = {"bnn.data.draw_tasks": 1, "bnn.plots.plot_draws": None}
    nb = new_notebook(cells=[new_code_cell(IMPORTS), new_code_cell(line)])
    assert bool(checks.find_unseeded(nb, functions)) == (caught == "yes")


def test_functions_that_take_a_seed_are_found(tmp_path):
    (tmp_path / "data.py").write_text("def draw(n, seed): ...\ndef plot(n, *, seed=1): ...\ndef scale(x): ...\n")
    assert checks.list_seeded(tmp_path) == {f"{tmp_path.name}.data.draw": 1, f"{tmp_path.name}.data.plot": None}


@pytest.mark.parametrize(
    "source",
    ["import time", "from time import sleep", "%time x = 1", "%%timeit\nx = 1", "t.perf_counter()", "import psutil"],
)
def test_a_clock_is_caught(source):
    assert checks.find_clocks(new_notebook(cells=[new_code_cell(source)]))


def test_the_word_time_is_no_clock():
    assert checks.find_clocks(new_notebook(cells=[new_code_cell("time = 3\nprint('%time')")])) == []


# --- the grammar of numbers --------------------------------------------------------------------------------


def agree(stored, fresh, strict=False, compare=outputs.compare_text):
    return compare(stored, fresh, LEVEL, strict) == []


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("0.971 ± 0.012", "0.983 ± 0.013"),
        ("97.10 ± 0.25 % of 1000", "97.30 ± 0.24 % of 1000"),
        ("-0.301 ± 0.022 (n=20)", "−0.322 ± 0.021 (n=20)"),
        ("1,012 ± 15 steps", "995 ± 14 steps"),
        ("1.23e-04 ± 2.1e-06", "1.25e-04 ± 2.2e-06"),
        ("|   0.971 ± 0.012 |", "| 0.983 ± 0.013 |"),
        ("~1.004 (below 1.01: yes)", "~1.007 (below 1.01: yes)"),
        ("~812 (above 400: yes)", "~1,022 (above 400: yes)"),
        ("There were 12 divergences after tuning.", "There were 9 divergences after tuning."),
        ("31 s (measured)", "31 s (measured)"),
        ("mean ± 2 sd", "mean ± 2 sd"),
    ],
)
def test_what_may_move_may_move_elsewhere(stored, fresh):
    assert agree(stored, fresh)
    assert agree(stored, fresh, strict=True) == (stored == fresh)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("rows 1000", "rows 1001"),
        ("0.9710", "0.9711"),
        ("0.971 ± 0.012", "0.851 ± 0.012"),
        ("0.971 ± 0.012", "-0.971 ± 0.012"),
        ("0.971 ± 0.012", "0.971 ± 0.120"),
        ("0.971 ± 0.012 (n=20)", "0.971 ± 0.012 (n=19)"),
        ("0.971 ± 0.012 nats", "0.971 ± 0.012 bits"),
        ("0.971 ± 0.012", "0.971"),
        ("0.500 ± 0.000", "0.501 ± 0.000"),
        ("0.500 ± 0.000", "0.500 ± 0.001"),
        ("1.23e-04 ± 2.1e-06", "1.23e-03 ± 2.1e-06"),
        ("~1.004 (below 1.01: yes)", "~1.004 (below 1.01: no)"),
        ("~1.004 (below 1.01: yes)", "~1.004 (below 1.05: yes)"),
        ("31 s (measured)", "32 s (measured)"),
        ("31 ± 2 s (measured)", "32 ± 2 s (measured)"),
        ("0.5 ± 0.1", "0.5 ± 0.1\nmore"),
        ("There were 12 divergences", "There were no divergences"),
    ],
)
def test_what_must_not_move_is_caught_everywhere(stored, fresh):
    assert not agree(stored, fresh)
    assert not agree(stored, fresh, strict=True)


@pytest.mark.parametrize(
    "text",
    [
        "starts below 90 %: ~9 (at least 1 of 5: yes)",
        "R-hat ~1.020 (below 1.01: yes)",
        "~1.004 (below 1.01: no)",
        "~380 (above 400: yes)",
        "~-3.0 (within 2.5: yes)",
        "~15 (all 16: yes)",
        "R-hat ~0.520 (below 1.01: yes)",
        "max bulk ESS ~-12 (above 400: no)",
        "draws cut short, %: ~104 (below 20: no)",
        "share of the mean square ~1.20 (above 0.05: yes)",
        "~1.200 (above 0.95: yes)",
        "~nan (below 1.01: yes)",
        "9 of 5 starts",
    ],
)
def test_a_diagnostic_that_cannot_be_is_caught(text):
    assert outputs.compare_text(text, text, LEVEL)


@pytest.mark.parametrize(
    "text",
    [
        "R-hat ~1.010 (below 1.01: yes)",  # 1.0098, rounded
        "R-hat ~1.010 (below 1.01: no)",
        "R-hat ~0.999 (below 1.01: yes)",
        "~nan (below 1.01: no)",
        "~-0.27 (below -0.1: yes)",
        "divergent draws of 3,400 ~69 (explained: no)",
        "~0.12 (below a half: yes)",
        "5 of 5 starts, 0.7 of 9",
        "~2 (at least 1 of 5: yes)",
        "share of draws, %: ~45 (above 20: yes)",
    ],
)
def test_a_diagnostic_that_can_be_passes(text):
    assert outputs.compare_text(text, text, LEVEL) == []


@pytest.mark.parametrize(
    "text",
    [
        "R-hat ~1.004",
        "R-hat ~1.004 (good)",
        "~nan",
        "0.5 ± nan",
        "nan ± 0.1",
        "94.6 % ± 0.3 %",
        "0.5 ± 0.1 (n=1)",
        "± 0.1",
    ],
)
def test_a_malformed_number_says_how_to_write_it(text):
    complaints = outputs.compare_text(text, text, LEVEL)
    assert len(complaints) == 1
    assert "write" in complaints[0] or "two seeds" in complaints[0]


def test_a_complaint_says_by_how_many_errors_it_moved():
    complaint = outputs.compare_text("0.500 ± 0.010", "0.641 ± 0.010", LEVEL)[0]
    assert "stored `0.500 ± 0.010`, came `0.641 ± 0.010`" in complaint
    assert "10 combined errors" in complaint


@pytest.mark.parametrize(
    ("stored", "fresh", "same"),
    [
        ("<td>0.971 ± 0.012</td>", "<td>0.983 ± 0.013</td>", True),
        ("<td><b>0.971</b> &plusmn; 0.012</td>", "<td><b>0.983</b> &plusmn; 0.013</td>", True),
        ("<td>0.971 ± 0.012</td>", "<td>0.851 ± 0.012</td>", False),
        ("<td>1000</td>", "<td>1001</td>", False),
        ("<td>1000</td>", "<th>1000</th>", False),
        ('<td colspan="2">1</td>', '<td colspan="3">1</td>', False),
    ],
)
def test_html_is_compared_by_its_numbers_and_its_tags(stored, fresh, same):
    assert agree(stored, fresh, compare=outputs.compare_html) == same


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"value": "0.60 ± 0.10"}, True),
        ({"value": "9.50 ± 0.10"}, False),
        ({"holds": False}, False),
        ({"holds": 1}, False),
        ({"claim": "It fails"}, False),
        ({"id": "b"}, False),
        ({"new": None}, False),
    ],
)
def test_a_claim_is_compared_entry_by_entry(changes, same):
    claim = {"id": "a", "claim": "It learns", "value": "0.50 ± 0.10", "criterion": "above 0", "holds": True}
    assert agree([claim], [claim | changes], compare=outputs.compare_json) == same


def test_a_missing_claim_is_caught():
    assert not agree([{"id": "a"}, {"id": "b"}], [{"id": "a"}], compare=outputs.compare_json)


def show_table(text, html):
    return new_output("display_data", data={"text/plain": text, "text/html": f"<td>{html}</td>"})


def test_copies_of_a_number_count_once():
    table = show_table("0.971 ± 0.012  0.5 ± 0.1", "0.971 ± 0.012</td><td>0.5 ± 0.1")
    assert [e.text for e in outputs.list_estimates([table])] == ["0.971 ± 0.012", "0.5 ± 0.1"]


@pytest.mark.parametrize("number", ["0.971 ± 0.012", "~1.004 (below 1.01: yes)"])
def test_copies_that_disagree_are_caught(number):
    good, bad = show_table(number, number), show_table(number, number.replace("1 ", "2 ").replace("4 ", "5 "))
    assert outputs.compare_outputs([good], [good], LEVEL) == []
    assert "disagree" in outputs.compare_outputs([good], [bad], LEVEL)[0]
    assert outputs.find_disagreeing([bad])


def test_metadata_of_an_output_are_compared():
    picture = new_output("display_data", data={"text/plain": "x"}, metadata={"width": 3})
    assert outputs.compare_outputs([picture], [picture | {"metadata": {}}], LEVEL)


@pytest.mark.parametrize(("more", "passes"), [(outputs.SIZE_SLACK, True), (outputs.SIZE_SLACK + 1, False)])
def test_a_picture_may_be_shown_a_few_pixels_larger_elsewhere(more, passes):
    picture, larger = (
        new_output("display_data", data={"text/plain": "x"}, metadata={"image/png": {"height": 90, "width": width}})
        for width in (160, 160 + more)
    )
    assert (outputs.compare_outputs([picture], [larger], LEVEL) == []) == passes
    assert outputs.compare_outputs([picture], [larger], LEVEL, strict=True)


# --- summaries of ArviZ ------------------------------------------------------------------------------------

SUMMARY = """
             mean    sd eti89_lb eti89_ub ess_bulk ess_tail r_hat mcse_mean mcse_sd
a          -0.356  0.35    -0.92     0.21     5376     3086  1.00    0.0048  0.0052
w[first]    -0.56  0.37     -1.1    0.017     5172     2971  1.00    0.0052  0.0063
"""
A, W = SUMMARY.splitlines()[2:]


def test_a_summary_is_read_as_numbers_of_the_book():
    assert summaries.rewrite(SUMMARY).splitlines()[2:] == [
        "a: mean -0.356 ± 0.0048, sd 0.35 ± 0.0052, eti89_lb -0.92 ± 0.013, eti89_ub 0.21 ± 0.013, ess_bulk ~5376 (at "
        "least 400: yes), ess_tail ~3086 (at least 400: yes), r_hat ~1.00 (at most 1.01: yes)",
        "w[first]: mean -0.56 ± 0.0052, sd 0.37 ± 0.0063, eti89_lb -1.1 ± 0.014, eti89_ub 0.017 ± 0.014, ess_bulk "
        "~5172 (at least 400: yes), ess_tail ~2971 (at least 400: yes), r_hat ~1.00 (at most 1.01: yes)",
    ]


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("-0.356", "-0.361"),  # the mean, by one error
        ("  0.35 ", "  0.36 "),  # the sd, by two, of which rounding takes one
        ("-0.92", "-0.94"),  # a bound, by one and a half
        ("5376", "3912"),
        ("0.0048", "0.0060"),
        ("  1.00", "  1.01"),
        ("w[first]    -0.56", "w[first]  -0.564"),  # ArviZ shows another digit where the error is below 0.005
    ],
)
def test_what_may_move_in_a_summary_may_move_elsewhere(stored, fresh):
    other = SUMMARY.replace(stored, fresh, 1)
    assert other != SUMMARY
    assert agree(SUMMARY, other)
    assert not agree(SUMMARY, other, strict=True)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("-0.356", "-0.404"),  # the mean, by ten errors
        ("  0.35 ", "  0.45 "),  # the sd, by twenty
        ("    0.21", "    0.34"),  # a bound, by ten
        ("0.0048", "0.0480"),
        ("3086", " 399"),
        ("5172", " 172"),
        ("1.00", "1.30"),
        ("1.00", "1.02"),
        ("w[first]", "w[other]"),
        ("ess_bulk ess_tail", "ess_tail ess_bulk"),
        (f"{A}\n{W}", f"{W}\n{A}"),
        (f"\n{W}", ""),
        ("      mean    sd", "    median   mad"),
    ],
)
def test_a_fault_in_a_summary_is_caught_everywhere(stored, fresh):
    other = SUMMARY.replace(stored, fresh, 1)
    assert other != SUMMARY
    assert not agree(SUMMARY, other)
    assert not agree(SUMMARY, other, strict=True)


def select(*names):
    """Some columns of SUMMARY, as ArviZ prints them."""
    header, *rows = [line.split() for line in SUMMARY.strip().splitlines()]
    places = [header.index(name) + 1 for name in names]
    return "\n".join([" ".join(names), *(" ".join([row[0], *(row[k] for k in places)]) for row in rows)])


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["mean", "sd", "r_hat"], ["mcse_mean", "mcse_sd"]),
        (["mean", "mcse_mean", "sd"], ["mcse_sd"]),
        (["mcse_mean", "r_hat"], ["mean"]),
        (["eti89_lb", "eti89_ub", "ess_tail"], ["sd", "sd"]),
        (["sd", "mcse_sd", "eti89_lb"], ["ess_tail"]),
        (["mean", "mcse_mean", "r_hat"], []),
        (["sd", "eti89_lb", "ess_tail", "mcse_sd"], []),
        (["ess_bulk", "r_hat"], []),
        (["r_hat"], []),
    ],
)
def test_a_column_of_a_summary_needs_what_it_is_judged_by(names, missing):
    complaints = outputs.read_text(select(*names)).malformed
    assert len(complaints) == len(missing)
    assert all(f"without the column `{name}`" in c for name, c in zip(missing, complaints, strict=True))


def test_some_columns_are_compared_as_all_are():
    shown = select("mean", "mcse_mean", "r_hat")
    assert agree(shown, shown.replace("-0.356", "-0.361"))
    assert not agree(shown, shown.replace("-0.356", "-0.404"))
    assert not agree(shown, shown.replace("1.00", "1.30"))


@pytest.mark.parametrize(
    ("stored", "fresh", "said"),
    [
        ("1.00", "0.52", "cannot be: wanted: between 0.99"),
        ("5376", " -12", "cannot be: wanted: between 0 "),
        (" 0.35", "-0.35", "`sd -0.35` in the row `a` cannot be: wanted: at least 0"),
        ("0.0048", "   nan", "is not a number with its error"),
        ("0.0048", "-0.004", "is not a number with its error"),
        ("3086", " nan", "is not a number with its error"),
        ("-0.356", "-0.3x6", "`-0.3x6` in the row `a` of a summary is no number"),
        ("eti89_lb eti89_ub", "hdi89_lb hdi89_ub", "a summary shows `hdi89_lb`, which cannot be compared"),
        ("eti89_lb eti89_ub", "     ...      ...", "a summary shows `...`, which cannot be compared"),
    ],
)
def test_what_cannot_be_in_a_summary_is_caught_wherever_it_was_written(stored, fresh, said):
    bad = SUMMARY.replace(stored, fresh, 1)
    assert bad != SUMMARY
    assert any(said in complaint for complaint in outputs.compare_text(bad, bad, LEVEL, strict=True))


def test_a_constant_in_a_summary_is_exact():
    # what ArviZ prints of a diagonal of ones
    constant = SUMMARY + "c 1 0 1 1 4000 4000 nan 0 nan\n"
    assert agree(constant, constant)
    assert not agree(constant, constant.replace("c 1 0", "c 2 0"))


@pytest.mark.parametrize("text", ["mean", "mean sd of all", "mean sd", "mean: 3 ess_bulk", "r_hat"])
def test_words_of_a_summary_make_none(text):
    assert outputs.read_text(f"{text}\nlosses fall, as they should").malformed == ()


@pytest.mark.parametrize(
    ("number", "place", "spelt"),
    [
        ("0.3", -3, "0.300"),  # 0.3003 with an error of 0.0034
        ("-0", -3, "0.000"),
        ("12.5", -3, "12.500"),
        ("12345.7", -3, "12345.7"),  # six digits at most
        ("1.24e+04", 1, "1.24E+4"),
        ("-1", None, "-1.0"),
        ("7600", None, "7.6E+3"),
        ("17", None, "17"),
        ("0.005", None, "0.0050"),
        ("1e+07", None, "1.0E+7"),
        ("nan", -3, "nan"),
    ],
)
def test_digits_that_arviz_drops_are_written_again(number, place, spelt):
    assert summaries.spell(number, place).lstrip("-") == spelt.lstrip("-")


def draw_posterior(seed):
    """Draws of four chains of quantities of many sizes: a DataTree."""
    rng = np.random.default_rng(seed)
    draws = {"a": rng.normal(0.3, 0.35, (4, 500)), "s": rng.lognormal(0, 0.3, (4, 500)), "one": np.ones((4, 500))}
    draws["w"] = rng.normal(0, 1, (4, 500, 6)) * np.geomspace(1e-4, 1e4, 6) + [0, 1e-2, -7, 12, 1234, 1e5]
    return az.from_dict({"posterior": draws}, coords={"cls": ["a & b", *"cdefg"]}, dims={"w": ["cls"]})


@pytest.fixture(scope="module")
def summarized():
    """Three summaries as ArviZ has them, of other draws of one posterior: (data frame, output) pairs."""
    with pytest.warns(RuntimeWarning, match="invalid value"):  # of the constant
        frames = [az.summary(draw_posterior(seed)) for seed in range(3)]
    shown = [{"text/plain": repr(frame), "text/html": frame._repr_html_()} for frame in frames]
    return [
        (f, new_output("execute_result", data=data, execution_count=1)) for f, data in zip(frames, shown, strict=True)
    ]


def test_summaries_of_other_draws_agree_and_are_well_formed(summarized):
    (_, stored), *others = summarized
    for _, fresh in others:
        assert outputs.compare_outputs([stored], [fresh], LEVEL) == []
        assert outputs.compare_outputs([stored], [fresh], LEVEL, strict=True)
    for check in (outputs.find_malformed, outputs.find_coarse, outputs.find_disagreeing):
        assert check([stored]) == []


def test_copies_of_a_summary_agree_and_count_once(summarized):
    frame, output = summarized[0]
    assert len(outputs.list_estimates([output])) == 4 * len(frame)
    other = output | {"data": output.data | {"text/html": output.data["text/html"].replace("<td>1.00", "<td>1.30", 1)}}
    assert outputs.find_disagreeing([other]) == [
        "text/plain and text/html disagree about `~1.00 (at most 1.01: yes)`, `~1.30 (at most 1.01: no)`"
    ]


def test_rounding_moved_a_number_of_a_summary_by_no_more_than_its_half(summarized):
    for frame, output in summarized:
        raw = frame[["mean", "sd", "eti89_lb", "eti89_ub"]].to_numpy().ravel()
        found = outputs.list_estimates([output])
        assert all(abs(e.value - x) <= e.value_half * 1.0001 + 1e-15 for e, x in zip(found, raw, strict=True))


def test_a_number_of_a_summary_is_found_in_the_record():
    (stored,), (fresh,) = ([new_output("stream", text=SUMMARY.replace("-0.356", x))] for x in ("-0.356", "-0.358"))
    record = {"numbers": {outputs.name_text(SUMMARY): [(0.001, 0.0015, 2)] * 8}, "pictures": {}}
    assert outputs.list_moves([stored], [fresh], record)[0] == pytest.approx(2.0)
    assert outputs.compare_outputs([stored], [fresh], LEVEL) == []
    narrow = record | {"numbers": {name: [(0.0001, 0.0005, 2)] * 8 for name in record["numbers"]}}
    (complaint,) = outputs.compare_outputs([stored], [fresh], LEVEL, record=narrow)
    assert "stored `-0.356 ± 0.0048`, came `-0.358 ± 0.0048`" in complaint


def test_the_error_of_a_bound_is_that_of_a_quantile():
    draws = np.random.default_rng(1).normal(0, 3, (2000, 800))
    error = float(summaries.find_quantile_error("3", "800", 0.055))
    assert np.quantile(draws, 0.055, axis=1).std() == pytest.approx(error, rel=0.06)
    assert error == pytest.approx(2.06 * 3 / 800**0.5, rel=0.02)


# --- the errors of both runs -------------------------------------------------------------------------------

VALUES = st.decimals(-10_000, 10_000, places=3, allow_nan=False).map(str)
ERRORS = st.decimals(0, 1000, places=3, allow_nan=False).map(str)
ESTIMATES = st.builds("{} ± {}{}".format, VALUES, ERRORS, st.sampled_from(["", " (n=2)", " (n=20)"]))


@given(ESTIMATES, ESTIMATES)
def test_the_comparison_is_symmetric(a, b):
    assert agree(a, b) == agree(b, a)


@given(ESTIMATES)
def test_an_estimate_agrees_with_itself(a):
    assert agree(a, a)


@given(st.text())
def test_any_well_formed_text_agrees_with_itself(text):
    assert agree(text, text) == (not outputs.read_text(text).malformed)


@given(st.text(alphabet="0123456789.,±~()-n=: yes\n", max_size=60))
def test_texts_of_digits_and_marks_can_be_read(text):
    assert agree(text, text) == (not outputs.read_text(text).malformed)


@given(st.integers(0, 10**9), st.integers(0, 8))
def test_an_exact_number_moved_by_one_digit_is_caught(number, place):
    digits = list(f"{number:09d}")
    digits[place] = str((int(digits[place]) + 1) % 10)
    assert not agree(f"rows {number:09d}", f"rows {''.join(digits)}")


@given(st.floats(-5, 5), st.floats(0.05, 0.5), st.integers(1, 4))
def test_rounding_alone_raises_no_alarm(value, error, digits):
    fine, coarse = f"{value:.6f} ± {error:.6f}", f"{value:.{digits}f} ± {max(error, 0.1):.{digits}f}"
    exact = f"{value:.6f} ± {max(error, 0.1):.6f}"
    assert agree(exact, coarse)
    assert agree(fine, fine)


def print_runs(rng, runs, count, seeds):
    """Print `count` estimates of zero for each run: values with error 1, which `seeds` seeds (None: 31) estimate."""
    nu = (seeds or 31) - 1
    values = rng.normal(0.0, 1.0, (runs, count))
    errors = np.sqrt(rng.chisquare(nu, (runs, count)) / nu)
    suffix = f" (n={seeds})" if seeds else ""
    return [
        "\n".join(f"{value:.2f} ± {error:.2f}{suffix}" for value, error in zip(*run, strict=True))
        for run in zip(values, errors, strict=True)
    ]


@pytest.mark.parametrize("seeds", [None, 3, 5, 20])
def test_a_number_that_is_not_in_the_record_seldom_raises_a_false_alarm(seeds):
    stored, fresh = (print_runs(np.random.default_rng(20 + run), 1, 4000, seeds)[0] for run in range(2))
    before, now = (outputs.read_text(text).estimates for text in (stored, fresh))
    level = outputs.set_level(1000)
    alarms = sum(outputs.compare_estimates(a, b, level) != [] for a, b in zip(before, now, strict=True))
    assert alarms <= 18  # 8 expected at most, 1 in 1,000 for the value and for the error; 19: a chance of 0.1 %


@pytest.mark.parametrize("count", [1, 100, 3000])
def test_all_numbers_of_a_book_share_the_risk_of_a_false_alarm(count):
    limit = outputs.limit_move(outputs.set_level(count), nu=10**6)
    assert 2 * special.ndtr(-limit) * count <= outputs.RISK


# what a hostile tester planted (n, moved by how many combined errors, error times): seen without a record?
PLANTED = [
    ("", 8, 1, True),
    ("", 5.5, 1, True),
    (" (n=5)", 19, 1, True),
    (" (n=5)", 0, 10, True),
    (" (n=20)", 5.5, 1, True),
    (" (n=20)", 3, 1, False),
    (" (n=3)", 9, 1, True),
    (" (n=3)", 6.5, 1, False),
]


@pytest.mark.parametrize(("seeds", "shift", "times", "seen"), PLANTED)
def test_a_planted_shift_is_caught(honest, seeds, shift, times, seen):
    stored = outputs.read_text(f"54.20 ± 1.00{seeds}").estimates[0]
    fresh = outputs.read_text(f"{54.2 + shift * 2**0.5:.2f} ± {times:.2f}{seeds}").estimates[0]
    assert bool(outputs.compare_estimates(stored, fresh, LEVEL)) == seen
    assert outputs.compare_estimates(stored, fresh, LEVEL, known=honest["still"])
    assert outputs.compare_estimates(stored, stored, LEVEL, known=honest["still"]) == []


@pytest.mark.parametrize("seeds", ["", " (n=20)"])
@given(error=st.integers(10, 99), up=st.sampled_from([-1, 1]))
def test_a_move_of_ten_errors_is_caught(seeds, error, up):
    assert not agree(f"500 ± {error}{seeds}", f"{500 + up * 10 * error} ± {error}{seeds}")


@pytest.mark.parametrize("seeds", ["", " (n=20)"])
@given(error=st.integers(10, 99), up=st.sampled_from([-1, 1]))
def test_a_move_of_one_error_passes(seeds, error, up):
    assert agree(f"500 ± {error}{seeds}", f"{500 + up * error} ± {error}{seeds}")


VERDICT = (
    "The four chains agree: R-hat at most 1.007 (loadings[7]), at least 678 effective draws (loadings[7], tails); "
    "no divergences in 4,000 draws."
)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("1.007 (loadings[7])", "1.004 (loadings[0])"),  # another quantity is the worst
        ("678 effective draws (loadings[7], tails)", "1,232 effective draws (mu)"),
        ("no divergences", "1 divergence"),
    ],
)
def test_what_may_move_in_a_verdict_may_move_elsewhere(stored, fresh):
    other = VERDICT.replace(stored, fresh)
    assert other != VERDICT
    assert agree(VERDICT, other)
    assert not agree(VERDICT, other, strict=True)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("four chains", "two chains"),
        ("4,000 draws", "400 draws"),
        ("678 effective", "399 effective"),  # and says that they are enough
        ("1.007", "0.87"),
        (VERDICT, "Do not use these draws: R-hat is 1.2 (mu), wanted: below 1.01. What helps: more draws."),
    ],
)
def test_a_verdict_that_cannot_be_or_is_another_is_seen_everywhere(stored, fresh):
    assert not agree(VERDICT, VERDICT.replace(stored, fresh))


# --- the record of honest runs ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest():
    """Six runs of a book of 600 numbers with error 1: 400 stand still, others move by up to one error.

    A dict with true standard deviations, what `measure_numbers` found, and what the record says of a number that
    stands still.
    """
    rng = np.random.default_rng(3)
    true = np.concatenate([np.zeros(400), rng.uniform(0.01, 1, 200)])
    values = np.round(54.2 + true * rng.normal(size=(6, 600)), 2)
    reading = [outputs.read_text("\n".join(f"{v:.2f} ± 1.00 (n=5)" for v in run)) for run in values]
    found = calibrate_outputs.measure_numbers([("a", reading)])
    fitted = calibrate_outputs.fit_numbers(found)
    return {
        "true": true,
        "found": found,
        "limit": fitted["limit"],
        "still": tuple(fitted[key][0] for key in ("scale", "limit", "ratio")),
    }


def test_a_number_that_is_exact_in_all_runs_has_a_limit():
    exact = [outputs.read_text("100.000 ± 0.000 (n=20)")] * 3
    moving = [outputs.read_text(f"{value} ± 1.0 (n=5)") for value in (54.2, 54.9, 53.8)]
    found = calibrate_outputs.measure_numbers([("a", exact), ("b", moving)])
    assert list(found["moves"]) == [False, True]
    assert found["square"][1] == pytest.approx((0.1**2 + 0.6**2 + 0.5**2) / 2)  # moves from 54.3, of an error of 1
    assert np.isfinite(calibrate_outputs.fit_numbers(found)["limit"]).all()


def test_the_limits_are_exceeded_as_often_as_they_say(honest):
    true, found = honest["true"], honest["found"]
    weights = calibrate_outputs.fit_multiples(found["square"] + found["floor"], found["degrees"], found["floor"])
    limits = calibrate_outputs.find_limits(weights, 0.01)
    moves = np.diff(np.random.default_rng(4).normal(size=(2, 500, 600)) * true, axis=0)[0]
    assert 0.005 < np.mean(np.abs(moves[:, 400:]) > limits[400:]) < 0.02


def test_a_book_in_the_record_raises_a_false_alarm_less_than_once_in_1000_runs(honest):
    moving = honest["true"] > 0
    risks = 2 * special.ndtr(-honest["limit"][moving] / (2**0.5 * honest["true"][moving]))
    assert risks.sum() < outputs.SHARES["values"] * outputs.RISK


def test_a_number_that_stood_still_may_not_move_by_half_an_error(honest):
    scale, limit, ratio = honest["still"]
    assert scale == 0
    assert limit < 0.5
    assert ratio < 1.5


def test_two_runs_switch_no_test_of_drift_off():
    record = {
        "three runs": {"runs": 3, "n_moving": 30, "correlation": 0.1},
        "two runs": {"runs": 2, "n_moving": 30, "correlation": 1.0},  # unknown
    }
    calibrate_outputs._add_drift(record)
    assert record["two runs"]["drift"] == record["three runs"]["drift"] == record[""]["drift"]
    assert 2 < record["two runs"]["detectable_drift"] < 4


def test_a_record_of_one_chapter_keeps_the_others():
    old = {"chapters": {"a": {"runs": 20}, "b": {"runs": 20}}, "figures": {"numbers": 9}, "book": {"drift": 3.0}}
    new = {"chapters": {"a": {"runs": 4}}, "figures": {"numbers": 5}, "book": {}, "origin": {"runs": {"a": 4}}}
    calibrate_outputs.keep_others(new, old)
    assert new["origin"]["runs"] == {"a": 4, "b": 20}
    assert (new["figures"], new["book"]) == (old["figures"], old["book"])


def test_the_record_is_one_of_this_book():
    assert set(nbval_outputs.RECORD["chapters"]) <= {path.stem for path in chapters.find_chapters()}
    rows = [row for c in nbval_outputs.RECORD["chapters"].values() for rows in c["numbers"].values() for row in rows]
    assert all(scale >= 0 and limit > 0 and ratio > 1 for scale, limit, ratio in rows)


def test_many_small_moves_at_once_are_a_drift():
    rng = np.random.default_rng(5)
    limit = calibrate_outputs.limit_drift(worth=20, level=1e-5)
    assert outputs.find_drift(rng.normal(size=40), limit) == []
    assert outputs.find_drift(2.5 + rng.normal(size=40), limit)
    assert outputs.find_drift([50.0] + 39 * [0.0], limit) == []  # one number that jumps has a limit of its own


def test_a_drift_is_found_across_the_numbers_of_a_text():
    record = {
        "numbers": {outputs.name_text("a 0.50 ± 0.10, b 0.70 ± 0.10"): [(0.1, 0.5, 2), (0.0, 0.1, 2)]},
        "pictures": {},
    }
    stored, fresh = ([new_output("stream", text=f"a {v:.2f} ± 0.10, b 0.70 ± 0.10")] for v in (0.5, 0.3))
    assert outputs.list_moves(stored, fresh, record) == [pytest.approx(2.0)]


def test_correlated_numbers_are_worth_fewer():
    rng = np.random.default_rng(6)
    own, shared = rng.normal(size=(15, 40)), rng.normal(size=(15, 1))
    assert 1 / calibrate_outputs.measure_correlation(own) > 15
    assert 1 / calibrate_outputs.measure_correlation(shared + 0.1 * own) < 2
    assert calibrate_outputs.measure_correlation(own[:2]) == 1  # of two runs nothing is known


@pytest.mark.parametrize(("shift", "failed"), [(0.0, False), (3.0, True)])
def test_a_book_that_drifts_fails(monkeypatch, shift, failed):
    monkeypatch.setattr(nbval_outputs, "RECORD", {"book": {"drift": 4.0}})
    monkeypatch.setattr(nbval_outputs, "all_moves", [shift + 0.1] * 100)
    session = SimpleNamespace(config=object(), exitstatus=0)
    nbval_outputs.pytest_sessionfinish(session)
    assert bool(session.exitstatus) == failed


@pytest.mark.parametrize(("shift", "failed"), [(0.0, False), (3.0, True)])
def test_a_chapter_that_drifts_fails_in_its_last_cell(monkeypatch, nb, shift, failed):
    monkeypatch.setattr(nbval_outputs, "RECORD", {"chapters": {"chapter": outputs.NOTHING | {"drift": 4.0}}})
    monkeypatch.setattr(nbval_outputs, "run_cell", lambda cell: None)
    parent, said = SimpleNamespace(nb=nb, moves=[shift + 0.1] * 100), []
    for cell in checks.list_code(nb):
        nbval_outputs._run_cell(
            SimpleNamespace(parent=parent, cell=cell, path="chapter.ipynb", raise_cell_error=said.append)
        )
    assert len(said) == failed


def test_every_sampler_gets_other_seeds_when_honest_runs_are_made():
    source = inspect.getsource(calibrate_outputs.shift_seeds)
    seeded = [name.split(".")[1:] for name in checks.list_seeded()]
    samplers = {name for module, name in seeded if module in ("inference", "cache")} | {"draw_new_category"}
    samplers -= {"derive_seed", "fit_advi"}  # what becomes of a seed, not who draws; a fit is the same fit elsewhere
    assert {name for name in samplers if not name.startswith("_") and f'"{name}"' not in source} == set()
    assert 'shift(pm, "sample", "random_seed")' in source


# --- pictures ----------------------------------------------------------------------------------------------


def encode(array):
    file = io.BytesIO()
    Image.fromarray(array.astype(np.uint8)).save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def test_one_pixel_is_caught_here_and_passes_elsewhere():
    picture = np.random.default_rng(0).integers(0, 255, (20, 20, 3))
    other = picture.copy()
    other[3, 4, 0] += 1
    assert outputs.compare_pictures(encode(picture), encode(other), strict=True)
    assert outputs.compare_pictures(encode(picture), encode(other)) == []


@pytest.mark.parametrize(("more", "passes"), [(outputs.SIZE_SLACK, True), (outputs.SIZE_SLACK + 1, False)])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_picture_may_be_a_few_pixels_larger_elsewhere(more, passes, axis):
    """It is cut around its tick labels, so that another number there makes it wider."""
    picture = np.full((60, 80, 3), 255)
    picture[20:30, 20:60] = 0
    other = np.pad(picture, [(0, more) if k == axis else (0, 0) for k in range(3)], constant_values=255)
    for a, b in ((picture, other), (other, picture)):
        assert (outputs.compare_pictures(encode(a), encode(b)) == []) == passes
        assert outputs.compare_pictures(encode(a), encode(b), strict=True)


def draw_figure(seed, what="both"):
    """Points around two curves, in base64; another seed draws other points."""
    rng, x = np.random.default_rng(seed), np.linspace(0, 3, 40)
    figure, ax = plt.subplots(figsize=(5, 3))
    ax.set(xlim=(0, 3), ylim=(-1, 10))
    ax.plot(x, x**2 + 0.1 * rng.normal(), color="C0")
    ax.scatter(x, 9 - 2 * x + 0.2 * rng.normal(size=40), color="C3")
    if what == "both":
        ax.plot(x, 3 * np.sin(2 * x) + 3, color="C2")
    if what == "other":
        ax.clear()
        ax.bar(range(5), [1, 4, 2, 5, 3])
    file = io.BytesIO()
    figure.savefig(file, dpi=100)
    plt.close(figure)
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture(scope="module")
def figure():
    """A figure of honest draws, and how far others may lie off."""
    pictures = [outputs.read_picture(draw_figure(seed)) for seed in range(3)]
    return pictures[0], calibrate_outputs.limit_picture(pictures)


def test_a_figure_of_other_draws_passes(figure):
    stored, limits = figure
    assert outputs.compare_shown(stored, outputs.read_picture(draw_figure(seed=9)), limits) == []


@pytest.mark.parametrize("what", ["without a curve", "other"])
def test_another_figure_of_the_same_size_is_caught(figure, what):
    stored, limits = figure
    assert outputs.compare_shown(stored, outputs.read_picture(draw_figure(9, what)), limits)


def test_planted_faults_of_a_picture_are_caught(figure):
    seen = calibrate_outputs.find_seen(*figure)
    assert seen == dict.fromkeys([*outputs.TURNS, "without its largest series"], True)


def test_a_figure_that_stood_still_may_not_move(figure):
    stored, _ = figure
    assert outputs.compare_shown(stored, outputs.read_picture(draw_figure(seed=9)), outputs.SAME_PICTURE)


def test_a_picture_with_a_speck_is_still_blank():
    picture = np.full((100, 100, 3), 255)
    picture[0, :5] = 0
    assert outputs.is_blank(outputs.read_picture(encode(picture)))


def test_a_picture_with_a_thin_line_is_not_blank():
    picture = np.full((100, 100, 3), 255)
    picture[50] = 0
    assert not outputs.is_blank(outputs.read_picture(encode(picture)))
