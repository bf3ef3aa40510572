"""What lecturers look up: the assignments, and what machines carry a class."""

import html
import json
import math
import re

from book_pages import BOOK, RawTable, open_binder
from book_teach import list_costs, write_seconds

ASSIGNMENTS = BOOK / "teach" / "assignments"
COSTS = BOOK / "data" / "assignment_cost.json"
MACHINES = ((4, 16), (8, 32), (16, 64), (32, 128), (64, 256))  # cores, GB
LIMIT_MB = 2048  # a student's limit in book/teach/hub
CLASSES = (15, 40, 120)  # students
FIRST_FIT = "sec-flat-advi-advi"  # the section that everybody runs in the first session
SYSTEM_MB = 2048  # what is left to the hub, its proxy and the system


def count_students(gigabytes):
    """Students whose servers fit into a machine's memory at the same time, each at its limit."""
    return int((gigabytes * 1024 - SYSTEM_MB) // LIMIT_MB)


def wait_minutes(students, cores, cpu_seconds):
    """Minutes until everybody has an answer where all start the same chapter at the same moment."""
    return cpu_seconds * max(1, students / cores) / 60


def choose_machines(students):
    """The fewest and smallest machines whose memory carries a class: (how many, cores of each, GB of each)."""
    fitting = [(cores, gigabytes) for cores, gigabytes in MACHINES if count_students(gigabytes) >= students]
    if fitting:
        return 1, *fitting[0]
    cores, gigabytes = MACHINES[-1]
    return math.ceil(students / count_students(gigabytes)), cores, gigabytes


class ClassSizes(RawTable):
    """What three sizes of class need: memory, a machine, and how long the live fit of the first session takes."""

    def run(self):
        path = BOOK / "data" / "run_cost.json"
        dearest = max(row["cpu_seconds"] for row in json.loads(path.read_text())["rows"])
        fit = list_costs()[0][FIRST_FIT]
        rows = []
        for students in CLASSES:
            n, cores, gigabytes = choose_machines(students)
            gb = math.ceil((students * LIMIT_MB + SYSTEM_MB) / 1024)
            each = f"{cores} cores, {gigabytes} GB" if n == 1 else f"{n} of {cores} cores, {gigabytes} GB"
            waits = [f"{wait_minutes(students, n * cores, cost):.1f} min" for cost in (fit, dearest)]
            rows.append([f"{students} students", f"{gb} GB", each, *waits])
        fits = ["The fit of session 1, all at once", "The dearest chapter, all at once"]
        columns = ["Class", "Memory", "Machine", *fits]
        return [self.show("Three classes, each student with 2 GB, caches warm", columns, rows, path)]


def describe(source):
    """Title, minutes, and the points of tests and of open questions of a source (text): (str, str, int, int)."""
    title = re.search(r"^# Assignment \d+: (.+)$", source, flags=re.MULTILINE).group(1)
    minutes = re.search(r"^20 points, about (\d+) minutes", source, flags=re.MULTILINE).group(1)
    tests, questions = (re.findall(pattern, source) for pattern in (r"\bpoints: (\d+)", r'"points": (\d+)'))
    return title, minutes, sum(map(int, tests)), sum(map(int, questions))


class AssignmentList(RawTable):
    """One row for each assignment: points, minutes, cost, and where to open the release."""

    def run(self):
        theme = self.config.html_theme_options
        costs = {row["assignment"]: row for row in json.loads(COSTS.read_text())["rows"]}
        rows, paths = [], [COSTS]
        for source in sorted((ASSIGNMENTS / "source").glob("*.md")):
            name = source.stem
            title, minutes, tests, questions = describe(source.read_text(encoding="utf8"))
            path = f"book/teach/assignments/release/{name}/{name}.ipynb"
            notebook = f"{theme['repository_url'].rstrip('/')}/blob/{theme.get('repository_branch') or 'main'}/{path}"
            rows.append([
                f'<a href="{html.escape(notebook)}">{name}</a>: {html.escape(title)}',
                f"{tests} + {questions}",
                f"{minutes} min",
                write_seconds(costs[name]["cpu_seconds"]),
                f'<a href="{html.escape(open_binder(theme, path))}">{name[:2]} in Binder</a>',
            ])  # fmt: skip
            paths.append(source)
        columns = ["Assignment", "Points: tests + read", "Time", "To run", "Try it"]
        return [self.show("The six assignments", columns, rows, *paths)]


def setup(app):
    """Add the directives."""
    app.add_directive("assignment-list", AssignmentList)
    app.add_directive("class-sizes", ClassSizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
