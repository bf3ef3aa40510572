"""Studies as tasks on Dask: in order, kept one by one, resumed, safe from dead workers, other code and each other."""

import io
import json
import os
import sys
import warnings
from functools import partial

import pytest
from distributed import Client, LocalCluster
from studies import _tasks

TOY = '''
import os, signal
from pathlib import Path

HERE = Path(__file__).parent
CASES = [{"name": name, "seed": seed} for name in "abcd" for seed in (1, 2)]


def compute(name, seed):
    """A row; every call leaves a trace. "fatal-x" kills its process once, "broken" cannot be computed."""
    with open(HERE / "calls.txt", "a") as file:
        file.write(f"{name}{seed} {os.getpid()}\\n")
    if name.startswith("fatal") and not (HERE / name).exists():
        (HERE / name).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "saves":
        import numpy as np
        import xarray as xr
        from bookkit import cache

        tree = xr.DataTree.from_dict({"posterior": xr.Dataset({"x": ("draw", np.arange(3.0))})})
        tree.attrs["run"] = "a run"
        cache.write(tree, HERE / "run.nc")
        return {"value": int(cache.read(HERE / "run.nc", "a run").identical(tree))}
    if name == "broken":
        raise ValueError("this row cannot be computed")
    return {"value": 10 * seed + len(name)}
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A study that costs nothing, in a folder that worker processes import from, too."""
    (tmp_path / "toy_study.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("SCHEDULER", raising=False)
    monkeypatch.setenv("JOBS", "2")
    sys.modules.pop("toy_study", None)
    _tasks._digest_loaded.cache_clear()  # a process of its own for each test
    import toy_study

    yield toy_study
    sys.modules.pop("toy_study", None)


@pytest.fixture(scope="module")
def client():
    """One worker, in a thread of this process."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


def calls(toy):
    path = toy.HERE / "calls.txt"
    return path.read_text().split("\n")[:-1] if path.exists() else []


def run(toy, tmp_path, client=None, cases=None, **options):
    blocks = _tasks.list_blocks(toy) if cases is None else [[case] for case in cases]
    return _tasks.run_tasks("toy_study", blocks, folder=tmp_path / "tasks", client=client, **options)


def values(rows):
    return [(row["name"], row["seed"], row["value"]) for row in rows]


EXPECTED = [(name, seed, 10 * seed + 1) for name in "abcd" for seed in (1, 2)]


def test_rows_come_in_the_order_of_the_cases_with_commit_and_versions(toy, tmp_path, client):
    rows, machines = run(toy, tmp_path, client)
    assert values(rows) == EXPECTED
    assert all(row["versions"].startswith("pymc ") and isinstance(row["commit"], str) for row in rows)
    assert len(machines) == len(list((tmp_path / "tasks").iterdir())) == 4  # a task for each name


def test_a_run_goes_on_where_it_was_stopped(toy, tmp_path, client):
    def stop(done, *_):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(toy, tmp_path, client, show=stop)
    assert len(list((tmp_path / "tasks").glob("*.json"))) == 2
    rows, _ = run(toy, tmp_path, client)
    assert values(rows) == EXPECTED
    done = len(calls(toy))
    assert done < 2 * len(EXPECTED)
    assert run(toy, tmp_path, client)[0] == rows
    assert len(calls(toy)) == done
    change(toy, "11 * seed")  # what is kept was of other code, and so is what this process has loaded
    with pytest.raises(RuntimeError, match="other code"):
        run(toy, tmp_path, client)


def edit_row(content):
    done = json.loads(content)
    done["rows"][0]["value"] += 1
    return json.dumps(done).encode()


@pytest.mark.parametrize("damage", [lambda content: content[:-9], lambda _: b"\xff\xfe", edit_row])
def test_a_file_that_was_damaged_or_edited_is_computed_again(toy, tmp_path, client, damage):
    run(toy, tmp_path, client)
    path = sorted((tmp_path / "tasks").iterdir())[0]
    path.write_bytes(damage(path.read_bytes()))
    rows, _ = run(toy, tmp_path, client)
    assert values(rows) == EXPECTED
    assert len(calls(toy)) == len(EXPECTED) + 2


def change(toy, text):
    path = toy.HERE / "toy_study.py"
    path.write_text(path.read_text().replace("10 * seed", text))


def test_what_a_study_says_that_it_reads_counts_and_the_library_by_its_number(toy, monkeypatch):
    path = toy.HERE / "toy_study.py"
    path.write_text(TOY + '\nREADS = (\n    "data/calibration.json", "_static/live/nuts.js",\n)\n')
    assert _tasks.read_source("toy_study")[1] == ["data/calibration.json", "_static/live/nuts.js"]
    before = _tasks.describe_code("toy_study")
    monkeypatch.setattr("bookkit.versions.read_rows", lambda path: [{"path": path.name}])
    after = _tasks.describe_code("toy_study")
    assert (before["code"] == after["code"], before["numbers"]) == (False, after["numbers"])
    monkeypatch.setattr("hbnn.NUMBERS", after["numbers"] + 1)
    assert _tasks.describe_code("toy_study") == after | {"numbers": after["numbers"] + 1}


def test_a_worker_that_has_other_code_or_loaded_it_before_it_changed_refuses(toy):
    refused = pytest.raises(RuntimeError, match=r"other code or other pinned packages.*after the last change")
    with refused:
        _tasks.compute_block("toy_study", toy.CASES[:1], "0" * 64, "")
    _tasks.compute_block("toy_study", toy.CASES[:1], _tasks.digest_code("toy_study"), "")
    change(toy, "11 * seed")
    with refused:
        _tasks.compute_block("toy_study", toy.CASES[:1], _tasks.digest_code("toy_study"), "")
    assert len(calls(toy)) == 1


def test_a_task_that_fails_is_named_and_the_others_are_kept(toy, tmp_path, client):
    cases = [{"name": name, "seed": 1} for name in ("a", "broken", "b")]
    with pytest.raises(RuntimeError, match=r"1 of 3 tasks failed; (?s:.*)'broken'.*ValueError: this row cannot be"):
        run(toy, tmp_path, client, cases=cases)
    assert len(list((tmp_path / "tasks").glob("*.json"))) == 2


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_task_done_again(toy, tmp_path):
    cases = [{"name": name, "seed": 1} for name in ("a", "fatal-once", "b", "saves")]
    rows, _ = run(toy, tmp_path, cases=cases)
    assert [row["name"] for row in rows] == [case["name"] for case in cases]
    assert rows[-1]["value"] == 1  # a worker process can store a posterior
    of_fatal = [line.split()[1] for line in calls(toy) if line.startswith("fatal")]
    assert len(of_fatal) == len(set(of_fatal)) == 2  # two processes tried: one died, one did it
    assert str(os.getpid()) not in {line.split()[1] for line in calls(toy)}


@pytest.fixture
def scheduler(monkeypatch):
    """$SCHEDULER, with a worker in a thread of this process."""
    with LocalCluster(n_workers=1, processes=False, threads_per_worker=1, dashboard_address=":0", protocol="tcp") as c:
        monkeypatch.setenv("SCHEDULER", c.scheduler_address)
        yield c


def test_a_scheduler_elsewhere_is_used(toy, tmp_path, scheduler):
    rows, _ = run(toy, tmp_path)
    assert values(rows) == EXPECTED
    assert {line.split()[1] for line in calls(toy)} == {str(os.getpid())}  # the worker of that cluster is a thread


def test_a_scheduler_with_other_packages_is_refused(toy, tmp_path, scheduler, monkeypatch):
    warn = partial(warnings.warn, "Mismatched versions found")  # as Dask does
    monkeypatch.setattr(Client, "get_versions", lambda client, check: warn())
    with pytest.raises(SystemExit, match=r"Mismatched versions found; wanted: tcp://host:port .* this environment"):
        run(toy, tmp_path)
    assert calls(toy) == []


def test_a_scheduler_that_is_not_there_or_has_no_workers_is_named(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("SCHEDULER", "tcp://127.0.0.1:9")
    monkeypatch.setattr(_tasks, "PATIENCE", "1s")
    monkeypatch.setattr(_tasks, "LONELY", 0.3)
    with pytest.raises(SystemExit, match=r"SCHEDULER=tcp://127.0.0.1:9: .*wanted: tcp://host:port of a running"):
        run(toy, tmp_path)
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp") as cluster:
        monkeypatch.setenv("SCHEDULER", cluster.scheduler_address)
        with pytest.raises(SystemExit, match=r"0/1 workers.*with workers that have this environment"):
            run(toy, tmp_path)


def test_a_scheduler_that_is_killed_ends_with_a_sentence_and_the_run_goes_on(toy, tmp_path, scheduler):
    def kill(done, *_):
        if done == 1:
            scheduler.close()

    with pytest.raises(RuntimeError, match=r"the scheduler is gone; wanted: the same command, which goes on"):
        run(toy, tmp_path, show=kill)
    assert 1 <= len(list((tmp_path / "tasks").glob("*.json"))) < 4


def test_the_bar_says_how_far_and_how_long_in_few_lines():
    out = io.StringIO()
    for done in range(1, 401):
        _tasks.draw_bar(done, 400, 600, 660, width=10, file=out)
    assert out.getvalue().count("\n") == 20
    assert "[#####.....] 200 of 400 tasks, 10 min, about 11 min to go\n" in out.getvalue()


def test_tasks_are_kept_where_the_reader_says(monkeypatch, tmp_path):
    monkeypatch.setenv("BNN_TASKS", str(tmp_path))
    assert _tasks.find_folder("toy") == tmp_path / "toy"
    monkeypatch.delenv("BNN_TASKS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert _tasks.find_folder("toy") == tmp_path / "cache" / "hbnn" / "tasks" / "toy"
