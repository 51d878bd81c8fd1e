"""What was proven by a phone number serves the person who had it then: the old key against the next owner of the number, proofs
of one client at another, and proofs that outlive the account's sign-out."""

import json
import re
import time

import pytest

from harness.app import bearer
from harness.dpop import ProofKey
from harness.phones import new_number
from harness.possession import Backend, furnished, possession, signs_in

REFUSED = {"error": "invalid_grant", "error_description": "The possession check is not valid."}
DEVICES = "/connect/devices"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = signs_in(furnished(possession(world.realm()), "cap:assert-possession"))
    realm.srv2 = Backend(realm, "srv2")
    world.admin.call("put_possession_client", realm.slug, realm.client("srv2"), login_client=realm.client("app"))
    world.settle()
    yield realm
    realm.phones.close()


def opened(realm, number, key, backend=None, **members):
    """A transaction that a key opened: transaction, app, state."""
    backend = backend or realm.srv
    started = backend.unify(number, **members)
    phone = backend.phone(started, key)
    return started, phone, phone.call("open")["state"]


def codes(realm, number):
    """The codes that a number got; notices go there, too."""
    return [message["code"] for message in realm.phones.to(number) if "code" in message]


def proven(realm, number, key, **members):
    """A transaction that a code has passed, and the app."""
    started, phone, _ = opened(realm, number, key, **members)
    before = len(codes(realm, number))
    phone.call("send", channel="otp")
    deadline = time.monotonic() + 10
    while len(codes(realm, number)) == before:
        assert time.monotonic() < deadline, realm.phones.messages
        time.sleep(0.02)
    assert phone.call("check", otp=codes(realm, number)[-1]) == {"state": "passed"}
    return started, phone


def sign_in(realm, phone):
    """One redemption; the raw answer."""
    return phone.app.token({
        "grant_type": "urn:postern:possession", "client_id": realm.client("app"), "auth_token": phone.token, "scope": "openid"})


def subject(phone, answer):
    """Who signed in."""
    assert answer.status == 200, answer
    return phone.app.userinfo(answer.json()["access_token"]).json()["sub"]


def owner(realm, number, email=None):
    """A user with the number; returns the id."""
    return realm.world.admin.call("put_user", realm.slug, email, **({"email_verified": True} if email else {}), phone=number)


def leaves(realm, user, number):
    """The number leaves the account."""
    realm.world.admin.call("put_identifier", realm.slug, user, "email", realm.new_email())
    realm.world.admin.call("delete_identifier", realm.slug, user, "phone", number)


@pytest.mark.parametrize("before", ["nobody's", "another account's", "a deleted account's", "a stale number"])
def test_a_key_that_proved_a_number_does_not_sign_in_as_its_next_owner(realm, before):
    """The attack: one code binds the key, the number gets another owner, and the key comes back, by itself and without a code."""
    admin, number, key = realm.world.admin, new_number(), ProofKey()
    former = owner(realm, number) if before != "nobody's" else None
    _, early = proven(realm, number, key)
    _, bound, state = opened(realm, number, key)
    assert state == "passed", "the key of the former holder"
    if before == "another account's":
        leaves(realm, former, number)
    elif before == "a deleted account's":
        admin.call("delete_user", realm.slug, former)
    elif before == "a stale number":
        realm.world.cluster.sql(f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '{number}'")
        realm.world.cluster.sql(
            "SELECT set_config('postern.realm', realm_id::text, false), postern.release_number(realm_id, user_id, value) "
            f"FROM postern.user_identifier WHERE value = '{number}'")
    victim = owner(realm, number)
    for passed in (early, bound):
        answer = sign_in(realm, passed)
        assert (answer.status, answer.json()) == (400, REFUSED), "what was passed before"
    _, attacker, state = opened(realm, number, key)
    assert state == "open", "the key is new"
    assert sign_in(realm, attacker).json() == REFUSED
    unnamed = opened(realm, None, key)
    assert unnamed[2] == "open" and unnamed[1].call("open")["phoneNumberNeeded"] is True
    # Control: the owner proves the number, and signs in.
    _, phone = proven(realm, number, ProofKey())
    assert subject(phone, sign_in(realm, phone)) == victim != former


def test_a_code_that_was_sent_to_the_former_holder_is_worth_nothing(realm):
    """It was on its way when the number got another owner."""
    number, key = new_number(), ProofKey()
    former = owner(realm, number)
    _, phone, _ = opened(realm, number, key)
    phone.call("send", channel="otp")
    code = realm.phones.wait(number)["code"]
    leaves(realm, former, number)
    owner(realm, number)
    assert phone.refused("check", 409, "transaction_over", otp=code)["state"] == "failed"


def test_a_pass_by_key_leaves_the_proof_of_the_number_as_old_as_it_is(realm):
    """A stale number stays stale: it may be somebody else's by now."""
    cluster, number, key = realm.world.cluster, new_number(), ProofKey()
    user = owner(realm, number)
    proven(realm, number, key)
    cluster.sql(f"UPDATE postern.user_identifier SET proved_at = now() - interval '89 days' WHERE value = '{number}'")
    fresh = f"SELECT proved_at > now() - interval '1 day' FROM postern.user_identifier WHERE value = '{number}'"
    _, phone, state = opened(realm, number, key)
    assert state == "passed" and subject(phone, sign_in(realm, phone)) == user
    assert cluster.value(fresh) == "f"
    cluster.sql(f"UPDATE postern.user_identifier SET proved_at = now() - interval '91 days' WHERE value = '{number}'")
    _, phone, state = opened(realm, number, key)
    assert state == "passed" and sign_in(realm, phone).json() == REFUSED
    cluster.sql(f"UPDATE postern.user_identifier SET proved_at = now() - interval '89 days' WHERE value = '{number}'")
    _, phone = proven(realm, number, ProofKey())
    assert subject(phone, sign_in(realm, phone)) == user and cluster.value(fresh) == "t", "a code does"


def test_what_one_backend_says_proves_nothing_to_another(realm):
    """An asserted key passes at the client that asserted it; at any other it is a new key, which a code makes known to both."""
    number, key = new_number(), ProofKey()
    user = owner(realm, number)
    started, _, state = opened(realm, number, key, kind="none")
    assert state == "required"
    assert realm.srv.call("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=number).success == "true"
    assert opened(realm, number, key)[2] == "passed"
    for named in (number, None):
        _, phone, state = opened(realm, named, key, realm.srv2)
        assert state == "open" and sign_in(realm, phone).json() == REFUSED, named
    none, _, state = opened(realm, number, key, realm.srv2, kind="none")
    assert state == "required" and "9101" not in str(realm.srv2.status(none))
    _, phone = proven(realm, number, key, backend=realm.srv2)
    assert subject(phone, sign_in(realm, phone)) == user
    assert opened(realm, number, key)[2] == opened(realm, number, key, realm.srv2)[2] == "passed"


@pytest.mark.parametrize("end", ["signed out everywhere", "disabled and enabled"])
@pytest.mark.parametrize("by", ["code", "key"])
def test_a_passed_transaction_ends_with_everything_that_the_account_had_opened(realm, by, end):
    """It waits 900 seconds for its redemption; the account says that all is over."""
    admin, number, key = realm.world.admin, new_number(), ProofKey()
    user = owner(realm, number)
    started, phone = proven(realm, number, key)
    if by == "key":
        started, phone, _ = opened(realm, number, key)
    if end == "signed out everywhere":
        admin.call("sign_out_everywhere", realm.slug, user)
    else:
        admin.call("set_user_enabled", realm.slug, user, False)
        admin.call("set_user_enabled", realm.slug, user, True)
    assert sign_in(realm, phone).json() == REFUSED
    assert realm.srv.status(started).success == "true", "the number was proven all the same"
    _, phone = proven(realm, number, key, rebind=True)
    assert subject(phone, sign_in(realm, phone)) == user, "control"


def test_the_holder_of_a_number_is_told_of_keys_sees_and_ends_them(realm):
    """A notice, `GET /connect/devices`, `DELETE`; other people neither see nor end them."""
    number, key, email = new_number(), ProofKey(), realm.new_email()
    owner(realm, number, email)
    started, phone = proven(realm, number, key)
    device = realm.srv.status(started).deviceId
    mail = realm.world.mailbox.wait(email, 2, kind="notice")
    assert "was linked to the phone number" in mail.text, mail.text
    assert f"+43···{number[-4:]}" in mail.text and "127.0.x.x" in mail.text, mail.text
    token = realm.app().sign_in(email)["access_token"]
    listed = realm.app().get(DEVICES, bearer(token)).json()
    assert [(d["Id"], d["ClientId"], d["AddedBy"], d["Phone"]) for d in listed] == [
        (device, realm.client("srv"), "phone", f"+43{'•' * (len(number) - 7)}{number[-4:]}")], listed
    other = realm.app().sign_in(realm.user())["access_token"]
    assert realm.app().get(DEVICES, bearer(other)).json() == []
    assert realm.app().exchange("DELETE", f"{DEVICES}/{device}", bearer(other)).status == 404
    assert realm.app().exchange("DELETE", f"{DEVICES}/{device}", bearer(token)).status == 204
    assert realm.app().get(DEVICES, bearer(token)).json() == []
    assert opened(realm, number, key)[2] == "open", "it is a new key"
    assert realm.app().exchange("DELETE", f"{DEVICES}/{device}", bearer(token)).status == 404


def test_a_pass_that_nobody_redeemed_stays_a_pass(realm):
    """After the 900 seconds the backend still reads it; a redemption is too late."""
    number, key = new_number(), ProofKey()
    owner(realm, number)
    started, phone = proven(realm, number, key)
    realm.world.cluster.sql(
        f"UPDATE postern.device_request SET expires_at = now() - interval '1 second' WHERE id = '{started.correlationId}'")
    status = realm.srv.status(started)
    assert (status.success, status.phoneNumber) == ("true", number)
    assert sign_in(realm, phone).json() == REFUSED


def test_after_a_lost_link_another_message_goes_on(realm):
    """`linked` leads to `sent`: what the link gave is worth nothing then."""
    number = new_number()
    started, phone, _ = opened(realm, number, ProofKey(), finalTargetUrl="https://app.example/done")
    phone.call("send", channel="link")
    token = realm.phones.wait(number)["link"].rsplit("/", 1)[1]
    page = realm.app().exchange(
        "POST", f"/p/{token}", {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}, b"action=continue")
    assert page.status == 303, page
    assert phone.call("result") == {"state": "linked"}
    assert phone.call("send", channel="otp")["state"] == "sent"
    phone.refused("finish", 400, "redirect_unknown", redirectUrl=page.header("location"))
    assert phone.call("check", otp=realm.phones.wait(number, 2)["code"]) == {"state": "passed"}
    assert realm.srv.status(started).success == "true"


def test_a_test_number_leaves_nothing_behind(realm):
    """Its code is not in the database, its key counts for its client alone, and goes with it."""
    admin, number, key = realm.world.admin, new_number(), ProofKey()
    admin.call("put_test_number", realm.slug, number, realm.client("srv"), "code", "918273")
    _, phone, _ = opened(realm, number, key)
    phone.call("send", channel="otp")
    phone.refused("check", 400, "possession_failed", otp="918274")
    _, phone, _ = opened(realm, number, key)
    phone.call("send", channel="otp")
    assert phone.call("check", otp="918273") == {"state": "passed"}
    assert b"918273" not in realm.world.cluster.dump()
    assert opened(realm, number, key)[2] == "passed"
    assert opened(realm, number, key, realm.srv2)[2] == "open"
    user = owner(realm, number)
    admin.call("delete_test_number", realm.slug, number)
    _, phone, state = opened(realm, number, key)
    assert state == "open" and sign_in(realm, phone).json() == REFUSED, user


def test_the_holder_takes_a_linked_device_away_by_the_link_in_the_mail(realm, world):
    """GET and keep change nothing; undo ends the device's proof and every session, once."""
    number, key, email = new_number(), ProofKey(), realm.user()
    realm.app().sign_in(email)
    user = json.loads(world.admin.rows_of("users", email)[0])["id"]
    world.admin.call("put_identifier", realm.slug, user, "phone", number)
    world.settle_messages()
    before = sum(mail.kind == "notice" for mail in world.mailbox.to(email))
    _, phone = proven(realm, number, key)
    answer = sign_in(realm, phone)
    assert answer.status == 200, answer
    mail = world.mailbox.wait(email, before + 1, kind="notice")
    path = re.search(r"https://[^/\s]+(/undo/[A-Za-z0-9_-]+)", mail.text).group(1)
    app = realm.app()
    for page in (app.get(path), app.post(path, {"action": "keep"}), app.get(path)):
        assert page.status == 200, page
    assert number[-4:].encode() in app.get(path).body and number.encode() not in app.get(path).body
    assert opened(realm, number, key)[2] == "passed"
    assert app.post(path, {"action": "undo"}).status == 200
    assert phone.app.userinfo(answer.json()["access_token"]).status == 401
    assert opened(realm, number, key)[2] == "open", "the device needs a code again"
    assert app.post(path, {"action": "undo"}).status == 200, "the same form again"
    assert app.get(path).status == 400
