"""What nbgrader needs to know on the lecturer's account alone: ~/.jupyter/nbgrader_config.py.

The course lies beside the lecturer's other files: sources in ~/course/source, the grades in ~/course/gradebook.db.
"""

from pathlib import Path

c = get_config()  # noqa: F821  nbgrader defines it

c.CourseDirectory.root = str(Path.home() / "course")
