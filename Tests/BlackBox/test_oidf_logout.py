"""The modules of OIDF's plans for configuration, RP-initiated logout and back-channel logout, by name; docs/conformance.md lists them."""

import re
import time

import pytest

from harness import jose, wire
from harness.conformance import Plan, Suite
from test_logout import EVENT, GOODBYE, Receiver

CONFIG = Plan("oidcc-config-certification-test-plan")
LOGOUT = Plan("oidcc-rp-initiated-logout-certification-test-plan")
BACK_CHANNEL = Plan("oidcc-backchannel-rp-initiated-logout-certification-test-plan")
PRIVATE = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}


@pytest.fixture(scope="module", name="suite")
def _suite(world):
    made = Suite(world)
    world.admin.call("put_logout_uri", made.realm.slug, made.realm.client("api"), GOODBYE, "post-logout")
    world.settle()
    return made


@pytest.mark.parametrize("module", CONFIG)
def test_oidcc_config(suite, module):
    """The discovery document."""
    CONFIG.run(module, suite)


@pytest.mark.parametrize("module", LOGOUT)
def test_oidcc_rp_initiated_logout(suite, module):
    """The end-session endpoint."""
    LOGOUT.run(module, suite)


@pytest.mark.parametrize("module", BACK_CHANNEL)
def test_oidcc_backchannel_rp_initiated_logout(suite, module):
    """Logout tokens."""
    BACK_CHANNEL.run(module, suite)


def endpoints_are_https(metadata):
    """Every URL of the document."""
    urls = [value for name, value in metadata.items() if name.endswith(("_endpoint", "_uri")) and isinstance(value, str)]
    assert len(urls) > 5 and all(url.startswith("https://") for url in urls), urls


@CONFIG.module("oidcc-discovery-endpoint-verification")
def _(suite):
    deadline = time.monotonic() + 20
    while "RS256" not in suite.metadata["id_token_signing_alg_values_supported"]:
        assert time.monotonic() < deadline, "a realm with pages has an RS256 key"
        time.sleep(0.1)
    assert suite.discovery.status == 200 and suite.discovery.header("content-type").startswith("application/json")
    metadata = suite.metadata
    assert metadata["issuer"] == suite.realm.issuer
    assert metadata["response_types_supported"] == ["code"] and set(metadata["subject_types_supported"]) <= {"public", "pairwise"}
    assert {"authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"} <= set(metadata)
    endpoints_are_https(metadata)
    assert "authorization_code" in metadata["grant_types_supported"]
    assert "openid" in metadata["scopes_supported"]
    assert all(re.fullmatch(r"[\x21\x23-\x5b\x5d-\x7e]+", scope) for scope in metadata["scopes_supported"])
    assert metadata["claims_supported"] and metadata["code_challenge_methods_supported"] == ["S256"]
    assert all(re.fullmatch(r"[a-z]{2}(-[A-Z]{2})?", locale) for locale in metadata["ui_locales_supported"])
    keys = suite.realm.app("api").get("/.well-known/jwks").json()["keys"]
    assert {key["alg"] for key in keys} == set(metadata["id_token_signing_alg_values_supported"])
    assert len({key["kid"] for key in keys}) == len(keys) and not any(PRIVATE & set(key) for key in keys)


class SignedIn:
    """A relying party whose user signed in through the pages, and its ID token."""

    def __init__(self, suite):
        self.suite = suite
        self.party, tokens = suite.signed_in()
        self.hint = tokens["id_token"]

    def logout(self, **parameters):
        """GET of the end-session endpoint; None leaves a parameter out."""
        parameters = {"id_token_hint": self.hint, "post_logout_redirect_uri": GOODBYE, "state": "logout-state", **parameters}
        return self.party.browser.open("/connect/logout?" + wire.form_body(parameters).decode())

    def is_gone(self):
        """Whether the provider knows the browser no more."""
        self.party.open(prompt="none")
        return self.party.answer().get("error") == "login_required"

    def is_asked(self, **parameters):
        """The person is asked, signs out, and stays with the provider."""
        browser = self.logout(**parameters)
        assert browser.left_for is None and browser.page.step == "sign-out", browser.answer
        assert not self.is_gone(), "nobody has confirmed"
        browser = self.logout(**parameters).submit("continue")
        assert browser.left_for is None and browser.page.step == "signed-out", browser.answer
        assert self.is_gone()


@LOGOUT.module("oidcc-rp-initiated-logout-discovery-endpoint-verification")
def _(suite):
    assert suite.metadata["end_session_endpoint"] == f"{suite.realm.issuer}/connect/logout"
    endpoints_are_https(suite.metadata)


@LOGOUT.module("oidcc-rp-initiated-logout")
def _(suite):
    signed_in = SignedIn(suite)
    assert signed_in.logout().left_for == f"{GOODBYE}?state=logout-state"
    assert signed_in.is_gone()


@LOGOUT.module("oidcc-rp-initiated-logout-bad-post-logout-redirect-uri")
def _(suite):
    SignedIn(suite).is_asked(post_logout_redirect_uri=f"{GOODBYE}/unregistered")


@LOGOUT.module("oidcc-rp-initiated-logout-modified-id-token-hint")
def _(suite):
    signed_in = SignedIn(suite)
    header, payload, signature = signed_in.hint.split(".")
    claims = jose.unb64url(payload).decode().replace('"sub":"', '"sub":"x')
    signed_in.is_asked(id_token_hint=f"{header}.{jose.b64url(claims.encode())}.{signature}")


@LOGOUT.module("oidcc-rp-initiated-logout-no-id-token-hint")
def _(suite):
    SignedIn(suite).is_asked(id_token_hint=None)


@LOGOUT.module("oidcc-rp-initiated-logout-no-params")
def _(suite):
    SignedIn(suite).is_asked(id_token_hint=None, post_logout_redirect_uri=None, state=None)


@LOGOUT.module("oidcc-rp-initiated-logout-no-post-logout-redirect-uri")
def _(suite):
    signed_in = SignedIn(suite)
    browser = signed_in.logout(post_logout_redirect_uri=None)
    assert browser.left_for is None and browser.page.step == "signed-out", browser.answer
    assert signed_in.is_gone()


@LOGOUT.module("oidcc-rp-initiated-logout-no-state")
def _(suite):
    signed_in = SignedIn(suite)
    assert signed_in.logout(state=None).left_for == GOODBYE
    assert signed_in.is_gone()


@LOGOUT.module("oidcc-rp-initiated-logout-only-state")
def _(suite):
    SignedIn(suite).is_asked(id_token_hint=None, post_logout_redirect_uri=None)


@LOGOUT.module("oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri")
def _(suite):
    SignedIn(suite).is_asked(post_logout_redirect_uri=f"{GOODBYE}?foo=bar")


@LOGOUT.module("oidcc-rp-initiated-logout-bad-id-token-hint")
def _(suite):
    SignedIn(suite).is_asked(id_token_hint="bad")


@BACK_CHANNEL.module("oidcc-backchannel-logout-discovery-endpoint-verification")
def _(suite):
    assert suite.metadata["backchannel_logout_supported"] is True and suite.metadata["backchannel_logout_session_supported"] is True
    endpoints_are_https(suite.metadata)


@BACK_CHANNEL.module("oidcc-backchannel-rp-initiated-logout")
def _(suite):
    receiver = Receiver()
    try:
        suite.world.admin.call("put_logout_uri", suite.realm.slug, suite.realm.client("api"), receiver.uri, "backchannel")
        suite.world.settle()
        signed_in = SignedIn(suite)
        identity = jose.parts(signed_in.hint)[1]
        assert signed_in.logout().left_for == f"{GOODBYE}?state=logout-state"
        header, claims = jose.verify(receiver.token(), suite.realm.app("api").get("/.well-known/jwks").json())
        assert header["alg"] != "none" and all(claims[name] == identity[name] for name in ("iss", "aud", "sub", "sid"))
        assert claims["events"] == {EVENT: {}} and claims["jti"] and "nonce" not in claims
        assert claims["iat"] <= time.time() + 5 and claims["exp"] > time.time()
        assert signed_in.is_gone()
    finally:
        suite.world.admin.call("delete_logout_uri", suite.realm.slug, suite.realm.client("api"), receiver.uri, "backchannel")
        suite.world.settle()
        receiver.close()
