"""Single use of ceremonies and passkeys is exact, whoever else asks at the same instant."""

import collections
import json
import secrets
import time

import pytest

from harness import authenticator, wire
from harness.app import bearer
from harness.holder import holder, signed_in, stored_count
from harness.ledger import LEDGER
from harness.report import say
from harness.settings import ROUNDS
from harness.volley import in_parallel, token_request, volley

WIDTH = 48
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def realm(world):
    """Nothing here is about limits, so they are only logged."""
    made = world.realm()
    for policy in ("token", "passkey-begin", "native-otp"):
        world.admin.call("set_rate_limit", made.slug, policy, "source", permits=1_000_000, per="1 minute", mode="log-only")
    world.settle()
    return made


def statuses(answers):
    """How often each status came; exceptions count by their text."""
    return dict(collections.Counter(getattr(a, "status", repr(a)) for a in answers))


def spread(nodes, requests):
    """The requests, dealt to the nodes in turn, all at once."""
    dealt = [requests[index::len(nodes)] for index in range(len(nodes))]
    answers = in_parallel(lambda pair: volley(pair[0].port, pair[1]), list(zip(nodes, dealt)), threads=len(nodes))
    return [answer for part in answers for answer in part]


def delete_request(one, token):
    """The bytes of a DELETE."""
    return wire.request_bytes("DELETE", f"/connect/passkey/{one.passkey}", {"Host": one.app.host, **bearer(token)})


def test_one_ceremony_redeemed_48_times_at_once_succeeds_once(world, realm, second_node):
    """R rounds, every other one over two processes, with and without a counter; it advances once."""
    plain, counting = holder(realm), holder(realm, counts=True)
    for number in range(ROUNDS):
        one = (plain, counting)[number // 2 % 2]
        ceremony = one.app.ceremony()
        document = authenticator.assertion(ceremony["options"], one.credential)
        raw = token_request(one.app, one.app.passkey_form(ceremony, document))
        answers = spread([world.node, second_node][:1 + number % 2], [raw] * WIDTH)
        assert statuses(answers) == {200: 1, 400: WIDTH - 1}, f"round {number}: {statuses(answers)}"
        assert {a.error for a in answers if a.status == 400} == {"invalid_grant"}
        assert stored_count(world, one.passkey) == one.credential.sign_count
        LEDGER.tokens(next(a for a in answers if a.status == 200).json())
    say(f"concurrency: {ROUNDS} rounds x {WIDTH} redemptions of one ceremony: one success in each")


def test_different_assertions_for_one_ceremony_succeed_once(world, realm, second_node):
    """Counters n+1 … n+48 on one challenge: one wins, whichever."""
    one = holder(realm, counts=True)
    for number in range(max(1, ROUNDS // 4)):
        ceremony = one.app.ceremony()
        before = one.credential.sign_count
        documents = [authenticator.assertion(ceremony["options"], one.credential) for _ in range(WIDTH)]
        requests = [token_request(one.app, one.app.passkey_form(ceremony, document)) for document in documents]
        answers = spread([world.node, second_node], requests)
        assert statuses(answers) == {200: 1, 400: WIDTH - 1}, f"round {number}: {statuses(answers)}"
        assert before < stored_count(world, one.passkey) <= one.credential.sign_count


def test_two_ceremonies_of_one_passkey_leave_the_higher_counter(world, realm, second_node):
    """N+1 and n+2 at once: both, or the lower is refused; never the higher; what is stored is the maximum."""
    one = holder(realm, counts=True)
    outcomes = collections.Counter()
    for number in range(max(20, ROUNDS)):
        requests = []
        for _ in range(2):
            ceremony = one.app.ceremony()
            document = authenticator.assertion(ceremony["options"], one.credential)
            requests.append(token_request(one.app, one.app.passkey_form(ceremony, document)))
        lower, higher = spread([world.node, second_node], requests if number % 2 else requests[::-1])[::1 if number % 2 else -1]
        assert higher.status == 200 and lower.status in (200, 400), (lower, higher)
        outcomes[lower.status] += 1
        assert stored_count(world, one.passkey) == one.credential.sign_count
    say(f"concurrency: two counters of one passkey at once: the lower accepted {outcomes[200]}, refused {outcomes[400]} times")


def test_many_ceremonies_of_a_passkey_without_counter_all_succeed(realm):
    """0 and 0 is no regress, even 48 at a time."""
    one = holder(realm)
    requests = []
    for _ in range(WIDTH):
        ceremony = one.app.ceremony()
        requests.append(token_request(one.app, one.app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], one.credential))))
    assert statuses(volley(realm.world.node.port, requests)) == {200: WIDTH}


@pytest.mark.parametrize("same", [True, False], ids=["the same registration", "different registrations"])
def test_one_enrolment_completed_many_times_at_once_makes_one_row(world, realm, second_node, same):
    """One row, one mail, one success, of which each sender of the same registration hears."""
    for number in range(max(1, ROUNDS // 4)):
        one = signed_in(realm)
        ceremony = one.app.enrolment(one.token)
        documents = [authenticator.create(ceremony["options"])[0] for _ in range(1 if same else WIDTH)] * (WIDTH if same else 1)
        fields = {"Host": one.app.host, "Content-Type": "application/json", **bearer(one.token)}
        requests = [
            wire.request_bytes("POST", "/connect/passkey/enroll", fields, json.dumps(
                {"ceremonyId": ceremony["ceremonyId"], "attestation": document}).encode())
            for document in documents
        ]
        answers = spread([world.node, second_node], requests)
        wanted = {200: WIDTH} if same else {200: 1, 400: WIDTH - 1}
        assert statuses(answers) == wanted, f"round {number}: {statuses(answers)}"
        (item,) = one.app.passkeys(one.token)
        assert {item["Id"]} == {a.json()["Id"] for a in answers if a.status == 200}
        world.mailbox.wait(one.email, 2)


def test_twenty_is_the_limit_even_at_once(world, realm, second_node):
    """30 enrolments of one account at the same time."""
    one = signed_in(realm)
    requests = []
    for _ in range(30):
        ceremony = one.app.enrolment(one.token)
        body = {"ceremonyId": ceremony["ceremonyId"], "attestation": authenticator.create(ceremony["options"])[0]}
        fields = {"Host": one.app.host, "Content-Type": "application/json", **bearer(one.token)}
        requests.append(wire.request_bytes("POST", "/connect/passkey/enroll", fields, json.dumps(body).encode()))
    answers = spread([world.node, second_node], requests)
    assert statuses(answers) == {200: 20, 400: 10}, statuses(answers)
    assert len(one.app.passkeys(one.token)) == 20


def test_one_credential_id_enrolled_by_many_at_once_is_one_row(world, realm, second_node):
    """Twelve users, one credential id."""
    users = in_parallel(lambda _: signed_in(realm), range(12))
    credential_id = secrets.token_bytes(32)
    requests = []
    for one in users:
        ceremony = one.app.enrolment(one.token)
        body = {"ceremonyId": ceremony["ceremonyId"], "attestation": authenticator.create(ceremony["options"], id=credential_id)[0]}
        fields = {"Host": one.app.host, "Content-Type": "application/json", **bearer(one.token)}
        requests.append(wire.request_bytes("POST", "/connect/passkey/enroll", fields, json.dumps(body).encode()))
    answers = spread([world.node, second_node], requests)
    assert statuses(answers) == {200: 1, 400: 11}, statuses(answers)
    assert sum(len(one.app.passkeys(one.token)) for one in users) == 1


def test_one_passkey_deleted_many_times_at_once_is_deleted_once(world, realm, second_node):
    """One 204, the rest 404, one mail."""
    for _ in range(max(1, ROUNDS // 4)):
        one = holder(realm)
        answers = spread([world.node, second_node], [delete_request(one, one.token)] * WIDTH)
        assert statuses(answers) == {204: 1, 404: WIDTH - 1}, statuses(answers)
        world.mailbox.wait(one.email, 3)
    holder(realm)
    assert len(world.mailbox.to(one.email)) == 3


def test_nothing_is_redeemed_after_a_delete_was_answered(world, realm, second_node):
    """24 redemptions around one delete: tokens or invalid_grant, and after the 204 only the latter."""
    outcomes = collections.Counter()
    for _ in range(max(1, ROUNDS // 4)):
        one = holder(realm)
        requests = []
        for _ in range(24):
            ceremony = one.app.ceremony()
            requests.append(token_request(one.app, one.app.passkey_form(
                ceremony, authenticator.assertion(ceremony["options"], one.credential))))
        late = one.app.ceremony()
        answers = spread([world.node, second_node], [*requests[:12], delete_request(one, one.token), *requests[12:]])
        counted = statuses(answers)
        assert counted.pop(204) == 1 and set(counted) <= {200, 400}, counted
        outcomes.update(counted)
        answer = one.app.redeem_passkey(late, authenticator.assertion(late["options"], one.credential))
        assert answer.error == "invalid_grant", answer
    say(f"concurrency: redemptions around a delete: {outcomes[200]} before it, {outcomes[400]} after it, no other answer")


def test_a_limit_refuses_nobody_before_it_is_reached(world):
    """Exact across nodes: 120 begins in five volleys, of 640 allowed at once, are all answered."""
    realm = world.realm()
    realm.limit("passkey-begin", "source", 640, per="24 hours", burst=640)
    app = realm.app()
    raw = wire.request_bytes(
        "POST", "/connect/passkey/begin", {"Host": app.host, "Content-Type": wire.FORM}, wire.form_body({"client_id": app.client_id})
    )
    for number in range(5):
        answers = volley(world.node.port, [raw] * 24)
        assert statuses(answers) == {200: 24}, f"after {24 * number} of 640: {statuses(answers)}"
        time.sleep(2.2)


@pytest.mark.full
def test_requests_that_come_one_by_one_cost_one_permit_each(world):
    """Two thousand users behind one address in an hour are one each 1.8 s, within 3000 permits an hour."""
    realm = world.realm()
    realm.limit("native-otp", "source", 3000, per="1 day", burst=500)  # a day, so that hardly anything comes back meanwhile
    started = time.monotonic()
    for email in realm.users(10):
        assert realm.app().ask(email).status == 200
        time.sleep(1.8)
    left = float(world.cluster.value(
        "SELECT extract(epoch FROM b.tat - now()) FROM postern.rate_bucket b JOIN postern.realm r ON r.id = b.realm_id "
        f"WHERE r.slug = '{realm.slug}' AND b.key = 'native-otp|source|127.0.0.1'"
    ))
    taken = (left + time.monotonic() - started) / (86_400 / 3000)
    assert taken < 13, f"{taken:.0f} permits taken by ten requests"
