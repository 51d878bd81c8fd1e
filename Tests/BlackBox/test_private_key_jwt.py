"""private_key_jwt at every endpoint a client calls itself (RFC 7523, OpenID Connect Core 9)."""

import hashlib
import hmac
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from harness.approvals import switch_on
from harness.codeflow import Flow, hosted
from harness.dpop import DPoPApp, assert_invalid, assert_nonce_due
from harness.jose import b64url
from harness.postgres import SQLError
from harness.service import service
from harness.signing import Key

TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS = ["ES256", "RS256", "PS256", "EdDSA"]


class Holder:
    """A client that authenticates by key: a service of its own, or one that the realm has."""

    def __init__(self, realm, name, key, app=None):
        self.realm, self.key = realm, key
        self.app, self.account = (app, None) if app else service(realm, name, secret=False)
        self.register(key)

    def register(self, *keys):
        """Replaces the registered keys."""
        self.realm.world.admin.call("put_client_jwks", self.realm.slug, self.app.client_id, json.dumps({"keys": [k.jwk() for k in keys]}))
        self.realm.world.settle()

    def claims(self, **changes):
        """Good claims; None takes one away."""
        now = int(time.time())
        claims = {
            "iss": self.app.client_id, "sub": self.app.client_id, "aud": self.realm.issuer, "jti": uuid.uuid4().hex, "iat": now, "exp": now + 60,
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def assertion(self, header=None, key=None, **changes):
        """A signed assertion."""
        key = key or self.key
        return key.sign({"alg": key.alg, **({"kid": key.kid} if key.kid else {}), **(header or {})}, self.claims(**changes))

    def ask(self, assertion=None, **more):
        """A token request; the raw answer."""
        form = {
            "grant_type": "client_credentials", "client_assertion_type": TYPE,
            "client_assertion": self.assertion() if assertion is None else assertion, **more,
        }
        return self.app.token(form)


@pytest.fixture(scope="module")
def nodes(world):
    """Two processes of one database."""
    second = world.start_node()
    yield world.node, second
    second.stop()


@pytest.fixture(scope="module")
def holder(realm):
    """A service with one ES256 key."""
    return Holder(realm, "keyed", Key("ES256", "k1"))


def assert_refused(answer, status=401, error="invalid_client"):
    """One body whatever was wrong."""
    assert (answer.status, answer.error) == (status, error), answer
    if error == "invalid_client":
        assert answer.json() == {"error": "invalid_client", "error_description": "Client authentication failed."}
        assert answer.header("www-authenticate") is None


@pytest.mark.parametrize("alg", ALGORITHMS)
def test_every_algorithm_authenticates(realm, alg):
    """With and without kid, client_id and typ; the client has no secret."""
    holder = Holder(realm, f"alg-{alg.lower()}", Key(alg, "k1"))
    assert holder.ask().status == 200
    assert holder.ask(client_id=holder.app.client_id).status == 200
    holder.key.kid = None
    assert holder.ask(holder.assertion({"typ": "JWT"})).status == 200
    assert holder.ask(holder.assertion({"typ": "client-authentication+jwt"})).status == 200
    assert_refused(holder.app.token({"grant_type": "client_credentials", "client_id": holder.app.client_id}))
    assert_refused(holder.app.token({"grant_type": "client_credentials", "client_id": holder.app.client_id, "client_secret": "x"}))


def test_introspection_and_revocation_take_it_too(holder):
    """All three endpoints."""
    token = holder.ask().json()["access_token"]

    def post(path):
        return holder.app.post(path, {"token": token, "client_assertion_type": TYPE, "client_assertion": holder.assertion()})

    assert post("/connect/introspect").json()["sub"] == holder.account
    assert post("/connect/revoke").status == 200
    assert post("/connect/introspect").json() == {"active": False}
    for path in ("/connect/introspect", "/connect/revoke"):
        assert_refused(holder.app.post(path, {"token": token, "client_assertion_type": TYPE, "client_assertion": holder.assertion(exp=1)}))


@pytest.mark.parametrize("path, accepted", [
    ("/connect/introspect", 200), ("/connect/revoke", 200), ("/connect/par", 400), ("/connect/bc-authorize", 400),
])
def test_the_audience_may_be_the_endpoint_that_is_asked(realm, holder, path, accepted):
    """RFC 9126 §2; not another endpoint, and not that of another realm. A push is malformed, which is told after authentication."""
    def post(audience):
        form = {"token": "x", "client_assertion_type": TYPE, "client_assertion": holder.assertion(aud=audience)}
        return holder.app.post(path, form).status

    assert post(realm.issuer + path) == accepted
    assert post(realm.issuer) == post(realm.issuer + "/connect/token") == accepted
    assert post(realm.issuer + "/connect/userinfo") == post("https://other.example" + path) == 401


@pytest.mark.parametrize("audience", ["issuer", "token endpoint", "array"])
def test_the_audience_is_the_issuer_or_the_token_endpoint(realm, holder, audience):
    """As a string or an array of nothing else."""
    endpoint = realm.issuer + "/connect/token"
    value = {"issuer": realm.issuer, "token endpoint": endpoint, "array": [realm.issuer, endpoint]}[audience]
    assert holder.ask(holder.assertion(aud=value)).status == 200


@pytest.mark.parametrize("changes", [
    {"aud": "https://other.example"}, {"aud": None}, {"aud": []}, {"aud": ["https://other.example"]}, {"aud": 7},
    {"exp": None}, {"exp": "soon"}, {"exp": -31}, {"exp": 640}, {"exp": "raw:1e12"}, {"exp": True},
    {"nbf": 40}, {"iat": 40}, {"jti": None}, {"jti": ""}, {"jti": "x" * 257}, {"jti": 7},
    {"iss": "somebody"}, {"sub": "somebody"}, {"iss": None}, {"sub": None}, {"iss": "somebody", "sub": "somebody"},
], ids=str)
def test_claims_that_do_not_hold(realm, holder, changes):
    """aud, exp (at most ten minutes ahead), nbf, iat, jti, iss and sub; numbers are seconds from now."""
    changes = {
        name: int(time.time()) + value if name in ("exp", "nbf", "iat") and type(value) is int else value for name, value in changes.items()  # pylint: disable=unidiomatic-typecheck
    }
    if changes.get("exp") == "raw:1e12":
        payload = json.dumps(holder.claims(exp=0)).replace('"exp": 0', '"exp": 1e12')
        assert_refused(holder.ask(holder.key.sign({"alg": "ES256", "kid": "k1"}, payload)))
        return
    assert_refused(holder.ask(holder.assertion(**changes)))
    other = realm.world.realm()
    assert_refused(holder.ask(holder.assertion(aud=other.issuer)))


@pytest.mark.parametrize("name", [
    "none", "None", "hs256", "es384", "other key", "embedded jwk", "kid of nobody", "crit", "b64", "der signature", "padded", "two parts", "five parts",
    "empty signature", "flipped payload", "repeated claim", "repeated header", "no json", "array", "junk", "long", "typ at+jwt", "rs256 name",
])
def test_forgeries(holder, name):  # pylint: disable=too-many-locals
    """For assertions: one answer."""
    good = holder.assertion()
    head, body, signature = good.split(".")
    attacker = Key("ES256", "k1")
    pem = holder.key.private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    def unsigned(alg):
        return b64url(json.dumps({"alg": alg, "kid": "k1"}).encode()) + "." + body

    raw = holder.key.private.sign(f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
    duplicate = json.dumps(holder.claims())
    forged = {
        "none": unsigned("none") + ".", "None": unsigned("None") + "." + signature,
        "hs256": unsigned("HS256") + "." + b64url(hmac.digest(pem, unsigned("HS256").encode(), hashlib.sha256)),
        "es384": holder.assertion({"alg": "ES384"}), "rs256 name": holder.assertion({"alg": "RS256"}), "other key": holder.assertion(key=attacker),
        "embedded jwk": holder.assertion({"jwk": attacker.jwk()}, key=attacker), "kid of nobody": holder.assertion({"kid": "k2"}),
        "crit": holder.assertion({"crit": ["exp"]}), "b64": holder.assertion({"b64": True}), "der signature": f"{head}.{body}.{b64url(raw)}",
        "padded": good + "=", "two parts": f"{head}.{body}", "five parts": good + ".x.y", "empty signature": f"{head}.{body}.",
        "flipped payload": f"{head}.{b64url(json.dumps(holder.claims()).encode())}.{signature}",
        "repeated claim": holder.key.sign({"alg": "ES256", "kid": "k1"}, '{"sub":"x",' + duplicate[1:]),
        "repeated header": holder.key.sign('{"alg":"none","alg":"ES256"}', duplicate), "no json": holder.key.sign({"alg": "ES256"}, "hello"),
        "array": holder.key.sign({"alg": "ES256"}, [1]), "junk": "junk", "long": holder.assertion(padding="x" * 9000),
        "typ at+jwt": holder.assertion({"typ": "at+jwt"}),
    }[name]
    assert_refused(holder.ask(forged))
    assert holder.ask(good).status == 200


def test_an_assertion_is_used_once_in_all_processes(realm, holder, nodes):
    """Of any number at once one is first; a request that fails afterwards has used it too; another jti is another."""
    text = holder.assertion()
    apps = [realm.app("keyed", node) for node in nodes]
    form = {"grant_type": "client_credentials", "client_assertion_type": TYPE, "client_assertion": text}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: apps[n % 2].token(form), range(32)))
    assert sorted(a.status for a in answers) == [200] + [401] * 31
    assert_refused(holder.ask(text))
    text = holder.assertion()
    assert_refused(holder.ask(text, scope="nothing"), 400, "invalid_scope")
    assert_refused(holder.ask(text))
    same = holder.assertion(jti="mine"), holder.assertion(jti="mine", exp=int(time.time()) + 100)
    assert [holder.ask(text).status for text in same] == [200, 401]


def test_a_jti_belongs_to_its_client(realm, holder):
    """Another client may use the same."""
    other = Holder(realm, "keyed-2", Key("EdDSA"))
    assert holder.ask(holder.assertion(jti="shared")).status == 200
    assert other.ask(other.assertion(jti="shared")).status == 200


def test_spent_assertions_are_forgotten_after_their_time(world, realm, holder):
    """And not before."""
    assert holder.ask().status == 200
    count = f"SELECT count(*) FROM postern.spent_assertion WHERE realm_id = (SELECT id FROM postern.realm WHERE slug = '{realm.slug}')"
    assert int(world.cluster.value(count)) > 0
    world.time_travel(600)
    deadline = time.monotonic() + 15
    while int(world.cluster.value(count)) > 0 and time.monotonic() < deadline:
        time.sleep(0.5)
    assert int(world.cluster.value(count)) == 0


def test_two_methods_at_once_are_refused(realm, holder):
    """invalid_request, and the assertion is not used up."""
    text = holder.assertion()
    api = realm.app("api")
    assert_refused(holder.ask(text, client_secret="x"), 400, "invalid_request")
    basic = holder.app.token(
        {"grant_type": "client_credentials", "client_assertion_type": TYPE, "client_assertion": text}, {"Authorization": api.basic},
    )
    assert_refused(basic, 400, "invalid_request")
    assert_refused(holder.ask(text, client_id=api.client_id), 400, "invalid_request")
    assert_refused(holder.app.token({"grant_type": "client_credentials", "client_assertion": text}), 400, "invalid_request")
    assert_refused(holder.app.token({"grant_type": "client_credentials", "client_assertion_type": TYPE}), 400, "invalid_request")
    assert_refused(holder.app.token({"grant_type": "client_credentials", "client_assertion": text, "client_assertion_type": "urn:x"}))
    assert holder.ask(text).status == 200


def test_keys_are_replaced_at_once(realm):
    """By kid among several; the former key is refused; without keys nothing is accepted."""
    one, two = Key("ES256", "one"), Key("RS256", "two")
    holder = Holder(realm, "rolling", one)
    holder.register(one, two)
    assert holder.ask(holder.assertion(key=one)).status == 200
    assert holder.ask(holder.assertion(key=two)).status == 200
    assert_refused(holder.ask(holder.assertion({"kid": "two"}, key=one)))
    holder.register(two)
    assert_refused(holder.ask(holder.assertion(key=one)))
    assert holder.ask(holder.assertion(key=two)).status == 200
    holder.register()
    assert_refused(holder.ask(holder.assertion(key=two)))


def test_a_disabled_client_is_refused(world, realm):
    """As with a secret."""
    holder = Holder(realm, "closed", Key("EdDSA"))
    world.admin.call("put_client", realm.slug, holder.app.client_id, enabled=False)
    world.settle()
    assert_refused(holder.ask())


def test_a_secret_can_be_taken_away(world, realm):
    """Both methods live beside each other until admin.delete_client_secret."""
    app, _ = service(realm, "both")
    key = Key("ES256")
    world.admin.call("put_client_jwks", realm.slug, app.client_id, json.dumps({"keys": [key.jwk()]}))
    world.settle()
    assert app.token({"grant_type": "client_credentials", **app.credentials()}).status == 200
    world.admin.call("delete_client_secret", realm.slug, app.client_id)
    world.settle()
    assert_refused(app.token({"grant_type": "client_credentials", **app.credentials()}))


@pytest.mark.parametrize("document,text", [
    ({"keys": [Key("ES256").jwk(d="AAAA")]}, "private member"), ({"keys": [{"kty": "oct", "k": "AAAA"}]}, "private member"),
    ({"keys": [Key("ES256").jwk(), Key("ES256").jwk()]}, "kid of its own"), ({"keys": [Key("ES256", "a").jwk(), Key("EdDSA", "a").jwk()]}, "kid of its own"),
    ({"keys": [Key("RS256", bits=1024).jwk()]}, "2048"), ({"keys": [Key("ES256").jwk(crv="P-384")]}, "P-256"), ({"keys": [Key("ES256").jwk(use="enc")]}, "use"),
    ({"keys": [Key("ES256").jwk(alg="HS256")]}, "alg"), ({"keys": [{"kty": "EC"}]}, "P-256"), ({"keys": [7]}, "no object"), ([], "JWK Set"), ({}, "JWK Set"),
    (Key("ES256").jwk(), "JWK Set"), ({"keys": [Key("EdDSA", str(n)).jwk() for n in range(11)]}, "ten"),
], ids=range(14))
def test_keys_that_sql_refuses(world, realm, holder, document, text):
    """Public keys of the algorithms there are, and names that tell them apart."""
    with pytest.raises(SQLError, match=text):
        world.admin.call("put_client_jwks", realm.slug, holder.app.client_id, json.dumps(document))


def test_a_public_client_has_no_keys(world, realm):
    """Nor does a confidential one keep them when it becomes public."""
    with pytest.raises(SQLError, match="public client"):
        world.admin.call("put_client_jwks", realm.slug, realm.client("app"), json.dumps({"keys": [Key("ES256").jwk()]}))


def test_discovery_says_so(realm, app):
    """RFC 8414: methods and algorithms of the three endpoints."""
    found = app.get("/.well-known/openid-configuration").json()
    for endpoint in ("token", "introspection", "revocation"):
        assert "private_key_jwt" in found[f"{endpoint}_endpoint_auth_methods_supported"]
        assert sorted(found[f"{endpoint}_endpoint_auth_signing_alg_values_supported"]) == sorted(ALGORITHMS)


def test_an_assertion_is_not_used_up_by_a_request_whose_proof_is_refused(world):
    """The client sends the same form again with the nonce that it was given, and a third time is one too many."""
    realm = world.realm()
    keyed = Holder(realm, "keyed", Key("ES256", "k1"))
    world.admin.call("set_dpop", realm.slug, nonce="required")
    world.settle()
    app, form = DPoPApp(keyed.app, obeys=False), _grant(keyed)
    assert_invalid(app.token({**form}, headers={"DPoP": app.proof(payload={"htm": "GET"})}))
    nonce = assert_nonce_due(app.token({**form}))
    answer = app.token({**form}, headers={"DPoP": app.proof(nonce=nonce)})
    assert answer.status == 200, answer
    assert_refused(app.token({**form}, headers={"DPoP": app.proof(nonce=nonce)}), 401, "invalid_client")


@pytest.mark.parametrize("endpoint", ["token", "par", "bc-authorize"])
def test_nor_by_one_whose_proof_was_used_before(world, endpoint):
    """Which the database says, after the assertion was used up."""
    realm = hosted(world.realm())
    switch_on(realm, "api")
    keyed = Holder(realm, "keyed", Key("ES256", "k1"), None if endpoint == "token" else realm.app("api"))
    app, path, email = DPoPApp(keyed.app, obeys=False), f"/connect/{endpoint}", realm.user()

    def form():
        parameters = {
            "token": {}, "par": Flow(realm, "api").request(), "bc-authorize": {"scope": "openid", "login_hint": email}}
        return {**_grant(keyed), **parameters[endpoint]}

    used, parameters = app.proof("POST", path), form()
    assert app.post(path, form(), {"DPoP": used}).status in (200, 201)
    for _ in range(2):
        assert_invalid(app.post(path, {**parameters}, {"DPoP": used}))
    assert app.post(path, {**parameters}).status in (200, 201)
    assert_refused(app.post(path, {**parameters}), 401, "invalid_client")


def _grant(keyed):
    return {"grant_type": "client_credentials", "client_assertion_type": TYPE, "client_assertion": keyed.assertion()}
