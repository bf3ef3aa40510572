"""Fast networks: read a PyMC model's graph, and put a compiled network in its place."""

from hbnn.fusion._fuse import fuse as fuse
