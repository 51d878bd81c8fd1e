"""examples/bff, the first moments of a process, and requests and answers that no browser and no API would send."""

import json
import socket

import pytest

from harness.backend import OWN, Visitor
from harness.jose import b64url
from harness.module_site import until
from harness.ports import free_port
from harness.tls import unverified
from test_backend_attacked import TOKEN, at_once, logout, send
from test_backend_example import ASK, backend, lasting  # pylint: disable=unused-import  # fixtures

KEYS = "/.well-known/jwks.json"


def fresh(backend, count=1):
    """Browsers with a code, at a process that has not read the keys yet."""
    port, made = free_port(), []
    backend.start(port)
    for _ in range(count):
        visitor, email = Visitor(backend, port=port), backend.user()
        assert visitor.post("/code", {"email": email})[0] == 200
        made.append((visitor, backend.code(email)))
    return made


class Held(tuple):
    """An answer that the proxy gives when something has happened."""

    def after(self, happened):
        """Sets what is waited for."""
        self.happened = happened  # pylint: disable=attribute-defined-outside-init
        return self

    def __iter__(self):
        until(self.happened, "what the answer waits for")
        return super().__iter__()


def test_all_who_sign_in_first_at_a_process_are_signed_in(backend):
    """While one reads the keys the others wait: a refusal would have used up their codes."""
    browsers, before, kept = fresh(backend, 4), len(backend.proxy.calls(TOKEN)), backend.proxy.given[KEYS]
    backend.proxy.given[KEYS] = Held(kept).after(lambda: len(backend.proxy.calls(TOKEN)) == before + 4)
    try:
        answers = at_once(*[lambda one=one, code=code: one.post("/code", {"code": code}) for one, code in browsers])
    finally:
        backend.proxy.given[KEYS] = kept
    assert answers == [(200, {})] * 4


@pytest.mark.parametrize("answer", [
    (503, [], b"{}"), (200, [("Content-Type", "application/json")], b"[]"), (200, [], b"<h1>Welcome</h1>"), (200, [], b'{"keys":[]}')])
def test_without_the_keys_nothing_is_decided(backend, answer):
    """Not even for a moment: 503 says to come again."""
    [(visitor, code)] = fresh(backend)
    kept, backend.proxy.given[KEYS] = backend.proxy.given[KEYS], answer
    try:
        statuses = [visitor.post("/code", {"code": code})[0] for _ in range(2)]
    finally:
        backend.proxy.given[KEYS] = kept
    assert statuses == [503, 503] and not visitor.cookie


def test_a_cookie_that_one_answer_sets_goes_with_no_call_of_another_person(backend):
    """As the balancer in front of the server may set it."""
    backend.proxy.given[ASK] = 200, [("Content-Type", "application/json"), ("Set-Cookie", "node=1; Path=/")], b'{"AuthSession":"x"}'
    try:
        assert Visitor(backend).post("/code", {"email": "a@mail.example"})[0] == 200
    finally:
        del backend.proxy.given[ASK]
    assert Visitor(backend).post("/code", {"email": "b@mail.example"})[0] == 200
    assert [fields["Cookie"] for path, fields in backend.proxy.fields if path == ASK][-1] is None


@pytest.mark.parametrize("head", ["[" * 1200, "[" * 5500, '{"a":' * 1800], ids=["list", "long list", "object"])
def test_a_head_of_a_token_that_is_too_deep_is_refused(backend, head):
    assert send(backend, b64url(head.encode()) + ".e30.x") == 400


@pytest.mark.parametrize("changes", [{"exp": float("inf")}, {"iat": float("nan")}, {"iat": 1e308}], ids=["exp", "iat", "late iat"])
def test_a_time_that_is_none_is_refused(backend, lasting, changes):
    assert send(backend, backend.signed(logout(backend, lasting.cookie, **changes))) == 400
    assert lasting.get("/api/me")[0] == 200


def raw(backend, visitor, line, *fields):
    """The status line of the answer to bytes that no library sends."""
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    head = [line, f"Host: app.localhost:{backend.port}".encode(), f"Cookie: {cookies}".encode(), b"Connection: close", *fields]
    with unverified().wrap_socket(socket.create_connection(("127.0.0.1", backend.port), timeout=20)) as connection:
        connection.sendall(b"\r\n".join(head) + b"\r\n\r\n")
        given = b""
        while received := connection.recv(1 << 16):
            given += received
    status, _, rest = given.partition(b"\r\n")
    return int(status.split()[1]), rest.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("field", [
    b"Accept: a\n\tTransfer-Encoding: chunked", b"Accept: a\n X-User: root", b"Accept: a\r X", b"Accept: a\0b", b"Content-Type: \xff"])
def test_a_field_of_more_than_one_line_does_not_reach_the_api(backend, lasting, field):
    """An API that reads lines differently would take the rest for a field of ours."""
    status, body = raw(backend, lasting, b"GET /api/orders HTTP/1.1", field)
    names = {name.lower() for name, _ in json.loads(body)["fields"]}
    assert status == 200 and names == {"host", "accept-encoding", "content-length", "authorization"}


@pytest.mark.parametrize("query", [b"\xc3\xa9", b"\xff", b"a\x01b", b"a\0b"])
def test_a_query_that_is_no_query_is_no_fault_of_ours(backend, lasting, query):
    before = len(backend.api.asked)
    assert raw(backend, lasting, b"GET /api/me?" + query + b" HTTP/1.1")[0] == 502 and len(backend.api.asked) == before


@pytest.fixture(scope="module")
def odd(backend):
    """Asks a backend whose API gives one answer as it is written."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = free_port()
        backend.start(port, API=f"http://127.0.0.1:{listener.getsockname()[1]}")
        visitor = Visitor(backend, port=port)
        visitor.sign_in(backend.user())

        def ask(answer):
            def serve():
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)
            return at_once(lambda: visitor.ask("GET", "/api/orders"), serve)[0]

        yield ask


@pytest.mark.parametrize("status", [b"101 Switching Protocols", b"103 Early Hints", b"199 X", b"304 Not Modified", b"600 X", b"999 X"])
def test_a_status_that_is_no_answer_does_not_come_back(odd, status):
    """A proxy in front of us would wait for the real answer, and take the next one for it."""
    assert odd(b"HTTP/1.1 " + status + b"\r\nContent-Type: text/plain\r\n\r\n")[0] == 502


def test_a_page_of_the_api_loads_and_runs_nothing(odd):
    status, headers, _ = odd(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi")
    assert status == 200 and headers["Content-Security-Policy"] == "sandbox; default-src 'none'" and headers["X-Content-Type-Options"] == "nosniff"
