"""What a chapter claims, shown as its last table and stored as data in the output."""

import numpy as np

from bnn.report import Table

MIME = "application/vnd.bnn.claims+json"


class Claims:
    """The claims of a chapter. Leave it as the last expression of a cell.

    Each claim is added with its value (text, as `bnn.report` prints numbers), the criterion that was set for it
    and whether it holds. "Does not hold" is a result like any other.
    """

    def __init__(self, chapter):
        self.chapter = chapter
        self.claims = []

    def add(self, name, claim, *, value, criterion, holds):
        """Add one claim.

        Parameters
        ----------
        name : str, unique in the chapter, e.g. "zero-start-is-stuck"
        claim : str, one sentence
        value : str, with its error where it has one
        criterion : str, what would make the claim hold
        holds : bool
        """
        if name in [c["id"] for c in self.claims]:
            raise ValueError(f"claim {name!r} is there already; wanted: another name")
        if not isinstance(value, str):
            raise ValueError(f"value={value!r} for claim {name!r}; wanted: text, as `bnn.report` prints numbers")
        if not isinstance(holds, bool | np.bool_):
            raise ValueError(f"holds={holds!r} for claim {name!r}; wanted: True or False")
        self.claims.append({"id": name, "claim": claim, "value": value, "criterion": criterion, "holds": bool(holds)})

    def _repr_mimebundle_(self, include=None, exclude=None):
        verdict = {True: "holds", False: "does not hold"}
        rows = [[c["claim"], c["value"], c["criterion"], verdict[c["holds"]]] for c in self.claims]
        table = Table(["Claim", "Value", "Criterion", "Verdict"], rows, "What this chapter claims")
        return {"text/plain": repr(table), "text/html": table._repr_html_(), MIME: self.claims}
