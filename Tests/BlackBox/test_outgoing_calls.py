"""Where the server's own calls may go, and whose credentials they carry."""

import os
import time
import uuid

import pytest

from harness.node import run_postern
from harness.postgres import literal
from harness.receiver import Receiver
from harness.world import World

METADATA = "https://169.254.169.254/latest/meta-data"


@pytest.fixture(scope="module")
def secret_world(tmp_path_factory):
    """A world whose servers have a folder of secrets."""
    folder = tmp_path_factory.mktemp("secrets")
    made = World("outgoing", POSTERN_SECRETS_DIR=str(folder))
    made.secrets = folder
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture
def receiver():
    """A receiver that takes everything."""
    made = Receiver()
    yield made
    made.close()


def write_secret(path, text):
    """A file that only its owner may read."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.chmod(path, 0o600)


def audit(realm):
    """One event of a user."""
    realm.world.cluster.sql(
        "INSERT INTO postern.audit_event (realm_id, event, user_id) "
        f"SELECT r.id, 'sign_in', {literal(str(uuid.uuid4()))}::uuid FROM postern.realm AS r WHERE r.slug = '{realm.slug}'")


def await_error(realm, wanted, timeout=20):
    """Waits until the administrator sees why a webhook got nothing."""
    deadline = time.monotonic() + timeout
    while wanted not in (seen := realm.world.admin.run(
            f"SELECT 'last: ' || coalesce(last_error, '') FROM admin.webhooks WHERE realm = '{realm.slug}'")[0][0]):
        assert time.monotonic() < deadline, seen
        time.sleep(0.05)


def test_a_credential_of_a_realm_is_of_no_other_realm(secret_world, receiver):
    """A folder per realm goes before the folder of all; a realm cannot name a file of another one."""
    mine, other = secret_world.realm(), secret_world.realm()
    write_secret(secret_world.secrets / "shared", "Bearer all\n")
    write_secret(secret_world.secrets / mine.slug / "shared", "Bearer mine\n")
    write_secret(secret_world.secrets / mine.slug / "own", "Bearer own\n")
    for realm in (mine, other):
        secret_world.admin.call("put_webhook", realm.slug, "crm", receiver.url, secret_name="shared")
    audit(mine)
    assert receiver.count(1)[0].authorization == "Bearer mine"
    audit(other)
    assert receiver.count(2)[1].authorization == "Bearer all"
    secret_world.admin.call("put_webhook", other.slug, "crm", secret_name="own")
    audit(other)
    await_error(other, "own is not a file in POSTERN_SECRETS_DIR")
    secret_world.admin.call("put_webhook", mine.slug, "crm", secret_name="own")
    audit(mine)
    assert receiver.count(3)[2].authorization == "Bearer own"


def test_no_call_goes_to_a_metadata_service(secret_world):
    """Of a webhook and of a provider; the doctor says so, too."""
    realm = secret_world.realm()
    secret_world.admin.call("put_webhook", realm.slug, "crm", METADATA)
    audit(realm)
    await_error(realm, "address not allowed")
    secret_world.admin.call("put_channel", realm.slug, "sms", "gateway", "webhook", METADATA)
    done = run_postern("doctor", environment=secret_world.node.environment)
    for name in (f"webhook crm of {realm.slug}", f"sms of {realm.slug} by gateway"):
        assert f"FAIL  {name}: {METADATA} cannot be reached: address not allowed" in done.stdout, done.stdout


@pytest.mark.parametrize("kind", ["absent", "file", "holds the key file", "links to the key file"])
def test_a_folder_that_cannot_hold_credentials_ends_the_start(world, tmp_path, kind):
    """One line that names the variable; the doctor has it, too."""
    folder, key_file, reason = tmp_path / "secrets", world.node.environment["POSTERN_SECRET_KEY_FILE"], "is not a folder"
    if kind == "file":
        folder.write_text("")
    elif kind != "absent":
        (folder / "acme").mkdir(parents=True)
        reason = "holds the key file: keep POSTERN_SECRET_KEY_FILE outside of it"
        if kind == "links to the key file":
            (folder / "acme" / "crm").symlink_to(key_file)
        else:
            write_secret(folder / "secret.key", open(key_file).read())
            key_file = str(folder / "secret.key")
    environment = {
        **world.node.environment, "POSTERN_SECRETS_DIR": str(folder), "POSTERN_SECRET_KEY_FILE": key_file,
        "POSTERN_LISTEN": "127.0.0.1:0", "POSTERN_OPS_LISTEN": "127.0.0.1:0"}
    served = run_postern("serve", environment=environment, timeout=20)
    assert served.returncode == 1 and f'POSTERN_SECRETS_DIR is "{folder}": it {reason}' in served.stderr, served.stderr
    doctor = run_postern("doctor", environment=environment)
    assert f'FAIL  folder of secrets: POSTERN_SECRETS_DIR is "{folder}": it {reason}' in doctor.stdout
