"""Draws that were sampled elsewhere are used when they are asked for, whole, and of this very run; else never."""

import hashlib
import json

import numpy as np
import pymc as pm
import pytest
import xarray as xr
import yaml
from bnn import cache, inference, published
from tools import release_posteriors
from tools.chapters import BOOK

ASKED = inference.ONE_CORE | {"chains": 2, "draws": 30, "tune": 20}
ROOT = BOOK.parent


def make_model(observed=0.5, size=published.MANY + 1):
    with pm.Model() as model:
        x = pm.Data("x", np.full(3, observed))
        few, many = pm.Normal("few"), pm.Normal("many", shape=size)
        pm.Normal("y", few + many.sum(), observed=x)
    return model


@pytest.fixture(scope="module")
def drawn():
    return pm.sample(model=make_model(), random_seed=1, **ASKED)


@pytest.fixture
def ask(drawn, monkeypatch, tmp_path):
    """`cached` on a machine that has no draws of its own: a function that returns them and how often it sampled."""
    monkeypatch.setenv(cache.SWITCH, str(tmp_path / "own"))

    def ask(place, **change):
        monkeypatch.setenv(published.SWITCH, str(place))
        sampled = []

        def sample(*_, **__):
            sampled.append(1)
            return drawn

        settings = {"random_seed": 1} | ASKED | {k: v for k, v in change.items() if k != "observed"}
        tree = cache.cached(sample)(model=make_model(change.get("observed", 0.5)), **settings)
        return tree, len(sampled)

    return ask


@pytest.fixture
def folder(drawn, tmp_path):
    """What a release publishes of `drawn`."""
    asked = {k: v for k, v in ASKED.items() if k not in cache.UNSEEN} | {"random_seed": 1}
    published.publish(
        cache._strip(drawn), cache.digest_run(make_model(), asked, anywhere=True), tmp_path / "out", "a page"
    )
    return tmp_path / "out"


def test_draws_are_read_and_it_is_said(ask, folder, drawn, caplog):
    tree, sampled = ask(folder)
    assert sampled == 0
    assert f"not sampled here: they are published at {folder}" in caplog.text
    assert set(tree) == {"posterior", "sample_stats"}
    assert tree["posterior"].sizes == drawn["posterior"].sizes
    assert (tree["sample_stats"]["diverging"] == drawn["sample_stats"]["diverging"]).all()


def test_rounding_is_half_a_step_of_the_range_at_most(ask, folder, drawn):
    posterior = ask(folder)[0]["posterior"]
    for name, levels in (("few", 2**16 - 2), ("many", 2**8 - 2)):
        here, there = posterior[name].values, drawn["posterior"][name].values
        step = (there.max() - there.min()) / levels
        assert here.dtype == float
        assert 0.2 * step < np.abs(here - there).max() <= step * 0.501
        if name == "many":  # enough numbers to see a mean that is off by a twentieth of a step
            assert np.abs((here - there).mean()) < 0.05 * step


def test_what_was_published_is_not_kept_as_ones_own(ask, folder, tmp_path):
    ask(folder)
    assert not list((tmp_path / "own").glob("*"))
    assert ask("off")[1] == 1


def test_ones_own_draws_come_first(ask, folder, caplog):
    ask("")
    caplog.clear()
    assert ask(folder)[1] == 0
    assert not caplog.text


@pytest.mark.parametrize("place", ["", "off", "NO", " 0 "])
def test_unasked_nothing_is_read(ask, place, monkeypatch):
    monkeypatch.setattr(published, "fetch", lambda *_: pytest.fail("it looked"))
    assert ask(place)[1] == 1


@pytest.mark.parametrize(
    "change", [{"random_seed": 2}, {"draws": 31}, {"observed": 0.6}, {"target_accept": 0.9}], ids=str
)
def test_draws_of_another_run_are_not_used(ask, folder, change, caplog):
    assert ask(folder, **change)[1] == 1
    assert "it has none of this model, these data and these settings. It is sampled here" in caplog.text


def damage(folder):
    (path,) = folder.glob("*.nc")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def relabel(folder):
    """Another run's file under this run's name, with its right digest."""
    (path,), manifest = folder.glob("*.nc"), folder / published.MANIFEST
    with xr.open_datatree(path) as file:
        tree = file.load().copy()
    path.write_bytes(published.pack(tree, "another"))
    (entry,) = (known := json.loads(manifest.read_text())).values()
    entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(known))


def lose_file(folder):
    next(folder.glob("*.nc")).unlink()


def lose_manifest(folder):
    (folder / published.MANIFEST).unlink()


def break_manifest(folder):
    (folder / published.MANIFEST).write_text("<html>not found</html>")


def empty_manifest(folder):
    (folder / published.MANIFEST).write_text("[]")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(damage, "SHA-256 is not"), (relabel, "it holds another run"), (lose_file, "No such file"),
     (lose_manifest, "No such file"), (break_manifest, "Expecting value"), (empty_manifest, "no attribute")],
    ids=lambda x: getattr(x, "__name__", ""),
)  # fmt: skip
def test_what_cannot_be_trusted_is_sampled_and_it_is_said_why(ask, folder, spoil, why, caplog):
    spoil(folder)
    assert ask(folder)[1] == 1
    assert why in caplog.text
    assert "It is sampled here" in caplog.text


def test_release_is_that_of_the_books_repository(ask, monkeypatch, folder):
    asked = []

    def fetch(place, name):
        asked.append((place, name))
        return (folder / name).read_bytes()

    monkeypatch.setattr(published, "fetch", fetch)
    assert ask("release")[1] == 0
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert asked[0] == (f"{config['repository']['url']}/releases/latest/download", "posteriors.json")


def test_a_run_that_was_interrupted_is_not_published(drawn, tmp_path):
    tree = cache._strip(drawn).copy(deep=True)
    tree["posterior"]["few"].values[1, 7:] = np.nan
    with pytest.raises(ValueError, match="few has numbers that are not finite"):
        published.publish(tree, "run", tmp_path / "out", "a page")
    assert not list((tmp_path / "out").glob("*"))


def test_another_machine_finds_the_same_name_and_another_model_does_not(monkeypatch):
    def name(observed=0.5):
        return cache.digest_run(make_model(observed), {"draws": 3}, anywhere=True), cache.digest_run(
            make_model(observed), {}
        )

    here = name()
    assert name(0.5 + 1e-9)[0] == here[0]  # what another processor's sine may do
    assert name(0.5 + 1e-9)[1] != here[1]
    assert name(0.50001)[0] != here[0]
    monkeypatch.setattr(cache, "_describe_machine", lambda: ["another"])
    monkeypatch.setattr(cache.environment, "read_back", lambda: {"another": "setting"})
    assert name()[0] == here[0]
    assert name()[1] != here[1]


def test_what_rounding_moves_is_measured_in_the_errors_that_are_printed():
    def page(text):
        cell = {"cell_type": "code", "outputs": [{"output_type": "stream", "name": "stdout", "text": text}]}
        return type("nb", (), {"cells": [type("cell", (dict,), {"__getattr__": dict.__getitem__})(cell)]})

    before = page("gain 1.00 ± 0.10, yes\n")
    assert release_posteriors.list_moves(before, page("gain 1.21 ± 0.10, yes\n")) == (pytest.approx([2 / 2**0.5]), [])
    moves, words = release_posteriors.list_moves(before, page("gain 1.00 ± 0.10, no\n"))
    assert not moves
    assert len(words) == 1


@pytest.mark.slow
def test_no_number_of_a_chapter_moves_by_more_than_its_error(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(cache.SWITCH, "off")
    release_posteriors.make(tmp_path)
    assert release_posteriors.compare(tmp_path, ["group_sd"]), capsys.readouterr().out
