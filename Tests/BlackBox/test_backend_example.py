"""examples/bff signs people in as docs/integrate-backend.md says, and withstands what browsers and upstreams do to it."""

import json
import re
import uuid

import pytest

from harness.backend import EXAMPLE, OWN, Backend, Visitor, arrival
from harness.browser import Page, chromium
from harness.ports import free_port
from harness.settings import OUTPUT

ASK = "/api/account/native/otp/request"
#: Access, refresh and ID tokens, handles, ceremonies, secrets.
SECRET = re.compile(r"\b(pat|prt|pas|pcm|pcs)_[\w-]{16}|eyJhbGciOi")


@pytest.fixture(scope="module")
def backend(browser_world, tmp_path_factory):
    """The example, its realm and its API."""
    made = Backend(browser_world, tmp_path_factory.mktemp("bff"))
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def browser():
    """One Chromium."""
    with chromium(OUTPUT / "bff-chromium.log") as made:
        yield made


@pytest.fixture(scope="module")
def lasting(backend):
    """A browser that is signed in, whose session no test ends."""
    made = Visitor(backend)
    made.sign_in(backend.user())
    return made


@pytest.fixture
def visitor(backend):
    """A browser that is signed in."""
    made = Visitor(backend)
    made.sign_in(backend.user())
    return made


# -- in Chromium


def site(browser, backend):
    """A tab at the site; its certificate is nobody's."""
    page = Page(browser)
    for command, parameters in (("Security.setIgnoreCertificateErrors", {"ignore": True}), ("Network.enable", {}), ("Network.clearBrowserCookies", {})):
        page.send(command, parameters)
    browser.events.clear()
    page.open(backend.origin + "/")
    page.wait("!document.querySelector('#out').hidden")
    return page


def assert_signed_in(page, browser, backend):
    """The page shows whose token the API got; nothing that the browser was given holds a token."""
    page.wait("!document.querySelector('#in').hidden && document.querySelector('#out').hidden")
    assert uuid.UUID(json.loads(page.text("#me"))["sub"])
    given, events = [page.evaluate("document.documentElement.outerHTML")], list(browser.events)
    answers = [event["params"] for event in events if event["method"] == "Network.responseReceived"]
    for answer in answers:
        if answer["response"]["url"].startswith(backend.origin) and answer["response"]["status"] == 200:
            given.append(page.send("Network.getResponseBody", {"requestId": answer["requestId"]})["body"])
    fields = [event["params"]["headers"] for event in events if event["method"] == "Network.responseReceivedExtraInfo"]
    cookies = page.send("Network.getCookies", {"urls": [backend.origin]})["cookies"]
    assert {"__Host-app", "__Host-device"} == {one["name"] for one in cookies} and len(given) > 3 and fields
    assert all(one["secure"] and one["httpOnly"] and one["sameSite"] == "Lax" and one["path"] == "/" for one in cookies)
    for text in (*given, json.dumps(fields), json.dumps(cookies)):
        assert not SECRET.search(text), text
    assert not [one for one in page.complaints() if "favicon" not in str(one) and "401" not in str(one)], page.complaints()


def by_code(page, backend, email, count=1):
    """Types address and code."""
    page.type("#ask input", email)
    page.click("#ask button")
    page.wait("!document.querySelector('#redeem').hidden")
    page.type("#redeem input", backend.code(email, count))
    page.click("#redeem button")


@pytest.mark.slow
def test_chromium_signs_in_by_a_code_then_by_a_passkey_of_the_sites_own(browser, backend):
    page = site(browser, backend)
    by_code(page, backend, backend.user())
    assert_signed_in(page, browser, backend)
    page.click("#new")
    page.expect("#said", "Passkey enrolled successfully.")
    assert [one["rpId"] for one in page.credentials()] == ["app.localhost"]
    page.click("#leave")
    page.wait("!document.querySelector('#out').hidden")
    browser.events.clear()
    page.open(backend.origin + "/")
    page.wait("!document.querySelector('#out').hidden")
    page.click("#passkey")
    assert_signed_in(page, browser, backend)


@pytest.mark.slow
def test_chromium_signs_in_by_the_pages_of_the_realm(browser, backend):
    page, email = site(browser, backend), backend.user()
    page.click("#page")
    page.wait("document.querySelector('main')?.dataset.step === 'address'")
    assert page.evaluate("location.origin") == backend.issuer and "state=" not in page.evaluate("location.href"), "the request was pushed"
    page.type("#address", email)
    page.click("button[value=continue]")
    page.wait("document.querySelector('main')?.dataset.step === 'code'")
    page.type("#code", backend.code(email))
    browser.events.clear()
    page.click("button[value=continue]")
    page.wait("location.origin !== %r || document.querySelector('main')?.dataset.step === 'offer-passkey'" % backend.issuer)
    if page.evaluate("location.origin") == backend.issuer:
        page.click("button[value=skip]")
    page.wait("location.href === %r" % (backend.origin + "/"))
    assert_signed_in(page, browser, backend)


# -- who is asking


@pytest.mark.parametrize("number, name, value", [
    (1, "Postern-Forwarded-For", "198.51.100.{}"), (2, "X-Forwarded-For", "198.51.100.{}"), (3, "Forwarded", "for=198.51.100.{}"),
    (4, "X-Real-IP", "198.51.100.{}")])
def test_an_address_that_the_browser_names_counts_for_nothing(backend, number, name, value):
    with backend.limit("native-otp", "source", 2):
        one, other = Visitor(backend, f"127.0.1.{number}"), Visitor(backend, f"127.0.2.{number}")
        statuses = [one.post("/code", {"email": backend.user()}, {name: value.format(n), "User-Agent": "B" * 2000})[0] for n in (1, 2, 3)]
        assert statuses == [200, 200, 429] and other.post("/code", {"email": backend.user()})[0] == 200
    asked = [fields for path, fields in backend.proxy.fields if path == ASK][-4:]
    assert [fields.get_all("Postern-Forwarded-For") for fields in asked] == [[one.source]] * 3 + [[other.source]]
    assert not any(fields[absent] for fields in asked for absent in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Cookie"))
    assert asked[0]["User-Agent"] == "B" * 512


def test_behind_a_proxy_of_ones_own_the_last_address_of_its_list_counts(backend):
    port = free_port()
    backend.start(port, PROXIES="127.0.0.9 127.0.0.8")
    for source, counted in (("127.0.0.9", "198.51.100.2"), ("127.0.0.7", "127.0.0.7")):
        browser = Visitor(backend, source, port)
        assert browser.post("/code", {"email": backend.user()}, {"X-Forwarded-For": "203.0.113.7, 198.51.100.2"})[0] == 200
        assert [fields for path, fields in backend.proxy.fields if path == ASK][-1]["Postern-Forwarded-For"] == counted


def test_wrong_codes_of_one_browser_do_not_limit_another_behind_the_same_backend(backend):
    with backend.limit("token", "source", 20):
        guesser, person, email = Visitor(backend, "127.0.3.1"), Visitor(backend, "127.0.3.2"), backend.user()
        guesser.post("/code", {"email": backend.user()})
        statuses = [guesser.post("/code", {"code": "000000"})[0] for _ in range(40)]
        assert statuses[:20] == [400] * 20 and set(statuses[20:]) == {429}
        person.sign_in(email)
        assert person.get("/api/me")[0] == 200


def test_a_browser_that_signed_in_before_gets_its_code_when_strangers_used_up_the_budget_of_the_address(backend):
    email, known = backend.user(), Visitor(backend)
    known.sign_in(email)
    assert known.post("/sign-out") == (200, {})
    with backend.limit("native-otp", "target", 2), backend.limit("native-otp", "target-total", 2):
        statuses = [Visitor(backend, "127.0.4.1").post("/code", {"email": email})[0] for _ in range(3)]
        assert statuses[-1] == 429, statuses
        known.sign_in(email, statuses.count(200) + 2)
    assert known.get("/api/me")[0] == 200


# -- other sites


CHANGES = ["/code", "/passkey", "/passkey/new", "/page", "/sign-out"]


@pytest.mark.parametrize("fields, is_served", [
    ({"Sec-Fetch-Site": "cross-site"}, False), ({"Sec-Fetch-Site": "same-site"}, False), ({"Sec-Fetch-Site": "none"}, False),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "own"}, False), ({"Origin": "https://evil.example"}, False), ({"Origin": "null"}, False),
    ({}, False), ({"Origin": "own"}, True), ({"Sec-Fetch-Site": "same-origin"}, True),
])
def test_only_the_sites_own_pages_change_anything(backend, visitor, fields, is_served):
    fields = {name: backend.origin if value == "own" else value for name, value in fields.items()}
    for path in CHANGES:
        status, headers, _ = visitor.ask("POST", path, {"email": backend.user()}, fields)
        assert (status in (200, 303)) == is_served and (status == 403) != is_served, (path, status)
        assert is_served or headers["Set-Cookie"] is None
    assert visitor.get("/api/me")[0] == (401 if is_served else 200)


@pytest.mark.parametrize("host", ["evil.example", "app.localhost", "127.0.0.1", "app.localhost:1"])
def test_a_request_for_another_host_is_not_ours(lasting, host):
    """A name that was made to point here (DNS rebinding) makes no origin of ours."""
    assert lasting.ask("GET", "/", headers={"Host": host})[0] == 404


@pytest.mark.parametrize("change", [{"state": "x"}, {"state": ""}, {"state": None}, {"iss": "https://evil.example"}, {"iss": None}])
def test_a_return_with_anything_else_signs_nobody_in(backend, change):
    """Nor does it end the sign-in that is under way."""
    browser = Visitor(backend)
    right = arrival(browser, backend.user())
    assert browser.callback({**right, **change})[0] == 400 and not browser.cookie
    assert browser.callback(right)[0] == 303 and browser.get("/api/me")[0] == 200


def test_a_code_that_the_realm_did_not_give_signs_nobody_in(backend):
    browser = Visitor(backend)
    right = arrival(browser, backend.user())
    assert browser.callback({**right, "code": "pac_nonsense"})[0] == 400 and not browser.cookie
    assert browser.callback(right)[0] == 400, "once"


def test_people_sign_in_on_the_pages_when_strangers_used_up_the_limit_of_pushed_requests(backend):
    with backend.limit("par", "source", 1):
        Visitor(backend).ask("POST", "/page", {}, OWN)
        browser = Visitor(backend)
        status, headers, _ = browser.ask("POST", "/page", {}, OWN)
        assert status == 303 and "code_challenge_method=S256" in headers["Location"]
        assert browser.callback(arrival(browser, backend.user()))[0] == 303 and browser.get("/api/me")[0] == 200


def test_a_return_signs_in_once_and_only_the_browser_that_began(backend):
    """Else an attacker could sign a victim in to his own account."""
    attacker, victim = Visitor(backend), Visitor(backend)
    right = arrival(attacker, backend.user())
    assert victim.callback(right)[0] == 400
    assert victim.ask("POST", "/page", {}, OWN)[0] == 303
    assert victim.callback(right)[0] == 400 and not victim.cookie
    status, headers, _ = attacker.callback(right)
    assert (status, headers["Location"]) == (303, "/") and attacker.get("/api/me")[0] == 200
    before = attacker.cookie
    assert attacker.callback(right)[0] == 400 and attacker.cookie == before and attacker.get("/api/me")[0] == 200


def test_a_refusal_of_the_pages_signs_nobody_in(backend):
    browser = Visitor(backend)
    right = arrival(browser, backend.user())
    del right["code"]
    status, headers, _ = browser.callback({**right, "error": "access_denied"})
    assert (status, headers["Location"]) == (303, "/") and not browser.cookie


@pytest.mark.parametrize("cookies", [
    {"app": "{}"}, {"__Secure-app": "{}"}, {"": "__Host-app={}"}, {" __Host-app ": ""}, {"device": "{}"}, {"__Host-app": "x" * 3000}, {"__Host-device": "x"}, {"__Host-device": "gAAAAAB" + "A" * 200}])
def test_a_cookie_that_somebody_else_made_is_none(backend, lasting, cookies):
    """Without the prefix a site beside ours could have set it."""
    stranger = Visitor(backend)
    stranger.cookies = {name: value.format(lasting.cookie) for name, value in cookies.items()}
    assert stranger.get("/api/me")[0] == 401
    assert stranger.post("/code", {"email": backend.user()})[0] == 200


def test_the_cookie_of_a_device_signs_nobody_in(backend, lasting):
    stranger = Visitor(backend)
    stranger.cookies = {"__Host-device": lasting.cookies["__Host-device"], "__Host-app": lasting.cookies["__Host-device"]}
    assert stranger.get("/api/me")[0] == 401


@pytest.mark.parametrize("method, path, body, status", [
    ("POST", "/code", {"email": "a" * 17000}, 413), ("POST", "/passkey/new", {"credential": "[" * 5000}, 400), ("POST", "/passkey/new", {"credential": "{"}, 400),
    ("GET", "/callback?state=" + "s" * 5000, None, 413), ("GET", "/../app.py", None, 404), ("GET", "/..%2fapp.py", None, 404), ("GET", "/%2e%2e/app.py", None, 404),
    ("GET", "//evil.example/", None, 404), ("GET", "/page.html/..%2f..%2fstore.py", None, 404), ("POST", "/code", {}, 400),
    ("POST", "/logged-out", {}, 400), ("POST", "/passkey", {"credential": "{}"}, 400),
])
def test_what_no_page_of_ours_sends_is_refused(lasting, method, path, body, status):
    given = lasting.ask(method, path, body, OWN)
    assert given[0] == status, given
    assert given[1]["Location"] is None and lasting.get("/api/me")[0] == 200


def test_a_body_of_unknown_length_is_refused(lasting):
    fields = {**OWN, "Transfer-Encoding": "chunked", "Content-Length": None}
    assert lasting.ask("POST", "/sign-out", b"0\r\n\r\n", fields)[0] == 413


@pytest.mark.parametrize("path, policy", [("/", "script-src 'self'"), ("/page.js", "default-src 'none'"), ("/api/me", "sandbox"), ("/api/none", "default-src 'none'")])
def test_every_answer_has_its_policy(lasting, path, policy):
    headers = lasting.ask("GET", path)[1]
    assert policy in headers["Content-Security-Policy"] and "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] in ("no-store", "no-cache")
    assert (headers["X-Content-Type-Options"], headers["Cross-Origin-Resource-Policy"]) == ("nosniff", "same-origin")


def test_the_example_has_at_most_300_lines_and_no_script_in_its_page():
    """Beside comments and blank lines."""
    files = [file for file in EXAMPLE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    lines = [line.strip() for file in files for line in file.read_text().splitlines()]
    assert len([line for line in lines if line and not line.startswith(('"""', "# ", "// "))]) <= 300
    assert re.findall(r"<script.*?</script>|\son\w+=|style", (EXAMPLE / "static/page.html").read_text()) == ['<script type="module" src="/page.js"></script>']
