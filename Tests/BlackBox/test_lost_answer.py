"""Refresh: a lost answer never signs a user out; a stolen old token ends the family."""

import pytest

from harness import wire
from harness.volley import token_request


@pytest.fixture
def signed_in(app, email):
    """A family and the tokens of its sign-in."""
    return app.sign_in(email)


def assert_dead(app, api, *answers):
    """Nothing of the family works any more: no refresh token, no reference access token."""
    for tokens in answers:
        assert not api.active(tokens["access_token"])
        assert app.userinfo(tokens["access_token"]).status == 401
        refused = app.refresh(tokens["refresh_token"])
        assert (refused.status, refused.error) == (400, "invalid_grant"), refused


def test_the_predecessor_gets_the_same_successor_for_120_seconds(world, app, api, signed_in):
    """At 0, 39 and 100 seconds; each answer carries an access token that works, and the family is healthy."""
    watch = world.stopwatch()
    first = app.refreshed(signed_in["refresh_token"])
    for age in (0, 39, 100):
        if age:
            watch.reach(age)
        again = app.refreshed(signed_in["refresh_token"])
        assert again["refresh_token"] == first["refresh_token"], f"at {age} s"
        assert api.active(again["access_token"])
    assert app.refresh(first["refresh_token"]).status == 200


def test_after_120_seconds_the_predecessor_ends_the_family(world, app, api, signed_in):
    """At 150 seconds: invalid_grant, everything dead, and the audit log says why."""
    watch = world.stopwatch()
    before = world.admin.count("audit_log")
    first = app.refreshed(signed_in["refresh_token"])
    watch.reach(150)
    assert api.active(first["access_token"])
    refused = app.refresh(signed_in["refresh_token"])
    assert refused.json() == {"error": "invalid_grant", "error_description": "The refresh token is invalid."}
    assert_dead(app, api, signed_in, first)
    assert world.admin.count("audit_log") > before
    assert world.admin.rows_of("audit_log", "reuse") or world.admin.rows_of("audit_log", "replay")


def test_once_the_successor_was_used_the_predecessor_ends_the_family(app, api, signed_in):
    """The window is closed by the first use of the successor, not by time."""
    first = app.refreshed(signed_in["refresh_token"])
    second = app.refreshed(first["refresh_token"])
    assert app.refresh(signed_in["refresh_token"]).error == "invalid_grant"
    assert_dead(app, api, signed_in, first, second)


def test_reuse_with_a_wider_scope_is_reuse_all_the_same(world, app, api, signed_in):
    """The predecessor after its window, with a scope the family never had: a wide scope hides no theft."""
    watch = world.stopwatch()
    first = app.refreshed(signed_in["refresh_token"])
    watch.reach(150)
    refused = app.refresh(signed_in["refresh_token"], scope="openid offline_access profile email orders.read")
    assert refused.error == "invalid_grant", refused
    assert_dead(app, api, signed_in, first)


def test_an_older_generation_ends_the_family(app, api, signed_in):
    """R1 -> R2 -> R3 -> R4, then R1 within the window."""
    chain = [signed_in]
    for _ in range(3):
        chain.append(app.refreshed(chain[-1]["refresh_token"]))
    assert app.refresh(chain[0]["refresh_token"]).error == "invalid_grant"
    assert_dead(app, api, *chain)


def test_a_dead_family_leaves_other_sign_ins_of_the_user_alone(app, api, email):
    """A family per sign-in."""
    stolen, other = app.sign_in(email), app.sign_in(email)
    first = app.refreshed(stolen["refresh_token"])
    app.refreshed(first["refresh_token"])
    assert app.refresh(stolen["refresh_token"]).error == "invalid_grant"
    assert api.active(other["access_token"])
    assert app.refresh(other["refresh_token"]).status == 200


def test_another_client_with_the_token_ends_nothing(realm, app, api, signed_in):
    """A2 cannot sign A1 out by presenting A1's old token."""
    first = app.refreshed(signed_in["refresh_token"])
    app.refreshed(first["refresh_token"])
    assert realm.app("app-2").refresh(signed_in["refresh_token"]).error == "invalid_grant"
    assert api.active(first["access_token"])


def test_a_retry_may_ask_for_another_scope(app, signed_in):
    """The refresh token is the same; the access token follows the retry."""
    first = app.refreshed(signed_in["refresh_token"])
    narrowed = app.refreshed(signed_in["refresh_token"], scope="profile")
    assert narrowed["refresh_token"] == first["refresh_token"]
    assert narrowed["scope"] == "profile"


def test_a_refresh_whose_answer_was_never_read_can_be_repeated(app, signed_in):
    """The client sends, hangs up, and asks again: one successor, and it works."""
    form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": signed_in["refresh_token"]}
    for _ in range(3):
        connection = wire.Connection(app.node.port)
        connection.send(token_request(app, form))
        connection.close()
    first = app.refreshed(signed_in["refresh_token"])
    assert app.refreshed(signed_in["refresh_token"])["refresh_token"] == first["refresh_token"]
    assert app.refresh(first["refresh_token"]).status == 200


def test_every_node_gives_the_same_successor(world, realm, app, signed_in):
    """The successor is derived, so a process that has never seen the family knows it, too."""
    first = app.refreshed(signed_in["refresh_token"])
    other = world.start_node()
    try:
        again = realm.app(node=other).refreshed(signed_in["refresh_token"])
        assert again["refresh_token"] == first["refresh_token"]
        assert realm.app(node=other).refresh(first["refresh_token"]).status == 200
        assert app.refresh(signed_in["refresh_token"]).error == "invalid_grant"
    finally:
        other.stop()


def test_the_window_is_a_setting_of_the_realm(world):
    """With a window of zero every replay is reuse; with 600 seconds a retry after 500 is fine."""
    realm = world.realm()
    app, api = realm.app(), realm.app("api")
    realm.native(refresh_retry_window="600 seconds")
    tokens = app.sign_in(realm.user())
    first = app.refreshed(tokens["refresh_token"])
    world.time_travel(500)
    assert app.refreshed(tokens["refresh_token"])["refresh_token"] == first["refresh_token"]

    realm.native(refresh_retry_window="0 seconds")
    tokens = app.sign_in(realm.user())
    first = app.refreshed(tokens["refresh_token"])
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert_dead(app, api, tokens, first)


def test_a_long_chain_stays_healthy(app, api, signed_in):
    """Fifty rotations, each with one retry of its predecessor."""
    tokens = signed_in
    for _ in range(50):
        following = app.refreshed(tokens["refresh_token"])
        assert app.refreshed(tokens["refresh_token"])["refresh_token"] == following["refresh_token"]
        tokens = following
    assert api.active(tokens["access_token"])
