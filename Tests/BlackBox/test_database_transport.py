"""A remote database is reached by TLS with a checked certificate, or as the operator wrote."""

import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from harness.node import run_postern
from harness.ports import free_port
from harness.world import World

pytestmark = pytest.mark.slow
NAME = "db.example"


def openssl(directory, *arguments):
    """Runs openssl there."""
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def make_authority(directory, name):
    """A certificate authority: name.key and name.crt."""
    openssl(
        directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """An authority, a certificate for db.example under it, and a stranger's authority."""
    directory = tmp_path_factory.mktemp("tls")
    make_authority(directory, "ca")
    make_authority(directory, "stranger")
    (directory / "ext").write_text(f"subjectAltName=DNS:{NAME}\n", encoding="ascii")
    openssl(directory, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={NAME}")
    openssl(directory, "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "ext", "-out", "server.crt")
    return directory


@pytest.fixture(scope="module")
def remote(files):
    """A PostgreSQL that speaks TLS on loopback; URLs name it db.example, which libpq takes for remote."""
    port = free_port()
    made = World("transport", f"listen_addresses = '127.0.0.1'\nport = {port}\n")
    cluster = made.cluster
    for name in ("server.key", "server.crt"):
        target = Path(shutil.copy(files / name, cluster.root / name))
        target.chmod(0o600)
        if cluster._as_postgres:  # pylint: disable=protected-access
            shutil.chown(target, "postgres", "postgres")
    made.postgres = f"listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = '{cluster.root}/server.crt'\nssl_key_file = '{cluster.root}/server.key'\n"
    try:
        made.open()
        made.port = int(cluster.value("SELECT setting FROM pg_settings WHERE name = 'port';"))
        yield made
    finally:
        made.close()


def url(world, role="bb_serve", **options):
    """The libpq URI through TCP."""
    settings = "&".join(f"{name}={value}" for name, value in {"hostaddr": "127.0.0.1", **options}.items())
    return f"postgresql://{role}@{NAME}:{world.port}/{world.cluster.database}?{settings}"


def run(world, command, address, *arguments):
    """A command with that database."""
    return run_postern(command, *arguments, environment={**world.node.environment, "POSTERN_DATABASE_URL": address})


@pytest.mark.parametrize("command", [("serve",), ("migrate", "--check"), ("migrate",), ("doctor",)], ids=" ".join)
def test_a_remote_host_without_sslmode_is_refused_with_one_line_that_says_what_to_do(remote, command):
    """Nothing is sent to it."""
    done = run(remote, command[0], url(remote), *command[1:])
    assert done.returncode == 1
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "sslmode" in line]
    assert lines and all("db.example is not this machine: add sslmode=verify-full" in line for line in lines), done


def test_a_list_of_hosts_is_as_safe_as_its_least_safe(remote):
    """One of them is remote."""
    done = run(remote, "migrate", f"postgresql://bb_serve@localhost,other.example:{remote.port}/postern", "--check")
    assert done.returncode == 1
    assert "other.example is not this machine" in done.stdout + done.stderr


def test_verify_full_is_accepted_under_the_right_authority_only(remote, files):
    """Our CA: fine. A stranger's, or another name: refused."""
    good = run(remote, "doctor", url(remote, sslmode="verify-full", sslrootcert=files / "ca.crt"))
    assert "ok    database and schema" in good.stdout, good
    assert "ok    roles" in good.stdout
    wrong = run(remote, "migrate", url(remote, sslmode="verify-full", sslrootcert=files / "stranger.crt"), "--check")
    assert wrong.returncode == 1
    assert "certificate verify failed" in wrong.stdout + wrong.stderr, wrong
    address = url(remote, sslmode="verify-full", sslrootcert=files / "ca.crt").replace(NAME, "elsewhere.example")
    named = run(remote, "migrate", address, "--check")
    assert named.returncode == 1
    assert "elsewhere.example" in named.stdout + named.stderr, named


def test_the_operator_may_write_another_sslmode(remote):
    """It is then the operator's word."""
    done = run(remote, "migrate", url(remote, sslmode="disable"), "--check")
    assert done.returncode == 0, done


def test_verify_full_from_the_environment_counts(remote, files):
    """libpq's own variables; another value of them does not count."""
    strict = {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": str(files / "ca.crt")}
    environment = {**remote.node.environment, "POSTERN_DATABASE_URL": url(remote)}
    assert run_postern("migrate", "--check", environment={**environment, **strict}).returncode == 0
    assert run_postern("migrate", "--check", environment={**environment, "PGSSLMODE": "require"}).returncode == 1


def test_a_server_runs_over_verified_tls(remote, files):
    """Sessions of the pool and the listening one are encrypted."""
    node = remote.start_node(POSTERN_DATABASE_URL=url(remote, sslmode="verify-full", sslrootcert=files / "ca.crt"))
    realm = remote.realm()
    assert realm.app(node=node).sign_in(realm.user())["access_token"]
    plain = remote.cluster.value(
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL AND NOT ssl;"
    )
    encrypted = remote.cluster.value(
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE client_addr IS NOT NULL AND ssl;"
    )
    assert plain == "0"
    assert int(encrypted) >= 2


def test_loopback_and_sockets_need_nothing(remote):
    """As before."""
    assert run(remote, "migrate", f"postgresql://bb_serve@127.0.0.1:{remote.port}/postern", "--check").returncode == 0
    assert run(remote, "migrate", remote.cluster.url("bb_serve"), "--check").returncode == 0
    with socket.create_connection(("127.0.0.1", remote.port), 5):
        pass
