"""What meets somebody who wants to help: forms that work, commands that run, and papers that say what the book says."""

import ast
import json
import re

import nbformat
import pytest
import yaml
from bnn import environment
from test_setup import ROOT

GITHUB = ROOT / ".github"
FORMS = {path.stem: yaml.safe_load(path.read_text()) for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml")}
PAPER = ROOT / "book" / "paper" / "paper.md"
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
TEXTS = [GITHUB / "CONTRIBUTING.md", GITHUB / "CODE_OF_CONDUCT.md", GITHUB / "PULL_REQUEST_TEMPLATE.md"]


def test_what_a_reader_is_asked_to_paste_can_be_run_and_is_what_a_notebook_stores():
    text = next(part for part in FORMS["differs"]["body"] if part.get("id") == "settings")["attributes"]["description"]
    code = re.search(r"```python\n(.+?)\n```", text, re.DOTALL)[1]
    *before, last = ast.parse(code).body
    names = {}
    exec(compile(ast.Module(before, []), "form", "exec"), names)
    said = eval(compile(ast.Expression(last.value), "form", "eval"), names)
    assert said == environment.read_back()
    stored = nbformat.read(ROOT / "book" / "moons.ipynb", as_version=4).metadata["bnn"]["machine"]
    assert said.keys() == stored.keys() - {"requirements"}


def test_blank_issues_stay_open_for_the_link_at_each_page_s_foot():
    assert FORMS["config"]["blank_issues_enabled"] is True


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_what_the_texts_name_is_there(path):
    text = path.read_text()
    made = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text)) - made == set()
    linked = [link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert [file for file, _, _ in linked if not (path.parent / file).exists()] == []
    for file, _, anchor in linked:
        titles = re.findall(r"^#+ (.+)$", (path.parent / file).read_text(), flags=re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    assert [file for file in re.findall(r"`(book/[\w/.]+)`", text) if not (ROOT / file).exists()] == []


# --- papers


def read_entries(path):
    """The entries of a BibTeX file by key: dict of str to str."""
    found = re.findall(r"^@\w+\{([^,]+),\n.*?^\}", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    texts = re.findall(r"^@.*?^\}", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return dict(zip(found, texts, strict=True))


def test_the_paper_cites_what_its_bibliography_has_and_the_book_s_has_the_same():
    entries, book = read_entries(PAPER.with_name("paper.bib")), read_entries(ROOT / "book" / "references.bib")
    assert set(re.findall(r"@([\w-]+)", PAPER.read_text())) == entries.keys()
    assert [key for key in entries if entries[key] != book[key]] == []


def test_the_paper_has_what_jose_asks_for():
    _, head, text = PAPER.read_text().split("---\n", 2)
    meta = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= meta.keys()
    assert {author["affiliation"] for author in meta["authors"]} <= {place["index"] for place in meta["affiliations"]}
    sections = re.findall(r"^# (.+)$", text, flags=re.MULTILINE)
    assert sections == [
        "Summary", "Statement of need", "Learning objectives and content", "Instructional design",
        "How it has been used", "References",
    ]  # fmt: skip
    assert 250 <= len(text.split()) <= 1000
    assert (PAPER.parent / meta["bibliography"]).exists()


def test_zenodo_is_told_what_the_citation_says():
    told = json.loads((ROOT / ".zenodo.json").read_text())
    assert told["title"] == CITATION["title"]
    assert re.sub(r"<.*?>", "", told["description"]) == CITATION["abstract"].strip()
    assert [creator["name"] for creator in told["creators"]] == [author["name"] for author in CITATION["authors"]]
    assert told["license"] == CITATION["license"]
    assert told["keywords"] == CITATION["keywords"]
