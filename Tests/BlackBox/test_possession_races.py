"""Many at once: one wins, and counts are exact, over two processes."""

import concurrent.futures
import copy
import urllib.parse

import pytest

from harness import wire
from harness.dpop import ProofKey
from harness.phones import new_number
from harness.possession import coded, furnished, possession
from harness.postgres import literal
from harness.settings import FULL

ROUNDS = 200 if FULL else 10
AT_ONCE = 48


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = furnished(possession(world.realm()), "cap:assert-possession")
    realm.nodes = [world.node, world.start_node()]
    yield realm
    realm.phones.close()


def at_once(calls):
    """The answers of calls that run at the same time."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def phones_of(realm, phone, count):
    """The same app many times, over both nodes, each with a nonce."""
    made = []
    for number in range(count):
        other = realm.srv.phone(type("Started", (), {"authToken": phone.token}), phone.key, realm.nodes[number % 2])
        other.app.nonce = phone.app.nonce
        made.append(other)
    return made


def test_of_many_right_codes_one_passes_and_each_request_hears_of_it(realm):
    """200 for all with the same code; 409 for those who came when the proof was over."""
    for _ in range(ROUNDS):
        started, phone, _, code = coded(realm, allowOTPRetry=True)
        answers = at_once([lambda p=p: p.ask("check", otp=code) for p in phones_of(realm, phone, AT_ONCE)])
        assert 200 in {answer.status for answer in answers} <= {200, 409}
        cluster, proof = realm.world.cluster, literal(started.correlationId)
        assert cluster.value(f"SELECT tries FROM postern.device_request WHERE id = {proof}") == "1"
        assert cluster.value("SELECT count(*) FROM postern.audit_event WHERE event = 'possession_passed'"
                             f" AND detail ->> 'correlation_id' = {proof}") == "1"


def test_no_more_tries_than_there_are(realm):
    """Forty-eight guesses, three compared."""
    for _ in range(ROUNDS):
        started, phone, _, code = coded(realm, allowOTPRetry=True)
        answers = at_once([lambda p=p: p.ask("check", otp="x") for p in phones_of(realm, phone, AT_ONCE)])
        errors = [answer.error for answer in answers]
        assert errors.count("otp_invalid") == 2 and errors.count("possession_failed") == 1 and errors.count("transaction_over") == AT_ONCE - 3
        assert phone.ask("check", otp=code).status == 409 and realm.srv.status(started).success == "false"


def test_no_more_messages_than_there_are(realm):
    """Many sends, as many messages as are left: three, or the last one. One that still waits gives way to the next."""
    numbers = []
    for turn in range(ROUNDS):
        number = new_number()
        phone = realm.srv.phone(realm.srv.unify(number))
        phone.call("open")
        left = 1 if turn % 2 else 3
        for _ in range(3 - left):
            phone.call("send", channel="otp")
        answers = at_once([lambda p=p: p.ask("send", channel="otp") for p in phones_of(realm, phone, AT_ONCE)])
        assert sum(answer.status == 200 for answer in answers) == left
        assert {answer.error for answer in answers if answer.status != 200} == {"send_limit"}
        numbers.append(number)
    for number in numbers:
        realm.phones.wait(number)
    realm.world.settle_messages()
    assert {len(realm.phones.to(number)) for number in numbers} <= {1, 2, 3}


def test_one_finish_passes(realm):
    """The return code of a link works once."""
    for _ in range(ROUNDS):
        number = new_number()
        phone = realm.srv.phone(realm.srv.unify(number, finalTargetUrl="https://app.example/"))
        phone.call("open")
        phone.call("send", channel="link")
        path = urllib.parse.urlsplit(realm.phones.wait(number)["link"]).path
        headers = {"Content-Type": wire.FORM, "Origin": realm.issuer, "Sec-Fetch-Site": "same-origin"}
        url = realm.app().exchange("POST", path, headers, b"action=continue").header("location")
        answers = at_once([lambda p=p: p.ask("finish", redirectUrl=url) for p in phones_of(realm, phone, AT_ONCE)])
        assert sum(answer.status == 200 for answer in answers) == 1


def test_one_number_is_bound(realm):
    """Two numbers at once, over both nodes: one is bound and repeated, the other refused."""
    assert realm.srv.token
    second = copy.copy(realm.srv)
    second.app = copy.copy(realm.srv.app)
    second.app.node = realm.nodes[1]
    backends = [realm.srv, second]
    for _ in range(ROUNDS):
        started = realm.srv.unify(kind="none")
        realm.srv.phone(started, ProofKey()).call("open")
        numbers = [new_number(), new_number()]
        answers = at_once([lambda n=n: backends[n // 2 % 2].ask("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=numbers[n % 2])
                           for n in range(AT_ONCE)])
        bound = {answer.json()["phoneNumber"] for answer in answers if answer.status == 200}
        assert len(bound) == 1 and all(answer.status in (200, 403) for answer in answers)
        assert realm.srv.status(started).phoneNumber == bound.pop()


def test_one_key_pins(realm):
    """Two keys open at once: one of them goes on."""
    for _ in range(ROUNDS):
        started = realm.srv.unify()
        answers = at_once([lambda p=p: p.ask("open") for p in (realm.srv.phone(started), realm.srv.phone(started, node=realm.nodes[1]))])
        assert sorted(answer.status for answer in answers) == [200, 403]
