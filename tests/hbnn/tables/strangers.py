"""Three files as a stranger might bring them; the three invented tables whose right advice is known: `studies.advice`.

`write_all` writes ``shops.csv`` (30 shops, 5 features, bought or not), ``patients.csv`` (25 patients with 4 to 9
measurements of a dose) and ``regions.csv`` (12 regions, 4 crops).
"""

from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = {
    "shops": {"group": "shop", "features": ["hour", "degrees", "age", "price", "visits"], "outcome": "bought"},
    "patients": {"group": "patient", "features": ["day", "dose", "weight"], "outcome": "level"},
    "regions": {"group": "region", "features": ["rain", "height", "slope"], "outcome": "crop"},
}


def make_shops(seed=0, n_shops=30):
    """Customers of shops, who buy in waves of the day, at hours of each shop's own."""
    rng = np.random.default_rng(seed)
    shop = np.repeat(np.arange(n_shops), rng.integers(25, 56, n_shops))
    n, rush, level = shop.size, rng.uniform(-2, 2, n_shops), rng.normal(-0.3, 0.5, n_shops)
    frame = pd.DataFrame({
        "shop": [f"shop {k + 1}" for k in shop],
        "hour": rng.uniform(7, 21, n).round(1),
        "degrees": rng.normal(15, 6, n).round(1),
        "age": rng.integers(18, 90, n),
        "price": rng.gamma(4, 5, n).round(2),
        "visits": rng.poisson(3, n),
    })  # fmt: skip
    wave = np.sin(np.pi * (frame["hour"] - rush[shop] - (frame["degrees"] - 15) / 4) / 6)
    logit = 2 * wave + level[shop] - 0.03 * (frame["price"] - 20) + 0.2 * (frame["visits"] - 3)
    return frame.assign(bought=np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no"))


def make_patients(seed=0, n_patients=25):
    """A level in the blood that rises and falls over days, more in some patients than in others."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), rng.integers(4, 10, n_patients))
    n, height, base = patient.size, rng.normal(6, 1.5, n_patients), rng.normal(20, 2, n_patients)
    day, dose = rng.uniform(0, 14, n).round(1), rng.choice([1, 2, 4], n)
    weight = rng.normal(75, 12, n_patients).round(0)[patient]
    curve = np.exp(-((day - 5) ** 2) / 8)
    level = base[patient] + height[patient] * curve * np.log2(1 + dose) - 0.05 * (weight - 75)
    named = {"patient": patient + 101, "day": day, "dose": dose, "weight": weight}
    return pd.DataFrame(named | {"level": (level + rng.normal(0, 0.8, n)).round(2)})


def make_regions(seed=0, n_regions=12):
    """What is grown on a plot, one of four crops, by rain, height and slope, with habits of each region."""
    rng = np.random.default_rng(seed)
    region = np.repeat(np.arange(n_regions), rng.integers(30, 61, n_regions))
    X = rng.normal(size=(region.size, 3))
    rain, height, slope = X.T
    score = np.column_stack([
        1.5 * rain, 1.5 * height - 0.5 * rain**2, 1.5 - 1.2 * (rain**2 + height**2) / 2, 0.5 * slope - 0.3,
    ])  # fmt: skip
    score += rng.normal(0, 0.7, (n_regions, 4))[region]
    crop = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    frame = pd.DataFrame({"region": np.array(list("ABCDEFGHIJKLMNOPQRST"))[region], "rain": (800 + 200 * rain).round()})
    frame = frame.assign(height=(400 + 150 * height).round(), slope=(8 + 3 * slope).round(1))
    return frame.assign(crop=np.array(["barley", "maize", "potato", "wheat"])[crop])


MAKERS = {"shops": make_shops, "patients": make_patients, "regions": make_regions}


def write_all(folder):
    """The three files of strangers in a folder: dict of name to path."""
    paths = {name: Path(folder, f"{name}.csv") for name in MAKERS}
    for name, path in paths.items():
        MAKERS[name]().to_csv(path, index=False)
    return paths
