#!/usr/bin/env bash
# Makes .venv from requirements.txt: `make` runs it where .venv/.installed is missing or older. PYTHON=… chooses an interpreter.
# Safe to interrupt: that stamp is written last, and the next run starts the installation again.
set -eu
cd "$(dirname "$0")/../.."
venv=.venv
wanted="Python 3.12 or newer with venv and pip"
usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

if [ -n "${PYTHON:-}" ]; then
    python=$PYTHON
    usable "$python" || { echo "PYTHON=$PYTHON is not a $wanted." >&2; exit 1; }
else
    # pyenv's shims answer only for versions that it was told about, and uv's Pythons need not be on the PATH
    for python in "python$(cat .python-version)" python3.1{3,2,4} $(type -aP python3 python) \
        "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/3.1[234]*/bin/python "${HOME:-}"/.local/share/uv/python/cpython-3.1[234]*/bin/python none
    do
        if usable "$python"; then break; fi
    done
    [ "$python" != none ] || { echo "This book needs $wanted; install one, or name it: make PYTHON=/path/to/python3.13" >&2; exit 1; }
fi

rm -f "$venv/.installed"
# An environment that is half made, or made by another Python, is made again; a good one is kept.
version=$("$python" -c 'import sys; print(sys.version)')
if [ "$("$venv/bin/python" -c 'import pip, sys; print(sys.version)' 2>/dev/null)" != "$version" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
echo "Installing into $venv with Python ${version%% *} …"
pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes"
sync="$venv/bin/uv pip sync --quiet --python $venv/bin/python --link-mode copy --require-hashes requirements.txt"
# uv installs the lock in seconds where pip takes minutes; it comes out of the lock itself, hashes and all. Behind a proxy with
# certificates of its own uv needs the system's; pip has its own settings (of a mirror, say), and takes over in the end.
awk '/^[^ #]/ { on = /^uv==/ } on' requirements.txt >"$venv/uv.txt"
$pip --no-deps -r "$venv/uv.txt" && { $sync || $sync --system-certs; } || $pip -r requirements.txt
"$venv/bin/python" book/bookkit/environment.py --install
touch "$venv/.installed"
