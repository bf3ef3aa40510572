"""What a piece of this book's Python depends on, as one digest: which tables and chapters must be computed again.

Nothing is run: imports, those inside functions too, and ``read_data("a table")`` are read from the syntax tree. What it
does not show, a module states: ``DEPENDS = ("run_cost.json", "live/nuts.js", "hbnn.priors")`` names tables, scripts of
the live pages, and modules that a program in a text imports. Comments, docstrings and layout do not count, so that
prose in a source does not ask for hours of computing; nor does what a table says of its origin.
"""

import ast
import json
import re
from functools import lru_cache
from pathlib import Path

from bookkit import environment
from bookkit.repo import BOOK, REQUIREMENTS, digest

OURS = ("hbnn", "bookkit", "teach", "studies")  # packages below the root that are followed
# of the lock, what moves numbers; `machine` tells the rest of a machine
LOCKED = (
    "arviz", "arviz-base", "arviz-stats", "blackjax", "jax", "jaxlib", "llvmlite", "numba", "numpy", "numpyro",
    "nutpie", "optax", "pandas", "pymc", "pytensor", "scikit-learn", "scipy", "xarray",
)  # fmt: skip
DRAWN_BY = ("contourpy", "matplotlib", "pillow", "seaborn")  # of the lock, what draws
ORIGIN = ("checked", "code", "commit", "machine", "python", "versions")  # of a table, or of its rows


def digest_dependencies(source, root=BOOK, *, apart=(), locked=LOCKED):
    """Digest what a piece of Python depends on.

    Parameters
    ----------
    source : Path of a module, or its text, such as the code cells of a chapter one below the other
    root : Path
        The folder of the packages `OURS` and of ``data``; the lock is beside it.
    apart : tuple of str
        What does not count, with all that it imports: modules ("bookkit.plots"), tables ("run_cost.json").
    locked : tuple of str
        Packages whose version in the lock counts.

    Returns
    -------
    str, list of Path
        SHA-256 in hexadecimal; the files that were read, the lock among them.

    Raises
    ------
    ValueError
        When a source is no Python, reads a table whose name is computed, or states that it depends on a module that is
        not there.
    """
    root = Path(root)
    if isinstance(source, Path):
        found, path = read_source(source), source.resolve()
        waiting, known = _place(path, root), {path}
    else:
        found, waiting, known = _parse(_drop_magics(source), "this code"), [], set()
    parts = [("", found.digest)]
    waiting = [(found, *(waiting or ("", False)))]
    tables, scripts = set(), set()
    while waiting:
        found, module, is_package = waiting.pop()
        tables |= {root / "data" / name for name in found.tables if name not in apart}
        scripts |= {root / "_static" / name for name in found.scripts}
        if missing := [name for name in found.modules if _find(name, root) is None]:
            raise ValueError(f"DEPENDS names {missing[0]}; wanted: tables (.json), scripts (.js) and modules of ours")
        for name in _list_imports(found.imports, module, is_package):
            path = None if name in apart else _find(name, root)
            if path and path not in known:
                known.add(path)
                below = read_source(path)
                parts.append((name, below.digest))
                waiting.append((below, name, path.name == "__init__.py"))
    tables = sorted(path for path in tables if path.exists())  # one that a study is still to write counts for nothing
    parts = [*sorted(parts), *((path.name, _digest_table(path.read_bytes())) for path in tables)]
    parts += [(path.name, digest(path.read_bytes())) for path in sorted(scripts)]
    lock = root.parent / "requirements.txt"
    parts += sorted(set(read_versions(lock.read_text() if lock.exists() else "", locked)))
    return digest(parts), [*sorted(known), *tables, *sorted(scripts), *([lock] if lock.exists() else [])]


@lru_cache
def machine():
    """Describe what decides the last bits of a result: the settings that libraries say are in force, and of the lock
    the packages that compute and draw (dict). Where two machines agree, they may be expected to compute the same bytes.
    """
    lock = REQUIREMENTS.read_text(encoding="utf-8") if REQUIREMENTS.exists() else ""
    versions = sorted(set(read_versions(lock, (*LOCKED, *DRAWN_BY))))
    return environment.read_back() | {"requirements": digest(versions)[:16]}


def read_versions(lock, packages=LOCKED):
    """Package and version (list of tuples) of the named packages in the text of a lock."""
    found = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", lock, flags=re.MULTILINE)
    return [(name, version) for name, version in found if name in packages]


class _Source:
    """What a source says: the digest of its code, its imports (module, names, level), and what else it depends on."""

    def __init__(self, tree, name):
        self.imports, self.tables, self.scripts, self.modules = [], [], [], []
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                self.imports += [(alias.name, (), 0) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                self.imports.append((node.module or "", tuple(alias.name for alias in node.names), node.level))
            elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") in OURS:
                self.imports.append((node.value.id, (node.attr,), 0))  # `hbnn.fuse` after `import hbnn`
            elif isinstance(node, ast.Call) and _get_name(node.func) == "read_data":
                if not (node.args and isinstance(node.args[0], ast.Constant)):
                    raise ValueError(
                        f"{name}, line {node.lineno}: read_data of a computed name; wanted: its name as text"
                    )
                self.tables.append(f"{node.args[0].value}.json")
        for node in filter(_is_depends, tree.body):
            stated = ast.literal_eval(node.value)
            self.tables += [entry for entry in stated if entry.endswith(".json")]
            self.scripts += [entry for entry in stated if entry.endswith(".js")]
            self.modules += [entry for entry in stated if not entry.endswith((".json", ".js"))]
        self.imports += [(entry, (), 0) for entry in self.modules]
        tree.body = [node for node in tree.body if not _is_depends(node)]  # what it names counts, not how
        self.digest = digest(_write(tree))


def _is_depends(node):
    return isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["DEPENDS"]


def _parse(text, name):
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(f"{name}, line {error.lineno}: {error.msg}; wanted: Python") from None
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list):
            node.body = [part for part in node.body if not _is_text(part)]
    return _Source(tree, name)


def _is_text(node):
    """Whether a statement is a docstring, or another text that does nothing."""
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def read_source(path):
    return _parse_file(path, path.read_text(encoding="utf-8"))


@lru_cache(maxsize=1024)
def _parse_file(path, text):
    return _parse(text, path.name)


def _write(node):
    """A syntax tree as text, the same on every Python: `ast.dump` changed with 3.13."""
    if isinstance(node, ast.AST):
        fields = ((name, getattr(node, name, None)) for name in node._fields if name not in ("kind", "type_comment"))
        inner = ",".join(f"{name}={_write(value)}" for name, value in fields if value is not None and value != [])
        constant = isinstance(node, ast.Constant) and node.value is None
        return f"{type(node).__name__}({'None' if constant else inner})"
    if isinstance(node, list):
        return f"[{','.join(map(_write, node))}]"
    return repr(node)


def _get_name(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def _drop_magics(text):
    """Code cells as plain Python: lines for IPython (% and !) count for nothing."""
    return re.sub(r"^[ \t]*[%!].*$", "", text, flags=re.MULTILINE)


def _place(path, root):
    """The module name of a path below the root, and whether it is a package; () elsewhere."""
    if not path.is_relative_to(root.resolve()):
        return ()
    parts = path.relative_to(root.resolve()).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def _list_imports(imports, module, is_package):
    """Names of all modules that may be meant, packages before what is in them."""
    for base, names, level in imports:
        if level:
            above = module.split(".") if module else []
            above = above[: len(above) - level + is_package]
            base = ".".join([*above, *filter(None, [base])])
        parts = base.split(".")
        if parts[0] in OURS:
            yield from (".".join(parts[: k + 1]) for k in range(len(parts)))
            yield from (f"{base}.{name}" for name in names)


def _find(module, root):
    """The file of a module below the root, or None: a name that is imported from a module need not be one.

    A package that loads its names when they are asked for says in ``__init__.pyi`` where they are.
    """
    path = root.joinpath(*module.split("."))
    for found in (path / "__init__.py", path.with_suffix(".py")):
        if found.exists():
            return found.resolve()
    stub = path.parent / "__init__.pyi"
    homes = read_source(stub).imports if stub.exists() else []
    return next((_find(home, root) for home, names, _ in homes if path.name in names), None)


@lru_cache(maxsize=64)
def _digest_table(content):
    """SHA-256 of the numbers of a table (its bytes): what it says of its origin apart."""
    table = {key: value for key, value in json.loads(content).items() if key not in (*ORIGIN, "digest")}
    if isinstance(rows := table.get("rows"), list):
        table["rows"] = [{key: value for key, value in row.items() if key not in ORIGIN} for row in rows]
    return digest(table)
