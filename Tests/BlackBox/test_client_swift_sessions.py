"""The Swift client library against a server: sessions, refreshes, signing out."""

import http.server
import socket
import threading

import pytest

from harness.swift_client import SwiftClient

FULL = "openid offline_access profile email orders.read"


def unused_port():
    """A port of this device where nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def client(realm, tmp_path):
    """A client of the library with a store of its own, signed out."""
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port, directory=str(tmp_path / "state")) as made:
        yield made


def test_an_adopted_session_is_bound_to_the_key_of_the_library(client, app, email):
    tokens = app.sign_in(email)
    user = client.call("adopt", refreshToken=tokens["refresh_token"])
    assert user["methods"] == ["otp"]
    assert client.call("accessToken")["type"] == "DPoP"
    assert client.call("state")["user"]["id"] == user["id"]
    assert app.refresh(tokens["refresh_token"]).status == 400


def test_a_session_survives_the_process(client, realm, app, email, tmp_path):
    client.call("adopt", refreshToken=app.sign_in(email, FULL)["refresh_token"])
    first = client.call("accessToken")
    client.kill()
    with SwiftClient(realm.host, realm.client("app"), realm.world.node.port, directory=str(tmp_path / "state")) as again:
        assert again.call("accessToken") == first
        assert again.call("accessToken", audience=["orders.read"])["scopes"] == ["orders.read"]


def test_a_device_whose_clock_is_wrong_needs_one_nonce_only(realm, app, email, tmp_path):
    for ahead in (600, -600, 3 * 365 * 86_400):
        directory = str(tmp_path / f"state{ahead}")
        where = (realm.host, realm.client("app"), realm.world.node.port)
        with SwiftClient(*where, directory=directory, clock=ahead) as client:
            client.call("adopt", refreshToken=app.sign_in(email, FULL)["refresh_token"])
            assert len(client.logged("nonce")) == 1
            assert client.requests("/connect/token") == 2
            for scopes in (["orders.read"], ["email"], ["profile"]):
                client.call("accessToken", audience=scopes)
            assert client.requests("/connect/token") == 5
        with SwiftClient(*where, directory=directory, clock=ahead) as client:
            client.call("accessToken", audience=["openid", "email"])
            assert client.logged("nonce") == []


def test_signing_out_ends_the_session_at_the_server(client, app, api, email):
    client.call("adopt", refreshToken=app.sign_in(email)["refresh_token"])
    token = client.call("accessToken")["value"]
    assert api.active(token)
    client.call("signOut")
    assert client.fails("accessToken", "signedOut")["reason"] == "byUser"
    assert not api.active(token)


def test_signing_out_offline_is_told_by_the_next_process(realm, app, api, email, tmp_path):
    where = dict(host=realm.host, client_id=realm.client("app"), directory=str(tmp_path / "state"))
    with SwiftClient(**where, port=realm.world.node.port) as client:
        client.call("adopt", refreshToken=app.sign_in(email)["refresh_token"])
        token = client.call("accessToken")["value"]
    with SwiftClient(**where, port=unused_port()) as client:
        client.call("signOut")
        assert client.call("state") == {"case": "signedOut", "reason": "byUser"}
    assert api.active(token)
    with SwiftClient(**where, port=realm.world.node.port) as client:
        client.call("appInfo")
        # It waits until everything is told.
        client.call("signOut")
        assert client.requests("/connect/revoke") == 1
    assert not api.active(token)


def test_where_a_nonce_is_required_one_serves_many_calls(world, tmp_path):
    realm = world.realm()
    world.admin.call("set_dpop", realm.slug, nonce="required")
    world.settle()
    with SwiftClient(realm.host, realm.client("app"), world.node.port, directory=str(tmp_path / "state")) as client:
        # A Bearer family; the first proof binds it.
        client.call("adopt", refreshToken=realm.app().sign_in(realm.user())["refresh_token"])
        for _ in range(30):
            client.call("account")
        statuses = [detail["status"] for detail in client.logged("request")]
        assert len(statuses) - statuses.count("200") <= 3, statuses


def test_signing_out_everywhere_ends_every_session_of_the_user(client, app, email):
    other = app.sign_in(email)
    client.call("adopt", refreshToken=app.sign_in(email)["refresh_token"])
    client.call("signOut", scope="everywhere")
    assert client.call("state") == {"case": "signedOut", "reason": "byUser"}
    assert app.refresh(other["refresh_token"]).status == 400


def test_a_session_that_the_server_ended_ends_here(client, realm, app, email):
    client.call("adopt", refreshToken=app.sign_in(email)["refresh_token"])
    user = client.call("state")["user"]["id"]
    realm.world.admin.call("sign_out_everywhere", realm.slug, user)
    assert client.fails("accessToken", "signedOut", audience=["orders.read"])["reason"] == "ended"
    assert client.call("state") == {"case": "signedOut", "reason": "ended"}


def test_a_refused_refresh_token_is_not_adopted(client):
    assert client.fails("adopt", "signedOut", refreshToken="prt_unknown")["reason"] == "ended"
    assert client.call("state") == {"case": "signedOut", "reason": "never"}


@pytest.fixture
def redirecting():
    """An API that sends everybody elsewhere: its address, and the requests that came to either place."""
    came = []

    class Handler(http.server.BaseHTTPRequestHandler):
        """Both places."""

        def do_GET(self):
            """Elsewhere is this server by another name."""
            came.append(f"{self.headers['Host'].partition(':')[0]}{self.path}")
            self.send_response(302 if self.path == "/orders" else 200)
            if self.path == "/orders":
                self.send_header("Location", f"http://localhost:{self.server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Quiet."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/orders", came
        server.shutdown()


def test_a_redirect_is_an_answer_and_no_token_goes_elsewhere(client, app, email, redirecting):
    url, came = redirecting
    client.call("adopt", refreshToken=app.sign_in(email)["refresh_token"])
    assert client.call("send", url=url)["status"] == 302
    assert came == ["127.0.0.1/orders"]
