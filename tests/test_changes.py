"""What `make changes` says of the claims of two versions."""

import json
import subprocess

import pytest
from changes import compare, main, read_claims


def claim(value, holds=True, name="gain", criterion="above 2 errors", sentence="It gains."):
    return {"chapter": "moons", "id": name, "claim": sentence, "criterion": criterion, "holds": holds, "value": value}


def find_kind(before, after):
    """The kind of change between two versions of one claim."""
    (change,) = compare({"moons:gain": before}, {"moons:gain": after})
    return change.kind


def test_an_equal_claim_is_the_same():
    assert find_kind(claim("0.30 ± 0.10 nats"), claim("0.30 ± 0.10 nats")) == "same"


@pytest.mark.parametrize(("value", "kind"), [("0.43 ± 0.10 nats", "within"), ("0.46 ± 0.10 nats", "moved")])
def test_a_number_has_moved_when_the_difference_is_larger_than_both_errors(value, kind):
    assert find_kind(claim("0.30 ± 0.10 nats"), claim(value)) == kind  # both errors together: 0.141


def test_one_of_several_numbers_is_enough():
    assert find_kind(claim("1.0 ± 0.1 and 2.0 ± 0.1 %"), claim("1.0 ± 0.1 and 3.0 ± 0.1 %")) == "moved"


def test_what_rounding_may_have_done_is_no_move():
    assert find_kind(claim("0.10 ± 0.00"), claim("0.11 ± 0.00")) == "within"


def test_a_changed_verdict_comes_before_all_else():
    assert find_kind(claim("0.30 ± 0.10"), claim("0.90 ± 0.10", holds=False)) == "verdict"


@pytest.mark.parametrize(
    "after",
    [
        claim("19 of 20 data sets"),
        claim("20 of 20 data sets", criterion="above 3 errors"),
        claim("20 of 20 data sets", sentence="It gains little."),
    ],
)
def test_other_words_and_numbers_without_an_error_are_listed(after):
    assert find_kind(claim("20 of 20 data sets"), after) == "other"


def test_the_figure_of_a_diagnostic_may_move_as_long_as_its_verdict_stands():
    assert find_kind(claim("~1.004 (below 1.01: yes)"), claim("~1.007 (below 1.01: yes)")) == "within"


def test_new_claims_and_those_that_are_gone_are_named():
    found = compare({"moons:old": claim("1")}, {"moons:new": claim("2")})
    assert [(change.name, change.kind) for change in found] == [("moons:new", "new"), ("moons:old", "gone")]


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit of a claim, which the files have changed since."""
    path = tmp_path / "book" / "claims.json"
    path.parent.mkdir()
    path.write_text(json.dumps([claim("0.30 ± 0.10")]))
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"], ["tag", "v1"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    path.write_text(json.dumps([claim("0.90 ± 0.10")]))
    return tmp_path


def test_a_tag_is_compared_with_the_files_as_they_are(repository, capsys):
    main(["v1"], root=repository)
    assert "Moved by more than their errors: 1\n  moons:gain: 0.30 ± 0.10 -> 0.90 ± 0.10" in capsys.readouterr().out


def test_two_commits_are_compared_with_each_other(repository, capsys):
    main(["v1", "HEAD"], root=repository)
    assert "The same: 1" in capsys.readouterr().out


def test_an_unknown_commit_is_refused_by_name(repository):
    with pytest.raises(SystemExit, match=r"'v2' has no book/claims\.json; wanted: a commit or tag"):
        read_claims("v2", repository)


def test_without_git_it_says_what_is_missing(monkeypatch, repository):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"there is no git here; wanted: git"):
        read_claims("v1", repository)


def test_without_a_commit_it_asks_for_one():
    with pytest.raises(SystemExit, match="make changes SINCE="):
        main([])
