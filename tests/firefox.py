"""A Firefox for the tests: its own remote protocol, WebDriver BiDi, in a few lines.

Playwright has a Firefox of its own, which Debian does not, and its bridge to others asks Firefox ESR for a command that
it does not know yet. What a test needs is little: a tab, a page in it, a function that runs there, and a log.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Log
from websocket import create_connection

NAMES = ("firefox-esr", "firefox")
PREFERENCES = {  # it asks nobody for anything but the page
    "app.update.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.region.network.url": "",
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
}


def find_firefox():
    """The path of a Firefox: ``$FIREFOX``, else the first of the usual names; None where there is none."""
    return os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """A tab: `goto` and `evaluate` as Playwright's pages have them, for a function of one text that returns one."""

    def __init__(self, socket):
        self.log = Log()
        self._socket, self._numbers = socket, itertools.count(1)
        self._ask("session.new", capabilities={})
        self._ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self._context = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def goto(self, url):
        """Open a page and wait until it is loaded."""
        self._ask("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def evaluate(self, function, text):
        """What a function, as text, makes of a text; a RuntimeError where it fails."""
        answer = self._ask(
            "script.callFunction", functionDeclaration=function, arguments=[{"type": "string", "value": text}],
            awaitPromise=True, target={"context": self._context},
        )  # fmt: skip
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def _ask(self, method, **params):
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer["type"] == "event":
                self._note(answer["method"], answer["params"])
            elif answer["id"] == number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]

    def _note(self, event, params):
        if event == "network.beforeRequestSent":
            self.log.requests.append(params["request"]["url"])
        elif params["level"] in ("warn", "error"):
            self.log.complaints.append(f"{params['level']}: {params['text']}")


@contextmanager
def launch_firefox():
    """Start a headless Firefox and yield a Tab of it; without one, skip by name."""
    path = find_firefox()
    if path is None:
        pytest.skip("no Firefox found: set FIREFOX, or run `make browser`")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        Path(profile, "user.js").write_text("\n".join(lines))
        command = [path, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as firefox:
            try:
                yield Tab(create_connection(f"{_find_address(firefox)}/session", suppress_origin=True, timeout=120))
            finally:
                firefox.terminate()


def _find_address(firefox):
    """Where it listens, which it says on stderr."""
    for line in firefox.stderr:
        if match := re.search(r"WebDriver BiDi listening on (ws://\S+)", line):
            threading.Thread(target=firefox.stderr.read, daemon=True).start()  # a full pipe would stop it
            return match[1]
    raise RuntimeError("Firefox ended before it could be asked")
