"""Wrong answers made from a right one: each changes one place of its syntax tree, as a tired student would.

Packages for mutation testing (mutmut, cosmic-ray) change files and run a test suite for each change; an answer is a
cell of a notebook, and a hundred of them share one fit.
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
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    parameters = [a.arg for f in functions for a in f.args.args + f.args.kwonlyargs]
    found, seen = {}, {ast.unparse(tree)}
    for node in ast.walk(tree):
        for title, new in _list_changes(node, parameters):
            text = ast.unparse(copy.deepcopy(tree, {id(node): new}))  # a copy that has `new` in the node's place
            if text not in seen:
                seen.add(text)
                title = title or f"{_shorten(ast.unparse(node))} → {_shorten(ast.unparse(new))}"
                same = sum(other.split(" #")[0] == title for other in found)
                found[title if not same else f"{title} #{same + 1}"] = text
    return found


def _shorten(text):
    text = " ".join(text.split())
    return text if len(text) <= 70 else f"{text[:50]} … {text[-15:]}"


def _list_changes(node, parameters):
    """What may stand in place of a node: pairs of a title, or None, and a node."""
    if isinstance(node, ast.Return):
        yield from _change_return(node)
    else:
        yield from ((None, new) for new in _replace(node, parameters))


def _replace(node, parameters):
    match node:
        case ast.BinOp(left, op, right):
            yield from (_with(node, op=new()) for new in OPERATORS.get(type(op), []))
            yield from (left, right)
        case ast.Compare(ops=[op]):
            yield from (_with(node, ops=[new()]) for new in OPERATORS.get(type(op), []))
        case ast.BoolOp(op, values):
            yield from (_with(node, op=new()) for new in OPERATORS[type(op)])
            yield from values
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Constant(float(value)) if 0 < abs(value) < 1e9:
            yield from (ast.Constant(2 * value), ast.Constant(value / 2))
        case ast.Call(func, args, keywords):
            if len(args) == 1 and not isinstance(args[0], ast.Starred):
                yield args[0]  # f(x) becomes x
            if not args and isinstance(func, ast.Attribute):
                yield func.value  # x.f() becomes x
            if len(args) >= 2:
                yield _with(node, args=[args[1], args[0], *args[2:]])
            yield from (_with(node, keywords=[k for k in keywords if k is not dropped]) for dropped in keywords)
        case ast.Attribute(value, "T"):
            yield value
        case ast.Attribute(_, name):
            yield from (_with(node, attr=new) for new in NAMES.get(name, []))
        case ast.Name("seed", ast.Load()):
            yield ast.Constant(0)
        case ast.Name(name, ast.Load()) if name in NAMES:
            yield from (ast.Name(new, ast.Load()) for new in NAMES[name])
        case ast.Name(name, ast.Load()) if name in parameters:
            k = parameters.index(name)
            others = dict.fromkeys([parameters[k - 1], parameters[(k + 1) % len(parameters)]])
            yield from (ast.Name(other, ast.Load()) for other in others if other != name)
        case ast.Subscript(value, where, ast.Load()):
            yield value
            if isinstance(where, ast.Slice):
                bounds = [name for name in ("lower", "upper") if getattr(where, name) is not None]
                yield from (_with(node, slice=_with(where, **{name: None})) for name in bounds)
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.AugAssign():
            yield ast.Pass()
        case ast.If():
            yield from (_with(node, test=ast.Constant(value)) for value in (True, False))


def _with(node, **changes):
    new = copy.copy(node)
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def _change_return(node):
    if node.value is None:
        return
    parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
    if len(parts) == 2:
        yield None, _with(node, value=_with(node.value, elts=parts[::-1]))
    for k, part in enumerate(parts):
        for what, text in WHOLE.items():
            new = ast.parse(text.format(ast.unparse(part)), mode="eval").body
            if len(parts) > 1:
                whole = _with(node.value, elts=[*parts[:k], new, *parts[k + 1 :]])
                yield f"result {k + 1} of {len(parts)} {what}", _with(node, value=whole)
            else:
                yield f"the result {what}", _with(node, value=new)
