"""No page asks the database for a cookie without a limit."""

import secrets
import uuid

import pytest

from harness import wire
from harness.codeflow import hosted
from harness.sign_in_pages import Session

MANY = 30


@pytest.fixture
def session(world):
    """A stranger's browser at a realm where a source may ask ten times an hour."""
    realm = hosted(world.realm(), offer_passkey=False)
    made = Session(realm)
    realm.limit("authorize", "source", 10, per="1 hour", burst=10)
    return made


def statuses(session, method, target, form=None):
    """Of many requests with the browser's cookies."""
    fields = {"Host": session.flow.host, "Sec-Fetch-Site": "same-origin", **session.browser.cookie_header()}
    if form is not None:
        fields["Content-Type"] = "application/x-www-form-urlencoded"
    body = wire.form_body(form) if form is not None else None
    return [wire.exchange(session.flow.app.node.port, method, target, fields, body).status for _ in range(MANY)]


def test_a_made_up_session_cookie_is_looked_up_a_few_times(session):
    """Then the page says so."""
    session.browser.cookies["__Host-postern-session"] = "pss_" + secrets.token_urlsafe(32)
    seen = statuses(session, "GET", "/sign-in?tx=" + session.browser.page.fields["tx"])
    assert seen[0] == 200 and seen[-1] == 429, seen


def test_a_made_up_link_is_looked_up_a_few_times(session):
    """In the browser that would have asked for it."""
    form = {"userId": str(uuid.uuid4()), "token": secrets.token_urlsafe(32), "action": "continue"}
    seen = statuses(session, "POST", "/magic-login", form)
    assert seen[0] == 400 and seen[-1] == 429, seen


def test_a_sign_out_is_confirmed_a_few_times(session):
    """Each is a statement."""
    session.browser.open("/connect/logout")
    seen = statuses(session, "POST", "/connect/logout", {**session.browser.page.fields, "action": "continue"})
    assert seen[0] == 200 and seen[-1] == 429, seen
