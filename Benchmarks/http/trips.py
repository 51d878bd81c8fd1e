"""Counts statements per request with pg_stat_statements, in a pass of its own: loading it would cost the measured runs."""

import re

import load

_CALLS = r"""
SELECT s.calls, regexp_replace(s.query, '\s+', ' ', 'g') FROM pg_stat_statements AS s JOIN pg_roles AS r ON r.oid = s.userid
 WHERE r.rolname = 'bench_app' AND s.toplevel ORDER BY s.calls DESC"""
#: What the server does on its own account, whether or not requests come.
_OWN_ACCOUNT = re.compile(r"config_stamp|take_messages|take_due_logout_tokens|message_|end_waits|directory\(|realm_config|take_undecided|decide_|add_link|report_wrong_codes|outbox|sweep|server_probe|LISTEN", re.I)


def prepare(database):
    """Restarts PostgreSQL with the extension; the server reconnects."""
    database.restart(shared_preload_libraries="pg_stat_statements")
    database.sql("CREATE EXTENSION pg_stat_statements")


def count(bench, scenario, connections=16):
    """{"per_request": round trips a request makes, "statements": ["refresh 1.00", …]}."""
    values = scenario.material(bench.realm, 1)
    bench.database.settle()
    options = [*scenario.options, *(["--keep", values] if "--rotate" in scenario.options else [])]

    def proofs():
        return ["--proofs", scenario.proofs(bench.realm, values, 1)] if scenario.proofs else []

    arguments = (bench.database, bench.server.pid, bench.server.port, bench.directory, scenario.request(bench.realm), values, connections)
    load.http(*arguments, 0.2, *options, *proofs(), warmup=0)  # the pool is filled and every statement prepared
    if scenario.reusable is False:
        values = scenario.material(bench.realm, 1)
        arguments = (*arguments[:5], values, connections)
    bench.database.sql("SELECT pg_stat_statements_reset()")
    answers = load.http(*arguments, 1, *options, *proofs(), warmup=0)["answers"]
    rows = [(int(calls), text) for calls, text in bench.database.sql(_CALLS) if not _OWN_ACCOUNT.search(text)]
    return {"per_request": round(sum(calls for calls, _ in rows) / answers, 4),
            "statements": [f"{_name(text)} {calls / answers:.3f}" for calls, text in rows if calls / answers >= 0.0005]}


def _name(text):
    found = re.search(r"postern\.(\w+)\(", text)
    return found.group(1) if found else " ".join(text.split())[:40]
