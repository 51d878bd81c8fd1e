"""The authorization endpoint and pushed requests: which request gets which answer."""

import concurrent.futures
import re
import secrets
import urllib.parse

import pytest

from harness import wire
from harness.codeflow import REDIRECT, Flow, challenge_of, hosted, page_error, refused, response

S256 = challenge_of("v" * 43)


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    made = hosted(world.realm())
    made.world.admin.call("put_client", made.slug, made.client("api"), require_pkce=False)
    made.world.settle()
    return made


@pytest.fixture(scope="module")
def signed_in(realm):
    """A browser of a user who is signed in."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    return flow


def test_a_signed_in_browser_gets_a_code_at_once(realm, signed_in):
    """Exactly code, state and iss, and the state byte for byte; a POST is answered by the GET of the same request."""
    members = response(signed_in.authorize())
    assert (set(members), members["state"], members["iss"]) == ({"code", "state", "iss"}, "s t/ä", realm.issuer)
    body = wire.form_body(signed_in.request()).decode()
    answer = signed_in.app.post("/connect/authorize", signed_in.request())
    assert (answer.status, answer.header("location")) == (303, f"{realm.issuer}/connect/authorize?{body}")
    assert "code" in response(signed_in.authorize(query=body))


@pytest.mark.parametrize("changes, error", [
    ({"response_type": None}, "invalid_request"), ({"response_type": "token"}, "unsupported_response_type"),
    ({"response_type": "code id_token"}, "unsupported_response_type"), ({"response_type": "code "}, "unsupported_response_type"),
    ({"response_type": "CODE"}, "unsupported_response_type"), ({"response_type": "id_token"}, "unsupported_response_type"),
    ({"response_mode": "fragment"}, "invalid_request"), ({"response_mode": "web_message"}, "invalid_request"),
    ({"request": "eyJ"}, "request_not_supported"), ({"request_uri": "https://rp.example/r"}, "request_uri_not_supported"),
    ({"registration": "{}"}, "registration_not_supported"),
    ({"code_challenge": None}, "invalid_request"), ({"code_challenge_method": None}, "invalid_request"),
    ({"code_challenge_method": "plain"}, "invalid_request"), ({"code_challenge_method": "s256"}, "invalid_request"),
    ({"code_challenge": S256[:-1]}, "invalid_request"), ({"code_challenge": S256 + "A"}, "invalid_request"),
    ({"code_challenge": S256[:-1] + "="}, "invalid_request"), ({"code_challenge": "+" + S256[1:]}, "invalid_request"),
    ({"scope": "openid nothing"}, "invalid_scope"), ({"scope": "openid switched.off"}, "invalid_scope"),
    ({"scope": "openid forbidden.read"}, "invalid_scope"), ({"scope": 'openid "x"'}, "invalid_scope"),
    ({"scope": "openid " + "x" * 1018}, "invalid_scope"), ({"scope": "openid verify:email profile"}, "invalid_scope"),
    ({"resource": "https://foreign.example"}, "invalid_target"), ({"resource": "nothing"}, "invalid_target"),
    ({"nonce": "n" * 513}, "invalid_request"), ({"prompt": "none login"}, "invalid_request"), ({"prompt": "foo"}, "invalid_request"),
    ({"prompt": "login login"}, "invalid_request"), ({"prompt": "create"}, "invalid_request"),
    ({"max_age": "-1"}, "invalid_request"), ({"max_age": "1.5"}, "invalid_request"), ({"max_age": "abc"}, "invalid_request"),
    ({"max_age": "9" * 20}, "invalid_request"), ({"login_hint": "x" * 321}, "invalid_request"), ({"dpop_jkt": S256[:42]}, "invalid_request"),
    ({"id_token_hint": "eyJhbGciOiJub25lIn0.e30."}, "invalid_request"), ({"id_token_hint": "x" * 5000}, "invalid_request"),
])
def test_a_fault_is_told_to_the_redirect_uri(signed_in, changes, error):
    """With state and iss, whether the request is sent or pushed; and nothing is stored."""
    members = response(signed_in.authorize(**changes))
    assert (members["error"], members["state"], members["iss"]) == (error, "s t/ä", signed_in.realm.issuer)
    pushed = signed_in.push(**changes)
    assert pushed.status == 400 and "request_uri" not in pushed.json()
    if "request_uri" not in changes:
        assert pushed.error == error


def test_a_state_that_is_too_long_is_refused_without_it(signed_in):
    """2,048 bytes come back, of any UTF-8; more are refused; none leaves no member."""
    long = "ä" * 1023 + "&="
    assert response(signed_in.authorize(state=long))["state"] == long
    members = response(signed_in.authorize(state="x" * 2049))
    assert members["error"] == "invalid_request" and "state" not in members
    assert "state" not in response(signed_in.authorize(state=None))
    hostile = "x&iss=https://evil.example\r\nSet-Cookie: a=b\"><script>"
    assert response(signed_in.authorize(state=hostile))["state"] == hostile


@pytest.mark.parametrize("changes", [
    {"ui_locales": "xx zz"}, {"ui_locales": "<script>"}, {"claims_locales": "se", "display": "popup", "claims": "{}"},
    {f"foo{number}": "bar" for number in range(50)}, {"acr_values": "1 2"}, {"login_hint": "garbage"}, {"scope": None},
    {"nonce": None}, {"prompt": "none"}, {"max_age": "10000"}, {"acr_values": "urn:postern:acr:email"},
])
def test_what_is_not_known_or_needs_nothing_changes_nothing(signed_in, changes):
    """A code all the same."""
    assert "code" in response(signed_in.authorize(**changes))


@pytest.mark.parametrize("changes, error", [
    ({"client_id": None}, "invalid_client"), ({"client_id": "nobody"}, "invalid_client"), ({"client_id": "disabled"}, "invalid_client"),
    ({"redirect_uri": None}, "invalid_redirect_uri"), ({"redirect_uri": REDIRECT + "/"}, "invalid_redirect_uri"),
    ({"redirect_uri": REDIRECT + "?x=1"}, "invalid_redirect_uri"), ({"redirect_uri": "https://APP.a.example/cb"}, "invalid_redirect_uri"),
    ({"redirect_uri": "https://app.a.example:443/cb"}, "invalid_redirect_uri"), ({"redirect_uri": "https://app.a.example/%63b"}, "invalid_redirect_uri"),
    ({"redirect_uri": "http://app.a.example/cb"}, "invalid_redirect_uri"), ({"redirect_uri": "https://app.a.example@evil/cb"}, "invalid_redirect_uri"),
    ({"request_uri": "urn:ietf:params:oauth:request_uri:" + "x" * 43}, "invalid_request_uri"),
    ({"request_uri": "urn:ietf:params:oauth:request_uri:x"}, "invalid_request_uri"),
])
def test_what_must_not_be_redirected_is_a_page(realm, signed_in, changes, error):
    """400, no Location; unknown clients and those of other realms look alike."""
    if changes.get("client_id") == "disabled":
        realm.world.admin.call("put_client", realm.slug, realm.client("disabled"), enabled=False)
        realm.world.settle()
        changes = {"client_id": realm.client("disabled")}
    assert page_error(signed_in.authorize(**changes)) == error


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "scope", "code_challenge", "request_uri", "nonce", "prompt"])
def test_a_repeated_parameter_is_a_page_that_reflects_nothing(signed_in, name):
    """RFC 6749 §3.1, whether the values differ or not."""
    for value in ("twice-7", "other-8"):
        query = wire.form_body([*signed_in.request(**{name: "twice-7"}).items(), (name, value)]).decode()
        answer = signed_in.authorize(query=query)
        assert page_error(answer) == "invalid_request"
        assert b"twice-7" not in answer.body and b"other-8" not in answer.body


@pytest.mark.parametrize("value", ["%00", "%ff", "%c0%af", "%G1", "%"])
def test_a_broken_encoding_is_a_page(signed_in, value):
    """In any parameter."""
    query = wire.form_body(signed_in.request(state=None)).decode()
    assert page_error(signed_in.authorize(query=f"{query}&state={value}")) == "invalid_request"
    assert page_error(signed_in.authorize(query=f"{query}&other={value}")) == "invalid_request"


def test_a_long_request_is_stored_first(signed_in):
    """A query of 8 KiB is read, a longer one is 414; a POST of any length up to 64 KiB comes as a short GET."""
    query = wire.form_body(signed_in.request()).decode()
    padding = "&pad=" + "x" * (8192 - len(query) - 5)
    assert "code" in response(signed_in.authorize(query=query + padding))
    answer = signed_in.authorize(query=query + padding + "x")
    assert answer.status == 414 and b'data-error="invalid_request"' in answer.body, answer
    answer = signed_in.app.post("/connect/authorize", signed_in.request(pad="x" * 9000))
    assert answer.status == 303 and len(answer.header("location")) < 300
    assert "code" in response(signed_in.authorize(query=answer.header("location").split("?", 1)[1]))
    answer = signed_in.app.post("/connect/authorize", {"pad": "x" * 65536})
    assert answer.status == 413 and b'data-error="invalid_request"' in answer.body, answer


def test_form_post_is_a_page_that_posts_the_same_members(realm, signed_in):
    """Nothing of the answer is in a URL; errors come the same way."""
    answer = signed_in.authorize(response_mode="form_post", state='"><script>')
    assert answer.status == 200 and answer.header("location") is None and "no-store" in answer.header("cache-control")
    text = answer.body.decode()
    assert f'action="{REDIRECT}"' in text and 'name="code"' in text and f'value="{realm.issuer}"' in text
    assert "<script>" not in text.replace("&quot;", "") or "&lt;script&gt;" in text
    assert 'value="login_required"' in Flow(realm).authorize(response_mode="form_post", prompt="none").body.decode()


def test_a_confidential_client_may_do_without_pkce(realm):
    """The code then needs the redirect URI."""
    flow = Flow(realm, "api")
    flow.sign_in(realm.user())
    code = flow.code(code_challenge=None, code_challenge_method=None, nonce=None)
    assert flow.exchange(code, code_verifier=None, redirect_uri=None).error == "invalid_grant"
    assert flow.exchange(code).error == "invalid_grant"
    answer = flow.exchange(code, code_verifier=None)
    assert answer.status == 200, answer


def test_without_a_session_a_page_signs_in_and_prompt_none_is_refused(realm):
    """Unknown, foreign and forged cookies are none."""
    flow = Flow(realm)
    email = realm.user()
    for cookie in (None, "x", "pss_" + secrets.token_urlsafe(32), "pss_" + "A" * 43):
        flow.cookie = cookie
        assert flow.authorize().status == 200
        assert refused(flow.authorize(prompt="none")) == "login_required"
    flow.sign_in(email)
    twice = {"Cookie": f"__Host-postern-session={flow.cookie}; __Host-postern-session={flow.cookie}"}
    assert refused(flow.authorize(prompt="none", headers=twice)) == "login_required"
    assert "code" in response(flow.authorize(prompt="none"))


def test_prompt_and_max_age_decide_when_a_session_is_enough(realm, world):
    """OpenID Connect Core §3.1.2.1."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    for changes in ({"prompt": "login"}, {"prompt": "select_account"}, {"prompt": "consent"}, {"max_age": "0"}):
        assert flow.authorize(**changes).status == 200, changes
    assert refused(flow.authorize(prompt="none", max_age="0")) == "login_required"
    assert refused(flow.authorize(prompt="none", acr_values="phr")) == "interaction_required"
    first = response(flow.authorize(max_age="100"))
    assert "code" in first
    world.time_travel(101)
    assert refused(flow.authorize(prompt="none", max_age="100")) == "login_required"
    assert "code" in response(flow.authorize(prompt="none", max_age="10000"))


def test_an_id_token_hint_names_the_user(realm):
    """Of this user, of another, of another client; expired ones count."""
    one, two = Flow(realm), Flow(realm)
    one.sign_in(realm.user())
    two.sign_in(realm.user())
    mine, other = one.tokens()["id_token"], two.tokens()["id_token"]
    assert "code" in response(one.authorize(prompt="none", id_token_hint=mine))
    assert refused(one.authorize(prompt="none", id_token_hint=other)) == "login_required"
    stranger = Flow(realm, "app-2")
    assert refused(stranger.authorize(id_token_hint=mine)) == "invalid_request"


@pytest.mark.parametrize("uri", ["com.example.app:/cb", "com.example.app://cb", "http://127.0.0.1/cb", "http://localhost"])
def test_an_app_never_gets_a_code_silently(realm, uri):
    """RFC 8252 §8.6: any app could have begun the request."""
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("app"), uri)
    realm.world.settle()
    flow = Flow(realm, redirect_uri=uri)
    assert refused(flow.authorize(prompt="none"), uri) == "login_required"
    flow.sign_in(realm.user())
    assert flow.authorize().status == 200
    assert refused(flow.authorize(prompt="none"), uri) == "interaction_required"


@pytest.mark.parametrize("asked, known", [
    ("http://127.0.0.1:1/cb", True), ("http://127.0.0.1:65535/cb", True), ("http://127.0.0.1:65536/cb", False),
    ("http://127.0.0.1:0/cb", False), ("http://127.0.0.1:0x50/cb", False), ("http://127.0.0.1:80@evil/cb", False), ("http://127.1/cb", False),
    ("http://2130706433/cb", False), ("http://[::1]:5/cb", False), ("http://127.0.0.1:5/other", False), ("http://localhost:8080", True),
    ("http://localhost:8080/", False), ("http://localhost.evil:80", False),
])
def test_a_loopback_uri_of_a_public_client_matches_with_any_port(realm, asked, known):
    """RFC 8252 §7.3; the hosts are not equal to each other."""
    for uri in ("http://127.0.0.1/cb", "http://localhost"):
        realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("app-2"), uri)
        realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("api"), uri)
    realm.world.settle()
    answer = Flow(realm, "app-2", redirect_uri=asked).authorize()
    assert (answer.status == 200) if known else (page_error(answer) == "invalid_redirect_uri")
    assert page_error(Flow(realm, "api", redirect_uri=asked).authorize()) == "invalid_redirect_uri"


def test_a_client_without_the_grant_or_that_must_push_is_told(realm):
    """unauthorized_client; invalid_request."""
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("no-refresh"), REDIRECT)
    realm.put_client("pushes", "gt:authorization_code", require_par=True)
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("pushes"), REDIRECT)
    realm.world.settle()
    assert refused(Flow(realm, "no-refresh").authorize(scope="openid")) == "unauthorized_client"
    flow = Flow(realm, "pushes")
    flow.sign_in(realm.user())
    assert refused(flow.authorize(scope="openid")) == "invalid_request"
    pushed = flow.push(scope="openid").json()["request_uri"]
    query = wire.form_body({"client_id": flow.app.client_id, "request_uri": pushed}).decode()
    assert "code" in response(flow.authorize(query=query))
    long = flow.app.post("/connect/authorize", flow.request(scope="openid", pad="x" * 9000))
    assert refused(long) == "invalid_request", "what the endpoint stores itself is not pushed"


def short(flow, uri):
    """The request that names a pushed one."""
    return flow.authorize(query=wire.form_body({"client_id": flow.app.client_id, "request_uri": uri, "state": "other", "scope": "x"}).decode())


@pytest.mark.parametrize("client", ["app", "api"])
def test_a_pushed_request_is_answered_once(realm, client):
    """201; only what was pushed counts; it may be opened again until it was answered, by a code or by an error."""
    flow = Flow(realm, client)
    email = realm.user()
    answer = flow.push()
    assert (answer.status, answer.json()["expires_in"]) == (201, 120)
    uri = answer.json()["request_uri"]
    assert uri.startswith("urn:ietf:params:oauth:request_uri:") and len(uri) >= 34 + 43
    assert short(flow, uri).status == 200 and short(flow, uri).status == 200
    flow.sign_in(email)
    assert response(short(flow, uri))["state"] == "s t/ä"
    assert page_error(short(flow, uri)) == "invalid_request_uri"
    other = Flow(realm, client)
    silent = other.push(prompt="none").json()["request_uri"]
    assert refused(short(other, silent)) == "login_required"
    assert page_error(short(other, silent)) == "invalid_request_uri"


def test_a_pushed_request_is_its_clients_for_two_minutes(realm, world):
    """Late, foreign and altered ones look alike, but for the way back to the client that the request named."""
    flow = Flow(realm)
    uri = flow.push().json()["request_uri"]
    answers = [short(Flow(realm, "app-2"), uri), short(flow, uri[:-1] + ("A" if uri[-1] != "A" else "B"))]
    late = flow.push().json()["request_uri"]
    world.time_travel(121)
    answers.append(short(flow, late))
    assert {page_error(answer) for answer in answers} == {"invalid_request_uri"}
    assert len({re.sub(rb'<p class="lead"><a class="button.*?</p>', b"", answer.body) for answer in answers}) == 1


def test_a_push_is_authenticated_as_a_token_request(realm):
    """And reads forms only; a request_uri cannot be pushed, nor an unregistered redirect URI."""
    api = Flow(realm, "api")
    assert (api.push(client_secret=None).status, api.push(client_secret="wrong").status) == (401, 401)
    assert Flow(realm).push(client_secret="x").status == 401
    assert (api.push(redirect_uri="https://evil.example/").status, api.push(redirect_uri="https://evil.example/").error) == (400, "invalid_request")
    flow = Flow(realm)
    assert flow.push(request_uri="urn:ietf:params:oauth:request_uri:x").error == "invalid_request"
    for method in ("GET", "PUT"):
        answer = wire.exchange(flow.app.node.port, method, "/connect/par", {"Host": flow.host})
        assert (answer.status, answer.header("allow")) == (405, "POST")
    assert flow.app.post_json("/connect/par", {}).status in (400, 415)
    assert flow.push(form={"pad": "x" * 65536}).status == 413
    assert flow.push(form=[*flow.request().items(), ("state", "again")]).status == 400


@pytest.mark.parametrize("named", [{}, {"client_id": ""}], ids=["absent", "empty"])
def test_a_client_that_authenticates_by_a_header_need_not_name_itself_in_the_form(realm, named):
    """The pushed request is the authenticated client's."""
    flow = Flow(realm, "api")
    form = {**{name: value for name, value in flow.request().items() if name != "client_id"}, **named}
    answer = flow.push(form=form, headers={"Authorization": flow.app.basic})
    assert answer.status == 201, answer
    flow.sign_in(realm.user())
    assert "code" in response(short(flow, answer.json()["request_uri"]))


def test_configuration_that_changed_after_the_push_counts(realm):
    """Redirect URI deleted; scope taken away; client disabled."""
    app = realm.put_client("changing", "gt:authorization_code", "gt:refresh_token", "scp:email")
    admin = realm.world.admin
    admin.call("put_redirect_uri", realm.slug, app.client_id, REDIRECT)
    realm.world.settle()
    flow = Flow(realm, "changing")
    uris = [flow.push().json()["request_uri"] for _ in range(3)]
    admin.run(f"SELECT admin.revoke_permission('{realm.slug}', '{app.client_id}', 'scp:email');")
    realm.world.settle()
    assert refused(short(flow, uris[0])) == "invalid_scope"
    admin.call("delete_redirect_uri", realm.slug, app.client_id, REDIRECT)
    realm.world.settle()
    assert page_error(short(flow, uris[1])) == "invalid_redirect_uri"
    admin.call("put_client", realm.slug, app.client_id, enabled=False)
    realm.world.settle()
    assert page_error(short(flow, uris[2])) == "invalid_client"


def test_of_many_browsers_that_finish_one_pushed_request_one_gets_a_code(realm):
    """Forty-eight at once."""
    flow = Flow(realm)
    uri = flow.push().json()["request_uri"]
    flow.sign_in(realm.user())
    with concurrent.futures.ThreadPoolExecutor(48) as pool:
        answers = list(pool.map(lambda _: short(flow, uri), range(48)))
    assert sorted(answer.status for answer in answers) == [303] + [400] * 47, {a.status for a in answers}


def test_parallel_silent_requests_of_one_browser_all_get_codes(realm, signed_in):
    """Distinct ones."""
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        codes = list(pool.map(lambda _: response(signed_in.authorize())["code"], range(200)))
    assert len(set(codes)) == 200


def test_pages_that_are_off_say_so(world):
    """The authorization endpoint, pushes, discovery, and a code that was issued before."""
    realm = hosted(world.realm())
    flow = Flow(realm)
    flow.sign_in(realm.user())
    code = flow.code()
    world.admin.call("set_hosted", realm.slug, False)
    world.settle()
    assert page_error(flow.authorize()) == "hosted_disabled"
    assert flow.push().error == "invalid_request"
    assert flow.exchange(code).error == "unsupported_grant_type"
    assert "authorization_endpoint" not in flow.app.get("/.well-known/openid-configuration").json()
    world.admin.call("set_hosted", realm.slug, True)
    world.settle()
    assert flow.exchange(code).status == 200


def test_discovery_names_terms_and_privacy_policy(world):
    """Those of the pages."""
    realm = hosted(world.realm())
    world.admin.call("set_branding", realm.slug, privacy_uri="https://a.example/privacy", terms_uri="https://a.example/terms")
    world.settle()
    document = Flow(realm).app.get("/.well-known/openid-configuration").json()
    assert (document["op_policy_uri"], document["op_tos_uri"]) == ("https://a.example/privacy", "https://a.example/terms")


def test_discovery_says_what_there_is(realm):
    """And the JWKS has an RS256 key beside the realm's own."""
    document = Flow(realm).app.get("/.well-known/openid-configuration").json()
    assert document["authorization_endpoint"] == f"{realm.issuer}/connect/authorize"
    assert document["pushed_authorization_request_endpoint"] == f"{realm.issuer}/connect/par"
    assert document["end_session_endpoint"] == f"{realm.issuer}/connect/logout"
    assert (document["response_types_supported"], document["response_modes_supported"]) == (["code"], ["query", "form_post"])
    assert "authorization_code" in document["grant_types_supported"] and document["code_challenge_methods_supported"] == ["S256"]
    assert document["authorization_response_iss_parameter_supported"] is True
    assert [document[name] for name in (
        "request_parameter_supported", "request_uri_parameter_supported", "claims_parameter_supported",
        "require_pushed_authorization_requests")] == [False] * 4
    assert "op_policy_uri" not in document and "op_tos_uri" not in document
    assert {"openid", "phone", "verify:email"} <= set(document["scopes_supported"])
    for _ in range(100):
        keys = Flow(realm).app.get("/.well-known/jwks").json()["keys"]
        if {"RS256", "ES256"} <= {key["alg"] for key in keys}:
            break
        realm.world.pause()
    assert {"RS256", "ES256"} <= {key["alg"] for key in keys}


def test_too_many_requests_of_one_source_get_a_page(world):
    """429 with Retry-After; another source goes on."""
    realm = hosted(world.realm())
    realm.limit("authorize", "source", 3, per="1 minute", burst=3)
    flow = Flow(realm)
    answers = [flow.authorize() for _ in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
    assert int(answers[-1].header("retry-after")) > 0 and answers[-1].header("content-type").startswith("text/html")


def test_the_endpoint_is_no_resource_of_web_pages(signed_in):
    """Methods, and no CORS."""
    for method, status in (("PUT", 405), ("DELETE", 405), ("OPTIONS", 405)):
        answer = wire.exchange(
            signed_in.app.node.port, method, "/connect/authorize", {"Host": signed_in.host, "Origin": "https://x.example",
                                                                    "Access-Control-Request-Method": "GET"})
        assert answer.status == status
        assert answer.header("access-control-allow-origin") is None
    assert signed_in.authorize(method="HEAD").body == b""
    assert urllib.parse.urlsplit(signed_in.authorize().header("location")).fragment == ""
