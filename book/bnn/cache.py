"""Posteriors on disk, so that chapters which need the same one sample it once.

A file is found by a digest of everything its draws depend on: the model's graph with its constants, the data, the
sampler's settings, the versions, this package's source, and the machine. It is used only if it can be read, its own
digest fits its content, and it says itself that it comes from this very run; else the model is sampled again. The
environment variable BNN_CACHE names the folder, or is "off".
"""

import hashlib
import inspect
import json
import logging
import os
import platform
from importlib.metadata import version
from pathlib import Path

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.traversal import io_toposort

from bnn import environment, fused, inference, models, simd

SWITCH = "BNN_CACHE"
OFF = ("off", "0", "no", "false")  # in capitals too
RUN = "run"  # the attribute that says which run a stored posterior comes from
PACKAGES = ("pymc", "pytensor", "numba", "llvmlite", "numpy", "scipy", "nutpie")
LOG = logging.getLogger("bnn")


def find_folder():
    """The folder of stored posteriors (Path), or None where BNN_CACHE is "off", "0", "no" or "false"."""
    wanted = os.environ.get(SWITCH, "").strip()
    if wanted.lower() in OFF:
        return None
    if wanted:
        return Path(wanted)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bnn" / "posteriors"


def sample_cached(model, *, seed, chains=4, draws=1000, tune=1000, target_accept=0.8):
    """`inference.sample_nuts` with nutpie, unless the very same draws are stored already.

    Parameters
    ----------
    model : pm.Model
    seed, chains, draws, tune, target_accept : as in `inference.sample_nuts`

    Returns
    -------
    DataTree, the same whether it was sampled or read
    """
    asked = {"seed": int(seed), "chains": chains, "draws": draws, "tune": tune, "target_accept": float(target_accept)}
    folder = find_folder()
    if folder is None:
        return inference.sample_nuts(model, **asked)
    run = digest_run(model, asked)
    path = folder / f"{run}.nc"
    tree = _read(path, model, run)
    if tree is not None:
        return tree
    tree = inference.sample_nuts(model, **asked)
    if not tree.attrs["interrupted"]:
        tree.attrs[RUN] = run
        try:
            folder.mkdir(parents=True, exist_ok=True)
            inference.save(tree, path)
        except OSError as error:  # a full or a read-only disk costs time, not the result
            LOG.warning("the posterior could not be stored: %s", error)
    return tree


def _read(path, model, run):
    """A stored result, or None where there is none that can be trusted."""
    if not path.exists():
        return None
    try:
        tree = inference.load(path, model=model)
    except (OSError, ValueError, KeyError) as error:
        LOG.info("%s is sampled again: %s", path.name, error)
        return None
    if tree.attrs.get(RUN) != run:
        LOG.info("%s is sampled again: it holds another run", path.name)
        return None
    return tree


def digest_run(model, asked):
    """The name of a run: SHA-256 of everything that its draws depend on, as hexadecimal text.

    Parameters
    ----------
    model : pm.Model
    asked : dict, the sampler's settings
    """
    digest = hashlib.sha256()

    def add(*things):
        digest.update(json.dumps(things, default=str).encode())

    add(sorted(asked.items()), platform.machine(), platform.processor(), _describe_processor())
    add({name: version(name) for name in PACKAGES}, platform.python_version())
    for module in (environment, fused, inference, models, simd):
        add(inspect.getsource(module))
    add(environment.read_back())
    outputs = model.logp(sum=False)
    inputs = [model.rvs_to_values[rv] for rv in model.free_RVs]
    add([(rv.name, str(value.type)) for rv, value in zip(model.free_RVs, inputs, strict=True)])
    for data in model.data_vars:
        add(data.name)
        _add_array(digest, data.get_value())
    places = {variable: f"in{i}" for i, variable in enumerate([*inputs, *model.data_vars])}
    for node in io_toposort([*inputs, *model.data_vars], outputs):
        for variable in node.inputs:
            if isinstance(variable, Constant):
                _add_array(digest, np.asarray(variable.data))
            else:
                add(places.get(variable, "?"))
        add(type(node.op).__qualname__, str(node.op), [str(v.type) for v in node.outputs])
        places |= {variable: f"v{len(places) + i}" for i, variable in enumerate(node.outputs)}
    add([places.get(variable, "?") for variable in outputs])
    return digest.hexdigest()


def _add_array(digest, values):
    values = np.asarray(values)
    if values.dtype == object:
        digest.update(repr(values).encode())
        return
    digest.update(json.dumps([values.dtype.str, values.shape]).encode())
    digest.update(np.ascontiguousarray(values).tobytes())


def _describe_processor():
    """What the compiler builds for: another processor may round otherwise."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name()
