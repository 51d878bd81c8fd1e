"""The release server under load, and the bare static route beside it."""

import base64
import os
import socket
import subprocess
import time

from harness.ports import free_port
from harness.postgres import clean_environment

import process
from paths import BINARIES

HOST = "bench.example.com"


def answers(port, request=None):
    """Whether one request gets 200."""
    request = request or f"GET /.well-known/openid-configuration HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request.encode())
            return connection.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def fetch(port, request):
    """The whole 200 answer to a request of the load generator, but for what an HTTP framework writes itself."""
    head, _, body = request.partition("\r\n\r\n")
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(f"{head}\r\nConnection: close\r\n\r\n{body}".replace("{length}", str(len(body))).encode())
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    fields = [line for line in head.split(b"\r\n")[1:] if line.split(b":")[0].lower() not in (b"content-length", b"date", b"connection")]
    return b"\r\n".join([*fields, b"", body])


def write_key_file(path):
    """A secret key file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(base64.b64encode(os.urandom(32)).decode() + "\n")


class Launched:
    """A server in a process of its own, `process`."""

    @property
    def pid(self):
        """The process."""
        return self.process.pid

    def stop(self):
        """Ends it."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Server(Launched):
    """`postern serve` with its logs in a file at the default level; no mail goes anywhere."""

    def __init__(self, database, connections, directory):
        self.port = free_port()
        self.key_file = directory / "secret.key"
        self.log = directory / "serve.log"
        write_key_file(self.key_file)
        self._environment = {
            **clean_environment(), "POSTERN_DATABASE_URL": database.url("bench_app"), "POSTERN_DB_CONNECTIONS": str(connections),
            "POSTERN_LISTEN": f"127.0.0.1:{self.port}", "POSTERN_OPS_LISTEN": f"127.0.0.1:{free_port()}",
            "POSTERN_SECRET_KEY_FILE": str(self.key_file), "POSTERN_SMTP_URL": f"smtp://127.0.0.1:{free_port()}?starttls=off",
            "POSTERN_MAIL_FROM": "bench@mail.example", "POSTERN_UNIFORM_DEADLINE_MS": "0",
        }

    def start(self):
        """Starts; remembers how long the first answer took (ms) and what an idle server holds (MiB)."""
        began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(BINARIES / "postern"), "serve"], env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() - began > 20:
                raise RuntimeError(f"serve does not answer: {self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.002)
        self.first_answer_ms = (time.monotonic() - began) * 1000
        time.sleep(1.5)
        self.idle_mib = process.memory(self.pid)[0]
        return self


class StaticServer(Launched):
    """NIO giving one answer of ours, its fields and its body, to every request."""

    def __init__(self, answer, directory):
        self.port = free_port()
        path = directory / "static.http"
        path.write_bytes(answer)
        with path.open("rb") as file:
            self.process = subprocess.Popen(
                [str(BINARIES / "BenchStatic"), str(self.port)], stdin=file, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 10
        while not answers(self.port):
            assert self.process.poll() is None and time.monotonic() < deadline, "the static server does not start"
            time.sleep(0.01)
