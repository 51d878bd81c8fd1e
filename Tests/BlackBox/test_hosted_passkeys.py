"""Passkeys on the pages, case by case, with an authenticator in software: beyond what a browser shows in test_pages_browser.py."""

import html
import json
import re

import pytest

from harness import authenticator, jose
from harness.codeflow import hosted
from harness.holder import holder
from harness.sign_in_pages import Session


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages that offer a passkey."""
    return hosted(world.realm())


def options(session):
    """Of the ceremony that the page holds."""
    return json.loads(html.unescape(re.search(rb'data-options="([^"]*)"', session.browser.answer.body).group(1).decode()))


def sign(session, credential, mutation="ok", **how):
    """The form as the page's script fills it."""
    document = authenticator.assertion(options(session), credential, mutation, **how)
    fields = {**session.browser.page.fields, "assertion": json.dumps(document), "action": "passkey"}
    return session.browser.submit("passkey", fields=fields)


def test_a_passkey_signs_in_on_the_page(realm):
    """Without an address; the tokens say how, and its ceremony is spent."""
    who = holder(realm)
    session = Session(realm)
    page, answer, url = session.browser.page, session.browser.answer, session.browser.url
    sign(session, who.credential)
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    claims = jose.parts(tokens["id_token"])[1]
    assert claims["acr"] == "phr" and {"user", "mfa"} <= set(claims["amr"])
    assert session.flow.app.userinfo(tokens["access_token"]).json()["email"] == who.email
    other = Session(realm)
    other.browser.cookies = {"__Host-postern-browser": session.browser.cookies["__Host-postern-browser"]}
    other.browser.page, other.browser.answer, other.browser.url = page, answer, url
    assert sign(other, who.credential).page.error == "passkey_failed"


@pytest.mark.parametrize("what", ["unknown", "sig_bitflip", "origin", "another ceremony", "nonsense", "empty"])
def test_what_is_no_right_assertion_fails_alike(realm, what):
    """One page, one text; and the next try succeeds with the page's new ceremony."""
    who, session = holder(realm), Session(realm)
    if what == "unknown":
        sign(session, authenticator.Credential(realm.host, b"h" * 32, authenticator.Key()))
    elif what == "origin":
        sign(session, who.credential, origin=f"https://{realm.host}.evil.example")
    elif what == "another ceremony":
        document = authenticator.assertion(options(Session(realm)), who.credential)
        session.browser.submit("passkey", fields={**session.browser.page.fields, "assertion": json.dumps(document), "action": "passkey"})
    elif what in ("nonsense", "empty"):
        text = {"nonsense": "{", "empty": ""}[what]
        session.browser.submit("passkey", fields={**session.browser.page.fields, "assertion": text, "action": "passkey"})
    else:
        sign(session, who.credential, what)
    page = session.browser.page
    assert (page.step, page.error) == ("address", "passkey_failed") and len(page.alerts) == 1
    assert "code" in sign(session, who.credential).members


def test_passkeys_are_offered_where_the_host_may_use_them(realm):
    """Not for a client of another RP-ID."""
    assert b"data-passkey" in Session(realm).browser.answer.body
    assert b"data-passkey" not in Session(realm, "app-2").browser.answer.body


def test_a_passkey_is_offered_once_in_a_while(realm):
    """Created with a notice, or skipped and not asked for again; another ceremony's attestation is refused."""
    for create in (True, False):
        session, email = Session(realm), realm.user()
        session.sign_in(email)
        assert session.browser.page.step == "offer-passkey"
        if create:
            foreign = Session(realm)
            foreign.sign_in(realm.user())
            document, _ = authenticator.create(options(foreign))
            fields = {**session.browser.page.fields, "attestation": json.dumps(document), "action": "create"}
            session.browser.submit("create", fields=fields)
            assert (session.browser.page.step, session.browser.page.error) == ("offer-passkey", "passkey_failed")
            document, credential = authenticator.create(options(session))
            fields = {**session.browser.page.fields, "attestation": json.dumps(document), "action": "create"}
            assert "code" in session.browser.submit("create", fields=fields).members
            realm.world.mailbox.wait(email, kind="notice")
            assert "code" in sign(Session(realm), credential).members
        else:
            assert "code" in session.browser.submit("skip").members
            again = Session(realm)
            again.send(email)
            again.browser.submit("continue", code=realm.world.mailbox.wait(email, 2, kind="code").code)
            assert "code" in again.browser.members
