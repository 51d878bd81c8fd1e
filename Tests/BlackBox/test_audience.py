"""An access token opens only what it was made for: account endpoints take no token that was made for an API."""

import re
import uuid

import pytest

from harness import jose, settings, wire
from harness.app import FULL_SCOPE, bearer
from harness.service import granted, service

#: Every endpoint that takes a Bearer token and manages the account. {passkey} and {session} are the user's own.
ENDPOINTS = [
    ("GET", "/connect/account"), ("PATCH", "/connect/account"), ("DELETE", "/connect/account"),
    ("GET", "/connect/sessions"), ("DELETE", "/connect/sessions"), ("DELETE", "/connect/sessions?current=true"),
    ("DELETE", "/connect/sessions/{session}"),
    ("POST", "/connect/passkey/enroll/begin"), ("POST", "/connect/passkey/enroll"), ("GET", "/connect/passkey"),
    ("PATCH", "/connect/passkey/{passkey}"), ("DELETE", "/connect/passkey/{passkey}"),
    ("POST", "/connect/totp/enroll/begin"), ("POST", "/connect/totp/enroll"), ("DELETE", "/connect/totp"),
    ("GET", "/connect/consents"), ("DELETE", "/connect/consents/{session}"),
    ("GET", "/connect/identifiers"), ("POST", "/connect/identifiers/begin"), ("POST", "/connect/identifiers"),
    ("PATCH", "/connect/identifiers/{session}"), ("DELETE", "/connect/identifiers/{session}"),
    ("GET", "/connect/devices"), ("POST", "/connect/devices"), ("POST", "/connect/devices/inspect"), ("POST", "/connect/devices/adopt"),
    ("PATCH", "/connect/devices/{session}"), ("DELETE", "/connect/devices/{session}"),
]
#: What else there is below /connect/: no Bearer token, or one for claims.
OTHERS = {
    "/connect/authorize", "/connect/par", "/connect/logout", "/connect/token", "/connect/introspect", "/connect/revoke",
    "/connect/userinfo", "/connect/passkey/begin", "/connect/bc-authorize", "/connect/approvals", "/connect/approvals/",
    "/connect/devices/offer", "/connect/devices/self",
    *(f"/connect/possession/{step}" for step in ("open", "send", "check", "result", "finish", "cancel")),
}
BODIES = {
    ("PATCH", "/connect/account"): b'{"FirstName":"Eve"}', ("PATCH", "/connect/passkey/{passkey}"): b'{"DisplayName":"Eve"}',
    ("POST", "/connect/passkey/enroll/begin"): b"{}", ("POST", "/connect/totp/enroll/begin"): b"{}",
    ("POST", "/connect/passkey/enroll"): b'{"ceremonyId":"x","attestation":{}}',
    ("POST", "/connect/totp/enroll"): b'{"ceremonyId":"x","code":"123456"}',
    ("POST", "/connect/identifiers/begin"): b'{"Email":"eve@example.com"}',
    ("POST", "/connect/identifiers"): b'{"AuthSession":"x","Code":"123456"}',
    ("PATCH", "/connect/identifiers/{session}"): b'{"Primary":true}', ("PATCH", "/connect/devices/{session}"): b'{"DisplayName":"Eve"}',
    ("POST", "/connect/devices"): b'{"Proof":"x"}', ("POST", "/connect/devices/inspect"): b'{"Offer":"x"}',
    ("POST", "/connect/devices/adopt"): b'{"Offer":"x","Approval":"x"}',
}


class Victim:
    """A user with a passkey, two sessions, and tokens that were made for somebody else."""

    def __init__(self, realm, client, scope):
        self.app = realm.app(client)
        self.email = realm.user(first_name="Ada")
        own = self.app.sign_in(self.email)
        self.token = own["access_token"]
        other = self.app.sign_in(self.email)
        self.session = realm.app("api").introspect(other["access_token"]).json()["sid"]
        # What an app hands to an API: a narrower token of a session of its own, as young as it can be.
        family = self.app.sign_in(self.email, scope=f"{FULL_SCOPE} {scope}")
        self.foreign = [family["access_token"], self.app.refreshed(family["refresh_token"], scope=scope)["access_token"]]
        self.clean = self.app.refreshed(self.app.sign_in(self.email, scope=f"{FULL_SCOPE} {scope}")["refresh_token"], scope="openid")
        self.passkey, _ = self.app.enroll(self.token)

    def call(self, method, path, token):
        """One call with a token."""
        target = path.format(passkey=self.passkey, session=self.session)
        headers = {"Host": self.app.host, "Content-Type": "application/json", **bearer(token)}
        return wire.exchange(self.app.node.port, method, target, headers, BODIES.get((method, path)))

    def state(self):
        """What the owner sees."""
        sessions = self.app.get("/connect/sessions", bearer(self.token)).json()
        return (
            sorted(item["Id"] for item in sessions),
            [(item["Id"], item["DisplayName"]) for item in self.app.passkeys(self.token)],
            self.app.userinfo(self.token).json()["given_name"],
        )


@pytest.fixture(scope="module", autouse=True)
def _with_devices(realm):
    realm.world.admin.call("set_approvals", realm.slug, True)
    realm.world.settle()


@pytest.fixture(scope="module", params=["app", "jwt"])
def client(request):
    """Reference tokens, and JWTs."""
    return request.param


@pytest.fixture(scope="module", params=["resource", "client and resource", "two resources"])
def victim(request, realm, client):
    """For every audience that is not the client alone."""
    second = "stock.read"
    realm.world.admin.call("put_scope", realm.slug, second, resources=["https://stock.example/api"])
    realm.world.admin.call("grant_permission", realm.slug, realm.client(client), variadic=[f"scp:{second}"])
    realm.world.settle()
    scope = {
        "resource": realm.granted_scope, "client and resource": f"openid profile {realm.granted_scope}",
        "two resources": f"openid {realm.granted_scope} {second}",
    }[request.param]
    return Victim(realm, client, scope)


@pytest.mark.parametrize("method,path", ENDPOINTS, ids=[f"{m} {p}" for m, p in ENDPOINTS])
def test_a_token_made_for_an_api_opens_no_account_endpoint(victim, method, path):
    """401 invalid_token, and nothing happened: the API that was sent the token cannot act for its user."""
    before = victim.state()
    for token in victim.foreign:
        answer = victim.call(method, path, token)
        assert (answer.status, answer.body) == (401, b""), answer
        assert 'error="invalid_token"' in answer.header("www-authenticate"), answer
    assert victim.state() == before


@pytest.mark.parametrize("path", ["/connect/account", "/connect/sessions", "/connect/passkey"])
def test_the_same_session_opens_them_with_a_token_of_its_own(victim, path):
    """An app that calls both refreshes once with scope=openid and once with the API's scope."""
    assert victim.call("GET", path, victim.clean["access_token"]).status == 200


def test_an_api_cannot_enrol_a_passkey_and_take_the_account_over(realm):
    """The whole way of the attack: it ends at its first step."""
    app = realm.app()
    token = app.sign_in(realm.user(), scope=realm.granted_scope)["access_token"]
    api = realm.app("api").introspect(token).json()
    assert api["active"] and api["aud"] == realm.granted_resource
    assert app.enroll_begin(token).status == 401
    assert app.totp_begin(token).status == 401


@pytest.fixture(scope="module")
def stock(realm):
    """A second API; its scope and its resource."""
    realm.world.admin.call("put_scope", realm.slug, "stock.list", resources=["https://stock.example/list"])
    for name in ("app", "jwt"):
        realm.world.admin.call("grant_permission", realm.slug, realm.client(name), variadic=["scp:stock.list"])
    realm.world.settle()
    return "stock.list", "https://stock.example/list"


def audience(realm, tokens):
    """Who an access token is for."""
    return realm.app("api").introspect(tokens["access_token"]).json()["aud"]


def test_a_refresh_for_an_api_that_its_scope_does_not_open_is_refused(realm, client, stock):
    """The token would be one for the account, in the hands of that API. Nothing is rotated, and reuse is judged first."""
    app = realm.app(client)
    scope, resource = stock
    first = app.sign_in(realm.user(), scope=f"openid offline_access {realm.granted_scope} {scope}")["refresh_token"]
    for asked in ({"scope": f"openid {scope}"}, {"scope": "openid"}):
        answer = app.refresh(first, **asked, resource=realm.granted_resource)
        assert (answer.status, answer.json()["error"]) == (400, "invalid_target"), answer
    both = app.refreshed(first, scope=f"openid {scope}", resource=resource)
    assert audience(realm, both) == resource
    second = app.refreshed(both["refresh_token"])
    assert sorted(audience(realm, second)) == sorted([resource, realm.granted_resource])
    reused = app.refresh(first, scope=f"openid {scope}", resource=realm.granted_resource)
    assert reused.json()["error"] == "invalid_grant"
    assert app.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_token_with_an_apis_scope_is_never_one_for_the_account(realm, client, stock):
    """Not when the session was narrowed to another API, and not when an administrator gives the scope another resource."""
    app = realm.app(client)
    scope, _ = stock
    narrowed = app.sign_in(
        realm.user(), scope=f"openid offline_access {realm.granted_scope} {scope}", resource=realm.granted_resource)
    token = app.refreshed(narrowed["refresh_token"], scope=f"openid {scope}")
    assert audience(realm, token) == realm.granted_resource
    assert app.get("/connect/account", bearer(token["access_token"])).status == 401
    realm.world.admin.call("put_scope", realm.slug, "moved.read", resources=["https://old.example/"])
    realm.world.admin.call("grant_permission", realm.slug, realm.client(client), variadic=["scp:moved.read"])
    realm.world.settle()
    moved = app.sign_in(realm.user(), scope="openid offline_access moved.read")
    realm.world.admin.call("put_scope", realm.slug, "moved.read", resources=["https://new.example/"])
    realm.world.settle()
    token = app.refreshed(moved["refresh_token"])
    assert audience(realm, token) == "https://old.example/"
    assert app.get("/connect/account", bearer(token["access_token"])).status == 401
    own = app.refreshed(token["refresh_token"], scope="openid")
    assert audience(realm, own) == app.client_id
    assert app.get("/connect/account", bearer(own["access_token"])).status == 200


def test_a_scope_that_gets_a_resource_gives_it_to_sessions_that_exist(realm, client):
    """Until then its tokens were for the client alone."""
    app = realm.app(client)
    name = f"later.{client}"
    realm.world.admin.call("put_scope", realm.slug, name)
    realm.world.admin.call("grant_permission", realm.slug, realm.client(client), variadic=[f"scp:{name}"])
    realm.world.settle()
    tokens = app.sign_in(realm.user(), scope=f"openid offline_access {name}")
    assert audience(realm, tokens) == app.client_id
    realm.world.admin.call("put_scope", realm.slug, name, resources=["https://later.example/"])
    realm.world.settle()
    assert audience(realm, app.refreshed(tokens["refresh_token"])) == "https://later.example/"


def test_userinfo_takes_any_token_with_openid(realm, client):
    """OpenID Connect Core 5.3: the scope decides; what it opens is no more than the claims of its scopes."""
    app = realm.app(client)
    email = realm.user()
    both = app.sign_in(email, scope=f"openid email {realm.granted_scope}")["access_token"]
    assert set(app.userinfo(both).json()) == {"sub", "email", "email_verified"}
    without = app.userinfo(app.sign_in(email, scope=f"email {realm.granted_scope}")["access_token"])
    assert without.status == 403 and 'scope="openid"' in without.header("www-authenticate")


@pytest.mark.parametrize("method,path", ENDPOINTS, ids=[f"{m} {p}" for m, p in ENDPOINTS])
def test_a_clients_own_token_and_no_token_open_nothing(realm, method, path):
    """403 for a service account, 401 without an error code for no token, 401 invalid_token for anything else."""
    if not hasattr(realm, "robots"):
        realm.robots = [service(realm, "aud-robot")[0], service(realm, "aud-jwt-robot", access_token_type="jwt")[0]]
    app = realm.app()
    target = path.format(passkey=uuid.uuid4(), session=uuid.uuid4())
    for robot in realm.robots:
        answer = wire.exchange(app.node.port, method, target, {"Host": app.host, **bearer(granted(robot)["access_token"])})
        assert answer.status == 403 and 'error="insufficient_scope"' in answer.header("www-authenticate"), answer
    bare = wire.exchange(app.node.port, method, target, {"Host": app.host})
    challenges = [value for name, value in bare.headers if name.lower() == "www-authenticate"]
    if path == "/connect/devices/{session}":  # also a door of the device, by its proof alone
        assert bare.status == 401 and bare.json()["error"] == "invalid_dpop_proof", bare
    else:
        assert (bare.status, challenges, bare.body) == (401, ["Bearer", 'DPoP algs="ES256 EdDSA PS256 RS256"'], b""), bare
    for junk in ("junk", "pat_" + "A" * 200, f"{jose.b64url(b'{}')}.{jose.b64url(b'{}')}.AAAA"):
        answer = wire.exchange(app.node.port, method, target, {"Host": app.host, **bearer(junk)})
        assert answer.status == 401 and 'error="invalid_token"' in answer.header("www-authenticate"), answer


def test_every_endpoint_below_connect_is_known_here():
    """A new account endpoint has to be written down above."""
    routes = set()
    for file in (settings.REPOSITORY / "Sources/TokenEndpoint").rglob("*.swift"):
        routes |= set(re.findall(r'Route\(\s*(?:prefix:\s*)?"(/connect/[^"]+)"', file.read_text()))
    known = {re.sub(r"\{.*|\?.*", "", path) for _, path in ENDPOINTS} | OTHERS
    assert routes == known
