"""The authorization code flow as a client and a browser make it, apart from the pages between them."""

import base64
import hashlib
import json
import secrets
import urllib.parse
import uuid

from . import wire
from .ledger import LEDGER
from .postgres import literal

REDIRECT = "https://app.a.example/cb"
GRANT = "authorization_code"


def challenge_of(verifier):
    """S256 (RFC 7636 §4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def hosted(realm, **settings):
    """Switches the pages of a realm on, and gives its clients app, app-2 and api the flow and a redirect URI."""
    admin = realm.world.admin
    admin.call("set_hosted", realm.slug, True, **settings)
    for name in ("app", "app-2", "jwt", "api"):
        admin.run(f"SELECT admin.grant_permission({literal(realm.slug)}, {literal(realm.client(name))}, 'gt:authorization_code');")
        admin.call("put_redirect_uri", realm.slug, realm.client(name), REDIRECT)
    realm.world.settle()
    return realm


class Flow:
    """One client of a realm with pages, and one browser."""

    def __init__(self, realm, name="app", redirect_uri=REDIRECT, node=None, host=None):
        self.realm = realm
        self.app = realm.app(name, node) if host is None else realm.app_on(host, name, node)
        self.redirect_uri = redirect_uri
        self.verifier = LEDGER.add("code_verifier", secrets.token_urlsafe(32))
        self.cookie = None

    @property
    def host(self):
        """The host that the browser asks."""
        return self.app.host

    def sign_in(self, email, amr=("otp",), proves="email", request=None):
        """Signs the browser in, as the statement behind the pages does; returns the id of its session."""
        former = "\\x" + hashlib.sha256(self.cookie.encode()).hexdigest() if self.cookie else None
        self.cookie = LEDGER.add("session_cookie", "pss_" + secrets.token_urlsafe(32))
        page = {
            "cookie": "\\x" + hashlib.sha256(self.cookie.encode()).hexdigest(), "former": former, "host": self.host, "proves": proves,
            "request": request,
        }
        session = str(uuid.uuid4())
        array = "ARRAY[" + ",".join(literal(method) for method in amr) + "]"
        self.realm.world.cluster.sql(
            "SELECT set_config('postern.realm', u.realm_id::text, true), postern.sign_in("
            "ROW(u.realm_id, c.id, 'gt:authorization_code', '192.0.2.1', 'Browser/1', NULL, NULL)::postern.caller,"
            f" ROW('{session}', '\\x00000000000000000000000000000000', NULL, '{{}}', '{{}}', {array}, 0, 0, '\\x00000000', NULL, NULL, false,"
            f" jsonb_populate_record(NULL::postern.page_sign_in, {literal(json.dumps(page))}))::postern.new_session,"
            " ROW(u.id, u.security_stamp, false, c.client_id, now(), NULL, NULL, NULL, NULL, NULL, NULL)::postern.candidate, NULL)"
            " FROM postern.user_account u JOIN postern.realm r ON r.id = u.realm_id JOIN postern.client c ON c.realm_id = r.id"
            f" WHERE r.slug = {literal(self.realm.slug)} AND u.address_key = {literal(email.lower())}"
            f" AND c.client_id = {literal(self.app.client_id)};")
        return session

    def request(self, **changes):
        """The parameters of a right request, but for the changes; None leaves a parameter out."""
        parameters = {
            "client_id": self.app.client_id, "redirect_uri": self.redirect_uri, "response_type": "code",
            "scope": "openid email offline_access", "state": "s t/ä", "nonce": "n-1",
            "code_challenge": challenge_of(self.verifier), "code_challenge_method": "S256", **changes,
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def authorize(self, query=None, headers=None, method="GET", **changes):
        """GET /connect/authorize; `query`: as it is."""
        text = query if query is not None else wire.form_body(self.request(**changes)).decode()
        fields = {"Host": self.host, **self.cookies(), **(headers or {})}
        return wire.exchange(self.app.node.port, method, f"/connect/authorize?{text}", fields)

    def cookies(self):
        """The browser's Cookie header."""
        return {"Cookie": f"__Host-postern-session={self.cookie}"} if self.cookie else {}

    def code(self, **changes):
        """A code for a browser that is signed in."""
        answer = response(self.authorize(**changes), self.redirect_uri)
        assert set(answer) == {"code", "state", "iss"}, answer
        return LEDGER.add("authorization_code", answer["code"])

    def exchange(self, code, headers=None, **changes):
        """The code at the token endpoint."""
        form = {
            "grant_type": GRANT, "client_id": self.app.client_id, "client_secret": self.app.secret, "code": code,
            "redirect_uri": self.redirect_uri, "code_verifier": self.verifier, **changes,
        }
        answer = self.app.token({name: value for name, value in form.items() if value is not None}, headers)
        return answer

    def tokens(self, **changes):
        """Tokens of a browser that is signed in."""
        answer = self.exchange(self.code(**changes))
        assert answer.status == 200, answer
        return answer.json()

    def push(self, form=None, headers=None, **changes):
        """POST /connect/par."""
        form = form if form is not None else self.request(**{"client_secret": self.app.secret, **changes})
        return self.app.post("/connect/par", form, headers)


def response(answer, redirect_uri=REDIRECT):
    """The members of an authorization response that comes by a redirect."""
    assert answer.status == 303, answer
    assert "no-store" in answer.header("cache-control"), answer
    location = answer.header("location")
    assert location.startswith(redirect_uri), location
    separator = location[len(redirect_uri)]
    assert separator == ("&" if "?" in redirect_uri else "?"), location
    pairs = urllib.parse.parse_qsl(location[len(redirect_uri) + 1:], keep_blank_values=True, strict_parsing=True)
    assert len(pairs) == len(dict(pairs)), location
    return dict(pairs)


def refused(answer, redirect_uri=REDIRECT):
    """The error of an authorization response."""
    members = response(answer, redirect_uri)
    assert "code" not in members, members
    return members["error"]


def page_error(answer):
    """The error that a page shows."""
    assert answer.status == 400 and answer.header("location") is None, answer
    assert answer.header("content-type").startswith("text/html"), answer
    text = answer.body.decode()
    return text.split('data-error="', 1)[1].split('"', 1)[0]
