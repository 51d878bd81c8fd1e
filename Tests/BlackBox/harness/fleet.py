"""Load from one thread: many clients on asyncio, each with a connection that is kept, or a new one for each request."""

import asyncio
import json
import threading
import time

from . import wire


class Client:
    """One client with at most one connection."""

    def __init__(self, port, source=None, keep=True, context=None):
        """`context`: of TLS."""
        self._port, self._source, self._keep, self._context = port, source, keep, context
        self._reader = self._writer = None
        #: When the present connection, or the last one, was made.
        self.opened = 0.0

    @classmethod
    def of(cls, node, keep=True):
        """A client of a server, or of a proxy before servers."""
        return cls(node.port, keep=keep, context=node.context)

    @property
    def port(self):
        """Where it connects to."""
        return self._port

    async def ask(self, request, timeout=20.0):
        """Sends the bytes of one request; returns (status, header fields with lower-case names, body)."""
        return await asyncio.wait_for(self._ask(request), timeout)

    async def _ask(self, request):
        if self._writer is None:
            local = (self._source, 0) if self._source else None
            self.opened = time.monotonic()
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=local, ssl=self._context)
        try:
            self._writer.write(request)
            head = (await self._reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            fields = {}
            for line in head[1:]:
                name, _, value = line.partition(b":")
                fields[name.lower().decode("latin-1")] = value.strip().decode("latin-1")
            body = await self._reader.readexactly(int(fields.get("content-length", "0")))
        except BaseException:
            self.close()
            raise
        if not self._keep or fields.get("connection") == "close":
            self.close()
        return int(head[0].split()[1]), fields, body

    def close(self):
        """Drops the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


def post(host, path, parameters, **headers):
    """The bytes of a form."""
    fields = {"Host": host, "Content-Type": wire.FORM, **headers}
    return wire.request_bytes("POST", path, fields, wire.form_body(parameters))


def post_json(host, path, document):
    """The bytes of a JSON request."""
    fields = {"Host": host, "Content-Type": "application/json"}
    return wire.request_bytes("POST", path, fields, json.dumps(document).encode())


def get(host, path, **headers):
    """The bytes of a GET."""
    return wire.request_bytes("GET", path, {"Host": host, **headers})


class Fleet:
    """Runs coroutines `work(fleet)` on a loop in a thread of its own, until `stop`, and keeps what they saw."""

    #: The JSON that says that a fault is ours.
    UNAVAILABLE = {"error": "temporarily_unavailable"}

    def __init__(self, history=None):
        """`history`: what is told of every request and its answer."""
        self.history = history
        self._absences = {}
        self.violations = []
        self.counts = {}
        self.slowest = 0.0
        self.stopped = False
        #: The longest time without a success of each kind of work since `forget_gaps`.
        self.gaps = {}
        self._last_success = {}
        self._loop = asyncio.new_event_loop()
        self._tasks = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, *work):
        """Begins."""
        self._thread.start()
        for one in work:
            self._tasks.append(asyncio.run_coroutine_threadsafe(one(self), self._loop))
        return self

    def stop(self, timeout=40):
        """Lets every worker finish its request; a worker that failed raises here."""
        self.stopped = True
        try:
            for task in self._tasks:
                task.result(timeout)
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def violate(self, text):
        """Notes what must not be."""
        if len(self.violations) < 1000:
            self.violations.append(f"{time.monotonic():.2f} {text}")

    def successes(self, name, moment):
        """When the first success of a kind of work that was asked for after a moment was answered, or None."""
        began, ended = self._last_success.get(name, (0, 0))
        return ended if began >= moment else None

    def absent(self, port):
        """The process at a port is going to be killed or stopped: from now on connections to it may end."""
        self._absences[port] = float("inf")

    def present(self, port):
        """It runs again."""
        self._absences[port] = time.monotonic()

    def _was_absent(self, port, since):
        return self._absences.get(port, 0.0) >= since

    def forget_gaps(self):
        """Measures anew."""
        self.gaps = {}

    def _says_unavailable(self, body):
        try:
            return json.loads(body) == self.UNAVAILABLE
        except ValueError:  # a proxy's own
            return False

    async def ask(self, name, client, request, expected=(200,)):
        """One request; None when the answer is a proper 503, or the process was killed. Everything else but `expected` is a violation."""
        began = time.monotonic()
        try:
            status, fields, body = await client.ask(request)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as problem:
            if self.history:
                self.history.add(name, client.port, began, request, repr(problem), b"")
            if not self._was_absent(client.port, min(began, client.opened)):
                self.violate(f"{name}: {problem!r}")
            await asyncio.sleep(0.05)
            return None
        ended = time.monotonic()
        if self.history:
            self.history.add(name, client.port, began, request, status, body)
        self.slowest = max(self.slowest, ended - began)
        key = (name, status)
        self.counts[key] = self.counts.get(key, 0) + 1
        if status == 503:
            if not fields.get("retry-after", "").isdigit() or not self._says_unavailable(body):
                self.violate(f"{name}: {status} {fields} {body[:200]!r}")
            await asyncio.sleep(0.02)
            return None
        if status not in expected:
            self.violate(f"{name}: {status} {body[:200]!r}")
            await asyncio.sleep(0.05)
        if name in self._last_success:
            self.gaps[name] = max(self.gaps.get(name, 0.0), ended - self._last_success[name][1])
        self._last_success[name] = (began, ended)
        return status, fields, body

    def total(self, status):
        """How many answers had a status."""
        return sum(count for (_, seen), count in self.counts.items() if seen == status)
