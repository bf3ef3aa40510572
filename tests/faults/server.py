"""Runs pytest again and again, each time in a fork in which other people's packages are loaded already.

Loading them takes longer than most tests. A line on stdin holds, as JSON, pytest's arguments, the file for what it
says, and how many CPU-seconds it may take; a line on stdout gives the process, which leads a group of its own, and a
second one its exit status and CPU-seconds.
"""

import contextlib
import importlib
import json
import os
import resource
import sys
import warnings

PACKAGES = (
    "pytest", "hypothesis", "hypothesis.extra.numpy", "nbval.plugin", "xdist", "nbformat", "nbclient", "jupytext",
    "IPython", "PIL.Image", "yaml", "bs4", "requests", "sphinx.util.docutils", "scipy.stats", "scipy.optimize",
    "pandas", "sklearn.datasets", "sklearn.model_selection", "sklearn.neighbors", "sklearn.neural_network",
    "sklearn.metrics",
    "matplotlib.pyplot", "seaborn", "xarray", "h5netcdf", "pymc", "pymc.variational", "arviz", "arviz_stats.base",
    "nutpie", "jax", "distributed", "nbgrader.apps",  # none of them starts a thread that a test needs
)  # fmt: skip


def main():
    for package in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    for name in [name for name in sys.modules if name.partition(".")[0] == "bnn"]:  # by the environment's .pth file
        del sys.modules[name]
    for line in sys.stdin:
        arguments, file, limit = json.loads(line)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # JAX has not yet started what it warns of
            process = os.fork()
        if process == 0:
            run(arguments, file, limit)
        print(process, flush=True)
        _, status, used = os.wait4(process, 0)
        print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, flush=True)


def run(arguments, file, limit):
    """In the fork: pytest, and the end."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    said = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    status = 3
    try:
        import pytest

        status = int(pytest.main(arguments))
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
