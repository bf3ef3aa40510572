"""Exercises of a chapter tried in this process: what their checks say of the solution, and of answers made from it.

A chapter is run once, cell by cell. Before each exercise the namespace is kept, and so is what the solution hands to
the check. Wrong answers are then made in two ways: the solution's function with one small change of its syntax
(`mutants`), where that takes a moment, and the solution's result with a change that a tired reader makes.

    PYTHONPATH=book:book/_ext python tests/exercised.py moons      which of them the checks let pass

What may pass stands with its reason in ``wrong_answers/equivalent.toml``, and is left out of what is printed.
"""

import ast
import contextlib
import copy
import re
import sys
import time
import tomllib
from pathlib import Path

import graded
import jupytext
import matplotlib
import mutants
import numpy as np
from book_pages import BOOK

matplotlib.use("Agg")
SECONDS = 2  # an exercise whose solution takes longer is tried by its results alone
LIMIT = 20  # seconds for an answer
EXPLAINED = tomllib.loads((Path(__file__).parent / "wrong_answers" / "equivalent.toml").read_text(encoding="utf8"))


class Exercise:
    """One exercise as a chapter ran it: the check's name, the solution's cells, and what they handed to the check."""

    def __init__(self, check, space, cells):
        self.check, self.space, self.cells = check, space, cells
        self.seconds, self.value, self.heard = 0.0, None, False

    def listen(self, value):
        """The check itself, which keeps what it is asked."""
        self.value, self.heard = copy.deepcopy(value), True
        return self.space[self.check](value)

    def run(self, cells):
        """Run cells in place of the solution's: None where the check is asked and says "right", or (name, message)."""
        space = dict(self.space)
        for source in cells:
            error = graded.run_cell(source, space, LIMIT)
            if error and error[0] != "stderr":
                return error
        return None

    def say(self, value):
        """What the check says of a value: None for "right", or (name, message)."""
        space = dict(self.space)
        space["__value"] = value
        return graded.run_cell(f"{self.check}(__value)", space, LIMIT)

    def list_mutants(self):
        """Changes of the functions in the solution's cells: dict of title to the list of cells."""
        found = {}
        for k, source in enumerate(self.cells):
            body = ast.parse(source).body
            for i, node in enumerate(body):
                if isinstance(node, ast.FunctionDef):
                    for title, text in mutants.list_mutants(ast.unparse(node)).items():
                        changed = [*map(ast.unparse, body[:i]), text, *map(ast.unparse, body[i + 1 :])]
                        cells = [*self.cells[:k], "\n".join(changed), *self.cells[k + 1 :]]
                        found[f"{node.name}: {title}"] = cells
        return found


def run_chapter(chapter):
    """Run a chapter's cells: list of Exercise, each with the value that its solution hands to its check."""
    text = (BOOK / f"{chapter}.md").read_text(encoding="utf8")
    notebook = jupytext.reads(text, fmt="md:myst")
    space, found, current = {"__name__": "__main__", "display": lambda *_: None}, [], None
    for cell in notebook.cells:
        if cell.cell_type != "code":
            if current and ":::{solution-end}" in cell.source:
                if not current.heard:
                    raise RuntimeError(f"{chapter}: the solution asks {current.check} nothing")
                found.append(current)
                current = None
            continue
        if "exercise" in cell.metadata.get("tags", []):
            error = graded.run_cell(cell.source, space)
            check = re.search(r"^def (check_\w+)\(", cell.source, flags=re.MULTILINE)
            if check is None:  # the function to write; its check has a cell of its own
                continue
            check = check[1]
            current = Exercise(check, dict(space), [])
            space[check] = current.listen
            continue
        if current:
            asked = any(current.check in done for done in current.cells)
            if not asked:
                current.cells.append(cell.source)
        start = time.perf_counter()
        error = graded.run_cell(cell.source, space)
        if current and not asked:
            current.seconds += time.perf_counter() - start
        if error and error[0] != "stderr":
            raise RuntimeError(f"{chapter}: {error} in\n{cell.source[:300]}")
    return found


def list_changes(value):
    """What a tired reader makes of a right result: dict of title to value."""
    found = {}
    if isinstance(value, dict):
        keys, values = list(value), list(value.values())
        found["the values in reverse order"] = dict(zip(keys, values[::-1], strict=True))
        found["one value for all"] = dict.fromkeys(keys, values[0])
        found["a key is missing"] = dict(list(value.items())[1:])
        together = {title: [list_changes(v).get(title) for v in values] for title in list_changes(values[0])}
        for title, changed in together.items():
            if all(c is not None for c in changed):
                found[f"each value {title}"] = dict(zip(keys, changed, strict=True))
        for key in keys[:4]:
            found |= {f"{key!r} {title}": value | {key: changed} for title, changed in list_changes(value[key]).items()}
    elif isinstance(value, tuple) or (isinstance(value, list) and len(value) < 8):
        make = type(value)
        found["in reverse order"] = make(value[::-1])
        found["one for all"] = make([value[0]] * len(value))
        found["one is missing"] = make(value[1:])
        for k, part in enumerate(value[:4]):
            for title, changed in list_changes(part).items():
                found[f"part {k} {title}"] = make([*value[:k], changed, *value[k + 1 :]])
    elif isinstance(value, np.ndarray | list) and np.asarray(value).dtype.kind in "fiu":
        found = _change_array(np.asarray(value, dtype=float))
    elif isinstance(value, float | int | np.number) and not isinstance(value, bool):
        v = float(value)
        found = {"times 100": 100 * v, "over 100": v / 100, "with the wrong sign": -v, "times 2": 2 * v}
        found |= {"over 2": v / 2, "of 1": 1 - v, "one over it": 1 / v if v else np.inf, "0": 0.0, "NaN": np.nan}
    return {"None": None} | found


def _change_array(a):
    rng = np.random.default_rng(1)
    found = {
        "times 100": 100 * a,
        "over 100": a / 100,
        "with the wrong sign": -a,
        "times 2": 2 * a,
        "over 2": a / 2,
        "of 1": 1 - a,
        "all 0": 0 * a,
        "with a NaN": np.where(np.arange(a.size).reshape(a.shape) == a.size - 1, np.nan, a),
        "flat": a.ravel() if a.ndim > 1 else a[:, None],
        "the mean alone": a.mean(),
        "the mean for all": np.full(a.shape, a.mean()),
        "uniform random numbers of its range": rng.uniform(a.min(), a.max(), size=a.shape),
    }
    for axis in range(min(a.ndim, 3)):
        n = a.shape[axis]
        if n > 1:
            found[f"in reverse order along axis {axis}"] = np.flip(a, axis)
            found[f"shuffled along axis {axis}"] = np.take(a, rng.permutation(n), axis)
            found[f"shifted by one along axis {axis}"] = np.roll(a, 1, axis)
            found[f"the first along axis {axis} for all"] = np.repeat(np.take(a, [0], axis), n, axis)
            found[f"one too few along axis {axis}"] = np.take(a, range(n - 1), axis)
            found[f"summed up along axis {axis}"] = np.cumsum(a, axis)
    return {
        title: new
        for title, new in found.items()
        if np.shape(new) != a.shape or not np.allclose(new, a, equal_nan=True)
    }


def main(chapters):
    """Print, for each exercise of some chapters, what its check lets pass; it is for a person to judge."""
    for chapter in chapters:
        with contextlib.chdir("."):  # some chapters write their files elsewhere
            exercises = run_chapter(chapter)
        for exercise in exercises:
            known = EXPLAINED.get(f"{chapter}.{exercise.check}", {})
            changed = list_changes(exercise.value)
            passed = [title for title, value in changed.items() if exercise.say(value) is None]
            print(f"{chapter}, {exercise.check}: {len(changed)} changed results, these pass:")
            print(*_leave_out(passed, known), sep="\n    ")
            made = exercise.list_mutants() if exercise.seconds < SECONDS else {}
            passed = [title for title, cells in made.items() if exercise.run(cells) is None]
            print(f"  {len(made)} changed solutions, these pass:", *_leave_out(passed, known), sep="\n    ")


def _leave_out(passed, known):
    """What passed and is not explained by how its name begins, and how many are."""
    open_ones = [title for title in passed if not title.startswith(tuple(known))]
    return [*open_ones, f"({len(passed) - len(open_ones)} more, explained)"]


if __name__ == "__main__":
    main(sys.argv[1:])
