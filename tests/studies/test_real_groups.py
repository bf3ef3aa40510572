"""The two real tables with groups: files are those that were published, and scores are put together rightly."""

import json

import numpy as np
import pytest
from bookkit.report import DATA
from hbnn import tables
from hbnn.tables import _compare, _fit
from studies import real_groups as study

every_table = pytest.mark.parametrize("name", study.SOURCES)


# --- the files


def test_contraception_is_as_r_prints_it():
    rows = study.read_rows("contraception")
    assert (len(rows.values), len(rows.groups), rows.kind) == (1934, 60, "binary")
    assert rows.classes == ("no", "yes")
    assert np.bincount(rows.y).tolist() == [1175, 759]
    assert np.bincount(rows.values[:, 1].astype(int)).tolist() == [530, 356, 305, 743]  # living children
    assert np.bincount(rows.values[:, 2].astype(int)).tolist() == [1372, 562]  # rural, urban
    assert abs(rows.values[:, 0].mean()) < 0.01


def test_verbal_aggression_is_as_r_prints_it():
    wide = study.load_table("aggression")
    assert wide["gender"].value_counts().to_dict() == {"F": 243, "M": 73}
    answers = {name: wide[name].value_counts()[["no", "perhaps", "yes"]].tolist() for name in study.ITEMS}
    assert np.sum(list(answers.values()), axis=0).tolist() == [3973, 2081, 1530]
    assert answers["s1_want_curse"] == [91, 95, 130]


def test_of_a_question_its_properties_are_kept_and_who_says_perhaps_agrees():
    long = study.unfold(study.load_table("aggression"))
    assert long.shape[0] == 316 * 24
    assert long["agrees"].value_counts().to_dict() == {"no": 3973, "yes": 3611}  # column r2 in R
    assert (long.loc[long["answer"] == "perhaps", "agrees"] == "yes").all()
    one = long[(long["person"] == 1) & (long["item"] == "s4_do_shout")].iloc[0]
    assert one[["anger", "male", "own_fault", "scold", "shout", "do"]].tolist() == [20, 1, 1, 0, 1, 1]
    assert one["answer"] == "yes"
    means = long[["own_fault", "do", "scold", "shout"]].mean()
    np.testing.assert_allclose(means, [1 / 2, 1 / 2, 1 / 3, 1 / 3])


@every_table
def test_every_column_says_what_it_holds_and_every_origin_is_cited(name):
    source = study.SOURCES[name]
    assert list(source.units) == list(study.load_table(name).columns)
    assert f"{{{source.cite}," in (DATA.parent / "references.bib").read_text()


def test_a_file_that_was_changed_is_refused(tmp_path, monkeypatch):
    text = (study.FOLDER / study.FILES["contraception"]).read_text()
    (tmp_path / study.FILES["contraception"]).write_text(text.replace("18.44", "18.45", 1))
    monkeypatch.setattr(study, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="was changed since it was published"):
        study.read_rows("contraception")


# --- the scores


@pytest.fixture
def cheap(monkeypatch):
    """Networks that say 0.4 to everybody, and one partition of a table."""
    monkeypatch.setattr(study, "compile_network", lambda data: None)
    for module in (_compare, _fit):
        monkeypatch.setattr(module, "compile_network", lambda rows, **options: None)
    said = lambda fit, held, *, seed: tables.Prediction(np.full((1, len(held.values)), 0.4), None)  # noqa: E731
    for module in (tables, _fit):
        monkeypatch.setattr(module, "fit_network", lambda rows, **options: type("Fit", (), {"groups": ()}))
        monkeypatch.setattr(module, "predict", said)
    monkeypatch.setattr(study, "MODELS", ("line", "quadratic", "network"))


@every_table
def test_what_folds_and_groups_kept_gives_the_gains_errors_and_advice_of_a_comparison(cheap, name):
    cases = [case for case in study.CASES if case["data"] == name and case["seed"] == 1]
    table = [case | study.compute(**case) for case in cases if case["model"] in study.MODELS]
    found = study.gather(json.loads(json.dumps(table)), name, seeds=(1,))
    whole = tables.compare_rivals(study.read_rows(name), seed=1, n_folds=study.N_FOLDS, rivals=("line", "quadratic"))
    for over in study.OVER:
        for other in ("line", "quadratic"):
            wanted = whole.gain("network", other, over)
            assert found.gain("network", other, over) == pytest.approx(wanted, abs=1e-6)
    assert found.advise() == whole.advise()


def test_bins_count_every_row_and_their_error_is_over_groups(cheap):
    cases = [case for case in study.CASES if (case["data"], case["over"], case["seed"]) == ("aggression", "groups", 1)]
    table = [case | study.compute(**case) for case in cases if case["model"] == "network"]
    found, rows = study.calibrate(table, "aggression", seeds=(1,)), study.read_rows("aggression")
    assert found["n"].tolist() == [len(rows.y)]
    np.testing.assert_allclose([found["p"][0], found["share"][0]], [0.4, rows.y.mean()])
    off = np.bincount(rows.group, rows.y - 0.4)
    np.testing.assert_allclose(found["error"], np.sqrt(np.sum(off**2)) / len(rows.y), rtol=1e-5)


def test_partitions_are_averaged_and_other_rows_left_alone():
    def make(seed, model, value):
        return {"data": "contraception", "over": "rows", "model": model, "seed": seed, "sums": [value] * 60}

    table = [make(1, "network", -1.0), make(2, "network", -3.0), make(1, "line", -1.0), make(2, "line", -1.0)]
    table += [row | {"data": "aggression"} for row in table]
    sizes = np.bincount(study.read_rows("contraception").group)
    gain = study.gather(table, "contraception").gain("network", "line")[0]
    assert gain == pytest.approx(60 * -1.0 / sizes.sum())
    assert study.gather(table, "contraception", seeds=(1,)).gain("network", "line")[0] == 0
