"""Posteriors that are kept or published are used when all that they depend on is the same, and never otherwise."""

import hashlib
import inspect
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
import xarray as xr
from bookkit import cache, data, models, published
from hbnn import fuse, sampling
from tools import release_posteriors
from tools.browser import serve

ASKED = sampling.ONE_CORE | {"chains": 2, "draws": 20, "tune": 20}
START = np.array([0.1, 0.2])


def make_model(observed=0.5, sigma=1.0, dims=("one",), labels=(0, 1), start=None, follow=None, swap=False):
    """With changes of all that may make another posterior of it."""
    with pm.Model(coords={"one": labels, "other": labels}) as model:
        a, b = pm.Normal("a", dims=dims, initval=start), pm.Normal("b")
        many = pm.Normal("many", shape=published.MANY + 1)
        x = pm.Data("x", [observed, 0.5])
        pm.Normal("y", (b - a if swap else a - b) + many.sum(), sigma, observed=x)
        if follow:
            pm.Deterministic(follow[0], follow[1] * a)
    return model


@pytest.fixture(scope="module")
def drawn():
    return pm.sample(model=make_model(), random_seed=1, **ASKED)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where this machine keeps posteriors."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "copies"))
    monkeypatch.setenv(cache.SWITCH, str(tmp_path / "own"))
    return tmp_path / "own"


@pytest.fixture
def draw(drawn, folder):
    """`cached(pm.sample)` of the model and seed 1: a function that returns draws and how often it has sampled by now.

    In the place of `pm.sample`, `change(drawn)`.
    """
    asked = []

    def draw(change=lambda tree: tree, observed=0.5, **options):
        def sample(**_):
            asked.append(1)
            return change(drawn.copy(deep=True))

        tree = cache.cached(sample)(**({"model": make_model(observed), "random_seed": 1} | ASKED | options))
        return tree, len(asked)

    return draw


def test_what_the_sampler_draws_is_returned_and_the_second_time_read(draw, drawn):
    (first, _), (second, n_sampled) = draw(), draw(progressbar=True, quiet=False, compute_convergence_checks=True)
    assert first["posterior"].to_dataset().equals(drawn["posterior"].to_dataset())
    numbers = drawn["sample_stats"].to_dataset().drop_vars("divergence_message")  # text or None, for each draw
    assert first["sample_stats"].to_dataset().equals(numbers)
    assert (first.identical(second), n_sampled) == (True, 1)
    assert second["posterior"].attrs["inference_library"] == "nutpie"


def lose_draws(tree):
    """The second of two chains was interrupted: nutpie fills it up with NaN."""
    tree["posterior"]["a"].values[1, 7:] = np.nan
    tree["sample_stats"]["energy"].values[1, 7:] = np.nan
    return tree


@pytest.mark.parametrize("change", [lose_draws, lambda tree: tree.isel(chain=slice(1), draw=slice(7))])
def test_what_an_interruption_left_is_returned_and_not_stored(folder, draw, change):
    assert np.isfinite(draw(change)[0]["posterior"]["b"]).sum() > 0
    assert not folder.exists()


def test_another_model_other_data_settings_and_numbers_of_the_library_are_another_posterior(monkeypatch, draw):
    changes = [
        {}, {"swap": True}, {"follow": ("twice", 2)}, {"follow": ("twice", 3)}, {"follow": ("thrice", 2)},
        {"dims": ("other",)}, {"labels": (1, 2)}, {"start": START}, {"start": START + 1e-5}, {"observed": 0.50001},
        {"sigma": 1.1},
    ]  # fmt: skip
    for anywhere in (False, True):
        names = [cache.digest_run(make_model(**change), {}, anywhere=anywhere) for change in changes]
        assert len(set(names)) == len(changes)
        with monkeypatch.context() as patch:
            patch.setattr("hbnn.NUMBERS", 1000)
            assert cache.digest_run(make_model(), {}, anywhere=anywhere) not in names
    draw()
    others = [{name: 21} for name in ("random_seed", "draws", "tune", "chains", "target_accept")]
    assert [draw(**other)[1] for other in others] == [2, 3, 4, 5, 6]


def test_another_sampler_with_the_same_settings_is_another_posterior(draw, drawn):
    draw()

    def sample_tempered(**_):
        return drawn.copy(deep=True).map_over_datasets(lambda part: part + 1 if "a" in part else part)

    options = {"model": make_model(), "random_seed": 1} | ASKED
    tempered = [cache.cached(sample_tempered)(**options)["posterior"]["a"].values for _ in range(2)]
    np.testing.assert_array_equal(tempered, [drawn["posterior"]["a"].values + 1] * 2)
    assert draw()[1] == 1


def test_another_machine_finds_the_published_name_and_not_its_neighbours_own(monkeypatch):
    def name(observed=0.5):
        return [cache.digest_run(make_model(observed), {}, anywhere=anywhere) for anywhere in (True, False)]

    here = name()
    assert [a == b for a, b in zip(name(0.5 + 1e-9), here, strict=True)] == [True, False]  # another processor's sine
    monkeypatch.setattr(cache, "machine", lambda: {"processor": "another"})
    assert [a == b for a, b in zip(name(), here, strict=True)] == [True, False]


def name_hierarchy(**options):
    """The name of a run of the book's own kind of model."""
    moons = data.rotated_moons(seed=1, n_groups=2, n_train=5)
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(3, 3))
    return cache.digest_run(fuse(model, check=False, **options), {"seed": 1})


@pytest.mark.slow  # where names differ, chapters take longer, and print the same
def test_another_process_finds_the_same_name_and_another_arithmetic_another():
    code = "from bookkit import cache, data, models\nfrom hbnn import fuse\n" + inspect.getsource(name_hierarchy)
    environ = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code + "print(name_hierarchy())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == [name_hierarchy()] != [name_hierarchy(dtype="float32")]


def flip(content, tree):
    """One bit of one draw."""
    at = content.index(tree["posterior"]["b"].values.tobytes()[:64])
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def rename(content, tree):
    """The draws of another run."""
    other = tree.copy()
    other.attrs[cache.RUN] = "another"
    return bytes(other.to_netcdf(engine="h5netcdf"))


@pytest.mark.parametrize("damage", [lambda content, _: content[:3000], flip, rename])
def test_a_file_that_cannot_be_trusted_is_sampled_again_and_replaced(folder, draw, damage):
    first, _ = draw()
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes(), first))
    assert [draw()[1], draw()[1]] == [2, 2]
    assert draw()[0].identical(first)


def test_the_switch_names_a_folder_or_is_on_or_off(monkeypatch, tmp_path, draw):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    usual = tmp_path / "hbnn" / "posteriors"
    words = {"False": None, "": usual, " Yes ": usual, "elsewhere": Path("elsewhere"), " off ": None}
    for word, place in words.items():
        monkeypatch.setenv(cache.SWITCH, word)
        assert cache.find_folder() == place
    draw()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"seed=.*; wanted: an integer of at least 0"):
        draw(random_seed=None)


def test_a_disk_that_is_full_costs_time_and_not_the_result(folder, monkeypatch, caplog, draw):
    def fill(path, content):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert draw()[0]["posterior"].sizes["draw"] == 20
    assert "could not be stored: no space left" in caplog.text
    assert not list(folder.iterdir())


# --- published draws


@pytest.fixture
def release(draw, folder, monkeypatch, tmp_path):
    """What the newest release publishes of `drawn` (Path), on a machine that keeps none and is told to look there."""
    site = tmp_path / "releases" / "latest" / "download"
    monkeypatch.setattr(release_posteriors, "run_cells", lambda *_: draw())
    with monkeypatch.context() as patch:
        patch.setenv(cache.SWITCH, "")
        release_posteriors.main([str(site)])
    monkeypatch.setenv(published.SWITCH, "release")
    monkeypatch.setattr(published, "CONFIG", tmp_path / "_config.yml")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)  # between one try and the next
    with serve(tmp_path) as address:
        published.CONFIG.write_text(f"repository: {{url: {address}}}")
        yield site


def test_published_draws_are_read_and_it_is_said_and_ones_own_come_first(draw, release, drawn, caplog, folder):
    tree, n_sampled = draw()
    assert n_sampled == 1  # by the release
    assert "/releases/latest/download/, and rounded" in caplog.text
    assert not folder.exists()  # not kept as one's own
    assert (tree["sample_stats"]["diverging"] == drawn["sample_stats"]["diverging"]).all()
    for name, levels in (("b", 2**16 - 2), ("many", 2**8 - 2)):
        here, there = tree["posterior"][name].values, drawn["posterior"][name].values
        step = (there.max() - there.min()) / levels
        assert here.dtype == float
        assert 0.2 * step < np.abs(here - there).max() <= step * 0.501
        if name == "many":  # enough numbers to see a mean that is off by a twentieth of a step
            assert np.abs((here - there).mean()) < 0.05 * step
    next(release.glob("*.nc")).unlink()
    assert draw()[1] == 1  # there is a copy
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(published.SWITCH, " NO ")
        assert draw()[1] == 2
    caplog.clear()
    assert (draw()[1], caplog.text) == (2, "")


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
    [(damage, "does not match the known hash"), (relabel, "it holds another run"),
     (lambda *_: published.CONFIG.unlink(), "wanted: an address"),
     (lambda _, manifest: manifest.write_text("<html>not found</html>"), "Expecting value"),
     (lambda _, manifest: manifest.write_text("{}"), "it has none of this model, data, settings and version"),
     (lambda path, _: path.unlink(), "404")],
)  # fmt: skip
def test_what_cannot_be_trusted_is_sampled_and_it_is_said_why(draw, release, spoil, why, caplog):
    spoil(next(release.glob("*.nc")), release / published.MANIFEST)
    assert draw()[1] == 2
    assert why in caplog.text
    assert "It is sampled here" in caplog.text
