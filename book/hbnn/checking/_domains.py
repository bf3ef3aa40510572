"""Parameters that PyMC's own densities refuse, at draws of the prior.

Each density of PyMC checks its parameters, and says what it wants ("alpha > 0, beta > 0"). These checks are taken from
its graph, so that there is no list of distributions here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.scalar as ps
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.logprob.utils import CheckParameterValue
from pytensor.graph.basic import Variable
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.basic import MakeVector, ScalarFromTensor
from pytensor.tensor.math import All

from hbnn.checking._findings import Finding, make_finding
from hbnn.checking._model import DRAWS, MOVES, Graph, ModelVariable, PriorRun, list_nodes, unmove
from hbnn.fusion._read import describe, is_made_by

FEW = 0.01  # of the elements at draws of the prior; so few are a tail that data will cut off
OFTEN = 0.5  # of the draws in which shares do not add up to 1; sticks that are broken off early are short now and then
ROUNDING = 1e-6
UNREADABLE = (NotImplementedError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError)


@dataclass(frozen=True)
class _Check:
    name: str  # of a parameter, as PyMC has it
    wanted: str  # in PyMC's words
    margin: Variable  # below 0 where it fails
    low: Variable | None  # what must not be less than the bound
    is_of_zero: bool = False
    is_sum: bool = False


def find_domain(graph: Graph, run: PriorRun, outcome: ModelVariable) -> Finding | None:
    """Limit: PyMC's own, for draws of the prior; rounding and one element in a hundred are let pass."""
    checks = _list_checks(outcome, run.inputs)
    if not checks:
        return None
    factors = [list(_list_factors(check.low)) if check.low is not None else [] for check in checks]
    flat = [var for check, some in zip(checks, factors, strict=True) for var in (check.margin, *some)]
    values = iter(_stack(graph, run, flat))
    found = None
    for check, some in zip(checks, factors, strict=True):
        margin, *parts = (next(values) for _ in range(1 + len(some)))
        negative = [var for var, part in zip(some, parts, strict=True) if np.any(part < -ROUNDING)]
        found = found or _judge(outcome, check, margin, next(iter(negative), check.low))
    return found


def find_prior_domains(graph: Graph, seed: int) -> Iterator[Finding]:
    """The same for variables of the prior, where it cannot be drawn."""
    copies = {rv: rv.type(rv.name) for rv in graph.free}
    originals = {copy: rv for rv, copy in copies.items()}
    for variable in graph.free.values():
        for check in _list_checks(variable, copies):
            function = graph.compile(clone_replace([check.margin], originals, rebuild_strict=False))
            try:
                margin = np.stack([function(seed=[seed, k])[0] for k in range(DRAWS)])
            except UNREADABLE:  # what it depends on cannot be drawn either, and has been named
                continue
            if finding := _judge(variable, check, margin, check.low):
                yield finding
                break


def _stack(graph: Graph, run: PriorRun, outputs: list[Variable]) -> list[NDArray]:
    function = graph.compile(outputs, {v: v for v in run.inputs.values()})
    return [np.stack(found) for found in zip(*(function(*values) for values in run.prior), strict=True)]


def _judge(variable: ModelVariable, check: _Check, margin: NDArray, low: Variable | None) -> Finding | None:
    share = np.mean(margin < -ROUNDING)
    if share <= (OFTEN if check.is_sum else FEW):
        return None
    whose = f"{check.name} of {variable.name}"
    if low is not None and describe(unmove(low)) != check.name:
        whose += f", {describe(unmove(low))},"
    fails = "is below 0" if check.is_of_zero else f"is not {check.wanted!r}"
    return make_finding(
        "below zero" if check.is_of_zero else "out of domain",
        f"{whose} {fails} in {share:.0%} of draws of the prior; PyMC wants {check.wanted}",
    )


def _list_checks(variable: ModelVariable, copies: dict[Variable, Variable]) -> list[_Check]:
    """The checks of a variable's parameters that depend on an unknown."""
    if variable.inner.owner is None:
        return []
    others = {rv: copy for rv, copy in copies.items() if rv is not variable.rv}
    (rv,) = clone_replace([variable.inner], others, rebuild_strict=False)
    value = rv.type()
    try:
        nodes = list_nodes([pm.logp(rv, value, warn_rvs=False)])
    except UNREADABLE:  # a distribution without a density, or without one that PyMC can derive
        return []
    checks: list[_Check] = []
    for node in nodes:
        # whether a covariance is one is a matter of rounding, and takes its Cholesky factor
        if isinstance(node.op, CheckParameterValue) and "posdef" not in node.op.msg:
            conditions = [var for condition in node.inputs[1:] for var in _split(condition)]
            said = list(_split_message(node.op.msg))
            said = said if len(said) == len(conditions) else [("a parameter", node.op.msg)] * len(conditions)
            for condition, (name, wanted) in zip(conditions, said, strict=True):
                above = set(ancestors([condition]))
                if value not in above and above & set(copies.values()):
                    checks += _read_condition(condition, name, wanted)
    return checks


def _split(condition: Variable) -> Iterator[Variable]:
    """The conditions that must all be true."""
    op = condition.owner.op if condition.owner else None
    if isinstance(op, All | MakeVector | ScalarFromTensor | MOVES) or is_made_by(condition, ps.AND):
        for source in condition.owner.inputs:
            yield from _split(source)
    elif op:
        yield condition


def _split_message(message: str) -> Iterator[tuple[str, str]]:
    """The parameter, and what is wanted of it, for each comparison of "0 <= p <= 1, n > 0"."""
    for part in map(str.strip, message.split(",")):
        names = re.findall(r"[A-Za-z_]\w*", part)
        for _ in re.findall(r"[<>=]=?", part):
            yield names[0] if names else "a parameter", part


def _read_condition(condition: Variable, name: str, wanted: str) -> Iterator[_Check]:
    is_less = is_made_by(condition, ps.LT | ps.LE)
    if is_less or is_made_by(condition, ps.GT | ps.GE):
        low, high = condition.owner.inputs if is_less else condition.owner.inputs[::-1]  # low <= high is wanted
        bound = unmove(low)
        is_of_zero = bound.owner is None and hasattr(bound, "data") and bool(np.all(bound.data == 0))
        yield _Check(name, wanted, high - low, high if is_of_zero else None, is_of_zero)
    elif is_made_by(condition, ps.OR):  # as np.isclose is typed
        yield _Check(name, wanted, pt.cast(condition, "int8") - 1, None, is_sum=True)


def _list_factors(var: Variable) -> Iterator[Variable]:
    """What a product is made of; the first below 0 is to blame, not what PyMC has computed from it."""
    var = unmove(var)
    if is_made_by(var, ps.Mul | ps.TrueDiv | ps.Reciprocal | ps.Sign):
        for source in var.owner.inputs:
            yield from _list_factors(source)
    else:
        yield var
