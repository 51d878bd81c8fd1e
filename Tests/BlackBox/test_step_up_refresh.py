"""Refreshes that ask for more: `acr_values` and `max_age` are judged by what the session proved, and what cannot be met moves nothing."""

import pytest

from harness import authenticator, jose
from harness.holder import holder
from test_step_up import KEY, ONE, TWO, acr, assert_unmet


@pytest.mark.parametrize("client", ["app", "jwt"])
def test_what_a_session_does_not_meet_rotates_nothing(realm, client):
    app = realm.app(client)
    tokens = app.sign_in(realm.user())
    for _ in range(3):
        for asked in (KEY, TWO, f"{KEY} {TWO}", "x"):
            assert_unmet(app.refresh(tokens["refresh_token"], acr_values=asked))
    renewed = app.refreshed(tokens["refresh_token"])
    assert acr(realm, renewed) == ONE
    assert app.refreshed(tokens["refresh_token"])["refresh_token"] == renewed["refresh_token"], "and a lost answer comes again"


def test_a_sign_in_that_is_too_old_rotates_nothing(realm, app):
    tokens = app.sign_in(realm.user())
    assert app.refresh(tokens["refresh_token"], max_age="60").status == 200
    realm.world.time_travel(61)
    tokens = app.refreshed(tokens["refresh_token"])
    assert_unmet(app.refresh(tokens["refresh_token"], max_age="60"))
    assert_unmet(app.refresh(tokens["refresh_token"], max_age="0"))
    assert app.refresh(tokens["refresh_token"], max_age="3600").status == 200
    assert app.refresh(tokens["refresh_token"], max_age="999999999999").status == 200


@pytest.mark.parametrize("age", ["-1", "1.5", "abc", str(2 ** 63), "9" * 400, " 60", "+60", "0x10", "１"])
def test_an_age_is_whole_seconds(realm, app, age):
    tokens = app.sign_in(realm.user())
    answer = app.refresh(tokens["refresh_token"], max_age=age)
    assert answer.status == 400 and answer.error == "invalid_request", answer
    assert app.refresh(tokens["refresh_token"]).status == 200


@pytest.mark.parametrize("name,values", [("max_age", ("60", "60")), ("acr_values", (ONE, ONE))])
def test_a_parameter_of_a_refresh_that_is_sent_twice_is_refused(app, email, name, values):
    refresh_token = app.sign_in(email)["refresh_token"]
    form = [("grant_type", "refresh_token"), ("client_id", app.client_id), ("refresh_token", refresh_token), *((name, v) for v in values)]
    answer = app.token(form)
    assert answer.status == 400 and answer.error == "invalid_request", answer
    assert app.refresh(refresh_token).status == 200


@pytest.mark.parametrize("client", ["app", "jwt"])
def test_refreshed_tokens_keep_what_the_sign_in_said_unless_they_ask(realm, client):
    app = realm.app(client)
    tokens = app.sign_in(realm.user(), acr_values=f"phr {ONE}")
    for asked in ({}, {"acr_values": ONE}, {"acr_values": " "}, {"acr_values": f"{TWO} {ONE}"}):
        tokens = app.refreshed(tokens["refresh_token"], **asked)
        assert acr(realm, tokens) == ONE, asked


@pytest.mark.parametrize("client", ["app", "jwt"])
def test_a_token_may_say_more_than_its_session(realm, client):
    """The API compares strings: the token that was asked to say `phr` says so, in both forms; the next one says what the session says."""
    who = holder(realm, client)
    ceremony = who.app.ceremony()
    tokens = who.app.redeem_passkey(ceremony, authenticator.assertion(ceremony["options"], who.credential), acr_values=TWO).json()
    assert acr(realm, tokens) == TWO
    stronger = who.app.refreshed(tokens["refresh_token"], acr_values=f"{KEY} {TWO}")
    assert acr(realm, stronger) == KEY
    after = who.app.refreshed(stronger["refresh_token"])
    assert acr(realm, after) == TWO
    assert acr(realm, stronger) == KEY, "each token says its own"
    if client == "jwt":
        assert jose.parts(stronger["access_token"])[1]["acr"] == KEY
    assert who.app.userinfo(stronger["access_token"]).status == 200
    assert who.app.get("/connect/account", {"Authorization": f"Bearer {stronger['access_token']}"}).status == 200
