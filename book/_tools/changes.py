"""Say which claims of the book changed between two commits, and which numbers moved by more than their errors.

    python book/_tools/changes.py 3d06fab              from that commit to the files as they are
    python book/_tools/changes.py 8963341 3d06fab      from the first to the second

A number has moved when the difference of its two values is larger than both errors together (the root of the sum of
their squares). Numbers are read as the tests read them (tests/outputs.py).
"""

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from outputs import read_text

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "verdict": "The verdict changed",
    "moved": "Moved by more than their errors",
    "other": "Another sentence, criterion, n, or number without an error",
    "gone": "Gone",
    "new": "New",
    "within": "Moved by less than their errors",
    "same": "The same",
}
COUNTED = ("within", "same")  # of these only the number is printed


@dataclass(frozen=True)
class Change:
    """What became of one claim: `kind` is a key of KINDS, `before` and `after` are its values, or None."""

    name: str
    kind: str
    before: str | None
    after: str | None


def read_claims(commit=None, root=ROOT):
    """The claims of a commit (a hash, tag or branch), or of the files as they are.

    Returns
    -------
    dict of "chapter:id" to dict
    """
    if commit is None:
        text = (Path(root) / "book" / "claims.json").read_text(encoding="utf8")
    else:
        command = ["git", "-C", str(root), "show", f"{commit}:book/claims.json"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            raise SystemExit("there is no git here; wanted: git, which has the claims of older commits") from None
        if done.returncode:
            raise SystemExit(
                f"{commit!r} has no book/claims.json; wanted: a commit or tag of `git log -- book/claims.json`"
            )
        text = done.stdout
    return {f"{claim['chapter']}:{claim['id']}": claim for claim in json.loads(text)}


def has_moved(old, new):
    """Whether an estimate's two values differ by more than both errors together; rounding is granted."""
    granted = old.value_half + new.value_half
    return abs(new.value - old.value) > math.hypot(old.error, new.error) + granted


def classify(old, new):
    """The kind of change, a key of KINDS, between two versions of a claim."""
    if old["holds"] != new["holds"]:
        return "verdict"
    before, after = read_text(old["value"]), read_text(new["value"])
    if len(before.estimates) == len(after.estimates):
        pairs = zip(before.estimates, after.estimates, strict=True)
        if any(has_moved(*pair) for pair in pairs):
            return "moved"
    if (before.skeleton, old["criterion"], old["claim"]) != (after.skeleton, new["criterion"], new["claim"]):
        return "other"
    return "same" if old["value"] == new["value"] else "within"


def compare(old, new):
    """All claims of two versions, sorted by name: a list of Change.

    Parameters
    ----------
    old, new : dict, as from `read_claims`
    """
    changes = []
    for name in sorted(old | new):
        if name not in new:
            changes.append(Change(name, "gone", old[name]["value"], None))
        elif name not in old:
            changes.append(Change(name, "new", None, new[name]["value"]))
        else:
            kind = classify(old[name], new[name])
            changes.append(Change(name, kind, old[name]["value"], new[name]["value"]))
    return changes


def write(changes):
    """The changes as text, one line for each claim that a lecturer should look at."""
    lines = []
    for kind, title in KINDS.items():
        found = [change for change in changes if change.kind == kind]
        lines.append(f"{title}: {len(found)}")
        if kind not in COUNTED:
            lines += [f"  {change.name}: {describe(change)}" for change in found]
    return "\n".join(lines)


def describe(change):
    """The values of a change; one of them where they are equal, since its sentence or criterion is what changed."""
    values = dict.fromkeys(value for value in (change.before, change.after) if value is not None)
    return " -> ".join(values)


def main(arguments, root=ROOT):
    if len(arguments) not in (1, 2):
        raise SystemExit("from which commit? make changes SINCE=3d06fab, or: changes.py SINCE UNTIL")
    print(write(compare(*(read_claims(commit, root) for commit in (*arguments, None)[:2]))))


if __name__ == "__main__":
    main(sys.argv[1:])
