"""The table of proofs at each call of devices: only ES256, always with a nonce, and then whatever the clock of the device says."""

import socket

import pytest

from harness import dpop_cases
from harness.approvals import switch_on
from harness.codeflow import hosted
from harness.device_places import DOORS, Enrolment, NonceMaker
from harness.dpop import ProofKey, assert_invalid, assert_nonce_due
from harness.phones import new_number
from harness.possession import furnished, possession
from harness.trusted import Device as Owner
from harness.trusted import with_devices

#: Making RSA keys takes long; what is no ES256 is refused in one place of the source.
_WITH_RSA = (Enrolment,)
_KEYS = {}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = with_devices(hosted(world.realm("devproofs"), offer_passkey=False), probation="0 seconds")
    switch_on(made, "app", public_clients=True)
    made.limit("possession", "client", 1_000_000, per="1 minute", burst=1_000_000)
    furnished(possession(made))
    made.second = world.start_node()
    yield made
    made.second.stop()
    made.phones.close()


@pytest.fixture(scope="module", name="foreign")
def _foreign(world):
    """A nonce of another realm."""
    return Owner(with_devices(world.realm("devother")).app()).fresh_nonce()


def expected(case, key, door):
    """What a proof of the table is at a call of devices; None: served or refused."""
    if key.alg != "ES256":
        return "invalid"
    if case.name.startswith("iat "):
        # With a nonce the clock of a device does not count.
        if case.verdict == "nonce due":
            return "accepted"
        if case.verdict == "refused":
            return "invalid" if "1e400" in case.name else None
    if case.name == "a wrong ath where no token is" and door.token(key) is not None:
        return "invalid"
    return case.verdict


def applies(case, door):
    """Whether a case of the table can be told at a call."""
    if ("RSA" in case.name or "RS256" in case.name or "PS256" in case.name) and type(door) not in _WITH_RSA:
        return False
    return case.where is None or case.where == dpop_cases.TOKEN_ENDPOINT or door.token(door.key) is not None


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.name)
def test_a_proof_is_accepted_only_if_all_of_it_is_right(realm, kind):
    """Every proof of the table; what is refused has cost nothing, and what is served serves once."""
    door, wrong, count = kind(realm), [], 0
    door.control()
    for case in dpop_cases.CASES:
        if not applies(case, door):
            continue
        # A key is a device once in a realm.
        name = case.name if "RS" in case.name or "PS" in case.name else (case.name, kind)
        if case.key is not None and name not in _KEYS:
            _KEYS[name] = case.key()
        key = _KEYS.get(name, door.key)
        proofs = case.make(NonceMaker(door, key))
        proofs = proofs if isinstance(proofs, list) else [proofs]
        if door.in_body and len(proofs) > 1:
            continue
        verdict, count = expected(case, key, door), count + 1
        try:
            if verdict == "accepted":
                door.succeeds(key, *proofs)
            elif verdict is None:
                answer = door.send(key, *proofs)
                assert answer.status in (200, 204, 400, 401), answer
                if answer.status in (200, 204):
                    door.restore(key)
            else:
                assert_invalid(door.send(key, *proofs), door.protected)
        except AssertionError as error:
            wrong.append((case.name, verdict, str(error)[:400]))
        if count % 25 == 0:
            door.control()
    door.control()
    assert not wrong and count > 150, (count, wrong)


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.name)
def test_a_proof_needs_a_live_nonce_of_the_realm(realm, foreign, kind):
    """None, one of another realm, one that is bent: each answer gives one that works."""
    door = kind(realm)
    bent = door.nonce[:-2] + ("A" if door.nonce[-2] != "A" else "B") + door.nonce[-1]
    for nonce in (None, foreign, bent, "", "n" * 40):
        maker = NonceMaker(door, door.key)
        given = assert_nonce_due(door.send(door.key, maker(nonce=nonce)), door.protected)
        door.nonce = given
        door.succeeds(door.key, NonceMaker(door, door.key)())


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.name)
def test_the_key_in_the_proof_decides_alone(realm, kind):
    """Names of keys elsewhere are neither followed nor believed."""
    door = kind(realm)
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.3)
        url = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/keys"
        beside = {"jku": url, "x5u": url, "kid": url, "x5c": ["AAAA"], "x5t#S256": "A" * 43}
        for name, value in beside.items():
            maker = NonceMaker(door, door.key)
            assert_invalid(door.send(door.key, maker(header={"jwk": None, name: value})), door.protected)
            assert_invalid(door.send(door.key, maker(ProofKey(), header={"jwk": door.key.public(), name: value})), door.protected)
            door.succeeds(door.key, maker(header={name: value}))
        with pytest.raises(TimeoutError):
            elsewhere.accept()


def test_a_step_of_another_number_is_not_opened_by_the_same_key(realm):
    """A proof names the token that it comes with."""
    door = DOORS[-1](realm)
    other = realm.srv.phone(realm.srv.unify(new_number()), door.key)
    other.call("open")
    proof = NonceMaker(door, door.key)()
    door._made[door.key.thumbprint] = other.token  # pylint: disable=protected-access
    assert_invalid(door.send(door.key, proof), True)
    door.succeeds(door.key, NonceMaker(door, door.key)())
