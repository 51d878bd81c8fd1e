"""ID tokens as hints long after their end, by the server's own clock: they still say whom they are about, and open nothing."""

import pytest

from harness import jose
from harness.approvals import ask, switch_on
from harness.codeflow import Flow, hosted, refused, response
from harness.moving_world import MovingWorld
from test_logout import GOODBYE, logout

DAY = 86_400


@pytest.fixture(scope="module", name="world")
def _world():
    made = MovingWorld("old-hints")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = hosted(world.realm(), offer_passkey=False)
    switch_on(made, "app", "api", public_clients=True)
    world.admin.call("put_logout_uri", made.slug, made.client("app"), GOODBYE, "post-logout")
    world.settle()
    return made


def test_an_expired_hint_names_its_user(world, realm):
    """At the authorization endpoint, at sign-out and for a request for approval; a hint of another client is none, however old."""
    one, two, asker = Flow(realm), Flow(realm), Flow(realm, "api")
    for flow in (one, two, asker):
        flow.sign_in(realm.user())
    mine, other, theirs = one.tokens(), two.tokens(), asker.tokens()
    world.travel(8 * DAY)
    assert jose.parts(mine["id_token"])[1]["exp"] < world.shift.now()
    assert one.app.userinfo(mine["access_token"]).status == 401
    assert "code" in response(one.authorize(prompt="none", id_token_hint=mine["id_token"]))
    assert refused(one.authorize(prompt="none", id_token_hint=other["id_token"])) == "login_required"
    assert refused(one.authorize(prompt="none", id_token_hint=theirs["id_token"])) == "invalid_request"
    assert refused(one.authorize(prompt="none", id_token_hint=mine["access_token"])) == "invalid_request"
    assert ask(asker.app, id_token_hint=theirs["id_token"]).status == 200
    assert ask(asker.app, id_token_hint=mine["id_token"]).json()["error"] == "invalid_request"
    answer = logout(one, id_token_hint=mine["id_token"], post_logout_redirect_uri=GOODBYE)
    assert (answer.status, answer.header("location")) == (303, GOODBYE)
    assert refused(one.authorize(prompt="none")) == "login_required"


def test_a_hint_of_a_year_ago_still_leads_back(world, realm):
    """As long as its key is known; the browser has long been signed out by itself."""
    flow = Flow(realm)
    flow.sign_in(realm.user())
    hint = flow.tokens()["id_token"]
    world.travel(366 * DAY)
    assert refused(flow.authorize(prompt="none")) == "login_required"
    answer = logout(flow, id_token_hint=hint, post_logout_redirect_uri=GOODBYE)
    assert (answer.status, answer.header("location")) == (303, GOODBYE)
