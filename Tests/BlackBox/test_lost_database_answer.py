"""The database's answer to a rotation is lost: the server repeats it and is not taken for a thief, whatever the retry window."""

import pytest

from harness.load import is_unavailable
from harness.node import Node
from harness.proxy import LosingProxy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def proxy(world):
    """Between a node of this module's own and the database."""
    made = LosingProxy(world.cluster)
    yield made
    made.close()


@pytest.fixture(scope="module")
def realm(world):
    """Every replay by a client is reuse."""
    made = world.realm()
    made.native(refresh_retry_window="0 seconds")
    return made


@pytest.fixture(scope="module")
def node(world, proxy):
    """A node that reaches its database through the proxy."""
    made = Node(proxy.url(world.cluster, "bb_serve"), world.key_file, world.mailbox.port).start()
    world.nodes.append(made)
    yield made
    made.stop()


def reuses(world):
    """Audited reuses so far."""
    return int(world.cluster.value("SELECT count(*) FROM postern.audit_event WHERE event = 'refresh_token_reuse';"))


@pytest.mark.parametrize("scope", [None, "profile"], ids=["plain", "narrowed"])
def test_a_lost_answer_is_no_reuse_with_a_window_of_zero(world, realm, proxy, node, scope):
    """Committed, and the answer lost: 200 with the successor, which works; the family lives."""
    app = realm.app(node=node)
    tokens = app.refreshed(app.sign_in(realm.user())["refresh_token"])
    before = reuses(world)
    for _ in range(5):
        proxy.lose("\0rotate_")
        following = app.refresh(tokens["refresh_token"], timeout=30, **({"scope": scope} if scope else {}))
        assert proxy.armed == 0
        assert following.status == 200, following
        assert following.json()["refresh_token"] != tokens["refresh_token"]
        tokens = following.json()
    assert app.refresh(tokens["refresh_token"]).status == 200
    assert reuses(world) == before


def test_when_every_repetition_is_lost_too_it_is_503_and_never_invalid_grant(world, realm, proxy, node):
    """Out of our own uncertainty nobody is signed out."""
    app = realm.app(node=node)
    tokens = app.refreshed(app.sign_in(realm.user())["refresh_token"])
    before = reuses(world)
    proxy.lose("\0rotate_", times=1000)
    try:
        answer = app.refresh(tokens["refresh_token"], timeout=60)
    finally:
        proxy.lose("\0rotate_", times=0)
    assert is_unavailable(answer), answer
    assert reuses(world) == before


def test_a_replay_by_the_client_is_reuse_all_the_same(realm, proxy, node):
    """The mark tells the two apart, not the clock."""
    app = realm.app(node=node)
    tokens = app.refreshed(app.sign_in(realm.user())["refresh_token"])
    proxy.lose("\0rotate_")
    following = app.refreshed(tokens["refresh_token"])
    assert app.refresh(tokens["refresh_token"]).error == "invalid_grant"
    assert app.refresh(following["refresh_token"]).error == "invalid_grant"
