"""CIBA with clients that others wrote, as they are installed."""

import json
import ssl
import urllib.request

import pytest

from harness import jose
from harness.approvals import CIBA
from harness.dpop import ProofKey
from harness.module_site import until
from harness.postgres import literal
from harness.provider import Provider
from harness.realm import call
from test_third_party_clients import CALLBACK, want

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """A server with TLS whose issuer these clients can reach, and approvals."""
    made = Provider(tmp_path_factory.mktemp("provider"))
    try:
        made.open()
        made.world.admin.run(call("set_approvals", made.slug, True))
        yield made
    finally:
        made.close()


def approve(provider, key, number):
    """As the device does, once the worker has shown it the request: that begins when its answer has left."""
    cluster = provider.world.cluster
    until(lambda: cluster.value("SELECT count(*) FROM postern.device_request WHERE kind = 'approval' AND resolved_at IS NULL") == "0",
          "the request is decided")
    rows = cluster.sql(
        "SELECT t.id, encode(t.challenge, 'hex'), k.client_id, t.binding_message FROM postern.device_request t "
        "JOIN postern.client k ON k.id = t.client WHERE t.is_shown AND t.state = 'open'")
    (approval, challenge, client_id, message), = rows
    answer = key.sign({"typ": "postern-approval+jwt", "alg": "ES256", "jwk": key.public()}, {
        "aud": provider.issuer, "iat": 0, "approval_id": approval, "challenge": jose.b64url(bytes.fromhex(challenge)), "decision": "approve",
        "client_id": client_id, "event": "LOGIN", "binding_message": message, "match_number": number})
    request = urllib.request.Request(
        f"{provider.issuer}/connect/approvals/{approval}", json.dumps({"Response": answer}).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=provider.certificate)) as response:
        assert json.loads(response.read())["Decision"] == "approve"


def test_idpyoidc_asks_and_authlib_polls(provider):
    """Discovery, request, pending, tokens."""
    want("idpyoidc")
    want("authlib")
    client = provider.client("idpyoidc-ciba", CALLBACK)
    provider.world.admin.run(call("grant_permission", provider.slug, "idpyoidc-ciba", variadic=["gt:" + CIBA]))
    provider.world.settle()
    email, user = provider.user("ciba")
    key = ProofKey()
    point = b"".join(jose.unb64url(key.public()[name]) for name in "xy")
    provider.world.cluster.sql(
        "INSERT INTO postern.device_key (realm_id, thumbprint, public_key, user_id, client, added_at) "
        f"SELECT u.realm_id, '\\x{jose.unb64url(key.thumbprint).hex()}', '\\x{point.hex()}', u.id, k.id, now() FROM postern.user_account u "
        f"JOIN postern.client k USING (realm_id) WHERE u.id = {literal(user)}::uuid AND k.client_id = 'idpyoidc-ciba'")
    with provider.program("idpyoidc_ciba_cli", email=email, authority=str(provider.certificate), **client) as program:
        asked = program.hear()
        assert asked["auth_req_id"].startswith("pbr_") and (asked["expires_in"], asked["interval"]) == (120, 5)
        program.tell()
        assert program.hear() == {"error": "authorization_pending"}
        approve(provider, key, asked["match_number"])
        program.tell()
        tokens = program.hear()
    claims = jose.parts(tokens["id_token"])[1]
    assert claims["sub"] == user and claims["amr"] == ["pop", "mca"] and tokens["token_type"] == "Bearer"
