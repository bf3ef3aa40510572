"""Proves that the net catches what it should, and lets through what it should."""

import base64
import io
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pandas as pd
import pytest
from bookkit.repo import find_chapters
from hypothesis import given
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_output
from PIL import Image
from tools import chapters, checks, outputs

ROOT = Path(__file__).resolve().parents[2]

CELLS = [
    'print("accuracy 0.971 ± 0.012 (n=20)")',
    'print("rows 1000")',
    'print("R-hat ~1.004 (below 1.01: yes)")',
    """from IPython.display import display

claim = {"id": "moons", "claim": "It learns", "value": "0.971 ± 0.012", "criterion": "above 0.9", "holds": True}
display({"application/vnd.bookkit.claims+json": [claim], "text/plain": claim["value"]}, raw=True)""",
    'display("first")\ndisplay("second")',
    """---
mystnb:
  image:
    alt: A line that rises from 1 to 3.
  figure:
    caption: A line.
    name: fig-line
---
import matplotlib.pyplot as plt

plt.plot([1, 2, 3])
plt.show()""",
    'print("the end")',
]
CHAPTER = (
    "---\nkernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n\n# A chapter\n"
    + "".join(f"\n```{{code-cell}} ipython3\n{cell}\n```\n" for cell in CELLS)
)
NUMBER, EXACT, DIAGNOSTIC, CLAIM, TWO, FIGURE, END = range(7)


# --- through nbval -----------------------------------------------------------------------------------------


def print_instead(cell, text):
    cell.outputs[0].text = text + "\n"


def change_claim(cell, **changes):
    cell.outputs[0].data["application/vnd.bookkit.claims+json"][0].update(changes)


def skip_validation(cell):
    cell.metadata["tags"] = ["nbval-skip"]


def paint(cell, draw):
    """Replace the picture of a cell by what `draw` returns for it."""
    data = cell.outputs[0].data
    data["image/png"] = encode(draw(Image.open(io.BytesIO(base64.b64decode(data["image/png"])))))


def encode(image):
    file = io.BytesIO()
    image.save(file, "png")
    return base64.b64encode(file.getvalue()).decode()


def blank(image):
    return Image.new("RGBA", image.size, "white")


# per notebook, what is done to the stored side of which cell, and what nbval must say of it (None: nothing)
HERE = {
    NUMBER: (lambda c: print_instead(c, "accuracy 0.983 ± 0.012 (n=20)"), "0.71 combined errors"),
    EXACT: (lambda c: print_instead(c, "rows 1001"), "stored: rows 1001"),
    DIAGNOSTIC: (lambda c: print_instead(c, "R-hat ~1.005 (below 1.01: yes)"), "stored: R-hat ~1.005"),
    CLAIM: (lambda c: change_claim(c, holds=False), '"holds": false'),
    TWO: (lambda c: c.outputs.pop(), "other outputs"),
    FIGURE: (lambda c: paint(c, lambda image: image.putpixel((100, 100), (255, 0, 0)) or image), "the picture differs"),
    END: (lambda c: c.update(execution_count=None, outputs=[]), "never executed"),
}
ELSEWHERE = HERE | {
    NUMBER: (lambda c: print_instead(c, "accuracy 0.983 ± 0.011 (n=20)"), None),  # one error
    DIAGNOSTIC: (lambda c: print_instead(c, "R-hat ~1.006 (below 1.01: yes)"), None),
    TWO: (lambda c: c.outputs.reverse(), "stored: 'second'"),
    FIGURE: (lambda c: paint(c, lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)), "the picture differs"),
    END: (skip_validation, "`nbval-skip` is not allowed"),
}
TAMPERED = {"untouched": {}, "here": HERE, "elsewhere": ELSEWHERE}


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
        if name == "elsewhere":
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


@pytest.mark.parametrize("name", TAMPERED)
def test_nbval_complains_of_what_was_tampered_with_and_of_nothing_else(verdicts, name):
    said = {cell: complaint for (notebook, cell), complaint in verdicts.items() if notebook == name}
    expected = {cell: words for cell, (_, words) in TAMPERED[name].items() if words}
    assert sorted(said) == list(range(len(CELLS)))
    assert {cell for cell, complaint in said.items() if complaint is not None} == set(expected)
    assert [said[cell] for cell, words in expected.items() if words not in said[cell]] == []


# --- executing ---------------------------------------------------------------------------------------------


def test_a_second_execution_writes_the_same_bytes(chapter):
    before = chapter.read_bytes()
    chapters.execute(chapter.with_suffix(".md"))
    assert chapter.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (("# A chapter", "# Another title"), True),
        (("A line.", "A rising line."), True),
        (("rows 1000", "rows 1001"), False),  # other code, which only a kernel can run
    ],
)
def test_prose_goes_into_the_notebook_without_a_kernel_and_code_does_not(chapter, tmp_path, change, written):
    md, ipynb = tmp_path / "chapter.md", tmp_path / "chapter.ipynb"
    md.write_text(CHAPTER.replace(*change), encoding="utf-8")
    ipynb.write_text(before := chapter.read_text())
    assert chapters.main(["--prose"], book=tmp_path) == 0
    assert (ipynb.read_text() != before) is written
    old, new = (nbformat.read(path, as_version=4) for path in (chapter, ipynb))
    if written:
        assert [cell.outputs for cell in checks.list_code(old)] == [cell.outputs for cell in checks.list_code(new)]
        assert checks.find_stale(new) == []
        assert checks.find_differences(new, jupytext.read(md, fmt="md:myst")) == []


def test_a_failing_cell_leaves_the_notebook_and_is_named(tmp_path, capsys):
    md = tmp_path / "broken.md"
    md.write_text(CHAPTER.replace('print("rows 1000")', "1 / 0"), encoding="utf-8")
    md.with_suffix(".ipynb").write_text("the old one")
    assert chapters.main(["nowhere"], book=tmp_path) == 2
    assert chapters.main(["broken"], book=tmp_path) == 1
    assert md.with_suffix(".ipynb").read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.ipynb", "broken.md"]
    said = capsys.readouterr().err
    assert [word in said for word in ("No chapter nowhere", "code cell 2", "ZeroDivisionError")] == [True] * 3


def test_a_page_without_a_kernel_is_no_chapter(tmp_path):
    (tmp_path / "index.md").write_text("# Index\n")
    (tmp_path / "chapter.md").write_text(CHAPTER)
    (tmp_path / "kernel.md").write_text("---\nkernelspec:\n  name: python3\n---\n\n# A kernel alone\n")
    assert [path.name for path in find_chapters(tmp_path)] == ["chapter.md", "kernel.md"]


def test_printed_chunks_are_joined_within_displays():
    def stream(name, text):
        return new_output("stream", name=name, text=text)

    chunks = [stream("stdout", "a"), stream("stderr", "x"), stream("stdout", "b"), new_output("display_data")]
    joined = chapters.join_streams([*chunks, stream("stdout", "c")])
    assert [output.get("text") for output in joined] == ["ab", "x", None, "c"]
    assert chunks[0].text == "a"


# --- checks of the stored side -----------------------------------------------------------------------------


def put_output(cell, kind, **content):
    cell.outputs = [new_output(kind, **content)]


def tell(cell, source, **metadata):
    """Replace what a cell says, and its metadata."""
    cell.update(source=source, metadata=metadata)


@pytest.mark.parametrize(
    ("number", "tamper", "said"),
    [
        (EXACT, lambda c: None, None),
        (EXACT, lambda c: put_output(c, "stream", name="stderr", text="There were 3 divergences"), None),
        (EXACT, lambda c: put_output(c, "stream", name="stderr", text="FutureWarning: x"), "stderr: FutureWarning"),
        (EXACT, lambda c: c.update(source='print("rows 1000 ")'), "is not what was run"),
        (EXACT, lambda c: c.update(execution_count=1), "has execution count 1, not 2"),
        (EXACT, lambda c: print_instead(c, "0.97 ± 0.01"), "too coarse"),
        (EXACT, lambda c: print_instead(c, "0.97 ± 0.012"), "too coarse"),
        (EXACT, lambda c: print_instead(c, "R-hat ~1.004"), "neither an estimate nor a diagnostic"),
        (EXACT, lambda c: print_instead(c, "R-hat ~1.004 (above 1.01: yes)"), "contradicts itself"),
        (CLAIM, lambda c: change_claim(c, value="0.972 ± 0.012"), "what its HTML or data show"),
        (CLAIM, lambda c: c.outputs[0].data.update({"text/html": "0.972 ± 0.012"}), "what its HTML or data show"),
        (EXACT, lambda c: tell(c, "\n".join(["x = 1"] * 26)), "26 lines, at most 25"),
        (FIGURE, lambda c: paint(c, blank), "the picture is blank"),
        (FIGURE, lambda c: c.metadata.mystnb.image.pop("alt"), "the picture has no alt text"),
        (FIGURE, lambda c: c.outputs.append(c.outputs[0]), "2 pictures under one caption"),
        (EXACT, skip_validation, "`nbval-skip` is not allowed"),
        (EXACT, lambda c: tell(c, "# NBVAL_SKIP\nx = 1"), "`NBVAL_SKIP` is not allowed"),
        (EXACT, lambda c: tell(c, "x = 1", tags=["raises-exception"]), "`raises-exception` is not allowed"),
        (EXACT, lambda c: tell(c, "# NBVAL_IGNORE_OUTPUT\nx = 1"), "do not say"),
        (EXACT, lambda c: tell(c, "x = 1", tags=["nbval-ignore-output"]), "do not say"),
        (EXACT, lambda c: c.metadata.update(tags=["hide-input"]), None),
        (EXACT, lambda c: tell(c, "import time"), "`import time`"),
        (EXACT, lambda c: tell(c, "from random import random"), "`from random`"),
        (EXACT, lambda c: tell(c, "%%timeit\nx = 1"), "`%%timeit`"),
        (EXACT, lambda c: tell(c, "y = t.perf_counter()"), "`perf_counter`"),
    ],
)
def test_what_is_wrong_in_a_stored_chapter_is_caught_and_nothing_else(nb, number, tamper, said):
    tamper(checks.list_code(nb)[number])
    complaints = checks.check_notebook(nb)
    assert any(said in complaint for complaint in complaints) if said else not complaints


def test_an_ignored_output_needs_a_reason():
    told = {"tags": ["nbval-ignore-output"], "ignored_because": "it lists the versions here"}
    cell = new_code_cell("x = 1", metadata=told)
    assert checks.find_evasions(cell) == []


def test_md_and_ipynb_say_the_same(nb):
    assert checks.find_differences(nb, jupytext.reads(CHAPTER, fmt="md:myst")) == []
    for before, after in (("# A chapter", "# Another"), ("rows 1000", "rows 2000"), ("that rises", "that falls")):
        assert checks.find_differences(nb, jupytext.reads(CHAPTER.replace(before, after), fmt="md:myst"))


# a line, and whether it draws without a seed
DRAWS = """
np.random.normal()                                      yes
np.random.default_rng()                                 yes
np.random.default_rng(1)                                no
pm.sample(100)                                          yes
pm.sample(100, random_seed=None)                        yes
pm.sample(100, random_seed=seed)                        no
pm.sample(100, **options)                               no
pm.fit(100, method="advi")                              yes
approx.sample(100)                                      yes
make_moons(100)                                         yes
LogisticRegression()                                    no
stats.permutation_test((x, y), mean)                    yes
stats.norm.rvs(100, random_state=1)                     no
pm.Normal.dist(0, 1).rvs(100)                           yes
"""


def test_an_unseeded_draw_is_caught():
    for line, caught in [line.rsplit(maxsplit=1) for line in DRAWS.strip().splitlines()]:
        assert bool(checks.find_unseeded(new_code_cell(line))) == (caught == "yes"), line


# --- the grammar of numbers --------------------------------------------------------------------------------

VERDICT = (
    "The four chains agree: R-hat at most 1.007 (loadings[7]), at least 678 effective draws (loadings[7], tails); "
    "no divergences in 4,000 draws."
)
SUMMARY = """
             mean    sd eti89_lb eti89_ub ess_bulk ess_tail r_hat mcse_mean mcse_sd
a          -0.356  0.35    -0.92     0.21     5376     3086  1.00    0.0048  0.0052
w[first]    -0.56  0.37     -1.1    0.017     5172     2971  1.00    0.0052  0.0063
"""


def agree(stored, fresh, strict=False):
    return outputs.compare_text(stored, fresh, strict) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "may_move"),
    [
        # exact
        ("rows 1000", "1000", "1001", False),
        ("train 1000", "train", "tra\u200bin", False),
        # estimates
        ("0.971 ± 0.012", "0.971 ± 0.012", "0.983 ± 0.013", True),
        ("97.10 ± 0.25 % of 1000", "97.10 ± 0.25", "97.30 ± 0.24", True),
        ("-0.301 ± 0.022 (n=20)", "-0.301 ± 0.022", "−0.322 ± 0.021", True),
        ("1.23e-04 ± 2.1e-06", "1.23e-04 ± 2.1", "1.25e-04 ± 2.2", True),
        ("|   0.971 ± 0.012 |", "|   0.971", "| 0.983", True),
        ("0.971 ± 0.012", "0.971", "0.851", False),
        ("0.971 ± 0.012", "0.012", "0.120", False),
        ("0.971 ± 0.012 (n=20)", "20", "19", False),
        ("0.971 ± 0.012 nats", "nats", "bits", False),
        ("0.500 ± 0.000", "0.500", "0.501", False),
        ("0.500 ± 0.000", "0.000", "0.001", False),
        ("0.50 ± 0.10", "0.10", "0.10\nmore", False),
        # diagnostics
        ("~1.004 (below 1.01: yes)", "1.004", "1.007", True),
        ("~1.009 (below 1.01: yes)", "1.009", "1.010", True),  # 1.0098, rounded
        ("~nan (below 1.01: no)", "nan", "1.2", True),
        ("~1.004 (below 1.01: yes)", "yes", "no", False),
        ("~1.004 (below 1.01: yes)", "1.01", "1.05", False),
        ("~1.004 (below 1.01: yes)", "1.004", "1.011", False),  # a figure that contradicts its verdict
        ("~1.004 (below 1.01: yes)", "1.004", "nan", False),
        ("~-2.0 (within 2.5: yes)", "2.0", "3.0", False),
        ("There were 12 divergences after tuning.", "12", "9", True),
        ("There were 12 divergences after tuning.", "12", "no", False),
        (VERDICT, "1.007 (loadings[7])", "1.004 (mu)", True),  # another quantity is the worst
        (VERDICT, "678 effective draws (loadings[7], tails)", "1,232 effective draws (mu)", True),
        (VERDICT, "no divergences", "1 divergence", True),
        (VERDICT, "four chains", "two chains", False),
        (VERDICT, "4,000 draws", "400 draws", False),
        # measured
        ("31 s (measured)", "31", "32", False),
        # neither
        ("R-hat 1", "1", "~1.004", False),
        ("0.50 ± 0.10", "0.10", "nan", False),
        # a summary of ArviZ
        (SUMMARY, "-0.356", "-0.361", True),  # the mean, by one error
        (SUMMARY, "  0.35 ", "  0.36 ", True),  # the sd, by two, of which rounding takes one
        (SUMMARY, "5376     3086  1.00", "3912     3086  1.02", True),  # R-hat judges nothing, the effective draws do
        (SUMMARY, "w[first]    -0.56", "w[first]  -0.564", True),  # another digit where the error is below 0.005
        (SUMMARY, "-0.356", "-0.404", False),  # the mean, by ten errors
        (SUMMARY, "    0.21", "    0.34", False),  # a bound, by ten
        (SUMMARY, "3086", " 399", False),
        (SUMMARY, "w[first]", "w[other]", False),
        (SUMMARY, "ess_bulk ess_tail", "ess_tail ess_bulk", False),
        (SUMMARY, "-0.356", "-0.3x6", False),
    ],
)
def test_what_may_move_may_move_elsewhere_and_nothing_else_anywhere(text, old, new, may_move):
    assert old in text
    fresh = text.replace(old, new, 1)
    assert agree(text, text)
    assert agree(text, text, strict=True)
    assert agree(text, fresh) == may_move
    assert not agree(text, fresh, strict=True)


def test_a_summary_is_read_as_numbers_of_the_book():
    assert [e.text for e in outputs.read_text(SUMMARY).estimates[:4]] == [
        "-0.356 ± 0.0048", "0.35 ± 0.0052", "-0.92 ± 0.013", "0.21 ± 0.013",
    ]  # fmt: skip
    assert outputs.find_malformed([new_output("stream", name="stdout", text=SUMMARY)]) == []


# --- other outputs than text -------------------------------------------------------------------------------


def show(**data):
    return [new_output("display_data", data={f"text/{kind}": content for kind, content in data.items()})]


FRAME = pd.DataFrame({"accuracy": ["0.971 ± 0.012"], "rows": [1000]}, index=["a & b"])
TABLE = {"plain": repr(FRAME), "html": FRAME._repr_html_()}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.971", "0.972", "does not show what its HTML or data show: `0.972`"),
        ("1000", "1001", "does not show what its HTML or data show: `1001`"),
        ("<td>1000</td>", "<th>1000</th>", "stored: <td>"),
        ("<td>", '<td style="color:white">', "stored: <td>"),
        ("</table>", "</table><script>alert(1)</script>", "alert(1)"),
    ],
)
def test_html_says_what_the_text_says_by_the_same_tags(old, new, said):
    stored, fresh = show(**TABLE), show(**TABLE | {"html": TABLE["html"].replace(old, new, 1)})
    assert outputs.compare_outputs(stored, stored) == outputs.find_disagreeing(stored) == []
    assert any(said in complaint for complaint in outputs.compare_outputs(stored, fresh))
    moved = show(**{kind: content.replace("0.971", "0.983") for kind, content in TABLE.items()})
    assert outputs.compare_outputs(stored, moved) == []
    assert outputs.compare_outputs(stored, moved, strict=True)


def test_a_claim_is_compared_entry_by_entry():
    claim = {"id": "a", "claim": "It learns", "value": "0.50 ± 0.10", "criterion": "above 0", "holds": True}

    def differ(*claims):
        kinds = ({"application/json": some, "text/plain": some[0]["value"]} for some in ([claim], claims))
        return outputs.compare_outputs(*([new_output("display_data", data=data)] for data in kinds))

    assert not differ(claim | {"value": "0.60 ± 0.10"})
    for change in ({"value": "9.50 ± 0.10"}, {"holds": 1}, {"claim": "It fails"}, {"id": "b"}, {"new": None}):
        assert differ(claim | change), change
    assert differ(claim, claim | {"value": "none"})


def test_kind_and_metadata_of_an_output_are_compared():
    stdout, stderr = ([new_output("stream", name=name, text="1")] for name in ("stdout", "stderr"))
    assert "stored: stream stdout\n    came:   stream stderr" in outputs.compare_outputs(stdout, stderr)[0]
    small, large = ([new_output("display_data", metadata={"image/png": {"width": width}})] for width in (160, 170))
    assert outputs.compare_outputs(small, large) == []
    assert outputs.compare_outputs(small, large, strict=True)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda x: x, False),
        (lambda x: np.roll(x, 1, axis=1), False),
        (lambda x: np.pad(x, ((0, outputs.SIZE_SLACK), (0, 0), (0, 0)), mode="edge"), False),
        (lambda x: np.pad(x, ((0, outputs.SIZE_SLACK + 1), (0, 0), (0, 0)), mode="edge"), True),
        (lambda x: x[:, ::-1], True),
        (lambda x: x[::-1], True),
        (lambda x: x[..., ::-1], True),  # red for blue
    ],
)
def test_a_picture_may_differ_a_little_elsewhere_and_not_show_something_else(change, seen):
    across, down = np.meshgrid(np.linspace(0, 1, 160), np.linspace(0, 1, 100))
    picture = (255 * np.stack([across < 0.3, down < 0.4, 0 * down], axis=-1)).astype(np.uint8)
    stored, fresh = (
        [new_output("display_data", data={"image/png": encode(Image.fromarray(pixels))})]
        for pixels in (picture, np.ascontiguousarray(change(picture)))
    )
    assert bool(outputs.compare_outputs(stored, fresh)) == seen
    assert bool(outputs.compare_outputs(stored, fresh, strict=True)) == (change(picture).tobytes() != picture.tobytes())


@pytest.mark.parametrize(("painted", "blank"), [(np.s_[0, :5], True), (np.s_[50], False)])
def test_a_picture_with_a_speck_is_blank_and_one_with_a_thin_line_is_not(painted, blank):
    picture = np.full((100, 100, 3), 255, np.uint8)
    picture[painted] = 0
    output = new_output("display_data", data={"image/png": encode(Image.fromarray(picture))})
    assert bool(outputs.find_blank([output])) == blank


# --- the errors of both runs -------------------------------------------------------------------------------

VALUES = st.decimals(-10_000, 10_000, places=3, allow_nan=False).map(str)
ERRORS = st.decimals(0, 1000, places=3, allow_nan=False).map(str)
ESTIMATES = st.builds("{} ± {}{}".format, VALUES, ERRORS, st.sampled_from(["", " (n=2)", " (n=20)"]))


@given(ESTIMATES, ESTIMATES)
def test_the_comparison_is_symmetric_and_an_estimate_agrees_with_itself(a, b):
    assert agree(a, b) == agree(b, a)
    assert agree(a, a)


@given(st.text() | st.text(alphabet="0123456789.,±~()-n=: yes\n", max_size=60))
def test_any_well_formed_text_agrees_with_itself(text):
    assert agree(text, text) == (not outputs.read_text(text).malformed)


@given(st.floats(-5, 5), st.floats(0.1, 0.5), st.integers(1, 4))
def test_rounding_alone_raises_no_alarm(value, error, digits):
    assert agree(f"{value:.6f} ± {error:.6f}", f"{value:.{digits}f} ± {error:.{digits}f}")


def print_run(seed, n):
    """Print 4,000 estimates of zero with error 1, which `n` seeds (None: 31) estimate."""
    rng, nu = np.random.default_rng(seed), (n or 31) - 1
    values, errors = rng.normal(size=4000), np.sqrt(rng.chisquare(nu, 4000) / nu)
    suffix = f" (n={n})" if n else ""
    return "\n".join(f"{value:.2f} ± {error:.2f}{suffix}" for value, error in zip(values, errors, strict=True))


@pytest.mark.parametrize("n", [None, 3, 5, 20])
def test_a_number_seldom_raises_a_false_alarm(n):
    before, now = (outputs.read_text(print_run(seed, n)).estimates for seed in (20, 21))
    alarms = sum(outputs.compare_estimates(a, b) != [] for a, b in zip(before, now, strict=True))
    assert alarms <= 18  # 8 expected at most, 1 in 1,000 for the value and for the error; 19: a chance of 0.1 %


@pytest.mark.parametrize(
    ("seeds", "shift", "times", "seen"),  # number of seeds, moved by how many combined errors, error times what: seen?
    [
        ("", 5.5, 1, True),
        ("", 4, 1, False),
        ("", 0, 4, True),
        (" (n=20)", 5.5, 1, True),
        (" (n=5)", 5.5, 1, True),
        (" (n=5)", 0, 10, True),
        (" (n=3)", 9, 1, True),
        (" (n=3)", 6.5, 1, False),
    ],
)
def test_a_planted_shift_is_caught_from_its_limit(seeds, shift, times, seen):
    assert agree(f"54.20 ± 1.00{seeds}", f"{54.2 + shift * 2**0.5:.2f} ± {times:.2f}{seeds}") != seen
