"""Where a ceremony may come from, and the files that tie apps and sites to an RP-ID."""

import secrets

import pytest

from harness import authenticator
from harness.holder import holder, signed_in
from harness.jose import b64url
from harness.postgres import SQLError

FILES = {
    "apple": "/.well-known/apple-app-site-association", "android": "/.well-known/assetlinks.json",
}


def fingerprint(digest):
    """As keytool prints it."""
    return digest.hex(":").upper()


def android(digest):
    """The origin of an Android app."""
    return "android:apk-key-hash:" + b64url(digest)


def accepted(one, origin):
    """Whether sign-in and enrolment take an origin; both must agree."""
    answer = one.app.try_passkey(one.credential, origin=origin)
    assert answer.status == 200 or answer.error == "invalid_grant", answer
    ceremony = one.app.enrolment(one.token)
    document, _ = authenticator.create(ceremony["options"], origin=origin)
    enrolled = one.app.complete(one.token, ceremony, document)
    assert enrolled.status == answer.status, f"{origin}: sign-in {answer}, enrolment {enrolled}"
    if enrolled.status == 200:
        assert one.app.delete_passkey(one.token, enrolled.json()["Id"]).status == 204
    return answer.status == 200


@pytest.fixture(scope="module")
def place(world):
    """A realm whose app has web origins and Android apps, and a sibling client that has none."""
    realm = world.realm()
    put = world.admin.call
    realm.certificates = [secrets.token_bytes(32) for _ in range(3)]
    realm.other_certificate = secrets.token_bytes(32)
    app, sibling = realm.client("app"), realm.client("jwt")
    for origin in (f"https://login.{realm.host}", f"https://{realm.host}:8443", f"https://a.b.{realm.host}:444", "https://elsewhere.example",
                   f"https://not{realm.host}", "http://localhost:3000"):
        put("put_web_origin", realm.slug, app, origin)
    put("put_android_app", realm.slug, app, "example.bb.one", [fingerprint(c) for c in realm.certificates[:2]])
    put("put_android_app", realm.slug, app, "example.bb.two", [fingerprint(realm.certificates[2]).lower()])
    put("put_android_app", realm.slug, sibling, "example.bb.sibling", [fingerprint(realm.other_certificate)])
    put("put_ios_app", realm.slug, app, "A1B2C3D4E5", "example.bb.One")
    put("put_ios_app", realm.slug, sibling, "A1B2C3D4E5", "example.bb.Sibling")
    put("put_ios_app", realm.slug, realm.client("app-2"), "Z1B2C3D4E5", "example.bb.Elsewhere")
    world.settle()
    return realm


@pytest.fixture(scope="module")
def one(place):
    """A holder there."""
    return holder(place)


def test_the_rp_id_itself_needs_no_registration(one):
    """https://<rpId>, always."""
    assert accepted(one, f"https://{one.app.host}")


@pytest.mark.parametrize("origin", ["https://login.{}", "https://{}:8443", "https://a.b.{}:444"])
def test_registered_origins_at_or_below_the_rp_id_are_accepted(one, origin):
    """Exactly as registered."""
    assert accepted(one, origin.format(one.app.host))


@pytest.mark.parametrize("origin", [
    "https://elsewhere.example", "https://not{}", "http://localhost:3000", "http://{}", "https://{}:443", "https://{}:8444",
    "https://login.{}:8443", "https://LOGIN.{}", "https://login.{}/", "https://login.{}.", "https://x.login.{}", "http://login.{}", "", "null",
    "https://login.{}#", "ios:bundle-id:example.bb.One",
])
def test_everything_else_is_refused(one, origin):
    """Registered but not below the RP-ID, or not registered, or not the same string."""
    assert not accepted(one, origin.format(one.app.host))


def test_android_apps_are_accepted_by_their_certificates(place, one):
    """Every certificate of every app of the client, however its fingerprint was written."""
    for digest in place.certificates:
        assert accepted(one, android(digest))


def test_android_origins_are_exact(place, one):
    """Other hash, padding, other alphabet, hex, case; a digest of nothing."""
    digest = place.certificates[0]
    foreign = authenticator.Foreign(android_hash=digest)
    for mutation in ("origin_android_other_hash", "origin_android_padded", "origin_android_upper"):
        assert one.app.try_passkey(one.credential, mutation, foreign=foreign).error == "invalid_grant", mutation
    for origin in (android(digest)[:-1], "android:apk-key-hash:" + digest.hex(), "android:apk-key-hash:", android(bytes(32)),
                   "android:apk-key-hash-sha256:" + b64url(digest), "android:facet-id:example.bb.one"):
        assert not accepted(one, origin)


def test_origins_belong_to_one_client(place, one):
    """The sibling shares the RP-ID and the passkeys, not the origins."""
    sibling = place.app("jwt")
    for origin in (f"https://login.{place.host}", android(place.certificates[0])):
        assert sibling.try_passkey(one.credential, origin=origin).error == "invalid_grant"
    assert not accepted(one, android(place.other_certificate))
    assert sibling.try_passkey(one.credential, origin=android(place.other_certificate)).status == 200
    assert sibling.try_passkey(one.credential).status == 200


def test_http_is_for_localhost_only(world):
    """A client whose RP-ID is localhost."""
    realm = world.realm()
    realm.put_client("app", rp_id="localhost")
    world.admin.call("put_web_origin", realm.slug, realm.client("app"), "http://localhost:3000")
    world.settle()
    there = holder(realm)
    assert accepted(there, "http://localhost:3000")
    assert accepted(there, "https://localhost")
    for origin in ("http://localhost", "http://localhost:3001", "https://localhost:3000", "http://127.0.0.1:3000", f"https://{realm.host}"):
        assert not accepted(there, origin)


def test_http_is_for_names_below_localhost_too(world):
    """A client whose RP-ID is such a name; each port is an origin of its own."""
    realm = world.realm()
    realm.put_client("app", rp_id="app.localhost")
    for origin in ("http://app.localhost:8080", "http://localhost:8080"):
        world.admin.call("put_web_origin", realm.slug, realm.client("app"), origin)
    world.settle()
    there = holder(realm)
    assert accepted(there, "http://app.localhost:8080")
    assert accepted(there, "https://app.localhost")
    for origin in ("http://localhost:8080", "https://app.localhost:8080", "http://app.localhost", "http://app.localhost:8081",
                   "http://x.app.localhost:8080", "http://app.localhost.example:8080"):
        assert not accepted(there, origin)
    assert accepted(there, "http://app.localhost:8080")


def test_an_origin_works_within_a_second_and_no_longer_than_it_is_registered(world):
    """No cache older than 1 s."""
    realm = world.realm()
    there, digest = holder(realm), secrets.token_bytes(32)
    assert not accepted(there, android(digest))
    world.admin.call("put_android_app", realm.slug, realm.client("app"), "example.bb.app", [fingerprint(digest)])
    world.settle()
    assert accepted(there, android(digest))
    world.admin.call("put_android_app", realm.slug, realm.client("app"), "example.bb.app", [fingerprint(secrets.token_bytes(32))])
    world.settle()
    assert not accepted(there, android(digest)), "the list was replaced"


@pytest.mark.parametrize("given,word", [
    (bytes(range(32)).hex(), "00:01:02"), (b64url(bytes(range(32))), "00:01:02"), (android(bytes(range(32))), "00:01:02"),
    (bytes(range(20)).hex(":"), "SHA-256"), ("14:6D", "keytool"), ("", "keytool"),
])
def test_a_fingerprint_of_another_kind_is_refused_with_help(world, place, given, word):
    """Issue 3: base64 and hex mix-ups; the hint shows what was meant."""
    with pytest.raises(SQLError) as refused:
        world.admin.call("put_android_app", place.slug, place.client("app"), "example.bb.bad", [given])
    assert "sha256_cert_fingerprints" in str(refused.value) and "HINT" in str(refused.value) and word in str(refused.value)


@pytest.mark.parametrize("origin", [
    "http://example.com", "http://app.localhost.example", "http://xlocalhost", "http://app.localhost.", "https://example.com/", "https://EXAMPLE.com", "https://example.com/path", "example.com", "https://*.example.com",
    "https://user@example.com", "https://example.com:0", "https://example.com:70000", "android:apk-key-hash:x", "null", "",
])
def test_a_web_origin_that_is_none_is_refused_with_help(world, place, origin):
    """The message names the argument, the hint what is allowed."""
    with pytest.raises(SQLError) as refused:
        world.admin.call("put_web_origin", place.slug, place.client("app"), origin)
    assert "origin" in str(refused.value) and "HINT" in str(refused.value)


# -- association files --------------------------------------------------------------------------------


def test_the_files_name_the_apps_of_the_rp_id(place):
    """All clients of this RP-ID, nothing of those with another."""
    app = place.app()
    for path in FILES.values():
        answer = app.get(path)
        assert answer.status == 200, answer
        assert answer.header("content-type").startswith("application/json"), answer
        assert "max-age" in answer.header("cache-control") and "no-store" not in answer.header("cache-control"), answer
    apple = app.get(FILES["apple"]).json()
    assert set(apple) == {"applinks", "webcredentials"}
    assert sorted(apple["webcredentials"]["apps"]) == ["A1B2C3D4E5.example.bb.One", "A1B2C3D4E5.example.bb.Sibling"]
    links = app.get(FILES["android"]).json()
    assert {link["target"]["package_name"] for link in links} == {"example.bb.one", "example.bb.two", "example.bb.sibling"}
    for link in links:
        assert "delegate_permission/common.get_login_creds" in link["relation"]
        assert link["target"]["namespace"] == "android_app"
    (first,) = [link["target"] for link in links if link["target"]["package_name"] == "example.bb.one"]
    assert sorted(first["sha256_cert_fingerprints"]) == sorted(fingerprint(c) for c in place.certificates[:2])


def test_there_are_no_files_where_nothing_is_registered(world, place):
    """404 with an empty body: another realm, an unknown host."""
    elsewhere = world.realm()
    for host in (elsewhere.host, "nobody.example"):
        app = place.app()
        app.host = host
        for path in FILES.values():
            answer = app.get(path)
            assert (answer.status, answer.body) == (404, b""), f"{host} {path}: {answer}"


def test_no_origin_is_listed_that_the_verifier_refuses(place):
    """Related origins are not accepted, so there is no file that lists any."""
    answer = place.app().get("/.well-known/webauthn")
    assert (answer.status, answer.body) == (404, b""), answer


def test_links_of_the_realm_belong_to_its_apps_on_every_host(world, place):
    """applinks and handle_all_urls for /magic-login, whatever the RP-ID; credentials only where the host is the RP-ID."""
    api = f"api.{place.host}"
    world.admin.call("put_realm", place.slug, domains=[place.host, api])
    shop = place.put_app("shop", ["app"])
    app = place.app()
    for host, passkeys in ((place.host, True), (api, False), (shop, False)):
        app.host = host
        apple, links = app.get(FILES["apple"]).json(), app.get(FILES["android"]).json()
        (detail,) = apple["applinks"]["details"]
        assert detail["components"] == [{"/": "/magic-login"}]
        assert "A1B2C3D4E5.example.bb.One" in detail["appIDs"]
        # The client of another RP-ID signs in by links of this realm too.
        assert ("Z1B2C3D4E5.example.bb.Elsewhere" in detail["appIDs"]) and detail["appIDs"] == sorted(set(detail["appIDs"]))
        assert ("webcredentials" in apple) == passkeys
        relations = {link["target"]["package_name"]: link["relation"] for link in links}
        assert all("delegate_permission/common.handle_all_urls" in relation for relation in relations.values())
        assert ("delegate_permission/common.get_login_creds" in relations["example.bb.one"]) == passkeys
    world.admin.call("delete_app", place.slug, "shop")
    world.settle()


def test_the_host_of_an_app_names_its_own_apps(world):
    """A client of another App cannot be used there, and opens no links there; on the realm's host it does."""
    realm = world.realm()
    for name, bundle in (("app", "example.bb.Shop"), ("app-2", "example.bb.Bank")):
        world.admin.call("put_ios_app", realm.slug, realm.client(name), "A1B2C3D4E5", bundle)
    shop, _ = realm.put_app("shop", ["app"]), realm.put_app("bank", ["app-2"])
    def apps(host):
        return realm.app_on(host).get(FILES["apple"]).json()["applinks"]["details"][0]["appIDs"]
    assert apps(shop) == ["A1B2C3D4E5.example.bb.Shop"]
    assert apps(realm.host) == ["A1B2C3D4E5.example.bb.Bank", "A1B2C3D4E5.example.bb.Shop"]


def test_a_client_without_links_opens_none(world):
    """Without gt:urn:cocoar:magic an app could not redeem what it opened."""
    realm = world.realm()
    client = realm.put_client("keys-only", "gt:urn:cocoar:passkey").client_id
    world.admin.call("put_ios_app", realm.slug, client, "A1B2C3D4E5", "example.bb.Keys")
    world.settle()
    assert realm.app().get(FILES["apple"]).json() == {"webcredentials": {"apps": ["A1B2C3D4E5.example.bb.Keys"]}}


def test_a_client_without_passkeys_uses_none(world):
    """Neither one without the permission nor a disabled one, which opens no links either."""
    realm = world.realm()
    for name, bundle in (("no-passkey", "example.bb.Never"), ("disabled", "example.bb.Off"), ("app", "example.bb.App")):
        world.admin.call("put_ios_app", realm.slug, realm.client(name), "A1B2C3D4E5", bundle)
    realm.put_client("disabled", enabled=False)
    world.settle()
    apple = realm.app().get(FILES["apple"]).json()
    assert apple["webcredentials"] == {"apps": ["A1B2C3D4E5.example.bb.App"]}
    assert apple["applinks"]["details"][0]["appIDs"] == ["A1B2C3D4E5.example.bb.App", "A1B2C3D4E5.example.bb.Never"]


def test_an_rp_id_elsewhere_is_served_where_it_is_a_host(world):
    """A client whose RP-ID is another host of the realm: the files are there, and passkeys of both work side by side."""
    realm = world.realm()
    login = f"login.{realm.host}"
    world.admin.call("put_realm", realm.slug, domains=[realm.host, login])
    realm.put_client("app-2", rp_id=login)
    world.admin.call("put_ios_app", realm.slug, realm.client("app-2"), "A1B2C3D4E5", "example.bb.Two")
    world.settle()
    app = realm.app("app-2")
    app.host = login
    assert app.get(FILES["apple"]).json()["webcredentials"] == {"apps": ["A1B2C3D4E5.example.bb.Two"]}
    assert "webcredentials" not in realm.app().get(FILES["apple"]).json()
    two = holder(realm, "app-2")
    two.app.passkey_sign_in(two.credential)
    assert signed_in(realm, "app", two.email).app.try_passkey(two.credential).error == "invalid_grant"
