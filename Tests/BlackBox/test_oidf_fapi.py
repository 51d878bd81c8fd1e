"""Modules of fapi2-security-profile-final-test-plan by name: those that are about neither mTLS nor DPoP; docs/conformance.md lists them.

The clients authenticate by private_key_jwt, and must push their requests.
"""

import json
import time
import uuid

import pytest

from harness import wire
from harness.codeflow import REDIRECT, page_error
from harness.conformance import Plan, Suite
from harness.realm import call
from harness.relying_party import RelyingParty
from test_private_key_jwt import TYPE, Key

FAPI = Plan("fapi2-security-profile-final-test-plan", "fapi2-security-profile-final-")
NAMES = ("fapi", "fapi-2")


class Party(RelyingParty):
    """A client with a key, which pushes its requests with PKCE."""

    def __init__(self, realm, key, name=NAMES[0]):
        super().__init__(realm, name)
        self.key = key
        self.uri = self.audience = None

    def authenticated(self, form):
        """The form with a client assertion."""
        now = int(time.time())
        assertion = self.key.sign({"alg": self.key.alg, "kid": self.key.kid}, {
            "iss": self.app.client_id, "sub": self.app.client_id, "aud": self.audience or self.realm.issuer, "jti": uuid.uuid4().hex,
            "iat": now, "exp": now + 60})
        return {**form, "client_assertion_type": TYPE, "client_assertion": assertion}

    def ask(self, **form):
        """A token request."""
        return self.app.token(self.authenticated(form))

    def push(self, **changes):
        """The raw answer to a pushed request."""
        form = self.parameters(**{"scope": "openid email", **self.pkce(), **changes})
        answer = self.app.post("/connect/par", self.authenticated(form))
        self.uri = answer.json().get("request_uri") if answer.status == 201 else None
        return answer

    def visit(self, **more):
        """The browser opens the request that was pushed."""
        query = {"client_id": self.app.client_id, "request_uri": self.uri, **more}
        return self.browser.open("/connect/authorize?" + wire.form_body(query).decode())

    def open(self, **changes):
        """Pushes, and opens."""
        answer = self.push(**changes)
        assert answer.status == 201, answer
        return self.visit()

    def exchange(self, code, **changes):
        """With the verifier."""
        form = {"code_verifier": self.flow.verifier, **changes}
        return super().exchange(code, **{name: value for name, value in form.items() if value is not None})


class Clients:
    """Two clients with keys."""

    def __init__(self, world):
        self.suite = Suite(world)
        self.world, self.email = world, self.suite.email
        self.keys = {name: Key("ES256", f"{name}-key") for name in NAMES}
        for name, key in self.keys.items():
            self.suite.realm.put_client(
                name, "gt:authorization_code", "gt:refresh_token", "scp:email", "scp:profile", client_type="confidential", require_par=True)
            client = self.suite.realm.client(name)
            world.admin.run(
                call("put_redirect_uri", self.suite.realm.slug, client, REDIRECT),
                call("put_client_jwks", self.suite.realm.slug, client, json.dumps({"keys": [key.jwk()]})))
        world.settle()

    def party(self, name=NAMES[0]):
        """A relying party with a browser of its own."""
        return Party(self.suite.realm, self.keys[name], name)

    def code(self, **changes):
        """A relying party whose user has signed in, and the code."""
        party = self.party()
        party.open(**changes)
        party.pass_pages(self.email)
        return party, party.code()


@pytest.fixture(scope="module", name="clients")
def _clients(world):
    return Clients(world)


@pytest.mark.parametrize("module", FAPI)
def test_fapi2_security_profile(clients, module):
    """A plain response to an unsigned pushed request."""
    FAPI.run(module, clients)


def push_is_refused(clients, *errors, **changes):
    """400 with one of the errors; the right request is then accepted."""
    party = clients.party()
    answer = party.push(**changes)
    assert answer.status == 400 and answer.error in errors and "request_uri" not in answer.json(), answer
    assert party.push().status == 201


def code_is_refused(party, code, **changes):
    """invalid_grant."""
    answer = party.exchange(code, **changes)
    assert (answer.status, answer.error) == (400, "invalid_grant"), answer


@FAPI.module("discovery-end-point-verification")
def _(clients):
    metadata = clients.suite.metadata
    assert metadata["issuer"] == clients.suite.realm.issuer and metadata["jwks_uri"] and metadata["token_endpoint"]
    assert "private_key_jwt" in metadata["token_endpoint_auth_methods_supported"]
    fapi = {"PS256", "ES256", "EdDSA"}
    assert fapi & set(metadata["token_endpoint_auth_signing_alg_values_supported"])
    assert fapi & set(metadata["id_token_signing_alg_values_supported"])
    assert metadata["code_challenge_methods_supported"] == ["S256"] and metadata["pushed_authorization_request_endpoint"]
    assert metadata["authorization_response_iss_parameter_supported"] is True


@FAPI.module("user-rejects-authentication")
def _(clients):
    party = clients.party()
    party.open()
    party.browser.submit("cancel")
    assert party.error() == "access_denied"


@FAPI.module("ensure-authorization-request-without-state-success")
def _(clients):
    party, code = clients.code(state=None)
    party.tokens(code)


@FAPI.module("ensure-authorization-request-without-nonce-success")
def _(clients):
    party, code = clients.code(nonce=None)
    assert "nonce" not in party.claims(party.tokens(code))


@FAPI.module("ensure-other-scope-order-succeeds")
def _(clients):
    party, code = clients.code(scope="email openid")
    assert party.userinfo(party.tokens(code))["email"] == clients.email


@FAPI.module("ensure-authorization-request-with-long-nonce")
def _(clients):
    party, code = clients.code(nonce="n" * 384)
    party.tokens(code)


@FAPI.module("ensure-authorization-request-with-long-state")
def _(clients):
    party, code = clients.code(state="s" * 1000)
    party.tokens(code)


@FAPI.module("state-only-outside-request-object-not-used")
def _(clients):
    party = clients.party()
    assert party.push(state=None).status == 201
    party.visit(state="outside")
    party.pass_pages(clients.email)
    assert "state" not in party.browser.members and party.code()


@FAPI.module("ensure-registered-redirect-uri")
def _(clients):
    push_is_refused(clients, "invalid_request", redirect_uri="https://app.a.example/cb/unregistered")


@FAPI.module("ensure-unsigned-authorization-request-without-using-par-fails")
def _(clients):
    party = clients.party()
    party.browser.open("/connect/authorize?" + wire.form_body(party.parameters(**party.pkce())).decode())
    assert party.error() == "invalid_request"


@FAPI.module("ensure-redirect-uri-in-authorization-request")
def _(clients):
    push_is_refused(clients, "invalid_request", redirect_uri=None)


@FAPI.module("ensure-response-type-code-idtoken-fails")
def _(clients):
    push_is_refused(clients, "unsupported_response_type", response_type="code id_token")


@FAPI.module("ensure-response-type-token-fails")
def _(clients):
    push_is_refused(clients, "unsupported_response_type", response_type="token")


@FAPI.module("ensure-authorization-code-is-bound-to-client")
def _(clients):
    party, code = clients.code()
    other = clients.party(NAMES[1])
    code_is_refused(other, code, code_verifier=party.flow.verifier)
    party.tokens(code)


@FAPI.module("attempt-reuse-authorization-code-after-one-second")
def _(clients):
    party, code = clients.code()
    party.tokens(code)
    clients.world.time_travel(1)
    code_is_refused(party, code)


@FAPI.module("ensure-token-endpoint-fails-with-expired-auth-code")
def _(clients):
    party, code = clients.code()
    clients.world.time_travel(61)
    code_is_refused(party, code)


@FAPI.module("refresh-token")
def _(clients):
    party, code = clients.code(scope="openid offline_access", prompt="consent")
    first = party.tokens(code)

    def refresh(token, who=party):
        return who.ask(grant_type="refresh_token", refresh_token=token)

    second = refresh(first["refresh_token"]).json()
    assert second["access_token"] != first["access_token"]
    assert party.check_identity(second, None)["sub"] == party.claims(first)["sub"]
    clients.world.time_travel(30)
    assert refresh(first["refresh_token"]).status == 200, "an answer that was lost is repeated (FAPI 2.0 §5.3.2.1)"
    foreign = refresh(second["refresh_token"], clients.party(NAMES[1]))
    assert (foreign.status, foreign.error) == (400, "invalid_grant")


@FAPI.module("par-ensure-reused-request-uri-prior-to-auth-completion-succeeds")
def _(clients):
    party = clients.party()
    party.open()
    party.visit()
    party.pass_pages(clients.email)
    party.tokens()


@FAPI.module("par-attempt-reuse-request_uri")
def _(clients):
    party, code = clients.code()
    party.tokens(code)
    assert page_error(party.visit().answer) == "invalid_request_uri"


@FAPI.module("par-attempt-to-use-expired-request_uri")
def _(clients):
    party = clients.party()
    expires = party.push().json()["expires_in"]
    assert 5 <= expires < 600
    clients.world.time_travel(expires + 1)
    assert page_error(party.visit().answer) == "invalid_request_uri"


@FAPI.module("par-attempt-to-use-request_uri-for-different-client")
def _(clients):
    party, other = clients.party(), clients.party(NAMES[1])
    party.push()
    other.uri = party.uri
    assert page_error(other.visit().answer) == "invalid_request_uri"


@FAPI.module("par-authorization-request-containing-request_uri-form-param")
def _(clients):
    party = clients.party()
    party.push()
    push_is_refused(clients, "invalid_request", request_uri=party.uri)


@FAPI.module("par-attempt-invalid-http-method")
def _(clients):
    app = clients.party().app
    for method in ("GET", "PUT"):
        answer = wire.exchange(app.node.port, method, "/connect/par", {"Host": app.host})
        assert (answer.status, answer.header("allow")) == (405, "POST")


@FAPI.module("par-ensure-pkce-required")
def _(clients):
    push_is_refused(clients, "invalid_request", code_challenge=None, code_challenge_method=None)


@FAPI.module("ensure-pkce-code-verifier-required")
def _(clients):
    party, code = clients.code()
    code_is_refused(party, code, code_verifier=None)


@FAPI.module("incorrect-pkce-code-verifier-rejected")
def _(clients):
    party, code = clients.code()
    code_is_refused(party, code, code_verifier="x" * 43)


@FAPI.module("par-plain-pkce-rejected")
def _(clients):
    push_is_refused(clients, "invalid_request", code_challenge="x" * 43, code_challenge_method="plain")


@FAPI.module("par-without-duplicate-parameters")
def _(clients):
    party = clients.party()
    party.push()
    party.browser.open("/connect/authorize?" + wire.form_body({"client_id": party.app.client_id, "request_uri": party.uri}).decode())
    party.pass_pages(clients.email)
    party.tokens()


@FAPI.module("par-test-array-as-audience-fails")
def _(clients):
    party = clients.party()
    party.audience = [clients.suite.realm.issuer, "https://other.example/"]
    answer = party.push()
    assert (answer.status, answer.error) == (401, "invalid_client"), answer
    party.audience = None
    assert party.push().status == 201
