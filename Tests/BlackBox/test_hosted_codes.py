"""Codes of the authorization endpoint, case by case and by the hundred: beyond what test_code_grant.py holds."""

import pytest

from harness import wire
from harness.codeflow import REDIRECT, Flow, challenge_of, hosted
from harness.control import Control
from harness.links import Links
from harness.report import say
from harness.settings import ROUNDS
from harness.sign_in_pages import Session, signed_in
from harness.volley import in_parallel, token_request, volley
from test_code_grant import INVALID

WIDTH = 48


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages, whose confidential client may do without PKCE."""
    made = hosted(world.realm(), offer_passkey=False)
    world.admin.call("put_client", made.slug, made.client("api"), require_pkce=False)
    world.admin.call("put_redirect_uri", made.slug, made.client("app"), REDIRECT + "/second")
    world.settle()
    return made


@pytest.fixture
def flow(realm):
    """A browser that is signed in."""
    made = Flow(realm)
    made.email = realm.user()
    made.session = made.sign_in(made.email)
    return made


@pytest.mark.parametrize("kind", ["refresh token", "access token", "magic token", "handle", "cut", "changed", "upper case", "with a blank"])
def test_what_is_no_code_is_refused_like_a_wrong_one(realm, flow, kind):
    """The same bytes; the right code stays good."""
    code = flow.code()
    if kind in ("refresh token", "access token"):
        presented = flow.tokens()[kind.replace(" ", "_")]
    elif kind == "magic token":
        presented = Links(flow.app).link(realm.user()).token
    elif kind == "handle":
        presented = flow.app.request_code(realm.user()).handle
    else:
        presented = {"cut": code[:-1], "changed": code[:-1] + ("A" if code[-1] != "A" else "E"), "upper case": code.upper(),
                     "with a blank": code + " "}[kind]
    answer, known = flow.exchange(presented), flow.exchange("pac_" + "A" * 43)
    assert (answer.status, answer.json()) == (400, INVALID)
    assert answer.same_bytes() == known.same_bytes()
    assert flow.exchange(code).status == 200


def test_a_code_of_another_realm_is_none(realm, flow, world):
    """The same client name, the same verifier, the same database."""
    other = Flow(hosted(world.realm(), offer_passkey=False))
    other.sign_in(other.realm.user())
    code, other.verifier = flow.code(), flow.verifier
    assert other.exchange(code).json() == INVALID
    assert flow.exchange(code).status == 200
    del realm


def test_a_verifier_without_a_challenge_is_no_proof(realm):
    """RFC 9700 §4.8.2; nor is the challenge its own verifier, nor another registered URI the one that was asked for."""
    api = Flow(realm, "api")
    api.sign_in(realm.user())
    code = api.code(code_challenge=None, code_challenge_method=None)
    assert api.exchange(code).json() == INVALID
    assert api.exchange(code, code_verifier=None).status == 200
    flow = Flow(realm)
    flow.sign_in(realm.user())
    code = flow.code()
    assert flow.exchange(code, redirect_uri=REDIRECT + "/second").json() == INVALID
    assert flow.exchange(code, code_verifier=challenge_of(flow.verifier)).json() == INVALID
    assert flow.exchange(code, redirect_uri=None).status == 200


def test_a_code_dies_with_its_user(realm, flow, world):
    """Deleted between the response and the token request."""
    code = flow.code()
    world.admin.call("delete_user", realm.slug, flow.email)
    assert flow.exchange(code).json() == INVALID


def test_a_client_that_lost_its_right_redeems_nothing(realm, world):
    """Disabled: 401; without the permission: unauthorized_client; the code waits."""
    app = realm.put_client("loses", "gt:authorization_code", "scp:email")
    world.admin.call("put_redirect_uri", realm.slug, app.client_id, REDIRECT)
    world.settle()
    flow = Flow(realm, "loses")
    flow.sign_in(realm.user())
    code = flow.code(scope="openid email")
    for change, undo, status, error in (
        ("admin.put_client('{0}', '{1}', enabled => false)", "admin.put_client('{0}', '{1}', enabled => true)", 401, "invalid_client"),
        ("admin.revoke_permission('{0}', '{1}', 'gt:authorization_code')", "admin.grant_permission('{0}', '{1}', 'gt:authorization_code')",
         400, "unauthorized_client"),
    ):
        world.admin.run(f"SELECT {change.format(realm.slug, app.client_id)};")
        world.settle()
        answer = flow.exchange(code)
        assert (answer.status, answer.error) == (status, error)
        world.admin.run(f"SELECT {undo.format(realm.slug, app.client_id)};")
        world.settle()
    assert flow.exchange(code).status == 200


def test_another_process_redeems_and_knows_the_tokens_at_once(realm, flow, second_node):
    """The one that answered the browser is not needed any more."""
    other, api = Flow(realm, node=second_node), realm.app("api", second_node)
    other.verifier = flow.verifier
    tokens = other.exchange(flow.code()).json()
    assert api.active(tokens["access_token"]) and realm.app("api").active(tokens["access_token"])
    assert realm.app().refreshed(tokens["refresh_token"])["access_token"]


def test_a_sign_in_needs_no_process_twice(realm, second_node, world):
    """Every request of it goes to the other of two."""
    session, email = Session(realm), realm.user()
    nodes = [world.node, second_node]

    def other():
        nodes.reverse()
        session.browser.node = nodes[0]

    for _ in range(3):
        other()
        assert session.browser.open(session.browser.url).page.step == "address"
    other()
    session.send(email)
    other()
    session.browser.open(session.browser.url)
    code = session.code(email)
    other()
    session.browser.submit("continue", code=code)
    assert session.flow.exchange(session.browser.members["code"]).status == 200


def test_of_48_requests_with_one_code_one_wins(realm, second_node, world):
    """In every round, on one process and on two; the losers end nothing but what a repetition ends."""
    browsers = in_parallel(lambda email: signed_in(realm, email), realm.users(ROUNDS))
    for number, flow in enumerate(browsers):
        code = flow.code()
        raw = token_request(flow.app, {
            "grant_type": "authorization_code", "client_id": flow.app.client_id, "code": code, "redirect_uri": flow.redirect_uri,
            "code_verifier": flow.verifier})
        ports = [world.node.port] if number % 2 == 0 else [world.node.port, second_node.port]
        answers = [a for part in in_parallel(lambda port, r=raw, n=len(ports): volley(port, [r] * (WIDTH // n)), ports, threads=2) for a in part]
        statuses = sorted(getattr(answer, "status", repr(answer)) for answer in answers)
        assert statuses == [200] + [400] * (WIDTH - 1), f"round {number}: {statuses}"
        assert all(answer.json() == INVALID for answer in answers if answer.status == 400)
    say(f"authorization codes: {ROUNDS} rounds x {WIDTH} requests with one code: one success in each")
    Control(realm).check()


def test_of_48_browsers_with_one_pushed_request_one_gets_a_code(realm):
    """In every round; the others get the page of a request that is used."""
    realm.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
    realm.world.settle()
    for number in range(max(2, ROUNDS // 4)):
        flow = signed_in(realm, realm.user())
        uri = flow.push().json()["request_uri"]
        query = wire.form_body({"client_id": flow.app.client_id, "request_uri": uri}).decode()
        raw = wire.request_bytes("GET", f"/connect/authorize?{query}", {"Host": flow.host, **flow.cookies()})
        answers = volley(flow.app.node.port, [raw] * WIDTH)
        statuses = sorted(getattr(answer, "status", repr(answer)) for answer in answers)
        # On a busy machine some wait too long for a connection: 503, and they may ask again.
        assert statuses.count(303) == 1 and set(statuses) <= {303, 400, 503}, f"round {number}: {statuses}"
        winner = next(answer for answer in answers if answer.status == 303)
        assert "code=" in winner.header("location")


def test_one_consent_given_48_times_at_once_is_one(realm, world):
    """One row; each form gets a code, or the question again."""
    world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="explicit")
    world.settle()
    try:
        for _ in range(max(2, ROUNDS // 8)):
            session = Session(realm, "app-2")
            email = realm.user()
            session.sign_in(email)
            assert session.browser.page.step == "consent"
            raw = wire.request_bytes("POST", "/sign-in", {
                "Host": session.flow.host, "Content-Type": wire.FORM, "Sec-Fetch-Site": "same-origin", **session.browser.cookie_header(),
            }, wire.form_body({**session.browser.page.fields, "action": "allow"}))
            answers = volley(session.flow.app.node.port, [raw] * WIDTH)
            assert {getattr(answer, "status", repr(answer)) for answer in answers} == {303}, answers
            codes = {answer.header("location") for answer in answers if "code=" in answer.header("location")}
            assert codes, answers
            assert world.cluster.value(
                "SELECT count(*) FROM postern.consent c JOIN postern.user_account u ON u.realm_id = c.realm_id AND u.id = c.user_id "
                f"WHERE u.address_key = '{email.lower()}'") == "1"
    finally:
        world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="implicit")
        world.settle()
