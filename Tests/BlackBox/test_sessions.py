"""A user's own sessions, and every way in which somebody is signed out, on two processes."""

import datetime
import re
import uuid

import pytest

from harness import authenticator, wire
from harness.app import bearer
from harness.links import Links

MEMBERS = {"Id", "Browser", "ClientId", "ClientName", "UserAgent", "CreatedAt", "LastUsedAt", "Acr", "Current"}


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes of one database."""
    second = world.start_node()
    yield world.node, second
    second.stop()


def sessions(app, token):
    """GET /connect/sessions of a success."""
    answer = app.get("/connect/sessions", bearer(token))
    assert answer.status == 200, answer
    assert "no-store" in answer.header("cache-control")
    return answer.json()


def end(app, token, session):
    """DELETE /connect/sessions/{id}; the raw answer."""
    return wire.exchange(app.node.port, "DELETE", f"/connect/sessions/{session}", {"Host": app.host, **bearer(token)})


def events(realm, session, event="session_revoked"):
    """Audit rows of a session."""
    return realm.world.admin.run(
        f"SELECT detail::text FROM admin.audit_log WHERE realm = '{realm.slug}' AND event = '{event}' AND session_id = '{session}';"
    )


def sid(api, token):
    """The session of an access token."""
    return api.introspect(token).json()["sid"]


def assert_dead(realm, tokens, nodes, client="app"):
    """Refresh and access token are dead at once, at every process."""
    for node in nodes:
        api, app = realm.app("api", node), realm.app(client, node)
        assert not api.active(tokens["access_token"])
        assert app.userinfo(tokens["access_token"]).status == 401
        refused = app.refresh(tokens["refresh_token"])
        assert (refused.status, refused.error) == (400, "invalid_grant"), refused


def assert_alive(realm, tokens, nodes, client="app"):
    """The access token works at every process."""
    for node in nodes:
        assert realm.app("api", node).active(tokens["access_token"])
        assert realm.app(client, node).userinfo(tokens["access_token"]).status == 200


def test_the_list_has_the_own_live_sessions_newest_first(realm, api):
    """Two clients, one person; nobody else's, none that ended; the one that asks says so."""
    email = realm.user()
    first, other, jwt = realm.app(), realm.app("app-2"), realm.app("jwt")
    old = first.sign_in(email)
    gone = first.sign_in(email)
    first.revoke(gone["refresh_token"])
    second = other.sign_in(email)
    third = jwt.sign_in(email)
    first.sign_in(realm.user())
    listed = sessions(first, old["access_token"])
    assert [item["ClientId"] for item in listed] == [jwt.client_id, other.client_id, first.client_id]
    assert all(set(item) == MEMBERS for item in listed), listed
    assert [item["Current"] for item in listed] == [False, False, True]
    assert [item["Id"] for item in listed] == [sid(api, t["access_token"]) for t in (third, second, old)]
    assert [item["Current"] for item in sessions(other, second["access_token"])] == [False, True, False]
    assert [item["Current"] for item in sessions(jwt, third["access_token"])] == [True, False, False]
    for item in listed:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", item["CreatedAt"])
        assert item["LastUsedAt"] >= item["CreatedAt"]


def test_a_session_says_on_what_it_was_opened(realm, app, email):
    """The client's name, and the User-Agent of the sign-in by code, link or passkey: printable, bounded, null when there was none."""
    sent = ["Acme/7 (iPhone; iOS 19)", None, "x" * 400, "Tab\there"]
    seen = ["Acme/7 (iPhone; iOS 19)", None, "x" * 256, "Tabhere"]
    for agent in sent:
        asked = app.request_code(email)
        token = app.token(app.redeem_form(asked.code, email=email), {"User-Agent": agent} if agent else None).json()["access_token"]
    listed = sessions(app, token)
    assert [item["UserAgent"] for item in reversed(listed)] == seen
    assert {item["ClientName"] for item in listed} == {app.client_id}
    _, credential = app.enroll(token)
    ceremony = app.ceremony()
    document = authenticator.assertion(ceremony["options"], credential)
    token = app.token(app.passkey_form(ceremony, document), {"User-Agent": "Passkey/1"}).json()["access_token"]
    assert sessions(app, token)[0]["UserAgent"] == "Passkey/1"
    link = Links(app).link(email)
    token = app.token(Links(app).redeem_form(link), {"User-Agent": "Link/1"}).json()["access_token"]
    assert sessions(app, token)[0]["UserAgent"] == "Link/1"
    plain = app.sign_in(email)["access_token"]
    assert sessions(app, plain)[0]["UserAgent"] is None, "nothing is left of another request"


def test_last_used_is_the_last_refresh(realm, app, email):
    """CreatedAt stays, LastUsedAt moves, the id is the family's."""
    tokens = app.sign_in(email)
    before = sessions(app, tokens["access_token"])[0]
    realm.world.time_travel(90)
    refreshed = app.refreshed(tokens["refresh_token"])
    after = sessions(app, refreshed["access_token"])[0]
    assert after["Id"] == before["Id"]
    moved = [datetime.datetime.fromisoformat(after[m].replace("Z", "+00:00")) for m in ("LastUsedAt", "CreatedAt")]
    assert (moved[0] - moved[1]).total_seconds() >= 90


def test_a_deleted_session_is_dead_at_once_and_alone(realm, app, email, nodes):
    """204; refresh family and reference token die in both processes, the other session lives; audited once; then 404."""
    kept, lost = app.sign_in(email), app.sign_in(email)
    target = sessions(app, lost["access_token"])[0]["Id"]
    assert_alive(realm, lost, nodes)
    answer = end(app, kept["access_token"], target)
    assert (answer.status, answer.body) == (204, b"")
    assert_dead(realm, lost, nodes)
    assert_alive(realm, kept, nodes)
    assert [item["Current"] for item in sessions(app, kept["access_token"])] == [True]
    assert end(app, kept["access_token"], target).status == 404
    rows = events(realm, target)
    assert len(rows) == 1 and "signed_out" in rows[0][0], rows


def test_somebody_may_end_the_session_that_asks(realm, app, email, nodes):
    """Signing oneself out."""
    tokens = app.sign_in(email)
    assert end(app, tokens["access_token"], sessions(app, tokens["access_token"])[0]["Id"]).status == 204
    assert_dead(realm, tokens, nodes)
    assert app.get("/connect/sessions", bearer(tokens["access_token"])).status == 401


def test_a_session_of_a_jwt_client_ends_its_refresh(realm, email, nodes):
    """A JWT is inactive at introspection and at our own endpoints; elsewhere it lives until it expires."""
    jwt = realm.app("jwt")
    tokens = jwt.sign_in(email)
    assert end(jwt, tokens["access_token"], sessions(jwt, tokens["access_token"])[0]["Id"]).status == 204
    assert_dead(realm, tokens, nodes, client="jwt")


@pytest.mark.parametrize("name", ["unknown", "foreign", "other-realm", "malformed", "empty", "sql", "long", "upper-case-own"])
def test_what_is_not_an_own_session_is_not_found(world, realm, app, email, name):
    """Foreign, unknown and malformed look alike; the foreign one lives on. An id is read in either case."""
    tokens = app.sign_in(email)
    own = sessions(app, tokens["access_token"])[0]["Id"]
    victim_realm = world.realm() if name == "other-realm" else realm
    victim = victim_realm.app()
    victims = victim.sign_in(victim_realm.user())
    foreign = sessions(victim, victims["access_token"])[0]["Id"]
    target = {
        "unknown": str(uuid.uuid4()), "foreign": foreign, "other-realm": foreign, "malformed": own[:-1], "empty": "",
        "sql": "'%20OR%201=1--", "long": "0" * 4000, "upper-case-own": own.upper(),
    }[name]
    answer = end(app, tokens["access_token"], target)
    if name == "upper-case-own":
        assert answer.status == 204
        return
    assert (answer.status, answer.body) == (404, b"")
    assert victim.userinfo(victims["access_token"]).status == 200
    assert app.userinfo(tokens["access_token"]).status == 200


@pytest.mark.parametrize("header", [None, "Bearer", "Bearer nonsense", "Basic YTpi", "Bearer pat_AAAA"])
def test_without_a_live_token_there_is_nothing(app, header):
    """401 with a challenge, for both methods."""
    fields = {"Host": app.host, **({"Authorization": header} if header else {})}
    for method, path in (("GET", "/connect/sessions"), ("DELETE", f"/connect/sessions/{uuid.uuid4()}")):
        answer = wire.exchange(app.node.port, method, path, fields)
        assert answer.status == 401, answer
        assert answer.header("www-authenticate").startswith("Bearer")
        # RFC 6750 §3.1: no error code for a request without a Bearer token.
        is_bearer = header is not None and header.startswith("Bearer")
        assert ("error" in answer.header("www-authenticate")) == is_bearer, answer


def test_other_methods_are_refused(app):
    """405 with Allow."""
    for method, path, allow in (("POST", "/connect/sessions", "DELETE, GET, HEAD"), ("GET", "/connect/sessions/x", "DELETE")):
        answer = wire.exchange(app.node.port, method, path, {"Host": app.host})
        assert (answer.status, answer.header("allow")) == (405, allow)


def test_native_grants_off_leaves_signing_out_possible(world):
    """Off stops new sign-ins, not the sessions there are."""
    realm = world.realm()
    app, email = realm.app(), realm.user()
    kept, lost = app.sign_in(email), app.sign_in(email)
    realm.native(enabled=False)
    target = sessions(app, kept["access_token"])[0]["Id"]
    assert end(app, kept["access_token"], target).status == 204
    assert app.refresh(lost["refresh_token"]).status == 400
    assert app.refresh(kept["refresh_token"]).status == 200


def test_the_right_to_sign_out_needs_no_recent_sign_in(realm, app, email):
    """No step-up: it takes trust away."""
    tokens = app.sign_in(email)
    realm.world.time_travel(1200)
    fresh = app.refreshed(tokens["refresh_token"])
    assert end(app, fresh["access_token"], sessions(app, fresh["access_token"])[0]["Id"]).status == 204


@pytest.mark.parametrize("how", ["sign_out_everywhere", "disable", "delete", "put_user_disabled"])
def test_an_administrator_signs_somebody_out_everywhere(world, realm, app, nodes, how):
    """Next refresh fails and reference tokens die at once in both processes; audited; others live."""
    email, bystander = realm.user(), realm.user()
    held = [app.sign_in(email), app.sign_in(email)]
    untouched = app.sign_in(bystander)
    user = app.userinfo(held[0]["access_token"]).json()["sub"]
    assert_alive(realm, held[0], nodes)
    event = {
        "sign_out_everywhere": "user_signed_out", "disable": "user_disabled", "delete": "user_deleted", "put_user_disabled": "user_updated",
    }[how]
    if how == "sign_out_everywhere":
        assert world.admin.call("sign_out_everywhere", realm.slug, email) == "2"
    elif how == "disable":
        world.admin.call("set_user_enabled", realm.slug, email, False)
    elif how == "delete":
        world.admin.call("delete_user", realm.slug, email)
    else:
        realm.put_user(email, enabled=False)
    for tokens in held:
        assert_dead(realm, tokens, nodes)
    assert_alive(realm, untouched, nodes)
    rows = world.admin.run(
        f"SELECT event, source FROM admin.audit_log WHERE realm = '{realm.slug}' AND user_id = '{user}' AND event = '{event}';"
    )
    assert rows == [[event, "sql:bb_admin"]], rows
    if how == "disable":
        world.admin.call("set_user_enabled", realm.slug, email, True)
        for tokens in held:
            assert_dead(realm, tokens, nodes)
    if how != "delete":
        world.admin.call("set_user_enabled", realm.slug, email, True)
        assert_alive(realm, app.sign_in(email), nodes)
