"""From a table with any outcome to predictions: what is read, what is refused, new groups, rivals and advice."""

import re
import types
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytest
import strangers
import xarray as xr
from hbnn import Refused, diagnostics, sampling, tables
from hbnn.__main__ import main as command
from hbnn.tables import _network, _predictions, _rivals
from hbnn.tables._read import KINDS, NUMBERS, WEIGHTED
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, nbinom, norm, poisson
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning
from studies import advice

COLUMNS = {"group": "town", "features": ["age", "income"]}
SHORT = {"chains": 2, "draws": 40, "tune": 60}
FAST = ("line", "quadratic")


def make_frame(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "town": np.resize(["Ulm", "Bonn", "Aachen", "Kiel"], n),
        "age": rng.integers(18, 90, n),
        "income": rng.normal(30, 5, n).round(2),
        "moved": np.resize([0, 1, 0], n),
        "rent": rng.normal(800, 100, n).round(2),
        "by": np.resize(["bus", "car", "foot"], n),
    })  # fmt: skip


@pytest.fixture
def frame():
    return make_frame()


def read(frame, name, **changes):
    return tables.read_table(frame, **(COLUMNS | {"outcome": name} | changes))


def make_fit(kind="binary", n_groups=4, n_draws=400, hidden=3, vary=None, seed=0, spread=0.5):
    """A fit as if sampled, of groups "g0", "g1", … and two features."""
    rng = np.random.default_rng(seed)
    output, draws = ((3,) if kind == "classes" else ()), {}
    shared = (vary or ("readout" if kind in NUMBERS else "all")) == "readout"
    shapes = {"w1": (2, hidden), "b1": (hidden,), "w2": (hidden, *output), "b2": output}
    for name, shape in shapes.items():
        mu = rng.normal(size=shape) + 0.1 * rng.normal(size=(n_draws, *shape))
        if shared and name in ("w1", "b1"):
            draws[name] = mu
            continue
        sd = spread * abs(1 + 0.1 * rng.normal(size=n_draws))
        z = rng.normal(size=(n_draws, n_groups, *shape))
        draws |= {f"{name}_mu": mu, f"{name}_sd": sd}
        draws[name] = mu[:, None] + sd.reshape(-1, *[1] * (z.ndim - 1)) * z
    if kind in NUMBERS:
        draws["noise"] = 0.4 + 0.02 * rng.random(n_draws)
    if kind == "heavy":
        draws["tails"] = 1.5 + 0.2 * rng.random(n_draws)
    classes = {"binary": ("0", "1"), "classes": ("a", "b", "c")}.get(kind, ())
    level, width = (10.0, 2.0) if kind in ("real", "heavy") else (0.0, 1.0)
    groups = tuple(f"g{k}" for k in range(n_groups))
    center, scale = np.array([1.0, 2.0]), np.array([2.0, 0.5])
    share = (100.0, 0.01) if kind == "share" else None
    return _network.Fit(draws, groups, ("a", "b"), classes, kind, center, scale, level, width, None, share=share)


def make_rows(fit, n=8, group="new", labels=True, seed=1):
    """Rows of one group, or of all groups of the fit in turn (group=None)."""
    rng = np.random.default_rng(seed)
    groups = fit.groups if group is None else (group,)
    values = fit.center + fit.width * rng.normal(size=(n, 2))
    drawn = {"real": rng.normal(10, 2, n), "binary": rng.integers(0, 2, n).astype("int32"), "counts": rng.poisson(3, n)}
    drawn |= {"share": rng.integers(0, 101, n).astype(float), "heavy": 10 + 2 * rng.standard_t(2, n)}
    y = drawn.get(fit.kind, rng.integers(0, 3, n).astype("int32")) if labels else None
    place = np.resize(np.arange(len(groups)), n)
    kind = {"kind": fit.kind, "classes": fit.classes, "share": fit.share} if labels else {}
    return tables.Table(
        values, y, place, groups, ("a", "b"), {"row": np.arange(n)}, {"group": "g", "outcome": "y"}, **kind
    )


# --- reading: the kind of an outcome -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "classes"),
    [
        ([0, 1], "binary", ("0", "1")),
        ([True, False], "binary", ("0", "1")),
        (["yes", "no"], "binary", ("no", "yes")),
        (["bus", "car", "foot"], "classes", ("bus", "car", "foot")),
        ([1.5, 2.25, 3.0], "real", ()),
        (list(range(30)), "real", ()),
        ([0, 0, 0, 1, 1, 2, 3, 7], "counts", ()),
    ],
)
def test_the_kind_is_found_from_the_column(frame, values, kind, classes):
    rows = read(frame.assign(y=np.resize(np.array(values, dtype=object), 60)), "y")
    assert (rows.kind, rows.classes) == (kind, classes)
    assert f"kind={kind!r}" in str(rows)


def test_a_named_kind_and_named_classes_are_taken(frame):
    frame["stars"] = np.resize([1, 2, 3], 60)
    assert read(frame, "stars", kind="real").y.tolist()[:3] == [1, 2, 3]
    assert read(frame, "stars", kind="classes").classes == ("1", "2", "3")
    assert read(frame, "stars", kind="counts").y.dtype == "int64"
    rows = read(frame, "by", classes=["foot", "car", "bus"])
    assert (rows.kind, rows.classes, rows.y.tolist()[:3]) == ("classes", ("foot", "car", "bus"), [2, 1, 0])
    assert read(frame.assign(y=np.resize(["yes", "no"], 60)), "y", classes=["yes", "no"]).y[0] == 0


def test_some_rows_keep_kind_and_classes_and_need_not_hold_each(frame):
    some = read(frame, "by").take([4, 0])
    assert (some.y.tolist(), some.kind, some.classes) == ([1, 0], "classes", ("bus", "car", "foot"))
    none = read(frame.drop(columns="moved"), None)
    assert (none.y, none.kind) == (None, None)
    few = frame.assign(moved=0).iloc[:2]
    assert read(few, "moved", kind="binary", classes=("0", "1")).y.tolist() == [0, 0]


# --- reading: what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "changes", "words"),
    [
        ([1, 2, 3], {}, "'1' (20 rows), '2' (20 rows) and '3' (20 rows); wanted: kind='classes' for names, 'ordered'"),
        ([1], {}, "'1' in all rows"),
        ([np.nan] + [1.5, 2.5, 3.5] * 20, {}, "'y' is missing in 1 row of 60 (row 0); wanted: a value in each row"),
        (["high", *np.linspace(1, 2, 59)], {}, "'y' holds text, 'high', in 1 row of 60 (row 0); wanted: numbers"),
        (["1.200,5", *np.linspace(1, 2, 59)], {}, "or pass decimal=','"),
        ([f"name {k}" for k in range(60)], {}, "60 different values, 'name 0', 'name 1', 'name 10' and 57 more"),
        (
            ["bus", "car", "foot"],
            {"kind": "binary"},
            "in 20 rows of 60 (rows 2, 5, 8 and 17 more); wanted: two classes, or",
        ),
        (["bus", "car", "foot"], {"classes": ["bus", "car"]}, "in 20 rows of 60 (rows 2, 5, 8 and 17 more)"),
        (
            ["bus", "car"],
            {"kind": "yesno"},
            "kind='yesno'; wanted: 'binary', 'real', 'heavy', 'classes', 'ordered', 'counts', 'share', or None",
        ),
        (
            [3, 1.5, -2],
            {"kind": "counts"},
            "'1.5' and '-2', in 40 rows of 60 (rows 1, 2, 4 and 37 more); wanted: whole",
        ),
        ([0.5, 101, 3], {"kind": "share"}, "'101', in 20 rows of 60 (rows 1, 4, 7 and 17 more); wanted: shares"),
        ([0, 1], {"kind": "share"}, "wanted: shares between 0 and all"),
        ([0, 0, 0, 1.5], {"kind": "heavy"}, "is '0' in more than half of the rows"),
        (["bus", "car"], {"classes": "bus"}, "classes='bus' with kind=None; wanted: a list"),
        (["bus", "car"], {"classes": ["bus", "car"], "kind": "real"}, "none for numbers"),
        (["bus", "car"], {"classes": ["a", "b", "c"], "kind": "binary"}, "two for kind='binary'"),
        (["bus", "car"], {"outcome": "bye"}, "no column 'bye'"),
        (["bus", "car"], {"outcome": "town"}, "column 'town' is there or asked for twice"),
    ],
)
def test_an_outcome_that_cannot_be_used_is_counted_and_located(frame, values, changes, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        read(frame.assign(y=np.resize(np.array(values, dtype=object), 60)), "y", **changes)


def test_everything_that_is_wrong_is_said_at_once_with_lines_of_the_file(frame, tmp_path):
    frame["income"] = frame["income"].where(frame.index != 2, np.inf)
    frame["rent"] = frame["rent"].where(frame.index != 4)
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(Refused, match=r"a\.csv: 2 things are wrong") as caught:
        read(tmp_path / "a.csv", "rent")
    lines = str(caught.value).splitlines()
    assert [f"- {complaint}" for complaint in caught.value.complaints] == lines[1:]
    assert lines[1].startswith("- feature 'income' is infinite or beyond 1e150 in 1 row of 60 (line 4)")
    assert lines[2].startswith("- outcome 'rent' is missing in 1 row of 60 (line 6)")


# --- the model -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "varies"), [("moved", True), ("by", False), ("rent", False), ("age", False)])
def test_hidden_weights_differ_between_groups_for_two_classes_only(frame, name, varies):
    kind = {"features": ["income"], "kind": "counts"} if name == "age" else {}
    model = tables.build_network(read(frame, name, **kind), n_units=2)
    assert ("w1_z" in model.named_vars) == varies
    assert "w2_z" in model.named_vars
    assert model.named_vars_to_dims["w2_z"][:2] == ("group", "hidden")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.assign(town="Ulm"), "1 values of 'town'"),
        (lambda f: f.assign(age=40), "the same in all rows: 'age'"),
        (lambda f: f.assign(moved=(f.index < 3).astype(int)), "'1' (3 rows); wanted: at least"),
        (lambda f: f.assign(moved=np.maximum(f.index - 53, 0) ** 2), "'moved' is above 0 in fewer than 10 rows"),
    ],
)
def test_rows_that_no_network_can_learn_from_are_refused(frame, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        tables.build_network(read(change(frame), "moved"))
    with pytest.raises(ValueError, match="wanted: 'all' or 'readout'"):
        tables.build_network(read(frame, "moved"), vary="none")


# --- predictions ---------------------------------------------------------------------------------------------


def read_kind(kind, **changes):
    """A table of 60 rows in four towns and five streets with an outcome of this kind."""
    rng, frame = np.random.default_rng(2), make_frame()
    made = {"binary": frame["moved"], "classes": frame["by"], "ordered": np.resize([1, 2, 3, 4], 60)}
    made |= {"counts": rng.poisson(4, 60), "share": rng.uniform(1, 99, 60)}
    frame["y"] = made.get(kind, frame["rent"])
    frame = frame.assign(street=np.resize(list("abcde"), 60), n=rng.integers(1, 9, 60))
    return read(frame, "y", kind=kind, **changes)


@pytest.mark.parametrize(
    ("kind", "n_units", "columns"),
    [
        *((kind, 3, {}) for kind in KINDS),
        *((kind, 3, {"second_group": "street"}) for kind in ("binary", "classes")),
        *((kind, 0, {"second_group": "street", "weight": "n"}) for kind in WEIGHTED),
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
    fit = tables.fit_network(rows, seed=1, network=network, judged=False)
    predicted = tables.predict(fit, rows)
    said = _predictions.log_density(predicted, rows) + np.log(fit.spread)
    np.testing.assert_allclose(said, typed["y"].values[0], rtol=1e-6, atol=1e-9)
    mean = logsumexp(said, axis=0) - np.log(4 * fit.spread)
    np.testing.assert_allclose(tables.score_rows(predicted, rows), mean, rtol=1e-9)


def test_a_known_group_is_predicted_by_its_own_network():
    fit = make_fit()
    rows = make_rows(fit, group=None)
    found = tables.predict(fit, rows)
    X = (rows.values - fit.center) / fit.width
    i, g, d = 5, rows.group[5], 17
    h = np.tanh(X[i] @ fit.draws["w1"][d, g] + fit.draws["b1"][d, g])
    assert found.draws[d, i] == pytest.approx(expit(h @ fit.draws["w2"][d, g] + fit.draws["b2"][d, g]))


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


def test_an_unknown_group_is_refused_without_a_seed():
    fit = make_fit()
    with pytest.raises(ValueError, match=r"group 'g0_' was not seen; .* Did you mean 'g0'\?; or a seed"):
        tables.predict(fit, make_rows(fit, group="g0_"))
    assert tables.predict(fit, make_rows(fit, group="g9"), seed=1).draws.shape == (400, 8)


def test_closed_form_agrees_with_brute_force():
    """A number, hidden layer shared: exact conditioning against importance sampling with many offsets."""
    fit = make_fit("real", n_draws=200)
    known, rows = make_rows(fit, n=3), make_rows(fit, n=4, labels=False, seed=2)
    exact = tables.predict_new_group(fit, rows, known, seed=1)
    rng = np.random.default_rng(2)
    weights = _network._draw_weights(fit, 3000, rng)
    X, X_known = ((part.values - fit.center) / fit.width for part in (rows, known))
    noise = np.repeat(fit.draws["noise"], 3000)[:, None]
    y = (known.y - fit.level) / fit.spread
    logw = norm.logpdf(y, _network._run(weights, X_known), noise).sum(axis=1)
    share = np.exp(logw - logsumexp(logw))
    assert 1 / np.sum(share**2) > 500
    out = fit.level + fit.spread * _network._run(weights, X)
    mean = share @ out
    sd = np.sqrt(share @ (out - mean) ** 2)
    np.testing.assert_allclose(exact.draws.mean(axis=0), mean, atol=4 * sd.max() / np.sqrt(200) + 0.05)
    np.testing.assert_allclose(exact.draws.std(axis=0), sd, rtol=0.25)


def test_a_draw_is_weighted_by_the_density_of_the_rows_and_conditioned_on_them():
    """Equal draws: the read-out's mean and covariance given the rows, in textbook form, and the rows' marginal."""
    fit = make_fit("real", n_draws=1)
    many = {name: np.repeat(values, 20_000, axis=0) for name, values in fit.draws.items()}
    fit = replace(fit, draws=many)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    ratio = np.array([1, 0.5, 2, 1, 1])
    weights, loglik = _network._condition(fit, X, y, rng, ratio)
    one = {name: values[0] for name, values in many.items()}
    h = np.column_stack([np.tanh(X @ one["w1"] + one["b1"]), np.ones(5)])
    mu, prior = np.append(one["w2_mu"], one["b2_mu"]), np.diag([*[one["w2_sd"]] * 3, one["b2_sd"]]) ** 2
    marginal = h @ prior @ h.T + one["noise"] ** 2 * np.diag(ratio**2)
    np.testing.assert_allclose(loglik, multivariate_normal.logpdf(y, h @ mu, marginal), rtol=1e-9)
    pull = prior @ h.T @ np.linalg.inv(marginal)
    beta = np.column_stack([weights["w2"], weights["b2"]])
    np.testing.assert_allclose(beta.mean(axis=0), mu + pull @ (y - h @ mu), atol=5 * 0.5 / np.sqrt(20_000))
    np.testing.assert_allclose(np.cov(beta.T), prior - pull @ h @ prior, atol=5 * 0.4 / np.sqrt(20_000))


@pytest.mark.parametrize("kind", ["binary", "heavy", "classes", "counts", "share"])
def test_labelled_rows_pull_a_new_group_towards_them(kind):
    fit = make_fit(kind, spread=1.0)
    rows = make_rows(fit, n=6)
    rows = replace(rows, y=np.full(6, {"heavy": 14.0, "counts": 9, "share": 99.5}.get(kind, 1)))
    before, after = (tables.predict_new_group(fit, rows, known, seed=1) for known in (None, rows))
    picked = (lambda p: p.draws[..., 1]) if kind == "classes" else (lambda p: p.draws)
    picked = (lambda p: np.log(p.draws)) if kind == "counts" else picked
    assert picked(after).mean() > picked(before).mean() + 0.05
    assert 50 <= after.effective <= 400  # draws; the 8,000 offsets are no more than these
    assert before.draws.shape == after.draws.shape
    again, other = (tables.predict_new_group(fit, rows, rows, seed=seed).draws for seed in (1, 2))
    np.testing.assert_array_equal(again, after.draws)
    assert not np.array_equal(other, after.draws)


def give_seconds(table, names, place):
    return replace(table, second_groups=names, second_group=np.resize(place, len(table.values)))


@pytest.mark.parametrize("kind", ["real", "classes"])
def test_a_second_group_that_is_known_adds_its_level_and_another_one_is_drawn(kind):
    fit, shape = make_fit(kind, n_draws=4000), (3,) if kind == "classes" else ()
    rng = np.random.default_rng(3)
    c = rng.normal(size=(4000, 2, *shape))
    with_seconds = replace(fit, draws=fit.draws | {"c": c, "c_sd": np.full(4000, 2.0)}, second_groups=("x", "y"))
    rows = give_seconds(make_rows(fit, group=None), ("y", "z"), [0, 1, 1])
    with pytest.raises(Refused, match="second group 'z' was not seen; wanted: one of 'x' and 'y'"):
        tables.predict(with_seconds, rows)
    with pytest.raises(Refused, match="no second group"):
        tables.predict(with_seconds, make_rows(fit, group=None))
    before, after = (tables.predict(f, rows, seed=1).draws for f in (fit, with_seconds))
    back = np.log if kind == "classes" else (lambda mean: mean / fit.spread)
    added = back(after) - back(before)
    added = added - added.mean(axis=-1, keepdims=True) if kind == "classes" else added
    known = c[:, 1] - c[:, 1].mean(axis=-1, keepdims=True) if kind == "classes" else c[:, 1]
    np.testing.assert_allclose(added[:, 0], known, atol=1e-6)
    np.testing.assert_allclose(added[:, 1], added[:, 2], atol=1e-6)
    sd = 2 * np.sqrt(2 / 3) if kind == "classes" else 2
    np.testing.assert_allclose(added[:, 1].std(axis=0), sd, rtol=0.06)


@pytest.mark.parametrize("kind", ["real", "heavy"])
def test_labelled_rows_of_a_new_group_are_seen_without_what_their_second_group_adds(kind):
    fit, far = make_fit(kind), 7.0
    with_seconds = replace(
        fit, draws=fit.draws | {"c": np.full((400, 1), far), "c_sd": np.ones(400)}, second_groups=("x",)
    )
    rows, known = make_rows(fit, n=4), make_rows(fit, n=3, seed=2)
    moved = give_seconds(replace(known, y=known.y + far * fit.spread), ("x",), [0])
    expected = tables.predict_new_group(fit, rows, known, seed=1).draws + far * fit.spread
    found = tables.predict_new_group(with_seconds, give_seconds(rows, ("x",), [0]), moved, seed=1).draws
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("kind", ["real", "heavy"])
def test_what_a_new_group_shares_does_not_shrink_with_a_weight(kind):
    """Levels with an sd of one beside noise of one measurement, or of a hundred."""
    rng, g, weight = np.random.default_rng(7), np.repeat(np.arange(60), 8), np.resize([1.0, 100.0], 480)
    draw = rng.standard_t(3, 480) if kind == "heavy" else rng.normal(size=480)
    y = rng.normal(size=60)[g] + 3.0 + draw / np.sqrt(weight)
    frame = pd.DataFrame({"g": g, "a": rng.normal(size=480), "w": weight, "y": y})
    columns = {"group": "g", "features": ["a"], "outcome": "y", "kind": kind, "weight": "w"}
    rows, asked = tables.read_table(frame[g < 40], **columns), tables.read_table(frame[g >= 40], **columns)
    found = _rivals._compare(rows, ["line"], ("rows", "groups"), 1, 3)
    given = _rivals._predict_rival("line", rows, asked, 1, found)
    told = tables.tabulate_predictions(asked, given)
    inside = told["y"].between(told["low"], told["high"]).groupby(asked.weight).mean()
    assert inside.between(0.8, 0.98).all(), inside
    with pytest.raises(Refused, match="the table has no weight"):
        _rivals._predict_rival("line", rows, replace(asked, weight=None), 1, found)


def test_rivals_know_second_groups():
    rng, second = np.random.default_rng(4), np.arange(200) % 6
    level = np.array([9, 1, -9, 4, -4, 0.0])[second]
    rows = make_table(lambda g, _: level + rng.normal(size=len(g)), n_groups=10)
    rows = replace(rows, second_group=second, second_groups=tuple("abcdef"))
    train, test = np.flatnonzero(rows.group > 0), np.flatnonzero(rows.group == 0)
    for name in (*FAST, "trees"):
        mean = tables.fit_rival(name, rows, train, test, seed=0, new_groups=True).draws[0]
        assert np.abs(mean - level[test]).mean() < 2.5, name


def test_a_row_is_weighed_by_the_measurements_that_it_is_the_mean_of(frame):
    """A few means of a hundred measurements each beside single ones that are far off."""
    rng, n = np.random.default_rng(5), np.resize([1, 1, 1, 1, 100], 60)
    frame = frame.assign(n=n, y=5.0 * frame["income"] + rng.normal(0, 30, 60) / np.sqrt(n))
    rows = read(frame, "y", weight="n", features=["income"])
    train, test = np.arange(40), np.arange(40, 60)
    plain, weighed = (tables.fit_rival("line", r, train, test, seed=0) for r in (replace(rows, weight=None), rows))
    off = [np.abs(p.draws[0] - 5.0 * frame["income"][test]).mean() for p in (plain, weighed)]
    assert off[1] < off[0] / 2
    one, many = weighed.noise[0, n[test] == 1][0], weighed.noise[0, n[test] == 100][0]
    assert 20 < one < 45
    assert 3 < many < 10  # and what the line does not know
    short = replace(make_fit("real"), weight=4.0)
    asked = replace(make_rows(short, n=2), weight=np.array([4.0, 16.0]))
    noise = tables.predict(short, asked, seed=1).noise
    np.testing.assert_allclose(noise[:, 0] / noise[:, 1], 2)
    with pytest.raises(Refused, match="no weights; wanted: a column of them"):
        tables.predict(short, make_rows(short), seed=1)
    with pytest.raises(Refused, match=r"of kind 'counts', of which no mean is taken by 'n'"):
        read(frame.assign(y=np.arange(60)), "y", kind="counts", weight="n")
    with pytest.raises(Refused, match=r"weight 'n' is missing, or no number above 0 in 1 row of 60 \(row 3\)"):
        read(frame.assign(n=frame["n"].where(frame.index != 3, 0)), "y", weight="n")


def test_more_than_the_draws_can_bear_is_refused():
    fit = make_fit("binary", n_draws=60, spread=2.0)
    rows = make_rows(fit, n=300)
    with pytest.raises(ValueError, match=r"300 labelled rows of 'new'.* wanted: at least 50"):
        tables.predict_new_group(fit, rows, rows, seed=1, n_offsets=2)


def test_rows_of_a_known_group_or_of_two_or_of_another_outcome_are_refused():
    fit = make_fit()
    with pytest.raises(ValueError, match="group 'g1'; wanted: rows of one group"):
        tables.predict_new_group(fit, make_rows(fit, group="g1"), seed=1)
    with pytest.raises(ValueError, match="'n1' and 'n2'"):
        tables.predict_new_group(fit, make_rows(fit, group="n1"), make_rows(fit, group="n2"), seed=1)
    with pytest.raises(ValueError, match="kind 'real'"):
        tables.predict_new_group(fit, make_rows(fit), make_rows(make_fit("real")), seed=1)
    turned = replace(make_rows(fit), features=("b", "a"))
    with pytest.raises(ValueError, match="the table has the features"):
        tables.predict(fit, turned, seed=1)
    with pytest.raises(ValueError, match="seed=None"):
        tables.predict_new_group(fit, make_rows(fit), seed=None)


# --- the file ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("binary", ["probability", "low", "high", "noise", "ignorance"]),
        ("classes", ["p_a", "p_b", "p_c", "class", "probability", "low", "high", "noise", "ignorance"]),
        ("real", ["mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance"]),
        ("counts", ["mean", "mean_low", "mean_high", "low", "high", "noise", "ignorance"]),
    ],
)
def test_every_kind_has_its_columns_and_can_be_written_twice(tmp_path, kind, names):
    fit = make_fit(kind)
    rows = make_rows(fit, group=None, labels=False)
    for _ in range(2):
        found = tables.write_predictions(tmp_path / "p.csv", rows, tables.predict(fit, rows))
    assert found.columns.tolist() == ["row", "g", *names]
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "p.csv"), found, check_dtype=False)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
    assert ((found["low"] <= found["high"]) & (found["ignorance"] > 0)).all()


@pytest.mark.parametrize("kind", ["real", "heavy"])
def test_the_interval_of_a_number_holds_its_share_of_the_mixture(kind):
    fit, interval = make_fit(kind), 0.8
    rows = make_rows(fit, group=None)
    p = tables.predict(fit, rows)
    found = tables.tabulate_predictions(rows, p, interval=interval)
    for name, share in (("low", (1 - interval) / 2), ("high", (1 + interval) / 2)):
        shape = norm if kind == "real" else student(p.tails)
        below = shape.cdf((found[name].to_numpy() - p.draws) / p.noise).mean(axis=0)
        np.testing.assert_allclose(below, share, atol=1e-6)


def test_shares_are_learned_as_logits_and_predicted_between_their_ends(frame):
    """Means are those of simulated outcomes, and interval ends hold their share of them."""
    values = np.resize([0.0, 0.2, 0.5, 0.9, 1.0], 60)
    rows = read(frame.assign(y=100 * values), "y", kind="share")
    np.testing.assert_allclose(expit(rows.target[:5]), [0.05, 0.2, 0.5, 0.9, 0.95])
    np.testing.assert_allclose(read(frame.assign(y=values), "y", kind="share").target, rows.target)
    assert "pass kind='share'" in str(read(frame.assign(y=values), "y"))
    fit = make_fit("share")
    table = make_rows(fit, group=None)
    p = tables.predict(fit, table)
    found = tables.tabulate_predictions(table, p)
    many = 100 * expit(p.draws + p.noise * np.random.default_rng(0).normal(size=(200, *p.draws.shape)))
    np.testing.assert_allclose(found["mean"], many.mean(axis=(0, 1)), atol=0.5)
    np.testing.assert_allclose(found[["low", "high"]].T, np.quantile(many, [0.05, 0.95], axis=(0, 1)), atol=0.5)
    np.testing.assert_allclose(found["noise"] ** 2 + found["ignorance"] ** 2, many.var(axis=(0, 1)), rtol=0.02)
    line = tables.fit_rival("line", rows, np.arange(40), np.arange(40, 60), seed=0)
    assert (line.kind, (_rivals._find_loss(line, rows.take(np.arange(40, 60))) < 100**2).all()) == ("share", True)
    assert np.isfinite(tables.score_rows(line, rows.take(np.arange(40, 60)))).all()


def test_the_interval_of_a_count_is_whole_and_holds_its_share():
    mean = np.array([[0.01, 0.3, 2.8, 40.0]])
    table = replace(make_rows(make_fit("counts"), n=4), y=np.zeros(4, dtype=int))
    for dispersion, truth in ((0.0, poisson(mean[0])), (0.5, nbinom(4, 4 / (4 + mean[0])))):
        p = tables.Prediction(mean, _predictions.disperse(mean, dispersion), counts=True)
        found = tables.tabulate_predictions(table, p)
        np.testing.assert_array_equal(found[["low", "high"]].T, [truth.ppf(0.05), truth.ppf(0.95)])
        np.testing.assert_allclose(tables.score_rows(p, table), truth.logpmf(0), rtol=1e-4)
        np.testing.assert_allclose(found["noise"], truth.std())
        many = np.concatenate([truth.rvs((2000, 4), random_state=1)]).T.ravel()
        each = tables.Prediction(np.repeat(p.draws, 2000, axis=1), np.repeat(p.noise, 2000, axis=1), counts=True)
        level = _rivals._find_level(each, replace(table, y=many, kind="counts"))
        assert abs(np.quantile(level, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.02


def test_what_a_single_fit_cannot_say_is_left_empty():
    fit = make_fit("real")
    rows = make_rows(fit, group=None)
    p = tables.Prediction(np.full((1, 8), 10.0), np.full((1, 1), 2.0), 1.0)
    found = tables.tabulate_predictions(rows, p)
    assert found[["mean_low", "mean_high", "ignorance"]].isna().all(axis=None)
    np.testing.assert_allclose(found["high"], 10 + 2 * norm.ppf(0.95), rtol=1e-6)
    found = tables.tabulate_predictions(rows, np.full(8, 0.5))
    assert found[["low", "high", "ignorance"]].isna().all(axis=None)
    assert (found["noise"] == 1).all()


# --- rivals and cross-validation -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def straight():
    return read_known("none", 0)


def read_known(kind, seed, **changes):
    frame = advice.make_known(kind, seed, **changes)
    return tables.read_table(frame, group="g", features=["a", "b"], outcome="y")


def test_folds_hold_every_row_once_and_leave_out_whole_groups(straight):
    folds = tables.make_folds(straight, seed=0)
    assert np.bincount(folds["rows"]).tolist() == [60] * 5
    for g in range(20):
        assert len(set(folds["groups"][straight.group == g])) == 1
        assert set(folds["rows"][straight.group == g]) == set(range(5))


def test_classes_are_spread_over_the_folds(frame):
    rows = read(frame.assign(moved=np.resize([0, 0, 0, 0, 1], 60)), "moved")
    fold = tables.make_folds(rows, seed=3, n_folds=3)["rows"]
    assert np.bincount(fold[rows.y == 1]).tolist() == [4, 4, 4]
    assert np.bincount(fold).tolist() == [20, 20, 20]


@pytest.mark.parametrize(
    ("name", "outcome_"),
    [("line", "rent"), ("quadratic", "by"), ("trees", "moved"), ("trees", "rent"), ("trees", "by")],
)
def test_rivals_predict_every_kind_and_groups_that_they_never_saw(frame, monkeypatch, name, outcome_):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (5,)})
    rows = read(frame.assign(n=np.resize([1, 9], 60)), outcome_, weight="n" if outcome_ == "rent" else None)
    train, test = np.flatnonzero(rows.group > 0), np.flatnonzero(rows.group == 0)
    found = tables.fit_rival(name, rows, train, test, seed=0, new_groups=True)
    assert np.isfinite(tables.score_rows(found, rows.take(test))).all()
    monkeypatch.setattr(_rivals, "MOST_CATEGORIES", 2)  # means of groups for trees
    again = tables.fit_rival(name, rows, train, test, seed=0, refits=2)
    assert again.draws.shape[:2] == (2, len(test))


@pytest.mark.parametrize(("dispersion", "low", "high"), [(0, 0, 0.2), (0.8, 0.6, 1.1)])
def test_rivals_of_counts_learn_means_and_how_far_counts_vary_about_them(monkeypatch, dispersion, low, high):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (20,)})
    rng = np.random.default_rng(4)
    rate = rng.gamma(dispersion**-2, dispersion**2, 400) if dispersion else 1.0
    mean = np.exp(1 + rng.normal(0, 0.4, 10))[np.repeat(np.arange(10), 40)]
    rows = make_table(lambda g, _: rng.poisson(mean * rate), n_groups=10, n_rows=40)
    train, test = np.flatnonzero(np.arange(400) % 4 > 0), np.arange(0, 400, 4)
    for name in (*FAST, "trees"):
        found = tables.fit_rival(name, rows, train, test, seed=0, refits=3)
        again = np.sqrt((found.noise**2 - found.draws) / found.draws**2)
        assert low < again[0, 0] < high
        if name == "line":
            assert abs(np.log(found.draws.mean(axis=0) / mean[test])).mean() < 0.25
    none = tables.fit_rival("line", replace(rows, y=np.where(np.arange(400) % 4 > 0, 0, 1)), train, test, seed=0)
    assert np.isfinite(tables.score_rows(none, rows.take(test))).all()


def test_rivals_of_heavy_tails_are_not_pulled_and_learn_the_tails(monkeypatch):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (60,)})
    rng, level = np.random.default_rng(5), np.repeat(np.random.default_rng(6).normal(0, 9, 10), 60)
    rows = make_table(lambda g, _: rng.standard_t(1.5, len(g)), n_groups=10, n_rows=60)
    mean = 500 + level + 5 * rows.values[:, 0]
    rows = replace(rows, kind="heavy", y=mean + rows.y)
    train, test = np.flatnonzero(np.arange(600) % 4 > 0), np.arange(0, 600, 4)
    for name, far in (("line", 0.5), ("quadratic", 0.5), ("trees", 2)):
        found = tables.fit_rival(name, rows, train, test, seed=0, refits=3)
        assert np.abs(found.draws.mean(axis=0) - mean[test]).mean() < far
        assert name == "trees" or (1 < found.tails[0, 0] < 2.2 and 0.7 < found.noise[0, 0] < 1.4)
    normal = tables.fit_rival("line", replace(rows, kind="real"), train, test, seed=0)
    assert np.abs(normal.draws[0] - mean[test]).mean() > 0.5


class Loud(_rivals.LogisticRegression):
    """A model that warns of itself."""

    warning = ConvergenceWarning

    def fit(self, X, y):
        warnings.warn("not as it should be", self.warning, stacklevel=1)
        return super().fit(X, y)


def test_only_warnings_that_are_meant_are_silenced(frame, monkeypatch):
    monkeypatch.setattr(_rivals, "LogisticRegression", Loud)
    rows = read(frame.assign(by=[*np.resize(["bus", "car", "foot"], 60).tolist()[:-1], "tram"]), "by")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a class in one row, and a solver that needs more steps
        tables.fit_rival("line", rows, np.arange(60), np.arange(5), seed=0)
    monkeypatch.setattr(Loud, "warning", RuntimeWarning)
    with pytest.warns(RuntimeWarning, match="not as it should be"):
        tables.fit_rival("line", rows, np.arange(60), np.arange(5), seed=0)


@pytest.mark.parametrize("most", [250, 5])
def test_no_rival_learns_from_the_rows_that_it_predicts(straight, monkeypatch, most):
    """A leak, planted: with the other test rows moved, and all their outcomes, nothing may change."""
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (5, 10)})
    monkeypatch.setattr(_rivals, "MOST_CATEGORIES", most)
    train, test = np.arange(0, 300, 2), np.arange(1, 300, 2)
    labels, values = straight.y.copy(), straight.values.copy()
    labels[test] += 100
    values[test[1:]] += 10
    changed = replace(straight, y=labels, values=values)
    for name in (*FAST, "trees"):
        a, b = (tables.fit_rival(name, rows, train, test, seed=0) for rows in (straight, changed))
        np.testing.assert_array_equal(a.draws[:, 0], b.draws[:, 0])
        np.testing.assert_array_equal(a.noise, b.noise)


def make_table(y, n_groups, n_rows=20, seed=0):
    """Rows of groups with two features and an outcome, a function of (row,) places of groups."""
    rng, g = np.random.default_rng(seed), np.repeat(np.arange(n_groups), n_rows)
    a, b = rng.normal(size=(2, g.size))
    frame = pd.DataFrame({"g": g, "a": a, "b": b, "y": y(g, rng)})
    return tables.read_table(frame, group="g", features=["a", "b"], outcome="y")


def score_rivals(rows, test, names=FAST, **options):
    where = np.arange(len(rows.group))
    train, test = where[~np.isin(where, test)], np.asarray(test)
    found = [tables.fit_rival(name, rows, train, test, seed=0, **options) for name in names]
    return [tables.score_rows(each, rows.take(test)).mean() for each in found]


def test_a_class_of_one_group_alone_can_be_left_out_with_it_and_of_two_groups_one():
    rows = make_table(lambda g, rng: np.where(g == 2, "yes", "no"), n_groups=6)
    assert score_rivals(rows, np.flatnonzero(rows.group == 2), new_groups=True) == pytest.approx([np.log(1 / 1001)] * 2)
    assert min(score_rivals(rows, np.flatnonzero(rows.group == 0), new_groups=True)) > np.log(0.5)
    rows = make_table(lambda g, rng: rng.normal(size=g.size), n_groups=2)
    assert min(score_rivals(rows, np.flatnonzero(rows.group == 0), new_groups=True)) > -2


def test_settings_are_tuned_where_a_class_is_missing_in_an_inner_fold():
    """With the errors of such folds taken for scores, the strongest penalty would win, whatever the data say."""
    rows = make_table(lambda g, rng: np.where(g == 3, "c", np.where(rng.random(g.size) < 0.5, "a", "b")), 12)
    bent = replace(rows, values=rows.values + 3 * np.eye(3)[rows.y][:, :2])
    assert score_rivals(bent, np.flatnonzero(rows.group == 0), ("line",), new_groups=True)[0] > np.log(0.8)


@pytest.mark.parametrize("constant", [0.1, 0.0])
def test_a_feature_that_is_constant_in_training_does_not_run_away(constant):
    rows = make_table(lambda g, rng: rng.normal(size=g.size), n_groups=6)
    values = np.column_stack([rows.values[:, 0], np.full(120, constant)])
    values[7, 1] = 1.0
    odd = replace(rows, values=values)
    assert score_rivals(odd, [7], (*FAST, "trees"))[0] > -5
    center, width = _network.measure_columns(np.delete(values, 7, axis=0))
    assert (center[1], width[1]) == (constant, 1.0)


def test_more_groups_than_trees_can_tell_apart_are_told_apart_by_their_means(monkeypatch):
    monkeypatch.setattr(_rivals, "TREES", {"max_iter": (60,)})
    rows = make_table(lambda g, rng: np.random.default_rng(1).normal(0, 5, 300)[g] + rng.normal(size=g.size), 300, 6)
    error = tables.fit_rival("trees", rows, np.arange(1, 1800), np.arange(1), seed=0).noise
    assert error < 2.5  # levels differ by 5, noise is 1: by number the error would stay near 5


def test_a_hierarchical_line_is_a_network_without_units():
    """Three features: one slope is the same in all groups, one differs, one is zero; a fourth of groups is left out."""
    rng, g = np.random.default_rng(3), np.repeat(np.arange(24), 12)
    x, slope, level = rng.normal(size=(g.size, 3)), rng.normal(1, 1, 24), rng.normal(0, 2, 24)
    mean = level[g] + 2 * x[:, 0] + slope[g] * x[:, 1]
    y = mean + rng.normal(0, 0.5, g.size)
    frame = pd.DataFrame({"g": g, "a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": y})
    rows = tables.read_table(frame, group="g", features=["a", "b", "c"], outcome="y")
    known = np.flatnonzero(g % 4 > 0)
    network = tables.compile_network(rows, n_units=0)
    fit = tables.fit_network(rows, seed=1, network=network, index=known, sampler={"draws": 300}, judged=False)
    sds = fit.spread * fit.draws["w2_sd"].mean(axis=0) / fit.width
    np.testing.assert_allclose(sds, [0, slope[g[known]].std(), 0], atol=0.3)
    for part in (known, np.flatnonzero(g % 4 == 0)):  # rows of groups that were seen, and of others
        draws = tables.predict(fit, rows.take(part), seed=1).draws
        missed = (draws.mean(axis=0) - mean[part]) / draws.std(axis=0)
        assert 0.6 < np.sqrt(np.mean(missed**2)) < 1.4
    new, three = rows.take(g == 0), rows.take(np.flatnonzero(g == 0)[:3])
    told = tables.predict_new_group(fit, new, three, seed=1).draws.std(axis=0).mean()
    assert told < 0.5 * tables.predict(fit, new, seed=1).draws.std(axis=0).mean()


def test_lines_of_several_classes_share_their_slopes(frame):
    rows = read(frame, "by")
    fit = tables.fit_network(rows, seed=1, sampler=SHORT, judged=False, n_units=0)
    assert fit.draws["w2"].shape[1:] == (2, 3)
    assert fit.draws["b2"].shape[1:] == (4, 3)
    assert np.isfinite(tables.score_rows(tables.predict(fit, rows), rows)).all()


def test_what_rows_of_a_group_share_is_told_from_what_they_do_not():
    rng, group = np.random.default_rng(0), np.repeat(np.arange(200), np.resize([3, 10], 200))
    missed = rng.normal(0, 2, 200)[group] + rng.normal(size=len(group))
    assert abs(_rivals._find_shared(missed, group) - 0.8) < 0.05
    assert _rivals._find_shared(rng.normal(size=len(group)), group) < 0.05


def test_a_group_on_both_sides_of_a_fold_is_noticed(straight, monkeypatch):
    fake = make_fit("real")
    monkeypatch.setattr(_network, "fit_network", lambda *a, **k: fake)
    rows = make_rows(fake, group=None)
    with pytest.raises(RuntimeError, match="both sides"):
        _rivals._predict_fold(rows, np.arange(8), rows, None, 0, None, True)


def test_an_unknown_rival_is_refused(straight):
    with pytest.raises(ValueError, match="rivals='line'; wanted: some of 'line'"):
        tables.compare_rivals(straight, seed=0, rivals="line")
    with pytest.raises(ValueError, match="wanted: some of 'line'"):
        tables.fit_rival("forest", straight, np.arange(200), np.arange(200, 300), seed=0)


def make_comparison(means, sd=0.05, n_groups=20, seed=0):
    """A comparison with these mean scores on 200 rows; differences have this standard deviation."""
    rng = np.random.default_rng(seed)
    n = 200
    lpd = pd.DataFrame({name: -1 + mean + sd * rng.normal(size=n) for name, mean in means.items()})
    half = dict.fromkeys(("rows", "groups"), np.full(n, 0.5))
    both = {"rows": lpd, "groups": lpd}
    return tables.Comparison(both, both, np.resize(np.arange(n_groups), n), "binary", half)


@pytest.mark.parametrize(
    ("means", "chosen"),
    [
        ({"line": 0, "quadratic": 0.1, "trees": 0.1, "network": 0.3}, "network"),
        ({"line": 0, "quadratic": 0.1, "trees": 0.1, "network": 0.1}, "quadratic"),
        ({"line": 0, "quadratic": 0.1, "trees": 0.3, "network": 0.2}, "trees"),
        ({"line": 0, "quadratic": 0, "trees": 0, "network": 0}, "line"),
        ({"line": 0, "hierarchical line": 0.2, "quadratic": 0.2, "network": 0.1}, "hierarchical line"),
    ],
)
def test_the_network_is_advised_only_where_it_clearly_leads_else_the_simplest_that_keeps_up(means, chosen):
    found = make_comparison(means)
    assert found.choose() == chosen
    assert found.advise().startswith(f"Use {_rivals.NAMES[chosen]} for rows of known groups")


def test_a_simple_rival_far_behind_is_not_taken_because_scores_vary_much():
    found = make_comparison({"line": 0, "quadratic": 0.3, "network": 0.2})
    found.lpd["rows"]["line"] += np.where(found.group % 2, 2, -2)  # group by group, for better and for worse
    found.lpd["rows"]["network"] += np.where(found.group // 2 % 2, 2, -2)
    behind, error = found.gain("quadratic", "line")
    assert 0.1 < behind < 2 * error
    assert found.choose() == "quadratic"
    assert "not to be told from the best rival" in found.advise()


def test_where_one_group_decides_it_is_named():
    """Nineteen groups gain half a nat, one loses forty: by itself it makes the lead unclear."""
    found = make_comparison({"line": 0, "network": 0.5}, sd=0.01)
    assert "one group" not in found.advise()
    found.lpd["rows"]["network"] -= np.where(found.group == 7, 40.0, 0.0)
    name, gain, error = found.gain_without("network", "line")
    assert (name, round(gain, 1)) == ("7", 0.5)
    assert gain > 100 * error
    assert found.choose() == "line"
    assert "one group decides: without '7' the network's lead is 0.499" in found.advise()


def test_advice_is_about_what_is_to_be_predicted():
    found = make_comparison({"line": 0, "network": 0.3})
    found.lpd["groups"] = found.lpd["rows"][["network", "line"]].set_axis(["line", "network"], axis=1)
    assert (found.choose(), found.choose("groups")) == ("network", "line")
    assert found.advise("groups").startswith("Use a line, with a level for each group for groups that were left out")


@pytest.mark.parametrize(("lead", "chosen"), [(2.7, "line"), (2.9, "network")])
def test_a_lead_within_its_errors_is_no_lead(lead, chosen):
    """The network's scores are moved until its lead is so many standard errors."""
    found = make_comparison({"line": 0, "network": 0}, sd=0.2)
    gain, error = found.gain("network", "line")
    found.lpd["rows"]["network"] += lead * error - gain
    assert found.choose() == chosen


@pytest.mark.parametrize(("n_groups", "n"), [(5, 200), (20, 20)])
def test_the_error_of_a_lead_is_over_groups_or_over_rows_where_groups_are_few(n_groups, n):
    found = make_comparison({"line": 0, "network": 0.3}, n_groups=n_groups)
    each = found.lpd["rows"]["network"] - found.lpd["rows"]["line"]
    each = each if n == 200 else each.groupby(found.group).mean()
    assert found.gain("network", "line")[1] == pytest.approx(each.std(ddof=1) / np.sqrt(n))
    assert ("fewer than 8 groups" in found.advise()) == (n == 200)


def test_nothing_is_sampled_before_everything_was_asked(frame, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise AssertionError("sampled")

    monkeypatch.setattr(_rivals, "fit_rival", fail)
    (tmp_path / "mine.csv").write_text("a,b\n")
    options = COLUMNS | {"outcome": "moved", "seed": 1, "rivals": FAST}
    with pytest.raises(ValueError, match="holds no predictions"):
        tables.answer(frame, **options, out=tmp_path / "mine.csv")
    with pytest.raises(ValueError, match="column 'low'"):
        tables.answer(frame.rename(columns={"town": "low"}), **(options | {"group": "low"}))
    with pytest.raises(ValueError, match=re.escape("predict=frame[frame['moved'].isna()]")):
        tables.answer(frame.assign(moved=frame["moved"].where(frame.index > 5)), **options)
    with pytest.raises(ValueError, match="'income' is missing in 1 row"):
        tables.answer(frame, **options, predict=frame.assign(income=frame["income"].where(frame.index > 0)))


# --- with real chains ----------------------------------------------------------------------------------------


def test_options_of_a_fit_that_make_no_sense_are_refused(frame):
    for sampler in ({"chains": 1}, {"draw": 100}):
        with pytest.raises(ValueError, match=r"wanted: some of chains, .*; at least 2 chains"):
            tables.fit_network(read(frame, "rent"), seed=0, network="compiled", sampler=sampler)
    with pytest.raises(ValueError, match="n_units and a compiled network; wanted: one"):
        tables.fit_network(read(frame, "rent"), seed=0, network="compiled", n_units=3)


def test_a_fit_can_be_made_again_and_learns_from_the_rows_that_it_was_given():
    rows = read_known("shared", 0)
    network = tables.compile_network(rows)
    index = np.flatnonzero(rows.group != 3)
    a, b = (tables.fit_network(rows, seed=1, network=network, index=index, sampler=SHORT) for _ in range(2))
    np.testing.assert_array_equal(a.draws["w2"], b.draws["w2"])
    assert "g03" not in a.groups
    assert a.draws["w2"].shape == (80, 19, 6)
    np.testing.assert_allclose(a.center, rows.values[index].mean(axis=0))
    assert isinstance(a.verdict, diagnostics.Verdict)


def fit_made_up(rows, *, index=slice(None), asked=None, **_):
    """In the place of chains: weights from their prior, of the groups that are there."""
    own = np.unique(rows.group[index])
    made = replace(make_fit("real", n_groups=len(own), n_draws=60), groups=tuple(rows.groups[g] for g in own))
    if asked is None:
        return made
    return replace(made, precision=_network._measure(made, asked, 4, 1), chain_weights=np.array([0.5, 0.5, 0, 0]))


@pytest.mark.parametrize("model", [None, "network"])
def test_from_a_table_to_a_file_in_one_call(tmp_path, capsys, monkeypatch, model):
    """A made-up network is no good: a rival is handed out in full, unless the network is asked for."""
    monkeypatch.setattr(_network, "fit_network", fit_made_up)
    monkeypatch.setattr(sampling, "compile_nuts", lambda _: None)
    frame = advice.make_known("none", 1)
    asked = pd.concat([frame.iloc[:5], frame.iloc[:5].assign(g="new", a=9.0)]).drop(columns="y")
    found = tables.answer(
        frame, group="g", features=["a", "b"], outcome="y", predict=asked, out=tmp_path / "p.csv", seed=1,
        n_folds=2, rivals=("line",), model=model,
    )  # fmt: skip
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


def test_many_rows_are_answered_in_full_by_rivals(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sampling, "compile_nuts", stop)
    frame, written = advice.make_known("none", 1), []
    options = {"group": "g", "features": ["a", "b"], "outcome": "y", "seed": 1, "n_folds": 2, "rivals": ("line",)}
    for many in (10**6, 100):
        monkeypatch.setattr(_rivals, "MANY_ROWS", many)
        written.append(tables.answer(frame, **options, out=tmp_path / "p.csv").predictions)
        said = capsys.readouterr().out
        assert ("the network, which would take hours, is not asked" in said) == (many == 100)
        assert ("Interrupted" in said) == (many > 100)
    np.testing.assert_allclose(written[0]["mean"], written[1]["mean"], atol=0.05)


def stop(*_, **__):
    raise KeyboardInterrupt


def test_an_interrupted_answer_leaves_what_is_finished(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sampling, "compile_nuts", stop)
    frame = advice.make_known("none", 1)
    options = {"group": "g", "features": ["a", "b"], "outcome": "y", "seed": 1, "n_folds": 2, "rivals": ("line",)}
    found = tables.answer(frame, **options, out=tmp_path / "p.csv")
    assert found.model == "line"
    assert len(pd.read_csv(tmp_path / "p.csv")) == len(frame)
    assert "Interrupted" in capsys.readouterr().out
    monkeypatch.setattr(_rivals, "fit_rival", stop)
    with pytest.raises(KeyboardInterrupt):
        tables.answer(frame, **options, out=tmp_path / "q.csv")
    assert not (tmp_path / "q.csv").exists()


@pytest.mark.parametrize("kind", ["real", "binary", "classes"])
def test_a_rival_knows_how_far_its_means_are_unknown(kind):
    """A line's bootstrap has the spread that its formula gives; probabilities add up."""
    rng = np.random.default_rng(3)
    y = {"real": lambda g, r: r.normal(size=g.size), "binary": lambda g, r: np.where(r.random(g.size) < 0.4, "a", "b"),
         "classes": lambda g, r: rng.choice(list("abc"), g.size)}[kind]  # fmt: skip
    rows = make_table(y, n_groups=5, n_rows=40)
    where = np.arange(len(rows.group))
    found = tables.fit_rival("line", rows, where, where[:9], seed=1, refits=60)
    once = tables.fit_rival("line", rows, where, where[:9], seed=1)
    np.testing.assert_allclose(found.draws.mean(axis=0), once.draws[0], atol=1e-3)
    if kind == "real":
        assert 0.5 < (found.draws.std(axis=0) / (1 / np.sqrt(40))).mean() < 1.6
    elif kind == "classes":
        np.testing.assert_allclose(found.draws.sum(axis=2), 1)


def test_more_chains_are_run_until_predictions_are_exact_and_then_they_are_stacked(monkeypatch, capsys):
    """Two chains that disagree, then two more: the first place predicts the rows, the second does not."""
    rows = read_known("shared", 0)
    network = tables.compile_network(rows)
    runs = []

    def sample(data, *, seed, cores, chains=2, draws=100, tune=0, target_accept=0):
        runs.append(seed)
        tree = real(data, seed=seed, chains=chains, draws=draws, tune=200)
        for name in ("b2_mu", "b2_z"):
            tree["posterior"][name][1] += 2.0  # nothing can move this chain back
        return tree

    real = sampling.sample_nuts
    monkeypatch.setattr(sampling, "sample_nuts", sample)
    options = {"seed": 1, "network": network, "judged": False, "asked": rows, "sampler": {"chains": 2, "draws": 100}}
    fit = tables.fit_network(rows, most=2, tell=True, **options)
    assert len(set(runs)) == 2
    said = r"  2 chains: known to \d+% of an outcome's sd, where 10% is wanted; 2 more take about .*, at most 1 time\n"
    assert re.fullmatch(said, capsys.readouterr().out)
    assert not fit.precision.usable
    assert fit.chain_weights.round(2)[[1, 3]].sum() < 0.05
    assert len(fit.draws["w2"]) == 1000
    assert np.sqrt(np.mean((tables.predict(fit, rows).draws.mean(axis=0) - rows.y) ** 2)) < 0.5


def test_chains_are_weighted_by_what_they_predict_together():
    """Two chains that each know half of the rows, and one that knows nothing."""
    lpd = np.array([[-1.0] * 5 + [-3.0] * 5, [-3.0] * 5 + [-1.0] * 5, [-4.0] * 10])
    np.testing.assert_allclose(_predictions.weigh_chains(lpd), [0.5, 0.5, 0], atol=1e-6)


def test_leaving_rows_out_agrees_with_leaving_them_out():
    """A normal mean with a flat prior, known noise: the predictive density without a row has a formula."""
    rng = np.random.default_rng(1)
    y = rng.normal(size=30)
    mu = rng.normal(y.mean(), np.sqrt(1 / 30), 4000)
    found = _predictions.leave_out(norm.logpdf(y, mu[:, None], 1))
    others = (y.sum() - y) / 29
    np.testing.assert_allclose(found, norm.logpdf(y, others, np.sqrt(1 + 1 / 29)), atol=0.02)


@pytest.mark.parametrize("kind", ["real", "binary"])
def test_an_error_of_means_and_ends_is_what_other_draws_would_show(kind):
    """Thirty sets of draws, without autocorrelation: their means and ends vary as one set says of itself."""
    rng = np.random.default_rng(2)
    many = rng.normal(0, 1, (30, 4, 250, 5))
    many = many if kind == "real" else 1 / (1 + np.exp(-many))
    noise = np.full((4, 250, 1), 1e-3) if kind == "real" else None
    told = np.mean([tables.measure_precision(draws, noise).error for draws in many], axis=0)
    flat = many.reshape(30, 1000, 5)
    ends = [flat.mean(axis=1), *np.quantile(flat, (0.05, 0.95), axis=1)]
    seen = np.max([end.std(axis=0) for end in ends], axis=0)
    assert 0.75 < (told / seen).mean() < 1.35


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(strangers.MAKERS))
def test_a_stranger_goes_from_file_to_predictions(tmp_path, name):
    path = strangers.write_all(tmp_path)[name]
    found = tables.answer(path, **strangers.COLUMNS[name], out=tmp_path / "predictions.csv", seed=1)
    assert found.fit is None or found.fit.precision.usable, str(found.fit.precision)
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == len(pd.read_csv(path))
    assert found.advice.startswith("Use ")


# --- a fit that is kept, a report, and the command -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["real", "heavy", "binary", "classes", "counts", "share"])
def test_a_kept_fit_predicts_the_same(tmp_path, kind):
    fit = replace(
        make_fit(kind),
        levels={"pet": ("cat", "dog")},
        fills={"a": 0.1},
        chain_weights=np.array([0.25, 0.75]),
        second_groups=("x",),
    )
    tables.save_fit(tmp_path / "fit.nc", fit)
    again, rows = tables.load_fit(tmp_path / "fit.nc"), make_rows(fit, group=None)
    np.testing.assert_array_equal(tables.predict(again, rows).draws, tables.predict(fit, rows).draws)
    for name in ("groups", "second_groups", "levels", "fills", "kind"):
        assert getattr(again, name) == getattr(fit, name)
    np.testing.assert_array_equal(again.chain_weights, fit.chain_weights)


def test_a_file_of_something_else_is_no_fit(tmp_path):
    (tmp_path / "a.nc").write_text("group,y\n")
    with pytest.raises(Refused, match="no netCDF file"):
        tables.load_fit(tmp_path / "a.nc")
    xr.Dataset({"a": 1}).to_netcdf(tmp_path / "b.nc", engine="scipy")
    with pytest.raises(Refused, match=r"format None; wanted: 'hbnn\.tables\.Fit 1'"):
        tables.load_fit(tmp_path / "b.nc")
    with pytest.raises(OSError, match="none"):
        tables.save_fit(tmp_path / "none" / "a.nc", make_fit())


@pytest.mark.parametrize("kind", ["real", "heavy", "binary", "counts", "share"])
def test_the_command_writes_predictions_a_report_and_a_fit(tmp_path, capsys, monkeypatch, kind):
    monkeypatch.setattr(_network, "fit_network", fit_made_up)
    monkeypatch.setattr(sampling, "compile_nuts", (lambda _: None) if kind == "real" else stop)
    frame = advice.make_known("none", 1)
    made = {"real": lambda y: y, "binary": lambda y: np.where(y > 0, "up", "down"), "share": expit}
    made["heavy"] = made["real"]
    frame["y"] = made.get(kind, lambda y: np.random.default_rng(0).poisson(np.exp(y)))(frame["y"])
    monkeypatch.setattr(_rivals, "REFITS", {"line": 5})
    frame = frame.assign(year=np.arange(len(frame)) % 3) if kind == "real" else frame
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    asked = ["t.csv", "--group", "g", "--outcome", "y", "--rivals", "line"]
    asked += ["--kind", kind] if kind in ("heavy", "share") else []
    asked += ["--second-group", "year"] if kind == "real" else []
    assert command([*asked, "--report", "r.html", "--save", "f.nc"]) == 0
    said = capsys.readouterr().out
    assert "f.nc is not written" in said  # a line predicts
    assert "Features: 'a' and 'b'; --features names fewer." in said
    page = (tmp_path / "r.html").read_text(encoding="utf8")
    assert page.count("<img") == 3
    assert ("% in the 90 % interval" in page) == (kind != "binary")
    assert "http" not in page.replace("http-equiv", "")
    assert "Use a line" in page or "use a line" in page
    written = pd.read_csv(tmp_path / "predictions.csv")
    assert len(written) == len(frame)
    assert ("year" in written) == ("3 of 'year'" in said) == (kind == "real")
    if kind in ("counts", "share"):
        assert written["low"].between(0, written["high"]).all()
        assert 0.85 < np.mean((written["low"] <= frame["y"]) & (frame["y"] <= written["high"])) <= 1
        assert (written["high"].dtype == int) == (kind == "counts")
        assert kind == "counts" or written["high"].max() < 1
    assert command([*asked, "--cycles", "b=0", "--out", "o.csv"]) == 1
    assert "cycles={'b': 0.0}" in capsys.readouterr().err
    assert command(["t.csv", "--group", "h", "--outcome", "y"]) == 1
    assert "no column 'h'" in capsys.readouterr().err
