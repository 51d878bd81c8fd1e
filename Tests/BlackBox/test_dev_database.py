"""`postern dev --database`: an empty database, its own again, and none that somebody else uses."""

import subprocess
import tempfile

import pytest

from harness.dev import DevServer
from harness.ports import free_port
from harness.postgres import Cluster, clean_environment
from harness.settings import BINARY


@pytest.fixture(scope="module")
def cluster():
    """PostgreSQL with an empty database."""
    made = Cluster("dev", lasting=True)
    made.create()
    try:
        yield made
    finally:
        made.remove()


def url(cluster, database, role="postgres"):
    """Its URI."""
    return cluster.url(role).replace(f"/{cluster.database}?", f"/{database}?")


def run(url, folder=None, *arguments):
    """The command, which ends by itself."""
    with tempfile.TemporaryDirectory() as empty:
        return subprocess.run(
            [str(BINARY), "dev", "--port", str(free_port()), "--database", url, *arguments], cwd=folder or empty, env=clean_environment(),
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def one_line(done):
    """What a refused start says, and nothing before it."""
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("Error: "), done.stderr
    return done.stderr[len("Error: "):-1]


@pytest.fixture(scope="module")
def served(cluster):
    """A server that found the database empty, and has ended."""
    dev = DevServer("--database", url(cluster, "postern"))
    try:
        dev.start()
        token = dev.sign_in()
        dev.end()
        yield dev, token
    finally:
        dev.stop()


def test_an_empty_database_is_served_and_served_again(served, cluster):
    dev, token = served
    assert not (dev.data / "postgres").exists() and not (dev.data / "location").exists(), "there is no private cluster"
    dev.start()
    try:
        assert dev.get("/connect/userinfo", Authorization=f"Bearer {token}").status == 200, "the data survives"
        assert {row[0] for row in cluster.sql("SELECT slug FROM postern.realm")} == {"demo", "garden"}
        assert "psql -v SHOW_CONTEXT=never URL" in dev.text() and "host=" not in dev.get("/").body.decode()
    finally:
        dev.end()


def test_the_server_works_there_without_the_rights_of_the_superuser(served, cluster):
    dev, token = served
    dev.start()
    try:
        cluster.sql("REVOKE USAGE ON SCHEMA postern FROM postern_app")
        assert dev.get("/connect/userinfo", Authorization=f"Bearer {token}").status == 503
        cluster.sql("GRANT USAGE ON SCHEMA postern TO postern_app")
        assert dev.get("/connect/userinfo", Authorization=f"Bearer {token}").status == 200
    finally:
        dev.end()


def test_a_database_with_a_realm_of_somebody_else_is_left_as_it_is(cluster):
    cluster.sql("CREATE DATABASE foreign_realm")
    migrated = subprocess.run(
        [str(BINARY), "migrate"], env={**clean_environment(), "POSTERN_DATABASE_URL": url(cluster, "foreign_realm")}, capture_output=True, timeout=60)
    assert migrated.returncode == 0, migrated
    cluster.sql("SELECT admin.put_realm('demo', primary_domain => 'id.demo.example')", database="foreign_realm")
    before = contents(cluster, "foreign_realm")
    with tempfile.TemporaryDirectory() as folder:
        line = one_line(run(url(cluster, "foreign_realm"), folder))
        assert subprocess.run(["ls", "-A", folder], capture_output=True, check=True).stdout == b""
    assert line == ("--database: postern dev did not make realm demo, which is in this database: it would lift limits and show mails. "
                    "Name an empty database")
    assert contents(cluster, "foreign_realm") == before


def test_a_realm_that_came_later_is_somebody_elses(served, cluster):
    cluster.sql("SELECT admin.put_realm('acme', primary_domain => 'id.acme.example')")
    try:
        assert "did not make realm acme" in one_line(run(url(cluster, "postern")))
    finally:
        cluster.sql("DELETE FROM postern.realm WHERE slug = 'acme'")


def test_another_secret_key_is_told(served, cluster):
    assert "secret.key is not the key of this database" in run(url(cluster, "postern")).stderr


def test_secrets_of_another_database_are_made_anew(served, cluster):
    dev, _ = served
    cluster.sql("SELECT admin.rotate_client_secret('demo', 'demo-api')")
    before = (dev.data / "demo-api.secret").read_text()
    dev.start()
    try:
        assert (dev.data / "demo-api.secret").read_text() != before
        assert f"demo-api, secret {(dev.data / 'demo-api.secret').read_text().strip()}" in dev.text()
    finally:
        dev.end()


def test_a_database_that_does_not_answer_is_one_line():
    line = one_line(run(f"postgresql://postgres:hunter2@127.0.0.1:{free_port()}/postern"))
    assert line.startswith("--database: ") and "refused" in line and "hunter2" not in line


def test_a_role_that_is_no_superuser_is_one_line(cluster):
    cluster.sql("CREATE ROLE plain LOGIN")
    assert one_line(run(url(cluster, "postern", "plain"))).startswith("--database: the role is no superuser")


def test_a_remote_database_needs_tls_as_the_server_does():
    assert "add sslmode=verify-full" in one_line(run("postgresql://postgres@db.example/postern"))


def test_reset_does_not_go_with_a_database(cluster):
    done = run(url(cluster, "postern"), None, "--reset")
    assert done.returncode == 64 and "--reset deletes the private cluster" in done.stderr


def contents(cluster, database):
    """All rows of the realms, and which objects there are."""
    return (cluster.sql("SELECT to_jsonb(r) FROM postern.realm AS r", database=database),
            cluster.sql("SELECT to_jsonb(c) FROM postern.channel AS c", database=database),
            cluster.sql("SELECT count(*) FROM postern.audit_event", database=database))
