"""Sign-ins on pages, and what the tables of cases about pages share."""

import pytest

from . import wire
from .codeflow import Flow, hosted
from .control import Control
from .pages_client import PageBrowser


class Session:
    """One browser that begins a sign-in of one client."""

    def __init__(self, realm, name="app", browser=None, **changes):
        self.realm = realm
        self.flow = Flow(realm, name)
        self.browser = browser or PageBrowser(self.flow.app.node, self.flow.host)
        self.begin(**changes)

    def begin(self, **changes):
        """Opens the authorization request."""
        return self.browser.open("/connect/authorize?" + wire.form_body(self.flow.request(**changes)).decode())

    def send(self, email):
        """Types an address."""
        return self.browser.submit("continue", address=email)

    def code(self, email):
        """The code of the last mail."""
        return self.realm.world.mailbox.wait(email, kind="code").code

    def sign_in(self, email):
        """By a code."""
        before = len(self.realm.world.mailbox.to(email, "code"))
        self.send(email)
        assert self.browser.page.step == "code", self.browser.answer
        return self.browser.submit("continue", code=self.realm.world.mailbox.wait(email, before + 1, kind="code").code)


def signed_in(realm, email=None, name="app"):
    """A browser that is signed in, without pages; with its address and the id of its session."""
    flow = Flow(realm, name)
    flow.email = email or realm.user()
    flow.session = flow.sign_in(flow.email)
    return flow


def newest(realm, email, count=1):
    """The code of the newest of so many mails."""
    return realm.world.mailbox.wait(email, count, kind="code").code


def other_code(code):
    """Another of as many digits."""
    return f"{(int(code) + 1) % 10 ** len(code):0{len(code)}}"


@pytest.fixture(scope="module", name="other")
def other_realm(world):
    """Another tenant with pages."""
    return hosted(world.realm(), offer_passkey=False)


@pytest.fixture(scope="module", name="control")
def positive_control(realm):
    """Positive controls in the realm of a module."""
    made = Control(realm)
    yield made
    made.check()


@pytest.fixture(autouse=True, name="_case")
def counted_case(control):
    """Each test of a module that imports this is a case between positive controls."""
    yield
    control.case()
