"""A browser without scripts that visits several sites: cookies, redirects from site to site, and the one form of a page."""

import http.cookiejar
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request

from . import wire
from .ledger import LEDGER
from .pages_client import PageParser

REDIRECTS = (301, 302, 303, 307, 308)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but for those to a URI that no site of this machine serves."""

    def __init__(self, stops):
        self._stops = stops
        self.trail = []

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        """None leaves the redirect to the caller."""
        if newurl.startswith(self._stops):
            return None
        self.trail.append(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class UserAgent:
    """`authority`: the certificate that is trusted; `stops`: redirects to URIs that begin so are not followed."""

    def __init__(self, authority, *stops):
        self.cookies = http.cookiejar.CookieJar()
        redirects = _Redirects(tuple(stops))
        #: The URLs of all redirects that were followed.
        self.trail = redirects.trail
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority)),
            urllib.request.HTTPCookieProcessor(self.cookies), redirects)
        self._opener.addheaders = [("User-Agent", "Browser/1"), ("Accept", "text/html,*/*;q=0.8")]
        self.status = self.url = self.text = self.page = self.left_for = None

    def open(self, url):
        """GET, and whatever it leads to."""
        return self._load(urllib.request.Request(url))

    def open_when_up(self, url, timeout=20):
        """GET of a site that has just been started."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return self.open(url)
            except urllib.error.URLError:
                assert time.monotonic() < deadline, f"{url} does not answer"
                time.sleep(0.02)

    def submit(self, action=None, **values):
        """The page's form, with one of its buttons."""
        assert action is None or action in self.page.buttons, (action, self.page.buttons, self.text)
        form = {**self.page.fields, **values, **({"action": action} if action else {})}
        return self.post(urllib.parse.urljoin(self.url, self.page.action), form)

    def post(self, url, form):
        """A form of the page that is shown."""
        request = urllib.request.Request(url, data=wire.form_body(form), headers={"Content-Type": wire.FORM})
        same = urllib.parse.urlsplit(url)[:2] == urllib.parse.urlsplit(self.url or url)[:2]
        request.add_unredirected_header("Sec-Fetch-Site", "same-origin" if same else "cross-site")
        return self._load(request)

    def sign_in(self, mailbox, email):
        """From the first page of a sign-in to what comes after the last, by a code."""
        assert self.page.step == "address", (self.url, self.text)
        before = len(mailbox.to(email, "code"))
        self.submit("continue", address=email)
        assert self.page.step == "code", (self.url, self.text)
        return self.submit("continue", code=LEDGER.add("code", mailbox.wait(email, before + 1, kind="code").code))

    @property
    def arrived(self):
        """The URL to which the browser would go: a client's redirect URI that no site serves."""
        assert self.left_for, (self.status, self.url, self.text)
        return self.left_for

    @property
    def members(self):
        """The query of the URL where the browser is, or to which it would go."""
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.left_for or self.url).query, keep_blank_values=True))

    def _load(self, request):
        self.left_for = None
        try:
            answer = self._opener.open(request, timeout=20)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            self.status, self.url, self.text = answer.status, answer.url, answer.read().decode()
            if self.status in REDIRECTS:
                self.left_for = answer.headers["Location"]
            is_page = (answer.headers["Content-Type"] or "").startswith("text/html")
            self.page = PageParser(self.text) if is_page else None
        return self
