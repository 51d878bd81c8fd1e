"""Providers of messages that are down, slow, unwilling or silent: what is sent, how often, and what never is. And the guard against
requests that only cost money."""

import contextlib
import json
import socket
import threading
import time

import pytest

from harness import settings
from harness.phones import Phones, new_number
from harness.report import say
from harness.volley import in_parallel

pytestmark = pytest.mark.slow
OK = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"


class Vendor:
    """A server that answers each call as it is told: bytes, `None` for a closed connection, a number for a pause before OK."""

    def __init__(self, *script):
        self.script, self.messages, self.paths = list(script), [], []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(taken,), daemon=True).start()

    def _answer(self, taken):
        with taken, contextlib.suppress(OSError):
            taken.settimeout(10)
            data = b""
            while b"\r\n\r\n" not in data:
                data += taken.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            if b"100-continue" in head.lower():
                taken.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            while len(body) < length:
                body += taken.recv(65536)
            self.paths.append(head.split(b" ")[1].decode())
            self.messages.append(json.loads(body))
            what = self.script.pop(0) if self.script else OK
            if isinstance(what, (int, float)):
                time.sleep(what)
                what = OK
            if what is not None:
                taken.sendall(what)

    def url(self, path="/sms"):
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}{path}"

    def close(self):
        """Gone: connections are refused."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def wait(self, count, timeout=20.0):
        """So many calls."""
        deadline = time.monotonic() + timeout
        while len(self.messages) < count:
            assert time.monotonic() < deadline, self.messages
            time.sleep(0.02)
        return self.messages


def status(code, headers="", body=""):
    """An answer as bytes."""
    return f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n{body}".encode()


@pytest.fixture
def vendors():
    """Servers of one test."""
    made = []

    def make(*script):
        made.append(Vendor(*script))
        return made[-1]

    yield make
    for one in made:
        with contextlib.suppress(OSError):
            one.close()


@pytest.fixture
def ada(realm):
    """Somebody with a number."""
    number = new_number()
    realm.world.admin.call("put_user", realm.slug, phone=number, first_name="Ada")
    return number


@pytest.fixture(autouse=True)
def policy(realm):
    """Numbers of Austria, and no limit in the way; no provider of an earlier test."""
    made = Phones(realm)
    for channel in ("sms", "voice"):
        realm.world.admin.call("delete_channel", realm.slug, channel, "test")
    yield
    made.close()


@contextlib.contextmanager
def providers(realm, *urls, names="vendor"):
    """In this order."""
    for place, url in enumerate(urls):
        realm.world.admin.call("put_channel", realm.slug, "sms", f"{names}{place}", provider="webhook", url=url, priority=place)
    realm.world.settle()
    try:
        yield
    finally:
        for place in range(len(urls)):
            realm.world.admin.call("delete_channel", realm.slug, "sms", f"{names}{place}")
        realm.world.settle()


def ask(realm, number):
    """Asks for a code; the answer comes at once, whatever the provider does."""
    started = time.monotonic()
    answer = Phones.ask(realm.app(), number)
    assert answer.status == 200, answer
    assert time.monotonic() - started < 2
    return answer.json()["AuthSession"]


def outcome(realm, number, timeout=20.0):
    """State, error and tries of the newest message to a number, once it is done with."""
    deadline = time.monotonic() + timeout
    query = ("SELECT m.state, coalesce(m.last_error, ''), m.attempts FROM postern.message_outbox m JOIN postern.realm r ON r.id = m.realm_id "
             f"WHERE r.slug = '{realm.slug}' AND m.recipient = '{number}' ORDER BY m.created_at DESC LIMIT 1")
    while not (rows := realm.world.cluster.sql(query)) or rows[0][0] == "queued":
        assert time.monotonic() < deadline, rows
        time.sleep(0.05)
    return rows[0]


@pytest.mark.parametrize("answer", [
    status(200), status(201, body="x" * 100), status(202), status(204), status(200, "Content-Type: application/json\r\n", '{"id": 7}'),
    status(201, body="{" * 60_000), status(200, body="x" * 1_000_000)[:200_000],
], ids=["200", "201", "202", "204", "json", "no json", "too long"])
def test_what_the_provider_takes_is_sent_once(realm, vendors, ada, answer):
    """Whatever else it says."""
    vendor = vendors(answer)
    with providers(realm, vendor.url()):
        handle = ask(realm, ada)
        code = vendor.wait(1)[0]["code"]
        assert realm.app().redeem(code, handle=handle).status == 200
        state = outcome(realm, ada)
        assert state[0] == "sent" and len({message["id"] for message in vendor.messages}) == 1 and len(vendor.messages) <= 2, state


@pytest.mark.parametrize("code", [400, 404, 410, 422])
def test_what_the_provider_will_never_take_is_given_up(realm, vendors, ada, code):
    """One call; the message is dead, and an administrator sees why."""
    vendor = vendors(status(code))
    with providers(realm, vendor.url()):
        ask(realm, ada)
        state = outcome(realm, ada)
        assert state[0] == "dead" and state[1], state
        assert len(vendor.messages) == 1


@pytest.mark.parametrize("first", [
    status(301, "Location: http://127.0.0.1:1/\r\n"), status(307, "Location: /elsewhere\r\n"), status(401), status(403), status(408), status(409),
    status(429, "Retry-After: 1\r\n"), status(500), status(503, "Retry-After: 2\r\n"),
], ids=lambda answer: answer.split(b" ")[1].decode())
def test_what_the_provider_does_not_take_now_is_tried_again(realm, vendors, ada, first):
    """With the same id and code; no redirect is followed; one message in the end."""
    vendor = vendors(first)
    with providers(realm, vendor.url()):
        handle = ask(realm, ada)
        one, two = vendor.wait(2)
        assert one["id"] == two["id"] and one["code"] == two["code"] and set(vendor.paths) == {"/sms"}
        assert outcome(realm, ada)[0] == "sent"
        assert realm.app().redeem(two["code"], handle=handle).status == 200
        assert len(vendor.messages) == 2


@pytest.mark.parametrize("silence", [None, 6.0, b"nonsense\r\n\r\n", b"HTTP/1.1 2"], ids=["closes", "hangs", "garbage", "half"])
def test_a_message_in_doubt_is_sent_once_more(realm, vendors, ada, silence):
    """The body went out and no answer came: at most one extra copy, with the same id; then it is given up."""
    vendor = vendors(silence, silence, silence)
    with providers(realm, vendor.url()):
        ask(realm, ada)
        state = outcome(realm, ada, timeout=40)
        assert state[0] == "dead", state
        assert len(vendor.messages) == 2 and len({message["id"] for message in vendor.messages}) == 1, vendor.messages


def test_the_next_provider_takes_over(realm, vendors, ada):
    """After a refusal at once, after two failures otherwise; one SMS in all."""
    broken, unwilling, good = vendors(*[status(500)] * 9), vendors(status(400)), vendors()
    with providers(realm, broken.url(), unwilling.url(), good.url()):
        ask(realm, ada)
        assert outcome(realm, ada)[0] == "sent"
        assert (len(broken.messages), len(unwilling.messages), len(good.messages)) == (2, 1, 1)
        assert len({message["id"] for vendor in (broken, unwilling, good) for message in vendor.messages}) == 1


def test_nothing_is_sent_after_the_code_has_expired(realm, vendors, ada, world):
    """The provider was down for longer; the message is visible as dead."""
    vendor = vendors()
    url = vendor.url()
    vendor.close()
    with providers(realm, url):
        handle = ask(realm, ada)
        deadline = time.monotonic() + 10
        while not world.cluster.sql(f"SELECT 1 FROM postern.message_outbox WHERE recipient = '{ada}' AND attempts > 0"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        world.time_travel(3600)
        up = vendors()
        with providers(realm, up.url(), names="new"):
            state = outcome(realm, ada, timeout=60)
            assert state[:2] == ["dead", "expired"], state
            other = new_number()
            world.admin.call("put_user", realm.slug, phone=other)
            ask(realm, other)
            up.wait(1, timeout=40)
            assert [message["to"] for message in up.messages] == [other]
        assert realm.app().redeem("123456", handle=handle).error == "invalid_grant"


def test_a_slow_provider_holds_up_no_request_and_no_mail(realm, vendors):
    """Ten messages that take two seconds each; sign-ins by mail go on beside them."""
    vendor = vendors(*[2.0] * 10)
    numbers = [new_number() for _ in range(10)]
    for number in numbers:
        realm.world.admin.call("put_user", realm.slug, phone=number)
    with providers(realm, vendor.url()):
        in_parallel(lambda number: ask(realm, number), numbers)
        started = time.monotonic()
        realm.app().sign_in(realm.user())
        assert time.monotonic() - started < 2
        vendor.wait(10, timeout=60)
        assert sorted(message["to"] for message in vendor.messages) == sorted(numbers)


# -- the guard -------------------------------------------------------------------------------------


def test_requests_for_strange_numbers_stop_at_the_guard_while_sign_ins_go_on(world, vendors):
    """Sequential numbers of one prefix from a thousand sources: what is sent is what the prefix allows; those who redeem are not limited."""
    sources, honest, requests = (1000, 200, 10_000) if settings.FULL else (100, 20, 600)
    realm = world.realm("pumped", limits=True)
    vendor = vendors()
    policy = Phones(realm, channels=())
    policy.close()
    for dimension, permits in (("prefix", 25), ("country", 300)):
        realm.limit("phone-otp", dimension, permits, per="1 hour", burst=permits)
    realm.put_app("open", ["app"], registration="JitOnOtp")
    node = world.start_node(POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    try:
        app = realm.app_on(f"open.{realm.host}", node=node)
        with providers(realm, vendor.url()):
            people = [new_number() for _ in range(honest)]
            prefix = "+43676555"

            def pump(number):
                headers = {"X-Forwarded-For": f"198.18.{number % sources // 250}.{number % sources % 250 + 1}"}
                return app.post_json("/api/account/native/otp/request", {"Phone": f"{prefix}{number:04}"}, headers).status

            def sign_in(number):
                before = len([m for m in vendor.messages if m["to"] == number])
                asked = Phones.ask(app, number)
                assert asked.status == 200, asked
                deadline = time.monotonic() + 30
                while len(mine := [m for m in list(vendor.messages) if m["to"] == number]) <= before:
                    assert time.monotonic() < deadline, "no message"
                    time.sleep(0.02)
                return app.redeem(mine[-1]["code"], handle=asked.json()["AuthSession"]).status

            pumping = threading.Thread(target=lambda: statuses.extend(in_parallel(pump, range(requests), threads=16)))
            statuses = []
            pumping.start()
            signed_in = in_parallel(sign_in, people, threads=4)
            pumping.join()
            assert signed_in == [200] * honest, signed_in
            # Once the prefix is used up, a source is answered a few times as ever, so that no answer tells whose a number
            # is; messages go to proven numbers only.
            assert set(statuses) <= {200, 429}, set(statuses)
            pumped = [message for message in vendor.messages if message["to"].startswith(prefix)]
            assert len(pumped) <= 25 + requests // 1000, len(pumped)
            say(f"pumping guard: {requests} requests from {sources} sources, {statuses.count(200)} accepted, {len(pumped)} sent; "
                f"{honest} sign-ins beside them")
    finally:
        node.stop()
