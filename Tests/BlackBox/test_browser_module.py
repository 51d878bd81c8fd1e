"""/sdk/v1/postern.js in Chromium: the key, trusted devices in two profiles, and proof of a phone number with the steps of the field."""

import gzip
import json
import re

import pytest

from harness import wire
from harness.app import NativeApp
from harness.browser import chromium
from harness.module_site import CuttingProxy, ModuleSite, Visitor, until
from harness.pages import blocks
from harness.realm import call
from harness.settings import REPOSITORY

OUTPUT = REPOSITORY / ".test-output" / "module"
SOURCES = REPOSITORY / "clients/js"
#: The most bytes of each, as it is written and compressed.
MODULES = [
    ("core.js", 12_288, 4_608), ("store.js", 4_096, 1_536), ("answers.js", 8_192, 3_584), ("keeper.js", 10_240, 3_840),
    ("caller.js", 5_120, 2_048), ("session.js", 14_336, 4_864), ("requests.js", 6_144, 2_304), ("client.js", 12_288, 4_608),
    ("passkeys.js", 6_144, 2_560), ("pages.js", 6_144, 2_560), ("postern.js", 20_480, 6_656)]
CIBA = "urn:openid:params:grant-type:ciba"

pytestmark = pytest.mark.slow


class Served:
    """A realm of localhost with approvals and possession, a site that may read its answers, and one that may not."""

    def __init__(self, world):
        self.world = world
        self.node = world.start_node()
        self.proxy = CuttingProxy(self.node.port)
        self.origin = f"http://localhost:{self.proxy.port}"
        self.site, self.stranger = ModuleSite(self.origin), ModuleSite(self.origin)
        world.admin.run(
            call("put_realm", "browser", primary_domain="localhost", public_origin=self.origin),
            call("set_native_grants", "browser", enabled=True), call("set_hosted", "browser", True),
            call("set_code_policy", "browser", resend_cooldown="0"),
            call("put_client", "browser", "module-app"),
            call("grant_permission", "browser", "module-app", variadic=[
                "gt:urn:cocoar:otp", "gt:refresh_token", f"gt:{CIBA}", "gt:urn:postern:device"]),
            call("put_web_origin", "browser", "module-app", self.site.origin),
            call("set_approvals", "browser", True, public_clients=True, probation="0"),
        )
        for dimension in ("target", "target-total"):
            world.admin.call("set_rate_limit", "browser", "approval", dimension, 1_000_000, "1 minute")
        world.settle()
        self.app = NativeApp(self.node, world.mailbox, "localhost", "module-app")

    def user(self):
        """A new user: address and access token."""
        email = f"grace{next(Served.numbers)}@mail.example"
        self.world.admin.call("put_user", "browser", email, email_verified=True)
        return email, self.app.sign_in(email, scope="openid offline_access")["access_token"]

    numbers = iter(range(1000))

    def ask(self, email):
        """Asks for an approval as a public client."""
        answer = self.app.post("/connect/bc-authorize", {"client_id": "module-app", "scope": "openid", "login_hint": email})
        assert answer.status == 200, answer
        return answer.json()

    def poll(self, request):
        """One poll."""
        return self.app.post("/connect/token", {
            "grant_type": CIBA, "client_id": "module-app", "auth_req_id": request["auth_req_id"]})

    def close(self):
        """Everything but the world."""
        self.site.close()
        self.stranger.close()
        self.proxy.close()
        self.node.stop()


@pytest.fixture(scope="module")
def served(browser_world):
    """The realm."""
    made = Served(browser_world)
    yield made
    made.close()


@pytest.fixture(scope="module")
def laptop():
    """The first device."""
    with chromium(OUTPUT / "laptop.log") as browser:
        yield browser


@pytest.fixture(scope="module")
def phone():
    """The second device."""
    with chromium(OUTPUT / "phone.log") as browser:
        yield browser


# -- the file ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, most, compressed", MODULES)
def test_the_modules_are_small_files_that_name_no_other_host(world, realm, name, most, compressed):
    """The sources as they are written, cacheable for five minutes."""
    path = f"/sdk/v1/{name}"
    answer = wire.exchange(world.node.port, "GET", path, {"Host": realm.host})
    assert answer.status == 200 and answer.body == (SOURCES / name).read_bytes() and len(answer.body) <= most, len(answer.body)
    assert len(gzip.compress(answer.body, 9, mtime=0)) <= compressed
    assert answer.header("content-type") == "text/javascript; charset=utf-8"
    assert answer.header("cache-control") == "public, max-age=300" and answer.header("x-content-type-options") == "nosniff"
    assert set(re.findall(r"https?://([\w.]+)", answer.body.decode())) <= {"auth.example.com", "id.example.com"}, "examples of a comment and of a message"
    head = wire.exchange(world.node.port, "HEAD", path, {"Host": realm.host})
    assert (head.status, head.header("etag"), head.body) == (200, answer.header("etag"), b"")
    again = wire.exchange(world.node.port, "GET", path, {"Host": realm.host, "If-None-Match": answer.header("etag")})
    assert (again.status, again.body) == (304, b"")
    assert wire.exchange(world.node.port, "GET", path, {"Host": "unknown.example"}).status == 404


def test_each_module_of_the_folder_is_served_and_nothing_else_of_it(world, realm):
    """Declarations and the package's own files are for the package."""
    assert {path.name for path in SOURCES.glob("*.js")} == {name for name, _, _ in MODULES}
    for name in [path.name for path in SOURCES.iterdir() if path.suffix != ".js"] + ["", "x.js", "../core.js"]:
        assert wire.exchange(world.node.port, "GET", f"/sdk/v1/{name}", {"Host": realm.host}).status == 404, name


@pytest.mark.parametrize("name", [name for name, _, _ in MODULES])
@pytest.mark.parametrize("origin", ["https://any.example", "null"])
def test_every_page_may_load_the_module(world, realm, origin, name):
    """Never with credentials."""
    answer = wire.exchange(world.node.port, "GET", f"/sdk/v1/{name}", {"Host": realm.host, "Origin": origin})
    assert answer.header("access-control-allow-origin") == origin and answer.header("access-control-allow-credentials") is None


def test_the_examples_of_the_pages_are_javascript(laptop):
    """Each block is the body of an asynchronous function, once its import is gone."""
    page = Visitor(laptop)
    for name in ("integrate-devices.md", "integrate-web.md", "possession.md"):
        examples = [block.text for block in blocks(REPOSITORY / "docs" / name) if block.language == "js"]
        assert examples, name
        for text in examples:
            page.evaluate(f"void new (async () => {{}}).constructor({json.dumps(re.sub(r'^import .*$', '', text, flags=re.M))})")


# -- the key ----------------------------------------------------------------------------------------


_STORED = """new Promise((resolve, reject) => {
  const opening = indexedDB.open("postern");
  opening.onerror = reject;
  opening.onsuccess = () => {
    const all = opening.result.transaction("keys").objectStore("keys").getAll();
    all.onsuccess = async () => resolve({
      count: all.result.length, extractable: all.result.map(pair => pair.privateKey.extractable),
      exported: await Promise.all(["jwk", "pkcs8", "raw"].map(form =>
        crypto.subtle.exportKey(form, all.result[0].privateKey).then(() => "exported", error => error.name))),
      text: JSON.stringify(all.result), x: (await crypto.subtle.exportKey("jwk", all.result[0].publicKey)).x });
  };
})"""


def test_the_key_cannot_be_exported_and_is_the_same_after_a_reload_and_in_a_new_tab(served, laptop):
    """And another one on another origin."""
    page = Visitor(laptop).visit(served.site)
    assert page.device("module-app", "device.self()") is None
    stored = page.evaluate(_STORED)
    assert stored["count"] == 1 and stored["extractable"] == [False] and "exported" not in stored["exported"], stored
    assert json.loads(stored["text"]) == [{"publicKey": {}, "privateKey": {}}], "nothing of it is text"
    page.visit(served.site)
    other_tab = Visitor(laptop).visit(served.site)
    for tab in (page, other_tab):
        assert tab.device("module-app", "device.self()") is None
        assert tab.evaluate(_STORED)["x"] == stored["x"]
    elsewhere = Visitor(laptop).visit(served.stranger)
    elsewhere.device("module-app", "device.self()")
    assert elsewhere.evaluate(_STORED)["x"] != stored["x"]


def test_two_tabs_that_begin_at_once_get_one_key(served):
    """Reading and keeping is one transaction."""
    with chromium(OUTPUT / "tabs.log") as browser:
        tabs = [Visitor(browser).visit(served.site) for _ in range(4)]
        for tab in tabs:
            tab.evaluate("void (window.early = new postern.TrustedDevice({ clientId: 'module-app' }).self())")
        for tab in tabs:
            assert tab.evaluate("early") is None
        assert tabs[0].evaluate(_STORED)["count"] == 1
        email, token = served.user()
        assert tabs[0].device("module-app", f"device.enroll({json.dumps(token)})")["Id"], email
        assert all(tab.device("module-app", "device.self()") for tab in tabs), "each tab signs with the same key"


def test_without_indexeddb_the_key_lives_as_long_as_the_page(served):
    """As in a browser that refuses storage."""
    with chromium(OUTPUT / "forgetful.log") as browser:
        page = Visitor(browser)
        page.send("Page.addScriptToEvaluateOnNewDocument", {
            "source": "indexedDB.open = () => { throw new DOMException('refused', 'SecurityError'); };"})
        page.visit(served.site)
        _, token = served.user()
        assert page.device("module-app", f"device.enroll({json.dumps(token)})")["Id"]
        assert page.device("module-app", "device.self()")
        page.visit(served.site)
        assert page.device("module-app", "device.self()") is None


def test_a_page_of_another_origin_cannot_read_the_answers_and_hears_why_at_once(served, laptop):
    """The call is served, without headers for that page; nothing is refused. The error names the remedy."""
    page = Visitor(laptop).visit(served.stranger)
    assert page.device("module-app", "device.self()") == {"error": "origin_not_registered"}
    message = page.evaluate("new postern.TrustedDevice({ clientId: 'module-app' }).self().catch(error => error.message)")
    assert served.stranger.origin in message and "admin.put_web_origin" in message, message
    for origin in ("null", served.site.origin.replace("http:", "https:"), served.site.origin + "1", "http://sub." + served.site.origin[7:]):
        preflight = wire.exchange(served.node.port, "OPTIONS", "/connect/devices/self", {
            "Host": "localhost", "Origin": origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "dpop"})
        assert preflight.header("access-control-allow-origin") is None
        answer = wire.exchange(served.node.port, "GET", "/connect/devices/self", {"Host": "localhost", "Origin": origin})
        assert answer.status == 401 and answer.header("access-control-allow-origin") is None
        assert answer.header("access-control-allow-credentials") is None


# -- trusted devices --------------------------------------------------------------------------------


def enrolled(served, browser):
    """A tab that is a trusted device of a new user: tab, address, token."""
    page = Visitor(browser).visit(served.site)
    page.device("module-app", "device.remove()")
    email, token = served.user()
    added = page.device("module-app", f"device.enroll({json.dumps(token)}, {{ displayName: 'Laptop' }})")
    assert added.get("Id"), added
    return page, email, token


def decide(page, decision, number=None):
    """Waits for the one item of the inbox and answers it: item and answer."""
    return page.device("module-app", f"""(async () => {{
        const {{ Approvals: [item, ...more] }} = await device.approvals({{ wait: 20 }});
        if (!item || more.length) throw new Error(`not one item: ${{more.length}}`);
        const answer = await device.answer(item, {json.dumps(decision)}, {json.dumps(number)}).catch(error => ({{ error: error.code }}));
        return {{ item, answer }};
    }})()""")


def test_a_browser_approves_with_the_number(served, laptop):
    """What it read is what it signs; the asking app gets tokens."""
    page, email, _ = enrolled(served, laptop)
    request = served.ask(email)
    assert served.poll(request).json()["error"] == "authorization_pending"
    done = decide(page, "approve", request["match_number"])
    assert done["item"]["ClientId"] == "module-app" and done["item"]["MatchRequired"] and done["answer"]["Decision"] == "approve", done
    until(lambda: (answer := served.poll(request)).status == 200 and answer.json()["access_token"], "no tokens", timeout=40)
    assert page.complaints() == [] or all("status of 40" in str(one) for one in page.complaints()), page.complaints()


@pytest.mark.parametrize("decision, wrong", [("deny", False), ("report", False), ("approve", True)])
def test_a_browser_denies_reports_and_gives_a_wrong_number(served, laptop, decision, wrong):
    """The asking app is told at its next poll, early or not."""
    page, email, _ = enrolled(served, laptop)
    request = served.ask(email)
    number = "10" if wrong and request["match_number"] != "10" else "11"
    done = decide(page, decision, number if wrong else None)
    assert done["answer"] == {"error": "number_mismatch"} if wrong else done["answer"]["Decision"] == decision, done
    assert served.poll(request).json()["error"] == "access_denied"


def test_a_browser_signs_in_by_itself_and_ends_its_trust(served, laptop):
    """The tokens are bound to its key; after `remove` the key opens nothing."""
    page, _, _ = enrolled(served, laptop)
    tokens = page.device("module-app", "device.signIn({ scope: 'openid offline_access' })")
    assert tokens["token_type"] == "DPoP" and tokens["id_token"], tokens
    assert served.app.userinfo(tokens["access_token"]).status == 401, "without the key the token opens nothing"
    assert page.device("module-app", "device.self()")["DisplayName"] == "Laptop"
    assert page.device("module-app", "device.remove()") is True and page.device("module-app", "device.remove()") is False
    assert page.device("module-app", "device.signIn()") == {"error": "invalid_grant"}


def test_a_second_browser_is_adopted_by_its_code(served, laptop, phone):
    """Two profiles; wrong digits spend the offer; the person sees what is offered."""
    page, email, token = enrolled(served, laptop)
    other = Visitor(phone).visit(served.site)
    other.device("module-app", "device.remove()")

    def adopt(offer, digits):
        return page.device("module-app", f"""device.adopt({json.dumps(token)}, {json.dumps(offer["QrText"])},
            async offered => {{ window.offered = offered; return {json.dumps(digits)}; }})""")

    offer = other.device("module-app", "device.offer({ displayName: 'Phone' })")
    wrong = "0000" if offer["CheckCode"] != "0000" else "0001"
    assert adopt(offer, wrong) == {"error": "invalid_offer"} and adopt(offer, offer["CheckCode"]) == {"error": "invalid_offer"}
    assert other.device("module-app", "device.self()") is None

    offer = other.device("module-app", "device.offer({ displayName: 'Phone' })")
    adopted = adopt(offer, "\u200f" + "-".join(chr(0x0660 + int(digit)) for digit in offer["CheckCode"]) + " \ufeff")
    assert adopted.get("AddedBy") == "device" and page.evaluate("offered")["DisplayName"] == "Phone", adopted
    assert other.device("module-app", "device.self()")["Id"] == adopted["Id"]
    elsewhere = json.dumps(offer["QrText"].replace("localhost", "evil.example"))
    assert page.device("module-app", f"device.adopt({json.dumps(token)}, {elsewhere}, async () => '1')") == {"error": "invalid_offer"}

    request = served.ask(email)
    assert decide(other, "approve", request["match_number"])["answer"]["Decision"] == "approve"
    answer = page.device("module-app", "device.approvals()")
    assert answer["Approvals"] == [], "decided on the other device"
