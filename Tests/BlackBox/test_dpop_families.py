"""Refresh families and sign-ins that are bound to a key: a thief without it gets neither tokens nor a way to sign the owner out."""

import threading

import pytest

from harness.postgres import SQLError
from harness import authenticator, keyfile, wire
from harness.app import bearer
from harness.codeflow import Flow, hosted
from harness.dpop import (
    REFUSED_CODE, REFUSED_REFRESH, DPoPApp, ProofKey, assert_bound, assert_error, assert_no_nonce, token_hash)
from harness.jose import parts
from harness.links import Links
from harness.service import service
from harness.settings import FULL, ROUNDS, UNIFORM_DEADLINE_MS
from harness.volley import volley

MUST = {"error": "invalid_request", "error_description": "The client must use DPoP."}


@pytest.fixture
def mine(realm):
    """An app with its key."""
    return DPoPApp(realm.app())


def thief(app):
    """The same client with another key."""
    return app.with_key(ProofKey())


def mismatches(world, realm):
    """Audited refreshes with a wrong key or none."""
    rows = world.admin.rows_of("audit_log", "refresh_key_mismatch")
    return sum(realm.slug in row for row in rows)


def bound_key(world, realm, email):
    """What the administrator sees of the user's sessions: their keys."""
    rows = world.admin.run(f"SELECT coalesce(s.jkt, 'none') FROM admin.sessions s WHERE row_to_json(s)::text ILIKE '%{email}%';")
    return {row[0] for row in rows}


def assert_refused(answer):
    """The uniform answer, no sooner than its deadline."""
    assert_error(answer, 400, REFUSED_REFRESH)
    assert_no_nonce(answer)
    assert answer.seconds * 1000 > UNIFORM_DEADLINE_MS - 2, answer


# -- what a sign-in binds ----------------------------------------------------------------------------


def test_every_grant_binds_its_session_to_the_key(world):
    """Code by mail, link by poll and by its token, passkey, authorization code, registration: all the way to the refresh token."""
    realm = hosted(world.realm())
    app = DPoPApp(realm.app())
    links = Links(app)

    def by_code(email):
        return app.bound(email)

    def by_link(email):
        return assert_bound(links.redeem(links.link(email)), app.key)

    def by_poll(email):
        link = links.link(email)
        assert links.choose(link, link.number).status == 200
        return assert_bound(links.poll(link.handle), app.key)

    def by_passkey(email):
        _, credential = app.enroll(app.bound(email)["access_token"])
        return assert_bound(app.try_passkey(credential), app.key)

    def by_authorization_code(email):
        flow = Flow(realm)
        flow.sign_in(email)
        return assert_bound(flow.exchange(flow.code(), {"DPoP": app.proof()}), app.key)

    for sign_in in (by_code, by_link, by_poll, by_passkey, by_authorization_code):
        email = realm.user()
        tokens = sign_in(email)
        assert app.userinfo(tokens["access_token"]).status == 200
        assert_refused(thief(app).refresh(tokens["refresh_token"]))
        assert_refused(app.plain.refresh(tokens["refresh_token"]))
        following = assert_bound(app.refresh(tokens["refresh_token"]), app.key)
        assert_bound(app.refresh(following["refresh_token"]), app.key)


def test_the_key_is_told_to_the_administrator_and_to_the_user(world, realm, mine):
    """`admin.sessions` has the thumbprint, the user's own list only that there is one."""
    email = realm.user()
    unbound = mine.plain.sign_in(email)
    tokens = mine.bound(email)
    told = bound_key(world, realm, email)
    assert told == {"none", mine.key.thumbprint}
    items = mine.get("/connect/sessions", bearer(tokens["access_token"])).json()
    assert sorted((item["Current"], item["DPoP"]) for item in items) == [(False, False), (True, True)]
    assert mine.key.thumbprint not in mine.plain.get("/connect/sessions", bearer(unbound["access_token"])).body.decode()


# -- refresh -------------------------------------------------------------------------------------------


def test_without_the_key_a_refresh_token_is_worth_nothing(world, realm, mine):
    """Another key and no proof: the same bytes as a token that never was; each is audited; the owner goes on."""
    tokens = mine.bound(realm.user())
    before = mismatches(world, realm)
    answers = [thief(mine).refresh(tokens["refresh_token"]), mine.plain.refresh(tokens["refresh_token"])]
    for answer in answers:
        assert_refused(answer)
    assert answers[0].same_bytes() == mine.refresh("prt_" + "A" * (len(tokens["refresh_token"]) - 4)).same_bytes()
    assert mismatches(world, realm) == before + 2
    following = assert_bound(mine.refresh(tokens["refresh_token"]), mine.key)
    assert mine.userinfo(following["access_token"]).status == 200
    assert mismatches(world, realm) == before + 2


def test_an_older_generation_ends_the_family_only_with_the_key(world, realm, mine):
    """A thief with all old tokens changes nothing; the key with an old one is reuse, once the window is over."""
    chain = [mine.bound(realm.user())]
    for _ in range(3):
        chain.append(mine.refreshed(chain[-1]["refresh_token"]))
    for tokens in chain:
        assert_refused(thief(mine).refresh(tokens["refresh_token"]))
        assert_refused(mine.plain.refresh(tokens["refresh_token"]))
    chain.append(mine.refreshed(chain[-1]["refresh_token"]))
    world.time_travel(125)
    assert_refused(mine.refresh(chain[0]["refresh_token"]))
    assert_refused(mine.refresh(chain[-1]["refresh_token"]))
    assert mine.userinfo(chain[-1]["access_token"]).status == 401
    assert [row for row in world.admin.rows_of("audit_log", "refresh_token_reuse") if realm.slug in row]


def test_the_predecessor_gets_its_successor_with_the_key_alone(world, realm, mine):
    """Within the retry window, with a new proof; a wrong key and none are refused, and the successor lives."""
    tokens = mine.bound(realm.user())
    first = mine.refreshed(tokens["refresh_token"])
    assert_refused(thief(mine).refresh(tokens["refresh_token"]))
    assert_refused(mine.plain.refresh(tokens["refresh_token"]))
    assert mine.refreshed(tokens["refresh_token"])["refresh_token"] == first["refresh_token"]
    world.time_travel(125)
    assert_refused(thief(mine).refresh(tokens["refresh_token"]))
    assert_refused(mine.plain.refresh(tokens["refresh_token"]))
    assert_bound(mine.refresh(first["refresh_token"]), mine.key)


def test_an_update_of_the_app_signs_nobody_out(realm, mine):
    """An unbound family is bound by its first proof; from then on Bearer is refused."""
    tokens = mine.plain.sign_in(realm.user())
    following = mine.plain.refreshed(tokens["refresh_token"])
    bound = assert_bound(mine.refresh(following["refresh_token"]), mine.key)
    assert_refused(mine.plain.refresh(bound["refresh_token"]))
    assert_refused(thief(mine).refresh(bound["refresh_token"]))
    assert_bound(mine.refresh(bound["refresh_token"]), mine.key)


def test_the_unbound_predecessor_of_a_bound_successor_wants_its_key(realm, mine):
    """The answer that bound the family was lost."""
    tokens = mine.plain.sign_in(realm.user())
    bound = assert_bound(mine.refresh(tokens["refresh_token"]), mine.key)
    assert_refused(thief(mine).refresh(tokens["refresh_token"]))
    assert_refused(mine.plain.refresh(tokens["refresh_token"]))
    assert mine.refreshed(tokens["refresh_token"])["refresh_token"] == bound["refresh_token"]
    assert_bound(mine.refresh(bound["refresh_token"]), mine.key)


def test_a_thief_who_binds_the_family_does_not_escape_the_judgement_of_reuse(world, realm, mine):
    """After the window the owner's unbound token is reuse, whatever it is presented with: the thief's family ends."""
    for owner in (lambda app: app.plain, lambda app: app, lambda app: DPoPApp(realm.app())):
        tokens = mine.plain.sign_in(realm.user())
        other = thief(mine)
        stolen = assert_bound(other.refresh(tokens["refresh_token"]), other.key)
        world.time_travel(125)
        assert_refused(owner(mine).refresh(tokens["refresh_token"]))
        assert other.userinfo(stolen["access_token"]).status == 401
        assert [row for row in world.admin.rows_of("audit_log", "refresh_token_reuse") if realm.slug in row]


def test_a_thief_who_goes_on_refreshing_is_found_out_at_once(realm, mine):
    """The successor was used: the owner's unbound token ends the family within the window, too."""
    other = thief(mine)
    tokens = mine.plain.sign_in(realm.user())
    bound = other.refreshed(tokens["refresh_token"])
    second = other.refreshed(bound["refresh_token"])
    assert_refused(mine.plain.refresh(tokens["refresh_token"]))
    assert_refused(other.refresh(second["refresh_token"]))
    # But what is bound ends nothing without its key.
    tokens = mine.plain.sign_in(realm.user())
    chain = [mine.refreshed(tokens["refresh_token"])]
    chain.append(mine.refreshed(chain[-1]["refresh_token"]))
    assert_refused(mine.plain.refresh(chain[0]["refresh_token"]))
    assert_bound(mine.refresh(chain[-1]["refresh_token"]), mine.key)


def test_two_keys_race_for_an_unbound_family_and_one_wins(realm, mine):
    """48 at once: the losers are refused, the family lives with the winner."""
    for _ in range(ROUNDS if FULL else 5):
        apps = [mine, thief(mine)]
        token = mine.plain.sign_in(realm.user())["refresh_token"]
        form = wire.form_body({"grant_type": "refresh_token", **mine.credentials(), "refresh_token": token})
        requests = [wire.request_bytes("POST", "/connect/token", {
            "Host": mine.host, "Content-Type": wire.FORM, "DPoP": apps[n % 2].proof()}, form) for n in range(48)]
        answers = volley(mine.node.port, requests)
        won = {n % 2 for n, answer in enumerate(answers) if answer.status == 200}
        assert len(won) == 1, [str(answer) for answer in answers]
        winner = apps[won.pop()]
        assert len({answer.json()["refresh_token"] for answer in answers if answer.status == 200}) == 1
        for answer in answers:
            if answer.status != 200:
                assert_error(answer, 400, REFUSED_REFRESH)
        successor = next(answer for answer in answers if answer.status == 200).json()["refresh_token"]
        assert_bound(winner.refresh(successor), winner.key)


def test_scope_and_resource_may_be_narrowed(realm):
    """As without a proof, and each access token is bound."""
    app = DPoPApp(realm.app("jwt"))
    scope = "openid offline_access profile email " + realm.granted_scope
    tokens = app.bound(realm.user(), scope=scope)
    for more in ({"scope": "openid"}, {"scope": realm.granted_scope, "resource": realm.granted_resource}, {}):
        tokens = app.refreshed(tokens["refresh_token"], **more)
        claims = parts(tokens["access_token"])[1]
        assert claims["cnf"] == {"jkt": app.key.thumbprint} and claims["scope"] == tokens["scope"]
    assert "cnf" not in parts(tokens["id_token"])[1]


def test_bound_and_unbound_families_at_once_each_get_their_own_verdict(realm, mine):
    """One batch of right keys, wrong keys, none, and Bearer families."""
    apps = [DPoPApp(realm.app()) for _ in range(24)]
    families = [app.bound(realm.user()) if n % 2 else app.plain.sign_in(realm.user()) for n, app in enumerate(apps)]
    requests, expected = [], []
    for n, (app, tokens) in enumerate(zip(apps, families)):
        kind = n % 6
        # Even: unbound, refreshed without and with a proof; odd: bound, with the key, another, none.
        proof = {0: None, 1: app.proof(), 2: app.proof(), 3: thief(app).proof(), 4: None, 5: None}[kind]
        expected.append({0: "Bearer", 1: "DPoP", 2: "DPoP", 3: None, 4: "Bearer", 5: None}[kind])
        fields = {"Host": app.host, "Content-Type": wire.FORM, "DPoP": proof}
        form = {"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]}
        requests.append(wire.request_bytes("POST", "/connect/token", fields, wire.form_body(form)))
    for answer, kind in zip(volley(mine.node.port, requests), expected):
        if kind is None:
            assert_error(answer, 400, REFUSED_REFRESH)
        else:
            assert (answer.status, answer.json()["token_type"]) == (200, kind), answer


# -- clients that must, and clients that cannot ------------------------------------------------------


def test_a_client_that_must_use_dpop_is_told_so_before_anything_is_spent(world):
    """Refresh, code, link, passkey: 400, and all of them are good with a proof; unbound families wait for it."""
    realm = world.realm()
    app = DPoPApp(realm.app())
    links = Links(app.plain)
    _, credential = app.plain.enroll(app.plain.sign_in(realm.user())["access_token"])
    tokens, asked, link, ceremony = app.plain.sign_in(realm.user()), app.plain.request_code(realm.user()), links.link(realm.user()), app.plain.ceremony()
    world.admin.call("put_client", realm.slug, app.client_id, require_dpop=True)
    world.settle()
    forms = [
        {"grant_type": "refresh_token", **app.credentials(), "refresh_token": tokens["refresh_token"]},
        app.redeem_form(asked.code, handle=asked.handle), links.redeem_form(link),
        app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], credential)),
    ]
    for form in forms:
        for _ in range(7):
            assert_error(app.plain.token(form), 400, MUST)
    bound = [assert_bound(app.token(form), app.key) for form in forms]
    world.admin.call("put_client", realm.slug, app.client_id, require_dpop=False)
    world.settle()
    for answer in bound:
        assert_refused(app.plain.refresh(answer["refresh_token"]))
        assert_bound(app.refresh(answer["refresh_token"]), app.key)
    assert app.plain.sign_in(realm.user())["token_type"] == "Bearer"


def test_families_of_a_confidential_client_are_never_bound(world, realm):
    """The client authenticates; each access token is bound to the proof that it came with."""
    app = DPoPApp(realm.app("api"))
    email = realm.user()
    tokens = app.bound(email)
    assert bound_key(world, realm, email) == {"none"}
    other = thief(app)
    second = assert_bound(other.refresh(tokens["refresh_token"]), other.key)
    third = app.plain.refreshed(second["refresh_token"])
    assert third["token_type"] == "Bearer"
    assert other.userinfo(second["access_token"]).status == 200
    assert app.userinfo(second["access_token"]).status == 401
    assert app.plain.userinfo(third["access_token"]).status == 200


def test_a_service_accounts_token_is_bound_to_its_proof(realm):
    """client_credentials."""
    plain, _ = service(realm, "bound-worker", realm.granted_scope, access_token_type="jwt")
    app = DPoPApp(plain)
    form = {"grant_type": "client_credentials", **app.credentials(), "scope": realm.granted_scope}
    document = assert_bound(app.token(form), app.key)
    assert parts(document["access_token"])[1]["cnf"] == {"jkt": app.key.thumbprint}
    assert app.plain.token(form).json()["token_type"] == "Bearer"


def test_a_change_of_type_ends_bound_families_too(world, realm):
    """It is refused while they live; with `end_sessions` none of them is left, so that none is bound to nothing."""
    plain = realm.put_client("turning", "gt:urn:cocoar:otp", "gt:refresh_token", "scp:profile", "scp:email", client_type="public")
    world.settle()
    app = DPoPApp(plain)
    tokens = app.bound(realm.user())
    with pytest.raises(SQLError, match="1 live session"):
        world.admin.call("put_client", realm.slug, app.client_id, client_type="confidential")
    world.admin.call("put_client", realm.slug, app.client_id, client_type="confidential", end_sessions=True)
    app.secret = world.admin.call("rotate_client_secret", realm.slug, app.client_id)
    world.settle()
    assert_refused(app.plain.refresh(tokens["refresh_token"]))
    assert_refused(app.refresh(tokens["refresh_token"]))


# -- handles, ceremonies, links ------------------------------------------------------------------------


def test_a_handle_asked_for_with_a_key_is_redeemed_with_it_alone(realm, mine):
    """Other keys and none are like a wrong code, and count as no try: ten of them, then the owner's succeeds."""
    asked = mine.request_code(realm.user())
    for _ in range(5):
        for app in (thief(mine), mine.plain):
            assert_error(app.redeem(asked.code, handle=asked.handle), 400, REFUSED_CODE)
    assert_bound(mine.redeem(asked.code, handle=asked.handle), mine.key)


def test_a_handle_asked_for_without_a_key_takes_any(realm, mine):
    """And the session is bound."""
    asked = mine.plain.request_code(realm.user())
    tokens = assert_bound(mine.redeem(asked.code, handle=asked.handle), mine.key)
    assert_refused(mine.plain.refresh(tokens["refresh_token"]))


def test_a_resend_with_another_key_gets_a_handle_of_its_own(realm, mine):
    """Both handles keep their keys."""
    email = realm.user()
    first = mine.request_code(email)
    other = thief(mine)
    second = other.request_code(email, AuthSession=first.handle)
    assert second.handle != first.handle
    assert_error(mine.redeem(second.code, handle=second.handle), 400, REFUSED_CODE)
    assert_error(other.redeem(first.code, handle=first.handle), 400, REFUSED_CODE)
    assert_bound(other.redeem(second.code, handle=second.handle), other.key)


def test_a_resend_with_the_same_key_keeps_its_handle(realm, mine):
    """And without a key a handle that has none."""
    for app in (mine, mine.plain):
        email = realm.user()
        first = app.request_code(email)
        second = app.request_code(email, AuthSession=first.handle)
        assert app.redeem(second.code, handle=first.handle).status == 200, "the text is sealed anew, the handle is the same"


def test_a_ceremony_begun_with_a_key_is_finished_with_it_alone(realm, mine):
    """Another key spends nothing."""
    _, credential = mine.enroll(mine.bound(realm.user())["access_token"])
    ceremony = mine.ceremony()
    document = authenticator.assertion(ceremony["options"], credential)
    for app in (thief(mine), mine.plain, thief(mine)):
        answer = app.redeem_passkey(ceremony, document)
        assert (answer.status, answer.error) == (400, "invalid_grant"), answer
    assert_bound(mine.redeem_passkey(ceremony, document), mine.key)


def test_a_links_poll_wants_the_key_and_its_mail_does_not(realm, mine):
    """The link may be opened on another device; then the poll has lost."""
    links = Links(mine)
    for app in (thief(mine), mine.plain):
        link = links.link(realm.user())
        assert links.choose(link, link.number).status == 200
        refused = Links(app).poll(link.handle)
        assert (refused.status, refused.error) == (400, "invalid_grant"), refused
        assert_bound(links.poll(link.handle), mine.key)
    link = links.link(realm.user())
    other = thief(mine)
    assert_bound(Links(other).redeem(link), other.key)
    assert links.poll(link.handle).error == "invalid_grant"


def test_an_authorization_code_asked_for_with_a_key_is_redeemed_with_it_alone(world):
    """`dpop_jkt` at the authorization endpoint, or a proof with the pushed request; the code stays good for the owner."""
    realm = hosted(world.realm())
    app = DPoPApp(realm.app())
    for pushed in (False, True):
        flow = Flow(realm)
        flow.sign_in(realm.user())
        if pushed:
            uri = flow.push(headers={"DPoP": app.proof("POST", "/connect/par")})
            assert uri.status == 201, uri
            code = flow.code(request_uri=uri.json()["request_uri"])
        else:
            code = flow.code(dpop_jkt=app.key.thumbprint)
        for headers in ({}, {"DPoP": thief(app).proof()}):
            answer = flow.exchange(code, headers)
            assert (answer.status, answer.error) == (400, "invalid_grant"), answer
        tokens = assert_bound(flow.exchange(code, {"DPoP": app.proof()}), app.key)
        assert_refused(app.plain.refresh(tokens["refresh_token"]))


def test_a_thumbprint_that_is_none_is_refused_at_the_authorization_endpoint(world):
    """Not 32 bytes of canonical base64url; and a pushed request whose proof is of another key."""
    realm = hosted(world.realm())
    app, flow = DPoPApp(realm.app()), Flow(realm)
    for value in ("x", "A" * 42, "A" * 44, "A" * 42 + "B", app.key.thumbprint + "=", "+" * 43, token_hash("x")[:-1] + "/"):
        answer = flow.push(dpop_jkt=value)
        assert (answer.status, answer.error) == (400, "invalid_request"), (value, answer)
    proof = {"DPoP": app.proof("POST", "/connect/par")}
    assert flow.push(headers=proof, dpop_jkt=ProofKey().thumbprint).error in ("invalid_request", "invalid_dpop_proof")
    proof = {"DPoP": app.proof("POST", "/connect/par")}
    assert flow.push(headers=proof, dpop_jkt=app.key.thumbprint).status == 201


# -- keys of the server --------------------------------------------------------------------------------


@pytest.mark.slow
def test_bound_tokens_and_families_outlive_new_lines_of_the_key_file():
    """A line is put behind the first, and then before it."""
    fleet = keyfile.Fleet("dpop-keys")
    try:
        fleet.open([keyfile.new_line()])
        realm = fleet.realm()
        app = DPoPApp(realm.app())
        tokens, asked = app.bound(realm.user()), app.request_code(realm.user())
        old, new = fleet.lines[0], keyfile.new_line()
        for lines in ([old, new], [new, old]):
            fleet.roll(lines)
            for node in fleet.nodes:
                there = app.at(node)
                assert there.userinfo(tokens["access_token"]).status == 200
                assert there.plain.userinfo(tokens["access_token"]).status == 401
                tokens = there.refreshed(tokens["refresh_token"])
                assert_refused(thief(there).refresh(tokens["refresh_token"]))
        assert_error(thief(app).redeem(asked.code, handle=asked.handle), 400, REFUSED_CODE)
        assert_bound(app.redeem(asked.code, handle=asked.handle), app.key)
    finally:
        fleet.close()


def test_a_database_dump_has_no_proof_and_no_nonce(world, realm, mine):
    """Thumbprints are no secret; the search at the end of the world looks for every proof and nonce of all tests."""
    tokens = mine.bound(realm.user())
    proof = mine.proof("GET", "/connect/userinfo", tokens["access_token"])
    assert mine.get("/connect/userinfo", {"Authorization": f"DPoP {tokens['access_token']}", "DPoP": proof}).status == 200
    dump = world.cluster.dump().decode(errors="replace")
    assert proof not in dump and proof.split(".")[2] not in dump and tokens["access_token"] not in dump


def test_at_once_from_many_threads_one_bound_family_stays_one(realm, mine):
    """A device's threads refresh the same token with proofs of their own: one successor."""
    token = mine.bound(realm.user())["refresh_token"]
    answers, lock = [], threading.Lock()

    def run():
        answer = mine.with_key(mine.key).refresh(token)
        with lock:
            answers.append(answer)

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 16, answers
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1
    assert_bound(mine.refresh(answers[0].json()["refresh_token"]), mine.key)
