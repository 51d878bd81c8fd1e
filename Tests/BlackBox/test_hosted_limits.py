"""No page asks the database for a cookie without a limit."""

import concurrent.futures
import secrets
import time
import uuid

import pytest

from harness import settings, wire
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


def test_a_stored_request_is_read_a_few_times(world):
    """Anybody can have one stored, and each page of it reads it."""
    realm = hosted(world.realm(), offer_passkey=False)
    session = Session(realm, state="s" * 1800)
    rows = f"SELECT count(*), max(opened_at) FROM postern.pushed_request AS p JOIN postern.realm AS r ON r.id = p.realm_id WHERE r.slug = '{realm.slug}'"
    ((count, opened),) = world.cluster.sql(rows)
    assert int(count) == 1, "the request is too long for the page"
    realm.limit("authorize", "source", 10, per="1 hour", burst=10)
    target = "/sign-in?tx=" + session.browser.page.fields["tx"]
    seen = statuses(session, "GET", target)
    assert seen[0] == 200 and seen[-1] == 429, seen
    seen = statuses(session, "POST", "/sign-in", {**session.browser.page.fields, "action": "restart"})
    assert set(seen) == {429}, seen
    assert world.cluster.sql(rows) == [[count, opened]], "the readers wrote"


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


def sign_in(realm, email):
    """The code that the client gets."""
    session = Session(realm)
    assert session.browser.page.step == "address", session.browser.answer
    return session.sign_in(email).members["code"]


def test_a_household_of_thousands_signs_in_within_an_hour(world):
    """By codes and under the default limits, from one address: 100 users, 2,000 in the long form, fifty in ninety seconds."""
    realm = hosted(world.realm(limits=False), offer_passkey=False)
    codes = []
    for _ in range(40 if settings.FULL else 2):
        users = realm.users(50)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            codes += pool.map(lambda email: sign_in(realm, email), users)
        world.time_travel(90)
        if settings.FULL:
            time.sleep(2)  # The first page's limit is the process's own and knows no travel: 20 in a second.
    assert len(set(codes)) == len(codes) == (2000 if settings.FULL else 100)
