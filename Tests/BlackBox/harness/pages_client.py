"""A browser without scripts: cookies, redirects, and the one form of a page."""

import html.parser
import http.cookies
import urllib.parse

from . import wire
from .ledger import LEDGER


class PageParser(html.parser.HTMLParser):
    """What a test looks at: the step, the error, the primary form, and the text that is shown."""

    def __init__(self, text):
        super().__init__()
        self.step = self.error = self.language = self.direction = self.action = self.title = None
        self.method = "get"
        self.fields, self.buttons, self.alerts, self.assets = {}, [], [], []
        self._alert = False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        """Collects."""
        found = dict(attributes)
        if tag == "html":
            self.language, self.direction = found.get("lang"), found.get("dir")
        elif tag == "main":
            self.step, self.error = found.get("data-step"), found.get("data-error")
        elif tag == "form":
            self.action, self.method = found.get("action"), found.get("method", "get")
        elif tag == "input" and "name" in found:
            self.fields[found["name"]] = found.get("value", "")
        elif tag == "button":
            self.buttons.append(found.get("value"))
        elif tag in ("link", "script", "img", "source"):
            self.assets.append(found.get("href") or found.get("src") or found.get("srcset"))
        self._alert = found.get("role") == "alert"

    def handle_data(self, data):
        """The text of an alert."""
        if self._alert and data.strip():
            self.alerts.append(data.strip())


class PageBrowser:
    """Follows redirects on its own host and stops at those that lead away, as a client's redirect URI does."""

    def __init__(self, node, host):
        self.node, self.host = node, host
        self.cookies = {}
        self.answer = self.page = self.left_for = self.url = None

    def open(self, target, **headers):
        """GET, and whatever it leads to."""
        return self._follow("GET", target, b"", headers)

    def submit(self, action, headers=None, fields=None, **values):
        """The page's form with one of its buttons."""
        assert action in self.page.buttons or headers is not None or fields is not None, (action, self.page.buttons)
        form = fields if fields is not None else {**self.page.fields, **values, "action": action}
        return self._follow("POST", self.page.action, wire.form_body(form), {
            "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", **(headers or {})})

    def post(self, target, form):
        """A form of another site, as a client's."""
        return self._follow("POST", target, wire.form_body(form), {
            "Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "cross-site"})

    def cookie_header(self):
        """What the browser sends."""
        return {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())} if self.cookies else {}

    def _follow(self, method, target, body, headers):
        self.left_for = None
        for _ in range(5):
            sent = {name: value for name, value in {"Host": self.host, **self.cookie_header(), **headers}.items() if value is not None}
            self.answer = wire.exchange(self.node.port, method, target, sent, body or None)
            self.url = target
            for line in [value for name, value in self.answer.headers if name.lower() == "set-cookie"]:
                self._keep(line)
            location = self.answer.header("location")
            if location is None:
                break
            assert self.answer.status == 303, self.answer
            parts = urllib.parse.urlsplit(location)
            if parts.netloc and parts.netloc != self.host or parts.scheme not in ("", "http", "https"):
                self.left_for = location
                self.page = None
                return self
            method, body, headers = "GET", b"", {}
            target = parts.path + ("?" + parts.query if parts.query else "")
        self.page = PageParser(self.answer.body.decode()) if (self.answer.header("content-type") or "").startswith("text/html") else None
        if self.page is not None:
            LEDGER.add("tx", self.page.fields.get("tx"))
        return self

    def _keep(self, line):
        jar = http.cookies.SimpleCookie(line)
        for name, morsel in jar.items():
            if morsel["max-age"] == "0":
                self.cookies.pop(name, None)
            else:
                LEDGER.add("page_cookie", morsel.value)
                self.cookies[name] = morsel.value

    @property
    def members(self):
        """What the client got."""
        assert self.left_for, self.answer
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.left_for).query, keep_blank_values=True))
