"""Assignments graded in this process: a part's answer against the part's own tests, whatever else the notebook holds.

A notebook with its solutions is run once for each DATA_SET; what a cell finds in the namespace is kept, so that
hundreds of answers share one fit and one posterior. What nbgrader would do to a cell is done here: an error, or a word
on stderr, and the points are gone.
"""

import ast
import contextlib
import io
import re
import signal
import sys
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import mutants
import numpy as np
from tools import assignments

ANSWERS = Path(__file__).parent / "assignments"
DATA_SETS = (1, 2, 3, 2026)  # that book/teach/assignments.md speaks of

SECONDS = 20  # for a cell of an answer or of its tests; the slowest takes three


class Slow(BaseException):
    """A cell took too long; no `except Exception` of an answer's swallows it."""


def run_cell(source, space, seconds=0):
    """Run a cell in the namespace `space`, for so many seconds at most where they are above 0.

    Returns the (name, message) of its error, or its words on stderr, or None.
    """
    said = io.StringIO()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), said
    if space.get("__stderr__") == "stdout":
        sys.stderr = sys.stdout
    try:
        with _limit(seconds):
            exec(source, space)
    except Slow:
        return "Slow", f"{seconds} seconds of CPU time are over"
    except Exception as error:
        return type(error).__name__, str(error)
    finally:
        if sys.stderr is sys.stdout:
            space["__stderr__"] = "stdout"
        sys.stdout, sys.stderr = before
    return ("stderr", said.getvalue()) if said.getvalue() else None


@contextlib.contextmanager
def _limit(seconds):
    def stop(*_):
        raise Slow

    old = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, old)


@cache
def list_code(name, data_set=None):
    return [cell for cell in assignments.read_source(name, data_set=data_set).cells if cell.cell_type == "code"]


@cache
def run_solution(name, data_set=None):
    """Run an assignment in this process: its namespace, what that held before each cell, and the cells' errors."""
    sys.modules.pop("teach.grading", None)  # a copy of its own: answers that cheat write into it
    space, before, errors = {"__name__": "__main__"}, [], []
    for cell in list_code(name, data_set):
        before.append(dict(space))
        errors.append(run_cell(cell.source, space))
    return space, before, errors


def list_parts(name):
    """The parts that are tested: dict of grade_id of the answer to the grade_ids of its tests."""
    parts, current = {}, None
    for cell in list_code(name):
        told = cell.metadata["nbgrader"]
        if "-choice" in cell.id:  # a letter, which is no code
            continue
        if told["solution"]:
            current = cell.id
            parts[current] = []
        elif told["grade"]:
            parts[current].append(cell.id)
    return parts


def read_answer(name, part):
    """The solution of a part, without the marks of nbgrader: str."""
    (source,) = [cell.source for cell in list_code(name) if cell.id == part]
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith("### "))


def judge(name, part, answer, data_set=None):
    """Errors of an answer to one part in that part's own tests: dict of grade_id to None or (name, message)."""
    _, before, _ = run_solution(name, data_set)
    cells = list_code(name, data_set)
    start = [cell.id for cell in cells].index(part)
    space = dict(before[start])
    found = {part: run_cell(answer, space, SECONDS)}
    wanted = list_parts(name)[part]
    for cell in cells[start + 1 :]:
        if cell.id in wanted:
            found[cell.id] = run_cell(cell.source, space, SECONDS)
    return found


# --- answers


def read_wrong(name, part):
    """Wrong answers to a part that were written by hand: dict of title to source."""
    return {title: change(name, part, *edits) for title, edits in _read_toml("wrong").get(f"{name}.{part}", {}).items()}


def change(name, part, *edits):
    """The solution of a part with a second text in place of a first, a fourth of a third, and so on: str."""
    text = read_answer(name, part)
    for old, new in zip(edits[::2], edits[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(f"{name}.{part}: {old!r} is there {text.count(old)} times; wanted: once")
        text = text.replace(old, new)
    return text


def read_right(name, part):
    """Right answers to a part, written differently: dict of title to source."""
    text = (ANSWERS / "right.py").read_text(encoding="utf8")
    cells = [cell.partition("\n") for cell in re.split(r"^# %% ", text, flags=re.MULTILINE)[1:]]
    parts = [(*head.split(": ", 1), source) for head, _, source in cells]
    return {title: source for own, title, source in parts if own == f"{name}.{part}"}


def read_equivalent(name, part):
    """Changed answers that are right all the same: dict of title to the reason."""
    return _read_toml("equivalent").get(f"{name}.{part}", {})


def read_typical(name):
    """Typical wrong answers to an assignment: list of dict of the part, its answer, the points left and words said."""
    return [
        {"part": part, "points": points, "message": message, "answer": change(name, part, *edits)}
        for part, points, message, *edits in _read_toml("typical")[name]
    ]


@cache
def _read_toml(kind):
    return tomllib.loads((ANSWERS / f"{kind}.toml").read_text(encoding="utf8"))


def make_wrong(name, part):
    """Wrong answers to a part, by hand and by changes of the solution's syntax: dict of title to source."""
    return read_wrong(name, part) | mutants.list_mutants(read_answer(name, part))


def rename(name, part):
    """The solution behind a chain of helpers: one by each name that a locked cell uses, and the solution does not."""
    source = read_answer(name, part)
    function = _find_function(source)
    locked = [cell.source for cell in list_code(name) if not cell.metadata["nbgrader"]["solution"]]
    names = sorted(set().union(*map(_list_names, locked)) - _list_names(source) - {function})
    links = [(names[0], function), *((new, old) for old, new in pairwise(names)), (function, names[-1])]
    calls = [f"def {new}(*given, **named):\n    return {old}(*given, **named)\n" for new, old in links[1:]]
    return "\n\n".join([source, f"{names[0]} = {function}\n", *calls])


def _list_names(source):
    """Every name in a cell, without those of the graders' own kind: set of str."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {getattr(node, kind, None) for node in nodes for kind in ("id", "name", "arg", "asname")}
    return {name for name in names if name and name.isidentifier() and not name.startswith("__")}


def _find_function(source):
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)][-1]


def wrap(name, part, text):
    """The solution with a last line of its own: `text` about `found`, what the function of the part returns."""
    source = read_answer(name, part)
    function = _find_function(source)
    lines = f"_right = {function}\n\n\ndef {function}(*given, **named):\n    found = _right(*given, **named)\n"
    return f"{source}\n\n\n{lines}    return {text}\n"


def turn_into_lists(found):
    """What a function returned, with lists in place of arrays."""
    if isinstance(found, np.ndarray | np.generic):
        return found.tolist()
    if isinstance(found, dict):
        return {key: turn_into_lists(value) for key, value in found.items()}
    return [turn_into_lists(value) for value in found] if isinstance(found, tuple | list) else found
