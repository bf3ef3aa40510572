"""The database of reference posteriors: models are the book's, programs one density, files in posteriordb's layout."""

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bookkit import curves, data, models
from hbnn.reference import posteriors
from hbnn.reference.posteriors import BUMPS, CURVES, DRAWS, FLAT, FOLDER, HIERARCHICAL, IRIS, NAMES
from scipy.stats import multivariate_normal
from studies import _reference_files
from studies import reference as study

STAN = json.loads((Path(__file__).parent / "stan_check.json").read_text())


def draw_position(name, seed):
    """A random position: scales enter as their logarithms, under the name "log_…"."""
    rng = np.random.default_rng(seed)
    return {key: 0.7 * rng.normal(size=shape) for key, shape in study.list_positions(name).items()}


def to_unknowns(position):
    """The same position by the names of the unknowns."""
    return {k.removeprefix("log_"): np.exp(v) if k.startswith("log_") else np.asarray(v) for k, v in position.items()}


def compute(name, unknowns):
    """The functionals of one position: dict of arrays."""
    found = posteriors.load_posterior(name).compute(
        {key: np.asarray(value)[None, None] for key, value in unknowns.items()}
    )
    return {key: value[0, 0] for key, value in found.items()}


def compile_density(model):
    """The log density of a PyMC model and its slopes, of a position like `draw_position`'s."""
    joint = model.compile_fn([model.logp(), model.dlogp()], inputs=model.value_vars, mode="FAST_COMPILE")
    names = [f"log_{v.name.removesuffix('_log__')}" if v.name.endswith("_log__") else v.name for v in model.value_vars]

    def evaluate(position):
        values = zip(model.value_vars, names, strict=True)
        logp, slope = joint({variable.name: np.asarray(position[name]) for variable, name in values})
        parts = np.split(slope, np.cumsum([np.size(position[name]) for name in names])[:-1])
        return float(logp), {n: p.reshape(np.shape(position[n])) for n, p in zip(names, parts, strict=True)}

    return evaluate


@pytest.fixture(scope="module")
def densities():
    """Those of the database's PyMC programs."""
    return {name: compile_density(posteriors.build_posterior(name)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_pymc_and_jax_have_one_density_up_to_a_constant(name, densities):
    import jax

    jax.config.update("jax_enable_x64", True)
    ours = jax.jit(jax.value_and_grad(study.make_density(name)))
    apart = []
    for seed in range(3):
        position = draw_position(name, seed)
        logp, slope = densities[name](position)
        other, other_slope = ours(position)
        apart.append(logp - float(other))
        for key, value in slope.items():
            np.testing.assert_allclose(value, other_slope[key], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(apart, apart[0], atol=1e-8)


@pytest.mark.parametrize("name", STAN["posteriors"])
def test_stan_has_the_same_density_and_the_same_functionals(name, densities):
    """Stan is no dependency of this book; what it said was stored once, with the digest of the program that said it."""
    checked = STAN["posteriors"][name]
    program = FOLDER / "models" / "stan" / f"{name.split('-')[1]}.stan"
    assert hashlib.sha256(program.read_bytes()).hexdigest() == checked["program_sha256"], "check the program anew"
    apart = []
    for seed, found in enumerate(checked["positions"]):
        position = draw_position(name, seed)
        logp, slope = densities[name](position)
        apart.append(logp - found["log_density"])
        for key, value in slope.items():
            wanted = np.array(found["gradient"][key]).reshape(value.shape)
            np.testing.assert_allclose(value, wanted, rtol=1e-7, atol=1e-7, err_msg=key)
        ours = compute(name, to_unknowns(position))
        for key, value in ours.items():
            np.testing.assert_allclose(value, found["functionals"][key], rtol=1e-8, atol=1e-10, err_msg=key)
    np.testing.assert_allclose(apart, apart[0], atol=1e-7)


def test_the_models_are_those_of_the_chapters(densities):
    moons, groups = data.flat_moons(seed=0), data.legacy_rotated_moons()
    theirs = {
        FLAT: models.flat_bnn(moons.X_train, moons.y_train),
        HIERARCHICAL: models.hierarchical_bnn(groups.X_train, groups.y_train),
        CURVES: study.build_curves(),
    }
    for name, model in theirs.items():
        other, position = compile_density(model), draw_position(name, 7)
        assert other(position)[0] == pytest.approx(densities[name](position)[0], rel=1e-10), name


def test_the_curves_log_likelihood_is_that_of_normals():
    p = to_unknowns(draw_position(CURVES, 3))
    given = posteriors.load_posterior(CURVES).data
    h = np.tanh(given["x"][:, None] * p["w"] + p["b"]) - np.tanh(given["x0"] * p["w"] + p["b"])
    h = np.column_stack([h, np.ones(len(h))])
    tau = np.append(np.repeat(p["tau_shape"], 4), p["tau_level"])
    total = 0.0
    for g in range(1, 13):
        own = h[given["group"] == g]
        cov = (own * tau**2) @ own.T + p["sigma"] ** 2 * np.eye(len(own))
        total += multivariate_normal(own @ p["mu"], cov).logpdf(given["y"][given["group"] == g])
    assert compute(CURVES, p)["log_lik"] == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_relabelled_hidden_units_change_no_functional(name):
    """The last hidden layer in another order and, where tanh allows it, with another sign."""
    order = slice(None, None, -1)
    draws = to_unknowns(draw_position(name, 0))
    other = dict(draws)
    if name == CURVES:
        other |= {"w": draws["w"][..., order], "b": draws["b"][..., order]}
        other["mu"] = np.concatenate([draws["mu"][..., -2::-1], draws["mu"][..., -1:]], axis=-1)
    elif name == BUMPS:
        other |= {key: draws[key][order] for key in "wbv"}
    elif name == IRIS:
        other |= {"w1": -draws["w1"][:, order], "b1": -draws["b1"][order], "w2": -draws["w2"][order]}
    else:
        for key in ("w",) if name == FLAT else ("mu", "z"):
            other |= {f"{key}2": -draws[f"{key}2"][..., order], f"{key}3": -draws[f"{key}3"][..., order]}
    before, after = compute(name, draws), compute(name, other)
    for key, value in before.items():
        np.testing.assert_allclose(value, after[key], rtol=1e-9, atol=1e-12)


def test_data_and_descriptions_are_what_the_study_writes(tmp_path):
    _reference_files.write_data(tmp_path)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    with zipfile.ZipFile(DRAWS) as database:
        assert len(written) + 2 * len(NAMES) == len(database.namelist()) == 38
        for path in written:
            assert path.read_bytes() == database.read(path.relative_to(tmp_path).as_posix()), path.name
    with zipfile.ZipFile(FOLDER / "data.zip") as own:
        for name, (content, *_) in _reference_files.list_data().items():
            assert own.read(f"{name}.json").decode() == _reference_files.dump(content)


def test_the_measurements_are_the_files():
    given, frame = posteriors.load_posterior(CURVES).data, curves.load_curves("theophylline")
    y = frame["mg_per_l"].to_numpy()
    np.testing.assert_allclose(given["y"] * y.std() + y.mean(), y, atol=1e-12)
    assert (given["group"] == frame["patient"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_draws_are_those_of_the_study_and_its_checks_hold(name):
    rows = [row for row in read_rows() if row["posterior"] == name]
    first = next(sampler for posterior, sampler in study.SETTINGS if posterior == name)
    own = [row for row in rows if row["sampler"] == first]
    chains = posteriors.read_chains(name)
    assert len(chains) == len(own) >= 10
    for chain, row in zip(chains, own, strict=True):
        assert list(chain) == posteriors.load_posterior(name).names
        assert {len(values) for values in chain.values()} == {study.KEPT[name]}
        assert hashlib.sha256(json.dumps(chain).encode()).hexdigest() == row["draws"]
    with zipfile.ZipFile(DRAWS) as database:
        info = json.loads(database.read(f"reference_posteriors/draws/info/{name}.info.json"))
    draws = np.array([list(chain.values()) for chain in chains]).swapaxes(1, 2)
    found, checks = _reference_files.describe(draws, rows, first)
    assert info["checks_made"] == checks
    # of the two small ones 2,000 draws are stored; None says that there were no chains
    small = ("ndraws_is_10k", "ess_above_5000") if name in (BUMPS, IRIS) else ()
    assert all(checks[key] is not False for key in checks if key not in small), checks
    np.testing.assert_allclose(info["diagnostics"]["r_hat"], found["r_hat"], atol=2e-6)


def test_draws_come_once_from_the_release_and_are_those_that_the_library_knows(monkeypatch, tmp_path):
    import pooch

    asked = []

    def download(url, output_file, _):
        asked.append(url)
        Path(output_file).write_bytes(content)

    content = DRAWS.read_bytes()
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path)
    monkeypatch.setattr(pooch.core, "choose_downloader", lambda *_, **__: download)
    monkeypatch.setattr(posteriors, "DRAWS", tmp_path / "nowhere" / DRAWS.name)
    first = posteriors.read_chains(BUMPS)
    assert posteriors.read_chains(BUMPS) == first
    assert asked == [posteriors.URL]
    (tmp_path / DRAWS.name).unlink()
    content = b"another file"
    with pytest.raises(OSError, match=f"wanted: .*{DRAWS.name} as {tmp_path}"):
        posteriors.read_chains(BUMPS)


def test_the_next_power_leaves_weights_worth_half_of_the_particles():
    values = 30 * np.random.default_rng(1).normal(size=500) - 1000
    step = study.find_step(values, 1.0)
    w = np.exp(step * (values - values.max()))
    assert w.sum() ** 2 / (w**2).sum() == pytest.approx(250, abs=0.01)
    assert study.find_step(values / 1000, 0.3) == 0.3  # nothing left to be careful about


def test_particles_know_what_each_mode_is_worth(monkeypatch):
    """Two modes that no move can leave, of weights 0.8 and 0.2."""
    import jax.numpy as jnp

    def density(position):
        x = position["a"]
        return jnp.logaddexp(jnp.log(4) - 50 * (x[0] - 1.5) ** 2, -50 * (x[0] + 1.5) ** 2) - (x**2).sum() / 2

    monkeypatch.setattr(study, "make_density", lambda posterior: density)
    monkeypatch.setattr(study, "list_positions", lambda posterior: {"a": (2,)})
    study.compile_moves.cache_clear()
    draws, stats = study.sample_smc("two modes", 1, n=4000)
    study.compile_moves.cache_clear()
    first, second = draws["a"][0].T
    assert stats["stages"] > 1
    assert stats["gradients_per_draw"] == study.LEAPS * (study.MOVES * (stats["stages"] - 1) + study.LAST)
    assert np.mean(first > 0) == pytest.approx(0.8, abs=0.05)
    assert abs(first[first > 0] - 1.5 * 100 / 101).mean() == pytest.approx(0.8 / 101**0.5, rel=0.1)
    assert second.std() == pytest.approx(1, abs=0.06)


def test_weighted_draws_from_the_prior_are_those_of_the_posterior(monkeypatch):
    """Against quadrature, for one unit and three outcomes."""
    x, y, sigma = np.array([-1.0, 0.5, 2.0]), np.array([0.2, 0.1, 1.5]), 0.5
    given = {"H": np.array(1), "x": x, "y": y, "sigma": np.array(sigma), "x_new": x}
    monkeypatch.setattr(posteriors, "load_posterior", lambda name: posteriors.Posterior(BUMPS, given, {}, {}))
    monkeypatch.setattr(study, "TRIALS", 200_000)
    found = study.sample_importance(BUMPS, 1)[0]
    w, b = grid = np.stack(np.meshgrid(*[np.linspace(-5, 5, 201)] * 2), axis=-1).reshape(-1, 2).T
    h = np.stack([np.maximum(0, x * w[:, None] + b[:, None]), np.ones((len(w), 3))], axis=-1)
    cov = h @ h.mT + sigma**2 * np.eye(3)
    density = np.array([multivariate_normal(np.zeros(3), each).pdf(y) for each in cov])
    weight = density * np.exp(-(grid**2).sum(axis=0) / 2)
    weight /= weight.sum()
    outer = (h.mT @ np.linalg.solve(cov, np.broadcast_to(y, (len(w), 3))[..., None]))[..., 0]
    for values, wanted in ((found["w"], w), (found["b"], b), (found["v"], outer[:, 0]), (found["c"], outer[:, 1])):
        assert values.mean() == pytest.approx(weight @ wanted, abs=0.06)


def test_flowers_are_predicted_as_often_as_it_says_and_by_sets_that_reach_the_level():
    data = posteriors.load_posterior(IRIS).data
    flat = {name: np.zeros((1, 1, *shape)) for name, shape in posteriors.load_posterior(IRIS).unknowns.items()}
    for share, covered in ((0.95, 1 / 3), (0.85, 2 / 3)):  # of the first class, then the second
        flat["b2"][0, 0] = np.log([share, 0.97 - share, 0.03])
        found = posteriors.score_test(IRIS, flat)
        assert found["coverage"] == pytest.approx(covered)
        assert found["lpd"] == pytest.approx(np.log([share, 0.97 - share, 0.03])[data["y_test"] - 1].mean())


def test_the_database_has_posteriordb_s_layout_one_json_in_each_zip():
    with zipfile.ZipFile(DRAWS) as database:
        zips = [name for name in database.namelist() if name.endswith(".zip")]
        assert len(zips) == 2 * len(NAMES)
        for path in map(Path, zips):
            with database.open(path.as_posix()) as kept:
                assert zipfile.ZipFile(kept).namelist() == [path.name.removesuffix(".zip")]


def read_rows():
    return json.loads((Path(study.__file__).parents[1] / "data" / "reference.json").read_text())["rows"]
