"""Gather the claims that the chapters store in their outputs into book/claims.json."""

import json
import sys

import nbformat
from bookkit.claims import MIME
from bookkit.repo import BOOK, find_chapters, write_atomically


def gather(book=BOOK):
    """All claims, in the order of the chapters' names: a list of dicts, each with its "chapter"."""
    found = []
    for path in find_chapters(book):
        notebook = path.with_suffix(".ipynb")
        if not notebook.exists():
            raise SystemExit(f"{notebook} is missing; `make chapters CHAPTER={path.stem}` writes it")
        for cell in nbformat.read(notebook, as_version=4).cells:
            for output in cell.get("outputs", []):
                found += [{"chapter": path.stem} | claim for claim in output.get("data", {}).get(MIME, [])]
    return found


def main(book=BOOK):
    claims = gather(book)
    write_atomically(book / "claims.json", json.dumps(claims, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(claims)} claims in book/claims.json, {sum(not c['holds'] for c in claims)} of which do not hold")


if __name__ == "__main__":
    sys.exit(main())
