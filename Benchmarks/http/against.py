"""scripts/bench against OTHER: see --help."""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from paths import REPOSITORY, say

FIGURES = (("requests per second", "rate"), ("server CPU, µs", "server_us"), ("PostgreSQL CPU, µs", "postgres_us"))


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench against",
        description="Measures this checkout and another one in turns of a few seconds, each with its own build, benchmark and database, "
                    "and prints the medians of the ratios: what else the machine does falls on both.")
    parser.add_argument("other", type=Path, help="the other checkout; build it there first: scripts/bench http --scenario jwks --seconds 1")
    parser.add_argument("--scenario", default="refresh,refresh-jwt,introspection,otp", metavar="NAME,…", help="default: %(default)s")
    parser.add_argument("--connections", type=int, default=32, help="of the load generator (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="of each run (default %(default)s)")
    parser.add_argument("--turns", type=int, default=12, help="pairs of runs of each scenario (default %(default)s)")
    parser.add_argument("--sessions", type=int, default=100_000, help="live refresh families (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="where everything goes as JSON as well")
    return parser.parse_args()


class Side:
    """A checkout whose benchmark is open."""

    def __init__(self, checkout, options):
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("side.py"), checkout, str(options.sessions)], cwd=checkout, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "POSTERN_BENCH_BIN": str(checkout / ".build" / "release")})
        self._ask({"seconds": options.seconds})

    def measure(self, scenario, connections):
        """The figures of one run."""
        return self._ask({"scenario": scenario, "connections": connections})

    def _ask(self, order):
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("one side ended: its message is above")
        return json.loads(answer)

    def close(self):
        """Takes it down."""
        self._process.stdin.close()
        self._process.wait(60)


def main():
    """Measures and prints."""
    options = arguments()
    sides = {"other": Side(options.other.resolve(), options), "this": Side(REPOSITORY, options)}
    runs = {name: {side: [] for side in sides} for name in options.scenario.split(",")}
    try:
        for turn in range(options.turns):
            say(f"turn {turn + 1} of {options.turns}")
            for scenario, both in runs.items():
                # The order changes, so that neither side always comes after the other.
                for side in sorted(sides, reverse=turn % 2 == 1):
                    both[side].append(sides[side].measure(scenario, options.connections))
            if options.json:
                Path(options.json).write_text(json.dumps(runs, indent=1), encoding="utf-8")
    finally:
        for side in sides.values():
            side.close()
    print(f"{'scenario':16}{'figure':22}{'other':>9}{'this':>9}{'this / other':>14}   quartiles of the pairs' ratios")
    for scenario, both in runs.items():
        for what, key in FIGURES:
            other, this = ([run[key] for run in both[side]] for side in ("other", "this"))
            ratios = [b / a for a, b in zip(other, this) if a]
            low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            print(f"{scenario:16}{what:22}{statistics.median(other):9.0f}{statistics.median(this):9.0f}{middle:14.3f}   {low:.3f} to {high:.3f}")


if __name__ == "__main__":
    main()
