"""What a statement sees of a client and the node did not know yet: told as if the node had known it, and nothing is used up."""

import contextlib
import time

import pytest

from harness import authenticator, trusted
from harness.app import FULL_SCOPE
from harness.approvals import CIBA, Device, ask, poll, switch_on
from harness.codeflow import Flow, hosted
from harness.dpop import DPoPApp
from harness.links import Links
from harness.possession import coded, furnished, possession, signs_in
from harness.postgres import literal
from harness.service import ask as ask_service, service
from test_cotter import PERMISSIONS, Cotter

ANSWERS = {
    "client": (401, "invalid_client"), "permission": (400, "unauthorized_client"), "switch": (400, "unsupported_grant_type"),
    "realm": (503, "temporarily_unavailable"), "app": (400, "unsupported_grant_type"),
}
SWITCHES = {
    "code": "native_grants_enabled", "code by address": "native_grants_enabled", "possession": "possession_enabled", "link": "native_grants_enabled", "poll of a link": "native_grants_enabled",
    "authorization code": "hosted_enabled", "approval": "approvals_enabled", "device": "approvals_enabled",
}
PERMISSION = {
    "code": "gt:urn:cocoar:otp", "code by address": "gt:urn:cocoar:otp", "possession": "gt:urn:postern:possession", "link": "gt:urn:cocoar:magic", "poll of a link": "gt:urn:cocoar:magic",
    "refresh": "gt:refresh_token", "refresh with a proof": "gt:refresh_token", "authorization code": "gt:authorization_code",
    "approval": "gt:" + CIBA, "device": "gt:urn:postern:device", "client credentials": "gt:client_credentials",
}


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    made = signs_in(furnished(possession(hosted(world.realm("late"), offer_passkey=False))))
    switch_on(made, "api")
    for name in ("app", "api"):
        world.admin.call("grant_permission", made.slug, made.client(name), variadic=["gt:urn:postern:device"])
    made.robot, _ = service(made, "robot")
    made.put_client("cotter", access_token_type="jwt")
    made.put_client("cotter", *PERMISSIONS)
    world.admin.call("put_redirect_uri", made.slug, made.client("cotter"), "yourapp://")
    world.settle()
    # A realm's keys are made in the background and when they are needed first, and every node then reads the realm again.
    made.app().sign_in(made.user())
    cotter = Cotter(made)
    cotter.identity(cotter.prove(made.user()))
    deadline = time.monotonic() + 20
    while "RS256" not in {key["alg"] for key in made.app().get("/.well-known/jwks").json()["keys"]}:
        assert time.monotonic() < deadline, "a realm with pages has an RS256 key"
        time.sleep(0.05)
    made.shop = made.put_app("shop")
    yield made
    made.phones.close()


@contextlib.contextmanager
def unnoticed(realm, client, fault, permission, switch):
    """A change that no node hears of, taken back at the end: without triggers there is no notification and no other stamp."""
    row = f"realm_id = (SELECT id FROM postern.realm WHERE slug = {literal(realm.slug)}) AND client_id = {literal(client)}"
    name = f"slug = {literal(realm.slug)}"
    before = realm.world.cluster.value(f"SELECT permissions FROM postern.client WHERE {row}")
    change, undo = {
        "client": (f"UPDATE postern.client SET enabled = false WHERE {row}", f"UPDATE postern.client SET enabled = true WHERE {row}"),
        "permission": (
            f"UPDATE postern.client SET permissions = array_remove(permissions, {literal(permission)}) WHERE {row}",
            f"UPDATE postern.client SET permissions = {literal(before)} WHERE {row}"),
        "switch": (f"UPDATE postern.realm SET {switch} = false WHERE {name}", f"UPDATE postern.realm SET {switch} = true WHERE {name}"),
        "realm": (f"UPDATE postern.realm SET enabled = false WHERE {name}", f"UPDATE postern.realm SET enabled = true WHERE {name}"),
        "app": tuple(
            f"UPDATE postern.app AS a SET {switch} = {value} FROM postern.realm AS r WHERE r.id = a.realm_id AND r.{name}"
            for value in ("false", "true")),
    }[fault]

    def silently(statement):
        realm.world.cluster.sql(f"BEGIN; SET LOCAL session_replication_role = replica; {statement}; COMMIT;")

    silently(change)
    try:
        yield
    finally:
        silently(undo)


def attempts(realm, grant, host=None):
    """The client's name, and a call that redeems something right, each time the same."""
    email = realm.user()
    app = realm.app_on(host or realm.host)
    if grant in ("code", "code by address", "registration code"):
        if grant == "registration code":
            email = realm.new_email()
        handle = app.ask(email).json()["AuthSession"]
        code = realm.world.mailbox.wait(email, kind="code").code
        return "app", lambda: app.redeem(code, email) if grant == "code by address" else app.redeem(code, handle=handle)
    if grant == "possession":
        _, phone, number, code = coded(realm)
        realm.world.admin.call("put_user", realm.slug, phone=number)
        assert phone.call("check", otp=code) == {"state": "passed"}
        form = {"grant_type": "urn:postern:possession", "client_id": app.client_id, "auth_token": phone.token, "scope": "openid"}
        bound = DPoPApp(app, phone.key)
        return "app", lambda: bound.token(form)
    if grant in ("link", "poll of a link"):
        links = Links(app)
        link = links.link(email)
        if grant == "link":
            return "app", lambda: links.redeem(link)
        assert links.choose(link, link.number).status == 200
        return "app", lambda: links.poll(link.handle)
    if grant == "refresh":
        token = app.sign_in(email)["refresh_token"]
        return "app", lambda: app.refresh(token)
    if grant == "refresh with a proof":
        bound = DPoPApp(app)
        token = bound.bound(email)["refresh_token"]
        return "app", lambda: bound.refresh(token)
    if grant == "authorization code":
        flow = Flow(realm, host=host)
        flow.sign_in(email)
        code = flow.code()
        return "app", lambda: flow.exchange(code)
    if grant == "approval":
        device, api = Device(app, realm, email), realm.app("api")
        asked = ask(api, email).json()
        assert device.answer(device.item(), number=asked["match_number"]).status == 200
        return "api", lambda: poll(api, asked)
    if grant == "device":
        device = trusted.Device(app)
        assert device.enrol(app.sign_in(email)["access_token"]).status == 200

        def sign_in():
            device.fresh_nonce()
            return device.sign_in()
        return "app", sign_in
    assert grant == "client credentials"
    return "robot", lambda: ask_service(realm.robot)


@pytest.mark.parametrize("grant", PERMISSION)
def test_what_the_node_did_not_know_is_never_an_invalid_grant(realm, grant):
    """invalid_client, unauthorized_client, unsupported_grant_type, 503; afterwards what was presented is as good as before."""
    name, redeem = attempts(realm, grant)
    for fault, expected in ANSWERS.items():
        if fault == "app" or fault == "switch" and grant not in SWITCHES:
            continue
        with unnoticed(realm, realm.client(name), fault, PERMISSION[grant], SWITCHES.get(grant)):
            answer = redeem()
        assert (answer.status, answer.error) == expected, (fault, answer)
        assert expected[0] != 503 or answer.header("retry-after"), answer
    answer = redeem()
    assert answer.status == 200, answer


@pytest.mark.parametrize("grant", ["code", "registration code", "link", "poll of a link", "device", "possession", "authorization code"])
def test_the_switch_of_an_app_counts_on_its_host(realm, grant):
    """The node has an old copy of it; afterwards what was presented is as good as before."""
    switch = "hosted_enabled" if grant == "authorization code" else "native_grants_enabled"
    name, redeem = attempts(realm, grant, realm.shop)
    with unnoticed(realm, realm.client(name), "app", None, switch):
        answer = redeem()
    assert (answer.status, answer.error) == ANSWERS["app"], answer
    answer = redeem()
    assert answer.status == 200, answer


@pytest.mark.parametrize("mutation", ["ok", "sig_without_hash", "uh_nobody", "spent", "malformed"])
@pytest.mark.parametrize("fault", ["client", "permission", "switch", "realm", "app"])
def test_a_passkey_gets_the_same_answer(realm, fault, mutation):
    """Whatever the assertion is worth; its ceremony is not spent by it."""
    app, email = realm.app_on(realm.shop), realm.user()
    _, credential = app.enroll(app.sign_in(email)["access_token"])
    ceremony = app.ceremony()
    right = authenticator.assertion(ceremony["options"], credential)
    presented = right
    if mutation == "spent":
        assert app.redeem_passkey(ceremony, right).status == 200
    elif mutation == "malformed":
        presented = "{}"
    elif mutation != "ok":
        presented = authenticator.assertion(ceremony["options"], credential, mutation)
    with unnoticed(realm, app.client_id, fault, "gt:urn:cocoar:passkey", "native_grants_enabled"):
        answer = app.redeem_passkey(ceremony, presented)
    assert (answer.status, answer.error) == ANSWERS[fault], answer
    if mutation != "spent":
        answer = app.redeem_passkey(ceremony, right)
        assert answer.status == 200, answer


def test_a_wrong_factor_tells_the_same(realm):
    """The client is judged before the factor; the wrong code counts no try."""
    app, email = realm.app(), realm.user()
    handle = app.ask(email).json()["AuthSession"]
    code = realm.world.mailbox.wait(email, kind="code").code
    wrong = f"{(int(code) + 1) % 1_000_000:06d}"
    with unnoticed(realm, app.client_id, "client", None, None):
        for _ in range(6):
            answer = app.redeem(wrong, handle=handle)
            assert (answer.status, answer.error) == ANSWERS["client"], answer
    assert app.redeem(code, handle=handle, scope=FULL_SCOPE).status == 200


def test_others_of_the_batch_are_served(realm):
    """Refreshes of one realm share statements: a client that was stopped stops only its own."""
    app, other = realm.app(), realm.app("app-2")
    first, second = app.sign_in(realm.user())["refresh_token"], other.sign_in(realm.user())["refresh_token"]
    with unnoticed(realm, app.client_id, "client", None, None):
        assert app.refresh(first).error == "invalid_client"
        assert other.refresh(second).status == 200
    assert app.refresh(first).status == 200


def test_cotters_wire_says_that_the_key_is_none(realm):
    """Its codes and refresh tokens are as good as before afterwards."""
    cotter = Cotter(realm)
    members = cotter.prove(realm.user())
    invalid = (401, {"msg": "Invalid API key", "type": ""})
    for fault, permission in (("client", None), ("permission", "gt:authorization_code")):
        with unnoticed(realm, cotter.key, fault, permission, None):
            answer = cotter.exchange(members)
        assert (answer.status, answer.json()) == invalid, (fault, answer)
    tokens = cotter.identity(members)["oauth_token"]
    with unnoticed(realm, cotter.key, "permission", "gt:refresh_token", None):
        answer = cotter.refresh(tokens["refresh_token"])
    assert (answer.status, answer.json()) == invalid, answer
    assert cotter.refresh(tokens["refresh_token"]).status == 200
