"""Wrong answers to the exercises of controls.md: each check has to refuse all of its own and say why."""

import numpy as np
import xarray as xr


def make_tree(*, length=2.0, n_draws=1000, apart=0.0, more=()):
    """Draws of hierarchical lines whose slopes have a length (logits), from chains that lie `apart`."""
    rng = np.random.default_rng(1)
    angle = np.linspace(0, 2 * np.pi, 18, endpoint=False)
    middle = length * np.column_stack([np.cos(angle), np.sin(angle)])
    chain = apart * np.arange(4)[:, None, None, None]
    slope = middle + chain + 0.3 * rng.normal(size=(4, n_draws, 18, 2))
    variables = {
        "mu": (("chain", "draw", "feature"), rng.normal(size=(4, n_draws, 2))),
        "sd": (("chain", "draw"), np.abs(rng.normal(size=(4, n_draws)))),
        "slope": (("chain", "draw", "group", "feature"), slope),
    }
    variables |= dict.fromkeys(more, variables["slope"])
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


def compare(gain, rest):
    """The two differences of the exercise on layers, with errors as on the page."""
    return {"N(0, 1)": (gain, 0.0063), "learned scales": (rest, 0.0014)}


WRONG = {
    "check_centred": [
        lambda: None,
        lambda: np.zeros((4, 1000, 18, 2)),  # the slopes alone
        lambda: make_tree(more=("z",)),  # still the non-centred form
        lambda: make_tree(n_draws=250),
        lambda: make_tree(length=0.0),  # the likelihood was left out
        lambda: make_tree(apart=1.0),  # chains that did not meet
    ],
    "check_last_layer": [
        lambda: None,
        lambda: (0.0355, 0.0016),  # no errors
        lambda: {"N(0, 1)": 0.0355, "learned scales": 0.0016},
        lambda: compare(0.001, -0.033),  # the first layer's scale, or none
        lambda: compare(-0.0355, -0.0016),  # the other minus this
        lambda: compare(0.071, 0.0032),  # twice the lpd
        lambda: {"N(0, 1)": (0.0355, 0.0155), "learned scales": (0.0016, 0.0034)},  # sds, not errors
        lambda: compare(0.0355, -0.0855),  # not the same categories
    ],
}
