"""Typical wrong answers to the exercises of chapter own_data: each must be refused by its check."""

from types import SimpleNamespace

import numpy as np

rng = np.random.default_rng(1)
TYPICAL = np.array([4.1, 29.5, 9.0, 1.4, 2.4, 14.6])
THREE = np.array([TYPICAL, TYPICAL, [4.1, 70.0, 9.0, 1.4, 2.4, 14.6]])
UNLABELLED = SimpleNamespace(labels=None, values=THREE, group=[0, 1, 0], groups=("1", "5"))
MEANS = np.array([0.29, 0.41, 0.27])
SPREAD = np.linspace(-1e-3, 1e-3, 5)
OWN = (-0.0358, -0.0227, -0.0100, -0.0048, -0.0040)


def draw(*spreads, mean=0.3):
    """Probabilities of one row for each spread: (chain, draw, row)."""
    return np.clip(mean + rng.normal(size=(4, 100, len(spreads))) * spreads, 0.01, 0.99)


def lose(own=(-0.037, -0.018, -0.012, -0.007, -0.004), spread=1e-3):
    """Gains of two lines over the third for five limits and five seeds."""
    limits = (50, 100, 200, 400, None)
    return {k: np.array([-0.003, mean]) + spread * rng.normal(size=(5, 2)) for k, mean in zip(limits, own, strict=True)}


WRONG = {
    "check_unlabelled": [
        lambda: None,
        lambda: draw(0.1, 0.1, 0.2),
        # means over draws
        lambda: (UNLABELLED, np.array([0.35, 0.42, 0.2])),
        # labels made up so that the table can be read
        lambda: (SimpleNamespace(labels=np.zeros(3)), draw(0.1, 0.1, 0.2)),
        # rows scaled by themselves, so that 70 is not far out
        lambda: (UNLABELLED, draw(0.1, 0.12, 0.05)),
        # three students
        lambda: (UNLABELLED, np.repeat(draw(0.1), 3, axis=2)),
        # random numbers for probabilities
        lambda: (UNLABELLED, rng.random((4, 100, 3))),
        # an answer to compare with: these were right, but for the rows
        lambda: (SimpleNamespace(**vars(UNLABELLED) | {"group": [1, 0, 0]}), draw(0.1, 0.1, 0.2, mean=MEANS)),
        # C is as old as the others
        lambda: (SimpleNamespace(**vars(UNLABELLED) | {"values": THREE[[0, 1, 1]]}), draw(0.1, 0.1, 0.2, mean=MEANS)),
        # P(0) in place of P(1)
        lambda: (UNLABELLED, 1 - draw(0.1, 0.1, 0.2, mean=MEANS)),
        # half of P(1)
        lambda: (UNLABELLED, draw(0.1, 0.1, 0.2, mean=MEANS) / 2),
        # A and B exchanged
        lambda: (UNLABELLED, draw(0.1, 0.1, 0.2, mean=MEANS[[1, 0, 2]])),
        # one draw, repeated
        lambda: (UNLABELLED, np.broadcast_to(MEANS, (4, 100, 3)) + np.zeros(3)),
        # logits
        lambda: (UNLABELLED, 3 * rng.normal(size=(4, 100, 3))),
    ],
    "check_sizes": [
        lambda: None,
        lambda: np.zeros((5, 2)),
        # one split for all seeds
        lambda: lose(spread=0),
        # columns minus the others
        lambda: lose(own=(0.037, 0.018, 0.012, 0.007, 0.004)),
        # max_train not passed on
        # twice as much
        lambda: {most: 2 * gains for most, gains in lose(own=OWN).items()},
        # at most 400 and half of all rows exchanged
        lambda: {most: lose(own=OWN, spread=1e-6)[{400: None, None: 400}.get(most, most)] for most in lose()},
        # the line for all and the line for each exchanged
        lambda: {most: gains[:, ::-1] for most, gains in lose(own=OWN).items()},
        # max_train not passed on
        lambda: {most: lose()[100] for most in (50, 100, 200, 400, None)},
        # means over splits
        lambda: {most: gains.mean(axis=0) for most, gains in lose().items()},
    ],
    "check_asked": [
        lambda: None,
        lambda: {"bend": -0.02, "own": -0.001},  # one split
        # one split for all seeds
        lambda: {"bend": np.full(5, -0.02), "own": np.full(5, -0.001)},
        # straight minus bent
        # own minus straight, two steps at once
        lambda: {"bend": -0.002 + SPREAD, "own": -0.0028 + SPREAD},
        # twice as many rows
        lambda: {"bend": -0.0012 + SPREAD, "own": -0.0005 + SPREAD},
        # straight minus bent
        lambda: {"bend": 0.002 + SPREAD, "own": 0.001 + SPREAD},
        # scores, not gains
        lambda: {"bend": -0.56 + SPREAD, "own": -0.56 + SPREAD},
        # folds of one split in place of splits
        lambda: {"bend": -0.02 + np.outer(SPREAD, SPREAD), "own": np.outer(SPREAD, SPREAD)},
    ],
}
