"""Which initial standard deviation should ADVI start from? Asked of other data than the chapter shows (seed 100)."""

from bookkit import data, models
from hbnn import metrics, prediction, sampling

MEASURED = False
CASES = [{"start_sd": sd, "seed": seed} for sd in (0.6931, 0.1, 0.02) for seed in range(1, 7)]


def estimate(case):
    """CPU-seconds of a row, roughly."""
    return 8


def compute(start_sd, seed):
    """Final loss and test accuracy after 30,000 steps, on `flat_moons(seed=100)`."""
    moons = data.flat_moons(seed=100)
    fit = sampling.fit_advi(models.flat_bnn(moons.X_train, moons.y_train), 30_000, seed=seed, start_sd=start_sd)
    p = prediction.predict_probability(fit.draw(1000, seed=seed), moons.X_test).mean(axis=0)
    return {"loss": float(fit.loss[-1000:].mean()), "accuracy": metrics.score(p, moons.y_test)["accuracy"]}
