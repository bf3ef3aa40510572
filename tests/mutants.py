"""Wrong answers made from a right one: one small change to its syntax tree each, as a tired student would make it.

`list_mutants` works on any function. Packages for mutation testing (mutmut, cosmic-ray, mutatest) change files and run
a test suite for each change; an answer is a cell of a notebook, and a hundred of them share one fit.
"""

import ast
import copy

OPERATORS = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.FloorDiv: [ast.Div],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.And: [ast.Or],
    ast.Or: [ast.And],
}
NAMES = {
    "mean": ["sum"],
    "sum": ["mean", "prod"],
    "prod": ["sum"],
    "std": ["var"],
    "var": ["std"],
    "log": ["log2", "log10", "log1p"],
    "log2": ["log", "log10"],
    "exp": ["expm1"],
    "tanh": ["arctan", "sin"],
    "sqrt": ["square", "cbrt"],
    "min": ["max"],
    "max": ["min"],
    "minimum": ["maximum"],
    "maximum": ["minimum"],
    "argmax": ["argmin"],
    "argsort": ["sort"],
    "sort": ["argsort"],
    "ceil": ["floor"],
    "floor": ["ceil"],
    "hypot": ["add"],
    "cov": ["corrcoef"],
    "abs": ["negative"],
    "inv": ["pinv", "cholesky"],
    "concatenate": ["stack"],
    "logaddexp": ["logaddexp2", "maximum"],
    "normal": ["standard_cauchy", "uniform"],
    "outer": ["kron"],
    "rhat": ["rhat_split"],
}
WHOLE = {  # what becomes of a result, or of one of several
    "a tenth too large": "1.1 * {}",
    "with the wrong sign": "-np.asarray({})",
    "in percent": "100 * np.asarray({})",
    "in reverse order": "np.flip({}, 0)",
    "shifted by one place": "np.roll({}, 1, axis=0)",
    "one for all": "np.broadcast_to(np.mean({0}, axis=0), np.shape({0}))",
}


def list_mutants(source):
    """Every change of one place in the functions of `source`, each once.

    Parameters
    ----------
    source : str, of Python; changed are bodies of functions, without their docstrings

    Returns
    -------
    dict of str to str: what was changed (line by line the old text, an arrow, the new one), and the changed source
    """
    tree = ast.parse(source)
    found, seen = {}, {ast.unparse(tree)}
    for place, node in enumerate(ast.walk(tree)):
        for k, new in enumerate(_change(node, tree)):
            text = ast.unparse(ast.fix_missing_locations(_Replace(place, k).make(tree)))
            if text not in seen:
                seen.add(text)
                title = getattr(new, "title", None) or f"{_shorten(ast.unparse(node))} → {_shorten(ast.unparse(new))}"
                same = sum(other.split(" #")[0] == title for other in found)
                found[title if not same else f"{title} #{same + 1}"] = text
    return found


def _shorten(text):
    text = " ".join(text.split())
    return text if len(text) <= 70 else f"{text[:50]} … {text[-15:]}"


class _Replace(ast.NodeTransformer):
    """Puts the change number `k` of the node at `place` of `ast.walk` into a copy of a tree."""

    def __init__(self, place, k):
        self.place, self.k = place, k

    def make(self, tree):
        tree = copy.deepcopy(tree)
        self.target = list(ast.walk(tree))[self.place]
        self.new = _change(self.target, tree)[self.k]
        return self.visit(tree)

    def visit(self, node):
        return self.new if node is self.target else self.generic_visit(node)


def _change(node, tree):
    """What may stand in place of a node: list of nodes."""
    parameters = _list_parameters(tree)
    make = globals().get(f"_change_{type(node).__name__.lower()}")
    return [] if make is None else make(node, parameters)


def _list_parameters(tree):
    return [a.arg for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for a in f.args.args + f.args.kwonlyargs]


def _with(node, **changes):
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def _change_binop(node, _):
    swapped = [_with(node, op=new()) for new in OPERATORS.get(type(node.op), [])]
    return [*swapped, node.left, node.right]


def _change_compare(node, _):
    if len(node.ops) > 1:
        return []
    return [_with(node, ops=[new()]) for new in OPERATORS.get(type(node.ops[0]), [])]


def _change_boolop(node, _):
    return [_with(node, op=new()) for new in OPERATORS[type(node.op)]] + node.values


def _change_unaryop(node, _):
    return [node.operand]


def _change_constant(node, _):
    value = node.value
    if isinstance(value, bool):
        return [ast.Constant(not value)]
    if isinstance(value, int):
        return [ast.Constant(value + 1), ast.Constant(value - 1)]
    if isinstance(value, float) and 0 < abs(value) < 1e9:
        return [ast.Constant(2 * value), ast.Constant(value / 2)]
    return []


def _change_call(node, _):
    found = []
    if len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
        found.append(node.args[0])  # f(x) becomes x
    if not node.args and isinstance(node.func, ast.Attribute):
        found.append(node.func.value)  # x.f() becomes x
    if len(node.args) >= 2:
        found.append(_with(node, args=[node.args[1], node.args[0], *node.args[2:]]))
    for keyword in node.keywords:
        found.append(_with(node, keywords=[k for k in node.keywords if k is not keyword]))
    return found


def _change_attribute(node, _):
    if node.attr == "T":
        return [node.value]
    return [_with(node, attr=new) for new in NAMES.get(node.attr, [])]


def _change_name(node, parameters):
    if not isinstance(node.ctx, ast.Load):
        return []
    if node.id == "seed":
        return [ast.Constant(0)]
    if node.id in NAMES:
        return [ast.Name(new, ast.Load()) for new in NAMES[node.id]]
    if node.id in parameters:
        k = parameters.index(node.id)
        others = [parameters[k - 1], parameters[(k + 1) % len(parameters)]]
        return [ast.Name(other, ast.Load()) for other in dict.fromkeys(others) if other != node.id]
    return []


def _change_subscript(node, _):
    if not isinstance(node.ctx, ast.Load):
        return []
    found = [node.value]
    if isinstance(node.slice, ast.Slice):
        bounds = [name for name in ("lower", "upper") if getattr(node.slice, name) is not None]
        found += [_with(node, slice=_with(node.slice, **{name: None})) for name in bounds]
    return found


def _change_ifexp(node, _):
    return [node.body, node.orelse]


def _change_augassign(node, _):
    return [ast.Pass()]


def _change_if(node, _):
    return [_with(node, test=ast.Constant(value)) for value in (True, False)]


def _change_return(node, _):
    if node.value is None:
        return []
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    found = [_with(node, value=_with(node.value, elts=parts[::-1]))] if len(parts) == 2 else []
    for k, part in enumerate(parts):
        for what, text in WHOLE.items():
            new = ast.parse(text.format(ast.unparse(part)), mode="eval").body
            others = [*parts[:k], new, *parts[k + 1 :]]
            found.append(_with(node, value=_with(node.value, elts=others) if len(parts) > 1 else new))
            found[-1].title = f"result {k + 1} of {len(parts)} {what}" if len(parts) > 1 else f"the result {what}"
    return found
