"""The environment of somebody who reads and runs: what the chapters need, out of the lock, pins and hashes as there.

    python book/tools/reader.py            write .binder/requirements.txt (`make lock` does)
    python book/tools/reader.py --colab    print what of it Google Colab must be given: not what its own kernel runs on

Nothing but the standard library: Colab calls this before anything is installed.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READER = ROOT / ".binder" / "requirements.txt"
CHAPTERS = "what the chapters run (reader)"
HEAD = "# The reader's part of requirements.txt, taken out by `make lock` (book/tools/reader.py). Do not edit it.\n"


def read_roots(text, section="(reader)"):
    """The packages (set) that `requirements.in`, a text, asks for in sections whose heading has `section` in it."""
    parts = [part for part in text.split("\n# --- ")[1:] if section in part.partition("\n")[0]]
    if not parts:
        raise ValueError(f"requirements.in has no section {section!r}; wanted: a heading '# --- … {section}'")
    return {name for part in parts for name in re.findall(r"^[A-Za-z0-9_.-]+", part.partition("\n")[2], re.MULTILINE)}


def read_lock(text):
    """The packages of a lock (its text): dict of name to (its lines, the set of packages that ask for it)."""
    found = {}
    for block in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"[A-Za-z0-9_.-]+", block)[0]
        asked = re.findall(r"^ +# +(?:via )?([A-Za-z0-9_.-]+)", block.replace("# via\n", ""), flags=re.MULTILINE)
        found[name] = block, set(asked)
    return found


def close(lock, roots):
    """`roots` and all that they ask for, and what that asks for, in what `read_lock` found: a set of names."""
    if missing := roots - lock.keys():
        raise ValueError(f"not in requirements.txt: {', '.join(sorted(missing))}; `make lock` compiles it anew")
    names = set(roots)
    while more := {name for name, (_, asked) in lock.items() if name not in names and asked & names}:
        names |= more
    return names


def take(lock, names):
    """The lines of some packages of a lock, as they stand there (str)."""
    return "".join(block for name, (block, _) in lock.items() if name in names)


def main(arguments):
    wanted = (ROOT / "requirements.in").read_text(encoding="utf-8")
    lock = read_lock((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    if arguments == ["--colab"]:
        # what a kernel runs on is Colab's own, and is left alone
        names = close(lock, read_roots(wanted, CHAPTERS)) - close(lock, {"ipykernel", "ipywidgets"})
        print(take(lock, names), end="")
    elif not arguments:
        READER.write_text(HEAD + take(lock, close(lock, read_roots(wanted))), encoding="utf-8")
    else:
        sys.exit("usage: python book/tools/reader.py [--colab]")


if __name__ == "__main__":
    main(sys.argv[1:])
