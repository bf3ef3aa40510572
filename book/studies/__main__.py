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
import tempfile
from functools import partial
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


def run(name, client=None):
    """Compute all rows of a study and write its table, all or nothing.

    Parameters
    ----------
    name : str
    client : distributed.Client, or None as in `_tasks.run_tasks`
    """
    study, origin, stamp = load(name), _tasks.describe_origin(), {}
    if study.MEASURED:
        rows, machines = _measure(name, study, study.CASES), [machine()]
    else:
        hours = sum(_checks.get_cost(case, study) for case in study.CASES) / 3600
        print(f"{name}: {len(study.CASES)} rows, about {hours:.1f} CPU-hours in all", flush=True)
        rows, machines = _compute(study, _tasks.list_blocks(study), _tasks.find_folder(name), client)
        spread = _checks.find_spread((read(name) or {}) | {"rows": rows}, study)
        stamp = {"checked": _stamp(study, len(rows), "made", spread)}
    table = {
        "study": name,
        "measured": study.MEASURED,
        **origin,
        "machine": _join_machines(machines),
        **stamp,
        "digest": digest(rows),
        "rows": rows,
    }
    _write(name, table)
    print(f"wrote {name}.json with {len(rows)} rows, digest {table['digest'][:16]}")


def run_rows(name, wanted, client=None):
    """Compute some rows of a table anew, or for the first time, and keep the others; its stamp is of no code any more.

    What is never compared, such as seconds, stays as it was: side by side in a table, it is of one machine. So rows of
    what is measured are run by themselves only on the machine that measured the others.

    Parameters
    ----------
    name : str
    wanted : dict of str to list of str, such as {"method": ["Pathfinder"]}: the values that the cases may have
    client : distributed.Client, or None as in `_tasks.run_tasks`

    Raises
    ------
    SystemExit
        When there is no table, another machine measured it, or no case is like that.
    """
    study, table = load(name), read(name)
    blocks = [
        [case for case in block if all(str(case.get(column)) in values for column, values in wanted.items())]
        for block in _tasks.list_blocks(study)
    ]
    if not any(blocks):
        asked = " and ".join(f"{column}={' or '.join(values)}" for column, values in wanted.items())
        known = "; ".join(f"{c}: {', '.join(sorted({str(case.get(c)) for case in study.CASES}))}" for c in wanted)
        raise SystemExit(f"{name} has no case with {asked}; there are: {known}")
    old = {_key(_checks.get_case(row, study)): row for row in (table or {"rows": []})["rows"]}
    if table is None or (study.MEASURED and table["machine"] != machine()):
        raise SystemExit(f"some rows of {name} cannot be run by themselves; `python -m studies {name}` runs all")
    if study.MEASURED:
        rows, machines = _measure(name, study, [case for block in blocks for case in block]), [machine()]
        old |= {_key(_checks.get_case(row, study)): {} for row in rows}
    else:
        rows, machines = _compute(study, [block for block in blocks if block], _tasks.find_folder(name), client)
    for row in rows:
        key = _key(_checks.get_case(row, study))
        known = old.get(key, {})
        seconds = {column: known[column] for column in _checks.get_uncompared(study) & known.keys()}
        old[key] = row | seconds
    rows = [old[_key(case)] for case in study.CASES if _key(case) in old]  # one may be missing yet
    table |= {"machine": _join_machines([table["machine"], *machines]), "digest": digest(rows), "rows": rows}
    table.get("checked", {}).pop("code", None)  # what the others were checked by, they were
    _write(name, table)
    print(f"wrote {name}.json: {sum(map(len, blocks))} of {len(rows)} rows anew", flush=True)


def _key(case):
    return json.dumps(case, sort_keys=True)


def check(name, client=None, seconds=SECONDS):
    """Compute a sample of a table's rows again; where they agree, stamp the table as checked under this code.

    Parameters
    ----------
    name : str
    client : distributed.Client, or None as in `_tasks.run_tasks`
    seconds : float, CPU-seconds for the rows

    Returns
    -------
    bool
        Whether the rows agree. What does not is printed.
    """
    study, table = load(name), read(name)
    seed = int(_tasks.digest_code(study.__name__)[:16], 16)  # other code, other rows
    cases = _checks.draw_cases(study, study.CASES, seconds, seed, at_least=2)
    n_kinds = len(_checks.list_by_kind(cases, study)), len(_checks.list_by_kind(study.CASES, study))
    print(f"{name}: {len(cases)} of {len(study.CASES)} rows again, {n_kinds[0]} of {n_kinds[1]} kinds", flush=True)
    with tempfile.TemporaryDirectory() as folder:  # nothing that was computed before is taken for a row again
        found, _ = _compute(study, [[case] for case in cases], Path(folder), client)
    stamp = _stamp(study, len(cases), "equal bytes", _checks.find_spread(table, study))
    rows = {_key(_checks.get_case(row, study)): row for row in table["rows"]}
    exact, wrong = _checks.is_exact(table, machine()), []
    for case, computed in zip(cases, found, strict=True):
        fresh = {key: value for key, value in computed.items() if key not in _checks.STAMP | case.keys()}
        if "skipped" in fresh:
            stamp["rows"] -= 1
            continue
        row, compared = rows[_key(case)], fresh.keys() - _checks.get_uncompared(study)
        if any(row.get(key) != fresh[key] for key in compared):
            stamp["agreement"] = "within errors"
        different, unknown = _checks.compare_row(row, fresh, table, study, exact=exact)
        wrong += [f"  {case}: {words}" for words in different]
        wrong += [f"  {case}: cannot be compared: {words}" for words in unknown]
    if wrong or not stamp["rows"]:
        print("\n".join([f"{name} does not agree, {len(wrong)} numbers:", *wrong[:20]]), flush=True)
        return False
    rows = table.pop("rows")
    _write(name, table | {"checked": stamp, "rows": rows})
    print(f"{name} agrees, {stamp['agreement']}: stamped at {stamp['commit'] or 'no commit'}", flush=True)
    return True


def settle(name):
    """Do what a table needs, least first: nothing, a check, a whole run."""
    state, why = _checks.find_state(name, load(name), read(name))
    print(f"{name}: {state}, {why}", flush=True)
    if state == "run" or (state == "check" and not check(name)):
        run(name)


def _compute(study, blocks, folder, client):
    """Rows and machines of blocks of cases."""
    estimate = partial(_checks.get_cost, study=study)
    return _tasks.run_tasks(
        study.__name__, blocks, folder=folder, estimate=estimate, client=client, show=_tasks.draw_bar
    )  # fmt: skip


def _join_machines(machines):
    """What a table says of the machines that computed it (dict)."""
    return machines[0] if all(found == machines[0] for found in machines) else dict.fromkeys(machines[0], "several")


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


def _measure(name, study, cases):
    """Rows one after the other in this process, undisturbed."""
    rows = []
    for i, case in enumerate(cases, 1):
        print(f"{name}: {i} of {len(cases)}  {case}", flush=True)
        rows.append(case | study.compute(**case))
    return rows


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
    parser.add_argument("--only", metavar="COLUMN=VALUE", action="append",
                        help="run some rows of one study, keep the others; given twice, both columns must hold, and "
                        "of one column either value")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="say how it stands, change nothing")
    asked = parser.parse_args(arguments)
    failed = False
    if asked.only:
        if len(asked.names) != 1 or not all("=" in text for text in asked.only):
            parser.error("--only wants one study, and a column with its value: replication --only method=Pathfinder")
        wanted = {}
        for text in asked.only:
            column, value = text.split("=", 1)
            wanted.setdefault(column, []).append(value)
        run_rows(asked.names[0], wanted)
        return 0
    for name in asked.names or list_in_order():
        study, table = load(name), read(name)
        state, why = _checks.find_state(name, study, table)
        if asked.list:
            print(f"{name}: {state}, {why}")
            continue
        try:
            if not asked.check:
                run(name) if asked.names else settle(name)
            elif state == "run" or study.MEASURED:
                print(f"{name}: {state}, {why}", flush=True)
                failed |= state == "run"
            elif asked.names or state == "check":
                failed |= not check(name)
        except RuntimeError as error:
            raise SystemExit(str(error)) from None
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
