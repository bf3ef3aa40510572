"""The database of reference posteriors: its files, written from the data of the book and the draws of `reference`.

    python -m studies._reference_files [NAME …]    writes book/data/reference_draws.zip, and data.zip of the library

Draws are written of the posteriors that are named, or of all; the digest that it says goes into posteriors.SHA256. They
must be those of the table: each chain's digest stands in its row.
"""

import hashlib
import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from bookkit import curves, data
from hbnn import diagnostics
from hbnn.reference import posteriors
from hbnn.reference.posteriors import DRAWS, FOLDER, NAMES
from sklearn.datasets import load_iris

from studies.reference import KEPT, PARTICLES, POPULATIONS, SETTINGS, SMC, TRIALS, digest_draws, find_path, round_draws

ADDED = {"added_by": "the authors of this book", "added_date": "2026-11-23"}


def list_data():
    """The data of each posterior, and what its info says of them."""
    moons, groups = data.flat_moons(seed=0), data.legacy_rotated_moons()
    side = np.linspace(-3, 3, 9)
    half = [(a, b) for b in side for a in side if b > 0 or (b == 0 and a > 0)]  # p(-x) = 1 - p(x) in this network
    angle = np.deg2rad(20.0 * np.arange(18))
    edge = 2.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    frame = curves.load_curves("theophylline")
    x, y = frame["hours"].to_numpy(float), frame["mg_per_l"].to_numpy(float)
    center, width = (x.mean(), y.mean()), (x.std(), y.std())
    x, y, end = (x - center[0]) / width[0], (y - center[1]) / width[1], (24 - center[0]) / width[0]
    patients, hours = (1, 4, 7, 10), np.array([0.5, 2.0, 6.0, 16.0])
    return {
        "flat_moons": (
            {"N": 500, "H": 5, "M": len(half), "X": moons.X_train, "y": moons.y_train, "X_new": half},
            "Two moons, 500 points",
            "Two noisy half circles (scikit-learn's make_moons, noise 0.2, seed 0), the first half of 1,000 points, "
            "scaled to mean 0 and sd 1. X_new: 40 places on a grid over the upper half of the plane.",
        ),
        "rotated_moons": (
            {"G": 18, "N": 50, "H": 12, "M": 36, "X": groups.X_train, "y": groups.y_train,
             "group_new": np.repeat(np.arange(1, 19), 2),
             "X_new": np.stack([groups.X_test[:, 0], edge], axis=1).reshape(36, 2)},
            "Rotated moons, 18 categories of 50 points",
            "The points of T. Wiecki's article of 2018: moons of noise 0.3, one angle for each category. "
            "X_new: of each category its first test point, and a place 2.5 from the centre, at the edge.",
        ),
        "theophylline": (
            {"N": len(x), "G": 12, "H": 4, "M": 10, "K": 16, "x": x, "y": y, "group": frame["patient"],
             "x0": x.min(), "x_new": np.linspace(x.min(), end, 11)[1:],
             "group_own": np.repeat(patients, 4), "x_own": np.tile((hours - center[0]) / width[0], 4)},
            "Theophylline in the blood of 12 patients",
            "132 concentrations over 25 hours after a dose (Boeckmann, Sheiner and Beal 1994; R: datasets::Theoph). "
            f"x is (hours - {center[0]!r}) / {width[0]!r}, y is (mg/L - {center[1]!r}) / {width[1]!r}. "
            "x_new: ten times of which the mean curve is asked; x_own: four times in each of four patients.",
        ),
        "two_bumps": make_bumps(),
        "iris": make_iris(),
    }  # fmt: skip


def make_bumps(sigma=0.2, taller=1.03):
    """Two bumps for a network that can make one; the noise is mirrored, so that their heights alone decide."""
    rng, x, x_test = np.random.default_rng(0), np.linspace(-3, 3, 25), np.linspace(-3, 3, 60)
    half = sigma * rng.normal(size=12)

    def rise(x):
        return taller * np.maximum(0, 1 - abs(x + 1.5)) + np.maximum(0, 1 - abs(x - 1.5))

    return (
        {"N": 25, "H": 3, "M": 11, "x": x, "y": rise(x) + np.concatenate([half, [0], half[::-1]]), "sigma": sigma,
         "x_new": np.linspace(-2.5, 2.5, 11), "x_test": x_test, "y_test": rise(x_test) + sigma * rng.normal(size=60)},
        "Two bumps on a line",
        f"Two triangles of height {taller} at -1.5 and of height 1 at 1.5, with normal noise of sd {sigma} (seed 0), "
        "the same on both sides, mirrored. x_new: places where the function is asked; x_test: 60 rows held back.",
    )  # fmt: skip


def make_iris():
    """Every fifth of the 150 flowers to learn from, the others held back."""
    found = load_iris()
    own = np.arange(150) % 5 == 0
    X, y = (found.data - found.data[own].mean(axis=0)) / found.data[own].std(axis=0), found.target + 1
    means = np.stack([X[own & (y == k)].mean(axis=0) for k in (1, 2, 3)])
    places = np.vstack([means, means[1:].mean(axis=0), [3, 3, -3, -3]])
    return (
        {"N": 30, "H": 2, "K": 3, "D": 4, "M": 5, "X": X[own], "y": y[own], "X_new": places, "X_test": X[~own],
         "y_test": y[~own]},
        "Iris: three species by four lengths",
        "Fisher's (1936) 150 flowers as scikit-learn ships them (from UCI, CC BY 4.0): every fifth row to learn from, "
        "columns scaled to mean 0 and sd 1 of these, the other 120 held back. X_new: the species' means, the middle "
        "between the last two, and a place far from all.",
    )  # fmt: skip


MODELS = {
    "flat_bnn": ("A flat Bayesian neural network", "2-5-5-1, tanh, no biases, N(0, 1) on each weight, Bernoulli."),
    "hierarchical_bnn": (
        "A hierarchical Bayesian neural network",
        "2-12-12-1 for each category, tanh, no biases; non-centred: N(0, 1) means, one HalfNormal(1) sd a layer.",
    ),
    "curve_bnn": (
        "A hierarchical regression network with its read-outs integrated out",
        "Four tanh shapes that are 0 at x0, and a level; a patient's read-outs are normal, and so is the noise.",
    ),
    "relu_bnn": (
        "A ReLU network on one feature", "1-3-1, ReLU, biases, N(0, 1) on each weight, normal noise of known sd.",
    ),
    "softmax_bnn": (
        "A network of three classes", "4-2-3, tanh, biases, N(0, 1) on each weight, categorical by softmax.",
    ),
}  # fmt: skip


def dump(content):
    """The JSON of data or draws, as short as may be."""
    if isinstance(content, dict):
        content = {key: np.asarray(value).tolist() for key, value in content.items()}
    return json.dumps(content, separators=(",", ":"))


def write_zipped(folder, name, content):
    """A zip whose bytes depend on its content alone, with one JSON inside."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}.json.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        file.writestr(zipfile.ZipInfo(f"{name}.json"), content, zipfile.ZIP_DEFLATED)


def write_json(path, content):
    """One JSON of the database, as a person would read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


def pack(path, files):
    """A zip of these (name, bytes), whose bytes depend on them alone."""
    with zipfile.ZipFile(path, "w") as file:
        for name, content in files:
            kind = zipfile.ZIP_STORED if name.endswith(".zip") else zipfile.ZIP_DEFLATED
            file.writestr(zipfile.ZipInfo(name), content, kind, 9)


def write_data(folder):
    """Data, models and their descriptions, and posteriors: all files but those of draws."""
    shutil.copytree(FOLDER / "models", folder / "models", ignore=shutil.ignore_patterns("__pycache__"))
    for name, (content, title, description) in list_data().items():
        write_zipped(folder / "data" / "data", name, dump(content))
        info = {"name": name, "title": title, "description": description, "keywords": ["bayesian neural network"]}
        info |= {"data_file": f"data/data/{name}.json", "references": None, "urls": None} | ADDED
        write_json(folder / "data" / "info" / f"{name}.info.json", info)
    for name, (title, description) in MODELS.items():
        programs = {
            key: {"model_code": f"models/{key}/{name}.{end}"}
            for key, end in (("stan", "stan"), ("pymc", "py"))
            if (FOLDER / "models" / key / f"{name}.{end}").exists()
        }
        info = {"name": name, "title": title, "description": description, "keywords": ["bayesian neural network"]}
        info |= {"model_implementations": programs, "references": None, "urls": None} | ADDED
        write_json(folder / "models" / "info" / f"{name}.info.json", info)
    for name in NAMES:
        found = posteriors.load_posterior(name)
        sizes = {key: int(np.prod(shape)) for key, shape in found.functionals.items()}
        given, model = name.split("-")
        info = {"name": name, "model_name": model, "data_name": given, "reference_posterior_name": name}
        info |= {"dimensions": sizes, "keywords": ["bayesian neural network"], "references": None, "urls": None}
        write_json(folder / "posteriors" / f"{name}.json", info | ADDED)


def gather(posterior, sampler, rows):
    """The kept draws of all chains (chain, draw, functional).

    Raises
    ------
    RuntimeError
        When they are not there, or are not those of the table.
    """
    chains = []
    for row in (row for row in rows if (row["posterior"], row["sampler"]) == (posterior, sampler)):
        path = find_path(posterior, sampler, row["seed"])
        if not path.exists() or digest_draws(posterior, draws := np.load(path)) != row["draws"]:
            raise RuntimeError(f"{path} does not hold the draws of the table; `python -m studies reference` makes them")
        chains.append(draws)
    return np.stack(chains)


def describe(draws, rows, sampler):
    """Diagnostics of the kept draws, as posteriordb has them, and its checks."""
    found = diagnostics.diagnose(draws)
    centred = draws - draws.mean(axis=1, keepdims=True)
    lag = (centred[:, 1:] * centred[:, :-1]).mean(axis=(0, 1)) / (centred**2).mean(axis=(0, 1))
    names = {"ess": "effective_sample_size_bulk", "ess_tail": "effective_sample_size_tail", "rhat": "r_hat"}
    figures = {name: [float(f"{v:.6g}") for v in found[key]] for key, name in names.items()}
    own = [row for row in rows if row["sampler"] == sampler]
    diverging = [row["divergences"] for row in own]
    efmi = [row["bfmi"] for row in own]
    checks = {
        "ndraws_is_10k": draws.shape[0] * draws.shape[1] == 10_000,
        "nchains_is_gte_4": draws.shape[0] >= 4,
        "r_hat_below_1_01": bool(found["rhat"].max() < 1.01),
        "ess_above_5000": bool(min(found["ess"].min(), found["ess_tail"].min()) > 5000),
        "lag_1_autocorrelation_below_0_2": bool(lag.max() < 0.2),
        "no_divergent_transitions": None if None in diverging else sum(diverging) == 0,
        "efmi_above_0_2": None if None in efmi else min(efmi) > 0.2,
    }
    figures |= {"lag_1_autocorrelation": [float(f"{v:.3g}") for v in lag], "divergent_transitions": diverging}
    return figures | {"expected_fraction_of_missing_information": efmi}, checks


def list_arguments(name, sampler, rows):
    """What a sampler was asked, as posteriordb writes it."""
    settings, seeds = SETTINGS[name, sampler], [row["seed"] for row in rows if row["sampler"] == sampler]
    asked = {"chains": len(seeds), "draws": KEPT[name] * settings["thin"]}
    asked |= {"warmup": settings["tune"]} if "tune" in settings else {"trials": TRIALS}
    asked |= {"thin": settings["thin"]}
    return asked | ({"target_accept": settings["target"]} if "tune" in settings else {}) | {"seeds": seeds}


def describe_second(name, sampler, rows, chains):
    """What is known of the second sampler: diagnostics of its chains, where it has chains."""
    if sampler == SMC:
        return {"method": "tempered_smc", "populations": POPULATIONS, "particles": PARTICLES[name]}
    found, checks = describe(to_array(chains), rows, sampler)
    arguments = list_arguments(name, sampler, rows)
    return {"method": name_method(sampler), "method_arguments": arguments, "diagnostics": found, "checks_made": checks}


def name_method(sampler):
    """As posteriordb writes it."""
    return f"{sampler.lower()}_sampling"


def to_array(chains):
    """Chains as the database has them, as one array (chain, draw, functional)."""
    return np.array([list(chain.values()) for chain in chains]).swapaxes(1, 2)


def describe_predictions(rows):
    """Scores on the rows held back, each with its error over parts; nothing where no rows are held back."""
    names, found = {"lpd": "lpd", "coverage": "coverage_of_90"}, {}
    for key, name in names.items():
        values = np.array([row[key] for row in rows if key in row])
        if len(values):
            found[name] = np.round([values.mean(), values.std(ddof=1) / np.sqrt(len(values))], 5).tolist()
    return {"predictions": found} if found else {}


def write_draws(table, names, folder):
    """The draws of the first sampler, and what is known of it and of the second."""
    for name in names:
        rows = [row for row in table["rows"] if row["posterior"] == name]
        first, *others = [sampler for posterior, sampler in SETTINGS if posterior == name]
        chains = {s: [round_draws(name, chain) for chain in gather(name, s, rows)] for s in (first, *others)}
        write_zipped(folder / "reference_posteriors" / "draws" / "draws", name, dump(chains[first]))
        found, checks = describe(to_array(chains[first]), rows, first)
        second = others[0] if others else SMC
        info = {
            "name": name,
            "inference": {"method": name_method(first), "method_arguments": list_arguments(name, first, rows)},
            "diagnostics": {
                "diagnostic_information": {"names": posteriors.load_posterior(name).names},
                "ndraws": len(chains[first]) * KEPT[name], "nchains": len(chains[first]),
            } | found,
            "checks_made": checks,
            "second_sampler": describe_second(name, second, rows, chains.get(second)),
            **describe_predictions([row for row in rows if row["sampler"] == first]),
            "comments": "Draws are of functionals that no relabelling of hidden units changes, not of weights.",
            "versions": table["versions"], "commit": table["commit"],
        } | ADDED  # fmt: skip
        write_json(folder / "reference_posteriors" / "draws" / "info" / f"{name}.info.json", info)


if __name__ == "__main__":
    from bookkit import report

    pack(FOLDER / "data.zip", [(f"{name}.json", dump(content)) for name, (content, *_) in sorted(list_data().items())])
    with tempfile.TemporaryDirectory() as database:
        folder = Path(database)
        with zipfile.ZipFile(DRAWS) as file:
            file.extractall(folder, [name for name in file.namelist() if name.startswith("reference_posteriors/")])
        write_data(folder)
        write_draws(report.read_data("reference"), sys.argv[1:] or NAMES, folder)
        written = sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
        pack(DRAWS, [(name, path.read_bytes()) for name, path in written])
    sys.stdout.write(f"SHA256 = {hashlib.sha256(DRAWS.read_bytes()).hexdigest()!r}\n")
