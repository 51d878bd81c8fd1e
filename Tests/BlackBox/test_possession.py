"""The app's side of a proof: the key, the messages, the tries, and what each step is refused with."""

import re
import uuid

import pytest

from harness.dpop import DPoPApp, ProofKey, assert_invalid, nonce_of
from harness.phones import Phones, new_number
from harness.possession import Backend, coded, furnished, opened, possession

TARGET = "https://app.example/done"


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = furnished(possession(world.realm()), "cap:assert-possession")
    yield realm
    realm.phones.close()


def test_a_code_proves_a_number(realm):
    """open, send, check; then the backend knows."""
    number = new_number()
    started, phone = opened(realm, number)
    assert set(phone.opened) == {"authId", "state", "phoneNumberNeeded", "channels", "sendsLeft", "expiresIn"}
    assert (phone.opened["state"], phone.opened["phoneNumberNeeded"], phone.opened["channels"], phone.opened["sendsLeft"]) == ("open", False, ["otp"], 3)
    assert 890 <= phone.opened["expiresIn"] <= 900 and phone.call("open")["authId"] == phone.opened["authId"]
    assert realm.phones.to(number) == []
    sent = phone.call("send", channel="otp")
    assert sent == {"state": "sent", "channel": "otp", "phoneNumber": number[:3] + "•" * (len(number) - 7) + number[-4:], "expiresIn": 120,
                    "resendAfter": 0, "sendsLeft": 2, "triesLeft": 1}
    message = realm.phones.wait(number)
    assert (message["purpose"], message["kind"]) == ("possession", "otp") and re.fullmatch("[0-9]{6}", message["code"])
    assert message["text"].endswith(f"\n@{realm.host} #{message['code']}")
    assert phone.call("check", otp=f" {message['code']}\t") == {"state": "passed"}
    status = realm.srv.status(started)
    assert status.success == "true" and uuid.UUID(status.deviceId) and uuid.UUID(status.proveId)
    assert phone.call("check", otp=message["code"]) == {"state": "passed"}, "the answer may have been lost"
    other = ("1" if message["code"][0] == "0" else "0") + message["code"][1:]
    assert phone.refused("check", 409, "transaction_over", otp=other)["state"] == "passed"
    assert phone.call("result", wait=25) == {"state": "passed"}


def test_the_backends_own_words(realm):
    """Byte for byte, but for the code, which is as long as the realm wants."""
    _, _, number, code = coded(realm, smsMessage="Your #### for ü")
    assert realm.phones.wait(number)["text"] == f"Your {code} for ü" and len(code) == 6


def test_the_token_needs_its_key(realm):
    """No Bearer, no proof, none without ath, none twice, none without a nonce; the token's own nonce serves."""
    started = realm.srv.unify()
    fields = {"Content-Type": "application/json"}
    path = "/connect/possession/open"
    app = DPoPApp(realm.app(), ProofKey(), obeys=False)
    bearer = app.plain.exchange("POST", path, {**fields, "Authorization": f"Bearer {started.authToken}"}, b"{}")
    assert (bearer.status, bearer.error) == (401, "invalid_token")
    assert app.plain.exchange("POST", path, fields, b"{}").status == 401
    scheme = {**fields, "Authorization": f"DPoP {started.authToken}"}
    assert_invalid(app.plain.exchange("POST", path, scheme, b"{}"), protected=True)
    nonceless = app.exchange("POST", path, scheme, b"{}")
    assert (nonceless.status, nonceless.error) == (401, "use_dpop_nonce")
    app.nonce = nonce_of(nonceless)
    assert_invalid(app.exchange("POST", path, {**scheme, "DPoP": app.proof("POST", path)}, b"{}"), protected=True)
    proof = app.proof("POST", path, started.authToken)
    assert app.exchange("POST", path, {**scheme, "DPoP": proof}, b"{}").status == 200
    assert_invalid(app.exchange("POST", path, {**scheme, "DPoP": proof}, b"{}"), protected=True)
    own = DPoPApp(realm.app(), ProofKey(), obeys=False)
    second = realm.srv.unify()
    own.nonce = wire_nonce(second.authToken)
    answer = own.exchange("POST", path, {**fields, "Authorization": f"DPoP {second.authToken}"}, b"{}")
    assert answer.status == 200, answer


def wire_nonce(token):
    """The claim `nonce`."""
    import base64, json  # pylint: disable=import-outside-toplevel,multiple-imports
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["nonce"]


def test_tokens_that_are_none(realm):
    """Altered, of another kind: 401; the right one still works."""
    started = realm.srv.unify()
    tokens = realm.app().sign_in(realm.user())
    head, payload, signature = started.authToken.split(".")
    for token in (started.authToken[:-3] + "AAA", f"{head}.{payload}.", f"{head}.{payload}", tokens["id_token"], tokens["access_token"],
                  "eyJhbGciOiJub25lIn0." + payload + "." + signature):
        phone = realm.srv.phone(started)
        phone.token = token
        answer = phone.ask("open")
        assert (answer.status, answer.error) == (401, "invalid_token"), answer
    assert realm.srv.phone(started).call("open")


def test_the_first_key_pins(realm):
    """Another key gets nowhere; the first goes on."""
    started, phone, number, code = coded(realm)
    thief = realm.srv.phone(started)
    for step, members in (("open", {}), ("send", {"channel": "otp"}), ("check", {"otp": code}), ("result", {}), ("cancel", {})):
        thief.refused(step, 403, "wrong_key", **members)
    assert len(realm.phones.to(number)) == 1
    assert phone.call("check", otp=code) == {"state": "passed"}


def test_steps_out_of_order(realm):
    """Nothing before open; a channel that the kind does not have."""
    phone = realm.srv.phone(realm.srv.unify(new_number()))
    for step, members in (("send", {"channel": "otp"}), ("check", {"otp": "1"})):
        phone.refused(step, 403, "step_not_allowed", **members)
    phone.call("open")
    phone.refused("send", 400, "channel_not_available", channel="link")
    phone.refused("send", 400, "channel_not_available", channel="pigeon")
    phone.refused("check", 403, "step_not_allowed", otp="1")
    _, desktop = opened(realm, new_number(), kind="desktop", finalTargetUrl=TARGET)
    desktop.refused("send", 400, "channel_not_available", channel="otp")
    _, none = opened(realm, new_number(), kind="none")
    none.refused("send", 403, "step_not_allowed", channel="otp")


def test_numbers_that_the_app_names(realm):
    """Needed, refused, changed only where the client lets it, three at most."""
    _, phone = opened(realm)
    assert phone.opened["phoneNumberNeeded"] is True
    for number in (None, ""):
        phone.refused("send", 400, "phone_number_needed", channel="otp", phoneNumber=number)
    for number in ("MYBANK", "+4915112345678"):
        phone.refused("send", 400, "phone_number_invalid", channel="otp", phoneNumber=number)
    first, second = new_number(), new_number()
    assert phone.call("send", channel="otp", phoneNumber=first)["sendsLeft"] == 2
    phone.refused("send", 403, "phone_change_not_allowed", channel="otp", phoneNumber=second)
    admin = realm.world.admin
    admin.call("put_possession_client", realm.slug, realm.client("srv"), phone_change=True)
    try:
        old = realm.phones.wait(first)["code"]
        phone.call("send", channel="otp", phoneNumber=second)
        new = realm.phones.wait(second)["code"]
        if old != new:
            phone.refused("check", 400, "possession_failed", otp=old)
    finally:
        admin.call("put_possession_client", realm.slug, realm.client("srv"), phone_change=False)


def test_messages_are_counted(realm):
    """Three, whatever for; the cooldown counts nothing; the newest code alone is right."""
    number = new_number()
    started, phone = opened(realm, number, allowOTPRetry=True)
    for sent, left in enumerate([2, 1, 0], 1):
        assert phone.call("send", channel="otp")["sendsLeft"] == left
        realm.phones.wait(number, sent)
    phone.refused("send", 400, "send_limit", channel="otp")
    codes = [message["code"] for message in realm.phones.to(number)]
    newest = codes[-1]
    if codes[0] != newest:
        assert phone.refused("check", 400, "otp_invalid", otp=codes[0])["triesLeft"] == 2
    assert phone.call("check", otp=newest) == {"state": "passed"}
    assert realm.srv.status(started).success == "true"


def test_one_message_may_be_all_there_is(realm):
    """The second is refused and its number costs nothing; the code of the first is good; the code of the failure says so only if it failed."""
    realm.world.admin.call("set_phone_policy", realm.slug, sends=1)
    realm.world.settle()
    try:
        for passes in (True, False):
            number = new_number()
            started, phone = opened(realm, number)
            assert phone.call("send", channel="otp")["sendsLeft"] == 0
            phone.refused("send", 400, "send_limit", channel="otp")
            code = realm.phones.wait(number)["code"]
            if passes:
                assert phone.call("check", otp=code) == {"state": "passed"}
                status = realm.srv.status(started)
                assert status.success == "true" and "9211" not in str(status), status
            else:
                phone.refused("check", 400, "possession_failed", otp="x")
                assert "9211" in str(realm.srv.status(started).evaluation)
            realm.world.settle_messages()
            assert len(realm.phones.to(number)) == 1
    finally:
        realm.world.admin.call("set_phone_policy", realm.slug, sends=3)
        realm.world.settle()


def test_a_try_counts_for_others_before_its_answer_is_read(realm):
    """On the transaction and among the wrong codes of the number, although each answer is an error; a limit or a used proof counts nothing."""
    _, phone, number, code = coded(realm, allowOTPRetry=True)

    def counted():
        rows = realm.world.cluster.sql(
            "SELECT t.tries, g.consecutive FROM postern.device_request t LEFT JOIN postern.code_guard g ON g.realm_id = t.realm_id "
            f"AND g.address_key = t.phone WHERE t.phone = '{number}'")
        return tuple(int(value or 0) for value in rows[0])

    assert counted() == (0, 0)
    for tries, error in ((1, "otp_invalid"), (2, "otp_invalid")):
        phone.refused("check", 400, error, otp=code + "0")
        assert counted() == (tries, tries)
    assert phone.app.exchange("POST", "/connect/possession/check", {"Authorization": f"DPoP {phone.token}", "Content-Type": "application/json", "DPoP": "x"},
                              b'{"otp":"0"}').status == 401
    assert counted() == (2, 2)
    phone.refused("check", 400, "possession_failed", otp=code + "0")
    assert counted() == (3, 3)


def test_the_cooldown(realm):
    """Refused with the time to wait; no message, no count."""
    possession(realm, resend_cooldown="60 seconds")
    try:
        number = new_number()
        _, phone = opened(realm, number)
        assert phone.call("send", channel="otp")["resendAfter"] > 50
        assert phone.refused("send", 400, "resend_too_soon", channel="otp")["resendAfter"] > 50
        assert phone.call("open")["sendsLeft"] == 2 and len(realm.phones.to(number)) <= 1
    finally:
        possession(realm)


def test_tries_are_counted(realm):
    """One; or three, of which a resend gives none back; what is no text counts nothing."""
    _, phone, _, code = coded(realm)
    for otp in (None, 123456, ["1"]):
        phone.refused("check", 400, "invalid_request", otp=otp)
    phone.refused("check", 400, "possession_failed", otp=code[:-1] + "x")
    phone.refused("check", 409, "transaction_over", otp=code)
    _, phone, number, code = coded(realm, allowOTPRetry=True)
    assert phone.refused("check", 400, "otp_invalid", otp=code + "0")["triesLeft"] == 2
    assert phone.refused("check", 400, "otp_invalid", otp=code.replace(code[0], "\u00b2"))["triesLeft"] == 1
    phone.call("send", channel="otp")
    code = realm.phones.wait(number, 2)["code"]
    phone.refused("check", 400, "possession_failed", otp=code + "0")
    _, phone, _, code = coded(realm, allowOTPRetry=True)
    for _ in range(2):
        phone.refused("check", 400, "otp_invalid", otp="x")
    assert phone.call("check", otp=code) == {"state": "passed"}


def test_a_code_is_of_its_transaction(realm):
    """Another one's for the same number is wrong."""
    number = new_number()
    phones = [opened(realm, number)[1] for _ in range(2)]
    for phone in phones:
        phone.call("send", channel="otp")
    realm.phones.wait(number, 2)
    codes = [message["code"] for message in realm.phones.to(number)]
    if codes[0] != codes[1]:
        phones[0].refused("check", 400, "possession_failed", otp=codes[1])


def test_giving_up(realm):
    """Then the right code is too late."""
    started, phone, _, code = coded(realm)
    assert phone.call("cancel") == {"state": "failed"}
    assert phone.refused("check", 409, "transaction_over", otp=code)["state"] == "failed"
    assert realm.srv.status(started).success == "false"


def test_waiting_for_the_end(realm):
    """An answer is held until somebody ends the transaction."""
    _, phone, _, code = coded(realm)
    for wait in (-1, 26, "1", 1.5):
        phone.refused("result", 400, "invalid_request", wait=wait)
    import threading  # pylint: disable=import-outside-toplevel
    waiter = realm.srv.phone(type("Started", (), {"authToken": phone.token}), phone.key)
    waiter.app.nonce = phone.app.nonce
    answers = []
    thread = threading.Thread(target=lambda: answers.append(waiter.ask("result", wait=25)))
    thread.start()
    assert phone.call("check", otp=code) == {"state": "passed"}
    thread.join(10)
    assert answers and answers[0].json() == {"state": "passed"} and answers[0].seconds < 10


def test_no_provider(world):
    """503, and nothing is counted."""
    realm = possession(world.realm())
    phones = Phones(realm, channels=())
    try:
        srv = Backend(realm, "srv")
        phone = srv.phone(srv.unify(new_number()))
        phone.call("open")
        answer = phone.ask("send", channel="otp")
        assert (answer.status, answer.json()["title"]) == (503, "Channel.Unavailable"), answer
        assert phone.call("open")["sendsLeft"] == 3
    finally:
        phones.close()


def test_a_proven_number_signs_in(realm):
    """By the login client, with the key; once; what is not proven for it does not."""
    admin = realm.world.admin
    admin.call("grant_permission", realm.slug, realm.client("app"), variadic=["gt:urn:postern:possession"])
    admin.call("put_possession_client", realm.slug, realm.client("srv"), login_client=realm.client("app"))
    realm.world.settle()
    number = new_number()
    user = admin.call("put_user", realm.slug, phone=number, first_name="Ada")
    started, phone, _, code = coded(realm, number=number)

    def sign_in(app=phone.app, token=phone.token, scope="openid"):
        return app.token({"grant_type": "urn:postern:possession", "client_id": realm.client("app"), "auth_token": token, "scope": scope})
    refused = sign_in()
    assert (refused.status, refused.json()) == (
        400, {"error": "invalid_grant", "error_description": "The possession check is not valid."}), refused
    phone.call("check", otp=code)
    for answer in (sign_in(phone.app.with_key(ProofKey())), sign_in(phone.app.plain), sign_in(token="x")):
        assert answer.same_bytes() == refused.same_bytes()
    granted = sign_in()
    assert granted.status == 200, granted
    tokens = granted.json()
    assert tokens["token_type"] == "DPoP" and phone.app.userinfo(tokens["access_token"]).json()["sub"] == user
    assert sign_in(scope="openid offline_access").same_bytes() == refused.same_bytes()
    assert realm.srv.status(started).success == "true"


def test_discovery_names_the_grant_while_it_is_on(realm):
    """grant_types_supported."""
    assert "urn:postern:possession" in realm.app().get("/.well-known/openid-configuration").json()["grant_types_supported"]


def test_administrators_see_no_code_and_no_whole_number(realm):
    """Nor in the view of transactions."""
    _, _, number, code = coded(realm)
    assert realm.world.admin.rows_of("possessions", code) == realm.world.admin.rows_of("possessions", number) == []


def test_what_strangers_ask_for_a_number_does_not_stop_a_backend(realm):
    """Anonymous requests use up what strangers may ask for the number, though nothing is sent; the backend has its own."""
    number, app = new_number(), realm.app()
    for dimension in ("target", "target-total"):
        realm.limit("phone-otp", dimension, 2, per="1 hour", burst=2)
    try:
        asked = [app.post_json("/api/account/native/otp/request", {"Phone": number}).status for _ in range(3)]
        assert asked == [200, 200, 429]
        phone = realm.srv.phone(realm.srv.unify(number))
        phone.call("open")
        assert phone.ask("send", channel="otp").status == 200
    finally:
        for dimension in ("target", "target-total"):
            realm.limit("phone-otp", dimension, 1_000_000, per="1 minute", burst=1_000_000)


def test_a_message_over_the_limit_of_its_number_is_not_sent(realm):
    """429; it is not counted in the transaction, which goes on later."""
    number = new_number()
    phones = [realm.srv.phone(realm.srv.unify(number)) for _ in range(2)]
    for phone in phones:
        phone.call("open")
    realm.limit("phone-otp", "target", 1, per="1 hour", burst=1)
    try:
        phones[0].call("send", channel="otp")
        answer = phones[1].ask("send", channel="otp")
        assert answer.status == 429 and answer.json()["policy"] == "phone-otp" and answer.header("retry-after"), answer
        assert phones[1].call("open")["sendsLeft"] == 3 and phones[1].call("open")["state"] == "open"
    finally:
        realm.limit("phone-otp", "target", 1_000_000, per="1 minute", burst=1_000_000)
    realm.phones.wait(number)
    assert len(realm.phones.to(number)) == 1
    phones[1].call("send", channel="otp")
    assert phones[1].call("check", otp=realm.phones.wait(number, 2)["code"]) == {"state": "passed"}
