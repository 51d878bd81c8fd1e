"""Refresh families that are bound to a key, on bad networks: a lost answer is given again at any time, and a process of the device that was
stopped between reading and sending ends no session."""

import threading
import time

import pytest

from harness import keyfile, wire
from harness.dpop import (
    REFUSED_REFRESH, DPoPApp, ProofKey, assert_bound, assert_error, assert_invalid, assert_no_nonce, assert_nonce_due)
from harness.volley import volley

HOUR, DAY = 3600, 86_400


@pytest.fixture
def mine(realm):
    """An app with its key."""
    return DPoPApp(realm.app())


@pytest.fixture(scope="module")
def no_window(world):
    """A realm that repeats nothing."""
    made = world.realm()
    made.native(refresh_retry_window="0")
    return made


def request(app, token, proof, **more):
    """The bytes of a refresh with a proof; None: without one."""
    form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": token, **more}
    fields = {"Host": app.host, "Content-Type": wire.FORM, **({} if proof is None else {"DPoP": proof})}
    return "POST", "/connect/token", fields, wire.form_body(form)


def present(app, token, proof, **more):
    """A refresh with this proof."""
    return wire.exchange(app.node.port, *request(app, token, proof, **more))


def assert_refused(answer):
    """The uniform answer."""
    assert_error(answer, 400, REFUSED_REFRESH)
    assert_no_nonce(answer)


def audited(world, app, email, event):
    """How often the audit log has the event for a user of the realm."""
    return int(world.cluster.value(
        f"SELECT count(*) FROM postern.audit_event AS e JOIN postern.user_account AS u ON u.realm_id = e.realm_id AND u.id = e.user_id "
        f"WHERE e.event = '{event}' AND u.address_key = '{email.lower()}'"))


def lost(app, email, **more):
    """A sign-in and a refresh whose answer never arrived: the token that the app still has, and the one it does not know."""
    held = app.bound(email, **more)["refresh_token"]
    return held, app.refreshed(held)["refresh_token"]


def superseded(app, email, **more):
    """A sign-in that another process of the device has refreshed twice: the token that this one read, and the live one."""
    held, following = lost(app, email, **more)
    return held, app.refreshed(following)["refresh_token"]


def at_once(nodes, requests):
    """The answers of requests that several nodes get at the same time, in their order."""
    answers = [None] * len(requests)

    def fire(first, node):
        mine = slice(first, None, len(nodes))
        answers[mine] = volley(node.port, [wire.request_bytes(*asked) for asked in requests[mine]])

    threads = [threading.Thread(target=fire, args=each) for each in enumerate(nodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


# -- the predecessor ---------------------------------------------------------------------------------


def test_a_lost_answer_is_given_again_at_any_time_on_every_node(world, realm, mine, second_node):
    """Two minutes, an hour and thirteen days later: the same bytes, bound to the same key; then it is good for a refresh."""
    email = realm.user()
    held, following = lost(mine, email)
    travelled = 0
    for age in (121, HOUR, 13 * DAY):
        world.time_travel(age - travelled)
        travelled = age
        for node in (world.node, second_node):
            assert assert_bound(mine.at(node).refresh(held), mine.key)["refresh_token"] == following
    assert audited(world, mine, email, "refresh_superseded") == audited(world, mine, email, "refresh_token_reuse") == 0
    assert_bound(mine.refresh(following), mine.key)


def test_an_hour_later_forty_eight_requests_at_once_on_two_nodes_get_the_same_successor(world, realm, mine, second_node):
    """Each with a proof of its own."""
    held, following = lost(mine, realm.user())
    world.time_travel(HOUR)
    both = at_once((world.node, second_node), [request(mine, held, mine.proof()) for _ in range(48)])
    assert [answer.status for answer in both] == [200] * 48, both
    assert {answer.json()["refresh_token"] for answer in both} == {following}
    assert_bound(mine.refresh(following), mine.key)


def test_a_request_that_was_repeated_on_the_way_gets_the_successor_twice(world, realm, mine):
    """An hour later, the same proof; with a token that was superseded the used proof is told and ends nothing."""
    email = realm.user()
    held, following = lost(mine, email)
    world.time_travel(HOUR)
    proof = mine.proof()
    for _ in range(2):
        assert assert_bound(present(mine, held, proof), mine.key)["refresh_token"] == following
    live = mine.refreshed(following)["refresh_token"]
    assert_invalid(present(mine, held, proof))
    assert audited(world, mine, email, "refresh_superseded") == 0
    assert_bound(mine.refresh(live), mine.key)


@pytest.mark.parametrize("age", [0, 121, HOUR])
def test_without_the_key_the_predecessor_is_worth_nothing_at_any_time(world, realm, mine, age):
    """Another key, no proof, and a proof that is too old; nothing ends."""
    held, following = lost(mine, realm.user())
    world.time_travel(age)
    assert_refused(mine.with_key(ProofKey()).refresh(held))
    assert_refused(mine.plain.refresh(held))
    assert_nonce_due(present(mine, held, mine.proof(now=time.time() - 90)))
    assert mine.refreshed(held)["refresh_token"] == following


def test_the_answer_that_bound_a_family_is_given_again_to_its_key_alone(world, realm, mine):
    """An hour later the unbound predecessor is a bearer token: with another key or none it is reuse, and the family ends."""
    for present_it, is_repeated in (
            (mine.refresh, True), (mine.with_key(ProofKey()).refresh, False), (mine.plain.refresh, False)):
        email = realm.user()
        held = mine.plain.sign_in(email)["refresh_token"]
        following = mine.refreshed(held)["refresh_token"]
        world.time_travel(HOUR)
        answer = present_it(held)
        if is_repeated:
            assert assert_bound(answer, mine.key)["refresh_token"] == following
            assert_bound(mine.refresh(following), mine.key)
        else:
            assert_refused(answer)
            assert_refused(mine.refresh(following))
        assert audited(world, mine, email, "refresh_token_reuse") == (0 if is_repeated else 1)


# -- what is older -----------------------------------------------------------------------------------


def test_a_superseded_token_is_refused_and_ends_nothing(world, realm, mine, second_node):
    """At once, on every node, whatever else the request asks for: audited each time; the live token goes on."""
    email = realm.user()
    held, live = superseded(mine, email, scope="openid offline_access")
    asked = [(mine, {}), (mine.at(second_node), {}), (mine, {"scope": "openid profile"}), (mine, {"max_age": "0"})]
    for count, (app, more) in enumerate(asked, 1):
        assert_refused(app.refresh(held, **more))
        assert audited(world, mine, email, "refresh_superseded") == count
    assert audited(world, mine, email, "refresh_token_reuse") == 0
    following = assert_bound(mine.refresh(live), mine.key)
    assert mine.userinfo(following["access_token"]).status == 200


def test_after_the_window_a_superseded_token_is_reuse(world, realm, mine):
    """The window counts from the family's last refresh; neither a refusal nor a repetition begins it anew."""
    email = realm.user()
    held, live = superseded(mine, email)
    clock = world.stopwatch()
    clock.reach(90)
    assert_refused(mine.refresh(held))
    assert mine.userinfo(mine.refreshed(live)["access_token"]).status == 200
    clock = world.stopwatch()
    clock.reach(90)
    assert_refused(mine.refresh(held))
    assert mine.refreshed(live)["refresh_token"]
    assert audited(world, mine, email, "refresh_token_reuse") == 0
    clock.reach(180)
    assert_refused(mine.refresh(held))
    assert audited(world, mine, email, "refresh_token_reuse") == 1
    assert_refused(mine.refresh(live))


def test_where_nothing_is_repeated_a_key_changes_nothing(no_window):
    """The predecessor and an older token end the family at once."""
    app = DPoPApp(no_window.app())
    for made in (lost, superseded):
        held, live = made(app, no_window.user())
        assert_refused(app.refresh(held))
        assert_refused(app.refresh(live))
    assert_bound(app.refresh(app.bound(no_window.user())["refresh_token"]), app.key)


@pytest.mark.parametrize("client", ["app", "api"])
def test_families_without_a_key_have_the_window_alone(world, realm, client):
    """A public client without proofs; a confidential one, whose families no proof binds."""
    app = DPoPApp(realm.app(client)) if client == "api" else realm.app(client)
    for age, made in ((125, 1), (0, 2)):
        chain = [app.sign_in(realm.user())["refresh_token"]]
        for _ in range(made):
            chain.append(app.refreshed(chain[-1])["refresh_token"])
        assert app.refreshed(chain[-2])["refresh_token"] == chain[-1], "within the window"
        world.time_travel(age)
        assert_refused(app.refresh(chain[0]))
        assert_refused(app.refresh(chain[-1]))


@pytest.mark.parametrize("age", [0, HOUR])
def test_of_all_generations_at_once_on_two_nodes_one_refresh_comes(world, realm, mine, second_node, age):
    """The live token, the one before, one that is older (within the window) and a thief's requests, mixed: one new token, and nothing ends."""
    email = realm.user()
    held, before = lost(mine, email)
    live = mine.refreshed(before)["refresh_token"]
    world.time_travel(age)
    thief = mine.with_key(ProofKey())
    kinds = {"live": (mine, live), "before": (mine, before), "thief": (thief, live), **({} if age else {"older": (mine, held)})}
    names = [name for name in kinds for _ in range(2)] * 6
    answers = at_once((world.node, second_node), [request(*kinds[name], kinds[name][0].proof()) for name in names])
    got = {name: [answer for answer, other in zip(answers, names) if other == name] for name in kinds}
    assert [answer.status for answer in got["live"]] == [200] * 12, got["live"]
    following, = {answer.json()["refresh_token"] for answer in got["live"]}
    assert {answer.json()["refresh_token"] for answer in got["before"] if answer.status == 200} <= {live}
    for refused in (*got["thief"], *got.get("older", ()), *(answer for answer in got["before"] if answer.status != 200)):
        assert_refused(refused)
    assert audited(world, mine, email, "refresh_token_reuse") == 0
    assert_bound(mine.refresh(following), mine.key)


# -- what has ended ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["successor", "session", "disabled", "signed out", "deleted"])
def test_what_has_ended_is_not_given_again(world, ending):
    """The successor's own end, the session's, and the account's; before that it is."""
    realm = world.realm()
    if ending == "session":
        realm.native(session_lifetime="10 days")
    app, email = DPoPApp(realm.app()), realm.user()
    held, following = lost(app, email)
    world.time_travel(HOUR)
    assert app.refreshed(held)["refresh_token"] == following
    if ending in ("successor", "session"):
        world.time_travel((14 if ending == "successor" else 10) * DAY)
    elif ending == "disabled":
        world.admin.call("set_user_enabled", realm.slug, email, False)
    elif ending == "signed out":
        world.admin.call("sign_out_everywhere", realm.slug, email)
    else:
        world.admin.call("delete_user", realm.slug, email)
    assert_refused(app.refresh(held))
    assert_refused(app.refresh(following))


@pytest.mark.slow
def test_a_node_that_cannot_derive_the_successor_makes_up_no_other_and_ends_nothing():
    """The line of the key file that it was derived from is missing there."""
    fleet = keyfile.Fleet("superseded-keys")
    try:
        fleet.open([keyfile.new_line()])
        realm = fleet.realm()
        app = DPoPApp(realm.app())
        held = app.bound(realm.user())["refresh_token"]
        fleet.write([keyfile.new_line(), *fleet.lines])
        behind, ahead = fleet.nodes
        ahead.stop()
        ahead.start()
        following = app.at(ahead).refreshed(held)["refresh_token"]
        fleet.time_travel(HOUR)
        assert_refused(app.at(behind).refresh(held))
        assert app.at(ahead).refreshed(held)["refresh_token"] == following
        assert_bound(app.at(ahead).refresh(following), app.key)
    finally:
        fleet.close()
