"""The settings under which every number of this book is computed, in one place, whatever the shell says.

Chapters, tests, studies, Binder and a plain ``jupyter lab`` all get them, because the set-up (``make``)
runs ``python book/bookkit/environment.py --install``; Binder's ``postBuild`` does the same. That puts a ``.pth`` file
into the environment, and Python reads it before anything else: the book's packages can be imported from everywhere,
and the variables below are in force before NumPy or PyTensor load. **A variable from outside that could change a number
is overruled.** Code that wants other settings, such as the benchmark's, changes ``os.environ`` itself before it imports
NumPy or PyTensor.

A notebook's kernel also gets PyMC with our ways (`bookkit.kernel`) when a cell imports it; a plain ``python`` does not.

What cannot be overruled from within a process (the C library's tunables, a preloaded library) shows in `read_back`,
which asks the libraries, not the variables.
"""

import os
import platform
import sys
import sysconfig
from functools import lru_cache
from pathlib import Path

SETTINGS = {
    # one thread everywhere: sums in a fixed order, and a Binder pod has one CPU
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    # JAX looks for accelerators otherwise; nothing in this book needs one
    "JAX_PLATFORMS": "cpu",
    # figures look as the book draws them, whatever style a user has at home
    "MATPLOTLIBRC": str(Path(sysconfig.get_path("purelib"), "matplotlib", "mpl-data", "matplotlibrc")),
    "ARVIZ_DATA": os.devnull,
    "PYTENSORRC": os.devnull,
}
if platform.machine() in ("x86_64", "AMD64"):
    # The same matrix kernels on every x86 processor since 2011. Not Haswell: OpenBLAS 0.3.34,
    # which NumPy 2.5 carries, crashes in its Haswell and Zen kernels on AMD processors with AVX-512 (OpenBLAS #6013).
    SETTINGS["OPENBLAS_CORETYPE"] = "Sandybridge"
    # and the same elementary functions on processors with AVX-512 as on those without
    SETTINGS["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"
    SETTINGS["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false --xla_cpu_max_isa=AVX2"

# Fast-math lets the compiler reorder sums, and a cold compile cache then gives other draws than a warm one.
PYTENSOR_FLAG = "numba__fastmath=False"
PYTENSOR_KEPT = ("base_compiledir", "compiledir")  # where compiled code is kept changes no number

# Whatever else begins like this is removed: these libraries read it when they load.
SWEPT = (
    "OPENBLAS_", "GOTO_", "OMP_", "GOMP_", "KMP_", "MKL_", "BLIS_", "VECLIB_", "NUMEXPR_", "NUMBA_", "NPY_", "NUMPY_",
    "PYTENSOR", "JAX_", "XLA_", "TF_", "SCIPY_", "SKLEARN_", "ARVIZ_", "MPLBACKEND", "MATPLOTLIBRC",
)  # fmt: skip


def apply(environ=os.environ):
    """Put the settings in force in `environ` (a mapping of str to str): ours set, others' removed. Returns nothing."""
    flags = [flag for flag in environ.get("PYTENSOR_FLAGS", "").split(",") if flag.split("=")[0] in PYTENSOR_KEPT]
    for name in [name for name in environ if name.startswith(SWEPT)]:
        del environ[name]
    environ.update(SETTINGS, PYTENSOR_FLAGS=",".join([*flags, PYTENSOR_FLAG]))


@lru_cache
def read_back():
    """Ask the libraries what the last bits of a result depend on: the settings in force, not the variables.

    Returns
    -------
    dict of str to str
        Equal in two processes, on one machine or two, if both may be expected to compute the same bytes.
    """
    import numba
    import pytensor
    import scipy.linalg
    import threadpoolctl

    matrices, functions = _try_arithmetic(scipy.linalg)
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    names = [f"{p['internal_api']} {p['version']} {p['architecture']} x{p['num_threads']}" for p in pools]
    config = pytensor.config
    return {
        "processor": platform.machine(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "blas": ", ".join(sorted(names)),
        "matrices": matrices,
        "functions": functions,
        "numba": f"fastmath {config.numba__fastmath}, optimisation {numba.config.OPT}",
        "pytensor": f"{config.mode}, {config.floatX}, {config.optimizer}",
    }


def _try_arithmetic(linalg):
    """Digests of what NumPy, SciPy and the C library make of some numbers: (of matrices, of elementary functions)."""
    import hashlib
    import math

    import numpy as np

    def digest(arrays):
        return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]

    x = np.linspace(-20, 20, 4001)
    ufuncs = [np.exp(x), np.tanh(x), np.sin(x), np.log(abs(x) + 1e-3), np.log1p(abs(x)), abs(x) ** 1.7, np.expm1(x)]
    libm = [f(v) for v in x[::8] for f in (math.exp, math.tanh, math.sin, math.expm1, math.erf)]
    # sizes on both sides of what a library cuts into blocks; odd, so that no vector is full
    products = []
    for n in (3, 51, 301):
        A = np.sin(np.arange(n * n, dtype=float)).reshape(n, n)
        S = A @ A.T + n * np.eye(n)
        products += [S, A @ A[0], np.linalg.cholesky(S), linalg.cho_factor(S)[0], np.linalg.eigvalsh(S), S.sum(axis=0)]
    return digest(products), digest([*ufuncs, np.array(libm)])


def install():
    """Write the ``.pth`` file into this interpreter's site-packages. Returns its path."""
    book = Path(__file__).resolve().parents[1]
    file = f"{book}/bookkit/environment.py"
    path = Path(sysconfig.get_path("purelib"), "hbnn_book.pth")
    # a moved or deleted book must not make every start of Python print a traceback
    path.write_text(f"{book}\nimport os; os.path.exists({file!r}) and __import__('bookkit.environment')\n")
    return path


if __name__ == "__main__":
    if sys.argv[1:] != ["--install"]:
        sys.exit("usage: python book/bookkit/environment.py --install")
    print(f"Settings installed: {install()}")
else:
    apply()
    if any(word.endswith("kernel_launcher") for word in sys.orig_argv):  # Jupyter's, VS Code's, nbclient's, Colab's
        import wrapt

        wrapt.register_post_import_hook("bookkit.kernel:settle", "pymc")
