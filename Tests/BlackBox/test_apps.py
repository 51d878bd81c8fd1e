"""Apps: a host each, their clients, their switch; what a host says of itself."""

import pytest

from harness import jose, wire

NO_SUCH_CLIENT_HERE = {"error": "invalid_request", "error_description": "The client does not belong to the App of this host."}


@pytest.fixture(scope="module")
def realm(world):
    """A realm with two Apps: shop has the client app, desk has app-2; the other clients belong to none."""
    made = world.realm()
    made.shop = made.put_app("shop", ["app"], display_name="The Shop")
    made.desk = made.put_app("desk", ["app-2"], display_name="The Desk")
    return made


def app_info(realm, host):
    """GET /api/app-info of a host."""
    return realm.app_on(host).get("/api/app-info")


def test_a_sign_in_on_an_apps_host_is_one_of_the_realm(realm):
    """Request, redemption, refresh, userinfo; the issuer is the realm's, and the tokens are good on the realm's own host."""
    app = realm.app_on(realm.shop, "jwt")
    tokens = app.sign_in(realm.user())
    refreshed = app.refreshed(tokens["refresh_token"])
    assert app.userinfo(refreshed["access_token"]).status == 200
    own = realm.app("jwt")
    assert own.userinfo(refreshed["access_token"]).status == 200
    assert own.refresh(refreshed["refresh_token"]).status == 200
    assert jose.parts(tokens["access_token"])[1]["iss"] == realm.issuer


def test_an_app_host_is_known_in_any_spelling_and_its_neighbours_are_not(realm):
    """Upper case, trailing dot, port; an unlisted host below the realm's is nobody's."""
    for spelling in (realm.shop.upper(), realm.shop + ".", realm.shop + ":443"):
        assert app_info(realm, spelling).json()["DisplayName"] == "The Shop"
    for stranger in ("other." + realm.host, "x." + realm.shop):
        assert (app_info(realm, stranger).status, app_info(realm, stranger).body) == (404, b"")


@pytest.mark.parametrize("host, client, admitted", [
    ("shop", "app", True), ("shop", "app-2", False), ("shop", "api", True),
    ("desk", "app", False), ("desk", "app-2", True), ("desk", "api", True),
    (None, "app", True), (None, "app-2", True), (None, "api", True),
])
def test_a_client_of_other_apps_is_refused_on_an_apps_host(realm, host, client, admitted):
    """First-signal consistency at the token endpoint, at passkey begin and in requests for codes that name the client."""
    app = realm.app_on(f"{host}.{realm.host}" if host else realm.host, client)
    answers = [app.refresh("x"), app.begin(), app.ask(realm.new_email(), ClientId=app.client_id)]
    if admitted:
        assert [a.status for a in answers] == [400, 200, 200], answers
        assert answers[0].error == "invalid_grant"
    else:
        assert [(a.status, a.json()) for a in answers] == [(400, NO_SUCH_CLIENT_HERE)] * 3
    assert app.ask(realm.new_email()).status == 200, "nobody was named"


def test_client_authentication_and_permissions_come_before_the_app(realm):
    """Rows 3 to 5 of the order of checks."""
    app = realm.app_on(realm.shop, "app-2")
    assert app.token({"grant_type": "refresh_token", "client_id": "nobody", "refresh_token": "x"}).error == "invalid_client"
    assert app.token({"grant_type": "client_credentials", "client_id": app.client_id}).error in (
        "unauthorized_client", "unsupported_grant_type", "invalid_client",
    )
    assert app.token({"grant_type": "refresh_token", "client_id": app.client_id}).json() == NO_SUCH_CLIENT_HERE


def test_an_app_whose_native_grants_are_off_is_like_a_realm_whose_are(world):
    """On its host alone: requests, begin and redemption end, refresh goes on; discovery and app-info say so."""
    realm = world.realm()
    host = realm.put_app("shop", ["app"])
    app = realm.app_on(host)
    asked, tokens = app.request_code(realm.user()), app.sign_in(realm.user())
    realm.put_app("shop", native_grants_enabled=False)
    for answer in (app.ask(realm.user()), app.post_json("/api/account/native/register", {"Email": realm.new_email()}), app.begin()):
        assert (answer.status, answer.json().get("title")) == (400, "NativeGrants.Disabled"), answer
    assert app.redeem(asked.code, email=asked.email).error == "unsupported_grant_type"
    assert app.refresh(tokens["refresh_token"]).status == 200
    assert app_info(realm, host).json()["NativeGrants"] is False
    assert app.get("/.well-known/openid-configuration").json()["grant_types_supported"] == [
        g for g in realm.app().get("/.well-known/openid-configuration").json()["grant_types_supported"] if not g.startswith("urn:cocoar")
    ]
    assert app_info(realm, realm.host).json()["NativeGrants"] is True
    assert realm.app().redeem(asked.code, email=asked.email).status == 200, "the realm's own host is not concerned"


def test_the_realms_switch_counts_on_every_apps_host(world):
    """Off is off."""
    realm = world.realm(native=False)
    host = realm.put_app("shop", ["app"], native_grants_enabled=True)
    assert realm.app_on(host).ask(realm.user()).error == "NativeGrants.Disabled"
    assert app_info(realm, host).json()["NativeGrants"] is False


def test_discovery_of_an_apps_host_names_the_realms_issuer_and_the_apps_endpoints(realm):
    """One issuer everywhere, and every URL of the document works on the host it was read from (decision 13)."""
    document = realm.app_on(realm.shop).get("/.well-known/openid-configuration")
    metadata = document.json()
    assert metadata["issuer"] == realm.issuer
    for name, path in (
        ("token_endpoint", "/connect/token"), ("jwks_uri", "/.well-known/jwks"), ("userinfo_endpoint", "/connect/userinfo"),
        ("introspection_endpoint", "/connect/introspect"), ("revocation_endpoint", "/connect/revoke"),
    ):
        assert metadata[name] == f"https://{realm.shop}{path}"
    assert realm.app().get("/.well-known/openid-configuration").json()["token_endpoint"] == realm.issuer + "/connect/token"
    assert document.header("vary") == "Host, Origin"
    same = [realm.app_on(host).get("/.well-known/jwks").json() for host in (realm.shop, realm.host)]
    assert same[0] == same[1]


def test_app_info_tells_what_a_host_does(world):
    """Per App and for the realm's own host; every member, cacheable for seconds."""
    realm = world.realm()
    shop = realm.put_app("shop", ["app"], registration="ExplicitEndpoint")
    desk = realm.put_app("desk", ["app-2"])
    both = realm.put_app("both", ["app", "app-2"], registration="Off")
    world.admin.call("set_registration_fields", realm.slug, firstname="Required", app="shop")
    world.admin.call("set_registration_fields", realm.slug, firstname="Off", lastname="Required")
    world.settle()
    names = {"Email": "Required", "Username": "Off", "Firstname": "Off", "Lastname": "Required"}
    expected = {
        realm.host: ("Off", names, realm.host), shop: ("ExplicitEndpoint", {**names, "Firstname": "Required"}, realm.host),
        desk: ("JitOnOtp", names, realm.other_rp), both: ("Off", names, realm.host),
    }
    for host, (registration, fields, rp_id) in expected.items():
        answer = app_info(realm, host)
        document = answer.json()
        assert (document["Registration"], document["RegistrationFields"], document["RpId"]) == (registration, fields, rp_id)
        assert document["NativeGrants"] is True
        assert "max-age=5" in answer.header("cache-control") and answer.header("vary") == "Host, Origin"
    without = world.realm(primary_domain=False)
    assert app_info(without, without.host).json()["RpId"] is None
    answer = wire.exchange(world.node.port, "POST", "/api/app-info", {"Host": realm.host}, b"")
    assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")


def test_an_app_that_is_deleted_is_gone_at_once(world):
    """Its host is nobody's, its clients are free again."""
    realm = world.realm()
    shop, desk = realm.put_app("shop", ["app"]), realm.put_app("desk", ["app-2"])
    assert realm.app_on(desk).refresh("x").error == "invalid_request"
    world.admin.call("delete_app", realm.slug, "shop")
    world.settle()
    assert app_info(realm, shop).status == 404
    assert realm.app_on(desk).refresh("x").error == "invalid_grant"
