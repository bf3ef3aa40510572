"""Five posteriors of Bayesian neural networks with reference draws: what is given and what is asked.

Data and programs come with the library. The draws are one file of 4 MB, laid out as posteriordb is, which is fetched
from the book's newest release when they are first asked for, and kept; from a checkout of the book its own is read.

A posterior is a model with its data. What is asked of a draw are *functionals*: numbers that no relabelling of hidden
units changes. They are named as posteriordb and Stan name them, ``p[1]``, ``sd1``, ``log_lik``, counted from 1. Two
small posteriors, the bumps with modes that part chains and the iris flowers, have rows to predict, too.
"""

import importlib.util
import json
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pymc as pm
from scipy.special import log_softmax
from scipy.stats import norm

from hbnn import prediction
from hbnn._text import guess, join
from hbnn._types import Array, Floats, Named
from hbnn.fusion import readouts

FOLDER = Path(__file__).parent / "data"
DRAWS = Path(__file__).parents[2] / "data" / "reference_draws.zip"  # where the library lies in the book
URL = f"https://github.com/hbnn-book/hbnn-book/releases/latest/download/{DRAWS.name}"
SHA256 = "b38d74b3453dcbc0ad64b4e1a2c96640f67817ace1185532e9b8e203b552f275"
FLAT, HIERARCHICAL, CURVES, BUMPS, IRIS = NAMES = (
    "flat_moons-flat_bnn",
    "rotated_moons-hierarchical_bnn",
    "theophylline-curve_bnn",
    "two_bumps-relu_bnn",
    "iris-softmax_bnn",
)
_CHUNK = 1000  # draws whose curves are in memory at once

type Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Posterior:
    """A model with its data, and what is asked of its draws.

    Attributes
    ----------
    name : str
        The data's name and the model's.
    data : dict of arrays
        As the Stan program and the PyMC model read them.
    unknowns, functionals : dict of tuple
        Shapes by names.

    Examples
    --------
    Goes on from `load_posterior`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> unknowns = posterior.unknowns.items()
    >>> draws = {name: rng.normal(size=(4, 10, *shape)) for name, shape in unknowns}
    >>> {name: values.shape for name, values in posterior.compute(draws).items()}
    {'p': (4, 10, 40), 'log_lik': (4, 10)}
    >>> posterior.names[:2], posterior.names[-1]
    (['p[1]', 'p[2]'], 'log_lik')
    """

    name: str
    data: dict[str, Array]
    unknowns: Shapes
    functionals: Shapes

    @property
    def names(self) -> list[str]:
        """One name for each number: "p[1]", "p[2]", …"""
        return [
            f"{name}[{','.join(str(i + 1) for i in index)}]" if shape else name
            for name, shape in self.functionals.items()
            for index in np.ndindex(*shape)
        ]

    def compute(self, unknowns: Named) -> dict[str, Array]:
        """Compute the functionals of draws of the unknowns.

        Parameters
        ----------
        unknowns : mapping of arrays, shape (chain, draw, …)
            With the names and shapes of `Posterior.unknowns`; for the hierarchical network also ``w1``, ``w2``, ``w3``
            (chain, draw, group, …), the weights of each group, beside ``sd1``, ``sd2`` and ``sd3``.

        Returns
        -------
        dict of arrays, shape (chain, draw, …)

        Raises
        ------
        ValueError
            For unknowns that are missing or of another shape, naming them all.
        """
        wanted = self.unknowns
        if self.name == HIERARCHICAL and "w1" in unknowns and "mu1" not in unknowns:
            each = {f"w{k}": self.unknowns[f"z{k}"] for k in (1, 2, 3)}
            wanted = each | {f"sd{k}": () for k in (1, 2, 3)}
        draws = {name: np.asarray(unknowns[name], dtype=float) for name in wanted if name in unknowns}
        wrong = [f"{name}{list(shape)} is missing" for name, shape in wanted.items() if name not in draws]
        lead = next(iter(draws.values())).shape[:2] if draws else ()
        wrong += [
            f"{name} has shape {value.shape}; wanted: {('chain', 'draw', *wanted[name])}"
            + (f", {lead[0]} chains of {lead[1]} draws" if len(lead) == 2 else "")
            for name, value in draws.items()
            if value.shape != (*lead, *wanted[name])
        ]
        if wrong:
            raise ValueError(f"unknowns of {self.name}: {'; '.join(wrong)}")
        return _COMPUTE[self.name](self.data, draws)


@lru_cache
def load_posterior(name: str) -> Posterior:
    """Load a posterior by its name.

    Parameters
    ----------
    name : str
        One of `NAMES`; ValueError for another.

    Returns
    -------
    Posterior

    Examples
    --------
    >>> from hbnn.reference import posteriors
    >>> posteriors.NAMES[:2]
    ('flat_moons-flat_bnn', 'rotated_moons-hierarchical_bnn')
    >>> posterior = posteriors.load_posterior("flat_moons-flat_bnn")
    >>> posterior.unknowns
    {'w1': (2, 5), 'w2': (5, 5), 'w3': (5,)}
    >>> posterior.data["X"].shape
    (500, 2)
    """
    if name not in NAMES:
        raise ValueError(f"no posterior called {name!r}; wanted: one of {join(map(repr, NAMES))}{guess(name, NAMES)}")
    found = read_data(name.split("-")[0])
    return Posterior(name, found, *_SHAPES[name](found))


def read_data(name: str) -> dict[str, Array]:
    """The data of a posterior, by the part of its name before the hyphen."""
    with zipfile.ZipFile(FOLDER / "data.zip") as file:
        return {key: np.asarray(value) for key, value in json.loads(file.read(f"{name}.json")).items()}


def read_chains(name: str) -> list[dict[str, list[float]]]:
    """Read the reference draws of a posterior.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Returns
    -------
    list of dict of list of float
        Of each chain, the values of each functional.

    Raises
    ------
    ImportError
        Where the draws must be fetched and `pooch` is not installed.
    OSError
        Where they cannot be fetched, saying what to put where.

    Examples
    --------
    >>> from hbnn.reference import posteriors
    >>> chains = posteriors.read_chains("two_bumps-relu_bnn")
    >>> len(chains), len(chains[0]["f[1]"])
    (10, 200)
    """
    with (
        zipfile.ZipFile(DRAWS if DRAWS.exists() else fetch_draws()) as database,
        database.open(f"reference_posteriors/draws/draws/{name}.json.zip") as kept,
        zipfile.ZipFile(kept) as file,
    ):
        return json.loads(file.read(f"{name}.json"))


def fetch_draws() -> Path:
    """The file with all draws, in posteriordb's layout, out of pooch's cache or the newest release.

    Raises
    ------
    ImportError
        Without `pooch`.
    OSError
        Where it cannot be fetched, or is another file than this version of the library knows.
    """
    try:
        import pooch
    except ImportError as e:
        raise ImportError('the reference draws are fetched with pooch: pip install "hbnn[reference]"') from e
    folder = pooch.os_cache("hbnn")
    try:
        return Path(pooch.retrieve(URL, f"sha256:{SHA256}", fname=DRAWS.name, path=folder))
    except (OSError, ValueError) as e:  # of requests, and of a digest
        raise OSError(f"cannot fetch the reference draws ({e}); wanted: {URL} as {folder / DRAWS.name}") from e


def build_posterior(name: str) -> pm.Model:
    """Build the PyMC model of a posterior, by the program in ``models/pymc`` of the database.

    Parameters
    ----------
    name : str
        One of `NAMES`.

    Returns
    -------
    pm.Model

    Examples
    --------
    >>> from hbnn.reference import posteriors
    >>> model = posteriors.build_posterior("flat_moons-flat_bnn")
    >>> [variable.name for variable in model.free_RVs]
    ['w1', 'w2', 'w3']
    """
    data, model = load_posterior(name).data, name.split("-")[1]
    spec = importlib.util.spec_from_file_location(model, FOLDER / "models" / "pymc" / f"{model}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.model(data)


# --- shapes of the unknowns, and of the functionals


def _shape_flat(data: dict[str, Array]) -> tuple[Shapes, Shapes]:
    n, places = int(data["H"]), len(data["X_new"])
    return {"w1": (2, n), "w2": (n, n), "w3": (n,)}, {"p": (places,), "log_lik": ()}


def _shape_hierarchical(data: dict[str, Array]) -> tuple[Shapes, Shapes]:
    n, groups, places = int(data["H"]), int(data["G"]), len(data["X_new"])
    unknowns: Shapes = {}
    for k, shape in enumerate(((2, n), (n, n), (n,)), 1):
        unknowns |= {f"mu{k}": shape, f"sd{k}": (), f"z{k}": (groups, *shape)}
    return unknowns, {"p": (places,), "sd1": (), "sd2": (), "sd3": (), "log_lik": ()}


def _shape_curve(data: dict[str, Array]) -> tuple[Shapes, Shapes]:
    n, places, own = int(data["H"]), len(data["x_new"]), len(data["x_own"])
    unknowns = {"w": (n,), "b": (n,), "mu": (n + 1,), "tau_shape": (), "tau_level": (), "sigma": ()}
    asked = {"curve": (places,), "apart": (places,), "own": (own,)}
    return unknowns, asked | {"tau_shape": (), "tau_level": (), "sigma": (), "log_lik": ()}


def _shape_bump(data: dict[str, Array]) -> tuple[Shapes, Shapes]:
    n = int(data["H"])
    return {"w": (n,), "b": (n,), "v": (n,), "c": ()}, {"f": data["x_new"].shape, "log_lik": ()}


def _shape_iris(data: dict[str, Array]) -> tuple[Shapes, Shapes]:
    n, n_classes, size = int(data["H"]), int(data["K"]), data["X"].shape[1]
    unknowns = {"w1": (size, n), "b1": (n,), "w2": (n, n_classes), "b2": (n_classes,)}
    return unknowns, {"p": (len(data["X_new"]), n_classes), "log_lik": ()}


# --- from draws to functionals


def _sum_log_likelihood(p: Floats, y: Array) -> Floats:
    """The log likelihood of labels, from probabilities (chain, draw, …)."""
    return np.log(np.where(y == 1, p, 1 - p)).sum(axis=tuple(range(2, p.ndim)))


def _compute_flat(data: dict[str, Array], draws: dict[str, Array]) -> dict[str, Array]:
    lead = draws["w1"].shape[:2]
    weights = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.items()}

    def ask(X: Array) -> Floats:
        return prediction.predict_probability(weights, X, activation="tanh").reshape(*lead, -1)

    return {"p": ask(data["X_new"]), "log_lik": _sum_log_likelihood(ask(data["X"]), data["y"])}


def _compute_hierarchical(data: dict[str, Array], draws: dict[str, Array]) -> dict[str, Array]:
    """Of each category, only its own places are asked; they stand in `data` category by category."""
    n_groups, n_obs = data["y"].shape
    order = np.argsort(data["group_new"], kind="stable")
    places = data["X_new"][order].reshape(n_groups, -1, 2)
    weights = draws if "w1" in draws else prediction.combine_weights(draws)
    p = prediction.predict_groups(weights, np.concatenate([data["X"], places], axis=1), activation="tanh")
    asked = np.empty((*p.shape[:2], len(order)))
    asked[..., order] = p[..., n_obs:].reshape(*p.shape[:2], -1)
    sds = {f"sd{k}": draws[f"sd{k}"] for k in (1, 2, 3)}
    return {"p": asked, **sds, "log_lik": _sum_log_likelihood(p[..., :n_obs], data["y"])}


def _compute_curves(data: dict[str, Array], draws: dict[str, Array]) -> dict[str, Array]:
    """Mean curve and sd over patients at each time, four patients' own curves, and the log likelihood."""
    lead = draws["sigma"].shape
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.items()}
    n = len(flat["sigma"])
    parts = [
        _compute_some_curves(data, {name: value[i : i + _CHUNK] for name, value in flat.items()})
        for i in range(0, n, _CHUNK)
    ]
    found = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {name: value.reshape(*lead, *value.shape[1:]) for name, value in found.items()}


def _compute_some_curves(data: dict[str, Array], p: dict[str, Array]) -> dict[str, Array]:
    def find_units(x: Array) -> Array:
        h = np.tanh(x[:, None] * p["w"][:, None] + p["b"][:, None]) - np.tanh(data["x0"] * p["w"] + p["b"])[:, None]
        return np.concatenate([h, np.ones((*h.shape[:2], 1))], axis=2)

    tau = np.column_stack([np.repeat(p["tau_shape"][:, None], int(data["H"]), axis=1), p["tau_level"]])
    at_new, at_own, at_data = (find_units(data[name]) for name in ("x_new", "x_own", "x"))
    log_lik, own = np.zeros(len(tau)), np.empty((len(tau), len(data["x_own"])))
    for g in range(1, int(data["G"]) + 1):
        rows, asked = data["group"] == g, data["group_own"] == g
        found = readouts.predict_group(at_data[:, rows], data["y"][rows], at_own[:, asked], p["mu"], tau, p["sigma"])
        log_lik, own[:, asked] = log_lik + found[0], found[1]
    return {
        "curve": np.einsum("dxr,dr->dx", at_new, p["mu"]),
        "apart": np.sqrt(np.einsum("dxr,dr->dx", at_new**2, tau**2)),
        "own": own,
        **{name: p[name] for name in ("tau_shape", "tau_level", "sigma")},
        "log_lik": log_lik,
    }


def _compute_bump_curve(x: Array, draws: dict[str, Array]) -> Floats:
    """The ReLU network's function at x, (chain, draw, place)."""
    h = np.maximum(0, x[:, None] * draws["w"][..., None, :] + draws["b"][..., None, :])
    return (h @ draws["v"][..., None])[..., 0] + draws["c"][..., None]


def _compute_bumps(data: dict[str, Array], draws: dict[str, Array]) -> dict[str, Array]:
    log_lik = norm.logpdf(data["y"], _compute_bump_curve(data["x"], draws), data["sigma"]).sum(axis=-1)
    return {"f": _compute_bump_curve(data["x_new"], draws), "log_lik": log_lik}


def _compute_log_softmax(X: Array, draws: dict[str, Array]) -> Floats:
    """Logarithms of class probabilities, (chain, draw, row, class)."""
    h = np.tanh(X @ draws["w1"] + draws["b1"][..., None, :])
    return log_softmax(h @ draws["w2"] + draws["b2"][..., None, :], axis=-1)


def _compute_iris(data: dict[str, Array], draws: dict[str, Array]) -> dict[str, Array]:
    y = data["y"] - 1
    log_lik = _compute_log_softmax(data["X"], draws)[..., np.arange(len(y)), y].sum(axis=-1)
    return {"p": np.exp(_compute_log_softmax(data["X_new"], draws)), "log_lik": log_lik}


def score_test(name: str, unknowns: Named, level: float = 0.9) -> dict[str, float]:
    """Score what draws of `BUMPS` or `IRIS` predict of the rows that were held back.

    Parameters
    ----------
    name : str
    unknowns : mapping of arrays, shape (chain, draw, …)
        As `Posterior.compute` takes them.
    level : float
        Of the intervals.

    Returns
    -------
    dict of float
        "lpd", the mean log predictive density of a row (nats), and "coverage", the share of rows in central intervals
        of this level or, for classes, among the likeliest ones that reach it together.

    Examples
    --------
    >>> import numpy as np
    >>> from hbnn.reference import posteriors
    >>> unknowns = posteriors.load_posterior("iris-softmax_bnn").unknowns.items()
    >>> nothing = {name: np.zeros((1, 1, *shape)) for name, shape in unknowns}
    >>> found = posteriors.score_test("iris-softmax_bnn", nothing)
    >>> round(found["lpd"], 4), found["coverage"]  # a third for each class
    (-1.0986, 1.0)
    """
    data = load_posterior(name).data
    draws = {key: np.asarray(value, float) for key, value in unknowns.items()}
    if name == BUMPS:
        mean, y = _compute_bump_curve(data["x_test"], draws).reshape(-1, len(data["y_test"])), data["y_test"]
        density = norm.pdf(y, mean, data["sigma"]).mean(axis=0)
        below = norm.cdf(y, mean, data["sigma"]).mean(axis=0)
        inside = abs(2 * below - 1) <= level
    else:
        y = data["y_test"] - 1
        p = np.exp(_compute_log_softmax(data["X_test"], draws)).mean(axis=(0, 1))
        density = p[np.arange(len(y)), y]
        inside = np.where(p > density[:, None], p, 0).sum(axis=1) < level
    return {"lpd": float(np.log(density).mean()), "coverage": float(inside.mean())}


_SHAPES = {
    FLAT: _shape_flat, HIERARCHICAL: _shape_hierarchical, CURVES: _shape_curve, BUMPS: _shape_bump, IRIS: _shape_iris,
}  # fmt: skip
_COMPUTE = {
    FLAT: _compute_flat, HIERARCHICAL: _compute_hierarchical, CURVES: _compute_curves, BUMPS: _compute_bumps,
    IRIS: _compute_iris,
}  # fmt: skip
