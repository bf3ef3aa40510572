"""What sends a result back to be computed, and what does not."""

import hbnn
import pytest
from bookkit import repo, versions

CELLS = 'from hbnn import score\ntable = read_data("worth")\n'


@pytest.fixture(autouse=True)
def book(tmp_path, monkeypatch):
    (tmp_path / "worth.json").write_text('{"rows": [{"loss": 1.5, "commit": "abc"}]}')
    (tmp_path / "_rivals.py").write_text("from bookkit import data\n")
    monkeypatch.setattr(versions, "DATA", tmp_path)
    monkeypatch.setattr(versions, "BOOK", tmp_path)
    return tmp_path


def test_its_own_code_and_the_rows_it_reads_count_and_not_their_origin(book):
    before = versions.stamp(CELLS, ["_rivals.py"])
    (book / "worth.json").write_text('{"rows": [{"loss": 1.5, "commit": "def", "checked": "today"}], "machine": {}}')
    assert versions.stamp(CELLS, ["_rivals.py"]) == before
    (book / "worth.json").write_text('{"rows": [{"loss": 1.6, "commit": "abc"}]}')
    after = versions.stamp(CELLS, ["_rivals.py"])
    (book / "_rivals.py").write_text("from bookkit import curves\n")
    codes = {stamp["code"] for stamp in (before, after, versions.stamp(CELLS, ["_rivals.py"]), versions.stamp("1 + 1"))}
    assert len(codes) == 4


def test_the_number_counts_where_something_of_ours_is_imported(monkeypatch):
    mine, through, plain = ((CELLS,), ("1 + 1", ["_rivals.py"]), ("import numpy\nhbnn = 2",))
    before = [versions.stamp(*read) for read in (mine, through, plain)]
    monkeypatch.setattr(hbnn, "NUMBERS", hbnn.NUMBERS + 1)
    after = [versions.stamp(*read) for read in (mine, through, plain)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]


def test_of_the_lock_what_computes_counts():
    lock = "numpy==2.4.1 ; python_version > '3'\njax[cpu]==0.9 \\\n    --hash=sha256:0\nsphinx==8.2\n# via numpy==1\n"
    assert versions.read_versions(lock=lock) == [("jax", "0.9"), ("numpy", "2.4.1")]
    assert {"pymc", "nutpie", "numba"} <= {name for name, _ in versions.read_versions()}


def test_the_rows_of_a_table_are_read_without_their_origin(book):
    assert repo.read_rows(book / "worth.json") == [{"loss": 1.5}]
    (book / "columns.json").write_text('{"loss": [1.5], "digest": "abc", "versions": {}}')
    assert (repo.read_rows(book / "columns.json"), repo.read_rows(book / "none.json")) == ({"loss": [1.5]}, None)
