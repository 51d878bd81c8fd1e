"""Devices that wait for approvals: what each costs, how soon it learns, and how a server stops under them."""

import select
import socket
import time

import pytest

from harness import report, wire
from harness.approvals import Device, ask, switch_on
from harness.settings import FULL

PATH = "/connect/approvals?wait=25"
#: Devices, and waiting requests of each.
DEVICES, EACH = (150, 10) if FULL else (20, 10)


class Waiting:
    """One held request on a connection of its own."""

    def __init__(self, node, device):
        self.socket = socket.create_connection(("127.0.0.1", node.port), timeout=40)
        self.request = wire.request_bytes("GET", PATH, [("Host", device.host), ("DPoP", device.proof("GET", PATH.partition("?")[0]))], None)

    def send(self):
        """Begins to wait."""
        self.socket.sendall(self.request)

    def answer(self):
        """The status and body of the answer."""
        answer = b""
        while b"\r\n\r\n" not in answer or len(answer.partition(b"\r\n\r\n")[2]) < self._length(answer):
            chunk = self.socket.recv(65536)
            if not chunk:
                break
            answer += chunk
        return int(answer.split(b" ")[1]), answer.partition(b"\r\n\r\n")[2]

    @staticmethod
    def _length(answer):
        head = answer.partition(b"\r\n\r\n")[0].lower()
        return int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)


def until(condition, what, timeout=20.0):
    """Waits for something to be so."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)


def early(waiting):
    """What was answered already."""
    return {one.socket.recv(4096)[:400] for one in readable([one for _, requests in waiting for one in requests], 0)[:20]}


def readable(requests, seconds):
    """Those that have an answer, once one has."""
    poll = select.poll()
    for one in requests:
        poll.register(one.socket, select.POLLIN)
    ready = {number for number, _ in poll.poll(seconds * 1000)}
    return [one for one in requests if one.socket.fileno() in ready]


@pytest.fixture
def node(world):
    """A process with eight connections to the database, behind a proxy: all devices come from one address."""
    made = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32", POSTERN_DB_CONNECTIONS="8", POSTERN_LOG_LEVEL="info")
    yield made
    made.stop()


@pytest.mark.slow
def test_waiting_devices_cost_memory_alone_and_learn_of_an_approval_at_once(world, node):
    """No connection to the database, some KiB each; an approval asked for on another node; a stop answers all of them."""
    realm = world.realm("wait")
    switch_on(realm, "app", "api")
    app, asker = realm.app(), realm.app("api")
    app.node = node
    devices = [Device(app, realm, realm.user()) for _ in range(DEVICES)]
    for device in devices:
        assert device.inbox() == []
    waiting = [(device, [Waiting(node, device) for _ in range(EACH)]) for device in devices]
    count = len(devices) * EACH
    before, spent = node.resident(), node.processor_seconds()
    # Few at a time: what is looked up before a wait needs the database.
    for number, (_, requests) in enumerate(waiting, 1):
        for request in requests:
            request.send()
        if number % 5 == 0:
            until(lambda asked=number * EACH: node.metric("postern_held_requests") >= asked, lambda: f"{node.metric('postern_held_requests')} held, answered early: {early(waiting)}")
    until(lambda: node.metric("postern_held_requests") == count, "not all are held")
    each = (node.resident() - before) / count
    per_request = (node.processor_seconds() - spent) / count
    # Of few, what the process needs once is the most.
    assert each <= (40 if FULL else 80) * 1024, f"{each / 1024:.1f} KiB each"
    spent, began = node.processor_seconds(), time.monotonic()
    held = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'bb_serve' AND state = 'active' AND query LIKE '%enter_device%'"
    for _ in range(10):
        assert world.cluster.value(held) == "0"
        time.sleep(0.1)
    idle = (node.processor_seconds() - spent) / (time.monotonic() - began)
    assert app.sign_in(realm.user())["access_token"], "the connections are free"

    delays = []
    for device, requests in waiting[:10]:
        assert ask(asker, device.email).status == 200
        began = time.monotonic()
        ready = readable(requests, 5)
        delays.append(time.monotonic() - began)
        assert ready, "nobody was woken"
        for request in requests:
            status, body = request.answer()
            assert status == 200 and asker.client_id.encode() in body, body
    delays.sort()
    assert delays[-1] < 1.5, delays

    began = time.monotonic()
    assert node.terminate() == 0
    took = time.monotonic() - began
    answers = {request.answer() for _, requests in waiting[10:] for request in requests}
    assert {status for status, _ in answers} == {200} and took < 5, (answers, took)
    report.say(
        f"waiting: {count} requests, {each / 1024:.1f} KiB and {per_request * 1e6:.0f} µs of CPU each, {idle * 100:.1f} % of a core idle;"
        f" woken after {delays[len(delays) // 2] * 1000:.0f} ms (median), {delays[-1] * 1000:.0f} ms (slowest of {len(delays)}); stop in {took:.1f} s")
    for _, requests in waiting:
        for request in requests:
            request.socket.close()


def test_a_device_that_leaves_ends_its_wait(world, node):
    """So an abandoned request holds nothing."""
    realm = world.realm("left")
    switch_on(realm, "app")
    app = realm.app()
    app.node = node
    device = Device(app, realm, realm.user())
    assert device.inbox() == []
    request = Waiting(node, device)
    request.send()
    until(lambda: node.metric("postern_held_requests") == 1, "it is not held")
    request.socket.close()
    until(lambda: node.metric("postern_held_requests") == 0, "it is held without its client", timeout=5)


def test_above_the_limit_a_wait_is_answered_at_once(world):
    """With Retry-After."""
    node = world.start_node(POSTERN_LONG_POLLS="1")
    try:
        realm = world.realm("most")
        switch_on(realm, "app")
        app = realm.app()
        app.node = node
        device = Device(app, realm, realm.user())
        assert device.inbox() == []
        first = Waiting(node, device)
        first.send()
        until(lambda: node.metric("postern_held_requests") == 1, "it is not held")
        answer = device.look(wait=25)
        assert answer.status == 200 and answer.header("retry-after") == "5" and answer.seconds < 5, answer
        first.socket.close()
    finally:
        node.stop()
