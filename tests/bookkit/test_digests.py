"""What a study or a chapter depends on: all of it, and no prose."""

import pytest
from bookkit.digests import LOCKED, digest_dependencies, read_versions

SOURCES = {
    "bookkit/__init__.py": "from bookkit import settings",
    "bookkit/settings.py": "THREADS = 1",
    "bookkit/data.py": "N = 1",
    "bookkit/plots.py": "COLOUR = 1",
    "studies/__init__.py": "from . import chosen",
    "studies/chosen.py": "N = 1",
    "studies/base.py": "from bookkit import data\n\n\ndef read():\n    return 1",
    "studies/shape.py": "def compute():\n    from .base import read\n    return read()",
    "data/table.json": '{"rows": [{"x": 1, "commit": "a"}], "checked": {"commit": "b"}}',
}


@pytest.fixture
def book(tmp_path):
    """A book of a few lines, below a lock."""
    root = tmp_path / "book"
    for name, text in SOURCES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "requirements.txt").write_text("numpy==1.0 \\\n    --hash=x\nsphinx==1.0 \\\n    --hash=y\n")
    return root


def find_names(source, book, **options):
    return {str(path.relative_to(book.parent)) for path in digest_dependencies(source, book, **options)[1]}


def moves(book, name, text, source=None, **options):
    """Whether the digest of a study (default: shape) moves when a file is written anew."""
    source = source or book / "studies" / "shape.py"
    before, _ = digest_dependencies(source, book, **options)
    (book / name).write_text(text)
    return digest_dependencies(source, book, **options)[0] != before


def test_imports_are_followed_relative_ones_those_in_functions_and_packages_too(book):
    expected = {"bookkit/__init__.py", "bookkit/settings.py", "bookkit/data.py"}
    expected |= {f"studies/{name}.py" for name in ("__init__", "base", "chosen", "shape")}
    assert find_names(book / "studies/shape.py", book) == {f"book/{name}" for name in expected} | {"requirements.txt"}


@pytest.mark.parametrize("name", ["studies/shape.py", "studies/base.py", "bookkit/data.py", "bookkit/settings.py"])
def test_a_changed_number_in_any_of_them_counts(book, name):
    assert moves(book, name, SOURCES[name].replace("1", "2") + "\nMORE = 2")


def test_prose_and_what_is_not_imported_or_set_apart_does_not_count(book):
    told = '"""Why."""\nfrom bookkit import data  # how\n\n\ndef read():\n    """What."""\n    return (1)\n'
    assert not moves(book, "studies/base.py", told)
    assert not moves(book, "bookkit/plots.py", "N = 2")
    code = "%matplotlib inline\nfrom bookkit import plots\nread_data('table')"
    assert not {"book/bookkit/plots.py", "book/data/table.json"} & find_names(
        code, book, apart=("bookkit.plots", "table.json")
    )


@pytest.mark.parametrize(
    "code", ["from bookkit.report import read_data\nread_data('table')", "DEPENDS = ('table.json',)"]
)
def test_the_numbers_of_a_table_count_but_not_its_origin(book, code):
    assert "book/data/table.json" in find_names(code, book)
    assert not moves(
        book, "data/table.json", SOURCES["data/table.json"].replace('"a"', '"c"').replace('"b"', '"d"'), code
    )
    assert moves(book, "data/table.json", SOURCES["data/table.json"].replace("1", "2"), code)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("report.read_data(name)", "line 1: read_data of a computed name"),
        ("DEPENDS = ('bookkit.dta',)", r"DEPENDS names bookkit\.dta"),
        ("a b", "this code, line 1: .*; wanted: Python"),
    ],
)
def test_what_cannot_be_followed_is_refused(book, code, why):
    with pytest.raises(ValueError, match=why):
        digest_dependencies(code, book)


@pytest.mark.parametrize("code", ["FIT = 'from bookkit import data'", "NAMES = ('table.json', 'live/nuts.js')"])
def test_a_text_is_no_dependency(book, code):
    assert find_names(code, book) == {"requirements.txt"}


def test_a_stated_module_counts_with_what_it_imports_and_not_how_it_is_stated(book):
    assert {"book/bookkit/data.py", "book/bookkit/settings.py"} < find_names("DEPENDS = ('bookkit.data',)", book)
    stated, imported = (digest_dependencies(code + "\nN = 1", book)[0] for code in ("DEPENDS = ()", ""))
    assert stated == imported


def test_a_locked_version_counts_if_it_moves_numbers(book):
    lock = (book.parent / "requirements.txt").read_text()
    assert not moves(
        book, "../requirements.txt", lock.replace("sphinx==1.0", "sphinx==2.0").replace("hash=x", "hash=z")
    )
    assert moves(book, "../requirements.txt", lock.replace("numpy==1.0", "numpy==2.0"))


def test_the_versions_of_a_lock_are_read_with_their_markers():
    lock = "jax[cpu]==0.1 ; python_version >= '3.12' \\\n    --hash=sha256:ab\n# via numpy==9\nnumpy==2.0\n"
    assert read_versions(lock) == [("jax", "0.1"), ("numpy", "2.0")]


def test_each_package_that_moves_numbers_is_read():
    expected = [(name, "1.0") for name in LOCKED]
    assert read_versions("\n".join(f"{name}=={version}" for name, version in expected)) == expected


def test_a_script_of_the_live_pages_counts(book):
    (book / "_static" / "live").mkdir(parents=True)
    (book / "_static" / "live" / "nuts.js").write_text("1")
    (book / "studies" / "shape.py").write_text('DEPENDS = ("live/nuts.js",)')
    assert "book/_static/live/nuts.js" in find_names(book / "studies" / "shape.py", book)
    assert moves(book, "_static/live/nuts.js", "2")
    assert not moves(book, "_static/live/other.js", "3")


@pytest.mark.parametrize("code", ["from hbnn import fuse", "import hbnn\n\nhbnn.fuse(model)"])
def test_a_name_that_a_package_loads_when_asked_is_followed_to_its_module(book, code):
    for name, text in {
        "__init__.py": "",
        "__init__.pyi": "from hbnn.fusion import fuse as fuse",
        "fusion.py": "",
    }.items():
        (book / "hbnn").mkdir(exist_ok=True)
        (book / "hbnn" / name).write_text(text)
    assert "book/hbnn/fusion.py" in find_names(code, book)
