"""A pooler between a server and PostgreSQL is refused: prepared statements and LISTEN would be lost in it."""

import pytest

from harness.node import run_postern
from harness.pgbouncer import PgBouncer
from harness.ports import free_port
from harness.settings import PGBOUNCER

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="PgBouncer is not installed")
SAID = "a connection pooler (PgBouncer or the like) is between this process and PostgreSQL: name PostgreSQL itself in the database URL"


AS_INSTALLED, TRANSACTION, SESSION = ("transaction", ""), ("transaction", "options"), ("session", "options")


@pytest.mark.parametrize("pooling, command", [
    (AS_INSTALLED, ("serve",)), (TRANSACTION, ("serve",)), (SESSION, ("serve",)),
    (AS_INSTALLED, ("doctor",)), (TRANSACTION, ("doctor",)), (TRANSACTION, ("migrate", "--check")), (TRANSACTION, ("migrate",)),
])
def test_every_command_refuses_a_pooler_and_names_it(world, pooling, command):
    """As Debian ships it, it refuses the options of a session; configured to drop them, it lets the session begin. Exit code 1 both times."""
    pooler = PgBouncer(world.cluster, *pooling)
    try:
        addresses = {name: f"127.0.0.1:{free_port()}" for name in ("POSTERN_LISTEN", "POSTERN_OPS_LISTEN")}
        urls = {"POSTERN_DATABASE_URL": pooler.url("bb_serve"), "POSTERN_MIGRATE_DATABASE_URL": pooler.url("postgres")}
        done = run_postern(*command, environment={**world.node.environment, **addresses, **urls}, timeout=30)
    finally:
        pooler.close()
    assert done.returncode == 1 and SAID in done.stdout + done.stderr, done
