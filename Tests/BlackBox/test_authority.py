"""Who may call what: every method of every route says so in the source (`Endpoint`), and is called here with every kind of token.

The routes are those of the source, so that a new one is walked too. A new route that takes no credential fails until it stands in `OPEN`.
"""

import re
import uuid

import pytest

from harness import report, wire
from harness.app import bearer
from harness.approvals import switch_on
from harness.codeflow import REDIRECT, hosted
from harness.dpop import DPoPApp
from harness.possession import possession
from harness.service import granted, service
from harness.settings import REPOSITORY
from test_address_verification import prove, tokens as proof_tokens
from test_cotter import PERMISSIONS, Cotter
from test_routes import declared_callers, documented_callers

SOURCES = REPOSITORY / "Sources"
#: What takes no access token and no client's credentials: looked at by people before it is added here.
OPEN = {
    "anonymous": {
        ("get", path) for path in (
            "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/.well-known/jwks", "/.well-known/jwks.json",
            "/.well-known/apple-app-site-association", "/.well-known/assetlinks.json", "/api/app-info", "/api/v0/token/jwks",
            "/assets/{id}", "/brand/{id}", "/sdk/v1/{id}")
    } | {
        ("post", path) for path in (
            "/api/account/native/otp/request", "/api/account/native/register", "/api/account/magic-link/request", "/connect/passkey/begin")
    },
    "page": {
        (method, path) for method in ("get", "post") for path in (
            "/connect/authorize", "/connect/logout", "/magic-login", "/p/{id}", "/undo/{id}", "/sign-in")
    } | {("get", "/app"), ("post", "/sign-in/wait")},
    "grant": {("post", path) for path in ("/connect/token", "/token", "/api/v0/verify/get_identity", "/api/v0/token/{id}")},
    "deviceStatement": {("post", "/connect/approvals/{id}")},
}
#: What a credential is: at `account`, at `claims`, at `service`. Every other kind of endpoint refuses all of them.
CREDENTIALS = {
    "none": (401, 401, 401),
    "user's, for an API": (401, 200, 401), "user's, for an API, JWT": (401, 200, 401),
    "service's, for an API": (401, 403, 401), "service's, for an API, JWT": (401, 403, 401),
    "user's, of its client": (None, 200, 401), "service's, of its client": (403, 403, None),
    "Cotter's": (401, 200, 401), "Cotter's, refreshed": (401, 200, 401), "Cotter's, refreshed elsewhere": (401, 200, 401),
    "of another realm": (401, 401, 401), "service's of another realm": (401, 401, 401),
    "refresh token": (401, 401, 401), "ID token": (401, 401, 401), "of a proven address": (401, 200, 401),
    "of a disabled user": (401, 401, 401), "of a disabled client": (401, 401, 401), "bound, as Bearer": (401, 401, 401),
}
COLUMN = {"account": 0, "accountOrDevice": 0, "claims": 1, "service": 2}


class Callers:
    """A realm with everything switched on, and one token of each kind."""

    def __init__(self, world):
        self.realm = realm = possession(hosted(world.realm("auth"), offer_passkey=False))
        admin = world.admin
        switch_on(realm, "app")
        for name in ("app", "jwt", "disabled"):
            admin.call("grant_permission", realm.slug, realm.client(name), variadic=["scp:verify:email", "gt:urn:postern:device"])
        realm.put_client("cotter", access_token_type="jwt")
        realm.put_client("cotter", *PERMISSIONS, "gt:urn:cocoar:otp")
        admin.call("put_redirect_uri", realm.slug, realm.client("cotter"), "yourapp://")
        admin.call("put_redirect_uri", realm.slug, realm.client("app"), REDIRECT)
        world.settle()
        self.app = realm.app()
        self.email = realm.user()
        own = self.app.sign_in(self.email)
        self.own = own["access_token"]
        scope = f"openid {realm.granted_scope}"
        service_app, _ = service(realm, "robot", realm.granted_scope)
        service_jwt, _ = service(realm, "robot-jwt", realm.granted_scope, access_token_type="jwt")
        for name in ("robot", "robot-jwt"):
            admin.call("grant_permission", realm.slug, realm.client(name), variadic=["ept:possession", "cap:assert-possession"])
        other = world.realm("auth-other")
        other_robot, _ = service(other, "robot")
        cotter = Cotter(realm)
        identity = cotter.identity(cotter.prove(realm.user()))["oauth_token"]
        again = cotter.refresh(identity["refresh_token"]).json()
        disabled_email = realm.user()
        self.tokens = {
            "none": None,
            "user's, for an API": self.app.sign_in(self.email, scope=scope)["access_token"],
            "user's, for an API, JWT": realm.app("jwt").sign_in(self.email, scope=scope)["access_token"],
            "service's, for an API": granted(service_app, scope=realm.granted_scope)["access_token"],
            "service's, for an API, JWT": granted(service_jwt, scope=realm.granted_scope)["access_token"],
            "user's, of its client": self.own,
            "service's, of its client": granted(service_app)["access_token"],
            "Cotter's": identity["access_token"], "Cotter's, refreshed": again["access_token"],
            "Cotter's, refreshed elsewhere": realm.app("cotter").refreshed(again["refresh_token"])["access_token"],
            "of another realm": other.app().sign_in(other.user())["access_token"],
            "service's of another realm": granted(other_robot)["access_token"],
            "refresh token": own["refresh_token"], "ID token": own["id_token"],
            "of a proven address": proof_tokens(prove(realm, realm.new_email()))[0]["access_token"],
            "of a disabled user": self.app.sign_in(disabled_email)["access_token"],
            "of a disabled client": realm.app("disabled").sign_in(self.email)["access_token"],
            "bound, as Bearer": DPoPApp(realm.app()).bound(self.email)["access_token"],
        }
        admin.call("set_user_enabled", realm.slug, disabled_email, False)
        admin.call("put_client", realm.slug, realm.client("disabled"), enabled=False)
        world.settle()
        self.session = realm.app("api").introspect(own["access_token"]).json()["sid"]

    def call(self, method, path, credential, form=False):
        """One call with a credential, of something that is there."""
        kind, body = (wire.FORM, b"") if form else ("application/json", b"{}")
        target = path.replace("{id}", self.session if "sessions" in path else str(uuid.UUID(int=7)))
        token = self.tokens[credential]
        headers = {"Host": self.app.host, "Content-Type": kind, **({} if token is None else bearer(token))}
        return wire.exchange(self.app.node.port, method.upper(), target, headers, None if method == "get" else body)

    def state(self):
        """What the owner sees of the account."""
        account = self.app.get("/connect/account", bearer(self.own)).json()
        return {**account, "Sessions": None}, [item["Id"] for item in self.app.get("/connect/sessions", bearer(self.own)).json()]


@pytest.fixture(scope="module", name="callers")
def _callers(world):
    return Callers(world)


def test_every_endpoint_says_who_may_call_it():
    """In the source, and docs/openapi.yaml says the same."""
    declared = declared_callers()
    assert len(declared) > 70 and declared == documented_callers()


def test_what_takes_no_credential_is_on_the_list():
    """A new route that anybody may call is looked at twice."""
    found = {}
    for endpoint, caller in declared_callers().items():
        if caller in OPEN:
            found.setdefault(caller, set()).add(endpoint)
    assert found == OPEN


def test_no_other_file_looks_at_tokens():
    """The folder of `Endpoint` reads tokens and verifies them; introspection and revocation, which use none, ask about them."""
    allowed = {
        "presentedToken()": {"Authority"}, "tokenInBody()": {"Authority"}, ".identify(": {"Authority", "Introspection"},
        "headers[values: .authorization]": {"Authority", "HTTP"}, "headers[.authorization]": {"HTTP"},
    }
    endpoint = SOURCES / "TokenEndpoint"
    files = [*endpoint.rglob("*.swift"), *(SOURCES / "HostedPages").rglob("*.swift"), *(SOURCES / "postern" / "Dev").rglob("*.swift")]
    for text, folders in allowed.items():
        found = {file.parent.name for file in files if text in file.read_text(encoding="utf-8")}
        assert found <= folders, (text, found)
    makers = re.compile(r"\b(AccountCaller|ClaimsCaller|ServiceCaller|DeviceCaller|PossessionCaller|CallingClient|ProvingClient|APIKeysCaller)\(")
    assert {file.parent.name for file in files if makers.search(file.read_text(encoding="utf-8"))} == {"Authority"}


def test_every_endpoint_takes_the_credentials_it_declares_and_no_other(callers):
    """All routes times all credentials; then the account is what it was."""
    before, counts = callers.state(), {}
    for (method, path), caller in sorted(declared_callers().items()):
        if caller == "operations":
            assert callers.call(method, path, "none").status == 404, "another listener answers it"
            continue
        plain = callers.call(method, path, "none", caller in ("client", "resourceServer", "grant"))
        for credential, expected in CREDENTIALS.items():
            if expected[COLUMN.get(caller, 1)] is None:
                continue
            answer = callers.call(method, path, credential, caller in ("client", "resourceServer", "grant"))
            where = (caller, method, path, credential, answer)
            if caller in COLUMN:
                status = expected[COLUMN[caller]]
                # Without a token the device itself is meant, by a proof that is missing here.
                assert answer.status == status, where
                if status == 401 and caller == "service":
                    assert answer.json()["code"] == 8002, where
                elif status == 401 and credential != "none":
                    assert 'error="invalid_token"' in answer.header("www-authenticate"), where
            elif caller in ("anonymous", "page"):
                assert (answer.status, answer.header("location")) == (plain.status, plain.header("location")), where
            elif caller == "deviceStatement":
                assert answer.status == 400, where
            else:
                assert answer.status in (400, 401) and answer.status < 500, where
                assert "access_token" not in answer.body.decode() and '"active":true' not in answer.body.decode(), where
            counts[caller] = counts.get(caller, 0) + 1
    assert callers.state() == before
    report.say("authority: " + ", ".join(f"{caller} {count}" for caller, count in sorted(counts.items())) + f"; {sum(counts.values())} calls")


def test_the_right_tokens_open_what_is_theirs(callers):
    """The refusals above are not of everything."""
    assert callers.call("get", "/connect/account", "user's, of its client").status == 200
    started = callers.call("post", "/v3/unify", "service's, of its client")
    assert (started.status, started.json()["code"]) == (400, 8001), "past the caller: a member is missing"


def test_an_api_that_a_backend_called_does_not_become_that_backend(callers):
    """Neither starts a proof of a number nor asserts one, by either kind of token."""
    for credential in ("service's, for an API", "service's, for an API, JWT"):
        for path in ("/v3/unify", "/v3/start", "/v3/unify-bind", "/v3/unify-status", "/v3/validate", "/v3/device/revoke"):
            answer = callers.call("post", path, credential)
            assert (answer.status, answer.json()["code"], answer.json()["error"]) == (401, 8002, "invalid_token"), answer


def test_a_token_of_cotters_wire_tells_claims_and_no_more(callers):
    """Its app hands it to a server, which must not manage the account with it; introspection and revocation answer as for any."""
    token = callers.tokens["Cotter's, refreshed elsewhere"]
    assert callers.app.userinfo(token).status == 200
    told = callers.realm.app("api").introspect(token).json()
    assert told["active"] is True and told["client_id"] == callers.realm.client("cotter")
    for path in ("/connect/account", "/connect/sessions", "/connect/identifiers", "/connect/devices", "/connect/consents", "/connect/passkey"):
        assert callers.app.get(path, bearer(token)).status == 401, path
