"""Wrong answers to the exercises of engines.md: each check has to refuse all of its own and say why."""

import numpy as np
import xarray as xr
from bnn import report


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


def repeat_draw(draws):
    """Each chain's first draw in place of all its draws."""
    return draws.isel(draw=np.zeros(draws.sizes["draw"], dtype=int)) if "draw" in draws.dims else draws


def speed_up():
    """The answer to the second exercise, from the same measurements."""
    profile = max(report.read_data("bench")["profile"], key=lambda row: row["n_hidden"])["rows"]
    pieces = {row["part"]: row["us"] for row in profile if row["form"] == "ours"}
    before, fixed = sum(pieces.values()), pieces["priors and PyTensor's calls"]
    return before / (fixed + (before - fixed) / 2)


KNOWN, ERRORS = np.array([0.060, -0.041, 2.90]), np.array([0.0034, 0.0046, 0.182])
SDS = np.array([0.118, 0.144, 4.79])

WRONG = {
    "check_swapped": [
        lambda: None,
        lambda: make_tree(),  # one tree
        lambda: dict.fromkeys((3, 4, 5), make_tree()),  # the first category was not swapped back
        lambda: dict.fromkeys((2, 3, 4, 5)),
        lambda: dict.fromkeys((2, 3, 4, 5), make_tree()),  # what with_data returned was not used
        lambda: dict.fromkeys((2, 3, 4, 5), make_tree(n_draws=100)),
        lambda: dict.fromkeys((2, 3, 4, 5), make_tree().map_over_datasets(repeat_draw)),
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
        lambda: np.array([17.8, 9.0, 15.9]),  # the gaps alone
        lambda: (KNOWN, SDS),  # sds of the draws
        lambda: (KNOWN[::-1], ERRORS[::-1]),  # the questions in another order
        lambda: (KNOWN[[1, 0, 2]], ERRORS[[1, 0, 2]]),
        lambda: (2 * KNOWN, ERRORS),
        lambda: (KNOWN / 2, ERRORS),
        lambda: (KNOWN, np.array([0.0026, 0.0030, 0.105])),  # one engine's error
        lambda: (KNOWN, 1.41 * ERRORS),  # summed, not the root of summed squares
        lambda: (KNOWN, ERRORS**2),
        lambda: (ERRORS, KNOWN),
        lambda: (KNOWN * [1, 1, -1], ERRORS),  # not all the same way round
        lambda: (np.array([-0.0013, -0.0012, 0.0125]), ERRORS),  # prior_sd was not used
        lambda: (np.array([-0.0593, 0.0223, -2.12]), ERRORS),  # a narrower prior
        lambda: (KNOWN * np.nan, ERRORS),
    ],
}

OTHER_SEEDS = (np.array([0.0514, -0.0256, 2.541]), np.array([0.0033, 0.0049, 0.183]))

ALSO_RIGHT = {
    "check_speed_up": [
        lambda: np.float32(speed_up()),
        lambda: np.float64(speed_up()),
    ],
    "check_gaps": [
        lambda: (KNOWN, ERRORS),
        lambda: [KNOWN.tolist(), ERRORS.tolist()],
        lambda: np.array([KNOWN, ERRORS], dtype=np.float32),
        lambda: (-KNOWN, ERRORS),  # nutpie's answers minus the others
        lambda: (abs(KNOWN), ERRORS),
        lambda: OTHER_SEEDS,  # the furthest of nine seeds of either network
    ],
}
