"""Predictions of rows: their intervals and scores, how exactly chains say them, and what is written into a file."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from bookkit import models
from hbnn import prediction, tables
from hbnn.tables import _compare, _predict
from made import make_fit, make_people, make_rows, read_tenants
from scipy.special import expit
from scipy.stats import nbinom, norm, poisson

GOOD = {"group": "town", "features": ["age", "income"], "outcome": "moved"}


def test_each_row_is_predicted_by_the_network_of_its_group_which_is_known_by_name():
    """In a model of one's own, of draws that are made up."""
    frame = make_people()
    rows = tables.read_table(frame, **GOOD)
    split = tables.split_rows(rows, seed=0)
    model = models.hierarchical_bnn(split.X_train, split.y_train, n_hidden=(3, 3), bias=True, activation="relu")
    rng, shapes = np.random.default_rng(0), model.eval_rv_shapes()
    values = {rv.name: abs(rng.normal(size=(2, 5, *shapes[rv.name]))) for rv in model.free_RVs}
    dims = {name: ("chain", "draw", *(f"{name}_{k}" for k in range(v.ndim - 2))) for name, v in values.items()}
    posterior = xr.Dataset({name: (dims[name], v) for name, v in values.items()})
    p = tables.predict_rows(model, posterior, split, rows)
    expected = prediction.predict_groups(posterior, split.scale(rows.values), activation="relu")
    for row in (0, 35, 61):
        np.testing.assert_allclose(p[:, :, row], expected[:, :, rows.group[row], row])
    some = frame[frame["town"] != "Bonn"].sample(frac=1, random_state=1).drop(columns="moved")
    new = tables.read_table(some, **(GOOD | {"outcome": None}))
    np.testing.assert_allclose(tables.predict_rows(model, posterior, split, new), p[:, :, new.ids["row"]])
    other = tables.read_table(frame.replace({"town": {"Bonn": "Bon"}}), **GOOD)
    with pytest.raises(ValueError, match=r"group 'Bon' .*Did you mean 'Bonn'\?"):
        tables.predict_rows(model, posterior, split, other)
    turned = tables.read_table(frame, **(GOOD | {"features": ["income", "age"]}))
    with pytest.raises(ValueError, match=r"\('income', 'age'\); wanted: \('age', 'income'\)"):
        tables.predict_rows(model, posterior, split, turned)


# --- the file


NUMBER = ["mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance"]
CLASS = ["probability", "low", "high", "noise", "ignorance"]


@pytest.mark.parametrize(
    ("kind", "names"),
    [("binary", CLASS), ("classes", ["p_a", "p_b", "p_c", "class", *CLASS]), ("real", NUMBER), ("counts", NUMBER)],
)
def test_every_kind_has_its_columns_can_be_written_twice_and_leaves_empty_what_one_draw_cannot_say(
    tmp_path, kind, names
):
    fit = make_fit(kind)
    rows = make_rows(fit, group=None, labels=False)
    tables.write_predictions(tmp_path / "p.csv", rows, tables.Prediction(np.full((1, 8), 0.5)))
    predicted = tables.predict(fit, rows)
    found = tables.write_predictions(tmp_path / "p.csv", rows, predicted)
    assert found.columns.tolist() == ["row", "g", *names]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "p.csv"), found, check_dtype=False)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert ((found["low"] <= found["high"]) & (found["ignorance"] > 0)).all()
    if kind == "binary":
        np.testing.assert_allclose(found[["low", "high"]].T, np.quantile(predicted.draws, [0.05, 0.95], axis=0))
    noise = None if predicted.noise is None else predicted.noise[:1]
    one = tables.tabulate_predictions(rows, replace(predicted, draws=predicted.draws[:1], noise=noise))
    empty = ["ignorance", *(["mean_low", "mean_high"] if names is NUMBER else ["low", "high"])]
    assert sorted(one.columns[one.isna().all()]) == sorted(empty)
    with pytest.raises(ValueError, match="7 rows; wanted: 8"):
        tables.tabulate_predictions(rows, replace(predicted, draws=predicted.draws[:, 1:]))


# --- intervals of numbers


def test_the_interval_of_a_number_holds_its_share_of_the_mixture():
    fit = make_fit("real")
    rows = make_rows(fit, group=None)
    p = tables.predict(fit, rows)
    found = tables.tabulate_predictions(rows, p, interval=0.8)
    for name, share in (("low", 0.1), ("high", 0.9)):
        below = norm.cdf((found[name].to_numpy() - p.draws) / p.noise).mean(axis=0)
        np.testing.assert_allclose(below, share, atol=1e-6)


def test_shares_are_learned_as_logits_and_predicted_between_their_ends():
    """Means are those of simulated outcomes, and interval ends hold their share of them."""
    values, frame, test = np.resize([0.0, 0.2, 0.5, 0.9, 1.0], 60), make_people()[:60], np.arange(40, 60)
    rows, parts = (read_tenants(frame.assign(y=unit * values), "y", kind="share") for unit in (100, 1))
    np.testing.assert_allclose(expit(rows.target[:5]), [0.05, 0.2, 0.5, 0.9, 0.95])
    np.testing.assert_allclose(parts.target, rows.target)
    fit = make_fit("share")
    table = make_rows(fit, group=None)
    p = tables.predict(fit, table)
    found = tables.tabulate_predictions(table, p)
    many = 100 * expit(p.draws + p.noise * np.random.default_rng(0).normal(size=(200, *p.draws.shape)))
    np.testing.assert_allclose(found["mean"], many.mean(axis=(0, 1)), atol=0.5)
    np.testing.assert_allclose(found[["low", "high"]].T, np.quantile(many, [0.05, 0.95], axis=(0, 1)), atol=0.5)
    np.testing.assert_allclose(found["noise"] ** 2 + found["ignorance"] ** 2, many.var(axis=(0, 1)), rtol=0.02)
    line = tables.fit_rival("line", rows, np.arange(40), test, seed=0)
    assert (line.kind, (_compare._find_losses(line, rows.take(test)) < 100**2).all()) == ("share", True)


@pytest.mark.parametrize("dispersion", [0.0, 0.5])
def test_the_interval_of_a_count_is_whole_and_holds_its_share(dispersion):
    mean = np.array([[0.01, 0.3, 2.8, 40.0]])
    truth = nbinom(4, 4 / (4 + mean[0])) if dispersion else poisson(mean[0])
    fit = make_fit("counts")
    table, p = make_rows(fit, n=4), tables.Prediction(mean, _predict.count_sd(mean, dispersion), counts=True)
    found = tables.tabulate_predictions(table, p)
    np.testing.assert_array_equal(found[["low", "high"]].T, [truth.ppf(0.05), truth.ppf(0.95)])
    np.testing.assert_allclose(tables.score_rows(p, table), truth.logpmf(table.y), rtol=1e-3)
    many = np.concatenate([truth.rvs((2000, 4), random_state=1)]).T.ravel()
    each = tables.Prediction(np.repeat(p.draws, 2000, axis=1), np.repeat(p.noise, 2000, axis=1), counts=True)
    level = _compare._find_levels(each, replace(make_rows(fit, n=8000), y=many))
    assert abs(np.quantile(level, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.02


@pytest.mark.parametrize("kind", ["real", "binary"])
def test_an_error_of_means_and_ends_is_what_other_draws_would_show(kind):
    """Thirty sets of draws, without autocorrelation: their means and ends vary as one set says of itself."""
    many = np.random.default_rng(2).normal(0, 1, (30, 4, 250, 5))
    many, noise = (many, np.full((4, 250, 1), 1e-3)) if kind == "real" else (expit(many), None)
    told = np.mean([_predict.measure_precision(draws, noise).error for draws in many], axis=0)
    flat = many.reshape(30, 1000, 5)
    ends = [flat.mean(axis=1), *np.quantile(flat, (0.05, 0.95), axis=1)]
    seen = np.max([end.std(axis=0) for end in ends], axis=0)
    assert 0.75 < (told / seen).mean() < 1.35
