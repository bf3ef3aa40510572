"""Files are written whole, whoever else writes them; what cannot be asked of git is ""."""

import os

from bookkit import repo


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "folder" / "x.json"
    repo.write_atomically(path, "old")
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    try:
        repo.write_atomically(path, "new")
    except ZeroDivisionError:
        assert path.read_text() == "old"


def test_two_writers_of_one_file_share_no_other_file(tmp_path, monkeypatch):
    """The first one is about to put its file in place when the second begins, and ends."""
    path, replace, waiting = tmp_path / "x.json", os.replace, []

    def wait_once(source, target):
        if not waiting:
            waiting.append(source)
            repo.write_atomically(path, b"second")
        replace(source, target)

    monkeypatch.setattr(os, "replace", wait_once)
    repo.write_atomically(path, "first")
    assert path.read_text() == "first"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_digest_is_that_of_bytes_text_or_json_whatever_the_order_of_its_keys():
    assert repo.digest("é") == repo.digest("é".encode())
    assert repo.digest([{"x": 1, "y": [0.5, None]}]) == repo.digest([{"y": [0.5, None], "x": 1}])
    assert repo.digest([1, 2]) != repo.digest([2, 1])


def test_a_checkout_has_a_commit_and_none_without_git(monkeypatch):
    assert repo.find_commit().removesuffix("+") == repo.ask_git("rev-parse", "--short", "HEAD") != ""
    assert repo.ask_git("no-such-command") == ""
    monkeypatch.setenv("PATH", "")
    assert repo.find_commit() == ""
