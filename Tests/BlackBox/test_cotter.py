"""Cotter's web wire: sign-in for clients that know nothing of OpenID Connect."""

import base64
import http.server
import json
import secrets
import sys
import threading
import time
import urllib.parse
import urllib.request

import pytest

from harness import jose, report, settings, wire
from harness.codeflow import GRANT, challenge_of, hosted, page_error
from harness.ledger import LEDGER
from harness.pages_client import PageBrowser
from harness.phones import Phones, new_number
from harness.ports import free_port

if settings.COTTER.is_dir():
    sys.path.append(str(settings.COTTER))
try:
    import cotter
    import cotter.constants
except ImportError:
    cotter = None

REDIRECT = "yourapp://"
REDIRECTS = (REDIRECT, "com.example.app:redirect_uri_path", "http://127.0.0.1:5000", "http://localhost:8080")
EXPIRED = (400, {"msg": "Challenge Expired", "type": ""})
INVALID_KEY = (401, {"msg": "Invalid API key", "type": ""})
MALFORMED = (400, {"msg": "Invalid request", "type": ""})
PERMISSIONS = ("cap:cotter", "gt:authorization_code", "gt:refresh_token", "scp:email", "scp:profile")


@pytest.fixture(scope="module")
def realm(world):
    """A realm whose clients cotter and cotter-2 use the wire."""
    made = hosted(world.realm(), offer_passkey=False)
    for name in ("cotter", "cotter-2"):
        made.put_client(name, access_token_type="jwt")
        made.put_client(name, *PERMISSIONS)
        for uri in (*REDIRECTS, "http://localhost"):
            world.admin.call("put_redirect_uri", made.slug, made.client(name), uri)
    made.put_client("events", client_type="confidential")
    made.put_client("events", "cap:cotter", "gt:urn:openid:params:grant-type:ciba")
    world.settle()
    return made


@pytest.fixture(name="phones")
def _phones(realm):
    """A provider of messages to phones."""
    made = Phones(realm, channels=("sms", "whatsapp"))
    realm.world.settle()
    yield made
    made.close()
    realm.world.settle()


class Cotter:
    """One browser and one client of the wire."""

    def __init__(self, realm, name="cotter", browser=None, redirect=REDIRECT):
        self.realm, self.app, self.key, self.redirect = realm, realm.app(name), realm.client(name), redirect
        self.browser = browser or PageBrowser(self.app.node, self.app.host)
        self.verifier = secrets.token_urlsafe(32)

    def browser_url(self, **changes):
        """The path of /app; None leaves a parameter out."""
        query = {
            "api_key": self.key, "redirect_url": self.redirect, "type": "EMAIL", "code_challenge": challenge_of(self.verifier),
            "state": "s t", **changes,
        }
        return "/app?" + wire.form_body({name: value for name, value in query.items() if value is not None}).decode()

    def open(self, **changes):
        """GET /app."""
        return self.browser.open(self.browser_url(**changes))

    def prove(self, email, **changes):
        """Types an address and its code; the members of the answer."""
        self.open(**changes)
        assert self.browser.page.step == "address", self.browser.answer
        self.browser.submit("continue", address=email)
        assert self.browser.page.step == "code", self.browser.answer
        self.browser.submit("continue", code=self.realm.world.mailbox.wait(email, kind="code").code)
        return self.members()

    def members(self):
        """What the redirect URL got, in its order."""
        assert self.browser.left_for, self.browser.answer
        assert self.browser.left_for.startswith(self.redirect + "?"), self.browser.left_for
        found = urllib.parse.parse_qsl(self.browser.left_for[len(self.redirect) + 1:], keep_blank_values=True)
        if "code" in dict(found):
            LEDGER.add("authorization_code", dict(found)["code"])
        return dict(found)

    def post(self, path, document, **headers):
        """JSON, with the key unless told otherwise."""
        fields = {"Host": self.app.host, "Content-Type": "application/json", "API_KEY_ID": self.key, "User-Agent": "Tests/1", **headers}
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return wire.exchange(self.app.node.port, "POST", path, {name: value for name, value in fields.items() if value is not None}, body)

    def exchange(self, members, query="?oauth_token=true", headers=None, **changes):
        """get_identity."""
        return self.post("/api/v0/verify/get_identity" + query, {
            "code_verifier": self.verifier, "authorization_code": members["code"], "challenge_id": int(members["challenge_id"]),
            "redirect_url": self.redirect, **changes}, **(headers or {}))

    def identity(self, members, **changes):
        """A successful one."""
        answer = self.exchange(members, **changes)
        assert answer.status == 200, answer
        document = answer.json()
        for name in ("access_token", "id_token", "refresh_token"):
            LEDGER.add(name, document["oauth_token"][name])
        return document

    def refresh(self, token, key=None):
        """The wire's own refresh."""
        return self.post(f"/api/v0/token/{key or self.key}", {"grant_type": "refresh_token", "refresh_token": token})


def said(answer):
    """Status and body."""
    return answer.status, answer.json()


@pytest.mark.parametrize("query, number", [("?oauth_token=true", int), ("", str)])
def test_a_proven_address_is_an_identity(realm, query, number):
    """A new address has an account from then on; every member with its type; the JWTs and the signature verify."""
    email = realm.new_email()
    client = Cotter(realm)
    members = client.prove(email)
    assert list(members) == ["code", "state", "challenge_id"] and members["state"] == "s t"
    assert 1 <= int(members["challenge_id"]) < 2 ** 31
    document = client.identity(members, query=query, challenge_id=number(members["challenge_id"]))
    assert set(document) == {"identifier", "oauth_token", "token", "user"}
    identifier, tokens, token, user = (document[name] for name in ("identifier", "oauth_token", "token", "user"))
    assert set(identifier) == {
        "ID", "created_at", "updated_at", "update_at", "deleted_at", "identifier", "identifier_type", "public_key", "device_type",
        "device_name", "expiry", "timestamp"}
    assert (identifier["identifier"], identifier["identifier_type"], identifier["device_type"], identifier["device_name"]) == (
        email, "EMAIL", "BROWSER", "Tests/1")
    assert (identifier["deleted_at"], identifier["public_key"]) == ("0001-01-01T00:00:00Z", "")
    assert set(tokens) == {"access_token", "id_token", "refresh_token", "expires_in", "token_type", "auth_method"}
    assert (tokens["token_type"], tokens["auth_method"]) == ("Bearer", "OTP") and isinstance(tokens["expires_in"], int)
    assert user["issuer"] == token["receiver"] == client.key and user["enrolled"] == [] and user["identifier"] == email
    keys = client.app.get("/api/v0/token/jwks").json()
    assert {key["alg"] for key in keys["keys"]} == {"ES256"}
    for name in ("access_token", "id_token"):
        header, claims = jose.verify(tokens[name], keys)
        assert header["kid"] == keys["keys"][0]["kid"] and claims["aud"] == client.key
        assert (claims["sub"], claims["client_user_id"], claims["identifier"]) == (user["ID"], user["client_user_id"], email)
        assert claims.get("type") == ("client_access_token" if name == "access_token" else None)
        assert claims.get("authentication_method") == ("OTP" if name == "access_token" else None)
    assert client.app.userinfo(tokens["access_token"]).json()["email"] == email
    published = [key for key in client.app.get("/.well-known/jwks").json()["keys"] if key["alg"] == "EdDSA"]
    verify_ed25519(published, token["signature"], email + "EMAIL" + client.key + token["expire_at"])
    assert int(token["expire_at"]) - int(token["timestamp"]) == 30 * 86_400
    refreshed = client.refresh(tokens["refresh_token"])
    assert refreshed.status == 200 and set(refreshed.json()) == set(tokens), refreshed
    again = jose.parts(refreshed.json()["access_token"])[1]
    assert (again["identifier"], again["authentication_method"], again["sub"]) == (email, "OTP", user["ID"])


def verify_ed25519(keys, signature, text):
    """One of the published keys made it."""
    from cryptography.exceptions import InvalidSignature  # pylint: disable=import-outside-toplevel
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # pylint: disable=import-outside-toplevel
    for key in keys:
        raw = base64.urlsafe_b64decode(key["x"] + "=")
        try:
            Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature, validate=True), text.encode())
            return
        except InvalidSignature:
            continue
    raise AssertionError(f"none of {len(keys)} keys made the signature")


@pytest.mark.parametrize("redirect", REDIRECTS)
def test_the_result_comes_at_the_redirect_url_as_it_is(realm, redirect):
    """Schemes without a dot and loopback without a path included; a state that was not sent does not come back."""
    client = Cotter(realm, redirect=redirect)
    assert list(client.prove(realm.user(), state=None)) == ["code", "challenge_id"]
    assert client.exchange(client.members()).status == 200


@pytest.mark.parametrize("verifier", [
    "".join(f"{byte:02x}" for byte in range(28)), base64.urlsafe_b64encode(bytes(range(32))).rstrip(b"=").decode(),
    "a_b-" * 12,
])
def test_verifiers_of_the_samples_are_accepted(realm, verifier):
    r"""Hexadecimal, base64url, and with the `\_` that one of them writes."""
    client = Cotter(realm)
    client.verifier = verifier
    members = client.prove(realm.user(), code_challenge=challenge_of(verifier).replace("_", "\\_"))
    assert client.exchange(members, code_verifier=verifier.replace("_", "\\_")).status == 200


def test_a_wrong_part_is_refused_alike_and_costs_nothing(realm):
    """Then the right request succeeds; a second one ends the session."""
    client = Cotter(realm)
    members = client.prove(realm.user())
    other = Cotter(realm, "cotter-2")
    for answer in (
            client.exchange(members, code_verifier="x" * 43), client.exchange(members, challenge_id=1),
            client.exchange(members, challenge_id=-2 ** 40), client.exchange(members, redirect_url="yourapp://x"),
            client.exchange(members, authorization_code="pac_" + "A" * 43), client.exchange(members, authorization_code="x" * 4096),
            client.exchange(members, headers={"API_KEY_ID": other.key})):
        assert said(answer) == EXPIRED, answer
    tokens = client.identity(members)["oauth_token"]
    assert said(client.exchange(members)) == EXPIRED
    assert client.refresh(tokens["refresh_token"]).status == 400


def test_a_code_lives_for_five_minutes(realm, world):
    """Longer than those of the token endpoint, and no longer."""
    client = Cotter(realm)
    members = client.prove(realm.user())
    world.time_travel(240)
    assert client.exchange(members).status == 200
    client.open()
    client.browser.submit("continue")
    world.time_travel(301)
    assert said(client.exchange(client.members())) == EXPIRED


def test_codes_of_the_two_wires_are_not_the_same(realm):
    """Neither endpoint redeems what the other one issues; each code is good at its own afterwards."""
    client = Cotter(realm)
    members = client.prove(realm.user())
    form = {
        "grant_type": GRANT, "client_id": client.key, "code": members["code"], "redirect_uri": REDIRECT,
        "code_verifier": client.verifier}
    assert client.app.token(form).error == "invalid_grant"
    assert client.exchange(members).status == 200
    query = {
        "client_id": client.key, "redirect_uri": REDIRECT, "response_type": "code", "scope": "openid",
        "code_challenge": challenge_of(client.verifier), "code_challenge_method": "S256"}
    client.browser.open("/connect/authorize?" + wire.form_body(query).decode())
    client.browser.submit("continue")
    code = client.browser.members["code"]
    for number in (1, int(members["challenge_id"])):
        assert said(client.exchange({"code": code, "challenge_id": number})) == EXPIRED
    assert client.app.token({**form, "code": LEDGER.add("authorization_code", code)}).status == 200


def test_a_browser_that_proved_an_address_is_asked_once(realm, phones):
    """The same kind: one button. The other kind: the address step. Cancel answers the client."""
    client = Cotter(realm)
    email = realm.user()
    client.identity(client.prove(email))
    assert not phones.messages, "one that is no number"
    client.open()
    assert client.browser.page.step == "continue-as" and email.encode() in client.browser.answer.body
    client.browser.submit("continue")
    assert client.identity(client.members())["identifier"]["identifier"] == email
    client.open(type="PHONE")
    assert client.browser.page.step == "address", client.browser.answer
    client.open()
    client.browser.submit("cancel")
    assert client.members() == {"error": "access_denied", "state": "s t"}


def test_an_address_without_an_account_proves_itself_by_a_link(realm):
    """A link comes first where the client wants one; its account is there after the proof."""
    email = realm.new_email()
    client = Cotter(realm)
    client.open(auth_method="MAGIC_LINK")
    client.browser.submit("continue", address=email)
    assert client.browser.page.step == "link", client.browser.answer
    follow_link(realm, client.browser, email)
    document = client.identity(client.members())
    assert document["identifier"]["identifier"] == email and document["oauth_token"]["auth_method"] == "MAGIC_LINK"


def follow_link(realm, browser, email):
    """Opens the link in the browser that asked."""
    browser.open(realm.world.mailbox.wait(email, kind="link").link.split(browser.host, 1)[1])
    assert browser.page.step == "continue-link", browser.answer
    browser.submit("continue")


@pytest.mark.parametrize("changes, error", [
    ({"api_key": None}, "invalid_client"), ({"api_key": "unknown"}, "invalid_client"), ({"api_key": "app"}, "invalid_client"),
    ({"api_key": "events"}, "invalid_client"), ({"redirect_url": None}, "invalid_redirect_uri"),
    ({"redirect_url": "yourapp://x"}, "invalid_redirect_uri"), ({"redirect_url": "javascript:alert(1)//"}, "invalid_redirect_uri"),
])
def test_a_key_or_url_that_is_not_the_clients_is_a_page(realm, changes, error):
    """Never a redirect."""
    client = Cotter(realm)
    if changes.get("api_key") in ("app", "events"):
        changes = {"api_key": realm.client(changes["api_key"])}
    client.open(**changes)
    assert page_error(client.browser.answer) == error


@pytest.mark.parametrize("changes", [
    {"type": None}, {"type": "email"}, {"type": "PIN"}, {"code_challenge": None}, {"code_challenge": "x"}])
def test_other_faults_go_to_the_redirect_url(realm, changes):
    """With the state."""
    client = Cotter(realm)
    client.open(**changes)
    assert client.members() == {"error": "invalid_request", "state": "s t"}


def test_no_get_sends_a_message(realm):
    """The address is filled in; one tap sends."""
    email = realm.user()
    client = Cotter(realm)
    for _ in range(5):
        client.open(input=email, direct_login="true")
    assert client.browser.page.fields["address"] == email and not realm.world.mailbox.to(email)
    client.browser.submit("continue")
    assert client.browser.page.step == "code"


def test_what_is_no_request_is_refused(realm):
    """The key in its header, and one JSON object of 64 KiB at most."""
    client = Cotter(realm)
    members = client.prove(realm.user())
    right = {
        "code_verifier": client.verifier, "authorization_code": members["code"], "challenge_id": int(members["challenge_id"]),
        "redirect_url": REDIRECT}
    path = "/api/v0/verify/get_identity"
    for headers in ({"API_KEY_ID": None}, {"API_KEY_ID": None, "api-key-id": client.key}, {"API_KEY_ID": realm.client("events")},
                    {"API_KEY_ID": realm.client("app")}, {"API_KEY_ID": ""}):
        assert said(client.post(path, right, **headers)) == INVALID_KEY, headers
    assert said(client.post(path, right, api_key_id=client.key)) == MALFORMED
    form = wire.form_body({name: str(value) for name, value in right.items()})
    assert said(client.post(path, form, **{"Content-Type": "application/x-www-form-urlencoded"})) == MALFORMED
    assert client.post(path, b" " * (64 * 1024 + 1)).status == 413
    repeated = json.dumps(right)[:-1] + ',"challenge_id":1}'
    for body in (repeated.encode(), b"[]", b"", b"{}", json.dumps({**right, "challenge_id": 1.5}).encode(),
                 json.dumps({**right, "challenge_id": "x"}).encode(), json.dumps({**right, "code_verifier": 1}).encode()):
        assert said(client.post(path, body)) == MALFORMED, body
    assert client.post(path, right).status == 200


def test_refresh_tokens_are_the_clients_and_rotate(realm):
    """The same successor again in the retry window; another key's is refused; reuse ends the family."""
    client = Cotter(realm)
    token = client.identity(client.prove(realm.user()))["oauth_token"]["refresh_token"]
    assert client.refresh(token, realm.client("cotter-2")).status == 400
    assert client.refresh(token, "unknown").status == 401
    first, repeated = client.refresh(token), client.refresh(token)
    successor = LEDGER.add("refresh_token", first.json()["refresh_token"])
    assert repeated.json()["refresh_token"] == successor
    assert client.refresh(successor).status == 200
    refused = (400, {"msg": "The refresh token is invalid.", "type": ""})
    assert said(client.refresh(token)) == said(client.refresh(successor)) == refused
    assert said(client.post(f"/api/v0/token/{client.key}", {"grant_type": "password", "refresh_token": "x"})) == MALFORMED


def test_without_a_public_client_of_the_wire_there_is_none(world):
    """A confidential one is for other purposes; what is taken away while somebody signs in is gone."""
    realm = hosted(world.realm())
    realm.put_client("events", client_type="confidential")
    realm.put_client("events", "cap:cotter", "gt:urn:openid:params:grant-type:ciba")
    client = Cotter(realm)
    world.settle()
    for answer in (client.open().answer, client.post("/api/v0/verify/get_identity", {}), client.refresh("x"),
                   client.app.get("/api/v0/token/jwks")):
        assert answer.status == 404, answer
    for name in ("cotter", "cotter-2"):
        realm.put_client(name, access_token_type="jwt")
        realm.put_client(name, *PERMISSIONS)
        world.admin.call("put_redirect_uri", realm.slug, realm.client(name), REDIRECT)
    world.settle()
    members = client.prove(realm.user())
    client.open()
    page = client.browser.page
    world.admin.call("revoke_permission", realm.slug, client.key, variadic=["cap:cotter"])
    world.settle()
    assert said(client.exchange(members)) == INVALID_KEY
    client.browser.page = page
    client.browser.submit("continue")
    assert page_error(client.browser.answer) == "invalid_client"


class Gate:
    """The origin of a realm on a port of its own, since a client of this wire knows base URLs only."""

    def __init__(self, realm):
        node = realm.world.node

        class Handler(http.server.BaseHTTPRequestHandler):
            """Passes on."""

            def do_GET(self):  # pylint: disable=invalid-name
                """Both methods alike."""
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fields = {name: self.headers[name] for name in ("Content-Type", "API_KEY_ID", "User-Agent") if self.headers[name]}
                answer = wire.exchange(node.port, self.command, self.path, {"Host": realm.host, **fields}, body or None)
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.header("content-type") or "text/plain")
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_POST = do_GET

            def log_message(self, *_):
                """Quiet."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def prove_number(client, phones, number, **changes):
    """Types a number and its code; the members of the answer."""
    client.open(**{"type": "PHONE", **changes})
    assert client.browser.page.step == "address", client.browser.answer
    before = len(phones.to(number))
    client.browser.submit("continue", address=number)
    assert client.browser.page.step == "code", client.browser.answer
    client.browser.submit("continue", code=phones.wait(number, before + 1)["code"])
    return client.members()


def test_a_proven_number_is_an_identity(realm, phones):
    """A new one has an account, which goes by the number; the same browser is asked once, by its number."""
    client, number = Cotter(realm), new_number()
    document = client.identity(prove_number(client, phones, number))
    assert (document["identifier"]["identifier"], document["identifier"]["identifier_type"]) == (number, "PHONE")
    tokens = document["oauth_token"]
    assert tokens["auth_method"] == "OTP" and jose.parts(tokens["access_token"])[1]["identifier"] == number
    client.open(type="PHONE")
    assert client.browser.page.step == "continue-as" and number.encode() in client.browser.answer.body
    client.browser.submit("continue")
    again = client.identity(client.members())
    assert (again["identifier"]["identifier"], again["user"]["ID"]) == (number, document["user"]["ID"])


def test_a_number_proves_itself_by_a_link(realm, phones):
    """By SMS where the client wants a link; a code may take its place."""
    client, number = Cotter(realm), new_number()
    client.open(type="PHONE", auth_method="MAGIC_LINK")
    client.browser.submit("continue", address=number)
    assert client.browser.page.step == "link" and "code" in client.browser.page.buttons, client.browser.answer
    message = phones.wait(number)
    assert (message["kind"], message["channel"]) == ("link", "sms")
    client.browser.open(message["link"].split(client.browser.host, 1)[1])
    client.browser.submit("continue")
    document = client.identity(client.members())
    assert document["identifier"]["identifier"] == number and document["oauth_token"]["auth_method"] == "MAGIC_LINK"
    client.open(type="PHONE", auth_method="MAGIC_LINK")
    client.browser.submit("other-account")
    client.browser.submit("continue", address=number)
    client.browser.submit("code")
    client.browser.submit("continue", code=phones.wait(number, 3)["code"])
    assert client.identity(client.members())["oauth_token"]["auth_method"] == "OTP"


@pytest.mark.parametrize("query, channel", [
    ("", "sms"), ("&use_channel=WHATSAPP", "whatsapp"), ("&phone_channels%5B%5D=WHATSAPP&phone_channels%5B%5D=SMS", "whatsapp"),
    ("&phone_channels[]=WHATSAPP&use_channel=SMS", "sms"), ("&use_channel=PIGEON", "sms")])
def test_a_client_chooses_what_carries_the_first_code(realm, phones, query, channel):
    """The person may change it on the page."""
    client, number = Cotter(realm), new_number()
    client.browser.open(client.browser_url(type="PHONE") + query)
    client.browser.submit("continue", address=number)
    assert phones.wait(number)["channel"] == channel
    assert ({"sms", "whatsapp"} - {channel}) <= set(client.browser.page.buttons)


def test_without_messages_to_phones_a_number_cannot_be_proven(realm):
    """The client is told at once."""
    client = Cotter(realm)
    client.open(type="PHONE")
    assert client.members() == {"error": "unmet_authentication_requirements", "state": "s t"}


@pytest.mark.parametrize("kind", ["email", "phone"])
@pytest.mark.parametrize("method", ["otp", "link"])
def test_cotters_own_client_signs_in_validates_and_refreshes(realm, world, phones, monkeypatch, tmp_path, kind, method):
    """PyPI's cotter 0.0.7 as it is, but for its three base URLs: each of its four ways to sign in."""
    if cotter is None:
        report.say("cotter: absent (pip install --target .build/cotter cotter==0.0.7 python-jose requests)")
        pytest.skip("cotter is not installed")
    from cotter import tokenhandler, validate  # pylint: disable=import-outside-toplevel,no-name-in-module
    gate, port = Gate(realm), free_port()
    address = realm.new_email() if kind == "email" else new_number()
    monkeypatch.setattr(cotter.constants, "CotterJSURL", gate.url)
    monkeypatch.setattr(cotter.constants, "CotterBackendURL", gate.url + "/api/v0")
    monkeypatch.setattr(cotter.constants, "CotterJWKSURL", gate.url + "/api/v0/token/jwks")
    (tmp_path / "cotter_login_success.html").write_text("done")
    monkeypatch.syspath_prepend(str(tmp_path))
    client = Cotter(realm, redirect=f"http://localhost:{port}")

    def browse(url):
        client.browser.open(url[len(gate.url):])
        client.browser.submit("continue", address=address)
        if kind == "phone":
            message = phones.wait(address)
            code, link = message.get("code"), message.get("link")
        else:
            mail = world.mailbox.wait(address, kind="link" if method == "link" else "code")
            code, link = (None, mail.link) if method == "link" else (mail.code, None)
        if method == "link":
            client.browser.open(link.split(client.browser.host, 1)[1])
            client.browser.submit("continue")
        else:
            client.browser.submit("continue", code=code)
        deadline = time.monotonic() + 10
        while True:
            try:
                urllib.request.urlopen(client.browser.left_for, timeout=5).read()
                return
            except urllib.error.URLError:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    monkeypatch.setattr("webbrowser.open", lambda url: threading.Thread(target=browse, args=(url,), daemon=True).start())
    document = getattr(cotter, f"login_with_{kind}_{method}")(client.key, port)
    tokens = document["oauth_token"]
    assert validate.validate_access_token(tokens["access_token"], client.key)["identifier"] == address
    assert validate.validate_id_token(tokens["id_token"], client.key)["sub"] == document["user"]["ID"]
    kept = tmp_path / "tokens.json"
    tokenhandler.store_token_to_file(tokens, str(kept))
    assert tokenhandler.get_token_from_file(str(kept), client.key) == tokens
    monkeypatch.setattr(validate, "validate_access_token", lambda *_: 1 / 0)
    refreshed = tokenhandler.get_token_from_file(str(kept), client.key)
    assert refreshed["refresh_token"] != tokens["refresh_token"] and json.loads(kept.read_text()) == refreshed
    gate.server.shutdown()
