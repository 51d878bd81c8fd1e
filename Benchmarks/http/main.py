"""scripts/bench http: see --help."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import paths
import process
import trips
from database import Database
from measure import Bench
from peer import Peer
from paths import BINARIES, REPOSITORY, say
from realm import Realm
from report import ratios, table
from scenarios import SCENARIOS
from server import Server


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench http", description="Measures every endpoint over HTTP beside its own statement under pgbench and the floors, in one run.")
    names = ", ".join(SCENARIOS)
    parser.add_argument("--scenario", default=",".join(SCENARIOS), metavar="NAME,…", help=f"which ones: {names} (default: all)")
    parser.add_argument("--seconds", type=float, default=5, help="of each run (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the medians of so many are shown (default %(default)s)")
    parser.add_argument("--connections", default="16,64", metavar="N,…", help="of the load generator (default %(default)s)")
    parser.add_argument("--pgbench", default="1,4,16,64", metavar="N,…", help="of pgbench; the fastest counts (default %(default)s)")
    parser.add_argument("--db-connections", type=int, default=16, help="of the server (default %(default)s)")
    parser.add_argument("--users", type=int, default=100_000, help="people in the realm (default %(default)s)")
    parser.add_argument("--sessions", type=int, default=500_000, help="live refresh families (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="where everything goes as JSON as well")
    parser.add_argument("--peer", action="store_true", help="Debian's glewlwyd on the same PostgreSQL beside it")
    parser.add_argument("--no-trips", action="store_true", help="leave out the count of round trips (some seconds per scenario)")
    parser.add_argument("--keep", action="store_true", help="leave the server's log and the generator's files behind")
    options = parser.parse_args()
    options.scenario = options.scenario.split(",")
    for name in options.scenario:
        if name not in SCENARIOS:
            parser.error(f"there is no scenario {name}: {names}")
    if options.users < 100_000:
        parser.error("a run of single-use codes wants 100000 users or more")
    options.connections, options.pgbench = ([int(n) for n in o.split(",")] for o in (options.connections, options.pgbench))
    return options


def meta(options):
    """What the figures were made with."""
    commit = subprocess.run(["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    model = next((l.split(":")[1].strip() for l in Path("/proc/cpuinfo").read_text().splitlines() if l.startswith("model name")), "")
    return {"commit": commit, "cpu": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "options": {k: v for k, v in vars(options).items() if k not in ("json", "keep")}}


def write(path, report):
    """What is known so far, so that a run that fails late has not been for nothing."""
    if path:
        Path(path).write_text(json.dumps(report, indent=1), encoding="utf-8")


def main():
    options = arguments()
    directory = Path(tempfile.mkdtemp(prefix="postern-bench-"))
    database = Database(options.users, options.sessions)
    server = peer = None
    report = {"meta": meta(options), "scenarios": {}}
    try:
        database.open(BINARIES / "postern")
        # An autovacuum takes as long as a run of a scenario, and would make that run alone dearer.
        database.restart(autovacuum="off")
        server = Server(database, options.db_connections, directory)
        realm = Realm(database, directory, server.key_file)
        server.start()
        if options.peer:
            peer = Peer(database, directory).start()
        bench = Bench(database, server, realm, directory, options.seconds, options.rounds, options.connections, peer, options.pgbench)
        for name in options.scenario:
            scenario = SCENARIOS[name]
            result = report["scenarios"][name] = bench.measure(scenario, SCENARIOS.get(scenario.bearer))
            result["ratios"] = {what: round(value, 4) for what, value, _, _ in ratios(scenario, result)}
            print(table(scenario, result), flush=True)
            write(options.json, report)
        if not options.no_trips:
            say("counting round trips …")
            trips.prepare(database)
            print("\nround trips per request")
            for name in options.scenario:
                counted = report["scenarios"][name]["trips"] = trips.count(bench, SCENARIOS[name])
                print(f"  {name:20}{counted['per_request']:8.3f}   {', '.join(counted['statements'])}", flush=True)
        idle, (now, peak) = server.idle_mib, process.memory(server.pid)
        report["server"] = {"first_answer_ms": round(server.first_answer_ms), "idle_mib": idle, "now_mib": now, "peak_mib": peak}
        print(f"\nserver: first answer {server.first_answer_ms:.0f} ms after start (wanted <= 1000); memory idle {idle} MiB (<= 60), "
              f"now {now}, peak {peak} (<= 150)")
    finally:
        for one in (peer, server):
            if one:
                one.stop()
        database.remove()
        if options.keep:
            say(f"kept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    write(options.json, report)


if __name__ == "__main__":
    main()
