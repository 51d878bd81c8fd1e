"""scripts/bench compare A.json B.json: what the second has of the first, as ratios."""

import json
import sys

from report import best


def _figures(result):
    _, http = best(result["http"])
    _, own = best(result["own"])
    yield "http per s", http["rate"]
    yield "server CPU", http["server_us"]
    if http["postgres_us"] > 20:
        yield "PostgreSQL CPU", http["postgres_us"]
    if result.get("half"):
        yield "p50, half of peak", result["half"]["p50"]
        yield "p99, half of peak", result["half"]["p99"]
    if http["wal_bytes"] > 20:
        yield "WAL bytes", http["wal_bytes"]
    if own:
        yield "own statement per s", own["rate"]
    for what, value in result.get("ratios", {}).items():
        yield what, value


def main():
    if len(sys.argv) != 3 or "--help" in sys.argv:
        sys.exit("scripts/bench compare A.json B.json: two results of scripts/bench http --json FILE")
    first, second = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
    for name, side in (("A", first), ("B", second)):
        print(f"{name}: {side['meta']['commit']} on {side['meta']['cpu']}, {side['meta']['cores']} cores")
    print(f"{'':18}{'':32}{'A':>12}{'B':>12}{'B / A':>8}")
    for scenario, result in first["scenarios"].items():
        if scenario not in second["scenarios"]:
            continue
        others = dict(_figures(second["scenarios"][scenario]))
        for what, value in _figures(result):
            if what in others and value:
                print(f"{scenario:18}{what:32}{value:12.2f}{others[what]:12.2f}{others[what] / value:8.2f}")
    for what in ("first_answer_ms", "idle_mib", "peak_mib"):
        a, b = first["server"][what], second["server"][what]
        print(f"{'server':18}{what:32}{a:12.1f}{b:12.1f}{b / a:8.2f}")


if __name__ == "__main__":
    main()
