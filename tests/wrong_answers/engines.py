"""Wrong answers to the exercises of engines.md: each check has to refuse all of its own and say why."""

import numpy as np
import xarray as xr


def make_tree(n_draws=400, seed=1):
    """Four chains of a flat network 2-5-5-1, drawn from its prior."""
    rng = np.random.default_rng(seed)
    shapes = {"w1": (2, 5), "w2": (5, 5), "w3": (5,)}
    weights = {name: rng.normal(size=(4, n_draws, *shape)) for name, shape in shapes.items()}
    variables = {
        name: (("chain", "draw", *(f"{name}_{i}" for i in range(values.ndim - 2))), values)
        for name, values in weights.items()
    }
    return xr.DataTree.from_dict({"posterior": xr.Dataset(variables)})


WRONG = {
    "check_swapped": [
        lambda: None,
        lambda: make_tree(),  # one tree
        lambda: dict.fromkeys((3, 4, 5), make_tree()),  # the first category was not swapped back
        lambda: dict.fromkeys((2, 3, 4, 5)),
        lambda: dict.fromkeys((2, 3, 4, 5), make_tree()),  # what with_data returned was not used
        lambda: dict.fromkeys((2, 3, 4, 5), make_tree(n_draws=100)),
    ],
    "check_speed_up": [
        lambda: None,
        lambda: 2.0,  # everything twice as fast
        lambda: 0.57,  # the new time over the old one
        lambda: 1.2,  # only the layers forward
        lambda: np.ones(3),
    ],
    "check_gaps": [
        lambda: None,
        lambda: np.array([0.5, 0.3, 0.4]),  # divided by the sd of the draws
        lambda: np.array([-17.8, 8.6, -17.1]),  # with their signs
        lambda: np.array([9.0, 17.8, 15.9]),  # the questions in another order
        lambda: np.array([35.6, 18.0, 31.8]),  # over the error of one engine, and half of it
        lambda: np.full(3, 14.2),  # one for all
        lambda: np.array([5400.0, 2700.0, 150.0]),  # the squared errors were not rooted
        lambda: np.array([17.8]),
        lambda: np.array([np.nan, 8.6, 17.1]),
    ],
}
