"""The narrow starts of `flat_advi_seeds` again, sixteen draws a step and steps that shrink: how low can the loss get?

PyMC's default optimiser, with 30,000 steps of one draw, stops short of the best that its family of independent normals
can do. Here the same starts come nearer to that, so that what is left can be laid on the family and not on the
optimiser.
"""

import numpy as np
from bookkit import data, models
from hbnn import metrics, prediction, sampling

from studies import _approximations

MEASURED = False
CASES = [{"seed": seed} for seed in range(1, 11)]
N_LOSS = 3_000  # draws behind the loss at the end


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 25


def find_loss(approx, weights, moons):
    """Minus the ELBO in nats, from draws of the weights, and its Monte Carlo error."""
    p = prediction.predict_probability(weights, moons.X_train, activation="tanh")
    misfit = -np.log(np.where(moons.y_train == 1, p, 1 - p)).sum(axis=1)
    mean, sd = approx.mean.eval(), approx.std.eval()
    divergence = 0.5 * np.sum(sd**2 + mean**2 - 1 - 2 * np.log(sd))
    return float(misfit.mean() + divergence), float(misfit.std(ddof=1) / np.sqrt(len(misfit)))


def compute(seed):
    """Test scores, final loss with its error and mean ignorance (test points, circle of radius 6)."""
    moons = data.flat_moons(seed=0)
    model = models.flat_bnn(moons.X_train, moons.y_train)
    found = sampling.fit_advi(model, seed=seed, **_approximations.ADVI)
    loss, error = find_loss(found.approx, found.draw(N_LOSS, seed=seed), moons)
    weights = found.draw(1000, seed=seed)
    row = metrics.score(
        prediction.predict_probability(weights, moons.X_test, activation="tanh").mean(axis=0), moons.y_test
    )
    row |= {"loss": loss, "loss_error": error}
    for name, X in {"test": moons.X_test, "far": data.circle(6)}.items():
        unsure = metrics.split_uncertainty(prediction.predict_probability(weights, X, activation="tanh"))
        row[f"ignorance_{name}"] = float(unsure["ignorance"].mean())
    return row
