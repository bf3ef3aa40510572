"""Firefox as a distribution has it, driven by Marionette, its own protocol: Playwright drives none but its own build.

A message is JSON with its length and a colon before it; commands have the names and parameters of WebDriver.
"""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

FIREFOX_NAMES = ("firefox-esr", "firefox")
SECONDS = 240  # to start, or to answer, on a machine that has other things to do
SETTINGS = {  # it asks nobody for anything but the page
    "app.normandy.enabled": False,
    "app.update.auto": False,
    "browser.region.network.url": "",
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.update.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "ui.prefersReducedMotion": 1,
}
KEYS = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014", "ArrowDown": "\ue015", "Space": " ",
        "Backspace": "\ue003", "Delete": "\ue017", "Shift": "\ue008", "Enter": "\ue007"}  # fmt: skip


PLACES = """[...document.querySelectorAll(arguments[0])].map((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return [x, y, width, height];
})"""
SHOW = """new Promise((shown) => {
    document.querySelector(arguments[0]).scrollIntoView({ block: 'center' });
    requestAnimationFrame(() => requestAnimationFrame(() => shown()));
})"""  # and painted: what a page lays over a picture gets its size with the next frame
TEXT = "document.querySelector(arguments[0]).textContent"


class Firefox:
    """A tab of a Firefox."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._heard, self._number = b"", 0
        self._read()  # it says who it is
        self._send("NewSession", capabilities={})
        self._send("SetTimeouts", script=1000 * SECONDS)

    def _read(self):
        while b":" not in self._heard:
            self._hear()
        length, _, self._heard = self._heard.partition(b":")
        while len(self._heard) < int(length):
            self._hear()
        message, self._heard = self._heard[: int(length)], self._heard[int(length) :]
        return json.loads(message)

    def _hear(self):
        heard = self._socket.recv(1 << 16)
        if not heard:
            raise ConnectionError("Firefox has gone")
        self._heard += heard

    def _send(self, command, **parameters):
        self._number += 1
        message = json.dumps([0, self._number, f"WebDriver:{command}", parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, found = self._read()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return found

    def open(self, url):
        """Open a page, and wait until it is loaded."""
        self._send("Navigate", url=url)

    def resize(self, width, height):
        """Give the window a size."""
        self._send("SetWindowRect", width=width, height=height)

    def evaluate(self, expression, *arguments):
        """The value of an expression of JavaScript, in which `arguments[0]` is the first of the arguments.

        Of a promise, what it is kept with.
        """
        return self._send("ExecuteScript", script=f"return {expression}", args=list(arguments))["value"]

    def wait(self, expression):
        """Wait until an expression is true."""
        end = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.05)

    def press(self, keys):
        """Press keys one after the other: "Space ArrowLeft Shift+ArrowUp b"."""
        actions = []
        for chord in keys.split():
            codes = [KEYS.get(key, key) for key in chord.split("+")]
            actions += [{"type": "keyDown", "value": code} for code in codes]
            actions += [{"type": "keyUp", "value": code} for code in reversed(codes)]
        self._send("PerformActions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def stroke(self, points, kind="mouse", down=True):
        """Move the mouse, or a finger ("touch"), from point to point of the window; `down`: pressed all the way."""
        moves = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)} for x, y in points]
        if down:
            moves = [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]
        pointer = {"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": moves}
        self._send("PerformActions", actions=[pointer])


def find_firefox():
    """The path of a Firefox: ``$FIREFOX``, else the first of the usual names; None where there is none."""
    return os.environ.get("FIREFOX") or next(filter(None, map(shutil.which, FIREFOX_NAMES)), None)


def find_port():
    """A free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def launch_firefox():
    """Start a headless Firefox with a profile of its own; without one, skip by name."""
    path = find_firefox()
    if path is None:
        pytest.skip("no Firefox found: set FIREFOX, or install firefox-esr")
    with tempfile.TemporaryDirectory(prefix="bnn-firefox-") as profile:
        port = find_port()
        settings = SETTINGS | {"marionette.port": port}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in settings.items()]
        Path(profile, "user.js").write_text("\n".join(lines))
        command = [path, "--marionette", "--headless", "--no-remote", "--profile", profile]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=os.environ | {"HOME": profile})  # fmt: skip
        try:
            yield _connect(port, process)
        finally:
            process.terminate()
            process.wait()


def _connect(port, process):
    end = time.monotonic() + SECONDS
    while True:
        try:
            return Firefox(port)
        except ConnectionError:
            if time.monotonic() > end or process.poll() is not None:
                raise
            time.sleep(0.2)


@pytest.fixture(scope="module")
def firefox():
    """A running Firefox, for the tests of a module."""
    with launch_firefox() as browser:
        browser.resize(1280, 1000)
        yield browser
