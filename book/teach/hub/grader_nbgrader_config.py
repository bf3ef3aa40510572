"""What nbgrader needs to know on the grader's account alone: ~/.jupyter/nbgrader_config.py.

The grader is a user without rights, since what students handed in runs there. Sources are in ~/course/source, the
grades in ~/course/gradebook.db.
"""

from pathlib import Path

c = get_config()  # noqa: F821  nbgrader defines it

c.CourseDirectory.root = str(Path.home() / "course")
