"""scripts/bench webhooks: see --help."""

import argparse
import asyncio
import contextlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import main as benchmark
from paths import say


class Receiver(asyncio.Protocol):
    """Takes every event (RFC 8935 §2.2), with as little work as Python allows: it shares the machine."""

    received = 0

    def __init__(self):
        self._transport, self._pending = None, b""

    def connection_made(self, transport):
        """Keeps the connection."""
        self._transport = transport

    def data_received(self, data):
        """Answers each request that is whole."""
        self._pending += data
        while (end := self._pending.find(b"\r\n\r\n")) >= 0:
            length = int(re.search(rb"(?i)\ncontent-length: *(\d+)", self._pending[:end + 1])[1])
            if len(self._pending) < end + 4 + length:
                return
            self._pending = self._pending[end + 4 + length:]
            Receiver.received += 1
            self._transport.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    @classmethod
    def start(cls):
        """Serves in a thread that ends with the program; returns the port."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(loop.create_server(cls, "127.0.0.1", 0))
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return server.sockets[0].getsockname()[1]


@contextlib.contextmanager
def stranger(port, rate, quota):
    """A process that is no part of Postern posts `rate` events a second, each for `quota` seconds of CPU."""
    command = [sys.executable, __file__, "--feed", f"{port},{rate},{quota}"]
    with subprocess.Popen(list(map(str, command))) as process:
        try:
            yield
        finally:
            process.kill()


def feed(port, rate, quota):
    """What the stranger does: at random moments, as events come."""
    body = b"x" * 900  # as long as a token
    request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        due = time.monotonic()
        while True:
            due += random.expovariate(rate)
            time.sleep(max(due - time.monotonic(), 0))
            began = time.thread_time()
            connection.sendall(request)
            connection.recv(4096)
            while time.thread_time() - began < quota:
                pass


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench webhooks",
        description="Redeems codes at a fixed rate without a webhook, with one whose receiver takes every event, and "
                    "without again, in turns, and prints medians. What the two columns without one differ by is the "
                    "noise of the machine. Two controls without a webhook say what is not Postern's: another process "
                    "feeds the receiver as many events, once with little CPU of its own, and once with as much as the "
                    "delivery of one took of server and PostgreSQL in that turn.")
    parser.add_argument("--rate", type=int, default=400, help="redemptions per second (default %(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="of the load generator (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (default %(default)s)")
    parser.add_argument("--turns", type=int, default=8, help="of five runs (default %(default)s)")
    parser.add_argument("--feed", help=argparse.SUPPRESS)
    return parser.parse_args()


def cost(run):
    """CPU of server and PostgreSQL for a redemption and what follows from it, in seconds."""
    return (run["server_us"] + run["postgres_us"]) / 1e6


def turn(redeem, switch, port, options):
    """One run of each kind."""
    found = {"without": redeem()}
    switch(True)
    before = Receiver.received
    found["with"] = redeem()
    # Without the warm-up the run has fewer redemptions than events; the rate is what counts.
    switch(False)
    events = (Receiver.received - before) / (options.seconds + 0.5)
    found["without, again"] = redeem()
    with stranger(port, events, 0):
        found["receiver only"] = redeem()
    more = cost(found["with"]) - (cost(found["without"]) + cost(found["without, again"])) / 2
    with stranger(port, events, max(more, 0) * options.rate / events):
        found["equal load"] = redeem()
    return found, events


def main():
    """Measures and prints."""
    options = arguments()
    if options.feed:
        port, rate, quota = options.feed.split(",")
        feed(int(port), float(rate), float(quota))
    directory = Path(tempfile.mkdtemp(prefix="postern-bench-"))
    database = benchmark.Database(100_000, 1000)
    server = None
    port = Receiver.start()
    try:
        database.open(benchmark.BINARIES / "postern")
        server = benchmark.Server(database, 16, directory)
        realm = benchmark.Realm(database, directory, server.key_file)
        server.start()
        bench = benchmark.Bench(database, server, realm, directory, options.seconds, 1, [options.connections])
        ((slug,),) = database.sql("SELECT slug FROM postern.realm LIMIT 1")
        database.sql(f"SELECT admin.put_webhook('{slug}', 'bench', 'http://127.0.0.1:{port}/', enabled => false)")

        def redeem():
            return bench._http(  # pylint: disable=protected-access
                benchmark.SCENARIOS["otp"], options.connections, None, "--rate", options.rate)

        def switch(enabled):
            database.sql(f"SELECT admin.put_webhook('{slug}', 'bench', enabled => {str(enabled).lower()})")

        runs = {}
        for number in range(options.turns):
            found, events = turn(redeem, switch, port, options)
            for name, run in found.items():
                runs.setdefault(name, []).append(run)
            say(f"turn {number + 1}/{options.turns}: {events:.0f} events a second")
        for name, found in runs.items():
            print(f"{name:16}" + "   ".join(f"{q} {statistics.median(run[q] for run in found):7.0f}" for q in (
                "p50", "p95", "p99", "server_us", "postgres_us")) + " µs")
    finally:
        if server:
            server.stop()
        database.remove()


if __name__ == "__main__":
    sys.exit(main())
