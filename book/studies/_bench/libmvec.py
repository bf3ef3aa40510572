"""Numba with the vector functions of glibc's libmvec: what stock PyMC could be with them.

Numba calls tanh, exp and log number by number, because LLVM knows no vector version of them. Inside `with
vectorised():` every piece of code that Numba compiles is told of them: before its text is parsed, its declarations of
these functions get LLVM's attribute "vector-function-abi-variant", which names libmvec's function for four doubles.
The loops are then vectorised as they stand; results differ in the last digits (libmvec promises 4 units in the last
place). This is an experiment of the bench, not of the book: it replaces a function inside Numba.
"""

import ctypes
import platform
import re
from contextlib import contextmanager

import llvmlite.binding as llvm
from numba.core import cgutils
from pytensor.link.numba import cache

LIBRARY, PREFIX = "libmvec.so.1", "_ZGVdN4v_"  # the x86-64 vector ABI: AVX2, four doubles, no mask
# the name in Numba's text, and the C function; an intrinsic cannot bear the attribute
FUNCTIONS = {"tanh": "tanh", "log1p": "log1p", "expm1": "expm1", "llvm.exp.f64": "exp", "llvm.log.f64": "log"}
DECLARED = re.compile(r'^declare double @"?([\w.]+)"?\(double[^)\n]*\).*$', re.MULTILINE)


def find_reason():
    """Why libmvec cannot be used here (str), or None where it can."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return "no libmvec of this kind on this processor"
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return f"no {LIBRARY} on this machine"
    missing = [name for name in FUNCTIONS.values() if not hasattr(library, PREFIX + name)]
    return f"no {missing[0]} in this machine's {LIBRARY}" if missing else None


@contextmanager
def vectorised():
    """Compile with vector functions what is compiled inside; PyTensor keeps the code in a folder of its own."""
    if reason := find_reason():
        raise RuntimeError(reason)
    llvm.load_library_permanently(LIBRARY)
    normalize, folder = cgutils.normalize_ir_text, cache.NUMBA_CACHE_PATH
    cgutils.normalize_ir_text = lambda text: normalize(mark(text))
    cache.NUMBA_CACHE_PATH = folder.with_name("numba_libmvec")
    cache.NUMBA_CACHE_PATH.mkdir(exist_ok=True)
    try:
        yield
    finally:
        cgutils.normalize_ir_text, cache.NUMBA_CACHE_PATH = normalize, folder


def mark(text):
    """LLVM's text with its declarations of `FUNCTIONS` marked; the same text where it declares none of them."""
    found = {name: FUNCTIONS[name] for name in DECLARED.findall(text) if name in FUNCTIONS}
    for name, function in found.items():
        text = re.sub(rf'^declare double @"?{re.escape(name)}"?\(.*\n', "", text, flags=re.MULTILINE)
        text = re.sub(rf'@"?{re.escape(name)}"?\(', f'@"{function}"(', text)
        vector = PREFIX + function
        text += f'\ndeclare double @"{function}"(double) nounwind willreturn memory(none) '
        text += f'"vector-function-abi-variant"="{vector}({vector})"'
        text += f"\ndeclare <4 x double> @{vector}(<4 x double>)"
    if found:  # or LLVM drops what nobody calls yet
        used = ", ".join(f"ptr @{PREFIX}{function}" for function in found.values())
        text += f'\n@llvm.compiler.used = appending global [{len(found)} x ptr] [{used}], section "llvm.metadata"\n'
    return text
