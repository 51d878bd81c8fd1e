"""The Swift client library behind a network that loses answers: a sign-in happens once, or can be made again."""

import pytest

from harness.codeflow import REDIRECT, hosted
from harness.links import Links
from harness.module_site import CuttingProxy
from harness.swift_client import SwiftClient
from harness.swift_people import link_of, mailed, sign_in, walk, with_authenticator

TOKEN = "/connect/token"


@pytest.fixture(name="proxy")
def _proxy(realm):
    made = CuttingProxy(realm.world.node.port)
    yield made
    made.close()


@pytest.fixture(name="client")
def _client(realm, proxy):
    """A client whose requests go through the proxy."""
    with SwiftClient(realm.host, realm.client("app"), proxy.port, redirect=REDIRECT) as made:
        yield made


def sessions(client):
    """How many sessions the user has."""
    return len(client.call("sessions"))


def test_a_code_whose_answers_were_lost_opens_one_session(client, proxy, realm, email):
    asked = client.call("requestCode", email=email)
    proxy.drop(TOKEN, 2)
    assert client.call("signIn", request=asked, code=mailed(realm, email))["methods"] == ["otp"]
    assert [status for status in proxy.calls(TOKEN) if status == 200] == [200, 200, 200]
    assert sessions(client) == 1


def test_a_passkey_whose_answer_was_lost_opens_one_session(client, proxy, realm, email):
    sign_in(client, realm, email)
    with_authenticator(client)
    proxy.drop("/connect/passkey/enroll")
    added = client.call("addPasskey")
    assert [passkey["id"] for passkey in client.call("passkeys")] == [added]
    client.call("signOut")
    proxy.drop(TOKEN)
    assert client.call("signInWithPasskey")["level"] == "phr"
    assert sessions(client) == 1


def test_a_link_whose_confirming_answer_was_lost_opens_one_session(client, proxy, realm, app, email):
    pending = client.call("requestLink", email=email)
    link = link_of(realm, pending, email)
    Links(app).choose(link, link.number)
    proxy.drop(TOKEN)
    assert client.call("wait", request=pending)["methods"] == ["otp"]
    assert sessions(client) == 1


def test_a_link_that_is_opened_here_is_sent_once(client, proxy, realm, email):
    pending = client.call("requestLink", email=email)
    proxy.drop(TOKEN)
    before = len(proxy.calls(TOKEN))
    assert client.fails("openLink", "unavailable", url=link_of(realm, pending, email).url)["retryAfter"] is None
    assert proxy.calls(TOKEN)[before:].count(200) == 1 and client.call("state")["case"] == "signedOut"
    sign_in(client, realm, email)
    assert sessions(client) == 2


def test_a_code_of_the_pages_is_sent_once_and_its_session_is_not_ended(client, proxy, realm, email):
    hosted(realm)
    client.person["page"] = walk(realm, email)
    proxy.drop(TOKEN)
    assert client.fails("signInOnPages", "unavailable")["retryAfter"] is None
    assert proxy.calls(TOKEN) == [200]
    client.person["page"] = walk(realm, email)
    client.call("signInOnPages")
    assert [one["isBrowser"] for one in client.call("sessions")].count(False) == 2


def test_an_address_whose_answer_was_lost_is_added_once(client, proxy, realm, email):
    sign_in(client, realm, email)
    new = realm.new_email()
    asked = client.call("beginIdentifier", email=new)
    proxy.drop("/connect/identifiers")
    assert client.call("finishIdentifier", request=asked, code=mailed(realm, new))["value"] == new
    assert [one["value"] for one in client.call("identifiers")].count(new) == 1


def test_a_server_that_sends_elsewhere_is_not_followed(client, proxy, realm, email):
    elsewhere = CuttingProxy(realm.world.node.port)
    try:
        proxy.given["/api/account/native/otp/request"] = (307, [("Location", f"http://127.0.0.1:{elsewhere.port}/taken")], b"")
        assert client.fails("requestCode", "refused", email=email)["status"] == 307
        proxy.given.clear()
        sign_in(client, realm, email)
        for status in (302, 307, 308):
            proxy.given["/orders"] = (status, [("Location", f"http://127.0.0.1:{elsewhere.port}/taken")], b"")
            assert client.call("send", url=f"https://{realm.host}/orders")["status"] == status
        assert not elsewhere.requests
    finally:
        elsewhere.close()


def test_an_api_gets_the_level_that_it_asks_for(client, proxy, realm, email):
    sign_in(client, realm, email)
    with_authenticator(client)
    client.call("addPasskey")
    asks = 'DPoP error="insufficient_user_authentication", acr_values="phr urn:postern:acr:2", max_age=600'
    proxy.given["/orders"] = (401, [("WWW-Authenticate", asks)], b"")
    challenge = client.fails("send", "stepUpNeeded", url=f"https://{realm.host}/orders")
    assert (challenge["levels"], challenge["maxAge"]) == (["phr", "urn:postern:acr:2"], 600)
    assert client.call("stepUp", levels=challenge["levels"], maxAge=challenge["maxAge"])["level"] == "phr"
    proxy.given["/orders"] = (200, [], b"[]")
    assert client.call("send", url=f"https://{realm.host}/orders") == {"status": 200, "body": "[]"}


def test_what_is_no_answer_of_the_server_decides_nothing(client, proxy, realm, email):
    asked = client.call("requestCode", email=email)
    code = mailed(realm, email)
    for body in (b"", b"<p>Sign in to this network", b"[" * 100_000, b'{"a":' * 300 + b"1" + b"}" * 300, b'"' + b"x" * (2 << 20) + b'"'):
        proxy.given["/api/app-info"] = (200, [("Content-Type", "application/json")], body)
        client.fails("appInfo", "unavailable")
    assert client.call("pending") == [{"code": asked}]
    assert client.call("signIn", request=asked, code=code)["methods"] == ["otp"]
