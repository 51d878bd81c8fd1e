"""Which host a message of a page names, what a link says that can no longer be used, and from when the lives of cookies are counted."""

import re
import time
import urllib.parse
import uuid

import pytest

from harness import wire
from harness.codeflow import Flow, hosted, response
from harness.pages_client import PageBrowser
from harness.phones import Phones, new_number
from harness.postgres import literal
from harness.sign_in_pages import Session, newest
from test_hosted_links import link_of

BROWSER, SESSION = "__Host-postern-browser", "__Host-postern-session"
DAY, MONTH = 86_400, 30 * 86_400


@pytest.fixture(scope="module")
def realm(world):
    """A realm with a second domain, an App on a host of its own, and phones."""
    made = hosted(world.realm(), offer_passkey=False, methods=["email-code", "magic-link", "phone-code"])
    made.second = f"second-{made.host}"
    world.admin.call("put_realm", made.slug, domains=[made.host, made.second])
    made.app_host = made.put_app("shop", ["app"])
    made.phones = Phones(made, default_region="AT")
    world.admin.call("grant_permission", made.slug, made.client("app"), variadic=["scp:verify:phone"])
    world.settle()
    yield made
    made.phones.close()


class At(Session):
    """A browser on one of the realm's hosts."""

    def __init__(self, realm, host, **changes):  # pylint: disable=super-init-not-called  # it has a host
        self.realm, self.flow = realm, Flow(realm, host=host)
        self.browser = PageBrowser(self.flow.app.node, host)
        self.begin(**changes)


def hosts(realm):
    """The realm's own, its second, and the App's."""
    return {"the issuer's host": realm.host, "a second domain": realm.second, "an App's host": realm.app_host}


each_host = pytest.mark.parametrize("which", ["the issuer's host", "a second domain", "an App's host"])


def set_cookie(answer, name):
    """Value and Max-Age of a cookie that an answer sets; None when it sets none."""
    found = [value for field, value in answer.headers if field.lower() == "set-cookie" and value.startswith(name + "=")]
    assert len(found) < 2, found
    return (found[0].split("=", 1)[1].split(";", 1)[0], int(re.search(r"Max-Age=(\d+)", found[0]).group(1))) if found else None


# -- hosts ------------------------------------------------------------------------------------------


@each_host
def test_a_link_leads_to_the_host_of_the_page_that_asked(realm, which):
    """And goes on there, in the browser that asked."""
    host, email = hosts(realm)[which], realm.user()
    session = At(realm, host)
    session.send(email)
    session.browser.submit("link")
    link = urllib.parse.urlsplit(realm.world.mailbox.wait(email, kind="link").link)
    assert (link.scheme, link.netloc) == ("https", host)
    session.browser.open(f"{link.path}?{link.query}")
    assert session.browser.page.step == "continue-link", session.browser.answer
    session.browser.submit("continue")
    assert "code" in session.browser.members


@each_host
@pytest.mark.parametrize("purpose", ["sign-in", "proof", "step-up"])
def test_a_message_with_a_code_names_the_host_where_it_is_typed(realm, which, purpose):
    """The last line of an SMS, for a client of one App; and that of a mail."""
    host, number = hosts(realm)[which], new_number()
    if purpose == "sign-in":
        realm.world.admin.call("put_user", realm.slug, phone=number)
        session = At(realm, host)
    elif purpose == "proof":
        session = At(realm, host, scope="openid verify:phone")
    else:
        session, email = At(realm, host), realm.user()
        session.send(email)
        mail = realm.world.mailbox.wait(email, kind="code")
        assert f"@{host} #{mail.code}" in mail.text
        session.browser.submit("continue", code=mail.code)
        session.begin(acr_values="urn:postern:acr:phone")
    session.browser.submit("continue", address=number)
    message = realm.phones.wait(number)
    assert message["text"].endswith(f"@{host} #{message['code']}") and message["domain"] == host, message


@each_host
def test_a_request_by_post_stays_at_its_host(realm, which):
    """So that its cookies arrive."""
    host = hosts(realm)[which]
    flow = Flow(realm, host=host)
    form = wire.form_body(flow.request())
    for path in ("/connect/authorize", "/connect/logout"):
        answer = wire.exchange(flow.app.node.port, "POST", path, {"Host": host, "Content-Type": wire.FORM}, form)
        assert answer.status == 303 and answer.header("location").startswith(f"https://{host}{path}"), answer


# -- links that can no longer be used -----------------------------------------------------------------


def test_a_link_that_was_confirmed_elsewhere_goes_on_in_the_browser_that_asked(realm):
    """It asks no number; then it is used, in every browser."""
    session, email = Session(realm), realm.user()
    path, number = link_of(realm, session, email)
    other = PageBrowser(session.flow.app.node, session.flow.host)
    assert other.open(path).submit("confirm", number=number).answer.status == 200
    assert (other.open(path).page.step, other.page.error, other.answer.status) == ("done", "used", 400)
    assert session.browser.open(path).page.step == "continue-link", session.browser.answer
    session.browser.submit("continue")
    assert "code" in session.browser.members
    assert session.browser.open(path).page.error == "used"


def test_a_link_says_at_once_that_it_can_no_longer_be_used(realm):
    """Used, refused, replaced, expired, invented, cut off: no question, no number, no stranger who asks."""
    def fresh():
        session, email = Session(realm), realm.user()
        return session, email, link_of(realm, session, email)

    shown = {}
    session, email, (path, _) = fresh()
    browser = PageBrowser(session.flow.app.node, session.flow.host)
    assert browser.open(path).page.step == "confirm-link"
    session.browser.open(path)
    session.browser.submit("continue")
    shown["used"] = [path]
    session, email, (path, _) = fresh()
    browser.open(path).submit("deny")
    shown["used"].append(path)
    session, email, (path, _) = fresh()
    realm.world.admin.call("sign_out_everywhere", realm.slug, email)
    shown["superseded"] = [path]
    session, email, (path, _) = fresh()
    session.browser.submit("other-address")
    shown["superseded"].append(path)
    session, email, (path, _) = fresh()
    realm.world.cluster.sql(f"UPDATE postern.login_link SET expires_at = now() WHERE email_key = {literal(email)};")
    shown["expired"] = [path]
    token = path.split("token=")[1]
    shown["unknown"] = [
        path[:-1], path.split("&")[0], "/magic-login", f"/magic-login?userId={uuid.uuid4()}&token={token}",
        "/magic-login?userId=<b>&token=%00", path.replace(token, "A" * 43)]
    for error, paths in shown.items():
        for path in paths:
            for seen in (browser.open(path), session.browser.open(path)):
                assert (seen.page.step, seen.page.error, seen.answer.status) == ("done", error, 400), (error, path, seen.answer)
                assert "number" not in seen.page.fields and "confirm" not in seen.page.buttons


# -- cookies ------------------------------------------------------------------------------------------


def test_each_page_names_the_browser_for_one_more_day(realm):
    """With the value that it had: a sign-in that begins late in the day does not end in the middle."""
    session, email = Session(realm), realm.user()
    name = session.browser.cookies[BROWSER]
    assert set_cookie(session.browser.answer, BROWSER) == (name, DAY)
    session.begin()
    assert set_cookie(session.browser.answer, BROWSER) == (name, DAY)
    session.send(email)
    assert set_cookie(session.browser.answer, BROWSER) == (name, DAY)
    session.browser.submit("link")
    path = realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1]
    assert set_cookie(session.browser.open(path).answer, BROWSER) == (name, DAY) and session.browser.page.step == "continue-link"
    session.browser.submit("continue")
    session.browser.open("/connect/logout")
    assert session.browser.page.step == "sign-out" and set_cookie(session.browser.answer, BROWSER) == (name, DAY)


def signed_in(realm):
    """A browser of a user, outside of pages; the first answer of its session gave it its cookie."""
    session, email = Session(realm), realm.user()
    session.send(email)
    form = {**session.browser.page.fields, "action": "continue", "code": newest(realm, email)}
    answer = wire.exchange(
        session.flow.app.node.port, "POST", "/sign-in",
        {"Host": session.flow.host, "Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin", **session.browser.cookie_header()},
        wire.form_body(form))
    session.flow.cookie, life = set_cookie(answer, SESSION)
    assert life == MONTH
    return session.flow


def test_a_session_cookie_lives_from_its_last_use(world, realm):
    """Given again with the same value, once an hour at most; not by a look."""
    flow = signed_in(realm)
    assert set_cookie(flow.authorize(prompt="none"), SESSION) is None
    world.time_travel(3_700)
    assert set_cookie(flow.authorize(prompt="select_account"), SESSION) is None
    assert set_cookie(flow.authorize(prompt="none"), SESSION) == (flow.cookie, MONTH)
    world.time_travel(600)
    assert set_cookie(flow.authorize(prompt="none"), SESSION) is None
    for _ in range(5):
        world.time_travel(29 * DAY)
        assert set_cookie(flow.authorize(prompt="none"), SESSION) == (flow.cookie, MONTH)
    world.time_travel(20 * DAY)
    value, life = set_cookie(flow.authorize(prompt="none"), SESSION)
    assert value == flow.cookie and 14 * DAY < life < 15 * DAY, "the absolute time of the session is not exceeded"


def test_two_hundred_cookies_are_looked_at(realm):
    """A browser keeps fewer for a host; what a stranger sends beyond them costs nothing."""
    flow = signed_in(realm)
    own = flow.cookies()["Cookie"]
    for others, found in ((0, True), (199, True), (200, False)):
        answer = flow.authorize(prompt="none", headers={"Cookie": "; ".join([*["a=b"] * others, own])})
        assert (("code" if found else "error") in response(answer)), others
    assert "error" in response(flow.authorize(prompt="none", headers={"Cookie": ";" * 11_000 + own}))
    assert "code" in response(flow.authorize(prompt="none", headers={"Cookie": own + ";" * 11_000}))


def test_a_page_that_goes_on_with_the_session_gives_its_cookie_again(world, realm):
    """`continue-as`, an hour later."""
    flow = signed_in(realm)
    world.time_travel(3_700)
    browser = PageBrowser(flow.app.node, flow.host)
    browser.cookies[SESSION] = flow.cookie
    browser.open("/connect/authorize?" + wire.form_body(flow.request(prompt="select_account")).decode())
    assert browser.page.step == "continue-as"
    browser.submit("continue")
    assert "code" in browser.members and set_cookie(browser.answer, SESSION) == (flow.cookie, MONTH)


# -- messages that wait ---------------------------------------------------------------------------------


def test_a_message_that_waits_gives_way_to_the_next_of_its_request(world, realm):
    """Only the newest code leaves when the mail server is back, and it is good."""
    session, email = Session(realm), realm.user()
    world.mailbox.mode = "refuse"
    try:
        session.send(email)
        for _ in range(3):
            session.browser.submit("resend")
            wait_decided(realm)
    finally:
        world.mailbox.mode = "accept"
    realm.world.cluster.sql("UPDATE postern.mail_outbox SET not_before = now() WHERE state = 'queued';")
    world.settle_messages()
    mails = world.mailbox.to(email)
    assert len(mails) == 1, len(mails)
    session.browser.submit("continue", code=mails[0].code)
    assert "code" in session.browser.members


def wait_decided(realm):
    """No request is undecided."""
    deadline = time.monotonic() + 10
    while realm.world.cluster.value("SELECT count(*) FROM postern.auth_session WHERE pending") != "0":
        assert time.monotonic() < deadline
        time.sleep(0.02)
