"""What is drawn by lot: as many as wanted, others at another commit, none never."""

import subprocess

import lots
import pytest

CASES = [f"case {i}" for i in range(20)]


def list_quick(params):
    return [param.values[0] for param in params if not param.marks]


def test_as_many_are_quick_as_wanted_and_all_are_there(monkeypatch):
    monkeypatch.setattr(lots, "find_head", lambda: "a")
    params = lots.draw(CASES, 3, always=["case 7"])
    assert [param.values[0] for param in params] == CASES
    assert len(list_quick(params)) == 4
    assert "case 7" in list_quick(params)
    assert {mark.name for param in params for mark in param.marks} == {"slow"}


def test_every_case_has_its_turn(monkeypatch):
    drawn = []
    for commit in map(str, range(60)):
        monkeypatch.setattr(lots, "find_head", lambda commit=commit: commit)
        drawn.append(list_quick(lots.draw(CASES, 3)))
        assert drawn[-1] == list_quick(lots.draw(CASES, 3))
    assert {case for cases in drawn for case in cases} == set(CASES)
    assert len(set(map(tuple, drawn))) > 50


# --- what is run seldom


def is_quick(test):
    return not getattr(test, "pytestmark", [])


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with a file that the newest commit has changed, and one that it has not."""
    monkeypatch.setattr(lots, "ROOT", tmp_path)
    lots.has_changed.cache_clear()

    def commit(changed):
        (tmp_path / "changed.py").write_text(changed)
        for command in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", changed]):
            subprocess.run(["git", "-C", tmp_path, *command], check=True)

    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "same.py").write_text("same")
    commit("old")
    yield commit
    lots.has_changed.cache_clear()


def count_turns(monkeypatch, file):
    """At how many of sixty commits a test about a file is run."""

    def test():
        pass

    turns = 0
    for commit in map(str, range(60)):
        monkeypatch.setattr(lots, "find_head", lambda commit=commit: commit)
        test.pytestmark = []
        turns += is_quick(lots.seldom(file)(test))
    return turns


def test_where_nothing_has_changed_a_test_has_its_turn_now_and_then(repository, monkeypatch):
    repository("new")
    assert 10 <= count_turns(monkeypatch, "same.py") <= 30


def test_where_its_file_has_changed_a_test_is_run_at_each_commit(repository, monkeypatch):
    repository("new")
    assert count_turns(monkeypatch, "changed.py") == 60


def test_a_change_that_is_not_committed_counts(repository, monkeypatch, tmp_path):
    repository("new")
    (tmp_path / "same.py").write_text("other")
    assert count_turns(monkeypatch, "same.py") == 60


def test_where_there_is_no_commit_before_all_is_run(repository, monkeypatch):
    assert count_turns(monkeypatch, "same.py") == 60


def test_a_file_that_is_not_there_is_refused(repository):
    with pytest.raises(ValueError, match=r"there is no other\.py; wanted: paths in the repository"):
        lots.seldom("other.py")(lambda: None)
