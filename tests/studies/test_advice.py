"""The tables whose right advice is known: what they hold, and what their study asks of them."""

import numpy as np
import pandas as pd
import pytest
from hbnn import Refused, tables
from scipy.special import expit
from studies import advice

KINDS = tuple(advice.RIGHT)
every_kind = pytest.mark.parametrize("kind", KINDS)


# --- invented tables


@every_kind
def test_a_table_is_made_again_from_its_seed_and_others_from_others(kind):
    frame = advice.make_known(kind, 5)
    pd.testing.assert_frame_equal(frame, advice.make_known(kind, 5))
    assert not frame["y"].equals(advice.make_known(kind, 6)["y"])
    assert frame.groupby("g").size().tolist() == [15] * 20


def explain(frame, columns):
    """Share of the variance of ``y`` that a least-squares fit of these columns explains."""
    X, y = np.column_stack(columns), frame["y"].to_numpy()
    rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    return 1 - rest.var() / y.var()


def test_a_line_with_levels_is_all_there_is_where_there_is_no_shape_and_little_of_a_shape():
    share = {}
    for kind in KINDS:
        frame = advice.make_known(kind, 1, n_groups=10, n_rows=400)
        share[kind] = explain(frame, [frame[["a", "b"]], pd.get_dummies(frame["g"]).astype(float)])
    assert share["none"] > 0.9
    assert max(share["shared"], share["unshared"]) < 0.5


@pytest.mark.parametrize(("kind", "alike"), [("shared", True), ("unshared", False)])
def test_groups_share_the_direction_of_their_wave_or_do_not(kind, alike):
    """The direction is that of the steepest change of a smooth fit to each group by itself."""
    frame = advice.make_known(kind, 2, n_groups=8, n_rows=2000, noise=0.01)
    angles = []
    for _, own in frame.groupby("g"):
        order = np.arange(7)
        a, b, c = own["a"].to_numpy(), own["b"].to_numpy(), own["y"].to_numpy()
        powers = [a**i * b**j for i in order for j in order]
        beta = np.linalg.lstsq(np.column_stack(powers), c, rcond=None)[0].reshape(7, 7)
        at = np.random.default_rng(0).uniform(-1.5, 1.5, (200, 2)).T
        in_a = sum(i * beta[i, j] * at[0] ** (i - 1) * at[1] ** j for i in order[1:] for j in order)
        in_b = sum(j * beta[i, j] * at[0] ** i * at[1] ** (j - 1) for i in order for j in order[1:])
        angles.append(np.angle(np.sum((in_a + 1j * in_b) ** 2)))  # of a line, so twice the angle
    together = abs(np.mean(np.exp(1j * np.array(angles))))
    assert together > 0.99 if alike else together < 0.9


def test_new_groups_are_predicted_from_fits_without_them_and_without_their_known_rows(monkeypatch):
    seen = []

    def fit(rows, *, index, **options):
        seen.append(set(rows.group[index]))
        return "a fit"

    def predict(fit, rest, known, *, seed):
        assert not {int(g) for g in rest.group} & seen[-1]
        assert len(rest.values) == 12
        assert known is None or len(known.values) == 3
        assert known is None or not np.isin(known.y, rest.y).any()
        if known is not None and rest.group[0] == 0:
            raise Refused("too few draws")
        return tables.Prediction(rest.y[None], np.full((1, 1), 1.0))

    monkeypatch.setattr(advice, "compile_network", lambda: None)
    monkeypatch.setattr(tables, "fit_network", fit)
    monkeypatch.setattr(tables, "predict_new_group", predict)
    found = advice.ask_new_groups("none", 1)
    assert [found[f"refused, {k} known"] for k in (0, 3)] == [0, 1]
    assert [found[f"inside {share}%, 0 known"] for share in (50, 90)] == [1, 1]
    assert found["RMSE, 0 known"] == 0
    assert found["lpd, 0 known"] == pytest.approx(-0.5 * np.log(2 * np.pi))


def test_the_true_gain_is_of_rows_that_no_model_has_seen_and_what_is_lost_of_the_model_advised(monkeypatch):
    scores = {"line": -1.0, "quadratic": -0.5, "trees": -2.0, "network": -0.25}
    frames = []

    def compare(rows, **_):
        frames.append(rows)
        each = np.linspace(-0.1, 0.1, len(rows.y))
        lpd = pd.DataFrame({"line": each, "network": -each})
        return tables.Comparison({"rows": lpd}, {}, rows.group, rows.kind, {})

    def fit_rival(name, every, train, test, *, seed):
        assert not set(train) & set(test)
        np.testing.assert_array_equal(every.y[train], frames[0].y)
        return name

    monkeypatch.setattr(advice, "compile_network", lambda _: None)
    monkeypatch.setattr(tables, "compare_rivals", compare)
    monkeypatch.setattr(tables, "fit_rival", fit_rival)
    monkeypatch.setattr(tables, "fit_network", lambda rows, **_: rows)
    monkeypatch.setattr(tables, "predict", lambda fit, fresh: "network")
    monkeypatch.setattr(tables, "score_rows", lambda name, fresh: np.full(len(fresh.y), scores[name]))
    found = advice.ask_power(0.3, 1, n_fresh=60)
    assert len(frames[0].y) == 12 * 15
    assert found["advised"] == "line"
    assert (found["true gain"], found["lost"]) == (0.25, 0.75)


def test_counts_that_are_predicted_as_they_were_made_lie_in_their_intervals(monkeypatch):
    options = {"n_groups": 120, "n_rows": 115}
    curve = advice.make_known("none", 1, noise=0.0, **options)
    mean = pd.Series(np.exp(1 + 0.5 * curve["y"].to_numpy()), index=curve["a"])

    def fit(rows, **_):
        assert rows.kind == "counts"
        assert (len(rows.groups), len(rows.y)) == (20, 300)
        return set(zip(rows.values[:, 0], rows.y, strict=True))

    def predict(seen, rows, *, seed):
        assert not seen & set(zip(rows.values[:, 0], rows.y, strict=True))
        at = mean[rows.values[:, 0]].to_numpy()[None]
        return tables.Prediction(at, np.sqrt(at + (0.5 * at) ** 2), counts=True)

    monkeypatch.setattr(advice, "compile_network", lambda *_: None)
    monkeypatch.setattr(tables, "fit_network", fit)
    monkeypatch.setattr(tables, "predict", predict)
    found = advice.ask_counts("none", 1)
    for part in ("known", "new"):
        assert found[f"inside 50%, {part}"] == pytest.approx(0.5, abs=0.05)
        assert found[f"inside 90%, {part}"] == pytest.approx(0.9, abs=0.03)
        assert found[f"in the file 90%, {part}"] >= 0.88


@pytest.mark.parametrize("kind", advice.SAID)
def test_what_is_predicted_as_it_was_made_lies_in_its_intervals_and_scores_best(monkeypatch, kind):
    """The truth where it is told, and a blunt guess where it is not."""
    options = {"n_groups": 20, "n_rows": 115}
    frame, curve = advice.make_said(kind, 1, **options), advice.make_known("shared", 1, noise=0.0, **options)["y"]
    level = (frame["y"] - curve).groupby(frame["s"]).transform("mean") if kind == "second group" else 0.0
    mean = pd.Series((curve + level).to_numpy(), index=frame["a"])
    told = {"ordered": lambda r: r.ordered, "second group": lambda r: r.second_group is not None}

    def predict(_, rows):
        at = mean[rows.values[:, 0]].to_numpy()[None]
        if not told[kind](rows):
            blunt = np.full((1, len(rows.y), 5), 0.2) if kind == "ordered" else None
            return tables.Prediction(0 * at, np.full((1, 1), 3.0)) if blunt is None else tables.Prediction(blunt)
        if kind == "ordered":
            below = expit(np.array([-2, -0.5, 0.5, 2]) - 2 * at[..., None])
            return tables.Prediction(np.diff(below, axis=-1, prepend=0.0, append=1.0))
        return tables.Prediction(at, np.full((1, 1), 0.3))

    monkeypatch.setattr(advice, "compile_said", lambda *_: None)
    monkeypatch.setattr(tables, "fit_network", lambda rows, **_: None)
    monkeypatch.setattr(tables, "predict", predict)
    found = advice.ask_said(kind, 1)
    assert found["lpd, told"] > found["lpd, not told"]
    assert found["inside 50%"] == pytest.approx(0.5, abs=0.04)
    assert found["inside 90%"] == pytest.approx(0.9, abs=0.025)
