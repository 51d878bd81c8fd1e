"""A proven number as a sign-in: whose number it is, how old its proof is, the second factor; and what webhooks hear of it."""

import json
import time

import pytest

from harness import jose, totp
from harness.dpop import ProofKey
from harness.phones import Phones, new_number
from harness.possession import Backend, possession
from harness.receiver import Receiver

REFUSED = {"error": "invalid_grant", "error_description": "The possession check is not valid."}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = possession(world.realm())
    realm.phones = Phones(realm)
    realm.srv = Backend(realm, "srv")
    world.admin.call("grant_permission", realm.slug, realm.client("app"), variadic=["gt:urn:postern:possession"])
    world.admin.call("put_possession_client", realm.slug, realm.client("srv"), login_client=realm.client("app"))
    world.settle()
    yield realm
    realm.phones.close()


def codes(realm, number):
    """The codes that a number got; notices go there, too."""
    return [message["code"] for message in realm.phones.to(number) if "code" in message]


def proven(realm, number, **members):
    """A transaction that a code has passed, and the app."""
    started = realm.srv.unify(number, **members)
    phone = realm.srv.phone(started)
    phone.call("open")
    before = len(codes(realm, number))
    phone.call("send", channel="otp")
    deadline = time.monotonic() + 10
    while len(codes(realm, number)) == before:
        assert time.monotonic() < deadline, realm.phones.messages
        time.sleep(0.02)
    assert phone.call("check", otp=codes(realm, number)[-1]) == {"state": "passed"}
    return started, phone


def sign_in(realm, phone, **more):
    """One redemption; the raw answer."""
    return phone.app.token({
        "grant_type": "urn:postern:possession", "client_id": realm.client("app"), "auth_token": phone.token, "scope": "openid", **more})


def owner(realm, number, **details):
    """A user with the number; returns the id."""
    return realm.world.admin.call("put_user", realm.slug, phone=number, **details)


def subject(phone, answer):
    """Who signed in."""
    assert answer.status == 200, answer
    return phone.app.userinfo(answer.json()["access_token"]).json()["sub"]


def control(realm):
    """After refusals: a right redemption."""
    number = new_number()
    user = owner(realm, number)
    _, phone = proven(realm, number)
    assert subject(phone, sign_in(realm, phone)) == user


def test_what_was_passed_before_the_number_changed_hands_signs_nobody_in(realm):
    """Not nobody, while the number is nobody's, nor its next holder, who has to prove it."""
    admin, number = realm.world.admin, new_number()
    first = owner(realm, number)
    _, phone = proven(realm, number)
    admin.call("put_identifier", realm.slug, first, "email", realm.new_email())
    admin.call("delete_identifier", realm.slug, first, "phone", number)
    answer = sign_in(realm, phone)
    assert (answer.status, answer.json()) == (400, REFUSED), answer
    second = owner(realm, number)
    assert sign_in(realm, phone).json() == REFUSED
    _, phone = proven(realm, number)
    assert subject(phone, sign_in(realm, phone)) == second != first
    control(realm)


@pytest.mark.parametrize("how", ["disabled", "deleted", "unverified", "permission", "client"])
def test_what_signs_nobody_in(realm, how):
    """One body for each. What says that the client may not is undone in time; the account's own end is for good."""
    admin, number = realm.world.admin, new_number()
    user = owner(realm, number)
    _, phone = proven(realm, number)
    if how == "disabled":
        admin.call("set_user_enabled", realm.slug, user, False)
    elif how == "deleted":
        admin.call("delete_user", realm.slug, user)
    elif how == "unverified":
        admin.call("put_identifier", realm.slug, user, "phone", number, verified=False)
    elif how == "permission":
        admin.call("put_possession_client", realm.slug, realm.client("srv"), login_client=_another(realm))
    realm.world.settle()
    refused = sign_in(realm, phone) if how != "client" else sign_in(realm, phone, client_id=_another(realm))
    assert (refused.status, refused.json()) == (400, REFUSED), refused
    if how == "disabled":
        admin.call("set_user_enabled", realm.slug, user, True)
    elif how == "unverified":
        admin.call("put_identifier", realm.slug, user, "phone", number, verified=True)
    admin.call("put_possession_client", realm.slug, realm.client("srv"), login_client=realm.client("app"))
    realm.world.settle()
    again = sign_in(realm, phone)
    if how in ("permission", "client"):
        assert subject(phone, again) == user
    else:
        assert again.json() == REFUSED
    control(realm)


def _another(realm):
    """A further client that may redeem, though not this backend's transactions."""
    realm.world.admin.call("grant_permission", realm.slug, realm.client("app-2"), variadic=["gt:urn:postern:possession"])
    return realm.client("app-2")


def test_a_number_whose_proof_is_old_needs_the_second_factor(realm):
    """Without one the transaction stays; a right code of the app redeems it, and the number counts as proven now."""
    world, number = realm.world, new_number()
    user = owner(realm, number)
    _, phone = proven(realm, number)
    age = f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '{number}'"
    fresh = f"SELECT proved_at > now() - interval '1 minute' FROM postern.user_identifier WHERE value = '{number}'"
    world.cluster.sql(age)
    assert sign_in(realm, phone).json() == REFUSED
    world.cluster.sql(age.replace("91 days", "1 day"))
    tokens = sign_in(realm, phone).json()
    assert world.cluster.value(fresh) == "t"
    secret, _ = enrolled(phone, tokens)
    world.cluster.sql(age)
    _, phone = proven(realm, number)
    assert sign_in(realm, phone).status == 400
    assert sign_in(realm, phone, totp_code=totp.wrong(secret)).status == 400
    assert subject(phone, sign_in(realm, phone, totp_code=totp.code(secret))) == user
    assert world.cluster.value(fresh) == "t"
    control(realm)


def enrolled(phone, tokens):
    """Enrols a second factor with a token that is bound to the phone's key; the secret and the recovery codes."""
    return phone.app.enrol_totp(tokens["access_token"])


def test_the_second_factor_is_asked_for_as_of_every_sign_in(realm):
    """No code and a wrong one have texts of their own; neither spends the transaction."""
    number = new_number()
    user = owner(realm, number)
    _, phone = proven(realm, number)
    secret, recovery = enrolled(phone, sign_in(realm, phone).json())
    _, phone = proven(realm, number)
    missing, wrong = sign_in(realm, phone), sign_in(realm, phone, totp_code=totp.wrong(secret))
    assert [answer.json()["error"] for answer in (missing, wrong)] == ["invalid_grant"] * 2
    texts = {answer.json()["error_description"] for answer in (missing, wrong)} | {REFUSED["error_description"]}
    assert len(texts) == 3, texts
    answer = sign_in(realm, phone, recovery_code=recovery[0])
    assert subject(phone, answer) == user
    assert jose.parts(answer.json()["id_token"])[1]["amr"][-1] == "mfa"
    assert sign_in(realm, phone, recovery_code=recovery[1]).json() == REFUSED, "once"
    control(realm)


def test_a_switch_that_is_turned_off_in_between_stops_and_ends_nothing(realm):
    """400 for the app, 404 for the backend; on again, in time, it goes on."""
    number = new_number()
    owner(realm, number)
    started, phone = proven(realm, number)
    possession(realm, enabled=False)
    assert phone.ask("result").json()["title"] == "Possession.Disabled"
    assert realm.srv.ask("/v3/unify-status", correlationId=started.correlationId).status == 404
    assert sign_in(realm, phone).json()["error"] == "unsupported_grant_type"
    possession(realm)
    realm.world.admin.call("set_native_grants", realm.slug, False)
    realm.world.settle()
    assert sign_in(realm, phone).json()["error"] == "unsupported_grant_type"
    realm.world.admin.call("set_native_grants", realm.slug, True)
    realm.world.settle()
    assert realm.srv.status(started).success == "true" and sign_in(realm, phone).status == 200


def test_webhooks_hear_of_each_step_and_of_no_number(realm):
    """An event of no user has an opaque subject; correlation_id and codes say what happened."""
    receiver = Receiver()
    realm.world.admin.call("put_webhook", realm.slug, "crm", receiver.url)
    try:
        number = new_number()
        started, _ = proven(realm, number)
        failed = realm.srv.unify(number)
        phone = realm.srv.phone(failed, ProofKey())
        phone.call("open")
        phone.call("send", channel="otp")
        phone.refused("check", 400, "possession_failed", otp="no")

        def steps(events, transaction):
            return [event for event in events if event.object.get("correlation_id") == transaction.correlationId]
        events = receiver.wait(lambda events: len(steps(events, started)) >= 4 and len(steps(events, failed)) >= 3)
        assert [event.name.rsplit(":", 1)[-1] for event in steps(events, started)] == [
            "possession_started", "possession_sent", "possession_bound", "possession_passed"]
        last = steps(events, failed)[-1]
        assert last.name.endswith("possession_failed") and last.object["codes"] == ["9100", "9210"], last.claims
        for event in events:
            assert event.claims["sub_id"]["format"] == "opaque" and number[1:] not in json.dumps(event.claims), event.claims
            jose.verify_es256(event.token, realm.app().get("/.well-known/jwks").json())
    finally:
        realm.world.admin.call("delete_webhook", realm.slug, "crm")
        receiver.close()
