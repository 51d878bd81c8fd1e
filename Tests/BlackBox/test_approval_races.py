"""Approvals under concurrency: one answer wins, one poll signs in; over two processes."""

import pytest

from harness import wire
from harness.approvals import CIBA, Device, approved, ask, error, poll, switch_on
from harness.settings import FULL
from harness.volley import in_parallel, token_request, volley

ROUNDS = 200 if FULL else 10
WIDTH = 48


@pytest.fixture(scope="module")
def realm(world):
    """A realm with approvals."""
    made = world.realm("race")
    switch_on(made, "api")
    return made


@pytest.fixture(scope="module")
def second(world):
    """A second process."""
    node = world.start_node()
    yield node
    node.stop()


def answer_request(device, item, decision, number=None):
    """The bytes of an answer."""
    response = device.response(device.payload(item, decision, number))
    return wire.request_bytes(
        "POST", f"/connect/approvals/{item['Id']}", {"Host": device.host, "Content-Type": "application/json"}, f'{{"Response":"{response}"}}'.encode())


def test_approve_and_deny_at_once(world, realm, second):
    """One wins, the other is told which, and the asker sees that one."""
    app = realm.app("api")
    won = {"approve": 0, "deny": 0}
    for _ in range(ROUNDS):
        email = realm.user()
        one, two = Device(app, realm, email), Device(app, realm, email)
        asked = ask(app, email).json()
        item = one.item()
        requests = [(world.node.port, answer_request(one, item, "approve", asked["match_number"])), (second.port, answer_request(two, item, "deny"))]
        answers = in_parallel(lambda pair: volley(pair[0], [pair[1]])[0], requests, threads=2)
        assert sorted(answer.status for answer in answers) == [200, 409], answers
        winner = next(answer.json()["Decision"] for answer in answers if answer.status == 200)
        assert next(answer.json()["Decision"] for answer in answers if answer.status == 409) == winner
        won[winner] += 1
        answer = poll(app, asked)
        assert answer.status == 200 if winner == "approve" else error(answer) == "access_denied"
    assert sum(won.values()) == ROUNDS


def test_many_polls_of_one_approval(world, realm, second):
    """48 at once over two processes: one session."""
    app = realm.app("api")
    for _ in range(ROUNDS):
        device = Device(app, realm, realm.user())
        asked = approved(app, device)
        request = token_request(app, {"grant_type": CIBA, **app.credentials(), "auth_req_id": asked["auth_req_id"]})
        halves = in_parallel(lambda port: volley(port, [request] * (WIDTH // 2)), [world.node.port, second.port], threads=2)
        answers = [answer for half in halves for answer in half]
        statuses = sorted(answer.status for answer in answers)
        assert 200 in statuses and set(statuses) <= {200, 503}, statuses
        sessions = world.cluster.value(
            f"SELECT count(*) FROM postern.session s JOIN postern.user_account u ON u.id = s.user_id WHERE u.address_key = '{device.email}'")
        assert sessions == "1"


def test_the_same_answer_many_times_at_once(world, realm, second):
    """Decided once; every copy is told so."""
    app = realm.app("api")
    device = Device(app, realm, realm.user())
    asked = ask(app, device.email).json()
    item = device.item()
    request = answer_request(device, item, "approve", asked["match_number"])
    halves = in_parallel(lambda port: volley(port, [request] * (WIDTH // 2)), [world.node.port, second.port], threads=2)
    answers = [answer for half in halves for answer in half]
    assert {(answer.status, answer.body) for answer in answers} == {(200, answers[0].body)}
    rows = world.cluster.value(f"SELECT count(*) FROM postern.audit_event WHERE event = 'approval_approved' AND detail ->> 'approval_id' = '{item['Id']}'")
    assert int(rows) == 1


def test_requests_at_once_show_three_at_most(world, realm, second):
    """Whatever the workers of two processes do."""
    device = Device(realm.app("api"), realm, realm.user())
    names = [f"many{n}" for n in range(8)]
    apps = [realm.put_client(name, "gt:" + CIBA) for name in names]
    world.admin.call("set_approvals", realm.slug, True, public_clients=True)
    world.settle()
    for _ in range(2):
        in_parallel(lambda app: ask(app, device.email), apps)
        assert len(device.item() and device.inbox()) <= 3
    assert 1 <= len(device.inbox()) <= 3
