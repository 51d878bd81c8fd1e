"""scripts/bench against OTHER: see --help."""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from paths import REPOSITORY, say
from report import best


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench against",
        description="Measures this checkout and another one in turns, each with its own build, benchmark and database, and prints ratios.")
    parser.add_argument("other", type=Path, help="the other checkout; build it there first: scripts/bench http --scenario jwks --seconds 1")
    parser.add_argument("--scenario", default="refresh,refresh-jwt,introspection,otp", metavar="NAME,…", help="default: %(default)s")
    parser.add_argument("--seconds", type=float, default=5, help="of each run (default %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="each side is measured so often (default %(default)s)")
    parser.add_argument("--sessions", type=int, default=200_000, help="live refresh families (default %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="where everything goes as JSON as well")
    return parser.parse_args()


def measure(checkout, options):
    """One turn of one side: what its own `scripts/bench http` writes."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            ["python3", "Benchmarks/http/main.py", "--scenario", options.scenario, "--seconds", str(options.seconds), "--rounds", "1",
             "--sessions", str(options.sessions), "--no-trips", "--json", file.name],
            cwd=checkout, check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "POSTERN_BENCH_BIN": str(checkout / ".build" / "release")})
        return json.loads(Path(file.name).read_text(encoding="utf-8"))


def main():
    options = arguments()
    sides = {"this": REPOSITORY, "other": options.other.resolve()}
    turns = {side: [] for side in sides}
    for turn in range(options.turns):
        # The order changes, so that neither side always comes after the other.
        for side in sorted(sides, reverse=turn % 2 == 1):
            say(f"turn {turn + 1} of {options.turns}: {side}")
            turns[side].append(measure(sides[side], options))
            if options.json:
                Path(options.json).write_text(json.dumps(turns, indent=1), encoding="utf-8")
    print(f"{'scenario':20}{'figure':24}{'other':>12}{'this':>12}{'this / other':>14}   each turn")
    for scenario in options.scenario.split(","):
        for what, key in (("requests per second", "rate"), ("server CPU, µs", "server_us"), ("PostgreSQL CPU, µs", "postgres_us")):
            figures = {side: [best(turn["scenarios"][scenario]["http"])[1][key] for turn in turns[side]] for side in sides}
            other, this = (statistics.median(figures[side]) for side in ("other", "this"))
            each = " ".join(f"{b / a:.2f}" for a, b in zip(figures["other"], figures["this"]) if a)
            print(f"{scenario:20}{what:24}{other:12.0f}{this:12.0f}{this / other if other else 0:14.3f}   {each}")


if __name__ == "__main__":
    main()
