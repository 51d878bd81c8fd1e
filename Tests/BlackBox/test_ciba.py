"""CIBA (poll): what a client may ask for, and what its polls are told."""

import base64

import pytest

from harness import jose, signing, totp
from harness.approvals import CIBA, INVALID, Device, approved, ask, error, form, poll, switch_on
from harness.clock import AT_ONCE
from harness.dpop import DPoPApp
from harness.ledger import LEDGER
from harness.settings import UNIFORM_DEADLINE_MS
from harness.volley import token_request, volley

WIDTH = 48


@pytest.fixture(scope="module")
def realm(world):
    """A realm with approvals, for the public client `app` and the confidential one `api`."""
    made = world.realm("ciba")
    switch_on(made, "app", "app-2", "api", public_clients=True)
    world.admin.call("put_scope", made.slug, "openid")
    return made


@pytest.fixture
def bff(realm):
    """A confidential client."""
    return realm.app("api")


@pytest.fixture
def device(realm, email):
    """A trusted device of this test's user."""
    return Device(realm.app(), realm, email)


def test_a_client_asks_and_everybody_is_answered_alike(realm, bff, email):
    """CIBA Core 1.0 section 7.3; known, unknown, without a device, disabled."""
    disabled = realm.user(enabled=False)
    owner = Device(realm.app(), realm, realm.user())
    new = Device(realm.app(), realm, realm.user(), probation="1 hour")
    answers = [ask(bff, hint) for hint in (owner.email, email, disabled, new.email, realm.new_email(), "+4915112345678")]
    for answer in answers:
        assert answer.status == 200 and "no-store" in answer.header("cache-control"), answer
        document = answer.json()
        assert document.pop("auth_req_id").startswith("pbr_") and len(answer.json()["auth_req_id"]) <= 1024 and 10 <= int(document.pop("match_number")) <= 99
        assert document == {"expires_in": 120, "interval": 5}
        assert answer.seconds * 1000 >= UNIFORM_DEADLINE_MS - 1
    assert {frozenset(name.lower() for name, _ in answer.headers) for answer in answers} == {frozenset(name.lower() for name, _ in answers[0].headers)}
    polled = [poll(bff, answer.json()) for answer in answers]
    assert len({(answer.status, answer.body) for answer in polled}) == 1
    assert error(polled[0]) == "authorization_pending"


def refused(app, more, status, code):
    """A request that is refused, as told."""
    answer = app.post("/connect/bc-authorize", {**form(app), **more})
    assert (answer.status, answer.json()["error"]) == (status, code), (more, answer)


MALFORMED = [
    ({"scope": None}, "invalid_request"), ({"scope": ""}, "invalid_request"), ({"scope": "email"}, "invalid_request"),
    ({"scope": "openid nonsense"}, "invalid_scope"), ({"scope": "openid forbidden.read"}, "invalid_request"),
    ({"scope": "openid switched.off"}, "invalid_scope"), ({"resource": "https://forbidden.example/api"}, "invalid_target"),
    ({"login_hint": None}, "invalid_request"), ({"login_hint": ""}, "invalid_request"),
    ({"id_token_hint": "x"}, "invalid_request"), ({"login_hint": None, "id_token_hint": "x"}, "invalid_request"),
    ({"login_hint_token": "x"}, "invalid_request"), ({"request": "x"}, "invalid_request"),
    *(({"login_hint": hint}, "invalid_request") for hint in (
        "ada", "ada @x.example", "ada@x .example", "a" * 250 + "@x.example", "491701234567", "+0491701234567", "+49 170 1234567",
        "8A6D3D4E-0000-4000-8000-000000000000", "8a6d3d4e", "\u0661\u0662@x.example")),
    *(({"binding_message": text}, "invalid_binding_message") for text in ("x" * 65, "a\nb", "a\u202eb", "a\u2066b", "a\x7fb", "a\u2028b")),
    *(({"requested_expiry": text}, "invalid_request") for text in ("29", "301", "1e2", "-1", "+60", " 60", "60.0", str(2**63), "0x3c")),
    *(({"event": text}, "invalid_request") for text in ("login", "A" * 33, "A B", "Ä")),
    ({"acr_values": "phr"}, "unmet_authentication_requirements"), ({"acr_values": "nonsense"}, "unmet_authentication_requirements"),
]


def test_what_is_malformed_is_refused_whoever_is_meant(bff, email):
    """Independent of any account; a right request after every twenty-five."""
    for number, (more, code) in enumerate(MALFORMED):
        refused(bff, {"login_hint": email, **more}, 400, code)
        if number % 25 == 24:
            assert ask(bff, email).status == 200
    assert ask(bff, email).status == 200


GOOD = [
    {"scope": "openid offline_access email"}, {"binding_message": "x" * 64}, {"binding_message": "Pay 5 € 👩‍👩‍👧 مرحبا"}, {"requested_expiry": "30"},
    {"requested_expiry": "300"}, {"event": "TRANSACTION_2"}, {"user_code": "x", "client_notification_token": "y", "other": "z"},
    {"acr_values": "urn:postern:acr:1"}, {"acr_values": "phr urn:postern:acr:2"}, {"binding_message": "<b>hi</b>"},
]


@pytest.mark.parametrize("more", GOOD, ids=str)
def test_what_is_right_is_taken(bff, email, more):
    """The bounds themselves, and what is ignored."""
    answer = ask(bff, email, **more)
    assert answer.status == 200 and answer.json()["expires_in"] == int(more.get("requested_expiry", 120))


def test_a_public_client_has_a_number_and_no_words(world, realm, app, email):
    """Its message would be a stranger's text on the owner's device."""
    assert 10 <= int(ask(app, email).json()["match_number"]) <= 99
    refused(app, {"login_hint": email, "binding_message": "hi"}, 400, "invalid_binding_message")
    refused(app, {"login_hint": email, "event": "PAY"}, 400, "invalid_request")
    with pytest.raises(Exception, match="public"):
        world.admin.call("put_approval_client", realm.slug, app.client_id, False)


def test_a_confidential_client_may_do_without_the_number(world, realm, email):
    """admin.put_approval_client."""
    plain = realm.put_client("plain", "gt:" + CIBA, client_type="confidential")
    plain.secret = LEDGER.add("client_secret", world.admin.call("rotate_client_secret", realm.slug, plain.client_id))
    world.admin.call("put_approval_client", realm.slug, plain.client_id, False)
    world.settle()
    device = Device(plain, realm, email)
    asked = approved(plain, device)
    assert "match_number" not in asked
    assert poll(plain, asked).status == 200
    asked = ask(plain, email).json()
    assert device.answer(device.item(), number="42").status == 200, "a number that is not needed is ignored"
    assert poll(plain, asked).status == 200


def test_who_may_not_ask(world, realm, app, bff, email):
    """Credentials first, then the permission and the switches: the same bytes for each."""
    assert app.post("/connect/bc-authorize", {"scope": "openid", "login_hint": email}).status == 401
    wrong = bff.post("/connect/bc-authorize", {**form(bff), "client_secret": "wrong", "login_hint": email})
    assert (wrong.status, wrong.json()["error"]) == (401, "invalid_client")
    both = bff.post("/connect/bc-authorize", {**form(bff), "login_hint": email}, {"Authorization": bff.basic})
    assert (both.status, both.json()["error"]) == (400, "invalid_request")
    assert app.post("/connect/bc-authorize", {**form(app), "client_secret": "x", "login_hint": email}).status == 401
    refusals = [ask(realm.app("jwt"), email)]
    other = world.realm("cibaoff")
    switch_on(other, "app", "api")
    refusals.append(ask(other.app(), email))
    world.admin.call("set_approvals", other.slug, False)
    world.settle()
    refusals.append(ask(other.app("api"), email))
    assert {(answer.status, answer.body) for answer in refusals} == {(400, refusals[0].body)}
    assert refusals[0].json()["error"] == "unauthorized_client"
    assert bff.get("/connect/bc-authorize").status == 405
    assert bff.post_json("/connect/bc-authorize", form(bff)).status == 400
    assert bff.exchange("POST", "/connect/bc-authorize", {"Content-Type": "application/x-www-form-urlencoded"}, b"a=" + b"x" * 65536).status == 413


def test_discovery_has_the_endpoint_while_approvals_are_on(world, realm, app):
    """CIBA Core 1.0 section 4."""
    document = app.get("/.well-known/openid-configuration").json()
    assert document["backchannel_authentication_endpoint"] == f"{realm.issuer}/connect/bc-authorize"
    assert document["backchannel_token_delivery_modes_supported"] == ["poll"]
    assert document["backchannel_user_code_parameter_supported"] is False
    assert CIBA in document["grant_types_supported"]
    off = world.realm("cibanone").app().get("/.well-known/openid-configuration").json()
    assert not [name for name in off if name.startswith("backchannel_authentication") or name.startswith("backchannel_token")]
    assert CIBA not in off["grant_types_supported"]


def test_an_id_token_of_the_client_is_a_hint(realm, app, bff, email):
    """Also an expired one; none of another client, of another key, nor an access token."""
    device = Device(app, realm, email)
    tokens = app.sign_in(email)
    asked = ask(app, None, id_token_hint=tokens["id_token"])
    assert asked.status == 200 and device.item()["ClientId"] == app.client_id
    header, payload = (base64.urlsafe_b64decode(part + "==") for part in tokens["id_token"].split(".")[:2])
    forged = signing.Key().sign(header.decode(), payload.decode())
    unsigned = ".".join([jose.b64url(b'{"alg":"none"}'), tokens["id_token"].split(".")[1], ""])
    jwt = realm.app("jwt").sign_in(email)["access_token"]
    for hint in (forged, unsigned, tokens["access_token"], jwt, tokens["id_token"][:-2]):
        refused(app, {"id_token_hint": hint}, 400, "invalid_request")
    refused(bff, {"id_token_hint": tokens["id_token"]}, 400, "invalid_request")


def test_the_handle_is_sealed_and_belongs_to_its_client_and_realm(world, realm, app, bff, email):
    """One body for every wrong one."""
    asked = ask(bff, email).json()
    handle = asked["auth_req_id"]
    sealed = base64.urlsafe_b64decode(handle.removeprefix("pbr_") + "==")
    assert len(handle) <= 1024 and email.encode() not in sealed and b"openid" not in sealed
    other = world.realm("cibaother")
    switch_on(other, "app", "api", public_clients=True)
    changed = handle[:60] + ("A" if handle[60] != "A" else "B") + handle[61:]
    answers = [poll(app, handle), poll(other.app("api"), handle), poll(bff, changed), poll(bff, "pbr_x"), poll(bff, "x" * 2000), poll(bff, "pas_" + handle[4:])]
    assert {(answer.status, answer.body) for answer in answers} == {(400, answers[0].body)} and answers[0].json() == INVALID
    assert error(poll(bff, asked)) == "authorization_pending"


def test_polling_keeps_its_interval(world, bff, email):
    """Pending, slow_down, and five seconds longer with each, up to a minute."""
    asked = ask(bff, email, requested_expiry="300").json()
    assert error(poll(bff, asked)) == "authorization_pending"
    world.time_travel(5)
    assert error(poll(bff, asked)) == "authorization_pending"
    world.time_travel(AT_ONCE)
    for _ in range(7):
        assert error(poll(bff, asked)) == "slow_down"
    world.time_travel(20 - AT_ONCE)
    assert error(poll(bff, asked)) == "slow_down", "five seconds more each time: forty"
    world.time_travel(26)
    assert error(poll(bff, asked)) == "authorization_pending", "five seconds more each time: forty-five"
    for _ in range(5):
        assert error(poll(bff, asked)) == "slow_down"
    world.time_travel(61)
    assert error(poll(bff, asked)) == "authorization_pending", "never longer than a minute"


def test_an_approval_signs_in_once(api, bff, device):
    """As asked for, however early the poll; scope at the token endpoint means nothing."""
    asked = approved(bff, device, scope="openid offline_access email")
    answer = poll(bff, asked, scope="profile", acr_values="phr")
    assert answer.status == 200, answer
    tokens = answer.json()
    assert set(tokens["scope"].split()) == {"openid", "offline_access", "email"} and "refresh_token" in tokens
    claims = jose.parts(tokens["id_token"])[1]
    assert claims["amr"] == ["pop", "mca"] and claims["acr"] == "urn:postern:acr:1" and claims["aud"] == bff.client_id
    assert claims["auth_time"] <= claims["iat"] and api.active(tokens["access_token"])
    assert bff.refresh(tokens["refresh_token"]).status == 200
    assert poll(bff, asked).json() == INVALID
    assert "refresh_token" not in poll(bff, approved(bff, device)).json()


def test_auth_time_is_that_of_the_approval(world, bff, device):
    """Not of the poll."""
    asked = approved(bff, device, requested_expiry="300")
    world.time_travel(200)
    claims = jose.parts(poll(bff, asked).json()["id_token"])[1]
    assert 199 <= claims["iat"] - claims["auth_time"] <= 250, claims


@pytest.mark.parametrize("decision", ["deny", "report", "number"])
def test_a_refusal_is_told_at_the_next_poll(bff, device, decision):
    """Denied, reported, or a wrong number."""
    asked = ask(bff, device.email).json()
    assert error(poll(bff, asked)) == "authorization_pending"
    item = device.item()
    if decision == "number":
        wrong = "11" if asked["match_number"] != "11" else "12"
        assert device.answer(item, number=wrong).json() == {"error": "number_mismatch"}
    else:
        assert device.answer(item, decision).status == 200
    assert error(poll(bff, asked)) == "access_denied"
    assert error(poll(bff, asked)) == "access_denied"


def test_what_is_past_its_time_has_expired(world, bff, device):
    """Used or not, and when its row is gone."""
    unused = ask(bff, device.email, requested_expiry="30").json()
    device.item()
    used = approved(bff, device, hint=device.email.upper(), event="OTHER")
    assert poll(bff, used).status == 200
    late = approved(bff, device, event="LATE")
    world.time_travel(119)
    assert error(poll(bff, unused)) == "expired_token"
    world.time_travel(2)
    assert error(poll(bff, used)) == error(poll(bff, late)) == "expired_token"


def test_an_approval_of_the_last_moment_can_be_polled_for_a_minute(world, bff, device):
    """A minute, and no longer."""
    def at_the_end():
        asked = ask(bff, device.email).json()
        item = device.item()
        world.time_travel(100)
        assert device.answer(item, number=asked["match_number"]).status == 200
        return asked
    asked = at_the_end()
    world.time_travel(40)
    assert poll(bff, asked).status == 200
    asked = at_the_end()
    world.time_travel(61)
    assert error(poll(bff, asked)) == "expired_token"


def test_what_ends_access_ends_the_approval(world, realm, bff, device):
    """Signed out everywhere, and disabled meanwhile."""
    asked = approved(bff, device)
    world.admin.call("sign_out_everywhere", realm.slug, device.email)
    assert poll(bff, asked).json() == INVALID
    asked = approved(bff, device)
    realm.put_user(device.email, enabled=False)
    assert poll(bff, asked).json() == INVALID
    realm.put_user(device.email, enabled=True)
    assert poll(bff, asked).json() == INVALID
    assert poll(bff, approved(bff, device)).status == 200


def test_the_second_factor_is_asked_for_and_the_approval_survives(world, app, bff, device):
    """As on every grant."""
    secret, _ = app.enrol_totp(app.sign_in(device.email)["access_token"])
    world.time_travel(60)
    asked = approved(bff, device, acr_values="urn:postern:acr:2")
    assert poll(bff, asked).json()["error"] == "invalid_grant"
    assert poll(bff, asked, totp_code=totp.wrong(secret)).json()["error"] == "invalid_grant"
    answer = poll(bff, asked, totp_code=totp.code(secret))
    assert answer.status == 200, answer
    claims = jose.parts(answer.json()["id_token"])[1]
    assert claims["amr"] == ["pop", "mca", "otp", "mfa"] and claims["acr"] == "urn:postern:acr:2"


def test_two_factors_cannot_be_met_without_a_second_one(bff, device):
    """At the poll, and the approval is not spent."""
    asked = approved(bff, device, acr_values="urn:postern:acr:2")
    assert error(poll(bff, asked)) == error(poll(bff, asked)) == "unmet_authentication_requirements"


def test_what_no_approval_can_meet_is_refused_alike_for_known_and_unknown(realm, bff, device):
    """At once, and no device hears of it."""
    known, unknown = (ask(bff, hint, acr_values="phr") for hint in (device.email, realm.new_email()))
    assert (known.status, known.body) == (unknown.status, unknown.body) and error(known) == "unmet_authentication_requirements"
    assert device.inbox() == []


def test_a_proof_binds_the_approval_to_its_key(realm, app, device):
    """With another key, or none, the approval is not spent."""
    bound = DPoPApp(app)
    asked = bound.post("/connect/bc-authorize", form(app, login_hint=device.email)).json()
    assert device.answer(device.item(), number=asked["match_number"]).status == 200
    assert poll(app, asked).json() == INVALID
    assert poll(bound.with_key(None), asked).json() == INVALID
    answer = poll(bound, asked)
    assert answer.status == 200 and answer.json()["token_type"] == "DPoP"


def test_many_polls_at_once_open_one_session(bff, device):
    """Each gets it."""
    asked = approved(bff, device)
    request = token_request(bff, {"grant_type": CIBA, **bff.credentials(), "auth_req_id": asked["auth_req_id"]})
    answers = volley(bff.node.port, [request] * WIDTH)
    assert {answer.status for answer in answers} == {200}
    assert len({jose.parts(answer.json()["id_token"])[1]["sid"] for answer in answers}) == 1


def test_requests_are_limited_alike_for_known_and_unknown(world):
    """Five an hour for a hint and source; the hint of another counts apart."""
    realm = world.realm("cibalimit")
    switch_on(realm, "api")
    for dimension in ("target", "target-total"):
        world.admin.call("reset_rate_limit", realm.slug, "approval", dimension)
    world.settle()
    app, known = realm.app("api"), realm.user()
    for hint in (known, realm.new_email()):
        answers = [ask(app, hint) for _ in range(6)]
        assert [answer.status for answer in answers] == [200] * 5 + [429]
        assert answers[-1].json()["policy"] == "approval" and answers[-1].json()["dimension"] == "target"


def test_the_grant_is_gone_with_its_permission_and_its_switch(world):
    """CIBA is none of the native grants."""
    realm = world.realm("cibagone")
    switch_on(realm, "app", public_clients=True)
    app = realm.app()
    device = Device(app, realm, realm.user())
    asked = approved(app, device)
    world.admin.call("set_approvals", realm.slug, False)
    world.settle()
    assert error(poll(app, asked)) == "unsupported_grant_type"
    world.admin.call("set_approvals", realm.slug, True)
    world.admin.call("revoke_permission", realm.slug, app.client_id, variadic=["gt:" + CIBA])
    world.settle()
    assert error(poll(app, asked)) == "unauthorized_client"
    world.admin.call("grant_permission", realm.slug, app.client_id, variadic=["gt:" + CIBA])
    world.settle()
    assert poll(app, asked).status == 200, "nothing of that spent the approval"
