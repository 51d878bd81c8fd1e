"""The demo app in several tabs, with answers that are lost and sessions that end elsewhere."""

import random
import time

import pytest

from harness import report
from harness.browser import chromium
from harness.demo_app import OUTPUT, DemoTab, demo_app, own_browser, own_user  # pylint: disable=unused-import  # fixtures

pytestmark = pytest.mark.slow


def test_two_tabs_are_in_step_and_a_session_elsewhere_is_ended(app, browser, email):
    tabs = [DemoTab(browser).visit(app) for _ in range(2)]
    tabs[0].sign_in(app, email)
    tabs[1].view("in", timeout=3)
    with chromium(OUTPUT / "elsewhere.log") as second:
        elsewhere = DemoTab(second).visit(app)
        elsewhere.sign_in(app, email)
        tabs[0].visit(app)
        tabs[0].view("in")
        assert tabs[0].evaluate("document.querySelectorAll('#sessions li').length") == 2
        assert tabs[0].evaluate("[...document.querySelectorAll('#sessions button')].filter(one => !one.hidden).length") == 1
        tabs[0].click("#sessions button:not([hidden])")
        tabs[0].says("Removed.")
        elsewhere.expire()
        elsewhere.press("beginTotp")
        elsewhere.view("out")
        elsewhere.says("Your session was ended.")
    tabs[1].press("signOutEverywhere")
    for tab in tabs:
        tab.view("out", timeout=3)
        tab.silent()


def test_a_server_that_does_not_answer_signs_nobody_out(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    app.proxy.given["/connect/account"] = app.proxy.given["/connect/totp/enroll/begin"] = 503, [("Access-Control-Allow-Origin", app.origin)], b""
    try:
        tab.press("beginTotp")
        tab.says("The server does not answer. Nothing is lost.")
        tab.visit(app)
        tab.view("in")
        tab.says("The server does not answer. Nothing is lost.")
    finally:
        del app.proxy.given["/connect/account"], app.proxy.given["/connect/totp/enroll/begin"]
    tab.visit(app)
    tab.expect("#name", "Ada")
    assert tab.text("#notice") == ""


def test_a_session_that_was_ended_meanwhile_is_no_session_after_a_reload(app, browser, email):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    app.world.cluster.sql(f"UPDATE postern.session SET revoked_at = now() WHERE id = '{tab.session_id()}'")
    app.world.settle()
    tab.expire()
    tab.visit(app)
    tab.view("out")
    tab.says("Your session was ended.")
    tab.sign_in(app, email)


@pytest.mark.parametrize("seconds", [pytest.param(30), pytest.param(600, marks=pytest.mark.full)])
def test_two_tabs_that_refresh_at_once_while_every_tenth_answer_is_lost_stay_signed_in(app, browser, email, seconds):
    tabs = [DemoTab(browser).visit(app) for _ in range(2)]
    tabs[0].sign_in(app, email)
    tabs[1].view("in")
    before, began = len(app.proxy.calls("/connect/token")), time.monotonic()
    chance, lost = random.Random(seconds), 0
    while time.monotonic() < began + seconds:
        loses = chance.random() < 0.1
        lost += loses
        app.proxy.drop("/connect/token", int(loses))
        tabs[0].expire()
        for tab in tabs:
            # Loads the four lists again, however old the sign-in is.
            tab.evaluate("void document.querySelector('[data-do=back]').click()")
        for tab in tabs:
            tab.view("in")
            assert tab.text("#notice") == ""
    refreshes = len(app.proxy.calls("/connect/token")) - before
    report.say(f"demo app: {refreshes} refreshes of two tabs in {seconds} s, {lost} answers lost, no sign-out")
    assert refreshes > seconds and lost > 0
    assert set(app.proxy.calls("/connect/token")[before:]) == {200}
