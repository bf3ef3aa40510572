"""The networks of one outcome, with the levels of their groups inside.

`fuse` looks for products, so what is added to the last one, such as ``+ b2[g]``, stays as it was typed, where PyTensor
gathers it row by row. Here the sum is asked for first, and the kernel adds up the slopes of each group's level.
"""

import pymc as pm
import pytensor.scalar as ps
from pytensor.graph.basic import Variable
from pytensor.tensor.random.op import RandomVariable

from hbnn._refused import Refused
from hbnn.fusion._arrange import Plan, build_outputs
from hbnn.fusion._fuse import _exchange, fuse
from hbnn.fusion._read import Axis, is_made_by, is_random, read_network


def fuse_outcome(model: pm.Model, name: str) -> pm.Model:
    """`fuse` for a model whose observed variable `name` has a network and nothing else as mean, or as logits."""
    waiting: list[Variable] = list(model[name].owner.inputs)
    for var in waiting:
        if var.owner is None or not is_random(var) or is_made_by(var, RandomVariable):
            continue
        if is_made_by(var, ps.Add):
            axes = [Axis() for _ in range(var.ndim)]
            try:
                plan = Plan(name, read_network(name, var, axes), axes)
                return _exchange(model, {var: build_outputs([(var, axes, plan)], None)[0]})
            except Refused:
                pass
        waiting += var.owner.inputs
    return fuse(model)
