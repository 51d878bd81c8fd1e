"""HTTP/1.1 without a library in the way: headers leave exactly as written, answers are read fully."""

import json
import socket
import time
import urllib.parse
from dataclasses import dataclass, field

#: Header fields that may differ between two answers that are otherwise the same bytes.
VOLATILE = {"date", "x-request-id", "request-id"}


class WireError(Exception):
    """The connection ended, or what came was not HTTP."""


@dataclass
class Answer:
    """One answer as it came."""

    status: int
    reason: str
    headers: list
    body: bytes
    seconds: float = field(default=0.0, compare=False)

    def header(self, name):
        """The value of a header field, all of them joined, or None."""
        values = [v for k, v in self.headers if k.lower() == name.lower()]
        return ", ".join(values) if values else None

    def json(self):
        """The body as JSON."""
        try:
            return json.loads(self.body)
        except ValueError as problem:
            raise AssertionError(f"not JSON: {self}") from problem

    @property
    def error(self):
        """The OAuth error, or the title of a problem document."""
        document = self.json()
        return document.get("error") or document.get("title") if isinstance(document, dict) else None

    def same_bytes(self):
        """What must be equal for two answers to be the same: status, header set, body."""
        kept = sorted((k.lower(), v) for k, v in self.headers if k.lower() not in VOLATILE)
        return self.status, kept, self.body

    def __str__(self):
        return f"{self.status} {self.headers} {self.body[:600]!r}"


class Connection:
    """One TCP connection, kept alive for as many exchanges as the server allows."""

    def __init__(self, port, timeout=10.0):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes at once."""
        self._socket.close()

    def send(self, raw):
        """Sends bytes; a server that answers early and closes is no error yet."""
        try:
            self._socket.sendall(raw)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self, method="POST"):
        """Reads one answer fully; interim 1xx answers are skipped."""
        started = time.monotonic()
        try:
            while True:
                status, reason, headers = self._head()
                if status >= 200 or status == 101:
                    break
            body = self._body(method, status, headers)
        except (socket.timeout, ConnectionError) as problem:
            raise WireError(f"no full answer: {problem!r}, got {self._buffer[:200]!r}") from problem
        return Answer(status, reason, headers, body, time.monotonic() - started)

    def exchange(self, method, target, headers, body=None):
        """Sends one request and reads its answer."""
        started = time.monotonic()
        self.send(request_bytes(method, target, headers, body))
        answer = self.receive(method)
        answer.seconds = time.monotonic() - started
        return answer

    def _head(self):
        head = self._until(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        version, _, rest = lines[0].partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise WireError(f"not HTTP/1.x: {head[:200]!r}")
        status, _, reason = rest.partition(b" ")
        headers = []
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            headers.append((name.decode("latin-1"), value.strip().decode("latin-1")))
        return int(status), reason.decode("latin-1"), headers

    def _body(self, method, status, headers):
        fields = {k.lower(): v for k, v in headers}
        if method == "HEAD" or status in (204, 304):
            return b""
        if "chunked" in fields.get("transfer-encoding", "").lower():
            body = b""
            while True:
                size = int(self._until(b"\r\n").split(b";")[0], 16)
                body += self._exactly(size)
                if size == 0:
                    while self._until(b"\r\n"):
                        pass
                    return body
                self._exactly(2)
        if "content-length" in fields:
            return self._exactly(int(fields["content-length"]))
        while self._more():
            pass
        body, self._buffer = self._buffer, b""
        return body

    def _more(self):
        data = self._socket.recv(65536)
        self._buffer += data
        return bool(data)

    def _until(self, mark):
        while mark not in self._buffer:
            if not self._more():
                raise WireError(f"connection closed, got {self._buffer[:200]!r}")
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def _exactly(self, count):
        while len(self._buffer) < count:
            if not self._more():
                raise WireError("connection closed inside a body")
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found


def request_bytes(method, target, headers, body=None):
    """One request. Content-Length is added unless the headers frame the body themselves."""
    pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
    pairs = [(k, v) for k, v in pairs if v is not None]
    names = {k.lower() for k, _ in pairs}
    if (body is not None or method in ("POST", "PUT", "PATCH")) and not names & {"content-length", "transfer-encoding"}:
        pairs.append(("Content-Length", str(len(body or b""))))
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in pairs) + "\r\n"
    return head.encode("utf-8", "surrogatepass") + (body or b"")


def form_body(parameters):
    """A form, percent-encoded; takes a dict or a list of pairs (for duplicates)."""
    pairs = parameters.items() if isinstance(parameters, dict) else parameters
    pairs = [(k, v) for k, v in pairs if v is not None]
    return urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote, safe="").encode()


FORM = "application/x-www-form-urlencoded"


def exchange(port, method, target, headers, body=None, timeout=10.0):
    """One request on a connection of its own."""
    with Connection(port, timeout) as connection:
        return connection.exchange(method, target, headers, body)
