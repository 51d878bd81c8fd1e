"""scripts/bench webhooks: see --help."""

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
import threading
from pathlib import Path

import main as benchmark
from paths import say


class Receiver(asyncio.Protocol):
    """Takes every event (RFC 8935 §2.2), with as little work as Python allows: it shares the machine with what is measured."""

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


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench webhooks",
        description="Redeems codes at a fixed rate without a webhook, with one whose receiver takes every event, and without again, in turns, "
                    "and prints medians of the latencies. What the two columns without one differ by is the noise of the machine.")
    parser.add_argument("--rate", type=int, default=400, help="redemptions per second (default %(default)s)")
    parser.add_argument("--connections", type=int, default=32, help="of the load generator (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (default %(default)s)")
    parser.add_argument("--turns", type=int, default=8, help="of three runs (default %(default)s)")
    return parser.parse_args()


def main():
    """Measures and prints."""
    options = arguments()
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
        runs = {"without": [], "with": [], "without, again": []}
        for turn in range(options.turns):
            for name, found in runs.items():
                database.sql(f"SELECT admin.put_webhook('{slug}', 'bench', enabled => {str(name == 'with').lower()})")
                found.append(bench._http(  # pylint: disable=protected-access
                    benchmark.SCENARIOS["otp"], options.connections, None, "--rate", options.rate))
            say(f"turn {turn + 1}/{options.turns}: {Receiver.received} events arrived")
        for name, found in runs.items():
            print(f"{name:16}" + "   ".join(f"{q} {statistics.median(run[q] for run in found):7.0f} µs" for q in ("p50", "p95", "p99")))
    finally:
        if server:
            server.stop()
        database.remove()


if __name__ == "__main__":
    sys.exit(main())
