"""Wrong answers to the exercises of controls.md: each check has to refuse all of its own and say why."""

import numpy as np
import xarray as xr
from bnn import data

MOONS = data.legacy_rotated_moons()
LEAST = np.einsum("gfo,go->gf", np.linalg.pinv(MOONS.X_train), 2 * MOONS.y_train - 1)
MIDDLE = 2.33 * LEAST / np.hypot(*LEAST.T).mean()  # a line for each category, as long as the posterior's on average


def make_tree(*, middle=MIDDLE, n_draws=1000, apart=0.0, sd=1.8, mu=0.0, more=(), less=()):
    """Draws of hierarchical lines around a middle, (group, feature), from chains that lie `apart`."""
    rng = np.random.default_rng(1)
    chain = apart * np.arange(4)[:, None, None, None]
    slope = middle + chain + 0.3 * rng.normal(size=(4, n_draws, 18, 2))
    around = middle.mean(axis=0) + mu
    variables = {
        "mu": (("chain", "draw", "feature"), around + 0.4 * rng.normal(size=(4, n_draws, 2))),
        "sd": (("chain", "draw"), sd + 0.2 * rng.normal(size=(4, n_draws))),
        "slope": (("chain", "draw", "group", "feature"), slope),
    }
    variables |= dict.fromkeys(more, variables["slope"])
    return xr.DataTree.from_dict({"posterior": xr.Dataset({k: v for k, v in variables.items() if k not in less})})


def compare(gain, rest):
    """The two differences of the exercise on layers, with errors as on the page."""
    return {"N(0, 1)": (gain, 0.0063), "learned scales": (rest, 0.0014)}


WRONG = {
    "check_centred": [
        lambda: None,
        lambda: np.zeros((4, 1000, 18, 2)),  # the slopes alone
        lambda: make_tree(more=("z",)),  # still the non-centred form
        lambda: make_tree(n_draws=250),
        lambda: make_tree(middle=0 * MIDDLE),  # the likelihood was left out
        lambda: make_tree(middle=-MIDDLE),  # the labels the other way round
        lambda: make_tree(middle=np.roll(MIDDLE, 3, axis=0)),  # the lines of other categories
        lambda: make_tree(middle=MIDDLE[:, ::-1]),  # the features exchanged
        lambda: make_tree(middle=2 * MIDDLE, sd=3.6),  # the likelihood counted too often
        lambda: make_tree(middle=0.5 * MIDDLE),
        lambda: make_tree(sd=0.9),  # a variance for a standard deviation
        lambda: make_tree(mu=1.0),  # not drawn around mu
        lambda: make_tree(less=["mu"]),
        lambda: make_tree(less=["sd"]),
        lambda: make_tree(apart=1.0),  # chains that did not meet
    ],
    "check_last_layer": [
        lambda: None,
        lambda: (0.0355, 0.0016),  # no errors
        lambda: {"N(0, 1)": 0.0355, "learned scales": 0.0016},
        lambda: {"N(0, 1)": (0.0355, None), "learned scales": (0.0016, None)},
        lambda: {"N(0, 1)": (np.nan, 0.0063), "learned scales": (0.0016, 0.0014)},
        lambda: compare(0.001, -0.033),  # the first layer's scale, or none
        lambda: compare(-0.0355, -0.0016),  # the other minus this
        lambda: compare(0.071, 0.0032),  # twice the lpd
        lambda: {"N(0, 1)": (0.0355, 0.0155), "learned scales": (0.0016, 0.0034)},  # sds, not errors
        lambda: compare(0.0355, -0.0855),  # not the same categories
    ],
}

ALSO_RIGHT = {
    "check_centred": [make_tree],
    "check_last_layer": [
        lambda: compare(0.0355, 0.0016),
        lambda: {"N(0, 1)": [0.0355, 0.0063], "learned scales": np.array([0.0016, 0.0014], dtype="float32")},
    ],
}
