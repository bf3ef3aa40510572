"""Draws that were sampled elsewhere are used when they are asked for, whole, and of this very run; else never."""

import hashlib
import json
import time
from io import BytesIO

import numpy as np
import pymc as pm
import pytest
import requests
import xarray as xr
import yaml
from bookkit import cache, published
from hbnn import sampling
from tools import release_posteriors

ASKED = sampling.ONE_CORE | {"chains": 2, "draws": 30, "tune": 20}


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
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "copies"))

    def ask(place, observed=0.5, **change):
        monkeypatch.setenv(published.SWITCH, str(place))
        sampled = []
        sample = cache.cached(lambda *_, **__: sampled.append(1) or drawn)
        return sample(model=make_model(observed), **({"random_seed": 1} | ASKED | change)), len(sampled)

    return ask


@pytest.fixture
def folder(ask, tmp_path, monkeypatch):
    """What a release publishes of `drawn`."""
    monkeypatch.setattr(release_posteriors, "run_cells", lambda *_: {release_posteriors.NAME: ask("release")[0]})
    with monkeypatch.context() as patch:
        patch.setenv(cache.SWITCH, "off")
        release_posteriors.main([str(tmp_path / "out")])
    return tmp_path / "out"


@pytest.fixture
def web(folder, monkeypatch):
    """The folder at an https address: a list of what was asked for, and of what is answered before the truth."""
    asked, lies = [], []

    def get(url, **_):
        asked.append(url)
        answer = requests.Response()
        path = folder / url.rpartition("/")[2]
        answer.status_code, content = (200, path.read_bytes()) if path.exists() else (404, b"")
        answer.raw = BytesIO(lies.pop() if lies and path.suffix == ".nc" else content)
        return answer

    monkeypatch.setattr(requests, "get", get)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    return asked, lies


def test_draws_are_read_and_it_is_said(ask, folder, drawn, caplog, tmp_path):
    tree, sampled = ask(folder)
    assert sampled == 0
    assert f"not sampled here: they are published at {folder}" in caplog.text
    assert (tree["sample_stats"]["diverging"] == drawn["sample_stats"]["diverging"]).all()
    assert not (tmp_path / "own").exists()  # not kept as one's own


def test_rounding_is_half_a_step_of_the_range_at_most(ask, folder, drawn):
    posterior = ask(folder)[0]["posterior"]
    for name, levels in (("few", 2**16 - 2), ("many", 2**8 - 2)):
        here, there = posterior[name].values, drawn["posterior"][name].values
        step = (there.max() - there.min()) / levels
        assert here.dtype == float
        assert 0.2 * step < np.abs(here - there).max() <= step * 0.501
        if name == "many":  # enough numbers to see a mean that is off by a twentieth of a step
            assert np.abs((here - there).mean()) < 0.05 * step


def test_ones_own_draws_come_first(ask, folder, caplog):
    ask("off")
    caplog.clear()
    assert ask(folder)[1] == 0
    assert not caplog.text


def test_unasked_nothing_is_read(ask, monkeypatch):
    monkeypatch.setattr(published, "fetch", lambda *_: pytest.fail("it looked"))
    monkeypatch.setenv(cache.SWITCH, "off")
    assert [ask(place)[1] for place in ("", " NO ")] == [1, 1]


@pytest.mark.parametrize("change", [{"random_seed": 2}, {"observed": 0.6}], ids=str)
def test_draws_of_another_run_are_not_used(ask, folder, change, caplog):
    assert ask(folder, **change)[1] == 1
    assert "it has none of this model, these data and these settings. It is sampled here" in caplog.text


def damage(path, manifest):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def relabel(path, manifest):
    """Another run's file under this run's name, with its right digest."""
    with xr.open_datatree(path) as file:
        tree = file.load().copy()
    path.write_bytes(published.pack(tree, "another"))
    (entry,) = (known := json.loads(manifest.read_text())).values()
    entry["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(known))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(damage, "SHA-256 is not"), (relabel, "it holds another run"), (lambda path, _: path.unlink(), "No such file"),
     (lambda _, manifest: manifest.write_text("<html>not found</html>"), "Expecting value")],
)  # fmt: skip
def test_what_cannot_be_trusted_is_sampled_and_it_is_said_why(ask, folder, spoil, why, caplog):
    spoil(next(folder.glob("*.nc")), folder / published.MANIFEST)
    assert ask(folder)[1] == 1
    assert why in caplog.text
    assert "It is sampled here" in caplog.text


def test_release_is_that_of_the_books_repository_and_downloaded_once(ask, web):
    asked, lies = web
    lies.append(b"cut off")
    config = yaml.safe_load(published.CONFIG.read_text(encoding="utf-8"))
    address = f"{config['repository']['url']}/releases/latest/download/posterior"
    for n_files in (2, 0):  # the first answer does not fit, and it is tried again; then there is a copy
        asked.clear()
        assert ask("release")[1] == 0
        assert asked[0] == f"{address}s.json"
        assert [url.startswith(f"{address}-") for url in asked[1:]] == [True] * n_files


def test_what_does_not_arrive_is_sampled(ask, web, folder, caplog, monkeypatch):
    _, lies = web
    lies.extend([b"rubbish"] * 9)
    assert ask("https://example.org/")[1] == 1
    assert "does not match the known hash" in caplog.text
    monkeypatch.setenv(cache.SWITCH, "off")
    monkeypatch.setattr(published, "CONFIG", folder / "_config.yml")
    assert ask("release")[1] == 1
    assert "_config.yml, which names the repository; wanted: a folder or an address (https)" in caplog.text


def test_another_machine_finds_the_same_name_and_another_model_does_not(monkeypatch):
    def name(observed=0.5):
        return [cache.digest_run(make_model(observed), {}, anywhere=anywhere) for anywhere in (True, False)]

    here = name()
    assert [a == b for a, b in zip(name(0.5 + 1e-9), here, strict=True)] == [True, False]  # another processor's sine
    assert name(0.50001)[0] != here[0]
    for module, function in ((cache, "_describe_machine"), (cache.environment, "read_back")):
        with monkeypatch.context() as patch:
            patch.setattr(module, function, lambda: ["another"])
            assert [a == b for a, b in zip(name(), here, strict=True)] == [True, False]
