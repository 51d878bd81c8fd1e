"""What pages and mails say: of a wrong field, of a message that was asked for again, of a way on, in whose language."""

import re
import urllib.parse

import pytest

from harness import wire
from harness.codeflow import hosted
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session, other_code

TERMS = "https://shop.example/terms"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages whose cooldown is a minute."""
    made = hosted(world.realm(), offer_passkey=False)
    made.world.admin.call("set_code_policy", made.slug, resend_cooldown="60 seconds")
    made.world.settle()
    return made


@pytest.fixture(scope="module")
def registering(world):
    """A realm whose App registers by a page of its own, with names and terms."""
    made = hosted(world.realm(), offer_passkey=False)
    admin = made.world.admin
    admin.call("put_app", made.slug, "shop", registration="ExplicitEndpoint", client_ids=[made.client("app")])
    admin.call("set_registration_fields", made.slug, firstname="Required", lastname="Optional")
    admin.run(f"SELECT admin.set_branding('{made.slug}', terms_uri => '{TERMS}');")
    made.world.settle()
    return made


def tag(session, name):
    """The input of a field, as it stands in the page."""
    return re.search(rf'<input[^>]* name="{name}"[^>]*>', session.browser.answer.body.decode())[0]


def status_line(session):
    """The report on a message."""
    found = re.search(r'<p class="report" role="status">([^<]*)</p>', session.browser.answer.body.decode())
    return found and found[1]


# -- fields


@pytest.mark.parametrize("typed, wrong", [
    ({"first_name": "   ", "last_name": "Lovelace", "terms": "yes"}, "first_name"),
    ({"first_name": "Ada", "last_name": "Lovelace"}, "terms"),
    ({"first_name": "Ada", "last_name": "Love\u0007", "terms": "yes"}, "last_name"),
    ({"first_name": "Ada", "last_name": "Lovelace", "terms": "yes", "address": "no address"}, "address"),
])
def test_a_registration_marks_the_field_that_is_wrong_and_keeps_the_rest(registering, typed, wrong):
    """Error, description and focus are at that field, and at no other."""
    session = Session(registering, prompt="create")
    assert session.browser.page.step == "register"
    form = {"address": registering.new_email(), **typed}
    session.browser.submit("continue", fields={"tx": session.browser.page.fields["tx"], "action": "continue", **form})
    body = session.browser.answer.body.decode()
    assert session.browser.page.error == ("address_invalid" if wrong == "address" else "field_missing") and body.count('id="fault"') == 1
    for name in ("address", "first_name", "last_name", "terms"):
        marked = tag(session, name)
        for attribute in ('aria-invalid="true"', 'aria-describedby="fault"', " autofocus"):
            assert (attribute in marked) == (name == wrong), (name, marked)
    assert body.index('id="fault"') < body.index(tag(session, wrong)) and len(session.browser.page.alerts) == 1
    kept = {name: session.browser.page.fields[name] for name in ("address", "first_name", "last_name")}
    assert kept == {name: form[name] for name in kept}, kept
    assert (" checked" in tag(session, "terms")) == ("terms" in typed)


def test_the_profile_marks_the_field_that_is_wrong(registering, world):
    """After the proof too, and the code is not asked for again."""
    world.admin.call("put_app", registering.slug, "shop", registration="JitOnOtp")
    world.settle()
    try:
        session, email = Session(registering), registering.new_email()
        session.send(email)
        session.browser.submit("continue", code=session.code(email))
        assert session.browser.page.step == "profile"
        tx = session.browser.page.fields["tx"]
        session.browser.submit("continue", fields={"tx": tx, "action": "continue", "first_name": "Ada", "last_name": "L"})
        assert 'aria-invalid="true"' in tag(session, "terms") and "aria-invalid" not in tag(session, "first_name")
        assert session.browser.page.fields["first_name"] == "Ada" and session.browser.page.fields["last_name"] == "L"
        session.browser.submit("continue", first_name="Ada", last_name="L", terms="yes")
        assert "code" in session.browser.members
    finally:
        world.admin.call("put_app", registering.slug, "shop", registration="ExplicitEndpoint")
        world.settle()


def test_a_limit_marks_no_field(world):
    """The address is right; the page says what is the matter beside it."""
    made = hosted(world.realm(), offer_passkey=False)
    made.limit("native-otp", "target", 1, per="1 minute", burst=1)
    email = made.user()
    Session(made).send(email)
    session = Session(made)
    session.send(email)
    assert session.browser.page.error == "rate_limited" and session.browser.page.alerts
    assert "aria-invalid" not in tag(session, "address")


# -- another message


def test_each_wish_for_another_code_is_answered(realm):
    """Too soon: nothing is sent, and the page says how long to wait; later it was sent; the last one is called the last."""
    session, email = Session(realm), realm.user()
    assert session.browser.page.alerts == [] and status_line(session) is None
    session.send(email)
    session.code(email)
    assert session.browser.page.alerts == [] and status_line(session) is None
    session.browser.submit("resend")
    told = re.fullmatch(r"Nothing was sent: .* Ask again in (\d+) s\. Messages left: 4\.", status_line(session))
    assert told and 1 <= int(told[1]) <= 60, status_line(session)
    reloaded = session.browser.open(session.browser.url)
    assert reloaded.page.step == "code" and status_line(session), "a reload says it too"
    realm.world.admin.call("set_code_policy", realm.slug, resend_cooldown="0")
    realm.world.settle()
    try:
        for count, left in ((2, 3), (3, 2), (4, 1)):
            session.browser.submit("resend")
            assert status_line(session) == f"We sent it again. Messages left: {left}."
            realm.world.mailbox.wait(email, count, kind="code")
        session.browser.submit("resend")
        assert status_line(session) == "We sent it again. This was the last message for this sign-in."
        code = realm.world.mailbox.wait(email, 5, kind="code").code
        assert "resend" not in session.browser.page.buttons
        session.browser.submit("continue", code=other_code(code))
        assert session.browser.page.error == "wrong_code"
        assert status_line(session) == "No more messages can be sent to this address for this sign-in."
        session.browser.submit("continue", code=code)
        assert "code" in session.browser.members
    finally:
        realm.world.admin.call("set_code_policy", realm.slug, resend_cooldown="60 seconds")
        realm.world.settle()


def test_an_unknown_address_gets_the_same_words(realm):
    """The report tells nothing about an account."""
    bodies = []
    for email in (realm.user(), realm.new_email()):
        session = Session(realm)
        session.send(email)
        session.browser.submit("resend")
        bodies.append(re.sub(r"\d+ s", "N s", status_line(session)))
    assert bodies[0] == bodies[1]


def test_a_link_can_be_sent_again(realm):
    """The same words; and after its end a new one has a button."""
    session, email = Session(realm), realm.user()
    session.send(email)
    session.browser.submit("link")
    assert session.browser.page.step == "link" and status_line(session) is None
    realm.world.mailbox.wait(email, kind="link")
    session.browser.submit("resend")
    assert status_line(session).startswith("Nothing was sent: ")


def test_a_refused_link_says_so_and_offers_a_new_one(realm):
    """Title and number of the refused one are gone; "Send a new link" is the first button."""
    session, email = Session(realm), realm.user()
    session.send(email)
    session.browser.submit("link")
    link = urllib.parse.urlsplit(realm.world.mailbox.wait(email, kind="link").link)
    fields = dict(urllib.parse.parse_qsl(link.query))
    answer = wire.exchange(realm.world.node.port, "POST", "/magic-login", {"Host": realm.host, "Content-Type": wire.FORM}, wire.form_body(
        {**fields, "action": "deny"}))
    assert answer.status == 200, answer
    session.browser.submit("continue")
    body = session.browser.answer.body.decode()
    assert "<h1>The sign-in was refused</h1>" in body and 'class="shown"' not in body
    assert re.search(r'<button class="primary" name="action" value="resend">Send a new link</button>', body)
    assert session.browser.page.buttons.count("continue") == 0
    session.browser.submit("resend")
    body = session.browser.answer.body.decode()
    assert session.browser.page.step == "link" and 'class="shown"' in body and "<h1>Open the link in your mail</h1>" in body


def test_a_dead_code_has_no_field(realm):
    """Only another message helps, and its button comes first."""
    session, email = Session(realm), realm.user()
    session.send(email)
    wrong = other_code(session.code(email))
    for _ in range(5):
        session.browser.submit("continue", code=wrong)
    body = session.browser.answer.body.decode()
    assert session.browser.page.error == "no_tries" and 'name="code"' not in body and session.browser.page.alerts
    assert session.browser.page.buttons[0] == "resend" and "continue" not in session.browser.page.buttons


def test_the_fourth_address_is_told_that_three_were_used(realm):
    """At once, and when it is typed all the same; the page names the way on."""
    session = Session(realm)
    for _ in range(3):
        session.send(realm.new_email())
        session.browser.submit("other-address")
    for error in (None, "send_limit"):
        assert (session.browser.page.step, session.browser.page.error) == ("address", error)
        assert any("Three addresses were used" in alert for alert in session.browser.page.alerts), session.browser.page.alerts
        session.send(realm.new_email())
    assert session.browser.submit("cancel").members["error"] == "access_denied"


# -- ways on


def links(session):
    """Where the buttons of an error page lead."""
    return re.findall(r'<a class="button[^"]*" href="([^"]*)"', session.browser.answer.body.decode())


def test_a_sign_in_that_was_copied_says_where_it_began(realm):
    """In a browser without cookies and in one with others; with a way to the client."""
    session = Session(realm)
    session.send(realm.user())
    stranger = Session(realm)
    for cookies, error in (({}, "cookies_needed"), (stranger.browser.cookies, "foreign_form")):
        other = Session(realm)
        other.browser.cookies = dict(cookies)
        other.browser.open(session.browser.url)
        assert (other.browser.answer.status, other.browser.page.error) == (400, error)
        assert "started in another browser" in other.browser.page.alerts[0], other.browser.page.alerts
        assert links(other), other.browser.answer.body


def test_a_browser_without_cookies_is_told_so(realm):
    """Its form came without: that is no other browser."""
    session = Session(realm)
    page = session.browser.page
    session.browser.cookies = {}
    session.browser.submit("continue", address=realm.user())
    assert session.browser.page.error == "cookies_needed" and "sent no cookie" in session.browser.page.alerts[0]
    assert links(session) and page


@pytest.mark.parametrize("changes, error", [
    ({"client_id": "unknown"}, "invalid_client"), ({"redirect_uri": "https://evil.example/cb"}, "invalid_redirect_uri"),
])
def test_every_error_page_has_a_way_on(realm, changes, error):
    """To the client where it is known, never to an address that the request named."""
    session = Session(realm)
    session.begin(**changes)
    assert session.browser.page.error == error and links(session), session.browser.answer.body
    assert not any("evil.example" in link and not link.startswith("/connect/authorize") for link in links(session))


# -- languages


def notice_of(realm, email):
    """The last notice."""
    return realm.world.mailbox.wait(email, kind="notice")


def add_totp(realm, email):
    """A native app adds an authenticator: the request names no language."""
    app = realm.app()
    app.enrol_totp(app.sign_in(email)["access_token"])


def test_a_notice_is_in_the_language_of_the_account(realm):
    """That of the first sign-in on a page; a later sign-in in another language changes nothing."""
    email = realm.user()
    realm.world.admin.call("set_code_policy", realm.slug, resend_cooldown="0")
    realm.world.settle()
    try:
        session = Session(realm)
        session.begin(ui_locales="de")
        session.sign_in(email)
        stranger = Session(realm)
        stranger.begin(ui_locales="ar")
        stranger.sign_in(email)
        add_totp(realm, email)
        mail = notice_of(realm, email)
        assert "hinzu" in mail.message["Subject"], mail.message["Subject"]
        assert '<html lang="de" dir="ltr">' in mail.html
    finally:
        realm.world.admin.call("set_code_policy", realm.slug, resend_cooldown="60 seconds")
        realm.world.settle()


def test_an_account_without_a_language_gets_that_of_the_realm(realm):
    """Nobody has signed in on a page."""
    email = realm.user()
    add_totp(realm, email)
    assert '<html lang="en" dir="ltr">' in notice_of(realm, email).html


def test_mails_have_the_name_and_the_look_of_the_pages(world):
    """Product name, accent and logo; a link has a button, and below it stands its address."""
    made = hosted(world.realm(), offer_passkey=False)
    made.world.admin.run(
        f"SELECT admin.set_branding('{made.slug}', product_name => 'Acme Blumen', accent => '#b0246b', "
        "logo => decode('89504e470d0a1a0a00', 'hex'));")
    made.world.settle()
    session, email = Session(made), made.user()
    session.send(email)
    mail = world.mailbox.wait(email, kind="code")
    assert "is your Acme Blumen verification code" in mail.message["Subject"], mail.message["Subject"]
    session.browser.submit("link")
    mail = world.mailbox.wait(email, kind="link")
    assert mail.message["Subject"] == "Sign in to Acme Blumen"
    logo = re.search(r'<img src="https://[^"/]+(/brand/[0-9a-f]{64})" alt="Acme Blumen"', mail.html)[1]
    assert made.app().get(logo).status == 200
    escaped = mail.link.replace("&", "&amp;")
    assert mail.html.count(f'<a href="{escaped}"') == 2 and "background:#b0246b" in mail.html and f'dir="ltr">{escaped}</span>' in mail.html


@pytest.mark.parametrize("locale, form", [
    ("en", r"\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d \(UTC\)"), ("de", r"\d{1,2}\. [A-ZÄ][a-zä]+ \d{4}, \d\d:\d\d Uhr \(UTC\)"),
    ("ja", r"\d{4}年\d{1,2}月\d{1,2}日 \d\d:\d\d（UTC）"),
])
def test_times_are_written_as_the_language_writes_them(realm, locale, form):
    """On the page of a link; the zone is named."""
    session, email = Session(realm), realm.user()
    session.send(email)
    session.browser.submit("link")
    link = urllib.parse.urlsplit(realm.world.mailbox.wait(email, kind="link").link)
    elsewhere = PageBrowser(realm.world.node, realm.host)
    elsewhere.open(f"{link.path}?{link.query}", **{"Accept-Language": locale})
    assert elsewhere.page.step == "confirm-link" and re.search(form, elsewhere.answer.body.decode())
