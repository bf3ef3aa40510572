"""What runs and what meets a contributor on GitHub: pinned code, no more rights than needed, forms that work."""

import ast
import json
import re
from pathlib import Path

import nbformat
import yaml
from bookkit import environment

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path.read_text() for path in (GITHUB / "workflows").glob("*.yml")}
JOBS = {(name, job): body for name, text in WORKFLOWS.items() for job, body in yaml.safe_load(text)["jobs"].items()}
MADE = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def test_actions_of_others_are_pinned_to_one_commit_each():
    texts = [*WORKFLOWS.values(), *(path.read_text() for path in GITHUB.glob("actions/*/action.yml"))]
    actions = re.findall(r"uses: (?!\./)(.+)", "\n".join(texts))
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []
    assert len({action.partition("@")[0] for action in actions}) == len(set(actions))


def test_only_these_jobs_may_change_anything():
    assert all(yaml.safe_load(text)["permissions"] == {} for text in WORKFLOWS.values())
    writes = {
        place: {key for key, value in job["permissions"].items() if value == "write"} for place, job in JOBS.items()
    }
    assert {place: rights for place, rights in writes.items() if rights} == {
        ("publish", "deploy"): {"pages", "id-token"},
        ("publish", "branches"): {"contents"},
        ("publish", "pairs"): {"contents"},
        ("release", "tag"): {"contents"},
        **{(name, "report"): {"issues"} for name in ("weekly", "nightly", "report")},
    }
    may_push = [job["steps"] for job in JOBS.values() if job["permissions"].get("contents") == "write"]
    assert "make " not in str(may_push)  # nor any other way to our packages
    assert ".github/actions/python" not in str(may_push)


def test_nothing_goes_out_before_its_tests_have_passed():
    for name, last, target in (("publish", "deploy", "test"), ("release", "tag", "test-all")):
        before, job = last, JOBS[name, last]
        while job.get("needs"):
            assert "if" not in job  # a condition may let a job run although what it waits for has failed
            (before,) = [job["needs"]] if isinstance(job["needs"], str) else job["needs"]
            job = JOBS[name, before]
        assert (before, job.get("with", {}).get("target", "test")) == ("test", target)
        assert job["if"] == "github.ref == 'refs/heads/main' || startsWith(github.ref, 'refs/tags/')"


def test_what_is_made_is_in_the_makefile():
    texts = [*WORKFLOWS.values(), *(path.read_text() for path in [ROOT / "README.md", *GITHUB.glob("*.md")])]
    asked = {name for text in texts for name in re.findall(r"(?:run: |`|&& )make ([a-z][\w-]*)", text)}
    asked |= {job["with"]["target"] for job in JOBS.values() if "target" in job.get("with", {})}
    assert asked
    assert asked - MADE == set()


def test_files_that_the_texts_for_helpers_name_are_there():
    missing = []
    for path in [ROOT / "README.md", *GITHUB.glob("*.md")]:
        links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", path.read_text()) if "://" not in link]
        missing += [f"{path.name}: {link}" for link in links if not (path.parent / link).exists()]
        named = re.findall(r"`((?:book|tests|\.github|\.binder)/[\w/.]+)`", path.read_text())
        missing += [f"{path.name}: {name}" for name in named if not (ROOT / name).exists()]
    assert missing == []


def test_what_a_reader_is_asked_to_paste_is_what_a_notebook_stores():
    form = yaml.safe_load((GITHUB / "ISSUE_TEMPLATE" / "differs.yml").read_text())
    text = next(part for part in form["body"] if part.get("id") == "settings")["attributes"]["description"]
    *before, last = ast.parse(re.search(r"```python\n(.+?)\n```", text, re.DOTALL)[1]).body
    names = {}
    exec(compile(ast.Module(before, []), "form", "exec"), names)
    said = eval(compile(ast.Expression(last.value), "form", "eval"), names)
    assert said == environment.read_back()
    stored = nbformat.read(ROOT / "book" / "moons.ipynb", as_version=4).metadata["bnn"]["machine"]
    assert said.keys() == stored.keys() - {"requirements"}


def test_zenodo_is_told_what_the_citation_says():
    told = json.loads((ROOT / ".zenodo.json").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert told["title"] == citation["title"]
    assert re.sub(r"<.*?>", "", told["description"]) == citation["abstract"].strip()
    assert [creator["name"] for creator in told["creators"]] == [author["name"] for author in citation["authors"]]
    assert (told["license"], told["keywords"]) == (citation["license"], citation["keywords"])
