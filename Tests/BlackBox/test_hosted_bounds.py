"""Authorization requests at their bounds, and in each place where a value can stand: beyond test_authorize.py and test_hosted_requests.py."""

import json
import time

import pytest

from harness import jose, wire
from harness.codeflow import REDIRECT, Flow, challenge_of, hosted, page_error, refused, response
from harness.pages_client import PageBrowser
from harness.sign_in_pages import counted_case, positive_control  # pylint: disable=unused-import  # fixtures
from test_authorize import short

S256 = challenge_of("v" * 43)
CUSTOM = "com.example.app:/cb"
PARAMETERS = ["client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "prompt", "max_age",
              "login_hint", "ui_locales", "resource", "request_uri", "id_token_hint", "acr_values", "response_mode", "display"]


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, whose client app is also an app on a device."""
    made = hosted(world.realm(), offer_passkey=False)
    for uri in (CUSTOM, "http://127.0.0.1/cb"):
        world.admin.call("put_redirect_uri", made.slug, made.client("app"), uri)
    world.settle()
    return made


@pytest.fixture(scope="module")
def signed_in(realm):
    """A browser of a user who is signed in."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    return flow


# -- requests --------------------------------------------------------------------------------------


def test_a_request_posted_by_another_site_comes_as_a_get_that_sees_the_session(signed_in):
    """The POST of another site has no cookies; the GET that it leads to has them."""
    answer = signed_in.app.post("/connect/authorize", signed_in.request(), {"Origin": "https://app.a.example", "Sec-Fetch-Site": "cross-site"})
    assert answer.status == 303 and answer.header("set-cookie") is None
    location = answer.header("location")
    assert location.startswith(f"{signed_in.realm.issuer}/connect/authorize?")
    members = response(signed_in.authorize(query=location.split("?", 1)[1], headers={"Sec-Fetch-Site": "cross-site"}))
    assert (set(members), members["state"]) == ({"code", "state", "iss"}, "s t/ä")


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_broken_encoding_is_a_page_in_every_parameter(signed_in, name):
    """NUL, what is no UTF-8, what is no hexadecimal, and what is cut off."""
    query = wire.form_body(signed_in.request(**{name: None})).decode()
    for value in ("%00", "a%00b", "%ff", "%c0%af", "%G1", "%", "%4"):
        answer = signed_in.authorize(query=f"{name}={value}&{query}")
        assert page_error(answer) == "invalid_request", (name, value)
        assert signed_in.authorize(query=f"{query}&{name}={value}").body == answer.body


def test_an_empty_state_is_none(signed_in):
    """An empty parameter counts as absent, in successes and errors."""
    assert set(response(signed_in.authorize(state=""))) == {"code", "iss"}
    assert set(response(signed_in.authorize(state="", prompt="foo"))) == {"error", "error_description", "iss"}


def test_a_nonce_comes_back_byte_for_byte_or_not_at_all(signed_in):
    """512 bytes are the longest; without one there is no claim."""
    for nonce in ("n" * 512, "ä" * 256, 'q"\\ \u202e&=+%'):
        assert jose.parts(signed_in.tokens(nonce=nonce)["id_token"])[1]["nonce"] == nonce
    assert refused(signed_in.authorize(nonce="ä" * 256 + "x")) == "invalid_request"
    assert "nonce" not in jose.parts(signed_in.tokens(nonce=None)["id_token"])[1]
    assert "nonce" not in jose.parts(signed_in.tokens(nonce="")["id_token"])[1]


@pytest.mark.parametrize("client, uri", [("app", REDIRECT), ("app", CUSTOM), ("app", "http://127.0.0.1:5/cb"), ("api", REDIRECT)])
def test_every_client_needs_a_challenge(realm, client, uri):
    """A public one on the web or on a device, and a confidential one unless an administrator says otherwise."""
    flow = Flow(realm, client, redirect_uri=uri)
    for changes in ({"code_challenge": None}, {"code_challenge": None, "code_challenge_method": None}, {"code_challenge": ""},
                    {"code_challenge_method": "S512"}, {"code_challenge_method": ""}, {"code_challenge": "/" + S256[1:]},
                    {"code_challenge": S256[:-1] + "ä"}, {"code_challenge": S256 + "="}):
        assert refused(flow.authorize(**changes), uri) == "invalid_request", changes
        assert flow.push(**changes).error == "invalid_request", changes


@pytest.mark.parametrize("how", ["no signature", "signed"])
def test_a_request_object_is_refused_whatever_it_says(signed_in, how):
    """Its claims are not read: neither its redirect URI nor its state counts."""
    claims = {"iss": signed_in.app.client_id, "aud": signed_in.realm.issuer, **signed_in.request(state="inner", redirect_uri="https://evil.example/")}
    header = {"alg": "none"} if how == "no signature" else {"alg": "HS256", "typ": "oauth-authz-req+jwt"}
    parts = [jose.b64url(json.dumps(part).encode()) for part in (header, claims)]
    parts.append("" if how == "no signature" else jose.b64url(b"s" * 32))
    members = response(signed_in.authorize(request=".".join(parts)))
    assert (members["error"], members["state"]) == ("request_not_supported", "s t/ä")
    assert signed_in.push(request=".".join(parts)).error == "request_not_supported"


def test_the_number_of_resources_decides(signed_in):
    """Thirty-two are read, thirty-three are not, whatever they name."""
    def asked(count):
        pairs = [*signed_in.request(scope="openid orders.read").items(), *[("resource", signed_in.realm.granted_resource)] * count]
        return response(signed_in.authorize(query=wire.form_body(pairs).decode())), signed_in.push(form=pairs)

    members, pushed = asked(32)
    assert "code" in members and pushed.status == 201, (members, pushed)
    members, pushed = asked(33)
    assert members["error"] == "invalid_target" and (pushed.status, pushed.error) == (400, "invalid_target")


def test_a_hint_of_sixteen_kilobytes_is_refused(signed_in):
    """By GET it is more than a request may be; by POST and pushed it comes as far as the check of its length."""
    token = "eyJhbGciOiJFUzI1NiJ9." + "A" * 16_384 + ".AAAA"
    assert signed_in.authorize(id_token_hint=token).status == 431
    assert refused(signed_in.app.post("/connect/authorize", signed_in.request(id_token_hint=token))) == "invalid_request"
    assert signed_in.push(id_token_hint=token).error == "invalid_request"


@pytest.mark.parametrize("changes", [{}, {"prompt": "login"}, {"prompt": "foo"}, {"client_id": "nobody"}, {"state": "\0"}])
def test_head_answers_as_get_without_a_body(signed_in, changes):
    """The same status and kind of answer, for a code, a page, an error and a fault; only GET has a code to give."""
    got, asked = signed_in.authorize(**changes), signed_in.authorize(method="HEAD", **changes)
    assert (asked.status, asked.body) == (got.status, b"")
    for name in ("content-type", "cache-control", "content-security-policy", "x-frame-options"):
        assert asked.header(name) == got.header(name), name


def test_the_default_limit_of_a_source_is_a_burst_of_four_hundred(world):
    """Then 1,200 in a minute."""
    flow = Flow(hosted(world.realm(limits=False)))
    started = time.monotonic()
    served = 0
    while (answer := flow.authorize()).status == 200:
        served += 1
        assert served < 4000, "no limit"
    assert answer.status == 429 and answer.header("content-type").startswith("text/html") and int(answer.header("retry-after")) > 0
    assert 400 <= served <= 401 + 20 * (time.monotonic() - started), served


# -- pushed requests -------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [
    {"redirect_uri": CUSTOM}, {"redirect_uri": "https://evil.example/"}, {"prompt": "none"}, {"prompt": "login"}, {"code_challenge": "A" * 43},
    {"code_challenge_method": "plain"}, {"response_type": "token"}, {"response_mode": "form_post"}, {"nonce": "other"}, {"max_age": "0"},
    {"resource": "https://foreign.example"}, {"scope": "forbidden.read"}, {"state": "other"},
], ids=str)
def test_a_pushed_request_counts_alone(realm, changes):
    """Only its client and its name are read."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    query = {"client_id": flow.app.client_id, "request_uri": flow.push().json()["request_uri"], **changes}
    members = response(flow.authorize(query=wire.form_body(query).decode()))
    assert (set(members), members["state"]) == ({"code", "state", "iss"}, "s t/ä")
    tokens = flow.exchange(members["code"])
    assert tokens.status == 200 and tokens.json()["scope"] == "openid email offline_access"
    assert jose.parts(tokens.json()["id_token"])[1]["nonce"] == "n-1"


def test_a_client_without_the_grant_cannot_push(realm):
    """The error of the authorization endpoint, and no request_uri."""
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("no-grants"), REDIRECT)
    realm.world.settle()
    answer = Flow(realm, "no-grants").push(scope="openid")
    assert (answer.status, answer.error) == (400, "unauthorized_client") and "request_uri" not in answer.json()


def test_what_is_pushed_and_never_opened_is_swept(world):
    """After its two minutes; what is under way stays for as long as a sign-in may last."""
    made = hosted(world.realm(), offer_passkey=False)
    flow = Flow(made)
    rows = ("SELECT count(*) FROM postern.pushed_request p JOIN postern.realm r ON r.id = p.realm_id WHERE r.slug = "
            f"'{made.slug}'")
    uris = [flow.push().json()["request_uri"] for _ in range(20)]
    assert short(flow, uris[0]).status == 200 and world.cluster.value(rows) == "20"
    world.time_travel(130)
    world.sweep_until(rows, "1")  # the one that was opened
    world.time_travel(2 * 86_400)
    world.sweep_until(rows, "0")


@pytest.mark.parametrize("posted", [False, True])
def test_a_long_request_that_was_stored_is_finished_on_the_pages(realm, posted):
    """Its name and its client travel from page to page in its place, whether the client pushed it or the endpoint stored it."""
    flow, email, state = Flow(realm), realm.user(), "ä" * 1024
    browser = PageBrowser(flow.app.node, flow.host)
    if posted:
        browser.post("/connect/authorize", flow.request(state=state, pad="x" * 9000))
    else:
        uri = flow.push(state=state).json()["request_uri"]
        browser.open("/connect/authorize?" + wire.form_body({"client_id": flow.app.client_id, "request_uri": uri}).decode())
    assert browser.page.step == "address", browser.answer
    browser.submit("continue", address=email)
    assert browser.page.step == "code", browser.answer
    browser.submit("continue", code=realm.world.mailbox.wait(email, kind="code").code)
    assert browser.members["state"] == state
    assert flow.exchange(browser.members["code"]).status == 200
