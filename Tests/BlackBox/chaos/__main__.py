"""`python3 -m chaos`."""

import argparse
import functools
import json
import signal
import sys
from pathlib import Path

from .failover import FailoverRun, Failovers
from .faults import Faults
from .run import Run, write
from .upgrades import UpgradeRun


def main():
    """Runs what was asked for; 0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=(
        "Two servers under load (refreshes, sign-ins by code, link, SMS and passkey, sign-outs, introspection) while faults happen to PostgreSQL, "
        "the network before it, the servers, the disk, the clocks, mail and SMS. After each round: nothing acknowledged is lost, no proof was good "
        "twice, no session was ended; at the end, promised mails arrive and pg_amcheck finds nothing. The history of every request is left in "
        ".test-output/blackbox/chaos-SEED.jsonl."))
    parser.add_argument("--rounds", type=int, default=20, metavar="N", help="faults in a row (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="decides which faults come in which order (default 1)")
    parser.add_argument("--seconds", type=float, metavar="N", help="begin no round after this time")
    parser.add_argument("--only", default="", metavar="FAULT,…", help=f"of: {', '.join(Faults.names())}")
    parser.add_argument("--failover", action="store_true", help=(
        "PostgreSQL is a primary and a synchronous standby under Patroni and etcd, with the configuration of deploy/patroni; the faults are "
        f"{', '.join(Failovers.names())}; the report has the longest time without a refresh for each of them"))
    parser.add_argument("--upgrade", type=Path, metavar="OLD_BINARY", help=(
        "no faults: two servers behind HAProxy (deploy/haproxy) are upgraded one after the other from an older release to POSTERN_BIN, back, and again, "
        "once this one's migrate has run under load; a round begins with the schema of the older release, and no request may fail. An older release "
        "that does not start on the new schema is upgraded once in each round"))
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report as JSON here, too")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    kind, faults = (FailoverRun, Failovers) if options.failover else (Run, Faults)
    if unknown := set(only) - set(faults.names()):
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    if options.upgrade:
        kind = functools.partial(UpgradeRun, options.upgrade)
    run = kind(options.rounds, options.seed, options.seconds, only, lambda line: print(line, flush=True))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: run.stop())
    report = run.run()
    print(json.dumps(report, indent=2))
    if options.report:
        write(report, options.report)
    return 1 if report["findings"] else 0


sys.exit(main())
