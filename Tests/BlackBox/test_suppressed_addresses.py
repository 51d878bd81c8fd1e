"""Addresses that bounce or complain are sent nothing more, by an administrator's word or the mail server's, and no caller can tell.

That known and suppressed addresses cost the same statements is test_uniform.py's to say."""

import re
import time

import pytest

from harness.links import Links
from harness.settings import UNIFORM_DEADLINE_MS


@pytest.fixture
def realm(fragile_world):
    """A realm on a world of this file's own, with a well mail server."""
    made = fragile_world.realm()
    yield made
    fragile_world.mailbox.refuses = lambda address: False


def suppress(realm, email, reason=None):
    """What an administrator does."""
    realm.world.admin.call("suppress_address", realm.slug, email, reason)


def unsuppress(realm, email):
    """The contrary; whether there was anything to take back."""
    return realm.world.admin.call("unsuppress_address", realm.slug, email) == "t"


def listed(realm):
    """(email, reason, is_automatic) of the suppressed addresses, as the administrator sees them."""
    return [tuple(row) for row in realm.world.admin.run(
        f"SELECT email, coalesce(reason, ''), is_automatic FROM admin.suppressed_addresses WHERE realm = '{realm.slug}' ORDER BY email;")]


def outbox(realm, email):
    """(state, last_error) of the mails for an address, oldest first."""
    return [tuple(row) for row in realm.world.admin.run(
        f"SELECT state, coalesce(last_error, '') FROM admin.outbox WHERE realm = '{realm.slug}' AND recipient = '{email}' ORDER BY created_at;")]


def await_outbox(realm, email, wanted, timeout=10):
    """Waits for what the administrator should see."""
    deadline = time.monotonic() + timeout
    while outbox(realm, email) != wanted:
        assert time.monotonic() < deadline, outbox(realm, email)
        time.sleep(0.05)


def uniform(answer):
    """Everything a caller sees of an answer, but for handle, number and time."""
    document = answer.json()
    answer.body = answer.body.replace(document["AuthSession"].encode(), b"H")
    if "MatchNumber" in document:
        answer.body = answer.body.replace(f'"{document["MatchNumber"]}"'.encode(), b'"N"')
    status, headers, body = answer.same_bytes()
    return status, re.sub(r"[0-9]", "0", str(headers)), body


def test_nobody_can_tell(realm):
    """Known, suppressed and unknown addresses, and unknown ones that are suppressed: one answer of each endpoint, none before the deadline."""
    app, known, suppressed = realm.app(), realm.users(4), realm.users(4)
    unknown, both = ([realm.new_email() for _ in range(4)] for _ in range(2))
    for email in suppressed + both:
        suppress(realm, email, "complained")
    host = realm.put_app("explicit", clients=["app"], registration="ExplicitEndpoint")
    there = realm.app_on(host)
    links = Links(app)
    for ask in (app.ask, links.ask, lambda email: there.post_json("/api/account/native/register", {"Email": email})):
        answers = [ask(email) for group in zip(known, suppressed, unknown, both) for email in group]
        assert {answer.status for answer in answers} == {200}
        assert len({uniform(answer) for answer in answers}) == 1
        assert min(answer.seconds for answer in answers) > 0.7 * UNIFORM_DEADLINE_MS / 1000
    for email in known:
        realm.world.mailbox.wait(email, 2)
    for email in suppressed:
        await_outbox(realm, email, [("dead", "suppressed")] * 2)
    for email in both:
        await_outbox(realm, email, [("dead", "suppressed")])
    for email in unknown:
        realm.world.mailbox.wait(email, 1)  # registering
    assert not set(realm.world.mailbox.named) & set(suppressed + both), "the mail server heard of somebody"


def test_a_suppressed_user_is_sent_nothing_until_taken_back(realm):
    """In any case of the letters; other ways to sign in go on; what was asked for meanwhile is not sent later."""
    app, email = realm.app(), realm.user()
    tokens = app.sign_in(email)
    before = len(realm.world.mailbox.to(email))
    suppress(realm, email.upper(), "complained on Monday")
    assert listed(realm) == [(email.upper(), "complained on Monday", "f")]
    assert app.ask(email).status == 200 and Links(app).ask(email).status == 200
    await_outbox(realm, email, [("sent", ""), ("dead", "suppressed"), ("dead", "suppressed")])
    assert app.refresh(tokens["refresh_token"]).status == 200
    assert unsuppress(realm, email) and not unsuppress(realm, email) and listed(realm) == []
    asked = app.request_code(email)
    assert app.redeem(asked.code, handle=asked.handle).status == 200
    assert len(realm.world.mailbox.to(email)) == before + 1
    events = [row[0] for row in realm.world.admin.run(
        f"SELECT event FROM admin.audit_log WHERE realm = '{realm.slug}' AND event LIKE '%suppressed' ORDER BY at, id;")]
    assert sorted(events) == ["address_suppressed", "address_unsuppressed", "mail_suppressed", "mail_suppressed"], events


def test_mail_that_waits_is_dropped(realm):
    """Suppressed between request and delivery."""
    app, email = realm.app(), realm.user()
    realm.world.mailbox.mode = "refuse"
    try:
        assert app.ask(email).status == 200
        await_outbox(realm, email, [("queued", "4xx")])
        suppress(realm, email)
    finally:
        realm.world.mailbox.mode = "accept"
    realm.world.time_travel(20)
    await_outbox(realm, email, [("dead", "suppressed")])
    assert not realm.world.mailbox.to(email)


def test_three_bounces_in_a_row_are_a_week_of_silence(realm):
    """By a status that says so (5.1.1); the callers notice nothing; the administrator or a week ends it."""
    app, mailbox = realm.app(), realm.world.mailbox
    email, unknown = realm.user(), realm.new_email()
    mailbox.refuses = lambda address: address == email
    for count in range(1, 4):
        assert listed(realm) == []
        assert uniform(app.ask(email)) == uniform(app.ask(unknown))
        await_outbox(realm, email, [("dead", "5xx")] * count)
    assert listed(realm) == [(email, "the mail server knows no such mailbox", "t")]
    for count in range(1, 4):
        assert uniform(app.ask(email)) == uniform(app.ask(unknown))
        await_outbox(realm, email, [("dead", "5xx")] * 3 + [("dead", "suppressed")] * count)
    assert mailbox.named.count(email) == 3
    mailbox.refuses = lambda address: False
    assert unsuppress(realm, email)
    asked = app.request_code(email)
    assert app.redeem(asked.code, handle=asked.handle).status == 200

    other = realm.user()
    mailbox.refuses = lambda address: address == other
    for count in range(1, 4):
        app.ask(other)
        await_outbox(realm, other, [("dead", "5xx")] * count)
    mailbox.refuses = lambda address: False
    realm.world.time_travel(7 * 86400 + 1)
    assert listed(realm) == []
    app.request_code(other)


def test_a_mail_that_arrives_ends_the_row(realm):
    """Two bounces, a mail, two bounces: nobody is suppressed."""
    app, email, mailbox = realm.app(), realm.user(), realm.world.mailbox
    count = 0
    for bounces in (True, True, False, True, True):
        mailbox.refuses = lambda address, bounces=bounces: bounces and address == email
        app.ask(email)
        count += 1
        deadline = time.monotonic() + 10
        # One look for both: the row of this mail may come between two.
        while len(rows := outbox(realm, email)) < count or "queued" in {state for state, _ in rows}:
            assert time.monotonic() < deadline, rows
            time.sleep(0.05)
    assert listed(realm) == []
    assert sorted(state for state, _ in outbox(realm, email)) == ["dead"] * 4 + ["sent"]


def test_bad_input_says_what_is_allowed(realm):
    """As every admin function."""
    with pytest.raises(Exception, match="is not an address"):
        suppress(realm, "no address")
    with pytest.raises(Exception, match="does not exist"):
        realm.world.admin.call("suppress_address", "nowhere", "a@b.example", None)
