"""What every cell of a column says is said once, in its heading; heading and cell together still say all of it."""

import re
from pathlib import Path

import nbformat
import pytest
from book_tables import SENTENCE, tidy_table
from bookkit import report
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[2]


def show(columns, rows):
    """Headings and rows of a table as a page shows them."""
    soup = BeautifulSoup(tidy_table(report.Table(columns, rows, "A table")._repr_html_()), "html.parser")
    headings, *shown = [[cell.get_text() for cell in row.find_all(["th", "td"])] for row in soup.find_all("tr")]
    return headings, shown


@pytest.mark.parametrize(
    ("cells", "heading", "shown"),
    [
        (["3.2 s (measured)", "16.1 s (measured)"], "x (s, measured)", ["3.2", "16.1"]),
        (["3 s (measured)", "2 min (measured)"], "x (measured)", ["3 s", "2 min"]),
        (["1.0 ± 0.1 (n=20)", "2.0 ± 0.1 (n=20)"], "x (n=20)", ["1.0 ± 0.1", "2.0 ± 0.1"]),
        (["1.0 ± 0.1 (n=20)", "2.0 ± 0.1 (n=19)"], "x", ["1.0 ± 0.1 (n=20)", "2.0 ± 0.1 (n=19)"]),
        (["~1.0 (below 2: yes)", "~1.1 (below 2: yes)"], "x (below 2: yes)", ["~1.0", "~1.1"]),
        (["~1.0 (below 2: yes)", "~2.1 (below 2: no)"], "x (below 2)", ["~1.0 yes", "~2.1 no"]),
        (["~1.0 (below 2: yes)", "~2.1 (below 3: no)"], "x", ["~1.0 (below 2: yes)", "~2.1 (below 3: no)"]),
        (["~1.0 (below 2: yes)", "~1.1"], "x", ["~1.0 (below 2: yes)", "~1.1"]),
        (["with 20 points", "with 30 points"], "x", ["with 20 points", "with 30 points"]),
        (["4 of 5 runs", "0 of 3 runs"], "x (runs)", ["4 of 5", "0 of 3"]),
        (["5 s", "not tried", ""], "x (s)", ["5", "not tried", ""]),
        (["5 s", "6"], "x", ["5 s", "6"]),
    ],
)
def test_what_all_figures_of_a_column_share_stands_in_its_heading(cells, heading, shown):
    headings, rows = show(["row", "x"], [["a", cell] for cell in cells])
    assert headings == ["row", heading]
    assert [row[1] for row in rows] == shown


def list_tables():
    """The tables of ours that the notebooks store, as HTML."""
    notebooks = [nbformat.read(path, as_version=4) for path in sorted((ROOT / "book").glob("*.ipynb"))]
    outputs = [output for notebook in notebooks for cell in notebook.cells for output in cell.get("outputs", [])]
    stored = [output.get("data", {}).get("text/html", "") for output in outputs]
    return [html for html in stored if html.startswith('<table class="bnn">')]


def read_grid(html):
    """The words of each column: of its heading, and of its cells; a minus is a hyphen, and zero has none."""
    soup = BeautifulSoup(re.sub(r"(?<![\w.])-(0\.0+)(?![\d.])", r"\1", html.replace("−", "-")), "html.parser")
    rows = [row.find_all(["th", "td"], recursive=False) for row in soup.find_all("tr")]
    return [[re.findall(r"[^\s(),:]+", cell.get_text(" ")) for cell in column] for column in zip(*rows, strict=True)]


def test_heading_and_cell_together_say_what_the_stored_cell_says():
    """Nothing but a word that stands in the heading leaves a cell, and what stays keeps its order."""
    tables = list_tables()
    assert len(tables) > 50
    for html in tables:
        for stored, shown in zip(read_grid(html), read_grid(tidy_table(html)), strict=True):
            for before, after in zip(stored[1:], shown[1:], strict=True):
                assert set(before) <= {*after, *shown[0]}
                assert after == [word for word in before if word in after]


def test_a_table_of_sentences_has_the_headings_in_its_cells_for_a_phone():
    rows = [["x" * SENTENCE, "1", "holds"], ["y", "2", "does not hold"]]
    soup = BeautifulSoup(tidy_table(report.Table(["Claim", "Value", "Verdict"], rows, "")._repr_html_()), "html.parser")
    assert [cell["data-label"] for cell in soup.find_all("td")] == ["Value", "Verdict"] * 2
    assert [" ".join(cell["class"]) for cell in soup.select(".verdict")] == ["text verdict yes", "text verdict no"]


def test_numbers_stand_below_each_other_at_their_decimals_beside_words_and_with_a_minus():
    rows = [["a", "-0.25 ± 0.10", "words"], ["b", "3.5 ± 0.2", "more"], ["c", "-12", ""], ["d", "-0.000", "2-3"]]
    soup = BeautifulSoup(tidy_table(report.Table(["x", "y", "z"], rows, "")._repr_html_()), "html.parser")
    numbers, words = (list(cells) for cells in zip(*(row.select("td") for row in soup.select("tbody tr")), strict=True))
    assert [cell.get_text() for cell in numbers] == ["−0.25 ± 0.10", "3.5 ± 0.2", "−12", "0.000"]
    padded = [re.search(r"\+ (\d)ch( \+ 0.25em)?", cell.get("style", "+ 0ch")).groups() for cell in numbers]
    assert padded == [("1", None), ("2", None), ("3", " + 0.25em"), ("0", None)]
    assert all("number" in cell["class"] for cell in numbers)
    assert all("text" in cell["class"] for cell in words)
    assert words[-1].get_text() == "2-3"
