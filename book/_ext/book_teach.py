"""Roles for the pages of a course: minutes to read a section, CPU-seconds to run it live."""

import json
import math
import re
from itertools import pairwise
from pathlib import Path

from docutils import nodes

BOOK = Path(__file__).resolve().parents[1]
TABLE = BOOK / "data" / "run_cost.json"
WORDS_PER_MINUTE = 200
LABEL = re.compile(r"^\((sec-[\w-]+)\)=\n#+ .*$|^## .*$", flags=re.MULTILINE)


def split_sections(text):
    """The words of a chapter's prose, by section: {label: int}; what has no label is counted under ""."""
    text = re.sub(r"^---\n.*?^---\n", "", text, count=1, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    marks = [(0, ""), *((mark.start(), mark[1] or "") for mark in LABEL.finditer(text)), (len(text), "")]
    words = {}
    for (start, label), (end, _) in pairwise(marks):
        words[label] = words.get(label, 0) + len(text[start:end].split())
    return words


def count_minutes(labels, book=BOOK):
    """Minutes to read some sections, or whole chapters, given by label or name; rounded up."""
    sections = {}
    for path in sorted(book.glob("*.md")):
        words = split_sections(path.read_text(encoding="utf8"))
        sections |= {label: count for label, count in words.items() if label} | {path.stem: sum(words.values())}
    for label in labels:
        if label not in sections:
            raise ValueError(f"no chapter and no section {label!r}; wanted: such as moons or sec-moons-data")
    return math.ceil(sum(sections[label] for label in labels) / WORDS_PER_MINUTE)


def list_costs(path=TABLE):
    """CPU-seconds of every section: {label: float}, and of all cells above it: {label: float}."""
    costs, above = {}, {}
    for row in json.loads(path.read_text())["rows"]:
        spent = 0.0
        for label, seconds in row["sections"].items():
            if label.startswith("sec-"):
                costs[label], above[label] = seconds, spent
            spent += seconds
    return costs, above


def write_seconds(seconds):
    """CPU-seconds in words."""
    return f"{round(seconds)} CPU-s" if seconds >= 1 else "under 1 CPU-s"


def state(name, rawtext, text, lineno, inliner, options=None, content=None):
    """Roles {reading}, {live} and {above}: minutes to read, CPU-seconds to run, CPU-seconds of all cells above."""
    env, labels = inliner.document.settings.env, text.split()
    try:
        if name == "reading":
            for path in BOOK.glob("*.md"):
                env.note_dependency(str(path))
            return [nodes.Text(f"{count_minutes(labels)} min")], []
        env.note_dependency(str(TABLE))
        costs = list_costs()[name == "above"]
        missing = [label for label in labels if label not in costs]
        if missing:
            raise ValueError(f"no section {missing[0]!r} in {TABLE.name}; `make studies STUDY=run_cost` measures it")
        return [nodes.Text(write_seconds(sum(costs[label] for label in labels)))], []
    except (ValueError, FileNotFoundError) as error:
        return [], [inliner.reporter.error(str(error), line=lineno)]


def setup(app):
    """Add the roles."""
    for name in ("reading", "live", "above"):
        app.add_role(name, state)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
