"""The models that chapters type are those of `bookkit.models`, which studies and other chapters take."""

from pathlib import Path

import jupytext
import numpy as np
import pymc as pm
import pytest
from bookkit import cache, data, models
from hbnn import fuse, priors
from sklearn.datasets import make_moons

BOOK = Path(models.__file__).parents[1]
MOONS = data.legacy_rotated_moons()
FLAT = data.flat_moons(seed=0)
NEW = data.rotated_moons(seed=201, n_groups=1).group(0)
N01 = priors.scale_prior((1.0, 1.0, 1.0), 2, (12, 12))
TYPED = {"X_train": MOONS.X_train, "y_train": MOONS.y_train}
NAMES = {"pm": pm, "np": np, "fuse": fuse, "moons": MOONS, "patients": MOONS} | TYPED
EIGHTEEN = models.hierarchical_bnn(MOONS.X_train, MOONS.y_train)


def run_cell(chapter, start, **names):
    """What is defined after the one cell of a chapter that begins so."""
    cells = [cell.source for cell in jupytext.read(BOOK / f"{chapter}.md").cells if cell.source.startswith(start)]
    assert len(cells) == 1, f"{len(cells)} cells of {chapter} begin with {start!r}"
    space = NAMES | names
    exec(cells[0], space)
    return space


def type_hierarchical(chapter):
    return run_cell(chapter, 'coords = {"group"')["model"]


def type_again():
    return run_cell("hierarchical_trust", "LAYERS = {")["build"]()


def type_images():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(6, 64)), np.arange(6, dtype="int32")
    return run_cell("digits", "def build")["build"](X, y, 1000), models.digit_bnn(X, y, total_size=1000)


PAIRS = {
    "flat_advi": lambda: (
        run_cell("flat_advi", "coords = {", X_train=FLAT.X_train, y_train=FLAT.y_train)["model"],
        models.flat_bnn(FLAT.X_train, FLAT.y_train),
    ),
    "minibatch_advi": lambda: (
        run_cell("minibatch_advi", "def build")["build"](FLAT.X_train, FLAT.y_train, 2000),
        models.flat_bnn(FLAT.X_train, FLAT.y_train, total_size=2000),
    ),
    "unpooled": lambda: (
        run_cell("unpooled", "with pm.Model() as network", patients=MOONS)["network"],
        models.unpooled_bnn(MOONS.X_train[0], MOONS.y_train[0]),
    ),
    "hierarchical_nuts": lambda: (type_hierarchical("hierarchical_nuts"), EIGHTEEN),
    "hierarchical_trust": lambda: (type_again(), EIGHTEEN),
    "group_sd": lambda: (type_hierarchical("group_sd"), EIGHTEEN),
    "weight_correlations": lambda: (type_hierarchical("weight_correlations"), EIGHTEEN),
    "engines": lambda: (run_cell("engines", "def build(moons")["build"](MOONS), EIGHTEEN),
    "informed_priors, the eighteen": lambda: (
        run_cell("informed_priors", 'coords = {"group"')["eighteen"],
        EIGHTEEN,
    ),
    "informed_priors": lambda: (
        run_cell("informed_priors", 'coords = {"feature"', X_new=NEW.X_train, y_new=NEW.y_train, plain=N01)["newcomer"],
        models.informed_bnn(NEW.X_train[:5], NEW.y_train[:5], mean=N01[0], cholesky=N01[1]),
    ),
    "digits": type_images,
}


@pytest.mark.parametrize("chapter", PAIRS)
def test_a_typed_model_has_the_log_density_of_the_module_s(chapter):
    typed, module = PAIRS[chapter]()
    assert {rv.name for rv in typed.free_RVs} == {rv.name for rv in module.free_RVs}
    functions = [model.compile_logp(mode="FAST_COMPILE") for model in (typed, module)]
    rng = np.random.default_rng(1)
    for _ in range(2):
        point = {name: 0.5 * rng.normal(size=value.shape) for name, value in module.initial_point().items()}
        page, ours = (float(function(point)) for function in functions)
        assert page == pytest.approx(ours, rel=1e-12)


def test_the_typed_models_find_the_draws_of_the_imported_one():
    typed = (type_hierarchical("hierarchical_nuts"), type_again())
    names = {cache.digest_run(fuse(model, check=False), {}) for model in (*typed, EIGHTEEN)}
    assert len(names) == 1


def test_the_typed_data_are_those_of_the_module_to_the_bit():
    for chapter, start, moons in (
        ("flat_advi", "import numpy", FLAT),
        ("hierarchical_nuts", "old = ", MOONS),
        ("hierarchical_trust", "import arviz", MOONS),
    ):
        typed = run_cell(chapter, start, make_moons=make_moons)
        for name in ("X_train", "y_train", "X_test", "y_test"):
            np.testing.assert_array_equal(typed[name], getattr(moons, name))
    arc, points = run_cell("hierarchical_trust", "arc = ", **typed), MOONS.X_test
    true = [data.bayes_probability(x, MOONS, 0.3, g, n_arc=50) for g, x in enumerate(points)]
    np.testing.assert_allclose(arc["find_truth"](points), true, rtol=1e-9)
