"""Phones: a provider of SMS and voice on loopback that keeps what it is given."""

import http.server
import itertools
import json
import threading
import time

from .ledger import LEDGER

_NUMBERS = itertools.count(10_000_000)


def new_number():
    """An Austrian number that no test has used."""
    return f"+43664{next(_NUMBERS)}"


class Phones:
    """The webhook of a realm's channels, and the realm's policy for phones. `mode` is accept, refuse (503), hang (503 after a second) or
    reset (closed without an answer)."""

    def __init__(self, realm, channels=("sms", "voice"), **policy):
        self.realm, self.messages, self.mode = realm, [], "accept"
        phones = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Keeps a POST."""

            def do_POST(self):  # pylint: disable=invalid-name
                """Reads and answers."""
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if phones.mode == "reset":
                    self.close_connection = True
                    return
                if phones.mode == "hang":
                    time.sleep(1)
                if phones.mode in ("refuse", "hang"):
                    self.send_response(503)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                LEDGER.add("code", message.get("code"))
                phones.messages.append(message)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.port = self._server.server_address[1]
        admin = realm.world.admin
        admin.call("set_phone_policy", realm.slug, **{"regions": ["AT", "US"], "sends": 3, **policy})
        for dimension in ("target", "target-total", "source", "prefix", "country"):
            realm.limit("phone-otp", dimension, 1_000_000, per="1 minute", burst=1_000_000)
        admin.call("grant_permission", realm.slug, realm.client("app"), variadic=["scp:phone"])
        for channel in channels:
            url = f"http://127.0.0.1:{self.port}/{channel}"
            admin.call("put_channel", realm.slug, channel, "test", provider="webhook", url=url)

    def close(self):
        """The provider is gone, and nothing of the realm points to it."""
        self.realm.world.admin.run(
            "SELECT admin.delete_channel(realm, channel, name) FROM admin.channels"
            f" WHERE realm = '{self.realm.slug}' AND name = 'test';")
        # Notices that no test waited for would be tried for days.
        self.realm.world.cluster.sql(
            "DELETE FROM postern.mail_outbox AS m USING postern.realm AS r"
            f" WHERE r.id = m.realm_id AND r.slug = '{self.realm.slug}' AND m.channel <> 'email' AND m.state = 'queued'")
        self._server.shutdown()
        self._server.server_close()

    def to(self, number):
        """The messages to a number, oldest first."""
        return [message for message in self.messages if message["to"] == number]

    def wait(self, number, count=1, timeout=10.0):
        """The newest of `count` messages to a number."""
        deadline = time.monotonic() + timeout
        while len(self.to(number)) < count:
            assert time.monotonic() < deadline, self.messages
            time.sleep(0.02)
        return self.to(number)[-1]

    @staticmethod
    def ask(app, number, path="native/otp/request", **members):
        """Asks for a code or link by number; the raw answer."""
        answer = app.post_json(f"/api/account/{path}", {"Phone": number, **members})
        if answer.status == 200:
            LEDGER.add("auth_session", answer.json()["AuthSession"])
        return answer

    def sign_in(self, app, number, scope="openid offline_access profile email phone"):
        """Code, SMS, tokens; the token answer."""
        before = len(self.to(number))
        asked = self.ask(app, number)
        assert asked.status == 200, asked
        code = self.wait(number, before + 1)["code"]
        answer = app.redeem(code, handle=asked.json()["AuthSession"], scope=scope)
        assert answer.status == 200, answer
        return answer.json()
