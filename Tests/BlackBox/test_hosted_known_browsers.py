"""A browser that was signed in is a device that the account knows: strangers' tries do not shut its owner out of the pages."""

import pytest

from harness.codeflow import Flow, hosted
from harness.control import Control
from harness.sign_in_pages import Session
from test_known_devices import close_for_strangers

COOKIE = "__Host-postern-session"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm(), offer_passkey=False)


def mails_after(realm, session, email):
    """How many more mails an address typed on the page causes."""
    before = len(realm.world.mailbox.to(email))
    session.send(email)
    assert session.browser.page.step == "code", "the page tells nothing"
    Control(realm).check()  # the worker is past the request
    return len(realm.world.mailbox.to(email)) - before


def test_an_account_that_is_closed_to_strangers_is_open_to_its_own_browser(realm):
    """By the cookie of its session; not by that of another account, nor without any."""
    owner, other = realm.user(), realm.user()
    mine, stranger = Session(realm), Session(realm)
    mine.sign_in(owner)
    stranger.sign_in(other)
    cookie = mine.browser.cookies[COOKIE]
    close_for_strangers(realm, owner)
    assert mails_after(realm, Session(realm), owner) == 0
    stranger.begin(prompt="login")
    assert mails_after(realm, stranger, owner) == 0
    mine.begin(prompt="login")
    assert mails_after(realm, mine, owner) == 1
    mine.browser.submit("continue", code=realm.world.mailbox.to(owner, "code")[-1].code)
    assert "code" in mine.browser.members
    former = Flow(realm)
    former.cookie = cookie
    assert "error=login_required" in former.authorize(prompt="none").header("location"), "replaced by the new one"


@pytest.mark.parametrize("ended", ["idle_expires_at = now()", "ended_at = now()"])
def test_a_browser_whose_session_has_ended_is_still_known(realm, ended):
    """The account knows it, though nobody is signed in there."""
    owner = realm.user()
    mine = Session(realm)
    mine.sign_in(owner)
    realm.world.cluster.sql(
        f"UPDATE postern.browser_session AS b SET {ended} FROM postern.user_account AS u"
        f" WHERE u.id = b.user_id AND u.address_key = '{owner}';")
    close_for_strangers(realm, owner)
    mine.begin()
    assert mine.browser.page.step == "address", mine.browser.answer
    assert mails_after(realm, mine, owner) == 1
    mine.browser.submit("continue", code=realm.world.mailbox.to(owner, "code")[-1].code)
    assert "code" in mine.browser.members


def test_an_id_token_hint_makes_a_browser_known(realm):
    """In a browser without cookies; the hint of another account does not, and a cookie of another does not stand in its way."""
    owner, other = realm.user(), realm.user()
    hints = {}
    for email in (owner, other):
        session = Session(realm)
        session.sign_in(email)
        hints[email] = session.flow.exchange(session.browser.members["code"]).json()["id_token"]
    close_for_strangers(realm, owner)
    assert mails_after(realm, Session(realm, id_token_hint=hints[other]), owner) == 0
    assert mails_after(realm, Session(realm, id_token_hint=hints[owner]), owner) == 1
    stranger = Session(realm)
    stranger.sign_in(other)
    stranger.begin(prompt="login", id_token_hint=hints[owner])
    assert mails_after(realm, stranger, owner) == 1
    stranger.browser.submit("continue", code=realm.world.mailbox.to(owner, "code")[-1].code)
    assert "code" in stranger.browser.members
