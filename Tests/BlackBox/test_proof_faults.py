"""Approvals and proofs of numbers while PostgreSQL, a server or an answer is lost: 503 or the truth, and never a second effect."""

import signal
import threading
import time

import pytest

from harness import wire
from harness.approvals import Device, approved, ask, error, poll, switch_on
from harness.dpop import DPoPApp
from harness.load import Workers, is_unavailable
from harness.node import Node
from harness.phones import new_number
from harness.possession import Phone, coded, furnished, possession, signs_in
from harness.proxy import LosingProxy
from harness.settings import FULL

pytestmark = pytest.mark.slow
GRANT = "urn:postern:possession"


@pytest.fixture(scope="module", name="realm")
def _realm(fragile_world):
    made = possession(fragile_world.realm("faults"))
    switch_on(made, "app", "api", public_clients=True)
    signs_in(furnished(made, "cap:assert-possession"))
    assert made.srv.token
    yield made
    made.phones.close()


@pytest.fixture(scope="module", name="proxy")
def _proxy(fragile_world):
    made = LosingProxy(fragile_world.cluster)
    yield made
    made.close()


@pytest.fixture(scope="module", name="lossy")
def _lossy(fragile_world, proxy):
    """A node that reaches its database through the proxy."""
    made = Node(proxy.url(fragile_world.cluster, "bb_serve"), fragile_world.key_file, fragile_world.mailbox.port).start()
    fragile_world.nodes.append(made)
    yield made
    made.stop()


def count(realm, event, key, value):
    """Audit events about one thing."""
    return int(realm.world.cluster.value(
        f"SELECT count(*) FROM postern.audit_event WHERE event = '{event}' AND detail ->> '{key}' = '{value}'"))


# -- a lost answer ------------------------------------------------------------------------------


def test_a_lost_answer_to_an_approval(realm, proxy, lossy):
    """The device may repeat it; it is decided once."""
    app = realm.app("api")
    device = Device(realm.app(node=lossy), realm, realm.user())
    asked = ask(app, device.email).json()
    item = device.item()
    response = device.response(device.payload(item, "approve", asked["match_number"]))
    proxy.lose("\0answer_approval")
    first = device.send(item["Id"], response)
    assert proxy.armed == 0 and (first.status == 200 or is_unavailable(first)), first
    again = device.send(item["Id"], response)
    assert again.status == 200 and again.json()["Decision"] == "approve", again
    assert count(realm, "approval_approved", "approval_id", item["Id"]) == 1
    assert poll(app, asked).status == 200
    assert poll(app, asked, x="another request").status == 400


def test_a_lost_answer_to_a_check(realm, proxy, lossy):
    """503; the state is the truth, and the same code is told so again."""
    started, phone, number, code = coded(realm, lossy, allowOTPRetry=True)
    proxy.lose("\0check_possession")
    first = phone.ask("check", otp=code)
    assert proxy.armed == 0 and first.status in (200, 503), first
    assert phone.call("result") == {"state": "passed"} and realm.srv.status(started).success == "true"
    again = phone.ask("check", otp=code)
    assert (again.status, again.json()) == (200, {"state": "passed"}), again
    assert count(realm, "possession_passed", "correlation_id", started.correlationId) == 1 and len(realm.phones.to(number)) == 1


def test_a_lost_answer_to_a_bind(realm, proxy, lossy):
    """The same again is the same; another number is too late."""
    started, numbers = realm.srv.unify(kind="none"), [new_number(), new_number()]
    realm.srv.phone(started).call("open")
    elsewhere = realm.srv.app.node
    realm.srv.app.node = lossy
    try:
        proxy.lose("\0bind_possession")
        first = realm.srv.ask("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=numbers[0])
        assert proxy.armed == 0 and first.status in (200, 503), first
        if first.status == 503:
            assert first.json()["code"] == 8000 and first.header("retry-after").isdigit()
        answers = [realm.srv.ask("/v3/unify-bind", correlationId=started.correlationId, phoneNumber=number) for number in numbers]
    finally:
        realm.srv.app.node = elsewhere
    assert [answer.status for answer in answers] == [200, 403] and answers[0].json()["phoneNumber"] == numbers[0]
    assert count(realm, "possession_asserted", "correlation_id", started.correlationId) == 1


def test_a_lost_answer_to_the_poll_of_an_approval(realm, proxy, lossy):
    """The same poll gets the session."""
    app = realm.app("api")
    device = Device(realm.app(), realm, realm.user())
    asked = approved(app, device)
    app.node = lossy
    proxy.lose("\0redeem_authentication")
    first = poll(app, asked)
    assert proxy.armed == 0 and (first.status == 200 or is_unavailable(first)), first
    assert poll(realm.app("api"), asked).status == 200
    assert int(realm.world.cluster.value(
        f"SELECT count(*) FROM postern.session s JOIN postern.user_account u ON u.id = s.user_id WHERE u.address_key = '{device.email}'")) == 1


def test_a_lost_answer_to_a_sign_in_by_a_number(realm, proxy, lossy):
    """The same request gets the one session."""
    number = new_number()
    user = realm.world.admin.call("put_user", realm.slug, phone=number)
    started, phone, _, code = coded(realm, number=number)
    phone.call("check", otp=code)
    client = DPoPApp(realm.app(node=lossy), phone.key)
    client.nonce = phone.app.nonce
    form = {"grant_type": GRANT, "client_id": client.client_id, "scope": "openid", "auth_token": phone.token}
    proxy.lose("\0redeem_possession")
    first = client.token(form)
    assert proxy.armed == 0 and (first.status == 200 or is_unavailable(first)), first
    assert client.token(form).status == 200
    assert realm.srv.status(started).success == "true"
    assert int(realm.world.cluster.value(f"SELECT count(*) FROM postern.session WHERE user_id = '{user}'")) == 1


def test_a_lost_answer_to_a_send(realm, proxy, lossy):
    """The message counts: one was sent."""
    number = new_number()
    phone = realm.srv.phone(realm.srv.unify(number), node=lossy)
    assert phone.call("open")["sendsLeft"] == 3
    proxy.lose("\0send_possession")
    first = phone.ask("send", channel="otp")
    assert proxy.armed == 0 and first.status in (200, 503), first
    code = realm.phones.wait(number)["code"]
    assert phone.call("open")["sendsLeft"] == 2 and len(realm.phones.to(number)) == 1
    assert phone.call("check", otp=code) == {"state": "passed"}


# -- no room, no database, no server --------------------------------------------------------------


def test_a_full_disk_counts_and_sends_nothing(fragile_world, realm):
    """PostgreSQL says so when the message is queued: 503, and the next call begins where this one did."""
    number = new_number()
    phone = realm.srv.phone(realm.srv.unify(number))
    phone.call("open")
    cluster = fragile_world.cluster
    cluster.sql("CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no space left on device'"
                " USING ERRCODE = 'disk_full'; END $$; CREATE TRIGGER full_disk BEFORE INSERT ON postern.message_outbox"
                " FOR EACH ROW EXECUTE FUNCTION public.full_disk();")
    try:
        answer = phone.ask("send", channel="otp")
    finally:
        cluster.sql("DROP FUNCTION public.full_disk() CASCADE;")
    assert answer.status == 503 and answer.header("retry-after").isdigit(), answer
    assert phone.call("open")["sendsLeft"] == 3 and realm.phones.to(number) == []
    phone.call("send", channel="otp")
    assert phone.call("check", otp=realm.phones.wait(number)["code"]) == {"state": "passed"}


class Traffic(Workers):
    """Every flow in a circle, each in a thread; what was acknowledged is kept."""

    def __init__(self, realm):
        self.realm, self.passed, self.redeemed, self.late, self.problems, self.unavailable = realm, [], [], [], [], 0
        super().__init__([(self._run, flow) for flow in (self._prove, self._prove, self._approve, self._assert)])

    def _run(self, flow):
        while not self._stop.is_set():
            try:
                flow()
            except Unavailable:
                self.unavailable += 1
                time.sleep(0.05)
            except (AssertionError, OSError, KeyError, ValueError) as problem:
                self.problems.append(repr(problem))

    @staticmethod
    def _ok(answer):
        if answer.status == 503:
            assert answer.header("retry-after").isdigit(), answer
            raise Unavailable
        if answer.status == 401 and answer.error == "use_dpop_nonce":
            # Used proofs do not survive a crash of PostgreSQL, and nonces of before it are refused.
            raise Unavailable
        assert answer.status == 200, answer
        return answer.json()

    def _backend(self, path, **members):
        answer = self.realm.srv.ask(path, **members)
        if answer.status == 503:
            assert answer.json()["code"] == 8000 and answer.json()["message"], answer
        return self._ok(answer)

    def _open(self, **members):
        started = self._backend("/v3/unify", **members)
        phone = Phone(self.realm, started["authToken"])
        self._ok(phone.ask("open"))
        return started["correlationId"], phone

    def _prove(self):
        number = new_number()
        correlation, phone = self._open(possessionType="mobile", phoneNumber=number)
        self._ok(phone.ask("send", channel="otp"))
        try:
            code = self.realm.phones.wait(number)["code"]
        except AssertionError:
            self.late.append(number)
            return
        self._ok(phone.ask("check", otp=code))
        self.passed.append(correlation)

    def _assert(self):
        correlation, _ = self._open(possessionType="none")
        self._backend("/v3/unify-bind", correlationId=correlation, phoneNumber=new_number())
        self.passed.append(correlation)

    def _approve(self):
        app = self.realm.app("api")
        asked = self._ok(ask(app, self.device.email))
        deadline = time.monotonic() + 5
        while not (items := self._ok(self.device.look())["Approvals"]):
            assert time.monotonic() < deadline, "nothing is shown"
            time.sleep(0.02)
        item = items[-1]
        self._ok(self.device.answer(item, number=asked["match_number"]))
        answer = poll(app, asked)
        self._ok(answer)
        self.redeemed.append(asked)


class Unavailable(Exception):
    """503, as it should be."""


def test_while_postgresql_is_away_only_503_and_no_pass_is_lost(fragile_world, realm):
    """Killed under all flows; what was acknowledged stands, and no approval and no code is used twice."""
    traffic = Traffic(realm)
    traffic.device = Device(realm.app(), realm, realm.user())
    traffic.start()
    deadline = time.monotonic() + 20
    while not traffic.redeemed or len(traffic.passed) < 4:
        assert time.monotonic() < deadline, traffic.problems
        time.sleep(0.05)
    fragile_world.cluster.kill()
    away = realm.srv.ask("/v3/unify", possessionType="mobile")
    time.sleep(0.5)
    fragile_world.cluster.start()
    again = len(traffic.passed)
    deadline = time.monotonic() + 20
    while len(traffic.passed) < again + 4:
        assert time.monotonic() < deadline, traffic.problems
        time.sleep(0.05)
    traffic.stop()
    assert (away.status, away.json()["code"]) == (503, 8000) and away.header("retry-after").isdigit(), away
    # A message whose lease was committed while its answer was lost goes out when the lease is over: one for each flow at most.
    assert len(traffic.late) <= 2, traffic.late
    for number in traffic.late:
        realm.phones.wait(number, timeout=120)
    # What a crash cuts off leaves a request that is not shown in time.
    assert not [problem for problem in traffic.problems if "nothing is shown" not in problem], traffic.problems[:3]
    assert traffic.unavailable, "the fault was not noticed"
    for correlation in traffic.passed:
        assert realm.srv.call("/v3/unify-status", correlationId=correlation).success == "true"
    for asked in traffic.redeemed[-3:]:
        answer = poll(realm.app("api"), asked)
        assert answer.status == 200 or error(answer) in ("invalid_grant", "expired_token"), answer
    assert realm.world.cluster.value(
        "SELECT count(*) FROM (SELECT detail ->> 'correlation_id' FROM postern.audit_event WHERE event = 'possession_passed'"
        " GROUP BY 1 HAVING count(*) > 1) AS twice") == "0"


def waiting(node, device):
    """A connection on which a device waits for approvals."""
    path = "/connect/approvals?wait=25"
    connection = wire.Connection(node.port, timeout=40)
    connection.send(wire.request_bytes("GET", path, [("Host", device.host), ("DPoP", device.proof("GET", path.partition("?")[0]))], None))
    return connection


def until(condition, timeout=20.0):
    """Waits for something to be so."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_server_under_a_waiting_device(fragile_world, realm):
    """The device comes back to another process and finds what was asked meanwhile."""
    node = fragile_world.start_node()
    device = Device(realm.app(node=node), realm, realm.user())
    assert device.inbox() == []
    connection = waiting(node, device)
    until(lambda: node.metric("postern_held_requests") == 1)
    node.kill()
    with pytest.raises(wire.WireError):
        assert connection.receive().status
    asked = ask(realm.app("api"), device.email).json()
    device.node = fragile_world.node
    assert device.answer(device.item(), number=asked["match_number"]).status == 200
    assert poll(realm.app("api"), asked).status == 200


def test_sigterm_answers_who_waits_and_finishes_what_is_sent(fragile_world, realm):
    """A hundred waits (a thousand in the long form) and fifty messages in hand: 200 each, exit code 0, and every message that was promised arrives."""
    # Behind a proxy: one source that is not trusted has fewer connections than there are waits. It accepts for five seconds after the
    # signal, and not only until it comes as other nodes of the tests: the last of fifty threads may be late on a busy machine.
    node = fragile_world.start_node(
        POSTERN_SHUTDOWN_DELAY="5", POSTERN_SHUTDOWN_GRACE="10", POSTERN_TRUSTED_PROXIES="127.0.0.0/8")
    number = [new_number() for _ in range(50)]
    phones = [realm.srv.phone(realm.srv.unify(one), node=node) for one in number]
    held = [realm.srv.phone(realm.srv.unify(new_number()), node=node) for _ in range(1000 if FULL else 100)]
    for phone in phones + held:
        phone.call("open")
    asked, answers, threads = [], [], []

    def ask_for(phone, step, **members):
        asked.append(step)
        answers.append((step, phone.ask(step, **members)))
    threads += [threading.Thread(target=ask_for, args=(phone, "result"), kwargs={"wait": 25}) for phone in held]
    for thread in threads:
        thread.start()
    until(lambda: node.metric("postern_held_requests") == len(held))
    sends = [threading.Thread(target=ask_for, args=(phone, "send"), kwargs={"channel": "otp"}) for phone in phones]
    for thread in sends:
        thread.start()
    until(lambda: asked.count("send") == len(phones) and len(answers) >= 5)
    node.process.send_signal(signal.SIGTERM)
    for thread in threads + sends:
        thread.join(30)
    assert node.process.wait(15) == 0
    results = [answer for step, answer in answers if step == "result"]
    assert len(results) == len(held) and {(answer.status, answer.json()["state"]) for answer in results} == {(200, "open")}
    sent = [answer for step, answer in answers if step == "send"]
    refused = [(answer.status, answer.body, answer.seconds) for answer in sent if answer.status != 200]
    assert len(sent) == len(phones) and not refused, f"{refused}\n{node.log()}"
    for one in number:
        assert realm.phones.wait(one)["code"]
    assert all(len(realm.phones.to(one)) == 1 for one in number)
