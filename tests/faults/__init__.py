"""Faults that a tired colleague would make, and a tool that plants them one at a time to see which test notices.

`sources.toml` lists faults in code, `notebooks` and `tables` those in what the book stores. ``python -m faults`` plants
them.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("sources.toml")


@dataclass(frozen=True)
class Fault:
    """One change of one source.

    Attributes
    ----------
    file : str, its path in the repository
    what : str, what goes wrong, in one sentence
    old, new : str, the text that is there exactly once, and what stands there instead
    tests : tuple of str, what pytest is told to run
    """

    file: str
    what: str
    old: str
    new: str
    tests: tuple

    @property
    def name(self):
        return f"{self.file.removeprefix('book/')}: {self.what}"

    def plant(self, text):
        """The file's text with the fault in it; ValueError where the fault no longer fits."""
        if text.count(self.old) != 1:
            raise ValueError(f"stale, its old text is there {text.count(self.old)} times; wanted: once")
        return text.replace(self.old, self.new)


def read_sources(path=LIST):
    """The faults in sources: list of Fault."""
    found = []
    for file, faults in tomllib.loads(path.read_text(encoding="utf-8")).items():
        tests = tuple(faults.pop("tests", [f"tests/test_{Path(file).stem}.py"]))
        found += [Fault(file, what, *texts, tests) for what, texts in faults.items()]
    return found
