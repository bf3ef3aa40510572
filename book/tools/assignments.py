"""Make the assignments: ``book/teach/assignments/source/<name>.md`` in, students' notebooks out.

    python -m tools.assignments                          the releases in book/teach/assignments/release
    python -m tools.assignments --course /srv/hbnn       a course folder for nbgrader

The md is what people edit: it holds solutions, hidden tests and model answers. nbgrader takes them out, and a course
folder has them in its gradebook alone. Nothing is executed, and the same md gives the same bytes.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import jupytext
import nbformat
from nbgrader.apps import NbGraderAPI
from traitlets.config import PyFileConfigLoader

ASSIGNMENTS = Path(__file__).resolve().parents[1] / "teach" / "assignments"
SOURCE, RELEASE, CONFIG = ASSIGNMENTS / "source", ASSIGNMENTS / "release", "nbgrader_config.py"
MARK = re.compile(r"^ *### .*\n?", flags=re.MULTILINE)  # of nbgrader's
DATA_SET = re.compile(r"^DATA_SET = \d+", flags=re.MULTILINE)
AFRESH = """\
### BEGIN HIDDEN TESTS
__locked__ = __import__("runpy").run_path(__import__("teach.grading").grading.__file__)["locked"]
__right__ = {right!r}
### END HIDDEN TESTS
"""


class AssignmentError(Exception):
    """An assignment could not be made; the message says which and why."""


def list_names(source=SOURCE):
    """Names of the assignments, sorted: list of str."""
    return sorted(path.stem for path in Path(source).glob("*.md"))


def read_source(name, *, data_set=None, source=SOURCE):
    """An assignment with its solutions as a notebook, in which equal cells have equal ids.

    Parameters
    ----------
    name : str, such as "a1-moons"
    data_set : int, in place of the source's own DATA_SET: other data, the same questions
    source : Path, the folder of the md files

    Returns
    -------
    NotebookNode

    Raises
    ------
    AssignmentError
        For an unknown name, and for a source that has not exactly one line ``DATA_SET = …``.
    """
    path = Path(source) / f"{name}.md"
    if not path.exists():
        raise AssignmentError(f"no assignment {name!r}; wanted: one of {', '.join(list_names(source))}")
    text = path.read_text(encoding="utf8")
    if len(DATA_SET.findall(text)) != 1:
        raise AssignmentError(f"{path} needs exactly one line `DATA_SET = 1`; it has {len(DATA_SET.findall(text))}")
    if data_set is not None:
        text = DATA_SET.sub(f"DATA_SET = {data_set}", text)
    notebook, solutions = jupytext.reads(text, fmt="md:myst"), []
    for k, cell in enumerate(notebook.cells):
        told = cell.metadata.get("nbgrader", {})
        cell.id = told.get("grade_id") or f"text-{k}"
        if told.get("solution") and cell.cell_type == "code":
            solutions.append(MARK.sub("", cell.source))
        elif told.get("grade") and cell.cell_type == "code":  # a fresh check, and right versions of earlier parts
            cell.source = AFRESH.format(right="\n\n".join(solutions[:-1])) + cell.source
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}  # nothing that pairs it with an md
    return notebook


def open_course(course):
    """nbgrader's API of the course folder `course`, with the settings in nbgrader_config.py: NbGraderAPI."""
    commands = str(Path(sys.executable).parent)  # nbgrader calls alembic by its name
    if commands not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([commands, os.environ["PATH"]])
    config = PyFileConfigLoader(CONFIG, path=str(ASSIGNMENTS)).load_config()
    config.CourseDirectory.root = str(course)
    return NbGraderAPI(config=config)


def make_course(course, names=None, *, data_set=None, source=SOURCE):
    """Write a course folder for nbgrader: settings, gradebook, ``release/``, and in ``source/`` an empty folder each.

    Parameters
    ----------
    course : Path
    names : list of str; default, all assignments
    data_set, source : as in `read_source`

    Returns
    -------
    NbGraderAPI of the course

    Raises
    ------
    AssignmentError
        As `read_source`, and where nbgrader refuses a source, with the end of its log.
    """
    course = Path(course).resolve()
    names = list_names(source) if names is None else names
    notebooks = {name: read_source(name, data_set=data_set, source=source) for name in names}
    course.mkdir(parents=True, exist_ok=True)
    if not (course / CONFIG).exists():  # the lecturer's own changes stay
        shutil.copy(ASSIGNMENTS / CONFIG, course / CONFIG)
    api = open_course(course)
    for name, notebook in notebooks.items():
        folder = course / "source" / name
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, folder / f"{name}.ipynb")
        result = api.generate_assignment(name)
        if not result["success"]:
            raise AssignmentError(f"nbgrader could not release {name}:\n{result.get('log', '')[-2000:]}")
        (folder / f"{name}.ipynb").unlink()  # solutions have no place where students' code runs; the folder lists it
    return api


def make_releases(release=RELEASE, names=None, *, source=SOURCE):
    """Write ``<release>/<name>/<name>.ipynb`` for every assignment, by way of a course folder that is thrown away."""
    with tempfile.TemporaryDirectory() as course:
        make_course(course, names, source=source)
        for made in sorted(Path(course, "release").glob("*/*.ipynb")):
            folder = Path(release) / made.stem
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(made, folder / made.name)


def main(arguments=None):
    """Make the releases, or a course folder. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Make the students' notebooks from book/teach/assignments/source.")
    parser.add_argument("names", nargs="*", help="assignments, such as a1-moons; default: all")
    parser.add_argument("--course", help="write a course folder for nbgrader here, and leave the book's releases alone")
    parser.add_argument("--data-set", type=int, help="with --course: another DATA_SET than the sources have")
    asked = parser.parse_args(arguments)
    if asked.data_set is not None and not asked.course:
        parser.error("--data-set needs --course: the book's own releases have the DATA_SET of their source")
    names = asked.names or list_names()
    try:
        if asked.course:
            make_course(asked.course, names, data_set=asked.data_set)
        else:
            make_releases(names=names)
    except AssignmentError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{', '.join(names)}: in {asked.course or RELEASE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
