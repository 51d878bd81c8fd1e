"""Many trusted devices that wait for approvals, each on a connection of its own, driven by one event loop."""

import asyncio
import time

from . import wire
from .approvals import Device
from .jose import unb64url
from .postgres import literal

PATH = "/connect/approvals"


def devices(app, realm, count):
    """So many users with a trusted device each."""
    made = [Device(app, realm, realm.new_email(), added=False) for _ in range(count)]
    for one in made:
        one.recorded = False
    for first in range(0, count, 1000):
        _insert(app, realm, made[first:first + 1000])
    realm.world.cluster.sql("ANALYZE postern.device_key, postern.user_account, postern.user_identifier")
    return made


def _insert(app, realm, made):
    """As if the users had added them."""
    rows = ", ".join(
        f"({literal(one.email)}, {literal(one.id)}::uuid, '\\x{unb64url(one.key.thumbprint).hex()}'::bytea,"
        f" '\\x{b''.join(unb64url(one.key.public()[name]) for name in 'xy').hex()}'::bytea)" for one in made)
    realm.world.cluster.sql(
        "WITH d (email, id, thumbprint, point) AS (VALUES " + rows + "), u AS (INSERT INTO postern.user_account (realm_id, email) "
        f"SELECT r.id, d.email FROM d JOIN postern.realm AS r ON r.slug = {literal(realm.slug)} RETURNING *) "
        "INSERT INTO postern.device_key (realm_id, id, thumbprint, public_key, user_id, client, added_at) "
        "SELECT u.realm_id, d.id, d.thumbprint, d.point, u.id, k.id, now() FROM d JOIN u ON u.email = d.email "
        f"JOIN postern.client AS k ON k.realm_id = u.realm_id AND k.client_id = {literal(app.client_id)}")


class Waiter(asyncio.Protocol):
    """A device with its connection; it asks again as soon as it is answered with nothing, as a device does."""

    def __init__(self, crowd, device):
        self.crowd, self.device = crowd, device
        self.transport = None
        self.asked = 0
        self.found = asyncio.get_running_loop().create_future()
        self._received = b""
        self._proof = None

    def prepare(self, nonce):
        """Makes the first proof ahead."""
        self.device.nonce = nonce
        self._proof = self.device.proof("GET", PATH)

    def ask(self):
        """Begins to wait."""
        self.asked += 1
        proof, self._proof = self._proof or self.device.proof("GET", PATH), None
        self.transport.write(wire.request_bytes("GET", PATH + "?wait=25", [("Host", self.device.host), ("DPoP", proof)], None))

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def data_received(self, data):
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        if not end or len(body) < int(fields.get(b"content-length", b"0")):
            return
        self._received = b""
        self.crowd.answers.append((int(head.split(b" ")[1]), fields.get(b"retry-after")))
        if body != b'{"Approvals":[]}':
            self.found.set_result((time.monotonic(), head, body))
        elif self.crowd.goes_on:
            self.device.nonce = fields.get(b"dpop-nonce", b"").decode() or self.device.nonce
            self.ask()

    def connection_lost(self, exc):
        if not self.found.done():
            self.found.set_result((time.monotonic(), b"", repr(exc).encode()))


class Crowd:
    """The waiters of many devices at one node."""

    #: Connections that are being made at a time: the kernel's queue of the listener holds about a thousand.
    AT_ONCE = 256

    def __init__(self, node, made):
        self.node, self.devices = node, made
        self.waiters = []
        #: Status and Retry-After of everything that was answered.
        self.answers = []
        self.goes_on = True

    async def arrive(self):
        """All devices come, and ask."""
        first = self.devices[0]
        assert await asyncio.to_thread(first.inbox) == []
        self.waiters = [Waiter(self, device) for device in self.devices]
        for waiter in self.waiters:
            waiter.prepare(first.nonce)
        places = asyncio.Semaphore(self.AT_ONCE)

        async def come(waiter):
            async with places:
                await asyncio.get_running_loop().create_connection(lambda: waiter, "127.0.0.1", self.node.port)

        await asyncio.gather(*map(come, self.waiters))

    async def all_wait(self, timeout):
        """Waits until the node holds all of them, and none of them stands in line for its look any more."""
        began, most = time.monotonic(), 0
        while True:
            held = await asyncio.to_thread(self.node.metric, "postern_held_requests")
            # Between two looks no connection is lent for a moment.
            if held == len(self.waiters) and not [lent for _ in range(5) if (lent := await asyncio.to_thread(self.lent))]:
                return
            most = max(most, held)
            assert time.monotonic() < began + timeout, f"{most:.0f} of {len(self.waiters)} held, answers: {sorted(set(self.answers), key=repr)[:5]}"
            await asyncio.sleep(0.1)

    def lent(self):
        """Connections to the database that are in use."""
        return self.node.metric('postern_pool_connections{state="lent"}')

    def close(self):
        """All devices leave."""
        self.goes_on = False
        for waiter in self.waiters:
            if waiter.transport is not None:
                waiter.transport.abort()
