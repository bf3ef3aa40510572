"""What a lecturer should know of what was handed in, and would read out of no mark: a sentence for each.

    python -m tools.submissions ~/course a1-moons        before autograding, and once more after it

nbgrader grades in silence what it cannot find: a second download with another name, cells whose metadata a tool has
stripped, cells that were deleted. And it does not read answers: a line that touches the tests is a matter for a person.
"""

import argparse
import ast
import builtins
import re
import symtable
import sys
from pathlib import Path

import nbformat

# what an answer has no need of, and what makes checks pass that should not
TOUCHES = re.compile(
    r"expect_\w+|__(?!init__|name__|main__|doc__)[a-z]\w*__|\bf_(?:back|globals|locals)\b|\btb_frame\b|"
    r"\b(?:restore|grading|importlib|builtins|inspect|traceback|pathlib|get_ipython|IPython|ipykernel|subprocess|"
    r"nbgrader|sqlite3|unittest|threading|ctypes|runpy|update_wrapper|wraps|monkeypatch|"
    r"globals?|setattr|delattr)\b|\b(?:sys|gc|os)\s*\.|\bfrom (?:sys|gc|os)\b|"
    r"\b(?:exec|eval|compile|open|vars|locals|exit|quit)\s*\(|\bSystemExit\b|^\s*(?:!|%%?(?!matplotlib|time)\w+)",
    flags=re.MULTILINE,
)


def find_faults(submitted, release):
    """What is amiss with a notebook that was handed in.

    Parameters
    ----------
    submitted, release : NotebookNode

    Returns
    -------
    list of str, sentences
    """
    wanted = [c.metadata["nbgrader"]["grade_id"] for c in release.cells if _is_ours(c)]
    there = [c.metadata["nbgrader"].get("grade_id") for c in submitted.cells if _is_ours(c)]
    if wanted and not there:
        return [
            "no cell has nbgrader's metadata, so nothing can be graded and the mark is 0: some tool has stripped it. "
            "Put the answers into a fresh release, or ask for the notebook as it was downloaded."
        ]
    found = []
    lost = [name for name in wanted if name not in there]
    if lost:
        found.append(f"cells are missing: {', '.join(lost)}. A deleted test gives no mark, a deleted answer 0.")
    if [name for name in there if name in wanted] != [name for name in wanted if name in there]:
        found.append("the cells are in another order than in the release, and run in that order.")
    tagged = [_name(cell) for cell in submitted.cells if _is_ours(cell) and cell.metadata.get("tags")]
    if tagged:
        found.append(f"cells have tags, unlike the release: {', '.join(tagged)}. A tag can keep a test from running.")
    given = {cell.metadata["nbgrader"]["grade_id"]: cell.source for cell in release.cells if _is_ours(cell)}
    for cell in submitted.cells:
        if cell.cell_type == "code" and _is_own(cell) and cell.source != given.get(_name(cell)):
            touched = {match.strip(" (.") for match in TOUCHES.findall(_read_code(cell.source))}
            touched = sorted(touched | _list_replaced(cell.source))
            if touched:
                found.append(f"read the answer {_name(cell)!r}: it speaks of {', '.join(touched)}.")
    return found


def find_stops(autograded):
    """What stopped while a notebook was graded: list of str, sentences."""
    stopped = [
        _name(cell)
        for cell in autograded.cells
        for output in cell.get("outputs", [])
        if output.output_type == "error"
        and output.ename in ("CellTimeoutError", "KeyboardInterrupt", "DeadKernelError")
    ]
    return [f"{', '.join(dict.fromkeys(stopped))} ran into the time limit and counts 0: a loop without an end?"] * (
        len(stopped) > 0
    )


def _is_ours(cell):
    return "nbgrader" in cell.metadata


def _is_own(cell):
    """Whether students write this cell: an answer, or one that they added."""
    return not _is_ours(cell) or cell.metadata["nbgrader"].get("solution")


def _list_replaced(source):
    """What an answer binds anew: Python's own names, and attributes such as np.abs; set of str."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
        symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    except SyntaxError:
        return set()
    names = {symbol.get_name() for symbol in symbols if symbol.is_assigned() and not symbol.is_imported()}
    names |= {node.asname for node in nodes if isinstance(node, ast.alias)}  # from operator import neg as abs
    changed = [n for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store | ast.Del)]
    bound = names & set(dir(builtins)) | {ast.unparse(node) for node in changed}
    return {f"{name} = …" for name in bound if not name.startswith("self.")}


def _name(cell):
    return cell.metadata.get("nbgrader", {}).get("grade_id") or "a cell of the student's own"


def _read_code(source):
    """Code without its comments: str."""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:  # a magic of IPython, or an error that the student will hear of
        return source


def list_lines(course, assignment):
    """What there is to say of an assignment's submissions: list of str, each begins with the student."""
    course = Path(course)
    (path,) = course.glob(f"release/{assignment}/{assignment}.ipynb")
    release, lines = nbformat.read(path, as_version=4), []
    for folder in sorted(course.glob(f"submitted/*/{assignment}")):
        student, wanted = folder.parent.name, folder / path.name
        others = sorted(file.name for file in folder.glob("*.ipynb") if file != wanted)
        said = [f"{name!r} is not called {wanted.name}, and is not graded: rename it." for name in others]
        if wanted.exists():
            said += find_faults(nbformat.read(wanted, as_version=4), release)
            graded = course / "autograded" / student / assignment / path.name
            if graded.exists():
                said += find_stops(nbformat.read(graded, as_version=4))
            elif (course / "autograded").exists():
                said.append("is not graded: look at what nbgrader autograde said, and run it again.")
        elif not others:
            said.append("handed in a folder without a notebook.")
        lines += [f"{student}: {sentence}" for sentence in said]
    return lines


def main(arguments=None):
    """Print the sentences; returns 0 where there are none, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.submissions", description=__doc__.partition("\n")[0])
    parser.add_argument("course", help="the course folder")
    parser.add_argument("assignments", nargs="*", help="such as a1-moons; default: all that were handed in")
    asked = parser.parse_args(arguments)
    names = asked.assignments or sorted({path.name for path in Path(asked.course).glob("submitted/*/*")})
    lines = [f"{name}, {line}" for name in names for line in list_lines(asked.course, name)]
    print("\n".join(lines) or "Nothing to report.")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
