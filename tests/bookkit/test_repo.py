"""Files are written whole or not at all; what cannot be asked of git is ""."""

import os

import pytest
from bookkit import repo


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "x.json"
    repo.write_atomically(path, "old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            repo.write_atomically(path, "new")
    assert path.read_text() == "old"
    repo.write_atomically(path, b"newer")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("newer", 0o644)
    assert list(path.parent.iterdir()) == [path]


def test_a_digest_is_that_of_bytes_text_or_json_whatever_the_order_of_its_keys():
    assert repo.digest("é") == repo.digest("é".encode())
    assert repo.digest([{"x": 1, "y": [0.5, None]}]) == repo.digest([{"y": [0.5, None], "x": 1}])
    assert repo.digest([1, 2]) != repo.digest([2, 1])


def test_a_checkout_has_a_commit_and_none_without_git(monkeypatch):
    assert repo.find_commit().removesuffix("+") == repo.ask_git("rev-parse", "--short", "HEAD") != ""
    assert repo.ask_git("no-such-command") == ""
    monkeypatch.setenv("PATH", "")
    assert repo.find_commit() == ""
