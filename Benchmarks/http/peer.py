"""Debian's glewlwyd, an OAuth 2 and OpenID Connect server in C, on the same PostgreSQL and under the same load generator.

Its package is unpacked beside our build and not installed: nothing starts by itself and nothing outside changes. Its OpenID Connect
plugin does what ours does: each refresh uses up its token and issues a new one. An access token of its is a JWT and always
comes with a new refresh token, and an id_token once there is the scope openid."""

import base64
import http.client
import json
import subprocess
import time
import urllib.parse

from harness.ports import free_port
from harness.postgres import clean_environment

from paths import REPOSITORY, say
from server import Launched

_PACKAGES = ("glewlwyd glewlwyd-common libconfig9 liborcania2.3 libyder2.0 libhoel1.4 librhonabwy1.1 libmicrohttpd12 libulfius2.7 "
             "libiddawc1.1 liboath0 libmariadb3 mariadb-common").split()
_SECRET = "bench-secret"


def _basic(client):
    return "Basic " + base64.b64encode(f"{client}:{_SECRET}".encode()).decode()


def unpack():
    """The root of the unpacked packages; downloads them the first time."""
    directory = REPOSITORY / ".build-bench" / "peer"
    root = directory / "root"
    if not (root / "usr/bin/glewlwyd").exists():
        say("downloading glewlwyd …")
        directory.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", *_PACKAGES], cwd=directory, check=True, capture_output=True)
        for package in directory.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package.name, "root"], cwd=directory, check=True)
    return root


class Peer(Launched):
    """One glewlwyd with one client and one user."""

    def __init__(self, database, directory):
        self.database, self.directory = database, directory
        self.port = free_port()
        self._cookie = None

    def start(self):
        """Makes its database, starts it and provisions it by its own administration API."""
        root = unpack()
        self.database.sql("CREATE DATABASE glewlwyd", database="postgres")
        self.database.sql("CREATE EXTENSION pgcrypto", database="glewlwyd")
        schema = subprocess.run(["zcat", root / "usr/share/doc/glewlwyd/database/init.postgre.sql.gz"], check=True, capture_output=True).stdout
        self.database.sql(schema.decode(), database="glewlwyd")
        library = root / "usr/lib"
        modules = "\n".join(f'{kind}_path="{library}/glewlwyd/{name}"' for kind, name in (
            ("user_module", "user"), ("client_module", "client"), ("user_auth_scheme_module", "scheme"), ("plugin_module", "plugin"),
            ("user_middleware_module", "user_middleware")))
        (library / "glewlwyd/user_middleware").mkdir(exist_ok=True)
        config = self.directory / "glewlwyd.conf"
        config.write_text(f"""
port={self.port}
bind_address="127.0.0.1"
external_url="http://localhost:{self.port}"
login_url="login.html"
api_prefix="api"
static_files_path="{root}/usr/share/glewlwyd/webapp/"
log_mode="file"
log_level="ERROR"
log_file="{self.directory}/glewlwyd.log"
cookie_domain="localhost"
cookie_secure=0
{modules}
use_secure_connection=false
secure_connection_key_file="/nowhere"
secure_connection_pem_file="/nowhere"
secure_connection_ca_file="/nowhere"
database = {{ type = "postgre"; conninfo = "host={self.database.root} user=postgres dbname=glewlwyd" }};
""")
        environment = {**clean_environment(), "LD_LIBRARY_PATH": str(library / "x86_64-linux-gnu")}
        with open(self.directory / "glewlwyd.out", "ab") as out:
            self.process = subprocess.Popen(
                [str(root / "usr/bin/glewlwyd"), "-c", str(config)], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        deadline = time.monotonic() + 15
        while True:
            try:
                self._call("GET", "/config")
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"glewlwyd does not start: {(self.directory / 'glewlwyd.out').read_text()[-2000:]}")
                time.sleep(0.05)
        self._provision()
        return self

    def _call(self, method, path, document=None, form=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Host": f"localhost:{self.port}", **(headers or {})}
        if self._cookie:
            headers["Cookie"] = self._cookie
        body = None
        if document is not None:
            body, headers["Content-Type"] = json.dumps(document), "application/json"
        elif form is not None:
            body, headers["Content-Type"] = urllib.parse.urlencode(form), "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        if answer.getheader("Set-Cookie"):
            self._cookie = answer.getheader("Set-Cookie").split(";")[0]
        if answer.status >= 300:
            raise RuntimeError(f"glewlwyd: {method} {path}: {answer.status} {text[:500]}")
        return json.loads(text) if text.startswith(("{", "[")) else text

    def _provision(self):
        self._call("POST", "/api/auth/", {"username": "admin", "password": "password"})
        key = subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout"], check=True, capture_output=True).stdout
        public = subprocess.run(["openssl", "ec", "-pubout"], input=key, check=True, capture_output=True).stdout
        self._call("POST", "/api/mod/plugin/", {"module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": {
            "iss": f"http://localhost:{self.port}/api/oidc", "jwt-type": "ecdsa", "jwt-key-size": "256", "key": key.decode(), "cert": public.decode(),
            "access-token-duration": 3600, "refresh-token-duration": 1209600, "code-duration": 600, "refresh-token-rolling": True,
            "refresh-token-one-use": "always", "allow-non-oidc": True, "auth-type-code-enabled": True, "auth-type-token-enabled": True,
            "auth-type-id-token-enabled": True, "auth-type-none-enabled": True, "auth-type-password-enabled": True,
            "auth-type-client-enabled": True, "auth-type-refresh-enabled": True, "scope": [], "additional-parameters": [], "claims": [],
            "subject-type": "public", "introspection-revocation-allowed": True, "introspection-revocation-allow-target-client": True,
            "introspection-revocation-auth-scope": [], "jwks-show": True, "name-claim": "no", "email-claim": "no"}})
        self._call("POST", "/api/scope/", {"name": "bench", "display_name": "bench", "description": "bench", "password_required": True, "scheme": {}})
        for name in ("bench", "bench-app"):
            self._call("POST", "/api/client/", self._client(name, True))
        self._call("POST", "/api/user/", {"username": "bench", "name": "bench", "email": "bench@example.org", "password": "password", "enabled": True,
                                          "scope": ["bench"]})

    @staticmethod
    def _client(name, confidential):
        return {"client_id": name, "name": name, "enabled": True, "scope": ["bench"], "redirect_uri": ["http://localhost/cb"],
                "authorization_type": ["code", "password", "refresh_token"], "confidential": confidential,
                **({"password": _SECRET, "client_secret": _SECRET, "token_endpoint_auth_method": ["client_secret_basic"]} if confidential
                   else {"token_endpoint_auth_method": ["none"]})}

    def values(self, what):
        """The path of the load generator's values: sign-ins by password, each a refresh family of its own."""
        path = self.directory / f"peer-{what}.values"
        if what == "discovery":
            path.write_text("-\n")
            return path
        name, member = ("bench-app", "refresh_token") if what == "refresh" else ("bench", "access_token")
        with open(path, "w", encoding="ascii") as file:
            for _ in range(64):
                answer = self._call(
                    "POST", "/api/oidc/token", form={"grant_type": "password", "username": "bench", "password": "password", "scope": "bench"},
                    headers={"Authorization": _basic(name)})
                file.write(answer[member] + "\n")
        if what == "refresh":
            # Only confidential clients may sign in by password; what is compared is the refresh of a public one.
            self._call("PUT", "/api/client/bench-app", self._client("bench-app", False))
        return path

    def options(self, what):
        """How the load generator goes about it: as with ours."""
        return {"refresh": ["--rotate", "refresh_token"], "introspection": ["--cyclic", "--expect", '"active":true'], "discovery": ["--cyclic"]}[what]

    def request(self, what):
        """The load generator's template: a public client refreshes and a confidential one introspects, as with ours."""
        post = f"HTTP/1.1\r\nHost: localhost:{self.port}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {{length}}\r\n"
        return {
            "refresh": f"POST /api/oidc/token {post}\r\ngrant_type=refresh_token&client_id=bench-app&refresh_token={{value}}",
            "introspection": f"POST /api/oidc/introspect {post}Authorization: {_basic('bench')}\r\n\r\ntoken={{value}}&token_type_hint=access_token",
            "discovery": f"GET /api/oidc/.well-known/openid-configuration HTTP/1.1\r\nHost: localhost:{self.port}\r\n\r\n",
        }[what]


#: What the peer is compared in. Its passkeys are a scheme of its login page: a sign-in by one is a challenge fetched with a session cookie,
#: the assertion, and an authorization request in that session, so no one request of its is a passkey redemption.
SCENARIOS = ("refresh", "introspection", "discovery")
