"""Signing keys follow one another without anybody noticing."""

import base64
import hashlib
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import jose
from harness.node import run_postern
from harness.postgres import SQLError
from harness.service import service

ALGORITHMS = ["ES256", "RS256", "EdDSA"]
OVERLAP, AFTERLIFE = 600, 3900


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes of one database."""
    second = world.start_node()
    yield world.node, second
    second.stop()


def rotate(world, realm, *arguments):
    """`postern keys rotate`."""
    return run_postern("keys", "rotate", "--realm", realm.slug, *arguments, environment={
        "POSTERN_DATABASE_URL": world.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(world.key_file),
    })


def rotated(world, realm, *arguments):
    """The same, to a good end."""
    done = rotate(world, realm, *arguments)
    assert done.returncode == 0, done.stderr
    world.settle()


def jwks(app):
    """The published keys; none has a private member."""
    found = app.get("/.well-known/jwks").json()
    assert all(not set(key) & {"d", "p", "q", "dp", "dq", "qi", "k"} for key in found["keys"])
    assert len({key["kid"] for key in found["keys"]}) == len(found["keys"])
    return found


def states(world, realm):
    """State by kid."""
    return dict(world.admin.run(f"SELECT kid, state FROM admin.signing_keys WHERE realm = '{realm.slug}';"))


def travel(world, realm, seconds):
    """Lets time pass, and the servers read the keys again (time travel changes rows behind their backs)."""
    world.time_travel(seconds)
    world.admin.call("put_realm", realm.slug, display_name=f"Realm {realm.slug} {time.time_ns()}")
    world.settle()


def signed(app, email):
    """A sign-in at a JWT client: tokens, and the headers of both after verification."""
    tokens = app.sign_in(email)
    keys = jwks(app)
    access, identity = jose.verify(tokens["access_token"], keys)[0], jose.verify(tokens["id_token"], keys)
    digest = {"EdDSA": hashlib.sha512}.get(identity[0]["alg"], hashlib.sha256)(tokens["access_token"].encode()).digest()
    assert identity[1]["at_hash"] == base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=").decode()
    assert access["kid"] == identity[0]["kid"]
    return tokens, access


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_a_rotation_from_beginning_to_end(world, nodes, alg):
    """Published before use, signing after the overlap, the old one there until its last token has expired, then gone."""
    realm = world.realm("keys")
    app, email = realm.app("jwt"), realm.user()
    before, old = signed(app, email)
    assert old["alg"] == "ES256"

    rotated(world, realm, "--alg", alg)
    published = jwks(app)
    assert [key["alg"] for key in published["keys"] if key["kid"] != old["kid"]] == [alg]
    new = next(key["kid"] for key in published["keys"] if key["kid"] != old["kid"])
    assert states(world, realm) == {old["kid"]: "active", new: "published"}
    assert app.get("/.well-known/jwks").header("cache-control") == "public, max-age=300"
    discovered = app.get("/.well-known/openid-configuration").json()["id_token_signing_alg_values_supported"]
    assert discovered == sorted({"ES256", alg})
    assert signed(app, email)[1]["kid"] == old["kid"]

    travel(world, realm, OVERLAP - 20)
    assert signed(app, email)[1]["kid"] == old["kid"]
    travel(world, realm, 25)
    for node in nodes:
        during, header = signed(realm.app("jwt", node), email)
        assert (header["kid"], header["alg"]) == (new, alg)
    assert states(world, realm) == {old["kid"]: "retiring", new: "active"}
    jose.verify(before["access_token"], jwks(app))
    assert all(app.userinfo(tokens["access_token"]).status == 200 for tokens in (before, during))
    refreshed = app.refreshed(before["refresh_token"])
    assert jose.verify(refreshed["access_token"], jwks(app))[0]["kid"] == new

    travel(world, realm, AFTERLIFE - 60)
    assert {key["kid"] for key in jwks(app)["keys"]} == {old["kid"], new}
    travel(world, realm, 61)
    assert {key["kid"] for key in jwks(app)["keys"]} == {new}
    assert app.userinfo(before["access_token"]).status == 401
    assert app.get("/.well-known/openid-configuration").json()["id_token_signing_alg_values_supported"] == [alg]
    assert signed(app, email)[1]["kid"] == new


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_now_switches_at_once(world, nodes, alg):
    """All algorithms sign and verify, in both processes; what the old key signed still verifies."""
    realm = world.realm("now")
    app, email = realm.app("jwt"), realm.user()
    before, old = signed(app, email)
    rotated(world, realm, "--alg", alg, "--now")
    for node in nodes:
        after, new = signed(realm.app("jwt", node), email)
        assert new["alg"] == alg and new["kid"] != old["kid"]
        api = realm.app("api", node)
        assert api.active(after["access_token"]) and api.active(before["access_token"])
        assert realm.app("jwt", node).userinfo(before["access_token"]).status == 200
    flipped = after["access_token"][:-8] + ("A" if after["access_token"][-8] != "A" else "B") + after["access_token"][-7:]
    assert not realm.app("api").active(flipped)


def test_a_waiting_key_is_used_before_another_is_made(world):
    """Two rotations in a row make one next key; --now lets it sign."""
    realm = world.realm("twice")
    app, email = realm.app("jwt"), realm.user()
    _, old = signed(app, email)
    for _ in range(2):
        rotated(world, realm)
    kids = {key["kid"] for key in jwks(app)["keys"]}
    assert len(kids) == 2
    rotated(world, realm, "--now")
    assert {key["kid"] for key in jwks(app)["keys"]} == kids
    assert {signed(app, email)[1]["kid"]} == kids - {old["kid"]}


def test_a_running_server_does_what_sql_asked_for_once(world, nodes):
    """Within five seconds, one key however many processes run and ask; audited; the private half is in no view."""
    realm = world.realm("asked")
    app = realm.app("jwt")
    signed(app, realm.user())
    world.admin.call("rotate_signing_key", realm.slug, "RS256")
    deadline = time.monotonic() + 5
    while len(jwks(app)["keys"]) == 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(jwks(app)["keys"]) == 2, "no next key within five seconds"
    with ThreadPoolExecutor(4) as pool:
        assert all(done.returncode == 0 for done in pool.map(lambda _: rotate(world, realm, "--alg", "RS256"), range(4)))
    world.settle()
    assert len(jwks(app)["keys"]) == 2
    events = [row[0] for row in world.admin.run(
        f"SELECT event FROM admin.audit_log WHERE realm = '{realm.slug}' AND event LIKE 'signing_key%' ORDER BY at, id;"
    )]
    assert events == ["signing_key_rotation_requested", "signing_key_published"] + 4 * ["signing_key_rotation_repeated"]


def test_a_client_has_an_algorithm_of_its_own(world, nodes):
    """Published with overlap; the realm's key signs until then, and for everybody else; realm takes it back."""
    realm = world.realm("own")
    jwt, email = realm.app("jwt"), realm.user()
    other = realm.put_client(
        "rs", "gt:urn:cocoar:otp", "gt:refresh_token", "scp:profile", "scp:email", access_token_type="jwt",
    )
    world.settle()
    assert signed(jwt, email)[1]["alg"] == "ES256"
    world.admin.call("put_client", realm.slug, other.client_id, signing_alg="RS256")
    time.sleep(5)
    assert sorted(key["alg"] for key in jwks(jwt)["keys"]) == ["ES256", "RS256"]
    assert signed(other, email)[1]["alg"] == "ES256"
    travel(world, realm, OVERLAP + 1)
    for node in nodes:
        assert signed(realm.app("rs", node), email)[1]["alg"] == "RS256"
        assert signed(realm.app("jwt", node), email)[1]["alg"] == "ES256"
    rotated(world, realm, "--alg", "RS256", "--now")
    assert signed(realm.app("jwt"), email)[1]["alg"] == "ES256", "a client's algorithm is rotated without the realm's"
    rotated(world, realm, "--now")
    assert signed(realm.app("rs"), email)[1]["alg"] == "RS256"
    travel(world, realm, AFTERLIFE + 1)
    assert sorted(key["alg"] for key in jwks(jwt)["keys"]) == ["ES256", "RS256"]
    world.admin.call("put_client", realm.slug, other.client_id, signing_alg="realm")
    world.settle()
    assert signed(realm.app("rs"), email)[1]["alg"] == "ES256"


def test_the_first_key_of_a_new_realm_is_of_the_algorithm_asked_for(world):
    """Nobody has cached anything: no overlap."""
    realm = world.realm("fresh")
    world.admin.call("put_realm", realm.slug, signing_alg="EdDSA")
    time.sleep(4)
    assert signed(realm.app("jwt"), realm.user())[1]["alg"] == "EdDSA"


def test_a_key_known_to_others_is_withdrawn_at_once(world, nodes):
    """Emergency: --now, then admin.retire_signing_key; old JWTs are refused, refresh goes on. A key that signs stays."""
    realm = world.realm("leak")
    app, email = realm.app("jwt"), realm.user()
    before, old = signed(app, email)
    with pytest.raises(SQLError, match="still signs"):
        world.admin.call("retire_signing_key", realm.slug, old["kid"])
    rotated(world, realm, "--now")
    world.admin.call("retire_signing_key", realm.slug, old["kid"])
    world.settle()
    assert old["kid"] not in {key["kid"] for key in jwks(app)["keys"]}
    assert states(world, realm)[old["kid"]] == "retired"
    for node in nodes:
        assert realm.app("jwt", node).userinfo(before["access_token"]).status == 401
    assert app.refresh(before["refresh_token"]).status == 200


@pytest.mark.parametrize("alg", ["RS256", "EdDSA"])
def test_services_sign_with_it_too(world, alg):
    """client_credentials with JWT access tokens."""
    realm = world.realm("svc")
    app, _ = service(realm, "robot", access_token_type="jwt")
    rotated(world, realm, "--alg", alg, "--now")
    answer = app.token({"grant_type": "client_credentials", **app.credentials()})
    assert jose.verify(answer.json()["access_token"], jwks(app))[0]["alg"] == alg


def test_private_halves_are_sealed(world):
    """What the database holds opens under the key file only: no DER, no raw key."""
    realm = world.realm("seal")
    for alg in ALGORITHMS:
        rotated(world, realm, "--alg", alg)
    rows = world.cluster.sql(f"SELECT encode(sealed_private, 'hex') FROM postern.signing_key WHERE realm_id = (SELECT id FROM postern.realm WHERE slug = '{realm.slug}')")
    assert len(rows) == 3
    for (row,) in rows:
        assert b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01" not in bytes.fromhex(row)
        assert not bytes.fromhex(row)[32:].startswith(b"\x30\x82")


@pytest.mark.parametrize("arguments,code,text", [
    (["--realm", "nobody"], 1, "does not exist"), (["--realm", "r", "--alg", "HS256"], 64, "alg"), ([], 64, "realm"),
])
def test_the_command_says_what_is_wrong(world, arguments, code, text):
    """Exit codes and stderr."""
    done = run_postern("keys", "rotate", *arguments, environment={
        "POSTERN_DATABASE_URL": world.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(world.key_file),
    })
    assert done.returncode == code and re.search(text, done.stderr), done
