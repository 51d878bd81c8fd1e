"""Requests for approval at their bounds: hints, forms and limits that are easily forgotten, foreign ids, and what happens in the same moment."""

import time

import pytest

from harness import jose, wire
from harness.approvals import CIBA, INVALID, Device, approved, ask, error, form, poll, switch_on
from harness.links import MAGIC
from harness.phones import Phones, new_number
from harness.possession import Backend, possession
from harness.volley import in_parallel
from test_approvals import shown, wait_resolved
from test_ciba import refused

ROUNDS = 10


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = possession(world.realm("apprbounds"))
    made.phones = Phones(made)
    switch_on(made, "app", "app-2", "api", "jwt", "no-refresh", public_clients=True)
    made.srv = Backend(made, "srv")
    yield made
    made.phones.close()


@pytest.fixture(name="bff")
def _bff(realm):
    return realm.app("api")


@pytest.fixture(name="device")
def _device(realm, email):
    return Device(realm.app(), realm, email)


# -- what is asked ----------------------------------------------------------------------------------


def test_forms_that_are_refused_before_anyone_is_looked_for(realm, bff, email):
    """Members twice, all three hints, a hint with NUL or of 255 bytes, a refresh token for a client without; then a right one."""
    fields = {**form(bff), "login_hint": email}
    body = wire.form_body(fields)
    headers = {"Content-Type": wire.FORM}
    for extra in (b"&login_hint=" + email.encode(), b"&scope=openid", b"&binding_message=a&binding_message=b", b"&requested_expiry=60&requested_expiry=60"):
        answer = bff.exchange("POST", "/connect/bc-authorize", headers, body + extra)
        assert error(answer) == "invalid_request", (extra, answer)
    refused(bff, {"login_hint": email, "id_token_hint": "x", "login_hint_token": "y"}, 400, "invalid_request")
    for hint in (email + "\0", "\0", "a" * 244 + "@mail.example"):
        refused(bff, {"login_hint": hint}, 400, "invalid_request")
    refused(realm.app("no-refresh"), {"login_hint": email, "scope": "openid offline_access"}, 400, "invalid_request")
    assert ask(bff, email).status == 200 and ask(realm.app("no-refresh"), email).status == 200


def test_a_hint_is_an_id_token_of_this_realm_signed_by_its_key(world, realm, app_tokens, bff):
    """None of another realm, and none whose key is taken for a secret."""
    app, tokens = app_tokens
    other = world.realm("apprforeign")
    foreign = other.app().sign_in(other.user())["id_token"]
    published = realm.app().get("/.well-known/jwks").json()
    header, payload = tokens["id_token"].split(".")[:2]
    confused = []
    for key in published["keys"]:
        import hashlib, hmac, json  # pylint: disable=import-outside-toplevel,multiple-imports
        head = jose.b64url(json.dumps({**jose.parts(tokens["id_token"])[0], "alg": "HS256", "kid": key["kid"]}).encode())
        mac = hmac.digest(json.dumps(key, separators=(",", ":")).encode(), f"{head}.{payload}".encode(), hashlib.sha256)
        confused.append(f"{head}.{payload}.{jose.b64url(mac)}")
    for hint in (foreign, *confused, f"{header}.{payload}."):
        refused(app, {"id_token_hint": hint}, 400, "invalid_request")
    assert ask(app, None, id_token_hint=tokens["id_token"]).status == 200 and ask(bff, realm.new_email()).status == 200


@pytest.fixture(name="app_tokens")
def _app_tokens(realm, email):
    return realm.app(), realm.app().sign_in(email)


def test_a_client_of_another_app_does_not_ask_at_its_host(realm, email):
    """400 there, 200 at its own."""
    host = realm.put_app("apprshop", ["app-2"])
    realm.put_app("approther", ["app"])
    answer = ask(realm.app_on(host, "app"), email)
    assert error(answer) == "invalid_request", answer
    assert ask(realm.app_on(host, "app-2"), email).status == 200
    assert ask(realm.app("app"), email).status == 200


def test_a_hint_is_asked_for_ten_times_an_hour_from_everywhere(world):
    """Eleven sources: the eleventh is refused, alike for known and unknown."""
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    try:
        realm = world.realm("apprtotal")
        switch_on(realm, "api")
        world.admin.call("reset_rate_limit", realm.slug, "approval", "target-total")
        world.settle()
        app, answers = realm.app("api", node), {}
        for hint in (realm.user(), realm.new_email()):
            answers[hint] = [ask(app, hint, {"X-Forwarded-For": f"192.0.2.{number}"}) for number in range(11)]
            assert [answer.status for answer in answers[hint]] == [200] * 10 + [429]
        last = [said[-1].json() for said in answers.values()]
        assert {(one["policy"], one["dimension"]) for one in last} == {("approval", "target-total")}
    finally:
        node.stop()


# -- handles and ids --------------------------------------------------------------------------------


def test_handles_of_other_grants_poll_nothing(realm, bff, device):
    """An auth_req_id at the grants of codes and links, a session of a code at CIBA; the approval is redeemed afterwards."""
    asked = approved(bff, device)
    handle = asked["auth_req_id"]
    session = bff.request_code(device.email).handle
    for answer in (bff.token({"grant_type": MAGIC, **bff.credentials(), "auth_session": handle, "scope": "openid"}),
                   bff.redeem("000000", handle=handle), poll(bff, session), poll(bff, "pbr_" + session[4:])):
        assert error(answer) == "invalid_grant", answer
    assert poll(bff, session).json() == INVALID
    assert poll(bff, asked).status == 200


def test_ids_of_other_things_are_unknown_to_a_device(realm, bff, device):
    """A proof of a number, another user's request, one of another realm: the answer has the same bytes as for no id at all, and the request stays as it is."""
    item, asked = shown(bff, device)
    started = realm.srv.unify(new_number())
    other = Device(realm.app(), realm, realm.user())
    foreign, _ = shown(bff, other)
    auth = jose.parts(started.authToken)[1]["jti"]
    answers = [device.send(name, device.response(device.payload({**item, "Id": name}, number=asked["match_number"])))
               for name in (started.correlationId, auth, foreign["Id"], "00000000-0000-4000-8000-000000000000", "x", "{id}")]
    assert {(answer.status, answer.body) for answer in answers} == {(404, b"")}
    assert realm.srv.status(started).success == "pending" and [one["Id"] for one in other.inbox()] == [foreign["Id"]]
    swapped = device.send(item["Id"], other.response(other.payload(foreign)))
    assert swapped.status in (400, 404) and device.inbox()[-1]["Id"] == item["Id"]
    assert device.answer(item, number=asked["match_number"]).status == 200


def test_an_answer_for_one_request_is_none_for_another(realm, bff, device):
    """Of the same device, at the same time; each is answered by its own."""
    first, asked = shown(bff, device)
    ask(realm.app(), device.email)
    second = device.item(client=realm.client("app"))
    response = device.response(device.payload(first, number=asked["match_number"]))
    assert error(device.send(second["Id"], response)) == "invalid_response"
    assert [item["Id"] for item in device.inbox()] == [first["Id"], second["Id"]]
    assert device.send(first["Id"], response).status == 200 and device.answer(second, "deny").status == 200


@pytest.mark.parametrize("how", ["delete_device", "delete_user", "set_user_enabled"])
def test_a_device_that_is_removed_while_it_waits_is_told_at_once(world, realm, bff, device, how):
    """401, however long it would have waited."""
    device.look()

    def removed():
        deadline = time.monotonic() + 10
        while device.node.metric("postern_held_requests") == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        world.admin.call(how, realm.slug, *{"delete_device": [device.id], "delete_user": [device.email]}.get(how, [device.email, False]))
        return ask(bff, device.email)
    waited, asked = in_parallel(lambda work: work(), [lambda: device.look(25), removed], threads=2)
    assert asked.status == 200 and waited.seconds < 10
    assert waited.status == 401 and waited.json()["error"] == "invalid_dpop_proof", waited


def test_tokens_are_for_what_was_asked_for(realm, device):
    """Scope, audience and session of the request; what the poll says of them has no effect."""
    client = realm.app("jwt")
    asked = approved(client, device, scope=f"openid offline_access {realm.granted_scope}", resource=realm.granted_resource)
    answer = poll(client, asked, scope="openid profile", resource="https://forbidden.example/api")
    assert answer.status == 200, answer
    tokens = answer.json()
    claims, identity = (jose.parts(tokens[name])[1] for name in ("access_token", "id_token"))
    assert claims["aud"] in (realm.granted_resource, [realm.granted_resource]) and set(tokens["scope"].split()) == {"openid", "offline_access", realm.granted_scope}
    assert claims["sid"] == identity["sid"] and claims["sub"] == identity["sub"] and identity["aud"] == client.client_id
    assert claims["auth_time"] == identity["auth_time"] and tokens["refresh_token"]


# -- the same moment --------------------------------------------------------------------------------


def test_an_approval_in_the_moment_of_the_end_is_one_or_the_other(world, realm, bff, device):
    """200 and tokens, or 404 and expired_token: never both, never neither."""
    seen = set()
    for number in range(ROUNDS):
        asked = ask(bff, device.email, event=f"ROUND_{number}").json()
        item = device.item()
        response = device.response(device.payload(item, number=asked["match_number"]))
        end = f"UPDATE postern.device_request SET expires_at = clock_timestamp() WHERE id = '{item['Id']}' AND state = 'open'"
        answer, _ = in_parallel(lambda work: work(), [lambda r=response, i=item: device.send(i["Id"], r), lambda e=end: world.cluster.sql(e)], threads=2)
        polled = poll(bff, asked)
        assert answer.status in (200, 404), answer
        if answer.status == 200:
            assert polled.status == 200, polled
        else:
            # The handle has its own end: until then the client is told to wait for what no device shows any more.
            assert error(polled) in ("expired_token", "authorization_pending"), polled
            world.time_travel(181)
            assert error(poll(bff, asked)) == "expired_token"
        seen.add(answer.status)
    assert seen


def test_a_request_of_a_client_that_is_gone_is_not_redeemed(world, realm, device):
    """Disabled after the approval: 401; enabled again in time, it signs in."""
    client = realm.put_client("leaving", "gt:" + CIBA, client_type="confidential")
    client.secret = world.admin.call("rotate_client_secret", realm.slug, client.client_id)
    world.settle()
    asked = approved(client, device)
    world.admin.call("put_client", realm.slug, client.client_id, enabled=False)
    world.settle()
    assert poll(client, asked).status == 401
    world.admin.call("put_client", realm.slug, client.client_id, enabled=True)
    world.settle()
    assert poll(client, asked).status == 200


def test_a_request_of_a_user_who_is_deleted_waits_for_its_end(world, realm, bff, device):
    """Shown or not, to its asker it is pending like one for an address without an account, and then expired."""
    asked, unknown = ask(bff, device.email).json(), ask(bff, realm.new_email()).json()
    assert device.item()
    world.admin.call("delete_user", realm.slug, device.email)
    first = [poll(bff, one) for one in (asked, unknown)]
    assert {(answer.status, answer.body) for answer in first} == {(400, first[0].body)} and error(first[0]) == "authorization_pending"
    world.time_travel(121)
    assert [error(poll(bff, one)) for one in (asked, unknown)] == ["expired_token"] * 2


def test_hidden_requests_stay_hidden_until_an_administrator_ends_the_quiet(world, realm, bff, device):
    """From outside a hidden request is pending like any other, whatever its asker does; the next one is shown again."""
    item, _ = shown(bff, device)
    assert device.answer(item, "report").status == 200
    hidden = [ask(app, device.email).json() for app in (bff, realm.app())]
    wait_resolved(realm)
    assert device.inbox() == [] and "QuietUntil" in device.look().json()
    unknown = ask(bff, realm.new_email()).json()
    assert len({poll(bff, one).body for one in (hidden[0], unknown)}) == 1
    user = world.cluster.value(f"SELECT id FROM postern.user_account WHERE address_key = '{device.email}'")
    world.admin.call("resume_approvals", realm.slug, user)
    assert device.inbox() == [], "what was hidden stays hidden"
    assert ask(realm.app("app-2"), device.email).status == 200
    assert device.item(client=realm.client("app-2")) and "QuietUntil" not in device.look().json()
