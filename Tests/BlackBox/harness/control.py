"""Between many refused requests: the right one still succeeds."""

from . import wire
from .codeflow import Flow
from .pages_client import PageBrowser


class Control:
    """A whole sign-in by a page, after each twenty-five cases and at their end."""

    EVERY = 25

    def __init__(self, realm):
        self._realm, self._cases = realm, 0

    def case(self):
        """One more case is done."""
        self._cases += 1
        if self._cases % self.EVERY == 0:
            self.check()

    def check(self):
        """Request, address, code of the mail, authorization code, tokens, userinfo."""
        flow, email = Flow(self._realm), self._realm.user()
        browser = PageBrowser(flow.app.node, flow.host)
        browser.open("/connect/authorize?" + wire.form_body(flow.request()).decode())
        browser.submit("continue", address=email)
        browser.submit("continue", code=self._realm.world.mailbox.wait(email, kind="code").code)
        tokens = flow.exchange(browser.members["code"])
        assert tokens.status == 200, tokens
        assert flow.app.userinfo(tokens.json()["access_token"]).json()["email"] == email
