"""The pages of the courses: plans that add up, verdicts that are the claims', minutes to read and seconds to run."""

import json
import re
from pathlib import Path

import jupytext
import nbformat
import pytest
from book_teach import count_minutes, list_costs, weigh_sections, write_seconds
from bookkit.claims import find_verdicts
from nbclient import NotebookClient

BOOK = Path(__file__).parents[2] / "book"
TEACH = BOOK / "teach"
SESSIONS = [TEACH / "workshop.md", *sorted(TEACH.glob("week-?.md"))]


def list_rows(text):
    """The rows of all tables of a page that have cells: a list of lists of str."""
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\|.+\|$", text, re.MULTILINE)]


def test_each_row_of_a_plan_starts_where_the_one_before_ends():
    for path in SESSIONS:
        clocks = [re.match(r"(\d):(\d\d), (\d+) min$", row[0]) for row in list_rows(path.read_text(encoding="utf8"))]
        plan = [(60 * int(clock[1]) + int(clock[2]), int(clock[3])) for clock in clocks if clock]
        assert len(plan) > 5
        ends = [0, *(start + length for start, length in plan)]
        assert [start for (start, _), end in zip(plan, ends, strict=False) if start not in (0, end)] == [], path.stem


SECTION = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
PAGES = {label: path for path in BOOK.glob("*.md") for label in SECTION.findall(path.read_text(encoding="utf8"))}
SNIPPETS = [
    pytest.param(
        snippet[1], path.read_text()[: snippet.start()].rpartition("\n\n")[0].rpartition("\n\n")[2], id=path.stem
    )
    for path in SESSIONS
    for snippet in re.finditer(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
]


def list_cells(told):
    """The code that was run when a snippet is: the cells of the page down to the end of the section that is named."""
    labels = re.findall(r"below \{ref\}`(?:[^<`]*<)?(sec-[\w-]+)", told)
    if not labels:
        return []
    text = PAGES[labels[0]].read_text(encoding="utf8")
    end = re.search(r"^(?:\((?:sec|ex)-|:+\{exercise)", text[text.index(f"({labels[0]})=") + 1 :], re.MULTILINE)
    done = text[: text.index(f"({labels[0]})=") + 1 + end.start()]
    return [cell.source for cell in jupytext.reads(done, fmt="md:myst").cells if cell.cell_type == "code"]


@pytest.mark.slow
@pytest.mark.parametrize(("snippet", "told"), SNIPPETS)
def test_a_snippet_runs_where_the_plan_runs_it(snippet, told):
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(code) for code in [*list_cells(told), snippet]]
    )
    NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(BOOK)}}).execute()


def test_a_checkpoint_says_of_its_claim_what_the_claim_says():
    claims = json.loads((BOOK / "claims.json").read_text(encoding="utf8"))
    verdicts = {f"{c['chapter']}:{c['id']}": v for c, v in zip(claims, find_verdicts(claims), strict=True)}
    for path in SESSIONS:
        rows = [row for row in list_rows(path.read_text(encoding="utf8")) if len(row) == 3]
        checks = [row for row in rows if row[2] in verdicts.values()]
        assert checks, path.stem
        for _, value, verdict in checks:
            assert verdict == verdicts[re.fullmatch(r"\{claim\}`(.+)`", value)[1]], (path.stem, value)


# --- minutes to read, seconds to run

CELL = "```{code-cell} ipython3\n"
WORTH = {  # words that a piece of a page is worth, 200 of them a minute
    "word " * 200 + "\n": 200,
    CELL + "x = 1\n" * 10 + "```\n": 200,
    CELL + "---\ntags: [hide-input]\nmystnb:\n  figure: {name: fig-x}\n---\nplot()\n```\n": 200,
    CELL + ":tags: [remove-input]\naz.summary(trace)[['mean', 'mcse_mean']]\n```\n": 200,
    "```{figure} x.svg\n:alt: not read\n:name: fig-y\n\nnot read\n```\n": 200,
    "| | |\n|---|---|\n\n": 200,
    CELL + ":tags: [hide-cell]\nreport.Table(a, b, c)\n```\n": 0,
    ":::{admonition} Not this\n:class: original dropdown\n\nnot this\n\n- not this\n:::\n": 0,
    f":::{{solution-start}} ex-x\n:::\n\nnot this\n{CELL}not_this = 1\n```\n\n:::{{solution-end}}\n:::\n": 0,
    ":::{exercise} And this\n:label: ex-x\nand this, too\n:::\n": 5,
}


@pytest.mark.parametrize("content", WORTH)
def test_what_is_read_counts_and_solutions_and_folded_boxes_do_not(content):
    assert weigh_sections(f"---\ntitle: not read\n---\n(sec-x)=\n## \n{content}") == {"": 0, "sec-x": WORTH[content]}


def test_minutes_are_rounded_up_and_a_section_that_is_not_there_is_refused(tmp_path):
    (tmp_path / "x.md").write_text(f"(sec-a)=\n## \n{'word ' * 200}\n(sec-b)=\n## B\n{'word ' * 200}\n")
    assert [count_minutes([label], tmp_path) for label in ("sec-a", "sec-b", "x")] == [1, 2, 3]
    with pytest.raises(ValueError, match="no chapter and no section 'sec-moon'; wanted: such as moons"):
        count_minutes(["sec-moon"], tmp_path)


def test_the_cells_above_a_section_are_all_before_it(tmp_path):
    row = {"chapter": "x", "sections": {"start": 4.0, "sec-x-one": 1.5, "exercises": 2.0, "sec-x-two": 8.0}}
    (tmp_path / "t.json").write_text(json.dumps({"rows": [row]}))
    costs, above = list_costs(tmp_path / "t.json")
    assert costs == {"sec-x-one": 1.5, "sec-x-two": 8.0, "x": 15.5}
    assert above == {"sec-x-one": 4.0, "sec-x-two": 7.5}
    said = ["under a second", "about 8 seconds", "about 40 seconds", "about 1 minute", "about 2 minutes"]
    assert [write_seconds(seconds) for seconds in (0.2, 7.6, 44, 45, 110)] == said
