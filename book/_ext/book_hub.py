"""What lecturers look up: the assignments, links for nbgitpuller, and what machines carry a class."""

import html
import json
import math
import re
from pathlib import Path
from urllib.parse import urlencode

from book_pages import BOOK, ROOT, RawTable, list_chapters, open_binder, read_title
from book_teach import list_costs, write_seconds
from docutils import nodes

ASSIGNMENTS = BOOK / "teach" / "assignments"
COSTS = BOOK / "data" / "assignment_cost.json"
EXAMPLE_HUB = "https://hub.example.org"
MACHINES = ((4, 16), (8, 32), (16, 64), (32, 128), (64, 256))  # cores, GB
LIMIT_MB = 2048  # a student's limit in book/teach/hub
CLASSES = (15, 40, 120)  # students
FIRST_FIT = "sec-flat-advi-advi"  # the section that everybody runs in the first session
SYSTEM_MB = 2048  # what is left to the hub, its proxy and the system

# Without JavaScript the links lead to the example's address, and the field is not shown.
ADDRESS_FIELD = f"""
<p id="hub-address-row" hidden><label for="hub-address">The address of your hub:</label>
<input id="hub-address" type="url" required pattern="https?://.+" size="32" value="{EXAMPLE_HUB}"></p>
<script>
document.getElementById("hub-address-row").hidden = false;
document.getElementById("hub-address").addEventListener("input", ({{ target }}) => {{
  if (!target.validity.valid) return;
  document.querySelectorAll("a[data-git-pull]").forEach((link) => {{
    link.href = target.value.replace(/\\/+$/, "") + link.dataset.gitPull;
  }});
}});
</script>"""


def make_link(hub, repository, branch, path):
    """The address that brings a student's copy of the book up to date and opens `path` of it in JupyterLab.

    `hub` is the address of a JupyterHub, `repository` what ``git clone`` takes; the copy is named by its last part.
    """
    repository = repository.rstrip("/")
    folder = repository.rpartition("/")[2]
    query = {"repo": repository, "branch": branch, "urlpath": f"lab/tree/{folder}/{Path(path).as_posix()}"}
    return f"{hub.rstrip('/')}/hub/user-redirect/git-pull?{urlencode(query)}"


def list_targets():
    """What a link is made for: list of (caption, list of (title, Path of a notebook))."""
    targets = [
        (caption, [(read_title(name), BOOK / f"{name}.ipynb") for name in names]) for caption, names in list_chapters()
    ]
    assignments = []
    for source in sorted((ASSIGNMENTS / "source").glob("*.md")):
        heading = re.search(r"^# (.+)$", source.read_text(encoding="utf8"), flags=re.MULTILINE).group(1)
        assignments.append((heading, find_release(source.stem)))
    return [*targets, ("Assignments", assignments)]


def find_release(name):
    """Path of what students get of an assignment."""
    return ASSIGNMENTS / "release" / name / f"{name}.ipynb"


def find_repository(config):
    """The address and the branch that links lead to."""
    options = config.html_theme_options
    return options["repository_url"].rstrip("/"), options.get("repository_branch") or "main"


class NbgitpullerLinks(RawTable):
    """One link for every chapter and assignment, and a field for the hub's address."""

    def run(self):
        repository, branch = find_repository(self.config)
        rows = []
        for caption, targets in list_targets():
            rows.append([html.escape(caption)])
            for title, path in targets:
                link = make_link(EXAMPLE_HUB, repository, branch, path.relative_to(ROOT))
                below = html.escape(link.removeprefix(EXAMPLE_HUB))
                anchor = f'<a href="{html.escape(link)}" data-git-pull="{below}">{html.escape(path.name)}</a>'
                rows.append([html.escape(title), anchor])
        table = self.show("What opens on your hub", ["Title", "Link to copy"], rows, ROOT / "_config.yml")
        return [nodes.raw("", ADDRESS_FIELD, format="html"), table]


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
        repository, branch = find_repository(self.config)
        costs = {row["assignment"]: row for row in json.loads(COSTS.read_text())["rows"]}
        rows, paths = [], [COSTS]
        for source in sorted((ASSIGNMENTS / "source").glob("*.md")):
            name = source.stem
            title, minutes, tests, questions = describe(source.read_text(encoding="utf8"))
            path = find_release(name).relative_to(ROOT).as_posix()
            live = open_binder(self.config.html_theme_options, path)
            notebook = f"{repository}/blob/{branch}/{path}"
            rows.append([
                f'<a href="{html.escape(notebook)}">{name}</a>: {html.escape(title)}',
                f"{tests} + {questions}",
                f"{minutes} min",
                write_seconds(costs[name]["cpu_seconds"]),
                f'<a href="{html.escape(live)}">{name[:2]} in Binder</a>',
            ])  # fmt: skip
            paths.append(source)
        columns = ["Assignment", "Points: tests + read", "Time", "To run", "Try it"]
        return [self.show("The six assignments", columns, rows, *paths)]


def setup(app):
    """Add the directives."""
    app.add_directive("assignment-list", AssignmentList)
    app.add_directive("nbgitpuller-links", NbgitpullerLinks)
    app.add_directive("class-sizes", ClassSizes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
