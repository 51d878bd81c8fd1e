"""Headless Chromium, driven over the Chrome DevTools Protocol through a pipe: no port, no further library."""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from . import report

CHROMIUM = shutil.which("chromium")


class BrowserError(Exception):
    """The browser refused a command, or ended."""


class Browser:
    """One Chromium process with a profile of its own."""

    def __init__(self, log):
        self._log = log
        self._profile = Path(tempfile.mkdtemp(prefix="postern-chromium-"))
        self._numbers = itertools.count(1)
        self._buffer = b""
        #: Everything the browser said unasked.
        self.events = []

    def __enter__(self):
        commands, self._write = self._pipe()
        self._read, answers = self._pipe()
        # Chromium reads commands from descriptor 3 and writes to 4.
        script = f'exec "$@" 3<&{commands} 4>&{answers}'
        flags = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self._profile}", "--no-first-run", "--no-default-browser-check",
            "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--force-color-profile=srgb", "--hide-scrollbars",
        ]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", script, "bash", CHROMIUM, *flags, "about:blank"], pass_fds=(commands, answers),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        os.close(commands)
        os.close(answers)
        return self

    def __exit__(self, *_):
        # Its helpers are in the session it leads.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    @staticmethod
    def _pipe():
        """A pipe whose descriptors are neither 3 nor 4."""
        ends = []
        for end in os.pipe():
            ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
            os.close(end)
        return ends[0], ends[1]

    def send(self, method, parameters=None, session=None, timeout=30.0):
        """Runs one command and returns its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters or {}, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._receive(deadline, method)
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, deadline, method):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self._read, 1 << 16) if ready else b""
            if not data:
                raise BrowserError(f"{method}: {'the browser ended' if ready else 'no answer in time'}, see {self._log}")
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)


class Page:
    """A tab with a virtual authenticator: a platform one that verifies its user and is always touched."""

    def __init__(self, browser, width=1000, height=1400, dark=False):
        self._browser = browser
        target = browser.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = browser.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "WebAuthn"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.send("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.authenticator = self.send("WebAuthn.addVirtualAuthenticator", {"options": {
            "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
            "isUserVerified": True, "automaticPresenceSimulation": True}})["authenticatorId"]

    def send(self, method, parameters=None):
        """Runs one command in this tab."""
        return self._browser.send(method, parameters, self._session)

    def open(self, url):
        """Goes there and waits until the page is complete."""
        result = self.send("Page.navigate", {"url": url})
        assert "errorText" not in result, result
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, expression):
        """The value of an expression, as a user's gesture."""
        result = self.send("Runtime.evaluate", {
            "expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": True})
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression, timeout=15.0):
        """Waits until an expression is true."""
        deadline = time.monotonic() + timeout
        while not self._holds(expression):
            assert time.monotonic() < deadline, f"not within {timeout} s: {expression}\n{self.text('body')}"
            time.sleep(0.05)

    def _holds(self, expression):
        """Whether an expression is true; not while the page gives way to another."""
        try:
            return self.evaluate(expression)
        except BrowserError as error:
            if "context" in str(error) or "navigated" in str(error):
                return False
            raise

    def text(self, selector):
        """What an element says."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def click(self, selector):
        """Clicks in the middle of an element that is enabled."""
        name = json.dumps(selector)
        self.wait(f"document.querySelector({name})?.disabled === false")
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({name}); e.scrollIntoView({{block: 'center'}}); "
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})

    def type(self, selector, text):
        """Types into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", {"text": text})

    def expect(self, selector, part):
        """Waits until an element says something."""
        self.wait(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(part)}) ?? false")

    def credentials(self):
        """What the virtual authenticator holds."""
        return self.send("WebAuthn.getCredentials", {"authenticatorId": self.authenticator})["credentials"]

    def screenshot(self, path):
        """The whole page as PNG."""
        path.parent.mkdir(parents=True, exist_ok=True)
        image = self.send("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})["data"]
        path.write_bytes(base64.b64decode(image))

    def events(self, method):
        """What the browser said of this tab, of one kind."""
        return [event for event in self._browser.events if event.get("sessionId") == self._session and event.get("method") == method]

    def complaints(self):
        """Errors of the console and violations of the page's policy."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"])
            if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
        return found


@contextlib.contextmanager
def chromium(log):
    """A browser that writes what it says to `log`; the test is skipped, and a line says so, where Chromium is not installed."""
    if CHROMIUM is None:
        report.say("browser tests skipped: chromium is not installed (apt-get install chromium)")
        pytest.skip("chromium is not installed")
    log.parent.mkdir(parents=True, exist_ok=True)
    with Browser(log) as browser:
        yield browser
