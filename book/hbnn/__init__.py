"""Hierarchical Bayesian neural networks with PyMC.

Names are loaded when they are asked for, so that `import hbnn` costs nothing; ``__init__.pyi`` lists them.
"""

import lazy_loader

__version__ = "4.0.dev0"
# Raise this in the commit after which the library, or what the book's own kit computes, gives other numbers, and say so
# in CHANGELOG.md: chapters, tables and kept posteriors are then computed, or checked, again.
NUMBERS = 1

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
