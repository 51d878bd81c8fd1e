"""The Swift client library when processes end, stop and disturb each other: no session ends but by the user."""

import fcntl
import itertools
import json
import os
import signal
import subprocess

import pytest

from harness import settings
from harness.swift_client import ClientError, SwiftClient

HOUR = 3_600


@pytest.fixture
def where(realm, tmp_path):
    """How to open clients of one store whose tokens end at once."""
    return dict(
        host=realm.host, client_id=realm.client("app"), port=realm.world.node.port, directory=str(tmp_path / "state"), life=1e-6, haste=20
    )


@pytest.fixture
def adopted(where, app, email):
    """The store has a session. Returns the identifier of the session."""
    with SwiftClient(**where) as client:
        session = client.call("adopt", refreshToken=app.sign_in(email)["refresh_token"])["sessionID"]
        client.call("accessToken")
        return session


def assert_signed_in(where, session):
    """The store has the session still, and it can be used."""
    with SwiftClient(**where) as client:
        client.call("accessToken")
        assert client.call("state")["user"]["sessionID"] == session


def stopped(process):
    """Waits until a process is stopped."""
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def test_a_process_killed_between_answer_and_write_costs_nothing(where, adopted):
    for _ in range(settings.ROUNDS):
        with SwiftClient(**where) as client:
            client.call("dieAtWrite")
            with pytest.raises(EOFError):
                client.call("accessToken")
            assert client.requests("/connect/token") == 1
    assert_signed_in(where, adopted)


def test_an_answer_lost_hours_ago_is_given_again(where, adopted, world):
    with SwiftClient(**where) as client:
        client.call("dieAtWrite")
        with pytest.raises(EOFError):
            client.call("accessToken")
    world.time_travel(3 * HOUR)
    with SwiftClient(**where) as client:
        client.call("accessToken")
        assert client.call("state")["user"]["sessionID"] == adopted
        assert client.requests("/connect/token") == 1


def test_a_write_that_fails_hands_out_nothing(where, adopted):
    with SwiftClient(**where, failing=1) as client:
        assert client.fails("accessToken", "unavailable")
    assert_signed_in(where, adopted)


@pytest.mark.slow
def test_a_frozen_process_holds_up_the_others_for_five_seconds_and_goes_on_with_their_token(where, adopted):
    with SwiftClient(**where) as frozen, SwiftClient(**where) as other:
        # A clock that is behind makes the proof as old as if the process had been frozen for so long.
        frozen.call("setClock", ahead=-90)
        frozen.call("stopAtSend")
        token = frozen.start("accessToken")
        stopped(frozen.process)
        for _ in range(2):
            other.call("accessToken", timeout=12)
        frozen.process.send_signal(signal.SIGCONT)
        token.result(20)
        assert frozen.logged("superseded")
        for client in (frozen, other):
            assert client.call("state")["user"]["sessionID"] == adopted
    assert_signed_in(where, adopted)


def test_a_process_that_waits_for_a_lock_does_other_things_meanwhile(where, adopted):
    """Even if it has one thread for all tasks: it may use one processor only."""
    with SwiftClient(**where, prefix=["taskset", "-c", str(min(os.sched_getaffinity(0)))]) as client:
        [name] = [entry for entry in os.listdir(where["directory"]) if entry.endswith(".lock")]
        with open(os.path.join(where["directory"], name)) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            token = client.start("accessToken")
            for _ in range(3):
                assert client.call("state")["case"] == "signedIn"
                client.call("setClock", ahead=0)
            assert not token.done()
        token.result(5)


@pytest.fixture(scope="module")
def interrupt(tmp_path_factory):
    """A library that interrupts writes."""
    made = tmp_path_factory.mktemp("interrupt") / "interrupt.so"
    source = settings.REPOSITORY / "Tests/InterruptedWrites/interrupt.c"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, source], check=True)
    return made


@pytest.mark.parametrize("by", ["kill", "fail"])
def test_a_write_that_is_interrupted_anywhere_leaves_the_old_document_or_the_new(by, interrupt, where, adopted, tmp_path):
    [lock] = [entry for entry in os.listdir(where["directory"]) if entry.endswith(".lock")]
    document = tmp_path / "state" / lock.removesuffix(".lock")
    outcomes = set()
    for number in itertools.count(1):
        with SwiftClient(**where, environment={"LD_PRELOAD": interrupt, "INTERRUPT_AT": str(number), "INTERRUPT_BY": by}) as client:
            try:
                before = document.read_text()
                client.call("accessToken")
                break
            except EOFError:
                assert by == "kill"
            except ClientError as error:
                assert by == "fail" and error.case == "unavailable"
                assert client.call("soak", count=1)["unstored"] == 0
                continue
        assert json.loads(document.read_text())["session"]
        outcomes.add(document.read_text() == before)
    assert number > 7
    assert by == "fail" or outcomes == {True, False}
    assert_signed_in(where, adopted)
    # The last writer removed what the killed ones left.
    assert sorted(os.listdir(where["directory"])) == sorted([document.name, lock])
