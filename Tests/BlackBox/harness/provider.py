"""`postern serve` with TLS on localhost and one realm, as clients that know nothing of tests reach it."""

import json
import os
import queue
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from . import settings
from .ledger import LEDGER
from .ports import free_port
from .realm import UNLIMITED, call
from .user_agent import UserAgent
from .world import World

PROGRAMS = Path(__file__).resolve().parents[1] / "third_party"
PERMISSIONS = ["gt:authorization_code", "gt:refresh_token", "ept:revocation", "scp:email", "scp:profile"]


def write_certificate(folder):
    """A certificate for localhost that is its own authority, and its key."""
    certificate, key = folder / "localhost.crt", folder / "localhost.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


class Provider:
    """Its issuer is https://localhost:PORT, and its pages have single sign-on."""

    slug = "op"

    def __init__(self, folder):
        self.certificate, key = write_certificate(folder)
        self.world = World("provider", POSTERN_TLS_CERT=str(self.certificate), POSTERN_TLS_KEY=str(key))
        self.issuer = None

    def open(self):
        """Starts everything."""
        self.world.open()
        self.issuer = f"https://localhost:{self.world.node.port}"
        self.world.admin.run(
            call("put_realm", self.slug, primary_domain="localhost", public_origin=self.issuer),
            call("set_hosted", self.slug, True, offer_passkey=False),
            call("set_code_policy", self.slug, resend_cooldown="0"),
            *(call("set_rate_limit", self.slug, policy, dimension, permits=1_000_000, per="1 minute", burst=1_000_000)
              for policy, dimension in UNLIMITED))
        self.world.settle()
        self._await_rs256()
        return self

    def _await_rs256(self, timeout=20):
        """A realm with pages gets its RS256 key from the server, a moment later."""
        deadline = time.monotonic() + timeout
        browser = self.browser()
        member = "id_token_signing_alg_values_supported"
        while "RS256" not in json.loads(browser.open(f"{self.issuer}/.well-known/openid-configuration").text)[member]:
            assert time.monotonic() < deadline, browser.text
            time.sleep(0.1)

    def close(self):
        """Takes everything down."""
        self.world.close()

    def client(self, client_id, redirect_uri, *logout_uris, client_type="confidential", jwks=None, **more):
        """A client with its URIs; `logout_uris`: pairs of kind and URI; a confidential one has keys or a secret. Returns its settings, as a
        program reads them."""
        admin = self.world.admin
        admin.run(
            call("put_client", self.slug, client_id, client_type=client_type, **more),
            call("grant_permission", self.slug, client_id, variadic=PERMISSIONS),
            call("put_redirect_uri", self.slug, client_id, redirect_uri),
            *(call("put_logout_uri", self.slug, client_id, uri, kind) for kind, uri in logout_uris))
        secret = None
        if jwks is not None:
            admin.call("put_client_jwks", self.slug, client_id, json.dumps({"keys": jwks}))
        elif client_type == "confidential":
            secret = LEDGER.add("client_secret", admin.call("rotate_client_secret", self.slug, client_id))
        self.world.settle()
        return {"issuer": self.issuer, "client_id": client_id, "client_secret": secret, "redirect_uri": redirect_uri}

    def user(self, name):
        """A confirmed user; returns the address and the id."""
        email = f"{name}@mail.example"
        return email, self.world.admin.call("put_user", self.slug, email, first_name="Mike", email_verified=True)

    def browser(self, *stops):
        """A browser that trusts this provider."""
        return UserAgent(str(self.certificate), *stops)

    def userinfo(self, access_token):
        """The userinfo of a token, or None when it is dead."""
        request = urllib.request.Request(f"{self.issuer}/connect/userinfo", headers={"Authorization": f"Bearer {access_token}"})
        try:
            with urllib.request.urlopen(request, timeout=20, context=ssl.create_default_context(cafile=self.certificate)) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            assert error.code == 401, error
            return None

    def environment(self):
        """What a program of PyPI needs to find its packages and to trust this provider."""
        return {**_environment(), "REQUESTS_CA_BUNDLE": str(self.certificate), "SSL_CERT_FILE": str(self.certificate)}

    def program(self, name, **members):
        """Runs a program of `third_party`, which is told the members."""
        return Program(name, self.environment(), members)

    @staticmethod
    def site():
        """The origin of a site of a client's, which is free to listen on."""
        return f"http://localhost:{free_port()}"


def _environment():
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TMPDIR")}
    return {**kept, "PYTHONPATH": str(settings.CLIENTS), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1", "NO_PROXY": "*"}


def third_party(name, **members):
    """Runs a program of `third_party` that asks no provider."""
    return Program(name, _environment(), members)


class Program:
    """A client in a process of its own. Lines of JSON go back and forth: what it is told, and what it tells."""

    def __init__(self, name, environment, members):
        self._errors = settings.OUTPUT / f"{name}.err"
        settings.OUTPUT.mkdir(parents=True, exist_ok=True)
        with open(self._errors, "wb") as errors:
            self.process = subprocess.Popen(
                self._command(name), env=environment, text=True, bufsize=1,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        self._lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.tell(**members)

    @staticmethod
    def _command(name):
        """Python's, or Ruby's."""
        ruby = PROGRAMS / f"{name}.rb"
        return ["/usr/bin/ruby", str(ruby)] if ruby.exists() else ["/usr/bin/python3", str(PROGRAMS / f"{name}.py")]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def tell(self, **members):
        """One line for the program."""
        self.process.stdin.write(json.dumps(members) + "\n")
        self.process.stdin.flush()

    def hear(self, timeout=60):
        """The next line of the program."""
        try:
            line = self._lines.get(timeout=timeout)
            return json.loads(line)
        except (queue.Empty, ValueError) as problem:
            raise AssertionError(f"the client ended or said nothing: {self._errors.read_text()[-4000:]}") from problem
