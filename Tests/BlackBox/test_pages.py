"""The pages of a sign-in, as a browser without scripts uses them: every step, forms, cookies, tabs."""

import concurrent.futures
import re

import pytest

from harness import jose, wire
from harness.codeflow import REDIRECT, Flow, hosted
from harness.pages_client import PageBrowser
from harness.sign_in_pages import Session
from test_totp import Protected

PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
                               "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY", "referrer-policy": "same-origin", "x-content-type-options": "nosniff",
    "permissions-policy": "publickey-credentials-get=(self), publickey-credentials-create=(self)",
    "strict-transport-security": "max-age=31536000", "cross-origin-resource-policy": "same-origin",
    # An app that opens a sign-in in a window hears of its end by that window.
    "cross-origin-opener-policy": None,
}


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and codes that can be sent again at once."""
    made = hosted(world.realm(), offer_passkey=False)
    made.world.admin.call("set_code_policy", made.slug, resend_cooldown="0")
    made.world.settle()
    return made


def test_a_code_signs_in_and_the_client_gets_tokens(realm):
    """From the request to the tokens; the page carries its headers, the cookies their attributes."""
    session = Session(realm)
    browser, email = session.browser, realm.user()
    page = browser.page
    assert (page.step, page.language, page.direction, page.fields["address"]) == ("address", "en", "ltr", "")
    for name, value in PAGE_HEADERS.items():
        assert browser.answer.header(name) == value, name
    assert set(browser.cookies) == {"__Host-postern-browser"}
    session.send(email)
    assert (browser.page.step, browser.page.fields["code"]) == ("code", "")
    browser.submit("continue", code=session.code(email))
    assert browser.left_for.startswith(REDIRECT + "?")
    assert set(browser.members) == {"code", "state", "iss"}
    cookies = [value for name, value in browser.answer.headers if name.lower() == "set-cookie"]
    assert len(cookies) == 1 and re.fullmatch(
        r"__Host-postern-session=pss_[\w-]{43}; Max-Age=2592000; Path=/; HttpOnly; SameSite=Lax; Secure", cookies[0]), cookies
    tokens = session.flow.exchange(browser.members["code"]).json()
    assert tokens["id_token"]
    silent = Session(realm, "app-2", browser=browser)
    assert "code" in silent.browser.members


def test_wrong_codes_are_counted_once_and_reloading_costs_nothing(realm):
    """The error stands on the GET; the tries fall; without tries only another message helps."""
    session, email = Session(realm), realm.user()
    browser = session.browser
    session.send(email)
    right = session.code(email)
    wrong = "000000" if right != "000000" else "000001"
    browser.submit("continue", code=wrong)
    assert (browser.page.step, browser.page.error, browser.page.fields["code"]) == ("code", "wrong_code", "")
    assert browser.page.alerts == ["The code is wrong or has expired."]
    first = browser.answer.body
    for _ in range(10):
        browser.open(browser.url)
        assert browser.page.error == "wrong_code"
    assert b"Tries left: 4" in first and b"Tries left: 4" in browser.answer.body
    for _ in range(4):
        browser.submit("continue", code=wrong)
    assert browser.page.error == "no_tries"
    browser.submit("continue", fields={**browser.page.fields, "action": "continue", "code": right})
    assert browser.page.error == "no_tries"
    browser.submit("resend")
    assert (browser.page.step, browser.page.error) == ("code", None)


def test_pages_do_not_tell_whether_an_address_has_an_account(realm):
    """The same status, the same bytes but for the sealed value and the address, for known and unknown addresses."""
    def shown(email):
        session = Session(realm)
        session.send(email)
        body = session.browser.answer.body.decode()
        sealed = session.browser.page.fields["tx"]
        wrong = session.browser.submit("continue", code="123123").answer.body.decode()
        return session.browser.answer.status, len(sealed), body.replace(sealed, "tx").replace(email, "email"), len(wrong)

    known = realm.user()
    unknown = "x" + known[1:]
    assert shown(known) == shown(unknown)


@pytest.mark.parametrize("headers, error", [
    ({"Sec-Fetch-Site": "cross-site"}, "foreign_form"), ({"Sec-Fetch-Site": "same-site"}, "foreign_form"),
    ({"Sec-Fetch-Site": None, "Origin": "https://evil.example"}, "foreign_form"),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "null"}, None), ({"Sec-Fetch-Site": None}, None),
    ({"Sec-Fetch-Site": None, "Origin": "null"}, "foreign_form"),
    ({"Cookie": None}, "cookies_needed"), ({"Cookie": "__Host-postern-browser=" + "A" * 43}, "foreign_form"),
])
def test_forms_of_others_are_refused(realm, headers, error):
    """Nothing is done or sent for a form that came from elsewhere, or from another browser."""
    session, email = Session(realm), realm.user()
    page = session.browser.page
    session.browser.submit("continue", headers=headers, fields={**page.fields, "address": email, "action": "continue"})
    if error is None:
        assert session.browser.page.step == "code"
    else:
        assert (session.browser.answer.status, session.browser.page.error) == (400, error)
        assert session.browser.answer.header("location") is None
        assert not realm.world.mailbox.to(email)


@pytest.mark.parametrize("changes", [
    {"action": ""}, {"action": "admin"}, {"code": "123456"}, {"action": "allow"}, {"action": "skip"}, {"tx": ""}, {"tx": "AAAA"},
    {"totp_code": "123456"}, {"attestation": "{}"},
])
def test_forms_that_the_page_does_not_have_are_refused(realm, changes):
    """A missing or foreign action, a field of another step, a broken tx: 400, and nothing is done."""
    session = Session(realm)
    fields = {**session.browser.page.fields, "address": "a@mail.example", "action": "continue", **changes}
    session.browser.submit("continue", fields=fields)
    assert (session.browser.answer.status, session.browser.page.error) == (400, "invalid_request")


def test_cancel_and_prompt_none(realm):
    """A person may leave; a client that allows no page gets an error."""
    session = Session(realm)
    assert session.browser.submit("cancel").members["error"] == "access_denied"
    assert Session(realm, prompt="none").browser.members["error"] == "login_required"


def test_another_tab_signs_in(realm):
    """The second tab neither fails nor signs in twice: it asks whether to go on with that account."""
    email = realm.user()
    one = Session(realm)
    two = Session(realm, "app-2", browser=PageBrowser(one.flow.app.node, one.flow.host))
    two.browser.cookies = one.browser.cookies
    two.begin()
    one.sign_in(email)
    assert "code" in one.browser.members
    two.send(email)
    assert two.browser.page.step == "continue-as" and email.encode() in two.browser.answer.body
    two.browser.open(two.browser.url)
    assert two.browser.page.step == "continue-as"
    two.browser.submit("continue")
    assert "code" in two.browser.members


def test_another_account_and_other_addresses(realm):
    """Three addresses for one sign-in; `login_hint` prefills and sends nothing."""
    session = Session(realm, login_hint='"><script>x@mail.example')
    assert session.browser.page.fields["address"] == '"><script>x@mail.example'
    for number in range(3):
        session.send(f"n{number}-{realm.user()}")
        assert session.browser.page.step == "code"
        session.browser.submit("other-address")
        assert session.browser.page.step == "address"
    session.send(realm.user())
    assert (session.browser.page.step, session.browser.page.error) == ("address", "send_limit")


def test_a_typed_address_is_kept_and_escaped(realm):
    """What is no address comes back in its field, and nothing else is made of it."""
    session = Session(realm)
    session.send('"><b>{{7*7}}\u202e')
    assert (session.browser.page.error, session.browser.page.fields["address"]) == ("address_invalid", '"><b>{{7*7}}\u202e')
    assert b"<b>" not in session.browser.answer.body


def test_a_link_in_the_browser_that_asked_goes_on_there(realm):
    """One button; in another browser the page asks for the number and signs the asking browser in."""
    email = realm.user()
    session = Session(realm)
    session.send(email)
    session.browser.submit("link")
    assert session.browser.page.step == "link"
    link = realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1]
    elsewhere = PageBrowser(session.flow.app.node, session.flow.host).open(link)
    assert elsewhere.page.step == "confirm-link" and not elsewhere.cookies
    assert elsewhere.answer.header("referrer-policy") == "no-referrer"
    session.browser.open(link)
    assert session.browser.page.step == "continue-link"
    assert f"<bdi>{email}</bdi>" in session.browser.answer.body.decode()
    session.browser.submit("continue")
    assert "code" in session.browser.members


def test_a_link_confirmed_elsewhere_signs_in_the_browser_that_asked(realm):
    """The number of the page is typed on the other device; the waiting page learns it and goes on."""
    email = realm.user()
    session = Session(realm)
    session.send(email)
    session.browser.submit("link")
    number = re.search(rb"<strong>(\d\d)</strong>", session.browser.answer.body).group(1).decode()
    session.browser.submit("continue")
    assert session.browser.page.step == "link" and b"has not been opened" in session.browser.answer.body

    def wait(cookies):
        tx = wire.form_body({"tx": session.browser.page.fields["tx"]})
        answer = wire.exchange(session.flow.app.node.port, "POST", "/sign-in/wait", {
            "Host": session.flow.host, "Content-Type": "application/x-www-form-urlencoded", **cookies}, tx)
        return answer.json()["state"]

    assert (wait(session.browser.cookie_header()), wait({})) == ("pending", "expired")
    other = PageBrowser(session.flow.app.node, session.flow.host)
    other.open(realm.world.mailbox.wait(email, kind="link").link.split(session.flow.host, 1)[1])
    assert other.submit("confirm", number="4").page.error == "wrong_number"
    assert other.answer.status == 400
    other.submit("confirm", number=number)
    assert other.page.step == "done" and not other.cookies
    assert wait(session.browser.cookie_header()) == "confirmed"
    session.browser.submit("continue")
    assert "code" in session.browser.members


def test_a_second_factor_is_asked_for_after_the_first(realm):
    """With the code alone nobody is signed in; a wrong second factor costs no code, and a recovery code helps."""
    protected = Protected(realm)
    session = Session(realm)
    session.send(protected.email)
    session.browser.submit("continue", code=realm.world.mailbox.wait(protected.email, count=2, kind="code").code)
    assert session.browser.page.step == "second-factor"
    session.browser.submit("continue", totp_code="000000")
    assert (session.browser.page.step, session.browser.page.error) == ("second-factor", "wrong_second_factor")
    session.browser.submit("continue", recovery_code=protected.recovery_codes[0])
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert jose.parts(tokens["id_token"])[1]["acr"] == "urn:postern:acr:2"


def test_form_post_is_a_form(realm):
    """The response travels in a form that a person can submit."""
    session = Session(realm, response_mode="form_post")
    session.sign_in(realm.user())
    page = session.browser.page
    assert (page.step, page.action) == ("form-post", REDIRECT)
    assert set(page.fields) == {"code", "state", "iss"} and page.fields["state"] == "s t/ä"


def test_consent_is_asked_for_once(realm):
    """An explicit client asks for each set of scopes once; refusing leads to access_denied."""
    realm.world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="explicit")
    realm.world.settle()
    try:
        email = realm.user()
        session = Session(realm, "app-2")
        session.sign_in(email)
        assert session.browser.page.step == "consent" and email.encode() in session.browser.answer.body
        assert session.browser.submit("deny").members["error"] == "access_denied"
        session.begin()
        assert session.browser.page.step == "consent"
        assert "code" in session.browser.submit("allow").members
        assert "code" in session.begin().members
    finally:
        realm.world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="implicit")
        realm.world.settle()


def test_sign_out_asks_first(realm):
    """Without a hint a page asks; then the browser is signed out."""
    session = Session(realm)
    session.sign_in(realm.user())
    browser = session.browser
    browser.open("/connect/logout")
    assert browser.page.step == "sign-out" and "__Host-postern-session" in browser.cookies
    browser.submit("continue")
    assert browser.page.step == "signed-out" and "__Host-postern-session" not in browser.cookies
    assert session.begin(prompt="none").members["error"] == "login_required"


@pytest.mark.parametrize("asked, accepted, language, direction", [
    ("de", "fr", "de", "ltr"), (None, "tr;q=0.9, de;q=0", "tr", "ltr"), ("ar", None, "ar", "rtl"), ("xx zz", "sv", "en", "ltr"),
])
def test_the_page_speaks_the_language_that_is_asked_for(realm, asked, accepted, language, direction):
    """`ui_locales`, then `Accept-Language`, then the realm's."""
    flow = Flow(realm)
    browser = PageBrowser(flow.app.node, flow.host)
    target = "/connect/authorize?" + wire.form_body(flow.request(ui_locales=asked)).decode()
    browser.open(target, **{"Accept-Language": accepted})
    url = browser.url
    browser.open(url, **{"Accept-Language": accepted})
    assert (browser.page.language, browser.page.direction) == (language, direction)


def test_assets_never_change(realm):
    """Style and scripts are found under their hash, for a year and without cookies; an unknown hash is not."""
    session = Session(realm)
    for path in session.browser.page.assets:
        if not path.startswith("/"):
            continue
        answer = wire.exchange(session.flow.app.node.port, "GET", path, {"Host": session.flow.host})
        assert answer.status == 200 and "immutable" in answer.header("cache-control"), path
        assert answer.header("set-cookie") is None
    unknown = wire.exchange(session.flow.app.node.port, "GET", "/assets/" + "0" * 32 + ".css", {"Host": session.flow.host})
    assert unknown.status == 404
    style = session.browser.answer.body
    assert len(style) < 12 * 1024


def test_one_form_sent_twice_has_one_effect(realm):
    """Eight identical forms at once: one code is issued, and each leads to it."""
    session, email = Session(realm), realm.user()
    session.send(email)
    fields = {**session.browser.page.fields, "code": session.code(email), "action": "continue"}
    headers = {"Host": session.flow.host, "Content-Type": "application/x-www-form-urlencoded",
               "Sec-Fetch-Site": "same-origin", **session.browser.cookie_header()}

    def post(_):
        return wire.exchange(session.flow.app.node.port, "POST", "/sign-in", headers, wire.form_body(fields))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(post, range(8)))
    assert all(a.status == 303 and REDIRECT in a.header("location") for a in answers), answers
    assert len({a.header("location") for a in answers}) == 1, answers


def test_brand_and_texts(realm):
    """An administrator's name, colours, logo and texts are on the pages within a second."""
    admin = realm.world.admin
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    admin.run(f"SELECT admin.set_branding('{realm.slug}', product_name => 'Brand & Co', accent => '#7a1fa2', "
              f"logo => '\\x{svg.hex()}', terms_uri => 'https://brand.example/terms');")
    admin.call("put_text", realm.slug, "en", "address-title", "Come in <b>")
    realm.world.settle()
    session = Session(realm)
    body = session.browser.answer.body
    assert b"Brand &amp; Co" in body and b"Come in &lt;b&gt;" in body and b"https://brand.example/terms" in body
    colours = [path for path in session.browser.page.assets if path.endswith(".css")][-1]
    style = wire.exchange(session.flow.app.node.port, "GET", colours, {"Host": session.flow.host})
    assert b"--accent:#7a1fa2;--on-accent:#ffffff" in style.body
    logo = [path for path in session.browser.page.assets if path.startswith("/brand/")][0]
    answer = wire.exchange(session.flow.app.node.port, "GET", logo, {"Host": session.flow.host})
    assert (answer.status, answer.body, answer.header("content-type")) == (200, svg, "image/svg+xml")
    assert answer.header("content-security-policy") == "sandbox; default-src 'none'"
