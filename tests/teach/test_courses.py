"""The pages of the courses: plans that add up, verdicts that are the claims', minutes to read and seconds to run."""

import json
import re
from pathlib import Path

import jupytext
import nbformat
import pytest
from book_teach import count_minutes, find_slide, list_costs, weigh_sections, write_seconds
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


def test_a_slide_is_found_by_its_title_in_a_weeks_deck_first_and_refused_where_no_deck_shows_it(tmp_path):
    (tmp_path / "workshop-1.md").write_text("# Workshop\n\n## The limit\n\n## A vote\n")
    (tmp_path / "week-1.md").write_text("# Week\n\n## The limit\n")
    assert [find_slide(title, tmp_path) for title in ("The limit", "A vote")] == ["week-1", "workshop-1"]
    with pytest.raises(ValueError, match="title 'The errors'"):
        find_slide("The errors", tmp_path)


# --- minutes to read, seconds to run

TEXT, CODE = "word " * 200 + "\n", "```{code-cell} ipython3\n" + "x = 1\n" * 10 + "```\n"
FIGURE = "```{code-cell} ipython3\n---\ntags: [hide-input]\nmystnb:\n  figure: {name: fig-x}\n---\nplot()\n```\n"
SUMMARY = "```{code-cell} ipython3\n:tags: [remove-input]\naz.summary(trace)[['mean', 'mcse_mean']]\n```\n"
DRAWN = "```{figure} x.svg\n:alt: not read\n:name: fig-y\n\nnot read\n```\n"
WORDLESS = "| | |\n|---|---|\n\n"


@pytest.mark.parametrize("content", [TEXT, CODE, FIGURE, SUMMARY, DRAWN, WORDLESS])
def test_a_minute_is_200_words_or_ten_lines_or_a_figure_or_a_table_and_is_rounded_up(tmp_path, content):
    more = "---\ntitle: not read\n---\n(sec-y-a)=\n## A\nword\n"
    (tmp_path / "x.md").write_text(f"(sec-x-a)=\n## \n{content}(sec-x-b)=\n## \n{content}{content}")
    (tmp_path / "y.md").write_text(more)
    assert [count_minutes([label], tmp_path) for label in ("sec-x-a", "sec-x-b", "x", "sec-y-a")] == [1, 2, 3, 1]
    with pytest.raises(ValueError, match="no chapter and no section 'sec-moon'; wanted: such as moons"):
        count_minutes(["sec-moon"], tmp_path)


NOT_READ = [
    "```{code-cell} ipython3\n:tags: [hide-cell]\nreport.Table(a, b, c)\n```\n",
    ":::{admonition} Not this\n:class: dropdown prerequisites\nnot this\n:::\n",
    ":::{admonition} Not this\n:class: original dropdown\n\nnot this\n\n- not this\n:::\n",
    ":::{solution-start} ex-x\n:::\n\nnot this\n```{code-cell} ipython3\nnot_this = 1\n```\n\n:::{solution-end}\n:::\n",
]


@pytest.mark.parametrize("fold", NOT_READ)
def test_solutions_and_folded_boxes_are_not_read(fold):
    page = f"read this\n\n{fold}\n:::{{exercise}} And this\n:label: ex-x\nand this, too\n:::\n"
    assert weigh_sections(page) == {"": 7}


def test_the_cells_above_a_section_are_all_before_it(tmp_path):
    row = {"chapter": "x", "sections": {"start": 4.0, "sec-x-one": 1.5, "exercises": 2.0, "sec-x-two": 8.0}}
    (tmp_path / "t.json").write_text(json.dumps({"rows": [row]}))
    costs, above = list_costs(tmp_path / "t.json")
    assert costs == {"sec-x-one": 1.5, "sec-x-two": 8.0, "x": 15.5}
    assert above == {"sec-x-one": 4.0, "sec-x-two": 7.5}
    said = ["under a second", "about 8 seconds", "about 40 seconds", "about 1 minute", "about 2 minutes"]
    assert [write_seconds(seconds) for seconds in (0.2, 7.6, 44, 45, 110)] == said
