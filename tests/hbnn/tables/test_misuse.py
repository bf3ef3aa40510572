"""What goes wrong with a reader's files, and with a reader's patience: nothing of theirs is lost, whatever is finished
stays, and one sentence says what there is."""

import errno
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hbnn import sampling, tables
from hbnn.__main__ import main as command
from hbnn.tables import _answer, _compare, _fit, _read, _write
from made import make_people
from studies import advice
from test_answer import fit_made_up

HERE = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}  # for children
ASKED = ["t.csv", "--group", "g", "--outcome", "y", "--rivals", "line"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A table, rows to predict, and files of somebody else, in the folder where the command is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_answer, "compile_network", lambda *_, **__: None)
    monkeypatch.setattr(_compare, "QUIET", 0.2)
    told = lambda rows, train, held, **_: tables.predict(fit_made_up(rows), held)  # noqa: E731
    monkeypatch.setattr(_compare, "predict_fold", told)
    frame = advice.make_known("none", 1, n_groups=8, n_rows=8)
    frame.to_csv("t.csv", index=False)
    frame[:5].to_csv("asked.csv", index=False)
    Path("mine.csv").write_text("a,b\n1,2\n")
    Path("there").mkdir()
    Path("link.csv").symlink_to("t.csv")
    os.link("t.csv", "hard.csv")
    return tmp_path


def read_all():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


PLACES = {
    "t.csv": "is the table, too",
    "./there/../t.csv": "is the table, too",
    "link.csv": "is the table, too",
    "hard.csv": "is the table, too",
    "asked.csv": "is predict, too",
    "mine.csv": "is there already, and this tool did not write it; wanted: another name, or --force",
    "there": "is a folder",
    "no/such/x": "is a folder, or in one that does not exist",
}


@pytest.mark.parametrize("words", [[], ["--force"]])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ["out", "report", "save"])
def test_a_file_that_is_not_ours_is_refused_before_anything_is_computed(capsys, monkeypatch, what, place, words):
    monkeypatch.setattr(_answer, "cross_validate", lambda *_, **__: pytest.fail("computed"))
    if place == "mine.csv" and words:
        return  # see below
    before = read_all()
    assert command([*ASKED, "--predict", "asked.csv", f"--{what}", place, *words]) == 1
    said = capsys.readouterr().err
    assert PLACES[place] in said
    assert f"--{what} '" in said
    assert read_all() == before


@pytest.mark.parametrize("pair", [("out", "report"), ("out", "save"), ("report", "save")])
def test_no_two_files_are_one(capsys, pair):
    before = read_all()
    assert command([*ASKED, f"--{pair[0]}", "a.x", f"--{pair[1]}", "./a.x"]) == 1
    assert f"is {pair[0]}, too" in capsys.readouterr().err
    assert read_all() == before


def test_what_is_ours_is_written_over_and_what_is_not_if_asked(monkeypatch):
    monkeypatch.setattr(_answer, "fit_network", fit_made_up)
    words = ["--model", "network", "--report", "r.html", "--save", "f.nc", "--predict", "asked.csv"]
    Path("r.html").write_text("<html>mine</html>")
    assert command([*ASKED, *words]) == 1
    for force in (["--force"], []):
        assert command([*ASKED, *words, *force]) == 0
        assert len(pd.read_csv("predictions.csv")) == 5
        assert "currentColor" in Path("r.html").read_text()
        assert tables.load_fit("f.nc").groups


# --- a disk that is full, a folder that goes, two at once


@pytest.mark.parametrize("what", ["out", "report", "save"])
@pytest.mark.parametrize("why", ["full", "gone"])
def test_a_result_that_cannot_be_written_where_it_should_goes_elsewhere(capsys, monkeypatch, tmp_path, what, why):
    """After all that was computed; an earlier file stays whole."""
    monkeypatch.setattr(_answer, "fit_network", fit_made_up)
    monkeypatch.setattr(_answer.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "there"))
    Path("in").mkdir()
    files = {"out": "in/p.csv", "report": "in/r.html", "save": "in/f.nc"}
    words = ["--model", "network", "--out", files["out"], *(["--" + what, files[what]] if what != "out" else [])]
    assert command([*ASKED, *words]) == 0
    before, real = Path(files[what]).read_bytes(), _write.write_beside

    def write(path, write, *, what="out", force=False):
        if str(path) == files[asked] and why == "gone":
            shutil.rmtree("in", ignore_errors=True)
        elif str(path) == files[asked]:
            write = fill
        return real(path, write, what=what, force=force)

    def fill(part):
        part.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    asked = what
    monkeypatch.setattr(_write, "write_beside", write)
    assert command([*ASKED, *words]) == 0
    assert f"goes into {tmp_path / 'there' / Path(files[what]).name} instead" in capsys.readouterr().out
    assert (tmp_path / "there" / Path(files[what]).name).stat().st_size > 100
    assert why == "gone" or Path(files[what]).read_bytes() == before
    assert not list(tmp_path.rglob("*.part"))


def _write_often(k):
    rows = tables.read_table(make_people(), group="town", features=["age"], outcome="moved")
    for _ in range(10):
        tables.write_predictions("p.csv", rows, np.full((2, 62), k / 10))


def test_two_at_once_leave_one_of_both_whole():
    both = [multiprocessing.get_context("fork").Process(target=_write_often, args=(k,)) for k in (2, 8)]
    [each.start() for each in both]
    seen = set()
    while any(each.is_alive() for each in both):
        if Path("p.csv").exists():
            found = pd.read_csv("p.csv")["probability"]
            assert len(found) == 62
            seen |= {found.nunique()}
    [each.join() for each in both]
    assert [each.exitcode for each in both] == [0, 0]
    assert seen == {1}
    assert not list(Path().glob(".*part"))


# --- Ctrl-C, by real signals


def press(*_, **__):
    """As a person does, and time to be heard."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)


def swallow(*_, **__):
    """As Numba does while it compiles."""
    try:
        press()
    except KeyboardInterrupt:
        return


def after(n, real=None, then=press):
    """Call the real function n times, and then be interrupted."""
    calls = []

    def call(*args, **options):
        calls.append(1)
        if len(calls) > n:
            then()
        return real(*args, **options) if real else None

    return call


STAGES = {  # where it comes: what is patched, and whether there is an answer
    "reading": (_read, "read_csv", press, False),
    "a rival": (_compare, "fit_rival", press, False),
    "the second fit of a rival": (_compare, "fit_rival", after(1, _compare.fit_rival), False),
    "fitting the rival to all rows": (_fit.Rival, "predict", press, False),
    "compiling": (_answer, "compile_network", press, True),
    "compiling, which swallows it": (_answer, "compile_network", swallow, True),
    "a fold": (_compare, "predict_fold", press, True),
    "the final fit": (_answer, "fit_network", press, True),
    "the report": (_write, "_compose_page", press, True),
}


@pytest.mark.parametrize("stage", STAGES)
def test_interrupted_what_is_finished_stays_and_a_sentence_says_it(capsys, monkeypatch, stage):
    monkeypatch.setattr(_answer, "fit_network", fit_made_up)
    place, name, instead, is_answered = STAGES[stage]
    monkeypatch.setattr(place, name, instead)
    before = read_all()
    report = ["--report", "r.html"] if stage == "the report" else []
    assert command([*ASKED, "--model", "network", "--predict", "asked.csv", *report]) == 130
    said = capsys.readouterr()
    assert {path: text for path, text in read_all().items() if path in before} == before
    assert not list(Path().glob(".*part"))
    if is_answered:
        assert "Interrupted: predictions.csv has the predictions of a line" in said.out
        assert len(pd.read_csv("predictions.csv")) == 5
    else:
        assert "Interrupted: nothing was finished, and nothing is written." in said.err
        assert not Path("predictions.csv").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("n", "whole", "chains"), [(0, 0, None), (0, 1, None), (0, 3, 3), (1, 0, 4), (1, 2, 6), (2, 3, 11), (3, 0, 12)]
)
def test_chains_that_are_whole_are_a_fit_and_where_they_disagree_more_are_run_and_all_count(
    monkeypatch, n, whole, chains
):
    """Interrupted in the first, second and third run of four chains, some of which are finished, or not at all."""
    rows, runs, said = advice.read_known("shared", 1, n_groups=6), [], []
    network = types.SimpleNamespace(with_data=lambda **_: None)

    def sample(*_, seed, **__):
        runs.append(seed)
        cut = len(runs) > n
        tree = make_tree(rows, whole if cut else 4, len(runs))
        if cut:
            raise sampling.Interrupted(tree)
        return tree

    monkeypatch.setattr(sampling, "sample_nuts", sample)
    how = {"seed": 1, "network": network, "asked": rows, "most": 3}
    if chains is None:
        with pytest.raises(KeyboardInterrupt):
            tables.fit_network(rows, **how)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit = tables.fit_network(rows, progress=said.append, **how)
    assert [f"Interrupted: the {chains} chains" in str(each.message) for each in caught] == [True] * (n < 3)
    assert len(set(runs)) == len(runs) == min(n + 1, 3)
    assert [" known to " in line for line in said] == [True] * min(n, 2)
    assert not fit.precision.usable
    assert np.isfinite(tables.predict(fit, rows).draws).all()
    assert len(fit.draws["w2"]) == 15 * chains


def make_tree(rows, n_chains, seed):
    """Chains that disagree."""
    if n_chains == 0:
        return None
    import pymc as pm
    import xarray as xr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prior = pm.sample_prior_predictive(60, model=tables.build_network(rows, n_units=2), random_seed=seed)["prior"]
    parts = [prior.to_dataset().isel(draw=slice(15 * k, 15 * k + 15)).assign_coords(draw=range(15)) for k in range(4)]
    joined = xr.concat(parts[:n_chains], dim="chain").assign_coords(chain=range(n_chains))
    joined["b2_mu"] = joined["b2_mu"] + 3.0 * joined["chain"]
    return xr.DataTree.from_dict({"posterior": joined.drop_vars(["w2", "b2"])})


def test_a_time_that_is_over_ends_it_and_nothing_is_ever_silent(capsys, monkeypatch):
    def sleep(*_, **__):
        for _ in range(600):
            time.sleep(0.1)

    monkeypatch.setattr(_compare, "predict_fold", sleep)
    start = time.monotonic()
    assert command([*ASKED, "--minutes", "0.15"]) == 130
    assert 9 <= time.monotonic() - start < 30
    said = capsys.readouterr().out
    assert "  … the hierarchical network, fit 1 of 5, without some rows: " in said
    assert "The 0.15 minutes are over: predictions.csv has the predictions of a line" in said


def test_a_second_one_ends_at_once():
    ended = []
    with _compare.Watch(print, at_once=lambda: ended.append(1)):
        for _ in range(2):
            swallow()
    assert ended == [1]


SAMPLED = """
import sys
from hbnn.tables import _compare, _fit
_compare.QUIET, _fit.RUN["draws"] = 0.5, {draws}
from hbnn.__main__ import main
sys.exit(main({asked}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("says", "delay", "draws"),
    [
        ("compile", 3, 500),
        ("line, fit 1", 1, 500),
        ("network, fit 1", 1, 500),
        ("fitting the hierarchical network", 8, 10**5),
    ],
)
def test_a_command_that_samples_is_stopped_from_outside(says, delay, draws):
    """The whole command, and nutpie's own threads."""
    rivals = ["line", "hierarchical line"] if "line" in says else ["line"]
    asked = [*ASKED[:-1], *rivals, "--model", "network", "--out", "p.csv"]
    program = SAMPLED.format(draws=draws, asked=asked)
    child = subprocess.Popen([sys.executable, "-u", "-c", program], env=HERE, stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if says in line:
            threading.Timer(delay, lambda: child.send_signal(signal.SIGINT)).start()
            break
    rest = child.stdout.read()
    assert child.wait(timeout=300) == 130, rest
    assert "Interrupted: p.csv has the predictions of" in rest
    assert len(pd.read_csv("p.csv")) == 64
