"""Endpoints and proofs: where one counts and where it is ignored, and what is answered to each way of presenting a token."""

import re

import pytest

from harness import authenticator, wire
from harness.app import bearer
from harness.codeflow import Flow, hosted
from harness.dpop import (
    INVALID_TOKEN, DPoPApp, ProofKey, assert_bound, assert_error, assert_invalid, assert_no_nonce, assert_nonce_due, assert_token_refused, fields_of)
from harness.links import Links
from harness.moving_world import MovingWorld
from harness.service import service
from harness.settings import REPOSITORY

USERINFO = "/connect/userinfo"
ALGS = "ES256 EdDSA PS256 RS256"
#: Each protected endpoint: method, path, JSON, and what a right request is answered.
PROTECTED = [
    ("GET", USERINFO, None, 200), ("POST", USERINFO, None, 200), ("GET", "/connect/account", None, 200), ("PATCH", "/connect/account", {}, 200),
    ("GET", "/connect/sessions", None, 200), ("DELETE", "/connect/sessions", None, 204), ("DELETE", "/connect/sessions/none", None, 404),
    ("GET", "/connect/passkey", None, 200), ("POST", "/connect/passkey/enroll/begin", {}, 200), ("POST", "/connect/passkey/enroll", {}, 400),
    ("PATCH", "/connect/passkey/none", {"DisplayName": "x"}, 404), ("DELETE", "/connect/passkey/none", None, 404),
    ("POST", "/connect/totp/enroll/begin", {}, 200), ("POST", "/connect/totp/enroll", {}, 400), ("DELETE", "/connect/totp", None, (204, 404)),
    ("GET", "/connect/consents", None, 200), ("DELETE", "/connect/consents/none", None, 404),
    ("GET", "/connect/identifiers", None, 200), ("POST", "/connect/identifiers/begin", {}, 400), ("POST", "/connect/identifiers", {}, 400),
    ("PATCH", "/connect/identifiers/none", {}, (400, 404)), ("DELETE", "/connect/identifiers/none", None, 404),
]


@pytest.fixture
def mine(realm):
    """An app with its key, which repeats nothing."""
    return DPoPApp(realm.app(), obeys=False)


@pytest.fixture
def tokens(realm, mine):
    """Bound to its key."""
    return mine.bound(realm.user())


def ask(app, method, path, token, document=None, scheme="DPoP", **headers):
    """A protected request; `DPoP=None`: without a proof."""
    fields = {"Authorization": f"{scheme} {token}", **headers}
    if document is not None:
        return app.send_json(method, path, document, fields)
    if method == "POST":
        fields["Content-Type"] = wire.FORM
    return app.exchange(method, path, fields, b"" if method == "POST" else None)


@pytest.mark.parametrize("method, path, document, status", PROTECTED)
def test_a_bound_token_opens_an_endpoint_with_its_key_alone(realm, mine, tokens, method, path, document, status):
    """With a proof as always; as Bearer, without a proof, with another key's, with a bad and a used one: refused with the right error."""
    token = tokens["access_token"]
    assert_token_refused(ask(mine.plain, method, path, token, document, "Bearer"))
    proof = mine.proof(method, path, token)
    assert_token_refused(mine.plain.exchange(method, path, {"Authorization": f"Bearer {token}", "DPoP": proof, "Content-Type": "application/json"}, b"{}"))
    assert_token_refused(ask(mine.with_key(ProofKey()), method, path, token, document))
    assert_invalid(ask(mine, method, path, token, document, DPoP=None), protected=True)
    assert_invalid(ask(mine, method, path, token, document, DPoP="junk"), protected=True)
    assert_invalid(ask(mine, method, path, token, document, DPoP=mine.proof(method, path)), protected=True)
    assert_nonce_due(ask(mine, method, path, token, document, DPoP=mine.proof(method, path, token, payload={"iat": 1})), protected=True)
    unbound = mine.plain.sign_in(realm.user())["access_token"]
    assert_token_refused(ask(mine, method, path, unbound, document))
    proof = mine.proof(method, path, token)
    answer = ask(mine, method, path, token, document, DPoP=proof)
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    assert_no_nonce(answer)
    assert_invalid(ask(mine, method, path, token, document, DPoP=proof), protected=True)


def test_every_account_endpoint_of_the_routes_is_in_the_table():
    """A new one is looked at here too."""
    text = (REPOSITORY / "docs" / "wire.md").read_text(encoding="utf-8")
    wanted = set()
    for methods, path in re.findall(r"^### `([A-Z, ]+) (/connect/(?:userinfo|passkey|totp|sessions|consents|account|identifiers)\S*)`", text, re.M):
        wanted |= {(method, path.replace("{id}", "none")) for method in methods.split(", ")}
    wanted -= {("POST", "/connect/passkey/begin"), ("DELETE", "/connect/account")}
    assert wanted <= {(method, path) for method, path, _, _ in PROTECTED}, wanted - {(m, p) for m, p, _, _ in PROTECTED}


def test_an_account_is_deleted_with_a_proof_alone(realm, mine):
    """The one that ends all of it."""
    tokens = mine.bound(realm.user())
    token = tokens["access_token"]
    for answer in (ask(mine.plain, "DELETE", "/connect/account", token, scheme="Bearer"), ask(mine.with_key(ProofKey()), "DELETE", "/connect/account", token)):
        assert_token_refused(answer)
    assert mine.userinfo(token).status == 200
    assert mine.delete("/connect/account", bearer(token)).status == 204
    assert_token_refused(mine.userinfo(token))


def test_nothing_presented_is_told_both_schemes(mine):
    """Two fields, no error, no body; another scheme likewise."""
    for headers in ({}, {"Authorization": "Basic YTpi"}, {"Authorization": "Digest x"}):
        answer = mine.plain.get(USERINFO, headers)
        assert (answer.status, answer.body) == (401, b""), answer
        assert sorted(fields_of(answer, "WWW-Authenticate")) == ["Bearer", f'DPoP algs="{ALGS}"'], answer
        assert_no_nonce(answer)


def test_an_unbound_token_as_bearer_is_served_whatever_the_proof(realm, mine):
    """A junk `DPoP` field, a used one, two of them: ignored."""
    token = mine.plain.sign_in(realm.user())["access_token"]
    used = mine.proof("GET", USERINFO, token)
    for value in ("junk", "", used, used, ["junk", "junk"], mine.proof("GET", USERINFO, payload={"iat": 1})):
        answer = mine._once("GET", USERINFO, {"Authorization": f"Bearer {token}", "DPoP": value}, None, 10)  # pylint: disable=protected-access
        assert answer.status == 200, answer
        assert_no_nonce(answer)


@pytest.mark.parametrize("scheme", ["dpop", "DPOP", "dPoP", "DPoP ", "DPoP\t", " DPoP"])
def test_the_scheme_is_spelled_in_any_case(mine, tokens, scheme):
    """Blanks more or less are served or refused, never a fault."""
    token = tokens["access_token"]
    answer = mine.get(USERINFO, {"Authorization": f"{scheme} {token}", "DPoP": mine.proof("GET", USERINFO, token)})
    if scheme.strip() == scheme:
        assert answer.status == 200, answer
    assert answer.status in (200, 401), answer


def test_two_authorization_fields_are_refused(mine, tokens):
    """Of both schemes, in both orders."""
    token = tokens["access_token"]
    both = [f"DPoP {token}", f"Bearer {token}"]
    for values in (both, both[::-1], both[:1] * 2):
        answer = mine._once("GET", USERINFO, {"Authorization": values, "DPoP": mine.proof("GET", USERINFO, token)}, None, 10)  # pylint: disable=protected-access
        assert answer.status == 401, answer


def test_a_token_in_the_query_is_not_read_and_one_in_a_form_is_bearer(mine, tokens, realm):
    """RFC 6750 §2.2 knows no proof: a bound token there is refused with and without one; an unbound one is served."""
    token = tokens["access_token"]
    answer = mine.get(f"{USERINFO}?access_token={token}", {"DPoP": mine.proof("GET", USERINFO, token)})
    assert (answer.status, answer.body, len(fields_of(answer, "WWW-Authenticate"))) == (401, b"", 2), answer
    for proof in (None, mine.proof("POST", USERINFO, token)):
        assert_token_refused(mine.post(USERINFO, {"access_token": token}, {"DPoP": proof}))
    assert mine.plain.post(USERINFO, {"access_token": mine.plain.sign_in(realm.user())["access_token"]}).status == 200


def test_dead_and_foreign_tokens_are_one_answer(world, realm, mine):
    """Revoked, made up, cut, another realm's, and a right token with a wrong key: the same bytes."""
    other = world.realm()
    foreign = DPoPApp(other.app(), mine.key).bound(other.user())["access_token"]
    revoked, good = mine.bound(realm.user()), mine.bound(realm.user())["access_token"]
    assert mine.revoke(revoked["refresh_token"]).status == 200
    answers = [mine.userinfo(token) for token in (revoked["access_token"], foreign, "pat_x", good[:-1], good + "A", "e30.e30.e30")]
    answers.append(mine.with_key(ProofKey()).userinfo(good))
    for answer in answers:
        assert_token_refused(answer)
    assert len({str(answer.same_bytes()) for answer in answers}) == 1
    assert mine.userinfo(good).status == 200


@pytest.mark.slow
def test_a_token_after_its_end_is_an_invalid_token_and_no_bad_proof():
    """Expired, with a right proof."""
    moving = MovingWorld("dpop-expired")
    try:
        realm = moving.open().realm()
        for name in ("app", "jwt"):
            app = moving.app(realm, name, obeys=False)
            token = app.bound(realm.user())["access_token"]
            assert app.userinfo(token).status == 200
            moving.travel(3700)
            assert_token_refused(app.userinfo(token))
    finally:
        moving.close()


def test_a_sign_in_that_is_too_old_is_asked_for_in_the_scheme_of_the_token(world):
    """RFC 9470: the same challenge as ever, with the scheme DPoP for a bound token."""
    realm = world.realm()
    app = DPoPApp(realm.app(), obeys=False)
    tokens = app.bound(realm.user())
    world.time_travel(660)
    tokens = app.refreshed(tokens["refresh_token"])
    for method, path, document in (("POST", "/connect/passkey/enroll/begin", {}), ("DELETE", "/connect/passkey/none", None), ("POST", "/connect/totp/enroll/begin", {})):
        answer = ask(app, method, path, tokens["access_token"], document)
        (challenge,) = fields_of(answer, "WWW-Authenticate")
        assert answer.status == 401 and answer.json()["error"] == "insufficient_user_authentication", answer
        assert challenge.startswith('DPoP error="insufficient_user_authentication", ') and 'max_age="600"' in challenge, challenge
        assert_no_nonce(answer)


def test_a_service_accounts_bound_token_is_forbidden_in_the_scheme_of_the_token(realm):
    """403 at userinfo."""
    plain, _ = service(realm, "forbidden-worker", realm.granted_scope)
    app = DPoPApp(plain, obeys=False)
    token = app.token({"grant_type": "client_credentials", **app.credentials(), "scope": realm.granted_scope}).json()["access_token"]
    answer = app.userinfo(token)
    (challenge,) = fields_of(answer, "WWW-Authenticate")
    assert answer.status == 403 and challenge.startswith('DPoP error="insufficient_scope"'), answer


def test_a_token_for_an_api_opens_no_account_endpoint_in_either_scheme(realm):
    """The audience rule: bound and unbound, each in its own scheme."""
    app = DPoPApp(realm.app(), obeys=False)
    scope = f"openid offline_access {realm.granted_scope}"
    bound, unbound = app.bound(realm.user(), scope=scope)["access_token"], app.plain.sign_in(realm.user(), scope=scope)["access_token"]
    assert_token_refused(app.get("/connect/account", bearer(bound)))
    answer = app.plain.get("/connect/account", bearer(unbound))
    assert answer.status == 401 and fields_of(answer, "WWW-Authenticate")[0].startswith('Bearer error="invalid_token"'), answer


def test_the_path_that_was_asked_is_what_counts(realm, mine, tokens):
    """An id in the path: another id is another URL, and a letter that need not be encoded is the same."""
    token = tokens["access_token"]
    session = next(item["Id"] for item in mine.get("/connect/sessions", bearer(token)).json() if item["Current"])
    path = f"/connect/sessions/{session}"
    other = mine.proof("DELETE", "/connect/sessions/00000000-0000-4000-8000-000000000000", token)
    assert_invalid(mine.delete(path, {**bearer(token), "DPoP": other}), protected=True)
    spelled = mine.proof("DELETE", path, token, payload={"htu": mine.url(path)[:-1] + "%" + path[-1].encode().hex()})
    answer = mine.exchange("DELETE", path, {"Authorization": f"DPoP {token}", "DPoP": spelled})
    assert answer.status == 204, answer


def test_head_is_a_method_of_its_own(mine, tokens):
    """`htm` is the real method."""
    token = tokens["access_token"]
    for method, status in (("HEAD", 200), ("GET", 401)):
        answer = mine.exchange("HEAD", USERINFO, {"Authorization": f"DPoP {token}", "DPoP": mine.proof(method, USERINFO, token)})
        assert answer.status == status, answer


# -- endpoints that know tokens ------------------------------------------------------------------------


def test_introspection_tells_the_key(realm, mine, tokens, api):
    """A bound access token, a bound refresh token, and unbound ones as ever."""
    asked = api.introspect(tokens["access_token"]).json()
    assert (asked["active"], asked["token_type"], asked["cnf"]) == (True, "DPoP", {"jkt": mine.key.thumbprint})
    asked = api.introspect(tokens["refresh_token"]).json()
    assert asked["active"] and asked["cnf"] == {"jkt": mine.key.thumbprint} and asked["token_type"] == "refresh_token"
    plain = mine.plain.sign_in(realm.user())
    for token in (plain["access_token"], plain["refresh_token"]):
        asked = api.introspect(token).json()
        assert asked["active"] and "cnf" not in asked and asked["token_type"] in ("refresh_token", "Bearer")


def test_a_bound_refresh_token_is_revoked_without_a_proof(realm, mine):
    """Whoever finds a stolen one may end it."""
    for headers in ({}, {"DPoP": "junk"}):
        tokens = mine.bound(realm.user())
        answer = mine.plain.post("/connect/revoke", {"token": tokens["refresh_token"], **mine.credentials()}, headers)
        assert answer.status == 200
        assert mine.refresh(tokens["refresh_token"]).error == "invalid_grant"
        assert_token_refused(mine.userinfo(tokens["access_token"]))


def test_a_proof_is_ignored_where_no_token_is_given_or_taken(realm, mine, api, tokens):
    """Introspection, revocation, discovery, keys, pages, app-info."""
    junk = {"DPoP": "junk"}
    answers = [
        api.post("/connect/introspect", {"token": tokens["access_token"]}, {"Authorization": api.basic, **junk}),
        mine.plain.post("/connect/revoke", {"token": "prt_x", **mine.credentials()}, junk),
        *(mine.plain.get(path, junk) for path in (
            "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/.well-known/jwks", "/magic-login", "/api/app-info")),
    ]
    for answer in answers:
        # The page of a link that is none says so.
        assert answer.status == (400 if answer.body.startswith(b"<") else 200), answer
        assert_no_nonce(answer)


def test_discovery_tells_the_algorithms(mine):
    """In both documents."""
    for path in ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"):
        assert mine.plain.get(path).json()["dpop_signing_alg_values_supported"] == ALGS.split()


# -- requests that may bind what they give --------------------------------------------------------------


def optional(realm, app, email):
    """Requests where a proof is optional: path, how one is sent with some headers, and how many mails each causes."""
    flow = Flow(realm)

    def post(path, member):
        return path, lambda headers: app.post_json(path, {"Email": member}, headers)

    return {
        "otp/request": (*post("/api/account/native/otp/request", email), 1),
        "register": (*post("/api/account/native/register", realm.new_email()), 0),
        "magic-link/request": (*post("/api/account/magic-link/request", email), 1),
        "passkey/begin": ("/connect/passkey/begin", app.begin, 0),
        "par": ("/connect/par", lambda headers: flow.push(headers=headers), 0),
    }


@pytest.mark.parametrize("name", ["otp/request", "register", "magic-link/request", "passkey/begin", "par"])
def test_a_proof_at_a_request_is_checked_whole_or_not_at_all(world, name):
    """None is fine; a right one is fine once; a bad, an old and a used one is refused and the request does nothing."""
    realm = hosted(world.realm())
    open_host = realm.put_app("open", ["app"], registration="ExplicitEndpoint")
    app, email = DPoPApp(realm.app_on(open_host) if name == "register" else realm.app(), obeys=False), realm.user()
    path, send, mails = optional(realm, app, email)[name]
    status = 201 if name == "par" else 200
    for proof in ("junk", "", app.proof("GET", path), app.proof("POST", path + "x"), [app.proof("POST", path)] * 2):
        assert_invalid(send({"DPoP": proof}))
    assert_nonce_due(send({"DPoP": app.proof("POST", path, payload={"iat": 1})}))
    nonce = assert_nonce_due(send({"DPoP": app.proof("POST", path, nonce="x")}))
    proof = app.proof("POST", path, nonce=nonce, payload={"iat": 1})
    assert send({"DPoP": proof}).status == status
    assert_invalid(send({"DPoP": proof}))
    assert send({"DPoP": None}).status == status
    if mails:
        world.mailbox.wait(email, 2 * mails)
        assert len(world.mailbox.to(email)) == 2 * mails, "a refused request sent a mail"


@pytest.mark.parametrize("grant", ["code", "link", "passkey", "authorization code", "service", "refresh"])
def test_a_used_proof_is_refused_at_every_grant(world, grant):
    """And what was presented with it is good with a new one."""
    realm = hosted(world.realm())
    app = DPoPApp(realm.app(), obeys=False)
    links, flow = Links(app.plain), Flow(realm)
    if grant == "code":
        asked = app.plain.request_code(realm.user())
        form = app.redeem_form(asked.code, handle=asked.handle)
    elif grant == "link":
        form = links.redeem_form(links.link(realm.user()))
    elif grant == "passkey":
        _, credential = app.plain.enroll(app.plain.sign_in(realm.user())["access_token"])
        ceremony = app.plain.ceremony()
        form = app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], credential))
    elif grant == "authorization code":
        flow.sign_in(realm.user())
        form = {"grant_type": "authorization_code", **app.credentials(), "code": flow.code(), "redirect_uri": flow.redirect_uri, "code_verifier": flow.verifier}
    elif grant == "service":
        app = DPoPApp(service(realm, "replayed", realm.granted_scope)[0], obeys=False)
        form = {"grant_type": "client_credentials", **app.credentials(), "scope": realm.granted_scope}
    else:
        form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": app.bound(realm.user())["refresh_token"]}
    token = app.with_key(app.key).bound(realm.user())["access_token"] if grant != "service" else None
    used = app.proof()
    if token is None:
        assert_bound(app.token(form, {"DPoP": used}), app.key)
    else:
        spent = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": app.bound(realm.user())["refresh_token"]}
        assert_bound(app.token(spent, {"DPoP": used}), app.key)
    for _ in range(3):
        assert_invalid(app.token(form, {"DPoP": used}))
    assert_bound(app.token(form), app.key)


def test_web_pages_of_the_client_may_read_a_challenge_and_strangers_may_not(world):
    """`DPoP-Nonce` and `WWW-Authenticate` are exposed; for another origin there is no CORS header, and never a 403."""
    realm = hosted(world.realm())
    world.admin.call("put_web_origin", realm.slug, realm.client("app"), "https://web.a.example")
    world.settle()
    app = DPoPApp(realm.app(), obeys=False)
    tokens = app.bound(realm.user())
    for origin, may in (("https://web.a.example", True), ("https://evil.example", False)):
        form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]}
        stale = {"iat": 1}
        answers = [
            (app.token(form, {"Origin": origin, "DPoP": app.proof(payload=stale)}), False),
            (app.get(USERINFO, {"Origin": origin, **bearer(tokens["access_token"]), "DPoP": app.proof("GET", USERINFO, tokens["access_token"], payload=stale)}), True),
        ]
        for answer, protected in answers:
            assert_nonce_due(answer, protected)
            assert answer.header("access-control-allow-origin") == (origin if may else None), answer
            exposed = (answer.header("access-control-expose-headers") or "").split(", ")
            assert ({"DPoP-Nonce", "WWW-Authenticate"} <= set(exposed)) == may


def test_the_challenge_is_what_clients_look_for(mine, tokens):
    """One field that begins with the error, ASCII, each member quoted: Auth0's SDKs match its text."""
    for answer in (mine.get(USERINFO, {**bearer(tokens["access_token"]), "DPoP": "junk"}), mine.userinfo("pat_x")):
        (field,) = fields_of(answer, "WWW-Authenticate")
        assert field.isascii() and re.match(r'DPoP error="[a-z_]+", error_description="[^"]+", algs="[^"]+"$', field), field
        assert "DPoP error" in field and "nonce" not in field
    assert_error(mine.userinfo("pat_x"), 401, INVALID_TOKEN, "DPoP")
