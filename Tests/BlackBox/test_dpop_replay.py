"""A proof serves once, over all nodes, restarts and crashes; a replay never gets through and never costs the owner anything."""

import secrets
import threading
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from harness import wire
from harness.dpop import (
    INVALID, REFUSED_CODE, DPoPApp, ProofKey, assert_bound, assert_error, assert_invalid, assert_nonce_due, assert_token_refused)
from harness.dpop_cases import ORDER
from harness.jose import b64url, unb64url
from harness.load import is_unavailable
from harness.moving_world import MovingWorld
from harness.node import Node
from harness.proxy import LosingProxy
from harness.settings import FAULT_ROUNDS, ROUNDS
from harness.shift import Shift
from harness.transaction import OpenTransaction
from harness.volley import in_parallel, volley

pytestmark = pytest.mark.slow
USERINFO = "/connect/userinfo"


@pytest.fixture(scope="module")
def second(world):
    """Another process on the same database."""
    node = world.start_node()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def moving():
    """A world whose time passes."""
    made = MovingWorld("dpop-replay")
    try:
        yield made.open()
    finally:
        made.close()


class Signed:
    """An app with tokens that are bound to its key; what it sends is under the test's hand."""

    def __init__(self, realm, app=None):
        self.app = app or DPoPApp(realm.app())
        self.tokens = self.app.bound(realm.user())
        self.app.obeys = False

    @property
    def token(self):
        """The access token."""
        return self.tokens["access_token"]

    def proof(self, method="GET", path=USERINFO, **changes):
        """A proof for a protected request."""
        return self.app.proof(method, path, self.token, **changes)

    def userinfo(self, proof, node=None):
        """GET userinfo; the raw answer."""
        return (self.app.at(node) if node else self.app).get(USERINFO, {"Authorization": f"DPoP {self.token}", "DPoP": proof})

    def form(self, refresh_token=None):
        """A refresh."""
        return {"grant_type": "refresh_token", **self.app.credentials(), "refresh_token": refresh_token or self.tokens["refresh_token"]}

    def refresh(self, proof, refresh_token=None, node=None):
        """The raw answer."""
        return (self.app.at(node) if node else self.app).token(self.form(refresh_token), {"DPoP": proof})


@pytest.fixture
def signed(realm):
    """One of this test's own."""
    return Signed(realm)


def assert_never_served(answer):
    """Refused as used, or as too old to tell."""
    if answer.json() == INVALID:
        assert_invalid(answer, protected=True)
    else:
        assert_nonce_due(answer, protected=True)


# -- at protected endpoints ------------------------------------------------------------------------


def test_a_proof_serves_once_at_one_node_and_over_two(realm, second, signed):
    """In either order; a new proof is served in between."""
    for nodes in ((None, None), (None, second), (second, None), (second, second)):
        proof = signed.proof()
        assert signed.userinfo(proof, nodes[0]).status == 200
        assert signed.userinfo(signed.proof(), nodes[1]).status == 200
        for _ in range(3):
            assert_invalid(signed.userinfo(proof, nodes[1]), protected=True)


def test_of_many_at_once_exactly_one_is_served(world, realm, second, signed):
    """48 times the same request over two nodes."""
    for _ in range(ROUNDS):
        fields = {"Host": realm.host, "Authorization": f"DPoP {signed.token}", "DPoP": signed.proof()}
        request = wire.request_bytes("GET", USERINFO, fields)
        answers = at_once([world.node, second], request, 48, "GET")
        served = [answer for answer in answers if answer.status == 200]
        assert len(served) == 1, [str(answer) for answer in answers if answer.status not in (200, 401)] or len(served)
        for answer in answers:
            if answer.status != 200:
                assert_invalid(answer, protected=True)


def at_once(nodes, request, count, method="POST"):
    """The same bytes, `count` times at a barrier, over the nodes in turn."""
    connections = [wire.Connection(nodes[n % len(nodes)].port, timeout=30) for n in range(count)]
    barrier, answers = threading.Barrier(count), [None] * count

    def fire(index):
        barrier.wait(30)
        connections[index].send(request[index] if isinstance(request, list) else request)
        answers[index] = connections[index].receive(method)

    threads = [threading.Thread(target=fire, args=(n,)) for n in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for connection in connections:
        connection.close()
    assert None not in answers
    return answers


def test_what_counts_is_key_and_jti(signed, realm):
    """Another signature, method, path and time (of the same five minutes) under the same `jti` is the same proof; under another key another."""
    jti, now = secrets.token_urlsafe(12), time.time()
    later = now + (1 if now % 300 < 298 else -1)
    assert signed.userinfo(signed.proof(now=now, payload={"jti": jti})).status == 200
    assert_invalid(signed.userinfo(signed.proof(now=later, payload={"jti": jti})), protected=True)
    for method, path in (("GET", "/connect/sessions"), ("DELETE", "/connect/sessions/none"), ("GET", "/connect/account")):
        proof = signed.proof(method, path, now=now, payload={"jti": jti, "x": "y"})
        answer = signed.app.exchange(method, path, {"Authorization": f"DPoP {signed.token}", "DPoP": proof})
        assert_invalid(answer, protected=True)
    assert_invalid(signed.refresh(signed.app.proof(now=now, payload={"jti": jti})))
    other = Signed(realm)
    assert other.userinfo(other.proof(now=now, payload={"jti": jti})).status == 200


def test_the_twin_of_a_signature_is_the_same_proof(signed):
    """(r, n - s) verifies as (r, s) does, and was used with it."""
    proof = signed.proof()
    signed_part, _, signature = proof.rpartition(".")
    raw = unb64url(signature)
    twin = raw[:32] + (ORDER - int.from_bytes(raw[32:], "big")).to_bytes(32, "big")
    public = signed.app.key.private.public_key()
    der = utils.encode_dss_signature(int.from_bytes(twin[:32], "big"), int.from_bytes(twin[32:], "big"))
    public.verify(der, signed_part.encode(), ec.ECDSA(hashes.SHA256()))
    assert signed.userinfo(proof).status == 200
    assert_invalid(signed.userinfo(f"{signed_part}.{b64url(twin)}"), protected=True)


def test_a_thousand_requests_at_once_each_get_their_own_answer(realm):
    """Good ones, ten replays and ten bad tokens among them."""
    owners = [Signed(realm) for _ in range(20)]
    used = [owner.proof() for owner in owners[:10]]
    for owner, proof in zip(owners, used):
        assert owner.userinfo(proof).status == 200
    jobs = [(owners[n % 20], None) for n in range(1000)]
    for n in range(10):
        jobs[n * 97] = (owners[n], used[n])
        jobs[n * 97 + 40] = (owners[n], "token")

    def ask(job):
        owner, special = job
        if special == "token":
            proof = owner.app.proof("GET", USERINFO, owner.token + "x")
            return owner.app.get(USERINFO, {"Authorization": f"DPoP {owner.token}x", "DPoP": proof})
        return owner.userinfo(special or owner.proof())

    for (_, special), answer in zip(jobs, in_parallel(ask, jobs, threads=48)):
        if special is None:
            assert answer.status == 200, answer
        elif special == "token":
            assert_token_refused(answer)
        else:
            assert_invalid(answer, protected=True)


# -- at the token endpoint -------------------------------------------------------------------------


def test_a_proof_stays_used_when_its_factor_was_wrong(realm):
    """With a wrong code, then with the right one: refused, and the code is good with a new proof."""
    app = DPoPApp(realm.app(), obeys=False)
    asked = app.plain.request_code(realm.user())
    proof = app.proof()
    wrong = f"{(int(asked.code) + 1) % 1_000_000:06}"
    assert_error(app.token(app.redeem_form(wrong, handle=asked.handle), {"DPoP": proof}), 400, REFUSED_CODE)
    for _ in range(7):
        assert_invalid(app.token(app.redeem_form(asked.code, handle=asked.handle), {"DPoP": proof}))
        assert_invalid(app.token(app.redeem_form(wrong, handle=asked.handle), {"DPoP": proof}))
    assert_bound(app.redeem(asked.code, handle=asked.handle), app.key)


def test_a_proof_of_one_realm_is_none_of_another(world, realm, signed):
    """Its URL is the first realm's, whatever host the request names."""
    other = world.realm()
    app = DPoPApp(other.app(), signed.app.key, obeys=False)
    tokens = app.bound(other.user())
    proof = signed.app.proof("GET", USERINFO, tokens["access_token"])
    assert_invalid(app.get(USERINFO, {"Authorization": f"DPoP {tokens['access_token']}", "DPoP": proof}), protected=True)
    right = app.proof("GET", USERINFO, tokens["access_token"], payload={"jti": "the same in both"})
    assert signed.userinfo(signed.proof(payload={"jti": "the same in both"})).status == 200
    assert app.get(USERINFO, {"Authorization": f"DPoP {tokens['access_token']}", "DPoP": right}).status == 200, "a realm counts its own"


def test_a_request_repeated_by_the_http_stack_gets_the_same_successor(signed, second):
    """The same proof and the same token, at both nodes; access tokens are new and bound."""
    proof = signed.app.proof()
    first = assert_bound(signed.refresh(proof), signed.app.key)
    for node in (None, second, None):
        again = assert_bound(signed.refresh(proof, node=node), signed.app.key)
        assert again["refresh_token"] == first["refresh_token"] and again["access_token"] != first["access_token"]
    assert_bound(signed.refresh(signed.app.proof(), first["refresh_token"]), signed.app.key)


def test_a_used_proof_moves_no_generation(signed, second):
    """With the successor it is refused, at either node and fifty times over; the family goes on with a new one."""
    proof = signed.app.proof()
    first = assert_bound(signed.refresh(proof), signed.app.key)
    for n in range(50):
        assert_invalid(signed.refresh(proof, first["refresh_token"], second if n % 2 else None))
    again = assert_bound(signed.refresh(signed.app.proof()), signed.app.key)
    assert again["refresh_token"] == first["refresh_token"], "the predecessor is still the immediate one"
    following = assert_bound(signed.refresh(signed.app.proof(), first["refresh_token"]), signed.app.key)
    assert_bound(signed.refresh(signed.app.proof(), following["refresh_token"]), signed.app.key)


def test_a_replay_races_with_its_original_and_rotates_nothing(world, realm, second):
    """The observed proof with the successor, at two nodes, while the original's answer is on its way: no generation is skipped."""
    for _ in range(ROUNDS):
        owner = Signed(realm)
        observed = owner.app.proof()
        first = assert_bound(owner.refresh(observed), owner.app.key)
        requests = [proofed(owner, first["refresh_token"], observed), proofed(owner, owner.tokens["refresh_token"], observed)] * 8
        answers = at_once([world.node, second], requests, len(requests))
        for number, answer in enumerate(answers):
            if number % 2:
                assert answer.status == 200 and answer.json()["refresh_token"] == first["refresh_token"], answer
            else:
                assert_invalid(answer)
        assert_bound(owner.refresh(owner.app.proof(), first["refresh_token"]), owner.app.key)


def proofed(owner, refresh_token, proof):
    """The bytes of a refresh."""
    fields = {"Host": owner.app.host, "Content-Type": wire.FORM, "DPoP": proof}
    return wire.request_bytes("POST", "/connect/token", fields, wire.form_body(owner.form(refresh_token)))


def test_a_request_over_a_limit_leaves_its_proof_unused(world):
    """429, and with the limit gone the same request is served."""
    realm = world.realm()
    owner = Signed(realm)
    assert_bound(owner.refresh(owner.app.proof()), owner.app.key)
    realm.limit("token", "source", 1, per="1 day")
    proofs = [owner.app.proof() for _ in range(3)]
    statuses = [owner.refresh(proof).status for proof in proofs]
    assert statuses[-1] == 429
    realm.limit("token", "source", 1_000_000, per="1 minute")
    assert_bound(owner.refresh(proofs[-1]), owner.app.key)


# -- faults --------------------------------------------------------------------------------------------


def test_a_restart_of_a_node_or_of_the_database_forgets_nothing(fragile_world):
    """The node killed, PostgreSQL stopped in order."""
    owner = Signed(fragile_world.realm())
    for fault in (fragile_world.node.kill, fragile_world.cluster.stop):
        proof = owner.proof()
        assert owner.userinfo(proof).status == 200
        fault()
        fragile_world.cluster.ensure_up()
        if not fragile_world.node.alive():
            fragile_world.node.start()
        fragile_world.node.wait_ready()
        assert_invalid(owner.userinfo(proof), protected=True)
        assert owner.userinfo(owner.proof()).status == 200


def test_after_a_crash_of_the_database_older_proofs_need_a_nonce(fragile_world):
    """Never served again: used and unused ones alike are asked for a nonce, and with it the client goes on; no sign-out."""
    realm = fragile_world.realm()
    for _ in range(FAULT_ROUNDS):
        owner = Signed(realm)
        used, unused, before = owner.proof(), owner.proof(), owner.app.proof()
        assert owner.userinfo(used).status == 200
        fragile_world.cluster.kill()
        fragile_world.cluster.ensure_up()
        fragile_world.node.wait_ready()
        assert_nonce_due(owner.userinfo(used), protected=True)
        nonce = assert_nonce_due(owner.userinfo(unused), protected=True)
        assert_nonce_due(owner.refresh(before))
        proof = owner.proof(nonce=nonce)
        assert owner.userinfo(proof).status == 200
        assert_invalid(owner.userinfo(proof), protected=True)
        owner.app.obeys = True
        following = owner.app.refreshed(owner.tokens["refresh_token"])
        assert owner.app.userinfo(following["access_token"]).status == 200


def test_a_standby_whose_clock_is_behind_serves_no_proof_again(fragile_world):
    """Used by nonce just before the crash, which by the new clock is half a minute ahead; with the nonce it is given a client goes on."""
    cluster = fragile_world.cluster
    owner, shift = Signed(fragile_world.realm()), Shift.made(cluster.root)
    owner.app.nonce = None
    nonce = assert_nonce_due(owner.userinfo(owner.proof(payload={"iat": 1})), protected=True)
    used = [owner.proof(nonce=nonce, payload={"iat": 1}) for _ in range(2)]
    assert [owner.userinfo(proof).status for proof in used] == [200, 200]
    shift.by(-30)
    cluster.environment = shift.environment
    try:
        cluster.kill()
        cluster.start()
        assert cluster.value("SELECT now() < to_timestamp(%f)" % (time.time() - 20)) == "t"
        fragile_world.node.wait_ready()
        fresh = assert_nonce_due(owner.userinfo(used[0]), protected=True)
        assert_nonce_due(owner.userinfo(used[1]), protected=True)
        proof = owner.proof(nonce=fresh)
        assert owner.userinfo(proof).status == 200
        assert_invalid(owner.userinfo(proof), protected=True)
    finally:
        shift.by(0)
        cluster.environment = {}
        cluster.kill()
        cluster.start()
        fragile_world.node.wait_ready()


def test_while_the_database_is_away_it_is_503_and_the_proof_is_not_spent(fragile_world):
    """Not 401: the client may repeat the same request."""
    owner = Signed(fragile_world.realm())
    assert owner.userinfo(owner.proof()).status == 200
    fragile_world.cluster.stop()
    try:
        for answer in (owner.userinfo(owner.proof()), owner.refresh(owner.app.proof())):
            assert is_unavailable(answer), answer
    finally:
        fragile_world.cluster.ensure_up()
    fragile_world.node.wait_ready()
    assert owner.userinfo(owner.proof()).status == 200


def test_a_lost_answer_of_the_database_never_looks_like_a_replay(world, realm):
    """Committed and not told: the server's own repetition is 200 or 503, at userinfo and at a refresh."""
    proxy = LosingProxy(world.cluster)
    node = Node(proxy.url(world.cluster, "bb_serve"), world.key_file, world.mailbox.port).start()
    world.nodes.append(node)
    try:
        owner = Signed(realm)
        print_of_key = unb64url(owner.app.key.thumbprint)
        for _ in range(5):
            for ask in (lambda: owner.userinfo(owner.proof(), node), lambda: owner.refresh(owner.app.proof(), node=node)):
                proxy.lose(print_of_key)
                answer = ask()
                assert proxy.armed == 0, "the proof was not part of a statement"
                assert answer.status == 200 or is_unavailable(answer), answer
    finally:
        node.stop()
        proxy.close()


def test_a_batch_that_rolls_back_has_used_no_proof(world, realm):
    """One family's row is locked: its refresh is 503 or waits, others are served, and afterwards the same proof serves."""
    locked, free = Signed(realm), [Signed(realm) for _ in range(8)]
    api = realm.app("api")
    session = api.introspect(locked.token).json()["sub"]
    row = f"SELECT 1 FROM postern.session WHERE user_id = '{session}' FOR UPDATE;"
    proof = locked.app.proof()
    with OpenTransaction(world, row, role="postgres"):
        answers = {}
        thread = threading.Thread(target=lambda: answers.update(locked=locked.app.token(locked.form(), {"DPoP": proof}, timeout=60)))
        thread.start()
        for owner in free * 3:
            assert owner.refresh(owner.app.proof()).status == 200
        thread.join(60)
    assert is_unavailable(answers["locked"]), answers
    assert_bound(locked.refresh(proof), locked.app.key)


# -- time --------------------------------------------------------------------------------------------


def test_a_proof_by_nonce_is_used_for_the_life_of_its_nonce(moving):
    """Four minutes later it is known; when the nonce is old a new one is asked for."""
    owner = _owner(moving)
    nonce = assert_nonce_due(owner.userinfo(owner.proof(payload={"iat": 1})), protected=True)
    proof = owner.proof(nonce=nonce, payload={"iat": 1})
    assert owner.userinfo(proof).status == 200
    for _ in range(2):
        moving.travel(120)
        assert_invalid(owner.userinfo(proof), protected=True)
    moving.travel(70)
    assert_nonce_due(owner.userinfo(proof), protected=True)


def _owner(moving, wrong=0):
    realm = moving.realm()
    return Signed(realm, moving.app(realm, wrong=wrong))


def test_a_proof_of_the_future_is_not_served_again_when_its_time_has_come(moving):
    """`iat` nearly a minute ahead, replayed until it is a minute old."""
    owner = _owner(moving)
    proof = owner.proof(payload={"iat": int(moving.shift.now()) + 57})
    assert owner.userinfo(proof).status == 200
    for _ in range(6):
        moving.travel(20)
        assert_never_served(owner.userinfo(proof))


def test_a_phone_that_is_ahead_leaves_nothing_to_replay_when_time_has_caught_up(moving):
    """Its proof was accepted by the nonce; ten minutes later its `iat` is now."""
    owner = _owner(moving, wrong=600)
    nonce = assert_nonce_due(owner.userinfo(owner.proof(nonce=None)), protected=True)
    proof = owner.proof(nonce=nonce)
    assert owner.userinfo(proof).status == 200
    for _ in range(6):
        moving.travel(110)
        assert_never_served(owner.userinfo(proof))


def test_a_longer_life_of_nonces_revives_no_used_proof(moving):
    """One minute, used; two minutes later thirty are allowed."""
    owner = _owner(moving)
    realm = owner.app.host.split(".")[0]
    moving.admin.call("set_dpop", realm, nonce_lifetime="1 minute")
    moving.settle()
    nonce = assert_nonce_due(owner.userinfo(owner.proof(payload={"iat": 1})), protected=True)
    proof = owner.proof(nonce=nonce)
    assert owner.userinfo(proof).status == 200
    moving.travel(120)
    assert_nonce_due(owner.userinfo(proof), protected=True)
    moving.admin.call("set_dpop", realm, nonce_lifetime="30 minutes")
    moving.settle()
    assert_invalid(owner.userinfo(proof), protected=True)
    for _ in range(5):
        moving.travel(320)
        assert_never_served(owner.userinfo(proof))


def test_a_nonce_that_runs_out_leaves_no_second_way_by_iat(moving):
    """Used half a minute before the end of its nonce with a fresh `iat`, replayed forty seconds later."""
    owner = _owner(moving)
    nonce = assert_nonce_due(owner.userinfo(owner.proof(payload={"iat": 1})), protected=True)
    moving.travel(270)
    proof = owner.proof(nonce=nonce)
    assert owner.userinfo(proof).status == 200
    moving.travel(40)
    for _ in range(3):
        assert_never_served(owner.userinfo(proof))


def test_the_store_is_as_small_as_before_once_its_proofs_are_old(moving):
    """What forty minutes have made old goes by whole slots, and nothing has to be vacuumed for it."""
    owner = _owner(moving)
    for _ in range(500):
        assert owner.userinfo(owner.proof()).status == 200
    assert proofs_kept(moving, owner) >= 500
    moving.cluster.value("SELECT postern.empty_proof_slots()")
    assert proofs_kept(moving, owner) >= 500, "they could still be presented"
    moving.travel(2400)
    moving.cluster.value("SELECT postern.empty_proof_slots()")  # or a server's sweeper was first
    assert proofs_kept(moving, owner) == 0


def proofs_kept(world, owner):
    """Rows of the owner's realm in the tables that keep proofs."""
    realm = owner.app.host.split(".")[0]
    tables = [name for name, in world.cluster.sql(
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname = 'postern' AND c.relkind = 'r' AND c.relpersistence = 'u' AND c.relname LIKE 'used\\_proof%'")]
    assert tables, "no unlogged table of proofs"
    return sum(int(world.cluster.value(f"SELECT count(*) FROM {table} WHERE realm_id = (SELECT id FROM postern.realm WHERE slug = '{realm}')")) for table in tables)


def test_two_keys_do_not_share_a_jti(realm):
    """What one client used up is no other's."""
    app = DPoPApp(realm.app())
    other = app.with_key(ProofKey())
    for one in (app, other):
        form = {"grant_type": "refresh_token", **one.credentials(), "refresh_token": one.bound(realm.user())["refresh_token"]}
        assert_bound(one.token(form, {"DPoP": one.proof(payload={"jti": "one and the same"})}), one.key)


def test_proofs_of_a_batch_are_used_up_each_for_itself(world, realm):
    """Sixty refreshes at once, and eight that share four proofs: all of the sixty rotate, and one of each pair."""
    signed = [Signed(realm) for _ in range(60)]
    shared = DPoPApp(realm.app())
    pairs = [Signed(realm, shared) for _ in range(8)]
    proofs = [one.app.proof() for one in signed]
    twins = [proof for proof in (shared.proof() for _ in range(4)) for _ in range(2)]
    requests = [
        wire.request_bytes("POST", "/connect/token", {"Host": one.app.host, "Content-Type": wire.FORM, "DPoP": proof}, wire.form_body(one.form()))
        for one, proof in zip(signed + pairs, proofs + twins)]
    answers = volley(world.node.port, requests)
    statuses = [answer.status for answer in answers]
    assert statuses[:60] == [200] * 60, statuses
    for first in range(60, 68, 2):
        assert sorted(statuses[first:first + 2]) == [200, 400], statuses
    for one, proof, answer in zip(signed, proofs, answers):
        assert_invalid(one.refresh(proof, answer.json()["refresh_token"]))
