"""Injection (SI): hostile text in every field is only text; and what logs, metrics and errors show, and what they do not."""

import json
import re
import secrets
import time
import urllib.parse

import pytest

from harness import wire
from harness.app import FULL_SCOPE, PASSKEY, bearer
from harness.jose import b64url
from harness.load import Load
from harness.volley import in_parallel
from harness.world import World

HOSTILE = [
    "' OR '1'='1", "'; SELECT pg_sleep(5);--", "'||pg_sleep(5)||'", "$$x$$", "E'\\''", "\\", "%", "_", "'; COPY (SELECT 1) TO PROGRAM 'id';--",
    "${jndi:ldap://127.0.0.1/a}", "{{7*7}}", "|id", "$(id)", "\u202e", "<script>alert(1)</script>",
]
#: What would break a line, a terminal or a JSON log.
BREAKING = ["a\r\nlevel=error forged", "a\nforged", "\x1b[31mred", '","outcome":"ok', "a\u2028b", "\x85", "\x7f"]


@pytest.fixture(scope="module")
def small():
    """A world whose PostgreSQL writes every statement down, without parameters, and whose server logs JSON."""
    made = World(
        "exposure", postgres="log_statement = 'all'\nlog_parameter_max_length = 0\nlog_parameter_max_length_on_error = 0\n",
        POSTERN_LOG_FORMAT="json")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def home(small):
    """A realm, and the tokens of somebody signed in."""
    realm = small.realm()
    realm.tokens = realm.app().sign_in(realm.user())
    return realm


def requests(realm):
    """Every field that takes text: a name, and a function that sends one value in it."""
    app, api = realm.app(), realm.app("api")
    token = realm.tokens["access_token"]

    def code_request(member):
        return lambda text: app.post_json(
            "/api/account/native/otp/request", {"Email": realm.new_email(), **({member: text} if member else {})})

    def form(path, name, **more):
        return lambda text: app.post(path, {"client_id": app.client_id, **more, name: text})

    def header(name):
        return lambda text: app.token({"grant_type": "refresh_token", "client_id": app.client_id, "refresh_token": "x"}, {name: text})

    def path(method, prefix):
        return lambda text: wire.exchange(
            realm.world.node.port, method, prefix + urllib.parse.quote(text, safe=""), {"Host": realm.host, **bearer(token)})

    def kid(text):
        head = b64url(json.dumps({"alg": "ES256", "typ": "at+jwt", "kid": text}).encode())
        return app.userinfo(f"{head}.{b64url(b'{}')}.{b64url(bytes(64))}")

    yield from {
        "Email": code_request("Email"), "ClientId": code_request("ClientId"), "AuthSession": code_request("AuthSession"),
        "ceremony_id": form("/connect/token", "ceremony_id", grant_type=PASSKEY, assertion="{}"),
        "assertion": form("/connect/token", "assertion", grant_type=PASSKEY, ceremony_id="x"),
        "auth_session": form("/connect/token", "auth_session", grant_type="urn:cocoar:otp", otp_code="123456"),
        "scope": form("/connect/token", "scope", grant_type="refresh_token", refresh_token="x"),
        "resource": form("/connect/token", "resource", grant_type="refresh_token", refresh_token="x"),
        "begin": form("/connect/passkey/begin", "client_id"), "revoke": form("/connect/revoke", "token"),
        "introspect": lambda text: api.introspect(text), "kid": kid,
        "passkey id": path("DELETE", "/connect/passkey/"), "session id": path("DELETE", "/connect/sessions/"),
        "userId": path("GET", "/magic-login?token=x&userId="), "query": path("GET", "/.well-known/jwks?x="),
        "User-Agent": header("User-Agent"), "X-Forwarded-For": header("X-Forwarded-For"), "X-Request-Id": header("X-Request-Id"),
    }.items()


def fields():
    """The names alone, for the test's parameters."""
    class _Nobody:  # pylint: disable=too-few-public-methods
        tokens = {"access_token": ""}
        host = slug = ""
        def app(self, _name="app"):
            """No client."""
            class _App:  # pylint: disable=too-few-public-methods
                client_id = ""
            return _App()
    return [name for name, _ in requests(_Nobody())]


@pytest.mark.parametrize("name", fields())
def test_hostile_text_is_answered_like_any_other(home, name):
    """The same answer as a random string, at once, and nothing of ours in it."""
    send = dict(requests(home))[name]
    usual = send("z" + secrets.token_hex(8))
    assert usual.status < 500, usual
    for text in HOSTILE + ([] if name in ("User-Agent", "X-Forwarded-For", "X-Request-Id") else BREAKING):
        started = time.monotonic()
        answer = send(text)
        assert time.monotonic() - started < 3, f"{text!r} took its time"
        # What is no line of text may be refused earlier, and as a malformed request.
        same = answer.status == usual.status or (answer.status == 400 and answer.error in ("invalid_request", "invalid_scope", "invalid_target"))
        assert same, f"{text!r}: {answer}, usual: {usual}"
        # A handle is random and may hold anything.
        shown = re.sub(r"\bp[a-z]{2}_[\w-]{20,}", "", answer.body.decode(errors="replace"))
        assert not re.search(r"SQLSTATE|postern\.|pg_|syntax error|\.swift|StoreError|relation |/work|Fatal", shown), answer


def test_only_parameterised_statements_reach_postgresql(home, small):
    """Whatever was sent stands in no statement; runs after the fields above and sends its own."""
    marks = [f"mark{secrets.token_hex(6)}" for _ in range(3)]
    app = home.app()
    app.ask(f"{marks[0]}@mail.example", FirstName=f"x' {marks[0]}")
    app.redeem(f"'{marks[1]}", email=f"{marks[1]}@mail.example")
    app.userinfo(marks[2])
    time.sleep(1.2)
    text = small.cluster.log.read_text(errors="replace")
    assert "postern.redeem_code(p_caller => ROW($1" in text, "PostgreSQL did not write its statements down"
    for mark in marks + ["pg_sleep", "jndi", "COPY (SELECT"]:
        assert mark not in text, mark


def test_one_event_is_one_line_of_json_whatever_it_says(home, small):
    """Every line parses; a refused redemption names time, realm, client, grant, outcome, source and request; no text of the caller."""
    app, mark = home.app(), secrets.token_hex(6)
    for text in BREAKING:
        app.redeem(text + mark, email=home.new_email())
        app.post("/connect/token", {"grant_type": text + mark, "client_id": text + mark})
        app.get("/" + urllib.parse.quote(text + mark))
    lines = [line for line in small.node.log().splitlines() if line.strip()]
    events = [json.loads(line) for line in lines]
    assert mark not in "".join(lines)
    refused = [line for line in lines if '"invalid_grant"' in line][-1]
    for wanted in (home.slug, app.client_id, "urn:cocoar:otp", "127.0.0.1", '"request"'):
        assert wanted in refused, refused
    assert all(isinstance(event, dict) for event in events) and len(events) > len(BREAKING)


def test_a_link_in_a_url_stands_in_no_log(home, small):
    """The query of the landing page is nobody's business."""
    token = secrets.token_urlsafe(32)
    home.app().get(f"/magic-login?userId=00000000-0000-4000-8000-000000000000&token={token}")
    home.app().get(f"/connect/token?otp_code={token}")
    assert token not in small.node.log()


def test_metrics_name_no_tenant_and_stay_off_the_public_listener(home, small):
    """Figures by route, grant and outcome; nothing of realms, clients or people."""
    answer = small.node.ops("/metrics")
    assert answer.status == 200
    text = answer.body.decode()
    assert "postern_" in text
    for private in (home.slug, home.host, "mail.example", home.client("app"), "mark", "zz"):
        assert private not in text, private
    assert small.node.ops("/healthz").body.decode().count("\n") < 3
    for path in ("/metrics", "/healthz", "/readyz", "/debug", "/.git/config", "/dev/outbox", "/dev/outbox.json", "/env", "/config"):
        assert home.app().get(path).status == 404, path


def test_provisioning_goes_on_beside_live_traffic(home, small):
    """Changes of the realm that is being used hold nobody up, and are in force within seconds."""
    app, api = home.app(), home.app("api")
    emails = home.users(6)
    load = Load(app, api, in_parallel(app.sign_in, emails), []).start()
    try:
        for number in range(15):
            small.admin.call("put_client", home.slug, home.client(f"more{number}"), display_name=f"More {number}")
            small.admin.call("put_scope", home.slug, f"scope{number}.read", description="More")
            small.admin.call("put_user", home.slug, home.new_email())
            small.admin.call("set_code_policy", home.slug, otp_attempts=5)
        small.admin.call("grant_permission", home.slug, home.client("app"), "scp:scope14.read")
        changed = time.monotonic()
        email = home.user()
        while app.redeem("000000", email=email, scope=f"{FULL_SCOPE} scope14.read").error != "invalid_grant":
            assert time.monotonic() - changed < 5, "the change is not in force"
            time.sleep(0.1)
    finally:
        load.stop()
    assert len(load.successes) > 50
    assert load.slowest < 3, f"{load.slowest:.1f} s"
    load.audit()
