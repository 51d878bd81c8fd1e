"""The inbox of a trusted device, and its answers."""

import time

import pytest

from harness.approvals import Device, approved, ask, error, poll, switch_on
from harness.dpop import ProofKey
from harness.jose import b64url
from harness.receiver import Receiver
from harness.volley import in_parallel


@pytest.fixture(scope="module")
def realm(world):
    """A realm with approvals, for the public client `app` and the confidential one `api`."""
    made = world.realm("appr")
    switch_on(made, "app", "app-2", "api", public_clients=True)
    return made


@pytest.fixture
def bff(realm):
    """A confidential client."""
    return realm.app("api")


@pytest.fixture
def device(realm, email):
    """A trusted device of this test's user."""
    return Device(realm.app(), realm, email)


def shown(bff, device, **more):
    """A request that the device shows, and the number that its asker has."""
    asked = ask(bff, device.email, **more).json()
    return device.item(), asked


def test_a_device_shows_what_it_may_answer(bff, device, email):
    """Members and their forms."""
    item, asked = shown(bff, device, binding_message="Pay 5 €", event="PAY")
    assert set(item) == {"Id", "Event", "ClientId", "ClientName", "BindingMessage", "CreatedAt", "ExpiresAt", "MatchRequired", "Challenge"}
    assert (item["Event"], item["ClientId"], item["BindingMessage"], item["MatchRequired"]) == ("PAY", bff.client_id, "Pay 5 €", True)
    assert len(item["Challenge"]) == 43 and item["CreatedAt"].endswith("Z")
    assert asked["match_number"] not in str({**item, "Challenge": "", "Id": "", "CreatedAt": "", "ExpiresAt": ""}), "the device is never told the number"
    assert email not in str(item)


def test_the_askers_address_is_shown_only_where_it_is_the_askers(world, realm, bff, device):
    """Of a public client, and as a trusted forwarder names it."""
    assert "Source" not in shown(bff, device)[0]
    ask(realm.app(), device.email)
    assert device.item(client=realm.client("app"))["Source"] == "127.0.0.1"
    world.admin.call("grant_permission", realm.slug, bff.client_id, variadic=["cap:trusted-forwarder"])
    world.settle()
    form = {"client_id": bff.client_id, "scope": "openid", "login_hint": device.email}
    answer = bff.post("/connect/bc-authorize", form, {"Authorization": bff.basic, "Postern-Forwarded-For": "192.0.2.77"})
    assert answer.status == 200
    until = time.monotonic() + 10
    while not any(item.get("Source") == "192.0.2.77" for item in device.inbox()):
        assert time.monotonic() < until, device.inbox()
        time.sleep(0.05)
    world.admin.call("revoke_permission", realm.slug, bff.client_id, variadic=["cap:trusted-forwarder"])


@pytest.mark.parametrize("query", ["wait=-1", "wait=26", "wait=abc", "wait=1&wait=1", "wait=1.5", "wait=%2B5", "wait=100"])
def test_a_wait_is_0_to_25_seconds(device, query):
    """Else 400."""
    assert device.exchange("GET", f"/connect/approvals?{query}").status == 400
    assert device.look(0).status == 200


def test_only_a_trusted_device_has_an_inbox(realm, device, email):
    """Proof by an unknown key, a removed one, and none."""
    stranger = Device(realm.app(), realm, email, added=False)
    for answer in (stranger.look(), device.plain.get("/connect/approvals")):
        assert answer.status == 401 and answer.json()["error"] == "invalid_dpop_proof", answer
    assert device.look().status == 200
    device.remove()
    assert device.look().status == 401
    new = Device(realm.app(), realm, email, probation="1 hour")
    document = new.look(25, timeout=5).json()
    assert document["Approvals"] == [] and document["ProbationUntil"], "a device on probation does not wait"


def test_a_held_request_is_answered_when_something_is_asked(world, realm, bff, device):
    """Also through another node."""
    node = world.start_node()
    try:
        other = Device.__new__(Device)
        other.__dict__.update(device.__dict__)
        other.node = node
        device.look()
        other.nonce = device.nonce
        started = time.monotonic()
        answers = in_parallel(lambda work: work(), [
            lambda: other.look(25), lambda: (time.sleep(1), ask(bff, device.email), time.monotonic())[2],
        ], threads=2)
        assert len(answers[0].json()["Approvals"]) == 1
        assert answers[0].seconds < 3.5 and time.monotonic() - started < 5
    finally:
        node.stop()


def test_what_is_asked_while_nobody_listens_is_found(world, bff, device):
    """The connection for notifications is lost: every waiting device looks once it is there again."""
    device.look()

    def ask_unheard():
        deadline = time.monotonic() + 10
        while device.node.metric("postern_held_requests") == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        lose = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'bb_serve' AND query ~ '(^LISTEN|postern.config_stamp)'"
        lost = world.cluster.sql(lose)
        asked = ask(bff, device.email)
        return len(lost), asked.status, time.monotonic()
    answers = in_parallel(lambda work: work(), [lambda: (device.look(25), time.monotonic()), ask_unheard], threads=2)
    (answer, told), (lost, status, asked) = answers
    assert lost > 0 and status == 200 and len(answer.json()["Approvals"]) == 1, (answer, lost)
    assert told - asked < 4, told - asked


def test_a_held_request_is_answered_when_the_time_is_up(device):
    """With an empty list."""
    answer = device.look(1)
    assert answer.status == 200 and answer.json() == {"Approvals": []} and 0.9 <= answer.seconds < 2.5


def test_with_approvals_off_nothing_is_looked_at(world):
    """Before proof and body."""
    app = world.realm("approff").app()
    for answer in (app.get("/connect/approvals?wait=99"), app.post_json("/connect/approvals/x", [])):
        assert answer.status == 400 and answer.json()["title"] == "Approvals.Disabled", answer


CHANGED = [
    ("message with one more space", {"binding_message": "Pay  5"}, {}), ("no message", {"binding_message": None}, {}),
    ("another client", {"client_id": "other"}, {}), ("no client", {"client_id": None}, {}), ("another event", {"event": "LOGIN"}, {}),
    ("another challenge", {"challenge": b64url(b"x" * 32)}, {}), ("a short challenge", {"challenge": "AAAA"}, {}), ("no challenge", {"challenge": None}, {}),
    ("another issuer", {"aud": "https://evil.example"}, {}), ("issuers", {"aud": ["x"]}, {}), ("no iat", {"iat": None}, {}), ("iat as text", {"iat": "1"}, {}),
    ("another approval", {"approval_id": "8a6d3d4e-0000-4000-8000-000000000000"}, {}), ("no approval", {"approval_id": None}, {}),
    *((f"decision {text}", {"decision": text}, {}) for text in ("Approve", "accept", "", "number_mismatch", None, 1)),
    *((f"number {text!r}", {"match_number": text}, {}) for text in (None, "4", "042", "\uff14\uff12", " 42", "42 ", 42)),
    ("typ JWT", {}, {"typ": "JWT"}), ("no typ", {}, {"typ": None}), ("a proof's typ", {}, {"typ": "dpop+jwt"}), ("alg none", {}, {"alg": "none"}), ("alg HS256", {}, {"alg": "HS256"}),
    ("crit", {}, {"crit": ["exp"]}), ("b64", {}, {"b64": False}), ("no key", {}, {"jwk": None}), ("kid", {}, {"jwk": None, "kid": "x"}),
]


def test_what_is_signed_is_what_was_seen(bff, device):
    """Any other answer changes nothing; a right request after every twenty-five."""
    item, asked = shown(bff, device, binding_message="Pay 5", event="PAY")
    right = device.payload(item, number=asked["match_number"])
    for number, (what, payload, header) in enumerate(CHANGED):
        members = {name: value for name, value in {**right, **payload}.items() if value is not None}
        answer = device.send(item["Id"], device.response(members, header))
        assert (answer.status, answer.json()) == (400, {"error": "invalid_response"}), (what, answer)
        if number % 25 == 24:
            assert device.inbox()[-1]["Id"] == item["Id"]
    right_text = device.response(right)
    flipped = device.response(right, spoil=lambda raw: bytes([raw[0] ^ 1]) + raw[1:])
    keys = [{**device.key.public(), **more} for more in ({"d": "AAAA"}, {"alg": "ES384"}, {"use": "enc"}, {"alg": None}, {"use": 7})]
    for text in ("", "x", right_text + ".x", right_text + "=", right_text[:-4], flipped, "a" * 9000, *(device.response(right, {"jwk": key}) for key in keys)):
        assert device.send(item["Id"], text).json() == {"error": "invalid_response"}, text[:40]
    for body in (b"[]", b"{", b'{"Response":1}', b'{"Response":"a","response":"b"}'):
        assert device.plain.exchange("POST", f"/connect/approvals/{item['Id']}", {"Content-Type": "application/json"}, body).status == 400
    assert device.send(item["Id"], right_text).status == 200


def test_a_message_that_was_not_shown_is_not_signed(bff, device):
    """Present while not shown."""
    item, asked = shown(bff, device)
    assert error(device.answer(item, number=asked["match_number"], binding_message="x")) == "invalid_response"
    assert error(device.answer(item, number=asked["match_number"], binding_message="")) == "invalid_response"
    assert device.answer(item, number=asked["match_number"]).status == 200


def test_the_same_answer_again_is_the_same(world, bff, device):
    """One row of the audit log."""
    item, asked = shown(bff, device)
    response = device.response(device.payload(item, number=asked["match_number"]))
    first, second = (device.send(item["Id"], response) for _ in range(2))
    assert first.status == 200 and first.body == second.body and set(first.json()) == {"Id", "Decision", "DecidedAt"}
    rows = world.cluster.value(f"SELECT count(*) FROM postern.audit_event WHERE event = 'approval_approved' AND detail ->> 'approval_id' = '{item['Id']}'")
    assert int(rows) == 1
    late = device.answer(item, "deny")
    assert (late.status, late.json()) == (409, {"error": "already_decided", "Decision": "approve"})


def test_a_wrong_number_ends_the_request(bff, device):
    """One try."""
    item, asked = shown(bff, device)
    wrong = "10" if asked["match_number"] != "10" else "11"
    assert (answer := device.answer(item, number=wrong)).status == 400 and answer.json() == {"error": "number_mismatch"}
    right = device.answer(item, number=asked["match_number"])
    assert (right.status, right.json()) == (409, {"error": "already_decided", "Decision": "number_mismatch"})
    assert error(poll(bff, asked)) == "access_denied"


def test_who_may_not_answer(world, realm, bff, device):
    """Unknown keys and devices on probation 403; everything that is not the owner's 404."""
    item, asked = shown(bff, device)
    number = asked["match_number"]
    other = Device(realm.app(), realm, realm.user())
    unknown = Device(realm.app(), realm, device.email, added=False)
    new = Device(realm.app(), realm, device.email, probation="1 hour")
    for refused in (unknown, new):
        answer = refused.answer(item, number=number)
        assert (answer.status, answer.json()) == (403, {"error": "device_not_trusted"})
    foreign = other.answer(item, number=number)
    absent = device.answer({**item, "Id": "8a6d3d4e-0000-4000-8000-000000000000"}, number=number)
    malformed = device.send("x", device.response(device.payload(item)))
    assert {(answer.status, answer.body) for answer in (foreign, absent, malformed)} == {(404, foreign.body)}
    second = Device(realm.app(), realm, device.email)
    second.remove()
    assert second.answer(item, number=number).status == 403, "removed a moment ago"
    realm.put_user(device.email, enabled=False)
    assert device.answer(item, number=number).status == 403
    assert device.look().status == 401
    realm.put_user(device.email, enabled=True)
    world.time_travel(121)
    assert device.answer(item, number=number).status == 404, "expired"


def test_three_are_shown_and_a_hidden_one_stays_hidden(bff, realm, device):
    """From outside they look alike."""
    apps = [bff, realm.app(), realm.app("app-2")]
    for app in apps:
        ask(app, device.email)
        device.item(client=app.client_id)
    fourth = realm.put_client("fourth", "gt:urn:openid:params:grant-type:ciba")
    realm.world.settle()
    hidden = ask(fourth, device.email).json()
    wait_resolved(realm)
    assert {item["ClientId"] for item in device.inbox()} == {app.client_id for app in apps}
    assert error(poll(fourth, hidden)) == "authorization_pending"
    device.answer(device.item(client=bff.client_id), "deny")
    assert len(device.inbox()) == 2, "also when a place is free"


def wait_resolved(realm, timeout=5.0):
    """Until the worker has looked at every request."""
    deadline = time.monotonic() + timeout
    while int(realm.world.cluster.value("SELECT count(*) FROM postern.device_request WHERE kind = 'approval' AND resolved_at IS NULL")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_newer_request_replaces_the_older(realm, bff, device):
    """Of the same client and source: also where nobody is meant."""
    first = ask(bff, device.email).json()
    old = device.item()
    second = ask(bff, device.email).json()
    wait_resolved(realm)
    assert [item["Id"] != old["Id"] for item in device.inbox()] == [True]
    assert error(poll(bff, first)) == "expired_token" and error(poll(bff, second)) == "authorization_pending"
    assert device.answer(old, number=first["match_number"]).status == 404
    nobody = realm.new_email()
    first, second = ask(bff, nobody).json(), ask(bff, nobody).json()
    assert error(poll(bff, first)) == "expired_token" and error(poll(bff, second)) == "authorization_pending"


def test_denials_bring_quiet(world, realm, bff, device):
    """A minute for the asker, a quarter of an hour after the second; a report a day, with notice and event."""
    def hidden(app):
        before = device.look().json()
        assert ask(app, device.email).status == 200
        wait_resolved(realm)
        return len(device.look().json()["Approvals"]) == len(before["Approvals"])
    item, _ = shown(bff, device)
    assert device.answer(item, "deny").status == 200
    assert hidden(bff) and not hidden(realm.app())
    world.time_travel(121)
    item, _ = shown(bff, device)
    assert device.answer(item, "deny").status == 200
    assert hidden(realm.app("app-2")) and "QuietUntil" in device.look().json()
    world.time_travel(901)
    assert not hidden(bff)
    receiver = Receiver()
    try:
        world.admin.call("put_webhook", realm.slug, "guard", receiver.url)
        item = device.item()
        mails = len(world.mailbox.to(device.email))
        assert device.answer(item, "report").status == 200
        assert "sign-in request" in world.mailbox.wait(device.email, mails + 1).text
        deadline = time.monotonic() + 10
        while not (found := [event for event in receiver.events if event.name.endswith("approval_reported")]):
            assert time.monotonic() < deadline, receiver.events
            time.sleep(0.1)
        assert found
    finally:
        world.admin.call("delete_webhook", realm.slug, "guard")
        receiver.close()
    world.time_travel(3600)
    assert hidden(bff)
    user = world.cluster.value(f"SELECT id FROM postern.user_account WHERE address_key = '{device.email}'")
    world.admin.call("resume_approvals", realm.slug, user)
    assert not hidden(realm.app())


def test_a_wrong_dpop_header_beside_an_answer_is_ignored(bff, device):
    """The answer alone authenticates."""
    item, asked = shown(bff, device)
    response = device.response(device.payload(item, number=asked["match_number"]))
    answer = device.plain.post_json(f"/connect/approvals/{item['Id']}", {"Response": response}, {"DPoP": "nonsense"})
    assert answer.status == 200


def test_challenges_are_32_random_bytes(bff, device, world):
    """Unique."""
    for _ in range(8):
        approved(bff, device)
    sizes = world.cluster.sql("SELECT octet_length(challenge), count(*) = count(DISTINCT challenge) FROM postern.device_request WHERE kind = 'approval' GROUP BY 1")
    assert [list(row) for row in sizes] == [["32", "t"]]
    assert ProofKey().alg == "ES256"
