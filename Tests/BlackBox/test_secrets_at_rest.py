"""After a run, neither the database nor a log holds a secret, or enough to find one."""

import pytest

from harness import atrest
from harness.ledger import LEDGER
from harness.report import say
from harness.settings import OUTPUT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def used(world):
    """A realm with some life in it, whose PostgreSQL wrote down every statement and parameter."""
    world.cluster.sql("ALTER SYSTEM SET log_min_duration_statement = 0")
    world.cluster.sql("SELECT pg_reload_conf()")
    realm = world.realm()
    for name in ("app", "jwt", "api"):
        app = realm.app(name)
        for email in realm.users(5):
            tokens = app.sign_in(email)
            second = app.refreshed(tokens["refresh_token"])
            app.refreshed(tokens["refresh_token"])
            app.userinfo(second["access_token"])
            realm.app("api").introspect(second["refresh_token"])
            app.redeem("000000", email=email)
            app.request_code(email)
        app.revoke(second["refresh_token"])
        app.refresh(tokens["refresh_token"])
    yield realm
    world.cluster.sql("ALTER SYSTEM RESET log_min_duration_statement")
    world.cluster.sql("SELECT pg_reload_conf()")


@pytest.fixture(scope="module")
def dump(world, used):
    """The whole database as text."""
    assert used
    return world.cluster.dump().decode(errors="replace")


def test_the_search_finds_what_is_there():
    """Proof that a leak would be seen: the same search over a text with a leak, in each spelling."""
    secret = "pt_8J2kq3v9TnYfLz5cQwErTyUiOpAsDfGhJkLzXcVbNm0"
    for spelling in atrest.spellings(secret):
        assert atrest.leaks({("x", secret)}, f"row\t{spelling}==\t1")
    assert not atrest.leaks({("x", secret)}, "row\tsomething else\t1")
    assert atrest.standalone("012345", "code 012345 sent") and not atrest.standalone("012345", "at 10:00:00.012345 UTC")
    values = atrest.values_of("1\t\\\\x" + atrest.hashlib.sha256(b"salt-of-row012345").hexdigest() + "\tsalt-of-row\n")
    assert atrest.constructions_found("012345", "a@b.example", [], {b"salt-of-row"}, values)


def test_the_dump_holds_no_issued_secret(dump):
    """Tokens, handles and client secrets, raw, hex, base64 and base64url."""
    secrets = LEDGER.long_secrets()
    assert len(secrets) > 50, "too little was issued to show anything"
    assert not atrest.leaks(secrets, dump)
    say(f"secrets at rest: {len(secrets)} secrets and {len(LEDGER.of('code'))} codes searched in {len(dump)} bytes of dump")


def test_the_dump_holds_no_code_in_clear(dump):
    """Not even in a mail that was sent."""
    found = {code: lines[:1] for code in LEDGER.of("code") if (lines := atrest.standalone(code, dump))}
    assert not found


def test_no_code_can_be_recovered_from_the_dump(world, used):
    """All million codes as plain hashes, and a live code with every salt and key the dump offers: 0 recovered."""
    before = atrest.values_of(world.cluster.dump().decode(errors="replace"))
    asked = used.app().request_code(used.user())
    everything = atrest.values_of(world.cluster.dump().decode(errors="replace"))
    near = everything - before
    assert near, "asking for a code changed nothing in the database: the comparison is broken"
    assert not atrest.plain_hashes_found(everything)
    labels = [used.slug, used.host, "otp", "code", asked.handle]
    assert not atrest.constructions_found(asked.code, asked.email, labels, near, everything)
    assert used.app().redeem(asked.code, email=asked.email).status == 200, "the code was not live"


@pytest.mark.parametrize("which", ["server", "postgresql"])
def test_no_log_holds_a_secret(world, used, which):
    """stdout and stderr of every server of this run, at level debug; the PostgreSQL log with every parameter."""
    assert used
    if which == "server":
        import os  # pylint: disable=import-outside-toplevel

        text = "".join(p.read_text(errors="replace") for p in sorted(OUTPUT.glob(f"serve-{os.getpid()}-*")))
    else:
        text = world.cluster.log.read_text(errors="replace")
        assert "duration:" in text, "PostgreSQL did not write its statements down"
    assert not atrest.leaks(LEDGER.long_secrets(), text)
    found = {code: lines[:1] for code in LEDGER.of("code") if (lines := atrest.standalone(code, text))}
    assert not found
    for marker in ("Authorization:", "otp_code="):
        assert marker not in text


def test_an_administrator_sees_no_secret_column(world, used):
    """The admin views and what postern_admin may read: no secret, no code, no mail body."""
    views = [row[0] for row in world.admin.run(
        "SELECT table_name FROM information_schema.views WHERE table_schema = 'admin' ORDER BY 1;"
    )]
    assert {"realms", "clients", "permissions", "users", "sessions", "audit_log", "outbox", "signing_keys"} <= set(views)
    for view in views:
        text = "\n".join(r[0] for r in world.admin.run(f"SELECT row_to_json(v)::text FROM admin.{view} v;"))
        assert not atrest.leaks(LEDGER.long_secrets(), text), view
        assert "PRIVATE" not in text
    asked = used.app().request_code(used.user())
    assert not atrest.standalone(asked.code, "\n".join(world.admin.rows_of("outbox", asked.email)))
