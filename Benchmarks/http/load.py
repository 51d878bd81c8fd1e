"""Runs the load generator and pgbench once."""

import json
import os
import re
import subprocess

from harness.postgres import clean_environment

from database import Meter
from paths import LOADGEN, POSTGRES_BIN


#: Before a paced generator, which is nearly idle: else its own waiting for a core would count as the server's lateness.
_AHEAD = ["nice", "-n", "-10"] if os.geteuid() == 0 else []


class BadRun(Exception):
    """Answers that were not good, or a statement that did not do its work: no figure of such a run means anything."""


class UsedUp(BadRun):
    """A statement ran more often than it had effects: perhaps what each run uses up was not enough."""


def http(database, server_pid, port, directory, request, values, connections, seconds, *options, warmup=0.5):
    """One run over HTTP: the generator's own report, with what it cost server and PostgreSQL per request."""
    template = directory / "request.http"
    template.write_bytes(request.encode())
    command = [*(_AHEAD if "--rate" in options else []), LOADGEN, "--port", port, "--template", template, "--values", values, "--connections", connections,
               "--seconds", seconds, "--warmup", warmup, *options]
    with Meter(database, server_pid) as meter:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode != 0:
        raise BadRun(f"loadgen ended with {done.returncode}: {done.stderr.strip()}")
    report = json.loads(done.stdout)
    if report["errors"]:
        raise BadRun(f"{report['errors']} of {report['answers']} answers: {report['first_error']}")
    if report["exhausted"]:
        raise BadRun(f"the {report['answers']} prepared values were used up before the time was")
    report["generator_us"] = report.pop("cpu_us")
    report.update(meter.per(report["answers"]))
    return report


def pgbench(database, script, name, role, connections, seconds, check=None, **variables):
    """One run of a statement: transactions per second, latency, and PostgreSQL's CPU and WAL per transaction.

    `check` is a query that counts the effect: it must grow by the number of transactions."""
    command = [str(POSTGRES_BIN / "pgbench"), "-h", database.root, "-U", role, "-M", "prepared", "-n", "-c", connections, "-j",
               min(2, connections), "-T", max(1, round(seconds)), "-f", script]
    for key, value in {"i": 0, "clients": connections, "users": database.users, "sessions": database.sessions, **variables}.items():
        command += ["-D", f"{key}={value}"]
    before = database.number(check, name) if check else 0
    with Meter(database) as meter:
        done = subprocess.run(
            list(map(str, [*command, name])), capture_output=True, text=True, timeout=seconds + 60, env=clean_environment())
    if done.returncode != 0:
        raise BadRun(f"{script.name}: {done.stderr.strip()[-1000:]}")
    transactions = int(re.search(r"actually processed: (\d+)", done.stdout).group(1))
    if check and (effect := database.number(check, name) - before) != transactions:
        raise (UsedUp if effect < transactions else BadRun)(f"{script.name}: {transactions} transactions had {effect:.0f} effects")
    rate = float(re.search(r"^tps = ([0-9.]+)", done.stdout, re.M).group(1))
    cost = meter.per(transactions)
    return {"rate": rate, "requests": transactions, "postgres_us": cost["postgres_us"], "wal_bytes": cost["wal_bytes"]}
