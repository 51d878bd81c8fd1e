"""A receiver of spans (OTLP over HTTP, JSON encoding) on this machine."""

import http.server
import json
import threading
import time

from . import ports


class Span:
    """One span that arrived, with its attributes as plain values."""

    def __init__(self, span):
        self.name, self.kind = span["name"], span["kind"]
        self.trace, self.id, self.parent = span["traceId"], span["spanId"], span.get("parentSpanId")
        self.start, self.end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.failed = span.get("status", {}).get("code") == 2
        self.attributes = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}


class Collector:
    """Keeps what arrives and answers 200, or `status`."""

    def __init__(self):
        self.spans = []
        self.bodies = []
        self.paths = set()
        self.status = 200
        self.changed = threading.Condition()
        self.port = ports.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = None
        self.up()

    def up(self):
        """Listens."""
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json"
                collector.take(self.path, body)
                self.send_response(collector.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self):
        """Listens no longer."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, path, body):
        """One request."""
        found = [
            Span(span) for resource in json.loads(body)["resourceSpans"]
            for scope in resource["scopeSpans"] for span in scope["spans"]]
        with self.changed:
            self.paths.add(path)
            self.bodies.append(body.decode())
            self.spans += found
            self.changed.notify_all()

    def wait(self, enough, timeout=30.0):
        """Waits until `enough(spans)` is true; returns what that is."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not (result := enough(self.spans)):
                assert self.changed.wait(deadline - time.monotonic()), f"only {[span.name for span in self.spans][-20:]} arrived"
            return result
