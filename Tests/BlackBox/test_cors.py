"""Which web pages may read which answers."""

import pytest

from harness import authenticator, wire
from harness.app import bearer
from harness.approvals import ask, switch_on
from harness.codeflow import Flow, hosted
from harness.holder import holder

OURS, OTHERS, STRANGER = "https://web.a.example", "https://web.b.example", "https://evil.example"


@pytest.fixture(scope="module")
def realm(world):
    """Two clients with a web origin each."""
    made = hosted(world.realm())
    world.admin.call("put_web_origin", made.slug, made.client("app"), OURS)
    world.admin.call("put_web_origin", made.slug, made.client("app-2"), OTHERS)
    world.settle()
    return made


def preflight(realm, path, origin, method="POST"):
    """OPTIONS as a browser sends it."""
    return wire.exchange(realm.world.node.port, "OPTIONS", path, {
        "Host": realm.host, "Origin": origin, "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,dpop"})


def allowed(answer):
    """The origin that may read an answer; credentials never count."""
    assert answer.header("access-control-allow-credentials") is None
    origin = answer.header("access-control-allow-origin")
    assert (origin is None) or "Origin" in answer.header("vary")
    return origin


@pytest.mark.parametrize("path", [
    "/connect/token", "/connect/revoke", "/connect/userinfo", "/connect/passkey", "/connect/passkey/begin", "/connect/passkey/enroll",
    "/connect/totp", "/connect/sessions", "/connect/sessions/x", "/connect/account", "/connect/consents", "/connect/consents/x",
    "/api/account/native/otp/request", "/api/account/magic-link/request", "/api/app-info", "/connect/identifiers", "/connect/devices",
    "/connect/devices/self", "/connect/approvals", "/connect/approvals/x", "/connect/possession/open", "/connect/possession/result",
    "/connect/bc-authorize",
])
def test_a_preflight_is_answered_to_the_web_origins_of_the_realm(realm, path):
    """204, ten minutes; an origin that is not listed gets 204 without a header, which its browser takes as no."""
    for origin in (OURS, OTHERS):
        answer = preflight(realm, path, origin)
        assert (answer.status, allowed(answer), answer.header("access-control-max-age")) == (204, origin, "600"), answer
        assert answer.header("access-control-allow-headers") == "Authorization, Content-Type, DPoP, Traceparent, Tracestate, Baggage, Sentry-Trace"
        assert set(answer.header("access-control-allow-methods").split(", ")) <= {"GET", "HEAD", "POST", "PATCH", "DELETE"}
    for stranger in (STRANGER, "null", OURS.replace("https", "http"), OURS.replace("//", "//sub."), OURS + ":8443"):
        answer = preflight(realm, path, stranger)
        assert (answer.status, allowed(answer), answer.header("access-control-allow-methods")) == (204, None, None), (stranger, answer)


def test_an_app_in_a_web_view_may_read_answers_and_use_no_passkey(realm):
    """Capacitor and Ionic serve their pages from these origins; every such app has the same."""
    admin, app = realm.world.admin, realm.app("api")
    for origin in ("capacitor://localhost", "ionic://localhost"):
        assert allowed(preflight(realm, "/connect/token", origin)) is None
        admin.call("put_web_origin", realm.slug, realm.client("api"), origin)
        realm.world.settle()
        assert allowed(preflight(realm, "/connect/token", origin)) == origin
        answer = wire.exchange(realm.world.node.port, "GET", "/api/app-info", {"Host": realm.host, "Origin": origin})
        assert (answer.status, allowed(answer)) == (200, origin)
        who = holder(realm, "api")
        ceremony, right = who.app.ceremony(), "https://" + realm.host
        spoiled = authenticator.assertion(ceremony["options"], who.credential, origin=origin)
        assert who.app.redeem_passkey(ceremony, spoiled).status == 400
        ceremony = app.ceremony()
        assert app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], who.credential, origin=right)).status == 200
        admin.call("remove_web_origin", realm.slug, realm.client("api"), origin)
    for origin in ("capacitor://example.com", "capacitor://localhost:1", "file://", "app://localhost"):
        with pytest.raises(Exception):
            admin.call("put_web_origin", realm.slug, realm.client("api"), origin)


@pytest.mark.parametrize("path", [
    "/connect/par", "/connect/authorize", "/connect/introspect", "/connect/logout", "/magic-login", "/sign-in", "/sign-in/wait", "/undo/AAAA",
    "/v3/unify", "/token", "/api/v0/event/create_pending", "/p/AAAA",
])
def test_other_paths_are_for_no_web_page(realm, path):
    """No CORS header, also not for a listed origin."""
    answer = preflight(realm, path, OURS)
    assert (answer.status, allowed(answer)) == (405, None)
    answer = wire.exchange(realm.world.node.port, "POST", path, {"Host": realm.host, "Origin": OURS, "Content-Type": wire.FORM}, b"a=b")
    assert allowed(answer) is None


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/.well-known/jwks"])
def test_public_documents_are_for_every_web_page(realm, path):
    """Caches keep the answers apart."""
    for origin in (OURS, STRANGER):
        answer = wire.exchange(realm.world.node.port, "GET", path, {"Host": realm.host, "Origin": origin})
        assert (answer.status, allowed(answer)) == (200, origin)
        assert preflight(realm, path, origin, "GET").status == 204
    assert "Origin" in wire.exchange(realm.world.node.port, "GET", path, {"Host": realm.host}).header("vary")


def test_an_answer_is_for_the_web_origins_of_its_client(realm):
    """Of any client of the realm while the client is not known; errors too."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    answer = flow.exchange(flow.code(), {"Origin": OURS})
    assert (answer.status, allowed(answer)) == (200, OURS)
    assert answer.header("access-control-expose-headers") == "DPoP-Nonce, WWW-Authenticate, Retry-After"
    for origin in (OTHERS, STRANGER):
        answer = flow.exchange(flow.code(), {"Origin": origin})
        assert (answer.status, allowed(answer)) == (200, None), "served, and not for that page"
    tokens = flow.tokens()
    for origin, reader in ((OURS, OURS), (OTHERS, None), (STRANGER, None)):
        answer = flow.app.get("/connect/userinfo", {**bearer(tokens["access_token"]), "Origin": origin})
        assert (answer.status, allowed(answer)) == (200, reader)
    for origin, reader in ((OURS, OURS), (OTHERS, OTHERS), (STRANGER, None)):
        answer = flow.app.get("/connect/userinfo", {**bearer("x"), "Origin": origin})
        assert (answer.status, allowed(answer)) == (401, reader)
        refused = flow.app.post("/connect/token", {"grant_type": "nothing", "client_id": flow.app.client_id}, {"Origin": origin})
        assert (refused.status, allowed(refused)) == (400, OURS if origin == OURS else None)


def test_a_page_may_read_what_became_of_its_request_for_approval(world):
    """200 and errors; not for the origin of another client, nor for a stranger's."""
    realm = world.realm()
    switch_on(realm, "app", "app-2", public_clients=True)
    for client, origin in (("app", OURS), ("app-2", OTHERS)):
        world.admin.call("put_web_origin", realm.slug, realm.client(client), origin)
    world.settle()
    for origin, reader in ((OURS, OURS), (OTHERS, None), (STRANGER, None)):
        answer = ask(realm.app(), realm.user(), {"Origin": origin})
        assert (answer.status, allowed(answer)) == (200, reader), answer
        answer = ask(realm.app(), realm.user(), {"Origin": origin}, scope="")
        assert (answer.status, allowed(answer)) == (400, reader), answer


def test_without_an_origin_nothing_is_said(realm):
    """Apps outside browsers send none."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    answer = flow.exchange(flow.code())
    assert answer.header("vary") is None and allowed(answer) is None
