"""Posteriors on disk, so that chapters which need the same one sample it once.

A file is found by a digest of everything its draws depend on: the model's graph with its constants, the data, the
sampler's settings, the versions, `hbnn.NUMBERS`, and the machine. It is used only if it can be read, its own
check sums fit, and it says itself that it comes from this very run; else the model is sampled again. The
environment variable BNN_CACHE names the folder, or is "off" or "on". Draws that somebody else sampled are read only
where BNN_POSTERIORS asks for them (`bookkit.published`).
"""

import functools
import json
import logging
import os
from importlib.metadata import version
from pathlib import Path

import dask
import hbnn
import numpy as np
import xarray as xr
from hbnn._checks import check_seed
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort

from bookkit import published
from bookkit.repo import digest, write_atomically
from bookkit.versions import machine

SWITCH = "BNN_CACHE"
OFF, ON = ("off", "0", "no", "false"), ("on", "1", "yes", "true")  # in capitals too
RUN = published.RUN
UNSEEN = ("progressbar", "quiet", "compute_convergence_checks")  # settings of `pm.sample` that change no draw
KEPT = ("inference_library", "inference_library_version", "tuning_steps")  # attributes
PACKAGES = ("pymc", "pytensor", "numba", "llvmlite", "numpy", "scipy", "nutpie")
DIGITS = 6  # of data, where a run's name shall be the same on another machine
LOG = logging.getLogger("bookkit")


def find_folder():
    """The folder of stored posteriors (Path), or None where BNN_CACHE is "off", "0", "no" or "false".

    Unset, empty, "on", "1", "yes" and "true" mean the usual place; anything else is a path.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from bookkit import cache
    >>> with mock.patch.dict(os.environ, BNN_CACHE="/data/posteriors"):
    ...     print(cache.find_folder())
    /data/posteriors
    """
    wanted = os.environ.get(SWITCH, "").strip()
    if wanted.lower() in OFF:
        return None
    if wanted and wanted.lower() not in ON:
        return Path(wanted)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hbnn" / "posteriors"


def cached(sample):
    """`pm.sample` that reads the very same draws where it has stored them, and stores them where it has not.

    Parameters
    ----------
    sample : `pm.sample` or `hbnn.sample_tempered`

    Returns
    -------
    function
        Of the arguments of `pm.sample`, all by name but `draws`, with ``model`` and ``random_seed`` (int) among them.
        It returns the DataTree of `pm.sample`; one of a release has the groups ``posterior`` and ``sample_stats``.

    Raises
    ------
    ValueError
        From that function, for a seed that is no integer of at least 0.

    Examples
    --------
    >>> import os
    >>> import tempfile
    >>> from unittest import mock
    >>> import pymc as pm
    >>> from bookkit import cache
    >>> from hbnn import sampling
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    ...     y = pm.Normal("y", mu, 1, observed=[1.0, 2.0, 3.0])
    >>> sample = cache.cached(pm.sample)
    >>> with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, BNN_CACHE=folder):
    ...     first, second = (sample(model=model, random_seed=1, **sampling.ONE_CORE) for _ in range(2))
    >>> bool((first["posterior"]["mu"] == second["posterior"]["mu"]).all())
    True
    """

    sample = getattr(sample, "__wrapped__", sample)  # PyMC's own, where `bookkit.kernel` has ours in its place

    @functools.wraps(sample)
    def sample_cached(draws=1000, *, model, random_seed, **options):
        check_seed(random_seed)
        options |= {"draws": draws, "random_seed": random_seed}
        asked = {name: value for name, value in options.items() if name not in UNSEEN}
        if sample.__name__ != "sample":
            asked["sampler"] = sample.__name__
        run, folder = digest_run(model, asked), find_folder()
        path = None if folder is None else folder / f"{run}.nc"
        tree = None if path is None else read(path, run)
        if tree is None:
            anywhere = digest_run(model, asked, anywhere=True)
            tree = published.find(anywhere)
        if tree is None:
            tree = _strip(sample(model=model, **options))
            tree.attrs |= {RUN: run, published.NAME: anywhere}
            whole = tree["posterior"].sizes["draw"] == draws and np.isfinite(tree["sample_stats"]["energy"]).all()
            if path is not None and whole:  # else it was interrupted
                write(tree, path)
        return tree

    return sample_cached


def _strip(tree):
    """Draws, statistics and data, without what no NetCDF file can hold."""
    groups = {name: node.to_dataset() for name, node in tree.children.items()}
    for data in groups.values():
        data.attrs = {name: value for name, value in data.attrs.items() if name in KEPT}
    stats = groups["sample_stats"]
    groups["sample_stats"] = stats.drop_vars([name for name, value in stats.items() if value.dtype == object])
    return xr.DataTree.from_dict(groups)


def write(tree, path):
    """Store draws, all of the file or nothing; a full or a read-only disk costs time, not the result."""
    checked = {f"/{name}": {v: {"fletcher32": True} for v in node.data_vars} for name, node in tree.items()}
    # not straight into the file: on a full disk HDF5 takes the whole process down with it
    # (nor with a lock of Dask's, which a worker would ask for, and which knows files only)
    with dask.config.set(scheduler="synchronous"):
        content = bytes(tree.to_netcdf(engine="h5netcdf", encoding=checked))
    try:
        write_atomically(path, content)
    except OSError as error:
        LOG.warning("the posterior could not be stored: %s", error)


def read(path, run):
    """The draws of a run that are stored in a file (DataTree), or None where there are none that can be trusted."""
    try:
        with xr.open_datatree(path, engine="h5netcdf") as file:
            tree = file.load().copy()
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever h5py, h5netcdf and xarray raise for a damaged file
        LOG.info("%s is sampled again: %s", path.name, error)
        return None
    if tree.attrs.get(RUN) != run:
        LOG.info("%s is sampled again: it holds another run", path.name)
        return None
    return tree


def digest_run(model, asked, *, anywhere=False):
    """The name of a run: SHA-256 of everything that its draws depend on, as hexadecimal text.

    Parameters
    ----------
    model : pm.Model
    asked : dict, the sampler's settings
    anywhere : bool
        Whether another machine shall find the same name: its processor and settings do not count then, nor do the
        digits of arrays beyond `DIGITS`, which sines and cosines of another processor may change.

    Examples
    --------
    >>> import pymc as pm
    >>> from bookkit import cache
    >>> with pm.Model() as model:
    ...     mu = pm.Normal("mu")
    >>> cache.digest_run(model, {"random_seed": 1}) == cache.digest_run(model, {"random_seed": 2})
    False
    """

    def show(thing):
        """Arrays to the last digit that counts, anything else that JSON does not know as text."""
        if not isinstance(thing, np.ndarray):
            return str(thing)
        if thing.dtype == object:
            return thing.tolist()
        values = np.round(thing, DIGITS) + 0.0 if anywhere and thing.dtype.kind == "f" else thing  # no -0.0
        return [values.dtype.str, values.shape, digest(values.tobytes())]

    said = [sorted(asked.items()), {name: version(name) for name in PACKAGES}, hbnn.NUMBERS]
    said += [None if anywhere else machine(), [data.get_value() for data in model.data_vars]]
    said += [[variable.name for variable in model.deterministics], model.named_vars_to_dims, model.coords]
    said += [[(rv.name, start) for rv, start in model.rvs_to_initial_values.items()]]
    inputs = [*(model.rvs_to_values[rv] for rv in model.free_RVs), *model.data_vars]
    outputs = [*model.logp(sum=False), *model.replace_rvs_by_values(model.deterministics)]
    said += [[(rv.name, str(value.type)) for rv, value in zip(model.free_RVs, inputs, strict=False)]]
    places = {variable: i for i, variable in enumerate(inputs)}

    def place(variable):
        return np.asarray(variable.data) if isinstance(variable, Constant) else places.get(variable, "?")

    for node in io_toposort(inputs, outputs):
        types = [str(variable.type) for variable in node.outputs]
        said.append([type(node.op).__qualname__, str(node.op), types, [place(variable) for variable in node.inputs]])
        places |= {variable: len(places) + i for i, variable in enumerate(node.outputs)}
    return digest(json.dumps([*said, [place(variable) for variable in outputs]], default=show))
