"""A node whose clock is wrong says so, refuses before it consumes anything, and goes on by itself when the clock is right again."""

import time

import pytest

from harness import authenticator
from harness.load import is_unavailable
from harness.node import Node, run_postern
from harness.shift import Shift

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shift(tmp_path_factory):
    """For the node of this module."""
    return Shift.made(tmp_path_factory.mktemp("clock"))


@pytest.fixture(scope="module")
def node(world, shift):
    """A node on a clock of its own."""
    made = Node(world.cluster.url("bb_serve"), world.key_file, world.mailbox.port, **shift.environment).start()
    world.nodes.append(made)
    yield made
    made.stop()


def wait_for(condition, timeout=5):
    """Until it holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.parametrize("seconds", [90, -90, 86_400 * 365])
def test_a_wrong_clock_consumes_nothing(realm, node, shift, seconds):
    """The code, the refresh token and the link that were presented meanwhile are good afterwards; /readyz says why."""
    app = realm.app(node=node)
    tokens = app.sign_in(realm.user())
    email = realm.user()
    asked = app.request_code(email)
    assert node.ops("/readyz").status == 200
    shift.by(seconds)
    try:
        # At once, before any heartbeat: the step itself is noticed.
        assert is_unavailable(app.redeem(asked.code, handle=asked.handle))
        wait_for(lambda: node.ops("/readyz").status == 503)
        assert f"differ by {abs(seconds)} s" in node.ops("/readyz").body.decode()
        for _ in range(3):
            assert is_unavailable(app.redeem(asked.code, handle=asked.handle))
            assert is_unavailable(app.refresh(tokens["refresh_token"]))
    finally:
        shift.by(0)
    wait_for(lambda: node.ops("/readyz").status == 200)
    assert app.redeem(asked.code, handle=asked.handle).status == 200
    assert app.refresh(tokens["refresh_token"]).status == 200


def test_a_ceremony_that_was_begun_under_a_wrong_clock_is_good_under_a_right_one(realm, node, shift):
    """It ends by the database's clock, not by that of the node which began it."""
    app = realm.app(node=node)
    _, credential = app.enroll(app.sign_in(realm.user())["access_token"])
    shift.by(-86_400)
    try:
        ceremony = app.ceremony()
    finally:
        shift.by(0)
    wait_for(lambda: node.ops("/readyz").status == 200)
    assert app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], credential)).status == 200


def test_less_than_a_minute_is_no_trouble(realm, node, shift):
    """Machines are never quite of one mind."""
    app = realm.app(node=node)
    shift.by(50)
    try:
        time.sleep(1)
        assert node.ops("/readyz").status == 200
        assert app.sign_in(realm.user())["access_token"]
    finally:
        shift.by(0)


def test_doctor_and_serve_refuse_a_wrong_clock(world, node, shift):
    """Before anything else goes wrong."""
    environment = {**node.environment, **shift.environment}
    shift.by(600)
    try:
        for command in ("doctor", "serve"):
            done = run_postern(command, environment=environment)
            assert done.returncode == 1
            assert "clocks of this machine and the database differ by 600 s" in done.stdout + done.stderr
    finally:
        shift.by(0)
    done = run_postern("doctor", environment=environment)
    assert "ok    clock: differs from the database's by 0 s" in done.stdout, done.stdout
