"""Hierarchical Bayesian neural networks with PyMC."""

from hbnn._refused import Refused as Refused
from hbnn.fusion import fuse as fuse
