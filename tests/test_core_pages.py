"""The sizes of a core page, so that it does not grow again: words, tables, figures, code, and where its result stands.

What is asked of a page is said in `style.md`; which pages are core pages, in CORE. The functions take the text of a
page, its notebook, or what a browser measured, and return a list of complaints.
"""

import re

import jupytext
import nbformat
import pytest
from book_teach import CELL, PICTURE, ROWS, UNSEEN, WHOLE_CELL, count_words, read_cell, read_prose
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from test_site import ROOT, address, chromium, site
from tools.browser import open_page

__all__ = ["address", "chromium", "site"]  # fixtures of the site's tests

CORE = [
    "moons", "flat_advi", "minibatch_advi", "unpooled", "hierarchical_nuts", "group_sd", "weight_correlations",
    "informed_priors", "digits", "own_data", "growth_curves",
]  # fmt: skip
WORDS, FIGURES, MAX_TABLES = (1500, 2200), (4, 7), 4
MAX_COLUMNS = 88  # of a line of code
SCREEN, MAX_SCREENS, WIDTH = 900, 14, 1440  # pixels
EXERCISES = re.compile(r"^## Exercises *$", flags=re.MULTILINE)
DISPLAY_MATH = re.compile(r"^\$\$.*?^\$\$.*?$", flags=re.DOTALL | re.MULTILINE)
every_page = pytest.mark.parametrize("name", CORE)


def read_text(name):
    """A page as it was written."""
    return (ROOT / "book" / f"{name}.md").read_text(encoding="utf8")


def read_source(text):
    """The cells of a page as a notebook without outputs."""
    return jupytext.reads(text, fmt="md:myst")


def read_notebook(name):
    """The stored notebook of a page."""
    return nbformat.read(ROOT / "book" / f"{name}.ipynb", as_version=4)


# --- what is asked ------------------------------------------------------------------------------------------


def cut_exercises(text):
    """A page up to its exercises: the main text, and what belongs to it."""
    return EXERCISES.split(text)[0]


def count_main_words(text):
    """Words of prose before the exercises: no code, no folded box, no formula that stands alone, no table."""
    prose = read_prose(cut_exercises(text))
    return count_words(ROWS.sub("", DISPLAY_MATH.sub("", prose)))


def list_main_cells(nb):
    """Cells of a notebook before its exercises."""
    ends = [i for i, cell in enumerate(nb.cells) if cell.cell_type == "markdown" and EXERCISES.search(cell.source)]
    return nb.cells[: ends[0]] if ends else nb.cells


def is_visible(cell, part):
    """Whether the "code" or the "output" of a code cell is neither folded nor removed."""
    return cell.cell_type == "code" and not set(cell.metadata.get("tags", [])) & (UNSEEN[part] | WHOLE_CELL)


def name_cell(cell):
    """A code cell by its first line."""
    return f"`{cell.source.strip().partition(chr(10))[0][:60]}`"


def count_tables(nb, text):
    """Tables that the main text shows: in outputs, and in Markdown."""
    outputs = [output for cell in list_main_cells(nb) if is_visible(cell, "output") for output in cell.outputs]
    stored = sum(output.get("data", {}).get("text/html", "").count("<table") for output in outputs)
    return stored + len(ROWS.findall(read_prose(cut_exercises(text))))


def count_figures(text):
    """Figures that the main text shows: of code cells, and drawn ones."""
    cells = [cell for cell in list_main_cells(read_source(text)) if is_visible(cell, "output")]
    drawn = PICTURE.findall(cut_exercises(text))
    return sum("figure" in cell.metadata.get("mystnb", {}) for cell in cells) + len(drawn)


def find_long_lines(nb):
    """Find lines of code that are wider than a page."""
    lines = [line for cell in nb.cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    return [f"{len(line)} columns: {line.strip()}" for line in lines if len(line) > MAX_COLUMNS]


def find_anonymous(nb):
    """Find folds of code cells that do not say what they hold."""
    folds = {"hide-input", "hide-output", "hide-cell"}
    complaints = []
    for cell in nb.cells:
        if cell.cell_type == "code" and folds & set(cell.metadata.get("tags", [])):
            settings = cell.metadata.get("mystnb", {})
            missing = [key for key in ("code_prompt_show", "code_prompt_hide") if not settings.get(key)]
            complaints += [f"{name_cell(cell)} has no {key}" for key in missing]
    return complaints


def find_neighbours(nb):
    """Find visible code that follows visible code without a sentence between; what is folded is no sentence."""
    complaints, before = [], None
    for cell in nb.cells:
        if cell.cell_type == "markdown" and cell.source.strip():
            before = None
        elif is_visible(cell, "code"):
            if before:
                complaints.append(f"{name_cell(cell)} follows {name_cell(before)}")
            before = cell
    return complaints


def find_unseen_model(nb):
    """Find out whether the main text lacks, in visible code, a model or its sampling."""
    code = "\n".join(cell.source for cell in list_main_cells(nb) if is_visible(cell, "code"))
    wanted = {"pm.Model": r"\bpm\.Model\(", "pm.sample or pm.fit": r"\bpm\.(sample|fit)\b"}
    return [f"no {what} in a visible cell" for what, pattern in wanted.items() if not re.search(pattern, code)]


def find_shown_source(nb):
    """Find code that shows the source of the package in place of a model that is typed."""
    return [name_cell(cell) for cell in nb.cells if cell.cell_type == "code" and "show_source" in cell.source]


def find_late_result(text):
    """Find out whether the cell tagged ``result`` comes after the first third of the words, or is missing."""
    main = cut_exercises(text)
    results = [cell for cell in CELL.finditer(main) if "result" in read_cell(cell)[0].get("tags", [])]
    if not results:
        return ["no cell is tagged `result`"]
    before, words = count_main_words(main[: results[0].start()]), count_main_words(main)
    return [f"the result comes after {before} of {words} words"] if before > words / 3 else []


# pixels from the top of the article: to the cell of the result, and to the exercises
MEASURE = """() => {
    const article = document.querySelector("article.bd-article"), top = (e) => e.getBoundingClientRect().top;
    return [".cell.tag_result", "#exercises"].map((which) => article.querySelector(which)).map(
        (element) => element && top(element) - top(article));
}"""


def find_long_way(result, exercises):
    """Find out whether a page is too long for a reader, or its result too far down, in pixels (None: not there)."""
    complaints = []
    if exercises > MAX_SCREENS * SCREEN:
        complaints.append(f"{exercises / SCREEN:.1f} screens to the exercises, at most {MAX_SCREENS}")
    if result is None or result > exercises / 3:
        share = "is not there" if result is None else f"lies at {100 * result / exercises:.0f} % of them"
        complaints.append(f"the result {share}; wanted: in the first third")
    return complaints


# --- the pages ----------------------------------------------------------------------------------------------


@every_page
def test_the_main_text_has_its_length(name):
    assert WORDS[0] <= count_main_words(read_text(name)) <= WORDS[1]


@every_page
def test_the_main_text_has_few_tables(name):
    assert count_tables(read_notebook(name), read_text(name)) <= MAX_TABLES


@every_page
def test_the_main_text_has_its_figures(name):
    assert FIGURES[0] <= count_figures(read_text(name)) <= FIGURES[1]


@every_page
@pytest.mark.parametrize(
    "find", [find_long_lines, find_anonymous, find_neighbours, find_unseen_model, find_shown_source]
)
def test_the_code_of_a_page_is_in_order(name, find):
    assert find(read_source(read_text(name))) == []


@every_page
def test_the_result_stands_in_the_first_third_of_the_words(name):
    assert find_late_result(read_text(name)) == []


@every_page
def test_a_page_is_read_in_fourteen_screens_and_its_result_seen_in_the_first_third(address, chromium, name):
    with open_page(chromium, f"{address}book/{name}.html", width=WIDTH) as (page, _):
        assert find_long_way(*page.evaluate(MEASURE)) == []


# --- that they would be caught ------------------------------------------------------------------------------

HEAD = "---\njupytext:\n  text_representation:\n    extension: .md\n    format_name: myst\n---\n\n"


def write_cell(source, **metadata):
    """A code cell as a page has it."""
    options = "".join(f":{key}: {value}\n" for key, value in metadata.items())
    return f"```{{code-cell}} ipython3\n{options}{options and chr(10)}{source}\n```\n\n"


FIGURE = write_cell("plot()", tags="[hide-input]", mystnb="{figure: {name: fig-x}}")
FOLDED_FIGURE = write_cell("plot()", tags="[hide-cell]", mystnb="{figure: {name: fig-x}}")
DRAWN = "```{figure} x.svg\n:alt: x\n\nA caption of five words.\n```\n\n"
BOX = ":::{admonition} The integral\n:class: original dropdown\n\nnot counted\n:::\n\n"
ANSWER = ":::{admonition} A. Not counted\n:class: dropdown answer\n\nnot counted\n:::\n\n"
ROW = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Title\n\nthree more words\n", 4),
        ("Before.\n\n" + FIGURE + "After.\n", 2),
        ("Before.\n\n" + DRAWN + "After.\n", 2),
        ("Before.\n\n" + BOX + "After.\n", 2),
        ("Before.\n\n" + ROW + "After.\n", 2),
        ("(sec-x)=\n## One\n\nWhere $a = b$ and\n\n$$\na = b\n$$ (eq-x)\n\nit ends.\n", 1 + 4 + 2),
        (f"::::{{admonition}} Check yourself\n:class: selfcheck\n\nWhy?\n\n{ANSWER}{ANSWER}::::\n", 3),
        ("Before.\n\n## Exercises\n\nnot counted\n\n## What to remember\n\nnot counted\n", 1),
    ],
)
def test_words_of_the_main_text_are_counted(text, words):
    assert count_main_words(HEAD + text) == words


def test_tables_and_figures_before_the_exercises_are_counted_and_folded_ones_are_not():
    page = HEAD + FIGURE + "and\n\n" + FOLDED_FIGURE + DRAWN + ROW + "\n+++\n\n## Exercises\n\n" + FIGURE + ROW
    table = new_output("display_data", data={"text/html": "<table><tr></table>", "text/plain": "x"})
    cells = [
        new_code_cell("a", outputs=[table]),
        new_code_cell("b", outputs=[table], metadata={"tags": ["hide-output"]}),
    ]
    nb = new_notebook(cells=[*cells, new_markdown_cell("## Exercises\n\nOne."), new_code_cell("c", outputs=[table])])
    assert count_figures(page) == 2
    assert count_tables(nb, page) == 2


MODEL = write_cell("with pm.Model() as m:\n    trace = pm.sample()")


@pytest.mark.parametrize(
    ("find", "page", "said"),
    [
        (find_long_lines, write_cell("x = 1" + " " * 83 + "# end"), ["93 columns: x = 1"]),
        (find_long_lines, write_cell("x" * 88), []),
        (find_anonymous, write_cell("x", tags="[hide-input]"), ["no code_prompt_show", "no code_prompt_hide"]),
        (find_anonymous, write_cell("x", tags="[hide-input]", mystnb="{code_prompt_show: a, code_prompt_hide: b}"), []),
        (find_anonymous, write_cell("x"), []),
        (find_neighbours, write_cell("x") + write_cell("y"), ["`y` follows `x`"]),
        (find_neighbours, write_cell("x") + "+++\n\n" + FIGURE + write_cell("y"), ["`y` follows `x`"]),
        (find_neighbours, write_cell("x") + "because\n\n" + write_cell("y"), []),
        (find_neighbours, write_cell("x") + FIGURE, []),
        (find_unseen_model, "text", ["no pm.Model", "no pm.sample or pm.fit"]),
        (find_unseen_model, MODEL.replace("sample", "fit"), []),
        (find_unseen_model, MODEL.replace("with", ":tags: [hide-input]\n\nwith"), ["no pm.Model", "no pm.sample"]),
        (find_unseen_model, "## Exercises\n\n" + MODEL, ["no pm.Model", "no pm.sample"]),
        (find_shown_source, write_cell("report.show_source(f)"), ["show_source"]),
        (find_shown_source, MODEL, []),
    ],
)
def test_what_is_out_of_order_in_code_is_caught(find, page, said):
    complaints = find(read_source(HEAD + page))
    assert len(complaints) == len(said)
    assert all(part in complaint for part, complaint in zip(said, complaints, strict=True))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [(99, 201, []), (110, 190, ["the result comes after 110 of 300 words"]), (0, 9, [])],
)
def test_a_result_after_a_third_of_the_words_is_caught(before, after, said):
    page = "word " * before + "\n\n" + write_cell("x", tags="[hide-input, result]") + "word " * after
    assert find_late_result(HEAD + page) == said


def test_a_page_without_a_result_is_caught():
    assert find_late_result(HEAD + "words\n\n" + FIGURE) == ["no cell is tagged `result`"]


@pytest.mark.parametrize(
    ("result", "exercises", "said"),
    [
        (3000, 12000, []),
        (5000, 12000, ["the result lies at 42 % of them; wanted: in the first third"]),
        (3000, 13000, ["14.4 screens to the exercises, at most 14"]),
        (None, 12000, ["the result is not there; wanted: in the first third"]),
    ],
)
def test_a_long_way_is_caught(result, exercises, said):
    assert find_long_way(result, exercises) == said


def test_a_browser_measures_the_way_to_the_result_and_to_the_exercises(chromium):
    page_of_three = """<!doctype html><style>* { margin: 0 } div { height: 500px } h2 { height: 20px }</style>
        <header style="height: 70px"></header><article class="bd-article"><div>A</div><h2>Result</h2>
        <div class="cell tag_result tag_hide-input">B</div><section id="exercises"><h2>Exercises</h2></section>"""
    page = chromium.new_page()
    page.set_content(page_of_three)
    assert page.evaluate(MEASURE) == [520, 1020]
    page.close()
