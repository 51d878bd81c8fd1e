"""One side of scripts/bench against: opens the benchmark of a checkout, then measures what it is told on stdin, a JSON line each.

    side.py CHECKOUT SESSIONS
"""

import inspect
import json
import shutil
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(sys.argv[1])
sys.path.insert(0, str(CHECKOUT / "Benchmarks" / "http"))

import main as benchmark  # noqa: E402  pylint: disable=wrong-import-position


def serve(bench, directory):
    """Answers `{"scenario": …, "connections": …}` with the figures of one run."""
    values = {}
    for line in sys.stdin:
        order = json.loads(line)
        scenario = benchmark.SCENARIOS[order["scenario"]]
        if scenario.reusable and scenario.name not in values:
            # A file of its own: a scenario goes on with the tokens that its last run left.
            values[scenario.name] = shutil.copy(scenario.material(bench.realm, bench.seconds), directory / f"{scenario.name}.left")
        run = bench._http(scenario, order["connections"], values.get(scenario.name))  # pylint: disable=protected-access
        print(json.dumps(run), flush=True)


def main():
    """Brings a database and a server up and takes them down."""
    directory = Path(tempfile.mkdtemp(prefix="postern-bench-"))
    database = benchmark.Database(100_000, int(sys.argv[2]))
    server = None
    try:
        database.open(benchmark.BINARIES / "postern")
        server = benchmark.Server(database, 16, directory)
        realm = benchmark.Realm(database, directory, server.key_file)
        server.start()
        seconds = json.loads(sys.stdin.readline())["seconds"]
        print("{}", flush=True)
        parts = {"database": database, "server": server, "realm": realm, "directory": directory, "seconds": seconds, "rounds": 1, "connections": []}
        if "static" in inspect.signature(benchmark.Bench).parameters:
            parts["static"] = None  # a checkout of before each scenario had a static route of its own
        serve(benchmark.Bench(**parts), directory)
    finally:
        if server:
            server.stop()
        database.remove()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
