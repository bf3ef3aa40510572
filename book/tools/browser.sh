#!/usr/bin/env bash
# Installs a Chromium for the site tests, unless there is one: Debian's or Ubuntu's package, else Playwright's build.
set -eu
cd "$(dirname "$0")/../.."
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo"
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null 2>&1; then
        echo "Chromium: $(command -v "$name")"
        exit 0
    fi
done
if command -v apt-get >/dev/null 2>&1; then
    $sudo apt-get update -qq
    # Ubuntu's package of this name is a snap, which does not run in every container
    if $sudo apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core && chromium --version; then
        exit 0
    fi
fi
make --no-print-directory .venv/.installed
if .venv/bin/playwright install --with-deps chromium; then exit 0; fi
echo "No Chromium could be installed here; install one and put it on the PATH, or name it: CHROMIUM=/path/to/chrome make test" >&2
exit 1
