"""scripts/bench budget: see --help."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: Its run has the static route that the server's CPU is compared with.
STATIC = "discovery"
#: Of the load generator and of pgbench: either costs more per request when more wait for the same two cores.
CONNECTIONS = "16"
BUDGET = Path(__file__).with_name("budget.json")


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench budget",
        description="Prints PostgreSQL's CPU of each hot request as a ratio to the floor's statement of the same run, and the server's CPU as "
                    "a ratio to its static route, beside what Benchmarks/http/budget.json allows. Exits 1 beyond it.")
    parser.add_argument("--from", dest="file", metavar="FILE", help="a result of scripts/bench http --json in place of a run")
    parser.add_argument("--seconds", type=float, default=3, help="of each run (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="the medians of so many (default %(default)s)")
    return parser.parse_args()


def measured(options, scenarios):
    """The scenarios of a run, or of a file."""
    if options.file:
        return json.loads(Path(options.file).read_text(encoding="utf-8"))["scenarios"]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, Path(__file__).with_name("main.py"), "--scenario", ",".join(scenarios), "--no-trips",
                   "--connections", CONNECTIONS, "--pgbench", CONNECTIONS, "--seconds", str(options.seconds),
                   "--rounds", str(options.rounds), "--json", file.name]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return json.loads(Path(file.name).read_text(encoding="utf-8"))["scenarios"]


def floors(results):
    """{name of a floor: PostgreSQL's CPU}, of the whole run: a scenario without a floor of its own has another's."""
    return {name: runs[CONNECTIONS]["postgres_us"] for result in results.values() for name, runs in result["floor"].items()}


def main():
    options = arguments()
    budget = json.loads(BUDGET.read_text(encoding="utf-8"))
    results = measured(options, [*budget, STATIC])
    floor = floors(results)
    static = results[STATIC]["static"][CONNECTIONS]["server_us"] if STATIC in results else None
    beyond = []
    print(f"{'request':16}{'PostgreSQL / floor':>34}{'budget':>8}{'server / static route':>24}{'budget':>8}")
    for name, allowed in budget.items():
        if name not in results:
            print(f"{name:16}not measured")
            continue
        http = results[name]["http"][CONNECTIONS]
        ratios = {"postgres": http["postgres_us"] / floor[allowed["floor"]],
                  "server": http["server_us"] / static if static else None}
        for what, ratio in ratios.items():
            if ratio is not None and ratio > allowed[what]:
                beyond.append(f"{name}: {what} {ratio:.2f} of {allowed[what]:.2f}")
        server = f"{ratios['server']:24.2f}{allowed['server']:8.2f}" if static else f"{'not measured':>24}"
        print(f"{name:16}{allowed['floor']:>26}{ratios['postgres']:8.2f}{allowed['postgres']:8.2f}{server}")
    if beyond:
        raise SystemExit("beyond the budget: " + "; ".join(beyond))


if __name__ == "__main__":
    main()
