"""A sign-in whose answer was lost: the identical request of the same client and key, within a minute, gets the same session again."""

import collections

import pytest

from harness import authenticator, jose, totp
from harness.approvals import Device, approved, poll, switch_on
from harness.dpop import DPoPApp
from harness.holder import holder, signed_in
from harness.links import Links
from harness.phones import Phones, new_number
from harness.possession import Backend, possession
from harness.volley import in_parallel, token_request, volley
from test_possession_sign_in import owner, proven, sign_in

SCOPE = "openid offline_access"
WIDTH = 24


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    """A realm with every way to sign in that names a handle."""
    made = possession(world.realm("again"))
    switch_on(made, "app", "api", public_clients=True)
    world.admin.call("put_scope", made.slug, "openid")
    made.phones = Phones(made)
    made.srv = Backend(made, "srv")
    world.admin.call("grant_permission", made.slug, made.client("app"), variadic=["gt:urn:postern:possession"])
    world.admin.call("put_possession_client", made.slug, made.client("srv"), login_client=made.client("app"))
    world.settle()
    yield made
    made.phones.close()


def claims(answer):
    """Those of the ID token."""
    assert answer.status == 200, answer
    return jose.parts(answer.json()["id_token"])[1]


def sid(answer):
    """The session that an answer is of."""
    return claims(answer)["sid"]


def assert_same(first, again, refreshed=True):
    """The same session, with a new access token; `refreshed`: it has a refresh token."""
    one, two = first.json(), again.json()
    assert one["access_token"] != two["access_token"] and one["scope"] == two["scope"]
    assert one.get("refresh_token") == two.get("refresh_token") and ("refresh_token" in one) == refreshed
    names = ("sub", "sid", "auth_time", "amr", "acr", "aud")
    assert [claims(first).get(name) for name in names] == [claims(again).get(name) for name in names]


def sessions(world, realm, email):
    """How many sessions the person has, and how many sign-ins were audited."""
    return world.cluster.value(
        "SELECT (SELECT count(*) FROM postern.session s WHERE s.user_id = u.id) || ' '"
        " || (SELECT count(*) FROM postern.audit_event e WHERE e.user_id = u.id AND e.event = 'sign_in')"
        f" FROM postern.user_account u JOIN postern.realm r ON r.id = u.realm_id AND r.slug = '{realm.slug}' WHERE u.address_key = '{email}'")


def refused(answer, error="invalid_grant"):
    """The uniform refusal."""
    assert answer.status == 400 and answer.error == error, answer


def by_code(app, email, **more):
    """The form of a right code with its handle."""
    asked = app.request_code(email)
    return app.redeem_form(asked.code, handle=asked.handle, scope=SCOPE, **more)


def test_a_code_with_its_handle_is_answered_again(world, realm):
    """Three times, at two nodes' worth of processes or one; audited once; and the family works."""
    app, email = realm.app(), realm.user()
    request = by_code(app, email)
    before = repetitions(world)
    first, second, third = (app.token(request) for _ in range(3))
    assert_same(first, second)
    assert_same(first, third)
    assert sessions(world, realm, email) == "1 1" and repetitions(world) == before + 2
    assert app.refresh(third.json()["refresh_token"]).status == 200
    refused(app.token(request))


def repetitions(world):
    """What the node has counted."""
    return world.node.metric("postern_repeated_sign_ins_total")


def test_a_session_without_a_refresh_token_is_answered_again_too(realm):
    """Without offline_access: the same sid."""
    app = realm.app()
    request = {**by_code(app, realm.user()), "scope": "openid"}
    assert_same(app.token(request), app.token(request), refreshed=False)


def test_all_of_many_at_once_get_the_one_session(world, realm, second_node):
    """Two processes, each with half of the copies."""
    app, email = realm.app(), realm.user()
    raw = token_request(app, by_code(app, email))
    parts = in_parallel(lambda node: volley(node.port, [raw] * (WIDTH // 2)), [world.node, second_node], threads=2)
    answers = [answer for part in parts for answer in part]
    assert collections.Counter(answer.status for answer in answers) == {200: WIDTH}
    assert len({sid(answer) for answer in answers}) == len({answer.json()["refresh_token"] for answer in answers}) == 1
    assert sessions(world, realm, email) == "1 1"


@pytest.mark.parametrize("change", [
    {"otp_code": "000000"}, {"scope": "openid"}, {"totp_code": "123456"}, {"x": "y"}, {"auth_session": None}, {"username": "somebody@example.com"},
], ids=lambda change: next(iter(change)))
def test_a_request_that_differs_is_refused_and_ends_nothing(realm, change):
    """One parameter more, less or other."""
    app, email = realm.app(), realm.user()
    request = by_code(app, email, username=email)
    first = app.token(request)
    refused(app.token({**request, **change}))
    assert_same(first, app.token(request))


def test_only_the_same_client_and_key_are_answered_again(realm):
    """Unbound then, unbound now; bound then, the same key now."""
    app, email = realm.app(), realm.user()
    plain = by_code(app, email)
    first = app.token(plain)
    bound = DPoPApp(app)
    refused(bound.token(plain))
    refused(realm.app("api").token({**plain, **realm.app("api").credentials()}))
    asked = bound.request_code(email)
    request = bound.redeem_form(asked.code, handle=asked.handle, scope=SCOPE)
    one = bound.token(request)
    assert_same(one, bound.token(request))
    refused(app.token(request))
    refused(DPoPApp(app).token(request))
    assert_same(first, app.token(plain))


def test_an_address_or_a_link_is_never_answered_again(realm):
    """Who repeats it may be another."""
    app, email = realm.app(), realm.user()
    asked = app.request_code(email)
    assert app.redeem(asked.code, email=email).status == 200
    refused(app.redeem(asked.code, email=email))
    links = Links(app)
    link = links.link(email)
    assert links.redeem(link).status == 200
    refused(links.redeem(link))


def test_after_a_minute_it_is_refused(world, realm):
    """The session goes on."""
    app = realm.app()
    request = by_code(app, realm.user())
    first = app.token(request)
    world.time_travel(61)
    refused(app.token(request))
    assert app.refresh(first.json()["refresh_token"]).status == 200


def test_a_session_that_was_used_or_ended_is_not_answered_again(world, realm):
    """Its refresh token was used; it was revoked; its user signed out everywhere, or was disabled."""
    app = realm.app()

    def revoke(_, answer):
        assert app.revoke(answer.json()["refresh_token"]).status == 200

    ways = [
        lambda _, answer: app.refreshed(answer.json()["refresh_token"]), revoke,
        lambda email, _: world.admin.call("sign_out_everywhere", realm.slug, email),
        lambda email, _: world.admin.call("set_user_enabled", realm.slug, email, False)]
    for end in ways:
        email = realm.user()
        request = by_code(app, email)
        end(email, app.token(request))
        refused(app.token(request))


def test_a_second_factor_is_spent_once(world, realm):
    """Code and TOTP, and code and recovery code."""
    who = signed_in(realm)
    secret, recovery = who.app.enrol_totp(who.token)
    world.cluster.sql("UPDATE postern.totp_factor SET last_step_at = last_step_at - interval '120 seconds'")
    for factor in ({"totp_code": totp.code(secret)}, {"recovery_code": recovery[0]}):
        request = by_code(who.app, who.email, **factor)
        first = who.app.token(request)
        assert_same(first, who.app.token(request))
        assert "mfa" in claims(first)["amr"]
    left = world.cluster.value(
        "SELECT count(*) FROM postern.recovery_code c JOIN postern.user_account u ON u.realm_id = c.realm_id AND u.id = c.user_id"
        f" WHERE u.address_key = '{who.email}'")
    assert int(left) == len(recovery) - 1


def test_a_poll_for_a_link_is_answered_again(realm):
    """After the confirmation."""
    links, email = Links(realm.app()), realm.user()
    link = links.link(email)
    assert links.choose(link, link.number).status == 200
    first = links.poll(link.handle, scope=SCOPE)
    assert_same(first, links.poll(link.handle, scope=SCOPE))
    refused(links.poll(link.handle, scope="openid"))


def test_a_poll_for_an_approval_is_answered_again(realm):
    """CIBA: what the tokens are for was fixed when the client asked."""
    bff, email = realm.app("api"), realm.user()
    device = Device(realm.app(), realm, email)
    asked = approved(bff, device, scope=SCOPE)
    first = poll(bff, asked)
    assert_same(first, poll(bff, asked))
    refused(poll(bff, asked, x="y"))
    refused(poll(DPoPApp(bff), asked))


def test_an_assertion_is_answered_again_with_a_proof_alone(realm):
    """With a counter and without one; another assertion for the ceremony is refused."""
    for counts in (False, True):
        one = holder(realm, counts=counts)
        bound = DPoPApp(one.app)
        ceremony = bound.ceremony()
        request = bound.passkey_form(ceremony, authenticator.assertion(ceremony["options"], one.credential), scope=SCOPE)
        first = bound.token(request)
        assert_same(first, bound.token(request))
        refused(bound.token(bound.passkey_form(ceremony, authenticator.assertion(ceremony["options"], one.credential), scope=SCOPE)))
        ceremony = one.app.ceremony()
        plain = one.app.passkey_form(ceremony, authenticator.assertion(ceremony["options"], one.credential), scope=SCOPE)
        assert one.app.token(plain).status == 200
        refused(one.app.token(plain))


def test_a_proven_number_is_answered_again(realm):
    """The key is that of the transaction."""
    number = new_number()
    owner(realm, number)
    _, phone = proven(realm, number)
    first = sign_in(realm, phone, scope=SCOPE)
    assert_same(first, sign_in(realm, phone, scope=SCOPE))
    refused(sign_in(realm, phone, scope="openid"))
