"""Pages that name an account, while another tab of the browser signs in another one."""

import pytest

from harness.codeflow import hosted
from harness.sign_in_pages import counted_case, positive_control, Session  # pylint: disable=unused-import  # fixtures


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and a client that asks for consent."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("put_client", made.slug, made.client("app-2"), consent="explicit")
    world.settle()
    return made


def account_of(session):
    """The address of the account that the client gets."""
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    return session.flow.app.userinfo(tokens["access_token"]).json()["email"]


def in_another_tab(session, email):
    """Another account signs in; this tab still shows its page."""
    page = session.browser.page
    Session(session.realm, "app", browser=session.browser, prompt="login").sign_in(email)
    session.browser.page = page


def test_continue_as_goes_on_with_the_account_that_it_names(realm):
    """The page is shown again with the other account."""
    first, second = realm.user(), realm.user()
    session = Session(realm)
    session.sign_in(first)
    session.begin(prompt="select_account")
    in_another_tab(session, second)
    session.browser.submit("continue")
    assert session.browser.page.step == "continue-as" and second in session.browser.answer.body.decode()
    session.browser.submit("continue")
    assert account_of(session) == second


def test_consent_is_that_of_the_account_which_was_asked(realm):
    """Nothing is remembered for the other one."""
    first, second = realm.user(), realm.user()
    session = Session(realm, "app-2")
    session.sign_in(first)
    assert session.browser.page.step == "consent"
    in_another_tab(session, second)
    session.browser.submit("allow")
    assert session.browser.page.step == "continue-as" and second in session.browser.answer.body.decode()
    session.browser.submit("continue")
    assert session.browser.page.step == "consent"
    assert not realm.world.admin.rows_of("consents", second)


def test_without_a_change_of_account_one_click_is_enough(realm):
    """The browser that consents is the one that signed in."""
    email = realm.user()
    session = Session(realm, "app-2")
    session.sign_in(email)
    session.browser.submit("allow")
    assert account_of(session) == email
