"""The settings under which every number of this book is computed, in one place.

Chapters, tests, studies, Binder and a plain ``jupyter lab`` all get them, because the set-up
(``make``, and Binder's ``postBuild``) runs ``python book/bnn/environment.py --install``. That puts a
``.pth`` file into the environment, and Python reads it before anything else: ``bnn`` can be imported
from everywhere, and the variables below are set before NumPy or PyTensor load. A variable that you
set yourself wins.
"""

import os
import platform
import sys
import sysconfig
from pathlib import Path

SETTINGS = {
    # one thread everywhere: sums in a fixed order, and a Binder pod has one CPU
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    # JAX looks for accelerators otherwise; nothing in this book needs one
    "JAX_PLATFORMS": "cpu",
}
if platform.machine() in ("x86_64", "AMD64"):
    # The same matrix kernels on every x86 processor since 2011. Not Haswell: OpenBLAS 0.3.34,
    # which NumPy 2.5 carries, crashes in its Haswell and Zen kernels on AMD processors with AVX-512 (OpenBLAS #6013).
    SETTINGS["OPENBLAS_CORETYPE"] = "Sandybridge"

# Fast-math lets the compiler reorder sums, and a cold compile cache then gives other draws than a warm one.
PYTENSOR_FLAG = "numba__fastmath=False"


def apply(environ=os.environ):
    """Set what is not set yet, in `environ` (a mapping of str to str). Returns nothing."""
    for name, value in SETTINGS.items():
        environ.setdefault(name, value)
    flags = environ.get("PYTENSOR_FLAGS", "")
    if "numba__fastmath" not in flags:
        environ["PYTENSOR_FLAGS"] = ",".join(filter(None, [flags, PYTENSOR_FLAG]))


def install(site_packages=None):
    """Write the ``.pth`` file into `site_packages` (default: this interpreter's). Returns its path."""
    folder = Path(site_packages or sysconfig.get_path("purelib"))
    book = Path(__file__).resolve().parents[1]
    path = folder / "bnn_book.pth"
    # a moved or deleted book must not make every start of Python print a traceback
    file = str(book / "bnn" / "environment.py")
    path.write_text(f"{book}\nimport os; os.path.exists({file!r}) and __import__('bnn.environment')\n")
    return path


if __name__ == "__main__":
    if sys.argv[1:] != ["--install"]:
        sys.exit("usage: python book/bnn/environment.py --install")
    print(f"Settings installed: {install()}")
else:
    apply()
