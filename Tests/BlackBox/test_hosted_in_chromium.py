"""Where Chromium goes after the last form: redirect URIs of every kind, clients that redirect on, hostile text, and a logo that is a program."""

import http.server
import threading
import time
import urllib.parse

import pytest

from harness.browser import Page
from harness.realm import call
from test_pages_browser import browser, clear, press, served, step  # pylint: disable=unused-import  # fixtures

pytestmark = pytest.mark.slow
HOSTILE = '"><script>document.title="owned"</script>{{7*7}}\u202e' + "W" * 200


class Onward(http.server.BaseHTTPRequestHandler):
    """A client's redirect URI that leads on, and a third site where it may lead."""

    target, got = "", []

    def do_GET(self):  # pylint: disable=invalid-name
        """Keeps what came, and redirects unless it is the end."""
        Onward.got.append(self.path)
        if self.path.startswith("/end"):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>End</title><h1>Arrived</h1>")
            return
        self.send_response(302)
        self.send_header("Location", Onward.target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def onward():
    """On loopback, by both names."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Onward)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


def asked_for(chromium, page, prefix, timeout=15):
    """The URL that begins so and that a navigation of the page asked for."""
    deadline = time.monotonic() + timeout
    while True:
        for event in chromium.events:
            parameters = event.get("params", {})
            redirect = parameters.get("redirectResponse", {}).get("headers", {})
            fields = {name.lower(): value for name, value in {**redirect, **parameters.get("headers", {})}.items()}
            for url in (parameters.get("url"), parameters.get("request", {}).get("url"), fields.get("location")):
                if url and url.startswith(prefix):
                    return url
        assert time.monotonic() < deadline, [event for event in chromium.events if "Network" in event["method"] or "Navig" in event["method"]][-8:]
        page.evaluate("1")
        time.sleep(0.05)


def code_step(page, served, email, **changes):
    """At the code of a sign-in that is asked for with these changes."""
    page.open(served.url(prompt="login", **changes))
    assert step(page) == "address", page.text("body")
    page.type("#address", email)
    press(page, "continue")
    page.type("#code", served.code(email))


def leave(page):
    """The last form; what follows may be no page."""
    page.send("Page.bringToFront")
    page.click("button[value='continue']")


@pytest.fixture
def native(served):
    """A public client that may have private-use schemes; no page offers a passkey."""
    served.world.admin.run(
        call("put_client", "browser", "native", access_token_type="jwt", display_name="App"),
        call("grant_permission", "browser", "native", variadic=["cap:cotter", "gt:authorization_code", "gt:refresh_token", "scp:profile", "scp:email"]),
        call("set_hosted", "browser", True, offer_passkey=False))
    served.world.settle()
    yield "native"
    served.world.admin.run(call("set_hosted", "browser", True, offer_passkey=True))
    served.world.settle()


@pytest.mark.parametrize("uri", [
    "https://app.invalid/cb", "https://app.invalid/cb?tenant=1", "http://127.0.0.1:9/cb", "http://[::1]:9/cb", "http://localhost:9", "com.example.app:/cb",
    "com.example.app://cb", "com.example.app:cb", "yourapp://",
])
def test_chromium_asks_for_exactly_the_redirect_uri(browser, served, native, uri):
    """After a form, with the members appended to it; no policy of the page stands in the way."""
    registered = uri.replace(":9", "") if uri.startswith("http://") else uri
    served.world.admin.call("put_redirect_uri", "browser", native, registered)
    served.world.settle()
    page = Page(browser)
    page.send("Network.enable")
    clear(page)
    browser.events.clear()
    code_step(page, served, served.user(), client_id=native, redirect_uri=uri, scope="openid email")
    leave(page)
    url = asked_for(browser, page, uri + ("&" if "?" in uri else "?"))
    members = dict(urllib.parse.parse_qsl(url[len(uri) + 1:], strict_parsing=True))
    assert set(members) == {"code", "state", "iss"} and members["state"] == "st", url
    assert not [one for one in page.complaints() if "Content Security Policy" in str(one)], page.complaints()


@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/end", "com.example.third:/end"])
def test_a_client_may_redirect_on(browser, served, native, onward, target):
    """To a third site or an app of its own, after a form of a page."""
    Onward.target = target.format(port=onward)
    Onward.got.clear()
    uri = f"http://localhost:{onward}/onward"
    served.world.admin.call("put_redirect_uri", "browser", native, "http://localhost/onward")
    served.world.settle()
    page = Page(browser)
    page.send("Network.enable")
    clear(page)
    browser.events.clear()
    code_step(page, served, served.user(), client_id=native, redirect_uri=uri, scope="openid email")
    leave(page)
    asked_for(browser, page, Onward.target)
    if target.startswith("http"):
        page.wait("document.querySelector('h1')?.innerText === 'Arrived'")
    assert Onward.got[0].startswith("/onward?code=")
    assert not [one for one in page.complaints() if "Content Security Policy" in str(one)], page.complaints()


def test_hostile_text_neither_runs_nor_breaks_the_layout(browser, served):
    """In the hint, the client's name, the brand and a person's name, at 320 pixels."""
    admin = served.world.admin
    admin.run(call("put_client", "browser", "web", display_name=HOSTILE[:40] + "W" * 60),
              call("set_branding", "browser", product_name="</title><b>" + "W" * 60))
    served.world.settle()
    page = Page(browser, width=320)
    clear(page)
    email = served.user()
    try:
        def whole():
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), page.text("body")
            assert page.evaluate("document.title !== 'owned' && document.scripts.length <= 2 && !document.querySelector('main b b')")

        page.open(served.url(login_hint=HOSTILE, state=HOSTILE))
        whole()
        page.evaluate("document.querySelector('form').noValidate = true")
        press(page, "continue")
        assert step(page) == "address"
        whole()
        page.evaluate("document.querySelector('#address').value = ''")
        page.type("#address", email)
        press(page, "continue")
        whole()
        press(page, "link")
        whole()
    finally:
        admin.run(call("put_client", "browser", "web", display_name="Example Shop"), call("set_branding", "browser", product_name="Café Öresund & <Co>"))
        served.world.settle()


def test_a_logo_with_a_script_is_a_picture(browser, served):
    """On the page, and when it is opened by itself."""
    image = b"<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'><script>document.documentElement.setAttribute('data-owned', 'yes')</script></svg>"
    served.world.admin.run(f"SELECT admin.set_branding('browser', logo => '\\x{image.hex()}');")
    served.world.settle()
    page = Page(browser)
    clear(page)
    try:
        page.open(served.url())
        path = page.evaluate("[...document.images].map(i => new URL(i.src).pathname).find(p => p.startsWith('/brand/'))")
        page.wait("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
        page.open(served.origin + path)
        assert page.evaluate("document.documentElement.nodeName === 'svg' && !document.documentElement.hasAttribute('data-owned')")
    finally:
        served.world.admin.run("SELECT admin.set_branding('browser', logo => '');")
        served.world.settle()


def test_the_pages_of_a_sign_in_work_by_keyboard_and_with_large_text(browser, served):
    """The address field has the focus or gets it by Tab; Enter goes on; at 200 % the text is whole."""
    page = Page(browser, width=1280)
    clear(page)
    email = served.user()
    page.open(served.url())

    def key(name, code, text=""):
        for kind in ("keyDown", "keyUp"):
            page.send("Input.dispatchKeyEvent", {"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, **(
                {"text": text} if text and kind == "keyDown" else {})})

    def reach(selector):
        for _ in range(30):
            if page.evaluate(f"document.activeElement?.matches({selector!r})"):
                return
            key("Tab", 9)
        raise AssertionError(f"{selector} is not reached by Tab")

    def whole():
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        hidden = page.evaluate("[...document.querySelectorAll('main button, main label, h1')].filter(e => e.offsetParent && "
                               "(e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflow !== 'visible')).map(e => e.outerHTML)")
        assert hidden == []

    page.send("Page.setBypassCSP", {"enabled": True})
    page.send("Page.bringToFront")
    for selector, text, following in (("#address", email, "code"), ("#code", None, None)):
        whole()
        reach(selector)
        page.send("Input.insertText", {"text": text or served.code(email)})
        page.evaluate("window.__old = true")
        key("Enter", 13, "\r")
        page.wait("window.__old === undefined && document.readyState === 'complete'", timeout=30)
        if following:
            assert step(page) == following
    if step(page) == "offer-passkey":
        whole()
        reach("button[value=skip]")
        key("Enter", 13, "\r")
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'")
