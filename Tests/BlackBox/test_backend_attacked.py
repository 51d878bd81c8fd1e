"""examples/bff keeps its sessions, its relay and its back channel through lost answers, races, forgeries and strange upstreams."""

import concurrent.futures
import json
import stat
import subprocess
import time
import uuid

import pytest

from harness.backend import EXAMPLE, OWN, Visitor
from harness.jose import b64url
from harness.module_site import until
from harness.ports import free_port
from test_backend_example import backend, lasting, visitor  # pylint: disable=unused-import  # fixtures

TOKEN, REVOKE = "/connect/token", "/connect/revoke"
EVENT = "http://schemas.openid.net/event/backchannel-logout"
DOWN = (503, [("Content-Type", "application/json")], b'{"error":"temporarily_unavailable"}')


def expire(backend, cookie):
    """Time passes for the access tokens of a session."""
    backend.row(cookie, lambda held: held.update({name: [value[0], 0] for name, value in held.items() if name != "refresh"}))


def at_once(*calls):
    """What the calls give that are made together."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


@pytest.fixture(scope="module")
def second(backend):
    """Another process of the example, on the same sessions: its port."""
    port = free_port()
    backend.start(port)
    return port


# -- refreshes


def test_one_refresh_serves_all_requests_that_find_the_token_expired(backend, visitor, second):
    """Of two processes."""
    visitor.get("/api/me")
    expire(backend, visitor.cookie)
    twin = Visitor(backend, port=second)
    twin.cookies = dict(visitor.cookies)
    before, former = len(backend.proxy.calls(TOKEN)), backend.row(visitor.cookie)["refresh"]
    answers = at_once(*[lambda one=one: one.get("/api/me") for one in (visitor, twin) * 4])
    assert {status for status, _ in answers} == {200} and len(backend.proxy.calls(TOKEN)) == before + 1
    assert backend.row(visitor.cookie)["refresh"] != former


def test_a_lost_answer_is_asked_for_again_and_is_the_same_successor(backend, visitor):
    visitor.get("/api/me")
    expire(backend, visitor.cookie)
    before = len(backend.proxy.calls(TOKEN))
    backend.proxy.drop(TOKEN)
    assert visitor.get("/api/me")[0] == 200 and backend.proxy.calls(TOKEN)[before:] == [200, 200]
    for _ in range(2):
        expire(backend, visitor.cookie)
        assert visitor.get("/api/me")[0] == 200, "the session goes on"


def test_an_outage_ends_no_session(backend, visitor):
    held = backend.row(visitor.cookie)
    backend.proxy.given[TOKEN] = DOWN
    try:
        status, headers, _ = visitor.ask("GET", "/api/me")
        assert status == 503 and headers["Retry-After"] and backend.row(visitor.cookie) == held
    finally:
        del backend.proxy.given[TOKEN]
    assert visitor.get("/api/me")[0] == 200


def test_a_refusal_of_the_refresh_token_ends_the_session(backend, visitor):
    cookie = visitor.cookie
    backend.row(cookie, lambda held: held.update(refresh="prt_" + "A" * 43))
    assert visitor.get("/api/me")[0] == 401 and backend.row(cookie) is None


@pytest.mark.parametrize("answer", [
    (400, [("Content-Type", "text/html")], b"<h1>invalid_grant</h1>"), (400, [], b'{"error":"invalid_scope"}'), (401, [], b'{"error":"invalid_client"}'),
    (302, [("Location", "/")], b""), (200, [], b"<h1>Welcome to our network</h1>")])
def test_another_refusal_ends_nothing(backend, visitor, answer):
    """A proxy or a wrong setting signs nobody out."""
    backend.proxy.given[TOKEN] = answer
    try:
        assert visitor.get("/api/me")[0] >= 400 and backend.row(visitor.cookie)
    finally:
        del backend.proxy.given[TOKEN]
    assert visitor.get("/api/me")[0] == 200


# -- the store


def test_a_sign_in_makes_a_new_cookie_and_ends_the_session_before(backend):
    browser, email = Visitor(backend), backend.user()
    browser.cookies["__Host-app"] = planted = "planted" * 6
    first = browser.sign_in(email)
    assert first != planted and len(first) >= 43 and backend.row(planted) is None
    old, revoked = backend.row(first), len(backend.proxy.calls(REVOKE))
    second = browser.sign_in(email, 2)
    assert second != first and backend.row(first) is None and old and len(backend.proxy.calls(REVOKE)) == revoked + 1
    browser.cookies["__Host-app"] = first
    assert browser.get("/api/me")[0] == 401


def test_the_database_opens_nothing(backend, visitor):
    """It holds hashes of cookies, and tokens sealed with what only the cookie gives. Nobody else may read it."""
    visitor.get("/api/me")
    held = backend.row(visitor.cookie)
    files = [file for file in backend.folder.iterdir() if file.name.startswith("sessions.db")]
    content = b"".join(file.read_bytes() for file in files)
    assert visitor.cookie.encode() not in content and held["refresh"].encode() not in content and b"prt_" not in content and b"pat_" not in content
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in files)
    thief = Visitor(backend)
    thief.cookies["__Host-app"] = next(name for name, _ in backend.rows())
    assert thief.get("/api/me")[0] == 401


def test_strangers_write_no_row(backend):
    before = backend.rows()
    stranger = Visitor(backend)
    for path, form in (("/code", {"email": backend.user()}), ("/code", {"code": "000000"}), ("/passkey", {}), ("/passkey", {"credential": "{}"}),
                       ("/passkey/new", {}), ("/sign-out", {})):
        stranger.post(path, form)
    stranger.ask("POST", "/page", {}, OWN)
    stranger.ask("GET", "/api/me")
    assert backend.rows() == before


def test_signing_out_works_while_the_server_is_away(backend, visitor):
    cookie = visitor.cookie
    backend.proxy.given[REVOKE] = DOWN
    try:
        assert visitor.post("/sign-out") == (200, {})
    finally:
        del backend.proxy.given[REVOKE]
    assert not visitor.cookie and backend.row(cookie) is None
    visitor.cookies["__Host-app"] = cookie
    assert visitor.get("/api/me")[0] == 401


def test_signing_out_revokes_and_wins_over_a_refresh_that_is_under_way(backend, visitor):
    visitor.get("/api/me")
    expire(backend, visitor.cookie)
    twin = Visitor(backend)
    twin.cookies, cookie = dict(visitor.cookies), visitor.cookie
    refreshed, _ = at_once(lambda: twin.get("/api/me"), lambda: visitor.post("/sign-out"))
    assert refreshed[0] in (200, 401) and backend.row(cookie) is None
    twin.cookies["__Host-app"] = cookie
    assert twin.get("/api/me")[0] == 401


def test_a_secret_that_others_may_read_is_refused(backend):
    backend.secret.chmod(0o640)
    try:
        done = subprocess.run(["/usr/bin/python3", "-c", "import app"], cwd=EXAMPLE, env=backend.environment(), capture_output=True, text=True, timeout=30)
    finally:
        backend.secret.chmod(0o600)
    assert done.returncode == 1 and done.stderr.endswith("the mode must be 0600\n")


# -- the back channel


def logout(backend, cookie, **changes):
    """The claims of a right logout token for a session, but for the changes."""
    now = int(time.time())
    claims = {"iss": backend.issuer, "aud": "acme-bff", "iat": now, "exp": now + 120, "jti": str(uuid.uuid4()), "sub": str(uuid.uuid4()),
              "sid": backend.sid(cookie), "events": {EVENT: {}}, **changes}
    return {name: value for name, value in claims.items() if value is not None}


def send(backend, token):
    """The status of a logout token's answer."""
    return Visitor(backend).ask("POST", "/logged-out", {"logout_token": token})[0]


def test_a_sign_out_elsewhere_ends_the_session_here(backend, visitor):
    """The realm's own logout token."""
    cookie = visitor.cookie
    backend.sign_out_everywhere(cookie)
    until(lambda: backend.row(cookie) is None, "the row is still there")
    assert visitor.get("/api/me")[0] == 401


def test_a_right_logout_token_ends_its_session_alone(backend, visitor):
    other = Visitor(backend)
    other.sign_in(backend.user())
    assert send(backend, backend.signed(logout(backend, visitor.cookie))) == 200
    assert backend.row(visitor.cookie) is None and other.get("/api/me")[0] == 200


@pytest.mark.parametrize("changes, header", [
    ({"aud": "acme-api"}, {}), ({"aud": None}, {}), ({"iss": "https://evil.example"}, {}), ({"nonce": "n"}, {}), ({"nonce": None, "iat": "now"}, {}),
    ({"iat": -600}, {}), ({"iat": 600}, {}), ({"iat": None}, {}), ({"exp": -600}, {}), ({"exp": None}, {}), ({"jti": None}, {}), ({"jti": 1}, {}),
    ({"sid": None}, {}), ({"sid": ["x"]}, {}), ({"events": None}, {}), ({"events": {}}, {}), ({"events": {"https://evil.example": {}}}, {}),
    ({"events": [EVENT]}, {}), ({"events": 1}, {}), ({}, {"typ": "JWT"}), ({}, {"typ": "at+jwt"}), ({}, {"typ": None}), ({}, {"kid": "unknown"}),
    ({}, {"kid": None}), ({}, {"kid": "read"}), ({}, {"kid": ["x"]}), ({}, {"alg": "RS256"}), ({}, {"crit": ["x"]}),
])
def test_a_logout_token_that_is_wrong_in_one_thing_ends_nothing(backend, lasting, changes, header):
    """A right one of another session is taken all the same."""
    changes = {name: int(time.time()) + value if value in (-600, 600) else value for name, value in changes.items()}
    assert send(backend, backend.signed(logout(backend, lasting.cookie, **changes), **header)) == 400
    assert lasting.get("/api/me")[0] == 200
    assert send(backend, backend.signed(logout(backend, lasting.cookie, sid=str(uuid.uuid4())))) == 200


def test_an_unsigned_logout_token_and_one_of_another_key_end_nothing(backend, visitor):
    token = backend.signed(logout(backend, visitor.cookie))
    head, claims, signature = token.split(".")
    none = b64url(json.dumps({"alg": "none", "typ": "logout+jwt", "kid": "ours"}).encode())
    for forged in (f"{none}.{claims}.", f"{none}.{claims}.{signature}", f"{head}.{claims}.{'A' * 86}", f"{head}.{claims}", "", "x", "." * 5000):
        assert send(backend, forged) == 400
    assert visitor.get("/api/me")[0] == 200 and send(backend, token) == 200


def test_a_logout_token_counts_once(backend, visitor):
    token = backend.signed(logout(backend, visitor.cookie))
    assert [send(backend, token) for _ in range(3)] == [200, 400, 400]


def test_unknown_keys_are_not_asked_for_at_every_request(backend, visitor):
    claims, path = logout(backend, visitor.cookie), "/.well-known/jwks.json"
    before = len(backend.proxy.calls(path))
    assert {send(backend, backend.signed(claims, kid=f"k{n}")) for n in range(20)} == {400}
    assert len(backend.proxy.calls(path)) <= before + 1


# -- the relay


@pytest.mark.parametrize("method, path", [
    ("GET", "/api/"), ("GET", "/api/users"), ("GET", "/api/me/"), ("GET", "/api//me"), ("GET", "/api/orders/../me"), ("GET", "/api/../me"), ("GET", "/api/%2e%2e/me"),
    ("GET", "/api/orders/%2e%2e%2fme"), ("GET", "/api/orders/1%0a"), ("GET", "/api/orders/1%00"), ("GET", "/api/orders/x"), ("GET", "/api/http://127.0.0.1:1/me"), ("GET", "/api//127.0.0.1:1/me"),
    ("GET", "http://127.0.0.1:1/api/me"), ("POST", "/api/me"), ("GET", "/api/me%3fx"), ("GET", "/api/orders/\u0661"), ("HEAD", "/api/me")])
def test_a_path_that_is_not_on_the_list_reaches_no_api(backend, lasting, method, path):
    before = len(backend.api.asked)
    status, headers, _ = lasting.ask(method, path.replace("\u0661", "%D9%A1"), None, OWN)
    assert status == 404 and headers["Location"] is None and len(backend.api.asked) == before
    assert lasting.get("/api/me")[0] == 200 and len(backend.api.asked) == before + 1


def test_the_api_gets_its_own_token_and_nothing_else_of_the_browser(backend, lasting):
    forged = {"Authorization": "Bearer forged", "Forwarded": "for=1", "X-Forwarded-For": "1", "X-Forwarded-Host": "evil.example", "Postern-Forwarded-For": "1",
              "Connection": "X-Secret, close", "X-Secret": "1", "Te": "trailers", "Upgrade": "websocket", "Proxy-Authorization": "1", "DPoP": "1"}
    status, _, body = lasting.ask("POST", "/api/orders?page=2", b'{"a":1}', {**OWN, **forged, "Content-Type": "application/json"})
    said = json.loads(body)
    fields = {name.lower(): value for name, value in said["fields"]}
    token = backend.row(lasting.cookie)["orders:read"][0]
    assert status == 200 and (said["scope"], said["body"]) == ("orders:read", '{"a":1}') and backend.api.asked[-1] == "/orders?page=2"
    assert fields.pop("authorization") == f"Bearer {token}" and set(fields) == {"host", "accept-encoding", "content-length", "content-type"}, fields
    assert fields["host"] == backend.api.origin.removeprefix("http://")


@pytest.mark.parametrize("wish, status", [("redirect", 502), ("cookie", 200), ("big", 502), ("short", 502)])
def test_an_answer_of_the_api_that_is_strange_stays_with_us(backend, lasting, wish, status):
    before = len(backend.api.asked)
    given, headers, body = lasting.ask("GET", "/api/orders?" + wish)
    assert given == status and len(backend.api.asked) == before + 1, "no redirect is followed"
    assert "planted" not in str(headers) and headers["Location"] is None and len(body) < 1 << 20


def test_a_body_that_is_too_large_does_not_reach_the_api(backend, lasting):
    before = len(backend.api.asked)
    announced = {**OWN, "Content-Length": str((1 << 20) + 1)}
    assert lasting.ask("POST", "/api/orders", None, announced)[0] == 413 and len(backend.api.asked) == before
    assert lasting.ask("POST", "/api/orders", b"x" * (1 << 20), OWN)[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("wish", ["slow", "drip"])
def test_an_answer_has_ten_seconds_in_all(backend, lasting, wish):
    backend.api.released.clear()
    began = time.monotonic()
    try:
        assert lasting.ask("GET", "/api/orders?" + wish)[0] == 504 and time.monotonic() - began < 15
    finally:
        backend.api.released.set()


def test_an_api_that_is_away_is_a_bad_gateway(backend, lasting):
    port = free_port()
    backend.start(port, API=f"http://127.0.0.1:{free_port()}")
    elsewhere = Visitor(backend, port=port)
    elsewhere.cookies = lasting.cookies
    assert elsewhere.get("/api/me")[0] == 502
