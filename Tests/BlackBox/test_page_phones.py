"""Phone numbers on pages: codes by SMS and call, numbers as people type them, and the addresses that a client asks for."""

import pytest

from harness import jose
from harness.codeflow import hosted
from harness.phones import Phones, new_number
from harness.postgres import literal
from harness.sign_in_pages import Session

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


@pytest.mark.parametrize("typed, said", [("ada", "Enter an email address or a phone number."), ("0900 123456", "We cannot send messages to this number")])
def test_what_is_neither_address_nor_number_is_not_called_a_number(realm, typed, said):
    """A name that was typed without its domain."""
    session = Session(realm)
    session.browser.submit("continue", address=typed)
    assert session.browser.page.alerts[0].startswith(said), session.browser.page.alerts


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
        "SELECT count(*) FROM postern.message_outbox WHERE template = 'identifier-added'"
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


class Stale:
    """A person whose number was last proven 91 days ago, and who has an address too."""

    def __init__(self, realm, phones):
        self.realm, self.phones = realm, phones
        self.number, self.email = new_number(), realm.new_email()
        realm.world.admin.call("put_user", realm.slug, self.email, phone=self.number)
        self.sub = realm.world.cluster.value(
            f"SELECT user_id FROM postern.user_identifier WHERE value = {literal(self.number)}")
        realm.world.cluster.sql(
            f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = {literal(self.number)};")

    def is_fresh(self):
        """Whether the number is proven again."""
        return self.realm.world.cluster.value(
            f"SELECT proved_at > now() - interval '1 minute' FROM postern.user_identifier WHERE value = {literal(self.number)}") == "t"

    def begin(self, **changes):
        """Types the number and its code."""
        session = Session(self.realm, scope="openid phone email", **changes)
        session.browser.submit("continue", address=self.number)
        session.browser.submit("continue", code=self.phones.wait(self.number)["code"])
        return session


@pytest.fixture(name="stale")
def _stale(realm, phones):
    return Stale(realm, phones)


def test_a_number_of_long_ago_signs_in_with_an_address_of_the_account(realm, stale):
    """The code alone does not; a reload and a wrong code change nothing; the number is proven again from then on."""
    session = stale.begin(acr_values=PHONE)
    browser = session.browser
    assert (browser.page.step, browser.page.error) == ("address", None), browser.answer
    assert "long time" in browser.answer.body.decode() and browser.page.fields["address"] == ""
    assert browser.page.buttons == ["continue", "cancel"] and not browser.cookies.keys() & {"__Host-postern-session"}
    browser.open(browser.url)
    assert browser.page.step == "address" and not stale.is_fresh()
    browser.submit("continue", address=stale.number)
    assert browser.page.error == "address_invalid"
    browser.submit("continue", address=stale.email)
    assert browser.page.step == "code", browser.answer
    right = session.code(stale.email)
    browser.submit("continue", code="000000" if right != "000000" else "000001")
    assert browser.page.error == "wrong_code" and not stale.is_fresh()
    browser.submit("continue", code=right)
    token, _ = claims(session)
    assert token["sub"] == stale.sub and token["acr"] == PHONE and set(token["amr"]) == {"otp", "sms"}
    assert stale.is_fresh()
    again = Session(realm)
    again.browser.submit("continue", address=stale.number)
    again.browser.submit("continue", code=stale.phones.wait(stale.number, 2)["code"])
    assert claims(again)[0]["sub"] == stale.sub


def test_a_proof_of_another_account_says_nothing_about_the_number(realm, stale):
    """It signs in to that account; the number stays with its own, as it was."""
    other = realm.user()
    session = stale.begin()
    session.sign_in(other)
    token, document = claims(session)
    assert token["sub"] != stale.sub and "sms" not in token["amr"] and not stale.is_fresh()
    assert "phone_number" not in session.flow.app.userinfo(document["access_token"]).json()
    assert realm.world.cluster.value(
        f"SELECT user_id FROM postern.user_identifier WHERE value = {literal(stale.number)}") == stale.sub


def test_where_registration_is_closed_a_number_makes_no_new_account(realm, stale):
    """There is no button, and posting it all the same does nothing."""
    session = stale.begin()
    fields = {**session.browser.page.fields, "action": "register"}
    session.browser.submit("register", fields=fields)
    assert session.browser.page.error == "invalid_request" and session.browser.answer.status == 400
    assert not stale.is_fresh()


def test_a_number_moves_to_a_new_account_of_who_cannot_prove_more(world):
    """Where one may register: names first if they are asked for, once; the former holder is told and stays signed in."""
    realm = hosted(world.realm(), offer_passkey=False, methods=["email-code", "phone-code"])
    phones = Phones(realm, default_region="AT")
    stale = Stale(realm, phones)
    holder = Session(realm, scope="openid offline_access")
    holder.sign_in(stale.email)
    _, kept = claims(holder)
    realm.put_app("shop", ["app"], registration="JitOnOtp")
    realm.world.admin.call("set_registration_fields", realm.slug, firstname="Required", app="shop")
    realm.world.settle()
    session = stale.begin()
    assert session.browser.page.step == "address" and "register" in session.browser.page.buttons, session.browser.answer
    held = session.browser.page
    session.browser.submit("register")
    assert session.browser.page.step == "profile", session.browser.answer
    session.browser.submit("continue", first_name="Eve")
    token, document = claims(session)
    assert token["sub"] != stale.sub and token["amr"] == ["otp", "sms"]
    info = session.flow.app.userinfo(document["access_token"]).json()
    assert info["phone_number"] == stale.number and "email" not in info
    told = realm.world.mailbox.wait(stale.email, 2, kind="notice")
    assert "phone number" in told.message["Subject"].lower()
    assert holder.flow.app.refresh(kept["refresh_token"]).status == 200
    session.browser.page = held
    session.browser.submit("register")
    assert session.browser.page.step in ("continue-as", "address"), "the proof was used"
    phones.close()


def test_an_authenticator_app_is_asked_for_where_there_is_nothing_else(realm, phones):
    """Of an account with a number and TOTP alone, as natively."""
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number)
    tokens = phones.sign_in(realm.app(), number, scope="openid")
    _, (recovery_code, *_) = realm.app().enrol_totp(tokens["access_token"])
    realm.world.cluster.sql(
        f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = {literal(number)};")
    session = Session(realm)
    session.browser.submit("continue", address=number)
    phones.wait(number, 3)
    codes = [message["code"] for message in phones.to(number) if "code" in message]  # the third is a notice
    assert len(codes) == 2
    session.browser.submit("continue", code=codes[-1])
    assert session.browser.page.step == "second-factor", session.browser.answer
    session.browser.submit("continue", recovery_code=recovery_code)
    assert "mfa" in claims(session)[0]["amr"]
