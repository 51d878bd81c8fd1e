"""Pushed requests and redirect URIs, case by case: beyond what test_authorize.py holds."""

import urllib.parse

import pytest

from harness import wire
from harness.codeflow import REDIRECT, Flow, hosted, page_error, response
from harness.pages_client import PageBrowser
from harness.realm import call
from harness.sign_in_pages import counted_case, other_realm, positive_control, Session  # pylint: disable=unused-import  # fixtures

QUERY, CUSTOM = REDIRECT + "?tenant=1", "com.example.app:/cb"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, and a client with redirect URIs of every kind."""
    made = hosted(world.realm(), offer_passkey=False)
    for uri in (QUERY, CUSTOM, "http://127.0.0.1/cb"):
        world.admin.call("put_redirect_uri", made.slug, made.client("app"), uri)
    world.settle()
    return made


# -- pushed requests -------------------------------------------------------------------------------


def opened(flow, uri):
    """A browser at a pushed request."""
    browser = PageBrowser(flow.app.node, flow.host)
    return browser.open("/connect/authorize?" + wire.form_body({"client_id": flow.app.client_id, "request_uri": uri}).decode())


def test_a_pushed_request_of_another_realm_or_of_any_length_is_none(realm, other):
    """It opens nothing there."""
    uri = Flow(realm).push().json()["request_uri"]
    assert opened(Flow(other), uri).page.error == "invalid_request_uri"
    for text in ("urn:ietf:params:oauth:request_uri:" + "A" * 4000, uri + "A", uri[:-1], uri.upper()):
        answer = opened(Flow(realm), text).answer
        assert answer.status == 400 and b'data-error="request_uri_not_supported"' not in answer.body, answer
    assert opened(Flow(realm), uri).page.step == "address"


def test_a_pushed_request_that_was_opened_in_time_is_finished_later(realm, world):
    """The two minutes are those of its opening; ten more for the person."""
    flow, email = Flow(realm), realm.user()
    uri = flow.push().json()["request_uri"]
    world.time_travel(90)
    browser = opened(flow, uri)
    assert browser.page.step == "address"
    world.time_travel(600)
    browser.submit("continue", address=email)
    browser.submit("continue", code=world.mailbox.wait(email, kind="code").code)
    assert flow.exchange(browser.members["code"]).status == 200
    assert opened(flow, uri).page.error == "invalid_request_uri"


def test_a_pushed_request_is_used_when_the_user_refuses(realm):
    """It is opened again before that, and not afterwards."""
    flow = Flow(realm)
    uri = flow.push().json()["request_uri"]
    assert opened(flow, uri).page.step == "address"
    browser = opened(flow, uri)
    assert browser.submit("cancel").members["error"] == "access_denied"
    assert opened(flow, uri).page.error == "invalid_request_uri"


def test_pushes_are_bounded_by_source_and_swept(world):
    """429 with its dimension; what was never opened is gone after its time."""
    made = hosted(world.realm())
    made.limit("par", "source", 5, per="1 minute", burst=5)
    flow = Flow(made)
    answers = [flow.push() for _ in range(7)]
    assert [answer.status for answer in answers] == [201] * 5 + [429] * 2, answers
    assert answers[-1].json()["dimension"] == "source" and int(answers[-1].header("retry-after")) > 0
    rows = ("SELECT count(*) FROM postern.pushed_request p JOIN postern.realm r ON r.id = p.realm_id WHERE r.slug = "
            f"'{made.slug}'")
    assert world.cluster.value(rows) == "5"


def test_long_requests_of_strangers_leave_a_clients_pushes_alone(world):
    """They are stored as pushed ones are, and count under their source alone."""
    made = hosted(world.realm())
    made.limit("par", "client", 5, per="1 hour", burst=5)
    stranger, client = Flow(made, "api"), Flow(made, "api")
    for _ in range(8):
        assert stranger.authorize(state="x" * 1500).status == 200
    assert [client.push().status for _ in range(6)] == [201] * 5 + [429]


def test_pushes_in_the_name_of_a_public_client_leave_its_users_alone(world):
    """Anybody can send them: they count under their source alone. Those of a confidential client are its own."""
    made = hosted(world.realm())
    made.limit("par", "client", 5, per="1 hour", burst=5)
    public = Flow(made)
    assert [public.push().status for _ in range(8)] == [201] * 8
    assert [Flow(made, "api").push().status for _ in range(6)] == [201] * 5 + [429]


# -- redirect URIs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", [
    REDIRECT + "#f", "https://app.a.example/./cb", "https://app.a.example/cb%2f..", "https://app.a.example/CB", "https://app.evil/cb",
    "HTTPS://app.a.example/cb", "https://app.a.example\\@evil/cb", "https://app.a.example/cb\t", " " + REDIRECT, QUERY + "&x=1",
    "https://app.a.example/cb?tenant=2", "com.example.app://cb", "COM.example.app:/cb", CUSTOM + "?x", CUSTOM + "/", "javascript:alert(1)//" + REDIRECT,
    "data:text/html,x", "//app.a.example/cb", "/cb", "x" * 2001,
])
def test_a_redirect_uri_that_is_not_the_registered_one_gets_a_page(realm, uri):
    """Byte for byte; nothing of it leads anywhere on the page."""
    answer = Flow(realm).authorize(redirect_uri=uri)
    assert page_error(answer) == "invalid_redirect_uri"
    assert b'href="javascript' not in answer.body and b"evil" not in answer.body


def test_a_query_of_its_own_is_kept(realm):
    """The members are appended to it."""
    flow = Flow(realm, redirect_uri=QUERY)
    flow.sign_in(realm.user())
    location = flow.authorize().header("location")
    assert location.startswith(QUERY + "&code=")
    assert flow.exchange(response(flow.authorize(), QUERY)["code"]).status == 200


def test_a_redirect_uri_that_is_deleted_gets_nothing_of_a_sign_in_under_way(realm):
    """The last form meets the present configuration."""
    uri, email = REDIRECT + "/gone", realm.user()
    realm.world.admin.call("put_redirect_uri", realm.slug, realm.client("app"), uri)
    realm.world.settle()
    session = Session(realm, redirect_uri=uri)
    session.send(email)
    code = session.code(email)
    realm.world.admin.call("delete_redirect_uri", realm.slug, realm.client("app"), uri)
    realm.world.settle()
    browser = session.browser.submit("continue", code=code)
    assert (browser.answer.status, browser.page.error) == (400, "invalid_redirect_uri") and not browser.left_for


@pytest.mark.parametrize("uri", [
    REDIRECT + "#f", "https://a:b@app.a.example/cb", "https://*.a.example/cb", "javascript:alert(1)", "data:text/html,x", "intent://x#Intent;end",
    "file:///etc/passwd", "http://example.com/cb", "https://x.example/../y", "https://x.example/a b", "https://x.example/\r", "https://bücher.example/",
    "https://x.example/" + "a" * 1990, "yourapp://", "HTTPS://x.example/", "https://x.example\\y", "",
])
def test_an_administrator_cannot_register_what_is_no_safe_target(realm, uri):
    """The message names the argument."""
    with pytest.raises(Exception, match=r"\buri\b"):
        realm.world.admin.run(call("put_redirect_uri", realm.slug, realm.client("app"), uri))
    with pytest.raises(Exception, match=r"\buri\b"):
        realm.world.admin.run(call("put_redirect_uri", realm.slug, realm.client("api"), CUSTOM))


@pytest.mark.parametrize("uri", [CUSTOM, "http://127.0.0.1:49152/cb"])
def test_an_app_gets_its_code_after_a_tap(realm, uri):
    """A signed-in browser asks first; the code then goes to exactly the URI asked for."""
    email = realm.user()
    session = Session(realm)
    session.sign_in(email)
    session.begin(redirect_uri=uri)
    assert session.browser.page.step == "continue-as" and email.encode() in session.browser.answer.body
    session.browser.submit("continue")
    left = urllib.parse.urlsplit(session.browser.left_for)
    assert session.browser.left_for.startswith(uri + "?") and not left.fragment
    assert session.flow.exchange(session.browser.members["code"], redirect_uri=uri).status == 200
