"""A receiver of events (RFC 8935) on this machine, which can be told to misbehave."""

import base64
import http.server
import json
import socket
import struct
import threading
import time

from . import ports

DELIVERED = (202, {}, b"")


def claims_of(token):
    """The claims of a compact JWS, unverified."""
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


class Event:
    """One POST that arrived."""

    def __init__(self, headers, token):
        self.content_type = headers["Content-Type"]
        self.authorization = headers["Authorization"]
        self.token = token
        self.claims = claims_of(token)
        self.jti = self.claims["jti"]
        self.type, self.object = next(iter(self.claims["events"].items()))
        self.name = self.type.rsplit("/", 1)[-1]
        self.subject = self.claims["sub_id"].get("sub") or self.claims["sub_id"]["id"]
        self.accepted = False


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True

    def handle_error(self, *_):
        pass


class Receiver:
    """Keeps what arrives. `answer(event)` gives (status, fields, body), `hang` or `reset`."""

    def __init__(self, answer=lambda event: DELIVERED):
        self.answer = answer
        self.events = []
        self.in_flight = {}
        self.doubled = []
        self.changed = threading.Condition()
        self.released = threading.Event()
        self.port = ports.free_port()
        self.url = f"http://127.0.0.1:{self.port}/events"
        self._server = None
        self.up()

    def up(self):
        """Listens."""
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                receiver._take(self)

            def log_message(self, *_):
                pass

        self._server = _Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self):
        """Listens no longer; nothing can connect."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def close(self):
        """Ends it for good."""
        self.released.set()
        self.down()

    def _take(self, handler):
        event = Event(handler.headers, handler.rfile.read(int(handler.headers["Content-Length"])).decode())
        with self.changed:
            self.events.append(event)
            if self.in_flight.get(event.subject):
                self.doubled.append(event.jti)
            self.in_flight[event.subject] = self.in_flight.get(event.subject, 0) + 1
            answer = self.answer(event)
            self.changed.notify_all()
        if answer == "hang":
            self.released.wait(60)
            handler.close_connection = True
        elif answer == "reset":
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
        with self.changed:
            self.in_flight[event.subject] -= 1
            if isinstance(answer, tuple):
                event.accepted = answer[0] in (200, 202, 204)
            self.changed.notify_all()
        if isinstance(answer, tuple):
            status, fields, body = answer
            handler.send_response(status)
            for name, value in fields.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

    def wait(self, enough, timeout=30.0):
        """Waits until `enough(events)`; returns what arrived."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not enough(self.events):
                left = deadline - time.monotonic()
                assert left > 0, f"{len(self.events)} events: {[(e.name, e.object) for e in self.events[-10:]]}"
                self.changed.wait(left)
            return list(self.events)

    def count(self, number, timeout=30.0):
        """Waits for so many; returns them."""
        return self.wait(lambda events: len(events) >= number, timeout)

    def accepted(self):
        """The events that were accepted, each once, in the order of their first acceptance."""
        with self.changed:
            return list({event.jti: event for event in self.events if event.accepted}.values())
