"""Hierarchical Bayesian neural networks with PyMC.

Names are loaded when they are asked for, so that `import hbnn` costs nothing; ``__init__.pyi`` lists them.
"""

import ast as _ast
from importlib import import_module as _import_module
from pathlib import Path as _Path

_STUB = _ast.parse(_Path(__file__).with_suffix(".pyi").read_text())
_HOMES = {alias.name: line.module for line in _STUB.body for alias in line.names}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'hbnn' has no attribute {name!r}")
    globals()[name] = getattr(_import_module(_HOMES[name]), name)
    return globals()[name]


def __dir__():
    return [*globals(), *__all__]
