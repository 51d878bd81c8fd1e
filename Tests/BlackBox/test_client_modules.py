"""The client modules of `clients/js` in Chromium: sign-in, one session for all tabs, passkeys, pages; and in Node."""

import json
import re
import shutil
import subprocess

import pytest

from harness import report
from harness.app import NativeApp
from harness.browser import chromium
from harness.client_site import ClientSite, ClientTab
from harness.module_site import CuttingProxy, until
from harness.realm import call
from harness.settings import REPOSITORY

OUTPUT = REPOSITORY / ".test-output" / "client"
SCRIPTS = REPOSITORY / "Tests/JavaScript"
TOKEN = "/connect/token"

pytestmark = pytest.mark.slow


class Served:
    """A realm of localhost and a site of one of its clients."""

    def __init__(self, world):
        self.world = world
        self.node = world.start_node()
        self.proxy = CuttingProxy(self.node.port)
        self.origin = f"http://localhost:{self.proxy.port}"
        self.site = ClientSite(self.origin)
        world.admin.run(
            call("put_realm", "client", primary_domain="localhost", public_origin=self.origin),
            call("set_native_grants", "client", enabled=True), call("set_hosted", "client", True),
            call("set_code_policy", "client", resend_cooldown="0"),
            call("put_client", "client", "web-app"),
            call("grant_permission", "client", "web-app", variadic=[
                "gt:urn:cocoar:otp", "gt:urn:cocoar:magic", "gt:urn:cocoar:passkey", "gt:refresh_token", "gt:authorization_code",
                "gt:urn:postern:device"]),
            call("set_approvals", "client", True, public_clients=True, probation="0"),
            call("put_web_origin", "client", "web-app", self.site.origin),
            call("put_redirect_uri", "client", "web-app", f"{self.site.origin}/signed-in"),
        )
        world.settle()
        self.app = NativeApp(self.node, world.mailbox, "localhost", "web-app")

    numbers = iter(range(1000))

    def user(self):
        """The address of a new user."""
        email = f"hedy{next(Served.numbers)}@mail.example"
        self.world.admin.call("put_user", "client", email, email_verified=True)
        return email

    def sign_in(self, tab, email=None):
        """Signs in by code. Returns the address."""
        email = email or self.user()
        before = len(self.world.mailbox.to(email, "code"))
        tab.evaluate(f"client.requestCode({{ email: {json.dumps(email)} }}).then(made => {{ window.asked = made; }})")
        code = self.world.mailbox.wait(email, before + 1, kind="code").code
        user = tab.value(f"client.signInWithCode(asked, {json.dumps(code)})")
        assert user["methods"] == ["otp"], user
        return email

    def close(self):
        """Everything but the world."""
        self.site.close()
        self.proxy.close()
        self.node.stop()


@pytest.fixture(scope="module")
def served(browser_world):
    """The realm."""
    made = Served(browser_world)
    yield made
    made.close()


@pytest.fixture(name="browser")
def one_browser(request):
    """A browser of one test's own."""
    with chromium(OUTPUT / f"{request.node.name}.log") as browser:
        yield browser


def test_what_a_sign_in_keeps_is_in_indexeddb_alone_beside_a_key_that_cannot_be_read(served, browser):
    """No other storage, no cookie; what tabs tell each other is one word; a reload is signed in."""
    tab = ClientTab(browser).visit(served.site)
    assert tab.evaluate("client.state") == {"signedIn": False, "reason": "never"}
    served.sign_in(tab)
    state = tab.evaluate("client.state")
    assert state["signedIn"] and state["persistent"] and state["bound"], state
    assert tab.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    [document] = tab.stored().values()
    assert document["session"]["refresh"].startswith("prt_") and "key" not in document, document
    assert tab.value("client.account('GET', '/connect/sessions')")[0]["DPoP"] is True
    assert set(tab.evaluate("told")) <= {"changed"}
    secrets = [document["session"]["refresh"], document["session"]["idToken"], document["tokens"][0]["value"], "@mail.example"]
    assert not any(secret in json.dumps(tab.evaluate("logged")) for secret in secrets)
    tab.visit(served.site)
    assert tab.evaluate("client.state.user.id") == state["user"]["id"]
    assert tab.complaints() == []


def test_a_tab_that_signs_in_or_out_shows_it_in_every_tab(served, browser):
    """Within a second; the one that waits for a link hears that it is given up."""
    one, other = (ClientTab(browser).visit(served.site) for _ in range(2))
    email = served.user()
    other.evaluate(f"""client.requestLink({{ email: {json.dumps(email)} }}).then(link => {{
        window.waiting = outcome(client.wait(link)); window.asked = link; }})""")
    served.sign_in(one)
    other.wait("client.state.signedIn", timeout=1)
    assert other.evaluate("waiting")["code"] == "cancelled"
    one.value("client.signOut()")
    other.wait("!client.state.signedIn", timeout=1)
    assert other.evaluate("client.state.reason") == "byUser"
    assert other.outcome("client.accessToken()")["code"] == "signed_out"


def test_two_tabs_that_refresh_while_answers_are_lost_stay_signed_in(served, browser):
    """Every third answer is lost after the server gave it. Nobody is signed out, and each gets a token that works."""
    tabs = [ClientTab(browser).visit(served.site) for _ in range(2)]
    served.sign_in(tabs[0])
    tabs[1].wait("client.state.signedIn")
    for turn in range(12):
        tabs[0].expire()
        served.proxy.drop(TOKEN, 1 if turn % 3 == 0 else 0)
        for tab in tabs:
            tab.evaluate("void (window.fetched = outcome(client.accessToken()))")
        tokens = [tab.evaluate("fetched")["value"]["value"] for tab in tabs]
        assert tokens[0] == tokens[1], "one refresh serves both"
    assert all(tab.evaluate("client.state.signedIn") for tab in tabs)
    assert tabs[0].value("client.account('GET', '/connect/account')")


def test_eight_tabs_refresh_once(served, browser):
    """The others find its token."""
    tabs = [ClientTab(browser).visit(served.site) for _ in range(8)]
    served.sign_in(tabs[0])
    for tab in tabs:
        tab.wait("client.state.signedIn")
    tabs[0].expire()
    before = len(served.proxy.calls(TOKEN))
    for tab in tabs:
        tab.evaluate("void (window.fetched = outcome(client.accessToken()))")
    assert len({tab.evaluate("fetched")["value"]["value"] for tab in tabs}) == 1
    assert served.proxy.calls(TOKEN)[before:] == [200]


@pytest.mark.parametrize("without", [
    "indexedDB.open = () => { throw new DOMException('refused', 'SecurityError'); }",
    "IDBObjectStore.prototype.put = () => { throw new DOMException('refused', 'DataCloneError'); }",
])
def test_where_nothing_can_be_kept_the_session_lives_with_the_page(served, browser, without):
    """As in a private window of some browsers."""
    tab = ClientTab(browser)
    tab.send("Page.addScriptToEvaluateOnNewDocument", {"source": without})
    tab.visit(served.site)
    served.sign_in(tab)
    state = tab.evaluate("client.state")
    assert state["persistent"] is False and state["bound"], state
    assert tab.value("client.account('GET', '/connect/sessions')")
    tab.visit(served.site)
    assert tab.evaluate("client.state.signedIn") is False


def test_without_webcrypto_tokens_are_not_bound_and_not_kept(served, browser):
    """And an app that insists on bound ones hears it before any request."""
    tab = ClientTab(browser)
    tab.send("Page.addScriptToEvaluateOnNewDocument", {"source": "Object.defineProperty(crypto, 'subtle', { value: undefined })"})
    tab.visit(served.site)
    before = len(served.proxy.requests)
    assert tab.evaluate("(() => { try { open_({ dpop: 'required' }); } catch (error) { return error.code; } })()") == "misuse"
    assert len(served.proxy.requests) == before
    served.sign_in(tab)
    state = tab.evaluate("client.state")
    assert (state["persistent"], state["bound"]) == (False, False), state


def test_a_passkey_is_added_and_signs_in_by_button_and_by_autofill(served, browser):
    """The button's dialog takes the place of the one that waits."""
    tab = ClientTab(browser).visit(served.site)
    assert tab.evaluate("passkeys.passkeySupport()") == {"available": True, "autofill": True}
    served.sign_in(tab)
    user = tab.evaluate("client.state.user.id")
    assert tab.value("passkeys.addPasskey(client, { name: 'Laptop' })")["Id"]
    assert tab.outcome("passkeys.addPasskey(client)")["code"] == "already_there"
    tab.value("client.signOut()")
    tab.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": tab.authenticator, "enabled": False})
    tab.evaluate("void (window.waiting = outcome(passkeys.signInWithPasskey(client, { autofill: true })))")
    until(lambda: served.proxy.calls("/connect/passkey/begin"), "no ceremony was begun")
    tab.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": tab.authenticator, "enabled": True})
    signed_in = tab.outcome("passkeys.signInWithPasskey(client)")
    waited = tab.evaluate("waiting")
    # The authenticator may have answered the one that waited before the button was pressed.
    assert "value" in signed_in and (waited.get("code") == "cancelled" or "value" in waited), (signed_in, waited)
    assert tab.evaluate("client.state.user.id") == user


def test_the_pages_sign_in_and_the_address_keeps_nothing(served, browser):
    """State, code and issuer are gone before anything is sent; a reload is no second answer."""
    tab = ClientTab(browser).visit(served.site)
    email = served.user()
    assert tab.outcome("pages.signInOnPages(client, { returnTo: 'https://evil.example/' })")["code"] == "misuse"
    tab.evaluate(f"void pages.signInOnPages(client, {{ returnTo: '/basket?id=1', loginHint: {json.dumps(email)} }})")
    tab.wait(f"location.origin === {json.dumps(served.origin)} && document.readyState === 'complete'")
    before = len(served.world.mailbox.to(email, "code"))
    if tab.evaluate("document.querySelector('input[name=code]') === null"):
        if tab.evaluate("document.querySelector('input[type=email], input[name=address]')?.value === ''"):
            tab.type("input[type=email], input[name=address]", email)
        tab.click("form button")
    tab.wait("document.querySelector('input[name=code]') !== null")
    code = served.world.mailbox.wait(email, before + 1, kind="code").code
    tab.type("input[name=code]", code)
    tab.click("form button")
    tab.wait("document.body?.innerText.includes('Not now')")
    tab.evaluate("void [...document.querySelectorAll('button')].find(button => button.innerText === 'Not now').click()")
    tab.wait("window.client !== undefined && location.pathname === '/signed-in'")
    assert "code=" in tab.evaluate("location.search")
    tab.evaluate("void (window.finished = outcome(pages.finishSignIn(client)))")
    assert tab.evaluate("location.search") == ""
    finished = tab.evaluate("finished")
    assert finished["value"]["returnTo"] == f"{served.site.origin}/basket?id=1", finished
    assert tab.evaluate("client.state.signedIn")
    assert tab.value("pages.finishSignIn(client)") is None
    foreign = f"{served.site.origin}/signed-in?code=x&state=y&iss={served.origin}"
    assert tab.outcome(f"pages.finishSignIn(client, {json.dumps(foreign)})")["code"] == "foreign_redirect"


def test_what_a_fetch_may_not_do_is_refused_before_it_is_sent(served, browser):
    """A mode that drops the token, a body that cannot be sent twice, a token of another's."""
    tab = ClientTab(browser).visit(served.site)
    served.sign_in(tab)
    before = len(served.proxy.requests)
    for request in ("{ mode: 'no-cors' }", "{ method: 'POST', body: new ReadableStream() }", "{ headers: { Authorization: 'x' } }"):
        assert tab.outcome(f"client.fetch(settings.origin + '/connect/account', {request})")["code"] == "misuse", request
    assert tab.outcome("client.fetch('http://api.example/')")["code"] == "misuse"
    assert len(served.proxy.requests) == before
    assert tab.evaluate("client.fetch(settings.origin + '/connect/account', {}, 'account').then(answer => answer.status)") == 200


def test_the_key_of_the_session_is_that_of_the_trusted_device(served, browser):
    """One key of a browser for one server, whichever module asks first: a token of the session adds the device."""
    tab = ClientTab(browser).visit(served.site)
    served.sign_in(tab)
    user = tab.evaluate("client.state.user.id")
    added = tab.evaluate("""Promise.all([import(settings.origin + "/sdk/v1/postern.js"), client.accessToken("account")]).then(
        ([{ TrustedDevice }, { value, type }]) => outcome(new TrustedDevice({ clientId: "web-app" }).enroll(
            { access_token: value, token_type: type }, { displayName: "Laptop" })))""")
    assert added["value"]["Id"], added
    tab.value("client.signOut()")
    assert tab.value("client.signInAsTrustedDevice()")["id"] == user
    tab.value("client.signOut('forgettingThisDevice')")
    assert tab.outcome("client.signInAsTrustedDevice()")["code"] == "invalid_grant"


def test_a_page_with_the_former_database_gives_way_and_its_key_stays(served, browser):
    """Version 1 had keys and transactions alone; its pages close it when they are asked to."""
    former = ClientTab(browser)
    former.open(served.site.origin + "/empty")
    kept = former.evaluate("""new Promise(resolve => {
        const opening = indexedDB.open("postern", 1);
        opening.onupgradeneeded = () => ["keys", "transactions"].forEach(name => opening.result.createObjectStore(name));
        opening.onsuccess = async () => {
            opening.result.onversionchange = () => opening.result.close();
            const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, false, ["sign"]);
            const transaction = opening.result.transaction("keys", "readwrite");
            transaction.objectStore("keys").put(pair, %s);
            transaction.oncomplete = async () => resolve((await crypto.subtle.exportKey("jwk", pair.publicKey)).x);
        };
    })""" % json.dumps(served.origin))
    tab = ClientTab(browser).visit(served.site)
    served.sign_in(tab)
    assert tab.evaluate("client.state.persistent")
    x = tab.evaluate("""new Promise(resolve => {
        const opening = indexedDB.open("postern");
        opening.onsuccess = () => {
            opening.result.transaction("keys").objectStore("keys").get(settings.origin).onsuccess = async ({ target }) => {
                opening.result.close();
                resolve((await crypto.subtle.exportKey("jwk", target.result.publicKey)).x);
            };
        };
    })""")
    assert x == kept


def test_a_worker_signs_in_and_shares_the_session_of_the_page(served, browser):
    """It has no document."""
    tab = ClientTab(browser).visit(served.site)
    tab.evaluate("""void Object.assign(window, (() => {
        const policy = trustedTypes.createPolicy("worker", { createScriptURL: url => url });
        const worker = new Worker(policy.createScriptURL("/worker.js"), { type: "module" });
        const next = () => new Promise(resolve => { worker.onmessage = ({ data }) => resolve(data); });
        return { begun: next(), ask: (...call) => { const answer = next(); worker.postMessage(call); return answer; } };
    })())""")
    assert tab.evaluate("begun")["value"]["signedIn"] is False
    email = served.user()
    made = tab.evaluate(f"ask('requestCode', {{ email: {json.dumps(email)} }})")
    code = served.world.mailbox.wait(email, 1, kind="code").code
    done = tab.evaluate(f"ask('signInWithCode', {json.dumps(made['value'])}, {json.dumps(code)})")
    assert done["value"]["methods"] == ["otp"] and done["document"] == "undefined", done
    tab.wait("client.state.signedIn", timeout=1)
    assert tab.value("client.account('GET', '/connect/account')")


# -- Node -------------------------------------------------------------------------------------------


def node(*arguments):
    """Runs a script of Tests/JavaScript."""
    if shutil.which("node") is None:
        report.say("tests of the client modules in Node skipped: node is not installed (apt-get install nodejs)")
        pytest.skip("node is not installed")
    return subprocess.run(["node", *arguments], cwd=SCRIPTS, capture_output=True, text=True, timeout=120, check=False)


def test_the_client_does_what_the_vectors_say():
    """docs/vectors, in virtual time."""
    run = node("vectors.mjs")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("script", ["dialogs", "documents", "limits", "returns", "ways"])
def test_the_client_in_surroundings_of_the_test(script):
    """Passkeys beside a browser that takes time; what is kept; answers of every kind; returns from the pages; other ways in and out."""
    run = node(f"{script}.mjs")
    assert run.returncode == 0 and re.fullmatch(r"\d+ cases\n", run.stdout), run.stdout + run.stderr


@pytest.mark.parametrize("module, source, replacement, script, case", [
    ("passkeys", "    await waiting.end;", "    waiting = undefined;", "dialogs", "the button's dialog opens after the form's has ended"),
    ("passkeys", "!mediation || waiting.mediation", "true", "dialogs", "the form's waits for the button's"),
    ("passkeys", "isDue = !isOver", "isDue = false", "dialogs", "a new ceremony before the old one ends"),
    ("passkeys", "globalThis.document?.hidden", "false", "dialogs", "none while the page is hidden"),
    ("pages", "history.replaceState(", "void (", "returns", "an answer signs in once, and leaves the address first"),
    ("pages", "!== await client.issuer()", "=== undefined", "returns", "answers that do not count"),
    ("pages", "!asked", "false", "returns", "answers that do not count"),
    ("pages", "nonce: asked.nonce", "nonce: undefined", "returns", "an ID token of another sign-in is revoked"),
    ("pages", "one.at > Date.now() - LIFE", "true", "returns", "five are kept, for an hour"),
    ("pages", "!href.startsWith(`${location.origin}/`)", "false", "returns", "where to go on is of this origin"),
    ("core", "if (length > MIB)", "if (false)", "limits", "an answer has at most a mebibyte"),
    ("core", "text.length > MIB", "false", "limits", "where an answer comes whole"),
    ("core", "seconds, signal, body) => {", "seconds, signal, body) => {\n  seconds = 1e6;", "limits", "a server that is silent holds no call"),
    ("core", "globalThis.clearTimeout?.(timer);", "", "limits", "a server that is silent holds no call"),
    ("core", "15 + Number(wait)", "15", "limits", "so much longer"),
    ("postern", "wait: members.wait", "wait: 0", "limits", "so much longer"),
    ("answers", "isFlat(claims)", "true", "limits", "an ID token whose claims cannot be kept"),
    ("keeper", "if (v > 1)", "if (false)", "documents", "a document of a newer format"),
    ("keeper", "pending.slice(-8)", "pending", "documents", "no more than it needs"),
    ("keeper", "session.jkt === await this.thumbprint(key)", "true", "documents", "another key than that of the session"),
    ("session", "document.session.refresh === sent", "true", "vectors", "invalid_grant, and another process has stored a newer"),
    ("session", "if (session.refresh === sent) {", "{", "vectors", "another process refreshed twice before the answer"),
    ("session", "claims.sid === former.sid", "true", "limits", "a refresh with an answer that is none"),
    ("session", "subject && subject !== claims.sub", "false", "vectors", "a step-up by somebody else"),
    ("requests", "maxnumber <= 5_000_000", "true", "vectors", "more work than anybody should do"),
])
def test_a_check_that_is_removed_is_missed(tmp_path, module, source, replacement, script, case):
    """So the tests see it."""
    for folder in ("clients/js", "docs/vectors", "Tests/JavaScript"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    path = tmp_path / f"clients/js/{module}.js"
    text = path.read_text()
    assert source in text, "the check is another one now"
    path.write_text(text.replace(source, replacement))
    run = node(tmp_path / f"Tests/JavaScript/{script}.mjs", case)
    # 13: the case waits for ever.
    assert run.returncode == 13 or (run.returncode == 1 and case in run.stdout), run.stdout + run.stderr


def test_an_altered_vector_is_red_and_named(tmp_path):
    """So the runner compares."""
    for folder in ("clients/js", "docs/vectors", "Tests/JavaScript"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    path = tmp_path / "docs/vectors/refresh.json"
    vectors = json.loads(path.read_text())
    case = next(case for case in vectors["cases"] if case["name"] == "59 of 900 s are left: refreshed")
    next(step for step in case["steps"] if "token" in step)["token"] = "vector-access-99"
    path.write_text(json.dumps(vectors))
    run = node(tmp_path / "Tests/JavaScript/vectors.mjs", "59 of 900 s are left: refreshed")
    assert run.returncode == 1 and "refresh.json: 59 of 900 s are left: refreshed: step" in run.stdout, run.stdout + run.stderr


def test_what_is_declared_is_what_there_is():
    """Names of the declarations and of the modules, and each member of the class."""
    for name in ("client", "passkeys", "pages"):
        declared = (REPOSITORY / f"clients/js/{name}.d.ts").read_text()
        names = set(re.findall(r"^export (?:class|function|const) (\w+)", declared, re.M))
        module = json.dumps((REPOSITORY / f"clients/js/{name}.js").as_uri())
        run = node("--input-type=module", "-e", f"console.log(JSON.stringify(Object.keys(await import({module}))))")
        assert run.returncode == 0 and set(json.loads(run.stdout)) == names, (name, run.stdout, run.stderr)
    members = set(re.findall(r"^  (?:readonly )?(\w+)(?=[(<:])", declared_class(), re.M))
    run = node("--input-type=module", "-e", f"""
        import {{ Postern }} from {json.dumps((REPOSITORY / "clients/js/client.js").as_uri())};
        const client = new Postern({{ origin: "https://id.example.com", clientId: "x" }});
        console.log(JSON.stringify([...Object.getOwnPropertyNames(Postern.prototype), ...Object.keys(client)]));""")
    assert run.returncode == 0 and set(json.loads(run.stdout)) == members, (run.stdout, run.stderr)


def declared_class():
    """The declaration of `Postern`."""
    return (REPOSITORY / "clients/js/client.d.ts").read_text().partition("export class Postern {")[2].partition("\n}")[0]


def tsc(folder, *arguments):
    """Runs TypeScript 4.8 or newer over a folder. Returns what it complains about."""
    if shutil.which("tsc") is None:
        report.say("types of the client modules were not checked: tsc is not installed (apt-get install node-typescript)")
        pytest.skip("tsc is not installed")
    settings = ("--noEmit", "--target", "es2022", "--module", "es2022", "--moduleResolution", "node", "--lib", "es2022,dom,dom.iterable")
    return subprocess.run(["tsc", *settings, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False).stdout


def test_the_declarations_hold_for_a_strict_program(tmp_path):
    """And a call that is not as declared is found."""
    for path in (REPOSITORY / "clients/js").glob("*.d.ts"):
        shutil.copy(path, tmp_path)
    program = (SCRIPTS / "declared.ts").read_text()
    (tmp_path / "declared.ts").write_text(program)
    assert tsc(tmp_path, "--strict", "declared.ts") == ""
    (tmp_path / "wrong.ts").write_text(program.replace('{ email: "ada@example.com" }', '{ mail: "ada@example.com" }'))
    assert "'mail' does not exist" in tsc(tmp_path, "--strict", "wrong.ts")


def test_the_sources_have_no_mistake_of_types(tmp_path):
    """`checkJs`; and a name that there is not is found."""
    for path in (REPOSITORY / "clients/js").glob("*.js"):
        shutil.copy(path, tmp_path)
    names = [path.name for path in tmp_path.iterdir()]
    assert tsc(tmp_path, "--allowJs", "--checkJs", *names) == ""
    path = tmp_path / "pages.js"
    path.write_text(path.read_text().replace("client.establish(", "clientele.establish("))
    assert "clientele" in tsc(tmp_path, "--allowJs", "--checkJs", "pages.js")


def test_the_package_is_installed_and_imported(tmp_path):
    """`npm pack`, an empty folder, Node and TypeScript; nothing else is installed or reached."""
    if shutil.which("npm") is None:
        report.say("the package of the client modules was not made: npm is not installed (apt-get install npm)")
        pytest.skip("npm is not installed")

    def npm(folder, *arguments):
        folder.mkdir(exist_ok=True)
        call_ = ["npm", *arguments, "--offline", "--no-audit", "--no-fund", "--cache", str(tmp_path / "cache")]
        run = subprocess.run(call_, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout.strip().splitlines()

    archive = npm(tmp_path / "packed", "pack", str(REPOSITORY / "clients/js"))[-1]
    app = tmp_path / "app"
    npm(app, "init", "--yes")
    npm(app, "install", str(tmp_path / "packed" / archive))
    assert [path.name for path in (app / "node_modules").iterdir() if not path.name.startswith(".")] == ["postern-client"]
    (app / "app.mjs").write_text("""
        import { Postern, PosternError, stepUpChallenge } from "postern-client";
        import { signInWithPasskey } from "postern-client/passkeys";
        import { finishSignIn } from "postern-client/pages";
        const client = new Postern({ origin: "https://id.example.com", clientId: "x" });
        console.log((await client.ready).reason, typeof stepUpChallenge, typeof signInWithPasskey, typeof finishSignIn);
        console.log(await client.accessToken().catch(error => error instanceof PosternError && error.code));
    """)
    run = subprocess.run(["node", "app.mjs"], cwd=app, capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout.split() == ["never", "function", "function", "function", "signed_out"], run.stderr


def test_the_client_runs_where_only_ecmascript_fetch_and_timers_are():
    """A bare context: no crypto, IndexedDB, TextEncoder, URL, btoa. With a platform as React Native gives one tokens are bound."""
    run = node("--experimental-vm-modules", "--no-warnings", "bare.mjs")
    assert run.returncode == 0, run.stdout + run.stderr
