"""The job Postern exists for, end to end: code by mail, tokens, userinfo, refresh, introspection, revocation."""

import pytest

from harness.app import FULL_SCOPE
from harness.jose import parts, verify_es256
from harness.realm import OTP


def jwks(app):
    """The realm's published keys."""
    answer = app.get("/.well-known/jwks")
    assert answer.status == 200, answer
    return answer.json()


def test_a_code_from_the_mail_becomes_tokens_that_live_until_they_are_revoked(app, api, email):
    """The whole story of one sign-in, each step seen by the caller and by introspection."""
    asked = app.request_code(email)
    answer = app.redeem(asked.code, email=email)
    assert answer.status == 200, answer
    assert "no-store" in answer.header("cache-control")
    assert answer.header("pragma") == "no-cache"
    tokens = answer.json()
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 900
    assert set(tokens["scope"].split()) == set(FULL_SCOPE.split())

    profile = app.userinfo(tokens["access_token"])
    assert profile.status == 200, profile
    assert profile.json()["email"] == email
    subject = profile.json()["sub"]
    assert email not in subject

    seen = api.introspect(tokens["access_token"]).json()
    assert seen["active"] is True
    assert (seen["sub"], seen["client_id"]) == (subject, app.client_id)

    second = app.refreshed(tokens["refresh_token"])
    assert second["refresh_token"] != tokens["refresh_token"]
    assert second["access_token"] != tokens["access_token"]
    assert second["expires_in"] == 900, "the native lifetime holds on refreshed tokens too"
    assert api.active(second["access_token"])
    assert parts(second["id_token"])[1]["sub"] == subject

    assert app.revoke(second["refresh_token"]).status == 200
    assert not api.active(second["access_token"])
    assert not api.active(tokens["access_token"])
    assert app.userinfo(second["access_token"]).status == 401
    assert app.refresh(second["refresh_token"]).error == "invalid_grant"


def test_a_code_redeems_by_the_handle_alone(app, email):
    """auth_session stands for the address."""
    asked = app.request_code(email)
    answer = app.redeem(asked.code, handle=asked.handle)
    assert answer.status == 200, answer
    assert app.userinfo(answer.json()["access_token"]).json()["email"] == email


def test_the_mail_names_the_realm_and_carries_text_and_html(app, realm, email):
    """One recipient, both parts, the realm's display name, the code once in each."""
    asked = app.request_code(email)
    (mail,) = realm.world.mailbox.to(email)
    assert mail.recipients == [email]
    html = mail.message.get_body(("html",)).get_content()
    for part in (mail.text, html):
        assert f"Realm {realm.slug}" in part
        assert asked.code in part


def test_without_scope_nothing_is_granted(app, email):
    """scope is always in the answer; no refresh_token and no id_token come without their scopes."""
    tokens = app.sign_in(email, scope=None)
    assert tokens["scope"] == ""
    assert "refresh_token" not in tokens and "id_token" not in tokens


def test_the_audience_is_the_resource_of_the_granted_scope(realm, email):
    """aud follows the scopes, and is the client_id when no scope has a resource."""
    app = realm.app("jwt")
    payload = parts(app.sign_in(email, scope=f"openid {realm.granted_scope}")["access_token"])[1]
    assert payload["aud"] in (realm.granted_resource, [realm.granted_resource])
    payload = parts(app.sign_in(email, scope="openid")["access_token"])[1]
    assert payload["aud"] in (app.client_id, [app.client_id])


def test_a_jwt_client_gets_an_access_token_that_verifies(realm, api, email):
    """RFC 9068: at+jwt, signed by a published key, introspectable, accepted at userinfo, dead on revocation of nothing else."""
    app = realm.app("jwt")
    tokens = app.sign_in(email)
    header, payload = verify_es256(tokens["access_token"], jwks(app))
    assert header["typ"].lower() == "at+jwt"
    assert payload["iss"] == realm.issuer
    assert payload["client_id"] == app.client_id
    assert payload["exp"] - payload["iat"] == tokens["expires_in"] == 900
    assert set(payload["scope"].split()) == set(FULL_SCOPE.split())
    assert payload["realm"] == realm.slug
    assert payload["jti"] and payload["sid"] and payload["auth_time"]
    assert api.active(tokens["access_token"])
    assert app.userinfo(tokens["access_token"]).json()["sub"] == payload["sub"]


def test_the_id_token_verifies_and_says_how_the_user_signed_in(app, realm, email):
    """aud is the client, iss the realm, amr otp, auth_time and sid present."""
    tokens = app.sign_in(email)
    header, payload = verify_es256(tokens["id_token"], jwks(app))
    assert header["kid"]
    assert payload["iss"] == realm.issuer
    assert payload["aud"] in (app.client_id, [app.client_id])
    assert payload["amr"] == ["otp"]
    assert payload["realm"] == realm.slug
    assert abs(payload["auth_time"] - payload["iat"]) <= 5
    again = parts(app.refreshed(tokens["refresh_token"])["id_token"])[1]
    assert again["sid"] == payload["sid"]
    assert again["auth_time"] == payload["auth_time"]


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"])
def test_discovery_speaks_for_its_own_realm(world, path):
    """Issuer and endpoints of the realm of the host; native grants only while the realm has them on."""
    here, off = world.realm(), world.realm(native=False)
    answer = here.app().get(path)
    assert answer.status == 200, answer
    document = answer.json()
    assert document["issuer"] == here.issuer
    for name in ("token_endpoint", "userinfo_endpoint", "introspection_endpoint", "revocation_endpoint", "jwks_uri"):
        assert document[name].startswith(here.issuer + "/"), name
    assert {OTP, "refresh_token"} <= set(document["grant_types_supported"])
    assert "none" in document["token_endpoint_auth_methods_supported"]

    document = off.app().get(path).json()
    assert document["issuer"] == off.issuer
    assert not [g for g in document["grant_types_supported"] if g.startswith("urn:cocoar:")]

    off.native(enabled=True)
    assert OTP in off.app().get(path).json()["grant_types_supported"]


def test_each_realm_publishes_its_own_keys(world, realm):
    """No key of one realm in another's JWKS, and no private member in any."""
    other = world.realm()
    for place in (realm, other):
        place.app().sign_in(place.user())
    ours, theirs = (jwks(place.app())["keys"] for place in (realm, other))
    assert not {key["kid"] for key in ours} & {key["kid"] for key in theirs}
    for key in [*ours, *theirs]:
        assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & set(key)


def test_an_unknown_host_is_an_empty_404(app):
    """There is no default tenant."""
    app.host = "nobody.bb.example"
    answer = app.get("/.well-known/openid-configuration")
    assert (answer.status, answer.body) == (404, b"")


@pytest.mark.parametrize("spelling", ["{}.", "{}:8443", "{}.:443"])
def test_the_host_is_canonical_before_it_is_matched(app, realm, spelling):
    """Case, port and trailing dot do not matter."""
    app.host = spelling.format(realm.host.upper())
    assert app.get("/.well-known/openid-configuration").json()["issuer"] == realm.issuer


def test_the_same_address_and_code_mean_nothing_in_another_realm(world, realm):
    """Two users, two codes; one realm's secrets are unknown in the other."""
    other = world.realm()
    email = realm.user()
    other.put_user(email)
    asked = other.app().request_code(email)
    assert realm.app().redeem(asked.code, email=email).error == "invalid_grant"
    assert realm.app().redeem(asked.code, handle=asked.handle).error == "invalid_grant"
    tokens = other.app().redeem(asked.code, email=email).json()
    assert realm.app().refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert realm.app().userinfo(tokens["access_token"]).status == 401
    assert not realm.app("api").active(tokens["access_token"])
    assert other.app("api").active(tokens["access_token"])


def test_introspection_without_the_permission_sees_only_its_own_tokens(realm, email):
    """ept:introspection means any token of the realm; without it a foreign token is inactive."""
    foreign = realm.app().sign_in(email)["access_token"]
    without = realm.app("other-api")
    assert without.introspect(foreign).json() == {"active": False}
    own = without.sign_in(email)["access_token"]
    assert without.active(own)


def test_a_public_client_may_not_introspect(app, email):
    """401, and nothing about the token."""
    token = app.sign_in(email)["access_token"]
    answer = app.post("/connect/introspect", {"token": token, "client_id": app.client_id})
    assert answer.status == 401
    assert answer.error == "invalid_client"


def test_revoking_an_unknown_or_foreign_token_is_200_without_effect(realm, api, email):
    """RFC 7009: no oracle, no harm."""
    tokens = realm.app().sign_in(email)
    stranger = realm.app("app-2")
    for token in ("no-such-token", tokens["access_token"], tokens["refresh_token"]):
        assert stranger.revoke(token).status == 200
    assert api.active(tokens["access_token"])
    assert realm.app().refresh(tokens["refresh_token"]).status == 200


def test_revoking_an_access_token_ends_only_that_token(app, api, email):
    """The family lives on."""
    tokens = app.sign_in(email)
    for _ in range(2):
        assert app.revoke(tokens["access_token"]).status == 200
        assert not api.active(tokens["access_token"])
    assert api.active(app.refreshed(tokens["refresh_token"])["access_token"])


@pytest.mark.parametrize("event", ["disabled", "deleted", "signed out everywhere"])
def test_the_security_stamp_ends_tokens_at_once(realm, api, email, event):
    """Reference access tokens die at once, the next refresh fails."""
    app, admin = realm.app(), realm.world.admin
    tokens = app.sign_in(email)
    if event == "disabled":
        admin.call("set_user_enabled", realm.slug, email, False)
    elif event == "deleted":
        admin.call("delete_user", realm.slug, email)
    else:
        admin.call("sign_out_everywhere", realm.slug, email)
    assert not api.active(tokens["access_token"])
    assert app.userinfo(tokens["access_token"]).status == 401
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"


def test_expiry_is_as_documented(app, api, email, realm):
    """Reference access tokens live 15 minutes, refresh tokens 14 days, each to the second."""
    watch = realm.world.stopwatch()
    tokens = app.sign_in(email)
    watch.reach(840)
    assert api.active(tokens["access_token"])
    watch.reach(960)
    assert api.introspect(tokens["access_token"]).json() == {"active": False}
    watch.reach(14 * 86400 - 60)
    tokens = app.refreshed(tokens["refresh_token"])
    realm.world.time_travel(14 * 86400 + 10)
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"


def test_a_family_ends_absolutely_however_often_it_was_refreshed(world):
    """session_lifetime counts from the sign-in."""
    realm = world.realm()
    realm.native(session_lifetime="1 day")
    app = realm.app()
    watch = world.stopwatch()
    tokens = app.sign_in(realm.user())
    for hours in (8, 16, 23):
        watch.reach(hours * 3600)
        tokens = app.refreshed(tokens["refresh_token"])
    watch.reach(24 * 3600 + 60)
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"


def test_a_narrower_scope_holds_for_the_access_token_only(app, email):
    """The family keeps its scope; a wider one is invalid_scope."""
    tokens = app.sign_in(email)
    narrowed = app.refreshed(tokens["refresh_token"], scope="profile")
    assert narrowed["scope"] == "profile" and "id_token" not in narrowed
    full = app.refreshed(narrowed["refresh_token"])
    assert set(full["scope"].split()) == set(FULL_SCOPE.split())
    small = app.sign_in(email, scope="offline_access")
    answer = app.refresh(small["refresh_token"], scope="offline_access profile")
    assert (answer.status, answer.error) == (400, "invalid_scope")
    assert app.refresh(small["refresh_token"]).status == 200


def test_refresh_goes_on_after_native_grants_are_switched_off(world):
    """The realm flag stops new sign-ins, not sessions that exist."""
    realm = world.realm()
    app, email = realm.app(), realm.user()
    tokens = app.sign_in(email)
    realm.native(enabled=False)
    assert app.ask(email).status == 400
    assert app.refresh(tokens["refresh_token"]).status == 200
