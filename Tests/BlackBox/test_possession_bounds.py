"""Proofs of numbers at their bounds: whose token, which number, which host; what is not kept; and what happens in the same moment."""

import itertools
import json
import time
import urllib.parse
import uuid

import pytest

from harness import atrest, wire
from harness.dpop import ProofKey, assert_invalid
from harness.ledger import LEDGER
from harness.phones import new_number
from harness.possession import Backend, Phone, furnished, opened, possession, signs_in
from harness.volley import in_parallel
from test_possession_races import at_once, phones_of

TARGET = "https://app.example/done"
ROUNDS = 5


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = signs_in(furnished(possession(world.realm("possbounds")), "cap:assert-possession", default_region="US"))
    realm.nodes = [world.node, world.start_node()]
    yield realm
    realm.phones.close()
    realm.nodes[1].stop()


def linked(realm):
    """One with a link on the phone: transaction, app, path, the number to type."""
    number = new_number()
    started, phone = opened(realm, number, "desktop", finalTargetUrl=TARGET)
    sent = phone.call("send", channel="link")
    return started, phone, urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path, sent["matchNumber"]


def confirm(realm, path, number, node=None):
    """The form of the page; the raw answer."""
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    return realm.app(node=node).exchange("POST", path, headers, wire.form_body({"number": number}))


# -- who may call -----------------------------------------------------------------------------------


def test_the_calls_of_one_transaction_are_limited(realm):
    """429 by policy `possession`, dimension `target`; another transaction goes on."""
    realm.limit("possession", "target", 3, per="1 minute")
    try:
        (_, phone), (_, other) = opened(realm, new_number()), opened(realm, new_number())
        answers = [phone.ask("result") for _ in range(4)]
        assert [answer.status for answer in answers] == [200, 200, 429, 429], answers
        document = answers[-1].json()
        assert (document["policy"], document["dimension"]) == ("possession", "target"), document
        assert answers[-1].header("retry-after") == str(document["retryAfterSeconds"]) and 1 <= document["retryAfterSeconds"] <= 20
        assert other.ask("result").status == 200
    finally:
        realm.limit("possession", "target", 120, per="1 minute")


def test_a_wait_ends_with_its_transaction(world, realm):
    """`failed` at its end, and not the state of before at the end of the wait: the token is over by then."""
    started, phone = opened(realm, new_number())
    world.cluster.sql(f"UPDATE postern.device_request SET expires_at = now() + interval '2 seconds' WHERE id = '{started.correlationId}'")
    began = time.monotonic()
    assert phone.call("result", wait=20) == {"state": "failed"}
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("status, body, fields", [
    (413, b" " * 65_537, {}), (415, b"{}", {"Content-Type": "text/plain"}), (415, b"{}", {"Content-Encoding": "gzip"}), (400, b"[]", {}),
    (400, b'{"channel":"otp","Channel":"otp"}', {}),
])
def test_a_body_that_cannot_be_read_has_the_form_of_every_error_of_apps(realm, status, body, fields):
    """`error` and `message`; nothing is counted, and the app goes on."""
    _, phone = opened(realm, new_number())
    path = "/connect/possession/send"
    answer = phone.app.exchange("POST", path, {"Authorization": f"DPoP {phone.token}", "Content-Type": "application/json", **fields}, body)
    assert (answer.status, answer.json()["error"]) == (status, "invalid_request") and answer.json()["message"], answer
    assert phone.call("open")["sendsLeft"] == 3


def test_tokens_that_are_not_this_backends(world, realm):
    """Of another realm, of a disabled client, of a secret that was rotated, altered, of a user: 401 and 8002; the right one is taken."""
    other = possession(world.realm("possother"))
    foreign = Backend(other, "srv")
    leaving, rotated = Backend(realm, "leaving"), Backend(realm, "rotated")
    assert leaving.unify() and rotated.unify()
    LEDGER.add("client_secret", world.admin.call("rotate_client_secret", realm.slug, realm.client("rotated")))
    world.admin.call("put_client", realm.slug, realm.client("leaving"), enabled=False)
    world.settle()
    for token in (foreign.token, leaving.token, rotated.token, realm.srv.token[:-4] + "AAAA", "", realm.app().sign_in(realm.user())["access_token"]):
        answer = realm.srv.app.post_json("/v3/unify", {"possessionType": "mobile"}, {"Authorization": f"Bearer {token}"})
        assert (answer.status, answer.json()["code"]) == (401, 8002), answer
        assert answer.header("www-authenticate").startswith("Bearer")
    assert realm.srv.unify()


def test_a_token_for_an_app_is_of_its_realm_and_no_access_token(world, realm):
    """Every other endpoint refuses it, and introspection calls it inactive; the steps of its proof take it afterwards."""
    other = possession(world.realm("posselse"))
    started = realm.srv.unify(new_number())
    phone = Phone(other, started.authToken)
    answer = phone.ask("open")
    assert (answer.status, answer.error) == (401, "invalid_token"), answer
    assert realm.app("api").introspect(started.authToken).json() == {"active": False}
    assert realm.app().userinfo(started.authToken).status == 401
    assert realm.srv.phone(started).call("open")["state"] == "open"


# -- numbers ----------------------------------------------------------------------------------------


def test_three_spellings_are_one_number(realm):
    """Each is the test number that was put once, and comes back as E.164."""
    realm.world.admin.call("put_test_number", realm.slug, "+12025550143", realm.client("srv"), "pass")
    for text in ("2025550143", "12025550143", "+12025550143"):
        status = realm.srv.status(realm.srv.unify(text))
        assert (status.success, status.phoneNumber, status.testNumber) == ("true", "+12025550143", True), text


def test_numbers_that_are_not_served_start_nothing(world, realm):
    """Denied, of another country, of special rate, and any where the realm has no policy or no region of its own."""
    admin = world.admin
    admin.call("put_phone_prefix", realm.slug, "+43681", "deny")
    bare = possession(world.realm("possbare"))
    nowhere = Backend(bare, "srv")
    world.settle()
    count = "SELECT count(*) FROM postern.device_request WHERE kind <> 'approval'"
    before = world.cluster.value(count)
    for backend, number in ((realm.srv, "+43681123456"), (realm.srv, "+4915112345678"), (realm.srv, "+19005550123"), (nowhere, "+436641234567"),
                            (nowhere, "2025550143")):
        answer = backend.ask("/v3/unify", possessionType="mobile", phoneNumber=number)
        assert (answer.status, answer.json()["message"]) == (400, "field 'phoneNumber' is invalid"), (number, answer)
    assert world.cluster.value(count) == before
    phone = opened(realm)[1]
    phone.refused("send", 400, "phone_number_invalid", channel="otp", phoneNumber="+43681123456")
    assert realm.srv.unify("+436641234567")


def test_what_a_backend_names_and_nobody_knows_is_no_oracle(realm):
    """A start with an unknown proveId or deviceId is answered as one without: the phone is asked for later."""
    answers = [realm.srv.ask("/v3/unify", possessionType="mobile", **{name: str(uuid.uuid4())}) for name in ("proveId", "deviceId")]
    for answer in answers:
        assert answer.status == 200 and set(answer.json()) == {"authToken", "correlationId", "success"}, answer
        phone = Phone(realm, answer.json()["authToken"])
        assert phone.call("open")["phoneNumberNeeded"] is True


def test_what_is_not_taken_is_not_kept(world, realm):
    """dob, ssn and the address for a risk provider: in no table, and in no log."""
    marks = {"dob": "1815-12-10", "ssn": "078-05-1120"}
    for name, value in marks.items():
        assert realm.srv.ask("/v3/start", flowType="mobile", **{name: value}).status == 400
    number, address = new_number(), "ada-of-the-risk-provider@mail.example"
    realm.srv.unify(number, emailAddress=address, ipAddress="198.51.100.77")
    dump, log = world.cluster.dump().decode(errors="replace"), "".join(node.log() for node in realm.nodes)
    for text in (*marks.values(), address):
        assert text not in dump and text not in log, text
    assert not atrest.leaks({("address", address)}, dump + log)
    assert number not in log


# -- links ------------------------------------------------------------------------------------------


def test_a_link_has_the_realms_origin_whoever_sends(realm):
    """A forged Host or X-Forwarded-Host does not change the answer of a call."""
    number = new_number()
    _, phone = opened(realm, number, "desktop", finalTargetUrl=TARGET)
    fields = {"Authorization": f"DPoP {phone.token}", "Content-Type": "application/json", "X-Forwarded-Host": "evil.example",
              "Forwarded": "host=evil.example;proto=http", "X-Forwarded-Proto": "http"}
    assert phone.app.exchange("POST", "/connect/possession/send", fields, b'{"channel":"link"}').status == 200
    link = realm.phones.wait(number)["link"]
    assert link.startswith(realm.issuer + "/p/") and "evil" not in str(realm.phones.wait(number))


def test_a_link_ends_when_the_number_is_changed(realm):
    """The page of the first one is dead, that of the second passes, and the backend reads the second number."""
    admin = realm.world.admin
    admin.call("put_possession_client", realm.slug, realm.client("srv"), phone_change=True)
    try:
        started, phone, path, number = linked(realm)
        second = new_number()
        sent = phone.call("send", channel="link", phoneNumber=second)
        assert confirm(realm, path, number).status == 400
        assert confirm(realm, urllib.parse.urlsplit(realm.phones.wait(second)["link"]).path, sent["matchNumber"]).status == 303
        assert realm.srv.status(started).phoneNumber == second
    finally:
        admin.call("put_possession_client", realm.slug, realm.client("srv"), phone_change=False)


def test_an_answer_on_the_phone_reaches_a_desktop_that_waits_at_another_node(realm):
    """At once."""
    started, phone, path, number = linked(realm)
    there = realm.srv.phone(started, phone.key, realm.nodes[1])
    there.app.nonce = phone.app.nonce

    def press():
        deadline = time.monotonic() + 10
        while realm.nodes[1].metric("postern_held_requests") == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        answer, pressed = confirm(realm, path, number), time.monotonic()
        assert answer.status == 303, answer
        return pressed
    (state, told), pressed = in_parallel(lambda work: work(), [lambda: (there.call("result", wait=25), time.monotonic()), press], threads=2)
    assert state == {"state": "passed"} and told - pressed < 1.5, told - pressed


def test_numbers_of_one_block_are_limited_unless_their_codes_are_entered(realm):
    """A backend that is made to send to one number after another stops at the limit of the block; people who enter their codes do not."""
    digits = itertools.count(436771230000)
    realm.limit("phone-otp", "prefix", 4, per="1 hour", burst=4)

    def send(count, enters):
        answers = []
        for _ in range(count):
            number = f"+{next(digits)}"
            phone = realm.srv.phone(realm.srv.unify(number))
            phone.call("open")
            answers.append(phone.ask("send", channel="otp"))
            if enters and answers[-1].status == 200:
                assert phone.call("check", otp=realm.phones.wait(number)["code"]) == {"state": "passed"}
        return answers
    try:
        assert {answer.status for answer in send(12, enters=True)} == {200}
        answers = send(9, enters=False)
    finally:
        realm.limit("phone-otp", "prefix", 1_000_000, per="1 minute", burst=1_000_000)
    assert [answer.status for answer in answers] == [200] * 4 + [429] * 5, answers
    assert (answers[-1].json()["policy"], answers[-1].json()["dimension"]) == ("phone-otp", "prefix")


def test_a_used_proof_of_a_step_is_used_at_every_node(realm):
    """At each step that is taken twice; the same step goes on with a proof of its own, and the right code passes."""
    number = new_number()
    started = realm.srv.unify(number, allowOTPRetry=True)
    phone = realm.srv.phone(started)
    assert phone.call("open")["state"] == "open"
    there = realm.srv.phone(started, phone.key, realm.nodes[1])
    for step, members in (("open", {}), ("send", {"channel": "otp"}), ("check", {"otp": "x"}), ("result", {})):
        path = f"/connect/possession/{step}"
        fields = {
            "Authorization": f"DPoP {phone.token}", "Content-Type": "application/json", "DPoP": phone.app.proof("POST", path, phone.token)}
        first = phone.app.exchange("POST", path, fields, json.dumps(members).encode())
        assert first.status == (400 if step == "check" else 200), (step, first)
        for app in (phone.app, there.app):
            assert_invalid(wire.exchange(app.node.port, "POST", path, {"Host": realm.host, **fields}, json.dumps(members).encode()), protected=True)
    realm.phones.wait(number)
    assert phone.call("open")["sendsLeft"] == 2 and len(realm.phones.to(number)) == 1
    assert phone.refused("check", 400, "otp_invalid", otp="x")["triesLeft"] == 1, "a used proof counts no try"
    assert phone.call("check", otp=realm.phones.wait(number)["code"]) == {"state": "passed"}


# -- the same moment --------------------------------------------------------------------------------


def test_many_sign_ins_by_a_proof_open_one_session(realm):
    """Over both nodes, each with a proof of its own: each gets it."""
    for _ in range(ROUNDS):
        number = new_number()
        user = realm.world.admin.call("put_user", realm.slug, phone=number)
        _, phone = opened(realm, number)
        phone.call("send", channel="otp")
        phone.call("check", otp=realm.phones.wait(number)["code"])
        form = {"grant_type": "urn:postern:possession", "client_id": realm.client("app"), "auth_token": phone.token, "scope": "openid"}
        answers = at_once([lambda p=p: p.app.token(form) for p in phones_of(realm, phone, 16)])
        assert {answer.status for answer in answers} == {200}, answers
        assert int(realm.world.cluster.value(f"SELECT count(*) FROM postern.session WHERE user_id = '{user}'")) == 1


def test_right_and_wrong_numbers_on_one_page_at_once(realm):
    """One of them decides, and who sends the same number meanwhile is led on as it was; the others find a dead link."""
    seen = set()
    for _ in range(ROUNDS):
        started, phone, path, number = linked(realm)
        wrong = "10" if number != "10" else "11"
        answers = at_once([lambda n=n: confirm(realm, path, (number, wrong)[n % 2], realm.nodes[n // 2 % 2]) for n in range(16)])
        assert {answer.status for answer in answers} == {303, 400}, answers
        (place,) = {answer.header("location") for answer in answers if answer.status == 303}
        (sent,) = {n % 2 for n, answer in enumerate(answers) if answer.status == 303}
        passed = "asc=true" in place
        assert passed == (sent == 0)
        assert realm.srv.status(started).success == ("true" if passed else "false")
        assert phone.call("result") == {"state": "passed" if passed else "failed"}
        seen.add(passed)
    assert seen


def test_a_key_that_is_revoked_while_it_opens(realm):
    """It passes as the bound key or is new, as its row says; afterwards it is new."""
    for _ in range(ROUNDS):
        number, key = new_number(), ProofKey()
        first = realm.srv.unify(number)
        phone = realm.srv.phone(first, key)
        phone.call("open")
        phone.call("send", channel="otp")
        phone.call("check", otp=realm.phones.wait(number)["code"])
        device = realm.srv.status(first).deviceId
        second = realm.srv.unify(number)
        there = realm.srv.phone(second, key, realm.nodes[1])
        there.app.nonce = phone.app.nonce
        answer, revoked = at_once([lambda t=there: t.ask("open"), lambda d=device: realm.srv.ask("/v3/device/revoke", deviceId=d)])
        assert (answer.status, revoked.status) == (200, 200), (answer, revoked)
        status = realm.srv.status(second).success
        assert {"passed": "true", "open": "pending"}[answer.json()["state"]] == status
        third = realm.srv.unify(number)
        assert realm.srv.phone(third, key).call("open")["state"] == "open"
        assert realm.srv.ask("/v3/device/revoke", deviceId=device).status == 404
