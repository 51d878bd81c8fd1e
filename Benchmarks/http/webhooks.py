"""scripts/bench webhooks: see --help."""

import argparse
import statistics
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import main as benchmark
from paths import say


class Receiver(BaseHTTPRequestHandler):
    """Takes every event."""

    protocol_version = "HTTP/1.1"
    received = 0

    def do_POST(self):  # pylint: disable=invalid-name
        """RFC 8935 §2.2."""
        self.rfile.read(int(self.headers["Content-Length"]))
        Receiver.received += 1
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        """Says nothing."""


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
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    try:
        database.open(benchmark.BINARIES / "postern")
        server = benchmark.Server(database, 16, directory)
        realm = benchmark.Realm(database, directory, server.key_file)
        server.start()
        bench = benchmark.Bench(database, server, realm, directory, options.seconds, 1, [options.connections])
        ((slug,),) = database.sql("SELECT slug FROM postern.realm LIMIT 1")
        database.sql(f"SELECT admin.put_webhook('{slug}', 'bench', 'http://127.0.0.1:{receiver.server_port}/', enabled => false)")
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
        receiver.shutdown()


if __name__ == "__main__":
    sys.exit(main())
