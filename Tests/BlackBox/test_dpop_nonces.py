"""Nonces: derived, good on every node and for their life, and given out only where one is due."""

import base64
import hashlib
import os
import secrets
import time

import pytest

from harness.app import bearer
from harness.dpop import (
    DPoPApp, assert_bound, assert_invalid, assert_no_nonce, assert_nonce_due, fields_of, is_challenge, nonce_of)
from harness.dpop_places import PLACES, Maker, Refresh
from harness.load import is_unavailable
from harness.moving_world import MovingWorld
from harness.node import Node
from harness.postgres import SQLError
from harness.shift import Shift
from harness.trusted import DEVICES, enrolled, owner_of, with_devices

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def moving():
    """A world whose time passes."""
    made = MovingWorld("dpop-nonces")
    try:
        yield made.open()
    finally:
        made.close()


@pytest.fixture(scope="module")
def second(world):
    """Another process on the same database."""
    node = world.start_node()
    yield node
    node.stop()


def required(world, **settings):
    """A realm where every proof needs a nonce."""
    realm = world.realm()
    world.admin.call("set_dpop", realm.slug, nonce="required", **settings)
    world.settle()
    return realm


def given(place, key):
    """A nonce: what a proof with an old `iat` is answered."""
    return assert_nonce_due(place.send(key, Maker(place, key)(payload={"iat": 1})), place.protected)


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("wrong", [-600, 600, -86_400 * 400])
def test_a_phone_with_a_wrong_clock_heals_itself_by_one_repetition(realm, kind, wrong):
    """With the nonce that it was given its `iat` is not looked at; the same nonce serves until it is old."""
    place = kind(realm)
    place.control()
    key, now = place.app.key, time.time() + wrong
    nonce = assert_nonce_due(place.send(key, Maker(place, key)(now=now)), place.protected)
    for _ in range(10):
        assert_no_nonce(place.succeed(key, Maker(place, key)(now=now, nonce=nonce)))
    app = DPoPApp(realm.app(), clock=lambda: time.time() + wrong)
    tokens = app.bound(realm.user())
    for _ in range(5):
        tokens = app.refreshed(tokens["refresh_token"])
        assert app.userinfo(tokens["access_token"]).status == 200
    assert app.challenges == 1, "one challenge for all requests of a phone"


def test_a_nonce_serves_as_long_as_the_realm_says(moving):
    """Under its life it is good, over it a new one is given; a longer life counts for nonces that are out already."""
    realm = moving.realm()
    place = Refresh(realm)
    place.app.clock = moving.shift.now
    key = place.app.key
    place.control()
    for lifetime, seconds in (("5 minutes", 300), ("1 minute", 60), ("30 minutes", 1800)):
        moving.admin.call("set_dpop", realm.slug, nonce_lifetime=lifetime)
        moving.settle()
        nonce = given(place, key)
        moving.travel(seconds - 25)
        place.succeed(key, Maker(place, key)(nonce=nonce, payload={"iat": 1}))
        moving.travel(40)
        following = assert_nonce_due(place.send(key, Maker(place, key)(nonce=nonce)))
        place.succeed(key, Maker(place, key)(nonce=following))


def test_a_nonce_of_one_node_is_good_at_every_node(realm, second):
    """They are derived from the key that the nodes share."""
    here, there = Refresh(realm), Refresh(realm, node=second)
    there.app.key = here.app.key
    key = here.app.key
    there.control()
    there.succeed(key, Maker(there, key)(nonce=given(here, key), payload={"iat": 1}))
    here.control()
    here.succeed(key, Maker(here, key)(nonce=given(there, key), payload={"iat": 1}))


def test_a_nonce_that_this_realm_did_not_give_is_answered_with_a_new_one(world, realm):
    """Another realm's, altered in each character, cut, lengthened, random, long: each time a new one, which is good."""
    place, other = Refresh(realm), Refresh(world.realm())
    key = place.app.key
    place.control()
    other.control()
    foreign, nonce = given(other, other.app.key), given(place, key)
    spoilt = [foreign, nonce[:-1], nonce + "A", nonce[1:], nonce * 2, secrets.token_urlsafe(48), "n" * 1500, " ", nonce + "=", nonce.lower(), "null", "ä"]
    spoilt += [nonce[:at] + ("A" if nonce[at] != "A" else "B") + nonce[at + 1:] for at in range(len(nonce) - 1)]
    for value in spoilt:
        assert_nonce_due(place.send(key, Maker(place, key)(nonce=value)))
        following = assert_nonce_due(place.send(key, Maker(place, key)(nonce=value, payload={"iat": 1})))
    place.succeed(key, Maker(place, key)(nonce=following, payload={"iat": 1}))
    assert_nonce_due(place.send(key, Maker(place, key)(nonce="", payload={"iat": 1})))
    for value in (7, ["x"], {"a": "b"}):
        assert_invalid(place.send(key, Maker(place, key)(payload={"nonce": value})))


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
def test_where_a_nonce_is_required_no_proof_does_without(world, kind):
    """A right `iat` is not enough; with the nonce it is served, and nothing was spent by the first try."""
    realm = required(world)
    place = kind(realm)
    key, app = place.app.key, place.app
    app.obeys = True
    place.token(key)
    place.request(key)
    app.obeys = False
    nonce = assert_nonce_due(place.send(key, Maker(place, key)(nonce=None)), place.protected)
    assert_no_nonce(place.succeed(key, Maker(place, key)(nonce=nonce)))


def test_a_new_nonce_comes_with_a_success_once_the_presented_one_is_past_half_its_life(moving):
    """`required` alone: so no request of a client that is busy is ever refused for it. Errors carry none."""
    for policy in ("required", "auto"):
        realm = moving.realm()
        app = moving.app(realm, obeys=True)
        moving.admin.call("set_dpop", realm.slug, nonce=policy)
        moving.settle()
        tokens = app.bound(realm.user())
        app.obeys = False
        form = {"grant_type": "refresh_token", **app.credentials()}
        nonce = assert_nonce_due(app.token({**form, "refresh_token": "x"}, {"DPoP": app.proof(nonce=None, payload={"iat": 1})}))

        def refresh(nonce, token):
            return app.token({**form, "refresh_token": token}, {"DPoP": app.proof(nonce=nonce)})

        answer = refresh(nonce, tokens["refresh_token"])
        assert_bound(answer, app.key)
        assert_no_nonce(answer)
        moving.travel(170)
        assert_no_nonce(refresh(nonce, "prt_unknown"))
        answer = refresh(nonce, answer.json()["refresh_token"])
        assert_bound(answer, app.key)
        token = answer.json()["access_token"]
        proof = app.proof("GET", "/connect/userinfo", token, nonce=nonce)
        userinfo = app.get("/connect/userinfo", {"Authorization": f"DPoP {token}", "DPoP": proof})
        assert userinfo.status == 200, userinfo
        if policy == "required":
            assert nonce_of(userinfo) != nonce
            nonce = nonce_of(answer)
            moving.travel(140)
            assert_bound(refresh(nonce, answer.json()["refresh_token"]), app.key)
        else:
            assert_no_nonce(userinfo)
            assert_no_nonce(answer)


def test_a_device_gets_its_next_nonce_in_time_too(moving):
    """As any client where the realm requires nonces: a device that asks again and again is not refused for an old one."""
    realm = with_devices(moving.realm())
    moving.admin.call("set_dpop", realm.slug, nonce="required")
    moving.settle()
    device = enrolled(realm, owner_of(realm)[1])
    nonce = device.fresh_nonce()

    def ask(nonce):
        answer = device.call("GET", f"{DEVICES}/self", proof=device.proof("GET", f"{DEVICES}/self", nonce=nonce))
        assert answer.status == 200, answer
        return answer

    assert_no_nonce(ask(nonce))
    moving.travel(170)
    following = nonce_of(ask(nonce))
    assert following not in (None, nonce)
    moving.travel(140)
    ask(following)


def test_no_two_nonces_are_alike_over_four_nodes(world, realm):
    """Many in the same millisecond; each a token68 of at most 64 characters (`nonce_of` checks both)."""
    nodes = [world.node] + [world.start_node() for _ in range(3)]
    try:
        form = {"grant_type": "refresh_token", **realm.app().credentials(), "refresh_token": "x"}
        for node in nodes:
            app = DPoPApp(realm.app(node=node), obeys=False, recorded=False)
            for _ in range(300):
                assert_nonce_due(app.token(form, {"DPoP": app.proof(payload={"iat": 1})}))
    finally:
        for node in nodes[1:]:
            node.stop()


def test_nonces_of_every_line_of_the_key_file_are_good(world, realm):
    """A node whose file has got a new first line, and one that still has it second."""
    own = world.key_file.read_text().strip()
    new = base64.b64encode(os.urandom(32)).decode()
    nodes = []
    try:
        for number, lines in enumerate(([new, own], [own, new])):
            path = world.cluster.root / f"dpop-{number}.key"
            path.write_text("\n".join(lines) + "\n")
            path.chmod(0o600)
            nodes.append(Node(world.cluster.url("bb_serve"), path, world.mailbox.port).start())
        first, other = (Refresh(realm, node=node) for node in nodes)
        other.app.key = key = first.app.key
        other.control()
        other.succeed(key, Maker(other, key)(nonce=given(first, key), payload={"iat": 1}))
        first.control()
        first.succeed(key, Maker(first, key)(nonce=given(other, key), payload={"iat": 1}))
    finally:
        for node in nodes:
            node.stop()
        # Other nodes of this world do not hold the new line.
        world.cluster.sql(f"SELECT admin.forget_key_line('{hashlib.sha256(b'postern key id' + base64.b64decode(new)).hexdigest()[:8]}')")


def test_switching_to_required_signs_nobody_out(world):
    """Apps that run get one challenge each, within a second, and go on in their families."""
    realm = world.realm()
    apps = [DPoPApp(realm.app()) for _ in range(5)]
    tokens = [app.bound(realm.user())["refresh_token"] for app in apps]
    world.admin.call("set_dpop", realm.slug, nonce="required")
    time.sleep(1)
    for _ in range(3):
        tokens = [app.refreshed(token)["refresh_token"] for app, token in zip(apps, tokens)]
    assert [app.challenges for app in apps] == [1] * 5
    world.admin.call("set_dpop", realm.slug, nonce="auto")
    world.settle()
    for app, token in zip(apps, tokens):
        app.nonce = None
        app.refreshed(token)
        assert app.challenges == 1


def test_a_challenge_at_a_refresh_moves_no_generation(world):
    """The token that was refused for its nonce is the family's newest still: ten challenges, then one rotation."""
    realm = required(world)
    app = DPoPApp(realm.app())
    tokens = app.bound(realm.user())
    form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]}
    for _ in range(10):
        nonce = assert_nonce_due(app.token(form, {"DPoP": app.proof(nonce=None)}))
    following = assert_bound(app.token(form, {"DPoP": app.proof(nonce=nonce)}), app.key)
    app.refreshed(following["refresh_token"])
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant", "two generations on, it is old"


def test_a_node_that_is_ahead_within_bounds_gives_nonces_that_are_good(world, realm, tmp_path):
    """Half a minute is no trouble; with a minute and a half the node serves nothing."""
    shift = Shift.made(tmp_path)
    ahead = Node(world.cluster.url("bb_serve"), world.key_file, world.mailbox.port, **shift.environment).start()
    world.nodes.append(ahead)
    try:
        place = Refresh(realm)
        place.control()
        there, key = Refresh(realm, node=ahead), place.app.key
        there.app.key = key
        there.control()
        shift.by(30)
        nonce = given(there, key)
        place.succeed(key, Maker(place, key)(nonce=nonce, payload={"iat": 1}))
        shift.by(90)
        assert is_unavailable(there.send(key, Maker(there, key)(nonce=nonce)))
    finally:
        shift.by(0)
        ahead.stop()


@pytest.mark.parametrize("policy", ["auto", "required"])
def test_answers_that_are_no_challenge_carry_no_nonce(world, policy):
    """Bad proof, wrong client, wrong factor, wrong token, wrong key, limit, not found, pages, documents."""
    realm = world.realm()
    world.admin.call("set_dpop", realm.slug, nonce=policy)
    world.settle()
    app = DPoPApp(realm.app())
    tokens = app.bound(realm.user())
    app.nonce = app.nonce or given(Refresh(realm), app.key) if policy == "required" else None
    other = app.with_key(type(app.key)())
    other.nonce, other.obeys, app.obeys = app.nonce, False, False
    answers = {
        "bad proof": app.token({"grant_type": "refresh_token", **app.credentials(), "refresh_token": "x"}, {"DPoP": "junk"}),
        "unknown client": app.token({"grant_type": "refresh_token", "client_id": "nobody", "refresh_token": "x"}),
        "wrong refresh token": app.refresh("prt_x"), "wrong key": other.refresh(tokens["refresh_token"]),
        "wrong code": app.redeem("000000", email=realm.new_email()), "no proof": app.plain.refresh(tokens["refresh_token"]),
        "bound token as Bearer": app.plain.userinfo(tokens["access_token"]), "wrong token": app.userinfo("pat_x"),
        "wrong key's userinfo": other.userinfo(tokens["access_token"]), "nothing": app.plain.get("/connect/userinfo"),
        "not found": app.delete("/connect/sessions/none", bearer(tokens["access_token"])),
        "revocation": app.revoke("prt_x"), "discovery": app.get("/.well-known/openid-configuration"), "page": app.get("/magic-login"),
    }
    for name, answer in answers.items():
        assert answer.status != 200 or name in ("revocation", "discovery", "page"), (name, answer)
        assert not is_challenge(answer) and not fields_of(answer, "DPoP-Nonce"), (name, answer)
    realm.limit("token", "source", 1, per="1 day")
    app.refresh("prt_x")
    limited = app.refresh("prt_x")
    assert limited.status == 429
    assert_no_nonce(limited)


@pytest.mark.parametrize("settings", [
    {"nonce": "on"}, {"nonce": ""}, {"nonce_lifetime": "0"}, {"nonce_lifetime": "59 seconds"}, {"nonce_lifetime": "31 minutes"}, {"nonce_lifetime": "-5 minutes"}])
def test_settings_out_of_bounds_are_refused_with_a_hint(world, realm, settings):
    """What is allowed is said."""
    with pytest.raises(SQLError, match="HINT"):
        world.admin.call("set_dpop", realm.slug, **settings)
