"""Clients that others wrote, as they are installed: each signs a user in through the pages, refreshes, and signs out."""

import http.server
import json
import pathlib
import threading
import time
import urllib.parse

import pytest

from harness import apache, iddawc, jose, oidc_agent, report, settings
from harness.jose import b64url
from harness.provider import Provider
from test_private_key_jwt import Key

pytestmark = pytest.mark.slow
CALLBACK = "https://app.a.example/cb"
GOODBYE = "https://app.a.example/goodbye"
OMNIAUTH = pathlib.Path("/usr/share/rubygems-integration/all/gems/gitlab-omniauth-openid-connect-0.10.0")


def want(package):
    """Skips the test, and says so, unless PyPI's package is there."""
    if not (settings.CLIENTS / package).exists():
        message = f"{package} is absent: scripts/test installs it to .build/clients, or set POSTERN_CLIENTS"
        report.say("third-party clients: " + message)
        pytest.skip(message)


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """A server with TLS whose issuer these clients can reach."""
    made = Provider(tmp_path_factory.mktemp("provider"))
    try:
        yield made.open()
    finally:
        made.close()


def is_signed_in(provider, browser, client):
    """Whether the provider still knows the browser."""
    query = {"client_id": client["client_id"], "redirect_uri": client["redirect_uri"], "response_type": "code", "scope": "openid",
             "prompt": "none", "code_challenge": "A" * 43, "code_challenge_method": "S256"}
    browser.open(f"{provider.issuer}/connect/authorize?{urllib.parse.urlencode(query)}")
    return "code" in browser.members


def sign_out(provider, browser, id_token):
    """As an application without a function for it does."""
    browser.open(f"{provider.issuer}/connect/logout?{urllib.parse.urlencode({'id_token_hint': id_token})}")
    assert browser.page.step == "signed-out", browser.text


def test_authlib_in_flask(provider):
    """A web application: PKCE, nonce, issuer of the response, refresh, RP-initiated logout with state; then single sign-on is over."""
    want("authlib")
    site = provider.site()
    client = provider.client("authlib", f"{site}/callback", ("post-logout", f"{site}/goodbye"))
    email, user = provider.user("authlib")
    with provider.program("authlib_site", **client) as program:
        assert program.hear() == {"listening": True}
        browser = provider.browser().open_when_up(f"{site}/login").sign_in(provider.world.mailbox, email)
        assert browser.url == f"{site}/me", browser.text
        assert json.loads(browser.text) == {"iss": provider.issuer, "sub": user, "amr": ["otp"]}
        renewed = json.loads(browser.open(f"{site}/refresh").text)
        assert renewed["rotated"] and (renewed["userinfo"]["sub"], renewed["userinfo"]["email"]) == (user, email)
        assert browser.open(f"{site}/login").url == f"{site}/me", "single sign-on"
        browser.open(f"{site}/logout")
        assert browser.url.startswith(f"{site}/goodbye") and json.loads(browser.text) == {"signed_out": True, "query": ["state"]}
        assert browser.open(f"{site}/login").page.step == "address"


@pytest.mark.parametrize("method", ["client_secret_basic", "private_key_jwt"])
def test_requests_oauth2client_with_pushed_requests(provider, method):
    """PAR, the check of `iss`, the ID token by the library's own rules, rotation, revocation. Its assertions name the endpoint asked."""
    want("requests_oauth2client")
    key = Key("ES256", "k1")
    by_key = method == "private_key_jwt"
    private = {**key.jwk(), "d": b64url(key.private.private_numbers().private_value.to_bytes(32, "big"))} if by_key else None
    client = provider.client(f"requests-oauth2client-{method}", CALLBACK, jwks=[key.jwk()] if by_key else None, require_par=True)
    email, user = provider.user(f"requests-oauth2client-{method}")
    browser = provider.browser(CALLBACK)
    with provider.program("requests_oauth2client_cli", private_key=private, **client) as program:
        url = program.hear()["open"]
        assert set(urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)) == {"client_id", "request_uri"}
        program.tell(arrived=browser.open(url).sign_in(provider.world.mailbox, email).arrived)
        done = program.hear()
        assert (done["sub"], done["email"], done["rotated"], done["renewed"]) == (user, email, True, user)
        sign_out(provider, browser, done["id_token"])
        program.tell()
        assert program.hear() == {"after": "InvalidGrant"}


def test_idpyoidc(provider):
    """A strict relying party: discovery, PKCE, ID token, userinfo, refresh, RP-initiated logout."""
    want("idpyoidc")
    client = provider.client("idpyoidc", CALLBACK, ("post-logout", GOODBYE))
    email, user = provider.user("idpyoidc")
    browser = provider.browser(CALLBACK, GOODBYE)
    with provider.program("idpyoidc_cli", goodbye=GOODBYE, authority=str(provider.certificate), **client) as program:
        browser.open(program.hear()["open"]).sign_in(provider.world.mailbox, email)
        assert browser.page.step == "consent", "it sends prompt=consent with offline_access"
        program.tell(arrived=browser.submit("allow").arrived)
        assert program.hear() == {"sub": user, "email": email, "rotated": True, "renewed": user}
        browser.open(program.hear()["open"])
        assert browser.arrived.startswith(GOODBYE + "?state="), browser.text
    assert not is_signed_in(provider, browser, client)


def test_google_auth_oauthlib_on_loopback(provider):
    """A program without a secret, on any port of localhost: its answer arrives there; a second time it takes one tap, never none."""
    want("google_auth_oauthlib")
    client = provider.client("google-auth-oauthlib", "http://localhost/", client_type="public")
    email, user = provider.user("google-auth-oauthlib")
    browser = provider.browser()
    for again in (False, True):
        with provider.program("google_auth_cli", **client) as program:
            browser.open(program.hear()["open"])
            if again:
                assert browser.page.step == "continue-as", browser.text
                browser.submit("continue")
            else:
                browser.sign_in(provider.world.mailbox, email)
            assert browser.status == 200 and set(browser.members) == {"code", "state", "iss"}, (browser.url, browser.text)
            done = program.hear()
            assert (done["sub"], done["email"], done["rotated"], done["renewed"]) == (user, email, True, user)
            if again:
                sign_out(provider, browser, done["id_token"])
                program.tell()
                assert program.hear() == {"after": "RefreshError"}


def test_msal_on_loopback(provider):
    """A program without a secret and without a path in its redirect URI, which takes a form; its cache refreshes until the user has signed out."""
    want("msal")
    client = provider.client("msal", "http://localhost", client_type="public")
    email, user = provider.user("msal")
    browser = provider.browser()
    with provider.program("msal_cli", **client) as program:
        browser.open(program.hear()["open"]).sign_in(provider.world.mailbox, email)
        assert browser.page.step == "form-post", browser.text
        assert browser.submit().status == 200, browser.text
        done = program.hear()
        assert (done["claims"]["sub"], done["claims"]["iss"]) == (user, provider.issuer), done
        first, second = done["access_tokens"]
        assert first != second and provider.userinfo(second)["email"] == email
        sign_out(provider, browser, done["id_token"])
        program.tell()
        assert program.hear()["after"]["error"] == "invalid_grant"


def test_oidc_agent_with_a_private_use_scheme(provider):
    """A program in C: consent, because it asks for it; refresh; the refresh token is revoked when the account is removed."""
    if oidc_agent.AGENT is None:
        report.say("third-party clients: oidc-agent is absent: apt-get install oidc-agent-cli")
        pytest.skip("apt-get install oidc-agent-cli")
    client = provider.client("oidc-agent", oidc_agent.REDIRECT, client_type="public")
    email, user = provider.user("oidc-agent")
    browser = provider.browser()
    with oidc_agent.OIDCAgent(client, provider.environment()) as agent:
        browser.open(agent.begin(provider.certificate)).sign_in(provider.world.mailbox, email)
        assert browser.page.step == "consent", browser.text
        agent.finish(browser.submit("allow").arrived)
        first, second = agent.token(), agent.token(valid_for=100_000)
        assert first != second
        assert (provider.userinfo(second)["sub"], provider.userinfo(second)["email"]) == (user, email)
        agent.delete()
    assert provider.userinfo(second) is None


def test_mozilla_django_oidc(provider):
    """A Django application: sign-in, the silent renewal of its middleware by `prompt=none`, RP-initiated logout."""
    want("mozilla_django_oidc")
    site = provider.site()
    client = provider.client("django", f"{site}/oidc/callback/", ("post-logout", f"{site}/goodbye"))
    email, _ = provider.user("django")
    with provider.program("django_site", **client) as program:
        assert program.hear() == {"listening": True}
        browser = provider.browser().open_when_up(f"{site}/me").sign_in(provider.world.mailbox, email)
        assert browser.url == f"{site}/me" and json.loads(browser.text)["email"] == email, browser.text
        before = len(browser.trail)
        browser.open(f"{site}/age").open(f"{site}/me")
        assert json.loads(browser.text)["email"] == email
        assert [url for url in browser.trail[before:] if "prompt=none" in url], "the middleware asked the provider"
        browser.open(f"{site}/oidc/logout/")
        assert browser.url == f"{site}/goodbye" and json.loads(browser.text) == {"signed_in": False}
        assert browser.open(f"{site}/me").page.step == "address"


def test_mod_auth_openidc_in_apache(provider):
    """form_post, PKCE, refresh, RP-initiated logout; and an administrator's sign-out ends Apache's session through the back channel."""
    if (problem := apache.missing()) is not None:
        report.say("third-party clients: mod_auth_openidc is absent: " + problem)
        pytest.skip(problem)
    site = provider.site()
    back = f"{site}/callback"
    client = provider.client(
        "apache", back, ("post-logout", f"{site}/goodbye"), ("backchannel", f"{back}?logout=backchannel"))
    email, user = provider.user("apache")
    server = apache.Apache(client, provider.certificate)
    try:
        browser = provider.browser()

        def arrive():
            assert browser.page.step == "form-post", (browser.text, server.log())
            browser.submit()
            assert "private" in browser.text and browser.url == f"{site}/private/", (browser.text, server.log())
            return json.loads(browser.open(f"{back}?info=json").text)

        browser.open(f"{site}/private/").sign_in(provider.world.mailbox, email)
        info = arrive()
        assert (info["id_token"]["sub"], info["userinfo"]["email"]) == (user, email)
        query = urllib.parse.urlencode({"refresh": f"{site}/private/", "access_token": info["access_token"]})
        assert browser.open(f"{back}?{query}").url == f"{site}/private/", (browser.text, server.log())
        renewed = json.loads(browser.open(f"{back}?info=json").text)
        assert renewed["access_token"] != info["access_token"] and renewed["refresh_token"] != info["refresh_token"]

        browser.open(f"{back}?{urllib.parse.urlencode({'logout': f'{site}/goodbye'})}")
        assert browser.url == f"{site}/goodbye" and "goodbye" in browser.text, (browser.url, browser.text)
        assert browser.open(f"{site}/private/").page.step == "address"

        browser.sign_in(provider.world.mailbox, email)
        arrive()
        provider.world.admin.call("sign_out_everywhere", provider.slug, email)
        deadline = time.monotonic() + 20
        while (ended := browser.open(f"{site}/private/")).url.startswith(site):
            assert time.monotonic() < deadline, f"Apache's session lives: {server.log()}"
            time.sleep(0.1)
        assert ended.page.step == "address"
    finally:
        server.close()


def test_omniauth_in_ruby(provider):
    """A Rack application whose strategy knows no PKCE: discovery, nonce, the ID token and userinfo; its logout has no hint, so the page asks."""
    if not OMNIAUTH.exists():
        report.say("third-party clients: OmniAuth is absent: apt-get install ruby-omniauth-openid-connect ruby-webrick")
        pytest.skip("apt-get install ruby-omniauth-openid-connect ruby-webrick")
    site = provider.site()
    client = provider.client("omniauth", f"{site}/auth/op/callback", ("post-logout", f"{site}/goodbye"), require_pkce=False)
    email, user = provider.user("omniauth")
    with provider.program("omniauth_site", goodbye=f"{site}/goodbye", **client) as program:
        assert program.hear() == {"listening": True}
        browser = provider.browser().open_when_up(f"{site}/auth/op").sign_in(provider.world.mailbox, email)
        assert browser.url.startswith(f"{site}/auth/op/callback"), browser.text
        assert json.loads(browser.text) == {"sub": user, "email": email, "expires": 900, "refresh": True}, browser.text
        assert [url for url in browser.trail if "nonce=" in url and "code_challenge" not in url]
        assert json.loads(browser.open(f"{site}/auth/op").text)["sub"] == user, "single sign-on"
        browser.open(f"{site}/auth/op/logout")
        assert browser.page.step == "sign-out", browser.text
        assert browser.submit("continue").page.step == "signed-out", browser.text
        assert browser.open(f"{site}/auth/op").page.step == "address", browser.text


class ToolServer:
    """An MCP server as far as its authorization goes: it names its authorization server, and takes whatever access token comes."""

    def __init__(self, issuer, scope):
        server = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            """GET."""

            def do_GET(self):  # pylint: disable=invalid-name
                """The resource, or what it is protected by."""
                server.asked.append(self.path)
                token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
                if self.path.startswith("/.well-known/oauth-protected-resource"):
                    self.answer(200, {"resource": server.url, "authorization_servers": [issuer], "scopes_supported": [scope]})
                elif token:
                    self.answer(200, {"aud": jose.parts(token)[1]["aud"]})
                else:
                    self.answer(401, {}, ("WWW-Authenticate", f'Bearer resource_metadata="{server.origin}/.well-known/oauth-protected-resource/mcp"'))

            def answer(self, status, document, *fields):
                """JSON."""
                body = json.dumps(document).encode()
                self.send_response(status)
                for name, value in (("Content-Type", "application/json"), ("Content-Length", str(len(body))), *fields):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self._server.server_port}"
        self.url = f"{self.origin}/mcp"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        """Ends."""
        self._server.shutdown()
        self._server.server_close()


def test_mcp(provider):
    """An agent: the 401 of a tool's server leads it here; metadata of RFC 8414, PKCE, `iss`, a token for that server alone, refresh."""
    want("mcp")
    scope = "mcp.read"
    server = ToolServer(provider.issuer, scope)
    try:
        provider.world.admin.call("put_scope", provider.slug, scope, resources=[server.url])
        client = provider.client("mcp", "http://localhost/callback", client_type="public", access_token_type="jwt")
        provider.world.admin.call("grant_permission", provider.slug, "mcp", variadic=["scp:" + scope])
        provider.world.settle()
        client["redirect_uri"] = "http://localhost:33418/callback"
        email, _ = provider.user("mcp")
        browser = provider.browser(client["redirect_uri"])
        with provider.program("mcp_cli", server=server.url, scope=f"{scope} offline_access", authority=str(provider.certificate), **client) as program:
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url := program.hear()["open"]).query))
            assert (query["code_challenge_method"], query["resource"]) == ("S256", server.url), query
            browser.open(url).sign_in(provider.world.mailbox, email)
            if browser.page is not None and browser.page.step == "consent":
                browser.submit("allow")
            assert set(browser.members) == {"code", "state", "iss"}, browser.text
            program.tell(arrived=browser.arrived)
            done = program.hear()
        assert json.loads(done["first"]) == json.loads(done["second"]) == {"aud": server.url}, done
        assert done["rotated"] and done["tokens"][0] != done["tokens"][1] and scope in done["scope"].split()
    finally:
        server.close()


def test_iddawc_with_pushed_requests(provider):
    """A client in C, whose pushed requests have no PKCE: PAR, `state`, its check of the ID token and of `nonce`."""
    if iddawc.PROGRAM is None:
        report.say("third-party clients: idwcc is absent: apt-get install idwcc")
        pytest.skip("apt-get install idwcc")
    with iddawc.Iddawc() as program:
        client = provider.client("iddawc", program.callback, require_par=True, require_pkce=False)
        email, user = provider.user("iddawc")
        metadata = json.loads(provider.browser().open(f"{provider.issuer}/.well-known/openid-configuration").text)
        keys = json.loads(provider.browser().open(metadata["jwks_uri"]).text)
        program.session(
            issuer=provider.issuer, client_id=client["client_id"], client_secret=client["client_secret"], redirect_uri=program.callback,
            scope="openid email offline_access", response_type=iddawc.CODE, token_method=iddawc.BASIC,
            state="s" * 20, nonce="n" * 20, server_jwks=keys, remote_cert_flag=0,
            **{name: metadata[name] for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "pushed_authorization_request_endpoint")})
        browser = provider.browser(program.callback)
        url = program.begin()
        assert set(urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)) >= {"client_id", "request_uri"}, url
        first = program.finish(browser.open(url).sign_in(provider.world.mailbox, email).arrived)
        assert jose.parts(first["id_token"])[1]["sub"] == first["id_token_payload"]["sub"] == user, first
        assert first["id_token_payload"]["nonce"] == "n" * 20 and provider.userinfo(first["access_token"])["email"] == email
