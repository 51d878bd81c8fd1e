"""Mail servers at fault (ML), seen from outside: no answer changes, no mail is lost, and what cannot be sent is given up where it shows."""

import re
import time

import pytest

from harness.settings import UNIFORM_DEADLINE_MS
from harness.volley import in_parallel
from test_faults import arrive


@pytest.fixture
def realm(fragile_world):
    """A realm on a world of this file's own, with a well mail server."""
    made = fragile_world.realm()
    yield made
    fragile_world.mailbox.mode = "accept"
    fragile_world.mailbox.refuses = lambda address: False
    fragile_world.mailbox.up()


def outbox(realm, email):
    """(state, last_error) of the mails for an address, as the administrator sees them."""
    return [tuple(row) for row in realm.world.admin.run(
        f"SELECT state, coalesce(last_error, '') FROM admin.outbox WHERE realm = '{realm.slug}' AND recipient = '{email}' ORDER BY created_at;")]


def await_outbox(realm, email, wanted, timeout=10):
    """Waits for what the administrator should see."""
    deadline = time.monotonic() + timeout
    while outbox(realm, email) != wanted:
        assert time.monotonic() < deadline, outbox(realm, email)
        time.sleep(0.05)


def test_a_mailbox_that_does_not_exist_tells_the_caller_nothing(realm):
    """550 for known addresses only; status, bytes and deadline are those of an unknown address; the mail is dead where it shows."""
    app, known = realm.app(), realm.users(5)
    realm.world.mailbox.refuses = lambda address: address in known
    answers = [app.ask(email) for email in known] + [app.ask(realm.new_email()) for _ in known]
    for answer in answers:
        answer.body = answer.body.replace(answer.json()["AuthSession"].encode(), b"H")
    kept = {(status, re.sub(r"[0-9]", "0", str(headers)), body) for status, headers, body in (a.same_bytes() for a in answers)}
    assert len(kept) == 1, kept
    assert min(a.seconds for a in answers) > 0.7 * UNIFORM_DEADLINE_MS / 1000
    for email in known:
        await_outbox(realm, email, [("dead", "5xx")])
    fine = realm.user()
    app.request_code(fine)
    await_outbox(realm, fine, [("sent", "")])


def test_a_refused_sender_is_the_operators_to_repair_and_costs_no_mail(realm):
    """550 at MAIL FROM is about us, not about the mail: it waits, and leaves once the sender is welcome."""
    app, emails = realm.app(), realm.users(3)
    realm.world.mailbox.mode = "refuse sender"
    assert {app.ask(email).status for email in emails} == {200}
    deadline = time.monotonic() + 10
    while not any(error == "5xx" for email in emails for _, error in outbox(realm, email)):
        assert time.monotonic() < deadline, [outbox(realm, email) for email in emails]
        time.sleep(0.05)
    assert all(state == "queued" for email in emails for state, _ in outbox(realm, email))
    realm.world.mailbox.mode = "accept"
    assert arrive(realm.world, emails) == [1, 1, 1]


def test_a_server_that_dies_after_the_message_gets_at_most_one_copy_more(realm):
    """Taken or not, nobody knows: the copy carries the same code, which works."""
    app, email = realm.app(), realm.user()
    realm.world.mailbox.mode = "die after data"
    asked = app.ask(email)
    assert asked.status == 200
    realm.world.mailbox.wait(email)
    await_outbox(realm, email, [("queued", "in-doubt")])
    realm.world.mailbox.mode = "accept"
    for _ in range(6):
        realm.world.time_travel(20)
        time.sleep(1.2)
        if outbox(realm, email)[0][0] == "sent":
            break
    mails = realm.world.mailbox.to(email)
    assert len(mails) == 2 and mails[0].code == mails[1].code
    assert mails[0].message["Message-ID"] == mails[1].message["Message-ID"]
    assert app.redeem(mails[0].code, handle=asked.json()["AuthSession"]).status == 200


def test_a_backlog_leaves_by_age_and_what_has_expired_does_not_leave(realm):
    """Codes that nobody can use any more are dropped, the others leave oldest first."""
    app, stale, fresh = realm.app(), realm.users(10), realm.users(40)
    realm.world.mailbox.down()
    assert {answer.status for answer in in_parallel(app.ask, stale)} == {200}
    time.sleep(0.5)
    realm.world.time_travel(605)
    for email in fresh:
        assert app.ask(email).status == 200
    time.sleep(0.5)
    before = len(realm.world.mailbox.mails)
    realm.world.mailbox.up()
    copies = arrive(realm.world, fresh, per_step=31)
    assert max(copies) <= 2
    for email in stale:
        assert not realm.world.mailbox.to(email), "an expired code was sent"
    order = [mail.recipients[0] for mail in realm.world.mailbox.mails[before:] if mail.recipients[0] in fresh]
    places = [order.index(email) for email in fresh]
    # Four connections at a time: neighbours may overtake each other, strangers not.
    assert sum(abs(place - index) for index, place in enumerate(places)) / len(places) < 8, places


def test_a_mail_says_what_its_reader_needs_and_nothing_more(realm):
    """The code once, the realm, how long it lives and what to do if it was not you; no id, no handle, no token, no picture."""
    app, email = realm.app(), realm.user()
    asked = app.request_code(email)
    mail = realm.world.mailbox.to(email)[-1]
    text, raw = mail.text, mail.message.get_body(("html",)).get_content()
    assert f"Realm {realm.slug}" in text and "10 minutes" in text and re.search(r"did not|didn.t|ignore", text, re.IGNORECASE)
    user = realm.world.admin.run(f"SELECT id FROM admin.users WHERE email = '{email}';")[0][0]
    for private in (user, asked.handle, "pat_", "prt_", "<img", "http-equiv", "<script"):
        assert private not in text + raw, private
    assert mail.recipients == [email]
