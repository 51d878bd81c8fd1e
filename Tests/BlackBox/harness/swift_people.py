"""What people do for a client of the Swift library: they read mail, sign in, hold an authenticator, walk through pages."""

import urllib.parse

from . import authenticator
from .links import Link
from .pages_client import PageBrowser


def mailed(realm, email, count=1):
    """The code of the newest of so many mails."""
    return realm.world.mailbox.wait(email, count, kind="code").code


def sign_in(client, realm, email, **more):
    """By a code."""
    before = len(realm.world.mailbox.to(email, "code"))
    asked = client.call("requestCode", email=email)
    return client.call("signIn", request=asked, code=mailed(realm, email, before + 1), **more)


def link_of(realm, pending, email, count=1):
    """The link of the newest of so many mails."""
    mail = realm.world.mailbox.wait(email, count, kind="link")
    return Link(email, "", pending["matchNumber"], mail.link)


def with_authenticator(client):
    """The person has an authenticator; the list keeps its credential."""
    kept = []

    def create(options):
        document, credential = authenticator.create(options)
        kept[:] = [credential]
        return document

    client.person["create"] = create
    client.person["get"] = lambda options: authenticator.assertion(options, kept[0])
    return kept


def walk(realm, email, changed=lambda url: url):
    """A person who signs in on the pages by a code; what comes back, changed."""
    def person(page):
        browser = PageBrowser(realm.world.node, realm.host)
        parts = urllib.parse.urlsplit(page)
        before = len(realm.world.mailbox.to(email, "code"))
        browser.open(f"{parts.path}?{parts.query}").submit("continue", address=email)
        browser.submit("continue", code=mailed(realm, email, before + 1))
        while browser.page is not None:
            browser.submit({"offer-passkey": "skip", "consent": "allow"}.get(browser.page.step, "continue"))
        return changed(browser.left_for)
    return person
