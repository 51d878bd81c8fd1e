"""Proofs of an address at their bounds: how long they count, what they open, and what is left of them."""

import pytest

from harness import jose, wire
from harness.app import bearer
from harness.codeflow import hosted
from harness.provider import third_party
from harness.sign_in_pages import counted_case, positive_control, Session  # pylint: disable=unused-import  # fixtures
from test_address_verification import prove, tokens
from test_audience import BODIES, ENDPOINTS
from test_third_party_clients import want


@pytest.fixture(scope="module")
def realm(world):
    """A realm whose client may ask for proofs."""
    made = hosted(world.realm(), offer_passkey=False)
    admin = world.admin
    admin.call("set_code_policy", made.slug, resend_cooldown="0")
    admin.call("set_approvals", made.slug, True)
    for name in ("app", "app-2"):
        admin.call("grant_permission", made.slug, made.client(name), variadic=["scp:verify:email"])
    made.limit("native-otp", "registrations", 1_000_000, per="1 minute", burst=1_000_000)
    world.settle()
    return made


def test_a_token_of_a_proof_is_dead_after_ten_minutes(realm, world):
    """Its ID token has expired with it."""
    session = prove(realm, "eleven@mail.example")
    document, claims = tokens(session)
    app, api = session.flow.app, realm.app("api")
    world.time_travel(540)
    assert app.userinfo(document["access_token"]).status == 200 and api.active(document["access_token"])
    world.time_travel(61)
    assert app.userinfo(document["access_token"]).status == 401 and not api.active(document["access_token"])
    assert claims["exp"] - claims["iat"] == document["expires_in"] == 600


@pytest.fixture(scope="module")
def proof_token(realm):
    """An access token of a proof."""
    return tokens(prove(realm, "endpoints@mail.example"))[0]["access_token"]


@pytest.mark.parametrize("method, path", ENDPOINTS, ids=[f"{method} {path}" for method, path in ENDPOINTS])
def test_a_proof_opens_no_account_endpoint(realm, proof_token, method, path):
    """401, before anything else of the request is read."""
    app = realm.app()
    target = path.format(passkey="x", session="00000000-0000-4000-8000-000000000000")
    answer = app.exchange(method, target, {"Content-Type": "application/json", **bearer(proof_token)}, BODIES.get((method, path)))
    assert answer.status == 401 and 'error="invalid_token"' in answer.header("www-authenticate"), answer
    assert app.userinfo(proof_token).status == 200


@pytest.mark.parametrize("what", ["address", "audience", "expiry", "no signature"])
def test_an_id_token_of_a_proof_that_was_altered_does_not_verify(realm, what):
    """The signature is over every claim, and the header names the algorithm of the key."""
    session = prove(realm, "tampered@mail.example")
    document, claims = tokens(session)
    header, payload, signature = document["id_token"].split(".")
    changed = {"address": {"email": "victim@mail.example"}, "audience": {"aud": realm.client("app-2")}, "expiry": {"exp": claims["exp"] + 86_400}}
    if what == "no signature":
        header, signature = jose.b64url(b'{"alg":"none"}'), ""
    else:
        payload = jose.b64url(wire.json.dumps({**claims, **changed[what]}).encode())
    with pytest.raises(Exception):
        jose.verify(f"{header}.{payload}.{signature}", session.flow.app.get("/.well-known/jwks").json())
    assert claims["aud"] == session.flow.app.client_id, "another client sees that it is not meant"


def test_authlib_refuses_an_id_token_that_is_not_what_was_issued(realm):
    """Altered, of another client, or ten minutes old; and takes the one that is right."""
    want("authlib")
    session = prove(realm, "authlib@mail.example")
    document, claims = tokens(session)
    keys, right = session.flow.app.get("/.well-known/jwks").json(), document["id_token"]
    header, _, signature = right.split(".")

    def altered(**changes):
        return f"{header}.{jose.b64url(wire.json.dumps({**claims, **changes}).encode())}.{signature}"

    with third_party("authlib_id_token_cli") as program:
        def made_of(token, client=session.flow.app.client_id, now=claims["iat"] + 1):
            program.tell(token=token, keys=keys, issuer=claims["iss"], client=client, nonce=claims["nonce"], now=now)
            return program.hear()

        assert made_of(right) == made_of(right, now=claims["exp"] - 1) == {"email": "authlib@mail.example"}
        assert made_of(altered(email="victim@mail.example")) == {"refused": "BadSignatureError"}
        assert made_of(altered(exp=claims["exp"] + 600), now=claims["exp"] + 1) == {"refused": "BadSignatureError"}
        assert made_of(right, client=realm.client("app-2")) == {"refused": "InvalidClaimError"}
        assert made_of(right, now=claims["exp"] + 1) == {"refused": "ExpiredTokenError"}


def test_a_proof_leaves_its_audit_row_alone(realm, world):
    """No row of the address once its time is over, by any number of them, and no content of a message that was sent."""
    count = ("SELECT count(*) FROM postern.address_verification p JOIN postern.realm r ON r.id = p.realm_id WHERE r.slug = '" + realm.slug + "'")
    users = "SELECT count(*) FROM postern.user_account"
    before = world.cluster.value(users)
    for number in range(5):
        tokens(prove(realm, f"left-{number}@mail.example"))
    world.settle_messages()
    assert world.cluster.value("SELECT count(*) FROM postern.message_outbox WHERE recipient LIKE 'left-%' AND num_nonnulls(payload, detail) > 0") == "0"
    assert int(world.cluster.value(count)) >= 5 and world.cluster.value(users) == before
    world.time_travel(2 * 86_400)
    world.sweep_until(count, "0")
    assert "left-" not in "".join(world.admin.rows_of("audit_log", "address_proven"))
    assert len(world.admin.rows_of("audit_log", "address_proven")) >= 5


def test_proofs_of_unknown_addresses_are_bounded_as_registrations_are(realm):
    """429, a page with what was typed; a client that proves is no way around the limit of a sign-in."""
    realm.limit("native-otp", "registrations", 3, per="1 hour", burst=3)
    try:
        seen = []
        for number in range(5):
            session = Session(realm, scope="openid verify:email")
            session.send(f"bounded-{number}@mail.example")
            seen.append((session.browser.answer.status, session.browser.page.step))
        assert seen[:3] == [(200, "code")] * 3 and seen[-1] == (429, "address"), seen
    finally:
        realm.limit("native-otp", "registrations", 1_000_000, per="1 minute", burst=1_000_000)
