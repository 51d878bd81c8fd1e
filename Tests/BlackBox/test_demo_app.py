"""The demo app in Chromium: every button, two tabs, both schemes at two widths, and what others may do to it."""

import contextlib
import json
import random
import time

import pytest

from harness import report, settings, totp
from harness.browser import CHROMIUM, Browser
from harness.demo_app import DemoApp, DemoTab
from test_pages_browser import axe, picture

OUTPUT = settings.REPOSITORY / ".test-output" / "demo-app"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def app(browser_world):
    """The realm and the app."""
    made = DemoApp(browser_world)
    yield made
    made.close()


@contextlib.contextmanager
def chromium(name):
    """A browser of its own."""
    if CHROMIUM is None:
        report.say("browser tests skipped: chromium is not installed (apt-get install chromium)")
        pytest.skip("chromium is not installed")
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with Browser(OUTPUT / f"{name}.log") as browser:
        yield browser


@pytest.fixture(name="browser")
def one_browser(request):
    """A browser of one test's own."""
    with chromium(request.node.name) as browser:
        yield browser


numbers = iter(range(1000))


@pytest.fixture
def email(app):
    """A user of one test's own."""
    return app.user(f"ada{next(numbers)}@mail.example")


def silent(tab, *but):
    """The console said nothing but that the server refused what the test had it refuse."""
    assert [one for one in tab.complaints() if not any(part in str(one) for part in but)] == []


def touch(tab, is_touched):
    """Whether the virtual authenticator is touched when it asks."""
    tab.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": tab.authenticator, "enabled": is_touched})


def test_a_code_signs_in_and_a_reload_is_signed_in(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    assert tab.text("#name") == "Hello, Ada"
    assert tab.text("#facts") == "Signed in by otp, bound to a key of this browser."
    tab.visit(app)
    tab.view("in")
    tab.press("signOut")
    tab.view("out")
    tab.expect("#notice", "You are signed out.")
    silent(tab)


def test_a_link_with_its_number_signs_in(app, browser, email):
    tab, mail = DemoTab(browser).visit(app), DemoTab(browser)
    tab.ask(email, "requestLink")
    tab.view("link")
    number = tab.text("#number")
    mail.open(app.mail(email, "link").link)
    mail.type("input[name=number]", number)
    mail.click("button.primary")
    tab.view("in")
    silent(tab, "400")  # the polls before


def test_what_was_asked_for_outlives_a_reload_and_can_be_given_up(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.ask(email)
    tab.view("code")
    tab.visit(app)
    tab.view("code")
    assert tab.text("#address") == email
    tab.press("resend")
    tab.expect("#notice", "mail is on its way")
    tab.redeem("000000")
    tab.expect("#notice", "This code is wrong or too old.")
    tab.press("back")
    tab.view("out")
    tab.visit(app)
    tab.view("out")
    silent(tab, "400")


def test_a_passkey_is_added_and_signs_in_by_button_and_by_the_form(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.press("addPasskey")
    tab.expect("#notice", "The passkey was added.")
    tab.press("addPasskey")
    tab.expect("#notice", "This device has a passkey of yours.")
    touch(tab, False)
    tab.press("signOut")
    tab.view("out")
    touch(tab, True)
    tab.visit(app)
    tab.view("in")
    assert "Signed in by" in tab.text("#facts")
    touch(tab, False)
    tab.press("signOut")
    tab.view("out")
    touch(tab, True)
    tab.press("passkey")
    tab.view("in")
    tab.click("#passkey button")
    tab.expect("#notice", "Removed.")
    assert tab.text("#passkey") == ""
    silent(tab)


def test_an_authenticator_app_is_set_up_asked_for_and_turned_off(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.press("beginTotp")
    tab.wait("document.querySelector('#secret').innerText !== ''")
    secret = tab.text("#secret").replace(" ", "")
    assert tab.evaluate("document.querySelector('#uri').href").startswith("otpauth://totp/")
    tab.fill("#first", totp.wrong(secret))
    tab.click("#enroll .primary")
    tab.expect("#notice", "The server refused")
    tab.fill("#first", totp.code(secret))
    tab.click("#enroll .primary")
    tab.expect("#notice", "The authenticator app will be asked for.")
    [_, recovery, *_] = tab.text("#recovery").splitlines()
    tab.press("signOut")
    tab.view("out")
    before = app.mails(email, "code")
    tab.ask(email)
    tab.redeem(app.mail(email, "code", before).code)
    tab.view("factor")
    tab.fill("#second", totp.wrong(secret))
    tab.click("#confirm .primary")
    tab.expect("#notice", "This code is wrong, or was used before.")
    tab.fill("#second", recovery)
    tab.click("#confirm .primary")
    tab.view("in")
    assert tab.text("#recovery") == "" and tab.evaluate("document.querySelector('#secret').textContent") == ""
    tab.press("endTotp")
    tab.expect("#notice", "not asked for any more")
    silent(tab, "400")


def test_a_link_asks_for_the_second_factor_too(app, browser, email):
    tab, mail = DemoTab(browser).visit(app), DemoTab(browser)
    tab.sign_in(app, email)
    tab.press("beginTotp")
    tab.wait("document.querySelector('#secret').innerText !== ''")
    secret = tab.text("#secret").replace(" ", "")
    tab.fill("#first", totp.code(secret))
    tab.click("#enroll .primary")
    tab.expect("#notice", "The authenticator app will be asked for.")
    [_, recovery, *_] = tab.text("#recovery").splitlines()
    tab.press("signOut")
    tab.view("out")
    tab.ask(email, "requestLink")
    tab.view("link")
    number = tab.text("#number")
    mail.open(app.mail(email, "link").link)
    mail.type("input[name=number]", number)
    mail.click("button.primary")
    tab.view("factor", timeout=20)
    tab.fill("#second", recovery)
    tab.click("#confirm .primary")
    tab.view("in")


def test_the_sign_in_page_signs_in_and_out(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.fill("#email", email)
    tab.press("pages")
    tab.wait(f"location.origin === {json.dumps(app.server)} && document.readyState === 'complete'")
    before = app.mails(email, "code")
    if tab.evaluate("document.querySelector('#code') === null"):
        tab.click("button[value=continue]")
        tab.wait("document.querySelector('#code') !== null")
    tab.fill("#code", app.mail(email, "code").code)
    tab.click("button[value=continue]")
    tab.wait(f"location.href === {json.dumps(app.origin + '/')}")
    tab.view("in")
    tab.press("signOutPages")
    tab.wait(f"location.href === {json.dumps(app.origin + '/')} || document.body?.innerText.includes('Sign out')", timeout=20)
    print(tab.evaluate("location.href"), tab.text("body"))
    tab.view("out")
    silent(tab)


def test_a_trusted_browser_signs_in_by_itself_until_it_is_forgotten(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.press("trust")
    tab.expect("#notice", "This browser can sign you in by itself.")
    tab.press("signOut")
    tab.view("out")
    tab.press("device")
    tab.view("in")
    tab.press("forget")
    tab.view("out")
    assert tab.evaluate("document.querySelector('#device').hidden")
    tab.visit(app)
    assert tab.evaluate("document.querySelector('#device').hidden")
    silent(tab, "400", "401")  # the first answers of the server have the nonce


def test_two_tabs_are_in_step_and_a_session_elsewhere_is_ended(app, browser, email):
    tabs = [DemoTab(browser).visit(app) for _ in range(2)]
    tabs[0].sign_in(app, email)
    tabs[1].view("in", timeout=3)
    with chromium("elsewhere") as second:
        elsewhere = DemoTab(second).visit(app)
        elsewhere.sign_in(app, email)
        tabs[0].visit(app)
        tabs[0].view("in")
        assert tabs[0].evaluate("document.querySelectorAll('#sessions li').length") == 2
        assert tabs[0].evaluate("[...document.querySelectorAll('#sessions button')].filter(one => !one.hidden).length") == 1
        tabs[0].click("#sessions button:not([hidden])")
        tabs[0].expect("#notice", "Removed.")
        elsewhere.expire()
        elsewhere.press("beginTotp")
        elsewhere.view("out")
        elsewhere.expect("#notice", "Your session was ended.")
    tabs[1].press("signOutEverywhere")
    for tab in tabs:
        tab.view("out", timeout=3)
        silent(tab)


# -- How it looks -----------------------------------------------------------------------------------


def look(tab, name, problems):
    """Pictures of a view in both schemes at two widths, none of which scrolls sideways; axe on each."""
    script = axe()
    tab.send("Page.bringToFront")
    for dark in (False, True):
        for width in (320, 1280):
            tab.send("Emulation.setEmulatedMedia", {"features": [
                {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]})
            tab.send("Emulation.setDeviceMetricsOverride", {"width": width, "height": 760, "deviceScaleFactor": 1, "mobile": False})
            picture(tab, OUTPUT / f"{name}-{'dark' if dark else 'light'}-{width}.png", width)
            if tab.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                problems.append(f"{name} {width}: scrolls sideways")
            if script:
                tab.evaluate(script + ";0")
                found = tab.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})"
                                     ".then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target + ' ' + n.failureSummary).join(' | ')))")
                problems += [f"{name} {width} {'dark' if dark else 'light'}: {one}" for one in found]
    small = tab.evaluate("[...document.querySelectorAll('button,a,input')].filter(e => e.offsetParent && "
                         "Math.min(e.getBoundingClientRect().width, e.getBoundingClientRect().height) < 20).map(e => e.outerHTML)")
    problems += [f"{name}: small {one}" for one in small]


def test_every_view_in_both_schemes_at_two_widths(app, browser):
    email, problems = app.user("a.rather.long.address.of.somebody@mail.example", "Ada Augusta", "King of Lovelace"), []
    tab = DemoTab(browser)
    tab.send("Page.setBypassCSP", {"enabled": True})
    tab.visit(app)
    look(tab, "out", problems)
    tab.ask(email, "requestLink")
    tab.view("link")
    look(tab, "link", problems)
    tab.press("back")
    tab.view("out")
    tab.ask(email)
    tab.view("code")
    tab.redeem("000000")
    tab.expect("#notice", "This code is wrong")
    look(tab, "code", problems)
    tab.redeem(app.mail(email, "code").code)
    tab.view("in")
    tab.press("addPasskey")
    tab.expect("#notice", "added")
    tab.press("trust")
    tab.expect("#notice", "by itself")
    look(tab, "in", problems)
    tab.press("beginTotp")
    tab.wait("document.querySelector('#secret').innerText !== ''")
    look(tab, "totp", problems)
    tab.fill("#first", totp.code(tab.text("#secret").replace(" ", "")))
    tab.click("#enroll .primary")
    tab.expect("#notice", "will be asked for")
    look(tab, "recovery", problems)
    [_, recovery, *_] = tab.text("#recovery").splitlines()
    before = app.mails(email, "code")
    touch(tab, False)
    tab.press("signOut")
    tab.view("out")
    look(tab, "trusted", problems)
    tab.ask(email)
    tab.redeem(app.mail(email, "code", before).code)
    tab.view("factor")
    look(tab, "factor", problems)
    tab.fill("#second", recovery)
    tab.click("#confirm .primary")
    tab.view("in")
    assert not problems, "\n".join(problems)
    silent(tab, "400", "401")


def test_the_keyboard_alone_signs_in_and_out(app, browser, email):
    tab = DemoTab(browser).visit(app)

    def press(key):
        for kind in ("keyDown", "keyUp"):
            tab.send("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": {"Tab": 9, "Enter": 13}[key],
                                                **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {})})

    def reach(what):
        for _ in range(20):
            if tab.evaluate(f"document.activeElement.matches({json.dumps(what)})"):
                return
            press("Tab")
        raise AssertionError(f"{what} is not reached")

    tab.send("Page.bringToFront")
    tab.evaluate("document.querySelector('#email').value = ''")
    reach("#email")
    tab.send("Input.insertText", {"text": email})
    press("Enter")
    tab.view("code")
    assert tab.evaluate("document.activeElement.id") == "typed", "the field is ready"
    tab.send("Input.insertText", {"text": app.mail(email, "code").code})
    press("Enter")
    tab.view("in")
    assert tab.evaluate("document.activeElement.id") == "name", "a screen reader hears who is signed in"
    reach("[data-do=signOut]")
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press("Enter")
    tab.view("out")
