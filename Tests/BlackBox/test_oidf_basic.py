"""The modules of oidcc-basic-certification-test-plan by name; oidcc-formpost-basic-certification-test-plan runs them with form_post.

docs/conformance.md lists them with their results. The suite sends no PKCE but in one module, and authenticates by client_secret_basic.
"""

import json

import pytest

from harness import jose, wire
from harness.codeflow import page_error
from harness.conformance import PASSES, SKIPPED, WARNS, Plan, Suite

BASIC = Plan("oidcc-basic-certification-test-plan")
FORM_POST = "oidcc-formpost-basic-certification-test-plan"
#: OpenID Connect Core §5.4.
SCOPE_CLAIMS = {
    "profile": {"name", "family_name", "given_name", "middle_name", "nickname", "preferred_username", "profile", "picture", "website",
                "gender", "birthdate", "zoneinfo", "locale", "updated_at"},
    "email": {"email", "email_verified"}, "phone": {"phone_number", "phone_number_verified"},
}


@pytest.fixture(scope="module", name="suite")
def _suite(world):
    return Suite(world)


@pytest.mark.parametrize("module", BASIC)
def test_oidcc_basic(suite, module):
    """The response mode is the default."""
    BASIC.run(module, suite)


@pytest.mark.parametrize("module", BASIC)
def test_oidcc_formpost_basic(suite, module):
    """Every request asks for form_post."""
    BASIC.run(module, suite.with_mode("form_post"))


@BASIC.module("oidcc-server")
def _(suite):
    party, tokens = suite.signed_in()
    party.userinfo(tokens)


@BASIC.module("oidcc-response-type-missing")
def _(suite):
    party = suite.party()
    party.open(response_type=None)
    assert party.error() == "invalid_request"


@BASIC.module("oidcc-idtoken-signature", SKIPPED)
def _(suite):
    # Only for clients that register themselves. What it looks at holds all the same.
    assert "registration_endpoint" not in suite.metadata
    party, tokens = suite.signed_in()
    header, _ = jose.verify(tokens["id_token"], party.app.get("/.well-known/jwks").json())
    assert header["kid"] and header["alg"] in suite.metadata["id_token_signing_alg_values_supported"]


@BASIC.module("oidcc-idtoken-unsigned", SKIPPED)
def _(suite):
    assert "none" not in suite.metadata["id_token_signing_alg_values_supported"]


@BASIC.module("oidcc-userinfo-get")
def _(suite):
    party, tokens = suite.signed_in(scope="openid email")
    assert party.userinfo(tokens)["email"] == suite.email


@BASIC.module("oidcc-userinfo-post-header")
def _(suite):
    party, tokens = suite.signed_in(scope="openid email")
    answer = party.app.post("/connect/userinfo", {}, {"Authorization": f"Bearer {tokens['access_token']}"})
    assert answer.json()["sub"] == party.claims(tokens)["sub"] and answer.json()["email"] == suite.email


@BASIC.module("oidcc-userinfo-post-body")
def _(suite):
    party, tokens = suite.signed_in(scope="openid email")
    answer = party.app.post("/connect/userinfo", {"access_token": tokens["access_token"]})
    assert answer.json()["sub"] == party.claims(tokens)["sub"] and answer.json()["email"] == suite.email


@BASIC.module("oidcc-ensure-request-without-nonce-succeeds-for-code-flow")
def _(suite):
    party, tokens = suite.signed_in(nonce=None)
    assert "nonce" not in party.claims(tokens)


def returns_claims(suite, *scopes):
    """Userinfo has the claims of the scopes that the server says it supports; the ID token has none of them."""
    party, tokens = suite.signed_in(scope=" ".join(("openid", *scopes)))
    wanted = set().union(*(SCOPE_CLAIMS[scope] for scope in scopes)) & set(suite.metadata["claims_supported"])
    assert wanted and wanted <= set(party.userinfo(tokens)), party.userinfo(tokens)
    assert not wanted & set(party.claims(tokens))


@BASIC.module("oidcc-scope-profile")
def _(suite):
    returns_claims(suite, "profile")


@BASIC.module("oidcc-scope-email")
def _(suite):
    returns_claims(suite, "email")


@BASIC.module("oidcc-scope-address", SKIPPED)
def _(suite):
    assert "address" not in suite.metadata["scopes_supported"]


@BASIC.module("oidcc-scope-phone")
def _(suite):
    returns_claims(suite, "phone")


@BASIC.module("oidcc-scope-all")
def _(suite):
    returns_claims(suite, "profile", "email", "phone")


@BASIC.module("oidcc-alternate-happy-flow")
def _(suite):
    party = suite.party()
    parameters = party.parameters(scope="email openid")
    party.browser.open("/connect/authorize?" + wire.form_body(list(reversed(parameters.items()))).decode())
    party.pass_pages(suite.email)
    assert party.userinfo(party.tokens())["email"] == suite.email


@BASIC.module("oidcc-display-page")
def _(suite):
    suite.signed_in(display="page")


@BASIC.module("oidcc-display-popup")
def _(suite):
    suite.signed_in(display="popup")


def signs_in_again(suite, **changes):
    """A second request of a signed-in browser shows the pages, and the user's authentication is a new one."""
    party, first = suite.signed_in()
    suite.world.time_travel(10)
    second = party.signed_in(suite.email, **changes)
    before, after = party.claims(first), party.claims(second)
    # Time travel made the first sign-in older than its ID token says.
    assert before["sub"] == after["sub"] and after["auth_time"] >= before["auth_time"]
    assert party.claims(party.silently(prompt="none"))["auth_time"] == after["auth_time"]


@BASIC.module("oidcc-prompt-login")
def _(suite):
    signs_in_again(suite, prompt="login")


@BASIC.module("oidcc-prompt-none-not-logged-in")
def _(suite):
    party = suite.party()
    party.open(prompt="none")
    assert party.error() == "login_required"


def stays_signed_in(suite, **changes):
    """A second request of a signed-in browser shows nothing, and tells of the same authentication."""
    party, first = suite.signed_in()
    second = party.silently(**changes)
    before, after = party.claims(first), party.claims(second)
    assert (before["sub"], before["auth_time"]) == (after["sub"], after["auth_time"])


@BASIC.module("oidcc-prompt-none-logged-in")
def _(suite):
    stays_signed_in(suite, prompt="none")


@BASIC.module("oidcc-max-age-1")
def _(suite):
    signs_in_again(suite, max_age="1")


@BASIC.module("oidcc-max-age-10000")
def _(suite):
    stays_signed_in(suite, max_age="10000")


@BASIC.module("oidcc-ensure-request-with-unknown-parameter-succeeds")
def _(suite):
    suite.signed_in(extra="foobar")


@BASIC.module("oidcc-id-token-hint")
def _(suite):
    party, first = suite.signed_in()
    second = party.silently(prompt="none", id_token_hint=first["id_token"])
    assert party.claims(first)["sub"] == party.claims(second)["sub"]


@BASIC.module("oidcc-login-hint")
def _(suite):
    party = suite.party()
    party.open(login_hint=suite.email)
    assert party.browser.page.fields["address"] == suite.email
    party.pass_pages(suite.email)
    party.tokens()


@BASIC.module("oidcc-ui-locales")
def _(suite):
    suite.signed_in(ui_locales="se")


@BASIC.module("oidcc-claims-locales")
def _(suite):
    suite.signed_in(claims_locales="se")


@BASIC.module("oidcc-ensure-request-with-acr-values-succeeds")
def _(suite):
    asked = suite.metadata["acr_values_supported"]
    party, tokens = suite.signed_in(acr_values=" ".join(asked))
    assert party.claims(tokens)["acr"] in asked


@BASIC.module("oidcc-codereuse")
def _(suite):
    party = suite.party()
    party.open()
    party.pass_pages(suite.email)
    code = party.code()
    party.tokens(code)
    again = party.exchange(code)
    assert (again.status, again.error) == (400, "invalid_grant")


@BASIC.module("oidcc-codereuse-30seconds")
def _(suite):
    party = suite.party()
    party.open()
    party.pass_pages(suite.email)
    code = party.code()
    tokens = party.tokens(code)
    suite.world.time_travel(30)
    assert party.exchange(code).error == "invalid_grant"
    assert party.app.userinfo(tokens["access_token"]).status == 401


@BASIC.module("oidcc-ensure-registered-redirect-uri")
def _(suite):
    party = suite.party()
    assert page_error(party.open(redirect_uri="https://app.a.example/cb/unregistered").answer) == "invalid_redirect_uri"


@BASIC.module("oidcc-ensure-post-request-succeeds")
def _(suite):
    party = suite.party()
    party.browser.post("/connect/authorize", party.parameters())
    party.pass_pages(suite.email)
    party.tokens()


@BASIC.module("oidcc-server-client-secret-post")
def _(suite):
    party = suite.party(post=True)
    party.userinfo(party.signed_in(suite.email))


@BASIC.module("oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported")
def _(suite):
    party = suite.party()
    party.open(request_uri="https://app.a.example/request.jwt")
    assert party.error() == "request_uri_not_supported"


@BASIC.module("oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported")
def _(suite):
    party = suite.party()
    members = [jose.b64url(json.dumps(part).encode()) for part in ({"alg": "none"}, party.parameters())]
    party.open(request=".".join(members) + ".")
    assert party.error() == "request_not_supported"


@BASIC.module("oidcc-claims-essential", WARNS)
def _(suite):
    # The suite warns because userinfo has no name: single claims cannot be asked for.
    party, tokens = suite.signed_in(claims=json.dumps({"userinfo": {"name": {"essential": True}}}))
    assert suite.metadata["claims_parameter_supported"] is False and "name" not in party.userinfo(tokens)


@BASIC.module("oidcc-ensure-request-object-with-redirect-uri", SKIPPED)
def _(suite):
    assert suite.metadata["request_parameter_supported"] is False


@BASIC.module("oidcc-refresh-token")
def _(suite):
    party, first = suite.signed_in(scope="openid offline_access", prompt="consent")
    second = party.ask(grant_type="refresh_token", refresh_token=first["refresh_token"]).json()
    before, after = party.claims(first), party.check_identity(second, None)
    assert all(before[name] == after[name] for name in ("iss", "sub", "aud", "auth_time")) and after["iat"] >= before["iat"]
    assert party.userinfo(second)
    other = suite.party("other-api")
    foreign = other.ask(grant_type="refresh_token", refresh_token=second["refresh_token"])
    assert (foreign.status, foreign.error) == (400, "invalid_grant")


@BASIC.module("oidcc-ensure-request-with-valid-pkce-succeeds")
def _(suite):
    party = suite.party()
    party.open(**party.pkce())
    party.pass_pages(suite.email)
    code = party.code()
    assert party.exchange(code, code_verifier="x" * 43).error == "invalid_grant"
    party.tokens(code, code_verifier=party.flow.verifier)


def test_the_plans_have_all_modules():
    """As of the suite of August 2026."""
    assert len(BASIC) == 38 and {result for result, _ in BASIC.values()} == {PASSES, WARNS, SKIPPED}
