"""Proxies in front: which realm a request is for, and whom limits count. Debian's nginx, with the configuration it comes with and with ours."""

import time

import pytest

from harness import wire
from harness.codeflow import hosted
from harness.nginx import NGINX, Nginx, ShippedNginx
from harness.ports import free_port
from harness.tls import over_tls

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
DISCOVERY = "/.well-known/openid-configuration"


@pytest.fixture(scope="module")
def other(world):
    """Another tenant."""
    return world.realm(name="other")


@pytest.fixture(scope="module")
def off(world):
    """Trusts loopback's `X-Forwarded-For` only: the default."""
    made = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32", POSTERN_LOG_LEVEL="info")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def on(world):
    """Trusts loopback's `X-Forwarded-Host`, too."""
    made = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.1/32", POSTERN_TRUST_FORWARDED_HOST="on", POSTERN_LOG_LEVEL="info")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def stock(off, on):
    """nginx as Debian's documentation has it: `include proxy_params` and `proxy_pass`. Ports before `off` and `on`."""
    ports = [free_port(), free_port()]
    servers = "\n".join(
        f"server {{ listen 127.0.0.1:{port}; location / {{ include /etc/nginx/proxy_params; proxy_pass http://127.0.0.1:{node.port}; }} }}"
        for port, node in zip(ports, (off, on)))
    made = Nginx(servers, ports)
    yield ports
    made.close()


def get(port, headers):
    """Discovery."""
    return wire.exchange(port, "GET", DISCOVERY, headers)


def test_behind_a_stock_nginx_the_host_alone_chooses_the_realm(realm, other, stock):
    """A client's `X-Forwarded-Host`, which nginx passes on, changes nothing."""
    answer = get(stock[0], [("Host", realm.host), ("X-Forwarded-Host", other.host)])
    assert answer.status == 200 and answer.json()["issuer"] == realm.issuer
    assert answer.header("vary") == "Host, Origin"
    assert get(stock[0], [("Host", "unknown.example"), ("X-Forwarded-Host", other.host)]).status == 404


def test_where_it_is_trusted_a_forwarded_host_that_contradicts_is_refused(realm, other, stock, on):
    """A cache before us would store one tenant's keys under another's name."""
    assert get(stock[1], [("Host", realm.host), ("X-Forwarded-Host", other.host)]).status == 400
    answer = get(stock[1], [("Host", realm.host), ("X-Forwarded-Host", realm.host)])
    assert answer.status == 200 and "x-forwarded-host" in answer.header("vary").lower()
    assert get(stock[1], [("Host", realm.host)]).json()["issuer"] == realm.issuer
    # A proxy that rewrites Host to its upstream's name.
    answer = get(on.port, [("Host", f"127.0.0.1:{on.port}"), ("X-Forwarded-Host", other.host)])
    assert answer.status == 200 and answer.json()["issuer"] == other.issuer
    answer = get(on.port, [("Host", "upstream"), ("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Host", f"{realm.host}, {other.host}")])
    assert answer.json()["issuer"] == other.issuer
    assert get(on.port, [("Host", realm.host), ("X-Forwarded-Host", "unknown.example")]).status == 400
    assert get(on.port, [("Host", "upstream"), ("X-Forwarded-Host", "unknown.example")]).status == 404


def limited(realm):
    """A source may ask for three codes."""
    realm.limit("native-otp", "source", 3)


def test_limits_count_the_client_behind_the_proxy(world, stock):
    """nginx appends the address of its client; what the client claims itself does not count."""
    realm = world.realm(name="counted")
    limited(realm)
    app = realm.app()
    body = wire.json.dumps({"Email": realm.new_email()}).encode()
    statuses = []
    for number in range(5):
        fields = {"Host": app.host, "Content-Type": "application/json", "X-Forwarded-For": f"198.51.100.{number}"}
        with wire.socket.socket() as one:  # from an address that is not trusted
            one.bind(("127.0.0.77", 0))
            one.connect(("127.0.0.1", stock[0]))
            one.sendall(wire.request_bytes("POST", "/api/account/native/otp/request", fields, body))
            statuses.append(int(one.recv(12).split()[1]))
    assert statuses == [200, 200, 200, 429, 429]


@pytest.mark.parametrize("written", [
    "198.51.100.{0}:5100{0}", '"198.51.100.{0}:80"', "[2001:db8:7:{0}::1]:51001", '"[2001:db8:7:{0}::1]"', "2001:db8:7:{0}::1%eth0",
    "[::ffff:198.51.100.{0}]:1", " 198.51.100.{0} ,, "])
def test_an_address_counts_however_a_proxy_writes_it(world, off, written):
    """Each customer has a budget of his own, and one budget over all ports."""
    realm = world.realm(name="written")
    realm.limit("native-otp", "source", 1)
    app = realm.app(node=off)

    def ask(number):
        return app.post_json("/api/account/native/otp/request", {"Email": realm.new_email()}, {"X-Forwarded-For": written.format(number)}).status

    assert [ask(number) for number in (1, 2, 3, 1, 2)] == [200, 200, 200, 429, 429]


@pytest.mark.parametrize("written", ["unknown", "_hidden{0}", "198.51.100.{0}:x", "[198.51.100.{0}", "198.51.100.7, unknown", ""])
def test_what_is_no_address_counts_as_the_proxy(world, off, written):
    realm = world.realm(name="unread")
    realm.limit("native-otp", "source", 1)
    app = realm.app(node=off)
    statuses = [app.post_json("/api/account/native/otp/request", {"Email": realm.new_email()}, {"X-Forwarded-For": written.format(n)}).status for n in (1, 2)]
    assert statuses == [200, 429]


def test_a_forwarder_that_is_not_trusted_is_warned_about_once_and_counted(world, realm):
    """Else all clients behind a forgotten proxy are one source, and nobody knows."""
    node = world.start_node(POSTERN_LOG_LEVEL="info")
    try:
        assert get(node.port, {"Host": realm.host}).status == 200
        assert node.metric("postern_untrusted_forwarded_total") == 0
        for _ in range(5):
            assert get(node.port, {"Host": realm.host, "X-Forwarded-For": "198.51.100.1"}).status == 200
        assert node.metric("postern_untrusted_forwarded_total") == 5
        assert node.log().count("POSTERN_TRUSTED_PROXIES") == 1
        assert "198.51.100.1" not in node.log()
    finally:
        node.stop()


@pytest.fixture(scope="module")
def ours(off):
    """The example of deploy/nginx, with this test's ports and certificate."""
    made = ShippedNginx(off)
    yield made.tls, made.plain, made.log
    made.close()


def test_the_example_configuration_serves_and_overwrites_what_clients_forward(realm, other, ours):
    """TLS, the realm by Host, and no header of the client survives."""
    answer = over_tls(ours[0], "GET", DISCOVERY, [("Host", realm.host), ("X-Forwarded-Host", other.host), ("X-Forwarded-For", "198.51.100.7")])
    assert answer.startswith(b"HTTP/1.1 200") and realm.issuer.encode() in answer
    answer = over_tls(ours[0], "POST", "/connect/token", [("Host", realm.host), ("Content-Type", wire.FORM)], b"grant_type=nonsense")
    assert answer.startswith(b"HTTP/1.1 400") and b"unsupported_grant_type" in answer
    answer = get(ours[1], {"Host": realm.host})
    assert answer.status == 301 and answer.header("location") == f"https://{realm.host}{DISCOVERY}"


def test_the_example_configuration_passes_headers_with_underscores(world, ours):
    """API_KEY_ID of Cotter's wire arrives: the key is right, and what is refused is the empty body."""
    realm = hosted(world.realm(name="ours"))
    realm.put_client("cotter", access_token_type="jwt")
    realm.put_client("cotter", "cap:cotter", "gt:authorization_code", "gt:refresh_token")
    world.settle()
    fields = [("Host", realm.host), ("Content-Type", "application/json"), ("API_KEY_ID", realm.client("cotter"))]
    answer = over_tls(ours[0], "POST", "/api/v0/verify/get_identity", fields, b"{}")
    assert answer.startswith(b"HTTP/1.1 400") and b"Invalid request" in answer, answer


def test_behind_the_example_configuration_limits_count_the_client(world, ours):
    """Whatever it claims."""
    realm = world.realm(name="ours")
    limited(realm)
    body = wire.json.dumps({"Email": realm.new_email()}).encode()
    statuses = []
    for number in range(4):
        fields = [("Host", realm.host), ("Content-Type", "application/json"), ("X-Forwarded-For", f"198.51.100.{number}")]
        statuses.append(over_tls(ours[0], "POST", "/api/account/native/otp/request", fields, body)[:12])
    assert statuses == [b"HTTP/1.1 200"] * 3 + [b"HTTP/1.1 429"]


def test_the_log_of_the_proxy_lets_nobody_in(realm, ours):
    """No query and no token of a link; the path is there."""
    for path in ("/undo/SECRET", "/p/SECRET?x=1", "/sign-in?tx=SECRET", "/connect/authorize?login_hint=SECRET", "/magic-login?token=SECRET"):
        over_tls(ours[0], "GET", path, [("Host", realm.host)])
    deadline = time.monotonic() + 5
    while (log := ours[2]()).count("GET ") < 5:
        assert time.monotonic() < deadline, log
        time.sleep(0.02)
    assert "SECRET" not in log
    for path in ("/undo/*", "/p/*", "/sign-in", "/connect/authorize", "/magic-login"):
        assert f'"GET {path} HTTP/1.1"' in log, log

