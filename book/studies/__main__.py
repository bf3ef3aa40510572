"""python -m studies: see of every study whether its table was made, or checked, under the present code and lock.

    python -m studies                 check the tables that were not, run those that cannot be checked or do not agree
    python -m studies NAME …          run these in full
    python -m studies NAME --only method=Pathfinder   run these rows of one study, keep the others
    python -m studies --check [NAME …]  compute a sample of rows again, and stamp the tables that agree; run nothing
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

SECONDS = 60  # CPU-seconds for rows of one study that are computed again


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
        asked = " and ".join(f"{column}={' or '.join(values)}" for column, values in wanted.items())
        known = "; ".join(f"{c}: {', '.join(sorted({str(case.get(c)) for case in study.CASES}))}" for c in wanted)
        raise SystemExit(f"{name} has no case with {asked}; there are: {known}")
    if wanted and (table is None or (study.MEASURED and table["machine"] != machine())):
        raise SystemExit(f"some rows of {name} cannot be run by themselves; `python -m studies {name}` runs all")
    origin = _tasks.describe_origin()
    print(f"{name}: {len(cases)} rows, about {sum(_checks.get_cost(c, study) for c in cases) / 3600:.1f} CPU-hours")
    if study.MEASURED:
        rows, machines = [case | study.compute(**case) for case in cases], [machine()]
    else:
        rows, machines = _tasks.run_tasks(study, cases, _tasks.find_folder(name), client)
    if wanted:
        old = {_key(_checks.get_case(row, study)): row for row in table["rows"]}
        for row in rows:
            known = old.get(_key(_checks.get_case(row, study)), {})
            kept = set() if study.MEASURED else _checks.get_uncompared(study) & known.keys()
            old[_key(_checks.get_case(row, study))] = row | {column: known[column] for column in kept}
        rows = [old[_key(case)] for case in study.CASES if _key(case) in old]  # one may be missing yet
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


def check(name, seconds=SECONDS, at_least=2):
    """Compute a sample of a table's rows again, in this process.

    Parameters
    ----------
    name : str
    seconds : float, CPU-seconds for the rows
    at_least : int, so many rows in any case, the cheapest ones

    Returns
    -------
    complaints : list of str, what does not agree
    stamp : dict, for a table that agrees
    """
    study, table = load(name), read(name)
    seed = int(_tasks.digest_code(study.__name__)[:16], 16)  # other code, other rows
    cases = _checks.draw_cases(study, getattr(study, "RECOMPUTED", study.CASES), seconds, seed, at_least=at_least)
    stamp = _stamp(study, len(cases), "equal bytes", _checks.find_spread(table, study))
    rows = {_key(_checks.get_case(row, study)): row for row in table["rows"]}
    exact, wrong = _checks.is_exact(table, machine()), []
    for case in cases:
        row, fresh = rows[_key(case)], study.compute(**case)
        if "skipped" in fresh:
            stamp["rows"] -= 1
            continue
        if any(row.get(key) != fresh[key] for key in fresh.keys() - _checks.get_uncompared(study)):
            stamp["agreement"] = "within errors"
        different, unknown = _checks.compare_row(row, fresh, table, study, exact=exact)
        wrong += [f"{case}: {words}" for words in different + [f"cannot be compared: {words}" for words in unknown]]
    return wrong if stamp["rows"] else ["no row could be computed here"], stamp


def check_and_stamp(name):
    """Check a table; where its rows agree, stamp it as checked under this code. Returns whether they do."""
    complaints, stamp = check(name)
    if complaints:
        print("\n  ".join([f"{name} does not agree, {len(complaints)} numbers:", *complaints[:20]]), flush=True)
        return False
    table = read(name)
    _write(
        name, {key: value for key, value in table.items() if key != "rows"} | {"checked": stamp, "rows": table["rows"]}
    )
    print(f"{name} agrees, {stamp['rows']} rows, {stamp['agreement']}: stamped at {stamp['commit'] or 'no commit'}")
    return True


def _key(case):
    return json.dumps(case, sort_keys=True)


def _stamp(study, n_rows, agreement, spread):
    return {
        "commit": find_commit(),
        **_tasks.describe_code(study.__name__),
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
    parser.add_argument("--check", action="store_true", help="compute some rows again, stamp what agrees, run nothing")
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
