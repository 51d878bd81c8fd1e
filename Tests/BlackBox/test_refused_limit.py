"""Policy `refused`: refused calls are counted by source, good ones never are."""

import json
import time

import pytest

from harness import wire
from harness.app import bearer
from test_limits import assert_refused
from test_private_key_jwt import TYPE, Holder, Key

BUDGET = 4


@pytest.fixture
def tight(world):
    """A realm where the fifth refused call is too many."""
    realm = world.realm("tight")
    realm.limit("refused", "source", BUDGET, per="1 day")
    return realm


def wrong(app, path, **form):
    """A call with a wrong client secret."""
    return app.post(path, {"client_id": app.client_id, "client_secret": "wrong", **form})


def unauthorized(app, method, path):
    """A call with a token that is none."""
    headers = {"Host": app.host, "Content-Type": "application/json", **bearer("pat_none")}
    return wire.exchange(app.node.port, method, path, headers, b"{}" if method in ("POST", "PATCH") else None)


CALLS = {
    "token": lambda realm: wrong(realm.app("api"), "/connect/token", grant_type="client_credentials"),
    "unknown client": lambda realm: realm.app().token({"grant_type": "refresh_token", "client_id": "nobody", "refresh_token": "x"}),
    "introspect": lambda realm: wrong(realm.app("api"), "/connect/introspect", token="x"),
    "introspect by a public client": lambda realm: realm.app().post("/connect/introspect", {"token": "x", **realm.app().credentials()}),
    "revoke": lambda realm: wrong(realm.app("api"), "/connect/revoke", token="x"),
    "userinfo": lambda realm: unauthorized(realm.app(), "GET", "/connect/userinfo"),
    "no token": lambda realm: realm.app().get("/connect/userinfo"),
    "account": lambda realm: unauthorized(realm.app(), "GET", "/connect/account"),
    "account deletion": lambda realm: unauthorized(realm.app(), "DELETE", "/connect/account"),
    "sessions": lambda realm: unauthorized(realm.app(), "GET", "/connect/sessions"),
    "passkeys": lambda realm: unauthorized(realm.app(), "GET", "/connect/passkey"),
    "passkey enrolment": lambda realm: unauthorized(realm.app(), "POST", "/connect/passkey/enroll/begin"),
    "totp": lambda realm: unauthorized(realm.app(), "POST", "/connect/totp/enroll"),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_calls_get_429_when_there_were_too_many(tight, name):
    """A burst of the refusals themselves, then 429 as everywhere."""
    statuses = [CALLS[name](tight).status for _ in range(BUDGET)]
    assert statuses == [401] * BUDGET
    assert_refused(CALLS[name](tight), "refused", "source")


def test_all_endpoints_share_the_budget_and_good_calls_are_served(tight):
    """Over it every refusal is 429; whoever is right is answered as ever, from the same source."""
    app, api = tight.app(), tight.app("api")
    tokens = app.sign_in(tight.user())
    for name in list(CALLS)[:BUDGET]:
        assert CALLS[name](tight).status == 401
    for name in CALLS:
        assert_refused(CALLS[name](tight), "refused", "source")
    for _ in range(20):
        assert api.active(tokens["access_token"])
        assert api.introspect("junk").json() == {"active": False}
        assert app.userinfo(tokens["access_token"]).status == 200
        assert app.account(tokens["access_token"])["Sessions"] == 1
    assert api.revoke("junk").status == 200
    assert app.refresh(tokens["refresh_token"]).status == 200
    assert app.sign_in(tight.user())["access_token"]


def test_what_is_answered_otherwise_is_not_counted(tight):
    """An inactive token asked about by an authenticated client, a malformed request, a wrong code, an unknown id: none is a refusal."""
    app, api = tight.app(), tight.app("api")
    token = app.sign_in(tight.user())["access_token"]
    for _ in range(BUDGET + 2):
        assert api.introspect("junk").json() == {"active": False}
        assert api.post("/connect/introspect", {}, {"Authorization": api.basic}).status == 400
        assert app.redeem("000000", email=tight.new_email()).status == 400
        assert app.delete("/connect/sessions/none", bearer(token)).status == 404
    assert CALLS["userinfo"](tight).status == 401


def test_the_budget_is_one_over_all_processes(tight, second_node):
    """N refusals in all, however they are spread."""
    here, there = tight.app(), tight.app("app", second_node)
    statuses = [(here if n % 2 else there).get("/connect/userinfo").status for n in range(BUDGET * 3)]
    assert statuses.count(401) == BUDGET and statuses.count(429) == BUDGET * 2


def test_another_source_and_another_realm_are_not_concerned(world, tight, proxied_node):
    """Each source has its own."""
    app = tight.app("app", proxied_node)
    flood = [app.get("/connect/userinfo", {"X-Forwarded-For": "203.0.113.7"}).status for _ in range(BUDGET + 1)]
    assert flood[-1] == 429
    assert app.get("/connect/userinfo", {"X-Forwarded-For": "203.0.113.8"}).status == 401
    other = world.realm("tight").app("app", proxied_node)
    assert other.get("/connect/userinfo", {"X-Forwarded-For": "203.0.113.7"}).status == 401


def test_watched_only_it_refuses_nothing(world):
    """mode log-only."""
    realm = world.realm("tight")
    world.admin.call("set_rate_limit", realm.slug, "refused", "source", permits=1, per="1 day", burst=1, mode="log-only")
    world.settle()
    assert [CALLS["introspect"](realm).status for _ in range(5)] == [401] * 5


def test_the_default_is_two_hundred_at_once(world):
    """600 in a minute, burst 200."""
    realm = world.realm("tight")
    world.admin.call("reset_rate_limit", realm.slug, "refused", "source")
    world.settle()
    app = realm.app()
    with wire.Connection(app.node.port) as connection:
        started = time.monotonic()
        statuses = []
        while 429 not in statuses and len(statuses) < 1000:
            statuses.append(connection.exchange("GET", "/connect/userinfo", {"Host": app.host}).status)
        refilled = (time.monotonic() - started) * 10
    assert 200 <= len(statuses) - 1 <= 201 + refilled, statuses


def test_a_client_with_a_key_is_served_beside_forgers(world):
    """The source is over its budget: forged assertions get 429, the client's own goes on to be verified."""
    realm = world.realm("tight")
    holder = Holder(realm, "keyed", Key("ES256", "k1"))
    forger = Key("ES256", "k1")
    assert holder.ask().status == 200
    realm.limit("refused", "source", BUDGET, per="1 day")
    forged = [holder.ask(holder.assertion(key=forger)).status for _ in range(BUDGET + 30)]
    assert forged[:BUDGET] == [401] * BUDGET and set(forged[BUDGET:]) == {429}
    assert [holder.ask().status for _ in range(20)] == [200] * 20
    form = {"client_assertion_type": TYPE, "client_assertion": holder.assertion(), "token": "junk"}
    answer = holder.app.post("/connect/introspect", form)
    assert (answer.status, json.loads(answer.body)) == (200, {"active": False})
