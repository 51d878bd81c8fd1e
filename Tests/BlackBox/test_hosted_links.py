"""Links on the pages, case by case: beyond what test_pages.py and test_magic_page.py hold."""

import re

import pytest

from harness import wire
from harness.codeflow import Flow, hosted
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session
from harness.volley import volley


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm(), offer_passkey=False)


def link_of(realm, session, email):
    """Asks for a link on the page; its path, and the number that the page shows."""
    session.send(email)
    session.browser.submit("link")
    number = re.search(rb"<strong>(\d\d)</strong>", session.browser.answer.body).group(1).decode()
    return realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1], number


def test_a_link_takes_any_number_of_slips_and_one_wrong_number(realm):
    """What is no number is 400 and costs nothing; a wrong one ends the request at once."""
    session, email = Session(realm), realm.user()
    path, number = link_of(realm, session, email)
    other = PageBrowser(session.flow.app.node, session.flow.host)
    for typed in ["", "4", "423", "４", "ab", " 4", "\u0661", "\u00b9\u00b2", "4.2"] * 3:
        assert other.open(path).submit("confirm", number=typed).page.error == "wrong_number", typed
        assert other.answer.status == 400
    assert other.open(path).submit("confirm", number=str(10 + (int(number) + 35) % 90)).page.step == "done"
    assert other.open(path).page.step == "done" and other.answer.status == 400
    assert session.browser.submit("continue").page.step == "link" and not session.browser.left_for


def test_a_link_of_somebody_else_replaces_who_is_signed_in(realm):
    """In the browser that asked: its page, then the client with the link's user."""
    first, second = realm.user(), realm.user()
    session = Session(realm)
    session.sign_in(first)
    former = Flow(realm)
    former.cookie = session.browser.cookies["__Host-postern-session"]
    session.begin(prompt="login")
    path, _ = link_of(realm, session, second)
    session.browser.open(path)
    assert session.browser.page.step == "continue-link"
    shown = session.browser.answer.body.decode()
    assert second in shown and first not in shown, shown
    session.browser.submit("continue")
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert session.flow.app.userinfo(tokens["access_token"]).json()["email"] == second
    assert "error=login_required" in former.authorize(prompt="none").header("location")


def test_right_and_wrong_number_at_once_have_one_outcome(realm):
    """One of the two tabs decides; the browser that asked agrees with it."""
    for _ in range(6):
        session, email = Session(realm), realm.user()
        path, number = link_of(realm, session, email)
        other = PageBrowser(session.flow.app.node, session.flow.host).open(path)
        requests = [wire.request_bytes("POST", "/magic-login", {"Host": session.flow.host, "Content-Type": wire.FORM}, wire.form_body(
            {**other.page.fields, "number": typed, "action": "confirm"})) for typed in (number, str(10 + (int(number) + 35) % 90))]
        right, wrong = volley(realm.world.node.port, requests)
        signed_in = session.browser.submit("continue").left_for is not None
        assert {right.status, wrong.status} <= {200, 400, 409, 410}, (right, wrong)
        assert signed_in == (right.status == 200), (signed_in, right, wrong)


def test_a_refused_link_ends_the_request(realm):
    """`deny` on the link's page; the waiting page says so and another message helps."""
    session, email = Session(realm), realm.user()
    path, number = link_of(realm, session, email)
    other = PageBrowser(session.flow.app.node, session.flow.host).open(path)
    asked = other.page
    other.submit("deny")
    assert other.page.step == "done" and not other.cookies
    other.page = asked
    waiting = {**session.browser.page.fields, "action": "continue"}
    assert session.browser.submit("continue").page.step == "link"
    fields = {**asked.fields, "number": number, "action": "confirm"}
    assert other.submit("confirm", fields=fields).answer.status == 400 and other.open(path).page.error == "used"
    assert session.browser.submit("continue", fields=waiting).left_for is None
    session.browser.submit("code")
    assert session.browser.page.step == "code"


def test_a_long_list_of_languages_is_bounded(realm):
    """4 KiB of it change nothing."""
    flow = Flow(realm)
    browser = PageBrowser(flow.app.node, flow.host)
    browser.open("/connect/authorize?" + wire.form_body(flow.request()).decode(), **{"Accept-Language": "de;q=0," + "xx-YY;q=0.5," * 330 + "fr"})
    assert browser.page.step == "address" and browser.page.language in ("en", "fr")
