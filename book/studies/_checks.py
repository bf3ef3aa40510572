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


def get_case(row, study):
    """The part of a row that was given."""
    return {key: row.get(key) for key in study.CASES[0]}


def get_kind(row, study):
    """What rows that differ in their seed alone have in common, as text."""
    return json.dumps({key: row.get(key) for key in study.CASES[0] if key != "seed"}, sort_keys=True)


def get_cost(case, study):
    """CPU-seconds of a row (float): the study's `estimate`, else a guess."""
    return getattr(study, "estimate", lambda case: 30)(case)


def get_uncompared(study):
    """The columns that nobody compares, such as seconds (set)."""
    return set(getattr(study, "UNCOMPARED", ()))


def list_by_kind(rows, study):
    """The rows of each kind: list of lists."""
    key = partial(get_kind, study=study)
    return [list(alike) for _, alike in groupby(sorted(rows, key=key), key=key)]


def draw_cases(study, cases, seconds, seed, *, at_least=0):
    """Draw cases whose rows together take at most `seconds` of the CPU, of as many kinds as fit; the first row of a
    process (`FIRST`) counts with them. The cheapest are added until there are `at_least` so many. List of dict.
    """
    rng = np.random.default_rng(seed)
    mixed = [cases[i] for i in rng.permutation(len(cases))]
    turn, count = [], {}
    for case in mixed:  # the first of each kind, then the second of each, …
        kind = get_kind(case, study)
        count[kind] = count.get(kind, 0) + 1
        turn.append(count[kind])
    chosen, left = [], seconds - getattr(study, "FIRST", 0)
    for i in np.argsort(turn, kind="stable"):
        if get_cost(mixed[i], study) <= left:
            chosen.append(mixed[i])
            left -= get_cost(mixed[i], study)
    rest = sorted((case for case in mixed if case not in chosen), key=lambda case: get_cost(case, study))
    return chosen + rest[: max(at_least - len(chosen), 0)]


# --- how far seeds differ


def measure_spread(rows, study):
    """How far rows differ that differ in their seed alone, all kinds together: dict of column to
    [relative standard deviation, degrees of freedom, whether it differs where it is no number].
    """
    found = {}
    for alike in list_by_kind(rows, study):
        for column in alike[0].keys() - STAMP - study.CASES[0].keys() - get_uncompared(study):
            total, dof, varies = found.setdefault(column, [0.0, 0, False])
            values = [_read(row.get(column)) for row in alike]
            numbers = [value for value in values if value is not None]
            if len(numbers) < len(values):
                varies |= len({json.dumps(row.get(column)) for row in alike}) > 1
            if not numbers:
                dof += len(alike) - 1
            elif len({value.shape for value in numbers}) == 1:
                numbers = np.array(numbers)
                scale = abs(numbers).mean() or 1.0
                total += float((((numbers - numbers.mean(axis=0)) / scale) ** 2).mean(axis=1).sum())
                dof += len(numbers) - 1
            found[column] = [total, dof, bool(varies)]
    return {c: [float(np.sqrt(total / max(dof, 1))), dof, varies] for c, (total, dof, varies) in found.items() if dof}


def find_spread(table, study):
    """How far seeds differ in a table's rows or, where it had more of them, in its stamp; as `measure_spread`."""
    found = measure_spread(table["rows"], study)
    kept = table.get("checked", {}).get("spread", {})
    return found | {column: value for column, value in kept.items() if value[1] > found.get(column, [0, 0])[1]}


# --- a row and its like


def compare_row(row, fresh, table, study, *, exact):
    """What is wrong with a row of a table whose case `study.compute` has answered with `fresh`; `exact` says whether
    the settings are those of the table. Two lists of str: the columns that lie too far away, with both values, and
    those of which nobody knows how far they may lie.
    """
    different, unknown = [], []
    if set(row) - STAMP != set(study.CASES[0]) | set(fresh):
        return [f"columns {sorted(set(row) - STAMP)}, now {sorted(set(study.CASES[0]) | set(fresh))}"], []
    spread = find_spread(table, study)
    alike = [other for other in table["rows"] if get_kind(other, study) == get_kind(row, study)]
    for column in fresh.keys() - get_uncompared(study):
        old, new = row[column], fresh[column]
        if _is_equal(old, new):
            continue
        words = f"{column}: {new}, in the table {old}"
        tolerance = 0 if exact else _find_tolerance(column, row, fresh, alike, table["rows"], spread, study)
        if tolerance is None:
            unknown.append(words)
        elif not _is_within(_read(old), _read(new), tolerance):
            different.append(words)
    return different, unknown


def _read(value):
    """A number, or numbers in a list, as an array (number,); None for anything else."""
    if value is None or isinstance(value, bool | str):
        return None
    try:
        found = np.ravel(np.array(value, dtype=float))
    except (TypeError, ValueError):
        return None
    return found if found.size and np.isfinite(found).all() else None


def _is_equal(old, new):
    a, b = _read(old), _read(new)
    if a is None or b is None:
        return json.dumps(old) == json.dumps(new)
    return a.shape == b.shape and bool(np.all(abs(a - b) <= 1e-9 * abs(a) + 1e-12))


def _is_within(old, new, tolerance):
    if old is None or new is None:
        return tolerance == np.inf
    return old.shape == new.shape and bool(np.all(abs(old - new) <= tolerance))


def _find_tolerance(column, row, fresh, alike, rows, spread, study):
    """How far a number may lie from that in the table; inf where it may be anything, None where nobody knows."""
    old, new = _read(row[column]), _read(fresh[column])
    sd, dof, varies = spread.get(column, (0.0, 0, False))
    if old is None or new is None:
        # whether chains agreed is luck near the limit: a verdict that falls both ways in the table may do so again
        varies |= column.endswith("converged") and len({other[column] for other in rows}) > 1
        return np.inf if varies else 0 if dof >= ENOUGH else None
    size = abs(new).mean()
    if "seed" not in study.CASES[0]:
        return 1e-6 * size + 1e-9
    errors = [_read(found.get(f"{column}_mcse")) for found in (row, fresh)]
    if all(error is not None for error in errors) and row.get("converged", True) and fresh.get("converged", True):
        one_point = 1e-3 * size  # one of 900 may change sides where no draw in the table let it
        return 5 * np.hypot(*errors)[0] + one_point
    own = [value for other in alike if (value := _read(other[column])) is not None and value.shape == new.shape]
    if len(own) > ENOUGH:
        sd, dof = np.sqrt(np.var(own, axis=0, ddof=1).mean()), len(own) - 1
    else:
        sizes = [abs(value).mean() for other in rows if (value := _read(other[column])) is not None]
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

    def leave_lock(found):
        return {key: value for key, value in found.items() if key != "requirements"}

    present = dict(read_versions(tuple(table["versions"])))
    stamp = table.get("checked", {})
    origins = [table["machine"]]
    if stamp.get("agreement") == "equal bytes" and "several" not in table["machine"].values():
        origins.append(stamp["identity"])  # of rows of several machines, those that were checked tell nothing of others
    return table["versions"] == present and leave_lock(here) in map(leave_lock, origins)


def find_state(study, table):
    """What is to be done about a table (dict or None): "fine", "check" (compute some rows again) or "run" (all of
    them); and why, in a few words.
    """
    if table is None:
        return "run", "there is no table"
    if table["digest"] != digest(table["rows"]):
        return "run", "its rows were edited by hand"
    cases = [json.dumps(case, sort_keys=True) for case in study.CASES]
    if sorted(cases) != sorted(json.dumps(get_case(row, study), sort_keys=True) for row in table["rows"]):
        return "run", "its rows are not the cases of the study"
    if study.MEASURED:
        return "fine", f"a record of {table['commit']}: what is measured is not compared"
    stamp = table.get("checked", {})
    present = _tasks.describe_code(study.__name__)
    if other := [what for key, what in UNDER.items() if stamp.get(key) != present[key]]:
        return "check", f"not checked since {' and '.join(other)} changed"
    return "fine", f"{stamp['rows']} rows, {stamp['agreement']}, at {stamp['commit']}"
