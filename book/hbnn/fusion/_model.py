"""The model that `fuse` gives back: it says what is fused in it, and keeps the variables of other models out."""

import sys
import warnings
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pymc as pm
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import walk

from hbnn._refused import Refused
from hbnn._text import join
from hbnn.fusion._activations import Activation, is_cheap

# how many times faster one gradient of the network is: of outcomes, of outputs; "Where it pays" in `book/api_fuse.md`
GAINS = {False: ("3 to 5", "2 to 8"), True: ("1.2 to 2", "1 to 1.4")}  # by whether activations are cheap


@dataclass(frozen=True)
class Fused:
    """A network that `fuse` exchanged.

    Attributes
    ----------
    network : str
        The outcome, or the expression, that it gives.
    outcomes : tuple of str
        What is computed from it.
    is_likelihood : bool
        Whether the whole likelihood is fused, or its outputs.
    sizes : tuple of int
        Features, units of each hidden layer, outputs.
    activations : tuple
        Of the hidden layers.
    groups : int
        Networks of this shape.

    Examples
    --------
    >>> from hbnn.fusion._model import Fused
    >>> print(Fused("y", ("y",), True, (2, 5, 1), ("tanh",), 18))
    y: 18 networks and the likelihood, of 2 features, 5 tanh units, 1 output; 3 to 5 times faster
    """

    network: str
    outcomes: tuple[str, ...]
    is_likelihood: bool
    sizes: tuple[int, ...]
    activations: tuple[Activation, ...]
    groups: int

    def __str__(self) -> str:
        what = "network" if self.groups == 1 else f"{self.groups:,} networks"
        what += " and the likelihood" if self.is_likelihood else f" {self.network}"
        names = [name if isinstance(name, str) else name[0] for name in self.activations]
        units = [_count(n, f"{name} unit") for n, name in zip(self.sizes[1:-1], names, strict=True)]
        shape = [_count(self.sizes[0], "feature"), *units, _count(self.sizes[-1], "output")]
        gain = GAINS[all(map(is_cheap, self.activations))][not self.is_likelihood]
        return f"{join(self.outcomes)}: {what}, of {', '.join(shape)}; {gain} times faster"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + "s" * (n != 1)


class Fusion(list[Fused]):
    """The networks that `fuse` exchanged, and as `typed` the outcomes and potentials without one; prints as lines."""

    typed: tuple[str, ...] = ()

    def __repr__(self) -> str:
        lines = [line + f", {n} such" * (n > 1) for line, n in Counter(map(str, self)).items()]
        return "\n".join([*lines, *[f"as typed: {join(self.typed)}"] * bool(self.typed)])


class FusedModel(pm.Model):
    """A model in which networks are fused; made by `fuse` alone."""

    fusion: Fusion

    @property
    def potentials(self) -> list[Variable]:
        """Those of the model, among them fused likelihoods; PyMC's predictive sampling is told where to turn."""
        found = vars(self)["potentials"]
        asks = sys._getframe(1).f_code.co_name
        fused = [one.network for one in self.fusion if one.is_likelihood]
        if fused and asks in ("sample_prior_predictive", "sample_posterior_predictive"):
            warnings.warn(
                f"fuse made a potential of {join(fused)}, which cannot be drawn; wanted: the model before fuse, "
                f"pm.{asks}(..., model=model)",
                UserWarning,
                stacklevel=3,
            )
        return found

    def add_named_variable(self, var: Variable, dims: Any = None) -> None:
        """As `pm.Model`, for what is computed from variables of this model only; Refused otherwise."""
        own = set(self.named_vars.values())
        origin: Any = getattr(self, "_origin", self)
        typed = {v: name for name, v in origin.named_vars.items() if v not in own}
        for v in walk([var], lambda v: v.owner.inputs if v.owner and v not in own else None):
            name = typed.get(v, v.name if v is not var else None)  # pm.Potential renames what it is given
            if name in self.named_vars and v not in own and not isinstance(v, Constant):
                what, v.name = var.name, name
                self._forget(var)
                raise Refused(
                    f"{what} is computed from {name} of another model; wanted: that of the fused one, "
                    f'fast["{name}"] where fast = fuse(model)'
                )
        super().add_named_variable(var, dims)

    def _forget(self, var: Variable) -> None:
        """Take off the lists what PyMC has put there before it named it."""
        for variables in (self.free_RVs, self.deterministics, vars(self)["potentials"]):
            with suppress(ValueError):
                variables.remove(var)
        self.values_to_rvs.pop(self.rvs_to_values.pop(var, None), None)
        self.rvs_to_transforms.pop(var, None)
