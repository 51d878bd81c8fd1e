"""Runs BenchLibPQ against a throw-away PostgreSQL and prints medians: libpq.py [--rounds N] [--seconds S] [--json FILE] [FILE…].

Files of earlier runs (`--json`) count as further rounds; with `--rounds 0` only they do.
"""

import argparse
import json
import os
import statistics
import subprocess

from paths import BINARIES, say  # first: it makes the harness importable

from database import Database
from harness.postgres import clean_environment

SESSIONS = 100_000
COLUMNS = {"per_second": ".0f", "client_us": ".1f", "server_us": ".1f", "client_switches": ".2f", "server_switches": ".2f",
           "p50_us": ".0f", "p99_us": ".0f"}


def measure(rounds, seconds, strategies):
    """All cells, `rounds` times over."""
    database = Database(20_000, SESSIONS)
    database.has_floor = False
    try:
        database.open(BINARIES / "postern")
        database.restart(autovacuum="off")
        database.sql("CHECKPOINT")
        for number in range(rounds):
            command = [BINARIES / "BenchLibPQ", database.url("bench_app"), database.url("postgres"), database.pid, seconds,
                       SESSIONS, number * 1000, *strategies]
            process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True, env=clean_environment())
            for line in process.stdout:
                cell = json.loads(line)
                say(f"{cell['workload']:10} {cell['callers']:3} {cell['strategy']:26} {cell['per_second']:7.0f}/s "
                    f"{cell['client_us']:6.1f} µs {cell['failures']} failed")
                yield cell
            if process.wait() != 0:
                raise RuntimeError(f"BenchLibPQ ended with {process.returncode}")
    finally:
        database.remove()


def table(cells):
    """Medians of each cell as Markdown, one table for each statement and number of callers."""
    groups = {}
    for cell in cells:
        groups.setdefault((cell["workload"], cell["callers"]), {}).setdefault(cell["strategy"], []).append(cell)
    for (workload, callers), strategies in groups.items():
        print(f"\n{workload}, {callers} callers\n\n| strategy | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}")
        for strategy, rounds in strategies.items():
            medians = (format(statistics.median(cell[name] for cell in rounds), form) for name, form in COLUMNS.items())
            print(f"| {strategy} | {' | '.join(medians)} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--json")
    parser.add_argument("--strategy", action="append", default=[])
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    cells = []
    for path in arguments.files:
        with open(path, encoding="utf-8") as file:
            cells += json.load(file)
    if arguments.rounds:
        cells += measure(arguments.rounds, arguments.seconds, arguments.strategy)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(cells, file)
    table(cells)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    main()
