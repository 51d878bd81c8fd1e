"""One `postern dev` in a directory of its own."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from . import wire
from .ports import free_port
from .postgres import clean_environment
from .settings import BINARY, OUTPUT


class DevServer:
    """Starts `postern dev` on a free port; its data goes when it ends."""

    client_id = "demo-app"
    email = "ada@example.com"

    _numbers = itertools.count(1)

    def __init__(self, *arguments, binary=BINARY):
        """`arguments`: more of the command."""
        self.binary = binary
        self.port = free_port()
        self.origin = f"http://localhost:{self.port}"
        self.log = OUTPUT / f"dev-{os.getpid()}-{next(self._numbers)}.log"
        self.arguments = arguments
        self._root = Path(tempfile.mkdtemp(prefix="postern-dev-"))
        self._root.chmod(0o755)
        self._process = None

    @property
    def data(self):
        """Where it keeps its data."""
        return self._root / ".postern"

    def start(self, timeout=60.0):
        """Starts and waits until it has greeted and answers."""
        assert self.binary.exists(), f"{self.binary} is missing: build it, or set POSTERN_BIN"
        OUTPUT.mkdir(parents=True, exist_ok=True)
        with open(self.log, "wb") as log:
            self._process = subprocess.Popen(
                [str(self.binary), "dev", "--port", str(self.port), *self.arguments], cwd=self._root, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, env={**clean_environment(), "SWIFT_BACKTRACE": "enable=no"},
            )
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"dev ended with {self._process.returncode}: {self.text()[-2000:]}"
            try:
                if "Ctrl-C" in self.text() and self.get("/.well-known/jwks").status == 200:
                    return self
            except (OSError, wire.WireError):
                pass
            time.sleep(0.1)
        raise AssertionError(f"dev does not answer within {timeout} s: {self.text()[-2000:]}")

    def end(self):
        """Ctrl-C; the data stays."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(10)

    def stop(self):
        """Ctrl-C, and nothing is left."""
        self.end()
        elsewhere = self._root / ".postern" / "location"
        if elsewhere.exists():
            shutil.rmtree(elsewhere.read_text(encoding="utf-8").strip(), ignore_errors=True)
        shutil.rmtree(self._root, ignore_errors=True)

    def text(self):
        """What it printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def get(self, path, **headers):
        """GET."""
        return wire.exchange(self.port, "GET", path, {"Host": f"localhost:{self.port}", **headers})

    def post_json(self, path, document):
        """POST of JSON."""
        fields = {"Host": f"localhost:{self.port}", "Content-Type": "application/json"}
        return wire.exchange(self.port, "POST", path, fields, json.dumps(document).encode())

    def post(self, path, parameters):
        """POST of a form."""
        fields = {"Host": f"localhost:{self.port}", "Content-Type": wire.FORM}
        return wire.exchange(self.port, "POST", path, fields, wire.form_body(parameters))

    def sign_in(self):
        """An access token of the demo user, by a code from the outbox."""
        before = self._codes()
        asked = self.post_json("/api/account/native/otp/request", {"Email": self.email, "ClientId": self.client_id})
        assert asked.status == 200, asked
        deadline = time.monotonic() + 10
        while self._codes() == before:
            assert time.monotonic() < deadline, "no mail came into the dev outbox"
            time.sleep(0.05)
        answer = self.post("/connect/token", {
            "grant_type": "urn:cocoar:otp", "client_id": self.client_id, "auth_session": asked.json()["AuthSession"],
            "otp_code": self._codes()[0]["code"], "scope": "openid",
        })
        assert answer.status == 200, answer
        return answer.json()["access_token"]

    def passkeys(self, access_token):
        """GET /connect/passkey."""
        answer = self.get("/connect/passkey", Authorization=f"Bearer {access_token}")
        assert answer.status == 200, answer
        return answer.json()

    def _codes(self):
        return [mail for mail in self.get("/dev/outbox.json").json() if mail.get("code")]
