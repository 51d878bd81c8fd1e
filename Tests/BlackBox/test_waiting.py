"""Devices that wait for approvals: what each costs, how soon it learns, and how a server stops under them."""

import asyncio
import socket
import time

import pytest

from harness import report, wire
from harness.approvals import Device, ask, switch_on
from harness.crowd import Crowd, devices
from harness.settings import FULL, SANITIZED

PATH = "/connect/approvals?wait=25"
#: Devices that wait, and how many of them are asked for an approval.
DEVICES, ASKED = (10_000, 100) if FULL else (200, 10)


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


@pytest.fixture
def node(world):
    """A process with eight connections to the database, behind a proxy: all devices come from one address."""
    made = world.start_node(
        POSTERN_TRUSTED_PROXIES="127.0.0.1/32", POSTERN_DB_CONNECTIONS="8", POSTERN_LOG_LEVEL="info", POSTERN_MAX_CONNECTIONS="12000", POSTERN_LONG_POLLS="10500")
    yield made
    made.stop()


def delay_of(waiter, asker):
    """Asks for an approval of the waiter's user at another node; the seconds until the device knew, from the answer to the asker."""
    answer = ask(asker, waiter.device.email)
    assert answer.status == 200, answer
    return time.monotonic()


async def measured(node, asker, crowd):
    """Has the crowd arrive, wait, learn of approvals and be sent away; returns the figures."""
    count, before, spent = len(crowd.devices), node.resident(), node.processor_seconds()
    began = time.monotonic()
    await crowd.arrive()
    await crowd.all_wait(timeout=120)
    figures = {"arrival": time.monotonic() - began, "memory": (node.resident() - before) / count, "cpu": (node.processor_seconds() - spent) / len(crowd.answers + crowd.waiters)}

    spent, began, lent = node.processor_seconds(), time.monotonic(), []
    for _ in range(20):
        lent.append(await asyncio.to_thread(crowd.lent))
        await asyncio.sleep(0.1)
    figures["idle"], figures["lent"] = (node.processor_seconds() - spent) / (time.monotonic() - began), sorted(lent)

    delays = []
    for waiter in crowd.waiters[:: count // ASKED]:
        asked = await asyncio.to_thread(delay_of, waiter, asker)
        found, head, body = await asyncio.wait_for(waiter.found, 5)
        assert head.startswith(b"HTTP/1.1 200") and asker.client_id.encode() in body, (head, body)
        delays.append(max(0.0, found - asked))
    figures["delays"] = sorted(delays)

    crowd.goes_on, began, answered = False, time.monotonic(), len(crowd.answers)
    assert await asyncio.to_thread(node.terminate) == 0
    figures["stop"] = time.monotonic() - began
    await asyncio.gather(*(waiter.found for waiter in crowd.waiters))
    figures["dismissed"] = len(crowd.answers) - answered
    crowd.close()
    return figures


@pytest.mark.slow
def test_waiting_devices_cost_memory_alone_and_learn_of_an_approval_at_once(world, node):
    """No connection to the database, some KiB each; an approval asked for on another node; a stop answers all of them."""
    realm = world.realm("wait")
    switch_on(realm, "app", "api")
    app, asker = realm.app(), realm.app("api")
    app.node = node
    crowd = Crowd(node, devices(app, realm, DEVICES))
    figures = asyncio.run(measured(node, asker, crowd))
    delays, again = figures["delays"], len(crowd.answers) - ASKED - figures["dismissed"]
    report.say(
        f"waiting: {DEVICES} devices after {figures['arrival']:.1f} s ({again} of them had asked again), {figures['memory'] / 1024:.1f} KiB and"
        f" {figures['cpu'] * 1e6:.0f} µs of CPU each, {figures['idle'] * 100:.1f} % of a core while they wait, connections lent {figures['lent'][10]:.0f};"
        f" woken after {delays[len(delays) // 2] * 1000:.0f} ms (median), {delays[-1] * 1000:.0f} ms (slowest of {len(delays)}); stop in {figures['stop']:.1f} s")
    assert set(crowd.answers) == {(200, None)}, set(crowd.answers)
    # Of few, what the process needs once is the most.
    assert SANITIZED or figures["memory"] <= (60 if FULL else 250) * 1024
    assert figures["lent"][10] == 0, "a wait holds a connection"
    assert delays[-1] < 1.5 and figures["stop"] < 10, figures
    # Those that were told, and those that were on their way, are not waiting.
    assert figures["dismissed"] >= DEVICES - ASKED - (DEVICES // 20), figures


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
