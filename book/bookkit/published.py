"""Posteriors that were published with a release, so that a reader need not sample them.

The environment variable BNN_POSTERIORS asks for them: "release" for those of the newest release of the repository that
the book's ``_config.yml`` names, else an address at which ``posteriors.json`` lies, and the files it names; unset,
empty or "off" asks for none. A file is used only if its SHA-256 is the one that stands there, and if it says itself
that it comes from this very model, data and sampler (`cache.digest_run`, without the machine). Draws are rounded, and
nothing else: every one is there, and any program that knows NetCDF and its packed integers reads them.
"""

import hashlib
import json
import logging
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import xarray as xr
import yaml

SWITCH = "BNN_POSTERIORS"
OFF = ("", "off", "0", "no", "false")
CONFIG = Path(__file__).parents[2] / "_config.yml"
MANIFEST = "posteriors.json"  # run: its file, the file's SHA-256, and the chapter that sampled it
RUN, NAME = "run", "run_anywhere"  # attributes: which run draws come from, and how other machines name it
# Numbers of a draw: a variable that has more is kept in 8 bits, a smaller one in 16. With 7 bits the log likelihood of
# the chapters' posterior falls by 0.3, which is its Monte Carlo error.
MANY = 200
LOG = logging.getLogger("bookkit")


def find(run):
    """The published draws of a run (DataTree), or None where none are asked for, or none can be trusted.

    Which of the two it is stands in the log: draws that were not sampled here are never used without a word.

    Parameters
    ----------
    run : str, as `bookkit.cache.digest_run` names a run without its machine
    """
    place = os.environ.get(SWITCH, "").strip()
    if place.lower() in OFF:
        return None
    import pooch  # takes a third of a second

    try:
        place = f"{(find_release() if place.lower() == 'release' else place).rstrip('/')}/"
        pooch.HTTPDownloader()(place + MANIFEST, content := BytesIO(), None)
        entry = json.loads(content.getvalue()).get(run)
        if entry is None:
            raise ValueError("it has none of this model, data, settings and version of packages and library")
        registry = {entry["file"]: entry["sha256"]}
        copies = pooch.create(pooch.os_cache("hbnn") / "published", place, registry=registry, retry_if_failed=2)
        tree = unpack(Path(copies.fetch(entry["file"])).read_bytes(), run)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        LOG.warning("No published posterior from %s: %s. It is sampled here.", place, error)
        return None
    LOG.warning("These draws were not sampled here: they are published at %s, and rounded.", place)
    return tree


def find_release():
    """The address of the newest release of the repository that the book's settings name (str)."""
    if not CONFIG.exists():
        raise ValueError(f"there is no {CONFIG}, which names the repository; wanted: an address")
    url = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["repository"]["url"]
    return f"{url.rstrip('/')}/releases/latest/download"


def pack(tree, run):
    """Draws as the bytes of a NetCDF file: floats of the posterior as integers of 8 or 16 bits (`MANY`) that divide the
    range of their variable evenly, other floats in 32 bits. A number that is not finite is a ValueError.
    """
    small, encoding = {"zlib": True, "complevel": 9, "shuffle": True}, {}
    for name, values in tree["posterior"].data_vars.items():
        encoding.setdefault("/posterior", {})[name] = small | _round(name, values.values)
    for name, values in tree["sample_stats"].data_vars.items():
        how = {"dtype": "float32"} if values.dtype.kind == "f" else {}
        encoding.setdefault("/sample_stats", {})[name] = small | how
    whole = xr.DataTree.from_dict({name: tree[name].to_dataset() for name in ("posterior", "sample_stats")})
    whole.attrs = {RUN: run}
    return bytes(whole.to_netcdf(engine="h5netcdf", encoding=encoding))


def _round(name, values):
    """How NetCDF shall pack the numbers of a variable, (chain, draw, …)."""
    if values.dtype.kind != "f":
        return {}
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has numbers that are not finite; wanted: a run that went to its end")
    bits = 8 if values[0, 0].size > MANY else 16
    low, high = float(values.min()), float(values.max())
    return {
        "dtype": f"int{bits}", "scale_factor": (high - low) / (2**bits - 2) or 1.0, "add_offset": (high + low) / 2,
        "_FillValue": -(2 ** (bits - 1)),  # which no draw becomes
    }  # fmt: skip


def unpack(content, run):
    """Draws (DataTree, in float64) from the bytes of a file; of another run's file a ValueError."""
    with xr.open_datatree(BytesIO(content), engine="h5netcdf") as file:
        tree = file.load().copy()
    if tree.attrs.get(RUN) != run:
        raise ValueError("it holds another run")
    posterior = tree["posterior"].to_dataset().astype(float).drop_encoding()
    return xr.DataTree.from_dict({"/": tree.to_dataset(), "posterior": posterior, "sample_stats": tree["sample_stats"]})


def publish(trees, folder, chapter):
    """Write a chapter's draws (as `bookkit.cache` stores them) and their `MANIFEST` into a folder; list of Path."""
    folder.mkdir(parents=True, exist_ok=True)
    known, paths = {}, []
    for tree in trees:
        run = tree.attrs[NAME]
        content, path = pack(tree, run), folder / f"posterior-{run[:12]}.nc"
        path.write_bytes(content)
        known[run] = {"file": path.name, "sha256": hashlib.sha256(content).hexdigest(), "chapter": chapter}
        paths.append(path)
    (folder / MANIFEST).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return paths
