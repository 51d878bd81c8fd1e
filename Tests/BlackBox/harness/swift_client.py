"""The Swift client library at work: a program of `clients/swift` that does what a line of JSON says, in a process of its own."""

import fcntl
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
from concurrent.futures import Future
from functools import cache
from pathlib import Path

import pytest

from . import settings

PACKAGE = settings.REPOSITORY / "clients/swift"
#: Arguments and members of results that no event of the log may repeat.
UNTOLD = {"authToken", "code", "email", "phone", "qrText", "recoveryCode", "refreshToken", "secret", "totp", "url", "value"}


class ClientError(Exception):
    """What the library threw: `case` and the members of the `PosternError`."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error = error
        self.case = error["case"]


@cache
def driver():
    """The program, built when it is first asked for; `POSTERN_CLIENT_DRIVER` is one that is built already."""
    if given := os.environ.get("POSTERN_CLIENT_DRIVER"):
        return Path(given)
    scratch = PACKAGE / ".build"
    scratch.mkdir(exist_ok=True)
    with open(scratch / "test.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["swift", "build", "--ignore-lock", "--package-path", PACKAGE, "--scratch-path", scratch, "--product", "ClientDriver"]
        built = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if built.returncode:
            pytest.fail(f"the Swift client does not build:\n{built.stdout[-4000:]}")
    return scratch / "debug/ClientDriver"


class SwiftClient:
    """A process with one client. Commands run side by side; `events` has what it told by itself."""

    def __init__(self, host, client_id, port, origin=None, prefix=(), environment=None, **configuration):
        """`host` is the realm's; `port` where its node, or a proxy before it, listens on 127.0.0.1. `prefix` is a command that runs the
        program, `environment` what is added to that of this process."""
        self.origin, self.port = origin or f"https://{host}", port
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._told = []
        self._directory = configuration.get("directory")
        self._lock = threading.Lock()
        self.events = queue.Queue()
        self._secrets = set()
        #: What dialogs and browsers ask the person, to a function that answers; None gives up.
        self.person = {}
        self.process = subprocess.Popen(
            [*prefix, *self.program()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env={**os.environ, **(environment or {})}
        )
        threading.Thread(target=self._read, daemon=True).start()
        self.call("open", origin=self.origin, client=client_id, base=f"http://127.0.0.1:{port}", **configuration)

    @staticmethod
    def program():
        """The command that runs a client."""
        return [driver()]

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.close()

    def start(self, method, **arguments):
        """Begins a command; a future of its result."""
        future = Future()
        self._keep_secrets(arguments)
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = future
            try:
                self.process.stdin.write(json.dumps({"id": number, "method": method, "arguments": arguments}) + "\n")
            except (BrokenPipeError, ValueError):
                future.set_exception(EOFError("the client has ended"))
        return future

    def call(self, method, timeout=30, **arguments):
        """The result of a command. Raises ClientError; EOFError when the process ended."""
        return self.start(method, **arguments).result(timeout)

    def fails(self, method, case, **arguments):
        """The error of a command that must fail so."""
        try:
            result = self.call(method, **arguments)
        except ClientError as error:
            assert error.case == case, error
            return error.error
        raise AssertionError(f"{method} gave {result}")

    def logged(self, kind):
        """The events of a kind up to now."""
        return [event["detail"] for event in list(self.events.queue) if event.get("kind") == kind]

    def requests(self, path):
        """How many requests were sent to a path up to now."""
        return sum(detail["path"] == path for detail in self.logged("request"))

    def wait_state(self, case, timeout=10):
        """Reads events until the state is so."""
        while True:
            event = self.events.get(timeout=timeout)
            if event["event"] == "state" and event["state"]["case"] == case:
                return event["state"]

    def event(self, name, timeout=10):
        """Reads events until one of this name."""
        while True:
            event = self.events.get(timeout=timeout)
            if event["event"] == name:
                return event

    def wait_event(self, kind, count, command):
        """Reads events until so many of a kind have come, or a command (a future) has ended."""
        while count and not command.done():
            try:
                count -= self.events.get(timeout=0.2).get("kind") == kind
            except queue.Empty:
                pass

    def forget_events(self):
        """Forgets what it told up to now."""
        while not self.events.empty():
            self.events.get()

    def kill(self):
        """SIGKILL, as a phone ends an app."""
        self._end(signal.SIGKILL)

    def close(self):
        """Ends it. No secret of its store was in what it told, and nothing that a person typed or got was in its log."""
        self._end(signal.SIGTERM)
        self._assert_no_secret_was_told()
        logged = "".join(line for line in self._told if json.loads(line)["event"] == "log")
        assert not [secret for secret in self._secrets if secret in logged]

    def _assert_no_secret_was_told(self):
        """Of those that the store has."""
        told = "".join(self._told)
        for path in Path(self._directory).iterdir() if self._directory and os.path.isdir(self._directory) else ():
            if path.suffix in (".lock", ".new") or not path.read_bytes():
                continue
            document = json.loads(path.read_bytes())
            session = document.get("session", {})
            secrets = [document.get("hint"), document.get("key", {}).get("value"), session.get("refreshToken"), session.get("idToken")]
            secrets += [token["value"] for token in document.get("tokens", [])] + document.get("revoke", [])
            assert not [secret for secret in secrets if secret and secret in told]

    def _end(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(10)
        self.process.stdin.close()

    def _keep_secrets(self, members):
        if isinstance(members, dict):
            # A shorter one occurs by chance.
            self._secrets |= {text for name, text in members.items() if name in UNTOLD and isinstance(text, str) and len(text) > 5}

    def _answer(self, question):
        answer = self.person.get(question["what"], lambda _: None)(question["value"])
        self.start("answer", number=question["number"], value=answer)

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("event") == "ask":
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
                continue
            if "event" in message:
                self._told.append(line)
                self.events.put(message)
                continue
            with self._lock:
                future = self._waiting.pop(message["id"])
            if "error" in message:
                future.set_exception(ClientError(message["error"]))
            else:
                self._keep_secrets(message["result"])
                future.set_result(message["result"])
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            future.set_exception(EOFError("the client has ended"))
