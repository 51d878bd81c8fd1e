"""TLS that ends at the server: what is negotiated, and certificates that change."""

import base64
import socket
import ssl
import subprocess
import time

import pytest

from harness.node import run_postern

pytestmark = pytest.mark.slow


def write_certificate(folder, name):
    """A self-signed certificate and its key, as PEM texts."""
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}.example",
         "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate.read_text(), key.read_text()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Where the server's certificate and key are."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = write_certificate(folder, "first")
    (folder / "server.crt").write_text(certificate)
    (folder / "server.key").write_text(key)
    return folder


@pytest.fixture(scope="module")
def node(world, files):
    """A process that ends TLS itself."""
    made = world.start_node(
        POSTERN_TLS_CERT=str(files / "server.crt"), POSTERN_TLS_KEY=str(files / "server.key"), POSTERN_LOG_LEVEL="info")
    yield made
    made.stop()


def client(lowest=ssl.TLSVersion.MINIMUM_SUPPORTED, highest=ssl.TLSVersion.MAXIMUM_SUPPORTED, ciphers="ALL:@SECLEVEL=0", protocols=None):
    """A TLS client that would take anything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers(ciphers)
    context.minimum_version, context.maximum_version = lowest, highest
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def connect(node, context):
    """A TLS connection."""
    return context.wrap_socket(socket.create_connection(("127.0.0.1", node.port), timeout=10), server_hostname="server.example")


def ask(one, realm, target="/.well-known/openid-configuration"):
    """One request; the answer's bytes."""
    one.sendall(f"GET {target} HTTP/1.1\r\nHost: {realm.host}\r\nConnection: close\r\n\r\n".encode())
    answer = b""
    while chunk := one.recv(65536):
        answer += chunk
    return answer


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken_with_forward_secrecy_and_alpn(realm, node, version):
    """The one protocol offered is HTTP/1.1."""
    with connect(node, client(version, version, protocols=["h2", "http/1.1"])) as one:
        assert one.selected_alpn_protocol() == "http/1.1"
        name = one.cipher()[0]
        assert name.startswith(("ECDHE-", "TLS_")) and ("GCM" in name or "CHACHA20" in name), name
        assert ask(one, realm).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_older_versions_are_refused(node, version):
    """RFC 8996."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(node, client(version, version))


@pytest.mark.parametrize("suite", ["AES128-SHA", "AES128-GCM-SHA256", "AES256-SHA256", "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA384"])
def test_suites_without_forward_secrecy_or_authenticated_encryption_are_refused(node, suite):
    """Static RSA and CBC."""
    with pytest.raises((ssl.SSLError, ConnectionError)):
        connect(node, client(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2, f"{suite}:@SECLEVEL=0"))


def served(node):
    """The certificate that a new connection is shown."""
    with connect(node, client()) as one:
        return one.getpeercert(binary_form=True)


def der(pem):
    """A certificate's bytes."""
    return base64.b64decode("".join(line for line in pem.splitlines() if "-----" not in line))


def wait_for(condition, timeout):
    """Waits until a condition holds; returns how long that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < timeout, "not in time"
        time.sleep(0.2)
    return time.monotonic() - began


def test_a_new_certificate_is_used_within_ten_seconds_and_a_broken_one_never(realm, node, files):
    """Without a restart; connections that exist go on; what is broken is logged, once, and the former certificate stays."""
    former = served(node)
    kept = connect(node, client())
    certificate, key = write_certificate(files, "second")
    (files / "server.crt").write_text(certificate)  # for a moment the key does not fit
    time.sleep(1)
    assert served(node) in (former, der(certificate))
    (files / "server.key").write_text(key)
    wait_for(lambda: served(node) == der(certificate), 10)
    assert ask(kept, realm).startswith(b"HTTP/1.1 200"), "a connection made before the change"
    for broken in ["nonsense", "", certificate[:200]]:
        before = node.log().count("the new TLS files are not used")
        (files / "server.crt").write_text(broken)
        wait_for(lambda seen=before: node.log().count("the new TLS files are not used") > seen, 10)
        assert served(node) == der(certificate)
    (files / "server.crt").unlink()
    logged = node.log().count("the new TLS files are not used")
    wait_for(lambda: node.log().count("the new TLS files are not used") == logged + 1, 10)
    time.sleep(5)
    assert node.log().count("the new TLS files are not used") == logged + 1
    assert served(node) == der(certificate)
    third, key = write_certificate(files, "third")
    (files / "server.key").write_text(key)
    (files / "server.crt").write_text(third)
    wait_for(lambda: served(node) == der(third), 10)
    assert "PRIVATE KEY" not in node.log()


def test_a_page_of_an_https_issuer_asks_browsers_to_stay_with_https(world, realm, node):
    """HSTS (RFC 6797) on pages, and only where the issuer is https."""
    target = "/magic-login?userId=00000000-0000-4000-8000-000000000000&token=nothing"
    with connect(node, client()) as one:
        head = ask(one, realm, target).partition(b"\r\n\r\n")[0].lower()
    assert b"content-type: text/html" in head and b"strict-transport-security: max-age=31536000" in head
    with connect(node, client()) as one:
        assert b"strict-transport-security" not in ask(one, realm).lower()
    plain = world.realm(name="plain")
    world.admin.call("put_realm", plain.slug, public_origin="http://localhost:8080")
    world.settle()
    with connect(node, client()) as one:
        head = ask(one, plain, target).partition(b"\r\n\r\n")[0].lower()
    assert b"content-type: text/html" in head and b"strict-transport-security" not in head


def test_a_key_that_does_not_fit_is_refused_at_start(world, files, tmp_path):
    """One line that names the variable."""
    certificate, _ = write_certificate(tmp_path, "one")
    _, key = write_certificate(tmp_path, "two")
    (tmp_path / "cert").write_text(certificate)
    (tmp_path / "key").write_text(key)
    environment = {**world.node.environment, "POSTERN_TLS_CERT": str(tmp_path / "cert"), "POSTERN_TLS_KEY": str(tmp_path / "key")}
    done = run_postern("serve", environment=environment, timeout=20)
    assert done.returncode == 1 and "POSTERN_TLS_KEY" in done.stderr, done
