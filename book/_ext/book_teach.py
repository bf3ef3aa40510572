"""Roles for the pages of a course: time to read or run a section, a chapter by its number."""

import ast
import json
import math
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import yaml
from book_pages import make_role, read_title
from docutils import nodes

BOOK = Path(__file__).resolve().parents[1]
TABLE = BOOK / "data" / "run_cost.json"
WORDS_PER_MINUTE = 200
A_PICTURE = WORDS_PER_MINUTE  # is worth as many words as are read in a minute; so is a table
A_LINE = WORDS_PER_MINUTE // 10  # of code
LABEL = re.compile(r"^\((sec-[\w-]+)\)=\n#+ .*$|^## .*$", flags=re.MULTILINE)
BLOCKS = re.DOTALL | re.MULTILINE
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", flags=BLOCKS)
CELL = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?P<options>---\n.*?^---\n|(?::[^\n]*\n)*)(?P<source>.*?)^```$", flags=BLOCKS
)
SOLUTION = re.compile(r"^:::+\{solution-start\}.*?^:::+\{solution-end\}\n:::+$", flags=BLOCKS)
FOLD = re.compile(
    r"^(?P<fence>:{3,}|`{3,})\{[\w-]+\}[^\n]*\n(?::[\w-]+:[^\n]*\n)*?:class:[^\n]*\bdropdown\b.*?^(?P=fence)$",
    flags=BLOCKS,
)
PICTURE = re.compile(r"^(?P<fence>:{3,}|`{3,})\{(?:figure|frames)\}.*?^(?P=fence)$", flags=BLOCKS)
ROWS = re.compile(r"(?:^\|.*\n)+", flags=re.MULTILINE)
MARKUP = re.compile(r"^(?:[:`]{3,}(?:\{[\w-]+\})?|:[\w-]+:.*|\([\w-]+\)=)", flags=re.MULTILINE)
WORD = re.compile(r"\S*\w\S*")
WORTH = re.compile("\ue000(\\d+)\ue000")  # stands where something stood that is no text
UNSEEN = {"code": {"hide-input", "remove-input"}, "output": {"hide-output", "remove-output"}}
WHOLE_CELL = {"hide-cell", "remove-cell"}


def read_prose(text):
    """Take from a page in MyST what is no text that meets the eye: front matter, solutions, folded boxes, markup.

    Where a cell or a picture stood, and before a table, a mark (WORTH) says how many words it is worth.
    """
    for gone in (FRONT_MATTER, SOLUTION, FOLD):
        text = gone.sub("", text)
    text = CELL.sub(lambda cell: _mark(weigh_cell(*read_cell(cell))), text)
    return ROWS.sub(lambda table: _mark(A_PICTURE) + table[0], PICTURE.sub(_mark(A_PICTURE), text))


def _mark(words):
    return f"\ue000{words}\ue000\n"


def read_cell(match):
    """Metadata (dict) and source of a code cell, from a match of CELL."""
    options = re.sub(r"^---$|^:", "", match["options"], flags=re.MULTILINE)
    return yaml.safe_load(options) or {}, match["source"]


def weigh_cell(metadata, source):
    """Words that a code cell is worth: its lines, its figure and its table, each as far as it is not folded."""
    tags = set(metadata.get("tags", []))
    lines = [line for line in source.splitlines() if line.strip()]
    code = 0 if tags & (UNSEEN["code"] | WHOLE_CELL) else A_LINE * len(lines)
    shown = "figure" in metadata.get("mystnb", {}), shows_table(source)
    return code + (0 if tags & (UNSEEN["output"] | WHOLE_CELL) else A_PICTURE * sum(shown))


def shows_table(source):
    """Whether the last expression of a cell is a table, the book's own or ArviZ's summary."""
    try:
        last = ast.parse(source).body[-1:]
    except SyntaxError:  # a line for the shell
        return False
    return any(isinstance(x, ast.Expr) and re.search(r"report\.Table\(|az\.summary\(", ast.unparse(x)) for x in last)


def count_words(prose):
    """Words in a text: what has a letter or a digit, marks of MyST apart."""
    return len(WORD.findall(MARKUP.sub("", WORTH.sub("", prose))))


@cache
def weigh_sections(text):
    """What the sections of a page are worth, in words: {label: int}; what has no label is counted under ""."""
    text = read_prose(text)
    marks = [(0, ""), *((mark.start(), mark[1] or "") for mark in LABEL.finditer(text)), (len(text), "")]
    worth = {}
    for (start, label), (end, _) in pairwise(marks):
        part = text[start:end]
        worth[label] = worth.get(label, 0) + count_words(part) + sum(int(words) for words in WORTH.findall(part))
    return worth


def count_minutes(labels, book=BOOK):
    """Minutes to read some sections, or whole chapters, given by label or name; rounded up.

    Text takes a minute for 200 words; each table, each figure and each visible ten lines of code take another one.
    Solutions and folded boxes are not counted.
    """
    sections = {}
    for path in sorted(book.glob("*.md")):
        worth = weigh_sections(path.read_text(encoding="utf8"))
        sections |= {label: words for label, words in worth.items() if label} | {path.stem: sum(worth.values())}
    for label in labels:
        if label not in sections:
            raise ValueError(f"no chapter and no section {label!r}; wanted: such as moons or sec-moons-data")
    return math.ceil(sum(sections[label] for label in labels) / WORDS_PER_MINUTE)


def list_costs(path=TABLE):
    """CPU-seconds of every section and chapter: {label or name: float}, and of all cells above: {label: float}."""
    costs, above = {}, {}
    for row in json.loads(path.read_text())["rows"]:
        spent = 0.0
        for label, seconds in row["sections"].items():
            if label.startswith("sec-"):
                costs[label], above[label] = seconds, spent
            spent += seconds
        costs[row["chapter"]] = spent
    return costs, above


def write_seconds(seconds):
    """Seconds in words, rounded as a person would say them."""
    if seconds < 1:
        return "under a second"
    if seconds < 45:
        count, unit = round(seconds, -1 if seconds >= 10 else 0), "second"
    else:
        count, unit = round(seconds / 60), "minute"
    return f"about {count:.0f} {unit}{'' if count == 1 else 's'}"


def state_reading(env, text):
    """Role {reading}: minutes to read some sections or chapters."""
    for path in BOOK.glob("*.md"):
        env.note_dependency(str(path))
    return nodes.Text(f"{count_minutes(text.split())} min")


def state_run(env, text, is_above):
    """Roles {live} and {above}: time to run some sections on one core, and time of all cells above one."""
    env.note_dependency(str(TABLE))
    costs, labels = list_costs()[is_above], text.split()
    missing = [label for label in labels if label not in costs]
    if missing:
        raise ValueError(f"no section {missing[0]!r} in {TABLE.name}; `make studies STUDY=run_cost` measures it")
    return nodes.Text(write_seconds(sum(costs[label] for label in labels)))


@cache
def number_chapters():
    """The number of each chapter in the contents: {name: int}; pages to look up have none."""
    parts = yaml.safe_load((BOOK.parent / "_toc.yml").read_text(encoding="utf8"))["parts"]
    names = [Path(chapter["file"]).stem for part in parts if "numbered" in part for chapter in part["chapters"]]
    return {name: number for number, name in enumerate(names, 1)}


def name_chapter(env, text):
    """Role {chapter}: a chapter as "Ch. 2", linked, with its title to hover; one without a number by its title."""
    if not (BOOK / f"{text}.md").exists():
        raise LookupError(f"no chapter {text!r} in {BOOK.name}")
    env.note_dependency(str(BOOK.parent / "_toc.yml"))
    title, number = read_title(text), number_chapters().get(text)
    words = f"Ch.\N{NO-BREAK SPACE}{number}" if number else title
    up = "../" * (env.docname.count("/") - 1)
    return nodes.reference("", words, refuri=f"{up}{text}.html", reftitle=title)


def setup(app):
    """Add the roles."""
    app.add_role("reading", make_role(state_reading))
    app.add_role("live", make_role(state_run, False))
    app.add_role("above", make_role(state_run, True))
    app.add_role("chapter", make_role(name_chapter))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
