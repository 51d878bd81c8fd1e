"""Forms, cookies, tabs and texts of the pages, case by case: beyond what test_pages.py holds."""

import gzip
import json

import pytest

from harness import wire
from harness.codeflow import Flow, hosted
from harness.control import Control
from harness.pages_client import PageBrowser
from harness.sign_in_pages import counted_case, positive_control, Session  # pylint: disable=unused-import  # fixtures
from test_totp import Protected

SESSION, BROWSER = "__Host-postern-session", "__Host-postern-browser"
MARKUP = '"><script>alert(1)</script>{{7*7}}'
HOSTILE = MARKUP + "\u202e"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm(), offer_passkey=False)


def at(realm, step):
    """A browser that stands at a step."""
    if step == "second-factor":
        user = Protected(realm)
        session = Session(realm)
        session.send(user.email)
        session.browser.submit("continue", code=realm.world.mailbox.wait(user.email, count=2, kind="code").code)
        return session
    session, email = Session(realm), realm.user()
    if step in ("code", "link"):
        session.send(email)
        realm.world.mailbox.wait(email, kind="code")
    if step == "link":
        session.browser.submit("link")
        realm.world.mailbox.wait(email, kind="link")
    if step == "continue-as":
        session.sign_in(email)
        session.begin(prompt="select_account")
    assert session.browser.page.step == step, session.browser.answer
    return session


STEPS = ["address", "code", "link", "second-factor", "continue-as"]


@pytest.mark.parametrize("step", STEPS)
def test_cancel_leaves_from_every_step(realm, step):
    """The client is told, and only of the refusal."""
    members = at(realm, step).browser.submit("cancel").members
    assert members["error"] == "access_denied" and "code" not in members and members["iss"] == realm.issuer


@pytest.mark.parametrize("step", STEPS)
def test_no_step_is_skipped(realm, step):
    """A button of another step, or a field of one, is 400; the step goes on afterwards."""
    browser = at(realm, step).browser
    page, url = browser.page, browser.url
    has = {button for button in page.buttons if button}
    for action in ("allow", "skip", "create", "other-account", "register", "restart", "continue", "code", "passkey", "deny", "confirm", "", "CONTINUE"):
        if action in has:
            continue
        browser.page = page
        browser.submit(action, fields={**page.fields, "action": action})
        assert browser.left_for is None and (browser.answer.status, browser.page.error) == (400, "invalid_request"), (action, browser.answer)
    foreign = {"attestation": "{}"} if step != "offer-passkey" else {}
    browser.page = page
    browser.submit("continue", fields={**page.fields, "action": "continue", **foreign})
    assert browser.answer.status == 400
    assert browser.open(url).page.step == step


@pytest.mark.parametrize("name", ["action", "tx", "address"])
def test_a_repeated_field_is_refused(realm, name):
    """Also with the same value."""
    session, email = Session(realm), realm.user()
    pairs = [*{**session.browser.page.fields, "address": email, "action": "continue"}.items()]
    pairs.append((name, dict(pairs)[name]))
    session.browser.submit("continue", fields=pairs)
    assert session.browser.answer.status == 400 and not realm.world.mailbox.to(email)


@pytest.mark.parametrize("what", ["json", "multipart", "long", "gzip", "text"])
def test_what_is_no_form_gets_a_page(realm, what):
    """Nothing is done; the page is HTML."""
    session, email = Session(realm), realm.user()
    fields = {**session.browser.page.fields, "address": email, "action": "continue"}
    body, headers = wire.form_body(fields), {"Content-Type": wire.FORM}
    if what == "json":
        body, headers = json.dumps(fields).encode(), {"Content-Type": "application/json"}
    elif what == "text":
        headers = {"Content-Type": "text/plain"}
    elif what == "multipart":
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        body = b"".join(b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (k.encode(), v.encode())
                        for k, v in fields.items()) + b"--b--\r\n"
    elif what == "gzip":
        body, headers = gzip.compress(body), {**headers, "Content-Encoding": "gzip"}
    else:
        body = body + b"&pad=" + b"x" * 65536
    answer = wire.exchange(session.flow.app.node.port, "POST", "/sign-in", {
        "Host": session.flow.host, "Sec-Fetch-Site": "same-origin", **session.browser.cookie_header(), **headers}, body)
    assert answer.status in (400, 413, 415), answer
    assert answer.header("content-type").startswith("text/html") and b"data-error" in answer.body, answer
    assert not realm.world.mailbox.to(email)


@pytest.mark.parametrize("what", ["another browser", "no cookie", "changed", "another realm", "another host", "cut"])
def test_a_form_is_its_browsers(realm, world, what):
    """A planted state or cookie does nothing."""
    session, stranger, email = Session(realm), Session(realm), realm.user()
    tx, cookies, host = session.browser.page.fields["tx"], dict(session.browser.cookies), session.flow.host
    errors = {"invalid_request"}
    if what == "another browser":
        cookies, errors = stranger.browser.cookies, {"foreign_form"}
    elif what == "no cookie":
        cookies, errors = {}, {"cookies_needed"}
    elif what == "changed":
        tx = tx[:40] + ("A" if tx[40] != "A" else "B") + tx[41:]
    elif what == "cut":
        tx = tx[:-4]
    elif what == "another host":
        host = realm.put_app("elsewhere", ["app"])
    else:
        tx = Session(hosted(world.realm())).browser.page.fields["tx"]
    browser = PageBrowser(session.flow.app.node, host)
    browser.cookies, browser.page = dict(cookies), session.browser.page
    browser.submit("continue", fields={"tx": tx, "address": email, "action": "continue"})
    assert browser.answer.status == 400 and browser.page.error in errors, browser.answer
    assert not realm.world.mailbox.to(email)
    if what == "another host":
        world.admin.call("delete_app", realm.slug, "elsewhere")
        world.settle()


def test_no_session_is_fixed_beforehand(realm):
    """A value that a browser was given does not become a session; each sign-in has a new one, and the former is dead."""
    planted = "pss_" + "P" * 43
    session, email = Session(realm), realm.user()
    session.browser.cookies[SESSION] = planted
    session.begin()
    values = []
    for count in range(1, 4):
        session.begin(prompt="login")
        session.send(email)
        session.browser.submit("continue", code=realm.world.mailbox.wait(email, count, kind="code").code)
        assert "code" in session.browser.members
        values.append(session.browser.cookies[SESSION])
    assert len({planted, *values}) == 4
    for value in (planted, *values[:-1]):
        former = Flow(realm)
        former.cookie = value
        assert "error=login_required" in former.authorize(prompt="none").header("location")


def test_a_second_tab_that_stands_at_its_code_asks(realm):
    """Whatever the other tab did meanwhile: its form, its reload, its way back."""
    email = realm.user()
    one = Session(realm)
    two = Session(realm, "app-2", browser=PageBrowser(one.flow.app.node, one.flow.host))
    two.browser.cookies = one.browser.cookies
    two.begin()
    two.send(email)
    url, page, code = two.browser.url, two.browser.page, two.code(email)
    one.send(email)
    one.browser.submit("continue", code=realm.world.mailbox.wait(email, count=2, kind="code").code)
    assert "code" in one.browser.members
    two.browser.page = page
    assert two.browser.submit("continue", code=code).page.step == "continue-as"
    assert two.browser.open(url).page.step == "continue-as"
    assert "code" in two.browser.submit("continue").members


def test_the_way_back_after_success_asks_and_repeats_nothing(realm):
    """The page of the code, shown again, leads to the question; sent again, to the same code, and to the question once that is used."""
    session, email = Session(realm), realm.user()
    session.send(email)
    url, page, code = session.browser.url, session.browser.page, session.code(email)
    session.browser.submit("continue", code=code)
    first = session.browser.members["code"]
    assert session.browser.open(url).page.step == "continue-as"
    session.browser.page = page
    assert session.browser.submit("continue", code=code).members["code"] == first
    assert session.flow.exchange(first).status == 200
    session.browser.page = page
    assert session.browser.submit("continue", code=code).page.step == "continue-as"
    assert len(realm.world.mailbox.to(email)) == 1


@pytest.mark.parametrize("step", STEPS)
def test_a_reload_shows_the_same_step_and_sends_nothing(realm, step):
    """Ten times; GET and HEAD."""
    browser = at(realm, step).browser
    before = len(realm.world.mailbox.mails)
    for _ in range(10):
        assert browser.open(browser.url).page.step == step
        answer = wire.exchange(browser.node.port, "HEAD", browser.url, {"Host": browser.host, **browser.cookie_header()})
        assert (answer.status, answer.body) == (200, b"")
    Control(realm).check()
    assert len(realm.world.mailbox.mails) == before + 1, "the control's own code and nothing else"


def test_over_a_limit_a_page_keeps_what_was_typed(world):
    """429 with Retry-After; the same form succeeds when there is room again."""
    made = hosted(world.realm(), offer_passkey=False)
    made.limit("native-otp", "target", 1, per="1 minute", burst=1)
    email = made.user()
    first = Session(made)
    first.send(email)
    assert first.browser.page.step == "code"
    session = Session(made)
    session.send(email)
    answer, page = session.browser.answer, session.browser.page
    assert answer.status == 429 and int(answer.header("retry-after")) > 0
    assert (page.step, page.fields["address"]) == ("address", email)
    made.limit("native-otp", "target", 1000, per="1 minute", burst=1000)
    session.browser.submit("continue", address=email)
    assert session.browser.page.step == "code"


def test_many_or_long_cookies_do_no_harm(realm):
    """A hundred foreign ones are skipped; too many bytes are refused; two sessions are none."""
    session, email = Session(realm), realm.user()
    session.sign_in(email)
    mine = f"{SESSION}={session.browser.cookies[SESSION]}"
    hundred = "; ".join(f"c{number}=v" for number in range(100))
    flow = session.flow
    assert "code=" in flow.authorize(prompt="none", headers={"Cookie": f"{hundred}; {mine}"}).header("location")
    assert flow.authorize(prompt="none", headers={"Cookie": "a=" + "x" * 17_000 + "; " + mine}).status == 431
    twice = flow.authorize(prompt="none", headers={"Cookie": f"{mine}; {mine[:-1]}x"})
    assert "error=login_required" in twice.header("location")
    assert "code=" in flow.authorize(prompt="none", headers={"Cookie": f"{BROWSER}=\"; x=; =; ;{mine}"}).header("location")


def test_only_pages_set_cookies_and_both_have_an_age(realm):
    """Neither redirects to clients nor JSON; ASWebAuthenticationSession sees no session cookies."""
    session, email = Session(realm), realm.user()
    first = session.browser.answer.header("set-cookie")
    assert first is None or first.startswith(BROWSER)
    fresh = PageBrowser(session.flow.app.node, session.flow.host)
    fresh.open("/connect/authorize?" + wire.form_body(session.flow.request()).decode())
    line = fresh.answer.header("set-cookie")
    assert line.startswith(BROWSER + "=") and "; Max-Age=86400;" in line and line.endswith("; Path=/; HttpOnly; SameSite=Lax; Secure")
    session.sign_in(email)
    code = session.browser.members["code"]
    flow = session.flow
    flow.cookie = session.browser.cookies[SESSION]
    for answer in (flow.authorize(), flow.exchange(code), flow.push(), flow.app.get("/.well-known/openid-configuration")):
        assert answer.header("set-cookie") is None, answer


def test_what_a_stranger_typed_or_an_administrator_named_is_only_text(realm, world):
    """In the address, the hint, the state, the client's name and the brand."""
    world.admin.call("put_client", realm.slug, realm.client("app-2"), display_name=MARKUP)
    world.admin.run(f"SELECT admin.set_branding('{realm.slug}', product_name => '{MARKUP}');")
    world.settle()
    try:
        session = Session(realm, "app-2", state=HOSTILE, nonce=HOSTILE, login_hint=HOSTILE, ui_locales=HOSTILE)
        bodies = [session.browser.answer.body]
        session.send(HOSTILE + "x" * 10_000)
        bodies.append(session.browser.answer.body)
        assert session.browser.page.error == "address_invalid" and len(session.browser.page.fields["address"]) <= 254
        bodies.append(session.flow.authorize(state=HOSTILE, response_mode="form_post", prompt="none").body)
        bodies.append(session.flow.authorize(redirect_uri=HOSTILE).body)
        for body in bodies:
            assert b"<script>alert" not in body and b"alert(1)</script>" not in body
            assert b"{{7*7}}" in body, "shown as it is"
    finally:
        world.admin.call("put_client", realm.slug, realm.client("app-2"), display_name="App")
        world.admin.run(f"SELECT admin.set_branding('{realm.slug}', product_name => 'Realm');")
        world.settle()


@pytest.mark.parametrize("path", ["/sign-in", "/connect/logout", "/magic-login", "/undo/AAAA"])
@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}])
def test_no_page_takes_a_form_from_elsewhere(realm, path, headers):
    """Not sign-out, nor a link's page, nor the page that takes a factor away."""
    answer = wire.exchange(realm.world.node.port, "POST", path, {
        "Host": realm.host, "Content-Type": wire.FORM, **headers},
        b"tx=x&action=continue&userId=x&token=x&number=42")
    assert answer.status == 400 and b'data-error="foreign_form"' in answer.body, answer


@pytest.mark.parametrize("typed", ["\U0001F468\u200D\U0001F469\u200D\U0001F467" * 254, "e" + "\u0301" * 3000, "\u20ac" * 254])
def test_an_address_of_long_characters_is_no_dead_end(realm, typed):
    """What is kept of it is counted in bytes: it goes through the page's address once more."""
    session = Session(realm)
    session.send(typed)
    assert (session.browser.page.step, session.browser.page.error) == ("address", "address_invalid")
    assert "code" in session.sign_in(realm.user()).members
