#!/usr/bin/env bash
# Makes .venv from requirements.txt. Run by the Makefile whenever the stamp is older than the lock.
#   setup.sh            (PYTHON=… to choose an interpreter, 3.12 or newer)
# Safe to interrupt: the stamp is written last, and the next run starts the installation again.
set -eu
cd "$(dirname "$0")/../.."
venv=.venv
stamp=$venv/.installed

usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        usable "$PYTHON" && { echo "$PYTHON"; return; }
        echo "PYTHON=$PYTHON is not a Python of 3.12 or newer with venv and pip." >&2
        exit 1
    fi
    # A pyenv shim answers only for versions that pyenv was told about, so look behind the shims too.
    for python in "python$(cat .python-version)" python3.13 python3.12 python3.14 $(type -aP python3 python) \
        "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3.13*/bin/python "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3.1[24]*/bin/python; do
        if usable "$python"; then command -v "$python"; return; fi
    done
    if command -v uv >/dev/null 2>&1; then
        python=$(uv python find --no-project '>=3.12' 2>/dev/null || true)
        if [ -n "$python" ] && usable "$python"; then echo "$python"; return; fi
    fi
    echo "No usable Python: this book needs Python 3.12 or newer with venv and pip; install one, or name it: make PYTHON=/path/to/python3.13" >&2
    exit 1
}

python=$(find_python)
rm -f "$stamp"
# An environment that is half made, or made by another Python, is made again; a good one is kept.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1 ||
    [ "$("$venv/bin/python" -c 'import sys; print(sys.version)')" != "$("$python" -c 'import sys; print(sys.version)')" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
echo "Installing into $venv with $("$python" --version) …"
quiet="--quiet --disable-pip-version-check --no-input"
# uv installs the lock in seconds where pip takes minutes; it comes out of the lock itself, hashes and all.
awk '/^[^ #]/ { on = /^uv==/ } on' requirements.txt >"$venv/uv.txt"
sync() {
    "$venv/bin/uv" pip sync --quiet --python "$venv/bin/python" --link-mode copy --require-hashes "$@" requirements.txt
}
# Behind a proxy with certificates of its own uv needs the system's; pip has its own settings, and takes over in the end.
"$venv/bin/python" -m pip install $quiet --no-deps --require-hashes -r "$venv/uv.txt" && { sync || sync --system-certs; } ||
    "$venv/bin/python" -m pip install $quiet --require-hashes -r requirements.txt
"$venv/bin/python" book/bookkit/environment.py --install
touch "$stamp"
