"""Introspection for resource servers: whose tokens they see, as JSON and as a JWT (RFC 9701), and the keys that verify it."""

import json
import subprocess

import pytest

from harness import jose, report, settings
from harness.app import bearer
from harness.ledger import LEDGER
from harness.service import granted, service
from test_key_rotation import rotated

SIGNED = "application/token-introspection+jwt"
OTHER_SCOPE, OTHER = "stock.read", "https://stock.example/api"


@pytest.fixture(scope="module")
def server(realm):
    """A resource server for the orders; there is another one, for the stock."""
    admin = realm.world.admin
    admin.call("put_scope", realm.slug, OTHER_SCOPE, resources=[OTHER])
    for name in ("app", "jwt"):
        admin.call("grant_permission", realm.slug, realm.client(name), variadic=[f"scp:{OTHER_SCOPE}"])
    realm.put_client("orders", "ept:introspection", client_type="confidential")
    realm.secrets["orders"] = LEDGER.add("client_secret", admin.call("rotate_client_secret", realm.slug, realm.client("orders")))
    admin.call("put_resource_server", realm.slug, realm.client("orders"), [realm.granted_resource])
    realm.world.settle()
    return realm.app("orders")


def signed(app, token, accept=SIGNED):
    """Introspects with an Accept header; the raw answer."""
    return app.post("/connect/introspect", {"token": token}, {"Authorization": app.basic, "Accept": accept})


def keys(app):
    """The realm's JWKS."""
    return app.get("/.well-known/jwks").json()


@pytest.mark.parametrize("client", ["app", "jwt"])
def test_a_resource_server_sees_the_tokens_for_it_and_its_own_part_of_their_audience(realm, server, client):
    app, email = realm.app(client), realm.user()
    for scope, audience in (
            (realm.granted_scope, realm.granted_resource), (OTHER_SCOPE, None), (f"{realm.granted_scope} {OTHER_SCOPE}", realm.granted_resource),
            ("", None)):
        tokens = app.sign_in(email, scope=f"openid offline_access {scope}".strip())
        everything = realm.app("api").introspect(tokens["access_token"]).json()
        assert everything["active"], "a client without resources sees it"
        seen = server.introspect(tokens["access_token"]).json()
        assert seen == ({**everything, "aud": audience} if audience else {"active": False}), scope
        assert server.introspect(tokens["refresh_token"]).json() == {"active": False}, "a refresh token is no access token"


def test_a_refresh_token_is_told_as_what_it_is_to_its_client_and_to_one_without_resources(realm, server):
    """An API that introspects what it was sent never takes it for an access token (RFC 7662 §4)."""
    admin = realm.world.admin
    admin.call("put_client", realm.slug, realm.client("other-api"), client_type="confidential")
    own = realm.app("other-api")
    tokens = own.sign_in(realm.user(), scope=f"openid offline_access {realm.granted_scope}")
    for asking in (own, realm.app("api")):
        told = asking.introspect(tokens["refresh_token"]).json()
        assert (told["active"], told["token_type"], told["aud"]) == (True, "refresh_token", realm.granted_resource), told
        assert asking.introspect(tokens["access_token"]).json()["token_type"] == "Bearer"
    assert server.introspect(tokens["refresh_token"]).json() == {"active": False}
    admin.call("grant_permission", realm.slug, own.client_id, variadic=["ept:introspection"])
    admin.call("put_resource_server", realm.slug, own.client_id, [OTHER])
    realm.world.settle()
    try:
        assert own.introspect(tokens["refresh_token"]).json()["active"] is True, "its own, whatever it serves"
    finally:
        admin.call("put_resource_server", realm.slug, own.client_id, [])
        admin.call("revoke_permission", realm.slug, own.client_id, variadic=["ept:introspection"])
        realm.world.settle()


def test_no_resources_is_every_token_again(realm, server):
    token = realm.app().sign_in(realm.user(), scope=f"openid {OTHER_SCOPE}")["access_token"]
    assert not server.active(token)
    realm.world.admin.call("put_resource_server", realm.slug, server.client_id, [])
    realm.world.settle()
    try:
        assert server.introspect(token).json()["aud"] == OTHER
    finally:
        realm.world.admin.call("put_resource_server", realm.slug, server.client_id, [realm.granted_resource])
        realm.world.settle()


def test_an_active_answer_has_the_tokens_identity(realm):
    tokens = realm.app("jwt").sign_in(realm.user())
    claims = jose.parts(tokens["access_token"])[1]
    seen = realm.app("api").introspect(tokens["access_token"]).json()
    assert {name: seen[name] for name in ("jti", "acr", "amr", "auth_time", "sub", "exp", "iat", "client_id", "scope", "iss", "aud")} == {
        name: claims[name] for name in ("jti", "acr", "amr", "auth_time", "sub", "exp", "iat", "client_id", "scope", "iss", "aud")}
    one, two = (realm.app().sign_in(realm.user())["access_token"] for _ in "ab")
    assert len({realm.app("api").introspect(token).json()["jti"] for token in (one, one, two)}) == 2


def test_an_access_token_is_complete(realm):
    """RFC 9068 §2.2, for a user and for a client that acts for itself."""
    required = {"iss", "exp", "aud", "sub", "client_id", "iat", "jti", "scope"}
    header, claims = jose.verify_es256(realm.app("jwt").sign_in(realm.user())["access_token"], keys(realm.app()))
    assert header["typ"] == "at+jwt" and required | {"auth_time", "acr", "amr"} <= set(claims)
    robot, account = service(realm, "robot", access_token_type="jwt")
    header, claims = jose.verify_es256(granted(robot)["access_token"], keys(realm.app()))
    assert header["typ"] == "at+jwt" and required - {"scope"} <= set(claims) and claims["sub"] == account
    assert not {"auth_time", "acr", "amr", "sid"} & set(claims), "nobody signed in"
    seen = realm.app("api").introspect(granted(robot)["access_token"]).json()
    assert seen["jti"] and not {"auth_time", "acr", "amr", "sid"} & set(seen)


def test_a_signed_answer_says_who_asked_whom_and_nothing_that_would_make_it_another_token(realm, api, app):
    token = app.sign_in(realm.user())["access_token"]
    answer = signed(api, token)
    assert answer.status == 200 and answer.header("content-type") == SIGNED and "no-store" in answer.header("cache-control"), answer
    header, claims = jose.verify_es256(answer.body.decode(), keys(api))
    assert header["typ"] == "token-introspection+jwt"
    assert set(claims) == {"iss", "aud", "iat", "token_introspection"}
    assert (claims["iss"], claims["aud"]) == (realm.issuer, api.client_id)
    assert claims["token_introspection"] == api.introspect(token).json()


def test_joserfc_verifies_a_signed_answer_by_the_published_keys(realm, api, app):
    if not (settings.CLIENTS / "joserfc").exists():
        report.say("resource servers: joserfc is absent: scripts/test installs it to .build/clients, or set POSTERN_CLIENTS")
        pytest.skip("joserfc is absent")
    token = app.sign_in(realm.user())["access_token"]
    program = (
        "import json, sys\n"
        "from joserfc import jwt\n"
        "from joserfc.jwk import KeySet\n"
        "told = json.load(sys.stdin)\n"
        "read = jwt.decode(told['token'], KeySet.import_key_set(told['keys']), algorithms=['ES256'])\n"
        "jwt.JWTClaimsRegistry(iss={'essential': True, 'value': told['iss']}, aud={'essential': True, 'value': told['aud']},\n"
        "                      iat={'essential': True}).validate(read.claims)\n"
        "print(json.dumps([read.header, read.claims]))\n")
    told = {"token": signed(api, token).body.decode(), "keys": keys(api), "iss": realm.issuer, "aud": api.client_id}
    done = subprocess.run(
        ["/usr/bin/python3", "-c", program], input=json.dumps(told), capture_output=True, text=True, timeout=60,
        env={"PYTHONPATH": str(settings.CLIENTS), "PATH": "/usr/bin:/bin"}, check=False)
    assert done.returncode == 0, done.stderr
    header, claims = json.loads(done.stdout)
    assert header["typ"] == "token-introspection+jwt" and claims["token_introspection"]["active"] is True


@pytest.mark.parametrize("algorithm", ["RS256", "EdDSA"])
def test_the_callers_algorithm_signs(world, algorithm):
    realm = world.realm("signs")
    caller = realm.put_client("api", signing_alg=algorithm)
    token = realm.app().sign_in(realm.user())["access_token"]
    rotated(world, realm, "--alg", algorithm, "--now")
    header, _ = jose.verify(signed(caller, token).body.decode(), keys(caller))
    assert header["alg"] == algorithm
    assert algorithm in caller.get("/.well-known/openid-configuration").json()["introspection_signing_alg_values_supported"]


def test_an_inactive_token_is_inactive_under_a_signature_too(realm, api, app, server):
    for caller, token in ((api, "nonsense"), (api, "pat_AAAA"), (server, app.sign_in(realm.user())["access_token"])):
        _, claims = jose.verify_es256(signed(caller, token).body.decode(), keys(api))
        assert claims["token_introspection"] == {"active": False}


@pytest.mark.parametrize("accept,is_signed", [
    (SIGNED, True), ("*/*", False), ("application/json", False), (f"{SIGNED};q=0.9, application/json;q=0.8", True),
    (f"{SIGNED};q=0.8, application/json;q=0.9", False), (f"{SIGNED}, application/json", False), ("application/jwt", False),
    ("text/html", False), (";q=1;,,;;", False), ("", False)])
def test_the_form_of_the_answer_is_negotiated(realm, api, accept, is_signed):
    answer = signed(api, "nonsense", accept)
    assert answer.status == 200, answer
    assert answer.header("content-type").startswith(SIGNED if is_signed else "application/json")


def test_errors_stay_json(api):
    """A wrong secret, and no token."""
    for parameters, headers, status, error in (
            ({"token": "x", "client_id": api.client_id, "client_secret": "wrong"}, {}, 401, "invalid_client"),
            ({}, {"Authorization": api.basic}, 400, "invalid_request")):
        answer = api.post("/connect/introspect", parameters, {**headers, "Accept": SIGNED})
        assert (answer.status, answer.error) == (status, error)
        assert answer.header("content-type").startswith("application/json")
        assert answer.same_bytes() == api.post("/connect/introspect", parameters, headers).same_bytes()


def test_a_signed_answer_is_no_token(realm, api, app):
    """Not an access token, not a client assertion; that it is no ID token, IDTokenHintTests say."""
    text = signed(api, app.sign_in(realm.user())["access_token"]).body.decode()
    assert app.userinfo(text).status == 401
    assert app.get("/connect/account", bearer(text)).status == 401
    assert not api.active(text)
    kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    answer = app.post("/connect/introspect", {
        "token": "x", "client_id": api.client_id, "client_assertion": text, "client_assertion_type": kind})
    assert answer.status == 401 and answer.error == "invalid_client", answer


def test_the_keys_are_at_two_paths_with_one_tag(api):
    one, two = api.get("/.well-known/jwks"), api.get("/.well-known/jwks.json")
    assert (one.status, one.body, one.header("etag")) == (two.status, two.body, two.header("etag"))
    assert one.status == 200 and one.header("etag")[0] == '"' and "max-age=300" in one.header("cache-control")


@pytest.mark.parametrize("path", ["/.well-known/jwks", "/.well-known/jwks.json", "/.well-known/openid-configuration"])
def test_a_document_that_is_known_is_not_sent_again(api, path):
    tag = api.get(path).header("etag")
    for sent, status in (
            (tag, 304), (f'"a", {tag}', 304), (f"W/{tag}", 304), (f'"a,b", W/"c" , W/{tag}', 304), ("*", 304), ('"stale"', 200),
            ('W/"stale"', 200), (tag.strip('"'), 200), ("", 200)):
        answer = api.get(path, {"If-None-Match": sent})
        assert answer.status == status, (sent, answer)
        assert answer.header("etag") == tag
        assert (answer.body == b"") == (status == 304)
