"""Sign-ins that a client wants anew (prompt=login, max_age), and pages that are read for long."""

import time

import pytest

from harness import jose
from harness.codeflow import Flow, hosted
from harness.sign_in_pages import counted_case, positive_control, Session  # pylint: disable=unused-import  # fixtures

COOKIE = "__Host-postern-session"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and a client that asks for consent."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("put_client", made.slug, made.client("app-2"), consent="explicit")
    world.settle()
    return made


def claims(session):
    """Of the ID token that the client gets."""
    return jose.parts(session.flow.exchange(session.browser.members["code"]).json()["id_token"])[1]


def test_an_old_session_is_no_new_sign_in(realm):
    """Who holds a browser and leaves the session cookie out of the first request only has proven nothing."""
    session, email = Session(realm), realm.user()
    session.sign_in(email)
    cookie = session.browser.cookies.pop(COOKIE)
    session.begin(prompt="login")
    form = session.browser.page.fields
    session.browser.cookies[COOKIE] = cookie
    session.browser.open(f"/sign-in?tx={form['tx']}")
    assert session.browser.page.step == "address"
    session.browser.submit("continue", fields={**form, "action": "continue"})
    assert session.browser.left_for is None
    assert "code" in session.sign_in(email).members


@pytest.mark.parametrize("changes", [{"max_age": "0"}, {"max_age": "1"}, {"prompt": "login"}])
def test_a_page_after_the_sign_in_may_be_read_for_long(realm, changes):
    """The consent of a user who has just signed in for this request comes late, and is taken."""
    session = Session(realm, "app-2", **changes)
    session.sign_in(realm.user())
    assert session.browser.page.step == "consent"
    time.sleep(1.5)
    assert "code" in session.browser.submit("allow").members


@pytest.mark.parametrize("changes", [{"max_age": "60"}, {"max_age": "0"}, {"prompt": "login"}])
def test_a_new_sign_in_is_as_strong_as_its_own_proofs(realm, world, changes):
    """A code by mail is no passkey, although the browser used one before."""
    email = realm.user()
    flow = Flow(realm)
    flow.sign_in(email, amr=("hwk", "user"), proves="passkey")
    world.time_travel(120)
    session = Session(realm)
    session.browser.cookies[COOKIE] = flow.cookie
    session.begin(**changes)
    session.sign_in(email)
    found = claims(session)
    assert (found["amr"], found["acr"]) == (["otp"], "urn:postern:acr:1")


def test_a_weaker_proof_makes_no_older_one_new(realm, world):
    """A code by mail that another request asked for does not make the passkey of before one of now."""
    email = realm.user()
    flow = Flow(realm)
    flow.sign_in(email, amr=("hwk", "user"), proves="passkey")
    world.time_travel(120)
    passkey = int(time.time()) - 120
    session = Session(realm)
    session.browser.cookies[COOKIE] = flow.cookie
    session.begin(acr_values="urn:postern:acr:email")
    session.sign_in(email)
    found = claims(session)
    assert found["acr"] == "urn:postern:acr:email" and found["auth_time"] <= passkey + 5
    session.begin(acr_values="phr", max_age="60")
    assert session.browser.left_for is None and session.browser.page.step == "address"
    # Without a time the passkey of before will do, and says its own age.
    session.begin(acr_values="phr")
    found = claims(session)
    assert found["acr"] == "phr" and found["auth_time"] <= passkey + 5
