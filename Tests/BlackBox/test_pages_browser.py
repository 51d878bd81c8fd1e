"""The pages in a real browser: every step in both colour schemes at two widths, scripts, passkeys, accessibility."""

import base64
import http.server
import threading
import urllib.parse

import pytest

from harness import report, totp
from harness.app import NativeApp
from harness.browser import Page, chromium
from harness.codeflow import challenge_of
from harness.realm import call
from harness.settings import PEERS, REPOSITORY

PICTURES = REPOSITORY / ".test-output" / "pages"
VERIFIER = "v" * 43

pytestmark = pytest.mark.slow


class Client(http.server.BaseHTTPRequestHandler):
    """A web client's redirect URI; it remembers what it got."""

    got = []

    def do_GET(self):
        """A response by query."""
        if self.path.startswith("/cb"):
            Client.got.append(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query)))
        self._thank()

    def do_POST(self):
        """A response by form."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        Client.got.append(dict(urllib.parse.parse_qsl(body)))
        self._thank()

    def _thank(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Client</title><h1>Thanks</h1>")

    def log_message(self, *_):
        """Quiet."""


@pytest.fixture(scope="module")
def browser():
    """One Chromium."""
    with chromium(PICTURES / "chromium.log") as made:
        yield made


class Served:
    """A realm of localhost with pages, a web client, and the address of a sign-in."""

    def __init__(self, world):
        self.world = world
        self.node = world.start_node()
        self.origin = f"http://localhost:{self.node.port}"
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Client)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.redirect = f"http://localhost:{self.server.server_port}/cb"
        world.admin.run(
            call("put_realm", "browser", primary_domain="localhost", public_origin=self.origin, display_name="Café Öresund & <Co>"),
            call("set_native_grants", "browser", enabled=True), call("set_hosted", "browser", True),
            call("set_code_policy", "browser", resend_cooldown="0"),
            call("put_client", "browser", "web", "confidential", display_name="Example Shop"),
            call("put_client", "browser", "browser-app"),
            call("grant_permission", "browser", "browser-app", variadic=["gt:urn:cocoar:otp", "gt:refresh_token"]),
            call("grant_permission", "browser", "web", variadic=[
                "gt:authorization_code", "gt:refresh_token", "scp:profile", "scp:email"]),
            call("put_redirect_uri", "browser", "web", self.redirect),
        )
        world.settle()
        self.numbers = iter(range(1000))

    def user(self):
        """A new user's address."""
        email = f"ada.lovelace{next(self.numbers)}@mail.example"
        self.world.admin.call("put_user", "browser", email, email_verified=True)
        return email

    def url(self, **changes):
        """An authorization request."""
        parameters = {
            "client_id": "web", "redirect_uri": self.redirect, "response_type": "code", "scope": "openid profile email offline_access",
            "state": "st", "code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256", **changes}
        return f"{self.origin}/connect/authorize?" + urllib.parse.urlencode(parameters)

    def code(self, email):
        """The newest code."""
        return self.world.mailbox.wait(email, kind="code").code


@pytest.fixture(scope="module")
def served(browser_world):
    """The realm."""
    made = Served(browser_world)
    yield made
    made.node.stop()
    made.server.shutdown()


def clear(page):
    """A browser without cookies."""
    page.send("Network.clearBrowserCookies")


def press(page, action):
    """A button of the primary form, and the page that follows."""
    page.send("Page.bringToFront")  # a tab behind another gets no clicks while the machine is busy
    page.evaluate("window.__old = true")
    page.click(f"button[value='{action}']")
    page.wait("window.__old === undefined && document.readyState === 'complete'", timeout=30)


def step(page):
    """`data-step`."""
    return page.evaluate("document.querySelector('main')?.dataset.step ?? null")


def axe():
    """axe-core out of PyPI's axe-playwright-python; empty where it is not installed."""
    found = PEERS / "axe_playwright_python" / "axe.min.js" if PEERS else None
    if found is None or not found.is_file():
        report.say("pages: axe is absent (pip install --no-deps --target $POSTERN_PEERS axe-playwright-python)")
        return ""
    return found.read_text(encoding="utf-8")


def picture(page, path, width):
    """The whole page, as high as it is: a capture beyond the viewport is shifted where text runs from right to left."""
    height = max(760, page.evaluate("document.documentElement.scrollHeight"))
    page.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    path.write_bytes(base64.b64decode(page.send("Page.captureScreenshot", {"format": "png"})["data"]))


def look(page, name, problems):
    """Pictures of a page in both schemes at two widths, none of which scrolls sideways; axe on each."""
    script = axe()
    page.send("Page.bringToFront")
    for dark in (False, True):
        for width in (320, 1280):
            page.send("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": 760, "deviceScaleFactor": 1, "mobile": False})
            page.send("Emulation.setEmulatedMedia", {"features": [
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                {"name": "prefers-reduced-motion", "value": "reduce"}]})
            picture(page, PICTURES / f"{name}-{'dark' if dark else 'light'}-{width}.png", width)
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                problems.append(f"{name} {width}: scrolls sideways")
            if script:
                page.evaluate(script + ";0")
                found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
                                      ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join(' | ')))")
                problems += [f"{name} {width} {dark}: {one}" for one in found]
    small = page.evaluate("[...document.querySelectorAll('button,a,input:not([type=hidden]),summary')].filter(e => e.offsetParent && "
                          "Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height) < 20).map(e => e.outerHTML)")
    problems += [f"{name}: small {one}" for one in small]


@pytest.mark.parametrize("locale", ["en", "de", "ar"])
def test_every_step_in_both_schemes_at_two_widths(browser, served, locale):
    """Pictures of every step; nothing scrolls sideways, axe finds nothing, the console is silent."""
    problems = []
    admin = served.world.admin
    page = Page(browser)
    page.send("Page.setBypassCSP", {"enabled": True})
    clear(page)
    email = served.user()
    page.open(served.url(ui_locales=locale))
    assert step(page) == "address"
    page.wait("!document.querySelector('button[value=passkey]').hidden")
    look(page, f"{locale}-address", problems)
    page.evaluate("document.querySelector('form').noValidate = true")
    press(page, "continue")
    look(page, f"{locale}-address-invalid", problems)
    page.type("#address", email)
    press(page, "continue")
    assert step(page) == "code"
    look(page, f"{locale}-code", problems)
    page.type("#code", "000000")
    press(page, "continue")
    look(page, f"{locale}-code-wrong", problems)
    press(page, "resend")
    assert page.text("[role=status]")
    look(page, f"{locale}-code-again", problems)
    press(page, "link")
    assert step(page) == "link"
    look(page, f"{locale}-link", problems)
    link = served.world.mailbox.wait(email, kind="link").link
    other = Page(browser)
    other.send("Page.setBypassCSP", {"enabled": True})
    other.send("Network.enable")
    other.send("Network.setExtraHTTPHeaders", {"headers": {"Accept-Language": locale}})
    other.open(link)
    assert step(other) == "continue-link"
    look(other, f"{locale}-continue-link", problems)
    press(page, "code")
    page.type("#code", served.world.mailbox.wait(email, count=3, kind="code").code)
    press(page, "continue")
    assert step(page) == "offer-passkey"
    look(page, f"{locale}-offer-passkey", problems)
    press(page, "skip")
    assert page.text("h1") == "Thanks"
    admin.call("put_client", "browser", "web", consent="explicit")
    served.world.settle()
    page.open(served.url(ui_locales=locale))
    assert step(page) == "consent"
    look(page, f"{locale}-consent", problems)
    admin.call("put_client", "browser", "web", consent="implicit")
    served.world.settle()
    page.open(served.url(ui_locales=locale, prompt="select_account"))
    assert step(page) == "continue-as"
    look(page, f"{locale}-continue-as", problems)
    page.open(f"{served.origin}/connect/logout?ui_locales={locale}")
    assert step(page) == "sign-out"
    look(page, f"{locale}-sign-out", problems)
    press(page, "continue")
    look(page, f"{locale}-signed-out", problems)
    page.open(served.url(redirect_uri="https://x.example/"))
    look(page, f"{locale}-error", problems)
    clear(other)
    other.open(link)
    assert step(other) == "confirm-link"
    look(other, f"{locale}-confirm-link", problems)
    assert not problems, "\n".join(problems)


def test_the_other_steps(browser, served):
    """Registration, names, the second factor, and a page without a brand and with one."""
    problems = []
    admin, page = served.world.admin, Page(browser)
    page.send("Page.setBypassCSP", {"enabled": True})
    clear(page)
    app = NativeApp(served.node, served.world.mailbox, "localhost", "browser-app")
    known = served.user()
    secret, _ = app.enrol_totp(app.sign_in(known, scope="openid")["access_token"])
    admin.run(
        call("put_app", "browser", "shop", display_name="The Shop", registration="ExplicitEndpoint", client_ids=["web"]),
        call("set_registration_fields", "browser", firstname="Required", lastname="Optional"),
        "SELECT admin.set_branding('browser', accent => '#b0246b', terms_uri => 'https://shop.example/terms', "
        "privacy_uri => 'https://shop.example/privacy', support_uri => 'https://shop.example/help', "
        "logo => convert_to('<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 160 40\"><rect width=\"40\" height=\"40\" rx=\"8\" "
        "fill=\"#b0246b\"/><text x=\"52\" y=\"28\" font-family=\"sans-serif\" font-size=\"24\" fill=\"#808890\">Shop</text></svg>', 'UTF8'));")
    served.world.settle()
    try:
        page.open(served.url())
        look(page, "brand-address", problems)
        press(page, "register")
        assert step(page) == "register"
        look(page, "brand-register", problems)
        page.type("#address", served.user())
        page.type("#first-name", "Ada")
        page.evaluate("document.querySelector('form').noValidate = true")
        press(page, "continue")
        assert page.evaluate("document.activeElement.name") == "terms", "the focus is at the field that is wrong"
        assert page.evaluate("document.querySelector('#first-name').value") == "Ada"
        look(page, "brand-register-wrong", problems)
        admin.call("put_app", "browser", "shop", registration="JitOnOtp")
        served.world.settle()
        email = f"new{next(served.numbers)}@mail.example"
        page.open(served.url())
        page.type("#address", email)
        press(page, "continue")
        page.type("#code", served.code(email))
        press(page, "continue")
        assert step(page) == "profile"
        look(page, "brand-profile", problems)
        page.type("#first-name", "Ada")
        page.click("input[type=checkbox]")
        press(page, "continue")
        assert step(page) == "offer-passkey"
        press(page, "skip")
        assert page.text("h1") == "Thanks"
        clear(page)
        page.open(served.url())
        page.type("#address", known)
        press(page, "continue")
        page.type("#code", served.world.mailbox.wait(known, count=2, kind="code").code)
        press(page, "continue")
        assert step(page) == "second-factor"
        look(page, "brand-second-factor", problems)
        page.type("#totp", totp.code(secret, 1))
        press(page, "continue")
        assert step(page) in ("offer-passkey", None)
    finally:
        admin.run(call("delete_app", "browser", "shop"))
        served.world.settle()
    assert not problems, "\n".join(problems)


def with_passkey(browser, served):
    """A page whose user has signed in by code and taken the offered passkey, and whose cookies are gone."""
    page = Page(browser)
    page.send("Network.enable")
    clear(page)
    email = served.user()
    page.open(served.url())
    page.type("#address", email)
    press(page, "continue")
    page.type("#code", served.code(email))
    press(page, "continue")
    assert step(page) == "offer-passkey"
    page.click("button[value=create]")
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'", timeout=30)
    assert len(page.credentials()) == 1
    clear(page)
    Client.got.clear()
    return page


def test_a_passkey_is_created_and_signs_in(browser, served):
    """Offered after a sign-in by code; then the button signs in, and so does the field by conditional mediation."""
    page = with_passkey(browser, served)
    page.open(served.url())
    # The virtual authenticator answers the conditional request of the page at once.
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'", timeout=30)
    assert set(Client.got[-1]) == {"code", "state", "iss"}
    assert not [one for one in page.complaints() if "favicon" not in str(one)], page.complaints()


def test_a_page_stays_when_its_passkey_is_refused_and_renews_an_old_ceremony(browser, served):
    """A person who is not verified is back at the page, with what was typed; six minutes later the button signs in by a new ceremony."""
    page = with_passkey(browser, served)
    page.send("WebAuthn.setUserVerified", {"authenticatorId": page.authenticator, "isUserVerified": False})
    page.open(served.url())
    page.evaluate("""(() => { const get = navigator.credentials.get.bind(navigator.credentials); window.refused = 0;
        navigator.credentials.get = options => get(options).catch(error => { window.refused++; throw error; }); })()""")
    page.type("#address", "typed@mail.example")
    page.click("button[value=passkey]")
    page.wait("window.refused > 0", timeout=30)
    assert step(page) == "address" and not Client.got
    assert page.evaluate("document.querySelector('#address').value") == "typed@mail.example"
    page.wait("[...document.querySelectorAll('[role=alert]')].some(alert => alert.checkVisibility() && alert.textContent.includes('did not work'))")
    assert page.evaluate("document.querySelector('form[data-passkey]').elements.assertion.value") == ""
    page.send("WebAuthn.setUserVerified", {"authenticatorId": page.authenticator, "isUserVerified": True})
    fetched = len([one for one in browser.events if one.get("params", {}).get("type") == "Fetch"])
    page.evaluate("(() => { const now = Date.now; Date.now = () => now() + 360000; })()")
    page.click("button[value=passkey]")
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'", timeout=30)
    assert set(Client.got[-1]) == {"code", "state", "iss"}
    assert len([one for one in browser.events if one.get("params", {}).get("type") == "Fetch"]) > fetched, "the ceremony was not renewed"


def test_form_post_leaves_by_itself(browser, served):
    """The script posts the response."""
    page = Page(browser)
    clear(page)
    Client.got.clear()
    page.open(served.url(response_mode="form_post", prompt="none"))
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'")
    assert Client.got[-1]["error"] == "login_required"


def test_a_page_waits_for_its_link(browser, served):
    """The link is confirmed elsewhere; the page notices and offers to go on."""
    page = Page(browser)
    clear(page)
    email = served.user()
    page.open(served.url())
    page.type("#address", email)
    press(page, "continue")
    press(page, "link")
    number = page.text(".shown strong")
    assert page.evaluate("document.querySelector('button[value=continue]').disabled")
    link = served.world.mailbox.wait(email, kind="link").link
    # Another browser: no cookie of this one.
    user, token = (urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)[name][0] for name in ("userId", "token"))
    app = NativeApp(served.node, served.world.mailbox, "localhost", "browser-app")
    answer = app.post("/magic-login", {"userId": user, "token": token, "number": number})
    assert answer.status == 200, answer
    page.wait("document.querySelector('button[value=continue]')?.disabled === false", timeout=30)
    assert page.text("h1") == "The link was opened" and page.evaluate("document.title").startswith("The link was opened")
    assert not page.evaluate("document.querySelector('.shown').checkVisibility()"), "the number is of no use any more"
    press(page, "continue")
    assert step(page) == "offer-passkey" or page.text("h1") == "Thanks"


def test_a_page_whose_link_is_refused_offers_a_new_one(browser, served):
    """The script hears of it: another title, and the button for a new link first."""
    page = Page(browser)
    clear(page)
    email = served.user()
    page.open(served.url())
    page.type("#address", email)
    press(page, "continue")
    press(page, "link")
    link = served.world.mailbox.wait(email, kind="link").link
    user, token = (urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)[name][0] for name in ("userId", "token"))
    app = NativeApp(served.node, served.world.mailbox, "localhost", "browser-app")
    assert app.post("/magic-login", {"userId": user, "token": token, "action": "deny"}).status == 200
    page.wait("document.querySelector('h1').textContent === 'The sign-in was refused'", timeout=30)
    assert page.evaluate("document.querySelector('button.primary:not([hidden])').textContent") == "Send a new link"
    assert not page.evaluate("document.querySelector('button[value=continue]').checkVisibility()")
    press(page, "resend")
    assert page.text("h1") == "Open the link in your mail"


def test_everything_but_passkeys_works_without_script(browser, served):
    """A code signs in with scripts switched off; the passkey button is not shown."""
    page = Page(browser)
    clear(page)
    page.send("Emulation.setScriptExecutionDisabled", {"value": True})
    email = served.user()
    page.open(served.url())
    assert page.evaluate("document.querySelector('button[value=passkey]').hidden")
    page.type("#address", email)
    page.click("button[value=continue]")
    page.wait("document.querySelector('main')?.dataset.step === 'code'")
    page.type("#code", served.code(email))
    page.click("button[value=continue]")
    page.wait("document.querySelector('main')?.dataset.step === 'offer-passkey'")
    page.click("button[value=skip]")
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'")
