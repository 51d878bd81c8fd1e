"""The realms of `postern dev` share nothing, and a third one is a paste away."""

import re
import time

import pytest

from harness import settings, wire
from harness.dev import DevServer
from harness.pages import Psql, to_run
from harness.pages_client import PageBrowser
from harness.wire import FORM, form_body

BOB = "bob@example.com"


@pytest.fixture(scope="module")
def own():
    """A server of this module's own: it gets another realm."""
    made = DevServer()
    try:
        yield made.start()
    finally:
        made.stop()


class Place:
    """One realm of the server, as its client `demo-app` sees it."""

    def __init__(self, dev, host):
        self.dev = dev
        self.host = f"{host}:{dev.port}"

    def get(self, path, **headers):
        """GET."""
        return wire.exchange(self.dev.port, "GET", path, {"Host": self.host, **headers})

    def post(self, path, parameters):
        """POST of a form."""
        return wire.exchange(self.dev.port, "POST", path, {"Host": self.host, "Content-Type": FORM}, form_body(parameters))

    def ask(self, email):
        """Asks for a code; the handle."""
        fields = {"Host": self.host, "Content-Type": "application/json"}
        answer = wire.exchange(self.dev.port, "POST", "/api/account/native/otp/request", fields, b'{"Email":"%s"}' % email.encode())
        assert answer.status == 200, answer
        return answer.json()["AuthSession"]

    def mails(self, email):
        """The codes that went there, the newest first."""
        return [mail["code"] for mail in self.get("/dev/outbox.json").json() if mail["to"] == email and mail.get("code")]

    def code(self, email):
        """Asks for a code and reads it: the handle, the code."""
        before = self.mails(email)
        handle = self.ask(email)
        until(lambda: self.mails(email) != before, "no mail came")
        return handle, self.mails(email)[0]

    def redeem(self, handle, code):
        """Redeems a code."""
        return self.post("/connect/token", {
            "grant_type": "urn:cocoar:otp", "client_id": "demo-app", "auth_session": handle, "otp_code": code, "scope": "openid profile email offline_access"})


def until(condition, otherwise):
    """Waits for the server."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


@pytest.fixture(scope="module")
def demo(own):
    return Place(own, "localhost")


@pytest.fixture(scope="module")
def garden(own):
    return Place(own, "garden.localhost")


def test_bob_signs_in_at_garden_and_the_pages_are_german(garden):
    tokens = garden.redeem(*garden.code(BOB))
    assert tokens.status == 200, tokens
    profile = garden.get("/connect/userinfo", Authorization=f"Bearer {tokens.json()['access_token']}").json()
    assert (profile["email"], profile["name"]) == (BOB, "Bob Gärtner")
    assert garden.get("/.well-known/openid-configuration").json()["issuer"] == f"http://{garden.host}"
    request = {"client_id": "demo-app", "redirect_uri": "http://127.0.0.1:1", "response_type": "code", "scope": "openid", "state": "s",
               "code_challenge": "A" * 43, "code_challenge_method": "S256"}
    page = PageBrowser(garden.dev, garden.host).open("/connect/authorize?" + form_body(request).decode())
    assert page.page, (page.left_for, page.answer)
    assert (page.page.step, page.page.language) == ("address", "de") and "Stadtgarten" in page.answer.body.decode()


def test_a_code_of_one_realm_is_none_in_the_other(own, demo, garden):
    handle, code = demo.code(own.email)
    answer = garden.redeem(handle, code)
    assert (answer.status, answer.error) == (400, "invalid_grant")
    assert demo.redeem(handle, code).status == 200


def test_ada_is_unknown_at_garden_and_gets_no_mail(own, demo, garden):
    before = demo.mails(own.email)
    garden.ask(own.email)
    garden.code(BOB)
    assert demo.mails(own.email) == before


def test_a_token_of_the_same_client_id_opens_nothing_in_the_other_realm(own, demo, garden):
    tokens = demo.redeem(*demo.code(own.email)).json()
    refused = garden.get("/connect/userinfo", Authorization=f"Bearer {tokens['access_token']}")
    assert refused.status == 401
    answer = garden.post("/connect/token", {"grant_type": "refresh_token", "client_id": "demo-app", "refresh_token": tokens["refresh_token"]})
    assert (answer.status, answer.error) == (400, "invalid_grant")
    assert demo.get("/connect/userinfo", Authorization=f"Bearer {tokens['access_token']}").status == 200


def test_the_sql_of_the_readme_makes_a_third_realm_that_the_index_page_shows(own):
    folder = re.search(r"psql .*-h (\S+) -U postgres postern", own.text()).group(1)
    psql = Psql.__new__(Psql)
    psql._command = ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "postgres", "-d", "postern"]
    for block in to_run(settings.REPOSITORY / "README.md"):
        if block.language == "sql":
            psql.run(block)
    until(lambda: [realm["realm"] for realm in own.get("/dev/index.json").json()["realms"]] == ["demo", "garden", "acme"], "acme is not shown")
    host = own.get("/dev/index.json").json()["realms"][2]["hosts"][0]
    until(lambda: Place(own, host).get("/.well-known/openid-configuration").status == 200, "acme is not served")
    for path in ("/", "/dev", "/dev/index.json", "/dev/outbox.json", "/dev/passkey"):
        assert (Place(own, host).get(path).status, Place(own, host).get(path).body) == (404, b""), f"{path} is for localhost and below"
    assert host in wire.exchange(own.port, "GET", "/", {"Host": "nobody.example"}).json()["hosts"]
