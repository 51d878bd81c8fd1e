"""The demo app of `examples/spa` at `app.localhost`, on one port with a realm of `localhost`, and a person before it."""

import base64
import itertools
import json
import types

import pytest

from .browser import Page, chromium
from .module_site import CuttingProxy, until
from .realm import call
from .settings import REPOSITORY

OUTPUT = REPOSITORY / ".test-output" / "demo-app"
FOLDER = REPOSITORY / "examples/spa"
CLIENT = "demo-spa"
TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


def policy(origin):
    """What the app may do, as `postern dev` serves it."""
    return (f"default-src 'none'; script-src 'self' {origin}; style-src 'self'; img-src 'self'; connect-src {origin}; "
            "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")


class DemoApp:
    """A realm with the app's client, and the app's files before it."""

    def __init__(self, world):
        self.world = world
        self.node = world.start_node()
        self.proxy = CuttingProxy(self.node.port)
        self.server = f"http://localhost:{self.proxy.port}"
        self.origin = f"http://app.localhost:{self.proxy.port}"
        for name in ("index.html", "app.js", "app.css", "icon.svg"):
            fields = [("Content-Type", TYPES[name.rpartition(".")[2]]), ("Content-Security-Policy", policy(self.server))]
            self.proxy.given["/" if name == "index.html" else f"/{name}"] = 200, fields, (FOLDER / name).read_bytes()
        self.proxy.given["/empty"] = 200, [("Content-Type", "text/html")], b"<!doctype html><title>Somebody else's page</title><p>"
        world.admin.run(
            call("put_realm", "demo", primary_domain="localhost", public_origin=self.server),
            call("set_native_grants", "demo", enabled=True), call("set_hosted", "demo", True),
            call("set_code_policy", "demo", resend_cooldown="0"),
            call("set_approvals", "demo", True, public_clients=True, probation="0"),
            call("put_client", "demo", CLIENT, "public", "Demo app", rp_id="app.localhost"),
            call("grant_permission", "demo", CLIENT, variadic=[
                "gt:urn:cocoar:otp", "gt:urn:cocoar:magic", "gt:urn:cocoar:passkey", "gt:refresh_token", "gt:authorization_code",
                "gt:urn:postern:device", "scp:profile", "scp:email"]),
            call("put_web_origin", "demo", CLIENT, self.origin),
            call("put_redirect_uri", "demo", CLIENT, f"{self.origin}/"),
            call("put_logout_uri", "demo", CLIENT, f"{self.origin}/", "post-logout"),
        )
        world.settle()

    _numbers = itertools.count()

    def user(self, email=None, first="Ada", last="Lovelace"):
        """Adds a user. Returns the address."""
        email = email or f"ada{next(self._numbers)}@mail.example"
        self.world.admin.call("put_user", "demo", email, first, last, email_verified=True)
        return email

    def mail(self, email, kind, before=0):
        """The newest of more than `before` mails."""
        return self.world.mailbox.wait(email, before + 1, kind=kind)

    def mails(self, email, kind):
        """How many there were."""
        return len(self.world.mailbox.to(email, kind))

    def close(self):
        """Everything but the world."""
        self.proxy.close()
        self.node.stop()


class DevDemoApp:
    """The same, as `postern dev` serves it."""

    def __init__(self, dev):
        self._dev = dev
        self.server, self.origin = dev.origin, dev.origin.replace("//", "//app.")

    def _mails(self, email, kind):
        return [mail for mail in self._dev.get("/dev/outbox.json").json() if mail["to"] == email and mail.get(kind)]

    def mails(self, email, kind):
        """How many there were."""
        return len(self._mails(email, kind))

    def mail(self, email, kind, before=0):
        """The newest of more than `before` mails."""
        [newest, *_] = until(lambda: len(found := self._mails(email, kind)) > before and found, "no mail came")
        return types.SimpleNamespace(**newest)


class DemoTab(Page):
    """A tab with the app."""

    def visit(self, app, path="/"):
        """Opens it, and waits for its first view."""
        self.open(app.origin + path)
        self.wait("document.querySelector('section:not([hidden])') !== null")
        return self

    def view(self, name, timeout=15.0):
        """Waits until a section is the one that is shown, and the app rests."""
        self.wait(f"document.querySelector('section:not([hidden])')?.id === {json.dumps(name)} && !document.body.ariaBusy", timeout)

    def says(self, text):
        """Waits until the app says something, and rests."""
        self.expect("#notice", text)
        self.wait("!document.body.ariaBusy")

    def touch(self, is_touched):
        """Whether the virtual authenticator is touched when it asks."""
        self.send("WebAuthn.setAutomaticPresenceSimulation", {"authenticatorId": self.authenticator, "enabled": is_touched})

    def silent(self, *but):
        """The console said nothing but that the server refused what the test had it refuse."""
        assert [one for one in self.complaints() if not any(part in str(one) for part in but)] == []

    def press(self, name):
        """Presses a button by what it does."""
        self.click(f"section:not([hidden]) [data-do={name}]")

    def fill(self, selector, text):
        """Types into an emptied field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).value = ''")
        self.type(selector, text)

    def ask(self, email, way="requestCode"):
        """Asks for a code or a link."""
        self.fill("#email", email)
        self.click(f"#ask [value={way}]")

    def redeem(self, code):
        """Types a code."""
        self.view("code")
        self.fill("#typed", code)
        self.click("#redeem .primary")

    def sign_in(self, app, email):
        """By code."""
        before = app.mails(email, "code")
        self.ask(email)
        self.view("code")
        self.redeem(app.mail(email, "code", before).code)
        self.view("in")

    def sign_in_by_pages(self, app, email):
        """By a code that the page asks for."""
        self.fill("#email", email)
        self.press("pages")
        self.wait(f"location.origin === {json.dumps(app.server)} && document.readyState === 'complete'")
        if self.evaluate("document.querySelector('#code') === null"):
            self.click("button[value=continue]")
            self.wait("document.querySelector('#code') !== null")
        self.fill("#code", app.mail(email, "code").code)
        self.click("button[value=continue]")
        self.wait(f"location.href === {json.dumps(app.origin + '/')}")
        self.view("in")

    def begin_totp(self):
        """Asks for an authenticator app; returns its secret."""
        self.press("beginTotp")
        self.wait("document.querySelector('#secret').innerText !== ''")
        return self.text("#secret").replace(" ", "")

    def documents(self, change="undefined"):
        """What the modules keep. `change`: an expression over such a document, which is then written."""
        return self.evaluate("""new Promise(resolve => {
            const opening = indexedDB.open("postern");
            opening.onsuccess = () => {
                const transaction = opening.result.transaction("documents", "readwrite"), found = {};
                transaction.objectStore("documents").openCursor().onsuccess = ({ target: { result: cursor } }) => {
                    if (!cursor) return;
                    const document = found[cursor.key] = JSON.parse(cursor.value), changed = %s;
                    if (changed) cursor.update(JSON.stringify(changed));
                    cursor.continue();
                };
                transaction.oncomplete = () => { opening.result.close(); resolve(found); };
            };
        })""" % change)

    def session(self):
        """The document with the session."""
        return next(document for document in self.documents().values() if "session" in document)

    def session_id(self):
        """`sid` of the ID token."""
        payload = self.session()["session"]["idToken"].split(".")[1]
        return json.loads(base64.urlsafe_b64decode(payload + "=="))["sid"]

    def expire(self):
        """The access tokens are gone; the next call refreshes."""
        self.documents("document.tokens ? { ...document, tokens: [] } : undefined")


@pytest.fixture(name="app", scope="module")
def demo_app(browser_world):
    """The realm and the app."""
    made = DemoApp(browser_world)
    yield made
    made.close()


@pytest.fixture(name="browser")
def own_browser(request):
    """A browser of one test's own."""
    with chromium(OUTPUT / f"{request.node.name}.log") as browser:
        yield browser


@pytest.fixture(name="email")
def own_user(app):
    """A user of one test's own."""
    return app.user()
