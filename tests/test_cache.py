"""A stored posterior is used when everything it depends on is the same, and never otherwise."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pymc as pm
import pytest
from bnn import cache, data, inference, models

ASKED = {"chains": 2, "draws": 20, "tune": 20, "target_accept": 0.8}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.SWITCH, str(tmp_path / "posteriors"))
    return tmp_path / "posteriors"


@pytest.fixture(scope="module")
def drawn():
    """A posterior as the sampler gives it: one run for all tests here."""
    return inference.sample_nuts(make_model(), seed=1, **ASKED)


@pytest.fixture
def sampled(monkeypatch, drawn):
    """How often the sampler was called; in its place stand draws that depend on the seed and on the data alone."""
    calls = []

    def draw(model, **asked):
        calls.append(asked)
        tree = drawn.copy(deep=True)
        tree.attrs |= asked
        a = tree["posterior"]["a"].values
        a[:] = np.random.default_rng(asked["seed"]).normal(model["x"].get_value(), size=a.shape)
        return tree

    monkeypatch.setattr(inference, "sample_nuts", draw)
    return calls


def make_model(observed=0.5, sigma=1.0, scale=1.0):
    with pm.Model() as model:
        x = pm.Data("x", np.array([observed]))
        pm.Normal("y", pm.Normal("a", 0, scale), sigma, observed=x)
    return model


def test_what_is_stored_is_what_the_sampler_draws(folder, drawn):
    stored = cache.sample_cached(make_model(), seed=1, **ASKED)
    assert stored["posterior"].identical(drawn["posterior"])
    assert len(list(folder.iterdir())) == 1


def test_the_second_time_draws_are_read_and_equal(folder, sampled):
    first, second = (cache.sample_cached(make_model(), seed=1, **ASKED) for _ in range(2))
    assert len(sampled) == 1
    assert first.attrs == second.attrs
    assert first["posterior"].identical(second["posterior"])
    assert first["sample_stats"].identical(second["sample_stats"])
    assert [path.suffix for path in folder.iterdir()] == [".nc"]


@pytest.mark.parametrize(
    "change",
    [{"seed": 2}, {"draws": 21}, {"tune": 21}, {"chains": 3}, {"target_accept": 0.81}],
    ids=str,
)
def test_other_settings_are_another_posterior(folder, sampled, change):
    cache.sample_cached(make_model(), seed=1, **ASKED)
    cache.sample_cached(make_model(), **({"seed": 1} | ASKED | change))
    assert len(sampled) == 2


@pytest.mark.parametrize("change", [{"observed": 0.6}, {"sigma": 1.1}, {"scale": 2.0}], ids=str)
def test_other_data_constants_and_priors_are_another_posterior(change):
    assert cache.digest_run(make_model(), {}) != cache.digest_run(make_model(**change), {})


def test_the_same_variables_in_another_graph_are_another_posterior():
    def build(swapped):
        with pm.Model() as model:
            a, b = pm.Normal("a"), pm.Normal("b")
            pm.Normal("y", (b - a) if swapped else (a - b), 1, observed=0.5)
        return model

    assert cache.digest_run(build(True), {}) != cache.digest_run(build(False), {})


def test_other_source_of_the_package_is_another_posterior(monkeypatch):
    before = cache.digest_run(make_model(), {})
    monkeypatch.setattr(cache.inspect, "getsource", lambda module: f"{module.__name__}, edited")
    assert cache.digest_run(make_model(), {}) != before


def test_other_settings_in_force_are_another_posterior(monkeypatch):
    before = cache.digest_run(make_model(), {})
    honest = cache.environment.read_back()
    monkeypatch.setattr(cache.environment, "read_back", lambda: honest | {"blas": "another"})
    assert cache.digest_run(make_model(), {}) != before


def name_hierarchy():
    """The name of a run of the book's own kind of model."""
    moons = data.rotated_moons(seed=1, n_groups=2, n_train=5)
    return cache.digest_run(models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(3, 3)), {"seed": 1})


@pytest.mark.slow  # where names differ, chapters take longer, and print the same
def test_another_process_finds_the_same_name():
    code = "import test_cache; print(test_cache.name_hierarchy())"
    environ = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == [name_hierarchy()]


@pytest.mark.parametrize("damage", [b"", b"no NetCDF", None], ids=["empty", "text", "cut"])
def test_a_damaged_file_is_sampled_again_and_replaced(folder, sampled, damage):
    first = cache.sample_cached(make_model(), seed=1, **ASKED)
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:3000] if damage is None else damage)
    again = cache.sample_cached(make_model(), seed=1, **ASKED)
    assert len(sampled) == 2
    assert first["posterior"].identical(again["posterior"])
    cache.sample_cached(make_model(), seed=1, **ASKED)
    assert len(sampled) == 2


@pytest.mark.parametrize("change", [{"seed": 2}, {"observed": 0.6}], ids=str)
def test_draws_of_another_run_under_this_name_are_not_trusted(folder, sampled, change):
    model = make_model(**{name: value for name, value in change.items() if name != "seed"})
    other = cache.sample_cached(model, seed=change.get("seed", 1), **ASKED)
    (theirs,) = folder.iterdir()
    ours = cache.sample_cached(make_model(), seed=1, **ASKED)
    (mine,) = set(folder.iterdir()) - {theirs}
    shutil.copy(theirs, mine)
    again = cache.sample_cached(make_model(), seed=1, **ASKED)
    assert again["posterior"].identical(ours["posterior"])
    assert not again["posterior"].identical(other["posterior"])


def test_a_result_that_another_program_saved_under_this_name_is_not_trusted(folder, sampled, drawn):
    cache.sample_cached(make_model(), seed=1, **ASKED)
    (path,) = folder.iterdir()
    inference.save(drawn, path)  # the same settings and shapes, and not a word on what it was drawn from
    cache.sample_cached(make_model(), seed=1, **ASKED)
    assert len(sampled) == 2


def test_off_stores_nothing(monkeypatch, tmp_path, sampled):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.SWITCH, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for _ in range(2):
        cache.sample_cached(make_model(), seed=1, **ASKED)
    assert len(sampled) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["OFF", "0", "no", "False", " off "])
def test_other_words_for_off_are_no_folders(monkeypatch, word):
    monkeypatch.setenv(cache.SWITCH, word)
    assert cache.find_folder() is None


def test_a_folder_that_cannot_be_written_costs_time_and_not_the_result(monkeypatch, tmp_path, caplog, sampled):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(cache.SWITCH, str(tmp_path / "file" / "posteriors"))
    tree = cache.sample_cached(make_model(), seed=1, **ASKED)
    assert tree["posterior"].sizes["draw"] == 20
    assert "could not be stored" in caplog.text


def test_without_a_wish_the_users_cache_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.SWITCH, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.find_folder() == tmp_path / "bnn" / "posteriors"
