"""Keys that prove a number: bound, rebound, asserted, revoked."""

import time

import pytest

from harness.dpop import ProofKey
from harness.phones import Phones, new_number
from harness.possession import Backend, possession


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = possession(world.realm())
    realm.phones = Phones(realm)
    realm.srv = Backend(realm, "srv", "cap:assert-possession")
    realm.srv2 = Backend(realm, "srv2")
    yield realm
    realm.phones.close()


def prove(realm, number, key, **members):
    """A code; the transaction."""
    started = realm.srv.unify(number, **members)
    phone = realm.srv.phone(started, key)
    phone.call("open")
    before = len(realm.phones.to(number))
    phone.call("send", channel="otp")
    assert phone.call("check", otp=realm.phones.wait(number, before + 1)["code"]) == {"state": "passed"}
    return started


def opened(realm, number, key, backend=None, **members):
    """A transaction that a key opened; its status."""
    backend = backend or realm.srv
    started = backend.unify(number, **members)
    backend.phone(started, key).call("open")
    return backend.status(started)


def reasons(status):
    """The codes of a failure."""
    return set(status.evaluation["authentication"].get("failureReasons", {}))


def test_a_bound_key_passes_and_a_rebind_moves_it(realm):
    """No message for the same number; another one fails until a code has moved the key; then the first one does."""
    key, first, second = ProofKey(), new_number(), new_number()
    device = realm.srv.status(prove(realm, first, key)).deviceId
    again = opened(realm, first, key)
    assert (again.success, again.deviceId) == ("true", device) and len(realm.phones.to(first)) == 1
    assert opened(realm, None, key).phoneNumber == first
    other = opened(realm, second, key)
    assert other.success == "false" and reasons(other) == {"9100", "9101"} and realm.phones.to(second) == []
    unanswered = realm.srv.unify(second, rebind=True)
    assert realm.srv.phone(unanswered, key).call("open")["state"] == "open"
    assert opened(realm, first, key).success == "true"
    prove(realm, second, key, rebind=True)
    assert opened(realm, second, key).success == "true" and reasons(opened(realm, first, key)) == {"9100", "9101"}
    none = opened(realm, first, key, kind="none")
    assert none.success == "possession_required" and reasons(none) == {"9101"}


def test_what_a_backend_asserts(realm):
    """Only of kind none, opened, and by a client that may; repeated alike, never for a second number."""
    key, number, other = ProofKey(), new_number(), new_number()
    started = realm.srv.unify(number, "none")

    def bind(to, backend=realm.srv):
        return backend.ask("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=to)
    assert (bind(number).status, bind(number).json()["code"]) == (403, 8003)
    assert realm.srv.phone(started, key).call("open")["state"] == "required"
    assert realm.srv.status(started).success == "possession_required"
    assert bind(number, realm.srv2).json()["code"] == 8008
    bound = bind(other)
    assert bound.status == 200 and bound.json()["success"] == "true" and bound.json()["phoneNumber"] == other
    assert bind(other).same_bytes() == bound.same_bytes()
    assert (bind(number).status, bind(number).json()["code"]) == (403, 8003)
    assert opened(realm, other, key, kind="none").success == "true"
    own = realm.srv2.unify(number, "none")
    realm.srv2.phone(own).call("open")
    answer = realm.srv2.ask("/v3/unify-bind", correlationId=own.correlationId, phoneNumber=number)
    assert (answer.status, answer.json()["code"]) == (403, 8003)
    mobile = realm.srv.unify(number)
    realm.srv.phone(mobile).call("open")
    answer = realm.srv.ask("/v3/unify-bind", correlationId=mobile.correlationId, phoneNumber=number)
    assert (answer.status, answer.json()["code"]) == (403, 8003)


def test_keys_are_the_realms(realm, world):
    """Another client recognises and does not revoke; another realm does not know; a revoked one is new."""
    key, number = ProofKey(), new_number()
    device = realm.srv.status(prove(realm, number, key)).deviceId
    assert opened(realm, number, key, realm.srv2).success == "true"
    assert realm.srv2.ask("/v3/device/revoke", deviceId=device).status == 404
    elsewhere = possession(world.realm())
    phones = Phones(elsewhere)
    try:
        stranger = Backend(elsewhere, "srv")
        assert opened(elsewhere, number, key, stranger).success == "pending"
    finally:
        phones.close()
    assert realm.srv.call("/v3/device/revoke", deviceId=device).success is True
    assert opened(realm, number, key).success == "pending"


def test_a_number_has_several_devices(realm):
    """Two keys, one number; a hint at another key is asked again."""
    one, two, number = ProofKey(), ProofKey(), new_number()
    first = realm.srv.status(prove(realm, number, one))
    second = realm.srv.status(prove(realm, number, two))
    assert first.deviceId != second.deviceId and first.proveId == second.proveId
    assert opened(realm, number, one).success == opened(realm, number, two).success == "true"
    assert opened(realm, number, one, deviceId=second.deviceId).success == "pending"
    assert opened(realm, number, one, deviceId=first.deviceId).success == "true"
    assert realm.srv.status(realm.srv.unify(proveId=first.proveId)).success == "pending"


def test_a_key_that_was_not_used_for_a_year_is_new(realm, world):
    """The sweeper takes it after 12 months, not before; one that is a trusted device as well stays."""
    keys = [ProofKey() for _ in range(3)]
    numbers = [new_number() for _ in keys]
    devices = [realm.srv.status(prove(realm, number, key)).deviceId for number, key in zip(numbers, keys)]
    owner = world.admin.call("put_user", realm.slug, realm.new_email(), email_verified=True)
    for device, age in zip(devices, ("12 months 1 day", "11 months", "12 months 1 day")):
        world.cluster.sql(f"UPDATE postern.device_key SET used_at = now() - interval '{age}' WHERE id = '{device}'")
    world.cluster.sql(f"UPDATE postern.device_key SET user_id = '{owner}', added_at = now(), client = phone_client WHERE id = '{devices[2]}'")
    deadline = time.monotonic() + 60
    while world.cluster.value(f"SELECT count(*) FROM postern.device_key WHERE id = '{devices[0]}'") != "0":
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert [opened(realm, number, key).success for number, key in zip(numbers, keys)] == ["pending", "true", "true"]
    assert realm.srv.ask("/v3/device/revoke", deviceId=devices[0]).status == 404
