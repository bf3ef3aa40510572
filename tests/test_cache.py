"""A stored posterior is used when everything it depends on is the same, and never otherwise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from bnn import cache, data, inference, models
from bnn.fuse import fuse

ASKED = inference.ONE_CORE | {"chains": 2, "draws": 20, "tune": 20}


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
        """What `bnn.cache.cached(pm.sample)` returns, for `make_model()` and seed 1 unless told otherwise."""
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


def test_what_the_sampler_draws_is_returned_and_stored(folder, drawn):
    tree = cache.cached(lambda *_, **__: drawn)(model=make_model(), random_seed=1, **ASKED)
    assert set(tree) == {"posterior", "sample_stats"}
    assert tree["posterior"].to_dataset().equals(drawn["posterior"].to_dataset())
    numbers = drawn["sample_stats"].to_dataset().drop_vars("divergence_message")  # text or None, for each draw
    assert tree["sample_stats"].to_dataset().equals(numbers)
    assert len(list(folder.iterdir())) == 1


def test_the_sampler_is_told_all_settings(folder, sampler):
    sampler.draw(target_accept=0.9)
    assert sampler.asked == [{k: v for k, v in ASKED.items() if k != "draws"} | {"target_accept": 0.9}]


def test_the_second_time_draws_are_read_and_equal(folder, sampler):
    first, second = sampler.draw(), sampler.draw()
    assert len(sampler.asked) == 1
    assert first.identical(second)
    for node in first.subtree:
        for name, variable in node.variables.items():
            assert second[node.path].variables[name].dtype == variable.dtype
    assert [path.suffix for path in folder.iterdir()] == [".nc"]


def test_a_posterior_says_how_it_was_drawn(folder, sampler):
    for tree in (sampler.draw(), sampler.draw()):
        attributes = tree["posterior"].attrs
        assert (attributes["inference_library"], attributes["tuning_steps"]) == ("nutpie", 20)


def lose_draws(tree):
    """The second of two chains was interrupted: nutpie fills it up with NaN."""
    tree["posterior"]["a"].values[1, 7:] = np.nan
    tree["sample_stats"]["energy"].values[1, 7:] = np.nan
    return tree


def cut_draws(tree):
    """The only chain was interrupted: it is shorter."""
    return tree.isel(chain=slice(1), draw=slice(7))


@pytest.mark.parametrize(
    ("change", "chains"),
    [
        (lose_draws, 2),
        (cut_draws, 1),
    ],
)
def test_what_an_interruption_left_is_returned_and_not_stored(folder, sampler, change, chains):
    sampler.change = change
    assert np.isfinite(sampler.draw(chains=chains)["posterior"]["a"]).sum() < 20 * chains
    sampler.change = lambda tree: tree
    sampler.draw(chains=chains)
    assert len(sampler.asked) == 2


# --- another posterior


@pytest.mark.parametrize(
    "change",
    [{"random_seed": 2}, {"draws": 21}, {"tune": 21}, {"chains": 3}, {"target_accept": 0.81}],
    ids=str,
)
def test_other_settings_are_another_posterior(folder, sampler, change):
    sampler.draw()
    sampler.draw(**change)
    assert len(sampler.asked) == 2


@pytest.mark.parametrize("change", [{"progressbar": True}, {"quiet": False}, {"compute_convergence_checks": True}])
def test_settings_that_change_no_draw_are_the_same_posterior(folder, sampler, change):
    sampler.draw()
    sampler.draw(**change)
    assert len(sampler.asked) == 1


@pytest.mark.parametrize("change", [{"observed": 0.6}, {"sigma": 1.1}, {"scale": 2.0}], ids=str)
def test_other_data_constants_and_priors_are_another_posterior(change):
    assert cache.digest_run(make_model(), {}) != cache.digest_run(make_model(**change), {})


def swap(a, b):
    pm.Normal("difference", b - a, 1, observed=[0.5, 0.5])


def plain(a, b):
    pm.Normal("difference", a - b, 1, observed=[0.5, 0.5])


def follow(a, b):
    plain(a, b)
    pm.Deterministic("twice", 2 * a)


def follow_more(a, b):
    plain(a, b)
    pm.Deterministic("twice", 3 * a)


def follow_elsewhere(a, b):
    plain(a, b)
    pm.Deterministic("thrice", 2 * a)


def name_two(build, start=None, dims=("one",), labels=(0, 1)):
    """The name of a run of a model of two variables."""
    with pm.Model(coords={"one": labels, "other": labels}) as model:
        build(pm.Normal("a", dims=dims, initval=start), pm.Normal("b"))
    return cache.digest_run(model, {})


@pytest.mark.parametrize("change", [swap, follow], ids=lambda build: build.__name__)
def test_the_same_variables_in_another_graph_are_another_posterior(change):
    assert name_two(change) != name_two(plain)


@pytest.mark.parametrize("change", [follow_more, follow_elsewhere], ids=lambda build: build.__name__)
def test_another_deterministic_variable_is_another_posterior(change):
    assert name_two(change) != name_two(follow)


@pytest.mark.parametrize("change", [{"dims": ("other",)}, {"labels": (1, 2)}, {"start": np.full(2, 0.5)}], ids=str)
def test_other_dimensions_labels_and_initial_values_are_another_posterior(change):
    assert name_two(plain, **change) != name_two(plain)


def test_initial_values_count_to_the_last_digit():
    start = np.array([0.1, 0.2])
    assert name_two(plain, start=start) != name_two(plain, start=np.nextafter(start, 1))


def name_hierarchy(**options):
    """The name of a run of the book's own kind of model."""
    moons = data.rotated_moons(seed=1, n_groups=2, n_train=5)
    model = models.hierarchical_bnn(moons.X_train, moons.y_train, n_hidden=(3, 3))
    return cache.digest_run(fuse(model, check=False, **options), {"seed": 1})


def test_another_arithmetic_is_another_posterior():
    assert name_hierarchy(dtype="float32") != name_hierarchy()


def test_other_source_of_the_package_is_another_posterior(monkeypatch):
    before = cache.digest_run(make_model(), {})
    monkeypatch.setattr(cache.inspect, "getsource", lambda module: f"{module.__name__}, edited")
    assert cache.digest_run(make_model(), {}) != before


def test_other_settings_in_force_are_another_posterior(monkeypatch):
    before = cache.digest_run(make_model(), {})
    honest = cache.environment.read_back()
    monkeypatch.setattr(cache.environment, "read_back", lambda: honest | {"blas": "another"})
    assert cache.digest_run(make_model(), {}) != before


@pytest.mark.slow  # where names differ, chapters take longer, and print the same
def test_another_process_finds_the_same_name():
    code = "import test_cache; print(test_cache.name_hierarchy())"
    environ = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == [name_hierarchy()]


# --- what is not trusted


def cut(content, tree):
    return content[:3000]


def flip(content, tree):
    """One bit of one draw."""
    at = content.index(tree["posterior"]["a"].values.tobytes()[:64])
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize(
    "damage",
    [lambda *_: b"", lambda *_: b"no NetCDF", cut, flip],
    ids=["empty", "text", "cut", "flipped"],
)
def test_a_damaged_file_is_sampled_again_and_replaced(folder, sampler, damage):
    first = sampler.draw()
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes(), first))
    again = sampler.draw()
    assert len(sampler.asked) == 2
    assert first.identical(again)
    sampler.draw()
    assert len(sampler.asked) == 2


@pytest.mark.parametrize("change", [{"random_seed": 2}, {"model": make_model(observed=0.6)}], ids=["seed", "data"])
def test_draws_of_another_run_under_this_name_are_not_trusted(folder, sampler, change):
    other = sampler.draw(**change)
    (theirs,) = folder.iterdir()
    ours = sampler.draw()
    (mine,) = set(folder.iterdir()) - {theirs}
    shutil.copy(theirs, mine)
    again = sampler.draw()
    assert again.identical(ours)
    assert not again["posterior"].identical(other["posterior"])


def test_a_result_that_another_program_saved_under_this_name_is_not_trusted(folder, sampler):
    tree = sampler.draw()
    (path,) = folder.iterdir()
    del tree.attrs[cache.RUN]  # the same settings and shapes, and not a word on what it was drawn from
    tree.to_netcdf(path, engine="h5netcdf")
    sampler.draw()
    assert len(sampler.asked) == 2


# --- where it is stored


def test_off_stores_nothing(monkeypatch, tmp_path, sampler):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(cache.SWITCH, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sampler.draw().identical(sampler.draw())
    assert len(sampler.asked) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", ["OFF", "0", "no", "False", " off "])
def test_other_words_for_off_are_no_folders(monkeypatch, word):
    monkeypatch.setenv(cache.SWITCH, word)
    assert cache.find_folder() is None


def test_without_a_wish_the_users_cache_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.SWITCH, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.find_folder() == tmp_path / "bnn" / "posteriors"
    for word in ("on", "1", " Yes ", "TRUE"):
        monkeypatch.setenv(cache.SWITCH, word)
        assert cache.find_folder() == tmp_path / "bnn" / "posteriors"


def test_a_folder_that_cannot_be_written_costs_time_and_not_the_result(monkeypatch, tmp_path, caplog, sampler):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv(cache.SWITCH, str(tmp_path / "file" / "posteriors"))
    assert sampler.draw()["posterior"].sizes["draw"] == 20
    assert "could not be stored" in caplog.text


def test_a_full_disk_costs_time_and_not_the_result(folder, monkeypatch, caplog, sampler):
    def fill(path, content):
        with open(path, "wb") as file:
            file.write(content[:1000])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", fill)
    assert sampler.draw()["posterior"].sizes["draw"] == 20
    assert "could not be stored: no space left" in caplog.text
    assert not list(folder.iterdir())


FULL = """
import os, resource, sys
import pytest, test_cache
from bnn import cache, inference

drawn = test_cache.pm.sample(model=test_cache.make_model(), random_seed=1, **test_cache.ASKED)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # a disk that is full after 20 kB
print(test_cache.Sampler(drawn).draw()["posterior"].sizes["draw"], os.listdir(os.environ[cache.SWITCH]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs limits on the size of a file")
def test_a_full_disk_is_not_the_end_of_the_process(folder):
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, env=environ)
    assert (done.returncode, done.stdout) == (0, "20 []\n")


@pytest.mark.parametrize("seed", [None, -1, 1.5])
def test_draws_that_could_not_be_made_again_are_refused(folder, sampler, seed):
    with pytest.raises(ValueError, match=r"seed=.*; wanted: an integer of at least 0"):
        sampler.draw(random_seed=seed)
