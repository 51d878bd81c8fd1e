"""What stands beside curl on the page for app teams: the mailbox and the platform's authenticator, as commands."""

import json
import os
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from . import authenticator, totp

_COMMAND = '#!/bin/sh\nexec curl -q -sf "http://127.0.0.1:{port}/{path}?${{1-}}" {more}\n'
_WANTED = {"code_from_mail": re.compile(r"(?<![0-9])[0-9]{6}(?![0-9])"), "link_from_mail": re.compile(r"https?://\S+/magic-login\?\S+")}


class Helpers:
    """Commands `code_from_mail ADDRESS`, `link_from_mail ADDRESS`, `totp_of SECRET`, `secret_of CLIENT`, `authenticator create|get` (options
    on stdin); curl finds the node.

    Each mail is read once: a command waits for the next one with a code, or a link.
    """

    def __init__(self, world, directory):
        self._world = world
        self._read = {}
        self._credential = None
        self._steps = iter((0, 1))
        helpers = self

        class Handler(BaseHTTPRequestHandler):
            """One command per path."""

            def do_POST(self):  # pylint: disable=invalid-name
                """Options on stdin, or nothing; the argument is the query."""
                url = urllib.parse.urlsplit(self.path)
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                try:
                    answer, status = helpers.answer(url.path.strip("/"), urllib.parse.unquote(url.query), text), 200
                except Exception as error:  # pylint: disable=broad-exception-caught
                    answer, status = repr(error), 500
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer.encode() + b"\n")

            def log_message(self, *_):  # pylint: disable=arguments-differ
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._write(Path(directory))

    def _write(self, directory):
        commands = directory / "commands"
        commands.mkdir()
        for name in (*_WANTED, "totp_of", "secret_of", "authenticator"):
            file = commands / name
            more = "--data-binary @-" if name == "authenticator" else "-d ''"
            file.write_text(_COMMAND.format(port=self._server.server_port, path=name, more=more), encoding="ascii")
            file.chmod(0o755)
        # Every host is the node's, in clear text: TLS is the proxy's part.
        (directory / ".curlrc").write_text(f'connect-to = "::127.0.0.1:{self._world.node.port}"\nnoproxy = "*"\n', encoding="ascii")
        self.environment = {
            "PATH": f"{commands}:{os.environ['PATH']}", "CURL_HOME": str(directory),
            "POSTERN": "http://auth.acme.example", "SHOP": "http://shop.auth.acme.example",
        }

    def answer(self, name, argument, text):
        """What a command prints."""
        if name == "secret_of":
            secret = self._world.admin.call("rotate_client_secret", "acme", argument)
            self._world.settle()
            return secret
        if name == "totp_of":
            # A step once used is refused: each call shows the next one that is still accepted.
            return totp.code(argument, next(self._steps))
        if name in _WANTED:
            return self._from_mail(argument, _WANTED[name])
        options = json.loads(text)
        if argument == "create":
            document, self._credential = authenticator.create(options)
        else:
            document = authenticator.assertion(options, self._credential)
        return json.dumps(document)

    def _from_mail(self, address, wanted, timeout=10.0):
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            mails = self._world.mailbox.to(address)
            while self._read.get(address, 0) < len(mails):
                mail = mails[self._read.get(address, 0)]
                self._read[address] = self._read.get(address, 0) + 1
                if found := wanted.search(mail.text):
                    return found.group()
            time.sleep(0.02)
        raise AssertionError(f"no mail for {address} after {timeout} s")

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
