"""What a realm has under way when it moves to another cluster: events, mails, requests that wait, limits, used codes and proofs."""

import threading
import time

import pytest

from harness.approvals import Device, ask, poll, switch_on
from harness.clusters import TwoClusters
from harness.dpop import DPoPApp, nonce_of
from harness.receiver import DELIVERED, Receiver
from harness.volley import in_parallel

USERINFO = "/connect/userinfo"


@pytest.fixture(scope="module")
def world():
    made = TwoClusters("moved-state")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def due_now(world, table):
    """As if the pause between two tries were over, wherever the rows are."""
    column = {"webhook_subject": "due_at", "message_outbox": "not_before"}[table]
    for cluster in (world.north, world.south):
        cluster.sql(
            f"UPDATE postern.{table} AS t SET {column} = now() WHERE t.{column} > now() "
            "AND postern.placement(t.realm_id) = 'here'")


def sessions_of(cluster, realm):
    """The sessions of each user in the order of the audit log."""
    rows = cluster.sql(
        "SELECT a.user_id, a.session_id FROM postern.audit_event AS a JOIN postern.realm AS r ON r.id = a.realm_id "
        f"WHERE r.slug = '{realm.slug}' AND a.event = 'sign_in' ORDER BY a.id")
    users = {}
    for user, session in rows:
        users.setdefault(user, []).append(session)
    return list(users.values())


def accepted_of(receiver):
    """The sessions of accepted events by subject, each where it came first."""
    users = {}
    for event in list(receiver.events):
        if event.accepted and event.name == "session-established":
            seen = users.setdefault(event.subject, [])
            if event.object["ext_id"] not in seen:
                seen.append(event.object["ext_id"])
    return list(users.values())


@pytest.mark.parametrize("trouble", [(503, {}, b""), "hang"])
def test_events_on_the_way_arrive_once_the_realm_is_elsewhere_in_their_order(world, receiver, trouble):
    """The receiver refuses, or has the first events in its hands, while the realm moves."""
    realm = world.realm()
    receiver.answer = lambda event: trouble
    world.admin.call("put_webhook", realm.slug, "crm", receiver.url)
    world.settle()
    emails = realm.users(3)
    for _ in range(3):
        in_parallel(realm.app().sign_in, emails)
    receiver.count(1)
    world.move(realm)
    in_parallel(realm.app().sign_in, emails)
    receiver.answer = lambda event: DELIVERED
    receiver.released.set()
    wanted = sorted(sessions_of(world.south, realm))
    assert [len(sessions) for sessions in wanted] == [4, 4, 4]
    deadline = time.monotonic() + 30
    while sorted(map(len, accepted_of(receiver))) != [4, 4, 4]:
        assert time.monotonic() < deadline, accepted_of(receiver)
        due_now(world, "webhook_subject")
        time.sleep(0.1)
    assert sorted(accepted_of(receiver)) == wanted, "an event was lost or came before an older one of its user"
    left = "SELECT count(*) FROM postern.webhook_delivery WHERE set_aside_at IS NULL"
    assert world.south.value(left) == "0"


def test_queued_mails_are_sent_by_the_other_cluster_once(world):
    realm = world.realm()
    emails = realm.users(4)
    world.mailbox.mode = "refuse"
    try:
        asked = [realm.app().ask(email) for email in emails]
        assert {answer.status for answer in asked} == {200}
        queued = (
            "SELECT count(*) FROM postern.message_outbox AS o JOIN postern.realm AS r ON r.id = o.realm_id "
            f"WHERE r.slug = '{realm.slug}' AND o.state = 'queued' AND o.attempts > 0")
        deadline = time.monotonic() + 20
        while world.north.value(queued) != "4":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        world.move(realm)
    finally:
        world.mailbox.mode = "accept"
    deadline = time.monotonic() + 40
    while not all(world.mailbox.to(email, "code") for email in emails):
        assert time.monotonic() < deadline
        due_now(world, "message_outbox")
        time.sleep(0.1)
    for email, answer in zip(emails, asked):
        (mail,) = world.mailbox.to(email, "code")
        assert realm.app().redeem(mail.code, handle=answer.json()["AuthSession"]).status == 200


def test_what_was_used_stays_used(world):
    """Codes, and proofs of possession, which lie in unlogged tables."""
    realm = world.realm()
    app = realm.app()
    asked = app.request_code(realm.user())
    answer = app.redeem(asked.code, handle=asked.handle)
    assert answer.status == 200
    bound = DPoPApp(app)
    tokens = bound.bound(realm.user())
    fields = {"Authorization": f"DPoP {tokens['access_token']}"}
    proofs = [bound.proof("GET", USERINFO, tokens["access_token"]) for _ in range(20)]
    for proof in proofs:
        assert bound.get(USERINFO, {**fields, "DPoP": proof}).status == 200
    spare = bound.proof("GET", USERINFO, tokens["access_token"])
    world.move(realm)
    again = app.redeem(asked.code, handle=asked.handle)
    assert again.status == 400 or again.json()["refresh_token"] == answer.json()["refresh_token"], again
    for proof in proofs:
        assert bound.get(USERINFO, {**fields, "DPoP": proof}).status == 401
    answer = bound.get(USERINFO, {**fields, "DPoP": spare})
    assert answer.status == 200 or nonce_of(answer), "one that was not used serves, or a nonce is asked for"
    assert bound.get(USERINFO, fields).status == 200


def test_limits_and_wrong_codes_go_on_counting(world):
    realm = world.realm()
    app, victim = realm.app(), realm.user()
    asked = app.request_code(victim)
    wrong = f"{(int(asked.code) + 1) % 10 ** len(asked.code):0{len(asked.code)}}"
    for _ in range(10):
        assert app.redeem(wrong, email=victim).status == 400
    realm.limit("native-otp", "source", permits=3)
    while (answer := app.ask(realm.new_email())).status == 200:
        pass
    assert answer.status == 429
    world.move(realm)
    world.settle()
    assert app.ask(realm.new_email()).status == 429
    assert app.redeem(asked.code, email=victim).status == 400, "the lock of the address was forgotten"


def test_requests_that_wait_are_answered_from_the_other_cluster(world):
    """A device whose request waits while the realm moves is told at once; an approval that was asked for before goes on."""
    realm = world.realm()
    switch_on(realm, "api")
    world.admin.call("put_scope", realm.slug, "openid")
    bff = realm.app("api")
    early, late = (Device(realm.app(), realm, realm.user()) for _ in range(2))
    before = ask(bff, early.email).json()
    item = early.item()
    assert late.inbox() == []
    answers = []

    def wait():
        """As a device does: asks again when its time is over."""
        while not answers:
            answer = late.look(wait=25)
            if answer.status != 200 or answer.json()["Approvals"]:
                answers.append((answer, time.monotonic()))

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    deadline = time.monotonic() + 5
    while world.node.metric("postern_held_requests") < 1:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    world.move(realm)
    assert not answers, answers
    asked = time.monotonic()
    after = ask(bff, late.email).json()
    waiting.join(30)
    (shown, told), = answers
    assert shown.status == 200 and len(shown.json()["Approvals"]) == 1
    assert told - asked < 15, f"told after {told - asked:.1f} s: by the end of its time, not by the request"
    for device, request, one in ((early, before, item), (late, after, shown.json()["Approvals"][0])):
        assert device.answer(one, number=request.get("match_number")).status == 200
        assert poll(bff, request).status == 200
