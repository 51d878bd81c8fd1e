"""Codes, the sessions that they open, and redirect URIs at their bounds: beyond test_code_grant.py, test_hosted_codes.py and test_hosted_redirects.py."""

import re

import pytest

from harness import jose, wire
from harness.app import bearer
from harness.codeflow import GRANT, REDIRECT, Flow, hosted, page_error, refused, response
from harness.ledger import LEDGER
from harness.load import is_unavailable
from harness.node import Node
from harness.proxy import LosingProxy
from harness.realm import call
from harness.settings import FULL
from harness.sign_in_pages import counted_case, positive_control, signed_in  # pylint: disable=unused-import  # fixtures
from harness.volley import in_parallel, token_request, volley
from test_authorize import short
from test_code_grant import INVALID
from test_hosted_sessions import lives



@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, where a source may ask as often as it likes."""
    made = hosted(world.realm(), offer_passkey=False)
    made.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
    return made


@pytest.fixture
def flow(realm):
    """A browser that is signed in."""
    return signed_in(realm)


def opened_by(flow, table="session"):
    """How many rows belong to the browser's session."""
    return int(flow.realm.world.cluster.value(f"SELECT count(*) FROM postern.{table} WHERE browser_session = '{flow.session}'"))


# -- codes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [2, 8, 48, 200])
def test_of_many_requests_with_one_code_one_opens_the_only_session(realm, world, width):
    """On two processes at once, many times; those who lose get the one refusal."""
    second, rounds = world.start_node(), 1000 if FULL else max(1, min(20, 200 // width))
    try:
        for _ in range(rounds):
            flow = signed_in(realm)
            code = flow.code()
            raw = token_request(flow.app, {
                "grant_type": GRANT, "client_id": flow.app.client_id, "code": code, "redirect_uri": REDIRECT, "code_verifier": flow.verifier})
            parts = in_parallel(lambda port, raw=raw: volley(port, [raw] * (width // 2)), [world.node.port, second.port], threads=2)
            answers = [answer for part in parts for answer in part]
            statuses = [getattr(answer, "status", repr(answer)) for answer in answers]
            # On a busy machine some of many wait too long for a connection: 503, and they may ask again.
            assert statuses.count(200) == 1 and set(statuses) <= {200, 400, 503} and statuses.count(400) >= (width - 1) // 2, statuses
            assert width > 48 or 503 not in statuses, statuses
            assert all(answer.json() == INVALID for answer in answers if answer.status == 400)
            LEDGER.tokens(next(answer for answer in answers if answer.status == 200).json())
            assert opened_by(flow) == 1
    finally:
        second.stop()


def test_a_pushed_request_that_many_finish_at_once_has_one_code(flow):
    """One row, beside the pages of those who came too late."""
    uri = flow.push().json()["request_uri"]
    query = wire.form_body({"client_id": flow.app.client_id, "request_uri": uri}).decode()
    raw = wire.request_bytes("GET", f"/connect/authorize?{query}", {"Host": flow.host, **flow.cookies()})
    answers = volley(flow.app.node.port, [raw] * 48)
    assert [answer.status for answer in answers].count(303) == 1, {answer.status for answer in answers}
    assert opened_by(flow, "authorization_code") == 1
    assert page_error(short(flow, uri)) == "invalid_request_uri"


def test_codes_are_long_distinct_and_not_what_the_database_holds(flow, world):
    """Two thousand of them; what a dump has redeems nothing."""
    codes = in_parallel(lambda _: response(flow.authorize())["code"], range(2000))
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"pac_[\w-]{22,252}", code) for code in codes), codes[0]
    for place in range(4, 4 + 22):
        assert len({code[place] for code in codes}) > 50, "the figures of each place are spread"
    rows = world.cluster.sql(
        f"SELECT encode(code_hash, 'hex'), encode(code_hash, 'base64') FROM postern.authorization_code WHERE browser_session = '{flow.session}' LIMIT 5")
    assert len(rows) == 5
    for row in rows:
        for text in row:
            stripped = text.replace("+", "-").replace("/", "_").rstrip("=\n")
            for presented in (text, "pac_" + text, "pac_" + stripped):
                assert flow.exchange(presented).json() == INVALID
    assert flow.exchange(codes[-1]).status == 200


def test_a_family_that_a_code_began_is_retried_and_reused_as_any_other(flow, world):
    """The same successor within the window; after it, or once the successor was used, the family ends."""
    app = flow.app
    tokens = flow.tokens()
    first, again = app.refreshed(tokens["refresh_token"]), app.refreshed(tokens["refresh_token"])
    assert again["refresh_token"] == first["refresh_token"]
    world.time_travel(121)
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert app.refresh(first["refresh_token"]).error == "invalid_grant" and app.userinfo(first["access_token"]).status == 401
    tokens = flow.tokens()
    first = app.refreshed(tokens["refresh_token"])
    second = app.refreshed(first["refresh_token"])
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert app.refresh(second["refresh_token"]).error == "invalid_grant"
    assert lives(flow), "the browser stays signed in"


def test_a_session_without_a_refresh_token_ends_with_its_access_token(flow, world):
    """It is no longer listed, and its token is dead."""
    short_lived, keeper = flow.tokens(scope="openid email"), flow.tokens()
    sid = jose.parts(short_lived["id_token"])[1]["sid"]

    def listed(token):
        return sid in {item["Id"] for item in flow.app.get("/connect/sessions", bearer(token)).json()}

    assert "refresh_token" not in short_lived and listed(keeper["access_token"])
    world.time_travel(short_lived["expires_in"] + 2)
    assert flow.app.userinfo(short_lived["access_token"]).status == 401
    assert not flow.realm.app("api").active(short_lived["access_token"])
    assert not listed(flow.app.refreshed(keeper["refresh_token"])["access_token"])


@pytest.mark.slow
def test_a_lost_answer_of_the_database_opens_one_session(realm, world):
    """Committed and not told: the server asks again, and the client gets the tokens of the one session; or 503, and never invalid_grant."""
    proxy = LosingProxy(world.cluster)
    node = Node(proxy.url(world.cluster, "bb_serve"), world.key_file, world.mailbox.port).start()
    world.nodes.append(node)
    try:
        flow = Flow(realm, node=node)
        flow.session = flow.sign_in(realm.user())
        for count in range(1, 4):
            code = flow.code()
            proxy.lose("\0redeem_authorization_code")
            answer = flow.exchange(code)
            assert proxy.armed == 0
            assert answer.status == 200, answer
            assert flow.app.userinfo(answer.json()["access_token"]).status == 200 and opened_by(flow) == count
        code = flow.code()
        proxy.lose("\0redeem_authorization_code", times=1000)
        form = {"grant_type": GRANT, "client_id": flow.app.client_id, "code": code, "redirect_uri": REDIRECT, "code_verifier": flow.verifier}
        try:
            answer = flow.app.token(form, timeout=60)
        finally:
            proxy.lose("\0redeem_authorization_code", times=0)
        assert is_unavailable(answer), answer
        assert opened_by(flow) <= 4
    finally:
        node.stop()
        proxy.close()


# -- browser sessions ------------------------------------------------------------------------------


def test_a_session_ends_at_its_second(world):
    """By the clock of the database, for idleness and for age."""
    realm = hosted(world.realm(), sso_idle="1 hour", sso_absolute="2 hours", offer_passkey=False)
    in_time, late = signed_in(realm), signed_in(realm)
    watch = world.stopwatch()
    watch.reach(3550)
    assert lives(in_time)
    watch.reach(3605)
    assert refused(late.authorize(prompt="none")) == "login_required" and lives(in_time)
    watch.reach(7150)
    assert lives(in_time)
    watch.reach(7205)
    assert refused(in_time.authorize(prompt="none")) == "login_required"


def test_what_the_database_holds_of_a_cookie_is_none(flow, world):
    """Neither the hash nor the id of a session opens it."""
    (row,) = world.cluster.sql(
        f"SELECT encode(cookie_hash, 'hex'), encode(cookie_hash, 'base64'), id FROM postern.browser_session WHERE id = '{flow.session}'")
    for text in row:
        for value in (text, "pss_" + text, "pss_" + text.replace("+", "-").replace("/", "_").rstrip("=\n")):
            stranger = Flow(flow.realm)
            stranger.cookie = value
            assert refused(stranger.authorize(prompt="none")) == "login_required"
    assert lives(flow)


# -- redirect URIs ---------------------------------------------------------------------------------


def test_hosts_of_loopback_are_not_equal_to_each_other(realm):
    """A client that registered one is at home on that one alone."""
    hosts = {"http://127.0.0.1": "v4", "http://localhost": "name", "http://[::1]": "v6"}
    for host, name in hosts.items():
        realm.put_client(name, "gt:authorization_code", "gt:refresh_token", "scp:email")
        realm.world.admin.call("put_redirect_uri", realm.slug, realm.client(name), host + "/cb")
    realm.world.settle()
    for own, name in hosts.items():
        for asked in hosts:
            answer = Flow(realm, name, redirect_uri=f"{asked}:5/cb").authorize()
            assert (answer.status == 200) if asked == own else (page_error(answer) == "invalid_redirect_uri"), (own, asked)


def test_a_confidential_client_has_the_port_that_is_registered(realm):
    """And no other; the URI without a port is another one."""
    for uri in ("http://127.0.0.1:8081/cb", "http://localhost:8081/cb"):
        realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("api"), uri)
    realm.world.settle()
    for host in ("127.0.0.1", "localhost"):
        assert Flow(realm, "api", redirect_uri=f"http://{host}:8081/cb").authorize().status == 200
        for port in (":8080", ":8082", "", ":80811"):
            assert page_error(Flow(realm, "api", redirect_uri=f"http://{host}{port}/cb").authorize()) == "invalid_redirect_uri"


@pytest.mark.parametrize("client, uri", [
    ("app", "https://app.a.example/cb#f"), ("app", "https://a:b@app.a.example/cb"), ("app", "https://*.a.example/cb"), ("app", "javascript:alert(1)"),
    ("app", "http://example.com/cb"), ("app", "https://x.example/../y"), ("app", "https://bücher.example/"), ("app", "yourapp://"),
    ("app", "https://x.example/" + "a" * 1990), ("api", "com.example.app:/cb"),
])
def test_a_refused_uri_is_not_stored_and_its_refusal_says_what_is_allowed(realm, client, uri):
    """The view of the administrator is as it was."""
    before = realm.world.admin.rows_of("redirect_uris", f'"realm":"{realm.slug}"')
    with pytest.raises(Exception, match=r"(?s)\buri\b.*HINT: ") as told:
        realm.world.admin.run(call("put_redirect_uri", realm.slug, realm.client(client), uri))
    assert re.search(r"HINT: .*(https://|public|cap:cotter)", str(told.value), re.S), told.value
    assert realm.world.admin.rows_of("redirect_uris", f'"realm":"{realm.slug}"') == before
