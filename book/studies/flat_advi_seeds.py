"""The flat network of `flat_advi`, fitted with 20 seeds from two starts: where do the fits end, whatever the seed?"""

from bookkit import data, models
from hbnn import metrics, prediction, sampling

MEASURED = False
START_SDS = (0.6931, 0.1)  # PyMC's own, log(2), and the one that was chosen on another data set
CASES = [{"start_sd": sd, "seed": seed} for sd in START_SDS for seed in range(1, 21)]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 8


def compute(start_sd, seed):
    """Test scores, final loss and mean ignorance (grid, test points, circle of radius 6), from 1,000 draws."""
    moons = data.flat_moons(seed=0)
    fit = sampling.fit_advi(models.flat_bnn(moons.X_train, moons.y_train), 30_000, seed=seed, start_sd=start_sd)
    weights = fit.draw(1000, seed=seed)
    found = metrics.score(
        prediction.predict_probability(weights, moons.X_test, activation="tanh").mean(axis=0), moons.y_test
    )
    found["loss"] = float(fit.loss[-1000:].mean())
    for name, X in {"grid": data.grid(), "test": moons.X_test, "far": data.circle(6)}.items():
        unsure = metrics.split_uncertainty(prediction.predict_probability(weights, X, activation="tanh"))
        found[f"ignorance_{name}"] = float(unsure["ignorance"].mean())
    return found
