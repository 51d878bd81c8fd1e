"""Sign-out, case by case: beyond what test_logout.py holds."""

import http.server
import threading
import time

import pytest

from harness import wire
from harness.codeflow import REDIRECT, Flow, hosted
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session, signed_in


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm(), offer_passkey=False)


def test_sign_out_of_strangers_ends_nothing(realm):
    """An image, a form of another site, a planted state."""
    session, email = Session(realm), realm.user()
    session.sign_in(email)
    browser, cookies = session.browser, dict(session.browser.cookies)
    image = PageBrowser(browser.node, browser.host)
    image.cookies = dict(cookies)
    image.open("/connect/logout", **{"Sec-Fetch-Site": "cross-site"})
    assert image.page.step == "sign-out" and image.cookies == cookies
    page = image.page
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Cookie": None}):
        image.page = page
        image.submit("continue", headers=headers)
        assert image.answer.status == 400, headers
    stranger = PageBrowser(browser.node, browser.host).open("/connect/logout")
    image.page = stranger.page
    image.submit("continue", headers={"Sec-Fetch-Site": "same-origin"})
    assert image.answer.status == 400 and image.page.error == "foreign_form"
    assert "code" in session.begin(prompt="none").members


def test_sign_out_ends_what_belongs_to_the_browser(realm):
    """Sessions with offline_access stay, the others end, and the hint's own ends in any case."""
    flow = signed_in(realm)
    second = Flow(realm, "app-2")
    second.cookie = flow.cookie
    hint, stays, goes = flow.tokens(), second.tokens(), second.tokens(scope="openid email")
    answer = wire.exchange(flow.app.node.port, "GET", "/connect/logout?" + wire.form_body({"id_token_hint": hint["id_token"]}).decode(), {
        "Host": flow.host, **flow.cookies()})
    assert answer.status == 200 and b'data-step="signed-out"' in answer.body
    assert flow.app.userinfo(hint["access_token"]).status == 401 and flow.app.refresh(hint["refresh_token"]).status == 400
    assert flow.app.userinfo(goes["access_token"]).status == 401
    assert flow.app.userinfo(stays["access_token"]).status == 200 and second.app.refresh(stays["refresh_token"]).status == 200


@pytest.mark.parametrize("action, step", [("continue", "signed-out"), ("cancel", "sign-out")])
def test_the_language_of_the_question_is_that_of_the_answer(realm, action, step):
    """The client asked for it by `ui_locales`; the browser would choose another."""
    session = Session(realm)
    session.sign_in(realm.user())
    browser = session.browser.open("/connect/logout?ui_locales=ar")
    assert (browser.page.step, browser.page.language, browser.page.direction) == ("sign-out", "ar", "rtl")
    browser.submit(action)
    assert (browser.page.step, browser.page.language, browser.page.direction) == (step, "ar", "rtl")


def test_a_sign_out_at_once_speaks_the_language_asked_for(realm):
    """With a hint and without a URI: a page."""
    flow = signed_in(realm)
    target = "/connect/logout?" + wire.form_body({"id_token_hint": flow.tokens()["id_token"], "ui_locales": "de"}).decode()
    answer = wire.exchange(flow.app.node.port, "GET", target, {"Host": flow.host, **flow.cookies()})
    assert answer.status == 200 and b'<html lang="de"' in answer.body and b'data-step="signed-out"' in answer.body, answer


def test_sign_out_waits_for_no_client(world):
    """Thirty clients whose endpoints never answer."""
    class Hanging(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            """Reads and says nothing for a while."""
            time.sleep(3)

        def log_message(self, *_):
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hanging)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    realm = hosted(world.realm(), offer_passkey=False)
    first = signed_in(realm)
    for number in range(30):
        name = f"rp{number}"
        realm.put_client(name, "gt:authorization_code", "scp:email")
        world.admin.call("put_redirect_uri", realm.slug, realm.client(name), REDIRECT)
        world.admin.call("put_logout_uri", realm.slug, realm.client(name), f"http://127.0.0.1:{server.server_port}/{name}", "backchannel")
    world.settle()
    for number in range(30):
        client = Flow(realm, f"rp{number}")
        client.cookie = first.cookie
        client.tokens(scope="openid email")
    hint = first.tokens()
    started = time.monotonic()
    answer = wire.exchange(first.app.node.port, "GET", "/connect/logout?" + wire.form_body({"id_token_hint": hint["id_token"]}).decode(), {
        "Host": first.host, **first.cookies()})
    assert answer.status == 200 and time.monotonic() - started < 2
    rows = world.admin.run(f"SELECT count(*), count(DISTINCT id) FROM admin.logout_tokens WHERE realm = '{realm.slug}';")
    assert rows == [["30", "30"]], rows
    server.shutdown()
