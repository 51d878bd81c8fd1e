"""What `serve` and `doctor` say of settings that are wrong: all of it, in plain words, and nothing that is not so."""

import json
import socket

import pytest

from harness.node import run_postern

PORTS = {"POSTERN_LISTEN": "127.0.0.1:0", "POSTERN_OPS_LISTEN": "127.0.0.1:0"}


def serve(world, *arguments, **changes):
    """Runs it to its end with the settings of the world's node and some changes (None: unset)."""
    environment = {**world.node.environment, **PORTS, **changes}
    return run_postern("serve", *arguments, environment={name: value for name, value in environment.items() if value is not None}, timeout=30)


def test_every_wrong_setting_is_named_at_once(world):
    """One line, those that are missing included; the doctor has its own form."""
    wrong = {"POSTERN_DB_CONNECTIONS": "many", "POSTERN_LOG_LEVEL": "loud", "POSTERN_TRUSTED_PROXIES": "here"}
    done = serve(world, **wrong)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    for name, value in wrong.items():
        assert f'{name} is "{value}": it must be ' in done.stderr
    done = serve(world, POSTERN_SECRET_KEY_FILE=None, POSTERN_MAIL_FROM=None, POSTERN_SMTP_URL="nonsense")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    for name in ("POSTERN_SECRET_KEY_FILE is not set", "POSTERN_MAIL_FROM is not set", "POSTERN_SMTP_URL: "):
        assert name in done.stderr
    doctor = run_postern("doctor", environment={**world.node.environment, **wrong})
    assert doctor.stdout.startswith("FAIL  configuration: ") and all(name in doctor.stdout for name in wrong), doctor


def test_lines_of_the_settings_file_that_are_not_read_are_named(world, tmp_path):
    """With their numbers."""
    file = tmp_path / "postern.env"
    file.write_text("# a comment\n\nPOSTERN_LOG_LEVEL debug\nexport POSTERN_LOG_FORMAT=json\nPOSTERN_DB_CONNECTIONS=\"4\"\n  POSTERN_SMTP_RATE = 5\n")
    done = serve(world, "--config", str(file))
    assert done.returncode == 1
    for place, what in ((3, "is not NAME=value"), (4, "is not NAME=value"), (5, "has a value in quotes")):
        assert f"line {place} of {file} {what}" in done.stderr, done.stderr
    assert "line 1 " not in done.stderr and "line 2 " not in done.stderr and "line 6 " not in done.stderr


def test_a_busy_port_is_all_that_is_said(world):
    """No warning about a database that is well."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for name in PORTS:
            done = serve(world, **{name: f"127.0.0.1:{taken.getsockname()[1]}"})
            said = [line for line in done.stderr.splitlines() if " notice " not in line and "POSTERN_SMTP_URL" not in line]
            assert said == [f"Error: cannot listen on 127.0.0.1:{taken.getsockname()[1]}: Address already in use"], done.stderr


@pytest.mark.parametrize("content, reason", [
    (None, "No such file or directory"), ("", "it holds no certificate in PEM"), ("-----BEGIN", "it holds no certificate in PEM")])
def test_a_tls_file_that_cannot_be_used_is_told_in_plain_words(world, tmp_path, content, reason):
    file = tmp_path / "cert.pem"
    if content is not None:
        file.write_text(content)
    done = serve(world, POSTERN_TLS_CERT=str(file), POSTERN_TLS_KEY=str(file))
    assert done.returncode == 1 and f"POSTERN_TLS_CERT names {file}, which cannot be used: {reason}" in done.stderr, done.stderr
    assert "NSCocoaErrorDomain" not in done.stderr


def test_a_role_that_is_no_member_is_told_what_to_grant(world):
    """And not what PostgreSQL refused to it."""
    world.cluster.sql("CREATE ROLE bb_stranger LOGIN")
    url = world.cluster.url("bb_stranger")
    expected = "the database role is not a member of postern_app: GRANT postern_app TO that role"
    assert expected in serve(world, POSTERN_DATABASE_URL=url).stderr
    done = run_postern("doctor", environment={**world.node.environment, "POSTERN_DATABASE_URL": url})
    assert f"FAIL  database and schema: {expected}" in done.stdout, done.stdout


def test_mail_that_nobody_takes_is_told_in_words(world):
    done = run_postern("doctor", environment={**world.node.environment, "POSTERN_SMTP_URL": "smtp://127.0.0.1:1?starttls=off"})
    assert "FAIL  SMTP: smtp://127.0.0.1:1?starttls=off: not taken now: there is no connection" in done.stdout, done.stdout


def test_a_greeting_without_a_dot_is_told(world):
    """Of a remote mail server; by the doctor and by serve."""
    url = "smtp://mail.invalid:25?starttls=required&helo=worker-3"
    done = run_postern("doctor", environment={**world.node.environment, "POSTERN_SMTP_URL": url})
    assert 'WARN  SMTP: the greeting (EHLO) names "worker-3", which has no dot' in done.stdout, done.stdout
    named = run_postern("doctor", environment={**world.node.environment, "POSTERN_SMTP_URL": url + ".example.com"})
    assert "EHLO" not in named.stdout


def test_another_version_of_the_collation_is_told_and_every_line_is_json(world):
    """PostgreSQL warns of it while libpq connects, before anybody can ask libpq not to print it."""
    world.cluster.sql("UPDATE pg_database SET datcollversion = '1.0' WHERE datname = current_database()")
    try:
        doctor = run_postern("doctor", environment=world.node.environment)
        assert "WARN  collation: the database sorts texts by version" in doctor.stdout and "REINDEX" in doctor.stdout, doctor.stdout
        node = world.start_node(POSTERN_LOG_FORMAT="json")
        try:
            lines = node.log().splitlines()
            messages = [json.loads(line)["message"] for line in lines]
        finally:
            world.nodes.remove(node)
            node.stop()
        assert any(message.startswith("collation: ") for message in messages), messages
        assert "a library has something to say" in messages, messages
    finally:
        world.cluster.sql("UPDATE pg_database SET datcollversion = NULL WHERE datname = current_database()")
