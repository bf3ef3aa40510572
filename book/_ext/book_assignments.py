"""The table of the assignments, from their sources and from what they were measured to cost."""

import html
import json
import re

from book_pages import BOOK, ROOT, RawTable, open_binder
from book_teach import write_seconds

ASSIGNMENTS = BOOK / "teach" / "assignments"
COSTS = BOOK / "data" / "assignment_cost.json"


def describe(source):
    """Title, minutes, and the points of tests and of open questions of a source (text): (str, str, int, int)."""
    title = re.search(r"^# Assignment \d+: (.+)$", source, flags=re.MULTILINE).group(1)
    minutes = re.search(r"^20 points, about (\d+) minutes", source, flags=re.MULTILINE).group(1)
    tests, questions = (re.findall(pattern, source) for pattern in (r"\bpoints: (\d+)", r'"points": (\d+)'))
    return title, minutes, sum(map(int, tests)), sum(map(int, questions))


class AssignmentList(RawTable):
    """One row for each assignment: points, minutes, cost, and where to open the release."""

    def run(self):
        options = self.config.html_theme_options
        repository, branch = options["repository_url"].rstrip("/"), options.get("repository_branch") or "main"
        costs = {row["assignment"]: row for row in json.loads(COSTS.read_text())["rows"]}
        rows, paths = [], [COSTS]
        for source in sorted((ASSIGNMENTS / "source").glob("*.md")):
            name = source.stem
            title, minutes, tests, questions = describe(source.read_text(encoding="utf8"))
            path = (ASSIGNMENTS / "release" / name / f"{name}.ipynb").relative_to(ROOT).as_posix()
            live = open_binder(options, path)
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
    """Add the directive."""
    app.add_directive("assignment-list", AssignmentList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
