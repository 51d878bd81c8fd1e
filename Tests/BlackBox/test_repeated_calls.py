"""Clients that repeat a call whose answer was lost, as SDKs with retries do: each gets the result of the first, or is told that it is done,
and no message, try, approval, key or device is counted, sent or spent twice. And what they do while the database is away."""

import threading
import time
import urllib.parse

import pytest

from harness import wire
from harness.app import bearer
from harness.approvals import Device as Trusted
from harness.approvals import ask, error, poll, switch_on
from harness.phones import new_number
from harness.possession import Backend, checked, furnished, opened, possession
from harness.proxy import DroppingProxy
from harness.trusted import DEVICES, Device, with_devices
from test_cotter_events import backend

pytestmark = pytest.mark.slow
TARGET = "https://app.example/done"


class EveryFirst(DroppingProxy):
    """The server gets each request; the answer to every other one is lost, whole or after some bytes: of each call the first."""

    def __init__(self, target):
        super().__init__(target, 0, 1)
        self.requests = 0

    def _is_doomed(self, data):
        self.requests += 1
        return self.requests % 2 == 1


def ready(world, name):
    """A realm with devices, approvals, possession and the resend cooldown that realms have."""
    made = possession(with_devices(world.realm(name), probation="0 seconds"), resend_cooldown="10 seconds")
    switch_on(made, "app", "api", public_clients=True)
    made.events = backend(made, "events", "cap:cotter")
    furnished(made, "cap:assert-possession")
    assert made.srv.token
    return made


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = ready(world, "repeats")
    yield made
    made.phones.close()


@pytest.fixture(name="lossy")
def _lossy(world):
    """A node whose answers are lost every first time."""
    made = EveryFirst(world.node.port)
    yield made
    made.close()


def repeated(call, tries=6):
    """Calls until there is an answer, as an SDK does: a lost one and a 503 are repeated. The answer, and how often it took."""
    for number in range(1, tries + 1):
        try:
            answer = call()
        except (wire.WireError, OSError):
            continue
        if answer.status != 503:
            return answer, number
        time.sleep(int(answer.header("retry-after")))
    raise AssertionError(f"no answer after {tries} tries")


def audited(world, event, key, value):
    """How often something is in the audit log."""
    return int(world.cluster.value(f"SELECT count(*) FROM postern.audit_event WHERE event = '{event}' AND detail ->> '{key}' = '{value}'"))


def through(lossy, *clients):
    """Has clients call through the proxy."""
    for client in clients:
        client.node = lossy


def test_a_backend_that_repeats_its_calls(world, realm, lossy):
    """Starts, status, assertion, validation: the same result. A revocation is done once; repeated, the key is unknown."""
    srv = Backend(realm, "repeating", "cap:assert-possession")
    assert srv.token
    through(lossy, srv.app)
    form = {"grant_type": "client_credentials", **srv.app.credentials()}
    answer, tries = repeated(lambda: srv.app.exchange("POST", "/token", {"Content-Type": wire.FORM}, wire.form_body(form)))
    assert answer.status == 200 and tries == 2
    started, tries = repeated(lambda: srv.ask("/v3/unify", possessionType="none"))
    assert (started.status, started.json()["success"], tries) == (200, "pending", 2)
    correlation = started.json()["correlationId"]
    phone = realm.srv.phone(type("Started", (), started.json()))
    assert phone.call("open")["state"] == "required"
    for _ in range(2):
        status, tries = repeated(lambda: srv.ask("/v3/unify-status", correlationId=correlation))
        assert (status.json()["success"], tries) == ("possession_required", 2)
    number = new_number()
    bound, tries = repeated(lambda: srv.ask("/v3/unify-bind", correlationId=correlation, phoneNumber=number))
    assert (bound.status, bound.json()["success"], bound.json()["phoneNumber"], tries) == (200, "true", number, 2)
    assert audited(world, "possession_asserted", "correlation_id", correlation) == 1
    again, _ = repeated(lambda: srv.ask("/v3/unify-bind", correlationId=correlation, phoneNumber=number))
    assert again.body == bound.body
    device = bound.json()["deviceId"]
    revoked, tries = repeated(lambda: srv.ask("/v3/device/revoke", deviceId=device))
    assert (revoked.status, tries) == (404, 2) and audited(world, "key_revoked", "device", device) == 1
    simple, tries = repeated(lambda: srv.ask("/v3/start", flowType="mobile"))
    assert (simple.status, tries) == (200, 2)
    checked, tries = repeated(lambda: srv.ask("/v3/validate", correlationId=simple.json()["correlationId"]))
    assert (checked.json()["success"], tries) == (False, 2)
    assert realm.phones.to(number) == []


def test_an_app_that_repeats_its_steps(world, realm, lossy):
    """One message, one try: a repeated send comes too soon, a repeated right code passes as it did."""
    number = new_number()
    started = realm.srv.unify(number, allowOTPRetry=True)
    phone = realm.srv.phone(started)
    through(lossy, phone.app)
    opened, _ = repeated(lambda: phone.ask("open"))
    assert opened.status == 200 and opened.json()["sendsLeft"] == 3
    sent, tries = repeated(lambda: phone.ask("send", channel="otp"))
    assert tries == 2 and error(sent) == "resend_too_soon" and 0 < sent.json()["resendAfter"] <= 10
    code = realm.phones.wait(number)["code"]
    passed, tries = repeated(lambda: phone.ask("check", otp=code))
    assert (passed.status, passed.json(), tries) == (200, {"state": "passed"}, 2)
    result, tries = repeated(lambda: phone.ask("result"))
    assert (result.json(), tries) == ({"state": "passed"}, 2)
    assert len(realm.phones.to(number)) == 1 and audited(world, "possession_sent", "correlation_id", started.correlationId) == 1
    assert audited(world, "possession_passed", "correlation_id", started.correlationId) == 1
    assert world.cluster.value(f"SELECT tries FROM postern.device_request WHERE id = '{started.correlationId}'") == "1"
    assert realm.srv.status(started).success == "true"


def test_a_person_and_an_app_that_repeat_a_link(world, realm, lossy):
    """The button leads twice to the same place; the second `finish` is told that the first has counted."""
    number = new_number()
    started = realm.srv.unify(number, finalTargetUrl=TARGET)
    phone = realm.srv.phone(started)
    phone.call("open")
    phone.call("send", channel="link")
    path = urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path
    headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
    url = realm.app().exchange("POST", path, headers, b"action=continue").header("location")
    again = realm.app().exchange("POST", path, headers, b"action=continue")
    assert again.header("location") == url and phone.call("result") == {"state": "linked"}
    through(lossy, phone.app)
    finished, tries = repeated(lambda: phone.ask("finish", redirectUrl=url))
    assert (error(finished), tries) == ("redirect_unknown", 2)
    result, _ = repeated(lambda: phone.ask("result"))
    assert result.json() == {"state": "passed"} and audited(world, "possession_passed", "correlation_id", started.correlationId) == 1
    other = realm.srv.phone(realm.srv.unify())
    other.call("open")
    through(lossy, other.app)
    cancelled, tries = repeated(lambda: other.ask("cancel"))
    assert tries == 2 and (cancelled.status, cancelled.json()["state"]) == (409, "failed")


def test_an_asker_and_a_device_that_repeat(world, realm, lossy):
    """One request is shown, one answer counts and is told again; a poll whose tokens were lost gets the same session."""
    app, device = realm.app("api"), Trusted(realm.app(), realm, realm.user())
    through(lossy, app, device)
    asked, tries = repeated(lambda: ask(app, device.email))
    assert (asked.status, tries) == (200, 2)
    device.node = world.node
    item = device.item()
    assert [one["Id"] for one in device.inbox()] == [item["Id"]]
    through(lossy, device)
    seen, tries = repeated(device.look)
    assert seen.json()["Approvals"][0]["Id"] == item["Id"]
    response = device.response(device.payload(item, number=asked.json()["match_number"]))
    plain = device.plain

    def send():
        return plain.post_json(f"/connect/approvals/{item['Id']}", {"Response": response})
    told, tries = repeated(send)
    assert (told.status, told.json()["Decision"], tries) == (200, "approve", 2)
    assert audited(world, "approval_approved", "approval_id", item["Id"]) == 1
    lost, tries = repeated(lambda: poll(app, asked.json()))
    assert (lost.status, tries) == (200, 2)
    sessions = f"SELECT count(*) FROM postern.session s JOIN postern.user_account u ON u.id = s.user_id WHERE u.address_key = '{device.email}'"
    assert world.cluster.value(sessions) == "1"


def test_a_backend_of_events_that_repeats(world, realm, lossy):
    """The newest event is the one that is shown; its tokens go out once."""
    device = Trusted(realm.app(), realm, realm.user())
    events = type(realm.events)(realm.app("events"))
    events.app.secret = realm.events.app.secret
    through(lossy, events.app)
    made, tries = repeated(lambda: events.create(device.email))
    assert (made.status, tries) == (200, 2)
    newest, _ = repeated(lambda: events.new(device.email))
    assert newest.json()["ID"] == made.json()["ID"]
    item = device.item()
    assert len(device.inbox()) == 1
    assert device.answer(item, number=made.json()["match_number"]).status == 200
    got, tries = repeated(lambda: events.get(made.json()["ID"], "?oauth_token=true"))
    assert (got.json()["approved"], "oauth_token" in got.json(), tries) == (True, False, 2)


def test_a_device_that_repeats(world, realm, lossy):
    """Added once with one notice, renamed, offered, adopted once and found, removed once."""
    email = realm.user()
    token = realm.app().sign_in(email)["access_token"]
    old, new = Device(realm.app()), Device(realm.app())
    old.fresh_nonce()
    new.fresh_nonce()
    through(lossy, old.app, new.app)
    added, tries = repeated(lambda: old.enrol(token))
    assert (added.status, tries) == (200, 2) and audited(world, "device_added", "device", old.id) == 1
    renamed, tries = repeated(lambda: old.call("PATCH", f"{DEVICES}/{old.id}", {"DisplayName": "Phone"}))
    assert (renamed.json()["DisplayName"], tries) == ("Phone", 2)
    shown, tries = repeated(new.offer)
    assert (shown.status, tries) == (200, 2)
    adopted, tries = repeated(lambda: old.adopt(token, shown.json(), new))
    assert (error(adopted), tries) == ("invalid_offer", 2)
    found, _ = repeated(new.itself)
    assert found.status == 200 and audited(world, "device_adopted", "device", found.json()["Id"]) == 1
    listed = realm.app().get(DEVICES, bearer(token)).json()
    assert sorted(one["Id"] for one in listed) == sorted([old.id, found.json()["Id"]])
    removed, tries = repeated(lambda: new.call("DELETE", f"{DEVICES}/{found.json()['Id']}"))
    assert (removed.status, tries) == (401, 2) and audited(world, "device_removed", "device", found.json()["Id"]) == 1
    world.mailbox.wait(email, 3, kind="notice")
    assert len(world.mailbox.to(email, "notice")) == 3, "added, adopted, removed: each told once"


def test_a_backend_that_repeats_while_the_database_is_away(fragile_world):
    """503 with code 8000 and Retry-After meanwhile; each call succeeds once the database is there again, and what was bound is bound once."""
    realm = ready(fragile_world, "away")
    started = realm.srv.unify(kind="none")
    realm.srv.phone(started).call("open")
    number, seen, answers = new_number(), [], {}
    calls = {
        "unify": lambda: realm.srv.ask("/v3/unify", possessionType="mobile"),
        "status": lambda: realm.srv.ask("/v3/unify-status", correlationId=started.correlationId),
        "bind": lambda: realm.srv.ask("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=number),
    }

    def noted(call):
        answer = call()
        seen.append(answer)
        return answer
    threads = [threading.Thread(target=lambda n=name, c=call: answers.__setitem__(n, repeated(lambda: noted(c), tries=30)[0])) for name, call in calls.items()]
    fragile_world.cluster.kill()
    try:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 20
        while len([answer for answer in seen if answer.status == 503]) < 3:
            assert time.monotonic() < deadline, seen
            time.sleep(0.02)
    finally:
        fragile_world.cluster.start()
    for thread in threads:
        thread.join(60)
    refused = [answer for answer in seen if answer.status != 200]
    assert {(answer.status, answer.json()["code"]) for answer in refused} == {(503, 8000)} and all(answer.header("retry-after").isdigit() for answer in refused)
    assert {name: answer.status for name, answer in answers.items()} == {name: 200 for name in calls}
    assert answers["bind"].json()["phoneNumber"] == number and realm.srv.status(started).success == "true"
    assert audited(fragile_world, "possession_asserted", "correlation_id", started.correlationId) == 1
    realm.phones.close()
