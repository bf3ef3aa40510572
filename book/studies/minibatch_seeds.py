"""ADVI on the flat network with batches of 25, 50, 200 and all points, 10 seeds: how good, after how much work?

The same seed starts from the same means whatever the batch, so the fits are paired. The loss is never the one
that the optimiser prints: at 40 checkpoints it is computed anew on all training points, so that all batch
sizes are judged alike. The batch "forgotten" is one of 50 whose ``total_size`` was left out.
"""

import numpy as np
import pymc as pm
import pytensor
from bookkit import data, models
from hbnn import metrics, prediction, sampling

MEASURED = False
BATCHES = {"25": 25, "50": 50, "200": 200, "all": None, "forgotten": 50}
WIDE = 0.6931  # PyMC's own first standard deviation, log(2); the other rows start from the book's
CASES = [
    *({"batch": batch, "start_sd": 0.1, "seed": seed} for seed in range(1, 11) for batch in BATCHES),
    *({"batch": "50", "start_sd": WIDE, "seed": seed} for seed in range(1, 13)),  # beside `flat_advi_seeds`
]
N_STEPS = 30_000
BACKEND = "c" if pytensor.config.cxx else "numba"  # both give the same numbers; small batches are faster in C
CHECKPOINTS = np.unique(np.geomspace(100, N_STEPS, 40).round().astype(int))
N_DRAWS = 100  # of the weights, behind the loss at a checkpoint: the same normal noise at each


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 10


def build(batch):
    """The flat network on batches of the two moons, or on all points."""
    moons = data.flat_moons(seed=0)
    X, y = moons.X_train, moons.y_train
    if BATCHES[batch] is None:
        return models.flat_bnn(X, y)
    total_size = None if batch == "forgotten" else len(y)
    return models.flat_bnn(*pm.Minibatch(X, y, batch_size=BATCHES[batch]), total_size=total_size)


def read_parameters(approx):
    """Means and standard deviations of all weights, each (40,)."""
    mean, rho = (value.get_value() for value in approx.params)
    return mean, np.log1p(np.exp(rho))


def unpack(vector):
    """Draws of all weights, (draw, 40), as the three layers."""
    return {"w1": vector[:, :10].reshape(-1, 2, 5), "w2": vector[:, 10:35].reshape(-1, 5, 5), "w3": vector[:, 35:]}


def split_loss(mean, sd, noise, X, y):
    """Expected negative log likelihood of all points, and KL divergence from the N(0, 1) prior, in nats."""
    p = prediction.predict_probability(unpack(mean + sd * noise), X, activation="tanh")
    fit = -np.log(np.where(y == 1, p, 1 - p)).sum(axis=1).mean()
    divergence = 0.5 * np.sum(sd**2 + mean**2 - 1 - 2 * np.log(sd))
    return float(fit), float(divergence)


def compute(batch, start_sd, seed):
    """Steps and the full-data loss at each checkpoint; its two parts and the test scores (1,000 draws) at the end."""
    moons = data.flat_moons(seed=0)
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(N_DRAWS, 40))
    parts, waiting = [], [None, *CHECKPOINTS[::-1].tolist()]

    def watch(approx, losses, step):
        if step == waiting[-1]:
            waiting.pop()
            parts.append(split_loss(*read_parameters(approx), noise, moons.X_train, moons.y_train))

    fit = sampling.fit_advi(build(batch), N_STEPS, seed=seed, start_sd=start_sd, backend=BACKEND, callbacks=[watch])
    mean, sd = read_parameters(fit.approx)
    draws = prediction.predict_probability(
        unpack(mean + sd * rng.normal(size=(1000, 40))), moons.X_test, activation="tanh"
    )
    found = {name: round(value, 4) for name, value in metrics.score(draws.mean(axis=0), moons.y_test).items()}
    return found | {
        "printed": round(float(fit.loss[-1000:].mean()), 2),  # what PyMC calls "Average Loss"
        "fit": round(parts[-1][0], 2),
        "divergence": round(parts[-1][1], 2),
        "steps": CHECKPOINTS.tolist(),
        "loss": [round(sum(part), 1) for part in parts],
    }
