"""Phone numbers on pages: codes by SMS and call, numbers as people type them, and the addresses that a client asks for."""

import pytest

from harness import jose
from harness.codeflow import hosted
from harness.phones import Phones, new_number
from harness.postgres import literal
from test_pages import Session

PHONE, EMAIL = "urn:postern:acr:phone", "urn:postern:acr:email"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    """A realm whose pages take addresses and numbers."""
    made = hosted(world.realm(), offer_passkey=False, methods=["email-code", "magic-link", "phone-code"])
    made.world.admin.call("set_code_policy", made.slug, resend_cooldown="0")
    return made


@pytest.fixture(scope="module", name="phones")
def _phones(realm):
    made = Phones(realm, default_region="AT")
    realm.world.settle()
    yield made
    made.close()


def claims(session):
    """Of the ID token."""
    answer = session.flow.exchange(session.browser.members["code"])
    assert answer.status == 200, answer
    return jose.verify(answer.json()["id_token"], session.flow.app.get("/.well-known/jwks").json())[1], answer.json()


@pytest.fixture(name="number")
def _number(realm, phones):
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number, first_name="Ada")
    assert phones
    return number


def test_a_number_signs_in_as_it_is_typed(realm, phones, number):
    """In national form, by SMS; the amr says so; a call can bring the code too, within the bound of the policy."""
    session = Session(realm, scope="openid phone")
    session.browser.submit("continue", address=f"0{number[3:6]} / {number[6:]}")
    assert session.browser.page.step == "code" and number.encode() in session.browser.answer.body
    assert {"voice", "resend"} <= set(session.browser.page.buttons) and "link" not in session.browser.page.buttons
    assert phones.wait(number)["channel"] == "sms"
    session.browser.submit("voice")
    message = phones.wait(number, 2)
    assert message["channel"] == "voice" and "sms" in session.browser.page.buttons
    session.browser.submit("resend")
    assert phones.wait(number, 3)["channel"] == "voice" and "resend" not in session.browser.page.buttons
    session.browser.submit("continue", code=phones.to(number)[-1]["code"])
    token, document = claims(session)
    assert token["amr"] == ["otp", "tel"]
    assert session.flow.app.userinfo(document["access_token"]).json()["phone_number"] == number


@pytest.mark.parametrize("typed, error", [
    ("+49", "phone_invalid"), ("letters", "phone_invalid"), ("0900 123456", "phone_invalid"), ("+18765551234", "phone_unsupported"),
    ("a@b", "address_invalid"),
])
def test_what_nothing_is_sent_to_is_said_on_the_page(realm, phones, typed, error):
    """The text is kept in its field."""
    session = Session(realm)
    session.browser.submit("continue", address=typed)
    assert (session.browser.page.step, session.browser.page.error, session.browser.page.fields["address"]) == ("address", error, typed)
    assert not phones.to(typed)


def test_refused_domains_are_said_on_the_page(realm):
    """As by the native endpoints."""
    realm.world.admin.call("put_address_rule", realm.slug, "refused.example", "deny")
    realm.world.settle()
    session = Session(realm)
    session.send("ada@refused.example")
    assert (session.browser.page.step, session.browser.page.error) == ("address", "address_refused")


def test_known_and_unknown_numbers_look_the_same(realm, phones, number):
    """Same page, same length."""
    def shown(address):
        session = Session(realm)
        session.browser.submit("continue", address=address)
        return session.browser.answer.status, len(session.browser.answer.body), session.browser.page.step

    stranger = new_number()
    assert shown(number) == shown(stranger)
    phones.wait(number)
    assert phones.to(stranger) == []


def test_a_client_that_wants_a_number_may_add_one(realm, phones):
    """The user is asked for it, it is added and proven, the cookie changes, and the others are told."""
    email, number = realm.user(), new_number()
    session = Session(realm)
    session.sign_in(email)
    cookie = session.browser.cookies["__Host-postern-session"]
    asks = Session(realm, browser=session.browser, acr_values=PHONE, scope="openid phone")
    assert asks.browser.page.step == "address" and asks.browser.page.fields["address"] == ""
    assert asks.browser.page.buttons == ["continue", "cancel"]
    asks.browser.submit("continue", address=email)
    assert asks.browser.page.error == "phone_invalid"
    asks.browser.submit("continue", address=number)
    assert asks.browser.page.step == "code", asks.browser.answer
    message = phones.wait(number)
    assert message["purpose"] == "identifier"
    right = message["code"]
    asks.browser.submit("continue", code="000000" if right != "000000" else "000001")
    assert asks.browser.page.error == "wrong_code"
    asks.browser.submit("continue", code=right)
    token, document = claims(asks)
    assert token["acr"] == PHONE and token["amr"] == ["otp", "sms"]
    assert asks.browser.cookies["__Host-postern-session"] != cookie
    info = asks.flow.app.userinfo(document["access_token"]).json()
    assert (info["phone_number"], info["phone_number_verified"]) == (number, True)
    assert realm.world.cluster.value(
        "SELECT count(*) FROM postern.mail_outbox WHERE template = 'identifier-added'"
        f" AND recipient = {literal(email)}") == "1"
    again = Session(realm, browser=asks.browser, acr_values=PHONE)
    assert "code" in again.browser.members


def test_a_sign_in_comes_before_a_number_is_added(realm, phones):
    """In one request: by e-mail, then the number; a number of another account is refused after its code."""
    email, number = realm.user(), new_number()
    session = Session(realm, acr_values=PHONE)
    session.sign_in(email)
    assert session.browser.page.step == "address", session.browser.answer
    other = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=other)
    session.browser.submit("continue", address=other)
    session.browser.submit("continue", code=phones.wait(other)["code"])
    assert (session.browser.page.step, session.browser.page.error) == ("address", "address_refused")
    session.browser.submit("continue", address=number)
    session.browser.submit("continue", code=phones.wait(number)["code"])
    assert claims(session)[0]["acr"] == PHONE


def test_an_address_that_was_proven_already_is_enough(realm):
    """A sign-in by e-mail meets the e-mail class; what nobody can meet is refused after the sign-in."""
    email = realm.user()
    session = Session(realm, acr_values=EMAIL)
    session.sign_in(email)
    assert claims(session)[0]["acr"] == EMAIL
    session = Session(realm, acr_values="phr")
    session.sign_in(realm.user())
    assert session.browser.members["error"] == "unmet_authentication_requirements"
