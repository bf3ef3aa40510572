"""Posteriors on disk, so that chapters which need the same one sample it once.

A file is found by a digest of everything its draws depend on: the model's graph with its constants, the data, the
sampler's settings, the versions, `hbnn.NUMBERS`, and the machine. It is used only if it can be read, its own
check sums fit, and it says itself that it comes from this very run; else the model is sampled again. The
environment variable BNN_CACHE names the folder, or is "off" or "on". Draws that somebody else sampled are read only
where BNN_POSTERIORS asks for them (`bookkit.published`).
"""

import contextlib
import functools
import hashlib
import json
import logging
import os
import platform
from functools import partial
from importlib.metadata import version
from pathlib import Path

import dask
import hbnn
import numpy as np
import xarray as xr
from hbnn._checks import check_seed
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort

from bookkit import environment, published

SWITCH = "BNN_CACHE"
OFF, ON = ("off", "0", "no", "false"), ("on", "1", "yes", "true")  # in capitals too
RUN = "run"  # the attribute that says which run a stored posterior comes from
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
    >>> with mock.patch.dict(os.environ, BNN_CACHE="off"):
    ...     print(cache.find_folder())
    None
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
    sample : `pm.sample`

    Returns
    -------
    function
        Of the arguments of `pm.sample`, all by name but `draws`, with ``model`` and ``random_seed`` (int) among them.
        It returns the DataTree of `pm.sample`, with the groups ``posterior`` and ``sample_stats``.

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
    >>> options = {"model": model, "random_seed": 1, **sampling.ONE_CORE}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with mock.patch.dict(os.environ, BNN_CACHE=folder):
    ...         first, second = sample(**options), sample(**options)
    ...     print(len(os.listdir(folder)), "file")
    1 file
    >>> bool((first["posterior"]["mu"] == second["posterior"]["mu"]).all())
    True
    """

    @functools.wraps(sample)
    def sample_cached(draws=1000, *, model, random_seed, **options):
        check_seed(random_seed)
        options |= {"draws": draws, "random_seed": random_seed}
        asked = {name: value for name, value in options.items() if name not in UNSEEN}
        run = digest_run(model, asked)
        folder = find_folder()
        path = None if folder is None else folder / f"{run}.nc"
        tree = None if path is None else _read(path, run)
        if tree is None:
            tree = published.find(digest_run(model, asked, anywhere=True))
        if tree is None:
            tree = _strip(sample(model=model, **options))
            tree.attrs[RUN] = run
            whole = tree["posterior"].sizes["draw"] == draws and np.isfinite(tree["sample_stats"]["energy"]).all()
            if path is not None and whole:  # else it was interrupted
                _write(tree, path)
        return tree

    return sample_cached


def _strip(tree):
    """Draws and statistics, without what no NetCDF file can hold."""
    groups = {name: tree[name].to_dataset() for name in ("posterior", "sample_stats")}
    for data in groups.values():
        data.attrs = {name: value for name, value in data.attrs.items() if name in KEPT}
    stats = groups["sample_stats"]
    groups["sample_stats"] = stats.drop_vars([name for name, value in stats.items() if value.dtype == object])
    return xr.DataTree.from_dict(groups)


def _write(tree, path):
    """All of the file or nothing; a full or a read-only disk costs time, not the result."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    checked = {f"/{name}": {v: {"fletcher32": True} for v in node.data_vars} for name, node in tree.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # not straight into the file: on a full disk HDF5 takes the whole process down with it
        # (nor with a lock of Dask's, which a worker would ask for, and which knows files only)
        with dask.config.set(scheduler="synchronous"):
            content = tree.to_netcdf(engine="h5netcdf", encoding=checked)
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        LOG.warning("the posterior could not be stored: %s", error)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _read(path, run):
    """A stored result, or None where there is none that can be trusted."""
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
        digits of the data and constants beyond `DIGITS`, which sines and cosines of another processor may change.

    Examples
    --------
    Goes on from `cached`.

    >>> run = cache.digest_run(model, {"draws": 1000, "random_seed": 1})
    >>> len(run), run == cache.digest_run(model, {"draws": 1000, "random_seed": 1})
    (64, True)
    >>> run == cache.digest_run(model, {"draws": 1000, "random_seed": 2})
    False
    """
    digest = hashlib.sha256()
    add_array = partial(_add_array, digest, digits=DIGITS if anywhere else None)

    def add(*things):
        digest.update(json.dumps(things, default=_show).encode())

    add(sorted(asked.items()), {name: version(name) for name in PACKAGES}, hbnn.NUMBERS)
    if not anywhere:
        add(*_describe_machine(), environment.read_back())
    kept = model.replace_rvs_by_values(model.deterministics)
    add([variable.name for variable in model.deterministics], model.named_vars_to_dims, model.coords)
    add([(rv.name, start) for rv, start in model.rvs_to_initial_values.items()])
    outputs = [*model.logp(sum=False), *kept]
    inputs = [model.rvs_to_values[rv] for rv in model.free_RVs]
    add([(rv.name, str(value.type)) for rv, value in zip(model.free_RVs, inputs, strict=True)])
    for data in model.data_vars:
        add(data.name)
        add_array(data.get_value())
    places = {variable: f"in{i}" for i, variable in enumerate([*inputs, *model.data_vars])}
    for node in io_toposort([*inputs, *model.data_vars], outputs):
        for variable in node.inputs:
            if isinstance(variable, Constant):
                add_array(np.asarray(variable.data))
            else:
                add(places.get(variable, "?"))
        add(type(node.op).__qualname__, str(node.op), [str(v.type) for v in node.outputs])
        places |= {variable: f"v{len(places) + i}" for i, variable in enumerate(node.outputs)}
    add([places.get(variable, "?") for variable in outputs])
    return digest.hexdigest()


def _show(thing):
    """What JSON does not know, as text; arrays to the last bit."""
    if isinstance(thing, np.ndarray) and thing.dtype != object:
        return [thing.dtype.str, thing.shape, hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()]
    return str(thing)


def _add_array(digest, values, digits=None):
    values = np.asarray(values)
    if digits is not None and values.dtype.kind == "f":
        values = np.round(values, digits) + 0.0  # no -0.0
    if values.dtype == object:
        digest.update(repr(values).encode())
        return
    digest.update(json.dumps([values.dtype.str, values.shape]).encode())
    digest.update(np.ascontiguousarray(values).tobytes())


def _describe_machine():
    """What the compiler builds for, as another processor may round otherwise, and Python. List of str."""
    import llvmlite.binding as llvm

    return [platform.machine(), platform.processor(), llvm.get_host_cpu_name(), platform.python_version()]
