"""This repository: where its files lie, what git says of it; and how files of ours are written and digested."""

import hashlib
import json
import subprocess
from pathlib import Path
from uuid import uuid4

import yaml

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
DATA = BOOK / "data"
REQUIREMENTS = ROOT / "requirements.txt"
ORIGIN = ("checked", "code", "commit", "machine", "python", "versions")  # of a table, or of its rows
SOURCES = ("book", ":(exclude)book/data", ":(exclude)book/*.ipynb", ":(exclude)book/claims.json")


def find_chapters(book=BOOK):
    """The chapters of a book, sorted: Paths of the md files in `book` that name a kernel in their front matter."""
    pages = sorted(Path(book).glob("*.md"))
    return [page for page in pages if {"kernelspec", "jupytext"} & _read_front_matter(page).keys()]


def _read_front_matter(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        return {}
    return yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)])) or {}


def ask_git(*arguments):
    """What git says of this checkout (str), "" where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return "" if done.returncode else done.stdout.strip()


def find_commit():
    """The commit of this checkout, with a + where sources were changed since; "" where there is no git."""
    commit = ask_git("rev-parse", "--short", "HEAD")
    return commit + ("+" if commit and ask_git("status", "--porcelain", "--", *SOURCES) else "")


def write_atomically(path, content):
    """Write all of a file or nothing; two processes that write it at once do no harm.

    Parameters
    ----------
    path : Path
    content : str, written as UTF-8, or bytes
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        part.chmod(0o644)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def digest(content):
    """SHA-256, in hexadecimal, of bytes, of text or of anything that JSON can hold, whatever the order of its keys."""
    if not isinstance(content, bytes | str):
        content = json.dumps(content, sort_keys=True)
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def read_rows(path):
    """The rows of a table that a study wrote, without what they say of their origin; its columns elsewhere; or None."""
    if not path.exists():
        return None
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = table.get("rows")
    if not isinstance(rows, list):
        return {key: value for key, value in table.items() if key not in (*ORIGIN, "digest")}
    return [{key: value for key, value in row.items() if key not in ORIGIN} for row in rows]
