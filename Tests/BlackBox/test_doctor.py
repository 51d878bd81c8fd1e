"""`postern doctor` says of each check how it stands, and wastes no time on a database that is not there."""

import os
import time

import pytest

from harness.codeflow import hosted
from harness.node import run_postern
from harness.ports import free_port

CHECKS = (
    "key file", "database and schema", "roles", "clock", "connections", "signing keys and lines of the key file",
    "RS256 keys of realms with pages", "SMTP")


def doctor(world, **changes):
    """Runs it with the settings of the world's node and some changes (None: unset)."""
    environment = {**world.node.environment, **changes}
    return run_postern("doctor", environment={name: value for name, value in environment.items() if value is not None})


def line(done, name):
    """What it says of one check: the verdict and the rest."""
    for text in done.stdout.splitlines():
        if text[6:].partition(":")[0] == name:
            return text[:4].strip(), text[6:]
    raise AssertionError(f"nothing about {name}: {done.stdout}{done.stderr}")


def failing(done):
    """The checks that failed."""
    return [text[6:].partition(":")[0] for text in done.stdout.splitlines() if text.startswith("FAIL")]


def test_all_is_well(world):
    """Each check has a line; exit 0."""
    done = doctor(world)
    assert done.returncode == 0, done
    assert [line(done, name)[0] for name in CHECKS] == ["ok"] * len(CHECKS)
    assert "differs from the database's by 0 s" in line(done, "clock")[1]
    assert "a process needs 17, the database allows" in line(done, "connections")[1]
    assert f"smtp://127.0.0.1:{world.mailbox.port}?starttls=off" in line(done, "SMTP")[1]


def test_a_database_that_is_not_there_is_waited_for_once(world):
    """What needs it is skipped; SMTP is still looked at."""
    began = time.monotonic()
    done = doctor(world, POSTERN_DATABASE_URL=f"postgresql://bb_serve@127.0.0.1:{free_port()}/postern")
    took = time.monotonic() - began
    assert done.returncode == 1
    assert failing(done) == ["database and schema"]
    assert "skip  roles, clock, connections, signing keys and lines of the key file, channels, webhooks: see database and schema" in done.stdout
    assert line(done, "SMTP")[0] == "ok"
    assert took < 3, f"{took:.1f} s"


def test_a_key_file_that_others_can_read(world, tmp_path):
    """Refused."""
    file = tmp_path / "secret.key"
    file.write_bytes(world.key_file.read_bytes())
    os.chmod(file, 0o644)
    assert "key file" in failing(doctor(world, POSTERN_SECRET_KEY_FILE=str(file)))


def test_another_key_file_does_not_open_the_signing_keys(world, realm, tmp_path):
    """The realm has signed, so it has keys."""
    app = realm.app()
    assert app.sign_in(realm.user())["id_token"]
    file = tmp_path / "secret.key"
    file.write_text("A" * 43 + "=\n", encoding="ascii")
    os.chmod(file, 0o600)
    done = doctor(world, POSTERN_SECRET_KEY_FILE=str(file))
    assert failing(done) == ["signing keys and lines of the key file"]
    assert "forget_key_line" in done.stdout


def test_a_role_that_may_too_much(world):
    """A superuser passes row security."""
    done = doctor(world, POSTERN_DATABASE_URL=world.cluster.url("postgres"))
    assert failing(done) == ["roles"]


def test_more_connections_than_the_database_allows(world):
    """The role's own limit counts, too."""
    assert failing(doctor(world, POSTERN_DB_CONNECTIONS="250")) == ["connections"]
    world.cluster.create_login("bb_few", "postern_app")
    world.cluster.sql("ALTER ROLE bb_few CONNECTION LIMIT 16;")
    done = doctor(world, POSTERN_DATABASE_URL=world.cluster.url("bb_few"))
    assert failing(done) == ["connections"]
    assert "a process needs 17 sessions" in line(done, "connections")[1]


@pytest.mark.parametrize("address, reason", [
    (None, "POSTERN_SMTP_URL is not set"),
    ("smtp://127.0.0.1:1?starttls=off", "connection"),
    ("ftp://mail.example", "POSTERN_SMTP_URL"),
])
def test_mail_that_cannot_be_handed_in(world, address, reason):
    """Unset, nobody there, not a mail server's URL."""
    done = doctor(world, POSTERN_SMTP_URL=address)
    assert failing(done) == ["SMTP"]
    assert reason in line(done, "SMTP")[1]


def test_starttls_that_is_required_and_not_offered(world):
    """The test's mail server has none."""
    done = doctor(world, POSTERN_SMTP_URL=f"smtp://127.0.0.1:{world.mailbox.port}?starttls=required")
    assert failing(done) == ["SMTP"]


def test_forwarded_headers_of_an_unknown_proxy_are_told(world, realm):
    """The running server counts them; doctor reads its operators' listener, and says nothing when no server runs."""
    node = world.start_node()
    try:
        environment = {"POSTERN_OPS_LISTEN": f"127.0.0.1:{node.ops_port}"}
        assert "X-Forwarded-For" not in doctor(world, **environment).stdout
        realm.app(node=node).get("/api/app-info", {"X-Forwarded-For": "198.51.100.7"})
        done = doctor(world, **environment)
        assert "WARN  proxy: 1 request carried X-Forwarded-For from a peer that POSTERN_TRUSTED_PROXIES does not list" in done.stdout, done
        assert done.returncode == 0
    finally:
        node.stop()
    assert "X-Forwarded-For" not in doctor(world, POSTERN_OPS_LISTEN=f"127.0.0.1:{free_port()}").stdout


def test_a_sender_that_is_no_address(world):
    """As `serve` would say."""
    assert failing(doctor(world, POSTERN_MAIL_FROM="nobody")) == ["SMTP"]


def test_weak_mail_settings_are_named_by_doctor_and_by_serve(world):
    """Codes in the clear to another machine: allowed, and said."""
    warning = "starttls=off sends every code in the clear to 192.0.2.1"
    done = doctor(world, POSTERN_SMTP_URL="smtp://192.0.2.1:25?starttls=off", POSTERN_DATABASE_URL="postgresql://x@127.0.0.1:1/x")
    assert f"WARN  SMTP: {warning}" in done.stdout
    served = run_postern("serve", environment={
        **world.node.environment, "POSTERN_SMTP_URL": "smtp://192.0.2.1:25?starttls=off",
        "POSTERN_DATABASE_URL": "postgresql://x@127.0.0.1:1/x",
    })
    assert served.returncode == 1
    assert warning in served.stdout + served.stderr


def test_a_misspelled_setting_is_told_by_doctor_and_by_serve(world, tmp_path):
    """Of the environment and of the file; other programs' names are not ours, and neither command fails for it."""
    file = tmp_path / "postern.env"
    file.write_text("# POSTERN_COMMENT=1\nPOSTERN_SMTP_RATES=7\nSMTP_RATES=7\n")
    wrong = {"POSTERN_LOGLEVEL": "debug", "MYPOSTERN_X": "1"}
    done = run_postern("doctor", "--config", file, environment={**world.node.environment, **wrong})
    told = [line for line in done.stdout.splitlines() if line.startswith("WARN  configuration: ")]
    assert done.returncode == 0 and [line.split()[2] for line in told] == ["POSTERN_LOGLEVEL", "POSTERN_SMTP_RATES"], done
    assert "WARN  configuration" not in doctor(world).stdout
    served = run_postern("serve", environment={
        **world.node.environment, **wrong, "POSTERN_DATABASE_URL": "postgresql://x@127.0.0.1:1/x",
    })
    assert "POSTERN_LOGLEVEL is not a setting of this version and was not read" in served.stdout + served.stderr


def test_a_realm_with_pages_and_no_rs256_key_is_told(world):
    """Until the key is there, as in the seconds before a server makes it."""
    realm = hosted(world.realm())
    deadline = time.monotonic() + 10
    while failing(doctor(world)):
        assert time.monotonic() < deadline
    world.cluster.sql(
        "UPDATE postern.signing_key AS k SET retires_at = now() FROM postern.realm AS r"
        f" WHERE r.id = k.realm_id AND r.slug = '{realm.slug}' AND k.alg = 'RS256'")
    done = doctor(world)
    assert failing(done) == ["RS256 keys of realms with pages"] and realm.slug in done.stdout, done
    world.cluster.sql(
        "UPDATE postern.signing_key AS k SET retires_at = NULL FROM postern.realm AS r"
        f" WHERE r.id = k.realm_id AND r.slug = '{realm.slug}' AND k.alg = 'RS256'")


def test_a_header_that_a_proxy_drops_is_told(world):
    """A client of Cotter's wire always sends its key; without it something between took it away."""
    realm = hosted(world.realm())
    realm.put_client("cotter", access_token_type="jwt")
    realm.put_client("cotter", "cap:cotter", "gt:authorization_code", "gt:refresh_token")
    node = world.start_node()
    try:
        world.settle()
        assert realm.app("cotter", node).post_json("/api/v0/verify/get_identity", {}).status == 401
        done = doctor(world, POSTERN_OPS_LISTEN=f"127.0.0.1:{node.ops_port}")
        assert "WARN  proxy: 1 request to /api/v0/verify/get_identity had no header API_KEY_ID" in done.stdout, done
    finally:
        node.stop()
