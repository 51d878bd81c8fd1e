"""Debian's idwcc: a client in C (iddawc) behind a small web server, which a program drives."""

import http.cookiejar
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from .ports import free_port

PROGRAM = shutil.which("idwcc")
#: Of iddawc's header files: a response type, and client authentication by Basic.
CODE, BASIC = 1, 1


class Iddawc:
    """One program until the block ends."""

    def __init__(self):
        self.port = free_port()
        self.callback = f"http://localhost:{self.port}/callback.html"
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()), urllib.request.ProxyHandler({}))
        # It ends with its input.
        self._process = subprocess.Popen(
            [PROGRAM, "-p", str(self.port)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + 20
        while True:
            try:
                self.session()
                return self
            except OSError:
                assert time.monotonic() < deadline, "idwcc does not answer"
                time.sleep(0.05)

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(10)

    def session(self, **changes):
        """What it knows, after these changes."""
        known = json.loads(self._call("GET", "/api/session"))
        if changes:
            self._call("POST", "/api/session", json.dumps({**known, **changes}).encode(), "application/json")
            return self.session()
        return known

    def begin(self):
        """Pushes its request; the URL for the browser."""
        return json.loads(self._call("PUT", "/api/auth", urllib.parse.urlencode({"use_par": "true"}).encode()))["url"]

    def finish(self, arrived):
        """Takes the URL to which the browser came, and asks for tokens."""
        self._call("POST", "/api/parseRedirectTo", urllib.parse.urlencode({"redirectTo": arrived}).encode())
        self._call("PUT", "/api/token")
        return self.session()

    def _call(self, method, path, body=None, kind="application/x-www-form-urlencoded"):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data=body, method=method, headers={"Content-Type": kind} if body else {})
        try:
            with self._opener.open(request, timeout=20) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from error
