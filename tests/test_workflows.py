"""What runs on GitHub: code that is pinned, with no more rights than it needs, and nothing before its tests."""

import re

import pytest
import yaml
from test_setup import ROOT

WORKFLOWS = {path.stem: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}
JOBS = {(name, job): body for name, text in WORKFLOWS.items() for job, body in yaml.safe_load(text)["jobs"].items()}


def needs(job):
    """The jobs that a job waits for."""
    return [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_of_others_are_pinned_to_a_commit_whose_version_is_said(name):
    actions = re.findall(r"uses: (?!\./)(.+)", WORKFLOWS[name])
    assert [action for action in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)] == []


def test_an_action_has_one_version_everywhere():
    pins = set(re.findall(r"uses: (?!\./)(.+)", "\n".join(WORKFLOWS.values())))
    assert len({pin.partition("@")[0] for pin in pins}) == len(pins)


def test_rights_are_given_job_by_job_and_only_these_may_change_anything():
    assert all(yaml.safe_load(text)["permissions"] == {} for text in WORKFLOWS.values())
    writes = {
        place: {key for key, value in job["permissions"].items() if value == "write"} for place, job in JOBS.items()
    }
    assert {place: rights for place, rights in writes.items() if rights} == {
        ("publish", "deploy"): {"pages", "id-token"},
        ("publish", "branches"): {"contents"},
        ("release", "tag"): {"contents"},
        **{(name, "report"): {"issues"} for name in ("links", "newest", "nightly", "report")},
    }


@pytest.mark.parametrize(("name", "last", "target"), [("publish", "deploy", "test"), ("release", "tag", "test-all")])
def test_nothing_goes_out_before_its_tests_have_passed(name, last, target):
    waits_for, job = [], JOBS[name, last]
    while needs(job):
        assert "if" not in job  # a condition may let a job run although what it waits for has failed
        (before,) = needs(job)
        waits_for.append(before)
        job = JOBS[name, before]
    assert waits_for[-1] == "test"
    assert job["uses"] == "./.github/workflows/test.yml"
    assert job.get("with", {}).get("target", "test") == target


def test_a_release_comes_with_the_book_as_a_pdf_its_site_its_sources_and_posteriors():
    (release,) = (step["run"] for step in JOBS["release", "tag"]["steps"] if "run" in step)
    pack = next(s["run"] for s in JOBS["release", "print"]["steps"] if "sha256sum" in s.get("run", ""))
    (upload,) = (s for s in JOBS["release", "print"]["steps"] if "upload-artifact" in s.get("uses", ""))
    (download,) = (s for s in JOBS["release", "tag"]["steps"] if "download-artifact" in s.get("uses", ""))
    files = re.search(r'gh release create "\$TAG" (.+) --verify-tag', release)[1].split()
    assert files == ["book.pdf", "site.tar.gz", "source.tar.gz", "posterior*", "SHA256SUMS"]
    assert "sha256sum -- * >" in pack
    assert upload["with"]["path"] == "_build/release"
    assert all(f"_build/release/{name}" in pack for name in files[1:3])
    assert "mv _build/html/book.pdf _build/posteriors/* _build/release/" in pack
    assert any(step.get("run") == "make posteriors" for step in JOBS["release", "print"]["steps"])
    assert upload["with"]["name"] == download["with"]["name"]


def test_the_buttons_branches_are_pushed_before_the_site_that_links_to_them():
    assert needs(JOBS["publish", "deploy"]) == ["branches"]
    (push,) = (step for step in JOBS["publish", "branches"]["steps"] if "run" in step)
    assert push["run"].startswith("python3 book/tools/branches.py ")
    assert "${{" not in push["run"]  # the token is in the environment, not in the command's text


def test_tests_run_in_an_empty_home_and_a_clean_environment():
    made = re.findall(r"run: (.*make \"?(?:test|\$TARGET).*)", "\n".join(WORKFLOWS.values()))
    assert len(made) == 2
    assert all(line.startswith('env -i HOME="$(mktemp -d)" PATH="$PATH" ') for line in made)


def test_at_night_everything_is_tested_and_faults_are_planted():
    assert JOBS["nightly", "test"]["strategy"]["matrix"]["target"] == ["test-all", "faults"]


@pytest.mark.parametrize("name", [name for name, text in WORKFLOWS.items() if "schedule:" in text])
def test_what_runs_on_a_schedule_reports_a_failure_and_running_out_of_time(name):
    report = JOBS[name, "report"]
    (job,) = needs(report)
    assert report["if"] == f"always() && needs.{job}.result != 'success'"
    assert report["uses"] == "./.github/workflows/report.yml"


def test_what_the_workflows_make_is_in_the_makefile():
    said = re.findall(
        r"make ([a-z][\w-]*)(?: ([a-z][\w-]*))?", "\n".join(re.findall(r"run: (.*)", "\n".join(WORKFLOWS.values())))
    )
    wanted = {target for pair in said for target in pair if target} | {"test-all", "faults"}
    assert wanted - set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)) == set()
