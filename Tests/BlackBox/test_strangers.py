"""What strangers do at once, directly and through HAProxy, and what good clients notice of it: their share of successes, and memory."""

import asyncio
import itertools
import resource
import socket
import struct
import time

import pytest

from harness import fleet, report, wire
from harness.haproxy import HAPROXY, HAProxy
from harness.settings import FULL
from harness.tls import unverified
from harness.volley import in_parallel

pytestmark = pytest.mark.slow
#: Connections that say nothing, and seconds under attack.
IDLE, SECONDS = (10_000, 60) if FULL else (1_000, 6)
MEBIBYTE = 1024 * 1024
DEEP = b"[" * 60_000


class Durations:
    """How long good requests took."""

    def __init__(self):
        self.all = []

    def add(self, _name, _port, began, _request, _outcome, _body):
        """One request."""
        self.all.append(time.monotonic() - began)

    def percentile(self, share):
        """Milliseconds."""
        ordered = sorted(self.all)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Good:
    """Refreshes and discovery, from sources of their own."""

    def __init__(self, realm, port, context=None):
        self.realm, self.port, self.context = realm, port, context
        self.app = realm.app()
        self.families = in_parallel(self.app.sign_in, realm.users(8))
        self.durations = Durations()

    async def run(self, seconds):
        """Asks for so long; returns (asked, answered with 200)."""
        self.durations.all.clear()
        end = asyncio.get_running_loop().time() + seconds
        counts = await asyncio.gather(*(self._client(number, family, end) for number, family in enumerate(self.families)))
        return sum(asked for asked, _ in counts), sum(good for _, good in counts)

    async def _client(self, number, family, end):
        asked = good = 0
        while asyncio.get_running_loop().time() < end:
            form = {"grant_type": "refresh_token", "client_id": self.app.client_id, "refresh_token": family["refresh_token"]}
            for request in (fleet.post(self.realm.host, "/connect/token", form, Connection="close"),
                            fleet.get(self.realm.host, "/.well-known/openid-configuration", Connection="close")):
                began = time.monotonic()
                asked += 1
                try:
                    status, body = await asyncio.wait_for(self._ask(request, f"127.0.5.{1 + number}"), 20)
                except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                    continue
                self.durations.add("good", self.port, began, request, status, body)
                good += status == 200
                if status == 200 and b"refresh_token" in request:
                    family.update(wire.json.loads(body))
                await asyncio.sleep(0.01)
        return asked, good

    async def _ask(self, request, source):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0), ssl=self.context)
        try:
            writer.write(request)
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.transport.abort()
        if not head.startswith(b"HTTP/1.1 "):
            raise OSError("no answer")
        return int(head.split()[1]), body


class Strangers:
    """Each method is one kind of attack; it goes on until it is cancelled."""

    def __init__(self, realm, port, context=None):
        self.host, self.port, self.context = realm.host, port, context
        self._sources = (f"127.0.{block}.{number}" for block, number in itertools.cycle(itertools.product(range(16, 60), range(1, 251))))
        self.done = {}

    def _count(self, name):
        self.done[name] = self.done.get(name, 0) + 1

    async def _open(self):
        return await asyncio.open_connection("127.0.0.1", self.port, local_addr=(next(self._sources), 0), ssl=self.context)

    async def idle(self, count):
        """Connections that say nothing; one that is closed is opened again."""
        async def one():
            while True:
                try:
                    reader, writer = await self._open()
                    self._count("idle")
                    await reader.read()
                    writer.transport.abort()
                except OSError:
                    pass
                await asyncio.sleep(0.5)
        await asyncio.gather(*(one() for _ in range(count)))

    async def slow(self, count=100):
        """A byte of a head every half second."""
        async def one():
            while True:
                try:
                    _, writer = await self._open()
                    for byte in f"GET / HTTP/1.1\r\nHost: {self.host}\r\n{'X' * 100}".encode():
                        writer.write(bytes([byte]))
                        await asyncio.sleep(0.5)
                    self._count("slow")
                    writer.transport.abort()
                except OSError:
                    await asyncio.sleep(0.1)
        await asyncio.gather(*(one() for _ in range(count)))

    async def _send(self, name, data, pause):
        while True:
            try:
                reader, writer = await self._open()
                try:
                    writer.write(data)
                    await asyncio.wait_for(reader.read(), 15)
                    self._count(name)
                finally:
                    writer.transport.abort()
            except (OSError, asyncio.TimeoutError):
                pass
            await asyncio.sleep(pause)

    async def giant_headers(self):
        """A header of 1 MiB, and 20,000 small ones."""
        one = f"GET / HTTP/1.1\r\nHost: {self.host}\r\nX: ".encode() + b"x" * MEBIBYTE + b"\r\n\r\n"
        many = f"GET / HTTP/1.1\r\nHost: {self.host}\r\n".encode() + b"a: b\r\n" * 20_000 + b"\r\n"
        await asyncio.gather(self._send("giant header", one, 0.05), self._send("many headers", many, 0.05))

    async def deep_json(self):
        """60,000 brackets."""
        head = f"POST /api/account/native/otp/request HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(DEEP)}\r\nConnection: close\r\n\r\n"
        await self._send("deep JSON", head.encode() + DEEP, 0.02)

    async def resets(self):
        """Connections that are reset in the middle of a request."""
        while True:
            try:
                _, writer = await self._open()
                one = writer.get_extra_info("socket")
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.write(f"POST /connect/token HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: 99\r\n\r\ngrant".encode())
                writer.transport.abort()
                self._count("reset")
            except OSError:
                pass
            await asyncio.sleep(0.005)

    async def http_2_resets(self):
        """Streams of HTTP/2 that are opened and reset at once, a hundred in a breath."""
        def frame(kind, flags, stream, payload):
            return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload

        def field(name, value):
            return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

        block = b"".join(field(*pair) for pair in [
            (b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/.well-known/jwks"), (b":authority", self.host.encode())])
        while True:
            try:
                reader, writer = await self._open()
                writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b""))
                for stream in range(1, 201, 2):
                    writer.write(frame(1, 5, stream, block) + frame(3, 0, stream, struct.pack("!I", 8)))
                await writer.drain()
                self._count("HTTP/2 resets, 100 each")
                try:
                    await asyncio.wait_for(reader.read(65536), 1)
                except asyncio.TimeoutError:
                    pass
                writer.transport.abort()
            except OSError:
                pass
            await asyncio.sleep(0.05)


def compare(good, attacks, nodes):
    """The same load without and with the attacks: (share of successes, p99 before, p99 during, growth in MiB)."""
    async def run():
        await good.run(1)
        asked, fine = await good.run(SECONDS)
        assert asked == fine, f"{asked - fine} of {asked} failed before any attack"
        before, memory = good.durations.percentile(0.99), [node.resident() for node in nodes]
        tasks = [asyncio.ensure_future(attack) for attack in attacks]
        await asyncio.sleep(2)
        asked, fine = await good.run(SECONDS)
        growth = max(node.resident() - had for node, had in zip(nodes, memory)) / MEBIBYTE
        problems = [task.exception() for task in tasks if task.done()]
        assert not problems, problems
        await cancel_all()
        return asked, fine, before, good.durations.percentile(0.99), growth

    async def cancel_all():
        """`wait_for` of this Python may lose a cancellation, so each task is told until it has ended."""
        others = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
        while others:
            for task in others:
                task.cancel()
            _, others = await asyncio.wait(others, timeout=0.5)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        return asyncio.run(run())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def judge(name, strangers, result):
    """Good clients hardly notice, and memory is bounded."""
    asked, fine, before, during, growth = result
    report.say(f"strangers, {name}: {fine} of {asked} good requests answered with 200, p99 {before:.0f} -> {during:.0f} ms, memory +{growth:.0f} MiB; "
               + ", ".join(f"{count} {kind}" for kind, count in strangers.done.items()))
    assert strangers.done, "nobody attacked"
    assert fine >= 0.999 * asked, f"{asked - fine} of {asked} good requests failed"
    assert growth < 200, f"the process has grown by {growth:.0f} MiB"


def test_strangers_at_the_process_itself(world):
    """Idle, slow and reset connections, giant heads, deep JSON."""
    node = world.start_node(POSTERN_LOG_LEVEL="info", POSTERN_MAX_CONNECTIONS="12000")
    try:
        realm = world.realm("strangers")
        strangers = Strangers(realm, node.port)
        attacks = [strangers.idle(IDLE), strangers.slow(), strangers.giant_headers(), strangers.deep_json(), strangers.resets()]
        judge("directly", strangers, compare(Good(realm, node.port), attacks, [node]))
    finally:
        node.stop()


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")
def test_strangers_at_haproxy(world):
    """The same over TLS, connections that do not even begin TLS, and resets of HTTP/2 streams.

    The long form has the proxy's own limit, 20,000, where this system allows as many files: HAProxy counts two for a connection.
    """
    nodes = [world.start_node(POSTERN_LOG_LEVEL="info", POSTERN_TRUSTED_PROXIES="127.0.0.0/8") for _ in range(2)]
    allowed = (resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 200) // 2
    connections = min(2 * IDLE, allowed)
    idle = min(IDLE, connections * 4 // 5)
    proxy = HAProxy(*nodes, connections=connections)
    try:
        realm = world.realm("strangers")
        strangers, of_http_2 = Strangers(realm, proxy.tls, unverified()), Strangers(realm, proxy.tls, unverified("h2"))
        silent = Strangers(realm, proxy.tls)
        of_http_2.done = silent.done = strangers.done
        attacks = [
            silent.idle(idle - idle // 10), strangers.idle(idle // 10), strangers.slow(), strangers.giant_headers(), strangers.deep_json(), strangers.resets(),
            of_http_2.http_2_resets(),
        ]
        judge(f"through HAProxy with maxconn {connections}", strangers, compare(Good(realm, proxy.tls, unverified()), attacks, nodes))
    finally:
        proxy.close()
        for node in nodes:
            node.stop()
