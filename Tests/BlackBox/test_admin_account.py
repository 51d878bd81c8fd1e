"""What an administrator does about single accounts: sessions, passkeys, closed codes, imports, addresses."""

import subprocess
import time
import uuid

import pytest

from harness.app import bearer
from harness.postgres import POSTGRES_BIN, SQLError, clean_environment
from harness.realm import call
from harness.service import granted, service


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes of one database."""
    second = world.start_node()
    yield world.node, second
    second.stop()


def warnings(world, statement):
    """What psql prints on stderr for a statement that succeeds."""
    done = subprocess.run(
        [str(POSTGRES_BIN / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(world.cluster.root), "-U", world.admin.role,
         "-d", world.cluster.database, "-c", statement], capture_output=True, text=True, timeout=60, env=clean_environment(), check=True)
    return done.stderr


def test_one_session_is_ended_in_every_process(world, realm, app, email, nodes):
    """The others of the same user go on."""
    lost, kept = app.sign_in(email), app.sign_in(email)
    session = realm.app("api").introspect(lost["access_token"]).json()["sid"]
    assert world.admin.call("end_session", realm.slug, session) == "t"
    for node in nodes:
        at = realm.app("app", node)
        assert at.userinfo(lost["access_token"]).status == 401
        assert at.refresh(lost["refresh_token"]).error == "invalid_grant"
        assert at.userinfo(kept["access_token"]).status == 200
    assert world.admin.call("end_session", realm.slug, session) == "f"
    with pytest.raises(SQLError, match="is not a session of this realm"):
        world.admin.call("end_session", realm.slug, str(uuid.uuid4()))


def test_one_passkey_is_deleted_and_its_owner_told(world, realm, app, email):
    """It opens nothing from then on; the other one does."""
    token = app.sign_in(email)["access_token"]
    lost, lost_credential = app.enroll(token)
    _, kept_credential = app.enroll(token)
    mails = len(world.mailbox.wait(email, 3) and world.mailbox.to(email))
    world.admin.call("delete_passkey", realm.slug, lost)
    assert app.try_passkey(lost_credential).error == "invalid_grant"
    assert app.passkey_sign_in(kept_credential)["access_token"]
    assert "removed" in world.mailbox.wait(email, mails + 1).text
    with pytest.raises(SQLError, match="is not a passkey of this realm"):
        world.admin.call("delete_passkey", realm.slug, lost)


def test_closed_codes_are_opened(world, realm, app, email):
    """A hundred wrong codes close an account; the administrator opens it before the day is over."""
    world.cluster.sql(
        f"INSERT INTO postern.code_guard (realm_id, email_key, consecutive, locked_until)"
        f" SELECT id, '{email}', 100, now() + interval '1 day' FROM postern.realm WHERE slug = '{realm.slug}'")
    assert world.admin.run(f"SELECT codes_locked_until > now() FROM admin.users WHERE email = '{email}';") == [["t"]]
    assert world.admin.call("unlock_codes", realm.slug, email) == "t"
    assert app.sign_in(email)["access_token"]
    assert world.admin.call("unlock_codes", realm.slug, email) == "f"


def test_a_service_account_is_deleted(world, realm):
    """After its client may not use it; its tokens are dead."""
    robot, _ = service(realm, "short-lived")
    token = granted(robot)["access_token"]
    name = "short-lived-account"
    with pytest.raises(SQLError, match="Revoke the permission first"):
        world.admin.call("delete_service_account", realm.slug, name)
    world.admin.run(call("revoke_permission", realm.slug, robot.client_id, variadic=["gt:client_credentials"]))
    world.admin.call("delete_service_account", realm.slug, name)
    assert not realm.app("api").active(token)
    assert world.admin.rows_of("service_accounts", name) == []


def test_an_import_keeps_the_sub(realm, app):
    """put_user(id) on creation: tokens, userinfo and introspection name the id that other systems know."""
    given = str(uuid.uuid4())
    email = realm.new_email()
    for _ in range(2):
        assert realm.put_user(email, id=given) == given
    token = app.sign_in(email)["access_token"]
    assert app.userinfo(token).json()["sub"] == given
    assert realm.app("api").introspect(token).json()["sub"] == given
    assert app.account(token)["Sub"] == given
    for refused in ({"email": email, "id": str(uuid.uuid4())}, {"email": realm.new_email(), "id": given}):
        with pytest.raises(SQLError, match="HINT"):
            realm.put_user(refused["email"], id=refused["id"])


def test_an_address_is_changed(world, realm, app, nodes):
    """Sessions and codes of the old one end, both mailboxes are told; the new one signs in once it is verified."""
    old, new = realm.user(), realm.new_email()
    tokens = app.sign_in(old)
    sub = app.account(tokens["access_token"])["Sub"]
    asked = app.request_code(old)
    world.admin.call("put_user", realm.slug, old, new_email=new)
    assert "changed" in world.mailbox.wait(old, 3).text
    assert "changed" in world.mailbox.wait(new, 1).text
    for node in nodes:
        at = realm.app("app", node)
        assert at.userinfo(tokens["access_token"]).status == 401
        assert at.refresh(tokens["refresh_token"]).error == "invalid_grant"
        assert at.redeem(asked.code, handle=asked.handle).error == "invalid_grant"
        assert at.redeem(asked.code, email=old).error == "invalid_grant"
        assert at.redeem(asked.code, email=new).error == "invalid_grant"
    app.ask(old)
    app.ask(new)
    # A request is decided when its answer has left.
    while world.cluster.sql(f"SELECT 1 FROM postern.auth_session WHERE pending AND email_key IN ('{old}', '{new}')"):
        time.sleep(0.02)
    world.admin.call("put_user", realm.slug, new, email_verified=True)
    token = app.sign_in(new)["access_token"]
    assert app.account(token)["Sub"] == sub and app.account(token)["Email"] == new
    assert len(world.mailbox.to(old)) == 3, "nobody is sent a code at the old address"
    assert len(world.mailbox.to(new)) == 2, "nor at the new one before it was verified"


def test_an_address_of_another_user_is_refused(world, realm, app, email):
    """And nothing changes."""
    token = app.sign_in(email)["access_token"]
    with pytest.raises(SQLError, match="is the address of another user"):
        world.admin.call("put_user", realm.slug, email, new_email=realm.user())
    assert app.get("/connect/account", bearer(token)).json()["Email"] == email


def test_another_primary_domain_warns_of_what_it_leaves_behind(world):
    """Passkeys of clients without rp_id, and the issuer: counted, recorded, and kept when asked."""
    realm = world.realm()
    app = realm.app()
    _, credential = app.enroll(app.sign_in(realm.user())["access_token"])
    said = warnings(world, call("put_realm", realm.slug, display_name="Same"))
    assert said == ""
    said = warnings(world, call("put_realm", realm.slug, f"new.{realm.host}"))
    assert f'the RP-ID of clients without rp_id is now "new.{realm.host}": 1 passkeys of 1 users belong to "{realm.host}"' in said
    assert f"rp_id => '{realm.host}'" in said
    assert f'the issuer is now "https://new.{realm.host}" and was "{realm.issuer}": JWTs of 1 sessions' in said
    detail = world.admin.run(
        f"SELECT detail ->> 'passkeys_of_it', detail ->> 'former_issuer' FROM admin.audit_log WHERE realm = '{realm.slug}'"
        " AND event = 'realm_updated' ORDER BY id DESC LIMIT 1;")
    assert detail == [["1", realm.issuer]]
    world.admin.run(call("put_client", realm.slug, app.client_id, rp_id=realm.host))
    world.settle()
    assert app.passkey_sign_in(credential, origin=f"https://{realm.host}")["access_token"]


def test_a_deleted_realm_leaves_a_record(world):
    """When, by whom and how large; nothing about a person."""
    realm = world.realm("gone")
    email = realm.user()
    world.admin.call("put_realm", realm.slug, enabled=False)
    assert world.admin.call("delete_realm", realm.slug, confirm=realm.slug, grace="0").startswith("(1,")
    deadline = time.monotonic() + 20
    while world.admin.rows_of("realms", realm.slug):
        assert time.monotonic() < deadline, "the sweeper does not erase it"
        world.cluster.sql("SELECT postern.sweep(1000)")
    (row,) = world.admin.rows_of("deleted_realms", realm.slug)
    assert f'"issuer":"{realm.issuer}"' in row and f'"deleted_by":"sql:{world.admin.role}"' in row and '"users":1' in row
    assert email not in row
