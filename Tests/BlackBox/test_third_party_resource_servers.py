"""APIs that others wrote, as they are installed: Debian's mod_auth_openidc checks our tokens by introspection and by the published keys."""

import threading
import time

import pytest

from harness import apache, jose, report
from harness.app import NativeApp
from harness.ledger import LEDGER
from harness.node import run_postern
from harness.provider import Provider
from harness.realm import call

pytestmark = pytest.mark.slow
RESOURCE, SCOPE = "https://orders.example/api", "orders.read"


class Site:
    """A provider with an app whose tokens are for the orders, and an API for them."""

    def __init__(self, folder):
        self.provider = Provider(folder)

    def open(self):
        """Starts everything. The app speaks to a second node without TLS; the API to the first one."""
        self.provider.open()
        admin, slug = self.provider.world.admin, self.provider.slug
        grants = ["gt:urn:cocoar:otp", "gt:refresh_token", f"scp:{SCOPE}"]
        admin.run(
            call("set_native_grants", slug, enabled=True), call("put_scope", slug, SCOPE, resources=[RESOURCE]),
            call("put_client", slug, "reference"), call("grant_permission", slug, "reference", variadic=grants),
            call("put_client", slug, "jwt", access_token_type="jwt"), call("grant_permission", slug, "jwt", variadic=grants),
            call("put_client", slug, "orders", client_type="confidential"),
            call("grant_permission", slug, "orders", variadic=["ept:introspection"]),
            call("put_resource_server", slug, "orders", [RESOURCE]))
        self.secret = LEDGER.add("client_secret", admin.call("rotate_client_secret", slug, "orders"))
        self.node = self.provider.world.start_node()
        self.provider.world.settle()
        self.email, self.user = self.provider.user("somebody")
        return self

    def token(self, client, scope=SCOPE):
        """A fresh access token."""
        app = NativeApp(self.node, self.provider.world.mailbox, "localhost", client)
        return app.sign_in(self.email, scope=f"openid offline_access {scope}".strip())

    def app(self, client):
        """A client at work."""
        return NativeApp(self.node, self.provider.world.mailbox, "localhost", client)

    def rotate_keys(self):
        """A new key that signs at once."""
        world = self.provider.world
        done = run_postern("keys", "rotate", "--realm", self.provider.slug, "--now", environment={
            "POSTERN_DATABASE_URL": world.cluster.url("bb_serve"), "POSTERN_SECRET_KEY_FILE": str(world.key_file)})
        assert done.returncode == 0, done.stderr
        world.settle()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Everything, once."""
    if (problem := apache.missing()) is not None:
        report.say("third-party resource servers: mod_auth_openidc is absent: " + problem)
        pytest.skip(problem)
    made = Site(tmp_path_factory.mktemp("provider"))
    try:
        yield made.open()
    finally:
        made.provider.close()


def served(site, directives):
    """An API in Apache."""
    return apache.ResourceServer(site.provider.certificate, directives)


def test_reference_tokens_by_introspection(site):
    """A token for the API is served until it is revoked; one for another API and a made-up one are not."""
    server = served(
        site, f"OIDCOAuthIntrospectionEndpoint {site.provider.issuer}/connect/introspect\n"
        f"OIDCOAuthClientID orders\nOIDCOAuthClientSecret {site.secret}\n"
        "OIDCOAuthIntrospectionEndpointAuth client_secret_basic\nOIDCOAuthTokenIntrospectionInterval -1\n")
    try:
        tokens = site.token("reference")
        assert server.status(tokens["access_token"]) == 200, server.log()
        assert server.status(None) == 401 and server.status("pat_AAAA") == 401
        assert server.status(site.token("reference", scope="")["access_token"]) == 401, "a token for the app alone"
        assert server.status(tokens["access_token"]) == 200, server.log()
        assert site.app("reference").revoke(tokens["access_token"]).status == 200
        assert server.status(tokens["access_token"]) == 401
    finally:
        server.close()


def test_jwts_by_the_published_keys_while_they_are_rotated(site):
    """200 throughout: for tokens under the old key and under the new one, which the API has not seen before."""
    server = served(
        site, f"OIDCOAuthVerifyJwksUri {site.provider.issuer}/.well-known/jwks\n")
    try:
        tokens = site.token("jwt")
        old = tokens["access_token"]
        assert server.status(old) == 200, server.log()
        forged = old[:-8] + ("AAAAAAAA" if old[-8:] != "AAAAAAAA" else "BBBBBBBB")
        assert server.status(forged) == 401
        seen, done, newest = [], threading.Event(), [old]

        def load():
            while not done.is_set():
                seen.append(server.status(newest[0]))
                time.sleep(0.005)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                site.rotate_keys()
                tokens = site.app("jwt").refreshed(tokens["refresh_token"])
                assert jose.parts(tokens["access_token"])[0]["kid"] != jose.parts(newest[0])[0]["kid"]
                newest[0] = tokens["access_token"]
                assert server.status(newest[0]) == 200, server.log()
                assert server.status(old) == 200, server.log()
        finally:
            done.set()
            for thread in threads:
                thread.join(20)
        assert len(seen) > 20 and set(seen) == {200}, (set(seen), server.log())
    finally:
        server.close()
