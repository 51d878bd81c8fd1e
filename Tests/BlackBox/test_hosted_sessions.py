"""Single sign-on, browser sessions and consent, case by case: beyond test_authorize.py and test_code_grant.py."""

import secrets

import pytest

from harness import jose, settings, wire
from harness.app import bearer
from harness.codeflow import Flow, hosted, refused, response
from harness.sign_in_pages import counted_case, positive_control, Session, signed_in  # pylint: disable=unused-import  # fixtures
from test_totp import Protected

COOKIE = "__Host-postern-session"


@pytest.fixture(scope="module")
def realm(world):
    """A realm with pages."""
    return hosted(world.realm(), offer_passkey=False)


def lives(flow):
    """Whether the browser's session is enough for a code."""
    return "code" in response(flow.authorize(prompt="none"))


def claims(flow, **changes):
    """Of the ID token."""
    return jose.parts(flow.tokens(**changes)["id_token"])[1]


# -- how long --------------------------------------------------------------------------------------


def test_a_session_ends_by_idleness_and_by_age(world):
    """Each use counts against the one and not against the other."""
    realm = hosted(world.realm(), sso_idle="1 hour", sso_absolute="3 hours", offer_passkey=False)
    idle, busy = signed_in(realm), signed_in(realm)
    for _ in range(3):
        world.time_travel(3540)
        assert lives(busy)
    assert refused(idle.authorize(prompt="none")) == "login_required"
    # The rest of three hours, and a second.
    world.time_travel(3 * (3600 - 3540) + 1)
    assert refused(busy.authorize(prompt="none")) == "login_required"
    last = signed_in(realm)
    world.time_travel(3601)
    assert refused(last.authorize(prompt="none")) == "login_required"
    assert busy.authorize().status == 200


def test_without_single_sign_on_every_request_signs_in(world):
    """No session cookie is set; the sign-in itself, with its consent, succeeds."""
    realm = hosted(world.realm(), sso_idle="0", offer_passkey=False)
    world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="explicit")
    world.settle()
    email = realm.user()
    for count, name in enumerate(("app", "app-2", "app"), 1):
        session = Session(realm, name)
        assert session.browser.page.step == "address"
        session.send(email)
        session.browser.submit("continue", code=world.mailbox.wait(email, count, kind="code").code)
        if name == "app-2":
            assert session.browser.page.step == "consent"
            session.browser.submit("allow")
        assert COOKIE not in session.browser.cookies
        assert session.flow.exchange(session.browser.members["code"]).status == 200


@pytest.mark.parametrize("end", ["disabled", "deleted", "everywhere"])
def test_no_process_answers_silently_for_a_user_who_is_gone(realm, world, end):
    """From the same moment in all of them."""
    second = world.start_node()
    try:
        flow = signed_in(realm)
        other = Flow(realm, node=second)
        other.cookie = flow.cookie
        assert lives(flow) and lives(other)
        if end == "disabled":
            world.admin.call("set_user_enabled", realm.slug, flow.email, False)
        elif end == "deleted":
            world.admin.call("delete_user", realm.slug, flow.email)
        else:
            world.admin.call("sign_out_everywhere", realm.slug, flow.email)
        for one in (flow, other):
            assert refused(one.authorize(prompt="none")) == "login_required"
            assert one.authorize().status == 200
    finally:
        second.stop()


# -- whose -----------------------------------------------------------------------------------------


def test_a_session_is_its_hosts(realm, world):
    """Neither another realm nor another host of the realm takes its cookie; the issuer and the subject are the same."""
    host = realm.put_app("shop", ["app-2"])
    world.settle()
    flow, other = signed_in(realm), hosted(world.realm())
    for foreign in (Flow(other), Flow(realm, "app-2", host=host)):
        foreign.cookie = flow.cookie
        assert refused(foreign.authorize(prompt="none")) == "login_required"
    own = Flow(realm, "app-2", host=host)
    own.sign_in(flow.email)
    here, there = claims(flow), claims(own)
    assert (here["iss"], here["sub"]) == (there["iss"], there["sub"]) and here["sid"] != there["sid"]
    world.admin.call("delete_app", realm.slug, "shop")
    world.settle()


def test_forged_cookies_are_none_and_write_nothing(world):
    """Four hundred; 100,000 in the long form. (A limit would end them after a few: test_hosted_limits.py.)"""
    realm = hosted(world.realm(), offer_passkey=False)
    realm.limit("authorize", "source", 1_000_000, per="1 minute", burst=1_000_000)
    flow = Flow(realm)
    state = ("SELECT md5(string_agg(b::text, ',' ORDER BY b.id)) || (SELECT count(*) FROM postern.authorization_code) "
             "FROM postern.browser_session b")
    signed_in(realm)
    before = world.cluster.value(state)
    path = "/connect/authorize?" + wire.form_body(flow.request(prompt="none")).decode()
    with wire.Connection(world.node.port) as connection:
        for n in range(100_000 if settings.FULL else 400):
            forged = ["pss_" + secrets.token_urlsafe(32), "pss_" + "A" * (n % 99), "x" * (n % 99), "%00"][n % 4]
            answer = connection.exchange("GET", path, {"Host": flow.host, "Cookie": f"{COOKIE}={forged}"})
            assert refused(answer) == "login_required", (n, answer)
    assert world.cluster.value(state) == before


def test_another_account_replaces_the_session(realm, world):
    """The former session is over, and with it what its clients hold without offline_access."""
    first, second = realm.user(), realm.user()
    session = Session(realm)
    session.sign_in(first)
    keeper = session.flow.exchange(session.browser.members["code"]).json()
    former = Flow(realm)
    former.cookie = session.browser.cookies[COOKIE]
    goes = former.tokens(scope="openid email")
    session.begin(prompt="select_account")
    assert session.browser.page.step == "continue-as"
    session.browser.submit("other-account")
    assert session.browser.page.step == "address"
    session.sign_in(second)
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert session.flow.app.userinfo(tokens["access_token"]).json()["email"] == second
    assert refused(former.authorize(prompt="none")) == "login_required"
    assert former.app.userinfo(goes["access_token"]).status == 401
    assert session.flow.app.userinfo(keeper["access_token"]).status == 200
    assert "code" in session.begin().members
    del world


def test_a_new_sign_in_is_newer_and_an_old_one_stays_as_it_was(realm, world):
    """prompt=login and max_age tell the time of the sign-in that was asked for."""
    session, email = Session(realm), realm.user()
    session.sign_in(email)
    flow = session.flow
    first = jose.parts(flow.exchange(session.browser.members["code"]).json()["id_token"])[1]
    flow.cookie = session.browser.cookies[COOKIE]
    world.time_travel(120)
    same = [claims(flow, max_age=age) for age in ("15000", "10000", None)]
    assert {one["auth_time"] for one in same} == {same[0]["auth_time"]} and {one["sub"] for one in same} == {first["sub"]}
    for count, changes in enumerate(({"prompt": "login"}, {"max_age": "0"}, {"max_age": "100"}), 2):
        world.time_travel(120)
        session.begin(**changes)
        assert session.browser.page.step == "address", changes
        session.send(email)
        session.browser.submit("continue", code=world.mailbox.wait(email, count, kind="code").code)
        again = jose.parts(flow.exchange(session.browser.members["code"]).json()["id_token"])[1]
        assert again["auth_time"] >= same[0]["auth_time"] + 100 and again["sub"] == first["sub"]


def test_an_own_session_is_ended_once_and_a_foreign_one_never(realm):
    """204, 404; foreign 404."""
    flow, stranger = signed_in(realm), signed_in(realm)
    token, foreign = flow.tokens()["access_token"], stranger.tokens()["access_token"]
    path = f"/connect/sessions/{flow.session}"
    assert flow.app.delete(path, bearer(foreign)).status == 404 and lives(flow)
    assert [flow.app.delete(path, bearer(token)).status for _ in range(2)] == [204, 404]
    assert not flow.authorize(prompt="none").header("location").count("code=")


def test_a_second_factor_is_asked_for_where_the_first_was_enough(realm):
    """A step-up: the class that was asked for is in the token."""
    user = Protected(realm)
    flow = signed_in(realm, user.email)
    assert refused(flow.authorize(prompt="none", acr_values="urn:postern:acr:2")) == "interaction_required"
    session = Session(realm)
    session.browser.cookies[COOKIE] = flow.cookie
    session.begin(acr_values="urn:postern:acr:2")
    assert session.browser.page.step == "address"
    before = len(realm.world.mailbox.to(user.email, "code"))
    session.send(user.email)
    session.browser.submit("continue", code=realm.world.mailbox.wait(user.email, before + 1, kind="code").code)
    assert session.browser.page.step == "second-factor"
    user.later()
    session.browser.submit("continue", totp_code=user.code())
    tokens = session.flow.exchange(session.browser.members["code"]).json()
    assert jose.parts(tokens["id_token"])[1]["acr"] == "urn:postern:acr:2"
    assert session.browser.cookies[COOKIE] != flow.cookie, "a step-up has a new cookie"


def test_a_code_says_the_class_that_was_asked_for_although_the_session_proved_more(realm):
    """The first of `acr_values` that it meets."""
    flow = signed_in(realm)
    flow.sign_in(flow.email, amr=("otp", "mfa"))
    assert [claims(flow, acr_values=asked)["acr"] for asked in (None, "urn:postern:acr:1", "phr urn:postern:acr:1 urn:postern:acr:2")] == [
        "urn:postern:acr:2", "urn:postern:acr:1", "urn:postern:acr:1"]


# -- consent ---------------------------------------------------------------------------------------


def test_consent_is_for_a_set_of_scopes_until_it_is_taken_back(realm, world):
    """First, again, wider, prompt=consent, taken back; another user's stays."""
    world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="explicit")
    world.settle()
    try:
        sessions = [Session(realm, "app-2"), Session(realm, "app-2")]
        users = [realm.user(), realm.user()]
        for session, email in zip(sessions, users):
            session.begin(scope="openid")
            session.sign_in(email)
            assert session.browser.page.step == "consent"
            assert "code" in session.browser.submit("allow").members
        one, two = sessions
        assert "code" in one.begin(scope="openid").members
        assert one.begin(scope="openid email").page.step == "consent"
        assert "code" in one.browser.submit("allow").members
        assert "code" in one.begin(scope="openid email").members
        assert one.begin(prompt="consent", scope="openid").page.step == "consent"
        own = Flow(realm)
        own.cookie = one.browser.cookies[COOKIE]
        token = own.tokens()["access_token"]
        assert own.app.delete(f"/connect/consents/{realm.client('app-2')}", bearer(token)).status == 204
        assert one.begin(scope="openid").page.step == "consent"
        assert "code" in two.begin(scope="openid").members
    finally:
        world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="implicit")
        world.settle()


def test_a_client_may_ask_every_time(realm, world):
    """systematic."""
    world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="systematic")
    world.settle()
    try:
        session = Session(realm, "app-2")
        session.sign_in(realm.user())
        for _ in range(3):
            assert session.browser.page.step == "consent"
            assert "code" in session.browser.submit("allow").members
            session.begin()
        flow = Flow(realm, "app-2")
        flow.cookie = session.browser.cookies[COOKIE]
        assert refused(flow.authorize(prompt="none")) == "consent_required"
    finally:
        world.admin.call("put_client", realm.slug, realm.client("app-2"), consent="implicit")
        world.settle()
