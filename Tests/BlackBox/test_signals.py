"""Operators' endpoints that are asked about a number: what they are asked, and what a slow, lying or absent one leads to."""

import http.server
import json
import threading
import time

import pytest

from harness import jose
from harness.phones import Phones, new_number
from harness.possession import Backend, possession


class Signals:
    """An endpoint on loopback: `say` is a document, bytes, or a function of the request."""

    def __init__(self):
        self.calls, self.status, self.say, self.delay, self.location = [], 200, {}, 0, None
        signals = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Keeps a POST and says what it is told to."""

            def do_POST(self):  # pylint: disable=invalid-name
                """Reads and answers."""
                body = self.rfile.read(int(self.headers["Content-Length"]))
                signals.calls.append((self.path, dict(self.headers.items()), body))
                time.sleep(signals.delay)
                answer = signals.say if isinstance(signals.say, bytes) else json.dumps(signals.say).encode()
                try:
                    self.send_response(signals.status)
                    if signals.location:
                        self.send_header("Location", signals.location)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass

            def log_message(self, *_):
                """Quiet."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/signals"

    def close(self):
        """Gone."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module", name="realm")
def _realm(world):
    realm = possession(world.realm())
    realm.phones = Phones(realm)
    realm.srv = Backend(realm, "srv")
    yield realm
    realm.phones.close()


@pytest.fixture(name="signals")
def _signals(realm):
    made = Signals()
    admin = realm.world.admin

    def use(kind, mode="require"):
        admin.call("put_provider", realm.slug, kind, made.url, mode)
        realm.world.settle()
    made.use = use
    yield made
    for kind in [row[0] for row in admin.run(f"SELECT kind FROM admin.providers WHERE realm = '{realm.slug}';")]:
        admin.call("delete_provider", realm.slug, kind)
    realm.world.settle()
    made.close()


def opened(realm, number=None, **members):
    """An opened transaction; status after it, app, number."""
    number = number or new_number()
    hello = members.pop("hello", {})
    started = realm.srv.unify(number, **members)
    phone = realm.srv.phone(started)
    phone.started = started
    phone.call("open", **hello)
    return realm.srv.status(started), phone, number


def reasons(status, part="authentication"):
    """Codes of a part."""
    return set(status.evaluation[part].get("failureReasons", {}))


def test_risk_is_asked_once_and_signed(realm, signals):
    """With what the backend gave; allow goes on, deny ends it."""
    signals.use("risk")
    signals.say = {"result": "allow"}
    status, phone, number = opened(
        realm, checkReputation=True, ipAddress="::ffff:1.2.3.4", emailAddress="ada@mail.example", clientRequestId="r-1")
    assert status.success == "pending" and status.evaluation == {"risk": {"result": "pass"}}
    path, headers, body = signals.calls[0]
    assert path == "/signals"
    assert json.loads(body) == {"phoneNumber": number, "ipAddress": "1.2.3.4", "emailAddress": "ada@mail.example", "clientRequestId": "r-1"}
    token = headers["Authorization"].removeprefix("Bearer ")
    header, claims = jose.verify(token, realm.app().get("/.well-known/jwks").json())
    assert header["typ"] == "postern-hook+jwt" and claims["aud"] == signals.url
    phone.call("open")
    phone.call("send", channel="otp")
    assert len(signals.calls) == 1
    signals.say = {"result": "deny"}
    status, phone, number = opened(realm, checkReputation=True)
    assert status.success == "false" and reasons(status) == {"9100", "9200"} and reasons(status, "risk") == {"9200"}
    phone.refused("send", 409, "transaction_over", channel="otp")
    assert realm.phones.to(number) == []
    assert opened(realm)[0].success == "pending" and len(signals.calls) == 2


@pytest.mark.parametrize("fault", ["garbage", "late", "status", "redirect", "long", "text"])
def test_no_usable_answer(realm, signals, fault):
    """require fails, observe goes on; two seconds, 64 KiB, no redirect."""
    signals.say = {"result": "allow"}
    match fault:
        case "garbage": signals.say = b"{"
        case "late": signals.delay = 3
        case "status": signals.status = 500
        case "redirect": signals.status, signals.location = 302, signals.url + "/elsewhere"
        case "long": signals.say = b'{"result":"allow","x":"' + b"x" * 70_000 + b'"}'
        case "text": signals.say = {"result": True}
    signals.use("risk")
    begun = time.monotonic()
    status, _, number = opened(realm, checkReputation=True)
    assert time.monotonic() - begun < 2.9 + 2
    assert status.success == "false" and reasons(status) == {"9100", "9201"} and "risk" not in status.evaluation
    assert [call[0] for call in signals.calls] == ["/signals"] and realm.phones.to(number) == []
    signals.use("risk", "observe")
    status, phone, _ = opened(realm, checkReputation=True)
    assert status.success == "pending" and not hasattr(status, "evaluation")
    assert phone.call("send", channel="otp")["state"] == "sent"


def test_without_a_provider_nothing_is_said(realm):
    """Never pass."""
    assert not hasattr(opened(realm, checkReputation=True)[0], "evaluation")


def test_a_changed_sim(realm, signals):
    """Before each message; true ends it without one, a text is no answer."""
    signals.use("sim-swap")
    signals.say = {"swapped": False}
    _, phone, number = opened(realm)
    assert signals.calls == []
    phone.call("send", channel="otp")
    assert signals.calls[0][0] == "/signals/check" and json.loads(signals.calls[0][2]) == {"phoneNumber": number, "maxAge": 72}
    phone.call("send", channel="otp")
    assert len(signals.calls) == 2
    for say, code in (({"swapped": True}, "9202"), ({"swapped": "true"}, "9201")):
        signals.say = say
        _, phone, number = opened(realm)
        phone.refused("send", 400, "possession_failed", channel="otp")
        assert reasons(realm.srv.status(phone.started)) == {"9100", code} and realm.phones.to(number) == []
    signals.use("sim-swap", "observe")
    _, phone, number = opened(realm)
    assert phone.call("send", channel="otp")["state"] == "sent"


def test_without_a_permit_for_the_message_nobody_is_asked(realm, signals):
    """Calls may be billed: there are no more of them than messages, and a message takes one permit."""
    signals.use("risk")
    signals.use("sim-swap")
    signals.say = {"result": "allow", "swapped": False}
    _, phone, _ = opened(realm, checkReputation=True)
    assert [call[0] for call in signals.calls] == ["/signals"]
    realm.limit("phone-otp", "target", 2)
    try:
        for _ in range(2):
            assert phone.call("send", channel="otp")["state"] == "sent"
        for _ in range(3):
            refused = phone.refused("send", 429, "rate_limited", channel="otp")
            assert (refused["policy"], refused["dimension"]) == ("phone-otp", "target")
        assert [call[0] for call in signals.calls] == ["/signals", "/signals/check", "/signals/check"]
    finally:
        realm.limit("phone-otp", "target", 1_000_000, per="1 minute", burst=1_000_000)


def test_a_realm_with_a_slow_operator_leaves_places_to_another(world, realm, signals):
    """Forty questions to it, and this realm's is answered while they all wait."""
    other, slow = possession(world.realm()), Signals()
    other.phones, other.srv = Phones(other), Backend(other, "srv")
    slow.say, slow.delay = {"result": "allow"}, 3
    try:
        world.admin.call("put_provider", other.slug, "risk", slow.url, "require")
        signals.use("risk")
        signals.say = {"result": "allow"}
        started = realm.srv.unify(new_number(), checkReputation=True)
        phone = realm.srv.phone(started)
        phones = [other.srv.phone(other.srv.unify(new_number(), checkReputation=True)) for _ in range(40)]
        waiting = [threading.Thread(target=one.ask, args=("open",)) for one in phones]
        for thread in waiting:
            thread.start()
        while len(slow.calls) < 8:
            time.sleep(0.01)
        time.sleep(0.3)
        phone.call("open")
        assert len(slow.calls) == 8 and all(thread.is_alive() for thread in waiting)
        assert realm.srv.status(started).evaluation == {"risk": {"result": "pass"}}
        for thread in waiting:
            thread.join()
    finally:
        slow.close()
        other.phones.close()


def test_the_operator_knows_the_phone(realm, signals):
    """True passes without a message; all else falls back."""
    signals.use("number-verification")
    signals.say = {"devicePhoneNumberVerified": True}
    hello = {"operatorToken": "operator-token"}
    status, _, number = opened(realm, hello=hello)
    assert status.success == "true" and status.deviceId and realm.phones.to(number) == []
    path, headers, body = signals.calls[0]
    assert path == "/signals/verify" and headers["Postern-Operator-Token"] == "operator-token" and json.loads(body) == {"phoneNumber": number}
    for status_, say in ((200, {"devicePhoneNumberVerified": False}), (403, {"code": "NUMBER_VERIFICATION.USER_NOT_AUTHENTICATED_BY_MOBILE_NETWORK"})):
        signals.status, signals.say = status_, say
        status, phone, _ = opened(realm, hello=hello)
        assert status.success == "pending" and phone.call("send", channel="otp")["state"] == "sent"


def test_operator_tokens_that_are_none(realm):
    """Too long, or no text; ignored for a desktop."""
    phone = realm.srv.phone(realm.srv.unify(new_number()))
    for token in ("x" * 4097, 5, ["x"]):
        phone.refused("open", 400, "invalid_request", operatorToken=token)
    assert phone.call("open", operatorToken="x" * 100)["state"] == "open"
