"""What an administrator sets counts at every node and for pages under way; what discovery says of it; and many people behind one address."""

import re
import time

import pytest

from harness import jose, wire
from harness.codeflow import Flow, hosted
from harness.nginx import NGINX, Nginx
from harness.phones import Phones
from harness.ports import free_port
from harness.settings import REPOSITORY
from harness.sign_in_pages import newest, Session
from harness.volley import in_parallel
from test_cotter import PERMISSIONS, REDIRECT as COTTER_REDIRECT, Cotter
from test_key_rotation import OVERLAP, travel

PEOPLE = 120
ONLY_WITH_PAGES = {
    "authorization_endpoint", "pushed_authorization_request_endpoint", "end_session_endpoint", "prompt_values_supported", "ui_locales_supported",
    "code_challenge_methods_supported", "authorization_response_iss_parameter_supported", "backchannel_logout_supported",
    "backchannel_logout_session_supported", "require_pushed_authorization_requests",
}


def discovery(realm, host=None):
    """The document of a host."""
    return realm.app_on(host or realm.host).get("/.well-known/openid-configuration").json()


def test_discovery_says_what_pages_bring_and_takes_it_back(world):
    """On, off and on again; the host of an App says its own endpoints under the realm's issuer; another realm says nothing of it."""
    realm, neighbour = world.realm(), world.realm()
    off = discovery(realm)
    assert not ONLY_WITH_PAGES & set(off) and off["response_types_supported"] == ["none"], ONLY_WITH_PAGES & set(off)
    hosted(realm)
    host = realm.put_app("shop", ["app"])
    on, below = discovery(realm), discovery(realm, host)
    assert ONLY_WITH_PAGES <= set(on), ONLY_WITH_PAGES - set(on)
    assert on["prompt_values_supported"] and {"en", "de", "pt-BR", "ar"} <= set(on["ui_locales_supported"])
    assert {"phr", "urn:postern:acr:2", "urn:postern:acr:email"} <= set(on["acr_values_supported"])
    assert (on["backchannel_logout_supported"], on["backchannel_logout_session_supported"]) == (True, True)
    assert below["issuer"] == on["issuer"] == realm.issuer and below["authorization_endpoint"] == f"https://{host}/connect/authorize"
    assert ONLY_WITH_PAGES <= set(below)
    assert not ONLY_WITH_PAGES & set(discovery(neighbour))
    world.admin.call("set_hosted", realm.slug, False)
    world.settle()
    again = discovery(realm)
    assert set(again) == set(off) and again["response_types_supported"] == ["none"]


def test_discovery_lists_what_somebody_can_reach(world):
    """Numbers while messages go to phones, passkeys where the pages of the host offer them, else natively."""
    realm = world.realm()
    native = discovery(realm)
    assert native["acr_values_supported"] == ["urn:postern:acr:1", "urn:postern:acr:2", "phr"]
    assert not {"verify:email", "verify:phone"} & set(native["scopes_supported"])
    hosted(realm, methods=["email-code"])
    plain = discovery(realm)
    assert plain["acr_values_supported"] == ["urn:postern:acr:1", "urn:postern:acr:2", "urn:postern:acr:email"]
    assert "verify:email" in plain["scopes_supported"] and "verify:phone" not in plain["scopes_supported"]
    phones = Phones(realm)
    try:
        world.admin.call("set_hosted", realm.slug, True, methods=["email-code", "passkey"])
        world.settle()
        full = discovery(realm)
        assert {"phr", "urn:postern:acr:phone"} <= set(full["acr_values_supported"]) and "verify:phone" in full["scopes_supported"]
        for value in full["acr_values_supported"]:
            answer = Flow(realm).authorize(acr_values=value)
            assert answer.status == 200, (value, answer)
    finally:
        phones.close()


def test_clients_keep_their_algorithm_where_pages_are_switched_on(world):
    """The RS256 key stands beside the realm's own; tokens of before and after are of the realm's, and a client may have the other."""
    realm = world.realm()
    before = realm.app().sign_in(realm.user())["id_token"]
    hosted(realm)
    deadline = time.monotonic() + 15
    while {"ES256", "RS256"} - {key["alg"] for key in realm.app().get("/.well-known/jwks").json()["keys"]}:
        assert time.monotonic() < deadline
        world.pause()
    keys = realm.app().get("/.well-known/jwks").json()
    flow = Flow(realm)
    flow.sign_in(realm.user())
    for token in (before, realm.app().sign_in(realm.user())["id_token"], flow.tokens()["id_token"]):
        assert jose.verify(token, keys)[0]["alg"] == "ES256"
    world.admin.call("put_client", realm.slug, realm.client("app-2"), signing_alg="RS256")
    world.settle()
    travel(world, realm, OVERLAP + 1)
    flow.sign_in(realm.user())
    other = Flow(realm, "app-2")
    other.cookie = flow.cookie
    assert jose.verify(other.tokens()["id_token"], keys)[0]["alg"] == "RS256"
    assert jose.verify(flow.tokens()["id_token"], keys)[0]["alg"] == "ES256"


def test_changes_reach_every_node_and_pages_under_way_go_on(world):
    """Name, text, redirect URI and consent, at a node that was not asked before; the sign-in begun under the old ones ends under the new."""
    realm = hosted(world.realm(), offer_passkey=False)
    second = world.start_node()
    try:
        session, email = Session(realm), realm.user()
        session.send(email)
        world.admin.run(f"SELECT admin.set_branding('{realm.slug}', product_name => 'New Name', accent => '#7a1fa2');")
        world.admin.call("put_text", realm.slug, "en", "address-title", "Come in")
        world.admin.call("put_redirect_uri", realm.slug, realm.client("app"), "https://app.a.example/new")
        world.admin.call("put_client", realm.slug, realm.client("app"), consent="explicit")
        started = time.monotonic()
        world.settle()
        assert time.monotonic() - started < 1.5
        for node in (world.node, second):
            flow = Flow(realm, node=node, redirect_uri="https://app.a.example/new")
            body = flow.authorize().body
            assert b"New Name" in body and b"Come in" in body
        session.browser.node = second
        session.browser.submit("continue", code=newest(realm, email))
        assert session.browser.page.step == "consent" and b"New Name" in session.browser.answer.body
        assert session.flow.exchange(session.browser.submit("allow").members["code"]).status == 200
    finally:
        second.stop()


def test_many_people_behind_one_address_sign_in_under_the_default_limits(world):
    """Each by a code of their own; what they redeem does not count against the others."""
    realm = hosted(world.realm(limits=False), offer_passkey=False)
    world.settle()

    def sign_in(email):
        session = Session(realm)
        assert session.browser.answer.status == 200, session.browser.answer
        session.send(email)
        assert session.browser.answer.status == 200, session.browser.answer
        session.browser.submit("continue", code=newest(realm, email))
        return "code" in session.browser.members

    assert in_parallel(sign_in, realm.users(PEOPLE)) == [True] * PEOPLE


def test_a_braked_realm_has_one_try_for_strangers_and_all_for_browsers_it_knows(world):
    """A browser with a session of the account, and one with its ID token as a hint, have their tries; one of another account has one."""
    realm = hosted(world.realm(), offer_passkey=False)
    realm.limit("token", "failures", 1_000_000, per="1 minute")
    owner, other = realm.user(), realm.user()
    known, foreign = Session(realm), Session(realm)
    known.sign_in(owner)
    hint = known.flow.exchange(known.browser.members["code"]).json()["id_token"]
    foreign.sign_in(other)
    realm.limit("token", "wrong-codes", 1, per="1 hour", burst=20)
    app = realm.app()
    for email in realm.users(5):
        asked = app.request_code(email)
        for step in range(1, 5):
            wrong = f"{(int(asked.code) + step) % 10 ** len(asked.code):0{len(asked.code)}}"
            assert app.redeem(wrong, handle=asked.handle).error == "invalid_grant"
    world.pause()

    def tries(session, count, **changes):
        session.begin(**changes)
        assert session.browser.page.step == "address"
        session.send(owner)
        code = newest(realm, owner, count)
        wrong = f"{(int(code) + 1) % 10 ** len(code):0{len(code)}}"
        session.browser.submit("continue", code=wrong)
        session.browser.submit("continue", code=code)
        return session.browser.left_for is not None

    assert not tries(Session(realm), 2)
    assert not tries(foreign, 3, prompt="login")
    assert tries(Session(realm), 4, id_token_hint=hint)
    assert tries(known, 5, prompt="login")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_the_key_of_cotters_wire_comes_through_the_nginx_of_the_examples(world):
    """It stands in a field with underscores, which nginx drops unless it is told otherwise."""
    realm = hosted(world.realm(), offer_passkey=False)
    realm.put_client("cotter", access_token_type="jwt")
    realm.put_client("cotter", *PERMISSIONS)
    world.admin.call("put_redirect_uri", realm.slug, realm.client("cotter"), COTTER_REDIRECT)
    world.settle()
    text = (REPOSITORY / "deploy/nginx/postern.conf").read_text(encoding="utf-8")
    directive = re.search(r"^\s*(underscores_in_headers on;)", text, re.M)[1]
    client = Cotter(realm)
    members = client.prove(realm.user())
    for setting, status in (("", 401), (directive, 200)):
        port = free_port()
        proxy = Nginx(f"server {{ listen 127.0.0.1:{port}; {setting} location / {{ proxy_pass http://127.0.0.1:{world.node.port}; "
                      "proxy_set_header Host $http_host; } }", [port])
        try:
            body = {"code_verifier": client.verifier, "authorization_code": members["code"], "challenge_id": int(members["challenge_id"]),
                    "redirect_url": COTTER_REDIRECT}
            answer = wire.exchange(port, "POST", "/api/v0/verify/get_identity", {
                "Host": realm.host, "Content-Type": "application/json", "API_KEY_ID": client.key}, wire.json.dumps(body).encode())
            assert answer.status == status, (setting, answer)
        finally:
            proxy.close()
