"""Is a table still what its study computes? Which rows to compute again, and how far they may lie from the table's.

Under the settings that made a table, a row must come out again, to 1e-9. Under others (another lock, another kind of
processor) a sampler draws other numbers, and a row may lie as far away as chance takes it: five Monte Carlo errors
where the row has them, else a quantile of Student's t times the standard deviation over rows of the table that differ
in their seed alone; where these are few, over all kinds of rows together, or as the table's stamp says (`spread`: how
far rows lay apart that were once computed with other seeds). What none of them tells cannot be compared, and is never
passed over.
"""

import json
from functools import partial
from itertools import groupby

import numpy as np
from bookkit.repo import digest
from bookkit.versions import read_versions
from scipy import stats

from studies import _tasks

STAMP = {"commit", "versions"}  # of a row, where it comes from
UNDER = {"code": "its code or a table that it reads", "lock": "the lock", "numbers": "hbnn.NUMBERS"}
RARE = ("divergences", "flat_directions", "pareto_bad", "passed")  # counts: one more or less is chance
ONE_POINT = 0.112  # percent: one of 900 points may change sides where it did for no seed of the table
CHANCE = 1e-5  # of a false alarm, each number, under other settings
ENOUGH = 4  # degrees of freedom of a standard deviation


def name_case(row, study, without=None):
    """The part of a row that was given, as text; without the seed it names the row's kind."""
    return json.dumps({key: row.get(key) for key in study.CASES[0] if key != without}, sort_keys=True)


def get_cost(study, case):
    """CPU-seconds of a row (float): the study's `estimate`, else a guess."""
    return getattr(study, "estimate", lambda case: 30)(case)


def get_uncompared(study):
    """The columns that nobody compares, such as seconds (set)."""
    return set(getattr(study, "UNCOMPARED", ()))


def draw_cases(study, n, seconds, seed):
    """Draw `n` cases (list of dict), if possible of several kinds, among those whose rows take at most so many seconds
    of the CPU; where these are too few, the cheapest others follow.
    """
    cases = getattr(study, "RECOMPUTED", study.CASES)
    mixed = [cases[i] for i in np.random.default_rng(seed).permutation(len(cases))]
    kinds = [name_case(case, study, "seed") for case in mixed]
    costs = [max(get_cost(study, case), seconds) for case in mixed]
    order = sorted(range(len(mixed)), key=lambda i: (costs[i], kinds[:i].count(kinds[i])))
    return [mixed[i] for i in order[:n]]


# --- how far seeds differ


def measure_spread(rows, study):
    """How far rows differ that differ in their seed alone, all kinds together: dict of column to
    [relative standard deviation, degrees of freedom, whether it differs where it is no number].
    """
    found, kind = {}, partial(name_case, study=study, without="seed")
    for alike in (list(alike) for _, alike in groupby(sorted(rows, key=kind), key=kind)):
        for column in alike[0].keys() - STAMP - study.CASES[0].keys() - get_uncompared(study):
            total, dof, varies = found.setdefault(column, [0.0, 0, False])
            values = [_read(row.get(column)) for row in alike]
            numbers = [value for value in values if value is not None]
            if len(numbers) < len(values):
                varies |= len({json.dumps(row.get(column)) for row in alike}) > 1
            if not numbers:
                dof += len(alike) - 1
            elif len({value.shape for value in numbers}) == 1:
                scale = np.mean(np.abs(numbers)) or 1.0
                total += float(np.sum(np.var(numbers, axis=0) / scale**2) * len(numbers) / numbers[0].size)
                dof += len(numbers) - 1
            found[column] = [total, dof, varies]
    return {c: [float(np.sqrt(total / dof)), dof, varies] for c, (total, dof, varies) in found.items() if dof}


def find_spread(table, study):
    """How far seeds differ in a table's rows or, where it had more of them, in its stamp; as `measure_spread`."""
    found = measure_spread(table["rows"], study)
    kept = table.get("checked", {}).get("spread", {})
    return found | {column: value for column, value in kept.items() if value[1] > found.get(column, [0, 0])[1]}


# --- a row and its like


def compare_row(row, fresh, table, study, *, exact):
    """What is wrong with a row of a table whose case `study.compute` has answered with `fresh` (list of str); `exact`
    says whether the settings are those of the table.
    """
    columns, known = sorted({*study.CASES[0], *fresh}), sorted(row.keys() - STAMP)
    if known != columns:
        return [f"columns {known}, now {columns}"]
    spread, wrong = find_spread(table, study), []
    for column in fresh.keys() - get_uncompared(study):
        if _is_equal(row[column], fresh[column], 0):
            continue
        tolerance = 0 if exact else _find_tolerance(column, row, fresh, table, spread.get(column), study)
        if not _is_equal(row[column], fresh[column], tolerance or 0):
            why = "cannot be compared: " if tolerance is None else ""
            wrong.append(f"{why}{column}: {fresh[column]}, in the table {row[column]}")
    return wrong


def _read(value):
    """A number, or numbers in a list, as an array (number,); None for anything else."""
    if value is None or isinstance(value, bool | str):
        return None
    try:
        found = np.ravel(np.array(value, dtype=float))
    except (TypeError, ValueError):
        return None
    return found if found.size and np.isfinite(found).all() else None


def _is_equal(old, new, tolerance):
    a, b = _read(old), _read(new)
    if a is None or b is None:
        return tolerance == np.inf or json.dumps(old) == json.dumps(new)
    return a.shape == b.shape and bool(np.all(abs(a - b) <= 1e-9 * abs(a) + 1e-12 + tolerance))


def _find_tolerance(column, row, fresh, table, spread, study):
    """How far a number may lie from that in the table; inf where it may be anything, None where nobody knows."""
    old, new = _read(row[column]), _read(fresh[column])
    sd, dof, varies = spread or (0.0, 0, False)
    if old is None or new is None:
        # whether chains agreed is luck near the limit: a verdict that falls both ways in the table may do so again
        varies |= column.endswith("converged") and len({other.get(column) for other in table["rows"]}) > 1
        return np.inf if varies else 0 if dof >= ENOUGH else None
    size = abs(new).mean()
    if "seed" not in study.CASES[0]:
        return 1e-6 * size + 1e-9
    errors = [_read(found.get(f"{column}_mcse")) for found in (row, fresh)]
    if all(error is not None for error in errors) and row.get("converged", True) and fresh.get("converged", True):
        return 5 * np.hypot(*errors)[0] + 1e-3 * size  # one of 900 points may change sides where no draw let it
    kind = name_case(row, study, "seed")
    alike = [_read(other.get(column)) for other in table["rows"] if name_case(other, study, "seed") == kind]
    own = [value for value in alike if value is not None and value.shape == new.shape]
    if len(own) > ENOUGH:
        sd, dof = np.sqrt(np.var(own, axis=0, ddof=1).mean()), len(own) - 1
    else:
        sizes = [abs(value).mean() for other in table["rows"] if (value := _read(other.get(column))) is not None]
        sd *= max(size, 0.1 * np.median(sizes))
    if dof < ENOUGH:
        return None
    if column.rpartition(": ")[2] in RARE:
        sd = max(sd, 1.0)
    numbers = 2 if new.size > 1 else 1  # those of a list are not equally sure
    grain = ONE_POINT if column.endswith("accuracy") else 1e-6 * size
    return numbers * stats.t.isf(CHANCE / 2, dof) * np.sqrt(2) * sd + grain


# --- a table


def is_exact(table, here):
    """Whether rows must come out again to the last digits: a table was made, or found equal, under the settings `here`
    (of `bookkit.versions.machine`). Of the lock, the versions that the table names count.
    """
    stamp, origins = table.get("checked", {}), [table["machine"]]
    if stamp.get("agreement") == "equal bytes" and "several" not in table["machine"].values():
        origins.append(stamp["identity"])  # of rows of several machines, those that were checked tell nothing of others
    alike = [{**found, "requirements": ""} == {**here, "requirements": ""} for found in origins]
    return any(alike) and table["versions"] == dict(read_versions(tuple(table["versions"])))


def find_state(study, table):
    """What is to be done about a table (dict or None): "fine", "check" (compute some rows again) or "run" (all of
    them); and why, in a few words.
    """
    if table is None:
        return "run", "there is no table"
    if table["digest"] != digest(table["rows"]):
        return "run", "its rows were edited by hand"
    if sorted(name_case(case, study) for case in study.CASES) != sorted(name_case(r, study) for r in table["rows"]):
        return "run", "its rows are not the cases of the study"
    if study.MEASURED:
        return "fine", f"a record of {table['commit']}: what is measured is not compared"
    stamp, present = table.get("checked", {}), _tasks.describe_code(study)
    if other := [what for key, what in UNDER.items() if stamp.get(key) != present[key]]:
        return "check", f"not checked since {' and '.join(other)} changed"
    return "fine", f"{stamp['rows']} rows, {stamp['agreement']}, at {stamp['commit']}"
