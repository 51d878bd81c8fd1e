"""What a step of an approval or of a proof reads does not grow with the transactions that are remembered."""

import pytest

from harness import report
from harness.approvals import Device, ask, poll, switch_on
from harness.possession import coded, furnished, possession
from harness.postgres import literal
from harness.settings import FULL
from harness.world import World

FEW, MANY = 10_000, 1_000_000 if FULL else 50_000
EVENTS = 100_000 if FULL else 2_000
STEPS = 20
#: Ended ones of many users, clients' hints, phones and links.
FILL = """
INSERT INTO postern.device_request (realm_id, kind, state, created_at, expires_at, ended_at, client, user_id, source, event, event_id, hint, challenge,
                                 match_number, resolved_at, is_shown, auth_id, phone, link_hash)
SELECT {realm}, CASE n % 2 WHEN 0 THEN 'approval' ELSE 'mobile' END, (CASE n % 3 WHEN 0 THEN 'passed' ELSE 'failed' END)::postern.device_request_state, t, t + interval '5 minutes', t,
       {client}, CASE n % 2 WHEN 0 THEN gen_random_uuid() END, '192.0.2.1', 'LOGIN', CASE n % 2 WHEN 0 THEN n + {first} END,
       CASE n % 2 WHEN 0 THEN 'user' || n || '@example.com' END, CASE n % 2 WHEN 0 THEN sha256(n::text::bytea) END, CASE n % 2 WHEN 0 THEN '42' END,
       CASE n % 2 WHEN 0 THEN t END, CASE n % 2 WHEN 0 THEN true END, CASE n % 2 WHEN 1 THEN gen_random_uuid() END,
       CASE n % 2 WHEN 1 THEN '+43664' || (1000000 + n) END, CASE n % 2 WHEN 1 THEN sha256((n + {first})::text::bytea) END
  FROM generate_series(1, {count}) AS n, LATERAL (SELECT now() - make_interval(secs => n % 80000) AS t) AS at;
"""


@pytest.fixture(scope="module", name="counted")
def _counted():
    """A world that counts what each statement reads."""
    made = World("volume", postgres="shared_preload_libraries = 'pg_stat_statements'\n")
    try:
        made.open().cluster.sql("CREATE EXTENSION pg_stat_statements")
        yield made
    finally:
        made.close()


def keys(world, realm):
    """Of the realm and of a client of it, as SQL."""
    return tuple(literal(key) for key in world.cluster.sql(
        f"SELECT r.id, c.id FROM postern.realm AS r JOIN postern.client AS c ON c.realm_id = r.id WHERE r.slug = {literal(realm.slug)} LIMIT 1")[0])


def pages(cluster, steps):
    """Pages of tables and indexes that a call of each function read, and its milliseconds, while `steps` ran."""
    for _ in range(2):  # the first time every connection plans anew
        cluster.sql("SELECT pg_stat_statements_reset()")
        steps()
    rows = cluster.sql(
        "SELECT substring(query FROM 'postern\\.([a-z_]+)\\('), sum(shared_blks_hit + shared_blks_read) / sum(calls), sum(total_exec_time) / sum(calls) "
        "FROM pg_stat_statements WHERE query ~ 'postern\\.[a-z_]+\\(' GROUP BY 1 HAVING sum(calls) >= 20")
    return {name: (float(read), float(spent)) for name, read, spent in rows}


def test_steps_read_no_more_pages_among_many_transactions(counted):
    """Asking, polling, the inbox, opening, checking, and how a proof stands; a higher index is one page more.

    Another user each time: what a user has asked for within ten minutes is read, and does not belong to the volume.
    """
    realm = furnished(possession(counted.realm("volume")))
    switch_on(realm, "app", public_clients=True)
    app = realm.app()

    def steps(email, device):
        for _ in range(STEPS):
            asked = ask(app, email).json()
            poll(app, asked)
            device.look(0)
            started, phone, _, _ = coded(realm)
            assert phone.ask("check", otp="x").status == 400
            realm.srv.status(started)

    def among(first, count):
        """What calls of a new user read after `count` more transactions."""
        counted.cluster.sql(FILL.format(realm=key, client=client, first=first, count=count))
        counted.cluster.sql("VACUUM ANALYZE postern.device_request")
        email = realm.user()
        device = Device(app, realm, email)
        return pages(counted.cluster, lambda: steps(email, device))

    key, client = keys(counted, realm)
    try:
        few = among(0, FEW)
        many = among(1_000_000_000, MANY)
    finally:
        realm.phones.close()
    wanted = {"ask_approval", "approval_inbox", "redeem_authentication", "start_possession", "open_possession", "send_possession", "check_possession",
              "possession_status"}
    assert wanted <= set(few), sorted(few)
    report.say(f"transactions: pages (and ms) of a call among {FEW} and {MANY}: " + ", ".join(
        f"{name} {few[name][0]:.0f} ({few[name][1]:.2f}) and {many[name][0]:.0f} ({many[name][1]:.2f})" for name in sorted(wanted)))
    # A call writes up to three rows, and each of the table's nine indexes may be a level higher. To scan it would be thousands of pages.
    assert {name: (few[name], many[name]) for name in wanted if many[name][0] > 1.2 * few[name][0] + 27} == {}


def test_numbers_of_many_events_are_distinct_and_random(counted):
    """31 bits, in no order."""
    realm = counted.realm("numbers")
    key, client = keys(counted, realm)
    numbers = [int(row[0]) for start in range(0, EVENTS, 2_000) for row in counted.cluster.sql(f"""
        SELECT a.event_id FROM generate_series({start}, {start + 1999}) AS n, LATERAL postern.ask_approval(
            {key}, NULL, NULL, gen_random_uuid(), {client}, 'user' || n || '@example.com', 'LOGIN', NULL, NULL,
            sha256(n::text::bytea), true, false, NULL, '192.0.2.1', 300, NULL) AS a""")]
    assert len(set(numbers)) == EVENTS and 0 < min(numbers) and max(numbers) < 2**31
    rising = sum(one < next_one for one, next_one in zip(numbers, numbers[1:]))
    assert 0.4 * EVENTS < rising < 0.6 * EVENTS
    assert all(0.4 * EVENTS < sum(number >> bit & 1 for number in numbers) < 0.6 * EVENTS for bit in range(31))
