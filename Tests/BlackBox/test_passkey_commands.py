"""`postern try passkey` and `postern export associations`."""

import json

import pytest

from harness.node import run_postern
from harness.realm import call

FINGERPRINT = ":".join(["14", "6D", "E9", "83", "C5", "73", "06", "50"] * 4)
FILES = {"apple-app-site-association", "assetlinks.json"}


def test_the_headless_app_enrols_and_signs_in_by_passkey(dev):
    """Every request and answer is printed; nothing is left behind."""
    before = dev.passkeys(dev.sign_in())
    for _ in range(2):
        run = run_postern("try", "passkey", "--url", dev.origin, "--client", dev.client_id, "--email", dev.email)
        assert run.returncode == 0, run.stdout + run.stderr
    for line in (
        "> POST /connect/passkey/enroll/begin", "> POST /connect/passkey/enroll", "> POST /connect/passkey/begin",
        "> POST /connect/token", "> GET /connect/passkey", "> DELETE /connect/passkey/", "< 204",
        '"Message":"Passkey enrolled successfully."',
    ):
        assert line in run.stdout, line
    assert dev.passkeys(dev.sign_in()) == before


def test_the_headless_app_takes_the_code_it_is_given(dev):
    """A wrong one is refused, in one line on stderr."""
    run = run_postern(
        "try", "passkey", "--url", dev.origin, "--client", dev.client_id, "--email", dev.email, "--code", "000000")
    assert run.returncode == 1
    assert "invalid_grant" in run.stdout
    assert "the server answered 400" in run.stderr


@pytest.fixture(scope="module")
def registered(world, realm):
    """A client with an iOS app, an Android app and a web origin."""
    client = realm.client("apps")
    world.admin.run(
        call("put_client", realm.slug, client, rp_id="apps.bb.example"),
        call("put_ios_app", realm.slug, client, "A1B2C3D4E5", "com.example.app"),
        call("put_android_app", realm.slug, client, "com.example.app", [FINGERPRINT]),
        call("put_web_origin", realm.slug, client, "https://login.apps.bb.example"),
    )
    return client


def export(world, *arguments):
    """Runs the command as the server's own role."""
    return run_postern("export", "associations", *arguments, environment={
        "POSTERN_DATABASE_URL": world.cluster.url("bb_serve")})


def test_association_files_are_printed(world, realm, registered):
    """Each with the address it belongs at."""
    run = export(world, "--realm", realm.slug, "--client", registered)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.removeprefix("# https://apps.bb.example/.well-known/") for line in lines[0::2]] == sorted(FILES)
    apple, android = (json.loads(line) for line in lines[1::2])
    assert apple == {"webcredentials": {"apps": ["A1B2C3D4E5.com.example.app"]}}
    assert android[0]["target"]["sha256_cert_fingerprints"] == [FINGERPRINT]
    # Links are the realm's own hosts' to give away, and there Postern serves the files.
    assert android[0]["relation"] == ["delegate_permission/common.get_login_creds"]


def test_association_files_are_written(world, realm, registered, tmp_path):
    """Into a directory that need not exist, byte for byte what is printed."""
    printed = export(world, "--realm", realm.slug, "--client", registered).stdout.splitlines()[1::2]
    run = export(world, "--realm", realm.slug, "--client", registered, "--output", str(tmp_path / "new" / "well-known"))
    assert run.returncode == 0, run.stderr
    written = {file.name: file.read_text() for file in (tmp_path / "new" / "well-known").iterdir()}
    assert written == dict(zip(sorted(FILES), printed))


@pytest.mark.parametrize("arguments, complaint", [
    (("--realm", "{slug}", "--client", "{slug}-app"), "nothing is registered for client {slug}-app"),
    (("--realm", "{slug}", "--client", "nobody"), "realm {slug} has no client nobody"),
    (("--realm", "nowhere", "--client", "nobody"), "realm nowhere does not exist or is disabled"),
])
def test_what_cannot_be_exported_is_said(world, realm, arguments, complaint):
    """One line on stderr that says what to do, exit code 1."""
    run = export(world, *(argument.format(slug=realm.slug) for argument in arguments))
    assert run.returncode == 1
    assert run.stdout == ""
    assert complaint.format(slug=realm.slug) in run.stderr
