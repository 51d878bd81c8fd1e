"""The client modules of `clients/js` in Chromium under faults: lost answers, wrong clocks, no locks; and what they keep to themselves."""

import base64
import json
import urllib.parse

import pytest

from harness import settings
from harness.client_site import ClientTab
from harness.links import Link, Links
from harness.module_site import until
from test_client_modules import TOKEN, one_browser, served  # noqa: F401  pylint: disable=unused-import

pytestmark = pytest.mark.slow


def before_scripts(tab, source):
    """Runs a script in each document of a tab before its own."""
    tab.send("Page.addScriptToEvaluateOnNewDocument", {"source": source})


def test_eight_tabs_without_locks_refresh_and_stay_signed_in(served, browser):  # noqa: F811
    """Each may refresh; the server gives the same successor to all."""
    tabs = [ClientTab(browser) for _ in range(8)]
    for tab in tabs:
        before_scripts(tab, "Object.defineProperty(navigator, 'locks', { value: undefined })")
        tab.visit(served.site)
    served.sign_in(tabs[0])
    for tab in tabs:
        tab.wait("client.state.signedIn")
    for _ in range(3):
        tabs[0].expire()
        before = len(served.proxy.calls(TOKEN))
        for tab in tabs:
            tab.evaluate("void (window.fetched = outcome(client.accessToken()))")
        assert all("value" in tab.evaluate("fetched") for tab in tabs)
        assert set(served.proxy.calls(TOKEN)[before:]) == {200} and len(served.proxy.calls(TOKEN)) <= before + 8
    assert all(tab.evaluate("client.state.signedIn") for tab in tabs)
    assert tabs[7].value("client.account('GET', '/connect/account')")


def test_two_tabs_that_refresh_all_the_time_stay_signed_in_while_answers_are_lost(served, browser):  # noqa: F811
    """Each tenth answer of the token endpoint is lost after the server gave it, for half a minute, or ten with POSTERN_FULL."""
    tabs = [ClientTab(browser).visit(served.site) for _ in range(2)]
    served.sign_in(tabs[0])
    tabs[1].wait("client.state.signedIn")
    seconds = 600 if settings.FULL else 30
    before = len(served.proxy.calls(TOKEN))
    served.proxy.drop_every(TOKEN, 10)
    for tab in tabs:
        tab.evaluate(f"""void (async () => {{
            const end = performance.now() + {1000 * seconds}, seen = {{}};
            while (performance.now() < end) {{
                await expire();
                const {{ code = "token" }} = await outcome(client.accessToken());
                seen[code] = (seen[code] ?? 0) + 1;
            }}
            window.soaked = seen;
        }})()""")
    for tab in tabs:
        tab.wait("window.soaked !== undefined", timeout=seconds + 60)
    served.proxy.drop_every(TOKEN, 0)
    seen = [tab.evaluate("soaked") for tab in tabs]
    statuses = served.proxy.calls(TOKEN)[before:]
    assert all(set(one) <= {"token", "unavailable"} and one["token"] > 5 for one in seen) and set(statuses) == {200}, (seen, set(statuses))
    assert len(statuses) > 20, "some of them were lost"
    assert not any(event["kind"] == "signed_out" for tab in tabs for event in tab.evaluate("logged"))
    assert all(tab.evaluate("client.state.signedIn") for tab in tabs)
    assert tabs[1].value("client.account('GET', '/connect/account')")


@pytest.mark.parametrize("offset", [600, -600, 3 * 365 * 86_400])
def test_a_wrong_clock_costs_one_request(served, browser, offset):  # noqa: F811
    """The server's time comes with the first refusal, and stays in the store for the next page."""
    tab = ClientTab(browser)
    before_scripts(tab, f"const now = Date.now; Date.now = () => now.call(Date) + {1000 * offset}")
    tab.visit(served.site)
    before = len(served.proxy.requests)

    def refused():
        return [request for request in served.proxy.requests[before:] if request[2] in (400, 401)]

    served.sign_in(tab)
    for _ in range(20):
        tab.value("client.account('GET', '/connect/account')")
    assert len(refused()) == 1, refused()
    tab.visit(served.site)
    tab.expire()
    tab.value("client.account('GET', '/connect/account')")
    assert len(refused()) == 1, refused()


def test_a_code_is_typed_after_a_reload(served, browser):  # noqa: F811
    """The request is stored; the other one is forgotten."""
    tab = ClientTab(browser).visit(served.site)
    email = served.user()
    asked = tab.value(f"client.requestCode({{ email: {json.dumps(email)} }})")
    code = served.world.mailbox.wait(email, 1, kind="code").code
    tab.value(f"client.requestCode({{ email: {json.dumps(served.user())} }}).then(other => client.forget(other))")
    tab.visit(served.site)
    assert tab.value("client.pending()") == [asked]
    assert tab.value(f"client.signInWithCode({json.dumps(asked)}, {json.dumps(code)})")["methods"] == ["otp"]
    assert tab.value("client.pending()") == []


def test_a_link_is_waited_for(served, browser):  # noqa: F811
    """The number is typed where the link is opened; the answer that has the tokens is lost once."""
    tab = ClientTab(browser).visit(served.site)
    email = served.user()
    tab.evaluate(f"""client.requestLink({{ email: {json.dumps(email)} }}).then(link => {{
        window.link = link; window.waiting = outcome(client.wait(link)); }})""")
    link = Link(email, "", tab.evaluate("link.matchNumber"), served.world.mailbox.wait(email, 1, kind="link").link)
    until(lambda: served.proxy.calls(TOKEN)[-1:] == [400], "no poll")
    served.proxy.drop(TOKEN)
    assert Links(served.app).choose(link, link.number).status == 200
    tab.wait("client.state.signedIn", timeout=30)
    assert tab.evaluate("waiting")["value"]["id"] == tab.evaluate("client.state.user.id")


def test_a_redirect_of_an_api_is_not_followed(served, browser):  # noqa: F811
    """Unless the app asks for it."""
    tab = ClientTab(browser).visit(served.site)
    served.sign_in(tab)
    cors = [("Access-Control-Allow-Origin", served.site.origin)]
    elsewhere = "/connect/sessions"
    served.proxy.given["/connect/account"] = (302, [("Location", elsewhere), *cors], b"")
    served.proxy.given[elsewhere] = (200, cors, b"{}")
    before = len(served.proxy.calls(elsewhere))
    try:
        call = "client.fetch(settings.origin + '/connect/account', %s, 'account').then(answer => answer.status)"
        assert tab.outcome(call % "{}")["code"] == "unavailable"
        assert len(served.proxy.calls(elsewhere)) == before
        assert tab.outcome(call % "{ redirect: 'follow' }") == {"value": 200}
        assert len(served.proxy.calls(elsewhere)) == before + 1
    finally:
        served.proxy.given.clear()


def test_a_tab_takes_over_the_key_that_another_made_after_the_device_was_forgotten(served, browser):  # noqa: F811
    """The one that it had in memory is of no use any more."""
    one, other = (ClientTab(browser).visit(served.site) for _ in range(2))
    served.sign_in(one)
    other.wait("client.state.signedIn")
    other.value("client.account('GET', '/connect/account')")
    one.value("client.signOut('forgettingThisDevice')")
    other.wait("!client.state.signedIn")
    served.sign_in(one)
    other.wait("client.state.signedIn")
    for tab in (other, one):
        assert tab.value("client.account('GET', '/connect/account')")
        assert tab.evaluate("client.state.signedIn")


def test_a_service_worker_signs_in_and_shares_the_session_of_the_page(served, browser):  # noqa: F811
    """It has neither document nor page."""
    tab = ClientTab(browser).visit(served.site)
    tab.evaluate("""navigator.serviceWorker.register(
        trustedTypes.createPolicy("service", { createScriptURL: url => url }).createScriptURL("/service.js"), { type: "module" })
        .then(() => navigator.serviceWorker.ready).then(({ active }) => {
            window.ask = (...call) => new Promise(resolve => {
                const { port1, port2 } = new MessageChannel();
                port1.onmessage = ({ data }) => resolve(data);
                active.postMessage(call, [port2]);
            });
        })""")
    email = served.user()
    made = tab.evaluate(f"ask('requestCode', {{ email: {json.dumps(email)} }})")
    code = served.world.mailbox.wait(email, 1, kind="code").code
    done = tab.evaluate(f"ask('signInWithCode', {json.dumps(made['value'])}, {json.dumps(code)})")
    assert done["value"]["methods"] == ["otp"] and done["document"] == "undefined", done
    tab.wait("client.state.signedIn", timeout=1)
    assert tab.value("client.account('GET', '/connect/account')")


# -- secrets ----------------------------------------------------------------------------------------

#: Keeps everything that is sent and received, and each error.
_RECORDED = """
const wire = [], errors = [];
const send = async (url, init) => {
    wire.push(String(init?.body ?? ""), ...Object.values(init?.headers ?? {}));
    const answer = await fetch(url, init);
    answer.clone().text().then(text => wire.push(text));
    return answer;
};
const failing = async call => {
    try {
        await call();
    } catch (error) {
        errors.push([String(error), error.stack, error.message, JSON.stringify(error), JSON.stringify(error.details)].join("\\n"));
        return error.code;
    }
};
Object.assign(window, { wire, errors, failing, client: open_({ platform: { fetch: send } }) });
"""
_SECRETS = {
    "access_token", "refresh_token", "id_token", "token", "otp_code", "AuthSession", "auth_session", "IdTokenHint", "Email", "totp_code",
    "secret", "Secret", "assertion", "ceremonyId", "ceremony_id", "uri"}


def secrets_of(texts):
    """The values of members that are secret, and what headers carry, in what a client sent and received."""
    found = set()

    def look(value, name=""):
        if isinstance(value, dict):
            for key, one in value.items():
                look(one, key)
        elif isinstance(value, list):
            for one in value:
                look(one, name)
        elif name in _SECRETS and isinstance(value, str) and len(value) >= 6:
            found.add(value)

    for text in texts:
        if text.startswith(("DPoP ", "Bearer ")):
            found.add(text.partition(" ")[2])
        elif text.startswith("ey") and text.count(".") == 2:
            found.add(text)
        elif text.startswith(("{", "[")):
            look(json.loads(text))
        else:
            look(dict(urllib.parse.parse_qsl(text)))
    return found


def leaks(secrets, text):
    """The secrets that a text has, as they are or in another form."""
    def forms(secret):
        raw = secret.encode()
        inner = base64.b64encode(raw).decode().rstrip("=")[:-1]
        return secret, inner, inner.replace("+", "-").replace("/", "_"), raw.hex(), urllib.parse.quote(secret, safe="")

    return [secret for secret in secrets if any(form in text for form in forms(secret))]


def test_nothing_that_a_client_tells_has_a_secret(served, browser):  # noqa: F811
    """Log events, errors, messages between tabs, the console, the address and other storage, over its flows with their failures."""
    tab = ClientTab(browser).visit(served.site)
    tab.evaluate(f"(() => {{ {_RECORDED} }})()")
    email = served.user()
    tab.value(f"client.requestCode({{ email: {json.dumps(email)} }}).then(made => {{ window.asked = made; }})")
    code = served.world.mailbox.wait(email, 1, kind="code").code
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    assert tab.evaluate(f"failing(() => client.signInWithCode(asked, {json.dumps(wrong)}))") == "wrong_code"
    served.proxy.drop(TOKEN)
    tab.value(f"client.signInWithCode(asked, {json.dumps(code)})")
    tab.value("passkeys.addPasskey(client, { name: 'Laptop' })")
    assert tab.evaluate("failing(() => passkeys.addPasskey(client))") == "already_there"
    tab.value("client.account('POST', '/connect/totp/enroll/begin', {})")
    assert tab.evaluate("failing(() => client.account('POST', '/connect/totp/enroll', { CeremonyId: 'x', Code: '000000' }))")
    tab.value("client.requestLink({ email: 'nobody@mail.example' }).then(link => client.forget(link))")
    tab.expire()
    tab.value("client.accessToken({ scope: 'openid' })")
    assert tab.evaluate("failing(() => client.accessToken({ scope: 'unheard-of' }))")
    assert tab.evaluate("failing(() => client.fetch('https://api.example/?code=' + asked.id, { mode: 'no-cors' }))") == "misuse"
    foreign = f"{served.site.origin}/signed-in?code=x&state=y&iss={served.origin}"
    assert tab.evaluate(f"failing(() => pages.finishSignIn(client, {json.dumps(foreign)}))") == "foreign_redirect"
    challenge = "{ levels: [], maxAge: 0 }"
    tab.value(f"passkeys.stepUpWithPasskey(client, {challenge})")
    tab.value("client.signOut()")
    tab.value("passkeys.signInWithPasskey(client)")
    assert tab.evaluate("failing(() => client.adopt('prt_' + 'A'.repeat(43)))") == "signed_out"
    tab.value("client.signOut('forgettingThisDevice')")
    assert tab.evaluate("failing(() => client.accessToken())") == "signed_out"

    secrets = secrets_of(tab.evaluate("wire"))
    assert len(secrets) > 30 and {code, email, wrong} <= secrets and any(one.startswith("prt_") for one in secrets)
    told = tab.evaluate("""JSON.stringify({
        logged, told, errors, location: location.href, history: history.state, cookie: document.cookie,
        ...localStorage, ...sessionStorage })""")
    console = json.dumps([event for event in browser.events if event.get("method") in ("Runtime.consoleAPICalled", "Log.entryAdded")])
    assert len(tab.evaluate("errors")) == 8 and leaks(secrets, told + console) == []
    # The console has a line of its own for each answer of 400; nothing was against the policy, nothing was thrown.
    assert all("Failed to load resource" in str(one) for one in tab.complaints()), tab.complaints()
    kinds = {event["kind"] for event in tab.evaluate("logged")}
    assert {"request", "refresh", "signed_in", "signed_out"} <= kinds and set(tab.evaluate("told")) == {"changed"}
    for form in (email, base64.b64encode(email.encode()).decode(), email.encode().hex(), urllib.parse.quote(email)):
        assert leaks(secrets, f"… {form} …"), "what leaked would be found"
