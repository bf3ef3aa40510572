"""What the solution of each assignment asks of a machine: CPU-seconds and memory, in a fresh kernel on one core.

As in `run_cost`, the compile cache is warm and no posterior is cached.
"""

from bookkit.repo import BOOK

from studies.run_cost import measure

MEASURED = True
SOURCE = BOOK / "teach" / "assignments" / "source"
CASES = [{"assignment": path.stem} for path in sorted(SOURCE.glob("*.md"))]


def compute(assignment):
    """CPU-seconds, and the peak of resident memory in MB."""
    found = measure(SOURCE / f"{assignment}.md", folder=None)  # in an empty folder, as an autograder
    return {name: found[name] for name in ("cpu_seconds", "megabytes")}
