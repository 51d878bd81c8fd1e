"""What a mail and the page of its link say about who asked, and for whom."""

import html

import pytest

from harness.app import bearer
from harness.codeflow import hosted
from harness.sign_in_pages import Session

#: Markup, a placeholder of texts and a direction that would turn the sentence around.
CLIENT = "Wallet <b>{code}</b> & Söhne"
ASKED = f"Asked for by {CLIENT}"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages and a client whose name is not the realm's."""
    made = hosted(world.realm(), offer_passkey=False)
    made.world.admin.call("set_code_policy", made.slug, resend_cooldown="0")
    made.world.admin.call("grant_permission", made.slug, made.client("app"), variadic=["scp:verify:email"])
    made.put_client("app", display_name=CLIENT)
    made.world.settle()
    return made


def native(realm, email):
    """A code of the grant; the request names its client."""
    realm.app().request_code(email, ClientId=realm.client("app"))


def page(realm, email):
    """A code of the page."""
    assert Session(realm).send(email).page.step == "code"


def proof(realm, email):
    """A code that proves an address and leaves no account."""
    assert Session(realm, scope="openid verify:email").send(email).page.step == "code"


def identifier(realm, email):
    """A code to an address that a signed-in user adds."""
    app = realm.app()
    tokens = app.sign_in(realm.user())
    answer = app.post_json("/connect/identifiers/begin", {"Email": email}, bearer(tokens["access_token"]))
    assert answer.status == 200, answer


@pytest.mark.parametrize(("ask", "known"), [(native, True), (page, True), (proof, False), (identifier, False)])
def test_the_mail_with_a_code_names_the_client(realm, ask, known):
    """In both parts, escaped in the one; the code line stays the last."""
    email = realm.user() if known else realm.new_email()
    ask(realm, email)
    mail = realm.world.mailbox.wait(email, kind="code")
    assert f"{ASKED}." in mail.text.splitlines() and mail.text.count("Asked for") == 1, mail.text
    assert mail.text.rstrip().splitlines()[-1] == f"@{realm.host} #{mail.code}"
    assert html.escape(ASKED, quote=False) in mail.html and "<b>" not in mail.html, mail.html


def test_a_request_without_a_client_names_none(realm):
    """`ClientId` is optional."""
    email = realm.user()
    realm.app().request_code(email)
    assert "Asked for" not in realm.world.mailbox.wait(email, kind="code").text


def test_the_page_of_a_link_says_whose_it_is(realm):
    """The mail, and in the browser that asked the address and the client; elsewhere nothing of the address."""
    email = realm.user()
    session = Session(realm)
    session.send(email)
    session.browser.submit("link")
    mail = realm.world.mailbox.wait(email, kind="link")
    assert f"{ASKED}, on " in mail.text, mail.text
    path = mail.link.split(session.flow.host, 1)[1]
    session.browser.open(path)
    assert session.browser.page.step == "continue-link"
    shown = session.browser.answer.body.decode()
    assert f"<bdi>{email}</bdi>" in shown and html.escape(CLIENT, quote=False) in shown and "<b>" not in shown, shown
    elsewhere = Session(realm).browser.open(path)
    assert elsewhere.page.step == "confirm-link" and email.encode() not in elsewhere.answer.body


def test_a_link_of_an_earlier_address_is_over_and_shows_no_other(realm):
    """The page of the browser has gone on to another address, which ended the link."""
    first, second = realm.user(), realm.user()
    session = Session(realm)
    session.send(first)
    session.browser.submit("link")
    path = realm.world.mailbox.wait(first, kind="link").link.split(session.flow.host, 1)[1]
    session.browser.submit("other-address")
    session.send(second)
    shown = session.browser.open(path).answer.body.decode()
    assert session.browser.answer.status == 400 and "data-error=" in shown, session.browser.answer
    assert second not in shown, shown
