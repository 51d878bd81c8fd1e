"""Phone numbers sign in as addresses do: what is accepted, what is sent, what it may cost, and numbers that pass on."""

import time

import pytest

from harness import jose
from harness.phones import Phones, new_number


@pytest.fixture(name="phones")
def _phones(realm):
    made = Phones(realm)
    yield made
    made.close()


@pytest.fixture(name="ada")
def _ada(realm):
    """Somebody with a number and no address."""
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number, first_name="Ada")
    return number


def test_a_code_by_sms_signs_in(realm, phones, ada):
    """By handle and by number; the ID token says how, and the claims are those of the scope."""
    app = realm.app()
    asked = phones.ask(app, ada)
    document = asked.json()
    assert set(document) == {"Message", "AuthSession", "ExpiresIn", "ResendAfter", "SendsLeft"}, document
    assert document["Message"] == "If your phone number is registered, you will receive a verification code."
    assert document["SendsLeft"] == 2
    message = phones.wait(ada)
    assert message["channel"] == "sms" and message["kind"] == "otp" and message["purpose"] == "sign-in"
    assert message["text"].endswith(f"\n@{realm.host} #{message['code']}")
    tokens = app.redeem(message["code"], handle=document["AuthSession"], scope="openid phone email offline_access").json()
    _, claims = jose.verify(tokens["id_token"], app.get("/.well-known/jwks").json())
    assert claims["amr"] == ["otp", "sms"]
    info = app.userinfo(tokens["access_token"]).json()
    assert info["phone_number"] == ada and info["phone_number_verified"] is True and "email" not in info
    assert app.refresh(tokens["refresh_token"]).status == 200
    account = app.account(tokens["access_token"])
    assert account["Phone"] == ada and account["PhoneVerified"] is True and account["Email"] is None
    second = phones.ask(app, ada)
    assert second.status == 200
    code = phones.wait(ada, 2)["code"]
    assert app.redeem(code, email=ada).status == 200
    assert app.redeem(code, email=ada).error == "invalid_grant"


def test_unknown_numbers_look_the_same_and_get_nothing(realm, phones, ada):
    """Same members, same status; no message."""
    app, stranger = realm.app(), new_number()
    known, unknown = phones.ask(app, ada), phones.ask(app, stranger)
    assert known.status == unknown.status == 200
    one, other = known.json(), unknown.json()
    assert len(one.pop("AuthSession")) == len(other.pop("AuthSession")) and one == other
    phones.wait(ada)
    assert phones.to(stranger) == []


@pytest.mark.parametrize("phone", [
    "0664123456", "+43 664 1234567", "+43664", "+999123456789", "+14155552671x12", "+4366412345678901", "+١٢٣٤٥٦٧٨", "phone",
    "", "+43664" + "1" * 10_000, "+49112", "+499001123456", "+18005550123", "+15005550006"[:6],
])
def test_what_is_no_number_for_messages_is_refused(realm, phones, phone):
    """E.164 alone, as libphonenumber judges it; the same for all callers."""
    answer = phones.ask(realm.app(), phone)
    assert answer.status == 400 and answer.json() == {"error": "Phone is invalid."}, answer


def test_numbers_of_other_countries_and_denied_prefixes_are_not_supported(realm, phones, ada):
    """Also those of users; +1 876 is Jamaica's, whatever else +1 is."""
    app = realm.app()
    realm.world.admin.call("put_phone_prefix", realm.slug, "+43680", action="deny")
    realm.world.admin.call("put_user", realm.slug, phone="+4915112345678")
    realm.world.pause()
    for phone in ("+4915112345678", "+18765551234", "+436801234567"):
        answer = phones.ask(app, phone)
        assert answer.status == 400 and answer.json() == {"error": "Phone is not supported."}, (phone, answer)
    assert phones.ask(app, ada).status == 200


def test_members_that_contradict(realm, phones, ada):
    """Both members, a number type, an unknown channel."""
    app = realm.app()
    both = phones.ask(app, ada, Email="ada@example.com")
    assert both.status == 400 and both.json() == {"error": "Send Email or Phone, not both."}
    assert app.post_json("/api/account/native/otp/request", {"Phone": 43}).json() == {"error": "Phone is invalid."}
    assert phones.ask(app, ada, Channel="fax").json() == {"error": "Channel is invalid."}
    assert phones.ask(app, ada, "magic-link/request", Channel="voice").json() == {"error": "Channel is invalid."}


def test_a_channel_without_provider_is_unavailable(realm, phones, ada):
    """503, and nothing is counted."""
    app = realm.app()
    answer = phones.ask(app, ada, Channel="whatsapp")
    assert answer.status == 503 and answer.error == "Channel.Unavailable"
    assert realm.world.cluster.value(
        f"SELECT count(*) FROM postern.rate_bucket WHERE key LIKE 'phone-otp%{ada}%'") == "0"


def test_no_phone_without_a_policy(world):
    """A realm that never set one sends to no phone."""
    answer = Phones.ask(world.realm("silent").app(), new_number())
    assert answer.status == 503 and answer.error == "Channel.Unavailable"


def test_messages_of_a_handle_are_bounded(realm, phones, ada):
    """Resends and other channels count alike; the answer then is send_limit."""
    app = realm.app()
    handle = phones.ask(app, ada).json()["AuthSession"]
    phones.wait(ada, 1)
    second = phones.ask(app, ada, AuthSession=handle, Channel="voice")
    assert second.json()["SendsLeft"] == 1
    assert phones.wait(ada, 2)["channel"] == "voice"
    third = phones.ask(app, ada, AuthSession=second.json()["AuthSession"])
    assert third.json()["SendsLeft"] == 0
    code = phones.wait(ada, 3)["code"]
    fourth = phones.ask(app, ada, AuthSession=third.json()["AuthSession"])
    assert fourth.status == 400 and fourth.json() == {"error": "send_limit"}
    assert app.redeem(code, handle=third.json()["AuthSession"]).status == 200


def test_a_link_by_sms(realm, phones, ada):
    """It is asked for, confirmed by its number and polled for, as by mail."""
    app = realm.app()
    asked = phones.ask(app, ada, "magic-link/request").json()
    assert asked["Message"] == "If your phone number is registered, you will receive a login link."
    message = phones.wait(ada)
    assert message["kind"] == "link" and message["link"].startswith(f"{realm.issuer}/magic-login?")
    query = dict(part.split("=", 1) for part in message["link"].split("?")[1].split("&"))
    page = app.post("/magic-login", {"userId": query["userId"], "token": query["token"], "number": asked["MatchNumber"]})
    assert page.status == 200, page
    done = app.token({
        "grant_type": "urn:cocoar:magic", **app.credentials(), "auth_session": asked["AuthSession"], "scope": "openid"})
    assert done.status == 200, done


def test_a_number_not_proven_for_long_signs_nobody_in_and_moves_to_who_registers(realm, phones):
    """Refused natively; a person who may register gets an account, the former holder keeps theirs and is told."""
    app, number, email = realm.app(), new_number(), realm.new_email()
    realm.world.admin.call("put_user", realm.slug, email, phone=number)
    first = phones.sign_in(app, number)
    owner = app.account(first["access_token"])["Sub"]
    realm.world.cluster.sql(
        f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '{number}'")
    asked = phones.ask(app, number).json()
    refused = app.redeem(phones.wait(number, 2)["code"], handle=asked["AuthSession"])
    assert refused.status == 400 and refused.json()["error_description"] == "Invalid or expired code."
    host = realm.put_app("shop", ["app"], registration="JitOnOtp")
    shop = realm.app_on(host)
    tokens = phones.sign_in(shop, number)
    account = shop.account(tokens["access_token"])
    assert account["Sub"] != owner and account["Phone"] == number
    assert app.userinfo(first["access_token"]).status == 200
    assert app.account(first["access_token"])["Phone"] is None
    told = realm.world.mailbox.wait(email, 2, kind="notice")
    assert "phone number" in told.message["Subject"].lower()


def test_over_a_budget_for_phones_is_429_and_redeemed_codes_do_not_count(realm, phones):
    """The dimension is named. A redeemed code gives its permit back, so honest sign-ins go on."""
    app = realm.app()
    numbers = [f"+4367612345{n:03}" for n in range(6)]
    for number in numbers:
        realm.world.admin.call("put_user", realm.slug, phone=number)
    realm.limit("phone-otp", "country", 3, per="1 hour", burst=3)
    realm.world.pause()
    for number in numbers:
        phones.sign_in(app, number)
    for number in numbers[:2]:
        assert phones.ask(app, number).status == 200
    answers = [phones.ask(app, number) for number in numbers[2:]]
    deadline = time.monotonic() + 10
    while answers[-1].status != 429 and time.monotonic() < deadline:  # the worker counts after the answer
        answers.append(phones.ask(app, numbers[-1]))
    assert answers[-1].status == 429 and answers[-1].json()["dimension"] == "country", answers
    assert answers[-1].json()["policy"] == "phone-otp"
