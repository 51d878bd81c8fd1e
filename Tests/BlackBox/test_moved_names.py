"""A client's back-channel URI whose name leads elsewhere later: what listens there is told nothing, and the client is told once its name is its own again."""

import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from harness import jose, report
from harness.codeflow import Flow, hosted
from harness.node import Node
from harness.ports import free_port
from harness.world import World
from test_logout import logout, queued

NAME = "client.example"
OURS, THEIRS = "127.0.0.2", "127.0.0.3"
#: As root a mount namespace, else one with a user namespace around it.
UNSHARE = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]


def certificate(folder, name):
    """A certificate of one name, that is its own authority, with its key."""
    path = folder / f"{name}.pem"
    key = folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}",
         "-keyout", key, "-out", path], check=True, capture_output=True)
    return path, key


class Listener:
    """Takes requests over TLS at an address: what came as HTTP, and how many connections came to none."""

    def __init__(self, address, port, pair):
        self.requests, self.refused = [], 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*pair)
        self._socket = socket.create_server((address, port))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                raw, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(raw,), daemon=True).start()

    def _take(self, raw):
        raw.settimeout(5)
        data = b""
        try:
            with self._context.wrap_socket(raw, server_side=True) as one:
                while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < self._length(data):
                    chunk = one.recv(65536)
                    if not chunk:
                        break
                    data += chunk
                one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        except (OSError, ssl.SSLError):
            pass
        if data:
            self.requests.append(data)
        else:
            self.refused += 1

    @staticmethod
    def _length(data):
        head = data.lower().partition(b"content-length:")[2]
        return int(head.partition(b"\r\n")[0] or 0)

    def tokens(self):
        """The claims of the logout tokens that came."""
        bodies = [urllib.parse.parse_qs(data.partition(b"\r\n\r\n")[2].decode()) for data in self.requests]
        return [jose.parts(body["logout_token"][0])[1] for body in bodies]

    def close(self):
        """Ends."""
        self._socket.close()


def until(condition, timeout=20, otherwise=lambda: None):
    """Waits for something to be so; `otherwise`: what is said when it does not become so."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, otherwise()
        time.sleep(0.05)


@pytest.fixture(name="world")
def _world(tmp_path):
    """A server that reads names and authorities from files of this test."""
    if subprocess.run([*UNSHARE, "true"], check=False, capture_output=True).returncode != 0:
        report.say("moved names: no mount namespace can be made here")
        pytest.skip("no mount namespace")
    made = World("moved-names")
    made.pairs = {name: certificate(tmp_path, name) for name in (NAME, "internal.example")}
    made.hosts, bundle = tmp_path / "hosts", tmp_path / "authorities.pem"
    bundle.write_bytes(b"".join(pair[0].read_bytes() for pair in made.pairs.values()))
    made.hosts.write_text("127.0.0.1 localhost\n", encoding="ascii")
    mounts = f'mount --bind "{made.hosts}" /etc/hosts && mount --bind "{bundle}" /etc/ssl/certs/ca-certificates.crt && exec "$@"'
    made.wrapper = [*UNSHARE, "sh", "-c", mounts, "sh"]
    start_node = made.start_node

    def wrapped(**environment):
        if not made.nodes:
            made.nodes.append(Node(made.cluster.url("bb_serve"), made.key_file, made.mailbox.port, wrapper=made.wrapper, **environment))
            return made.nodes[0].start()
        return start_node(**environment)
    made.start_node = wrapped
    try:
        yield made.open()
    finally:
        made.close()


def test_a_token_goes_to_the_client_alone_wherever_its_name_leads(world):
    """The other machine has a certificate of its own that is trusted, too; the sign-out waits for nobody."""
    port = free_port()
    client, other = Listener(OURS, port, world.pairs[NAME]), Listener(THEIRS, port, world.pairs["internal.example"])

    def leads_to(address):
        # In place: the file is mounted. A new process has resolved nothing yet.
        world.hosts.write_text(f"127.0.0.1 localhost\n{address} {NAME}\n", encoding="ascii")
        world.node.stop()
        world.node.start()

    try:
        leads_to(OURS)
        realm = hosted(world.realm())
        world.admin.call("put_logout_uri", realm.slug, realm.client("app"), f"https://{NAME}:{port}/out", "backchannel")
        world.settle()

        def sign_out():
            flow = Flow(realm)
            flow.sign_in(realm.user())
            issued, began = flow.tokens(), time.monotonic()
            assert logout(flow, id_token_hint=issued["id_token"]).status in (200, 303)
            assert time.monotonic() - began < 1
            return jose.parts(issued["id_token"])[1]["sid"], flow

        first, flow = sign_out()
        until(lambda: client.requests, otherwise=lambda: f"{queued(flow)}\n{world.node.log()}")
        leads_to(THEIRS)
        second, _ = sign_out()
        until(lambda: other.refused >= 1)
        world.time_travel(3600)
        until(lambda: other.refused >= 2)
        assert not other.requests and len(client.requests) == 1
        leads_to(OURS)
        world.time_travel(7200)
        until(lambda: len(client.requests) == 2)
        time.sleep(1.5)  # nothing comes twice
        assert [claims["sid"] for claims in client.tokens()] == [first, second] and not other.requests
        assert len({claims["jti"] for claims in client.tokens()}) == 2
        rows = queued(flow)
        assert rows and not [row for row in rows if '"sent_at":null' in row], rows
    finally:
        client.close()
        other.close()
