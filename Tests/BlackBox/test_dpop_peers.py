"""DPoP with what others wrote: clients, makers of proofs, and resource servers that take our tokens."""

import time

import pytest

from harness import apache, report
from harness.app import NativeApp
from harness.dpop import DPoPApp, ProofKey, assert_bound, assert_invalid
from harness.jose import parts
from harness.provider import Provider
from harness.realm import call
from test_third_party_clients import want

pytestmark = pytest.mark.slow
CALLBACK = "https://app.a.example/cb"
API = "https://orders.example/api"
ROUNDS = 100


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """A server with TLS whose issuer these programs can reach; its clients may sign in by code as well."""
    made = Provider(tmp_path_factory.mktemp("provider"))
    try:
        made.open()
        made.world.admin.run(
            call("set_native_grants", made.slug, enabled=True),
            call("put_scope", made.slug, "orders.read", resources=[API]))
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def plain_node(provider):
    """A node of the same realm without TLS, as if behind a proxy."""
    node = provider.world.start_node()
    yield node
    node.stop()


def client(provider, name, **settings):
    """A public client with all that is needed here."""
    made = provider.client(name, CALLBACK, client_type="public", **settings)
    provider.world.admin.run(call(
        "grant_permission", provider.slug, name, variadic=["gt:urn:cocoar:otp", "scp:orders.read", "ept:revocation"]))
    provider.world.settle()
    return made


def app_of(provider, node, name):
    """The client at work at the node without TLS; proofs name the issuer's URLs."""
    return DPoPApp(NativeApp(node, provider.world.mailbox, "localhost", name), origin=provider.issuer)


@pytest.mark.parametrize("policy", ["auto", "required"])
@pytest.mark.parametrize("wrong", [0, 600, -600])
def test_requests_oauth2client_needs_no_request_more_than_its_calls(provider, policy, wrong):
    """`auto` and a right clock: none. A wrong clock, or `required`: one challenge for each of its two nonces. Never an exception."""
    want("requests_oauth2client")
    provider.world.admin.call("set_dpop", provider.slug, nonce=policy)
    name = f"counting-{policy}-{'right' if wrong == 0 else 'fast' if wrong > 0 else 'slow'}"
    settings = client(provider, name)
    email, user = provider.user(name)
    browser = provider.browser(CALLBACK)
    started = time.monotonic()
    try:
        with provider.program("requests_oauth2client_dpop_cli", alg="ES256", wrong=wrong, rounds=ROUNDS, **settings) as program:
            program.tell(arrived=browser.open(program.hear()["open"]).sign_in(provider.world.mailbox, email).arrived)
            done = program.hear(timeout=240)
            program.tell()
            assert program.hear() == {"after": "InvalidGrant"}
    finally:
        provider.world.admin.call("set_dpop", provider.slug, nonce="auto")
        provider.world.settle()
    assert (done["called"], done["subjects"], done["kinds"]) == (2 * ROUNDS + 1, [user], ["DPoP"])
    more = 0 if policy == "auto" and wrong == 0 else 2
    late = int((time.monotonic() - started) / 150) * 2
    assert done["counts"].get("200") == done["called"] and more <= done["sent"] - done["called"] <= more + late, done
    report.say(f"requests-oauth2client, {policy}, clock {wrong:+} s: {done['called']} calls, {done['sent']} requests")


@pytest.mark.parametrize("alg", ["EdDSA", "RS256", "PS256"])
def test_requests_oauth2client_with_every_algorithm(provider, alg):
    """As its keys may be."""
    want("requests_oauth2client")
    settings = client(provider, f"alg-{alg.lower()}")
    email, user = provider.user(f"alg-{alg.lower()}")
    browser = provider.browser(CALLBACK)
    with provider.program("requests_oauth2client_dpop_cli", alg=alg, wrong=0, rounds=2, **settings) as program:
        program.tell(arrived=browser.open(program.hear()["open"]).sign_in(provider.world.mailbox, email).arrived)
        done = program.hear()
        assert (done["sent"], done["subjects"]) == (5, [user]), done


@pytest.mark.parametrize("maker", ["pydpop", "idpyoidc", "joserfc"])
def test_proofs_of_other_libraries_are_right(provider, plain_node, maker):
    """At the token endpoint and at userinfo, and their thumbprint is the one in the token. (idpyoidc's `ath` is none of RFC 9449.)"""
    for package in ("pydpop", "idpyoidc", "joserfc"):
        want(package)
    client(provider, f"maker-{maker}", access_token_type="jwt")
    app = app_of(provider, plain_node, f"maker-{maker}")
    email, user = provider.user(f"maker-{maker}")
    with provider.program("proof_makers_cli") as program:
        def make(method, path, token=None, nonce=None):
            program.tell(do="make", maker=maker, method=method, url=app.url(path), token=token, nonce=nonce)
            return program.hear()

        asked = app.plain.request_code(email)
        made = make("POST", "/connect/token")
        answer = app.token(app.redeem_form(asked.code, handle=asked.handle), {"DPoP": made["proof"]})
        assert answer.status == 200 and answer.json()["token_type"] == "DPoP", answer
        tokens = answer.json()
        assert parts(tokens["access_token"])[1]["cnf"] == {"jkt": made["thumbprint"]}
        again = app.token({"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]}, {"DPoP": make("POST", "/connect/token")["proof"]})
        assert again.status == 200, again
        proof = make("GET", "/connect/userinfo", tokens["access_token"])["proof"]
        answer = app.get("/connect/userinfo", {"Authorization": f"DPoP {tokens['access_token']}", "DPoP": proof})
        if maker == "idpyoidc":
            assert_invalid(answer, protected=True)
        else:
            assert answer.json()["sub"] == user, answer


def test_other_libraries_take_our_proofs_and_tokens_for_right(provider, plain_node):
    """pydpop verifies what this suite makes, and joserfc the access token by the published keys."""
    want("pydpop")
    want("joserfc")
    client(provider, "verified", access_token_type="jwt", signing_alg="ES256")
    app = app_of(provider, plain_node, "verified")
    email, user = provider.user("verified")
    tokens = app.bound(email)
    keys = app.plain.get("/.well-known/jwks").json()
    with provider.program("proof_makers_cli") as program:
        proof = app.proof("GET", "/connect/userinfo", tokens["access_token"])
        program.tell(do="verify proof", proof=proof, method="GET", url=app.url("/connect/userinfo"), token=tokens["access_token"])
        assert program.hear() == {"verified": True}
        program.tell(do="verify token", token=tokens["access_token"], keys=keys, alg="ES256")
        heard = program.hear()
        assert (heard["claims"]["sub"], heard["claims"]["cnf"], heard["header"]["typ"]) == (user, {"jkt": app.key.thumbprint}, "at+jwt")


def test_auth0_api_python_takes_a_bound_token_with_its_key_alone(provider, plain_node):
    """A resource server that wants RS256 and refuses a downgrade to Bearer."""
    want("auth0_api_python")
    client(provider, "auth0-api", access_token_type="jwt", signing_alg="RS256")
    app = app_of(provider, plain_node, "auth0-api")
    email, user = provider.user("auth0-api")
    tokens = app.bound(email, scope="openid offline_access orders.read", resource=API)
    token, url = tokens["access_token"], f"{API}/orders"
    other = ProofKey()
    with provider.program("auth0_api_cli", issuer=provider.issuer, audience=API) as program:
        def judge(scheme, proof):
            program.tell(method="GET", url=url, headers={"Authorization": f"{scheme} {token}", **({"DPoP": proof} if proof else {})})
            return program.hear()

        right = app.key.proof("GET", url, token=token)
        assert judge("DPoP", right) == {"sub": user, "cnf": {"jkt": app.key.thumbprint}}
        assert judge("Bearer", None)["refused"] == "VerifyAccessTokenError"
        assert "refused" in judge("Bearer", app.key.proof("GET", url, token=token))
        assert "mismatch" in judge("DPoP", other.proof("GET", url, token=token))["text"]
        assert "refused" in judge("DPoP", app.key.proof("POST", url, token=token))


def test_mod_oauth2_in_apache_takes_a_bound_token_with_its_key_alone(provider, plain_node):
    """A resource server in C: served; replay, another key, no proof and Bearer are 401. It reads our keys over TLS."""
    if (problem := apache.missing("oauth2")) is not None:
        report.say("peers of DPoP: mod_oauth2 is absent: " + problem)
        pytest.skip(problem)
    client(provider, "mod-oauth2", access_token_type="jwt")
    app = app_of(provider, plain_node, "mod-oauth2")
    email, _ = provider.user("mod-oauth2")
    token = app.bound(email, scope="openid offline_access orders.read", resource=API)["access_token"]
    server = apache.BoundResourceServer(provider.certificate, f"{provider.issuer}/.well-known/jwks")
    url = f"http://localhost:{server.port}/private/"
    try:
        def get(proof, scheme="DPoP"):
            answer = server.get(token, proof, scheme)
            return answer.status, "private" in answer.body.decode()

        right = app.key.proof("GET", url, token=token)
        assert get(right) == (200, True), server.log()
        for proof, scheme in (
            (right, "DPoP"), (ProofKey().proof("GET", url, token=token), "DPoP"), (None, "DPoP"), (app.key.proof("GET", url, token=token), "Bearer"),
            (app.key.proof("POST", url, token=token), "DPoP"),
        ):
            assert get(proof, scheme) == (401, False)
        assert get(app.key.proof("GET", url, token=token)) == (200, True), server.log()
    finally:
        server.close()


def test_the_issuers_own_port_counts(provider, plain_node):
    """The issuer has a port; a proof without it names another origin."""
    client(provider, "port")
    app = app_of(provider, plain_node, "port")
    email, _ = provider.user("port")
    asked = app.plain.request_code(email)
    form = app.redeem_form(asked.code, handle=asked.handle)
    for origin in ("https://localhost:1", f"{provider.issuer}0", provider.issuer.replace("https", "http")):
        assert_invalid(app.token(form, {"DPoP": app.key.proof("POST", f"{origin}/connect/token")}))
    assert_bound(app.token(form), app.key)
