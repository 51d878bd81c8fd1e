"""Tables and ratios."""


def best(runs):
    """The fastest of {connections: run}, with its number of connections."""
    if not runs:
        return None, None
    connections = max(runs, key=lambda c: runs[c]["rate"])
    return connections, runs[connections]


def ratios(scenario, result):
    """[(what, value, wanted, whether more is better)] of a scenario."""
    _, http = best(result["http"])
    _, own = best(result["own"])
    _, static = best(result["static"])
    found = []
    connections, _ = best(result["bearer"])
    if connections:
        beside = result["beside_bearer"][connections]
        found.append((f"http / {scenario.bearer}", beside["rate"], scenario.bearer_target, True))
        found.append((f"PostgreSQL CPU / {scenario.bearer}", beside["postgres_us"], 1.10 if scenario.name == "refresh-dpop" else None, False))
    if own:
        found.append(("http / own statement", http["rate"] / own["rate"], scenario.http_target, True))
        for name, runs in result["floor"].items():
            wanted = scenario.floor_target if name == next(iter(scenario.floors)) else None
            found.append((f"own statement / {name}", own["rate"] / best(runs)[1]["rate"], wanted, True))
    if static:
        found.append(("http / static route", http["rate"] / static["rate"], scenario.http_target, True))
    if http["postgres_us"] > 20:
        wanted = 0.40 if scenario.name == "refresh" else None
        found.append(("server CPU / PostgreSQL CPU", http["server_us"] / http["postgres_us"], wanted, False))
    if result.get("half"):
        found.append(("p99 / p50 at half of peak", result["half"]["p99"] / max(result["half"]["p50"], 1), 5, False))
    if result.get("peer"):
        found.append(("http / glewlwyd", http["rate"] / best(result["peer"])[1]["rate"], 1 if scenario.name == "discovery" else 20, True))
    return found


def table(scenario, result):
    """The scenario as text."""
    lines = [f"\n{scenario.name}",
             f"  {'':22}{'conn':>5}{'per s':>9}{'p50':>8}{'p95':>8}{'p99':>8} µs |{'server':>8}{'PgSQL':>8}{'gen':>7} CPU µs |{'WAL B':>7}"]

    def line(name, connections, run):
        latencies = "".join(f"{run[q]:8.0f}" if q in run else f"{'':8}" for q in ("p50", "p95", "p99"))
        server, generator = (f"{run[k]:{w}.1f}" if k in run else " " * w for k, w in (("server_us", 8), ("generator_us", 7)))
        lines.append(f"  {name:22}{connections:>5}{run['rate']:9.0f}{latencies}    |{server}{run['postgres_us']:8.1f}{generator}        |{run['wal_bytes']:7.0f}")

    for connections, run in result["http"].items():
        line("http", connections, run)
    if result.get("half"):
        line("http, half of peak", max(result["http"], key=int), result["half"])
    for name, runs in [(scenario.bearer, result["bearer"]), ("own statement", result["own"]), *result["floor"].items(), ("static route", result["static"]), ("glewlwyd", result["peer"])]:
        for connections, run in runs.items():
            line(name, connections, run)
    for connections, beside in result["beside_bearer"].items():
        of_rounds = beside["rate_of_rounds"]
        lines.append(f"  of {len(of_rounds)} rounds at {connections}: rates {of_rounds[0]:.2f} to {of_rounds[-1]:.2f}, median {beside['rate']:.3f}; "
                     f"PostgreSQL's CPU {beside['postgres_us_of_rounds'][0]:.2f} to {beside['postgres_us_of_rounds'][-1]:.2f}, median {beside['postgres_us']:.3f}")
    for what, value, wanted, more in ratios(scenario, result):
        verdict = "" if wanted is None else f"  wanted {'>=' if more else '<='} {wanted}: " + (
            "yes" if (value >= wanted) == more or value == wanted else "NO")
        lines.append(f"  {what:30}{value:7.2f}{verdict}")
    return "\n".join(lines)
