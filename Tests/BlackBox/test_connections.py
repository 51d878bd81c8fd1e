"""One connection: pipelining, limits of sizes and how it ends. Raw sockets, because HTTP libraries tidy up what is sent."""

import socket

DISCOVERY = b"GET /.well-known/openid-configuration HTTP/1.1\r\nHost: %s\r\n\r\n"


class Raw:
    def __init__(self, node):
        self.socket = socket.create_connection(("127.0.0.1", node.port), timeout=10)
        self.received = b""

    def send(self, data):
        self.socket.sendall(data)

    def until_closed(self):
        while chunk := self.socket.recv(65536):
            self.received += chunk
        return self.received

    def answers(self, count):
        """The status lines of the next answers, whose bodies are read by their Content-Length."""
        statuses = []
        while len(statuses) < count:
            while b"\r\n\r\n" not in self.received:
                chunk = self.socket.recv(65536)
                assert chunk, f"closed after {statuses}, with {self.received!r}"
                self.received += chunk
            head, _, rest = self.received.partition(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
            while len(rest) < length:
                rest += self.socket.recv(65536)
            self.received = rest[length:]
            statuses.append(int(head.split()[1]))
        return statuses


def host(realm):
    return realm.host.encode()


def post(realm, headers=b"", body=b""):
    return (b"POST /connect/token HTTP/1.1\r\nHost: " + host(realm)
            + b"\r\nContent-Type: application/x-www-form-urlencoded\r\n" + headers + b"\r\n" + body)


def test_pipelined_requests_are_answered_in_order(realm):
    raw = Raw(realm.world.node)
    body = b"grant_type=nonsense"
    raw.send(DISCOVERY % host(realm) + post(realm, b"Content-Length: %d\r\n" % len(body), body)
             + b"GET /nowhere HTTP/1.1\r\nHost: " + host(realm) + b"\r\n\r\n" + DISCOVERY % host(realm))
    assert raw.answers(4) == [200, 400, 404, 200]


def test_an_idle_connection_is_kept_for_as_long_as_is_set(realm, world):
    """Its end comes without a word; the test waits for it, and for no time."""
    node = world.start_node(POSTERN_KEEPALIVE="1")
    try:
        raw = Raw(node)
        raw.send(DISCOVERY % host(realm))
        assert raw.answers(1) == [200]
        assert raw.until_closed() == b""
    finally:
        node.stop()


def test_fifty_pipelined_requests_need_no_more_reads(realm):
    raw = Raw(realm.world.node)
    raw.send(DISCOVERY % host(realm) * 50)
    assert raw.answers(50) == [200] * 50


def test_a_connection_is_kept_until_the_client_wants_its_end(realm):
    raw = Raw(realm.world.node)
    for _ in range(3):
        raw.send(DISCOVERY % host(realm))
        assert raw.answers(1) == [200]
    raw.send((DISCOVERY % host(realm)).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    answer = raw.until_closed()
    assert answer.startswith(b"HTTP/1.1 200") and b"connection: close" in answer.lower()


def test_a_body_over_the_limit_is_refused_and_the_connection_ends(realm):
    raw = Raw(realm.world.node)
    raw.send(post(realm, b"Content-Length: 70000\r\n", b"a" * 66_000))
    answer = raw.until_closed()
    assert answer.startswith(b"HTTP/1.1 413") and answer.count(b"HTTP/1.1") == 1


def test_a_chunked_body_over_the_limit_is_refused_too(realm):
    raw = Raw(realm.world.node)
    raw.send(post(realm, b"Transfer-Encoding: chunked\r\n", b"8000\r\n" + b"a" * 0x8000 + b"\r\n" + b"8001\r\n" + b"a" * 0x8001 + b"\r\n"))
    assert raw.until_closed().startswith(b"HTTP/1.1 413")


def test_a_body_of_exactly_the_limit_is_read(realm):
    raw = Raw(realm.world.node)
    body = (b"grant_type=" + b"x" * 65_536)[:65_536]
    raw.send(post(realm, b"Content-Length: 65536\r\n", body))
    assert raw.answers(1) == [400]
    raw.send(DISCOVERY % host(realm))
    assert raw.answers(1) == [200]


def test_headers_that_are_too_long_get_431(realm):
    raw = Raw(realm.world.node)
    raw.send(b"GET / HTTP/1.1\r\nHost: " + host(realm) + b"\r\nX-Long: " + b"a" * 20_000 + b"\r\n\r\n")
    assert raw.until_closed().startswith(b"HTTP/1.1 431")


def test_what_is_no_http_gets_400_and_the_end(realm):
    raw = Raw(realm.world.node)
    raw.send(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert raw.until_closed().startswith(b"HTTP/1.1 400")


def test_a_client_that_has_said_all_still_gets_its_answer(realm):
    raw = Raw(realm.world.node)
    raw.send(DISCOVERY % host(realm))
    raw.socket.shutdown(socket.SHUT_WR)
    assert raw.until_closed().startswith(b"HTTP/1.1 200")


def test_a_head_answer_has_the_length_of_the_get_answer_and_no_body(realm):
    raw = Raw(realm.world.node)
    raw.send((DISCOVERY % host(realm)).replace(b"GET", b"HEAD") + b"")
    raw.socket.shutdown(socket.SHUT_WR)
    head, _, rest = raw.until_closed().partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    assert rest == b"" and length > 200


def test_expect_is_answered_before_the_body_is_sent(realm):
    raw = Raw(realm.world.node)
    raw.send(post(realm, b"Expect: 100-continue\r\nContent-Length: 19\r\n"))
    assert raw.socket.recv(100).startswith(b"HTTP/1.1 100")
    raw.send(b"grant_type=nonsense")
    assert raw.answers(1) == [400]


def test_every_answer_carries_its_date(realm):
    raw = Raw(realm.world.node)
    raw.send((DISCOVERY % host(realm)).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert b"\r\ndate: " in raw.until_closed().lower()


def test_blanks_behind_a_value_do_not_belong_to_it(realm):
    """RFC 9112 section 5.1: in `Host`, which chooses the realm, as in every other field."""
    raw = Raw(realm.world.node)
    body = b"grant_type=nonsense"
    raw.send((DISCOVERY % host(realm)).replace(host(realm), b"  " + host(realm) + b"  "))
    assert raw.answers(1) == [200]
    raw.send(post(realm, b"Content-Length: %d\r\n" % len(body), body).replace(b"urlencoded\r\n", b"urlencoded \t\r\n"))
    assert raw.answers(1) == [400]
    for blanks in (b" ", b"\t"):
        raw.send(DISCOVERY.replace(b"\r\n\r\n", b"\r\nIf-None-Match: *" + blanks + b"\r\n\r\n") % host(realm))
        assert raw.answers(1) == [304]


def test_a_body_in_a_coding_that_cannot_be_read_is_refused(realm):
    """Only `chunked` frames a body; what else is named would have to be undone first."""
    for coding in (b"gzip, chunked", b"identity", b"chunked, chunked", b"xchunked", b"chunked;q=1"):
        raw = Raw(realm.world.node)
        raw.send(post(realm, b"Transfer-Encoding: " + coding + b"\r\n", b"5\r\na=b&c\r\n0\r\n\r\n"))
        assert raw.until_closed().startswith(b"HTTP/1.1 400"), coding
