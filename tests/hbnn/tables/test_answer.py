"""The one call and the command: from a table to a file, a report and a fit, with made-up chains."""

import re
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hbnn import tables
from hbnn.__main__ import main as command
from hbnn.tables import _answer, _fit, _predict
from made import make_fit, make_tenants
from scipy.special import expit
from studies import advice

KNOWN = {"group": "g", "features": ["a", "b"], "outcome": "y", "seed": 1, "n_folds": 2, "rivals": ("line",)}


def fit_made_up(rows, *, index=slice(None), asked=None, **_):
    """In the place of chains: weights from their prior, of the groups that are there."""
    own = np.unique(rows.group[index])
    made = replace(make_fit("real", n_groups=len(own), n_draws=60), groups=tuple(rows.groups[g] for g in own))
    if asked is None:
        return made
    ones = np.ones(3)
    return replace(made, precision=_predict.Precision(ones, ones, ones))


@pytest.fixture
def _made_up(monkeypatch):
    for place in (_answer, _fit):
        monkeypatch.setattr(place, "fit_network", fit_made_up)
    monkeypatch.setattr(_answer, "compile_network", lambda *_, **__: None)


@pytest.mark.usefixtures("_made_up")
@pytest.mark.parametrize("model", [None, "network"])
def test_from_a_table_to_a_file_in_one_call(tmp_path, capsys, model):
    """A made-up network is no good: a rival is handed out in full, unless the network is asked for."""
    frame = advice.make_known("none", 1)
    asked = pd.concat([frame.iloc[:5], frame.iloc[:5].assign(g="new", a=9.0)]).drop(columns="y")
    found = tables.answer(frame, **KNOWN, predict=asked, out=tmp_path / "p.csv", model=model)
    said = capsys.readouterr().out
    for text in ("kind='real'", "'new'", "5 rows to predict outside", "10 rows predicted by a line", "to go"):
        assert text in said
    assert ("chains of the hierarchical network do not agree" in found.advice) == (model == "network")
    assert ("Where that is not enough, use a line" in said) == (model == "network")
    assert found.advice.startswith("Use a line")
    assert set(found.comparison.calibrate()) == {"50%", "90%"}
    written = pd.read_csv(tmp_path / "p.csv")
    assert written["g"].tolist() == ["g00"] * 5 + ["new"] * 5
    assert (written["model"] == (model or "line")).all()
    assert written.notna().all().all()
    if model is None:
        assert found.fit is None
        assert (written["mean_high"] > written["mean_low"]).all()
        assert written["ignorance"][9] > 2 * written["ignorance"][0]  # a new group's level is not known
    else:
        assert written["ignorance"][5:].mean() > written["ignorance"][:5].mean()


@pytest.mark.usefixtures("_made_up")
def test_where_the_network_cannot_be_asked_rivals_answer(tmp_path, monkeypatch):
    frame, said = advice.make_known("none", 1), []
    rare = frame.assign(y=np.where(frame.index % 50 == 3, "rare", np.where(frame["y"] > 0, "up", "down")))
    found = tables.answer(rare, **KNOWN, out=tmp_path / "p.csv", progress=said.append)
    assert any("The network is not asked: too few rows of 'y' 'rare' (6 rows)" in line for line in said)
    assert found.model == "line"
    monkeypatch.setattr(_fit, "MANY_ROWS", 100)
    found = tables.answer(frame, **KNOWN, out=tmp_path / "p.csv", progress=said.append)
    assert any("the network, which would take hours, is not asked" in line for line in said)
    assert (found.model, list(found.comparison.lpd["rows"])) == ("line", ["line"])


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f, {"model": "tree"}, "model='tree'; wanted: 'network', one of rivals"),
        (lambda f: f.rename(columns={"town": "low"}), {"group": "low"}, "column 'low'"),
        (lambda f: f.assign(moved=f["moved"].where(f.index > 5)), {}, "predict=frame[frame['moved'].isna()]"),
        (lambda f: f, {"predict": make_tenants().assign(income=[None, *range(59)])}, "'income' is missing in 1 row"),
        (lambda f: f.assign(age=40), {}, "the same in all rows: 'age'"),
    ],
)
def test_nothing_is_sampled_before_everything_was_asked(tmp_path, monkeypatch, change, options, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_answer, "cross_validate", lambda *_, **__: pytest.fail("sampled"))
    columns = {"group": "town", "features": ["age", "income"], "outcome": "moved", "seed": 1, "rivals": ("line",)}
    with pytest.raises(ValueError, match=re.escape(message)):
        tables.answer(change(make_tenants()), **(columns | options))


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["moved", "by", "gain"])
def test_a_stranger_goes_from_file_to_predictions(tmp_path, outcome):
    """With chains as long as they are, for two classes, several, and a number."""
    frame = make_tenants(300)
    frame.assign(gain=np.sin(frame["income"]) + 0.01 * frame["age"]).to_csv(tmp_path / "t.csv", index=False)
    columns = {"group": "town", "features": ["age", "income"], "outcome": outcome}
    found = tables.answer(tmp_path / "t.csv", **columns, out=tmp_path / "predictions.csv", seed=1, model="network")
    assert found.fit.precision.usable or "do not agree" in found.advice
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 300
    assert found.advice.startswith("Use ")


@pytest.mark.usefixtures("_made_up")
@pytest.mark.parametrize("kind", ["real", "binary", "counts", "share"])
def test_the_command_writes_predictions_and_a_report(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.setattr(_answer, "is_many", lambda *_: kind != "real")  # the made-up network is of a number
    monkeypatch.chdir(tmp_path)
    frame = advice.make_known("none", 1)
    made = {"binary": np.where(frame["y"] > 0, "up", "down"), "share": expit(frame["y"])}
    made["counts"] = np.random.default_rng(0).poisson(np.exp(frame["y"]))
    frame = frame.assign(y=made.get(kind, frame["y"]), code=range(300))
    frame = frame.assign(year=np.arange(300) % 3) if kind == "real" else frame
    frame.to_csv("t.csv", index=False)
    asked = ["t.csv", "--group", "g", "--outcome", "y", "--rivals", "line", "--leave-out", "code"]
    asked += ["--kind", kind] if kind == "share" else []
    asked += ["--second-group", "year"] if kind == "real" else []
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


def test_a_report_costs_little_and_draws_what_there_is(tmp_path, monkeypatch):
    """Forty features, none of which varies within a group in the second table."""
    monkeypatch.setattr(_answer, "is_many", lambda *_: True)
    rng, g = np.random.default_rng(1), np.repeat(np.arange(20), 15)
    frame = (
        pd.DataFrame(rng.normal(size=(300, 40))).rename(columns=lambda k: f"x{k}").assign(g=g, y=rng.normal(size=300))
    )
    columns = KNOWN | {"features": [f"x{k}" for k in range(40)], "n_folds": 2}
    start = time.process_time()
    found = tables.answer(frame, **columns, out=tmp_path / "p.csv", progress=lambda _: None)
    took = time.process_time() - start
    found.write_report(tmp_path / "r.html")
    start = time.process_time()
    found.write_report(tmp_path / "r.html")
    assert time.process_time() - start < max(0.1 * took, 3.0)
    level = frame.groupby("g")["x0"].transform("mean")
    found = tables.answer(frame.assign(x0=level), **(KNOWN | {"features": ["x0"]}), out=tmp_path / "p.csv",
                          progress=lambda _: None)  # fmt: skip
    found.write_report(tmp_path / "r.html")
    assert ">g</text>" in (tmp_path / "r.html").read_text().replace("\n", "")
