"""client_credentials: clients that act for themselves (RFC 6749 4.4)."""

import uuid

import pytest

from harness import jose, wire
from harness.app import bearer
from harness.postgres import SQLError
from harness.realm import call
from harness.service import ask, granted, service


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes of one database."""
    second = world.start_node()
    yield world.node, second
    second.stop()


@pytest.fixture(scope="module")
def robot(realm):
    """A service with reference tokens, and its account."""
    return service(realm, "robot", realm.granted_scope, "profile")


@pytest.fixture(scope="module")
def jwt_robot(realm):
    """The same with JWT access tokens."""
    return service(realm, "jwt-robot", realm.granted_scope, access_token_type="jwt")


def jwks(app):
    """The published keys."""
    return app.get("/.well-known/jwks").json()


def test_a_reference_token_of_a_service(realm, robot, nodes):
    """The answer has no user's tokens; introspection in both processes says whose it is."""
    app, account = robot
    tokens = granted(app, scope=realm.granted_scope)
    assert set(tokens) == {"access_token", "token_type", "expires_in", "scope"}
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 900, realm.granted_scope)
    assert tokens["access_token"].startswith("psa_")
    for node in nodes:
        seen = realm.app("api", node).introspect(tokens["access_token"]).json()
        assert seen.pop("exp") - seen.pop("iat") == 900 and seen.pop("jti")
        assert seen == {
            "active": True, "client_id": app.client_id, "sub": account, "scope": realm.granted_scope, "aud": realm.granted_resource,
            "token_type": "Bearer", "iss": realm.issuer, "realm": realm.slug,
        }


def test_a_jwt_of_a_service(realm, jwt_robot, api):
    """RFC 9068: verifies against the JWKS; sub is the account; nothing says how a user signed in."""
    app, account = jwt_robot
    tokens = granted(app, scope=realm.granted_scope)
    header, claims = jose.verify_es256(tokens["access_token"], jwks(app))
    assert header["typ"] == "at+jwt"
    assert claims.pop("exp") - claims.pop("iat") == 900 and claims.pop("jti")
    assert claims == {
        "iss": realm.issuer, "sub": account, "client_id": app.client_id, "aud": realm.granted_resource, "scope": realm.granted_scope,
        "realm": realm.slug,
    }
    assert api.introspect(tokens["access_token"]).json()["sub"] == account


def test_without_scope_nothing_is_granted_and_the_client_is_the_audience(robot, api):
    """Absent is none, and so is empty."""
    app, _ = robot
    for parameters in ({}, {"scope": ""}):
        tokens = granted(app, **parameters)
        assert tokens["scope"] == ""
        assert api.introspect(tokens["access_token"]).json()["aud"] == app.client_id


def test_resource_narrows_as_for_users(realm, robot, api):
    """RFC 8707."""
    app, _ = robot
    tokens = granted(app, scope=f"{realm.granted_scope} profile", resource=realm.granted_resource)
    assert api.introspect(tokens["access_token"]).json()["aud"] == realm.granted_resource
    for refused in (
        ask(app, scope="profile", resource=realm.granted_resource), ask(app, scope=realm.granted_scope, resource=realm.forbidden_resource),
    ):
        assert (refused.status, refused.error) == (400, "invalid_target"), refused


@pytest.mark.parametrize("scope,error", [
    ("openid", "invalid_scope"), ("orders.read openid", "invalid_scope"), ("offline_access", "invalid_request"),
    ("email", "invalid_request"), ("forbidden.read", "invalid_request"), ("switched.off", "invalid_scope"), ("nothing", "invalid_scope"),
])
def test_scopes_that_a_service_cannot_have(robot, scope, error):
    """openid asks for a user; offline_access needs gt:refresh_token, which a service never has."""
    answer = ask(robot[0], scope=scope)
    assert (answer.status, answer.error) == (400, error), answer


def test_who_may_not(realm, robot):
    """A login client has no such permission, a public one no secret, a service no user grant."""
    for name in ("api", "app"):
        answer = ask(realm.app(name))
        assert (answer.status, answer.error) == (400, "unauthorized_client"), answer
    app, _ = robot
    anonymous = app.token({"grant_type": "client_credentials", "client_id": app.client_id})
    assert (anonymous.status, anonymous.error) == (401, "invalid_client")
    for form in (
        app.redeem_form("123456", email=realm.user(), scope=None),
        {"grant_type": "refresh_token", **app.credentials(), "refresh_token": "prt_x"},
    ):
        answer = app.token(form)
        assert (answer.status, answer.error) == (400, "unauthorized_client"), answer


def test_sql_keeps_services_and_sign_ins_apart(world, realm, robot):
    """A client signs in users or acts for itself, never both; the account stays as long as the permission."""
    client = robot[0].client_id
    for statement, text in (
        (call("grant_permission", realm.slug, client, variadic=["gt:refresh_token"]), "excludes"),
        (call("grant_permission", realm.slug, realm.client("api"), variadic=["gt:client_credentials"]), "excludes"),
        (call("put_client", realm.slug, client, client_type="public"), "gt:client_credentials"),
        (call("put_service_account", realm.slug, "robot-account", realm.client("api")), "belongs to a client"),
    ):
        with pytest.raises(SQLError, match=text):
            world.admin.run(statement)


def test_native_grants_do_not_concern_it(world):
    """A standard grant, listed in discovery either way."""
    realm = world.realm(native=False)
    app, _ = service(realm, "robot")
    granted(app)
    assert realm.app().get("/.well-known/openid-configuration").json()["grant_types_supported"] == ["client_credentials", "refresh_token"]


def test_a_service_is_nobody_at_the_users_endpoints(realm, robot, jwt_robot):
    """403 insufficient_scope: the token is good, but no user stands behind it. One that was made for an API is not good there."""
    for app, _ in (robot, jwt_robot):
        foreign = granted(app, scope=realm.granted_scope)["access_token"]
        answer = wire.exchange(app.node.port, "GET", "/connect/sessions", {"Host": app.host, **bearer(foreign)})
        assert answer.status == 401 and 'error="invalid_token"' in answer.header("www-authenticate"), answer
        token = granted(app)["access_token"]
        for method, path in (
            ("GET", "/connect/userinfo"), ("POST", "/connect/userinfo"), ("GET", "/connect/sessions"),
            ("DELETE", f"/connect/sessions/{uuid.uuid4()}"), ("GET", "/connect/passkey"), ("POST", "/connect/passkey/enroll/begin"),
        ):
            answer = wire.exchange(app.node.port, method, path, {"Host": app.host, **bearer(token)})
            assert answer.status == 403, answer
            assert 'error="insufficient_scope"' in answer.header("www-authenticate")


@pytest.mark.parametrize("kind", ["robot", "jwt-robot"])
def test_revocation_ends_one_token_in_every_process(realm, robot, jwt_robot, nodes, kind):
    """RFC 7009: 200; the other token lives; a foreign client's revocation has no effect; twice is 200."""
    app, _ = {"robot": robot, "jwt-robot": jwt_robot}[kind]
    kept, lost = granted(app)["access_token"], granted(app)["access_token"]
    assert realm.app("other-api").revoke(lost).status == 200
    assert all(realm.app("api", node).active(lost) for node in nodes)
    assert app.revoke(lost).status == 200
    for node in nodes:
        assert not realm.app("api", node).active(lost)
        assert realm.app("api", node).active(kept)
    assert app.revoke(lost).status == 200


def test_own_tokens_are_seen_without_permission_and_foreign_ones_are_not(realm, robot):
    """RFC 7662 as for users' tokens."""
    app, account = robot
    token = granted(app)["access_token"]
    assert app.introspect(token).json()["sub"] == account
    assert realm.app("other-api").introspect(token).json() == {"active": False}


@pytest.mark.parametrize("how", ["disable", "revoke_permission", "move_account", "delete"])
def test_tokens_die_at_once_with_the_clients_right(world, realm, nodes, how):
    """And do not come back to life with it."""
    name = how.replace("_", "-")
    app, _ = service(realm, name)
    token = granted(app)["access_token"]
    apis = [realm.app("api", node) for node in nodes]
    assert all(api.active(token) for api in apis)
    client = app.client_id
    if how == "disable":
        world.admin.call("put_client", realm.slug, client, enabled=False)
    elif how == "revoke_permission":
        world.admin.run(call("revoke_permission", realm.slug, client, variadic=["gt:client_credentials"]))
    elif how == "delete":
        world.admin.call("delete_client", realm.slug, client)
    else:
        world.admin.run(call("revoke_permission", realm.slug, client, variadic=["gt:client_credentials"]))
        world.admin.run(call("put_client", realm.slug, client + "-2", client_type="confidential"))
        world.admin.run(call("put_service_account", realm.slug, f"{name}-account", client + "-2"))
        world.admin.run(call("grant_permission", realm.slug, client + "-2", variadic=["gt:client_credentials"]))
    assert not any(api.active(token) for api in apis)
    if how == "disable":
        world.admin.call("put_client", realm.slug, client, enabled=True)
        world.settle()
        assert not any(api.active(token) for api in apis)
        assert all(api.active(granted(app)["access_token"]) for api in apis)


@pytest.mark.parametrize("how", ["disable", "permission"])
def test_a_jwt_made_before_its_client_was_stopped_stays_dead(world, realm, nodes, how):
    """A JWT has no salt in it: its time tells. One made at once after the start is alive."""
    app, _ = service(realm, f"jwt-{how}", access_token_type="jwt")
    token = granted(app)["access_token"]
    apis = [realm.app("api", node) for node in nodes]
    assert all(api.active(token) for api in apis)
    stop, start = {
        "disable": (call("put_client", realm.slug, app.client_id, enabled=False), call("put_client", realm.slug, app.client_id, enabled=True)),
        "permission": (
            call("revoke_permission", realm.slug, app.client_id, variadic=["gt:client_credentials"]),
            call("grant_permission", realm.slug, app.client_id, variadic=["gt:client_credentials"]),
        ),
    }[how]
    world.admin.run(stop)
    assert not any(api.active(token) for api in apis)
    world.admin.run(start)
    world.settle()
    assert not any(api.active(token) for api in apis)
    assert all(api.active(granted(app)["access_token"]) for api in apis)


def test_a_client_that_is_stopped_and_started_at_once_loses_its_tokens_too(world, realm, api):
    """Within one second, and in one transaction: tokens of that second are told apart."""
    app, _ = service(realm, "jwt-blink", access_token_type="jwt")
    before = granted(app)["access_token"]
    world.admin.run(
        call("put_client", realm.slug, app.client_id, enabled=False), call("put_client", realm.slug, app.client_id, enabled=True))
    after = granted(app)["access_token"]
    assert not api.active(before)
    assert api.active(after)


def test_a_token_ends_with_its_lifetime(world, realm):
    """By the database clock."""
    app, _ = service(realm, "brief", access_token_lifetime="10 minutes")
    tokens = granted(app)
    assert tokens["expires_in"] == 600
    api = realm.app("api")
    world.time_travel(540)
    assert api.active(tokens["access_token"])
    world.time_travel(61)
    assert api.introspect(tokens["access_token"]).json() == {"active": False}


def test_use_is_audited_once_an_hour(world, realm):
    """Not once a token."""
    app, account = service(realm, "audited")
    query = (
        f"SELECT count(*), min(source) FROM admin.audit_log WHERE realm = '{realm.slug}' AND event = 'service_account_used'"
        f" AND detail ->> 'service_account' = '{account}';"
    )
    for _ in range(5):
        granted(app)
    assert world.admin.run(query) == [["1", "127.0.0.1"]]
    world.time_travel(3601)
    for _ in range(3):
        granted(app)
    assert world.admin.run(query)[0][0] == "2"
    assert world.admin.run(f"SELECT name, last_audited_at > now() - interval '1 minute' FROM admin.service_accounts WHERE id = '{account}';") == [
        ["audited-account", "t"]
    ]


def test_requests_are_limited_by_source(world):
    """Policy token, dimension source: the sixth is too many."""
    realm = world.realm("tight")
    app, _ = service(realm, "robot")
    realm.limit("token", "source", 5)
    assert [ask(app).status for _ in range(5)] == [200] * 5
    answer = ask(app)
    assert (answer.status, answer.json()["error"], answer.json()["dimension"]) == (429, "rate_limited", "source")


@pytest.mark.parametrize("change", ["flip", "cut", "case", "prefix", "other-realm"])
def test_a_changed_token_is_nobodys(world, realm, robot, api, change):
    token = granted(robot[0])["access_token"]
    middle = len(token) // 2
    changed = {
        "flip": token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1:], "cut": token[:-1], "case": token.swapcase(),
        "prefix": "pat_" + token[4:], "other-realm": token,
    }[change]
    asking = world.realm().app("api") if change == "other-realm" else api
    assert asking.introspect(changed).json() == {"active": False}
