"""Proof of an address without an account: pages, tokens, and what nobody learns."""

import pytest

from harness import jose
from harness.codeflow import Flow, hosted, refused
from harness.phones import Phones, new_number
from harness.postgres import literal
from harness.sign_in_pages import Session

SCOPE = "openid verify:email"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    """A realm whose clients may ask for proofs of both kinds."""
    made = hosted(world.realm(), offer_passkey=False)
    admin = made.world.admin
    admin.call("set_code_policy", made.slug, resend_cooldown="0")
    for name in ("app", "app-2", "jwt"):
        admin.call("grant_permission", made.slug, made.client(name), variadic=["scp:verify:email", "scp:verify:phone"])
    made.limit("native-otp", "registrations", 1_000_000, per="1 minute", burst=1_000_000)
    made.world.settle()
    return made


def prove(realm, email, name="app", browser=None, **changes):
    """By a code; the session with its answer."""
    session = Session(realm, name, browser=browser, **{"scope": SCOPE, **changes})
    session.sign_in(email)
    return session


def tokens(session):
    """The token answer and the claims of the ID token."""
    answer = session.flow.exchange(session.browser.members["code"])
    assert answer.status == 200, answer
    document = answer.json()
    return document, jose.verify(document["id_token"], session.flow.app.get("/.well-known/jwks").json())[1]


def count(realm, table):
    """Rows of the realm."""
    return realm.world.cluster.value(
        f"SELECT count(*) FROM postern.{table} t JOIN postern.realm r ON r.id = t.realm_id WHERE r.slug = {literal(realm.slug)}")


@pytest.mark.parametrize("name", ["app", "jwt"])
def test_an_unknown_address_is_proven_and_leaves_no_account(realm, name):
    """Token answer, claims, no refresh token, no cookie, no account; the access token is opaque for every client."""
    email, before = f"nobody-{name}@mail.example", count(realm, "user_account")
    session = prove(realm, email, name)
    assert set(session.browser.members) == {"code", "state", "iss"}
    assert set(session.browser.cookies) == {"__Host-postern-browser"}
    document, claims = tokens(session)
    assert set(document) == {"access_token", "token_type", "expires_in", "scope", "id_token"}, document
    assert document["expires_in"] == 600 and document["access_token"].startswith("pva_")
    assert set(claims) == {"iss", "sub", "aud", "exp", "iat", "jti", "auth_time", "amr", "acr", "nonce", "email", "email_verified",
                           "at_hash"}, claims
    assert (claims["email"], claims["email_verified"], claims["amr"], claims["acr"], claims["nonce"]) == (
        email, True, ["otp"], "urn:postern:acr:1", "n-1")
    assert claims["exp"] - claims["iat"] == 600
    assert count(realm, "user_account") == before and count(realm, "browser_session") == "0"


def test_the_subject_is_stable_per_client_and_address(realm):
    """Equal for the same client, different for another client, another address, and from the account's."""
    known = realm.user()
    subjects = [tokens(prove(realm, email, name))[1]["sub"]
                for email, name in ((known, "app"), (known.upper(), "app"), (known, "app-2"), ("other@mail.example", "app"))]
    account = realm.world.cluster.value(f"SELECT id FROM postern.user_account WHERE email = {literal(known)}")
    assert subjects[0] == subjects[1] and len({*subjects, account}) == 4


@pytest.mark.parametrize("scope", [
    "openid verify:email verify:phone", "openid verify:email profile", "openid verify:email offline_access", "verify:email",
    "openid verify:phone",
])
def test_the_scope_is_openid_and_one_proof(realm, scope):
    """Anything else is invalid_scope; so is a proof of phones where the realm sends to none."""
    assert refused(Flow(realm).authorize(scope=scope)) == "invalid_scope"


def test_a_client_without_the_permission_may_not_ask(realm):
    """The scope is not the client's."""
    assert refused(Flow(realm, "api").authorize(scope=SCOPE)) == "invalid_scope"


def test_a_pushed_address_cannot_be_edited(realm):
    """The field is read-only, another value is refused, and the code goes to the pushed address."""
    victim, mine = "victim@mail.example", "me@mail.example"
    session = Session(realm, scope=SCOPE)
    pushed = session.flow.push(scope=SCOPE, login_hint=victim).json()["request_uri"]
    browser = session.browser.open(f"/connect/authorize?client_id={session.flow.app.client_id}&request_uri={pushed}")
    assert browser.page.fields["address"] == victim and b" readonly" in browser.answer.body
    page = browser.page
    browser.submit("continue", address=mine)
    assert (browser.answer.status, browser.page.error) == (400, "invalid_request")
    browser.page = page
    browser.submit("continue")
    assert browser.page.step == "code" and "other-address" not in browser.page.buttons
    browser.submit("continue", code=session.code(victim))
    assert session.flow.push(scope=SCOPE, login_hint="+43664123456").error == "invalid_request"
    assert tokens(session)[1]["email"] == victim and not realm.world.mailbox.to(mine)


def test_a_query_only_prefills_the_address(realm):
    """login_hint of the query can be changed; opening the page sends nothing."""
    session = Session(realm, scope=SCOPE, login_hint="typo@mail.example")
    assert session.browser.page.fields["address"] == "typo@mail.example"
    session.sign_in("right@mail.example")
    assert tokens(session)[1]["email"] == "right@mail.example" and not realm.world.mailbox.to("typo@mail.example")


def test_a_signed_in_user_shares_a_proven_address_without_a_code(realm):
    """One tap; another address, an old proof, and a person who wants a code get one."""
    email = realm.user()
    signed_in = Session(realm)
    signed_in.sign_in(email)
    assert "code" in signed_in.browser.members
    mails = len(realm.world.mailbox.to(email))
    session = Session(realm, "app-2", browser=signed_in.browser, scope=SCOPE)
    session.send(email)
    assert session.browser.page.step == "continue-as" and email.encode() in session.browser.answer.body
    session.browser.submit("continue")
    document, claims = tokens(session)
    assert claims["email"] == email and claims["amr"] == ["otp"] and "refresh_token" not in document
    assert len(realm.world.mailbox.to(email)) == mails
    for age, changes, step in ((0, {"max_age": "0"}, "code"), (0, {"prompt": "login"}, "code"), (60, {"max_age": "30"}, "code"), (0, {"max_age": "600"}, "continue-as")):
        realm.world.time_travel(age)
        session = Session(realm, "app-2", browser=signed_in.browser, scope=SCOPE, **changes)
        session.send(email)
        assert session.browser.page.step == step, changes
    session = Session(realm, "app-2", browser=signed_in.browser, scope=SCOPE)
    session.send("somebody-else@mail.example")
    assert session.browser.page.step == "code"
    session = Session(realm, "app-2", browser=signed_in.browser, scope=SCOPE)
    session.send(email)
    session.browser.submit("other-account")
    session.send(email)
    assert session.browser.page.step == "code"


def test_the_access_token_opens_the_claims_alone(realm):
    """userinfo and introspection answer, account endpoints do not; revocation and a second use of the code end it."""
    session = prove(realm, "claims@mail.example")
    code = session.browser.members["code"]
    document, claims = tokens(session)
    app, token = session.flow.app, document["access_token"]
    info = app.userinfo(token)
    assert info.json() == {"sub": claims["sub"], "email": "claims@mail.example", "email_verified": True}
    state = realm.app("api").introspect(token).json()
    assert state["active"] and state["sub"] == claims["sub"] and state["scope"] == SCOPE and "sid" not in state
    for path in ("/connect/identifiers", "/connect/sessions", "/connect/passkey", "/connect/account", "/connect/consents"):
        answer = app.get(path, {"Authorization": f"Bearer {token}"})
        assert answer.status == 401, (path, answer)
    assert session.flow.exchange(code).error == "invalid_grant"
    assert app.userinfo(token).status == 401
    again = prove(realm, "claims@mail.example")
    token = tokens(again)[0]["access_token"]
    realm.world.time_travel(540)
    assert app.userinfo(token).status == 200 and realm.app("api").introspect(token).json()["active"]
    realm.world.time_travel(70)
    assert app.userinfo(token).status == 401 and realm.app("api").introspect(token).json() == {"active": False}
    again = prove(realm, "claims@mail.example")
    token = tokens(again)[0]["access_token"]
    assert app.revoke(token).status == 200
    assert app.userinfo(token).status == 401 and not realm.app("api").introspect(token).json()["active"]


def test_the_address_is_kept_nowhere_in_clear(realm):
    """Row and audit hold no address; the row goes when the tokens have expired."""
    email = "secret-person@mail.example"
    tokens(prove(realm, email))
    rows = realm.world.cluster.value(
        "SELECT string_agg(t::text, ' ') FROM (SELECT p::text FROM postern.address_verification p"
        " UNION ALL SELECT e::text FROM postern.audit_event e UNION ALL SELECT s::text FROM postern.sign_in_request s) AS x (t)")
    assert "address_proven" in rows and "secret-person" not in rows and email.encode().hex() not in rows


def test_disabled_and_unknown_addresses_are_proven_alike(realm):
    """The same page and message for an account that is closed; the account is untouched."""
    email = realm.user()
    realm.world.admin.call("set_user_enabled", realm.slug, email, False)
    assert tokens(prove(realm, email))[1]["email"] == email
    assert realm.world.cluster.value(f"SELECT enabled FROM postern.user_account WHERE email = {literal(email)}") == "f"


def test_a_proof_does_not_sign_anybody_out(realm):
    """Its ID token as hint of a sign-out: the page asks."""
    session = prove(realm, "hint@mail.example")
    document, _ = tokens(session)
    session.browser.open(f"/connect/logout?id_token_hint={document['id_token']}")
    assert session.browser.page.step == "sign-out"


def test_wrong_codes_are_bounded_and_cancel_leaves(realm):
    """Tries of the handle; then only another message helps."""
    session = Session(realm, scope=SCOPE)
    session.send("tries@mail.example")
    right = session.code("tries@mail.example")
    wrong = "000000" if right != "000000" else "000001"
    for _ in range(5):
        session.browser.submit("continue", code=wrong)
    assert session.browser.page.error == "no_tries"
    assert session.browser.submit("cancel").members["error"] == "access_denied"


def test_what_cannot_be_met_is_refused(realm):
    """acr_values of a second factor or a passkey; those of an address are met."""
    assert Session(realm, scope=SCOPE, acr_values="phr").browser.members["error"] == "unmet_authentication_requirements"
    _, claims = tokens(prove(realm, "acr@mail.example", acr_values="phr urn:postern:acr:email"))
    assert claims["acr"] == "urn:postern:acr:email"
    assert Session(realm, scope=SCOPE, prompt="none").browser.members["error"] == "login_required"


def test_a_phone_number_is_proven(realm):
    """As people type it, by SMS; the claims are those of a number."""
    phones = Phones(realm, default_region="AT")
    try:
        realm.world.settle()
        number = new_number()
        session = Session(realm, scope="openid verify:phone")
        session.browser.submit("continue", address="0" + number[3:])
        assert session.browser.page.step == "code", session.browser.answer
        assert "voice" in session.browser.page.buttons and "link" not in session.browser.page.buttons
        message = phones.wait(number)
        assert message["purpose"] == "verify" and message["channel"] == "sms"
        session.browser.submit("continue", code=message["code"])
        document, claims = tokens(session)
        assert (claims["phone_number"], claims["phone_number_verified"], claims["amr"]) == (number, True, ["otp", "sms"])
        assert session.flow.app.userinfo(document["access_token"]).json() == {
            "sub": claims["sub"], "phone_number": number, "phone_number_verified": True}
        for typed, error in (("+43", "phone_invalid"), ("me@mail.example", "phone_invalid"), ("+4915112345678", "phone_unsupported")):
            session = Session(realm, scope="openid verify:phone")
            session.browser.submit("continue", address=typed)
            assert (session.browser.page.step, session.browser.page.error, session.browser.page.fields["address"]) == (
                "address", error, typed)
    finally:
        phones.close()
