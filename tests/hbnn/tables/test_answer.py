"""The one call and the command: from a table to a file, a report and a fit, with made-up chains."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hbnn import sampling, tables
from hbnn.__main__ import main as command
from hbnn.tables import _network, _predict_rival, _rivals
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
    return replace(made, precision=_network._measure_fit(made, asked, 4, 1), chain_weights=np.array([0.5, 0.5, 0, 0]))


def stop(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("model", [None, "network"])
def test_from_a_table_to_a_file_in_one_call(tmp_path, capsys, monkeypatch, model):
    """A made-up network is no good: a rival is handed out in full, unless the network is asked for."""
    monkeypatch.setattr(_network, "fit_network", fit_made_up)
    monkeypatch.setattr(sampling, "compile_nuts", lambda _: None)
    frame = advice.make_known("none", 1)
    asked = pd.concat([frame.iloc[:5], frame.iloc[:5].assign(g="new", a=9.0)]).drop(columns="y")
    found = tables.answer(frame, **KNOWN, predict=asked, out=tmp_path / "p.csv", model=model)
    said = capsys.readouterr().out
    for text in ("kind='real'", "'new'", "5 rows to predict outside", "10 rows predicted by a line", "to go"):
        assert text in said
    assert ("weighted by how well" in said) == (model == "network")
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


def test_many_rows_are_answered_in_full_by_rivals_and_interrupted_what_is_finished_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "compile_nuts", stop)
    frame, means = advice.make_known("none", 1), []
    for many in (10**6, 100):
        said = []
        monkeypatch.setattr(_rivals, "MANY_ROWS", many)
        found = tables.answer(frame, **KNOWN, out=tmp_path / "p.csv", progress=said.append)
        means.append(pd.read_csv(tmp_path / "p.csv")["mean"])
        assert (found.model, len(means[-1])) == ("line", len(frame))
        assert any("the network, which would take hours, is not asked" in line for line in said) == (many == 100)
        assert any("Interrupted" in line for line in said) == (many > 100)
    np.testing.assert_allclose(means[0], means[1], atol=0.05)
    monkeypatch.setattr(_rivals, "fit_rival", stop)
    with pytest.raises(KeyboardInterrupt):
        tables.answer(frame, **KNOWN, out=tmp_path / "q.csv")
    assert not (tmp_path / "q.csv").exists()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f, {"out": "mine.csv"}, "holds no predictions"),
        (lambda f: f, {"report": "no/r.html"}, "report='no/r.html'; wanted: a file in a folder"),
        (lambda f: f, {"model": "tree"}, "model='tree'; wanted: 'network', one of rivals"),
        (lambda f: f.rename(columns={"town": "low"}), {"group": "low"}, "column 'low'"),
        (lambda f: f.assign(moved=f["moved"].where(f.index > 5)), {}, "predict=frame[frame['moved'].isna()]"),
        (lambda f: f, {"predict": make_tenants().assign(income=[None, *range(59)])}, "'income' is missing in 1 row"),
    ],
)
def test_nothing_is_sampled_before_everything_was_asked(tmp_path, monkeypatch, change, options, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_rivals, "fit_rival", lambda *_, **__: pytest.fail("sampled"))
    (tmp_path / "mine.csv").write_text("a,b\n")
    columns = {"group": "town", "features": ["age", "income"], "outcome": "moved", "seed": 1, "rivals": ("line",)}
    with pytest.raises((ValueError, OSError), match=re.escape(message)):
        tables.answer(change(make_tenants()), **(columns | options))


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["moved", "by", "gain"])
def test_a_stranger_goes_from_file_to_predictions(tmp_path, outcome):
    """With chains as long as they are, for two classes, several, and a number."""
    frame = make_tenants(300)
    frame.assign(gain=np.sin(frame["income"]) + 0.01 * frame["age"]).to_csv(tmp_path / "t.csv", index=False)
    columns = {"group": "town", "features": ["age", "income"], "outcome": outcome}
    found = tables.answer(tmp_path / "t.csv", **columns, out=tmp_path / "predictions.csv", seed=1, model="network")
    assert found.fit.precision.usable or found.fit.chain_weights is not None, str(found.fit.precision)
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 300
    assert found.advice.startswith("Use ")


@pytest.mark.parametrize("kind", ["real", "heavy", "binary", "counts", "share"])
def test_the_command_writes_predictions_a_report_and_a_fit(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.setattr(_network, "fit_network", fit_made_up)
    monkeypatch.setattr(sampling, "compile_nuts", (lambda _: None) if kind == "real" else stop)
    monkeypatch.setattr(_predict_rival, "REFITS", {"line": 5})
    monkeypatch.chdir(tmp_path)
    frame = advice.make_known("none", 1)
    made = {"binary": np.where(frame["y"] > 0, "up", "down"), "share": expit(frame["y"])}
    made["counts"] = np.random.default_rng(0).poisson(np.exp(frame["y"]))
    frame = frame.assign(y=made.get(kind, frame["y"]), **({"year": np.arange(300) % 3} if kind == "real" else {}))
    frame.to_csv("t.csv", index=False)
    asked = ["t.csv", "--group", "g", "--outcome", "y", "--rivals", "line"]
    asked += ["--kind", kind] if kind in ("heavy", "share") else []
    asked += ["--second-group", "year"] if kind == "real" else []
    assert command([*asked, "--report", "r.html", "--save", "f.nc"]) == 0
    said, page = capsys.readouterr().out, (tmp_path / "r.html").read_text(encoding="utf8")
    assert "f.nc is not written" in said  # a line predicts
    assert "Features: 'a' and 'b'; --features names fewer." in said
    assert page.count("<img") == 3
    assert ("% in the 90 % interval" in page) == (kind != "binary")
    assert "http" not in page.replace("http-equiv", "")
    assert "use a line" in page.lower()
    written = pd.read_csv("predictions.csv")
    assert len(written) == len(frame)
    assert ("year" in written) == ("3 of 'year'" in said) == (kind == "real")
    if kind in ("counts", "share"):
        assert written["low"].between(0, written["high"]).all()
        assert 0.85 < np.mean((written["low"] <= frame["y"]) & (frame["y"] <= written["high"])) <= 1
        assert (written["high"].dtype == int) == (kind == "counts")
        assert kind == "counts" or written["high"].max() < 1
    for wrong, words in (
        (["--cycles", "b=0", "--out", "o.csv"], "cycles={'b': 0.0}"),
        (["--group", "h"], "column 'h'"),
    ):
        assert command([*asked, *wrong]) == 1
        assert words in capsys.readouterr().err
