"""Proofs of devices where there is more than one node, a proxy that is not trusted, and tokens that are for something else."""

import base64

import pytest

from harness import wire
from harness.dpop import INVALID, is_challenge, nonce_of
from harness.keyfile import Fleet, new_line
from harness.service import granted, service
from harness.trusted import DEVICES, Device, with_devices


@pytest.fixture(scope="module", name="fleet")
def _fleet():
    made = Fleet("device-nodes").open()
    yield made
    made.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    return with_devices(world.realm())


def itself(device, node, nonce):
    """`self` at a node with a proof that has this nonce; the raw answer."""
    path = DEVICES + "/self"
    return wire.exchange(node.port, "GET", path, {"Host": device.app.host, "DPoP": device.proof("GET", path, nonce=nonce)})


def test_a_nonce_is_good_at_every_node_after_a_restart_and_under_a_new_line(fleet):
    """It is sealed with the key file and stored nowhere."""
    realm = with_devices(fleet.realm())
    first, second = fleet.nodes
    device = Device(realm.app(node=first))
    assert device.enrol(realm.app(node=first).sign_in(realm.user())["access_token"]).status == 200
    nonce = device.fresh_nonce()
    assert itself(device, second, nonce).status == 200
    fleet.roll(fleet.lines)
    assert itself(device, first, nonce).status == 200
    fleet.roll([new_line(), *fleet.lines])
    assert itself(device, second, nonce).status == 200
    fleet.roll([new_line()] + fleet.lines)
    spoiled = base64.urlsafe_b64encode(bytes([base64.urlsafe_b64decode(nonce + "==")[0] ^ 1]) + base64.urlsafe_b64decode(nonce + "==")[1:])
    answer = itself(device, first, spoiled.decode().rstrip("="))
    assert is_challenge(answer) and itself(device, first, nonce_of(answer)).status == 200


def test_what_a_stranger_forwards_does_not_change_the_url_of_a_proof(realm):
    """Neither the right URL becomes wrong nor another one right."""
    app = realm.app()
    device = Device(app)
    assert device.enrol(app.sign_in(realm.user())["access_token"]).status == 200
    path = DEVICES + "/self"
    forwarded = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example;proto=http"}
    evil = device.key.proof("GET", f"http://evil.example{path}", nonce=device.fresh_nonce())
    answer = app.exchange("GET", path, {"DPoP": evil, **forwarded})
    assert (answer.status, answer.json()) == (401, INVALID), answer
    assert app.exchange("GET", path, {"DPoP": device.proof("GET", path), **forwarded}).status == 200


def test_tokens_for_something_else_add_no_device(world, realm):
    """Of a service account, of another realm, for an API; a right one afterwards."""
    email = realm.user()
    app = realm.app()
    robot, _ = service(realm, "robot")
    other = with_devices(world.realm())
    cases = [
        (granted(robot)["access_token"], 403, "insufficient_scope"),
        (other.app().sign_in(other.user())["access_token"], 401, "invalid_token"),
        (app.sign_in(email, scope=f"openid {realm.granted_scope}")["access_token"], 401, "invalid_token"),
        ("junk", 401, "invalid_token"),
    ]
    device = Device(app)
    for token, status, error in cases:
        answer = device.enrol(token)
        seen = answer.json().get("error") if answer.body else (answer.header("www-authenticate") or "").partition('error="')[2].partition('"')[0]
        assert (answer.status, seen) == (status, error), answer
    assert world.cluster.value(
        f"SELECT count(*) FROM postern.device_key AS d JOIN postern.realm AS r ON r.id = d.realm_id WHERE r.slug = '{realm.slug}' AND d.user_id = "
        f"(SELECT id FROM postern.user_account WHERE address_key = '{email}')") == "0"
    assert device.enrol(app.sign_in(email)["access_token"]).status == 200
