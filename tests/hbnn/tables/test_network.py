"""The network of a table: its model, its fit, groups that were seen, and groups that were not."""

import types
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
from hbnn import Refused, sampling, tables
from hbnn.tables import _predict
from hbnn.tables._read import KINDS
from made import give_seconds, make_fit, make_rows, make_tenants, read_kind
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

# --- the model


@pytest.mark.parametrize(
    ("kind", "n_units", "columns"),
    [
        *((kind, 3, {}) for kind in KINDS),
        *((kind, 3, {"second_group": "street"}) for kind in ("binary", "classes")),
        ("real", 0, {"second_group": "street"}),
        ("classes", 0, {}),
    ],
)
def test_the_density_of_a_row_is_that_of_the_typed_model(monkeypatch, kind, n_units, columns):
    """Of draws of the prior, PyMC says it, and so do the predictions that are made of these draws."""
    rows = read_kind(kind, **columns)
    model = tables.build_network(rows, n_units=n_units)
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        names = [variable.name for variable in model.free_RVs]
        prior = pm.sample_prior_predictive(draws=4, model=model, var_names=names, random_seed=1)["prior"].to_dataset()
        tree = xr.DataTree.from_dict({"posterior": prior})
        typed = pm.compute_log_likelihood(tree, model=model, extend_inferencedata=False, progressbar=False)
    monkeypatch.setattr(sampling, "sample_nuts", lambda *_, **__: tree)
    network = types.SimpleNamespace(with_data=lambda **_: None)
    fit = tables.fit_network(rows, seed=1, network=network)
    predicted = tables.predict(fit, rows)
    said = _predict.log_density(predicted, rows) + np.log(fit.scales.spread)
    if kind == "share":  # learned as a logit, and scored in its unit
        said += np.log(rows.y * (1 - rows.y / 100))
    np.testing.assert_allclose(said, typed["y"].values[0], rtol=1e-6, atol=1e-9)
    mean = logsumexp(_predict.log_density(predicted, rows), axis=0) - np.log(4)
    np.testing.assert_allclose(tables.score_rows(predicted, rows), mean, rtol=1e-9)


# --- the fit


def test_a_hierarchical_line_is_a_network_without_units():
    """Three features: one slope is the same in all groups, one differs, one is zero; a fourth of groups is left out."""
    rng, g = np.random.default_rng(3), np.repeat(np.arange(24), 12)
    x, slope, level = rng.normal(size=(g.size, 3)), rng.normal(1, 1, 24), rng.normal(0, 2, 24)
    mean = level[g] + 2 * x[:, 0] + slope[g] * x[:, 1]
    frame = make_tenants(g.size).assign(g=g, a=x[:, 0], b=x[:, 1], c=x[:, 2], y=mean + rng.normal(0, 0.5, g.size))
    rows = tables.read_table(frame, group="g", features=["a", "b", "c"], outcome="y")
    known = np.flatnonzero(g % 4 > 0)
    line = tables.compile_network(rows, n_units=0)
    fit = tables.fit_network(rows, seed=1, network=line, index=known, sampler={"draws": 300})
    assert fit.groups == tuple(rows.groups[k] for k in range(24) if k % 4)
    np.testing.assert_allclose(fit.scales.center, rows.values[known].mean(axis=0))
    with pytest.raises(ValueError, match=r"wanted: some of chains, .*; at least 2 chains"):
        tables.fit_network(rows, seed=0, network=line, sampler={"draw": 100})
    sds = fit.scales.spread * fit.draws["w2_sd"].mean(axis=0) / fit.scales.width
    np.testing.assert_allclose(sds, [0, slope[g[known]].std(), 0], atol=0.3)
    for part in (known, np.flatnonzero(g % 4 == 0)):  # rows of groups that were seen, and of others
        draws = tables.predict(fit, rows.take(part), seed=1).draws
        missed = (draws.mean(axis=0) - mean[part]) / draws.std(axis=0)
        assert 0.6 < np.sqrt(np.mean(missed**2)) < 1.4
    new, three = rows.take(g == 0), rows.take(np.flatnonzero(g == 0)[:3])
    told = tables.predict_new_group(fit, new, three, seed=1).draws.std(axis=0).mean()
    assert told < 0.5 * tables.predict(fit, new, seed=1).draws.std(axis=0).mean()


@pytest.mark.parametrize("kind", ["real", "binary", "classes", "counts", "share"])
def test_a_kept_fit_predicts_the_same(tmp_path, kind):
    fit = replace(make_fit(kind), levels={"pet": ("cat", "dog")}, fills={"a": 0.1}, second_groups=("x",))
    tables.save_fit(tmp_path / "fit.nc", fit)
    again, rows = tables.load_fit(tmp_path / "fit.nc"), make_rows(fit, group=None)
    np.testing.assert_array_equal(tables.predict(again, rows).draws, tables.predict(fit, rows).draws)
    for name in ("groups", "second_groups", "levels", "fills", "kind"):
        assert getattr(again, name) == getattr(fit, name)
    (tmp_path / "a.nc").write_text("group,y\n")
    with pytest.raises(Refused, match="no netCDF file"):
        tables.load_fit(tmp_path / "a.nc")


# --- predictions of groups that were seen, and of others


@pytest.mark.parametrize("kind", ["binary", "real", "classes", "counts"])
def test_a_new_group_is_as_wide_as_groups_differ(kind):
    fit = make_fit(kind, n_groups=300, n_draws=300)
    new, old = make_rows(fit, n=1), make_rows(fit, n=300, group=None)
    old = replace(old, values=np.repeat(new.values, 300, axis=0))
    a, b = tables.predict_new_group(fit, new, seed=1).draws, tables.predict(fit, old).draws
    a, b = (np.log(x) if kind == "counts" else x for x in (a, b))
    a, b = (x.reshape(-1, *x.shape[2:]) for x in (a, b))
    np.testing.assert_allclose(a.mean(axis=0), b.mean(axis=0), atol=5 * b.std() / np.sqrt(300))
    np.testing.assert_allclose(a.std(axis=0), b.std(axis=0), rtol=0.25)


def test_a_draw_is_weighted_by_the_density_of_the_rows_and_conditioned_on_them():
    """Equal draws: the read-out's mean and covariance given the rows, in textbook form, and the rows' marginal."""
    fit = make_fit("real", n_draws=1)
    many = {name: np.repeat(values, 20_000, axis=0) for name, values in fit.draws.items()}
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    weights, loglik = _predict._condition_readout(replace(fit, draws=many), X, y, rng)
    one = {name: values[0] for name, values in many.items()}
    h = np.column_stack([np.tanh(X @ one["w1"] + one["b1"]), np.ones(5)])
    mu, prior = np.append(one["w2_mu"], one["b2_mu"]), np.diag([*[one["w2_sd"]] * 3, one["b2_sd"]]) ** 2
    marginal = h @ prior @ h.T + one["noise"] ** 2 * np.eye(5)
    np.testing.assert_allclose(loglik, multivariate_normal.logpdf(y, h @ mu, marginal), rtol=1e-9)
    pull = prior @ h.T @ np.linalg.inv(marginal)
    beta = np.column_stack([weights["w2"], weights["b2"]])
    np.testing.assert_allclose(beta.mean(axis=0), mu + pull @ (y - h @ mu), atol=5 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(beta.T), prior - pull @ h @ prior, atol=5 * 0.4 / np.sqrt(20_000))


@pytest.mark.parametrize("kind", ["binary", "classes", "counts", "share"])
def test_labelled_rows_pull_a_new_group_towards_them(kind):
    fit = make_fit(kind, spread=1.0)
    rows = make_rows(fit, n=6)
    rows = replace(rows, y=np.full(6, {"counts": 9, "share": 99.5}.get(kind, 1)))
    before, after = (tables.predict_new_group(fit, rows, known, seed=1) for known in (None, rows))
    picked = (lambda p: p.draws[..., 1]) if kind == "classes" else (lambda p: p.draws)
    picked = (lambda p: np.log(p.draws)) if kind == "counts" else picked
    assert picked(after).mean() > picked(before).mean() + 0.05
    assert before.draws.shape == after.draws.shape
    again, other = (tables.predict_new_group(fit, rows, rows, seed=seed).draws for seed in (1, 2))
    np.testing.assert_array_equal(again, after.draws)
    assert not np.array_equal(other, after.draws)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: (make_rows(f, group="g1"),), "group 'g1'; wanted: rows of one group"),
        (lambda f: (make_rows(f, group="n1"), make_rows(f, group="n2")), "'n1' and 'n2'"),
        (lambda f: (make_rows(f), make_rows(make_fit("real"))), "kind 'real'"),
        (lambda f: (replace(make_rows(f), features=("b", "a")),), "the table has the features"),
        (lambda f: (make_rows(f, n=1000),) * 2, "1000 labelled rows of 'new'.* wanted: at least 50"),
    ],
)
def test_rows_that_a_new_group_cannot_be_learned_from_are_refused(make, message):
    fit = make_fit(n_draws=60, spread=2.0)
    with pytest.raises(ValueError, match=message):
        tables.predict_new_group(fit, *make(fit), seed=1)
    with pytest.raises(ValueError, match=r"group 'g0_' was not seen; .* Did you mean 'g0'\?; or a seed"):
        tables.predict(fit, make_rows(fit, group="g0_"))


# --- second groups


@pytest.mark.parametrize("kind", ["real", "classes"])
def test_a_second_group_that_is_known_adds_its_level_and_another_one_is_drawn(kind):
    fit, shape = make_fit(kind, n_draws=4000), (3,) if kind == "classes" else ()
    c = np.random.default_rng(3).normal(size=(4000, 2, *shape))
    with_seconds = replace(fit, draws=fit.draws | {"c": c, "c_sd": np.full(4000, 2.0)}, second_groups=("x", "y"))
    rows = give_seconds(make_rows(fit, group=None), ("y", "z"), [0, 1, 1])
    with pytest.raises(Refused, match="second group 'z' was not seen; wanted: one of 'x' and 'y'"):
        tables.predict(with_seconds, rows)
    with pytest.raises(Refused, match="no second group"):
        tables.predict(with_seconds, make_rows(fit, group=None))
    before, after = (tables.predict(f, rows, seed=1).draws for f in (fit, with_seconds))
    known, added = c[:, 1], (after - before) / fit.scales.spread
    if kind == "classes":
        added = np.log(after) - np.log(before)
        known, added = (values - values.mean(axis=-1, keepdims=True) for values in (known, added))
    np.testing.assert_allclose(added[:, 0], known, atol=1e-6)
    np.testing.assert_allclose(added[:, 1], added[:, 2], atol=1e-6)
    sd = 2 * np.sqrt(2 / 3) if kind == "classes" else 2
    np.testing.assert_allclose(added[:, 1].std(axis=0), sd, rtol=0.06)
