"""python -m studies: see of every study whether its table was made, or checked, under the present code and lock.

    python -m studies                 check the tables that were not, run those that cannot be checked or do not agree
    python -m studies NAME …          run these in full
    python -m studies NAME --only method=Pathfinder   run these rows of one study, keep the others
    python -m studies --check [NAME …]  compute two rows of each again, and stamp the tables that agree; run nothing
    python -m studies --list          say how it stands, change nothing

Rows are computed as tasks on Dask, on all cores of this machine; JOBS=1 takes one, SCHEDULER=tcp://… the workers of any
`dask scheduler`. A run that was stopped goes on where it was. Studies of what is measured run alone, row after row, and
are never compared.
"""

import argparse
import importlib
import json
import pkgutil
import sys
from pathlib import Path

from bookkit.repo import DATA, digest, find_commit, write_atomically
from bookkit.versions import machine

import studies
from studies import _checks, _tasks


def names():
    """All studies, by module name."""
    return sorted(m.name for m in pkgutil.iter_modules(studies.__path__) if not m.name.startswith("_"))


def load(name):
    """The module of a study."""
    if name not in names():
        raise SystemExit(f"there is no study {name!r}; there are: {', '.join(names())}")
    return importlib.import_module(f"studies.{name}")


def read(name):
    """The table of a study (dict), or None where there is none."""
    path = DATA / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def run(name, wanted=None, client=None):
    """Compute rows of a study and write its table, all or nothing.

    Where only some rows are wanted, the others are kept, and so are columns of theirs that nobody compares, such as
    seconds: side by side in a table, they are of one machine. Such a table's stamp is of no code any more.

    Parameters
    ----------
    name : str
    wanted : dict of str to list of str, such as {"method": ["Pathfinder"]}: the values that the cases may have
    client : distributed.Client, or None as in `_tasks.run_tasks`

    Raises
    ------
    SystemExit
        When some rows are wanted, and no case is like that, there is no table, or another machine measured it.
    """
    study, table, wanted = load(name), read(name), wanted or {}
    cases = [case for case in study.CASES if all(str(case.get(c)) in values for c, values in wanted.items())]
    if not cases:
        known = {c: sorted({str(case.get(c)) for case in study.CASES}) for c in wanted}
        raise SystemExit(f"{name} has no case with {wanted}; there are: {known}")
    if wanted and (table is None or (study.MEASURED and table["machine"] != machine())):
        raise SystemExit(f"some rows of {name} cannot be run by themselves; `python -m studies {name}` runs all")
    origin = _tasks.describe_origin()
    print(f"{name}: {len(cases)} rows, about {sum(_checks.get_cost(study, c) for c in cases) / 3600:.1f} CPU-hours")
    if study.MEASURED:
        rows, machines = [case | study.compute(**case) for case in cases], [machine()]
    else:
        rows, machines = _tasks.run_tasks(study, cases, _tasks.find_folder(name), client)
    if wanted:
        every = {_checks.name_case(row, study): row for row in table["rows"]}
        unmoved = set() if study.MEASURED else _checks.get_uncompared(study)
        for key, row in ((_checks.name_case(row, study), row) for row in rows):
            every[key] = row | {column: every[key][column] for column in unmoved & every.get(key, {}).keys()}
        keys = [_checks.name_case(case, study) for case in study.CASES]
        rows = [every[key] for key in keys if key in every]  # one may be missing yet
        machines.append(table["machine"])
        table.get("checked", {}).pop("code", None)  # what the others were checked by, they were
    else:
        spread = _checks.find_spread((table or {}) | {"rows": rows}, study)
        checked = {} if study.MEASURED else {"checked": _stamp(study, len(rows), "made", spread)}
        table = {"study": name, "measured": study.MEASURED, **origin, **checked}
    same = all(found == machines[0] for found in machines)
    table["machine"] = machines[0] if same else dict.fromkeys(machines[0], "several")
    _write(name, table | {"digest": digest(rows), "rows": rows})
    print(f"wrote {name}.json: {len(cases)} of {len(rows)} rows anew")


def check(name, n_rows=2, seconds=30, seed=None):
    """Compute some rows of a table again, in this process: without a seed other rows at another commit.

    Returns
    -------
    complaints : list of str, what does not agree
    stamp : dict, for a table that agrees
    """
    study, table = load(name), read(name)
    stamp = _stamp(study, 0, "equal bytes", _checks.find_spread(table, study))
    rows = {_checks.name_case(row, study): row for row in table["rows"]}
    exact, wrong = _checks.is_exact(table, machine()), []
    drawn = int(digest([name, find_commit() if seed is None else seed])[:16], 16)
    for case in _checks.draw_cases(study, n_rows, seconds, drawn):
        row, fresh = rows[_checks.name_case(case, study)], study.compute(**case)
        if "skipped" in fresh:
            continue
        stamp["rows"] += 1
        if any(row.get(key) != fresh[key] for key in fresh.keys() - _checks.get_uncompared(study)):
            stamp["agreement"] = "within errors"
        wrong += [f"{case}: {words}" for words in _checks.compare_row(row, fresh, table, study, exact=exact)]
    return wrong if stamp["rows"] else ["no row could be computed here"], stamp


def check_and_stamp(name):
    """Check a table; where its rows agree, stamp it as checked under this code. Returns whether they do."""
    complaints, stamp = check(name)
    if complaints:
        print("\n  ".join([f"{name} does not agree, {len(complaints)} numbers:", *complaints[:20]]), flush=True)
        return False
    table = read(name)
    rows = table.pop("rows")
    _write(name, table | {"checked": stamp, "rows": rows})
    print(f"{name} agrees, {stamp['rows']} rows, {stamp['agreement']}: stamped at {stamp['commit'] or 'no commit'}")
    return True


def _stamp(study, n_rows, agreement, spread):
    return {
        "commit": find_commit(),
        **_tasks.describe_code(study),
        "identity": machine(),
        "rows": n_rows,
        "agreement": agreement,
        "spread": {c: [float(f"{sd:.4g}"), dof, varies] for c, (sd, dof, varies) in sorted(spread.items())},
    }


def _write(name, table):
    write_atomically(DATA / f"{name}.json", json.dumps(table, indent=1) + "\n")


def list_in_order():
    """All studies, those first whose tables other studies read."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in Path(studies.__path__[0]).glob("*.py"))
    return sorted(
        names(), key=lambda name: f'read_data("{name}")' not in sources and f'"data/{name}.json"' not in sources
    )


def main(arguments=None):
    """What the module's first lines say. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m studies", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true", help="compute two rows again, stamp what agrees, run nothing")
    parser.add_argument("--only", metavar="COLUMN=VALUE", action="append", default=[],
                        help="run some rows of one study, keep the others; given twice, both columns must hold, and "
                        "of one column either value")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="say how it stands, change nothing")
    asked = parser.parse_args(arguments)
    if asked.only and (len(asked.names) != 1 or not all("=" in text for text in asked.only)):
        parser.error("--only wants one study, and a column with its value: replication --only method=Pathfinder")
    wanted = {}
    for column, _, value in (text.partition("=") for text in asked.only):
        wanted.setdefault(column, []).append(value)
    failed = False
    for name in asked.names or list_in_order():
        study = load(name)
        state, why = _checks.find_state(study, read(name))
        if asked.check or asked.list or not asked.names:
            print(f"{name}: {state}, {why}", flush=True)
        if asked.list:
            continue
        if asked.names and (not asked.check or (state == "fine" and not study.MEASURED)):
            state = "check" if asked.check else "run"  # as somebody asks for it
        wrong = state == "run" or (state == "check" and not check_and_stamp(name))
        if wrong and not asked.check:
            try:
                run(name, wanted)
            except RuntimeError as error:
                raise SystemExit(str(error)) from None
        failed |= wrong and asked.check
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
