"""What a chapter claims, shown as its last table and stored as data in the output; and what stands of many at once."""

import re

import numpy as np
from scipy import stats

from bookkit.report import Table

MIME = "application/vnd.bookkit.claims+json"
LEVEL = 0.025  # of a one-sided test: a 95 % interval lies on one side
WHOSE = ("ours", "an article's", "lore")  # lore: what is commonly said of PyMC, of samplers or of networks
STATED = ("", "first", "after")  # the criterion: with the page, before any result was computed, or when it was known
ESTIMATE = re.compile(r"(-?\d+\.?\d*) ± (\d+\.?\d*)(?: \(n=(\d+)\))?")  # as `report.monte_carlo` and `spread` write


def find_error(values, overlap=0.0):
    """Standard error of the mean of a few values.

    Source: Nadeau and Bengio (2003), Inference for the generalization error, Machine Learning 52.

    Parameters
    ----------
    values : array (n,), n at least 2, such as differences of scores over data sets
    overlap : float, 0 for independent values; where they come from random splits of one table, the rows that a split
        tests over those that it trains on, for then splits share rows and the error is larger

    Examples
    --------
    >>> from bookkit import claims
    >>> round(claims.find_error([1.0, 2.0, 3.0, 4.0]), 3)
    0.645
    """
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError(f"values={values} of shape {values.shape}; wanted: at least two finite numbers in a row")
    return float(values.std(ddof=1) * np.sqrt(1 / len(values) + overlap))


def is_above(values, limit=0.0, overlap=0.0):
    """Whether the mean of a few values is above a limit: a one-sided t test with p below 0.025.

    With few values "two standard errors" is no test at this level: five need 2.8, four 3.2 and three 4.3.

    Parameters
    ----------
    values, overlap : as in `find_error`
    limit : float, in the unit of the values

    Examples
    --------
    >>> from bookkit import claims
    >>> claims.is_above([1.0, 2.0, 3.0, 4.0]), claims.is_above([1.0, 2.0, 3.0, 4.0], limit=1.0)
    (True, False)
    """
    error = find_error(values, overlap)
    return bool(np.mean(values) - stats.t.ppf(1 - LEVEL, len(values) - 1) * error > limit)


def find_p(claim):
    """One-sided p of a claim that was added with `against`, from its printed value; None where there is no such test.

    Student's t where the value says over how many (``n=``) its error was taken, a normal otherwise. Of several numbers
    that must all be on one side the largest p counts. A claim that does not hold has 1.

    Parameters
    ----------
    claim : dict, as `Claims` stores it

    Examples
    --------
    >>> from bookkit import claims
    >>> claim = {"value": "2.50 ± 0.65 (n=4)", "against": 0.0, "holds": True}
    >>> round(claims.find_p(claim), 3)
    0.016
    """
    if "against" not in claim:
        return None
    if not claim["holds"]:
        return 1.0
    tests = np.array([(value, error, n or np.inf) for value, error, n in ESTIMATE.findall(claim["value"])], dtype=float)
    value, error, n = tests.T
    return float(stats.t.sf(abs(value - claim["against"]) / error, n - 1).max())


def judge_together(claims):
    """Which claims still stand when all of their family are judged together, by Holm's rule at `LEVEL`.

    Source: Holm (1979), A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6.

    Parameters
    ----------
    claims : list of dict, as in ``claims.json``; a claim without "family" belongs to that of its "chapter". One with
        "stands" was judged by its page, among more comparisons than are claims; that is taken over

    Returns
    -------
    list of True, False or, where there is no such test, None

    Examples
    --------
    By itself each of the two is below 0.025; together the limit is half of it for the first.

    >>> from bookkit import claims
    >>> same = {"against": 0.0, "holds": True, "chapter": "moons"}
    >>> pair = [same | {"value": value} for value in ("2.10 ± 1.00", "2.05 ± 1.00")]
    >>> [round(claims.find_p(claim), 3) for claim in pair]
    [0.018, 0.02]
    >>> claims.judge_together(pair)
    [False, False]
    """
    p, families, stands = [find_p(claim) for claim in claims], {}, [None] * len(claims)
    for k, claim in enumerate(claims):
        if "stands" in claim:
            stands[k] = claim["stands"]
        elif p[k] is not None:
            families.setdefault(claim.get("family", claim["chapter"]), []).append(k)
    for members in families.values():
        still = True
        for rank, k in enumerate(sorted(members, key=p.__getitem__)):
            still = still and p[k] < LEVEL / (len(members) - rank)
            stands[k] = still
    return stands


def find_verdicts(claims):
    """The verdict on each claim in words: list of "holds", "falls" or "does not hold".

    A claim *falls* that holds by itself, and no longer when all of its family are judged together (`judge_together`).

    Parameters
    ----------
    claims : list of dict, as in ``claims.json``

    Examples
    --------
    >>> from bookkit import claims
    >>> weak = {"value": "2.10 ± 1.00", "against": 0.0, "holds": True, "chapter": "moons"}
    >>> claims.find_verdicts([weak]), claims.find_verdicts([weak, weak])
    (['holds'], ['falls', 'falls'])
    """
    words = {True: "holds", None: "holds", False: "falls"}
    pairs = zip(claims, judge_together(claims), strict=True)
    return [words[stands] if claim["holds"] else "does not hold" for claim, stands in pairs]


def write_criterion(claim):
    """The criterion of a claim with when it was set, where that is known: before the first result, or after it.

    Parameters
    ----------
    claim : dict, as in ``claims.json``

    Examples
    --------
    >>> from bookkit import claims
    >>> claims.write_criterion({"criterion": "above 0", "stated": "after"})
    'above 0; set after the result'
    """
    said = {"": "", "first": "; stated first", "after": "; set after the result"}
    return claim["criterion"] + said[claim.get("stated", "")]


class Claims:
    """The claims of a chapter. Leave it as the last expression of a cell.

    Each claim is added with its value (text, as `bookkit.report` prints numbers), the criterion that was set for it
    and whether it holds. "Does not hold" and "falls" are results like any other.

    Examples
    --------
    >>> from bookkit.claims import Claims
    >>> found = Claims("moons")
    >>> found.add(
    ...     "bends", "The boundary bends.", value="2.50 ± 0.65", criterion="above 0", holds=True
    ... )
    >>> found.claims[0]["id"], found.claims[0]["holds"]
    ('bends', True)
    """

    def __init__(self, chapter):
        self.chapter = chapter
        self.claims = []

    def add(
        self, name, claim, *, value, criterion, holds, against=None, family=None, stands=None, whose="ours", stated=""
    ):
        """Add one claim.

        Parameters
        ----------
        name : str, unique in the chapter, e.g. "zero-start-is-stuck"
        claim : str, one sentence
        value : str, with its error where it has one
        criterion : str, what would make the claim hold
        holds : bool, by itself
        against : float, for a claim that the value is on one side of this number, by its error: it is judged together
            with the others of its family (`judge_together`)
        family : str, the name of that family; by default it is the chapter
        stands : bool, whether it holds together with others, where the page has judged more comparisons than it claims
        whose : str of `WHOSE`, who said the sentence
        stated : str of `STATED`, whether the criterion was written down before there was a result, or set after it
        """
        if name in [c["id"] for c in self.claims]:
            raise ValueError(f"claim {name!r} is there already; wanted: another name")
        if not isinstance(value, str):
            raise ValueError(f"value={value!r} for claim {name!r}; wanted: text, as `bookkit.report` prints numbers")
        if not isinstance(holds, bool | np.bool_):
            raise ValueError(f"holds={holds!r} for claim {name!r}; wanted: True or False")
        if against is not None and not ESTIMATE.search(value):
            raise ValueError(f"value={value!r} for claim {name!r}; wanted: a number with its error, to test it against")
        for given, known, word in ((whose, WHOSE, "whose"), (stated, STATED, "stated")):
            if given not in known:
                raise ValueError(f"{word}={given!r} for claim {name!r}; wanted: one of {known}")
        stored = {"id": name, "claim": claim, "value": value, "criterion": criterion, "holds": bool(holds)}
        if against is not None:
            stored |= {"against": float(against)} | ({"family": family} if family else {})
        if stands is not None:
            stored["stands"] = bool(holds and stands)
        stored |= {key: said for key, said in (("whose", whose), ("stated", stated)) if said not in ("ours", "")}
        self.claims.append(stored)

    def _repr_mimebundle_(self, include=None, exclude=None):
        verdicts = find_verdicts([{"chapter": self.chapter} | claim for claim in self.claims])
        rows = [
            [c["claim"], c["value"], write_criterion(c), verdict]
            for c, verdict in zip(self.claims, verdicts, strict=True)
        ]
        table = Table(["Claim", "Value", "Criterion", "Verdict"], rows, "What this chapter claims")
        return {"text/plain": repr(table), "text/html": table._repr_html_(), MIME: self.claims}
