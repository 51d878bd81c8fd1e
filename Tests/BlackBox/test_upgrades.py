"""Two binaries side by side: this one on the schema that the next release leaves, and what `migrate` does under load."""

import json
import time

import pytest

from chaos.upgrades import UpgradeRun
from harness.fleet import Client, Fleet, post
from harness.haproxy import HAPROXY
from harness.node import run_postern
from harness.report import say
from harness.settings import OLD_BINARY, UPGRADES
from harness.world import World


def wait_for(condition, timeout=60):
    """Until it holds."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def upgraded():
    """A world of this file's own: its schema changes."""
    made = World("upgrades")
    try:
        yield made.open()
    finally:
        made.close()


def own_range(world):
    """Function set and oldest binary, as the schema has them."""
    return [int(number) for number in world.cluster.sql("SELECT function_set, oldest_binary FROM postern.schema_range")[0]]


def migrate(world, *arguments):
    """`postern migrate` of this binary."""
    return run_postern("migrate", *arguments, environment={"POSTERN_MIGRATE_DATABASE_URL": world.cluster.url("postgres")})


def next_release(world, number, oldest):
    """What `migrate` of the next release leaves: one more migration, one more column, other functions, the next set."""
    world.cluster.sql(f"""
        INSERT INTO postern.schema_migration (version, name, checksum) VALUES (9{number:03}, '9{number:03}_next.sql', '\\x00');
        ALTER TABLE postern.session ADD COLUMN next_{number} integer;
        UPDATE postern.schema_function SET checksum = '\\x00' WHERE name LIKE 'session/%';
        UPDATE postern.schema_range SET function_set = {number}, oldest_binary = {oldest};""", one_transaction=True)


def refreshing(world, realm, nodes, families):
    """A coroutine per family: refreshes it at the nodes in turn for as long as the fleet runs."""
    def one(token):
        async def work(fleet):
            presented, turn = token, 0
            clients = [Client(node.port) for node in nodes]
            while not fleet.stopped:
                turn += 1
                answer = await fleet.ask("refresh", clients[turn % len(clients)], post(realm.host, "/connect/token", {
                    "grant_type": "refresh_token", "client_id": realm.client("app"), "refresh_token": presented}))
                if answer is not None and answer[0] == 200:
                    presented = json.loads(answer[2])["refresh_token"]
        return work
    return [one(family["refresh_token"]) for family in families]


def test_an_older_binary_serves_starts_and_is_ready_on_the_next_schema(upgraded):
    """Under load: the schema moves on, a process of this binary is added, both serve, and no request fails."""
    realm = upgraded.realm()
    app = realm.app()
    families = [app.sign_in(realm.user()) for _ in range(4)]
    own, _ = own_range(upgraded)
    second = upgraded.start_node()
    fleet = Fleet().start(*refreshing(upgraded, realm, [upgraded.node, second], families))
    try:
        wait_for(lambda: fleet.total(200) > 20)
        next_release(upgraded, own + 1, own)
        third = upgraded.start_node()
        before = fleet.total(200)
        wait_for(lambda: fleet.total(200) > before + 40)
        assert [node.ops("/readyz").status for node in (upgraded.node, second, third)] == [200] * 3
        done = migrate(upgraded)
        assert done.returncode == 1 and "the database is newer than this binary" in done.stderr, done
        assert "only a newer binary may migrate" in done.stderr, done
        checked = migrate(upgraded, "--check")
        assert checked.returncode == 0 and "newer binary has migrated" in checked.stdout, checked
        planned = migrate(upgraded, "--plan")
        assert planned.returncode == 0 and "There is nothing to do" in planned.stdout, planned
        assert own_range(upgraded) == [own + 1, own]
        assert upgraded.cluster.value("SELECT count(*) FROM postern.schema_function WHERE checksum = '\\x00'") != "0"
    finally:
        fleet.stop()
    assert not fleet.violations, fleet.violations[:5]
    assert fleet.total(503) == 0, fleet.counts


def test_a_schema_that_has_closed_the_way_back_says_so(upgraded):
    """`/readyz` of running processes and the start of new ones name what to do; running processes serve on."""
    _, own = own_range(upgraded)
    realm = upgraded.realm()
    upgraded.cluster.sql(f"UPDATE postern.schema_range SET function_set = {own + 1}, oldest_binary = {own + 1}")
    wait_for(lambda: upgraded.node.ops("/readyz").status == 503)
    reason = upgraded.node.ops("/readyz").body.decode()
    assert f"works with binaries of function set {own + 1} or later" in reason and "use a newer binary" in reason
    assert realm.app().sign_in(realm.user())["access_token"], "it serves those who ask it"
    for arguments in (("--check",), ("--plan",), ()):
        done = migrate(upgraded, *arguments)
        assert done.returncode == 1 and "the database is newer than this binary" in done.stderr, done
    upgraded.cluster.sql(f"UPDATE postern.schema_range SET oldest_binary = {own}")
    wait_for(lambda: upgraded.node.ops("/readyz").status == 200)


def test_a_plan_names_what_an_empty_database_gets(upgraded):
    """An empty database: every migration in order, then the functions; nothing is changed."""
    upgraded.cluster.sql("CREATE DATABASE planned", database="postgres")
    url = upgraded.cluster.url("postgres").replace("/postern?", "/planned?")
    done = run_postern("migrate", "--plan", environment={"POSTERN_MIGRATE_DATABASE_URL": url})
    assert done.returncode == 0, done
    lines = done.stdout.splitlines()
    assert lines[0] == "database: migration 0, function set 0"
    names = [line for line in lines if line.endswith(".sql") and not line.startswith(" ")]
    assert names == sorted(names) and names[0] == "0001_schema.sql"
    assert lines[lines.index("0001_schema.sql") + 1] == "  makes the tables: none is there before"
    assert any(line.startswith("functions, ") for line in lines) and "  0_base/schema_range.sql" in lines
    assert upgraded.cluster.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'postern'", database="planned") == [["0"]]


def test_a_database_of_before_the_first_release_is_made_anew(upgraded):
    """One line says so; nothing is changed."""
    upgraded.cluster.sql("CREATE DATABASE former", database="postgres")
    upgraded.cluster.sql("""
        CREATE SCHEMA postern;
        CREATE TABLE postern.schema_migration (
            version integer PRIMARY KEY, name text NOT NULL, checksum bytea NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
        INSERT INTO postern.schema_migration (version, name, checksum)
        VALUES (1, '0001_roles_and_schemas.sql', '\\x00'), (60, '0060_messages_to_unproven_addresses.sql', '\\x00')""", database="former")
    url = upgraded.cluster.url("postgres").replace("/postern?", "/former?")
    for arguments in ((), ("--check",), ("--plan",)):
        done = run_postern("migrate", *arguments, environment={"POSTERN_MIGRATE_DATABASE_URL": url})
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done
        assert "the database is of before release 1.0.0: nothing of it is kept, make a new, empty one" in done.stderr, done
    assert upgraded.cluster.sql("SELECT count(*) FROM pg_class WHERE relnamespace = 'postern'::regnamespace AND relkind = 'r'", database="former") == [["1"]]


@pytest.mark.slow
@pytest.mark.skipif(OLD_BINARY is None, reason="POSTERN_OLD_BIN names no release binary of an older commit")
@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")
def test_a_real_older_binary_is_upgraded_and_back_under_load():
    """From its own schema, behind HAProxy: no request fails, nothing acknowledged is lost, no session ends. `scripts/chaos --upgrade` is the long form."""
    report = UpgradeRun(OLD_BINARY, UPGRADES, say=lambda line: None).run()
    assert not report["findings"], report
    assert report["rounds"] == UPGRADES and report["servers replaced"]["upgrade"] >= 2 * UPGRADES, report
    assert report["audited"]["lives"] > 0 and report["audited"]["ended"] > 0, report
    say(f"rolling upgrades: {json.dumps(report)}")
