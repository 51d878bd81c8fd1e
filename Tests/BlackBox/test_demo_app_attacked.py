"""The demo app under attack: markup in what the server and the address say, foreign answers of the pages, frames, other origins, and
tokens that were carried away."""

import json

import pytest

from harness import wire
from harness.browser import chromium
from harness.demo_app import OUTPUT, DemoTab, demo_app, own_browser, own_user  # pylint: disable=unused-import  # fixtures

pytestmark = pytest.mark.slow
MARKUP = "<img src=x onerror=\"window.hit='yes'\">"


def untouched(tab):
    """No markup became an element, and no script ran."""
    assert tab.evaluate("window.hit") is None
    assert tab.evaluate("document.querySelectorAll('img, iframe, object, embed, svg, script:not([src])').length") == 0


def test_markup_of_the_server_is_text(app, browser):
    """In names of people, clients, passkeys, devices and codes of errors."""
    email = app.user(first="A&lt;b")
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.press("addPasskey")
    tab.says("added")
    for path, members in (("account", {"FirstName": MARKUP}), ("passkey", [{"Id": MARKUP, "DisplayName": MARKUP, "CreatedAt": MARKUP}]),
                          ("devices", [{"Id": "../../x", "DisplayName": MARKUP, "CreatedAt": "x"}]),
                          ("sessions", [{"Id": MARKUP, "ClientName": MARKUP, "CreatedAt": 0, "Current": False}])):
        answers(app, f"/connect/{path}", 200, members)
    answers(app, "/connect/totp/enroll/begin", 200, {"ceremonyId": MARKUP, "secret": MARKUP, "uri": "javascript:window.hit='yes'"})
    answers(app, "/connect/totp/enroll", 400, {"error": MARKUP})
    try:
        tab.visit(app)
        tab.expect("#name", MARKUP)
        tab.expect("#passkey", MARKUP)
        tab.begin_totp()
        assert tab.evaluate("document.querySelector('#uri').getAttribute('href')") is None
        tab.evaluate("document.querySelector('#uri').click()")
        tab.fill("#first", "123456")
        tab.click("#enroll .primary")
        tab.says(MARKUP)
        untouched(tab)
    finally:
        for path in list(app.proxy.given):
            if path.startswith("/connect/"):
                del app.proxy.given[path]


def answers(app, path, status, members):
    """The proxy answers in the server's place."""
    fields = [("Content-Type", "application/json"), ("Access-Control-Allow-Origin", app.origin),
              ("Access-Control-Allow-Headers", "authorization, dpop, content-type"), ("Access-Control-Allow-Methods", "GET, POST, DELETE")]
    app.proxy.given[path] = status, fields, json.dumps(members).encode()


@pytest.mark.parametrize("address", [
    f"/?email={MARKUP}&notice={MARKUP}", f"/#{MARKUP}", "/?returnTo=https://evil.example/&redirect=//evil.example&next=javascript:alert(1)",
    "/?do=signOutEverywhere&action=forget#signOut", f"/?error={MARKUP}&error_description={MARKUP}&state=x&iss=x",
], ids=["markup in the query", "markup in the fragment", "other addresses", "names of actions", "an error of the pages"])
def test_the_address_of_the_app_does_nothing(app, browser, email, address):
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    tab.visit(app, address.replace("<", "%3C").replace(">", "%3E").replace('"', "%22").replace(" ", "%20"))
    tab.view("in")
    assert tab.evaluate("location.origin") == app.origin
    untouched(tab)
    tab.silent()


def test_an_answer_that_this_browser_did_not_ask_for_changes_nothing(app, browser, email):
    """A code of the attacker's own sign-in, in the victim's browser: it is not redeemed, and leaves the address at once."""
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    session, before = tab.session_id(), len(app.proxy.calls("/connect/token"))
    with chromium(OUTPUT / "attacker.log") as second:
        attacker = DemoTab(second).visit(app)
        attacker.press("pages")
        attacker.wait(f"location.origin === {json.dumps(app.server)}")
        # The attacker's browser stops before the app sees the answer: the state is one that the server gave out.
        stored = DemoTab(second).visit(app).documents()
    [asked] = next(document for name, document in stored.items() if name.endswith(".pages"))
    tab.visit(app, f"/?code=pac_of_the_attacker&state={asked['state']}&iss={app.server}&keep=1")
    tab.view("in")
    tab.says("This browser did not ask for that answer. Nothing has changed.")
    assert tab.evaluate("location.href") == f"{app.origin}/?keep=1"
    assert tab.session_id() == session and len(app.proxy.calls("/connect/token")) == before
    tab.visit(app, f"/?code=x&code=y&state={asked['state']}&iss={app.server}")
    tab.view("in")
    assert tab.evaluate("location.href") == f"{app.origin}/" and tab.session_id() == session


def test_no_secret_is_in_an_address_a_referrer_the_history_or_another_store(app, browser, email):
    tab = DemoTab(browser)
    tab.send("Network.enable")
    tab.visit(app)
    tab.sign_in_by_pages(app, email)
    tab.expire()
    tab.begin_totp()
    kept = tab.session()
    secrets = [kept["session"]["refresh"], kept["session"]["idToken"], kept["tokens"][0]["value"]]
    assert tab.evaluate("[sessionStorage.length, localStorage.length, document.cookie]") == [0, 0, ""]
    assert not any(secret in tab.evaluate("document.documentElement.outerHTML") for secret in secrets)
    sent = [event["params"] for event in tab.events("Network.requestWillBeSent")]
    assert not any(secret in one["request"]["url"] for one in sent for secret in secrets)
    own = [one["request"]["headers"] for one in sent if one["documentURL"].startswith(app.origin)]
    assert len(own) > 10
    assert {value for headers in own for name, value in headers.items() if name.lower() == "referer"} <= {""}
    # The answer's address was this document's first one: the script, the style and the modules went without it.
    history = tab.send("Page.getNavigationHistory")["entries"]
    assert not any("code=" in entry["url"] for entry in history if entry["url"].startswith(app.origin)), history
    tab.silent()


@pytest.mark.parametrize("host", ["evil.localhost", "localhost"])
def test_the_app_does_not_show_in_a_frame(app, browser, host):
    tab = DemoTab(browser)
    tab.open(f"http://{host}:{app.proxy.port}/empty")
    tab.evaluate(f"""new Promise(resolve => {{
        const frame = document.createElement("iframe");
        frame.onload = resolve;
        frame.src = {json.dumps(app.origin)};
        document.body.append(frame);
    }})""")
    assert any("frame-ancestors" in str(one) for one in tab.complaints())


def test_a_page_of_another_origin_reads_nothing(app, browser, email):
    """Neither the store, nor what the tabs tell each other, nor an answer of the server, nor the app's window."""
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    token = tab.session()["tokens"][0]["value"]
    evil = DemoTab(browser)
    evil.open(f"http://evil.localhost:{app.proxy.port}/empty")
    assert evil.evaluate("indexedDB.databases()") == []
    evil.evaluate(f"""void (window.heard = [], new BroadcastChannel({json.dumps(f'postern:{app.server}:demo-spa')}).onmessage =
        ({{ data }}) => heard.push(data))""")
    for path in ("/connect/account", "/connect/sessions", "/api/app-info"):
        for scheme in ("DPoP", "Bearer"):
            asked = f"fetch({json.dumps(app.server + path)}, {{ headers: {{ Authorization: '{scheme} {token}' }} }})"
            assert evil.evaluate(f"{asked}.then(() => 'read', () => 'refused')") == "refused", (path, scheme)
    assert evil.evaluate(f"""new Promise(resolve => {{
        const opened = open({json.dumps(app.origin)});
        const look = () => {{
            try {{
                if (opened.location.href !== "about:blank") resolve(opened.document.title);
            }} catch (error) {{
                resolve(error.name);
            }}
        }};
        setInterval(look, 50);
    }})""") == "SecurityError"
    tab.press("signOut")
    tab.view("out")
    assert evil.evaluate("heard") == []


def test_a_token_that_was_carried_away_is_worth_nothing(app, browser, email):
    """Without the key each call with it is 401, and the refresh token opens nothing; the person stays signed in."""
    tab = DemoTab(browser).visit(app)
    tab.sign_in(app, email)
    kept = tab.session()
    token, refresh = kept["tokens"][0]["value"], kept["session"]["refresh"]
    host = {"Host": f"localhost:{app.proxy.port}"}
    for path in ("/connect/account", "/connect/sessions", "/connect/userinfo", "/connect/passkey"):
        for scheme in ("DPoP", "Bearer"):
            answer = wire.exchange(app.node.port, "GET", path, {**host, "Authorization": f"{scheme} {token}"})
            assert answer.status == 401, (path, scheme, answer)
    form = wire.form_body({"grant_type": "refresh_token", "refresh_token": refresh, "client_id": "demo-spa"})
    answer = wire.exchange(app.node.port, "POST", "/connect/token", {**host, "Content-Type": wire.FORM}, form)
    assert answer.status == 400 and "access_token" not in answer.json(), answer
    with chromium(OUTPUT / "thief.log") as second:
        thief = DemoTab(second).visit(app)
        thief.sign_in(app, app.user())
        for member in ("session", "tokens"):
            thief.documents(f"document.session ? {{ ...document, {member}: {json.dumps(kept[member])} }} : undefined")
        thief.evaluate("document.querySelector('#notice').textContent = ''")
        thief.press("beginTotp")
        thief.view("out")
        thief.says("The key of this browser is gone.")
    tab.visit(app)
    tab.view("in")
    tab.expire()
    tab.begin_totp()
