"""examples/bff at work: its realm as docs/integrate-backend.md makes it, an API behind it, and what browsers send it."""

import base64
import contextlib
import hashlib
import http.client
import http.server
import json
import os
import sqlite3
import subprocess
import threading

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from . import wire
from .backend_api import API
from .certificate import certificate
from .jose import b64url
from .ledger import LEDGER
from .module_site import CuttingProxy, until
from .pages import Psql, to_run
from .pages_client import PageBrowser
from .ports import free_port
from .postgres import clean_environment
from .realm import UNLIMITED, Admin, call
from .settings import OUTPUT, REPOSITORY
from .tls import unverified

EXAMPLE, DOCUMENT = REPOSITORY / "examples/bff", REPOSITORY / "docs/integrate-backend.md"
OWN = {"Sec-Fetch-Site": "same-origin"}


class Backend:
    """The realm on http://localhost:PORT and the site on https://app.localhost:PORT."""

    def __init__(self, world, folder):
        self.world, self.folder, self._processes = world, folder, []
        self.proxy = CuttingProxy(world.node.port)
        self.issuer, self.port = f"http://localhost:{self.proxy.port}", free_port()
        self.origin = f"https://app.localhost:{self.port}"
        self.api, self.database = API(self), folder / "sessions.db"
        self._numbers = iter(range(10_000))

    def open(self):
        """Provisions by the document's own SQL, and starts."""
        psql = Psql(self.world.cluster, Admin.role)
        for block in to_run(DOCUMENT):
            if block.language == "sql":
                block.text = block.text.replace("https://www.acme.example/logged-out", f"http://127.0.0.1:{self._logout_forwarder()}/logged-out")
                block.text = block.text.replace("https://www.acme.example", self.origin).replace("www.acme.example", "app.localhost")
                psql.run(block.__class__(**{**vars(block), "text": block.text.replace("auth.acme.example", "localhost")}))
        admin = self.world.admin
        admin.run(call("put_realm", "acme", public_origin=self.issuer), call("set_code_policy", "acme", resend_cooldown="0"), *(
            call("set_rate_limit", "acme", policy, dimension, permits=1_000_000, per="1 minute", burst=1_000_000) for policy, dimension in UNLIMITED))
        secrets = {name: LEDGER.add("client_secret", admin.call("rotate_client_secret", "acme", name)) for name in ("acme-bff", "acme-api")}
        self._introspection = {"Authorization": "Basic " + base64.b64encode(f"acme-api:{secrets['acme-api']}".encode()).decode()}
        self.secret = self.folder / "secret"
        self.secret.write_text(secrets["acme-bff"] + "\n")
        self.secret.chmod(0o600)
        certificate(self.folder)
        self.world.settle()
        self._publish_a_key_of_ours()
        self.start()
        return self

    def _publish_a_key_of_ours(self):
        """Beside the realm's own, so that a test can sign what the realm never would."""
        self._key, path = ec.generate_private_key(ec.SECP256R1()), "/.well-known/jwks.json"
        numbers = self._key.public_key().public_numbers()
        own = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "ours",
               **{name: b64url(getattr(numbers, name).to_bytes(32, "big")) for name in "xy"}}
        published = wire.exchange(self.world.node.port, "GET", path, {"Host": "localhost"}).json()["keys"]
        self.proxy.given[path] = (200, [("Content-Type", "application/json")], json.dumps({"keys": [*published, own]}).encode())

    def signed(self, claims, **header):
        """A JWT by that key."""
        head = b64url(json.dumps({"alg": "ES256", "kid": "ours", "typ": "logout+jwt", **header}).encode())
        text = f"{head}.{b64url(json.dumps(claims).encode())}"
        r, s = utils.decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{b64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    @contextlib.contextmanager
    def limit(self, policy, dimension, permits):
        """Few permits an hour, for a while."""
        self._set_limit(policy, dimension, permits)
        try:
            yield
        finally:
            self._set_limit(policy, dimension, 1_000_000)

    def _set_limit(self, policy, dimension, permits):
        self.world.admin.call("set_rate_limit", "acme", policy, dimension, permits=permits, per="1 hour", burst=permits)
        self.world.settle()

    def environment(self, **changes):
        """What the example is told."""
        return {
            **clean_environment(), "PYTHONDONTWRITEBYTECODE": "1", "POSTERN": self.issuer, "CLIENT_ID": "acme-bff", "CLIENT_SECRET_FILE": str(self.secret),
            "SITE": self.origin, "API": self.api.origin, "DATABASE": str(self.database), **changes}

    def start(self, port=None, **changes):
        """One more process, on the same sessions."""
        OUTPUT.mkdir(parents=True, exist_ok=True)
        command = ["/usr/bin/python3", "-m", "flask", "--app", "app", "run", "--port", str(port or self.port), "--cert", str(self.folder / "cert.pem"),
                   "--key", str(self.folder / "key.pem")]
        with open(OUTPUT / f"bff-{os.getpid()}.log", "ab") as log:
            process = subprocess.Popen(command, cwd=EXAMPLE, env=self.environment(**changes), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self._processes.append(process)
        until(lambda: process.poll() is not None or self._listens(port or self.port), "the example does not listen")
        assert process.poll() is None, log.name
        return process

    @staticmethod
    def _listens(port):
        with wire.socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def _logout_forwarder(self):
        """Stands for the proxy with a certificate that Postern would reach."""
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One logout token."""

            def do_POST(self):  # pylint: disable=invalid-name
                """To the site."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = Visitor(backend).ask("POST", self.path, body, {"Content-Type": self.headers["Content-Type"]})[0]
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_):
                """Quiet."""

        self._forwarder = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._forwarder.serve_forever, daemon=True).start()
        return self._forwarder.server_port

    def close(self):
        """Ends what it started."""
        for process in self._processes:
            process.kill()
            process.wait(10)
        for server in (self.api, self.proxy):
            server.close()
        self._forwarder.shutdown()
        self._forwarder.server_close()

    def introspect(self, token):
        """What the realm tells the API."""
        fields = {"Host": f"localhost:{self.proxy.port}", "Content-Type": wire.FORM, **self._introspection}
        return wire.exchange(self.world.node.port, "POST", "/connect/introspect", fields, wire.form_body({"token": token or "-"})).json()

    def user(self):
        """A new user's address."""
        email = f"bff{next(self._numbers)}@mail.example"
        self.world.admin.call("put_user", "acme", email, email_verified=True)
        return email

    def code(self, email, count=1):
        """The code of a mail."""
        return LEDGER.add("code", self.world.mailbox.wait(email, count, kind="code").code)

    def sign_out_everywhere(self, cookie):
        """As the user does it elsewhere."""
        fields = {"Host": f"localhost:{self.proxy.port}", "Authorization": "Basic " + base64.b64encode(
            f"acme-bff:{self.secret.read_text().strip()}".encode()).decode(), "Content-Type": wire.FORM}
        form = {"grant_type": "refresh_token", "refresh_token": self.row(cookie)["refresh"], "scope": "openid"}
        token = wire.exchange(self.world.node.port, "POST", "/connect/token", fields, wire.form_body(form)).json()["access_token"]
        answer = wire.exchange(self.world.node.port, "DELETE", "/connect/sessions?current=true", {**fields, "Authorization": f"Bearer {token}"})
        assert answer.status in (200, 204), answer

    def rows(self):
        """All of the example's sessions."""
        with sqlite3.connect(self.database) as database:
            return database.execute("SELECT id, sealed FROM session").fetchall()

    def sid(self, cookie):
        """The session of the realm that a cookie's row names."""
        with sqlite3.connect(self.database) as database:
            return database.execute("SELECT sid FROM session WHERE id = ?", (hashlib.sha256(cookie.encode()).hexdigest(),)).fetchone()[0]

    def row(self, cookie, change=None):
        """What the row of a cookie holds, or None; `change` changes it first."""
        key, seal = hashlib.sha256(cookie.encode()).hexdigest(), Fernet(base64.urlsafe_b64encode(hashlib.sha256(f"row {cookie}".encode()).digest()))
        held = next((json.loads(seal.decrypt(sealed)) for name, sealed in self.rows() if name == key), None)
        if change:
            change(held)
            with sqlite3.connect(self.database) as database:
                database.execute("UPDATE session SET sealed = ? WHERE id = ?", (seal.encrypt(json.dumps(held).encode()), key))
        return held


class Visitor:
    """A browser without pages, at an address of its own; its cookies are the ones that the site set last."""

    def __init__(self, backend, source="127.0.0.1", port=None):
        self.backend, self.source, self.port, self.cookies = backend, source, port or backend.port, {}

    def ask(self, method, path, body=None, headers=None, timeout=40):
        """Status, fields and body. The path goes out as it is; `headers`: in place of a page's own, None leaves one out."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=unverified(), source_address=(self.source, 0))
        body = wire.form_body(body) if isinstance(body, dict) else body
        fields = {"Host": f"app.localhost:{self.backend.port}", **({} if body is None else {"Content-Type": wire.FORM, "Content-Length": str(len(body))}),
                  **({"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}), **(headers or {})}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in fields.items():
            if value is not None:
                connection.putheader(name, value)
        try:
            connection.endheaders(body)
            answer = connection.getresponse()
            given = answer.read()
        finally:
            connection.close()
        for one in answer.headers.get_all("Set-Cookie", []):
            name, _, value = one.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer.status, answer.headers, given

    def post(self, path, form=None, headers=None):
        """As the site's own page does; status and document."""
        status, _, body = self.ask("POST", path, form or {}, {**OWN, **(headers or {})})
        return status, json.loads(body)

    def get(self, path):
        """Status and body."""
        status, _, body = self.ask("GET", path)
        return status, body

    def callback(self, members):
        """The return from the pages: status, fields, body."""
        return self.ask("GET", "/callback?" + wire.form_body({name: value for name, value in members.items() if value is not None}).decode())

    @property
    def cookie(self):
        """The one of the session."""
        return self.cookies.get("__Host-app", "")

    def sign_in(self, email, count=1):
        """By a code; returns the cookie."""
        assert self.post("/code", {"email": email}) == (200, {})
        assert self.post("/code", {"code": self.backend.code(email, count)}) == (200, {})
        return LEDGER.add("session_cookie", self.cookie)


def arrival(visitor, email):
    """Signs in on the pages of the realm; the members with which the browser would come back."""
    status, headers, _ = visitor.ask("POST", "/page", {}, OWN)
    backend = visitor.backend
    assert status == 303 and headers["Location"].startswith(f"{backend.issuer}/connect/authorize?client_id=acme-bff&"), headers
    pages = PageBrowser(backend.world.node, backend.issuer.removeprefix("http://"))
    pages.open(headers["Location"].removeprefix(backend.issuer))
    pages.submit("continue", address=email)
    pages.submit("continue", code=backend.code(email))
    if pages.page is not None and pages.page.step == "offer-passkey":
        pages.submit("skip")
    assert pages.left_for.startswith(backend.origin + "/callback?"), pages.answer
    return pages.members
