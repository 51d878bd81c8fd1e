"""Mail scanners and prefetching browsers: opening pages, with scripts or without, sends nothing and confirms nothing."""

import re
import time

import pytest

from harness import wire
from harness.app import NativeApp, bearer
from harness.browser import Page
from harness.links import Links
from test_pages_browser import Client, browser, clear, press, served, step  # pylint: disable=unused-import  # fixtures

pytestmark = pytest.mark.slow
TIMES = 50


#: What a visit must not change: accounts, what was asked for, messages, sessions. Keys are the server's own affair.
_TABLES = ("sign_in_request", "authorization_code", "browser_session", "consent", "login_code", "login_link", "message_outbox", "passkey",
           "pushed_request", "session", "totp_factor", "undo_link", "user_account", "user_identifier")


def state(world):
    """Every row of them."""
    rows = {(name, row) for name in _TABLES for row, in world.cluster.sql(f"SELECT md5(t::text) FROM postern.{name} t")}
    return rows | {("audit", row) for row, in world.cluster.sql("SELECT id FROM postern.audit_event WHERE user_id IS NOT NULL")}


def added(world, before):
    """Rows that are new or changed since. The sweeper may have removed some."""
    return state(world) - before


def native(served):
    """The realm's native app."""
    return NativeApp(served.node, served.world.mailbox, "localhost", "browser-app")


@pytest.fixture
def targets(served):
    """A link's page, the page of an undo link, authorization requests with and without a known address, and a sign-out."""
    world, app = served.world, native(served)
    email = served.user()
    world.admin.call("grant_permission", "browser", "browser-app", variadic=["gt:urn:cocoar:magic", "gt:urn:cocoar:passkey"])
    world.settle()
    link = Links(app).link(email)
    tokens = app.sign_in(served.user(), scope="openid")
    app.enrol_totp(tokens["access_token"])
    owner = app.userinfo(tokens["access_token"]).json()["sub"]
    address = world.cluster.value(f"SELECT email FROM postern.user_account WHERE id = '{owner}'")
    undo = re.search(r"http://[^/\s]+(/undo/[A-Za-z0-9_-]+)", world.mailbox.wait(address, kind="notice").text).group(1)
    world.settle_messages()
    return {
        "link": link.target, "undo": undo, "authorize": served.url()[len(served.origin):],
        "authorize with a hint": served.url(login_hint=email)[len(served.origin):],
        "authorize, create": served.url(prompt="login")[len(served.origin):], "sign-out": "/connect/logout",
    }, link, tokens, app


def test_fifty_visits_of_every_page_change_nothing(served, targets):
    """GET and HEAD; afterwards the link is alive."""
    pages, link, tokens, app = targets
    before, mails = state(served.world), len(served.world.mailbox.mails)
    for name, target in pages.items():
        for number in range(TIMES):
            answer = wire.exchange(served.node.port, ("GET", "HEAD")[number % 2], target, {"Host": f"localhost:{served.node.port}"})
            assert answer.status == 200, (name, answer)
    assert state(served.world) == before and len(served.world.mailbox.mails) == mails
    assert app.get("/connect/totp", bearer(tokens["access_token"])).status in (200, 404, 405)
    assert Links(app).choose(link, link.number).status == 200


def test_a_browser_that_runs_scripts_changes_nothing_either(browser, served, targets):
    """A scanner with Chromium: it opens each page and lets its scripts run."""
    pages, link, _, app = targets
    page = Page(browser)
    before, mails = state(served.world), len(served.world.mailbox.mails)
    for target in pages.values():
        for _ in range(TIMES // 10):
            clear(page)
            # A scanner holds no passkey: conditional mediation finds nothing.
            page.open(served.origin + target)
    assert state(served.world) == before and len(served.world.mailbox.mails) == mails
    assert Links(app).choose(link, link.number).status == 200


def test_a_reload_of_every_step_sends_nothing(browser, served):
    """Address, code and link, ten times each, and the way back and forth between them."""
    page, email = Page(browser), served.user()
    clear(page)
    page.open(served.url())
    page.type("#address", email)
    press(page, "continue")
    assert step(page) == "code"
    served.code(email)
    press(page, "link")
    assert step(page) == "link"
    served.world.mailbox.wait(email, kind="link")
    for _ in range(10):
        page.evaluate("window.__old = true")
        page.send("Page.reload")
        page.wait("window.__old === undefined && document.readyState === 'complete'")
        assert step(page) == "link"
    for script, wanted in (("history.back()", "code"), ("history.back()", "address"), ("history.forward()", "code")):
        page.evaluate(script)
        page.wait(f"document.querySelector('main')?.dataset.step === '{wanted}'")
    assert len(served.world.mailbox.to(email)) == 2
    code = served.world.mailbox.to(email, "code")[-1].code
    page.type("#code", code)
    press(page, "continue")
    assert step(page) in ("offer-passkey", None) or page.text("h1") == "Thanks"


def test_no_page_can_be_framed(browser, served):
    """Neither in a frame nor as an object of a client's page."""
    page = Page(browser)
    clear(page)
    page.open(served.redirect.rsplit("/", 1)[0] + "/other")
    page.evaluate(f"document.body.innerHTML = '<iframe src=\"{served.url()}\"></iframe><object data=\"{served.url()}\"></object>'")
    deadline = time.monotonic() + 10
    while len([one for one in page.complaints() if "frame-ancestors" in str(one) or "X-Frame-Options" in str(one)]) < 1:
        assert time.monotonic() < deadline, page.complaints()
        page.evaluate("1")
        time.sleep(0.05)
    inner = page.evaluate("[...document.querySelectorAll('iframe')].map(f => { try { return f.contentDocument?.querySelector('main')?.dataset.step ?? null }"
                          " catch { return null } })")
    assert inner == [None]


def test_nothing_of_a_sign_in_is_in_the_referrer_of_a_client(browser, served):
    """The client's page learns at most the origin it came from."""
    page, email = Page(browser), served.user()
    clear(page)
    Client.got.clear()
    page.open(served.url(prompt="login"))
    page.type("#address", email)
    press(page, "continue")
    page.type("#code", served.code(email))
    press(page, "continue")
    if step(page) == "offer-passkey":
        press(page, "skip")
    page.wait("document.querySelector('h1')?.innerText === 'Thanks'")
    referrer = page.evaluate("document.referrer")
    assert "tx" not in referrer and "code" not in referrer and "sign-in" not in referrer, referrer


def test_a_realm_on_localhost_has_cookies_without_prefix(served):
    """And an https realm never sets such: its names begin with __Host-."""
    answer = wire.exchange(served.node.port, "GET", served.url()[len(served.origin):], {"Host": f"localhost:{served.node.port}"})
    line = answer.header("set-cookie")
    assert line.startswith("postern-browser=") and "Secure" not in line and "HttpOnly" in line and "SameSite=Lax" in line
