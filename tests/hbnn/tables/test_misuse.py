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
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hbnn import sampling, tables
from hbnn.__main__ import main as command
from hbnn.tables import _answer, _compare, _fit, _read, _write
from made import fit_made_up, make_people
from studies import advice

HERE = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))}  # for children
ASKED = ["t.csv", "--group", "g", "--outcome", "y", "--rivals", "line"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A table, rows to predict, and files of somebody else, in the folder where the command is called."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_answer, "compile_network", lambda *_, **__: None)
    monkeypatch.setattr(_answer, "fit_network", fit_made_up)
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
    os.mkfifo("pipe")
    return tmp_path


def read_all():
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


TABLE, OTHER = "is the table, too", "is there already, and this tool did not write it; wanted: another name, or --force"
PLACES = {"t.csv": TABLE, "./there/../t.csv": TABLE, "link.csv": TABLE, "hard.csv": TABLE, "mine.csv": OTHER}
PLACES |= {"asked.csv": "is predict, too", "there": "is no file", "pipe": "is no file", "no/such/x": "or in a folder"}


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
    assert command([*ASKED, f"--{pair[0]}", "a.x", f"--{pair[1]}", "./a.x"]) == 1
    assert f"is {pair[0]}, too" in capsys.readouterr().err


def test_what_is_ours_is_written_over_and_what_is_not_if_asked():
    long = "n" * 250 + ".csv"  # as long as names may be
    words = ["--model", "network", "--report", "r.html", "--save", "f.nc", "--predict", "asked.csv", "--out", long]
    Path("r.html").write_text("<html>mine</html>")
    assert command([*ASKED, *words]) == 1
    for force in (["--force"], []):
        assert command([*ASKED, *words, *force]) == 0
        assert len(pd.read_csv(long)) == 5
        assert "currentColor" in Path("r.html").read_text()
        assert tables.load_fit("f.nc").groups


@pytest.mark.parametrize(("what", "name"), [("out", "p.csv"), ("report", "r.html"), ("save", "f.nc")])
@pytest.mark.parametrize("why", ["full", "gone"])
def test_a_result_that_cannot_be_written_where_it_should_goes_elsewhere(capsys, monkeypatch, what, name, why):
    """After all that was computed; an earlier file stays whole."""
    monkeypatch.setattr(_answer.tempfile, "mkdtemp", lambda prefix: "there")
    Path("in").mkdir()
    words = ["--model", "network", "--out", "in/p.csv", f"--{what}", f"in/{name}"]
    assert command([*ASKED, *words]) == 0
    before, real = Path("in", name).read_bytes(), _write.write_beside

    def write(path, write, **options):
        if path == Path("in", name) and why == "gone":
            shutil.rmtree("in", ignore_errors=True)
        return real(path, fill if path == Path("in", name) else write, **options)

    def fill(part):
        part.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_write, "write_beside", write)
    assert command([*ASKED, *words]) == 0
    assert f"goes into there/{name} instead" in capsys.readouterr().out
    assert Path("there", name).stat().st_size > 100
    assert why == "gone" or Path("in", name).read_bytes() == before
    assert not list(Path().rglob("*.part"))


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
            seen |= {(len(found), found.nunique())}
    [each.join() for each in both]
    assert ([each.exitcode for each in both], seen, list(Path().glob(".*part"))) == ([0, 0], {(62, 1)}, [])


# --- Ctrl-C, by real signals


def press(*_, **__):
    """As a person does, and time to be heard."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)


class Swallow:
    """As Numba does while it compiles, in a callback."""

    def __del__(self):
        press()


def press_later(rows, train, test, *, calls=[], real=_compare.fit_rival, **options):  # noqa: B006
    """In the second fit of a rival."""
    calls.append(1)
    return real("line", rows, train, test, **options) if len(calls) == 1 else press()


def press_and_go_on(*asked, real=_fit.Rival.predict):
    press()
    return real(*asked)


STAGES = {  # where it comes: what is patched, and whether there is an answer
    "reading": (_read, "read_csv", press, False),
    "a rival": (_compare, "fit_rival", lambda _, *args, **options: press_later(*args, **options), False),
    "fitting the rival, and writing": (_fit.Rival, "predict", press_and_go_on, True),
    "compiling": (_answer, "compile_network", press, True),
    "compiling, which swallows it": (_answer, "compile_network", lambda *_, **__: Swallow() and None, True),
    "a fold": (_compare, "predict_fold", press, True),
    "the final fit": (_answer, "fit_network", press, True),
    "the report": (_write, "_compose_page", press, True),
}


@pytest.mark.parametrize("stage", STAGES)
def test_interrupted_what_is_finished_stays_and_a_sentence_says_it(capsys, monkeypatch, stage):
    (place, name, instead, is_answered), lost = STAGES[stage], []
    monkeypatch.setattr(place, name, instead)
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    before = read_all()
    report = ["--report", "r.html"] if stage == "the report" else []
    assert command([*ASKED, "--model", "network", "--predict", "asked.csv", *report]) == 130
    said = capsys.readouterr()
    assert {path: text for path, text in read_all().items() if path in before} == before
    assert not list(Path().glob(".*part")) + lost
    if is_answered:
        assert "Interrupted: predictions.csv has the predictions of a line" in said.out
        assert len(pd.read_csv("predictions.csv")) == 5
    else:
        assert "Interrupted: nothing was finished, and nothing is written." in said.err
        assert not Path("predictions.csv").exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("n", "whole", "chains"), [(0, 1, None), (0, 3, 3), (1, 0, 4), (2, 3, 11), (3, 0, 12)])
def test_chains_that_are_whole_are_a_fit_and_where_they_disagree_more_are_run_and_all_count(
    monkeypatch, n, whole, chains
):
    """Interrupted in the first, second and third run of four chains, some of which are finished, or not at all."""
    rows, runs, said = advice.read_known("shared", 1, n_groups=6), [], []

    def sample(*_, seed, **__):
        runs.append(seed)
        cut = len(runs) > n
        tree = make_tree(whole if cut else 4)
        if cut:
            raise sampling.Interrupted(tree)
        return tree

    monkeypatch.setattr(sampling, "sample_nuts", sample)
    network = types.SimpleNamespace(with_data=lambda **_: None)
    how = {"seed": 1, "network": network, "asked": rows, "most": 3, "progress": said.append}
    if chains is None:
        with pytest.raises(KeyboardInterrupt):
            tables.fit_network(rows, **how)
        return
    fit = tables.fit_network(rows, **how)
    assert said[n:] == [f"Interrupted: the {chains} chains that are whole are used."] * (n < 3)
    assert len(set(runs)) == len(runs) == min(n + 1, 3)
    assert [" known to " in line for line in said[:n]] == [True] * min(n, 2)
    assert not fit.precision.usable
    assert np.isfinite(tables.predict(fit, rows).draws).all()
    assert len(fit.draws["w2"]) == 15 * chains


def make_tree(n_chains):
    """Chains of six groups that disagree."""
    shapes = {"w1": (2, 3), "b1": (3,), "w2_mu": (3,), "w2_z": (6, 3), "b2_mu": (), "b2_z": (6,)}
    shapes |= {"w2_sd": (), "b2_sd": (), "noise": ()}
    drawn = {name: abs(np.random.default_rng(1).normal(size=(4, 15, *shape))) for name, shape in shapes.items()}
    drawn["b2_mu"] += 3.0 * np.arange(4)[:, None]
    posterior = xr.Dataset({
        name: (["chain", "draw", *(f"{name}_{k}" for k in range(w.ndim - 2))], w) for name, w in drawn.items()
    }).assign_coords(chain=range(4), draw=range(15))  # fmt: skip
    return xr.DataTree.from_dict({"posterior": posterior.isel(chain=slice(n_chains))}) if n_chains else None


def test_a_time_that_is_over_ends_it_and_nothing_is_ever_silent(capsys, monkeypatch):
    monkeypatch.setattr(_compare, "predict_fold", lambda *_, **__: [time.sleep(0.1) for _ in range(600)])
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
            Swallow()
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
    [("compile", 3, 500), ("line: about", 0, 500), ("network, fit 1", 1, 500), ("fitting the", 8, 10**5)],
)
def test_a_command_that_samples_is_stopped_from_outside(says, delay, draws):
    """The whole command, and nutpie's own threads."""
    rivals = ["line", "hierarchical line"] if "line" in says else ["line"]
    asked = [*ASKED[:-1], *rivals, "--model", "network", "--out", "p.csv"]
    program = SAMPLED.format(draws=draws, asked=asked)
    out = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    child = subprocess.Popen([sys.executable, "-u", "-c", program], env=HERE, **out)
    for line in child.stdout:
        if says in line and "fitting a line" not in line:
            threading.Timer(delay, lambda: child.send_signal(signal.SIGINT)).start()
            break
    rest = child.stdout.read()
    assert child.wait(timeout=300) == 130, rest
    assert "Interrupted: p.csv has the predictions of" in rest
    assert "Warning" not in rest
    assert len(pd.read_csv("p.csv")) == 64
