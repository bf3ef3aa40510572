"""The one call and the command: from a table to a file, a report and a fit, with made-up chains."""

import re
import time

import numpy as np
import pandas as pd
import pytest
from hbnn import tables
from hbnn.__main__ import main as command
from hbnn.tables import _answer, _fit
from made import fit_made_up, make_tenants
from scipy.special import expit
from studies import advice

KNOWN = {"group": "g", "features": ["a", "b"], "outcome": "y", "seed": 1, "n_folds": 2, "rivals": ("line",)}


@pytest.fixture(autouse=True)
def _made_up(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for place in (_answer, _fit):
        monkeypatch.setattr(place, "fit_network", fit_made_up)
    monkeypatch.setattr(_answer, "compile_network", lambda *_, **__: None)


@pytest.mark.parametrize("model", [None, "network"])
def test_from_a_table_to_a_file_in_one_call(capsys, model):
    """A made-up network is no good: a rival is handed out in full, unless the network is asked for."""
    frame = advice.make_known("none", 1)
    asked = pd.concat([frame.iloc[:5], frame.iloc[:5].assign(g="new", a=9.0)]).drop(columns="y")
    found = tables.answer(frame, **KNOWN, predict=asked, model=model)
    said = capsys.readouterr().out
    for text in ("kind='real'", "'new'", "5 rows to predict outside", "10 rows predicted by a line", "to go"):
        assert text in said
    assert ("chains of the hierarchical network do not agree" in found.advice) == (model == "network")
    assert ("Where that is not enough, use a line" in said) == (model == "network")
    assert found.advice.startswith("Use a line")
    assert set(found.comparison.calibrate()) == {"50%", "90%"}
    written = pd.read_csv("predictions.csv")
    np.testing.assert_allclose(written[["a", "b"]], asked[["a", "b"]])  # carried along
    assert written["g"].tolist() == ["g00"] * 5 + ["new"] * 5
    assert (written["model"] == (model or "line")).all()
    assert written.notna().all().all()
    assert (found.fit is None) == (model is None)
    assert written["ignorance"][5:].mean() > written["ignorance"][:5].mean()  # a new group's level is not known


def test_rows_without_an_outcome_are_those_to_predict(capsys):
    frame = advice.make_known("none", 1)
    frame["y"] = frame["y"].where(frame.index % 10 > 0)
    frame.to_csv("gaps.csv", index=False)
    found = [tables.answer(source, **KNOWN, model="line").predictions for source in (frame, "gaps.csv")]
    assert found[0]["row"].tolist() == frame.index[::10].tolist()
    assert found[1]["line"].tolist() == [2 + row for row in found[0]["row"]]
    np.testing.assert_allclose(*(each["mean"] for each in found))
    assert f"To predict: {len(found[0])} rows" in capsys.readouterr().out


def test_a_rival_says_what_its_intervals_of_a_new_group_are(capsys):
    frame = advice.make_known("none", 1)
    for y, is_said in ((frame["y"], False), (frame["y"] > 0, True)):
        found = tables.answer(frame.assign(y=y), **KNOWN, predict=frame[:5].assign(g="new"), model="line")
        assert any("5 rows of new groups ignorance" in note for note in found.notes) == is_said
        assert ("those of an average group" in capsys.readouterr().out) == is_said


def test_rows_beyond_their_own_group_are_said(capsys):
    """Group g00 has seen half of what the others have."""
    frame = advice.make_known("none", 1)
    late = (frame["g"] == "g00") & (frame["a"] > frame["a"].median())
    tables.answer(frame[~late], **KNOWN, predict=frame[late], model="line")
    said = capsys.readouterr().out
    assert f"'a' is beyond what their own group has in {late.sum()} rows to predict" in said
    assert "'b' is beyond" not in said


@pytest.mark.parametrize(
    ("model", "n"), [("line", 1), ("trees", 2), ("hierarchical line", 3), ("network", 4), (None, 4)]
)
def test_nobody_slower_is_asked_than_who_is_wanted(model, n):
    """In this order; the file says who predicts, and so does the last line."""
    order, said = ["line", "trees", "hierarchical line", "network"], []
    columns = KNOWN | {"rivals": order[:3]}
    found = tables.answer(advice.make_known("none", 1), **columns, model=model, progress=said.append)
    assert list(found.comparison.lpd["rows"]) == order[:n]
    assert any(_fit.NAMES[found.model] in line and "predictions.csv" in line for line in said[-3:])


@pytest.mark.parametrize(("part", "said"), [("b", "'b' from"), ("g", "'g' 'g00'"), ("y", "a prediction from")])
def test_intervals_that_hold_less_in_a_part_of_the_rows_are_said(capsys, part, said):
    """One spread for all rows, and then one that is four times as wide where a feature, or the outcome, is high, and
    in a group."""
    rng, frame = np.random.default_rng(3), advice.make_known("none", 1, n_rows=30)
    frame["y"] = frame["a"] + frame["b"]
    where = frame["g"] == "g00" if part == "g" else frame[part] > frame[part].quantile(0.67)
    for factor, is_said in ((1, False), (4, True)):
        noise = np.where(where, factor, 1) * rng.normal(size=len(frame))
        notes = tables.answer(frame.assign(y=frame["y"] + noise), **KNOWN, model="line").notes
        assert any(f"of rows with {said}" in note for note in notes) == bool(notes) == is_said
        assert "% in the 90 % interval" in capsys.readouterr().out


def test_ends_of_intervals_beyond_what_an_outcome_can_be_are_said(capsys):
    frame = advice.make_known("none", 1)
    for kind, is_said in (("real", True), ("share", False)):
        marks = frame.assign(y=(50 + 40 * frame["y"]).clip(0, 100))
        tables.answer(marks, **KNOWN, kind=kind, model="line")
        said = capsys.readouterr().out
        assert ("of the lower ends are below 0" in said) == ("of the upper ends are above 100" in said) == is_said


def test_where_the_network_cannot_be_asked_rivals_answer(monkeypatch):
    frame, said = advice.make_known("none", 1), []
    rare = frame.assign(y=np.where(frame.index % 50 == 3, "rare", np.where(frame["y"] > 0, "up", "down")))
    found = tables.answer(rare, **KNOWN, progress=said.append)
    assert any("The network is not asked: too few rows of 'y' 'rare' (6 rows)" in line for line in said)
    assert found.model == "line"
    monkeypatch.setattr(_fit, "MANY_ROWS", 100)
    found = tables.answer(frame, **KNOWN, progress=said.append)
    assert any("the network, which would take hours, is not asked" in line for line in said)
    assert (found.model, list(found.comparison.lpd["rows"])) == ("line", ["line"])


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"model": "tree"}, "model='tree'; wanted: 'network', one of rivals"),
        ({"low": "Ulm"}, {"ids": ["low"]}, "column 'low', and so have the predictions"),
        ({}, {"predict": make_tenants().assign(income=[None, *range(59)])}, "'income' is missing in 1 row"),
        ({"age": 40}, {}, "the same in all rows: 'age'"),
        ({}, {"rivals": "line"}, "rivals='line'; wanted: some of 'line'"),
        ({"moved": [1] * 3 + [0] * 57}, {"model": "network"}, "'1' (3 rows); wanted: at least"),
        ({"moved": [0] * 54 + [1, 2, 3] * 2}, {"model": "network", "kind": "counts"}, "0 in fewer than 10 rows"),
    ],
)
def test_nothing_is_sampled_before_everything_was_asked(monkeypatch, change, options, message):
    monkeypatch.setattr(_answer, "cross_validate", lambda *_, **__: pytest.fail("sampled"))
    columns = {"group": "town", "features": ["age", "income"], "outcome": "moved", "seed": 1, "rivals": ("line",)}
    with pytest.raises(ValueError, match=re.escape(message)):
        tables.answer(make_tenants().assign(**change), **(columns | options))


@pytest.mark.parametrize("kind", ["real", "binary", "counts", "share"])
def test_the_command_writes_predictions_and_a_report(capsys, monkeypatch, tmp_path, kind):
    monkeypatch.setattr(_answer, "is_many", lambda *_: kind != "real")  # the made-up network is of a number
    frame = advice.make_known("none", 1)
    made = {"binary": np.where(frame["y"] > 0, "up", "down"), "share": expit(frame["y"])}
    made["counts"] = np.random.default_rng(0).poisson(np.exp(frame["y"]))
    frame = frame.assign(y=made.get(kind, frame["y"]), code=range(300))
    frame = frame.assign(year=np.arange(300) % 3) if kind == "real" else frame
    frame.to_csv("t.csv", index=False)
    asked = ["t.csv", "--group", "g", "--outcome", "y", "--rivals", "line", "--leave-out", "code"]
    asked += {"share": ["--kind", kind], "real": ["--second-group", "year"]}.get(kind, [])
    assert command([*asked, "--report", "r.html", "--save", "f.nc"]) == 0
    said, page = capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf8")
    assert "f.nc is not written" in said  # a line predicts
    assert "Features: 'a' and 'b'; --features names fewer" in said
    assert (page.count("<svg"), "kind=" in page, "--kind" in said) == (3, False, True)
    assert ("% in the 90 % interval" in page) == (kind != "binary")
    assert "use a line" in page.lower()
    written = pd.read_csv("predictions.csv")
    assert len(written) == len(frame)
    assert ("year" in written) == ("3 of 'year'" in said) == (kind == "real")
    if kind in ("counts", "share"):
        assert written["low"].between(0, written["high"]).all()
        assert 0.85 < np.mean((written["low"] <= frame["y"]) & (frame["y"] <= written["high"])) <= 1
        assert (written["high"].dtype == int) == (kind == "counts")
        assert kind == "counts" or written["high"].max() < 1
    assert command([*asked, "--group", "h"]) == 1
    assert "no column 'h'" in capsys.readouterr().err


def test_a_report_costs_little_and_draws_what_there_is(monkeypatch, tmp_path):
    """Forty features; and one that varies in no group."""
    monkeypatch.setattr(_answer, "is_many", lambda *_: True)
    rng, names = np.random.default_rng(1), [f"x{k}" for k in range(40)]
    frame = pd.DataFrame(rng.normal(size=(300, 41)), columns=[*names, "y"]).assign(g=np.repeat(np.arange(20), 15))
    frame["level"] = frame.groupby("g")["x0"].transform("mean")
    for features in (names, ["level"]):
        start = time.process_time()
        found = tables.answer(frame, **(KNOWN | {"features": features}), progress=lambda _: None)
        took = time.process_time() - start
        found.write_report("r.html")  # the first loads matplotlib
        start = time.process_time()
        found.write_report("r.html")
        assert time.process_time() - start < max(0.1 * took, 3.0)
        assert (">g</text>" in (tmp_path / "r.html").read_text().replace("\n", "")) == (features == ["level"])
