"""Sign-out: RP-initiated, and the logout tokens that clients get."""

import http.server
import json
import queue
import socket
import struct
import threading
import time
import urllib.parse

import pytest

from harness import jose, wire
from harness.app import bearer
from harness.codeflow import Flow, hosted
from harness.pages_client import PageBrowser

GOODBYE = "https://app.a.example/goodbye"
EVENT = "http://schemas.openid.net/event/backchannel-logout"
#: In the place of a status: the connection is reset.
RESET = 0


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and a client to come back to."""
    made = hosted(world.realm())
    world.admin.call("put_logout_uri", made.slug, made.client("app"), GOODBYE, "post-logout")
    world.settle()
    return made


@pytest.fixture
def flow(realm):
    """A browser with a session, and tokens that came from it."""
    made = Flow(realm)
    made.email = realm.user()
    made.session = made.sign_in(made.email)
    made.issued = made.tokens()
    return made


def logout(flow, cookies=True, **parameters):
    """GET /connect/logout."""
    query = wire.form_body(parameters).decode()
    fields = {"Host": flow.host, **(flow.cookies() if cookies else {})}
    return wire.exchange(flow.app.node.port, "GET", f"/connect/logout?{query}", fields)


def is_signed_in(flow):
    """Whether the browser's session lives."""
    return "code=" in flow.authorize(prompt="none").header("location")


def test_a_hint_and_a_registered_uri_sign_out_and_lead_back(flow):
    """With the state alone; the session of the hint ends, with offline_access too, and the cookie."""
    answer = logout(flow, id_token_hint=flow.issued["id_token"], post_logout_redirect_uri=GOODBYE, state="a b")
    assert (answer.status, answer.header("location")) == (303, f"{GOODBYE}?state=a%20b")
    assert answer.header("set-cookie") == "__Host-postern-session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax; Secure"
    assert not is_signed_in(flow)
    assert flow.app.userinfo(flow.issued["access_token"]).status == 401
    assert flow.app.refresh(flow.issued["refresh_token"]).error == "invalid_grant"


def test_without_a_uri_the_hint_is_enough(flow):
    """A page without a way back; the hint's own session ends."""
    answer = logout(flow, id_token_hint=flow.issued["id_token"])
    assert answer.status == 200 and answer.header("location") is None
    assert flow.app.userinfo(flow.issued["access_token"]).status == 401 and not is_signed_in(flow)


def test_without_its_browser_session_a_hint_asks_first(flow):
    """Whoever has the ID token of somebody else signs nobody out: it is no secret."""
    answer = logout(flow, cookies=False, id_token_hint=flow.issued["id_token"], post_logout_redirect_uri=GOODBYE)
    assert answer.status == 200 and answer.header("location") is None and b'data-step="sign-out"' in answer.body, answer
    assert flow.app.userinfo(flow.issued["access_token"]).status == 200 and is_signed_in(flow)


@pytest.mark.parametrize("browser", ["none", "a stranger's", "its user's"])
def test_a_hint_never_ends_a_session_that_was_opened_natively(realm, flow, world, browser):
    """Not by the link, and not after a yes; an expired ID token neither."""
    native = flow.app.sign_in(flow.email)
    world.time_travel(1200)
    pages = PageBrowser(flow.app.node, flow.host)
    if browser != "none":
        owner = flow if browser == "its user's" else Flow(realm)
        if owner is not flow:
            owner.sign_in(realm.user())
        name, _, value = owner.cookies()["Cookie"].partition("=")
        pages.cookies[name] = value
    pages.open("/connect/logout?" + wire.form_body({"id_token_hint": native["id_token"], "post_logout_redirect_uri": GOODBYE}).decode())
    assert pages.page.step == "sign-out" and pages.left_for is None, pages.answer
    pages.submit("continue")
    assert pages.left_for == GOODBYE, "registered for the hint's client"
    assert flow.app.refresh(native["refresh_token"]).status == 200
    assert (browser == "its user's") != is_signed_in(flow)


def test_a_link_that_is_opened_twice_leads_back_twice(flow):
    """A double click: the second request finds the browser's session ended, and is led on as the first was."""
    for _ in range(2):
        answer = logout(flow, id_token_hint=flow.issued["id_token"], post_logout_redirect_uri=GOODBYE, state="x")
        assert (answer.status, answer.header("location")) == (303, f"{GOODBYE}?state=x"), answer


@pytest.mark.parametrize("action, leaves", [("continue", f"{GOODBYE}?state=a%20b"), ("cancel", None)])
def test_a_yes_leads_to_a_uri_of_the_client_that_asked(flow, action, leaves):
    """`client_id` and a registered URI, without a hint; a no leads nowhere and ends nothing."""
    pages = PageBrowser(flow.app.node, flow.host)
    name, _, value = flow.cookies()["Cookie"].partition("=")
    pages.cookies[name] = value
    query = {"client_id": flow.app.client_id, "post_logout_redirect_uri": GOODBYE, "state": "a b"}
    pages.open("/connect/logout?" + wire.form_body(query).decode())
    assert pages.page.step == "sign-out" and pages.left_for is None and is_signed_in(flow)
    pages.submit(action)
    assert pages.left_for == leaves and is_signed_in(flow) == (leaves is None), pages.answer


@pytest.mark.parametrize("wrong", [
    {"post_logout_redirect_uri": GOODBYE + "/other"}, {"client_id": "nobody"}, {"client_id": None}, {"state": "x" * 2049}])
def test_a_yes_leads_nowhere_else(flow, wrong):
    """Unregistered, of no client, of an unknown one, with a state that is too long."""
    pages = PageBrowser(flow.app.node, flow.host)
    query = {"client_id": flow.app.client_id, "post_logout_redirect_uri": GOODBYE, "state": "s", **wrong}
    pages.open("/connect/logout?" + wire.form_body({name: value for name, value in query.items() if value}).decode())
    pages.submit("continue")
    assert pages.left_for is None and pages.page.step == "signed-out", pages.answer


@pytest.mark.parametrize("what", [
    "nothing", "state", "uri", "unregistered", "altered uri", "script", "no signature", "access token", "long", "client", "forged",
])
def test_anything_less_asks_first_and_never_redirects(flow, what):
    """And ends nothing."""
    token = flow.issued["id_token"]
    header, payload, signature = token.split(".")
    none = jose.b64url(json.dumps({"alg": "none", "typ": "JWT"}).encode())
    parameters = {
        "nothing": {}, "state": {"state": "x"}, "uri": {"post_logout_redirect_uri": GOODBYE},
        "unregistered": {"id_token_hint": token, "post_logout_redirect_uri": "https://evil.example/"},
        "altered uri": {"id_token_hint": token, "post_logout_redirect_uri": GOODBYE + "?foo=bar"},
        "script": {"id_token_hint": token, "post_logout_redirect_uri": "javascript:alert(1)"},
        "no signature": {"id_token_hint": f"{none}.{payload}.", "post_logout_redirect_uri": GOODBYE},
        "access token": {"id_token_hint": flow.issued["access_token"], "post_logout_redirect_uri": GOODBYE},
        "long": {"id_token_hint": "x" * 7000}, "client": {"id_token_hint": token, "client_id": "other"},
        "forged": {"id_token_hint": f"{header}.{payload}.{signature[:-4]}AAAA", "post_logout_redirect_uri": GOODBYE},
    }[what]
    answer = logout(flow, **parameters)
    assert answer.status == 200 and answer.header("location") is None, answer
    assert is_signed_in(flow) and flow.app.userinfo(flow.issued["access_token"]).status == 200


def test_another_users_hint_asks(realm, flow):
    """A stranger's token signs nobody out."""
    other = Flow(realm)
    other.sign_in(realm.user())
    answer = logout(flow, id_token_hint=other.tokens()["id_token"], post_logout_redirect_uri=GOODBYE)
    assert answer.status == 200 and is_signed_in(flow) and is_signed_in(other)


def test_an_expired_hint_counts(flow, world):
    """The session it names may have ended long ago."""
    world.time_travel(3600)
    answer = logout(flow, id_token_hint=flow.issued["id_token"], post_logout_redirect_uri=GOODBYE)
    assert (answer.status, answer.header("location")) == (303, GOODBYE)


def test_a_post_of_a_client_comes_as_a_get(flow):
    """A cross-site POST has no cookies."""
    answer = flow.app.post("/connect/logout", {"id_token_hint": "x", "state": "y z"})
    assert (answer.status, answer.header("location")) == (303, f"{flow.realm.issuer}/connect/logout?id_token_hint=x&state=y%20z")


class Receiver:
    """A client's back-channel endpoint on this machine."""

    def __init__(self, *statuses):
        self.got = queue.Queue()
        self.flow = None
        statuses = list(statuses)
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                receiver.got.put((self.headers["Content-Type"], urllib.parse.parse_qs(body)["logout_token"][0]))
                status = statuses.pop(0) if statuses else 200
                if status == RESET:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    return
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.uri = f"http://127.0.0.1:{self._server.server_port}/logged-out"

    def token(self, timeout=20):
        """The next token."""
        try:
            kind, token = self.got.get(timeout=timeout)
        except queue.Empty:
            raise AssertionError(f"no token within {timeout} s: {self.flow and queued(self.flow)}") from None
        assert kind == "application/x-www-form-urlencoded"
        return token

    def close(self):
        """Stops listening."""
        self._server.shutdown()


@pytest.fixture
def receiver(request, world):
    """A receiver that answers with the statuses given."""
    made = Receiver(*getattr(request, "param", ()))
    yield made
    made.close()


def queued(flow):
    """The logout tokens of the realm, sent or not: they are queued by the statement that ends the session."""
    return flow.realm.world.admin.rows_of("logout_tokens", f'"realm":"{flow.realm.slug}"')


def with_receiver(world, receiver):
    """A realm whose client app has it, and a signed-in browser."""
    realm = hosted(world.realm())
    world.admin.call("put_logout_uri", realm.slug, realm.client("app"), receiver.uri, "backchannel")
    world.settle()
    flow = Flow(realm)
    flow.email = realm.user()
    flow.session = flow.sign_in(flow.email)
    flow.issued = flow.tokens()
    world.settle()  # hints signed with the realm's first key are known once the server has read the realm again
    receiver.flow = flow
    return flow


def test_a_client_is_told_by_a_logout_token(world, receiver):
    """OpenID Connect Back-Channel Logout 1.0 §2.4; it is no ID token, and an ID token is none."""
    flow = with_receiver(world, receiver)
    logout(flow, id_token_hint=flow.issued["id_token"])
    token = receiver.token()
    header, claims = jose.verify(token, flow.app.get("/.well-known/jwks").json())
    identity = jose.parts(flow.issued["id_token"])[1]
    assert header["typ"] == "logout+jwt"
    assert set(claims) == {"iss", "aud", "iat", "exp", "jti", "sub", "sid", "events"}
    assert (claims["iss"], claims["aud"], claims["sub"], claims["sid"]) == tuple(identity[name] for name in ("iss", "aud", "sub", "sid"))
    assert claims["events"] == {EVENT: {}} and claims["exp"] - claims["iat"] == 120
    assert logout(flow, id_token_hint=token).status == 200
    assert len(queued(flow)) == 1, "a token that is no hint ends nothing"


@pytest.mark.parametrize("receiver", [(500, 302, 200), (400, RESET, 204)], indirect=True, ids=["5xx, 3xx", "4xx, reset"])
def test_a_token_is_sent_until_it_is_accepted(world, receiver):
    """The same jti; no redirect is followed; 204 is a success."""
    flow = with_receiver(world, receiver)
    answer = logout(flow, id_token_hint=flow.issued["id_token"])
    assert queued(flow), answer
    claims = [jose.parts(receiver.token())[1] for _ in range(3)]
    assert len({c["jti"] for c in claims}) == 1
    deadline = time.monotonic() + 10
    while not (rows := [r for r in world.admin.rows_of("logout_tokens", claims[0]["jti"]) if '"sent_at":null' not in r]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert '"attempts":3' in rows[0]


@pytest.mark.parametrize("end", ["own sessions", "everywhere", "disabled", "deleted"])
def test_the_end_of_a_session_elsewhere_is_told_too(world, receiver, end):
    """One token for each session."""
    flow = with_receiver(world, receiver)
    sid = jose.parts(flow.issued["id_token"])[1]["sid"]
    if end == "own sessions":
        other = flow.app.sign_in(flow.email)["access_token"]
        answer = wire.exchange(flow.app.node.port, "DELETE", f"/connect/sessions/{sid}", {"Host": flow.host, **bearer(other)})
        assert answer.status == 204
    elif end == "everywhere":
        world.admin.call("sign_out_everywhere", flow.realm.slug, flow.email)
    elif end == "disabled":
        world.admin.call("set_user_enabled", flow.realm.slug, flow.email, False)
    else:
        world.admin.call("delete_user", flow.realm.slug, flow.email)
    assert jose.parts(receiver.token())[1]["sid"] == sid


def test_a_client_that_ends_a_session_itself_is_not_told(world, receiver):
    """It knows."""
    flow = with_receiver(world, receiver)
    assert flow.app.revoke(flow.issued["refresh_token"]).status == 200
    assert not queued(flow)


def test_a_client_that_hangs_delays_no_other(world, receiver):
    """Of forty ended sessions at each, those of the other client are told while the first still holds its calls."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as silent:
        realm = hosted(world.realm())
        world.admin.call("put_logout_uri", realm.slug, realm.client("app"), receiver.uri, "backchannel")
        world.admin.call("put_logout_uri", realm.slug, realm.client("app-2"), f"http://127.0.0.1:{silent.getsockname()[1]}/x", "backchannel")
        world.settle()
        told, hanging, email = Flow(realm), Flow(realm, "app-2"), realm.user()
        told.sign_in(email)
        hanging.cookie = told.cookie
        for flow in (told, hanging) * 40:
            flow.tokens(scope="openid")
        started = time.monotonic()
        world.admin.call("sign_out_everywhere", realm.slug, email)
        assert len({jose.parts(receiver.token())[1]["sid"] for _ in range(40)}) == 40
        assert time.monotonic() - started < 6, "the time that one call may take"
