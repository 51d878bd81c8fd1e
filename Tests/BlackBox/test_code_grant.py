"""The grant authorization_code: what a code opens, for whom, how often."""

import time

import pytest

from harness import jose, wire
from harness.app import bearer
from harness.codeflow import REDIRECT, Flow, challenge_of, hosted

INVALID = {"error": "invalid_grant", "error_description": "Invalid or expired code."}


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm())


@pytest.fixture
def flow(realm):
    """A browser that is signed in."""
    made = Flow(realm)
    made.email = realm.user()
    made.session = made.sign_in(made.email)
    return made


def test_a_code_opens_a_session_of_the_client(realm, flow):
    """Tokens, claims, userinfo, refresh; no name or address in the ID token."""
    tokens = flow.tokens(nonce="n ü")
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope", "refresh_token", "id_token"}
    header, claims = jose.verify(tokens["id_token"], flow.app.get("/.well-known/jwks").json())
    assert (claims["iss"], claims["aud"], claims["nonce"], claims["amr"], claims["acr"]) == (
        realm.issuer, flow.app.client_id, "n ü", ["otp"], "urn:postern:acr:1")
    assert abs(claims["auth_time"] - time.time()) < 60 and "at_hash" in claims and "email" not in claims
    assert flow.app.userinfo(tokens["access_token"]).json()["email"] == flow.email
    assert realm.app("api").active(tokens["access_token"])
    refreshed = flow.app.refreshed(tokens["refresh_token"])
    _, again = jose.parts(refreshed["id_token"])
    assert (again["sid"], again["auth_time"]) == (claims["sid"], claims["auth_time"]) and "nonce" not in again
    listed = flow.app.get("/connect/sessions", bearer(refreshed["access_token"])).json()
    assert [(item["Browser"], item["ClientId"]) for item in listed if item["Id"] == flow.session] == [(True, None)]
    assert [(item["Browser"], item["Current"]) for item in listed if item["Id"] == claims["sid"]] == [(False, True)]


def test_the_tokens_of_a_jwt_client_say_when_and_how_the_user_signed_in(realm, world):
    """The same auth_time at every client of the browser."""
    flow = Flow(realm, "jwt")
    flow.sign_in(realm.user())
    world.time_travel(30)
    tokens = flow.tokens()
    access, identity = (jose.parts(tokens[name])[1] for name in ("access_token", "id_token"))
    assert access["auth_time"] == identity["auth_time"] <= access["iat"] - 29
    assert access["acr"] == identity["acr"]
    assert flow.app.userinfo(tokens["access_token"]).status == 200
    other = Flow(realm, "app-2")
    other.cookie = flow.cookie
    assert jose.parts(other.tokens()["id_token"])[1]["auth_time"] == identity["auth_time"]


@pytest.mark.parametrize("changes", [
    {"code": "pac_" + "A" * 43}, {"code": "x"}, {"code": "pac_" + "A" * 4096}, {"code_verifier": "x" * 43}, {"code_verifier": None},
    {"code_verifier": "x" * 42}, {"code_verifier": "x" * 129}, {"code_verifier": "%" * 43}, {"redirect_uri": REDIRECT + "/"},
])
def test_what_is_wrong_is_refused_alike_and_costs_nothing(flow, changes):
    """One body; afterwards the right request succeeds."""
    code = flow.code()
    answer = flow.exchange(changes.get("code", code), **{k: v for k, v in changes.items() if k != "code"})
    assert (answer.status, answer.json()) == (400, INVALID)
    assert flow.exchange(flow.verifier and code, code_verifier=challenge_of(flow.verifier)).json() == INVALID
    assert flow.exchange(code).status == 200


def test_a_code_is_its_clients(realm, flow):
    """Another public client, a confidential one with its own secret, another realm; then its own."""
    code = flow.code()
    for name in ("app-2", "api"):
        stranger = Flow(realm, name)
        stranger.verifier = flow.verifier
        assert stranger.exchange(code).json() == INVALID
    assert flow.exchange(code, redirect_uri=None).status == 200


def test_a_code_lives_for_a_minute(realm, flow, world):
    """By the database clock."""
    young, old = flow.code(), flow.code()
    world.time_travel(40)
    assert flow.exchange(young).status == 200
    world.time_travel(21)
    assert flow.exchange(old).json() == INVALID


def test_a_used_code_ends_its_session_when_its_client_presents_it_again(realm, flow, world):
    """With the right verifier only (RFC 6749 §4.1.2)."""
    code = flow.code()
    tokens = flow.exchange(code).json()
    assert flow.exchange(code, code_verifier="x" * 43).json() == INVALID
    stranger = Flow(realm, "app-2")
    stranger.verifier = flow.verifier
    assert stranger.exchange(code).json() == INVALID
    assert flow.app.userinfo(tokens["access_token"]).status == 200
    world.time_travel(30)
    assert flow.exchange(code).json() == INVALID
    assert flow.app.userinfo(tokens["access_token"]).status == 401
    assert flow.app.refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert any("authorization_code_reused" in row for row in world.admin.rows_of("audit_log", jose.parts(tokens["id_token"])[1]["sid"]))


@pytest.mark.parametrize("end", ["disable", "sign-out everywhere", "browser"])
def test_a_code_dies_with_the_sign_in_that_it_came_from(realm, flow, world, end):
    """Between the authorization response and the token request."""
    code = flow.code()
    if end == "disable":
        world.admin.call("set_user_enabled", realm.slug, flow.email, False)
    elif end == "browser":
        tokens = flow.tokens()
        answer = wire.exchange(
            flow.app.node.port, "DELETE", f"/connect/sessions/{flow.session}", {"Host": flow.host, **bearer(tokens["access_token"])})
        assert answer.status == 204
    else:
        world.admin.call("sign_out_everywhere", realm.slug, flow.email)
    assert flow.exchange(code).json() == INVALID
    assert flow.authorize().status == 200, "the browser is signed out"


def test_the_scope_is_the_codes_and_the_resource_may_be_narrowed(realm):
    """scope is ignored; a wider resource leaves the code unused."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    code = flow.code(scope="openid orders.read")
    wide = flow.exchange(code, resource="https://foreign.example")
    assert (wide.status, wide.error) == (400, "invalid_target")
    answer = flow.exchange(code, scope="nonsense forbidden.read", resource=realm.granted_resource)
    assert (answer.status, answer.json()["scope"]) == (200, "openid orders.read")
    assert "refresh_token" not in answer.json(), "offline_access was not asked for"


def test_a_missing_code_and_a_missing_permission_are_told(realm, flow):
    """invalid_request; unauthorized_client; unsupported for what is no grant."""
    assert flow.exchange(None).error == "invalid_request"
    assert Flow(realm, "no-refresh").exchange("x").error == "unauthorized_client"


def test_sessions_without_offline_access_end_with_the_browser(realm, flow):
    """The others stay."""
    stays, goes = flow.tokens(), flow.tokens(scope="openid email")
    keeper = flow.app.refreshed(stays["refresh_token"])
    answer = wire.exchange(
        flow.app.node.port, "DELETE", f"/connect/sessions/{flow.session}", {"Host": flow.host, **bearer(keeper["access_token"])})
    assert answer.status == 204
    assert flow.app.userinfo(goes["access_token"]).status == 401
    assert flow.app.userinfo(keeper["access_token"]).status == 200


def test_a_consent_is_asked_for_listed_and_taken_back(realm, world):
    """DELETE /connect/consents/{client_id} ends the client's sessions."""
    world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="explicit")
    world.settle()
    flow, own = Flow(realm, "app-2"), Flow(realm)
    email = realm.user()
    flow.sign_in(email)
    assert flow.authorize().status == 200
    members = flow.authorize(prompt="none")
    assert "error=consent_required" in members.header("location")
    world.cluster.sql(
        "SELECT set_config('postern.realm', u.realm_id::text, true), postern.give_consent(u.realm_id, u.id, c.id,"
        f" ARRAY['openid','email','offline_access'], ARRAY['{flow.app.client_id}']) FROM postern.user_account u"
        " JOIN postern.client c ON c.realm_id = u.realm_id"
        f" WHERE u.address_key = '{email.lower()}' AND c.client_id = '{flow.app.client_id}';")
    tokens = flow.tokens()
    own.cookie = flow.cookie
    token = own.tokens()["access_token"]
    (listed,) = own.app.get("/connect/consents", bearer(token)).json()
    assert (listed["ClientId"], set(listed["Scopes"])) == (flow.app.client_id, {"openid", "email", "offline_access"})
    path = f"/connect/consents/{flow.app.client_id}"
    assert wire.exchange(own.app.node.port, "DELETE", path, {"Host": own.host}).status == 401
    assert wire.exchange(own.app.node.port, "DELETE", path, {"Host": own.host, **bearer(token)}).status == 204
    assert wire.exchange(own.app.node.port, "DELETE", path, {"Host": own.host, **bearer(token)}).status == 404
    assert flow.app.userinfo(tokens["access_token"]).status == 401
    assert own.app.userinfo(token).status == 200
    world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="implicit")


def test_userinfo_reads_a_token_from_a_form_and_nothing_else_does(realm, flow):
    """RFC 6750 §2.2."""
    token = flow.tokens()["access_token"]
    assert flow.app.post("/connect/userinfo", {"access_token": token}).status == 200
    both = flow.app.post("/connect/userinfo", {"access_token": token}, bearer(token))
    assert (both.status, both.error) == (400, "invalid_request")
    assert flow.app.post("/connect/userinfo", {"access_token": "x"}).status == 401
    assert flow.app.get(f"/connect/userinfo?access_token={token}").status == 401
    form = {"Host": flow.host, "Content-Type": wire.FORM}
    for path in ("/connect/userinfo", "/connect/sessions", "/connect/passkey"):
        answer = wire.exchange(flow.app.node.port, "GET", path, form, wire.form_body({"access_token": token}))
        assert answer.status == 401
