"""A stored posterior is used when everything it depends on is the same, and never otherwise."""

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from bookkit import cache, data, models
from hbnn import fuse, sampling

ASKED = sampling.ONE_CORE | {"chains": 2, "draws": 20, "tune": 20}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.SWITCH, str(tmp_path / "posteriors"))
    return tmp_path / "posteriors"


@pytest.fixture(scope="module")
def drawn():
    """A posterior as PyMC gives it: one run for all tests here."""
    return pm.sample(model=make_model(), random_seed=1, **ASKED)


class Sampler:
    """In the place of `pm.sample`, draws that depend on the seed and on the data alone; `asked` has a dict per call."""

    def __init__(self, drawn):
        self.drawn, self.asked = drawn, []
        self.change = lambda tree: tree

    def draw(self, **asked):
        """What `bookkit.cache.cached(pm.sample)` returns, for `make_model()` and seed 1 unless told otherwise."""
        return cache.cached(self.sample)(**({"model": make_model(), "random_seed": 1} | ASKED | asked))

    def sample(self, draws, *, model, random_seed, **asked):
        self.asked.append(asked)
        tree = self.drawn.copy(deep=True)
        a = tree["posterior"]["a"].values
        a[:] = np.random.default_rng(random_seed).normal(model["x"].get_value(), size=a.shape)
        return self.change(tree)


@pytest.fixture
def sampler(drawn):
    return Sampler(drawn)


def make_model(observed=0.5, sigma=1.0, scale=1.0):
    with pm.Model() as model:
        x = pm.Data("x", np.array([observed]))
        pm.Normal("y", pm.Normal("a", 0, scale), sigma, observed=x)
    return model


# --- what is stored


def test_what_the_sampler_draws_is_returned_and_the_second_time_read(folder, drawn, sampler):
    first = cache.cached(lambda *_, **__: drawn)(model=make_model(), random_seed=1, **ASKED)
    assert first["posterior"].to_dataset().equals(drawn["posterior"].to_dataset())
    numbers = drawn["sample_stats"].to_dataset().drop_vars("divergence_message")  # text or None, for each draw
    assert first["sample_stats"].to_dataset().equals(numbers)
    second = sampler.draw()
    assert not sampler.asked
    assert first.identical(second)
    assert second["posterior"].attrs["inference_library"] == "nutpie"


def lose_draws(tree):
    """The second of two chains was interrupted: nutpie fills it up with NaN."""
    tree["posterior"]["a"].values[1, 7:] = np.nan
    tree["sample_stats"]["energy"].values[1, 7:] = np.nan
    return tree


def cut_draws(tree):
    """The only chain was interrupted: it is shorter."""
    return tree.isel(chain=slice(1), draw=slice(7))


@pytest.mark.parametrize(("change", "chains"), [(lose_draws, 2), (cut_draws, 1)])
def test_what_an_interruption_left_is_returned_and_not_stored(folder, sampler, change, chains):
    sampler.change = change
    assert np.isfinite(sampler.draw(chains=chains)["posterior"]["a"]).sum() < 20 * chains
    assert not folder.exists()


# --- another posterior


@pytest.mark.parametrize("name", ["random_seed", "draws", "tune", "chains", "target_accept"])
def test_other_settings_are_another_posterior_where_they_change_draws(folder, sampler, name):
    sampler.draw(**{name: 20})
    sampler.draw(**{name: 20}, progressbar=True, quiet=False, compute_convergence_checks=True)
    assert sampler.asked == [{k: v for k, v in (ASKED | {name: 20}).items() if k not in ("draws", "random_seed")}]
    sampler.draw(**{name: 21})
    assert len(sampler.asked) == 2


START = np.array([0.1, 0.2])


def name_two(swap=False, start=None, dims=("one",), labels=(0, 1), follow=None, observed=0.5, sigma=1.0):
    """The name of a run of a model of two variables."""
    with pm.Model(coords={"one": labels, "other": labels}) as model:
        a, b = pm.Normal("a", dims=dims, initval=start), pm.Normal("b")
        x = pm.Data("x", [observed, 0.5])
        pm.Normal("difference", b - a if swap else a - b, sigma, observed=x)
        if follow:
            pm.Deterministic(follow[0], follow[1] * a)
    return cache.digest_run(model, {})


def test_another_model_or_other_data_are_another_posterior():
    changes = [
        {}, {"swap": True}, {"follow": ("twice", 2)}, {"follow": ("twice", 3)}, {"follow": ("thrice", 2)},
        {"dims": ("other",)}, {"labels": (1, 2)}, {"start": START}, {"start": np.nextafter(START, 1)},
        {"observed": 0.6}, {"sigma": 1.1},
    ]  # fmt: skip
    assert len({name_two(**change) for change in changes}) == len(changes)


def name_hierarchy(**options):
    """The name of a run of the book's own kind of model."""
    moons = data.rotated_moons(seed=1, n_groups=2, n_train=5)
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(3, 3))
    return cache.digest_run(fuse(model, check=False, **options), {"seed": 1})


def test_another_arithmetic_is_another_posterior():
    assert name_hierarchy(dtype="float32") != name_hierarchy()


@pytest.mark.slow  # where names differ, chapters take longer, and print the same
def test_another_process_finds_the_same_name():
    code = "from bookkit import cache, data, models\nfrom hbnn import fuse\n" + inspect.getsource(name_hierarchy)
    environ = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code + "print(name_hierarchy())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == [name_hierarchy()]


def test_other_numbers_of_the_library_are_another_posterior_here_and_anywhere(monkeypatch):
    def name():
        return [cache.digest_run(make_model(), {}, anywhere=anywhere) for anywhere in (False, True)]

    before = name()
    monkeypatch.setattr("hbnn.NUMBERS", 1000)
    assert all(old != new for old, new in zip(before, name(), strict=True))


# --- what is not trusted


def flip(content, tree):
    """One bit of one draw."""
    at = content.index(tree["posterior"]["a"].values.tobytes()[:64])
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("damage", [lambda *_: b"no NetCDF", lambda content, _: content[:3000], flip])
def test_a_damaged_file_is_sampled_again_and_replaced(folder, sampler, damage):
    first = sampler.draw()
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes(), first))
    assert first.identical(sampler.draw())
    assert len(sampler.asked) == 2
    sampler.draw()
    assert len(sampler.asked) == 2


def test_draws_of_another_run_or_of_another_program_are_not_trusted(folder, sampler):
    sampler.draw(random_seed=2)
    (theirs,) = folder.iterdir()
    ours = sampler.draw()
    (mine,) = set(folder.iterdir()) - {theirs}
    shutil.copy(theirs, mine)
    assert sampler.draw().identical(ours)
    unnamed = ours.copy()
    del unnamed.attrs[cache.RUN]  # the same settings and shapes, and not a word on what it was drawn from
    unnamed.to_netcdf(mine, engine="h5netcdf")
    sampler.draw()
    assert len(sampler.asked) == 4


def test_draws_that_could_not_be_made_again_are_refused(folder, sampler):
    with pytest.raises(ValueError, match=r"seed=.*; wanted: an integer of at least 0"):
        sampler.draw(random_seed=None)


# --- where it is stored


def test_the_switch_names_a_folder_or_is_on_or_off(monkeypatch, tmp_path, sampler):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    usual = tmp_path / "hbnn" / "posteriors"
    words = {" off ": None, "False": None, "": usual, " Yes ": usual, "elsewhere": Path("elsewhere")}
    for word, place in words.items():
        monkeypatch.setenv(cache.SWITCH, word)
        assert cache.find_folder() == place
    monkeypatch.setenv(cache.SWITCH, "off")
    sampler.draw()
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_or_in_the_way_costs_time_and_not_the_result(folder, monkeypatch, caplog, sampler):
    folder.write_text("in the way")
    assert sampler.draw()["posterior"].sizes["draw"] == 20
    assert "could not be stored: " in caplog.text
    folder.unlink()

    def fill(path, content):
        with open(path, "wb") as file:
            file.write(content[:1000])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert sampler.draw()["posterior"].sizes["draw"] == 20
    assert "could not be stored: no space left" in caplog.text
    assert not list(folder.iterdir())
