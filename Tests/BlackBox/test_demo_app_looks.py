"""The demo app to the eye, the keyboard and a screen reader: each view in both schemes at two widths."""

import json

import pytest

from harness import totp
from harness.demo_app import OUTPUT, DemoTab, demo_app, own_browser, own_user  # pylint: disable=unused-import  # fixtures
from test_pages_browser import axe, picture

pytestmark = pytest.mark.slow


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
    tab.says("This code is wrong")
    look(tab, "code", problems)
    tab.redeem(app.mail(email, "code").code)
    tab.view("in")
    tab.press("addPasskey")
    tab.says("added")
    tab.press("trust")
    tab.says("by itself")
    look(tab, "in", problems)
    secret = tab.begin_totp()
    look(tab, "totp", problems)
    tab.fill("#first", totp.code(secret))
    tab.click("#enroll .primary")
    tab.says("will be asked for")
    look(tab, "recovery", problems)
    [_, recovery, *_] = tab.text("#recovery").splitlines()
    before = app.mails(email, "code")
    tab.touch(False)
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
    tab.silent("400", "401")


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


def test_without_script_or_modules_it_says_so(app, browser):
    tab = DemoTab(browser)
    tab.send("Emulation.setScriptExecutionDisabled", {"value": True})
    tab.open(app.origin)
    tab.expect("main", "This app needs JavaScript.")
    tab.send("Emulation.setScriptExecutionDisabled", {"value": False})
    app.proxy.given["/sdk/v1/client.js"] = 503, [], b""
    try:
        tab.open(f"{app.origin}/?again")
        tab.expect("#notice", "The server does not answer. Nothing is lost.")
    finally:
        del app.proxy.given["/sdk/v1/client.js"]
    tab.visit(app)
