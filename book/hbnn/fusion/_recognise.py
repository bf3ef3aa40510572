"""Which activation is it? Typed by name or from its parts, it is known by its values."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pytensor.compile.rewriting import inline_ofg_node
from pytensor.graph.basic import Apply, Constant, Variable, equal_computations
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.special import LogAddExp
from scipy.special import erfc

from hbnn._types import Floats
from hbnn.fusion._activations import Activation

NODES = 25  # an activation has fewer
_OPENED: WeakKeyDictionary[Variable, Variable] = WeakKeyDictionary()
_POINTS = np.r_[0.0, 1e-4, np.linspace(0.1, 8, 20), 12.3, 30, 1e3, 1e8, 1e30]
_GRID = np.r_[_POINTS, -_POINTS[1:]]
_AT, _BELOW, _FAR = (int(np.argmin(np.abs(_GRID - x))) for x in (_POINTS[10], -_POINTS[10], -1e3))
_FIXED: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "softplus": lambda z: np.logaddexp(0, z),
    "gelu": lambda z: z * erfc(-z / np.sqrt(2)) / 2,
    "gelu_tanh": lambda z: z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * z**3))) / 2,
    "silu": lambda z: z / (1 + np.exp(-z)),
    "sin": np.sin,
}
_WITH_PARAMETER: dict[str, Callable[[Floats, float], Floats]] = {
    "leaky_relu": lambda z, slope: np.where(z > 0, z, slope * z),
    "elu": lambda z, alpha: np.where(z > 0, z, alpha * np.expm1(np.minimum(z, 0))),
}


def read_activation(var: Variable) -> tuple[Activation, Variable, float] | None:
    """The activation that `var` is a multiple of, what it is applied to, and the number that it is multiplied by."""
    for ends, nodes in _list_cuts(var):
        found = _recognise(_evaluate(var, ends, nodes), var.dtype)
        if found:
            return found[0], ends[0], found[1]
    return None


def _list_cuts(var: Variable) -> Iterator[tuple[list[Variable], list[Variable]]]:
    """Expressions, all the same, of which alone `var` is an elementwise function, from the nearest on; and what is
    between.
    """
    order, stack = [], [(var, False)]
    seen: set[Variable] = set()
    while stack:  # depth first: what is made comes before what it is made of in the end
        v, is_done = stack.pop()
        if is_done:
            order.append(v)
        elif v not in seen and len(seen) <= NODES:
            seen.add(v)
            stack.append((v, True))
            stack += [(source, False) for source in _list_elementwise_inputs(v, var) or ()]
    ends, nodes = {var}, list[Variable]()
    for v in reversed(order):
        sources = _list_elementwise_inputs(v, var)
        if sources is None:
            continue
        nodes.insert(0, v)
        ends.discard(v)
        ends.update(sources)
        if len(ends) == 1:
            yield list(ends), list(nodes)
    first, *others = ends  # h @ w may be typed several times
    if others and all(equal_computations([first], [other]) for other in others):
        yield [first, *others], nodes


def _find_node(var: Variable) -> Any:
    """What makes an expression, a function of functions opened."""
    if var.owner and isinstance(var.owner.op, LogAddExp):
        if var not in _OPENED:
            _OPENED[var] = inline_ofg_node(var.owner)[0]
        return _OPENED[var].owner
    return var.owner


def _list_elementwise_inputs(var: Variable, top: Variable) -> list[Variable] | None:
    """What is elementwise below, constants left out; None where that is not all."""
    node = _find_node(var)
    if node is None or not isinstance(node.op, Elemwise):
        return None
    sources = [source for source in node.inputs if get_number(source) is None]
    is_plain = all(source.type.broadcastable == top.type.broadcastable for source in sources)
    return sources if sources and is_plain else None


def get_number(var: Variable) -> Any:
    """The number that an expression has everywhere, whatever the data; None where it has none."""
    if isinstance(var, Constant):
        data = np.asarray(var.data)
        return data.flat[0] if data.size and data.dtype.kind in "fiub" and (data == data.flat[0]).all() else None
    if var.owner is None:
        return None
    op, inputs = var.owner.op, var.owner.inputs
    if isinstance(op, DimShuffle | Alloc):
        return get_number(inputs[0])
    if isinstance(op, Elemwise):
        numbers = []
        for source in inputs:
            numbers.append(get_number(source))
            if numbers[-1] is None:
                return None
        return _apply_elementwise(var.owner, numbers)
    return None


def _apply_elementwise(node: Apply, numbers: Sequence[Any]) -> Any:
    """What an elementwise Op makes of numbers; whole ones are as exact as its result."""
    dtype = node.outputs[0].type.numpy_dtype
    if dtype.kind == "f":
        numbers = [dtype.type(x) if np.asarray(x).dtype.kind in "iub" else x for x in numbers]
    return node.op.scalar_op.impl(*numbers)


def _evaluate(var: Variable, ends: Sequence[Variable], nodes: Sequence[Variable]) -> Floats:
    """The values of `var` where those of `ends` are the grid's."""
    values = []
    with np.errstate(all="ignore"):
        for x in _GRID:
            known = dict.fromkeys(ends, x)
            try:
                for v in nodes:
                    node = _find_node(v)
                    inputs = [known[s] if s in known else get_number(s) for s in node.inputs]
                    known[v] = _apply_elementwise(node, inputs)
                values.append(float(known[var]))
            except (ArithmeticError, ValueError, NotImplementedError):
                values.append(np.nan)
    return np.array(values)


def _recognise(values: Floats, dtype: str) -> tuple[Activation, float] | None:
    """The activation that has these values on the grid, and the scale that they are times it."""
    rtol, atol = (1e-9, 1e-13) if dtype == "float64" else (1e-5, 1e-6)
    finite = np.isfinite(values)
    if not finite[np.abs(_GRID) < 10].all():
        return None
    with np.errstate(all="ignore"):
        candidates: dict[Activation, Floats] = {name: function(_GRID) for name, function in _FIXED.items()}
        for name, ratio in (
            ("leaky_relu", -values[_BELOW] / values[_AT]),
            ("elu", -values[_FAR] * _GRID[_AT] / values[_AT]),
        ):
            if np.isfinite(ratio) and ratio > 0 and (ratio < 1 or name == "elu"):
                ratio = float(f"{ratio:.15g}")
                candidates[name, ratio] = _WITH_PARAMETER[name](_GRID, ratio)
        for kind, wanted in candidates.items():
            scale = values[_AT] / wanted[_AT]
            off = np.abs(values - scale * wanted) > rtol * np.abs(scale * wanted) + atol * np.abs(scale)
            if np.isfinite(scale) and scale != 0 and not (off & finite).any():
                kind = ("elu", 1.0) if kind == "elu" else kind
                return kind, 1.0 if abs(scale - 1) < 10 * rtol else float(scale)
    return None
