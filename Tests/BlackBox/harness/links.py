"""Magic links as an app, a mailbox and a browser see them."""

import html.parser
import urllib.parse
from dataclasses import dataclass

from . import wire
from .ledger import LEDGER

MAGIC = "urn:cocoar:magic"
LANDING = "/magic-login"


@dataclass
class Link:
    """A link that was asked for: the handle, the number beside it, and what the mail says."""

    email: str
    handle: str
    number: str
    url: str = ""

    @property
    def query(self):
        """userId and token, decoded."""
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.url).query, strict_parsing=True))

    @property
    def user_id(self):
        """The guid."""
        return self.query["userId"]

    @property
    def token(self):
        """The token."""
        return self.query["token"]

    @property
    def target(self):
        """Path and query."""
        parts = urllib.parse.urlsplit(self.url)
        return f"{parts.path}?{parts.query}"


class Form(html.parser.HTMLParser):
    """The page: the form that takes the number, the one that says "not me", and what it says about the request."""

    def __init__(self, text):
        super().__init__()
        self.forms = []
        self.field = None
        self.facts = {}
        self._in = self._name = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        """Collects."""
        if tag == "bdi":
            return
        attributes = dict(attrs)
        self._in = tag
        if tag == "form":
            self.forms.append({"method": attributes.get("method"), "action": attributes.get("action"), "hidden": {}})
        if tag == "input" and attributes.get("type") == "hidden":
            self.forms[-1]["hidden"][attributes["name"]] = attributes["value"]
        elif tag == "input":
            self.field = attributes

    def handle_endtag(self, tag):
        """What follows belongs to nothing."""
        if tag != "bdi":
            self._in = None

    def handle_data(self, data):
        """The list of facts."""
        if self._in == "dt":
            self._name = data
        elif self._in == "dd":
            self.facts[self._name] = data

    @property
    def hidden(self):
        """Of the form that takes the number."""
        return self.forms[0]["hidden"]


class Links:
    """What the owner of a mailbox and an app do with links. Wraps a NativeApp."""

    def __init__(self, app):
        self.app = app

    def ask(self, email, headers=None, **members):
        """POST magic-link/request; the raw answer."""
        answer = self.app.post_json("/api/account/magic-link/request", {"Email": email, **members}, headers)
        if answer.status == 200:
            LEDGER.add("auth_session", answer.json().get("AuthSession"))
        return answer

    def link(self, email, **members):
        """Asks for a link and waits for the mail with it."""
        before = len(self.app.mailbox.to(email, "link"))
        answer = self.ask(email, **members)
        assert answer.status == 200, answer
        return self.received(answer, email, before + 1)

    def received(self, answer, email, count):
        """The link of the newest mail, once there are `count`."""
        mail = self.app.mailbox.wait(email, count, kind="link")
        document = answer.json()
        link = Link(email, document["AuthSession"], document["MatchNumber"], mail.link)
        LEDGER.add("magic_token", link.token)
        return link

    def redeem_form(self, link, scope="openid offline_access", **changes):
        """The form of a redemption by the link's token."""
        return {
            "grant_type": MAGIC, **self.app.credentials(), "user_id": link.user_id, "magic_token": link.token, "scope": scope, **changes,
        }

    def redeem(self, link, **changes):
        """Redeems the token; the raw answer."""
        return self.app.token(self.redeem_form(link, **changes))

    def poll_form(self, handle, scope="openid offline_access"):
        """The form of a poll."""
        return {"grant_type": MAGIC, **self.app.credentials(), "auth_session": handle, "scope": scope}

    def poll(self, handle, **more):
        """Polls; the raw answer."""
        return self.app.token(self.poll_form(handle, **more))

    def open(self, link_or_target, method="GET", headers=None):
        """Opens the page; the raw answer."""
        target = link_or_target.target if isinstance(link_or_target, Link) else link_or_target
        return wire.exchange(self.app.node.port, method, target, {"Host": self.app.host, **(headers or {})})

    def form(self, link):
        """The form of the link's page."""
        return Form(self.open(link).body.decode())

    def choose(self, link, number, **changes):
        """Submits the page's form with a number, or "none" for "not me"; the raw answer."""
        answer = {"action": "deny"} if number == "none" else {"number": number}
        return self.app.post(LANDING, {"userId": link.user_id, "token": link.token, **answer, **changes})

    @staticmethod
    def wrong(link):
        """A number that is not the right one."""
        return str(10 + (int(link.number) - 10 + 45) % 90)
