"""A process that stops answers each request that a proxy can have sent to it: the proxy must not send it elsewhere."""

import signal
import socket
import threading

import pytest

from harness import report
from test_connections import DISCOVERY, Raw, host

ROUNDS, THREADS = 3, 16


@pytest.fixture
def node(world):
    """A process that closes its listener as soon as it is to stop."""
    made = world.start_node(POSTERN_SHUTDOWN_DELAY="0")
    yield made
    made.stop()


def is_refused(node):
    """Whether its port is closed; a SYN that was dropped before is sent again after a second."""
    with socket.socket() as probe:
        probe.settimeout(0.05)
        return isinstance(_failure(probe, node), ConnectionRefusedError)


def _failure(probe, node):
    try:
        probe.connect(("127.0.0.1", node.port))
    except OSError as error:
        return error
    return None


@pytest.mark.parametrize("before", [b"", b"GET /.well"], ids=["no byte", "half a line"])
def test_a_request_on_its_way_to_a_process_that_stops_is_answered(realm, node, before):
    """The connection is there, and what it is for comes when the port is closed."""
    waiting = [Raw(node) for _ in range(8)]
    for raw in waiting:
        raw.send(before)
    asked = Raw(node)
    asked.send(DISCOVERY % host(realm))
    assert asked.answers(1) == [200]
    node.process.send_signal(signal.SIGTERM)
    while not is_refused(node):
        assert node.alive()
    for raw in waiting:
        raw.send((DISCOVERY % host(realm))[len(before):])
    assert [raw.answers(1) for raw in waiting] == [[200]] * 8
    assert [raw.until_closed() for raw in waiting] == [b""] * 8
    assert node.process.wait(20) == 0


def test_no_connection_that_was_made_is_reset_when_the_port_closes(realm):
    """Connections wait to be accepted at every moment, and a refused one is no loss."""
    made = lost = 0
    for _ in range(ROUNDS):
        node, counts, stopped = realm.world.start_node(POSTERN_SHUTDOWN_DELAY="0"), [], threading.Event()
        threads = [threading.Thread(target=_ask, args=(node, DISCOVERY % host(realm), counts, stopped)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        while len(counts) < 500:
            stopped.wait(0.01)
        assert node.terminate() == 0
        stopped.set()
        for thread in threads:
            thread.join()
        made, lost = made + len(counts), lost + counts.count(False)
    assert lost == 0, f"{lost} of {made}"
    report.say(f"stopping: {ROUNDS} processes under load, {made} connections, each answered")


def _ask(node, request, counts, stopped):
    """One request a connection until the port is closed; whether each had its answer."""
    while not stopped.is_set():
        try:
            raw = Raw(node)
        except OSError:
            return
        try:
            raw.send(request)
            counts.append(raw.answers(1) == [200])
        except (OSError, AssertionError):
            counts.append(False)
        finally:
            raw.socket.close()
