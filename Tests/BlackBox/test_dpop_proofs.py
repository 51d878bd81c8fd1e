"""The proof itself (RFC 9449 §4.3): a table of proofs at a code, at a refresh and at userinfo. What was refused has cost nothing: the code,
the refresh token and the access token of a table's rows are the same until one is accepted."""

import json
import socket
import threading
import time

import pytest

from harness import jose, wire
from harness.app import FULL_SCOPE
from harness.dpop import INVALID, NONCE_DUE, DPoPApp, ProofKey, assert_bound, assert_invalid, assert_no_nonce, assert_nonce_due, nonce_of, token_hash
from harness.dpop_cases import CASES
from harness.dpop_places import PLACES, Maker, Refresh, Userinfo
from harness.service import service
from test_limits import assert_refused

_KEYS = {}


@pytest.fixture(scope="module")
def places(realm):
    """One of each kind; at the end of their tables a right proof succeeds."""
    made = {kind: kind(realm) for kind in PLACES}
    yield made
    for place in made.values():
        place.control()


@pytest.mark.parametrize("kind, case", [
    pytest.param(kind, case, id=f"{kind.name}-{case.name}") for kind in PLACES for case in CASES if case.where is None or kind.name in case.where])
def test_a_proof_is_accepted_only_if_all_of_it_is_right(places, kind, case):
    """One text for whatever is wrong, but for its time."""
    place = places[kind]
    if case.key is not None and case.name not in _KEYS:
        _KEYS[case.name] = case.key()
    key = _KEYS.get(case.name, place.app.key)
    proofs = case.make(Maker(place, key))
    proofs = proofs if isinstance(proofs, list) else [proofs]
    if case.verdict == "accepted":
        assert_no_nonce(place.succeed(key, *proofs))
    else:
        answer = place.send(key, *proofs)
        if case.verdict == "refused":
            assert answer.json() in (INVALID, NONCE_DUE), answer
        elif case.verdict == "nonce due":
            assert_nonce_due(answer, place.protected)
        else:
            assert_invalid(answer, place.protected)
    place.case()


def test_every_algorithm_binds_to_the_thumbprint(realm):
    """RFC 7638, in a JWT and by introspection of a reference token."""
    api = realm.app("api")
    for alg in ("ES256", "EdDSA", "PS256", "RS256"):
        for name in ("jwt", "app"):
            app = DPoPApp(realm.app(name), ProofKey(alg))
            token = app.bound(realm.user())["access_token"]
            if name == "jwt":
                assert jose.parts(token)[1]["cnf"] == {"jkt": app.key.thumbprint}
            asked = api.introspect(token).json()
            assert (asked["token_type"], asked["cnf"]) == ("DPoP", {"jkt": app.key.thumbprint})


def test_members_that_do_not_count_do_not_change_the_thumbprint(realm):
    """The same key with and without fifty more members, kid, alg and use."""
    app = DPoPApp(realm.app("jwt"))
    token = app.bound(realm.user())["access_token"]
    decorated = {**app.key.public(), "kid": "k", "alg": "ES256", "use": "sig", **{f"m{n}": "v" for n in range(50)}}
    proof = app.proof("GET", "/connect/userinfo", token, header={"jwk": decorated})
    assert app.get("/connect/userinfo", {"Authorization": f"DPoP {token}", "DPoP": proof}).status == 200


def test_nothing_in_a_proof_is_fetched(realm):
    """`kid`, `jku`, `x5u` and `x5c` beside the key are ignored."""
    app = DPoPApp(realm.app())
    token = app.bound(realm.user())["access_token"]
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.3)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/jwks"
    with listener:
        for more in ({"jku": url}, {"x5u": url}, {"kid": url}, {"x5c": ["AAAA"]}, {"kid": "../../etc/passwd", "jku": url, "x5t": "AAAA"}):
            proof = app.proof("GET", "/connect/userinfo", token, header=more)
            assert app.get("/connect/userinfo", {"Authorization": f"DPoP {token}", "DPoP": proof}).status == 200, more
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_field_of_64_kib_is_refused_before_anything_is_read(realm):
    """By the bounds of a request's head; the server lives."""
    app = DPoPApp(realm.app(), recorded=False)
    for size in (16_000, 65_536, 1 << 20):
        try:
            status = app.token({"grant_type": "refresh_token"}, {"DPoP": "a" * size}).status
        except wire.WireError:
            status = 431  # it closed while we were sending
        assert status == 431
    resident = app.node.resident()
    for _ in range(20):
        try:
            app.token({"grant_type": "refresh_token"}, {"DPoP": "a" * (1 << 20)})
        except wire.WireError:
            pass
    assert app.node.resident() - resident < 32 << 20
    assert app.bound(realm.user())


# -- where the proof is for --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
def test_a_proof_for_the_issuer_is_right_on_an_apps_host_and_not_the_reverse(world, kind):
    """On an App's host its own URL and the issuer's; at the issuer only the issuer's. Another App's URL is wrong everywhere."""
    realm = world.realm()
    shop, desk = realm.put_app("shop", ["jwt"]), realm.put_app("desk", ["app-2"])
    at_issuer, at_shop = kind(realm), kind(realm, host=shop)
    key = at_shop.app.key = at_issuer.app.key

    def proof(place, host):
        maker = Maker(place, key)
        return maker(payload={"htu": f"https://{host}{place.path}"})

    at_shop.succeed(key, proof(at_shop, shop))
    at_shop.succeed(key, proof(at_shop, realm.host))
    assert_invalid(at_shop.send(key, proof(at_shop, desk)), at_shop.protected)
    assert_invalid(at_issuer.send(key, proof(at_issuer, shop)), at_issuer.protected)
    at_issuer.succeed(key, proof(at_issuer, realm.host))


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
def test_another_domain_of_the_realm_and_another_realm_are_wrong(world, kind):
    """But the domain that was asked is right, and the issuer is on each of them."""
    realm, other = world.realm(), world.realm()
    second, third = f"second.{realm.host}", f"third.{realm.host}"
    world.admin.call("put_realm", realm.slug, domains=[realm.host, second, third])
    world.settle()
    place = kind(realm, host=second)
    key = place.app.key

    def proof(host):
        return Maker(place, key)(payload={"htu": f"https://{host}{place.path}"})

    for host in (third, other.host, f"x.{second}"):
        assert_invalid(place.send(key, proof(host)), place.protected)
    for host in (second, realm.host):
        place.succeed(key, proof(host))


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.name)
def test_a_forwarded_origin_of_a_stranger_counts_for_nothing(world, realm, kind):
    """X-Forwarded-Host and -Proto of a peer that is no proxy: neither makes a wrong URL right nor a right one wrong."""
    place = kind(realm)
    key = place.app.key
    forwarded = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http", "Forwarded": "host=evil.example;proto=http"}
    for url in (f"https://evil.example{place.path}", f"http://{realm.host}{place.path}"):
        assert_invalid(place.send(key, Maker(place, key)(payload={"htu": url}), headers=forwarded), place.protected)
    place.succeed(key, Maker(place, key)(), headers=forwarded)


# -- limits, bytes and order -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401])
def test_bad_proofs_use_up_their_sources_permits_of_refused(world, status):
    """After the burst 429; other sources and right proofs from the same one are served, and no sign-in budget is touched."""
    realm = world.realm("tight")
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    try:
        place = (Refresh if status == 400 else Userinfo)(realm, node=node)
        place.control()
        realm.limit("refused", "source", 4, per="1 day")
        realm.limit("token", "source", 3, per="1 day")
        here, there = {"X-Forwarded-For": "203.0.113.7"}, {"X-Forwarded-For": "203.0.113.8"}
        key = place.app.key
        for _ in range(4):
            assert_invalid(place.send(key, "junk", headers=here), place.protected)
        for proof in ("junk", Maker(place, key)(payload={"iat": 0})):
            assert_refused(place.send(key, proof, headers=here), "refused", "source")
        assert_invalid(place.send(key, "junk", headers=there), place.protected)
        for _ in range(2):
            place.succeed(key, Maker(place, key)(), headers=here)
    finally:
        node.stop()


@pytest.mark.slow
def test_ten_thousand_bad_proofs_leave_the_server_small_and_others_served(world):
    """Verified only as far as permits go; then 429 costs no signature."""
    realm = world.realm("flood")
    world.admin.call("reset_rate_limit", realm.slug, "refused", "source")
    world.settle()
    place = Refresh(realm)
    place.control()
    key, node = place.app.key, place.app.node
    fields, body = place.request(key)
    bad = ProofKey().proof("POST", place.url, spoil=lambda raw: raw[::-1])
    request = wire.request_bytes("POST", place.path, {"Host": realm.host, **fields, "DPoP": bad}, body)
    resident, statuses, lock = node.resident(), {}, threading.Lock()

    def flood():
        with wire.Connection(node.port) as connection:
            for _ in range(1250):
                connection.send(request)
                status = connection.receive().status
                with lock:
                    statuses[status] = statuses.get(status, 0) + 1

    floods = [threading.Thread(target=flood) for _ in range(8)]
    started = time.monotonic()
    for one in floods:
        one.start()
    place.succeed(key, Maker(place, key)())
    for one in floods:
        one.join()
    passed = 201 + (time.monotonic() - started) * 10
    assert set(statuses) == {400, 429} and statuses[400] <= passed, statuses
    assert node.resident() - resident < 64 << 20
    place.control()


def test_the_answer_to_a_bad_proof_does_not_depend_on_what_is_beside_it(realm):
    """A right and a wrong code, an unknown address, a live, a dead and a made-up refresh token; a good, an expired-looking and a foreign token."""
    app = DPoPApp(realm.app(), obeys=False)
    asked = app.plain.request_code(realm.user())
    live, dead = app.bound(realm.user()), app.bound(realm.user())
    assert app.revoke(dead["refresh_token"]).status == 200
    forms = [
        app.redeem_form(asked.code, handle=asked.handle), app.redeem_form(asked.code, email=asked.email),
        app.redeem_form("000000", handle=asked.handle), app.redeem_form("000000", email=realm.new_email()),
        *({"grant_type": "refresh_token", **app.credentials(), "refresh_token": token}
          for token in (live["refresh_token"], dead["refresh_token"], "prt_x")),
    ]
    tokens = [live["access_token"], dead["access_token"], "pat_x", app.plain.sign_in(realm.user())["access_token"]]
    for proof in ("junk", app.proof(spoil=lambda raw: raw[::-1])):
        answers = [app.token(form, {"DPoP": proof}) for form in forms]
        assert len({json.dumps(answer.same_bytes()[:2]) + answer.body.decode() for answer in answers}) == 1, answers
        assert_invalid(answers[0])
    for token in tokens:
        assert_invalid(app.get("/connect/userinfo", {"Authorization": f"DPoP {token}", "DPoP": "junk"}), protected=True)
    late = [app.token(form, {"DPoP": app.proof(payload={"iat": 1})}) for form in forms]
    shapes = {json.dumps([answer.status, sorted((k.lower(), v) for k, v in answer.headers if k.lower() not in ("dpop-nonce", *wire.VOLATILE))])
              + answer.body.decode() for answer in late}
    assert len(shapes) == 1 and all(nonce_of(answer) for answer in late), late
    assert app.redeem(asked.code, handle=asked.handle).status == 200


def test_the_proof_is_looked_at_after_the_client_and_before_scope_and_factor(world, realm):
    """Steps 1 to 5, then the proof, then the rest."""
    app = DPoPApp(realm.app(), obeys=False)
    form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": "prt_x"}

    def answer(app=app, **changes):
        return app.token({**form, **changes}, {"DPoP": "junk"})

    assert answer(client_id="nobody").error == "invalid_client"
    assert answer(app=DPoPApp(realm.app("api")), client_id=realm.client("api")).error == "invalid_client", "a secret is missing"
    assert answer(client_id=realm.client("no-refresh")).error == "unauthorized_client"
    assert answer(grant_type="password").error == "unsupported_grant_type"
    assert answer(grant_type=None).error == "invalid_request"
    off = world.realm(native=False)
    refused = DPoPApp(off.app()).token({**DPoPApp(off.app()).redeem_form("000000", email="a@b.example")}, {"DPoP": "junk"})
    assert refused.error == "unsupported_grant_type", refused
    for changes in ({"scope": "no.such.scope"}, {"scope": realm.forbidden_scope}, {"resource": "nonsense"}, {"refresh_token": None}):
        assert_invalid(answer(**changes))
    assert_invalid(app.token({"grant_type": "urn:cocoar:otp", **app.credentials()}, {"DPoP": "junk"}))
    worker, _ = service(realm, "order")
    assert_invalid(DPoPApp(worker).token({"grant_type": "client_credentials", **worker.credentials(), "scope": "no.such"}, {"DPoP": "junk"}))


def test_an_access_token_beside_the_form_changes_nothing(realm):
    """At the token endpoint `ath` is not asked for, and any is ignored."""
    app = DPoPApp(realm.app())
    tokens = app.bound(realm.user())
    for ath in (token_hash("x"), token_hash(tokens["access_token"]), ""):
        proof = app.proof(payload={"ath": ath})
        form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]}
        tokens = assert_bound(app.token(form, {"DPoP": proof}), app.key)


def test_without_a_proof_all_is_as_it_was(realm):
    """Bearer, no `cnf`, no nonce, no scheme but Bearer."""
    app = realm.app("jwt")
    asked = app.request_code(realm.user())
    answer = app.redeem(asked.code, handle=asked.handle, scope=FULL_SCOPE)
    assert answer.json()["token_type"] == "Bearer" and "cnf" not in jose.parts(answer.json()["access_token"])[1]
    assert_no_nonce(answer)
    assert app.userinfo(answer.json()["access_token"]).status == 200


def test_a_proof_is_no_token_and_no_assertion(realm):
    """As access token, refresh token, client assertion or code it opens nothing."""
    app = DPoPApp(realm.app())
    app.bound(realm.user())
    proof = app.proof("GET", "/connect/userinfo")
    assert app.plain.userinfo(proof).status == 401
    assert app.plain.refresh(proof).error == "invalid_grant"
    form = {"grant_type": "client_credentials", "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "client_assertion": proof}
    assert app.plain.token(form).error == "invalid_client"
