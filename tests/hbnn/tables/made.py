"""Tables and fits as tests of tables make them."""

from dataclasses import replace

import numpy as np
import pandas as pd
from hbnn import tables
from hbnn.tables._predict import Fit, Precision, Scales
from hbnn.tables._read import NUMBERS


def make_people():
    """Sixty-two persons in three towns of 30, 12 and 20; every third has moved."""
    rng, n = np.random.default_rng(0), 62
    return pd.DataFrame({
        "town": np.repeat(["Ulm", "Bonn", "Aachen"], (30, 12, 20)), "age": rng.integers(18, 90, n),
        "income": rng.normal(30, 5, n).round(2), "moved": np.resize([1, 0, 0], n),
        "name": [f"person {i}" for i in range(n)],
    })  # fmt: skip


def make_tenants(n=60):
    """Tenants of four towns in turn, with two classes "moved", several "by", and a number "rent"."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "town": np.resize(["Ulm", "Bonn", "Aachen", "Kiel"], n), "age": rng.integers(18, 90, n),
        "income": rng.normal(30, 5, n).round(2), "moved": np.resize([0, 1, 0], n),
        "rent": rng.normal(800, 100, n).round(2), "by": np.resize(["bus", "car", "foot"], n),
    })  # fmt: skip


def read_tenants(frame, outcome, **changes):
    columns = {"group": "town", "features": ["age", "income"], "outcome": outcome}
    return tables.read_table(frame, **(columns | changes))


def read_kind(kind, **changes):
    """A table of 60 rows in four towns and five streets with an outcome of this kind."""
    rng, frame = np.random.default_rng(2), make_tenants()
    made = {"binary": frame["moved"], "classes": frame["by"], "ordered": np.resize([1, 2, 3, 4], 60)}
    made |= {"counts": rng.poisson(4, 60), "share": rng.uniform(1, 99, 60)}
    frame["y"] = made.get(kind, frame["rent"])
    frame = frame.assign(street=np.resize(list("abcde"), 60))
    return read_tenants(frame, "y", kind=kind, **changes)


def make_table(y, n_groups, n_rows=20, seed=0):
    """Rows of groups with two features and an outcome, a function of (row,) places of groups."""
    rng, g = np.random.default_rng(seed), np.repeat(np.arange(n_groups), n_rows)
    a, b = rng.normal(size=(2, g.size))
    frame = pd.DataFrame({"g": g, "a": a, "b": b, "y": y(g, rng)})
    return tables.read_table(frame, group="g", features=["a", "b"], outcome="y")


def make_fit(kind="binary", n_groups=4, n_draws=400, hidden=3, seed=0, spread=0.5):
    """A fit as if sampled, of groups "g0", "g1", … and two features."""
    rng = np.random.default_rng(seed)
    output, draws = ((3,) if kind == "classes" else ()), {}
    shapes = {"w1": (2, hidden), "b1": (hidden,), "w2": (hidden, *output), "b2": output}
    for name, shape in shapes.items():
        mu = rng.normal(size=shape) + 0.1 * rng.normal(size=(n_draws, *shape))
        if kind in NUMBERS and name in ("w1", "b1"):  # the hidden layer is shared
            draws[name] = mu
            continue
        sd = spread * abs(1 + 0.1 * rng.normal(size=n_draws))
        z = rng.normal(size=(n_draws, n_groups, *shape))
        draws |= {f"{name}_mu": mu, f"{name}_sd": sd}
        draws[name] = mu[:, None] + sd.reshape(-1, *[1] * (z.ndim - 1)) * z
    if kind in NUMBERS:
        draws["noise"] = 0.4 + 0.02 * rng.random(n_draws)
    level, width = (10.0, 2.0) if kind == "real" else (0.0, 1.0)
    return Fit(
        draws=draws, groups=tuple(f"g{k}" for k in range(n_groups)), features=("a", "b"), kind=kind,
        classes={"binary": ("0", "1"), "classes": ("a", "b", "c")}.get(kind, ()),
        scales=Scales(np.array([1.0, 2.0]), np.array([2.0, 0.5]), level, width),
        share=(100.0, 0.01) if kind == "share" else None,
    )  # fmt: skip


def fit_made_up(rows, *, index=slice(None), asked=None, **_):
    """In the place of chains: weights from their prior, of the groups that are there."""
    own = np.unique(rows.group[index])
    made = replace(make_fit("real", n_groups=len(own), n_draws=60), groups=tuple(rows.groups[g] for g in own))
    ones = np.ones(3)
    return made if asked is None else replace(made, precision=Precision(ones, ones, ones))


def make_rows(fit, n=8, group="new", labels=True, seed=1):
    """Rows of one group, or of all groups of the fit in turn (group=None)."""
    rng = np.random.default_rng(seed)
    groups = fit.groups if group is None else (group,)
    values = fit.scales.center + fit.scales.width * rng.normal(size=(n, 2))
    drawn = {"real": rng.normal(10, 2, n), "binary": rng.integers(0, 2, n).astype("int32"), "counts": rng.poisson(3, n)}
    drawn |= {"share": rng.integers(0, 101, n).astype(float)}
    y = drawn.get(fit.kind, rng.integers(0, 3, n).astype("int32")) if labels else None
    return tables.Table(
        values=values, y=y, group=np.resize(np.arange(len(groups)), n), groups=groups, features=("a", "b"),
        ids={"row": np.arange(n)}, columns={"group": "g", "outcome": "y"},
        **({"kind": fit.kind, "classes": fit.classes, "share": fit.share} if labels else {}),
    )  # fmt: skip


def give_seconds(table, names, place):
    """The table, with a second grouping."""
    return replace(table, second_groups=names, second_group=np.resize(place, len(table.values)))
