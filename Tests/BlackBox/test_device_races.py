"""Trusted devices under concurrency, at two nodes: one winner, and exact counts."""

import concurrent.futures

import pytest

from harness.app import bearer
from harness.settings import FULL
from harness.trusted import DEVICES, Device, with_devices
from harness.world import World

ROUNDS = 200 if FULL else 10
AT_ONCE = 48


@pytest.fixture(scope="module", name="world")
def _world():
    world = World("device-races").open()
    world.start_node()
    yield world
    world.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    return with_devices(world.realm())


def together(calls):
    """The answers of calls that are made at once."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [one.result() for one in [pool.submit(call) for call in calls]]


def test_ten_of_many_devices_that_are_added_at_once_are_added(world, realm):
    """Never eleven, whatever the order."""
    for _ in range(ROUNDS):
        token = realm.app().sign_in(realm.user())["access_token"]
        devices = [Device(realm.app(node=world.nodes[n % 2])) for n in range(AT_ONCE)]
        proofs = [device.proof("POST", DEVICES, token) for device in devices]
        answers = together([lambda d=d, p=p: d.enrol(token, proof=p) for d, p in zip(devices, proofs)])
        assert sorted(a.status for a in answers).count(200) == 10, [str(a) for a in answers if a.status != 200][:2]
        assert {a.json()["error"] for a in answers if a.status != 200} <= {"too_many_devices", "temporarily_unavailable"}
        assert len(realm.app().get(DEVICES, bearer(token)).json()) == 10


def test_one_of_many_adoptions_of_an_offer_succeeds(world, realm):
    """All others hear that the offer is none."""
    for _ in range(ROUNDS):
        token = realm.app().sign_in(realm.user())["access_token"]
        old, new = Device(realm.app()), Device(realm.app())
        assert old.enrol(token).status == 200
        shown = new.offer().json()
        signed = old.approval(shown["Offer"], new, shown["CheckCode"])
        document = {"Offer": shown["Offer"], "Approval": signed}
        answers = together([
            lambda n=n: realm.app(node=world.nodes[n % 2]).post_json(DEVICES + "/adopt", document, bearer(token)) for n in range(AT_ONCE)])
        assert sorted(a.status for a in answers) == [200] + [400] * (AT_ONCE - 1), answers
        assert {a.body for a in answers if a.status == 400} == {b'{"error":"invalid_offer"}'}


def test_one_of_many_sign_ins_with_one_nonce_succeeds(world, realm):
    """Each with a proof of its own."""
    for _ in range(ROUNDS):
        token = realm.app().sign_in(realm.user())["access_token"]
        device = Device(realm.app())
        assert device.enrol(token).status == 200
        device.fresh_nonce()
        proofs = [device.proof("POST", "/connect/token") for _ in range(AT_ONCE)]
        answers = together([lambda n=n: device.sign_in(proofs[n], realm.app(node=world.nodes[n % 2])) for n in range(AT_ONCE)])
        assert [a.status for a in answers].count(200) == 1, answers
        assert {a.json()["error"] for a in answers if a.status != 200} == {"use_dpop_nonce"}
